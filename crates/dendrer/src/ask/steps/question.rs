//! The questions of `steps` and `coherence` as data.

use std::ops::ControlFlow;

use dendrer_chain::ActionType;
use dendrer_object::{Code, RunName, question};

use crate::ask::steps::{self, ActionStats, Coherence, ComposeBy, Composition, StepStats, each_step};
use crate::error::Error;
use crate::problem::Problem;
use crate::run::trace::Trace;
use crate::run::witness::WitnessStep;
use crate::source::{Asked, Desk, exclude};

question! {
    /// Asks for the steps of runs as witness chains, counts them, or joins them
    pub struct StepsQuestion: "steps-question" {
        /// The runs, as addresses; a tick ends one there
        pub runs: Vec<String>,
        /// The only type of step that is listed, like tool_call
        pub by: Option<String>,
        /// The only trace_id whose steps are listed
        pub trace: Option<String>,
        /// Whether steps are counted by type, and not listed
        pub stats: bool,
        /// The member by which the chains of the runs are joined
        pub compose: Option<ComposeBy>,
        /// Whether each step has its input and output
        pub full: bool,
    }

    /// Asks for the coherence of steps, and of traces that span several runs
    pub struct CoherenceQuestion: "coherence-question" {
        /// The runs, as addresses; a tick ends one there
        pub runs: Vec<String>,
    }
}

/// The answer about steps.
#[derive(Debug)]
pub enum StepsReply {
    /// The runs whose steps are to be handed over.
    Steps(OpenedSteps),
    /// The chains of the runs as one graph.
    Composition(Composition),
}

/// Runs whose steps are to be handed over.
#[derive(Debug)]
pub struct OpenedSteps {
    /// The runs, each with the tick up to which it is read.
    pub traces: Vec<(Trace, u64)>,
    action: Option<ActionType>,
    trace: Option<String>,
    stats: bool,
}

impl OpenedSteps {
    /// Hands over each step that is listed. Returns the counts if steps are counted: then none is handed over.
    ///
    /// # Errors
    ///
    /// An error of `f`, or one of a run that cannot be read.
    pub fn each<E: From<Error>>(
        &self,
        f: &mut dyn FnMut(&(RunName, WitnessStep)) -> Result<(), E>,
    ) -> Result<Option<Vec<(ActionType, ActionStats)>>, E> {
        let mut stats = StepStats::default();
        for (trace, upto) in &self.traces {
            let mut taken = Ok(());
            each_step((trace, *upto), &mut |step| {
                let is_other = self.action.is_some_and(|action| step.action() != Some(action))
                    || self.trace.is_some() && self.trace != step.step.trace_id;
                if is_other {
                    return ControlFlow::Continue(());
                }
                match self.stats {
                    true => stats.count(&step),
                    false => taken = f(&(trace.name().clone(), step)),
                }
                if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            taken?;
        }
        Ok(self.stats.then(|| stats.finish()))
    }
}

impl Asked for StepsQuestion {
    type Reply = StepsReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<StepsReply, Problem> {
        if self.compose.is_some() {
            let others =
                [("--by", self.by.is_some()), ("--trace", self.trace.is_some()), ("--stats", self.stats)];
            exclude(("--compose", true), &others)?;
        }
        let action = self.by.as_deref().map(|name| {
            ActionType::read(name).map_err(|error| {
                let types = ActionType::WORDS.join(", ");
                Problem::new(Code::E0106, error.to_string()).note(format!("the types: {types}"))
            })
        });
        let action = action.transpose()?;
        let traces = desk.each_up_to(&self.runs)?;
        Ok(match self.compose {
            Some(by) => StepsReply::Composition(steps::compose(&traces, by)?),
            None => {
                let (trace, stats) = (self.trace.clone(), self.stats);
                StepsReply::Steps(OpenedSteps { traces, action, trace, stats })
            }
        })
    }
}

impl Asked for CoherenceQuestion {
    type Reply = Coherence;

    fn ask(&self, desk: &mut dyn Desk) -> Result<Coherence, Problem> {
        Ok(steps::coherence(&desk.each_up_to(&self.runs)?)?)
    }
}
