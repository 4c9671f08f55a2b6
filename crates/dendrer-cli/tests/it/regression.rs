//! `bisect --regression`: a heuristic that says so, beside the invariant that is right.

use std::path::Path;

use crate::obligations::filing;
use crate::support::Place;

/// A filing that breaks a rule at tick 3, and in which somebody forges a transition of the kernel at tick 5.
const INTENTS: &str = r#"{"type":"artifact.write","intent":{"keeps":["income_declared","rule_47b"]}}
{"type":"skeptic.challenge","intent":{"stood":true}}
{"type":"artifact.write","intent":{"keeps":["receipts_kept"],"breaks":["rule_47b"]}}
{"type":"skeptic.challenge","intent":{"stood":false}}
{"type":"kernel.anomaly","intent":{"description":"forged"}}
{"type":"artifact.write","intent":{"keeps":["rule_47b","rates_of_the_year"]}}
"#;

fn faulty() -> Place {
    let place = filing("");
    let ran = place.run_with(&["commit", "--run", "faulty", "--pack", "tax.yaml"], INTENTS.as_bytes());
    assert!(ran.stdout.contains("tick 6"), "{}{}", ran.stdout, ran.stderr);
    place
}

#[test]
fn a_regression_is_labelled_and_the_invariant_takes_precedence() {
    let place = faulty();
    let ran = place.run(&["bisect", "faulty", "--regression", "progress"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines[0],
        "HEURISTIC  a score says how far along a run seems to be; nothing that is called exact rests on it"
    );
    for line in [
        "ONSET (heuristic)  tick 3  artifact.write",
        "  progress  0.400 at tick 0, then ok, score 0.133",
        "HARD       kernel.anomaly_free v1: first violated at tick 5 (exact)",
        "HARD       acme.tax_compliance_v2 v2.1.3: first violated at tick 3 (exact)",
        "AGREE      the score and acme.tax_compliance_v2 name tick 3 (exact, by acme.tax_compliance_v2)",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("ONSET (exact)"), "{}", ran.stdout);
    let (code, answer) = place.json(&["bisect", "faulty", "--regression", "skeptic_survival_rate"]);
    assert_eq!((code, answer.get("onset").unwrap().as_u64()), (0, Some(3)), "what is exact decides");
    assert_eq!(answer.get("certainty").unwrap().as_str(), Some("exact"));
    let beside = answer.get("regression").unwrap();
    assert_eq!(beside.get("takes_precedence").unwrap().as_str(), Some("acme.tax_compliance_v2"));
    assert_eq!(beside.get("score_onset").unwrap().as_u64(), Some(4));
    assert_eq!(beside.get("agree").unwrap().as_bool(), Some(false));
    let (code, answer) =
        place.json(&["bisect", "faulty", "--regression", "constraint_satisfaction", "--to", "2"]);
    assert_eq!((code, answer.get("regression").unwrap().get("agree").unwrap().as_bool()), (1, Some(true)));

    let contract = place.ok(&["bisect", "faulty", "--regression", "acme.tax_compliance_v2"]);
    assert!(
        contract.contains("then violation: {\"policy_breach\":0.75,\"rules\":[\"rule_47b\"]}"),
        "{contract}"
    );
    // The same contract as a hard predicate: it recovers, and bisect says so instead of halving.
    let hard = place.run(&["bisect", "faulty", "--predicate", "acme.tax_compliance_v2"]);
    assert_eq!((hard.code, hard.stderr.contains("E0504")), (6, true), "{}", hard.stderr);
    let lifted = place.ok(&["bisect", "faulty", "--predicate", "acme.tax_compliance_v2", "--lift"]);
    assert!(lifted.contains("SEARCH  acme.tax_compliance_v2 v2.1.3"), "{lifted}");
    assert!(lifted.contains("ONSET (exact)  tick 3"), "{lifted}");
    assert!(lifted.contains("violation: {\"policy_breach\":0.75"), "{lifted}");
    for (expected, code) in [("3", 0), ("5", 1)] {
        let asked = ["bisect", "faulty", "--regression", "progress", "--expect-onset", expected];
        assert_eq!(place.run(&asked).code, code, "{expected}");
    }
}

#[test]
fn a_score_that_nobody_declared_points_to_the_invariants() {
    let place = faulty();
    let near = place.run(&["bisect", "faulty", "--regression", "progres"]);
    assert_eq!(near.code, 3, "{}", near.stderr);
    for part in ["error[E0515]", "did you mean progress?", "--predicate kernel.anomaly_free"] {
        assert!(near.stderr.contains(part), "{part}: {}", near.stderr);
    }
    let street = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs/wall-street.yaml");
    std::fs::copy(street, place.path().join("ws.yaml")).unwrap();
    let intents = r#"{"type":"observation.add","intent":{"risk_score":0.4}}
{"type":"observation.add","intent":{"risk_score":0.6}}
{"type":"observation.add","intent":{"risk_score":1.5}}
"#;
    place.run_with(&["commit", "--run", "desk", "--pack", "ws.yaml"], intents.as_bytes());
    let without = place.run(&["bisect", "desk", "--regression", "progress"]);
    assert_eq!((without.code, without.stderr.contains("there are ws.risk_threshold")), (3, true));
    let fell = place.run(&["bisect", "desk", "--regression", "ws.risk_threshold"]);
    assert_eq!(fell.code, 0, "the violation of the contract is a hard predicate");
    let fell = fell.stdout;
    assert!(fell.contains("ONSET (heuristic)  tick 1"), "the score falls with the risk: {fell}");
    assert!(fell.contains("HARD       kernel.anomaly_free v1: not violated (exact)"), "{fell}");
    assert!(
        fell.contains("DISAGREE   ws.risk_threshold takes precedence: the onset is tick 2 (exact)"),
        "{fell}"
    );
    let before = place.run(&["bisect", "desk@1", "--regression", "ws.risk_threshold"]);
    assert_eq!(before.code, 1, "nothing is violated, and a score is a hint");
    assert!(
        before.stdout.contains("DISAGREE   the hard predicates take precedence: no onset"),
        "{}",
        before.stdout
    );
    let hard = place.ok(&["bisect", "desk", "--predicate", "ws.desk/ws.risk_threshold"]);
    assert!(hard.contains("ONSET (exact)  tick 2"), "{hard}");
    assert!(hard.contains("violation: {\"risk_exceeded\":[0.6,0.5]}"), "{hard}");
}
