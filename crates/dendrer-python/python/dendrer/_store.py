"""Reading: stores, runs and transitions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

from dendrer import _ask, _native
from dendrer._answers import Bisect, Diff, RunSummary, Verification, Why, Write
from dendrer._errors import NotFound, UsageError

if TYPE_CHECKING:
    from pathlib import Path

Document = dict[str, Any]

#: How many transitions are read at once.
_BATCH = 256


class Change(NamedTuple):
    """A place of the state, and what stood there before and after a transition; ``None`` where nothing did."""

    path: str
    before: Any = None
    after: Any = None


class Transition:
    """A transition of a run."""

    __slots__ = ("_members", "_run")
    _run: Run
    _members: dict[str, Any]

    def __init__(self, run: Run, members: dict[str, Any]) -> None:
        object.__setattr__(self, "_run", run)
        object.__setattr__(self, "_members", members)

    @property
    def tick(self) -> int:
        """Its tick."""
        return int(self._members["tick"])

    @property
    def type(self) -> str | None:
        """Its type."""
        found: str | None = self._members["type"]
        return found

    @property
    def agent(self) -> str | None:
        """The agent that it is of."""
        return self._members.get("agent_id")

    @property
    def ts(self) -> str:
        """When it was committed, in UTC."""
        return str(self._members["ts"])

    @property
    def id(self) -> str:
        """The id of its record."""
        return str(self._members["id"])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a transition does not change: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a transition does not change: {name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transition) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Transition(tick={self.tick}, type={self.type!r}, agent={self.agent!r}, ts={self.ts!r}, id={self.id!r})"

    @property
    def intent(self) -> dict[str, Any] | None:
        """What was meant."""
        return self._members.get("intent")

    @property
    def action(self) -> dict[str, Any] | None:
        """The call of a tool."""
        return self._members.get("action")

    @property
    def result(self) -> dict[str, Any] | None:
        """The answer of a tool."""
        return self._members.get("result")

    @property
    def policy(self) -> dict[str, Any] | None:
        """What was decided."""
        return self._members.get("policy")

    @property
    def confidence(self) -> float | None:
        """How sure the agent was, from 0 to 1."""
        found = (self.intent or {}).get("confidence")
        return float(found) if found is not None else None

    @property
    def state(self) -> Any:
        """The state after it."""
        return self._run.state_at(self.tick)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What it changed in the state."""
        found = self.to_dict().get("changes") or ()

        def plain(value: Any) -> Any:
            return _native.plain(json.dumps(value)) if isinstance(value, (dict, list)) else value

        return tuple(
            Change(item["path"], plain(item.get("before")), plain(item.get("after"))) for item in found
        )

    def to_dict(self) -> Document:
        """The document of ``dendrer show``."""
        return self._run._show(self.tick)


class Run:
    """A run, as it was when it was opened. ``len``, iteration and slices are over its transitions, which begin at tick 1.

    >>> import dendrer
    >>> store = dendrer.init("docs-run")
    >>> with dendrer.run("a", store="docs-run") as run:
    ...     reply = run.observe("hello", {"n": 1})
    >>> len(store["a"]), store["a"][1].type
    (1, 'observation.add')
    """

    def __init__(self, store: Store, trace: _native.NativeTrace, fork: Document | None = None) -> None:
        self._store = store
        self._trace = trace
        self.fork_document: Document | None = fork

    @property
    def name(self) -> str:
        """Its name."""
        return self._trace.name

    @property
    def tip(self) -> int:
        """Its last tick."""
        return self._trace.tip

    @property
    def parent(self) -> tuple[str, int] | None:
        """The run and the tick that it was forked from."""
        return self._trace.parent

    def __repr__(self) -> str:
        return f"<Run {self.name!r}, {self.tip} transitions>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return (self.name, self.tip, self._tip_id()) == (other.name, other.tip, other._tip_id())

    def __hash__(self) -> int:
        return hash((self.name, self.tip))

    def _tip_id(self) -> str | None:
        return self[self.tip].id if self.tip > 0 else None

    @property
    def _address(self) -> str:
        return self._store._address_of(self.name)

    def _document(self, verb: str, given: Iterable[str], flags: Mapping[str, Any] = {}) -> Document:
        return self._store._document(verb, given, flags)

    def _show(self, place: int | str) -> Document:
        return self._store.ask(_ask.question("show", {"rev": f"{self._address}@{place}"}))

    def __len__(self) -> int:
        return self.tip

    def __iter__(self) -> Iterator[Transition]:
        return self._between(1, self.tip)

    def _between(self, begin: int, last: int) -> Iterator[Transition]:
        while begin <= last:
            batch = self._trace.transitions(begin, min(_BATCH, last - begin + 1))
            if not batch:
                return
            for members in batch:
                yield self._transition(members)
            begin += len(batch)

    def _transition(self, members: dict[str, Any]) -> Transition:
        return Transition(self, members)

    @overload
    def __getitem__(self, place: int) -> Transition: ...
    @overload
    def __getitem__(self, place: str) -> Transition: ...
    @overload
    def __getitem__(self, place: slice) -> list[Transition]: ...
    def __getitem__(self, place: int | str | slice) -> Transition | list[Transition]:
        if isinstance(place, slice):
            if place.step not in (None, 1):
                raise UsageError("a slice of a run has no step")
            begin = 1 if place.start is None else self._tick(place.start)
            end = self.tip + 1 if place.stop is None else self._tick(place.stop)
            return list(self._between(max(begin, 1), min(end - 1, self.tip)))
        if isinstance(place, str):
            if place != "tip":
                return self._transition(self._trace.transition(int(self._show(place)["tick"])))
            place = -1
        tick = self._tick(place)
        if not 1 <= tick <= self.tip:
            raise IndexError(f"{self.name} has transitions 1 to {self.tip}, and not {place}")
        return self._transition(self._trace.transition(tick))

    def _tick(self, place: int) -> int:
        return place + self.tip + 1 if place < 0 else place

    def state_at(self, tick: int | None = None, *, path: str | None = None, window: str = "after") -> Any:
        """The state after a tick (or ``before`` it), whole or one place of it. The last tick if none is given.

        Raises `NotFound` if nothing stands at the place.
        """
        if window not in ("after", "before"):
            raise UsageError(f"a window is after or before, and not {window}")
        at = self.tip if tick is None else self._tick(tick)
        if window == "before":
            at -= 1
        if 0 <= at <= self.tip:
            value, there = self._trace.state(at, path)
            if there:
                return value
        # The question names the fault, and what is there.
        if at >= 0:
            self._store.ask(_ask.question("state", {"rev": f"{self._address}@{at}", "path": path}))
            raise NotFound(f"nothing is at {path} after tick {at} of {self.name}", {"code": "E0104"})
        raise NotFound(f"{self.name} has states after ticks 0 to {self.tip}, and not {at}", {"code": "E0102"})

    def log(
        self,
        *,
        type: str | tuple[str, ...] | None = None,
        agent: str | tuple[str, ...] | None = None,
        path: str | None = None,
        from_: int | None = None,
        to: int | None = None,
    ) -> Iterator[Transition]:
        """The transitions of some types, of some agents, or that wrote at a place, in their order."""
        begin = max(1 if from_ is None else self._tick(from_), 1)
        end = self.tip if to is None else min(self._tick(to), self.tip)
        if begin > end:
            return
        if type is None and agent is None and path is None:
            yield from self._between(begin, end)
            return

        def several(given: str | tuple[str, ...] | None) -> list[str]:
            return [given] if isinstance(given, str) else list(given or ())

        given: Document = {"run": self._address, "type": several(type), "agent": several(agent), "path": path}
        given |= {"from": begin, "to": end, "limit": 0}
        for item in self._store.ask(_ask.question("log", given))["items"]:
            yield self._transition(self._trace.transition(int(item["tick"])))

    def bisect(self, predicate: str | None = None, *, holds: str | None = None, **flags: Any) -> Bisect:
        """Finds the first tick at which something is violated. Keywords are the flags of ``dendrer bisect``."""
        if isinstance(cast(Any, holds), (list, tuple)):
            raise UsageError("one question at a time; store.ask('bisect', RUN, holds=[..]) asks several")
        given = {"to": self.tip, **flags, "run": self._address, "predicate": predicate}
        given["holds"] = None if holds is None else [holds]
        return Bisect(self._store.ask(_ask.question("bisect", given)))

    def diff(
        self,
        other: str | Run,
        *,
        ignore: tuple[str, ...] | list[str] = (),
        align: str = "tick",
        **flags: Any,
    ) -> Diff:
        """Compares it with another run by meaning. Keywords are the flags of ``dendrer diff``."""
        address = other._address if isinstance(other, Run) else self._store._address_of(other)
        if isinstance(other, Run) and other._store._place != self._store._place:
            raise UsageError("the two runs are in different stores; export one of them as a bundle")
        if isinstance(kinds := flags.get("type"), str):
            flags["type"] = kinds.split(",")
        given = {**flags, "run_a": f"{self._address}@{self.tip}", "run_b": address, "ignore": ignore, "align": align}
        return Diff(self._store.ask(_ask.question("diff", given)))

    def backtrack(self, path: str, **flags: Any) -> list[Write]:
        """Every write of a place in the state, newest first. Keywords are the flags of ``dendrer backtrack``."""
        given = {"limit": 0, "to": self.tip, **flags, "run": self._address, "path": path}
        return [Write(item) for item in self._store.ask(_ask.question("backtrack", given))["items"]]

    def why(self, tick: int, path: str, **flags: Any) -> Why:
        """The last write of a place at a tick, what it rests on, and what that rests on."""
        given = {**flags, "rev": f"{self._address}@{self._tick(tick)}", "path": path}
        return Why(self._store.ask(_ask.question("why", given)))

    def verify(self, *, replay: bool = False, tip: str | None = None, **flags: Any) -> Verification:
        """Checks that the record is what was committed. A bad record raises nothing: that is the answer."""
        given = {**flags, "targets": [self._address], "replay": replay, "tip": tip}
        return Verification(self._store.ask(_ask.question("verify", given)))

    def fork(self, tick: int, *, name: str | None = None, reason: str | None = None, **flags: Any) -> Run:
        """Goes on from a tick as a new run; ``.fork_document`` says how it began.

        Keywords are the members of ``dendrer schema fork-question``; ``set``, ``policy`` and ``tool_output`` take mappings.
        """
        given = {**flags, "run": f"{self._address}@{self._tick(tick)}", "as": name, "reason": reason}
        for member in ("policy", "tool_policy", "note", "set", "only"):
            given[member] = _ask.listed(given.get(member))
        if isinstance(given["set"], dict):
            given["set"] = {_native.pointer(place): value for place, value in cast(Document, given["set"]).items()}
        made = self._store.ask(_ask.question("fork", given))
        run = self._store[str(made["run"])]
        run.fork_document = made
        return run

    @overload
    def export(self, path: None = None, *, format: str = "bundle", withhold: tuple[str, ...] = ()) -> bytes: ...
    @overload
    def export(
        self, path: str | os.PathLike[str], *, format: str = "bundle", withhold: tuple[str, ...] = ()
    ) -> Path: ...
    def export(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        format: str = "bundle",
        withhold: tuple[str, ...] = (),
        **flags: Any,
    ) -> bytes | Path:
        """Hands the run over: as bytes, or into a file whose path is returned."""
        given = {"format": format, "withhold": withhold, **flags}
        options = [*_ask.flags(given), *self._store._where]
        if path is None:
            return _ask.run("export", [self._address], options)
        from pathlib import Path

        _ask.run("export", [self._address], [*options, f"--output={os.fspath(path)}"])
        return Path(path)

    def commitments(self, at: int | None = None, **flags: Any) -> Document:
        """What the agent is bound to, as the document of ``dendrer commitments``."""
        address = self._address if at is None else f"{self._address}@{self._tick(at)}"
        return self._store.ask(_ask.question("commitments", {**flags, "run": address}))


class Store:
    """A store, or a bundle, that is read.

    >>> import dendrer
    >>> store = dendrer.init("docs-store")
    >>> store.names(), "a" in store
    ([], False)
    """

    def __init__(self, native: _native.NativeStore, place: str, key: str | None) -> None:
        self._native = native
        self._place = place
        self._key = key

    def __repr__(self) -> str:
        return f"<Store {self._place!r}>"

    @property
    def path(self) -> Path:
        """The directory of the store, or the file of the bundle."""
        from pathlib import Path

        return Path(self._place)

    @property
    def _where(self) -> list[str]:
        where = [f"--store={self._place}"] if self._native.dir is not None else []
        return [*where, f"--key={self._key}"] if self._key is not None else where

    def _address_of(self, name: str) -> str:
        return name if self._native.dir is not None or ".dnd" in name else f"{self._place}#{name}"

    def _document(self, verb: str, given: Iterable[str], flags: Mapping[str, Any] = {}) -> Document:
        return _ask.document(verb, given, [*_ask.flags(flags), *self._where])

    def names(self) -> list[str]:
        """The names of its runs, in the order in which they began."""
        return self._native.names()

    def runs(self, *, where: str | None = None, **flags: Any) -> list[RunSummary]:
        """Its runs, newest first. Keywords are the flags of ``dendrer runs``."""
        question = _ask.question("runs", {"where": where, **flags})
        return [RunSummary(item) for item in self.ask(question)["items"]]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __getitem__(self, name: str) -> Run:
        if "@" in name or "#" in name:
            raise UsageError(f"{name!r} is an address, and not the name of a run")
        return Run(self, self._native.run(self._address_of(name)))

    @overload
    def ask(self, question: Mapping[str, Any], /) -> Document: ...
    @overload
    def ask(self, question: str, /, *args: str, **flags: Any) -> Document: ...
    def ask(self, question: str | Mapping[str, Any], /, *args: str, **flags: Any) -> Document:
        """Asks a question as a document, and returns the document of the answer; ``dendrer schema bisect-question`` has its members.

        A text is a verb of the command, with its arguments and flags: ``store.ask("heatmap", "run-1")``.
        """
        if isinstance(question, str):
            return self._document(question, args, flags)
        if args or flags:
            raise UsageError("a question is one document")
        return _ask.asked(self._native, question)


def init(path: str | os.PathLike[str] = ".", **flags: Any) -> Store:
    """Makes a store in a directory, with a new key, and opens it. Keywords are the flags of ``dendrer init``.

    >>> import dendrer
    >>> dendrer.init("docs-init").names()
    []
    """
    _ask.document("init", [os.fspath(path)], _ask.flags(flags))
    return open(path, key=flags.get("key"))


def open(path: str | os.PathLike[str] = ".", *, key: str | os.PathLike[str] | None = None) -> Store:
    """Opens a store, or a bundle, for reading.

    >>> import dendrer
    >>> store = dendrer.init("docs-open")
    >>> dendrer.open("docs-open").names()
    []
    """
    named = os.fspath(key) if key is not None else None
    native = _native.NativeStore(os.fspath(path), named)
    place = native.dir if native.dir is not None else os.fspath(path)
    return Store(native, os.path.abspath(place), named)
