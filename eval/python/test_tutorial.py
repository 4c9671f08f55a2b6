"""The tutorial as tests: a run on record is a fixture, and questions of it are assertions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import make_notebook
import pytest

import dendrer

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, and keys of its own."""
    (tmp_path / "work").mkdir()
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path / "work")


def test_the_notebook_shows_what_happens() -> None:
    """The notebook in the repository is the one that its cells make now."""
    kept: dict[str, Any] = json.loads((HERE / "tutorial.ipynb").read_text(encoding="utf-8"))
    assert kept == make_notebook.notebook()


@pytest.fixture
def store() -> dendrer.Store:
    """A store with the run of the tutorial: ida as imported, and ida-desk under the pack."""
    names: dict[str, Any] = {}
    for kind, source in make_notebook.CELLS:
        if kind == "code" and "export" not in source:
            make_notebook.shown(source, names)
    return dendrer.open("shop")


def test_the_limit_was_passed_at_the_second_part(store: dendrer.Store) -> None:
    """And not before, and it was mended later."""
    run = store["ida-desk"]
    onset = run.bisect("within_limit", lift=True).onset
    assert onset is not None
    assert (onset.tick, onset.certainty) == (9, "exact")
    assert run.state_at(onset.tick, path="cost") == 92.5
    assert run.state_at(path="cost") == 38.5
    asked = run[onset.tick - 1].action
    assert asked is not None and asked["params"] == {"bike": "B7", "part": "rotor 160 mm"}


def test_no_tool_failed_behind_the_first_failure(store: dendrer.Store) -> None:
    """A gate for CI: one failure is known, a second one is new."""
    run = store["ida"]
    assert run.bisect(holds="state.counters.tool_errors <= 1").outcome == "never"


def test_two_recordings_of_the_same_run_do_not_differ(store: dendrer.Store) -> None:
    """Recorded again, it is the same by meaning."""
    store.ask("import", "chat.json", run="again", again=True)
    found = store["ida"].diff("again")
    assert found.only("semantic") == []
