//! The first bisect of a predicate that is monotone by construction: how much it reads, and that it answers as a pass over
//! all records does (dendrer paper 4.7).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::ops::RangeInclusive;

use dendrer::Trace;
use dendrer::bisect::{self, BisectOutcome, BisectSubject, Range};
use dendrer::watch::Watch;
use dendrer_kernel::predicate::{Predicate, Window};
use dendrer_kernel::step::Start;
use dendrer_object::{Delta, Intent, Value, delta::Op};
use dendrer_store::Shared;
use dendrer_testkit::{memory_with_key, record, run_name};

/// Intents that write their number.
fn writes(numbers: RangeInclusive<u64>) -> impl Iterator<Item = Intent> {
    numbers.map(|number| {
        let delta = Delta(vec![Op::set("/x".parse().unwrap(), Value::from(number))]);
        Intent::new("memory.write".parse().unwrap(), "a").with_delta(delta)
    })
}

/// A store whose run `r` has so many ticks.
fn store_of(ticks: u64) -> Shared {
    let store = memory_with_key(3);
    record(&store, &Start::new(run_name("r")), writes(1..=ticks));
    store
}

/// Violated from the first tick with more transitions than a number.
fn more_than(number: u64) -> Predicate {
    let text = format!("state.counters.transitions > {number}");
    let predicate = Predicate::condition("p", &text).unwrap();
    assert!(predicate.cannot_recover());
    predicate.monotone_by_text()
}

/// Asks once, with nothing known from before; returns the onset and how many records were read.
fn first_bisect(store: &Shared, predicate: Predicate) -> (BisectOutcome, u64) {
    let watch = Watch::default();
    let trace = Trace::open(&watch.over(store), &run_name("r")).unwrap();
    let report = trace.bisect(&BisectSubject::Predicate(predicate)).unwrap();
    assert_eq!(report.known_to, None);
    (report.outcome, watch.done())
}

#[test]
fn first_bisect_reads_no_more_records_of_a_long_run_than_of_a_short_one() {
    let [short, long] = [2_000u64, 32_000].map(|ticks| {
        let store = store_of(ticks);
        let (outcome, counted) = first_bisect(&store, more_than(ticks * 7 / 10));
        assert_eq!(outcome, BisectOutcome::Onset(ticks * 7 / 10 + 1));
        let (outcome, latched) = first_bisect(&store, Predicate::built_in("kernel.anomaly_free").unwrap());
        assert_eq!(outcome, BisectOutcome::Never);
        counted + latched
    });
    assert!(short < 2_000, "{short} records of 2,000 ticks were read");
    assert!(long < short * 2, "{long} records of 32,000 ticks were read, and {short} of 2,000");
}

#[test]
fn probes_answer_as_a_pass_over_all_records_does() {
    let store = store_of(900);
    for (from, to) in [(0, 900), (0, 899), (17, 640), (600, 601), (900, 900)] {
        for bound in [0, 1, 16, 17, 400, 599, 600, 639, 640, 898, 899, 900] {
            for window in [Window::After, Window::Before] {
                let question = BisectSubject::Predicate(more_than(bound).at_window(window));
                let range = Range::new(from, to);
                let fresh = Trace::open(&store, &run_name("r")).unwrap();
                let passed = Trace::open(&store, &run_name("r")).unwrap().without_snapshots();
                let probed = bisect::bisect(&fresh, &question, &range).unwrap();
                let passed = bisect::bisect(&passed, &question, &range).unwrap();
                let told = |report: bisect::BisectReport| {
                    (report.outcome, report.low, report.high, report.probes, report.candidates)
                };
                assert_eq!(told(probed), told(passed), "> {bound} at {window:?} from {from} to {to}");
            }
        }
    }
}
