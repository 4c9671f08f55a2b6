"""Threads, tasks and processes share a run, and nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dendrer
import pytest
from dendrer import aio
from helpers import document, is_clean, python, ticks, transitions

KILLS = int(os.environ.get("DENDRER_KILLS", "20"))

has_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def intents(run: str) -> list[dict[str, Any]]:
    """The intents that are on record, in order."""
    return [item["content"]["intent"] for item in transitions(run)]


def requests_and_results(run: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of each request by its id, and each result by the id of the request that it is linked to."""
    requests, results = {}, {}
    for t in dendrer.open()[run]:
        if t.type == "action.request":
            requests[t.id] = (t.action or {})["params"]
        if t.type == "action.result":
            # The kernel may add the record before it of the same agent.
            (link,) = (link for link in t.to_dict()["links"] if link["rel"] == "caused_by")
            results[link["hash"]] = {**(t.result or {}), "agent": t.agent}
    return requests, results


def in_threads(*works: Callable[[], None]) -> None:
    """Does all of it at once, and raises what one of them raised."""
    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result(timeout=30)


# -- threads --------------------------------------------------------------------------------------------------------


def test_eight_threads_share_a_recording() -> None:
    """Every step of every thread is on record once, in the order of its thread, and each reply has its own tick."""
    dendrer.init()
    replies: list[tuple[int, int, dendrer.Reply]] = []

    with dendrer.run("a", on_error="raise") as run:

        def work(thread: int) -> None:
            for step in range(50):
                replies.append((thread, step, run.observe("step", {f"t{thread}": step}, thread=thread, step=step)))

        in_threads(*(lambda thread=thread: work(thread) for thread in range(8)))
        assert run.flush() == 400
    assert sorted(reply.tick or 0 for _, _, reply in replies) == list(range(1, 401))
    on_record = intents("a")
    assert [(i["thread"], i["step"]) for i in on_record if i["thread"] == 3] == [(3, step) for step in range(50)]
    for thread, step, reply in replies:
        assert reply.tick is not None
        assert (on_record[reply.tick - 1]["thread"], on_record[reply.tick - 1]["step"]) == (thread, step)
    assert document("state", "a", "--path=t7")["value"] == 49
    is_clean(by_command=True)


def test_recordings_of_one_run_take_turns() -> None:
    """Several recordings of one run, each in a thread of its own, write one history."""
    dendrer.init()
    runs = [dendrer.run("a", on_error="raise", resume="auto") for _ in range(4)]
    told: list[int | None] = []

    def work(run: dendrer.Recording, number: int) -> None:
        for step in range(25):
            told.append(run.observe("step", {"last": number}, number=number, step=step).tick)

    in_threads(*(lambda run=run, number=number: work(run, number) for number, run in enumerate(runs)))
    for run in runs:
        run.close()
    assert sorted(tick or 0 for tick in told) == list(range(1, 101)) == ticks("a")
    for number in range(4):
        assert [i["step"] for i in intents("a") if i["number"] == number] == list(range(25))
    is_clean()


def test_recordings_of_several_runs_do_not_disturb_each_other() -> None:
    """Four runs of one store, recorded at once."""
    dendrer.init()

    def work(name: str) -> None:
        with dendrer.run(name, on_error="raise") as run:
            for step in range(25):
                assert run.observe("step", step=step).tick == step + 1

    in_threads(*(lambda name=name: work(name) for name in "abcd"))
    for name in "abcd":
        assert [i["step"] for i in intents(name)] == list(range(25))
    is_clean()


def test_a_run_is_read_while_it_is_recorded() -> None:
    """A reader in another thread sees a history that only grows, and never one in part."""
    store = dendrer.init()
    done = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not done.is_set():
            found = list(store["a"])
            assert [t.tick for t in found] == list(range(1, len(found) + 1))
            assert not found or store["a"].state_at(found[-1].tick, path="n") == found[-1].tick
            seen.append(len(found))

    with dendrer.run("a", on_error="raise") as run:
        run.observe("first", {"n": 1})

        def write() -> None:
            try:
                for n in range(2, 150):
                    run.observe("step", {"n": n})
            finally:
                done.set()

        in_threads(read, write)
    assert seen == sorted(seen) and len(store["a"]) == 149


def test_a_thread_records_in_the_only_open_run() -> None:
    """A thread that is started plainly has no current run, and its calls are of the run that is open; `asyncio.to_thread` and a copied
    context have the run."""
    dendrer.init()

    @dendrer.tool()
    def look() -> int:
        return 1

    async def main() -> None:
        await asyncio.to_thread(look)

    with dendrer.run("a"):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert dendrer.current() is not None
    assert dendrer.current() is None and ticks("a") == [1, 2]
    with dendrer.run("a", resume=True):
        asyncio.run(main())
        with ThreadPoolExecutor(1) as pool:
            pool.submit(contextvars.copy_context().run, look).result()
    assert ticks("a") == [1, 2, 3, 4, 5, 6]


def test_runs_nest() -> None:
    """The inner `with` is the current run; behind it, the outer one is again."""
    dendrer.init()

    @dendrer.step()
    def think() -> int:
        return 1

    with dendrer.run("outer") as outer:
        think()
        with dendrer.run("inner"):
            think()
        assert dendrer.current() is outer
        think()
    assert (ticks("outer"), ticks("inner")) == ([1, 2], [1])


def test_a_run_may_end_in_another_context() -> None:
    """What begins in one context or thread and ends in another (a fixture, an async generator) is closed and raises nothing."""
    dendrer.init()
    run = dendrer.run("a")
    contextvars.copy_context().run(run.__enter__)
    run.observe("one")
    run.__exit__(None, None, None)
    assert document("verify")["verdict"] == "INTACT"

    async def steps() -> Any:
        async with aio.run("b") as later:
            yield await later.observe("one")

    async def main() -> None:
        found = steps()
        assert (await found.__anext__()).tick == 1
        await asyncio.create_task(found.aclose())

    asyncio.run(main())
    assert dendrer.current() is None and document("verify")["verdict"] == "INTACT"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_recordings_and_stores_that_are_gone_keep_nothing_open() -> None:
    """Closed or dropped, recordings, runs and stores leave no file and no thread behind."""
    dendrer.init()

    def held() -> tuple[int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def use() -> None:
        with dendrer.run("a", sync=10) as run:
            run.observe("x", {"n": 1})
        dendrer.run("a", sync=10).observe("dropped")
        assert dendrer.open()["a"][-1].intent and dendrer.open()["a"].verify().verdict

    use()
    before = held()
    for _ in range(10):
        use()
    assert held() == before


def test_a_request_that_depends_on_a_place_is_quick_in_a_long_run() -> None:
    """Looking for the last write of a place does not read the whole run each time."""
    dendrer.init()
    with dendrer.run("a", sync=1000, on_error="raise") as run:
        for n in range(500):
            run.observe("x", {"n": n})
        begun = time.monotonic()
        for _ in range(5):
            run.propose(action={"tool": "t"}, depends_on=["n"])
        took = time.monotonic() - begun
    assert took < 0.2, took


# -- processes ------------------------------------------------------------------------------------------------------


def in_child(run: dendrer.Recording, count: int) -> None:
    """Records some steps in another process."""
    for step in range(count):
        assert run.observe("child", {"n": step}, step=step, pid=os.getpid()).what == "committed"


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_recording_goes_to_another_process_as_an_argument(method: str) -> None:
    """Parent and child record into one run, by whatever method the child was started."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    dendrer.init()
    context: Any = multiprocessing.get_context(method)
    with dendrer.run("a", on_error="raise", state={"n": -1}, goal="g") as run:
        run.observe("before")
        child = context.Process(target=in_child, args=(run, 20))
        child.start()
        for step in range(20):
            run.observe("parent", step=step, pid=os.getpid())
        child.join(20)
        assert child.exitcode == 0
        run.observe("after")
    on_record = intents("a")
    assert ticks("a") == list(range(1, 43))
    for who in ("parent", "child"):
        assert [i["step"] for i in on_record if i["description"] == who] == list(range(20))
    assert on_record[-1]["description"] == "after"
    is_clean(by_command=True)


def test_a_pickled_recording_records_into_the_same_run() -> None:
    """Pickled and loaded, a recording has its options and opens the run again."""
    dendrer.init()
    with dendrer.run("a", on_error="raise", sync=5, agent="ann") as run:
        run.observe("one")
        run.flush()
        again: dendrer.Recording = pickle.loads(pickle.dumps(run))
        again.observe("two")
        run.observe("three")
        with pytest.raises(dendrer.ValueNotRecordable):
            again.observe("bad", v={1})
        again.close()
    assert [i["description"] for i in intents("a")] == ["one", "two", "three"]
    assert {item["agent"] for item in transitions("a")} == {"ann"}


@has_fork
def test_a_pool_of_forked_workers_shares_the_run() -> None:
    """Workers that inherit the run record with what they inherited."""
    dendrer.init()
    with dendrer.run("a", on_error="raise"):
        with multiprocessing.get_context("fork").Pool(3) as pool:
            assert sum(pool.map(double, range(12))) == 132
    assert len(ticks("a")) == 24
    requests, results = requests_and_results("a")
    assert len(requests) == len(results) == 12
    for request, result in results.items():
        assert requests[request]["n"] * 2 == result["output"]
    is_clean()


@dendrer.tool(name="double")
def double(n: int) -> int:
    """A tool that is called in workers."""
    return 2 * n


FORK_WHILE_RECORDING = """
import dendrer, os, sys, threading, time

forks, exits = int(sys.argv[1]), sys.argv[2]
done = threading.Event()
counts = [0] * 4
with dendrer.run("a", on_error="raise", sync=10) as run:
    # Steps of a child that ends at once are not to wait for others.

    def work(number):
        while not done.is_set():
            run.observe("thread", thread=number, step=counts[number])
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    children = []
    for number in range(forks):
        time.sleep(0.003)
        child = os.fork()
        if child == 0:
            try:
                for step in range(2):
                    assert run.observe("child", child=number, step=step).what == "committed"
            except BaseException as error:
                print("child", number, type(error), error, file=sys.stderr, flush=True)
                os._exit(1)
            if exits == "hard":
                run.flush()
                os._exit(0)
            run.close()
            os._exit(0)
        children.append(child)
    deadline = time.monotonic() + 2
    stuck = set(children)
    while stuck and time.monotonic() < deadline:
        for child in list(stuck):
            if os.waitpid(child, os.WNOHANG)[0]:
                stuck.discard(child)
        time.sleep(0.01)
    for child in stuck:
        os.kill(child, 9)
    done.set()
    for thread in threads:
        thread.join()
print(len(stuck), *counts)
"""


@has_fork
@pytest.mark.parametrize("exits", ["hard", "closed"])
def test_a_fork_while_other_threads_record_leaves_both_whole(exits: str) -> None:
    """Children that are forked in the middle of steps of other threads record, and none waits for ever."""
    dendrer.init()
    forks = 12
    ran = python(FORK_WHILE_RECORDING, str(forks), exits, timeout=25)
    assert ran.returncode == 0, ran.stderr
    stuck, *counts = map(int, ran.stdout.split())
    on_record = intents("a")
    assert (stuck, ran.stderr) == (0, "")
    for number, count in enumerate(counts):
        assert [i["step"] for i in on_record if i.get("thread") == number] == list(range(count))
    for number in range(forks):
        assert [i["step"] for i in on_record if i.get("child") == number] == [0, 1]
    assert len(on_record) == sum(counts) + 2 * forks
    is_clean(by_command=True)


FORK_IN_THE_MIDDLE = """
import dendrer, os, sys

run = dendrer.run("a", on_error="raise", sync=100)
for step in range(5):
    run.observe("before", step=step)
child = os.fork()
who = "child" if child == 0 else "parent"
for step in range(20):
    assert run.observe(who, step=step).what == "committed"
if child:
    sys.exit(os.waitpid(child, 0)[1])
# Both leave without closing.
"""


@has_fork
def test_parent_and_child_of_a_fork_both_record_and_leave() -> None:
    """After a fork in the middle of a run both go on, and both end by themselves."""
    dendrer.init()
    ran = python(FORK_IN_THE_MIDDLE, timeout=20)
    assert (ran.returncode, ran.stderr) == (0, "")
    for who, count in (("before", 5), ("parent", 20), ("child", 20)):
        assert [i["step"] for i in intents("a") if i["description"] == who] == list(range(count))
    assert ticks("a") == list(range(1, 46))
    is_clean(by_command=True)


LOSS_AND_FORK = """
import dendrer, logging, os

logging.disable(logging.CRITICAL)
with dendrer.run("a") as run:
    run.observe("bad", {"a[": 1})
    child = os.fork()
    if child == 0:
        run.observe("child")
        run.close()
        os._exit(0)
    os.waitpid(child, 0)
    run.observe("parent")
"""


@has_fork
def test_a_loss_before_a_fork_is_counted_once() -> None:
    """A step that was lost before a fork is one missing step, and not one for each process."""
    dendrer.init()
    ran = python(LOSS_AND_FORK, timeout=20)
    assert ran.returncode == 0, ran.stderr
    gaps = [anomaly for item in transitions("a") for anomaly in item["content"].get("anomalies", ()) if anomaly["kind"] == "recording_gap"]
    assert sum(gap["lines"] for gap in gaps) == 1


INHERIT = """
import dendrer, os, sys

store = dendrer.open()
r = store["a"]
assert (r[1].type, r.state_at(path="n")) == ("observation.add", 1)
child = os.fork()
if child:
    sys.exit(os.waitpid(child, 0)[1])
for ask in (lambda: r[1].type, lambda: r.state_at(path="n"), lambda: list(r), lambda: store.names(), lambda: r.verify().verdict):
    try:
        assert ask() in ("observation.add", 1, ["a"], "INTACT") or len(ask()) == 1
    except dendrer.StoreError as error:
        assert "open the store again after a fork" in str(error)
r = dendrer.open()["a"]
assert (r[1].type, r.state_at(path="n")) == ("observation.add", 1)
"""


@has_fork
def test_a_store_that_is_read_answers_behind_a_fork_or_says_to_open_it_again() -> None:
    """In a forked child what was opened for reading is right or says what to do, and can be opened again."""
    dendrer.init()
    with dendrer.run("a") as run:
        run.observe("one", {"n": 1})
    ran = python(INHERIT, timeout=10)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_two_programs_and_the_command_write_one_run() -> None:
    """Another program and `dendrer commit` may write between two steps of a recording."""
    from helpers import command

    dendrer.init()
    line = '{"type":"observation.add","intent":{"description":"command"}}'
    with dendrer.run("a", on_error="raise") as run:
        run.observe("one")
        assert command("commit", "--run=a", input=line).returncode == 0
        assert run.observe("two").tick == 3
        ran = python('import dendrer\nwith dendrer.run("a", resume=True) as run: print(run.observe("program").tick)')
        assert ran.stdout == "4\n", ran.stderr
        assert run.observe("three").tick == 5
    assert [i["description"] for i in intents("a")] == ["one", "command", "two", "program", "three"]


# -- the end of a program -------------------------------------------------------------------------------------------

ENDS = {
    "falls off": "",
    "sys.exit": "sys.exit(0)",
    "raises": "raise SystemExit(0)",
    "global": "globals()['kept'] = run",
    "in a thread": "threading.Thread(target=lambda: (time.sleep(0.1), run.observe('late'))).start()",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_does_not_close_leaves_a_signed_log(end: str) -> None:
    """At the exit of the interpreter everything is durable and signed, without a word on stderr."""
    dendrer.init()
    code = f"""
import dendrer, sys, threading, time
run = dendrer.run("a", sync=100)
for n in range(7): run.observe("step", n=n)
{ENDS[end]}
"""
    ran = python(code, timeout=20)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ticks("a") == list(range(1, 9 if end == "in a thread" else 8))
    ran_verify = document("verify")
    assert ran_verify["verdict"] == "INTACT", ran_verify


def test_a_program_that_ends_in_a_traceback_has_recorded_what_it_did() -> None:
    """An exception of the host leaves its own traceback, and the steps before it."""
    dendrer.init()
    ran = python('import dendrer\nwith dendrer.run("a") as run:\n run.observe("one")\n raise ValueError("mine")')
    assert ran.returncode == 1 and ran.stderr.strip().endswith("ValueError: mine")
    first, end = transitions("a")
    assert first["content"]["intent"]["description"] == "one"
    assert end["content"]["anomalies"] == [{"kind": "ended_by", "type": "ValueError", "message": "mine"}]
    is_clean()


RECORD_FOR_EVER = """
import dendrer, os, sys
store, name, sync = sys.argv[1:]
run = dendrer.run(name, store=store, sync=int(sync), on_error="raise")
n = 0
while True:
    reply = run.observe("step", {"n": n}, n=n, more="x" * (n % 300))
    n += 1
    if n % int(sync) == 0:
        # Where several steps share a sync, a flush is what acknowledges them.
        assert run.flush() == reply.tick
        os.write(1, b"%d\\n" % reply.tick)
"""


@pytest.mark.parametrize("sync", [1, 10])
def test_a_kill_takes_no_step_that_was_acknowledged(sync: int) -> None:
    """Killed at any moment, the log has every tick that was acknowledged, verifies, and can be continued."""
    dendrer.init()
    chance = random.Random(int(os.environ.get("DENDRER_SEED", time.time_ns())))
    acknowledged_in_all = 0
    for kill in range(max(1, KILLS // 2)):
        name = f"k-{kill}"
        child = subprocess.Popen([sys.executable, "-c", RECORD_FOR_EVER, ".", name, str(sync)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        # Now and then while it starts, otherwise while it records.
        first = b"" if kill % 5 == 4 else child.stdout.readline()
        time.sleep(chance.uniform(0, 0.12))
        child.kill()
        told = [int(line) for line in (first + child.stdout.read()).splitlines(keepends=True) if line.endswith(b"\n")]
        child.wait()
        child.stdout.close()
        assert told == list(range(sync, sync * len(told) + 1, sync))
        acknowledged_in_all += len(told)
        if name not in dendrer.open().names():
            assert told == []
            continue
        found = [item["tick"] for item in document("log", name, "--limit=0")["items"]]
        assert found == list(range(1, len(found) + 1)) and found[-1:] >= told[-1:]
        # One more may be on disk whose reply was not read.
        assert len(found) - sync * len(told) <= sync
        assert dendrer.open()[name].verify().verdict in ("VERIFIED", "INTACT")
        with dendrer.run(name, resume=True) as run:
            assert run.observe("next").tick == len(found) + 1
    assert acknowledged_in_all > 0
    is_clean(by_command=True)


# -- asyncio --------------------------------------------------------------------------------------------------------


async def largest_gap(work: Any) -> float:
    """The longest time that the loop did nothing else while something was awaited."""
    gaps: list[float] = []

    async def beat() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0.005)
    try:
        await work
    finally:
        await asyncio.sleep(0.005)
        heart.cancel()
    return max(gaps)


def test_fifty_tasks_record_at_once_and_the_loop_goes_on() -> None:
    """Fifty concurrent steps are all on record, in the order of the calls, while the loop is never held up."""
    dendrer.init()
    replies: list[dendrer.Reply] = []

    async def main() -> float:
        async with aio.run("a", on_error="raise") as run:

            async def all_of_them() -> None:
                replies.extend(await asyncio.gather(*(run.observe("step", {"n": n}, n=n) for n in range(50))))

            gap = await largest_gap(all_of_them())
            assert await run.flush() == 50
        return gap

    gap = asyncio.run(main())
    assert [reply.tick for reply in replies] == list(range(1, 51))
    assert [i["n"] for i in intents("a")] == list(range(50))
    assert gap < 0.1, gap
    is_clean()


def test_the_loop_is_not_held_up_by_a_large_value_or_a_lock() -> None:
    """Opening, a value of a megabyte, reading, a store that another process holds: the loop goes on meanwhile."""
    fcntl = pytest.importorskip("fcntl")
    dendrer.init()

    async def main() -> tuple[float, float]:
        async def all_of_it() -> None:
            async with aio.run("a", on_error="raise") as run:
                await run.observe("large", v="x" * 1_000_000)
            store = await aio.open()
            r = await store.run("a")
            assert (await r.state_at()) is not None and len(await r.log()) == 1
            assert (await r.verify()).verdict == "INTACT"
            assert (await (await aio.open()).names()) == ["a"]

        async def locked() -> None:
            async with aio.run("a", on_error="raise") as run:
                with open(".dendrer/lock", "r+") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    waits = asyncio.create_task(run.observe("waits"))
                    await asyncio.sleep(0.3)
                    fcntl.flock(lock, fcntl.LOCK_UN)
                assert (await waits).what == "committed"

        return await largest_gap(all_of_it()), await largest_gap(locked())

    gaps = asyncio.run(main())
    assert max(gaps) < 0.15, gaps


def test_tools_that_are_coroutines_record_and_do_not_block() -> None:
    """Async tools, steps and agents in concurrent tasks: each result is linked to its own request."""
    dendrer.init()

    @dendrer.tool(effect="read")
    async def look(n: int) -> int:
        await asyncio.sleep(0.01 * (n % 3))
        if n == 7:
            raise LookupError("seven")
        return n * n

    @dendrer.step("plan.update")
    async def think(n: int) -> int:
        return await look(n)

    async def one(n: int) -> int | str:
        @dendrer.agent(f"agent-{n}")
        async def task() -> int:
            return await think(n)

        try:
            return await task()
        except LookupError as error:
            return str(error)

    async def main() -> float:
        async with aio.run("a", on_error="raise"):

            async def all_of_them() -> None:
                found = await asyncio.gather(*map(one, range(20)))
                assert found == [n * n if n != 7 else "seven" for n in range(20)]

            return await largest_gap(all_of_them())

    gap = asyncio.run(main())
    requests, results = requests_and_results("a")
    assert len(ticks("a")) == 60 and len(requests) == len(results) == 20
    for request, result in results.items():
        n = requests[request]["n"]
        assert result.pop("agent") == f"agent-{n}"
        right = {"output": n * n, "status": "ok"}
        wrong = {"error": {"type": "LookupError", "message": "seven"}, "output": None, "status": "error"}
        assert result == (wrong if n == 7 else right)
    for item in transitions("a"):
        if item["type"] == "plan.update":
            assert item["agent"] == f"agent-{item['content']['intent']['params']['n']}"
    assert gap < 0.1, gap


def test_a_task_that_is_cancelled_is_recorded_as_an_error() -> None:
    """A tool that is cancelled has a result that says so, and the cancellation goes on."""
    dendrer.init()

    @dendrer.tool()
    async def forever() -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        async with aio.run("a"):
            task = asyncio.create_task(forever())
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    request, result = transitions("a")
    assert result["content"]["result"]["status"] == "error"
    assert result["content"]["result"]["error"]["type"] == "CancelledError"


def test_a_run_that_is_no_coroutine_can_be_used_in_a_loop() -> None:
    """`with dendrer.run(..)` around `asyncio.run`, and inside it: tasks have the run."""
    dendrer.init()

    @dendrer.tool()
    async def look() -> int:
        return 1

    async def main() -> None:
        await asyncio.gather(look(), look())

    with dendrer.run("a"):
        asyncio.run(main())
    assert sorted(item["type"] for item in transitions("a")) == ["action.request"] * 2 + ["action.result"] * 2


def test_an_error_of_a_step_is_raised_where_it_is_awaited() -> None:
    """`Stale` comes out of the await, with `head`; the run goes on."""
    dendrer.init()

    async def main() -> None:
        async with aio.run("a") as run:
            await run.observe("one")
            with pytest.raises(dendrer.Stale) as caught:
                await run.observe("two", base=0)
            assert caught.value.head == 1
            assert (await run.observe("three")).tick == 2

    asyncio.run(main())


def test_two_loops_one_after_the_other_record() -> None:
    """A recording is not tied to the loop in which it was opened."""
    dendrer.init()
    run = aio.run("a")

    async def one() -> None:
        await (await run.open()).observe("one")

    async def two() -> None:
        await run.observe("two")
        await run.close()

    asyncio.run(one())
    asyncio.run(two())
    assert ticks("a") == [1, 2]


# -- ends that no one asked for -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", [1, 100])
def test_a_recording_that_is_dropped_loses_nothing(sync: int) -> None:
    """What was acknowledged is on record, without a close."""
    dendrer.init()

    def agent() -> int | None:
        run = dendrer.run("a", sync=sync)
        return [run.observe(str(number)) for number in range(50)][-1].tick

    async def later() -> None:
        run = await aio.run("b", sync=sync).open()
        for number in range(30):
            await run.observe(str(number))

    assert agent() == 50
    asyncio.run(later())
    gc.collect()
    assert ticks("a") == list(range(1, 51)) and ticks("b") == list(range(1, 31))
    with dendrer.run("c", sync=sync) as run:
        copy = pickle.loads(pickle.dumps(run))
        copy.observe("a copy")
        del copy
        gc.collect()
        run.observe("behind it")
    assert [intent["description"] for intent in intents("c")] == ["a copy", "behind it"]


def many_steps(run: Any) -> None:
    """Steps of a worker."""
    for number in range(20):
        assert run.observe(str(number)).what == "committed"


@has_fork
@pytest.mark.parametrize("sync", [1, 100])
def test_workers_that_end_well_lose_nothing(sync: int) -> None:
    """They leave without the functions of `atexit`."""
    dendrer.init()
    fork = multiprocessing.get_context("fork")
    with dendrer.run("a", sync=sync) as run:
        worker = fork.Process(target=many_steps, args=(run,))
        worker.start()
        worker.join()
        assert worker.exitcode == 0
        pool = fork.Pool(2)
        pool.map(many_steps, [run, run])
        pool.close()
        pool.join()
    assert ticks("a") == list(range(1, 61))
