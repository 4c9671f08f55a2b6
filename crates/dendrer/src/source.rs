//! What a question reads, and the desk at which it is asked.
//!
//! A question names runs by addresses. A [`Desk`] opens them: the program opens files, a server only its store. A [`SourceHead`]
//! keeps where an answer was read, and with which reserve; it is the head of every answer about recorded runs.
//!
//! Rule: a bundle that is not what was signed has no answer about the record; [`sound`] refuses it.

use std::sync::Arc;

use dendrer_object::{Code, RunName, Value};
use dendrer_store::Store;

use crate::address::Address;
use crate::evidence::bundle::Opened;
use crate::evidence::verify;
use crate::problem::Problem;
use crate::run::trace::Trace;
use crate::watch::Watch;

/// A store, or a bundle in its place, that is open for reading.
#[derive(Debug, Clone)]
pub struct QuestionSource {
    /// The handle that reads.
    pub store: Arc<dyn Store>,
    /// The runs that a bundle is of; empty for a store.
    pub runs: Vec<RunName>,
}

impl QuestionSource {
    /// Opens the run that an address means, read through a handle that counts what is read.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if there is no such run, or it cannot be read.
    pub fn trace(&self, address: &Address, watch: &Watch) -> Result<Trace, Problem> {
        let run = address.run_in(&self.store, &self.runs)?;
        Ok(Trace::open(&watch.over(&self.store), &run)?)
    }
}

/// Where an answer was read, and with which reserve.
#[derive(Debug, Clone, Default)]
pub struct SourceHead {
    /// The store and the bundles that were read, as paths, in the order in which they were opened.
    pub read_from: Vec<String>,
    /// Whether a run of stage 0 is asked about: nothing was enforced there.
    pub at_stage_0: bool,
    /// Code and sentence of a record that is not what was signed.
    pub tampered: Option<(Code, String)>,
}

impl SourceHead {
    /// A path was read.
    pub fn reads(&mut self, path: String) {
        if !self.read_from.contains(&path) {
            self.read_from.push(path);
        }
    }

    /// A run is asked about.
    pub fn asks(&mut self, trace: &Trace) {
        self.at_stage_0 |= trace.start().body().value("/stage") == Some(Value::from(0_u64));
    }
}

/// Refuses a bundle that is not the one that was signed, or of which a record does not open: an answer from it would be taken
/// for one about the record.
///
/// # Errors
///
/// A [`Problem`] with the code of the first finding, and its place.
pub fn sound(opened: &Opened, path: &str) -> Result<(), Problem> {
    let Some(finding) = verify::opening(opened).into_iter().next() else { return Ok(()) };
    let place = match (&finding.run, finding.tick) {
        (Some(run), Some(tick)) => format!(", {run}@{tick}"),
        (Some(run), None) => format!(", {run}"),
        _ => String::new(),
    };
    Err(Problem::new(finding.code, format!("TAMPERED {path}{place}: {}", finding.message))
        .note("what is asked here is asked of what was recorded, and this file is not that")
        .help(&["dendrer", "verify", path]))
}

/// Returns a run that a bundle has only because another one began as a fork of it, and its last tick there: the run itself
/// may have gone on.
pub fn shared_part(opened: &Opened, address: &Address) -> Option<(RunName, u64)> {
    // An address that means no run is an error of the caller that resolves it.
    let run = address.run.as_ref().and_then(|_| address.run_in(&opened.store, &opened.runs).ok())?;
    let trace = (!opened.runs.contains(&run)).then(|| Trace::open(&opened.store, &run).ok()).flatten()?;
    Some((run, trace.tip()))
}

/// The place where questions are asked: opens what they name, and receives what is worth telling before the answer.
pub trait Desk {
    /// Opens what an address names. A bundle that is not what was signed has no answer.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if it cannot be opened.
    fn open(&mut self, address: &Address) -> Result<QuestionSource, Problem>;

    /// Begins work that counts records, and returns the watch that it counts into.
    fn watch(&mut self, _what: &'static str) -> Watch {
        Watch::new()
    }

    /// A run is asked about.
    fn asks(&mut self, _trace: &Trace) {}

    /// A note on the answer.
    fn note(&mut self, _note: String) {}

    /// Returns the name, for messages, of the text that a member of the question contains.
    fn name_of(&self, member: &'static str) -> String {
        member.to_owned()
    }
}
