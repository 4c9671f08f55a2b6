"""Threads with subgraphs that go back, values that are deleted or erased with all that was made of them, and masked secrets."""

from __future__ import annotations

import asyncio
import logging
import operator
import shlex
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel, Secret, SecretBytes, SecretStr

import dendrer
from dendrer.langgraph import DendrerSaver, copy_from
from helpers import command, is_clean, transitions


def thread(id: str) -> Any:
    """The config of a thread."""
    return {"configurable": {"thread_id": id}}


def raw(store: str = "s") -> bytes:
    """Every byte of a store."""
    return b"".join(path.read_bytes() for path in sorted(Path(store).rglob("*")) if path.is_file())


# -- subgraphs ------------------------------------------------------------------------------------------------------


class Log(TypedDict):
    """The state of the graph."""

    log: Annotated[list[str], operator.add]


class Inner(TypedDict):
    """The state of the subgraph: `seen` stays in it."""

    log: Annotated[list[str], operator.add]
    seen: Annotated[list[str], operator.add]


def built(saver: Any, how: str) -> Any:
    """A graph with a subgraph that keeps its state from turn to turn, as a node or inside of one."""
    inner = StateGraph(Inner)
    inner.add_node("p", lambda state: {"log": ["p"], "seen": ["x"]})
    inner.add_edge(START, "p")
    sub: Any = inner.compile(checkpointer=None if how == "afresh" else True)
    graph = StateGraph(Log)
    graph.add_node("a", lambda state: {"log": ["a"]})
    if how == "inside":
        graph.add_node("sub", lambda state: {"log": sub.invoke({"log": state["log"]})["log"]})
    else:
        graph.add_node("sub", sub)
    graph.add_edge(START, "a")
    graph.add_edge("a", "sub")
    return graph.compile(checkpointer=saver)


def travelled(saver: Any, how: str, by: str, durability: str, at: int) -> list[Any]:
    """Three turns, back to an earlier one, one more turn, and back once more: what the graph and the saver answer."""
    app = built(saver, how)

    def run(given: Any, config: Any) -> str:
        options: Any = {"durability": durability}
        done = (
            asyncio.run(app.ainvoke(given, config, **options))
            if by == "ainvoke"
            else app.invoke(given, config, **options)
        )
        return "".join(done["log"])

    for turn in "123":
        run({"log": [turn]}, thread("t"))
    is_exit = durability == "exit"
    old = [one for one in app.get_state_history(thread("t")) if is_exit or one.next == ("sub",)][at].config
    if by == "reopened" and isinstance(saver, DendrerSaver):
        saver.close()
        saver = DendrerSaver("s")
        app = built(saver, how)
    given: Any = {"log": ["x"]} if is_exit else None
    config = app.update_state(old, {"log": ["u"]}) if by == "update_state" else old
    answers: list[Any] = [run(given, config), run({"log": ["4"]}, thread("t")), run(given, old)]
    answers.append(["".join(one.values["log"]) for one in app.get_state_history(thread("t"))])
    below: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "sub"}}
    kept = [one.checkpoint["channel_values"] for one in saver.list(below)]
    answers.append([(value.get("log"), value.get("seen")) for value in kept])
    if isinstance(saver, DendrerSaver):
        saver.close()
    return answers


@pytest.mark.parametrize("at", [0, 1, -1])
@pytest.mark.parametrize("durability", ["async", "exit"])
@pytest.mark.parametrize("by", ["invoke", "ainvoke", "update_state", "reopened"])
@pytest.mark.parametrize("how", ["node", "inside", "afresh"])
def test_a_graph_with_a_subgraph_goes_back_to_any_turn(how: str, by: str, durability: str, at: int) -> None:
    """As with the saver that comes with LangGraph; another process reads the same, and each run is whole."""
    expected = travelled(InMemorySaver(), how, by, durability, at)
    assert travelled(DendrerSaver("s"), how, by, durability, at) == expected
    is_clean("s")
    store = dendrer.open("s")
    with DendrerSaver("s") as saver:
        runs = saver.runs_of("t")
        assert len(runs) == (2 if at == 0 and durability == "exit" else 3), runs
        below: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "sub"}}
        kept = {str(one.checkpoint["channel_values"].get("seen")) for one in saver.list(below)}
    if how != "afresh":
        # The newest state of each run has the subgraph as one of its checkpoints has it.
        for run in runs:
            state = store[run].state_at(store[run].tip)
            assert str(state["subgraphs"]["sub"].get("seen")) in kept


def test_a_subgraph_of_a_thread_that_went_back_is_copied_and_pruned() -> None:
    """The copy answers as the thread does."""
    with DendrerSaver("s") as saver:
        app = built(saver, "node")
        for turn in "12":
            app.invoke({"log": [turn]}, thread("t"))
        old = next(one for one in app.get_state_history(thread("t")) if one.next == ("sub",))
        app.invoke(None, old.config)

        def values(id: str) -> list[Any]:
            config: Any = {"configurable": {"thread_id": id}}
            return [(one.config["configurable"]["checkpoint_id"], one.checkpoint["channel_values"]) for one in saver.list(config)]

        saver.copy_thread("t", "u")
        assert values("u") == values("t")
        assert len(saver.runs_of("u")) == 2
        saver.prune(["u"])
        assert built(saver, "node").invoke({"log": ["3"]}, thread("u")) == app.invoke({"log": ["3"]}, thread("t"))


# -- deletion -------------------------------------------------------------------------------------------------------


class Channels(TypedDict):
    """The state of a graph with one channel of text, and one of anything."""

    card: str
    any: Any


CARD = "4929-1111-2222-3333 Visa"


def pay(saver: Any, id: str, card: str = CARD, any: Any = None) -> None:
    """A thread of which a node writes two channels."""
    graph = StateGraph(Channels)
    graph.add_node("n", lambda state: {"card": card, "any": any})
    graph.add_edge(START, "n")
    graph.compile(checkpointer=saver).invoke({"card": "none", "any": None}, thread(id))


@pytest.mark.parametrize("way", ["delete_thread", "prune", "delete_for_runs"])
def test_what_was_made_of_a_deleted_thread_goes_or_is_named(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """Findings go with the thread. Of notes and other runs a warning says that they stay, with commands that work."""
    with DendrerSaver("s") as saver:
        pay(saver, "t")
        pay(saver, "u", "another card")
        dendrer.open("s")["t"].bisect(holds="state.values.card == 'none'", record=True)
        assert command("diff", "t", "u", "--record", "--store", "s").returncode == 0
        assert CARD.encode() in raw()
        if way == "delete_for_runs":
            config: Any = {"configurable": {"thread_id": "t"}}
            made = {str(one.metadata.get("run_id")) for one in saver.list(config)}
            assert made == {"None"}
            saver.prune(["t"], strategy="delete")
        elif way == "prune":
            saver.prune(["t"], strategy="delete")
        else:
            saver.delete_thread("t")
        assert CARD.encode() not in raw()
        assert not [one for one in caplog.records if "made from" in one.getMessage()]


def test_a_note_and_a_rebased_run_of_a_deleted_thread_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """With a command for each record, which `erase` takes."""
    with DendrerSaver("s") as saver:
        pay(saver, "t")
        pay(saver, "u", "another card")
        for words in (["note", "t@3", f"see {CARD}"], ["rebase", "t", "--onto", "u", "--as", "again"]):
            assert command(*words, "--store", "s").returncode == 0
        saver.delete_thread("t")
        said = next(one.getMessage() for one in caplog.records if "made from" in one.getMessage())
        commands = [shlex.split(line)[1:] for line in said.splitlines() if line.startswith("dendrer ")]
        assert {words[1].split("@")[0] for words in commands} == {"casebook", "again"}
        for words in commands:
            done = command(*words)
            # What another run has elsewhere is asked for, as ever.
            assert done.returncode == 0 or "E0467" in done.stderr and words[1].startswith("again"), done.stderr
        assert f"see {CARD}".encode() not in raw()
        caplog.clear()
        saver.delete_thread("u")
        assert not any("casebook" in one.getMessage() for one in caplog.records)


# -- erasure --------------------------------------------------------------------------------------------------------


def erase(place: str, *more: str) -> Any:
    """Erases a place of the channel."""
    return command("erase", place, "state.values.card", *more, "--reason", "asked", "--store", "s")


def test_an_erased_channel_is_not_read_from_the_vault() -> None:
    """Neither by another process nor by one that wrote it; a deletion takes the rest, and the thread begins again."""
    writer = DendrerSaver("s")
    pay(writer, "t")
    dry = erase("t@5", "--although", "intent", "--dry-run")
    assert "intent.checkpoint  (contains the value), exact bytes in the vault" in dry.stdout, dry.stdout
    assert erase("t@5", "--although", "intent").returncode == 0
    for saver in (writer, DendrerSaver("s")):
        with pytest.raises(dendrer.IntegrityError):
            saver.get_tuple(thread("t"))
        history: list[Any] = []
        with pytest.raises(dendrer.IntegrityError):
            history.extend(saver.list(thread("t")))
        saver.close()
    with DendrerSaver("s") as saver:
        saver.delete_thread("t")
        assert saver.get_tuple(thread("t")) is None and CARD.encode() not in raw()
    with DendrerSaver("s") as saver:
        assert saver.get_tuple(thread("t")) is None and not [*saver.list(thread("t"))]
        pay(saver, "t", "new")
        assert cast(Any, saver.get_tuple(thread("t"))).checkpoint["channel_values"]["card"] == "new"


def test_items_that_were_joined_go_with_an_erased_item() -> None:
    """A list that grows is laid together now and then: those bytes have the item as well."""

    class Items(TypedDict):
        card: Annotated[list[str], operator.add]

    graph = StateGraph(Items)
    graph.add_node("n", lambda state: {"card": [CARD if len(state["card"]) == 1 else "x" * len(state["card"])]})
    graph.add_edge(START, "n")
    with DendrerSaver("s") as saver:
        app = graph.compile(checkpointer=saver)
        for turn in range(40):
            app.invoke({"card": [f"in {turn}"]}, thread("t"))
    puts = (one for one in transitions("t", "s") if one["type"] == "memory.write")
    tick = next(one["tick"] for one in puts if CARD in str(one["content"].get("delta")))
    done = erase(f"t@{tick}", "--also", "intent.values", "--although", "delta", "--although", "intent.metadata", "--although", "intent.values", "--although", "messages")
    assert done.returncode == 0, done.stderr
    with DendrerSaver("s") as saver:
        ids = [key[2] for key in saver._open.opened().list("t", None, None, None)]
        read = 0
        for id in ids:
            config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": id}}
            try:
                found = saver.get_tuple(config)
            except dendrer.IntegrityError:
                continue
            read += 1
            assert CARD not in str(found.checkpoint) if found else True
        assert 0 < read < len(ids)


# -- secrets --------------------------------------------------------------------------------------------------------


class Login(BaseModel):
    """A model with secrets."""

    user: str
    answer: SecretStr
    key: SecretBytes
    pin: Secret[int]


def test_a_secret_of_pydantic_is_on_record_masked() -> None:
    """In a model, bare, in a list, by a copy and by an import; the saver returns it."""
    login = Login(user="ann", answer=SecretStr("maiden-smith"), key=SecretBytes(b"maiden-key"), pin=Secret[int](90210777))
    given = [login, SecretStr("maiden-bare"), {"k": SecretBytes(b"maiden-deep")}]
    with DendrerSaver("s") as saver:
        pay(saver, "t", any=given)
        memory = InMemorySaver()
        pay(memory, "m", any=given)
        copy_from(memory, saver)
    from langgraph.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string("cp.sqlite") as sqlite:
        pay(sqlite, "i", any=given)
    assert command("import", "cp.sqlite", "--store", "s").returncode == 0
    with DendrerSaver("s") as saver:
        for id in ("t", "m", "i"):
            run = dendrer.open("s")[saver.runs_of(id)[0]]
            shown = run.state_at(run.tip, path="values.any")
            masked = "*" * 10
            assert shown == [{"user": "ann", "answer": masked, "key": masked, "pin": masked}, masked, {"k": masked}]
            found = cast(Any, saver.get_tuple(thread(id))).checkpoint["channel_values"]["any"]
            assert found[1] == SecretStr("maiden-bare") and found[2] == {"k": SecretBytes(b"maiden-deep")}
            assert found[0].answer == login.answer
    everything = raw()
    assert b"maiden" not in everything and b"90210777" not in everything
