//! `dendrer replay`

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer::Trace;
use dendrer::address::{Address, Position, state_path};
use dendrer::ask::replay::{self, ReplayedTick};
use dendrer::casebook::{self, Place};
use dendrer::change::graph::inject;
use dendrer::graph::eval::NodeFault;
use dendrer::graph::frontier::{replay as replayed, substitute};
use dendrer::reread;
use dendrer::run::{declared, frontier};
use dendrer_object::{Code, Value};
use dendrer_view::graphs::{DivergenceObject, GraphReplayAnswer};
use dendrer_view::problem;
use dendrer_view::replay::ReplayAnswer;

use crate::context;
use crate::context::edges::{pair, substitutes};
use crate::context::runs::new_name;
use crate::context::shell;
use crate::failure::{Failure, Result};
use crate::global::{Global, tick_arg};
use crate::offers;
use crate::out::Out;
use crate::progress::Progress;

/// `replay`
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The run
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) run: String,
    /// The first tick to print
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Position>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Position>,
    /// A divergence ends with exit code 7 (the default)
    #[arg(long)]
    pub(crate) strict: bool,
    /// A divergence is reported and does not fail
    #[arg(long, conflicts_with = "strict")]
    pub(crate) detect: bool,
    /// Evaluate the reducer twice and compare
    #[arg(long)]
    pub(crate) twice: bool,
    /// What to print for each tick
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) print: PrintChoice,
    /// With --print state: one path of it
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) path: Option<String>,
    /// Of a graph's run: another value of an edge, by its path and a JSON file; says what follows from it
    #[arg(long, value_name = "ID=FILE", conflicts_with_all = ["from", "to", "twice", "exec_read"])]
    pub(crate) set: Vec<String>,
    /// With --set: make a fork with these values
    #[arg(long = "as", value_name = "NEW", requires = "set")]
    pub(crate) new: Option<String>,
    /// Of a graph's run: write a divergence into the casebook
    #[arg(long)]
    pub(crate) record: bool,
    /// Call this reading tool again, by a command: JSON parameters in, JSON answer out
    #[arg(long, value_name = "TOOL=CMD")]
    pub(crate) exec_read: Vec<String>,
}

/// What to print for each tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrintChoice {
    /// Nothing.
    None,
    /// The state root.
    Hash,
    /// The state.
    State,
}

pub(crate) fn run(global: &Global, args: &Replay, out: &mut Out) -> Result {
    let rev = Address::parse(&args.run)?;
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(&source.store)?;
    let trace = source.trace(&rev)?;
    let is_in_part = args.from.is_some() || args.to.is_some() || rev.pos.is_some() || args.twice;
    let is_in_part = is_in_part || args.print != PrintChoice::None || !args.exec_read.is_empty();
    if frontier::is_graph(&trace) && !is_in_part {
        return graph(global, args, &trace, out);
    }
    if !args.set.is_empty() || args.record {
        let what = format!("{} is not the run of a graph, so it has no edges", trace.name());
        return Err(Failure::new(Code::E0938, what));
    }
    let from = args.from.as_ref().map_or(Ok(1), |pos| pos.tick(&trace))?;
    let to = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    let path = args.path.as_deref().map(state_path).transpose()?;
    path.iter().try_for_each(|path| declared::place(&[&trace], path))?;
    let commands = args
        .exec_read
        .iter()
        .map(|text| pair("--exec-read", "TOOL=CMD", text))
        .collect::<Result<BTreeMap<_, _>>>()?;
    let mut answer = ReplayAnswer::new(args.detect);
    let mut taken = Ok(());
    // Lines that are printed tick by tick show how far the replay has come.
    let progress =
        (args.print == PrintChoice::None).then(|| Progress::start(global, "replay", "ticks", Some(to)));
    let replayed = replay::replay(&trace, to, args.twice, &mut |head| {
        if let Some(progress) = &progress {
            progress.set(head.tick());
        }
        if head.tick() < from || args.print == PrintChoice::None {
            return ControlFlow::Continue(());
        }
        let state = (args.print == PrintChoice::State).then(|| {
            let value = path.as_ref().map_or(Some(head.state()), |path| path.get(head.state()));
            value.cloned().unwrap_or(Value::Null)
        });
        taken =
            out.take(&mut answer, &ReplayedTick { tick: head.tick(), root: head.state().digest(), state });
        if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    drop(progress);
    taken?;
    if !commands.is_empty() && replayed.error.is_none() {
        let tools: Vec<&str> = commands.keys().copied().collect();
        let call = &mut |tool: &str, params: &Value| shell::ask(commands[tool], tool, params);
        let made = reread::reread(&trace, &tools, to, call).map_err(|error| {
            Failure::new(error.code(), error.to_string()).note("no command was run, and nothing was written")
        })?;
        answer.reread = Some(made);
    }
    let failure = replayed.error.as_ref().filter(|_| !args.detect).map(problem::replay);
    answer.replayed = Some(replayed);
    out.end_or(&mut answer, failure)
}

/// Evaluates the graph of a run again over its recorded frontier, and with --set over other values.
fn graph(global: &Global, args: &Replay, trace: &Trace, out: &mut Out) -> Result {
    let run = frontier::graph_run(trace)?;
    let node = |fault: NodeFault| Failure::new(Code::E0935, fault.to_string());
    let (found, divergence) =
        replayed(&run.graph, &run.children, &run.functions, &run.frontier).map_err(node)?;
    let mut answer = GraphReplayAnswer {
        run: &run,
        nodes: found.nodes.len() as u64,
        output: found.output.as_ref(),
        divergence: divergence.as_ref(),
        substituted: None,
        fork: None,
    };
    if let Some(divergence) = divergence.as_ref().filter(|_| args.record && !answer.is_open()) {
        let place = Place::of(trace, None)?;
        let value = DivergenceObject::of(divergence).into();
        context::write_down(global, |store, world| {
            casebook::record_divergence(store, &place, &value, world)
        })?;
    }
    if args.set.is_empty() || (divergence.is_some() && !answer.is_open()) {
        return out.answer(&answer);
    }
    let others = substitutes(&run, &args.set)?;
    let substituted =
        substitute(&run.graph, &run.children, &run.functions, &run.frontier, &others).map_err(node)?;
    answer.substituted = Some(&substituted);
    answer.nodes = substituted.found.nodes.len() as u64;
    answer.output = substituted.found.output.as_ref();
    let fork = match &args.new {
        None => None,
        Some(name) => {
            let repo = context::write_store(global)?;
            let name = new_name(Some(name), "", repo.writer()?)?;
            inject(&repo, trace, name.clone(), &others)?;
            context::close(repo)?;
            Some(name)
        }
    };
    answer.fork = fork.as_ref();
    out.answer(&answer)
}
