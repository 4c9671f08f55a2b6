//! The counterexamples of the impossibility argument (dendrer paper 3.3.1), each with what holds against it here; the
//! vectors of 3.3.3; and the property that bisect finds what looking at every tick finds.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::cell::Cell;
use std::convert::Infallible;

use dendrer::Trace;
use dendrer::bisect::{self, BisectOutcome, BisectSubject, Probe, Range, search};
use dendrer::verify::{self, VerifyTerms, VerifyVerdict as Checked};
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_kernel::reduce::{HostReducer, Purity, ReduceError, Reducer, ReducerInfo};
use dendrer_kernel::replay::{Compared, ReplayError};
use dendrer_kernel::step::{self, Start};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::record::{Body, Header, Kind, Record, cut};
use dendrer_object::{Code, Digest, Intent, Pointer, RunName, Value};
use dendrer_store::Shared;
use dendrer_testkit::{Dice, info, memory, records_of, store_of};

fn run() -> RunName {
    "r".parse().unwrap()
}

fn set(path: &str, value: impl Into<Value>) -> Op {
    Op::set(path.parse().unwrap(), value.into())
}

/// Records a run that sets `field` to one of the values at each tick.
fn record(field: &str, values: &[f64]) -> Shared {
    let store = memory(3);
    let mut start = Start::new(run());
    start.state = Value::record([(field, Value::from(if field == "quality" { 0.95 } else { 0.5 }))]);
    let intents = values.iter().map(|value| {
        let delta = Delta(vec![Op::set(Pointer::of([field]), Value::from(*value))]);
        Intent::new("observation.add".parse().unwrap(), "agent").with_delta(delta)
    });
    dendrer_testkit::record(&store, &start, intents);
    store
}

fn ask(store: &Shared, predicate: &Predicate) -> (Vec<u64>, BisectOutcome) {
    let trace = Trace::open(store, &run()).unwrap();
    let question = BisectSubject::Predicate(predicate.clone());
    let report = bisect::bisect(&trace, &question, &Range::new(0, trace.tip())).unwrap();
    assert!(report.probes.len() as u32 <= report.probes_max);
    (ticks(&report.probes), report.outcome)
}

fn ticks(probes: &[Probe]) -> Vec<u64> {
    probes.iter().map(|probe| probe.tick).collect()
}

/// The search of the paper on its own: it takes each verdict as it comes.
fn naive(n: u64, judge: &mut dyn FnMut(u64) -> Verdict) -> (Vec<u64>, BisectOutcome) {
    let mut probes = Vec::new();
    let outcome = search(0, n, &mut |tick| Ok::<_, Infallible>(judge(tick)), &mut probes).unwrap();
    (ticks(&probes), outcome)
}

fn too_risky() -> Predicate {
    Predicate::condition("too_risky", "state.risk_score > 0.75").unwrap()
}

/// D-34: the vector of 3.3.3.
const VECTOR: [f64; 8] = [0.61, 0.68, 0.71, 0.79, 0.83, 0.87, 0.91, 0.94];

#[test]
fn the_vector_of_the_paper_is_found_with_its_probes() {
    let store = record("risk_score", &VECTOR);
    assert_eq!(ask(&store, &too_risky()), (vec![4, 2, 3], BisectOutcome::Onset(4)));
}

#[test]
fn a_predicate_that_oscillates_is_refused_where_the_search_alone_is_wrong() {
    let store = record("quality", &[0.9, 0.7, 0.8, 0.6, 0.9, 0.7, 0.8, 0.6]);
    let poor = Predicate::condition("poor", "state.quality < 0.75").unwrap();
    let trace = Trace::open(&store, &run()).unwrap();
    let mut judge = |tick| poor.verdict(&trace.at(tick).unwrap().state, None);
    // Tick 3 is ok again, so tick 2 is no onset, and the search cannot know.
    assert_eq!(naive(8, &mut judge), (vec![4, 2, 1], BisectOutcome::Onset(2)));
    assert_eq!(judge(3), Verdict::Ok);
    let (probes, outcome) = ask(&store, &poor);
    // D-35: what is asked with a lift is the first violation.
    assert_eq!(ask(&store, &poor.clone().lifted()).1, BisectOutcome::Onset(2));
    let BisectOutcome::Recovers(turns) = outcome else { panic!("{outcome:?}") };
    assert_eq!((probes, turns.len(), turns[0].0, turns[1].0), (vec![], 7, 2, 3));
}

/// D-22: a trace that can be changed. Tick 12 is written anew so that it looks harmless, its state root with it.
#[test]
fn a_rewritten_tick_hides_the_onset_and_the_hash_chain_shows_it() {
    let values: Vec<f64> =
        (1..=40).map(|tick| if tick < 12 { 0.4 } else { 0.8 + 0.001 * f64::from(tick) }).collect();
    let store = record("risk_score", &values);
    assert_eq!(ask(&store, &too_risky()), (vec![20, 10, 15, 12, 11], BisectOutcome::Onset(12)));

    let mut records = records_of(&store);
    let at = records.iter().position(|record| record.header().tick == Some(12)).unwrap();
    records[at] = harmless(&records[at]);
    let forged = store_of(info(3), records);

    // Whoever only has the trace as it is now is told another tick, with the same confidence.
    assert_eq!(ask(&forged, &too_risky()), (vec![20, 10, 15, 12, 13], BisectOutcome::Onset(13)));

    let report = verify::store(&forged, &VerifyTerms::default()).unwrap();
    let findings: Vec<_> = report.findings.iter().map(|finding| (finding.code, finding.tick)).collect();
    assert_eq!((report.verdict, findings), (Checked::Tampered, vec![(Code::E0302, Some(13))]));
    assert_eq!(
        report.runs[0].line.last_good,
        Some(12),
        "tick 13 names another record than the one that stands there"
    );
    assert_eq!(verify::store(&store, &VerifyTerms::default()).unwrap().verdict, Checked::Intact);
}

/// A refusal that nobody made: judged against a record that the run never had.
#[test]
fn an_invented_refusal_is_found_with_and_without_replay() {
    let mut records = records_of(&record("risk_score", &VECTOR));
    let model = records.last().unwrap().clone();
    let header = Header {
        kind: Kind::Refusal,
        tick: None,
        prev: None,
        head: Some(Digest::of(b"no such record")),
        links: Vec::new(),
        ..model.header().clone()
    };
    let content = Value::record([("agent_id", "planner".into()), ("reason", Value::from("he wanted to"))]);
    let fields = cut(content.as_object().unwrap());
    let invented = Record::seal(header, Body::commit(fields, model.body().seed().unwrap()).unwrap()).unwrap();
    let id = invented.id();
    records.push(invented);
    let forged = store_of(info(3), records);
    let report = verify::store(&forged, &VerifyTerms::default()).unwrap();
    assert_eq!((report.verdict, report.findings[0].code), (Checked::Tampered, Code::E0302));
    let replayed = verify::replay(&forged, &run()).unwrap();
    assert_eq!(
        replayed,
        Err(ReplayError::Unplaced { refusal: id, head: Some(Digest::of(b"no such record")) })
    );
}

/// The record as it would be had it set a harmless value.
fn harmless(record: &Record) -> Record {
    let mut content = record.content().as_object().cloned().unwrap();
    content.set("delta", Delta(vec![set("/risk_score", 0.41)]).to_value());
    content.set("state_root", Value::from(Value::record([("risk_score", Value::from(0.41))]).digest()));
    Record::seal(record.header().clone(), Body::commit(cut(&content), record.body().seed().unwrap()).unwrap())
        .unwrap()
}

/// A reducer that does not see a change of risk the first time it is asked about it.
#[derive(Default)]
struct Coin {
    asked: Cell<u64>,
}

impl Reducer for Coin {
    fn info(&self) -> ReducerInfo<'_> {
        ReducerInfo { name: "coin/1", purity: Purity::Tested, takes_delta: true, quantizes: false }
    }

    fn reduce(&self, _before: &Value, intent: &Intent) -> Result<Delta, ReduceError> {
        self.asked.set(self.asked.get() + 1);
        let delta = intent.delta.clone().unwrap_or_default();
        Ok(if self.asked.get() <= 4 { Delta(vec![set("/risk_score", 0.6)]) } else { delta })
    }
}

/// D-23: a reducer that is no function. The search goes into the wrong half and never learns of it.
#[test]
fn a_reducer_that_is_no_function_sends_the_search_astray_and_is_caught() {
    let store = record("risk_score", &VECTOR);
    let trace = Trace::open(&store, &run()).unwrap();
    let intents: Vec<Intent> = (1..=8).map(|tick| intent_of(&trace.record(tick).unwrap())).collect();
    let coin = Coin::default();
    let fold = |tick: u64| {
        let apply =
            |state: Value, intent: &Intent| coin.reduce(&state, intent).unwrap().apply(&state).unwrap();
        intents[..tick as usize].iter().fold(Value::record([("risk_score", Value::from(0.5))]), apply)
    };
    let mut judge = |tick| too_risky().verdict(&fold(tick), None);
    // The first evaluation of tick 4 happened to give a state that is ok, so the search never comes back.
    assert_eq!(naive(8, &mut judge), (vec![4, 6, 5], BisectOutcome::Onset(5)));
    assert_eq!(judge(4), Verdict::Violation, "the same tick, evaluated again");

    // Committed states do not change, so the onset read from them does not either.
    assert_eq!(ask(&store, &too_risky()), (vec![4, 2, 3], BisectOutcome::Onset(4)));

    // Replay compares, first with the record, then one evaluation with another.
    let replay = |reducer: &dyn Reducer, twice| {
        let go_on = &mut |_: &step::RunState, _: &Record| std::ops::ControlFlow::Continue(());
        match verify::replay_range(&trace, 0, trace.tip(), reducer, twice, go_on).unwrap() {
            Err(ReplayError::Divergence(divergence)) => (divergence.tick, divergence.what),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(replay(&Coin::default(), false), (1, Compared::State));
    // Here the coin turns between two evaluations of the third tick, both of which are compared.
    let late = Coin { asked: Cell::new(4) };
    let flaky = Flaky { coin: late, at: 3 };
    assert_eq!(replay(&flaky, true), (3, Compared::Evaluations));

    // A function of the host program is evaluated twice each time, so it is caught where it is made.
    let count = Cell::new(0u64);
    let host = HostReducer::new("counting/1", |_: &Value, _: &Intent| {
        count.set(count.get() + 1);
        Ok(Delta(vec![set("/risk_score", count.get())]))
    });
    let error = host.reduce(&Value::object(), &intents[0]).unwrap_err();
    assert!(matches!(error, ReduceError::NotDeterministic { .. }), "{error}");
}

/// Agrees with the record but for every second evaluation at one tick.
struct Flaky {
    coin: Coin,
    at: u64,
}

impl Reducer for Flaky {
    fn info(&self) -> ReducerInfo<'_> {
        ReducerInfo { name: "flaky/1", purity: Purity::Tested, takes_delta: true, quantizes: false }
    }

    fn reduce(&self, before: &Value, intent: &Intent) -> Result<Delta, ReduceError> {
        let delta = self.coin.reduce(before, intent)?;
        // Three evaluations for each tick: two to compare and one to make the transition.
        let asked = self.coin.asked.get() - 4;
        Ok(if asked == 3 * self.at - 1 { Delta(vec![set("/risk_score", 0.0)]) } else { delta })
    }
}

fn intent_of(record: &Record) -> Intent {
    let delta = Delta::from_value(record.content().get("delta").unwrap()).unwrap();
    Intent::new(record.header().type_name.clone().unwrap(), "agent").with_delta(delta)
}

/// D-24: a predicate that asks the world. The same state is good at one time and bad at another.
#[test]
fn a_predicate_that_asks_the_world_has_no_stable_partition_and_cannot_be_written() {
    let store = record("risk_score", &VECTOR);
    let trace = Trace::open(&store, &run()).unwrap();
    let calls = Cell::new(0u64);
    // Stands for a call to a service whose limit changes while the search is under way.
    let limit_of_the_hour = || {
        calls.set(calls.get() + 1);
        if calls.get() == 1 { 0.9 } else { 0.75 }
    };
    let mut judge = |tick| {
        let risk = trace.at(tick).unwrap().state.get("risk_score").and_then(Value::as_f64).unwrap();
        if risk > limit_of_the_hour() { Verdict::Violation } else { Verdict::Ok }
    };
    let first = naive(8, &mut judge);
    let second = naive(8, &mut judge);
    assert_eq!(
        (first.1, second.1),
        (BisectOutcome::Onset(5), BisectOutcome::Onset(4)),
        "one record, two answers"
    );

    // What asks the world is no expression: there is nothing in the language that could.
    for text in [
        "state.risk_score > now()",
        "state.risk_score > random()",
        "state.risk_score > rand(1)",
        "state.risk_score > limit",
        "state.risk_score > limit()",
        "state.risk_score > http_get('https://limits.example/now')",
        "http.get('https://limits.example/now').limit < state.risk_score",
        "state.risk_score > env('RISK_LIMIT')",
        "state.risk_score > env.RISK_LIMIT",
        "state.risk_score > $RISK_LIMIT",
        "state.risk_score > `cat limit`",
        "state.risk_score > file('/etc/limit')",
        "state.risk_score > open('/etc/limit').read()",
        "state.risk_score > state.read('/etc/limit')",
        "timestamp() < state.at",
        "state.at < getHours()",
        "now().getHours() > 3",
        "ts > 0",
        "t.ts > 0",
        "metrics.latency_ms > 3.0",
        "uuid() == 'x'",
        "import os",
        "state.risk_score > 0.75; system('true')",
        "(state.risk_score = 0.1) > 0.75",
    ] {
        for made in [Predicate::condition("p", text), Predicate::holds("p", text)] {
            let error = made.expect_err(text);
            assert!(
                [Code::E0501, Code::E0502, Code::E0505, Code::E0506].contains(&error.code),
                "{text}: {} {error}",
                error.code
            );
        }
    }
    // The limit belongs into the state, where it is committed with everything else.
    let store = record("risk_score", &VECTOR);
    let committed =
        Predicate::condition("p", "state.risk_score > (has(state.limit) ? state.limit : 0.75)").unwrap();
    assert_eq!(ask(&store, &committed).1, BisectOutcome::Onset(4));
}

#[test]
fn bisect_finds_what_looking_at_every_tick_finds() {
    let mut dice = Dice(20_260_223);
    for case in 0..1_000 {
        let n = 1 + dice.below(70);
        let onset = dice.below(n + 2);
        // Beyond the last tick there is no onset; at 0 the first tick breaks it. Before and after, the value wanders.
        let values: Vec<f64> = (1..=n)
            .map(|tick| (if tick < onset { 10 } else { 900 } + dice.below(90)) as f64 / 1000.0)
            .collect();
        let store = record("risk_score", &values);
        let first = values.iter().zip(1..).find(|(value, _)| **value > 0.75).map(|(_, tick)| tick);
        let (probes, outcome) = ask(&store, &too_risky());
        let expected = first.map_or(BisectOutcome::Never, BisectOutcome::Onset);
        assert_eq!(outcome, expected, "case {case}: {n} ticks, onset {onset}, probes {probes:?}");
        assert!(probes.len() as u32 <= bisect::probes_max(n), "case {case}: {probes:?}");
    }
}

/// D-125 to the letter: 100 runs of 64 ticks with an onset each, found exactly and within log2 64 steps.
#[test]
#[expect(clippy::print_stdout, reason = "a figure of eval/avc")]
fn a_hundred_runs_of_64_ticks_have_their_onset_found_in_six_steps() {
    let mut dice = Dice(64);
    let (mut exact, mut steps, mut most) = (0, 0, 0);
    for _ in 0..100 {
        let onset = 1 + dice.below(64);
        let values: Vec<f64> = (1..=64)
            .map(|tick| (if tick < onset { 10 } else { 900 } + dice.below(90)) as f64 / 1000.0)
            .collect();
        let (probes, outcome) = ask(&record("risk_score", &values), &too_risky());
        exact += u64::from(outcome == BisectOutcome::Onset(onset));
        steps += probes.len();
        most = most.max(probes.len());
    }
    println!("avc: 100 runs of 64 ticks: {exact} onsets exact, {steps} steps in all, {most} at most");
    assert_eq!(exact, 100);
    assert!(most <= 6, "{most}");
}
