"""Delta channels: what is written is rebuilt from the writes along the ancestors, and from the nearest value."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, TypedDict, cast

import pytest

pytest.importorskip("langgraph.channels.delta")

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from dendrer.langgraph import DendrerSaver, copy_from


def joined(state: list[str], writes: list[list[str]]) -> list[str]:
    """The reducer: every write behind the other."""
    return [*(state or []), *(item for write in writes for item in write)]


class State(TypedDict):
    """A transcript that is kept as deltas, and a counter that is not."""

    messages: Annotated[list[str], DeltaChannel(joined, list, snapshot_frequency=4)]
    n: int


def graph(saver: Any, steps: int = 9) -> Any:
    """A graph that says one more thing at each step."""
    built: Any = StateGraph(State)
    built.add_node("say", lambda state: {"messages": [f"step {state['n']}"], "n": state["n"] + 1})
    built.add_edge(START, "say")
    built.add_conditional_edges("say", lambda state: "say" if state["n"] < steps else END, ["say", END])
    return built.compile(checkpointer=saver)


def config(name: str = "t") -> dict[str, Any]:
    """The config of a thread."""
    return {"configurable": {"thread_id": name}}


FIRST = {"messages": ["hello"], "n": 0}
SAID = ["hello", *(f"step {n}" for n in range(9))]


def put(saver: DendrerSaver, parent: Any, **values: Any) -> Any:
    """Puts a checkpoint behind another one."""
    made: dict[str, Any] = {**empty_checkpoint(), "id": str(uuid6()), "channel_values": values}
    made["channel_versions"] = {name: 1 for name in values}
    place: Any = parent or {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    return saver.put(place, cast(Any, made), {"source": "loop", "step": 1}, made["channel_versions"])


def history(saver: DendrerSaver, at: Any, *channels: str) -> Any:
    """What the saver says of channels, synchronously and not."""
    now = saver.get_delta_channel_history(config=at, channels=list(channels))
    assert asyncio.run(saver.aget_delta_channel_history(config=at, channels=list(channels))) == now
    return now


def test_a_graph_with_a_delta_channel_is_what_it_is_in_memory() -> None:
    """The same values at every checkpoint, also read by another saver."""
    memory = InMemorySaver()
    graph(memory).invoke(FIRST, config())
    with DendrerSaver("s") as saver:
        assert graph(saver).invoke(FIRST, config())["messages"] == SAID
    with DendrerSaver("s") as saver:
        ours = [one.values for one in graph(saver).get_state_history(config())]
        assert ours == [one.values for one in graph(memory).get_state_history(config())]


def test_writes_come_oldest_first_and_the_nearest_value_is_the_seed() -> None:
    """Those of the checkpoint itself are pending, and not part of it."""
    with DendrerSaver("s") as saver:
        root = put(saver, None, m="seed", other="x")
        saver.put_writes(root, [("m", 1)], "a")
        middle = put(saver, root, other="x")
        saver.put_writes(middle, [("m", 2), ("other", "y")], "b")
        last = put(saver, middle, other="x")
        saver.put_writes(last, [("m", 3)], "c")
        assert history(saver, last, "m") == {"m": {"writes": [("a", "m", 1), ("b", "m", 2)], "seed": "seed"}}
        assert history(saver, last) == {}
        assert history(saver, root, "m") == {"m": {"writes": []}}
        assert history(saver, last, "nothing") == {"nothing": {"writes": []}}
        assert history(saver, last, "m", "other")["other"] == {"writes": [("b", "other", "y")], "seed": "x"}


def test_without_a_value_there_is_no_seed() -> None:
    """The walk ends at the root."""
    with DendrerSaver("s") as saver:
        root = put(saver, None)
        saver.put_writes(root, [("m", 1)], "a")
        assert history(saver, put(saver, root), "m") == {"m": {"writes": [("a", "m", 1)]}}


def test_within_a_checkpoint_writes_are_in_the_order_of_the_paths() -> None:
    """By path, task and number; those without a path come first."""
    with DendrerSaver("s") as saver:
        root = put(saver, None)
        for task, path in (("a", "~2"), ("b", "~1"), ("c", ""), ("d", "~1")):
            saver.put_writes(root, [("m", task + "0"), ("m", task + "1")], task, path)
        found = history(saver, put(saver, root), "m")["m"]["writes"]
        assert [value for _, _, value in found] == ["c0", "c1", "b0", "b1", "d0", "d1", "a0", "a1"]


def test_of_a_fork_only_its_own_ancestors_count() -> None:
    """What the other branch wrote is not in it."""
    with DendrerSaver("s") as saver:
        root = put(saver, None, m="seed")
        one = put(saver, root)
        saver.put_writes(one, [("m", "one")], "a")
        assert saver.get_tuple(root) is not None
        other = put(saver, root)
        saver.put_writes(other, [("m", "other")], "b")
        assert history(saver, put(saver, other), "m")["m"] == {"writes": [("b", "m", "other")], "seed": "seed"}
        assert history(saver, put(saver, one), "m")["m"] == {"writes": [("a", "m", "one")], "seed": "seed"}


def test_namespaces_have_histories_of_their_own() -> None:
    """The same ids in another namespace are other checkpoints."""
    with DendrerSaver("s") as saver:
        root = put(saver, None, m="root")
        inner: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "inner"}}
        begun = put(saver, inner, m="inner")
        saver.put_writes(begun, [("m", 1)], "a")
        assert history(saver, put(saver, begun), "m")["m"]["seed"] == "inner"
        assert history(saver, put(saver, root), "m")["m"] == {"writes": [], "seed": "root"}


@pytest.mark.parametrize("how", ["prune", "copy", "copy_from", "delete_for_runs"])
def test_what_is_left_is_rebuilt(how: str) -> None:
    """A naive copy, or a naive deletion, would rebuild an empty transcript."""
    with DendrerSaver("s") as saver:
        graph(saver).invoke(FIRST, config())
        graph(saver).invoke(FIRST, {**config("other"), "metadata": {"run_id": "r-1"}})
        name = "t"
        if how == "prune":
            before = len(list(saver.list(cast(Any, config()))))
            saver.prune(["t"])
            assert len(list(saver.list(cast(Any, config())))) < before
        elif how == "copy":
            saver.copy_thread("t", name := "copy")
        elif how == "copy_from":
            memory = InMemorySaver()
            graph(memory).invoke(FIRST, config("memory"))
            assert copy_from(memory, saver) > 9
            name = "memory"
        else:
            saver.delete_for_runs(["r-1"])
            assert list(saver.list(cast(Any, config("other")))) == []
        assert graph(saver).get_state(config(name)).values["messages"] == SAID
        more = graph(saver, 11).invoke({"messages": ["again"], "n": 10}, config(name))
        assert more["messages"] == [*SAID, "again", "step 10"]
