// An agent of 30 turns with the library of Anthropic, every second one as a stream.

import Anthropic from "@anthropic-ai/sdk";

import { count, SCHEMA, Saw } from "./common.mjs";

const saw = new Saw();
const client = new Anthropic();
const tools = [{ name: "count", input_schema: SCHEMA }];
const messages = [];

async function ask(asStream) {
  const terms = { model: "stub", max_tokens: 1000, system: "You count.", messages, tools };
  if (!asStream) {
    const { data, response } = await client.messages.create(terms).withResponse();
    saw.answer(response.status, response.headers, data);
    return data;
  }
  const stream = client.messages.stream(terms);
  const events = [];
  for await (const event of stream) events.push(event);
  saw.answer(200, null, events);
  return await stream.finalMessage();
}

for (const [number, words] of saw.turns.entries()) {
  messages.push({ role: "user", content: words });
  saw.saved.push(messages.at(-1));
  for (;;) {
    let answer;
    try {
      answer = await ask(number % 2 === 1);
    } catch (error) {
      if (!(error instanceof Anthropic.APIError) || !error.status) throw error;
      saw.answer(error.status, error.headers, error.error);
      break;
    }
    messages.push({ role: "assistant", content: answer.content });
    saw.saved.push(answer);
    const calls = answer.content.filter((block) => block.type === "tool_use");
    if (calls.length === 0) break;
    const results = calls.map(({ id, input }) => ({ type: "tool_result", tool_use_id: id, content: count(input) }));
    messages.push({ role: "user", content: results });
    saw.saved.push(messages.at(-1));
  }
}
saw.end();
