// The run read as a conversation: who said what, calls with their answers. Text is shown as its source.

import { useEffect } from "preact/hooks";
import { known, list, of, useAnswer } from "../api.ts";
import type { Transcript as Document } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { ofText } from "../pure/json.ts";
import { isAt, partsOf, rowsOf, type Row, type Said } from "../pure/said.ts";
import { Answered } from "../parts/fault.tsx";
import { Agent, T } from "../parts/text.tsx";
import { Fold, Line, Text, Tree } from "../parts/value.tsx";

/** Ticks of one window. */
const PAGE = 100;

/** The ticks that are shown around one. */
export function windowOf(tick: number, last: number): { from: number; to: number } {
  const page = Math.floor(tick / PAGE);
  return { from: Math.max(1, page * PAGE), to: Math.min(last, (page + 1) * PAGE - 1) };
}

type Props = { run: string; tick: number; last: number; version: number; onTick: (tick: number) => void };

export function Transcript({ run, tick, last, version, onTick }: Props) {
  const page = Math.floor(tick / PAGE);
  const { from, to } = windowOf(tick, last);
  const answer = useAnswer<Document>(of(run, "transcript", { from, to, limit: PAGE }), version);
  const isUnfolded = query.value.get("unfold") === "true";
  const document_ = known(answer.value);
  useEffect(() => {
    const row = document.getElementById(`said-${tick}`);
    const box = row?.closest<HTMLElement>(".transcript");
    if (row && box && (row.offsetTop < box.scrollTop || row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight)) box.scrollTop = row.offsetTop - box.clientHeight / 3;
  }, [tick, document_]);
  return (
    <div class="transcript" tabIndex={0} role="region" aria-label="transcript">
      <p class="dim">
        ticks {from.toLocaleString("en")} to {to.toLocaleString("en")} of {last.toLocaleString("en")}{" "}
        {page > 0 && <button type="button" class="small" onClick={() => onTick(page * PAGE - 1)}>earlier</button>} {to < last && <button type="button" class="small" onClick={() => onTick((page + 1) * PAGE)}>later</button>}
      </p>
      <Answered answer={answer.value}>
        {(one) => {
          const parts = partsOf(rowsOf(list(one.items)));
          const folded = parts.filter((part) => "rows" in part);
          return (
            <>
              {folded.length > 0 && <p><button type="button" class="small" aria-pressed={isUnfolded} onClick={() => setQuery({ unfold: isUnfolded ? null : "true" })}>unfold sub-agents ({folded.reduce((sum, part) => sum + ("rows" in part ? part.rows.length : 0), 0)} turns)</button></p>}
              {parts.length === 0 && <p class="dim">Nothing is recorded in these ticks.</p>}
              <ol>
                {parts.map((part, at) => ("row" in part
                  ? <Turn key={at} of={part.row} tick={tick} onTick={onTick} />
                  : (
                    <li key={at} class="group">
                      <details open={isUnfolded || part.rows.some((row) => isAt(row, tick))}>
                        <summary>{part.rows.length} turn{part.rows.length === 1 ? "" : "s"} of <T of={part.agents.join(", ")} limit={100} /></summary>
                        <ol>{part.rows.map((row, each) => <Turn key={each} of={row} tick={tick} onTick={onTick} />)}</ol>
                      </details>
                    </li>
                  )))}
              </ol>
            </>
          );
        }}
      </Answered>
    </div>
  );
}

function Turn({ of: { item, answers }, tick, onTick }: { of: Row; tick: number; onTick: (tick: number) => void }) {
  const isChosen = isAt({ item, answers }, tick);
  return (
    <li id={`said-${isChosen ? tick : item.tick}`} class={`said-item role-${item.role} kind-${item.kind} ${isChosen ? "chosen" : ""}`} style={{ marginLeft: `${Math.min(6, Math.max(0, item.depth - 1)) * 16}px` }}>
      <Number_ of={item.tick} onTick={onTick} />
      <div class="body">
        <Words of={item} />
        {answers.map((one, at) => <div key={at} class="answer"><span aria-label="answer">-&gt;</span> {one.tick !== item.tick && <Number_ of={one.tick} onTick={onTick} />} <Output of={one} /></div>)}
      </div>
    </li>
  );
}

function Number_({ of: tick, onTick }: { of: number; onTick: (tick: number) => void }) {
  return <button type="button" class="n" onClick={() => onTick(tick)} aria-label={`tick ${tick}`}>{tick}</button>;
}

const BAD = new Set(["deny", "error", "failed", "denied", "timeout", "cancelled"]);

function Words({ of: item }: { of: Said }) {
  const isNamed = item.name !== null && item.name !== item.agent;
  return (
    <>
      <span class="who"><Agent of={item.agent} author={item.role} /> <span class="dim">{item.kind === "refusal" ? <b class="bad-text">REFUSED</b> : item.kind === "gap" ? <span class="mark mark-gap"><b>gap</b></span> : item.kind === "step" && item.step !== null ? "" : item.kind}{item.step !== null && ` step ${item.step}`}</span></span>
      {isNamed && (item.kind === "message" ? <span class="dim"> <T of={item.name ?? ""} limit={100} /></span> : <> <b><T of={item.name ?? ""} limit={100} /></b></>)}
      {item.params !== null && <> <Fold value={item.params} limit={200} /></>}
      {item.kind !== "result" && <Status of={item} />}
      {item.anomalies > 0 && <> <b class="warn-text">{item.anomalies} anomal{item.anomalies === 1 ? "y" : "ies"}</b></>}
      {item.changes > 0 && <span class="dim"> {item.changes} place{item.changes === 1 ? "" : "s"}</span>}
      {item.kind === "result" && item.of !== null && <span class="dim"> answer to the call of tick {item.of}</span>}
      {item.kind !== "result" && <Spoken of={item} />}
      {item.kind === "result" && <Output of={item} />}
    </>
  );
}

/** Draws the words of a turn: a text, or a value that was given instead. */
function Spoken({ of: item }: { of: Said }) {
  if (item.text !== null && ofText(item.text) !== null) return <Text of={item.text} limit={1200} />;
  if (item.json !== null && typeof item.json === "object") return <Tree value={item.json} />;
  return item.text !== null && item.text !== "" ? <Text of={item.text} limit={1200} /> : null;
}

function Status({ of: item }: { of: Said }) {
  return item.status === null ? null : <> <b class={BAD.has(item.status) ? "bad-text" : item.status === "interrupt" ? "warn-text" : "ok-text"}><T of={item.status} limit={40} /></b></>;
}

/** Draws an answer: its status, and the value that was given back. */
function Output({ of: item }: { of: Said }) {
  const value = item.output ?? item.text;
  return (
    <>
      <Status of={item} />
      {value !== null && value !== "" && (typeof value === "string" ? <Text of={value} limit={1200} /> : typeof value === "object" ? <Tree value={value} depth={1} /> : <> <Line value={value} /></>)}
    </>
  );
}
