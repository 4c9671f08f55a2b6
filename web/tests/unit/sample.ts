// A document `dendrer.timeline/1` of a long run, without recording one.

import type { Bin, TimelineDocument } from "../../src/pure/timeline.ts";

export function sample(last: number, wanted: number): TimelineDocument {
  let width = 1;
  while (Math.ceil((last + 1) / width) > wanted) width *= 2;
  const lanes = [{ agent: "planner", agents: 1, total: 0 }, { agent: "worker", agents: 1, total: 0 }, { agent: null, agents: 7, total: 0 }];
  const items: Bin[] = [];
  const onset = Math.floor(last * 0.3);
  for (let from = 0; from <= last; from += width) {
    const to = Math.min(last, from + width - 1);
    const n = to - from + 1 - (from === 0 ? 1 : 0);
    const own = [Math.floor(n / 2), n - Math.floor(n / 2) - Math.floor(n / 5), Math.floor(n / 5)];
    own.forEach((count, at) => ((lanes[at] as { total: number }).total += count));
    const at = from / width;
    items.push({
      from, to, n, lanes: own, types: { "observation.add": Math.floor(n / 2), "plan.update": n - Math.floor(n / 2) },
      anomalies: at % 11 === 3 ? 1 : 0, refusals: 0, denied: at % 17 === 5 ? 2 : 0, failed: at % 29 === 7 ? 1 : 0, forks: 0, merges: 0, gaps: 0, unknown: 0, closed: at % 97 === 1 ? 1 : 0,
      confidence: 0.4, changes: n,
    });
  }
  const verdicts: string[][] = items.map((one) => (one.to < onset ? ["ok"] : one.from > onset ? ["violation"] : ["ok", "violation"]));
  const unknown: string[][] = items.map((_, at) => (at % 5 === 0 ? ["uncertain"] : ["ok"]));
  return {
    schema: "dendrer.timeline/1", run: "long", from: 0, to: last, width, bins: wanted, lanes, items,
    verdicts: [{ predicate: "kernel.policy_compliant", onset, certainty: "exact", items: verdicts }, { predicate: "state.n < 4", onset: null, certainty: "unavailable", items: unknown }],
    marks: [{ tick: onset, kind: "onset", text: "kernel.policy_compliant" }], left_out: { anomaly: 12 },
  };
}
