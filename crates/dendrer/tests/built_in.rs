//! The predicates of the kernel against a naive model: the first tick at which a rule does not hold, the first forgery.

use dendrer::bisect::{self, BisectOutcome, BisectSubject, Range};
use dendrer::kernel::predicate::{Monotone, Predicate, Verdict, Window};
use dendrer::kernel::step::Start;
use dendrer::{Trace, timeline};
use dendrer_object::{Delta, Intent, Value, json};
use dendrer_testkit::{memory, run_name};
use proptest::prelude::*;

/// What happens at a tick: `x` becomes a number, or somebody claims to be the kernel.
#[derive(Debug, Clone, Copy)]
enum Event {
    Set(u64),
    Forge,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![6 => (0..10u64).prop_map(Event::Set), 1 => Just(Event::Forge)];
    prop::collection::vec(event, 1..24)
}

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).expect("JSON")
}

/// The first tick from which on it is so, and what bisect then has to say between two ticks.
fn expected(at: Option<u64>, from: u64, to: u64) -> BisectOutcome {
    match at.filter(|at| *at <= to) {
        None => BisectOutcome::Never,
        Some(at) if at <= from => BisectOutcome::Initial,
        Some(at) => BisectOutcome::Onset(at),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_kernels_own_predicates_are_violated_from_the_first_time_on(
        events in events(),
        begin in 0..10u64,
        ends in (0..24u64, 0..24u64),
    ) {
        let store = memory(3);
        let start = Start {
            state: value(&format!(r#"{{"x":{begin}}}"#)),
            policy: vec![
                value(r#"{"id":"low","holds":"state.x < 7"}"#),
                value(r#"{"id":"odd","holds":"state.x != 4"}"#),
            ],
            ..Start::new(run_name("r"))
        };
        let broken = |x: u64| x >= 7 || x == 4;
        let (mut policy, mut anomaly) = (broken(begin).then_some(0), None);
        let mut recorder = dendrer_testkit::recorder(&store, &start);
        for (tick, event) in (1..).zip(&events) {
            let intent = match event {
                Event::Set(x) => {
                    if broken(*x) {
                        policy = policy.or(Some(tick));
                    }
                    let delta = value(&format!(r#"[{{"set":"/x","value":{x}}}]"#));
                    let delta = Delta::from_value(&delta).expect("a delta");
                    Intent::new("memory.write".parse().expect("a type"), "agent").with_delta(delta)
                }
                Event::Forge => {
                    anomaly = anomaly.or(Some(tick));
                    Intent::new("kernel.anomaly".parse().expect("a type"), "agent")
                }
            };
            recorder.propose(&intent).expect("an intent that can be sealed");
        }
        recorder.commit().expect("a group is appended");
        drop(recorder);
        let trace = Trace::open(&store, &run_name("r")).expect("a run");
        let tip = trace.tip();
        prop_assert_eq!(tip, events.len() as u64, "a forgery takes one tick, too");
        let (from, to) = (ends.0.min(ends.1).min(tip), ends.0.max(ends.1).min(tip));
        for (name, at) in [("kernel.policy_compliant", policy), ("kernel.anomaly_free", anomaly)] {
            let predicate = Predicate::built_in(name).expect("built in");
            prop_assert_eq!(predicate.monotone(), Monotone::ByConstruction);
            for window in [Window::After, Window::Before] {
                let predicate = predicate.clone().at_window(window);
                // The state before a tick is the one after the tick before it; the beginning has only one.
                let at = at.map(|at| if window == Window::Before && at > 0 { at + 1 } else { at });
                for (from, to) in [(0, tip), (from, to)] {
                    let line = timeline::judge(&trace, &predicate, from, to).expect("verdicts");
                    for tick in from..=to {
                        let violated = at.is_some_and(|at| tick >= at);
                        let wanted = if violated { Verdict::Violation } else { Verdict::Ok };
                        prop_assert_eq!(line.at(tick), &wanted, "{} at tick {}", name, tick);
                    }
                    let range = Range { scan: true, ..Range::new(from, to) };
                    let question = BisectSubject::Predicate(predicate.clone());
                    let report = bisect::bisect(&trace, &question, &range).expect("a report");
                    prop_assert_eq!(&report.outcome, &expected(at, from, to), "{}", name);
                    prop_assert_eq!(report.candidates, None, "nothing is checked for recovery");
                }
            }
        }
    }
}
