//! Calls of a run that are made once more: only those of tools that read (dendrer paper, appendix E.1).
//!
//! Compares each new answer with the recorded one. Writes nothing and never calls a tool that the pack does not declare as
//! reading, in each pack that the run had; test `only_a_tool_that_reads_is_executed_again`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_kernel::pack::Effect;
use dendrer_object::{Code, Digest, Value};

use crate::error::Error;
use crate::run::calls::{CallKey, answered, calls, params_of};
use crate::run::trace::Trace;

/// A call that was made once more.
#[derive(Debug, Clone)]
pub struct Reread {
    /// The tick of the request.
    pub tick: u64,
    /// The place among the calls of the request, from 0.
    pub index: u64,
    /// The tool.
    pub tool: String,
    /// The parameters.
    pub params: Value,
    /// The tick and the output of the recorded answer; `None` if there is no answer.
    pub recorded: Option<(u64, Value)>,
    /// The new output, or why the call has no output.
    pub now: Result<Value, String>,
}

impl Reread {
    /// Whether the new output is the recorded one.
    pub fn is_same(&self) -> bool {
        matches!((&self.recorded, &self.now), (Some((_, recorded)), Ok(now)) if recorded == now)
    }
}

/// Why no call was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RereadError {
    /// A pack of the run does not declare that the tool reads.
    #[error("{tool} is not executed again: it is {effect} in a pack of this run{undeclared}", effect = .effect.as_str(),
        undeclared = if *.is_declared { "" } else { ", as every tool that is not declared" })]
    NotARead {
        /// The tool.
        tool: String,
        /// Its effect.
        effect: Effect,
        /// Whether the pack declares it.
        is_declared: bool,
    },
    /// The run cannot be read.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl RereadError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            RereadError::NotARead { .. } => Code::E0704,
            RereadError::Failed(error) => error.code(),
        }
    }
}

/// Makes each recorded call of some tools once more, up to a tick, with `call`.
pub fn reread(
    trace: &Trace,
    tools: &[&str],
    to: u64,
    call: &mut dyn FnMut(&str, &Value) -> Result<Value, String>,
) -> Result<Vec<Reread>, RereadError> {
    for segment in 0..trace.begins().len() {
        let pack = crate::run::pack::of_segment(trace, segment)?;
        for tool in tools {
            let declared = pack.as_ref().and_then(|pack| pack.effect_of(tool));
            let effect = declared.unwrap_or(Effect::Effectful);
            if effect != Effect::Read {
                let tool = (*tool).to_owned();
                return Err(RereadError::NotARead { tool, effect, is_declared: declared.is_some() });
            }
        }
    }
    let mut open: Vec<(Digest, CallKey)> = Vec::new();
    let mut asked: BTreeMap<CallKey, (Value, Option<(u64, Value)>)> = BTreeMap::new();
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        let content = record.content();
        match record.header().type_name.as_ref().map(|name| name.as_str()) {
            Some("action.request") => {
                for key in calls(tick, &content) {
                    if tick <= to && tools.contains(&&*key.tool) {
                        asked.insert(key.clone(), (params_of(&content, key.index), None));
                    }
                    open.push((record.id(), key));
                }
            }
            Some("action.result") => {
                if let Some(at) = answered(&open, &record.header().links, &content) {
                    let output = content.get("result").and_then(|result| result.get("output"));
                    if let Some((_, answer)) = asked.get_mut(&open.remove(at).1) {
                        *answer = Some((tick, output.cloned().unwrap_or(Value::Null)));
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    let made = asked.into_iter().map(|(key, (params, recorded))| Reread {
        now: call(&key.tool, &params),
        tick: key.tick,
        index: key.index,
        tool: key.tool,
        params,
        recorded,
    });
    Ok(made.collect())
}
