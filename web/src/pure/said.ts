// The transcript as rows: a call with its answers, and turns of sub-agents as groups. Nothing is left out without a count.

import type { Transcript } from "../documents.ts";
import { speaker } from "./names.ts";

export type Said = Exclude<Transcript["items"], number>[number];
export type Row = { item: Said; answers: Said[] };
export type Part = { depth: 0; row: Row } | { depth: number; agents: string[]; rows: Row[] };

/** Puts each answer below its call if both are in sight; an answer to an earlier call is a row of its own. */
export function rowsOf(items: readonly Said[]): Row[] {
  const rows: Row[] = [];
  const calls = new Map<string, Row[]>();
  for (const item of items) {
    if (item.kind === "result" && item.of !== null) {
      // Calls of one tick differ by their id; without ids the answers come in the order of the calls.
      const open = calls.get(`${item.of}`) ?? [];
      const row = open.find((one) => one.item.call_id !== null && one.item.call_id === item.call_id) ?? open.find((one) => one.answers.length === 0 && one.item.call_id === null) ?? (open.length === 1 ? open[0] : undefined);
      if (row) {
        row.answers.push(item);
        continue;
      }
    }
    const row: Row = { item, answers: [] };
    rows.push(row);
    if (item.kind === "call") calls.set(`${item.tick}`, [...(calls.get(`${item.tick}`) ?? []), row]);
  }
  return rows;
}

/** Groups neighbours of sub-agents and subgraphs. */
export function partsOf(rows: readonly Row[]): Part[] {
  const parts: Part[] = [];
  for (const row of rows) {
    const before = parts.at(-1);
    if (row.item.depth === 0) parts.push({ depth: 0, row });
    else if (before && "rows" in before) before.rows.push(row);
    else parts.push({ depth: row.item.depth, agents: [], rows: [row] });
  }
  for (const part of parts) if ("rows" in part) part.agents = [...new Set(part.rows.map((one) => speaker(one.item.agent ?? one.item.name, one.item.role)))];
  return parts;
}

/** Whether a row or one of its answers is of a tick. */
export function isAt(row: Row, tick: number): boolean {
  return row.item.tick === tick || row.answers.some((one) => one.tick === tick);
}

/** Orders lanes: a subgraph or a sub-agent is below its caller, as `quoter/ask` below `quoter`. */
export function laneOrder(agents: readonly (string | null)[]): { lane: number; depth: number }[] {
  const known = new Map(agents.map((agent, lane) => [agent, lane]));
  const callerOf = (agent: string | null): number | null => {
    if (agent === null) return null;
    for (let cut = agent.lastIndexOf("/"); cut > 0; cut = agent.lastIndexOf("/", cut - 1)) {
      const lane = known.get(agent.slice(0, cut));
      if (lane !== undefined) return lane;
    }
    return null;
  };
  const callers = agents.map(callerOf);
  const placed: { lane: number; depth: number }[] = [];
  const add = (caller: number | null, depth: number): void => {
    callers.forEach((one, lane) => {
      if (one !== caller) return;
      placed.push({ lane, depth });
      add(lane, depth + 1);
    });
  };
  add(null, 0);
  return placed;
}
