// Loads the bins of a range: the document `timeline` where the server has it, else windows of the log, tick by tick.

import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { askOnce, has, list, of, Refused } from "../api.ts";
import type { Failure, Log, PredicateTest } from "../documents.ts";
import { ofDocument, ofLog, stripOf, type LogItem, type Strip, type Timeline, type TimelineDocument } from "../pure/timeline.ts";

/** A question whose verdicts are drawn. */
export type Question = { name: string; predicate?: string; holds?: string };
export type Loaded = { timeline: Timeline | null; failure: Failure | null; note: string | null };

/** Without the document `timeline` so many ticks are read one by one. */
export const ONE_BY_ONE = 2000;
const WINDOW = 500;

export function useTimeline(run: string, range: [number, number] | null, tick: number, last: number | null, questions: readonly Question[], version: number): Signal<Loaded> {
  const loaded = useSignal<Loaded>({ timeline: null, failure: null, note: null });
  // Without `timeline` a long run shows the ticks around the one that is looked at.
  const page = Math.floor(tick / (ONE_BY_ONE / 2));
  const words = questions.map((one) => one.name).join("\n");
  useEffect(() => {
    if (last === null) return;
    let isOver = false;
    const put = (value: Loaded) => {
      if (!isOver) loaded.value = value;
    };
    const [from, to] = range ?? [0, last];
    (async () => {
      if (await has("/run/{run}/timeline.json")) {
        const span = to - from + 1;
        const predicate = questions.flatMap((one) => one.predicate ?? []);
        const holds = questions.flatMap((one) => one.holds ?? []);
        const address = of(run, "timeline", { from, to, bins: span <= 2048 ? Math.max(1, span) : 512, predicate, holds });
        put({ timeline: ofDocument(await askOnce<TimelineDocument>(address)), failure: null, note: null });
        return;
      }
      const isCut = to - from + 1 > ONE_BY_ONE;
      const begin = isCut ? Math.max(from, Math.min(page * (ONE_BY_ONE / 2) - ONE_BY_ONE / 4, to - ONE_BY_ONE + 1)) : from;
      const end = isCut ? Math.min(to, begin + ONE_BY_ONE - 1) : to;
      const items: LogItem[] = [];
      for (let next = begin; next <= end; next += WINDOW) {
        const log = await askOnce<Log>(of(run, "log", { from: next, to: Math.min(end, next + WINDOW - 1), limit: WINDOW, full: true }));
        for (const one of list(log.items)) items.push(one as LogItem);
        if (isOver) return;
      }
      const timeline = ofLog(run, items, begin, end);
      const note = isCut ? `ticks ${begin.toLocaleString("en")} to ${end.toLocaleString("en")} of ${(last ?? 0).toLocaleString("en")}: this server has no summary of long runs` : null;
      const before = loaded.peek().timeline?.strips ?? [];
      put({ timeline: { ...timeline, strips: before.length === questions.length && before.every((one) => one.items.length === timeline.bins.length) ? before : [] }, failure: null, note });
      const strips: Strip[] = [];
      for (const question of questions) {
        const asked = question.holds !== undefined ? { predicate: question.holds, holds: true } : { predicate: question.predicate ?? "" };
        const test = await askOnce<PredicateTest>(of(run, "predicate-test", asked)).catch(() => null);
        if (test) strips.push(stripOf(question.name, test.onset, test.certainty, test.intervals, timeline.bins));
      }
      put({ timeline: { ...timeline, strips }, failure: null, note });
    })().catch((fault: unknown) => {
      if (fault instanceof Refused) put({ ...loaded.peek(), failure: fault.document });
    });
    return () => {
      isOver = true;
    };
  }, [run, range?.[0], range?.[1], last, words, version, range ? 0 : page]);
  return loaded;
}
