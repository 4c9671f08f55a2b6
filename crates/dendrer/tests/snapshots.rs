//! Snapshots: derived, taken when the records since the last one outweigh them, used only where they agree with the record (D-68, D-151).

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dendrer::bisect::{BisectOutcome, BisectSubject, Range, bisect};
use dendrer::fork::{ForkTerms, fork};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::trace::Moment;
use dendrer::watch::Watch;
use dendrer::{Error, Trace};
use dendrer_kernel::counters::Counters;
use dendrer_kernel::predicate::Predicate;
use dendrer_kernel::step::Start;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::json::parse_door;
use dendrer_object::record::{Author, Body, Header, Kind, cut};
use dendrer_object::{Intent, Record, RunName, Timestamp, Value};
use dendrer_store::disk::{Disk, DiskFile, Open};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Memory, Options, Shared, Slot};
use dendrer_testkit::{Dice, info, key, memory, memory_with_key, records_of, run_name};

const TICKS: u64 = 3000;

fn recorded() -> Result<(Shared, RunName), Error> {
    let store = memory_with_key(3);
    let run = run_name("long");
    let intents = (0..TICKS).map(|n| {
        let path = format!("/slots/s{}", n % 50).parse().expect("a pointer");
        let delta = Delta(vec![Op::set(path, Value::from(format!("{n:0>100}")))]);
        Intent::new("memory.write".parse().expect("a type"), "a").with_delta(delta)
    });
    dendrer_testkit::record(&store, &Start::new(run.clone()), intents);
    Ok((store, run))
}

#[test]
fn a_state_is_read_from_the_nearest_snapshot_and_is_the_folded_one() -> Result<(), Error> {
    let (store, run) = recorded()?;
    let mut taken = Vec::new();
    let mut at = TICKS;
    while let Some((tick, bytes)) = store.kept(Slot::Snapshot(&run, at))? {
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
        // What is read for a state is what came after its snapshot, however far along the run is.
        let watch = Watch::new();
        let counted = watch.over(&store);
        let trace = Trace::open(&counted, &run)?;
        let opened = watch.done();
        trace.state(tick)?;
        let read = watch.done() - opened;
        assert!(read <= 101, "{read} records for tick {tick}");
        let (watch, before) = (Watch::new(), tick);
        let trace = Trace::open(&watch.over(&store), &run)?.without_snapshots();
        trace.state(before)?;
        assert!(watch.done() >= before, "without a snapshot all of {before} are read, {}", watch.done());
    }
    Ok(())
}

/// A disk that counts the bytes that are read.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn Disk>,
    read: Arc<AtomicU64>,
}

#[derive(Debug)]
struct CountingFile {
    inner: Arc<dyn DiskFile>,
    read: Arc<AtomicU64>,
}

impl Disk for Counting {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let inner = self.inner.open(path, how)?;
        Ok(Arc::new(CountingFile { inner, read: Arc::clone(&self.read) }))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.inner.list(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_dir(path)
    }
}

impl DiskFile for CountingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.inner.read_at(buffer, offset)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.inner.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }
    fn unlock(&self) -> io::Result<()> {
        self.inner.unlock()
    }
}

/// Bytes of the log that one state costs, on average over the probes of 16 searches in a run of `ticks`.
fn bytes_a_probe(ticks: u64, snapshots: bool) -> Result<u64, Error> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("store");
    let read = Arc::new(AtomicU64::new(0));
    let options = Options::untagged();
    let counting = Counting { inner: Arc::clone(&options.disk), read: Arc::clone(&read) };
    let options = Options { disk: Arc::new(counting), uncovered_max: 100, ..options };
    let run = run_name("long");
    {
        let store = Embedded::create(&path, info(3), options.clone())?.with_key(Some(Arc::new(key(3))));
        let store = Shared::new(Box::new(store));
        let intents = (0..ticks).map(|n| {
            let path = format!("/slots/s{}", n % 50).parse().expect("a pointer");
            let delta = Delta(vec![Op::set(path, Value::from(format!("{n:0>100}")))]);
            Intent::new("memory.write".parse().expect("a type"), "a").with_delta(delta)
        });
        dendrer_testkit::record(&store, &Start::new(run.clone()), intents);
    }
    let store = Arc::new(Embedded::open(&path, options)?.with_key(Some(Arc::new(key(3)))));
    let trace = Trace::open(&store, &run)?;
    let trace = if snapshots { trace } else { trace.without_snapshots() };
    read.store(0, Ordering::Relaxed);
    let mut probes = 0;
    for target in (1..=16).map(|part| ticks * part / 16) {
        let (mut low, mut high, before) = (0, ticks + 1, probes);
        while low + 1 < high {
            let middle = low.midpoint(high);
            trace.state(middle)?;
            probes += 1;
            if middle < target { low = middle } else { high = middle }
        }
        assert!(probes - before <= 1 + u64::from(ticks.ilog2()), "{} probes", probes - before);
    }
    Ok(read.load(Ordering::Relaxed) / probes)
}

/// D-68: without snapshots each replay takes O(N) steps; with one every K ticks it starts from the nearest and takes O(K), so
/// that the search takes O(K log N). The runs differ in N alone: K follows from the sizes of records and state.
#[test]
fn with_snapshots_a_probe_costs_as_much_in_a_long_run_as_in_a_short_one() -> Result<(), Error> {
    let [short, long] = [2_000, 16_000].map(|ticks| bytes_a_probe(ticks, true));
    let (short, long) = (short?, long?);
    assert!(long * 2 < short * 3, "a probe reads {short} bytes of 2,000 ticks and {long} of 16,000");
    let whole = bytes_a_probe(16_000, false)?;
    assert!(whole > long * 8, "without snapshots {whole} bytes, with them {long}");
    Ok(())
}

/// Of a state that only grows, reading the records is as cheap as reading the state.
#[test]
fn a_growing_transcript_takes_no_snapshots() -> Result<(), Error> {
    let store = memory_with_key(3);
    let run = run_name("talk");
    let intents = (0..400).map(|n| {
        let message =
            Value::record([("content", Value::from(format!("{n:0>1000}"))), ("role", Value::from("user"))]);
        let path = format!("/messages/m{n}").parse().expect("a pointer");
        Intent::new("memory.write".parse().expect("a type"), "a")
            .with_delta(Delta(vec![Op::set(path, message)]))
    });
    dendrer_testkit::record(&store, &Start::new(run.clone()), intents);
    assert_eq!(store.kept(Slot::Snapshot(&run, 400))?, None);
    Ok(())
}

/// Each process that goes on with a run for one step counts what those before it recorded.
#[test]
fn a_run_that_is_resumed_for_each_step_has_snapshots() -> Result<(), Error> {
    let store = memory_with_key(3);
    let run = run_name("steps");
    let surroundings = || Box::new(Fixed::new("steps", 1_000, 1));
    Recorder::begin(&store, &Start::new(run.clone()), surroundings())?.commit()?;
    for n in 0..300 {
        let mut recorder = Recorder::resume(&store, &run, surroundings())?;
        let delta =
            Delta(vec![Op::set("/slot".parse().expect("a pointer"), Value::from(format!("{n:0>100}")))]);
        let intent = Intent::new("memory.write".parse().expect("a type"), "a").with_delta(delta);
        recorder.propose(&intent)?;
        recorder.commit()?;
    }
    let newest = store.kept(Slot::Snapshot(&run, 300))?.map(|(tick, _)| tick);
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
    let options = Options { segment_size: 100_000, uncovered_max: 100, ..Options::untagged() };
    let keyed = |store: Embedded| Shared::new(Box::new(store.with_key(Some(Arc::new(key(4))))));
    let store = keyed(Embedded::create(&dir.path().join("store"), info(4), options)?);
    let mut dice = Dice(11);
    let surroundings = |n: u64| Box::new(Fixed::new("skim", n * 10, 1));
    for run in ["x", "y"] {
        Recorder::begin(&store, &Start::new(run_name(run)), surroundings(0))?.commit()?;
    }
    for n in 1..=300 {
        // Long turns of one run, then short ones of both.
        let run = if n < 100 { "x" } else { ["x", "y"][dice.below(2) as usize] };
        let mut recorder = Recorder::resume(&store, &run_name(run), surroundings(n))?;
        for _ in 0..1 + dice.below(4) {
            let intent = varied(&mut dice, n);
            recorder.propose(&intent)?;
        }
        recorder.commit()?;
    }
    let reader = keyed(Embedded::open(&dir.path().join("store"), Options::read())?);
    let parent = Trace::open(&reader, &run_name("x"))?;
    let (tip, terms) = (parent.tip(), ForkTerms::new(run_name("f")));
    fork(&parent, &store, tip - 20, &terms, surroundings(400))?.0.commit()?;
    drop(parent);
    for n in 401..=440 {
        let mut recorder = Recorder::resume(&store, &run_name("f"), surroundings(n))?;
        let intent = varied(&mut dice, n);
        recorder.propose(&intent)?;
        recorder.commit()?;
    }
    Box::new(store).close()?;
    let mut store = keyed(Embedded::open(&dir.path().join("store"), Options::untagged())?);
    let compare = |store: &Shared, run: &str, step: usize| -> Result<usize, Error> {
        let run = run_name(run);
        let all = Trace::open(store, &run)?.without_snapshots();
        let mut snapshots = 0;
        for tick in (0..=all.tip()).step_by(step) {
            let found = Trace::open(store, &run)?.at(tick)?;
            let expected = all.at(tick)?;
            assert_eq!(Trace::open(store, &run)?.state(tick)?, expected.state, "{run}@{tick}");
            assert_eq!((found.tick, found.id, found.ts), (expected.tick, expected.id, expected.ts));
            assert_eq!(found.state, expected.state, "{run}@{tick}");
            assert_eq!(found.counters, expected.counters, "{run}@{tick}");
            assert_eq!(found.agents, expected.agents, "{run}@{tick}");
            snapshots +=
                usize::from(store.kept(Slot::Snapshot(&run, tick))?.is_some_and(|(at, _)| at == tick));
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
    // Even one that is under the key: what a record binds is held against the record.
    store.keep(Slot::Snapshot(&run, 2500), &lying.to_snapshot(Some(&key(3))))?;
    let all = Trace::open(&store, &run)?.without_snapshots();
    for tick in [2500, 2501, 2520] {
        let expected = all.state(tick)?;
        assert_eq!(Trace::open(&store, &run)?.state(tick)?, expected, "{tick}");
        assert_eq!(Trace::open(&store, &run)?.at(tick)?.state, expected, "{tick}");
    }
    let short = [0, 31, 32, 33, 200].map(|end| honest.to_snapshot(Some(&key(3)))[..end].to_vec());
    for bytes in short.into_iter().chain([b"not a snapshot".to_vec(), vec![b'{'; 80]]) {
        store.keep(Slot::Snapshot(&run, 2400), &bytes)?;
        assert_eq!(
            Trace::open(&store, &run)?.at(2450)?.counters.to_value().get("transitions"),
            Some(&Value::from(2450u64))
        );
        assert_eq!(
            Trace::open(&store, &run)?.state(2400)?,
            Trace::open(&store, &run)?.without_snapshots().state(2400)?
        );
    }
    Ok(())
}

/// The record binds the state and nothing else that a snapshot holds: for the rest there is the key of the store.
#[test]
fn a_snapshot_that_lies_about_counters_or_agents_changes_no_answer() -> Result<(), Error> {
    let (store, run) = recorded()?;
    let honest = Trace::open(&store, &run)?.at(2500)?;
    let later = Trace::open(&store, &run)?.at(2900)?;
    let signed = honest.to_snapshot(Some(&key(3)));
    let counters = Moment { counters: later.counters.clone(), ..honest.clone() };
    let agents = Moment { agents: later.agents.clone(), ..honest.clone() };
    let nobody = Moment { agents: Default::default(), ..honest.clone() };
    let mut lies = Vec::new();
    for lying in [counters, agents, nobody] {
        // Unsigned, under the key of somebody else, and with the signature of what was true.
        lies.push(lying.to_snapshot(None));
        lies.push(lying.to_snapshot(Some(&key(4))));
        lies.push([&signed[..32], &lying.to_snapshot(None)[32..]].concat());
    }
    // What is true of another tick.
    lies.push([&later.to_snapshot(Some(&key(3)))[..32], &signed[32..]].concat());
    // What is true, and nobody signed.
    lies.push(honest.to_snapshot(None));
    let predicate = Predicate::condition("many", "state.counters.transitions >= 2600").expect("it checks");
    let (question, range) = (BisectSubject::Predicate(predicate), Range::new(0, TICKS));
    for (n, lie) in lies.iter().enumerate() {
        store.keep(Slot::Snapshot(&run, 2500), lie)?;
        for tick in [2500, 2510] {
            let found = Trace::open(&store, &run)?.at(tick)?;
            let expected = Trace::open(&store, &run)?.without_snapshots().at(tick)?;
            assert_eq!(
                (found.counters, found.agents),
                (expected.counters, expected.agents),
                "lie {n} at {tick}"
            );
            let trace = Trace::open(&store, &run)?;
            assert_eq!(trace.state(tick)?, expected.state, "lie {n} at {tick}");
            assert_eq!(
                trace.at(tick)?.counters,
                found_counters(&store, &run, tick)?,
                "a state that is known, {n}"
            );
        }
        assert_eq!(
            bisect(&Trace::open(&store, &run)?, &question, &range)?.outcome,
            BisectOutcome::Onset(2600)
        );
    }
    Ok(())
}

fn found_counters(store: &Shared, run: &RunName, tick: u64) -> Result<Counters, Error> {
    Ok(Trace::open(store, run)?.without_snapshots().at(tick)?.counters)
}

/// Whoever goes on with a run puts the number of an agent's branch on record.
#[test]
fn a_snapshot_that_lies_leads_no_writer_astray() -> Result<(), Error> {
    let (store, run) = recorded()?;
    let honest = Trace::open(&store, &run)?.at(TICKS)?;
    let mut lying = Moment { counters: Counters::default(), ..honest.clone() };
    for head in lying.agents.values_mut() {
        head.seq = 77;
    }
    for key in [None, Some(key(4))] {
        store
            .keep(Slot::Snapshot(&run, Trace::open(&store, &run)?.tip()), &lying.to_snapshot(key.as_ref()))?;
        let mut recorder = Recorder::resume(&store, &run, Box::new(Fixed::new("on", 9_000, 1)))?;
        assert_eq!(recorder.head().agents(), &honest.agents);
        assert_eq!(recorder.head().counters(), &honest.counters);
        let outcome = recorder.propose(&Intent::new("memory.write".parse().expect("a type"), "a"))?;
        let seq = outcome.records()[0].body().value("/seq");
        assert_eq!(seq.and_then(|seq| seq.as_u64()), Some(TICKS + 1));
        drop(recorder.discard());
    }
    Ok(())
}

/// What a record binds needs no key, and what none binds needs either the key or every record.
#[test]
fn without_the_key_a_snapshot_is_good_for_the_state_alone() -> Result<(), Error> {
    let (store, run) = recorded()?;
    let (at, bytes) = store.kept(Slot::Snapshot(&run, 2500))?.expect("a snapshot");
    let expected = Trace::open(&store, &run)?.at(2500)?;
    // The run without most of what stands before its snapshot.
    let records = (0..).zip(records_of(&store));
    let kept = |record: &Record| record.header().tick.is_none_or(|tick| tick == 0 || tick >= at);
    let records: Vec<(u64, Record)> = records.filter(|(_, record)| kept(record)).collect();
    let cut = Arc::new(Memory::of_parts(info(3), store.tree(), records));
    cut.keep(Slot::Snapshot(&run, at), &bytes)?;
    assert_eq!(Trace::open(&cut, &run)?.state(2500)?, expected.state);
    assert!(Trace::open(&cut, &run)?.at(2500).is_err(), "counters that nobody vouched for were believed");
    let trace = Trace::open(&cut, &run)?;
    trace.state(2500)?;
    assert!(trace.at(2500).is_err(), "what was remembered of a state was taken for more");
    drop(trace);
    let under = |cut: Arc<Memory>, number: u8| {
        Arc::new(Arc::into_inner(cut).expect("the last handle").with_key(Some(Arc::new(key(number)))))
    };
    let cut = under(cut, 3);
    let found = Trace::open(&cut, &run)?.at(2500)?;
    assert_eq!((found.counters, found.agents), (expected.counters, expected.agents));
    let cut = under(cut, 4);
    assert!(Trace::open(&cut, &run)?.at(2500).is_err(), "the key of another store");
    Ok(())
}

/// What somebody left who had not the key, or no business, does not hide what was signed before.
#[test]
fn an_unsigned_snapshot_hides_no_signed_one() -> Result<(), Error> {
    let (store, run) = recorded()?;
    let expected = Trace::open(&store, &run)?.at(2500)?;
    let signed = store.kept(Slot::Snapshot(&run, 2400))?.expect("a snapshot");
    let kept = |record: &Record| record.header().tick.is_none_or(|tick| tick == 0 || tick >= signed.0);
    let records = (0..).zip(records_of(&store)).filter(|(_, record)| kept(record)).collect();
    let cut = Arc::new(Memory::of_parts(info(3), store.tree(), records).with_key(Some(Arc::new(key(3)))));
    cut.keep(Slot::Snapshot(&run, signed.0), &signed.1)?;
    let lying = Moment { counters: Counters::default(), ..expected.clone() };
    for (tick, bytes) in [
        (2450, Trace::open(&store, &run)?.at(2450)?.to_snapshot(None)),
        (2460, Trace::open(&store, &run)?.at(2460)?.to_snapshot(Some(&key(4)))),
        (2470, b"{}".to_vec()),
        (2500, lying.to_snapshot(None)),
    ] {
        cut.keep(Slot::Snapshot(&run, tick), &bytes)?;
        let found = Trace::open(&cut, &run)?.at(2500)?;
        assert_eq!((found.counters, found.agents), (expected.counters.clone(), expected.agents.clone()));
    }
    Ok(())
}

/// Processes that go on without the key fold from the beginning, and keep no more snapshots for it.
#[test]
fn a_run_that_is_resumed_without_the_key_has_as_many_snapshots() -> Result<(), Error> {
    let kept = |store: Shared| -> Result<Vec<u64>, Error> {
        let run = run_name("steps");
        let surroundings = || Box::new(Fixed::new("steps", 1_000, 1));
        Recorder::begin(&store, &Start::new(run.clone()), surroundings())?.commit()?;
        for n in 0..400 {
            let mut recorder = Recorder::resume(&store, &run, surroundings())?;
            let path = "/slot".parse().expect("a pointer");
            let delta = Delta(vec![Op::set(path, Value::from(format!("{n:0>100}")))]);
            recorder.propose(&Intent::new("memory.write".parse().expect("a type"), "a").with_delta(delta))?;
            recorder.commit()?;
        }
        let mut ticks = Vec::new();
        let mut at = Some(400);
        while let Some((tick, _)) = at.and_then(|at| store.kept(Slot::Snapshot(&run, at)).ok().flatten()) {
            ticks.push(tick);
            at = tick.checked_sub(1);
        }
        Ok(ticks)
    };
    let (with, without) = (kept(memory_with_key(3))?, kept(memory(3))?);
    assert!(with.len() > 2, "{with:?}");
    assert_eq!(with, without);
    Ok(())
}
