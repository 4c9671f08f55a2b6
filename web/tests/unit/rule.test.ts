import assert from "node:assert/strict";
import { test } from "node:test";
import { commandsOf, packOf, placesOf, valueOf, yaml } from "../../src/pure/rule.ts";

test("members_of_an_answer_become_places", () => {
  const places = (output: unknown) => placesOf({ run: "r", tick: 1, tool: "t", output }).map((one) => [one.name, one.from]);
  assert.deepEqual(places({ price: 3, "x y": 1, "x-y": 2, at: null }), [["price", "t.result.output.price"], ["x_y", "t.result.output['x y']"], ["at", "t.result.output.at"]]);
  assert.deepEqual(places('{"price": 3}'), [["price", "parse_json(t.result.output).price"]]);
  for (const output of ["plain", 4, [1, 2], { $redacted: { kind: "jwt" } }, {}]) assert.deepEqual(places(output), [["answer", "t.result.output"]]);
  assert.deepEqual(places({ key: { $redacted: { kind: "jwt" } }, n: 1 }), [["n", "t.result.output.n"]]);
  assert.equal(valueOf("[1]").isText, true);
});

test("a_hostile_name_is_text_of_the_pack", () => {
  assert.equal(yaml('a"\\\n\u202e🙏'), '"a\\"\\\\\\u000a\\u202e\\U0001f64f"');
  const text = packOf({ run: "r\u202e", tick: 1, tool: "x'\n\u202ey", output: { "a'b": 1 } });
  assert.ok(/^[\n\x20-\x7e]*$/.test(text), "no character that hides");
  assert.match(text, /when: "t\.action\.tool == 'x\\\\'\\\\n\\u202ey' and/);
});

test("the_commands_ask_about_a_number", () => {
  assert.deepEqual(commandsOf({ run: "50/chat", tick: 3, tool: "search", output: '{"item":"a","price":310}' })[2], ["dendrer", "bisect", "chat.rule", "--holds", "!has(state.search.price) || state.search.price <= 310"]);
});
