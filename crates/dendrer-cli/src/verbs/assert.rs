//! `dendrer assert`: whether the steps of a run pass a gate.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::ask::gate::question::AssertQuestion;
use dendrer_view::forms::{FindingsForm, GateFindingsAnswer};

use crate::context::desk;
use crate::failure::Result;
use crate::global::Global;
use crate::offers;
use crate::out::Out;

/// `assert`
#[derive(Debug, Args)]
pub(crate) struct Assert {
    /// The run, or RUN@TICK to end it there
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) run: String,
    /// What must be true, over state, steps, by_action("ACTION") and success_rate(LIST)
    #[arg(long, value_name = "EXPR")]
    pub(crate) holds: Vec<String>,
    /// What must not be true
    #[arg(long, value_name = "EXPR")]
    pub(crate) predicate: Vec<String>,
    /// Let a gate pass that asks for steps of which there are none
    #[arg(long)]
    pub(crate) allow_empty: bool,
}

pub(crate) fn run(global: &Global, args: &Assert, out: &mut Out) -> Result {
    let question = AssertQuestion {
        run: args.run.clone(),
        holds: args.holds.clone(),
        predicate: args.predicate.clone(),
        allow_empty: args.allow_empty,
    };
    let answer = desk::ask(global, &question, out)?;
    match global.format.as_deref().and_then(FindingsForm::parse) {
        Some(form) => out.findings(form, &GateFindingsAnswer { form, answer: &answer }),
        None => out.answer(&answer),
    }
}
