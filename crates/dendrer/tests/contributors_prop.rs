//! Contributors against brute force: every subset of up to eleven earlier transitions, folded by hand.
//!
//! What is shown: a set that is found clears the violation; none of its members can be left out where that is said; and
//! where it is called smallest, no clearing set of any kind is smaller, whether or not removing more keeps the violation
//! away. At these sizes the search always gets that far.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::collections::BTreeMap;

use dendrer::bisect::{self, BisectSubject, Range};
use dendrer::contributors::{Contributors, ContributorsFound, Shown, WORK_MAX, contributors};
use dendrer::fork::{ForkTerms, fork};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::{Error, Trace, pack};
use dendrer_kernel::predicate::{Predicate, Verdict, Window};
use dendrer_kernel::reduce::{DeltaReducer, Reducer};
use dendrer_kernel::step::{Anomaly, Outcome, Stage, Start};
use dendrer_kernel::unknown::{READS_UNKNOWN, UnknownPlaces};
use dendrer_object::delta::Op;
use dendrer_object::{Delta, Intent, Value, json};
use dendrer_store::Shared;
use dendrer_store::embedded::{Embedded, Options};
use dendrer_testkit::{info, memory, run_name};
use proptest::prelude::*;

fn parse(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap()
}

/// Changes that meet, undo and rest on each other.
const OPS: &[&str] = &[
    r#"{"set":"/x","value":1}"#,
    r#"{"set":"/x","value":5}"#,
    r#"{"remove":"/x"}"#,
    r#"{"add":"/x","value":2}"#,
    r#"{"add":"/x","value":-1}"#,
    r#"{"set":"/limit","value":3}"#,
    r#"{"add":"/limit","value":1}"#,
    r#"{"set":"/a/b","value":9}"#,
    r#"{"set":"/a/other","value":1}"#,
    r#"{"set":"/a","value":[1]}"#,
    r#"{"remove":"/a"}"#,
    r#"{"append":"/list","value":1}"#,
    r#"{"remove":"/list/0"}"#,
    r#"{"set":"/elsewhere","value":1}"#,
    r#"{"add":"/elsewhere","value":1}"#,
];

const CONDITIONS: &[&str] = &[
    "has(state.x) && state.x > 3",
    "has(state.x) && state.x < 0",
    "state.x > 3",
    "has(state.x) && has(state.limit) && state.x > state.limit",
    "has(state.a.b)",
    "has(state.a) && has(state.a.b) && state.a.b == 9",
    "has(state.list) && size(state.list) > 1",
    "has(state.x) && has(state.list) && size(state.list) + state.x > 4",
    "state.counters.transitions > 3",
    "size(state) > 2",
    "policy",
    "anomaly",
];

const RULE: &str = "!has(state.x) || state.x < 5";

#[derive(Debug, Clone)]
enum Step {
    Ops(Vec<usize>),
    /// The kernel notes an anomaly by itself.
    Anomaly,
}

#[derive(Debug, Clone)]
struct Case {
    initial: &'static str,
    steps: Vec<Step>,
    condition: &'static str,
    window: Window,
    from: u64,
    ruled: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let ops = prop::collection::vec(0..OPS.len(), 0..3).prop_map(Step::Ops);
    let step = prop_oneof![12 => ops, 1 => Just(Step::Anomaly)];
    let initial = prop_oneof![Just("{}"), Just(r#"{"x":0}"#), Just(r#"{"x":0,"list":[]}"#)];
    let window = prop_oneof![4 => Just(Window::After), 1 => Just(Window::Before)];
    let steps = prop::collection::vec(step, 1..13);
    let from = prop_oneof![6 => Just(0u64), 1 => 0..4u64];
    (initial, steps, prop::sample::select(CONDITIONS), window, from, any::<bool>()).prop_map(
        |(initial, steps, condition, window, from, ruled)| Case {
            initial,
            steps,
            condition,
            window,
            from,
            ruled: ruled || condition == "policy",
        },
    )
}

fn predicate(case: &Case) -> Predicate {
    let predicate = match case.condition {
        "policy" => Predicate::built_in("kernel.policy_compliant").unwrap(),
        "anomaly" => Predicate::built_in("kernel.anomaly_free").unwrap(),
        text => Predicate::condition("p", text).unwrap(),
    };
    predicate.at_window(case.window).lifted()
}

fn record(case: &Case) -> Shared {
    let store = memory(3);
    let mut start = Start { stage: Some(Stage::Observe), ..Start::new(run_name("r")) };
    start.state = parse(case.initial);
    if case.ruled {
        start.policy = vec![Value::record([("id", Value::from("small")), ("holds", Value::from(RULE))])];
    }
    let mut recorder = Recorder::begin(&store, &start, Box::new(Fixed::new("prop", 0, 1))).unwrap();
    for step in &case.steps {
        match step {
            Step::Ops(ops) => {
                let delta = delta(ops);
                let intent = Intent::new("memory.write".parse().unwrap(), "agent").with_delta(delta);
                assert!(matches!(recorder.propose(&intent).unwrap(), Outcome::Committed(_)));
            }
            Step::Anomaly => {
                let anomaly = Anomaly::told("odd", "odd");
                recorder.note_anomaly(&anomaly).unwrap();
            }
        }
    }
    recorder.commit().unwrap();
    store
}

fn delta(ops: &[usize]) -> Delta {
    Delta::from_value(&Value::array(ops.iter().map(|op| parse(OPS[*op])))).unwrap()
}

/// A state with these marks in place of its own.
fn with_unknown(state: &Value, unknown: &UnknownPlaces) -> Value {
    let mut members = state.as_object().cloned().unwrap_or_default();
    match unknown.to_value() {
        Some(marks) => members.set("kernel_unknown", marks),
        None => drop(members.remove("kernel_unknown")),
    }
    Value::Object(members)
}

/// What comes of keeping the transitions that are not in a mask of removed ticks.
#[derive(Debug, Clone)]
struct Course {
    state: Value,
    violated: bool,
    kept: u64,
    failed: Vec<u64>,
    /// How many anomalies the runtime noted.
    odd: u64,
    last: Verdict,
}

/// Folds every subset of the earlier transitions by hand.
struct Oracle<'c> {
    case: &'c Case,
    predicate: Predicate,
    rule: Predicate,
    first: u64,
    at: u64,
    courses: BTreeMap<u64, Course>,
}

impl<'c> Oracle<'c> {
    fn new(case: &'c Case, onset: u64) -> Oracle<'c> {
        let lag = u64::from(case.window == Window::Before);
        let rule = Predicate::holds("small", RULE).unwrap();
        let (first, at) = (case.from.saturating_sub(lag), onset.saturating_sub(lag));
        let mut oracle =
            Oracle { case, predicate: predicate(case), rule, first, at, courses: BTreeMap::new() };
        let mut state = parse(case.initial);
        if case.ruled && oracle.rule.verdict(&state, None) == Verdict::Violation {
            state = oracle.latch(&state, 0);
        }
        let begin = Course { state, violated: false, kept: 0, failed: Vec::new(), odd: 0, last: Verdict::Ok };
        oracle.go(0, oracle.judge(begin, 0), 0);
        oracle
    }

    fn latch(&self, state: &Value, tick: u64) -> Value {
        let said = [("rule", Value::from("small")), ("tick", Value::from(tick))];
        let path = "/policy/violated".parse().unwrap();
        Delta(vec![Op::set(path, Value::record(said))]).apply(state).unwrap()
    }

    /// Judges the state that stands after a tick, whether anything happened there or not.
    fn judge(&self, mut course: Course, tick: u64) -> Course {
        let noted = [("odd", course.odd), ("reducer_error", course.failed.len() as u64)];
        let noted = noted.into_iter().filter(|(_, count)| *count > 0);
        let anomalies = Value::record(noted.map(|(kind, count)| (kind, Value::from(count))));
        let counters = Value::record([("anomalies", anomalies), ("transitions", Value::from(course.kept))]);
        course.last = self.predicate.verdict(&course.state, Some(&counters));
        course.violated |= tick >= self.first && tick < self.at && course.last == Verdict::Violation;
        course
    }

    fn go(&mut self, tick: u64, course: Course, removed: u64) {
        if tick == self.at {
            self.courses.insert(removed, course);
            return;
        }
        let tick = tick + 1;
        let step = &self.case.steps[tick as usize - 1];
        if tick < self.at && matches!(step, Step::Ops(_)) {
            self.go(tick, self.judge(course.clone(), tick), removed | 1 << tick);
        }
        let mut next = course;
        next.kept += 1;
        match step {
            Step::Ops(ops) => {
                let change = delta(ops);
                let mut unknown = UnknownPlaces::of(&next.state);
                match change.apply(&next.state) {
                    Ok(state) => {
                        unknown.clear_set(&change);
                        next.state = state;
                    }
                    Err(_) => {
                        let intent = Intent::new("memory.write".parse().unwrap(), "agent").with_delta(change);
                        unknown = DeltaReducer.unknown_after_error(&next.state, &intent, tick);
                        next.failed.push(tick);
                    }
                }
                next.state = with_unknown(&next.state, &unknown);
            }
            Step::Anomaly => {
                next.odd += 1;
                let note = format!(r#"{{"kind":"odd","text":"odd","tick":{tick}}}"#);
                let path = "/kernel_anomalies".parse().unwrap();
                next.state = Delta(vec![Op::append(path, parse(&note))]).apply(&next.state).unwrap();
            }
        }
        let latched = next.state.get("policy").is_some();
        if self.case.ruled && !latched {
            match self.rule.verdict(&next.state, None) {
                Verdict::Ok => {}
                Verdict::Violation => {
                    next.state = self.latch(&next.state, tick);
                    let mut unknown = UnknownPlaces::of(&next.state);
                    unknown.clear(&"/policy".parse().unwrap());
                    next.state = with_unknown(&next.state, &unknown);
                }
                Verdict::Uncertain(_) => {
                    let mut unknown = UnknownPlaces::of(&next.state);
                    if unknown.meets(&"/x".parse().unwrap()).is_some() {
                        unknown.mark("/policy".parse().unwrap(), tick, READS_UNKNOWN);
                        next.state = with_unknown(&next.state, &unknown);
                    }
                }
            }
        }
        self.go(tick, self.judge(next, tick), removed);
    }

    fn clears(&self, removed: u64) -> bool {
        let course = &self.courses[&removed];
        // The transition at the onset must still do what it did.
        let fails = |course: &Course| course.failed.contains(&self.at);
        !course.violated && course.last == Verdict::Ok && (!fails(course) || fails(&self.courses[&0]))
    }

    fn smallest(&self) -> Option<u32> {
        self.courses.keys().filter(|mask| self.clears(**mask)).map(|mask| mask.count_ones()).min()
    }

    /// Holds an answer against every subset.
    fn check(&self, found: &Contributors) {
        assert_eq!(found.with.root, self.courses[&0].state.digest());
        assert!(!self.clears(0));
        match &found.found {
            ContributorsFound::Nothing => assert_eq!(self.smallest(), None),
            ContributorsFound::Unknown => {}
            ContributorsFound::Set { ticks, shown, without } => {
                let mask = ticks.iter().fold(0, |mask, tick| mask | 1 << tick);
                assert!(self.clears(mask), "{ticks:?} clears nothing");
                let one_minimal = ticks.iter().all(|tick| !self.clears(mask & !(1 << tick)));
                match shown {
                    Shown::Smallest => {
                        assert!(one_minimal);
                        assert_eq!(self.smallest(), Some(ticks.len() as u32), "{ticks:?}");
                    }
                    Shown::Minimal => assert!(one_minimal, "{ticks:?}"),
                    Shown::Clears => {}
                }
                let course = &self.courses[&mask];
                assert_eq!(without.root, course.state.digest());
                assert_eq!(without.verdict, Verdict::Ok);
                let failed = &self.courses[&0].failed;
                let new: Vec<u64> =
                    course.failed.iter().copied().filter(|tick| !failed.contains(tick)).collect();
                assert_eq!(without.unapplied.iter().map(|(tick, _)| *tick).collect::<Vec<_>>(), new);
            }
        }
        // Whatever size is said to be tried holds no set that clears.
        let clearing = self.courses.keys().filter(|mask| self.clears(**mask)).map(|mask| mask.count_ones());
        assert!(clearing.min().is_none_or(|size| size as usize > found.tried), "{found:?}");
    }
}

fn onset(trace: &Trace, case: &Case) -> Option<u64> {
    let question = BisectSubject::Predicate(predicate(case));
    let range = Range::new(case.from.min(trace.tip()), trace.tip());
    match bisect::bisect(trace, &question, &range).unwrap().outcome {
        bisect::BisectOutcome::Onset(tick) => Some(tick),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn contributors_are_those_of_trying_every_subset(case in case(), little in 0..300u64) {
        let store = record(&case);
        let trace = Trace::open(&store, &run_name("r")).unwrap();
        let Some(onset) = onset(&trace, &case) else { return Ok(()) };
        let oracle = Oracle::new(&case, onset);
        let found = contributors(&trace, &predicate(&case), case.from, onset, WORK_MAX).unwrap();
        oracle.check(&found);
        let settled = match &found.found {
            ContributorsFound::Set { shown, .. } => *shown == Shown::Smallest,
            ContributorsFound::Nothing => true,
            ContributorsFound::Unknown => false,
        };
        prop_assert!(settled, "{:?}", found);
        // With less work, less is said, and all of it holds.
        oracle.check(&contributors(&trace, &predicate(&case), case.from, onset, little).unwrap());
    }
}

/// A pack that counts, with a contract that asks for a limit.
const COUNTING: &str = "
name: counting
version: v1
goal: count
state:
  count: {init: '0'}
  limit: {init: '9'}
  seen: {init: '[]'}
types: {desk.note: a note, desk.limit: another limit}
rules:
  - when_type: desk.note
    steps:
      - {add: count, value: 't.intent.n * state.limit', if: state.limit > 5}
      - {append: seen, value: t.intent.n}
  - when_type: desk.limit
    steps:
      - {set: limit, value: t.intent.n}
predicates:
  few: {holds: state.count < 39}
";

fn counting(lines: &[(&str, &str)], stage: Stage, kept: impl Fn(u64) -> bool) -> Shared {
    let source = pack::read(COUNTING.as_bytes()).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let store = memory(5);
    let start = Start { stage: Some(stage), ..Start::new(run_name("r")) };
    let fixed = Box::new(Fixed::new("counting", 0, 1));
    let mut recorder =
        source.bind(start).and_then(|start| dendrer::Recorder::begin(&store, &start, fixed)).unwrap();
    for (at, (type_name, n)) in lines.iter().enumerate().filter(|(at, _)| kept(*at as u64 + 1)) {
        let text = format!(r#"{{"type":"{type_name}","intent":{{"n":{n}}}}}"#);
        let intent = Intent::from_value(&parse(&text), Some("a")).unwrap();
        let outcome = recorder.propose(&intent).unwrap();
        assert!(at > 0 || matches!(outcome, Outcome::Committed(_)));
    }
    recorder.commit().unwrap();
    store
}

/// The rules of a pack decide anew what the rest does: held against recording each rest through the door.
#[test]
fn under_a_pack_the_rest_is_what_the_door_makes_of_it() -> Result<(), Error> {
    let lines = [
        ("desk.note", "1"),
        ("desk.limit", "7"),
        ("desk.note", "2"),
        ("desk.limit", "4"),
        ("desk.note", "3"),
        ("desk.limit", "8"),
        ("desk.note", "2"),
    ];
    for stage in [Stage::Replay, Stage::Contracts] {
        let store = counting(&lines, stage, |_| true);
        let trace = Trace::open(&store, &run_name("r"))?;
        let onset = trace.tip();
        assert_eq!(onset, 7, "all of it was committed");
        let predicate =
            dendrer::run::pack::of_run(&trace)?.unwrap().predicate("few").unwrap().clone().lifted();
        let count = trace.at(onset)?.state.get("count").and_then(Value::as_f64);
        assert_eq!(count, Some(9.0 + 14.0 + 16.0), "the limit of the day counts");
        let found = contributors(&trace, &predicate, 0, onset, WORK_MAX)?;
        let mut smallest = u32::MAX;
        for mask in 0..1u64 << (onset - 1) {
            let removed = |tick: u64| tick < onset && mask & (1 << (tick - 1)) != 0;
            let rest = counting(&lines, stage, |tick| !removed(tick));
            let rest = Trace::open(&rest, &run_name("r"))?;
            let state = rest.at(rest.tip())?.state;
            let clears = predicate.verdict(&state, None) == Verdict::Ok;
            if clears {
                smallest = smallest.min(mask.count_ones());
            }
            if let ContributorsFound::Set { ticks, without, .. } = &found.found
                && (1..onset).all(|tick| removed(tick) == ticks.contains(&tick))
            {
                assert!(clears);
                assert_eq!(without.root, state.digest());
            }
        }
        let ContributorsFound::Set { ticks, shown: Shown::Smallest, .. } = &found.found else {
            panic!("{found:?}")
        };
        assert_eq!(ticks.len() as u32, smallest);
        assert_eq!(ticks, &[6], "without the last limit the last note counts nothing");
    }
    Ok(())
}

/// A fork's beginning is its parent's, and what the fork set stays.
#[test]
fn the_ticks_of_a_fork_that_are_its_parents_count() -> Result<(), Error> {
    let dir = tempfile::TempDir::new().unwrap();
    let open = || Shared::new(Box::new(Embedded::open(&dir.path().join("s"), Options::untagged()).unwrap()));
    drop(Embedded::create(&dir.path().join("s"), info(1), Options::untagged()).unwrap());
    let add = |n: i64| {
        let op = parse(&format!(r#"[{{"add":"/x","value":{n}}},{{"append":"/log","value":{n}}}]"#));
        Intent::new("memory.write".parse().unwrap(), "a").with_delta(Delta::from_value(&op).unwrap())
    };
    let store = open();
    let start = Start { state: parse(r#"{"x":0,"log":[]}"#), ..Start::new(run_name("p")) };
    let mut recorder = Recorder::begin(&store, &start, Box::new(Fixed::new("p", 0, 1)))?;
    for n in [1, 5, 2, 50] {
        recorder.propose(&add(n))?;
    }
    recorder.commit()?;
    drop(recorder);
    let (reader, writer) = (open(), open());
    let parent = Trace::open(&reader, &run_name("p"))?;
    let mut terms = ForkTerms::new(run_name("c"));
    terms.set = vec![("/set".parse().unwrap(), Value::from(true))];
    let (mut recorder, _) = fork(&parent, &writer, 3, &terms, Box::new(Fixed::new("c", 9, 1)))?;
    recorder.propose(&add(3))?;
    recorder.commit()?;
    drop(recorder);
    let reader = open();
    let trace = Trace::open(&reader, &run_name("c"))?;
    assert_eq!(trace.tip(), 5);
    let predicate = Predicate::condition("p", "state.x > 10 && state.set")?.lifted();
    let found = contributors(&trace, &predicate, 0, 5, WORK_MAX)?;
    let ContributorsFound::Set { ticks, shown, without } = &found.found else { panic!("{found:?}") };
    assert_eq!((ticks.as_slice(), *shown), (&[3][..], Shown::Smallest));
    let rest = parse(r#"{"x":9,"log":[1,5,3],"set":true}"#);
    assert_eq!(without.root, rest.digest());
    assert_eq!((found.earlier, found.candidates), (4, 3), "the marker is the kernel's");
    Ok(())
}

/// What cannot be reduced again has no contributors, and says why.
#[test]
fn a_run_that_cannot_be_made_again_has_no_contributors() -> Result<(), Error> {
    let store = memory(6);
    let start = Start { reducer: "acme/7".into(), ..Start::new(run_name("r")) };
    let mut recorder = Recorder::begin(&store, &start, Box::new(Fixed::new("r", 0, 1)))?;
    recorder.propose(&Intent::new("memory.write".parse().unwrap(), "a").with_delta(delta(&[1])))?;
    recorder.commit()?;
    drop(recorder);
    let trace = Trace::open(&store, &run_name("r"))?;
    let predicate = Predicate::condition("p", "has(state.x)")?;
    let error = contributors(&trace, &predicate, 0, 1, WORK_MAX).unwrap_err();
    assert_eq!(error.code(), "E0602", "{error}");
    // An onset that is none is not explained.
    let wrong = Predicate::condition("p", "has(state.y)")?;
    let store = memory(6);
    let start = Start::new(run_name("r"));
    let mut recorder = Recorder::begin(&store, &start, Box::new(Fixed::new("r", 0, 1)))?;
    recorder.propose(&Intent::new("memory.write".parse().unwrap(), "a").with_delta(delta(&[1])))?;
    recorder.commit()?;
    drop(recorder);
    let trace = Trace::open(&store, &run_name("r"))?;
    assert_eq!(contributors(&trace, &wrong, 0, 1, WORK_MAX).unwrap_err().code(), "E0309");
    Ok(())
}
