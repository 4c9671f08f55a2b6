//! Threads of checkpoints as they are compared: without the ids of checkpoints, tasks, messages, calls and interrupts, without places of the
//! vault, and in the order of the checkpoints. A framework makes each of these anew, and writes while it runs.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_object::delta::Op;
use dendrer_object::value::Object;
use dendrer_object::{MESSAGES, Pointer, Value, tag};

use crate::error::Error;
use crate::run::thread::{PLACES, is_internal, is_of_thread, plain_namespace};
use crate::run::trace::Trace;

/// Members of the metadata of a checkpoint that name checkpoints and runs.
const NAMES: [&str; 8] = [
    "checkpoint_id",
    "checkpoint_map",
    "checkpoint_ns",
    "langgraph_checkpoint_ns",
    "parents",
    "run_id",
    "thread_id",
    "thread_ts",
];

/// Members of a message that name it, pair it, or give its cost.
const OF_MESSAGE: [&str; 4] = ["id", "tool_call_id", "usage", "usage_metadata"];

/// Members of the answer of a model's interface that name the answer, or give its time and cost.
const OF_ANSWER: [&str; 9] = [
    "created",
    "created_at",
    "eval_duration",
    "id",
    "load_duration",
    "prompt_eval_duration",
    "request_id",
    "token_usage",
    "total_duration",
];

/// The ticks of a range of a thread in the order of its checkpoints, each with its writes; `None` for any other run.
pub(super) fn order(trace: &Trace, from: u64, to: u64) -> Result<Option<Vec<u64>>, Error> {
    let mut keys: Vec<(String, bool, String, u64)> = Vec::new();
    let mut is_thread = false;
    trace.for_each(from, to, &mut |tick, record| {
        let about = |name: &str, member: &str| {
            record.body().value(&format!("/intent/{name}"))?.get(member)?.as_str().map(str::to_owned)
        };
        let own = is_of_thread(&record);
        is_thread |= own;
        let put = about("checkpoint", "id").filter(|_| own).map(|id| (id, false, String::new()));
        let write = about("writes", "checkpoint").filter(|_| own);
        let write = write.map(|id| (id, true, about("writes", "path").unwrap_or_default()));
        // Any other record stays after the one before it.
        let before = || keys.last().map(|(id, writes, path, _)| (id.clone(), *writes, path.clone()));
        let (id, writes, path) = put.or(write).or_else(before).unwrap_or_default();
        keys.push((id, writes, path, tick));
        // One that is of no thread has none in a run of one but for markers.
        if is_thread || keys.len() < 8 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if !is_thread {
        return Ok(None);
    }
    keys.sort();
    Ok(Some(keys.into_iter().map(|(_, _, _, tick)| tick).collect()))
}

/// Takes out of the content of a put or a write what only places and names it.
pub(super) fn content(members: &mut Object, asked: Option<&Pointer>, left_out: &mut BTreeSet<Pointer>) {
    let is_asked = |place: &Pointer| asked.is_some_and(|asked| place.contains(asked));
    if let Some(mut intent) = members.get("intent").and_then(Value::as_object).cloned() {
        for name in PLACES {
            let place = Pointer::of(["intent", name]);
            if !is_asked(&place) && intent.remove(name).is_some() {
                left_out.insert(place);
            }
        }
        if let Some(mut metadata) = intent.get("metadata").and_then(Value::as_object).cloned() {
            for name in NAMES {
                let place = Pointer::of(["intent", "metadata", name]);
                if !is_asked(&place) && metadata.remove(name).is_some_and(|value| !is_empty(&value)) {
                    left_out.insert(place);
                }
            }
            intent.set("metadata", Value::Object(metadata));
        }
        if let Some(values) = intent.get("values").map(|values| bare(values, asked)) {
            intent.set("values", values);
        }
        members.set("intent", Value::Object(intent));
    }
    // The channels and the writes say what the messages say. Which transition lists one first depends on when each is written.
    if !is_asked(&Pointer::of([MESSAGES])) {
        members.remove(MESSAGES);
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Object::is_empty) || *value == Value::Null
}

/// A change of the state, without ids in its place and in its value.
pub(super) fn op(op: Op, asked: Option<&Pointer>) -> Op {
    let tokens: Vec<_> = op.path.tokens().collect();
    let path = match tokens.as_slice() {
        [first, namespace, rest @ ..] if *first == "subgraphs" => {
            let namespace = tag::stored_name(&plain_namespace(tag::user_name(namespace)));
            let rest = rest.iter().map(|token| &**token);
            Pointer::of(["subgraphs", &*namespace].into_iter().chain(rest))
        }
        _ => op.path.clone(),
    };
    Op { path, value: op.value.map(|value| bare(&value, asked)), ..op }
}

/// A state without the ids in it. Namespaces that differ in the ids of tasks alone are numbered, in the order of what they hold.
pub(super) fn state(members: &mut Object, asked: Option<&Pointer>) {
    if let Some(values) = members.get("values").map(|values| bare(&of_graph(values), asked)) {
        members.set("values", values);
    }
    let Some(subgraphs) = members.get("subgraphs").and_then(Value::as_object) else { return };
    let mut found: Vec<(String, Value)> = subgraphs
        .iter()
        .map(|(name, value)| (plain_namespace(tag::user_name(name)), bare(&of_graph(value), asked)))
        .collect();
    found.sort_by_cached_key(|(name, value)| (name.clone(), value.to_string()));
    let mut plain = Object::default();
    for (name, value) in found {
        let number = (1..).map(|number| if number == 1 { name.clone() } else { format!("{name}#{number}") });
        let free = number.map(|name| tag::stored_name(&name)).find(|name| !plain.contains_key(name));
        plain.set(&free.expect("some number is free"), value);
    }
    members.set("subgraphs", Value::Object(plain));
}

/// Channels without those of the framework, which lead to nodes.
fn of_graph(channels: &Value) -> Value {
    let Value::Object(members) = channels else { return channels.clone() };
    Value::record(members.iter().filter_map(|(name, value)| {
        (!is_internal(tag::user_name(name))).then(|| (Arc::clone(name), value.clone()))
    }))
}

/// A value without the ids of messages, calls and interrupts in it, unless one of them is asked for.
pub(super) fn bare(value: &Value, asked: Option<&Pointer>) -> Value {
    let last = asked.and_then(|asked| asked.tokens().last().map(|last| last.into_owned()));
    let is_asked = last.is_some_and(|last| OF_MESSAGE.contains(&&*last) || OF_ANSWER.contains(&&*last));
    if is_asked { value.clone() } else { without_ids(value) }
}

fn without_ids(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::array(items.iter().map(without_ids)),
        Value::Object(members) => {
            let mut bare = Object::default();
            let (is_message, is_part) = (is_message(members), is_part(members));
            for (name, member) in members.iter() {
                match &**name {
                    name if is_message && OF_MESSAGE.contains(&name) => {}
                    "id" | "tool_use_id" | "tool_call_id" if is_part => {}
                    "response_metadata" if is_message => bare.set(name, without(member, &OF_ANSWER)),
                    "value" if is_write_of_interrupts(members) => {
                        let each = member.as_array().into_iter().flat_map(|list| list.iter());
                        bare.set(name, Value::array(each.map(|one| without(one, &["id"]))));
                    }
                    _ => bare.set(name, without_ids(member)),
                }
            }
            Value::Object(bare)
        }
        _ => value.clone(),
    }
}

/// Whether an object is a write of interrupts: their ids are made of the id of the task.
fn is_write_of_interrupts(members: &Object) -> bool {
    members.get("channel").and_then(Value::as_str) == Some("__interrupt__")
        && members.get("value").is_some_and(|value| value.as_array().is_some())
}

fn is_message(members: &Object) -> bool {
    let is_text = |name: &str| members.get(name).is_some_and(|value| value.as_str().is_some());
    let is_marked = || members.contains_key("additional_kwargs") || members.contains_key("response_metadata");
    members.contains_key("content") && (is_text("type") && is_marked() || is_text("role"))
        || members.contains_key("tool_calls") && is_text("role")
}

/// Whether an object is a call, or a part of a content with one or its result.
fn is_part(members: &Object) -> bool {
    let kind = members.get("type").and_then(Value::as_str);
    let kinds = ["tool_call", "invalid_tool_call", "tool_use", "tool_result", "function", "tool_call_chunk"];
    kind.is_some_and(|kind| kinds.contains(&kind))
        || members.contains_key("name") && members.contains_key("args")
}

fn without(value: &Value, names: &[&str]) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let mut members = members.clone();
    names.iter().for_each(|name| drop(members.remove(name)));
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    #[test]
    fn ids_of_messages_are_left_out_and_those_of_data_are_not() {
        for (text, expected) in [
            (
                r#"[{"type":"ai","content":[{"type":"tool_use","id":"c","name":"t"}],"id":"1","additional_kwargs":{},"tool_calls":[{"name":"t","args":{"id":7},"id":"c","type":"tool_call"}],
                "response_metadata":{"id":"x","model":"m"},"usage_metadata":{"total_tokens":3}}]"#,
                r#"[{"additional_kwargs":{},"content":[{"name":"t","type":"tool_use"}],"response_metadata":{"model":"m"},"tool_calls":[{"args":{"id":7},"name":"t","type":"tool_call"}],"type":"ai"}]"#,
            ),
            (r#"{"id":"17","type":"order","usage":3}"#, r#"{"id":"17","type":"order","usage":3}"#),
            (
                r#"{"channel":"__interrupt__","value":[{"id":"a","value":"go?"}]}"#,
                r#"{"channel":"__interrupt__","value":[{"value":"go?"}]}"#,
            ),
        ] {
            assert_eq!(bare(&parse_door(text.as_bytes()).unwrap(), None).to_string(), expected);
        }
        assert_eq!(plain_namespace("quoter:1f|inner:2e"), "quoter|inner");
    }

    #[test]
    fn namespaces_that_differ_in_ids_alone_are_numbered_by_what_they_hold() {
        let text = r#"{"subgraphs":{"a:1":{"n":2},"a:2":{"n":1},"b":{"n":3}}}"#;
        let value = parse_door(text.as_bytes()).unwrap();
        let mut members = value.as_object().unwrap().clone();
        state(&mut members, None);
        let expected = r#"{"subgraphs":{"a":{"n":1},"a#2":{"n":2},"b":{"n":3}}}"#;
        assert_eq!(Value::Object(members).to_string(), expected);
    }
}
