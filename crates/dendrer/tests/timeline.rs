//! Bins of ticks, against a slow count of the log.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::collections::BTreeMap;

use dendrer::Trace;
use dendrer::ask::log::{LogDetails, LogFilter, LogTerms, LoggedRecord, log};
use dendrer::ask::predicates::PredicateTested;
use dendrer::ask::timeline::{MARKS_MAX, TimelineRange, TimelineReply, timeline};
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_kernel::step::Start;
use dendrer_object::record::Kind;
use dendrer_object::{Delta, Intent, Value, json};
use dendrer_store::Shared;
use dendrer_testkit::{Dice, memory, recorder, run_name};

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A line of one of several kinds: a plan, an observation, a denial, a failed call, a gap, a forged type.
fn line(dice: &mut Dice) -> Intent {
    let agent = format!("agent-{}", dice.below(30));
    let n = dice.below(10);
    let intent = |type_name: &str| Intent::new(type_name.parse().unwrap(), &agent);
    match dice.below(8) {
        0 => intent("action.result")
            .by_runtime()
            .with("result", value(r#"{"status":"error","output":null}"#))
            .with_delta(Delta::default()),
        1 => intent("policy.decision")
            .by_runtime()
            .with("policy", value(r#"{"decision":"deny"}"#))
            .with_delta(Delta::default()),
        2 => intent("observation.add")
            .by_runtime()
            .with("anomalies", value(r#"[{"kind":"source_cut","gap":true},{"kind":"odd"}]"#))
            .with_delta(Delta::default()),
        // An agent cannot decide a policy: the line is refused.
        3 => intent("policy.decision")
            .with("policy", value(r#"{"decision":"allow"}"#))
            .with_delta(Delta::default()),
        _ => {
            let delta = format!(r#"[{{"set":"/n","value":{n}}},{{"set":"/m{n}","value":true}}]"#);
            let confidence = format!(r#"{{"description":"x","confidence":0.{n}1}}"#);
            intent("plan.update")
                .with("intent", value(&confidence))
                .with_delta(Delta::from_value(&value(&delta)).unwrap())
        }
    }
}

fn recorded(dice: &mut Dice) -> Shared {
    let store = memory(3);
    let mut start = Start::new(run_name("r"));
    start.state = value(r#"{"n":0}"#);
    let mut recorder = recorder(&store, &start);
    for _ in 0..dice.below(120) {
        // A refusal is on record as well.
        recorder.propose(&line(dice)).unwrap();
    }
    recorder.commit().unwrap();
    store
}

/// The records of a range of ticks, each refusal with the tick that it was judged against.
fn logged(trace: &Trace, from: u64, to: u64) -> Vec<(u64, LoggedRecord)> {
    let terms = LogTerms {
        from,
        to,
        reverse: false,
        limit: u64::MAX,
        newest: false,
        refusals: true,
        filter: LogFilter::default(),
        details: LogDetails::default(),
        lanes: None,
        folds: false,
    };
    let (mut found, mut last) = (Vec::new(), 0);
    log::<dendrer::Error>(trace, terms, &mut |record| {
        last = record.record.header().tick.unwrap_or(last);
        found.push((last, record));
        Ok(())
    })
    .unwrap();
    found
}

fn tested(trace: &Trace, from: u64, to: u64) -> (String, PredicateTested) {
    let text = "state.n < 7";
    let predicate = Predicate::holds("expression", text).unwrap();
    (text.to_owned(), PredicateTested::of(trace, predicate, from, to, None).unwrap())
}

fn check(trace: &Trace, range: TimelineRange) -> TimelineReply {
    let TimelineRange { from, to, bins } = range;
    let found = timeline(trace, range, &[tested(trace, from, to)]).unwrap();
    assert!(found.items.len() as u64 <= bins, "{range:?}");
    assert!(
        found.width == 1 || to / (found.width / 2) - from / (found.width / 2) >= bins,
        "{range:?}: {}",
        found.width
    );
    let records = logged(trace, from, to);
    let mut next = from;
    for (at, bin) in found.items.iter().enumerate() {
        assert_eq!(bin.from, next);
        assert!(bin.from == from || bin.from % found.width == 0);
        next = bin.to + 1;
        let here: Vec<_> = records.iter().filter(|(tick, _)| (bin.from..=bin.to).contains(tick)).collect();
        let is_refusal = |record: &LoggedRecord| record.record.header().kind == Kind::Refusal;
        let refusals = here.iter().filter(|(tick, one)| *tick > 0 && is_refusal(one)).count() as u64;
        let here: Vec<_> = here.iter().filter(|(_, one)| !is_refusal(one)).collect();
        let number = |count: &dyn Fn(&Value) -> u64| {
            here.iter().map(|(_, one)| count(&one.record.content())).sum::<u64>()
        };
        assert_eq!(bin.refusals, refusals, "{range:?} {at}");
        assert_eq!(bin.transitions, here.len() as u64);
        assert_eq!(bin.lanes.iter().sum::<u64>(), bin.transitions);
        assert_eq!(bin.types.values().sum::<u64>(), bin.transitions);
        let has = |content: &Value, text: &str| u64::from(content.to_string().contains(text));
        assert_eq!(bin.denied, number(&|content| has(content, "\"decision\":\"deny\"")));
        assert_eq!(bin.failed, number(&|content| has(content, "\"status\":\"error\"")));
        assert_eq!(bin.gaps, number(&|content| has(content, "\"gap\":true")));
        let anomalies = |content: &Value| {
            content.get("anomalies").and_then(Value::as_array).map_or(0, |all| all.len() as u64)
        };
        assert_eq!(bin.anomalies, number(&anomalies));
        let changes = |content: &Value| {
            content.get("delta").and_then(Value::as_array).map_or(0, |all| all.len() as u64)
        };
        assert_eq!(bin.changes, number(&changes));
        let confidence =
            |content: &Value| content.get("intent").and_then(|intent| intent.get("confidence")?.as_f64());
        let lowest = here.iter().filter_map(|(_, one)| confidence(&one.record.content())).reduce(f64::min);
        assert_eq!(bin.confidence, lowest);
        let mut words = Vec::new();
        for tick in bin.from..=bin.to {
            let word = match tested(trace, tick, tick).1.line.at(tick) {
                Verdict::Ok => "ok",
                Verdict::Violation => "violation",
                Verdict::Uncertain(_) => "uncertain",
            };
            if !words.contains(&word) {
                words.push(word);
            }
        }
        assert_eq!(found.verdicts[0].items[at], words, "{range:?} {at}");
    }
    assert_eq!(next, to + 1);
    for (number, lane) in found.lanes.iter().enumerate() {
        assert_eq!(lane.total, found.items.iter().map(|bin| bin.lanes[number]).sum::<u64>());
    }
    let mut marks: BTreeMap<&str, u64> = found.left_out.clone();
    for mark in &found.marks {
        *marks.entry(mark.kind.as_str()).or_default() += 1;
    }
    assert!(found.marks.len() <= MARKS_MAX);
    assert_eq!(marks.get("gap").copied().unwrap_or(0), found.items.iter().map(|bin| bin.gaps).sum::<u64>());
    assert_eq!(
        marks.get("denial").copied().unwrap_or(0),
        found.items.iter().map(|bin| bin.denied).sum::<u64>()
    );
    found
}

#[test]
fn each_bin_is_a_slow_count_of_the_log() {
    let runs = std::env::var("DENDRER_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(60);
    let (mut dice, mut refusals) = (Dice(7), 0);
    for _ in 0..runs {
        let store = recorded(&mut dice);
        let trace = Trace::open(&store, &run_name("r")).unwrap();
        let tip = trace.tip();
        let whole = check(&trace, TimelineRange { from: 1.min(tip), to: tip, bins: 512 });
        refusals += whole.items.iter().map(|bin| bin.refusals).sum::<u64>();
        for _ in 0..3 {
            let (one, other) = (dice.below(tip + 1), dice.below(tip + 1));
            let bins = 1 + dice.below(12);
            check(&trace, TimelineRange { from: one.min(other), to: one.max(other), bins });
        }
    }
    assert!(refusals > 0);
}

#[test]
fn the_width_is_the_least_power_of_two_that_covers_the_range() {
    for (from, to, bins, width) in [
        (1, 64, 64, 1),
        (1, 65, 64, 2),
        (0, 63, 64, 1),
        (1, 1_000_000, 512, 2_048),
        (5, 5, 1, 1),
        (7, 8, 1, 16),
    ] {
        assert_eq!(TimelineRange { from, to, bins }.width(), width, "{from}..{to} in {bins}");
    }
}
