"""Who may write: without the key of the log and a writer's secret nothing is recorded, and one error says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dendrer
import pytest
from dendrer import TraceWriter
from dendrer.langgraph import DendrerSaver
from helpers import command, is_clean, ticks


def run() -> None:
    with dendrer.run("other") as recording:
        recording.observe("a")


def again() -> None:
    with dendrer.run("r", resume=True) as recording:
        recording.observe("a")


def trace() -> None:
    with TraceWriter("paper", "append-only") as writer:
        writer.emit({"transition_type": "observation.add", "tick": writer.next_tick(), "payload": {"text": "hi"}})


def saver() -> None:
    with DendrerSaver("."):
        pass


def label() -> None:
    dendrer.open(".").ask("label", "l", "r@1")


def log() -> bytes:
    return Path(".dendrer/segments/00000000.seg").read_bytes()


@pytest.mark.parametrize("door", [run, again, trace, saver, label])
def test_without_key_and_secret_one_error_says_so(
    door: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dendrer.run("r") as recording:
        recording.observe("a")
    before = log()
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "away"))
    with pytest.raises(dendrer.StoreError) as error:
        door()
    assert error.value.code == "E0804" and "no writer's secret" in str(error.value)
    assert log() == before, "nothing was written"


def test_a_file_of_a_writer_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dendrer.run("r") as recording:
        recording.observe("a")
    assert command("key", "writer", "--out=w.key").returncode == 0
    signed = Path(".dendrer/checkpoint").read_bytes()
    with monkeypatch.context() as away:
        for name in ("HOME", "XDG_CONFIG_HOME"):
            away.setenv(name, str(tmp_path / "away"))
        with dendrer.run("r", resume=True, key="w.key") as recording:
            assert recording.observe("b").tick == 2
    assert Path(".dendrer/checkpoint").read_bytes() == signed, "a writer signs nothing"
    with dendrer.run("r", resume=True) as recording:
        recording.observe("c")
    assert ticks("r") == [1, 2, 3] and Path(".dendrer/checkpoint").read_bytes() != signed
    is_clean()
