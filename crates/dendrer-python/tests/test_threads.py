"""Threads of LangGraph are read as messages: counters, log, show and steps over what a graph said and did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

import pytest

pytest.importorskip("langgraph.graph")

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt

import dendrer
from dendrer.langgraph import DendrerSaver, copy_from


def thread(name: str) -> Any:
    """The config of a thread."""
    return {"configurable": {"thread_id": name}}


def ran(*args: str) -> subprocess.CompletedProcess[str]:
    """Runs the command over the store of the test."""
    return subprocess.run(["dendrer", "--store", "s", *args], capture_output=True, text=True, check=False)


def counters(run: str) -> dict[str, Any]:
    """The counters behind the last transition: the highest that they are anywhere."""
    asked = dendrer.open("s")[run]
    found: dict[str, Any] = {}
    for name in ("tool_calls", "tool_errors", "tokens_used"):
        low, high = 0, 1 << 16
        while low < high:
            middle = (low + high) // 2
            is_less = asked.bisect(holds=f"state.counters.{name} <= {middle}").outcome == "never"
            low, high = (low, middle) if is_less else (middle + 1, high)
        found[name] = low
    return found


def messages(run: str) -> list[tuple[int, dict[str, Any]]]:
    """What each transition adds to a thread."""
    found: list[tuple[int, dict[str, Any]]] = []
    for step in dendrer.open("s")[run]:
        shown = json.loads(ran("show", f"{run}@{step.tick}", "--json").stdout)
        found.extend((step.tick, one) for one in shown["content"].get("messages", []))
    return found


def ai(id: str | None, *calls: str, tokens: int = 10, content: str = "") -> AIMessage:
    """An answer of a model that calls tools; the id of a call is its tool and the id of the message."""
    asked = [{"name": name, "args": {"n": 3}, "id": f"{name}-{id}"} for name in calls]
    usage: Any = {"input_tokens": tokens - 1, "output_tokens": 1, "total_tokens": tokens}
    return AIMessage(content=content, id=id, tool_calls=asked, usage_metadata=usage)


def onset(run: str, holds: str) -> tuple[int, str]:
    """The first violation, and how certain it is."""
    found = dendrer.open("s")[run].bisect(holds=holds).onset
    assert found is not None
    return found.tick, found.certainty


def pay(saver: Any, status: str = "error") -> Any:
    """The graph of case E27: a model that calls a tool, which fails."""

    def model(state: MessagesState) -> dict[str, Any]:
        if len(state["messages"]) == 1:
            return {"messages": [ai("a1", "pay", tokens=6100)]}
        return {"messages": [ai("a2", tokens=6300, content="Paid.")]}

    def tool(state: MessagesState) -> dict[str, Any]:
        return {"messages": [ToolMessage("card declined", tool_call_id="pay-a1", status=cast(Any, status))]}

    built: Any = StateGraph(MessagesState)
    built.add_node("model", model)
    built.add_node("tool", tool)
    built.add_edge(START, "model")
    built.add_edge("tool", "model")
    built.add_conditional_edges("model", lambda s: "tool" if getattr(s["messages"][-1], "tool_calls", None) else END, ["tool", END])
    return built.compile(checkpointer=saver)


def test_counters_of_a_thread_answer_exactly() -> None:
    """Case E27: the failure at the transition that first has the result, the call and the tokens at the one that first has the answer."""
    with DendrerSaver("s") as saver:
        pay(saver).invoke({"messages": [HumanMessage("Pay 3", id="h1")]}, thread("pay"))
    said = messages("pay")
    call = next(tick for tick, one in said if one.get("id") == "a1")
    result = next(tick for tick, one in said if "result" in one)
    assert onset("pay", "state.counters.tool_errors == 0") == (result, "exact")
    assert onset("pay", "state.counters.tool_calls == 0") == (call, "exact")
    assert onset("pay", "state.counters.tokens_used <= 5000") == (call, "exact")
    assert onset("pay", "state.counters.tokens_used <= 6100")[0] > result
    assert onset("pay", 'state.counters.last_tool != "pay"') == (call, "exact")
    for holds in (
        "state.counters.tool_calls <= 1",
        "state.counters.tool_errors <= 1",
        "state.counters.tokens_used <= 12400",
        '!has(state.counters.by_agent.model) || state.counters.by_agent.model <= 2',
    ):
        assert dendrer.open("s")["pay"].bisect(holds=holds).outcome == "never", holds
    # The message of a result has no id when it is written: the put that gives it one repeats it.
    assert all(one["repeated"] for _, one in said if one.get("of"))
    assert len([one for _, one in said if "result" in one]) == 1
    asked = next(one for _, one in said if one.get("id") == "a1")
    assert asked["calls"] == [{"call_id": "pay-a1", "params": {"n": 3}, "tool": "pay"}]
    assert (asked["agent"], asked["role"], asked["usage"]["tokens_used"]) == ("model", "assistant", 6100)
    failed = next(one for _, one in said if "result" in one)
    assert failed["result"] == {"call_id": "pay-a1", "status": "error", "status_from": "flag", "tool": "pay"}
    assert ran("verify", "pay", "--replay").returncode == 0


def test_messages_are_listed_once_in_each_line_of_a_thread() -> None:
    """Another process, a fork and a copy of the thread count no message again."""
    config = thread("pay")
    with DendrerSaver("s") as saver:
        pay(saver).invoke({"messages": [("user", "Pay 3")]}, config, durability="sync")
    with DendrerSaver("s") as saver:
        app = pay(saver)
        app.invoke({"messages": [("user", "And?")]}, config)
        old = next(one for one in app.get_state_history(config) if len(one.values["messages"]) == 3)
        app.invoke(None, old.config)
        app.update_state(old.config, {"messages": [ai("a9", "pay", "look", tokens=5)]}, as_node="model")
        runs = [str(run) for run in saver.runs_of("pay")]
        saver.copy_thread("pay", "copied")
        copied = [str(run) for run in saver.runs_of("copied")]
    wanted = {"tool_calls": 1, "tool_errors": 1, "tokens_used": 6100 + 6300}
    assert counters("pay") == wanted
    assert counters(runs[1]) == wanted
    assert counters(runs[2]) == {"tool_calls": 3, "tool_errors": 1, "tokens_used": 6105}
    assert [counters(run) for run in copied] == [counters(run) for run in runs]
    memory = InMemorySaver()
    pay(memory).invoke({"messages": [("user", "Pay 3")]}, config)
    copy_from(memory, "s", threads=["pay"])


def test_an_edited_message_counts_what_it_adds() -> None:
    """By its id a message is one, whatever a person makes of it; one that is removed stays counted."""
    config = thread("t")
    with DendrerSaver("s") as saver:
        app = pay(saver, status="success")
        app.invoke({"messages": [HumanMessage("Pay 3", id="h1")]}, config)
        app.update_state(config, {"messages": [ai("a1", "pay", "look", tokens=6150)]}, as_node="model")
        app.update_state(config, {"messages": [RemoveMessage(id="a2")]}, as_node="model")
        app.update_state(config, {"messages": [ai("a1", "pay", "look", tokens=6150)]}, as_node="model")
    assert counters("t") == {"tool_calls": 2, "tool_errors": 0, "tokens_used": 6150 + 6300}
    edited = [one for _, one in messages("t") if one.get("edited")]
    assert [[call.get("repeated") for call in one["calls"]] for one in edited] == [[True, None]]
    assert [one["id"] for _, one in messages("t") if one["role"] == "remove"] == ["a2"]


class Wide(TypedDict, total=False):
    """A state with two lists of messages."""

    messages: Annotated[list[AnyMessage], add_messages]
    notes: Any
    call: Any


def test_tasks_that_run_beside_one_another_are_of_their_nodes() -> None:
    """`Send` and parallel nodes: each result is that of its node, and its tool that of the call that it answers."""

    def model(_: Wide) -> dict[str, Any]:
        return {"messages": [ai("a1", "x", "y", "z")], "notes": [SystemMessage("be brief", id="s1")]}

    def run(state: Wide) -> dict[str, Any]:
        id = state["call"]["id"]
        status: Any = "error" if id.startswith("y") else "success"
        return {"messages": [ToolMessage("done", tool_call_id=id, status=status)]}

    def old(_: Wide) -> dict[str, Any]:
        return {"messages": [FunctionMessage(content="Error: gone", name="z", id="f1")]}

    def fan(state: Wide) -> list[Any]:
        calls = state["messages"][-1].tool_calls  # type: ignore[union-attr]
        return [Send("run", {"call": call}) for call in calls[:2]] + ["old"]

    built: Any = StateGraph(Wide)
    built.add_node("model", model)
    built.add_node("run", run)
    built.add_node("old", old)
    built.add_edge(START, "model")
    built.add_conditional_edges("model", fan, ["run", "old"])
    with DendrerSaver("s") as saver:
        built.compile(checkpointer=saver).invoke({"messages": [("user", "go")]}, thread("t"))
    assert counters("t") == {"tool_calls": 3, "tool_errors": 2, "tokens_used": 10}
    results = [(one["agent"], one["result"]["tool"], one["result"]["status"]) for _, one in messages("t") if "result" in one]
    assert sorted(results) == [("old", "z", "error"), ("run", "x", "ok"), ("run", "y", "error")]


def test_a_subgraph_says_once_what_its_node_says_again() -> None:
    """The messages of a subgraph are in its namespace and in the write of its node."""
    inner: Any = StateGraph(MessagesState)
    inner.add_node("ask", lambda _: {"messages": [ai("a1", "look")]})
    inner.add_node("look", lambda _: {"messages": [ToolMessage("no", tool_call_id="look-a1", status="error")]})
    inner.add_edge(START, "ask")
    inner.add_edge("ask", "look")
    outer: Any = StateGraph(MessagesState)
    outer.add_node("quoter", inner.compile(checkpointer=True))
    outer.add_edge(START, "quoter")
    with DendrerSaver("s") as saver:
        outer.compile(checkpointer=saver).invoke({"messages": [("user", "go")]}, thread("t"))
    assert counters("t") == {"tool_calls": 1, "tool_errors": 1, "tokens_used": 10}
    agents = [one["agent"] for _, one in messages("t") if "calls" in one or "result" in one]
    assert agents == ["quoter/ask", "quoter/look"]


def test_interrupts_and_failed_nodes_are_on_record() -> None:
    """A node that fails counts as a failure, once also where it is inside of another; an interrupt is shown."""

    def ask(_: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(str(interrupt("go on?")), id="a1")]}

    def fail(_: MessagesState) -> dict[str, Any]:
        raise ValueError("no such card")

    inner: Any = StateGraph(MessagesState)
    inner.add_node("fail", fail)
    inner.add_edge(START, "fail")
    outer: Any = StateGraph(MessagesState)
    outer.add_node("ask", ask)
    outer.add_node("inner", inner.compile(checkpointer=True))
    outer.add_edge(START, "ask")
    outer.add_edge("ask", "inner")
    with DendrerSaver("s") as saver:
        app = outer.compile(checkpointer=saver)
        app.invoke({"messages": [("user", "go")]}, thread("t"))
        with pytest.raises(ValueError, match="no such card"):
            app.invoke(Command(resume="yes"), thread("t"))
    said = messages("t")
    assert [(one["agent"], one["content"]) for _, one in said if one["role"] == "interrupt"] == [("ask", "go on?")]
    failed = [(one["agent"], one.get("repeated")) for _, one in said if one["role"] == "error"]
    assert failed == [("inner/fail", None), ("inner", True)]
    tick = next(tick for tick, one in said if one["role"] == "error")
    assert onset("t", "state.counters.tool_errors == 0") == (tick, "exact")
    assert dendrer.open("s")["t"].bisect(holds="state.counters.tool_errors <= 1").outcome == "never"


def test_a_message_without_usage_leaves_the_tokens_unknown() -> None:
    """What was not stated is never counted as absent."""
    built: Any = StateGraph(MessagesState)
    built.add_node("model", lambda _: {"messages": [AIMessage("hi", id="a1")]})
    built.add_edge(START, "model")
    with DendrerSaver("s") as saver:
        built.compile(checkpointer=saver).invoke({"messages": [("user", "go")]}, thread("t"))
    tip = len(dendrer.open("s")["t"])
    assert verdict("t", "state.counters.tokens_used <= 5000", tip) == "uncertain"
    assert verdict("t", "state.counters.tool_calls == 0", tip) == "ok"


def test_what_cannot_be_read_is_never_counted_as_nothing() -> None:
    """Encrypted threads and channels of another shape: noted where they may state calls, and where not nothing is."""

    class Odd(TypedDict, total=False):
        tags: Any
        history: Any

    built: Any = StateGraph(Odd)
    built.add_node("a", lambda _: {"tags": ["x", {"type": "tool", "content": "hammer"}], "history": None})
    built.add_node("b", lambda _: {"history": {"old": [{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "t"}]}]}})
    built.add_edge(START, "a")
    built.add_edge("a", "b")
    with DendrerSaver("s") as saver:
        built.compile(checkpointer=saver).invoke({"tags": None}, thread("t"))
    tick, _ = onset_of_unknown("t")
    notes = [(step.tick, note) for step in dendrer.open("s")["t"] for note in noted("t", step.tick)]
    assert [(at, note["path"], note["may"]) for at, note in notes] == [(tick, "/values/history", ["calls"])]
    secret = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    with DendrerSaver("s", serde=secret) as saver:
        pay(saver).invoke({"messages": [("user", "go")]}, thread("closed"))
    assert onset_of_unknown("closed")[0] == 1


def verdict(run: str, holds: str, tick: int) -> str:
    """What an expression says behind a tick."""
    shown = ran("predicate", "test", holds, run, "--holds", "--at", str(tick), "--json")
    return str(json.loads(shown.stdout)["at"]["verdict"])


def noted(run: str, tick: int) -> list[dict[str, Any]]:
    """The anomalies of a transition."""
    found: list[dict[str, Any]] = json.loads(ran("show", f"{run}@{tick}", "--json").stdout)["content"].get("anomalies", [])
    return found


def onset_of_unknown(run: str) -> tuple[int, int]:
    """The first tick at which the calls are not known, and how many ticks there are."""
    ticks = [step.tick for step in dendrer.open("s")[run]]
    holds = "state.counters.tool_calls == 0"
    unknown = [tick for tick in ticks if verdict(run, holds, tick) == "uncertain"]
    return unknown[0], len(ticks)


def test_secrets_in_messages_are_taken_out_and_deleted_with_the_thread() -> None:
    """The list passes through redaction like the change, and is erased with it."""
    secret = "sk-ant-api03-" + "a1B2" * 23 + "-abcdefAA"
    built: Any = StateGraph(MessagesState)
    built.add_node("model", lambda _: {"messages": [ai("a1", "pay", content=f"use {secret}")]})
    built.add_edge(START, "model")
    with DendrerSaver("s") as saver:
        app = built.compile(checkpointer=saver)
        app.invoke({"messages": [("user", "my word is swordfish")]}, thread("t"))
        assert any("use " in str(one.get("content")) for _, one in messages("t"))
        assert secret not in json.dumps(messages("t"))
        assert "swordfish" in json.dumps(messages("t"))
        saver.delete_thread("t")
    assert messages("t") == []
    assert "swordfish" not in ran("log", "t", "--json", "--all").stdout


TAGS = """
import sys
from typing import Any, TypedDict
from langgraph.graph import StateGraph, START
from dendrer.langgraph import DendrerSaver
class S(TypedDict, total=False):
    tags: Any
g = StateGraph(S)
g.add_node("a", lambda s: {"tags": {"red", "blue", "green", "gold", frozenset({"x", "y"})}})
g.add_edge(START, "a")
with DendrerSaver("s") as saver:
    g.compile(checkpointer=saver).invoke({"tags": None}, {"configurable": {"thread_id": sys.argv[1]}})
"""


def test_two_equal_threads_have_no_difference_in_the_order_of_a_set() -> None:
    """Case E30: the order of a set, ids of checkpoints and places of bytes are no difference."""
    for seed, name in (("1", "mon"), ("7", "tue"), ("42", "wed")):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", TAGS, name], env=env, check=True)
    for other in ("tue", "wed"):
        same("mon", other)


def same(a: str, b: str) -> None:
    """Checks that two runs have no difference and no divergence."""
    shown = ran("diff", a, b, "--exit-code")
    assert (shown.returncode, shown.stderr) == (0, ""), shown.stdout
    assert ran("diff", a, b, "--path", "values", "--exit-code").returncode == 0
    assert ran("bisect", a, "--divergence", b).returncode == 1


def team(saver: Any, answer: str) -> Any:
    """A graph with a subgraph, parallel tasks, messages without ids, an interrupt and a set."""
    inner: Any = StateGraph(MessagesState)
    inner.add_node("ask", lambda _: {"messages": [ai(None, "x", "y")]})
    inner.add_edge(START, "ask")

    def run(state: Wide) -> dict[str, Any]:
        return {"messages": [ToolMessage(answer, tool_call_id=state["call"]["id"])]}

    def last(_: Wide) -> dict[str, Any]:
        return {"notes": {str(interrupt("go on?")), "done"}}

    built: Any = StateGraph(Wide)
    built.add_node("inner", inner.compile())
    built.add_node("run", run)
    built.add_node("last", last)
    built.add_edge(START, "inner")
    built.add_conditional_edges(
        "inner", lambda s: [Send("run", {"call": call}) for call in s["messages"][-1].tool_calls], ["run"]
    )
    built.add_edge("run", "last")
    return built.compile(checkpointer=saver)


def test_two_equal_threads_of_a_team_have_no_difference() -> None:
    """Ids that a framework makes up are no difference, nor is the order in which it writes; an answer is."""
    with DendrerSaver("s") as saver:
        for name, answer in (("mon", "done"), ("tue", "done"), ("wed", "failed")):
            app = team(saver, answer)
            app.invoke({"messages": [("user", "go")]}, thread(name))
            app.invoke(Command(resume="yes"), thread(name))
    same("mon", "tue")
    shown = ran("diff", "mon", "wed", "--json")
    assert ran("diff", "mon", "wed", "--exit-code").returncode == 1
    assert '"done"' in shown.stdout and '"failed"' in shown.stdout
    assert ran("bisect", "mon", "--divergence", "wed").returncode == 0


def test_log_show_steps_and_runs_say_what_a_thread_says() -> None:
    """Each prints messages, calls and failures; a run whose name is a digest is shown with its thread."""
    with DendrerSaver("s") as saver:
        pay(saver).invoke({"messages": [HumanMessage("Pay 3", id="h1")]}, thread("user:1"))
        (run,) = [str(run) for run in saver.runs_of("user:1")]
    log = ran("log", run).stdout
    assert log.startswith('thread "user:1"\n tick  step  node              wrote\n')
    assert '     1  model             messages +1 ai: pay {"n":3}' in log
    assert '     2  tool              messages +1 tool: FAIL error "card declined"' in log
    assert json.loads(ran("runs", "--where", 'thread == "user:1"', "--json").stdout)["items"][0]["name"] == run
    tick = next(tick for tick, one in messages(run) if "result" in one)
    assert 'message  tool: FAIL error pay "card declined"' in ran("show", f"{run}@{tick}").stdout
    steps = {step["tick"]: step for step in json.loads(ran("steps", run, "--json").stdout)["items"]}
    assert (steps[tick]["action"], steps[tick]["name"], steps[tick]["success"]) == ("external", "pay", False)
    call = next(tick for tick, one in messages(run) if "calls" in one)
    assert (steps[call]["action"], steps[call]["name"]) == ("tool_call", "pay")
    assert 'thread "user:1"' in ran("runs").stdout
    assert [item["thread"] for item in json.loads(ran("runs", "--json").stdout)["items"]] == ["user:1"]


def test_only_the_saver_says_what_a_thread_was_given() -> None:
    """A line that brings messages is refused: it would count calls that nobody made."""
    dendrer.init("s")
    line = '{"type":"plan.update","messages":[{"role":"tool","result":{"status":"error"}}]}\n'
    command = ["dendrer", "--store", "s", "commit", "--run", "t", "--jsonl"]
    refused = subprocess.run(command, input=line, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "set by the kernel" in refused.stdout + refused.stderr


def test_a_withheld_change_takes_its_messages_with_it() -> None:
    """What a bundle leaves out of a channel or of a write is not in the messages either."""
    with DendrerSaver("s") as saver:
        pay(saver).invoke({"messages": [HumanMessage("my word is swordfish", id="h1")]}, thread("t"))
    assert ran("export", "t", "-o", "whole.dnd").returncode == 0
    withhold = ["export", "t", "--withhold", "/delta", "--withhold", "/intent/values", "-o", "part.dnd"]
    asked = ran(*withhold)
    named = [line.removeprefix("note: the places: ") for line in asked.stderr.splitlines() if "the places: " in line]
    assert asked.returncode == (5 if named else 0), asked.stderr
    also = [word for place in " ".join(named).split() for word in ("--also", place)]
    assert ran(*withhold, *also).returncode == 0
    with open("whole.dnd", encoding="utf-8") as whole, open("part.dnd", encoding="utf-8") as part:
        assert "swordfish" in whole.read()
        assert "swordfish" not in part.read()
    shown = subprocess.run(
        ["dendrer", "bisect", "part.dnd", "--holds", "state.counters.tool_errors == 0"], capture_output=True, text=True, check=False
    )
    assert shown.returncode not in (0, 1), shown.stdout
    tick = next(tick for tick, one in messages("t") if one["role"] == "user")
    also = [word for place in ("intent.values", "delta") for word in ("--also", place)]
    stays = ["--although", "intent.metadata"]
    erased = ran("erase", f"t@{tick}", "/delta", *also, *stays, "--reason", "asked")
    assert erased.returncode == 0, erased.stderr + erased.stdout
    assert "swordfish" not in ran("log", "t", "--json", "--all").stdout


def test_a_thread_of_before_messages_were_listed_answers_as_it_did() -> None:
    """A thread that has no `messages`: it verifies and replays, and its counters say what they said."""
    old = str(Path(__file__).parent / "data" / "thread-without-messages.dnd")
    for holds in ("state.counters.tool_calls == 0", "state.counters.tool_errors == 0", "state.counters.tokens_used == 0"):
        assert dendrer.open(old)["pay"].bisect(holds=holds).outcome == "never", holds
    found = dendrer.open(old)["pay"].bisect(holds="size(state.values.messages) < 3", lift=True).onset
    assert found is not None and found.tick == 8
    assert dendrer.open(old)["pay"].verify(replay=True).verdict in ("VERIFIED", "INTACT")
