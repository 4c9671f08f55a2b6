//! The published runs once more, each with one damaged result: what was not read is never called clean.
//!
//! The undamaged run is one of those that the damaged record may have been, and its answers are known. So an answer that is
//! certain must be its answer; one that is not must name a place that the kernel has marked, and the tick; and up to the damage
//! every answer is exact.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dendrer_object::{Value, json};

use super::data::{Case, Domain, Run, corpus, text};
use super::{import_file, say};
use crate::support::Place;

/// What is done to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Damage {
    /// It is not there.
    Missing,
    /// Its content is no JSON, and says nothing.
    NotJson,
    /// It names no call, and two are open.
    Ambiguous,
    /// It is an item that is no message.
    NoMessage,
    /// The file ends inside it.
    Cut,
}

const RESULTS: [Damage; 5] =
    [Damage::Missing, Damage::NotJson, Damage::Ambiguous, Damage::NoMessage, Damage::Cut];

/// A damaged run.
struct Damaged {
    damage: Damage,
    file: PathBuf,
    /// The tick of the result in the published run.
    result: u64,
    /// The first tick at which something may be unknown.
    from: u64,
}

impl Damaged {
    /// The tick of the published run whose state a tick of this one would have had.
    fn original(&self, tick: u64) -> u64 {
        if self.damage == Damage::Missing && tick >= self.result { tick + 1 } else { tick }
    }
}

fn role(message: &Value) -> String {
    text(message, "role")
}

/// Damages the result in the middle of a run; a log without results loses an entry.
fn damage(place: &Place, run: &Run, at: usize) -> Damaged {
    let mut source = json::parse_door(&std::fs::read(run.path()).unwrap()).unwrap();
    let member = ["traj", "messages", "history"].into_iter().find(|name| source.get(name).is_some()).unwrap();
    let mut messages: Vec<Value> =
        source.get(member).and_then(Value::as_array).unwrap().iter().cloned().collect();
    let leading = messages.iter().take_while(|message| role(message) == "system").count();
    let results: Vec<usize> = (0..messages.len()).filter(|at| role(&messages[*at]) == "tool").collect();
    let damage = match results.is_empty() {
        true => [Damage::NoMessage, Damage::Cut][at % 2],
        false => RESULTS[at % RESULTS.len()],
    };
    let index = results.get(results.len() / 2).copied().unwrap_or(messages.len() / 2);
    let tick = |index: usize| (index + 1 - leading) as u64;
    let request = (0..index)
        .rev()
        .find(|at| messages[*at].get("tool_calls").is_some_and(|calls| *calls != Value::Null));
    let mut from = tick(index);
    let with = |message: &Value, name: &str, value: Option<Value>| {
        let mut members = message.as_object().cloned().unwrap();
        match value {
            Some(value) => members.set(name, value),
            None => drop(members.remove(name)),
        }
        Value::Object(members)
    };
    match damage {
        Damage::Missing => {
            messages.remove(index);
            from = tick(request.unwrap());
        }
        Damage::NotJson => messages[index] = with(&messages[index], "content", Some("{\"cut\": ".into())),
        Damage::Ambiguous => {
            let request = request.unwrap();
            let mut calls: Vec<Value> = messages[request]
                .get("tool_calls")
                .and_then(Value::as_array)
                .unwrap()
                .iter()
                .cloned()
                .collect();
            calls.push(with(&calls[0], "id", Some("another".into())));
            messages[request] = with(&messages[request], "tool_calls", Some(Value::array(calls)));
            for name in ["tool_call_id", "name", "tool_call"] {
                messages[index] = with(&messages[index], name, None);
            }
            from = tick(request);
        }
        // Its call has no result then.
        Damage::NoMessage => {
            messages[index] = Value::from(7_u64);
            from = request.map_or(from, tick);
        }
        Damage::Cut => from = request.map_or(from, tick),
    }
    let file = place.path().join("damaged.json");
    messages.truncate(if damage == Damage::Cut { index + 1 } else { messages.len() });
    source = with(&source, member, Some(Value::array(messages.iter().cloned())));
    let mut written = source.to_string();
    if damage == Damage::Cut {
        let last = messages[index].to_string();
        let end = written.rfind(&last).unwrap() + last.len() / 2;
        let end = (0..=end).rev().find(|end| written.is_char_boundary(*end)).unwrap();
        written.truncate(end);
    }
    std::fs::write(&file, written).unwrap();
    Damaged { damage, file, result: tick(index), from }
}

fn is_violated(case: &Case, tick: u64) -> bool {
    case.intervals.iter().any(|[from, to]| (*from..=*to).contains(&tick))
}

/// Counts of the answers of a domain, by damage.
type Counts = BTreeMap<(Damage, &'static str), usize>;

fn check_run(domain: Domain, run: &Run, at: usize, counts: &mut Counts, wrong: &mut Vec<String>) {
    let place = Place::with_store();
    let damaged = damage(&place, run, at);
    if let Err(why) = import_file(&place, domain, &damaged.file, domain.s0(run)) {
        return wrong.push(format!("{} {:?}: {why}", run.file, damaged.damage));
    }
    let (_, found) = place.json(&["bisect", "run", "--all-of", domain.pack().to_str().unwrap()]);
    let items = found.get("items").and_then(Value::as_array).unwrap_or_else(|| panic!("{found}"));
    assert_eq!(items.len(), run.cases.len());
    let mut marks = Marks::default();
    for item in items.iter() {
        let name = text(item.get("predicate").unwrap(), "name");
        let case = run.cases.iter().find(|case| case.predicate == name).unwrap();
        let class = match check_case(&place, &mut marks, case, &damaged, item) {
            Ok(class) => class,
            Err(why) => {
                wrong.push(format!("{} {:?} from {}: {name}: {why}", run.file, damaged.damage, damaged.from));
                continue;
            }
        };
        *counts.entry((damaged.damage, class)).or_default() += 1;
    }
}

/// Checks one answer, and says which kind it is.
fn check_case(
    place: &Place,
    marks: &mut Marks,
    case: &Case,
    damaged: &Damaged,
    item: &Value,
) -> Result<&'static str, String> {
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64);
    let last =
        number(item.get("ends").and_then(Value::as_array).and_then(|ends| ends.get(1)).unwrap(), "tick")
            .unwrap();
    let violated = |tick: u64| is_violated(case, damaged.original(tick));
    let first_before = |end: u64| (0..end).find(|tick| violated(*tick));
    let outcome = text(item, "outcome");
    let before_damage = case.onset.filter(|onset| *onset < damaged.from);
    // A text that no rule reads as JSON is a result like any other: the record says it, and the published run said another.
    let is_another = damaged.damage == Damage::NotJson && marks.at(place, last).is_none();
    let expect = |holds: bool, what: &str| match holds || is_another {
        true => Ok(()),
        false => Err(format!("{what}: {item}")),
    };
    match (&*outcome, number(item, "onset")) {
        ("onset" | "initial", Some(onset)) => {
            expect(first_before(onset + 1) == Some(onset), "another onset than that of the run")?;
            Ok(if onset < damaged.from { "exact before the damage" } else { "exact after it" })
        }
        ("never", None) => {
            expect(first_before(last + 1).is_none(), "the run is violated")?;
            Ok("never")
        }
        ("recovers", None) => {
            let turns = item.get("ticks").and_then(Value::as_array).unwrap();
            for turn in turns.iter() {
                let (tick, verdict) = (number(turn, "tick").unwrap(), text(turn, "verdict"));
                expect((verdict == "violation") == violated(tick), "another turn than that of the run")?;
            }
            Ok("recovers")
        }
        ("uncertain", None) => {
            let reason = item.get("ticks").and_then(Value::as_array).and_then(|ticks| ticks.get(0)).unwrap();
            let (tick, why) = (number(reason, "tick").unwrap(), text(reason, "why"));
            expect(before_damage.is_none(), "the onset lies before the damage")?;
            expect(tick >= damaged.from, "uncertain before the damage")?;
            expect(first_before(tick).is_none(), "the run is violated before")?;
            check_reason(place, marks, tick, &why, damaged)?;
            Ok("uncertain")
        }
        _ => Err(format!("no such answer: {item}")),
    }
}

/// The marks in the state at each tick that was asked about; `None` if everything is known there.
#[derive(Default)]
struct Marks(BTreeMap<u64, Option<Value>>);

impl Marks {
    fn at(&mut self, place: &Place, tick: u64) -> Option<Value> {
        let ask = || {
            let (code, state) = place.json(&["state", &format!("run@{tick}"), "--path", "kernel_unknown"]);
            (code == 0).then(|| state.get("value").cloned()).flatten()
        };
        self.0.entry(tick).or_insert_with(ask).clone()
    }
}

/// The place of a reason is marked in the state at that tick, since the tick that the reason says.
fn check_reason(
    place: &Place,
    marks: &mut Marks,
    tick: u64,
    why: &str,
    damaged: &Damaged,
) -> Result<(), String> {
    let wrong = || format!("uncertain at tick {tick}, and no mark says so: {why}");
    let (named, cause) = why.split_once(" is unknown: ").ok_or_else(wrong)?;
    let since =
        cause.split_once("at tick ").map(|(_, rest)| rest.split([' ', ',']).next().unwrap_or_default());
    let since: u64 = since.and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
    let marks = marks.at(place, tick).ok_or_else(wrong)?;
    let marks = marks.as_object().ok_or_else(wrong)?;
    let field = named.trim_start_matches("state.").split(['.', '[']).next().unwrap_or_default();
    let is_it = |place: &str, mark: &Value| {
        let top = place.split('/').nth(1).unwrap_or_default();
        (top == field || top.is_empty()) && mark.get("tick").and_then(Value::as_u64) == Some(since)
    };
    let is_marked = marks.iter().any(|(place, mark)| is_it(place, mark));
    if is_marked && since >= damaged.from { Ok(()) } else { Err(wrong()) }
}

#[test]
fn a_damaged_result_makes_answers_uncertain_and_never_wrong() {
    let Some(corpus) = corpus() else { return };
    let runs: Vec<(Domain, Run)> = Domain::ALL
        .into_iter()
        .flat_map(|domain| corpus.runs(domain).into_iter().map(move |run| (domain, run)))
        .collect();
    let half = runs.len() / 2;
    let check = |from: usize, to: usize| {
        let (mut counts, mut wrong) = (Counts::new(), Vec::new());
        for (at, (domain, run)) in runs.iter().enumerate().take(to).skip(from) {
            check_run(*domain, run, at, &mut counts, &mut wrong);
        }
        (counts, wrong)
    };
    let (counts, wrong) = std::thread::scope(|scope| {
        let other = scope.spawn(|| check(half, runs.len()));
        let (mut counts, mut wrong) = check(0, half);
        let (more, others) = other.join().unwrap();
        more.into_iter().for_each(|(kind, count)| *counts.entry(kind).or_default() += count);
        wrong.extend(others);
        (counts, wrong)
    });
    for ((damage, class), count) in &counts {
        say(&format!("{damage:?}: {count} {class}\n"));
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let total =
        |class: &str| counts.iter().filter(|((_, of), _)| *of == class).map(|(_, n)| n).sum::<usize>();
    assert!(total("exact before the damage") > 100 && total("uncertain") > 300 && total("never") > 100);
}
