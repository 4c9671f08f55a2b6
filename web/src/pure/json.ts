// JSON without loss: a number that a double would print in another way keeps the digits of the document.

/** A number with its digits as they were written. It compares and rounds as the nearest double. */
export class Digits extends Number {
  readonly text: string;
  constructor(text: string) {
    super(text);
    this.text = text;
  }
  override toString(): string {
    return this.text;
  }
}

/** A text in which a number may be longer than a double, or written in another way. Words of a text may fit too. */
const RISKY = /(?:^|[:[,\s])-?(?:\d[\d.]{14,}|\d+(?:\.\d+)?[eE]|\d+\.\d*0(?!\d))|(?:^|[:[,\s])-0/;

/** Reads JSON; throws `SyntaxError` for any other text. */
export function parse(text: string): unknown {
  const plain: unknown = JSON.parse(text);
  return RISKY.test(text) ? kept(text) : plain;
}

/** Reads a text that holds a JSON object or a list; null if it holds none. */
export function ofText(text: string): object | null {
  if (text.length > TEXT_MAX || !/^\s*[[{]/.test(text)) return null;
  try {
    return parse(text) as object;
  } catch {
    return null;
  }
}

/** A longer text is shown as a text. */
const TEXT_MAX = 1 << 20;

const TOKEN = /[{}[\],:]|-?\d[\d.eE+-]*|true|false|null/y;
const BLANK = /\s*/y;

/** Returns the token at a place of valid JSON; empty at the end. A text is walked by hand: it may be as long as a document. */
function tokenAt(text: string, at: number): string {
  if (text[at] === '"') {
    for (let end = text.indexOf('"', at + 1); end > 0; end = text.indexOf('"', end + 1)) {
      let slashes = 0;
      while (text[end - 1 - slashes] === "\\") slashes += 1;
      if (slashes % 2 === 0) return text.slice(at, end + 1);
    }
  }
  TOKEN.lastIndex = at;
  return TOKEN.exec(text)?.[0] ?? "";
}

/** Walks JSON that is known to be valid. Without recursion: a text of a trace may be deep. */
function kept(text: string): unknown {
  const open: { value: unknown[] | Record<string, unknown>; name: string | null }[] = [];
  let result: unknown;
  const put = (value: unknown): void => {
    const top = open.at(-1);
    if (!top) result = value;
    else if (Array.isArray(top.value)) top.value.push(value);
    else {
      // A member `__proto__` is a member as every other.
      Object.defineProperty(top.value, top.name ?? "", { value, enumerable: true, configurable: true, writable: true });
      top.name = null;
    }
  };
  for (let at = 0; ; ) {
    BLANK.lastIndex = at;
    BLANK.exec(text);
    const token = tokenAt(text, BLANK.lastIndex);
    if (token === "") return result;
    at = BLANK.lastIndex + token.length;
    const top = open.at(-1);
    switch (token[0]) {
      case "{": case "[": {
        const value: unknown[] | Record<string, unknown> = token === "{" ? {} : [];
        put(value);
        open.push({ value, name: null });
        break;
      }
      case "}": case "]": open.pop(); break;
      case ",": case ":": break;
      case '"': {
        const word = token.includes("\\") ? (JSON.parse(token) as string) : token.slice(1, -1);
        if (top && !Array.isArray(top.value) && top.name === null) top.name = word;
        else put(word);
        break;
      }
      case "t": put(true); break;
      case "f": put(false); break;
      case "n": put(null); break;
      default: put(number(token));
    }
  }
}

function number(token: string): number | Digits {
  const value = Number(token);
  return String(value) === token ? value : new Digits(token);
}

/** Whether a value is a number, with digits of its own or without. */
export function isNumber(value: unknown): value is number | Digits {
  return typeof value === "number" || value instanceof Digits;
}

/** Writes a value as JSON, with the digits of its numbers; `indent` blanks a level. */
export function write(value: unknown, indent = 0, depth = 0): string {
  if (value instanceof Digits) return value.text;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const isList = Array.isArray(value);
  const parts = isList ? value.map((one) => write(one, indent, depth + 1)) : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}:${indent > 0 ? " " : ""}${write(one, indent, depth + 1)}`);
  const [begin, end] = isList ? ["[", "]"] : ["{", "}"];
  if (indent === 0 || parts.length === 0) return `${begin}${parts.join(",")}${end}`;
  const blank = (level: number): string => `\n${" ".repeat(indent * level)}`;
  return `${begin}${blank(depth + 1)}${parts.join(`,${blank(depth + 1)}`)}${blank(depth)}${end}`;
}
