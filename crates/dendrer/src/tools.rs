//! Tool calls with a live and a replay mode (dendrer paper, appendix E.1).
//!
//! Live, a call is made once and its answer is what gets recorded. In replay nothing is called: the recorded
//! answer comes back, and a call that was not recorded is an error that belongs on record as a `kernel.anomaly`.
//! Answers are keyed by tick, place among the calls of that tick, tool and parameters, so two calls in one tick
//! never stand in for each other.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_kernel::step::Anomaly;
use dendrer_object::{Digest, Value, json};

use crate::error::Error;
use crate::trace::Trace;

/// What identifies a call.
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

/// The recorded answer that a call needs is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no recorded answer for call {} of tick {} to {}", .0.index, .0.tick, .0.tool)]
pub struct MissingAnswer(pub CallKey);

impl MissingAnswer {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> &'static str {
        "E0702"
    }

    /// The anomaly that a runtime puts on record for it (dendrer paper 3.3.2).
    pub fn anomaly(&self) -> Anomaly {
        Anomaly { kind: "replay_tool_missing".into(), message: self.to_string().into(), agent: None }
    }
}

/// Makes tool calls, or answers them from a record.
pub enum Executor<'t> {
    /// Calls are made.
    Live(&'t mut dyn FnMut(&str, &Value) -> Value),
    /// The world is frozen: calls are answered from the record alone.
    Replay(BTreeMap<CallKey, Value>),
}

impl<'t> Executor<'t> {
    /// Takes the answers out of a recorded run.
    ///
    /// An `action.request` asks; the `action.result` that follows answers, in order for several calls. The output
    /// is kept whole, whatever the tool did to the world: nothing is undone and nothing is done again.
    pub fn replay(trace: &Trace<'_>) -> Result<Executor<'t>, Error> {
        let mut answers = BTreeMap::new();
        let mut open: Vec<CallKey> = Vec::new();
        trace.for_each(1, trace.tip(), &mut |tick, record| {
            let content = record.content();
            match record.header().type_name.as_ref().map(|name| name.as_str()) {
                Some("action.request") => open.extend(calls(tick, &content)),
                Some("action.result") if !open.is_empty() => {
                    let at = answered(&open, &content);
                    let output = content.get("result").and_then(|result| result.get("output"));
                    answers.insert(open.remove(at), output.cloned().unwrap_or(Value::Null));
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        Ok(Executor::Replay(answers))
    }

    /// Makes a call for the request that is about to be, or was, committed at `tick`.
    pub fn call(&mut self, tick: u64, index: u64, tool: &str, params: &Value) -> Result<Value, MissingAnswer> {
        match self {
            Executor::Live(call) => Ok(call(tool, params)),
            Executor::Replay(answers) => {
                let key = CallKey { tick, index, tool: tool.to_owned(), params: params_digest(params) };
                answers.get(&key).cloned().ok_or(MissingAnswer(key))
            }
        }
    }
}

/// Lists the calls that a request asks for.
fn calls(tick: u64, content: &Value) -> Vec<CallKey> {
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

/// Finds the open call that a result answers: the one it names, or the oldest.
fn answered(open: &[CallKey], content: &Value) -> usize {
    let Some(action) = content.get("action") else { return 0 };
    let tool = action.get("tool").and_then(Value::as_str);
    let params = params_digest(action.get("params").unwrap_or(&Value::Null));
    let same = |key: &&CallKey| Some(key.tool.as_str()) == tool && key.params == params;
    open.iter().position(|key| same(&key)).unwrap_or(0)
}

fn params_digest(params: &Value) -> Digest {
    Digest::of_parts(&[b"dendrer/tool-params/v1\n", &json::to_vec(params)])
}
