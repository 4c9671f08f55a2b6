//! `dendrer commitments`: what the agent of a run is bound to, why, and until when; delegation.

use std::io::Read;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use dendrer::Trace;
use dendrer::address::Position;
use dendrer::ask::commitments::question::{CommitmentsQuestion, CommitmentsReply, check_call};
use dendrer::ask::commitments::{commitments, difference, each_action, history};
use dendrer::delegate::question::{AcceptQuestion, DelegateQuestion};
use dendrer::kernel::commitment::{CommitmentKind, CommitmentStatus};
use dendrer::source::{Asked as _, Desk};
use dendrer_object::{Code, RunName, Value, json};
use dendrer_view::answer::Line;
use dendrer_view::ccas::ccas_text;
use dendrer_view::commitments::{
    CommitmentGraphAnswer, CommitmentWhyAnswer, CommitmentsDiffAnswer, EpsilonAnswer,
};

use crate::context::desk;
use crate::context::desk::CommandDesk;
use crate::context::ticks::in_order;
use crate::failure::{Failure, Result};
use crate::global::{Global, tick_arg};
use crate::offers;
use crate::out::Out;
use crate::out::drawing::draw;

/// `commitments`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CommitmentsVerb {
    #[command(subcommand)]
    pub(crate) act: Option<CommitmentsAct>,
    /// The run, or RUN@TICK for a moment of it
    #[arg(required = true, add = ArgValueCompleter::new(offers::runs))]
    pub(crate) run: Option<String>,
    /// At this tick, as in RUN@TICK
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) at: Option<Position>,
    /// Of this type: obs, hyp, goal, obl, pref, plan or deleg
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(CommitmentKind::WORDS).try_map(|word| word.parse::<CommitmentKind>()), hide_possible_values = true)]
    pub(crate) kind: Option<CommitmentKind>,
    /// With this status: retracted, superseded, discharged, stale, blocked, dormant, tentative or active
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(CommitmentStatus::WORDS).try_map(|word| word.parse::<CommitmentStatus>()), hide_possible_values = true)]
    pub(crate) status: Option<CommitmentStatus>,
    /// In this scope
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<String>,
    /// Only those with a conflict
    #[arg(long)]
    pub(crate) conflicts: bool,
    /// Only those that are stale
    #[arg(long)]
    pub(crate) stale: bool,
    /// Say of calls whether they are admissible: JSON lines with `tool` and `params`, - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "status", "scope", "conflicts", "stale"])]
    pub(crate) admissible: Option<String>,
    /// With --format ccas: at most so many tokens of four bytes
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<usize>,
}

/// What is done besides listing.
#[derive(Debug, Subcommand)]
pub(crate) enum CommitmentsAct {
    /// Show what supports a commitment, and what decided its status
    Why {
        /// The run, or RUN@TICK for a moment of it
        #[arg(add = ArgValueCompleter::new(offers::runs))]
        run: String,
        /// The id of the commitment, or ID@agent:NAME, ID@user, ID@runtime where several authors have it
        id: String,
    },
    /// Show whose status differs between two ticks
    Diff {
        /// The run
        #[arg(add = ArgValueCompleter::new(offers::runs))]
        run: String,
        /// The first tick; 0 where nothing is said
        #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
        from: Option<Position>,
        /// The second tick; the last where nothing is said
        #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
        to: Option<Position>,
    },
    /// Show commitments and evidence with their edges; --format dot or svg draws them
    Graph {
        /// The run, or RUN@TICK for a moment of it
        #[arg(add = ArgValueCompleter::new(offers::runs))]
        run: String,
    },
    /// Count the recorded calls of which the text of --format ccas decides otherwise than the run
    Epsilon {
        /// The run, or RUN@TICK to end it there
        #[arg(add = ArgValueCompleter::new(offers::runs))]
        run: String,
        /// The text has at most so many tokens of four bytes
        #[arg(long, value_name = "TOKENS")]
        budget: Option<usize>,
    },
    /// Begin a child run under a contract with the commitments that are relevant to its scope
    Delegate {
        /// The parent
        #[arg(add = ArgValueCompleter::new(offers::runs))]
        run: String,
        /// The scope, a JSON file: id, gloss, goal, allowed, tools, forbidden, touches, budget, deliverables, failure, until, scope
        #[arg(long, value_name = "FILE")]
        scope: String,
        /// The id of the delegation, in place of the one in the scope file
        #[arg(long, value_name = "ID")]
        id: Option<String>,
        /// The name of the child
        #[arg(long = "as", value_name = "CHILD")]
        child: RunName,
        /// The stage of the child; that of the parent where nothing is said
        #[arg(long, value_name = "STAGE", value_parser = clap::value_parser!(u8).range(0..=3))]
        stage: Option<u8>,
        /// Say what would be handed over: write nothing
        #[arg(short = 'n', long)]
        dry_run: bool,
    },
    /// Take what a child run brought into its parent, or keep the refusal
    Accept {
        /// The child
        #[arg(add = ArgValueCompleter::new(offers::runs))]
        child: String,
        /// Decide only: write nothing
        #[arg(short = 'n', long)]
        dry_run: bool,
    },
}

pub(crate) fn run(global: &Global, verb: &CommitmentsVerb, out: &mut Out) -> Result {
    match &verb.act {
        None => list(global, verb, out),
        Some(CommitmentsAct::Why { run, id }) => {
            let (trace, upto) = one(global, run, None, out)?;
            let found = commitments((&trace, upto))?;
            let Some(id) = found.all.find(id).filter(|id| found.all.get(id).is_some()) else {
                return Err(Failure::new(Code::E0101, format!("{run} has no commitment {id}")).help(&[
                    "dendrer",
                    "commitments",
                    run,
                ]));
            };
            let history = history(&trace, &found, &id)?;
            out.answer(&CommitmentWhyAnswer { found, id: id.to_string(), history })
        }
        Some(CommitmentsAct::Diff { run, from, to }) => {
            let (trace, upto) = one(global, run, to.as_ref(), out)?;
            let from = from.as_ref().map_or(Ok(0), |from| from.tick(&trace))?;
            in_order(from, upto)?;
            out.answer(&CommitmentsDiffAnswer(difference(&trace, from, upto)?))
        }
        Some(CommitmentsAct::Graph { run }) => {
            let (trace, upto) = one(global, run, None, out)?;
            let answer = CommitmentGraphAnswer { found: commitments((&trace, upto))? };
            match global.format.as_deref() {
                Some(form @ ("dot" | "svg")) => draw(&answer.drawing(), form, out, || {
                    ("DOT has no limit", vec!["dendrer", "commitments", "graph", run, "--format", "dot"])
                }),
                _ => out.answer(&answer),
            }
        }
        Some(CommitmentsAct::Epsilon { run, budget }) => {
            let (trace, upto) = one(global, run, None, out)?;
            let mut answer =
                EpsilonAnswer { run: trace.name().to_string(), budget: *budget, ..EpsilonAnswer::default() };
            each_action((&trace, upto), &mut |at, _, found| answer.add(at, found))?;
            out.answer(&answer)
        }
        Some(CommitmentsAct::Delegate { run, scope, id, child, stage, dry_run }) => {
            let question = DelegateQuestion {
                run: run.clone(),
                scope: Some(read_scope(scope)?),
                id: id.clone(),
                r#as: child.to_string(),
                stage: stage.map(u64::from),
                dry_run: *dry_run,
            };
            let mut desk = CommandDesk::new(global, out);
            desk.names("scope", Some(scope));
            let asked = question.ask(&mut desk);
            drop(desk);
            out.answer(&asked?)
        }
        Some(CommitmentsAct::Accept { child, dry_run }) => {
            let question = AcceptQuestion { child: child.clone(), dry_run: *dry_run };
            desk::answer(global, &question, out)
        }
    }
}

fn list(global: &Global, verb: &CommitmentsVerb, out: &mut Out) -> Result {
    let Some(run) = &verb.run else { return Err(Failure::new(Code::E0106, "name a run")) };
    let is_text = global.format.as_deref() == Some("ccas");
    if verb.budget.is_some() && !is_text {
        return Err(Failure::new(Code::E0106, "a budget is of the text: --format ccas --budget TOKENS"));
    }
    let selects = verb.kind.is_some() || verb.status.is_some() || verb.conflicts || verb.stale;
    if is_text && selects {
        let what = "the text of --format ccas is of a scope: --scope SCOPE; lists are selected without it";
        return Err(Failure::new(Code::E0106, what));
    }
    let calls = match verb.admissible.as_deref().map(read_calls).transpose() {
        Ok(calls) => calls,
        // A fault of the run is reported before one of the file.
        Err(failure) => return one(global, run, verb.at.as_ref(), out).and(Err(failure)),
    };
    let question = CommitmentsQuestion {
        run: run.clone(),
        at: verb.at.clone(),
        kind: verb.kind,
        status: verb.status,
        scope: verb.scope.clone(),
        conflicts: verb.conflicts,
        stale: verb.stale,
        admissible: calls,
    };
    match desk::ask(global, &question, out)? {
        CommitmentsReply::Listed(answer) if is_text => {
            let text = ccas_text(&answer.found, verb.scope.as_deref(), verb.budget).map_err(|over| {
                let what = format!(
                    "the hard commitments take {} tokens, and the budget is {}",
                    over.needed, over.budget
                );
                Failure::new(Code::E0457, what).note("raise --budget, or narrow --scope")
            })?;
            out.print(text.lines().map(Line::from).collect())?;
            Ok(0)
        }
        reply => out.answer(&reply),
    }
}

/// Opens a run with the tick at which it is asked about.
fn one(global: &Global, run: &str, at: Option<&Position>, out: &mut Out) -> Result<(Trace, u64)> {
    let desk: &mut dyn Desk = &mut CommandDesk::new(global, out);
    desk.up_to(run, at)
}

fn read_file(path: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = match path {
        "-" => std::io::stdin().read_to_end(&mut bytes).map(drop),
        path => std::fs::read(path).map(|read| bytes = read),
    };
    read.map_err(|error| Failure::new(Code::E0103, format!("{path}: {error}")))?;
    Ok(bytes)
}

fn read_calls(path: &str) -> Result<Vec<Value>> {
    let bytes = read_file(path)?;
    let mut calls = Vec::new();
    for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let at = |message: String| Failure::new(Code::E0201, format!("{path}, line {line}: {message}"));
        let value = json::parse_door(text).map_err(|error| at(error.to_string()))?;
        check_call(&value).map_err(at)?;
        calls.push(value);
    }
    Ok(calls)
}

fn read_scope(path: &str) -> Result<Value> {
    json::parse_door(&read_file(path)?)
        .map_err(|error| Failure::new(Code::E0201, format!("{path}: {error}")).note("nothing was changed"))
}
