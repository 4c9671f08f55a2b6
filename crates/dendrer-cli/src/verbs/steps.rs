//! `dendrer steps`: runs as steps of witness chains.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::ask::steps::question::{StepsQuestion, StepsReply};
use dendrer::ask::steps::{ComposeBy, Composition};
use dendrer_view::steps::{CompositionAnswer, StepsAnswer};

use crate::context::desk;
use crate::failure::Result;
use crate::global::{Global, word};
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
    #[arg(long, value_parser = word::<ComposeBy>(JOINS), value_name = "BY", conflicts_with_all = ["by", "trace", "stats"])]
    pub(crate) compose: Option<ComposeBy>,
}

/// The words for what joins chains.
const JOINS: &[(&str, &str)] = &[("trace", "Equal `trace_id`"), ("parent", "`parent_id`")];

pub(crate) fn run(global: &Global, args: &Steps, out: &mut Out) -> Result {
    let question = StepsQuestion {
        runs: args.runs.clone(),
        by: args.by.clone(),
        trace: args.trace.clone(),
        stats: args.stats,
        compose: args.compose,
        full: global.full,
    };
    let opened = match desk::ask(global, &question, out)? {
        StepsReply::Composition(made) => return composition(global, &made, &args.runs[0], out),
        StepsReply::Steps(opened) => opened,
    };
    let mut answer = StepsAnswer::new(global.full, args.stats, opened.traces.len() > 1);
    answer.stats = opened.each(&mut |step| out.take(&mut answer, step))?;
    out.end(&mut answer)
}

/// Prints chains as one graph, or draws it.
fn composition(global: &Global, made: &Composition, run: &str, out: &mut Out) -> Result {
    let answer = CompositionAnswer(made);
    match global.format.as_deref() {
        Some(form @ ("dot" | "svg")) => {
            draw(&answer.drawing(), form, out, || {
                ("DOT has no limit", vec!["dendrer", "steps", run, "--compose", "trace", "--format", "dot"])
            })?;
            Ok(u8::from(made.is_broken()))
        }
        _ => out.answer(&answer),
    }
}
