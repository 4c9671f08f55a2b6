"""LangGraph on the record: graphs that run, go back, are interrupted, and are served by several workers."""

from __future__ import annotations

import asyncio
import json
import operator
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

import pytest

pytest.importorskip("langgraph.graph")

from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

import dendrer
from dendrer.langgraph import DendrerSaver, acopy_from, copy_from
from helpers import document


class State(TypedDict):
    """What the test graph keeps."""

    messages: Annotated[list[str], operator.add]
    n: int


def graph(saver: BaseCheckpointSaver[Any], *, steps: int = 3, asks: bool = False) -> Any:
    """A graph that counts, and that asks a person before the last step."""

    def work(state: State) -> dict[str, Any]:
        return {"messages": [f"step {state['n'] + 1}"], "n": state["n"] + 1}

    def last(state: State) -> dict[str, Any]:
        said = interrupt("go on?") if asks else "yes"
        return {"messages": [f"said {said}"]}

    def more(state: State) -> str:
        return "work" if state["n"] < steps else "last"

    built: Any = StateGraph(State)
    built.add_node("work", work)
    built.add_node("last", last)
    built.add_edge(START, "work")
    built.add_conditional_edges("work", more, ["work", "last"])
    built.add_edge("last", END)
    return built.compile(checkpointer=saver)


def thread(name: str = "user:1", checkpoint: str | None = None) -> dict[str, Any]:
    """The config of a thread."""
    given: dict[str, Any] = {"thread_id": name}
    if checkpoint is not None:
        given["checkpoint_id"] = checkpoint
    return {"configurable": given}


def command(*args: str) -> Any:
    """What the command prints under --json."""
    run = subprocess.run(["dendrer", *args, "--json"], capture_output=True, text=True, check=False)
    assert run.stdout, run.stderr
    return json.loads(run.stdout)


FIRST = {"messages": ["hello"], "n": 0}


def test_a_graph_runs_and_its_channels_are_state() -> None:
    """What a channel holds is asked by the command, like any state."""
    with DendrerSaver("s") as saver:
        out = graph(saver).invoke(FIRST, thread())
        assert out["messages"] == ["hello", "step 1", "step 2", "step 3", "said yes"]
        (run,) = saver.runs_of("user:1")
    assert run.startswith("lg-")
    state = command("state", run, "--store", "s")["value"]
    assert state["values"]["messages"] == out["messages"]
    found = command("bisect", run, "--holds", "size(state.values.messages) < 4", "--store", "s")
    assert (found["outcome"], found["certainty"]) == ("onset", "exact")
    asked = dendrer.open("s")[run]
    assert asked.verify(replay=True).verdict in ("VERIFIED", "INTACT")
    assert len(asked.state_at(found["onset"], path="values.messages")) == 4
    assert len(asked.state_at(found["onset"] - 1, path="values.messages")) == 3
    # Before the first message nothing can be said of messages.
    assert len(asked.state_at(found["since"], path="values.messages")) == 1
    never = asked.bisect(holds="size(state.values.messages) < 50")
    assert never.outcome == "never"


def test_it_says_what_the_saver_in_memory_says() -> None:
    """The same graph, on both: the same history, values, writes and metadata."""
    memory = InMemorySaver()
    graph(memory).invoke(FIRST, thread())
    with DendrerSaver("s") as saver:
        graph(saver).invoke(FIRST, thread())
        ours = list(graph(saver).get_state_history(thread()))
        theirs = list(graph(memory).get_state_history(thread()))
        plain = [(one.values, one.next, {**one.metadata, "run_id": None}, len(one.tasks)) for one in ours]
        assert plain == [(one.values, one.next, {**one.metadata, "run_id": None}, len(one.tasks)) for one in theirs]


def test_a_checkpoint_of_before_is_a_fork_where_it_was_asked_for() -> None:
    """Time travel: the thread has two runs then, and both stay."""
    with DendrerSaver("s") as saver:
        app = graph(saver)
        app.invoke(FIRST, thread())
        history = list(app.get_state_history(thread()))
        old = next(one for one in history if one.values.get("n") == 1)
        changed = app.update_state(old.config, {"messages": ["changed"], "n": 2})
        out = app.invoke(None, changed)
        assert out["messages"] == ["hello", "step 1", "changed", "step 3", "said yes"]
        first, second = saver.runs_of("user:1")
        assert app.get_state(thread()).values == out
        assert len(list(app.get_state_history(thread()))) > len(history)
    run = dendrer.open("s")[second]
    assert run.parent is not None and run.parent[0] == first
    assert run.state_at(path="values.messages") == out["messages"]
    assert dendrer.open("s")[first].state_at(path="values.messages")[1:3] == ["step 1", "step 2"]


def test_an_interrupt_is_resumed_by_another_process_of_the_thread() -> None:
    """What a person answers comes to the task that asked."""
    with DendrerSaver("s") as saver:
        out = graph(saver, asks=True).invoke(FIRST, thread("t"))
        assert out["__interrupt__"][0].value == "go on?"
    with DendrerSaver("s") as saver:
        out = graph(saver, asks=True).invoke(Command(resume="no"), thread("t"))
        assert out["messages"][-1] == "said no"


def test_subgraphs_have_places_of_their_own() -> None:
    """The checkpoints of a subgraph are in the run of the thread, below /subgraphs."""

    def inner(state: State) -> dict[str, Any]:
        return {"messages": ["inner " + str(interrupt("inner?"))], "n": 1}

    sub: Any = StateGraph(State)
    sub.add_node("inner", inner)
    sub.add_edge(START, "inner")
    outer: Any = StateGraph(State)
    outer.add_node("sub", sub.compile(checkpointer=True))
    outer.add_edge(START, "sub")
    with DendrerSaver("s") as saver:
        app = outer.compile(checkpointer=saver)
        app.invoke(FIRST, thread("t"))
        found = app.get_state(thread("t"), subgraphs=True)
        assert found.tasks[0].state.values["messages"] == ["hello"]
        out = app.invoke(Command(resume="yes"), thread("t"))
        assert out["messages"][-1] == "inner yes"
        assert saver.runs_of("t") == ["t"]
    state = dendrer.open("s")["t"].state_at()
    (namespace,) = state["subgraphs"]
    assert namespace.startswith("sub")
    assert state["subgraphs"][namespace]["messages"][-1] == "inner yes"


def test_three_workers_serve_a_thread_in_turn() -> None:
    """Each has a saver of its own, open all the time."""
    savers = [DendrerSaver("s") for _ in range(3)]
    try:
        for turn in range(6):
            app = graph(savers[turn % 3], steps=1)
            out = app.invoke({"messages": [f"turn {turn}"], "n": 0}, thread("t"))
        assert [one for one in out["messages"] if one.startswith("turn")] == [f"turn {n}" for n in range(6)]
        for saver in savers:
            assert saver.runs_of("t") == ["t"]
            assert graph(saver).get_state(thread("t")).values == out
    finally:
        for saver in savers:
            saver.close()


def checkpoint(
    saver: DendrerSaver, name: str, parent: dict[str, Any] | None, *, version: int = 1, made_by: str | None = None, **values: Any
) -> dict[str, Any]:
    """Puts a checkpoint behind another one."""
    config = parent or {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
    made: dict[str, Any] = {**empty_checkpoint(), "id": str(uuid6()), "channel_values": values}
    made["channel_versions"] = {name: version for name in values}
    about: Any = {"source": "loop", "step": 1, **({} if made_by is None else {"run_id": made_by})}
    put = saver.put(cast(Any, config), cast(Any, made), about, made["channel_versions"])
    return cast("dict[str, Any]", put)


def test_a_writer_that_was_overtaken_is_told_both_heads() -> None:
    """Two writers on one parent: the second one is refused, and nothing of it is put."""
    with DendrerSaver("s") as one, DendrerSaver("s") as other:
        first = checkpoint(one, "t", None, k="first")
        second = checkpoint(one, "t", first, k="second")
        with pytest.raises(dendrer.StaleCheckpoint) as error:
            checkpoint(other, "t", first, k="stale")
        id = "checkpoint_id"
        assert error.value.heads == [first["configurable"][id], second["configurable"][id]]
        assert error.value.code == "E0407"
        found = other.get_tuple(cast(Any, thread("t")))
        assert found is not None and found.checkpoint["channel_values"] == {"k": "second"}
        # A writer that has read the thread again goes on.
        third = checkpoint(other, "t", second, k="third")
        # And one that asks for the older one by its id makes a fork.
        assert other.get_tuple(cast(Any, first)) is not None
        checkpoint(other, "t", first, k="fork")
        assert other.runs_of("t") == ["t", "t+2"]
        assert checkpoint(one, "t", third, k="fourth")


def test_two_first_checkpoints_that_race_both_stand() -> None:
    """Each begins a run; the thread names both."""
    savers = [DendrerSaver("s") for _ in range(4)]
    threads = [threading.Thread(target=checkpoint, args=(saver, "t", None), kwargs={"k": n}) for n, saver in enumerate(savers)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    runs = savers[0].runs_of("t")
    found = [one.checkpoint["channel_values"]["k"] for one in savers[0].list(cast(Any, thread("t")))]
    for saver in savers:
        saver.close()
    assert runs == ["t", "t+2", "t+3", "t+4"]
    assert sorted(found) == [0, 1, 2, 3]
    told = command("verify", "--all", "--store", "s")
    assert {item["run"] for item in told["items"]} >= set(runs)


def test_many_writers_lose_nothing() -> None:
    """Eight threads of a process and four savers put writes beside one checkpoint; each is there once."""
    savers = [DendrerSaver("s") for _ in range(4)]
    first = checkpoint(savers[0], "t", None, k=0)

    def write(number: int) -> None:
        for part in range(5):
            savers[number % 4].put_writes(cast(Any, first), [("k", (number, part))], f"task {number}-{part}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    found = savers[3].get_tuple(cast(Any, first))
    for saver in savers:
        saver.close()
    assert found is not None and found.pending_writes is not None
    values = sorted(tuple(value) for _, _, value in found.pending_writes)
    assert values == sorted((number, part) for number in range(8) for part in range(5))


def test_writes_may_come_before_their_checkpoint() -> None:
    """LangGraph does so; they are found beside it."""
    with DendrerSaver("s") as saver:
        id = str(uuid6())
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": id}}
        saver.put_writes(cast(Any, config), [("k", 1)], "task", "path")
        made = {**empty_checkpoint(), "id": id, "channel_values": {"k": 0}, "channel_versions": {"k": 1}}
        empty = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        saver.put(cast(Any, empty), cast(Any, made), {"source": "input", "step": -1}, {"k": 1})
        found = saver.get_tuple(cast(Any, config))
        assert found is not None and found.pending_writes == [("task", "k", 1)]
        assert saver.runs_of("t") == ["t"]


def test_a_secret_is_in_no_file_and_comes_back_exact() -> None:
    """The record has a redacted decoding, the vault the bytes."""
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    with DendrerSaver("s") as saver:
        put = checkpoint(saver, "t", None, messages=[f"use {secret} please", b"\x00\xff"])
        saver.put_writes(cast(Any, put), [("messages", [secret])], "task")
        found = saver.get_tuple(cast(Any, put))
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"] == [f"use {secret} please", b"\x00\xff"]
        assert found.pending_writes == [("task", "messages", [secret])]
    for file in Path("s").rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes(), file
    assert "redacted" in str(dendrer.open("s")["t"].state_at(path="values.messages"))
    text = dendrer.open("s")["t"].export()
    assert secret.encode() not in text


def test_without_the_key_of_the_vault_the_saver_says_so(tmp_path: Path) -> None:
    """The key lies with the signing key, not in the store."""
    with DendrerSaver("s") as saver:
        put = checkpoint(saver, "t", None, k=1)
    keys = list((tmp_path / "home").rglob("*.vault"))
    assert len(keys) == 1
    checks = {check["name"]: check for check in document("doctor", "--store=s")["items"]}
    assert checks["vault"]["level"] == "ok"
    keys[0].rename(keys[0].with_suffix(".away"))
    checks = {check["name"]: check for check in document("doctor", "--store=s", exits=(0,))["items"]}
    assert checks["vault"]["level"] == "warn" and checks["vault"]["code"] == "E0465"
    with DendrerSaver("s") as saver:
        with pytest.raises(dendrer.VaultLocked) as error:
            saver.get_tuple(cast(Any, put))
        assert error.value.code == "E0465"
        with pytest.raises(dendrer.VaultLocked):
            checkpoint(saver, "t", put, k=2)


@pytest.mark.parametrize("where", ["record", "value"])
def test_an_edited_checkpoint_is_refused(where: str) -> None:
    """A byte that was changed in the log is no other checkpoint: of a record, or of the encrypted values beside it."""
    with DendrerSaver("s") as saver:
        put = checkpoint(saver, "t", None, k="x" * 5000)
        checkpoint(saver, "t", put, k="y" * 5000)
    for file in Path("s/.dendrer/segments").iterdir():
        data = bytearray(file.read_bytes())
        mark = b'"commitment"' if where == "record" else b"DNDV"
        at = data.index(mark)
        while at >= 0:
            data[at + len(mark) + 20] ^= 1
            at = data.find(mark, at + 1) if where == "value" else -1
        file.write_bytes(bytes(data))
    with pytest.raises(dendrer.DendrerError) as error, DendrerSaver("s") as saver:
        saver.get_tuple(cast(Any, put))
    assert isinstance(error.value, (dendrer.IntegrityError, dendrer.StoreError))


def test_deletion_erases_and_says_so() -> None:
    """What is deleted is in no file; the record of the deletion is, and the rest verifies."""
    with DendrerSaver("s") as saver:
        put = checkpoint(saver, "t", None, k="very private words")
        saver.put_writes(cast(Any, put), [("k", "private writes")], "task")
        checkpoint(saver, "other", None, k="stays")
        saver.delete_thread("t")
        assert saver.get_tuple(cast(Any, thread("t"))) is None
        assert list(saver.list(cast(Any, thread("t")))) == []
        new = checkpoint(saver, "t", None, k="again")
        assert saver.runs_of("t") == ["t", "t+2"]
    for file in Path("s").rglob("*"):
        if file.is_file():
            for words in (b"very private words", b"private writes"):
                assert words not in file.read_bytes(), file
    assert command("verify", "--all", "--store", "s")["verdict"] in ("INTACT", "VERIFIED", "UNVERIFIABLE")
    told = command("log", "t", "--store", "s")
    assert told["closed"] or any(item["kind"] != "transition" for item in told["items"]) or told["items"]
    with DendrerSaver("s") as saver:
        found = saver.get_tuple(cast(Any, new))
        assert found is not None and found.checkpoint["channel_values"] == {"k": "again"}
        assert [one.config["configurable"]["thread_id"] for one in saver.list(None)] == ["t", "other"]


def test_an_encrypted_serializer_leaves_nothing_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record has commitments alone then."""
    pytest.importorskip("Crypto")
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    with DendrerSaver("s", serde=serde) as saver:
        put = checkpoint(saver, "t", None, k="plain words")
        found = saver.get_tuple(cast(Any, put))
        assert found is not None and found.checkpoint["channel_values"] == {"k": "plain words"}
    state = dendrer.open("s")["t"].state_at()
    assert list(state["values"]["k"]) == ["$vault"]
    for file in Path("s").rglob("*"):
        if file.is_file():
            assert b"plain words" not in file.read_bytes(), file


@pytest.mark.parametrize("is_async", [False, True])
def test_threads_come_from_any_saver(is_async: bool) -> None:
    """What another saver has is read here as it was there, forks and writes included."""
    memory = InMemorySaver()
    app = graph(memory, asks=True)
    app.invoke(FIRST, thread("a"))
    app.invoke(FIRST, thread("b"))
    old = list(app.get_state_history(thread("a")))[3]
    app.invoke(None, app.update_state(old.config, {"n": 2}))
    if is_async:
        count = asyncio.run(acopy_from(memory, "s"))
    else:
        count = copy_from(memory, "s")
    with DendrerSaver("s") as saver:
        for name in ("a", "b"):
            ours = {one.config["configurable"]["checkpoint_id"]: one for one in saver.list(cast(Any, thread(name)))}
            theirs = {one.config["configurable"]["checkpoint_id"]: one for one in memory.list(cast(Any, thread(name)))}
            assert ours.keys() == theirs.keys()
            for id, one in ours.items():
                assert one.checkpoint == theirs[id].checkpoint
                assert one.metadata == theirs[id].metadata
                assert one.parent_config == theirs[id].parent_config
                assert sorted(map(str, one.pending_writes or [])) == sorted(map(str, theirs[id].pending_writes or []))
        assert len(saver.runs_of("a")) == 2
        out = graph(saver, asks=True).invoke(Command(resume="yes"), thread("b"))
        assert out["messages"][-1] == "said yes"
    assert count == len(list(memory.list(None)))


def test_pruning_leaves_the_newest_and_what_it_needs() -> None:
    """The thread goes on in a new run, with its state."""
    with DendrerSaver("s") as saver:
        app = graph(saver)
        out = app.invoke(FIRST, thread("t"))
        saver.prune(["t"])
        assert len(list(saver.list(cast(Any, thread("t"))))) == 1
        assert app.get_state(thread("t")).values == out
        assert saver.runs_of("t") == ["t", "t+2"]
        again = app.invoke({"messages": ["more"], "n": 2}, thread("t"))
        assert again["messages"][: len(out["messages"])] == out["messages"]
    assert dendrer.open("s")["t+2"].state_at(path="values.messages") == again["messages"]


def test_a_superseded_writer_is_refused_and_finds_out() -> None:
    """Write ownership: nothing of the earlier writer becomes durable."""
    with DendrerSaver("s") as saver:
        first = saver.claim_write_ownership("t")
        put = checkpoint(first, "t", None, k=1)
        first.check_write_ownership()
        second = saver.claim_write_ownership("t")
        with pytest.raises(dendrer.Stale) as error:
            checkpoint(first, "t", put, k="stale")
        assert getattr(error.value, "is_stale_write_owner_error", False)
        with pytest.raises(dendrer.Stale):
            first.put_writes(cast(Any, put), [("k", "stale")], "task")
        with pytest.raises(dendrer.Stale) as error:
            asyncio.run(first.acheck_write_ownership())
        assert getattr(error.value, "is_stale_write_owner_error", False)
        checkpoint(second, "t", put, k=2)
        assert [one.checkpoint["channel_values"]["k"] for one in saver.list(cast(Any, thread("t")))] == [2, 1]


def test_a_saver_goes_on_behind_a_fork_of_the_process() -> None:
    """The child opens the store again; the parent writes on."""
    script = """
import os, sys
from langgraph.checkpoint.base import empty_checkpoint
from dendrer.langgraph import DendrerSaver
saver = DendrerSaver("s")
config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
def put(config):
    return saver.put(config, empty_checkpoint(), {"source": "loop", "step": 1}, {})
config = put(config)
child = os.fork()
if child == 0:
    put(config)
    saver.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
newest = saver.get_tuple({"configurable": {"thread_id": "t"}}).config
assert newest != config
put(newest)
print(len(list(saver.list({"configurable": {"thread_id": "t"}}))))
saver.close()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.returncode) == ("3", 0), done.stderr


def test_a_transcript_that_grows_is_stored_once() -> None:
    """400 steps that grow by 1 KB each: at most 1/20 of what SQLite takes for them."""
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")

    def size(path: str) -> int:
        return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())

    def drive(saver: BaseCheckpointSaver[Any]) -> None:
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        messages: list[str] = []
        draw = random.Random(7)
        for number in range(400):
            text = "".join(chr(97 + draw.randrange(26)) for _ in range(1024))
            messages = [*messages, text]
            made: Any = {**empty_checkpoint(), "id": str(uuid6(clock_seq=number)), "channel_values": {"m": messages}}
            made["channel_versions"] = {"m": number + 1}
            config = saver.put(config, made, {"source": "loop", "step": number}, {"m": number + 1})
        found = saver.get_tuple(config)
        assert found is not None and found.checkpoint["channel_values"]["m"] == messages

    with DendrerSaver("ours") as saver:
        drive(saver)
    Path("theirs").mkdir()
    with sqlite.SqliteSaver.from_conn_string("theirs/x.db") as saver:
        drive(saver)
    assert size("ours") * 20 <= size("theirs"), (size("ours"), size("theirs"))


DELETES: dict[str, Any] = {
    "delete_thread": lambda saver: saver.delete_thread("t"),
    "delete_for_runs": lambda saver: saver.delete_for_runs("r"),
    "prune": lambda saver: saver.prune("t", strategy="delete"),
}


def private_thread(saver: DendrerSaver) -> Any:
    """A thread of some checkpoints of one run, with words that must go."""
    put = None
    for number in range(12):
        put = checkpoint(saver, "t", put, version=number + 1, made_by="r", k=[f"private words {number}"], big="private " * 3000)
    return put


def assert_erased() -> None:
    """Nothing of the thread is left: no file of the vault but its mark, no value of the record."""
    left = [file for file in Path("s/.dendrer/vault").rglob("*") if file.is_file()]
    assert len(left) <= 1, left
    for file in Path("s").rglob("*"):
        assert not file.is_file() or b"private" not in file.read_bytes(), file
    assert command("verify", "--all", "--store", "s")["verdict"] in ("INTACT", "VERIFIED", "UNVERIFIABLE")


@pytest.mark.parametrize("name", DELETES)
def test_a_deletion_that_was_interrupted_is_finished_by_the_next(name: str) -> None:
    """A process that is killed in the middle of it says nothing, and what it left goes the next time."""
    code = f"""
import sys, threading, os
from dendrer.langgraph import DendrerSaver
saver = DendrerSaver("s")
threading.Timer(float(sys.argv[1]), lambda: os.kill(os.getpid(), 9)).start()
from test_langgraph import DELETES
DELETES[{name!r}](saver)
os._exit(0)
"""
    killed = 0
    for part in range(12):
        with DendrerSaver("s") as saver:
            private_thread(saver)
        env = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
        ran = subprocess.run([sys.executable, "-c", code, str(0.002 + part * 0.004)], env=env, check=False)
        killed += ran.returncode != 0
        with DendrerSaver("s") as saver:
            DELETES[name](saver)
            assert saver.get_tuple(cast(Any, thread("t"))) is None
        assert_erased()
    assert killed > 0


@pytest.mark.parametrize("name", DELETES)
def test_a_deletion_that_cannot_be_done_changes_nothing(name: str, tmp_path: Path) -> None:
    """Without the key of the vault nothing is taken for deleted."""
    with DendrerSaver("s") as saver:
        put = private_thread(saver)
    (key,) = (tmp_path / "home").rglob("*.vault")
    key.rename(key.with_suffix(".away"))
    with DendrerSaver("s") as saver, pytest.raises(dendrer.VaultLocked):
        DELETES[name](saver)
    key.with_suffix(".away").rename(key)
    with DendrerSaver("s") as saver:
        assert saver.get_tuple(put) is not None and len(list(saver.list(cast(Any, thread("t"))))) == 12
        DELETES[name](saver)
        assert saver.get_tuple(put) is None
    assert_erased()


def test_a_channel_that_recovers_is_asked_from_where_it_is_there() -> None:
    """A thread begins without its channels."""
    with DendrerSaver("s") as saver:
        put = None
        for version, x in enumerate((5, 10, 5)):
            put = checkpoint(saver, "t", put, version=version, x=x)
    told = subprocess.run(
        ["dendrer", "bisect", "t", "--holds", "state.values.x < 8", "--store", "s"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "E0504" in told.stderr, told.stdout + told.stderr


def late(saver: DendrerSaver, name: str, parent: dict[str, Any] | None, **values: Any) -> None:
    """A put that goes on from what a deletion took is refused, and nothing of it is recorded."""
    before = command("runs", "--store", "s")["items"]
    with pytest.raises(dendrer.StaleCheckpoint) as error:
        checkpoint(saver, name, parent, **values)
    assert error.value.code == "E0407" and "was deleted" in str(error.value)
    assert command("runs", "--store", "s")["items"] == before


def test_a_late_put_does_not_bring_a_deleted_thread_back() -> None:
    """Nor do late writes, from this process or another one that has the saver open (langgraph #7206)."""
    with DendrerSaver("s") as one, DendrerSaver("s") as other:
        first = checkpoint(one, "ruth", None, who="Ruth M.")
        second = checkpoint(other, "ruth", first, who="Ruth M.")
        one.delete_thread("ruth")
        for saver in (one, other):
            late(saver, "ruth", first, who="Ruth M., Bern")
            late(saver, "ruth", second, who="Ruth M., Bern")
            with pytest.raises(dendrer.StaleCheckpoint) as error:
                saver.put_writes(cast(Any, second), [("who", "Ruth M., Bern")], "task")
            assert error.value.heads == [second["configurable"]["checkpoint_id"]]
            assert saver.get_tuple(cast(Any, thread("ruth"))) is None
        # A saver that is opened behind the deletion knows it from the record.
        with DendrerSaver("s") as fresh:
            late(fresh, "ruth", second, who="Ruth M., Bern")
            # The thread may begin again.
            again = checkpoint(fresh, "ruth", None, who="another")
            assert checkpoint(one, "ruth", again, who="another one")
            late(one, "ruth", first, who="Ruth M., Bern")
            assert fresh.runs_of("ruth") == ["ruth", "ruth+2"]
    assert command("verify", "--all", "--store", "s")["verdict"] == "UNVERIFIABLE"


def test_the_first_checkpoint_of_a_deleted_thread_is_not_put_again() -> None:
    """A worker that repeats its put does not bring it back, and neither does a subgraph of it."""
    made: dict[str, Any] = {**empty_checkpoint(), "id": str(uuid6()), "channel_values": {"k": "first"}}
    made["channel_versions"] = {"k": 1}
    config: dict[str, Any] = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with DendrerSaver("s") as saver:
        put = saver.put(cast(Any, config), cast(Any, made), {"source": "input", "step": -1}, {"k": 1})
        saver.delete_thread("t")
        with pytest.raises(dendrer.StaleCheckpoint):
            saver.put(cast(Any, config), cast(Any, made), {"source": "input", "step": -1}, {"k": 1})
        inner: dict[str, Any] = {**made, "id": str(uuid6())}
        below = {"configurable": {"thread_id": "t", "checkpoint_ns": "sub:1"}}
        around: Any = {"source": "input", "step": -1, "parents": {"": put["configurable"]["checkpoint_id"]}}
        with pytest.raises(dendrer.StaleCheckpoint):
            saver.put(cast(Any, below), cast(Any, inner), around, {"k": 1})
        mapped: Any = {"configurable": {**below["configurable"], "checkpoint_id": inner["id"], "checkpoint_map": around["parents"]}}
        with pytest.raises(dendrer.StaleCheckpoint):
            saver.put_writes(mapped, [("k", "late")], "task")
        assert saver.runs_of("t") == ["t"]


def test_what_pruning_kept_goes_on_and_what_it_took_does_not() -> None:
    """The newest checkpoint moved to a new run; its parent, which was deleted, takes no put."""
    with DendrerSaver("s") as saver, DendrerSaver("s") as other:
        first = checkpoint(saver, "t", None, k="first", made_by="one")
        second = checkpoint(saver, "t", first, k="second", made_by="two")
        saver.prune(["t"])
        late(other, "t", first, k="late")
        late(saver, "t", first, k="late")
        third = checkpoint(other, "t", second, k="third", made_by="three")
        saver.delete_for_runs(["two"])
        late(other, "t", second, k="late")
        assert checkpoint(saver, "t", third, k="fourth")
        # A copy is another thread, with ids of its own to go on from.
        saver.copy_thread("t", "copy")
        saver.delete_thread("t")
        late(saver, "t", third, k="late")
        copied = {"configurable": {**third["configurable"], "thread_id": "copy"}}
        found = saver.get_tuple(cast(Any, thread("copy")))
        assert found is not None and found.checkpoint["channel_values"] == {"k": "fourth"}
        assert other.get_tuple(cast(Any, copied)) is not None
        assert checkpoint(other, "copy", copied, k="fork")
        saver.delete_thread("copy")
        saver.copy_thread("t", "copy")


def test_a_run_of_a_deleted_thread_takes_no_line_and_no_fork() -> None:
    """`commit` and `fork` of the program are refused as a put is."""
    with DendrerSaver("s") as saver:
        checkpoint(saver, "t", None, k="first")
        saver.delete_thread("t")
    Path("line.jsonl").write_text('{"type":"plan.update","base":1}\n')
    commit = ["commit", "--run", "t", "--file", "line.jsonl"]
    for arguments in (["fork", "t@1"], commit):
        assert command(*arguments, "--store", "s")["code"] == "E0407"
    assert [item["name"] for item in command("runs", "--store", "s")["items"]] == ["t"]


def test_a_deleted_thread_does_not_come_back_with_an_older_backup() -> None:
    """The restore deletes it again: in the record, in the vault, and for what goes on from it."""
    with DendrerSaver("s") as saver:
        first = checkpoint(saver, "t", None, k="Ruth M.")
        saver.put_writes(cast(Any, first), [("k", "Ruth W.")], "task")
    command("backup", "bak", "--store", "s")
    with DendrerSaver("s") as saver:
        saver.delete_thread("t")
    assert command("restore", "bak", "s", "--replace")["code"] == "E0114"
    restored = command("restore", "bak", "s", "--replace", "--discard-newer")
    assert restored["erased_again"] == [{"run": "t", "tick": None, "place": None}] and restored["writable"]
    with DendrerSaver("s") as saver:
        assert saver.get_tuple(cast(Any, first)) is None
        late(saver, "t", first, k="Ruth M., Bern")
        checkpoint(saver, "t", None, k="another")
        assert saver.runs_of("t") == ["t", "t+2"]
    assert not any(b"Ruth" in file.read_bytes() for file in Path("s/.dendrer").rglob("*") if file.is_file())
