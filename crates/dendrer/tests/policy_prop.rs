//! `kernel.policy_compliant` against its rules asked alone: random packs and runs, at each stage, and behind the verbs that
//! make a run of others.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write;

use dendrer::bisect::{BisectOutcome, BisectSubject};
use dendrer::fork::{ForkTerms, fork};
use dendrer::kernel::predicate::{Predicate, Verdict};
use dendrer::kernel::step::{Outcome, Stage, Start};
use dendrer::kernel::unknown;
use dendrer::merge::{MergeInput, MergeTerms, Strategy, merge};
use dendrer::rebase::{RebaseTerms, rebase};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::reduce::reduce;
use dendrer::store::Shared;
use dendrer::{Error, Trace, pack, timeline};
use dendrer_object::json::parse_door;
use dendrer_object::{Intent, Value};
use dendrer_testkit::{Dice, memory, run_name};

/// A rule of the run record or a violation of the pack, as a text that must hold.
#[derive(Debug, Clone)]
struct Rule {
    id: String,
    holds: String,
    /// The places of the state that it reads.
    reads: Vec<&'static str>,
    is_request: bool,
    is_violation: bool,
}

const PLACES: [&str; 3] = ["a", "b", "c"];

fn rules(dice: &mut Dice) -> Vec<Rule> {
    let mut rules = Vec::new();
    for kind in 0..3 {
        for n in 0..dice.below(3) + u64::from(kind == 2) {
            let one = PLACES[dice.below(3) as usize];
            let two = PLACES[dice.below(3) as usize];
            let bound = dice.below(9);
            let (holds, reads) = match (kind, dice.below(3)) {
                (1, 0) => (format!("t.action.params.n <= {bound}"), vec![]),
                (1, _) => (format!("t.action.params.n <= state.{one}"), vec![one]),
                (_, 0) => (format!("!(state.{one} > {bound}) || state.{two} < {bound}"), vec![one, two]),
                (_, 1) => (format!("state.{one} + state.{two} <= {}", bound + 5), vec![one, two]),
                (_, _) => (format!("state.{one} <= {}", bound + 1), vec![one]),
            };
            let id = format!("{}{n}", ["s", "r", "v"][kind as usize]);
            rules.push(Rule { id, holds, reads, is_request: kind == 1, is_violation: kind == 2 });
        }
    }
    rules
}

fn pack_text(rules: &[Rule]) -> String {
    let mut text =
        "name: acme.p\nversion: v1\nreducer: {engine: delta/1}\ntools: {pay: {effect: read}}\n".to_owned();
    text.push_str("state: {a: {words: a}, b: {words: b}, c: {words: c}}\nviolations:\n");
    for rule in rules.iter().filter(|rule| rule.is_violation) {
        writeln!(
            text,
            "  - {{id: {}, condition: \"!({})\", bisect_predicate: monotone_lift}}",
            rule.id, rule.holds
        )
        .unwrap();
    }
    text
}

fn start(run: &str, rules: &[Rule], stage: u64, state: &str) -> Start {
    let policy = rules.iter().filter(|rule| !rule.is_violation);
    let policy = policy
        .map(|rule| Value::record([("id", Value::from(&*rule.id)), ("holds", Value::from(&*rule.holds))]));
    let stage = [Stage::Observe, Stage::Replay, Stage::Contracts, Stage::Full][stage as usize];
    let start =
        Start { stage: Some(stage), state: v(state), policy: policy.collect(), ..Start::new(run_name(run)) };
    pack::read(pack_text(rules).as_bytes()).unwrap_or_else(|found| panic!("{found:?}")).bind(start).unwrap()
}

fn v(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn line(dice: &mut Dice) -> String {
    let n = dice.below(12);
    match dice.below(4) {
        0 => format!(r#"{{"type":"action.request","action":{{"tool":"pay","params":{{"n":{n}}}}}}}"#),
        1 if dice.below(3) == 0 => {
            let place = PLACES[dice.below(3) as usize];
            format!(r#"{{"type":"memory.write","delta":[{{"remove":"/{place}"}}]}}"#)
        }
        _ => {
            let place = PLACES[dice.below(3) as usize];
            format!(r#"{{"type":"memory.write","delta":[{{"set":"/{place}","value":{n}}}]}}"#)
        }
    }
}

fn surroundings(name: &str, at: u64) -> Box<Fixed> {
    Box::new(Fixed::new(name, 1_790_000_000_000 + at * 1_000_000, 1_000))
}

fn go_on(recorder: &mut Recorder, dice: &mut Dice, n: u64) {
    for _ in 0..n {
        let text = line(dice);
        let intent = Intent::from_value(&v(&text), Some("a")).unwrap();
        // What the door refuses is no transition.
        let _: Outcome = recorder.propose(&intent).unwrap();
    }
    recorder.commit().unwrap();
}

/// What a rule says at one tick; `None` where it is not asked.
fn at(trace: &Trace, rule: &Rule, tick: u64) -> Option<Verdict> {
    let state = |tick: u64| trace.state(tick).unwrap();
    if !rule.is_request {
        return Some(Predicate::holds("r", &rule.holds).unwrap().verdict(&state(tick), None));
    }
    let record = (tick > 0).then(|| trace.record(tick).unwrap())?;
    let (name, content) = (record.header().type_name.clone()?, record.content());
    let n = content.get("action").and_then(|action| action.get("params")?.get("n"));
    let n = n.filter(|_| name.as_str() == "action.request")?.as_u64().unwrap();
    let text = rule.holds.replace("t.action.params.n", &n.to_string());
    // A text without a place is judged by hand.
    let bound = text.split(" <= ").nth(1).unwrap();
    if let Ok(bound) = bound.parse::<u64>() {
        return Some(if n <= bound { Verdict::Ok } else { Verdict::Violation });
    }
    Some(Predicate::holds("r", &text).unwrap().verdict(&state(tick - 1), None))
}

/// The first tick that breaks a rule, and the first that cannot be judged and counts.
fn alone(trace: &Trace, rule: &Rule) -> (Option<u64>, Option<u64>) {
    let lag = u64::from(rule.is_request);
    let has = |tick: u64| {
        let state = trace.state(tick.saturating_sub(lag)).unwrap();
        // A place that is unknown was written.
        let is_unknown =
            |place: &str| unknown::meets(&state, &format!("/{place}").parse().unwrap()).is_some();
        rule.reads.iter().all(|place| state.get(place).is_some() || is_unknown(place))
    };
    let since = (0..=trace.tip()).find(|tick| has(*tick)).unwrap_or(0);
    let found: Vec<(u64, Verdict)> =
        (0..=trace.tip()).filter_map(|tick| Some((tick, at(trace, rule, tick)?))).collect();
    let broken = found.iter().find(|(_, verdict)| *verdict == Verdict::Violation).map(|(tick, _)| *tick);
    let open =
        found.iter().find(|(tick, verdict)| *tick >= since && matches!(verdict, Verdict::Uncertain(_)));
    (broken, open.map(|(tick, _)| *tick))
}

fn check(store: &Shared, run: &str, rules: &[Rule], seed: u64) {
    let trace = Trace::open(store, &run_name(run)).unwrap();
    let found: Vec<_> = rules.iter().map(|rule| alone(&trace, rule)).collect();
    let broken = found.iter().filter_map(|(broken, _)| *broken).min();
    let open = found.iter().filter_map(|(_, open)| *open).min();
    let open = open.filter(|open| broken.is_none_or(|broken| *open < broken));
    let predicate = Predicate::built_in("kernel.policy_compliant").unwrap();
    let report = trace.bisect(&BisectSubject::Predicate(predicate.clone())).unwrap();
    let what = || format!("seed {seed}, {run}: {rules:#?}\n{found:?}");
    match (open, broken) {
        (Some(open), broken) => {
            assert!(
                matches!(report.outcome, BisectOutcome::Uncertain(tick, _) if tick == open),
                "{} {:?}",
                what(),
                report.outcome
            );
            assert_eq!(report.first_certain, broken, "{}", what());
        }
        (None, Some(0)) => assert_eq!(report.outcome, BisectOutcome::Initial, "{}", what()),
        (None, Some(tick)) => assert_eq!(report.outcome, BisectOutcome::Onset(tick), "{}", what()),
        (None, None) => assert_eq!(report.outcome, BisectOutcome::Never, "{}", what()),
    }
    let tip = trace.tip();
    let line = timeline::judge(&trace, &predicate, 0, tip).unwrap();
    let scanned = timeline::scan(&trace, &[&predicate], 0, tip).unwrap().pop().unwrap();
    assert_eq!(line.turns, scanned.turns, "{}", what());
    ask_alone(&trace, rules, report.onset(), &what);
}

/// Where each rule about states can be asked alone with bisect, the earliest answer is the one of all.
fn ask_alone(trace: &Trace, rules: &[Rule], onset: Option<u64>, what: &dyn Fn() -> String) {
    let mut earliest: Option<u64> = None;
    for rule in rules {
        if rule.is_request {
            return;
        }
        let predicate = Predicate::holds(&rule.id, &rule.holds).unwrap().lifted();
        let report = trace.bisect(&BisectSubject::Predicate(predicate)).unwrap();
        match report.outcome {
            BisectOutcome::Uncertain(..) => return,
            _ => earliest = earliest.into_iter().chain(report.onset()).min(),
        }
    }
    if onset.is_some() {
        assert_eq!(earliest, onset, "{}", what());
    }
}

fn forked(store: &Shared, seed: u64) -> Result<(), Error> {
    let parent = Trace::open(store, &run_name("r"))?;
    let terms = ForkTerms::new(run_name("f"));
    let at = seed % (parent.tip() + 1);
    let (mut recorder, _) = fork(&parent, store, at, &terms, surroundings("f", 1))?;
    go_on(&mut recorder, &mut Dice(seed ^ 5), 3);
    Ok(())
}

fn rebased(store: &Shared) -> Result<(), Error> {
    let [source, base] = ["f", "r"].map(|run| Trace::open(store, &run_name(run)).unwrap());
    let terms = RebaseTerms::new(run_name("q"));
    let (mut recorder, _) = rebase(&source, &base, base.tip(), store, &terms, None, surroundings("q", 2))?;
    recorder.commit().map(drop)
}

fn merged(store: &Shared, seed: u64) -> Result<(), Error> {
    let traces = ["r", "f"].map(|source| Trace::open(store, &run_name(source)).unwrap());
    let inputs = traces.each_ref().map(|trace| MergeInput { trace, tick: trace.tip() });
    let terms = MergeTerms {
        run: run_name("m"),
        artifacts: Vec::new(),
        strategy: Strategy::First,
        seed_only: false,
        although: None,
    };
    let (mut recorder, _) = merge(&inputs, store, &terms, surroundings("m", 3))?;
    go_on(&mut recorder, &mut Dice(seed ^ 77), 3);
    Ok(())
}

fn reduced(store: &Shared, rules: &[Rule], seed: u64) -> Result<(), Error> {
    let source = Trace::open(store, &run_name("r"))?;
    let stage = [None, Some(Stage::Contracts), Some(Stage::Full)][(seed % 3) as usize];
    let pack = pack::read(pack_text(rules).as_bytes()).unwrap();
    reduce(&source, store, &pack, run_name("d"), None, stage, surroundings("d", 4)).map(drop)
}

#[test]
fn compliance_has_the_earliest_onset_of_its_rules() {
    let cases = if std::env::var_os("DENDRER_DEEP").is_some() { 5_000 } else { 150 };
    let mut made = [0; 4];
    for seed in 0..cases {
        let dice = &mut Dice(seed);
        let rules = rules(dice);
        let state = ["{}", r#"{"a":1}"#, r#"{"a":1,"b":2,"c":3}"#][dice.below(3) as usize];
        let store = memory(3);
        let start = start("r", &rules, seed % 4, state);
        let mut recorder = Recorder::begin(&store, &start, surroundings("r", 0)).unwrap();
        let n = dice.below(10);
        go_on(&mut recorder, dice, n);
        drop(recorder);
        check(&store, "r", &rules, seed);
        let runs = [
            ("f", forked(&store, seed)),
            ("q", rebased(&store)),
            ("m", merged(&store, seed)),
            ("d", reduced(&store, &rules, seed)),
        ];
        // A door may refuse, and then there is no run.
        for (at, (run, _)) in runs.iter().enumerate().filter(|(_, (_, made))| made.is_ok()) {
            // `reduce` goes by the pack alone.
            let asked = rules.iter().filter(|rule| *run != "d" || rule.is_violation);
            check(&store, run, &asked.cloned().collect::<Vec<_>>(), seed);
            made[at] += 1;
        }
    }
    assert!(made.iter().all(|made| *made > cases / 10), "{made:?}");
}
