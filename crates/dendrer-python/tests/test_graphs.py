"""Graphs are run by functions of Python, and replayed without them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import command, document, is_clean, transitions

import dendrer

GRAPH = """graph review
e1 model.call(request) -> rec frontier[1]
n1 score(e1) pure
e2 mail.send(n1) -> rec frontier[2]
n2 both(n1, e2) pure
replay(graph, frontier) == output required
"""

PACK: dict[str, Any] = {
    "name": "review",
    "version": "v1",
    "define": {"both(a, b)": "[a, b]"},
    "tools": {"model.call": {"effect": "read"}, "mail.send": {"effect": "effectful"}},
}

FUNCTIONS = '''
import datetime, math, os, random, sys, time
from pathlib import Path

def score(a): return a["n"] * 2
def chance(a): return {"n": [1, random.random()]}
def order(a): return list({str(n) for n in range(40)})
def clock(a): return int(time.time())
def today(a): return datetime.date.today().isoformat()
def moment(a): return datetime.datetime.now().isoformat(timespec="seconds")
def process(a): return os.getpid()
def place(a): return os.getcwd()
def once(a):
    Path(a["file"]).open("x").close()
    return 1
def raises(a): raise ValueError("no good")
def ends(a): sys.exit(3)
def dies(a): os._exit(3)
def nan(a): return {"x": math.nan}
def a_set(a): return {1, 2}
def keys(a): return {1: 2}
def huge(a): return "x" * (65 << 20)
def deep(a):
    for _ in range(900): a = [a]
    return a
def changes(a):
    a["n"] = 99
    return a
def prints(a):
    print("hello", flush=True)
    os.write(1, b"raw")
    os.system("echo shell")
    return [sys.stdin.read(), 1, (2, 3.0)]
def forks(a):
    if os.fork() == 0: time.sleep(600)
    return 1
def never(a):
    Path(a["file"]).write_text(str(os.getpid()))
    while True: pass
class Scorer:
    def score(self, a): return 1
method = Scorer().score
fake = lambda a: 1
async def later(a): return 1
def items(a): yield 1
'''


@pytest.fixture
def functions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that a fresh process can import."""
    (folder / "functions.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(folder))
    import functions  # type: ignore[import-not-found]

    yield functions
    del sys.modules["functions"]


def run(function: Callable[..., Any], answer: Any = None, **more: Any) -> dendrer.Run:
    """Runs the graph in the store of this folder, with a function as its node."""
    store = dendrer.open("s") if Path("s").exists() else dendrer.init("s")
    given: dict[str, Any] = {
        "input": {"request": {"text": "hi"}},
        "effects": {"model.call": lambda _: answer or {"n": 3}, "mail.send": lambda score: {"sent": score}},
        "functions": {"score": function},
    }
    return store.graph_run(more.pop("graph", GRAPH), more.pop("pack", PACK), **{**given, **more})


def test_a_result_is_recorded_and_replays_without_python(functions: Any) -> None:
    """The record, a replay, a suite and a bundle have the value, and nothing calls the function again."""
    Path("g.txt").write_text(GRAPH)
    Path("pack.yaml").write_text(json.dumps(PACK))
    made = run(functions.score, graph="g.txt", pack=Path("pack.yaml"), name="review-1", stage=1)
    assert (made.name, made.graph_document and made.graph_document["output"]) == ("review-1", [6, {"sent": 6}])
    assert made.graph_document and (made.graph_document["tested"], made.graph_document["edges"]) == (["score"], 2)
    of_host = [item["content"] for item in transitions("review-1", "s") if item["content"].get("effect") == "host"]
    assert [(one["edge"]["path"], one["edge"]["index"]) for one in of_host] == [("n1", "1+1"), ("n1", "1+1")]
    assert of_host[1]["result"] == {"output": 6, "status": "ok"}
    Path("functions.py").unlink()
    made.export("run.dnd")
    made.export("run.frontier", format="frontier")
    is_clean("s")
    assert made.verify(replay=True).verdict == "INTACT"
    for place in (["review-1", "--store=s"], ["run.dnd"]):
        assert document("replay", *place)["ok"]
    assert document("graph", "test", "run.dnd", "run.frontier")["passed"] == 2
    # Each answer says that it is tested, and none that it is pure.
    assert "tested     score: called twice and compared, not pure by construction" in command("graph", "show", "run.dnd").stdout
    assert "tested, not pure by construction" in command("show", "review-1@4", "--store=s").stdout
    listed = command("graph", "frontier", "run.dnd").stdout
    assert 'frontier[1+1]  n1  score({"n":3}) = 6  tested' in listed
    assert "2 edges, 1 pure node, 1 tested node, nothing else" in listed
    # Another value of the node has consequences; another argument makes it unknown.
    Path("value.json").write_text('{"n":4}')
    assert document("replay", "run.dnd", "--set", "e1=value.json")["unknown"] == ["n1", "e2", "n2"]
    assert document("replay", "run.dnd", "--set", "n1=value.json")["reaches"] == ["n1"]


@pytest.mark.parametrize("name", ["chance", "order", "clock", "today", "moment", "process", "place", "once"])
def test_a_function_with_two_results_is_refused(functions: Any, name: str, folder: Path) -> None:
    """The error has the place and both results, and they are on record."""
    with pytest.raises(dendrer.DendrerError) as raised:
        run(getattr(functions, name), {"n": 3, "file": str(folder / "once")}, name=name)
    assert (raised.value.code, type(raised.value)) == ("E0945", dendrer.DendrerError)
    place = " at n[1]: 0." if name == "chance" else ""
    assert f"n1 score is not pure: two runs differ{place}" in str(raised.value)
    error = transitions(name, "s")[-1]["content"]["result"]["error"]
    assert (error["ended"], error["message"].startswith("not pure: two runs differ")) == ("not_pure", True)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("raises", "ValueError: no good"),
        ("ends", "SystemExit: 3"),
        ("dies", "its process ended with 3 and no result"),
        ("nan", "ValueError: Out of range float"),
        ("a_set", "TypeError: Object of type set is not JSON"),
        ("keys", "TypeError: a result has text keys, and not 1"),
        ("huge", "ValueError: the result has more than 64 MiB"),
        ("deep", "more than 128 levels"),
    ],
)
def test_a_function_without_a_result_fails(functions: Any, name: str, why: str) -> None:
    """The reason is in the error and on record, and the run goes on once the function is right."""
    with pytest.raises(dendrer.DendrerError) as raised:
        run(getattr(functions, name), name="failed")
    assert raised.value.code == "E0936"
    assert f"n1 score failed: {why}" in str(raised.value) or why in str(raised.value)
    result = transitions("failed", "s")[-1]["content"]["result"]
    assert result["status"] == "error"
    assert ("Traceback" in result["error"].get("stderr", "")) == (name not in ("dies", "deep"))
    asked: list[Any] = []
    made = run(functions.score, resume="failed", input=None, effects={"mail.send": lambda score: asked.append(score)})
    assert made.graph_document and (made.graph_document["closed"], made.graph_document["asked"], asked) == ("good", 2, [6])


def test_what_a_function_does_beside_its_result_changes_nothing(functions: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Its arguments are its own, and what it prints goes to stderr."""
    made = run(functions.changes, name="changes")
    assert made.state_at(path="output") == [{"n": 99}, {"sent": {"n": 99}}]
    assert made.state_at(path="edges.e1") == {"n": 3}
    made = run(functions.prints, name="prints")
    assert made.state_at(path="nodes.n1") == ["", 1, [2, 3]]
    out, err = capfd.readouterr()
    assert out == "" and err.count("hello") == err.count("raw") == err.count("shell") == 2
    assert run(functions.forks, name="forks").state_at(path="nodes.n1") == 1


def test_a_function_ends_at_its_timeout(functions: Any, folder: Path) -> None:
    """The pack declares it as it does that of a tool, and its process is gone."""
    pack = {**PACK, "tools": {**PACK["tools"], "score": {"effect": "host", "timeout": "300ms"}}}
    with pytest.raises(dendrer.DendrerError, match=r"n1 score failed: it took longer than 0\.3 s, and was ended"):
        run(functions.never, {"file": str(folder / "pid")}, pack=pack, name="never")
    assert transitions("never", "s")[-1]["content"]["result"]["error"]["ended"] == "timeout"
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), 0)


def test_an_effect_ends_at_its_timeout_and_by_an_exception(functions: Any) -> None:
    """One that may have acted waits for a decision, in this process and in the program."""
    tools = {**PACK["tools"], "mail.send": {"effect": "effectful", "timeout": "100ms"}}
    with pytest.raises(dendrer.DendrerError, match=r"e2 mail.send failed: it took longer than 0\.1 s"):
        run(functions.score, pack={**PACK, "tools": tools}, effects={"model.call": lambda _: {"n": 3}, "mail.send": lambda _: time.sleep(2)})

    def cut(_: Any) -> None:
        raise ConnectionError("token=ghp_0123456789abcdefghijABCDEFGHIJ012345")

    with pytest.raises(dendrer.DendrerError, match="e2 mail.send failed: ConnectionError"):
        run(functions.score, effects={"model.call": lambda _: {"n": 3}, "mail.send": cut}, name="cut")
    error = transitions("cut", "s")[-1]["content"]["result"]["error"]
    assert error["ended"] == "unread" and "ghp_" not in json.dumps(error) and "in cut" in error["stderr"]
    with pytest.raises(dendrer.Refused) as raised:
        run(functions.score, resume="cut")
    assert raised.value.code == "E0940" and [need["path"] for need in raised.value.data["needs"]] == ["e2"]
    made = run(functions.score, resume="cut", set={"e2": 5})
    assert made.state_at(path="output") == [6, 5]


@pytest.mark.parametrize(
    ("name", "answer"), [("NaN", float("nan")), ("set", {1}), ("key", {1: 2}), ("cycle", None), ("huge", "x" * (65 << 20))]
)
def test_an_answer_that_is_no_value_is_unread(functions: Any, name: str, answer: Any) -> None:
    """The record says that the effect has answered, and nothing that depends on it is asked."""
    if name == "cycle":
        answer = []
        answer.append(answer)
    with pytest.raises(dendrer.DendrerError) as raised:
        run(functions.score, effects={"model.call": lambda _: answer, "mail.send": lambda _: 1})
    assert raised.value.code == "E0936"
    assert [item["content"]["result"]["error"]["ended"] for item in transitions("review", "s")[1:]] == ["unread"]


def outside(a: dict[str, Any]) -> int:
    """Uses a name of its module."""
    return len(FUNCTIONS) * int(a["n"])


def test_only_what_a_fresh_process_has_is_a_function(functions: Any) -> None:
    """Anything else is refused before something is recorded, with the way on."""
    bound = 1
    for function in [lambda a: 1, lambda a: bound, functions.method, functions.later, functions.items, functions.fake, 5]:
        with pytest.raises(dendrer.UsageError, match="cannot be called in a fresh process.*put it into a module"):
            run(function)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"stage": 2}, "E0946"),
        ({"stage": 3}, "E0946"),
        ({"pack": {**PACK, "policy": [{"id": "small", "holds": "state.n <= 9", "enforce": True}]}}, "E0946"),
        ({"functions": {}}, "E0926"),
        ({"functions": {"score": functions.score, "other": functions.score}}, "E0106"),
        ({"functions": {"score": functions.score, "both": functions.score}}, "E0106"),
        ({"functions": {"score": functions.score, "mail.send": functions.score}}, "E0106"),
        ({"effects": {"model.call": lambda _: 1}}, "E0934"),
        ({"graph": GRAPH.replace("score(", "random(")}, "E0932"),
        ({"input": {}}, "E0934"),
    ]
    for more, code in refused:
        with pytest.raises(dendrer.UsageError) as raised:
            run(functions.score, **more)
        assert raised.value.code == code, raised.value
    assert dendrer.open("s").names() == []


def test_a_function_of_a_script_travels_as_its_source() -> None:
    """A script is not run again; what it uses of the script itself is refused."""
    script = """
import json
import math
from math import floor as down
import dendrer
FACTOR = 2
def score(a: dict[str, FACTOR.Any]) -> int:
    half = lambda x: x / 2
    return down(math.sqrt(a["n"] * half(2)))
def times(a):
    return a["n"] * FACTOR
print("once")
store = dendrer.init("s")
pack, graph = json.loads(PACK), GRAPH
effects = {"model.call": lambda _: {"n": 9}, "mail.send": lambda score: score}
for function in (score, times):
    try:
        run = store.graph_run(graph, pack, input={"request": 1}, effects=effects, functions={"score": function})
        print(run.state_at(path="output"))
    except dendrer.UsageError as error:
        print(error)
"""
    text = f"GRAPH, PACK = {GRAPH!r}, {json.dumps(PACK)!r}\n{script}"
    Path("script.py").write_text("from __future__ import annotations\n" + text)
    ran = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, timeout=60, check=False)
    first, second, third = ran.stdout.splitlines()
    assert (first, second, ran.stderr) == ("once", "[3, 3]", "")
    assert "it uses FACTOR, which is not there; put it into a module" in third


def test_the_page_on_graphs_shows_what_happens() -> None:
    """Its example is a script, with the files that are beside it on the page."""
    page = (Path(__file__).parents[3] / "docs" / "graphs.md").read_text(encoding="utf-8")
    for name in ("review.graph", "review.yaml"):
        Path(name).write_text(page.split(f" {name}\n", 1)[1].split("```", 1)[0])
    example = page.split("```python\n", 1)[1].split("```", 1)[0]
    before = "import dendrer\nstore = dendrer.init('s')\ndef ask(request): return {'day': 'friday'}\n"
    Path("script.py").write_text(f"{before}{example}\nprint(run.name, run.graph_document['output'])")
    ran = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout, ran.stderr) == ("review {'day': 'friday', 'risk': 0.2}\n", "")


RESUMED = """
import signal
# A shell starts what it runs in the background with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
import sys, dendrer, functions, json
store = dendrer.open("s")
graph, pack, file = json.loads(sys.argv[1])
effects = {"model.call": lambda _: {"n": 1, "file": file}, "mail.send": lambda score: score}
store.graph_run(graph, pack, input={"request": 1}, effects=effects, functions={"score": functions.never})
"""


def started(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """A process that runs the graph, and the one in which its function is."""
    dendrer.init("s")
    given = json.dumps([GRAPH, PACK, str(folder / "pid")])
    child = subprocess.Popen(
        [sys.executable, "-c", RESUMED, given], stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(folder)}
    )
    until = time.monotonic() + 30
    while not (folder / "pid").exists() or not (folder / "pid").read_text():
        assert time.monotonic() < until and child.poll() is None, child.stderr and child.stderr.read()
        time.sleep(0.02)
    return child, int((folder / "pid").read_text())


def is_gone(process: int) -> bool:
    """Whether a process ends within some seconds."""
    for _ in range(200):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("by", ["python", "program"])
def test_a_run_that_is_killed_goes_on(functions: Any, folder: Path, by: str) -> None:
    """What is on record is not asked again; the function is, since it acts on nothing."""
    child, function = started(folder)
    child.kill()
    child.communicate()
    assert is_gone(function)
    assert document("graph", "frontier", "review", "--store=s")["open"]
    if by == "python":
        made = run(functions.score, resume="review", input=None, effects={"mail.send": lambda score: score})
        assert made.state_at(path="output") == [2, 2]
    else:
        Path("g.txt").write_text(GRAPH)
        Path("pack.yaml").write_text(json.dumps(PACK))
        ways = ["--exec=mail.send=echo sent", "--function=score=cat >/dev/null; echo 7"]
        found = document("graph", "run", "g.txt", "--pack=pack.yaml", "--resume=review", "--store=s", *ways)
        assert (found["output"], found["tested"], found["asked"]) == ([7, "sent"], ["score"], 2)
    assert document("replay", "review", "--store=s")["ok"]
    is_clean("s", by_command=True)


def test_an_interrupt_ends_the_function(functions: Any, folder: Path) -> None:
    """The end of the call is on record, and the run stays open."""
    child, function = started(folder)
    child.send_signal(signal.SIGINT)
    try:
        _, told = child.communicate(timeout=30)
    finally:
        child.kill()
    assert told.count("Traceback") == 1 and "KeyboardInterrupt" in told and is_gone(function)
    assert transitions("review", "s")[-1]["content"]["result"]["error"]["ended"] == "killed"


def test_effects_are_answered_at_once_and_by_commands(functions: Any) -> None:
    """Edges that do not wait for each other are, and a text is a command of the program."""
    graph = "graph two\ne1 model.call(1) -> rec frontier[1]\ne2 model.call(2) -> rec frontier[2]\nn1 score(e1) pure\nn2 score(e2) pure\n"
    graph += "n3 both(n1, n2) pure\nreplay(graph, frontier) == output required\n"
    both = threading.Barrier(2, timeout=20)

    def call(number: int) -> dict[str, int]:
        both.wait()
        return {"n": number}

    made = run(functions.score, graph=graph, input=None, effects={"model.call": call})
    assert made.state_at(path="output") == [2, 4]
    made = run(functions.score, graph=graph, input=None, effects={"model.call": "echo '{\"n\":5}'"}, name="by-command")
    assert made.state_at(path="output") == [10, 10]
