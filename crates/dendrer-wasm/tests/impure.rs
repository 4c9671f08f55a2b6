//! Not one predicate is taken that could look at anything but a state, or say two things of one state.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

#[path = "hostile/list.rs"]
mod list;

use std::collections::BTreeMap;

use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_kernel::reduce::ReduceError;
use dendrer_object::{Intent, Value, json};
use list::{Asked, Case, Fate, cases};

fn made(case: &Case) -> Result<Predicate, String> {
    match &case.asked {
        Asked::Expr(text) => Predicate::condition("p", text).map_err(|error| error.code.to_string()),
        Asked::Module(bytes, _) => {
            dendrer_wasm::predicate("p", bytes).map_err(|refused| format!("E0520 {refused}"))
        }
    }
}

#[test]
fn no_impure_predicate_is_taken() {
    let cases = cases();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let states: Vec<Value> =
        ["{}", r#"{"n":1}"#].iter().map(|text| json::parse_door(text.as_bytes()).unwrap()).collect();
    for case in &cases {
        let word = match (case.fate, made(case)) {
            (Fate::Refused, Err(why)) => {
                assert!(why.starts_with("E05"), "{}: {why}", case.name());
                "refused"
            }
            (Fate::Ended, Ok(predicate)) => {
                for state in &states {
                    // A module that is stopped is an error. The steps of an expression are the same everywhere.
                    match (&case.asked, predicate.judge(state, None)) {
                        (Asked::Module(..), Err(_)) => {}
                        (Asked::Expr(_), Ok(Verdict::Uncertain(why))) => {
                            assert!(why.contains("steps"), "{why}")
                        }
                        (_, other) => panic!("{}: {other:?}", case.name()),
                    }
                }
                "ended"
            }
            (Fate::Harmless, Ok(predicate)) => {
                let again = made(case).unwrap();
                for state in &states {
                    let first = again.judge(state, None).unwrap();
                    for _ in 0..3 {
                        assert_eq!(predicate.judge(state, None).unwrap(), first, "{}", case.name());
                    }
                    assert_ne!(first, Verdict::Violation, "{}: something stayed", case.name());
                }
                "harmless"
            }
            (fate, Ok(_)) => panic!("taken, not {fate:?}: {}", case.name()),
            (fate, Err(why)) => panic!("{why}, not {fate:?}: {}", case.name()),
        };
        *counts.entry((case.class, word)).or_default() += 1;
    }
    println!("{} predicates: {counts:?}", cases.len());
    let classes: Vec<&str> = counts.keys().map(|(class, _)| *class).collect();
    for class in
        ["clock", "random", "environment", "file", "socket", "memory", "loop", "float", "size", "malformed"]
    {
        assert!(classes.contains(&class), "{class}");
    }
    assert!(cases.len() >= 100, "{}", cases.len());
}

/// The same modules as reducers: not one is taken that could look at anything else, and what a limit ends is no answer.
#[test]
fn no_impure_reducer_is_taken() {
    let intent = Intent::new("plan.update".parse().unwrap(), "a");
    let input = br#"{"state":{},"transition":{}}"#;
    let mut counts: BTreeMap<Fate, usize> = BTreeMap::new();
    for case in cases() {
        let Asked::Module(bytes, wat) = &case.asked else { continue };
        // What was written as text is a reducer by another name; what was not has none.
        let renamed = wat.replace("\"evaluate\"", "\"reduce\"");
        let bytes = wat::parse_str(&renamed).unwrap_or_else(|_| bytes.clone());
        match (case.fate, dendrer_wasm::reducer(&bytes)) {
            (Fate::Refused, Err(_)) => {}
            (Fate::Ended, Ok(reducer)) => {
                let reduced = reducer.reduce(&Value::object(), &intent);
                assert!(matches!(reduced, Err(ReduceError::Stopped(_))), "{}: {reduced:?}", case.name());
            }
            (Fate::Harmless, Ok(reducer)) => {
                let module = dendrer_wasm::Module::new(&bytes, "reduce").unwrap();
                let first = module.call(input, 100, 10_000_000);
                assert!(first.as_deref() != Ok(br#""violation""#), "{}: something stayed", case.name());
                for _ in 0..3 {
                    assert_eq!(module.call(input, 100, 10_000_000), first, "{}", case.name());
                }
                // None of them answers with a delta, which is an error of the module and the same one each time.
                let reduced = reducer.reduce(&Value::object(), &intent).unwrap_err();
                assert!(matches!(reduced, ReduceError::Module { .. }), "{}: {reduced:?}", case.name());
                assert_eq!(reducer.reduce(&Value::object(), &intent), Err(reduced));
            }
            (fate, Ok(_)) => panic!("taken, not {fate:?}: {}", case.name()),
            (fate, Err(why)) => panic!("{why}, not {fate:?}: {}", case.name()),
        }
        *counts.entry(case.fate).or_default() += 1;
    }
    println!("{counts:?}");
    assert!(counts[&Fate::Refused] >= 50 && counts[&Fate::Ended] >= 10 && counts[&Fate::Harmless] >= 10);
}

/// Every beginning of a module, and every module with one byte changed, is refused or says the same twice.
#[test]
fn damaged_modules_are_refused_or_are_functions() {
    let good = wat::parse_str(list::module("", "(i64.const 4)")).unwrap();
    let judge = |bytes: &[u8]| match dendrer_wasm::predicate("p", bytes) {
        Ok(predicate) => {
            let first = predicate.judge(&Value::Null, None);
            assert_eq!(predicate.judge(&Value::Null, None), first);
            true
        }
        Err(_) => false,
    };
    assert!(judge(&good));
    // Only where a section ends can a beginning be a module: one without what the last section put into its memory.
    let whole = (0..good.len()).filter(|length| judge(&good[..*length])).count();
    assert_eq!(whole, 1);
    let mut taken = 0;
    for at in 0..good.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] ^= change;
            taken += usize::from(judge(&bytes));
        }
    }
    assert!(taken > 0, "some changes leave a module that is one");
}
