//! The modules of `examples/modules`, each asked of the same states.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::path::PathBuf;

use dendrer_kernel::pack::Pack;
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_kernel::reduce::{ReduceError, Reducer};
use dendrer_object::{Intent, Value, json};

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
    for name in ["risk-ts.wasm", "rust.wasm"] {
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

/// What `tally` does, as rules: the oracle.
const RULES: &str = r#"{"name":"t","version":"v1","state":{"tally":{"init":"s0.tally"}},"rules":[
  {"when_type":"action.result","when":"has(t.result.output) && has(t.result.output.amount)","steps":[
    {"add":"tally[t.result.output.category].count","value":1},
    {"add":"tally[t.result.output.category].sum","value":"t.result.output.amount"}]}]}"#;

/// The state after a transition, and whether it was refused.
fn after(reducer: &dyn Reducer, before: &Value, intent: &Intent) -> (Value, bool) {
    let reduced = reducer.reduce(before, intent);
    assert!(!matches!(reduced, Err(ReduceError::Stopped(_))), "{reduced:?}");
    match reduced.and_then(|delta| Ok(delta.apply(before)?)) {
        Ok(after) => (after, false),
        Err(_) => (before.clone(), true),
    }
}

/// Asks a reducer and the rules of transitions in a row, and compares what they make of each.
fn tally(reducer: &dyn Reducer, name: &str, transitions: &[String]) {
    let rules = Pack::read(&json::parse_door(RULES.as_bytes()).unwrap()).unwrap().reducer();
    let begin = r#"{"tally":{"a":{"count":0,"sum":0},"a~b/c":{"count":0,"sum":0},"food":{"count":0,"sum":0},
        "travel":{"count":0,"sum":0.5},"ä€😀":{"count":0,"sum":-3},"\"\\\n":{"count":0,"sum":0}}}"#;
    let mut state = json::parse_door(begin.as_bytes()).unwrap();
    let (mut moved, mut refused) = (0, 0);
    for text in transitions {
        let intent = Intent::from_value(&json::parse_tagged(text.as_bytes()).unwrap(), Some("a")).unwrap();
        let (made, expected) = (after(reducer, &state, &intent), after(&*rules, &state, &intent));
        assert_eq!(made, expected, "{name}: {text} on {state}");
        moved += usize::from(made.0 != state);
        refused += usize::from(made.1);
        state = made.0;
    }
    assert!(moved > 0 && refused > 0, "{name}: {moved} moved, {refused} refused");
}

/// Numbers from a seed: the same ones each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.roll(of.len() as u64) as usize]
    }
}

/// Transitions that a search for bytes is enough for.
fn plain(count: usize) -> Vec<String> {
    let mut dice = Dice(7);
    let transition = |_| {
        let amount = match dice.roll(8) {
            0 => "0".to_owned(),
            1 => dice.pick(&["null", "true", "\"12\"", "[1]", "{}"]).to_owned(),
            2 => format!("-{}.25", dice.roll(1_000)),
            3 => dice.pick(&["0.1", "1e-7", "1e+21", "9007199254740993", "-1e+300"]).to_owned(),
            _ => dice.roll(100_000).to_string(),
        };
        let category = dice.pick(&["food", "travel", "a", "pets", "food", "travel"]);
        let output = match dice.roll(8) {
            0 => "{}".to_owned(),
            1 => format!(r#"{{"amount":{amount}}}"#),
            2 => format!(r#"{{"category":"{category}","note":"no \\\"amount\\\":1"}}"#),
            _ => format!(r#"{{"amount":{amount},"by":[{{"x":"y"}}],"category":"{category}"}}"#),
        };
        let kind = dice.pick(&["action.result", "action.result", "action.result", "observation.add"]);
        format!(
            r#"{{"type":"{kind}","action":{{"params":{{"category":"a"}}}},"result":{{"output":{output},"status":"ok"}}}}"#
        )
    };
    (0..count).map(transition).collect()
}

/// Transitions that want a reader of JSON.
fn hard() -> Vec<String> {
    let outputs = [
        r#"{"amount":1,"category":"a~b/c"}"#,
        r#"{"amount":2,"category":"ä€😀"}"#,
        r#"{"amount":3,"category":"\"\\\n"}"#,
        r#"{"amount":3,"category":"\"\\"}"#,
        r#"{"amount":4,"category":""}"#,
        r#"{"amount":4,"category":"pets/food"}"#,
        r#"{"amount":{"$float":"NaN"},"category":"a"}"#,
        r#"{"amount":5,"category":{"category":"a"}}"#,
        r#"{"amount":6,"category":"a","deeper":{"amount":60,"category":"food"}}"#,
        r#"{"a":[{"amount":60,"category":"food"}],"amount":7,"category":"a"}"#,
        r#"{"deeper":{"amount":60,"category":"food"}}"#,
    ];
    let of_result =
        |output| format!(r#"{{"type":"action.result","result":{{"output":{output},"status":"ok"}}}}"#);
    let others = [
        r#"{"type":"action.result","action":{"output":{"amount":60,"category":"food"}},"result":{}}"#,
        r#"{"type":"action.result","result":{"status":"ok"},"intent":{"output":{"amount":60,"category":"food"}}}"#,
        r#"{"type":"observation.add","result":{"output":{"amount":60,"category":"food"}},"goal":"\"type\":\"action.result\"}}"}"#,
    ];
    outputs.into_iter().map(of_result).chain(others.map(str::to_owned)).collect()
}

/// D-123: what compilers and people write as modules is what the same rules do, transition by transition.
#[test]
fn the_reducer_written_by_hand_does_what_the_rules_do() {
    let bytes = wat::parse_str(include_str!("../../../examples/modules/value_of.wat")).unwrap();
    assert!(
        bytes == include_bytes!("../../../examples/modules/value_of.wasm"),
        "value_of.wasm is not what value_of.wat compiles to: {} bytes",
        bytes.len()
    );
    let bytes = wat::parse_str(include_str!("../../../examples/modules/tally.wat")).unwrap();
    assert!(
        bytes == include_bytes!("../../../examples/modules/tally.wasm"),
        "tally.wasm is not what tally.wat compiles to: {} bytes",
        bytes.len()
    );
    tally(&*dendrer_wasm::reducer(&bytes).unwrap(), "tally.wat", &plain(2_000));
}

#[test]
fn reducers_of_compilers_do_what_the_rules_do() {
    let Some(dir) = std::env::var_os("DENDRER_MODULES").map(PathBuf::from) else {
        eprintln!("SKIPPED: DENDRER_MODULES does not say where modules were built; scripts/test.sh does");
        return;
    };
    let mut found = 0;
    for name in ["tally-ts.wasm", "rust.wasm"] {
        let Ok(bytes) = std::fs::read(dir.join(name)) else {
            eprintln!("SKIPPED: {name} was not built");
            continue;
        };
        let reducer = dendrer_wasm::reducer(&bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
        tally(&*reducer, name, &plain(2_000));
        tally(&*reducer, name, &hard());
        found += 1;
    }
    eprintln!("{found} of 2 modules were asked");
}
