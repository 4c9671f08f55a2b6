// New runs and ticks appear while they are recorded; a reader who looks elsewhere is not moved. Long runs, by document and without.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { launch, makeDemo, open, remove, run, serve, settled, shopChat, type Server } from "./harness.ts";
import { sample } from "../unit/sample.ts";

let server: Server;
let browser: Browser;

const lines = (from: number, count: number): string => Array.from({ length: count }, (_, at) => `${JSON.stringify({ type: "observation.add", agent: `agent-${(from + at) % 5}`, intent: { description: `line ${from + at}`, confidence: 0.5 }, delta: [{ set: "/n", value: from + at }] })}\n`).join("");

before(async () => {
  server = await serve(makeDemo());
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.stop();
  if (server) remove(server.dir);
});

test("a_new_run_and_its_ticks_appear", async () => {
  const { page, faults, context } = await open(browser, server);
  await page.goto(`${server.origin}/runs`);
  await settled(page);
  run(server.dir, ["commit", "--run", "live-1"], lines(1, 3));
  await page.getByRole("link", { name: "live-1", exact: true }).waitFor({ timeout: 5000 });
  await page.getByRole("link", { name: "live-1", exact: true }).click();
  await page.waitForFunction(() => /of 3/.test(document.querySelector(".jump")?.textContent ?? ""));
  await settled(page);
  run(server.dir, ["commit", "--run", "live-1"], lines(4, 2));
  await page.waitForFunction(() => /of 5/.test(document.querySelector(".jump")?.textContent ?? ""), undefined, { timeout: 5000 });
  assert.match(await page.title(), /^tick 5 /, "a reader at the end follows");
  await page.waitForFunction(() => /line 5/.test(document.querySelector(".tick-row.chosen")?.textContent ?? ""));
  await page.keyboard.press("Home");
  run(server.dir, ["commit", "--run", "live-1"], lines(6, 1));
  await page.waitForFunction(() => /of 6/.test(document.querySelector(".jump")?.textContent ?? ""), undefined, { timeout: 5000 });
  assert.match(await page.title(), /^tick 0 /, "a reader elsewhere stays");
  assert.deepEqual(faults, []);
  await context.close();
});

test("a_run_of_11000_ticks_is_drawn_and_its_last_tick_reached", async () => {
  run(server.dir, ["commit", "--run", "long-1"], lines(1, 11_000));
  const { page, context } = await open(browser, server);
  await page.goto(`${server.origin}/run/long-1?t=4321`);
  await page.waitForFunction(() => /line 4321/.test(document.querySelector(".tick-row.chosen")?.textContent ?? ""));
  await page.keyboard.press("End");
  await page.waitForFunction(() => /line 11000/.test(document.querySelector(".tick-row.chosen")?.textContent ?? ""));
  const begun = Date.now();
  for (let step = 0; step < 60; step += 1) await page.keyboard.press("k");
  await page.waitForFunction(() => /line 10940/.test(document.querySelector(".tick-row.chosen")?.textContent ?? ""));
  console.log(`60 steps in ${Date.now() - begun} ms`);
  assert.ok((await page.evaluate(() => document.querySelectorAll("*").length)) < 3000);
  // A run of this length is asked line by line.
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "NONE OF 4 QUESTIONS IS VIOLATED", undefined, { timeout: 60_000 });
  assert.match(await page.locator(".label-marks").innerText(), /1 mark = 32 ticks/);
  await context.close();
});

test("lines_of_a_document_are_the_document", async () => {
  // What the page reads of a long run is what it reads of a short one.
  const { context } = await open(browser, server);
  const address = `${server.origin}/run/logistics-run-47/first`;
  const whole = (await (await context.request.get(`${address}.json`)).json()) as { items: unknown[] };
  const read = (await (await context.request.get(`${address}.jsonl`)).text()).trimEnd().split("\n").map((line) => JSON.parse(line) as { summary?: { items: number } });
  const { summary } = read.pop() ?? {};
  assert.deepEqual({ ...summary, items: read }, whole);
  assert.equal(summary?.items, read.length);
  await context.close();
});

test("a_million_ticks_are_drawn_from_the_document_timeline", async () => {
  const { page, context, faults } = await open(browser, server);
  const last = 1_000_000;
  // The answers of a run of a million ticks are played here.
  const first = (await (await context.request.get(`${server.origin}/run/shop-team/first.json`)).json()) as { items: unknown[] };
  const neverViolated = first.items[0];
  let letGo = () => {};
  const firstIsHeld = new Promise<void>((over) => (letGo = over));
  await context.route("**/run/long/**", (route) => {
    const url = new URL(route.request().url());
    if (url.pathname.endsWith("timeline.json")) return route.fulfill({ json: sample(last, 512) });
    if (url.pathname.endsWith("log.json")) {
      const from = Number(url.searchParams.get("from"));
      const to = Math.min(Number(url.searchParams.get("to") ?? last), from + Number(url.searchParams.get("limit")) - 1, last);
      const items = Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => ({ agent: "worker", anomalies: 0, author: "agent", confidence: 0.5, id: `sha256:${String(from + at).padStart(64, "0")}`, kind: "transition", summary: `line ${from + at}`, tick: from + at, ts: "2026-01-01T00:00:00.000Z", type: "plan.update" }));
      return route.fulfill({ json: { schema: "dendrer.log/1", certainty: "recorded", closed: [], complete: false, items, refusals: 0, run: "long", total: last, tip: "" } });
    }
    if (url.pathname.endsWith("first.jsonl")) {
      const line = (done: number) => JSON.stringify({ schema: "dendrer.progress/1", what: "bisect", unit: "records", done, total: null, rate: 1, remaining_s: null });
      return firstIsHeld.then(() => route.fulfill({ contentType: "application/jsonl", body: `${line(210_000)}\n${line(640_000)}\n${JSON.stringify(neverViolated)}\n{"summary":{"exit":0,"items":1,"run":"long","schema":"dendrer.bisect-all/1"}}\n` }));
    }
    if (url.pathname.endsWith("badge.json")) return route.fulfill({ json: { schema: "dendrer.badge/1", run: "long", state: "checking", done: 41, of: 64, verify: null, tip: last, log_size: null, at: null, stale: false } });
    if (url.pathname.endsWith("show.json")) return route.fulfill({ json: { schema: "dendrer.show/1", run: "long", tick: Number(url.pathname.split("/").at(-2)), type: "plan.update", kind: "transition", author: "agent", certainty: "recorded", changes: [], closed: [], content: { agent_id: "worker" }, id: "sha256:0", links: [], prev: null, ts: "" } });
    if (url.pathname.endsWith("events")) return route.abort();
    return route.fallback();
  });
  await page.goto(`${server.origin}/run/long?t=777777`);
  // Until the first violation is known everything else can be used.
  await page.waitForFunction(() => /asking the standard questions about 1,000,000 ticks/.test(document.querySelector("h1")?.textContent ?? "") && /line 777777/.test(document.querySelector(".tick-row.chosen")?.textContent ?? ""));
  assert.equal(await page.locator(".badge").innerText(), "checking: 41 of 64");
  letGo();
  await page.waitForFunction(() => /NEVER VIOLATED/.test(document.querySelector("h1")?.textContent ?? ""));
  await page.waitForFunction(() => /line 777777/.test(document.querySelector(".tick-row.chosen")?.textContent ?? ""));
  assert.match((await page.locator(".label-marks").innerText()), /1 mark = 2,048 ticks/);
  assert.match((await page.locator(".labels").innerText()), /7 more agents/);
  await page.keyboard.press("End");
  await page.waitForFunction(() => /line 1000000/.test(document.querySelector(".tick-row.chosen")?.textContent ?? ""));
  assert.ok((await page.evaluate(() => document.querySelectorAll("*").length)) < 3000);
  assert.deepEqual(faults, []);
  await context.close();
});

test("a_rule_that_was_made_of_a_result_keeps_its_places", async () => {
  run(server.dir, ["import", "-", "--run", "shop-chat"], JSON.stringify(shopChat()));
  const { page, context, faults } = await open(browser, server);
  await page.goto(`${server.origin}/run/shop-chat?t=3`);
  await settled(page);
  await page.getByRole("tab", { name: "make a rule of it" }).click();
  await page.getByRole("button", { name: "copy the lines" }).click();
  writeFileSync(join(server.dir, "rule.yaml"), await page.evaluate(() => navigator.clipboard.readText()));
  for (const row of await page.locator(".rule li code").allInnerTexts()) {
    // The commands are typed as they are shown. The last one asks: exit 1 is `never violated`.
    const [program, ...words] = row.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", "")) ?? [];
    assert.equal(program, "dendrer");
    try {
      run(server.dir, words);
      assert.notEqual(words[0], "bisect");
    } catch (fault) {
      assert.deepEqual([words[0], (fault as { status?: number }).status], ["bisect", 1]);
    }
  }
  const state = JSON.parse(run(server.dir, ["state", "shop_chat.rule@3", "--json"])) as { value: { search_price: unknown } };
  assert.deepEqual(state.value.search_price, { item: "torque wrench", price: 310, currency: "EUR" });
  assert.deepEqual(faults, []);
  await context.close();
});

test("a_value_behind_a_cut_is_asked_for_by_its_own_place", async () => {
  const { page, context, faults } = await open(browser, server);
  await context.route("**/openapi.json", async (route) => {
    const document = (await (await route.fetch()).json()) as { paths: Record<string, { get: { parameters: { name: string }[] } }> };
    document.paths["/run/{run}/t/{tick}/state.json"]?.get.parameters.push({ name: "max" });
    await route.fulfill({ json: document });
  });
  await context.route("**/t/22/state.json*", async (route) => {
    const url = new URL(route.request().url());
    const state = { schema: "dendrer.state/1", run: "logistics-run-47", tick: 22, agent: null, certainty: "recorded", path: "", state_root: "sha256:0", window: "after" };
    if (url.searchParams.has("base")) return route.fulfill({ json: { schema: "dendrer.state-difference/1", base: { run: "logistics-run-47", tick: 21 }, certainty: "recorded", items: [], path: "", run: "logistics-run-47", tick: 22, window: "after" } });
    assert.equal(url.searchParams.get("max"), "4096");
    if (url.searchParams.get("path") === "/far") return route.fulfill({ json: { ...state, path: "/far", value: { $cut: { kind: "text", bytes: 900000, head: "the first part" } } } });
    return route.fulfill({ json: { ...state, value: { $cut: { kind: "object", bytes: 1_000_000, items: 9000, head: { near: 1 } } } } });
  });
  await page.goto(`${server.origin}/run/logistics-run-47/t/22/state?path=%2Ffar`);
  await settled(page);
  assert.match((await page.locator(".value").innerText()).replaceAll(/\s+/g, " "), /cut text of 900,000 bytes "the first part"/);
  assert.match((await page.locator(".tree").innerText()).replaceAll(/\s+/g, " "), /near 1 cut object of 1,000,000 bytes, 9,000 items/);
  assert.deepEqual(faults, []);
  await context.close();
});
