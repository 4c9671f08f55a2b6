//! The calls of a run: what requests ask for, and which answer is whose.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_object::record::{Link, Rel};
use dendrer_object::{Digest, EDGE, Value, json};

use crate::error::Error;
use crate::run::frontier::GraphRun;
use crate::run::trace::Trace;

/// The identity of a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// The tick of the request.
    pub tick: u64,
    /// The place among the calls of that request, from 0.
    pub index: u64,
    /// The tool.
    pub tool: String,
    /// The digest of the parameters.
    pub params: Digest,
}

/// A request of a run, with its answer; or an answer to no request on record.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// The id of the call; its tick if it has none, with its place from 0 if the request has several: `7`, `7.1`.
    pub path: String,
    /// The tick of the request, or that of an answer to none.
    pub tick: u64,
    /// The tool; empty if none is on record.
    pub call: String,
    /// The parameters.
    pub params: Value,
    /// The tick of the answer; `None` without one.
    pub answered: Option<u64>,
    /// The status of the answer, as it is on record; `no_answer` without one.
    pub status: String,
    /// The output of the answer; `None` if it has none, or it is not at hand.
    pub value: Option<Value>,
}

impl RecordedCall {
    /// A call of a request without its answer.
    fn asked(key: &CallKey, content: &Value) -> RecordedCall {
        let action = content.get("action");
        let listed = action.and_then(|action| action.get("calls")).and_then(Value::as_array);
        let at = usize::try_from(key.index).ok();
        let own = at.and_then(|at| listed?.get(at)).or(action);
        let id = own.and_then(|call| call.get("call_id")?.as_str()).filter(|id| !id.is_empty());
        let place = match listed.map_or(1, |calls| calls.len()) {
            0 | 1 => key.tick.to_string(),
            _ => format!("{}.{}", key.tick, key.index),
        };
        RecordedCall {
            path: id.map_or(place, str::to_owned),
            tick: key.tick,
            call: key.tool.clone(),
            params: params_of(content, key.index),
            answered: None,
            status: "no_answer".to_owned(),
            value: None,
        }
    }

    fn answer(&mut self, tick: u64, content: &Value) {
        let said = |name: &str| content.get("result")?.get(name);
        self.answered = Some(tick);
        self.status = said("status").and_then(Value::as_str).unwrap_or("ok").to_owned();
        self.value = said("output").cloned();
    }
}

/// Lists the last request of each edge of a graph's run that has no value, by the path of the edge.
pub fn edges_without_value(trace: &Trace, run: &GraphRun) -> Result<Vec<RecordedCall>, Error> {
    let mut found: BTreeMap<String, RecordedCall> = BTreeMap::new();
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        let content = record.content();
        let Some(path) = content.get(EDGE).and_then(|edge| edge.get("path")?.as_str()) else {
            return ControlFlow::Continue(());
        };
        match record.header().type_name.as_ref().map(|name| name.as_str()) {
            Some("action.request") => {
                let keys = calls(tick, &content);
                let asked = keys.first().map(|key| RecordedCall::asked(key, &content));
                found.extend(
                    asked.map(|asked| (path.to_owned(), RecordedCall { path: path.to_owned(), ..asked })),
                );
            }
            Some("action.result") => {
                found.get_mut(path).into_iter().for_each(|call| call.answer(tick, &content))
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    run.frontier.edges.iter().for_each(|edge| drop(found.remove(&edge.path)));
    Ok(found.into_values().collect())
}

/// Lists the requests of a run and their answers.
pub fn calls_of(trace: &Trace) -> Result<Vec<RecordedCall>, Error> {
    let mut open: Vec<(Digest, CallKey)> = Vec::new();
    let mut found: BTreeMap<(u64, u64), RecordedCall> = BTreeMap::new();
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        let content = record.content();
        match record.header().type_name.as_ref().map(|name| name.as_str()) {
            Some("action.request") => {
                for key in calls(tick, &content) {
                    found.insert((tick, key.index), RecordedCall::asked(&key, &content));
                    open.push((record.id(), key));
                }
            }
            Some("action.result") => {
                let request = answered(&open, &record.header().links, &content).map(|at| open.remove(at).1);
                let own = request.map_or((tick, 0), |key| (key.tick, key.index));
                let of_none =
                    || calls(tick, &content).iter().map(|key| RecordedCall::asked(key, &content)).next();
                if !found.contains_key(&own) {
                    found.extend(of_none().map(|call| (own, call)));
                }
                found.get_mut(&own).into_iter().for_each(|call| call.answer(tick, &content));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(found.into_values().collect())
}

/// Lists the calls that a request asks for.
pub(crate) fn calls(tick: u64, content: &Value) -> Vec<CallKey> {
    let Some(action) = content.get("action") else { return Vec::new() };
    let key = |(index, call): (usize, &Value)| CallKey {
        tick,
        index: index as u64,
        tool: call.get("tool").and_then(Value::as_str).unwrap_or_default().to_owned(),
        params: params_digest(call.get("params").unwrap_or(&Value::Null)),
    };
    match action.get("calls").and_then(Value::as_array) {
        Some(calls) => calls.iter().enumerate().map(key).collect(),
        None => vec![key((0, action))],
    }
}

/// Returns the parameters of a call of a request; null if it has none.
pub(crate) fn params_of(content: &Value, index: u64) -> Value {
    let action = content.get("action");
    let listed = action.and_then(|action| action.get("calls")).and_then(Value::as_array);
    let call = match listed {
        Some(calls) => usize::try_from(index).ok().and_then(|index| calls.get(index)),
        None => action,
    };
    call.and_then(|call| call.get("params")).cloned().unwrap_or(Value::Null)
}

/// Finds the open call that a result answers. A result that names another tool or other parameters than any open
/// call answers none of them: a wrong answer would be worse than a missing one.
pub(crate) fn answered(open: &[(Digest, CallKey)], links: &[Link], content: &Value) -> Option<usize> {
    let caused_by =
        |request: &Digest| links.iter().any(|link| link.rel == Rel::CausedBy && link.hash == *request);
    let is_linked = open.iter().any(|(request, _)| caused_by(request));
    let named =
        content.get("action").and_then(|action| Some((action.get("tool")?.as_str()?, action.get("params"))));
    let same = |key: &CallKey| match named {
        Some((tool, params)) => {
            key.tool == tool && params.is_none_or(|params| key.params == params_digest(params))
        }
        None => true,
    };
    open.iter().position(|(request, key)| (!is_linked || caused_by(request)) && same(key))
}

pub(crate) fn params_digest(params: &Value) -> Digest {
    Digest::of_parts(&[b"dendrer/tool-params/v1\n", &json::to_vec(params)])
}
