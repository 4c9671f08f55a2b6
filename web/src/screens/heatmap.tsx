// Where agents branch, diverge, note anomalies or are unsure: a grid with numbers, and the same as a table.

import { list, of, useAnswer } from "../api.ts";
import type { Heatmap } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { gridOf, short, type Cell, type Grid } from "../pure/heat.ts";
import { plain } from "../pure/invisible.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { item, last, runs, version } from "../store.ts";
import { Buttons } from "../parts/copy.tsx";
import { Answered } from "../parts/fault.tsx";
import { Agent, Name, T } from "../parts/text.tsx";

const METRICS = ["branching", "divergence", "anomaly", "confidence"] as const;
const LIMIT = 5000;

export function HeatmapScreen({ run }: { run: string }) {
  const metric = query.value.get("metric");
  const others = query.value.getAll("with");
  const by = query.value.get("by") === "run" ? "run" : "agent";
  const answer = useAnswer<Heatmap>(of(run, "heatmap", { metric, with: others, limit: LIMIT }), version.value);
  const words = ["dendrer", "heatmap", run, ...others, ...(metric ? ["--metric", metric] : []), "--limit", String(LIMIT)];
  const ends = [run, ...others].map((name) => list(runs.value?.items).find((one) => one.name === name)?.ticks ?? 0);
  return (
    <div class="screen">
      <div class="top"><h1 tabIndex={-1}>Heatmap of {metric ?? "branching"}</h1><Buttons words={words} /></div>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label for="metric">metric</label>
        <select id="metric" value={metric ?? "branching"} onChange={(event) => setQuery({ metric: event.currentTarget.value === "branching" ? null : event.currentTarget.value })}>{METRICS.map((one) => <option key={one} value={one}>{one}</option>)}</select>
        <label for="by">rows</label>
        <select id="by" value={by} onChange={(event) => setQuery({ by: event.currentTarget.value === "agent" ? null : event.currentTarget.value })}><option value="agent">agents</option><option value="run">runs</option></select>
        <label for="heat-with">with</label>
        <select id="heat-with" value="" onChange={(event) => setQuery({ with: [...others, event.currentTarget.value] })}>
          <option value="">another run</option>
          {list(runs.value?.items).filter((one) => one.name !== run && !others.includes(one.name)).map((one) => <option key={one.name} value={one.name}>{plain(one.name)}</option>)}
        </select>
        {others.map((one) => <button type="button" key={one} class="chip" onClick={() => setQuery({ with: others.filter((kept) => kept !== one) })} aria-label={`without ${plain(one)}`}><T of={one} limit={60} /> ×</button>)}
      </form>
      <Answered answer={answer.value}>
        {(heat) => {
          const items = list(heat.items);
          const end = Math.max(last.value ?? 0, item.value?.ticks ?? 0, ...ends, ...items.map((one) => one.tick));
          return (
            <>
              <p class="dim">{items.length} of {heat.total} nodes have a value: <T of={heat.formula} limit={200} /></p>
              {items.length === 0 ? <p>Nothing to show: no node has a value of this metric.</p> : <HeatGrid of={gridOf(items, by, end)} />}
              {items.length > 0 && (
                <>
                  <h2>The same as a table</h2>
                  <div class="scroll"><table class="list"><thead><tr><th scope="col" class="num">value</th><th scope="col" class="num">tick</th><th scope="col">agent</th><th scope="col">run</th><th scope="col">node</th></tr></thead>
                    <tbody>{items.slice(0, 200).map((one) => <tr key={one.run + one.node}><td class="num">{short(one.value)}</td><td class="num"><a href={pathOf(one.run) + queryOf({ t: one.tick })}>{one.tick}</a></td><td><Agent of={one.agent} /></td><td><Name of={one.run} /></td><td><code>{one.node}</code></td></tr>)}</tbody></table></div>
                  {items.length > 200 && <p class="dim">the 200 largest of {items.length.toLocaleString("en")}; <i>Copy command</i> lists {LIMIT.toLocaleString("en")}</p>}
                </>
              )}
            </>
          );
        }}
      </Answered>
    </div>
  );
}

function HeatGrid({ of: grid }: { of: Grid }) {
  return (
    <>
      <div class="scroll">
        <table class="heat">
          <thead><tr><th scope="col"><span class="hidden">row</span></th>{grid.columns.map((column, at) => <th scope="col" key={at}><span class={at % 5 === 0 ? "" : "hidden"}>{column.from}</span></th>)}</tr></thead>
          <tbody>{grid.rows.map((row) => (
            <tr key={row.name}><th scope="row"><Name of={row.name} /></th>
              {row.cells.map((cell, at) => <HeatCell key={at} of={cell} run={row.run} column={grid.columns[at] ?? { from: 0, to: 0 }} most={grid.most} />)}
            </tr>
          ))}</tbody>
        </table>
      </div>
      <p class="legend dim">{[0.25, 0.5, 0.75, 1].map((part) => <span class="legend-item" key={part}><span class="heat-key" style={ground(part)} aria-hidden="true" /> up to {short(grid.most * part)}</span>)} <span>1 column = {grid.width.toLocaleString("en")} tick{grid.width === 1 ? "" : "s"}; a cell has the largest value of its ticks</span></p>
      {grid.leftOut > 0 && <p class="warn-text">{grid.leftOut} more rows are in the table only</p>}
    </>
  );
}

/** The ground of a cell: four steps, so that a legend can name them. */
function ground(part: number): { background: string } {
  const step = Math.max(1, Math.ceil(part * 4));
  return { background: `color-mix(in srgb, var(--warn) ${step * 10}%, var(--page))` };
}

function HeatCell({ of: cell, run, column, most }: { of: Cell; run: string; column: { from: number; to: number }; most: number }) {
  if (!cell) return <td />;
  const words = `${column.from === column.to ? `tick ${column.from}` : `ticks ${column.from}..${column.to}`}: ${short(cell.value)}${cell.count > 1 ? `, the largest of ${cell.count}` : ""}`;
  // A click zooms; the selection of the list stays.
  const zoom = column.from === column.to ? null : `${column.from}..${column.to}`;
  return <td style={ground(most === 0 ? 0 : cell.value / most)}><a href={pathOf(run) + queryOf({ t: cell.tick, zoom })} title={words} aria-label={words}>{short(cell.value)}</a></td>;
}
