//! How long it takes to refuse what `tests/hostile` has, and what a call of a module costs: `cargo bench -p dendrer-wasm`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

#[path = "../tests/hostile/list.rs"]
mod list;

use std::hint::black_box;
use std::time::{Duration, Instant};

use dendrer_kernel::predicate::Predicate;
use dendrer_object::{Intent, json};
use list::{Asked, Case, Fate, cases};

fn main() {
    let mut slowest: Vec<(Duration, String)> = Vec::new();
    let mut ended = Duration::ZERO;
    for case in cases() {
        let (took, made) = door(&case);
        match case.fate {
            Fate::Refused => slowest.push((took, format!("{}: {}", case.class, case.name()))),
            Fate::Ended => {
                let predicate = made.expect("it is taken");
                let begin = Instant::now();
                let _ = black_box(predicate.judge(&json::parse_door(b"{}").unwrap(), None));
                ended = ended.max(begin.elapsed());
            }
            Fate::Harmless => {}
        }
    }
    slowest.sort();
    println!("{} refused; the slowest took (limit: 100 ms)", slowest.len());
    for (took, name) in slowest.iter().rev().take(5) {
        let name: String = name.chars().take(50).filter(|c| !c.is_control()).collect();
        println!("  {:8.2} ms  {name}", took.as_secs_f64() * 1e3);
    }
    println!("the slowest call that a limit ended: {:.1} ms", ended.as_secs_f64() * 1e3);

    let bytes = wat::parse_str(list::module("", "(i64.const 4)")).unwrap();
    let predicate = dendrer_wasm::predicate("p", &bytes).unwrap();
    let state = json::parse_door(format!(r#"{{"text":"{}"}}"#, "x".repeat(1000)).as_bytes()).unwrap();
    let calls = 10_000;
    let begin = Instant::now();
    for _ in 0..calls {
        black_box(predicate.judge(black_box(&state), None)).unwrap();
    }
    println!("a call on a state of 1 KB: {:.1} us", begin.elapsed().as_secs_f64() * 1e6 / f64::from(calls));

    let reducer = dendrer_wasm::reducer(include_bytes!("../../../examples/modules/tally.wasm")).unwrap();
    let state = format!(r#"{{"tally":{{"food":{{"count":1,"sum":5}}}},"text":"{}"}}"#, "x".repeat(1000));
    let state = json::parse_door(state.as_bytes()).unwrap();
    let given =
        r#"{"type":"action.result","result":{"output":{"amount":5,"category":"food"},"status":"ok"}}"#;
    let intent = Intent::from_value(&json::parse_door(given.as_bytes()).unwrap(), Some("a")).unwrap();
    let begin = Instant::now();
    for _ in 0..calls {
        assert_eq!(black_box(reducer.reduce(black_box(&state), &intent)).unwrap().0.len(), 2);
    }
    println!(
        "a transition reduced by tally.wasm on a state of 1 KB: {:.1} us",
        begin.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
    );
}

fn door(case: &Case) -> (Duration, Option<Predicate>) {
    let begin = Instant::now();
    let made = match &case.asked {
        Asked::Expr(text) => Predicate::condition("p", text).ok(),
        Asked::Module(bytes, _) => dendrer_wasm::predicate("p", bytes).ok(),
    };
    (begin.elapsed(), made)
}
