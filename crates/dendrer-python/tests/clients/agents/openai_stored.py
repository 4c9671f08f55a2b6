"""An agent whose requests name the response before, with the library of OpenAI; every second one is a stream."""

from __future__ import annotations

import json
from typing import Any

import openai
from common import SCHEMA, Saw, count  # type: ignore[import-not-found, unused-ignore]

TOOLS: Any = [{"type": "function", "name": "count", "strict": True, "parameters": SCHEMA}]

saw = Saw()
client: Any = openai.OpenAI()
before: Any = openai.omit if hasattr(openai, "omit") else None
for number, words in enumerate(saw.turns):
    new: Any = words
    while new:
        terms = {"model": "stub", "input": new, "tools": TOOLS, "previous_response_id": before}
        if number % 2:
            with client.responses.stream(**terms) as stream:
                answer = stream.get_final_response()
        else:
            answer = client.responses.create(**terms)
        before = answer.id
        saw.saved.append([answer.id, answer.output_text])
        calls = [item for item in answer.output if item.type == "function_call"]
        new = [
            {"type": "function_call_output", "call_id": call.call_id, "output": count(**json.loads(call.arguments))}
            for call in calls
        ]
saw.end()
