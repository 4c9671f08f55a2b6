// The list of runs: filter, sort, pages, the tree of forks, and a pair to compare.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { known, list, useAnswer } from "../api.ts";
import type { Runs } from "../documents.ts";
import { useKeys } from "../keys.ts";
import { go, query, setQuery } from "../nav.ts";
import { plain } from "../pure/invisible.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { live, version, type RunItem } from "../store.ts";
import { Buttons } from "../parts/copy.tsx";
import { Answered } from "../parts/fault.tsx";
import { Missing } from "../parts/value.tsx";
import { Name, T, Time } from "../parts/text.tsx";

const PAGE = 200;

export function RunsScreen() {
  const where = query.value.get("where") ?? "";
  const stage = query.value.get("stage") ?? "";
  const sort = query.value.get("sort") ?? "";
  const isTree = query.value.get("tree") === "true";
  const limit = Math.max(PAGE, Math.min(10_000, Number(query.value.get("limit") ?? PAGE) || PAGE));
  const answer = useAnswer<Runs>(`/runs.json${queryOf({ limit, where, stage, sort })}#${version.value}`);
  const text = useSignal(where);
  const chosen = useSignal<readonly string[]>([]);
  const at = useSignal(-1);
  useEffect(() => {
    text.value = where;
  }, [where]);
  const document = known(answer.value);
  const rows = order(list(document?.items), isTree);
  useKeys({
    j: () => (at.value = Math.min(rows.length - 1, at.value + 1)),
    k: () => (at.value = Math.max(0, at.value - 1)),
    Home: () => (at.value = 0),
    End: () => (at.value = Math.max(0, rows.length - 1)),
  });
  useLayoutEffect(() => {
    if (at.value >= 0) window.document.querySelectorAll<HTMLElement>(".run-link")[at.value]?.focus();
  }, [at.value]);
  const toggle = (name: string) => {
    const without = chosen.value.filter((one) => one !== name);
    chosen.value = without.length < chosen.value.length ? without : [...chosen.value, name].slice(-2);
  };
  const [a, b] = chosen.value;
  const words = ["dendrer", "runs", ...(where ? ["--where", where] : []), ...(stage ? ["--stage", stage] : []), ...(sort ? ["--sort", sort] : []), ...(isTree ? ["--tree"] : [])];
  return (
    <div class="runs">
      <div class="top"><h1 tabIndex={-1}>Runs</h1><Buttons words={words} /></div>
      <form class="filters" role="search" onSubmit={(event) => { event.preventDefault(); setQuery({ where: text.value.trim() }); }}>
        <label for="where">where</label>
        <input id="where" value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} placeholder="ticks > 20 && stage == 1" autocomplete="off" spellcheck={false} />
        <button type="submit" class="small">filter</button>
        <label for="stage">stage</label>
        <select id="stage" value={stage} onChange={(event) => setQuery({ stage: event.currentTarget.value })}>
          <option value="">all</option>{[0, 1, 2, 3].map((one) => <option key={one} value={String(one)}>{one}</option>)}
        </select>
        <label for="sort">sort</label>
        <select id="sort" value={sort} onChange={(event) => setQuery({ sort: event.currentTarget.value })}>
          <option value="">newest</option>{["name", "ticks", "updated"].map((one) => <option key={one} value={one}>{one}</option>)}
        </select>
        <label class="check"><input type="checkbox" checked={isTree} onChange={(event) => setQuery({ tree: event.currentTarget.checked ? "true" : null })} /> tree of forks</label>
      </form>
      <Answered answer={answer.value} expression={where}>
        {(runs) => (
          <>
            {runs.total === 0 ? <Empty /> : rows.length === 0 ? <p>No run fits <code><T of={where} /></code>. <button type="button" class="small" onClick={() => setQuery({ where: null, stage: null })}>show all {runs.total}</button></p> : (
              <div class="scroll">
                <table class="list">
                  <thead><tr><th scope="col"><span class="hidden">compare</span></th><th scope="col">name</th><th scope="col">updated</th><th scope="col" class="num">ticks</th><th scope="col">stage</th><th scope="col">goal</th><th scope="col">forked from</th><th scope="col">verified here</th></tr></thead>
                  <tbody>{rows.map(({ run, depth }) => <Row key={run.name} run={run} depth={depth} isChosen={chosen.value.includes(run.name)} onToggle={() => toggle(run.name)} />)}</tbody>
                </table>
              </div>
            )}
            <p class="dim count">{rows.length} of {runs.matching} runs that fit, {runs.total} in the store{runs.hidden > 0 && `, ${runs.hidden} dropped ones left out`}{runs.unclear.length > 0 && `; ${runs.unclear.length} could not be judged`} {rows.length < runs.matching && <button type="button" class="small" onClick={() => setQuery({ limit: limit + PAGE })}>more</button>}</p>
          </>
        )}
      </Answered>
      {a !== undefined && (
        <div class="compare-bar" role="status">
          {b === undefined ? <>Choose another run to compare with <Name of={a} />.</> : <button type="button" onClick={() => go(pathOf(a, "diff") + queryOf({ with: b }))}>Compare <Name of={a} /> with <Name of={b} /></button>}
          {" "}<button type="button" class="small" onClick={() => (chosen.value = [])}>clear</button>
        </div>
      )}
    </div>
  );
}

type Placed = { run: RunItem; depth: number };

/** Puts forks below the run that they are of; without a tree the order of the document stays. */
function order(runs: readonly RunItem[], isTree: boolean): Placed[] {
  if (!isTree) return runs.map((run) => ({ run, depth: 0 }));
  const names = new Set(runs.map((run) => run.name));
  const placed: Placed[] = [];
  const add = (parent: string | null, depth: number): void => {
    for (const run of runs) {
      const from = run.forked_from && names.has(run.forked_from.run) ? run.forked_from.run : null;
      if (from !== parent || from === run.name || depth > 100) continue;
      placed.push({ run, depth });
      add(run.name, depth + 1);
    }
  };
  add(null, 0);
  return placed;
}

function Row({ run, depth, isChosen, onToggle }: { run: RunItem; depth: number; isChosen: boolean; onToggle: () => void }) {
  return (
    <tr class={isChosen ? "chosen" : ""}>
      <td><input type="checkbox" checked={isChosen} onChange={onToggle} aria-label={`compare ${plain(run.name)}`} /></td>
      <td class="name-cell" style={{ paddingLeft: `${8 + Math.min(8, depth) * 18}px` }}>
        {depth > 0 && <span class="dim" aria-hidden="true">└ </span>}
        <a class="run-link" href={pathOf(run.name)}><Name of={run.name} /></a>
        {live.value.has(run.name) && <span class="live" title="became longer while this page was open"> ● live</span>}
        {run.synthetic && <span class="chip">synthetic</span>}
        {run.unfinished && <span class="chip warn">import unfinished</span>}
      </td>
      <td><Time of={run.updated} /></td>
      <td class="num">{run.ticks === null ? <Missing kind="unknown" /> : run.ticks.toLocaleString("en")}</td>
      <td>{run.stage ?? "none"}</td>
      <td class="goal">{run.goal === null ? <span class="none">none</span> : <T of={run.goal} limit={160} />}</td>
      <td>{run.forked_from ? <a href={pathOf(run.forked_from.run) + queryOf({ t: run.forked_from.tick })}><Name of={run.forked_from.run} />@{run.forked_from.tick}</a> : ""}</td>
      <td>{run.verified_here ? "yes" : "not checked"}{!run.state_read && <> <Missing kind="unknown" code="state" /></>}{run.unknown && run.unknown.length > 0 && <> <Missing kind="unknown" code={`${run.unknown.length} places`} /></>}</td>
    </tr>
  );
}

function Empty() {
  return (
    <div class="empty">
      <p>No runs yet. Each of these makes one:</p>
      <pre>dendrer demo{"\n"}dendrer import chat.json{"\n"}dendrer commit --run my-run</pre>
    </div>
  );
}
