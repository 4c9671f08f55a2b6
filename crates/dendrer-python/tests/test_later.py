"""Steps that are judged together, calls in threads of others, and runs that an exception ends."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dendrer
import pytest
from dendrer import aio
from helpers import transitions


def noted(name: str, kind: str) -> list[dict[str, Any]]:
    """The anomalies of a kind on record."""
    found = [anomaly for item in transitions(name) for anomaly in item["content"].get("anomalies", ())]
    return [anomaly for anomaly in found if anomaly["kind"] == kind]


def test_replies_that_wait_are_those_of_steps_that_do_not() -> None:
    told: dict[int, list[Any]] = {}
    for sync in (1, 100):
        with dendrer.run(f"r{sync}", sync=sync, state={"n": 0}) as run:
            replies = [run.observe(f"a {number}", {"n": number}) for number in range(150)]
            replies.append(run.observe("no place", delta=[{"remove": "/none"}]))
            replies.append(run.plan("later", confidence=0.5))
            if sync > 1:
                assert replies[149].tick == 150, "a reply is there when it is asked for"
        told[sync] = [(reply.what, reply.tick, (reply.reason or {}).get("code")) for reply in replies]
        what, tick, _, reason, document = replies[3]
        assert (what, tick, reason, document) == ("committed", 4, None, None)
        assert replies[3] == pickle.loads(pickle.dumps(replies[3])) and len(replies[3]) == 5
        assert replies[3][1] == 4 and bool(replies[3]) and not replies[150]
        assert repr(replies[3]).startswith("Reply(what='committed', tick=4, id='sha256:")
    assert told[1] == told[100]
    assert told[1][150][0] == "refused"


def test_a_step_that_waits_has_the_time_at_which_it_came() -> None:
    with dendrer.run("r", sync=1000) as run:
        run.observe("first")
        time.sleep(0.003)
        run.observe("second")
    first, second = dendrer.open(".")["r"][1:3]
    assert first.ts < second.ts


def test_a_reply_is_there_behind_the_end_of_its_run() -> None:
    run = dendrer.run("r", sync=1000)
    reply = run.observe("a")
    run.close()
    assert (reply.what, reply.tick) == ("committed", 1)
    run = dendrer.run("s", sync=1000)
    reply = run.observe("a")
    del run
    assert reply.tick == 1


def test_calls_in_threads_of_a_pool_are_recorded_in_the_only_open_run() -> None:
    @dendrer.tool(effect="effectful")
    def pay(number: int) -> int:
        return number

    @dendrer.tool()
    async def ask(number: int) -> int:
        return number

    with dendrer.run("pool"):
        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(pay, range(4))) == [0, 1, 2, 3]
        thread = threading.Thread(target=lambda: asyncio.run(ask(9)))
        thread.start()
        thread.join()
    types = [item["type"] for item in transitions("pool")]
    assert (types.count("action.request"), types.count("action.result")) == (5, 5)
    found = dendrer.open(".")["pool"].bisect(holds="state.counters.tool_calls == 0")
    assert found.onset is not None and found.onset.tick == 1
    assert pay(5) == 5
    assert len(transitions("pool")) == 10, "behind the run nothing is recorded"


def test_a_call_that_may_be_of_several_runs_is_a_gap_of_each() -> None:
    @dendrer.tool()
    def read() -> int:
        return 1

    with dendrer.run("a"), dendrer.run("b"):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    for name in ("a", "b"):
        (gap,) = noted(name, "recording_gap")
        assert gap["lines"] == 1 and "read" in gap["text"]


def test_an_exception_that_ends_a_run_is_on_record() -> None:
    class Broken(Exception):
        pass

    with pytest.raises(Broken), dendrer.run("r") as run:
        run.complete("done")
        raise Broken("the password is hunter2-and-more")
    (ended,) = noted("r", "ended_by")
    assert ended["type"] == "Broken"
    assert "hunter2" not in str(transitions("r"))
    with dendrer.run("s") as run:
        run.complete("done")
    assert noted("s", "ended_by") == []

    async def fails() -> None:
        async with aio.run("t"):
            raise Broken("gone")

    with pytest.raises(Broken):
        asyncio.run(fails())
    assert [ended["message"] for ended in noted("t", "ended_by")] == ["gone"]


def test_keys_of_two_kinds_with_one_name_both_stay() -> None:
    with dendrer.run("r") as run:
        reply = run.observe("a", {"d": {1: "int", "1": "text", None: "n", 2: "two"}})
    assert (reply.what, reply.tick) == ("gap", 1)
    assert reply.reason is not None and reply.reason["path"] == "/delta/0/value/1 (int)"
    state = dendrer.open(".")["r"].state_at(1)
    assert state["d"] == {"1 (int)": "int", "1": "text", "None": "n", "2": "two"}
    with dendrer.run("s", on_error="raise") as run, pytest.raises(dendrer.ValueNotRecordable):
        run.observe("a", {"d": {1: "int"}})
    with dendrer.run("t", on_error="raise") as run, pytest.raises(dendrer.ValueNotRecordable):
        run.observe("a", {"d": {"a": {None: 2}}})
