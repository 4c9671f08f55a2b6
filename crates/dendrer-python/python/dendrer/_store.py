"""Reading: stores, runs and transitions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, overload

from dendrer import _ask, _made, _native
from dendrer._answers import WIDTH, Answers, Bisect, Commitments, Diff, RunSummary, Verification, Why, Write, escaped
from dendrer._errors import DendrerError, NotFound, UsageError

if TYPE_CHECKING:
    from pathlib import Path

Document = dict[str, Any]

#: How many transitions are read at once.
_BATCH = 256

#: More transitions than a causal chain has, whose reach is 1,000.
_CHAIN_MAX = 1_001


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
    def author(self) -> str:
        """Its author: ``agent``, ``user``, ``runtime`` or ``kernel``, and of the paper's layers ``institution``."""
        return str(self._members["author"])

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
        return f"<Transition {self.tick} {escaped(self.type)} by {escaped(self.agent)}, {escaped(self._run.name)}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = WIDTH) -> str:
        """The transition as ``dendrer show`` prints it on a terminal of ``width`` columns."""
        return self._run._source("show", [f"{self._run._address}@{self.tick}"], {}).text(width)

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

        return tuple(
            Change(item["path"], _plain(item.get("before")), _plain(item.get("after"))) for item in found
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
        self.graph_document: Document | None = None

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

    def _source(self, verb: str, given: Iterable[str], flags: Mapping[str, Any]) -> _ask.Source:
        return self._store._source(verb, given, flags)

    def _show(self, place: int | str) -> Document:
        return self._store._asked("show", {"rev": f"{self._address}@{place}"})[0]

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
    def __getitem__(self, place: slice) -> Answers[Transition]: ...
    def __getitem__(self, place: int | str | slice) -> Transition | Answers[Transition]:
        if isinstance(place, slice):
            if place.step not in (None, 1):
                raise UsageError("a slice of a run has no step")
            begin = 1 if place.start is None else self._tick(place.start)
            end = self.tip + 1 if place.stop is None else self._tick(place.stop)
            first, last = max(begin, 1), min(end - 1, self.tip)
            flags = {"from": first, "to": last, "limit": 0}
            source = self._source("log", [self._address], flags) if first <= last else None
            return Answers(self._between(first, last), source)
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

    def state_at(
        self,
        tick: int | None = None,
        *,
        path: str | None = None,
        window: str = "after",
        on_uncertain: Literal["raise", "return"] = "raise",
    ) -> Any:
        """The state after a tick (or ``before`` it), whole or one place of it. The last tick if none is given.

        Raises `NotFound` if nothing is at the place, and `Uncertain` if its value is unknown. A whole state raises nothing: it lists its
        unknown places under ``kernel_unknown``.
        """
        if window not in ("after", "before"):
            raise UsageError(f"a window is after or before, and not {window}")
        at = self.tip if tick is None else self._tick(tick)
        if window == "before":
            at -= 1
        if 0 <= at <= self.tip:
            value, is_known = self._trace.state(at, path)
            if is_known:
                return value
        # The question names the fault, and the places that are there; it also answers about counters.
        if at >= 0:
            document, unknown = self._store._asked("state", {"rev": f"{self._address}@{at}", "path": path})
            return _ask.known(_plain(document["value"]), unknown, on_uncertain)
        raise NotFound(f"{self.name} has states after ticks 0 to {self.tip}, and not {at}", {"code": "E0102"})

    def log(
        self,
        *,
        type: str | tuple[str, ...] | None = None,
        agent: str | tuple[str, ...] | None = None,
        path: str | None = None,
        grep: str | None = None,
        from_: int | None = None,
        to: int | None = None,
    ) -> Iterator[Transition]:
        """The transitions of some types, of some agents, that wrote at a place, or whose texts ``grep`` matches, in their order."""
        begin = max(1 if from_ is None else self._tick(from_), 1)
        end = self.tip if to is None else min(self._tick(to), self.tip)
        if begin > end:
            return
        if type is None and agent is None and path is None and grep is None:
            yield from self._between(begin, end)
            return

        def several(given: str | tuple[str, ...] | None) -> list[str]:
            return [given] if isinstance(given, str) else list(given or ())

        given: Document = {"run": self._address, "type": several(type), "agent": several(agent), "path": path, "grep": grep}
        given |= {"from": begin, "to": end, "limit": 0}
        for item in self._store._asked("log", given)[0]["items"]:
            yield self._transition(self._trace.transition(int(item["tick"])))

    def bisect(
        self,
        name: str | None = None,
        /,
        *,
        predicate: str | None = None,
        holds: str | None = None,
        on_uncertain: Literal["raise", "return"] = "raise",
        **flags: Any,
    ) -> Bisect:
        """Finds the first tick at which something is violated. Keywords are the flags of ``dendrer bisect``.

        ``name`` is that of a predicate, ``holds`` an expression that must be true, ``predicate`` a name, or an expression that is true
        of a violation; ``all_of`` is ``"standard"``, or the path of a pack or of a list of predicates. Raises `Uncertain` where the
        answer is neither a tick nor that there is none.
        """
        if name is not None:
            if not _is_name(name):
                raise UsageError(
                    f"{name!r} is an expression and no name of a predicate: holds={name!r} if it must be true, "
                    f"predicate={name!r} if it is true of a violation"
                )
            if predicate is not None:
                raise UsageError("a predicate is named once")
            predicate = name
        if isinstance(cast(Any, holds), (list, tuple)):
            raise UsageError("one question at a time; store.ask('bisect', RUN, holds=[..]) asks several")
        given = {"to": self.tip, **flags, "predicate": predicate, "holds": None if holds is None else [holds]}
        asked = {"chain_limit": _CHAIN_MAX, **given, "run": self._address}
        named = cast("str | os.PathLike[str] | None", given.get("all_of"))
        if named is not None and named != "standard":
            path: str = os.fspath(named)
            asked["all_of"] = _native.predicates_of_file(path)
            given["all_of"] = path
        document, unknown = self._store._asked("bisect", asked)
        return _ask.known(Bisect(document, self._source("bisect", [self._address], given)), unknown, on_uncertain)

    def diff(
        self,
        other: str | Run,
        *,
        ignore: tuple[str, ...] | list[str] = (),
        align: str = "tick",
        on_uncertain: Literal["raise", "return"] = "raise",
        **flags: Any,
    ) -> Diff:
        """Compares it with another run by meaning. Keywords are the flags of ``dendrer diff``.

        ``.items`` are all that differ; ``limit`` lists fewer.
        """
        address = other._address if isinstance(other, Run) else self._store._address_of(other)
        if isinstance(other, Run) and other._store._place != self._store._place:
            raise UsageError("the two runs are in different stores; export one of them as a bundle")
        if isinstance(kinds := flags.get("type"), str):
            flags["type"] = kinds.split(",")
        a = f"{self._address}@{self.tip}"
        given = {"limit": 0, **flags, "ignore": ignore, "align": align}
        document, unknown = self._store._asked("diff", {**given, "run_a": a, "run_b": address})
        # The other run may have gone on when the text is asked for.
        end = (document.get("b_range") or [None])[-1]
        b = f"{address}@{end}" if isinstance(end, int) and "@" not in address else address
        return _ask.known(Diff(document, self._source("diff", [a, b], given)), unknown, on_uncertain)

    def backtrack(
        self, path: str, *, on_uncertain: Literal["raise", "return"] = "raise", **flags: Any
    ) -> Answers[Write]:
        """Every write of a place in the state, newest first. Keywords are the flags of ``dendrer backtrack``."""
        given = {"limit": 0, "to": self.tip, **flags}
        document, unknown = self._store._asked("backtrack", {**given, "run": self._address, "path": path})
        words = [self._address, path]

        def write(item: Document) -> Write:
            # The same verb up to the tick of this one, which it lists alone.
            return Write(item, self._source("backtrack", words, {**given, "limit": 1, "to": item["tick"]}))

        found = Answers([write(item) for item in document["items"]], self._source("backtrack", words, given))
        return _ask.known(found, unknown, on_uncertain)

    @overload
    def why(
        self, tick: int, path: str, *, on_uncertain: Literal["raise", "return"] = "raise", **flags: Any
    ) -> Why: ...
    @overload
    def why(self, tick: str, *, on_uncertain: Literal["raise", "return"] = "raise", **flags: Any) -> Why: ...
    @overload
    def why(self, *, path: str, on_uncertain: Literal["raise", "return"] = "raise", **flags: Any) -> Why: ...
    def why(
        self,
        tick: int | str | None = None,
        path: str | None = None,
        *,
        on_uncertain: Literal["raise", "return"] = "raise",
        **flags: Any,
    ) -> Why:
        """The last write of a place at a tick, what it rests on, and what that rests on. ``why(path)`` is that at the last tick."""
        if isinstance(tick, str):
            if path is not None:
                raise UsageError("a place is named once: why(path), or why(tick, path)")
            tick, path = None, tick
        if path is None:
            raise UsageError("a place of the state is missing: why(path), or why(tick, path)")
        words = [f"{self._address}@{self.tip if tick is None else self._tick(tick)}", path]
        document, unknown = self._store._asked("why", {**flags, "rev": words[0], "path": path})
        return _ask.known(Why(document, self._source("why", words, flags)), unknown, on_uncertain)

    def verify(
        self, *, replay: bool = False, tip: str | Sequence[str] | None = None, **flags: Any
    ) -> Verification:
        """Checks that the record is what was committed. A bad record raises nothing: that is the answer.

        ``tip`` is one or several tips that were kept elsewhere; ``quick``, ``require_complete``, ``require_witness`` and
        ``checkpoint`` (the text of one) are those of ``dendrer verify``.
        """
        tips = [tip] if isinstance(tip, str) else list(tip or ())
        given = {**flags, "replay": replay, "tip": tips}
        document, _ = self._store._asked("verify", {**given, "targets": [self._address]})
        return Verification(document, self._source("verify", [self._address], given))

    def fork(
        self,
        tick: int,
        *,
        name: str | None = None,
        reason: str | None = None,
        on_uncertain: Literal["raise", "return"] = "raise",
        **flags: Any,
    ) -> Run:
        """Goes on from a tick as a new run; ``.fork_document`` says how it began.

        Keywords are the members of ``dendrer schema fork-question``; ``set``, ``policy`` and ``tool_output`` take mappings.
        """
        given = {**flags, "run": f"{self._address}@{self._tick(tick)}", "as": name, "reason": reason}
        for member in ("policy", "tool_policy", "note", "set", "only"):
            given[member] = _ask.listed(given.get(member))
        if isinstance(given["set"], dict):
            given["set"] = {_native.pointer(place): value for place, value in cast(Document, given["set"]).items()}
        made = _ask.known(*self._store._asked("fork", given), on_uncertain)
        run = self._store[str(made["run"])]
        run.fork_document = made
        return run

    @overload
    def export(
        self,
        path: None = None,
        *,
        format: str = "bundle",
        withhold: tuple[str, ...] = (),
        also: tuple[str, ...] = (),
        although: tuple[str, ...] = (),
        everywhere: bool = False,
        **flags: Any,
    ) -> bytes: ...
    @overload
    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "bundle",
        withhold: tuple[str, ...] = (),
        also: tuple[str, ...] = (),
        although: tuple[str, ...] = (),
        everywhere: bool = False,
        **flags: Any,
    ) -> Path: ...
    def export(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        format: str = "bundle",
        withhold: tuple[str, ...] = (),
        also: tuple[str, ...] = (),
        although: tuple[str, ...] = (),
        everywhere: bool = False,
        **flags: Any,
    ) -> bytes | Path:
        """Hands the run over: as bytes, or into a file whose path is returned.

        ``withhold`` leaves values out, with all that leads to them; what may follow is named in ``also`` or ``although`` first (E0467).
        """
        search = {"withhold": withhold, "also": also, "although": although, "everywhere": everywhere}
        given = {"format": format, **search, **flags}
        options = [*_ask.flags(given), *self._store._where]
        if path is None:
            return _ask.run("export", [self._address], options)
        from pathlib import Path

        _ask.run("export", [self._address], [*options, f"--output={os.fspath(path)}"])
        return Path(path)

    def commitments(
        self, at: int | None = None, *, on_uncertain: Literal["raise", "return"] = "raise", **flags: Any
    ) -> Commitments:
        """What the agent is bound to after a tick, or the last one. Keywords are the flags of ``dendrer commitments``."""
        address = self._address if at is None and self.tip == 0 else f"{self._address}@{self._tick(-1 if at is None else at)}"
        document, unknown = self._store._asked("commitments", {**flags, "run": address})
        return _ask.known(Commitments(document, self._source("commitments", [address], flags)), unknown, on_uncertain)


def _plain(value: Any) -> Any:
    """A value of a document as plain values of Python."""
    return _native.plain(json.dumps(value)) if isinstance(value, (dict, list)) else value


def _is_name(text: object) -> bool:
    """Whether a text can be the name of a predicate, and is no expression over the state."""
    return isinstance(text, str) and re.fullmatch(r"[\w.\-/]+", text) is not None and text.partition(".")[0] != "state"


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
        return name if self._native.dir is not None or ".dnd" in name or ".html" in name else f"{self._place}#{name}"

    def _asked(self, name: str, members: Mapping[str, Any]) -> tuple[Document, _ask.Unknown | None]:
        return _ask.asked(self._native, _ask.question(name, members))

    def _source(self, verb: str, given: Iterable[str], flags: Mapping[str, Any]) -> _ask.Source:
        """How the verb is asked for the text of an answer: what the question wrote down is written once."""
        options = _ask.flags({name: value for name, value in flags.items() if name.rstrip("_") != "record"})
        return _ask.Source(self._place, self._native.dir is not None, self._key, verb, tuple(given), tuple(options))

    def names(self) -> list[str]:
        """The names of its runs, in the order in which they began."""
        return self._native.names()

    def runs(
        self, *, where: str | None = None, on_uncertain: Literal["raise", "return"] = "raise", **flags: Any
    ) -> Answers[RunSummary]:
        """All of its runs, newest first; ``limit`` lists fewer. Keywords are the flags of ``dendrer runs``."""
        given = {"limit": 0, "where": where, **flags}
        document, unknown = self._asked("runs", given)
        words = [] if self._native.dir is not None else [self._place]

        def summary(item: Document) -> RunSummary:
            only = {"where": f"name == {json.dumps(item['name'])}", "all": True, "limit": 1}
            return RunSummary(item, self._source("runs", words, only))

        found = Answers([summary(item) for item in document["items"]], self._source("runs", words, given))
        return _ask.known(found, unknown, on_uncertain)

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
    def ask(
        self, question: Mapping[str, Any], /, *, on_uncertain: Literal["raise", "return"] = "raise"
    ) -> Document: ...
    @overload
    def ask(
        self, question: str, /, *args: str, on_uncertain: Literal["raise", "return"] = "raise", **flags: Any
    ) -> Document: ...
    def ask(
        self,
        question: str | Mapping[str, Any],
        /,
        *args: str,
        on_uncertain: Literal["raise", "return"] = "raise",
        **flags: Any,
    ) -> Document:
        """Asks a question as a document, and returns the document of the answer; ``dendrer schema bisect-question`` has its members.

        A text is a verb of the command, with its arguments and flags: ``store.ask("heatmap", "run-1")``. The limits are those of the
        command; ``complete`` in the document is false if one left something out. Raises `Uncertain` where the answer is neither yes nor
        no, but for ``verify``.
        """
        if isinstance(question, str):
            document, unknown = _ask.answered(question, args, [*_ask.flags(flags), *self._where])
            is_verify = question.split()[:1] == ["verify"]
        else:
            if args or flags:
                raise UsageError("a question is one document")
            document, unknown = _ask.asked(self._native, question)
            is_verify = question.get("schema") == "dendrer.verify-question/1"
        return _ask.known(document, None if is_verify else unknown, on_uncertain)


    def graph_run(
        self,
        graph: str | os.PathLike[str],
        pack: str | os.PathLike[str] | Mapping[str, Any],
        *,
        input: Mapping[str, Any] | None = None,
        effects: Mapping[str, Callable[..., Any] | str] | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        children: Iterable[str | os.PathLike[str]] = (),
        name: str | None = None,
        stage: int | None = None,
        resume: str | None = None,
        ask_again: Iterable[str] = (),
        set: Mapping[str, Any] | None = None,
    ) -> Run:
        """Runs a graph, or goes on with a run of one; ``.graph_document`` of the run is that of ``dendrer graph run``.

        ``graph`` and ``pack`` are paths or texts, and ``pack`` may be a mapping. ``effects`` answers edges in this process, or by a command
        or an address. ``functions`` are nodes that the pack does not define: each is called twice, in fresh processes, and its result is
        tested, not pure by construction.
        """
        if self._native.dir is None:
            raise UsageError("a graph is run in a store, and not in a bundle")
        from dendrer import _graph

        document = _graph.run(
            self._where,
            graph,
            pack,
            input=input or {},
            effects=effects or {},
            functions=functions or {},
            children=children,
            set=set or {},
            ask_again=ask_again,
            flags=_ask.flags({"as": name, "stage": None if stage is None else str(stage), "resume": resume}),
        )
        run = self[str(document["run"])]
        run.graph_document = document
        return run


def init(path: str | os.PathLike[str] = ".", **flags: Any) -> Store:
    """Makes a store in a directory, with a new key, and opens it. Keywords are the flags of ``dendrer init``.

    >>> import dendrer
    >>> dendrer.init("docs-init").names()
    []
    """
    _ask.document("init", [os.fspath(path)], _ask.flags(flags))
    return open(path, key=flags.get("key"))


def open(path: str | os.PathLike[str] = ".", *, key: str | os.PathLike[str] | None = None) -> Store:
    """Opens a store, or a bundle, for reading. Raises `NotFound` if there is none.

    >>> import dendrer
    >>> store = dendrer.init("docs-open")
    >>> dendrer.open("docs-open").names()
    []
    """
    named = os.fspath(key) if key is not None else None
    try:
        native = _native.NativeStore(os.fspath(path), named)
    except NotFound as error:
        raise _with_init(error, path) from None
    place = native.dir if native.dir is not None else os.fspath(path)
    return Store(native, os.path.abspath(place), named)


def _with_init(error: NotFound, path: str | os.PathLike[str]) -> DendrerError:
    """Adds the call that makes a store to the error of one that is missing, where a store can be made."""
    if error.code != "E0103" or os.path.isfile(path) or "restore" in str(error.data.get("message")):
        return error
    lines = [line for line in str(error).splitlines() if not line.startswith(("help:", "      see:"))]
    return NotFound("\n".join([*lines, f"help: {_made.call(path)}"]), error.data)
