//! How often a predicate reports a violation that is none, where the numbers of a run are noisy (dendrer paper, 4.8).
//!
//! A run is made whose exact values lie on the grid that the pack declares with `decimals`, and never violate. Then it is
//! recorded again with noise on every number that is written, and every predicate is judged at every tick. `docs/measures.md` says what
//! the figures mean. Everything comes from seeds, so the counts are asserted as they were measured.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::fmt::Write as _;
use std::io::Write as _;

use dendrer::recorder::Fixed;
use dendrer::{Trace, pack, timeline};
use dendrer_kernel::predicate::Verdict;
use dendrer_kernel::step::{Outcome, Start};
use dendrer_object::json::parse_door;
use dendrer_object::note::SigningKey;
use dendrer_object::{Intent, RunName, StoreId};
use dendrer_store::{Memory, Shared, StoreInfo};
use dendrer_testkit::Dice;

/// How many runs are made, each in every form.
const RUNS: u64 = 1000;

/// How many transitions of a run write numbers.
const TICKS: usize = 16;

/// The names of the predicates, in the order in which they are judged.
const NAMES: [&str; 4] = ["below_limit", "never_over", "in_order", "sure"];

/// The pack, with its quanta. Every threshold lies on the grid, and values may reach it.
const PACK: &str = "
name: noise
version: v1
state:
  risk: {init: 0, decimals: 2}
  total: {init: 0, decimals: 1}
  low: {init: 0, decimals: 3}
  high: {init: 0, decimals: 3}
  confidence: {init: 1}
rules:
  - when_type: observation.add
    steps:
      - {set: risk, value: t.intent.risk}
      - {set: total, value: before.total + t.intent.more}
      - {set: low, value: t.intent.low}
      - {set: high, value: t.intent.high}
      - {set: confidence, value: t.intent.confidence}
predicates:
  below_limit: {holds: state.risk <= 0.75}
  never_over: {holds: state.total <= 20}
  in_order: {holds: state.low <= state.high}
  sure: {holds: state.confidence >= 0.5}
";

/// A number from -1 to 1.
fn around(dice: &mut Dice) -> f64 {
    (dice.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// What one transition writes, in quanta of each field.
#[derive(Clone, Copy)]
struct Exact {
    risk: u64,
    more: u64,
    low: u64,
    high: u64,
    confidence: u64,
}

/// A run whose values never violate, and stand exactly at their limits every now and then.
fn clean(dice: &mut Dice) -> Vec<Exact> {
    let mut left = 200;
    (0..TICKS)
        .map(|_| {
            let more = dice.below(40).min(left);
            left -= more;
            let high = dice.below(1000);
            let at_limit = dice.below(4) == 0;
            Exact {
                risk: if at_limit { 75 } else { dice.below(76) },
                more,
                low: if dice.below(4) == 0 { high } else { dice.below(high + 1) },
                high,
                confidence: if at_limit { 500 } else { 500 + dice.below(500) },
            }
        })
        .collect()
}

/// The same run with one value at one tick that is a single quantum too far.
fn dirty(exact: &[Exact], dice: &mut Dice) -> Vec<Exact> {
    let mut run = exact.to_vec();
    let at = dice.below(TICKS as u64) as usize;
    match dice.below(4) {
        0 => run[at].risk = 76,
        // One tenth over the limit in all, from here on.
        1 => run[at].more += 201 - run.iter().map(|tick| tick.more).sum::<u64>(),
        2 => run[at].low = run[at].high + 1,
        _ => run[at].confidence = 499,
    }
    run
}

/// How a run is written down.
#[derive(Clone, Copy)]
struct Form {
    /// Noise on every number, at most so many quanta.
    quanta: f64,
    /// Whether members stand in another order, with members beside them that nobody reads, and transitions between that no
    /// rule is for.
    clutter: bool,
}

const EXACT: Form = Form { quanta: 0.0, clutter: false };
const BELOW_HALF: Form = Form { quanta: 0.499, clutter: false };
const ABOVE_HALF: Form = Form { quanta: 1.0, clutter: false };
const CLUTTERED: Form = Form { clutter: true, ..BELOW_HALF };

/// A number as its quanta, with noise.
fn noisy(count: u64, decimals: i32, quanta: f64, dice: &mut Dice) -> f64 {
    let noise = quanta * around(dice);
    (count as f64 + noise) / 10f64.powi(decimals)
}

/// The texts of the intents, and at which tick of them each tick of the exact run stands, tick 0 first.
fn texts(run: &[Exact], form: Form, dice: &mut Dice) -> (Vec<String>, Vec<u64>) {
    let mut texts = Vec::new();
    let mut places = vec![0];
    for tick in run {
        while form.clutter && dice.below(2) == 0 {
            texts.push(format!(r#"{{"type":"plan.update","intent":{{"risk":{}}}}}"#, dice.below(100)));
        }
        let number = |count, decimals, dice: &mut Dice| noisy(count, decimals, form.quanta, dice).to_string();
        let mut members = vec![
            ("risk", number(tick.risk, 2, dice)),
            ("more", number(tick.more, 1, dice)),
            ("low", number(tick.low, 3, dice)),
            ("high", number(tick.high, 3, dice)),
            ("confidence", number(tick.confidence, 3, dice)),
        ];
        if form.clutter {
            members.push(("risk_before", "9.75".to_owned()));
            members.push(("remark", r#"{"risk":99,"low":[1,2]}"#.to_owned()));
            let turn = dice.below(members.len() as u64) as usize;
            members.rotate_left(turn);
        }
        let mut text = String::new();
        for (name, value) in members {
            let comma = if text.is_empty() { "" } else { "," };
            write!(text, "{comma}\"{name}\":{value}").unwrap();
        }
        texts.push(format!(r#"{{"type":"observation.add","intent":{{{text}}}}}"#));
        places.push(texts.len() as u64);
    }
    (texts, places)
}

/// Whether each predicate is violated, at every tick of the exact run.
type Violated = Vec<Vec<bool>>;

/// Records a run and judges every predicate at every tick.
fn judge(source: &pack::Source, texts: &[String], places: &[u64]) -> Violated {
    let id = StoreId([7; 16]);
    let key = SigningKey::from_seed(&id.origin(), [1; 32]).unwrap();
    let store = Shared::new(Box::new(Memory::new(StoreInfo::new(id, key.verifier_key().clone()))));
    let run: RunName = "r".parse().unwrap();
    let start = Start::new(run.clone());
    let mut recorder = source
        .bind(start)
        .and_then(|start| dendrer::Recorder::begin(&store, &start, Box::new(Fixed::new("noise", 1, 1))))
        .unwrap();
    for text in texts {
        let intent = Intent::from_value(&parse_door(text.as_bytes()).unwrap(), None).unwrap();
        let outcome = recorder.propose(&intent).unwrap();
        assert!(!matches!(outcome, Outcome::Refused(_)), "{text}");
    }
    recorder.commit().unwrap();
    drop(recorder);
    let trace = Trace::open(&store, &run).unwrap();
    let predicates = NAMES.map(|name| source.pack.predicate(name).unwrap());
    let lines = timeline::judge_each(&trace, &predicates, 0, trace.tip()).unwrap();
    let violated = |line: &timeline::Timeline| {
        let mut stretch = Vec::new();
        for (at, place) in places.iter().enumerate() {
            // What lies between two ticks of the exact run must say what was said before it.
            let until = places.get(at + 1).map_or(trace.tip() + 1, |next| *next);
            let verdicts: Vec<&Verdict> = (*place..until).map(|tick| line.at(tick)).collect();
            assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{verdicts:?}");
            assert!(!matches!(verdicts[0], Verdict::Uncertain(_)), "{verdicts:?}");
            stretch.push(*verdicts[0] == Verdict::Violation);
        }
        stretch
    };
    lines.iter().map(violated).collect()
}

/// Of how many runs each predicate reports a violation, and of how many any does.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reports {
    each: [u64; 4],
    runs: u64,
}

impl Reports {
    fn add(&mut self, violated: &Violated) {
        let reports: Vec<bool> = violated.iter().map(|ticks| ticks.contains(&true)).collect();
        self.runs += u64::from(reports.contains(&true));
        for (count, report) in self.each.iter_mut().zip(reports) {
            *count += u64::from(report);
        }
    }

    fn say(&self, what: &str) {
        let each: Vec<String> =
            NAMES.iter().zip(self.each).map(|(name, count)| format!("{name} {count}")).collect();
        let line = format!("{what}: {} of {RUNS} runs report a violation ({})\n", self.runs, each.join(", "));
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// A pack that keeps every digit of what it is given.
fn without_quanta() -> pack::Source {
    let fields = [", decimals: 1", ", decimals: 2", ", decimals: 3"];
    let text = fields.iter().fold(PACK.to_owned(), |text, decimals| text.replace(decimals, ""));
    assert!(!text.contains("decimals"));
    pack::read(text.as_bytes()).unwrap()
}

/// Records every clean run in a form, and counts the reports, all of which are false.
fn false_reports(source: &pack::Source, form: Form) -> Reports {
    let mut reports = Reports::default();
    for seed in 0..RUNS {
        let mut dice = Dice(seed);
        let run = clean(&mut dice);
        let (texts, places) = texts(&run, form, &mut dice);
        reports.add(&judge(source, &texts, &places));
    }
    reports
}

#[test]
fn noise_below_half_a_quantum_makes_no_false_report() {
    let quantized = pack::read(PACK.as_bytes()).unwrap();
    let none = Reports::default();
    for (what, form) in [
        ("exact", EXACT),
        ("quantized, noise below half a quantum", BELOW_HALF),
        ("quantized, other order, unread members, ticks between", CLUTTERED),
    ] {
        let reports = false_reports(&quantized, form);
        reports.say(what);
        assert_eq!(reports, none, "{what}");
    }
}

#[test]
fn the_same_noise_makes_false_reports_without_quanta_or_beyond_half_of_one() {
    let exact = false_reports(&without_quanta(), EXACT);
    exact.say("not quantized, no noise");
    let plain = false_reports(&without_quanta(), BELOW_HALF);
    plain.say("not quantized, noise below half a quantum");
    let beyond = false_reports(&pack::read(PACK.as_bytes()).unwrap(), ABOVE_HALF);
    beyond.say("quantized, noise up to a whole quantum");
    // Tenths add up to a little more than their sum: 20 is passed without any noise.
    assert_eq!(exact, Reports { each: [0, 164, 0, 0], runs: 164 });
    // A confidence is kept to three decimals whatever the pack says.
    assert_eq!(plain, Reports { each: [890, 623, 890, 0], runs: 991 });
    assert_eq!(beyond, Reports { each: [662, 548, 726, 632], runs: 980 });
}

/// A rate of 0 is easily had by reporting nothing: what is one quantum too far is reported through the same noise, at
/// the same ticks.
#[test]
fn a_violation_of_one_quantum_is_reported_through_the_noise_at_its_ticks() {
    let quantized = pack::read(PACK.as_bytes()).unwrap();
    let mut found = Reports::default();
    for seed in 0..RUNS {
        let mut dice = Dice(seed);
        let run = clean(&mut dice);
        let run = dirty(&run, &mut dice);
        let (exact, places) = texts(&run, EXACT, &mut dice);
        let expected = judge(&quantized, &exact, &places);
        for form in [BELOW_HALF, CLUTTERED] {
            let (texts, places) = texts(&run, form, &mut dice);
            assert_eq!(judge(&quantized, &texts, &places), expected, "seed {seed}");
        }
        found.add(&expected);
    }
    found.say("one value a quantum too far, in each of three forms");
    assert_eq!(found.runs, RUNS, "every one of them is reported");
}
