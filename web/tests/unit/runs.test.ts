import assert from "node:assert/strict";
import { test } from "node:test";
import { facetsOf, held, treeOf, whereOf, type RunItem } from "../../src/pure/runs.ts";

const run = (name: string, more: Partial<RunItem> = {}): RunItem => ({
  casebook: false, dropped: false, ended: false, forked_from: null, goal: null, hypothetical: false, name, redaction: null, refusals: 0, stage: 1, state_read: true, synthetic: false, ticks: 3, tip: "", updated: "", verified_here: false, ...more,
});
const of = (parent: string) => ({ forked_from: { run: parent, tick: 1 } });

test("facets_count_runs", () => {
  const found = facetsOf([run("a", { stage: 2, verified_here: true }), run("b", of("a")), run("c", { stage: null })]);
  assert.deepEqual(found.map((one) => [one.words, one.count]), [["stage 1", 1], ["stage 2", 1], ["verified here", 1], ["not checked", 2], ["forks", 1], ["not forked", 2]]);
});

test("facets_and_a_filter_are_one_condition", () => {
  assert.equal(whereOf("a || b", { stage: "1", verified: null, forked: null }), "a || b");
  assert.equal(whereOf("a || b", { stage: null, verified: "false", forked: "true" }), "(a || b) && !verified && forked");
  assert.equal(whereOf("", { stage: null, verified: "true", forked: null }), "verified");
});

test("forks_are_below_their_parent_and_none_is_lost", () => {
  const runs = [run("a"), run("b", of("gone")), run("c", of("a")), run("d", of("c")), run("e", of("e"))];
  assert.deepEqual(treeOf(runs, true).map(({ run: one, depth }) => [one.name, depth]), [["a", 0], ["c", 1], ["d", 2], ["b", 0], ["e", 0]]);
  assert.deepEqual(treeOf(runs, false).map(({ run: one }) => one.name), ["a", "b", "c", "d", "e"]);
});

test("rows_stay_where_they_are", () => {
  assert.deepEqual(held([run("new"), run("b"), run("a")], ["a", "b"]).map((one) => one.name), ["a", "b", "new"]);
});
