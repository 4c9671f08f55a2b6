//! The merge gate: whether a parent takes what a child brought (CCAS paper 6.5, algorithm 2).
//!
//! Every recorded call of the child is judged by what the child was bound to and by what binds the parent now; what cannot be judged
//! is not accepted. Each reason has its code, the commitments, and the run and tick that show it.

use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::commitment::{ACCEPTED, Authorized, CommitmentStatus, SpentBelow, Violated, calls};
use dendrer_kernel::ontology::{REQUEST, RESULT};
use dendrer_kernel::step::{Stage, WOULD_REFUSE};
use dendrer_object::record::Author;
use dendrer_object::{Code, Record, RunName, SCOPE, TypeName, Value};

use super::delegations;
use crate::error::Error;
use crate::run::parents;
use crate::run::trace::{Moment, Trace};

/// One reason why the result of a child is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptReason {
    /// The code under which `dendrer explain` knows it.
    pub code: Code,
    /// The commitments that it is about.
    pub commitments: Vec<Arc<str>>,
    /// The run that shows it.
    pub run: RunName,
    /// The tick of that run; `None` if none shows it.
    pub tick: Option<u64>,
    /// The deliverable that is missing.
    pub missing: Option<Arc<str>>,
}

/// A judgement.
#[derive(Default)]
pub(super) struct Judged {
    /// The reasons; empty if the parent takes the result.
    pub(super) reasons: Vec<AcceptReason>,
    /// The output with which the child completed its goal.
    pub(super) output: Option<Value>,
    /// The amounts that the calls of the child and of its children add to the sums of the parent.
    pub(super) spent: SpentBelow,
}

/// The child to judge, with its contract and its parent.
pub(super) struct Asked<'a> {
    pub(super) child: &'a Trace,
    pub(super) contract: &'a Value,
    pub(super) parent: &'a Trace,
    /// The parent now.
    pub(super) now: &'a Moment,
}

/// The record with which the parent took the result of a child.
pub(super) fn taken(parent: &Trace, child: &RunName) -> Result<Option<Record>, Error> {
    let mut found = None;
    parent.for_each(1, parent.tip(), &mut |_, record| {
        let accepted = record.body().value(&format!("/{ACCEPTED}/child"));
        let accepted = accepted.or_else(|| record.content().get(ACCEPTED)?.get("child").cloned());
        let is_it = record.header().author == Author::Kernel
            && accepted.as_ref().and_then(Value::as_str) == Some(child.as_str());
        if is_it {
            found = Some(record.clone());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

impl Asked<'_> {
    /// Judges the result of the child.
    pub(super) fn judge(&self) -> Result<Judged, Error> {
        let id: Arc<str> = self.contract.get("id").and_then(Value::as_str).unwrap_or_default().into();
        let mut found = Reasons(Vec::new());
        if !self.is_open(&id, &mut found)? {
            return Ok(Judged { reasons: found.0, ..Judged::default() });
        }
        let mut moment = self.child.genesis()?;
        self.are_bound(&moment, &mut found);
        let (mut output, mut completed, mut spent) = (None, None, SpentBelow::default());
        let enforces = self.parent.head(self.parent.tip())?.stage() >= Stage::Contracts;
        self.child.each_record(1, self.child.tip(), &mut |record| {
            let tick = record.header().tick.unwrap_or(0);
            let type_name = record.header().type_name.as_ref().map_or("", TypeName::as_str);
            if let Some(action) = record.content().get("action") {
                // A result may come without its request, and without the parameters: what it violates is known all the same.
                let is_request = type_name != RESULT;
                self.judge_action(action, (&moment, &record), is_request, tick, &mut found);
                let outer = self.judge_outer(&record, &moment, &mut spent);
                found.add_all(outer, self.child.name(), tick);
                if type_name == REQUEST {
                    self.judge_request(action, &record, enforces, &mut found);
                }
            }
            let below = self.judge_accepted(&record, &mut spent, BELOW_MAX)?;
            found.add_all(below, self.child.name(), tick);
            if type_name == "goal.complete" {
                output = record.content().get("result").and_then(|result| result.get("output")).cloned();
                completed = Some(tick);
            }
            moment.advance(&record)
        })?;
        for contract in parents::overspent(self.child)? {
            found.add(Code::E0452, vec![contract], self.child.name(), Some(self.child.tip()));
        }
        let wanted = self.contract.get("deliverables").and_then(Value::as_array);
        for name in wanted.into_iter().flat_map(|names| names.iter()).filter_map(Value::as_str) {
            // A deliverable that is null is missing.
            let delivered = output.as_ref().and_then(|output| output.get(name));
            if delivered.is_none_or(|value| *value == Value::Null) {
                found.add(Code::E0456, vec![Arc::clone(&id)], self.child.name(), completed);
                found.0.last_mut().into_iter().for_each(|reason| reason.missing = Some(name.into()));
            }
        }
        Ok(Judged { reasons: found.0, output, spent })
    }

    /// Judges the calls of a record by what the parent knows and what was spent before: what a child wrote into its own state raises no
    /// limit.
    fn judge_outer(&self, record: &Record, child: &Moment, spent: &mut SpentBelow) -> Authorized {
        let content = record.content();
        let is_answer = is_answer(record, child);
        let mut all = Authorized::default();
        for call in content.get("action").map(calls).unwrap_or_default() {
            let call = in_scope(call, &content);
            let now = self.now;
            all.add(spent.judge(&now.commitments, &call, &now.state, &|| now.counters.to_value()));
        }
        spent.end_record(&content, &child.commitments, !is_answer);
        all.unjudged.clear();
        if is_answer {
            all.violates.retain(|(_, id)| !self.now.commitments.is_sum(id));
        }
        all
    }

    /// Judges the calls of a child of the child, if a record takes its result.
    fn judge_accepted(
        &self,
        record: &Record,
        spent: &mut SpentBelow,
        depth: usize,
    ) -> Result<Authorized, Error> {
        let mut all = Authorized::default();
        let content = record.content();
        let accepted = content.get(ACCEPTED).filter(|_| record.header().author == Author::Kernel);
        let named = accepted.and_then(|accepted| {
            let run: RunName = accepted.get("child")?.as_str()?.parse().ok()?;
            Some((run, accepted.get("tick")?.as_u64()?))
        });
        let Some((run, tick)) = named.filter(|_| depth > 0) else { return Ok(all) };
        let trace = Trace::open(self.parent.store(), &run)?;
        let mut moment = trace.genesis()?;
        trace.each_record(1, tick.min(trace.tip()), &mut |record| {
            all.add(self.judge_outer(&record, &moment, spent));
            all.add(self.judge_accepted(&record, spent, depth - 1)?);
            moment.advance(&record)
        })?;
        Ok(all)
    }

    /// Judges a call by what is on record: a decision of the parent, and what the door of the child noted below stage 2 that the
    /// parent, which enforces, would have refused.
    fn judge_request(&self, action: &Value, record: &Record, enforces: bool, found: &mut Reasons) {
        let content = record.content();
        let would = content.get(WOULD_REFUSE).and_then(Value::as_array).filter(|_| enforces);
        let would = would.into_iter().flat_map(|list| list.iter());
        let codes = would.filter_map(|one| one.get("code")?.as_str()?.parse().ok());
        // The verdicts of commitments come from those of the parent, as they are now.
        let of_commitments = [Code::E0451, Code::E0452, Code::E0453];
        let mut codes: Vec<Code> = codes.filter(|code| !of_commitments.contains(code)).collect();
        codes.extend(self.now.counters.is_denied(action).then_some(Code::E0435));
        codes.sort();
        codes.dedup();
        for code in codes {
            found.add(code, Vec::new(), self.child.name(), record.header().tick);
        }
    }

    /// Whether the contract is the one that the parent recorded, and open.
    fn is_open(&self, id: &Arc<str>, found: &mut Reasons) -> Result<bool, Error> {
        let (theirs, parent) = (&self.now.commitments, self.parent.name());
        let ids = || vec![Arc::clone(id)];
        match theirs.get(id).map(|deleg| deleg.closed.as_ref()) {
            None => found.add(Code::E0456, ids(), parent, None),
            Some(Some(closed)) => found.add(Code::E0452, ids(), parent, Some(closed.tick)),
            Some(None) => {
                let is_over = |status: CommitmentStatus| status.is_over();
                if self.now.statuses().get(id).is_some_and(|(status, _)| is_over(*status)) {
                    found.add(Code::E0452, ids(), parent, Some(self.now.tick));
                } else if delegations(self.parent, id)?.as_ref() != Some(self.contract) {
                    found.add(Code::E0456, ids(), self.child.name(), Some(0));
                }
            }
        }
        Ok(found.0.is_empty())
    }

    /// Checks that the child began with the hard commitments of its contract as the parent has them.
    fn are_bound(&self, begin: &Moment, found: &mut Reasons) {
        let hard = self.contract.get("hard").and_then(Value::as_array);
        for hard in hard.into_iter().flat_map(|ids| ids.iter()).filter_map(Value::as_str) {
            let is_bound = begin.commitments.get(hard).is_some_and(|one| {
                let same = self.now.commitments.get(hard).is_some_and(|other| other.written == one.written);
                one.is_imported && same
            });
            if !is_bound {
                found.add(Code::E0456, vec![hard.into()], self.child.name(), Some(0));
            }
        }
    }

    fn judge_action(
        &self,
        action: &Value,
        (moment, record): (&Moment, &Record),
        is_request: bool,
        tick: u64,
        found: &mut Reasons,
    ) {
        let content = record.content();
        let heard = moment.commitments.hearing_record(&content);
        let own = heard.as_ref().unwrap_or(&moment.commitments);
        let mut all = Authorized::default();
        for call in calls(action).into_iter().map(|call| in_scope(call, &content)) {
            all.add(own.authorize(&call, &[], &moment.state, &|| moment.counters.to_value()));
            if !is_request {
                all.unjudged.clear();
            }
        }
        if is_answer(record, moment) {
            all.violates.retain(|(_, id)| !own.is_sum(id));
        }
        found.add_all(all, self.child.name(), tick);
    }
}

/// Whether a record is the result of a call that was requested: sums have counted it.
fn is_answer(record: &Record, before: &Moment) -> bool {
    let content = record.content();
    let tool = content.get("action").and_then(|action| action.get("tool")?.as_str());
    record.header().type_name.as_ref().is_some_and(|name| name.as_str() == RESULT)
        && tool.is_some_and(|tool| before.counters.is_open(tool) == Some(true))
}

/// How many children of children are looked at.
const BELOW_MAX: usize = 64;

/// A call with the scope of its record.
fn in_scope(call: Value, content: &Value) -> Value {
    let Some(scope) = content.get(SCOPE) else { return call };
    let mut members = call.as_object().cloned().unwrap_or_default();
    members.set(SCOPE, scope.clone());
    Value::Object(members)
}

struct Reasons(Vec<AcceptReason>);

impl Reasons {
    fn add(&mut self, code: Code, commitments: Vec<Arc<str>>, run: &RunName, tick: Option<u64>) {
        self.0.push(AcceptReason { code, commitments, run: run.clone(), tick, missing: None });
    }

    /// Adds what was found for a record.
    fn add_all(&mut self, all: Authorized, run: &RunName, tick: u64) {
        let unjudged = all.unjudged.into_iter().map(|(id, _)| (Violated::Hard, id));
        for (rule, id) in all.violates.into_iter().chain(unjudged) {
            let code = match rule {
                Violated::Hard => Code::E0451,
                Violated::Scope => Code::E0452,
                Violated::Support => Code::E0453,
            };
            self.add_to(code, id, run, tick);
        }
    }

    /// Adds a commitment to the reason of a code at a tick.
    fn add_to(&mut self, code: Code, id: Arc<str>, run: &RunName, tick: u64) {
        let known = self.0.iter_mut().find(|reason| reason.code == code && reason.tick == Some(tick));
        match known {
            Some(reason) if reason.commitments.contains(&id) => {}
            Some(reason) => reason.commitments.push(id),
            None => self.add(code, vec![id], run, Some(tick)),
        }
    }
}
