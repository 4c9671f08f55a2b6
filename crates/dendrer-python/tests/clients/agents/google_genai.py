"""An agent of 30 turns with the library of Google, every second one as a stream."""

from __future__ import annotations

import asyncio
from typing import Any

from common import SCHEMA, Saw, all_of, count, settle  # type: ignore[import-not-found, unused-ignore]
from google import genai
from google.genai import errors, types

CONFIG = types.GenerateContentConfig(
    system_instruction="You count.",
    tools=[
        types.Tool(
            function_declarations=[
                types.FunctionDeclaration(name="count", parameters_json_schema=SCHEMA)
            ]
        )
    ],
)
RETRIES = types.HttpRetryOptions(attempts=3, initial_delay=0.01, http_status_codes=[429, 500])


def plain(value: Any) -> Any:
    """A value of the library as JSON."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"sdk_http_response"})


async def ask(models: Any, saw: Saw, contents: list[Any], as_stream: bool) -> tuple[Any, Any]:
    """Asks the model once: its content and the usage."""
    terms: dict[str, Any] = {"model": "stub", "contents": contents, "config": CONFIG}
    if not as_stream:
        answer = await settle(models.generate_content(**terms))
        saw.answers.append(plain(answer))
        return answer.candidates[0].content, answer.usage_metadata
    pieces = await all_of(await settle(models.generate_content_stream(**terms)))
    saw.answers.append([plain(piece) for piece in pieces])
    parts: list[Any] = []
    for part in (part for piece in pieces for part in piece.candidates[0].content.parts or []):
        last = parts[-1] if parts else None
        if last and last.text is not None and part.text is not None and last.thought == part.thought:
            last.text += part.text
        else:
            parts.append(part.model_copy())
    return types.Content(role="model", parts=parts), pieces[-1].usage_metadata


async def main() -> None:
    """Takes the turns of the script."""
    saw = Saw()
    client = genai.Client(http_options=types.HttpOptions(retry_options=RETRIES))
    models: Any = client.aio.models if saw.how == "async" else client.models
    contents: list[Any] = []
    for number, words in enumerate(saw.turns):
        contents.append(types.Content(role="user", parts=[types.Part(text=words)]))
        saw.saved.append(plain(contents[-1]))
        while True:
            try:
                said, usage = await ask(models, saw, contents, number % 2 == 1)
            except errors.APIError as error:
                saw.answers.append([error.code, error.details])
                break
            contents.append(said)
            saw.saved.append(plain(said) | {"usageMetadata": plain(usage)})
            calls = [part.function_call for part in said.parts or [] if part.function_call]
            results = [
                types.Part.from_function_response(name=call.name, response={"result": count(**call.args)})
                for call in calls
            ]
            if not results:
                break
            contents.append(types.Content(role="user", parts=results))
            saw.saved.append(plain(contents[-1]))
    saw.end()


asyncio.run(main())
