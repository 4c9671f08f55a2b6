//! `dendrer coherence`: the coherence of steps, and of traces that span several runs.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::ask::steps::question::CoherenceQuestion;
use dendrer_view::answer::Line;
use dendrer_view::steps::CoherenceAnswer;

use crate::context::desk;
use crate::failure::Result;
use crate::global::Global;
use crate::offers;
use crate::out::Out;

/// `coherence`
#[derive(Debug, Args)]
pub(crate) struct Coherence {
    /// The runs, or RUN@TICK to end one there
    #[arg(required = true, add = ArgValueCompleter::new(offers::runs))]
    pub(crate) runs: Vec<String>,
}

pub(crate) fn run(global: &Global, args: &Coherence, out: &mut Out) -> Result {
    let question = CoherenceQuestion { runs: args.runs.clone() };
    let found = desk::ask(global, &question, out)?;
    let answer = CoherenceAnswer(&found);
    if global.format.as_deref() == Some("svg") {
        out.print(answer.svg().lines().map(Line::from).collect())?;
        return Ok(0);
    }
    out.answer(&answer)
}
