"""What goes wrong in the recorder stays out of the program that is recorded, and is on record as a gap."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import gc
import inspect
import logging
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import dendrer
import pytest
from dendrer import aio
from helpers import command, document, is_clean, python, ticks, transitions


def gaps(run: str, store: str | os.PathLike[str] = ".") -> list[dict[str, Any]]:
    """The gaps that are on record."""
    found = [anomaly for item in transitions(run, store) for anomaly in item["content"].get("anomalies", ())]
    return [anomaly for anomaly in found if anomaly["kind"] == "recording_gap"]


def said(run: str, store: str | os.PathLike[str] = ".") -> list[str]:
    """What the steps of a run say, in order; anomalies of the kernel by their type."""
    return [item["content"].get("intent", {}).get("description", item["type"]) for item in transitions(run, store)]


# -- the disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    if not shutil.which("mount") or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(place)], capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        yield place
    finally:
        gc.collect()
        if subprocess.run(["umount", str(place)], capture_output=True).returncode:
            subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    """Writes until nothing more fits."""
    ballast = place / "ballast"
    with ballast.open("ab", 0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return ballast


def test_a_full_disk_is_a_gap_that_is_counted_and_logged_once(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While the disk is full every step is a gap; the next one that is written comes behind an anomaly that counts them."""
    dendrer.init(small_disk)
    with dendrer.run("a", store=small_disk) as run:
        run.observe("one")
        ballast = fill(small_disk)
        lost = [run.observe("lost", {"n": 1}, v=os.urandom(30_000).hex()) for _ in range(5)]
        decided = run.propose(action={"tool": "t", "params": {"v": os.urandom(30_000).hex()}})
        ballast.unlink()
        after = run.observe("after"), run.observe("last")
    assert [(reply.what, reply.tick, bool(reply)) for reply in lost] == [("gap", None, False)] * 5
    assert lost[0].reason is not None and lost[0].reason["code"] == "E0801"
    # A recorder that fails stops nothing: nobody denied it.
    assert decided.allowed and decided.reply.what == "gap"
    assert all(after)
    told = said("a", small_disk)
    assert told[0] == "one" and told[-2:] == ["after", "last"]
    assert set(told[1:-2]) == {"kernel.anomaly"} and "lost" not in told
    assert sum(gap["lines"] for gap in gaps("a", small_disk)) == 6
    assert {gap["code"] for gap in gaps("a", small_disk)} == {"E0801"}
    assert len(caplog.records) == 1 and "no space left" in caplog.text
    is_clean(small_disk)


def test_a_full_disk_raises_with_raise_and_nothing_is_in_part(small_disk: Path) -> None:
    """`on_error="raise"` raises `StoreError`; what was acknowledged is there, and recording goes on."""
    dendrer.init(small_disk)
    with dendrer.run("a", store=small_disk, on_error="raise") as run:
        run.observe("one")
        ballast = fill(small_disk)
        for _ in range(3):
            with pytest.raises(dendrer.StoreError) as caught:
                run.observe("lost", v=os.urandom(30_000).hex())
            assert caught.value.code == "E0801"
        ballast.unlink()
        assert run.observe("after").tick == 2
    assert said("a", small_disk) == ["one", "after"]
    is_clean(small_disk)


def test_a_disk_that_stays_full_does_not_disturb_the_end(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Closing on a full disk raises nothing with `warn`; what was acknowledged is there."""
    dendrer.init(small_disk)
    with dendrer.run("a", store=small_disk) as run:
        assert run.observe("one")
        fill(small_disk)
        run.observe("lost", v=os.urandom(30_000).hex())
    assert caplog.records
    (small_disk / "ballast").unlink()
    assert said("a", small_disk)[0] == "one" and "lost" not in said("a", small_disk)
    is_clean(small_disk)


FILE_LIMIT = """
import dendrer, logging, os, resource, sys

logging.disable(logging.CRITICAL)
on_error = sys.argv[1]
run = dendrer.run("a", on_error=on_error)
run.observe("one")
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, hard))
lost = 0
for n in range(20):
    try:
        lost += not run.observe("step", n=n, v=os.urandom(20_000).hex())
    except dendrer.StoreError as error:
        assert on_error == "raise" and error.code == "E0801", error
        lost += 1
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
assert run.observe("after")
run.close()
print(lost)
"""


@pytest.mark.parametrize("on_error", ["warn", "raise"])
def test_a_limit_on_files_is_a_fault_like_a_full_disk(on_error: str) -> None:
    """Beyond RLIMIT_FSIZE steps are gaps, or raise; behind it everything else is on record."""
    pytest.importorskip("resource")
    dendrer.init()
    ran = python(FILE_LIMIT, on_error, timeout=30)
    assert ran.returncode == 0, ran.stderr
    lost = int(ran.stdout)
    assert lost > 0
    assert len([text for text in said("a") if text == "step"]) == 20 - lost
    assert said("a")[-1] == "after"
    assert sum(gap["lines"] for gap in gaps("a")) == (lost if on_error == "warn" else 0)
    is_clean()


UNREADABLE = """
import dendrer, logging, os, sys

logging.disable(logging.CRITICAL)
on_error, store = sys.argv[1:]
run = dendrer.run("a", store=store, on_error=on_error)
run.observe("one")

def locked(yes):
    if os.geteuid() == 0 or yes is False and os.getuid() == 0:
        os.seteuid(65534 if yes else 0)
    else:
        os.chmod(store + "/.dendrer", 0 if yes else 0o755)
        os.chmod(store + "/.dendrer/segments", 0 if yes else 0o755)

locked(True)
for n in range(3):
    try:
        print(run.observe("lost", n=n).what)
        print(run.propose(action={"tool": "t"}, depends_on=["a.b"]).reply.what)
    except dendrer.StoreError as error:
        print("raised", error.code)
locked(False)
print(run.observe("after").what)
locked(True)
try:
    run.close()
    print("closed")
except dendrer.StoreError as error:
    print("raised", error.code)
"""


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs seteuid")
@pytest.mark.parametrize("on_error", ["warn", "raise"])
def test_a_store_that_becomes_unreadable_is_a_fault(on_error: str, folder: Path) -> None:
    """A store that this user may not open any more: gaps and no exception, or `StoreError`; then recording goes on."""
    dendrer.init()
    ran = python(UNREADABLE, on_error, str(folder), timeout=20)
    assert ran.returncode == 0, ran.stderr
    if on_error == "warn":
        assert ran.stdout.split("\n")[:-1] == ["gap"] * 6 + ["committed", "closed"]
        assert [gap["lines"] for gap in gaps("a")] == [6]
        assert said("a") == ["one", "kernel.anomaly", "after"]
    else:
        assert ran.stdout.split("\n")[:-1] == ["raised E0801"] * 3 + ["committed", "raised E0801"]
        assert said("a") == ["one", "after"]
    is_clean()


@pytest.mark.parametrize("on_error", ["warn", "raise"])
def test_a_store_that_is_removed_does_not_disturb_and_acknowledges_nothing(on_error: str) -> None:
    """A step is acknowledged when it is on disk: in a store that was removed it never is."""
    dendrer.init()
    run = dendrer.run("a", on_error=on_error)  # type: ignore[arg-type]
    run.observe("one")
    shutil.rmtree(".dendrer")
    told: list[str] = []
    for _ in range(2):
        try:
            told.append(run.observe("two").what)
        except dendrer.DendrerError:
            assert on_error == "raise"
    with contextlib.suppress(*([dendrer.DendrerError] if on_error == "raise" else [])):
        run.close()
    assert "committed" not in told


def test_a_store_that_cannot_be_made_is_said_at_once() -> None:
    """`run` raises whatever `on_error` is: nothing could ever be recorded."""
    Path("file").write_text("x")
    modes: tuple[Any, ...] = ("warn", "raise")
    for on_error in modes:
        with pytest.raises(dendrer.StoreError):
            dendrer.run("a", store="file/deep", on_error=on_error)
    assert os.listdir() == ["file"]


HOLD = """
import fcntl, sys
lock = open(".dendrer/lock", "r+")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif("DENDRER_SLOW" not in os.environ, reason="takes ten seconds; DENDRER_SLOW=1 runs it")
def test_a_lock_that_another_process_keeps_is_a_fault(caplog: pytest.LogCaptureFixture) -> None:
    """A store that is locked for longer than is waited: a gap with E0802, or `StoreLocked`; then recording goes on."""
    pytest.importorskip("fcntl")
    dendrer.init()
    warn, strict = dendrer.run("a"), dendrer.run("b", on_error="raise")
    warn.observe("one")
    strict.observe("one")
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    raised: list[BaseException] = []

    def strictly() -> None:
        try:
            strict.observe("lost")
        except BaseException as error:
            raised.append(error)

    # Both wait at once: it takes ten seconds.
    thread = threading.Thread(target=strictly)
    thread.start()
    reply = warn.observe("lost")
    thread.join()
    holder.communicate()
    assert reply.what == "gap" and reply.reason is not None and reply.reason["code"] == "E0802"
    assert [type(error) for error in raised] == [dendrer.StoreLocked]
    assert warn.observe("after") and strict.observe("after")
    warn.close()
    strict.close()
    assert said("a") == ["one", "kernel.anomaly", "after"] and said("b") == ["one", "after"]
    assert [gap["lines"] for gap in gaps("a")] == [1]
    assert len(caplog.records) == 1
    is_clean()


NO_SPACE_AT_EXIT = """
import dendrer, resource

run = dendrer.run("a")
run.observe("one")
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
run.observe("lost")
print("done")
"""


def test_a_fault_at_the_exit_of_the_program_changes_nothing_of_it() -> None:
    """A run that cannot be closed at exit leaves the exit code alone, and no traceback."""
    pytest.importorskip("resource")
    dendrer.init()
    ran = python(NO_SPACE_AT_EXIT, timeout=20)
    assert (ran.returncode, ran.stdout) == (0, "done\n")
    assert "Traceback" not in ran.stderr and ran.stderr.count("could not be recorded") == 1


# -- a recording that is closed -------------------------------------------------------------------------------------


def test_a_closed_recording_does_not_disturb() -> None:
    """With `warn` a step behind the end is a gap and no exception, of whatever method."""
    dendrer.init()
    with dendrer.run("a") as run:
        run.observe("one")
    run.close()
    assert run.observe("two").what == "gap"
    assert run.plan("two").what == "gap"
    assert run.commit({"type": "plan.update"}).what == "gap"
    decided = run.propose(action={"tool": "t"}, depends_on=["a"])
    # A recorder that fails stops nothing: nobody denied it.
    assert decided.allowed and decided.reply.what == "gap"
    assert run.result(decided, 1).what == "gap"
    assert ticks("a") == [1]


def test_a_closed_recording_raises_with_raise() -> None:
    """With `raise` it is an error that says to open the run again."""
    dendrer.init()
    with dendrer.run("a", on_error="raise") as run:
        run.observe("one")
    with pytest.raises(dendrer.UsageError, match="closed"):
        run.observe("two")
    assert ticks("a") == [1]


def test_a_task_that_outlives_the_run_is_not_disturbed() -> None:
    """A tool that is called, or returns, behind the end of the `with` still gives its result."""
    dendrer.init()

    @dendrer.tool()
    async def look(n: int) -> int:
        await asyncio.sleep(0.05)
        return n

    async def late() -> int:
        await asyncio.sleep(0.1)
        return await look(2)

    async def main() -> list[int]:
        async with aio.run("a"):
            tasks = [asyncio.create_task(look(1)), asyncio.create_task(late())]
            await asyncio.sleep(0.02)
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == [1, 2]


# -- places and other words of the caller ---------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["a[", "a..b", "\ud800", 1, (), None, b"a"], ids=repr)
def test_a_place_that_is_none_does_not_disturb(place: Any) -> None:
    """A place of the state that cannot be one is a fault of that step: a gap with `warn`, an error with `raise`."""
    dendrer.init()
    with dendrer.run("a") as run:
        decided = run.propose(action={"tool": "t"})
        assert not run.observe("set", {place: 1})
        assert not run.result(decided, 1, set={place: 1})
        run.propose(action={"tool": "t"}, depends_on=[place])
        assert run.observe("after")
    assert said("a")[-1] == "after"
    with dendrer.run("b", on_error="raise") as run, pytest.raises((dendrer.DendrerError, TypeError)):
        run.observe("set", {place: 1})
    is_clean()


def test_depends_on_is_read_once() -> None:
    """An iterator of places, one of which is none: the others are on record."""
    dendrer.init()
    with dendrer.run("a") as run:
        seen = run.observe("x", {"x": 1})
        given: Iterator[Any] = iter(["x", "a[", seen])
        run.propose(action={"tool": "t"}, depends_on=given)
    request = transitions("a")[-1]
    assert request["content"]["intent"]["depends_on"][:1] == ["x"]


@pytest.mark.parametrize(
    "members",
    [{"confidence": float("nan")}, {"confidence": 2}, {"base": "q"}, {"key": {1}}, {"key": ""}, {"delta": {1}}, {"delta": [{"put": "/a"}]}, {"agent": "\ud800"}, {"agent": 5}],
    ids=repr,
)
def test_a_member_that_is_none_is_refused_and_does_not_disturb(members: dict[str, Any]) -> None:
    """A member that a line cannot have: refused or a gap with its code, and the next step is taken."""
    dendrer.init()
    with dendrer.run("a") as run:
        reply = run.observe("x", **members)
        assert not reply and reply.reason is not None and reply.reason["code"].startswith("E0")
        assert run.observe("after")
    with dendrer.run("b", on_error="raise") as run, pytest.raises(dendrer.DendrerError) as caught:
        run.observe("x", **members)
    assert caught.value.code == reply.reason["code"]
    assert "x" not in said("b")


def test_every_other_keyword_goes_into_the_intent() -> None:
    """A name that no member of a line has is kept in the intent, and `description` is refused."""
    dendrer.init()
    words: dict[str, Any] = {"tick": 5, "own": [1], "tool": "x"}
    with dendrer.run("a") as run:
        run.observe("x", **words)
        assert run.observe("y", description="mine").what == "gap"
    first, gap = (item["content"] for item in transitions("a"))
    assert first["intent"] == {"description": "x", **words}
    assert gap["anomalies"][0]["kind"] == "recording_gap"


MISUSES: dict[str, Callable[[Any], Any]] = {
    "a list for changes": lambda run: run.observe("x", [1]),
    "nothing for a line": lambda run: run.commit(None),
    "text for a line": lambda run: run.commit("x"),
    "nothing for an action": lambda run: run.propose(action=None),
    "nothing for a decision": lambda run: run.result(None, 1),
    "text for changes": lambda run: run.observe("x", delta=3),
    "a second description": lambda run: run.plan("x", description="y"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_a_call_that_cannot_be_meant_stops_no_program(name: str) -> None:
    """It is a gap, or an error of this package where the caller asked for errors."""
    dendrer.init()
    with dendrer.run("a") as run:
        MISUSES[name](run)
        run.observe("behind it")
    assert [item["content"].get("anomalies", [{}])[0].get("kind") for item in transitions("a")] == ["recording_gap", None]
    with dendrer.run("b", on_error="raise") as run, pytest.raises(dendrer.UsageError):
        MISUSES[name](run)


@pytest.mark.parametrize(
    "members",
    [{"name": "\ud800"}, {"goal": "\ud800"}, {"agent": "\ud800"}, {"stage": "two"}, {"sync": None}],
    ids=repr,
)
def test_a_run_that_cannot_be_meant_is_an_error_of_this_package(members: dict[str, Any]) -> None:
    """Whatever the argument is."""
    dendrer.init()
    with pytest.raises(dendrer.DendrerError):
        dendrer.run(**{"name": "a", **members})


def test_what_is_not_judged_is_not_allowed_where_the_run_enforces_its_contract() -> None:
    """The stage is that of the run, also where a later recording does not name it."""
    dendrer.init()
    dendrer.run("a", stage=2).close()
    with dendrer.run("a", resume=True) as run:
        assert not run.propose(action={"tool": "pay", "params": list(range(1_000_001))}).allowed
        assert not run.propose(action=cast(Any, None)).allowed


def test_a_place_by_itself_is_one_place() -> None:
    """``depends_on`` takes one as well as several."""
    dendrer.init()
    with dendrer.run("a") as run:
        wrote = run.observe("x", {"hotel": {"price": 3}})
        run.propose(action={"tool": "pay"}, depends_on="hotel.price")
    _, asked = dendrer.open()["a"]
    assert (asked.intent or {})["depends_on"] == ["hotel.price"]
    assert wrote.id in [link["hash"] for link in asked.to_dict()["links"]]


def test_secrets_in_bytes_and_in_text_that_is_no_unicode_are_taken_out() -> None:
    """As in any other text."""
    dendrer.init()
    token = "ghp" + "_eHXCxbWWdXOlkApN83f9ctPxfcbckbamiSTv"
    with dendrer.run("a") as run:
        values: dict[str, Any] = {"d": f"k {token}".encode(), "s": "\ud800" + token, "password": b"hunter2hunter2"}
        run.observe("x", {"v": values, "fine": b"\x00\xff nothing", "odd": [{"a\ud800": token}]})
    state = dendrer.open()["a"].state_at()
    assert all("$redacted" in one for one in state["v"].values()), state
    assert state["fine"] == b"\x00\xff nothing"
    assert token not in command("show", "a@1", "--json").stdout


def test_a_step_has_the_parameters_of_its_call() -> None:
    """And not what the function made of them."""
    dendrer.init()

    @dendrer.step("plan.update")
    def drain(queue: list[int], options: dict[str, str]) -> str:
        queue.clear()
        options["k"] = "changed"
        return "ok"

    with dendrer.run("a"):
        drain([1, 2, 3], {"k": "asked"})
    assert transitions("a")[0]["content"]["intent"]["params"] == {"queue": [1, 2, 3], "options": {"k": "asked"}}


def test_a_tool_that_promises_is_recorded_when_it_keeps_or_breaks_it() -> None:
    """Also where nothing but what it returns says that it promises; what yields is refused."""
    dendrer.init()

    class Later:
        async def __call__(self, good: bool) -> int:
            await asyncio.sleep(0)
            if not good:
                raise ValueError("broken")
            return 7

    async def both() -> None:
        later = dendrer.tool(name="later")(Later())
        with dendrer.run("a"):
            assert await later(True) == 7
            with pytest.raises(ValueError, match="broken"):
                await later(False)

    asyncio.run(both())
    results = [item["content"]["result"] for item in transitions("a") if item["type"] == "action.result"]
    assert [(one["status"], one.get("output")) for one in results] == [("ok", 7), ("error", None)]

    def rows() -> Iterator[int]:
        yield 1

    async def later_rows() -> AsyncIterator[int]:
        yield 1

    for yields in (rows, later_rows):
        with pytest.raises(dendrer.UsageError, match="yields"):
            dendrer.tool()(yields)
        with pytest.raises(dendrer.UsageError, match="yields"):
            dendrer.step()(yields)


def test_an_agent_that_yields_has_its_name_while_it_works_and_no_longer() -> None:
    """What is sent to it and raised in it arrives there."""
    dendrer.init()
    told: list[Any] = []

    @dendrer.agent("reader")
    def stream() -> Generator[int, str, str]:
        run = dendrer.current()
        assert run is not None
        try:
            while True:
                run.observe("within")
                try:
                    told.append((yield len(told)))
                except KeyError:
                    told.append("key")
                    return "end"
        finally:
            run.observe("closed")

    @dendrer.agent("later")
    async def stream_later() -> AsyncGenerator[int, None]:
        run = dendrer.current()
        assert run is not None
        for number in range(2):
            run.observe("within")
            yield number

    async def drive(run: Any) -> None:
        async for _ in stream_later():
            run.observe("between")

    with dendrer.run("a", agent="host") as run:
        body = stream()
        assert next(body) == 0
        run.observe("between")
        assert body.send("more") == 1
        with pytest.raises(StopIteration) as ended:
            body.throw(KeyError())
        assert ended.value.value == "end"
        asyncio.run(drive(run))
        left = stream()
        next(left)
        left.close()
    assert told == ["more", "key"]
    agents = [(item["content"]["intent"]["description"], item["agent"]) for item in transitions("a")]
    assert agents == [
        ("within", "reader"), ("between", "host"), ("within", "reader"), ("closed", "reader"),
        ("within", "later"), ("between", "host"), ("within", "later"), ("between", "host"),
        ("within", "reader"), ("closed", "reader"),
    ]  # fmt: skip


def test_a_value_may_record_while_it_is_recorded() -> None:
    """A value whose own method records a step, and a handler of the log that does, wait for nothing."""
    dendrer.init()

    class Inner:
        model_fields: dict[str, Any] = {}

        def model_dump(self, mode: str) -> Any:
            return {"inner": run.observe("inner").tick if mode == "json" else 0}

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            run.observe("logged")

    handler = Handler()
    logging.getLogger("dendrer").addHandler(handler)
    try:
        with dendrer.run("a") as run:
            assert run.observe("outer", v=Inner()).tick == 2
            run.observe("bad", v={1})
    finally:
        logging.getLogger("dendrer").removeHandler(handler)
    assert sorted(said("a")) == ["bad", "inner", "logged", "outer"]


# -- functions that record themselves -------------------------------------------------------------------------------


class Hostile:
    """Everything that it is asked fails."""

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    __str__ = __repr__

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise RuntimeError("bool")


class HostileError(Exception):
    """An error that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("str")

    __repr__ = __str__


@pytest.mark.parametrize("decorate", [dendrer.tool(), dendrer.tool(effect="effectful", name="t"), dendrer.step(), dendrer.step("memory.write"), dendrer.agent("ann")])
def test_a_function_that_records_itself_is_what_it_was(decorate: Callable[[Any], Any]) -> None:
    """Arguments, the very object that is returned, the very error that is raised, name and signature stay."""
    dendrer.init()
    given, made, error = Hostile(), Hostile(), HostileError()

    @decorate
    def work(one: Any, /, two: Any = 2, *rest: Any, fails: bool = False, **more: Any) -> Any:
        """Works."""
        assert one is given and more.get("key", given) is given
        if fails:
            raise error
        return made

    assert (work.__name__, work.__doc__) == ("work", "Works.") and "fails" in inspect.signature(work).parameters
    with dendrer.run("a") as run:
        assert work(given, given, given, key=given) is made
        with pytest.raises(HostileError) as caught:
            work(given, fails=True)
        assert caught.value is error and error.__cause__ is None and error.__context__ is None
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            work()
        assert run.observe("after")
    assert work(given) is made
    is_clean()


def test_methods_of_every_kind_can_record_themselves() -> None:
    """Methods, class methods, static methods, partial functions, callable objects and generators."""
    dendrer.init()

    class Tools:
        @dendrer.tool()
        def method(self, n: int) -> int:
            return n

        @classmethod
        @dendrer.tool()
        def of_class(cls, n: int) -> int:
            return n

        @staticmethod
        @dendrer.tool()
        def static(n: int) -> int:
            return n

        def __call__(self, n: int) -> int:
            return n

    count: Callable[[int], Any] = lambda n: (i for i in range(n))
    counted = dendrer.tool(name="counted")(count)
    partial = dendrer.tool(name="partial")(functools.partial(pow, 2))
    called = dendrer.tool(name="called")(Tools())
    with dendrer.run("a"):
        assert (Tools().method(1), Tools.of_class(2), Tools.static(3), partial(4), called(5)) == (1, 2, 3, 16, 5)
        assert list(counted(3)) == [0, 1, 2]
    r = dendrer.open()["a"]
    params = [(t.action or {}).get("params") for t in r if t.type == "action.request"]
    assert params[:3] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert [(t.action or {})["tool"] for t in r if t.type == "action.request"][3:] == ["partial", "called", "counted"]


def test_a_parameter_of_any_name_is_recorded() -> None:
    """A function whose parameters are called as those of a method, or as the recorder's own."""
    dendrer.init()

    @dendrer.tool()
    def send(self: str, cls: int, tool: str, recording: int = 1, **function: int) -> str:
        return self

    with dendrer.run("a"):
        assert send("x", 2, tool="t", args=3) == "x"
    assert transitions("a")[0]["content"]["action"]["params"] == {"self": "x", "cls": 2, "tool": "t", "recording": 1, "function": {"args": 3}}


def test_a_partial_function_needs_no_name_to_record_itself() -> None:
    """A callable without a name can be a tool and a step."""
    dendrer.init()
    add = dendrer.tool()(functools.partial(pow, 2))
    think = dendrer.step()(functools.partial(pow, 3))
    with dendrer.run("a"):
        assert (add(3), think(2)) == (8, 9)


def test_a_tool_that_raises_is_recorded_with_status_error() -> None:
    """Its result is linked to the request and names the error; `KeyboardInterrupt` and `SystemExit` as well."""
    dendrer.init()

    @dendrer.tool()
    def fails(error: str) -> None:
        raise {"value": ValueError("no"), "interrupt": KeyboardInterrupt(), "exit": SystemExit(3)}[error]

    with dendrer.run("a"):
        for name, kind in (("value", ValueError), ("interrupt", KeyboardInterrupt), ("exit", SystemExit)):
            with pytest.raises(kind):
                fails(name)
    results = [item["content"]["result"] for item in transitions("a") if item["type"] == "action.result"]
    assert [result["status"] for result in results] == ["error"] * 3
    assert [result["error"]["type"] for result in results] == ["ValueError", "KeyboardInterrupt", "SystemExit"]
    assert results[0]["error"]["message"] == "no"


def test_a_function_goes_on_where_nothing_can_be_recorded() -> None:
    """On a broken store tools, steps and agents work as without a run."""
    pytest.importorskip("resource")
    dendrer.init()
    code = """
import dendrer, resource

@dendrer.tool()
def double(n): return 2 * n

@dendrer.step()
def think(n):
    if n == 2: raise ValueError(n)
    return double(n)

with dendrer.run("a"):
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    assert [think(1), think(3)] == [2, 6]
    try: think(2)
    except ValueError as error: print("fine", error)
"""
    ran = python(code, timeout=20)
    assert (ran.returncode, ran.stdout) == (0, "fine 2\n"), ran.stderr


# -- what is always raised ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_error", ["warn", "raise"])
def test_stale_is_always_raised(on_error: str) -> None:
    """A step that was decided on an older tick raises `Stale` with the last one, and is not on record."""
    dendrer.init()
    with dendrer.run("a", on_error=on_error) as run:  # type: ignore[arg-type]
        run.observe("one", {"n": 1})
        run.observe("two", base=1)
        calls: list[Callable[[], Any]] = [
            lambda: run.observe("x", base=1),
            lambda: run.plan("x", base=0),
            lambda: run.remember("x", base=0),
            lambda: run.complete("x", base=0),
            lambda: run.propose(action={"tool": "t"}, base=1),
            lambda: run.commit({"type": "plan.update", "base": 1}),
            lambda: run.step("llm_reply", "m", base=1),
            lambda: run.observe("ahead", base=9),
        ]
        for call in calls:
            with pytest.raises(dendrer.Stale) as caught:
                call()
            assert (caught.value.code, caught.value.head) == ("E0407", 2)
        assert run.observe("three", base=2).tick == 3
    assert said("a") == ["one", "two", "three"] and gaps("a") == []


@pytest.mark.parametrize("on_error", ["warn", "raise"])
def test_a_key_of_another_step_is_always_raised(on_error: str) -> None:
    """The same step again is answered with the first one; another one with its key raises `KeyReused`."""
    dendrer.init()
    with dendrer.run("a", on_error=on_error) as run:  # type: ignore[arg-type]
        first = run.observe("one", {"n": 1}, key="k")
        again = run.observe("one", {"n": 1}, key="k", base=0)
        assert (again.what, again.tick, again.id, bool(again)) == ("repeated", 1, first.id, True)
        with pytest.raises(dendrer.KeyReused) as caught:
            run.observe("two", key="k")
        assert caught.value.code == "E0433"
    with dendrer.run("a", on_error=on_error, resume=True) as run:  # type: ignore[arg-type]
        assert run.observe("one", {"n": 1}, key="k").what == "repeated"
    assert ticks("a") == [1] and gaps("a") == []


CLOSED_TYPES = ["kernel.anomaly", "predicate.violation", "run.fork", "run.cherrypick", "bisect.result", "diff.summary", "causal.chain", "policy.contract_extension"]


@pytest.mark.parametrize("on_error", ["warn", "raise"])
def test_what_belongs_to_another_author_is_always_raised_and_on_record(on_error: str) -> None:
    """A line of a type of the kernel or the institution, or by another author, raises and is named by a `kernel.anomaly`."""
    dendrer.init()
    lines: list[dict[str, Any]] = [
        *({"type": name} for name in CLOSED_TYPES),
        {"type": "plan.update", "author": "runtime"},
        {"type": "plan.update", "author": "user"},
        {"type": "plan.update", "policy": {"decision": "allow"}},
        {"type": "plan.update", "anomalies": [{"kind": "k", "text": "t"}]},
    ]
    with dendrer.run("a", on_error=on_error) as run:  # type: ignore[arg-type]
        for line in lines:
            with pytest.raises(dendrer.AuthorshipError) as caught:
                run.commit(line)
            assert caught.value.code in ("E0401", "E0408", "E0427")
        with pytest.raises(dendrer.AuthorshipError):
            dendrer.step("kernel.anomaly")(lambda: 1)()
        assert run.observe("after")
    assert said("a") == ["kernel.anomaly"] * (len(lines) + 1) + ["after"]
    kinds = {anomaly["kind"] for item in transitions("a")[:-1] for anomaly in item["content"]["anomalies"]}
    assert all(kind.startswith("forged_") for kind in kinds), kinds


def test_nobody_is_called_as_the_kernel_is() -> None:
    """An agent cannot have the name of the kernel or the institution."""
    dendrer.init()
    with dendrer.run("a") as run:
        for name in ("kernel", "institution"):
            with pytest.raises(dendrer.AuthorshipError):
                run.observe("x", agent=name)
            with pytest.raises(dendrer.DendrerError):
                dendrer.agent(name)(lambda: run.observe("x"))()
    assert "x" not in said("a")


def test_an_agent_writes_no_result_of_the_runtime() -> None:
    """What `author` allows is what `commit --as` allows."""
    dendrer.init()
    with dendrer.run("a", author="runtime") as run:
        assert run.commit({"type": "policy.decision", "policy": {"decision": "allow"}})
    with dendrer.run("b", author="user") as run:
        assert run.observe("a remark")
        with pytest.raises(dendrer.AuthorshipError):
            run.commit({"type": "action.result", "result": {"status": "ok"}})


# -- interrupts -----------------------------------------------------------------------------------------------------


@dataclass
class Interrupts:
    """Its field is interrupted while it is read."""

    value: int = 1

    def __getattribute__(self, name: str) -> Any:
        if name == "value":
            raise KeyboardInterrupt
        return object.__getattribute__(self, name)


class InterruptedClass(type):
    """A class whose attributes are interrupted."""

    def __getattr__(cls, name: str) -> Any:
        raise KeyboardInterrupt


class Model:
    """As pydantic has them, and interrupted."""

    model_fields: dict[str, Any] = {}

    def model_dump(self, mode: str) -> Any:
        """Interrupted."""
        raise KeyboardInterrupt


class Exits(Model):
    """As pydantic has them, and leaves the program."""

    def model_dump(self, mode: str) -> Any:
        """Leaves."""
        raise SystemExit(3)


INTERRUPTING: dict[str, Callable[[], Any]] = {
    "dataclass": lambda: Interrupts(),
    # Not a name of this module, since pytest looks at those.
    "class": lambda: InterruptedClass("Of", (), {})(),
    "model": lambda: Model(),
    "model that exits": lambda: Exits(),
}


@pytest.mark.parametrize("on_error", ["warn", "raise"])
@pytest.mark.parametrize("kind", INTERRUPTING)
def test_an_interrupt_of_a_value_passes_through(kind: str, on_error: str) -> None:
    """`KeyboardInterrupt` is not the recorder's: it goes on, the step is not on record, and nothing is counted as lost."""
    dendrer.init()
    with dendrer.run("a", on_error=on_error) as run:  # type: ignore[arg-type]
        run.observe("one")
        with pytest.raises(SystemExit if kind == "model that exits" else KeyboardInterrupt):
            run.observe("two", {"x": [INTERRUPTING[kind]()]})
        assert run.observe("three").tick == 2
    assert said("a") == ["one", "three"]
    is_clean()


INTERRUPTED = """
import dendrer, os, signal, threading, time
# A shell starts what it runs in the background with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
n = 0
with dendrer.run("a", on_error="raise") as run:
    main = threading.get_ident()
    threading.Thread(target=lambda: (time.sleep(0.3), signal.pthread_kill(main, signal.SIGINT)), daemon=True).start()
    try:
        while True:
            run.observe("step", n=n)
            n += 1
    except KeyboardInterrupt:
        run.observe("interrupted")
print(n)
"""


def test_ctrl_c_ends_a_program_that_records_and_loses_nothing() -> None:
    """Interrupted between two steps or in one, every acknowledged step is there, and recording goes on."""
    dendrer.init()
    ran = python(INTERRUPTED, timeout=20)
    assert ran.returncode == 0, ran.stderr
    told = said("a")
    assert told[-1] == "interrupted" and set(told[:-1]) == {"step"}
    assert len(told) - 1 - int(ran.stdout) in (0, 1)
    is_clean()


# -- errors ---------------------------------------------------------------------------------------------------------

CLASSES: list[type[dendrer.DendrerError]] = [
    found for found in map(vars(dendrer).get, dendrer.__all__) if isinstance(found, type) and issubclass(found, dendrer.DendrerError)
]


def test_the_documented_errors_are_there() -> None:
    """The classes that the pages name, each below the one that they say."""
    for name in ("UsageError", "NotFound", "IntegrityError", "Refused", "PredicateRejected", "StageError", "ReplayDivergence", "StoreError", "VaultLocked"):
        assert getattr(dendrer, name) in CLASSES
    for above, below in {
        dendrer.StoreError: (dendrer.StoreLocked, dendrer.FormatTooNew),
        dendrer.PredicateRejected: (dendrer.ImpurePredicate, dendrer.NonMonotonePredicate),
        dendrer.Refused: (dendrer.Stale, dendrer.KeyReused, dendrer.AuthorshipError, dendrer.ContractViolation, dendrer.ApprovalRequired),
    }.items():
        assert all(issubclass(kind, above) for kind in below)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_can_be_copied_and_pickled(kind: type[dendrer.DendrerError]) -> None:
    """A copy is of the same class, with the same code, data, help and text."""
    data = {
        "code": kind.default_code,
        "message": "m",
        "where": {"path": "/a", "tick": 3, "needs": "2", "has": "1", "recorded": 1, "made": 2},
        "help": [{"argv": ["dendrer", "log"]}],
        "notes": [],
    }
    for error in (kind("text"), kind("error[E]: text\nwith lines", data)):
        for again in (copy.copy(error), copy.deepcopy(error), *(pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1))):
            assert type(again) is kind
            assert (again.code, again.data, again.help, str(again), again.args) == (error.code, error.data, error.help, str(error), error.args)
            for name in ("path", "tick", "head", "heads", "expected", "actual", "needs", "has", "required", "missing", "mismatched", "ticks"):
                assert getattr(again, name, None) == getattr(error, name, None)


def test_real_errors_can_be_pickled() -> None:
    """Those that are raised by the package, with their text and what they hold."""
    dendrer.init()
    errors: list[dendrer.DendrerError] = []

    def catch(call: Callable[[], Any]) -> None:
        with pytest.raises(dendrer.DendrerError) as caught:
            call()
        errors.append(caught.value)

    with dendrer.run("a", on_error="raise") as run:
        run.observe("one", {"n": 1}, key="k")
        catch(lambda: run.observe("x", v={1}))
        catch(lambda: run.observe("x", base=0))
        catch(lambda: run.observe("x", key="k"))
        catch(lambda: run.commit({"type": "kernel.anomaly"}))
        catch(lambda: run.commit({"type": "nothing.such"}))
    catch(lambda: dendrer.open("nowhere"))
    catch(lambda: dendrer.open()["b"])
    catch(lambda: dendrer.open()["a"].state_at(path="x"))
    catch(lambda: dendrer.open()["a"].bisect(holds="1 +"))
    assert [type(error).__name__ for error in errors[:5]] == ["ValueNotRecordable", "Stale", "KeyReused", "AuthorshipError", "Refused"]
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.code, again.data, str(again)) == (type(error), error.code, error.data, str(error))
    assert pickle.loads(pickle.dumps(errors[0])).path == "/intent/v"
    assert pickle.loads(pickle.dumps(errors[1])).head == 1


def test_an_error_of_a_worker_arrives_in_the_parent() -> None:
    """A process pool hands errors over with class and code."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, get_context("spawn")) as pool, pytest.raises(dendrer.NotFound) as caught:
        pool.submit(dendrer.open, "/nowhere").result(timeout=20)
    assert caught.value.code == "E0103"


def test_a_refusal_is_a_reply_with_warn_and_an_error_with_raise() -> None:
    """What the kernel refuses is on record as a refusal; `reason` has code and message."""
    dendrer.init()
    with dendrer.run("a") as run:
        for line, code in (
            ({"type": "tool.call"}, "E0402"),
            ({"type": "plan.update", "delta": [{"set": "/policy/x", "value": 1}]}, "E0405"),
            ({"type": "plan.update", "delta": [{"remove": "/nothing"}]}, "E0404"),
            ({"type": "plan.update", "intnet": {}}, "E0209"),
        ):
            reply = run.commit(line)
            assert (reply.what, reply.tick, bool(reply)) == ("refused", None, False)
            assert reply.reason is not None and (reply.reason["code"], bool(reply.reason["message"])) == (code, True)
    refusals = [item for item in document("log", "a", "--refusals")["items"] if item["kind"] == "refusal"]
    assert len(refusals) == 4
    with dendrer.run("b", on_error="raise") as run, pytest.raises(dendrer.Refused) as caught:
        run.commit({"type": "tool.call"})
    assert caught.value.code == "E0402"


def test_a_recorder_does_not_slow_an_error_of_the_host() -> None:
    """A hundred faults in a row take no longer than steps do."""
    dendrer.init()
    begun = time.monotonic()
    with dendrer.run("a") as run:
        for _ in range(100):
            run.observe("x", {"a[": 1})
        assert run.observe("after").tick == 2
    assert [gap["lines"] for gap in gaps("a")] == [100]
    assert time.monotonic() - begun < 2
