// Pictures of a run: transitions by their links, the compiled graph, commitments, steps, forks. Each has a table too.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { list, of, useAnswer } from "../api.ts";
import type { Frontier } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { besideOf, type Beside, type GraphNode, type Layout } from "../pure/graph.ts";
import { labelOf } from "../pure/names.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { last, tick, version } from "../store.ts";
import { Buttons } from "../parts/copy.tsx";
import { Answered } from "../parts/fault.tsx";
import { addressOf, Graph } from "../parts/graph.tsx";
import { Name, T } from "../parts/text.tsx";
import { Line } from "../parts/value.tsx";

const KINDS = [["causal", "transitions"], ["compiled", "compiled graph"], ["commitments", "commitments"], ["steps", "steps"], ["forks", "forks"]] as const;
/** A picture has at most so many nodes: of a longer run the part around a tick is drawn. */
const NODES_MAX = 500;
const EDGES = 100;

export function LayoutScreen({ run }: { run: string }) {
  const kind = KINDS.find(([one]) => one === query.value.get("of"))?.[0] ?? "causal";
  const given = { at: query.value.get("at"), focus: query.value.get("focus"), depth: query.value.get("depth") };
  const isLong = kind === "causal" && (last.value ?? 0) > NODES_MAX && given.at === null;
  const focus = given.focus ?? (isLong && tick.value !== null ? String(tick.value) : null);
  // Commitments are those of the moment.
  const at = given.at ?? (kind === "commitments" && query.value.get("t") !== null ? String(tick.value) : null);
  const asked = last.value === null ? null : of(run, "layout", { of: kind, at: kind === "causal" || kind === "commitments" ? at : null, focus, depth: given.depth });
  const answer = useAnswer<Layout>(asked, version.value);
  return (
    <div class="screen layout">
      <div class="top"><h1 tabIndex={-1}>Graph: {KINDS.find(([one]) => one === kind)?.[1]}{at !== null && ` at tick ${at}`}</h1><Buttons words={["dendrer", "serve", "--get", asked ?? of(run, "layout", { of: kind })]} /></div>
      <div class="filters">
        <div class="views" role="group" aria-label="picture">{KINDS.map(([one, words]) => <button type="button" key={one} class="small" aria-pressed={kind === one} onClick={() => setQuery({ of: one === "causal" ? null : one, focus: null, node: null, at: null, depth: null })}>{words}</button>)}</div>
        <div class="views" role="group" aria-label="size"><button type="button" class="small" aria-pressed={query.value.get("size") === "fit"} onClick={() => setQuery({ size: query.value.get("size") === "fit" ? null : "fit" })}>fit</button></div>
        <Around focus={focus} at={given.at} depth={given.depth} hasAt={kind === "causal" || kind === "commitments"} />
      </div>
      {isLong && given.focus === null && <p class="dim">The run has {(last.value ?? 0).toLocaleString("en")} ticks: this is the part around tick {focus}.</p>}
      {kind === "compiled" && <FrontierOf run={run} />}
      <Answered answer={answer.value}>{(layout) => <Drawn run={run} of={layout} />}</Answered>
    </div>
  );
}

/** Limits of the picture: a node and how far around it, or the last tick. */
function Around({ focus, at, depth, hasAt }: { focus: string | null; at: string | null; depth: string | null; hasAt: boolean }) {
  const node = useSignal(focus ?? "");
  const end = useSignal(at ?? "");
  useEffect(() => {
    node.value = focus ?? "";
    end.value = at ?? "";
  }, [focus, at]);
  return (
    <form class="filters" onSubmit={(event) => { event.preventDefault(); setQuery({ focus: node.value.trim(), at: end.value.trim(), node: null }); }}>
      <label for="focus">around</label>
      <input id="focus" value={node.value} placeholder="a tick or an id" autocomplete="off" spellcheck={false} onInput={(event) => (node.value = event.currentTarget.value)} />
      <label for="depth">edges</label>
      <select id="depth" value={depth ?? "3"} onChange={(event) => setQuery({ depth: event.currentTarget.value === "3" ? null : event.currentTarget.value })}>{["1", "2", "3", "5", "10"].map((one) => <option key={one} value={one}>{one}</option>)}</select>
      {hasAt && <><label for="until">up to tick</label><input id="until" class="short" inputMode="numeric" value={end.value} autocomplete="off" onInput={(event) => (end.value = event.currentTarget.value)} /></>}
      <button type="submit" class="small">draw</button>
      {(focus !== null || at !== null) && <button type="button" class="small" onClick={() => setQuery({ focus: null, at: null, depth: null })}>all</button>}
    </form>
  );
}

function Drawn({ run, of: layout }: { run: string; of: Layout }) {
  // A box is chosen by a reader, or is that of the tick that the address names.
  const chosen = query.value.get("node") ?? (query.value.get("t") === null ? undefined : layout.nodes.find((one) => one.tick !== null && one.tick === tick.value && (one.run === null || one.run === run) && layout.of !== "forks")?.id) ?? null;
  const node = layout.nodes.find((one) => one.id === chosen) ?? null;
  const shown = useSignal(EDGES);
  const byId = new Map(layout.nodes.map((one) => [one.id, one]));
  if (layout.nodes.length === 0) return <p>Nothing to draw: the run has no {KINDS.find(([one]) => one === layout.of)?.[1] ?? "nodes"}.</p>;
  return (
    <div class="layout-split">
      <Graph of={layout} chosen={chosen} run={run} />
      <div class="layout-side">
        {node && <Chosen run={run} of={node} layout={layout} />}
        <h2>{layout.nodes.length} nodes, {layout.edges.length} edges</h2>
        <div class="scroll"><table class="list"><thead><tr><th scope="col">from</th><th scope="col">relation</th><th scope="col">to</th></tr></thead>
          <tbody>{layout.edges.slice(0, shown.value).map((edge, at) => <tr key={at} class={edge.from === chosen || edge.to === chosen ? "chosen" : ""}><td><NodeLink of={byId.get(edge.from)} run={run} /></td><td class="rel"><T of={edge.rel} limit={60} /></td><td><NodeLink of={byId.get(edge.to)} run={run} /></td></tr>)}</tbody></table></div>
        {layout.edges.length > shown.value && <button type="button" class="more" onClick={() => (shown.value += EDGES)}>{layout.edges.length - shown.value} more</button>}
        <Alone of={layout} run={run} />
      </div>
    </div>
  );
}

function NodeLink({ of: node, run }: { of: GraphNode | null | undefined; run: string }) {
  if (!node) return <span class="none">not drawn</span>;
  return <a href={addressOf(node, run)}><T of={labelOf(node).slice(0, 60)} isOneLine />{node.status !== null && !node.label.includes(node.status) && <span class="dim"> {node.status}</span>}</a>;
}

/** Nodes without an edge are in the table too. */
function Alone({ of: layout, run }: { of: Layout; run: string }) {
  const joined = new Set(layout.edges.flatMap((edge) => [edge.from, edge.to]));
  const alone = layout.nodes.filter((one) => !joined.has(one.id));
  if (alone.length === 0) return null;
  return <details><summary>{alone.length} nodes without an edge</summary><ul class="asked">{alone.slice(0, 200).map((one) => <li key={one.id}><NodeLink of={one} run={run} /></li>)}</ul></details>;
}

function Chosen({ run, of: node, layout }: { run: string; of: GraphNode; layout: Layout }) {
  const { before, after } = besideOf(layout, node.id);
  const rows = (words: string, all: Beside[]) => all.length > 0 && <><dt>{words}</dt><dd>{all.slice(0, 30).map(({ edge, other }, at) => <div key={at}><span class="dim"><T of={edge.rel} limit={40} /></span> <NodeLink of={other} run={run} /></div>)}{all.length > 30 && `and ${all.length - 30} more`}</dd></>;
  return (
    <section class="card" aria-label="chosen node" aria-live="polite">
      <h2><T of={labelOf(node)} limit={200} /></h2>
      <dl class="facts">
        <dt>kind</dt><dd>{node.kind}{node.status !== null && <>, <b class={/denied|failed|violated/.test(node.status) ? "bad-text" : ""}>{node.status}</b></>}</dd>
        {node.run !== null && node.run !== run && <><dt>run</dt><dd><a href={pathOf(node.run)}><Name of={node.run} /></a></dd></>}
        {node.tick !== null && <><dt>tick</dt><dd><a href={pathOf(node.run ?? run) + queryOf({ t: node.tick })}>{node.tick}</a></dd></>}
        {rows("comes from", before)}
        {rows("leads to", after)}
      </dl>
      <p class="acts"><button type="button" class="small" onClick={() => setQuery({ focus: node.id })}>draw only what is near</button></p>
    </section>
  );
}

/** How far the compiled graph was run: the edges that are recorded, and those that can come next. */
function FrontierOf({ run }: { run: string }) {
  const answer = useAnswer<Frontier>(of(run, "frontier"), version.value);
  if (answer.value.state !== "there") return null;
  return <FrontierLine of={answer.value.document} />;
}

function FrontierLine({ of: frontier }: { of: Frontier }) {
  // The calls of a run of no graph have no place.
  const items = list(frontier.items).flatMap((one) => ("index" in one ? [one] : []));
  return (
    <details class="outcome">
      <summary>frontier: {frontier.edges} recorded edges, {frontier.nodes} pure nodes</summary>
      <div class="scroll"><table class="list"><thead><tr><th scope="col">place</th><th scope="col">edge</th><th scope="col">call</th><th scope="col">arguments</th><th scope="col">value</th></tr></thead>
        <tbody>{items.slice(0, 200).map((one) => <tr key={one.index}><td>{one.index}</td><td><code><T of={one.path} limit={60} /></code></td><td><T of={one.call} limit={60} /> <span class="dim">{one.effect}</span></td><td><Line value={one.args} /></td><td><Line value={one.value} /></td></tr>)}</tbody></table></div>
      {items.length > 200 && <p class="dim">200 of {items.length}</p>}
    </details>
  );
}
