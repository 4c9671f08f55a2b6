//! What the program answers, by its documents alone.

use dendrer_object::digest::hex;
use dendrer_object::{Value, json};
use ring::digest::{SHA256, digest};

use crate::support::Place;

/// The answer to one question.
pub(super) struct Asked {
    /// Every maximal stretch of violation, ends included.
    pub(super) intervals: Vec<[u64; 2]>,
    /// Whether the predicate is ok again after a violation, so that there is no onset to bisect for.
    pub(super) recovers: bool,
}

/// Bisects the run, and checks what must be true of any answer.
pub(super) fn ask(place: &Place, form: &[&str], n: u64) -> Result<Asked, String> {
    let (code, found) = place.json(&[&["bisect", "run"], form].concat());
    let outcome = found.get("outcome").and_then(Value::as_str).unwrap_or_default();
    let onset = found.get("onset").and_then(Value::as_u64);
    let said = |expected: i32, intervals, recovers| match code == expected {
        true => Ok(Asked { intervals, recovers }),
        false => Err(format!("{outcome} with exit code {code}, expected {expected}")),
    };
    match (outcome, onset) {
        ("never", None) => said(1, Vec::new(), false),
        ("onset" | "initial", Some(onset)) => {
            // Halving n ticks takes at most ceil(log2 n) probes after the two ends.
            let probes = found.get("items").and_then(Value::as_array).map_or(0, |items| items.len());
            let most = (0..).find(|power| 1_u64 << power >= n).unwrap_or(0);
            if probes > most {
                return Err(format!("{probes} probes for {n} ticks"));
            }
            said(0, vec![[onset, n]], false)
        }
        ("recovers", None) => said(6, intervals_of_turns(&found, n), true),
        _ => Err(format!("exit code {code}: {found}")),
    }
}

/// The stretches of violation between the ticks at which a verdict turned.
fn intervals_of_turns(found: &Value, n: u64) -> Vec<[u64; 2]> {
    let mut intervals: Vec<[u64; 2]> = Vec::new();
    let mut open = None;
    for turn in found.get("ticks").and_then(Value::as_array).unwrap().iter() {
        let tick = turn.get("tick").and_then(Value::as_u64).unwrap();
        match (turn.get("verdict").and_then(Value::as_str).unwrap(), open) {
            ("violation", None) => open = Some(tick),
            ("ok", Some(from)) => {
                intervals.push([from, tick - 1]);
                open = None;
            }
            (verdict, _) => panic!("{verdict} at tick {tick} is no turn"),
        }
    }
    intervals.extend(open.map(|from| [from, n]));
    intervals
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
