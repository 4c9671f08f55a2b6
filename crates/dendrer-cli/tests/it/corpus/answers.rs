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

/// Asks one question. Where the predicate recovers, bisect must refuse; then the first onset is that of the lifted
/// predicate, and the stretches are those of `predicate test`.
pub(super) fn ask(place: &Place, form: [&str; 2], n: u64) -> Result<Answer, String> {
    let (code, found) = place.json(&["bisect", "run", form[0], form[1]]);
    let answer = of_bisect(&found, code, n)?;
    if !answer.recovers {
        return Ok(answer);
    }
    let (code, lifted) = place.json(&["bisect", "run", form[0], form[1], "--lift"]);
    let lifted = of_bisect(&lifted, code, n)?;
    let mut test = vec!["predicate", "test", form[1], "run"];
    test.extend((form[0] == "--holds").then_some("--holds"));
    let (code, tested) = place.json(&test);
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
    let (code, found) = place.json(&["bisect", "run", "--all-of", pack]);
    let items = found.get("items").and_then(Value::as_array).unwrap_or_else(|| panic!("{found}"));
    let exit = |item: &Value| match text(item, "outcome").as_str() {
        "onset" | "initial" => 0,
        "never" => 1,
        _ => 6,
    };
    assert_eq!(items.iter().map(exit).max(), Some(code), "the worst exit code counts");
    let named = |item: &Value| {
        let answer = of_bisect(item, exit(item), n);
        let answer = answer.map(|answer| Answer {
            onset: answer.onset.or(answer.intervals.first().map(|first| first[0])),
            ..answer
        });
        (text(item.get("predicate").unwrap(), "name"), answer)
    };
    items.iter().map(named).collect()
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
