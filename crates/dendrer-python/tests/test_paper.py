"""The writer of the dendrer paper (section 6) works as it is printed there."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dendrer
import pytest
from dendrer import TraceWriter, aio
from helpers import command, document, is_clean, ticks, transitions

#: Section 6, "Stage 0 adapter (LangChain example)", with its indentation mended.
SNIPPET = '''
from dendrer import TraceWriter

writer = TraceWriter(run_id="my-agent-run", storage="append-only")

# Wrap your existing LangChain callback handler
class DendrerAdapter(BaseCallbackHandler):

    def on_llm_end(self, response, **kwargs):
        writer.emit({
            "transition_type": "observation.add",
            "tick": writer.next_tick(),
            "payload": response.generations[0][0].text,
            "confidence": kwargs.get("confidence"),
        })

    def on_tool_end(self, output, **kwargs):
        writer.emit({
            "transition_type": "action.result",
            "tick": writer.next_tick(),
            "tool": kwargs.get("tool_name"),
            "output": output, # recorded for replay in Stage 1
        })
'''


class BaseCallbackHandler:
    """As LangChain has it."""


def response(text: str) -> Any:
    """What LangChain hands over when a model has answered."""
    return SimpleNamespace(generations=[[SimpleNamespace(text=text)]])


def test_the_adapter_of_the_paper_records_without_a_change() -> None:
    """Answers of the model and results of tools are transitions of a run, in a store that was made for them."""
    assert not Path(".dendrer").exists()
    names: dict[str, Any] = {"BaseCallbackHandler": BaseCallbackHandler}
    exec(SNIPPET, names)
    handler = names["DendrerAdapter"]()
    handler.on_llm_end(response("take the train"), confidence=0.9, run_id="r")
    handler.on_llm_end(response("and a hotel"))
    handler.on_tool_end({"price": 128.5}, tool_name="get_price")
    handler.on_tool_end("plain text")
    names["writer"].close()
    said, unsure, told, plain = (item["content"] for item in transitions("my-agent-run"))
    assert said["intent"] == {"payload": "take the train", "confidence": 0.9}
    assert unsure["intent"] == {"payload": "and a hotel"}
    assert (told["action"], told["result"]) == ({"tool": "get_price"}, {"status": "ok", "output": {"price": 128.5}})
    assert "action" not in plain and plain["result"] == {"status": "ok", "output": "plain text"}
    assert [item["type"] for item in transitions("my-agent-run")] == ["observation.add"] * 2 + ["action.result"] * 2
    shown = command("log", "my-agent-run")
    assert shown.returncode == 0 and "get_price" in shown.stdout and "plain text" in shown.stdout
    assert "take the train" in command("show", "my-agent-run@1", "--intent").stdout
    assert document("show", "my-agent-run@3")["author"] == "runtime"
    is_clean()


def test_the_example_of_the_page() -> None:
    """Ticks are those of the kernel; an event that claims another one raises and is not on record."""
    trace = TraceWriter("paper-run", "append-only", store="trip")
    assert trace.next_tick() == 1
    assert trace.emit({"transition_type": "observation.add", "tick": trace.next_tick(), "payload": {"text": "hello"}, "confidence": 0.9}) == 1
    with pytest.raises(dendrer.TickMismatch):
        trace.emit({"transition_type": "observation.add", "tick": 9, "payload": {}})
    assert trace.next_tick() == 2
    trace.close()
    (item,) = transitions("paper-run", "trip")
    assert item["content"]["intent"] == {"payload": {"text": "hello"}, "confidence": 0.9}


def test_a_missing_store_is_made_and_an_old_one_is_used() -> None:
    """The store is made where it is named, once; a second writer goes on with the run if it says so."""
    with TraceWriter("a", store="new/deep") as trace:
        assert trace.emit({"transition_type": "plan.update"}) == 1
    assert Path("new/deep/.dendrer").is_dir()
    with TraceWriter("a", store="new/deep", resume=True) as trace:
        assert trace.next_tick() == 2
        assert trace.emit({"transition_type": "plan.update", "tick": 2}) == 2
    with TraceWriter("b", store="new/deep", goal="g", sync=10, agent="ann") as trace:
        trace.emit({"transition_type": "plan.update"})
    assert dendrer.open("new/deep").names() == ["a", "b"] and ticks("a", "new/deep") == [1, 2]
    assert [item["agent"] for item in transitions("b", "new/deep")] == ["ann"]


@pytest.mark.parametrize("tick", [0, 2, -1, 10**30, "1", True, 1.0, [1]], ids=repr)
def test_another_tick_is_refused(tick: Any) -> None:
    """A tick that is not the next one, or is no tick, is an error, and nothing is on record."""
    with TraceWriter("a") as trace:
        with pytest.raises(dendrer.TickMismatch if type(tick) is int else dendrer.UsageError) as caught:
            trace.emit({"transition_type": "plan.update", "tick": tick})
        assert type(pickle.loads(pickle.dumps(caught.value))) is type(caught.value)
        assert trace.emit({"transition_type": "plan.update", "tick": 1}) == 1
        assert trace.emit({"transition_type": "plan.update", "tick": None}) == 2
        assert trace.emit({"transition_type": "plan.update"}) == 3
    assert ticks("a") == [1, 2, 3]


def test_a_tick_that_another_writer_took_is_refused_and_the_next_one_is_known() -> None:
    """When another process wrote, the event is not taken; asked again, the writer knows the next tick and goes on."""
    with TraceWriter("a") as trace:
        assert trace.emit({"transition_type": "plan.update", "tick": trace.next_tick()}) == 1
        assert command("commit", "--run=a", input='{"type":"plan.update"}\n').returncode == 0
        with pytest.raises(dendrer.TickMismatch):
            trace.emit({"transition_type": "plan.update", "tick": 2})
        assert trace.next_tick() == 3
        assert trace.emit({"transition_type": "plan.update", "tick": trace.next_tick()}) == 3
        assert command("commit", "--run=a", input='{"type":"plan.update"}\n').returncode == 0
        assert trace.emit({"transition_type": "plan.update"}) == 5
    assert ticks("a") == [1, 2, 3, 4, 5]


def test_none_is_absent_and_everything_else_is_kept() -> None:
    """`None` leaves a key out; false values and values of every form are kept, and the event is not changed."""
    events: list[dict[str, Any]] = [
        {"transition_type": "observation.add", "payload": None, "confidence": None, "tool": None, "output": None},
        {"transition_type": "observation.add", "payload": "", "confidence": 0},
        {"transition_type": "action.result", "output": 0, "tool": "t"},
        {"transition_type": "action.result", "output": False, "result": {"status": "late"}, "action": {"call_id": "c"}, "tool": "t"},
        {"transition_type": "observation.add", "payload": (1, b"x", float("nan")), "intent": {"own": 1}},
        {"transition_type": "observation.add", "agent": "ann", "delta": [{"set": "/n", "value": 1}], "key": "k"},
    ]
    before = [dict(event) for event in events]
    with TraceWriter("a") as trace:
        for event in events:
            trace.emit(event)
        assert trace.flush() == 6
    assert str(events) == str(before)
    contents = [item["content"] for item in transitions("a")]
    assert "intent" not in contents[0] and "action" not in contents[0] and "result" not in contents[0]
    assert contents[1]["intent"] == {"payload": "", "confidence": 0}
    assert contents[2]["result"] == {"status": "ok", "output": 0}
    assert contents[3]["result"] == {"status": "late", "output": False} and contents[3]["action"] == {"call_id": "c", "tool": "t"}
    assert contents[4]["intent"] == {"payload": [1, {"$bytes": "eA"}, {"$float": "NaN"}], "own": 1}
    assert (contents[5]["agent_id"], document("state", "a", "--path=n")["value"]) == ("ann", 1)
    is_clean()


def test_an_event_that_is_none_raises() -> None:
    """No type, a type that there is not, one of the kernel, a key that there is not."""
    with TraceWriter("a") as trace:
        raised: list[tuple[dict[str, Any], type[dendrer.DendrerError]]] = [
            ({}, dendrer.UsageError),
            ({"payload": 1}, dendrer.UsageError),
            ({"transition_type": "tool.call"}, dendrer.Refused),
            ({"transition_type": "kernel.anomaly"}, dendrer.AuthorshipError),
            ({"transition_type": "observation.add", "nosuch": 1}, dendrer.DendrerError),
            ({"transition_type": "observation.add", "confidence": 2}, dendrer.DendrerError),
        ]
        for event, kind in raised:
            with pytest.raises(kind):
                trace.emit(event)
        assert trace.emit({"transition_type": "plan.update", "tick": trace.next_tick()}) == trace.next_tick() - 1
    assert {item["type"] for item in transitions("a")} == {"kernel.anomaly", "plan.update"}


def test_a_writer_that_is_closed_or_of_another_storage_raises() -> None:
    """Behind `close` nothing is emitted; the one storage is append-only."""
    trace = TraceWriter("a")
    trace.close()
    trace.close()
    with pytest.raises(dendrer.UsageError):
        trace.emit({"transition_type": "plan.update"})
    for storage in ("", "memory", "APPEND-ONLY"):
        with pytest.raises(dendrer.UsageError):
            TraceWriter("a", storage)
    with pytest.raises(dendrer.UsageError):
        TraceWriter("no name")


def test_threads_emit_without_ticks() -> None:
    """Callbacks come from several threads: each event gets a tick of its own."""
    with TraceWriter("a", sync=10) as trace:

        def emit(n: int) -> int:
            return trace.emit({"transition_type": "observation.add", "payload": n})

        with ThreadPoolExecutor(4) as pool:
            told = list(pool.map(emit, range(40)))
    assert sorted(told) == list(range(1, 41))
    on_record = transitions("a")
    assert all(on_record[tick - 1]["content"]["intent"]["payload"] == n for n, tick in enumerate(told))


def test_the_asynchronous_writer_does_the_same() -> None:
    """`aio.TraceWriter` emits, counts and refuses alike."""

    async def main() -> None:
        async with aio.TraceWriter("a", store="made") as trace:
            assert await trace.next_tick() == 1
            assert await trace.emit({"transition_type": "plan.update", "tick": 1}) == 1
            with pytest.raises(dendrer.TickMismatch):
                await trace.emit({"transition_type": "plan.update", "tick": 1})
            calls: list[Callable[[], Any]] = [lambda: trace.emit({"transition_type": "plan.update"}) for _ in range(5)]
            assert await asyncio.gather(*(call() for call in calls)) == [2, 3, 4, 5, 6]

    asyncio.run(main())
    assert ticks("a", "made") == list(range(1, 7))
