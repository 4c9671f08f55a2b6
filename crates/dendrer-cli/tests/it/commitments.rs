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
    assert_eq!((&item["status"], &item["owner"]), (&json!("active"), &json!("agent")));
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
            let unjudged = if stage == "3" { no } else { yes };
            assert_eq!((code, what), (5, vec![yes, no, yes, no, unjudged, no]), "{answer}");
            for (at, id) in [(1, "C1"), (3, "C2"), (5, "C1")] {
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
        if stage < "3" {
            assert_eq!(items[4]["anomalies"][0]["kind"], "cannot_be_judged", "{}", items[4]);
        }
        // Replay judges again, and comes to the same records.
        place.ok(&["verify", "r", "--replay"]);
        place.ok(&["replay", "r"]);
    }
}

/// C-80, and closing: who has not the rank closes nothing, at any stage.
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
            let (code, answer) = commit(&place, "r", &[], &[line("plan.update", lists)]);
            let reason = &answer["items"][0]["reason"];
            assert_eq!((code, &reason["code"], &reason["commitments"]), (5, &json!("E0455"), &json!(["C1"])));
        }
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
    let touched = json!({"evidence": [{"id": "T", "content": "changed", "touches": ["notes"]}]});
    commit(&place, "r", &["--as", "runtime"], &[line("observation.add", touched)]);
    let (code, answer) = commit(&place, "r", &[], &[relies()]);
    let reason = &answer["items"][0]["reason"];
    assert_eq!(
        (code, &reason["code"], &reason["commitments"]),
        (5, &json!("E0453"), &json!(["P1"])),
        "{answer}"
    );
    // With newer support it is active again.
    let again = json!({"evidence": [{"id": "T2", "content": "read again"}],
        "edges": [{"edge": "supports", "from": "T2", "to": "P1"}]});
    commit(&place, "r", &["--as", "runtime"], &[line("observation.add", again)]);
    assert_eq!(commit(&place, "r", &[], &[relies()]).0, 0);
}
