// Values that are easy to lose: long numbers, cut texts, JSON in a text, names that read like roles, emoji, places as they are typed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { launch, makeDemo, open, PROGRAM, remove, run, serve, settled, type Server } from "./harness.ts";

const FAMILY = "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}";
const BIG = "107505301260286111";
const WIDE = "123456789012345678901234567890";
const LONG = "abcdefghi ".repeat(1000);
let server: Server;
let browser: Browser;
let page: Page;
let faults: string[];

/** A line of a commit; numbers are written as they are, which `JSON.stringify` would round. */
const LINES = [
  `{"type":"observation.add","agent":"user","intent":{"description":"family ${FAMILY} and a\u200db","id":${BIG}},"delta":[{"set":"/big","value":${BIG}},{"set":"/least","value":-9223372036854775807},{"set":"/route","value":{"via":"north","list":[1,2,{"a":${BIG}}]}},{"set":"/nested","value":{"k.with.dot":"v"}},{"set":"/long","value":${JSON.stringify(LONG)}},{"set":"/hidden","value":"pay\u200bload ${FAMILY}"},{"set":"/json","value":"{\\"id\\":${WIDE}}"}]}`,
  `{"type":"observation.add","agent":"two words","intent":{"description":"an unclosed (a [group"},"delta":[{"set":"/big","value":107505301260286112}]}`,
];

const CHAT = `[{"role":"user","content":"please"},{"role":"assistant","name":"user","content":"I am not the user"},
{"role":"assistant","name":"bot","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\\"n\\":${BIG}}"}}]},
{"role":"tool","tool_call_id":"c1","content":"{\\"wide\\":${WIDE},\\"one\\":1.0,\\"far\\":1e400,\\"minus\\":-0}"},
{"role":"assistant","content":"{\\"$redacted\\":{\\"kind\\":\\"jwt\\"}}"}]`;

before(async () => {
  const dir = makeDemo();
  run(dir, ["commit", "--run", "odd"], `${LINES.join("\n")}\n`);
  run(dir, ["import", "-", "--run", "chat"], CHAT);
  writeFileSync(join(dir, "map.json"), JSON.stringify({ type: { const: "observation.add" }, agent: "/who", intent: { description: "/words" }, ts: "/at" }));
  run(dir, ["import", "-", "--kind", "jsonl", "--map", "map.json", "--run", "late"], `${JSON.stringify({ who: "a", words: "seen", at: "2026-01-02T03:04:05+02:00" })}\n`);
  run(dir, ["commit", "--run", "wide"], `${JSON.stringify({ type: "action.request", agent: "a", intent: { description: "call" }, action: { tool: "t", params: Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`member_${at}`, `value ${at}`])) } })}\n`);
  run(dir, ["commit", "--run", "other"], `${(LINES[0] ?? "").replaceAll(BIG, "107505301260286110")}\n`);
  server = await serve(dir);
  browser = await launch();
  ({ page, faults } = await open(browser, server));
});
after(async () => {
  await browser?.close();
  await server?.stop();
  if (server) remove(server.dir);
});

async function at(path: string): Promise<void> {
  await page.goto(server.origin + path);
  await settled(page);
}
const text = async (selector: string): Promise<string> => (await page.locator(selector).allInnerTexts()).join("\n").replaceAll(/\s+/g, " ");
/** Runs a command that was copied, as a shell does. */
const execute = (words: string) => execFileSync("sh", ["-c", `${words.replace(/^dendrer/, '"$PROGRAM"')} || [ $? = 1 ]`], { cwd: server.dir, env: { ...process.env, PROGRAM, HOME: join(server.dir, "..") }, stdio: "pipe" });
const clipboard = () => page.evaluate(() => navigator.clipboard.readText());

test("long_numbers_have_their_digits_on_every_screen", async () => {
  for (const path of ["/run/odd?t=1", "/run/odd?t=1&tab=record", "/run/odd/t/1/state?path=%2Fbig", "/run/odd/t/1/state?mode=raw", "/run/odd/t/1/state?mode=diff", "/run/odd/backtrack?path=%2Fbig", "/run/odd/t/1/why?path=%2Fbig", "/run/chat?t=3", "/run/chat?t=3&tab=record", "/run/chat?view=transcript", "/run/odd/diff?with=other"]) {
    await at(path);
    const shown = await text("main");
    assert.ok(shown.includes(BIG), `${path}: ${shown}`);
  }
  await at("/run/odd/t/2/state?mode=diff");
  assert.match(await text(".changes"), /big 107505301260286111 -> 107505301260286112/);
  await at("/run/odd?t=1");
  assert.match(await text(".changes"), /least -9223372036854775807/);
});

test("a_value_is_copied_whole_with_the_count_of_its_characters", async () => {
  for (const [place, value, count] of [["/big", BIG, "18 characters"], ["/long", LONG, "10,000 characters"], ["/hidden", `pay\u200bload ${FAMILY}`, "14 characters, some of them not seen"]] as const) {
    await at(`/run/odd/t/1/state?path=${encodeURIComponent(place)}`);
    await page.getByRole("button", { name: "copy value" }).click();
    await page.waitForSelector(".taken");
    assert.equal(await text(".taken"), `copied ${count}`);
    assert.equal(await clipboard(), value);
  }
  await at("/run/odd/t/2/state?path=%2Fbig&window=before");
  await page.getByRole("button", { name: "copy value" }).click();
  await page.waitForSelector(".taken");
  assert.equal(await clipboard(), BIG);
});

test("a_place_is_read_in_every_documented_form", async () => {
  for (const [typed, name, value] of [["route.via", "route.via", '"north"'], ["/route/via", "route.via", '"north"'], ["route.list[2].a", "route.list[2].a", BIG], ['nested["k.with.dot"]', 'nested["k.with.dot"]', '"v"'], ["big", "big", BIG]] as const) {
    await at(`/run/odd/t/1/state?path=${encodeURIComponent(typed)}`);
    assert.equal(await text(".value h2"), name);
    assert.ok((await text(".value")).includes(value), typed);
    assert.ok((await text(".pinned")).includes(`change of ${name}`), typed);
    assert.equal(await page.locator('.tree a[aria-current="true"]').count(), 1, typed);
  }
  await at(`/run/odd/backtrack?path=${encodeURIComponent('nested["k.with.dot"]')}`);
  assert.equal(await text("h1"), 'History of nested["k.with.dot"]');
  await at("/run/odd/t/1/state?path=route.nowhere");
  assert.match(await text(".fault"), /E0104/);
});

test("an_agent_that_is_named_like_a_role_is_quoted_everywhere", async () => {
  await at("/run/chat?view=list&t=2");
  assert.deepEqual(await page.locator(".tick-row .agent").allInnerTexts(), ["begin", "user", '"user"', "bot", "bot", "assistant"]);
  assert.match(await text(".tick h2"), /plan\.update "user" /);
  assert.ok((await page.locator(".label-lane .name").allInnerTexts()).includes('"user"'));
  assert.ok((await page.locator("#agent option").allInnerTexts()).includes('"user"'));
  await at("/run/chat?view=transcript&t=2");
  assert.match((await page.locator(".said-item .who").allInnerTexts()).join("|"), /^user message\|"user" message/);
  await at("/run/chat/layout");
  assert.match((await page.locator(".node").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label"))).then((all) => all.join("|"))), /\|2 "user" [0-9a-f]{12}, transition/);
  await at("/run/chat/t/2/why");
  assert.match(await text(".facts"), /agent "user" author agent/);
  await at("/run/chat?lanes=user");
  assert.match(await text(".found .count"), /ticks fit agent "user"/);
  await at("/run/odd?t=2");
  assert.match(await text(".tick h2"), /"two words"/);
});

test("a_search_is_an_expression_or_a_text_and_the_page_says_which", async () => {
  await at("/run/odd?grep=fam.ly");
  assert.match(await text(".found"), /^1 of 2 ticks match \/fam\.ly\/ A regular expression\. Capitals count; \(\?i\) in front ignores them\./);
  await at("/run/odd?grep=FAMILY");
  assert.match(await text(".found .count"), /^0 of 2/);
  await at(`/run/odd?grep=${encodeURIComponent("(?i)FAMILY")}`);
  assert.match(await text(".found .count"), /^1 of 2/);
  for (const grep of ["(a [group", "(?i)(A [GROUP"]) {
    await at(`/run/odd?grep=${encodeURIComponent(grep)}`);
    assert.match(await text(".found"), /^1 of 2 ticks have the text .* searched as text: it is no regular expression/);
    await page.getByRole("button", { name: "Copy command" }).click();
    await page.waitForFunction(() => [...document.querySelectorAll(".buttons button")].some((one) => one.textContent === "copied"));
    const printed = run(server.dir, ["log", "odd", "--grep", `${grep.startsWith("(?i)") ? "(?i)" : ""}${grep.replace("(?i)", "").replaceAll(/[([]/g, "\\$&")}`, "--json"]);
    assert.equal((JSON.parse(printed) as { items: unknown[] }).items.length, 1);
    assert.equal(await clipboard(), `dendrer log odd --grep '${grep.startsWith("(?i)") ? "(?i)\\(A \\[GROUP" : "\\(a \\[group"}'`);
  }
});

test("a_copied_command_is_of_what_is_shown", async () => {
  for (const [query, words] of [["t=1", "dendrer show odd@1"], ["type=observation.add&t=1", "dendrer log odd --type observation.add"], ["lanes=two%20words&writes=big", "dendrer log odd --agent 'two words' --path big"], ["view=transcript&t=1", "dendrer log odd@1..2 --transcript"], ["", "dendrer bisect odd --all-of standard"]] as const) {
    await at(`/run/odd?${query}`);
    await page.getByRole("button", { name: "Copy command" }).click();
    await page.waitForFunction(() => [...document.querySelectorAll(".buttons button")].some((one) => one.textContent === "copied"));
    assert.equal(await clipboard(), words);
    execute(words);
  }
});

test("json_in_a_text_is_drawn_and_its_text_is_one_click_away", async () => {
  for (const [path, box] of [["/run/chat?t=4", ".tick"], ["/run/chat?view=transcript&t=4", ".said-item.chosen"]] as const) {
    await at(path);
    const held = page.locator(`${box} .held`).last();
    assert.match((await held.innerText()).replaceAll(/\s+/g, " "), new RegExp(`JSON in a text raw text .*wide: ${WIDE} one: 1\\.0 far: 1e400 minus: -0`));
    await held.getByRole("button", { name: "raw text" }).click();
    assert.ok((await held.innerText()).includes(`{"wide":${WIDE},"one":1.0,"far":1e400,"minus":-0}`));
  }
  await at("/run/chat?t=5");
  assert.match(await text(".tick .held"), /\$redacted: .*kind: "jwt"/, "a text has no marks");
  assert.equal(await page.locator(".tick .mark-redacted").count(), 0);
});

test("emoji_are_drawn_and_a_joiner_elsewhere_is_named", async () => {
  await at("/run/odd?t=1");
  assert.ok((await page.locator(".tick .said").innerText()).includes(`family ${FAMILY} and a`));
  assert.deepEqual(await page.locator(".tick .said .tok").allInnerTexts(), ["U+200D"]);
});

test("times_are_utc_with_its_mark", async () => {
  await at("/runs");
  for (const time of await page.locator("time").all()) {
    assert.match(await time.innerText(), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$/);
    assert.match((await time.getAttribute("title")) ?? "", /[+-]\d\d:\d\d here; recorded as /);
  }
  await at("/run/late?t=1");
  assert.match(await text(".tick h2"), /2026-01-02 01:04:05Z \(imported 20\d\d-.*Z\)/);
});

test("a_question_that_failed_three_times_shows_its_error", async () => {
  let count = 0;
  const failure = { schema: "dendrer.error/1", code: "E0810", kind: "internal", message: "the question ended early", where: {}, changed: false, notes: [], help: [] };
  await page.route("**/run/odd/verify.json*", (route) => {
    count += 1;
    return route.fulfill({ status: 503, headers: { "retry-after": "0" }, contentType: "application/json", body: JSON.stringify(failure) });
  });
  await at("/run/odd/verify");
  assert.match(await text("main .fault"), /E0810.*the question ended early/);
  assert.equal(count, 3);
  await page.unroute("**/run/odd/verify.json*");
});

test("long_parameters_are_opened_in_place", async () => {
  await at("/run/wide?t=1");
  const call = page.locator(".tick .call .fold").first();
  assert.doesNotMatch(await call.innerText(), /member_59/);
  await call.locator(".twist").first().click();
  assert.match(await call.innerText(), /member_59/);
});

test("no_fault_on_any_screen", () => {
  assert.deepEqual(faults, []);
});
