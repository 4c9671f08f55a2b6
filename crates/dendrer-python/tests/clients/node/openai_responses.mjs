// An agent of 30 turns with the library of OpenAI: Responses, every second one as a stream.

import OpenAI from "openai";

import { count, SCHEMA, Saw } from "./common.mjs";

const saw = new Saw();
const client = new OpenAI();
const tools = [{ type: "function", name: "count", strict: true, parameters: SCHEMA }];
const items = [];

async function ask(asStream) {
  const terms = {
    model: "stub",
    input: items,
    instructions: "You count.",
    tools,
    store: false,
    include: ["reasoning.encrypted_content"],
  };
  if (!asStream) {
    const { data, response } = await client.responses.create(terms).withResponse();
    saw.answer(response.status, response.headers, data);
    return data;
  }
  const stream = client.responses.stream(terms);
  const events = [];
  for await (const event of stream) events.push(event);
  saw.answer(200, null, events);
  return await stream.finalResponse();
}

for (const [number, words] of saw.turns.entries()) {
  items.push({ role: "user", content: words });
  saw.saved.push(items.at(-1));
  for (;;) {
    let answer;
    try {
      answer = await ask(number % 2 === 1);
    } catch (error) {
      if (!(error instanceof OpenAI.APIError) || !error.status) throw error;
      saw.answer(error.status, error.headers, error.error);
      break;
    }
    // The library adds what it parsed.
    const output = answer.output.map(({ parsed_arguments, ...item }) => ({
      ...item,
      ...(item.content && { content: item.content.map(({ parsed, ...part }) => part) }),
    }));
    items.push(...output);
    const { output_parsed, output_text, ...whole } = answer;
    saw.saved.push({ ...whole, output });
    const calls = output.filter((item) => item.type === "function_call");
    for (const call of calls) {
      items.push({ type: "function_call_output", call_id: call.call_id, output: count(JSON.parse(call.arguments)) });
      saw.saved.push(items.at(-1));
    }
    if (calls.length === 0) break;
  }
}
saw.end();
