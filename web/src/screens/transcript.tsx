// The run read as a conversation: who said what, calls with their answers. Text is shown as its source.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { askOnce, has, list, of } from "../api.ts";
import type { Log } from "../documents.ts";
import { T, Name } from "../parts/text.tsx";
import { Line, Tree } from "../parts/value.tsx";
import { isRecord } from "../pure/values.ts";

/** An item of the document `dendrer.transcript/1`. */
export type Said = {
  tick: number; kind: string; agent: string | null; role: string; depth?: number | null; text?: string | null; json?: unknown; name?: string | null; call_id?: string | null;
  params?: unknown; output?: unknown; status?: string | null; of?: number | null; changes?: number | null; anomalies?: number | null;
};
type Document = { items: Said[]; next: number | null };
const PAGE = 100;

/** Reads an item of the log, for a server without the document `transcript`. */
function ofLog(item: Exclude<Log["items"], number>[number]): Said {
  const content: Record<string, unknown> = isRecord((item as { content?: unknown }).content) ? ((item as { content?: Record<string, unknown> }).content ?? {}) : {};
  const intent = isRecord(content.intent) ? content.intent : {};
  const action = isRecord(content.action) ? content.action : null;
  const result = isRecord(content.result) ? content.result : null;
  const kind = result ? "result" : action ? "call" : item.type === "policy.decision" ? "decision" : item.kind === "refusal" ? "refusal" : "message";
  return {
    tick: item.tick ?? 0, kind, agent: item.agent, role: item.author === "user" || item.author === "kernel" || item.author === "runtime" ? item.author : "agent",
    text: typeof intent.description === "string" ? intent.description : typeof intent.content === "string" ? intent.content : kind === "message" || kind === "decision" ? item.summary : null,
    name: action && typeof action.tool === "string" ? action.tool : null, params: action?.params, output: result?.output, status: typeof result?.status === "string" ? result.status : null,
    changes: Array.isArray(content.delta) ? content.delta.length : null, anomalies: item.anomalies,
  };
}

export function Transcript({ run, tick, last, version, onTick }: { run: string; tick: number; last: number; version: number; onTick: (tick: number) => void }) {
  const page = Math.floor(tick / PAGE);
  const said = useSignal<{ page: number; items: Said[] } | null>(null);
  useEffect(() => {
    let isOver = false;
    (async () => {
      const range = { from: Math.max(1, page * PAGE), to: Math.min(last, (page + 1) * PAGE - 1), limit: PAGE };
      const items = (await has("/run/{run}/transcript.json"))
        ? (await askOnce<Document>(of(run, "transcript", { from: range.from, limit: PAGE }))).items.filter((one) => one.tick <= range.to)
        : list((await askOnce<Log>(of(run, "log", { ...range, full: true }))).items).map(ofLog);
      if (!isOver) said.value = { page, items };
    })().catch(() => {});
    return () => {
      isOver = true;
    };
  }, [run, page, version, last]);
  const items = said.value?.items ?? [];
  useEffect(() => {
    const row = document.getElementById(`said-${tick}`);
    const box = row?.closest<HTMLElement>(".transcript");
    if (row && box && (row.offsetTop < box.scrollTop || row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight)) box.scrollTop = row.offsetTop - box.clientHeight / 3;
  }, [tick, said.value]);
  return (
    <div class="transcript" tabIndex={0} role="region" aria-label="transcript">
      <p class="dim">ticks {Math.max(1, page * PAGE)} to {Math.min(last, (page + 1) * PAGE - 1)} of {last} {page > 0 && <button type="button" class="small" onClick={() => onTick(page * PAGE - 1)}>earlier</button>} {(page + 1) * PAGE <= last && <button type="button" class="small" onClick={() => onTick((page + 1) * PAGE)}>later</button>}</p>
      {!said.value && <p class="wait" aria-busy="true">asking ..</p>}
      <ol>
        {items.map((one, at) => (
          <li key={at} id={`said-${one.tick}`} class={`said-item role-${one.role} kind-${one.kind} ${one.tick === tick ? "chosen" : ""}`} style={{ marginLeft: `${Math.min(6, one.depth ?? 0) * 16}px` }}>
            <button type="button" class="n" onClick={() => onTick(one.tick)} aria-label={`tick ${one.tick}`}>{one.tick}</button>
            <div class="body">
              <span class="who"><Name of={one.agent ?? one.role} /> <span class="dim">{one.kind}</span></span>
              {one.name && <> <b><T of={one.name} limit={100} /></b></>}
              {one.params !== undefined && one.params !== null && <> <Line value={one.params} limit={200} /></>}
              {one.status && <> <b class={one.status === "ok" ? "ok-text" : "bad-text"}><T of={one.status} limit={40} /></b></>}
              {one.text && <div class="source"><T of={one.text} limit={1200} /></div>}
              {one.output !== undefined && one.output !== null && (typeof one.output === "string" ? <div class="source"><T of={one.output} limit={1200} /></div> : <Tree value={one.output} depth={1} />)}
            </div>
          </li>
        ))}
      </ol>
    </div>
  );
}
