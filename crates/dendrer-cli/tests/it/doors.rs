//! Each way into a run asks what `commit` asks (design, section 14.1).

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::Place;

/// A line that sets one place.
fn sets(agent: &str, path: &str, value: u64) -> String {
    json!({"type": "memory.write", "agent": agent, "delta": [{"set": path, "value": value}]}).to_string()
}

#[test]
fn lines_without_a_base_of_ten_processes_are_all_committed() {
    let place = Place::with_store();
    assert_eq!(place.run_with(&["commit", "--run", "r"], sets("lead", "/m/lead", 1).as_bytes()).code, 0);
    let begun: Vec<_> = (0..10)
        .map(|n| {
            let mut command = place.command(&["commit", "--run", "r"]);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let line = sets(&format!("a{n}"), &format!("/m/k{n}"), n);
            child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
            child
        })
        .collect();
    for child in begun {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let (_, state) = place.json(&["state", "r", "--path", "m"]);
    assert_eq!(state.get("value").unwrap().as_object().unwrap().len(), 11, "{state}");
}

#[test]
fn a_line_that_sets_a_place_that_another_process_set_meanwhile_says_so() {
    let place = Place::with_store();
    let mut command = place.command(&["commit", "--run", "r", "--jsonl"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut reply = || -> Value {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    writeln!(input, "{}", sets("ann", "/m/x", 1)).unwrap();
    let first = reply();
    let first = if first["what"] == "begun" { reply() } else { first };
    assert_eq!(first["tick"], 1, "{first}");
    assert_eq!(place.run_with(&["commit", "--run", "r"], sets("bob", "/m/x", 2).as_bytes()).code, 0);
    writeln!(input, "{}", sets("ann", "/m/x", 3)).unwrap();
    let second = reply();
    assert_eq!((&second["what"], &second["tick"]), (&json!("committed"), &json!(3)), "{second}");
    assert_eq!(second["overtaken"], json!([{"path": "/m/x", "tick": 2, "agent": "bob"}]));
    // A place of its own is not overtaken, and neither is a place that this process has read since.
    assert_eq!(place.run_with(&["commit", "--run", "r"], sets("bob", "/m/y", 2).as_bytes()).code, 0);
    for line in [sets("ann", "/m/x", 4), sets("ann", "/m/y", 5)] {
        writeln!(input, "{line}").unwrap();
        let reply = reply();
        assert_eq!((&reply["what"], reply.get("overtaken")), (&json!("committed"), None), "{reply}");
    }
    // A base is a condition that the writer set.
    let mut based: Value = serde_json::from_str(&sets("ann", "/m/z", 1)).unwrap();
    based["base"] = json!(1);
    writeln!(input, "{based}").unwrap();
    assert_eq!(reply()["reason"]["code"], "E0407");
    drop(input);
    child.wait().unwrap();
}

const SHOP: &str = "name: shop
version: v1
reducer: delta/1
state:
  paid: {init: \"{}\", writers: [memory.write]}
  risk: {init: 0, decimals: 2}
contracts:
  memory.write:
    required_state: {paid: {type: map}}
policy:
  - {id: cap, holds: \"sum(state.paid.map(k, state.paid[k])) <= 600\", enforce: true}
violations:
  - {id: over, condition: \"sum(state.paid.map(k, state.paid[k])) > 600\", enforce: true, bisect_predicate: monotone_lift}
";

const OPEN: &str = r#"{"type":"observation.add","agent":"desk","intent":{"description":"the desk opens"}}"#;

/// A store with a run and two forks of it, each with a payment.
fn branches(stage: &str) -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("shop.yaml"), SHOP).unwrap();
    let base = ["commit", "--run", "base", "--pack", "shop.yaml", "--stage", stage];
    assert_eq!(place.run_with(&base, OPEN.as_bytes()).code, 0);
    for (name, path, paid) in [("left", "/paid/p1", 400), ("right", "/paid/p2", 300)] {
        place.ok(&["fork", "base@1", "--as", name]);
        assert_eq!(place.run_with(&["commit", "--run", name], sets("ann", path, paid).as_bytes()).code, 0);
    }
    place
}

fn violated(document: &dendrer_object::Value) -> Vec<String> {
    let listed = document.get("violations").and_then(|list| list.as_array());
    let ids = listed.into_iter().flat_map(|list| list.iter());
    ids.map(|one| one.get("id").unwrap().as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_merge_whose_state_breaks_a_rule_that_no_source_breaks_is_refused() {
    let place = branches("2");
    let merge = ["merge", "--as", "both", "--from", "left", "--from", "right"];
    for more in [&["--plan"][..], &["-n"], &[]] {
        let (code, document) = place.json(&[&merge[..], more].concat());
        assert_eq!((code, document.get("code").unwrap().as_str()), (5, Some("E0434")), "{document}");
        assert_eq!(violated(&document), ["cap", "over"]);
    }
    assert_eq!(place.run(&["state", "both"]).code, 3, "nothing was begun");
    let (code, document) = place.json(&[&merge[..], &["--although", "both were paid"]].concat());
    assert_eq!((code, violated(&document)), (0, vec!["cap".to_owned(), "over".to_owned()]));
    let shown = place.ok(&["show", "both@0", "--json"]);
    assert!(shown.contains("both were paid"), "{shown}");
    assert_eq!(place.run(&["verify", "both", "--replay"]).code, 0);
}

#[test]
fn below_stage_2_a_merge_says_which_rules_its_state_breaks() {
    let place = branches("1");
    let (code, document) = place.json(&["merge", "--as", "both", "--from", "left", "--from", "right"]);
    assert_eq!((code, violated(&document)), (0, vec!["cap".to_owned(), "over".to_owned()]), "{document}");
}

#[test]
fn a_merge_of_sources_that_break_the_rule_already_is_begun() {
    let place = branches("1");
    assert_eq!(place.run_with(&["commit", "--run", "left"], sets("ann", "/paid/p9", 900).as_bytes()).code, 0);
    let (code, document) = place.json(&["merge", "--as", "both", "--from", "left", "--from", "right"]);
    assert_eq!((code, violated(&document).len()), (0, 0), "{document}");
}

#[test]
fn a_fork_that_sets_what_breaks_a_rule_is_refused() {
    let place = branches("2");
    for more in [&["-n"][..], &[]] {
        let (code, document) = place.json(&[&["fork", "left@3", "--set", "paid.p2=300"][..], more].concat());
        assert_eq!((code, document.get("code").unwrap().as_str()), (5, Some("E0434")), "{document}");
        assert_eq!(violated(&document), ["cap", "over"]);
    }
    let (code, document) =
        place.json(&["fork", "left@3", "--set", "paid.p2=300", "--although", "a drill", "--as", "drill"]);
    assert_eq!((code, violated(&document).len()), (0, 2), "{document}");
    assert_eq!(place.run(&["verify", "drill", "--replay"]).code, 0);
    // A text is no number, and the refusal names the place.
    let refused = place.run(&["fork", "left@3", "--set", "risk=\"high\""]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains("risk") && refused.stderr.contains("text"), "{}", refused.stderr);
    let text = json!({"type": "memory.write", "delta": [{"set": "/risk", "value": "high"}]}).to_string();
    let refused = place.run_with(&["commit", "--run", "left"], text.as_bytes());
    assert!(refused.stdout.contains("risk is a field with decimals"), "{}", refused.stdout);
}

#[test]
fn names_that_the_program_makes_have_a_plus_and_no_person_gives_one() {
    let place = branches("2");
    place.ok(&["fork", "left@3"]);
    place.ok(&["fork", "left+2@3"]);
    // The newest run is forked where none is named.
    place.ok(&["fork", "--from", "tick", "2", "--note", "x"]);
    let runs = place.ok(&["runs"]);
    assert!(["left+2 ", "left+3 ", "left+4 "].iter().all(|name| runs.contains(name)), "{runs}");
    assert_eq!(place.run_with(&["commit", "--run", "left+2"], OPEN.as_bytes()).code, 0);
    for args in [
        &["commit", "--run", "new+1"][..],
        &["fork", "left", "--from", "tick", "1", "--as", "a+1"],
        &["merge", "--as", "a+1", "--from", "left", "--from", "left+2"],
        &["reduce", "left", "--pack", "shop.yaml", "--as", "a+1"],
        &["label", "a+1", "left@1"],
    ] {
        let refused = place.run_with(args, OPEN.as_bytes());
        assert!(refused.code == 2 && refused.stderr.contains("E0210"), "{args:?} {refused:?}");
    }
}

#[test]
fn a_run_under_what_asks_for_enforcement_has_stage_2() {
    let place = Place::with_store();
    let pack = "name: shop\nversion: v1\ntools:\n  bank.pay: {effect: effectful}\npolicy:\n  - {id: no_pay, holds: t.action.tool != 'bank.pay', enforce: true}\n";
    std::fs::write(place.path().join("shop.yaml"), pack).unwrap();
    std::fs::write(
        place.path().join("pol.json"),
        r#"[{"id":"no_pay","holds":"t.action.tool != 'bank.pay'","enforce":true}]"#,
    )
    .unwrap();
    let hard = "name: hard\nversion: v1\ntools:\n  bank.pay: {effect: effectful}\ncommitments:\n  - {id: never, type: obl, gloss: no payments, hard: true, condition: \"action.tool == 'bank.pay'\"}\n";
    std::fs::write(place.path().join("hard.yaml"), hard).unwrap();
    let pay = r#"{"type":"action.request","agent":"ann","action":{"tool":"bank.pay","params":{"amount":5}}}"#;
    for (run, flag, file, id) in [
        ("a", "--pack", "shop.yaml", "no_pay"),
        ("b", "--policy", "pol.json", "no_pay"),
        ("c", "--pack", "hard.yaml", "never"),
    ] {
        let ran = place.run_with(&["commit", "--run", run, flag, file, "--jsonl"], pay.as_bytes());
        assert_eq!(ran.code, 5, "{ran:?}");
        let begun: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
        assert_eq!((&begun["what"], &begun["stage"]), (&json!("begun"), &json!(2)));
        // A stage that is given stays, and the reply says what it does not enforce.
        let low = format!("{run}-low");
        let ran =
            place.run_with(&["commit", "--run", &low, flag, file, "--stage", "1", "--jsonl"], pay.as_bytes());
        assert_eq!(ran.code, 0, "{ran:?}");
        let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[1]["not_enforced"], json!([id]), "{ran:?}");
        assert_eq!(lines.last().unwrap()["summary"]["not_enforced"], json!([id]), "{ran:?}");
    }
    let checked = place.run(&["pack", "check", "shop.yaml", "--stage", "1"]);
    assert!(checked.code == 1 && checked.stdout.contains("no_pay"), "{checked:?}");
    assert_eq!(place.run(&["pack", "check", "shop.yaml", "--stage", "2"]).code, 0);
    // The stage of a run that exists is not changed by a flag.
    let ran = place.run_with(&["commit", "--run", "a-low", "--stage", "2"], OPEN.as_bytes());
    assert!(ran.code == 2 && ran.stderr.contains("dendrer reduce a-low"), "{ran:?}");
    assert_eq!(place.run_with(&["commit", "--run", "a-low", "--stage", "1"], OPEN.as_bytes()).code, 0);
}

/// Branches of one run: one froze the account, the other took the field out; a rule reads it.
fn frozen_branches(enforce: bool) -> Place {
    let place = Place::with_store();
    let rule =
        format!("{{id: kept, holds: \"!has(state.frozen) || state.frozen != 0\", enforce: {enforce}}}");
    let pack = format!(
        "name: shop\nversion: v1\nreducer: delta/1\nstate:\n  frozen: {{init: true}}\n  seen: {{init: 0}}\npolicy:\n  - {rule}\n"
    );
    std::fs::write(place.path().join("shop.yaml"), pack).unwrap();
    let base = ["commit", "--run", "base", "--pack", "shop.yaml", "--stage", "2"];
    assert_eq!(place.run_with(&base, OPEN.as_bytes()).code, 0);
    let changes =
        [("left", json!([{"set": "/frozen", "value": 2}])), ("right", json!([{"remove": "/frozen"}]))];
    for (name, delta) in changes {
        place.ok(&["fork", "base@1", "--as", name]);
        let line = json!({"type": "memory.write", "agent": "ann", "delta": delta}).to_string();
        assert_eq!(place.run_with(&["commit", "--run", name], line.as_bytes()).code, 0);
    }
    let merged = place.run(&["merge", "--as", "both", "--from", "left", "--from", "right"]);
    assert_eq!(merged.code, 1, "an open conflict is no merge without a remark: {merged:?}");
    place
}

#[test]
fn an_open_conflict_is_an_unknown_place_until_it_is_decided() {
    let place = frozen_branches(true);
    let (code, state) = place.json(&["state", "both", "--path", "frozen"]);
    assert_eq!(code, 6, "{state}");
    assert!(state.to_string().contains("\"conflict\""), "{state}");
    for args in [
        &["predicate", "test", "has(state.frozen) && state.frozen == 2", "both"][..],
        &["bisect", "both", "--predicate", "has(state.frozen) && state.frozen == 2"],
    ] {
        assert_eq!(place.run(args).code, 6, "{args:?}");
    }
    let open = |place: &Place| place.ok(&["conflicts", "list", "both"]).contains("1 open");
    assert!(open(&place));
    // An enforced rule reads the place: a write of an agent does not decide it.
    let line = json!({"type": "memory.write", "agent": "ann", "delta": [{"set": "/frozen", "value": true}]});
    place.run_with(&["commit", "--run", "both"], line.to_string().as_bytes());
    assert!(open(&place));
    assert_eq!(place.run(&["state", "both", "--path", "frozen"]).code, 6);
    place.ok(&["conflicts", "resolve", "both", "frozen", "--take", "b", "--reason", "it was taken out"]);
    assert!(!open(&place));
    let shown = place.run(&["state", "both"]);
    assert!(shown.code == 0 && !shown.stdout.contains("UNKNOWN    frozen"), "{shown:?}");
    assert_eq!(place.run(&["verify", "both", "--replay"]).code, 0);
}

#[test]
fn a_write_decides_an_open_conflict_that_no_enforced_rule_reads() {
    let place = frozen_branches(false);
    let line = json!({"type": "memory.write", "agent": "ann", "delta": [{"set": "/frozen", "value": true}]});
    assert_eq!(place.run_with(&["commit", "--run", "both"], line.to_string().as_bytes()).code, 0);
    assert!(place.ok(&["conflicts", "list", "both"]).contains("0 open"));
    assert_eq!(place.run(&["state", "both", "--path", "frozen"]).code, 0);
}

#[test]
fn a_user_decides_an_open_conflict_by_writing_it() {
    let place = frozen_branches(true);
    let line = json!({"type": "memory.write", "agent": "ann", "delta": [{"set": "/frozen", "value": true}]});
    let ran = place.run_with(&["commit", "--run", "both", "--as", "user"], line.to_string().as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(place.ok(&["conflicts", "list", "both"]).contains("0 open"));
    assert_eq!(place.run(&["state", "both", "--path", "frozen"]).code, 0);
}

#[test]
fn an_edge_that_the_judge_refuses_is_denied_and_not_asked() {
    let place = Place::with_store();
    crate::graphs::write_note(place.path());
    let page = std::fs::read_to_string(place.path().join("note.yaml")).unwrap();
    let rule = "policy:\n  - {id: no_reading, holds: t.action.tool != 'tool.cal_read', enforce: true}\n";
    std::fs::write(place.path().join("note.yaml"), format!("{page}{rule}")).unwrap();
    let exec = "tool.cal_read=touch asked; cat calendar.json";
    let run = [&crate::graphs::RUN[..7], &["--exec", "model.call=cat model.json", "--exec", exec]].concat();
    let (code, refused) = place.json(&[&run[..], &["--as", "denied"]].concat());
    let place_of = refused.get("where").unwrap();
    assert_eq!((code, refused.get("code").unwrap().as_str()), (5, Some("E0429")), "{refused}");
    assert_eq!(place_of.get("status").unwrap().as_str(), Some("denied"), "{refused}");
    assert!(!place.path().join("asked").exists(), "nothing was asked");
    assert_eq!(place.run(&["verify", "denied", "--replay"]).code, 0);
    // Below stage 2 nothing is enforced.
    assert_eq!(place.run(&[&run[..], &["--as", "low", "--stage", "1"]].concat()).code, 0);
    assert!(place.path().join("asked").exists());
    // Another process writes no line into the run of a graph.
    let line = json!({"type": "observation.add", "agent": "x", "delta": [{"set": "/edges/e1", "value": 1}]});
    for run in ["denied", "low"] {
        let ran = place.run_with(&["commit", "--run", run], line.to_string().as_bytes());
        assert!(ran.code == 5 && ran.stderr.contains("E0941"), "{ran:?}");
    }
}

#[test]
fn a_rebase_has_the_higher_stage_of_its_sources() {
    let place = Place::with_store();
    let pack = "name: p\nversion: v1\nreducer: delta/1\nstate:\n  x: {init: 0}\npolicy:\n  - {id: small, holds: state.x < 9, enforce: true}\n";
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    for (run, stage) in [("low", "1"), ("high", "2")] {
        let args = ["commit", "--run", run, "--pack", "p.yaml", "--stage", stage];
        assert_eq!(place.run_with(&args, sets("ann", "/x", 1).as_bytes()).code, 0);
    }
    place.run(&["rebase", "high", "--onto", "low", "--as", "new"]);
    assert!(place.ok(&["runs", "--json"]).contains(r#""name":"new""#));
    let ran = place.run_with(&["commit", "--run", "new"], sets("ann", "/x", 10).as_bytes());
    assert!(ran.code == 5 && ran.stdout.contains("E0429"), "{ran:?}");
    assert_eq!(place.run(&["verify", "new", "--replay"]).code, 0);
    // What is reduced again keeps its stage: it is enforced from the tick after what happened.
    place.ok(&["reduce", "high", "--pack", "p.yaml", "--as", "again"]);
    let ran = place.run_with(&["commit", "--run", "again"], sets("ann", "/x", 10).as_bytes());
    assert!(ran.code == 5 && ran.stdout.contains("E0429"), "{ran:?}");
    // Below, the answer says what would have been refused.
    let line = [sets("ann", "/x", 1), sets("ann", "/x", 10)].join("\n");
    let low = ["commit", "--run", "low2", "--pack", "p.yaml", "--stage", "1"];
    assert_eq!(place.run_with(&low, line.as_bytes()).code, 0);
    let (_, reduced) = place.json(&["reduce", "low2", "--pack", "p.yaml", "--as", "again2"]);
    let refused = reduced.get("refused").unwrap().to_string();
    assert!(refused.contains(r#""would_refuse":[{"code":"E0429","ids":["small"]}]"#), "{refused}");
}
