//! `demo --size N`: one generated run of any length, for load tests.
//!
//! The state stays small however long the run is. `state.handled` counts the ticks, so that the onset of
//! `state.handled >= K` is tick K; `state.errors` rises now and then and never falls.

use dendrer::Error;
use dendrer::recorder::{Fixed, Recorder};
use dendrer::store::Shared;
use dendrer_kernel::step::{Outcome, Start};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::{Intent, Pointer, RunName, Value};

use super::script::{MORNING_MS, v};
use super::{DemoRun, describe};

/// How many ticks are made durable together.
pub(crate) const BATCH: u64 = 1_000;

const AGENTS: [&str; 5] = ["intake", "router", "picker", "auditor", "courier"];

const PLACES: [&str; 8] = ["Basel", "Olten", "Aarau", "Bern", "Thun", "Brig", "Sion", "Visp"];

const TOOLS: [&str; 4] = ["stock", "route_status", "quote", "track"];

/// Records one run of so many ticks, named after its length. `done` hears of each tick.
pub(crate) fn fill_sized(store: &Shared, ticks: u64, done: &mut dyn FnMut(u64)) -> Result<DemoRun, Error> {
    let name: RunName = format!("generated-{ticks}").parse().expect("a run id");
    let mut start = Start::new(name.clone());
    start.goal = Some("Keep eight places supplied".into());
    start.state = v(r#"{"beliefs":{},"cost":0,"errors":0,"handled":0,"memory":{},"stock":
            {"Aarau":90,"Basel":90,"Bern":90,"Brig":90,"Olten":90,"Sion":90,"Thun":90,"Visp":90}}"#);
    start.meta = Some(v(r#"{"source":"dendrer demo --size","synthetic":true}"#));
    let surroundings = Fixed::new(name.as_str(), MORNING_MS, 250);
    let mut recorder = Recorder::begin(store, &start, Box::new(surroundings))?;
    for tick in 1..=ticks {
        match recorder.propose(&step(tick))? {
            Outcome::Committed(_) | Outcome::Violated { .. } => {}
            Outcome::Refused(refused) => {
                panic!("tick {tick} of the generated run was refused: {}", refused.reason)
            }
        }
        done(tick);
        if tick.is_multiple_of(BATCH) {
            recorder.submit()?;
        }
    }
    while recorder.wait()?.is_some() {}
    recorder.commit()?;
    drop(recorder);
    describe(store, &name, "a generated run for load tests")
}

/// The intent of a tick: a request, its answer, what was seen, what is planned, in turn.
fn step(tick: u64) -> Intent {
    let round = tick / 4;
    let pick = |from: &[&'static str], salt: u64| from[(mix(round, salt) % from.len() as u64) as usize];
    let (agent, place, tool) = (pick(&AGENTS, 1), pick(&PLACES, 2), pick(&TOOLS, 3));
    let left = 20 + mix(round, 4) % 160;
    let failed = mix(round, 5).is_multiple_of(37);
    let latency = 40 + mix(tick, 6) % 900;
    let tokens = 120 + mix(tick, 7) % 700;
    let params = Value::record([("day", Value::from(1 + round % 365)), ("place", Value::from(place))]);
    let action = Value::record([("params", params), ("tool", Value::from(tool))]);
    let says = |text: String, confidence: u64| {
        let confidence = Value::from((confidence as f64) / 1000.0);
        Value::record([("confidence", confidence), ("description", Value::from(text))])
    };
    let confidence = 520 + mix(tick, 8) % 470;
    let mut delta = vec![op(Action::Add, &["handled"], Value::from(1u64))];
    let intent = match tick % 4 {
        0 => Intent::new(type_name("action.request"), agent).with("action", action).with(
            "intent",
            says(format!("ask {tool} about {place} before lorry {} leaves", round % 90), confidence),
        ),
        1 => {
            let status = if failed { "error" } else { "ok" };
            if failed {
                delta.push(op(Action::Add, &["errors"], Value::from(1u64)));
            } else {
                delta.push(op(Action::Set, &["stock", place], Value::from(left)));
            }
            let output = if failed {
                Value::Null
            } else {
                Value::record([("left", Value::from(left)), ("unit", Value::from("pallets"))])
            };
            Intent::new(type_name("action.result"), agent)
                .by_runtime()
                .with("action", action)
                .with("result", Value::record([("output", output), ("status", Value::from(status))]))
        }
        2 => {
            delta.push(op(Action::Set, &["beliefs", place], Value::from(left / 18)));
            Intent::new(type_name("observation.add"), agent).with(
                "intent",
                says(
                    format!("{place} has stock for {} days at the rate of this week", left / 18),
                    confidence,
                ),
            )
        }
        _ => {
            delta.push(op(Action::Add, &["cost"], Value::from(40 + mix(round, 9) % 60)));
            Intent::new(type_name("plan.update"), agent).with(
                "intent",
                says(format!("send {} pallets to {place} with the next lorry", 180 - left), confidence),
            )
        }
    };
    let metrics = [
        ("cost_usd", Value::from((tokens * 6) as f64 / 1e6)),
        ("latency_ms", Value::from(latency)),
        ("tokens_used", Value::from(tokens)),
    ];
    intent.with("metrics", Value::record(metrics)).with_delta(Delta(delta))
}

fn type_name(text: &str) -> dendrer_object::TypeName {
    text.parse().expect("a type of the ontology")
}

fn op(action: Action, path: &[&str], value: Value) -> Op {
    Op { action, path: Pointer::of(path.iter().copied()), value: Some(value) }
}

/// A number that looks like chance and is the same everywhere (the finalizer of splitmix64).
fn mix(n: u64, salt: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt.wrapping_mul(0xd1b5_4a32_d192_ed03));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
