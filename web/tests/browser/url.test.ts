// Every control is in the address: do, take the address, open it in a fresh window, compare.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { open, settled, shared, type Server } from "./harness.ts";

const MAIN = "/run/logistics-run-47";
let server: Server;
let browser: Browser;
let end: () => Promise<void>;
let page: Page;
let second: Page;

before(async () => {
  ({ server, browser, end } = await shared());
  ({ page } = await open(browser, server));
  ({ page: second } = await open(browser, server));
});
after(async () => {
  await end?.();
});

/** What a reader sees of a screen. */
async function seen(of: Page): Promise<unknown> {
  await settled(of);
  await of.waitForTimeout(250);
  return of.evaluate(() => {
    // Where a list was scrolled to is no state of the screen.
    const copy = document.querySelector("main")?.cloneNode(true) as HTMLElement;
    copy.querySelector(".ticks-rows")?.remove();
    return {
    title: document.title,
    main: copy.textContent,
    controls: [...document.querySelectorAll<HTMLInputElement | HTMLSelectElement>("main input, main select, .scrubber input")].map((one) => (one.type === "checkbox" ? (one as HTMLInputElement).checked : one.value)),
    pressed: [...document.querySelectorAll('[aria-pressed="true"], [aria-selected="true"]')].map((one) => one.textContent),
    };
  });
}

const STEPS: [string, string, (page: Page) => Promise<unknown>][] = [
  ["where", "/runs", async (p) => { await p.fill("#where", "stage == 2"); await p.keyboard.press("Enter"); }],
  ["stage", "/runs", (p) => p.getByRole("button", { name: /^stage 1/ }).click()],
  ["verified", "/runs?where=ticks%20%3E%2040", (p) => p.getByRole("button", { name: /^not checked/ }).click()],
  ["forked", "/runs", (p) => p.getByRole("button", { name: /^forks/ }).click()],
  ["first", "/runs?where=stage%20%3D%3D%202", (p) => p.getByRole("button", { name: /^ask the standard questions/ }).click()],
  ["violated", "/runs?where=stage%20%3D%3D%202&first=true", (p) => p.getByRole("button", { name: /^never violated/ }).click()],
  ["compare", "/runs", (p) => p.getByLabel("compare shop-team").check()],
  ["peek", "/runs", (p) => p.keyboard.press("j")],
  ["sort", "/runs", (p) => p.selectOption("#sort", "ticks")],
  ["tree", "/runs", (p) => p.getByLabel("tree of forks").check()],
  ["t", MAIN, (p) => p.keyboard.press("j")],
  ["t", MAIN, async (p) => { await p.fill("#jump", "40"); await p.keyboard.press("Enter"); }],
  ["view", MAIN, (p) => p.getByRole("button", { name: "transcript" }).click()],
  ["view", MAIN, (p) => p.getByRole("button", { name: "list", exact: true }).click()],
  ["tab", MAIN, (p) => p.getByRole("tab", { name: "record" }).click()],
  ["grep", MAIN, async (p) => { await p.fill("#grep", "feed"); await p.keyboard.press("Enter"); }],
  ["type", MAIN, (p) => p.selectOption("#type", "plan.update")],
  ["fold", "/run/trip-planner-a", async (p) => { const fold = p.getByRole("button", { name: /more lanes/ }); if (await fold.count()) await fold.click(); else await p.goto(`${p.url()}?fold=false`); }],
  ["path", MAIN, (p) => p.keyboard.press("x")],
  ["writes", MAIN, async (p) => { await p.fill("#grep", "path:route"); await p.keyboard.press("Enter"); }],
  ["refusals", "/run/hostile-1", (p) => p.getByRole("button", { name: "6 refused lines" }).click()],
  ["lanes", MAIN, (p) => p.selectOption("#agent", "router")],
  ["lanes", `${MAIN}?lanes=router`, (p) => p.selectOption("#agent", "pricing")],
  ["holds", MAIN, async (p) => { await p.fill("#ask", "state.budget_eur > 39000"); await p.keyboard.press("Enter"); }],
  ["zoom", MAIN, async (p) => {
    const box = await p.locator("canvas.moment").boundingBox();
    if (!box) throw new Error("no picture");
    await p.mouse.move(box.x + box.width * 0.25, box.y + 10);
    await p.mouse.down();
    await p.mouse.move(box.x + box.width * 0.5, box.y + 10, { steps: 4 });
    await p.mouse.up();
  }],
  ["path", `${MAIN}/t/22/state`, (p) => p.locator(".tree").getByRole("link", { name: "quality_score" }).click()],
  ["mode", `${MAIN}/t/22/state`, (p) => p.getByRole("button", { name: "diff", exact: true }).click()],
  ["window", `${MAIN}/t/22/state`, (p) => p.getByRole("button", { name: "before" }).click()],
  ["base", `${MAIN}/t/22/state`, async (p) => { await p.fill("#base", "logistics-run-47@10"); await p.keyboard.press("Enter"); }],
  ["with", `${MAIN}/diff`, (p) => p.selectOption("#with", "logistics-planner-1")],
  ["align", `${MAIN}/diff?with=logistics-fix-1`, (p) => p.selectOption("#align", "content")],
  ["ignore", `${MAIN}/diff?with=logistics-fix-1`, async (p) => { await p.fill("#ignore", "metrics"); await p.keyboard.press("Enter"); }],
  ["kind", `${MAIN}/diff?with=logistics-fix-1`, (p) => p.getByRole("button", { name: /^structural/ }).click()],
  ["predicate", `${MAIN}/bisect`, (p) => p.selectOption("#question", "kernel.anomaly_free")],
  ["probe", `${MAIN}/bisect`, (p) => p.getByRole("button", { name: "2/6" }).click()],
  ["of", `${MAIN}/layout`, (p) => p.getByRole("button", { name: "forks" }).click()],
  ["size", `${MAIN}/layout`, (p) => p.getByRole("button", { name: "fit", exact: true }).click()],
  ["focus", `${MAIN}/layout`, async (p) => { await p.fill("#focus", "22"); await p.keyboard.press("Enter"); }],
  ["depth", `${MAIN}/layout?focus=22`, (p) => p.selectOption("#depth", "1")],
  ["node", `${MAIN}/layout`, (p) => p.locator(".graph .node").first().click()],
  ["at", `${MAIN}/layout`, async (p) => { await p.fill("#until", "20"); await p.keyboard.press("Enter"); }],
  ["metric", `${MAIN}/heatmap`, (p) => p.selectOption("#metric", "confidence")],
  ["by", `${MAIN}/heatmap`, (p) => p.selectOption("#by", "run")],
  ["with", `${MAIN}/heatmap`, (p) => p.selectOption("#heat-with", "logistics-planner-1")],
  ["a", `${MAIN}/compare?b=router`, (p) => p.selectOption("#agent-a", "pricing")],
  ["action", `${MAIN}/steps`, (p) => p.getByRole("button", { name: /^gate_check/ }).click()],
  ["tab", `${MAIN}?t=4`, (p) => p.getByRole("tab", { name: "make a rule of it" }).click()],
  ["replay", `${MAIN}/verify`, (p) => p.getByLabel(/replay/).check()],
  ["kind", `${MAIN}/commitments`, (p) => p.selectOption("#kind", "goal")],
  ["status", `${MAIN}/commitments`, (p) => p.selectOption("#status", "active")],
];

for (const [name, path, act] of STEPS) {
  test(`control_${name}_of_${path.split("/").at(-1)?.replaceAll(/[^a-z0-9]/g, "_")}_is_in_the_address`, async () => {
    await page.goto(server.origin + path);
    await settled(page);
    const before = page.url();
    await act(page);
    await page.waitForFunction((old) => location.href !== old, before);
    assert.ok(new URL(page.url()).searchParams.has(name), page.url());
    const first = await seen(page);
    await second.goto(page.url());
    assert.deepEqual(await seen(second), first);
  });
}

test("back_and_forward_give_the_screens_again", async () => {
  await page.goto(server.origin + MAIN);
  await settled(page);
  const home = await seen(page);
  await page.getByRole("navigation", { name: "views" }).getByRole("link", { name: "Verification" }).click();
  await settled(page);
  const verify = await seen(page);
  await page.goBack();
  assert.deepEqual(await seen(page), home);
  await page.goForward();
  assert.deepEqual(await seen(page), verify);
});

test("the_moment_survives_a_change_of_view", async () => {
  await page.goto(`${server.origin}${MAIN}?t=30`);
  await settled(page);
  const rail = page.getByRole("navigation", { name: "views" });
  await rail.getByRole("link", { name: "State" }).click();
  await page.waitForURL(/\/t\/30\/state/);
  await rail.getByRole("link", { name: "Bisect" }).click();
  await page.waitForURL(/bisect\?t=30/);
  await rail.getByRole("link", { name: "Run", exact: true }).click();
  await page.waitForURL(/logistics-run-47\?t=30/);
});
