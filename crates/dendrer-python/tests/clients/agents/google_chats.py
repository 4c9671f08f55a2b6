"""An agent that lets the library of Google keep its conversation: it repeats each piece of a stream as a content of its own."""

from __future__ import annotations

from typing import Any

from common import SCHEMA, Saw, count  # type: ignore[import-not-found, unused-ignore]
from google import genai
from google.genai import types

saw = Saw()
declared = types.FunctionDeclaration(name="count", parameters_json_schema=SCHEMA)
config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
client = genai.Client()
chat: Any = client.chats.create(model="stub", config=config)
for number, words in enumerate(saw.turns):
    new: Any = words
    while new:
        pieces = list(chat.send_message_stream(new)) if number % 2 else [chat.send_message(new)]
        parts = [part for piece in pieces for part in piece.candidates[0].content.parts or []]
        saw.saved.append([part.text for part in parts])
        calls = [part.function_call for part in parts if part.function_call]
        new = [
            types.Part.from_function_response(name=call.name, response={"result": count(**call.args)})
            for call in calls
        ]
saw.end()
