import assert from "node:assert/strict";
import { test } from "node:test";
import { isAt, laneOrder, partsOf, rowsOf, type Said } from "../../src/pure/said.ts";

const item = (tick: number, kind: Said["kind"], more: Partial<Said> = {}): Said => ({
  tick, kind, agent: "assistant", anomalies: 0, call_id: null, changes: 0, depth: 0, json: null, name: null, of: null, output: null, params: null, role: "agent", status: null, step: null, text: null, ...more,
});

test("calls_and_their_answers_are_rows", () => {
  const rows = rowsOf([
    item(1, "message"), item(2, "call", { call_id: "a" }), item(2, "call", { call_id: "b" }),
    item(3, "result", { call_id: "b", of: 2 }), item(4, "result", { call_id: "a", of: 2 }), item(5, "result", { call_id: "z", of: 0 }),
  ]);
  assert.deepEqual(rows.map((row) => [row.item.tick, row.item.call_id, row.answers.map((one) => one.tick)]), [[1, null, []], [2, "a", [4]], [2, "b", [3]], [5, "z", []]]);
  assert.ok(rows[2] && isAt(rows[2], 3));
});

test("equal_calls_without_ids_are_answered_in_order", () => {
  const rows = rowsOf([item(2, "call"), item(2, "call"), item(3, "result", { of: 2 }), item(4, "result", { of: 2 })]);
  assert.deepEqual(rows.map((row) => row.answers.map((one) => one.tick)), [[3], [4]]);
});

test("no_item_is_left_out", () => {
  const items = Array.from({ length: 500 }, (_, at) => item(at, (["message", "call", "result", "step", "gap"] as const)[at % 5] ?? "note", { depth: at % 7 === 0 ? 2 : 0, of: at % 5 === 2 ? at - (at % 3) : null }));
  const parts = partsOf(rowsOf(items));
  const rows = parts.flatMap((part) => ("row" in part ? [part.row] : part.rows));
  assert.equal(rows.reduce((sum, row) => sum + 1 + row.answers.length, 0), items.length);
});

test("neighbours_of_a_sub_agent_are_one_group", () => {
  const parts = partsOf(rowsOf([item(1, "message"), item(2, "message", { depth: 1, agent: "a" }), item(3, "message", { depth: 2, agent: "b" }), item(4, "message")]));
  assert.deepEqual(parts.map((part) => ("row" in part ? part.row.item.tick : part.agents)), [1, ["a", "b"], 4]);
});

test("lanes_of_a_subgraph_are_below_their_caller", () => {
  assert.deepEqual(laneOrder(["langgraph", "quoter/ask", "order", "quoter", null, "quoter/ask/deep"]), [
    { lane: 0, depth: 0 }, { lane: 2, depth: 0 }, { lane: 3, depth: 0 }, { lane: 1, depth: 1 }, { lane: 5, depth: 2 }, { lane: 4, depth: 0 },
  ]);
});
