"""An agent of 30 turns with the library of Anthropic, every second one as a stream."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
from common import SCHEMA, Saw, all_of, count, entered, settle  # type: ignore[import-not-found, unused-ignore]

TOOLS = [{"name": "count", "input_schema": SCHEMA}]


async def ask(client: Any, saw: Saw, messages: list[Any], as_stream: bool) -> Any:
    """Asks the model once."""
    terms: dict[str, Any] = {
        "model": "stub",
        "max_tokens": 1000,
        "system": "You count.",
        "messages": messages,
        "tools": TOOLS,
    }
    if as_stream:
        async with entered(client.messages.stream(**terms)) as stream:
            events = [event.model_dump(mode="json") for event in await all_of(stream)]
            saw.answer(stream.response, events)
            return await settle(stream.get_final_message())
    raw = await settle(client.messages.with_raw_response.create(**terms))
    saw.answer(raw.http_response, raw.http_response.text)
    return await settle(raw.parse())


async def main() -> None:
    """Takes the turns of the script."""
    saw = Saw()
    client: Any = anthropic.AsyncAnthropic() if saw.how == "async" else anthropic.Anthropic()
    messages: list[Any] = []
    for number, words in enumerate(saw.turns):
        messages.append({"role": "user", "content": words})
        saw.saved.append(messages[-1])
        while True:
            try:
                answer = await ask(client, saw, messages, number % 2 == 1)
            except anthropic.APIStatusError as error:
                saw.answer(error.response, error.body)
                break
            whole = answer.model_dump(exclude_none=True)
            messages.append({"role": "assistant", "content": whole["content"]})
            saw.saved.append(whole)
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": count(**block.input)}
                for block in answer.content
                if block.type == "tool_use"
            ]
            if not results:
                break
            messages.append({"role": "user", "content": results})
            saw.saved.append(messages[-1])
    saw.end()


asyncio.run(main())
