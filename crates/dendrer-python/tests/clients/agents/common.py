"""What the agents share: their script, their tool, and the file of what they saw."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

#: The tool as JSON Schema.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"what": {"type": "string"}},
    "required": ["what"],
    "additionalProperties": False,
}


def count(what: str) -> str:
    """The tool of the agents."""
    return f"{len(what)} {what}"


class Saw:
    """What an agent saw: its conversation as it saves it, statuses, headers, bodies and pieces of streams."""

    def __init__(self) -> None:
        """Reads the arguments of the program: how it asks, its script, and the file for what it saw."""
        self.how, source, self.target = sys.argv[1:4]
        self.turns: list[str] = json.loads(Path(source).read_text("utf-8"))
        self.answers: list[Any] = []
        self.saved: Any = []

    def answer(self, response: Any, body: Any) -> None:
        """Remembers an answer: its status, its headers, and what came."""
        headers = {name.lower(): value for name, value in response.headers.items()}
        self.answers.append({"status": response.status_code, "headers": headers, "body": body})

    def end(self) -> None:
        """Writes the file."""
        found = {"answers": self.answers, "saved": self.saved}
        Path(self.target).write_text(json.dumps(found, indent=1), "utf-8")


async def settle(value: Any) -> Any:
    """A value of a client, or the one that an asynchronous client promises."""
    return await value if inspect.isawaitable(value) else value


async def all_of(stream: Any) -> list[Any]:
    """The pieces of a stream of a client, or of an asynchronous one."""
    if hasattr(stream, "__aiter__"):
        return [piece async for piece in stream]
    return list(stream)


class entered:
    """The manager of a stream, of a client or of an asynchronous one."""

    def __init__(self, manager: Any) -> None:
        """Takes either."""
        self.manager = manager

    async def __aenter__(self) -> Any:
        """Begins the stream."""
        if hasattr(self.manager, "__aenter__"):
            return await self.manager.__aenter__()
        return self.manager.__enter__()

    async def __aexit__(self, *error: Any) -> None:
        """Ends the stream."""
        if hasattr(self.manager, "__aexit__"):
            await self.manager.__aexit__(*error)
        else:
            self.manager.__exit__(*error)
