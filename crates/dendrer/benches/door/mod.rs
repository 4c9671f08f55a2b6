//! What a contract costs at the door: a step of 1 KB under a contract of 20 fields and 10 rules, beside the same step without.

use std::hint::black_box;
use std::time::Instant;

use dendrer_kernel::pack::{Bound, Pack};
use dendrer_kernel::step::{Inputs, Outcome, Seeds, Stage, Start, begin, step};
use dendrer_object::{Intent, StoreId, Timestamp, Value};

use crate::common::{intents, median};

const STEPS: usize = 2_000;
const FIELDS: usize = 20;
const RULES: usize = 10;
const ROUNDS: usize = 9;

pub(crate) fn contract() {
    println!(
        "a step of 1 KB under a contract of {FIELDS} fields and {RULES} rules, against one without (limit: 2.0)"
    );
    let intents = intents(STEPS);
    let both = (true, true);
    let mut rounds: Vec<(f64, f64)> =
        (0..ROUNDS).map(|_| (run(&intents, both), run(&intents, (false, false)))).collect();
    rounds.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let ratio = median(rounds.iter().map(|(with, without)| with / without).collect());
    let (with, without) = rounds[ROUNDS / 2];
    println!("  with a contract: ratio {ratio:.2}   ({with:.2} us, without {without:.2} us)");
    let fields = median((0..ROUNDS).map(|_| run(&intents, (true, false))).collect());
    let rules = median((0..ROUNDS).map(|_| run(&intents, (false, true))).collect());
    println!("  the fields alone {fields:.2} us, the rules alone {rules:.2} us");
}

/// Microseconds for a step, with or without fields and rules.
fn run(intents: &[Intent], (has_fields, has_rules): (bool, bool)) -> f64 {
    let mut start = Start::new("bench".parse().expect("a run id"));
    let fields = (0..FIELDS).map(|n| (format!("field_{n}"), value(n)));
    start.state = Value::record(fields);
    if has_fields {
        start.stage = Some(Stage::Contracts);
        start.pack = Some(pack(intents));
    }
    if has_rules {
        start.policy = (0..RULES)
            .map(|n| {
                let holds = format!("state.field_{} != null && state.field_{} != null", n, n + RULES);
                Value::record([("id", Value::from(format!("rule_{n}"))), ("holds", Value::from(holds))])
            })
            .collect();
    }
    let inputs = |n: usize| {
        let mut seed = [7; 16];
        seed[..8].copy_from_slice(&(n as u64).to_be_bytes());
        Inputs { clock: Timestamp::from_ms(1_790_000_000_000 + n as u64), seeds: Seeds::of_secret(seed) }
    };
    let (_, mut head) = begin(StoreId([1; 16]), &start, inputs(0)).expect("a start that fits");
    let began = Instant::now();
    for (n, intent) in intents.iter().enumerate() {
        let outcome = step(&mut head, intent, inputs(n + 1)).expect("a step that fits");
        assert!(matches!(black_box(outcome), Outcome::Committed(_)), "nothing is refused");
    }
    began.elapsed().as_secs_f64() * 1e6 / intents.len() as f64
}

fn value(n: usize) -> Value {
    match n % 3 {
        0 => Value::from(n as f64 + 0.25),
        1 => Value::from(format!("value {n}")),
        _ => Value::from(n.is_multiple_of(2)),
    }
}

/// A pack with a contract for each type that the steps have.
fn pack(intents: &[Intent]) -> Bound {
    let fields = || (0..FIELDS).map(|n| format!("field_{n}"));
    let declared = fields().map(|name| (name, Value::record([("init", Value::from(0u64))])));
    let required = || {
        Value::record(fields().map(|name| {
            let precision = Value::record([("precision", Value::from(2u64))]);
            let any = Value::object();
            let is_number = name.trim_start_matches("field_").parse::<usize>().is_ok_and(|n| n % 3 == 0);
            (name, if is_number { precision } else { any })
        }))
    };
    let mut types: Vec<&str> = intents.iter().map(|intent| intent.type_name.as_str()).collect();
    types.sort_unstable();
    types.dedup();
    let contracts = types.into_iter().map(|name| {
        let seeds = Value::array(fields().map(Value::from));
        (name, Value::record([("hash_seeds", seeds), ("required_state", required())]))
    });
    let violation = Value::record([
        ("bisect_predicate", Value::from("monotone_lift")),
        ("condition", Value::from("state.field_0 == null")),
        ("id", Value::from("never")),
    ]);
    let value = Value::record([
        ("name", Value::from("bench")),
        ("version", Value::from("v1")),
        ("reducer", Value::from("delta/1")),
        ("state", Value::record(declared)),
        ("contracts", Value::record(contracts)),
        ("violations", Value::array([violation])),
    ]);
    Pack::read(&value).unwrap_or_else(|faults| panic!("{faults:#?}"));
    Bound { value, text: "".into() }
}
