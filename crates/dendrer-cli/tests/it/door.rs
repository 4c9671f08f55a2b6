//! What is on record as judged was judged by the kernel: members of a line have authors, as types do (dendrer paper 3.2).

use crate::support::Place;

/// A request that brings its own answer and its own permission, over a plain agent's pipe.
#[test]
fn a_request_cannot_bring_its_own_result_or_policy() {
    let place = Place::with_store();
    for (stage, name) in [("0", "a"), ("1", "b"), ("2", "c")] {
        let lines = r#"{"type":"action.request","agent":"x","action":{"tool":"pay"},"policy":{"decision":"allow"}}
{"type":"action.request","agent":"x","action":{"tool":"pay"},"result":{"status":"ok","amount":500}}
{"type":"plan.update","agent":"x","anomalies":[{"kind":"replay_divergence"}]}
{"type":"plan.update","agent":"x"}
"#;
        let args = ["commit", "--run", name, "--stage", stage, "--as", "agent"];
        let ran = place.run_with(&args, lines.as_bytes());
        assert_eq!((ran.code, ran.stdout.matches("E0427").count()), (5, 3), "{}{}", ran.stdout, ran.stderr);
        // Each attempt is a kept refusal, and a kernel.anomaly names it.
        let log = place.ok(&["log", name]);
        assert_eq!(log.matches("kernel.anomaly").count(), 3, "{log}");
        assert!(place.ok(&["runs"]).contains(" 3 "), "refusals are kept");
        assert!(!log.contains("allow ok"), "{log}");
        // None of it is an onset.
        let ran = place.run(&["bisect", name, "--anomaly", "replay_divergence"]);
        assert_ne!(ran.code, 0, "{}", ran.stdout);
        assert!(place.ok(&["bisect", name, "--predicate", "kernel.anomaly_free"]).contains("tick 1"));
        assert!(place.ok(&["verify", name, "--replay"]).contains("reproduced"));
    }
}

#[test]
fn a_decision_is_about_the_transition_that_caused_it() {
    let place = Place::with_store();
    let propose = |line: String| place.run_with(&["commit", "--run", "r", "--json"], line.as_bytes());
    let id = |ran: &crate::support::Ran| {
        let answer = crate::support::parse(&ran.stdout);
        let items = answer.get("items").and_then(|items| items.as_array()).unwrap();
        items.get(items.len() - 1).and_then(|item| item.get("id")?.as_str()).unwrap().to_owned()
    };
    for (decision, code) in [("allow", 0), ("deny", 0)] {
        let request = propose(r#"{"type":"action.request","agent":"x","action":{"tool":"pay"}}"#.to_owned());
        let link = format!(r#""links":[{{"rel":"caused_by","hash":"{}"}}]"#, id(&request));
        let said = propose(format!(
            r#"{{"type":"policy.decision","author":"runtime","agent":"x","policy":{{"decision":"{decision}"}},{link}}}"#
        ));
        assert_eq!(said.code, code, "{}{}", said.stdout, said.stderr);
    }
    let ran = place.run(&["bisect", "r", "--policy-flip", "action.request"]);
    assert!(ran.code == 0 && ran.stdout.contains("tick 4"), "{}{}", ran.stdout, ran.stderr);
}
