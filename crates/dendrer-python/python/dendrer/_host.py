"""The fresh process in which a host function is called: it reads one call from stdin, and writes its result.

Run by path with ``python -I``, so that nothing of the calling process is there but what the call names.
"""

from __future__ import annotations

import __future__

import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, cast

#: The longest result, in characters of JSON.
_SIZE_MAX = 64 << 20

#: By how many seconds the clock of the second call differs, so that a function which reads it gives another result.
_SHIFT = 1_000_003


def _find(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split(".") if name else ():
        found = getattr(found, part)
    return found


def _function(asked: Mapping[str, Any]) -> Callable[..., Any]:
    if "source" not in asked:
        found: Callable[..., Any] = _find(asked["module"], asked["name"])
        return found
    space: dict[str, Any] = {name: _find(*place) for name, place in asked["imports"].items()}
    space["__name__"] = "function"
    flags = __future__.annotations.compiler_flag
    exec(compile(asked["source"], "<function>", "exec", flags, True), space)
    made: Callable[..., Any] = space[asked["name"]]
    return made


def _move_clock(is_again: bool) -> None:
    """Gives the two calls different clocks: 24 hours between their time zones, and other seconds."""
    if hasattr(time, "tzset"):
        os.environ["TZ"] = "AAA-12" if is_again else "AAA12"
        time.tzset()
    if is_again:
        now, now_ns = time.time, time.time_ns
        time.time = lambda: now() + _SHIFT
        time.time_ns = lambda: now_ns() + _SHIFT * 10**9


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _check_keys(value: Any) -> None:
    """Refuses what JSON would write as something else."""
    if isinstance(value, dict):
        for key, inner in cast("dict[object, object]", value).items():
            if not isinstance(key, str):
                raise TypeError(f"a result has text keys, and not {key!r}")
            _check_keys(inner)
    elif isinstance(value, (list, tuple)):
        for inner in cast("list[object]", value):
            _check_keys(inner)


def _reply(asked: Mapping[str, Any]) -> str:
    try:
        value = _function(asked)(*asked["args"])
        written = json.dumps({"value": value}, allow_nan=False)
        _check_keys(value)
        if len(written) > _SIZE_MAX:
            raise ValueError("the result has more than 64 MiB")
        return written
    except BaseException as error:
        return json.dumps({"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()})


def main() -> None:
    """Answers one call."""
    asked = json.load(sys.stdin.buffer)
    # What the function prints goes to stderr, and what it reads is empty.
    answer = os.dup(1)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    sys.path[:] = asked["path"]
    _move_clock(asked["again"])
    written = _reply(asked)
    sys.stdout.flush()
    with os.fdopen(answer, "w", encoding="ascii") as stream:
        stream.write(written)
    # Threads and processes that the function left are not waited for.
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
