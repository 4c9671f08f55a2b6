//! The calls of a line: one, or several in a list (design, 14.1).

use std::sync::Arc;

use dendrer_object::{Delta, Intent, Value};

/// The member of an intent with its call or calls.
pub(crate) const ACTION: &str = "action";

/// The member of an action with a list of calls.
pub(crate) const LIST: &str = "calls";

/// The members of a call as `t.calls` lists it.
const LISTED: [&str; 3] = ["call_id", "params", "tool"];

/// The calls of an action as they were written: first the call that it names together with a list, then the calls of the list, with
/// lists inside of them. An action without any is one call, of which nothing is known.
pub(crate) fn written(action: &Value) -> Vec<&Value> {
    let listed = action.get(LIST).and_then(Value::as_array).filter(|calls| !calls.is_empty());
    let beside = (listed.is_none() || action.get("tool").is_some()).then_some(action);
    let listed = listed.into_iter().flat_map(|calls| calls.iter()).flat_map(written);
    beside.into_iter().chain(listed).collect()
}

/// A call with its tool and its parameters alone.
pub(crate) fn bare(call: &Value) -> Value {
    let members = ["tool", "params"].into_iter().filter_map(|name| Some((name, call.get(name)?.clone())));
    Value::record(members)
}

/// The calls of an action, each as expressions read it: one, or those under `calls`.
pub fn calls(action: &Value) -> Vec<Value> {
    let listed = action.get("calls").and_then(Value::as_array);
    let mut calls: Vec<Value> = listed.into_iter().flat_map(|calls| calls.iter()).map(bare).collect();
    if action.get("tool").is_some() || calls.is_empty() {
        calls.insert(0, bare(action));
    }
    calls
}

/// Returns how many calls an action has.
pub(crate) fn count(action: &Value) -> usize {
    let listed = action.get("calls").and_then(Value::as_array).map_or(0, |calls| calls.len());
    listed + usize::from(listed == 0 || action.get("tool").is_some())
}

/// Whether an action names a tool together with a list of calls, or a call of its list has a list.
pub(crate) fn has_tool_beside(action: &Value) -> bool {
    let listed = action.get(LIST);
    let inner = listed.and_then(Value::as_array).into_iter().flat_map(|calls| calls.iter());
    listed.is_some() && action.get("tool").is_some() || inner.into_iter().any(|call| call.get(LIST).is_some())
}

/// Whether the tool of each call of an action is a text, or missing.
pub(crate) fn are_named(action: &Value) -> bool {
    let is_named = |call: &&Value| {
        call.as_object().is_some() && call.get("tool").is_none_or(|tool| tool.as_str().is_some())
    };
    written(action).iter().all(is_named)
}

/// The value of `t.calls`: the list of calls, each `{tool, params, call_id}`.
pub(crate) fn to_value(intent: &Intent) -> Value {
    let calls = intent.member(ACTION).map(written).unwrap_or_default();
    Value::array(calls.into_iter().map(|call| {
        let members = LISTED.into_iter().filter_map(|name| Some((name, call.get(name)?.clone())));
        Value::record(members)
    }))
}

/// An intent for each call of a line with a list of calls, in order: each has its call as action, and the last one the change of
/// state. Empty for any other line.
pub(crate) fn each(intent: &Intent) -> Vec<Intent> {
    let Some(action) = intent.member(ACTION).filter(|action| action.get(LIST).is_some()) else {
        return Vec::new();
    };
    let own = |call: &Value| match call.as_object().cloned() {
        Some(mut own) => {
            own.remove(LIST);
            Value::Object(own)
        }
        None => call.clone(),
    };
    let calls: Vec<Value> = written(action).into_iter().map(own).collect();
    let last = calls.len().saturating_sub(1);
    let alone = |(at, call): (usize, Value)| {
        let delta: Option<Delta> = intent.delta.clone().filter(|_| at == last);
        let others = intent.members.iter().filter(|(name, _)| &**name != ACTION).cloned();
        let members: Vec<(Arc<str>, Value)> = others.chain([(Arc::from(ACTION), call)]).collect();
        Intent { members, delta, ..intent.clone() }
    };
    calls.into_iter().enumerate().map(alone).collect()
}
