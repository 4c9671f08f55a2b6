use dendrer_object::record::{Author, Body, Header, Kind, Record, Seed, cut};
use dendrer_object::{StoreId, Timestamp, json};
use proptest::prelude::*;

use super::course::ProgressCourse;
use super::*;
use crate::Pack;

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).expect("JSON")
}

fn pack(text: &str) -> Pack {
    Pack::read(&value(text)).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

const PLAN: &str = r#"{"name":"p","version":"v1","reducer":"delta/1",
    "state":{"a":{"init":"true"},"b":{"init":"true"}},
    "types":{"artifact.write":"w","skeptic.challenge":"c"},
    "progress":{
        "goals":{"one":null,"two":"t.intent.part == 2","three":null},
        "constraints":{"a":{"holds":"state.a","weight":3},"b":{"holds":"state.b"}},
        "challenges":{"type":"skeptic.challenge","survived":"t.intent.stood","last":3},
        "weights":{"structural_completion":0.5,"constraint_satisfaction":0.3,"skeptic_survival_rate":0.2}}}"#;

/// The event of a tick.
#[derive(Debug, Clone)]
enum Event {
    /// A part is written for a goal.
    Write(&'static str, u64),
    Complete(&'static str),
    Challenge(bool),
    Other,
}

#[derive(Debug, Clone)]
struct Tick {
    event: Event,
    a: bool,
    b: bool,
}

fn record(event: &Event) -> Record {
    let (name, goal, intent) = match event {
        Event::Write(goal, part) => ("artifact.write", *goal, format!(r#"{{"part":{part}}}"#)),
        Event::Complete(goal) => ("goal.complete", *goal, r#"{"part":0}"#.to_owned()),
        Event::Challenge(stood) => ("skeptic.challenge", "one", format!(r#"{{"stood":{stood}}}"#)),
        Event::Other => ("memory.write", "one", r#"{"part":2}"#.to_owned()),
    };
    let content = value(&format!(r#"{{"agent_id":"a","goal_id":"{goal}","intent":{intent}}}"#));
    let header = Header {
        store: StoreId([1; 16]),
        kind: Kind::Transition,
        run: Some("r".parse().expect("a name")),
        tick: Some(1),
        prev: Some(dendrer_object::Digest([0; 32])),
        head: None,
        type_name: Some(name.parse().expect("a type")),
        author: Author::Agent,
        ts: Timestamp::from_ms(0),
        links: Vec::new(),
        pack: None,
    };
    let body = Body::commit(cut(content.as_object().expect("an object")), Seed([2; 16])).expect("a body");
    Record::seal(header, body).expect("a record")
}

fn state(tick: &Tick) -> Value {
    value(&format!(r#"{{"a":{},"b":{}}}"#, tick.a, tick.b))
}

fn ticks() -> impl Strategy<Value = Vec<Tick>> {
    let goal = || prop_oneof![Just("one"), Just("two"), Just("three"), Just("none")];
    let event = prop_oneof![
        (goal(), 0..3u64).prop_map(|(goal, part)| Event::Write(goal, part)),
        goal().prop_map(Event::Complete),
        any::<bool>().prop_map(Event::Challenge),
        Just(Event::Other),
    ];
    let tick = (event, any::<bool>(), any::<bool>()).prop_map(|(event, a, b)| Tick { event, a, b });
    prop::collection::vec(tick, 1..12)
}

/// The three signals in thousandths, counted anew from the beginning and in whole numbers.
fn naive(ticks: &[Tick]) -> [u64; 3] {
    let reached = |goal: &str| {
        ticks.iter().any(|tick| match (&tick.event, goal) {
            (Event::Write(_, part), "two") => *part == 2,
            (Event::Write(served, _) | Event::Complete(served), "one" | "three") => *served == goal,
            _ => false,
        })
    };
    let goals = ["one", "two", "three"].iter().filter(|goal| reached(goal)).count() as u64;
    let last = ticks.last().expect("a tick");
    let challenges: Vec<bool> = ticks
        .iter()
        .filter_map(|tick| if let Event::Challenge(stood) = tick.event { Some(stood) } else { None })
        .collect();
    let recent = &challenges[challenges.len().saturating_sub(3)..];
    let stood = recent.iter().filter(|stood| **stood).count() as u64;
    // None of these is half way between two thousandths.
    let share = |part: u64, all: u64| (2000 * part + all) / (2 * all);
    [
        share(goals, 3),
        share(u64::from(last.a) * 3 + u64::from(last.b), 4),
        if recent.is_empty() { 1000 } else { share(stood, recent.len() as u64) },
    ]
}

proptest! {
    #[test]
    fn signals_are_what_counting_from_the_beginning_gives(ticks in ticks()) {
        let pack = pack(PLAN);
        let mut course = ProgressCourse::new(pack.progress.as_ref().expect("a plan"));
        for at in 0..ticks.len() {
            let looked = at == 0 || (ticks[at].a, ticks[at].b) != (ticks[at - 1].a, ticks[at - 1].b);
            course.pass(Some(&record(&ticks[at].event)), &state(&ticks[at]), None, looked);
            let [structural, satisfied, survived] = naive(&ticks[..=at]).map(|n| n as f64 / 1000.0);
            prop_assert_eq!(course.structural_completion(), Ok(structural));
            prop_assert_eq!(course.reading(Signal::ConstraintSatisfaction), Ok(satisfied));
            prop_assert_eq!(course.reading(Signal::SkepticSurvivalRate), Ok(survived));
            // The formula of the paper, 9.5, up to one unit of the last decimal that is kept.
            let composite = (0.5 * structural + 0.3 * satisfied - 0.2 * (1.0 - survived)).clamp(0.0, 1.0);
            let found = course.reading(Signal::Progress).expect("a score");
            prop_assert!((found - composite).abs() <= 0.000_501, "{} and {}", found, composite);
        }
    }
}

#[test]
fn what_cannot_be_known_is_no_score() {
    let pack = pack(PLAN);
    let mut course = ProgressCourse::new(pack.progress.as_ref().expect("a plan"));
    course.pass(None, &value(r#"{"a":7,"b":true}"#), None, true);
    assert!(course.reading(Signal::ConstraintSatisfaction).is_err());
    assert!(course.reading(Signal::Progress).is_err(), "a part that weighs something is not known");
    assert_eq!(course.reading(Signal::SkepticSurvivalRate), Ok(1.0), "nothing was challenged");
    course.pass(None, &value(r#"{"a":true,"b":true}"#), None, true);
    assert_eq!(course.reading(Signal::Progress), Ok(0.3));
}

const CONTRACT: &str = r#"{"name":"p","version":"v1","reducer":"delta/1",
    "state":{"risk":{"init":0},"limit":{"init":0.5},"open":{"init":"false"}},
    "progress_contracts":[{"id":"ws.risk_threshold","version":"v2.1","score":"1.0 - state.risk",
        "violation":"state.risk > state.limit","reason":"{'risk_exceeded': [state.risk, state.limit]}",
        "uncertain":"state.open"}]}"#;

#[test]
fn a_contract_says_ok_violation_or_uncertain_with_a_score() {
    let pack = pack(CONTRACT);
    let contract = pack.predicate("p/ws.risk_threshold").expect("by its full name");
    assert_eq!((contract.name(), contract.version()), ("ws.risk_threshold", "v2.1"));
    let says = |risk: &str, open: bool| {
        contract.evaluate(&value(&format!(r#"{{"risk":{risk},"limit":0.5,"open":{open}}}"#)), None)
    };
    assert_eq!(says("0.1234567", false), Evaluation::Ok(0.877));
    assert_eq!(says("0.5", false), Evaluation::Ok(0.5));
    assert_eq!(says("0.75", false), Evaluation::Violation(value(r#"{"risk_exceeded":[0.75,0.5]}"#)));
    assert_eq!(says("0.75", true), Evaluation::Violation(value(r#"{"risk_exceeded":[0.75,0.5]}"#)));
    assert!(matches!(says("0.25", true), Evaluation::Uncertain(Some(score), _) if score == 0.75));
    assert!(matches!(says("-1", false), Evaluation::Uncertain(None, _)), "a score of 2 is none");
    assert!(matches!(says(r#""much""#, false), Evaluation::Uncertain(None, _)));
    let verdict = |risk: &str| {
        contract.verdict(&value(&format!(r#"{{"risk":{risk},"limit":0.5,"open":false}}"#)), None).to_string()
    };
    assert_eq!((verdict("0.5"), verdict("0.51")), ("ok".to_owned(), "violation".to_owned()));
    assert!(verdict("-1").starts_with("uncertain"), "what has no score is not ok");
}

#[test]
fn the_built_in_contract_is_ok_with_1_where_there_is_no_anomaly() {
    let free = crate::Predicate::built_in("kernel.anomaly_free").expect("built in");
    let counters = crate::counters::Counters::default().to_value();
    let says = |text: &str| free.evaluate(&value(text), Some(&counters));
    assert_eq!(says("{}"), Evaluation::Ok(1.0));
    assert_eq!(says(r#"{"kernel_anomalies":[]}"#), Evaluation::Ok(1.0));
    assert_eq!(says(r#"{"kernel_anomalies":[{"kind":"k"}]}"#), Evaluation::Violation(Value::Null));
}

#[test]
fn what_a_plan_gets_wrong_is_told_where_it_stands() {
    let faults = |text: &str, with: &str| {
        let all = Pack::read(&value(&text.replacen("\"reducer\"", &format!("{with},\"reducer\""), 1)));
        all.expect_err("a fault").iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let bare = r#"{"name":"p","version":"v1","reducer":"delta/1","state":{"a":{"init":"true"}}}"#;
    for (with, expected) in [
        (r#""progress":{}"#, "progress does not say what its signals weigh"),
        (
            r#""progress":{"weights":{"structural_completion":1,"constraint_satisfaction":0,"skeptic_survival_rate":0}}"#,
            "structural_completion weighs 1, and nothing is declared that it could be made of",
        ),
        (
            r#""progress":{"weights":{"structural_completion":-1,"constraint_satisfaction":0,"skeptic_survival_rate":0}}"#,
            "structural_completion is a number from 0 to 1, not -1",
        ),
        (
            r#""progress":{"challenges":{"type":"skeptic","survived":"true","last":0},"weights":{"structural_completion":0,"constraint_satisfaction":0,"skeptic_survival_rate":0}}"#,
            "there is no transition type skeptic\nprogress.challenges.last: last is a number from 1 to 10000",
        ),
        (
            r#""progress_contracts":[{"id":"progress","version":"v1","score":"1.0","violation":"false"}]"#,
            "progress is a signal of every plan",
        ),
        (r#""progress_contracts":[{"id":"x"}]"#, "x does not say its version"),
        (
            r#""progress_contracts":[{"id":"x","version":"v1","score":"state.b","violation":"false"}]"#,
            "no field `b` is declared in state",
        ),
    ] {
        let found = faults(bare, with);
        assert!(found.contains(expected), "{with}: {found}");
    }
}
