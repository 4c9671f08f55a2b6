//! `dendrer replay`

use std::ops::ControlFlow;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use dendrer::kernel::replay::ReplayError;
use dendrer::verify::replay_with;
use dendrer_object::Value;
use dendrer_view::{count, document, problem, quote};

use crate::address::Pos;
use crate::address::Rev;
use crate::address::state_path;
use crate::context;
use crate::failure::Result;
use crate::global::Format;
use crate::global::Global;
use crate::global::tick_arg;
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
    pub(crate) from: Option<Pos>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Pos>,
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
    let rev = Rev::parse(&args.run)?;
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let trace = source.trace(&rev)?;
    let from = args.from.as_ref().map_or(Ok(1), |pos| pos.tick(&trace))?;
    let to = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    let path = args.path.as_deref().map(state_path).transpose()?;
    let mut items = Vec::new();
    let mut failed = Ok(());
    // What is printed tick by tick shows by itself how far it has come.
    let progress =
        (args.print == PrintChoice::None).then(|| Progress::start(global, "replay", "ticks", Some(to)));
    let reducer = dendrer::pack::reducer_of(&trace)?;
    let result = replay_with(&trace, to, &*reducer, args.twice, &mut |head, _| {
        if let Some(progress) = &progress {
            progress.set(head.tick());
        }
        if head.tick() < from || args.print == PrintChoice::None {
            return ControlFlow::Continue(());
        }
        let mut item =
            vec![("tick", Value::from(head.tick())), ("state_root", Value::from(head.state().digest()))];
        if args.print == PrintChoice::State {
            let value = path.as_ref().map_or(Some(head.state()), |path| path.get(head.state()));
            item.push(("state", value.cloned().unwrap_or(Value::Null)));
        }
        failed = print(out, &Value::record(item), &mut items);
        if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    drop(progress);
    failed?;
    let (code, divergence) = match &result {
        Ok(_) => (0, Value::Null),
        Err(error) => {
            (if args.detect { 0 } else { problem::replay(error).exit() }, problem::replay(error).to_json())
        }
    };
    let made = match &result {
        Ok(ticks) => *ticks,
        Err(ReplayError::Divergence(divergence)) => divergence.tick.saturating_sub(1),
        Err(
            ReplayError::Erased { tick, .. }
            | ReplayError::Delta { tick, .. }
            | ReplayError::Seal { tick, .. },
        ) => tick.saturating_sub(1),
        Err(_) => 0,
    };
    let members = [
        ("run", Value::from(trace.name().as_str())),
        ("to", Value::from(to)),
        ("ticks", Value::from(made)),
        ("ok", Value::from(result.is_ok())),
        ("twice", Value::from(args.twice)),
        ("divergence", divergence),
    ];
    match out.format() {
        Format::Json => {
            let items = ("items", Value::array(items));
            out.document(&document("replay", members.into_iter().chain([items])))?;
            Ok(code)
        }
        Format::Jsonl => {
            out.summary("replay", members)?;
            Ok(code)
        }
        Format::Text => match result {
            Ok(ticks) => {
                let twice = if args.twice { ", two evaluations each" } else { "" };
                out.line(format!(
                    "replayed   OK    {} of {} of {}, by {}{twice}; no model and no tool was called",
                    count(ticks, "tick", "ticks"),
                    trace.tip(),
                    trace.name(),
                    reducer.name()
                ))?;
                Ok(0)
            }
            Err(error) if args.detect => {
                out.line(format!("replayed   WARN  {}", quote::escape(&error.to_string())))?;
                Ok(0)
            }
            Err(error) => Err(problem::replay(&error)),
        },
    }
}

fn print(out: &mut Out, item: &Value, items: &mut Vec<Value>) -> Result<()> {
    match out.format() {
        Format::Json => items.push(item.clone()),
        Format::Jsonl => out.item(item)?,
        Format::Text => {
            let text = |name: &str| {
                item.get(name).map(|value| value.as_str().map_or_else(|| quote::value(value), quote::escape))
            };
            let state = text("state").map(|state| format!("  {state}")).unwrap_or_default();
            out.line(format!(
                "{:>6}  {}{state}",
                text("tick").unwrap_or_default(),
                text("state_root").unwrap_or_default()
            ))?;
        }
    }
    Ok(())
}
