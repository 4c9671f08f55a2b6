// Takes the picture of docs/serve.md: the run logistics-run-47 of the demo, 1280 by 800, light.
//   DENDRER=../target/debug/dendrer npm run picture [-- FILE]

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { launch, makeDemo, open, remove, serve, settled } from "../tests/browser/harness.ts";
import { smaller } from "./png.ts";

const MOST = 200_000;

async function main(): Promise<void> {
  const file = resolve(process.argv[2] ?? resolve(import.meta.dirname, "../../docs/pictures/serve.png"));
  const dir = makeDemo();
  // The usual port, so that the picture is the same each time.
  const server = await serve(dir, [], "127.0.0.1:7171").catch(() => serve(dir));
  const browser = await launch();
  try {
    const { page, faults } = await open(browser, server, { width: 1280, height: 800 });
    await page.goto(`${server.origin}/run/logistics-run-47`);
    await settled(page);
    await page.waitForFunction(() => document.querySelector(".badge")?.textContent === "INTACT" && /largest write/.test(document.querySelector(".headline")?.textContent ?? ""));
    await settled(page);
    mkdirSync(dirname(file), { recursive: true });
    const png = smaller(await page.screenshot());
    writeFileSync(file, png);
    const size = png.length;
    console.log(`${file}: ${size} bytes`);
    if (size >= MOST || faults.length > 0) throw new Error(`${size} bytes of at most ${MOST}; ${faults.join("; ")}`);
  } finally {
    await browser.close();
    await server.stop();
    remove(dir);
  }
}

await main();
