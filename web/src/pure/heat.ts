// The cells of a heatmap: rows of runs or agents, columns of ticks. A cell has the largest value of its ticks, and links to them.

import type { Heatmap } from "../documents.ts";
import { agentName } from "./names.ts";

export type HeatItem = Exclude<Heatmap["items"], number>[number];
export type Cell = { value: number; count: number; tick: number } | null;
export type Grid = { width: number; columns: { from: number; to: number }[]; rows: { name: string; run: string; cells: Cell[] }[]; most: number; leftOut: number };

export const COLUMNS = 40;
const ROWS = 30;

/** Puts nodes into cells. A column has a power of two of ticks; rows come with the largest value first. */
export function gridOf(items: readonly HeatItem[], by: "agent" | "run", last: number): Grid {
  let width = 1;
  while (Math.ceil((last + 1) / width) > COLUMNS) width *= 2;
  const columns = Array.from({ length: Math.max(1, Math.ceil((last + 1) / width)) }, (_, at) => ({ from: at * width, to: Math.min(last, (at + 1) * width - 1) }));
  const severalRuns = new Set(items.map((item) => item.run)).size > 1;
  const rows = new Map<string, { name: string; run: string; cells: Cell[]; most: number }>();
  let most = 0;
  for (const item of items) {
    const name = by === "run" ? item.run : `${severalRuns ? `${item.run}: ` : ""}${item.agent === null ? "(no agent)" : agentName(item.agent)}`;
    let row = rows.get(name);
    if (!row) rows.set(name, (row = { name, run: item.run, cells: columns.map(() => null), most: 0 }));
    const at = Math.floor(item.tick / width);
    const cell = row.cells[at];
    if (at >= columns.length) continue;
    row.cells[at] = !cell ? { value: item.value, count: 1, tick: item.tick } : { value: Math.max(cell.value, item.value), count: cell.count + 1, tick: item.value > cell.value ? item.tick : cell.tick };
    row.most = Math.max(row.most, item.value);
    most = Math.max(most, item.value);
  }
  const sorted = [...rows.values()].sort((a, b) => b.most - a.most || (a.name < b.name ? -1 : 1));
  return { width, columns, rows: sorted.slice(0, ROWS), most, leftOut: Math.max(0, sorted.length - ROWS) };
}

/** Writes a number as short as it can be read. */
export function short(value: number): string {
  return Number.isInteger(value) ? value.toLocaleString("en") : String(Math.round(value * 1000) / 1000);
}
