//! The forms of the dendrer paper: its events out and in.

use dendrer_object::Value;

use crate::support::{Place, written};

fn events(place: &Place, run: &str) -> Vec<Value> {
    let text = place.ok(&["export", run, "--format", "paper"]);
    text.lines().map(written).collect()
}

fn of_type<'e>(events: &'e [Value], name: &str) -> &'e Value {
    let is_it = |event: &&Value| event.get("transition_type") == Some(&Value::from(name));
    events.iter().find(is_it).unwrap_or_else(|| panic!("no {name}"))
}

fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    let found = path.iter().try_fold(value, |value, name| value.get(name));
    found.and_then(Value::as_str).unwrap_or_else(|| panic!("{path:?}: {value}"))
}

/// Dendrer paper 4.1: the marker has `parent_run_id`, `parent_tick` and `fork_reason`; 4.4: an intent has its context hash, an
/// extension its payload.
#[test]
fn an_event_says_all_that_its_record_says() {
    let place = Place::with_demo();
    place.ok(&["cherrypick", "financial-agent-A@9", "--into", "financial-agent-C"]);
    let forked = events(&place, "logistics-fix-1");
    let fork = of_type(&forked, "run.fork");
    assert_eq!(text(fork, &["parent_run_id"]), "logistics-run-47");
    assert_eq!(fork.get("parent_tick").and_then(Value::as_u64), Some(21));
    assert_eq!(text(fork, &["fork_reason"]), "use the verified feed");
    let claims = events(&place, "claims-9");
    let violation = of_type(&claims, "predicate.violation").get("violations").unwrap();
    assert_eq!(text(violation.as_array().unwrap().get(0).unwrap(), &["id"]), "over_limit_payout");
    let extension = of_type(&claims, "policy.contract_extension");
    assert_eq!(text(extension, &["payload", "target_contract"]), "insurance.claims/v1");
    assert_eq!(text(extension, &["payload", "approved_by"]), "j.doe");
    let payout = of_type(&claims, "approve_payout");
    assert!(text(payout, &["intent_context_hash"]).starts_with("sha256:"), "{payout}");
    assert_eq!(
        (text(payout, &["contract", "id"]), text(payout, &["contract", "version"])),
        ("insurance.claims", "v1")
    );
    let picked = events(&place, "financial-agent-C");
    assert_eq!(
        text(of_type(&picked, "run.cherrypick"), &["cherrypick", "source_run_id"]),
        "financial-agent-A"
    );
    assert_eq!(text(&picked[0], &["contract", "id"]), "acme.financial");
}

/// Dendrer paper, appendix B: the event is the canonical form of a transition, so it can be read again.
#[test]
fn every_demo_run_comes_back_from_the_papers_form() {
    let place = Place::with_demo();
    let (_, answer) = place.json(&["runs"]);
    let runs: Vec<String> = answer
        .get("items")
        .and_then(Value::as_array)
        .unwrap()
        .iter()
        .map(|run| text(run, &["name"]).to_owned())
        .collect();
    assert!(runs.len() > 10);
    for run in runs {
        let source = events(&place, &run);
        let file = format!("{run}.jsonl");
        place.ok(&["export", &run, "--format", "paper", "-o", &file]);
        let back = format!("{run}-back");
        let ran = place.run(&["import", "--kind", "paper", &file, "--run", &back]);
        assert_eq!(ran.code, 0, "{run}: {}", ran.stderr);
        for (said, again) in source.iter().zip(events(&place, &back)) {
            for (name, value) in said.as_object().unwrap().iter() {
                match &**name {
                    "id" | "prev" | "ts" | "run_id" | "chain_hash" | "state_root" => {}
                    // No record of the kernel is made from a file.
                    "author" if !["agent", "user"].contains(&text(said, &["author"])) => {
                        assert_eq!(text(&again, &["author"]), "runtime", "{run}: {said}");
                    }
                    _ => assert_eq!(Some(value), again.get(name), "{run}: {name} of {said}"),
                }
            }
        }
        assert_eq!(source.len(), events(&place, &back).len(), "{run}");
        place.ok(&["verify", &back, "--replay"]);
    }
    let records = place.ok(&["log", "claims-9-back", "--type", "predicate.violation", "--jsonl"]);
    assert!(!records.contains("\"author\":\"kernel\""), "{records}");
}

/// An edited event is found by the hash of the paper (3.1) before anything is recorded.
#[test]
fn an_edited_event_is_not_imported() {
    let place = Place::with_demo();
    let text = place.ok(&["export", "trip-planner-a", "--format", "paper"]);
    std::fs::write(
        place.path().join("edited.jsonl"),
        text.replacen("\"confidence\":0.9", "\"confidence\":1", 1),
    )
    .unwrap();
    let ran = place.run(&["import", "--kind", "paper", "edited.jsonl", "--run", "edited"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("chain_hash"), "{}", ran.stderr);
    assert_ne!(place.run(&["log", "edited"]).code, 0);
}

/// Dendrer paper 4.6: `Ok(score: float[0.0..1.0])`.
#[test]
fn a_composite_score_is_a_number_from_0_to_1() {
    let place = Place::with_store();
    let pack = |name: &str, weights: &str| {
        let text = format!(
            "name: acme.weighed\nversion: v1\nprogress:\n  goals: {{filed: }}\n  constraints: {{cheap: {{holds: size(state) < 9}}}}\n  \
             challenges: {{type: anomaly.flag, survived: t.intent.stood, last: 5}}\n  weights: {{{weights}}}\n"
        );
        std::fs::write(place.path().join(name), text).unwrap();
    };
    pack("over.yaml", "structural_completion: 0.9, constraint_satisfaction: 0.9, skeptic_survival_rate: 0");
    let ran = place.run(&["pack", "check", "./over.yaml"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(
        format!("{}{}", ran.stdout, ran.stderr).contains("a score is a number from 0 to 1"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    pack("below.yaml", "structural_completion: 0.9, constraint_satisfaction: 0, skeptic_survival_rate: 0.1");
    let line = "{\"type\":\"anomaly.flag\",\"intent\":{\"stood\":false}}\n";
    let ran = place.run_with(&["commit", "--run", "r", "--pack", "./below.yaml"], line.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = place.run(&["bisect", "r", "--regression", "progress"]);
    assert!(!ran.stdout.contains("-0.1"), "{}", ran.stdout);
}

/// Dendrer paper 4.6: `Uncertain` is an answer of a progress contract, and the note says which part could not be decided.
#[test]
fn an_uncertain_contract_is_worded_by_its_cause() {
    let place = Place::with_store();
    let text = "name: acme.doubt\nversion: v1\nreducer: delta/1\nstate:\n  risk: {init: 0.0}\nprogress_contracts:\n  - id: acme.doubt.risk\n    \
                version: v1\n    score: \"1.0\"\n    violation: state.risk > 1.0\n    uncertain: state.risk == 0.0\n";
    std::fs::write(place.path().join("doubt.yaml"), text).unwrap();
    let line = "{\"type\":\"plan.update\",\"delta\":[{\"set\":\"/risk\",\"value\":0.0}]}\n";
    let ran = place.run_with(&["commit", "--run", "r", "--pack", "./doubt.yaml"], line.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = place.run(&["bisect", "r", "--predicate", "acme.doubt.risk"]);
    assert_eq!(ran.code, 6, "{}{}", ran.stdout, ran.stderr);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!said.contains("mend the expression"), "{said}");
    assert!(said.contains("`uncertain`"), "{said}");
}

/// Dendrer paper 4.4: a TaskPack has goal, policy, tools and contracts. Its policy is in force as rules of a file are, its digest
/// binds it, and both questions on packs show it.
#[test]
fn a_pack_has_a_policy_and_is_shown_whole() {
    let place = Place::with_store();
    let text = |most: u64| {
        format!(
            "name: acme.spend\nversion: v1\ngoal: stay under the limit\nreducer: delta/1\nstate:\n  spent: {{init: 0}}\npolicy:\n  - {{id: limit, \
             holds: state.spent <= {most}}}\n"
        )
    };
    std::fs::write(place.path().join("spend.yaml"), text(600)).unwrap();
    let line = "{\"type\":\"plan.update\",\"delta\":[{\"set\":\"/spent\",\"value\":700}]}\n";
    let ran = place.run_with(&["commit", "--run", "r", "--pack", "./spend.yaml"], line.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = place.run(&["bisect", "r", "--predicate", "kernel.policy_compliant"]);
    assert!(ran.stdout.contains("ONSET (exact)  tick 1") && ran.code == 0, "{} {}", ran.code, ran.stdout);
    for verb in [["pack", "show", "r"], ["contract", "show", "r"]] {
        let shown = place.ok(&verb);
        assert!(shown.contains("state.spent <= 600"), "{verb:?}: {shown}");
        assert!(shown.contains("stay under the limit"), "{verb:?}: {shown}");
    }
    let digest =
        |place: &Place| place.json(&["pack", "show", "./spend.yaml"]).1.get("digest").cloned().unwrap();
    let before = digest(&place);
    std::fs::write(place.path().join("spend.yaml"), text(800)).unwrap();
    assert_ne!(before, digest(&place));
    std::fs::write(place.path().join("spend.yaml"), text(600).replace("state.spent <=", "state.spent <= <"))
        .unwrap();
    assert_eq!(place.run(&["pack", "check", "./spend.yaml"]).code, 1);
}

/// Dendrer paper, appendix E.1: in replay a tool that reads may be asked again; one that acts never is.
#[test]
fn only_a_tool_that_reads_is_executed_again() {
    let place = Place::with_demo();
    let before = place.ok(&["log", "financial-agent-A", "--jsonl"]);
    let same = "broker.quote=cat > params.json; echo '{\"price\":60,\"symbol\":\"BSL\"}'";
    let (code, answer) = place.json(&["replay", "financial-agent-A", "--exec-read", same, "--to", "5"]);
    let made = answer.get("reread").and_then(Value::as_array).unwrap();
    assert_eq!((code, made.len()), (0, 1), "{answer}");
    assert_eq!(made.get(0).and_then(|one| one.get("same")), Some(&Value::from(true)), "{answer}");
    assert_eq!(std::fs::read_to_string(place.path().join("params.json")).unwrap(), "{\"symbol\":\"BSL\"}");
    let ran = place.run(&["replay", "financial-agent-A", "--exec-read", "broker.quote=echo 61"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("DIFFERS  tick 4  broker.quote"), "{}", ran.stdout);
    let ran = place.run(&["replay", "financial-agent-A", "--exec-read", "broker.quote=exit 3"]);
    assert!(ran.code == 1 && ran.stdout.contains("FAILED"), "{}", ran.stdout);
    // Effectful, and not declared at all.
    for tool in ["broker.order", "broker.quotes"] {
        let command = format!("{tool}=touch acted");
        let (code, answer) = place.json(&["replay", "financial-agent-A", "--exec-read", &command]);
        assert_eq!((code, text(&answer, &["code"])), (2, "E0704"), "{answer}");
    }
    assert!(!place.path().join("acted").exists());
    assert_eq!(before, place.ok(&["log", "financial-agent-A", "--jsonl"]));
}
