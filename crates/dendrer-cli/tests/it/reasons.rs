//! Reasons are given for each tick: an answer over several ticks that cannot be judged lists each reason with its ticks.

use dendrer_object::Value;

use crate::support::Place;

const PACK: &str = r#"name: acme.x
version: v1
state:
  a: {init: "{'y': 1}"}
rules:
  - when_type: plan.update
    steps: [{set: a, value: t.intent.a}]
violations:
  - {id: big, condition: state.a.x > 10}
obligations:
  - {id: due, holds: state.a.x > 100, by: {tick: 3}}
progress_contracts:
  - {id: score, version: v1, score: state.a.x * 0.01, violation: "false"}
"#;

/// A string, a null, a missing member twice, and at last a number.
const LINES: &str = r#"{"type":"plan.update","agent":"ann","intent":{"a":{"x":"12"}}}
{"type":"plan.update","agent":"ann","intent":{"a":{"x":null}}}
{"type":"plan.update","agent":"ann","intent":{"a":{"y":1}}}
{"type":"plan.update","agent":"ann","intent":{"a":{"y":2}}}
{"type":"plan.update","agent":"ann","intent":{"a":{"x":12}}}
"#;

const REASONS: [(u64, u64, &str); 4] = [
    (0, 0, "state.a.x is missing"),
    (1, 1, "state.a.x is a string, and `>` takes a number beside a number"),
    (2, 2, "state.a.x is null, and `>` takes numbers, strings or booleans"),
    (3, 4, "state.a.x is missing"),
];

fn place() -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("p.yaml"), PACK).unwrap();
    let ran = place.run_with(&["commit", "--run", "r", "--pack", "./p.yaml"], LINES.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    place
}

/// Each reason in text: `ticks 3..4: state.a.x is missing`.
fn words() -> [String; 4] {
    REASONS.map(|(from, to, why)| match from == to {
        true => format!("tick {from}: {why}"),
        false => format!("ticks {from}..{to}: {why}"),
    })
}

fn listed(found: Option<&Value>) -> Vec<(u64, u64, String)> {
    let read = |one: &Value| {
        let tick = |name| one.get(name).and_then(Value::as_u64).unwrap();
        (tick("tick"), tick("to"), one.get("why").and_then(Value::as_str).unwrap().to_owned())
    };
    found.and_then(Value::as_array).unwrap().iter().map(read).collect()
}

fn reasons() -> Vec<(u64, u64, String)> {
    REASONS.map(|(from, to, why)| (from, to, why.to_owned())).to_vec()
}

#[test]
fn bisect_lists_each_reason_with_its_ticks() {
    let place = place();
    for more in [&[][..], &["--scan"], &["--lift"]] {
        let args = [&["bisect", "r", "--predicate", "state.a.x > 10"][..], more].concat();
        let ran = place.run(&args);
        let lines: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("UNKNOWN")).collect();
        assert_eq!(
            (ran.code, lines),
            (6, words().map(|one| format!("UNKNOWN    {one}")).iter().map(|one| &**one).collect())
        );
        assert!(ran.stderr.contains(&words().join("; ")), "{}", ran.stderr);
        let (code, answer) = place.json(&args);
        assert_eq!((code, listed(answer.get("reasons"))), (6, reasons()), "{answer}");
    }
    let all = place.run(&["bisect", "r", "--all-of", "./p.yaml"]);
    assert!(all.code == 6 && all.stdout.contains(&words().join("; ")), "{}{}", all.stdout, all.stderr);
    let (_, all) = place.json(&["bisect", "r", "--all-of", "./p.yaml"]);
    let items = all.get("items").and_then(Value::as_array).unwrap();
    assert_eq!(listed(items.get(0).unwrap().get("reasons")), reasons(), "{all}");
}

#[test]
fn a_contract_check_lists_each_reason_and_claims_no_onset_behind_one() {
    let place = place();
    let ran = place.run(&["contract", "check", "r"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert!(ran.stdout.contains("big    at tick 5, perhaps from tick 0 on"), "{}", ran.stdout);
    for words in words() {
        assert!(ran.stdout.contains(&words), "{words}: {}", ran.stdout);
    }
    let (_, answer) = place.json(&["contract", "check", "r"]);
    let items = answer.get("items").and_then(Value::as_array).unwrap();
    let big = items.get(0).unwrap();
    assert_eq!((big.get("onset"), listed(big.get("reasons"))), (Some(&Value::Null), reasons()), "{answer}");
    for form in ["sarif", "github", "junit"] {
        let found = place.run(&["contract", "check", "r", "--format", form]).stdout;
        for words in words() {
            let words = if form == "junit" { words.replace('>', "&gt;") } else { words };
            assert!(found.contains(&format!("big cannot be judged at {words}")), "{form}: {found}");
        }
    }
}

/// Whether it was met is decided by every tick up to the one at which it is due.
#[test]
fn an_obligation_names_the_reason_of_each_tick() {
    let place = place();
    let (_, answer) = place.json(&["predicate", "test", "due", "r"]);
    let why = answer.get("obligation").and_then(|owed| owed.get("why")).and_then(Value::as_str).unwrap();
    let (a, b, c, _) = (REASONS[0].2, REASONS[1].2, REASONS[2].2, REASONS[3].2);
    assert_eq!(why, format!("{a} (tick 0); {b} (tick 1); {c} (tick 2); {a} (tick 3)"));
    assert_eq!(listed(answer.get("uncertain")), [(3, 5, why.to_owned())]);
}

#[test]
fn a_regression_lists_each_reason_and_a_fall_that_is_certain() {
    let place = place();
    let (code, answer) = place.json(&["bisect", "r", "--regression", "score"]);
    let found = listed(answer.get("reasons"));
    let ticks: Vec<(u64, u64)> = found.iter().map(|(from, to, _)| (*from, *to)).collect();
    assert_eq!((code, &ticks[..]), (6, &[(0, 0), (1, 1), (2, 2), (3, 4), (5, 5)][..]), "{answer}");
    assert_eq!(found[4].2, "the score is known again, and may have been lower before");
    // A score below one that was known before has fallen, at that tick or before.
    place.run_with(
        &["commit", "--run", "r"],
        br#"{"type":"plan.update","agent":"ann","intent":{"a":{"x":11}}}"#,
    );
    let (code, answer) = place.json(&["bisect", "r", "--regression", "score"]);
    let ticks = answer.get("ticks").and_then(Value::as_array).unwrap();
    let last = ticks.get(1).and_then(|last| last.get("tick")).and_then(Value::as_u64);
    assert_eq!((code, last), (6, Some(6)), "{answer}");
}

#[test]
fn a_registration_and_a_diff_list_each_reason() {
    let place = place();
    let ran = place.run(&[
        "predicate",
        "register",
        "acme.z",
        "--condition",
        "state.a.x > 10",
        "--verify-monotone",
        "--sample-trace",
        "r",
    ]);
    assert!(ran.code == 6 && ran.stderr.contains(&words().join("; ")), "{}{}", ran.stdout, ran.stderr);
    let (_, answer) = place.json(&["diff", "r", "r", "--predicate", "state.a.x > 10"]);
    for side in ["a", "b"] {
        let verdicts = answer.get("verdicts").and_then(|verdicts| verdicts.get(side)).unwrap();
        assert_eq!(listed(verdicts.get("reasons")), reasons(), "{answer}");
    }
    let text = place.run(&["diff", "r", "r", "--predicate", "state.a.x > 10"]).stdout;
    assert!(words().iter().all(|words| text.contains(words)), "{text}");
}
