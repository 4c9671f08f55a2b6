import assert from "node:assert/strict";
import { test } from "node:test";
import { besideOf, inSight, isSeen, linesOf, next, pathOf, type GraphEdge, type GraphNode } from "../../src/pure/graph.ts";

const node = (id: string, x: number, y: number): GraphNode => ({ id, label: id, kind: "transition", tick: 1, run: "r", status: null, x, y, w: 80, h: 40 });
const edge = (from: string, to: string): GraphEdge => ({ from, to, rel: "caused_by", points: [[0, 0], [10, 20]] });
const layout = { nodes: [node("a", 0, 0), node("b", 0, 100), node("c", 200, 100), node("d", 200, 0)], edges: [edge("a", "c"), edge("b", "c")] };

test("an_edge_is_a_path_through_its_points", () => {
  assert.equal(pathOf([[1, 2], [3, 4], [5, 6]]), "M1 2 L3 4 L5 6");
  assert.equal(pathOf([]), "");
});

test("only_boxes_in_sight_are_drawn", () => {
  const view = { x: 0, y: 0, w: 100, h: 50 };
  assert.deepEqual(inSight(layout.nodes, view, 0).map((one) => one.id), ["a"]);
  assert.equal(inSight(layout.nodes, view, 300).length, 4);
  assert.ok(isSeen({ points: [[0, 0], [500, 500]] }, view, 0));
  assert.ok(!isSeen({ points: [[400, 400], [500, 500]] }, view, 0));
});

test("arrow_keys_lead_along_edges_first", () => {
  assert.equal(next(layout, "a", "ArrowDown"), "c", "the edge, and not the box straight below");
  assert.equal(next(layout, "b", "ArrowRight"), "c");
  assert.equal(next(layout, "c", "ArrowUp"), "a");
  assert.equal(next(layout, "a", "ArrowUp"), null);
  assert.equal(next(layout, "a", "x"), null);
  assert.equal(next(layout, "nope", "ArrowUp"), null);
});

test("a_label_fits_its_box", () => {
  assert.deepEqual(linesOf("tick 22\nfeed-reader", 100, 60), ["tick 22", "feed-reader"]);
  assert.deepEqual(linesOf("one two three four five", 60, 40), ["one two", "three.."]);
  for (const label of ["x".repeat(500), "a b c ".repeat(90), "", "\n\n\n\n\n"]) {
    const lines = linesOf(label, 80, 40);
    assert.ok(lines.length <= 2 && lines.every((line) => line.length <= 11), JSON.stringify(lines));
  }
});

test("edges_of_a_node_have_both_ends", () => {
  const { before, after } = besideOf(layout, "c");
  assert.deepEqual(before.map((one) => one.other?.id), ["a", "b"]);
  assert.deepEqual(after, []);
});
