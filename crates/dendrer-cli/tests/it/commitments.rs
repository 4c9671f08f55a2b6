//! Commitments at the door, in forks and in bundles.

use serde_json::{Value, json};

use crate::support::Place;

fn commitments(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&place.ok(&[&["commitments"], args, &["--json"]].concat())).unwrap()
}

#[test]
fn what_the_kernel_derives_cannot_be_brought() {
    let place = Place::with_store();
    let line = |lists: Value| {
        let mut line = json!({"type": "plan.update", "agent": "a", "intent": {"description": "d"}});
        line.as_object_mut().unwrap().extend(lists.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let lines = [
        line(json!({"evidence": [{"id": "e", "content": 1, "mode": "user-authored"}]})),
        line(json!({"commitments": [{"id": "c", "type": "law", "gloss": "g"}]})),
        line(
            json!({"evidence": [{"id": "e", "content": 1}], "commitments": [{"id": "c", "type": "pref", "gloss": "g", "support": ["e"]}]}),
        ),
    ];
    let ran = place.run_with(&["commit", "--run", "r", "--json"], lines.concat().as_bytes());
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &answer["committed"]), (5, &json!(3)), "{answer}");
    let reasons: Vec<_> =
        answer["items"].as_array().unwrap().iter().filter_map(|item| item.get("reason")).collect();
    assert_eq!(reasons[0]["code"], "E0454");
    assert!(reasons[0]["message"].as_str().unwrap().contains("mode follows from author"), "{}", reasons[0]);
    assert!(reasons[1]["message"].as_str().unwrap().contains("obs, hyp, goal"), "{}", reasons[1]);
    let found = commitments(&place, &["r"]);
    let item = &found["items"][0];
    assert_eq!((&item["status"], &item["owner"]), (&json!("active"), &json!("agent:a")));
    assert_eq!(item["support"], json!([{"id": "e", "mode": "self-authored", "attestation": null}]));
    // A fork goes on with them, and a bundle has them.
    place.ok(&["fork", "r@3", "--as", "f"]);
    let closing = line(json!({"closes": [{"id": "c", "as": "discharged"}]}));
    assert_eq!(place.run_with(&["commit", "--run", "f"], closing.as_bytes()).code, 0);
    assert_eq!(commitments(&place, &["f"])["items"][0]["status"], "discharged");
    assert_eq!(commitments(&place, &["r", "--status", "active"])["items"].as_array().unwrap().len(), 1);
    place.ok(&["export", "f", "-o", "f.dnd"]);
    assert_eq!(commitments(&place, &["f.dnd"])["items"][0]["status"], "discharged");
    assert_eq!(place.run(&["commitments", "why", "r", "none"]).code, 3);
}

fn line(type_name: &str, members: Value) -> String {
    let mut line = json!({"type": type_name, "agent": "a", "intent": {"description": "d"}});
    line.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    format!("{line}\n")
}

/// Commits lines as an author, and returns the answer.
fn commit(place: &Place, run: &str, args: &[&str], lines: &[String]) -> (i32, Value) {
    let args = [&["commit", "--run", run, "--json"], args].concat();
    let ran = place.run_with(&args, lines.concat().as_bytes());
    (ran.code, serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr)))
}

fn bound() -> String {
    line(
        "observation.add",
        json!({"evidence": [{"id": "U1", "content": "Never delete."}], "commitments": [
            {"id": "C1", "type": "obl", "hard": true, "gloss": "Never delete.", "support": ["U1"], "holds": "action.tool != 'rm'"},
            {"id": "C2", "type": "obl", "hard": true, "gloss": "At most 5.", "guard": "action.tool == 'buy'", "condition": "action.params.n > 5"},
            {"id": "P1", "type": "plan", "gloss": "Read, then write.", "watch": ["notes"]}]}),
    )
}

fn call(tool: &str, params: Value) -> String {
    line("action.request", json!({"action": {"tool": tool, "params": params}}))
}

/// CCAS paper 6.6: an action that violates an active hard commitment is refused; below, it is told.
#[test]
fn a_call_is_authorized_at_each_stage() {
    for stage in ["0", "1", "2", "3"] {
        let place = Place::with_store();
        let mut begin = vec!["--as", "user", "--stage", stage];
        if stage >= "2" {
            let tools = json!({"ls": {"effect": "read"}, "rm": {"effect": "effectful"}, "buy": {"effect": "effectful"}});
            let needs = json!({"required_state": {"x": {"type": "number"}}});
            let contracts = json!({"action.request": needs, "observation.add": needs});
            let pack = json!({"name": "t.tools", "version": "v1", "reducer": "delta/1", "tools": tools, "contracts": contracts,
                "state": {"x": {"init": "0"}},
                "violations": [{"id": "never", "condition": "state.x > 5", "bisect_predicate": "monotone_lift"}]});
            std::fs::write(place.path().join("pack.json"), pack.to_string()).unwrap();
            begin.extend(["--pack", "pack.json"]);
        }
        let (code, answer) = commit(&place, "r", &begin, &[bound()]);
        assert_eq!(code, 0, "{answer}");
        let calls = [
            call("ls", json!({})),
            call("rm", json!({"path": "a"})),
            call("buy", json!({"n": 3})),
            call("buy", json!({"n": 6})),
            // What is bought is not said, so it cannot be judged.
            call("buy", json!({})),
            line("action.request", json!({"action": {"calls": [{"tool": "ls"}, {"tool": "rm"}]}})),
        ];
        let (code, answer) = commit(&place, "r", &[], &calls);
        let items = answer["items"].as_array().unwrap();
        let what: Vec<_> = items.iter().map(|item| item["what"].as_str().unwrap()).collect();
        let (yes, no) = ("committed", "refused");
        if stage >= "2" {
            assert_eq!((code, what), (5, vec![yes, no, yes, no, no, no]), "{answer}");
            for (at, id) in [(1, "C1"), (3, "C2"), (4, "C2"), (5, "C1")] {
                let reason = &items[at]["reason"];
                assert_eq!(
                    (&reason["code"], &reason["commitments"]),
                    (&json!("E0451"), &json!([id])),
                    "{reason}"
                );
            }
        } else {
            assert_eq!((code, what), (0, vec![yes; 6]), "{answer}");
            assert_eq!(items[1]["violates"], json!(["C1"]));
            assert_eq!(
                items[1]["anomalies"],
                json!([{"kind": "commitment_violated", "commitments": ["C1"]}])
            );
            assert_eq!((&items[3]["violates"], items[0].get("violates")), (&json!(["C2"]), None));
            assert_eq!(items[5]["violates"], json!(["C1"]));
        }
        if stage < "2" {
            assert_eq!(items[4]["anomalies"][0]["kind"], "cannot_be_judged", "{}", items[4]);
        }
        // Replay judges again, and comes to the same records.
        place.ok(&["verify", "r", "--replay"]);
        place.ok(&["replay", "r"]);
    }
}

/// C-80, and closing: an author without the rank closes nothing, at any stage.
#[test]
fn closing_takes_the_rank_of_the_owner() {
    for stage in ["0", "1", "2"] {
        let place = Place::with_store();
        commit(&place, "r", &["--as", "user", "--stage", stage], &[bound()]);
        for lists in [
            json!({"closes": [{"id": "C1", "as": "retracted"}]}),
            json!({"edges": [{"edge": "discharges", "from": "x", "to": "C1"}]}),
            json!({"commitments": [{"id": "C9", "type": "pref", "gloss": "g", "supersedes": "C1"}]}),
        ] {
            // The line is kept, and has no effect (design, section 14.2).
            assert_eq!(commit(&place, "r", &[], &[line("plan.update", lists)]).0, 0);
        }
        let found = commitments(&place, &["r"]);
        let claims: Vec<_> = found["without_effect"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (&one["id"], &one["why"], &one["claimed"]))
            .collect();
        let (rank, a) = (json!("rank"), json!("agent:a"));
        let (c1, x) = (json!("C1"), json!("x"));
        assert_eq!(claims, [(&c1, &rank, &a), (&x, &json!("unknown_id"), &a), (&c1, &rank, &a)]);
        assert_eq!(statuses(&place, &["r"])["C1"], "active");
        let closes = json!({"closes": [{"id": "C1", "as": "retracted"}]});
        assert_eq!(commit(&place, "r", &["--as", "user"], &[line("plan.update", closes)]).0, 0);
        assert_eq!(commit(&place, "r", &[], &[call("rm", json!({}))]).0, 0);
    }
}

/// CCAS paper 6.6: an action that relies on stale support.
#[test]
fn what_an_action_relies_on_stands() {
    let place = Place::with_store();
    commit(&place, "r", &["--as", "user", "--stage", "2"], &[bound()]);
    let relies = || {
        let intent = json!({"description": "d", "relies_on": ["P1"]});
        line("action.request", json!({"action": {"tool": "ls"}, "intent": intent}))
    };
    assert_eq!(commit(&place, "r", &[], &[relies()]).0, 0);
    let touched =
        json!({"author": "runtime", "evidence": [{"id": "T", "content": "changed", "touches": ["notes"]}]});
    commit(&place, "r", &["--as", "runtime"], &[line("observation.add", touched)]);
    let (code, answer) = commit(&place, "r", &[], &[relies()]);
    let reason = &answer["items"][0]["reason"];
    assert_eq!(
        (code, &reason["code"], &reason["commitments"]),
        (5, &json!("E0453"), &json!(["P1"])),
        "{answer}"
    );
    // With newer support it is active again.
    let again = json!({"author": "runtime", "evidence": [{"id": "T2", "content": "read again"}],
        "edges": [{"edge": "attests", "from": "T2", "to": "P1"}]});
    commit(&place, "r", &["--as", "runtime"], &[line("observation.add", again)]);
    assert_eq!(commit(&place, "r", &[], &[relies()]).0, 0);
}

fn statuses(place: &Place, args: &[&str]) -> std::collections::BTreeMap<String, String> {
    let found = commitments(place, args);
    let items = found["items"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    items.map(|item| (text(&item["id"]), text(&item["status"]))).collect()
}

fn request(tool: &str, params: Value) -> String {
    line("action.request", json!({"action": {"tool": tool, "params": params}}))
}

/// Commits one line and returns the code of its refusal, and the ids.
fn code(place: &Place, run: &str, line: String) -> Option<(String, Value)> {
    let (_, answer) = commit(place, run, &[], &[line]);
    let reason = answer["items"][0].get("reason")?;
    Some((reason["code"].as_str().unwrap().to_owned(), reason["commitments"].clone()))
}

/// The parent of the first case study, with table 3 of the CCAS paper, and its child.
fn code_repair(place: &Place) {
    let removes =
        "!(action.tool == 'apply_patch' && has(action.params.removes) && size(action.params.removes) > 0)";
    let auth = "!(action.tool == 'apply_patch' && action.params.path.startsWith('src/auth'))";
    let first = line(
        "observation.add",
        json!({"evidence": [{"id": "U17", "content": "Do not change the public API."}, {"id": "U18", "content": "Do not bypass authentication."}],
        "commitments": [
            {"id": "C1", "type": "obl", "hard": true, "priority": 3, "gloss": "Do not change public API.", "support": ["U17"],
             "watch": ["exported_symbols", "docs", "merge_intent"], "holds": removes},
            {"id": "C2", "type": "obl", "hard": true, "priority": 2, "gloss": "Do not remove or bypass authentication checks.",
             "support": ["U18"], "watch": ["auth_files", "security_tests"], "holds": auth},
            {"id": "C3", "type": "goal", "gloss": "Repair failing tests in serializer module."},
            {"id": "S1", "type": "pref", "gloss": "Prefer smaller patch if constraints remain satisfied."},
            {"id": "L1", "type": "obl", "hard": true, "gloss": "No deploy on Friday.", "watch": ["calendar"], "holds": "action.tool != 'deploy'"}]}),
    );
    assert_eq!(commit(place, "fix", &["--as", "user", "--stage", "2"], &[first]).0, 0);
    let trace = line(
        "action.result",
        json!({"action": {"tool": "run_tests"}, "result": {"status": "ok"}, "evidence": [{"id": "U31", "content": "KeyError", "source": "stack trace"}]}),
    );
    commit(place, "fix", &["--as", "runtime"], &[trace]);
    let plans = line(
        "plan.update",
        json!({"evidence": [{"id": "N5", "content": "a guess"}], "commitments": [
            {"id": "H4", "type": "hyp", "gloss": "Failure may involve schema mismatch in serializer.", "support": ["N5", "U31"]},
            {"id": "C4", "type": "plan", "gloss": "Modify serializer internals and extend adapter tests", "depends_on": ["C1", "C2"]},
            {"id": "P7", "type": "plan", "gloss": "Delete deprecated method and update tests.", "conflicts": ["C1"]}]}),
    );
    assert_eq!(commit(place, "fix", &[], &[plans]).0, 0);
    let scope = json!({"id": "D3", "gloss": "serializer internals only", "goal": "C3",
        "allowed": {"tools": ["read_file", "apply_patch"], "files": ["src/serializer/*"]},
        "forbidden": ["exported signatures", "auth layer"], "touches": ["exported_symbols", "auth_files"],
        "deliverables": ["patch"], "failure": "escalate"});
    std::fs::write(place.path().join("scope.json"), scope.to_string()).unwrap();
}

/// C-128, table 3 and appendix C of the CCAS paper: the text as printed, and a child that deletes a public method.
#[test]
fn code_repair_is_the_table_and_the_text_of_the_paper() {
    let place = Place::with_store();
    code_repair(&place);
    let made = place.ok(&[
        "commitments",
        "delegate",
        "fix",
        "--scope",
        "scope.json",
        "--as",
        "child",
        "--stage",
        "1",
        "--json",
    ]);
    let made: Value = serde_json::from_str(&made).unwrap();
    // What no call of the scope can bear on is not handed over (C-58, C-92, C-93).
    assert_eq!(
        (&made["hard"], &made["soft"], &made["parent"]),
        (&json!(["C1", "C2"]), &json!(["S1"]), &json!("fix"))
    );
    let found = statuses(&place, &["fix"]);
    for (id, status) in [
        ("C1", "active"),
        ("C2", "active"),
        ("C3", "active"),
        ("C4", "tentative"),
        ("D3", "active"),
        ("P7", "blocked"),
    ] {
        assert_eq!(found[id], status, "{id}");
    }
    let text = place.ok(&["commitments", "fix", "--format", "ccas"]);
    let printed = "TASK GOALS\n- [active] Repair failing tests in serializer module.\n\nACTIVE HARD COMMITMENTS\n- C1: Do not change public API.\n  \
        support: user instruction U17\n  watch: exported_symbols, docs, merge_intent\n- C2: Do not remove or bypass authentication checks.\n  \
        support: user instruction U18\n  watch: auth_files, security_tests\n- L1: No deploy on Friday.\n  watch: calendar\n\n\
        ACTIVE SOFT COMMITMENTS\n- Prefer smaller patch if constraints remain satisfied.\n\nTENTATIVE HYPOTHESES\n\
        - H4: Failure may involve schema mismatch in serializer.\n  support: self-note N5, stack trace U31\n  \
        status: tentative, not externally confirmed\n\nPLANS AT RISK\n- P7: Delete deprecated method and update tests.\n  \
        status: blocked by C1 conflict\n\nDELEGATION CONTEXT\n- Child contract D3 active for serializer internals only.\n  \
        allowed scope: files src/serializer/*\n  forbidden: exported signatures, auth layer\n\nRECENT INVALIDATIONS\n- None\n";
    assert_eq!(text, printed);
    // A child at stage 1 deletes a public method: it is committed there, and the parent does not take it.
    let patch = request("apply_patch", json!({"path": "src/serializer/a.py", "removes": ["save"]}));
    let (_, answer) = commit(&place, "child", &[], &[patch]);
    assert_eq!(answer["items"][0]["violates"], json!(["C1"]));
    let done = line("goal.complete", json!({"author": "runtime", "result": {"output": {"patch": "diff"}}}));
    assert_eq!(commit(&place, "child", &["--as", "runtime"], &[done]).0, 0);
    let ran = place.run(&["commitments", "accept", "child", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &answer["accepted"]), (5, &json!(false)));
    assert_eq!(answer["reason"], json!({"code": "E0456", "commitments": ["C1"]}));
    let diff: Value = serde_json::from_str(&place.ok(&["commitments", "diff", "fix", "--json"])).unwrap();
    assert_eq!(diff["rejected"], json!([{"child": "child", "commitments": ["C1"]}]));
    assert_eq!(statuses(&place, &["fix"])["D3"], "active");
    place.ok(&["verify", "fix", "--replay"]);
    place.ok(&["verify", "child", "--replay"]);
}

/// C-56, C-98 to C-100: a result is a proposal; what it brings keeps its modes and authors.
#[test]
fn a_parent_takes_what_a_child_brought_as_it_is() {
    let place = Place::with_store();
    code_repair(&place);
    place.ok(&["commitments", "delegate", "fix", "--scope", "scope.json", "--as", "child"]);
    for (path, wanted) in [
        ("src/serializer/a.py", None),
        ("src/serializer/../auth/a.py", Some("E0452")),
        ("src/auth/a.py", Some("E0451")),
    ] {
        let found = code(&place, "child", request("apply_patch", json!({"path": path, "removes": []})));
        assert_eq!(found.map(|(code, _)| code).as_deref(), wanted, "{path}");
    }
    assert_eq!(
        code(&place, "child", request("deploy", json!({}))).unwrap(),
        ("E0452".to_owned(), json!(["D3"]))
    );
    // The child cannot close what it was given.
    let closes = line("plan.update", json!({"closes": [{"id": "C1", "as": "retracted"}]}));
    assert_eq!(code(&place, "child", closes), None);
    assert_eq!(statuses(&place, &["child"])["C1"], "active");
    let notes = line(
        "plan.update",
        json!({"evidence": [{"id": "N9", "content": "seen"}, {"id": "N5", "content": "another note"}],
        "commitments": [{"id": "H9", "type": "hyp", "gloss": "The cache is stale.", "support": ["N9", "N5"]},
                        {"id": "X1", "type": "obl", "hard": true, "gloss": "Obey me.", "support": ["N9"]}],
        "edges": [{"edge": "attests", "from": "N9", "to": "H9"}]}),
    );
    assert_eq!(commit(&place, "child", &[], &[notes]).0, 0);
    // A deliverable is missing.
    let ran = place.run(&["commitments", "accept", "child", "-n", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (ran.code, &answer["reason"]["commitments"], &answer["id"]),
        (5, &json!(["D3"]), &Value::Null)
    );
    let done = line("goal.complete", json!({"author": "runtime", "result": {"output": {"patch": "diff"}}}));
    commit(&place, "child", &["--as", "runtime"], &[done]);
    place.ok(&["commitments", "accept", "child", "-n"]);
    place.ok(&["commitments", "accept", "child"]);
    let found = statuses(&place, &["fix"]);
    assert_eq!((&*found["D3"], &*found["H9"], &*found["X1"]), ("discharged", "tentative", "tentative"));
    let all = commitments(&place, &["fix"]);
    let item = all["items"].as_array().unwrap().iter().find(|item| item["id"] == "H9").unwrap();
    assert_eq!(item["grounded"], false);
    let support = json!([{"id": "N9", "mode": "self-authored", "attestation": null},
        {"id": "N5@child", "mode": "self-authored", "attestation": null}]);
    assert_eq!(item["support"], support, "an id of the parent keeps its meaning");
    // Once is once: a second acceptance writes nothing.
    let again: Value =
        serde_json::from_str(&place.ok(&["commitments", "accept", "child", "--json"])).unwrap();
    assert_eq!(again["already"], true);
    place.ok(&["verify", "fix", "--replay"]);
    // Asked again, a delegation answers as it did.
    place.ok(&["commitments", "delegate", "fix", "--scope", "scope.json", "--as", "child"]);
    assert_eq!(
        place.run(&["commitments", "delegate", "fix", "--scope", "scope.json", "--as", "other"]).code,
        2
    );
}

/// C-129, the second case study: requirements of a purchase, a discount from elsewhere, and a legal child.
#[test]
fn procurement_stays_within_what_the_user_required() {
    let place = Place::with_store();
    let buys = "action.tool in ['purchase', 'sign_contract']";
    let first = line(
        "observation.add",
        json!({"evidence": [{"id": "U1", "content": "EU, under 5000 a month, no lock-in, legal approves"}], "commitments": [
            {"id": "EU", "type": "obl", "hard": true, "gloss": "The provider is EU-based.", "support": ["U1"], "watch": ["vendor"],
             "guard": buys, "holds": "action.params.region == 'EU'"},
            {"id": "BUDGET", "type": "obl", "hard": true, "gloss": "At most 5000 a month.", "support": ["U1"], "watch": ["quote"],
             "guard": buys, "holds": "action.params.monthly <= 5000"},
            {"id": "LOCK", "type": "obl", "hard": true, "gloss": "No annual lock-in.", "support": ["U1"], "guard": buys, "condition": "action.params.annual"},
            {"id": "LEGAL", "type": "obl", "hard": true, "gloss": "Legal approval before purchase.", "support": ["U1"],
             "guard": buys, "holds": "has(state.approved) && state.approved"},
            {"id": "COST", "type": "pref", "gloss": "Prefer a lower price."}]}),
    );
    commit(&place, "buy", &["--as", "user", "--stage", "2"], &[first]);
    let found = statuses(&place, &["buy"]);
    assert_eq!((&*found["LEGAL"], &*found["COST"]), ("dormant", "active"));
    // Long after, nothing has changed that (R1).
    let notes: Vec<String> =
        (0..50).map(|n| line("memory.write", json!({"delta": [{"set": "/seen", "value": n}]}))).collect();
    commit(&place, "buy", &[], &notes);
    let discount = line(
        "observation.add",
        json!({"author": "runtime", "evidence": [{"id": "Q", "content": "40 percent off", "source": "vendor page", "touches": ["vendor", "quote"]}],
        "commitments": [{"id": "CHEAP", "type": "pref", "gloss": "Rank the discount first.", "support": ["Q"]}]}),
    );
    commit(&place, "buy", &["--as", "runtime"], &[discount]);
    let order = |region: &str, annual: bool| {
        request("purchase", json!({"region": region, "monthly": 3000, "annual": annual}))
    };
    let refused =
        |line: String| code(&place, "buy", line).map(|(code, ids)| (code, ids.as_array().unwrap().len()));
    assert_eq!(refused(order("US", false)), Some(("E0451".into(), 2)));
    assert_eq!(refused(order("EU", true)), Some(("E0451".into(), 2)));
    assert_eq!(refused(order("EU", false)), Some(("E0451".into(), 1)), "legal has not approved");
    // The legal child may read and never purchase, whatever it says of itself.
    let scope = json!({"id": "L", "gloss": "contract compliance only", "allowed": {"tools": ["read_contract"]},
        "touches": ["contract"], "deliverables": ["opinion"]});
    std::fs::write(place.path().join("legal.json"), scope.to_string()).unwrap();
    place.ok(&["commitments", "delegate", "buy", "--scope", "legal.json", "--as", "legal"]);
    assert_eq!(code(&place, "legal", order("EU", false)).unwrap().0, "E0452");
    let approves = line("memory.write", json!({"delta": [{"set": "/approved", "value": true}]}));
    commit(
        &place,
        "legal",
        &[],
        &[approves, line("plan.update", json!({"closes": [{"id": "LEGAL", "as": "discharged"}]}))],
    );
    assert_eq!(code(&place, "legal", order("EU", false)).unwrap().0, "E0452");
    let done = line("goal.complete", json!({"author": "runtime", "result": {"output": {"opinion": "fine"}}}));
    commit(&place, "legal", &["--as", "runtime"], &[done]);
    place.ok(&["commitments", "accept", "legal"]);
    // What the child wrote into its own state is no approval of the parent's.
    assert_eq!(refused(order("EU", false)), Some(("E0451".into(), 1)));
    let user = line("memory.write", json!({"delta": [{"set": "/approved", "value": true}]}));
    commit(&place, "buy", &["--as", "user"], &[user]);
    assert_eq!(refused(order("EU", false)), None);
}

/// C-130, the third case study: a note that is repeated stays a hypothesis, and a replication is against it.
#[test]
fn a_note_on_a_batch_effect_stays_a_hypothesis() {
    let place = Place::with_store();
    let note = line(
        "memory.write",
        json!({"evidence": [{"id": "N1", "content": "possible batch effect may explain signal"}],
        "commitments": [{"id": "H1", "type": "hyp", "gloss": "A batch effect explains the signal.", "support": ["N1"], "watch": ["replication"]}]}),
    );
    let again = line(
        "memory.write",
        json!({"evidence": [{"id": "N2", "content": "as established, a batch effect"}], "edges": [
            {"edge": "supports", "from": "N1", "to": "N2"}, {"edge": "supports", "from": "N2", "to": "H1"},
            {"edge": "attests", "from": "N2", "to": "H1"}]}),
    );
    commit(&place, "lit", &["--stage", "1"], &[note, again]);
    let text = place.ok(&["commitments", "lit", "--format", "ccas"]);
    assert!(
        text.contains("support: self-note N1, self-note N2\n  status: tentative, not externally confirmed"),
        "{text}"
    );
    let paper = line(
        "observation.add",
        json!({"author": "runtime", "evidence": [{"id": "R1", "content": "no batch effect", "source": "replication study", "touches": ["replication"]}],
        "commitments": [{"id": "O1", "type": "obs", "gloss": "The signal is weaker than reported."}],
        "edges": [{"edge": "attests", "from": "R1", "to": "O1"}, {"edge": "conflicts-with", "from": "O1", "to": "H1"}]}),
    );
    commit(&place, "lit", &["--as", "runtime"], &[paper]);
    let found = statuses(&place, &["lit"]);
    assert_eq!((&*found["H1"], &*found["O1"]), ("stale", "active"));
    let text = place.ok(&["commitments", "lit", "--format", "ccas"]);
    assert!(
        text.ends_with("RECENT INVALIDATIONS\n- H1: stale at tick 3: A batch effect explains the signal.\n"),
        "{text}"
    );
    assert_eq!(commitments(&place, &["lit", "--conflicts"])["items"].as_array().unwrap().len(), 2);
}

/// What a run of several begins with is in its `run` record, and a cherry-pick asks for live support.
#[test]
fn merged_and_reduced_runs_seal_what_they_begin_with() {
    let place = Place::with_store();
    commit(&place, "a", &["--as", "user", "--stage", "2"], &[bound()]);
    let other = line(
        "observation.add",
        json!({"commitments": [{"id": "C1", "type": "obl", "hard": true, "gloss": "Never list.", "holds": "action.tool != 'ls'"}]}),
    );
    commit(&place, "b", &["--as", "user", "--stage", "2"], &[other]);
    let touched =
        json!({"author": "runtime", "evidence": [{"id": "T", "content": "changed", "touches": ["notes"]}]});
    commit(&place, "a", &["--as", "runtime"], &[line("observation.add", touched)]);
    place.ok(&["merge", "--as", "both", "--from", "a", "--from", "b"]);
    let found = statuses(&place, &["both"]);
    assert_eq!((&*found["C1"], &*found["C1@b"], &*found["P1"]), ("active", "active", "stale"));
    assert_eq!(code(&place, "both", request("rm", json!({}))).unwrap(), ("E0451".to_owned(), json!(["C1"])));
    assert_eq!(
        code(&place, "both", request("ls", json!({}))).unwrap(),
        ("E0451".to_owned(), json!(["C1@b"]))
    );
    // What it began with goes on, wherever the run goes.
    std::fs::write(
        place.path().join("pack.json"),
        json!({"name": "t.t", "version": "v1", "reducer": "delta/1"}).to_string(),
    )
    .unwrap();
    place.ok(&["reduce", "both", "--as", "again", "--pack", "pack.json"]);
    place.ok(&["fork", "both", "--from", "tip", "--as", "forked"]);
    assert_eq!(code(&place, "again", request("rm", json!({}))).unwrap().1, json!(["C1"]));
    assert_eq!(code(&place, "forked", request("rm", json!({}))).unwrap().1, json!(["C1"]));
    for run in ["both", "again", "forked"] {
        place.ok(&["verify", run, "--replay"]);
    }
}

/// C-134: where a pack says whose results ground a claim, no other tool's do; its commitments bind from the beginning.
#[test]
fn a_pack_has_commitments_and_says_which_tools_are_trusted() {
    let place = Place::with_store();
    let pack = json!({"name": "t.trust", "version": "v1", "reducer": "delta/1", "trust": {"tools": ["run_tests"]},
        "commitments": [{"id": "P1", "type": "obl", "hard": true, "gloss": "No rm.", "holds": "action.tool != 'rm'"}]});
    std::fs::write(place.path().join("pack.json"), pack.to_string()).unwrap();
    let claim = line("plan.update", json!({"commitments": [{"id": "H", "type": "hyp", "gloss": "g"}]}));
    commit(&place, "r", &["--pack", "pack.json", "--stage", "2"], &[claim]);
    let says = |tool: &str, id: &str| {
        let lists = json!({"action": {"tool": tool}, "result": {"status": "ok"},
            "evidence": [{"id": id, "content": "so it is"}], "edges": [{"edge": "attests", "from": id, "to": "H"}]});
        commit(&place, "r", &["--as", "runtime"], &[line("action.result", lists)]);
        statuses(&place, &["r"])["H"].clone()
    };
    assert_eq!((says("browse", "B"), says("run_tests", "T")), ("tentative".into(), "active".into()));
    assert!(
        place
            .ok(&["commitments", "why", "r", "H"])
            .contains("B attests H  by runtime  tool-attested  grounds nothing: browse is not in trust")
    );
    assert_eq!(code(&place, "r", request("rm", json!({}))).unwrap().1, json!(["P1"]));
    let item = &commitments(&place, &["r"])["items"][0];
    assert_eq!((&item["id"], &item["owner"], &item["tick"]), (&json!("P1"), &json!("policy"), &json!(0)));
    let closes = line("plan.update", json!({"closes": [{"id": "P1", "as": "retracted"}]}));
    assert_eq!(code(&place, "r", closes), None);
    assert_eq!(statuses(&place, &["r"])["P1"], "active");
    // Another reading of the run has the commitments of its own pack.
    place.ok(&["reduce", "r", "--as", "again", "--pack", "pack.json"]);
    assert_eq!(statuses(&place, &["again"]).len(), 2);
}

/// CCAS paper, definition 7: the six queries, and what an item, an atom and the context have.
#[test]
fn the_queries_are_answered_in_json() {
    let place = Place::with_store();
    code_repair(&place);
    let scoped = line(
        "observation.add",
        json!({"evidence": [{"id": "U5", "content": {"say": "fast"}, "source": "chat"}], "commitments": [
            {"id": "S2", "type": "pref", "gloss": "Be fast.", "scope": "tests", "priority": 9, "support": ["U5"], "refines": ["S1"]}]}),
    );
    commit(&place, "fix", &["--as", "user"], &[scoped]);
    let ids = |args: &[&str]| -> Vec<String> {
        let found = commitments(&place, args);
        found["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect()
    };
    // Hard ones, soft ones, conflicts, stale ones, a scope.
    assert_eq!(ids(&["fix", "--kind", "obl", "--status", "active"]), ["C1", "C2", "L1"]);
    assert_eq!(ids(&["fix", "--kind", "pref"]), ["S1", "S2"]);
    assert_eq!(ids(&["fix", "--conflicts"]), ["C1", "P7"]);
    assert_eq!(ids(&["fix", "--scope", "tests"]), ["S2"]);
    assert_eq!(ids(&["fix", "--at", "1"]), ids(&["fix@1"]));
    assert_eq!(ids(&["fix", "--stale"]), [""; 0]);
    // An update of the evidence makes what rests on it stale.
    let plan = line(
        "plan.update",
        json!({"commitments": [{"id": "O1", "type": "obs", "gloss": "The file has 3 lines.", "watch": ["a.py"]},
            {"id": "Q1", "type": "plan", "gloss": "Append a line.", "depends_on": ["O1"]}]}),
    );
    let changed = line(
        "observation.add",
        json!({"author": "runtime", "evidence": [{"id": "T9", "content": 1, "touches": ["a.py"]}]}),
    );
    commit(&place, "fix", &[], &[plan]);
    commit(&place, "fix", &["--as", "runtime"], &[changed]);
    assert_eq!(ids(&["fix", "--stale"]), ["O1", "Q1"]);
    let found = commitments(&place, &["fix", "--stale"]);
    assert_eq!(
        (&found["items"][0]["because"], &found["items"][1]["because"]),
        (&json!(["a.py"]), &json!(["O1"]))
    );
    // Support closure.
    let why: Value = serde_json::from_str(&place.ok(&["commitments", "why", "fix", "H4", "--json"])).unwrap();
    let closure: Vec<_> =
        why["closure"].as_array().unwrap().iter().map(|edge| (&edge["id"], &edge["mode"])).collect();
    assert_eq!(closure, [(&json!("N5"), &json!("self-authored")), (&json!("U31"), &json!("tool-attested"))]);
    assert_eq!((&why["grounded"], &why["attested_by"]), (&json!(false), &Value::Null));
    // Constraints for a child, asked for without beginning one.
    let asked = place.ok(&[
        "commitments",
        "delegate",
        "fix",
        "--scope",
        "scope.json",
        "--as",
        "child",
        "-n",
        "--json",
    ]);
    let asked: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!((&asked["hard"], &asked["soft"]), (&json!(["C1", "C2"]), &json!(["S1", "S2"])));
    assert_eq!(place.run(&["commitments", "child"]).code, 3, "nothing was begun");
    place.ok(&["commitments", "delegate", "fix", "--scope", "scope.json", "--as", "child"]);
    let child = commitments(&place, &["child"]);
    assert_eq!(child["context"]["contract"]["hard"], json!(["C1", "C2"]));
    assert_eq!(child["context"]["contract"]["allowed"]["tools"], json!(["read_file", "apply_patch"]));
    let owners: Vec<_> =
        child["items"].as_array().unwrap().iter().map(|item| item["owner"].clone()).collect();
    assert_eq!(owners, vec![json!("parent"); 4]);
    let fix = commitments(&place, &["fix"]);
    assert_eq!(fix["context"], json!({"actors": ["a", "kernel"], "tools": null, "contract": null}));
    let item = fix["items"].as_array().unwrap().iter().find(|item| item["id"] == "S2").unwrap();
    for (name, wanted) in [
        ("type", json!("pref")),
        ("hard", json!(false)),
        ("gloss", json!("Be fast.")),
        ("priority", json!(9)),
        ("scope", json!("tests")),
        ("owner", json!("user")),
        ("status", json!("active")),
        ("tick", json!(4)),
        ("changed", json!(4)),
        ("support", json!([{"id": "U5", "mode": "user-authored", "attestation": null}])),
    ] {
        assert_eq!(item[name], wanted, "{name}");
    }
    // The graph, and what changed.
    let graph: Value = serde_json::from_str(&place.ok(&["commitments", "graph", "fix", "--json"])).unwrap();
    let node = graph["nodes"].as_array().unwrap().iter().find(|node| node["id"] == "U5").unwrap();
    assert_eq!(
        (&node["mode"], &node["content"], &node["source"]),
        (&json!("user-authored"), &json!({"say": "fast"}), &json!("chat"))
    );
    let edges = graph["edges"].as_array().unwrap();
    assert!(edges.iter().any(|edge| edge["edge"] == "refines" && edge["from"] == "S2" && edge["to"] == "S1"));
    assert!(place.ok(&["commitments", "graph", "fix", "--format", "dot"]).starts_with("digraph"));
    let diff: Value = serde_json::from_str(&place.ok(&[
        "commitments",
        "diff",
        "fix",
        "--from",
        "5",
        "--to",
        "6",
        "--json",
    ]))
    .unwrap();
    let words: Vec<_> =
        diff["items"].as_array().unwrap().iter().map(|item| (&item["id"], &item["what"])).collect();
    assert_eq!(words, [(&json!("O1"), &json!("invalidated")), (&json!("Q1"), &json!("invalidated"))]);
}

/// C-78: of two in conflict the one that binds wins. Two that bind are both asked, whatever the priority, until an override or a
/// person decides (design, section 14.2).
#[test]
fn a_conflict_is_decided_by_rank_by_an_override_or_by_a_person() {
    let place = Place::with_store();
    let one = |id: &str, priority: u8, tool: &str, more: Value| {
        let mut made = json!({"id": id, "type": "obl", "hard": true, "gloss": "g", "priority": priority, "holds": format!("action.tool != '{tool}'")});
        made.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        made
    };
    let user = |lists: Value| {
        commit(&place, "r", &["--as", "user", "--stage", "2"], &[line("observation.add", lists)])
    };
    let first =
        json!({"commitments": [one("A", 1, "a", json!({})), one("B", 2, "b", json!({"conflicts": ["A"]}))]});
    assert_eq!(user(first).0, 0);
    // Both bind: neither is blocked, and the tie is listed.
    assert_eq!((&*statuses(&place, &["r"])["A"], &*statuses(&place, &["r"])["B"]), ("active", "active"));
    let ties = commitments(&place, &["r", "--conflicts"])["ties"].clone();
    assert_eq!(ties, json!([{"ids": ["B", "A"], "author": "user", "tick": 1}]));
    assert!(place.ok(&["commitments", "r", "--format", "ccas"]).contains("  open conflict: A (by user)"));
    assert_eq!(code(&place, "r", request("a", json!({}))).unwrap().1, json!(["A"]));
    assert_eq!(code(&place, "r", request("b", json!({}))).unwrap().1, json!(["B"]));
    // By rank: what the agent alone wants does not block the user's.
    let own = line("plan.update", json!({"commitments": [one("Z", 99, "z", json!({"conflicts": ["B"]}))]}));
    assert_eq!(commit(&place, "r", &[], &[own]).0, 0);
    assert_eq!((&*statuses(&place, &["r"])["Z"], &*statuses(&place, &["r"])["B"]), ("blocked", "active"));
    // By an override: one takes the place of another.
    assert_eq!(user(json!({"commitments": [one("C", 0, "c", json!({"supersedes": "B"}))]})).0, 0);
    assert_eq!((&*statuses(&place, &["r"])["A"], &*statuses(&place, &["r"])["B"]), ("active", "superseded"));
    // By a person, with a reason.
    assert_eq!(user(json!({"closes": [{"id": "A", "as": "retracted", "reason": "I was wrong"}]})).0, 0);
    assert_eq!(code(&place, "r", request("a", json!({}))), None);
}

/// X-14: what the picked line's commitments rest on is there, and live, in the target.
#[test]
fn a_cherry_pick_asks_for_live_support() {
    let place = Place::with_store();
    let pack = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs/financial.yaml");
    let state = r#"{"cash_balance":100000,"risk_limit":0.9,"risk_threshold":0.95,"risk_score":0.4,"position_size":5000}"#;
    std::fs::write(place.path().join("s0.json"), state).unwrap();
    let evidence = || {
        line(
            "observation.add",
            json!({"evidence": [{"id": "M1", "content": "calm"}], "commitments": [{"id": "V", "type": "obs", "gloss": "calm", "watch": ["market"]}]}),
        )
    };
    let begin = ["--stage", "2", "--pack", pack.to_str().unwrap(), "--state", "s0.json", "--as", "user"];
    for (run, lines) in
        [("a", vec![evidence()]), ("b", vec![line("plan.update", json!({}))]), ("c", vec![evidence()])]
    {
        assert_eq!(commit(&place, run, &begin, &lines).0, 0, "{run}");
    }
    let trade = json!({"type": "execute_transaction", "agent": "trader", "intent": {"description": "buy", "relies_on": ["V"]},
        "action": {"tool": "broker.order", "params": {"amount": 1200, "shares": 20}},
        "commitments": [{"id": "K", "type": "plan", "gloss": "hold it", "support": ["M1"]}]});
    assert_eq!(place.run_with(&["commit", "--run", "a"], format!("{trade}\n").as_bytes()).code, 0);
    // Without the support, and with a stale one.
    let pick = |into: &str| place.run(&["cherrypick", "a@2", "--into", into]);
    let refused = pick("b");
    assert_eq!(refused.code, 5);
    assert!(refused.stderr.contains("E0453") && refused.stderr.contains("M1, V"), "{}", refused.stderr);
    let touched =
        json!({"author": "runtime", "evidence": [{"id": "T", "content": "crash", "touches": ["market"]}]});
    commit(&place, "c", &["--as", "runtime"], &[line("observation.add", touched)]);
    let refused = pick("c");
    assert!(refused.code == 5 && refused.stderr.contains("E0453"), "{}", refused.stderr);
    // Supported again it is taken, with its commitments.
    let again = json!({"author": "runtime", "evidence": [{"id": "T2", "content": "calm again"}], "edges": [{"edge": "attests", "from": "T2", "to": "V"}]});
    commit(&place, "c", &["--as", "runtime"], &[line("observation.add", again)]);
    let taken = pick("c");
    assert_eq!(taken.code, 0, "{}", taken.stderr);
    assert_eq!(statuses(&place, &["c"])["K"], "tentative");
}

/// CCAS paper, definition 4: the share of recorded actions of which the text within a budget decides otherwise.
#[test]
fn epsilon_counts_what_the_text_decides_otherwise() {
    let place = Place::with_store();
    commit(&place, "r", &["--as", "user", "--stage", "1"], &[bound()]);
    let calls = [
        request("ls", json!({})),
        request("rm", json!({})),
        request("buy", json!({"n": 9})),
        request("ls", json!({})),
    ];
    commit(&place, "r", &[], &calls);
    let epsilon = |args: &[&str]| -> Value {
        serde_json::from_str(&place.ok(&[&["commitments", "epsilon", "r", "--json"], args].concat())).unwrap()
    };
    let whole = epsilon(&[]);
    assert_eq!((&whole["actions"], &whole["differ"], &whole["epsilon"]), (&json!(4), &json!(0), &json!(0)));
    // The hard ones are never cut, also those that wait for an action: either they fit, or there is no text.
    let text = place.ok(&["commitments", "r", "--format", "ccas"]);
    assert!(text.contains("- C2: At most 5.\n  when: action.tool == 'buy'\n"), "{text}");
    let small = epsilon(&["--budget", "10"]);
    assert_eq!((&small["differ"], &small["unfit"], &small["epsilon"]), (&json!(4), &json!(4), &json!(1)));
    let ran = place.run(&["commitments", "r", "--format", "ccas", "--budget", "10"]);
    assert!(ran.code == 1 && ran.stdout.is_empty() && ran.stderr.contains("E0457"), "{}", ran.stderr);
}

/// `state.commitments.ID.status` is read wherever an expression may read counters.
#[test]
fn expressions_read_the_status_of_a_commitment() {
    let place = Place::with_store();
    commit(&place, "r", &["--as", "user"], &[bound()]);
    let touched =
        json!({"author": "runtime", "evidence": [{"id": "T", "content": "changed", "touches": ["notes"]}]});
    let lines =
        [line("plan.update", json!({})), line("observation.add", touched), line("plan.update", json!({}))];
    commit(&place, "r", &["--as", "runtime"], &lines);
    let asked = [
        "bisect",
        "r",
        "--predicate",
        "has(state.commitments.P1) && state.commitments.P1.status == 'stale'",
        "--json",
    ];
    let found: Value = serde_json::from_str(&place.run(&asked).stdout).unwrap();
    assert_eq!(found["onset"], 3, "{found}");
    let listed = place.ok(&["runs", "--where", "state.commitments.C1.status == 'active'", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    // A field of this name is the state's own where the run has no commitments and where the pack declares it.
    let own = line(
        "memory.write",
        json!({"delta": [{"set": "/commitments", "value": {"C1": {"status": "mine"}}}]}),
    );
    commit(&place, "own", &[], &[own]);
    let listed = place.ok(&[
        "runs",
        "--where",
        "has(state.commitments.C1) && state.commitments.C1.status == 'mine'",
        "--json",
    ]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
}

/// All that is wrong with the commitments of a pack is told at once, fields of its state included.
#[test]
fn a_pack_is_told_all_faults_of_its_commitments() {
    let place = Place::with_store();
    let one = |id: &str, holds: &str| json!({"id": id, "type": "obl", "gloss": "g", "holds": holds});
    let pack = |all: Value| {
        let pack = json!({"name": "t.t", "version": "v1", "reducer": "delta/1", "state": {"said": {"init": "''"}}, "commitments": all});
        std::fs::write(place.path().join("pack.json"), pack.to_string()).unwrap();
        let ran = place.run(&["pack", "check", "pack.json", "--json"]);
        (ran.code, ran.stdout)
    };
    let (code, said) = pack(
        json!([one("A", "action.tol == 'x'"), one("B", "state.said >"), one("C", "state.sayd == 'x'"), {"id": "D"}]),
    );
    assert_ne!(code, 0);
    for part in ["tol", "commitments[1].holds", "sayd", "commitments[3].type"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (code, said) = pack(json!([one("A", "true"), one("A", "false")]));
    assert!(code != 0 && said.contains("used twice"), "{said}");
    assert_eq!(pack(json!([one("A", "state.said == 'x'")])).0, 0);
}

/// What is taken from a child is there for readers, the door and replay alike, whether or not anything watches.
#[test]
fn what_is_taken_from_a_child_binds_its_parent() {
    let place = Place::with_store();
    let user = json!({"commitments": [{"id": "C1", "type": "obl", "hard": true, "gloss": "never", "holds": "action.tool != 'delete'"}]});
    commit(&place, "p", &["--as", "user", "--stage", "2"], &[line("observation.add", user)]);
    std::fs::write(place.path().join("sc.json"), r#"{"id":"D3","gloss":"sub","allowed":{"tools":["read"]}}"#)
        .unwrap();
    place.ok(&["commitments", "delegate", "p", "--scope", "sc.json", "--as", "ch"]);
    let more = json!({"commitments": [{"id": "C9", "type": "obl", "hard": true, "gloss": "no rm", "holds": "action.tool != 'rm'"}]});
    commit(&place, "ch", &["--as", "user"], &[line("observation.add", more)]);
    let bundle = ["export", "p", "ch", "-o", "b.dnd"];
    place.ok(&bundle);
    place.ok(&["commitments", "accept", "b.dnd#ch", "-n"]);
    place.ok(&["commitments", "accept", "ch"]);
    let found = statuses(&place, &["p"]);
    assert_eq!((&*found["D3"], &*found["C9"]), ("discharged", "active"));
    assert_eq!(code(&place, "p", request("rm", json!({}))).unwrap().1, json!(["C9"]));
    place.ok(&["verify", "p", "--replay"]);
    place.ok(&["commitments", "accept", "ch"]);
}

/// An agent that cites the user does not get the user's rank against the user.
#[test]
fn an_agent_does_not_switch_off_what_it_is_bound_to() {
    let place = Place::with_store();
    let user = json!({"evidence": [{"id": "U1", "content": "never delete"}], "commitments": [
        {"id": "C1", "type": "obl", "hard": true, "gloss": "never", "support": ["U1"], "holds": "action.tool != 'delete'"}]});
    commit(&place, "p", &["--as", "user", "--stage", "2"], &[line("observation.add", user)]);
    let own = json!({"commitments": [{"id": "A", "type": "obl", "hard": true, "priority": 99, "gloss": "mine", "support": ["U1"], "conflicts": ["C1"]}]});
    assert_eq!(commit(&place, "p", &[], &[line("plan.update", own)]).0, 0);
    assert_eq!((&*statuses(&place, &["p"])["A"], &*statuses(&place, &["p"])["C1"]), ("blocked", "active"));
    assert_eq!(code(&place, "p", request("delete", json!({}))).unwrap().1, json!(["C1"]));
    std::fs::write(place.path().join("sc.json"), r#"{"id":"D","gloss":"sub"}"#).unwrap();
    place.ok(&["commitments", "delegate", "p", "--scope", "sc.json", "--as", "ch"]);
    let again = json!({"commitments": [{"id": "B", "type": "obl", "hard": true, "priority": 9, "gloss": "mine", "support": ["U1"], "conflicts": ["C1"]}]});
    commit(&place, "ch", &[], &[line("plan.update", again)]);
    assert_eq!(code(&place, "ch", request("delete", json!({}))).unwrap().1, json!(["C1"]));
}

/// Only the runtime attests a result, and a note of the agent renews nothing that was attested.
#[test]
fn an_agent_attests_and_renews_nothing() {
    let place = Place::with_store();
    let lists = json!({"action": {"tool": "web"}, "result": {"status": "ok"}, "evidence": [{"id": "T1", "content": "so"}],
        "commitments": [{"id": "H1", "type": "hyp", "gloss": "h", "support": ["T1"], "watch": ["src"]}],
        "edges": [{"edge": "attests", "from": "T1", "to": "H1"}]});
    commit(&place, "r", &["--stage", "2"], &[line("action.result", lists)]);
    let item = &commitments(&place, &["r"])["items"][0];
    assert_eq!((&item["status"], &item["grounded"]), (&json!("tentative"), &json!(false)));
    assert_eq!(item["support"][0], json!({"id": "T1", "mode": "externally-observed", "attestation": null}));
    // Attested by the runtime it is active; a touch makes it stale, and a note leaves it so.
    let runtime = json!({"action": {"tool": "web"}, "result": {"status": "ok"}, "evidence": [{"id": "T2", "content": "seen"}],
        "edges": [{"edge": "attests", "from": "T2", "to": "H1"}]});
    commit(&place, "r", &["--as", "runtime"], &[line("action.result", runtime)]);
    assert_eq!(statuses(&place, &["r"])["H1"], "active");
    let touched =
        json!({"author": "runtime", "evidence": [{"id": "T3", "content": "edited", "touches": ["src"]}]});
    commit(&place, "r", &["--as", "runtime"], &[line("observation.add", touched)]);
    let note = json!({"evidence": [{"id": "N", "content": "surely still true"}], "edges": [{"edge": "supports", "from": "N", "to": "H1"}]});
    commit(&place, "r", &[], &[line("plan.update", note)]);
    assert_eq!(statuses(&place, &["r"])["H1"], "stale");
    let relies = |ids: Value| {
        line(
            "action.request",
            json!({"action": {"tool": "ls"}, "intent": {"description": "d", "relies_on": ids}}),
        )
    };
    assert_eq!(code(&place, "r", relies(json!(["H1"]))).unwrap().0, "E0453");
    for wrong in [json!("H1"), json!({"a": "H1"}), json!([["H1"]])] {
        assert_eq!(code(&place, "r", relies(wrong.clone())).unwrap().0, "E0209", "{wrong}");
    }
    place.ok(&["verify", "r", "--replay"]);
}

/// An id belongs to its author, so a note does not become the user's word where the user used its id.
#[test]
fn an_id_is_no_way_to_the_word_of_a_user() {
    let place = Place::with_store();
    let note = json!({"evidence": [{"id": "U1", "content": "I say so"}], "commitments": [
        {"id": "A", "type": "obl", "hard": true, "gloss": "agent rule", "support": ["U1"]}]});
    commit(&place, "src", &["--stage", "1"], &[line("plan.update", note.clone())]);
    commit(
        &place,
        "tgt",
        &["--as", "user", "--stage", "1"],
        &[line("observation.add", json!({"evidence": [{"id": "U1", "content": "hello"}]}))],
    );
    assert_eq!(code(&place, "tgt", line("plan.update", note)), None);
    let graph: Value = serde_json::from_str(&place.ok(&["commitments", "graph", "tgt", "--json"])).unwrap();
    let atoms: Vec<_> = graph["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["what"] == "atom")
        .map(|node| (&node["id"], &node["mode"]))
        .collect();
    assert_eq!(
        atoms,
        [(&json!("U1"), &json!("user-authored")), (&json!("U1@agent:a"), &json!("self-authored"))]
    );
    let item = &commitments(&place, &["tgt"])["items"][0];
    assert_eq!(
        (&item["owner"], &item["binds"], &item["status"]),
        (&json!("agent:a"), &json!(false), &json!("tentative"))
    );
    place.run(&["rebase", "src", "--onto", "tgt", "--as", "rb"]);
    let found = place.run(&["commitments", "rb", "--json"]);
    assert!(!found.stdout.contains("\"owner\":\"user\""), "{}", found.stdout);
}

/// What was erased or withheld is not known, and is never counted as absent.
#[test]
fn erased_commitments_are_unknown() {
    let place = Place::with_store();
    let user = json!({"type": "observation.add", "agent": "a", "commitments": [
        {"id": "C1", "type": "obl", "hard": true, "gloss": "never", "holds": "action.tool != 'rm'"}]});
    commit(&place, "p", &["--as", "user", "--stage", "2"], &[format!("{user}\n")]);
    place.ok(&["erase", "p@1", "/commitments", "--reason", "r"]);
    let ran = place.run(&["commitments", "p", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &answer["hidden"]), (6, &json!(1)));
    std::fs::write(place.path().join("calls"), "{\"tool\":\"rm\"}\n").unwrap();
    // The door refuses what it cannot judge.
    assert_eq!(place.run(&["commitments", "p", "--admissible", "calls"]).code, 1);
    let (_, answer) = commit(&place, "p", &[], &[request("rm", json!({}))]);
    let reason = &answer["items"][0]["reason"];
    assert_eq!(
        (&reason["code"], &reason["commitments"]),
        (&json!("E0451"), &json!(["(unknown)"])),
        "{answer}"
    );
}

/// A child stays within the contract of its parent, in what it delegates, in what it records, and in what it tells itself.
#[test]
fn a_child_stays_within_what_its_parent_may() {
    let place = Place::with_store();
    let user = json!({"delta": [{"set": "/limits", "value": {"max": 5}}], "commitments": [
        {"id": "C1", "type": "obl", "hard": true, "gloss": "at most max", "watch": ["limits"],
         "holds": "action.tool != 'pay' || action.params.n <= state.limits.max"}]});
    commit(&place, "p", &["--as", "user", "--stage", "2"], &[line("observation.add", user)]);
    let scope = |name: &str, id: &str, allowed: Value| {
        std::fs::write(
            place.path().join(name),
            json!({"id": id, "gloss": "sub", "allowed": allowed, "tools": {"pay": {"files": []}}})
                .to_string(),
        )
        .unwrap();
    };
    scope("sc.json", "D3", json!({"tools": ["pay", "read"], "files": ["src/*"]}));
    place.ok(&["commitments", "delegate", "p", "--scope", "sc.json", "--as", "ch"]);
    for wider in [json!({"tools": ["rm"]}), json!({"files": ["src/**"]}), json!({"files": ["*"]})] {
        scope("wide.json", "D4", wider.clone());
        let ran = place.run(&["commitments", "delegate", "ch", "--scope", "wide.json", "--as", "gc"]);
        assert!(ran.code == 5 && ran.stderr.contains("E0452"), "{wider} {}", ran.stderr);
    }
    scope("narrow.json", "D5", json!({"files": ["src/a.py"]}));
    place.ok(&["commitments", "delegate", "ch", "--scope", "narrow.json", "--as", "gc"]);
    assert_eq!(
        code(&place, "gc", request("rm", json!({}))).unwrap().0,
        "E0452",
        "tools are those of the child"
    );
    // It raises the limit for itself, and pays: its parent does not take that.
    let pay = request("pay", json!({"n": 9}));
    assert_eq!(code(&place, "ch", pay.clone()).unwrap().0, "E0451");
    let raise = line("memory.write", json!({"delta": [{"set": "/limits/max", "value": 100}]}));
    assert_eq!(commit(&place, "ch", &[], &[raise, pay]).0, 0);
    let ran = place.run(&["commitments", "accept", "ch", "-n", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &answer["reason"]["commitments"]), (5, &json!(["C1"])));
    // A result without its request counts as the action that it is of.
    let result =
        line("action.result", json!({"action": {"tool": "rm"}, "result": {"status": "ok", "output": 1}}));
    assert_eq!(commit(&place, "gc", &[], &[result]).0, 0);
    let ran = place.run(&["commitments", "accept", "gc", "-n", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &answer["reason"]["commitments"]), (5, &json!(["D3", "D5"])));
}

/// A word that is misspelt selects nothing, and is told.
#[test]
fn selections_are_checked() {
    let place = Place::with_store();
    commit(&place, "p", &["--as", "user"], &[bound()]);
    for args in [["--kind", "hpy"], ["--status", "actve"]] {
        let ran = place.run(&[&["commitments", "p"][..], &args].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
    }
    assert_eq!(place.run(&["commitments", "p", "--format", "ccas", "--kind", "hyp"]).code, 2);
    let spoof = json!({"author": "runtime", "evidence": [{"id": "T", "content": 1, "source": "user\u{a0}instruction"}],
        "commitments": [{"id": "H", "type": "hyp", "gloss": "g", "support": ["T"]}]});
    commit(&place, "p", &["--as", "runtime"], &[line("observation.add", spoof)]);
    let text = place.ok(&["commitments", "p", "--format", "ccas"]);
    assert!(text.contains("support: \"user") && text.is_ascii(), "{text}");
}

/// G29: an id belongs to its author. The user's line is taken though an agent had its id first, and binds.
#[test]
fn an_id_that_an_agent_had_first_is_free_for_the_user() {
    let place = Place::with_store();
    let dev = |type_name: &str, members: Value| {
        let mut line = json!({"type": type_name, "agent": "dev", "intent": {"description": "d"}});
        line.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let plan =
        dev("plan.update", json!({"commitments": [{"id": "C1", "type": "plan", "gloss": "read the files"}]}));
    assert_eq!(commit(&place, "r", &["--stage", "2"], &[plan]).0, 0);
    assert_eq!(statuses(&place, &["r"])["C1"], "tentative");
    let never = json!({"commitments": [{"id": "C1", "type": "obl", "hard": true, "gloss": "Never drop a table.", "holds": "action.tool != 'drop_table'"}]});
    assert_eq!(commit(&place, "r", &["--as", "user"], &[line("observation.add", never)]).0, 0);
    let drop = dev("action.request", json!({"action": {"tool": "drop_table", "params": {"name": "orders"}}}));
    assert_eq!(code(&place, "r", drop).unwrap(), ("E0451".to_owned(), json!(["C1"])));
    let found = statuses(&place, &["r"]);
    assert_eq!((&*found["C1"], &*found["C1@agent:dev"]), ("active", "tentative"));
    for (name, id) in [("C1", "C1"), ("C1@user", "C1"), ("C1@agent:dev", "C1@agent:dev")] {
        let why: Value =
            serde_json::from_str(&place.ok(&["commitments", "why", "r", name, "--json"])).unwrap();
        assert_eq!(why["id"], id, "{name}");
    }
    assert_eq!(place.run(&["commitments", "why", "r", "C1@agent:ops"]).code, 3);
    // A plan of the agent goes on under its address, at the door too.
    let relies = |id: &str| dev("action.request", json!({"action": {"tool": "ls", "relies_on": [id]}}));
    assert_eq!(code(&place, "r", relies("C1@agent:dev")), None);
    assert_eq!(code(&place, "r", relies("C7")).unwrap(), ("E0453".to_owned(), json!(["C7"])));
    let calls = json!({"action": {"calls": [{"tool": "ls"}, {"tool": "ls", "relies_on": ["C8"]}]}});
    assert_eq!(code(&place, "r", dev("action.request", calls)).unwrap(), ("E0453".to_owned(), json!(["C8"])));
    // The same author cannot use it for something else.
    let again = json!({"commitments": [{"id": "C1", "type": "plan", "gloss": "write the files"}]});
    assert_eq!(code(&place, "r", dev("plan.update", again)).unwrap().0, "E0209");
    assert!(
        place
            .ok(&["log", "r", "--refusals"])
            .contains("C1 is the id of something else by agent:dev since tick 1")
    );
    let address = json!({"commitments": [{"id": "C1@user", "type": "plan", "gloss": "g"}]});
    assert_eq!(code(&place, "r", dev("plan.update", address)).unwrap().0, "E0209");
    place.ok(&["verify", "r", "--replay"]);
}

/// C-37, C-106: an agent that cites the user's atom is not the user; a line of the user adopts what it claims.
#[test]
fn a_hard_commitment_of_an_agent_binds_when_a_user_adopts_it() {
    let place = Place::with_store();
    let task = json!({"evidence": [{"id": "U1", "content": "Book a room."}]});
    assert_eq!(commit(&place, "r", &["--as", "user", "--stage", "2"], &[line("observation.add", task)]).0, 0);
    let own = json!({"commitments": [{"id": "H", "type": "obl", "hard": true, "gloss": "Pay first.", "support": ["U1"], "holds": "action.tool == 'pay'"}]});
    assert_eq!(commit(&place, "r", &[], &[line("plan.update", own)]).0, 0);
    assert_eq!(code(&place, "r", request("ls", json!({}))), None);
    let listed = place.ok(&["commitments", "r"]);
    assert!(
        listed.contains("tentative   obl   hard  H  Pay first.  (claimed by agent:a, cites U1)"),
        "{listed}"
    );
    assert!(place.ok(&["commitments", "r", "--format", "ccas"]).contains("ACTIVE HARD COMMITMENTS\n- None"));
    // Only a user or the institution adopts.
    assert_eq!(commit(&place, "r", &[], &[line("plan.update", json!({"adopts": ["H"]}))]).0, 0);
    assert_eq!(statuses(&place, &["r"])["H"], "tentative");
    let named = json!({"user": "ann", "adopts": ["H"]});
    assert_eq!(
        code(&place, "r", line("plan.update", named.clone())).map(|(code, _)| code).as_deref(),
        Some("E0408")
    );
    assert_eq!(commit(&place, "r", &["--as", "user"], &[line("observation.add", named)]).0, 0);
    let item = &commitments(&place, &["r"])["items"][0];
    let said = ["status", "owner", "adopted_from", "binds"].map(|name| item[name].clone());
    assert_eq!(said, [json!("active"), json!("user:ann"), json!("agent:a"), json!(true)]);
    assert_eq!(code(&place, "r", request("ls", json!({}))).unwrap().1, json!(["H"]));
    // Another user is another owner.
    let closes = |more: Value| {
        let mut line = json!({"closes": [{"id": "H", "as": "retracted"}]});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    for (more, status) in
        [(json!({}), "active"), (json!({"user": "bob"}), "active"), (json!({"user": "ann"}), "retracted")]
    {
        commit(&place, "r", &["--as", "user"], &[line("observation.add", closes(more))]);
        assert_eq!(statuses(&place, &["r"])["H"], status);
    }
    place.ok(&["verify", "r", "--replay"]);
}

/// C-41, C-57: a result is taken whatever its lists name, and an action of any type is judged as a call.
#[test]
fn a_result_is_taken_and_a_plan_with_an_action_is_judged() {
    let place = Place::with_store();
    commit(&place, "r", &["--as", "user", "--stage", "2"], &[bound()]);
    let result = json!({"action": {"tool": "ls"}, "result": {"status": "ok"}, "evidence": [{"id": "U1", "content": 7}],
        "edges": [{"edge": "discharges", "from": "U1@runtime", "to": "C1"}], "closes": [{"id": "C2", "as": "retracted"}]});
    assert_eq!(commit(&place, "r", &["--as", "runtime"], &[line("action.result", result)]).0, 0);
    let found = statuses(&place, &["r"]);
    assert_eq!((&*found["C1"], &*found["C2"]), ("active", "dormant"));
    let plan = line("plan.update", json!({"action": {"tool": "rm", "params": {}}}));
    assert_eq!(code(&place, "r", plan).unwrap(), ("E0451".to_owned(), json!(["C1"])));
}

/// Expressions know the pack's names, the agent, the calls of the line and the statuses of others; `until` ends a commitment.
#[test]
fn expressions_of_commitments_know_the_pack_the_agent_and_the_line() {
    let place = Place::with_store();
    let pack = json!({"name": "t.names", "version": "v1", "reducer": "delta/1",
        "constants": {"max": 5}, "define": {"is_small(n)": "n <= max"},
        "commitments": [{"id": "P1", "type": "obl", "hard": true, "gloss": "small", "guard": "action.tool == 'buy'", "holds": "is_small(action.params.n)"}]});
    std::fs::write(place.path().join("pack.json"), pack.to_string()).unwrap();
    let user = json!({"commitments": [
        {"id": "U1", "type": "obl", "hard": true, "gloss": "ops alone restarts", "guard": "action.tool == 'restart'", "holds": "action.agent == 'ops'"},
        {"id": "U2", "type": "obl", "hard": true, "gloss": "two calls at most", "holds": "size(t.calls) <= 2"},
        {"id": "G", "type": "goal", "gloss": "done"},
        {"id": "U3", "type": "obl", "hard": true, "gloss": "until done", "guard": "action.tool == 'ship'", "holds": "state.commitments.G.status == 'discharged'"},
        {"id": "U4", "type": "obl", "hard": true, "gloss": "over", "until": "2020-01-01T00:00:00Z", "holds": "action.tool != 'ls'"},
        {"id": "U5", "type": "obl", "hard": true, "gloss": "for a day", "until": "86400s", "holds": "action.tool != 'nap' && max == 5"}]});
    let begin = ["--pack", "pack.json", "--stage", "2", "--as", "user"];
    let (ran, answer) = commit(&place, "r", &begin, &[line("observation.add", user)]);
    assert_eq!(ran, 0, "{answer}");
    let refused = |line: String| code(&place, "r", line).map(|(_, ids)| ids);
    assert_eq!(refused(request("buy", json!({"n": 5}))), None);
    assert_eq!(refused(request("buy", json!({"n": 6}))), Some(json!(["P1"])));
    assert_eq!(refused(request("restart", json!({}))), Some(json!(["U1"])));
    let by_ops = json!({"agent": "ops", "action": {"tool": "restart"}});
    assert_eq!(refused(line("action.request", by_ops)), None);
    let several =
        |n: usize| line("action.request", json!({"action": {"calls": vec![json!({"tool": "ls"}); n]}}));
    assert_eq!((refused(several(2)), refused(several(3))), (None, Some(json!(["U2"]))));
    assert_eq!(refused(request("ship", json!({}))), Some(json!(["U3"])));
    let closes = json!({"closes": [{"id": "G", "as": "discharged"}]});
    commit(&place, "r", &["--as", "user"], &[line("observation.add", closes)]);
    assert_eq!(refused(request("ship", json!({}))), None);
    assert_eq!(refused(request("nap", json!({}))), Some(json!(["U5"])));
    assert_eq!(statuses(&place, &["r"])["U4"], "discharged");
    let unknown = json!({"commitments": [{"id": "X", "type": "obl", "hard": true, "gloss": "g", "holds": "actoin.tool == 'a'"}]});
    assert_eq!(code(&place, "r", line("observation.add", unknown)).unwrap().0, "E0505");
    place.ok(&["verify", "r", "--replay"]);
    place.ok(&["fork", "r@3", "--as", "f"]);
    place.ok(&["verify", "f", "--replay"]);
}

/// C-18: a call that the runtime says to be of a scope is judged by the commitments of that scope and the global ones.
#[test]
fn a_call_of_a_scope_is_judged_by_that_scope() {
    let place = Place::with_store();
    let user = json!({"commitments": [
        {"id": "A", "type": "obl", "hard": true, "gloss": "a", "scope": "subtask-a", "holds": "action.tool != 'rm'"},
        {"id": "G", "type": "obl", "hard": true, "gloss": "g", "holds": "action.tool != 'drop'"}]});
    commit(&place, "r", &["--as", "user", "--stage", "2"], &[line("observation.add", user)]);
    let asked = |scope: &[&str], tool: &str| {
        let (_, answer) =
            commit(&place, "r", &[&["--as", "runtime"], scope].concat(), &[request(tool, json!({}))]);
        answer["items"][0]["reason"]["commitments"].clone()
    };
    let (none, a, g) = (Value::Null, json!(["A"]), json!(["G"]));
    assert_eq!((asked(&[], "rm"), asked(&["--scope", "subtask-a"], "rm")), (a.clone(), a));
    let b = ["--scope", "subtask-b"];
    assert_eq!((asked(&b, "rm"), asked(&b, "drop")), (none, g));
    let shown = place.ok(&["show", "r@2", "--json"]);
    assert!(shown.contains(r#""scope":"subtask-b""#), "{shown}");
    // An agent does not choose its scope.
    let own = line("action.request", json!({"action": {"tool": "rm"}, "scope": "subtask-b"}));
    assert_eq!(code(&place, "r", own.clone()).unwrap().0, "E0209");
    let ran = place.run_with(&["commit", "--run", "r", "--scope", "subtask-b"], own.as_bytes());
    assert!(ran.code == 5 && ran.stderr.contains("E0408"), "{}", ran.stderr);
    let (code, _) = commit(&place, "r", &["--as", "runtime", "--scope", "subtask-c"], &[own]);
    assert_eq!(code, 5);
    place.ok(&["verify", "r", "--replay"]);
}
