// What the agents share: their script, their tool, and the file of what they saw.

import { readFileSync, writeFileSync } from "node:fs";

/** The tool as JSON Schema. */
export const SCHEMA = {
  type: "object",
  properties: { what: { type: "string" } },
  required: ["what"],
  additionalProperties: false,
};

/** The tool of the agents. */
export function count({ what }) {
  return `${what.length} ${what}`;
}

/** What an agent saw: its conversation as it saves it, and each answer. */
export class Saw {
  constructor() {
    const [source, target] = process.argv.slice(2);
    this.target = target;
    this.turns = JSON.parse(readFileSync(source, "utf8"));
    this.answers = [];
    this.saved = [];
  }

  /** Remembers an answer: its status, its headers, and what came. */
  answer(status, headers, body) {
    this.answers.push({ status, headers: Object.fromEntries(headers ?? []), body });
  }

  /** Writes the file. */
  end() {
    const { answers, saved } = this;
    writeFileSync(this.target, JSON.stringify({ answers, saved }, null, 1));
  }
}
