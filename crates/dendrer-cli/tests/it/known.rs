//! Answers over what is on record: rows that are not sound, states behind a merge, and the rules of a run asked of its states.

use dendrer_object::{Pointer, Value};

use crate::support::Place;

/// A chain of three steps, of which the last was edited: its booking failed.
const ALTERED: &str = r#"{"chain_id": "3641fe0b9363", "started_at": "2026-11-27T12:14:25.749000+00:00", "context": {"run": "a"}}
{"step_id": "a1", "action": "user_input", "name": "chat", "input": "book a table", "output": null, "success": true, "started_at": "2026-03-01T10:00:00+00:00", "duration_ms": null, "parent_id": null, "session_id": null, "trace_id": "t1", "phi": null, "kuramoto_r": null, "channel_coherence": null, "probe_call": null, "prev_hash": "f94b6c048913e2f52803ea6e85ad35c02da74d7923dd37abfdbcf941b8cce8e0", "content_hash": "5579b00c28fa5a43014a3de97077b64f27febd45cdec09dfab6c6de699f41f69"}
{"step_id": "a2", "action": "tool_call", "name": "tables", "input": {"n": 4}, "output": {"free": 2}, "success": true, "started_at": "2026-03-01T10:00:01+00:00", "duration_ms": 4.0, "parent_id": "a1", "session_id": null, "trace_id": "t1", "phi": null, "kuramoto_r": null, "channel_coherence": null, "probe_call": null, "prev_hash": "5579b00c28fa5a43014a3de97077b64f27febd45cdec09dfab6c6de699f41f69", "content_hash": "1f20fb23cc0bd72a59f3b4b76127cde42751fb2bf573e9c915c26496028ab395"}
{"step_id": "a3", "action": "tool_call", "name": "book", "input": {"table": 7}, "output": {"error": "taken"}, "success": true, "started_at": "2026-03-01T10:00:02+00:00", "duration_ms": 9.0, "parent_id": "a1", "session_id": null, "trace_id": "t1", "phi": null, "kuramoto_r": null, "channel_coherence": null, "probe_call": null, "prev_hash": "1f20fb23cc0bd72a59f3b4b76127cde42751fb2bf573e9c915c26496028ab395", "content_hash": "9816824ea4e35765e4653120a19278e343d3e7a6f148aa4d277a3aec5bc4e968"}
"#;

fn write(place: &Place, name: &str, text: &str) {
    std::fs::write(place.path().join(name), text).unwrap();
}

fn at<'v>(answer: &'v Value, place: &str) -> Option<&'v Value> {
    place.parse::<Pointer>().unwrap().get(answer)
}

fn exit(place: &Place, args: &[&str]) -> i32 {
    place.run(args).code
}

#[test]
fn an_altered_row_leaves_a_gate_open() {
    let place = Place::with_store();
    write(&place, "altered.jsonl", ALTERED);
    place.ok(&["import", "--kind", "carl", "altered.jsonl", "--run", "r"]);
    let gate = |expression: &str| exit(&place, &["assert", "r", "--holds", expression]);
    assert_eq!(gate("by_action('tool_call').all(s, s.success)"), 6);
    // The row may have been a step of any type, and there may have been none.
    assert_eq!(gate("by_action('payment').all(s, s.success)"), 6);
    assert_eq!(gate("size(by_action('tool_call')) == 2"), 6);
    // Decided without it.
    assert_eq!(gate("by_action('tool_call').exists(s, s.success)"), 0);
    assert_eq!(gate("size(by_action('tool_call')) >= 1"), 0);
    assert_eq!(gate("by_action('user_input').exists(s, !s.success && s.tick == 1)"), 1);
    let (_, answer) = place.json(&["assert", "r", "--holds", "by_action('tool_call').all(s, s.success)"]);
    let steps = at(&answer, "/items/0/steps").unwrap().to_string();
    assert!(steps.contains(r#""author":"unstated""#) && steps.contains("does not have the hash"), "{steps}");
    let bisect = ["bisect", "r", "--holds", "state.counters.tool_errors == 0"];
    let (code, answer) = place.json(&bisect);
    let first = at(&answer, "/ticks/0/tick").and_then(Value::as_u64);
    assert_eq!((code, first), (6, Some(3)), "{answer}");
    let (code, answer) = place.json(&["bisect", "r@2", "--holds", "state.counters.tool_errors == 0"]);
    assert_eq!((code, answer.get("outcome")), (1, Some(&Value::from("never"))), "{answer}");
}

#[test]
fn a_check_that_an_agent_states_of_itself_passes_no_gate() {
    let place = Place::with_store();
    let line = br#"{"agent":"a","step":{"action":"eval_phase","name":"tests","success":true}}"#;
    for (run, author) in [("own", "agent"), ("checked", "runtime")] {
        let ran = place.run_with(&["commit", "--run", run, "--as", author], line);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    }
    let gate = "by_action('eval_phase').all(s, s.success)";
    assert_eq!(exit(&place, &["assert", "own", "--holds", gate]), 6);
    assert_eq!(exit(&place, &["assert", "checked", "--holds", gate]), 0);
    // A gate may ask who says it.
    let by = "by_action('eval_phase').exists(s, s.author == 'runtime' && s.agent == 'a' && s.success)";
    assert_eq!(exit(&place, &["assert", "checked", "--holds", by]), 0);
    assert_eq!(exit(&place, &["assert", "own", "--holds", by]), 1);
}

fn merged() -> Place {
    let place = Place::with_store();
    write(&place, "s0.json", r#"{"spent": 0, "room": "none"}"#);
    let commit = |run: &str, lines: &[&str]| {
        let args: &[&str] = if run == "base" { &["--state", "s0.json"] } else { &[] };
        let args: Vec<&str> = ["commit", "--run", run].iter().chain(args).copied().collect();
        let ran = place.run_with(&args, lines.join("\n").as_bytes());
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    };
    commit("base", &[r#"{"type":"observation.add","agent":"desk","intent":{"description":"begin"}}"#]);
    place.ok(&["fork", "base@1", "--as", "left"]);
    place.ok(&["fork", "base@1", "--as", "right"]);
    let spent = |n: u64| {
        format!(r#"{{"type":"memory.write","agent":"ann","delta":[{{"set":"/spent","value":{n}}}]}}"#)
    };
    commit("left", &[&spent(100), &spent(900), &spent(950)]);
    commit("right", &[r#"{"type":"memory.write","agent":"bob","delta":[{"set":"/room","value":"B"}]}"#]);
    place.ok(&["merge", "--as", "both", "--from", "left", "--from", "right"]);
    place
}

#[test]
fn the_trail_goes_on_in_the_source_of_a_merge() {
    let place = merged();
    let bisect = ["bisect", "both", "--holds", "state.spent <= 600"];
    let (code, answer) = place.json(&bisect);
    assert_eq!((code, answer.get("onset")), (0, Some(&Value::from(0u64))), "{answer}");
    let sources = answer.get("sources").unwrap().to_string();
    assert_eq!(sources, r#"[{"path":"/spent","run":"left","tick":4}]"#);
    let class = answer.get("diagnosis").and_then(|offer| offer.get("offered")?.as_str());
    assert_eq!(class, Some("contingent-state"), "{answer}");
    let ran = place.run(&bisect);
    for (text, is_there) in [
        ("left@4", true),
        ("SUGGESTION  dendrer fork --run left --from tick 3", true),
        ("foundational", false),
        ("goal", false),
    ] {
        assert_eq!(ran.stdout.contains(text), is_there, "{text}: {}", ran.stdout);
    }
    let later = r#"{"type":"observation.add","agent":"bob","intent":{"description":"later"}}"#;
    for round in 0..2 {
        let (code, answer) = place.json(&["why", "both", "spent"]);
        let root = answer.get("root").unwrap();
        let at = (root.get("run").and_then(Value::as_str), root.get("tick").and_then(Value::as_u64));
        assert_eq!((code, at), (0, (Some("left"), Some(5))), "round {round}: {answer}");
        let (code, answer) = place.json(&["backtrack", "both", "spent"]);
        let items = answer.get("items").and_then(Value::as_array).unwrap();
        let at = |item: &Value| Some((item.get("run")?.as_str()?.to_owned(), item.get("tick")?.as_u64()?));
        let found: Vec<_> = items.iter().filter_map(at).collect();
        let left = |tick: u64| ("left".to_owned(), tick);
        assert_eq!((code, found), (0, vec![left(5), left(4), left(3)]), "round {round}: {answer}");
        let ran = place.run_with(&["commit", "--run", "both"], later.as_bytes());
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    }
    // A merge of a merge.
    place.ok(&["fork", "both@1", "--as", "more"]);
    place.ok(&["merge", "--as", "again", "--from", "more", "--from", "base"]);
    let (_, answer) = place.json(&["bisect", "again", "--holds", "state.spent <= 600"]);
    let sources = answer.get("sources").map(ToString::to_string);
    assert_eq!(sources.as_deref(), Some(r#"[{"path":"/spent","run":"left","tick":4}]"#), "{answer}");
}

/// A pack with one violation that nothing enforces.
const PACK: &str = "name: acme.p\nversion: v1\nstate: {risk: {words: risk}}\nviolations:\n  - {id: high, condition: state.risk > 0.75}\n";

#[test]
fn compliance_is_the_same_at_every_stage_and_of_a_reduced_run() {
    let place = Place::with_store();
    write(&place, "p.yaml", &format!("{PACK}reducer: {{engine: delta/1}}\n"));
    let line = |risk: f64| {
        format!(r#"{{"type":"plan.update","agent":"a","delta":[{{"set":"/risk","value":{risk}}}]}}"#)
    };
    let lines = [line(0.1), line(0.9), line(0.2)].join("\n");
    let outcome = |run: &str| {
        let (code, answer) = place.json(&["bisect", run, "--predicate", "kernel.policy_compliant"]);
        (code, answer.get("onset").and_then(Value::as_u64))
    };
    for stage in ["0", "1", "2"] {
        let run = format!("s{stage}");
        let args = ["commit", "--run", &run, "--pack", "./p.yaml", "--stage", stage];
        let ran = place.run_with(&args, lines.as_bytes());
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(outcome(&run), (0, Some(2)), "stage {stage}");
    }
    place.ok(&["reduce", "s1", "--pack", "./p.yaml", "--stage", "2", "--as", "reduced"]);
    assert_eq!(outcome("reduced"), (0, Some(2)));
    // A rule over a place that is never written is not known to be kept.
    let never = r#"{"type":"observation.add","agent":"a"}"#;
    let args = ["commit", "--run", "never", "--pack", "./p.yaml", "--stage", "1"];
    assert_eq!(place.run_with(&args, never.as_bytes()).code, 0);
    assert_eq!(outcome("never"), (6, None));
}

#[test]
fn a_fork_under_another_constant_differs_in_it() {
    let place = Place::with_store();
    let pack = "name: acme.p\nversion: v1\nreducer: {engine: delta/1}\nconstants: {limit: 5}\nstate: {spent: {words: spent}}\nviolations:\n  - {id: high, condition: state.spent > limit}\n";
    write(&place, "p.yaml", pack);
    let line = r#"{"type":"plan.update","agent":"a","delta":[{"set":"/spent","value":3}]}"#;
    let args = ["commit", "--run", "r", "--pack", "./p.yaml", "--stage", "1"];
    assert_eq!(place.run_with(&args, line.as_bytes()).code, 0);
    place.ok(&["fork", "r@1", "--as", "same"]);
    place.ok(&["fork", "r@1", "--as", "other", "--policy", "limit=9"]);
    let diff = |run: &str| place.run(&["diff", "r", run, "--exit-code"]);
    assert_eq!(diff("same").code, 0, "{}", diff("same").stdout);
    let ran = diff("other");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("constant  limit  5 -> 9"), "{}", ran.stdout);
    let (_, answer) = place.json(&["diff", "r", "other"]);
    let constants = answer.get("constants").map(ToString::to_string);
    assert_eq!(constants.as_deref(), Some(r#"[{"a":5,"b":9,"name":"limit"}]"#), "{answer}");
}

#[test]
fn why_of_an_action_names_what_was_asked() {
    let place = Place::with_store();
    write(&place, "rule.json", r#"[{"id":"small","holds":"t.action.params.n <= state.limit"}]"#);
    write(&place, "s0.json", r#"{"limit":5}"#);
    let user = r#"{"type":"observation.add","agent":"ann","author":"user","commitments":[{"id":"H1","type":"obl","hard":true,"gloss":"no refunds","holds":"action.tool != 'refund'"}]}"#;
    let lines = [
        r#"{"type":"action.request","agent":"a","action":{"tool":"pay","params":{"n":9},"call_id":"c1"}}"#,
        r#"{"type":"memory.write","agent":"a","delta":[{"set":"/limit","value":3}]}"#,
    ];
    let args = [
        "commit",
        "--run",
        "r",
        "--policy",
        "rule.json",
        "--state",
        "s0.json",
        "--stage",
        "1",
        "--as",
        "user",
    ];
    let ran = place.run_with(&args, user.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ran = place.run_with(&["commit", "--run", "r"], lines.join("\n").as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let (code, answer) = place.json(&["why", "r@2"]);
    let said = |place: &str| at(&answer, place).map(ToString::to_string).unwrap_or_default();
    assert_eq!((code, said("/schema").as_str()), (0, r#""dendrer.action-why/1""#), "{answer}");
    let call = r#"{"call_id":"c1","commitments":[{"id":"H1","owner":"user","verdict":"ok"}],"params":{"n":9},"tool":"pay"}"#;
    assert_eq!(said("/calls/0"), call);
    assert_eq!(said("/rules"), r#"[{"id":"small","verdict":"violation"}]"#);
    assert_eq!(said("/reads"), r#"[{"path":"/limit","tick":null}]"#);
    assert_eq!(said("/decision"), "null");
    let (code, answer) = place.json(&["why", "r@3"]);
    assert_eq!(
        (code, at(&answer, "/calls").map(ToString::to_string)),
        (0, Some("[]".to_owned())),
        "{answer}"
    );
}

#[test]
fn admissible_asks_the_whole_door() {
    let place = Place::with_store();
    let pack = "name: acme.p\nversion: v1\ntools: {pay: {effect: read}}\nstate: {asked: {init: \"0\"}}\nrules:\n  - {when_type: action.request, steps: [{add: asked, value: 1}]}\n";
    write(&place, "p.yaml", pack);
    write(&place, "rule.json", r#"[{"id":"small","enforce":true,"holds":"t.action.params.n <= 5"}]"#);
    write(
        &place,
        "calls.jsonl",
        "{\"tool\":\"pay\",\"params\":{\"n\":1}}\n{\"tool\":\"Pay\",\"params\":{\"n\":1}}\n{\"tool\":\"pay\",\"params\":{\"n\":9}}\n",
    );
    let args = ["commit", "--run", "r", "--pack", "./p.yaml", "--policy", "rule.json", "--stage", "3"];
    let ran = place.run_with(
        &args,
        br#"{"type":"action.request","agent":"a","action":{"tool":"pay","params":{"n":1}}}"#,
    );
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let (code, answer) = place.json(&["commitments", "r", "--admissible", "calls.jsonl"]);
    let said = |item: usize| {
        let refusal = at(&answer, &format!("/items/{item}/refusal/code")).and_then(Value::as_str);
        let is_admissible = at(&answer, &format!("/items/{item}/admissible")).unwrap().to_string();
        (is_admissible, refusal.map(str::to_owned))
    };
    let refused = |code: &str| ("false".to_owned(), Some(code.to_owned()));
    assert_eq!(code, 1, "{answer}");
    assert_eq!(
        [said(0), said(1), said(2)],
        [("true".to_owned(), None), refused("E0426"), refused("E0429")],
        "{answer}"
    );
}

#[test]
fn why_of_a_commitment_follows_what_it_depends_on_and_lists_refusals() {
    let place = Place::with_store();
    let user = r#"{"type":"observation.add","agent":"ann","author":"user","commitments":[{"id":"H1","type":"hyp","gloss":"the ledger is right"},{"id":"P0","type":"plan","gloss":"check","depends_on":["H1"]},{"id":"P1","type":"plan","gloss":"pay","depends_on":["P0"]},{"id":"N","type":"obl","hard":true,"gloss":"no refunds","holds":"action.tool != 'refund'"},{"id":"D","type":"obl","gloss":"do it","discharge":"has(state.done) && state.done"}],"edges":[{"from":"N","to":"P1","edge":"conflicts-with"}]}"#;
    let ran = place.run_with(&["commit", "--run", "r", "--as", "user", "--stage", "2"], user.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let lines = [
        r#"{"type":"action.request","agent":"a","action":{"tool":"refund"}}"#,
        r#"{"type":"memory.write","agent":"a","delta":[{"set":"/done","value":true}]}"#,
    ];
    assert_eq!(place.run_with(&["commit", "--run", "r"], lines.join("\n").as_bytes()).code, 5);
    let (_, answer) = place.json(&["commitments", "why", "r", "P1"]);
    let closure = answer.get("closure").unwrap().to_string();
    assert!(closure.contains(r#""id":"H1""#), "{closure}");
    let (_, answer) = place.json(&["commitments", "why", "r", "N"]);
    let refusals = at(&answer, "/refusals/0/tool").and_then(Value::as_str);
    assert_eq!(refusals, Some("refund"), "{answer}");
    let (_, answer) = place.json(&["commitments", "why", "r", "D"]);
    let discharged =
        r#"{"agent":"a","author":"agent","expression":"has(state.done) && state.done","tick":2}"#;
    assert_eq!(answer.get("discharged").map(ToString::to_string).as_deref(), Some(discharged), "{answer}");
    let (_, answer) = place.json(&["commitments", "r", "--conflicts"]);
    let items = answer.get("items").and_then(Value::as_array).unwrap();
    let ends: Vec<String> =
        items.iter().filter_map(|one| Some(one.get("conflict_edges")?.to_string())).collect();
    assert_eq!(ends.len(), 2, "{answer}");
    assert!(ends.iter().all(|end| end.contains(r#""author":"user""#)), "{ends:?}");
    let (_, answer) = place.json(&["commitments", "epsilon", "r"]);
    assert_eq!(answer.get("actions").map(ToString::to_string).as_deref(), Some("1"), "{answer}");
}
