//! Transitions as rows of a chain and back: nothing is lost on the way, and what is not known stays so.

use serde_json::{Value, json};

use crate::support::Place;

fn commit(place: &Place, run: &str, lines: &[Value], more: &[&str]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = place.run_with(&[&["commit", "--run", run], more].concat(), text.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

fn answer(place: &Place, args: &[&str]) -> Value {
    let ran = place.run(&[args, &["--json"]].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{args:?}: {}{}", ran.stdout, ran.stderr))
}

fn export(place: &Place, run: &str) -> String {
    let text = place.ok(&["export", run, "--format", "carl"]);
    std::fs::write(place.path().join(format!("{run}.jsonl")), &text).unwrap();
    text
}

fn import(place: &Place, file: &str, run: &str) {
    place.ok(&["import", "--kind", "carl", &format!("{file}.jsonl"), "--run", run, "--again"]);
}

/// Lines of each type that an agent and the runtime write.
fn lines() -> Vec<Value> {
    let call = json!({"tool": "get", "params": {"q": 1}});
    vec![
        json!({"type": "observation.add", "agent": "ann", "intent": {"description": "hi", "$x": 1}}),
        json!({"type": "plan.update", "agent": "ann", "goal": "g", "intent": {"description": "p", "confidence": 0.75}, "delta": [{"set": "/n", "value": 1.5}]}),
        json!({"type": "action.request", "agent": "bob", "intent": {"description": "ask"}, "action": call, "metrics": {"tokens_used": 5}}),
        json!({"type": "action.result", "agent": "bob", "action": call, "result": {"status": "error", "output": {"$y": 1}}}),
        json!({"type": "memory.write", "agent": "bob", "intent": {"description": "m"}, "delta": [{"append": "/list", "value": 1}]}),
        json!({"type": "anomaly.flag", "agent": "bob", "intent": {"description": "odd"}}),
        json!({"type": "policy.decision", "agent": "bob", "policy": {"decision": "deny", "reason": "no"}}),
        json!({"type": "goal.complete", "agent": "ann", "intent": {"description": "done"}, "key": "k1"}),
        json!({"step": {"action": "tool_call", "name": "put", "output": 1}, "agent": "cy", "delta": [{"set": "/put", "value": 1}]}),
    ]
}

/// X-16: transition, step, transition.
#[test]
fn transitions_come_back_from_their_rows() {
    let place = Place::with_store();
    std::fs::write(place.path().join("s0.json"), r#"{"room":"A","n":0.5}"#).unwrap();
    commit(&place, "r", &lines(), &["--as", "runtime", "--state", "s0.json", "--goal", "sell"]);
    let text = export(&place, "r");
    import(&place, "r", "copy");
    assert_eq!(export(&place, "copy"), text);
    let diff = answer(&place, &["diff", "r", "copy"]);
    assert_eq!((&diff["differ"], &diff["pairs"]), (&json!(0), &json!(10)), "{diff}");
    for tick in 1..=9 {
        let of = |run: &str| {
            let shown = answer(&place, &["show", &format!("{run}@{tick}")]);
            let content = &shown["content"];
            let mut said = content["intent"].clone();
            said.as_object_mut().map(|said| said.remove("row"));
            let said = if said == json!({}) { Value::Null } else { said };
            let names = ["agent_id", "goal_id", "action", "result", "policy", "metrics", "delta", "key"];
            let members: Vec<Value> = names.iter().map(|name| content[*name].clone()).collect();
            (shown["type"].clone(), shown["author"].clone(), said, members)
        };
        assert_eq!(of("r"), of("copy"), "tick {tick}");
    }
    let steps = |run: &str| {
        let mut steps = answer(&place, &["steps", run, "--full"])["items"].clone();
        steps.as_array_mut().unwrap().iter_mut().for_each(|step| step["run"] = Value::Null);
        steps
    };
    assert_eq!(steps("r"), steps("copy"));
    let state = |run: &str| place.ok(&["replay", run, "--to", "9", "--print", "state"]);
    assert_eq!(state("r").replace('r', ""), state("copy").replace("copy", "").replace('r', ""));
}

/// X-16: a fork of an imported chain is exported with its marker as a row, and imported again.
#[test]
fn a_fork_of_an_imported_chain_is_exported() {
    let place = Place::with_store();
    commit(&place, "r", &lines(), &["--as", "runtime"]);
    let text = export(&place, "r");
    import(&place, "r", "copy");
    place.ok(&["fork", "copy@2", "--as", "fork"]);
    commit(&place, "fork", &lines()[2..4], &["--as", "runtime"]);
    let forked = export(&place, "fork");
    let shared = |text: &str| text.lines().take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(shared(&forked), shared(&text));
    assert_eq!(place.run(&["verify", "fork.jsonl", "--profile", "carl"]).code, 0);
    assert!(forked.lines().nth(3).is_some_and(|row| row.contains("run.fork")), "{forked}");
    import(&place, "fork", "again");
    assert_eq!(export(&place, "again"), forked);
}

/// W-19, W-28: whether a step succeeded is true by default, and never null in a line; in a row null is not known.
#[test]
fn unknown_success_is_neither_true_nor_false() {
    let place = Place::with_store();
    let null = json!({"step": {"action": "tool_call", "name": "x", "success": null}});
    let ran = place.run_with(&["commit", "--run", "n", "--as", "runtime"], null.to_string().as_bytes());
    assert_eq!(ran.code, 5, "{}", ran.stdout);
    commit(&place, "r", &lines()[..4], &["--as", "runtime"]);
    let text = export(&place, "r");
    import(&place, "r", "copy");
    for run in ["r", "copy"] {
        let stats = answer(&place, &["steps", run, "--stats"]);
        for row in stats["items"].as_array().unwrap() {
            let known = row["action"] == json!("tool_call");
            let rate = if known { json!(0) } else { Value::Null };
            assert_eq!((&row["success_rate"], &row["failed"]), (&rate, &json!(u64::from(known))), "{run}");
        }
    }
    // The same of a row that no transition is in: of another program.
    let header = text.lines().next().unwrap();
    let row = |action: &str| format!(r#"{{"action": "{action}", "name": "x", "success": null}}"#);
    let rows = [header.to_owned(), row("tool_call"), row("reward")].join("\n");
    std::fs::write(place.path().join("null.jsonl"), rows).unwrap();
    import(&place, "null", "null");
    let steps = answer(&place, &["steps", "null"]);
    assert!(steps["items"].as_array().unwrap().iter().all(|step| step["success"].is_null()), "{steps}");
    assert_eq!(place.run(&["assert", "null", "--holds", "by_action('reward').all(s, s.success)"]).code, 6);
    assert_eq!(place.run(&["bisect", "null", "--holds", "state.counters.tool_errors == 0"]).code, 6);
}

/// W-20: an id is not empty, and a repeated one is noted and leaves a gate open.
#[test]
fn ids_of_steps_are_not_empty_and_repeated_ones_are_noted() {
    let place = Place::with_store();
    let step = |id: &str| json!({"step": {"action": "user_input", "name": "x", "step_id": id}});
    for name in ["step_id", "parent_id", "trace_id", "session_id"] {
        let line = json!({"step": {"action": "tool_call", "name": "x", name: ""}}).to_string();
        let ran = place.run_with(&["commit", "--run", "e", "--as", "runtime"], line.as_bytes());
        assert_eq!(ran.code, 5, "{name}");
    }
    commit(&place, "r", &[step("a"), step("b"), step("a")], &["--as", "runtime"]);
    commit(&place, "r", &[step("b"), step("c")], &["--as", "runtime"]);
    let noted = |tick: u64| answer(&place, &["show", &format!("r@{tick}")])["content"]["anomalies"].clone();
    let kinds: Vec<Value> = (1..=5).map(|tick| noted(tick)[0]["kind"].clone()).collect();
    assert_eq!(json!(kinds), json!([null, null, "step_repeated", "step_repeated", null]));
    assert_eq!(noted(4)[0]["first"], 2);
    assert_eq!(place.run(&["assert", "r", "--holds", "size(by_action('user_input')) == 5"]).code, 6);
}

/// W-67: times of steps are those of UTC, beside the text of the line.
#[test]
fn times_of_steps_are_in_utc_beside_their_text() {
    let place = Place::with_store();
    let times = [
        ("2026-04-20T10:00:00Z", "2026-04-20T10:00:00+00:00"),
        ("2026-04-20T10:00:00", "2026-04-20T10:00:00+00:00"),
        ("2026-01-01T01:30:00+02:00", "2025-12-31T23:30:00+00:00"),
        ("2024-02-28T23:30:00.5-01:00", "2024-02-29T00:30:00.500000+00:00"),
        ("2026-04-20T10:00:00.123456789+00:00", "2026-04-20T10:00:00.123456+00:00"),
        ("2026-04-20T10:00:00.000000+00:00", "2026-04-20T10:00:00+00:00"),
        ("2026-04-20T10:00:00.250000+00:00", "2026-04-20T10:00:00.250000+00:00"),
    ];
    let step = |at: &str| json!({"step": {"action": "user_input", "name": "x", "started_at": at}});
    let lines: Vec<Value> = times.iter().map(|(given, _)| step(given)).collect();
    commit(&place, "r", &lines, &[]);
    let steps = answer(&place, &["steps", "r"])["items"].clone();
    for (step, (given, utc)) in steps.as_array().unwrap().iter().zip(times) {
        assert_eq!(step["started_at"], utc);
        assert_eq!(step["given_at"], if given == utc { Value::Null } else { json!(given) });
    }
    assert!(times.iter().all(|(_, utc)| export(&place, "r").contains(&format!("\"started_at\": \"{utc}\""))));
}

/// W-24, W-73: the context of a chain is given with its run, and an id that names no file is refused.
#[test]
fn the_header_has_the_given_context_and_an_id_that_names_a_file() {
    let place = Place::with_store();
    std::fs::write(place.path().join("c.json"), r#"{"host":"ci-3","job":{"n":1}}"#).unwrap();
    std::fs::write(place.path().join("list.json"), "[1]").unwrap();
    commit(&place, "r", &lines()[..1], &["--context", "c.json"]);
    let text = export(&place, "r");
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(header["context"], json!({"host": "ci-3", "job": {"n": 1}, "run": "r"}));
    assert_eq!(place.run_with(&["commit", "--run", "x", "--context", "list.json"], b"").code, 2);
    import(&place, "r", "copy");
    assert_eq!(answer(&place, &["diff", "r", "copy"])["differ"], 0);
    for id in ["", "../../etc/passwd", "a/b", "a\\b", "x..y"] {
        let bad = json!({"chain_id": id, "started_at": "2026-01-01T00:00:00+00:00"});
        for (name, text) in [("first", format!("{bad}\n")), ("later", format!("{text}{bad}\n"))] {
            std::fs::write(place.path().join(format!("{name}.jsonl")), text).unwrap();
            let ran = place.run(&["import", "--kind", "carl", &format!("{name}.jsonl"), "--again"]);
            assert_eq!(ran.code, 2, "{id:?} {name}: {}", ran.stderr);
            assert!(ran.stderr.contains("E0461"), "{id:?}: {}", ran.stderr);
        }
    }
}

/// W-53, W-58: ids and times of steps are no difference between runs of the same lines.
#[test]
fn the_same_lines_do_not_differ() {
    let place = Place::with_store();
    let lines: Vec<Value> = ["user_input", "tool_call", "gate_check", "eval_phase", "reward"]
        .iter()
        .map(|action| json!({"step": {"action": action, "name": "x", "output": {"allowed": true}, "trace_id": "t"}}))
        .collect();
    commit(&place, "a", &lines, &["--as", "runtime"]);
    commit(&place, "b", &lines, &["--as", "runtime"]);
    export(&place, "a");
    import(&place, "a", "copy");
    for other in ["b", "copy"] {
        let ran = place.run(&["diff", "a", other]);
        assert_eq!(ran.code, 0, "{other}: {}", ran.stdout);
        assert_eq!(answer(&place, &["diff", "a", other])["differ"], 0, "{other}: {}", ran.stdout);
    }
    // A step that came out otherwise differs.
    let mut others = lines.clone();
    others[1]["step"]["output"] = json!(2);
    commit(&place, "c", &others, &["--as", "runtime"]);
    assert_eq!(answer(&place, &["diff", "a", "c"])["differ"], 1);
}

/// W-59: a datum has the reward of its own trace, if that is known to have succeeded.
#[test]
fn a_datum_has_only_a_reward_of_its_own_trace() {
    let place = Place::with_store();
    let reward = |trace: Option<&str>, value: u64, success: bool| json!({"step": {"action": "reward", "name": "sum", "trace_id": trace, "output": value, "success": success}});
    let reply =
        |trace: Option<&str>| json!({"step": {"action": "llm_reply", "name": "r", "trace_id": trace}});
    let named = json!({"step": {"action": "reward", "name": "own", "trace_id": "other", "parent_id": "x", "output": 9}});
    let call = json!({"step": {"action": "tool_call", "name": "x", "step_id": "x", "trace_id": "c"}});
    let lines = [
        call,
        reply(Some("z")),
        reply(Some("q")),
        reply(None),
        reward(Some("q"), 1, false),
        reply(Some("q")),
        named,
        reward(Some("z"), 2, true),
        reward(None, 3, true),
        reward(Some("q"), 4, true),
        reply(Some("z")),
    ];
    commit(&place, "r", &lines, &["--as", "runtime"]);
    let data = place.ok(&["export", "r", "--format", "training"]);
    let rewards: Vec<Value> =
        data.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["reward"].clone()).collect();
    assert_eq!(json!(rewards), json!([null, 2, null, 3, 4, null]));
}

/// X-7: the results of effects are one store with three views; which kind of step a call is follows from its first word.
#[test]
fn a_call_is_the_step_that_its_first_word_names() {
    let place = Place::with_store();
    let result = |tool: &str| {
        format!(
            r#"{{"type":"action.result","action":{{"tool":"{tool}","params":["x"]}},"result":{{"status":"ok","output":"{tool} said"}}}}"#
        )
    };
    let lines = ["model.call", "tool.look", "clock.now", "look"].map(result).join("\n");
    place.run_with(&["commit", "--run", "r", "--as", "runtime"], format!("{lines}\n").as_bytes());
    let steps = answer(&place, &["steps", "r"]);
    let of = |item: &Value| ["action", "name"].map(|name| item[name].as_str().unwrap_or_default().to_owned());
    let found: Vec<_> = steps["items"].as_array().unwrap().iter().map(of).collect();
    let expected = [
        ["llm_reply", "model.call"],
        ["tool_call", "tool.look"],
        ["external", "clock.now"],
        ["tool_call", "look"],
    ];
    assert_eq!(found, expected.map(|row| row.map(str::to_owned)), "{steps}");
    assert!(export(&place, "r").contains(r#""output": "model.call said""#));
}
