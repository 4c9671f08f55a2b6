"""An agent of 30 turns with the library of OpenAI: Responses, every second one as a stream."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
from common import SCHEMA, Saw, all_of, count, entered, settle  # type: ignore[import-not-found, unused-ignore]

TOOLS = [{"type": "function", "name": "count", "strict": True, "parameters": SCHEMA}]


async def ask(client: Any, saw: Saw, items: list[Any], as_stream: bool) -> Any:
    """Asks the model once."""
    terms: dict[str, Any] = {
        "model": "stub",
        "input": items,
        "instructions": "You count.",
        "tools": TOOLS,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if as_stream:
        async with entered(client.responses.stream(**terms)) as stream:
            events = [event.model_dump(warnings=False) for event in await all_of(stream)]
            saw.answer(stream._response, events)
            return await settle(stream.get_final_response())
    raw = await settle(client.responses.with_raw_response.create(**terms))
    saw.answer(raw.http_response, raw.http_response.text)
    return await settle(raw.parse())


async def main() -> None:
    """Takes the turns of the script."""
    saw = Saw()
    client: Any = openai.AsyncOpenAI() if saw.how == "async" else openai.OpenAI()
    items: list[Any] = []
    for number, words in enumerate(saw.turns):
        items.append({"role": "user", "content": words})
        saw.saved.append(items[-1])
        while True:
            try:
                answer = await ask(client, saw, items, number % 2 == 1)
            except openai.APIStatusError as error:
                saw.answer(error.response, error.body)
                break
            whole = answer.model_dump(exclude_none=True, warnings=False)
            for item in whole["output"]:
                item.pop("parsed_arguments", None)
                for part in item.get("content") or []:
                    part.pop("parsed", None)
                items.append(item)
            saw.saved.append(whole)
            calls = [item for item in answer.output if item.type == "function_call"]
            for call in calls:
                output = count(**json.loads(call.arguments))
                result = {"type": "function_call_output", "call_id": call.call_id, "output": output}
                items.append(result)
                saw.saved.append(result)
            if not calls:
                break
    saw.end()


asyncio.run(main())
