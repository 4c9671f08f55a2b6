//! The modules of `examples/modules`, each asked of the same states.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::path::PathBuf;

use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_object::{Value, json};

/// What the predicate is, in Rust.
fn expected(state: &Value) -> &'static str {
    match state.get("risk_score").map(|score| (score, score.to_string().parse::<f64>())) {
        None => "ok",
        Some((Value::Number(_), Ok(score))) if score > 0.75 => "violation",
        Some((Value::Number(_), Ok(_))) => "ok",
        Some(_) => "uncertain",
    }
}

fn said(predicate: &Predicate, state: &Value) -> &'static str {
    match predicate.judge(state, None).unwrap() {
        Verdict::Ok => "ok",
        Verdict::Violation => "violation",
        Verdict::Uncertain(_) => "uncertain",
    }
}

/// States that a search for bytes is enough for.
const PLAIN: &[&str] = &[
    "{}",
    r#"{"a":1}"#,
    r#"{"risk_score":0}"#,
    r#"{"risk_score":0.7}"#,
    r#"{"risk_score":0.74}"#,
    r#"{"risk_score":0.749}"#,
    r#"{"risk_score":0.75}"#,
    r#"{"risk_score":0.751}"#,
    r#"{"risk_score":0.76}"#,
    r#"{"risk_score":0.8}"#,
    r#"{"risk_score":1}"#,
    r#"{"risk_score":12.5}"#,
    r#"{"before":[1,{"x":"y"}],"risk_score":0.9,"risk_scores":0}"#,
    r#"{"before":[1,{"x":"y"}],"risk_score":0.1,"risk_scores":1}"#,
];

/// States that want a reader of JSON.
const HARD: &[&str] = &[
    "null",
    "[0.9]",
    r#""risk_score""#,
    r#"{"a":{"risk_score":0.9}}"#,
    r#"{"a":[{"risk_score":0.9}],"risk_score":0.1}"#,
    r#"{"a":"\"risk_score\":0.9","b":"\\","risk_score":0.2}"#,
    r#"{"a":"}{][,","risk_score":0.9}"#,
    r#"{"risk_score":null}"#,
    r#"{"risk_score":"0.9"}"#,
    r#"{"risk_score":[0.9]}"#,
    r#"{"risk_score":{"$float":"NaN"}}"#,
    r#"{"risk_score":-0.9}"#,
    r#"{"risk_score":-12}"#,
    r#"{"risk_score":1e-7}"#,
    r#"{"risk_score":1e+21}"#,
    r#"{"risk_score":-1e+21}"#,
    r#"{"risk_score":9007199254740993}"#,
    r#"{"risk_score":0.7500000000000001}"#,
    r#"{"risk_score":0.7499999999999999}"#,
    r#"{"ä€😀":1,"risk_score":0.76}"#,
];

fn ask(predicate: &Predicate, name: &str, texts: &[&str]) {
    for text in texts {
        let state = json::parse_tagged(text.as_bytes()).unwrap();
        assert_eq!(said(predicate, &state), expected(&state), "{name}: {text}");
    }
    let long = Value::record([
        ("list", Value::array((0..20_000u64).map(Value::from))),
        ("risk_score", Value::from(0.875)),
    ]);
    assert_eq!(said(predicate, &long), "violation", "{name}: a state of {} bytes", json::to_vec(&long).len());
}

#[test]
fn the_module_written_by_hand_says_what_it_should() {
    let bytes = wat::parse_str(include_str!("../../../examples/modules/risk.wat")).unwrap();
    ask(&dendrer_wasm::predicate("risk", &bytes).unwrap(), "risk.wat", PLAIN);
}

/// `scripts/modules.sh` builds them and `scripts/test.sh` says where.
#[test]
fn modules_of_compilers_say_what_they_should() {
    let Some(dir) = std::env::var_os("DENDRER_MODULES").map(PathBuf::from) else {
        eprintln!("SKIPPED: DENDRER_MODULES does not say where modules were built; scripts/test.sh does");
        return;
    };
    let mut found = 0;
    for name in ["risk-ts.wasm", "risk-rust.wasm"] {
        let Ok(bytes) = std::fs::read(dir.join(name)) else {
            eprintln!("SKIPPED: {name} was not built");
            continue;
        };
        let predicate = dendrer_wasm::predicate("risk", &bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
        ask(&predicate, name, PLAIN);
        ask(&predicate, name, HARD);
        found += 1;
    }
    eprintln!("{found} of 2 modules were asked");
}
