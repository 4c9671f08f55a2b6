//! Delegation: a child run under a contract, and the merge gate behind which a parent takes what it brought (CCAS paper 6.5,
//! algorithm 2).

use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::commitment::{CONTRACT, DelegationScope, HandedOver};
use dendrer_kernel::pack::Pack;
use dendrer_kernel::step::{self, ChildResult, Stage, Start};
use dendrer_object::record::Author;
use dendrer_object::{Record, RunName, Value};

use super::denied::forbidden;
use super::merge::{filled, under};
use crate::error::{DelegationError, Error};
use dendrer_store::Store;

use crate::record::recorder::Recorder;
use crate::repo::Repo;
use crate::run::copied::copied;
use crate::run::trace::Trace;

pub use judge::AcceptReason;

mod judge;
pub mod question;

/// A delegation that was made, or is there already.
#[derive(Debug, Clone)]
pub struct Delegated {
    /// The parent.
    pub parent: RunName,
    /// The child.
    pub child: RunName,
    /// The contract, as the `run` record of the child has it.
    pub contract: Value,
}

/// What became of the result of a child.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The child.
    pub child: RunName,
    /// The parent.
    pub parent: RunName,
    /// The reasons for which it is not accepted; empty for an accepted one.
    pub reasons: Vec<AcceptReason>,
    /// Whether the parent took it before.
    pub already: bool,
    /// The record: the transition or the refusal. `None` in a dry run.
    pub record: Option<Record>,
}

impl Accepted {
    /// The commitments for which it is not accepted, each once.
    pub fn violates(&self) -> Vec<Arc<str>> {
        let mut all: Vec<_> = self.reasons.iter().flat_map(|reason| reason.commitments.clone()).collect();
        all.sort();
        all.dedup();
        all
    }
}

impl Repo {
    /// Begins a child run with what a scope hands over, and records the `deleg` in the parent. What a call that was interrupted
    /// left out is made up for. A dry run says what would be handed over, and writes nothing.
    pub fn delegate(
        &self,
        parent: &Trace,
        scope: &DelegationScope,
        child: &RunName,
        stage: Option<Stage>,
        dry_run: bool,
    ) -> Result<Delegated, Error> {
        let run = parent.name().clone();
        let tip = parent.tip();
        let moment = parent.at(tip)?;
        let all = &moment.commitments;
        let mut scope = scope.clone();
        if let Some(contract) = all.contract() {
            scope
                .within(contract)
                .map_err(|what| DelegationError::OutsideScope { run: run.clone(), what })?;
        }
        let (mut start, pack) = under(parent, tip, child)?;
        let declared = start.pack.as_ref().map(|bound| &bound.value);
        scope.with_pack(declared).map_err(DelegationError::Scope)?;
        let scope = &scope;
        if let Some(goal) = scope.written.get("goal").and_then(Value::as_str)
            && all.get(goal).is_none()
        {
            return Err(DelegationError::NoGoal { run, goal: goal.to_owned() }.into());
        }
        let known = Trace::open(self.writer()?, child).ok();
        let begun = known.as_ref().and_then(|known| known.start().body().value(&format!("/{CONTRACT}")));
        if let Some(begun) = begun.filter(|begun| is_of(begun, scope, &run)) {
            if !dry_run && delegations(parent, scope.id())?.is_none() {
                self.record_delegation(&run, tip, scope, &begun)?;
            }
            return Ok(Delegated { parent: run, child: child.clone(), contract: begun });
        }
        if all.get(scope.id()).is_some() || all.atom(scope.id()).is_some() {
            return Err(DelegationError::IdUsed { run, id: Arc::clone(scope.id()) }.into());
        }
        let handed = scope.hands_over(all, &moment.statuses());
        let contract = contract(scope, &handed, &run, tip);
        let ids: Vec<Arc<str>> = handed.hard.iter().chain(&handed.soft).cloned().collect();
        if dry_run {
            return Ok(Delegated { parent: run, child: child.clone(), contract });
        }
        let given = copied(&moment.state, &all.places_read(&ids));
        begin_with(&mut start, pack.as_ref(), given)?;
        start.goal = scope.written.get("gloss").and_then(Value::as_str).map(Arc::from);
        start.stage = stage.or(start.stage);
        start.commitments = all.handed(&ids);
        start.contract = Some(contract.clone());
        start.denied = forbidden([(parent, tip)])?;
        let mut recorder = self.begin(&start)?;
        recorder.commit()?;
        self.record_delegation(&run, tip, scope, &contract)?;
        Ok(Delegated { parent: run, child: child.clone(), contract })
    }

    fn record_delegation(
        &self,
        parent: &RunName,
        tip: u64,
        scope: &DelegationScope,
        contract: &Value,
    ) -> Result<(), Error> {
        let member = |name: &'static str| Some((name, scope.written.get(name)?.clone()));
        let goal = scope.written.get("goal").cloned();
        let members = [
            Some(("id", Value::String(Arc::clone(scope.id())))),
            Some(("type", Value::from("deleg"))),
            member("gloss"),
            member("allowed"),
            member("forbidden"),
            member("until"),
            contract.get("hard").map(|hard| ("depends_on", hard.clone())),
            goal.map(|goal| ("refines", Value::array([goal]))),
        ];
        let deleg = Value::record(members.into_iter().flatten());
        let mut recorder = Recorder::resume_at(self.writer()?, parent, tip, self.environment())?;
        recorder.write(|head, inputs| step::delegate(head, &deleg, contract, inputs))?;
        recorder.commit()?;
        Ok(())
    }

    /// Decides on the result of a child: the parent takes what it brought, or keeps the refusal. Refused are an action that
    /// violates a commitment, of the contract or by now of the parent, a deliverable that is missing, and a child whose contract is
    /// not the one that the parent recorded. A dry run decides and records nothing.
    pub fn accept(&self, child: &RunName, dry_run: bool) -> Result<Accepted, Error> {
        let (mut accepted, result, tip) = decide(&self.reader()?, child)?;
        if !dry_run && !accepted.already {
            let environment = self.environment();
            let mut recorder = Recorder::resume_at(self.writer()?, &accepted.parent, tip, environment)?;
            let record = match accepted.reasons.is_empty() {
                true => recorder.write(|head, inputs| step::accept(head, &result, inputs))?,
                false => recorder.refuse_accept(&result, &accepted.violates())?,
            };
            recorder.commit()?;
            accepted.record = Some(record);
        }
        Ok(accepted)
    }
}

/// Decides on the result of a child, in a store or a bundle that has the parent as well: the certificate of a delegation. Returns
/// what a parent records of it, and the last tick of the parent.
pub fn decide(store: &Arc<dyn Store>, child: &RunName) -> Result<(Accepted, ChildResult, u64), Error> {
    let trace = Trace::open(store, child)?;
    let contract = trace.start().body().value(&format!("/{CONTRACT}"));
    let not_delegated = || DelegationError::NotDelegated(child.clone());
    let contract = contract.ok_or_else(not_delegated)?;
    let parent = contract.get("parent").and_then(|parent| parent.get("run")?.as_str()?.parse().ok());
    let parent: RunName = parent.ok_or_else(not_delegated)?;
    let parent_trace = Trace::open(store, &parent)?;
    let tip = parent_trace.tip();
    if let Some(record) = judge::taken(&parent_trace, child)? {
        let accepted = Accepted {
            child: child.clone(),
            parent,
            reasons: Vec::new(),
            already: true,
            record: Some(record),
        };
        return Ok((accepted, result_of(&trace, &contract, judge::Judged::default())?, tip));
    }
    let now = parent_trace.at(tip)?;
    let asked = judge::Asked { child: &trace, contract: &contract, parent: &parent_trace, now: &now };
    let mut judged = asked.judge()?;
    let reasons = std::mem::take(&mut judged.reasons);
    let result = result_of(&trace, &contract, judged)?;
    Ok((Accepted { child: child.clone(), parent, reasons, already: false, record: None }, result, tip))
}

/// The result of a child as its parent records it.
fn result_of(child: &Trace, contract: &Value, judged: judge::Judged) -> Result<ChildResult, Error> {
    Ok(ChildResult {
        child: child.name().clone(),
        tick: child.tip(),
        id: child.record(child.tip())?.id(),
        delegation: contract.get("id").and_then(Value::as_str).unwrap_or_default().into(),
        commitments: child.at(child.tip())?.commitments.to_brought(),
        output: judged.output,
        spent: judged.spent.sealed(),
    })
}

/// Whether a contract is that of a scope and a parent.
/// Sets the state with which a child begins, under the pack of its parent if that has one.
fn begin_with(start: &mut Start, pack: Option<&Pack>, given: Value) -> Result<(), Error> {
    start.state = match pack {
        Some(pack) => filled(pack, &given, &[])?,
        None => given,
    };
    if let Some(pack) = pack {
        start.reducer = pack.engine.as_str().into();
    }
    Ok(())
}

fn is_of(contract: &Value, scope: &DelegationScope, parent: &RunName) -> bool {
    let members = scope.written.as_object();
    members.is_some_and(|members| members.iter().all(|(name, value)| contract.get(name) == Some(value)))
        && contract.get("parent").and_then(|from| from.get("run")?.as_str()) == Some(parent.as_str())
}

/// The contract that a parent recorded under an id.
fn delegations(parent: &Trace, id: &str) -> Result<Option<Value>, Error> {
    let mut found = None;
    parent.for_each(1, parent.tip(), &mut |_, record| {
        if record.header().author == Author::Kernel {
            let contract = record.content().get(CONTRACT).cloned();
            found = contract.filter(|contract| contract.get("id").and_then(Value::as_str) == Some(id));
        }
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(found)
}

fn contract(scope: &DelegationScope, handed: &HandedOver, parent: &RunName, tick: u64) -> Value {
    let ids = |ids: &[Arc<str>]| Value::array(ids.iter().map(|id| Value::String(Arc::clone(id))));
    let mut members = scope.written.as_object().cloned().unwrap_or_default();
    let from = Value::record([("run", Value::from(parent.as_str())), ("tick", Value::from(tick))]);
    members.set("parent", from);
    members.set("hard", ids(&handed.hard));
    members.set("soft", ids(&handed.soft));
    Value::Object(members)
}
