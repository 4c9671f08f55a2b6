//! Packs through a store: binding, recording, replay from the record alone, reducing again.

use std::path::Path;

use dendrer::recorder::{Fixed, Recorder};
use dendrer::verify::{self, VerifyVerdict};
use dendrer::{Error, Trace, pack};
use dendrer_kernel::sealed::words;
use dendrer_kernel::step::{Outcome, Start};
use dendrer_object::json::parse_door;
use dendrer_object::note::SigningKey;
use dendrer_object::{Intent, RunName, StoreId, Value};
use dendrer_store::{Memory, Shared, StoreInfo};

fn json(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn store() -> Shared {
    let id = StoreId([7; 16]);
    let key = SigningKey::from_seed(&id.origin(), [1; 32]).expect("a key");
    Shared::new(Box::new(Memory::new(StoreInfo::new(id, key.verifier_key().clone()))))
}

fn run(name: &str) -> RunName {
    name.parse().expect("a name")
}

fn root(file: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn source(text: &[u8]) -> pack::Source {
    pack::read(text).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

const SMALL: &str = "
name: small
version: v1
goal: count
state:
  count: {init: \"has(s0.count) ? s0.count : 0\"}
  who: {init: \"has(meta.who) ? meta.who : 'nobody'\"}
types: {desk.note: a note}
rules:
  - when_type: desk.note
    steps:
      - {add: count, value: t.intent.n}
predicates:
  small_count: {holds: state.count < 10}
";

fn note(n: &str) -> Intent {
    let text = format!("{{\"type\":\"desk.note\",\"intent\":{{\"n\":{n}}}}}");
    Intent::from_value(&json(&text), None).expect("an intent")
}

#[test]
fn a_run_carries_its_pack_and_replays_without_the_file() -> Result<(), Error> {
    let store = store();
    let small = source(SMALL.as_bytes());
    let start = Start {
        state: json(r#"{"count":3}"#),
        meta: Some(json(r#"{"who":"ann"}"#)),
        ..Start::new(run("counted"))
    };
    let mut recorder = small
        .bind(start)
        .and_then(|start| dendrer::Recorder::begin(&store, &start, Box::new(Fixed::new("packs", 1, 1))))?;
    assert_eq!(recorder.head().state().to_string(), r#"{"count":3,"who":"ann"}"#);
    recorder.propose(&note("4"))?;
    recorder.commit()?;
    drop(recorder);
    // Taken up again, the run finds its reducer in its own record.
    let mut recorder = Recorder::resume(&store, &run("counted"), Box::new(Fixed::new("again", 9, 1)))?;
    recorder.propose(&note("5"))?;
    recorder.propose(&note("\"x\""))?;
    let refused =
        recorder.propose(&Intent::from_value(&json(r#"{"type":"desk.nota"}"#), None).expect("an intent"))?;
    assert!(matches!(refused, Outcome::Refused(_)), "the type is not registered");
    recorder.commit()?;
    drop(recorder);

    let trace = Trace::open(&store, &run("counted"))?;
    let digest = Some(small.pack.digest());
    assert_eq!(trace.start().header().pack, digest);
    assert_eq!(trace.record(2)?.header().pack, digest, "each header names the pack in force");
    assert_eq!(trace.record(1)?.body().value("/delta"), Some(json(r#"[{"add":"/count","value":4}]"#)));
    assert_eq!(
        trace.at(3)?.state.to_string(),
        r#"{"count":12,"kernel_unknown":{"/count":{"code":"rule_failed","tick":3}},"who":"ann"}"#
    );
    let noted = trace.record(3)?.body().value("/anomalies").expect("an anomaly");
    let note = noted.as_array().and_then(|notes| notes.get(0)).expect("a note");
    assert_eq!(words(note).as_deref(), Some("rule 1, step 1: count is of a kind that is not taken here"));
    let content = trace.start().content();
    assert_eq!(content.get("goal").and_then(Value::as_str), Some("count"));
    let s0 =
        content.get("inputs").and_then(|inputs| inputs.get("s0")).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(s0, Some(json(r#"{"count":3}"#).digest().to_string()));

    let found = dendrer::run::pack::of_run(&trace)?.expect("a pack");
    assert_eq!(found.digest(), small.pack.digest());
    assert!(found.predicate("small_count").is_some());
    assert_eq!(dendrer::run::pack::text_of_run(&trace), Some((SMALL.into(), true)));
    assert_eq!(dendrer::run::pack::reducer_of(&trace)?.name(), "fold/1");
    let report =
        verify::store(&store, &verify::VerifyTerms { replay: true, ..verify::VerifyTerms::default() })?;
    assert_eq!((report.verdict, &report.runs[0].replay), (VerifyVerdict::Intact, &Some(Ok(3))));
    Ok(())
}

#[test]
fn an_intent_cannot_bring_a_delta_past_the_rules() -> Result<(), Error> {
    let store = store();
    let small = source(SMALL.as_bytes());
    let mut recorder = small
        .bind(Start::new(run("pushed")))
        .and_then(|start| dendrer::Recorder::begin(&store, &start, Box::new(Fixed::new("packs", 1, 1))))?;
    let intent = json(r#"{"type":"desk.note","intent":{"n":1},"delta":[{"set":"/count","value":99}]}"#);
    recorder.propose(&Intent::from_value(&intent, None).expect("an intent"))?;
    recorder.propose(&note("1"))?;
    recorder.commit()?;
    drop(recorder);
    let trace = Trace::open(&store, &run("pushed"))?;
    assert_eq!(trace.at(1)?.state.get("count"), Some(&Value::from(0u64)));
    let noted = trace.record(1)?.body().value("/anomalies").expect("an anomaly");
    let note = noted.as_array().and_then(|notes| notes.get(0)).expect("a note");
    assert!(words(note).is_some_and(|words| words.contains("cannot bring a delta of its own")), "{note}");
    assert!(note.to_string().contains("99"), "kept, with the proposal: {note}");
    let report =
        verify::store(&store, &verify::VerifyTerms { replay: true, ..verify::VerifyTerms::default() })?;
    assert_eq!(report.runs[0].replay, Some(Ok(2)), "replay sees what was proposed and what was made");
    Ok(())
}

#[test]
fn a_run_is_reduced_again_under_another_pack_at_the_same_ticks() -> Result<(), Error> {
    let store = store();
    let small = source(SMALL.as_bytes());
    let mut recorder = small
        .bind(Start::new(run("first")))
        .and_then(|start| dendrer::Recorder::begin(&store, &start, Box::new(Fixed::new("packs", 1, 1))))?;
    let mut cause = None;
    for n in 0..600u64 {
        let mut intent = note(&n.to_string());
        intent.links = cause
            .map(|hash| dendrer_object::record::Link { rel: dendrer_object::record::Rel::CausedBy, hash })
            .into_iter()
            .collect();
        let Outcome::Committed(record) = recorder.propose(&intent)? else { panic!("committed") };
        cause = Some(record.id());
        if n % 100 == 50 {
            recorder.note_anomaly(&dendrer_kernel::step::Anomaly::told("tool_failure", "seen"))?;
        }
    }
    recorder.commit()?;
    drop(recorder);

    let other = SMALL
        .replace("add: count, value: t.intent.n", "add: count, value: t.intent.n * 2, if: t.intent.n != 7");
    let other = source(other.as_bytes());
    let target = self::store();
    let reduced = {
        let trace = Trace::open(&store, &run("first"))?;
        dendrer::reduce::reduce(
            &trace,
            &target,
            &other,
            run("second"),
            Some(json(r#"{"count":1}"#)),
            None,
            Box::new(Fixed::new("r", 5, 1)),
        )?
    };
    assert_eq!((reduced.ticks, &reduced.errors), (606, &Vec::new()));
    let (first, second) = (Trace::open(&store, &run("first"))?, Trace::open(&target, &run("second"))?);
    assert_eq!(second.tip(), 606);
    let expected: u64 = 1 + (0..600).filter(|n| *n != 7).map(|n| n * 2).sum::<u64>();
    assert_eq!(second.at(606)?.state.get("count"), Some(&Value::from(expected)));
    assert_eq!(second.at(606)?.state.get("kernel_anomalies"), first.at(606)?.state.get("kernel_anomalies"));
    for tick in [1, 2, 52, 53, 400, 606] {
        let (a, b) = (first.record(tick)?, second.record(tick)?);
        assert_eq!(a.header().type_name, b.header().type_name, "{tick}");
        assert_eq!(a.body().value("/intent/n"), b.body().value("/intent/n"), "{tick}");
        // A cause in the source is the cause at the same tick here.
        let relation = |record: &dendrer_object::Record, trace: &Trace| -> Vec<u64> {
            let links = record.header().links.iter();
            links
                .filter_map(|link| {
                    (1..=606).find(|tick| trace.record(*tick).is_ok_and(|r| r.id() == link.hash))
                })
                .collect()
        };
        assert_eq!(relation(&a, &first), relation(&b, &second), "{tick}");
    }
    let from = second.start().content().get("inputs").and_then(|inputs| inputs.get("reduced_from")).cloned();
    assert_eq!(from.as_ref().and_then(|from| from.get("run")).and_then(Value::as_str), Some("first"));
    let report =
        verify::store(&target, &verify::VerifyTerms { replay: true, ..verify::VerifyTerms::default() })?;
    assert_eq!((report.verdict, &report.runs[0].replay), (VerifyVerdict::Intact, &Some(Ok(606))));
    Ok(())
}

#[test]
fn what_cannot_be_reduced_is_said_before_anything_is_written() -> Result<(), Error> {
    let store = store();
    let small = source(SMALL.as_bytes());
    let mut recorder = small
        .bind(Start::new(run("first")))
        .and_then(|start| dendrer::Recorder::begin(&store, &start, Box::new(Fixed::new("packs", 1, 1))))?;
    recorder.propose(&note("1"))?;
    recorder.commit()?;
    drop(recorder);
    let without = source(
        SMALL
            .replace("types: {desk.note: a note}", "")
            .replace("    when_type: desk.note\n", "")
            .replace("  - when_type: desk.note\n    steps", "  - steps")
            .as_bytes(),
    );
    let target = self::store();
    let trace = Trace::open(&store, &run("first"))?;
    let error = dendrer::reduce::reduce(
        &trace,
        &target,
        &without,
        run("second"),
        None,
        None,
        Box::new(Fixed::new("r", 5, 1)),
    )
    .expect_err("the type is not known there");
    assert_eq!(error.code(), "E0402");
    assert!(error.to_string().contains("tick 1 of first"), "{error}");
    assert!(Trace::open(&target, &run("second")).is_err(), "nothing was begun");
    Ok(())
}

#[test]
fn the_packs_that_are_published_check_and_pass_their_tests() {
    let desk = source(&root("examples/packs/order-desk.yaml"));
    let tested = desk.test();
    assert!(tested.len() >= 3);
    for test in tested {
        assert_eq!(test.failed, [], "{}", test.name);
    }
}

/// Every pack in the manual is one, and its tests pass; so the manual cannot rot.
#[test]
fn the_packs_of_the_manual_are_packs() {
    let manual = String::from_utf8(root("docs/packs.md")).expect("text");
    let mut packs = 0;
    for block in manual.split("```yaml\n").skip(1) {
        let text = block.split("```").next().unwrap_or_default();
        if text.starts_with("name:") {
            packs += 1;
            let pack = source(text.as_bytes());
            // One that is converted is shown as it is written.
            let is_made = text.contains("words: lending_desk_v2");
            assert!(is_made || !pack.pack.cases.is_empty(), "a pack in the manual has tests");
            for test in pack.test() {
                assert_eq!(test.failed, [], "{}", test.name);
            }
        }
    }
    assert!(packs >= 1, "the manual has a pack");
}

#[test]
fn problems_come_with_line_and_column_in_the_order_of_the_text() {
    let text = "name: x\nverison: v1\nstate:\n  a: {init: 0}\nrules:\n  - steps:\n      - set: a\n        value: sum(t.xs) + nope\n      - set: b.c\n        value: |\n          1 +\n          state.zz\n";
    let problems = pack::read(text.as_bytes()).expect_err("it is full of faults");
    let found: Vec<String> = problems
        .iter()
        .map(|p| format!("{}:{} {} {}", p.mark.line, p.mark.column, p.code, p.message))
        .collect();
    assert_eq!(
        found,
        [
            "1:1 E0902 a pack has a version",
            "2:1 E0902 a pack has no member verison",
            "8:21 E0505 t has no `xs`",
            "8:28 E0505 there is no `nope` here",
            "9:14 E0903 the pack declares no field b",
            "12:16 E0505 no field `zz` is declared in state",
        ]
    );
    let json = pack::read(br#"{"name": "x", "version": "v1", "rules": [{"when": "trve", "steps": []}]}"#);
    let problems = json.expect_err("a slip");
    assert_eq!(
        (problems[0].mark.line, problems[0].mark.column, problems[0].hint.as_deref()),
        (1, 52, Some("the names here are state, before, t"))
    );
}
