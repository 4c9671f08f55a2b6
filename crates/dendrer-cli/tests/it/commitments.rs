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
