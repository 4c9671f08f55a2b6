//! Imports from the command line: what is refused and why, what is let in, and that nothing else happens.

use std::path::Path;

use crate::support::{Place, strip};

const STATES: [(&str, &str); 3] = [
    (
        "financial-agent-A",
        r#"{"cash_balance":100000,"risk_limit":0.9,"risk_threshold":0.95,"risk_score":0.4,"position_size":5000,"market_volatility_index":17.2}"#,
    ),
    (
        "financial-agent-B",
        r#"{"cash_balance":500,"risk_limit":0.3,"risk_threshold":0.2,"risk_score":0.1,"position_size":200}"#,
    ),
    (
        "financial-agent-C",
        r#"{"cash_balance":9000,"risk_limit":0.9,"risk_threshold":0.95,"risk_score":0.3,"position_size":100}"#,
    ),
];

const TRADE: &[u8] = br#"{"type":"execute_transaction","agent":"trader","intent":{"description":"buy","declared_deps":["market_volatility_index"]},"action":{"tool":"broker.order","params":{"amount":1200,"shares":20}}}"#;

fn pack(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs").join(name);
    path.canonicalize().expect("a pack").display().to_string()
}

fn traders() -> Place {
    let place = Place::with_store();
    let pack = pack("financial.yaml");
    let plan = br#"{"type":"plan.update","agent":"trader","intent":{"description":"begin"}}"#;
    for (run, state) in STATES {
        std::fs::write(place.path().join("s0.json"), state).unwrap();
        let args = ["commit", "--run", run, "--stage", "2", "--pack", &pack, "--state", "s0.json"];
        assert_eq!(place.run_with(&args, plan).code, 0);
    }
    assert_eq!(place.run_with(&["commit", "--run", "financial-agent-A"], TRADE).code, 0);
    place
}

#[test]
fn a_cherry_pick_is_refused_where_the_target_lacks_what_it_was_decided_on() {
    let place = traders();
    let before = place.json(&["log", "financial-agent-B"]).1;
    let pick = ["cherrypick", "--run", "financial-agent-A", "--tick", "2", "--into", "financial-agent-B"];
    let ran = place.run(&pick);
    assert_eq!(ran.code, 5);
    let hash = ran.stdout.lines().find_map(|line| line.strip_prefix("hash       sha256:")).unwrap();
    assert_eq!(
        ran.stdout.replace(&hash[..12], "<hash>"),
        "contract   acme.financial/v1 on both sides   OK\n\
         requires   cash_balance, position_size, risk_limit, risk_score, risk_threshold   (from the contract, not from the model)\n\
         source     financial-agent-A@2, state before it\n\
         hash       sha256:<hash>   made again from the source state, covers 5 required fields   OK\n\
         target     financial-agent-B@1\n\
         OK    cash_balance    source 100000   target 500  present\n\
         OK    position_size   source 5000   target 200    present\n\
         OK    risk_limit      source 0.9   target 0.3     present\n\
         OK    risk_score      source 0.4   target 0.1     present\n\
         FAIL  risk_threshold  source 0.95   target 0.2    must match\n\
         CONTEXT VIOLATION - IMPORT REJECTED\n"
    );
    assert_eq!(
        ran.stderr,
        "error[E0412]: execute_transaction was justified by risk_threshold; the target has not the same\n\
         \x20 | risk_threshold source 0.95   target 0.2\n\
         note: risk: SILENT_DISASTER_PREVENTED\n\
         note: decide again on what the target has, or give the target what the source had and retry\n\
         note: no state was modified and no transition was committed; the refusal is kept beside the run\n\
         help: dendrer fork --run financial-agent-A --from tick 1 --set risk_threshold=0.2 --although 'to decide on what financial-agent-B has'\n\
         help: dendrer fork --run financial-agent-B --from tip --set risk_threshold=0.95 --as financial-agent-B-retry\n\
         help: dendrer cherrypick financial-agent-A@2 --into financial-agent-B-retry\n\
         \x20     see: dendrer explain E0412\n"
    );
    let after = place.json(&["log", "financial-agent-B"]).1;
    assert_eq!(before.get("items"), after.get("items"), "no transition was committed");
    let refusals = place.json(&["log", "financial-agent-B", "--refusals"]).1;
    assert_eq!(refusals.get("items").unwrap().as_array().unwrap().len(), 2);
    // The suggested command works: the decision can be taken again under the target's threshold.
    place.ok(&[
        "fork",
        "--run",
        "financial-agent-A",
        "--from",
        "tick",
        "1",
        "--set",
        "risk_threshold=0.2",
        "--although",
        "to decide on what financial-agent-B has",
    ]);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
    // There is no way around it.
    let forced = place.run(&[&pick[..], &["--force"]].concat());
    assert_eq!(forced.code, 2);
}

#[test]
fn a_cherry_pick_is_let_in_with_a_warning_and_makes_its_own_change() {
    let place = traders();
    let pick = ["cherrypick", "financial-agent-A@2", "--into", "financial-agent-C", "--reason", "same view"];
    let (code, checked) = place.json(&[&pick[..], &["-n"]].concat());
    assert_eq!((code, checked.get("allowed").unwrap().as_bool()), (0, Some(true)));
    assert_eq!(place.json(&["log", "financial-agent-C"]).1.get("total").unwrap().as_u64(), Some(1));
    let ran = place.run(&pick);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("IMPORTED   as financial-agent-C@3, behind its marker run.cherrypick at tick 2")
    );
    assert!(ran.stdout.ends_with(
        "WARN       advisory dependency market_volatility_index is absent in the target (told, and no reason to refuse)\n"
    ));
    assert!(place.ok(&["log", "financial-agent-C"]).starts_with(
        " tick  agent   type                 summary\n\
         \x20   1  trader  plan.update          \"begin\"\n\
         \x20   2  kernel  run.cherrypick       from financial-agent-A@2 \"same view\"\n\
         \x20   3  trader  execute_transaction  broker.order {\"amount\":1200,\"shares\":20} \"buy\"\n\
         3 of 3 transitions, 2 agents, 0 anomalies\n"
    ));
    // By the rules of the target, on the target's state.
    let (_, state) = place.json(&["state", "financial-agent-C"]);
    let state = state.get("value").unwrap();
    assert_eq!(state.get("cash_balance").unwrap().as_f64(), Some(7800.0));
    assert_eq!(state.get("position_size").unwrap().as_f64(), Some(120.0));
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
    let shown = place.json(&["show", "financial-agent-C@3", "--provenance"]).1;
    assert!(shown.to_string().contains("picked_from"), "{shown}");
}

#[test]
fn the_traders_of_the_demo_answer_as_printed() {
    let place = Place::with_demo();
    let ran = place.run(&[
        "cherrypick",
        "--run",
        "financial-agent-A",
        "--tick",
        "23",
        "--into",
        "financial-agent-B",
    ]);
    assert_eq!(ran.code, 5);
    assert_eq!(
        ran.stdout,
        "contract   acme.financial/v1 on both sides   OK\n\
         requires   cash_balance, position_size, risk_limit, risk_score, risk_threshold   (from the contract, not from the model)\n\
         source     financial-agent-A@23, state before it\n\
         hash       sha256:c605a969a841   made again from the source state, covers 5 required fields   OK\n\
         target     financial-agent-B@18\n\
         OK    cash_balance    source 97600   target 460  present\n\
         OK    position_size   source 5040   target 201   present\n\
         OK    risk_limit      source 0.9   target 0.15   present\n\
         OK    risk_score      source 0.11   target 0.12  present\n\
         FAIL  risk_threshold  source 0.95   target 0.2   must match\n\
         CONTEXT VIOLATION - IMPORT REJECTED\n"
    );
    assert!(ran.stderr.contains("risk: SILENT_DISASTER_PREVENTED"));
    let ran = place.run(&[
        "cherrypick",
        "--run",
        "financial-agent-A",
        "--tick",
        "9",
        "--into",
        "financial-agent-C",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("IMPORTED   as financial-agent-C@32, behind its marker run.cherrypick at tick 31")
    );
    assert!(ran.stdout.contains("WARN       advisory dependency market_volatility_index is absent"));
}

#[test]
fn what_cannot_be_checked_is_not_imported() {
    let place = traders();
    let line = br#"{"type":"plan.update","agent":"trader","intent":{"description":"begin"}}"#;
    place.run_with(&["commit", "--run", "bare"], line);
    let pack = pack("financial.yaml");
    std::fs::write(place.path().join("s0.json"), STATES[0].1).unwrap();
    let args = ["commit", "--run", "unenforced", "--pack", &pack, "--state", "s0.json"];
    assert_eq!(place.run_with(&args, TRADE).code, 0);
    let text = std::fs::read_to_string(&pack).unwrap();
    std::fs::write(place.path().join("v2.yaml"), text.replace("version: v1", "version: v2")).unwrap();
    let stricter = text.replace("      position_size: present\n", "");
    assert_ne!(stricter, text);
    std::fs::write(place.path().join("same.yaml"), stricter).unwrap();
    for (run, pack) in [("newer", "v2.yaml"), ("same", "same.yaml")] {
        let args = ["commit", "--run", run, "--stage", "2", "--pack", pack, "--state", "s0.json"];
        assert_eq!(place.run_with(&args, line).code, 0);
    }
    for (from, into, code, words) in [
        ("financial-agent-A@2", "newer", 5, "E0414"),
        ("financial-agent-A@2", "same", 5, "E0414"),
        ("financial-agent-A@2", "bare", 5, "contracts differ: source acme.financial/v1, target none"),
        ("financial-agent-A@1", "financial-agent-C", 5, "E0415"),
        ("unenforced@1", "financial-agent-C", 6, "E0416"),
        ("financial-agent-A@0", "financial-agent-C", 5, "E0418"),
        ("financial-agent-A@9", "financial-agent-C", 3, "E0102"),
        ("financial-agent-A", "financial-agent-C", 2, "say once which tick"),
        ("financial-agent-A@2", "nobody", 3, "E0101"),
    ] {
        let ran = place.run(&["cherrypick", from, "--into", into]);
        assert_eq!(ran.code, code, "{from} {into}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{from} {into}: {}", ran.stderr);
        if words == "E0415" {
            assert!(
                ran.stderr.contains("help: dendrer contract show financial-agent-A@0\n"),
                "{}",
                ran.stderr
            );
        }
    }
    assert!(
        place
            .run(&["cherrypick", "financial-agent-A@2", "--into", "newer", "-n"])
            .stderr
            .contains("fields were not compared")
    );
    // Layer 1: without what the contract requires, the door is closed whatever the model says.
    std::fs::write(place.path().join("poor.json"), r#"{"cash_balance":1,"risk_limit":null}"#).unwrap();
    let args = ["commit", "--run", "poor", "--stage", "2", "--pack", &pack, "--state", "poor.json"];
    let ran = place.run_with(&args, TRADE);
    assert_eq!(ran.code, 5);
    assert!(ran.stdout.contains("E0411 acme.financial/v1 requires for execute_transaction what the state does not have: position_size (it is not there), risk_limit (it is null), risk_score (it is not there), risk_threshold (it is not there)"), "{}", ran.stdout);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// Two claims under the contract of the paper's appendix G, with its faults corrected.
fn claims() -> Place {
    let place = Place::with_store();
    let pack = pack("insurance-claims.yaml");
    let claims = [
        (
            "claims-9",
            r#"{"claim_id":"c-9","policy_limit":10000,"payout_amount":6000,"proof_of_loss_url":"https://example.org/p9"}"#,
        ),
        (
            "claims-10",
            r#"{"claim_id":"c-10","policy_limit":10000,"payout_amount":6000,"proof_of_loss_url":"https://example.org/p9"}"#,
        ),
    ];
    let confirmed = br#"{"type":"observation.add","agent":"clerk","intent":{"deductible_confirmed_at":"2026-02-23T17:21:05+01:00"}}"#;
    for (run, state) in claims {
        std::fs::write(place.path().join("s0.json"), state).unwrap();
        let args = ["commit", "--run", run, "--stage", "2", "--pack", &pack, "--state", "s0.json"];
        assert_eq!(place.run_with(&args, confirmed).code, 0);
    }
    let lines: &[&[u8]] = &[
        br#"{"type":"approve_payout","agent":"clerk","intent":{"description":"first part"}}"#,
        br#"{"type":"observation.add","agent":"clerk","intent":{"payout_amount":4400,"missing_field_name":"receipt"}}"#,
        br#"{"type":"approve_payout","agent":"clerk","intent":{"description":"the rest"}}"#,
        br#"{"type":"request_info","agent":"clerk"}"#,
    ];
    assert_eq!(place.run_with(&["commit", "--run", "claims-9"], &lines.join(&b'\n')).code, 0);
    place
}

#[test]
fn an_approval_of_one_claim_is_no_approval_of_another() {
    let place = claims();
    let ran = place.run(&["cherrypick", "--run", "claims-9", "--tick", "2", "--into", "claims-10"]);
    assert_eq!(ran.code, 5);
    assert!(
        ran.stderr.contains("approve_payout was justified by claim_id; the target has not the same"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains(r#"claim_id source "c-9"   target "c-10""#), "{}", ran.stderr);
    assert_eq!(place.json(&["log", "claims-10"]).1.get("total").unwrap().as_u64(), Some(1));
}

#[test]
fn a_payout_over_the_limit_is_found_at_its_tick() {
    let place = claims();
    let checked = place.run(&["contract", "check", "claims-9"]);
    assert_eq!(checked.code, 1);
    assert_eq!(
        checked.stdout,
        "contract  insurance.claims/v1 (in force for ticks 0..6)\n\
         required  OK    0 of 3 transitions lacked what they require   enforced when it was recorded, at stage 2\n\
         \x20 FAIL  over_limit_payout         from tick 4   violated when has(state.policy_limit) && state.total_paid_to_date > state.policy_limit  (after)\n\
         \x20 OK    unverified_payout\n\
         \x20 OK    deductible_not_confirmed\n\
         1 of 3 violated\n"
    );
    assert!(checked.stderr.contains("help: dendrer bisect claims-9 --predicate over_limit_payout\n"));
    let (code, answer) = place.json(&["bisect", "claims-9", "--predicate", "over_limit_payout"]);
    assert_eq!((code, answer.get("onset").unwrap().as_u64()), (0, Some(4)));
    assert_eq!(place.run(&["contract", "check", "claims-9", "--to", "tick", "3"]).code, 0);
    assert_eq!(place.run(&["contract", "check", "claims-10"]).code, 0);
    let (_, checked) = place.json(&["contract", "check", "claims-9", "--type", "request_info"]);
    assert_eq!(checked.get("governed").unwrap().as_u64(), Some(1));
    // A time without an offset is none.
    let vague = br#"{"type":"observation.add","agent":"clerk","intent":{"deductible_confirmed_at":"2026-02-23T17:21:05"}}
{"type":"approve_payout","agent":"clerk"}"#;
    let ran = place.run_with(&["commit", "--run", "claims-10"], vague);
    assert!(
        ran.stdout.contains("deductible_confirmed_at (it is a string, and must be a time with its offset"),
        "{}",
        ran.stdout
    );
}

/// Below stage 2 nothing is refused; what would have been is told afterwards, exactly.
#[test]
fn what_a_contract_would_have_refused_is_told() {
    let place = Place::with_store();
    let state =
        r#"{"cash_balance":100,"position_size":1,"risk_limit":null,"risk_score":0.1,"risk_threshold":0.5}"#;
    std::fs::write(place.path().join("s0.json"), state).unwrap();
    let pack = pack("financial.yaml");
    let args = ["commit", "--run", "loose", "--pack", &pack, "--state", "s0.json"];
    assert_eq!(place.run_with(&args, TRADE).code, 0);
    let checked = place.run(&["contract", "check", "loose"]);
    assert_eq!(checked.code, 1);
    assert!(checked.stdout.contains("required  FAIL  1 of 1 transition lacked what they require   not enforced when it was recorded, at stage 1\n  tick 1  execute_transaction  risk_limit: it is null\n"), "{}", checked.stdout);
    assert!(checked.stdout.contains("FAIL  negative_balance"), "{}", checked.stdout);
    let (_, json) = place.json(&["contract", "check", "loose"]);
    assert_eq!(
        json.get("lacking").unwrap().to_string(),
        r#"[{"fields":[{"name":"risk_limit","why":"it is null"}],"tick":1,"type":"execute_transaction"}]"#
    );
    let (code, error) = place.json(&["contract", "check", "nobody"]);
    assert_eq!((code, error.get("code").unwrap().as_str()), (3, Some("E0101")));
}

/// A refused import is not let in by way of a fork that sets what is lacking and takes the decision along.
#[test]
fn a_fork_launders_no_decision() {
    let place = Place::with_demo();
    let fork = [
        "fork",
        "--run",
        "financial-agent-A",
        "--from",
        "tick",
        "22",
        "--set",
        "risk_threshold=0.2",
        "--replay-rest",
        "--as",
        "laundered",
    ];
    let forked = place.ok(&fork);
    assert!(forked.contains("re-applied nothing of the parent\nstopped    before parent tick 23: it was decided on risk_threshold 0.95, here it is 0.2\n"), "{forked}");
    assert_eq!(
        place.run(&["cherrypick", "laundered@24", "--into", "financial-agent-B"]).code,
        3,
        "there is no such tick"
    );
    let place = claims();
    let forked =
        place.ok(&["fork", "claims-9", "--from", "0", "--set", "claim_id=\"c-10\"", "--replay-rest"]);
    assert!(
        forked.contains(
            "stopped    before parent tick 2: it was decided on claim_id \"c-9\", here it is \"c-10\""
        ),
        "{forked}"
    );
}

#[test]
fn an_import_is_not_imported_on() {
    let place = Place::with_demo();
    place.ok(&["cherrypick", "financial-agent-A@9", "--into", "financial-agent-C"]);
    for (tick, words) in [
        ("financial-agent-C@32", "it was imported itself"),
        ("financial-agent-C@31", "written by the kernel"),
    ] {
        let ran = place.run(&["cherrypick", tick, "--into", "financial-agent-B"]);
        assert_eq!(
            (ran.code, ran.stderr.contains("E0418"), ran.stderr.contains(words)),
            (5, true, true),
            "{}",
            ran.stderr
        );
    }
}

/// What a pack says must never happen is part of its contract.
#[test]
fn an_import_that_brings_a_violation_about_is_refused() {
    let place = traders();
    let dear = br#"{"type":"execute_transaction","agent":"trader","intent":{"description":"buy a lot"},"action":{"tool":"broker.order","params":{"amount":50000,"shares":20}}}"#;
    assert_eq!(place.run_with(&["commit", "--run", "financial-agent-A"], dear).code, 0);
    for dry in [true, false] {
        let mut args = vec!["cherrypick", "financial-agent-A@3", "--into", "financial-agent-C"];
        args.extend(dry.then_some("-n"));
        let ran = place.run(&args);
        assert_eq!((ran.code, ran.stderr.contains("E0419")), (5, true), "{}", ran.stderr);
        assert!(ran.stderr.contains("it would violate negative_balance in the target"), "{}", ran.stderr);
        assert!(ran.stderr.contains("help: dendrer contract check financial-agent-C\n"), "{}", ran.stderr);
    }
    assert_eq!(place.json(&["log", "financial-agent-C"]).1.get("total").unwrap().as_u64(), Some(1));
    assert_eq!(place.run(&["contract", "check", "financial-agent-C"]).code, 0);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// A policy rule that cannot be judged is not latched by the marker of an import, so the rules of the pack do not see it.
#[test]
fn marker_of_an_import_latches_no_rule_that_cannot_be_judged() {
    let place = Place::with_store();
    let pack = "name: p\nversion: v1\nstate:\n  cash: {init: s0.cash}\ntypes: {go: goes}\nrules:\n  - when_type: go\n    steps:\n      - {set: cash, value: \"has(before.policy) ? 1 / 0 : 5\"}\ncontracts:\n  go: {required_state: {cash: {type: number}}}\nviolations:\n  - {id: never, condition: state.cash > 100, bisect_predicate: monotone_lift}\n";
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    std::fs::write(place.path().join("s0.json"), r#"{"cash":5}"#).unwrap();
    std::fs::write(place.path().join("policy.json"), r#"[{"id":"u","holds":"state.missing < 3"}]"#).unwrap();
    let begin = ["--stage", "2", "--pack", "p.yaml", "--state", "s0.json"];
    let go = br#"{"type":"go","agent":"a"}"#;
    assert_eq!(place.run_with(&[&["commit", "--run", "a"][..], &begin].concat(), go).code, 0);
    assert_eq!(
        place
            .run_with(
                &[&["commit", "--run", "b", "--policy", "policy.json"][..], &begin].concat(),
                br#"{"type":"plan.update","agent":"a"}"#
            )
            .code,
        0
    );
    for dry in [true, false] {
        let mut args = vec!["cherrypick", "a@1", "--into", "b"];
        args.extend(dry.then_some("-n"));
        let ran = place.run(&args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    assert_eq!(place.json(&["log", "b"]).1.get("total").unwrap().as_u64(), Some(3));
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// Each tick is judged by what was in force at it: a fork under other terms hides nothing of its parent.
#[test]
fn a_fork_under_other_terms_is_checked_by_those_of_each_tick() {
    let place = claims();
    let pack = std::fs::read_to_string(pack("insurance-claims.yaml")).unwrap();
    let lax = pack.replace(
        "condition: has(state.policy_limit) && state.total_paid_to_date > state.policy_limit",
        "condition: state.total_paid_to_date > 1000000",
    );
    assert_ne!(lax, pack);
    std::fs::write(place.path().join("lax.yaml"), lax).unwrap();
    place.ok(&["fork", "claims-9", "--from", "tip", "--contract", "lax.yaml", "--as", "lax"]);
    let checked = place.run(&["contract", "check", "lax"]);
    assert_eq!(checked.code, 1, "{}", checked.stdout);
    assert!(checked.stdout.starts_with("contract  insurance.claims/v1 (in force for ticks 0..6)\ncontract  insurance.claims/v1 (in force for ticks 7..7)\n"), "{}", checked.stdout);
    assert!(checked.stdout.contains("ticks 0..6\n  FAIL  over_limit_payout"), "{}", checked.stdout);
    assert!(checked.stdout.contains("ticks 7..7\n  OK    over_limit_payout"), "{}", checked.stdout);
    // The same name and version with other words is another contract.
    let ran = place.run(&["cherrypick", "claims-9@2", "--into", "lax", "--again"]);
    assert_eq!((ran.code, ran.stderr.contains("E0414")), (5, true), "{}", ran.stderr);
    // A pack of another engine is no pack to go on under, and a type without a contract is none to ask for.
    std::fs::write(place.path().join("delta.yaml"), "name: d\nversion: v1\nreducer: delta/1\n").unwrap();
    let ran = place.run(&["fork", "claims-9", "--from", "tip", "--contract", "delta.yaml"]);
    assert_eq!((ran.code, ran.stderr.contains("E0118")), (2, true), "{}", ran.stderr);
    assert_eq!(place.run(&["contract", "check", "claims-9", "--type", "aprove_payout"]).code, 5);
    // What is set is a field of the pack, kept as the pack keeps it.
    let ran = place.run(&["fork", "claims-9@2", "--set", "policy_limt=1"]);
    assert!(ran.stderr.contains("did you mean policy_limit?"), "{}", ran.stderr);
    place.ok(&[
        "fork",
        "claims-9@2",
        "--set",
        "policy_limit=12.345",
        "--as",
        "rounded",
        "--although",
        "a trial",
    ]);
    let (_, state) = place.json(&["state", "rounded", "--path", "policy_limit"]);
    assert_eq!(
        state.get("value").unwrap().as_f64(),
        Some(12.35),
        "half to even of the exact value, which lies above"
    );
    // Withheld, nothing is said of it.
    place.ok(&["export", "claims-9", "-o", "less.dnd"]);
    strip(place.path().join("less.dnd"), &["/pack"]);
    let ran = place.run(&["contract", "check", "less.dnd"]);
    assert_eq!((ran.code, ran.stderr.contains("E0311")), (6, true), "{}", ran.stderr);
}

/// Names that a model repeats cost nothing more, and there is an end to how many are looked at.
#[test]
fn a_model_cannot_hold_the_recorder_up() {
    let place = traders();
    let names: Vec<String> = (0..40_000).map(|n| format!("\"n{n}\",\"market_volatility_index\"")).collect();
    let line = format!(
        r#"{{"type":"execute_transaction","agent":"trader","intent":{{"declared_deps":[{}]}},"action":{{"tool":"broker.order","params":{{"amount":1,"shares":1}}}}}}"#,
        names.join(",")
    );
    assert_eq!(place.run_with(&["commit", "--run", "financial-agent-A"], line.as_bytes()).code, 0);
    let shown = place.json(&["show", "financial-agent-A@3", "--raw-json"]).1;
    let context = shown.get("content").and_then(|content| content.get("context")).expect("a context");
    assert_eq!(context.get("advisory").unwrap().to_string(), r#"["market_volatility_index"]"#);
    assert!(context.get("ignored").unwrap().as_array().unwrap().len() <= 256);
}

/// D-166: appendix E.2 of the paper, whose answers programs may wait for.
#[test]
fn the_answers_of_an_import_have_the_shapes_of_the_paper() {
    let place = traders();
    let validation = |into: &str| {
        let args = ["cherrypick", "financial-agent-A@2", "--into", into, "-n"];
        let (code, json) = place.json(&args);
        (code, json.get("validation").unwrap().to_string())
    };
    assert_eq!(validation("financial-agent-C"), (0, r#"{"ok":"context_compatible"}"#.to_owned()));
    assert_eq!(
        validation("financial-agent-B"),
        (5, r#"{"error":"context_violation","intent":"execute_transaction","missing_deps":["risk_threshold"],"risk":"silent_disaster_prevented"}"#.to_owned())
    );
    let bare = ["commit", "--run", "bare", "--stage", "2"];
    assert_eq!(place.run_with(&bare, br#"{"type":"plan.update"}"#).code, 0);
    assert_eq!(validation("bare"), (5, r#"{"error":"contracts_differ"}"#.to_owned()));
}
