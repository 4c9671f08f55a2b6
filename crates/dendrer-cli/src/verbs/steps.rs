//! `dendrer steps`: runs as steps of witness chains.

use std::ops::ControlFlow;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use dendrer::ask::steps::{ComposeBy, StepStats, compose, each_step};
use dendrer_chain::ActionType;
use dendrer_object::Code;
use dendrer_view::steps::{CompositionAnswer, StepsAnswer};

use crate::context;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::offers;
use crate::out::Out;
use crate::out::drawing::draw;

/// `steps`
#[derive(Debug, Args)]
pub(crate) struct Steps {
    /// The runs, or RUN@TICK to end one there
    #[arg(required = true, add = ArgValueCompleter::new(offers::runs))]
    pub(crate) runs: Vec<String>,
    /// Only steps of this type, like tool_call
    #[arg(long, value_name = "ACTION")]
    pub(crate) by: Option<String>,
    /// Only steps with this trace_id
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Option<String>,
    /// Count them by type: how many, how many failed, and how long they took
    #[arg(long)]
    pub(crate) stats: bool,
    /// Join the chains of the runs: by equal trace_id, or by parent_id
    #[arg(long, value_enum, value_name = "BY", conflicts_with_all = ["by", "trace", "stats"])]
    pub(crate) compose: Option<ComposeChoice>,
}

/// By what chains are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ComposeChoice {
    /// Equal `trace_id`.
    Trace,
    /// `parent_id`.
    Parent,
}

pub(crate) fn run(global: &Global, args: &Steps, out: &mut Out) -> Result {
    let wanted = args.by.as_deref().map(|name| {
        ActionType::read(name).map_err(|error| {
            let types = ActionType::WORDS.join(", ");
            Failure::new(Code::E0106, error.to_string()).note(format!("the types: {types}"))
        })
    });
    let wanted = wanted.transpose()?;
    let traces = context::traces(global, &args.runs, out)?;
    if let Some(by) = args.compose {
        let by = match by {
            ComposeChoice::Trace => ComposeBy::Trace,
            ComposeChoice::Parent => ComposeBy::Parent,
        };
        let made = compose(&traces, by)?;
        let answer = CompositionAnswer(&made);
        return match global.format.as_deref() {
            Some(form @ ("dot" | "svg")) => {
                let run = args.runs[0].as_str();
                draw(&answer.drawing(), form, out, || {
                    (
                        "DOT has no limit",
                        vec!["dendrer", "steps", run, "--compose", "trace", "--format", "dot"],
                    )
                })?;
                Ok(u8::from(made.is_broken()))
            }
            _ => out.answer(&answer),
        };
    }
    let mut answer = StepsAnswer::new(global.full, args.stats, traces.len() > 1);
    let mut stats = StepStats::default();
    for (trace, upto) in &traces {
        let mut printed = Ok(());
        each_step((trace, *upto), &mut |step| {
            let is_other = wanted.is_some_and(|wanted| step.action() != Some(wanted))
                || args.trace.is_some() && args.trace != step.step.trace_id;
            if is_other {
                return ControlFlow::Continue(());
            }
            if args.stats {
                stats.count(&step);
            } else {
                printed = out.take(&mut answer, &(trace.name().clone(), step));
            }
            if printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        printed?;
    }
    answer.stats = args.stats.then(|| stats.finish());
    out.end(&mut answer)
}
