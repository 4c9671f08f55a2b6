import assert from "node:assert/strict";
import { test } from "node:test";
import { binAt, LANES_MAX, ofDocument, ofLog, rowOf, signOf, stripOf, xOf, zoomed, type LogItem, type TimelineDocument } from "../../src/pure/timeline.ts";
import { sample } from "./sample.ts";

const item = (tick: number, agent: string, type: string, more: Partial<LogItem> = {}): LogItem => ({ tick, agent, type, kind: "transition", anomalies: 0, ...more });

test("a_log_becomes_bins_of_one_tick", () => {
  const log = [item(1, "a", "observation.add", { content: { delta: [{}] } }), item(2, "b", "policy.decision", { content: { policy: { decision: "deny" }, delta: [] } }), item(3, "a", "action.result", { content: { result: { status: "error" } } }), item(5, "a", "kernel.anomaly", { anomalies: 1 })];
  const timeline = ofLog("r", log, 0, 5);
  assert.deepEqual(timeline.lanes, [{ agent: "a", total: 3 }, { agent: "b", total: 1 }]);
  assert.deepEqual(timeline.bins.map(signOf), ["none", "saw", "denied", "failed", "none", "anomaly"]);
  assert.deepEqual(timeline.bins.map((bin) => bin.changes), [null, 1, 0, null, null, null]);
  assert.equal(timeline.bins.reduce((sum, bin) => sum + bin.n, 0), log.length);
});

test("quiet_lanes_are_folded_with_their_number", () => {
  const log = Array.from({ length: 40 }, (_, at) => item(at + 1, `agent-${at}`, "plan.update"));
  const timeline = ofLog("r", log, 0, 40);
  assert.equal(timeline.lanes.length, LANES_MAX);
  assert.deepEqual(timeline.lanes.at(-1), { agent: null, agents: 17, total: 17 });
  for (const bin of timeline.bins.slice(1)) assert.equal(bin.lanes.reduce((sum, one) => sum + one, 0), 1);
});

test("the_document_timeline_is_read", () => {
  const timeline = ofDocument(sample(1_000_000, 512));
  assert.ok(timeline.bins.length <= 512);
  assert.equal(timeline.bins.reduce((sum, bin) => sum + bin.n, 0), 1_000_000);
  assert.equal(timeline.strips[0]?.items.length, timeline.bins.length);
  assert.equal(timeline.strips[1]?.predicate, "must hold state.n < 4");
  assert.equal(timeline.leftOut, 12);
});

test("bars_are_as_high_as_their_counts_and_the_worst_sign_wins", () => {
  const timeline = ofDocument(sample(1_000_000, 512));
  const shapes = rowOf(timeline.bins, 1000, 22, null);
  assert.equal(shapes.length, timeline.bins.length);
  for (const shape of shapes) assert.ok(shape.h <= 22 && shape.h >= 3 && shape.y + shape.h === 22);
  const bad = timeline.bins.findIndex((bin) => bin.failed > 0);
  assert.equal(shapes[bad]?.sign, "failed");
});

test("positions_and_ticks_agree", () => {
  const document: TimelineDocument = sample(5000, 100);
  const timeline = ofDocument(document);
  for (const tick of [0, 1, 777, 4999, 5000]) {
    const bin = timeline.bins[binAt(xOf(tick, timeline, 900), 900, timeline.bins.length)];
    assert.ok(bin && bin.from <= tick && tick <= bin.to, `tick ${tick} in ${bin?.from}..${bin?.to}`);
  }
});

test("an_unknown_verdict_is_never_ok", () => {
  const timeline = ofLog("r", [item(1, "a", "plan.update"), item(2, "a", "plan.update")], 0, 2);
  const strip = stripOf("p", null, "unavailable", [[0, 0, "ok"], [1, 2, "uncertain"]], timeline.bins);
  assert.deepEqual(strip.items, [["ok"], ["uncertain"], ["uncertain"]]);
  assert.deepEqual(stripOf("p", null, "exact", [], timeline.bins).items, [[], [], []]);
});

test("zoom_stays_inside_the_run", () => {
  assert.deepEqual(zoomed([0, 64], 22, 0.5, 64), [6, 38]);
  assert.equal(zoomed([6, 38], 22, 4, 64), null);
  const end = zoomed([0, 1_000_000], 999_999, 0.001, 1_000_000);
  assert.equal(end?.[1], 1_000_000);
});
