// The list of runs: facets, filter, sort, pages, the tree of forks, a peek at one, and a pair to compare.

import { signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { askOnce, known, list, of, useAnswer } from "../api.ts";
import type { BisectAll, Runs } from "../documents.ts";
import { useKeys } from "../keys.ts";
import { go, query, setQuery } from "../nav.ts";
import { plain } from "../pure/invisible.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { facetsOf, held, treeOf, whereOf, type Choice, type Placed, type RunItem } from "../pure/runs.ts";
import { live, version } from "../store.ts";
import { Buttons } from "../parts/copy.tsx";
import { Answered } from "../parts/fault.tsx";
import { Missing } from "../parts/value.tsx";
import { Name, T, Time } from "../parts/text.tsx";
import { Peek } from "./peek.tsx";

const PAGE = 200;
/** Runs that are asked for their first violation at most, and the longest of them. */
const FIRST_MAX = 100;
const FIRST_TICKS = 20_000;

type First = { onset: number | null; isKnown: boolean };
const firsts = signal<ReadonlyMap<string, First>>(new Map());

/** Asks the standard questions about the runs of a list, two at a time. */
function useFirsts(runs: readonly RunItem[], isAsked: boolean): void {
  const names = runs.slice(0, FIRST_MAX).filter((run) => (run.ticks ?? 0) <= FIRST_TICKS).map((run) => run.name);
  useEffect(() => {
    if (!isAsked) return;
    const control = new AbortController();
    const left = names.filter((name) => !firsts.peek().has(name));
    const next = async (): Promise<void> => {
      const name = left.shift();
      if (name === undefined || control.signal.aborted) return;
      await askOnce<BisectAll>(of(name, "first"), control.signal).then(
        (document) => {
          const items = list(document.items);
          const onsets = items.flatMap((one) => (one.onset === null ? [] : [one.onset]));
          firsts.value = new Map([...firsts.peek(), [name, { onset: onsets.length > 0 ? Math.min(...onsets) : null, isKnown: onsets.length > 0 || items.every((one) => one.outcome === "never") }]]);
        },
        () => {
          if (!control.signal.aborted) firsts.value = new Map([...firsts.peek(), [name, { onset: null, isKnown: false }]]);
        },
      );
      return next();
    };
    void next();
    void next();
    return () => control.abort();
  }, [isAsked, names.join("\n")]);
}

/** Whether a reader points at a row or has the focus in it: then rows stay where they are. */
function useHeld(): { box: { current: HTMLDivElement | null }; isHeld: () => boolean } {
  const box = useRef<HTMLDivElement | null>(null);
  return { box, isHeld: () => box.current !== null && (box.current.matches(":hover") || box.current.contains(document.activeElement)) };
}

export function RunsScreen() {
  const where = query.value.get("where") ?? "";
  const sort = query.value.get("sort") ?? "";
  const choice: Choice = { stage: query.value.get("stage"), verified: query.value.get("verified"), forked: query.value.get("forked") };
  const isTree = query.value.get("tree") === "true";
  const isFirst = query.value.get("first") === "true";
  const violated = query.value.get("violated");
  const peek = query.value.get("peek");
  const after = query.value.get("after");
  const whole = whereOf(where, choice);
  const address = (asked: string, stage: string | null) => `/runs.json${queryOf({ limit: PAGE, after, where: asked, stage, sort, tree: isTree ? "true" : null })}`;
  const answer = useAnswer<Runs>(address(whole, choice.stage), version.value);
  const base = useAnswer<Runs>(address(where, null), version.value);
  const chosen = query.value.getAll("compare");
  const { box, isHeld } = useHeld();
  const drawn = useRef<{ question: string; names: string[] }>({ question: "", names: [] });
  const document_ = known(answer.value);
  const question = JSON.stringify([whole, choice.stage, sort, after]);
  const given = list(document_?.items);
  const loaded = drawn.current.question === question && isHeld() ? held(given, drawn.current.names) : given;
  useFirsts(loaded, isFirst);
  const fits = (run: RunItem): boolean => {
    if (!isFirst || violated === null) return true;
    const first = firsts.value.get(run.name);
    return violated === "unknown" ? first !== undefined && !first.isKnown : first !== undefined && first.isKnown && (first.onset !== null) === (violated === "true");
  };
  const rows = treeOf(loaded.filter(fits), isTree);
  useLayoutEffect(() => {
    if (answer.value.state === "there") drawn.current = { question, names: loaded.map((run) => run.name) };
  });
  usePeekKeys(rows, peek);
  const toggle = (name: string) => {
    const without = chosen.filter((one) => one !== name);
    setQuery({ compare: without.length < chosen.length ? without : [...chosen, name].slice(-2) });
  };
  const words = ["dendrer", "runs", ...(whole ? ["--where", whole] : []), ...(choice.stage ? ["--stage", choice.stage] : []), ...(sort ? ["--sort", sort] : []), ...(isTree ? ["--tree"] : [])];
  return (
    <div class="runs">
      <div class="top"><h1 tabIndex={-1}>Runs</h1><Buttons words={words} /></div>
      <Filters where={where} sort={sort} isTree={isTree} />
      <div class={`runs-split ${peek === null ? "" : "with-peek"}`}>
        <Facets runs={list(known(base.value)?.items)} choice={choice} isFirst={isFirst} violated={violated} loaded={loaded} total={known(base.value)?.matching ?? 0} />
        <div class="runs-list" ref={box}>
          <Answered answer={answer.value} expression={where}>
            {(runs) => <Listed of={runs} rows={rows} whole={whole} isFirst={isFirst} peek={peek} chosen={chosen} onToggle={toggle} />}
          </Answered>
        </div>
        {peek !== null && <Peek run={peek} item={given.find((one) => one.name === peek) ?? null} />}
      </div>
      <Pair of={chosen} />
    </div>
  );
}

/** Keys of the list: they go from run to run, and the peek follows. */
function usePeekKeys(rows: readonly Placed[], peek: string | null): void {
  const at = rows.findIndex(({ run }) => run.name === peek);
  const step = (to: number) => {
    const next = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (!next) return;
    setQuery({ peek: next.run.name });
    requestAnimationFrame(() => document.querySelectorAll<HTMLElement>(".run-link")[rows.indexOf(next)]?.focus());
  };
  useKeys({
    j: () => step(at + 1), k: () => step(at < 0 ? 0 : at - 1), J: () => step(at + 10), K: () => step(at - 10), Home: () => step(0), End: () => step(rows.length - 1),
    ...(peek === null ? {} : { Enter: () => go(pathOf(peek)), "gt": () => go(pathOf(peek)) }),
  });
}

type ListedProps = { of: Runs; rows: readonly Placed[]; whole: string; isFirst: boolean; peek: string | null; chosen: readonly string[]; onToggle: (name: string) => void };

function Listed({ of: runs, rows, whole, isFirst, peek, chosen, onToggle }: ListedProps) {
  return (
    <>
      {runs.total === 0 ? <Empty /> : rows.length === 0 ? <p>No run fits{whole && <> <code><T of={whole} /></code></>}. <button type="button" class="small" onClick={() => setQuery({ where: null, stage: null, verified: null, forked: null, violated: null })}>show all {runs.total}</button></p> : (
        <div class="scroll">
          <table class="list">
            <thead><tr><th scope="col"><span class="hidden">compare</span></th><th scope="col">name</th>{isFirst && <th scope="col" class="num">first violation</th>}<th scope="col">updated</th><th scope="col" class="num">ticks</th><th scope="col">stage</th><th scope="col">forked from</th><th scope="col">verified here</th></tr></thead>
            <tbody>{rows.map(({ run, depth }) => <Row key={run.name} run={run} depth={depth} isFirst={isFirst} isPeeked={run.name === peek} isChosen={chosen.includes(run.name)} onToggle={() => onToggle(run.name)} />)}</tbody>
          </table>
        </div>
      )}
      <p class="dim count">{rows.length} of {runs.matching} runs that fit, {runs.total} in the store{runs.hidden > 0 && `, ${runs.hidden} dropped ones left out`}{runs.unclear.length > 0 && `; ${runs.unclear.length} could not be judged`} {query.value.get("after") !== null && <button type="button" class="small" onClick={() => setQuery({ after: null, peek: null })}>from the beginning</button>} {runs.next !== null && <button type="button" class="small" onClick={() => setQuery({ after: runs.next, peek: null })}>next {PAGE}</button>}</p>
      {runs.unclear.length > 0 && <ul class="places">{runs.unclear.slice(0, 20).map((one) => <li key={one.run}><Missing kind="unknown" /> <Name of={one.run} />: <T of={one.why} limit={200} /></li>)}</ul>}
    </>
  );
}

function Pair({ of: chosen }: { of: readonly string[] }) {
  const [a, b] = chosen;
  if (a === undefined) return null;
  return (
    <div class="compare-bar" role="status">
      {b === undefined ? <>Choose another run to compare with <Name of={a} />.</> : <button type="button" onClick={() => go(pathOf(a, "diff") + queryOf({ with: b }))}>Compare <Name of={a} /> with <Name of={b} /></button>}
      {" "}<button type="button" class="small" onClick={() => setQuery({ compare: null })}>clear</button>
    </div>
  );
}

function Filters({ where, sort, isTree }: { where: string; sort: string; isTree: boolean }) {
  const text = useSignal(where);
  useEffect(() => {
    text.value = where;
  }, [where]);
  return (
    <form class="filters" role="search" onSubmit={(event) => { event.preventDefault(); setQuery({ where: text.value.trim(), after: null }); }}>
      <label for="where">where</label>
      <input id="where" value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} placeholder="ticks > 20 && stage == 1" autocomplete="off" spellcheck={false} />
      <button type="submit" class="small">filter</button>
      <label for="sort">sort</label>
      <select id="sort" value={sort} onChange={(event) => setQuery({ sort: event.currentTarget.value, after: null })}>
        <option value="">newest</option>{["name", "ticks"].map((one) => <option key={one} value={one}>{one}</option>)}
      </select>
      <label class="check"><input type="checkbox" checked={isTree} onChange={(event) => setQuery({ tree: event.currentTarget.checked ? "true" : null })} /> tree of forks</label>
    </form>
  );
}

type FacetsProps = { runs: readonly RunItem[]; choice: Choice; isFirst: boolean; violated: string | null; loaded: readonly RunItem[]; total: number };

function Facets({ runs, choice, isFirst, violated, loaded, total }: FacetsProps) {
  const groups: [keyof Choice, string][] = [["stage", "stage"], ["verified", "verification"], ["forked", "forks"]];
  const all = facetsOf(runs);
  const asked = loaded.flatMap((run) => firsts.value.get(run.name) ?? []);
  const onsets: [string, string, number][] = [["true", "violated", asked.filter((one) => one.onset !== null).length], ["false", "never violated", asked.filter((one) => one.isKnown && one.onset === null).length], ["unknown", "unknown", asked.filter((one) => !one.isKnown).length]];
  return (
    <aside class="facets" aria-label="facets">
      {groups.map(([name, words]) => (
        <div key={name} role="group" aria-label={words}>
          <h2>{words}</h2>
          {all.filter((one) => one.name === name).map((one) => (
            <button type="button" key={one.value} class="facet" aria-pressed={choice[name] === one.value} onClick={() => setQuery({ [name]: choice[name] === one.value ? null : one.value, peek: null, after: null })}>
              <span>{one.words}</span> <span class="dim">{one.count}</span>
            </button>
          ))}
        </div>
      ))}
      <div role="group" aria-label="first violation">
        <h2>first violation</h2>
        {isFirst ? onsets.map(([value, words, count]) => (
          <button type="button" key={value} class="facet" aria-pressed={violated === value} onClick={() => setQuery({ violated: violated === value ? null : value, peek: null })}><span>{words}</span> <span class="dim">{count}</span></button>
        )) : <button type="button" class="facet" onClick={() => setQuery({ first: "true" })}>ask the standard questions of {Math.min(FIRST_MAX, loaded.length)} runs</button>}
        {isFirst && asked.length < loaded.length && <p class="dim" role="status">{asked.length} of {loaded.length} runs asked</p>}
      </div>
      {runs.length < total && <p class="dim">counts of the {runs.length} runs that are loaded</p>}
    </aside>
  );
}

type RowProps = { run: RunItem; depth: number; isFirst: boolean; isPeeked: boolean; isChosen: boolean; onToggle: () => void };

function Row({ run, depth, isFirst, isPeeked, isChosen, onToggle }: RowProps) {
  const first = firsts.value.get(run.name);
  const peek = (event: MouseEvent) => {
    if ((event.target as Element).closest("a, button, input")) return;
    setQuery({ peek: isPeeked ? null : run.name });
  };
  return (
    <tr class={isPeeked || isChosen ? "chosen" : ""} onClick={peek}>
      <td><input type="checkbox" checked={isChosen} onChange={onToggle} aria-label={`compare ${plain(run.name)}`} /></td>
      <td class="name-cell" style={{ paddingLeft: `${8 + Math.min(8, depth) * 18}px` }}>
        {depth > 0 && <span class="dim" aria-hidden="true">└ </span>}
        <a class="run-link" href={pathOf(run.name)}><Name of={run.name} /></a>
        <span class="live-place">{live.value.has(run.name) && <span class="live" title="became longer while this page was open"> ● live</span>}</span>
        {run.thread !== undefined && <> <span class="dim">thread <T of={run.thread} limit={60} /></span></>}
        {run.synthetic && <span class="chip">synthetic</span>}
        {run.unfinished && <span class="chip warn">import unfinished</span>}
        {run.ended && <span class="chip">ended</span>}
        {run.refusals > 0 && <span class="chip warn">{run.refusals} refused</span>}
        {run.goal !== null && <div class="goal dim" title={plain(run.goal.slice(0, 400))}><T of={run.goal.slice(0, 200)} isOneLine /></div>}
      </td>
      {isFirst && <td class="num">{first === undefined ? <span class="dim">..</span> : first.onset !== null ? <a href={pathOf(run.name) + queryOf({ t: first.onset })}>{first.onset}</a> : first.isKnown ? "never" : <Missing kind="unknown" />}</td>}
      <td><Time of={run.updated} /></td>
      <td class="num">{run.ticks === null ? <Missing kind="unknown" /> : run.ticks.toLocaleString("en")}</td>
      <td>{run.stage ?? "none"}</td>
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
