//! Commitments beside none: what authorization adds to a step, whether a change costs the same behind many events, and the text of
//! a thousand. Prints ratios; `cargo bench -p dendrer-view --bench commitments`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and a failed unwrap ends it"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use dendrer::ask::commitments::CommitmentsAt;
use dendrer::kernel::commitment::{Commitments, Statuses};
use dendrer::kernel::step::{Inputs, Seeds, Stage, Start, begin, step};
use dendrer_object::record::Author;
use dendrer_object::{Intent, StoreId, Timestamp, Value};
use dendrer_view::ccas::ccas_text;

const MANY: usize = 1_000;

fn record<const N: usize>(members: [(&'static str, Value); N]) -> Value {
    Value::record(members)
}

/// Hard commitments over as many tools: each names its tool, and some look at the state.
fn commitments(many: usize, tools: usize) -> Value {
    let one = |n: usize| {
        let holds =
            format!("action.tool != 't{}' || action.params.n < {} && state.x >= 0", n % tools, 1_000 + n);
        record([
            ("id", format!("C{n}").as_str().into()),
            ("type", "obl".into()),
            ("hard", true.into()),
            ("gloss", format!("Keep the rule {n} in all that is done here.").as_str().into()),
            ("support", Value::array([Value::from("U")])),
            ("watch", Value::array([Value::from(format!("w{n}").as_str())])),
            ("holds", holds.as_str().into()),
        ])
    };
    let atom = record([("id", "U".into()), ("content", "the rules".into())]);
    record([("evidence", Value::array([atom])), ("commitments", Value::array((0..many).map(one)))])
}

fn inputs(n: u64) -> Inputs {
    Inputs { clock: Timestamp::from_ms(n), seeds: Seeds::of_secret([7; 16]) }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Time of a step that asks for a call, in a run with so many commitments.
fn step_time(many: usize, tools: usize) -> Duration {
    let state = record([("x", Value::from(1u64))]);
    let start = Start { stage: Some(Stage::Contracts), state, ..Start::new("r".parse().unwrap()) };
    let (_, mut head) = begin(StoreId([7; 16]), &start, inputs(1)).unwrap();
    let mut first = Intent::new("observation.add".parse().unwrap(), "a");
    first.author = Author::User;
    if many > 0 {
        let lists = commitments(many, tools);
        for (name, list) in lists.as_object().unwrap().iter() {
            first.members.push((name.clone(), list.clone()));
        }
    }
    step(&mut head, &first, inputs(2)).unwrap();
    let call = |n: usize| {
        let mut intent = Intent::new("action.request".parse().unwrap(), "a");
        let params = record([("n", Value::from((n % 7) as u64)), ("text", "x".repeat(400).as_str().into())]);
        intent.members.push((
            "action".into(),
            record([("tool", format!("t{}", n % tools).as_str().into()), ("params", params)]),
        ));
        intent
    };
    let calls: Vec<Intent> = (0..2_000).map(call).collect();
    let times = (0..15).map(|round| {
        let began = Instant::now();
        for (n, call) in calls.iter().enumerate() {
            black_box(step(&mut head, call, inputs(round * 2_000 + n as u64 + 3)).unwrap());
        }
        began.elapsed() / calls.len() as u32
    });
    median(times.collect())
}

/// Time of an event that touches a watched name, behind so many events of the kind. A second copy is held, as a writer does.
fn change_time(events: u64) -> Duration {
    let mut all = Commitments::at_start(2, None, None);
    all.apply(1, Author::User, "observation.add", &commitments(100, 100), None);
    for n in 0..events {
        all.apply(n + 2, Author::Runtime, "action.result", &touching(n), None);
    }
    let next: Vec<Value> = (events..events + 2_000).map(touching).collect();
    let began = Instant::now();
    for (n, event) in next.iter().enumerate() {
        let held = all.clone();
        all.apply(events + 2 + n as u64, Author::Runtime, "action.result", event, None);
        black_box(&held);
    }
    began.elapsed() / next.len() as u32
}

/// Time to find what a touched name affects, behind so many events.
fn affected_time(events: u64) -> Duration {
    let mut all = Commitments::at_start(2, None, None);
    all.apply(1, Author::User, "observation.add", &commitments(100, 100), None);
    for n in 0..events {
        all.apply(n + 2, Author::Runtime, "action.result", &touching(n), None);
    }
    // An event that is there already: its atom is not kept a second time.
    let next: Vec<Value> = (0..1_000).map(touching).collect();
    let times = (0..9).map(|_| {
        let began = Instant::now();
        next.iter().for_each(|event| drop(black_box(all.affected(event, None))));
        began.elapsed() / next.len() as u32
    });
    median(times.collect())
}

fn touching(n: u64) -> Value {
    let atom = record([
        ("id", format!("A{n}").as_str().into()),
        ("content", Value::from(n)),
        ("touches", Value::array([Value::from(format!("w{}", n % 100).as_str())])),
    ]);
    record([("evidence", Value::array([atom]))])
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
    if is_wanted("authorize") {
        let none = step_time(0, 100);
        for tools in [100, 10, 1] {
            let many = step_time(MANY, tools);
            let ratio = many.as_secs_f64() / none.as_secs_f64();
            println!(
                "authorize   {MANY} hard over {tools} tools: {many:?} a step, none {none:?}   ratio {ratio:.2} (limit 2)"
            );
        }
    }
    if is_wanted("revalidate") {
        for (what, time) in [("affected", affected_time as fn(u64) -> Duration), ("event", change_time)] {
            let small = time(1_000);
            for events in [10_000, 100_000, 1_000_000] {
                let large = time(events);
                let ratio = large.as_secs_f64() / small.as_secs_f64();
                println!(
                    "revalidate  {what} behind {events} events: {large:?}, behind 1000: {small:?}   ratio {ratio:.2}"
                );
            }
        }
    }
    if is_wanted("serialize") {
        serialize();
    }
}

/// The text of a thousand commitments, with and without working out their statuses.
fn serialize() {
    let mut all = Commitments::at_start(2, None, None);
    all.apply(1, Author::User, "observation.add", &commitments(MANY, 100), None);
    let state = record([("x", Value::from(1u64))]);
    let statuses = || Statuses::of(&all, &state, &Value::object, None);
    let at = CommitmentsAt {
        run: "r".parse().unwrap(),
        at: 1,
        statuses: statuses(),
        all: all.clone(),
        changes: Vec::new(),
        agents: Vec::new(),
        stage: Some(2),
        tools: None,
        completed: 0,
    };
    let time = |f: &dyn Fn()| {
        median(
            (0..50)
                .map(|_| {
                    let began = Instant::now();
                    f();
                    began.elapsed()
                })
                .collect(),
        )
    };
    println!(
        "serialize   {MANY} commitments: {:?} (limit 2 ms)",
        time(&|| drop(black_box(ccas_text(&at, None, None).unwrap())))
    );
    println!("serialize   their statuses: {:?}", time(&|| drop(black_box(statuses()))));
}
