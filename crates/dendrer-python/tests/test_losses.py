"""What a program did is on record under its own run, or the run has a mark that says what is missing."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import dendrer
import pytest
from dendrer import TraceWriter, aio
from helpers import is_clean, python, ticks, transitions

has_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

#: As `os.listdir` returns the name of a file that is not UTF-8.
FILE = "no file \udcff.txt"
ESCAPED = "no file \\udcff.txt"


def noted(run: str, kind: str) -> list[dict[str, Any]]:
    """The anomalies of a kind that are on record."""
    items = [anomaly for item in transitions(run) for anomaly in item["content"].get("anomalies", ())]
    return [anomaly for anomaly in items if anomaly["kind"] == kind]


# -- child processes ------------------------------------------------------------------------------------------------

WORKERS = """
import dendrer, multiprocessing, os, signal, sys
from concurrent.futures import ProcessPoolExecutor

held = None

def keep(run):
    global held
    held = run

def record(n):
    assert held.observe("worker", n=n).what == "committed"

def steps(run):
    for n in range(20):
        run.observe("worker", n=n)

def killed(run):
    steps(run)
    run.observe("lost", {"a[": 1})
    os.kill(os.getpid(), signal.SIGKILL)

@dendrer.tool()
def pay(n):
    return n

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with dendrer.run("process", sync=100) as run:
        run.observe("before")
        child = context.Process(target=steps, args=(run,))
        child.start()
        child.join()
    with dendrer.run("killed", sync=100) as run:
        child = context.Process(target=killed, args=(run,))
        child.start()
        child.join()
    with dendrer.run("executor", sync=100) as run:
        with ProcessPoolExecutor(2, mp_context=context, initializer=keep, initargs=(run,)) as pool:
            list(pool.map(record, range(20)))
    with dendrer.run("pool", sync=100) as run:
        with context.Pool(2, initializer=keep, initargs=(run,)) as pool:
            pool.map(record, range(20))
    if sys.argv[1] == "fork":
        with dendrer.run("inherited", sync=100):
            with context.Pool(2) as pool:
                pool.map(pay, range(20))
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_keep_their_steps_however_they_end(method: str) -> None:
    """They return, are ended by their pool, or are killed: with `sync=100` every step is on record."""
    import multiprocessing

    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    dendrer.init()
    Path("workers.py").write_text(WORKERS, encoding="utf-8")
    ran = subprocess.run([sys.executable, "workers.py", method], capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert ran.returncode == 0 and "Traceback" not in ran.stderr, ran.stderr
    assert [gap["lines"] for gap in noted("killed", "recording_gap")] == [1]
    counts = {"process": 21, "killed": 21, "executor": 20, "pool": 20, **({"inherited": 40} if method == "fork" else {})}
    assert {name: len(ticks(name)) for name in dendrer.open().names()} == counts
    for name in ("executor", "pool"):
        assert sorted(item["content"]["intent"]["n"] for item in transitions(name)) == list(range(20))
    is_clean()


OWN = """
import dendrer, multiprocessing

run = None
if __name__ == "__mp_main__":
    run = dendrer.run("own", sync=100, resume="auto")

def work():
    run.observe("step")

if __name__ == "__main__":
    child = multiprocessing.get_context("forkserver").Process(target=work)
    child.start()
    child.join()
"""


@has_fork
def test_a_run_that_a_worker_opens_while_it_loads_is_closed() -> None:
    """The worker drops what it registered for its end before it begins its work."""
    dendrer.init()
    Path("own.py").write_text(OWN, encoding="utf-8")
    ran = subprocess.run([sys.executable, "own.py"], capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ticks("own") == [1]
    assert dendrer.open().ask("verify")["verdict"] in ("VERIFIED", "INTACT")


def test_a_pickled_recording_writes_each_step_out() -> None:
    """Without a flush, another reader has it."""
    dendrer.init()
    with dendrer.run("a", sync=100) as run:
        copy: dendrer.Recording = pickle.loads(pickle.dumps(run))
        again: dendrer.Recording = pickle.loads(pickle.dumps(copy))
        for number, one in enumerate((copy, again), 1):
            one.observe("x")
            assert len(dendrer.open()["a"]) == number
        copy.close()
        again.close()


# -- the end of a run -----------------------------------------------------------------------------------------------

CHILD_LEAVES = """
import dendrer, os, sys

def leave(how):
    if how == "exit": sys.exit(int(sys.argv[2]))
    if how == "raise": raise ValueError("of the child")

with dendrer.run("r") as run:
    run.complete("shipped")
    if os.fork() == 0:
        sys.stderr.close()
        leave(sys.argv[1])
    os.wait()
with dendrer.TraceWriter("w") as trace:
    trace.emit({"transition_type": "goal.complete"})
    if os.fork() == 0:
        sys.stderr.close()
        leave(sys.argv[1])
    os.wait()
"""


@has_fork
@pytest.mark.parametrize("how", [("exit", "0"), ("exit", "3"), ("raise", "")], ids=" ".join)
def test_a_child_never_ends_the_run_of_its_parent(how: tuple[str, str]) -> None:
    """Its exit and its exceptions leave the run as it was."""
    dendrer.init()
    ran = python(CHILD_LEAVES, *how, timeout=20)
    assert ran.returncode == 0, ran.stderr
    assert [item["type"] for item in transitions("r")] == ["goal.complete"]
    assert [item["type"] for item in transitions("w")] == ["goal.complete"]


@pytest.mark.parametrize("code", [0, None, False])
def test_an_exit_without_a_failure_is_no_anomaly(code: Any) -> None:
    """`sys.exit(0)` ends a program that did what it should."""
    with pytest.raises(SystemExit), dendrer.run("r") as run:
        run.complete("done")
        sys.exit(code)

    async def main() -> None:
        async with aio.run("s"):
            sys.exit(code)

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert ticks("r") == [1] and noted("s", "ended_by") == []


@pytest.mark.parametrize("code", [1, True, "bad", 0.0, ""], ids=repr)
def test_an_exit_with_a_failure_is_an_anomaly(code: Any) -> None:
    """As the shell sees it: a text and a float are failures, too."""
    with pytest.raises(SystemExit), dendrer.run("r"):
        sys.exit(code)
    (ended,) = noted("r", "ended_by")
    assert (ended["type"], ended["message"]) == ("SystemExit", str(code))


def test_a_writer_that_an_exception_ends_says_so() -> None:
    """Both writers, as both runs."""
    with pytest.raises(ValueError), TraceWriter("a") as trace:
        trace.emit({"transition_type": "plan.update"})
        raise ValueError("mine")

    async def main() -> None:
        async with aio.TraceWriter("b") as later:
            await later.emit({"transition_type": "plan.update"})
            raise ValueError("mine")

    with pytest.raises(ValueError):
        asyncio.run(main())
    with TraceWriter("c") as trace:
        trace.emit({"transition_type": "plan.update"})
    for name in ("a", "b"):
        assert noted(name, "ended_by") == [{"kind": "ended_by", "type": "ValueError", "message": "mine"}]
    assert noted("c", "ended_by") == []


# -- texts that are no Unicode --------------------------------------------------------------------------------------


def in_run() -> None:
    """Raises in a `with`."""
    with dendrer.run("a", on_error="raise"):
        raise ValueError(FILE)


def in_writer() -> None:
    """Raises in a writer."""
    with TraceWriter("a", on_error="raise"):
        raise ValueError(FILE)


async def in_aio_run() -> None:
    """Raises in an `async with`."""
    async with aio.run("a", on_error="raise"):
        raise ValueError(FILE)


async def in_aio_writer() -> None:
    """Raises in an asynchronous writer."""
    async with aio.TraceWriter("a", on_error="raise"):
        raise ValueError(FILE)


@pytest.mark.parametrize(
    "door", [in_run, in_writer, lambda: asyncio.run(in_aio_run()), lambda: asyncio.run(in_aio_writer())]
)
def test_an_exception_with_a_lone_surrogate_ends_a_run(door: Callable[[], None]) -> None:
    """It is the exception that the caller gets, and its text is on record, escaped."""
    with pytest.raises(ValueError) as caught:
        door()
    assert str(caught.value) == FILE
    assert [ended["message"] for ended in noted("a", "ended_by")] == [ESCAPED]


def test_tools_and_steps_that_raise_a_lone_surrogate() -> None:
    """The text is escaped as in a traceback."""

    @dendrer.tool()
    def read() -> None:
        raise ValueError(FILE)

    @dendrer.step()
    def think() -> None:
        raise ValueError(FILE)

    @dendrer.tool()
    async def later() -> None:
        raise ValueError(FILE)

    calls: list[Callable[[], None]] = [read, think, lambda: asyncio.run(later())]
    with dendrer.run("a", on_error="raise"):
        for call in calls:
            with pytest.raises(ValueError):
                call()
    contents = [item["content"] for item in transitions("a")]
    errors = [(content.get("result") or content.get("intent") or {}).get("error") for content in contents]
    assert [error["message"] for error in errors if error] == [ESCAPED] * 3


def test_a_loss_whose_text_has_a_lone_surrogate_is_noted() -> None:
    """The name of the function is in the text of the gap."""

    def read() -> None:
        pass

    read.__name__ = "f\udcff"
    with dendrer.run("a"), dendrer.run("b"):
        contextvars.Context().run(dendrer.tool(name="read")(read))
    for name in ("a", "b"):
        (gap,) = noted(name, "recording_gap")
        assert "f\\udcff" in gap["text"]


GRAPH = """graph review
e1 model.call(question) -> rec frontier[1]
n1 score(e1) pure
replay(graph, frontier) == output required
"""

#: A module that a fresh process can import.
SCORE = r"""
def score(answer):
    raise ValueError("no file \udcff.txt")
"""


@pytest.mark.parametrize("place", ["effect", "function"])
def test_a_graph_whose_code_raises_a_lone_surrogate(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the text of the exception, from this process and from a fresh one."""

    def ask(question: str) -> Any:
        if place == "effect":
            raise ValueError(FILE)
        return 1

    Path("scores_of_surrogates.py").write_text(SCORE, encoding="utf-8")
    monkeypatch.syspath_prepend(os.getcwd())
    functions = {"score": importlib.import_module("scores_of_surrogates").score}
    store = dendrer.init()
    pack = {"name": "review", "version": "v1", "tools": {"model.call": {"effect": "read"}}}
    with pytest.raises(dendrer.DendrerError) as caught:
        store.graph_run(GRAPH, pack, input={"question": "?"}, effects={"model.call": ask}, functions=functions)
    # The text of an error escapes a backslash once more.
    assert f"ValueError: {ESCAPED}" in str(caught.value).replace("\\\\", "\\")


# -- the writer of the paper ----------------------------------------------------------------------------------------


def result(tick: int, n: Any) -> dict[str, Any]:
    """An event, as the adapter of the paper makes it."""
    return {"transition_type": "action.result", "tick": tick, "tool": "t", "output": n}


@pytest.mark.parametrize("sync", [1, 10])
def test_threads_that_were_given_one_tick_lose_nothing(sync: int) -> None:
    """As the callbacks of a batch of tools: all ask for the next tick, and then all emit."""
    asked = threading.Barrier(20)
    with TraceWriter("a", sync=sync) as trace:

        def called(n: int) -> int:
            tick = trace.next_tick()
            asked.wait(30)
            return trace.emit(result(tick, n))

        with ThreadPoolExecutor(20) as pool:
            told = list(pool.map(called, range(20)))
    assert sorted(told) == ticks("a") == list(range(1, 21))
    on_record = transitions("a")
    assert all(on_record[tick - 1]["content"]["result"]["output"] == n for n, tick in enumerate(told))


def test_tasks_that_were_given_one_tick_lose_nothing() -> None:
    """`aio.TraceWriter`: the events have the order of the calls."""

    async def main() -> list[int]:
        async with aio.TraceWriter("a") as trace:
            given = [await trace.next_tick() for _ in range(5)]
            assert given == [1] * 5
            return list(await asyncio.gather(*(trace.emit(result(tick, n)) for n, tick in enumerate(given))))

    assert asyncio.run(main()) == [1, 2, 3, 4, 5]
    assert [item["content"]["result"]["output"] for item in transitions("a")] == [0, 1, 2, 3, 4]


def test_a_tick_is_claimed_as_often_as_it_was_given() -> None:
    """A tick that was never given out, or no longer is, is refused as before."""
    with TraceWriter("a") as trace:
        assert trace.next_tick() == trace.next_tick() == 1
        assert [trace.emit(result(1, n)) for n in range(2)] == [1, 2]
        for tick in (1, 2, 4):
            with pytest.raises(dendrer.TickMismatch):
                trace.emit(result(tick, 0))
        assert trace.emit(result(3, 2)) == 3
        assert trace.next_tick() == 4
        trace.emit({"transition_type": "plan.update"})
        assert trace.emit(result(4, 3)) == 5
    assert ticks("a") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("value", [Decimal(1), {1}, date(2026, 1, 2), {1: 2}, {"a": [object()]}], ids=repr)
def test_an_event_with_a_value_without_a_form_has_a_mark(value: Any) -> None:
    """As `observe` has it. `on_error="raise"` raises."""
    events: list[dict[str, Any]] = [
        {"transition_type": "action.result", "tool": "t", "output": value},
        {"transition_type": "observation.add", "payload": value},
        {"transition_type": "observation.add", "intent": {"v": value}},
        {"transition_type": "observation.add", "delta": [{"set": "/v", "value": value}]},
    ]
    with TraceWriter("a") as trace, dendrer.run("b") as run:
        assert [trace.emit({**event, "tick": trace.next_tick()}) for event in events] == [1, 2, 3, 4]
        assert run.observe("x", v=value).what == "gap"
    contents = [item["content"] for item in transitions("a")]
    seen = transitions("b")[0]["content"]["intent"]["v"]
    assert ("$gap" in str(seen)) == ("$gap" in str(contents[0]["result"]["output"])) == ("$gap" in str(contents[1]["intent"]["payload"]))
    with TraceWriter("c", on_error="raise") as trace:
        for event in events:
            with pytest.raises(dendrer.ValueNotRecordable):
                trace.emit(event)
        assert trace.emit({"transition_type": "plan.update"}) == 1
    assert ticks("c") == [1]


def test_an_event_that_could_not_be_written_is_counted() -> None:
    """The program goes on, and the next event is preceded by the gap."""
    with TraceWriter("a") as trace:
        assert trace.emit({"transition_type": "plan.update"}) == 1
        Path(".dendrer/store.json").rename("away")
        assert trace.emit({"transition_type": "plan.update"}) == 0
        Path("away").rename(".dendrer/store.json")
        assert trace.emit({"transition_type": "plan.update"}) == 3
    (gap,) = noted("a", "recording_gap")
    assert (gap["code"], gap["lines"]) == ("E0801", 1)
    with TraceWriter("b", on_error="raise") as trace:
        Path(".dendrer/store.json").rename("away")
        with pytest.raises(dendrer.StoreError):
            trace.emit({"transition_type": "plan.update"})
        Path("away").rename(".dendrer/store.json")


def test_an_event_that_is_no_mapping_is_a_usage_error() -> None:
    """No error of Python comes out of `emit`."""
    events: list[Any] = [None, 1, "transition_type", ["transition_type"], *(
        {"transition_type": "action.result", "tool": "t", "output": 1, name: "x"} for name in ("action", "result", "intent")
    )]  # fmt: skip
    with TraceWriter("a") as trace:
        for event in events:
            with pytest.raises(dendrer.UsageError):
                trace.emit(event)
    assert ticks("a") == []


# -- calls that a run left ------------------------------------------------------------------------------------------


@dendrer.tool()
def pay(who: str, n: int) -> int:
    """A tool that takes a moment."""
    time.sleep(0.005)
    return n


def who_paid(run: str) -> list[str]:
    """Whose payments a run has."""
    return [(t.action or {})["params"]["who"] for t in dendrer.open()[run] if t.type == "action.request"]


def done(futures: list[Future[int]]) -> list[int]:
    """Waits for all of them."""
    return [future.result(30) for future in futures]


def test_calls_that_a_run_left_are_not_of_the_next_run() -> None:
    """The payments of the first run are not in the second one, which says how many calls it does not have."""
    dendrer.init()
    free = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        with dendrer.run("alice"):
            done([pool.submit(pay, "alice", n) for n in range(4)])
            for _ in range(2):
                pool.submit(free.wait, 30)
            left = [pool.submit(pay, "alice", n) for n in range(20)]
        with dendrer.run("bob"):
            free.set()
            assert pay("bob", 1) == 1
            assert done(left) == list(range(20))
    assert (who_paid("alice"), who_paid("bob")) == (["alice"] * 4, ["bob"])
    gaps = noted("bob", "recording_gap")
    assert sum(gap["lines"] for gap in gaps) == 20
    assert all("pay was called" in gap["text"] and "the run alice, which ended" in gap["text"] for gap in gaps)


def test_a_thread_that_recorded_nothing_for_the_run_before_may_have_its_calls() -> None:
    """What comes first in its queue may be something else. The same after two runs, and while runs overlap."""
    dendrer.init()
    with ThreadPoolExecutor(1) as pool:
        with dendrer.run("alice"):
            free = threading.Event()
            pool.submit(free.wait, 30)
            left = [pool.submit(pay, "alice", 1)]
        with dendrer.run("bob"):
            free.set()
            done(left)
        with dendrer.run("carol"):
            done([pool.submit(pay, "bob", 1)])
        with dendrer.run("outer"):
            with dendrer.run("inner"):
                with ThreadPoolExecutor(1) as inner:
                    inner.submit(time.sleep, 0)
            assert dendrer.current() is not None
            done([pool.submit(pay, "inner", 1)])
    for run, before in (("bob", "the run alice"), ("carol", "another run"), ("outer", "another run")):
        (gap,) = noted(run, "recording_gap")
        assert (who_paid(run), gap["lines"]) == ([], 1) and before in gap["text"]


def test_calls_whose_run_is_known_are_recorded() -> None:
    """A pool of the run, a copied context, a run that goes on, and the thread that opened a run without a `with`."""
    dendrer.init()
    with ThreadPoolExecutor(1) as pool:
        with dendrer.run("a"):
            done([pool.submit(pay, "a", 1)])
        with dendrer.run("a", resume=True):
            done([pool.submit(pay, "a", 2)])
        with dendrer.run("b"):
            done([pool.submit(contextvars.copy_context().run, pay, "b", 1)])
            with ThreadPoolExecutor(1) as own:
                done([own.submit(pay, "b", 2)])
    for name in ("c", "d"):
        run = dendrer.run(name)
        pay(name, 1)
        run.close()

    async def main(name: str) -> None:
        found = await aio.run(name).open()
        await asyncio.to_thread(int)
        pay(name, 1)
        await found.close()

    async def both() -> None:
        await main("e")
        await main("f")

    asyncio.run(both())
    for name, count in {"a": 2, "b": 2, "c": 1, "d": 1, "e": 1, "f": 1}.items():
        assert who_paid(name) == [name] * count and noted(name, "recording_gap") == []
