//! How long the slowest bombs take until the budget ends them, and what one step takes:
//! `cargo bench -p dendrer-kernel --bench expr`.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a benchmark looks at the clock and prints"
)]

#[path = "../tests/bombs/mod.rs"]
mod bombs;

use std::time::{Duration, Instant};

use dendrer_kernel::expr::{Budget, Env, EvalError, Expr, STEPS_MAX, Scope};
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_object::Value;

/// Where a measurement began. The time the process had on a processor, where the system tells it, so that a busy
/// machine says the same as a quiet one; else the time that passed.
struct Start(Instant, Option<Duration>);

impl Start {
    fn now() -> Start {
        Start(Instant::now(), on_processor())
    }

    fn elapsed(&self) -> Duration {
        match (self.1, on_processor()) {
            (Some(before), Some(after)) => after - before,
            _ => self.0.elapsed(),
        }
    }
}

fn on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

fn main() {
    against_a_closure();
    let state = bombs::state();
    let env = Env::of(&state);
    let mut times: Vec<(Duration, String)> = bombs::bombs()
        .into_iter()
        .map(|bomb| {
            let rounds: usize = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
            let best = (0..rounds)
                .map(|_| {
                    let start = Start::now();
                    let found = bomb.expr.evaluate(&env, &mut Budget::default());
                    assert_eq!(found, Err(EvalError::Exhausted), "{}", bomb.expr.text());
                    start.elapsed()
                })
                .min();
            let text: String = bomb.expr.text().chars().take(100).collect();
            (best.unwrap_or_default(), format!("{}: {text}", bomb.family))
        })
        .collect();
    times.sort();
    let total: Duration = times.iter().map(|(time, _)| *time).sum();
    println!(
        "{} bombs of {STEPS_MAX} steps, {:.1} ms on average",
        times.len(),
        total.as_secs_f64() * 1e3 / times.len() as f64
    );
    for (time, text) in times.iter().rev().take(25) {
        println!("{:8.1} ms  {text}", time.as_secs_f64() * 1e3);
    }
    for text in ["state.n > 2", "state.n > 2 && state.map[\"name 7\"] < 1", "state.records.all(r, r.id >= 0)"]
    {
        let expr = Expr::parse(text, &Scope::new()).expect("it parses");
        let mut budget = Budget::default();
        let _ = expr.holds(&env, &mut budget);
        let rounds = 100_000_000 / (STEPS_MAX - budget.left()) / 100;
        let start = Start::now();
        for _ in 0..rounds {
            std::hint::black_box(expr.holds(&env, &mut Budget::default()));
        }
        let each = start.elapsed().as_secs_f64() * 1e9 / rounds as f64;
        println!("{each:8.0} ns  {text} ({} steps)", STEPS_MAX - budget.left());
    }
}

/// What a predicate costs beside the same question written in Rust for the same state.
fn against_a_closure() {
    let filling = (0..16).map(|n| (format!("field_{n:02}"), Value::from("x".repeat(40))));
    let named = [("status".to_owned(), Value::from("open")), ("total".to_owned(), Value::from(120.5))];
    let members = filling.chain(named).map(|(name, value)| (name.into(), value)).collect();
    let state = Value::Object(members);
    let predicate =
        Predicate::holds("p", "state.total <= 500.0 && state.status == 'open'").expect("it parses");
    let by_hand = |state: &Value| {
        let total = state.get("total").and_then(Value::as_f64);
        let status = state.get("status").and_then(Value::as_str);
        total.zip(status).is_some_and(|(total, status)| total <= 500.0 && status == "open")
    };
    let judged = |state: &Value| predicate.verdict(state, None) == Verdict::Ok;
    assert!(judged(&state) && by_hand(&state));
    let time = |ask: &dyn Fn(&Value) -> bool| {
        let start = Start::now();
        for _ in 0..1_000_000 {
            std::hint::black_box(ask(std::hint::black_box(&state)));
        }
        start.elapsed().as_secs_f64() * 1e3
    };
    let mut ratios: Vec<(f64, f64, f64)> = (0..7)
        .map(|_| {
            let (ours, peer) = (time(&judged), time(&by_hand));
            (ours / peer, ours, peer)
        })
        .collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, ours, peer) = ratios[3];
    println!(
        "a predicate of two comparisons on a state of {} bytes against Rust by hand (limit: 5.0)",
        state.size()
    );
    println!("  ratio {ratio:.2}   ({ours:.0} ns, by hand {peer:.0} ns)");
}
