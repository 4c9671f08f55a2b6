//! The graph that a run was compiled from, and its recorded frontier (Mynd Labs research note R-001). Of any other run, the requests
//! and answers on record.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_object::{Digest, RunName, Value, question};

use crate::address::Address;
use crate::error::Error;
use crate::problem::Problem;
use crate::record::tools::{CallKey, answered, calls, params_of};
use crate::run::frontier::{GraphRun, graph_run, is_graph};
use crate::run::trace::Trace;
use crate::source::{Asked, Desk};

question! {
    /// Asks for the graph of a run
    pub struct GraphShowQuestion: "graph-show-question" {
        /// The run of a graph
        pub run: String,
    }
}

question! {
    /// Asks for the recorded edge values of the run of a graph, or the requests and answers of another run
    pub struct GraphFrontierQuestion: "graph-frontier-question" {
        /// The run
        pub run: String,
    }
}

/// Reads the graph and the recorded edge values of a run.
///
/// # Errors
///
/// A [`Problem`] if the run cannot be read, or is not one of a graph.
pub fn recorded(run: &str, desk: &mut dyn Desk) -> Result<GraphRun, Problem> {
    Ok(graph_run(&read(run, desk)?)?)
}

fn read(run: &str, desk: &mut dyn Desk) -> Result<Trace, Problem> {
    let address = Address::parse(run)?;
    let source = desk.open(&address)?;
    let trace = source.trace(&address.resolve(&source.store)?)?;
    desk.reads_run(&trace);
    Ok(trace)
}

/// The answer to [`GraphFrontierQuestion`].
#[derive(Debug, Clone)]
pub enum FrontierReply {
    /// The frontier of a graph's run.
    Graph(Box<GraphRun>),
    /// The requests and answers of a run that is no graph's, in the order of the record.
    Calls(RunName, Vec<RecordedCall>),
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

/// Lists the requests of a run and their answers.
fn calls_of(trace: &Trace) -> Result<Vec<RecordedCall>, Error> {
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

impl Asked for GraphShowQuestion {
    type Reply = GraphRun;

    fn ask(&self, desk: &mut dyn Desk) -> Result<GraphRun, Problem> {
        recorded(&self.run, desk)
    }
}

impl Asked for GraphFrontierQuestion {
    type Reply = FrontierReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<FrontierReply, Problem> {
        let trace = read(&self.run, desk)?;
        Ok(match is_graph(&trace) {
            true => FrontierReply::Graph(Box::new(graph_run(&trace)?)),
            false => FrontierReply::Calls(trace.name().clone(), calls_of(&trace)?),
        })
    }
}
