//! Contracts that an institution extends, and what they forbid, as somebody meets them at the command line.

use crate::support::Place;

/// An extension that adds what `more` says to the contract of the claims.
fn extension(place: &Place, name: &str, more: &str) -> String {
    let text = format!("target_contract: insurance.claims/v1\n{more}\n");
    std::fs::write(place.path().join(name), text).expect("written");
    name.to_owned()
}

#[test]
fn a_contract_check_tells_the_contract_with_its_extension_and_where_it_was_broken() {
    let place = Place::with_demo();
    let ran = place.run(&["contract", "check", "claims-9"]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.stdout,
        "contract  insurance.claims/v1 (in force for ticks 0..40), + extension e1 from tick 28\n\
         required  OK    0 of 5 transitions lacked what they require   enforced when it was recorded, at stage 2\n  \
           FAIL  over_limit_payout         from tick 33   violated when state.total_paid_to_date > state.policy_limit  (after)\n  \
           OK    unverified_payout\n  \
           OK    deductible_not_confirmed\n  \
           OK    unverified_payee\n\
         1 of 4 violated\n"
    );
    let ran = place.run(&["bisect", "claims-9", "--predicate", "unverified_payee"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("part of the contract from tick 28 on"), "{}", ran.stderr);
    let ran = place.run(&["bisect", "claims-9", "--predicate", "unverified_payee", "--from", "0", "--lift"]);
    assert!(ran.stdout.contains("ORIGIN (exact)  tick 12  approve_payout"), "{}", ran.stdout);
    let ran = place.run(&["bisect", "claims-9@20", "--predicate", "unverified_payee"]);
    assert_eq!((ran.code, ran.stderr.contains("E0106")), (2, true), "{}", ran.stderr);
    assert!(place.ok(&["verify", "claims-9", "--replay"]).contains("40 of 40 states reproduced"));
}

#[test]
fn an_extension_in_the_past_or_of_nobody_is_refused_with_both_reasons() {
    let place = Place::with_demo();
    let file = extension(&place, "kyc2.yaml", "adds_hash_seeds: [deductible_confirmed_at]");
    let before = place.ok(&["log", "claims-9"]);
    let ran =
        place.run(&["contract", "extend", "claims-9", "--file", &file, "--effective-from", "tick", "20"]);
    assert_eq!(ran.code, 5);
    for said in [
        "error[E0421]: an extension cannot take effect in the past (claims-9 is at tick 40)",
        "E0422: an extension needs an approver",
        "nothing was changed",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    assert_eq!(place.ok(&["log", "claims-9"]), before);
    // What is refused stays out of the record, and what is tried with -n, too.
    let good = [
        "contract",
        "extend",
        "claims-9",
        "--file",
        &file,
        "--effective-from",
        "tick",
        "41",
        "--approved-by",
        "j.doe",
    ];
    let tried = place.ok(&[&good[..], &["-n"]].concat());
    assert!(tried.contains("would extend  insurance.claims/v1 with e2, from tick 41 on"), "{tried}");
    assert_eq!(place.ok(&["log", "claims-9"]), before);
    let (_, done) = place.json(&good);
    assert_eq!(done.get("tick").unwrap().as_u64(), Some(41));
    assert!(place.ok(&["contract", "check", "claims-10"]).contains("in force for ticks 0..22)\n"));
    // Its own transition is not governed by it.
    let plan = br#"{"type":"plan.update","agent":"adjuster"}"#;
    assert_eq!(place.run_with(&["commit", "--run", "claims-9"], plan).code, 0);
    let ran = place.run(&["contract", "check", "claims-9"]);
    assert!(
        ran.stdout.contains(", + extension e1 from tick 28, + extension e2 from tick 42\n"),
        "{}",
        ran.stdout
    );
    assert!(place.ok(&["verify", "claims-9", "--replay"]).contains("42 of 42 states reproduced"));
}

#[test]
fn from_its_tick_on_an_extension_is_enforced_and_imports_know_it() {
    let place = Place::with_demo();
    let file = extension(
        &place,
        "late.yaml",
        "types: [request_info]\nadds_required: {payout_amount: {type: string}}\neffective_from_tick: 42\napproved_by: j.doe",
    );
    place.ok(&["contract", "extend", "claims-9", "--file", &file]);
    let ask = r#"{"type":"request_info","agent":"adjuster","intent":{"field":"x"}}"#;
    let ran = place.run_with(&["commit", "--run", "claims-9"], ask.as_bytes());
    assert!(
        ran.stdout.contains("E0411")
            && ran.stdout.contains("payout_amount (it is a number, and must be string)"),
        "{}",
        ran.stdout
    );
    // An import between a run with an extension and one without is one between two contracts.
    place.ok(&["fork", "claims-9", "--from", "tick", "20", "--as", "before"]);
    let ran = place.run(&["cherrypick", "claims-9@33", "--into", "before"]);
    assert_eq!((ran.code, ran.stderr.contains("E0414")), (5, true), "{}", ran.stderr);
}

#[test]
fn where_the_pack_names_approvers_only_their_signature_counts() {
    let place = Place::new();
    place.ok(&["init"]);
    let made = place.ok(&["contract", "keygen", "j.doe", "j.doe.key"]);
    place.ok(&["contract", "keygen", "m.roe", "m.roe.key"]);
    let line = made.lines().last().expect("the line for the pack").to_owned();
    let pack = include_str!("../../../../examples/packs/insurance-claims.yaml");
    std::fs::write(place.path().join("pack.yaml"), format!("{pack}approvers:\n{line}\n")).expect("written");
    std::fs::write(place.path().join("s0.json"), r#"{"claim_id":"c","policy_limit":100}"#).expect("written");
    let plan = br#"{"type":"plan.update","agent":"a"}"#;
    let begun = ["commit", "--run", "r", "--pack", "pack.yaml", "--state", "s0.json", "--stage", "2"];
    assert_eq!(place.run_with(&begun, plan).code, 0);
    let file = extension(
        &place,
        "e.yaml",
        "adds_hash_seeds: [deductible_confirmed_at]\neffective_from_tick: 2\napproved_by: j.doe",
    );
    let extend = ["contract", "extend", "r", "--file", &file];
    let ran = place.run(&extend);
    assert_eq!((ran.code, ran.stderr.contains("E0423")), (5, true), "{}", ran.stderr);
    assert!(ran.stderr.contains("dendrer contract extension"), "the text to sign: {}", ran.stderr);
    let ran = place.run(&[&extend[..], &["--approver-key", "m.roe.key"]].concat());
    assert_eq!((ran.code, ran.stderr.contains("E0423")), (5, true), "{}", ran.stderr);
    let done = place.ok(&[&extend[..], &["--approver-key", "j.doe.key"]].concat());
    assert!(done.contains("approved  by j.doe   signed with their key"), "{done}");
    assert!(place.ok(&["verify", "r", "--replay"]).contains("2 of 2 states reproduced"));
}
