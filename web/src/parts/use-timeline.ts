// Loads the bins of a range from the document `timeline`: first the counts, then with the verdicts of the questions.

import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { askOnce, list, of, Refused, useFollowed } from "../api.ts";
import type { Failure, Log } from "../documents.ts";
import { binsOf, ofDocument, type Link, type Timeline, type TimelineDocument } from "../pure/timeline.ts";

/** A question whose verdicts are drawn. */
export type Question = { name: string; predicate?: string; holds?: string };
export type Loaded = { timeline: Timeline | null; failure: Failure | null; caveat: string | null };

export function useTimeline(run: string, range: [number, number] | null, last: number | null, questions: readonly Question[], version: number): Signal<Loaded> {
  const loaded = useSignal<Loaded>({ timeline: null, failure: null, caveat: null });
  const names = questions.map((one) => one.name);
  const key = last === null ? null : JSON.stringify([run, range, names]);
  useFollowed<TimelineDocument>(key, `${last} ${version}`, {
    ask: (abort) => {
      const [from, to] = range ?? [0, last ?? 0];
      const predicate = questions.flatMap((one) => one.predicate ?? []);
      const holds = questions.flatMap((one) => one.holds ?? []);
      return askOnce<TimelineDocument>(of(run, "timeline", { from, to, bins: binsOf(from, to), predicate, holds }), abort);
    },
    take: (document) => (loaded.value = { timeline: ofDocument(document, names), failure: null, caveat: document.caveat ?? null }),
    fail: (fault) => {
      if (fault instanceof Refused) loaded.value = { ...loaded.peek(), failure: fault.document };
    },
  });
  return loaded;
}

/** Ticks of which the links are asked for at most. */
const LINKS_MAX = 500;

/** Loads the links of the ticks that are drawn one by one. */
export function useLinks(run: string, timeline: Timeline | null): Signal<readonly Link[]> {
  const links = useSignal<readonly Link[]>([]);
  const isDrawn = timeline !== null && timeline.width === 1 && timeline.bins.length <= LINKS_MAX;
  const [from, to] = isDrawn ? [timeline.from, timeline.to] : [0, -1];
  useEffect(() => {
    links.value = [];
    if (to < from) return;
    const control = new AbortController();
    askOnce<Log>(of(run, "log", { from, to, limit: LINKS_MAX, links: "true" }), control.signal).then(
      (log) => {
        if (control.signal.aborted) return;
        links.value = list(log.items).flatMap((item) => {
          const to = item.tick;
          return to === null ? [] : (item.links ?? []).flatMap((link) => (link.run === run && link.tick !== null ? [{ from: link.tick, to, rel: link.rel }] : []));
        });
      },
      () => {},
    );
    return () => control.abort();
  }, [run, from, to]);
  return links;
}
