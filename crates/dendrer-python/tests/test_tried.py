"""What people found who tried the package: lists that were cut, unknown values that were returned, keywords that were kept apart."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import time
from pathlib import Path
from typing import Any

import dendrer
import pytest
from dendrer import _errors, _recording, aio
from helpers import command, document

PACK = """\
name: example.tickets
version: v1
words: A help desk that opens tickets.
goal: open a ticket
state:
  tickets:
    words: every ticket, by its id
    init: "{}"
  open:
    words: how many are open
    init: 0
rules:
  - words: a tool opens a ticket
    when_type: action.result
    when: t.result.status == 'ok'
    steps:
      - set: tickets[t.result.output.id]
        value:
          about: t.action.params.about
predicates:
  few:
    words: few tickets are open
    holds: state.open <= 3
"""


def of_pack() -> dendrer.Run:
    """A run whose place `tickets` is unknown from tick 2 on."""
    store = dendrer.init()
    Path("pack.yaml").write_text(PACK, encoding="utf-8")
    with dendrer.run("p", pack="pack.yaml") as run:
        asked = run.propose(action={"tool": "open", "params": {"about": "lamp"}})
        run.result(asked, {"id": "T1"})
        run.observe("two")
    return store["p"]


# -- lists are whole ------------------------------------------------------------------------------------------------


def test_lists_are_whole_unless_a_limit_is_given() -> None:
    """The limits of the terminal do not reach Python."""
    store = dendrer.init()
    for number in range(54):
        with dendrer.run(f"r{number}", sync=100) as run:
            run.observe("x", {"n": number})
    assert len(store.runs()) == len(store.runs(where="ticks == 1")) == 54
    assert len(store.runs(limit=7)) == 7
    for name in ("a", "b"):
        with dendrer.run(name, sync=500) as run:
            for number in range(1_010):
                run.observe(f"{name} {number}", {"n": number})
    found = store["a"].diff("b")
    assert len(found.items) == len(found.only("semantic")) == found.differ == 1_010
    assert len(store["a"].diff("b", limit=3).items) == 3
    assert len(store["a"].backtrack("n")) == 1_010


def test_a_question_without_a_limit_says_whether_it_was_cut() -> None:
    """`complete` is in every document of a list with a limit."""
    store = dendrer.init()
    for number in range(52):
        with dendrer.run(f"r{number}", sync=100) as run:
            run.observe("x", {"n": number})
    with dendrer.run("a") as run:
        for number in range(60):
            run.observe("x", {"n": number})
    questions: list[tuple[dict[str, Any], bool]] = [
        ({"schema": "dendrer.runs-question/1"}, False),
        ({"schema": "dendrer.runs-question/1", "limit": 0}, True),
        ({"schema": "dendrer.backtrack-question/1", "run": "a", "path": "n"}, False),
        ({"schema": "dendrer.heatmap-question/1", "runs": ["a"]}, True),
        ({"schema": "dendrer.log-question/1", "run": "a"}, True),
        ({"schema": "dendrer.diff-question/1", "run_a": "a", "run_b": "r1"}, True),
    ]
    for question, is_complete in questions:
        assert store.ask(question)["complete"] is is_complete, question


# -- what is unknown is raised --------------------------------------------------------------------------------------


def test_an_unknown_place_is_raised() -> None:
    """`state_at` raises where `state` ends with exit 6, in words."""
    run = of_pack()
    assert command("state", "p", "tickets").returncode == 6
    for tick in (2, 3, None):
        with pytest.raises(dendrer.Uncertain) as caught:
            run.state_at(tick, path="tickets")
        assert caught.value.answer == {}
        assert caught.value.reasons == ["tickets (a rule failed at tick 2)"]
    assert run.state_at(path="tickets", on_uncertain="return") == {}
    assert run.state_at(1, path="tickets") == {}
    assert run.state_at(path="open") == 0
    assert run.state_at(path="counters")["transitions"] == 3
    assert run.state_at(path="counters.transitions") == 3
    with pytest.raises(dendrer.NotFound):
        run.state_at(path="nope")
    # A whole state names its unknown places, and ends with exit 0.
    assert "/tickets" in run[3].state["kernel_unknown"]

    async def later() -> None:
        found = await (await aio.open()).run("p")
        with pytest.raises(dendrer.Uncertain):
            await found.state_at(3, path="tickets")

    asyncio.run(later())


def test_reasons_are_words() -> None:
    """No reason of an unknown answer is JSON."""
    run = of_pack()
    with pytest.raises(dendrer.Uncertain) as caught:
        run.why("tickets")
    assert caught.value.reasons == ["tickets (a rule failed at tick 2)"]
    assert "{" not in str(caught.value)
    documents: list[tuple[dict[str, Any], list[str]]] = [
        ({"unknown": [{"place": "/a/b", "code": "reads_unknown", "tick": 7}]}, ["a.b (a rule read an unknown value at tick 7)"]),
        ({"unknown": {"a": [], "b": [{"place": "/v", "code": "no_result", "tick": 3}]}}, ["v"]),
        ({"reasons": [{"tick": 1, "to": 2, "why": "state.x is missing"}]}, ["state.x is missing"]),
        ({"unclear": [{"run": "r", "why": "state.x is missing"}]}, ["r: state.x is missing"]),
        ({"hidden": [4]}, ["the change of tick 4 was erased or withheld"]),
    ]
    for found, expected in documents:
        reasons = _errors.uncertain(found, None, None).reasons
        assert len(reasons) == 1 and reasons[0].startswith(expected[0].split(" (")[0]) and "{" not in reasons[0], reasons


# -- calls ----------------------------------------------------------------------------------------------------------


def test_a_file_of_predicates_is_named_by_its_path() -> None:
    """`all_of` takes what the flag takes."""
    run = of_pack()
    given: list[str | Path] = ["pack.yaml", Path("pack.yaml")]
    for path in given:
        found = run.bisect(all_of=path)
        assert found.document["items"][0]["predicate"], found.document
        assert "few" in str(found)
    assert run.bisect(all_of="standard").document["items"]
    with pytest.raises(dendrer.NotFound):
        run.bisect(all_of="missing.yaml")


def test_every_member_of_a_line_is_taken_or_refused() -> None:
    """No keyword that names a member of a line becomes a part of the intent."""
    members = set(document("schema", "intent")["properties"])
    # `agent`, `delta`, `uncertainty_notes` and others are parameters of the methods.
    parameters = {"agent", "author", "base", "confidence", "delta", "key"}
    assert members - parameters <= _recording._OF_LINE | set(_recording._NOT_TAKEN)
    dendrer.init()
    with dendrer.run("a", on_error="raise") as run:
        with pytest.raises(dendrer.UsageError, match=r"run\.step"):
            run.observe("x", step={})


@pytest.mark.parametrize("metrics", [{"tokens_used": -1}, {"tokens_used": "many"}, "x", [1]])
def test_metrics_that_are_none_are_refused(metrics: Any) -> None:
    """As from a pipe: a reply, and no exception of an author."""
    dendrer.init()
    with dendrer.run("a") as run:
        run.observe("first")
        reply = run.observe("x", metrics=metrics)
        assert reply.what == "refused" and reply.reason is not None
    with dendrer.run("b", on_error="raise") as run:
        run.observe("first")
        with pytest.raises(dendrer.DendrerError) as caught:
            run.observe("x", metrics=metrics)
        assert not isinstance(caught.value, dendrer.AuthorshipError)


def test_commitments_are_an_answer() -> None:
    """`str` is the text of the verb."""
    run = of_pack()
    found = run.commitments()
    assert found.items == [] and repr(found) == "<Commitments 0 commitments at tick 3, p>"
    assert str(found) == "0 of 0 commitments at tick 3"
    assert run.commitments(1).document["at"] == 1


def test_why_is_asked_of_the_tip() -> None:
    """A place alone is enough."""
    dendrer.init()
    with dendrer.run("a") as run:
        run.observe("x", {"spent": 3})
        run.observe("y", {"spent": 5})
    found = dendrer.open()["a"]
    assert found.why("spent") == found.why(2, "spent") == found.why(path="spent")
    assert found.why(1, "spent").value == 3
    with pytest.raises(dendrer.UsageError):
        found.why("spent", "spent")  # type: ignore[call-overload]

    async def later() -> None:
        run = await (await aio.open()).run("a")
        assert (await run.why("spent")).value == (await run.why(2, "spent")).value == 5

    asyncio.run(later())


def test_transitions_have_an_author_and_are_searched() -> None:
    """`author`, and `log(grep=..)` over texts, numbers and names."""
    dendrer.init()
    with dendrer.run("a") as run:
        run.user("please pay")
        run.propose(action={"tool": "pay", "params": {"amount": 900}})
        run.observe("done")
    found = dendrer.open()["a"]
    assert [one.author for one in found] == ["user", "agent", "agent"]
    for pattern, ticks in (("please", [1]), ("900", [2]), ("amount", [2]), ("params", []), ("nothing", [])):
        assert [one.tick for one in found.log(grep=pattern)] == ticks, pattern


def test_an_unknown_verb_names_a_command_that_works() -> None:
    """The words of the call are not those of a person."""
    store = dendrer.init()
    for verb in ("nope", "bisekt", "xyzzy"):
        with pytest.raises(dendrer.UsageError) as caught:
            store.ask(verb)
        for argv in caught.value.help:
            assert command(*argv[1:]).returncode == 0, argv


# -- waiting --------------------------------------------------------------------------------------------------------


def _hold(seconds: float, held: Any) -> None:
    import fcntl

    with open(".dendrer/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held.set()
        time.sleep(seconds)


def test_waiting_for_the_store_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    """After a second: a warning here, a note of the command."""
    dendrer.init()
    context = multiprocessing.get_context("spawn")
    for by_command in (False, True):
        held = context.Event()
        holder = context.Process(target=_hold, args=(2.5, held))
        holder.start()
        held.wait()
        if by_command:
            line = json.dumps({"type": "observation.add", "intent": {"description": "x"}})
            ran = command("commit", "--run", "c", input=line + "\n")
            assert ran.returncode == 0 and "waiting for the store: another program writes" in ran.stderr, ran.stderr
        else:
            caplog.set_level(logging.WARNING, "dendrer")
            with dendrer.run("a") as run:
                run.observe("x")
            assert any("waiting for the store" in record.getMessage() for record in caplog.records)
        holder.join()
