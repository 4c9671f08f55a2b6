// An agent of 30 turns with the library of Google, every second one as a stream.

import { ApiError, GoogleGenAI } from "@google/genai";

import { count, SCHEMA, Saw } from "./common.mjs";

const saw = new Saw();
const client = new GoogleGenAI({
  apiKey: process.env.GEMINI_API_KEY,
  httpOptions: { retryOptions: { attempts: 3 } },
});
const config = {
  systemInstruction: "You count.",
  tools: [{ functionDeclarations: [{ name: "count", parametersJsonSchema: SCHEMA }] }],
};
const contents = [];

async function ask(asStream) {
  const terms = { model: "stub", contents, config };
  if (!asStream) {
    const { sdkHttpResponse, ...answer } = await client.models.generateContent(terms);
    saw.answers.push(answer);
    return [answer.candidates[0].content, answer.usageMetadata];
  }
  const pieces = [];
  for await (const { sdkHttpResponse, ...piece } of await client.models.generateContentStream(terms)) pieces.push(piece);
  saw.answers.push(pieces);
  const parts = [];
  for (const part of pieces.flatMap((piece) => piece.candidates[0].content.parts ?? [])) {
    const last = parts.at(-1);
    if (last?.text !== undefined && part.text !== undefined && last.thought === part.thought) last.text += part.text;
    else parts.push({ ...part });
  }
  return [{ role: "model", parts }, pieces.at(-1).usageMetadata];
}

for (const [number, words] of saw.turns.entries()) {
  contents.push({ role: "user", parts: [{ text: words }] });
  saw.saved.push(contents.at(-1));
  for (;;) {
    let said, usageMetadata;
    try {
      [said, usageMetadata] = await ask(number % 2 === 1);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      saw.answers.push([error.status, error.message]);
      break;
    }
    contents.push(said);
    saw.saved.push({ ...said, usageMetadata });
    const calls = said.parts.filter((part) => part.functionCall).map((part) => part.functionCall);
    if (calls.length === 0) break;
    const parts = calls.map(({ name, args }) => ({ functionResponse: { name, response: { result: count(args) } } }));
    contents.push({ role: "user", parts });
    saw.saved.push(contents.at(-1));
  }
}
saw.end();
