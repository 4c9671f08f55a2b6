"""Clients and servers of MCP are recorded unmodified, and served again without a server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import DENDRER, transitions

pytest.importorskip("mcp")

CLIENTS = Path(__file__).parent / "clients" / "of_mcp"

#: Packages of npm, with a server for tries among them.
EVERYTHING = Path(__file__).parent / "clients" / "node" / "node_modules"


def run(before: list[str], command: str, tool: str, parameter: str, words: list[str]) -> tuple[int, str, str]:
    """Runs the client: its exit code, and what is printed."""
    client = [sys.executable, str(CLIENTS / "client.py"), command, tool, parameter, *words]
    path = os.pathsep.join([str(Path.cwd() / "bin"), os.environ["PATH"]])
    ran = subprocess.run(
        [*before, *client],
        env=os.environ | {"PATH": path},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


def actions(name: str) -> list[tuple[str, str, object]]:
    """The calls of a run: agent, type, and the parameters or the status."""
    found = [item["content"] | {"type": item["type"]} for item in transitions(name)]
    return [
        (item["agent_id"], item["type"], item.get("result", {}).get("status", item["action"].get("params")))
        for item in found
        if "action" in item
    ]


@pytest.fixture
def depot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a program in PATH that runs the server."""
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "bin" / "depot"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{CLIENTS / 'server.py'}'\n", "utf-8")
    program.chmod(0o755)
    return "depot"


def test_the_library_of_python_is_recorded_and_served_again(depot: str) -> None:
    """The client passes few variables on, and its server is found through PATH."""
    words = ["trains", "ships"]
    alone = run([], depot, "count", "what", words)
    assert alone[:2] == (0, "True\nFalse ['12 trains']\nTrue ['Error executing tool count']\n"), alone[2]
    recorded = run([*DENDRER, "record", "--mcp", depot, "--as", "r", "--"], depot, "count", "what", words)
    assert recorded[:2] == alone[:2], recorded[2]
    assert "0 gaps" in recorded[2], recorded[2]
    assert actions("r") == [
        ("mcp:depot", "action.request", {"what": "trains"}),
        ("mcp:depot", "action.result", "ok"),
        ("mcp:depot", "action.request", {"what": "ships"}),
        ("mcp:depot", "action.result", "error"),
    ]
    Path("started").unlink()
    again = run([*DENDRER, "replay", "r", "--"], depot, "count", "what", words)
    assert again[:2] == alone[:2], again[2]
    assert "calls served" in again[2], again[2]
    changed = run([*DENDRER, "replay", "r", "--"], depot, "count", "what", ["trains", "cars"])
    assert changed[0] == 7, changed[2]
    assert '/params/arguments/what  recorded "ships"  now "cars"' in changed[2], changed[2]
    assert not Path("started").exists(), "no server was started"


@pytest.mark.skipif(
    shutil.which("npx") is None or not (EVERYTHING / ".bin" / "mcp-server-everything").exists(), reason="no npx, or no server-everything"
)
def test_a_server_of_npm_is_recorded_and_served_again(depot: str) -> None:
    """`npx` is a shim without being named, and what it starts is a part of it."""
    del depot
    Path("node_modules").symlink_to(EVERYTHING)
    command = "npx --no-install mcp-server-everything stdio"
    alone = run([], command, "echo", "message", ["hello"])
    assert alone[:2] == (0, "True\nFalse ['Echo: hello']\n"), alone[2]
    recorded = run([*DENDRER, "record", "--as", "r", "--"], command, "echo", "message", ["hello"])
    assert recorded[:2] == alone[:2], recorded[2]
    assert [action[:2] for action in actions("r")] == [
        ("mcp:mcp-server-everything", "action.request"),
        ("mcp:mcp-server-everything", "action.result"),
    ]
    again = run([*DENDRER, "replay", "r", "--"], command, "echo", "message", ["hello"])
    assert again[:2] == alone[:2], again[2]
