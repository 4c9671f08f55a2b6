// A happy path for each screen, on the demo and an imported chat, against a real server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { open, run, serve, settled, shared, type Server } from "./harness.ts";

const MAIN = "/run/logistics-run-47";
let server: Server;
let browser: Browser;
let end: () => Promise<void>;
let page: Page;
let faults: string[];

before(async () => {
  ({ server, browser, end } = await shared());
  ({ page, faults } = await open(browser, server));
});
after(async () => {
  await end?.();
});

async function at(path: string): Promise<void> {
  await page.goto(server.origin + path);
  await settled(page);
}
const text = async (selector: string): Promise<string> => (await page.locator(selector).allInnerTexts()).join("\n");
async function document_<T>(path: string): Promise<T> {
  return (await (await page.context().request.get(server.origin + path)).json()) as T;
}

test("runs_are_listed_filtered_sorted_and_compared", async () => {
  await at("/runs");
  assert.equal(await page.locator(".run-link").count(), (await document_<{ total: number }>("/runs.json")).total);
  await page.fill("#where", "ticks > 60");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".run-link").length === 3);
  assert.match(page.url(), /where=ticks%20%3E%2060/);
  await page.fill("#where", "ticks >");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".fault");
  assert.match(await text(".fault"), /E05\d\d|E01\d\d/);
  await at("/runs?tree=true&sort=name");
  const depth = await page.locator("tr", { has: page.getByRole("link", { name: "trip-planner-b", exact: true }) }).locator(".name-cell").first().evaluate((cell) => getComputedStyle(cell).paddingLeft);
  assert.equal(depth, "26px");
  await page.getByLabel("compare logistics-run-47").check();
  await page.getByLabel("compare logistics-fix-1").check();
  await page.getByRole("button", { name: /^Compare/ }).click();
  await settled(page);
  assert.match(page.url(), /\/diff\?with=logistics-fix-1$/);
});

test("facets_count_and_filter_and_a_row_is_peeked", async () => {
  await at("/runs");
  const all = await document_<{ items: { stage: number; verified_here: boolean; forked_from: unknown; name: string }[] }>("/runs.json?limit=200");
  const facet = (name: RegExp) => page.getByRole("button", { name });
  assert.equal(await facet(/^stage 2/).innerText().then((words) => words.replace(/\s+/g, " ")), `stage 2 ${all.items.filter((one) => one.stage === 2).length}`);
  await facet(/^forks/).click();
  await page.waitForFunction((count) => document.querySelectorAll(".run-link").length === count, all.items.filter((one) => one.forked_from !== null).length);
  await facet(/^not checked/).click();
  await settled(page);
  await page.getByRole("button", { name: "Copy command" }).click();
  const words = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(words, "dendrer runs --where '!verified && forked'");
  const printed = JSON.parse(run(server.dir, ["runs", "--where", "!verified && forked", "--json"])) as { items: { name: string }[] };
  assert.deepEqual(await page.locator(".run-link").allInnerTexts(), printed.items.map((one) => one.name));
  await at("/runs?where=stage%20%3D%3D%202&first=true");
  await page.waitForFunction(() => !/\.\./.test([...document.querySelectorAll("tbody td.num")].map((one) => one.textContent).join(" ")));
  const claims = await document_<{ items: { onset: number | null }[] }>("/run/claims-9/first.json");
  const onset = Math.min(...claims.items.flatMap((one) => one.onset ?? []));
  assert.match((await page.locator("tr", { has: page.getByRole("link", { name: "claims-9", exact: true }) }).innerText()).replaceAll(/\s+/g, " "), new RegExp(` ${onset} 2026-03-01`));
  await at("/runs?sort=name&after=financial-agent-C");
  const later = await document_<{ items: { name: string }[] }>("/runs.json?sort=name&after=financial-agent-C&limit=200");
  assert.deepEqual(await page.locator(".run-link").allInnerTexts(), later.items.map((one) => one.name));
  await page.getByRole("button", { name: "from the beginning" }).click();
  await page.waitForFunction((count) => document.querySelectorAll(".run-link").length === count, all.items.length);
  await at("/runs?where=name.startsWith(%22logistics%22)");
  await page.keyboard.press("j");
  await settled(page);
  await page.waitForFunction(() => /violated at|ok/.test(document.querySelector(".peek .asked")?.textContent ?? ""));
  assert.match(page.url(), /peek=/);
  await page.getByRole("button", { name: "close the peek" }).click();
  assert.equal(await page.locator(".peek").count(), 0);
});

test("a_run_opens_at_its_first_violated_tick", async () => {
  await at(MAIN);
  assert.match(await text("h1"), /FIRST VIOLATED AT TICK 22 \(exact\) kernel\.policy_compliant/);
  assert.match(await text(".headline"), /unverified source introduced/);
  await page.waitForFunction(() => /largest write: risk_score 0\.71 -> 0\.83 of 5 writes/.test(document.querySelector(".headline")?.textContent ?? ""));
  assert.match(await text(".also"), /23 .*denied_count.*32 kernel\.anomaly_free.*39 .*tool_errors/);
  assert.match(await text(".tick"), /TICK 22 observation\.add feed-reader 0\.31/);
  assert.match((await text(".changes")).replaceAll(/\s+/g, " "), /\+ added sources\[2\] "unverified_feed_3".*~ changed quality_score 0\.84 -> 0\.62.*~ changed risk_score 0\.71 -> 0\.83/);
  assert.equal(await page.title(), "tick 22 - logistics-run-47 - dendrer");
  assert.equal(await page.locator('.tick-row[aria-selected="true"] .n').innerText(), "22");
  assert.ok((await page.evaluate(() => document.documentElement.scrollHeight)) <= 801, "it fits 1280 by 800 without scrolling");
  await page.waitForFunction(() => document.querySelector(".badge")?.textContent === "INTACT");
});

test("what_the_page_shows_of_a_tick_is_what_the_documents_say", async () => {
  for (const tick of [0, 1, 22, 23, 39, 64]) {
    await at(`${MAIN}?t=${tick}&tab=record`);
    const show = await document_<{ id: string; author: string; changes: { path: string }[] }>(`${MAIN}/t/${tick}/show.json`);
    assert.equal(await page.locator(".facts .hash").first().getAttribute("title"), show.id);
    await at(`${MAIN}?t=${tick}`);
    assert.equal(await page.locator(".changes tbody tr").count(), show.changes.length);
  }
});

test("an_expression_is_asked_and_an_error_shows_its_place", async () => {
  await at(MAIN);
  await page.fill("#ask", "state.risk_score <= 0.75");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("h1")?.textContent?.includes("state.risk_score <= 0.75"));
  assert.match(page.url(), /holds=state\.risk_score%20%3C%3D%200\.75/);
  assert.match(await text("h1"), /FIRST VIOLATED AT TICK 22/);
  await page.fill("#ask", "state.risk_score <=");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".fault .caret");
  assert.match(await text(".caret"), /state\.risk_score <=\n {19}\^/);
  await page.fill("#ask", "state.nope < 3");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /NO FIRST VIOLATION IS KNOWN/.test(document.querySelector("h1")?.textContent ?? ""));
  assert.match(await text(".headline"), /unknown.*state\.nope is missing/s);
  await page.fill("#ask", "state.risk_score < 9.0");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /NEVER VIOLATED/.test(document.querySelector("h1")?.textContent ?? ""));
});

test("list_transcript_and_filters_show_the_same_run", async () => {
  await at(`${MAIN}?view=list`);
  assert.ok(await page.locator(".ticks-wide .tick-row").count());
  await at(`${MAIN}?view=transcript&t=22`);
  assert.match(await text(".said-item.chosen"), /unverified source introduced/);
  await at(`${MAIN}?type=policy.decision`);
  await page.waitForFunction(() => /^4 of 64 ticks fit type policy\.decision/.test(document.querySelector(".found .count")?.textContent ?? ""));
  await at(`${MAIN}?grep=barges`);
  const log = await document_<{ items: unknown[] }>(`${MAIN}/log.json?grep=barges`);
  assert.equal(await page.locator(".found .tick-row").count(), log.items.length);
  await at(`${MAIN}?lanes=router`);
  assert.equal(await page.locator(".label-lane").count(), 1);
});

test("a_chat_reads_as_a_conversation_and_markdown_is_its_source", async () => {
  await at("/run/shop-chat?view=transcript&t=3");
  assert.match(await text(".transcript"), /Order what the workshop needs \*\*now\*\* !\[x\]\(https:\/\/leak\.example\/x\.png\)/);
  assert.equal(await page.locator("main img, main strong").count(), 0);
  assert.match(await text("h1"), /NONE OF 4 QUESTIONS IS VIOLATED/);
  assert.match((await text(".said-item.chosen")).replaceAll(/\s+/g, " "), /^2 assistant call search_price \{"item":"torque wrench"\} -> 3 ok JSON in a text raw text ▾ 3 members item: "torque wrench" price: 310 currency: "EUR"/);
  const transcript = await document_<{ items: { kind: string }[] }>("/run/shop-chat/transcript.json");
  assert.equal(await page.locator(".said-item").count(), transcript.items.filter((one) => one.kind !== "result").length, "a call and its answer are one row");
});

test("a_langgraph_thread_has_nodes_as_lanes_and_its_question", async () => {
  const name = (await document_<{ items: { name: string }[] }>("/runs.json")).items.find((one) => one.name.endsWith("/t-a"))?.name ?? "";
  await at(`/run/${encodeURIComponent(name)}?t=30`);
  const labels = await page.locator(".label-lane .name").allInnerTexts();
  assert.equal(labels.indexOf("quoter/ask"), labels.indexOf("quoter") + 1, "a subgraph is below its caller");
  assert.match(await text(".legend"), /asks a person/);
  await at(`/run/${encodeURIComponent(name)}?t=30&view=transcript`);
  assert.match(await text(".said-item.chosen"), /interrupt[\s\S]*wrench for 310\.0\?/);
});

test("a_state_has_its_tree_its_value_and_its_history", async () => {
  await at(`${MAIN}/t/22/state?path=%2Frisk_score`);
  assert.match((await text(".value")).replaceAll(/\s+/g, " "), /risk_score 0\.83 changed: 0\.71 -> 0\.83/);
  assert.equal(await page.locator(".tree li.alter").count(), 2);
  await page.keyboard.press("]");
  await page.waitForURL(/\/t\/29\/state/);
  await page.keyboard.press("[");
  await page.waitForURL(/\/t\/22\/state/);
  await page.getByRole("link", { name: "history of this place" }).click();
  await settled(page);
  const writes = await document_<{ total: number }>(`${MAIN}/backtrack.json?path=risk_score`);
  assert.equal(await page.locator(".list tbody tr").count(), writes.total);
  await at(`${MAIN}/t/22/state?path=%2Fnowhere`);
  assert.match(await text(".value"), /absent/);
  await at(`${MAIN}/t/22/state?base=logistics-planner-1%4022&mode=diff`);
  assert.match(await text("main"), /places differ from logistics-planner-1@22/);
});

test("a_value_has_its_reason", async () => {
  await at(`${MAIN}/t/22/why?path=%2Frisk_score`);
  assert.match(await text("main"), /value 0\.83[\s\S]*Largest writes[\s\S]*0\.71 -> 0\.83[\s\S]*First seen \(heuristic\)/);
});

test("a_diff_names_the_first_difference_and_its_cause", async () => {
  await at(`${MAIN}/diff?with=logistics-fix-1`);
  assert.match(await text(".first-difference"), /FIRST DIFFERENCE \(exact\) a: tick 22 b: tick 23 cause: the fork marker of b says "use the verified feed"/);
  assert.match(await text(".shared"), /ticks 1\.\.21 identical, same hashes/);
  await page.getByRole("button", { name: /^semantic 1/ }).click();
  assert.equal(await page.locator(".diff-table tbody tr:not(.inner-row)").count(), 1);
  assert.match(page.url(), /kind=semantic/);
});

test("a_search_shows_each_probe_with_its_interval", async () => {
  await at(`${MAIN}/bisect`);
  const bisect = await document_<{ items: { tick: number; left: number[] }[] }>(`${MAIN}/bisect.json?predicate=kernel.policy_compliant`);
  const rows = await page.locator(".probes tbody tr").allInnerTexts();
  assert.equal(rows.length, bisect.items.length + 2);
  bisect.items.forEach((one, row) => assert.match((rows[row + 2] ?? "").replaceAll(/\s+/g, " "), new RegExp(`${row + 1}/6 ${one.tick} (OK|FAIL) ${one.left[0]}\\.\\.${one.left[1]}`)));
  assert.match(await text(".card"), /ORIGIN tick 22 \(exact\)/);
  assert.match(await text("main"), /Largest writes 3 of 5[\s\S]*Causal chain \(heuristic\)/);
});

test("a_record_is_verified_and_replayed", async () => {
  await at(`${MAIN}/verify`);
  assert.match(await text(".verdict-big"), /^INTACT/);
  await page.getByLabel(/replay/).check();
  await page.waitForFunction(() => /64 of 64 states reproduced/.test(document.querySelector("main")?.textContent ?? ""));
});

test("commitments_contracts_and_conflicts_are_tables", async () => {
  for (const name of ["planning-run-12", "claims-9", "trip-planner-a"]) {
    const document = await document_<{ items: unknown[] }>(`/run/${name}/commitments.json`);
    await at(`/run/${name}/commitments`);
    assert.equal(await page.locator(".list tbody tr").count(), document.items.length);
  }
  await at("/run/claims-9/contract");
  assert.match(await text("main"), /over_limit_payout\s+FAIL\s+33/);
  await at("/run/logistics-run-47/contract");
  assert.match(await text(".fault"), /E0909/);
  await at("/run/shop-team/conflicts");
  assert.match((await text("main")).replaceAll(/\s+/g, " "), /memory\.cover_price written north 2: 280 south 3: 245/);
});

test("graphs_are_pictures_with_a_table", async () => {
  for (const [path, word] of [[MAIN, "causal"], ["/run/run-84f2", "compiled"], ["/run/bound", "commitments"], ["/run/trip-planner-a", "forks"]] as const) {
    await at(`${path}/layout?of=${word}&size=fit`);
    const layout = await document_<{ nodes: { label: string }[]; edges: { rel: string }[] }>(`${path}/layout.json?of=${word}`);
    assert.equal(await page.locator(".graph .node").count(), layout.nodes.length, word);
    assert.equal(await page.locator(".graph path.edge").count(), layout.edges.length, word);
    assert.equal(await page.locator(".layout-side .list tbody tr").count(), Math.min(100, layout.edges.length), word);
  }
  await at("/run/run-84f2/layout?of=compiled");
  await page.locator(".outcome summary").click();
  assert.match((await text(".outcome")).replaceAll(/\s+/g, " "), /2 recorded edges, 3 pure nodes .* e1 model\.call read \["what is on friday\?"\] \{"day":"friday"\}/);
  await at(`${MAIN}/layout?t=23`);
  assert.match(await text(".layout-side .card"), /23 compliance[\s\S]*transition, denied/);
  await page.locator('.node[aria-current="true"]').focus();
  await page.keyboard.press("ArrowUp");
  await page.waitForURL(/t=11/);
  await page.getByRole("button", { name: "draw only what is near" }).click();
  await settled(page);
  assert.match(page.url(), /focus=/);
  await at(`${MAIN}/layout?focus=9999`);
  assert.match(await text(".fault"), /E0104/);
});

test("a_heatmap_has_its_numbers_twice", async () => {
  await at(`${MAIN}/heatmap?metric=confidence`);
  const heat = await document_<{ items: { value: number; tick: number }[] }>(`${MAIN}/heatmap.json?metric=confidence&limit=5000`);
  assert.equal(await page.locator(".screen .list tbody tr").count(), heat.items.length);
  const cells = (await page.locator(".heat td a").allInnerTexts()).map(Number);
  assert.equal(Math.max(...cells), Math.max(...heat.items.map((one) => one.value)));
  await page.locator(".heat td a").first().click();
  await page.waitForURL(/run-47\?t=\d+/);
});

test("agents_of_a_run_are_compared", async () => {
  await at(`${MAIN}/compare`);
  await page.selectOption("#agent-a", "router");
  await page.selectOption("#agent-b", "pricing");
  await settled(page);
  const compare = await document_<{ variance: unknown[] }>(`${MAIN}/compare.json?a=router&b=pricing`);
  assert.equal(await page.locator(".screen .list tbody tr").count(), compare.variance.length);
  assert.match(await text(".facts"), /100 % of 16 nodes/);
  await page.getByRole("button", { name: "Copy command" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "dendrer compare logistics-run-47:router logistics-run-47:pricing");
});

test("steps_are_listed_and_counted", async () => {
  await at(`${MAIN}/steps`);
  const steps = await document_<{ items: { action: string }[] }>(`${MAIN}/steps.json`);
  assert.equal(await page.locator(".screen .list tbody tr").count(), steps.items.length);
  await page.getByRole("button", { name: /^gate_check 4, 3 failed/ }).click();
  await page.waitForFunction((count) => document.querySelectorAll(".screen .list tbody tr").length === count, steps.items.filter((one) => one.action === "gate_check").length);
});

test("the_contract_in_force_is_in_the_header", async () => {
  await at("/run/claims-9?t=10");
  await page.waitForFunction(() => document.querySelector(".in-force")?.textContent === "insurance.claims v1");
  await at("/run/claims-9?t=30");
  await page.waitForFunction(() => document.querySelector(".in-force")?.textContent === "insurance.claims v1 + e1");
  await at(MAIN);
  assert.equal(await page.locator(".in-force").count(), 0);
});

test("buttons_copy_a_link_a_command_and_a_citation", async () => {
  await at(`${MAIN}?holds=state.risk_score%20%3C%3D%200.75`);
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  await page.getByRole("button", { name: "Copy command" }).click();
  assert.equal(await clipboard(), "dendrer bisect logistics-run-47 --holds 'state.risk_score <= 0.75'");
  await page.getByRole("button", { name: "copied" }).waitFor();
  await page.getByRole("button", { name: "Copy link" }).click();
  assert.equal(await clipboard(), page.url());
  await page.getByRole("button", { name: "Copy citation" }).click();
  assert.match(await clipboard(), /^logistics-run-47@22 sha256:[0-9a-f]{64}$/);
});

test("a_copied_command_gives_the_same_answer", async () => {
  await at(`${MAIN}/t/22/state?path=%2Frisk_score`);
  await page.getByRole("button", { name: "Copy command" }).click();
  const words = (await page.evaluate(() => navigator.clipboard.readText())).split(" ");
  assert.equal(words.shift(), "dendrer");
  assert.equal((JSON.parse(run(server.dir, [...words, "--json"])) as { value: number }).value, 0.83);
});

test("values_that_are_not_there_differ_from_each_other_and_from_text", async () => {
  await at("/run/marks/t/1/state");
  assert.equal(await page.locator(".value .mark-redacted").count(), 1);
  assert.match(await text(".value"), /api_key:\s*redacted named medium/);
  await at("/run/marks?t=2");
  assert.match((await text(".tick")).replaceAll(/\s+/g, " "), /a marker in text: \{"\$redacted".* erased or withheld the changes are not read/);
  assert.equal(await page.locator(".places .mark-closed").count(), 2);
  assert.equal(await page.locator(".tick .mark-redacted").count(), 0);
  await page.waitForFunction(() => document.querySelector(".badge-unknown")?.textContent === "UNVERIFIABLE");
  assert.doesNotMatch(await text("h1"), /NONE OF|NEVER/);
  await at("/run/marks/t/3/state");
  assert.match(await text(".fault"), /E0311.*not known/s);
  await at("/runs");
  assert.match(await page.locator("tr", { has: page.getByRole("link", { name: "marks", exact: true }) }).innerText(), /unknown\s+state/);
});

test("each_kind_of_missing_value_looks_different", async () => {
  for (const theme of ["light", "dark"]) {
    await at(`/help/about?theme=${theme}`);
    const looks = await page.evaluate(() => [...document.querySelectorAll(".mark-list .mark")].map((one) => {
      const style = getComputedStyle(one);
      return [one.className, [style.borderStyle, style.borderWidth, style.borderColor, style.background, style.borderRadius].join("|"), one.textContent ?? ""];
    }));
    assert.equal(looks.length, 11);
    assert.equal(new Set(looks.map(([, look]) => look)).size, looks.length, "frame and ground");
    assert.equal(new Set(looks.map(([, , word]) => word)).size, looks.length, "word");
    assert.ok(looks.every(([, , word]) => word !== ""));
  }
});

test("the_same_screen_prints_in_full_and_follows_the_theme_of_the_address", async () => {
  await page.emulateMedia({ media: "print" });
  await at(`${MAIN}/verify`);
  assert.match(await page.locator(".facts").nth(1).innerText(), /sha256:[0-9a-f]{64}/);
  assert.equal(await page.locator(".rail").isVisible(), false);
  await page.emulateMedia({ media: "screen" });
  await at("/runs?theme=dark");
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(20, 23, 27)");
});

test("refused_lines_are_shown_where_they_came", async () => {
  await at("/run/hostile-1?refusals=true");
  assert.equal(await page.locator(".found .word", { hasText: "REFUSED" }).count(), 6);
  assert.equal(await page.locator(".found .tick-row").count(), 26);
});

for (const [file, verdict] of [["logistics-run-47.dnd", "INTACT"], ["tampered.dnd", "TAMPERED at tick 18"]] as const) {
  test(`a_bundle_is_served_${verdict.split(" ")[0]?.toLowerCase()}`, async () => {
    const own = await serve(server.dir, [file]);
    const opened = await open(browser, own);
    await opened.page.goto(`${own.origin}/runs`);
    await settled(opened.page);
    await opened.page.locator(".run-link").first().click();
    await opened.page.waitForFunction((word) => document.querySelector(".badge")?.textContent === word, verdict);
    assert.deepEqual(opened.faults, []);
    await opened.context.close();
    await own.stop();
  });
}

test("a_bundle_with_withheld_values_says_where", async () => {
  const stay = ["delta", "intent", "action", "policy", "result.error"].flatMap((place) => ["--although", place]);
  run(server.dir, ["export", "logistics-run-47", "--withhold", "/result/output", ...stay, "-o", "withheld.dnd"]);
  const own = await serve(server.dir, ["withheld.dnd"]);
  const opened = await open(browser, own);
  await opened.page.goto(`${own.origin}/run/logistics-run-47?t=4&tab=record`);
  await settled(opened.page);
  await opened.page.goto(`${own.origin}/run/logistics-run-47?t=4`);
  await settled(opened.page);
  assert.match(await opened.page.locator(".tick .places").innerText(), /erased or withheld result\.output/);
  assert.equal(await opened.page.getByRole("tab", { name: "make a rule of it" }).count(), 0, "no rule of what is not here");
  await opened.page.waitForFunction(() => /INTACT|UNVERIFIABLE/.test(document.querySelector(".badge")?.textContent ?? ""));
  assert.deepEqual(opened.faults, []);
  await opened.context.close();
  await own.stop();
});

test("a_run_that_came_from_another_store_has_its_screens", async () => {
  const name = (await document_<{ items: { name: string }[] }>("/runs.json")).items.find((one) => one.name.endsWith("/t-a+2"))?.name ?? "";
  const path = `/run/${encodeURIComponent(name).replaceAll(".", "%2E")}`;
  for (const screen of ["", "?view=transcript", "/t/40/state", "/bisect", "/verify", "/layout", "/layout?of=forks", "/steps", "/heatmap", "/backtrack?path=%2Fvalues"]) {
    await at(path + screen);
    assert.equal(await page.locator("main .fault").count(), 0, screen);
  }
});

test("a_run_that_is_missing_says_so", async () => {
  await page.goto(`${server.origin}/run/nope`);
  await page.waitForSelector(".fault");
  assert.match(await text(".fault"), /E0101.*no run named "nope"/s);
  assert.match(await text(".fault"), /dendrer runs/);
  await at("/nowhere");
  assert.match(await text("h1"), /No such page/);
});

test("no_request_left_and_nothing_failed", () => {
  assert.deepEqual(faults, []);
});
