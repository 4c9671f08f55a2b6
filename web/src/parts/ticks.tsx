// The list of ticks: rows of windows of the log, of which only those in sight are loaded and drawn.

import { signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { askOnce, list, of, Refused } from "../api.ts";
import type { Log } from "../documents.ts";
import { escaped } from "../pure/keytable.ts";
import { pages, topFor, windowOf } from "../pure/list.ts";
import { signOf, signOfType, WORDS, type Bin } from "../pure/timeline.ts";
import { agentName } from "../pure/names.ts";
import { plain } from "../pure/invisible.ts";
import { Agent, Name, T } from "./text.tsx";

export type Row = Exclude<Log["items"], number>[number];
export type Filter = { type?: readonly string[] | null; grep?: string | null; path?: string | null; agent?: readonly string[] | null; refusals?: boolean };
const PAGE = 200;

/** Counts pages that arrived, so that rows are drawn again. */
const arrived = signal(0);
const loaded = new Map<string, readonly Row[] | "asked">();

function rowsOf(run: string, page: number, last: number, version: number): readonly Row[] | null {
  const isWhole = (page + 1) * PAGE - 1 <= last;
  const key = JSON.stringify([run, page, isWhole ? 0 : [last, version]]);
  const found = loaded.get(key);
  if (found === undefined) {
    loaded.set(key, "asked");
    if (loaded.size > 60) loaded.delete(loaded.keys().next().value ?? "");
    askOnce<Log>(of(run, "log", { from: page * PAGE, to: Math.min(last, (page + 1) * PAGE - 1), limit: PAGE })).then(
      (log) => {
        loaded.set(key, list(log.items));
        arrived.value += 1;
      },
      () => loaded.delete(key),
    );
  }
  if (found && found !== "asked") return found;
  // Rows of the shorter run stay in sight until the longer one is read.
  const before = [...loaded].reverse().find(([other, rows]) => rows !== "asked" && other.startsWith(JSON.stringify([run, page]).slice(0, -1)));
  return before && before[1] !== "asked" ? before[1] : null;
}

type Props = { run: string; last: number; tick: number; version: number; onTick: (tick: number) => void; isWide: boolean; bins: ReadonlyMap<number, Bin> };

/** All ticks of a run. */
export function Ticks({ run, last, tick, version, onTick, isWide, bins }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const view = useSignal(300);
  const rowHeight = 28;
  const rows = last + 1;
  arrived.value;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => (view.value = element.clientHeight));
    observer.observe(element);
    view.value = element.clientHeight;
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const wanted = topFor(tick, rows, rowHeight, element.clientHeight, element.scrollTop);
    if (wanted !== null) element.scrollTop = wanted;
    top.value = element.scrollTop;
  }, [tick, rows, view.value]);
  const part = windowOf(rows, rowHeight, view.value, top.value);
  const found = new Map<number, Row>();
  for (const page of pages(part.first, part.first + part.count, PAGE)) {
    for (const row of rowsOf(run, page, last, version) ?? []) if (row.tick !== null && row.kind !== "refusal") found.set(row.tick, row);
  }
  const key = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    onTick(tick + step);
  };
  const drawn = Array.from({ length: part.count }, (_, at) => part.first + at);
  return (
    <div class={`ticks ${isWide ? "ticks-wide" : ""}`} ref={box} onScroll={(event) => (top.value = event.currentTarget.scrollTop)}>
      <div class="ticks-full" style={{ height: `${part.height}px` }}>
        <div
          class="ticks-rows" role="grid" aria-label="ticks" aria-rowcount={rows} tabIndex={0} onKeyDown={key}
          aria-activedescendant={drawn.includes(tick) ? `row-${tick}` : undefined} style={{ transform: `translateY(${part.offset}px)` }}
        >
          {drawn.map((one) => <TickRow key={one} at={one} row={found.get(one)} isChosen={one === tick} isWide={isWide} bin={bins.get(one)} onTick={onTick} isLoaded={found.size > 0 && pages(one, one, PAGE).every((page) => rowsOf(run, page, last, version) !== null)} />)}
        </div>
      </div>
    </div>
  );
}

type RowProps = { at: number; row: Row | undefined; isChosen: boolean; isWide: boolean; bin: Bin | undefined; onTick: (tick: number) => void; isLoaded: boolean };

function TickRow({ at, row, isChosen, isWide, bin, onTick, isLoaded }: RowProps) {
  const sign = bin && at > 0 ? signOf(bin) : row?.anomalies ? "anomaly" : signOfType(row?.type ?? "");
  const isBad = sign === "denied" || sign === "failed" || sign === "anomaly";
  return (
    <div id={`row-${at}`} class={`tick-row ${isChosen ? "chosen" : ""} ${isBad ? `bad bad-${sign}` : ""}`} role="row" aria-selected={isChosen} aria-rowindex={at + 1} onClick={() => onTick(at)}>
      <span role="gridcell" class="n">{at}</span>
      <span role="gridcell" class="agent">{at === 0 ? <Name of="begin" /> : row && <Agent of={row.agent} author={row.author} />}</span>
      {isWide && <span role="gridcell" class="type"><Name of={row?.type ?? (at === 0 ? "run" : "")} /></span>}
      {isWide && <span role="gridcell" class="sure">{row?.confidence === null || row?.confidence === undefined ? "" : row.confidence.toFixed(2)}</span>}
      <span role="gridcell" class="what">
        {isBad && <b class="word">{WORDS[sign].toUpperCase()} </b>}
        {row ? (row.summary === "" ? <span class="dim">{plain(row.type ?? row.kind)}</span> : <T of={row.summary.slice(0, 300)} />) : at === 0 ? <span class="dim">the run begins</span> : isLoaded ? <span class="mark mark-gap"><b>no record</b></span> : <span class="dim">..</span>}
        {row?.unknown && <span class="mark mark-unknown"><b>unknown</b></span>}
      </span>
    </div>
  );
}

/** Searches that are no regular expression: they are searched as text. */
const asText = signal<ReadonlySet<string>>(new Set());

/** Returns what the program is asked for: the expression, or the text with its signs escaped. */
export function grepOf(grep: string | null | undefined): string | null {
  if (!grep) return null;
  return asText.value.has(grep) ? escaped(grep) : grep;
}

/** Whether a question was refused because its search is no regular expression. */
function isNoExpression(fault: unknown): boolean {
  return fault instanceof Refused && fault.document.code === "E0106" && fault.document.message.includes("--grep");
}

/** Ticks that fit a filter, a page at a time. */
export function Found({ run, filter, tick, version, onTick }: { run: string; filter: Filter; tick: number; version: number; onTick: (tick: number) => void }) {
  const state = useSignal<{ rows: readonly Row[]; total: number | null; next: number | null; fault: string | null }>({ rows: [], total: null, next: 0, fault: null });
  const words = JSON.stringify(filter);
  const ask = async (from: number, before: readonly Row[], isOver: () => boolean): Promise<void> => {
    const grep = grepOf(filter.grep);
    try {
      const log = await askOnce<Log>(of(run, "log", { from, limit: PAGE, grep, path: filter.path, type: filter.type, agent: filter.agent, refusals: filter.refusals }));
      if (isOver()) return;
      const rows = [...before, ...list(log.items)];
      const end = list(log.items).findLast((one) => one.tick !== null)?.tick ?? null;
      state.value = { rows, total: before.length > 0 ? state.value.total : log.total, next: log.complete || list(log.items).length < PAGE || end === null ? null : end + 1, fault: null };
    } catch (fault) {
      if (isOver()) return;
      if (filter.grep && grep === filter.grep && isNoExpression(fault)) {
        asText.value = new Set([...asText.peek(), filter.grep]);
        return ask(from, before, isOver);
      }
      state.value = { ...state.value, fault: (fault as Error).message };
    }
  };
  useEffect(() => {
    let isOver = false;
    void ask(0, [], () => isOver);
    return () => {
      isOver = true;
    };
  }, [run, words, version]);
  const { rows, total, next, fault } = state.value;
  return (
    <div class="ticks ticks-wide found" tabIndex={0} role="region" aria-label="ticks that fit the search">
      <p class="count" role="status" aria-busy={!fault && total === null}>{fault ? <T of={fault} /> : total === null ? "searching .." : `${rows.length.toLocaleString("en")}${next === null ? "" : " or more"} of ${total.toLocaleString("en")} ticks ${describe(filter)}`}</p>
      {filter.grep && <p class="dim search-note">{asText.value.has(filter.grep) ? <><b>searched as text</b>: it is no regular expression. </> : "A regular expression. "}Capitals count; <code>(?i)</code> in front ignores them.</p>}
      <div role="grid" aria-label="ticks that fit">
        {rows.map((row) => row.tick !== null && row.kind !== "refusal"
          ? <TickRow key={row.id} at={row.tick} row={row} isChosen={row.tick === tick} isWide bin={undefined} onTick={onTick} isLoaded />
          : <div key={row.id} class="tick-row bad" role="row"><span role="gridcell" class="n">-</span><span role="gridcell" class="agent"><Agent of={row.agent} author={row.author} /></span><span role="gridcell" class="type"><Name of={row.type} /></span><span role="gridcell" class="sure" /><span role="gridcell" class="what"><b class="word">REFUSED </b><T of={row.summary.slice(0, 300)} /></span></div>)}
      </div>
      {next !== null && rows.length > 0 && <button type="button" class="more" onClick={() => ask(next, rows, () => false)}>more</button>}
    </div>
  );
}

function describe(filter: Filter): string {
  const fits = [filter.path && `writes of ${plain(filter.path)}`, ...(filter.type ?? []).map((one) => `type ${plain(one)}`), ...(filter.agent ?? []).map((one) => `agent ${plain(agentName(one))}`)];
  const search = filter.grep ? (asText.value.has(filter.grep) ? `have the text "${plain(filter.grep)}"` : `match /${plain(filter.grep)}/`) : "";
  const others = fits.filter(Boolean).join(", ");
  return [others && `fit ${others}`, search, filter.refusals && "with refused lines"].filter(Boolean).join(", ");
}
