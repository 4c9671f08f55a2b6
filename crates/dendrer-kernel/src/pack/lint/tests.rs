use dendrer_object::Code;
use dendrer_object::json::parse_door;

use super::*;
use crate::pack::Pack;

/// A pack with nothing to find, of which a test changes one place.
const SOUND: &str = r#"{
  "name": "p", "version": "v1",
  "constants": {"alarm": 0.9, "tools_used": ["pay"]},
  "define": {"tool": "t.action.tool"},
  "state": {
    "score": {"init": "s0.score", "decimals": 3},
    "limit": {"init": "s0.limit", "decimals": 3},
    "paid": {"init": 0, "decimals": 2},
    "loose": {"init": "s0.loose"},
    "flag": {"init": false},
    "seen": {"init": []},
    "kind": {"init": "'none'"},
    "undone": {"init": null}
  },
  "types": {"pay": "pays", "look": null},
  "tools": {"pay": {"effect": "effectful"}, "ask": {"effect": "read"}},
  "rules": [
    {"when_type": "pay", "when": "tool == 'pay'", "steps": [
      {"add": "paid", "value": "t.intent.amount"},
      {"set": "flag", "value": true, "if": "state.score > state.limit"},
      {"append": "seen", "value": "t.intent.amount"}]},
    {"when_type": "look", "steps": [{"set": "score", "value": "t.intent.score"}, {"set": "kind", "value": "t.intent.kind"}]}
  ],
  "contracts": {"pay": {
    "required_state": {"score": {"type": "number", "precision": 3}, "limit": {"type": "number"}, "paid": {"type": "number"}},
    "hash_seeds": ["limit"],
    "match": {"paid": "source.paid <= target.paid"}}},
  "violations": [
    {"id": "too_high", "condition": "state.score > 0.86", "bisect_predicate": "monotone_lift"},
    {"id": "paid_high", "condition": "state.flag"},
    {"id": "many", "condition": "size(state.seen) > 10"}
  ]
}"#;

fn read(text: &str) -> Pack {
    let value = parse_door(text.as_bytes()).unwrap();
    Pack::read(&value).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// The findings after one place of the pack was written otherwise.
fn found(from: &str, to: &str) -> Vec<String> {
    assert!(from.is_empty() || SOUND.contains(from), "{from}");
    let pack = read(&SOUND.replacen(from, to, 1));
    let line = |one: &LintFinding| format!("{} {}: {}", one.code, one.path.dotted(), one.message);
    assert!(pack.lint().iter().all(|one| !one.why.is_empty() && !one.step.is_empty()));
    pack.lint().iter().map(line).collect()
}

fn check(from: &str, to: &str, expected: &[&str]) {
    assert_eq!(found(from, to), expected, "{to}");
}

#[test]
fn a_pack_with_nothing_wrong_has_no_findings() {
    check("", "", &[]);
}

#[test]
fn a_threshold_finer_than_what_is_compared_is_found() {
    check(
        "state.score > 0.86",
        "state.score - state.limit > 0.0001",
        &[
            "W0441 violations[0].condition: 0.0001 has more than the 3 decimals of state.score and state.limit",
        ],
    );
    check("state.score > 0.86", "state.score - state.limit > 0.001", &[]);
    check(
        "source.paid <= target.paid",
        "abs(source.paid - target.paid) < 0.001",
        &[
            "W0441 contracts.pay.match.paid: 0.001 has more than the 2 decimals of source.paid and target.paid",
        ],
    );
    check(
        "state.score > 0.86",
        "state.score > state.paid",
        &[
            "W0441 violations[0].condition: state.score and state.paid are kept to 3 and 2 decimals and compared",
        ],
    );
    // A contract may count to fewer decimals than the state keeps.
    check(
        r#""limit": {"type": "number"}"#,
        r#""limit": {"type": "number"}, "loose": {"type": "number", "precision": 2}"#,
        &[],
    );
    let both = SOUND.replace(
        r#""limit": {"type": "number"}"#,
        r#""limit": {"type": "number"}, "loose": {"type": "number", "precision": 2}"#,
    );
    let both = read(&both.replace("state.score > 0.86", "state.loose > 0.855")).lint();
    let lines: Vec<_> = both.iter().map(|one| (one.code, one.path.dotted())).collect();
    let precision = "contracts.pay.required_state.loose.precision".to_owned();
    assert_eq!(lines, [(Code::W0441, "violations[0].condition".to_owned()), (Code::W0441, precision)]);
}

#[test]
fn a_threshold_without_a_guard_band_is_found() {
    let threshold = |shown: &str| {
        format!(
            "W0442 violations[0].condition: {shown} is a threshold at the last of the 3 decimals of state.score"
        )
    };
    check("state.score > 0.86", "state.score > 0.850", &[&threshold("0.85")]);
    check("state.score > 0.86", "0.851 <= state.score", &[&threshold("0.851")]);
    for fine in
        ["state.score > alarm", "state.score > 1", "state.score > state.limit", "state.score == 0.851"]
    {
        check("state.score > 0.86", fine, &[]);
    }
}

#[test]
fn a_predicate_over_a_field_that_no_contract_requires_is_found() {
    let reads = |what: &str| {
        vec![format!("W0443 violations[0].condition: too_high reads {what}, which no contract requires")]
    };
    assert_eq!(found(r#""score": {"type": "number", "precision": 3}, "#, "")[..1], reads("state.score")[..]);
    assert_eq!(found("state.score > 0.86", "state.loose > 1"), reads("state.loose"));
    // Begun the same everywhere and written by what is under no contract.
    assert_eq!(found("state.score > 0.86", "state.kind == 'x'"), reads("state.kind"));
    // Places that the kernel writes are there in every run.
    check("state.score > 0.86", "has(state.policy.violated)", &[]);
    // Consequences of a required field are required: `paid_high` and `many` of the sound pack. Not where the rule looks
    // further.
    let further = found("state.score > state.limit", "state.score > state.loose");
    assert!(
        further
            .iter()
            .any(|line| line.starts_with("W0443 violations[1].condition: paid_high reads state.flag"))
    );
}

#[test]
fn what_never_happens_is_found() {
    check(
        "tool == 'pay'",
        "tool == 'pay' && tool == 'ask'",
        &["W0445 rules[0].when: this condition of rule 1 is never true"],
    );
    check(
        "state.score > state.limit",
        "false",
        &["W0445 rules[0].steps[1].if: this condition of rule 1 is never true"],
    );
    check(
        "tool == 'pay'",
        "t.type == 'look'",
        &["W0445 rules[0].when: this condition of rule 1 is never true"],
    );
    check(
        "tool == 'pay'",
        "t.author == 'kernel' || 1 > 2",
        &["W0447 rules[0].when: there is no author \"kernel\""],
    );
    check(
        r#""when_type": "look""#,
        r#""when_type": ["run.fork", "kernel.anomaly"]"#,
        &[
            "W0445 rules[1].when_type: rule 2 is for what the kernel or the institution writes, and no rule is asked then",
        ],
    );
    check("tool == 'pay'", "tool != 'pay' || tool == 'ask'", &[]);
}

#[test]
fn a_contract_that_no_state_can_meet_is_found() {
    check(
        r#""limit": {"type": "number"}"#,
        r#""limit": {"type": "number"}, "undone": {"type": "string"}"#,
        &["W0446 contracts.pay.required_state.undone: undone can never be what pay requires: it is null"],
    );
    check(
        r#""limit": {"type": "number"}"#,
        r#""limit": {"type": "number"}, "undone": {"nullable": true}"#,
        &[],
    );
    check(
        r#"["limit"]"#,
        r#"["limit", "undone"]"#,
        &["W0446 contracts.pay.hash_seeds: undone can never be what pay requires: it is null"],
    );
}

#[test]
fn a_word_that_nothing_is_called_is_found_with_what_was_meant() {
    let pack = read(&SOUND.replacen("tool == 'pay'", "tool == 'pya'", 1));
    let found = pack.lint();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].code, &*found[0].message, &*found[0].step),
        (Code::W0447, "there is no tool \"pya\"", "did you mean pay?")
    );
    assert_eq!(found[0].span.map(|span| (span.start, span.end)), Some((8, 13)));
    check("tool == 'pay'", "t.type == 'pya'", &["W0447 rules[0].when: there is no transition type \"pya\""]);
    check(r#"["pay"]"#, r#"["pay", "repay"]"#, &[]);
    // A constant that is asked for is held against the tools, too.
    let asked =
        SOUND.replace(r#"["pay"]"#, r#"["pay", "repay"]"#).replace("tool == 'pay'", "tool in tools_used");
    assert_eq!(read(&asked).lint()[0].message, "there is no tool \"repay\"");
}

/// D-188: what is said of a predicate is judged and not believed.
#[test]
fn a_predicate_is_sound_by_its_text_its_rules_or_its_lift_and_otherwise_not() {
    let sound = |from: &str, to: &str, name: &str| {
        let pack = read(&SOUND.replacen(from, to, 1));
        pack.sound(pack.predicate(name).unwrap())
    };
    assert_eq!(sound("", "", "too_high"), Sound::Lifted);
    assert_eq!(sound("", "", "paid_high"), Sound::ByRules);
    assert_eq!(sound("", "", "many"), Sound::ByRules);
    assert_eq!(sound("size(state.seen) > 10", "has(state.policy.violated)", "many"), Sound::ByText);
    let turned = |rules: &[usize]| Sound::Unknown { turned_by: rules.to_vec() };
    assert_eq!(sound("size(state.seen) > 10", "state.paid > 10", "many"), turned(&[1]));
    assert_eq!(sound("size(state.seen) > 10", "state.paid > 10 || state.score > 1", "many"), turned(&[1, 2]));
    assert_eq!(sound(r#""value": true"#, r#""value": "t.intent.flag""#, "paid_high"), turned(&[1]));
    assert_eq!(sound("\"init\": false", "\"init\": \"s0.flag\"", "paid_high"), turned(&[1]));
    assert_eq!(sound("size(state.seen) > 10", "size(state.seen) < 10", "many"), turned(&[1]));
    assert_eq!(sound("size(state.seen) > 10", "state.limit > 10", "many"), Sound::ByRules);
}

#[test]
fn a_claim_of_monotonicity_is_judged() {
    let pack = read(&SOUND.replacen("size(state.seen) > 10", "state.paid > 10", 1));
    let claim = |index: &str| pack.judge_claim(&Pointer::of(["violations", index, "monotone"]));
    assert_eq!((claim("0"), claim("1"), claim("9")), (None, None, None));
    let finding = claim("2").unwrap();
    assert_eq!(
        (finding.code, &*finding.message),
        (Code::W0444, "many is said to be monotone, and can recover")
    );
    assert_eq!(finding.why, "rule 1 may turn it back");
}

#[test]
fn commitments_are_tested_as_predicates_are() {
    let with = |one: &str| {
        format!(
            r#""trust": {{"tools": ["ask"]}}, "commitments": [{{"id": "K", "type": "obl", "hard": true, "gloss": "g", {one}}}], "types""#
        )
    };
    let check = |one: &str, expected: &[&str]| check("\"types\"", &with(one), expected);
    check(r#""holds": "action.tool != 'pay' || action.params.n <= 3""#, &[]);
    check(r#""holds": "action.tool != 'ask'", "watch": ["score", "exported_symbols"]"#, &[]);
    check(r#""holds": "action.tool != 'pya'""#, &["W0447 commitments[0].holds: there is no tool \"pya\""]);
    check(
        r#""holds": "action.tool != 'pay' || state.flag == 'yes'""#,
        &["W0445 commitments[0].holds: state.flag begins as a boolean and is compared with a text"],
    );
    check(
        r#""holds": "action.tool != 'pay'", "watch": ["scoer"]"#,
        &["W0447 commitments[0].watch: there is no field \"scoer\""],
    );
    check(
        r#""holds": "action.tool != 'pay'", "conflicts": ["L"]"#,
        &["W0447 commitments[0].conflicts: there is no commitment \"L\""],
    );
    check(r#""watch": []"#, &["W0445 commitments[0]: K is hard and has neither holds nor condition"]);
    check(r#""holds": "true""#, &["W0445 commitments[0]: K can never be violated"]);
    check(r#""condition": "false""#, &["W0445 commitments[0]: K can never be violated"]);
    let slip = r#""trust": {"tools": ["aks"]}, "types""#;
    assert_eq!(found("\"types\"", slip), ["W0447 trust.tools[0]: there is no tool \"aks\""]);
}

/// Design, 14.1: a rule that can never be judged is found before a run begins under it.
#[test]
fn policy_rules_name_what_the_pack_declares() {
    let with = |holds: &str| format!(r#""policy": [{{"id": "p", "holds": "{holds}"}}], "types""#);
    let check = |holds: &str, expected: &[&str]| check("\"types\"", &with(holds), expected);
    check("t.action.tool != 'pay' || state.flag", &[]);
    check("t.action.tool != 'pya'", &["W0447 policy[0].holds: there is no tool \"pya\""]);
    check("state.scoer <= 5", &["W0447 policy[0].holds: there is no field \"scoer\""]);
}
