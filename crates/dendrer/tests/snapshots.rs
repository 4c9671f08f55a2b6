//! Snapshots: derived, taken when the records since the last one outweigh them, used only where they agree with the record (D-68, D-151).

use dendrer::bisect::{Outcome, Question, Range, bisect};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::{Error, Trace};
use dendrer_kernel::predicate::Predicate;
use dendrer_kernel::step::Start;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::{Intent, RunName, Value};
use dendrer_store::{Memory, Store};
use dendrer_testkit::{memory, run_name};

const TICKS: u64 = 3000;

fn recorded() -> Result<(Memory, RunName), Error> {
    let mut store = memory(3);
    let run = run_name("long");
    let intents = (0..TICKS).map(|n| {
        let path = format!("/slots/s{}", n % 50).parse().expect("a pointer");
        let delta = Delta(vec![Op::set(path, Value::from(format!("{n:0>100}")))]);
        Intent::new("memory.write".parse().expect("a type"), "a").with_delta(delta)
    });
    dendrer_testkit::record(&mut store, &Start::new(run.clone()), intents);
    Ok((store, run))
}

#[test]
fn a_state_is_read_from_the_nearest_snapshot_and_is_the_folded_one() -> Result<(), Error> {
    let (store, run) = recorded()?;
    let mut taken = Vec::new();
    let mut at = TICKS;
    while let Some((tick, bytes)) = store.snapshot(&run, at)? {
        taken.push((tick, bytes.len()));
        at = tick - 1;
    }
    // A state of 6 KB and about 1.3 KB to read for a record: one snapshot for every 64 KB of them, and never more bytes
    // than a quarter of the records.
    assert!((30..=90).contains(&taken.len()), "{taken:?}");
    let steps: Vec<u64> = taken.windows(2).map(|pair| pair[0].0 - pair[1].0).collect();
    assert!(steps.iter().all(|ticks| (30..=100).contains(ticks)), "{steps:?}");
    let room: usize = taken.iter().map(|(_, bytes)| bytes).sum();
    assert!(room * 4 < 1500 * TICKS as usize, "{room}");
    for tick in [1, 499, 500, 777, 1500, 2999, TICKS] {
        let moment = Trace::open(&store, &run)?.at(tick)?;
        let expected = format!("{:0>100}", tick - 1);
        let slot = moment.state.get("slots").and_then(|slots| slots.get(&format!("s{}", (tick - 1) % 50)));
        assert_eq!(slot, Some(&Value::from(expected)), "tick {tick}");
        let count = moment.counters.to_value();
        assert_eq!(count.get("transitions"), Some(&Value::from(tick)), "tick {tick}");
    }
    Ok(())
}

/// Of a state that only grows, reading the records is as cheap as reading the state.
#[test]
fn a_growing_transcript_takes_no_snapshots() -> Result<(), Error> {
    let mut store = memory(3);
    let run = run_name("talk");
    let intents = (0..400).map(|n| {
        let message =
            Value::record([("content", Value::from(format!("{n:0>1000}"))), ("role", Value::from("user"))]);
        let path = format!("/messages/m{n}").parse().expect("a pointer");
        Intent::new("memory.write".parse().expect("a type"), "a")
            .with_delta(Delta(vec![Op::set(path, message)]))
    });
    dendrer_testkit::record(&mut store, &Start::new(run.clone()), intents);
    assert_eq!(store.snapshot(&run, 400)?, None);
    Ok(())
}

/// Each process that goes on with a run for one step counts what those before it recorded.
#[test]
fn a_run_that_is_resumed_for_each_step_has_snapshots() -> Result<(), Error> {
    let mut store = memory(3);
    let run = run_name("steps");
    let surroundings = || Box::new(Fixed::new("steps", 1_000, 1));
    Recorder::begin(&mut store, &Start::new(run.clone()), surroundings())?.commit()?;
    for n in 0..300 {
        let mut recorder = Recorder::resume(&mut store, &run, surroundings())?;
        let delta =
            Delta(vec![Op::set("/slot".parse().expect("a pointer"), Value::from(format!("{n:0>100}")))]);
        let intent = Intent::new("memory.write".parse().expect("a type"), "a").with_delta(delta);
        recorder.propose(&intent)?;
        recorder.commit()?;
    }
    let newest = store.snapshot(&run, 300)?.map(|(tick, _)| tick);
    assert!(newest.is_some_and(|tick| tick > 150), "{newest:?}");
    Ok(())
}

#[test]
fn a_snapshot_that_lies_about_the_state_is_not_used() -> Result<(), Error> {
    let (store, run) = recorded()?;
    let honest = Trace::open(&store, &run)?.at(2500)?;
    let mut lying = honest.clone();
    lying.state = Value::record([("slots", Value::object())]);
    store.put_snapshot(&run, 2500, &lying.to_snapshot())?;
    assert_eq!(Trace::open(&store, &run)?.at(2500)?.state, honest.state);
    store.put_snapshot(&run, 2400, b"not a snapshot")?;
    assert_eq!(Trace::open(&store, &run)?.at(2450)?.tick, 2450);
    Ok(())
}

/// The record binds the state and nothing else that a snapshot holds.
#[test]
fn a_snapshot_that_lies_about_counters_changes_no_answer() -> Result<(), Error> {
    let (store, run) = recorded()?;
    let honest = Trace::open(&store, &run)?.at(2500)?;
    let text = String::from_utf8(honest.to_snapshot()).expect("JSON is text");
    let damaged = text.replace(r#""transitions":2500"#, r#""transitions":9500"#);
    assert_ne!(damaged, text);
    store.put_snapshot(&run, 2500, damaged.as_bytes())?;
    assert_eq!(Trace::open(&store, &run)?.at(2500)?.counters, honest.counters, "damage shows");

    // Whoever writes the check anew, too, is believed by whoever reads a state, and not by a search.
    let mut lying = honest.clone();
    lying.counters = Trace::open(&store, &run)?.at(2900)?.counters;
    store.put_snapshot(&run, 2500, &lying.to_snapshot())?;
    assert_ne!(Trace::open(&store, &run)?.at(2500)?.counters, honest.counters);
    let predicate = Predicate::condition("many", "state.counters.transitions >= 2600").expect("it checks");
    let (question, range) = (Question::Predicate(predicate), Range::new(0, TICKS));
    assert_eq!(bisect(&Trace::open(&store, &run)?, &question, &range)?.outcome, Outcome::Onset(2600));
    Ok(())
}
