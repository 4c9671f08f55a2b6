//! `dendrer state`

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::{Address, Position, state_path};
use dendrer::ask::state::{StateAnswer, StateDifference, differences, is_derived, value_at};
use dendrer::kernel::predicate::Window;
use dendrer::kernel::unknown;
use dendrer::run::declared;
use dendrer_object::Code;

use crate::context;
use crate::context::runs::unknown_state;
use crate::failure::{Failure, Result};
use crate::global::{Global, WindowChoice};
use crate::offers;
use crate::out::Out;

/// `state`
#[derive(Debug, Args)]
pub(crate) struct State {
    /// What: RUN@TICK
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) rev: String,
    /// One path of it
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) path: Option<String>,
    /// The state before the transition, or after it
    #[arg(long, value_enum, default_value = "after")]
    pub(crate) window: WindowChoice,
    /// Print what differs from the state there, instead of the state
    #[arg(long, value_name = "REV", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) base: Option<String>,
    /// How deep to print
    #[arg(long, conflicts_with = "base")]
    pub(crate) depth: Option<usize>,
}

pub(crate) fn run(global: &Global, args: &State, out: &mut Out) -> Result {
    let rev = Address::parse(&args.rev)?;
    let source = context::source(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let (progress, counted) = source.watched(global, "state");
    let trace = source.trace_through(&counted, &rev)?;
    let tick = rev.pos.as_ref().unwrap_or(&Position::Tip).tick(&trace)?;
    let (window, looked_at) = match args.window {
        WindowChoice::After => (Window::After, tick),
        WindowChoice::Before => (Window::Before, tick.saturating_sub(1)),
    };
    let state = trace.state(looked_at).map_err(|error| unknown_state(error, &trace, &rev, looked_at))?;
    drop(progress);
    let path = state_path(args.path.as_deref().unwrap_or_default())?;
    let run = trace.name().clone();
    if let Some(base) = &args.base {
        let rev = Address::parse(base)?;
        let source = context::source(global, &rev, out)?;
        let rev = rev.resolve(source.store())?;
        let other = source.trace(&rev)?;
        let from = rev.pos.as_ref().unwrap_or(&Position::Tip).tick(&other)?;
        let before = other.state(from).map_err(|error| unknown_state(error, &other, &rev, from))?;
        let mut changes = differences(&before, &state);
        declared::place(&[&trace, &other], &path)?;
        changes.retain(|change| change.path.overlaps(&path));
        let base = (other.name().clone(), from);
        let mut unknown = unknown::met_by(&before, &path);
        unknown.extend(
            unknown::met_by(&state, &path)
                .into_iter()
                .filter(|one| !unknown.contains(one))
                .collect::<Vec<_>>(),
        );
        return out.answer(&StateDifference { place: (run, tick), base, window, path, changes, unknown });
    }
    let (root, derived) = (state.digest(), is_derived(&path));
    let found = value_at(&trace, looked_at, &state, &path)?;
    let Some(value) = found else {
        declared::place(&[&trace], &path)?;
        let what = format!("there is nothing at {} in {run}@{tick}", path.dotted());
        return Err(Failure::new(Code::E0104, what)
            .note("it has a value at another tick, or the pack declares it")
            .help(&["dendrer", "backtrack", run.as_str(), &path.dotted()]));
    };
    let unknown = unknown::met_by(&state, &path);
    out.answer(&StateAnswer { run, tick, window, path, root, value, derived, depth: args.depth, unknown })
}
