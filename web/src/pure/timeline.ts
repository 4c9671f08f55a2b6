// The timeline as bins, from either document, and its layout in pixels. Counts are those of a document; nothing is judged here.

export type Counts = {
  anomalies: number; refusals: number; denied: number; failed: number; forks: number; merges: number; gaps: number; unknown: number; closed: number;
};
export type Bin = Counts & {
  from: number; to: number; n: number; lanes: number[]; types: Record<string, number>; confidence: number | null;
  /** Places written; null if the document does not say. */
  changes: number | null;
};
export type Lane = { agent: string | null; agents?: number; total: number };
export type Verdict = "ok" | "violation" | "uncertain";
export type Strip = { predicate: string; onset: number | null; certainty: string; items: Verdict[][] };
export type Spot = { tick: number; kind: string; text: string };
export type Timeline = { run: string; from: number; to: number; width: number; lanes: Lane[]; bins: Bin[]; strips: Strip[]; marks: Spot[]; leftOut: number };

/** The document `dendrer.timeline/1`. */
export type TimelineDocument = {
  schema: "dendrer.timeline/1"; run: string; from: number; to: number; width: number; bins: number; lanes: Lane[];
  items: (Counts & { from: number; to: number; n: number; lanes: number[]; types: Record<string, number>; confidence: number | null; changes: number })[];
  verdicts: { predicate: unknown; onset: number | null; certainty: string; items: Verdict[][] }[];
  marks: Spot[]; left_out: number | Record<string, number>;
};

/** A transition of the document `log` with `full`. */
export type LogItem = {
  tick: number | null; agent: string | null; type: string | null; kind: string; anomalies: number | null; confidence?: number | null; summary?: string;
  content?: { policy?: unknown; result?: unknown; delta?: unknown } | null;
};

const NONE: Counts = { anomalies: 0, refusals: 0, denied: 0, failed: 0, forks: 0, merges: 0, gaps: 0, unknown: 0, closed: 0 };
export const LANES_MAX = 24;

/** Reads the document `timeline`. */
export function ofDocument(document: TimelineDocument): Timeline {
  const left = document.left_out;
  const name = (predicate: unknown): string => {
    const found = predicate as { name?: unknown; words?: unknown } | string | null;
    if (typeof found === "string") return found;
    return found?.name === "expression" ? String(found.words) : String(found?.name ?? "");
  };
  return {
    run: document.run, from: document.from, to: document.to, width: document.width, lanes: document.lanes, bins: document.items,
    strips: document.verdicts.map((one) => ({ predicate: name(one.predicate), onset: one.onset, certainty: one.certainty, items: one.items })),
    marks: document.marks, leftOut: typeof left === "number" ? left : Object.values(left ?? {}).reduce((sum, one) => sum + one, 0),
  };
}

const member = (value: unknown, name: string): unknown => (typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined);

/** Makes bins of one tick out of a log, for a server without the document `timeline`. */
export function ofLog(run: string, items: readonly LogItem[], from: number, to: number): Timeline {
  const totals = new Map<string, number>();
  for (const item of items) if (item.tick !== null && item.tick > 0) totals.set(item.agent ?? "", (totals.get(item.agent ?? "") ?? 0) + 1);
  const sorted = [...totals].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const isFolded = sorted.length > LANES_MAX;
  const shown = isFolded ? sorted.slice(0, LANES_MAX - 1) : sorted;
  const lanes: Lane[] = shown.map(([agent, total]) => ({ agent, total }));
  if (isFolded) {
    const rest = sorted.slice(LANES_MAX - 1);
    lanes.push({ agent: null, agents: rest.length, total: rest.reduce((sum, [, total]) => sum + total, 0) });
  }
  const laneOf = new Map(shown.map(([agent], at) => [agent, at]));
  const byTick = new Map<number, LogItem>();
  for (const item of items) if (item.tick !== null && item.kind !== "refusal") byTick.set(item.tick, item);
  const bins: Bin[] = [];
  for (let tick = from; tick <= to; tick += 1) {
    const item = byTick.get(tick);
    const bin: Bin = { ...NONE, from: tick, to: tick, n: item ? 1 : 0, lanes: lanes.map(() => 0), types: {}, confidence: item?.confidence ?? null, changes: null };
    if (item) {
      if (tick > 0) bin.lanes[laneOf.get(item.agent ?? "") ?? lanes.length - 1] = 1;
      if (item.type) bin.types[item.type] = 1;
      bin.anomalies = item.anomalies ?? 0;
      if (item.content) {
        bin.denied = member(item.content.policy, "decision") === "deny" ? 1 : 0;
        const status = member(item.content.result, "status");
        bin.failed = typeof status === "string" && status !== "ok" ? 1 : 0;
        bin.changes = Array.isArray(item.content.delta) ? item.content.delta.length : null;
      }
    }
    bins.push(bin);
  }
  const marks: Spot[] = bins.flatMap((bin) => (bin.anomalies > 0 ? [{ tick: bin.from, kind: "anomaly", text: byTick.get(bin.from)?.summary ?? "" }] : []));
  return { run, from, to, width: 1, lanes, bins, strips: [], marks, leftOut: 0 };
}

/** Makes the strip of a predicate out of the intervals of `predicate-test`. */
export function stripOf(predicate: string, onset: number | null, certainty: string, intervals: readonly (readonly unknown[])[], bins: readonly Bin[]): Strip {
  const items = bins.map((bin) => {
    const words: Verdict[] = [];
    for (const [from, to, word] of intervals) {
      if (Number(from) <= bin.to && Number(to) >= bin.from && !words.includes(word as Verdict)) words.push(word as Verdict);
    }
    return words;
  });
  return { predicate, onset, certainty, items };
}

export type Sign = "denied" | "failed" | "anomaly" | "gap" | "closed" | "unknown" | "merge" | "fork" | "result" | "request" | "plan" | "memory" | "policy" | "saw" | "other" | "none";
export const WORDS: Record<Sign, string> = {
  denied: "denied", failed: "failed", anomaly: "anomaly", gap: "gap", closed: "erased or withheld", unknown: "unknown", merge: "merge", fork: "fork",
  result: "answer", request: "call", plan: "plan", memory: "memory", policy: "decision", saw: "saw", other: "other", none: "nothing",
};

/** Returns the worst sign of a bin: what went wrong wins, then what is not known, then the type. */
export function signOf(bin: Bin): Sign {
  if (bin.n === 0 && bin.refusals === 0) return "none";
  if (bin.failed > 0) return "failed";
  if (bin.denied > 0) return "denied";
  if (bin.anomalies > 0) return "anomaly";
  if (bin.gaps > 0) return "gap";
  if (bin.closed > 0) return "closed";
  if (bin.unknown > 0) return "unknown";
  if (bin.merges > 0) return "merge";
  if (bin.forks > 0) return "fork";
  let most = "";
  for (const [type, count] of Object.entries(bin.types)) if (most === "" || count > (bin.types[most] ?? 0)) most = type;
  return signOfType(most);
}

export function signOfType(type: string): Sign {
  switch (type) {
    case "action.request": return "request";
    case "action.result": return "result";
    case "plan.update": case "goal.complete": case "goal.set": return "plan";
    case "memory.write": return "memory";
    case "policy.decision": return "policy";
    case "observation.add": return "saw";
    case "kernel.anomaly": case "anomaly.flag": return "anomaly";
    default: return "other";
  }
}

/** Whether a sign is something that went wrong: its column is drawn in the colour of a warning. */
export function isBad(sign: Sign): boolean {
  return sign === "denied" || sign === "failed" || sign === "anomaly";
}

export type Shape = { x: number; y: number; w: number; h: number; sign: Sign; isHollow: boolean; bin: number };

/** Places the marks of a row. A bin of one tick has one mark; a wider one has a bar as high as its share of the fullest bin. */
export function rowOf(bins: readonly Bin[], width: number, height: number, lane: number | null): Shape[] {
  const column = bins.length > 0 ? width / bins.length : width;
  const countOf = (bin: Bin): number => (lane === null ? bin.n : (bin.lanes[lane] ?? 0));
  const most = bins.reduce((max, bin) => Math.max(max, countOf(bin)), 1);
  const shapes: Shape[] = [];
  bins.forEach((bin, at) => {
    const n = countOf(bin);
    if (n === 0) return;
    const isTick = bin.from === bin.to;
    const h = isTick ? height : Math.max(3, Math.round((n / most) * height));
    const sign = lane === null || isTick || bin.lanes.filter((one) => one > 0).length === 1 ? signOf(bin) : "other";
    shapes.push({ x: at * column, y: height - h, w: column, h, sign, isHollow: bin.changes === 0, bin: at });
  });
  return shapes;
}

/** Returns the bin below a horizontal position. */
export function binAt(x: number, width: number, count: number): number {
  return Math.max(0, Math.min(count - 1, Math.floor((x / Math.max(1, width)) * count)));
}

/** Returns the horizontal middle of a tick. */
export function xOf(tick: number, timeline: { bins: readonly Bin[]; from: number; width: number }, width: number): number {
  const first = timeline.bins[0]?.from ?? timeline.from;
  const at = Math.floor((tick - first) / timeline.width);
  return ((at + 0.5) / Math.max(1, timeline.bins.length)) * width;
}

/** Returns a range around a tick that is half, or twice, as wide. */
export function zoomed(range: readonly [number, number], tick: number, factor: number, last: number): [number, number] | null {
  const span = Math.max(8, Math.round((range[1] - range[0] + 1) * factor));
  if (span >= last + 1) return null;
  const from = Math.max(0, Math.min(last - span + 1, tick - Math.floor(span / 2)));
  return [from, from + span - 1];
}
