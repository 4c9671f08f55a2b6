//! The terms of a graph's run, what an effect answers, and the result.
//!
//! Rule: a failure records how its call ended, because that decides whether the effect may be asked again; test
//! `a_call_that_may_have_acted_waits_for_a_decision`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dendrer_graph::Graph;
use dendrer_graph::eval::EdgeRequest;
use dendrer_kernel::step::Stage;
use dendrer_object::{Digest, RunName, Value};

use crate::pack::Source;
use crate::redact::Redactor;

use super::records::RecordTerms;

/// Asks an effect for the value of an edge.
pub type AskEdge<'e> = dyn Fn(&EdgeRequest) -> Result<Value, EdgeFailure> + Sync + 'e;

dendrer_object::words! {
    /// How the call of an effect ended that brought no value.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum EdgeEnd {
        /// It ended by itself: a command by its own exit code, a service by a status.
        Answered = "answered",
        /// It ended well, and its answer cannot be read.
        Unread = "unread",
        /// A signal ended it, so that it may have acted in part.
        Killed = "killed",
        /// It was ended after the time that its tool may take.
        Timeout = "timeout",
        /// The connection was cut before the answer was there.
        Cut = "cut",
        /// A host function gave two results.
        NotPure = "not_pure",
        /// It never began.
        NoStart = "no_start",
    }
}

/// Why an effect brought no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeFailure {
    /// The reason, in a sentence.
    pub why: String,
    /// The exit code of a command.
    pub exit: Option<i32>,
    /// The signal that ended a command.
    pub signal: Option<i32>,
    /// The last text that a command wrote to stderr. The end of it is on record, after secrets were taken out.
    pub stderr: Option<String>,
    /// The first text that was printed where the answer cannot be read. The first of it is on record, after secrets were taken out.
    pub output: Option<String>,
    /// How the call ended.
    pub ended: EdgeEnd,
}

impl EdgeFailure {
    /// A failure without an exit code.
    pub fn new(ended: EdgeEnd, why: impl Into<String>) -> EdgeFailure {
        EdgeFailure { why: why.into(), exit: None, signal: None, stderr: None, output: None, ended }
    }
}

/// Answers an effect within a time.
pub type AnswerCall = dyn Fn(&EdgeRequest, Option<Duration>) -> Result<Value, EdgeFailure> + Send + Sync;

/// Answers effects and functions in the process that calls the program as a library.
#[derive(Clone)]
pub struct Callers {
    /// The effects that it answers.
    pub effects: BTreeSet<String>,
    /// The functions of the host that it computes.
    pub functions: BTreeSet<String>,
    /// Answers one.
    pub answer: Arc<AnswerCall>,
}

impl std::fmt::Debug for Callers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callers").field("effects", &self.effects).field("functions", &self.functions).finish()
    }
}

/// How a graph is run.
#[derive(Debug)]
pub struct GraphTerms<'t> {
    /// The run's id.
    pub run: RunName,
    /// The graph.
    pub graph: &'t Graph,
    /// The graphs that it runs, by name.
    pub children: &'t BTreeMap<String, Graph>,
    /// The pack.
    pub pack: &'t Source,
    /// The inputs, by name. A run that is resumed has those of its record, and these must be the same.
    pub inputs: BTreeMap<String, Value>,
    /// The stage at which it is recorded; that which the pack asks for if not given.
    pub stage: Option<Stage>,
    /// Takes secrets out of inputs and answers. The graph is given the redacted values, so that its replay is the same.
    pub redactor: Option<Arc<Redactor>>,
    /// How a run on record is resumed; `None` begins a new one.
    pub resume: Option<GraphResume>,
}

/// How an interrupted run of a graph is resumed.
#[derive(Debug, Clone, Default)]
pub struct GraphResume {
    /// Paths of edges that are asked again, though they may have acted.
    pub ask_again: BTreeSet<String>,
    /// Values of edges that were found out by hand, by path.
    pub set: BTreeMap<String, Value>,
    /// The effects that there is an executor for.
    pub answered: BTreeSet<String>,
}

impl GraphResume {
    /// Whether the caller decides about an edge.
    pub(super) fn is_named(&self, path: &str) -> bool {
        self.ask_again.contains(path) || self.set.contains_key(path)
    }
}

impl GraphTerms<'_> {
    /// The terms of its records.
    pub(super) fn writing(&self) -> RecordTerms<'_> {
        RecordTerms { graph: &self.graph.name, redactor: self.redactor.clone() }
    }
}

dendrer_object::words! {
    /// Why it is not known whether an effect has acted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Unanswered {
        /// Its request is on record, and no answer that can be read.
        Unanswered = "no_answer",
        /// A signal or a cut connection ended its call.
        Killed = "killed",
        /// Its call took longer than its tool may take.
        Timeout = "timeout",
    }
}

/// An effectful edge of which it is not known whether it has acted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeNeed {
    /// Its path.
    pub path: String,
    /// The effect.
    pub call: String,
    /// Why it is not known.
    pub why: Unanswered,
}

/// A graph that was run.
#[derive(Debug, Clone)]
pub struct GraphOutcome {
    /// The run.
    pub run: RunName,
    /// The digest of the graph.
    pub digest: Digest,
    /// The number of nodes that have a value.
    pub nodes: u64,
    /// The number of edges that have one, without calls of host functions.
    pub edges: u64,
    /// The host functions whose results it depends on: tested, and not pure by construction.
    pub tested: Vec<String>,
    /// The output; `None` if the run came to a limit, or is not closed.
    pub output: Option<Value>,
    /// The path of the repeat that came to its limit and closed the run.
    pub limit: Option<String>,
    /// The edges after that repeat that were under way before its limit, and have a value.
    pub beside_limit: Vec<String>,
    /// The edges for which the caller must decide before the run is resumed; empty if it is closed.
    pub needs: Vec<EdgeNeed>,
    /// The number of edges that were asked by this call.
    pub asked: u64,
}

impl GraphOutcome {
    /// The status with which the run was closed; `None` if it is open.
    pub fn closed(&self) -> Option<&'static str> {
        match (self.needs.is_empty(), &self.limit) {
            (false, _) => None,
            (true, Some(_)) => Some("limit"),
            (true, None) => Some("good"),
        }
    }
}
