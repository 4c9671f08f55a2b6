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

use super::script::{DemoRun, MORNING_MS, describe, read};

/// How many ticks are made durable together.
pub(crate) const BATCH: u64 = 1_000;

const AGENTS: [&str; 5] = ["intake", "router", "picker", "auditor", "courier"];

const PLACES: [&str; 8] = ["Basel", "Olten", "Aarau", "Bern", "Thun", "Brig", "Sion", "Visp"];

const TOOLS: [&str; 4] = ["stock", "route_status", "quote", "track"];

/// Records one run of so many ticks, named after its length. Calls `done` with each tick.
pub(crate) fn fill_sized(store: &Shared, ticks: u64, done: &mut dyn FnMut(u64)) -> Result<DemoRun, Error> {
    let name: RunName = format!("generated-{ticks}").parse().expect("a run id");
    let mut start = Start::new(name.clone());
    start.goal = Some("Keep eight places supplied".into());
    start.state = read(
        r#"{"beliefs":{},"cost":0,"errors":0,"handled":0,"memory":{},"stock":
            {"Aarau":90,"Basel":90,"Bern":90,"Brig":90,"Olten":90,"Sion":90,"Thun":90,"Visp":90}}"#,
    );
    start.meta = Some(read(r#"{"source":"dendrer demo --size","synthetic":true}"#));
    let environment = Fixed::new(name.as_str(), MORNING_MS, 250);
    let mut recorder = Recorder::begin(store, &start, Box::new(environment))?;
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

/// The intent of a tick: a request, its answer, an observation, a plan, in turn.
fn step(tick: u64) -> Intent {
    let round = tick / 4;
    let pick = |from: &[&'static str], salt: u64| from[(mix(round, salt) % from.len() as u64) as usize];
    let (agent, place, tool) = (pick(&AGENTS, 1), pick(&PLACES, 2), pick(&TOOLS, 3));
    let left = 20 + mix(round, 4) % 160;
    let failed = mix(round, 5).is_multiple_of(37);
    let latency = 40 + mix(tick, 6) % 900;
    let tokens = 120 + mix(tick, 7) % 700;
    let says = |text: String| {
        let confidence = Value::from((520 + mix(tick, 8) % 470) as f64 / 1000.0);
        ("intent", Value::record([("confidence", confidence), ("description", Value::from(text))]))
    };
    let params = Value::record([("day", Value::from(1 + round % 365)), ("place", Value::from(place))]);
    let action = ("action", Value::record([("params", params), ("tool", Value::from(tool))]));
    let result = |output: Value, status: &str| {
        ("result", Value::record([("output", output), ("status", Value::from(status))]))
    };
    let metrics = Value::record([
        ("cost_usd", Value::from((tokens * 6) as f64 / 1e6)),
        ("latency_ms", Value::from(latency)),
        ("tokens_used", Value::from(tokens)),
    ]);
    let (type_name, members, change) = match tick % 4 {
        0 => {
            let ask = says(format!("ask {tool} about {place} before lorry {} leaves", round % 90));
            ("action.request", vec![action, ask], None)
        }
        1 if failed => {
            let change = op(Action::Add, &["errors"], 1);
            ("action.result", vec![action, result(Value::Null, "error")], Some(change))
        }
        1 => {
            let output = Value::record([("left", Value::from(left)), ("unit", Value::from("pallets"))]);
            let change = op(Action::Set, &["stock", place], left);
            ("action.result", vec![action, result(output, "ok")], Some(change))
        }
        2 => {
            let days = left / 18;
            let has = says(format!("{place} has stock for {days} days at the rate of this week"));
            ("observation.add", vec![has], Some(op(Action::Set, &["beliefs", place], days)))
        }
        _ => {
            let send = says(format!("send {} pallets to {place} with the next lorry", 180 - left));
            ("plan.update", vec![send], Some(op(Action::Add, &["cost"], 40 + mix(round, 9) % 60)))
        }
    };
    let mut intent = Intent::new(type_name.parse().expect("a type of the ontology"), agent);
    if type_name == "action.result" {
        intent = intent.by_runtime();
    }
    for (name, value) in members {
        intent = intent.with(name, value);
    }
    let handled = op(Action::Add, &["handled"], 1);
    intent.with("metrics", metrics).with_delta(Delta([handled].into_iter().chain(change).collect()))
}

fn op(action: Action, path: &[&str], value: u64) -> Op {
    Op { action, path: Pointer::of(path.iter().copied()), value: Some(Value::from(value)) }
}

/// A number that looks like chance and is the same everywhere (the finalizer of splitmix64).
fn mix(n: u64, salt: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt.wrapping_mul(0xd1b5_4a32_d192_ed03));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
