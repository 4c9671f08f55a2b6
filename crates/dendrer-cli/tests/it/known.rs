//! Answers over what is on record: rows that are not sound, states behind a merge, and the rules of a run asked of its states.

use dendrer_object::Value;

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
    let steps = answer.get("items").and_then(|items| items.get(0)?.get("steps")).unwrap().to_string();
    assert!(steps.contains(r#""author":"unstated""#) && steps.contains("does not have the hash"), "{steps}");
    let bisect = ["bisect", "r", "--holds", "state.counters.tool_errors == 0"];
    let (code, answer) = place.json(&bisect);
    let first = answer.get("ticks").and_then(|ticks| ticks.get(0)?.get("tick")?.as_u64());
    assert_eq!((code, first), (6, Some(3)), "{answer}");
    let (code, answer) = place.json(&["bisect", "r@2", "--holds", "state.counters.tool_errors == 0"]);
    assert_eq!((code, answer.get("outcome")), (1, Some(&Value::from("never"))), "{answer}");
}

#[test]
fn a_check_that_an_agent_states_of_itself_passes_no_gate() {
    let place = Place::with_store();
    let line = |author: &str| {
        format!(
            r#"{{"type":"observation.add","agent":"a"{author},"step":{{"action":"eval_phase","name":"tests","success":true}}}}"#
        )
    };
    let own = place.run_with(&["commit", "--run", "own"], line("").as_bytes());
    assert_eq!(own.code, 0, "{}{}", own.stdout, own.stderr);
    let args = ["commit", "--run", "checked", "--as", "runtime"];
    let checked = place.run_with(&args, line(r#","author":"runtime""#).as_bytes());
    assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
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
    let class = answer.get("diagnosis").and_then(|offer| offer.get("class")?.as_str());
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
