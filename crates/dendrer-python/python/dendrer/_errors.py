"""What goes wrong, as exceptions with the codes of the command."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar, cast

from dendrer import _native


class DendrerError(Exception):
    """A problem with the code, the place and the next step, as the command prints it.

    >>> import dendrer
    >>> try:
    ...     dendrer.open("/nowhere")
    ... except dendrer.DendrerError as error:
    ...     print(error.code)
    E0103
    """

    default_code: ClassVar[str] = "E0106"

    def __init__(self, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.data: dict[str, Any] = data if data is not None else {"code": self.default_code, "message": message}

    @property
    def code(self) -> str:
        """The code, which ``dendrer explain CODE`` explains."""
        return str(self.data.get("code", self.default_code))

    @property
    def help(self) -> list[list[str]]:
        """Commands that help, as arguments."""
        return [list(item["argv"]) for item in self.data.get("help", ())]

    def __reduce__(self) -> tuple[type[DendrerError], tuple[str, dict[str, Any]]]:
        return type(self), (str(self), self.data)

    @property
    def _where(self) -> dict[str, Any]:
        found: dict[str, Any] = self.data.get("where") or {}
        return found


class UsageError(DendrerError):
    """What was asked for is not something that dendrer knows."""


class NotFound(DendrerError):
    """There is no such store, run, tick, path or file."""

    default_code = "E0101"


class StoreError(DendrerError):
    """The store cannot be read or written."""

    default_code = "E0801"


class StoreLocked(StoreError):
    """Another process writes, for longer than was waited."""

    default_code = "E0802"


class FormatTooNew(StoreError):
    """A newer version of dendrer wrote it."""

    default_code = "E0803"


class IntegrityError(DendrerError):
    """The record is not what was committed."""

    default_code = "E0301"


class ReplayDivergence(DendrerError):
    """A replay does not make what is on record."""

    default_code = "E0701"

    @property
    def tick(self) -> int | None:
        """The tick at which it parts from the record."""
        tick = self._where.get("tick")
        return int(tick) if tick is not None else None

    @property
    def expected(self) -> Any:
        """What is on record."""
        return self._where.get("recorded")

    @property
    def actual(self) -> Any:
        """What was made."""
        return self._where.get("made")

    @property
    def path(self) -> str | None:
        """The place that differs."""
        path = self._where.get("path")
        return str(path) if path is not None else None


class Refused(DendrerError):
    """The kernel, or the contract of the run, refused it."""

    default_code = "E0404"


class ContextViolation(Refused):
    """The target of an import does not have what a transition was decided on."""

    default_code = "E0412"

    def _listed(self, name: str) -> list[str]:
        text = self._where.get(name)
        return [part.strip() for part in str(text).split("\n") if part.strip()] if text else []

    @property
    def required(self) -> list[str]:
        """What the contract requires."""
        return self._listed("required")

    @property
    def missing(self) -> list[str]:
        """What the target does not have."""
        return self._listed("missing")

    @property
    def mismatched(self) -> list[str]:
        """What the target has otherwise."""
        return self._listed("mismatched")


class ContractViolation(Refused):
    """It would violate what a contract or a commitment enforces."""

    default_code = "E0429"


class ApprovalRequired(Refused):
    """It needs an approver."""

    default_code = "E0422"


class AuthorshipError(Refused):
    """Its author may not write it."""

    default_code = "E0401"


class Stale(Refused):
    """It was decided on a tick that is not the last one."""

    default_code = "E0407"

    @property
    def head(self) -> int | None:
        """The last tick of the run."""
        head = self.data.get("reason", self.data).get("head")
        return int(head) if head is not None else None


class KeyReused(Refused):
    """Its key is that of another step."""

    default_code = "E0433"


class TickMismatch(DendrerError):
    """It claims a tick that is not the next one."""


class ValueNotRecordable(DendrerError):
    """A value has no form in the record."""

    default_code = "E0209"

    @property
    def path(self) -> str:
        """The place, as a JSON pointer below what was to be recorded."""
        return str(self._where.get("path", ""))


class VaultLocked(DendrerError):
    """The exact value is in the vault, and its key is not here."""

    default_code = "E0465"


class StaleCheckpoint(DendrerError):
    """A checkpoint is to follow one that is not the last and was not asked for by its id, or one that was deleted."""

    default_code = "E0407"

    @property
    def heads(self) -> list[str]:
        """The two checkpoints: the one that it was to follow, and the last one; that one alone if it was deleted."""
        return list(self.data.get("heads", ()))


class StaleWriteOwner(Stale):
    """Another writer claimed the thread."""

    is_stale_write_owner_error = True


class PredicateRejected(DendrerError):
    """A predicate cannot be judged here."""

    default_code = "E0509"


class Uncertain(PredicateRejected):
    """The answer depends on a value that is not known: neither yes nor no.

    >>> import dendrer
    >>> store = dendrer.init("docs-uncertain")
    >>> with dendrer.run("a", store="docs-uncertain") as run:
    ...     reply = run.observe("a price", {"price": 400})
    >>> try:
    ...     store["a"].bisect(holds="state.prise <= 600")
    ... except dendrer.Uncertain as error:
    ...     print(error.code, error.reasons)
    E0509 ['...']
    """

    default_code = "E0509"

    def __init__(self, message: str, data: dict[str, Any] | None = None, answer: Any = None) -> None:
        super().__init__(message, data)
        #: The answer as it is: that of the call with ``on_uncertain="return"``. ``None`` if there is none.
        self.answer: Any = answer

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.data, self.answer)

    @property
    def reasons(self) -> list[str]:
        """Why the answer is not known."""
        return [str(one) for one in self.data.get("reasons", ())] or [str(self.data.get("message", self))]


class ImpurePredicate(PredicateRejected):
    """A predicate is not pure."""

    default_code = "E0506"


class NonMonotonePredicate(Uncertain):
    """A predicate recovers, so it has no onset."""

    default_code = "E0504"

    @property
    def ticks(self) -> list[int]:
        """The ticks that show it."""
        found = [self._where.get(name) for name in ("violated", "recovered", "tick")]
        return [int(tick) for tick in found if tick is not None and str(tick).isdigit()]


class StageError(DendrerError):
    """The run would have to be recorded at a higher stage."""

    default_code = "E0604"

    @property
    def needs(self) -> int | None:
        """The stage that is needed."""
        stage = self._where.get("needs")
        return int(stage) if stage is not None else None

    @property
    def has(self) -> int | None:
        """The stage that the run has."""
        stage = self._where.get("has")
        return int(stage) if stage is not None else None


_BY_CODE: dict[str, type[DendrerError]] = {
    "E0401": AuthorshipError,
    "E0403": AuthorshipError,
    "E0408": AuthorshipError,
    "E0427": AuthorshipError,
    "E0407": Stale,
    "E0433": KeyReused,
    "E0412": ContextViolation,
    "E0413": ContextViolation,
    "E0414": ContextViolation,
    "E0411": ContractViolation,
    "E0425": ContractViolation,
    "E0426": ContractViolation,
    "E0428": ContractViolation,
    "E0429": ContractViolation,
    "E0451": ContractViolation,
    "E0452": ContractViolation,
    "E0453": ContractViolation,
    "E0422": ApprovalRequired,
    "E0423": ApprovalRequired,
    "E0465": VaultLocked,
    "E0503": NonMonotonePredicate,
    "E0504": NonMonotonePredicate,
    "E0506": ImpurePredicate,
    "E0509": Uncertain,
    "E0604": StageError,
    "E0802": StoreLocked,
    "E0803": FormatTooNew,
    "E0811": FormatTooNew,
    "E0935": DendrerError,
    "E0936": DendrerError,
    "E0937": ReplayDivergence,
    "E0939": Refused,
    "E0940": Refused,
    "E0943": Refused,
    "E0945": DendrerError,
}

_BY_KIND: list[tuple[str, type[DendrerError]]] = [
    ("E03", IntegrityError),
    ("E04", Refused),
    ("E05", PredicateRejected),
    ("E07", ReplayDivergence),
    ("E08", StoreError),
]

_NOT_FOUND = {
    "E0101", "E0102", "E0103", "E0104", "E0107", "E0108", "E0109", "E0120", "E0121", "E0431", "E0444", "E0445",
    "E0511", "E0515", "E0909",
}  # fmt: skip


def class_of(code: str) -> type[DendrerError]:
    """The class of a code."""
    if code in _NOT_FOUND:
        return NotFound
    found = _BY_CODE.get(code)
    if found is not None:
        return found
    return next((kind for begins, kind in _BY_KIND if code.startswith(begins)), UsageError)


def of(document: str, text: str) -> DendrerError:
    """Makes the exception of a document ``dendrer.error/1``."""
    data: dict[str, Any] = json.loads(document)
    return class_of(str(data["code"]))(text, data)


def uncertain(document: dict[str, Any], problem: tuple[str, str] | None, answer: Any) -> Uncertain:
    """Makes the exception of an answer that is neither yes nor no."""
    if problem is not None:
        data: dict[str, Any] = json.loads(problem[0])
        text = problem[1]
    else:
        message = "the answer depends on a value that is not known"
        data = {"code": "E0509", "kind": "uncertain", "message": message, "where": {}, "notes": [], "help": []}
        text = f"error[E0509]: {message}"
    where: dict[str, Any] = data.get("where") or {}
    why = str(where.get("why", "")).split("\n")
    reasons = [line.strip() for line in why if line.strip()] or _unknown_in(document)
    kind = class_of(str(data["code"]))
    made = kind if issubclass(kind, Uncertain) else Uncertain
    if problem is None and reasons:
        text += "".join(f"\n  | why      {reason}" for reason in reasons)
    return made(text, {**data, "reasons": reasons}, answer)


def _unknown_in(document: dict[str, Any]) -> list[str]:
    """The reasons of a document for values that are not known, in words."""
    found: list[str] = []
    for name in ("unknown", "unjudged", "uncertain", "unclear", "reasons", "hidden"):
        listed: Any = document.get(name)
        # The places of a comparison are listed for each side.
        sides = cast("dict[str, Any]", listed).values() if isinstance(listed, dict) else (listed,)
        for side in sides:
            if isinstance(side, list):
                found.extend(_reason(name, one) for one in cast("Iterable[Any]", side))
            elif isinstance(side, str):
                found.append(side)
    return list(dict.fromkeys(found))


def _reason(name: str, one: Any) -> str:
    """An item of a list of reasons, in words."""
    if name == "hidden" and isinstance(one, int):
        return f"the change of tick {one} was erased or withheld"
    if not isinstance(one, dict):
        return one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)
    item = cast("dict[str, Any]", one)
    if "place" in item and "code" in item and "tick" in item:
        words = _native.unknown_words(str(item["place"]), str(item["code"]), int(item["tick"]))
        if words is not None:
            return words
    why = item.get("why")
    if not isinstance(why, str):
        return json.dumps(item, ensure_ascii=False)
    return f"{item['run']}: {why}" if isinstance(item.get("run"), str) else why


def without_surrogates(text: str) -> str:
    """A text as it can be recorded. Lone surrogates are escaped, as in a traceback."""
    return text.encode("utf-8", "backslashreplace").decode()


def words(error: BaseException) -> tuple[str, str]:
    """The class of an exception, and its text if it can be had."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return without_surrogates(type(error).__name__), without_surrogates(text)


def not_an_author(author: object) -> AuthorshipError:
    """Makes the exception of an author that a method does not speak for."""
    named = repr(author) if isinstance(author, str) else f"an object of type {type(author).__name__}"
    message = f'the author of a step is "agent" or "user", and not {named}'
    return AuthorshipError(f"error[E0408]: {message}", {"code": "E0408", "message": message})


def not_recordable(path: str, reason: str, what: str) -> ValueNotRecordable:
    """Makes the exception of a value without a form."""
    message = f"{what} cannot be recorded"
    data: dict[str, Any] = {"code": "E0209", "kind": reason, "message": message, "where": {"path": path}, "notes": [], "help": []}
    return ValueNotRecordable(f"error[E0209]: {message}\n  | path     {path or '/'}", data)


def of_reply(document: dict[str, Any]) -> DendrerError:
    """Makes the exception of a reply that is no transition."""
    reason: dict[str, Any] = document.get("reason") or {}
    code = str(reason.get("code", "E0404"))
    # A member with a value that no author may write is no attempt to speak for another author.
    is_own = code == "E0427" and not _is_forged(document)
    kind = Refused if is_own else class_of(code)
    return kind(f"error[{code}]: {reason.get('message', 'it was refused')}", {**document, "code": code})


def _is_forged(document: dict[str, Any]) -> bool:
    """Whether the kernel noted that an author tried to speak for another one."""
    noted: list[dict[str, Any]] = document.get("noted") or []
    kinds = [str(anomaly.get("kind")) for one in noted for anomaly in one.get("anomalies") or ()]
    return any(kind.startswith("forged_") for kind in kinds)


def stale_checkpoint(document: str, text: str, heads: list[str]) -> StaleCheckpoint:
    """Makes the exception of a checkpoint whose parent is not the last one."""
    return StaleCheckpoint(text, {**json.loads(document), "heads": heads})


def superseded(document: str, text: str, heads: list[str]) -> StaleWriteOwner:
    """Makes the exception of a writer whose thread was claimed by another one."""
    return StaleWriteOwner(text, {**json.loads(document), "heads": heads})
