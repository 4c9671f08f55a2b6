//! The rules of `examples/packs/order-desk.yaml` beside the same reducer written in Rust by hand.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use dendrer_kernel::pack::Origin;
use dendrer_kernel::reduce::{HostReducer, ReduceError, Reducer};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::{Intent, Pointer, Value};

const CUSTOMERS: usize = 20;
const STEPS: usize = 4_000;

pub(crate) fn fold() {
    println!("a step of fold/1 against a reducer written by hand (limit: 10.0)");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs/order-desk.yaml");
    let pack = dendrer::pack::read(&std::fs::read(file).expect("the pack")).expect("a sound pack").pack;
    let s0 = customers();
    let begin = pack.init(&Origin { s0: Some(s0), ..Origin::default() }).expect("an initial state");
    let intents = intents();
    let by_hand = HostReducer::new("by-hand", by_hand);
    let rules = pack.reducer();
    assert_eq!(run(&*rules, &begin, &intents).0, run(&by_hand, &begin, &intents).0, "both mean the same");
    let mut ratios: Vec<(f64, f64, f64)> = (0..5)
        .map(|_| {
            let (ours, peer) = (run(&*rules, &begin, &intents).1, run(&by_hand, &begin, &intents).1);
            (ours / peer, ours, peer)
        })
        .collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, ours, peer) = ratios[2];
    println!("  reducing alone: ratio {ratio:.2}   ({ours:.2} us, by hand {peer:.2} us)");
}

/// A state with customers.
pub(crate) fn customers() -> Value {
    let customers = (0..CUSTOMERS).map(|n| {
        Value::record([
            ("balance", Value::from(0u64)),
            ("id", Value::from(format!("c{n}"))),
            ("orders", Value::array([])),
        ])
    });
    Value::record([("customers", Value::array(customers))])
}

/// Returns the state after all intents, and how many microseconds one takes to reduce. Applying what comes out is the
/// same for both and not counted.
fn run(reducer: &dyn Reducer, begin: &Value, intents: &[Intent]) -> (Value, f64) {
    let mut state = begin.clone();
    let mut time = std::time::Duration::ZERO;
    for intent in intents {
        let start = Instant::now();
        let delta = black_box(reducer.reduce(&state, intent)).expect("no rule meets an error");
        time += start.elapsed();
        state = delta.apply(&state).expect("a delta that fits");
    }
    (state, time.as_secs_f64() * 1e6 / intents.len() as f64)
}

/// Bookings, cancellations, refunds and look-ups in turn, all answered.
pub(crate) fn intents() -> Vec<Intent> {
    let item = |name: &str, price: f64, count: u64| {
        Value::record([
            ("count", Value::from(count)),
            ("name", Value::from(name)),
            ("price", Value::from(price)),
        ])
    };
    let call = |tool: &str, params: Value, output: Value| {
        Intent::new("action.result".parse().expect("a type"), "agent")
            .by_runtime()
            .with("action", Value::record([("params", params), ("tool", Value::from(tool))]))
            .with("result", Value::record([("output", output), ("status", Value::from("ok"))]))
    };
    (0..STEPS)
        .map(|n| {
            let order = Value::from(format!("o{}", n / 4));
            let id = || Value::record([("id", order.clone())]);
            match n % 4 {
                0 => {
                    let items = [item("tea", 2.5, 4), item("book", 15.25, 1), item("pen", 0.75, 10)];
                    let customer = Value::from(format!("c{}", n / 4 % CUSTOMERS));
                    let params = [("customer", customer), ("items", Value::array(items))];
                    call("book", Value::record(params), id())
                }
                1 => call("look_up", id(), Value::from("found")),
                2 => {
                    let items = Value::array([Value::from("tea"), Value::from("pen")]);
                    call("refund", Value::record([("id", order.clone()), ("items", items)]), Value::Null)
                }
                _ => call("cancel", id(), Value::Null),
            }
        })
        .collect()
}

fn by_hand(before: &Value, intent: &Intent) -> Result<Delta, ReduceError> {
    let mut ops = Vec::new();
    if intent.type_name.as_str() != "action.result" {
        return Ok(Delta(ops));
    }
    let at = |outer: &str, inner: &str| intent.member(outer).and_then(|value| value.get(inner));
    let ok = at("result", "status").and_then(Value::as_str) == Some("ok");
    let tool = at("action", "tool").and_then(Value::as_str).unwrap_or_default();
    let params = at("action", "params");
    let param = |name: &str| params.and_then(|params| params.get(name));
    let calls = before.get("calls").and_then(Value::as_array).map_or(0, |calls| calls.len());
    let note =
        [("number", Value::from(calls as u64 + 1)), ("ok", Value::from(ok)), ("tool", Value::from(tool))];
    ops.push(Op::append(Pointer::of(["calls"]), Value::record(note)));
    let customer_at = |id: &str| {
        let customers = before.get("customers").and_then(Value::as_array)?;
        customers.iter().position(|customer| customer.get("id").and_then(Value::as_str) == Some(id))
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    match tool {
        "book" if ok => {
            let id = text(at("result", "output").and_then(|output| output.get("id")));
            let customer = text(param("customer"));
            let order = [
                ("customer", Value::from(&*customer)),
                ("items", param("items").cloned().unwrap_or(Value::Null)),
                ("status", Value::from("booked")),
            ];
            ops.push(Op::set(Pointer::of(["orders", &id]), Value::record(order)));
            if let Some(at) = customer_at(&customer) {
                ops.push(Op::append(Pointer::of(["customers", &at.to_string(), "orders"]), Value::from(id)));
            }
        }
        "cancel" if ok => {
            let id = text(param("id"));
            ops.push(Op::set(Pointer::of(["orders", &id, "status"]), Value::from("cancelled")));
        }
        "refund" if ok => {
            let order = before.get("orders").and_then(|orders| orders.get(&text(param("id"))));
            let items = order.and_then(|order| order.get("items")).and_then(Value::as_array);
            let names = param("items").and_then(Value::as_array);
            let customer = customer_at(&text(order.and_then(|order| order.get("customer"))));
            for item in items.into_iter().flat_map(|items| items.iter()) {
                let number = |name: &str| item.get(name).and_then(Value::as_f64).unwrap_or(0.0);
                let is_named =
                    names.is_some_and(|names| names.iter().any(|name| Some(name) == item.get("name")));
                if !is_named {
                    continue;
                }
                let value = Value::from(number("price") * number("count"));
                ops.push(add(Pointer::of(["refunded"]), value.clone()));
                if let Some(at) = customer {
                    ops.push(add(Pointer::of(["customers", &at.to_string(), "balance"]), value));
                }
            }
        }
        _ => {}
    }
    Ok(Delta(ops))
}

fn add(path: Pointer, value: Value) -> Op {
    Op { action: Action::Add, path, value: Some(value) }
}
