// The screen of a run: what went wrong first, where and why, before anything is clicked.

import { signal, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { askOnce, known, lines, of, Refused, useAnswer, useFollowed, type Answer } from "../api.ts";
import type { Bisect, BisectAll } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { useKeys } from "../keys.ts";
import { agentName } from "../pure/names.ts";
import { plain } from "../pure/invisible.ts";
import { written } from "../pure/places.ts";
import { pathOf, queryOf, readRange } from "../pure/route.ts";
import { readSearch, writeSearch, type Search } from "../pure/keytable.ts";
import { laneOrder } from "../pure/said.ts";
import { LANES_SHOWN, zoomed, type Bin, type Timeline } from "../pure/timeline.ts";
import { askedOnset, countTicks, first, firstItems, goAgent, goAnomaly, goTick, goViolation, item, last, tick, version, violated, type FirstItem } from "../store.ts";
import { Buttons, Copy } from "../parts/copy.tsx";
import { Fault } from "../parts/fault.tsx";
import { Agent, Name, T } from "../parts/text.tsx";
import { Tick } from "../parts/tick.tsx";
import { Found, grepOf, Ticks, type Filter } from "../parts/ticks.tsx";
import { Picture, type ShownLane } from "../parts/timeline.tsx";
import { useLinks, useTimeline, type Question } from "../parts/use-timeline.ts";
import { Line } from "../parts/value.tsx";
import { command } from "../pure/sh.ts";
import { Transcript, windowOf } from "./transcript.tsx";

/** Strips of verdicts that are drawn at most; all answers are in the list of what was asked. */
const STRIPS_MAX = 6;

/** Returns the words that name a question in a query and on the command line. */
export function questionOf(one: { predicate: { name: string; words: string } }): Question {
  const { name, words } = one.predicate;
  if (name !== "expression") return { name, predicate: name };
  const holds = words.replace(/^must hold /, "");
  return { name: holds, holds };
}

/** Runs of more ticks are asked with their progress in sight. */
const LONG = 10_000;
/** How many records of the run were read for the standard questions. */
const progress = signal<{ run: string; done: number } | null>(null);

/** Asks the standard questions line by line, with the progress of the server. */
async function askLong(run: string, abort: AbortSignal): Promise<BisectAll> {
  try {
    return await lines<BisectAll>(`${pathOf(run)}/first.jsonl`, abort, (one) => (progress.value = { run, done: one.done }));
  } finally {
    progress.value = null;
  }
}

/** Asks the standard questions by itself. */
export function useFirst(run: string): void {
  const changed = version.value;
  const end = last.value;
  useEffect(() => {
    if (end === null) void countTicks(run);
  }, [run, end === null]);
  const isLong = (end ?? 0) > LONG;
  useFollowed<BisectAll>(end === null ? null : JSON.stringify([run, isLong]), String(changed), {
    ask: (abort) => (isLong ? askLong(run, abort) : askOnce<BisectAll>(of(run, "first"), abort)),
    take: (document) => (first.value = { run, document, failure: null }),
    fail: (fault) => {
      if (fault instanceof Refused) first.value = { run, document: null, failure: fault.document };
    },
  });
}

export function RunScreen({ run }: { run: string }) {
  useFirst(run);
  const holds = query.value.get("holds");
  const predicate = query.value.get("predicate");
  const typed = useAnswer<Bisect>(holds ? of(run, "bisect", { holds }) : predicate ? of(run, "bisect", { predicate }) : null, version.value);
  const isTyped = Boolean(holds || predicate);
  useAskedOnset(isTyped ? (known(typed.value)?.onset ?? null) : null);
  const end = last.value;
  const here = tick.value;
  const range = end === null ? null : readRange(query.value.get("zoom"), end);
  const questions = useQuestions(holds, predicate);
  const loaded = useTimeline(run, range, end, questions, version.value);
  const view = query.value.get("view");
  const filter: Filter = { grep: query.value.get("grep"), path: query.value.get("writes"), type: query.value.getAll("type"), agent: query.value.getAll("lanes"), refusals: query.value.get("refusals") === "true" };
  const agents = filter.agent ?? [];
  const timeline = loaded.value.timeline;
  const bins = useMemo(() => new Map((timeline?.bins ?? []).filter((bin) => bin.from === bin.to).map((bin) => [bin.from, bin])), [timeline]);
  const links = useLinks(run, timeline);
  const chosenLanes = agents.join("\n");
  const isUnfolded = query.value.get("fold") === "false";
  const lanes = useMemo(() => shownLanes(timeline, agents, isUnfolded), [timeline, chosenLanes, isUnfolded]);
  useMoves(timeline, lanes.shown, bins);
  const pane = query.value.get("pane") === "list" ? "list" : "tick";
  const pinch = (factor: number) => {
    if (end === null || here === null) return;
    const next = zoomed(range ?? [0, end], here, factor, end);
    setQuery({ zoom: next ? `${next[0]}..${next[1]}` : null });
  };
  const id = useTickId(run, here);
  return (
    <div class="run">
      <div class="top">
        <Headline run={run} typed={isTyped ? typed.value : null} holds={holds} />
        <div class="asks">
          <Ask holds={holds} run={run} />
          <Buttons words={commandOf({ run, filter, view, tick: here, isGiven: query.value.get("t") !== null, end, holds, predicate })} citation={here !== null && id ? `${run}@${here} ${id}` : null} />
        </div>
      </div>
      {loaded.value.failure && <Fault of={loaded.value.failure} />}
      {timeline && here !== null && (
        <Picture
          of={timeline} links={links.value} tick={here} lanes={lanes.shown} folded={lanes.folded} isUnfolded={isUnfolded} onFold={(isFolded) => setQuery({ fold: isFolded ? null : "false" })} canZoomOut={range !== null} onTick={goTick} onStep={(by) => goTick(here + by)} onPinch={pinch}
          onZoom={(to) => setQuery({ zoom: to ? `${to[0]}..${to[1]}` : null })}
        />
      )}
      {!timeline && !loaded.value.failure && !(first.value?.run === run && first.value.failure) && <div class="picture skeleton" aria-hidden="true" />}
      <Bar view={view} pane={pane} timeline={timeline} filter={filter} />
      {end !== null && here !== null && (
        <div class={`split split-${view ?? "lanes"} show-${pane}`}>
          <div class="left">
            {isFiltered(filter) ? <Found run={run} filter={filter} tick={here} version={version.value} onTick={goTick} />
              : view === "transcript" ? <Transcript run={run} tick={here} last={end} version={version.value} onTick={goTick} />
              : <Ticks run={run} last={end} tick={here} version={version.value} onTick={goTick} isWide={view === "list"} bins={bins} />}
          </div>
          <div class="right"><Tick run={run} tick={here} /></div>
        </div>
      )}
    </div>
  );
}

type Looked = { run: string; filter: Filter; view: string | null; tick: number | null; isGiven: boolean; end: number | null; holds: string | null; predicate: string | null };

/** The command that prints what is shown: what was found, the turns in sight, the tick that was chosen, else the question. */
function commandOf({ run, filter, view, tick, isGiven, end, holds, predicate }: Looked): string[] {
  const grep = grepOf(filter.grep);
  const agents = (filter.agent ?? []).flatMap((one) => ["--agent", one]);
  const types = (filter.type ?? []).flatMap((one) => ["--type", one]);
  if (isFiltered(filter)) return ["dendrer", "log", run, ...types, ...agents, ...(filter.path ? ["--path", filter.path] : []), ...(grep ? ["--grep", grep] : []), ...(filter.refusals ? ["--refusals"] : [])];
  if (view === "transcript" && tick !== null && end !== null) {
    const { from, to } = windowOf(tick, end);
    return ["dendrer", "log", `${run}@${from}..${to}`, "--transcript"];
  }
  if (isGiven && tick !== null) return ["dendrer", "show", `${run}@${tick}`];
  return ["dendrer", "bisect", run, ...(holds ? ["--holds", holds] : predicate ? ["--predicate", predicate] : ["--all-of", "standard"])];
}

function useTickId(run: string, here: number | null): string | null {
  const answer = useAnswer<{ id: string; tick: number | null }>(here === null ? null : `${pathOf(run)}/t/${here}/show.json?provenance=true`);
  return answer.value.state === "there" ? answer.value.document.id : null;
}

/** The lane of a tick, else the one with the nearest mark. */
function nearest(of: Timeline, lanes: readonly number[], tick: number): number | null {
  let found: { lane: number; far: number } | null = null;
  for (const bin of of.bins) {
    const far = tick < bin.from ? bin.from - tick : tick > bin.to ? tick - bin.to : 0;
    for (const lane of lanes) if ((bin.lanes[lane] ?? 0) > 0 && (found === null || far < found.far)) found = { lane, far };
  }
  return found?.lane ?? null;
}

/** Takes the onset of the question that was typed while its screen is shown. */
function useAskedOnset(onset: number | null): void {
  useEffect(() => {
    askedOnset.value = onset;
    return () => {
      askedOnset.value = null;
    };
  }, [onset]);
}

/** The questions whose verdicts are drawn: the one that was typed, else the standard ones, those with an onset first. */
function useQuestions(holds: string | null, predicate: string | null): Question[] {
  return useMemo<Question[]>(() => {
    if (holds) return [{ name: holds, holds }];
    if (predicate) return [{ name: predicate, predicate }];
    const bad = violated.value.map(questionOf);
    const others = firstItems.value.map(questionOf).filter((one) => !bad.some((each) => each.name === one.name));
    return [...bad, ...others].slice(0, STRIPS_MAX);
  }, [holds, predicate, violated.value, firstItems.value]);
}

/** Keys that go to another tick by what the picture has: the next bad one, or the nearest of the next lane. */
function useMoves(timeline: Timeline | null, shown: readonly ShownLane[], bins: ReadonlyMap<number, Bin>): void {
  const nextBad = (direction: 1 | -1) => {
    // Ticks that are drawn one by one are in sight; beyond them the server is asked.
    const at = tick.peek() ?? 0;
    const end = last.peek();
    const ticks = [...bins.values()].filter((bin) => bin.anomalies + bin.denied + bin.failed > 0).map((bin) => bin.from);
    const next = direction > 0 ? ticks.find((one) => one > at) : ticks.findLast((one) => one < at);
    if (next !== undefined) goTick(next);
    else if (bins.size === 0 || (end !== null && bins.size < end)) void goAnomaly(direction);
  };
  const toLane = (by: number) => {
    const here = tick.peek();
    if (!timeline || here === null) return;
    const drawn = shown.map(({ lane }) => lane);
    const own = nearest(timeline, drawn, here);
    const target = own === null ? drawn[0] : drawn[drawn.indexOf(own) + by];
    if (target === undefined) return;
    const agent = timeline.lanes[target]?.agent ?? null;
    const found = timeline.bins.filter((bin) => (bin.lanes[target] ?? 0) > 0).sort((a, b) => Math.abs(a.from - here) - Math.abs(b.from - here))[0];
    if (!found) return;
    if (found.from === found.to || agent === null) goTick(found.from);
    else void goAgent(agent, found.from);
  };
  useKeys({
    h: () => toLane(-1), l: () => toLane(1), n: () => nextBad(1), N: () => nextBad(-1), v: () => goViolation(1), V: () => goViolation(-1),
    Enter: () => document.getElementById("tab-panel")?.focus(),
  });
}

function isFiltered(filter: Filter): boolean {
  return Boolean(filter.grep) || Boolean(filter.path) || (filter.type ?? []).length > 0 || (filter.agent ?? []).length > 0 || filter.refusals === true;
}

/** The row between the picture and the list: views, filters, and in a narrow window the two parts as tabs. */
function Bar({ view, pane, timeline, filter }: { view: string | null; pane: string; timeline: Timeline | null; filter: Filter }) {
  const types = useMemo(() => [...new Set((timeline?.bins ?? []).flatMap((bin) => Object.keys(bin.types)))].sort(), [timeline]);
  const agents = useMemo(() => (timeline?.lanes ?? []).flatMap((one) => one.agent ?? []), [timeline]);
  const refusals = item.value?.refusals ?? 0;
  return (
    <div class="bar">
      <div class="views" role="group" aria-label="view">
        {(["lanes", "list", "transcript"] as const).map((one) => <button type="button" key={one} class="small" aria-pressed={(view ?? "lanes") === one} onClick={() => setQuery({ view: one === "lanes" ? null : one })}>{one}</button>)}
      </div>
      <FilterBar types={types} agents={agents} filter={filter} />
      {refusals > 0 && <button type="button" class="small" aria-pressed={filter.refusals} onClick={() => setQuery({ refusals: filter.refusals ? null : "true" })}>{refusals} refused lines</button>}
      <div class="panes" role="group" aria-label="part">
        <button type="button" class="small" aria-pressed={pane === "list"} onClick={() => setQuery({ pane: "list" })}>{view === "transcript" ? "transcript" : "ticks"}</button>
        <button type="button" class="small" aria-pressed={pane === "tick"} onClick={() => setQuery({ pane: null })}>tick</button>
      </div>
    </div>
  );
}

/** Lanes to draw, in order; without a choice the quietest beyond eight are folded. */
function shownLanes(of: Timeline | null, chosen: readonly string[], isUnfolded: boolean): { shown: ShownLane[]; folded: number[] } {
  if (!of) return { shown: [], folded: [] };
  const all = laneOrder(of.lanes.map((one) => one.agent));
  if (chosen.length > 0) return { shown: all.filter(({ lane }) => chosen.includes(of.lanes[lane]?.agent ?? "")), folded: [] };
  // The document has the lane with the most transitions first.
  const isQuiet = (lane: number): boolean => !isUnfolded && lane >= LANES_SHOWN;
  return { shown: all.filter(({ lane }) => !isQuiet(lane)), folded: all.filter(({ lane }) => isQuiet(lane)).map(({ lane }) => lane) };
}

function Headline({ run, typed, holds }: { run: string; typed: Answer<Bisect> | null; holds: string | null }) {
  if (typed?.state === "failed") return <div class="headline"><h1 tabIndex={-1}><Name of={run} /></h1><Fault of={typed.failure} expression={holds} /></div>;
  const document = typed ? known(typed) : null;
  if (typed && !document) return <div class="headline"><h1 tabIndex={-1} aria-busy="true">asking ..</h1></div>;
  const all = first.value && first.value.run === run ? first.value : null;
  if (!typed && all?.failure) return <div class="headline"><h1 tabIndex={-1}><Name of={run} /></h1><Fault of={all.failure} /></div>;
  if (!typed && !all?.document) return <div class="headline"><h1 tabIndex={-1} aria-busy="true">asking the standard questions{progress.value?.run === run ? `: ${progress.value.done.toLocaleString("en")} of ` : " about "}{last.value === null ? "this run" : `${last.value.toLocaleString("en")} ticks`} ..</h1><p class="dim">everything else can be used meanwhile</p></div>;
  const bad = document ? document : violated.value[0];
  const caveat = document?.caveat ?? all?.document?.caveat;
  if (!bad || bad.onset === null) return <NotViolated run={run} items={document ? [document as unknown as FirstItem] : firstItems.value} caveat={caveat} />;
  return <Violated run={run} of={bad} isTyped={typed !== null} caveat={caveat} />;
}

function NotViolated({ run, items, caveat }: { run: string; items: readonly FirstItem[]; caveat: string | undefined }) {
  const uncertain = items.filter((one) => one.outcome !== "never");
  return (
    <div class="headline">
      <h1 tabIndex={-1}>{items.length === 0 ? <Name of={run} /> : uncertain.length > 0 ? "NO FIRST VIOLATION IS KNOWN" : items.length === 1 ? "NEVER VIOLATED" : `NONE OF ${items.length} QUESTIONS IS VIOLATED`}</h1>
      <ul class="asked">
        {items.map((one) => (
          <li key={one.predicate.digest}>
            {one.outcome === "never" ? <b class="ok-text">ok</b> : one.outcome === "recovers" ? <b class="warn-text">recovers</b> : <span class="mark mark-unknown"><b>{one.outcome === "uncertain" ? "unknown" : one.outcome}</b></span>}{" "}
            <T of={questionOf(one).name} limit={200} />
            {one.reasons?.slice(0, 2).map((reason) => <span class="dim" key={reason.tick}> ticks {reason.tick}..{reason.to}: <T of={reason.why} limit={200} /></span>)}
            {one.outcome === "recovers" && Array.isArray(one.recoveries) && <span class="dim"> {one.recoveries.slice(0, 6).map((part) => `${part[0]}..${part[1]} ${part[2]}`).join(", ")}</span>}
          </li>
        ))}
      </ul>
      {caveat && <p class="dim"><T of={caveat} /></p>}
    </div>
  );
}

function Violated({ run, of: bad, isTyped, caveat }: { run: string; of: FirstItem | Bisect; isTyped: boolean; caveat: string | undefined }) {
  const question = questionOf(bad);
  const asked = question.holds !== undefined ? { holds: question.holds } : { predicate: question.predicate };
  const detail = useAnswer<Bisect>(of(run, "bisect", asked), version.value);
  const full = known(detail.value);
  const moved = full?.onset === bad.onset ? full?.moved?.[0] : undefined;
  const seen = moved ? full?.first_seen?.find((one) => one.place === moved.place && one.write === moved.tick) : undefined;
  const others = isTyped ? [] : violated.value.filter((one) => one.predicate.digest !== bad.predicate.digest);
  const suggestion = full?.suggestion;
  const onset = bad.onset ?? 0;
  return (
    <div class="headline">
      <h1 tabIndex={-1}>
        <a class="onset" href={pathOf(run) + queryOf({ ...asked, ...(isTyped ? {} : { predicate: null, holds: null }), t: onset })} onClick={(event) => { event.preventDefault(); goTick(onset); }}>FIRST VIOLATED AT TICK {onset}</a>{" "}
        <span class="certainty">({bad.certainty})</span> <span class="predicate"><T of={question.name} limit={120} /></span>
      </h1>
      <p class="reason"><Agent of={bad.origin?.agent} author={bad.origin?.author} />: <T of={bad.origin?.summary ?? ""} limit={400} /></p>
      <p class="cause">
        {moved ? (
          <>
            largest write: <code><T of={written(moved.place)} limit={100} /></code> {"before" in moved && <Line value={moved.before} limit={40} />} <span aria-label="to">-&gt;</span> <Line value={moved.after} limit={40} />
            {full?.looked && full.looked.writes > 1 && ` of ${full.looked.writes} writes`}
            {moved.tick !== onset && <> at <a href={pathOf(run) + queryOf({ t: moved.tick })}>tick {moved.tick}</a></>}
            {seen && <>; first seen ({seen.certainty}): <Line value={seen.value} limit={40} /> {seen.tick === null ? `not before tick ${seen.write}` : <>at <a href={pathOf(run) + queryOf({ t: seen.tick })}>tick {seen.tick}</a>{seen.agent && <> by <Agent of={seen.agent} /></>}</>}</>}
          </>
        ) : detail.value.state === "asking" ? <span class="dim">asking for the largest write ..</span> : <span class="dim">no numbers to compare: see what the tick wrote</span>}
      </p>
      <p class="also">
        {others.length > 0 && <span>also at {others.map((one, at) => <span key={one.predicate.digest}>{at > 0 && ", "}<a href={pathOf(run) + queryOf({ t: one.onset })} onClick={(event) => { event.preventDefault(); goTick(one.onset ?? 0); }}>{one.onset} <T of={questionOf(one).name} limit={60} /></a></span>)}</span>}
        <span class="acts">
          <a href={pathOf(run, "bisect") + queryOf({ ...asked, t: onset })}>probes and chain</a>
          {moved && <a href={pathOf(run, "why", onset) + queryOf({ path: moved.place })}>why</a>}
          {suggestion && <Copy what="command" text={command(suggestion.argv)} label={`what if: fork at ${onset - 1}`} />}
        </span>
      </p>
      {caveat && <p class="dim"><T of={caveat} /></p>}
    </div>
  );
}

function Ask({ holds, run }: { holds: string | null; run: string }) {
  const text = useSignal(holds ?? "");
  useEffect(() => {
    text.value = holds ?? "";
  }, [holds, run]);
  const submit = (event: Event) => {
    event.preventDefault();
    setQuery({ holds: text.value.trim(), predicate: null, t: null });
  };
  return (
    <form class="ask" onSubmit={submit}>
      <label for="ask">ask: what must hold?</label>
      <input id="ask" value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} placeholder="state.risk_score <= 0.75" autocomplete="off" spellcheck={false} />
      <button type="submit" class="small">ask</button>
      {holds && <button type="button" class="small" onClick={() => setQuery({ holds: null, t: null })}>clear</button>}
    </form>
  );
}

function FilterBar({ types, agents, filter }: { types: string[]; agents: string[]; filter: Filter }) {
  const search: Search = { text: filter.grep ?? "", type: [...(filter.type ?? [])], agent: [], path: filter.path ?? null };
  const chosenType = search.type[0] ?? "";
  const chosenAgents = filter.agent ?? [];
  // Choices that have a list of their own are not written twice.
  const typed = writeSearch({ ...search, type: search.type.slice(1) });
  const text = useSignal(typed);
  useEffect(() => {
    text.value = typed;
  }, [typed]);
  const submit = () => {
    const found = readSearch(text.value);
    const own = (chosen: readonly string[], given: readonly string[]): string[] => [...new Set([...chosen.filter(Boolean), ...given])];
    setQuery({ grep: found.text, type: own([chosenType], found.type), lanes: own(chosenAgents, found.agent), writes: found.path });
  };
  // A word of the address is a choice too, whatever is drawn.
  const typesAndChosen = chosenType && !types.includes(chosenType) ? [...types, chosenType] : types;
  return (
    <form class="filters" role="search" onSubmit={(event) => { event.preventDefault(); submit(); }}>
      <label for="grep" class="hidden">search this run by a regular expression</label>
      <input id="grep" type="search" value={text.value} placeholder="regex, type: agent: path:" title="a regular expression in which capitals count; (?i) in front ignores them; type:, agent: and path: are filters" onInput={(event) => (text.value = event.currentTarget.value)} />
      <label for="type" class="hidden">type</label>
      <select id="type" value={chosenType} onChange={(event) => setQuery({ type: event.currentTarget.value })}>
        <option value="">every type</option>
        {typesAndChosen.map((one) => <option key={one} value={one}>{plain(one)}</option>)}
      </select>
      <label for="agent" class="hidden">agent</label>
      <select id="agent" value="" onChange={(event) => setQuery({ lanes: [...chosenAgents, event.currentTarget.value] })}>
        <option value="">{chosenAgents.length > 0 ? "one more agent" : "every agent"}</option>
        {agents.filter((one) => !chosenAgents.includes(one)).map((one) => <option key={one} value={one}>{plain(agentName(one)).slice(0, 60)}</option>)}
      </select>
      {chosenAgents.map((one) => <button type="button" key={one} class="chip" onClick={() => setQuery({ lanes: chosenAgents.filter((kept) => kept !== one) })} aria-label={`without the lane ${plain(agentName(one))}`}><T of={agentName(one).slice(0, 40)} isOneLine /> ×</button>)}
      {isFiltered(filter) && <button type="button" class="small" onClick={() => setQuery({ grep: null, type: null, lanes: null, refusals: null, writes: null })}>clear</button>}
    </form>
  );
}
