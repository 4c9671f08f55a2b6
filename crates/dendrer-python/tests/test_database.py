"""Databases of LangGraph's own saver are imported as the runs that the saver of this package would have recorded."""

from __future__ import annotations

import operator
import os
import sqlite3
from contextlib import closing
from typing import Annotated, Any

import pytest

pytest.importorskip("langgraph.graph")
pytest.importorskip("langgraph.checkpoint.sqlite")

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

import dendrer
from dendrer.langgraph import DendrerSaver
from helpers import command, document, transitions


class State(MessagesState):
    """Messages, and channels of other shapes."""

    log: Annotated[list[str], operator.add]
    price: float
    tags: set[str]


def thread(name: str) -> Any:
    """The config of a thread."""
    return {"configurable": {"thread_id": name}}


def ai(id: str, *calls: str, tokens: int = 10) -> AIMessage:
    """An answer of a model that calls tools."""
    asked = [{"name": name, "args": {"n": 3}, "id": f"{name}-{id}"} for name in calls]
    usage: Any = {"input_tokens": tokens - 1, "output_tokens": 1, "total_tokens": tokens}
    return AIMessage(content="", id=id, tool_calls=asked, usage_metadata=usage)


def quoter() -> Any:
    """A subgraph with a call of its own."""
    built: Any = StateGraph(MessagesState)
    built.add_node("ask", lambda _: {"messages": [ai("q1", "quote", tokens=50)]})
    built.add_node("tool", lambda _: {"messages": [ToolMessage("90", tool_call_id="quote-q1", id="qt1", name="quote")]})
    built.add_edge(START, "ask")
    built.add_edge("ask", "tool")
    built.add_edge("tool", END)
    return built.compile()


def shop(saver: Any) -> Any:
    """A graph with a subgraph, a tool that fails, an interrupt and tasks in parallel."""

    def model(state: State) -> dict[str, Any]:
        if not any(one.id == "a1" for one in state["messages"]):
            return {"messages": [ai("a1", "pay", tokens=6100)], "log": ["m1"], "price": 1.5, "tags": {"a", "b", "c"}}
        return {"messages": [ai("a2", tokens=6300)], "log": ["m2"]}

    def tool(_: State) -> dict[str, Any]:
        return {"messages": [ToolMessage("card declined", tool_call_id="pay-a1", status="error", id="t1")], "log": ["t"]}

    def gate(_: State) -> dict[str, Any]:
        return {"log": [f"gate {interrupt({'ok': 1})}"]}

    built: Any = StateGraph(State)
    built.add_node("model", model)
    built.add_node("tool", tool)
    built.add_node("quoter", quoter())
    built.add_node("gate", gate)
    built.add_node("part", lambda given: {"log": [f"part {given['n']}"]})
    built.add_edge(START, "quoter")
    built.add_edge("quoter", "model")
    built.add_edge("tool", "gate")
    built.add_conditional_edges("gate", lambda _: [Send("part", {"n": 1})], ["part"])
    built.add_edge("part", "model")
    built.add_conditional_edges("model", lambda state: "tool" if getattr(state["messages"][-1], "tool_calls", None) else END, ["tool", END])
    return built.compile(checkpointer=saver)


def play(saver: Any, name: str) -> None:
    """Runs the graph, resumes it, goes back and forks it, and asks it once more."""
    app, config = shop(saver), thread(name)
    app.invoke({"messages": [HumanMessage("Pay 3", id="h1")], "log": ["in"]}, config, durability="sync")
    app.invoke(Command(resume="yes"), config, durability="sync")
    old = next(one for one in app.get_state_history(config) if one.metadata["step"] == 2)
    changed = app.update_state(old.config, {"log": ["forked"]})
    app.invoke(None, changed, durability="sync")
    app.invoke({"messages": [HumanMessage("again", id="h2")]}, config, durability="sync")


def played(path: str, *names: str, serde: Any = None) -> None:
    """Makes a database of threads."""
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        for name in names:
            play(SqliteSaver(connection, serde=serde), name)


def imported(*args: str, exits: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """The answer of an import into the store of the test."""
    if not os.path.exists("s/.dendrer"):
        dendrer.init("s")
    return document("import", *args, "--store", "s", exits=exits)


def onset(store: str, run: str, holds: str) -> tuple[str, int | None]:
    """The first violation of an expression."""
    found = dendrer.open(store)[run].bisect(holds=holds, on_uncertain="return")
    return found.outcome, None if found.onset is None else found.onset.tick


def rows(store: str, run: str) -> list[tuple[Any, ...]]:
    """What `log` shows of each transition."""
    items = document("log", run, "--limit=0", "--store", store)["items"]
    return [(item["tick"], item["type"], item["agent"], item.get("summary")) for item in items if item["kind"] == "transition"]


def said(store: str, run: str) -> list[tuple[int, dict[str, Any]]]:
    """The messages of each transition; an interrupt has another id in each execution."""
    listed = [(item["tick"], one) for item in transitions(run, store) for one in item["content"].get("messages", [])]
    return [(tick, {name: one[name] for name in one if name != "id" or one["role"] != "interrupt"}) for tick, one in listed]


def test_a_database_is_recorded_as_the_saver_records_it() -> None:
    """One graph ran with both savers: ticks, types, messages, counters, steps and runs are the same, and `diff` finds nothing."""
    played("c.sqlite", "pay")
    with DendrerSaver("live") as saver:
        play(saver, "pay")
        runs = saver.runs_of("pay")
    before = set(os.listdir())
    answer = imported("c.sqlite")
    assert set(os.listdir()) == {*before, "s"}
    assert [answer["run"], *answer["forks"]] == runs == ["pay", "pay+2"]
    assert (answer["gaps"], answer["calls"], answer["results_paired"], answer["results_failed"]) == (0, 2, 2, 1)
    for run in runs:
        assert rows("s", run) == rows("live", run)
        assert said("s", run) == said("live", run)
        command("export", run, "--store", "live", "-o", f"{run}.dnd")
        found = document("diff", run, f"{run}.dnd#{run}", "--store", "s", exits=(0, 1))
        assert found["items"] == [], found
        for holds in ("tool_errors == 0", "tool_calls <= 1", "tokens_used <= 6149", "tokens_used <= 12449", "by_agent.model <= 1"):
            assert onset("s", run, f"state.counters.{holds}") == onset("live", run, f"state.counters.{holds}"), holds
        steps = [document("steps", run, "--store", store)["items"] for store in ("s", "live")]
        assert [(one["tick"], one["action"], one.get("name")) for one in steps[0]] == [
            (one["tick"], one["action"], one.get("name")) for one in steps[1]
        ]
    assert dendrer.open("s")["pay"].verify(replay=True).verdict in ("VERIFIED", "INTACT")
    named = [document("runs", "--store", store)["items"] for store in ("s", "live")]
    assert [[(one["name"], one["ticks"], one.get("thread")) for one in items] for items in named][0] == [
        (one["name"], one["ticks"], one.get("thread")) for one in named[1]
    ]
    # Of each tuple both savers give the same; the bytes are those of the database.
    with SqliteSaver.from_conn_string("c.sqlite") as old, DendrerSaver("s") as saver:
        for one in old.list(thread("pay")):
            own = saver.get_tuple(one.config)
            assert own is not None
            assert (own.checkpoint, own.metadata, own.parent_config) == (one.checkpoint, one.metadata, one.parent_config)
            assert own.pending_writes == one.pending_writes


def test_a_thread_that_runs_in_the_background_has_the_same_counters() -> None:
    """Writes of LangGraph's default durability reach the tables in another order; what is counted and who said it is the same."""

    def ran(saver: Any) -> None:
        shop(saver).invoke({"messages": [HumanMessage("Pay 3", id="h1")]}, thread("pay"))

    with closing(sqlite3.connect("c.sqlite", check_same_thread=False)) as connection:
        ran(SqliteSaver(connection))
    with DendrerSaver("live") as saver:
        ran(saver)
    assert imported("c.sqlite")["gaps"] == 0
    agents = []
    for store in ("s", "live"):
        listed = [one for item in transitions("pay", store) for one in item["content"].get("messages", [])]
        agents.append({one["id"]: one["agent"] for one in listed if "id" in one and one["role"] != "interrupt"})
        assert onset(store, "pay", "state.counters.tokens_used <= 6150")[0] == "never"
    assert agents[0] == agents[1]


def test_each_thread_of_a_database_is_a_run() -> None:
    """Without `--index` all are recorded; a name of one run needs one thread."""
    played("c.sqlite", "a", "user:1")
    refused = imported("c.sqlite", "--run", "x", exits=(2,))
    assert refused["code"] == "E0212"
    dry = imported("c.sqlite", "-n")
    assert [one["run"] for one in dry["items"]][0] == "a" and dry["items"][0]["tip"] is None
    one = imported("c.sqlite", "--index", "1", "--run", "x")
    assert (one["run"], one["kind"]) == ("x", "langgraph")
    both = imported("c.sqlite")
    assert [item["run"] for item in both["items"]] == ["a"] and both["there"] == 1
    assert imported(".", exits=(0,))["there"] == 2


def test_a_thread_that_went_on_is_another_import() -> None:
    """The same rows are refused, and so is a thread that has more; `--again` gives it another name. The saver goes on with either."""
    with closing(sqlite3.connect("c.sqlite", check_same_thread=False)) as connection:
        saver = SqliteSaver(connection)
        play(saver, "pay")
        assert imported("c.sqlite")["run"] == "pay"
        assert imported("c.sqlite", exits=(2,))["code"] == "E0214"
        shop(saver).invoke({"messages": [HumanMessage("more", id="h3")]}, thread("pay"))
        # The connection is open: its newest rows are in the log next to the file.
        assert os.path.exists("c.sqlite-wal")
        refused = imported("c.sqlite", exits=(2,))
        assert refused["code"] == "E0111" and "has changed since" in refused["message"]
        again = imported("c.sqlite", "--again")
        assert again["run"] == "pay-2"
    ticks = len(transitions("pay", "s"))
    with DendrerSaver("s") as ours:
        out = shop(ours).invoke({"messages": [HumanMessage("on", id="h4")]}, thread("pay"), durability="sync")
        assert "h4" in [one.id for one in out["messages"]]
        assert ours.runs_of("pay") == ["pay", "pay+2"]
    assert len(transitions("pay", "s")) + len(transitions("pay+2", "s")) > ticks


def test_what_cannot_be_read_is_a_gap() -> None:
    """Encrypted checkpoints have no readable form: no counter is known, and `--on-gap stop` records nothing."""
    pytest.importorskip("Crypto")
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    played("c.sqlite", "pay", serde=serde)
    assert imported("c.sqlite", "--on-gap", "stop", exits=(2,))["code"] == "E0213"
    answer = imported("c.sqlite")
    assert answer["gaps"] > 0 and "message_unreadable" in answer["noted"]
    found = dendrer.open("s")["pay"].bisect(holds="state.counters.tool_errors == 0", on_uncertain="return")
    assert found.outcome not in ("never", "onset") or found.onset is None
    with SqliteSaver.from_conn_string("c.sqlite") as old, DendrerSaver("s", serde=serde) as saver:
        old.serde = serde
        mine, theirs = saver.get_tuple(thread("pay")), old.get_tuple(thread("pay"))
        assert mine is not None and theirs is not None
        assert mine.checkpoint["id"] == theirs.checkpoint["id"]


def test_a_database_without_paths_of_tasks_is_read() -> None:
    """Databases of old versions have no column `task_path`."""
    played("c.sqlite", "pay")
    with closing(sqlite3.connect("c.sqlite")) as connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
        connection.commit()
    answer = imported("c.sqlite")
    assert (answer["gaps"], answer["calls"], answer["results_failed"]) == (0, 2, 1)


def test_explain_names_each_place() -> None:
    """The account has channels and columns, and records nothing."""
    played("c.sqlite", "pay")
    with closing(sqlite3.connect("c.sqlite")) as connection:
        connection.execute("ALTER TABLE checkpoints ADD COLUMN note TEXT DEFAULT 'x'")
        connection.commit()
    places = {item["place"]: item for item in imported("c.sqlite", "--explain")["items"]}
    assert places["/checkpoints/checkpoint/channel_values/messages"]["not_read"] == 0
    assert places["/checkpoints/note"]["not_read"] > 0
    assert places["/writes/messages"]["read"] > 0
    assert document("runs", "--store", "s")["items"] == []
