// Values: one line, or a tree that opens. Marks are frames with a word, never a blank and never text of the trace.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { ofText } from "../pure/json.ts";
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
export function Line({ value, limit = 80, ofText = false }: { value: unknown; limit?: number; ofText?: boolean }) {
  if (!ofText && mark(value)) return <MarkOf value={value} />;
  return <code class={`v v-${kindOf(value, ofText)}`}><T of={oneLine(value, limit, 0, ofText)} limit={limit + 40} /></code>;
}

/** Draws a value in one line if all of it fits, else as a tree that opens. */
export function Fold({ value, limit }: { value: unknown; limit: number }) {
  if (typeof value === "string" && ofText(value) !== null) return <Text of={value} limit={limit} />;
  const line = oneLine(value, limit);
  const isWhole = mark(value) !== null || (line.length < limit - 2 && !/\[\.\.\]|\{\.\.\}/.test(line));
  return isWhole ? <Line value={value} limit={limit} /> : <div class="fold"><Tree value={value} depth={1} preview={limit} /></div>;
}

/** Counts the members of a list or an object. */
export function counted(kind: string, count: number): string {
  return `${count.toLocaleString("en")} ${kind === "list" ? "item" : "member"}${count === 1 ? "" : "s"}`;
}

/** A longer JSON of a text is drawn with its first level open. */
const UNFOLDED = 4000;

/** Draws a text. One that holds a JSON object or a list is drawn as that JSON, with a mark, and its text is one click away. */
export function Text({ of, limit = 2000 }: { of: string; limit?: number }) {
  const isRaw = useSignal(false);
  const held = useMemo(() => ofText(of), [of]);
  if (held === null) return <div class="source"><T of={of} limit={limit} /></div>;
  return (
    <div class="held">
      <span class="chip held-mark" title="the text is JSON; it is drawn as its values">JSON in a text</span>{" "}
      <button type="button" class="small" aria-pressed={isRaw.value} onClick={() => (isRaw.value = !isRaw.value)}>raw text</button>
      {isRaw.value ? <div class="source"><T of={of} limit={limit} /></div> : <Tree value={held} depth={of.length > UNFOLDED ? 0 : -2} ofText />}
    </div>
  );
}

type TreeProps = { value: unknown; depth?: number; name?: string; ofText?: boolean; preview?: number };

/** Draws a value as a tree: 100 members at a time, the first level open. */
export function Tree({ value, depth = 0, name, ofText: isOfText = false, preview = 60 }: TreeProps) {
  const isOpen = useSignal(depth < 1);
  const shown = useSignal(STEP);
  const kind = kindOf(value, isOfText);
  const label = name === undefined ? null : <><span class="key"><T of={name} limit={200} /></span>{": "}</>;
  if (kind === "mark") {
    const part = head(value);
    return <div class="leaf">{label}<MarkOf value={value} />{part !== undefined && <div class="inner"><Tree value={part} depth={depth + 1} /></div>}</div>;
  }
  if (kind !== "list" && kind !== "object") {
    if (kind === "text" && ofText(value as string) !== null) return <div class="leaf">{label}<Text of={value as string} /></div>;
    if (kind === "text" && (value as string).length > 100) return <div class="leaf">{label}<span class="long v-text"><T of={value as string} /></span></div>;
    return <div class="leaf">{label}<Line value={value} limit={400} ofText={isOfText} /></div>;
  }
  const all = entries(value, isOfText);
  if (all.length === 0) return <div class="leaf">{label}<code class="v">{kind === "list" ? "[]" : "{}"}</code></div>;
  return (
    <div class="branch">
      <button type="button" class="twist" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        <span aria-hidden="true">{isOpen.value ? "▾" : "▸"}</span> {label}
        <span class="dim">{counted(kind, all.length)}</span>
        {!isOpen.value && <> <Line value={value} limit={preview} ofText={isOfText} /></>}
      </button>
      {isOpen.value && (
        <div class="inner">
          {all.slice(0, shown.value).map((entry, at) => <Tree key={`${at} ${entry.name}`} name={entry.name} value={entry.value} depth={depth + 1} ofText={isOfText} />)}
          {all.length > shown.value && <button type="button" class="more" onClick={() => (shown.value += STEP)}>{all.length - shown.value} more</button>}
        </div>
      )}
    </div>
  );
}
