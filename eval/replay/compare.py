"""Replays the same calls by Temporal's replayer and by dendrer: eight changes, then time per recorded event.

Usage: compare.py DENDRER [EDGES]. `scripts/bench-replay.sh` installs what it needs and calls it.
"""

import asyncio
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from datetime import timedelta

from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from temporal_histories import History, payload

DENDRER = sys.argv[1]
EDGES = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
TIME = timedelta(seconds=60)

# What the workflow of this process does: its calls in order, each with its argument, and the member that it returns.
PLAN = {"calls": [], "together": [], "output": "day"}


@workflow.defn(name="note")
class Note:
    @workflow.run
    async def run(self, request):
        values = []
        for name, arg in PLAN["calls"]:
            arg = request if arg is None else arg
            values.append(await workflow.execute_activity(name, arg, start_to_close_timeout=TIME))
        if PLAN["together"]:
            at_once = [
                workflow.execute_activity(name, arg, start_to_close_timeout=TIME) for name, arg in PLAN["together"]
            ]
            values.extend(await asyncio.gather(*at_once))
        return values[-1]


@workflow.defn(name="many")
class Many:
    @workflow.run
    async def run(self, request):
        value = request
        for _ in range(EDGES):
            value = await workflow.execute_activity("look", value, start_to_close_timeout=TIME)
        return value


def recorded(order=("a", "b"), result="friday", together=False):
    """The history of `model(request)`, `calendar(3)`, `mail(4)`; with two calls at once behind them if asked."""
    history = History("note", "what is on friday?")
    for name, args, value in [("model", ["what is on friday?"], result), ("calendar", [3], 2), ("mail", [4], "sent")]:
        history.complete(history.schedule(history.task(), name, args), value)
    output = "sent"
    if together:
        task = history.task()
        at = {name: history.schedule(task, name, [1]) for name in ("a", "b")}
        for name in order:
            history.complete(at[name], name)
        output = "b"
    history.end(output)
    return history.text()


async def temporal(text, calls, together=()):
    PLAN["calls"], PLAN["together"] = calls, list(together)
    replayer = Replayer(workflows=[Note, Many], workflow_runner=UnsandboxedWorkflowRunner())
    history = WorkflowHistory.from_json("note", text)
    found = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    return "passes" if found.replay_failure is None else "found"


CALLS = [("model", None), ("calendar", 3), ("mail", 4)]
GRAPH = """graph note
e1 tool.model(request) -> rec frontier[1]
e2 tool.calendar(3) -> rec frontier[2]
e3 tool.mail(4) -> rec frontier[3]
n1 last(e1, e2, e3) pure
replay(graph, frontier) == output required
"""
AT_ONCE = GRAPH.replace("n1 last(e1, e2, e3)", "e4 tool.a(1) -> rec frontier[4]\ne5 tool.b(1) -> rec frontier[5]\nn1 last(e1, e4, e5)")
PACK = """name: note
version: v1
define:
  "last(a, b, c)": c
tools: {tool.model: {effect: read}, tool.calendar: {effect: read}, tool.mail: {effect: read}, tool.look: {effect: read},
  tool.ask: {effect: read}, tool.a: {effect: read}, tool.b: {effect: read}}
"""
ANSWERS = {"model": '"friday"', "calendar": "2", "mail": '"sent"', "a": '"a"', "b": '"b"', "look": '"x"', "ask": '"x"'}


class Graphs:
    """Runs of graphs in a directory."""

    def __init__(self, place):
        self.place = pathlib.Path(place)
        self.write("note.yaml", PACK)
        self.write("request.json", json.dumps("what is on friday?"))
        self.dendrer("init")

    def write(self, name, text):
        (self.place / name).write_text(text)

    def dendrer(self, *args):
        return subprocess.run([DENDRER, *args], cwd=self.place, capture_output=True, text=True)

    def record(self, run, graph, slow=None):
        self.write(run + ".graph", graph)
        effects = [arg for name, value in ANSWERS.items() for arg in
                   ("--exec", f"tool.{name}={'sleep 0.3; ' if name == slow else ''}echo '{value}'")]
        ran = self.dendrer("graph", "run", run + ".graph", "--pack", "note.yaml", "--input", "request=request.json",
                           "--as", run, *effects)
        assert ran.returncode == 0, ran.stderr
        self.dendrer("export", run, "--format", "frontier", "-o", run + ".frontier")

    def test(self, frontier, *args):
        ran = self.dendrer("graph", "test", frontier, *args, "--json")
        item = json.loads(ran.stdout)["items"][0]
        divergence = item.get("divergence")
        return "passes" if item["ok"] else f"found: `{divergence['kind']}` at `{divergence['path']}`"


async def eight(graphs):
    graphs.record("plain", GRAPH)

    def changed(name, *pairs):
        text = GRAPH
        for before, after in pairs:
            assert before in text
            text = text.replace(before, after)
        graphs.write(name + ".graph", text)
        return graphs.test("plain.frontier", "--graph", name + ".graph")

    def edited(name, edit):
        lines = [json.loads(line) for line in (graphs.place / "plain.frontier").read_text().splitlines()]
        edit(lines)
        graphs.write(name + ".frontier", "".join(json.dumps(line) + "\n" for line in lines))
        return graphs.test(name + ".frontier")

    graphs.record("ab", AT_ONCE, slow="b")
    graphs.record("ba", AT_ONCE, slow="a")
    swapped = [("e2 tool.calendar(3)", "e2 tool.mail(4)"), ("e3 tool.mail(4)", "e3 tool.calendar(3)")]
    inserted = [
        ("e3 tool.mail(4) -> rec frontier[3]", "e4 tool.ask(9) -> rec frontier[3]\ne3 tool.mail(4) -> rec frontier[4]"),
    ]
    removed = [("e2 tool.calendar(3) -> rec frontier[2]\n", ""), ("frontier[3]", "frontier[2]"), ("e1, e2, e3", "e1, e1, e3")]
    plain = recorded()
    both = [("a", 1), ("b", 1)]
    assert await temporal(plain, CALLS) == "passes" and graphs.test("plain.frontier") == "passes"
    pack = PACK.replace('c)": c', 'c)": a')
    graphs.write("other.yaml", pack)
    rows = [
        ("a call renamed", await temporal(plain, [("ask", None), *CALLS[1:]]), changed("renamed", ("tool.model", "tool.ask"))),
        ("a call removed", await temporal(plain, [CALLS[0], CALLS[2]]), changed("removed", *removed)),
        ("a call inserted", await temporal(plain, [*CALLS[:2], ("ask", 9), CALLS[2]]), changed("inserted", *inserted)),
        ("two calls swapped", await temporal(plain, [CALLS[0], CALLS[2], CALLS[1]]), changed("swapped", *swapped)),
        ("another argument", await temporal(plain, [CALLS[0], ("calendar", 5), CALLS[2]]), changed("argument", ("calendar(3)", "calendar(5)"))),
        ("another recorded result", await temporal(recorded(result="monday"), CALLS), edited("result", lambda lines: lines[1].update(value="monday"))),
        ("another final output", await output(), graphs.test("plain.frontier", "--pack", "other.yaml")),
        ("two calls at once complete in the other order",
         f"{await temporal(recorded(together=True), CALLS, both)}, {await temporal(recorded(('b', 'a'), together=True), CALLS, both)}",
         f"{graphs.test('ab.frontier')}, {graphs.test('ba.frontier')}"),
    ]
    print("| change | Temporal's replayer | `dendrer graph test` |\n| --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")


async def output():
    """The history says that the workflow returned something else than it returns now."""
    history = json.loads(recorded())
    history["events"][-1]["workflowExecutionCompletedEventAttributes"]["result"] = {"payloads": [payload("other")]}
    return await temporal(json.dumps(history), CALLS)


async def speed(graphs):
    history = History("many", "x")
    for _ in range(EDGES):
        history.complete(history.schedule(history.task(), "look", ["x"]), "x")
    history.end("x")
    text = history.text()
    # Edges that do not wait for each other: recording is quick, and replay walks them one by one all the same.
    lines = ["graph many"]
    lines += [f"e{at} tool.look(request) -> rec frontier[{at}]" for at in range(1, EDGES + 1)]
    lines += [f"n1 last(e1, e1, e{EDGES}) pure", "replay(graph, frontier) == output required"]
    graphs.write("many.graph", "\n".join(lines) + "\n")
    ran = graphs.dendrer("graph", "run", "many.graph", "--pack", "note.yaml", "--input", "request=request.json", "--exec",
                         "tool.look=echo 1")
    assert ran.returncode == 0, ran.stderr
    rows = []
    for _ in range(3):
        begin = time.process_time()
        replayer = Replayer(workflows=[Note, Many], workflow_runner=UnsandboxedWorkflowRunner())
        found = await replayer.replay_workflow(WorkflowHistory.from_json("many", text), raise_on_replay_failure=False)
        assert found.replay_failure is None, found.replay_failure
        theirs = time.process_time() - begin
        begin = time.perf_counter()
        again = subprocess.run(["taskset", "-c", "0", DENDRER, "replay", "many"], cwd=graphs.place, capture_output=True)
        assert again.returncode == 0, again.stderr
        ours = time.perf_counter() - begin
        events = len(history.events)
        rows.append((theirs / events / (ours / (2 * EDGES)), theirs, ours, events))
    ratio, theirs, ours, events = sorted(rows)[1]
    print(f"\nTemporal: {events} events of {EDGES} calls in {theirs:.2f} s of processor, {theirs / events * 1e6:.0f} us an event")
    print(f"dendrer: {2 * EDGES} events of {EDGES} edges in {ours:.2f} s, {ours / (2 * EDGES) * 1e6:.1f} us an event")
    print(f"ratio per event: {ratio:.1f}; per call: {theirs / ours:.1f}")


async def main():
    with tempfile.TemporaryDirectory() as place:
        graphs = Graphs(place)
        await eight(graphs)
        await speed(graphs)


asyncio.run(main())
