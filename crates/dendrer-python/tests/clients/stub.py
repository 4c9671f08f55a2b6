"""A stub of the APIs of models on loopback: chat completions, Responses, Messages, and content of Gemini.

The answer follows from the request alone. The newest words of the user are its script:

`count trains and cars`   the tool `count` is called for each word, at once; the results are then repeated in a text
other words               are repeated in a text
(think)                   a thought comes first
(429), (500)              the first request with this body gets this status, the next one an answer
(400)                     each request gets this status
(gzip), (br), (zstd)      the answer is compressed, if the request accepts it
(pieces)                  the answer comes in 20 pieces over 50 ms
(cut)                     the connection is closed in the middle of the first answer
"""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import re
import threading
import time
from collections import Counter
from typing import Any

import brotli  # type: ignore[import-untyped]
from backports import zstd

#: Pieces of an answer that comes in pieces, and the seconds that all of them take.
PIECES = 20
LASTS = 0.05

#: A signature of a thought, whose base64 has the letters that not all alphabets of it have.
SIGNATURE = "a+b/c2lnbmVk"

Json = dict[str, Any]


class Script:
    """What a request asks of the stub."""

    def __init__(self, words: str, results: list[str], key: str) -> None:
        """Reads the newest words of the user, and the results that come after them."""
        self.words = words
        self.flags = re.findall(r"\((\w+)\)", words)
        counted = re.search(r"\bcount (\w+(?: and \w+)*)", words)
        things = counted.group(1).split(" and ") if counted and not results else []
        self.calls = [(f"call_{key}_{number}", {"what": thing}) for number, thing in enumerate(things)]
        plain = re.sub(r" *\(\w+\)", "", words)
        self.text = "" if things else "Counted: " + ", ".join(results) if results else f"You said: {plain}"
        self.thought = f"I think about: {plain}" if "think" in self.flags else ""


def texts(content: Any) -> str:
    """The words of a content: a text, or parts with texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part.get("text", "") for part in parts if isinstance(part, dict))


def split(text: str) -> list[str]:
    """A text in pieces of at most seven characters: words and numbers are cut anywhere."""
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def script(found: list[tuple[str, str]], key: str) -> Script:
    """The script of a conversation: kinds `user`, `result` and others, with their texts."""
    asked = max((at for at, (kind, _) in enumerate(found) if kind == "user"), default=-1)
    words = found[asked][1] if asked >= 0 else ""
    return Script(words, [text for kind, text in found[asked + 1 :] if kind == "result"], key)


class Chat:
    """Chat completions of OpenAI."""

    @staticmethod
    def read(body: Json, key: str) -> Script:
        kinds = {"user": "user", "tool": "result"}
        return script(
            [(kinds.get(one["role"], ""), texts(one.get("content"))) for one in body["messages"]], key
        )

    @staticmethod
    def whole(body: Json, said: Script, key: str) -> Json:
        message: Json = {"role": "assistant", "content": said.text or None, "refusal": None}
        if said.calls:
            message["tool_calls"] = [
                {
                    "id": name,
                    "type": "function",
                    "function": {"name": "count", "arguments": json.dumps(asked)},
                }
                for name, asked in said.calls
            ]
        ends = "tool_calls" if said.calls else "stop"
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": ends}
        return Chat.head(body, key, "chat.completion") | {"choices": [choice], "usage": Chat.usage(said)}

    @staticmethod
    def head(body: Json, key: str, kind: str) -> Json:
        return {"id": f"chat_{key}", "object": kind, "created": 1_700_000_000, "model": body["model"]}

    @staticmethod
    def usage(said: Script) -> Json:
        asked, told = len(said.words), len(said.text) + 5
        return {"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told}

    @staticmethod
    def events(body: Json, said: Script, key: str) -> list[str]:
        head = Chat.head(body, key, "chat.completion.chunk")

        def chunk(delta: Json, ends: str | None = None) -> Json:
            return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": ends}]}

        chunks = [chunk({"role": "assistant", "content": "" if said.text else None})]
        chunks += [chunk({"content": piece}) for piece in split(said.text)]
        for index, (name, asked) in enumerate(said.calls):
            function = {"name": "count", "arguments": ""}
            call: Json = {"index": index, "id": name, "type": "function", "function": function}
            chunks.append(chunk({"tool_calls": [call]}))
            for piece in split(json.dumps(asked)):
                chunks.append(
                    chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
                )
        chunks.append(chunk({}, "tool_calls" if said.calls else "stop"))
        if (body.get("stream_options") or {}).get("include_usage"):
            chunks.append(head | {"choices": [], "usage": Chat.usage(said)})
        return [f"data: {json.dumps(one)}\n\n" for one in chunks] + ["data: [DONE]\n\n"]

    @staticmethod
    def error(status: int) -> Json:
        return {"error": {"message": f"status {status}", "type": "stub", "param": None, "code": None}}


class Responses:
    """Responses of OpenAI."""

    @staticmethod
    def read(body: Json, key: str) -> Script:
        asked = body["input"]
        if isinstance(asked, str):
            return script([("user", asked)], key)
        found = []
        for item in asked:
            if item.get("type") == "function_call_output":
                found.append(("result", texts(item["output"])))
            else:
                found.append((item.get("role", ""), texts(item.get("content"))))
        return script(found, key)

    @staticmethod
    def items(said: Script, key: str) -> list[Json]:
        items: list[Json] = []
        if said.thought:
            summary = [{"type": "summary_text", "text": said.thought}]
            items.append(
                {"id": f"rs_{key}", "type": "reasoning", "summary": summary, "encrypted_content": "Zm9v"}
            )
        if said.text:
            part = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
            items.append(
                {
                    "id": f"msg_{key}",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        for name, asked in said.calls:
            items.append(
                {
                    "id": f"fc_{name}",
                    "type": "function_call",
                    "call_id": name,
                    "name": "count",
                    "arguments": json.dumps(asked),
                    "status": "completed",
                }
            )
        return items

    @staticmethod
    def whole(body: Json, said: Script, key: str) -> Json:
        asked, told = len(said.words), len(said.text) + 5
        usage = {
            "input_tokens": asked,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": told,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": asked + told,
        }
        return Responses.begun(body, key) | {
            "status": "completed",
            "output": Responses.items(said, key),
            "usage": usage,
        }

    @staticmethod
    def begun(body: Json, key: str) -> Json:
        return {
            "id": f"resp_{key}",
            "object": "response",
            "created_at": 1_700_000_000,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "metadata": {},
            "model": body["model"],
            "output": [],
            "parallel_tool_calls": True,
            "previous_response_id": body.get("previous_response_id"),
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": body.get("tools") or [],
            "top_p": 1.0,
            "usage": None,
        }

    @staticmethod
    def events(body: Json, said: Script, key: str) -> list[str]:
        whole, begun = Responses.whole(body, said, key), Responses.begun(body, key)
        events: list[Json] = [{"type": "response.created", "response": begun}]
        events.append({"type": "response.in_progress", "response": begun})
        for at, item in enumerate(whole["output"]):
            place: Json = {"output_index": at, "item_id": item["id"]}
            empty: Json = {"content": [], "arguments": "", "summary": [], "status": "in_progress"}
            first = {name: empty.get(name, value) for name, value in item.items()}
            events.append({"type": "response.output_item.added", "output_index": at, "item": first})
            if item["type"] == "message":
                place["content_index"] = 0
                part = item["content"][0]
                events.append(
                    {"type": "response.content_part.added", "part": part | {"text": ""}} | place
                )
                for piece in split(part["text"]):
                    event = {"type": "response.output_text.delta", "delta": piece, "logprobs": []}
                    events.append(event | place)
                done = {"type": "response.output_text.done", "text": part["text"], "logprobs": []}
                events.append(done | place)
                events.append({"type": "response.content_part.done", "part": part} | place)
            elif item["type"] == "reasoning":
                place["summary_index"] = 0
                part, kind = item["summary"][0], "response.reasoning_summary"
                empty = part | {"text": ""}
                events.append({"type": f"{kind}_part.added", "part": empty} | place)
                for piece in split(part["text"]):
                    events.append({"type": f"{kind}_text.delta", "delta": piece} | place)
                events.append({"type": f"{kind}_text.done", "text": part["text"]} | place)
                events.append({"type": f"{kind}_part.done", "part": part} | place)
            elif item["type"] == "function_call":
                for piece in split(item["arguments"]):
                    event = {"type": "response.function_call_arguments.delta", "delta": piece}
                    events.append(event | place)
                done = {"type": "response.function_call_arguments.done", "arguments": item["arguments"]}
                events.append(done | {"name": item["name"]} | place)
            events.append({"type": "response.output_item.done", "output_index": at, "item": item})
        events.append({"type": "response.completed", "response": whole})
        return [
            f"event: {event['type']}\ndata: {json.dumps(event | {'sequence_number': number})}\n\n"
            for number, event in enumerate(events)
        ]

    error = Chat.error


class Messages:
    """Messages of Anthropic."""

    @staticmethod
    def read(body: Json, key: str) -> Script:
        found = []
        for one in body["messages"]:
            content = one["content"]
            parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
            for part in parts:
                if part["type"] == "tool_result":
                    found.append(("result", texts(part.get("content"))))
                elif part["type"] == "text":
                    found.append((one["role"], part["text"]))
        return script(found, key)

    @staticmethod
    def whole(body: Json, said: Script, key: str) -> Json:
        blocks: list[Json] = []
        if said.thought:
            blocks.append({"type": "thinking", "thinking": said.thought, "signature": SIGNATURE})
        if said.text:
            blocks.append({"type": "text", "text": said.text, "citations": None})
        for name, asked in said.calls:
            blocks.append({"type": "tool_use", "id": name, "name": "count", "input": asked})
        return Messages.head(body, said, key) | {
            "content": blocks,
            "stop_reason": "tool_use" if said.calls else "end_turn",
            "usage": Messages.usage(said, len(said.text) + 5),
        }

    @staticmethod
    def head(body: Json, said: Script, key: str) -> Json:
        return {
            "id": f"msg_{key}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": Messages.usage(said, 1),
        }

    @staticmethod
    def usage(said: Script, told: int) -> Json:
        return {
            "input_tokens": len(said.words),
            "cache_creation_input_tokens": 2,
            "cache_read_input_tokens": 3,
            "output_tokens": told,
        }

    @staticmethod
    def events(body: Json, said: Script, key: str) -> list[str]:
        whole = Messages.whole(body, said, key)
        events: list[Json] = [{"type": "message_start", "message": Messages.head(body, said, key)}]
        empty: Json = {"text": "", "thinking": "", "signature": "", "input": {}}
        for at, block in enumerate(whole["content"]):
            first = {name: empty.get(name, value) for name, value in block.items()}
            events.append({"type": "content_block_start", "index": at, "content_block": first})
            deltas: list[Json] = []
            if block["type"] == "thinking":
                deltas += [
                    {"type": "thinking_delta", "thinking": piece} for piece in split(block["thinking"])
                ]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            elif block["type"] == "text":
                deltas += [{"type": "text_delta", "text": piece} for piece in split(block["text"])]
            else:
                pieces = split(json.dumps(block["input"]))
                deltas += [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
            events += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": at})
            events.append({"type": "ping"})
        ends = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        usage = {"output_tokens": whole["usage"]["output_tokens"]}
        events.append({"type": "message_delta", "delta": ends, "usage": usage})
        events.append({"type": "message_stop"})
        return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]

    @staticmethod
    def error(status: int) -> Json:
        return {"type": "error", "error": {"type": "stub_error", "message": f"status {status}"}}


class Gemini:
    """Content of Gemini. Its calls have no ids."""

    @staticmethod
    def read(body: Json, key: str) -> Script:
        found = []
        for one in body["contents"]:
            for part in one.get("parts", []):
                if "functionResponse" in part:
                    answer = part["functionResponse"]["response"]
                    found.append(("result", str(answer.get("result", answer.get("error", answer)))))
                elif "text" in part:
                    found.append((one.get("role", "user"), part["text"]))
        return script(found, key)

    @staticmethod
    def parts(said: Script, cut: bool) -> list[Json]:
        parts: list[Json] = []
        for text, more in ((said.thought, {"thought": True}), (said.text, {})):
            parts += [{"text": piece} | more for piece in (split(text) if cut else [text] if text else [])]
        for at, (_, asked) in enumerate(said.calls):
            part: Json = {"functionCall": {"name": "count", "args": asked}}
            if at == 0:
                part["thoughtSignature"] = SIGNATURE
            parts.append(part)
        return parts

    @staticmethod
    def answer(parts: list[Json], said: Script, key: str, ends: bool) -> Json:
        candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
        asked, told = len(said.words), len(said.text) + 5
        usage = {"promptTokenCount": asked, "totalTokenCount": asked}
        if ends:
            candidate["finishReason"] = "STOP"
            usage |= {"candidatesTokenCount": told, "totalTokenCount": asked + told}
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": "stub",
            "responseId": f"gem_{key}",
        }

    @staticmethod
    def whole(body: Json, said: Script, key: str) -> Json:
        return Gemini.answer(Gemini.parts(said, cut=False), said, key, ends=True)

    @staticmethod
    def events(body: Json, said: Script, key: str) -> list[str]:
        parts = Gemini.parts(said, cut=True)
        answers = [
            Gemini.answer([part], said, key, ends=at == len(parts) - 1) for at, part in enumerate(parts)
        ]
        return [f"data: {json.dumps(one)}\r\n\r\n" for one in answers]

    @staticmethod
    def error(status: int) -> Json:
        names = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}
        return {"error": {"code": status, "message": f"status {status}", "status": names.get(status, "")}}


Api = type[Chat] | type[Responses] | type[Messages] | type[Gemini]


def api_of(path: str) -> Api | None:
    """The API of a path."""
    path = path.split("?")[0]
    ends: list[tuple[str, Api]] = [
        ("/chat/completions", Chat),
        ("/responses", Responses),
        ("/messages", Messages),
        (":generateContent", Gemini),
        (":streamGenerateContent", Gemini),
    ]
    return next((api for end, api in ends if path.endswith(end)), None)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers requests of one connection."""

    protocol_version = "HTTP/1.1"
    # A piece is sent when it is written, and does not wait for the one before it.
    disable_nagle_algorithm = True
    server: Stub

    def do_POST(self) -> None:
        """Answers by the script of the request."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        api = api_of(self.path)
        if api is None:
            self.send(404, "application/json", [b'{"error":{"message":"no such path"}}'], [])
            return
        asked = json.loads(body)
        key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]
        said = api.read(asked, key)
        with self.server.lock:
            self.server.asked[key] += 1
            times = self.server.asked[key]
            self.server.paths.append(self.path)
            self.server.bodies.append(asked)
        status = next((int(flag) for flag in said.flags if flag in ("400", "429", "500")), 200)
        if status != 200 and (status == 400 or times == 1) and not said.text.startswith("Counted"):
            self.send(status, "application/json", [json.dumps(api.error(status)).encode()], said.flags)
            return
        is_stream = bool(asked.get("stream")) or ":stream" in self.path
        if is_stream:
            pieces = [event.encode() for event in api.events(asked, said, key)]
        else:
            pieces = [json.dumps(api.whole(asked, said, key)).encode()]
        is_cut = "cut" in said.flags and times == 1
        kind = "text/event-stream; charset=utf-8" if is_stream else "application/json"
        self.send(200, kind, pieces, said.flags, is_cut=is_cut, key=key)

    def send(
        self,
        status: int,
        kind: str,
        pieces: list[bytes],
        flags: list[str],
        *,
        is_cut: bool = False,
        key: str = "none",
    ) -> None:
        """Sends an answer: in one piece with its length, or in chunks."""
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("x-request-id", f"req_{key}")
        self.send_header("Set-Cookie", "one=1; Path=/")
        self.send_header("Set-Cookie", "two=2; Path=/")
        self.send_header("X-RateLimit-Remaining", "7")
        if status != 200:
            self.send_header("retry-after-ms", "10")
        accepts = self.headers.get("Accept-Encoding", "")
        encoding = next((flag for flag in flags if flag in ("gzip", "br", "zstd")), "")
        if encoding and encoding in accepts and status == 200:
            self.send_header("Content-Encoding", encoding)
            self.server.encodings.add(encoding)
            pieces = compressed(pieces, encoding)
        whole = b"".join(pieces)
        if "pieces" in flags:
            size = -(-len(whole) // PIECES)
            pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        if is_cut:
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole[: len(whole) // 2])
            self.wfile.flush()
            self.close_connection = True
            return
        if len(pieces) == 1:
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            if "pieces" in flags:
                time.sleep(LASTS / PIECES)
            if piece:
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


def compressed(pieces: list[bytes], encoding: str) -> list[bytes]:
    """Pieces of one compressed body: each can be read once it is there, as a stream wants it."""
    if encoding == "br":
        encoder = brotli.Compressor()
        return [encoder.process(piece) + encoder.flush() for piece in pieces] + [encoder.finish()]
    if encoding == "zstd":
        writer = zstd.ZstdCompressor()
        block = zstd.ZstdCompressor.FLUSH_BLOCK
        return [writer.compress(piece, block) for piece in pieces] + [writer.flush()]
    return [gzip.compress(b"".join(pieces), mtime=0)]


class Stub(http.server.ThreadingHTTPServer):
    """A stub on a free port of loopback, until it is closed."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        """Begins to serve in a thread."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.asked: Counter[str] = Counter()
        self.paths: list[str] = []
        self.bodies: list[Json] = []
        self.encodings: set[str] = set()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignored: a client may close its connection at any moment."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def variables(self) -> dict[str, str]:
        """The variables by which the libraries of models find it."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "sk-of-the-stub",
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "sk-of-the-stub",
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GEMINI_API_KEY": "key-of-the-stub",
        }

    def close(self) -> None:
        """Ends it: nothing listens at its address any more."""
        self.shutdown()
        self.server_close()

    def __enter__(self) -> Stub:
        """It."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it."""
        self.close()


if __name__ == "__main__":
    print(Stub().url, flush=True)
    threading.Event().wait()
