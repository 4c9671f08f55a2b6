"""Five conversations at once with the library of OpenAI, each of its own agent; `how` is not read."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
from common import SCHEMA, Saw, count  # type: ignore[import-not-found, unused-ignore]

TOOLS: Any = [{"type": "function", "function": {"name": "count", "parameters": SCHEMA}}]


async def converse(client: Any, name: int, turns: list[str]) -> list[Any]:
    """Takes the turns of a script in one conversation."""
    messages: list[Any] = [{"role": "system", "content": f"You are agent {name}."}]
    for words in turns:
        messages.append({"role": "user", "content": f"to {name}, {words}"})
        while True:
            answer = await client.chat.completions.create(model="stub", messages=messages, tools=TOOLS)
            messages.append(answer.choices[0].message.model_dump(exclude_none=True))
            calls = answer.choices[0].message.tool_calls or []
            for call in calls:
                content = count(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
            if not calls:
                break
    return messages


async def main() -> None:
    """Begins all of them at once. One that fails ends alone."""
    saw = Saw()
    client = openai.AsyncOpenAI()
    talks = [converse(client, name, saw.turns) for name in range(5)]
    ended = await asyncio.gather(*talks, return_exceptions=True)
    saw.saved = [str(one) if isinstance(one, openai.APIStatusError) else one for one in ended]
    saw.end()


asyncio.run(main())
