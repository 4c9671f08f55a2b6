// An agent of 30 turns with the library of OpenAI: chat completions, every second one as a stream.

import OpenAI from "openai";

import { count, SCHEMA, Saw } from "./common.mjs";

const saw = new Saw();
const client = new OpenAI();
const tools = [{ type: "function", function: { name: "count", strict: true, parameters: SCHEMA } }];
const messages = [{ role: "system", content: "You count." }];
saw.saved.push(messages[0]);

async function ask(asStream) {
  const terms = { model: "stub", messages, tools };
  if (!asStream) {
    const { data, response } = await client.chat.completions.create(terms).withResponse();
    saw.answer(response.status, response.headers, data);
    return data;
  }
  const stream = client.chat.completions.stream({ ...terms, stream_options: { include_usage: true } });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  saw.answer(200, null, chunks);
  return await stream.finalChatCompletion();
}

for (const [number, words] of saw.turns.entries()) {
  messages.push({ role: "user", content: words });
  saw.saved.push(messages.at(-1));
  for (;;) {
    let answer;
    try {
      answer = await ask(number % 2 === 1);
    } catch (error) {
      if (!(error instanceof OpenAI.APIError) || !error.status) throw error;
      saw.answer(error.status, error.headers, error.error);
      break;
    }
    const { parsed, ...said } = answer.choices[0].message;
    messages.push(said);
    const calls = said.tool_calls ?? [];
    // The library adds what it parsed, and repeats it in its requests.
    const plain = calls.map(({ index, ...call }) => {
      const { parsed_arguments, ...made } = call.function;
      return { ...call, function: made };
    });
    saw.saved.push({ ...said, ...(calls.length > 0 && { tool_calls: plain }), usage: answer.usage });
    for (const call of calls) {
      const content = count(JSON.parse(call.function.arguments));
      messages.push({ role: "tool", tool_call_id: call.id, content });
      saw.saved.push(messages.at(-1));
    }
    if (calls.length === 0) break;
  }
}
saw.end();
