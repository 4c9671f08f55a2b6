// Values of a document as they are drawn: marks for what is cut, redacted, kept elsewhere or lost, and trees for the rest.

import { Digits, isNumber } from "./json.ts";

export type Mark = { word: string; text: string; kind: "cut" | "redacted" | "vault" | "gap" | "bytes" | "float" | "wtf8" };
export type Kind = "mark" | "null" | "boolean" | "number" | "text" | "list" | "object";
export type Entry = { name: string; value: unknown; isOdd: boolean };

type Record_ = Record<string, unknown>;

export function isRecord(value: unknown): value is Record_ {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Digits);
}

/** Returns the mark of a value that has one of the forms in values (`docs/format.md`), else null. */
export function mark(value: unknown): Mark | null {
  if (!isRecord(value)) return null;
  const keys = Object.keys(value);
  const key = keys[0];
  if (keys.length !== 1 || key === undefined) return null;
  const inner = value[key];
  const of = isRecord(inner) ? inner : {};
  const count = (name: string): string => (isNumber(of[name]) ? of[name].toLocaleString("en") : "");
  switch (key) {
    case "$cut":
      return { kind: "cut", word: "cut", text: `${String(of.kind ?? "value")}${isNumber(of.bytes) ? ` of ${count("bytes")} bytes` : ""}${isNumber(of.items) ? `, ${count("items")} item${Number(of.items) === 1 ? "" : "s"}` : ""}` };
    case "$redacted":
      return { kind: "redacted", word: "redacted", text: [of.kind, of.len, of.tag].filter((part) => part !== undefined).join(" ") };
    case "$vault":
      return { kind: "vault", word: "in the vault", text: isNumber(of.bytes) ? `${count("bytes")} bytes` : "" };
    case "$gap":
      return { kind: "gap", word: "gap", text: String(of.reason ?? "") };
    case "$bytes":
      return { kind: "bytes", word: "bytes", text: typeof inner === "string" ? `${Math.floor((inner.length * 3) / 4)}: ${inner.slice(0, 64)}` : "" };
    case "$float":
      return { kind: "float", word: String(inner), text: "" };
    case "$wtf8":
      return { kind: "wtf8", word: "text with half a character", text: String(inner).slice(0, 64) };
    default:
      return null;
  }
}

/** Returns the part of a `$cut` value that was sent. */
export function head(value: unknown): unknown {
  return isRecord(value) && isRecord(value.$cut) ? value.$cut.head : undefined;
}

/** Returns the kind of a value. JSON that a text of the trace holds is `ofText`: it has no marks, whatever it looks like. */
export function kindOf(value: unknown, ofText = false): Kind {
  if (!ofText && mark(value)) return "mark";
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "list";
  if (value instanceof Digits) return "number";
  switch (typeof value) {
    case "boolean": return "boolean";
    case "number": return "number";
    case "string": return "text";
    default: return "object";
  }
}

/** Returns the members of a list or an object. Names that begin with `$$` are the record's spelling of one `$`. */
export function entries(value: unknown, ofText = false): Entry[] {
  if (Array.isArray(value)) return value.map((item, at) => ({ name: String(at), value: item, isOdd: false }));
  if (!isRecord(value)) return [];
  if (ofText) return Object.entries(value).map(([name, inner]) => ({ name, value: inner, isOdd: false }));
  const pairs = value.$object;
  if (Object.keys(value).length === 1 && Array.isArray(pairs)) {
    return pairs.map((pair) => {
      const [name, inner] = Array.isArray(pair) ? pair : [pair, null];
      const isOdd = typeof name !== "string";
      return { name: isOdd ? `wtf8:${isRecord(name) ? String(name.$wtf8) : ""}` : name, value: inner, isOdd };
    });
  }
  return Object.entries(value).map(([name, inner]) => ({ name: name.startsWith("$$") ? name.slice(1) : name, value: inner, isOdd: false }));
}

/** Writes a value in one line of at most `limit` characters. */
export function oneLine(value: unknown, limit = 80, depth = 0, ofText = false): string {
  const found = ofText ? null : mark(value);
  if (found) return `<${found.word}${found.text ? ` ${found.text}` : ""}>`;
  const clip = (text: string): string => (text.length > limit ? `${text.slice(0, limit - 2)}..` : text);
  switch (kindOf(value, ofText)) {
    case "null": return "null";
    case "text": return clip(JSON.stringify((value as string).slice(0, limit + 1)));
    case "list":
    case "object": {
      const isList = Array.isArray(value);
      if (depth > 3) return isList ? "[..]" : "{..}";
      let text = "";
      for (const entry of entries(value, ofText)) {
        if (text.length > limit) break;
        text += `${text ? "," : ""}${isList ? "" : `${JSON.stringify(entry.name)}:`}${oneLine(entry.value, limit, depth + 1, ofText)}`;
      }
      return clip(isList ? `[${text}]` : `{${text}}`);
    }
    default: return String(value);
  }
}
