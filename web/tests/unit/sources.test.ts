import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

const ROOT = resolve(import.meta.dirname, "../..");

function files(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((one) => (one.isDirectory() ? files(join(dir, one.name)) : [join(dir, one.name)]));
}

test("no_source_makes_markup_or_code_of_a_text", () => {
  const banned = /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function|srcdoc|javascript:|style="/;
  for (const file of [...files(join(ROOT, "src")), join(ROOT, "index.html")]) {
    const found = banned.exec(readFileSync(file, "utf8"));
    assert.equal(found, null, `${file}: ${found?.[0]}`);
  }
});

test("no_source_names_another_origin", () => {
  for (const file of files(join(ROOT, "src"))) {
    const found = /https?:\/\/(?!www\.w3\.org)/.exec(readFileSync(file, "utf8"));
    assert.equal(found, null, `${file} has an address`);
  }
});

test("at_most_five_packages_are_sent_to_a_browser_and_each_is_explained", () => {
  const own = Object.keys((JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { dependencies: Record<string, string> }).dependencies);
  const words = readFileSync(join(ROOT, "DEPENDENCIES.md"), "utf8");
  assert.ok(own.length <= 5);
  for (const name of own) assert.ok(words.includes(`| ${name} |`), name);
});

test("first_load_is_under_100_kb", { skip: existsSync(join(ROOT, "dist/index.html")) ? false : "not built" }, () => {
  const all = files(join(ROOT, "dist"));
  const size = all.reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0);
  console.log(`first load: ${all.length} files, ${size} bytes compressed`);
  assert.ok(size < 100_000, `${size} bytes`);
  for (const file of all) if (/\.(js|css)$/.test(file)) assert.match(file, /-[A-Za-z0-9_-]{8}\.(js|css)$/, "its name has a digest");
  const page = readFileSync(join(ROOT, "dist/index.html"), "utf8");
  assert.ok(!/<script(?![^>]*src=)/.test(page) && !/<style/.test(page), "no script and no style inside the page");
});
