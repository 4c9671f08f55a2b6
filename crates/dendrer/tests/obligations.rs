//! Obligations over recorded runs against a slow oracle that looks at every tick, and the runs that end before something
//! is due. What an obligation means is held against every possible run in `dendrer-kernel/src/obligation/tests.rs`.

use dendrer::bisect::{self, BisectOutcome, BisectSubject, Range};
use dendrer::kernel::obligation::{ObligationCourse, Standing};
use dendrer::kernel::pack::{Bound, Pack};
use dendrer::kernel::predicate::{Predicate, Verdict};
use dendrer::kernel::step::Start;
use dendrer::{Trace, contract, pack, timeline};
use dendrer_object::record::{Author, Body, Header, Kind, Record, Seed, cut};
use dendrer_object::{Delta, Intent, Timestamp, Value, json};
use dendrer_store::Shared;
use dendrer_store::prelude::*;
use dendrer_testkit::{memory, run_name, store_id};
use proptest::prelude::*;

const PACK: &str = r#"
name: test.owed
version: v1
reducer: delta/1
state:
  x: {init: "0"}
  a: {init: "{}"}
obligations:
  - {id: by_goal, holds: state.x > 3, by: goal.complete}
  - {id: by_tick, holds: "has(state.a.b)", by: {tick: 9}, lost: state.x == 5}
  - {id: after_request, holds: state.x > 3, within: {ticks: 3, of: action.request}}
  - {id: at_request, holds: state.x > 1, within: {ticks: 0, of: action.request}}
  - {id: after_rise, holds: "has(state.a.b) && state.a.b == 9", within: {ticks: 4, of: state.x > 2}}
  - {id: counted, holds: state.counters.transitions > 6, by: {tick: 8}, lost: "has(state.a.c)"}
"#;

/// Changes that meet, miss, make and remove what is owed, or that nobody looks at.
const OPS: &[&str] = &[
    r#"{"set":"/x","value":1}"#,
    r#"{"set":"/x","value":3}"#,
    r#"{"set":"/x","value":5}"#,
    r#"{"set":"/x","value":"five"}"#,
    r#"{"remove":"/x"}"#,
    r#"{"set":"/a/b","value":9}"#,
    r#"{"set":"/a/b/c","value":9}"#,
    r#"{"remove":"/a/b"}"#,
    r#"{"set":"/a","value":{"c":1}}"#,
    r#"{"set":"/elsewhere","value":1}"#,
];

const TYPES: &[&str] = &["memory.write", "action.request", "goal.complete"];

fn read(text: &str) -> pack::Source {
    pack::read(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn record(steps: &[(usize, usize)], source: &pack::Source) -> Shared {
    let store = memory(3);
    let state = source.pack.init(&Default::default()).expect("a state to begin with");
    let start = Start {
        reducer: source.pack.engine.as_str().into(),
        state,
        pack: Some(Bound { value: source.pack.value().clone(), text: source.text.clone() }),
        ..Start::new(run_name("r"))
    };
    let intents = steps.iter().map(|(kind, op)| {
        let op = OPS.get(*op).copied().unwrap_or(OPS[OPS.len() - 1]);
        let op = json::parse_door(op.as_bytes()).expect("an op");
        let delta = Delta::from_value(&Value::array([op])).expect("a delta");
        Intent::new(TYPES[*kind].parse().expect("a type"), "agent").with_delta(delta)
    });
    let mut recorder = dendrer_testkit::recorder(&store, &start);
    for intent in intents {
        // A change of what is not there is refused, and takes no tick.
        recorder.propose(&intent).expect("an intent that can be sealed");
    }
    recorder.commit().expect("a group is appended");
    drop(recorder);
    store
}

/// The verdict at every tick and how it stands in the end, from states that are folded anew for each tick.
fn oracle(store: &Shared, predicate: &Predicate, to: u64) -> (Vec<Verdict>, Standing) {
    let owed = predicate.obligation().expect("an obligation");
    let mut course = ObligationCourse::default();
    let verdicts = (0..=to).map(|tick| {
        let trace = Trace::open(store, &run_name("r")).expect("a run").without_snapshots();
        let moment = trace.at(tick).expect("a tick");
        let look = predicate.look(&moment.state, Some(&moment.counters.to_value()));
        let record = trace.record(tick).expect("a record");
        course.pass(owed, tick, record.header().type_name.as_ref(), &look.expect("an obligation"));
        course.verdict()
    });
    (verdicts.collect(), course.standing())
}

fn check(store: &Shared, pack: &Pack, from: u64, to: u64) {
    let trace = Trace::open(store, &run_name("r")).expect("a run");
    let all: Vec<&Predicate> = pack.declared().map(|declared| &declared.predicate).collect();
    let lines = timeline::judge_each(&trace, &all, from, to).expect("verdicts");
    for (predicate, line) in all.into_iter().zip(lines) {
        let (verdicts, standing) = oracle(store, predicate, to);
        for tick in from..=to {
            assert_eq!(line.at(tick), &verdicts[tick as usize], "{} at tick {tick}", predicate.name());
        }
        assert_eq!(line.standing, Some(standing.clone()), "{}", predicate.name());
        let question = BisectSubject::Predicate(predicate.clone());
        let range = Range { scan: true, ..Range::new(from, to) };
        let report = bisect::bisect(&trace, &question, &range).expect("a report");
        let is = |wanted: fn(&Verdict) -> bool| (from..=to).find(|tick| wanted(&verdicts[*tick as usize]));
        let violated = is(|verdict| *verdict == Verdict::Violation);
        let expected = match (is(|verdict| matches!(verdict, Verdict::Uncertain(_))), violated) {
            (Some(tick), _) => {
                let Verdict::Uncertain(why) = &verdicts[tick as usize] else { unreachable!("just found") };
                BisectOutcome::Uncertain(tick, why.clone())
            }
            (None, None) => BisectOutcome::Never,
            (None, Some(tick)) if tick == from => BisectOutcome::Initial,
            (None, Some(tick)) => BisectOutcome::Onset(tick),
        };
        assert_eq!(report.outcome, expected, "{}", predicate.name());
        assert_eq!(report.scan, Some(violated), "{}", predicate.name());
        assert!(report.probes.len() as u32 <= report.probes_max);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn obligations_are_judged_as_if_every_tick_was_looked_at(
        steps in prop::collection::vec((0..3usize, 0..2 * OPS.len()), 1..24),
        ends in (0..24u64, 0..24u64),
    ) {
        let source = read(PACK);
        let store = record(&steps, &source);
        let tip = Trace::open(&store, &run_name("r")).expect("a run").tip();
        check(&store, &source.pack, 0, tip);
        let (from, to) = (ends.0.min(ends.1).min(tip), ends.0.max(ends.1).min(tip));
        check(&store, &source.pack, from, to);
    }
}

/// A run of three ticks that nobody has met anything in.
fn idle() -> (Shared, pack::Source) {
    let source = read(PACK);
    (record(&[(0, 9), (0, 9), (0, 9)], &source), source)
}

#[test]
fn a_run_that_ended_before_something_was_due_is_told_from_one_that_goes_on() {
    let (mut store, source) = idle();
    let stands = |store: &Shared| {
        let trace = Trace::open(store, &run_name("r")).expect("a run");
        let predicate = source.pack.predicate("test.owed/by_tick").expect("by its full name");
        let line = timeline::judge(&trace, predicate, 0, trace.tip()).expect("verdicts");
        (line.standing.clone(), line.onset(), trace.summary().ended)
    };
    assert_eq!(stands(&store), (Some(Standing::Open(Some(9))), None, false));
    let head = Trace::open(&store, &run_name("r")).expect("a run").summary().head.id;
    let header = Header {
        store: store_id(3),
        kind: Kind::End,
        run: Some(run_name("r")),
        tick: None,
        prev: None,
        head: Some(head),
        type_name: None,
        author: Author::Runtime,
        ts: Timestamp::from_ms(9000),
        links: Vec::new(),
        pack: Some(source.pack.digest()),
    };
    let content = Value::record([("reason", Value::from("done"))]);
    let body = Body::commit(cut(content.as_object().expect("an object")), Seed([7; 16])).expect("a body");
    let record = Record::seal(header, body).expect("a record");
    store.commit(std::slice::from_ref(&record)).expect("a run ends");
    assert_eq!(stands(&store), (Some(Standing::Open(Some(9))), None, true));
}

#[test]
fn a_contract_check_tells_obligations_beside_violations() {
    let source = read(PACK);
    let store = record(&[(0, 9), (2, 9), (0, 9)], &source);
    let trace = Trace::open(&store, &run_name("r")).expect("a run");
    let checked = contract::check(&trace, None, 0, trace.tip(), None).expect("a check");
    let found: Vec<_> = checked
        .violations()
        .map(|judged| (judged.predicate.name(), judged.onset(), judged.standing.clone().expect("owed")))
        .collect();
    assert_eq!(found[0], ("by_goal", Some(2), Standing::Missed(2)));
    assert_eq!(found[2], ("after_request", None, Standing::Waiting));
    assert_eq!(found[5], ("counted", None, Standing::Open(Some(8))));
    assert!(checked.is_broken());
}
