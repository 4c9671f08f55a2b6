import assert from "node:assert/strict";
import { test } from "node:test";
import { COLUMNS, gridOf, short, type HeatItem } from "../../src/pure/heat.ts";

const item = (tick: number, value: number, agent: string | null = "a", run = "r"): HeatItem => ({ agent, node: `n${tick}`, run, tick, value });

test("a_cell_has_the_largest_value_of_its_ticks", () => {
  const grid = gridOf([item(1, 2), item(0, 1), item(100, 5, "b")], "agent", 100);
  assert.equal(grid.width, 4);
  assert.deepEqual(grid.rows.map((row) => row.name), ["b", "a"]);
  assert.deepEqual(grid.rows[1]?.cells[0], { value: 2, count: 2, tick: 1 });
  assert.equal(grid.most, 5);
});

test("every_tick_has_a_column", () => {
  for (const last of [0, 1, 39, 40, 64, 1_000_000]) {
    const grid = gridOf([item(last, 1)], "run", last);
    assert.ok(grid.columns.length <= COLUMNS);
    assert.equal(grid.columns.at(-1)?.to, last);
    assert.ok(grid.rows[0]?.cells.at(-1), `${last}`);
  }
});

test("rows_beyond_thirty_are_counted", () => {
  assert.equal(gridOf(Array.from({ length: 33 }, (_, at) => item(at, at, `agent-${at}`)), "agent", 40).leftOut, 3);
  assert.equal(short(0.44999999), "0.45");
});
