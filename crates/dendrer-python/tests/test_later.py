"""Steps that are judged together, calls in threads of others, and runs that an exception ends."""

from __future__ import annotations

import asyncio
import json
import pathlib
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dendrer
import pytest
from dendrer import aio
from helpers import command, transitions


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


def test_keys_of_one_text_in_a_model_both_stay() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Score(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        votes: dict[Any, int]

    with dendrer.run("r") as run:
        reply = run.observe("scored", {"s": Score(votes={1: 10, "1": 3}), "t": Score(votes={1: 10, 2: 3})})
    assert reply.what == "gap" and reply.reason is not None
    assert reply.reason["path"].endswith("/votes/1 (int)")
    state = dendrer.open(".")["r"].state_at(1)
    assert state["s"] == {"votes": {"1 (int)": 10, "1": 3}}
    assert state["t"] == {"votes": {"1": 10, "2": 3}}


def test_a_step_that_fails_takes_no_other_with_it() -> None:
    unknown = [{"rel": "caused_by", "hash": "sha256:" + "0" * 64}]
    for name, asks in (("asked", True), ("not", False)):
        with dendrer.run(name, sync=100) as run:
            bad = run.observe("bad", links=unknown)
            assert not asks or not bad
            paid = run.remember("paid", {"paid": 900})
            if asks:
                assert paid
            run.plan("ship")
        assert not bad and bad.reason is not None and bad.reason["code"] == "E0102"
        assert paid.what == "committed"
        assert {"memory.write", "plan.update"} <= {item["type"] for item in transitions(name)}
        (gap,) = noted(name, "recording_gap")
        assert gap["lines"] == 1
    with dendrer.run("last", sync=100) as run:
        run.observe("bad", links=unknown)
    (gap,) = noted("last", "recording_gap")
    assert gap["lines"] == 1


def test_a_reply_is_linked_from_another_run_of_the_process() -> None:
    with dendrer.run("a", sync=100) as one, dendrer.run("b", sync=100) as other:
        asked = one.observe("pay Bob")
        told = other.observe("asked", links=[{"rel": "caused_by", "hash": asked.id}])
        assert (asked.what, told.what) == ("committed", "committed")
    assert noted("b", "recording_gap") == []


def test_a_reply_is_of_the_record_that_was_written() -> None:
    with dendrer.run("r", sync=100) as run:
        run.observe("a")
        run.flush()
        line = json.dumps({"type": "plan.update"})
        assert command("commit", "--run", "r", input=line + "\n").returncode == 0
        before = run.observe("b")
        assert before.tick == 2
        asked = run.propose(action={"tool": "pay", "params": {"n": 1}})
        assert asked.tick == 3
        run.flush()
        assert (before.tick, asked.reply.tick) == (3, 4)
        linked = run.observe("c", links=[{"rel": "caused_by", "hash": before.id}])
        assert linked.what == "committed"
    found = dendrer.open(".")["r"]
    assert found[3].id == before.id and found[3].intent == {"description": "b"}
    assert found[4].id == asked.reply.id


def test_steps_that_the_disk_does_not_take_are_a_gap() -> None:
    resource = pytest.importorskip("resource")
    segment = pathlib.Path(".dendrer/segments/00000000.seg")

    def room(more: int | None) -> None:
        limit = resource.RLIM_INFINITY if more is None else segment.stat().st_size + more
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for ends in (False, True):
            name = f"r{ends}"
            with dendrer.run(name, sync=100) as run:
                run.observe("before")
                run.flush()
                room(600)
                lost = [run.observe(f"{at} " + "x" * 400) for at in range(10)]
                assert ends or lost[0].tick == 2
                with pytest.raises(dendrer.StoreError):
                    run.flush()
                assert [bool(reply) for reply in lost] == [False] * 10
                room(None)
                if not ends:
                    assert run.observe("after").what == "committed"
            (gap,) = noted(name, "recording_gap")
            assert gap["lines"] == 10
            assert dendrer.open(".")[name].verify(replay=True).verdict != "TAMPERED"
    finally:
        room(None)
        signal.signal(signal.SIGXFSZ, before)
