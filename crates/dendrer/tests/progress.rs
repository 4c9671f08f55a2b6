//! Where a score fell, against a slow oracle that asks for it at every tick of full states; and the published packs.

use dendrer::ask::regression::{Metric, readings, regression};
use dendrer::bisect::{self, BisectOutcome, BisectSubject, Range};
use dendrer::kernel::predicate::Predicate;
use dendrer::kernel::progress::course::ProgressCourse;
use dendrer::kernel::progress::{Evaluation, ProgressPlan, Signal};
use dendrer::kernel::step::Start;
use dendrer::{Trace, pack};
use dendrer_object::{Delta, Intent, Value, json};
use dendrer_store::Shared;
use dendrer_testkit::{memory, run_name};
use proptest::prelude::*;

const PACK: &str = r#"
name: test.scored
version: v1
reducer: delta/1
state:
  x: {init: "0"}
  a: {init: "{}"}
types: {artifact.write: w, skeptic.challenge: c}
progress_contracts:
  - {id: share, version: v3, score: "1.0 - double(state.x) / 10.0", violation: state.x > 8}
progress:
  goals: {first: , second: "state.x == 3"}
  constraints:
    small: {holds: state.x < 5, weight: 2}
    there: {holds: "has(state.a.b)"}
    counted: {holds: state.counters.transitions < 9}
  challenges: {type: skeptic.challenge, survived: "state.x < 6", last: 2}
  weights: {structural_completion: 0.5, constraint_satisfaction: 0.3, skeptic_survival_rate: 0.2}
  tolerance: 0.05
"#;

const OPS: &[&str] = &[
    r#"{"set":"/x","value":1}"#,
    r#"{"set":"/x","value":3}"#,
    r#"{"set":"/x","value":5}"#,
    r#"{"set":"/x","value":7}"#,
    r#"{"set":"/x","value":9}"#,
    r#"{"set":"/x","value":"nine"}"#,
    r#"{"set":"/a/b","value":9}"#,
    r#"{"set":"/a","value":{}}"#,
    r#"{"set":"/elsewhere","value":1}"#,
];

const TYPES: &[&str] = &["memory.write", "artifact.write", "skeptic.challenge", "goal.complete"];

fn record(steps: &[(usize, usize)], source: &pack::Source) -> Shared {
    let store = memory(3);
    let state = source.pack.init(&Default::default()).expect("a state to begin with");
    let bound =
        dendrer::kernel::pack::Bound { value: source.pack.value().clone(), text: source.text.clone() };
    let start = Start { reducer: "delta/1".into(), state, pack: Some(bound), ..Start::new(run_name("r")) };
    let intents = steps.iter().map(|(kind, op)| {
        let op = json::parse_door(OPS[(*op).min(OPS.len() - 1)].as_bytes()).expect("an op");
        let delta = Delta::from_value(&Value::array([op])).expect("a delta");
        let intent = Intent::new(TYPES[*kind].parse().expect("a type"), "agent").with_delta(delta);
        Intent { goal: Some("first".into()), ..intent }
    });
    dendrer_testkit::record(&store, &start, intents);
    store
}

/// What a metric says at every tick, from states that are folded anew for each.
fn oracle(store: &Shared, metric: &Metric<'_>, to: u64) -> Vec<Evaluation> {
    fn of_signal(store: &Shared, signal: Signal, plan: &ProgressPlan, to: u64) -> Vec<Evaluation> {
        let mut course = ProgressCourse::new(plan);
        let said = (0..=to).map(|tick| {
            let trace = Trace::open(store, &run_name("r")).expect("a run").without_snapshots();
            let moment = trace.at(tick).expect("a tick");
            let record = (tick > 0).then(|| trace.record(tick).expect("a record"));
            course.pass(record.as_ref(), &moment.state, Some(&moment.counters.to_value()), true);
            match course.reading(signal) {
                Ok(score) => Evaluation::Ok(score),
                Err(why) => Evaluation::Uncertain(None, why),
            }
        });
        said.collect()
    }
    fn of_contract(store: &Shared, contract: &Predicate, to: u64) -> Vec<Evaluation> {
        let at = |tick| {
            let trace = Trace::open(store, &run_name("r")).expect("a run").without_snapshots();
            contract.evaluate(&trace.at(tick).expect("a tick").state, None)
        };
        (0..=to).map(at).collect()
    }
    match metric {
        Metric::Signal(signal, plan) => of_signal(store, *signal, plan, to),
        Metric::Contract(contract) => of_contract(store, contract, to),
    }
}

/// The first tick that is lower than some tick before it in the range, or that cannot be said, by comparing each with all.
fn expected(said: &[Evaluation], from: u64, tolerance: f64) -> BisectOutcome {
    let from = from as usize;
    for tick in from..said.len() {
        let onset = if tick == from { BisectOutcome::Initial } else { BisectOutcome::Onset(tick as u64) };
        match &said[tick] {
            Evaluation::Uncertain(_, why) => return BisectOutcome::Uncertain(tick as u64, why.clone()),
            Evaluation::Violation(_) => return onset,
            Evaluation::Ok(score) => {
                let fell = said[from..tick]
                    .iter()
                    .any(|before| matches!(before, Evaluation::Ok(best) if best - tolerance > score + 1e-9));
                if fell {
                    return onset;
                }
            }
        }
    }
    BisectOutcome::Never
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_regression_is_the_first_tick_below_some_tick_before(
        steps in prop::collection::vec((0..TYPES.len(), 0..2 * OPS.len()), 1..20),
        ends in (0..20u64, 0..20u64),
    ) {
        let source = pack::read(PACK.as_bytes()).unwrap_or_else(|problems| panic!("{problems:#?}"));
        let store = record(&steps, &source);
        let trace = Trace::open(&store, &run_name("r")).expect("a run");
        let tip = trace.tip();
        let (from, to) = (ends.0.min(ends.1).min(tip), ends.0.max(ends.1).min(tip));
        prop_assert_eq!(Metric::names(&source.pack).len(), 4);
        for name in Metric::names(&source.pack) {
            let metric = Metric::find(&source.pack, &name).expect("a metric");
            for (from, to) in [(0, tip), (from, to)] {
                let said = oracle(&store, &metric, to);
                let found = readings(&trace, &metric, from, to).expect("readings");
                for tick in from..=to {
                    let after = found.partition_point(|reading| reading.tick <= tick);
                    prop_assert_eq!(&found[after - 1].said, &said[tick as usize], "{} at {}", name, tick);
                }
                let range = Range::new(from, to);
                let question = regression(&trace, &source.pack, &metric, &range).expect("a question");
                let tolerance = if name == "progress" { 0.05 } else { 0.0 };
                let report = bisect::bisect(&trace, &question, &range).expect("a report");
                prop_assert_eq!(report.outcome, expected(&said, from, tolerance), "{}", name);
                prop_assert!(matches!(question, BisectSubject::Regression(_)));
            }
        }
    }
}

#[test]
fn the_contracts_of_the_paper_are_published_and_pass_their_tests() {
    for (file, contract, version) in [
        ("tax-filing.yaml", "acme.tax_compliance_v2", "v2.1.3"),
        ("wall-street.yaml", "ws.risk_threshold", "v1.0.0"),
    ] {
        let path = format!("{}/../../examples/packs/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read(path).expect("a published pack");
        let source = pack::read(&text).unwrap_or_else(|problems| panic!("{problems:#?}"));
        for tested in source.test() {
            assert!(tested.failed.is_empty(), "{file}: {}: {:?}", tested.name, tested.failed);
        }
        let found = source.pack.predicate(contract).expect("the contract");
        assert_eq!((found.version(), found.progress().is_some()), (version, true));
    }
}
