// Values that are easy to lose: long numbers, cut texts, JSON in a text, names that read like roles, emoji, places as they are typed.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { launch, makeDemo, open, remove, run, serve, settled, type Server } from "./harness.ts";

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
const clipboard = () => page.evaluate(() => navigator.clipboard.readText());

test("long_numbers_have_their_digits_on_every_screen", async () => {
  for (const path of ["/run/odd?t=1", "/run/odd?t=1&tab=record", "/run/odd/t/1/state?path=%2Fbig", "/run/odd/t/1/state?mode=raw", "/run/odd/t/1/state?mode=diff", "/run/odd/backtrack?path=%2Fbig", "/run/odd/t/1/why?path=%2Fbig", "/run/chat?t=3", "/run/chat?t=3&tab=record", "/run/chat?view=transcript"]) {
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

test("no_fault_on_any_screen", () => {
  assert.deepEqual(faults, []);
});
