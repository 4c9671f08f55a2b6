//! Snapshots: derived, taken when the records since the last one outweigh them, used only where they agree with the record (D-68, D-151).

use std::ops::ControlFlow;

use dendrer::bisect::{Outcome, Question, Range, bisect};
use dendrer::fork::{Terms, fork};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::{Error, Trace};
use dendrer_kernel::predicate::Predicate;
use dendrer_kernel::step::Start;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::json::parse_door;
use dendrer_object::record::{Author, Body, Header, Kind, cut};
use dendrer_object::{Intent, Record, RunName, Timestamp, Value};
use dendrer_store::{Embedded, Memory, Options, Store};
use dendrer_testkit::{Dice, info, memory, run_name};

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

/// An intent of some kind that counters look at, or do not.
fn varied(dice: &mut Dice, n: u64) -> Intent {
    let (slot, agent, tool) = (dice.below(20), ["a", "b"][dice.below(2) as usize], dice.below(3));
    let more = match n % 4 {
        0 => format!(
            r#","type":"action.request","action":{{"tool":"t{tool}"}},"metrics":{{"cost_usd":0.25,"tokens_used":{n}}}"#
        ),
        1 => format!(
            r#","type":"action.request","action":{{"calls":[{{"tool":"u"}},{{"tool":"t{tool}"}}],"note":"n"}}"#
        ),
        2 => format!(
            r#","type":"action.result","result":{{"output":"{}","status":"{}"}}"#,
            "x".repeat(5000),
            ["ok", "error"][dice.below(2) as usize]
        ),
        _ => r#","type":"memory.write""#.to_owned(),
    };
    let delta = format!(r#"[{{"set":"/slots/s{slot}","value":"{n:0>200}"}}]"#);
    let text = format!(r#"{{"agent":"{agent}","delta":{delta}{more}}}"#);
    Intent::from_value(&parse_door(text.as_bytes()).expect("JSON"), None).expect("an intent")
}

/// Reading on from snapshots passes over what no answer needs, and folds what reading every record folds: runs whose
/// records stand between each other, in many segments, a fork of one of them, and values that lie in chunks.
#[test]
fn what_is_skimmed_is_what_is_read() -> Result<(), Error> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { segment_size: 100_000, uncovered_max: 100, ..Options::write() };
    let mut store = Embedded::create(&dir.path().join("store"), info(4), options)?;
    let mut dice = Dice(11);
    let surroundings = |n: u64| Box::new(Fixed::new("skim", n * 10, 1));
    for run in ["x", "y"] {
        Recorder::begin(&mut store, &Start::new(run_name(run)), surroundings(0))?.commit()?;
    }
    for n in 1..=300 {
        // Long turns of one run, then short ones of both.
        let run = if n < 100 { "x" } else { ["x", "y"][dice.below(2) as usize] };
        let mut recorder = Recorder::resume(&mut store, &run_name(run), surroundings(n))?;
        for _ in 0..1 + dice.below(4) {
            let intent = varied(&mut dice, n);
            recorder.propose(&intent)?;
        }
        recorder.commit()?;
    }
    let reader = Embedded::open(&dir.path().join("store"), Options::read())?;
    let parent = Trace::open(&reader, &run_name("x"))?;
    let (tip, terms) = (parent.tip(), Terms::new(run_name("f")));
    fork(&parent, &mut store, tip - 20, &terms, surroundings(400))?.0.commit()?;
    drop(parent);
    for n in 401..=440 {
        let mut recorder = Recorder::resume(&mut store, &run_name("f"), surroundings(n))?;
        let intent = varied(&mut dice, n);
        recorder.propose(&intent)?;
        recorder.commit()?;
    }
    Box::new(store).close()?;
    let mut store = Embedded::open(&dir.path().join("store"), Options::write())?;
    let compare = |store: &Embedded, run: &str, step: usize| -> Result<usize, Error> {
        let run = run_name(run);
        let all = Trace::open(store, &run)?.without_snapshots();
        let mut snapshots = 0;
        for tick in (0..=all.tip()).step_by(step) {
            let found = Trace::open(store, &run)?.at(tick)?;
            let expected = all.at(tick)?;
            assert_eq!((found.tick, found.id, found.ts), (expected.tick, expected.id, expected.ts));
            assert_eq!(found.state, expected.state, "{run}@{tick}");
            assert_eq!(found.counters, expected.counters, "{run}@{tick}");
            assert_eq!(found.agents, expected.agents, "{run}@{tick}");
            snapshots += usize::from(store.snapshot(&run, tick)?.is_some_and(|(at, _)| at == tick));
        }
        Ok(snapshots)
    };
    let snapshots = compare(&store, "x", 1)? + compare(&store, "y", 1)? + compare(&store, "f", 7)?;
    assert!(snapshots > 5, "{snapshots} snapshots: nearly everything was folded from the beginning");
    let wanted = |_: &Header, field: &str| field == "/delta";
    assert!(store.skim(0..store.tree().size, &wanted, &mut |_, _| ControlFlow::Continue(()))?);

    // A value that is gone is not passed over: what it counted is not known from there on.
    let has_metrics = |tick: &u64| {
        let record = Trace::open(&store, &run_name("x")).and_then(|trace| trace.record(*tick));
        record.is_ok_and(|record| record.body().value("/metrics").is_some())
    };
    let tick = (1..20).find(has_metrics).expect("one that has metrics");
    let target = store.at(&run_name("x"), tick)?.expect("a record");
    let (kind, author, ts) = (Kind::Erase, Author::Institution, Timestamp::from_ms(99_000));
    let mut header = store.get(0)?.expect("a record").header().clone();
    header = Header { kind, author, ts, run: None, tick: None, type_name: None, pack: None, ..header };
    let content = Value::record([("reason", Value::from("asked to"))]);
    let seed = store.get(0)?.expect("a record").body().seed().expect("a whole record");
    let body = Body::commit(cut(content.as_object().expect("an object")), seed).expect("content");
    let erase = Record::seal(header, body).expect("a record");
    store.erase(&erase, &[(target, vec!["/metrics".parse().expect("a pointer")])])?;
    assert!(!store.skim(target..target + 1, &wanted, &mut |_, _| ControlFlow::Continue(()))?);
    for at in [tick - 1, tick, tick + 1] {
        let found = Trace::open(&store, &run_name("x"))?.at(at)?.counters;
        let expected = Trace::open(&store, &run_name("x"))?.without_snapshots().at(at)?.counters;
        assert_eq!(found, expected, "x@{at}");
        assert_eq!(found.to_value().get("tokens_used").is_none(), at >= tick, "x@{at}");
    }
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
