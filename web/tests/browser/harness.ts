// Starts `dendrer serve` (the program of DENDRER) on a store, and opens the page in Debian's Chromium. `main.ts` makes the store,
// its server and the browser once for all files; a file that is run alone makes its own.
// A program that was built without the page answers documents alone: then the page comes from web/dist, under the same policy.
// DENDRER_DIST=1 takes web/dist in any case: for work on the page without building the program again.

import { spawn, execFileSync, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join, resolve } from "node:path";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";

export const PROGRAM = process.env.DENDRER ?? "dendrer";
export const SHOTS = resolve(import.meta.dirname, "../shots");
const DIST = resolve(import.meta.dirname, "../../dist");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const TYPES: Record<string, string> = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml" };

export type Server = { url: string; origin: string; token: string; dir: string; stop: () => Promise<void> };

/** Makes a directory with the demo alone: for tests that write. */
export function makeDemo(): string {
  const parent = mkdtempSync(join(tmpdir(), "dendrer-web-"));
  const env = { ...process.env, HOME: parent, XDG_STATE_HOME: join(parent, "state"), XDG_CONFIG_HOME: join(parent, "config") };
  execFileSync(PROGRAM, ["demo"], { cwd: parent, env, stdio: "ignore" });
  return join(parent, "dendrer-demo");
}

const THREADS = resolve(import.meta.dirname, "../../../crates/dendrer-cli/tests/data/threads/threads.dnd");

/** The messages of a chat with 25 calls. */
export function shopChat(): unknown[] {
  const items = [["torque wrench", 310], ["cable", 12.5], ["lamp", 61], ["glue", 4]] as const;
  const messages: unknown[] = [{ role: "user", content: "Order what the workshop needs **now** ![x](https://leak.example/x.png)" }];
  for (let call = 0; call < 25; call += 1) {
    const [item, price] = items[Math.floor(call / 2) % 4] ?? ["", 0];
    const name = call % 2 === 0 ? "search_price" : "place_order";
    messages.push({ role: "assistant", content: null, tool_calls: [{ id: `c${call}`, type: "function", function: { name, arguments: JSON.stringify({ item }) } }] });
    messages.push({ role: "tool", tool_call_id: `c${call}`, content: JSON.stringify(name === "search_price" ? { item, price, currency: "EUR" } : { ordered: item, at: price }) });
  }
  return [...messages, { role: "assistant", content: "All ordered." }, { role: "user", content: "Thanks." }];
}

const BOUND = [
  { type: "observation.add", agent: "dev", intent: { description: "the task" }, evidence: [{ id: "U17", content: "Keep the public interface." }], commitments: [{ id: "C1", type: "obl", hard: true, gloss: "Keep the public interface.", support: ["U17"] }] },
  { type: "plan.update", agent: "dev", intent: { description: "a guess" }, evidence: [{ id: "N5", content: "the schema may differ" }], commitments: [{ id: "H4", type: "hyp", gloss: "The schema may differ.", support: ["N5"] }, { id: "P7", type: "plan", gloss: "Remove the old method.", conflicts: ["C1"] }] },
];

/** Makes the store that tests read: the demo, a chat, LangGraph threads, one with commitments, and one with an erased tick and a redacted value. */
export function makeStore(): string {
  const dir = makeDemo();
  run(dir, ["import", "-", "--run", "shop-chat"], JSON.stringify(shopChat()));
  run(dir, ["import", THREADS]);
  const lines = [
    { type: "observation.add", agent: "a", intent: { description: "first" }, delta: [{ set: "/api_key", value: "hunter2secretvalue" }, { set: "/n", value: 1 }] },
    { type: "observation.add", agent: "a", intent: { description: 'a marker in text: {"$redacted":{"kind":"jwt"}}' }, delta: [{ set: "/text", value: '{"$redacted":{"kind":"jwt"}}' }, { set: "/big", value: { deep: [1, 2, 3] } }] },
    { type: "observation.add", agent: "a", intent: { description: "third" }, delta: [{ add: "/n", value: 1 }] },
  ];
  run(dir, ["commit", "--run", "marks"], `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`);
  run(dir, ["commit", "--run", "bound", "--as", "user", "--stage", "2"], `${BOUND.map((line) => JSON.stringify(line)).join("\n")}\n`);
  run(dir, ["erase", "marks@2", "state.big", "--reason", "test", "--although", "delta", "--although", "intent.description"]);
  return dir;
}

/** Returns the server that all files read, and the browser. */
export async function shared(): Promise<{ server: Server; browser: Browser; end: () => Promise<void> }> {
  const given = process.env.DENDRER_WEB_SHARED;
  if (given) {
    const { server, browser: endpoint } = JSON.parse(given) as { server: Omit<Server, "stop">; browser: string };
    const browser = await chromium.connect(endpoint);
    return { server: { ...server, stop: async () => {} }, browser, end: () => browser.close() };
  }
  const server = await serve(makeStore());
  const browser = await launch();
  return {
    server, browser,
    end: async () => {
      await browser.close();
      await server.stop();
      remove(server.dir);
    },
  };
}

export function run(dir: string, words: string[], input?: string): string {
  const parent = resolve(dir, "..");
  const env = { ...process.env, HOME: parent, XDG_STATE_HOME: join(parent, "state"), XDG_CONFIG_HOME: join(parent, "config") };
  return execFileSync(PROGRAM, words, { cwd: dir, env, encoding: "utf8", input, maxBuffer: 1 << 26, stdio: ["pipe", "pipe", "ignore"] });
}

const running = new Set<ChildProcess>();
// A test that failed did not stop its server; a server that runs does not keep the process of its tests.
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

export async function serve(dir: string, more: string[] = [], address = "127.0.0.1:0"): Promise<Server> {
  const parent = resolve(dir, "..");
  const env = { ...process.env, HOME: parent, XDG_STATE_HOME: join(parent, "state"), XDG_CONFIG_HOME: join(parent, "config") };
  const child: ChildProcess = spawn(PROGRAM, ["serve", "--addr", address, "--no-open", "--json", ...more], { cwd: dir, env, stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  const line = await new Promise<string>((found, failed) => {
    let text = "";
    let error = "";
    child.stderr?.on("data", (bytes: Buffer) => (error += bytes.toString()));
    child.stdout?.on("data", (bytes: Buffer) => {
      text += bytes.toString();
      if (text.includes("\n")) found(text.slice(0, text.indexOf("\n")));
    });
    child.on("exit", (code) => failed(new Error(`serve ended with ${code}: ${error}`)));
  });
  const url = (JSON.parse(line) as { url: string }).url;
  const stop = async () => {
    if (child.exitCode !== null) return;
    const ended = new Promise((over) => child.on("exit", over));
    child.kill("SIGINT");
    await Promise.race([ended, new Promise((over) => setTimeout(over, 3000))]);
    if (child.exitCode === null) child.kill("SIGKILL");
    running.delete(child);
  };
  return { url, origin: new URL(url).origin, token: new URL(url).searchParams.get("token") ?? "", dir, stop };
}

export function remove(dir: string): void {
  rmSync(resolve(dir, ".."), { recursive: true, force: true });
}

const OPTIONS = { executablePath: CHROMIUM, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] };

export async function launch(): Promise<Browser> {
  return chromium.launch(OPTIONS);
}

/** Starts the browser for all files. */
export async function launchShared(): Promise<{ endpoint: string; close: () => Promise<void> }> {
  const server = await chromium.launchServer(OPTIONS);
  return { endpoint: server.wsEndpoint(), close: () => server.close() };
}

export type Watched = { page: Page; context: BrowserContext; faults: string[]; requests: string[] };

/** Opens a window that knows the token. Faults are everything that a page must never cause. */
export async function open(browser: Browser, server: Server, options: { width?: number; height?: number; dark?: boolean } = {}): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1280, height: options.height ?? 800 }, colorScheme: options.dark ? "dark" : "light", reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  const faults: string[] = [];
  const requests: string[] = [];
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("pageerror", (fault) => faults.push(`error: ${fault.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    requests.push(request.url());
    const url = request.url();
    if (!url.startsWith(`${server.origin}/`) && url !== "about:blank" && !url.startsWith(`blob:${server.origin}`)) faults.push(`request: ${url}`);
  });
  await page.goto(server.url);
  // The page of the token leads to the address without it: a navigation that begins before the end of that one is lost.
  await page.waitForURL((url) => !url.searchParams.has("token"));
  const response = await context.request.get(`${server.origin}/`);
  const policy = response.headers()["content-security-policy"] ?? "";
  if (!policy.includes("trusted-types 'none'")) throw new Error(`no policy: ${policy}`);
  if (process.env.DENDRER_DIST === "1" || !(await response.text()).includes("/assets/")) {
    if (!existsSync(join(DIST, "index.html"))) throw new Error("neither the program nor web/dist has the page: npm run build");
    await context.route("**/*", async (route) => {
      const url = new URL(route.request().url());
      const isPage = route.request().resourceType() === "document" && !/\.(json|jsonl|csv|svg)$|\/value$/.test(url.pathname) && !url.searchParams.has("token");
      const file = isPage ? join(DIST, "index.html") : join(DIST, url.pathname);
      if (url.origin !== server.origin || (!isPage && !(url.pathname.length > 1 && file.startsWith(DIST) && existsSync(file)))) return route.continue();
      await route.fulfill({ body: readFileSync(file), headers: { "content-type": TYPES[extname(file)] ?? "application/octet-stream", "content-security-policy": policy, "x-content-type-options": "nosniff" } });
    });
  }
  return { page, context, faults, requests };
}

/** Waits until no document is asked for any more. */
export async function settled(page: Page): Promise<void> {
  const isIdle = () => document.querySelector("h1") !== null && document.querySelector('.app[data-asking="0"]') !== null && document.querySelector('[aria-busy="true"], .wait, .skeleton') === null;
  const deadline = Date.now() + 20_000;
  // An answer may lead to the next question, so the page is idle when it was so three times.
  for (let times = 0; times < 3; ) {
    times = (await page.evaluate(isIdle).catch(() => false)) ? times + 1 : 0;
    if (Date.now() > deadline) {
      const left = await page.evaluate(() => [...document.querySelectorAll('[aria-busy="true"], .wait, .skeleton, .app:not([data-asking="0"])')].map((one) => one.outerHTML.slice(0, 200)));
      throw new Error(`${page.url()} still asks: ${left.join(" ")}`);
    }
    await page.waitForTimeout(30);
  }
}
