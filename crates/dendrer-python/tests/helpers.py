"""What the tests share: the command line, and children of Python."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import dendrer

#: The command that came with the package.
DENDRER: list[str] = (
    [str(Path(sys.executable).with_name("dendrer"))]
    if Path(sys.executable).with_name("dendrer").exists()
    else [sys.executable, "-m", "dendrer"]
)


def command(*args: str, input: str | None = None, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    """Runs the command, and returns what it wrote and how it ended."""
    return subprocess.run(
        [*DENDRER, *args], input=input, capture_output=True, encoding="utf-8", timeout=timeout, check=False
    )


def document(*args: str, exits: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """The document that a verb prints."""
    ran = command(*args, "--json")
    assert ran.returncode in exits, (args, ran.returncode, ran.stderr)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def transitions(run: str, store: str | os.PathLike[str] = ".") -> list[dict[str, Any]]:
    """What is on record, in order: each with tick, type, agent and content."""
    found: list[dict[str, Any]] = document(
        "log", run, "--full", "--limit=0", f"--store={os.fspath(store)}"
    )["items"]
    return [item for item in found if item["kind"] == "transition"]


def ticks(run: str, store: str | os.PathLike[str] = ".") -> list[int]:
    """The ticks that are on record."""
    return [item["tick"] for item in transitions(run, store)]


def is_clean(store: str | os.PathLike[str] = ".", *, by_command: bool = False) -> None:
    """Fails if the record is not what was committed. A process of its own takes a moment, so that the verb is mostly asked here."""
    if by_command:
        ran = command("verify", f"--store={os.fspath(store)}")
        assert ran.returncode == 0, ran.stdout + ran.stderr
    else:
        found = dendrer.open(store).ask("verify")
        assert found["verdict"] in ("VERIFIED", "INTACT"), found


def python(code: str, *args: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a program of Python in a process of its own, and ends it with its children if it takes too long."""
    started = subprocess.Popen(
        [sys.executable, "-c", code, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        told, warned = started.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        told, warned = started.communicate()
        raise AssertionError(f"not done within {timeout} s\n{told}{warned}") from None
    return subprocess.CompletedProcess(started.args, started.returncode, told, warned)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same one: of one kind, NaN being itself. 1.0 and 1 are one number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one == other or (math.isnan(one) and math.isnan(other))
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
