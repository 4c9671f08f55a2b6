//! Both reference packs with each pillar of a contract broken in turn (dendrer paper 4.4, appendix G): none of it is committed.

use std::path::Path;

use crate::support::{Place, Ran};

struct Reference {
    file: &'static str,
    state: &'static str,
    line: &'static str,
    /// A required number of the state, with its decimals.
    number: (&'static str, u8),
    /// A field that the runtime alone or a person writes, under a rule for observations that would write it.
    guarded: &'static str,
    /// A violation with `enforce`, and the state in which the line would bring it about.
    violation: (&'static str, &'static str),
}

const FINANCIAL: Reference = Reference {
    file: "financial.yaml",
    state: r#"{"cash_balance":1000,"position_size":10,"risk_limit":0.9,"risk_score":0.4,"risk_threshold":0.95}"#,
    line: r#"{"type":"execute_transaction","agent":"trader","action":{"tool":"broker.order","params":{"amount":120.5,"shares":2}}}"#,
    number: ("cash_balance", 2),
    guarded: "risk_threshold",
    violation: (
        "negative_balance",
        r#"{"cash_balance":100,"position_size":10,"risk_limit":0.9,"risk_score":0.4,"risk_threshold":0.95}"#,
    ),
};

const CLAIMS: Reference = Reference {
    file: "insurance-claims.yaml",
    state: r#"{"claim_id":"c-9","deductible_confirmed_at":"2026-02-23T17:21:05+01:00","payout_amount":6000,"policy_limit":10000,"proof_of_loss_url":"https://example.org/p9"}"#,
    line: r#"{"type":"approve_payout","agent":"adjuster"}"#,
    number: ("payout_amount", 2),
    guarded: "policy_limit",
    violation: (
        "over_limit_payout",
        r#"{"claim_id":"c-9","deductible_confirmed_at":"2026-02-23T17:21:05+01:00","payout_amount":6000,"policy_limit":5000,"proof_of_loss_url":"https://example.org/p9"}"#,
    ),
};

fn text(reference: &Reference) -> String {
    let packs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs");
    std::fs::read_to_string(packs.join(reference.file)).unwrap()
}

/// Begins a run under a pack and a state, and proposes lines.
/// A line with which a run begins that decides nothing.
const BEGIN: &str = r#"{"type":"observation.add","agent":"a","intent":{"description":"begin"}}"#;

fn propose(place: &Place, run: &str, pack: &str, state: &str, lines: &str) -> Ran {
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    std::fs::write(place.path().join("s0.json"), state).unwrap();
    let args = ["commit", "--run", run, "--stage", "3", "--pack", "p.yaml", "--state", "s0.json"];
    place.run_with(&args, lines.as_bytes())
}

/// The required fields of the state, with the text of each value.
fn members(state: &str) -> Vec<(String, String)> {
    let value = crate::support::parse(state);
    let members = value.as_object().unwrap().iter();
    members.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[test]
fn a_missing_field_a_wrong_type_and_null_are_refused_with_their_reason() {
    for reference in [&FINANCIAL, &CLAIMS] {
        let (place, pack) = (Place::with_store(), text(reference));
        let ran = propose(&place, "good", &pack, reference.state, reference.line);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        for (index, (name, value)) in members(reference.state).into_iter().enumerate() {
            let member = format!("\"{name}\":{value}");
            // What may be null is there, as null, where the run is not given it.
            let is_nullable = pack.contains(&format!("{name}: {{type: string, nullable: true}}"))
                || pack.contains(&format!("{name}: {{type: datetime, nullable: true}}"));
            let without =
                reference.state.replace(&member, "").replace(",,", ",").replace("{,", "{").replace(",}", "}");
            let null = reference.state.replace(&member, &format!("\"{name}\":null"));
            let list = reference.state.replace(&member, &format!("\"{name}\":[1]"));
            for (case, state, why) in [
                ("missing", without, "it is not there"),
                ("null", null, "it is null"),
                ("list", list, "it is an array"),
            ] {
                let ran = propose(&place, &format!("{case}-{index}"), &pack, &state, reference.line);
                if is_nullable && case != "list" {
                    assert_eq!(ran.code, 0, "{name} {case}: {}{}", ran.stdout, ran.stderr);
                    continue;
                }
                // A number that is none is no initial state of a field with decimals.
                let begins = ran.code != 2;
                assert_ne!(ran.code, 0, "{name} {case}: {}", ran.stdout);
                let said = if begins { &ran.stdout } else { &ran.stderr };
                assert!(said.contains(name.as_str()), "{name} {case}: {said}");
                if begins {
                    assert!(
                        said.contains("E0411") && said.contains(&format!("{name} ({why}")),
                        "{name} {case}: {said}"
                    );
                } else {
                    assert!(case == "list" && said.contains("E0"), "{name} {case}: {said}");
                }
            }
        }
        assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
    }
}

#[test]
fn a_number_counts_to_the_decimals_of_its_field() {
    for reference in [&FINANCIAL, &CLAIMS] {
        let (place, pack) = (Place::with_store(), text(reference));
        let (name, decimals) = reference.number;
        let (_, value) = members(reference.state).into_iter().find(|(member, _)| member == name).unwrap();
        // What is given with more decimals is kept to those of the field, from the beginning.
        let finer =
            reference.state.replace(&format!("\"{name}\":{value}"), &format!("\"{name}\":{value}.00499"));
        let ran = propose(&place, "finer", &pack, &finer, reference.line);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        let begun = place.ok(&["state", "finer@0", "--path", name]);
        assert!(begun.contains(&value) && !begun.contains("00499"), "{begun}");
        // A contract that counts otherwise than the state is kept is no contract.
        let precision = format!("{name}: {{type: ");
        let at = pack.find(&precision).unwrap() + precision.len();
        let line = pack[at..].lines().next().unwrap();
        let other = line.replace(&format!("precision: {decimals}"), &format!("precision: {}", decimals + 1));
        assert_ne!(line, other);
        let pack = format!("{}{}", &pack[..at], pack[at..].replacen(line, &other, 1));
        let ran = propose(&place, "other", &pack, reference.state, reference.line);
        assert_ne!(ran.code, 0, "{}", ran.stdout);
        let checked = place.run(&["pack", "check", "p.yaml"]);
        let said = format!("state.{name} is kept to {decimals} decimals, and this counts {}", decimals + 1);
        assert!(checked.stdout.contains(&said), "{}{}", checked.stdout, checked.stderr);
    }
}

#[test]
fn a_seed_binds_a_decision_to_its_account() {
    for (reference, seed) in [(&FINANCIAL, "risk_threshold"), (&CLAIMS, "claim_id")] {
        let (place, pack) = (Place::with_store(), text(reference));
        let (_, value) = members(reference.state).into_iter().find(|(name, _)| name == seed).unwrap();
        let other = if value.starts_with('"') { "\"c-10\"" } else { "0.5" };
        let target = reference.state.replace(&format!("\"{seed}\":{value}"), &format!("\"{seed}\":{other}"));
        assert_eq!(propose(&place, "source", &pack, reference.state, reference.line).code, 0);
        assert_eq!(propose(&place, "target", &pack, &target, BEGIN).code, 0);
        let ran = place.run(&["cherrypick", "source@1", "--into", "target"]);
        assert!(ran.code == 5 && ran.stderr.contains("E0412") && ran.stderr.contains(seed), "{}", ran.stderr);
    }
}

#[test]
fn a_violation_with_enforce_is_refused_and_one_without_is_told() {
    for reference in [&FINANCIAL, &CLAIMS] {
        let (place, pack) = (Place::with_store(), text(reference));
        let (id, state) = reference.violation;
        let ran = propose(&place, "told", &pack, state, reference.line);
        assert!(ran.code == 0 && ran.stdout.contains("predicate.violation"), "{}{}", ran.stdout, ran.stderr);
        let onset = place.ok(&["bisect", "told", "--predicate", id]);
        assert!(onset.contains("ONSET (exact)  tick 1"), "{onset}");
        let enforced =
            pack.replacen(&format!("  - id: {id}\n"), &format!("  - id: {id}\n    enforce: true\n"), 1);
        let ran = propose(&place, "enforced", &enforced, state, reference.line);
        assert_eq!(ran.code, 5, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("E0429") && ran.stdout.contains(id), "{}", ran.stdout);
        assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
    }
}

#[test]
fn a_field_is_written_by_its_writers_alone() {
    for reference in [&FINANCIAL, &CLAIMS] {
        let (place, pack) = (Place::with_store(), text(reference));
        let field = reference.guarded;
        // A rule that takes what an observation says of a field that a person gives.
        let rule = format!(
            "rules:\n  - when_type: observation.add\n    when: has(t.intent.{field})\n    steps:\n      - {{set: {field}, value: t.intent.{field}}}\n"
        );
        let open = pack.replacen("rules:\n", &rule, 1);
        let line = format!(r#"{{"type":"observation.add","agent":"x","intent":{{"{field}":1000000}}}}"#);
        let ran = propose(&place, "r", &open, reference.state, &line);
        assert_eq!(ran.code, 5, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("E0430") && ran.stdout.contains(field), "{}", ran.stdout);
        let ran = place.run_with(
            &["commit", "--run", "r", "--as", "user"],
            line.replace("\"agent\":\"x\",", "").as_bytes(),
        );
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert!(place.ok(&["state", "r", "--path", field]).contains("1000000"));
        assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
    }
}

/// D-96: the pack does not foresee what its extension asks for; the extension declares it, with the rule that writes it.
#[test]
fn an_extension_declares_what_it_asks_for() {
    let (place, pack) = (Place::with_store(), text(&FINANCIAL));
    let two = format!(
        "{}\n{}\n",
        FINANCIAL.line, r#"{"type":"observation.add","agent":"desk","intent":{"kyc":"verified"}}"#
    );
    assert_eq!(propose(&place, "r", &pack, FINANCIAL.state, &two).code, 0);
    let extension = "words: Whom we trade with is known.\ntarget_contract: acme.financial/v1\ntypes: [execute_transaction]\nadds_state:\n  counterparty_kyc_status: {words: of whom we buy}\nadds_rules:\n  - when_type: observation.add\n    when: has(t.intent.kyc)\n    steps:\n      - {set: counterparty_kyc_status, value: t.intent.kyc}\nadds_required:\n  counterparty_kyc_status: {type: string}\neffective_from_tick: 4\napproved_by: j.doe\n";
    std::fs::write(place.path().join("kyc.yaml"), extension).unwrap();
    place.ok(&["contract", "extend", "r", "--file", "kyc.yaml"]);
    let ran = place.run_with(&["commit", "--run", "r"], FINANCIAL.line.as_bytes());
    assert!(
        ran.code == 5 && ran.stdout.contains("counterparty_kyc_status (it is not there)"),
        "{}",
        ran.stdout
    );
    let ran = place
        .run_with(&["commit", "--run", "r"], two.lines().rev().collect::<Vec<_>>().join("\n").as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(place.ok(&["state", "r", "--path", "counterparty_kyc_status"]).contains("verified"));
    assert!(place.ok(&["verify", "r", "--replay"]).contains("reproduced"));
}

/// W0448 to W0450: fields that anyone writes, requirements that never fail, rules that cannot be judged.
#[test]
fn lint_names_what_a_pack_leaves_open() {
    let place = Place::new();
    let pack = "name: club.gate
version: v1
reducer: delta/1
state:
  spent: {init: 0}
  limits: {}
  owner: {init: \"'none'\"}
  kept: {writers: [action.result]}
types:
  spend: a member spends
contracts:
  spend: {required_state: {spent: {type: number}, owner: {type: string}, kept: {type: number}}}
violations:
  - {id: over, condition: \"state.who in state.limits ? state.spent > state.limits[state.who] : state.spent > state.limits[state.owner]\", bisect_predicate: monotone_lift}
progress_contracts:
  - {id: room, version: v1, score: '1.0', violation: state.kept < 0, bisect_predicate: monotone_lift}
";
    std::fs::write(place.path().join("p.yaml"), pack.replace("  kept:", "  who: {init: \"'ann'\"}\n  kept:"))
        .unwrap();
    let ran = place.run(&["contract", "lint", "p.yaml"]);
    let found: Vec<(&str, &str)> =
        ran.stdout.lines().filter_map(|line| line.split_once("warning[")?.1.split_once("]: ")).collect();
    let says = |code: &str, words: &str| {
        assert!(
            found.iter().any(|(is, said)| *is == code && said.contains(words)),
            "{code} {words}\n{}",
            ran.stdout
        );
    };
    says("W0448", "any agent may write spent, and the contract of spend requires it");
    says("W0448", "any agent may write limits, and over reads it");
    says("W0449", "owner begins with \"none\"");
    says("W0450", "over cannot be judged where state.limits[state.owner] is missing");
    says("W0450", "over cannot be judged before limits is written");
    says("W0450", "room cannot be judged before kept is written");
    // A guarded index and a field with writers are no findings.
    assert!(
        !ran.stdout.contains("state.limits[state.who]") && !ran.stdout.contains("may write kept"),
        "{}",
        ran.stdout
    );
}
