//! `dendrer state`

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::Trace;
use dendrer::address::{Address, Position, state_path};
use dendrer::ask::state::{StateAnswer, StateDifference, differences, is_derived, unknown_at, value_at};
use dendrer::kernel::predicate::Window;
use dendrer::kernel::unknown::Since;
use dendrer::run::causal::{self, AgentState};
use dendrer::run::declared;
use dendrer_object::{Code, Pointer, Value};

use crate::context;
use crate::context::runs::unknown_state;
use crate::failure::{Failure, Result};
use crate::global::{Global, WindowChoice};
use crate::offers;
use crate::out::Out;

/// `state`
#[derive(Debug, Args)]
pub(crate) struct State {
    /// What: RUN@TICK, or RUN:AGENT@TICK for the state of an agent along its causal ancestors
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

/// A state that was read, and where.
struct Read {
    trace: Trace,
    agent: Option<String>,
    tick: u64,
    /// The tick behind which the state was.
    looked_at: u64,
    state: Value,
    /// The unknown places of the state of an agent; those of a run are in its state.
    unknown: Vec<(Pointer, Since)>,
}

impl Read {
    /// The unknown places that a value meets.
    fn unknown_at(&self, path: &Pointer) -> Result<Vec<(Pointer, Since)>> {
        match self.agent {
            None => Ok(unknown_at(&self.trace, self.looked_at, &self.state, path)?),
            Some(_) => Ok(self.unknown.iter().filter(|(place, _)| place.overlaps(path)).cloned().collect()),
        }
    }
}

/// Reads the state that `RUN[@TICK]` or `RUN:AGENT[@TICK]` names.
fn read(global: &Global, text: &str, window: WindowChoice, out: &mut Out) -> Result<Read> {
    if let Some((rev, agent)) = Address::of_agent(text)? {
        if matches!(window, WindowChoice::Before) {
            return Err(Failure::new(Code::E0106, "the state of an agent is that behind its transition")
                .note("what stood there before it is that at the one before"));
        }
        let source = context::source(global, &rev, out)?;
        let rev = rev.resolve(&source.store)?;
        let (_progress, counted) = context::watched(global, &source, "state");
        let trace = source.trace_through(&counted, &rev)?;
        let (agent, upto) = causal::agent_of(&trace, agent)?;
        let AgentState { tick, state, unknown } = causal::state_of(&trace, agent, upto)?;
        let agent = Some(agent.to_owned());
        return Ok(Read { trace, agent, tick, looked_at: tick, state, unknown });
    }
    let rev = Address::parse(text)?;
    let source = context::source(global, &rev, out)?;
    let rev = rev.resolve(&source.store)?;
    let (_progress, counted) = context::watched(global, &source, "state");
    let trace = source.trace_through(&counted, &rev)?;
    let tick = rev.pos.as_ref().unwrap_or(&Position::Tip).tick(&trace)?;
    let looked_at = match window {
        WindowChoice::After => tick,
        WindowChoice::Before => tick.saturating_sub(1),
    };
    let state = trace.state(looked_at).map_err(|error| unknown_state(error, &trace, &rev, looked_at))?;
    Ok(Read { trace, agent: None, tick, looked_at, state, unknown: Vec::new() })
}

pub(crate) fn run(global: &Global, args: &State, out: &mut Out) -> Result {
    let read_state = read(global, &args.rev, args.window, out)?;
    let path = state_path(args.path.as_deref().unwrap_or_default())?;
    let window = match args.window {
        WindowChoice::After => Window::After,
        WindowChoice::Before => Window::Before,
    };
    let (trace, tick, state) = (&read_state.trace, read_state.tick, &read_state.state);
    let run = trace.name().clone();
    if let Some(base) = &args.base {
        let other = read(global, base, WindowChoice::After, out)?;
        let mut changes = differences(&other.state, state);
        declared::place(&[trace, &other.trace], &path)?;
        changes.retain(|change| change.path.overlaps(&path));
        let base = (other.trace.name().clone(), other.tick);
        let mut unknown = other.unknown_at(&path)?;
        let more = read_state.unknown_at(&path)?;
        unknown.extend(more.into_iter().filter(|one| !unknown.contains(one)).collect::<Vec<_>>());
        return out.answer(&StateDifference { place: (run, tick), base, window, path, changes, unknown });
    }
    let (root, derived) = (state.digest(), is_derived(&path) && read_state.agent.is_none());
    let found = match read_state.agent {
        None => value_at(trace, read_state.looked_at, state, &path)?,
        Some(_) => path.get(state).cloned(),
    };
    let unknown = read_state.unknown_at(&path)?;
    // That nothing is at an unknown place is not known either.
    let found = found.or_else(|| (!unknown.is_empty()).then_some(Value::Null));
    let Some(value) = found else {
        declared::place(&[trace], &path)?;
        let of = read_state.agent.map(|agent| format!(" of {agent}")).unwrap_or_default();
        let what = format!("there is nothing at {}{of} in {run}@{tick}", path.dotted());
        return Err(Failure::new(Code::E0104, what)
            .note("it has a value at another tick, or the pack declares it")
            .help(&["dendrer", "backtrack", run.as_str(), &path.dotted()]));
    };
    let agent = read_state.agent;
    out.answer(&StateAnswer {
        run,
        agent,
        tick,
        window,
        path,
        root,
        value,
        derived,
        depth: args.depth,
        unknown,
    })
}
