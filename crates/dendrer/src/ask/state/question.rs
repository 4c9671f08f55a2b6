//! The question of `state` as data.

use dendrer_kernel::predicate::Window;
use dendrer_kernel::unknown::Since;
use dendrer_object::{Code, Pointer, Value, question};

use crate::address::{Address, state_path};
use crate::ask::state::{
    CutLimits, StateAnswer, StateDifference, differences, is_derived, unknown_at, unknown_state, value_at,
};
use crate::problem::Problem;
use crate::run::causal::{self, AgentState};
use crate::run::declared;
use crate::run::pack::of_run;
use crate::run::trace::Trace;
use crate::source::{Asked, Desk};

question! {
    /// Asks for a state, or for what differs between two
    pub struct StateQuestion: "state-question" {
        /// The run and tick, as an address; with an agent, its state along its causal ancestors
        pub rev: String,
        /// The only place of the state
        pub path: Option<String>,
        /// The side of the transition; the state after it if not given
        pub window: Option<Window>,
        /// The state that it is compared with, as an address
        pub base: Option<String>,
        /// How many bytes a text, a list or an object has at most: a longer one is `$cut`, with its beginning
        pub max: Option<u64>,
        /// How many levels the value has: what is deeper is `$cut`
        pub depth: Option<u64>,
    }
}

/// The answer about a state.
#[derive(Debug, Clone)]
pub enum StateReply {
    /// The state, or one value of it.
    State(StateAnswer),
    /// The difference between two states.
    Difference(StateDifference),
}

/// A state that was read, and where.
struct StateRead {
    trace: Trace,
    agent: Option<String>,
    tick: u64,
    /// The tick after which the state was.
    looked_at: u64,
    state: Value,
    /// The unknown places of the state of an agent; those of a run are in its state.
    unknown: Vec<(Pointer, Since)>,
}

impl StateRead {
    /// Reads the state that `RUN[@TICK]` or `RUN:AGENT[@TICK]` names.
    fn of(text: &str, window: Window, desk: &mut dyn Desk) -> Result<StateRead, Problem> {
        if let Some((address, agent)) = Address::of_agent(text)? {
            if window == Window::Before {
                return Err(Problem::new(Code::E0106, "the state of an agent is that behind its transition")
                    .note("what stood there before it is that at the one before"));
            }
            let source = desk.look(&address)?;
            let trace = desk.run_in(source, &address, "state")?.trace;
            let (agent, upto) = causal::agent_of(&trace, agent)?;
            let AgentState { tick, state, unknown } = causal::state_of(&trace, agent, upto)?;
            let agent = Some(agent.to_owned());
            return Ok(StateRead { trace, agent, tick, looked_at: tick, state, unknown });
        }
        let address = Address::parse(text)?;
        let source = desk.look(&address)?;
        let asked = desk.run_in(source, &address, "state")?;
        let tick = asked.tick()?;
        let looked_at = if window == Window::Before { tick.saturating_sub(1) } else { tick };
        let trace = asked.trace;
        let state = trace.state(looked_at);
        let state = state.map_err(|error| unknown_state(error, &trace, &asked.address, looked_at))?;
        Ok(StateRead { trace, agent: None, tick, looked_at, state, unknown: Vec::new() })
    }

    /// Returns the unknown places that a value meets.
    fn unknown_at(&self, path: &Pointer) -> Result<Vec<(Pointer, Since)>, Problem> {
        match self.agent {
            None => Ok(unknown_at(&self.trace, self.looked_at, &self.state, path)?),
            Some(_) => Ok(self.unknown.iter().filter(|(place, _)| place.overlaps(path)).cloned().collect()),
        }
    }
}

impl StateQuestion {
    fn limits(&self) -> CutLimits {
        CutLimits { max: self.max, depth: self.depth }
    }
}

impl Asked for StateQuestion {
    type Reply = StateReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<StateReply, Problem> {
        let window = self.window.unwrap_or_default();
        let read = StateRead::of(&self.rev, window, desk)?;
        let path = state_path(self.path.as_deref().unwrap_or_default())?;
        let (trace, tick, run) = (&read.trace, read.tick, read.trace.name().clone());
        if let Some(base) = &self.base {
            let other = StateRead::of(base, Window::After, desk)?;
            let mut changes = differences(&other.state, &read.state);
            declared::place(&[trace, &other.trace], &path)?;
            changes.retain(|change| change.path.overlaps(&path));
            self.limits().apply_to(&mut changes);
            let base = (other.trace.name().clone(), other.tick);
            let mut unknown = other.unknown_at(&path)?;
            let more = read.unknown_at(&path)?;
            unknown.extend(more.into_iter().filter(|one| !unknown.contains(one)).collect::<Vec<_>>());
            let place = (run, tick);
            return Ok(StateReply::Difference(StateDifference {
                place,
                base,
                window,
                path,
                changes,
                unknown,
            }));
        }
        let derived = is_derived(&path) && read.agent.is_none();
        let found = match read.agent {
            None => value_at(trace, read.looked_at, &read.state, &path)?,
            Some(_) => path.get(&read.state).cloned(),
        };
        let unknown = read.unknown_at(&path)?;
        // That nothing is at an unknown place is not known either.
        let found = found.or_else(|| (!unknown.is_empty()).then_some(Value::Null));
        let Some(value) = found else {
            declared::place(&[trace], &path)?;
            let of = read.agent.map(|agent| format!(" of {agent}")).unwrap_or_default();
            let what = format!("there is nothing at {}{of} in {run}@{tick}", path.dotted());
            return Err(Problem::new(Code::E0104, what)
                .note("it has a value at another tick, or the pack declares it")
                .help(&["dendrer", "backtrack", run.as_str(), &path.dotted()]));
        };
        let (root, agent) = (read.state.digest(), read.agent);
        let is_empty = agent.is_none() && value.as_object().is_some_and(|members| members.is_empty());
        let is_bare = is_empty && path.as_str().is_empty() && of_run(trace)?.is_none();
        let answer = StateAnswer {
            run,
            agent,
            tick,
            window,
            path,
            root,
            value,
            derived,
            unknown,
            is_bare,
            limits: self.limits(),
        };
        Ok(StateReply::State(answer))
    }
}
