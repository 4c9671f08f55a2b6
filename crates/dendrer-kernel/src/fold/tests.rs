use dendrer_object::json::parse_door;
use dendrer_object::record::{Link, Rel};
use dendrer_object::{Digest, Intent, Value};
use proptest::prelude::*;

use crate::pack::{Origin, Pack};

fn json(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A pack whose fields begin with what `state` holds.
fn pack(state: &str, extra: &str, rules: &str) -> Pack {
    let names: Vec<String> =
        json(state).as_object().unwrap().iter().map(|(name, _)| name.to_string()).collect();
    let fields: Vec<String> =
        names.iter().map(|name| format!("{name:?}:{{\"init\":\"s0.{name}\"}}")).collect();
    let text = format!(
        "{{\"name\":\"test\",\"version\":\"v1\",\"state\":{{{}}},\"rules\":{rules}{extra}}}",
        fields.join(",")
    );
    Pack::read(&json(&text)).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"))
}

fn intent(text: &str) -> Intent {
    Intent::from_value(&json(text), Some("a")).unwrap()
}

fn reduce(pack: &Pack, state: &str, intent: &Intent) -> String {
    let before = pack.init(&Origin { s0: Some(json(state)), ..Origin::default() }).unwrap();
    match pack.reducer().reduce(&before, intent) {
        Ok(delta) => {
            delta.apply(&before).expect("a delta of rules fits the state it was made for");
            delta.to_value().to_string()
        }
        Err(error) => format!("error: {error}"),
    }
}

/// One rule with these steps, for every transition.
fn check(state: &str, steps: &str, expected: &str) {
    let pack = pack(state, "", &format!("[{{\"steps\":{steps}}}]"));
    let found = reduce(
        &pack,
        state,
        &intent(r#"{"type":"plan.update","intent":{"id":"o1","n":2,"ids":["a","b"],"tags":{"x":1}}}"#),
    );
    assert_eq!(found, expected, "{steps} on {state}");
}

#[test]
fn each_act_writes_what_its_name_says() {
    check(r#"{"a":1}"#, r#"[{"set":"a","value":"t.intent.n"}]"#, r#"[{"set":"/a","value":2}]"#);
    check(r#"{"a":{}}"#, r#"[{"set":"a.b.c","value":"'x'"}]"#, r#"[{"set":"/a/b/c","value":"x"}]"#);
    check(r#"{"a":{}}"#, r#"[{"set":"a[t.intent.id]","value":null}]"#, r#"[{"set":"/a/o1","value":null}]"#);
    check(
        r#"{"a":null}"#,
        r#"[{"append":"a","value":1}]"#,
        "error: rule 1, step 1: at a: append needs an array, and there is a null",
    );
    check(r#"{"a":{}}"#, r#"[{"append":"a.list","value":1}]"#, r#"[{"append":"/a/list","value":1}]"#);
    check(r#"{"a":0.1}"#, r#"[{"add":"a","value":"t.intent.n"}]"#, r#"[{"add":"/a","value":2}]"#);
    check(r#"{"a":{"o1":1,"o2":2}}"#, r#"[{"remove":"a[t.intent.id]"}]"#, r#"[{"remove":"/a/o1"}]"#);
    check(
        r#"{"a":[1,2,3]}"#,
        r#"[{"set":"a[1]","value":9},{"remove":"a[0]"}]"#,
        r#"[{"set":"/a/1","value":9},{"remove":"/a/0"}]"#,
    );
    check(
        r#"{"a":[{"id":"o2"},{"id":"o1","n":[]}]}"#,
        r#"[{"append":"a[first x: x.id == t.intent.id].n","value":{"by":"t.agent","l":["1 + 1"]}}]"#,
        r#"[{"append":"/a/1/n","value":{"by":"a","l":[2]}}]"#,
    );
}

#[test]
fn what_changes_nothing_is_not_written() {
    check(r#"{"a":{"b":[1,2]}}"#, r#"[{"set":"a","value":{"b":[1,2]}}]"#, "[]");
    check(r#"{"a":5}"#, r#"[{"add":"a","value":0}]"#, "[]");
    check(r#"{"a":5}"#, r#"[{"set":"a","value":"before.a"},{"set":"a","value":6,"if":"false"}]"#, "[]");
    check(
        r#"{"a":[]}"#,
        r#"[{"each":{"as":"x","in":"state.a"},"steps":[{"append":"a","value":"x"}]}]"#,
        "[]",
    );
}

#[test]
fn steps_see_what_steps_before_them_wrote_and_before_stays() {
    check(
        r#"{"a":1,"b":0}"#,
        r#"[{"set":"a","value":2},{"set":"b","value":"state.a * 10 + before.a"}]"#,
        r#"[{"set":"/a","value":2},{"set":"/b","value":21}]"#,
    );
}

#[test]
fn a_list_is_fixed_before_its_loop() {
    check(
        r#"{"a":[1,2]}"#,
        r#"[{"each":{"as":"x","in":"state.a"},"steps":[{"append":"a","value":"x + size(state.a)"}]}]"#,
        r#"[{"append":"/a","value":3},{"append":"/a","value":5}]"#,
    );
    check(
        r#"{"a":{}}"#,
        r#"[{"each":{"as":"x","in":"t.intent.ids"},"steps":[
            {"let":{"y":"x + '-'"}},
            {"each":{"as":"z","in":"['1', '2']"},"steps":[{"set":"a[y + z]","value":"z"}]}]}]"#,
        r#"[{"set":"/a/a-1","value":"1"},{"set":"/a/a-2","value":"2"},{"set":"/a/b-1","value":"1"},{"set":"/a/b-2","value":"2"}]"#,
    );
}

#[test]
fn names_are_bound_together_and_are_null_where_the_condition_is_false() {
    check(
        r#"{"a":1}"#,
        r#"[{"let":{"x":"state.a + 1"}},{"let":{"y":"x * 2","z":"x * 3"}},{"set":"a","value":["x","y","z"]}]"#,
        r#"[{"set":"/a","value":[2,4,6]}]"#,
    );
    check(
        r#"{"a":1}"#,
        r#"[{"let":{"x":"t.goal.deep"},"if":"false"},{"set":"a","value":"x"}]"#,
        r#"[{"set":"/a","value":null}]"#,
    );
}

#[test]
fn a_place_that_is_not_there_is_an_error_unless_it_is_optional() {
    for (state, step, why) in [
        (r#"{"a":{}}"#, r#""remove":"a.b""#, "there is nothing at a.b"),
        (r#"{"a":{}}"#, r#""add":"a.b","value":1"#, "there is nothing at a.b"),
        (r#"{"a":{}}"#, r#""add":"a.b.c","value":1"#, "there is nothing at a.b.c"),
        (r#"{"a":[]}"#, r#""set":"a[0]","value":1"#, "a has 0 items, there is no item 0"),
        (r#"{"a":{}}"#, r#""set":"a.l[0]","value":1"#, "there is nothing at a.l"),
        (r#"{"a":[{"id":1}]}"#, r#""set":"a[first x: x.id == 2].n","value":1"#, "no item of a has x.id == 2"),
        (r#"{"a":{}}"#, r#""set":"a.l[first x: true].n","value":1"#, "there is nothing at a.l"),
    ] {
        check(state, &format!("[{{{step}}}]"), &format!("error: rule 1, step 1: {why}"));
        check(state, &format!("[{{{step},\"optional\":true}}]"), "[]");
    }
}

#[test]
fn what_makes_no_sense_is_an_error_even_where_the_place_is_optional() {
    for (state, step, why) in [
        (r#"{"a":[]}"#, r#""set":"a.b","value":1"#, "a is a list; it has no member b"),
        (r#"{"a":[]}"#, r#""set":"a['b']","value":1"#, "a is a list; it has no member b"),
        (
            r#"{"a":{}}"#,
            r#""set":"a[0]","value":1"#,
            "a is a map, not a list; a member is named by text, not by 0",
        ),
        (
            r#"{"a":{}}"#,
            r#""set":"a[null]","value":1"#,
            "a place below a is named by text or a number, not by null",
        ),
        (r#"{"a":{}}"#, r#""set":"a[first x: true]","value":1"#, "a is a map; `first` looks through a list"),
        (r#"{"a":[1]}"#, r#""set":"a[first x: x.id == 1]","value":1"#, "x is a number and has no members"),
        (r#"{"a":3}"#, r#""set":"a.b","value":1"#, "at a.b: a number has no members"),
        (
            r#"{"a":"x"}"#,
            r#""add":"a","value":1"#,
            "add needs two numbers within 2^53-1, and there is a string",
        ),
        (
            r#"{"a":1}"#,
            r#""add":"a","value":"'x'""#,
            "add needs two numbers within 2^53-1, and there is a string",
        ),
        (r#"{"a":1e308}"#, r#""add":"a","value":1e308"#, "the sum is not a number"),
        (r#"{"a":1}"#, r#""set":"a","value":"t.goal""#, "t.goal is missing"),
        (r#"{"a":1}"#, r#""set":"a","value":1,"if":"t.goal""#, "if: t.goal is missing"),
    ] {
        check(state, &format!("[{{{step},\"optional\":true}}]"), &format!("error: rule 1, step 1: {why}"));
    }
    check(
        r#"{"a":1}"#,
        r#"[{"each":{"as":"x","in":"state.a"},"steps":[]}]"#,
        "error: rule 1, step 1: each goes through a list, and `in` gives a number",
    );
    check(
        r#"{"a":1}"#,
        r#"[{"let":{"y":1}},{"each":{"as":"x","in":"[1]"},"steps":[{"set":"a","value":1},{"set":"a","value":"x.y"}]}]"#,
        "error: rule 1, step 2.2: x is a number and has no members",
    );
}

#[test]
fn rules_apply_in_order_where_their_type_and_condition_fit() {
    let state = r#"{"log":[]}"#;
    let rules = r#"[
        {"words":"all","steps":[{"append":"log","value":1}]},
        {"when_type":"goal.complete","steps":[{"append":"log","value":2}]},
        {"when_type":["plan.update","goal.complete"],"when":"size(state.log) == 1","steps":[{"append":"log","value":3}]},
        {"when":"has(t.intent) && t.intent.bad.worse","words":"the  bad\none","steps":[]}]"#;
    let pack = pack(state, "", rules);
    let run = |text: &str| reduce(&pack, state, &intent(text));
    assert_eq!(
        run(r#"{"type":"plan.update"}"#),
        r#"[{"append":"/log","value":1},{"append":"/log","value":3}]"#
    );
    assert_eq!(
        run(r#"{"type":"goal.complete"}"#),
        r#"[{"append":"/log","value":1},{"append":"/log","value":2}]"#
    );
    assert_eq!(run(r#"{"type":"memory.write"}"#), r#"[{"append":"/log","value":1}]"#);
    assert_eq!(
        run(r#"{"type":"memory.write","intent":{}}"#),
        "error: rule 4 \"the bad one\": when: t.intent.bad is missing"
    );
}

#[test]
fn a_rule_sees_the_transition_without_time_metrics_and_digests() {
    let state = r#"{"seen":null}"#;
    let pack = pack(state, "", r#"[{"steps":[{"set":"seen","value":"t"}]}]"#);
    let mut intent = intent(
        r#"{"type":"action.result","author":"runtime","goal":"g","action":{"tool":"x"},"result":{"output":1},
            "metrics":{"tokens":5},"anomalies":[{"kind":"gap"}],"effect":"read","confidence":0.12345}"#,
    );
    intent.links = [(Rel::Evidence, 2), (Rel::CausedBy, 1), (Rel::Evidence, 2), (Rel::Evidence, 1)]
        .map(|(rel, n)| Link { rel, hash: Digest([n; 32]) })
        .to_vec();
    assert_eq!(
        reduce(&pack, state, &intent),
        r#"[{"set":"/seen","value":{"action":{"tool":"x"},"agent":"a","anomalies":[{"kind":"gap"}],"author":"runtime","effect":"read","goal":"g","intent":{"confidence":0.123},"links":["caused_by","evidence","evidence"],"result":{"output":1},"type":"action.result"}}]"#
    );
}

#[test]
fn a_field_with_decimals_is_rounded_whenever_it_is_written() {
    let text = r#"{"name":"test","version":"v1",
        "state":{"spent":{"init":"s0.spent","decimals":2}},
        "rules":[{"steps":[{"add":"spent","value":"t.intent.n"}]}]}"#;
    let pack = Pack::read(&json(text)).unwrap();
    let run = |spent: &str, n: &str| {
        let intent = intent(&format!("{{\"type\":\"plan.update\",\"intent\":{{\"n\":{n}}}}}"));
        reduce(&pack, &format!("{{\"spent\":{spent}}}"), &intent)
    };
    assert_eq!(run("0.1", "0.2"), r#"[{"set":"/spent","value":0.3}]"#);
    assert_eq!(run("1", "2"), r#"[{"add":"/spent","value":2}]"#);
    assert_eq!(run("1", "0.004"), "[]");
    // Half to even on the exact binary value: 2.675 is stored a little below.
    assert_eq!(run("0", "2.675"), r#"[{"set":"/spent","value":2.67}]"#);
}

#[test]
fn limits_are_errors_and_nothing_is_written() {
    let state = r#"{"a":[],"b":""}"#;
    let run = |length: u64, steps: &str| {
        let intent = intent(r#"{"type":"plan.update"}"#)
            .with("intent", Value::record([("list", Value::array((0..length).map(Value::from)))]));
        reduce(&pack(state, "", &format!("[{{\"steps\":{steps}}}]")), state, &intent)
    };
    let many = r#"[{"each":{"as":"x","in":"t.intent.list"},"steps":[
        {"each":{"as":"y","in":"t.intent.list"},"steps":[{"append":"a","value":"y"}]}]}]"#;
    assert_eq!(
        run(320, many),
        "error: rule 1, step 1.1.1: the rules write at most 100000 times for one transition"
    );
    let long = r#"[{"each":{"as":"x","in":"t.intent.list"},"steps":[]}]"#;
    assert_eq!(
        run(100_001, long),
        "error: rule 1, step 1: each goes through at most 100000 items, and there are 100001"
    );
    let slow = r#"[{"each":{"as":"x","in":"t.intent.list"},"steps":[
        {"set":"b","value":"'x'","if":"t.intent.list + t.intent.list == []"}]}]"#;
    assert_eq!(
        run(5000, slow),
        "error: rule 1, step 1.1: if: the rules take more than 10000000 evaluation steps"
    );
    // A value that contains the one before it twice, a hundred times over, is small in memory and endless as text.
    let doubled: String =
        (1..100).map(|n| format!("{{\"let\":{{\"x{n}\":[\"x{0}\",\"x{0}\"]}}}},", n - 1)).collect();
    let large = format!("[{{\"let\":{{\"x0\":\"'x'\"}}}},{doubled}{{\"set\":\"a\",\"value\":\"x99\"}}]");
    assert_eq!(
        run(0, &large),
        "error: rule 1, step 101: the rules write at most 33554432 bytes for one transition"
    );
    let three = format!("[{}]", [r#"{"append":"a","value":"t.result"}"#; 3].join(","));
    let megabytes = intent(r#"{"type":"action.result","author":"runtime"}"#)
        .with("result", Value::record([("text", Value::from("x".repeat(10 << 20)))]));
    let full = format!("{{\"a\":[{:?}],\"b\":\"\"}}", "y".repeat(40 << 20));
    assert_eq!(
        reduce(&pack(state, "", &format!("[{{\"steps\":{three}}}]")), &full, &megabytes),
        "error: the rules: the state would have 73400373 bytes; at most 67108864 are allowed"
    );
}

proptest! {
    /// Steps against a model: a plain map of numbers, changed one step after the other.
    #[test]
    fn many_steps_come_to_what_they_come_to_one_by_one(
        acts in prop::collection::vec((0..4u8, 0..4u8, -3..4i64), 0..40),
    ) {
        let mut model = std::collections::BTreeMap::from([("k0".to_owned(), 1)]);
        let mut steps = Vec::new();
        for (act, key, n) in acts {
            let key = format!("k{key}");
            steps.push(match act {
                0 => {
                    model.insert(key.clone(), n);
                    format!("{{\"set\":\"m.{key}\",\"value\":{n}}}")
                }
                1 => {
                    model.remove(&key);
                    format!("{{\"remove\":\"m['{key}']\",\"optional\":true}}")
                }
                2 => {
                    if let Some(found) = model.get_mut(&key) {
                        *found += n;
                    }
                    format!("{{\"add\":\"m.{key}\",\"value\":{n},\"optional\":true}}")
                }
                _ => {
                    if model.contains_key(&key) {
                        model.insert(key.clone(), n * 2);
                    }
                    format!("{{\"set\":\"m.{key}\",\"value\":\"{n} * 2\",\"if\":\"'{key}' in state.m\"}}")
                }
            });
        }
        let state = r#"{"m":{"k0":1}}"#;
        let pack = pack(state, "", &format!("[{{\"steps\":[{}]}}]", steps.join(",")));
        let before = json(state);
        let delta = pack.reducer().reduce(&before, &intent(r#"{"type":"plan.update"}"#)).unwrap();
        let after = delta.apply(&before).unwrap();
        let expected = Value::record(model.iter().map(|(name, n)| (name.as_str(), Value::from(*n))));
        prop_assert_eq!(after.get("m"), Some(&expected));
        prop_assert!(delta.0.len() <= steps.len());
    }
}
