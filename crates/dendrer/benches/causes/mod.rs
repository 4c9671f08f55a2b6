//! Contributors of an onset at the end of a run of 1,000 ticks, by delta debugging over re-reductions.

use std::path::Path;
use std::time::Instant;

use dendrer::contributors::{ContributorsFound, WORK_MAX, contributors};
use dendrer::recorder::World;
use dendrer::{Recorder, Trace, pack};
use dendrer_kernel::predicate::Predicate;
use dendrer_kernel::step::Start;
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::{Intent, Value};
use dendrer_store::{Memory, Shared, StoreInfo};

use crate::common::{key, median};
use crate::desk;

const TICKS: usize = 1_000;

pub(crate) fn contributors_of_long_runs() {
    println!("contributors of an onset at tick {TICKS} (limit: 2.00 s)");
    let x = || "/x".parse().expect("a pointer");
    let set = |value: f64| Op::set(x(), Value::from(value));
    let add = |value: f64| Op { action: Action::Add, path: x(), value: Some(Value::from(value)) };
    let write =
        |op: Op| Intent::new("memory.write".parse().expect("a type"), "agent").with_delta(Delta(vec![op]));
    let last = TICKS - 1;
    type Make<'f> = Box<dyn Fn(usize) -> Op + 'f>;
    let shapes: [(&str, &str, Make<'_>); 4] = [
        ("one of 1,000 sums, all of which matter", "state.x > 999.5", Box::new(|_| add(1.0))),
        ("40 of 1,000 sums, all of which matter", "state.x > 960.5", Box::new(|_| add(1.0))),
        (
            "none: the onset brings it about",
            "state.x > 1000.0",
            Box::new(|n| if n == last { set(2000.0) } else { add(1.0) }),
        ),
        (
            "two writes among 1,000 elsewhere",
            "state.x > 8.0",
            Box::new(|n| match n {
                100 | 700 => add(4.0),
                _ if n == last => add(1.0),
                _ => Op::set("/y".parse().expect("a pointer"), Value::from(n as u64)),
            }),
        ),
    ];
    for (what, condition, op) in &shapes {
        let store = memory();
        let start = Start {
            state: Value::record([("x", Value::from(0u64))]),
            ..Start::new("r".parse().expect("a name"))
        };
        let mut recorder = Recorder::begin(&store, &start, Box::new(World::default())).expect("a run");
        for n in 0..TICKS {
            recorder.propose(&write(op(n))).expect("a step");
        }
        recorder.commit().expect("committed");
        drop(recorder);
        let predicate = Predicate::condition("p", condition).expect("an expression");
        measure(what, &store, &predicate, TICKS as u64);
    }
    desk_run();
}

/// The order desk, whose rules make every change.
fn desk_run() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs/order-desk.yaml");
    let source = pack::read(&std::fs::read(file).expect("the pack")).expect("a sound pack");
    let store = memory();
    let start = Start { state: desk::customers(), ..Start::new("r".parse().expect("a name")) };
    let mut recorder = source
        .bind(start)
        .and_then(|start| dendrer::Recorder::begin(&store, &start, Box::new(World::default())))
        .expect("a run begins");
    for intent in desk::intents().iter().take(TICKS) {
        recorder.propose(intent).expect("a step");
    }
    recorder.commit().expect("committed");
    drop(recorder);
    for (what, refunded) in [("rules: the refunds of 1,000 calls", 0), ("rules: many refunds", 40)] {
        let trace = Trace::open(&store, &"r".parse().expect("a name")).expect("a run");
        let total = |tick| trace.at(tick).expect("a state").state.get("refunded").and_then(Value::as_f64);
        let all = total(trace.tip()).unwrap_or(0.0);
        let condition =
            format!("has(state.refunded) && state.refunded > {:?}", all - 0.5 - f64::from(refunded));
        let predicate = Predicate::condition("p", &condition).expect("an expression");
        let onset =
            (1..=trace.tip()).find(|tick| total(*tick).unwrap_or(0.0) > all - 0.5 - f64::from(refunded));
        measure(what, &store, &predicate, onset.expect("an onset"));
    }
}

fn memory() -> Shared {
    Shared::new(Box::new(Memory::new(StoreInfo::new(
        dendrer_object::StoreId([7; 16]),
        key().verifier_key().clone(),
    ))))
}

fn measure(what: &str, store: &Shared, predicate: &Predicate, onset: u64) {
    let trace = Trace::open(store, &"r".parse().expect("a name")).expect("a run");
    let mut times = Vec::new();
    let mut answer = None;
    for _ in 0..5 {
        let begin = Instant::now();
        answer = Some(contributors(&trace, predicate, 0, onset, WORK_MAX).expect("contributors"));
        times.push(begin.elapsed().as_secs_f64());
    }
    let answer = answer.expect("five rounds");
    let found = match &answer.found {
        ContributorsFound::Set { ticks, shown, .. } => format!("{} found, {shown:?}", ticks.len()),
        other => format!("{other:?}"),
    };
    println!(
        "  {:.3} s   {what}: {found}; {} of {} can matter, {} re-reductions over {} transitions",
        median(times),
        answer.candidates,
        answer.earlier,
        answer.rereductions,
        answer.work
    );
}
