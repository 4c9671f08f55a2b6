"""The types of the package are right for mypy --strict and for pyright, with nothing unknown."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import dendrer
import pytest

PACKAGE = Path(dendrer.__file__).parent

#: What a user writes. Every line is right, and of the type that is said.
RIGHT = '''
from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typing_extensions import assert_type

import dendrer
from dendrer import aio


@dendrer.tool(effect="read")
def get_price(city: str, *, nights: int = 1) -> float:
    return 128.5 * nights


@dendrer.tool()
async def get_later(city: str) -> float:
    return 128.5


@dendrer.step("plan.update")
def make_plan(price: float) -> str:
    return "stay" if price < 200 else "leave"


@dendrer.agent("researcher")
def research() -> str:
    return make_plan(get_price("Bern", nights=2))


def record() -> None:
    with dendrer.run("trip", store=Path("trip"), goal="g", state={"n": 0}, on_error="raise", sync=10, author="runtime") as run:
        assert_type(run, dendrer.Recording)
        seen = run.observe("a price", {"hotel.price": 480.0}, confidence=0.9, notes="n", base=0, key="k", own=[1])
        assert_type(seen, dendrer.Reply)
        assert_type(seen.what, str)
        assert_type(seen.tick, "int | None")
        assert_type(bool(seen), bool)
        run.plan("p", author="user", links=[])
        assert_type(run.user("u", {"a": 1}), dendrer.Reply)
        assert_type(run.name, str)
        run.remember("m", delta=[{"set": "/a", "value": 1}])
        run.complete("c")
        run.flag("kind", "text")
        booked = run.propose("action.request", action={"tool": "book"}, depends_on=["hotel.price", seen])
        assert_type(booked, dendrer.Decision)
        if booked.allowed:
            assert_type(run.result(booked, {"booking": 17}, status="ok"), dendrer.Reply)
        run.commit({"type": "plan.update"})
        run.step("llm_reply", "m", output="hi")
        assert_type(run.flush(), int)
    assert_type(dendrer.current(), "dendrer.Recording | None")


def read() -> None:
    store = dendrer.open("trip")
    assert_type(store, dendrer.Store)
    assert_type(store.names(), "list[str]")
    assert_type(store.runs(where="ticks > 1"), "dendrer.Answers[dendrer.RunSummary]")
    r = store["trip"]
    assert_type(r, dendrer.Run)
    assert_type(r[1], dendrer.Transition)
    assert_type(r["tip"], dendrer.Transition)
    assert_type(r[1:3], "dendrer.Answers[dendrer.Transition]")
    assert_type([t.tick for t in r], "list[int]")
    assert_type(r.log(type=("a", "b"), from_=1), Iterator[dendrer.Transition])
    assert_type(r[1].changes, "tuple[dendrer.Change, ...]")
    assert_type(r[1].confidence, "float | None")
    assert_type(r[1].intent, "dict[str, Any] | None")
    found = r.bisect(holds="state.n < 9", lift=True, contributors=True)
    assert_type(found, dendrer.Bisect)
    assert_type(found.onset, "dendrer.Onset | None")
    if found.onset is not None:
        assert_type(found.onset.tick, int)
    assert_type(found.first_seen, "list[dendrer.FirstSeen]")
    assert_type(found.moved, "list[dendrer.Moved]")
    assert_type(found.text(60), str)
    assert_type(r.bisect("kernel.policy_compliant", on_uncertain="return"), dendrer.Bisect)
    assert_type(dendrer.__version__, str)
    assert_type(r.diff("b", ignore=["metrics"]), dendrer.Diff)
    assert_type(r.backtrack("n"), "dendrer.Answers[dendrer.Write]")
    assert_type(r.why(1, "n"), dendrer.Why)
    assert_type(r.verify(replay=True).verdict, str)
    assert_type(r.fork(1, name="f", reason="r", set={"n": 1}), dendrer.Run)
    assert_type(r.export(), bytes)
    assert_type(r.export("a.dnd"), Path)
    assert_type(dendrer.init("x"), dendrer.Store)


def errors() -> None:
    try:
        record()
    except dendrer.Stale as error:
        assert_type(error.head, "int | None")
        assert_type(error.code, str)
    except dendrer.Uncertain as error:
        assert_type(error.reasons, "list[str]")
    except dendrer.ValueNotRecordable as error:
        assert_type(error.path, str)
    except dendrer.DendrerError as error:
        assert_type(error.data, "dict[str, Any]")
        assert_type(error.help, "list[list[str]]")


def paper() -> None:
    trace = dendrer.TraceWriter("run", "append-only", store="trip")
    assert_type(trace.emit({"transition_type": "observation.add", "tick": trace.next_tick()}), int)
    trace.close()


async def later() -> None:
    async with aio.run("later", store="trip") as run:
        assert_type(await run.observe("x", {"a": 1}, confidence=0.5), dendrer.Reply)
        assert_type(await run.propose(action={"tool": "t"}), dendrer.Decision)
    assert_type(await (await aio.open("trip")).names(), "list[str]")
    assert_type(await get_later("Bern"), float)


assert_type(get_price("Bern"), float)
assert_type(research(), str)
asyncio.run(later())
'''

#: What a user must be told before it runs: each of these lines is wrong.
WRONG = '''
import dendrer

run = dendrer.run("a", on_error="ignore")
dendrer.run("a", author="kernel")
dendrer.run("a", nosuch=1)
dendrer.run("a", resume="always")
run.observe("x", author="runtime")
dendrer.run()
dendrer.tool(effect="writes")
run.observe()
run.observe("x", {1: 2})
run.observe("x", confidence="high")
run.observe("x", base="1")
run.propose(action="book")
run.policy_decision("allow")
run.result("not a decision", 1)
dendrer.open(5)
dendrer.open("x")["a"][1.5]
dendrer.open("x")["a"][1].tick = 3
dendrer.open("x")["a"].bisect(holds="x").onset.tick
dendrer.Onset(1, "exact").tick = 2
dendrer.tool()(lambda n: n)(1, 2, 3).nosuch + dendrer.nothing
'''

Found = dict[str, list[tuple[int, str]]]


def lines_of(text: str) -> set[int]:
    """The numbers of the lines of a file that must be wrong."""
    return {number for number, line in enumerate(text.splitlines(), 1) if line and not line.startswith("import")}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both files, and a copy of the package: checkers pass over what is installed."""
    made = tmp_path_factory.mktemp("typing")
    (made / "right.py").write_text(RIGHT, encoding="utf-8")
    (made / "wrong.py").write_text(WRONG, encoding="utf-8")
    (made / "dendrer").mkdir()
    for file in [*PACKAGE.glob("*.py"), *PACKAGE.glob("*.pyi")]:
        (made / "dendrer" / file.name).write_bytes(file.read_bytes())
    return made


@pytest.fixture(scope="module")
def of_mypy(files: Path) -> Found:
    """What mypy --strict finds, by file."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("needs mypy")
    words = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir=.mypy", "right.py", "wrong.py", "dendrer"]
    ran = subprocess.run(words, cwd=files, capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert ran.stderr == ""
    found: Found = {}
    for name, line, text in re.findall(r"^(.+?):(\d+): error: (.*)", ran.stdout, re.MULTILINE):
        found.setdefault(name, []).append((int(line), text))
    return found


@pytest.fixture(scope="module")
def of_pyright(files: Path) -> Found:
    """What pyright finds under strict, by file. Without the network it may not be there."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("needs pyright")
    (files / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    words = [sys.executable, "-m", "pyright", "--outputjson", "--project", ".", "--pythonpath", sys.executable]
    ran = subprocess.run(words, cwd=files, capture_output=True, encoding="utf-8", timeout=120, check=False)
    try:
        told = json.loads(ran.stdout)
    except json.JSONDecodeError:
        pytest.skip(f"pyright does not run here: {ran.stderr[-200:]}")
    assert told["summary"]["filesAnalyzed"] > 10
    found: Found = {}
    for item in told["generalDiagnostics"]:
        if item["severity"] in ("error", "warning"):
            name = Path(item["file"]).resolve().relative_to(files.resolve()).as_posix()
            text = f"{item['message'].splitlines()[0]} [{item.get('rule')}]"
            found.setdefault(name, []).append((item["range"]["start"]["line"] + 1, text))
    return found


def test_the_package_says_that_it_has_types() -> None:
    """`py.typed` and the stub of the compiled module are in the wheel."""
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_native.pyi").exists()


@pytest.mark.parametrize("checker", ["of_mypy", "of_pyright"])
def test_what_a_user_writes_is_taken(checker: str, request: pytest.FixtureRequest) -> None:
    """Every public name has the type that the page says, and none is unknown."""
    found: Found = request.getfixturevalue(checker)
    assert found.get("right.py", []) == []


@pytest.mark.parametrize("checker", ["of_mypy", "of_pyright"])
def test_what_is_wrong_is_found(checker: str, request: pytest.FixtureRequest) -> None:
    """A wrong word, a wrong type, a missing method: each is told at its line."""
    found: Found = request.getfixturevalue(checker)
    missed = lines_of(WRONG) - {line for line, _ in found.get("wrong.py", [])}
    assert [WRONG.splitlines()[line - 1] for line in sorted(missed)] == []


@pytest.mark.parametrize("checker", ["of_mypy", "of_pyright"])
def test_the_package_is_clean(checker: str, request: pytest.FixtureRequest) -> None:
    """Nothing is found in the package itself, under strict."""
    found: Found = request.getfixturevalue(checker)
    # Modules of the package use one another's private names; pyproject.toml says so.
    told = {name: [one for one in all if "reportPrivateUsage" not in one[1]] for name, all in found.items()}
    assert {name: left for name, left in told.items() if name.startswith("dendrer/") and left} == {}
