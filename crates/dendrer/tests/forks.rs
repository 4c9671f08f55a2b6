//! Forks: what they share, what they begin with, what of the parent goes on, and that replay goes through them.

use std::sync::Arc;

use dendrer::change::reapply::{ReapplyStopped, ReplacedAnswer};
use dendrer::fork::{self, Carried, Changed, ForkTerms, Forked, What};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::store::Shared;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::verify::{self, VerifyVerdict};
use dendrer::{Error, Trace, pack};
use dendrer_kernel::step::Start;
use dendrer_object::json::parse_door;
use dendrer_object::{Intent, Value};
use dendrer_testkit::{info, key, run_name};
use tempfile::TempDir;

fn v(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn intent(text: &str) -> Intent {
    Intent::from_value(&v(text), Some("a")).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn surroundings(name: &str) -> Box<Fixed> {
    Box::new(Fixed::new(name, 1_790_000_000_000, 1_000))
}

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = TempDir::new().expect("a directory");
        drop(Embedded::create(&dir.path().join("s"), info(1), Options::untagged()).expect("a store"));
        Place { dir }
    }

    fn open(&self) -> Shared {
        let store = Embedded::open(&self.dir.path().join("s"), Options::untagged()).expect("opened");
        Shared::new(Box::new(store.with_key(Some(Arc::new(key(1))))))
    }

    fn record(&self, start: &Start, lines: &[&str]) {
        let store = self.open();
        let mut recorder = Recorder::begin(&store, start, surroundings("parent")).expect("begun");
        for line in lines {
            recorder.propose(&intent(line)).expect("judged");
        }
        recorder.commit().expect("committed");
    }

    fn fork(&self, parent: &str, tick: u64, terms: &ForkTerms) -> Result<(Forked, Carried), Error> {
        let (reader, writer) = (self.open(), self.open());
        let trace = Trace::open(&reader, &run_name(parent))?;
        let (mut recorder, forked) = fork::fork(&trace, &writer, tick, terms, surroundings("fork"))?;
        let carried = fork::carry_on(&mut recorder, &trace, &forked, terms, true)?;
        recorder.commit()?;
        Ok((forked, carried))
    }

    /// Verifies the whole store with replay, and hands over a trace.
    fn with<T>(&self, run: &str, f: impl FnOnce(&Trace) -> T) -> T {
        let store = self.open();
        let run = run_name(run);
        let trace = Trace::open(&store, &run).expect("a run");
        assert_eq!(verify::replay(&store, &run).expect("read"), Ok(trace.tip()));
        f(&trace)
    }
}

const RISK: &str = r#"{"id":"low","holds":"state.risk <= state.limit"}"#;

fn risky() -> Start {
    let mut start = Start::new(run_name("p"));
    start.state = v(r#"{"risk":1,"limit":5,"seen":[]}"#);
    start.policy = vec![v(RISK)];
    start
}

const LINES: [&str; 6] = [
    r#"{"type":"observation.add","intent":{"says":"calm"},"delta":[{"set":"/risk","value":2}]}"#,
    r#"{"type":"plan.update","intent":{"description":"go"},"delta":[{"set":"/plan","value":"go"}]}"#,
    r#"{"type":"action.result","author":"runtime","result":{"output":"storm","status":"ok"},"delta":[{"set":"/risk","value":9}]}"#,
    r#"{"type":"memory.write","delta":[{"append":"/seen","value":"storm"}]}"#,
    r#"{"type":"policy.decision","author":"runtime","policy":{"decision":"deny"}}"#,
    r#"{"type":"plan.update","intent":{"description":"stay"},"delta":[{"set":"/plan","value":"stay"}]}"#,
];

#[test]
fn a_fork_shares_what_came_before_and_owns_its_marker() {
    let place = Place::new();
    place.record(&risky(), &LINES);
    let mut terms = ForkTerms::new(run_name("c"));
    terms.reason = Some("try again".into());
    terms.guidance.insert("policy", "be careful".into());
    terms.set.push(("/limit".parse().unwrap(), Value::from(4.0)));
    let (reader, writer) = (place.open(), place.open());
    let parent = Trace::open(&reader, &run_name("p")).unwrap();
    let (mut recorder, forked) = fork::fork(&parent, &writer, 2, &terms, surroundings("f")).unwrap();
    assert_eq!((forked.tick, forked.replayed_from), (2, 0));
    assert_eq!(
        forked.changed,
        [Changed {
            what: What::State("/limit".parse().unwrap()),
            before: Some(Value::from(5.0)),
            after: Value::from(4.0)
        }]
    );
    recorder.commit().unwrap();
    recorder.propose(&intent(LINES[2])).unwrap();
    recorder.commit().unwrap();
    drop(recorder);
    drop(writer);
    place.with("c", |child| {
        assert_eq!((child.tip(), child.lineage().len()), (4, 2));
        for tick in 0..=2 {
            assert_eq!(child.record(tick).unwrap().id(), parent.record(tick).unwrap().id(), "tick {tick}");
        }
        let marker = child.record(3).unwrap();
        assert_eq!(marker.header().type_name.as_ref().unwrap().as_str(), "run.fork");
        assert_eq!(
            marker.body().value("/fork").unwrap().to_string(),
            r#"{"fork_reason":"try again","guidance":{"policy":"be careful"},"parent_run_id":"p","parent_tick":2}"#
        );
        assert_eq!(marker.header().links.len(), 1, "to where it branched off");
        assert_eq!(child.at(2).unwrap().state, parent.at(2).unwrap().state);
        assert_eq!(child.at(3).unwrap().state.get("limit"), Some(&Value::from(4.0)));
        // The rules of the parent hold on: a risk of 9 breaks them here, too.
        let violated = child.at(4).unwrap().state;
        assert_eq!(violated.get("policy").unwrap().to_string(), r#"{"violated":{"rule":"low","tick":4}}"#);
        let origin = fork::origin(child).unwrap().unwrap();
        assert_eq!((origin.run.as_str(), origin.tick, origin.reason.as_deref()), ("p", 2, Some("try again")));
    });
    assert_eq!(place.with("p", |parent| parent.tip()), 6, "the parent is as it was");
    // Whoever goes on with it later goes on under its terms, and a fork of a fork is a fork.
    let store = place.open();
    let mut recorder = Recorder::resume(&store, &run_name("c"), surroundings("later")).unwrap();
    recorder.propose(&intent(LINES[1])).unwrap();
    recorder.commit().unwrap();
    drop(recorder);
    drop(store);
    place.fork("c", 5, &ForkTerms::new(run_name("g"))).unwrap();
    place.fork("c", 1, &ForkTerms::new(run_name("h"))).unwrap();
    place.with("g", |grandchild| assert_eq!((grandchild.tip(), grandchild.lineage().len()), (6, 3)));
    place.with("h", |other| assert_eq!(fork::origin(other).unwrap().unwrap().tick, 1));
    let store = place.open();
    let report =
        verify::store(&store, &verify::VerifyTerms { replay: true, ..verify::VerifyTerms::default() })
            .unwrap();
    assert_eq!(report.verdict, VerifyVerdict::Intact);
}

#[test]
fn the_parent_is_carried_on_until_a_decision_rests_on_something_else() {
    let place = Place::new();
    place.record(&risky(), &LINES);
    // Nothing is different: all of it goes on, and what nothing is said of is named.
    let (_, carried) = place.fork("p", 1, &ForkTerms::new(run_name("same"))).unwrap();
    assert_eq!(carried.ticks, [(2, 3), (3, 4), (4, 5), (5, 6), (6, 7)]);
    assert_eq!((carried.silent, carried.stopped), (vec![2, 4, 6], None));
    let same = place.with("same", |trace| trace.at(7).unwrap().state);
    assert_eq!(same.get("seen"), place.with("p", |trace| trace.at(6).unwrap().state).get("seen"));

    // Another answer: the policy decided on what it had said.
    let mut terms = ForkTerms::new(run_name("calm"));
    let delta = intent(r#"{"type":"plan.update","delta":[{"set":"/risk","value":3}]}"#).delta;
    terms.replace.insert(3, ReplacedAnswer { output: Value::from("calm"), delta });
    let (_, carried) = place.fork("p", 2, &terms).unwrap();
    assert_eq!(carried.ticks, [(3, 4), (4, 5)]);
    let why =
        ReapplyStopped::DecidedOn("/risk".parse().unwrap(), Some(Value::from(9.0)), Some(Value::from(3.0)));
    assert_eq!(carried.stopped, Some((5, why)));
    place.with("calm", |trace| {
        let moment = trace.at(5).unwrap();
        assert_eq!(moment.state.get("risk"), Some(&Value::from(3.0)));
        assert_eq!(moment.state.get("policy"), None);
        let answered = trace.record(4).unwrap().content();
        assert_eq!(answered.get("result").unwrap().to_string(), r#"{"output":"calm","status":"ok"}"#);
    });

    // A value that a rule reads is enforced, and decisions on it do not go on.
    let mut terms = ForkTerms::new(run_name("strict"));
    terms.enforce.push(("limit".to_owned(), Value::from(20.0)));
    let (forked, carried) = place.fork("p", 2, &terms).unwrap();
    let what = What::Policy("/limit".parse().unwrap(), "low".into());
    assert_eq!(forked.changed[0].what, what);
    assert!(matches!(carried.stopped, Some((5, ReapplyStopped::DecidedOn(..)))), "{carried:?}");
    place.with("strict", |trace| assert_eq!(trace.at(5).unwrap().state.get("policy"), None));
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    let place = Place::new();
    place.record(&risky(), &LINES);
    let size = place.open().tree().size;
    let with = |change: &dyn Fn(&mut ForkTerms)| {
        let mut terms = ForkTerms::new(run_name("c"));
        change(&mut terms);
        terms
    };
    let answer = || ReplacedAnswer { output: Value::Null, delta: None };
    let cases: Vec<(u64, ForkTerms, &str, &str)> = vec![
        (7, with(&|_| ()), "E0102", "p has ticks 1..6, there is no tick 7"),
        (
            2,
            with(&|t| t.enforce.push(("risc".into(), Value::Null))),
            "E0116",
            "what its rules read is limit, risk",
        ),
        (
            2,
            with(&|t| t.set.push(("/policy/violated".parse().unwrap(), Value::Null))),
            "E0405",
            "written by the kernel",
        ),
        (2, with(&|t| t.set.push(("/counters".parse().unwrap(), Value::Null))), "E0405", "counters"),
        (2, with(&|t| t.set.push(("/risk/deep".parse().unwrap(), Value::Null))), "E0404", "risk"),
        (3, with(&|t| drop(t.replace.insert(3, answer()))), "E0117", "before the fork"),
        (2, with(&|t| drop(t.replace.insert(4, answer()))), "E0117", "no tool answered"),
        (2, with(&|t| drop(t.replace.insert(3, answer()))), "E0117", "\"output\" and \"delta\""),
        (2, with(&|t| drop(t.replace.insert(9, answer()))), "E0102", "no tick 9"),
    ];
    for (tick, terms, code, words) in cases {
        let error = place.fork("p", tick, &terms).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!(place.open().tree().size, size);
}

#[test]
fn a_pack_goes_on_in_a_fork_and_may_be_another_there() -> Result<(), Error> {
    const PACK: &str = "
name: risk
version: v1
constants: {factor: 2}
state:
  risk: {init: 1}
types: {desk.note: a note}
rules:
  - when_type: desk.note
    steps:
      - {set: risk, value: t.intent.n * factor}
";
    let place = Place::new();
    let source = pack::read(PACK.as_bytes()).expect("a pack");
    let start = source.bind(Start::new(run_name("p")))?;
    let note = |n: u64| format!(r#"{{"type":"desk.note","intent":{{"n":{n}}}}}"#);
    let lines: Vec<String> = (1..=4).map(note).collect();
    place.record(&start, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    place.fork("p", 2, &ForkTerms::new(run_name("same")))?;
    let risk = |run: &str, tick: u64| place.with(run, |t| t.at(tick).unwrap().state.get("risk").cloned());
    assert_eq!(risk("same", 5), risk("p", 4));
    let mut terms = ForkTerms::new(run_name("other"));
    terms.enforce.push(("factor".to_owned(), Value::from(10.0)));
    let (forked, _) = place.fork("p", 2, &terms)?;
    assert_eq!(forked.changed[0].what, What::Constant("factor".to_owned()));
    assert_eq!((risk("other", 2), risk("other", 5)), (Some(Value::from(4.0)), Some(Value::from(40.0))));
    place.with("other", |trace| {
        assert_ne!(trace.begins()[0].header().pack, trace.begins()[1].header().pack);
        assert!(dendrer::run::pack::text_of_run(trace).is_some_and(|(_, agrees)| agrees));
        assert_eq!(trace.record(4).unwrap().header().pack, trace.begins()[1].header().pack);
    });
    Ok(())
}

/// A forged beginning says something else than the kernel would: replay names it.
#[test]
fn a_fork_that_lies_about_its_parent_does_not_replay() {
    let place = Place::new();
    place.record(&risky(), &LINES);
    place.fork("p", 2, &ForkTerms::new(run_name("c"))).unwrap();
    let store = place.open();
    let records = dendrer_testkit::records_of(&store);
    let forged: Vec<_> = records
        .iter()
        .scan(None, |renamed, record| {
            let mut header = record.header().clone();
            let is_child = header.run == Some(run_name("c"));
            if let Some((old, new)) = *renamed
                && header.prev == Some(old)
            {
                header.prev = Some(new);
            }
            let body = match is_child && header.tick.is_none() {
                true => {
                    let mut content = record.content().as_object().unwrap().clone();
                    let lie = r#"{"run":"q","store":"00","tick":2}"#;
                    content.set("parent", v(lie));
                    let seed = record.body().seed().unwrap();
                    dendrer_object::record::Body::commit(dendrer_object::record::cut(&content), seed).unwrap()
                }
                false => record.body().clone(),
            };
            let forged = dendrer_object::record::Record::seal(header, body).unwrap();
            *renamed = Some((record.id(), forged.id()));
            Some(forged)
        })
        .collect();
    let forged = dendrer_testkit::store_of(info(1), forged);
    let replayed = verify::replay(&forged, &run_name("c")).unwrap();
    let error = replayed.unwrap_err();
    assert_eq!(error.code(), "E0701", "{error}");
    assert!(error.to_string().contains("parent"), "{error}");
    assert_eq!(verify::replay(&forged, &run_name("p")).unwrap(), Ok(6));
}

#[test]
fn forks_of_a_long_run_are_read_from_snapshots_of_the_parent() {
    let place = Place::new();
    let lines: Vec<String> = (0..600)
        .map(|n| format!(r#"{{"type":"memory.write","delta":[{{"set":"/k","value":"{n:0>200}"}}]}}"#))
        .collect();
    place.record(&Start::new(run_name("p")), &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let (forked, _) = place.fork("p", 599, &ForkTerms::new(run_name("c"))).unwrap();
    assert_eq!(forked.replayed_from, 0, "without an index nothing is kept");
    Embedded::open(&place.dir.path().join("s"), Options::untagged()).unwrap().update_index().unwrap();
    let store = place.open();
    let mut recorder = Recorder::resume(&store, &run_name("p"), surroundings("more")).unwrap();
    for line in &lines {
        recorder.propose(&intent(line)).unwrap();
    }
    recorder.commit().unwrap();
    drop(recorder);
    drop(store);
    let (forked, _) = place.fork("p", 1_150, &ForkTerms::new(run_name("d"))).unwrap();
    assert!((1_000..1_150).contains(&forked.replayed_from), "{}", forked.replayed_from);
    place.with("d", |child| {
        assert_eq!(child.at(1_151).unwrap().state, child.at(1_150).unwrap().state);
        assert_eq!(child.tip(), 1_201);
    });
}
