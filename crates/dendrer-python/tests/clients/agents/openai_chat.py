"""An agent of 30 turns with the library of OpenAI: chat completions, every second one as a stream."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import openai
from common import SCHEMA, Saw, all_of, count, entered, settle  # type: ignore[import-not-found, unused-ignore]

TOOLS = [{"type": "function", "function": {"name": "count", "strict": True, "parameters": SCHEMA}}]


async def ask(client: Any, saw: Saw, messages: list[Any], as_stream: bool) -> Any:
    """Asks the model once."""
    terms: dict[str, Any] = {"model": "stub", "messages": messages, "tools": TOOLS}
    if as_stream:
        usage = {"include_usage": True}
        async with entered(client.chat.completions.stream(**terms, stream_options=usage)) as stream:
            events = await all_of(stream)
            chunks = [event.chunk.model_dump() for event in events if event.type == "chunk"]
            saw.answer(stream._response, chunks)
            return await settle(stream.get_final_completion())
    raw = await settle(client.chat.completions.with_raw_response.create(**terms))
    saw.answer(raw.http_response, raw.http_response.text)
    return await settle(raw.parse())


async def main() -> None:
    """Takes the turns of the script."""
    saw = Saw()
    client: Any = openai.AsyncOpenAI() if saw.how == "async" else openai.OpenAI()
    messages: list[Any] = [{"role": "system", "content": "You count."}]
    saw.saved = list(messages)
    for number, words in enumerate(saw.turns):
        messages.append({"role": "user", "content": words})
        saw.saved.append(messages[-1])
        while True:
            try:
                answer = await ask(client, saw, messages, number % 2 == 1)
            except openai.APIStatusError as error:
                saw.answer(error.response, error.body)
                break
            said = answer.choices[0].message.model_dump(exclude_none=True, exclude={"parsed"})
            for call in said.get("tool_calls", []):
                call["function"].pop("parsed_arguments", None)
            messages.append(said)
            said = copy.deepcopy(said)
            # The library leaves in a call which piece of a stream it came in.
            for call in said.get("tool_calls", []):
                call.pop("index", None)
            saw.saved.append(said | {"usage": answer.usage.model_dump(exclude_none=True)})
            calls = answer.choices[0].message.tool_calls or []
            for call in calls:
                asked = json.loads(call.function.arguments)
                result = {"role": "tool", "tool_call_id": call.id, "content": count(**asked)}
                messages.append(result)
                saw.saved.append(result)
            if not calls:
                break
    saw.end()


asyncio.run(main())
