// Starts `dendrer serve` (the program of DENDRER) on a copy of the demo, and opens the page in Debian's Chromium.
// A program that was built without the page answers documents alone: then the page comes from web/dist, under the same policy.

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

/** Makes a directory with the demo; the chat is imported too. */
export function makeDemo(): string {
  const parent = mkdtempSync(join(tmpdir(), "dendrer-web-"));
  const env = { ...process.env, HOME: parent, XDG_STATE_HOME: join(parent, "state"), XDG_CONFIG_HOME: join(parent, "config") };
  execFileSync(PROGRAM, ["demo"], { cwd: parent, env, stdio: "ignore" });
  return join(parent, "dendrer-demo");
}

export function run(dir: string, words: string[], input?: string): string {
  const parent = resolve(dir, "..");
  const env = { ...process.env, HOME: parent, XDG_STATE_HOME: join(parent, "state"), XDG_CONFIG_HOME: join(parent, "config") };
  return execFileSync(PROGRAM, words, { cwd: dir, env, encoding: "utf8", input, stdio: ["pipe", "pipe", "ignore"] });
}

export async function serve(dir: string, more: string[] = []): Promise<Server> {
  const parent = resolve(dir, "..");
  const env = { ...process.env, HOME: parent, XDG_STATE_HOME: join(parent, "state"), XDG_CONFIG_HOME: join(parent, "config") };
  const child: ChildProcess = spawn(PROGRAM, ["serve", "--addr", "127.0.0.1:0", "--no-open", "--json", ...more], { cwd: dir, env, stdio: ["ignore", "pipe", "pipe"] });
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
  };
  return { url, origin: new URL(url).origin, token: new URL(url).searchParams.get("token") ?? "", dir, stop };
}

export function remove(dir: string): void {
  rmSync(resolve(dir, ".."), { recursive: true, force: true });
}

export async function launch(): Promise<Browser> {
  const asRoot = process.getuid?.() === 0;
  return chromium.launch({ executablePath: CHROMIUM, args: asRoot ? ["--no-sandbox"] : [] });
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
  const response = await context.request.get(`${server.origin}/`);
  const policy = response.headers()["content-security-policy"] ?? "";
  if (!policy.includes("trusted-types 'none'")) throw new Error(`no policy: ${policy}`);
  if (!(await response.text()).includes("/assets/")) {
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
