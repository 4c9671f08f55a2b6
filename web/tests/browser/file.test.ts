// The one file of `export --format html`, opened from the disk: complete without script, searched and scrubbed with it, no request.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { launch, makeDemo, remove, run, SHOTS } from "./harness.ts";

const RUNS = ["logistics-run-47", "hostile-1"];
let dir: string;
let browser: Browser;

before(async () => {
  dir = makeDemo();
  for (const name of RUNS) run(dir, ["export", name, "--with", "logistics-planner-1", "--format", "html", "-o", `${name}.html`]);
  browser = await launch();
  mkdirSync(SHOTS, { recursive: true });
});
after(async () => {
  await browser?.close();
  if (dir) remove(dir);
});

type Opened = { page: Page; context: BrowserContext; faults: string[] };

/** Opens a file from the disk. Faults are dialogs, errors, messages and every request but that for the file. */
async function openFile(name: string, options: { script?: boolean; dark?: boolean; width?: number } = {}): Promise<Opened> {
  const context = await browser.newContext({ javaScriptEnabled: options.script ?? true, colorScheme: options.dark ? "dark" : "light", viewport: { width: options.width ?? 1280, height: 800 } });
  const page = await context.newPage();
  const url = pathToFileURL(join(dir, `${name}.html`)).href;
  const faults: string[] = [];
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("pageerror", (fault) => faults.push(`error: ${fault.message}`));
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  page.on("request", (request) => {
    if (request.url() !== url) faults.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  return { page, context, faults };
}

for (const name of RUNS) {
  for (const dark of [false, true]) {
    test(`axe_finds_nothing_in_the_file_of_${name}_${dark ? "dark" : "light"}`, async () => {
      // 320 px are 1,280 at 400 % zoom. Axe looks once: it reads every element of the file.
      for (const width of [320, 390, 1280]) {
        const { page, context, faults } = await openFile(name, { dark, width });
        const found = width < 1280 ? { violations: [] } : await new AxeBuilder({ page: page as never }).withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]).analyze();
        assert.deepEqual(found.violations.map((one) => `${width} ${one.id}: ${one.nodes[0]?.html.slice(0, 160)}`), []);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${width} px scroll sideways`);
        assert.deepEqual(faults, []);
        await page.screenshot({ path: join(SHOTS, `file-${name}-${width}-${dark ? "dark" : "light"}.png`) });
        await context.close();
      }
    });
  }
}

test("a_file_is_read_without_script", async () => {
  const { page, context, faults } = await openFile("logistics-run-47", { script: false });
  assert.ok(!(await page.locator("#tools").isVisible()), "what needs the script is hidden");
  const sections = await page.locator("h2").allInnerTexts();
  assert.deepEqual(sections, ["Verdict", "What went wrong first", "Timeline", "Transcript", "State changes", "Compared with logistics-planner-1", "How to check it"]);
  for (const words of ["INTACT", "ONSET (exact)  tick 22", "private feed offers barges", "risk_score  0.71 -> 0.83", "the page around the bundle"]) {
    assert.ok(await page.getByText(words).first().isVisible(), words);
  }
  assert.equal(await page.locator("li[id^=t]").count(), 64);
  assert.deepEqual(faults, []);
  await context.close();
});

test("a_file_is_searched_scrubbed_and_folded_with_script", async () => {
  const { page, context, faults } = await openFile("logistics-run-47");
  await page.fill("#find", "barges");
  assert.match((await page.locator("#at").textContent()) ?? "", /^\d+ of \d+ found$/);
  assert.ok(await page.locator("#t22").isVisible());
  assert.ok(!(await page.locator("#t1").isVisible()));
  await page.fill("#find", "");
  await page.focus("#tick");
  await page.keyboard.press("End");
  assert.equal(await page.locator("#at").textContent(), "tick 64, 64 of 64");
  assert.ok(await page.locator("#t64").isVisible());
  await page.click("#fold");
  assert.ok(!(await page.locator("#t64").isVisible()));
  await page.keyboard.press("Enter");
  assert.ok(await page.locator("#t64").isVisible());
  assert.deepEqual(faults, []);
  await context.close();
});
