// A run whose every text is an attack: on every screen nothing runs, nothing leaves, and nothing is hidden.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { open, settled, shared, type Server } from "./harness.ts";
import { names } from "../../src/pure/places.ts";

const RUN = "/run/hostile-1";
let server: Server;
let browser: Browser;
let end: () => Promise<void>;

before(async () => {
  ({ server, browser, end } = await shared());
});
after(async () => {
  await end?.();
});

test("hostile_text_does_nothing_on_any_screen", async () => {
  const { page, faults, requests } = await open(browser, server);
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  const ticks = Array.from({ length: 21 }, (_, tick) => tick);
  const paths = [
    "/runs", "/runs?where=%3Cscript%3Ealert(1)%3C%2Fscript%3E", RUN, `${RUN}?view=list`, `${RUN}?view=transcript`, `${RUN}?grep=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E`,
    `${RUN}?holds=%22%3Cscript%3E%22%20%3D%3D%20state.x`, `${RUN}?holds=state.length%20%3C%205`, `${RUN}/bisect`, `${RUN}/heatmap?metric=confidence`, `${RUN}/compare`, `${RUN}/steps`, `${RUN}/layout?t=6`, `${RUN}/layout?of=forks`, `${RUN}/layout?focus=%3Cb%3E`, "/runs?peek=hostile-1&first=true", `${RUN}/verify`, `${RUN}/commitments`, `${RUN}/conflicts`, `${RUN}/contract`, `${RUN}/diff?with=logistics-run-47`, "/run/logistics-run-47/diff?with=hostile-1",
    `${RUN}/backtrack?path=%2Fbeliefs`, `${RUN}/t/20/state?mode=raw`, `${RUN}/t/20/state?mode=diff&base=hostile-1%400`, "/run/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "/help/%3Cscript%3E", "/run/javascript%3Aalert(1)/verify",
    ...ticks.flatMap((tick) => [`${RUN}?t=${tick}&tab=record`, `${RUN}?t=${tick}`, ...(tick % 5 === 0 ? [`${RUN}?t=${tick}&tab=rule`] : [])]), `${RUN}/t/20/state`, `${RUN}/t/6/why`, `${RUN}/t/6/state`,
  ];
  const state = (await (await page.context().request.get(`${server.origin}${RUN}/t/20/state.json`)).json()) as { value: Record<string, unknown> };
  for (const name of Object.keys(state.value)) paths.push(`${RUN}/t/20/state?path=${encodeURIComponent(`/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`)}`);
  for (const path of paths) {
    // Ticks are gone through as a reader does, without loading the page again.
    if (/[?&]t=\d/.test(path) && page.url().startsWith(server.origin + RUN)) {
      await page.evaluate((to) => {
        history.pushState(null, "", to);
        dispatchEvent(new PopStateEvent("popstate"));
      }, path);
    } else await page.goto(server.origin + path);
    await settled(page);
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    assert.ok(nodes < 3000, `${path}: ${nodes} nodes`);
    // Much of what opens is opened.
    for (let round = 0; round < 3; round += 1) {
      await page.evaluate(() => [...document.querySelectorAll<HTMLElement>('main .twist[aria-expanded="false"]')].slice(0, 40).forEach((one) => one.click()));
      await page.waitForTimeout(30);
    }
    const odd = await page.evaluate(() => {
      const text = document.body.innerText + document.title + [...document.querySelectorAll("[aria-label], [title]")].map((one) => `${one.getAttribute("aria-label")}${one.classList.contains("small") ? "" : one.getAttribute("title")}`).join("");
      return {
        reordering: /[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u0000\u001b]/.test(text),
        elements: document.querySelectorAll("main script, main img, main iframe, main object, main style, main link, main b b, body > :not(#app):not(script)").length,
        addresses: [...document.querySelectorAll("a")].filter((one) => new URL(one.getAttribute("href") ?? "", location.href).origin !== location.origin).length,
      };
    });
    assert.deepEqual([path, odd.reordering, odd.elements, odd.addresses], [path, false, 0, 0]);
  }
  assert.deepEqual(faults, []);
  assert.ok(requests.length > 100 && requests.every((url) => url.startsWith(server.origin)));
  assert.ok(names("/a").length === 1);
});

test("the_page_runs_under_the_policy_of_the_server", async () => {
  const { page } = await open(browser, server);
  await page.goto(`${server.origin}/runs`);
  await settled(page);
  const thrown = await page.evaluate(() => {
    try {
      document.createElement("div").innerHTML = "<b>x</b>";
      return "markup of a text is allowed";
    } catch (fault) {
      return (fault as Error).name;
    }
  });
  assert.equal(thrown, "TypeError");
});
