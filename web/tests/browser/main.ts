// Runs the browser tests: one store, one server and one browser for all files.
//   DENDRER=../target/debug/dendrer npm run browser [-- FILE..]

import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { launchShared, makeStore, remove, serve } from "./harness.ts";

const here = import.meta.dirname;
const given = process.argv.slice(2);
const files = given.length > 0 ? given : readdirSync(here).filter((name) => name.endsWith(".test.ts")).map((name) => join(here, name));
const server = await serve(makeStore());
const browser = await launchShared();
const begun = Date.now();
const { stop, ...told } = server;
const child = spawn(process.execPath, ["--import", "tsx", "--test", "--test-reporter=spec", "--test-concurrency=2", "--test-force-exit", "--test-timeout=240000", ...files], {
  stdio: "inherit", env: { ...process.env, DENDRER_WEB_SHARED: JSON.stringify({ server: told, browser: browser.endpoint }) },
});
const code = await new Promise<number>((over) => child.on("exit", (exit) => over(exit ?? 1)));
console.log(`browser tests: ${Math.round((Date.now() - begun) / 1000)} s`);
await browser.close();
await stop();
remove(server.dir);
process.exit(code);
