//! A message that could not be read may have been anything: it is never counted as absent (design, sections 7 and 9).

use dendrer_object::Value;

use crate::support::Place;

/// A call that fails, a message that cannot be read at tick 4, and a call with a note at tick 5.
const CHAT: &str = r#"[{"role":"user","content":"hi"},
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"pay","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"c1","content":"Error: no","is_error":true},
42,
{"role":"assistant","content":null,"tool_calls":[{"id":"c2","function":{"name":"pay","arguments":"{oops"}}]},
{"role":"tool","tool_call_id":"c2","content":"done"}]"#;

fn place() -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("chat.json"), CHAT).unwrap();
    place.ok(&["import", "chat.json", "--run", "r"]);
    place
}

/// The exit code, the outcome, and the ticks and verdicts that are known of the onset.
fn outcome(place: &Place, question: &[&str]) -> (i32, String, Vec<(u64, String)>) {
    let (code, answer) = place.json(&[&["bisect", "r"], question].concat());
    let outcome = answer.get("outcome").and_then(Value::as_str).unwrap().to_owned();
    let read = |one: &Value| {
        let verdict = one.get("verdict").and_then(Value::as_str).unwrap().to_owned();
        (one.get("tick").and_then(Value::as_u64).unwrap(), verdict)
    };
    let ticks = answer.get("ticks").and_then(Value::as_array);
    let ticks = ticks.map(|ticks| ticks.iter().map(read).collect()).unwrap_or_default();
    let known = answer.get("certainty").and_then(Value::as_str) == Some("exact");
    assert_eq!(known, outcome != "uncertain", "{answer}");
    (code, outcome, ticks)
}

fn uncertain(from: u64, certain: Option<u64>) -> (i32, String, Vec<(u64, String)>) {
    let first = (from, "uncertain".to_owned());
    let certain = certain.map(|tick| (tick, "violation".to_owned()));
    (6, "uncertain".to_owned(), [first].into_iter().chain(certain).collect())
}

#[test]
fn an_anomaly_or_a_flip_is_not_called_absent_behind_an_unread_message() {
    let place = place();
    assert_eq!(outcome(&place, &["--anomaly", "call_without_result"]), uncertain(4, None));
    assert_eq!(outcome(&place, &["--anomaly", "arguments_not_json"]), uncertain(4, Some(5)));
    assert_eq!(outcome(&place, &["--policy-flip", "action.request"]), uncertain(4, None));
    // The gap is an anomaly itself.
    for question in [["--anomaly", "message_unreadable"], ["--predicate", "kernel.anomaly_free"]] {
        assert_eq!(outcome(&place, &question), (0, "onset".to_owned(), Vec::new()), "{question:?}");
    }
    let ran = place.run(&["bisect", "r", "--policy-flip", "action.request"]);
    let why = "UNKNOWN    ticks 4..6: a decision may be missing: a part of the source was not read at tick 4";
    assert!(ran.stdout.contains(why), "{}", ran.stdout);
}

#[test]
fn a_flip_before_an_unread_message_is_exact_and_one_behind_it_is_not() {
    let place = Place::with_store();
    let decision = |word: &str| {
        format!(
            r#"{{"type":"policy.decision","agent":"p","author":"runtime","policy":{{"transition_type":"action.request","decision":"{word}"}}}}"#
        )
    };
    let gap = r#"{"type":"observation.add","agent":"u","author":"runtime","anomalies":[{"kind":"source_cut","at":"/3"}]}"#;
    let record = |run: &str, lines: &[&str]| {
        let ran = place
            .run_with(&["commit", "--run", run, "--as", "runtime"], (lines.join("\n") + "\n").as_bytes());
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    };
    let (allow, deny) = (decision("allow"), decision("deny"));
    record("before", &[&allow, &deny, gap]);
    record("behind", &[&allow, gap, &deny]);
    record("never", &[&allow, gap]);
    let found = |run: &str| {
        let (code, answer) = place.json(&["bisect", run, "--policy-flip", "action.request"]);
        let tick = |value: Option<&Value>| value.and_then(Value::as_u64);
        let ticks = answer.get("ticks").and_then(Value::as_array);
        let ticks: Vec<_> =
            ticks.iter().flat_map(|ticks| ticks.iter()).filter_map(|one| tick(one.get("tick"))).collect();
        (code, tick(answer.get("onset")), ticks)
    };
    assert_eq!(found("before"), (0, Some(2), Vec::new()));
    assert_eq!(found("behind"), (6, None, vec![2, 3]));
    assert_eq!(found("never"), (6, None, vec![2]));
}

#[test]
fn a_counter_is_a_lower_bound_behind_an_unread_message() {
    let place = place();
    assert_eq!(outcome(&place, &["--holds", "state.counters.tool_calls < 2"]), uncertain(4, Some(5)));
    assert_eq!(outcome(&place, &["--holds", "state.counters.tool_calls < 3"]), uncertain(4, None));
    assert_eq!(outcome(&place, &["--holds", "has(state.counters.last_tool)"]), uncertain(4, None));
    // Before it each counter is known, and how many transitions there are always is.
    assert_eq!(outcome(&place, &["--holds", "state.counters.tool_errors == 0"]).1, "onset");
    assert_eq!(outcome(&place, &["--holds", "state.counters.transitions < 9"]).1, "never");
    assert_eq!(outcome(&place, &["--holds", "state[\"counters\"].by_agent.user == 1 || true"]).1, "never");
    let ran = place.run(&["state", "r", "--path", "counters.tool_calls"]);
    let line = "UNKNOWN    counters.tool_calls (a part of the source was not read at tick 4)";
    assert!(ran.code == 6 && ran.stderr.contains(line), "{}{}", ran.stdout, ran.stderr);
    for args in
        [["state", "r@3", "--path", "counters.tool_calls"], ["state", "r", "--path", "counters.transitions"]]
    {
        let ran = place.run(&args);
        assert!(ran.code == 0 && !ran.stdout.contains("UNKNOWN"), "{}{}", ran.stdout, ran.stderr);
    }
    assert!(!place.ok(&["verify", "r", "--replay"]).contains("INCOMPLETE"));
}

#[test]
fn a_violation_that_reads_a_counter_leaves_compliance_unknown() {
    let place = Place::with_store();
    let pack = "name: acme.p\nversion: v1\nviolations:\n  - {id: calls, condition: state.counters.tool_errors > 1}\n";
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    let lines = r#"{"type":"plan.update","agent":"u"}
{"type":"observation.add","agent":"u","author":"runtime","anomalies":[{"kind":"source_cut","at":"/3"}]}
"#;
    let args = ["commit", "--run", "r", "--pack", "./p.yaml", "--stage", "2", "--as", "runtime"];
    let ran = place.run_with(&args, lines.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(outcome(&place, &["--predicate", "kernel.policy_compliant"]), uncertain(2, None));
    assert!(place.ok(&["verify", "r", "--replay"]).contains("INCOMPLETE   from tick 2: policy"));
}
