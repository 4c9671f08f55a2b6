import assert from "node:assert/strict";
import { test } from "node:test";
import { Digits, isNumber, ofText, parse, write } from "../../src/pure/json.ts";
import { signed } from "../../src/pure/places.ts";
import { agentName, labelOf, speaker } from "../../src/pure/names.ts";
import { local, utc } from "../../src/pure/time.ts";
import { commandsOf } from "../../src/pure/rule.ts";
import { isRecord, kindOf, oneLine } from "../../src/pure/values.ts";

const LONG = ["107505301260286111", "-9223372036854775807", "123456789012345678901234567890", "1e400", "-1e400", "-0", "-0.0", "1.0", "0.10", "1E5", "0.1000000000000000055511151231257827", "9007199254740993"];

test("numbers_keep_the_digits_of_the_document", () => {
  for (const digits of [...LONG, "0", "-1", "0.5", "1e-7", "1e+21", "9007199254740991"]) {
    for (const text of [digits, `[${digits}]`, `{"a":{"b":[1,${digits},"x"]}}`, `{"a": ${digits}}`]) {
      assert.equal(write(parse(text)).replaceAll(" ", ""), text.replaceAll(" ", ""), text);
    }
    assert.equal(oneLine(parse(`[${digits}]`)), `[${digits}]`);
    assert.equal(kindOf(parse(digits)), "number");
    assert.equal(isNumber(parse(digits)), true);
    assert.equal(isRecord(parse(digits)), false);
  }
});

test("a_number_of_a_double_stays_one", () => {
  assert.deepEqual(parse('{"a":1.5,"b":[20,-3],"c":"1.0"}'), { a: 1.5, b: [20, -3], c: "1.0" });
  assert.equal((parse("0.50") as Digits).toFixed(2), "0.50");
});

test("the_walk_reads_what_json_parse_reads", () => {
  const texts = ['{"a":"\\u0041\\n\\"","b":[[],{},[null,true,false]],"":{"x":"},{"}}', '["-0",{"k\\\\":"\\\\"}]', '{"a":1,"a":2}', '"-0 text"', '  [ 1 , 2 ]  ', '{"toString":"x"}'];
  for (const text of texts) {
    const whole = parse(`[-0,${text}]`) as unknown[];
    assert.deepEqual(JSON.parse(JSON.stringify(whole[1])), JSON.parse(text), text);
  }
  const own = (parse('{"__proto__":{"x":1},"n":-0}') as Record<string, unknown>);
  assert.deepEqual(Object.keys(own), ["__proto__", "n"]);
  assert.equal(Object.getPrototypeOf(own), Object.prototype);
  assert.ok(Array.isArray(parse(`${"[".repeat(50_000)}-0${"]".repeat(50_000)}`)));
  const long = { a: `${"x\\\"".repeat(3_000_000)}\\`, b: "y".repeat(5_000_000) };
  assert.deepEqual((parse(`[-0,${JSON.stringify(long)}]`) as unknown[])[1], long);
  for (const text of ["", "{", "01", "{a:1}", "[-0,]", "1.", "NaN"]) assert.throws(() => parse(text), SyntaxError, text);
});

test("a_text_holds_an_object_or_a_list_or_is_a_text", () => {
  assert.equal(write(ofText(' {"id": 107505301260286111}')), '{"id":107505301260286111}');
  for (const text of ["107505301260286111", '"x"', "[not json]", "null", "", "{", "a {}"]) assert.equal(ofText(text), null, text);
});

test("long_numbers_are_compared_by_their_digits", () => {
  const [before, after] = [parse("[107505301260286111]"), parse("[107505301260286112,1]")];
  assert.equal(signed([{ path: "/a", before, after }])[0]?.sign, "~");
  assert.equal(signed([{ path: "/a", before, after: parse("[107505301260286111,1]") }])[0]?.sign, "+");
  assert.match(commandsOf({ run: "r", tick: 1, tool: "t", output: '{"n":107505301260286111}' })[2]?.join(" ") ?? "", /<= 107505301260286111$/);
  assert.equal(write(parse('{"a":[1.0,{}],"b":-0}'), 2), '{\n  "a": [\n    1.0,\n    {}\n  ],\n  "b": -0\n}');
});

test("a_name_that_reads_like_a_role_is_quoted", () => {
  for (const name of ["user", "system", "kernel", "runtime", "tool", "agent", "User", "user:x", "two words", "(no agent)", "begin", "ok", ""]) assert.equal(agentName(name), JSON.stringify(name));
  assert.equal(agentName('say "hi"'), '"say \\"hi\\""');
  for (const name of ["feed-reader", "assistant", "quoter/ask", "user2"]) assert.equal(agentName(name), name);
});

test("the_author_on_record_decides_who_spoke", () => {
  for (const [agent, author, words] of [
    ["user", "user", "user"], ["user", "agent", '"user"'], ["agent", "user", "user"], [null, "user", "user"], ["bob", "user", "user (bob)"], ["agent", "institution", "institution"],
    ["system", "agent", '"system"'], [null, "agent", "(no agent)"], [null, "kernel", "kernel"], ["bot", "runtime", "bot"], ["tool", "runtime", '"tool"'], [null, undefined, "(no agent)"], ["agent", "agent", "agent"],
  ] as const) assert.equal(speaker(agent, author), words);
  assert.equal(labelOf({ kind: "transition", label: "2 user bb886b2bdc91", tick: 2, id: "" }), '2 "user" bb886b2bdc91');
  assert.equal(labelOf({ kind: "transition", label: "0 the beginning 998d880ac6cc", tick: 0, id: "" }), "0 the beginning 998d880ac6cc");
  assert.equal(labelOf({ kind: "run", label: "user", tick: null, id: "" }), "user");
});

test("times_have_their_zone", () => {
  assert.equal(utc("2026-02-24T08:00:31.120Z"), "2026-02-24 08:00:31Z");
  assert.equal(utc("2026-02-24T08:00:31+02:00"), "2026-02-24 06:00:31Z");
  for (const text of ["yesterday", "2026-02-24T08:00:31", "12", ""]) assert.equal(utc(text), text);
  assert.match(local("2026-02-24T08:00:31Z"), /^2026-02-2\d \d\d:\d\d:31 [+-]\d\d:\d\d$/);
});
