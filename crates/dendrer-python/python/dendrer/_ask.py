"""Asks the verbs of the command, in this process. What comes back are their documents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from dendrer import _errors, _native

Document = dict[str, Any]

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
    words = ["dendrer", *verb.split(), *options, "--quiet", "--progress=never", "--color=never", "--", *given]
    try:
        code, answer, problem = _native.ask(words)
    except UnicodeEncodeError:
        raise _errors.UsageError("an argument is text without lone surrogates") from None
    if problem is not None:
        raise _errors.of(*problem)
    if code not in _ANSWERS:
        raise _errors.DendrerError(f"{verb} ended with {code}")
    return answer


def document(verb: str, given: Iterable[str] = (), options: Iterable[str] = ()) -> Document:
    """Runs a verb, and returns its document."""
    found: Document = json.loads(run(verb, given, [*options, "--json"]))
    return found


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


def asked(native: _native.NativeStore, question: Mapping[str, Any]) -> Document:
    """Asks a question, and returns the document of the answer."""
    code, answer = native.ask(_json("", dict(question)))
    if code not in _ANSWERS:
        raise _errors.DendrerError(f"the question ended with {code}")
    found: Document = json.loads(answer)
    return found


def _json(place: str, value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _errors.not_recordable(place, "value_not_recordable", f"a value that is no JSON ({error})") from None
