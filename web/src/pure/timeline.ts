// The timeline as bins, and its layout in pixels. Counts and verdicts are those of the document; nothing is judged here.

import type { Timeline as TimelineDocument } from "../documents.ts";

export type { TimelineDocument };
export type Bin = Exclude<TimelineDocument["items"], number>[number];
export type Lane = TimelineDocument["lanes"][number];
export type Strip = TimelineDocument["verdicts"][number];
export type Spot = TimelineDocument["marks"][number];
export type Timeline = { run: string; from: number; to: number; width: number; lanes: Lane[]; bins: Bin[]; strips: Strip[]; marks: Spot[]; leftOut: Record<string, number> };

/** Lanes that are drawn before a reader asks for all; the document itself folds those beyond 24. */
export const LANES_SHOWN = 8;
/** Ranges of more ticks are drawn in bins. */
export const TICKS_MAX = 2000;
export const BINS = 512;

/** Reads the document `timeline`. Strips are put in the order of the questions. */
export function ofDocument(document: TimelineDocument, questions: readonly string[] = []): Timeline {
  const rank = (strip: Strip): number => {
    const at = questions.indexOf(strip.predicate);
    return at < 0 ? questions.length : at;
  };
  return {
    run: document.run, from: document.from, to: document.to, width: document.width, lanes: document.lanes, bins: Array.isArray(document.items) ? document.items : [],
    strips: [...document.verdicts].sort((a, b) => rank(a) - rank(b)), marks: document.marks, leftOut: document.left_out,
  };
}

/** The number of bins to ask for: one a tick while that can be seen. */
export function binsOf(from: number, to: number): number {
  const span = to - from + 1;
  return span <= TICKS_MAX ? Math.max(1, span) : BINS;
}

/** Counts of a bin in words: for a reader who points at it. */
export function wordsOf(bin: Bin): string {
  const ticks = bin.from === bin.to ? `tick ${bin.from}` : `ticks ${bin.from.toLocaleString("en")}..${bin.to.toLocaleString("en")}: ${bin.n.toLocaleString("en")} transitions`;
  const counts = (["failed", "denied", "anomalies", "refusals", "gaps", "closed", "unknown", "merges", "forks"] as const).filter((name) => bin[name] > 0);
  const types = Object.entries(bin.types).sort((a, b) => b[1] - a[1]).slice(0, 3).map(([type, count]) => (bin.n === 1 ? type : `${count.toLocaleString("en")} ${type}`));
  const words = counts.map((name) => `${bin[name].toLocaleString("en")} ${name === "closed" ? "erased or withheld" : name}`);
  return [ticks, ...words, ...types, `${bin.changes.toLocaleString("en")} places written`].join(", ");
}

export type Sign = "onset" | "question" | "denied" | "failed" | "anomaly" | "gap" | "closed" | "unknown" | "merge" | "fork" | "result" | "request" | "plan" | "memory" | "policy" | "saw" | "other" | "none";
export const WORDS: Record<Sign, string> = {
  onset: "first violated", question: "asks a person",
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
  const refusedAlone = bin.n === 0;
  if (refusedAlone) return "denied";
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
  return sign === "onset" || sign === "denied" || sign === "failed" || sign === "anomaly";
}

export type Shape = { x: number; y: number; w: number; h: number; sign: Sign; isHollow: boolean; isBar: boolean; bin: number };

/** Places the marks of a row. A bin of one tick has one mark; a wider one has a bar as high as its share of the fullest bin. */
export function rowOf(timeline: Timeline, width: number, height: number, lane: number | null): Shape[] {
  const { bins } = timeline;
  const asks = new Set(timeline.marks.filter((mark) => mark.kind === "interrupt").map((mark) => mark.tick));
  const column = bins.length > 0 ? width / bins.length : width;
  const isBar = bins.some((bin) => bin.to > bin.from);
  const countOf = (bin: Bin): number => (lane === null ? bin.n : (bin.lanes[lane] ?? 0));
  const most = bins.reduce((max, bin) => Math.max(max, countOf(bin)), 1);
  const shapes: Shape[] = [];
  bins.forEach((bin, at) => {
    const n = countOf(bin);
    // A refused line is no transition, and is not left out of the row of all ticks.
    if (n === 0 && !(lane === null && bin.refusals > 0)) return;
    const isTick = !isBar;
    const h = isTick ? height : Math.max(3, Math.round((n / most) * height));
    const sign = lane === null || isTick || bin.lanes.filter((one) => one > 0).length === 1 ? signOf(bin) : "other";
    const isAsk = isTick && asks.has(bin.from) && !isBad(sign);
    shapes.push({ x: at * column, y: height - h, w: column, h, sign: isAsk ? "question" : sign, isHollow: isTick && bin.changes === 0, isBar, bin: at });
  });
  return shapes;
}

const SPOTS: Record<string, Sign> = { onset: "onset", anomaly: "anomaly", refusal: "denied", denial: "denied", failure: "failed", interrupt: "question", fork: "fork", merge: "merge", gap: "gap" };

export type PlacedSpot = { x: number; sign: Sign; tick: number };

/** Places the marks of the document above the bars, the worst first; one that would cover a worse one is not drawn. */
export function spotsOf(timeline: Timeline, width: number, size: number): PlacedSpot[] {
  const placed: PlacedSpot[] = [];
  for (const mark of timeline.marks) {
    if (mark.tick < timeline.from || mark.tick > timeline.to) continue;
    const x = xOf(mark.tick, timeline, width);
    if (placed.every((one) => Math.abs(one.x - x) >= size)) placed.push({ x, sign: SPOTS[mark.kind] ?? "other", tick: mark.tick });
  }
  return placed;
}

/** Returns the tick of a bin that a reader most likely means: the one in sight, its worst mark, else its first. */
export function tickOf(timeline: Timeline, bin: Bin, now: number): number {
  if (now >= bin.from && now <= bin.to) return now;
  return timeline.marks.find((one) => one.tick >= bin.from && one.tick <= bin.to)?.tick ?? bin.from;
}

/** A link of the record between two ticks of a run. */
export type Link = { from: number; to: number; rel: string };

const ALWAYS = new Set(["merges", "picked_from", "fork_of"]);

/** Links that are drawn: merges and imports always, the others of the tick in sight. A predecessor is the lane itself. */
export function linksOf(links: readonly Link[], tick: number): Link[] {
  return links.filter((one) => one.rel !== "predecessor" && (ALWAYS.has(one.rel) || one.from === tick || one.to === tick));
}

/** The lane of a tick among those that are drawn; -1 if none is. */
export function laneAt(timeline: Timeline, lanes: readonly number[], tick: number): number {
  const bin = timeline.bins[tick - (timeline.bins[0]?.from ?? 0)];
  return bin === undefined ? -1 : lanes.findIndex((lane) => (bin.lanes[lane] ?? 0) > 0);
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
