"""Answers: each is frozen, compares by what it says, and has the document of the command."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from dendrer import _native
from dendrer._ask import Source

Document = dict[str, Any]
T = TypeVar("T")


#: The columns of the text that ``str`` returns.
WIDTH = 80


class Answer:
    """What a verb answered. Two answers are equal if they say the same; ``str`` is the text of the verb at 80 columns."""

    __slots__ = ("document", "source")
    document: Document
    source: Source | None

    def __init__(self, document: Document, source: Source | None = None) -> None:
        object.__setattr__(self, "document", document)
        object.__setattr__(self, "source", source)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an answer does not change: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an answer does not change: {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Answer) and self.document == other.document

    def __hash__(self) -> int:
        return hash((type(self), str(self.document)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._found()}>"

    def __str__(self) -> str:
        return self.text()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.document, self.source)

    def _found(self) -> str:
        """What was found, in some words."""
        return "answer"

    def _of(self) -> str:
        """The run, for the end of a line."""
        return f", {escaped(self.document['run'])}" if "run" in self.document else ""

    def to_dict(self) -> Document:
        """The document, as the verb prints it under ``--json``."""
        return copy.deepcopy(self.document)

    def text(self, width: int = WIDTH) -> str:
        """The answer as the verb prints it on a terminal of ``width`` columns. The verb is asked again, of the same ticks."""
        return repr(self) if self.source is None else self.source.text(width)


class Answers(list[T]):
    """A list of answers; ``str`` is the text of the verb at 80 columns."""

    __slots__ = ("source",)
    source: Source | None

    def __init__(self, items: Iterable[T] = (), source: Source | None = None) -> None:
        super().__init__(items)
        self.source = source

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = WIDTH) -> str:
        """The list as the verb prints it on a terminal of ``width`` columns."""
        return repr(self) if self.source is None else self.source.text(width)


def escaped(text: object) -> str:
    """A text of the record in one line: what does not print is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in str(text))


def dotted(path: object) -> str:
    """A JSON pointer as people write it, where that is the same place."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in str(path).split("/")[1:]]
    plain = all(step.replace("_", "a").replace("-", "a").isalnum() and not step[0].isdigit() for step in steps if step)
    return escaped(".".join(steps) if steps and all(steps) and plain else path)


def counted(number: int, one: str) -> str:
    """A number of things."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


class Onset(NamedTuple):
    """The first tick at which something is violated.

    >>> Onset(22, "exact").tick
    22
    """

    tick: int
    certainty: str


class Moved(NamedTuple):
    """One of the largest writes to the places that a predicate reads.

    >>> Moved("/total_chf", 34, 390.5, 700.5, 310).tick
    34
    """

    place: str
    tick: int
    before: Any = None
    after: Any = None
    change: Any = None


class FirstSeen(NamedTuple):
    """The earliest transition with a value. This is a heuristic: an equal value need not be the source of the other.

    >>> FirstSeen(310, 32, "/result/output/price", "action.result", "search_price").tick
    32
    """

    value: Any
    tick: int | None
    """``None`` if the value was not seen before its own tick."""
    path: str | None = None
    type: str | None = None
    tool: str | None = None
    within: Any = None
    """The smallest object around it."""
    others: Any = None


def plain(value: Any) -> Any:
    """A value of a document as plain values of Python."""
    return _native.plain(json.dumps(value)) if isinstance(value, (dict, list)) else value


def _moved(document: Document) -> list[Moved]:
    items: list[Document] = document.get("moved") or []
    return [
        Moved(str(item.get("place")), int(item["tick"]), *(plain(item.get(name)) for name in ("before", "after", "change")))
        for item in items
    ]


def _first_seen(document: Document) -> list[FirstSeen]:
    items: list[Document] = document.get("first_seen") or []
    return [FirstSeen(**{name: plain(item.get(name)) for name in FirstSeen._fields}) for item in items]


class Bisect(Answer):
    """Where something first went wrong."""

    def _found(self) -> str:
        words: Any = self.document.get("outcome", "answer")
        if self.document.get("onset") is not None:
            words = f"onset {self.document['onset']} {self.document.get('certainty')}"
        elif "outcome" not in self.document:
            words = counted(len(self.document.get("items") or ()), "predicate")
        else:
            known = {"never": "no violation", "recovers": "uncertain, it recovers"}
            words = known.get(words, words)
        return escaped(words) + self._of()

    @property
    def moved(self) -> list[Moved]:
        """The largest writes up to the onset, to the places that the predicate reads."""
        return _moved(self.document)

    @property
    def first_seen(self) -> list[FirstSeen]:
        """Where the values of these writes were first seen; a heuristic."""
        return _first_seen(self.document)

    @property
    def outcome(self) -> str:
        """``onset``, ``never``, ``initial`` and the other words of the document."""
        return str(self.document["outcome"])

    @property
    def onset(self) -> Onset | None:
        """The first violated tick; ``None`` if there is none, or none is known."""
        tick = self.document.get("onset")
        return None if tick is None else Onset(int(tick), str(self.document["certainty"]))

    @property
    def probes(self) -> list[Document]:
        """The ticks that were judged, in order."""
        return list(self.document.get("items") or ())

    @property
    def chain(self) -> list[Document]:
        """What follows from the onset within 1,000 transitions, link by link; the document says how certain that is.

        ``chain_limit`` lists fewer, and ``document["chain"]["more"]`` is true then.
        """
        chain: Document = self.document.get("chain") or {}
        return list(chain.get("items") or ())

    @property
    def suggestions(self) -> list[list[str]]:
        """Commands that are worth trying, as arguments."""
        found = self.document.get("suggestion")
        return [list(found["argv"])] if found else []


class Diff(Answer):
    """How two runs differ."""

    def _found(self) -> str:
        document = self.document
        runs = ", ".join(escaped(document[name]) for name in ("a", "b") if isinstance(document.get(name), str))
        outcome: Document = document.get("outcome") or {}
        end = ", and the end" if outcome.get("state") == "differs" else ""
        if "differ" not in document:
            return runs
        found = f"{document['differ']:,} of {counted(int(document.get('pairs', 0)), 'pair')} differ{end}"
        return f"{found}, {runs}" if document["differ"] or end else f"no difference, {runs}"

    @property
    def differ(self) -> int:
        """How many places differ."""
        return int(self.document["differ"])

    @property
    def items(self) -> list[Document]:
        """The places that differ, in order."""
        return list(self.document.get("items") or ())

    def only(self, kind: str) -> list[Document]:
        """What differs in one way: ``structural``, ``semantic``, ``confidence`` or ``outcome``. Each item has those changes alone."""
        if kind == "outcome":
            found: Document = self.document.get("outcome") or {}
            return [found] if found.get("changes") else []
        return [
            {**item, "changes": [change for change in item.get("changes", ()) if change.get("kind") == kind]}
            for item in self.items
            if kind in item.get("kinds", ())
        ]


class Write(Answer):
    """A transition that wrote a place."""

    def _found(self) -> str:
        run = f", {escaped(self.source.given[0])}" if self.source is not None else ""
        return f"tick {self.tick} {escaped(self.type)} by {escaped(self.agent)}{run}"

    @property
    def tick(self) -> int:
        """Its tick."""
        return int(self.document["tick"])

    @property
    def agent(self) -> str:
        """The agent that wrote."""
        return str(self.document["agent"])

    @property
    def type(self) -> str:
        """Its type."""
        return str(self.document["type"])

    @property
    def id(self) -> str:
        """The id of its record."""
        return str(self.document["id"])

    @property
    def ops(self) -> list[Document]:
        """What it wrote."""
        return list(self.document.get("ops") or ())


class Why(Answer):
    """The last write of a place, what it rests on, and what that rests on."""

    def _found(self) -> str:
        root: Document = self.document.get("root") or {}
        since = f"since tick {root['tick']}" if "tick" in root else "as the run began"
        if "path" not in self.document:
            return f"tick {self.document.get('tick')}{self._of()}"
        return f"{dotted(self.document['path'])} {since}{self._of()}"

    @property
    def moved(self) -> list[Moved]:
        """The writes whose values were looked for."""
        return _moved(self.document)

    @property
    def first_seen(self) -> list[FirstSeen]:
        """Where these values were first seen; a heuristic."""
        return _first_seen(self.document)

    @property
    def root(self) -> Document:
        """The last write; its ``inputs`` are what it rests on."""
        return dict(self.document["root"])

    @property
    def value(self) -> Any:
        """What stands at the place."""
        return self.document.get("value")


class Verification(Answer):
    """Whether a record is what was committed."""

    def _found(self) -> str:
        items: list[Document] = self.document.get("items") or []
        names = [escaped(item["run"]) for item in items if "run" in item]
        return ", ".join([escaped(self.document.get("verdict", "answer")), *names])

    @property
    def verdict(self) -> str:
        """``VERIFIED``, ``INTACT``, ``UNVERIFIABLE``, ``TAMPERED`` and the other words of ``verify``."""
        return str(self.document["verdict"])

    @property
    def lines(self) -> Document:
        """The facts, by the name of their line: ``record``, ``whole``, ``replay``, ``state``, ``signer``, ``witness``,
        ``derived``, ``notes``."""
        return dict(self.document.get("lines") or {})

    @property
    def findings(self) -> list[Document]:
        """What is wrong, each with its code and place."""
        return list(self.document.get("findings") or ())


class Commitments(Answer):
    """What an agent is bound to."""

    def _found(self) -> str:
        return f"{counted(len(self.items), 'commitment')} at tick {self.document.get('at')}{self._of()}"

    @property
    def items(self) -> list[Document]:
        """The commitments, in the order of the document."""
        return list(self.document.get("items") or ())


class RunSummary(Answer):
    """A run, as ``runs`` lists it."""

    def _found(self) -> str:
        return f"{escaped(self.name)}, {counted(self.ticks, 'tick')}"

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.document["name"])

    @property
    def ticks(self) -> int:
        """The number of its transitions."""
        return int(self.document["ticks"])

    @property
    def goal(self) -> str | None:
        """Its goal."""
        goal = self.document.get("goal")
        return str(goal) if goal is not None else None

    @property
    def stage(self) -> int:
        """The stage that it was recorded at."""
        return int(self.document["stage"])

    @property
    def tip(self) -> str:
        """The id of its last record."""
        return str(self.document["tip"])
