//! What traces of spans have in common: a line for each tick, sums, and files that are damaged.

use std::io::Cursor;
use std::time::{Duration, Instant};

use dendrer::kernel::step::Start;
use dendrer_object::{Record, Value};
use dendrer_wire::import::{Choice, ImportError, ImportOptions, ImportPlan, plan};

use crate::{import, of, shown};

/// What a tick is, in one line: type, agent, words, calls, what it answers, how that went, tokens and cost, notes.
pub(crate) fn line(records: &[Record], tick: usize) -> String {
    let value = shown(records, tick);
    let at = |path: &[&str]| path.iter().try_fold(&value, |value, name| value.get(name)).cloned();
    let text = |path: &[&str]| at(path).map(|value| value.to_string()).unwrap_or_default();
    let kind = at(&["type"]).unwrap().as_str().unwrap().to_owned();
    let mut said = format!("{kind} {}", at(&["agent_id"]).unwrap().as_str().unwrap());
    if let Some(content) = at(&["intent", "content"]).filter(|content| *content != Value::Null) {
        said += &format!(" {content}");
    }
    let one = at(&["action"]).filter(|_| at(&["action", "tool"]).is_some());
    let several = at(&["action", "calls"]).and_then(|calls| calls.as_array().cloned());
    for call in
        one.into_iter().chain(several.into_iter().flat_map(|calls| calls.iter().cloned().collect::<Vec<_>>()))
    {
        let part = |name: &str| call.get(name).map(Value::to_string).unwrap_or_default();
        said += &format!(
            " {}({})#{}",
            part("tool").trim_matches('"'),
            part("params"),
            part("call_id").trim_matches('"')
        );
    }
    if let Some(cause) = at(&["caused_by"]) {
        said += &format!(" <-{cause}");
    }
    if kind == "action.result" {
        said +=
            &format!(" = {} {}", text(&["result", "output"]), text(&["result", "status"]).trim_matches('"'));
        said += &at(&["result", "error"]).map(|error| format!(" {error}")).unwrap_or_default();
    }
    for (name, mark) in [("tokens_used", "t"), ("cost_usd", "$")] {
        if let Some(metric) = at(&["metrics", name]).filter(|metric| *metric != Value::Null) {
            said += &format!(" {mark}{metric}");
        }
    }
    for note in at(&["anomalies"]).iter().filter_map(Value::as_array).flat_map(|notes| notes.iter()) {
        let kind = note.get("kind").unwrap().as_str().unwrap();
        if kind != "ordered_by_time" {
            said += &format!(" !{kind}");
        }
        if let Some(may) = note.get("may").and_then(Value::as_array) {
            said += &format!("{}", Value::Array(may.clone())).replace('"', "");
        }
    }
    said
}

pub(crate) fn lines(records: &[Record]) -> Vec<String> {
    (1..records.len()).map(|tick| line(records, tick)).collect()
}

/// Imports a source and compares each tick with its line.
pub(crate) fn check(kind: &str, source: &str, expected: &[&str]) -> ImportPlan {
    let (plan, records) = import(source.as_bytes(), of(kind)).unwrap();
    let found = lines(&records);
    assert_eq!(found, expected, "{}", found.join("\n"));
    plan
}

/// Tokens that all ticks state; `None` from a model without any on.
pub(crate) fn tokens(records: &[Record]) -> Option<u64> {
    let mut sum = 0;
    for tick in 1..records.len() {
        let value = shown(records, tick);
        match value.get("metrics").and_then(|metrics| metrics.get("tokens_used")) {
            None => {}
            Some(tokens) => sum += tokens.as_u64()?,
        }
    }
    Some(sum)
}

pub(crate) fn indexed(kind: &str, index: u64) -> ImportOptions {
    ImportOptions { choice: Choice { index: Some(index), ..Choice::default() }, ..of(kind) }
}

/// Cuts a source at many places, and changes each of its values for one of another type: it is imported with gaps, or refused.
pub(crate) fn damaged(kind: &str, source: &str, step: usize) {
    for end in (1..source.len()).step_by(step).filter(|end| source.is_char_boundary(*end)) {
        match import(&source.as_bytes()[..end], of(kind)) {
            Ok((plan, _)) => assert!(
                plan.layout.is_cut
                    || plan.tally.gaps() > 0
                    || source[end..].trim().is_empty()
                    || source[..end].ends_with(['\n', '}']),
                "{end}"
            ),
            Err(error) => assert!(!matches!(error, ImportError::Repository(_)), "{end}: {error}"),
        }
    }
    let value = dendrer_object::json::parse_door(source.lines().next().unwrap().as_bytes()).unwrap();
    let mut count = 0;
    for other in ["null", "7", "-1.5", "\"x\"", "[]", "{}", "[[1]]", "{\"a\":[null]}", "true"] {
        let other = dendrer_object::json::parse_door(other.as_bytes()).unwrap();
        let mut at = 0;
        while let Some(changed) = changed(&value, &mut at.clone(), &other) {
            count += 1;
            let text = changed.to_string();
            if let Err(error) = import(text.as_bytes(), of(kind)) {
                assert!(!matches!(error, ImportError::Repository(_)), "{text}: {error}");
            }
            at += 1;
        }
    }
    assert!(count > 100, "{count}");
}

/// The value with the one at a place in depth-first order in its stead; `None` if there are not so many.
pub(crate) fn changed(value: &Value, at: &mut usize, other: &Value) -> Option<Value> {
    if *at == 0 {
        return Some(other.clone());
    }
    *at -= 1;
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(new) = changed(item, at, other) {
                    let mut items = items.clone();
                    items.set(index, new);
                    return Some(Value::Array(items));
                }
            }
            None
        }
        Value::Object(members) => {
            for (name, member) in members.iter() {
                if let Some(new) = changed(member, at, other) {
                    let mut members = members.clone();
                    members.set(name, new);
                    return Some(Value::Object(members));
                }
            }
            None
        }
        _ => None,
    }
}

/// Plans the import of a large source within bounded time.
pub(crate) fn large(kind: &str, source: &str) -> ImportPlan {
    let start = Instant::now();
    let run = Start::new("r".parse().unwrap());
    let plan = plan(&mut Cursor::new(source), of(kind), run).unwrap();
    assert!(start.elapsed() < Duration::from_secs(240), "{:?}", start.elapsed());
    plan
}

#[test]
fn the_examples_of_traces_hold() {
    for kind in ["otlp", "langsmith", "langfuse", "inspect"] {
        let blocks = crate::examples::blocks(&format!("import-{kind}"));
        assert_eq!(blocks.len(), 1, "{kind}");
        let (expected, source): (Vec<&str>, Vec<&str>) =
            blocks[0].iter().map(String::as_str).partition(|line| line.starts_with("=> "));
        let expected: Vec<&str> = expected.iter().map(|line| &line[3..]).collect();
        check(kind, &source.join("\n"), &expected);
    }
}
