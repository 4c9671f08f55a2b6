//! Bins of ticks, against a slow count of the log.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dendrer::ask::log::{LogDetails, LogFilter, LogTerms, LoggedRecord, log};
use dendrer::ask::predicates::PredicateTested;
use dendrer::ask::thread::{ThreadIndex, ThreadPart};
use dendrer::ask::timeline::{MARKS_MAX, TimelineRange, TimelineReply, timeline};
use dendrer::closed::closed;
use dendrer::fork::{ForkTerms, fork};
use dendrer::recorder::Fixed;
use dendrer::trust::MemoryTrust;
use dendrer::verify::facts::Derived;
use dendrer::verify::{VerifyTerms, VerifyVerdict};
use dendrer::watch::Watch;
use dendrer::{Recorder, Repo, Trace};
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_kernel::step::Start;
use dendrer_kernel::unknown::made_by;
use dendrer_object::record::{Author, Body, Header, Kind, cut};
use dendrer_object::{Delta, Intent, Pointer, Record, Timestamp, Value, json};
use dendrer_store::embedded::{Embedded, Options};
use dendrer_store::prelude::*;
use dendrer_store::{Shared, Slot, Store, TilePlace};
use dendrer_testkit::{Dice, info, key, memory, recorder, run_name};
use tempfile::TempDir;

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A line of one of several kinds: a plan, an observation, a denial, a failed call, a gap, a forged type.
fn line(dice: &mut Dice) -> Intent {
    let agent = format!("agent-{}", dice.below(30));
    let n = dice.below(10);
    let intent = |type_name: &str| Intent::new(type_name.parse().unwrap(), &agent);
    match dice.below(8) {
        0 => intent("action.result")
            .by_runtime()
            .with("result", value(r#"{"status":"error","output":null}"#))
            .with_delta(Delta::default()),
        1 => intent("policy.decision")
            .by_runtime()
            .with("policy", value(r#"{"decision":"deny"}"#))
            .with_delta(Delta::default()),
        2 => intent("observation.add")
            .by_runtime()
            .with("anomalies", value(r#"[{"kind":"source_cut","gap":true},{"kind":"odd"}]"#))
            .with_delta(Delta::default()),
        // An agent cannot decide a policy: the line is refused.
        3 => intent("policy.decision")
            .with("policy", value(r#"{"decision":"allow"}"#))
            .with_delta(Delta::default()),
        _ => {
            let delta = format!(r#"[{{"set":"/n","value":{n}}},{{"set":"/m{n}","value":true}}]"#);
            let confidence = format!(r#"{{"description":"x","confidence":0.{n}1}}"#);
            intent("plan.update")
                .with("intent", value(&confidence))
                .with_delta(Delta::from_value(&value(&delta)).unwrap())
        }
    }
}

fn recorded(dice: &mut Dice) -> Shared {
    let store = memory(3);
    let mut start = Start::new(run_name("r"));
    start.state = value(r#"{"n":0}"#);
    let mut recorder = recorder(&store, &start);
    for _ in 0..dice.below(120) {
        // A refusal is on record as well.
        recorder.propose(&line(dice)).unwrap();
    }
    recorder.commit().unwrap();
    store
}

/// The records of a range of ticks, each refusal with the tick that it was judged against.
fn logged(trace: &Trace, from: u64, to: u64) -> Vec<(u64, LoggedRecord)> {
    let terms = LogTerms {
        from,
        to,
        reverse: false,
        limit: u64::MAX,
        newest: false,
        refusals: true,
        filter: LogFilter::default(),
        details: LogDetails::default(),
        lanes: None,
        folds: false,
    };
    let (mut found, mut last) = (Vec::new(), 0);
    log::<dendrer::Error>(trace, terms, &mut |record| {
        last = record.record.header().tick.unwrap_or(last);
        found.push((last, record));
        Ok(())
    })
    .unwrap();
    found
}

fn tested(trace: &Trace, from: u64, to: u64) -> (String, PredicateTested) {
    let text = "state.n < 7";
    let predicate = Predicate::holds("expression", text).unwrap();
    (text.to_owned(), PredicateTested::of(trace, predicate, from, to, None).unwrap())
}

fn check(trace: &Trace, range: TimelineRange) -> TimelineReply {
    let TimelineRange { from, to, bins } = range;
    let found = timeline(trace, range, &[tested(trace, from, to)]).unwrap();
    assert!(found.items.len() as u64 <= bins, "{range:?}");
    assert!(
        found.width == 1 || to / (found.width / 2) - from / (found.width / 2) >= bins,
        "{range:?}: {}",
        found.width
    );
    let records = logged(trace, from, to);
    let mut next = from;
    for (at, bin) in found.items.iter().enumerate() {
        assert_eq!(bin.from, next);
        assert!(bin.from == from || bin.from % found.width == 0);
        next = bin.to + 1;
        let here: Vec<_> = records.iter().filter(|(tick, _)| (bin.from..=bin.to).contains(tick)).collect();
        let is_refusal = |record: &LoggedRecord| record.record.header().kind == Kind::Refusal;
        let refusals = here.iter().filter(|(tick, one)| *tick > 0 && is_refusal(one)).count() as u64;
        let here: Vec<_> = here.iter().filter(|(_, one)| !is_refusal(one)).collect();
        let number = |count: &dyn Fn(&Value) -> u64| {
            here.iter().map(|(_, one)| count(&one.record.content())).sum::<u64>()
        };
        assert_eq!(bin.refusals, refusals, "{range:?} {at}");
        assert_eq!(bin.transitions, here.len() as u64);
        assert_eq!(bin.lanes.iter().sum::<u64>(), bin.transitions);
        assert_eq!(bin.types.values().sum::<u64>(), bin.transitions);
        let has = |content: &Value, text: &str| u64::from(content.to_string().contains(text));
        assert_eq!(bin.denied, number(&|content| has(content, "\"decision\":\"deny\"")));
        assert_eq!(bin.failed, number(&|content| has(content, "\"status\":\"error\"")));
        assert_eq!(bin.gaps, number(&|content| has(content, "\"gap\":true")));
        let anomalies = |content: &Value| {
            content.get("anomalies").and_then(Value::as_array).map_or(0, |all| all.len() as u64)
        };
        assert_eq!(bin.anomalies, number(&anomalies));
        let changes = |content: &Value| {
            content.get("delta").and_then(Value::as_array).map_or(0, |all| all.len() as u64)
        };
        assert_eq!(bin.changes, number(&changes));
        let sum =
            |count: &dyn Fn(&Record) -> usize| here.iter().map(|(_, one)| count(&one.record)).sum::<usize>();
        assert_eq!(bin.closed, sum(&|record| closed(record).len()) as u64);
        assert_eq!(bin.unknown, sum(&|record| made_by(record).len()) as u64);
        let mut types: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        let names = here.iter().filter_map(|(_, one)| one.record.header().type_name.as_ref());
        names.for_each(|name| *types.entry(Arc::from(name.as_str())).or_default() += 1);
        assert_eq!(bin.types, types);
        let confidence =
            |content: &Value| content.get("intent").and_then(|intent| intent.get("confidence")?.as_f64());
        let lowest = here.iter().filter_map(|(_, one)| confidence(&one.record.content())).reduce(f64::min);
        assert_eq!(bin.confidence, lowest);
        let mut words = Vec::new();
        for tick in bin.from..=bin.to {
            let word = match tested(trace, tick, tick).1.line.at(tick) {
                Verdict::Ok => "ok",
                Verdict::Violation => "violation",
                Verdict::Uncertain(_) => "uncertain",
            };
            if !words.contains(&word) {
                words.push(word);
            }
        }
        assert_eq!(found.verdicts[0].items[at], words, "{range:?} {at}");
    }
    assert_eq!(next, to + 1);
    for (number, lane) in found.lanes.iter().enumerate() {
        assert_eq!(lane.total, found.items.iter().map(|bin| bin.lanes[number]).sum::<u64>());
    }
    let mut marks: BTreeMap<&str, u64> = found.left_out.clone();
    for mark in &found.marks {
        *marks.entry(mark.kind.as_str()).or_default() += 1;
    }
    assert!(found.marks.len() <= MARKS_MAX);
    assert_eq!(marks.get("gap").copied().unwrap_or(0), found.items.iter().map(|bin| bin.gaps).sum::<u64>());
    assert_eq!(
        marks.get("denial").copied().unwrap_or(0),
        found.items.iter().map(|bin| bin.denied).sum::<u64>()
    );
    found
}

#[test]
fn each_bin_is_a_slow_count_of_the_log() {
    let runs = count("DENDRER_RUNS", 60);
    let (mut dice, mut refusals) = (Dice(7), 0);
    for _ in 0..runs {
        let mut store = recorded(&mut dice);
        let tip = Trace::open(&store, &run_name("r")).unwrap().tip();
        for _ in 0..dice.below(3).min(tip) {
            let places = ["/agent_id", "/anomalies", "/intent/confidence", "/policy"];
            erase(&mut store, "r", 1 + dice.below(tip), places[dice.below(4) as usize]);
        }
        let trace = Trace::open(&store, &run_name("r")).unwrap();
        let whole = check(&trace, TimelineRange { from: 1.min(tip), to: tip, bins: 512 });
        refusals += whole.items.iter().map(|bin| bin.refusals).sum::<u64>();
        for _ in 0..3 {
            let (one, other) = (dice.below(tip + 1), dice.below(tip + 1));
            let bins = 1 + dice.below(12);
            check(&trace, TimelineRange { from: one.min(other), to: one.max(other), bins });
        }
    }
    assert!(refusals > 0);
}

#[test]
fn the_width_is_the_least_power_of_two_that_covers_the_range() {
    for (from, to, bins, width) in [
        (1, 64, 64, 1),
        (1, 65, 64, 2),
        (0, 63, 64, 1),
        (1, 1_000_000, 512, 2_048),
        (5, 5, 1, 1),
        (7, 8, 1, 16),
    ] {
        assert_eq!(TimelineRange { from, to, bins }.width(), width, "{from}..{to} in {bins}");
    }
}

/// The number of an environment variable, or another one.
fn count(name: &str, other: u64) -> u64 {
    std::env::var(name).ok().and_then(|count| count.parse().ok()).unwrap_or(other)
}

/// Proposes so many lines in groups of different sizes.
fn go_on(dice: &mut Dice, recorder: &mut Recorder, lines: u64) {
    let mut group = 0;
    for _ in 0..lines {
        recorder.propose(&line(dice)).unwrap();
        if group == 0 {
            recorder.commit().unwrap();
            group = dice.below(90);
        }
        group = group.saturating_sub(1);
    }
    recorder.commit().unwrap();
}

/// The record of an erasure.
fn erasure(store: &dyn Store) -> Record {
    let first = store.get(0).unwrap().unwrap();
    let (kind, author, ts) = (Kind::Erase, Author::Institution, Timestamp::from_ms(99));
    let (run, tick, prev, head, type_name, pack) = (None, None, None, None, None, None);
    let links = Vec::new();
    let store = first.header().store;
    let header = Header { store, kind, run, tick, prev, head, type_name, author, ts, links, pack };
    let content = value(r#"{"reason":"asked to"}"#);
    let seed = first.body().seed().unwrap_or(dendrer_object::record::Seed([4; 16]));
    let body = Body::commit(cut(content.as_object().unwrap()), seed).unwrap();
    Record::seal(header, body).unwrap()
}

/// Erases a field of a transition, if it has it.
fn erase(store: &mut dyn Store, run: &str, tick: u64, place: &str) {
    let target = store.at(&run_name(run), tick).unwrap().unwrap();
    let place: Pointer = place.parse().unwrap();
    let record = store.get(target).unwrap().unwrap();
    if record.body().fields().iter().any(|field| field.pointer == place) {
        let erasure = erasure(store);
        store.erase(&erasure, &[(target, vec![place])]).unwrap();
    }
}

/// The answer as a text.
fn told(trace: &Trace, range: TimelineRange) -> String {
    let found = timeline(trace, range, &[]).unwrap();
    format!("{:?}\n{:?}\n{:?}\n{:?}", found.lanes, found.items, found.marks, found.left_out)
}

/// Compares the answers with tiles, and once more with those that the first answer kept, with the answer of the records.
fn compare(trace: &Trace, range: TimelineRange) {
    let expected = told(&trace.clone().without_snapshots(), range);
    for _ in 0..2 {
        assert_eq!(told(trace, range), expected, "{} {range:?}", trace.name());
    }
}

/// Compares the answers over ranges in which tiles of each level fit.
fn compare_all(dice: &mut Dice, trace: &Trace) {
    let to = trace.tip();
    for bins in [1, 2, (to / 512).max(1), (to / 64).max(1), 512] {
        compare(trace, TimelineRange { from: 1.min(to), to, bins });
    }
    for _ in 0..4 {
        let (one, other) = (dice.below(to + 1), dice.below(to + 1));
        compare(trace, TimelineRange { from: one.min(other), to: one.max(other), bins: 1 + dice.below(40) });
    }
}

#[test]
fn tiles_give_the_same_timeline_as_records() {
    for seed in 0..count("DENDRER_TILED_RUNS", 4) {
        let mut dice = Dice(seed);
        let mut store = memory(3);
        let mut recorder =
            recorder(&store, &Start { state: value(r#"{"n":0}"#), ..Start::new(run_name("r")) });
        let lines = dice.below(2_000);
        go_on(&mut dice, &mut recorder, lines);
        let trace = Trace::open(&store, &run_name("r")).unwrap();
        let mut names = vec!["r"];
        let mut parent = trace;
        for name in ["f", "g"] {
            let terms = ForkTerms::new(run_name(name));
            let at = dice.below(parent.tip() + 1);
            let (mut recorder, _) =
                fork(&parent, &store, at, &terms, Box::new(Fixed::new(name, 0, 1))).unwrap();
            let lines = dice.below(700);
            go_on(&mut dice, &mut recorder, lines);
            parent = Trace::open(&store, &run_name(name)).unwrap();
            names.push(name);
        }
        drop(parent);
        let all = |dice: &mut Dice, store: &Shared| {
            for name in &names {
                compare_all(dice, &Trace::open(store, &run_name(name)).unwrap());
            }
        };
        all(&mut dice, &store);
        let own = Trace::open(&store, &run_name("r")).unwrap().tip();
        for _ in 0..3.min(own) {
            let (tick, places) =
                (1 + dice.below(own), ["/agent_id", "/delta", "/intent/confidence", "/policy"]);
            erase(&mut store, "r", tick, places[dice.below(4) as usize]);
            all(&mut dice, &store);
        }
    }
}

/// A store in a directory.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = TempDir::new().unwrap();
        drop(Embedded::create(&dir.path().join("s"), info(3), Options::untagged()).unwrap());
        Place { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    fn open(&self, options: Options) -> Shared {
        let store = Embedded::open(&self.path(), options).unwrap();
        Shared::new(Box::new(store.with_key(Some(Arc::new(key(3))))))
    }

    /// Records a run of so many lines, with an index from its beginning.
    fn record(&self, dice: &mut Dice, lines: u64) {
        let store = self.open(Options { uncovered_max: 100, ..Options::untagged() });
        let start = Start { state: value(r#"{"n":0}"#), ..Start::new(run_name("r")) };
        let mut recorder = recorder(&store, &start);
        go_on(dice, &mut recorder, lines);
        drop((recorder, store));
        update_index(&self.path());
    }

    fn trace(&self) -> Trace {
        Trace::open(&self.open(Options::read()), &run_name("r")).unwrap()
    }
}

fn update_index(path: &Path) {
    Embedded::open(path, Options::untagged()).unwrap().update_index().unwrap();
}

/// How many records a timeline of the whole run reads.
fn records_read(store: &Shared, bins: u64) -> u64 {
    let watch = Watch::new();
    let trace = Trace::open(&watch.over(store), &run_name("r")).unwrap();
    let before = watch.done();
    timeline(&trace, TimelineRange { from: 1, to: trace.tip(), bins }, &[]).unwrap();
    watch.done() - before
}

fn kept(store: &Shared, level: u8, number: u64) -> Option<Vec<u8>> {
    let (run, place) = (run_name("r"), TilePlace { level, number });
    store.kept(Slot::Tile { run: &run, place, seen: None }).unwrap().map(|(_, bytes)| bytes)
}

#[test]
fn a_timeline_reads_tiles_in_place_of_records() {
    let (place, mut dice) = (Place::new(), Dice(1));
    place.record(&mut dice, 6_000);
    let tip = place.trace().tip();
    assert!(tip > 4_200, "{tip}");
    let store = place.open(Options::read());
    for (level, number) in [(6, 0), (6, 1), (6, 60), (9, 0), (9, 7), (12, 0)] {
        assert!(kept(&store, level, number).is_some(), "{level} {number}");
    }
    // Marks, the last record of each tile, the refusals, and what no tile has.
    for bins in [1, 8, 70] {
        let read = records_read(&store, bins);
        assert!(read < 2_200, "{bins}: {read} of {tip} ticks");
    }
    compare_all(&mut dice, &place.trace());

    // An index that was deleted is made again without tiles, and a reader keeps those that it summed.
    drop(store);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(place.path().join(format!("index.sqlite{end}")));
    }
    compare(&place.trace(), TimelineRange { from: 1, to: tip, bins: 9 });
    update_index(&place.path());
    let store = place.open(Options::read());
    assert_eq!(kept(&store, 6, 3), None);
    assert!(records_read(&store, 9) >= tip);
    drop(store);
    let store = place.open(Options::read());
    assert!(kept(&store, 6, 3).is_some() && kept(&store, 12, 0).is_some());
    assert!(records_read(&store, 9) < 2_200);
}

#[test]
fn an_erasure_by_another_handle_takes_the_tiles_away() {
    let (place, mut dice) = (Place::new(), Dice(5));
    place.record(&mut dice, 900);
    let mut reader = place.open(Options::read());
    let before = kept(&reader, 6, 2).unwrap();
    let old = Trace::open(&reader, &run_name("r")).unwrap();
    erase(&mut place.open(Options::untagged()), "r", 130, "/agent_id");
    assert_eq!(kept(&place.open(Options::read()), 6, 2), None);
    reader.refresh().unwrap();
    let trace = Trace::open(&reader, &run_name("r")).unwrap();
    compare_all(&mut dice, &trace);
    let after = kept(&reader, 6, 2).unwrap();
    assert_ne!(before, after);
    // Sums of a trace from before the erasure are not kept.
    compare_all(&mut dice, &old);
    assert_eq!(kept(&reader, 6, 2), Some(after.clone()));
    drop((old, trace, reader));
    let reader = place.open(Options::read());
    assert_eq!(kept(&reader, 6, 2), Some(after));
    compare_all(&mut dice, &Trace::open(&reader, &run_name("r")).unwrap());
}

#[test]
fn a_timeline_is_the_same_while_a_writer_commits() {
    let (place, is_done) = (Place::new(), AtomicBool::new(false));
    place.record(&mut Dice(8), 300);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let store = place.open(Options { uncovered_max: 100, ..Options::untagged() });
            let surroundings = Box::new(Fixed::new("later", 1_000_000, 1));
            let mut recorder = Recorder::resume(&store, &run_name("r"), surroundings).unwrap();
            go_on(&mut Dice(9), &mut recorder, 1_500);
            is_done.store(true, Ordering::Release);
        });
        let (mut reader, mut dice) = (place.open(Options::read()), Dice(10));
        while !is_done.load(Ordering::Acquire) {
            reader.refresh().unwrap();
            let trace = Trace::open(&reader, &run_name("r")).unwrap();
            let (to, bins) = (trace.tip(), 1 + dice.below(40));
            compare(&trace, TimelineRange { from: 1, to, bins });
        }
    });
    compare_all(&mut Dice(11), &place.trace());
}

#[test]
fn a_changed_tile_is_found_by_verify() {
    let dir = TempDir::new().unwrap();
    let (path, trust) = (dir.path().join("s"), Arc::new(MemoryTrust::new()));
    drop(Repo::init(&path, trust.clone()).unwrap());
    update_index(&path);
    let repo = Repo::open(&path, trust.clone(), dendrer::repo::Mode::Write).unwrap();
    let start = Start { state: value(r#"{"n":0}"#), ..Start::new(run_name("r")) };
    let mut recorder = recorder(repo.writer().unwrap(), &start);
    go_on(&mut Dice(3), &mut recorder, 700);
    drop((recorder, repo));
    update_index(&path);
    let verified = |runs: Option<Vec<_>>| {
        let repo = Repo::open(&path, trust.clone(), dendrer::repo::Mode::Read).unwrap();
        repo.verify(&VerifyTerms { runs, ..VerifyTerms::default() }, &mut ()).unwrap()
    };
    let report = verified(None);
    assert!(report.findings.is_empty(), "{:?}", report.findings);

    let open = |options| Shared::new(Box::new(Embedded::open(&path, options).unwrap()));
    let honest = String::from_utf8(kept(&open(Options::read()), 6, 4).unwrap()).unwrap();
    let changed = honest.replace("\"changes\":", "\"changes\":1");
    let other = honest.replace("\"id\":\"sha256:", "\"id\":\"sha256:0000");
    let (run, tile) = (run_name("r"), TilePlace { level: 6, number: 4 });
    for (text, is_found) in [(&*changed, true), ("{}", true), (&other, true), (&honest, false)] {
        let store = open(Options::untagged());
        store.keep(Slot::Tile { run: &run, place: tile, seen: None }, text.as_bytes()).unwrap();
        drop(store);
        for runs in [None, Some(vec![run.clone()])] {
            let report = verified(runs);
            let is_damaged = matches!(report.derived, Derived::Damaged(_));
            assert_eq!(is_damaged, is_found, "{text}: {:?}", report.derived);
            assert_eq!((report.verdict, report.findings), (VerifyVerdict::Intact, vec![]));
        }
    }
    // A tile of another history is left by a crash: no question uses it.
    let digits = honest.find("sha256:").unwrap() + "sha256:".len();
    let digit = if honest[digits..].starts_with('0') { '1' } else { '0' };
    let stale = format!("{}{digit}{}", &honest[..digits], &honest[digits + 1..]);
    let store = open(Options::untagged());
    store.keep(Slot::Tile { run: &run, place: tile, seen: None }, stale.as_bytes()).unwrap();
    drop(store);
    assert!(verified(None).findings.is_empty());
    compare_all(&mut Dice(1), &Trace::open(&open(Options::read()), &run).unwrap());
}

#[test]
fn interrupts_are_those_that_the_thread_has() {
    let (store, mut dice) = (memory(3), Dice(4));
    let meta = value(r#"{"thread_id":"t"}"#);
    let mut recorder = recorder(&store, &Start { meta: Some(meta), ..Start::new(run_name("r")) });
    for n in 0..200 {
        let place = [
            r#""writes":{"ns":"","checkpoint":"c","path":"p","items":[]}"#,
            r#""writes":{"ns":"","checkpoint":"c","items":[]}"#,
            r#""writes":{"ns":"","checkpoint":"c","path":"","items":[]},"checkpoint":{"ns":"","id":"c"}"#,
        ][(n > 0).then(|| dice.below(6).saturating_sub(3) as usize).unwrap_or(0)];
        let channels = ["__interrupt__", "__error__", "__resume__", "x"];
        let values: Vec<String> = (0..dice.below(3))
            .map(|_| match dice.below(8) {
                0 => r#"{"channel":"__interrupt__"}"#.to_owned(),
                _ => format!(r#"{{"channel":"{}","value":[{n}]}}"#, channels[dice.below(4) as usize]),
            })
            .collect();
        let intent = format!(r#"{{"description":"w",{place},"values":[{}]}}"#, values.join(","));
        let intent = Intent::new("memory.write".parse().unwrap(), "a")
            .by_runtime()
            .with("intent", value(&intent))
            .with_delta(Delta::default());
        recorder.propose(&intent).unwrap();
    }
    recorder.commit().unwrap();
    let trace = Trace::open(&store, &run_name("r")).unwrap();
    let mut index = ThreadIndex::of(&trace).unwrap();
    let is_interrupt = |tick: &u64| {
        let place = index.place(&trace.record(*tick).unwrap()).unwrap();
        place.is_some_and(|place| matches!(place.part, ThreadPart::Interrupt(_)))
    };
    let expected: Vec<u64> = (1..=trace.tip()).filter(is_interrupt).collect();
    let found = timeline(&trace, TimelineRange { from: 1, to: trace.tip(), bins: 1 }, &[]).unwrap();
    let found: Vec<u64> = found.marks.iter().map(|mark| mark.tick).collect();
    assert!(expected.len() > 10 && expected.len() < 150, "{expected:?}");
    assert_eq!(found, expected);
    compare_all(&mut dice, &trace);
}
