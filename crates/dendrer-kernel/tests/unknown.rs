//! Unknown places of a state: what a failed change leaves unknown, what makes it known again, and that predicates say so
//! (design, section 7).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use dendrer_kernel::pack::{Bound, Pack};
use dendrer_kernel::reduce::{DeltaReducer, Reducer};
use dendrer_kernel::replay::{replay_start, replay_step};
use dendrer_kernel::step::{Inputs, RunState, Seeds, Stage, Start, begin, step_with};
use dendrer_kernel::unknown::UnknownPlaces;
use dendrer_kernel::{Outcome, Predicate, Verdict};
use dendrer_object::record::Record;
use dendrer_object::{Intent, StoreId, Timestamp, Value, json};

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn inputs(n: u64) -> Inputs {
    Inputs { clock: Timestamp::from_ms(n), seeds: Seeds::of_secret(u128::from(n + 1).to_be_bytes()) }
}

/// Records lines under a pack with these rules, or under `delta/1`, and replays them. Returns the chain and its head.
fn record(state: &str, rules: Option<&str>, lines: &[&str]) -> (Vec<Record>, RunState) {
    let fields: Vec<String> = value(state)
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, _)| format!("{name:?}:{{\"init\":\"s0.{name}\"}}"))
        .collect();
    let fields = fields.join(",");
    let rules = rules.map(|rules| {
        value(&format!(r#"{{"name":"test","version":"v1","state":{{{fields}}},"rules":{rules}}}"#))
    });
    let pack = rules.clone().map(|pack| Bound { value: pack, text: "".into() });
    let reducer: Box<dyn Reducer + Send + Sync> = match &rules {
        Some(pack) => Pack::read(pack).unwrap_or_else(|faults| panic!("{faults:#?}")).reducer(),
        None => Box::new(DeltaReducer),
    };
    let name = reducer.name().into();
    let start = Start {
        state: value(state),
        stage: Some(Stage::Observe),
        reducer: name,
        pack,
        ..Start::new("r".parse().unwrap())
    };
    let (first, mut head) = begin(StoreId([5; 16]), &start, inputs(0)).unwrap();
    let mut again = replay_start(&first, &*reducer).unwrap();
    let mut chain = vec![first];
    for (line, tick) in lines.iter().zip(1..) {
        let mut intent = Intent::from_value(&value(line), Some("a")).unwrap();
        // What an import notes is beside what the author says.
        let noted = intent.members.iter().position(|(name, _)| &**name == "anomalies");
        if let Some(at) = noted {
            let noted = intent.members.remove(at).1;
            intent.noted.extend(noted.as_array().unwrap().iter().cloned());
        }
        match step_with(&mut head, &intent, inputs(tick), &*reducer).unwrap() {
            Outcome::Committed(record) => chain.push(record),
            other => panic!("{line}: {other:?}"),
        }
        replay_step(&mut again, chain.last().unwrap(), &*reducer, true).unwrap();
        assert_eq!(again.state(), head.state(), "{line}");
    }
    (chain, head)
}

/// The unknown places as `place@tick`, in order.
fn unknown(state: &Value) -> String {
    let places = UnknownPlaces::of(state);
    let shown: Vec<String> =
        places.iter().map(|(place, since)| format!("{}@{}", place.as_str(), since.tick)).collect();
    shown.join(" ")
}

/// Checks what is unknown after each line.
fn check(state: &str, rules: Option<&str>, steps: &[(&str, &str)]) {
    for count in 1..=steps.len() {
        let lines: Vec<&str> = steps[..count].iter().map(|(line, _)| *line).collect();
        let (_, head) = record(state, rules, &lines);
        assert_eq!(unknown(head.state()), steps[count - 1].1, "after {lines:?}");
    }
}

fn delta(ops: &str) -> String {
    format!(r#"{{"type":"memory.write","delta":{ops}}}"#)
}

#[test]
fn a_failed_delta_makes_its_paths_unknown_and_a_set_makes_them_known() {
    let failed = delta(r#"[{"set":"/a/b","value":1},{"add":"/n","value":1},{"append":"/l","value":2}]"#);
    check(
        r#"{"a":{},"l":[1,2]}"#,
        None,
        &[
            (&failed, "/a/b@1 /l@1 /n@1"),
            (&delta(r#"[{"append":"/l","value":3}]"#), "/a/b@1 /l@1 /n@1"),
            (&delta(r#"[{"set":"/a/b/c","value":3}]"#), "/a/b@1 /l@1 /n@1"),
            (&delta(r#"[{"set":"/a","value":{}}]"#), "/l@1 /n@1"),
            (&delta(r#"[{"add":"/n","value":3}]"#), "/l@1 /n@1"),
            (&delta(r#"[{"set":"/n","value":3}]"#), "/l@1"),
            (&delta(r#"[{"set":"/l","value":[]}]"#), ""),
        ],
    );
    let index = delta(r#"[{"set":"/l/0","value":1},{"remove":"/l/7"}]"#);
    check(r#"{"l":[1]}"#, None, &[(&index, "/l@1"), (&delta(r#"[{"set":"/l/0","value":4}]"#), "/l@1")]);
}

#[test]
fn one_failed_rule_makes_the_targets_of_all_rules_that_may_have_written_unknown() {
    let rules = r#"[
        {"when_type":"memory.write","steps":[{"set":"a","value":"t.intent.a"}]},
        {"when_type":"memory.write","when":"state.off","steps":[{"set":"b","value":1}]},
        {"when_type":"memory.write","when":"state.a > 3","steps":[{"set":"m[t.agent]","value":1}]},
        {"when_type":"memory.write","when":"t.intent.missing","steps":[{"append":"l","value":1}]},
        {"when_type":"plan.update","steps":[{"set":"c","value":1}]}
    ]"#;
    let state = r#"{"a":0,"b":0,"c":0,"l":[],"m":{},"off":false}"#;
    let line = r#"{"type":"memory.write","intent":{"a":1}}"#;
    check(state, Some(rules), &[(line, "/a@1 /l@1 /m@1"), (r#"{"type":"plan.update"}"#, "/a@1 /l@1 /m@1")]);
}

#[test]
fn a_rule_that_reads_an_unknown_place_leaves_its_targets_unknown() {
    let rules = r#"[
        {"when_type":"memory.write","steps":[{"set":"a","value":"t.intent.a"}]},
        {"when_type":"plan.update","when":"state.a > 3","steps":[{"set":"b","value":1}]},
        {"when_type":"plan.update","when":"state.b > 0 && state.c > 0","steps":[{"add":"d","value":1}]},
        {"when_type":"plan.update","steps":[{"set":"c","value":"state.c + 1"}]}
    ]"#;
    let state = r#"{"a":0,"b":0,"c":-1,"d":0}"#;
    let plan = r#"{"type":"plan.update"}"#;
    check(
        state,
        Some(rules),
        &[
            (r#"{"type":"memory.write","intent":{}}"#, "/a@1"),
            // `b` depends on what `a` is. `state.c > 0` is false, so `d` does not depend on `b`.
            (plan, "/a@1 /b@2"),
            (plan, "/a@1 /b@2"),
            (plan, "/a@1 /b@2 /d@4"),
            (r#"{"type":"memory.write","intent":{"a":1}}"#, "/b@2 /d@4"),
            // The rule about `b` does not fire, so nothing sets `b`.
            (plan, "/b@2 /d@4"),
            (r#"{"type":"memory.write","intent":{"a":9}}"#, "/b@2 /d@4"),
            // Now it does; `d` is added to, and stays what it was: unknown.
            (plan, "/d@4"),
        ],
    );
}

#[test]
fn predicates_over_unknown_places_are_uncertain_and_absorb() {
    let failed = delta(r#"[{"add":"/a/b","value":1}]"#);
    let (_, head) = record(r#"{"a":{"b":"x","c":1},"d":2}"#, None, &[&failed]);
    let since = "is unknown: a delta failed at tick 1";
    for (text, expected) in [
        ("state.a.c > 0", Ok(true)),
        ("state.d == 2", Ok(true)),
        ("state.a.b == 'x'", Err(format!("state.a.b {since}"))),
        ("has(state.a.b)", Err(format!("state.a.b {since}"))),
        ("has(state.a.b.c)", Err(format!("state.a.b.c {since}"))),
        ("size(state.a) == 2", Err(format!("state.a {since}"))),
        ("'b' in state.a", Err(format!("state.a {since}"))),
        ("'c' in state.a", Ok(true)),
        ("state.a['c'] == 1", Ok(true)),
        ("state.d == 2 || state.a.b == 'x'", Ok(true)),
        ("state.a.b == 'x' && state.d == 3", Ok(false)),
        ("state.a.b == 'x' ? true : true", Err(format!("state.a.b {since}"))),
        ("has(state.policy)", Ok(false)),
    ] {
        let found = match Predicate::condition("p", text).unwrap().verdict(head.state(), None) {
            Verdict::Violation => Ok(true),
            Verdict::Ok => Ok(false),
            Verdict::Uncertain(why) => Err(why),
        };
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn an_unanswered_call_leaves_what_its_result_would_have_written_unknown() {
    let rules = r#"[
        {"when_type":"action.result","when":"t.action.tool == 'pay'","steps":[{"set":"paid","value":"t.result.output"}]},
        {"when_type":"action.result","when":"t.action.tool == 'ask'","steps":[{"set":"asked","value":1}]},
        {"when_type":"action.result","when":"t.result.status == 'ok'","steps":[{"set":"last","value":1}]},
        {"when_type":"plan.update","steps":[{"set":"plan","value":1}]}
    ]"#;
    let state = r#"{"asked":0,"last":0,"paid":0,"plan":0}"#;
    let noted = |kind: &str| {
        format!(
            r#"{{"type":"action.request","action":{{"tool":"pay"}},"anomalies":[{{"gap":true,"kind":"{kind}"}}]}}"#
        )
    };
    let (unanswered, unread) = (noted("call_without_result"), noted("message_unreadable"));
    check(state, Some(rules), &[(&unanswered, "/last@1 /paid@1")]);
    check(state, Some(rules), &[(&unread, "/asked@1 /last@1 /paid@1 /plan@1")]);
    check(state, Some(rules), &[(&noted("arguments_not_json"), "")]);
    check(state, None, &[(&unanswered, "")]);
}

#[test]
fn whether_policy_was_kept_is_unknown_once_a_rule_reads_an_unknown_place() {
    let start = Start {
        stage: Some(Stage::Observe),
        policy: vec![value(r#"{"id":"limit","holds":"!has(state.n) || state.n < 10"}"#)],
        ..Start::new("r".parse().unwrap())
    };
    let (_, mut head) = begin(StoreId([5; 16]), &start, inputs(0)).unwrap();
    let compliant = Predicate::built_in("kernel.policy_compliant").unwrap();
    for (ops, expected) in [
        (r#"[{"set":"/m","value":1}]"#, "ok"),
        (
            r#"[{"add":"/n","value":5}]"#,
            "uncertain: state.policy is unknown: computed from an unknown place at tick 2",
        ),
        (
            r#"[{"set":"/n","value":3}]"#,
            "uncertain: state.policy is unknown: computed from an unknown place at tick 2",
        ),
        (r#"[{"set":"/n","value":30}]"#, "violation"),
    ] {
        let intent = Intent::from_value(&value(&delta(ops)), Some("a")).unwrap();
        let tick = head.tick() + 1;
        step_with(&mut head, &intent, inputs(tick), &DeltaReducer).unwrap();
        assert_eq!(compliant.verdict(head.state(), None).to_string(), expected, "{ops}");
    }
}
