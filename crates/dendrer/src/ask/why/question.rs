//! The questions of `why` and `backtrack` as data.

use dendrer_object::{Code, question};

use crate::address::{Address, Position, state_path};
use crate::ask::counters;
use crate::ask::state::is_derived;
use crate::ask::why::Reach;
use crate::ask::why::action::{ActionWhy, action};
use crate::ask::why::gather::{self, BacktrackTerms, Backtracked, CausalPath, WhyAnswer};
use crate::problem::Problem;
use crate::run::{causal, declared};
use crate::source::{Asked, Desk, in_order};

question! {
    /// Asks what a value was made of: its last write, the inputs of that, and so on. Without a place, why an action was taken
    pub struct WhyQuestion: "why-question" {
        /// The place in time, as an address
        pub rev: String,
        /// The place in the state; of the action at the tick if not given
        pub path: Option<String>,
        /// The number of steps down; 3 if not given, 64 at most
        pub depth: Option<u64>,
        /// Whether transitions of other agents are followed
        pub cross_agent: bool,
    }
}

question! {
    /// Asks for the writes of a place, newest first
    pub struct BacktrackQuestion: "backtrack-question" {
        /// The run, as an address; with an agent, the writes among its causal ancestors
        pub run: String,
        /// The place in the state
        pub path: String,
        /// The first tick
        pub from: Option<Position>,
        /// The last tick
        pub to: Option<Position>,
        /// The only agent whose writes are listed
        pub agent: Option<String>,
        /// Whether only the newest write is listed
        pub last: bool,
        /// Whether the inputs of each write are listed
        pub inputs: bool,
        /// Whether the values before and after each write are listed
        pub values: bool,
        /// The number of writes at most; 0 for all, 50 if not given
        pub limit: Option<u64>,
    }
}

/// The number of steps down if none is given.
const DEPTH: u64 = 3;

/// The largest number of steps down.
const DEPTH_MAX: u64 = 64;

/// The number of writes if none is given.
const LIMIT: u64 = 50;

/// The answer to `why`.
#[derive(Debug, Clone)]
pub enum WhyReply {
    /// The last write of a place and its inputs.
    Place(Box<WhyAnswer>),
    /// Why an action was taken.
    Action(Box<ActionWhy>),
}

impl Asked for WhyQuestion {
    type Reply = WhyReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<WhyReply, Problem> {
        let depth = self.depth.unwrap_or(DEPTH);
        if depth > DEPTH_MAX {
            let what = format!("--depth is {depth}, and a tree has at most {DEPTH_MAX} steps");
            return Err(Problem::new(Code::E0106, what));
        }
        let asked = desk.run(&Address::parse(&self.rev)?, "why")?;
        let (trace, tick) = (&asked.trace, asked.tick()?);
        let Some(path) = &self.path else {
            return Ok(WhyReply::Action(Box::new(action(trace, tick)?)));
        };
        let path = state_path(path)?;
        if is_derived(&path)
            && let Some(answer) = counters::why(trace, tick, &path)?
        {
            return Ok(WhyReply::Place(Box::new(answer)));
        }
        let reach = Reach { depth: depth as usize, cross_agent: self.cross_agent };
        if let Some(answer) = gather::why(trace, tick, &path, reach)? {
            return Ok(WhyReply::Place(Box::new(answer)));
        }
        declared::place(&[trace], &path)?;
        let run = trace.name();
        let what = format!("no transition of {run} up to tick {tick} wrote {}", path.dotted());
        Err(Problem::new(Code::E0104, what).help(&["dendrer", "state", &format!("{run}@{tick}")]))
    }
}

impl Asked for BacktrackQuestion {
    type Reply = Backtracked;

    fn ask(&self, desk: &mut dyn Desk) -> Result<Backtracked, Problem> {
        let (address, agent) = match Address::of_agent(&self.run)? {
            Some((address, agent)) => (address, Some(agent)),
            None => (Address::parse(&self.run)?, None),
        };
        if agent.is_some() && (self.values || self.inputs) {
            let what = "--values and --inputs are of the state of the run, and not of an agent's";
            return Err(Problem::new(Code::E0106, what)
                .note("the state of an agent at one of its ticks is that of: dendrer state RUN:AGENT@TICK"));
        }
        let asked = desk.run(&address, "backtrack")?;
        let (trace, path) = (&asked.trace, state_path(&self.path)?);
        let from = self.from.as_ref().map_or(Ok(1), |position| position.tick(trace))?;
        let last = self.to.as_ref().or(asked.address.pos.as_ref());
        let to = last.map_or(Ok(trace.tip()), |position| position.tick(trace))?;
        let (along, to) = match agent {
            None => (None, to),
            Some(text) => {
                let (agent, upto) = causal::agent_of(trace, text)?;
                let to = upto.min(to);
                (Some(CausalPath::of(trace, agent, to)?), to)
            }
        };
        // A run that has no transition yet begins with what it began with.
        let from = if self.from.is_none() { from.min(to) } else { from };
        in_order(from, to)?;
        let limit = if self.last { 1 } else { self.limit.unwrap_or(LIMIT) as usize };
        let (agent, values, inputs) = (self.agent.clone(), self.values, self.inputs);
        let into_sources = self.from.is_none();
        let terms = BacktrackTerms { path, from, to, agent, along, limit, values, inputs, into_sources };
        let found = match is_derived(&terms.path) {
            true => counters::backtrack(trace, &terms)?,
            false => gather::backtrack(trace, &terms)?,
        };
        if let Some(answer) = found {
            return Ok(answer);
        }
        declared::place(&[trace], &terms.path)?;
        let (run, path) = (trace.name(), terms.path.dotted());
        Err(Problem::new(Code::E0104, format!("no transition of {run} wrote {path}"))
            .note("it has no value, and had none when the run began")
            .help(&["dendrer", "state", &format!("{run}@{to}")]))
    }
}
