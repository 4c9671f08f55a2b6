//! Members and parts that no table has, at random places of a written conversation: what is read of the rest stays as it is, or a
//! note names the place and what depends on it is unknown.

use dendrer_object::json::parse_door;
use dendrer_object::value::Object;
use dendrer_object::{Record, Value};
use dendrer_wire::import::ImportPlan;

use super::facts::{counters, kinds};
use super::model::{Dice, Ids, Model};
use super::{Write, Written, many};
use crate::shown;

/// Names of members that hold what a program gave to a tool or got from it, and settings: nothing in them is looked through.
const DATA: &[&str] = &[
    "arguments",
    "args",
    "input",
    "inputs",
    "output",
    "outputs",
    "params",
    "response",
    "result",
    "toolUseResult",
    "usage",
    "usage_metadata",
    "metadata",
    "response_metadata",
    "token_usage",
    "totalUsage",
    "extra",
    "tools",
    "snapshot",
    "attributes",
    "status",
    "resource",
    "scope",
    "usageDetails",
    "costDetails",
    "info",
    "source",
    "error",
    "action",
    "value",
    "rawInput",
    "instructions",
    "sandbox_policy",
    "kwargs",
    "lc",
    "input_tokens_details",
    "output_tokens_details",
    "approval",
    "summary",
    "usage_details",
    "cost_details",
    "trace",
    "llm_output",
];

/// A word at the end of a name, a value that fits it, and whether a table must name it.
fn member(dice: &mut Dice) -> (&'static str, Value, bool) {
    let (word, value, tells) = dice.one(&[
        ("tool", r#"[{"x":1}]"#, true),
        ("calls", r#"{"a":{"x":1}}"#, true),
        ("function", r#"[{"name":"wipe","arguments":{}}]"#, true),
        ("usage", r#"{"x":7}"#, true),
        ("tokens", "7", true),
        ("cost_usd", "0.5", true),
        ("error", r#"{"code":3}"#, true),
        ("response", r#"[{"x":1}]"#, true),
        ("agent", r#""zoe""#, true),
        ("speaker", r#""zoe""#, true),
        ("thing", r#"{"deep":[{"name":"wipe","arguments":"{}"}]}"#, true),
        ("thing", r#"{"input_tokens":9,"output_tokens":1}"#, true),
        ("tool", "null", false),
        ("calls", "[]", false),
        ("usage", "0", false),
        ("error", "null", false),
        ("agent", "7", false),
        ("colour", r#""blue""#, false),
        ("label", r#"{"a":[1,null,"x"]}"#, false),
        ("status_line", r#""x""#, false),
        ("flag", "true", false),
    ]);
    (word, parse_door(value.as_bytes()).unwrap(), tells)
}

/// A name that no table has.
fn name(dice: &mut Dice, word: &str) -> String {
    let letters: String = (0..3).map(|_| char::from(b'a' + dice.below(20) as u8)).collect();
    match dice.below(3) {
        0 => format!("q{letters}_{word}"),
        1 => format!("q{letters}-{word}"),
        _ => format!("q{letters}{}{}", word[..1].to_uppercase(), &word[1..]),
    }
}

/// Whether a member of an object holds data.
fn is_data(object: &Object, name: &str) -> bool {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_result = text("type").ends_with("tool_result") || text("role") == "tool";
    DATA.contains(&name) || (name == "content" && is_result)
}

/// How many objects there are in a value, but for those in data.
fn objects(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(objects).sum(),
        Value::Object(members) => {
            let inside = members.iter().filter(|(name, _)| !is_data(members, name));
            1 + inside.map(|(_, value)| objects(value)).sum::<usize>()
        }
        _ => 0,
    }
}

/// Changes the object of a number.
fn change(value: &Value, at: &mut usize, with: &mut dyn FnMut(&mut Object)) -> Value {
    match value {
        Value::Array(items) => Value::array(items.iter().map(|item| change(item, at, with))),
        Value::Object(members) => {
            let mut made = members.clone();
            if *at == 0 {
                with(&mut made);
            }
            *at = at.wrapping_sub(1);
            let all = made.clone();
            for (name, value) in all.iter().filter(|(name, _)| !is_data(&all, name)) {
                made.set(name, change(value, at, with));
            }
            Value::Object(made)
        }
        other => other.clone(),
    }
}

/// Whether an object states something: an item, a part or a call, and no list of them.
fn is_item(object: &Object) -> bool {
    ["role", "type", "uuid", "run_type", "spanId", "function", "payload"]
        .iter()
        .any(|name| object.contains_key(name))
        && !["messages", "resourceSpans", "key"].iter().any(|name| object.contains_key(name))
        && object.get("role").and_then(Value::as_str) != Some("system")
        && !object.get("type").and_then(Value::as_str).is_some_and(|kind| KEPT.contains(&kind))
}

/// Lines and payloads that state nothing, by their types.
const KEPT: &[&str] = &[
    "turn_context",
    "event_msg",
    "session_meta",
    "task_started",
    "user_message",
    "agent_message",
    "token_count",
    "exec_command_end",
    "mcp_tool_call_end",
    "file-history-snapshot",
    "queue-operation",
    "summary",
];

/// The parts of a message, if it has a list of them.
fn parts(object: &Object) -> Option<(&'static str, Vec<Value>)> {
    if !object.contains_key("role") || object.get("role").and_then(Value::as_str) == Some("system") {
        return None;
    }
    ["content", "parts"].into_iter().find_map(|list| {
        let parts: Vec<Value> = object.get(list)?.as_array()?.iter().cloned().collect();
        (!is_data(object, list)).then_some((list, parts))
    })
}

/// The facts of each tick that a part which was not read must not change.
fn facts(records: &[Record]) -> Vec<String> {
    let one = |tick| {
        let shown = shown(records, tick);
        let at = |path: &[&str]| {
            let found = path.iter().try_fold(&shown, |value, name| value.get(name));
            found.map(Value::to_string).unwrap_or_default()
        };
        let calls =
            shown.get("action").and_then(|action| action.get("calls")).and_then(Value::as_array).cloned();
        let calls: Vec<String> = calls
            .iter()
            .flat_map(|calls| calls.iter())
            .map(|call| format!("{:?}{:?}", call.get("tool"), call.get("params")))
            .collect();
        [
            &at(&["type"]),
            &at(&["caused_by"]),
            &at(&["action", "tool"]),
            &at(&["action", "params"]),
            &calls.join(","),
            &at(&["result", "status"]),
            &at(&["metrics", "tokens_used"]),
            &at(&["agent_id"]),
        ]
        .map(|text| text.as_str())
        .join(" ")
    };
    (1..records.len()).map(one).collect()
}

/// How many notes there are of what is not read.
fn unread(records: &[Record]) -> usize {
    (1..records.len())
        .map(|tick| kinds(&shown(records, tick)).iter().filter(|kind| **kind == "not_read").count())
        .sum()
}

const COUNTED: [&str; 6] = ["tool_calls", "tool_errors", "tokens_used", "cost_usd", "last_tool", "by_agent"];

/// What became of an addition.
#[derive(PartialEq, Debug)]
enum Became {
    Nothing,
    Noted,
    Read,
}

/// Compares an import with that of the same conversation without the addition.
fn compare(base: &[Record], (plan, records): (ImportPlan, Vec<Record>), named: &str) -> Became {
    let is_noted = unread(&records) > unread(base);
    let (was, is) = (counters(base), counters(&records));
    let changed: Vec<&str> = COUNTED
        .into_iter()
        .filter(|name| is.get(name).is_some_and(|now| was.get(name) != Some(now)))
        .collect();
    let is_read = plan.tally.places.iter().any(|(place, one)| place.contains(named) && one.read > 0);
    let (before, after) = (facts(base), facts(&records));
    if is_read {
        // A member that names the speaker is read wherever it is: then nothing else changes.
        assert!(changed.is_empty() || changed == ["by_agent"], "{changed:?} by what was read");
        let cut = |lines: &[String]| -> Vec<String> {
            lines.iter().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
        };
        assert_eq!(cut(&before), cut(&after));
        return Became::Read;
    }
    // What is left of a message with an unknown part may be an item of its own.
    let is_more = is_noted && after.len() > before.len() && changed == ["by_agent"];
    assert!(changed.is_empty() || is_more, "{changed:?}: {was} and {is}");
    if !is_noted {
        assert_eq!(before, after);
        assert_eq!(was, is);
        return Became::Nothing;
    }
    Became::Noted
}

/// Adds members at random places of conversations, and compares.
pub(super) fn run(conversations: impl Fn(&mut Dice) -> Option<Written>, few: u64) {
    for seed in 0..many(few) {
        let mut dice = Dice(seed ^ 0xadd);
        let Some(written) = conversations(&mut dice) else { continue };
        // Another run of the same file is not read, and a copy with an addition is no copy.
        if written.may_fail.is_some() || written.choice.index.is_some() || written.text.contains("\"last\":")
        {
            continue;
        }
        let Ok((_, base)) = crate::import(written.text.as_bytes(), written.options()) else { continue };
        let is_lines = parse_door(written.text.as_bytes()).is_err();
        let values: Vec<&str> = if is_lines { written.text.lines().collect() } else { vec![&*written.text] };
        for _ in 0..3 {
            let place = dice.below(values.len() as u64) as usize;
            let value = parse_door(values[place].as_bytes()).unwrap();
            let count = objects(&value);
            let (word, added, tells) = member(&mut dice);
            let name = name(&mut dice, word);
            let mut must = false;
            let mut at = dice.below(count as u64) as usize;
            let front = dice.below(2) == 0;
            let changed =
                change(&value, &mut at, &mut |object| match parts(object).filter(|_| dice.below(2) == 0) {
                    Some((list, mut parts)) => {
                        must = true;
                        let part = Value::record([("type", Value::from(&*name)), ("x", added.clone())]);
                        parts.insert(if front { 0 } else { parts.len() }, part);
                        object.set(list, Value::array(parts));
                    }
                    None => {
                        must = tells && is_item(object);
                        object.set(&name, added.clone());
                    }
                });
            let mut lines: Vec<String> = values.iter().map(|line| (*line).to_owned()).collect();
            lines[place] = changed.to_string();
            let text = lines.join("\n");
            let check = || {
                let became =
                    compare(&base, crate::import(text.as_bytes(), written.options()).unwrap(), &name);
                assert!(!must || became != Became::Nothing, "{name} is silently kept");
            };
            let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
            assert!(found.is_ok(), "addition {seed} of {name}: {added} in {changed}");
        }
    }
}

/// Conversations of a way to write them.
pub(super) fn of(can: super::Can, write: Write) -> impl Fn(&mut Dice) -> Option<Written> {
    move |dice| {
        // A message that is there again with an addition is no repetition, and another speaker has other calls of an id.
        let model = Model::draw(dice, super::Can { again: false, ids: &[Ids::Unique], ..can });
        (!model.entries.is_empty())
            .then(|| write(dice, &model))
            .filter(|written| !written.main.list.is_empty())
    }
}
