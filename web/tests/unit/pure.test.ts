import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { hasInvisible, pieces, plain } from "../../src/pure/invisible.ts";
import { escaped, fitting, KEYS, pressed, readSearch, writeSearch } from "../../src/pure/keytable.ts";
import { HEIGHT_MAX, pages, topFor, windowOf } from "../../src/pure/list.ts";
import { names, pointer, signed, written } from "../../src/pure/places.ts";
import { pathOf, queryOf, readPath, readRange, readTick, segment, withQuery } from "../../src/pure/route.ts";
import { command, quoteWord } from "../../src/pure/sh.ts";
import { entries, kindOf, mark, oneLine } from "../../src/pure/values.ts";

const NASTY = ["", "a b", "it's", "$(id)", "`id`", "a\nb", "\u001b[2J", "-x", "*", "\u202eabc", "a\\b", "%s%n", "é 謝 🙏", "'", "!!", "a\tb", "\u200b", "x\r", "\u0001%s\\n%", "\u0001'0123'"];

test("words_survive_sh", () => {
  for (const word of NASTY) {
    // Trailing line feeds are cut by a substitution, so a byte follows.
    const out = execFileSync("sh", ["-c", `printf %s ${quoteWord(`${word}.`)}`], { encoding: "utf8" });
    assert.equal(out, `${word}.`);
  }
  assert.equal(command(["dendrer", "bisect", "a-1", "--holds", "state.n <= 4"]), "dendrer bisect a-1 --holds 'state.n <= 4'");
});

test("a_quoted_word_has_no_control_or_reordering_character", () => {
  for (const word of NASTY) assert.ok(!/[\u0000-\u001f\u007f\u202e\u200b]/.test(quoteWord(word)), JSON.stringify(word));
});

test("invisible_characters_become_named_tokens", () => {
  assert.deepEqual(pieces("a\u202eb"), [{ text: "a" }, { token: "U+202E", name: "RIGHT-TO-LEFT OVERRIDE" }, { text: "b" }]);
  assert.equal(plain("x\u200b\u{e0041}\u0000\ufeff"), "x[U+200B][U+E0041][U+0000][U+FEFF]");
  assert.equal(plain("two\nlines"), "two[U+000A]lines");
  assert.deepEqual(pieces("two\nlines"), [{ text: "two\nlines" }]);
  for (const text of ["plain text", "謝謝 🙏", "naïve café"]) assert.ok(!hasInvisible(text), text);
  for (const text of ["\u2066x", "\u00ad", "\u2028", "\ufffe", "\u3164", "\udead", "\u061c", "\u180e"]) assert.ok(hasInvisible(text), JSON.stringify(text));
});

test("joiners_and_selectors_of_emoji_are_drawn_and_others_are_named", () => {
  for (const text of ["\u{1f468}\u200d\u{1f469}\u200d\u{1f467}", "\u2764\ufe0f", "\u2764\ufe0f\u200d\u{1f525}", "\u{1f469}\u{1f3fd}\u200d\u{1f4bb}", "1\ufe0f\u20e3", "\u263a\ufe0e"]) {
    assert.equal(hasInvisible(text), false, text);
    assert.deepEqual(pieces(text), [{ text }]);
  }
  for (const [text, shown] of [["a\u200db", "a[U+200D]b"], ["\u{1f468}\u200d", "\u{1f468}[U+200D]"], ["\u200d\u{1f468}", "[U+200D]\u{1f468}"], ["a\ufe0f", "a[U+FE0F]"], ["\u2764\ufe0f\ufe0f", "\u2764\ufe0f[U+FE0F]"], ["\u{1f468}\u200d\u200d\u{1f469}", "\u{1f468}[U+200D][U+200D]\u{1f469}"]] as const) {
    assert.equal(hasInvisible(text), true, shown);
    assert.equal(plain(text), shown);
  }
});

test("names_of_runs_survive_an_address", () => {
  for (const run of ["a", "a.json", "a b", "x/y", "a+2", "100%", "ü", "thread b/ü", "..."]) {
    for (const view of [undefined, "diff", "verify"] as const) {
      const found = readPath(pathOf(run, view));
      assert.equal("run" in found ? found.run : null, run);
      assert.equal(found.name, view ? "view" : "run");
    }
    assert.deepEqual(readPath(pathOf(run, "state", 22)), { name: "view", run, view: "state", tick: 22 });
  }
  assert.ok(!segment("a.json").includes("."));
});

test("addresses_that_are_none_are_lost", () => {
  for (const path of ["/x", "/run", "/run/a/nope", "/run/a/t/x/state", "/run/a/t/1/log", "/%ff", "/run/a/t/-1/state"]) assert.equal(readPath(path).name, "lost", path);
  assert.equal(readPath("/").name, "runs");
});

test("a_query_keeps_its_other_members", () => {
  assert.equal(withQuery("?t=1&type=a&type=b", { t: 2 }), "?t=2&type=a&type=b");
  assert.equal(withQuery("?t=1&holds=a%20%26%20b", { t: null }), "?holds=a%20%26%20b");
  assert.equal(queryOf({ a: "", b: null, c: false, d: ["x", "y+z"] }), "?d=x&d=y%2Bz");
  assert.deepEqual(readRange("3..9", 64), [3, 9]);
  assert.equal(readRange("9..3", 64), null);
  assert.deepEqual(readRange("3..900", 64), [3, 64]);
  assert.equal(readTick("70", 64), 64);
  assert.equal(readTick("x", 64), null);
});

test("places_are_written_as_the_program_does", () => {
  assert.equal(written("/policy/violated"), "policy.violated");
  assert.equal(written("/sources/2"), "sources[2]");
  assert.equal(written("/a~1b~0c/x y"), '["a/b~c"]["x y"]');
  assert.equal(written("/nested/k.with.dot/7/007"), 'nested["k.with.dot"][7]["007"]');
  assert.equal(written("/straße/謝"), '["straße"]["謝"]');
  assert.equal(written(""), "(the whole state)");
  for (const path of [["a/b~c", "", "0"], [], ["~1"]]) assert.deepEqual(names(pointer(path)), path);
});

test("changes_have_signs_and_longer_lists_show_new_items", () => {
  assert.deepEqual(signed([{ path: "/s", before: ["a"], after: ["a", "b"] }]), [{ path: "/s/1", after: "b", sign: "+" }]);
  assert.deepEqual(signed([{ path: "/n", before: 1, after: 2 }]).map((one) => one.sign), ["~"]);
  assert.deepEqual(signed([{ path: "/n", after: 2 }, { path: "/m", before: null }]).map((one) => one.sign), ["+", "-"]);
  assert.equal(signed([{ path: "/s", before: ["a"], after: ["b", "a"] }])[0]?.sign, "~");
});

test("forms_in_values_are_marks_and_texts_are_texts", () => {
  for (const [value, kind] of [[{ $redacted: { kind: "jwt" } }, "redacted"], [{ $vault: { bytes: 3, commitment: "" } }, "vault"], [{ $gap: { reason: "x" } }, "gap"], [{ $bytes: "AA" }, "bytes"], [{ $float: "NaN" }, "float"], [{ $cut: { kind: "text", bytes: 9 } }, "cut"]] as const) {
    assert.equal(mark(value)?.kind, kind);
    assert.equal(kindOf(value), "mark");
  }
  for (const value of ["$redacted", { $$redacted: {} }, { $redacted: {}, other: 1 }, "<redacted:jwt#ab>", null, [], { $other: 1 }]) assert.equal(mark(value), null);
  assert.deepEqual(entries({ $$a: 1 }), [{ name: "$a", value: 1, isOdd: false }]);
  assert.deepEqual(entries({ $object: [["whole", 1], [{ $wtf8: "7b-_" }, 2]] }).map((one) => [one.name, one.isOdd]), [["whole", false], ["wtf8:7b-_", true]]);
});

test("a_mark_has_the_numbers_that_it_knows", () => {
  assert.equal(mark({ $cut: { kind: "list", bytes: 9000, items: 1 } })?.text, "list of 9,000 bytes, 1 item");
  assert.equal(mark({ $cut: { kind: "text", bytes: 9, items: null } })?.text, "text of 9 bytes");
  assert.equal(mark({ $cut: {} })?.text, "value");
  assert.equal(mark({ $vault: {} })?.text, "");
});

test("json_of_a_text_has_no_marks", () => {
  const value = { $redacted: { kind: "jwt" } };
  assert.equal(kindOf(value, true), "object");
  assert.equal(oneLine(value, 80, 0, true), '{"$redacted":{"kind":"jwt"}}');
  assert.deepEqual(entries({ $$a: 1, $object: [] }, true).map((one) => one.name), ["$$a", "$object"]);
});

test("a_search_that_is_no_expression_is_escaped", () => {
  assert.equal(escaped("(a [x"), "\\(a \\[x");
  assert.equal(escaped("(?i)a+b"), "(?i)a\\+b");
  assert.equal(escaped("plain"), "plain");
});

test("one_line_is_short_for_any_value", () => {
  let deep: unknown = "bottom";
  for (let at = 0; at < 10_000; at += 1) deep = [deep];
  assert.ok(oneLine(deep).length < 40);
  assert.ok(oneLine("x".repeat(1e6), 80).length <= 82);
  assert.equal(oneLine({ a: [1, null, "x"], b: { $float: "NaN" } }), '{"a":[1,null,"x"],"b":<NaN>}');
});

test("a_million_rows_fit_a_scroll_area", () => {
  const rows = 1_000_001;
  const view = 600;
  const end = windowOf(rows, 28, view, HEIGHT_MAX - view);
  assert.equal(end.height, HEIGHT_MAX);
  assert.equal(end.first + end.count, rows, "the last row is reached");
  assert.ok(end.count < 60);
  for (const row of [0, 1, 777_777, rows - 1]) {
    const top = topFor(row, rows, 28, view, -1e9) ?? 0;
    const found = windowOf(rows, 28, view, top);
    assert.ok(row >= found.first && row < found.first + found.count, `row ${row}`);
    // The row is inside the part that is seen.
    const y = found.offset + (row - found.first) * 28 - top;
    assert.ok(y >= -1 && y + 28 <= view + 1, `row ${row} at ${y}`);
  }
  assert.deepEqual(pages(199, 400, 200), [0, 1, 2]);
});

test("a_search_has_filters_and_text", () => {
  assert.deepEqual(readSearch('type:plan.update night agent:"a b" lock path:x.y'), { text: "night lock", type: ["plan.update"], agent: ["a b"], path: "x.y" });
  assert.deepEqual(readSearch("prototype:x"), { text: "prototype:x", type: [], agent: [], path: null });
  for (const text of ["night", 'agent:"a b" night lock', "type:a type:b path:x"]) assert.equal(writeSearch(readSearch(text)), text);
});

test("the_palette_puts_first_what_begins_with_the_text", () => {
  const entries = [{ word: "go to the state", hint: "g s", kind: "view" }, { word: "state-run", hint: "", kind: "run" }, { word: "other", hint: "state", kind: "key" }] as const;
  assert.deepEqual(fitting(entries, "state", 9).map((one) => one.word), ["state-run", "go to the state", "other"]);
  assert.deepEqual(fitting(entries, "nope", 9), []);
  assert.equal(fitting(entries, "", 2).length, 2);
});

test("each_key_is_named_once", () => {
  assert.equal(new Set(KEYS.map(([key]) => key)).size, KEYS.length);
  assert.equal(pressed("gs"), "g s");
});
