//! Bisect, the lift, intervals and policy flips against a slow oracle that judges every tick, on stores that look
//! candidates up in an index and on stores that read.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::path::Path;
use std::sync::Arc;

use dendrer::bisect::{self, BisectOutcome, BisectSubject, Range};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::timeline::{self, Interval};
use dendrer::{Error, Trace, why};
use dendrer_kernel::predicate::{Predicate, Verdict, Window};
use dendrer_kernel::step::{Stage, Start};
use dendrer_object::note::SigningKey;
use dendrer_object::record::{Author, Body, Header, Kind, Record, cut};
use dendrer_object::{Delta, Intent, Pointer, RunName, StoreId, Timestamp, Value, json};
use dendrer_store::embedded::{Embedded, Options};
use dendrer_store::prelude::*;
use dendrer_store::{Memory, Shared, StoreInfo};
use proptest::prelude::*;

fn key() -> SigningKey {
    SigningKey::from_seed(&StoreId([3; 16]).origin(), [3; 32]).unwrap()
}

fn info() -> StoreInfo {
    StoreInfo::new(StoreId([3; 16]), key().verifier_key().clone())
}

fn run() -> RunName {
    "r".parse().unwrap()
}

fn parse(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap()
}

/// Changes that meet, miss, make and remove what the predicates below read.
const OPS: &[&str] = &[
    r#"{"set":"/x","value":1}"#,
    r#"{"set":"/x","value":5}"#,
    r#"{"set":"/x","value":"five"}"#,
    r#"{"remove":"/x"}"#,
    r#"{"add":"/x","value":1}"#,
    r#"{"set":"/a/b","value":9}"#,
    r#"{"set":"/a/b","value":0}"#,
    r#"{"set":"/a/other","value":1}"#,
    r#"{"set":"/a/b/c","value":7}"#,
    r#"{"set":"/a","value":{}}"#,
    r#"{"set":"/a","value":[1]}"#,
    r#"{"remove":"/a"}"#,
    r#"{"remove":"/a/b"}"#,
    r#"{"append":"/list","value":1}"#,
    r#"{"remove":"/list/0"}"#,
    r#"{"set":"/list/0","value":4}"#,
    r#"{"set":"/nothing/to/do","value":1}"#,
];

const CONDITIONS: &[&str] = &[
    "state.x > 3",
    "has(state.x) && state.x > 3",
    "has(state.a.b)",
    "has(state.a) && has(state.a.b) && state.a.b == 9",
    "has(state.a.b.c) || has(state.a.other)",
    "has(state.list) && size(state.list) > 1",
    "has(state.list) && size(state.list) > 0 && state.list[0] == 4",
    "state.counters.transitions > 6",
    "'b' in state.a",
    "true",
    "size(state) > 3",
];

/// What one transition does: its changes, and a decision about `action.request`.
#[derive(Debug, Clone)]
struct Step {
    ops: Vec<usize>,
    decision: Option<&'static str>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let decision = prop_oneof![
        4 => Just(None),
        1 => Just(Some("allow")),
        1 => Just(Some("deny")),
        1 => Just(Some("escalate")),
    ];
    // Most transitions write where nobody looks, so that there is something to skip.
    let op = (0..3 * OPS.len()).prop_map(|op| op.min(OPS.len() - 1));
    let step = (prop::collection::vec(op, 0..3), decision).prop_map(|(ops, decision)| Step { ops, decision });
    prop::collection::vec(step, 1..30)
}

fn record(store: &Shared, initial: &str, steps: &[Step]) {
    // Some changes do not fit: at stage 0 they are on record all the same.
    let mut start = Start { stage: Some(Stage::Observe), ..Start::new(run()) };
    start.state = parse(initial);
    let mut recorder = Recorder::begin(store, &start, Box::new(Fixed::new("prop", 0, 1))).unwrap();
    for (at, step) in steps.iter().enumerate() {
        let ops = step.ops.iter().map(|op| parse(OPS[*op]));
        let delta = Delta::from_value(&Value::array(ops)).unwrap();
        let (name, about) = match at % 3 {
            0 => ("policy.decision", Some("action.request")),
            1 => ("action.request", None),
            // A decision about something else, which says nothing about requests.
            _ => ("policy.decision", Some("memory.write")),
        };
        // A decision decides something, and a judgement on a request is the runtime's.
        let name = if step.decision.is_none() { "plan.update" } else { name };
        let mut intent = Intent::new(name.parse().unwrap(), "agent").with_delta(delta);
        if let Some(decision) = step.decision {
            let about = about.map(|about| ("transition_type", Value::from(about)));
            let policy = Value::record([("decision", Value::from(decision))].into_iter().chain(about));
            intent = intent.with("policy", policy).by_runtime();
        }
        recorder.propose(&intent).unwrap();
    }
    recorder.commit().unwrap();
}

/// Opens a store, and brings its index up to the end of the log.
fn indexed(path: &Path) -> Shared {
    let mut store = Embedded::open(path, Options::untagged()).unwrap();
    store.update_index().unwrap();
    Shared::new(Box::new(store))
}

/// The verdict at every tick, from states that are folded anew for each of them.
fn oracle(store: &Shared, predicate: &Predicate, from: u64, to: u64) -> Vec<Verdict> {
    (from..=to)
        .map(|tick| {
            let trace = Trace::open(store, &run()).unwrap().without_snapshots();
            let seen = if predicate.window() == Window::Before { tick.saturating_sub(1) } else { tick };
            let moment = trace.at(seen).unwrap();
            predicate.verdict(&moment.state, Some(&moment.counters.to_value()))
        })
        .collect()
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Violation => "violation",
        Verdict::Uncertain(_) => "uncertain",
    }
}

/// Which intervals a list of verdicts has, found by comparing neighbours.
fn stretches(from: u64, verdicts: &[Verdict]) -> Vec<(u64, u64, &'static str)> {
    let mut found: Vec<(u64, u64, &'static str)> = Vec::new();
    for (tick, verdict) in (from..).zip(verdicts) {
        match found.last_mut() {
            Some((_, to, last)) if *last == word(verdict) => *to = tick,
            _ => found.push((tick, tick, word(verdict))),
        }
    }
    found
}

fn as_stretches(intervals: &[Interval]) -> Vec<(u64, u64, &'static str)> {
    intervals.iter().map(|interval| (interval.from, interval.to, word(&interval.verdict))).collect()
}

/// The outcome that follows from the verdicts of every tick.
fn expected(from: u64, verdicts: &[Verdict], lift: bool) -> BisectOutcome {
    let unknown = verdicts.iter().position(|verdict| matches!(verdict, Verdict::Uncertain(_)));
    let known = &verdicts[..unknown.unwrap_or(verdicts.len())];
    match known.iter().position(|verdict| *verdict == Verdict::Violation) {
        Some(first) if !lift && known[first..].contains(&Verdict::Ok) => BisectOutcome::Recovers(Vec::new()),
        Some(0) => BisectOutcome::Initial,
        Some(first) => BisectOutcome::Onset(from + first as u64),
        None => match unknown.map(|at| (from + at as u64, &verdicts[at])) {
            Some((tick, Verdict::Uncertain(why))) => BisectOutcome::Uncertain(tick, why.clone()),
            _ => BisectOutcome::Never,
        },
    }
}

fn check(store: &Shared, predicate: &Predicate, from: u64, to: u64) -> u64 {
    let trace = Trace::open(store, &run()).unwrap();
    let verdicts = oracle(store, predicate, from, to);
    let line = timeline::judge(&trace, predicate, from, to).unwrap();
    for (tick, verdict) in (from..).zip(&verdicts) {
        assert_eq!(line.at(tick), verdict, "tick {tick} of {predicate:?}");
    }
    assert_eq!(as_stretches(&line.intervals()), stretches(from, &verdicts));
    for lift in [false, true] {
        let asked = if lift { predicate.clone().lifted() } else { predicate.clone() };
        let range = Range { scan: true, ..Range::new(from, to) };
        let report = bisect::bisect(&trace, &BisectSubject::Predicate(asked), &range).unwrap();
        let wanted = expected(from, &verdicts, lift);
        match (&report.outcome, &wanted) {
            (BisectOutcome::Recovers(turns), BisectOutcome::Recovers(_)) => assert!(turns.len() > 1),
            (found, wanted) => assert_eq!(found, wanted, "{predicate:?}, lift {lift}"),
        }
        assert!(report.probes.len() as u32 <= report.probes_max);
        let first = verdicts.iter().position(|verdict| *verdict == Verdict::Violation);
        assert_eq!(report.scan, Some(first.map(|first| from + first as u64)));
        if let Some(recoveries) = report.recoveries {
            let onset = report.outcome.clone();
            let onset = if let BisectOutcome::Onset(onset) = onset { onset } else { from };
            let wanted: Vec<_> = stretches(from, &verdicts)
                .into_iter()
                .filter(|(begin, _, word)| *begin > onset && *word != "violation")
                .collect();
            assert_eq!(as_stretches(&recoveries), wanted);
        }
    }
    line.judged
}

/// Every write of a place, and what stood there before and after, against the deltas and states themselves.
fn check_writes(store: &Shared, place: &str, from: u64, to: u64) {
    let place: Pointer = place.parse().unwrap();
    let trace = Trace::open(store, &run()).unwrap();
    if from > to {
        return;
    }
    let followed = why::followed(&trace, &place, to).unwrap();
    assert!(followed.contains(&place));
    let bare = Trace::open(store, &run()).unwrap().without_snapshots();
    let mut wanted = Vec::new();
    for tick in from..=to {
        let delta = Delta::from_value(&bare.record(tick).unwrap().body().value("/delta").unwrap()).unwrap();
        let (before, after) = (bare.at(tick - 1).unwrap().state, bare.at(tick).unwrap().state);
        let (before, after) = (place.get(&before).cloned(), place.get(&after).cloned());
        if delta.paths().any(|path| path.overlaps(&followed)) {
            wanted.push((tick, (before, after)));
        } else if !matches!(bare.at(tick - 1).unwrap().state.get("list"), Some(Value::Array(_))) {
            assert_eq!(before, after, "tick {tick} changed {place} and is not listed");
        }
    }
    let writes = why::writes(&trace, &followed, from, to).unwrap();
    let ticks: Vec<u64> = writes.writes.iter().map(|write| write.tick).collect();
    assert_eq!(ticks, wanted.iter().map(|(tick, _)| *tick).collect::<Vec<_>>(), "{place}");
    let values: Vec<_> = why::values(&trace, &place, &followed, from, to).unwrap().into_iter().collect();
    assert_eq!(values, wanted, "{place}");
}

/// The first deny or escalate for requests behind an allow for them, by hand.
fn flip(steps: &[Step]) -> Option<u64> {
    let mut allowed = false;
    for (at, step) in steps.iter().enumerate() {
        match step.decision {
            Some("allow") if at % 3 != 2 => allowed = true,
            Some("deny" | "escalate") if at % 3 != 2 && allowed => return Some(at as u64 + 1),
            _ => {}
        }
    }
    None
}

fn check_flip(store: &Shared, steps: &[Step], from: u64, to: u64) {
    let trace = Trace::open(store, &run()).unwrap();
    let question = BisectSubject::PolicyFlip("action.request".parse().unwrap());
    let report = bisect::bisect(&trace, &question, &Range::new(from, to)).unwrap();
    let wanted = match flip(steps) {
        Some(tick) if tick <= from => BisectOutcome::Initial,
        Some(tick) if tick <= to => BisectOutcome::Onset(tick),
        _ => BisectOutcome::Never,
    };
    assert_eq!(report.outcome, wanted, "{steps:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_agree_with_judging_every_tick(
        steps in steps(),
        initial in prop_oneof![Just("{}"), Just(r#"{"x":0,"a":{"k":1},"list":[]}"#)],
        cut in (0u64..30, 0u64..30),
    ) {
        let memory = Shared::new(Box::new(Memory::new(info())));
        record(&memory, initial, &steps);
        let dir = tempfile::tempdir().unwrap();
        let embedded = Embedded::create(&dir.path().join("s"), info(), Options::untagged()).unwrap();
        record(&Shared::new(Box::new(embedded)), initial, &steps);
        let embedded = indexed(&dir.path().join("s"));
        let tip = Trace::open(&memory, &run()).unwrap().tip();
        let (a, b) = (cut.0.min(tip), cut.1.min(tip));
        for (from, to) in [(0, tip), (a.min(b), a.max(b))] {
            for text in CONDITIONS {
                for window in [Window::After, Window::Before] {
                    if window == Window::Before && to == tip {
                        continue;
                    }
                    let predicate = Predicate::condition("p", text).unwrap().at_window(window);
                    let read = check(&memory, &predicate, from, to);
                    let on_disk = check(&embedded, &predicate, from, to);
                    prop_assert_eq!(read, on_disk, "candidates of {}", text);
                }
            }
            check_flip(&memory, &steps, from, to);
            for place in ["/x", "/a", "/a/b", "/a/b/c", "/list", "/list/0", "/nothing"] {
                check_writes(&memory, place, from.max(1), to);
                check_writes(&embedded, place, from.max(1), to);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Verdicts that were kept, whole or for a beginning of the run, change no answer.
    #[test]
    fn what_was_kept_is_what_would_be_read(steps in steps(), cut in 0u64..30) {
        let keyed = Shared::new(Box::new(Memory::new(info()).with_key(Some(Arc::new(key())))));
        let keyless = Shared::new(Box::new(Memory::new(info())));
        for store in [&keyed, &keyless] {
            record(store, "{}", &steps);
        }
        let known = Trace::open(&keyed, &run()).unwrap();
        let bare = Trace::open(&keyless, &run()).unwrap();
        let (cut, tip) = (cut.min(bare.tip()), bare.tip());
        for text in CONDITIONS {
            for window in [Window::After, Window::Before] {
                let predicate = Predicate::condition("p", text).unwrap().at_window(window);
                for (to, known_to) in [(cut, None), (tip, Some(cut)), (tip, Some(tip)), (tip, Some(tip))] {
                    let line = timeline::judge(&known, &predicate, 0, to).unwrap();
                    let read = timeline::judge(&bare, &predicate, 0, to).unwrap();
                    prop_assert_eq!((&line.turns, line.judged), (&read.turns, read.judged), "{} to {}", text, to);
                    prop_assert_eq!(line.known_to, known_to.filter(|_| to == tip), "{} to {}", text, to);
                }
                // Only what begins with the run, and ends no earlier than what is known, asks what was kept.
                let part = timeline::judge(&known, &predicate, tip.min(1), tip).unwrap();
                prop_assert_eq!(part.known_to, None);
            }
        }
    }
}

/// What reads together answers as what reads one by one.
#[test]
fn several_questions_at_once_have_the_answers_of_each() {
    let steps: Vec<Step> =
        (0..60).map(|at| Step { ops: vec![at % OPS.len(), (at * 7) % OPS.len()], decision: None }).collect();
    let store = Shared::new(Box::new(Memory::new(info())));
    record(&store, r#"{"x":0,"a":{}}"#, &steps);
    let trace = Trace::open(&store, &run()).unwrap();
    let questions: Vec<BisectSubject> = CONDITIONS
        .iter()
        .map(|text| BisectSubject::Predicate(Predicate::condition("p", text).unwrap().lifted()))
        .chain([BisectSubject::PolicyFlip("action.request".parse().unwrap())])
        .collect();
    let range = Range::new(0, trace.tip());
    let together = bisect::bisect_each(&trace, &questions, &range).unwrap();
    assert_eq!(together.len(), questions.len());
    for (question, report) in questions.iter().zip(together) {
        let alone = bisect::bisect(&trace, question, &range).unwrap();
        assert_eq!((report.outcome, report.probes), (alone.outcome, alone.probes), "{question:?}");
    }
}

/// A change that was erased may have turned the verdict, so nothing is said.
#[test]
fn an_erased_change_is_not_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = Shared::new(Box::new(Embedded::create(&path, info(), Options::untagged()).unwrap()));
    let steps: Vec<Step> =
        [13, 1, 16, 0, 16, 16, 16, 16, 16].iter().map(|op| Step { ops: vec![*op], decision: None }).collect();
    record(&store, "{}", &steps);
    drop(store);
    let mut store = indexed(&path);
    let predicate = Predicate::condition("p", "has(state.x) && state.x > 3").unwrap();
    let ask = |store: &Shared| {
        let trace = Trace::open(store, &run()).unwrap();
        let question = BisectSubject::Predicate(predicate.clone());
        bisect::bisect(&trace, &question, &Range::new(0, trace.tip())).map(|report| report.outcome)
    };
    let turns = vec![(2, Verdict::Violation), (4, Verdict::Ok)];
    assert_eq!(ask(&store).unwrap(), BisectOutcome::Recovers(turns));
    let header = Header {
        store: info().id,
        kind: Kind::Erase,
        run: None,
        tick: None,
        prev: None,
        head: None,
        type_name: None,
        author: Author::Institution,
        ts: Timestamp::from_ms(99),
        links: Vec::new(),
        pack: None,
    };
    let content = Value::record([("reason", Value::from("asked to"))]);
    let seed = store.get(1).unwrap().unwrap().body().seed().unwrap();
    let body = Body::commit(cut(content.as_object().unwrap()), seed).unwrap();
    let erase = Record::seal(header, body).unwrap();
    let trace = Trace::open(&store, &run()).unwrap();
    let target = store.find(&trace.record(4).unwrap().id()).unwrap().unwrap();
    drop(trace);
    store.erase(&erase, &[(target, vec![Pointer::of(["delta"])])]).unwrap();
    drop(store);
    let store = indexed(&path);
    let error = ask(&store).unwrap_err();
    assert!(matches!(error, Error::Replay(_)) && error.code() == "E0311", "{error}");
}
