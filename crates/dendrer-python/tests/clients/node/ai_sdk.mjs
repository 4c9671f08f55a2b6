// An agent of 30 turns with the AI SDK and its provider for OpenAI, every second turn as a stream.

import { openai } from "@ai-sdk/openai";
import { APICallError, generateText, jsonSchema, RetryError, stepCountIs, streamText, tool } from "ai";

import { count, SCHEMA, Saw } from "./common.mjs";

const saw = new Saw();
const tools = { count: tool({ inputSchema: jsonSchema(SCHEMA), execute: async (input) => count(input) }) };
const messages = [];

async function ask(asStream) {
  const providerOptions = { openai: { store: false, include: ["reasoning.encrypted_content"] } };
  const terms = { model: openai("stub"), system: "You count.", messages, tools, stopWhen: stepCountIs(5), providerOptions };
  if (!asStream) {
    const { response, text, totalUsage, steps } = await generateText(terms);
    saw.answers.push([text, totalUsage, steps.map((step) => step.response.body)]);
    return response.messages;
  }
  let failed;
  const result = streamText({ ...terms, onError: ({ error }) => (failed = error) });
  const parts = [];
  for await (const part of result.fullStream) parts.push(part.type === "text-delta" ? part.text : part.type);
  if (failed) throw failed;
  saw.answers.push([parts, await result.totalUsage]);
  return (await result.response).messages;
}

for (const [number, words] of saw.turns.entries()) {
  messages.push({ role: "user", content: words });
  saw.saved.push(messages.at(-1));
  try {
    const said = await ask(number % 2 === 1);
    messages.push(...said);
    saw.saved.push(...said);
  } catch (error) {
    const last = RetryError.isInstance(error) ? error.lastError : error;
    if (!APICallError.isInstance(last)) throw error;
    saw.answers.push([last.statusCode, last.responseBody]);
  }
}
saw.end();
