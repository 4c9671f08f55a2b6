"""The first record: names of runs, stores that are missing, and the user as an author."""

from __future__ import annotations

import logging
import os
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import dendrer
import pytest
from dendrer import aio
from helpers import command, document, is_clean, python, ticks, transitions

ROOT = Path(__file__).parents[3]

#: How many lines of agents are tried.
LINES = int(os.environ.get("DENDRER_LINES", "500"))


def start(name: str = "shop", **options: Any) -> str:
    """Records a run of one step, and returns its name."""
    with dendrer.run(name, **options) as run:
        run.observe("a price", {"price": 3})
        return run.name


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings under the logger of the package."""
    found = [record for record in caplog.records if record.name == "dendrer"]
    assert all(record.levelno == logging.WARNING for record in found)
    return [record.getMessage() for record in found]


# -- names of runs --------------------------------------------------------------------------------------------------


def test_each_start_is_a_run_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """The second start has a warning, and its steps begin at tick 1."""
    dendrer.init()
    assert [start() for _ in range(3)] == ["shop", "shop+2", "shop+3"]
    assert dendrer.open().names() == ["shop", "shop+2", "shop+3"]
    assert [ticks(name) for name in dendrer.open().names()] == [[1], [1], [1]]
    assert warnings(caplog) == [f"a run shop exists: this one is shop+{n}; resume=True continues shop" for n in (2, 3)]
    is_clean()


def test_resume_continues_or_begins() -> None:
    """`True` needs a run, `"auto"` does not."""
    dendrer.init()
    with pytest.raises(dendrer.NotFound) as caught:
        start(resume=True)
    assert caught.value.code == "E0101" and dendrer.open().names() == []
    assert [start(resume="auto"), start(resume="auto"), start(resume=True), start(), start("shop+2", resume=True)] == [
        "shop", "shop", "shop", "shop+2", "shop+2",
    ]  # fmt: skip
    assert ticks("shop") == [1, 2, 3] and ticks("shop+2") == [1, 2]
    for wrong in ("always", 2, None):
        with pytest.raises(dendrer.UsageError):
            start(resume=wrong)


def test_a_name_with_a_plus_is_never_given_by_a_program() -> None:
    """A script called `shop+2` begins nothing: the next start of `shop` would go on with it."""
    dendrer.init()
    for resume in (False, "auto"):
        with pytest.raises(dendrer.UsageError) as caught:
            start("shop+2", resume=resume)
        assert caught.value.code == "E0210"
    assert dendrer.open().names() == []


def test_a_long_name_is_made_shorter() -> None:
    """A made name fits, and the runs of two long names are told apart."""
    dendrer.init()
    names = [start("x" * 127 + end) for end in "aabb"]
    assert names == ["x" * 127 + "a", "x" * 126 + "+2", "x" * 127 + "b", "x" * 126 + "+3"]


def test_a_recording_that_is_handed_on_stays_in_its_run() -> None:
    """Pickled, and inherited by a fork, it continues `shop+2` and begins no run."""
    dendrer.init()
    start()
    with dendrer.run("shop", goal="g", state={"n": 0}) as run:
        run.observe("parent")
        again = pickle.loads(pickle.dumps(run))
        assert (again.name, again.observe("pickled").tick) == ("shop+2", 2)
        again.close()
        if hasattr(os, "fork"):
            child = os.fork()
            if child == 0:
                os._exit(0 if run.observe("child").tick == 3 else 1)
            assert os.waitpid(child, 0)[1] == 0
    assert dendrer.open().names() == ["shop", "shop+2"] and ticks("shop+2") == [1, 2, 3]


async def later(resume: Any) -> str:
    """Records a run from a loop."""
    async with aio.run("shop", resume=resume) as run:
        await run.user("hello")
        return run.name


def test_aio_and_the_writer_of_the_paper_name_runs_alike() -> None:
    """`resume` is that of `run`, and so is the name."""
    import asyncio

    dendrer.init()
    assert [asyncio.run(later(resume)) for resume in (False, False, True, "auto")] == ["shop", "shop+2", "shop", "shop"]
    names: list[str] = []
    for resume in (False, False, True):
        with dendrer.TraceWriter("paper", resume=resume) as trace:
            trace.emit({"transition_type": "plan.update"})
            names.append(trace.name)
    assert names == ["paper", "paper+2", "paper"] and ticks("paper") == [1, 2]
    with pytest.raises(dendrer.NotFound):
        dendrer.TraceWriter("other", resume=True)


STARTS = """
import sys, time, dendrer
time.sleep(max(0.0, float(sys.argv[1]) - time.time()))
with dendrer.run("shop", store="s", on_error="raise") as run:
    for n in range(3):
        run.observe("step", {"n": n})
print(run.name)
"""


@pytest.mark.parametrize("is_made", [True, False], ids=["store", "no store"])
def test_sixteen_processes_that_start_at_once_make_sixteen_runs(is_made: bool) -> None:
    """Each has a name and all its steps, also where the store is missing."""
    import time

    if is_made:
        dendrer.init("s")
    at = str(time.time() + 1.5)
    started = [
        subprocess.Popen([sys.executable, "-c", STARTS, at], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(16)
    ]
    told = [one.communicate(timeout=120) for one in started]
    assert [one.returncode for one in started] == [0] * 16, told
    names = ["shop", *(f"shop+{n}" for n in range(2, 17))]
    assert sorted(name.strip() for name, _ in told) == sorted(names) == sorted(dendrer.open("s").names())
    assert all(ticks(name, "s") == [1, 2, 3] for name in names)
    is_clean("s")


# -- scripts of the pages -------------------------------------------------------------------------------------------


#: Lines of the pages that ask about another page's run, or show a refusal.
NOT_RECORDING = ("store", "[(t.agent", "odd", "again", "seen.", 'trace.emit({"transition_type": "observation.add", "tick": 9')


def scripts() -> dict[str, str]:
    """The scripts of the pages that record a run through the package, and that of the README."""
    found: dict[str, str] = {}
    for page in sorted((ROOT / "docs").glob("*.md")):
        for number, block in enumerate(re.findall(r"```python[^\n]*\n(.*?)```", page.read_text(encoding="utf-8"), re.S)):
            if ">>>" in block and re.search(r"dendrer\.run\(|TraceWriter\(", block) and "resume" not in block:
                lines = [line[4:] for line in block.splitlines() if line.startswith((">>> ", "... "))]
                code = "\n".join(lines).split("store = dendrer.open")[0]
                found[f"{page.name}-{number}"] = "\n".join(line for line in code.splitlines() if not line.startswith(NOT_RECORDING))
    found["README.md"] = of_readme("python")
    return found


def of_readme(info: str) -> str:
    """The one block of the README of a kind."""
    [block] = re.findall(rf"```{info}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    return str(block)


def test_the_five_lines_of_the_readme_print_its_answer() -> None:
    """The answer begins as the README shows it, but for the id."""
    lines = of_readme("python")
    assert len(lines.splitlines()) == 5
    ran = python(lines)
    assert ran.returncode == 0, ran.stderr
    expected = of_readme("text")
    assert plain(ran.stdout)[: len(plain(expected))] == plain(expected)


def plain(text: str) -> str:
    """Ids are of one run alone."""
    return re.sub(r"\b[0-9a-f]{12}\b", "ID", text)


def test_the_scripts_of_the_pages_are_found() -> None:
    """A page that changes leaves none out."""
    assert len(scripts()) >= 7 and "README.md" in scripts()


@pytest.mark.parametrize("name", scripts())
def test_a_script_of_a_page_starts_twice(name: str) -> None:
    """Two starts make two runs of each name, and each of them has an answer of `bisect`."""
    code = "import dendrer\nfrom dendrer import aio\n" + scripts()[name]
    for _ in range(2):
        ran = python(code)
        assert ran.returncode == 0, ran.stderr
    store = dendrer.open("shop" if name == "README.md" else "trip")
    names = store.names()
    firsts = [name for name in names if "+" not in name]
    assert firsts and names == [*firsts, *(f"{name}+2" for name in firsts)]
    for one in names:
        assert store[one].bisect(holds="size(state) < 100").outcome == "never"


# -- stores ---------------------------------------------------------------------------------------------------------


def test_a_missing_store_is_made_and_a_warning_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """`run`, `TraceWriter` and `aio.run` make it once."""
    import asyncio

    start(store="one")
    start(store="one")
    dendrer.TraceWriter("a", store="two").close()

    async def main() -> None:
        async with aio.run("a", store="three"):
            pass

    asyncio.run(main())
    start("here")
    assert [text for text in warnings(caplog) if "no store" in text] == [
        *(f"no store at {name}: made {name}/.dendrer" for name in ("one", "two", "three")),
        "no store at .: made ./.dendrer",
    ]


def test_the_saver_makes_a_store_with_a_warning(caplog: pytest.LogCaptureFixture, folder: Path) -> None:
    """As `run` does."""
    pytest.importorskip("langgraph.checkpoint.base")
    from dendrer.langgraph import DendrerSaver

    for _ in range(2):
        DendrerSaver("threads").close()
    assert warnings(caplog) == [f"no store at {folder}/threads: made {folder}/threads/.dendrer"]


def test_open_makes_no_store_and_names_the_call() -> None:
    """The message has what to type in Python."""
    Path("file.dnd").write_text("x")
    for path, call in (("shop", 'dendrer.init("shop")'), (".", "dendrer.init()"), ('a"b', 'dendrer.init("a\\"b")')):
        with pytest.raises(dendrer.NotFound) as caught:
            dendrer.open(path)
        assert caught.value.code == "E0103" and str(caught.value).splitlines()[-1] == f"help: {call}"
    with pytest.raises(dendrer.DendrerError) as other:
        dendrer.open("file.dnd")
    assert "dendrer.init" not in str(other.value)
    assert os.listdir() == ["file.dnd"]


def test_a_store_whose_key_is_named_is_made_with_it() -> None:
    """`key` is that of the new store."""
    start(store="s", key="k.key")
    assert Path("k.key").exists() and dendrer.open("s", key="k.key")["shop"].verify().verdict in ("VERIFIED", "INTACT")


# -- authors --------------------------------------------------------------------------------------------------------


def authors(run: str) -> list[str]:
    """The authors of a run, in the order of its ticks."""
    return [str(item["author"]) for item in transitions(run)]


def test_the_user_may_speak() -> None:
    """`user`, and `author="user"` of three methods, record in the name of the user, whatever authors the recording has."""
    dendrer.init()
    for name, author in (("a", "agent"), ("b", "runtime"), ("c", "user")):
        with dendrer.run(name, author=author, agent="ann", on_error="raise") as run:  # type: ignore[arg-type]
            run.user("buy it", {"limit": 3}, goal="g")
            for method in (run.observe, run.plan, run.remember):
                assert method("again", {"n": 1}, author="user").what == "committed"
            run.observe("mine")
        assert authors(name) == ["user"] * 4 + ["user" if author == "user" else "agent"]
        assert document("show", f"{name}@1")["author"] == "user"
        assert [item["type"] for item in transitions(name)][:4] == ["observation.add", "observation.add", "plan.update", "memory.write"]
        assert dendrer.open()[name].state_at()["limit"] == 3
    is_clean()


def test_another_author_is_an_authorship_error() -> None:
    """It is raised whatever `on_error` is, and nothing is recorded."""
    dendrer.init()
    modes: tuple[Any, ...] = ("warn", "raise")
    for number, on_error in enumerate(modes):
        with dendrer.run(f"a-{number}", on_error=on_error) as run:
            for author in ("runtime", "kernel", "institution", "User", "user ", "", None, 1, ["user"], True):
                for method in (run.observe, run.plan, run.remember):
                    with pytest.raises(dendrer.AuthorshipError):
                        method("x", author=author)  # type: ignore[arg-type]
        assert ticks(f"a-{number}") == []


def spellings(chance: random.Random) -> dict[str, Any]:
    """A line of an agent that says in some way that it is of the user."""
    name = chance.choice(["author", "Author", "AUTHOR", "author ", "auth\u043er", "author_", "by", "user", "agent", "agent_id", "role", "$author"])
    word = chance.choice(["user", "User", "USER", "user ", " user", "\u0075ser", "us\u0435r", "user\x00", ["user"], {"author": "user"}, "runtime", "human"])
    line: dict[str, Any] = {"type": chance.choice(["observation.add", "plan.update", "memory.write", "goal.complete", "anomaly.flag"])}
    place = chance.choice(["line", "intent", "action", "metrics", "goal", "both"])
    if place in ("line", "both"):
        line[name] = word
    if place != "line":
        line["goal" if place == "goal" else "metrics" if place == "metrics" else "intent"] = {name: word} if place != "goal" else "user"
    if chance.random() < 0.2:
        line["author"] = "user"
    if chance.random() < 0.1:
        line["key"] = f"k-{chance.random()}"
    return line


def test_no_line_of_an_agent_has_the_author_user() -> None:
    """However a line spells it, through `commit`, keywords and the writer of the paper."""
    dendrer.init()
    seed = int(os.environ.get("DENDRER_SEED", "49"))
    chance = random.Random(seed)
    with dendrer.run("a", sync=100) as run, dendrer.TraceWriter("b", on_error="warn", sync=100) as trace:
        for _ in range(LINES):
            line = spellings(chance)
            try:
                way = chance.random()
                if way < 0.6:
                    run.commit(line)
                elif way < 0.8:
                    intent = line.get("intent")
                    members = {**line, **(intent if isinstance(intent, dict) else {})}
                    members.pop("type")
                    if members.get("author") == "user":
                        members["author"] = "agent"
                    run.complete("x", **{**members, "intent": 1} if chance.random() < 0.1 else members)
                else:
                    event = {("transition_type" if name == "type" else name): value for name, value in line.items()}
                    trace.emit(event)
            except (dendrer.DendrerError, TypeError):
                pass
    for name in ("a", "b"):
        found = authors(name)
        assert len(found) > LINES // 20 and set(found) <= {"agent", "kernel"}, seed


# -- keywords -------------------------------------------------------------------------------------------------------


def test_a_keyword_that_names_a_member_is_that_member() -> None:
    """Links, metrics and goal are members of the line; what is no member goes into the intent."""
    dendrer.init()
    with dendrer.run("a", on_error="raise") as run:
        one = run.observe("one", metrics={"tokens_used": 7}, goal="g", mine=3)
        run.plan("two", links=[{"rel": "evidence", "hash": one.id}])
        asked = run.propose(action={"tool": "t"}, depends_on=[one], links=[{"rel": "caused_by", "hash": one.id}], metrics={"tokens_used": 1})
        run.result(asked, 1, links=[{"rel": "evidence", "hash": one.id}], metrics={"tokens_used": 2}, note="n")
    first, second, third, fourth = (item["content"] for item in transitions("a"))
    kinds = [sorted(link["rel"] for link in t.to_dict()["links"]) for t in dendrer.open()["a"]]
    assert kinds == [[], ["evidence"], ["caused_by", "evidence"], ["caused_by", "evidence"]]
    assert first["metrics"] == {"tokens_used": 7} and first["intent"] == {"description": "one", "mine": 3}
    assert second["intent"] == {"description": "two"} and third["metrics"] == {"tokens_used": 1}
    assert fourth["result"] == {"status": "ok", "output": 1, "note": "n"} and fourth["metrics"] == {"tokens_used": 2}
    assert dendrer.open()["a"].bisect(holds="state.counters.tokens_used < 10").onset == dendrer.Onset(4, "exact")


REFUSED = ("type", "transition_type", "intent", "policy", "result", "anomalies")


@pytest.mark.parametrize("name", REFUSED)
def test_a_member_that_a_method_does_not_take_is_refused(name: str) -> None:
    """With `raise` it is an error, else a gap; it is never put into the intent."""
    dendrer.init()
    words: dict[str, Any] = {name: {"a": 1}}
    with dendrer.run("a", on_error="raise") as run:
        calls: list[Any] = [lambda: run.observe("x", **words), lambda: run.plan("x", **words), lambda: run.user("x", **words)]
        calls.append(lambda: run.flag("k", "x", **words))
        if name != "type":
            calls.append(lambda: run.propose(action={"tool": "t"}, **words))
        calls.append(lambda: run.result(run.observe("asked"), **words))
        for call in calls:
            with pytest.raises(dendrer.UsageError) as caught:
                call()
            assert name in str(caught.value)
    assert {item["content"]["intent"]["description"] for item in transitions("a")} == {"asked"}
    with dendrer.run("b") as run:
        assert run.observe("x", **words).what == "gap"


def test_every_member_of_a_line_is_a_member_or_refused() -> None:
    """The members are those of `dendrer schema intent`: none of them ends up in an intent."""
    dendrer.init()
    named = document("schema", "intent")["properties"]
    assert len(named) > 20
    # A line of a step is a form of its own: `step` is free for what a program counts.
    parameters = {"agent", "confidence", "delta", "base", "key", "author", "step"}
    with dendrer.run("a") as run:
        for name in named:
            if name in parameters:
                continue
            members: dict[str, Any] = {name: {"only": "here"}}
            try:
                run.observe("x", **members)
            except dendrer.DendrerError:
                pass
    for item in transitions("a"):
        assert set((item["content"].get("intent") or {})) <= {"description", "uncertainty_notes"}, item


def test_the_version_is_that_of_the_command() -> None:
    """As `dendrer --version` prints it."""
    assert command("--version").stdout == f"dendrer {dendrer.__version__}\n"
