//! What the program answers, by its documents alone.

use std::collections::BTreeMap;

use dendrer_object::digest::hex;
use dendrer_object::{Value, json};
use ring::digest::{SHA256, digest};

use super::data::{at, text};
use crate::support::Place;

/// The answer to one question.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The first violated tick.
    pub(super) onset: Option<u64>,
    /// Whether the predicate is ok again after a violation, so that halving would be unsound.
    pub(super) recovers: bool,
    /// Every maximal stretch of violation, ends included.
    pub(super) intervals: Vec<[u64; 2]>,
}

/// Asks whether an expression holds.
pub(super) fn ask(place: &Place, text: &str, n: u64) -> Result<Answer, String> {
    let (code, found) = place.json(&["bisect", "run", "--holds", text]);
    whole(place, text, of_bisect(&found, code, n)?, n)
}

/// Asks what an expression says of a tick: whether it holds there.
pub(super) fn holds_at(place: &Place, text: &str, tick: u64) -> bool {
    let (code, said) = place.json(&["predicate", "test", text, "run", "--holds", "--at", &tick.to_string()]);
    assert!(code < 2, "{said}");
    code == 0
}

/// Asks whether each of several expressions holds, in one call.
pub(super) fn ask_texts(place: &Place, texts: &[String], n: u64) -> Vec<Result<Answer, String>> {
    let args: Vec<&str> = texts.iter().flat_map(|text| ["--holds", text]).collect();
    let (_, answers) = answers(place, &args, n);
    assert_eq!(answers.len(), texts.len(), "an answer for each question, in order");
    texts.iter().zip(answers).map(|(text, answer)| whole(place, text, answer?, n)).collect()
}

/// Where the predicate recovers, bisect refused; then the first onset is that of the lifted predicate, and the stretches
/// are those of `predicate test`.
fn whole(place: &Place, text: &str, answer: Answer, n: u64) -> Result<Answer, String> {
    if !answer.recovers {
        return Ok(answer);
    }
    let (code, lifted) = place.json(&["bisect", "run", "--holds", text, "--lift"]);
    let lifted = of_bisect(&lifted, code, n)?;
    let (code, tested) = place.json(&["predicate", "test", text, "run", "--holds"]);
    if code != 0 || tested.get("recovers") != Some(&Value::from(true)) {
        return Err(format!("predicate test with exit code {code}: {tested}"));
    }
    let intervals = stretches(&tested);
    if intervals != answer.intervals {
        return Err(format!("refused with turns at {:?}, tested with {intervals:?}", answer.intervals));
    }
    Ok(Answer { onset: lifted.onset, ..answer })
}

/// Asks every predicate of a pack at once. Answers by name; stretches and onsets of those that recover are what the
/// refusal says.
pub(super) fn ask_all(place: &Place, pack: &str, n: u64) -> BTreeMap<String, Result<Answer, String>> {
    let (items, answers) = answers(place, &["--all-of", pack], n);
    let named = items.iter().zip(answers).map(|(item, answer)| {
        let answer = answer.map(|answer| Answer {
            onset: answer.onset.or(answer.intervals.first().map(|first| first[0])),
            ..answer
        });
        (text(item.get("predicate").unwrap(), "name"), answer)
    });
    named.collect()
}

/// Asks several questions in one call: the answers as they were given, and as they were read.
fn answers(place: &Place, args: &[&str], n: u64) -> (Vec<Value>, Vec<Result<Answer, String>>) {
    let (code, found) = place.json(&[&["bisect", "run"], args].concat());
    let items = found.get("items").and_then(Value::as_array).unwrap_or_else(|| panic!("{found}"));
    let exit = |item: &Value| match text(item, "outcome").as_str() {
        "onset" | "initial" => 0,
        "never" => 1,
        _ => 6,
    };
    assert_eq!(items.iter().map(exit).max(), Some(code), "the worst exit code counts");
    let read = items.iter().map(|item| of_bisect(item, exit(item), n)).collect();
    (items.iter().cloned().collect(), read)
}

/// Reads an answer of bisect, and checks what must be true of any.
fn of_bisect(found: &Value, code: i32, n: u64) -> Result<Answer, String> {
    let outcome = text(found, "outcome");
    let onset = found.get("onset").and_then(Value::as_u64);
    let (expected, recovers, intervals) = match (&*outcome, onset) {
        ("never", None) => (1, false, Vec::new()),
        ("onset" | "initial", Some(onset)) => (0, false, vec![[onset, n]]),
        ("recovers", None) => (6, true, stretches_of_turns(found, n)),
        _ => return Err(format!("exit code {code}: {found}")),
    };
    if code != expected {
        return Err(format!("{outcome} with exit code {code}, expected {expected}"));
    }
    // Halving n ticks takes at most ceil(log2 n) probes after the two ends.
    let probes = found.get("items").and_then(Value::as_array).map_or(0, |items| items.len());
    let most = (0..).find(|power| 1_u64 << power >= n).unwrap_or(0);
    if probes > most {
        return Err(format!("{probes} probes for {n} ticks"));
    }
    Ok(Answer { onset, recovers, intervals })
}

/// The stretches of violation between the ticks at which a verdict turned.
fn stretches_of_turns(found: &Value, n: u64) -> Vec<[u64; 2]> {
    let mut stretches: Vec<[u64; 2]> = Vec::new();
    let mut open = None;
    for turn in found.get("ticks").and_then(Value::as_array).unwrap().iter() {
        let tick = turn.get("tick").and_then(Value::as_u64).unwrap();
        match (text(turn, "verdict").as_str(), open) {
            ("violation", None) => open = Some(tick),
            ("ok", Some(from)) => {
                stretches.push([from, tick - 1]);
                open = None;
            }
            (verdict, _) => panic!("{verdict} at tick {tick} is no turn"),
        }
    }
    stretches.extend(open.map(|from| [from, n]));
    stretches
}

/// The stretches of violation that `predicate test` lists.
fn stretches(tested: &Value) -> Vec<[u64; 2]> {
    let intervals = tested.get("intervals").and_then(Value::as_array).unwrap();
    let violated = intervals.iter().filter(|interval| at(interval, 2).as_str() == Some("violation"));
    let end = |interval: &Value, end| at(interval, end).as_u64().unwrap();
    violated.map(|interval| [end(interval, 0), end(interval, 1)]).collect()
}

/// The ticks that wrote at a path of the state.
pub(super) fn ticks_that_wrote(place: &Place, path: &str) -> Vec<u64> {
    let log = place.ok(&["log", "run", "--path", path, "--jsonl", "-n", "0", "--fields", "tick"]);
    let items = log.lines().map(|line| json::parse_tagged(line.as_bytes()).unwrap());
    items.filter_map(|item| item.get("tick").and_then(Value::as_u64)).filter(|tick| *tick > 0).collect()
}

/// SHA-256 of the canonical JSON of what stands at a path after a tick.
pub(super) fn hash_of(place: &Place, tick: u64, path: &str) -> String {
    let (code, said) = place.json(&["state", &format!("run@{tick}"), "--path", path]);
    assert_eq!(code, 0, "{said}");
    hex(digest(&SHA256, &json::to_vec(said.get("value").unwrap())).as_ref())
}
