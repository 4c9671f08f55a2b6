//! The edges on the record of a graph's run that was interrupted: values, requests without a result, and calls that may have acted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use dendrer_graph::eval::EdgeRequest;
use dendrer_object::record::{Author, Record};
use dendrer_object::{Digest, EDGE, Intent, Value};

use crate::error::Error;
use crate::run::frontier::{GraphRun, LIMIT, NODE_FAILED};
use crate::run::trace::Trace;

use super::terms::{EdgeEnd, Unanswered};

/// The edges and the end of a run, as they are on record.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The recorded value of each edge, with the digest of what it was asked.
    pub(super) values: BTreeMap<String, (Digest, Value)>,
    /// The request of each edge that has no result, with the digest of what it asks.
    requests: BTreeMap<String, (Option<Digest>, Digest)>,
    /// The edges of which it is not known whether they have acted.
    pub(super) unknown: BTreeMap<String, Unanswered>,
    /// Nodes that could not be computed, each as its record has it.
    pub(super) failures: BTreeSet<String>,
    /// The tick of the last transition of a closed run.
    pub(super) closed_at: Option<u64>,
    /// The first tick that another author wrote.
    pub(super) of_others: Option<u64>,
}

impl Past {
    /// Reads a run up to a tick.
    pub(super) fn of(trace: &Trace, recorded: &GraphRun, to: u64) -> Result<Past, Error> {
        let edges = recorded.frontier.edges.iter();
        let values = edges.map(|edge| (edge.path.clone(), (edge.asked, edge.value.clone())));
        let mut past = Past { values: values.collect(), ..Past::default() };
        trace.for_each(1, to, &mut |tick, record| {
            if !past.reads(tick, &record, &recorded.graph.name) {
                past.of_others.get_or_insert(tick);
            }
            ControlFlow::Continue(())
        })?;
        Ok(past)
    }

    /// Reads a record. Returns whether the run of a graph writes such records.
    fn reads(&mut self, tick: u64, record: &Record, graph: &str) -> bool {
        let (header, content) = (record.header(), record.content());
        let type_name = header.type_name.as_ref().map_or("", |name| name.as_str());
        let path = || Some(content.get(EDGE)?.get("path")?.as_str()?.to_owned());
        let is_own = content.get("agent_id").and_then(Value::as_str) == Some(graph);
        match (header.author, type_name, path()) {
            (Author::Kernel, ..) => true,
            (Author::Agent, "action.request", Some(path)) if is_own => {
                let asked = content.get(EDGE).and_then(|edge| edge.get("asked")?.as_str()?.parse().ok());
                self.requests.insert(path.clone(), (asked, record.id()));
                self.unknown.insert(path, Unanswered::Unanswered);
                true
            }
            (Author::Runtime, "action.result", Some(path)) => {
                self.answered(path, &content);
                true
            }
            (Author::Runtime, "goal.complete", None) => {
                self.closed_at = Some(tick);
                true
            }
            (Author::Runtime, "observation.add", None) => {
                let about = |name: &str| content.get("intent")?.get(name).cloned();
                self.failures.extend(about(NODE_FAILED).map(|fault| fault.to_string()));
                self.closed_at = self.closed_at.or(about(LIMIT).map(|_| tick));
                about(NODE_FAILED).or_else(|| about(LIMIT)).is_some()
            }
            _ => false,
        }
    }

    /// Reads the result of an edge.
    fn answered(&mut self, path: String, content: &Value) {
        self.requests.remove(&path);
        let said = |name: &str| content.get("result")?.get(name).cloned();
        if said("status").is_some_and(|status| status.as_str() == Some("ok")) {
            self.unknown.remove(&path);
            return;
        }
        let ended = said("error").and_then(|error| EdgeEnd::from_word(error.get("ended")?.as_str()?));
        let why = match ended {
            Some(EdgeEnd::Answered | EdgeEnd::NoStart | EdgeEnd::NotPure) => None,
            Some(EdgeEnd::Timeout) => Some(Unanswered::Timeout),
            Some(EdgeEnd::Killed | EdgeEnd::Cut) => Some(Unanswered::Killed),
            // An older record does not state how the call ended.
            Some(EdgeEnd::Unread) | None => Some(Unanswered::Unanswered),
        };
        match why {
            Some(why) => drop(self.unknown.insert(path, why)),
            None => drop(self.unknown.remove(&path)),
        }
    }

    /// The request on record of an edge that has no result, if it asks the same.
    pub(super) fn request_of(&self, asked: &EdgeRequest) -> Option<Digest> {
        let (was, request) = self.requests.get(&asked.path)?;
        (*was == Some(asked.asked)).then_some(*request)
    }

    /// Whether the failure of a node is on record already.
    pub(super) fn has_failure(&self, intent: &Intent) -> bool {
        let about = intent.member("intent").and_then(|about| about.get(NODE_FAILED).cloned());
        about.is_some_and(|fault| self.failures.contains(&fault.to_string()))
    }
}
