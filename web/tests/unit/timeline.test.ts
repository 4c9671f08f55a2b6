import assert from "node:assert/strict";
import { test } from "node:test";
import { binAt, binsOf, laneAt, linksOf, ofDocument, rowOf, spotsOf, tickOf, wordsOf, xOf, zoomed, type Bin } from "../../src/pure/timeline.ts";
import { sample } from "./sample.ts";

test("the_document_timeline_is_read", () => {
  const timeline = ofDocument(sample(1_000_000, 512));
  assert.ok(timeline.bins.length <= 512);
  assert.equal(timeline.bins.reduce((sum, bin) => sum + bin.n, 0), 1_000_000);
  assert.equal(timeline.strips[0]?.items.length, timeline.bins.length);
  assert.equal(timeline.strips[1]?.predicate, "state.n < 4");
  assert.deepEqual(timeline.leftOut, { anomaly: 12 });
  assert.deepEqual(ofDocument(sample(99, 100), ["state.n < 4"]).strips.map((strip) => strip.predicate), ["state.n < 4", "kernel.policy_compliant"], "in the order of the questions");
});

test("bars_are_as_high_as_their_counts_and_the_worst_sign_wins", () => {
  const timeline = ofDocument(sample(1_000_000, 512));
  const shapes = rowOf(timeline, 1000, 22, null);
  assert.equal(shapes.length, timeline.bins.length);
  for (const shape of shapes) assert.ok(shape.h <= 22 && shape.h >= 3 && shape.y + shape.h === 22);
  const bad = timeline.bins.findIndex((bin) => bin.failed > 0);
  assert.equal(shapes[bad]?.sign, "failed");
});

test("positions_and_ticks_agree", () => {
  const timeline = ofDocument(sample(5000, 100));
  for (const tick of [0, 1, 777, 4999, 5000]) {
    const bin = timeline.bins[binAt(xOf(tick, timeline, 900), 900, timeline.bins.length)];
    assert.ok(bin && bin.from <= tick && tick <= bin.to, `tick ${tick} in ${bin?.from}..${bin?.to}`);
  }
});

test("zoom_ends_at_ticks", () => {
  assert.equal(binsOf(0, 1_000_000), 512);
  assert.equal(binsOf(0, 1999), 2000);
  assert.equal(binsOf(64, 64), 1);
  let range: [number, number] = [0, 1_000_000];
  for (let step = 0; step < 40; step += 1) range = zoomed(range, 777_777, 0.5, 1_000_000) ?? range;
  assert.equal(binsOf(...range), range[1] - range[0] + 1, "one mark a tick");
});

test("a_click_on_a_bin_goes_to_its_worst_mark", () => {
  const timeline = ofDocument(sample(1_000_000, 512));
  const onset = timeline.marks[0]?.tick ?? 0;
  const bin = timeline.bins.find((one) => one.from <= onset && onset <= one.to) as Bin;
  assert.equal(tickOf(timeline, bin, 0), onset);
  assert.equal(tickOf(timeline, bin, bin.to), bin.to, "the tick in sight stays");
  assert.equal(tickOf(timeline, timeline.bins[0] as Bin, onset), 0);
});

test("marks_that_would_cover_a_worse_one_are_not_drawn", () => {
  const timeline = ofDocument({ ...sample(1000, 512), marks: [{ tick: 300, kind: "onset", text: "" }, { tick: 302, kind: "anomaly", text: "" }, { tick: 900, kind: "denial", text: "" }] });
  assert.deepEqual(spotsOf(timeline, 1000, 10).map((one) => [one.tick, one.sign]), [[300, "onset"], [900, "denied"]]);
});

test("a_bin_has_words", () => {
  const [bin] = ofDocument(sample(1_000_000, 512)).bins.slice(5);
  assert.equal(wordsOf(bin as Bin), "ticks 10,240..12,287: 2,048 transitions, 2 denied, 1,024 observation.add, 1,024 plan.update, 2,048 places written");
});

test("zoom_stays_inside_the_run", () => {
  assert.deepEqual(zoomed([0, 64], 22, 0.5, 64), [6, 38]);
  assert.equal(zoomed([6, 38], 22, 4, 64), null);
  const end = zoomed([0, 1_000_000], 999_999, 0.001, 1_000_000);
  assert.equal(end?.[1], 1_000_000);
});

test("links_of_the_tick_in_sight_and_merges_are_drawn", () => {
  const links = [{ from: 1, to: 2, rel: "predecessor" }, { from: 1, to: 3, rel: "caused_by" }, { from: 4, to: 5, rel: "caused_by" }, { from: 6, to: 7, rel: "merges" }];
  assert.deepEqual(linksOf(links, 3).map((one) => one.to), [3, 7]);
  assert.deepEqual(linksOf(links, 9).map((one) => one.to), [7]);
  const timeline = ofDocument(sample(50, 100));
  const bin = timeline.bins.findIndex((one) => (one.lanes[1] ?? 0) > 0);
  assert.equal(laneAt(timeline, [1], bin), 0);
  assert.equal(laneAt(timeline, [], bin), -1);
  assert.equal(laneAt(timeline, [0], 5000), -1);
});
