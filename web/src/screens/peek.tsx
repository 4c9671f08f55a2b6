// A look at a run from the list: its answers in short, without leaving the list.

import { known, list, of, useAnswer } from "../api.ts";
import type { BisectAll, Timeline } from "../documents.ts";
import { setQuery } from "../nav.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import type { RunItem } from "../pure/runs.ts";
import { Answered } from "../parts/fault.tsx";
import { Agent, Hash, Name, T, Time } from "../parts/text.tsx";
import { questionOf } from "./run.tsx";

export function Peek({ run, item }: { run: string; item: RunItem | null }) {
  const first = useAnswer<BisectAll>(of(run, "first"));
  const timeline = useAnswer<Timeline>(of(run, "timeline", { bins: 1 }));
  const lanes = known(timeline.value)?.lanes ?? [];
  return (
    <aside class="peek" aria-label="peek">
      <div class="top"><h2><a href={pathOf(run)}><Name of={run} /></a></h2><button type="button" class="small" onClick={() => setQuery({ peek: null })} aria-label="close the peek">×</button></div>
      {item && (
        <dl class="facts">
          {item.goal !== null && <><dt>goal</dt><dd><T of={item.goal} limit={400} /></dd></>}
          <dt>ticks</dt><dd>{item.ticks?.toLocaleString("en") ?? "unknown"}</dd>
          <dt>updated</dt><dd><Time of={item.updated} /></dd>
          <dt>tip</dt><dd><Hash of={item.tip} /></dd>
        </dl>
      )}
      <h2>Standard questions</h2>
      <Answered answer={first.value}>
        {(all) => (
          <ul class="asked">{list(all.items).map((one) => (
            <li key={one.predicate.digest}>
              {one.onset !== null ? <a class="bad-text" href={pathOf(run) + queryOf({ t: one.onset })}>violated at {one.onset}</a> : one.outcome === "never" ? <b class="ok-text">ok</b> : <span class="mark mark-unknown"><b>{one.outcome === "uncertain" ? "unknown" : one.outcome}</b></span>}{" "}
              <T of={questionOf(one).name} limit={200} />
              {one.origin && <div class="dim"><Agent of={one.origin.agent} author={one.origin.author} />: <T of={one.origin.summary} limit={200} /></div>}
            </li>
          ))}</ul>
        )}
      </Answered>
      <h2>Agents</h2>
      {lanes.length === 0 ? <p class="dim">none</p> : <ul class="asked">{lanes.map((one) => <li key={one.agent ?? ""}>{one.agent ? <Agent of={one.agent} /> : <Name of={one.agents > 0 ? `${one.agents} more agents` : "(no agent)"} />} <span class="dim">{one.total.toLocaleString("en")}</span></li>)}</ul>}
      <p class="acts"><a href={pathOf(run)}>open</a> <a href={pathOf(run, "verify")}>verify</a> <a href={pathOf(run, "bisect")}>bisect</a></p>
    </aside>
  );
}
