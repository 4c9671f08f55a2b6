"""Programs that use the libraries of models unmodified are recorded, and served again with nothing to ask.

Each agent of `clients/` takes 30 turns with a stub of its API: whole answers and streams, calls at once, statuses 429, 500 and
400, compressed bodies. It writes down what it saw, without dendrer, recorded, and served from its record.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from clients.stub import Stub
from helpers import DENDRER, document, transitions

CLIENTS = Path(__file__).parent / "clients"

FLAGS = ["", "(think)", "(gzip)", "(br)", "(zstd)", "(429)", "(500)", "(pieces)", "(400)"]
WORDS = ["count trains", "count trains and cars and ships", "tell me more"]

#: Headers that are served again.
SERVED = {"content-type", "content-encoding", "retry-after-ms"}

#: The turn that another run changes, and the one whose first answer is cut off.
CHANGED, CUT = 23, 20


class Agent(NamedTuple):
    """A program of `clients/`."""

    name: str
    #: The kind of the conversation that it saves.
    kind: str
    #: The place of a message in a request, before and after its number.
    place: tuple[str, str]
    #: The encodings that its library accepts.
    encodings: frozenset[str]
    #: How it asks; Node has one way.
    how: str = ""
    #: Whether its library asks again if an answer was cut off.
    is_asked_again: bool = True

    @property
    def command(self) -> list[str]:
        """The command that runs it, without its files."""
        if self.how:
            return [sys.executable, str(CLIENTS / "agents" / f"{self.name}.py"), self.how]
        return ["node", str(CLIENTS / "node" / f"{self.name}.mjs")]

    def turns(self) -> list[str]:
        """The words of its user."""
        found = [f"{n}: {WORDS[(n + n // 9) % 3]} {FLAGS[n % 9]}".strip() for n in range(30)]
        if self.is_asked_again:
            found[CUT] = f"{CUT}: tell me more (cut)"
        return found


ALL = frozenset({"gzip", "br", "zstd"})
#: Node 20 accepts nothing else.
OF_NODE = frozenset({"gzip"})

PYTHON = [
    Agent("openai_chat", "openai-chat", ("/messages/", "/content"), ALL),
    Agent("openai_responses", "openai-responses", ("/input/", "/content"), ALL),
    Agent("anthropic_messages", "anthropic", ("/messages/", "/content"), ALL),
    Agent("google_genai", "auto", ("/contents/", "/parts/0/text"), ALL, is_asked_again=False),
]
NODE = [
    Agent("openai_chat", "openai-chat", ("/messages/", "/content"), OF_NODE, is_asked_again=False),
    Agent("openai_responses", "openai-responses", ("/input/", "/content"), OF_NODE, is_asked_again=False),
    Agent("anthropic_messages", "anthropic", ("/messages/", "/content"), OF_NODE, is_asked_again=False),
    Agent("google_genai", "auto", ("/contents/", "/parts/0/text"), OF_NODE, is_asked_again=False),
    Agent("ai_sdk", "ai-sdk", ("/input/", "/content/0/text"), OF_NODE, is_asked_again=False),
]
AGENTS = [agent._replace(how=how) for agent in PYTHON for how in ("sync", "async")] + NODE

HAS_NODE = shutil.which("node") is not None and (CLIENTS / "node" / "node_modules").is_dir()


def name_of(agent: Agent) -> str:
    """The name of a case."""
    return f"{agent.name}-{agent.how or 'node'}"


def act(agent: Agent, before: list[str], turns: list[str], stub: Stub | None, exits: int = 0) -> tuple[Any, str, str]:
    """Runs an agent: what it saw, and what was printed."""
    Path("turns.json").write_text(json.dumps(turns), "utf-8")
    Path("saw.json").unlink(missing_ok=True)
    environment = os.environ | {"GEMINI_API_KEY": "key", "OPENAI_API_KEY": "key", "ANTHROPIC_API_KEY": "key"}
    if stub:
        environment |= stub.variables()
    ran = subprocess.run(
        [*before, *agent.command, "turns.json", "saw.json"],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert ran.returncode == exits, ran.stdout + ran.stderr
    return json.loads(Path("saw.json").read_text("utf-8")), ran.stdout, ran.stderr


def with_served_headers(saw: Any) -> Any:
    """What an agent saw, with the headers alone that a record keeps."""
    answers = [dict(one) if isinstance(one, dict) else one for one in saw["answers"]]
    for one in answers:
        if isinstance(one, dict) and "headers" in one:
            one["headers"] = {name: text for name, text in one["headers"].items() if name in SERVED}
    return saw | {"answers": answers}


def without_null(value: Any) -> Any:
    """A value without members that are null: libraries add those that an answer may have."""
    if isinstance(value, dict):
        return {name: without_null(inner) for name, inner in value.items() if inner is not None}
    return [without_null(inner) for inner in value] if isinstance(value, list) else value


def plain(found: list[dict[str, Any]], agent: str) -> list[Any]:
    """Transitions without what only a recording or only an import states, and without the calls that failed."""
    kept = []
    for one in found:
        content = dict(one["content"])
        failed = any(noted.get("kind") == "model_call_failed" for noted in content.get("anomalies", []))
        intent = dict(content.get("intent") or {})
        if failed or "ended" in intent:
            continue
        for name in ("capture", "request", "source"):
            intent.pop(name, None)
        content["intent"] = without_null(intent)
        for name in ("redaction", "unattested", "state_root", "seq"):
            content.pop(name, None)
        if content.get("agent_id") in (agent, "model"):
            content["agent_id"] = "assistant"
        kept.append([one["type"], content])
    return kept


def essence(found: list[Any]) -> list[Any]:
    """What transitions state in any format: words, calls and their results."""
    kept: list[Any] = []
    for kind, content in found:
        words = content["intent"].get("content")
        parts = words if isinstance(words, list) else [{"type": "text", "text": words}]
        said = "".join(part.get("text") or "" for part in parts if part.get("type") != "reasoning")
        action = content.get("action") or {}
        calls = action.get("calls", [action] if action else [])
        if kind == "action.result":
            kept.append(["result", action["call_id"], content["result"]["output"]])
        elif calls:
            kept += [["call", call["call_id"], call["tool"], call["params"]] for call in calls]
        elif said:
            kept.append([kind, said])
    return kept


@pytest.mark.parametrize("agent", AGENTS, ids=name_of)
def test_a_program_sees_the_same_recorded_and_served_again(agent: Agent) -> None:
    """It sees the same without dendrer, recorded, and served with the stub gone; one changed message is named."""
    if not agent.how and not HAS_NODE:
        pytest.skip("no Node, or its packages were not installed: scripts/python.sh")
    turns = agent.turns()
    with Stub() as stub:
        alone, _, _ = act(agent, [], turns, stub)
        asked, encodings = stub.paths, stub.encodings
    assert encodings == agent.encodings, "the answers are compressed as the library accepts it"

    with Stub() as stub:
        recorded, _, told = act(agent, [*DENDRER, "record", "--as", "r", "--"], turns, stub)
        assert stub.paths == asked, "the stub is asked the same"
        bodies = stub.bodies
    assert recorded == alone, "each status, header and body is that of the stub"
    failed = sum(flag in turn for turn in turns for flag in ("(429)", "(500)", "(400)", "(cut)"))
    assert f"1 agent, {len(asked)} calls, {failed} failed, 0 gaps" in told, told

    replay = [*DENDRER, "replay", "r", "--tools", "run"]
    served, _, told = act(agent, [*replay, "--"], turns, None)
    assert with_served_headers(served) == with_served_headers(alone)
    assert f"OK           {len(asked)} calls served; the program ended with exit code 0\n" in told, told

    other = turns[CHANGED].replace(": ", ": please ")
    changed = [*turns[:CHANGED], other, *turns[CHANGED + 1 :]]
    _, told, _ = act(agent, [*replay, "--json", "--"], changed, None, exits=7)
    divergence = json.loads(told)["divergence"]
    on_record = transitions("r")
    asks = next(one for one in on_record if one["content"].get("intent", {}).get("content") == turns[CHANGED])
    before, after = agent.place
    assert divergence["kind"] == "changed_request"
    assert divergence["call"] == asks["content"]["intent"]["capture"]["call"]
    first = next(body for body in bodies if turns[CHANGED] in json.dumps(body))
    assert divergence["path"] == f"{before}{len(first[before.strip('/')]) - 1}{after}"
    assert (divergence["expected"], divergence["got"]) == (turns[CHANGED], other)

    Path("saved.json").write_text(json.dumps(alone["saved"]), "utf-8")
    document("import", "saved.json", "--kind", agent.kind, "--run", "imported", exits=(0, 1))
    ours, theirs = plain(on_record, "main"), plain(transitions("imported"), "assistant")
    if agent.name == "ai_sdk":
        # It saves its conversation in a form of its own.
        ours, theirs = essence(ours), essence(theirs)
    assert len(ours) == len(theirs)
    for one, another in zip(ours, theirs):
        assert one == another


@pytest.mark.parametrize(
    ("name", "agents", "left"),
    [("openai_at_once", 5, 4), ("openai_stored", 1, 0), ("google_chats", 1, 0)],
)
def test_other_ways_to_converse_are_recorded_and_served(name: str, agents: int, left: int) -> None:
    """Conversations at once, requests that name the response before, and contents that the library keeps by itself."""
    agent = Agent(name, "auto", ("", ""), ALL, how="sync")
    turns = [f"{n}: {WORDS[n % 3]} {'(think)' if n == 4 else ''}".strip() for n in range(6)]
    with Stub() as stub:
        alone, _, _ = act(agent, [], turns, stub)
        asked = len(stub.paths)
    with Stub() as stub:
        recorded, _, told = act(agent, [*DENDRER, "record", "--as", "r", "--"], turns, stub)
    assert recorded == alone
    counted = f"{agents} agent{'s' if agents > 1 else ''}, {asked} calls, 0 failed, 0 gaps"
    assert counted in told, told
    branches = {one["content"]["intent"].get("capture", {}).get("branch", 0) for one in transitions("r")}
    assert branches == {0}, "nothing of it is taken for a second try"
    replay = [*DENDRER, "replay", "r", "--tools", "run", "--"]
    served, _, told = act(agent, replay, turns, None)
    assert served == alone
    assert f"OK           {asked} calls served" in told, told
    if left:
        # One of the conversations departs, and the others are served to their ends.
        changed = (CLIENTS / "agents" / f"{name}.py").read_text("utf-8")
        changed = changed.replace('f"You are agent {name}."', 'f"You are agent {name}{chr(33) if name == 3 else chr(46)}"')
        Path("changed.py").write_text(changed, "utf-8")
        words = [sys.executable, "changed.py", "sync", "turns.json", "saw.json"]
        paths = os.environ | {"PYTHONPATH": os.pathsep.join([str(CLIENTS / "agents"), os.environ.get("PYTHONPATH", "")])}
        keys = {"OPENAI_API_KEY": "key"}
        ran = subprocess.run(
            [*replay, *words], env=paths | keys, capture_output=True, encoding="utf-8", timeout=60, check=False
        )
        assert ran.returncode == 7 and "/messages/0/content" in ran.stderr, ran.stderr
        saved = json.loads(Path("saw.json").read_text("utf-8"))["saved"]
        same = [one == other for one, other in zip(saved, alone["saved"])]
        assert same == [True, True, True, False, True]


@pytest.mark.skipif("DENDRER_DEEP" not in os.environ, reason="a measurement, for a quiet machine: DENDRER_DEEP=1")
def test_a_call_takes_at_most_a_twentieth_longer() -> None:
    """At the median of 100 calls with and without the recorder in turn; an answer has 20 pieces over 50 ms.

    Other work of the machine may disturb a round, so there are up to three.
    """
    ratios: list[float] = []
    while not ratios or ratios[-1] > 1.05 and len(ratios) < 3:
        with Stub() as stub:
            environment = os.environ | stub.variables() | {"STUB_URL": f"{stub.url}/v1"}
            ran = subprocess.run(
                [*DENDRER, "record", "--", sys.executable, str(CLIENTS / "latency.py"), "100"],
                env=environment,
                capture_output=True,
                encoding="utf-8",
                timeout=120,
                check=True,
            )
        print(ran.stdout)
        assert "100 calls, 0 failed, 0 gaps" in ran.stderr, ran.stderr
        ratios.append(json.loads(ran.stdout)["ratio"])
    assert ratios[-1] <= 1.05, ratios


class Leaky(http.server.BaseHTTPRequestHandler):
    """An API whose answers have secrets: in headers, texts, calls, halves of streamed pieces, and errors."""

    canary: dict[str, str] = {}

    def do_POST(self) -> None:
        """Answers by the last message."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        canary = self.canary
        try:
            messages = json.loads(body).get("messages", [])
        except ValueError:
            messages = [{"role": "none", "content": ""}]
        last = messages[-1] if messages else {"role": "none", "content": ""}
        status, kind = 200, "application/json"
        message: dict[str, Any] = {"role": "assistant", "content": f"Your token={canary['answer text']}"}
        if isinstance(last["content"], list):
            asked = json.dumps({"login": "me", "password": canary["call password"], "note": canary["call note"]})
            call = {"id": "c1", "type": "function", "function": {"name": "log_in", "arguments": asked}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        answer: Any = {"id": "x", "choices": [{"index": 0, "message": message}]}
        if not messages:
            answer = {"data": [1], "secret": canary["embedding answer"]}
        if last["content"] == "fail":
            status, answer = 401, {"error": {"message": f"Incorrect API key provided: {canary['error']}"}}
        sent = json.dumps(answer).encode()
        if last["content"] == "stream":
            kind = "text/event-stream"
            sent = b"".join(f"data: {one}\n\n".encode() for one in [*map(json.dumps, self.pieces()), "[DONE]"])
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(sent)))
        self.send_header("Set-Cookie", f"session={canary['set cookie']}; HttpOnly")
        self.send_header("X-Token", canary["answer header"])
        self.send_header("WWW-Authenticate", f"Bearer {canary['authenticate']}")
        self.send_header("Location", f"https://x.example/?key={canary['location']}")
        self.end_headers()
        self.wfile.write(sent)

    def pieces(self) -> list[Any]:
        """Pieces of a stream that have each secret in two halves."""
        canary = self.canary
        deltas: list[Any] = [{"role": "assistant", "content": "the key "}]
        for name in ("half text", "half bearer", "half password"):
            before = {"half bearer": "Bearer ", "half password": "password="}.get(name, "")
            deltas += [{"content": piece} for piece in (before, *halves(canary[name]), " and ")]
        call = {"index": 0, "id": "c2", "type": "function", "function": {"name": "log_in", "arguments": ""}}
        deltas.append({"tool_calls": [call]})
        for piece in ('{"api_key":"', *halves(canary["half call"]), '","token":"', *halves(canary["half token"]), '"}'):
            deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        chunks: list[Any] = [{"id": "s", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        return [*chunks, {"id": "s", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


def halves(text: str) -> tuple[str, str]:
    """Both halves of a text."""
    return text[: len(text) // 2], text[len(text) // 2 :]


#: The places of secrets, and the form of those that only their form shows. The others have a name beside them, or are on no record.
PLACES = {
    "bearer": "", "cookie": "", "api key": "", "goog key": "", "proxy": "", "own header": "", "organization": "", "user agent": "",
    "query key": "", "query sig": "", "query other": "", "set cookie": "", "answer header": "", "authenticate": "", "location": "",
    "environment 1": "", "environment 2": "", "environment key": "sk-proj-", "argument 1": "", "argument 2": "", "argument key": "ghp_",
    "system": "", "user text": "sk-proj-", "user part": "", "term": "ghp_", "metadata": "", "tool output": "", "url password": "",
    "answer text": "", "call password": "", "call note": "sk-ant-api03-", "embedding": "", "embedding answer": "", "no json": "",
    "error": "sk-proj-", "half text": "sk-proj-", "half bearer": "", "half password": "", "half call": "", "half token": "ghp_",
}  # fmt: skip


def test_secrets_of_a_program_are_in_no_file_and_in_no_message() -> None:
    """40 secrets, and the halves of each: in no file but as ciphertext, and in nothing that is printed."""
    assert len(PLACES) == 40
    letters = hashlib.sha256(b"canaries").hexdigest()

    def secret(number: int, form: str) -> str:
        """A text that is nowhere else: letters of both cases and digits."""
        text = hashlib.sha256(f"{letters}{number}".encode()).digest()
        return form + base64.b64encode(text).decode().translate(str.maketrans("", "", "+/="))[:36]

    canary = {name: secret(number, form) for number, (name, form) in enumerate(PLACES.items())}
    Leaky.canary = canary
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Leaky)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    outside = Path("../outside")
    outside.mkdir()
    (outside / "canaries.json").write_text(json.dumps(canary), "utf-8")
    environment = os.environ | {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}/v1",
        "SESSION": canary["environment 1"],
        "DB_PASSWORD": canary["environment 2"],
        "OPENAI_API_KEY": canary["environment key"],
    }
    words = ["--token", canary["argument 1"], f"--password={canary['argument 2']}", canary["argument key"]]
    program = [sys.executable, str(CLIENTS / "canaries.py"), str(outside / "canaries.json"), *words]

    def ran(*args: str) -> str:
        """What a command prints."""
        done = subprocess.run(
            [*DENDRER, *args], env=environment, capture_output=True, encoding="utf-8", timeout=60, check=False
        )
        assert done.returncode in (0, 7), done.stderr
        return done.stdout + done.stderr

    told = ran("record", "--as", "r", "--jsonl", "-o", "acks", "--", *program)
    acks = Path("acks").read_text("utf-8")
    assert [json.loads(acks.splitlines()[-1])["summary"][name] for name in ("calls", "failed", "gaps")] == [7, 1, 1], acks
    told += ran("log", "r", "--full", "--limit=0", "--json") + ran("show", "r@1") + ran("runs", "--json")
    told += ran("replay", "r", "--tools", "run", "--", *program)
    assert "7 calls served" in told, told
    changed = canary | {"tool output": secret(99, ""), "user text": secret(98, "sk-proj-")}
    (outside / "canaries.json").write_text(json.dumps(changed), "utf-8")
    told += ran("replay", "r", "--tools", "run", "--", *program)
    told += ran("replay", "r", "--tools", "run", "--json", "--", *program)
    assert "DIVERGED" in told
    server.shutdown()

    wanted = [text for one in {*canary.values(), *changed.values()} for text in (one, *halves(one))]
    files = [path for path in Path("..").rglob("*") if path.is_file() and outside not in path.parents]
    assert any(path.suffix == ".seg" for path in files), files
    assert told.count("<redacted:") > 20, "they are on record, as markers"
    found = [
        (name, str(path))
        for path in files
        for content in [path.read_bytes()]
        for name in wanted
        if name.encode() in content
    ]
    found += [(name, "printed") for name in wanted if name in told]
    names = {text: place for place, one in (changed | canary).items() for text in (one, *halves(one))}
    assert not found, [(names.get(text, text), where) for text, where in found]
