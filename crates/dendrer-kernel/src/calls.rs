//! The calls of a line: one, or several in a list (design, 14.1).
//!
//! Rule: an expression that reads `t.action`, and not the list as a whole, is asked once for each call, so no call of a list
//! passes because another one was looked at; test `each_call_of_a_line_is_judged`.

use std::sync::Arc;

use dendrer_object::{Delta, Intent, Pointer, Value};

use crate::expr::Expr;

/// The member of an intent with its call or calls.
pub(crate) const ACTION: &str = "action";

/// The member of an action with a list of calls.
const LIST: &str = "calls";

/// The members of a call as `t.calls` lists it.
const LISTED: [&str; 3] = ["call_id", "params", "tool"];

/// How often expressions are asked about a line with several calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskedOf {
    /// Once: they read the list, or nothing of an action.
    Line,
    /// Once for each call, which then is `t.action`.
    EachCall,
}

impl AskedOf {
    /// Returns how often to ask, by the places of `t` that expressions read.
    pub(crate) fn of<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> AskedOf {
        let mut asked = AskedOf::Line;
        for place in exprs.into_iter().flat_map(|expr| expr.reads_of("t")) {
            if reads_list(place) {
                return AskedOf::Line;
            }
            if place.overlaps(&Pointer::of([ACTION])) {
                asked = AskedOf::EachCall;
            }
        }
        asked
    }
}

/// Whether a place of `t` is in a list of calls.
fn reads_list(place: &Pointer) -> bool {
    let mut tokens = place.tokens();
    match (tokens.next().as_deref(), tokens.next().as_deref()) {
        (Some(LIST), _) => true,
        (Some(ACTION), second) => second == Some(LIST),
        _ => false,
    }
}

/// Whether an expression reads `t.calls`.
pub(crate) fn reads_calls(expr: &Expr) -> bool {
    expr.reads_of("t").iter().any(|place| place.tokens().next().as_deref() == Some(LIST))
}

/// The calls of an action as they were written: first the call that it names together with a list, then the calls of the list, with
/// lists inside of them. An action without any is one call, of which nothing is known.
pub(crate) fn written(action: &Value) -> Vec<&Value> {
    let listed = action.get(LIST).and_then(Value::as_array).filter(|calls| !calls.is_empty());
    let beside = (listed.is_none() || action.get("tool").is_some()).then_some(action);
    let listed = listed.into_iter().flat_map(|calls| calls.iter()).flat_map(written);
    beside.into_iter().chain(listed).collect()
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
