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

use dendrer_kernel::expr::{Budget, Env, Expr, STEPS_MAX, Scope};

fn main() {
    let state = bombs::state();
    let env = Env::of(&state);
    let mut times: Vec<(Duration, String)> = bombs::bombs()
        .into_iter()
        .map(|bomb| {
            let best = (0..3)
                .map(|_| {
                    let start = Instant::now();
                    let _ = bomb.expr.evaluate(&env, &mut Budget::default());
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
        let start = Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(expr.holds(&env, &mut Budget::default()));
        }
        let each = start.elapsed().as_secs_f64() * 1e9 / rounds as f64;
        println!("{each:8.0} ns  {text} ({} steps)", STEPS_MAX - budget.left());
    }
}
