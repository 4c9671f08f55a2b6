// Keyboard alone, axe in both themes, 390 px and 400 % zoom.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import type { Browser, Page } from "playwright-core";
import { open, settled, SHOTS, shared, type Server } from "./harness.ts";

export const SCREENS = ["/runs", "/runs?tree=true&peek=logistics-run-47", "/run/R", "/run/R?view=list", "/run/R?view=transcript", "/run/R?tab=record", "/run/R?grep=a", "/run/R/t/20/state", "/run/R/t/20/state?path=%2Fmemory&mode=raw", "/run/R/diff?with=logistics-fix-1", "/run/R/bisect", "/run/R/verify", "/run/R/heatmap?metric=confidence", "/run/R/compare?a=router&b=pricing", "/run/R/steps", "/run/R/layout?t=23", "/run/R/layout?of=forks&size=fit", "/run/R?t=4&tab=rule", "/run/R/commitments", "/run/R/conflicts", "/run/R/contract", "/run/R/t/20/why", "/run/R/backtrack?path=%2Fmemory", "/help/keys", "/help/about"];
const MAIN = "/run/logistics-run-47";
let server: Server;
let browser: Browser;
let end: () => Promise<void>;

before(async () => {
  ({ server, browser, end } = await shared());
  mkdirSync(SHOTS, { recursive: true });
});
after(async () => {
  await end?.();
});

const SIZES = [["390_px", { width: 390, height: 844 }], ["400_percent", { width: 320, height: 256 }]] as const;
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const PARTS = 4;

async function axe(page: Page, screen: string, rules: string[] | null): Promise<void> {
  const builder = new AxeBuilder({ page: page as never });
  const found = await (rules ? builder.withRules(rules) : builder.withTags(TAGS)).analyze();
  assert.deepEqual(found.violations.map((one) => `${screen} ${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`).join(" | ")}`), []);
}

for (let part = 0; part < PARTS; part += 1) {
  // Each screen is loaded once: axe in both themes, then it must flow in narrow windows.
  test(`screens_pass_axe_in_both_themes_and_flow_when_narrow_${part + 1}`, async () => {
    const { page, context } = await open(browser, server);
    for (const screen of SCREENS.filter((_, at) => at % PARTS === part)) {
      const name = screen.replaceAll(/[^a-z0-9]+/gi, "-");
      // A high window: the bar at its end covers nothing.
      await page.setViewportSize({ width: 1280, height: 3000 });
      await page.emulateMedia({ colorScheme: "light" });
      await page.goto(server.origin + screen.replace("R", "logistics-run-47"));
      await settled(page);
      await axe(page, screen, null);
      await page.emulateMedia({ colorScheme: "dark" });
      await axe(page, screen, ["color-contrast"]);
      for (const [size, to] of SIZES) {
        await page.setViewportSize(to);
        await settled(page);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${screen} is ${wide} px too wide at ${size}`);
        if (process.env.DENDRER_SHOTS) await page.screenshot({ path: join(SHOTS, `${name}${size}-dark.png`) });
      }
      if (process.env.DENDRER_SHOTS) {
        await page.setViewportSize({ width: 1280, height: 800 });
        for (const scheme of ["dark", "light"] as const) {
          await page.emulateMedia({ colorScheme: scheme });
          await page.screenshot({ path: join(SHOTS, `${name}1280-${scheme}.png`) });
        }
      }
    }
    await context.close();
  });
}

async function focused(page: Page): Promise<string> {
  return page.evaluate(() => document.activeElement?.textContent?.trim().slice(0, 40) || document.activeElement?.getAttribute("aria-label")?.slice(0, 40) || document.activeElement?.id || "");
}

test("a_tour_needs_no_mouse", async () => {
  const { page, context } = await open(browser, server);
  await page.goto(`${server.origin}/runs`);
  await settled(page);
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Skip to the content");
  await page.keyboard.press("Enter");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.waitForFunction(() => document.activeElement?.textContent === document.querySelectorAll(".run-link")[1]?.textContent);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/run\//);
  await page.goto(server.origin + MAIN);
  await settled(page);
  const tick = () => new URL(page.url()).searchParams.get("t");
  for (const [key, wanted] of [["j", "23"], ["J", "33"], ["K", "23"], ["k", "22"], ["n", "23"], ["n", "27"], ["N", "23"], ["v", "32"], ["Home", "0"], ["End", "64"]] as const) {
    await page.keyboard.press(key);
    await page.waitForFunction((to) => new URLSearchParams(location.search).get("t") === to, wanted, { timeout: 5000 }).catch(() => assert.fail(`${key}: ${tick()} and not ${wanted}`));
  }
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "grep");
  await page.keyboard.type("jv");
  assert.equal(tick(), "64", "keys do not act in a field");
  await page.keyboard.press("Escape");
  for (const [keys, url] of [["gs", /\/t\/64\/state/], ["gb", /\/bisect/], ["gd", /\/diff/], ["gv", /\/verify/], ["gm", /\/commitments/], ["gt", /run-47\?t=64$/]] as const) {
    await page.keyboard.press(keys[0] ?? "");
    await page.keyboard.press(keys[1] ?? "");
    await page.waitForURL(url);
  }
  await settled(page);
  await page.keyboard.press("Y");
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("dendrer bisect"));
  await page.keyboard.press("y");
  await page.waitForFunction(async () => (await navigator.clipboard.readText()) === location.href);
  await page.keyboard.press("?");
  await page.waitForURL(/help\/keys/);
  await page.getByLabel("keys of one letter act").uncheck();
  await page.goto(`${server.origin}${MAIN}?t=5`);
  await settled(page);
  await page.keyboard.press("j");
  assert.equal(tick(), "5", "keys are off");
  await context.close();
});

test("the_palette_finds_views_runs_ticks_and_keys", async () => {
  const { page, context } = await open(browser, server);
  await page.goto(server.origin + MAIN);
  await settled(page);
  const ask = async (text: string) => {
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.type(text);
  };
  await ask("go to the state");
  const found = await new AxeBuilder({ page: page as never }).include("dialog").analyze();
  assert.deepEqual(found.violations.map((one) => `${one.id} ${one.nodes[0]?.html}`), []);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/t\/22\/state/);
  await ask("41");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/t\/41\/state/);
  await ask("trip-planner-b");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/run\/trip-planner-b/);
  await settled(page);
  await ask("nothing at all");
  assert.match(await page.locator('[role="option"]').innerText(), /search "nothing at all" in this run/);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  await context.close();
});

test("lanes_places_and_filters_have_keys", async () => {
  const { page, context } = await open(browser, server);
  await page.goto(`${server.origin}${MAIN}?t=22`);
  await settled(page);
  const at = async (key: string, tick: string) => {
    await page.keyboard.press(key);
    await page.waitForFunction((to) => new URLSearchParams(location.search).get("t") === to, tick, { timeout: 5000 }).catch(() => assert.fail(`${key}: ${page.url()} and not ${tick}`));
  };
  await at("l", "21");
  await at("h", "22");
  await page.keyboard.press("x");
  await page.waitForURL(/path=%2Fsources/);
  await page.keyboard.press("x");
  await page.waitForFunction(() => !location.search.includes("path"));
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "tab-panel");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement?.closest(".left") !== null), true);
  await page.keyboard.press("/");
  await page.keyboard.type("agent:router path:route_status night");
  await page.keyboard.press("Enter");
  await page.waitForURL(/grep=night&lanes=router&writes=route_status/);
  await context.close();
});

test("scrubbing_is_announced", async () => {
  const { page, context } = await open(browser, server);
  await page.goto(`${server.origin}${MAIN}?t=21`);
  await settled(page);
  await page.keyboard.press("j");
  await page.waitForFunction(() => /tick 22 of 64, observation add, feed-reader, confidence 0\.31/.test(document.querySelector('[aria-live="polite"].hidden')?.textContent ?? ""));
  await context.close();
});

test("ticks_and_the_tick_are_two_tabs_in_a_narrow_window", async () => {
  const { page, context } = await open(browser, server, { width: 390, height: 844 });
  await page.goto(`${server.origin}${MAIN}?view=transcript`);
  await settled(page);
  assert.equal(await page.locator(".left").isVisible(), false);
  await page.getByRole("group", { name: "part" }).getByRole("button", { name: "transcript" }).click();
  await page.waitForURL(/pane=list/);
  assert.equal(await page.locator(".left").isVisible(), true);
  assert.equal(await page.locator(".right").isVisible(), false);
  for (const label of await page.locator(".label-lane .name, .label-strip .name").all()) assert.ok(await label.isVisible());
  assert.equal(await page.locator(".label-lane").count(), 4, "the lanes with the most transitions are drawn, with their names");
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
  await context.close();
});
