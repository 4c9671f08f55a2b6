"""Stores that are missing are made by what records, and a warning says so."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

from dendrer import _ask
from dendrer._errors import DendrerError, NotFound

T = TypeVar("T")

#: For how many seconds a store is waited for that another process is making.
_WAIT = 5.0


def warn(text: str) -> None:
    """Logs a warning under the logger ``dendrer``."""
    # Imported where it is needed: a program that records well pays nothing for it.
    import logging

    logging.getLogger("dendrer").warning("%s", text)


def opened_or_made(open_store: Callable[[], T], path: str | os.PathLike[str], key: str | None) -> T:
    """Opens a store, and makes it first if there is none."""
    until = time.monotonic() + _WAIT
    while True:
        try:
            return open_store()
        except NotFound as error:
            if error.code != "E0103":
                raise
            missing = error
        try:
            made = _make(path, key)
        except DendrerError as error:
            # Another process is making it, or has made it.
            if error.code not in ("E0110", "E0802") or time.monotonic() > until:
                raise error from missing
            time.sleep(0.01)
            continue
        warn(f"no store at {os.fspath(path)}: made {made}")


def _make(path: str | os.PathLike[str], key: str | None) -> str:
    flags: dict[str, Any] = {} if key is None else {"key": key}
    return str(_ask.document("init", [os.fspath(path)], _ask.flags(flags))["path"])


def call(path: str | os.PathLike[str]) -> str:
    """Returns the call that makes a store at a path."""
    named = os.fspath(path)
    return "dendrer.init()" if named in ("", ".") else f"dendrer.init({json.dumps(named, ensure_ascii=False)})"
