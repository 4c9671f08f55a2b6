// Two runs on one axis: what is shared, the first difference with its cause, and each pair that differs.

import { useSignal } from "@preact/signals";
import { list, of, useAnswer } from "../api.ts";
import type { Diff } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { plain } from "../pure/invisible.ts";
import { written } from "../pure/places.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { partsOf, type Part } from "../pure/words.ts";
import { runs, version } from "../store.ts";
import { Buttons } from "../parts/copy.tsx";
import { Answered } from "../parts/fault.tsx";
import { Agent, Name, T } from "../parts/text.tsx";
import { Line, Missing } from "../parts/value.tsx";

const KINDS = ["structural", "semantic", "confidence", "outcome"] as const;
type Item = Exclude<Diff["items"], number>[number];
type Change = Item["changes"][number];
const PAGE = 200;
/** Pairs that are asked for at most; the counts are of all. */
const PAIRS_MAX = 2000;

export function DiffScreen({ run }: { run: string }) {
  const other = query.value.get("with");
  const ignore = query.value.getAll("ignore");
  const align = query.value.get("align");
  const types = query.value.getAll("type");
  const answer = useAnswer<Diff>(other ? of(run, "diff", { with: other, align, ignore, type: types, limit: PAIRS_MAX, from: query.value.get("from"), to: query.value.get("to") }) : null, version.value);
  const text = useSignal("");
  const words = ["dendrer", "diff", run, other ?? "OTHER", ...(align ? ["--align", align] : []), ...ignore.flatMap((one) => ["--ignore", one]), ...types.flatMap((one) => ["--type", one])];
  return (
    <div class="diff">
      <div class="top"><h1 tabIndex={-1}>Compare <Name of={run} /> with {other ? <Name of={other} /> : ".."}</h1><Buttons words={words} /></div>
      <form class="filters" onSubmit={(event) => { event.preventDefault(); if (text.value.trim()) setQuery({ ignore: [...ignore, text.value.trim()] }); text.value = ""; }}>
        <label for="with">with</label>
        <select id="with" value={other ?? ""} onChange={(event) => setQuery({ with: event.currentTarget.value })}>
          <option value="">choose a run</option>
          {other && !list(runs.value?.items).some((one) => one.name === other) && <option value={other}>{plain(other)}</option>}
          {list(runs.value?.items).filter((one) => one.name !== run).map((one) => <option key={one.name} value={one.name}>{plain(one.name)}</option>)}
        </select>
        <label for="align">align by</label>
        <select id="align" value={align ?? "tick"} onChange={(event) => setQuery({ align: event.currentTarget.value === "tick" ? null : event.currentTarget.value })}>
          {["tick", "content", "step"].map((one) => <option key={one} value={one}>{one}</option>)}
        </select>
        <label for="ignore">ignore</label>
        <input id="ignore" value={text.value} placeholder="a member, as metrics" onInput={(event) => (text.value = event.currentTarget.value)} />
        <button type="submit" class="small">add</button>
        {ignore.map((one) => <button type="button" key={one} class="chip" onClick={() => setQuery({ ignore: ignore.filter((kept) => kept !== one) })} aria-label={`no longer ignore ${plain(one)}`}><T of={one} limit={60} /> ×</button>)}
      </form>
      {!other ? <p>Choose the run to compare with.</p> : <Answered answer={answer.value}>{(diff) => <Differences of={diff} />}</Answered>}
    </div>
  );
}

function Differences({ of: diff }: { of: Diff }) {
  const kinds = query.value.getAll("kind");
  const shown = useSignal(PAGE);
  const all = list(diff.items);
  const rows = kinds.length === 0 ? all : all.filter((item) => item.kinds.some((kind) => kinds.includes(kind)));
  return (
    <>
      <p class="first-difference">
        {diff.first ? <><b>FIRST DIFFERENCE</b> ({diff.certainty}) {side(diff.a, diff.first.a, "a")} {side(diff.b, diff.first.b, "b")} {diff.first.cause && <span class="reason">cause: <T of={diff.first.cause} limit={300} /></span>}</> : <b>{diff.certainty === "exact" ? "NO DIFFERENCE" : "NO DIFFERENCE IS KNOWN"}</b>}
      </p>
      {diff.fork_point !== null && <p class="shared">ticks 1..{diff.fork_point} identical, same hashes</p>}
      {diff.note && <p class="note">note: <T of={diff.note} /></p>}
      <div class="chips" role="group" aria-label="kinds of difference">
        {KINDS.map((kind) => <button type="button" key={kind} class="chip" aria-pressed={kinds.includes(kind)} onClick={() => setQuery({ kind: kinds.includes(kind) ? kinds.filter((one) => one !== kind) : [...kinds, kind] })}>{kind} {diff.counts[kind] ?? 0}</button>)}
        <span class="dim">{diff.pairs} pairs, {diff.differ} differ, {diff.only_a} only in a, {diff.only_b} only in b{diff.not_comparable > 0 && `, ${diff.not_comparable} not comparable`}; {diff.ignored.length} paths ignored{diff.ignored.length > 0 && <>: {diff.ignored.map((one) => <code key={one.path}><T of={one.path} limit={60} />{one.met ? "" : " (not met)"} </code>)}</>}</span>
      </div>
      {diff.outcome && (
        <details class="outcome" open={diff.outcome.changes.length <= 3}>
          <summary>outcome: <b>{diff.outcome.state}</b> {diff.outcome.why && <T of={diff.outcome.why} limit={200} />} <span class="dim">{diff.outcome.changes.length} places, tick {diff.outcome.a_tick} against {diff.outcome.b_tick}</span></summary>
          {diff.outcome.changes.map((change) => <One key={change.path} of={change} />)}
        </details>
      )}
      <div class="scroll">
        <table class="list diff-table">
          <thead><tr><th scope="col" class="num">a</th><th scope="col"><Name of={diff.a} /></th><th scope="col" class="num">b</th><th scope="col"><Name of={diff.b} /></th><th scope="col">differs</th></tr></thead>
          <tbody>{rows.slice(0, shown.value).map((item, at) => <Pair key={at} a={diff.a} b={diff.b} of={item} />)}</tbody>
        </table>
      </div>
      {rows.length > shown.value && <button type="button" class="more" onClick={() => (shown.value += PAGE)}>{rows.length - shown.value} more</button>}
      {!diff.complete && <p class="warn-text">The list has {all.length.toLocaleString("en")} pairs and is cut: <i>Copy command</i> lists every one.</p>}
    </>
  );
}

function side(run: string, tick: number | null, name: string) {
  return tick === null ? <span>{name}: none</span> : <a href={pathOf(run) + queryOf({ t: tick })}>{name}: tick {tick}</a>;
}

/** A text of one side; words that the other side does not have are marked. */
function Side({ parts, side }: { parts: readonly Part[]; side: "a" | "b" }) {
  return <code class="v v-text">{parts.map((one, at) => (one.isOwn ? (side === "a" ? <del key={at}><T of={one.text} limit={300} /></del> : <ins key={at}><T of={one.text} limit={300} /></ins>) : <T key={at} of={one.text} limit={300} />))}</code>;
}

/** Texts that are compared word by word at most. */
const TEXT_MAX = 20_000;

function One({ of: change }: { of: Change }) {
  const { a, b } = change;
  if (typeof a === "string" && typeof b === "string" && a.length + b.length <= TEXT_MAX) {
    const parts = partsOf(a, b);
    return <div class="one"><code><T of={written(change.path)} limit={120} /></code> <Side parts={parts.a} side="a" /> <span aria-label="against">|</span> <Side parts={parts.b} side="b" /> <span class="dim">{change.kind}</span></div>;
  }
  return (
    <div class="one"><code><T of={written(change.path)} limit={120} /></code> {"a" in change ? <Line value={change.a} limit={80} /> : <Missing kind="absent" />} <span aria-label="against">|</span> {"b" in change ? <Line value={change.b} limit={80} /> : <Missing kind="absent" />} <span class="dim">{change.kind}</span></div>
  );
}

function Pair({ a, b, of: item }: { a: string; b: string; of: Item }) {
  const isOnly = !item.a || !item.b;
  return (
    <>
      <tr class={isOnly ? (item.a ? "cut" : "add") : "alter"}>
        <td class="num">{item.a_tick !== null && <a href={pathOf(a) + queryOf({ t: item.a_tick })}>{item.a_tick}</a>}</td>
        <td>{item.a ? <><Agent of={item.a.agent} /> <T of={item.a.summary} limit={200} /></> : <span class="dim">(none)</span>}</td>
        <td class="num">{item.b_tick !== null && <a href={pathOf(b) + queryOf({ t: item.b_tick })}>{item.b_tick}</a>}</td>
        <td>{item.b ? <><Agent of={item.b.agent} /> <T of={item.b.summary} limit={200} /></> : <span class="dim">(none)</span>}</td>
        <td>{item.kinds.join(", ")}</td>
      </tr>
      {(item.changes.length > 0 || item.not_comparable.length > 0) && (
        <tr class="inner-row"><td /><td colSpan={4}>
          {item.changes.map((change) => <One key={change.path} of={change} />)}
          {item.not_comparable.map((one) => <div key={one.path}><code><T of={written(one.path)} /></code> {one.redacted ? <span class="mark mark-closed"><b>redacted</b> without a tag to compare</span> : <Missing kind="closed" code={`in ${one.closed_in.join(" and ")}`} />}</div>)}
        </td></tr>
      )}
    </>
  );
}

