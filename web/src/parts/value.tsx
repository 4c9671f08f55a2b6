// Values: one line, or a tree that opens. Marks are frames with a word, never a blank and never text of the trace.

import { useSignal } from "@preact/signals";
import { entries, head, kindOf, mark, oneLine } from "../pure/values.ts";
import { T } from "./text.tsx";

const STEP = 100;

export function MarkOf({ value }: { value: unknown }) {
  const found = mark(value);
  if (!found) return null;
  return <span class={`mark mark-${found.kind}`} title={`${found.word}: this is not text of the trace`}><b>{found.word}</b>{found.text && <> <T of={found.text} limit={120} /></>}</span>;
}

/** A place without a value: each kind has its word and its frame. */
export function Missing({ kind, code }: { kind: "absent" | "closed" | "unknown" | "conflict"; code?: string }) {
  const words = { absent: "absent", closed: "erased or withheld", unknown: "unknown", conflict: "conflict" };
  return <span class={`mark mark-${kind}`}><b>{words[kind]}</b>{code && <> {code}</>}</span>;
}

/** Draws a value in one line. */
export function Line({ value, limit = 80 }: { value: unknown; limit?: number }) {
  if (mark(value)) return <MarkOf value={value} />;
  return <code class={`v v-${kindOf(value)}`}><T of={oneLine(value, limit)} limit={limit + 40} /></code>;
}

/** Counts the members of a list or an object. */
export function counted(kind: string, count: number): string {
  return `${count.toLocaleString("en")} ${kind === "list" ? "item" : "member"}${count === 1 ? "" : "s"}`;
}

/** Draws a value as a tree: 100 members at a time, the first level open. */
export function Tree({ value, depth = 0, name }: { value: unknown; depth?: number; name?: string }) {
  const isOpen = useSignal(depth < 1);
  const shown = useSignal(STEP);
  const kind = kindOf(value);
  const label = name === undefined ? null : <><span class="key"><T of={name} limit={200} /></span>{": "}</>;
  if (kind === "mark") {
    const part = head(value);
    return <div class="leaf">{label}<MarkOf value={value} />{part !== undefined && <div class="inner"><Tree value={part} depth={depth + 1} /></div>}</div>;
  }
  if (kind !== "list" && kind !== "object") {
    if (kind === "text" && (value as string).length > 100) return <div class="leaf">{label}<span class="long v-text"><T of={value as string} /></span></div>;
    return <div class="leaf">{label}<Line value={value} limit={400} /></div>;
  }
  const all = entries(value);
  if (all.length === 0) return <div class="leaf">{label}<code class="v">{kind === "list" ? "[]" : "{}"}</code></div>;
  return (
    <div class="branch">
      <button type="button" class="twist" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        <span aria-hidden="true">{isOpen.value ? "▾" : "▸"}</span> {label}
        <span class="dim">{counted(kind, all.length)}</span>
        {!isOpen.value && <> <Line value={value} limit={60} /></>}
      </button>
      {isOpen.value && (
        <div class="inner">
          {all.slice(0, shown.value).map((entry) => <Tree key={entry.name} name={entry.name} value={entry.value} depth={depth + 1} />)}
          {all.length > shown.value && <button type="button" class="more" onClick={() => (shown.value += STEP)}>{all.length - shown.value} more</button>}
        </div>
      )}
    </div>
  );
}
