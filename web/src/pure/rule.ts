// Lines of a pack that keep what a tool answered as state: to copy, never written by this page. docs/packs.md has the form.

import { isNumber, ofText } from "./json.ts";
import { entries, isRecord, kindOf } from "./values.ts";

export type Result = { run: string; tick: number; tool: string; output: unknown };
const PLACES = 20;

/** Writes a text as YAML in double quotes, in ASCII alone: nothing in it reorders or hides what a reader copies. */
export function yaml(text: string): string {
  let written = "";
  for (const sign of text) {
    const code = sign.codePointAt(0) ?? 0;
    if (sign === "\\" || sign === '"') written += `\\${sign}`;
    else if (code >= 0x20 && code < 0x7f) written += sign;
    else written += code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  }
  return `"${written}"`;
}

/** Writes a text of an expression. */
function literal(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", "\\n").replaceAll("\r", "\\r")}'`;
}

/** Makes a name of a field out of any text: letters, digits and `_`. */
export function field(text: string): string {
  const word = text.replaceAll(/[^A-Za-z0-9_]+/g, "_").replace(/^_+|_+$/g, "").slice(0, 60);
  return /^[A-Za-z_]/.test(word) ? word : `f_${word}`;
}

/** Returns the value of an output, and whether it is the text of one in JSON. */
export function valueOf(output: unknown): { value: unknown; isText: boolean } {
  const value = typeof output === "string" ? ofText(output) : null;
  return value === null ? { value: output, isText: false } : { value, isText: true };
}

/** The places that the rule keeps: one for each member of the answer, else one for all of it. */
export function placesOf(result: Result): { name: string; from: string }[] {
  const { value, isText } = valueOf(result.output);
  const source = isText ? "parse_json(t.result.output)" : "t.result.output";
  if (!isRecord(value) || kindOf(value) === "mark") return [{ name: "answer", from: source }];
  const used = new Set<string>();
  const found = entries(value).filter((entry) => !entry.isOdd && kindOf(entry.value) !== "mark").slice(0, PLACES).flatMap((entry) => {
    const name = field(entry.name);
    if (used.has(name)) return [];
    used.add(name);
    return [{ name, from: /^[A-Za-z_][A-Za-z0-9_]*$/.test(entry.name) ? `${source}.${entry.name}` : `${source}[${literal(entry.name)}]` }];
  });
  return found.length > 0 ? found : [{ name: "answer", from: source }];
}

/** Writes the lines of the pack. */
export function packOf(result: Result): string {
  const root = field(result.tool);
  const lines = [
    `name: rule.${field(result.run)}`.slice(0, 120), "version: v1", "",
    "state:", `  ${root}:`, `    words: ${yaml(`what ${result.tool} answered last, as at tick ${result.tick} of ${result.run}`)}`, "    init: {}", "",
    "tools:", `  ${yaml(result.tool)}:`, "    # read looks only, idempotent_write repeats without harm, effectful acts", "    effect: effectful", "",
    "rules:", `  - words: ${yaml(`keep what ${result.tool} answers`)}`, "    when_type: action.result", `    when: ${yaml(`t.action.tool == ${literal(result.tool)} and t.result.status == 'ok'`)}`, "    steps:",
  ];
  for (const { name, from } of placesOf(result)) lines.push(`      - set: ${root}.${name}`, `        value: ${yaml(from)}`);
  return `${lines.join("\n")}\n`;
}

/** Writes commands that use the pack: check it, reduce the run under it, ask about a place. */
export function commandsOf(result: Result): string[][] {
  const { value } = valueOf(result.output);
  const places = placesOf(result);
  const number = isRecord(value) ? entries(value).find((entry) => isNumber(entry.value) && places.some((one) => one.name === field(entry.name))) : undefined;
  const place = `state.${field(result.tool)}.${number ? field(number.name) : (places[0]?.name ?? "answer")}`;
  const made = `${field(result.run.split("/").at(-1) ?? "run")}.rule`;
  return [
    ["dendrer", "pack", "check", "rule.yaml"],
    ["dendrer", "reduce", result.run, "--pack", "rule.yaml", "--as", made],
    ["dendrer", "bisect", made, "--holds", `!has(${place}) || ${place} ${number ? `<= ${String(number.value)}` : "!= null"}`],
  ];
}
