//! Messages of a channel, in the form of an imported chat: role, content, calls, result, usage.
//!
//! A message is a model of `langchain_core.messages` as the serializer dumps it, its form in JSON, or an object with `role`. Which of them
//! is new, and who speaks, is decided by the recorder. Rule: a value that is not read as a message is never counted; if it may state calls, it is named.

use dendrer::checkpoint::{NotRead, ReadMessages};
use dendrer::object::value::Object;
use dendrer::object::{Value, json};

use crate::import::note::At;
use crate::import::{outcome, usage};

/// How deep messages are looked for in another value.
const DEPTH_MAX: usize = 24;

/// Types of messages, and the role of each.
const TYPES: [(&str, &str); 15] = [
    ("human", "user"),
    ("HumanMessage", "user"),
    ("ai", "assistant"),
    ("AIMessage", "assistant"),
    ("system", "system"),
    ("SystemMessage", "system"),
    ("tool", "tool"),
    ("ToolMessage", "tool"),
    ("function", "function"),
    ("FunctionMessage", "function"),
    ("chat", "chat"),
    ("ChatMessage", "chat"),
    ("remove", REMOVE),
    ("RemoveMessage", REMOVE),
    ("developer", "developer"),
];

/// Roles of an object that is a message without a type.
const ROLES: [&str; 10] =
    ["user", "human", "assistant", "ai", "model", "system", "developer", "tool", "function", "remove"];

/// The role of what takes a message out of a channel.
const REMOVE: &str = "remove";

/// Members that only models of LangChain have.
const MARKS: [&str; 2] = ["additional_kwargs", "response_metadata"];

/// Members of a short form with a type.
const SHORT: [&str; 4] = ["content", "id", "name", "type"];

/// Types of parts of a content that state a call.
const CALL_PARTS: [&str; 3] = ["tool_use", "tool_call", "function_call"];

/// Reads a value of a channel.
pub(super) fn read(value: &Value) -> ReadMessages {
    let mut found = ReadMessages::default();
    match value {
        Value::Array(items) => items.iter().for_each(|item| add(item, &mut found)),
        value => match overwritten(value) {
            Some(inner) => found = read(inner),
            None => add(value, &mut found),
        },
    }
    found
}

/// The value inside an `Overwrite`.
fn overwritten(value: &Value) -> Option<&Value> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    let inner = object.get("__overwrite__").or_else(|| object.get("value"))?;
    matches!(inner, Value::Array(_)).then_some(inner)
}

fn add(value: &Value, found: &mut ReadMessages) {
    match Message::of(value) {
        Some(message) => found.messages.push(message.formed(&mut found.not_read)),
        None => may_state(value, DEPTH_MAX, &mut found.not_read),
    }
}

/// Names what a value that is no message may state.
fn may_state(value: &Value, depth: usize, may: &mut Vec<NotRead>) {
    let Some(below) = depth.checked_sub(1) else { return };
    if let Some(message) = Message::of(value) {
        let formed = message.formed(&mut Vec::new());
        let id = formed.get("id").and_then(Value::as_str).map(Into::into);
        let states = [("calls", "calls"), ("result", "failures"), ("usage", "usage")];
        let stated = states.into_iter().filter(|(name, _)| match formed.get(name) {
            Some(usage) if *name == "usage" => {
                usage.get("tokens_used").is_some_and(|tokens| *tokens != Value::Null)
            }
            member => member.is_some(),
        });
        may.extend(stated.map(|(_, may)| NotRead { may, id: id.clone() }));
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| may_state(item, below, may)),
        Value::Object(object) => {
            let has_list = |name: &str| {
                object.get(name).and_then(Value::as_array).is_some_and(|calls| {
                    !calls.is_empty() && calls.iter().all(|call| call.as_object().is_some())
                })
            };
            let is_text = |name: &str| object.get(name).is_some_and(|value| value.as_str().is_some());
            let is_call = has_list("tool_calls")
                || object.get("function_call").is_some_and(|call| call.as_object().is_some())
                || is_text("tool") && object.get("tool_input").is_some();
            may.extend(is_call.then_some(NotRead { may: "calls", id: None }));
            object.iter().for_each(|(_, member)| may_state(member, below, may));
        }
        _ => {}
    }
}

/// A message: its members, and the role that they give.
struct Message<'m> {
    object: &'m Object,
    role: &'m str,
}

impl<'m> Message<'m> {
    fn of(value: &'m Value) -> Option<Message<'m>> {
        let object = value.as_object()?;
        let kind = object.get("type").and_then(Value::as_str);
        if kind == Some("constructor") {
            let class = object.get("id")?.as_array()?.iter().last()?.as_str()?;
            return Message::typed(object.get("kwargs")?.as_object()?, class);
        }
        if let (Some(kind), Some(data)) = (kind, object.get("data").and_then(Value::as_object)) {
            return Message::typed(data, kind).filter(|_| data.get("content").is_some());
        }
        let said = ["content", "tool_calls", "function_call"].iter().any(|name| object.get(name).is_some());
        if let Some(role) = object.get("role").and_then(Value::as_str).filter(|_| kind.is_none() || said) {
            let is_known = ROLES.iter().any(|known| known.eq_ignore_ascii_case(role)) || is_marked(object);
            if said && is_known {
                return Message::typed(object, kind.unwrap_or(role)).or(Some(Message { object, role }));
            }
        }
        let kind = kind.filter(|_| object.get("content").is_some())?;
        let is_short = |role: &str| !matches!(role, "tool" | "function" | "chat") && has_only(object, &SHORT);
        let states = || ["tool_calls", "tool_call_id"].iter().any(|name| object.get(name).is_some());
        Message::typed(object, kind).filter(|one| is_marked(object) || states() || is_short(one.role))
    }

    /// A message of a type, or of the class of one.
    fn typed(object: &'m Object, kind: &str) -> Option<Message<'m>> {
        let kind = kind.strip_suffix("Chunk").unwrap_or(kind);
        let role = TYPES.iter().find(|(known, _)| *known == kind).map(|(_, role)| *role)?;
        let own = object.get("role").and_then(Value::as_str).filter(|_| role == "chat");
        Some(Message { object, role: own.unwrap_or(role) })
    }

    fn text(&self, name: &str) -> Option<&'m str> {
        self.object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    fn is_result(&self) -> bool {
        ["tool", "function"].iter().any(|known| known.eq_ignore_ascii_case(self.role))
    }

    fn is_of_model(&self) -> bool {
        let others = ["user", "human", "system", "developer", REMOVE];
        !self.is_result() && !others.iter().any(|known| known.eq_ignore_ascii_case(self.role))
    }

    /// Puts the message into the form of an imported one.
    fn formed(&self, not_read: &mut Vec<NotRead>) -> Value {
        let role = match self.role {
            "human" => "user",
            "ai" | "model" => "assistant",
            role => role,
        };
        let mut members = vec![("role", Value::from(role))];
        members.extend(
            ["id", "name"].into_iter().filter_map(|name| Some((name, Value::from(self.text(name)?)))),
        );
        let content = self.object.get("content");
        members.extend(content.filter(|_| self.role != REMOVE).map(|content| ("content", content.clone())));
        if self.is_result() {
            members.push(("result", self.result(content)));
        }
        if self.is_of_model() {
            let calls = self.calls();
            members.extend((!calls.is_empty()).then(|| ("calls", Value::array(calls))));
            let [tokens, cost] = usage::of_message(self.object, None);
            let stated = |value: Option<Value>| value.unwrap_or(Value::Null);
            members.push((
                "usage",
                Value::record([("cost_usd", stated(cost)), ("tokens_used", stated(tokens))]),
            ));
        }
        let id = || self.text("id").map(Into::into);
        not_read.extend(self.unread_parts().into_iter().map(|may| NotRead { may, id: id() }));
        Value::record(members)
    }

    /// Names what parts of the content may state that is not read.
    fn unread_parts(&self) -> Vec<&'static str> {
        let mut may: Vec<&'static str> = Vec::new();
        for kind in self.parts().filter_map(|part| part.get("type")?.as_str()) {
            let is_read = self.is_of_model() && CALL_PARTS.contains(&kind);
            let word = match kind {
                _ if is_read => continue,
                kind if kind.ends_with("result") || kind.ends_with("output") && kind.contains("call") => {
                    "failures"
                }
                kind if kind.contains("tool") || kind.ends_with("call") => "calls",
                _ => continue,
            };
            may.extend((!may.contains(&word)).then_some(word));
        }
        may
    }

    fn parts(&self) -> impl Iterator<Item = &'m Value> {
        self.object.get("content").and_then(Value::as_array).into_iter().flat_map(|parts| parts.iter())
    }

    /// The calls, each once by its id: as LangChain lists them, those that it could not parse, and those of the source.
    fn calls(&self) -> Vec<Value> {
        let list = |value: Option<&'m Value>| {
            value.and_then(Value::as_array).into_iter().flat_map(|list| list.iter())
        };
        let beside = self.object.get("additional_kwargs");
        let parts = self.parts();
        let parts = parts.filter(|part| {
            part.get("type").and_then(Value::as_str).is_some_and(|kind| CALL_PARTS.contains(&kind))
        });
        let listed = list(self.object.get("tool_calls")).chain(list(self.object.get("invalid_tool_calls")));
        let raw = list(beside.and_then(|beside| beside.get("tool_calls")));
        let mut calls: Vec<Value> = Vec::new();
        for call in listed.chain(raw).chain(parts).filter_map(formed_call) {
            let id = call.get("call_id");
            let is_known = match id {
                Some(id) => calls.iter().any(|known| known.get("call_id") == Some(id)),
                None => {
                    calls.iter().any(|known| known.get("tool") == call.get("tool")) && calls.contains(&call)
                }
            };
            calls.extend((!is_known).then_some(call));
        }
        let single = [Some(self.object), beside.and_then(Value::as_object)].into_iter().flatten();
        let single =
            single.filter_map(|object| object.get("function_call").filter(|call| call.as_object().is_some()));
        if calls.is_empty() {
            calls.extend(single.filter_map(formed_call).take(1));
        }
        calls
    }

    /// The result, with the status that the message states, or that its content does.
    fn result(&self, content: Option<&Value>) -> Value {
        let at = At { list: "", number: None, part: None, within: "" };
        let outcome = outcome::of_message(self.object, content, at, &mut Vec::new());
        let call = self.text("tool_call_id").or_else(|| self.text("call_id"));
        let members = [
            ("call_id", call.map(Value::from)),
            ("status", outcome.status().map(Value::from)),
            ("status_from", outcome.status().map(|_| Value::from(outcome.from()))),
            ("tool", self.text("name").map(Value::from)),
        ];
        Value::record(members.into_iter().filter_map(|(name, value)| Some((name, value?))))
    }
}

fn is_marked(object: &Object) -> bool {
    MARKS.iter().any(|name| object.get(name).is_some_and(|value| value.as_object().is_some()))
}

fn has_only(object: &Object, names: &[&str]) -> bool {
    object.iter().all(|(name, _)| names.contains(&&**name))
}

/// Reads one call: the tool, its parameters and its id.
fn formed_call(call: &Value) -> Option<Value> {
    let object = call.as_object()?;
    let holder = object.get("function").and_then(Value::as_object).unwrap_or(object);
    let tool = holder.get("name").and_then(Value::as_str);
    let given = ["args", "arguments", "input"].iter().find_map(|name| holder.get(name));
    let parsed = given.and_then(Value::as_str).map(|text| json::parse_door(text.as_bytes()).ok());
    let is_text = matches!(parsed, Some(None));
    let params = parsed.flatten().or_else(|| given.cloned());
    let id = object.get("id").or_else(|| object.get("call_id")).filter(|id| **id != Value::Null);
    let members = [
        ("call_id", id.cloned()),
        ("params", params),
        ("params_are_text", is_text.then_some(Value::Bool(true))),
        ("tool", tool.map(Value::from)),
    ];
    Some(Value::record(members.into_iter().filter_map(|(name, value)| Some((name, value?)))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer::object::json::parse_door;

    fn formed(text: &str) -> String {
        let found = read(&parse_door(text.as_bytes()).unwrap());
        let may: Vec<&str> = found.not_read.iter().map(|one| one.may).collect();
        format!("{} {may:?}", Value::array(found.messages))
    }

    #[test]
    fn messages_have_the_form_of_a_chat() {
        for (text, expected) in [
            (
                r#"[{"additional_kwargs":{},"content":"Pay 3","id":"h1","name":null,"response_metadata":{},"type":"human"}]"#,
                r#"[{"content":"Pay 3","id":"h1","role":"user"}] []"#,
            ),
            (
                r#"{"additional_kwargs":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"pay","arguments":"{\"n\":3}"}}]},
                "content":"","id":"a1","invalid_tool_calls":[{"name":"look","args":"{n","id":"c2","error":"x"}],"response_metadata":{},
                "tool_calls":[{"name":"pay","args":{"n":3},"id":"c1","type":"tool_call"}],"type":"ai",
                "usage_metadata":{"input_tokens":6000,"output_tokens":100,"total_tokens":6100}}"#,
                r#"[{"calls":[{"call_id":"c1","params":{"n":3},"tool":"pay"},{"call_id":"c2","params":"{n","params_are_text":true,"tool":"look"}],"content":"","id":"a1","role":"assistant","usage":{"cost_usd":null,"tokens_used":6100}}] []"#,
            ),
            (
                r#"[{"additional_kwargs":{},"artifact":null,"content":"card declined","id":"t1","name":null,"response_metadata":{},"status":"error","tool_call_id":"c1","type":"tool"}]"#,
                r#"[{"content":"card declined","id":"t1","result":{"call_id":"c1","status":"error","status_from":"flag"},"role":"tool"}] []"#,
            ),
            (
                r#"[{"additional_kwargs":{},"content":"Error: x","name":"pay","response_metadata":{},"type":"function"}]"#,
                r#"[{"content":"Error: x","name":"pay","result":{"status":"error","status_from":"text","tool":"pay"},"role":"function"}] []"#,
            ),
            (
                r#"[{"additional_kwargs":{},"content":"x","role":"critic","response_metadata":{},"type":"chat"},
                {"additional_kwargs":{},"content":"","id":"a1","response_metadata":{},"type":"remove"}]"#,
                r#"[{"content":"x","role":"critic","usage":{"cost_usd":null,"tokens_used":null}},{"id":"a1","role":"remove"}] []"#,
            ),
            (
                r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":"{}"}}]},
                {"role":"tool","tool_call_id":"c","content":"done"},{"role":"admin","content":"x"}]"#,
                r#"[{"calls":[{"call_id":"c","params":{},"tool":"t"}],"content":null,"role":"assistant","usage":{"cost_usd":null,"tokens_used":null}},{"content":"done","result":{"call_id":"c","status":"ok","status_from":"text"},"role":"tool"}] []"#,
            ),
            (
                r#"{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":[{"type":"tool_use","id":"c","name":"t","input":{"a":1}},{"type":"text","text":"x"}],"usage_metadata":{"total_tokens":3}}}"#,
                r#"[{"calls":[{"call_id":"c","params":{"a":1},"tool":"t"}],"content":[{"id":"c","input":{"a":1},"name":"t","type":"tool_use"},{"text":"x","type":"text"}],"role":"assistant","usage":{"cost_usd":null,"tokens_used":3}}] []"#,
            ),
            (r#"{"value":[{"type":"human","content":"x"}]}"#, r#"[{"content":"x","role":"user"}] []"#),
        ] {
            assert_eq!(formed(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_named_if_it_may_state_calls() {
        for (text, expected) in [
            (r#"["step 1",3,{"type":"tool","content":"x"},{"name":"Ann","role":"user"}]"#, "[] []"),
            (
                r#"{"earlier":{"a":[{"role":"assistant","content":"","tool_calls":[{"id":"c","name":"t"}]}]}}"#,
                r#"[] ["calls"]"#,
            ),
            (r#"{"tool":"pay","tool_input":{"n":3},"log":"x"}"#, r#"[] ["calls"]"#),
            (r#"{"tool":"pay","n":3,"tool_calls":[],"status":"error"}"#, "[] []"),
            (
                r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true}]}]"#,
                r#"[{"content":[{"is_error":true,"tool_use_id":"c","type":"tool_result"}],"role":"user"}] ["failures"]"#,
            ),
        ] {
            assert_eq!(formed(text), expected, "{text}");
        }
    }
}
