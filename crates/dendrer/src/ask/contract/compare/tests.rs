use super::*;
use crate::pack::read;

const OLD: &str = "
name: p
version: v1
constants: {top: 100}
state:
  a: {init: 0, decimals: 2}
  b: {init: s0.b}
  c: {init: s0.c}
types: {pay: pays}
tools: {order: {effect: idempotent_write}}
rules:
  - when_type: pay
    steps: [{add: a, value: t.intent.amount}]
contracts:
  pay:
    required_state:
      a: {type: number, precision: 2}
      b: {type: string, nullable: true}
    hash_seeds: [a]
    match: {b: source.b == target.b and source.a > 5}
violations:
  - {id: high, condition: state.a > top, bisect_predicate: monotone_lift}
";

fn changes(from: &str, to: &str) -> Vec<String> {
    assert!(from.is_empty() || OLD.contains(from), "{from}");
    let new = OLD.replacen(from, to, 1);
    let pack =
        |text: &str| read(text.as_bytes()).unwrap_or_else(|problems| panic!("{text}: {problems:?}")).pack;
    let (old, new) = (pack(OLD), pack(&new));
    let lines = |changes: Vec<ContractChange>| -> Vec<String> {
        changes.iter().map(|one| format!("{} {}", one.ranked.as_str(), one.place)).collect()
    };
    assert_eq!(compare(&old, &old), []);
    // The other way round, what was stricter is looser, and nothing else changes.
    let count = |changes: &[ContractChange], ranked: Ranked| {
        changes.iter().filter(|one| one.ranked == ranked).count()
    };
    let (there, back) = (compare(&old, &new), compare(&new, &old));
    assert_eq!(count(&there, Ranked::Stricter), count(&back, Ranked::Looser), "{there:?} {back:?}");
    assert_eq!(count(&there, Ranked::Other), count(&back, Ranked::Other), "{there:?} {back:?}");
    lines(there)
}

#[test]
fn what_is_asked_for_more_is_stricter_and_the_other_way_round_looser() {
    let cases: [(&str, &str, &[&str]); 18] = [
        ("", "", &[]),
        ("{id: high,", "{id: high, scope: [pay],", &["looser violations.high"]),
        (
            "      b: {type",
            "      c: {type: bool}\n      b: {type",
            &["stricter contracts.pay.required_state.c"],
        ),
        ("type: string, nullable: true", "type: string", &["stricter contracts.pay.required_state.b"]),
        ("type: string, nullable", "type: datetime, nullable", &["stricter contracts.pay.required_state.b"]),
        ("type: string, nullable", "type: any, nullable", &["looser contracts.pay.required_state.b"]),
        ("type: string, nullable", "type: bool, nullable", &["other contracts.pay.required_state.b"]),
        ("source.a > 5", "source.a > 6", &["stricter contracts.pay.match.b"]),
        ("source.a > 5", "source.a != 7", &["other contracts.pay.match.b"]),
        ("source.b == target.b and source.a > 5", "present", &["looser contracts.pay.match.b"]),
        ("state.a > top", "state.a > 50", &["stricter violations.high"]),
        ("state.a > top", "state.a > 100", &[]),
        ("condition: state.a > top", "holds: not (state.a >= 200)", &["looser violations.high"]),
        ("top: 100", "top: 90", &["stricter violations.high", "other constants.top"]),
        ("violations:", "violations:\n  - {id: low, condition: state.a < 0}", &["stricter violations.low"]),
        ("types: {pay: pays}", "types: {pay: pays, look: looks}", &["looser types.look"]),
        ("idempotent_write", "read", &["looser tools.order"]),
        ("value: t.intent.amount", "value: t.intent.price", &["other rules[0]", "other rules[0]"]),
    ];
    for (from, to, expected) in cases {
        assert_eq!(changes(from, to), expected, "{from} -> {to}");
    }
}

#[test]
fn a_contract_that_goes_is_looser_and_one_that_comes_is_stricter() {
    let pack = |text: &str| read(text.as_bytes()).unwrap().pack;
    let begin = OLD.find("contracts:").unwrap();
    let end = OLD.find("violations:").unwrap();
    let without = format!("{}{}", &OLD[..begin], &OLD[end..]);
    let gone = compare(&pack(OLD), &pack(&without));
    assert_eq!((gone.len(), gone[0].ranked, &*gone[0].place), (1, Ranked::Looser, "contracts.pay"));
    assert_eq!(compare(&pack(&without), &pack(OLD))[0].ranked, Ranked::Stricter);
}

#[test]
fn a_seed_that_is_one_no_more_is_compared_otherwise() {
    assert_eq!(
        changes("hash_seeds: [a]", "hash_seeds: [b]"),
        ["looser contracts.pay.match.a", "other contracts.pay.hash_seeds", "other contracts.pay.hash_seeds"]
    );
}
