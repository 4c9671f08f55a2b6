//! Unknown places against a slow model: random packs whose rules fail and read each other, random deltas, gaps, ambiguous
//! results, forks, merges and runs that are reduced again.
//!
//! The model ([`oracle`]) is written from the sentences of the design (section 7, (a) to (d)). After each tick the state and its
//! unknown places must be those of the model; no verdict may be certain if the model says unknown, or uncertain if it says known; an
//! onset is exact, between two ticks, or not known from a tick on, as judging every tick finds. `DENDRER_DEEP=1` tries 10,000
//! histories; `DENDRER_MODEL=N` tries the one with that number.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on stops; the deep run counts"
)]

mod draw;
mod oracle;

use std::sync::Arc;

use dendrer::bisect::{BisectOutcome, BisectReport, BisectSubject, Range, bisect};
use dendrer::fork::{self, ForkTerms};
use dendrer::merge::{MergeInput, MergeTerms, Strategy};
use dendrer::prelude::*;
use dendrer::recorder::Fixed;
use dendrer::{pack, timeline, verify};
use dendrer_kernel::predicate::Verdict;
use dendrer_object::json::parse_door;
use dendrer_object::tag;
use dendrer_store::Memory;
use dendrer_testkit::{Dice, appending, info, run_name};

use oracle::{E, Event, Rule, Sees, State as Model, Stop, V};

/// The engine of a run, as the model knows it.
#[derive(Clone)]
enum Engine {
    Delta,
    Rules(Arc<Vec<Rule>>),
}

impl Engine {
    fn after(&self, state: &Model, event: &Event, tick: u64) -> Model {
        match self {
            Engine::Delta => state.after_delta(event, tick),
            Engine::Rules(rules) => state.after_rules(rules, event, tick),
        }
    }
}

/// A run, as the model knows it.
#[derive(Clone)]
struct Known {
    name: String,
    engine: Engine,
    /// The state at each tick.
    states: Vec<Model>,
    /// What happened at each tick from 1 on; nothing for the marker of a fork.
    events: Vec<Option<Event>>,
}

impl Known {
    fn tip(&self) -> u64 {
        self.events.len() as u64
    }

    fn push(&mut self, event: Event) {
        let tick = self.tip() + 1;
        self.states.push(self.engine.after(&self.states[tick as usize - 1], &event, tick));
        self.events.push(Some(event));
    }
}

struct History {
    dice: Dice,
    repo: Repo,
    number: u64,
}

fn value(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn intent_of(event: &Event) -> Intent {
    let V::Map(t) = &event.t else { unreachable!("t is a map") };
    let mut members: Vec<String> = vec![format!("\"type\":\"{}\"", event.type_name)];
    if event.type_name == "action.result" {
        members.push("\"author\":\"runtime\"".into());
    }
    members.extend(t.iter().filter(|(_, v)| **v != V::Gap).map(|(name, v)| format!("\"{name}\":{v}")));
    if !event.delta.is_empty() {
        let ops: Vec<String> = event.delta.iter().map(oracle::Op::text).collect();
        members.push(format!("\"delta\":[{}]", ops.join(",")));
    }
    let mut intent = Intent::from_value(&value(&format!("{{{}}}", members.join(","))), Some("a")).unwrap();
    intent
        .noted
        .extend(event.note.iter().map(|kind| value(&format!("{{\"gap\":true,\"kind\":\"{kind}\"}}"))));
    for (name, _) in t.iter().filter(|(_, v)| **v == V::Gap) {
        intent.members.push((name.as_str().into(), tag::gap("lost", "")));
    }
    intent.members.sort_by(|a, b| a.0.cmp(&b.0));
    intent
}

/// The state that the product has, as the model writes it.
fn model_of(state: &Value) -> Model {
    let places = dendrer_kernel::unknown::UnknownPlaces::of(state);
    let place = |pointer: &Pointer| pointer.tokens().map(|token| token.into_owned()).collect();
    let marks = places.iter().map(|(pointer, since)| (place(pointer), since.tick)).collect();
    let V::Map(mut members) = V::read(state) else { unreachable!("a state is a map") };
    members.remove("kernel_unknown");
    Model { value: V::Map(members), marks }
}

impl History {
    fn new(number: u64) -> History {
        let repo = Repo::over(Box::new(Memory::new(info(1))), appending(1)).unwrap();
        let repo = repo.with_environment(move || Box::new(Fixed::new("model", 1_790_000_000_000, 1)));
        History { dice: Dice(number.wrapping_mul(0x9e37_79b9) ^ 0x51), repo, number }
    }

    fn trace(&self, run: &str) -> Trace {
        self.repo.run(&run_name(run)).unwrap()
    }

    fn record(&mut self, recorder: &mut Recorder, known: &mut Known, lines: u64) {
        for _ in 0..lines {
            let deltas = matches!(known.engine, Engine::Delta);
            let event = draw::event(&mut self.dice, deltas);
            let outcome = recorder.propose(&intent_of(&event)).unwrap();
            assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
            known.push(event);
        }
        recorder.commit().unwrap();
    }

    /// A run that begins by itself.
    fn begin(&mut self, name: &str, rules: Option<&Arc<Vec<Rule>>>) -> Known {
        let mut start = Start { stage: Some(Stage::Observe), ..Start::new(run_name(name)) };
        start.state = value(r#"{"a":0,"b":1,"l":[1,2],"m":{"p":1},"n":{},"s":"p"}"#);
        let engine = match rules {
            None => Engine::Delta,
            Some(rules) => {
                let text = draw::pack(rules);
                let source =
                    pack::read(text.as_bytes()).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"));
                start = source.bind(start).unwrap();
                Engine::Rules(Arc::clone(rules))
            }
        };
        let mut recorder = self.repo.begin(&start).unwrap();
        let first = model_of(recorder.head().state());
        let mut known = Known { name: name.to_owned(), engine, states: vec![first], events: Vec::new() };
        let lines = 3 + self.dice.below(7);
        self.record(&mut recorder, &mut known, lines);
        known
    }

    /// A fork, with values that are set, and the rest of the parent or other lines.
    fn fork(&mut self, parent: &Known, name: &str) -> Known {
        let tick = self.dice.below(parent.tip() + 1);
        let mut terms = ForkTerms::new(run_name(name));
        let mut known = Known { name: name.to_owned(), ..parent.clone() };
        known.states.truncate(tick as usize + 1);
        known.events.truncate(tick as usize);
        let mut state = known.states[tick as usize].clone();
        for _ in 0..self.dice.below(3) {
            let (place, new) = draw::set(&mut self.dice);
            let event = Event {
                type_name: "run.fork",
                t: V::map([]),
                delta: vec![oracle::Op::Set(place.clone(), new.clone())],
                note: None,
            };
            let after = state.after_delta(&event, tick + 1);
            let pointer = Pointer::of(place.iter().map(String::as_str));
            // A value that does not fit is refused for the fork as a whole.
            if after.value != state.value || pointer.get(&value(&state.value.to_string())).is_some() {
                if after.marks.iter().any(|mark| !state.marks.contains(mark)) {
                    continue;
                }
                terms.set.push((pointer, value(&new.to_string())));
                state = after;
            }
        }
        let trace = self.trace(&parent.name);
        let (mut recorder, forked) = self.repo.fork(&trace, tick, &terms).unwrap();
        known.states.push(state);
        known.events.push(None);
        if self.dice.below(2) == 0 && parent.events[tick as usize..].iter().all(Option::is_some) {
            let carried = fork::carry_on(&mut recorder, &trace, &forked, &terms, true).unwrap();
            assert_eq!(carried.stopped, None);
            for event in parent.events[tick as usize..].iter().flatten() {
                known.push(event.clone());
            }
        }
        let lines = self.dice.below(4);
        self.record(&mut recorder, &mut known, lines);
        known
    }

    /// A merge of two runs of one engine, which begins with the places of both.
    fn merge(&mut self, sides: [&Known; 2], name: &str) -> Option<Known> {
        let artifacts = match self.dice.below(3) {
            0 => vec!["/a".parse().unwrap(), "/m".parse().unwrap()],
            _ => Vec::new(),
        };
        let strategy = match &sides[0].engine {
            Engine::Delta if self.dice.below(2) == 0 => Strategy::Manual,
            _ => Strategy::First,
        };
        let terms = MergeTerms {
            run: run_name(name),
            artifacts: artifacts.clone(),
            strategy,
            seed_only: false,
            although: None,
        };
        let traces = sides.map(|side| self.trace(&side.name));
        let ticks = sides.map(|side| self.dice.below(side.tip() + 1));
        let inputs = [0, 1].map(|at| MergeInput { trace: &traces[at], tick: ticks[at] });
        // Two names of one record, or artifacts that neither has.
        let (mut recorder, merged) = self.repo.merge(&inputs, &terms).ok()?;
        let mut first = Model { marks: Vec::new(), ..model_of(recorder.head().state()) };
        // A place is unknown if a side that it is taken from has it unknown.
        let is_from_others = |mark: &oracle::Place, name: &str| {
            let path = Pointer::of(mark.iter().map(String::as_str));
            let mut taken =
                merged.seeded.iter().chain(&merged.removed).filter(|one| one.path.contains(&path));
            let mut decided = merged.conflicts.iter().filter(|one| one.path.contains(&path));
            taken.any(|one| one.from.iter().all(|from| &*from.source != name))
                || decided.any(|one| one.taken.as_deref().is_some_and(|taken| taken != name))
        };
        for ((side, tick), name) in sides.iter().zip(ticks).zip(["a", "b"]) {
            for (mark, _) in &side.states[tick as usize].marks {
                if is_from_others(mark, name) {
                    continue;
                }
                if artifacts.is_empty() {
                    first.mark(mark.clone(), 0);
                }
                for path in &artifacts {
                    let path: oracle::Place = path.tokens().map(|token| token.into_owned()).collect();
                    if oracle::meet(&path, mark) {
                        first.mark(if mark.len() > path.len() { mark.clone() } else { path }, 0);
                    }
                }
            }
        }
        // Which value a place has is unknown while its conflict is open.
        for conflict in merged.conflicts.iter().filter(|conflict| conflict.taken.is_none()) {
            let place: oracle::Place = conflict.path.tokens().map(|token| token.into_owned()).collect();
            first.clear(&place);
            first.mark(place, 0);
        }
        let engine = sides[0].engine.clone();
        let mut known = Known { name: name.to_owned(), engine, states: vec![first], events: Vec::new() };
        let lines = self.dice.below(5);
        self.record(&mut recorder, &mut known, lines);
        Some(known)
    }

    /// A run that is reduced again under other rules.
    fn reduce(&mut self, source: &Known, rules: &Arc<Vec<Rule>>, name: &str) -> Known {
        let text = draw::pack(rules);
        let pack = pack::read(text.as_bytes()).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"));
        self.repo.reduce(&self.trace(&source.name), &pack, run_name(name), None, None).unwrap();
        let trace = self.trace(name);
        let mut first = Model { marks: Vec::new(), ..model_of(&trace.state(0).unwrap()) };
        // Each field is computed from the field of its name.
        for (field, _) in draw::FIELDS {
            let place = vec![field.to_owned()];
            if source.states[0].unknown(&place).is_some() {
                first.mark(place, 0);
            }
        }
        let engine = Engine::Rules(Arc::clone(rules));
        let mut known = Known { name: name.to_owned(), engine, states: vec![first], events: Vec::new() };
        for event in source.events.iter().flatten() {
            known.push(event.clone());
        }
        known
    }

    /// Compares every state of a run, and the answers to questions about it, with the model.
    fn check(&mut self, known: &Known, counts: &mut Counts) {
        let trace = self.trace(&known.name);
        assert_eq!(trace.tip(), known.tip());
        for (tick, expected) in known.states.iter().enumerate() {
            let found = model_of(&trace.state(tick as u64).unwrap());
            let event = tick.checked_sub(1).and_then(|at| known.events[at].as_ref());
            let context = || {
                let rules = match &known.engine {
                    Engine::Delta => "delta/1".to_owned(),
                    Engine::Rules(rules) => rules.iter().map(Rule::text).collect::<Vec<_>>().join("\n"),
                };
                let before = tick.checked_sub(1).map(|at| &known.states[at]);
                format!(
                    "history {}: {}@{tick}\n{rules}\nbefore {before:?}\nevent {event:?}",
                    self.number, known.name
                )
            };
            assert_eq!(found.normal_marks(), expected.normal_marks(), "{}", context());
            assert_eq!(found.value, expected.value, "{}", context());
            counts.incomplete += usize::from(!expected.marks.is_empty());
            counts.ticks += 1;
        }
        let store = self.repo.reader().unwrap();
        assert_eq!(verify::replay(&store, &run_name(&known.name)).unwrap(), Ok(trace.tip()));
        for _ in 0..4 {
            let asked = draw::predicate(&mut self.dice);
            self.ask(&trace, known, &asked, counts);
        }
    }

    fn ask(&self, trace: &Trace, known: &Known, asked: &E, counts: &mut Counts) {
        let text = asked.to_string();
        let predicate = Predicate::condition("p", &text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let expected: Vec<Result<bool, Stop>> = known
            .states
            .iter()
            .map(|state| Sees { state, before: state, t: &V::Gap, names: &[] }.truth(asked))
            .collect();
        let line = timeline::judge(trace, &predicate, 0, trace.tip()).unwrap();
        let context = || format!("history {}: {text} of {}", self.number, known.name);
        for (tick, expected) in expected.iter().enumerate() {
            let (found, context) = (line.at(tick as u64), || format!("{}@{tick}", context()));
            match (expected, found) {
                (Ok(true), Verdict::Violation) | (Ok(false), Verdict::Ok) => counts.certain += 1,
                (Err(Stop::Error), Verdict::Uncertain(why)) => {
                    assert!(!why.contains("unknown"), "{why} {}", context())
                }
                (Err(Stop::Unknown(since)), Verdict::Uncertain(why)) => {
                    counts.unknown += 1;
                    let since = match since {
                        0 => "a source of the merge ".to_owned(),
                        since => format!("at tick {since} "),
                    };
                    let why = format!("{why} ");
                    let is_open =
                        why.contains("the sources of the merge differ there, and the conflict is open");
                    let is_since = why.contains(&since) || (since.starts_with('a') && is_open);
                    assert!(why.contains("unknown") && is_since, "{why}{}", context());
                }
                _ => panic!("{expected:?} and {found:?}: {}", context()),
            }
        }
        for lift in [false, true] {
            let question = if lift { predicate.clone().lifted() } else { predicate.clone() };
            // The model judges from the beginning on, as `--from 0` asks.
            let range = Range::new(0, trace.tip());
            let report = bisect(&trace, &BisectSubject::Predicate(question), &range).unwrap();
            check_onset(&expected, lift, &report, counts, &context());
        }
    }
}

/// The onset by judging every tick: exact, between two ticks, or not known from a tick on.
fn check_onset(
    expected: &[Result<bool, Stop>],
    lift: bool,
    report: &BisectReport,
    counts: &mut Counts,
    context: &str,
) {
    let first =
        |wanted: &dyn Fn(&Result<bool, Stop>) -> bool| expected.iter().position(wanted).map(|at| at as u64);
    let unjudged = first(&|verdict| verdict.is_err());
    let known = &expected[..unjudged.map_or(expected.len(), |at| at as usize)];
    let onset = known.iter().position(|verdict| *verdict == Ok(true)).map(|at| at as u64);
    let recovers = !lift && onset.is_some_and(|onset| known[onset as usize..].contains(&Ok(false)));
    match &report.outcome {
        BisectOutcome::Recovers(_) => assert!(recovers, "{context}"),
        BisectOutcome::Initial => assert_eq!((onset, recovers), (Some(0), false), "{context}"),
        BisectOutcome::Onset(tick) => {
            counts.exact += 1;
            assert_eq!((onset, recovers), (Some(*tick), false), "{context}");
        }
        BisectOutcome::Never => assert_eq!((onset, unjudged), (None, None), "{context}"),
        BisectOutcome::Uncertain(tick, _) => {
            assert_eq!((onset, unjudged), (None, Some(*tick)), "{context}");
            let certain = first(&|verdict| *verdict == Ok(true));
            assert_eq!(report.first_certain, certain, "{context}");
            counts.between += usize::from(certain.is_some());
            counts.open += usize::from(certain.is_none());
        }
    }
}

/// How often each thing was met, so that a model that meets nothing is seen.
#[derive(Debug, Default)]
struct Counts {
    ticks: usize,
    incomplete: usize,
    certain: usize,
    unknown: usize,
    exact: usize,
    between: usize,
    open: usize,
}

fn run(number: u64, counts: &mut Counts) {
    let mut history = History::new(number);
    let rules = [Arc::new(draw::rules(&mut history.dice)), Arc::new(draw::rules(&mut history.dice))];
    let first = (history.dice.below(3) > 0).then_some(&rules[0]);
    let base = history.begin("base", first);
    let fork = history.fork(&base, "fork");
    let mut all = vec![base];
    if history.dice.below(2) == 0 {
        let other = history.begin("other", first);
        all.extend(history.merge([&all[0], &other], "merged"));
        all.push(other);
    } else {
        all.extend(history.merge([&all[0], &fork], "merged"));
    }
    let source = all[history.dice.below(all.len() as u64) as usize].clone();
    let reduced = history.reduce(&source, &rules[1], "reduced");
    all.extend([fork, reduced]);
    for known in &all {
        history.check(known, counts);
    }
}

#[test]
fn answers_are_as_certain_as_a_slow_model_says() {
    if let Some(number) = std::env::var("DENDRER_MODEL").ok().and_then(|text| text.parse().ok()) {
        return run(number, &mut Counts::default());
    }
    let asked = std::env::var("DENDRER_HISTORIES").ok().and_then(|text| text.parse().ok());
    let histories: u64 =
        asked.unwrap_or(if std::env::var_os("DENDRER_DEEP").is_some() { 10_000 } else { 300 });
    let mut counts = Counts::default();
    for number in 0..histories {
        run(number, &mut counts);
    }
    println!("deep: unknown {histories} histories: {counts:?}");
    let met = [counts.incomplete, counts.certain, counts.unknown, counts.exact, counts.between, counts.open];
    assert!(met.iter().all(|count| *count as u64 > histories / 4), "{counts:?}");
}
