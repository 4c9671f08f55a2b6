//! Delegation: the contract lives while it runs, limits that find nothing refuse, budgets, and what a parent takes.

use serde_json::{Value, json};

use crate::support::Place;

fn write(place: &Place, name: &str, text: &str) {
    std::fs::write(place.path().join(name), text).unwrap();
}

/// A store with a run `lead` of a user with the goal G1, and a helper `kid` under a contract D1.
fn delegated(stage: &str, scope: &Value) -> Place {
    let place = Place::with_store();
    let goal =
        observation(json!({"commitments": [{"id": "G1", "type": "goal", "gloss": "Tidy the parser."}]}));
    let ran = place.run_with(&["commit", "--run", "lead", "--stage", stage, "--as", "user"], goal.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut whole = json!({"id": "D1", "gloss": "parser only", "goal": "G1"});
    whole.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
    write(&place, "scope.json", &whole.to_string());
    place.ok(&["commitments", "delegate", "lead", "--scope", "scope.json", "--as", "kid"]);
    place
}

fn observation(members: Value) -> String {
    let mut line = json!({"type": "observation.add", "agent": "ann", "intent": {"description": "d"}});
    line.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    format!("{line}\n")
}

fn user(place: &Place, members: Value) {
    let ran = place.run_with(&["commit", "--run", "lead", "--as", "user"], observation(members).as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stdout);
}

fn call(tool: &str, params: Value) -> String {
    format!(
        "{}\n",
        json!({"type": "action.request", "agent": "kid", "action": {"tool": tool, "params": params}})
    )
}

/// Commits lines of an agent; returns for each `ok`, or code and message.
fn commit(place: &Place, run: &str, lines: &[String]) -> Vec<String> {
    let ran = place.run_with(&["commit", "--run", run, "--json"], lines.concat().as_bytes());
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let items = answer["items"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    items
        .iter()
        .map(|item| match item.get("reason") {
            Some(reason) => format!("{} {}", text(&reason["code"]), text(&reason["message"])),
            None => "ok".to_owned(),
        })
        .collect()
}

fn accept(place: &Place, args: &[&str]) -> (i32, Value) {
    let ran = place.run(&[&["commitments", "accept", "kid", "--json"], args].concat());
    (ran.code, serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr)))
}

/// Every run of the store is replayed to the byte, refusals too.
fn replays(place: &Place) {
    place.ok(&["verify", "--replay"]);
}

/// Case G9: a delegation is taken back, and the helper must not act any more, nor a fork of it.
#[test]
fn a_contract_that_was_taken_back_permits_nothing() {
    let place = delegated("2", &json!({"allowed": {"tools": ["write_file"], "files": ["src/parser/*"]}}));
    let write = call("write_file", json!({"path": "src/parser/a.py"}));
    assert_eq!(commit(&place, "kid", &[write.clone()]), ["ok"]);
    place.ok(&["fork", "kid@1", "--as", "twin"]);
    user(&place, json!({"closes": [{"id": "D1", "as": "retracted", "reason": "wrong person"}]}));
    for run in ["kid", "twin"] {
        assert_eq!(commit(&place, run, &[write.clone()]), ["E0452 the contract D1 was retracted at lead@3"]);
    }
    // Before any record of the child holds it, an answer about the child says it too.
    let listed = place.run(&["commitments", "kid"]);
    let said = "contract D1  retracted at lead@3: no call is permitted";
    assert!((listed.stdout.clone() + &listed.stderr).contains(said), "{} {}", listed.stdout, listed.stderr);
    let found: Value = serde_json::from_str(&place.ok(&["commitments", "kid", "--json"])).unwrap();
    assert_eq!(found["context"]["ended"], json!({"as": "retracted", "run": "lead", "tick": 3}));
    // A fork that is made now is no way around it.
    place.ok(&["fork", "kid@1", "--as", "late"]);
    assert_eq!(commit(&place, "late", &[write.clone()]).len(), 1);
    assert!(commit(&place, "late", &[write.clone()])[0].starts_with("E0452 the contract D1 was retracted"));
    // What is no call is on record, and with it what the parent said: the child itself says that its contract ended.
    assert_eq!(commit(&place, "kid", &[observation(json!({}))]), ["ok"]);
    let text = place.ok(&["commitments", "kid", "--format", "ccas"]);
    assert!(text.contains("  ended: retracted at lead@3, so no call is permitted\n"), "{text}");
    let shown: Value = serde_json::from_str(&place.ok(&["show", "kid@2", "--json"])).unwrap();
    let said = &shown["content"]["contract"]["parents"][0];
    assert_eq!(
        (&said["run"], &said["tick"], &said["ended"]),
        (&json!("lead"), &json!(3), &json!({"as": "retracted", "tick": 3}))
    );
    assert!(said["record"].as_str().unwrap().starts_with("sha256:"));
    replays(&place);
    // A bundle without the parent decides the same.
    place.ok(&["export", "kid", "-o", "kid.dnd"]);
    let verified = place.ok(&["verify", "kid.dnd", "--replay"]);
    assert!(verified.contains("kid@2: what lead@3 said of the contract is UNVERIFIABLE"), "{verified}");
}

/// Below stage 2 a call after the end is noted, and the parent does not take the result.
#[test]
fn a_call_after_the_end_is_noted_below_stage_2() {
    let place = delegated("1", &json!({"allowed": {"tools": ["write_file"]}}));
    user(&place, json!({"closes": [{"id": "D1", "as": "retracted"}]}));
    assert_eq!(commit(&place, "kid", &[call("write_file", json!({}))]), ["ok"]);
    let shown: Value = serde_json::from_str(&place.ok(&["show", "kid@1", "--json"])).unwrap();
    let note = &shown["content"]["anomalies"][0];
    assert_eq!(
        (&note["kind"], &note["cause"]),
        (&json!("commitment_violated"), &json!("contract_ended")),
        "{note}"
    );
    assert_eq!(note["commitments"], json!(["D1"]));
    replays(&place);
}

/// Case G11: a tool that calls its file otherwise, and one that shows none, stay within the files of the contract.
#[test]
fn files_are_limited_under_every_name() {
    let place = delegated("2", &json!({"allowed": {"tools": ["write_file"], "files": ["src/parser/*"]}}));
    let refused = [
        json!({"path": "/etc/passwd"}),
        json!({"file_path": "/etc/passwd"}),
        json!({"path": "src/parser/a.py", "file_path": "/etc/passwd"}),
        json!({}),
        json!({"edits": [{"path": "src/parser/a.py"}, {"file": "src/auth/b.py"}]}),
        json!({"args": "{\"path\":\"/etc/passwd\"}"}),
        json!({"path": "src/parser/%2e%2e/x"}),
        json!({"path": "src/parser/..\\x"}),
        json!({"path": 7}),
        json!({"path": "src/parser/a.py", "note": "~/.ssh/id"}),
        json!({"path": "src/parser/**"}),
    ];
    for params in refused {
        let found = commit(&place, "kid", &[call("write_file", params.clone())]);
        assert!(found[0].starts_with("E0452 it is outside of the scope of D1"), "{params} {found:?}");
    }
    let none = commit(&place, "kid", &[call("write_file", json!({}))]);
    assert_eq!(
        none,
        ["E0452 it is outside of the scope of D1: no file found to judge in the call of write_file"]
    );
    let both = json!({"type": "action.request", "agent": "kid", "action": {"calls": [
        {"tool": "write_file", "params": {"path": "src/parser/a.py"}},
        {"tool": "write_file", "params": {"filename": "src/auth/b.py"}},
    ]}});
    assert!(commit(&place, "kid", &[format!("{both}\n")])[0].starts_with("E0452"));
    assert_eq!(
        commit(&place, "kid", &[call("write_file", json!({"path": "src/parser/a.py", "content": "x"}))]),
        ["ok"]
    );
    replays(&place);
}

/// A scope says where a tool names its files; there and nowhere else they are looked for.
#[test]
fn a_scope_says_where_a_tool_names_files() {
    let scope = json!({
        "allowed": {"tools": ["edit", "ping"], "files": ["src/**"]},
        "tools": {"edit": {"files": ["/params/edits/*/to"]}, "ping": {"files": []}},
    });
    let place = delegated("2", &scope);
    assert_eq!(commit(&place, "kid", &[call("ping", json!({"path": "/etc/x"}))]), ["ok"]);
    assert_eq!(
        commit(&place, "kid", &[call("edit", json!({"edits": [{"to": "src/a/b"}], "text": "/* a */"}))]),
        ["ok"]
    );
    for params in
        [json!({"edits": [{"to": "src/a"}, {"to": "lib/b"}]}), json!({"edits": []}), json!({"path": "src/a"})]
    {
        assert!(commit(&place, "kid", &[call("edit", params)])[0].starts_with("E0452"));
    }
}

/// What is misspelt in a scope file is refused with its place.
#[test]
fn a_misspelt_scope_is_refused_with_its_place() {
    let place = delegated("2", &json!({}));
    write(
        &place,
        "pack.yaml",
        "name: p\nversion: v1\nreducer: delta/1\ntools:\n  write_file: {effect: effectful, files: [/params/to]}\n",
    );
    let goal = observation(json!({"commitments": [{"id": "G1", "type": "goal", "gloss": "g"}]}));
    let ran = place.run_with(
        &["commit", "--run", "packed", "--pack", "pack.yaml", "--stage", "2", "--as", "user"],
        goal.as_bytes(),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for (run, scope, place_of) in [
        ("packed", json!({"allowed": {"tools": ["write_fil"]}}), "/allowed/tools/0"),
        ("packed", json!({"tools": {"write_fil": {"files": []}}}), "/tools/write_fil"),
        ("lead", json!({"tools": {"t": {"file": []}}}), "/tools/t/file"),
        ("lead", json!({"tools": {"t": {"files": ["path"]}}}), "/tools/t/files/0"),
        ("lead", json!({"budget": {"call": 3}}), "/budget/call"),
        ("lead", json!({"budget": {"calls": -1}}), "/budget/calls"),
        ("lead", json!({"until": "soon"}), "/until"),
        ("lead", json!({"alowed": {}}), "/alowed"),
        ("lead", json!({"allowed": {"file": []}}), "/allowed/file"),
    ] {
        let mut whole = json!({"id": "D9", "gloss": "g", "goal": "G1"});
        whole.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
        write(&place, "bad.json", &whole.to_string());
        let ran = place.run(&["commitments", "delegate", run, "--scope", "bad.json", "--as", "new"]);
        assert_ne!(ran.code, 0, "{scope}");
        assert!(ran.stderr.contains(place_of) && ran.stderr.contains("E0209"), "{scope}: {}", ran.stderr);
    }
    // The places of the pack are those of the contract; one template serves under another id.
    write(&place, "good.json", r#"{"gloss":"g","goal":"G1","allowed":{"files":["src/*"]}}"#);
    let made = place.ok(&[
        "commitments",
        "delegate",
        "packed",
        "--scope",
        "good.json",
        "--id",
        "D7",
        "--as",
        "new",
        "--json",
    ]);
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(
        (&made["id"], &made["tools"]),
        (&json!("D7"), &json!({"write_file": {"files": ["/params/to"]}})),
        "{made}"
    );
    place.ok(&["commitments", "delegate", "packed", "--scope", "good.json", "--id", "D7", "--as", "new"]);
    assert_eq!(
        commit(&place, "new", &[call("write_file", json!({"to": "src/a", "path": "/etc/x"}))]),
        ["ok"]
    );
    assert!(commit(&place, "new", &[call("write_file", json!({"to": "/etc/x"}))])[0].starts_with("E0452"));
}

/// A budget is counted at the door over the child, its forks and its children.
#[test]
fn a_budget_is_counted_at_the_door() {
    let place = delegated("2", &json!({"budget": {"calls": 4, "steps": 50}}));
    assert_eq!(commit(&place, "kid", &[call("t", json!({})), call("t", json!({}))]), ["ok", "ok"]);
    place.ok(&["fork", "kid@2", "--as", "twin"]);
    assert_eq!(commit(&place, "twin", &[call("t", json!({}))]), ["ok"]);
    write(&place, "inner.json", r#"{"id":"D2","gloss":"inner"}"#);
    place.ok(&["commitments", "delegate", "kid", "--scope", "inner.json", "--as", "grandkid"]);
    assert_eq!(commit(&place, "grandkid", &[call("t", json!({}))]), ["ok"]);
    for run in ["kid", "twin", "grandkid"] {
        let found = commit(&place, run, &[call("t", json!({}))]);
        assert_eq!(found, ["E0452 the budget of the contract D1 is used up: calls 4 of 4"], "{run}");
    }
    let line = call("t", json!({}));
    let ran = place.run_with(&["commit", "--run", "kid", "--json"], line.as_bytes());
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["items"][0]["reason"]["budget"], json!({"calls": [4, 4]}));
    replays(&place);
}

/// Steps are the agents' transitions. A cost that is limited and not stated cannot be judged.
#[test]
fn steps_and_cost_are_limited() {
    let place = delegated("2", &json!({"budget": {"steps": 3}}));
    let lines = [call("t", json!({})), observation(json!({})), call("t", json!({})), call("t", json!({}))];
    assert_eq!(
        commit(&place, "kid", &lines),
        ["ok", "ok", "ok", "E0452 the budget of the contract D1 is used up: steps 3 of 3"]
    );
    let place = delegated("2", &json!({"budget": {"cost": 0.5}}));
    let paid = |cost: f64| {
        format!(
            "{}\n",
            json!({"type": "action.request", "agent": "kid", "metrics": {"cost_usd": cost}, "action": {"tool": "t", "params": {}}})
        )
    };
    let found = commit(&place, "kid", &[paid(0.25), paid(0.25), paid(0.1)]);
    assert_eq!(found, ["ok", "ok", "E0452 the budget of the contract D1 is used up: cost 0.5 of 0.5"]);
    let place = delegated("2", &json!({"budget": {"cost": 0.5}}));
    let found = commit(&place, "kid", &[call("t", json!({})), call("t", json!({}))]);
    assert_eq!(found, ["ok", "E0452 the budget of the contract D1 is used up: cost not stated of 0.5"]);
}

/// What the user forbids in the parent binds the child from its next line on, over the places of the parent too.
#[test]
fn a_new_prohibition_of_the_parent_binds_at_once() {
    let place = delegated("2", &json!({}));
    let pay = || call("pay", json!({"amount": 5}));
    assert_eq!(commit(&place, "kid", &[pay()]), ["ok"]);
    user(
        &place,
        json!({
            "delta": [{"set": "/left", "value": 10}],
            "commitments": [{"id": "H", "type": "obl", "hard": true, "gloss": "Within what is left.",
                "guard": "action.tool == 'pay'", "holds": "action.params.amount <= state.left"}],
        }),
    );
    assert_eq!(commit(&place, "kid", &[pay()]), ["ok"]);
    assert!(
        commit(&place, "kid", &[call("pay", json!({"amount": 11}))])[0].starts_with("E0451 it violates H")
    );
    let text = place.ok(&["commitments", "kid", "--format", "ccas"]);
    assert!(text.contains("- H: Within what is left."), "{text}");
    // The parent has less left: the child is judged by that, whatever it says of its own state.
    user(&place, json!({"delta": [{"set": "/left", "value": 3}]}));
    let raised = json!({"type": "memory.write", "agent": "kid", "delta": [{"set": "/left", "value": 99}]});
    assert_eq!(commit(&place, "kid", &[format!("{raised}\n")]), ["ok"]);
    assert!(commit(&place, "kid", &[pay()])[0].starts_with("E0451 it violates H"));
    place.ok(&["fork", "kid@1", "--as", "twin"]);
    assert!(commit(&place, "twin", &[pay()])[0].starts_with("E0451 it violates H"));
    replays(&place);
}

/// The scope of a scope file is sealed with each call: commitments of other scopes are not asked.
#[test]
fn a_scope_file_has_the_scope_of_the_calls() {
    let place = delegated("2", &json!({}));
    let never = |id: &str, tool: &str, scope: &str| {
        json!({"id": id, "type": "obl", "hard": true, "gloss": "g", "scope": scope,
            "condition": format!("action.tool == '{tool}'")})
    };
    user(
        &place,
        json!({"commitments": [never("A", "pay", "shop"), never("B", "push", "git"), never("C", "rm", "global")]}),
    );
    write(&place, "shop.json", r#"{"id":"D2","gloss":"shop","scope":"shop"}"#);
    place.ok(&["commitments", "delegate", "lead", "--scope", "shop.json", "--as", "shop"]);
    let lines = ["pay", "push", "rm"].map(|tool| call(tool, json!({})));
    let found = commit(&place, "shop", &lines);
    assert!(
        found[0].starts_with("E0451 it violates A") && found[2].starts_with("E0451 it violates C"),
        "{found:?}"
    );
    assert_eq!(found[1], "ok");
    let shown: Value = serde_json::from_str(&place.ok(&["show", "shop@1", "--json"])).unwrap();
    assert_eq!(shown["content"]["scope"], "shop");
    replays(&place);
}

/// A contract with a time ends by itself, whether or not its parent goes on.
#[test]
fn a_contract_whose_time_has_passed_permits_nothing() {
    let call = || [call("t", json!({}))];
    let place = delegated("2", &json!({"until": "2001-01-01T00:00:00Z"}));
    let found = commit(&place, "kid", &call());
    assert!(found[0].starts_with("E0452 the contract D1 "), "{found:?}");
    let place = delegated("2", &json!({"until": "900s"}));
    assert_eq!(commit(&place, "kid", &call()), ["ok"]);
    let place = delegated("2", &json!({"until": "0.1s"}));
    std::thread::sleep(std::time::Duration::from_millis(150));
    assert_eq!(commit(&place, "kid", &call()), ["E0452 the contract D1 is over: its time has passed"]);
    replays(&place);
}

fn complete(output: Value) -> String {
    format!(
        "{}\n",
        json!({"type": "goal.complete", "author": "runtime", "agent": "kid", "result": {"output": output}})
    )
}

/// The parent keeps the deliverable; null is missing; each reason has its code, run and tick; a second acceptance writes nothing.
#[test]
fn a_parent_takes_a_result_once_and_keeps_it() {
    let place = delegated("2", &json!({"deliverables": ["report"]}));
    let done = |output: Value| {
        let line = complete(output);
        let ran = place.run_with(&["commit", "--run", "kid", "--as", "runtime"], line.as_bytes());
        assert_eq!(ran.code, 0, "{}", ran.stdout);
    };
    done(json!({"report": null}));
    let (code, answer) = accept(&place, &[]);
    let reason =
        json!({"code": "E0456", "commitments": ["D1"], "missing": "report", "run": "kid", "tick": 1});
    assert_eq!((code, &answer["reasons"]), (5, &json!([reason])), "{answer}");
    done(json!({"report": "all tidy"}));
    let (code, answer) = accept(&place, &[]);
    assert_eq!((code, &answer["accepted"], &answer["reasons"]), (0, &json!(true), &json!([])), "{answer}");
    let shown: Value =
        serde_json::from_str(&place.ok(&["show", &format!("lead@{}", answer["tick"]), "--json"])).unwrap();
    assert_eq!(shown["content"]["accepted"]["output"], json!({"report": "all tidy"}));
    let runs = place.ok(&["log", "lead"]);
    let (code, again) = accept(&place, &[]);
    assert_eq!((code, &again["already"], &again["tick"]), (0, &json!(true), &answer["tick"]), "{again}");
    assert_eq!(place.ok(&["log", "lead"]), runs);
    // What was taken is over: the child makes no call any more.
    assert!(
        commit(&place, "kid", &[call("t", json!({}))])[0]
            .starts_with("E0452 the contract D1 was discharged at lead@")
    );
    replays(&place);
}

/// Row C-56: a child that did nothing forbidden brings edges and a hard obligation; the parent is bound to what it was bound to.
#[test]
fn a_child_lowers_nothing_of_its_parent() {
    let place = delegated("2", &json!({}));
    user(
        &place,
        json!({
            "evidence": [{"id": "U1", "content": "keep it green"}],
            "commitments": [{"id": "green", "type": "obl", "hard": true, "gloss": "Tests stay green.", "support": ["U1"],
                "condition": "action.tool == 'break'"}],
        }),
    );
    let brought = json!({"type": "plan.update", "agent": "kid", "intent": {"description": "d"},
        "commitments": [
            {"id": "folder", "type": "obl", "hard": true, "gloss": "No push.", "condition": "action.tool == 'push'", "priority": 9},
            {"id": "idea", "type": "hyp", "gloss": "The cache is old."}],
        "edges": [{"edge": "conflicts-with", "from": "folder", "to": "green"},
            {"edge": "supports", "from": "U1", "to": "folder"}]});
    assert_eq!(commit(&place, "kid", &[format!("{brought}\n")]), ["ok"]);
    assert_eq!(accept(&place, &[]).0, 0);
    let found: Value = serde_json::from_str(&place.ok(&["commitments", "lead", "--json"])).unwrap();
    let status = |id: &str| {
        let items = found["items"].as_array().unwrap();
        items.iter().find(|item| item["id"] == id).unwrap()["status"].as_str().unwrap().to_owned()
    };
    assert_eq!((status("green").as_str(), status("idea").as_str()), ("active", "tentative"));
    assert!(["tentative", "blocked"].contains(&status("folder").as_str()), "{found}");
    let found = commit(&place, "lead", &[call("push", json!({})), call("break", json!({}))]);
    assert_eq!(found[0], "ok");
    assert!(found[1].starts_with("E0451 it violates green"), "{found:?}");
    replays(&place);
}
