import assert from "node:assert/strict";
import { test } from "node:test";
import { partsOf, type Part } from "../../src/pure/words.ts";

const written = (parts: Part[]): string => parts.map((one) => (one.isOwn ? `[${one.text}]` : one.text)).join("");

test("words_of_one_text_alone_are_marked", () => {
  const { a, b } = partsOf("load the cheap barges now", "load two barges now, please");
  assert.equal(written(a), "load [the cheap] barges now");
  assert.equal(written(b), "load [two] barges now[, please]");
  assert.equal(written(partsOf("same", "same").a), "same");
});

test("the_parts_are_the_texts", () => {
  for (const [a, b] of [["", "x"], ["a\nb", "a\nc"], ["x ".repeat(3000), "y ".repeat(3000)], ["🙏 é", "🙏 e"]] as const) {
    const parts = partsOf(a, b);
    assert.equal(parts.a.map((one) => one.text).join(""), a);
    assert.equal(parts.b.map((one) => one.text).join(""), b);
  }
});
