//! Seeded merges: what is taken, where it is from, what is kept open, and how that is decided.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use dendrer::merge::{
    ConflictStanding, MergeInput, MergeTerms, Merged, Resolution, Strategy, Take, merge, merged, resolve,
    standings,
};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::store::Shared;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::{Error, Trace, fork, pack, verify};
use dendrer_kernel::step::{Outcome, Stage, Start};
use dendrer_object::json::parse_door;
use dendrer_object::{Code, Intent, Pointer, Value};
use dendrer_testkit::{Dice, info, run_name};
use tempfile::TempDir;

fn v(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn p(text: &str) -> Pointer {
    text.parse().unwrap()
}

struct Place {
    dir: TempDir,
    clock: std::cell::Cell<u64>,
}

impl Place {
    fn new() -> Place {
        let dir = TempDir::new().expect("a directory");
        drop(Embedded::create(&dir.path().join("s"), info(1), Options::untagged()).expect("a store"));
        Place { dir, clock: 1_790_000_000_000.into() }
    }

    fn surroundings(&self, name: &str) -> Box<Fixed> {
        self.clock.set(self.clock.get() + 1_000_000);
        Box::new(Fixed::new(name, self.clock.get(), 1_000))
    }

    fn open(&self) -> Shared {
        Shared::new(Box::new(
            Embedded::open(&self.dir.path().join("s"), Options::untagged()).expect("opened"),
        ))
    }

    fn record(&self, run: &str, state: &str, lines: &[&str]) {
        let start = Start { state: v(state), ..Start::new(run_name(run)) };
        self.record_under(&start, None, lines);
    }

    fn record_under(&self, start: &Start, text: Option<&str>, lines: &[&str]) {
        let store = self.open();
        let surroundings = self.surroundings(start.run.as_str());
        let mut recorder = match text {
            None => Recorder::begin(&store, start, surroundings),
            Some(text) => {
                let source = pack::read(text.as_bytes()).expect("a pack");
                source
                    .bind(start.clone())
                    .and_then(|start| dendrer::Recorder::begin(&store, &start, surroundings))
            }
        }
        .expect("begun");
        for line in lines {
            let intent =
                Intent::from_value(&v(line), Some("a")).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert!(matches!(recorder.propose(&intent).unwrap(), Outcome::Committed(_)), "{line}");
        }
        recorder.commit().expect("committed");
    }

    fn merge(&self, runs: &[(&str, u64)], terms: &MergeTerms) -> Result<Merged, Error> {
        let (reader, writer) = (self.open(), self.open());
        let traces: Vec<Trace> =
            runs.iter().map(|(run, _)| Trace::open(&reader, &run_name(run))).collect::<Result<_, _>>()?;
        let sources: Vec<MergeInput<'_>> =
            traces.iter().zip(runs).map(|(trace, (_, tick))| MergeInput { trace, tick: *tick }).collect();
        let (mut recorder, made) = merge(&sources, &writer, terms, self.surroundings("merge"))?;
        recorder.commit()?;
        Ok(made)
    }

    fn resolve(&self, run: &str, path: &str, take: Take) -> Result<u64, Error> {
        let resolution =
            Resolution { path: p(path), take, reason: "measured".into(), agent: "operator".into() };
        let store = self.open();
        let record = resolve(&store, &run_name(run), &resolution, self.surroundings("resolve"), false)?;
        Ok(record.header().tick.unwrap())
    }

    /// Replays a run to the end, and hands over a trace.
    fn with<T>(&self, run: &str, f: impl FnOnce(&Trace) -> T) -> T {
        let store = self.open();
        let run = run_name(run);
        let trace = Trace::open(&store, &run).expect("a run");
        assert_eq!(verify::replay(&store, &run).expect("read"), Ok(trace.tip()));
        f(&trace)
    }

    fn state(&self, run: &str) -> String {
        self.with(run, |trace| trace.at(trace.tip()).unwrap().state.to_string())
    }

    fn standings(&self, run: &str) -> Vec<ConflictStanding> {
        self.with(run, |trace| standings(trace, &merged(trace).unwrap()).unwrap())
    }
}

fn terms(run: &str, artifacts: &[&str], strategy: Strategy) -> MergeTerms {
    let artifacts = artifacts.iter().map(|path| p(path)).collect();
    MergeTerms { run: run_name(run), artifacts, strategy, seed_only: false, although: None }
}

fn two(place: &Place) {
    place.record(
        "x",
        r#"{"both":1,"map":{"same":[1,2],"mine":1},"budget":600,"old":"x"}"#,
        &[
            r#"{"type":"plan.update","intent":{"confidence":0.9},"delta":[{"set":"/budget","value":131}]}"#,
            r#"{"type":"memory.write","delta":[{"set":"/plan","value":{"path":"plan.md"}}]}"#,
        ],
    );
    place.record(
        "y",
        r#"{"both":1,"map":{"same":[1,2],"deep":{"k":2}},"budget":600}"#,
        &[
            r#"{"type":"plan.update","intent":{"confidence":0.4},"delta":[{"set":"/budget","value":96.5}]}"#,
            r#"{"type":"memory.write","delta":[{"set":"/map/mine","value":5}]}"#,
        ],
    );
}

#[test]
fn a_merge_is_a_new_run_that_says_of_each_value_where_it_is_from() {
    let place = Place::new();
    two(&place);
    let size = place.open().tree().size;
    let made = place.merge(&[("x", 2), ("y", 2)], &terms("m", &[], Strategy::Manual)).unwrap();
    assert_eq!(place.open().tree().size, size + 1, "one record, and no transition");
    assert_eq!(
        known(&place.state("m")),
        r#"{"both":1,"map":{"deep":{"k":2},"same":[1,2]},"old":"x","plan":{"path":"plan.md"}}"#
    );
    place.with("m", |trace| assert_eq!((trace.tip(), merged(trace).unwrap()), (0, made.clone())));
    let seeded: Vec<String> = made
        .seeded
        .iter()
        .map(|seeded| {
            let from = seeded.from.iter().map(|from| format!("{}@{}", from.source, from.tick));
            format!("{} {}", seeded.path, from.collect::<Vec<_>>().join(" "))
        })
        .collect();
    assert_eq!(seeded, ["/both a@0 b@0", "/map/deep b@0", "/map/same a@0 b@0", "/old a@0", "/plan a@2"]);
    let conflicts: Vec<(&str, usize)> =
        made.conflicts.iter().map(|conflict| (conflict.path.as_str(), conflict.values.len())).collect();
    assert_eq!(conflicts, [("/budget", 2), ("/map/mine", 2)]);
    // Everything it says can be looked up: the source, its state, and the record that wrote the value.
    let reader = place.open();
    for source in &made.sources {
        let trace = Trace::open(&reader, &source.run).unwrap();
        let moment = trace.at(source.tick).unwrap();
        assert_eq!((moment.id, moment.state.digest()), (source.record, source.state_root));
        for conflict in &made.conflicts {
            let (from, value) = conflict.values.iter().find(|(from, _)| from.source == source.name).unwrap();
            assert_eq!(conflict.path.get(&moment.state), value.as_ref());
            assert_eq!(trace.record(from.tick).unwrap().id(), from.record);
        }
    }
    // An earlier tick counts as it stood, and a chosen place is all that is taken.
    let made =
        place.merge(&[("x", 0), ("y", 2)], &terms("n", &["/budget", "/map/same"], Strategy::Manual)).unwrap();
    assert_eq!(made.conflicts[0].values[0].1, Some(Value::from(600.0)));
    assert_eq!(known(&place.state("n")), r#"{"map":{"same":[1,2]}}"#);
    // It travels: what the bundle says is what the record says.
    place.with("n", |trace| assert_eq!(merged(trace).unwrap(), made));
}

#[test]
fn a_strategy_takes_what_it_can_tell_apart() {
    let place = Place::new();
    two(&place);
    let taken = |name: &str, strategy| {
        let made = place.merge(&[("x", 2), ("y", 2)], &terms(name, &[], strategy)).unwrap();
        made.conflicts.iter().map(|conflict| conflict.taken.as_deref().map(str::to_owned)).collect::<Vec<_>>()
    };
    let (a, b) = (Some("a".to_owned()), Some("b".to_owned()));
    // /budget was written at x@1 and y@1, /map/mine at x@0 and y@2; nobody said how sure they were of the latter.
    assert_eq!(taken("lww", Strategy::Lww), [b.clone(), b]);
    assert_eq!(taken("sure", Strategy::Confidence), [a.clone(), None]);
    assert_eq!(taken("first", Strategy::First), [a.clone(), a]);
    let sure = v(&place.state("sure"));
    assert_eq!((sure.get("budget"), p("/map/mine").get(&sure)), (Some(&Value::from(131.0)), None));
    assert_eq!(place.standings("sure"), [ConflictStanding::Taken("a".into()), ConflictStanding::Open]);
    let error = place.resolve("sure", "/budget", Take::Side("b".into())).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (Code::E0446, "the conflict at budget is settled: the merge took a")
    );
}

#[test]
fn a_conflict_is_resolved_by_a_transition_and_once() {
    let place = Place::new();
    two(&place);
    place.merge(&[("x", 2), ("y", 2)], &terms("m", &[], Strategy::Manual)).unwrap();
    assert_eq!(place.standings("m"), [ConflictStanding::Open, ConflictStanding::Open]);
    assert_eq!(place.resolve("m", "/budget", Take::Side("y".into())).unwrap(), 1);
    assert_eq!(place.resolve("m", "/map/mine", Take::Value(v("[7]"))).unwrap(), 2);
    let state = v(&place.state("m"));
    assert_eq!(
        (state.get("budget"), p("/map/mine").get(&state)),
        (Some(&Value::from(96.5)), Some(&v("[7]")))
    );
    let resolved = |tick, take: &str| ConflictStanding::Resolved(tick, take.into(), "measured".into());
    assert_eq!(place.standings("m"), [resolved(1, "b"), resolved(2, "value")]);
    place.with("m", |trace| {
        let record = trace.record(1).unwrap();
        assert_eq!(record.header().type_name.as_ref().unwrap().as_str(), "policy.decision");
        let source = merged(trace).unwrap().conflicts[0].values[1].0.record;
        assert!(record.header().links.iter().any(|link| link.hash == source), "it names what was taken");
    });
    let code = |path: &str, take: Take| place.resolve("m", path, take).unwrap_err().code();
    assert_eq!(code("/budget", Take::Side("a".into())), "E0446");
    assert_eq!(code("/both", Take::Side("a".into())), "E0445");
    // What an agent writes there in between is no resolution, and is not written over either.
    place.merge(&[("x", 2), ("y", 2)], &terms("w", &[], Strategy::Manual)).unwrap();
    let store = place.open();
    let mut recorder = Recorder::resume(&store, &run_name("w"), place.surroundings("w")).unwrap();
    let line = r#"{"type":"memory.write","delta":[{"set":"/budget","value":1},{"set":"/map","value":3}]}"#;
    recorder.propose(&Intent::from_value(&v(line), Some("a")).unwrap()).unwrap();
    recorder.commit().unwrap();
    drop(recorder);
    drop(store);
    assert_eq!(place.standings("w"), [ConflictStanding::Written(1), ConflictStanding::Open]);
    let error = place.resolve("w", "/map/mine", Take::Side("a".into())).unwrap_err();
    assert_eq!(error.code(), "E0404", "{error}");
    assert_eq!(place.with("w", |trace| trace.tip()), 1, "nothing of it was written");
    let error = place.resolve("w", "/map/mine", Take::Side("z".into())).unwrap_err();
    assert_eq!(error.code(), "E0445");
    // A fork of it has the same conflicts, and decides for itself.
    let (reader, writer) = (place.open(), place.open());
    let parent = Trace::open(&reader, &run_name("m")).unwrap();
    let forked =
        fork::fork(&parent, &writer, 1, &fork::ForkTerms::new(run_name("f")), place.surroundings("f"));
    forked.unwrap().0.commit().unwrap();
    assert_eq!(place.standings("f"), [resolved(1, "b"), ConflictStanding::Open]);
    assert_eq!(place.resolve("f", "/map/mine", Take::Side("a".into())).unwrap(), 3);
}

const RULES: &str = r#"
name: acme.counted
version: v1
state: {n: {init: "has(s0.n) ? s0.n : 0", decimals: 0}, m: {init: 7}}
rules:
  - {when_type: memory.write, steps: [{add: n, value: "1"}]}
"#;

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    let place = Place::new();
    two(&place);
    let begin = |run: &str, n: u64, text: &str| {
        let start = Start {
            state: v(&format!(r#"{{"n":{n}}}"#)),
            stage: Some(Stage::Contracts),
            ..Start::new(run_name(run))
        };
        place.record_under(&start, Some(text), &[r#"{"type":"memory.write"}"#]);
    };
    begin("one", 1, RULES);
    begin("two", 2, RULES);
    begin("newer", 1, &RULES.replace("v1", "v2"));
    let mut ruled = Start::new(run_name("ruled"));
    ruled.policy = vec![v(r#"{"id":"low","holds":"state.risk <= 5"}"#)];
    ruled.state = v(r#"{"budget":1,"risk":1}"#);
    place.record_under(&ruled, None, &[]);
    let size = place.open().tree().size;
    let code = |runs: &[(&str, u64)], artifacts: &[&str], strategy| {
        place.merge(runs, &terms("m", artifacts, strategy)).unwrap_err().code()
    };
    let manual = Strategy::Manual;
    assert_eq!(code(&[("x", 2)], &[], manual), "E0441");
    assert_eq!(code(&[("x", 3), ("y", 2)], &[], manual), "E0102");
    assert_eq!(code(&[("x", 2), ("y", 2)], &["/nothing"], manual), "E0104");
    assert_eq!(code(&[("x", 2), ("y", 2)], &["/map/same/0"], manual), "E0441");
    assert_eq!(code(&[("x", 2), ("y", 2)], &["/policy/violated"], manual), "E0441");
    assert_eq!(code(&[("x", 2), ("ruled", 0)], &["/budget"], manual), "E0442");
    assert_eq!(code(&[("one", 1), ("newer", 1)], &[], manual), "E0442");
    assert_eq!(code(&[("one", 1), ("two", 1)], &[], manual), "E0443", "nobody could resolve it");
    assert_eq!(place.open().tree().size, size);
    for run in ["x", "ruled"] {
        let error = place.with(run, |trace| merged(trace).unwrap_err());
        assert_eq!(error.code(), "E0444");
    }
    // Under the same pack it holds on, with its stage; what was not seeded begins as the pack says.
    place.merge(&[("one", 1), ("two", 1)], &terms("ok", &["/n"], Strategy::Lww)).unwrap();
    assert_eq!(place.state("ok"), r#"{"m":7,"n":3}"#);
    place.with("ok", |trace| assert_eq!(trace.head(0).unwrap().stage(), Stage::Contracts));
    // Values alone go anywhere.
    let alone = MergeTerms { seed_only: true, ..terms("alone", &[], manual) };
    place.merge(&[("one", 1), ("ruled", 0)], &alone).unwrap();
    assert_eq!(place.state("alone"), r#"{"budget":1,"m":7,"n":2,"risk":1}"#);
}

/// What several states come to, said in the slowest way: every leaf by its path, with the values of all states.
fn oracle(states: &[Value]) -> (Value, Vec<String>) {
    fn leaves(value: &Value, at: &str, found: &mut BTreeMap<String, Value>) {
        match value.as_object() {
            Some(members) if !members.is_empty() => {
                members.iter().for_each(|(name, value)| leaves(value, &format!("{at}/{name}"), found));
            }
            _ => drop(found.insert(at.to_owned(), value.clone())),
        }
    }
    fn merged(values: &[Value], at: &str, conflicts: &mut Vec<String>) -> Option<Value> {
        let mut seen: Vec<BTreeMap<String, Value>> = Vec::new();
        for value in values {
            let mut found = BTreeMap::new();
            leaves(value, "", &mut found);
            seen.push(found);
        }
        if seen.iter().all(|found| *found == seen[0]) {
            return Some(values[0].clone());
        }
        if !values.iter().all(|value| value.as_object().is_some()) {
            conflicts.push(at.to_owned());
            return None;
        }
        let mut names: Vec<String> = values
            .iter()
            .flat_map(|value| value.as_object().unwrap().iter())
            .map(|(name, _)| name.to_string())
            .collect();
        names.sort();
        names.dedup();
        let members = names.into_iter().filter_map(|name| {
            let inner: Vec<Value> = values.iter().filter_map(|value| value.get(&name).cloned()).collect();
            Some((name.clone(), merged(&inner, &format!("{at}/{name}"), conflicts)?))
        });
        Some(Value::record(members.collect::<Vec<_>>()))
    }
    let mut conflicts = Vec::new();
    let mut all: Vec<Value> = states.to_vec();
    // The whole is never in conflict: it is taken apart even where the states are the same.
    let whole = merged(&all, "", &mut conflicts).unwrap_or_else(|| all.remove(0));
    conflicts.sort();
    (whole, conflicts)
}

/// A state without the marks of open conflicts.
fn known(state: &str) -> String {
    let mut members = v(state).as_object().unwrap().clone();
    members.remove("kernel_unknown");
    Value::Object(members).to_string()
}

#[test]
fn random_states_come_out_as_the_slow_definition_says() {
    fn value(dice: &mut Dice, depth: u64) -> String {
        match dice.below(if depth == 0 { 3 } else { 5 }) {
            0 => dice.below(2).to_string(),
            1 => format!("[{}]", dice.below(2)),
            2 => r#""t""#.to_owned(),
            _ => object(dice, depth - 1),
        }
    }
    fn object(dice: &mut Dice, depth: u64) -> String {
        let mut members = Vec::new();
        for name in ["k", "l", "m"] {
            if dice.below(3) > 0 {
                members.push(format!(r#""{name}":{}"#, value(dice, depth)));
            }
        }
        format!("{{{}}}", members.join(","))
    }
    let (mut dice, place, mut met) = (Dice(168), Place::new(), 0);
    for case in 0..60 {
        let count = 2 + dice.below(2);
        let names: Vec<String> = (0..count).map(|at| format!("r{case}-{at}")).collect();
        let states: Vec<String> = (0..count).map(|_| object(&mut dice, 3)).collect();
        for (name, state) in names.iter().zip(&states) {
            place.record(name, state, &[]);
        }
        let runs: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 0)).collect();
        let name = format!("m{case}");
        let made = place.merge(&runs, &terms(&name, &[], Strategy::Manual)).unwrap();
        let (state, conflicts) = oracle(&states.iter().map(|state| v(state)).collect::<Vec<_>>());
        assert_eq!(known(&place.state(&name)), state.to_string(), "{states:?}");
        let mut found: Vec<&str> = made.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, conflicts, "{states:?}");
        met += found.len();
    }
    assert!(met > 20, "conflicts happen: {met}");
}

impl Place {
    fn fork(&self, parent: &str, tick: u64, name: &str, lines: &[&str]) {
        let (reader, store) = (self.open(), self.open());
        let parent = Trace::open(&reader, &run_name(parent)).unwrap();
        let terms = fork::ForkTerms::new(run_name(name));
        fork::fork(&parent, &store, tick, &terms, self.surroundings(name)).unwrap().0.commit().unwrap();
        let mut recorder = Recorder::resume(&store, &run_name(name), self.surroundings(name)).unwrap();
        for line in lines {
            let intent = Intent::from_value(&v(line), Some("a")).unwrap();
            assert!(matches!(recorder.propose(&intent).unwrap(), Outcome::Committed(_)), "{line}");
        }
        recorder.commit().unwrap();
    }

    fn tip(&self, run: &str) -> u64 {
        Trace::open(&self.open(), &run_name(run)).unwrap().tip()
    }

    fn merged(&self, runs: &[&str], name: &str, strategy: Strategy) -> Merged {
        let runs: Vec<(&str, u64)> = runs.iter().map(|run| (*run, self.tip(run))).collect();
        self.merge(&runs, &terms(name, &[], strategy)).unwrap()
    }
}

/// A value that came by another merge counts with the record that wrote it, so the order of merges changes nothing.
#[test]
fn a_value_that_was_carried_keeps_its_time_and_confidence() {
    let place = Place::new();
    place.record("base", r#"{"count":10,"more":0}"#, &[r#"{"type":"observation.add"}"#]);
    let set = |value: u64, sure: f64| {
        format!(
            r#"{{"type":"plan.update","intent":{{"confidence":{sure}}},"delta":[{{"set":"/count","value":{value}}}]}}"#
        )
    };
    place.fork("base", 1, "k1", &[&set(5, 0.9)]);
    place.fork("base", 1, "ku", &[r#"{"type":"plan.update","delta":[{"set":"/more","value":1}]}"#]);
    place.fork("base", 1, "k3", &[&set(7, 0.2)]);
    place.merged(&["k1", "ku"], "k1u", Strategy::Manual);
    place.merged(&["k1u", "ku"], "k1uu", Strategy::Manual);
    for (strategy, count) in [(Strategy::Lww, 7), (Strategy::Confidence, 5)] {
        for (number, sources) in
            [&["k1", "ku", "k3"][..], &["k1u", "k3"], &["k3", "k1uu"]].into_iter().enumerate()
        {
            let name = format!("{}-{number}", strategy.as_str());
            place.merged(sources, &name, strategy);
            assert_eq!(place.state(&name), format!(r#"{{"count":{count},"more":1}}"#), "{name}");
        }
    }
}

/// Two additions are two changes, also if the outcome is equal; two equal assignments are one value.
#[test]
fn equal_additions_of_two_runs_are_no_agreement() {
    let place = Place::new();
    place.record(
        "base",
        r#"{"balance":90,"m":{"k":0,"l":[]},"word":""}"#,
        &[r#"{"type":"observation.add"}"#],
    );
    let pay = r#"{"type":"plan.update","delta":[{"add":"/balance","value":-60},{"add":"/m/k","value":1},
        {"append":"/m/l","value":"x"},{"set":"/word","value":"paid"}]}"#;
    place.fork("base", 1, "one", &[pay]);
    place.fork("base", 1, "two", &[pay]);
    let made = place.merged(&["one", "two"], "both", Strategy::Manual);
    let found: Vec<&str> = made.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
    assert_eq!(found, ["/balance", "/m/k", "/m/l"]);
    assert_eq!(known(&place.state("both")), r#"{"m":{},"word":"paid"}"#);
    // A change that both have by one record is one change.
    place.fork("one", 2, "left", &[r#"{"type":"plan.update","delta":[{"add":"/m/k","value":0}]}"#]);
    let made = place.merged(&["one", "left"], "same", Strategy::Manual);
    assert_eq!(made.conflicts, []);
}

/// What two runs append to a list that is combined is there twice, also if it is equal; what they began with is there once.
#[test]
fn equal_entries_are_both_appended() {
    let pack =
        "name: p\nversion: v1\nreducer: delta/1\nstate:\n  log: {init: \"['opened']\", combine: append}\n";
    let place = Place::new();
    let begun = [r#"{"type":"observation.add"}"#];
    let start = |run: &str| Start::new(run_name(run));
    place.record_under(&start("base"), Some(pack), &begun);
    for change in [r#"{"append":"/log","value":"x"}"#, r#"{"set":"/log","value":["opened","x"]}"#] {
        let line = format!(r#"{{"type":"plan.update","delta":[{change}]}}"#);
        let name = |name: &str| format!("{name}-{}", change.len());
        place.fork("base", 1, &name("one"), &[&line]);
        place.fork("base", 1, &name("two"), &[&line]);
        place.merged(&[&name("one"), &name("two")], &name("both"), Strategy::Manual);
        assert_eq!(place.state(&name("both")), r#"{"log":["opened","x","x"]}"#);
    }
    let append = [r#"{"type":"plan.update","delta":[{"append":"/log","value":"x"}]}"#];
    place.record_under(&start("other"), Some(pack), &append);
    place.record_under(&start("third"), Some(pack), &append);
    place.merged(&["other", "third"], "strangers", Strategy::Manual);
    assert_eq!(place.state("strangers"), r#"{"log":["opened","x","x"]}"#);
}
