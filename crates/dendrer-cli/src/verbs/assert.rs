//! `dendrer assert`: whether the steps of a run pass a gate.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::ask::gate::{Gate, judge};
use dendrer_object::Code;
use dendrer_view::forms::{FindingsForm, GateFindingsAnswer};
use dendrer_view::gate::GateAnswer;

use crate::context;
use crate::failure::{Failure, Result};
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
    let each =
        args.holds.iter().map(|text| (text, true)).chain(args.predicate.iter().map(|text| (text, false)));
    let gates = each.map(|(text, holds)| {
        Gate::new(text, holds, args.allow_empty)
            .map_err(|error| Failure::new(error.code(), error.to_string()).at("expression", text.as_str()))
    });
    let gates = gates.collect::<Result<Vec<Gate>>>()?;
    if gates.is_empty() {
        return Err(Failure::new(Code::E0106, "assert needs --holds EXPR or --predicate EXPR")
            .help(&["dendrer", "steps", &args.run, "--stats"]));
    }
    let traces = context::traces(global, std::slice::from_ref(&args.run), out)?;
    let (trace, upto) = &traces[0];
    let judged = judge((trace, *upto), &gates, args.allow_empty)?;
    let answer = GateAnswer { run: trace.name().clone(), gates: judged };
    match global.format.as_deref().and_then(FindingsForm::parse) {
        Some(form) => out.findings(form, &GateFindingsAnswer { form, answer: &answer }),
        None => out.answer(&answer),
    }
}
