//! The commitments of a run at a tick (CCAS paper, definition 7).

use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::commitment::{Authorized, Commitment, CommitmentStatus, Commitments, Statuses, calls};
use dendrer_kernel::reduce::Reducer;
use dendrer_kernel::step::{Inputs, Outcome, RunState, Seeds, Stage, step_with};
use dendrer_object::delta::Delta;
use dendrer_object::record::Author;
use dendrer_object::{Code, Digest, Intent, Object, Pointer, Record, RunName, TypeName, Value};

use crate::ask::why::action::{AskedCommitment, asked_of};
use crate::error::Error;
use crate::run::pack;
use crate::run::parents::unsealed;
use crate::run::trace::Moment;
use crate::run::trace::Trace;

pub mod question;

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
    /// Returns the status of a commitment at the tick.
    pub fn status(&self, one: &Commitment) -> CommitmentStatus {
        self.statuses.get(&one.id).map_or(CommitmentStatus::Tentative, |(status, _)| *status)
    }

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
    if last.commitments.is_empty() {
        follower.moment = last;
    } else {
        trace.each_record(1, upto, &mut |record| follower.advance(&record))?;
    }
    if let Some(said) = unsealed(trace, upto)? {
        follower.moment.commitments = follower.moment.commitments.hearing_now(&said, upto);
    }
    let terms = Terms::of(trace)?;
    Ok(follower.into_answer(trace, upto, &terms))
}

/// What of an answer is the same at each tick.
struct Terms {
    stage: Option<u64>,
    tools: Option<Vec<Arc<str>>>,
}

impl Terms {
    fn of(trace: &Trace) -> Result<Terms, Error> {
        let stage = trace.start().body().value("/stage").as_ref().and_then(Value::as_u64);
        let pack = if stage == Some(Stage::Full as u64) { pack::of_run(trace)? } else { None };
        let tools = pack.map(|pack| pack.tools.iter().map(|tool| Arc::clone(&tool.name)).collect());
        Ok(Terms { stage, tools })
    }
}

/// Hands over each decision of a run about a call up to a tick: the commitments before it, the call, and what they say of it. A
/// call that was refused because of them is one as well.
pub fn each_action(
    (trace, upto): (&Trace, u64),
    f: &mut dyn FnMut(&CommitmentsAt, &Value, &Authorized),
) -> Result<(), Error> {
    let terms = Terms::of(trace)?;
    each_call((trace, upto), &mut |follower, asked| {
        if asked.refusal.is_none() || !asked.found.violates.is_empty() {
            let at = follower.clone().into_answer(trace, follower.moment.tick, &terms);
            f(&at, asked.call, &asked.found);
        }
    })
}

/// A call that a run decided on.
struct AskedCall<'c> {
    call: &'c Value,
    found: Authorized,
    /// The tick of the transition; for a refusal that of the record that it was judged against.
    tick: u64,
    refusal: Option<&'c Record>,
}

/// Hands over each call of a run up to a tick, committed or refused, with the moment before it.
fn each_call((trace, upto): (&Trace, u64), f: &mut dyn FnMut(&Follower, AskedCall<'_>)) -> Result<(), Error> {
    let mut refusals = trace.refusals()?;
    let mut follower = Follower::new(trace.genesis()?);
    let mut ask = |follower: &Follower, record: &Record, tick: u64, is_refused: bool| {
        let type_name = record.header().type_name.as_ref().map(TypeName::as_str);
        let content = record.content();
        let proposed = content.get("action").or_else(|| content.get("line")?.get("action"));
        let Some(action) = proposed.filter(|_| type_name != Some("action.result")) else { return };
        let moment = &follower.moment;
        let counters = || moment.counters.to_value();
        let heard = moment.commitments.hearing_record(&content);
        let all = heard.as_ref().unwrap_or(&moment.commitments);
        for call in calls(action) {
            let mut asked = call.as_object().cloned().unwrap_or_default();
            content.get("agent_id").into_iter().for_each(|agent| asked.set("agent", agent.clone()));
            let found = all.authorize(&Value::Object(asked), &[], &moment.state, &counters);
            f(follower, AskedCall { call: &call, found, tick, refusal: is_refused.then_some(record) });
        }
    };
    for refusal in refusals.remove(&trace.start().id()).into_iter().flatten() {
        ask(&follower, &refusal, 0, true);
    }
    trace.each_record(1, upto, &mut |record| {
        let tick = record.header().tick.unwrap_or_default();
        ask(&follower, &record, tick, false);
        follower.advance(&record)?;
        for refusal in refusals.remove(&record.id()).into_iter().flatten() {
            ask(&follower, &refusal, tick, true);
        }
        Ok(())
    })
}

/// A call against a commitment.
#[derive(Debug, Clone)]
pub struct CallAgainst {
    /// The tick of the transition; of a refused call that of the record that it was judged against.
    pub tick: u64,
    /// The tool.
    pub tool: Option<String>,
    /// The id of the refusal; `None` for a call that was committed all the same.
    pub refusal: Option<Digest>,
}

/// How a commitment was discharged.
#[derive(Debug, Clone)]
pub struct DischargedBy {
    /// The tick.
    pub tick: u64,
    /// The expression that became true; `None` if a line closed it.
    pub expression: Option<String>,
    /// The author of the transition.
    pub author: Author,
    /// The agent.
    pub agent: Option<String>,
}

/// The calls against a commitment, and its discharge.
#[derive(Debug, Clone)]
pub struct CommitmentHistory {
    /// The calls that it spoke against.
    pub against: Vec<CallAgainst>,
    /// How it was discharged, if it is.
    pub discharged: Option<DischargedBy>,
}

/// Reads what became of a commitment up to the tick of an answer.
pub fn history(trace: &Trace, at: &CommitmentsAt, id: &str) -> Result<CommitmentHistory, Error> {
    let mut against = Vec::new();
    each_call((trace, at.at), &mut |_, asked| {
        if asked.found.violates.iter().any(|(_, broken)| **broken == *id) {
            against.push(CallAgainst {
                tick: asked.tick,
                tool: asked.call.get("tool").and_then(Value::as_str).map(str::to_owned),
                refusal: asked.refusal.map(Record::id),
            });
        }
    })?;
    let one = at.all.get(id).filter(|one| at.status(one) == CommitmentStatus::Discharged);
    let discharged = match one.zip(at.changed(id)) {
        None => None,
        Some((one, tick)) => {
            let record = trace.record(tick)?;
            let closes = record.body().value("/closes").is_some();
            Some(DischargedBy {
                tick,
                expression: one.discharge.as_ref().filter(|_| !closes).map(|expr| expr.text().to_owned()),
                author: record.header().author,
                agent: record.body().value("/agent_id").and_then(|name| name.as_str().map(str::to_owned)),
            })
        }
    };
    Ok(CommitmentHistory { against, discharged })
}

/// Follows a run, and notes when a status changes.
#[derive(Clone)]
struct Follower {
    moment: Moment,
    /// The status of each commitment, in the order of the commitments: an id may become an address.
    known: Vec<CommitmentStatus>,
    /// Each change, with the number of the commitment.
    changes: Vec<(usize, StatusChange)>,
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
            known: Vec::new(),
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

    fn into_answer(self, trace: &Trace, at: u64, terms: &Terms) -> CommitmentsAt {
        let statuses = self.moment.statuses();
        let all = self.moment.commitments.all();
        let changes = self
            .changes
            .into_iter()
            .map(|(number, change)| StatusChange { id: Arc::clone(&all[number].id), ..change });
        let changes = changes.collect();
        CommitmentsAt {
            run: trace.name().clone(),
            at,
            all: self.moment.commitments,
            statuses,
            changes,
            agents: self.moment.agents.into_keys().collect(),
            stage: terms.stage,
            tools: terms.tools.clone(),
            completed: self.completed,
        }
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
        let statuses = self.moment.statuses();
        for (number, one) in self.moment.commitments.all().iter().enumerate() {
            let Some((after, _)) = statuses.at(number) else { continue };
            let before = self.known.get(number).copied();
            if before != Some(*after) {
                match self.known.get_mut(number) {
                    Some(known) => *known = *after,
                    None => self.known.push(*after),
                }
                let (tick, id) = (self.moment.tick, Arc::clone(&one.id));
                self.changes.push((number, StatusChange { tick, id, before, after: *after }));
            }
        }
    }
}

/// A call that may be made, or not.
#[derive(Debug, Clone)]
pub struct Admission {
    /// The call: `tool` and `params`.
    pub action: Value,
    /// What it violates, and what cannot be judged of it.
    pub found: Authorized,
    /// The hard commitments that are active for the call, kept or not.
    pub asked: Vec<AskedCommitment>,
    /// Why the door would refuse the call.
    pub refusal: Option<(Code, String)>,
    /// Whether it may be made: nothing is violated, at stage 3 nothing is left unjudged, and the door would take it.
    pub is_admissible: bool,
}

/// Asks the whole door for a call, without a record: the pack at stage 3, the contract, the policy and the commitments.
fn refusal_of(head: &RunState, reducer: &dyn Reducer, call: &Value) -> Result<Option<(Code, String)>, Error> {
    let type_name = "action.request".parse().expect("a type of the ontology");
    let members = call.as_object().into_iter().flat_map(|members| members.iter());
    let relies_on = call.get("relies_on").cloned();
    let action: Object = members
        .filter(|(name, _)| &***name != "relies_on")
        .map(|(name, value)| (Arc::clone(name), value.clone()))
        .collect();
    let intent = Intent::new(type_name, "agent").with("action", Value::Object(action));
    let intent = match relies_on {
        Some(ids) => intent.with("intent", Value::record([("relies_on", ids)])),
        None => intent,
    };
    let inputs = Inputs { clock: head.ts(), seeds: Seeds::of_secret([0; 16]) };
    match step_with(&mut head.clone(), &intent, inputs, reducer)? {
        Outcome::Refused(refused) => Ok(Some((refused.reason.code(), refused.reason.to_string()))),
        Outcome::Committed(_) | Outcome::Violated { .. } => Ok(None),
    }
}

/// Says of calls whether they are admissible at a moment (CCAS paper, definition 3). A call may have `relies_on` beside `tool` and
/// `params`, as `intent.relies_on` of a line.
pub fn admissible((trace, upto): (&Trace, u64), asked: &[Value]) -> Result<Vec<Admission>, Error> {
    let mut moment = trace.at(upto)?;
    if let Some(said) = unsealed(trace, upto)? {
        moment.commitments = moment.commitments.hearing_now(&said, upto);
    }
    let (head, reducer) = (trace.head(upto)?, pack::reducer_of_segment(trace, trace.segment(upto))?);
    let is_full = head.stage() >= Stage::Full;
    let counters = || moment.counters.to_value();
    let judge = |call: &Value| {
        let relies_on = call.get("relies_on").and_then(Value::as_array);
        let relies_on = relies_on.into_iter().flat_map(|ids| ids.iter());
        let relies_on: Vec<Arc<str>> = relies_on.filter_map(|id| id.as_str().map(Arc::from)).collect();
        let action = calls(call).pop().unwrap_or_else(Value::object);
        let found = moment.commitments.authorize(&action, &relies_on, &moment.state, &counters);
        let refusal = refusal_of(&head, &*reducer, call)?;
        let is_admissible =
            found.violates.is_empty() && (!is_full || found.unjudged.is_empty()) && refusal.is_none();
        let asked = asked_of(&moment, &action, &found);
        Ok(Admission { action, found, asked, refusal, is_admissible })
    };
    asked.iter().map(judge).collect()
}

/// How the status of a commitment differs between two ticks (CCAS paper 9.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusDifference {
    /// The commitment.
    pub id: Arc<str>,
    /// The status at the first tick; `None` for one that is newer.
    pub before: Option<CommitmentStatus>,
    /// The status at the second tick.
    pub after: CommitmentStatus,
    /// The tick at which it got that status.
    pub tick: u64,
    /// Whether it was grounded at the first tick and at the second.
    pub grounded: (bool, bool),
}

/// What differs between the commitments of a run at two ticks.
#[derive(Debug)]
pub struct CommitmentsDifference {
    /// The first tick.
    pub from: u64,
    /// The commitments at the second.
    pub to: CommitmentsAt,
    /// What differs.
    pub items: Vec<StatusDifference>,
    /// Results of children that were refused in between, each with the child and the commitments.
    pub rejected: Vec<Rejected>,
}

/// A result that was not accepted: the child, and the commitments that it violates.
pub type Rejected = (String, Vec<Arc<str>>);

/// Compares the commitments of a run at two ticks.
pub fn difference(trace: &Trace, from: u64, to: u64) -> Result<CommitmentsDifference, Error> {
    let before = commitments((trace, from))?;
    let after = commitments((trace, to))?;
    let status = |at: &CommitmentsAt, number: usize| at.statuses.at(number).map(|(status, _)| *status);
    let items = after.all.all().iter().enumerate().filter_map(|(number, one)| {
        let (was, is) = (status(&before, number), status(&after, number)?);
        let grounded = [&before, &after]
            .map(|at| at.all.all().get(number).is_some_and(|one| at.all.grounded_by(&one.id).is_some()));
        (was != Some(is) || grounded[0] != grounded[1]).then(|| StatusDifference {
            id: Arc::clone(&one.id),
            before: was,
            after: is,
            tick: after.changed(&one.id).unwrap_or(one.tick),
            grounded: (grounded[0], grounded[1]),
        })
    });
    let items = items.collect();
    let rejected = rejected(trace, from, to)?;
    Ok(CommitmentsDifference { from, to: after, items, rejected })
}

/// The results of children that were refused between two ticks.
fn rejected(trace: &Trace, from: u64, to: u64) -> Result<Vec<Rejected>, Error> {
    let mut refused = trace.refusals()?;
    let of = |refusal: &Record| {
        let reason = refusal.body().value("/reason")?;
        if reason.get("cause")?.as_str() != Some("delegate_rejected") {
            return None;
        }
        let ids = reason.get("commitments")?.as_array()?.iter();
        let ids = ids.filter_map(|id| id.as_str().map(Arc::from)).collect();
        Some((reason.get("child")?.as_str()?.to_owned(), ids))
    };
    refused.retain(|_, all| all.iter().any(|refusal| of(refusal).is_some()));
    let mut found = Vec::new();
    if refused.is_empty() {
        return Ok(found);
    }
    let mut take = |record: &Record| {
        found.extend(refused.remove(&record.id()).into_iter().flatten().filter_map(|refusal| of(&refusal)));
    };
    if from == 0 {
        take(trace.start());
    }
    trace.for_each(from.max(1), to, &mut |_, record| {
        take(&record);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}
