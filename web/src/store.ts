// What several parts of a screen share: the list of runs, and the run and the moment that are looked at.

import { batch, computed, signal } from "@preact/signals";
import { ask, forget, has, list, of, Refused } from "./api.ts";
import type { BisectAll, Failure, Log, Runs } from "./documents.ts";
import { go, query, route, search, setQuery } from "./nav.ts";
import { pathOf, queryOf, readTick, segment } from "./pure/route.ts";

export type RunItem = Exclude<Runs["items"], number>[number];
export type FirstItem = Exclude<BisectAll["items"], number>[number];

/** The newest runs of the store, for the picker and the head of a run. */
export const runs = signal<Runs | null>(null);
export const runsFailure = signal<Failure | null>(null);
/** Counts events: a document that is asked with another version is asked again. */
export const version = signal(0);
/** Runs that became longer while the page was open. */
export const live = signal<ReadonlySet<string>>(new Set());

export async function loadRuns(): Promise<void> {
  try {
    runs.value = await ask<Runs>("/runs.json?limit=200");
    runsFailure.value = null;
  } catch (fault) {
    if (fault instanceof Refused) runsFailure.value = fault.document;
  }
}

/** The name of the run of the address. */
export const run = computed(() => ("run" in route.value ? route.value.run : null));
export const item = computed(() => list(runs.value?.items).find((one) => one.name === run.value) ?? null);

const counted = signal<{ run: string; ticks: number } | null>(null);
/** The last tick of the run; null until it is known. */
export const last = computed(() => {
  const known = counted.value?.run === run.value ? counted.value.ticks : null;
  const listed = item.value?.ticks ?? null;
  return known === null ? listed : listed === null ? known : Math.max(known, listed);
});

/** Asks for the length of a run that is not among the newest runs. */
export async function countTicks(name: string): Promise<void> {
  try {
    const log = await ask<Log>(of(name, "log", { from: 0, limit: 1 }));
    counted.value = { run: name, ticks: log.total };
  } catch (fault) {
    if (fault instanceof Refused && run.peek() === name) first.value = { run: name, document: null, failure: fault.document };
  }
}

/** Takes the tick of an event: the length at once, answers about the whole run a little later, once for many events. */
export function grew(name: string, ticks: number): void {
  const before = run.peek() === name ? (last.peek() ?? 0) : 0;
  forget(`/run/${segment(name)}/log.json`, before);
  forget(`/run/${segment(name)}/timeline.json`, before);
  batch(() => {
    if (run.peek() === name && ticks > before) counted.value = { run: name, ticks };
    if (!live.peek().has(name)) live.value = new Set([...live.peek(), name]);
  });
  stale.add(name);
  if (waiting) return;
  waiting = window.setTimeout(() => {
    waiting = 0;
    // Documents of a fixed tick stay as they are; those of the whole run do not.
    for (const one of stale) for (const document of WHOLE) forget(`/run/${segment(one)}/${document}.json`);
    forget("/runs.json");
    stale.clear();
    version.value += 1;
  }, 1000);
}

const WHOLE = ["first", "bisect", "transcript", "verify", "badge", "diff", "commitments", "contract", "conflicts", "backtrack", "predicate-test", "heatmap", "compare", "steps", "layout", "frontier"];
const stale = new Set<string>();
let waiting = 0;

/** The answer of the standard questions about a run. */
export const first = signal<{ run: string; document: BisectAll | null; failure: Failure | null } | null>(null);
export const firstItems = computed(() => (first.value && first.value.run === run.value ? list(first.value.document?.items) : []));

/** Items with an onset, the earliest first. */
export const violated = computed(() =>
  [...firstItems.value].filter((one) => one.onset !== null).sort((a, b) => (a.onset ?? 0) - (b.onset ?? 0)),
);

/** The onset of a question that was typed. */
export const askedOnset = signal<number | null>(null);

/** The tick that is looked at: of the address, else the first violated one, else the last. */
export const tick = computed(() => {
  const end = last.value ?? Number.MAX_SAFE_INTEGER;
  const here = route.value;
  if (here.name === "view" && here.tick !== null) return Math.min(here.tick, end);
  const given = readTick(query.value.get("t"), end);
  if (given !== null) return given;
  if (last.value === null) return null;
  return Math.min(askedOnset.value ?? violated.value[0]?.onset ?? end, end);
});

/** Looks at another tick; the view stays. */
export function goTick(to: number): void {
  const end = last.peek();
  const next = Math.max(0, end === null ? to : Math.min(to, end));
  const here = route.peek();
  if (here.name === "view" && here.tick !== null) go(pathOf(here.run, here.view, next) + search.peek(), true);
  else setQuery({ t: next });
}

/** Goes to the next bad tick of a log, as the server finds it. */
export async function goAnomaly(direction: 1 | -1): Promise<void> {
  const name = run.peek();
  const at = tick.peek();
  if (name === null || at === null) return;
  const range = direction > 0 ? { from: at + 1 } : { from: 1, to: Math.max(0, at - 1), reverse: true };
  if (direction < 0 && at <= 1) return;
  if (direction > 0 && at >= (last.peek() ?? 0)) return;
  const log = await ask<Log>(of(name, "log", { ...range, anomalies: true, limit: 1 })).catch(() => null);
  const found = list(log?.items)[0]?.tick;
  if (found !== null && found !== undefined) goTick(found);
}

/** Goes to the first tick of an agent from a tick on. */
export async function goAgent(agent: string, from: number): Promise<void> {
  const name = run.peek();
  if (name === null) return;
  const log = await ask<Log>(of(name, "log", { from, agent, limit: 1 })).catch(() => null);
  const found = list(log?.items)[0]?.tick;
  if (found !== null && found !== undefined) goTick(found);
}

/** Goes to the next onset of a standard question, or of the one that was typed. */
export function goViolation(direction: 1 | -1): void {
  const at = tick.peek() ?? 0;
  const onsets = [...new Set([...violated.peek().map((one) => one.onset ?? 0), ...(askedOnset.peek() === null ? [] : [askedOnset.peek() as number])])].sort((a, b) => a - b);
  const next = direction > 0 ? onsets.find((one) => one > at) : onsets.findLast((one) => one < at);
  if (next !== undefined) goTick(next);
}

/** Goes to the next write of the place that is pinned. */
export async function goWrite(direction: 1 | -1): Promise<void> {
  const name = run.peek();
  const place = query.peek().get("path");
  const at = tick.peek();
  if (name === null || !place || at === null) return;
  type Writes = { items: { tick: number }[] | number };
  const range = direction > 0 ? { from: at + 1 } : { to: at - 1, limit: 1 };
  if (direction < 0 && at < 1) return;
  const document = await ask<Writes>(of(name, "backtrack", { path: place, ...range })).catch(() => null);
  const ticks = list(document?.items).map((one) => one.tick);
  const next = direction > 0 ? Math.min(...ticks) : Math.max(...ticks);
  if (Number.isFinite(next)) goTick(next);
}

export { has, queryOf };
