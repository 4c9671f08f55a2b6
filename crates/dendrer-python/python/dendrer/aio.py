"""The names of the package for ``asyncio``. Nothing here blocks the loop.

>>> import asyncio, dendrer
>>> from dendrer import aio
>>> store = dendrer.init("docs-aio")
>>> async def main():
...     async with aio.run("a", store="docs-aio") as run:
...         return (await run.observe("hello")).tick
>>> asyncio.run(main())
1
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar, cast

from dendrer import _recording, _store
from dendrer._answers import Answers, Bisect, Commitments, Diff, RunSummary, Verification, Why, Write
from dendrer._recording import Decision, Recording, Reply, agent, step, tool
from dendrer._store import Transition
from dendrer._writer import TraceWriter as _TraceWriter

__all__ = ["AsyncRecording", "AsyncRun", "AsyncStore", "TraceWriter", "agent", "init", "open", "run", "step", "tool"]

T = TypeVar("T")

#: One thread for each recording, so that its steps are in the order in which they were asked for.
_threads: weakref.WeakKeyDictionary[object, ThreadPoolExecutor] = weakref.WeakKeyDictionary()


async def in_thread(order: object, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Calls a function in the thread of a recording, with the context of the caller."""
    pool = _threads.get(order)
    if pool is None:
        pool = _threads[order] = ThreadPoolExecutor(1, thread_name_prefix="dendrer")
    call = functools.partial(contextvars.copy_context().run, functools.partial(function, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(pool, call)


def _forget_threads() -> None:
    _threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


class AsyncRecording:
    """A run that is recorded. Steps are recorded in the order of the calls, by a thread of their own."""

    def __init__(self, make: Callable[[], Recording]) -> None:
        self._make = make
        self._found: Recording | None = None
        self._token: contextvars.Token[Recording | None] | None = None

    async def open(self) -> AsyncRecording:
        """Opens the run."""
        if self._found is None:
            self._found = await in_thread(self, self._make)
            self._found._opener = threading.current_thread()
        return self

    async def __aenter__(self) -> AsyncRecording:
        await self.open()
        self._token = _recording._current.set(self._recording)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        token, self._token = self._token, None
        try:
            if token is not None:
                _recording._current.reset(token)
        except ValueError:
            # Left in another context than it was entered in, as generators do; that one keeps its own.
            pass
        finally:
            if error is not None:
                await self._call(self._recording._ended_by, error)
            await self.close()

    @property
    def _recording(self) -> Recording:
        if self._found is None:
            raise RuntimeError("the run is not open yet: async with aio.run(..), or await run.open()")
        return self._found

    @property
    def name(self) -> str:
        """The name of the run."""
        return self._recording.name

    async def _call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return await in_thread(self._recording, function, *args, **kwargs)

    async def commit(self, line: dict[str, Any]) -> Reply:
        """As `Recording.commit`."""
        return await self._call(self._recording.commit, line)

    async def observe(self, text: str, set: dict[str, Any] | None = None, **members: Any) -> Reply:
        """As `Recording.observe`."""
        return await self._call(self._recording.observe, text, set or {}, **members)

    async def user(self, text: str, set: dict[str, Any] | None = None, **members: Any) -> Reply:
        """As `Recording.user`."""
        return await self._call(self._recording.user, text, set or {}, **members)

    async def plan(self, text: str, set: dict[str, Any] | None = None, **members: Any) -> Reply:
        """As `Recording.plan`."""
        return await self._call(self._recording.plan, text, set or {}, **members)

    async def remember(self, text: str, set: dict[str, Any] | None = None, **members: Any) -> Reply:
        """As `Recording.remember`."""
        return await self._call(self._recording.remember, text, set or {}, **members)

    async def complete(self, text: str, set: dict[str, Any] | None = None, **members: Any) -> Reply:
        """As `Recording.complete`."""
        return await self._call(self._recording.complete, text, set or {}, **members)

    async def flag(self, kind: str, text: str, **members: Any) -> Reply:
        """As `Recording.flag`."""
        return await self._call(self._recording.flag, kind, text, **members)

    async def propose(self, type: str = "action.request", *, action: dict[str, Any], **members: Any) -> Decision:
        """As `Recording.propose`."""
        return await self._call(self._recording.propose, type, action=action, **members)

    async def result(self, decision: Decision | Reply, output: Any = None, **members: Any) -> Reply:
        """As `Recording.result`."""
        return await self._call(self._recording.result, decision, output, **members)

    async def step(self, action: str, name: str, **members: Any) -> Reply:
        """As `Recording.step`."""
        return await self._call(self._recording.step, action, name, **members)

    async def flush(self) -> int:
        """As `Recording.flush`."""
        return await self._call(self._recording.flush)

    async def close(self) -> None:
        """As `Recording.close`."""
        if self._found is None:
            return
        await self._call(self._found.close)
        pool = _threads.pop(self._found, None)
        if pool is not None:
            pool.shutdown(wait=False)


def run(name: str, **options: Any) -> AsyncRecording:
    """As `dendrer.run`, for ``async with``."""
    return AsyncRecording(lambda: _recording.run(name, **options))


class AsyncRun:
    """A run that is read, as it was when it was opened."""

    def __init__(self, found: _store.Run) -> None:
        self.now = found

    def __len__(self) -> int:
        return len(self.now)

    @property
    def name(self) -> str:
        """Its name."""
        return self.now.name

    async def at(self, place: int | str) -> Transition:
        """The transition at a tick."""
        return await asyncio.to_thread(lambda: self.now[place])

    async def transitions(self, begin: int | None = None, end: int | None = None) -> Answers[Transition]:
        """The transitions from one tick up to another, which is not one of them."""
        return await asyncio.to_thread(lambda: self.now[begin:end])

    async def state_at(self, tick: int | None = None, **options: Any) -> Any:
        """As `Run.state_at`."""
        return await asyncio.to_thread(self.now.state_at, tick, **options)

    async def log(self, **options: Any) -> list[Transition]:
        """As `Run.log`."""
        return await asyncio.to_thread(lambda: list(self.now.log(**options)))

    async def bisect(self, name: str | None = None, /, **flags: Any) -> Bisect:
        """As `Run.bisect`."""
        return await asyncio.to_thread(self.now.bisect, name, **flags)

    async def diff(self, other: str | AsyncRun, **flags: Any) -> Diff:
        """As `Run.diff`."""
        return await asyncio.to_thread(self.now.diff, other.now if isinstance(other, AsyncRun) else other, **flags)

    async def backtrack(self, path: str, **flags: Any) -> Answers[Write]:
        """As `Run.backtrack`."""
        return await asyncio.to_thread(self.now.backtrack, path, **flags)

    async def why(self, tick: int | str, path: str | None = None, **flags: Any) -> Why:
        """As `Run.why`."""
        found: Why = await asyncio.to_thread(cast(Any, self.now.why), tick, path, **flags)
        return found

    async def commitments(self, at: int | None = None, **flags: Any) -> Commitments:
        """As `Run.commitments`."""
        return await asyncio.to_thread(self.now.commitments, at, **flags)

    async def verify(self, **flags: Any) -> Verification:
        """As `Run.verify`."""
        return await asyncio.to_thread(self.now.verify, **flags)

    async def fork(self, tick: int, **flags: Any) -> AsyncRun:
        """As `Run.fork`."""
        return AsyncRun(await asyncio.to_thread(self.now.fork, tick, **flags))

    async def export(self, path: str | os.PathLike[str] | None = None, **flags: Any) -> Any:
        """As `Run.export`."""
        return await asyncio.to_thread(functools.partial(self.now.export, path, **flags))


class AsyncStore:
    """A store, or a bundle, that is read."""

    def __init__(self, found: _store.Store) -> None:
        self.now = found

    async def names(self) -> list[str]:
        """As `Store.names`."""
        return await asyncio.to_thread(self.now.names)

    async def runs(self, **flags: Any) -> Answers[RunSummary]:
        """As `Store.runs`."""
        return await asyncio.to_thread(self.now.runs, **flags)

    async def run(self, name: str) -> AsyncRun:
        """A run as it is now: ``store[NAME]``."""
        return AsyncRun(await asyncio.to_thread(self.now.__getitem__, name))


async def init(path: str | os.PathLike[str] = ".", **flags: Any) -> AsyncStore:
    """As `dendrer.init`."""
    return AsyncStore(await asyncio.to_thread(_store.init, path, **flags))


async def open(path: str | os.PathLike[str] = ".", **options: Any) -> AsyncStore:
    """As `dendrer.open`."""
    return AsyncStore(await asyncio.to_thread(_store.open, path, **options))


class TraceWriter:
    """As `dendrer.TraceWriter`, for ``async with``."""

    def __init__(self, run_id: str, storage: str = "append-only", **options: Any) -> None:
        self._make = lambda: _TraceWriter(run_id, storage, **options)
        self._found: _TraceWriter | None = None

    async def _writer(self) -> _TraceWriter:
        if self._found is None:
            self._found = await in_thread(self, self._make)
            self._found._run._opener = threading.current_thread()
        return self._found

    async def name(self) -> str:
        """As `dendrer.TraceWriter.name`."""
        return (await self._writer()).name

    async def next_tick(self) -> int:
        """As `dendrer.TraceWriter.next_tick`."""
        writer = await self._writer()
        return await in_thread(self, writer.next_tick)

    async def emit(self, event: dict[str, Any]) -> int:
        """As `dendrer.TraceWriter.emit`."""
        writer = await self._writer()
        return await in_thread(self, writer.emit, event)

    async def close(self) -> None:
        """As `dendrer.TraceWriter.close`."""
        if self._found is not None:
            await in_thread(self, self._found.close)

    async def __aenter__(self) -> TraceWriter:
        await self._writer()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._found is not None and error is not None:
            await in_thread(self, self._found._run._ended_by, error)
        await self.close()
