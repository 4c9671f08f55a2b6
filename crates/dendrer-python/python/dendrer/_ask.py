"""Asks the verbs of the command, in this process. What comes back are their documents."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from dendrer import _errors, _native

Document = dict[str, Any]

T = TypeVar("T")

#: Verbs end with this where the answer is neither yes nor no.
_UNKNOWN = 6

#: Verbs end with these where the answer is no, or not known; the document says so.
_ANSWERS = {0, 1, 4, 5, 6, 7}


def flags(given: Mapping[str, Any]) -> list[str]:
    """Turns keywords into the flags of a verb. ``None`` and ``False`` leave one out."""
    words: list[str] = []
    for name, value in given.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        for item in _items(value):
            words.append(flag if item is True else f"{flag}={item}")
    return words


def _items(value: Any) -> Iterable[Any]:
    if value is None or value is False:
        return ()
    if isinstance(value, (list, tuple, set, frozenset)):
        return cast("Iterable[Any]", value)
    return (value,)


def run(verb: str, given: Iterable[str] = (), options: Iterable[str] = ()) -> bytes:
    """Runs a verb that writes no document, and returns what it would print. What is given may begin with a hyphen."""
    return _run(verb, given, options)[1]


def _run(verb: str, given: Iterable[str], options: Iterable[str]) -> tuple[int, bytes]:
    words = ["dendrer", *verb.split(), *options, "--quiet", "--progress=never", "--color=never", "--", *given]
    try:
        code, answer, problem = _native.ask(words)
    except UnicodeEncodeError:
        raise _errors.UsageError("an argument is text without lone surrogates") from None
    if problem is not None:
        raise _errors.of(*problem)
    if code not in _ANSWERS:
        raise _errors.DendrerError(f"{verb} ended with {code}")
    return code, answer


def document(verb: str, given: Iterable[str] = (), options: Iterable[str] = ()) -> Document:
    """Runs a verb, and returns its document."""
    return answered(verb, given, options)[0]


def answered(verb: str, given: Iterable[str], options: Iterable[str]) -> tuple[Document, Unknown | None]:
    """Runs a verb, and returns its document, and why the answer is not known."""
    code, answer = _run(verb, given, [*options, "--json"])
    found: Document = json.loads(answer)
    return found, Unknown(found, None) if code == _UNKNOWN else None


def question(name: str, members: Mapping[str, Any]) -> Document:
    """Makes the document of a question. ``None`` and ``False`` leave a member out."""
    kept: Document = {}
    for key, value in members.items():
        if value is not None and value is not False:
            kept[key.rstrip("_")] = _plain(value)
    return {**kept, "schema": f"dendrer.{name}-question/1"}


def listed(value: Any) -> Any:
    """Returns the list of a member that repeats: one text is the only one of its list."""
    return [value] if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, set, frozenset)):
        return list(cast("Iterable[Any]", value))
    return value


def asked(native: _native.NativeStore, question: Mapping[str, Any]) -> tuple[Document, Unknown | None]:
    """Asks a question, and returns the document of the answer, and why it is not known."""
    code, answer, problem = native.ask(as_json("", dict(question)))
    if code not in _ANSWERS:
        raise _errors.DendrerError(f"the question ended with {code}")
    found: Document = json.loads(answer)
    return found, Unknown(found, problem) if code == _UNKNOWN else None


class Unknown(NamedTuple):
    """An answer that is neither yes nor no."""

    document: Document
    problem: tuple[str, str] | None

    def error(self, answer: Any) -> _errors.Uncertain:
        """Returns the exception, which has the answer."""
        return _errors.uncertain(self.document, self.problem, answer)


def known(answer: T, unknown: Unknown | None, on_uncertain: object) -> T:
    """Returns an answer; raises `Uncertain` if it is neither yes nor no, and the caller did not ask to have it all the same."""
    if on_uncertain not in ("raise", "return"):
        raise _errors.UsageError(f'on_uncertain is "raise" or "return", and not {on_uncertain!r}')
    if unknown is not None and on_uncertain == "raise":
        raise unknown.error(answer)
    return answer


class Source(NamedTuple):
    """Where an answer comes from: a verb with its arguments and flags, asked of a store or a bundle."""

    place: str
    is_store: bool
    key: str | None
    verb: str
    given: tuple[str, ...]
    options: tuple[str, ...]

    def text(self, width: int) -> str:
        """Asks the verb once more, and returns what it prints on a terminal of some columns, without colour."""
        if not isinstance(cast(object, width), int) or isinstance(width, bool) or width < 1:
            raise _errors.UsageError("a width is a number of columns")
        words = ["dendrer", self.verb, *self.options, *self._where, f"--width={width}", "--progress=never", "--color=never"]
        code, answer, problem = _native.ask([*words, "--no-pager", "--", *self.given], True)
        if problem is not None and (code not in _ANSWERS or not answer):
            raise _errors.of(*problem)
        lines = answer.decode().rstrip("\n")
        return lines if problem is None else f"{lines}\n{problem[1]}"

    @property
    def _where(self) -> list[str]:
        """Names the store as a person here would: not at all where the program finds it by itself."""
        where = [] if self.key is None else [f"--key={self.key}"]
        outer, name = os.path.split(self.place)
        outer = outer if name == ".dendrer" else self.place
        here = os.getcwd()
        if not self.is_store or outer == here and not os.environ.get("DENDRER_STORE"):
            return where
        inside = os.path.relpath(outer, here)
        return [f"--store={outer if inside.startswith(os.pardir) else inside}", *where]




def as_json(place: str, value: Any) -> str:
    """Writes a value; one that is no JSON is refused with its place."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _errors.not_recordable(place, "value_not_recordable", f"a value that is no JSON ({error})") from None
