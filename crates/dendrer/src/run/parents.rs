//! The door of a delegated run reads what its parents say now (design, section 14.2): status of the contract, commitments that bind
//! there, the places these read, and what other runs used of the budget.
//!
//! [`Parents::news`] is asked before a line is judged, after the store was read on to its end. A new entry is sealed with the line,
//! and the kernel judges by that alone. A parent that cannot be found ends the contract; an error of the store is an error of the line.
//!
//! Rule: every intent of a delegated run passes here, whatever brought it; test `a_contract_that_was_taken_back_permits_nothing`.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::commitment::{
    CommitmentKind, DelegationContract, PARENTS, ParentParts, ParentSaid, Used,
};
use dendrer_kernel::step::RunState;
use dendrer_object::{RunName, Timestamp, Value};
use dendrer_store::{Head, Store, StoreError};

use family::{Family, reduced_from, retold};

use crate::environment::{Environment as _, World};
use crate::error::Error;
use crate::run::copied::copied;
use crate::run::trace::{Moment, Trace};

mod family;

/// How many parents a run may have above it. A chain of more is damaged.
const PARENTS_MAX: usize = 64;

/// The known entries of the parents of one run.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    /// For each parent the tick that was read last, and its entry.
    read: BTreeMap<RunName, (u64, Value)>,
    /// The head of each parent, and of each other run that uses a limited budget, when it was read last.
    heads: BTreeMap<RunName, Head>,
    /// The entry of each parent when the child began; `None` for one that is sealed in any case.
    begun: BTreeMap<RunName, Option<Value>>,
    family: Family,
    /// For a fork, the run that it branched off and what had been used there.
    forked: Option<(RunName, Used)>,
}

/// A contract in the chain of those above a run: the nearest is its own.
struct Level {
    contract: DelegationContract,
    parent: RunName,
    /// The tick of the parent at which it delegated.
    tick: u64,
    /// The run that works under it, and when that began.
    child: RunName,
    begun: Timestamp,
}

impl Level {
    fn of(child: &Trace) -> Option<Level> {
        let mut start = child.start().clone();
        // The contract of a run that was reduced again is that of its source.
        let mut sources = 0;
        while let Some(source) = reduced_from(&start).filter(|_| sources < PARENTS_MAX) {
            let Ok(source) = Trace::open(child.store(), &source) else { break };
            start = source.start().clone();
            sources += 1;
        }
        let written = start.body().value("/contract")?;
        let from = written.get("parent")?;
        Some(Level {
            contract: DelegationContract::read(&written)?,
            parent: from.get("run")?.as_str()?.parse().ok()?,
            tick: from.get("tick")?.as_u64()?,
            child: start.header().run.clone()?,
            begun: start.header().ts,
        })
    }
}

impl Parents {
    /// Of a fork that is not in the store yet: it branched off this head.
    pub(crate) fn of_fork(parent: &RunState) -> Parents {
        let forked = Some((parent.run().clone(), parent.commitments().used()));
        Parents { forked, ..Parents::default() }
    }

    /// Whether something that the parents say depends on the clock.
    fn reads_clock(levels: &[Level]) -> bool {
        levels.iter().any(|level| level.contract.written.get("until").is_some())
    }

    /// The heads of the parents, and of the runs that use the same budget, that were read last: what was judged since was decided on
    /// these.
    pub(crate) fn heads(&self) -> Vec<(RunName, Head)> {
        self.heads.iter().map(|(run, head)| (run.clone(), *head)).collect()
    }

    /// Returns what the parents of a run say that no record of it holds yet: the member `contract` of its next record. `None` for a
    /// run without a contract, and if nothing is new.
    pub(crate) fn news(
        &mut self,
        store: &Arc<dyn Store>,
        head: &RunState,
        now: &mut dyn FnMut() -> Timestamp,
    ) -> Result<Option<Value>, Error> {
        let known = head.commitments();
        if !known.hears_parents() {
            return Ok(None);
        }
        if self.forked.is_none() {
            self.forked = Some(begun_at(store, head.run())?);
        }
        let (from, inherited) = self.forked.clone().expect("it was just read");
        let levels = levels(store, &from)?;
        let now = if Parents::reads_clock(&levels) { Some(now()) } else { None };
        let mut entries = Vec::new();
        for (at, level) in levels.iter().enumerate() {
            let entry = self.entry(store, (at, level), (head.run(), inherited), now)?;
            let said = known.parents().iter().find(|said| *said.run == *level.parent.as_str());
            let content = ParentSaid::content(&entry);
            let is_known = match said {
                Some(said) => ParentSaid::content(&said.written) == content,
                None => self.as_begun(store, (at, level))? == Some(content),
            };
            if !is_known {
                entries.push(entry);
            }
        }
        Ok((!entries.is_empty()).then(|| Value::record([(PARENTS, Value::array(entries))])))
    }

    /// The entry of a parent now.
    fn entry(
        &mut self,
        store: &Arc<dyn Store>,
        (at, level): (usize, &Level),
        (own, inherited): (&RunName, Used),
        now: Option<Timestamp>,
    ) -> Result<Value, Error> {
        let run = level.parent.as_str();
        let summary = store.run(&level.parent)?;
        let tip = summary.as_ref().and_then(|summary| summary.head.tick);
        self.heads.extend(summary.map(|summary| (level.parent.clone(), summary.head)));
        let Some(tip) = tip else {
            let ended = Some((Arc::from("unreadable"), None));
            let parts = ParentParts { ended, ..ParentParts::default() };
            return Ok(ParentSaid::entry(run, &level.contract.id, None, parts));
        };
        let read = match self.read.get(&level.parent) {
            Some((tick, entry)) if *tick == tip => entry.clone(),
            _ => {
                let trace = Trace::open(store, &level.parent)?;
                let moment = trace.at(tip)?;
                let record = Value::from(trace.record(tip)?.id());
                let mut parts = parts(&moment);
                parts.ended = ended(&moment, &level.contract.id);
                parts.budget = (at > 0).then(|| level.contract.written.get("budget").cloned()).flatten();
                let entry = ParentSaid::entry(run, &level.contract.id, Some((tip, record)), parts);
                self.read.insert(level.parent.clone(), (tip, entry.clone()));
                entry
            }
        };
        let mut members = read.as_object().cloned().unwrap_or_default();
        let is_over =
            level.contract.ends_at(level.begun.ms()).zip(now).is_some_and(|(end, now)| end <= now.ms());
        if is_over && members.get("ended").is_none() {
            members.set("ended", Value::record([("as", Value::from("over"))]));
        }
        if !level.contract.budget.is_empty() {
            let others = self.family.used_but(store, &level.child, Some(own))?;
            self.heads.extend(others.heads);
            let others = others.used.without(inherited);
            if others != Used::default() {
                members.set("used", others.to_value());
            }
        }
        Ok(Value::Object(members))
    }

    /// The entry of a parent when the child began, without the place where it was read: what the contract was made of.
    fn as_begun(
        &mut self,
        store: &Arc<dyn Store>,
        (at, level): (usize, &Level),
    ) -> Result<Option<Value>, Error> {
        if let Some(known) = self.begun.get(&level.parent) {
            return Ok(known.clone());
        }
        let has_budget = at > 0 && level.contract.written.get("budget").is_some();
        let begun = match Trace::open(store, &level.parent) {
            _ if has_budget => None,
            Ok(trace) if level.tick <= trace.tip() => {
                let parts = parts(&trace.at(level.tick)?);
                Some(ParentSaid::entry(level.parent.as_str(), &level.contract.id, None, parts))
            }
            Ok(_) => None,
            Err(error) if is_missing(&error) => None,
            Err(error) => return Err(error),
        };
        self.begun.insert(level.parent.clone(), begun.clone());
        Ok(begun)
    }
}

/// The run that a run of the store branched off, and what had been used there; for one that is no fork, itself and nothing.
fn begun_at(store: &Arc<dyn Store>, run: &RunName) -> Result<(RunName, Used), Error> {
    let trace = match Trace::open(store, run) {
        Ok(trace) => trace,
        Err(error) if is_missing(&error) => return Ok((run.clone(), Used::default())),
        Err(error) => return Err(error),
    };
    match trace.lineage() {
        [.., (_, tick), _] => Ok((run.clone(), trace.at(*tick)?.commitments.used())),
        _ => Ok((run.clone(), retold(&trace)?)),
    }
}

/// The contracts above a run, the nearest first.
fn levels(store: &Arc<dyn Store>, run: &RunName) -> Result<Vec<Level>, Error> {
    let mut levels: Vec<Level> = Vec::new();
    let mut run = run.clone();
    while levels.len() < PARENTS_MAX {
        let trace = match Trace::open(store, &run) {
            Ok(trace) => trace,
            // The level below reports the missing run. A run that only begins is judged by its contract until it is in the store.
            Err(error) if is_missing(&error) => break,
            Err(error) => return Err(error),
        };
        let Some(level) = Level::of(&trace) else { break };
        run = level.parent.clone();
        levels.push(level);
    }
    Ok(levels)
}

/// The contracts whose budget is used up beyond a limit, by all runs that use it: of a run, and of those above it.
pub(crate) fn overspent(child: &Trace) -> Result<Vec<Arc<str>>, Error> {
    let mut over = Vec::new();
    let own = child.at(child.tip())?.commitments;
    if !own.hears_parents() {
        return Ok(over);
    }
    for level in levels(child.store(), child.name())? {
        if level.contract.budget.is_empty() {
            continue;
        }
        let used = Family::default().used_but(child.store(), &level.child, None)?.used;
        // A bundle may have fewer runs than the child was judged with.
        let said = own.parents().iter().find(|said| *said.run == *level.parent.as_str());
        let sealed = own.used().and(said.map(|said| said.used).unwrap_or_default());
        if [used, sealed].iter().any(|used| level.contract.budget.exceeded(used).is_some()) {
            over.push(level.contract.id);
        }
    }
    Ok(over)
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::NoRun { .. } | Error::MissingPrefix { .. } | Error::Store(StoreError::NoRecord(_)))
}

/// The result of comparing a sealed entry with the parent's own records.
pub(crate) enum Compared {
    /// The parent said so.
    Same,
    /// The parent cannot be read: why.
    Unverifiable(String),
    /// The parent said something else.
    Differs,
}

/// Compares what a record of a child holds of a parent with the parent's records.
pub(crate) fn compare(store: &Arc<dyn Store>, entry: &Value) -> Compared {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let unverifiable = |why: String| Compared::Unverifiable(why);
    let (Ok(run), Some(tick)) = (text("run").parse::<RunName>(), entry.get("tick").and_then(Value::as_u64))
    else {
        return unverifiable(format!("{} could not be read then either", text("run")));
    };
    let read = Trace::open(store, &run).and_then(|trace| Ok((trace.record(tick)?.id(), trace.at(tick)?)));
    let (record, moment) = match read {
        Ok(read) => read,
        Err(error) => return unverifiable(error.to_string()),
    };
    if moment.commitments.hidden().is_some() {
        return unverifiable("a value that decides was erased or withheld".to_owned());
    }
    let mut parts = parts(&moment);
    parts.ended = ended(&moment, &text("delegation"));
    let made = ParentSaid::entry(run.as_str(), &text("delegation"), None, parts);
    let is_over = entry.get("ended").and_then(|ended| ended.get("as")?.as_str()) == Some("over");
    let names = ["ended", "commitments", "state", "counters"].into_iter().skip(usize::from(is_over));
    let is_same = Value::from(record) == *entry.get("record").unwrap_or(&Value::Null)
        && names.into_iter().all(|name| made.get(name) == entry.get(name));
    if is_same { Compared::Same } else { Compared::Differs }
}

/// The entries of the parents of a run that its last record does not hold: a question about the run now is answered with them. `None`
/// if nothing is new, for another tick than the last, and where a parent is not here, as in a bundle.
pub(crate) fn unsealed(trace: &Trace, upto: u64) -> Result<Option<Value>, Error> {
    if upto != trace.tip() || !trace.at(upto)?.commitments.hears_parents() {
        return Ok(None);
    }
    let store = trace.store();
    for level in levels(store, trace.name())? {
        if store.run(&level.parent)?.is_none() {
            return Ok(None);
        }
    }
    let mut clock = World::default();
    Parents::default().news(store, &trace.head(upto)?, &mut || clock.now())
}

/// How a contract ended in a parent.
fn ended(moment: &Moment, id: &str) -> Option<(Arc<str>, Option<u64>)> {
    let all = &moment.commitments;
    if all.hidden().is_some() {
        return Some(("unreadable".into(), None));
    }
    let Some(one) = all.get(id).filter(|one| one.kind == CommitmentKind::Delegation) else {
        return Some(("missing".into(), None));
    };
    let (status, cause) = moment.statuses().get(id).cloned()?;
    let tick = one.closed.as_ref().map(|closed| closed.tick).or(cause.since);
    status.is_over().then(|| (status.as_str().into(), Some(tick.unwrap_or(moment.tick))))
}

/// The commitments that bind a parent, with the places that they read.
fn parts(moment: &Moment) -> ParentParts {
    let all = &moment.commitments;
    let statuses = moment.statuses();
    let is_live = |id: &str| statuses.get(id).is_some_and(|(status, _)| !status.is_over());
    let binding = all
        .all()
        .iter()
        .filter(|one| all.binds(one) && one.kind != CommitmentKind::Delegation && is_live(&one.id));
    let ids: Vec<Arc<str>> = binding.clone().map(|one| Arc::clone(&one.id)).collect();
    if ids.is_empty() {
        return ParentParts::default();
    }
    let counted = binding.flat_map(|one| one.exprs()).any(|expr| expr.reads_counters());
    ParentParts {
        commitments: all.handed(&ids),
        state: Some(copied(&moment.state, &all.places_read(&ids))),
        counters: counted.then(|| moment.served()),
        ..ParentParts::default()
    }
}
