//! The commitments of a run at a tick (CCAS paper, definition 7).

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::commitment::{CommitmentStatus, Commitments, Statuses};
use dendrer_kernel::step::Stage;
use dendrer_object::delta::Delta;
use dendrer_object::{Pointer, Record, RunName, TypeName, Value};

use crate::error::Error;
use crate::run::pack;
use crate::run::trace::Moment;
use crate::trace::Trace;

/// The commitments of a run, up to a tick.
#[derive(Debug)]
pub struct CommitmentsAt {
    /// The run.
    pub run: RunName,
    /// The tick.
    pub at: u64,
    /// What the transitions brought.
    pub all: Commitments,
    /// The statuses at the tick.
    pub statuses: Statuses,
    /// Each change of a status up to the tick, in order.
    pub changes: Vec<StatusChange>,
    /// The agents of the run.
    pub agents: Vec<Arc<str>>,
    /// The stage of the run.
    pub stage: Option<u64>,
    /// The tools that may be called, where a pack gates them.
    pub tools: Option<Vec<Arc<str>>>,
    /// The tick of the newest `goal.complete`; 0 before one.
    pub completed: u64,
}

/// A change of the status of a commitment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusChange {
    /// The tick.
    pub tick: u64,
    /// The commitment.
    pub id: Arc<str>,
    /// The status before; `None` for one that is new.
    pub before: Option<CommitmentStatus>,
    /// The status from the tick on.
    pub after: CommitmentStatus,
}

impl CommitmentsAt {
    /// The tick at which a commitment got its status.
    pub fn changed(&self, id: &str) -> Option<u64> {
        self.changes.iter().rev().find(|change| *change.id == *id).map(|change| change.tick)
    }
}

/// Reads the commitments of a run up to a tick.
pub fn commitments((trace, upto): (&Trace, u64)) -> Result<CommitmentsAt, Error> {
    let mut follower = Follower::new(trace.genesis()?);
    // The head says whether there is anything to follow.
    let last = trace.at(upto)?;
    if last.commitments.is_free() && last.commitments.is_empty() {
        follower.moment = last;
    } else {
        let mut failed = None;
        trace.for_each(1, upto, &mut |_, record| match follower.advance(&record) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failed.map_or(Ok(()), Err)?;
    }
    let moment = follower.moment;
    let statuses = statuses(&moment);
    let stage = trace.start().body().value("/stage").as_ref().and_then(Value::as_u64);
    let pack = if stage == Some(Stage::Full as u64) { pack::of_run(trace)? } else { None };
    let tools = pack.map(|pack| pack.tools.iter().map(|tool| Arc::clone(&tool.name)).collect());
    Ok(CommitmentsAt {
        run: trace.name().clone(),
        at: upto,
        all: moment.commitments,
        statuses,
        changes: follower.changes,
        agents: moment.agents.into_keys().collect(),
        stage,
        tools,
        completed: follower.completed,
    })
}

/// The statuses at a moment, with no action in question.
pub fn statuses(moment: &Moment) -> Statuses {
    Statuses::of(&moment.commitments, &moment.state, &|| moment.counters.to_value(), None)
}

/// Follows a run, and notes when a status changes.
struct Follower {
    moment: Moment,
    known: BTreeMap<Arc<str>, CommitmentStatus>,
    changes: Vec<StatusChange>,
    completed: u64,
    /// The places that guards and discharges read, and how many commitments are looked at for them.
    reads: Vec<Pointer>,
    reads_counters: bool,
    looked_at: usize,
}

impl Follower {
    fn new(moment: Moment) -> Follower {
        let mut made = Follower {
            moment,
            known: BTreeMap::new(),
            changes: Vec::new(),
            completed: 0,
            reads: Vec::new(),
            reads_counters: false,
            looked_at: 0,
        };
        made.look();
        made.note();
        made
    }

    fn advance(&mut self, record: &Record) -> Result<(), Error> {
        let content = record.content();
        let delta = content.get("delta").and_then(|delta| Delta::from_value(delta).ok());
        self.moment.advance(record)?;
        self.look();
        let is_read =
            |delta: &Delta| delta.paths().any(|path| self.reads.iter().any(|read| read.overlaps(path)));
        let may_turn = self.reads_counters
            || delta.as_ref().is_some_and(is_read)
            || !self.moment.commitments.affected(&content, delta.as_ref()).is_empty();
        if may_turn {
            self.note();
        }
        if record.header().type_name.as_ref().map(TypeName::as_str) == Some("goal.complete") {
            self.completed = self.moment.tick;
        }
        Ok(())
    }

    /// Learns what the guards and discharges of new commitments read.
    fn look(&mut self) {
        let all = self.moment.commitments.all();
        for expr in all[self.looked_at..].iter().flat_map(|one| [&one.guard, &one.discharge]).flatten() {
            self.reads.extend_from_slice(expr.read_set());
            self.reads_counters |= expr.reads_counters();
        }
        self.looked_at = all.len();
    }

    fn note(&mut self) {
        let statuses = statuses(&self.moment);
        for one in self.moment.commitments.all() {
            let Some((after, _)) = statuses.get(&one.id) else { continue };
            let before = self.known.get(&one.id).copied();
            if before != Some(*after) {
                self.known.insert(Arc::clone(&one.id), *after);
                let (tick, id) = (self.moment.tick, Arc::clone(&one.id));
                self.changes.push(StatusChange { tick, id, before, after: *after });
            }
        }
    }
}
