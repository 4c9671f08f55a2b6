//! Entries of the parents of a delegated run: status of the contract now, commitments that bind there, and the places these read
//! (design, section 14.2).
//!
//! The door of the child seals an entry in the member `contract` of the next record when it has changed, and judges by the sealed
//! form alone: replay, forks and a bundle without the parents decide the same.
//!
//! Rule: nothing of a parent is judged that no record of the child holds; test `a_child_is_judged_by_what_its_records_hold`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_object::record::Author;
use dendrer_object::{Intent, Value};

use super::budget::{ContractBudget, Used};
use super::projection::{INITIAL, ITEMS, OF_PARENT, with_tick};
use super::{
    Authorized, CONTRACT, ClosedAs, ClosedCommitment, Commitments, DelegationContract, ScopeFault, form,
};

/// The member of a sealed `contract` with one entry for each parent that has something new.
pub const PARENTS: &str = "parents";

/// Members of the entry of a parent.
const BUDGET: &str = "budget";
const COUNTERS: &str = "counters";
const ENDED: &str = "ended";
const STATE: &str = "state";
const USED: &str = "used";

/// Members of an entry that say where it was read, and no more.
const READ_AT: [&str; 2] = ["record", "tick"];

/// The entry of a parent about the contract under which a child of it works, at a tick of the parent.
#[derive(Debug, Clone, PartialEq)]
pub struct ParentSaid {
    /// The parent.
    pub run: Arc<str>,
    /// The `deleg` of the parent.
    pub delegation: Arc<str>,
    /// How the contract ended: a status, `over`, `missing` or `unreadable`; with the tick of the parent if one decided it.
    pub ended: Option<(Arc<str>, Option<u64>)>,
    /// The limits of the contract, if it is not the one of the run itself.
    pub budget: ContractBudget,
    /// The use of the budget by other runs: forks and children.
    pub used: Used,
    /// As it is sealed.
    pub written: Value,
}

/// The parts of an entry.
#[derive(Debug, Clone, Default)]
pub struct ParentParts {
    /// How the contract ended.
    pub ended: Option<(Arc<str>, Option<u64>)>,
    /// The commitments that bind the parent, as [`Commitments::handed`] gives them.
    pub commitments: Option<Value>,
    /// The places of the parent's state that they read.
    pub state: Option<Value>,
    /// The counters of the parent, if they read one.
    pub counters: Option<Value>,
    /// The limits of the contract, if it is not the one of the run itself.
    pub budget: Option<Value>,
    /// The use by other runs.
    pub used: Option<Used>,
}

impl ParentSaid {
    /// Makes the entry of a parent: `run`, `tick`, `record` and `delegation`, with its parts.
    pub fn entry(run: &str, delegation: &str, read_at: Option<(u64, Value)>, parts: ParentParts) -> Value {
        let ended = parts.ended.map(|(how, tick)| {
            let tick = tick.map(|tick| ("tick", Value::from(tick)));
            Value::record([("as", Value::String(how))].into_iter().chain(tick))
        });
        let (tick, record) = read_at.map_or((None, None), |(tick, record)| (Some(tick), Some(record)));
        let members = [
            ("run", Some(Value::from(run))),
            ("delegation", Some(Value::from(delegation))),
            ("tick", tick.map(Value::from)),
            ("record", record),
            (ENDED, ended),
            (INITIAL, parts.commitments),
            (STATE, parts.state),
            (COUNTERS, parts.counters),
            (BUDGET, parts.budget),
            (USED, parts.used.map(|used| used.to_value())),
        ];
        Value::record(members.into_iter().filter_map(|(name, value)| Some((name, value?))))
    }

    /// An entry without the place where it was read: two that are equal say the same.
    pub fn content(entry: &Value) -> Value {
        let mut members = entry.as_object().cloned().unwrap_or_default();
        for name in READ_AT {
            members.remove(name);
        }
        Value::Object(members)
    }

    fn read(entry: &Value) -> Option<ParentSaid> {
        let ended = entry
            .get(ENDED)
            .and_then(|ended| Some((form::text(ended, "as")?, ended.get("tick").and_then(Value::as_u64))));
        Some(ParentSaid {
            run: form::text(entry, "run")?,
            delegation: form::text(entry, "delegation")?,
            ended,
            budget: entry.get(BUDGET).map(ContractBudget::read).unwrap_or_default(),
            used: entry.get(USED).map(Used::read).unwrap_or_default(),
            written: entry.clone(),
        })
    }

    /// Whether it is the parent that made a contract.
    fn is_of(&self, contract: &DelegationContract) -> bool {
        let run = contract.written.get("parent").and_then(|parent| parent.get("run")?.as_str());
        self.delegation == contract.id && run == Some(&*self.run)
    }

    /// Judges a call by the commitments that bind the parent: over its places, and over those of the child.
    fn judge(&self, version: u64, call: &Value, state: &Value, counters: &dyn Fn() -> Value) -> Authorized {
        let mut found = Authorized::default();
        let Some(initial) = self.written.get(INITIAL) else { return found };
        let theirs = Commitments::at_start(version, Some(initial), None);
        let nothing = Value::object();
        let places = self.written.get(STATE).unwrap_or(&nothing);
        let counted = || self.written.get(COUNTERS).cloned().unwrap_or_else(Value::object);
        found.add(theirs.authorize(call, &[], places, &counted));
        let both = filled(state, places);
        let own = theirs.authorize(call, &[], &both, counters);
        // A commitment that the child alone cannot judge is judged by the places of the parent.
        found.add(Authorized { unjudged: Vec::new(), spent: BTreeMap::new(), ..own });
        found
    }
}

/// A state, with the places of another where it has none.
fn filled(state: &Value, with: &Value) -> Value {
    match (state, with) {
        (Value::Object(members), Value::Object(with)) => {
            let mut made = members.clone();
            for (name, value) in with.iter() {
                let value = match members.get(name) {
                    Some(own) => filled(own, value),
                    None => value.clone(),
                };
                made.set(name, value);
            }
            Value::Object(made)
        }
        _ => state.clone(),
    }
}

impl Commitments {
    /// The entries of the parents of a delegated run, as far as its records hold them.
    pub fn parents(&self) -> &[ParentSaid] {
        &self.parents
    }

    /// The use of the budgets that apply to a delegated run, by the run itself.
    pub fn used(&self) -> Used {
        self.used
    }

    /// Whether the contract is judged by what its parents say now.
    pub fn hears_parents(&self) -> bool {
        self.is_since(2) && self.contract().is_some()
    }

    /// Takes the entries of parents in a record of the run, and the use by the record.
    pub(super) fn hear(&mut self, tick: u64, author: Author, type_name: &str, content: &Value) {
        if !self.hears_parents() {
            return;
        }
        self.used = self.used.and(Used::of(author, type_name, content));
        if let Some(said) = content.get(CONTRACT).filter(|_| author != Author::Kernel) {
            self.take_said(said);
            self.list_said(tick);
        }
    }

    /// Lists the commitments that parents added, and closes those that bind no parent any more.
    fn list_said(&mut self, tick: u64) {
        let items: Vec<Value> = self
            .parents
            .iter()
            .filter_map(|said| said.written.get(INITIAL)?.get(ITEMS)?.as_array().cloned())
            .flat_map(|items| items.iter().cloned().collect::<Vec<_>>())
            .filter(|item| item.get("imported").is_some())
            .collect();
        let ids: BTreeSet<Arc<str>> =
            items.iter().filter_map(|item| form::text(item.get("commitment")?, "id")).collect();
        let gone = self.all().iter().filter(|one| one.is_of_parent && !ids.contains(&one.id));
        let gone: Vec<Arc<str>> = gone.map(|one| Arc::clone(&one.id)).collect();
        for id in gone {
            self.change_one(&id, |one| {
                one.closed.get_or_insert(ClosedCommitment { how: ClosedAs::Discharged, tick, reason: None });
            });
        }
        let trust = self.trust.take();
        self.take_kept(&Value::record([(
            ITEMS,
            Value::array(items.iter().map(|item| {
                let mut members = with_tick(item, tick).as_object().cloned().unwrap_or_default();
                members.set(OF_PARENT, Value::Bool(true));
                Value::Object(members)
            })),
        )]));
        self.trust = trust;
    }

    /// Takes what is sealed of parents; the newest entry of each counts.
    pub(super) fn take_said(&mut self, said: &Value) {
        let entries = said.get(PARENTS).and_then(Value::as_array);
        let mut parents = self.parents.to_vec();
        for said in entries.into_iter().flat_map(|entries| entries.iter()).filter_map(ParentSaid::read) {
            match parents.iter_mut().find(|known| known.run == said.run) {
                Some(known) => *known = said,
                None => parents.push(said),
            }
        }
        self.parents = parents.into();
    }

    /// The sealed entries of parents, as a snapshot keeps them.
    pub(super) fn kept_parents(&self) -> Option<Value> {
        let entries = self.parents.iter().map(|said| said.written.clone());
        (!self.parents.is_empty()).then(|| Value::record([(PARENTS, Value::array(entries))]))
    }

    /// The commitments with the entries of parents in the content of the next record: its calls are judged by these.
    pub fn hearing_record(&self, content: &Value) -> Option<Commitments> {
        let said = content.get(CONTRACT).filter(|_| self.hears_parents())?;
        let mut made = self.clone();
        made.take_said(said);
        Some(made)
    }

    /// The commitments with what parents say that no record of the run holds yet, listed as of a tick.
    pub fn hearing_now(&self, said: &Value, tick: u64) -> Commitments {
        let mut made = self.clone();
        made.take_said(said);
        made.list_said(tick);
        made
    }

    /// The commitments with what an intent brings of parents: the intent is judged by that.
    pub(super) fn hearing(&self, intent: &Intent) -> Option<Commitments> {
        let said = intent.member(CONTRACT).filter(|_| self.hears_parents())?;
        let mut made = self.clone();
        made.take_said(said);
        Some(made)
    }

    /// Why the contract permits no call at all.
    pub(super) fn ended(&self) -> Option<ScopeFault> {
        let said = self.parents.iter().find(|said| said.ended.is_some())?;
        let (how, tick) = said.ended.clone()?;
        Some(ScopeFault::Ended {
            delegation: Arc::clone(&said.delegation),
            how,
            run: Arc::clone(&said.run),
            tick,
        })
    }

    /// The limits that an intent would pass: of its own contract, and of those above it.
    pub(super) fn over_budget(&self, next: &Used) -> Option<ScopeFault> {
        let contract = self.contract()?;
        let own = self.parents.iter().find(|said| said.is_of(contract)).map(|said| said.used);
        let own = Some((&contract.id, contract.budget, own.unwrap_or_default()));
        let above = self.parents.iter().filter(|said| !said.is_of(contract));
        let above = above.map(|said| (&said.delegation, said.budget, said.used));
        own.into_iter().chain(above).find_map(|(delegation, budget, others)| {
            let budget = budget.passed(&self.used.and(others), next)?;
            Some(ScopeFault::Budget { delegation: Arc::clone(delegation), budget })
        })
    }

    /// Adds what the commitments of the parents say of a call.
    pub(super) fn judge_by_parents(
        &self,
        call: &Value,
        state: &Value,
        counters: &dyn Fn() -> Value,
        found: &mut Authorized,
    ) {
        for said in self.parents.iter() {
            let mut said = said.judge(self.version(), call, state, counters);
            // A commitment that is listed here has added the call to its sums already.
            said.spent.retain(|id, _| !found.spent.contains_key(id));
            found.add(said);
        }
    }
}
