"""The command `dendrer` that comes with the package behaves as any other command."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import dendrer
import pytest
from helpers import DENDRER, command, document, is_clean, ticks

LINE = '{"type":"observation.add","intent":{"description":"hello"}}\n'


def test_the_command_is_installed_and_has_the_version_of_the_package() -> None:
    """`dendrer` and `python -m dendrer` are the same program."""
    from importlib.metadata import version

    told = subprocess.run([*DENDRER, "--version"], capture_output=True, encoding="utf-8", check=True).stdout
    module = subprocess.run([sys.executable, "-m", "dendrer", "--version"], capture_output=True, encoding="utf-8", check=True).stdout
    assert told == module == f"dendrer {version('dendrer')}\n"


def test_usage_says_dendrer_however_it_was_called() -> None:
    """The name in help and errors is `dendrer`, also as a module."""
    for words in ([*DENDRER], [sys.executable, "-m", "dendrer"]):
        ran = subprocess.run([*words, "nosuch"], capture_output=True, encoding="utf-8", check=False)
        assert ran.returncode == 2 and "help: dendrer help" in ran.stderr and "__main__" not in ran.stderr
        helped = subprocess.run([*words, "help"], capture_output=True, encoding="utf-8", check=False)
        assert helped.returncode == 0 and "dendrer" in helped.stdout


@pytest.mark.parametrize(
    ("words", "line", "code"),
    [
        (["verify"], None, 0),
        (["bisect", "a", "--holds=state.n < 2"], None, 0),
        (["bisect", "a", "--holds=state.n < 99"], None, 1),
        (["bisect", "a", "--holds=1 +"], None, 2),
        (["nosuch"], None, 2),
        (["log", "--nosuch"], None, 2),
        (["commit", "--run=a"], "no json\n", 2),
        (["log", "zz"], None, 3),
        (["show", "a@99"], None, 3),
        (["verify", "a", "--tip=sha256:" + "0" * 64], None, 6),
        (["commit", "--run=a"], '{"type":"kernel.anomaly"}\n', 5),
        (["assert", "a", "--holds=by_action('reward').all(s, s.success)"], None, 6),
    ],
    ids=repr,
)
def test_exit_codes_are_those_of_the_command(words: list[str], line: str | None, code: int) -> None:
    """What `dendrer help exit-codes` says comes out of the Python process."""
    dendrer.init()
    with dendrer.run("a", state={"n": 0}) as run:
        for n in range(4):
            run.observe("x", {"n": n})
    ran = command(*words, input=line)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    if code in (2, 3):
        assert ran.stderr.startswith("error[E")


def test_a_pipe_is_recorded_as_the_page_says() -> None:
    """`echo .. | dendrer commit --run x`, through a shell."""
    dendrer.init()
    ran = subprocess.run(
        f"echo {shlex.quote(LINE.strip())} | {shlex.join(DENDRER)} commit --run x", shell=True, capture_output=True, encoding="utf-8", check=False
    )
    assert ran.returncode == 0
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["begun", "tick"]
    assert ticks("x") == [1]
    many = command("commit", "--run=x", "--jsonl", input=LINE * 200)
    assert many.returncode == 0 and json.loads(many.stdout.splitlines()[-1])["summary"]["committed"] == 200
    assert ticks("x") == list(range(1, 202))
    is_clean()


def test_replies_come_while_the_pipe_is_open() -> None:
    """Each line is answered before the next one is sent."""
    dendrer.init()
    with subprocess.Popen([*DENDRER, "commit", "--run", "x", "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as child:
        assert child.stdin is not None and child.stdout is not None
        for tick in range(1, 6):
            child.stdin.write(LINE)
            child.stdin.flush()
            if tick == 1:
                assert json.loads(child.stdout.readline())["what"] == "begun"
            assert json.loads(child.stdout.readline())["tick"] == tick
        child.stdin.close()
        assert json.loads(child.stdout.readline())["summary"]["committed"] == 5
    assert child.returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", [[*DENDRER], [sys.executable, "-m", "dendrer"]], ids=["dendrer", "python -m dendrer"])
def test_an_interrupt_ends_a_commit_that_waits(stop: signal.Signals, words: list[str]) -> None:
    """Ctrl-C while standard input is waited for ends it at once; what was acknowledged is there, and nothing is printed of Python."""
    dendrer.init()
    child = subprocess.Popen([*words, "commit", "--run", "x", "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert child.stdin is not None and child.stdout is not None
    try:
        child.stdin.write(LINE)
        child.stdin.flush()
        assert [json.loads(child.stdout.readline())["what"] for _ in range(2)] == ["begun", "committed"]
        begun = time.monotonic()
        child.send_signal(stop)
        code = child.wait(timeout=3)
        assert time.monotonic() - begun < 2
    finally:
        child.kill()
        _, told = child.communicate()
    assert code in (-stop, 128 + stop)
    assert "Traceback" not in told and "KeyboardInterrupt" not in told
    assert ticks("x") == [1]
    assert command("commit", "--run=x", input=LINE).returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("words", ["log a --json --full", "log a --full", "log a --jsonl", "export a --format jsonl", "help", "state a --json"])
def test_a_reader_that_goes_away_is_no_error(words: str) -> None:
    """`.. | head -c 1` ends quietly: no traceback, no panic, no message."""
    dendrer.init()
    with dendrer.run("a", sync=1000) as run:
        for n in range(60):
            run.observe("x" * 2000, {f"n{n}": "y" * 1000})
    ran = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shlex.join(DENDRER)} {words} | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        encoding="utf-8",
        timeout=20,
        check=False,
    )
    assert ran.stderr == ""
    assert int(ran.stdout) in (0, 141)


def test_an_output_that_is_closed_or_full_is_no_traceback() -> None:
    """A closed standard output, and one that has no room, are told in one line or not at all."""
    dendrer.init()
    with dendrer.run("a") as run:
        run.observe("x")
    closed = subprocess.run(["bash", "-c", f"{shlex.join(DENDRER)} log a --json >&-"], capture_output=True, encoding="utf-8", check=False)
    assert "Traceback" not in closed.stderr and "panicked" not in closed.stderr
    if os.path.exists("/dev/full"):
        full = subprocess.run(["bash", "-c", f"{shlex.join(DENDRER)} log a --json > /dev/full"], capture_output=True, encoding="utf-8", check=False)
        assert full.returncode != 0 and "Traceback" not in full.stderr and "panicked" not in full.stderr


def test_arguments_are_taken_as_they_are() -> None:
    """Spaces, newlines, text that is no ASCII, and bytes that are no UTF-8 reach the program."""
    assert command("init", "a b\nü").returncode == 0
    assert command("commit", "--run=x", "--store=a b\nü", "--goal=ü = \n", input=LINE).returncode == 0
    assert document("runs", "--store=a b\nü")["items"][0]["goal"] == "ü = \n"
    if sys.platform == "linux":
        made = subprocess.run([*map(os.fsencode, DENDRER), b"init", b"no-utf8-\xff"], capture_output=True, check=False)
        assert b"Traceback" not in made.stderr and (made.returncode == 0) == os.path.exists(b"no-utf8-\xff/.dendrer")


def test_the_command_reads_what_the_package_wrote_and_the_other_way_round() -> None:
    """One store, both ways, with the keys of both."""
    assert command("init").returncode == 0
    with dendrer.run("x") as run:
        run.observe("package", {"n": 1})
    assert command("commit", "--run=x", input=LINE).returncode == 0
    with dendrer.run("x", resume=True) as run:
        assert run.observe("again").tick == 3
    assert dendrer.open()["x"].verify().verdict == document("verify", "x")["verdict"] == "INTACT"
    assert command("export", "x", "-o", "x.dnd").returncode == 0
    assert len(dendrer.open("x.dnd")["x"]) == 3


def test_the_command_needs_no_module_of_the_directory(folder: Path) -> None:
    """Files in the directory that are called as modules of Python do not stand in the way of the command."""
    (folder / "json.py").write_text("raise RuntimeError('mine')")
    (folder / "dendrer.py").write_text("raise RuntimeError('mine')")
    ran = command("--version")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_command_starts_soon() -> None:
    """The command of the package takes no more than half a second to say its version, at the second try."""
    command("--version")
    begun = time.monotonic()
    command("--version")
    assert time.monotonic() - begun < 0.5


def test_the_package_imports_nothing_that_it_does_not_need() -> None:
    """No framework, no event loop and no socket: importing is quick."""
    code = "import sys, dendrer; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(run.stdout.split())
    assert found.isdisjoint({"asyncio", "socket", "inspect", "langchain_core", "langgraph", "pydantic", "tempfile"})
