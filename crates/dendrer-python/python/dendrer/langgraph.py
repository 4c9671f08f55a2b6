"""A checkpointer for LangGraph whose threads are runs.

>>> from dendrer.langgraph import DendrerSaver
>>> with DendrerSaver("docs-saver") as saver:
...     saver.runs_of("nobody")
[]
"""

from __future__ import annotations

import asyncio
import builtins
import copy
import json
import os
import random
import shlex
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from dendrer import _fork, _made, _native
from dendrer._errors import UsageError

__all__ = ["DendrerSaver", "acopy_from", "copy_from"]

T = TypeVar("T")

#: How many records a warning names.
_SHOWN = 20


class _Turns:
    """A lock that is given in the order in which it is asked for, so that writes are on record in the order of a graph."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_taken = False
        self._waiting: deque[threading.Event] = deque()

    def __enter__(self) -> None:
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            turn = threading.Event()
            self._waiting.append(turn)
        try:
            turn.wait()
        except BaseException:
            with self._lock:
                if not turn.is_set():
                    self._waiting.remove(turn)
                    raise
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._is_taken = False


class _Open:
    """What copies of a saver share: the store, and the thread of the asynchronous methods."""

    def __init__(self, path: str, key: str | None) -> None:
        self.path = path
        self.key = key
        self.lock = threading.Lock()
        self.turns = _Turns()
        self.native: _native.NativeSaver | None = None
        self.pool: ThreadPoolExecutor | None = None
        self.is_closed = False
        #: Checkpoints that were asked for by their ids: what follows one of them may be a fork.
        self.asked: set[tuple[str, str, str]] = set()
        #: Of each thread the checkpoint of the root that was asked for by its id last, until the newest one is asked for.
        self.addressed: dict[str, str] = {}
        self.opened()
        _fork.watch(self)

    def opened(self) -> _native.NativeSaver:
        """The store, opened again behind a fork of the process."""
        native = self.native
        if native is not None:
            return native
        if self.is_closed:
            raise UsageError("the saver is closed")
        with self.lock:
            if self.native is None:
                self.native = self._open()
            return self.native

    def _open(self) -> _native.NativeSaver:
        return _made.opened_or_made(lambda: _native.NativeSaver(self.path, self.key), self.path, self.key)

    def fork_held(self) -> _native.NativeSaver | None:
        """What is open, for a fork of the process."""
        return self.native

    def fork_forget(self) -> None:
        """In the child of a fork: the store is opened again when it is needed."""
        self.native, self.pool = None, None
        self.lock = threading.Lock()
        self.turns = _Turns()

    def close(self) -> None:
        """Signs the log and closes the store."""
        self.is_closed = True
        native, self.native = self.native, None
        pool, self.pool = self.pool, None
        if pool is not None:
            pool.shutdown(wait=True)
        if native is not None:
            native.close()

    async def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Calls a function in the thread of the saver."""
        with self.lock:
            if self.pool is None:
                self.pool = ThreadPoolExecutor(1, thread_name_prefix="dendrer-saver")
            pool = self.pool
        return await asyncio.get_running_loop().run_in_executor(pool, lambda: function(*args, **kwargs))


class DendrerSaver(BaseCheckpointSaver[Any]):
    """Keeps the checkpoints of LangGraph as runs of a store; a missing store is made, and a warning says so.

    What a channel holds is state: ``dendrer bisect THREAD --holds 'size(state.values.messages) < 50'``. The exact bytes are in the
    vault of the store. Synchronous and asynchronous methods, a context manager in both worlds.

    >>> from langgraph.checkpoint.base import empty_checkpoint
    >>> with DendrerSaver("docs-saver-2") as saver:
    ...     config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    ...     config = saver.put(config, empty_checkpoint(), {"source": "input", "step": -1}, {})
    ...     saver.get_tuple(config).metadata["source"], saver.runs_of("t")
    ('input', ['t'])
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ".",
        *,
        serde: SerializerProtocol | None = None,
        key: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._open = _Open(os.path.abspath(os.fspath(path)), None if key is None else os.fspath(key))
        self._claims: dict[str, str] = {}

    @classmethod
    def from_conn_string(cls, conn_string: str | os.PathLike[str], **options: Any) -> DendrerSaver:
        """Opens the store in a directory: the name that other savers have for it."""
        return cls(conn_string, **options)

    def setup(self) -> None:
        """Does nothing: a store needs no tables."""

    async def asetup(self) -> None:
        """Does nothing: a store needs no tables."""

    def close(self) -> None:
        """Signs the log and closes the store. Once more it does nothing."""
        self._open.close()

    def __enter__(self) -> DendrerSaver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> DendrerSaver:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def __repr__(self) -> str:
        return f"<DendrerSaver {self._open.path!r}>"

    # -- what is dendrer's own -----------------------------------------------------------------------------------

    def runs_of(self, thread_id: str) -> builtins.list[str]:
        """The runs of a thread, oldest first. A fork is a run of its own, and so is a second first checkpoint."""
        return self._open.opened().runs_of(_text(thread_id))

    def threads(self) -> builtins.list[str]:
        """The threads of the store."""
        return self._open.opened().threads()

    def claim_write_ownership(self, thread_id: str) -> DendrerSaver:
        """Claims a thread, and returns a saver that writes it until another one claims it."""
        thread = _text(thread_id)
        writer = copy.copy(self)
        writer._claims = {**self._claims, thread: self._open.opened().claim(thread)}
        return writer

    async def aclaim_write_ownership(self, thread_id: str) -> DendrerSaver:
        """As `claim_write_ownership`."""
        return await self._open.call(self.claim_write_ownership, thread_id)

    def check_write_ownership(self, thread_id: str | None = None) -> None:
        """Raises an error with ``is_stale_write_owner_error`` if another writer claimed a thread since."""
        threads = builtins.list(self._claims) if thread_id is None else [_text(thread_id)]
        for thread in threads:
            claim = self._claims.get(thread)
            if claim is not None and not self._open.opened().has_claim(thread, claim):
                from dendrer import _errors

                message = f"another writer claimed thread {thread}"
                data: dict[str, Any] = {"code": "E0407", "message": message, "notes": [], "help": []}
                raise _errors.StaleWriteOwner(f"error[E0407]: {message}", data)

    async def acheck_write_ownership(self, thread_id: str | None = None) -> None:
        """As `check_write_ownership`."""
        await self._open.call(self.check_write_ownership, thread_id)

    # -- the interface of LangGraph ------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Puts a checkpoint: it is durable when this returns.

        Raises `StaleCheckpoint` if it is to follow a checkpoint that is not the last one and was not asked for by its id, or
        one that was deleted.
        """
        with self._open.turns:
            return self._put(config, checkpoint, metadata, new_versions)

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        native = self._open.opened()
        thread, namespace, parent = _place(config)
        values = checkpoint["channel_values"]
        known = checkpoint["channel_versions"]
        versions = [(name, _version(known.get(name))) for name in values]
        needed = {name for name in values if name in new_versions or known.get(name) is None}
        rest = [(name, version) for name, version in versions if name not in needed]
        if rest:
            needed.update(native.missing(thread, namespace, parent, rest))
        dumps = self.serde.dumps_typed
        own = {name: member for name, member in checkpoint.items() if name != "channel_values"}
        merged = get_checkpoint_metadata(config, metadata)
        made_by = merged.get("run_id")
        native.put(
            thread,
            namespace,
            parent,
            checkpoint["id"],
            dumps(own),
            dumps(merged),
            None if made_by is None else str(made_by),
            [(name, version, dumps(values[name]) if name in needed else None) for name, version in versions],
            parent is not None and (thread, namespace, parent) in self._open.asked,
            self._claims.get(thread),
            _around(config, namespace, merged),
            self._open.addressed.get(thread),
        )
        return _config(_given(config)["thread_id"], namespace, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Puts the writes of a task beside a checkpoint, which may come later.

        Raises `StaleCheckpoint` if the checkpoint was deleted.
        """
        if not writes:
            return
        thread, namespace, checkpoint = _place(config)
        if checkpoint is None:
            raise UsageError("writes belong to a checkpoint: the config has no checkpoint_id")
        dumps = self.serde.dumps_typed
        items = [
            (WRITES_IDX_MAP.get(channel, index), channel, dumps(value)) for index, (channel, value) in enumerate(writes)
        ]
        replaces = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        with self._open.turns:
            self._open.opened().put_writes(
                thread,
                namespace,
                checkpoint,
                task_id,
                task_path,
                items,
                replaces,
                self._claims.get(thread),
                _around(config, namespace, {}),
            )

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Reads a checkpoint: the one with the id of the config, or the newest of its namespace.

        Raises `IntegrityError` if what is on record is not what was put, and `VaultLocked` without the key of the vault.
        """
        thread, namespace, _ = _place(config)
        checkpoint = get_checkpoint_id(config)
        found = self._open.opened().get(thread, namespace, checkpoint)
        if not namespace and checkpoint is not None:
            self._open.addressed[thread] = checkpoint
        elif not namespace and "checkpoint_id" not in _given(config):
            # LangGraph compares an addressed checkpoint with the newest, and then names no id: the address is still meant.
            self._open.addressed.pop(thread, None)
        if found is None:
            return None
        if checkpoint is not None:
            self._open.asked.add((thread, namespace, checkpoint))
        return self._tuple(found, _given(config)["thread_id"])

    def _tuple(self, found: _native.Found, thread: Any) -> CheckpointTuple:
        _, namespace, id, parent, checkpoint, metadata, channels, writes = found
        loads = self.serde.loads_typed
        whole = cast(Checkpoint, loads(checkpoint))
        whole["channel_values"] = {name: loads(value) for name, value in channels}
        return CheckpointTuple(
            _config(thread, namespace, id),
            whole,
            cast(CheckpointMetadata, loads(metadata)),
            None if parent is None else _config(thread, namespace, parent),
            [(task, channel, loads(value)) for task, channel, value in writes],
        )

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Lists checkpoints, newest first."""
        native = self._open.opened()
        given = {} if config is None else _given(config)
        thread = given.get("thread_id")
        keys = native.list(
            None if thread is None else _text(thread),
            given.get("checkpoint_ns"),
            None if config is None else get_checkpoint_id(config),
            None if before is None else get_checkpoint_id(before),
        )
        left = limit
        for key in keys:
            if left is not None and left <= 0:
                return
            found = native.get(*key)
            if found is None:
                # Removed meanwhile.
                continue
            one = self._tuple(found, key[0] if thread is None else thread)
            meant = cast("Mapping[str, Any]", one.metadata)
            if filter and any(meant.get(name) != value for name, value in filter.items()):
                continue
            if left is not None:
                left -= 1
            yield one

    def delete_thread(self, thread_id: str) -> None:
        """Deletes a thread: its values are erased from the record, and destroyed in the vault.

        A warning names the records that others made from the thread and that stay: notes, and runs that were forked or rebased.
        """
        self._warn_of(self._open.opened().delete_thread(_text(thread_id)))

    def _warn_of(self, left: builtins.list[tuple[str, int, str]]) -> None:
        """Warns of records that a deletion left, with a command for each."""
        fields: dict[tuple[str, int], str] = {}
        for run, tick, field in left:
            fields.setdefault((run, tick), field)
        if not fields:
            return
        commands: builtins.list[str] = []
        for (run, tick), field in builtins.list(fields.items())[:_SHOWN]:
            # The state of the casebook has the text of a note once more.
            also = ["--also", "delta"] if (run, field) == ("casebook", "intent.description") else []
            # By its values: the places in a change of state are those of every thread.
            place = "state" if field == "delta" else field
            words = ["dendrer", "erase", f"{run}@{tick}", place, *also, "--reason", "thread deleted", "--store", self._open.path]
            commands.append(shlex.join(words))
        if any("--also" in command for command in commands):
            commands.append("(without the text of a note its casebook takes no later entry)")
        more = [f"and {len(fields) - _SHOWN} more"] if len(fields) > _SHOWN else []
        _made.warn("\n".join(["records made from what was deleted stay, and may have its values; to erase them:", *commands, *more]))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints that some runs of LangGraph made. What is left of a thread moves to a new run."""
        self._warn_of(self._open.opened().delete_made_by(_texts(run_ids)))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies a thread: every checkpoint, with what it follows and the writes beside it."""
        self._open.opened().copy_thread(_text(source_thread_id), _text(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes all checkpoints of threads but the newest of each namespace (and what those need of delta channels), or all."""
        if strategy not in ("keep_latest", "delete"):
            raise UsageError(f'a strategy is "keep_latest" or "delete", and not {strategy!r}')
        native = self._open.opened()
        for thread in _texts(thread_ids):
            if strategy == "delete":
                self._warn_of(native.delete_thread(thread))
                continue
            newest: dict[str, str] = {}
            for _, namespace, id in native.list(thread, None, None, None):
                newest.setdefault(namespace, id)
            kept = [place for namespace, id in newest.items() for place in self._needed(thread, namespace, id)]
            self._warn_of(native.keep_only(thread, kept))

    def _needed(self, thread: str, namespace: str, id: str) -> Iterator[tuple[str, str]]:
        """A checkpoint, and the ancestors up to which its delta channels are rebuilt from writes."""
        at: str | None = id
        missing: set[str] | None = None
        while at is not None:
            found = self._open.opened().get(thread, namespace, at)
            if found is None:
                return
            yield namespace, at
            if missing is None:
                metadata = self.serde.loads_typed(found[5])
                missing = set(metadata.get("counters_since_delta_snapshot") or ())
            missing.difference_update(name for name, _ in found[6])
            if not missing:
                return
            at = found[3]

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The version behind another one. Threads that came from other savers go on in their texts."""
        if isinstance(current, str):
            return f"{int(current.split('.')[0]) + 1:032}.{random.random():016}"
        return 1 if current is None else current + 1

    # -- asynchronous --------------------------------------------------------------------------------------------

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        return await self._open.call(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`."""
        await self._open.call(self.put_writes, config, writes, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return await self._open.call(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        found = self.list(config, filter=filter, before=before, limit=limit)

        def following() -> CheckpointTuple | None:
            return next(found, None)

        while True:
            one = await self._open.call(following)
            if one is None:
                return
            yield one

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await self._open.call(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await self._open.call(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await self._open.call(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        await self._open.call(self.prune, thread_ids, strategy=strategy)

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Any:
        """What each delta channel was given since it was written out, along the ancestors of a checkpoint."""
        return super().get_delta_channel_history(config=config, channels=channels)

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Any:
        """As `get_delta_channel_history`."""
        return await self._open.call(self.get_delta_channel_history, config=config, channels=channels)


def _given(config: RunnableConfig) -> dict[str, Any]:
    return config.get("configurable", {})


def _place(config: RunnableConfig) -> tuple[str, str, str | None]:
    given = _given(config)
    if "thread_id" not in given:
        raise UsageError("the config has no thread_id")
    return _text(given["thread_id"]), given.get("checkpoint_ns") or "", get_checkpoint_id(config)


def _around(
    config: RunnableConfig, namespace: str, metadata: Mapping[str, Any]
) -> builtins.list[tuple[str, str]]:
    """The checkpoints of the namespaces around one, by namespace and id: what a subgraph puts goes on from them."""
    named: dict[str, Any] = {}
    named.update(metadata.get("parents") or {})
    named.update(_given(config).get("checkpoint_map") or {})
    return [(str(around), str(id)) for around, id in named.items() if around != namespace]


def _text(given: object) -> str:
    """The id of a thread or of a run as text."""
    text = str(given)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError("an id is text without lone surrogates") from None
    return text


def _texts(given: str | Sequence[str]) -> builtins.list[str]:
    """Ids: one by itself, or several."""
    return [_text(one) for one in ([given] if isinstance(given, str) else given)]


def _config(thread: Any, namespace: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": id}}


def _version(version: Any) -> str:
    return json.dumps(version)


def _copied(one: CheckpointTuple, saver: DendrerSaver) -> None:
    """Puts a checkpoint of another saver, with the writes beside it."""
    thread, namespace, _ = _place(one.config)
    configurable: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": namespace}
    if one.parent_config is not None:
        parent = _given(one.parent_config)["checkpoint_id"]
        configurable["checkpoint_id"] = parent
        saver._open.asked.add((thread, namespace, parent))
    versions = one.checkpoint["channel_versions"]
    put = saver.put({"configurable": configurable}, one.checkpoint, one.metadata, versions)
    tasks: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in one.pending_writes or ():
        tasks.setdefault(task, []).append((channel, value))
    for task, writes in tasks.items():
        special = [write for write in writes if write[0] in WRITES_IDX_MAP]
        saver.put_writes(put, [write for write in writes if write[0] not in WRITES_IDX_MAP], task)
        saver.put_writes(put, special, task)


def _target(to: DendrerSaver | str | os.PathLike[str]) -> tuple[DendrerSaver, bool]:
    return (to, False) if isinstance(to, DendrerSaver) else (DendrerSaver(to), True)


def _oldest_first(configs: Iterable[RunnableConfig]) -> list[RunnableConfig]:
    return sorted(configs, key=lambda config: str(_given(config)["checkpoint_id"]))


def copy_from(
    saver: BaseCheckpointSaver[Any],
    to: DendrerSaver | str | os.PathLike[str] = ".",
    *,
    threads: Sequence[str] | None = None,
) -> int:
    """Brings the threads of any other saver into a store, and returns the number of checkpoints. The other saver is only read.

    >>> from langgraph.checkpoint.memory import InMemorySaver
    >>> copy_from(InMemorySaver(), "docs-copied")
    0
    """
    target, is_ours = _target(to)
    try:
        wanted: list[RunnableConfig | None] = [None]
        if threads is not None:
            wanted = [{"configurable": {"thread_id": thread}} for thread in _texts(threads)]
        configs = _oldest_first(one.config for want in wanted for one in saver.list(want))
        for config in configs:
            found = saver.get_tuple(config)
            if found is not None:
                _copied(found, target)
        return len(configs)
    finally:
        if is_ours:
            target.close()


async def acopy_from(
    saver: BaseCheckpointSaver[Any],
    to: DendrerSaver | str | os.PathLike[str] = ".",
    *,
    threads: Sequence[str] | None = None,
) -> int:
    """As `copy_from`, of a saver that has asynchronous methods alone."""
    target, is_ours = _target(to)
    try:
        wanted: list[RunnableConfig | None] = [None]
        if threads is not None:
            wanted = [{"configurable": {"thread_id": thread}} for thread in _texts(threads)]
        found = [one.config for want in wanted async for one in saver.alist(want)]
        configs = _oldest_first(found)
        for config in configs:
            one = await saver.aget_tuple(config)
            if one is not None:
                await target._open.call(_copied, one, target)
        return len(configs)
    finally:
        if is_ours:
            await asyncio.to_thread(target.close)


