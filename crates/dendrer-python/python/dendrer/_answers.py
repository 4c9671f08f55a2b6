"""Answers: each is frozen, compares by what it says, and has the document of the command."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

Document = dict[str, Any]


class Answer:
    """What a verb answered. Two answers are equal if they say the same."""

    __slots__ = ("document",)
    document: Document

    def __init__(self, document: Document) -> None:
        object.__setattr__(self, "document", document)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an answer does not change: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an answer does not change: {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Answer) and self.document == other.document

    def __hash__(self) -> int:
        return hash((type(self), str(self.document)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.document,)

    def to_dict(self) -> Document:
        """The document, as the verb prints it under ``--json``."""
        return copy.deepcopy(self.document)


class Onset(NamedTuple):
    """The first tick at which something is violated.

    >>> Onset(22, "exact").tick
    22
    """

    tick: int
    certainty: str


class Bisect(Answer):
    """Where something first went wrong."""

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
        """What follows from the onset, link by link; the document says how certain that is."""
        chain: Document = self.document.get("chain") or {}
        return list(chain.get("items") or ())

    @property
    def suggestions(self) -> list[list[str]]:
        """Commands that are worth trying, as arguments."""
        found = self.document.get("suggestion")
        return [list(found["argv"])] if found else []


class Diff(Answer):
    """How two runs differ."""

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

    @property
    def verdict(self) -> str:
        """``VERIFIED``, ``INTACT``, ``UNVERIFIABLE``, ``TAMPERED`` and the other words of ``verify``."""
        return str(self.document["verdict"])

    @property
    def findings(self) -> list[Document]:
        """What is wrong, each with its code and place."""
        return list(self.document.get("findings") or ())


class RunSummary(Answer):
    """A run, as ``runs`` lists it."""

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
