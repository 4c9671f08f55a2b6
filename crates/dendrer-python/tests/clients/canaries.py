"""A program that has secrets everywhere: headers, cookies, queries, bodies, its arguments and its environment.

    python canaries.py CANARIES.json [--token=SECRET ...]
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

canary: dict[str, str] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
messages: list[Any] = []


def ask(path: str, body: bytes) -> bytes:
    """Asks the API once."""
    headers = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {canary['bearer']}",
        "Cookie": f"session={canary['cookie']}; theme=dark",
        "X-Api-Key": canary["api key"],
        "X-Goog-Api-Key": canary["goog key"],
        "Proxy-Authorization": f"Basic {canary['proxy']}",
        "X-Of-Our-Own": canary["own header"],
        "OpenAI-Organization": canary["organization"],
        "User-Agent": f"agent/{canary['user agent']}",
    }
    query = f"?key={canary['query key']}&sig={canary['query sig']}&t={canary['query other']}"
    url = os.environ["OPENAI_BASE_URL"] + path + query
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        return bytes(error.read())


def chat(content: Any, **terms: Any) -> None:
    """Asks the model, and goes on from its answer."""
    messages.append(content)
    body = {"model": "m", "messages": messages} | terms
    came = ask("/chat/completions", json.dumps(body).encode())
    if not terms.get("stream"):
        messages.append(json.loads(came)["choices"][0]["message"])


system = {"role": "system", "content": f"You log in with password={canary['system']} and nothing else."}
messages.append(system)
chat({"role": "user", "content": f"My key is {canary['user text']}, use it."}, user=canary["term"])
text = [{"type": "text", "text": f"Authorization: Bearer {canary['user part']}"}]
chat({"role": "user", "content": text}, metadata={"api_key": canary["metadata"]})
call = messages[-1]["tool_calls"][0]
output = json.dumps({"password": canary["tool output"], "url": f"https://me:{canary['url password']}@db.example/x"})
chat({"role": "tool", "tool_call_id": call["id"], "content": output})
chat({"role": "user", "content": "stream"}, stream=True)
ask("/embeddings", json.dumps({"input": "x", "access_token": canary["embedding"]}).encode())
ask("/chat/completions", b"no json, but secret=" + canary["no json"].encode())
ask("/chat/completions", json.dumps({"model": "m", "messages": [{"role": "user", "content": "fail"}]}).encode())
