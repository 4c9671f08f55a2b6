//! The judgement of commitments on an intent at the door: refused, noted, or nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::record::Author;
use dendrer_object::value::Array;
use dendrer_object::{COMMITMENT_LISTS, Code, Intent, SCOPE, UNATTESTED, Value};

use super::authorize::relied_on;
use super::owner::{USER, split_address};
use super::status::CALLS;
use super::{
    Authorized, CommitmentFault, CommitmentOwner, Commitments, ScopeFault, Used, Violated, form, spent,
};
use crate::calls::{calls, count};
use crate::names::CANNOT_BE_JUDGED;
use crate::ontology::RESULT;
use crate::sealed::{Met, fact, told, with_code};

/// The kind of the note on a transition that a commitment forbids.
pub const COMMITMENT_VIOLATED: &str = "commitment_violated";

/// Why commitments stand against an intent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", told(&self.sealed()))]
pub enum CommitmentRefused {
    /// A list that it brings is not one.
    #[error("{}: {}", .0.path, .0.message)]
    List(CommitmentFault),
    /// It closes what its author has not the rank to close (version 1 of the rules).
    Rank(Vec<Arc<str>>),
    /// An id that its author has used for something else, and the tick.
    IdUsed(Arc<str>, CommitmentOwner, u64),
    /// An id that reads as the address of an item.
    Address(Arc<str>),
    /// A call violates commitments.
    Violates(Violated, Vec<Arc<str>>),
    /// A call is outside of the contract of a delegated run: why, and the ids of all that it violates.
    Outside(ScopeFault, Vec<Arc<str>>),
    /// Whether a call violates them cannot be told.
    #[error("it cannot be judged against {}", unjudged(.0))]
    Unjudged(Vec<(Arc<str>, Met)>),
}

fn unjudged(met: &[(Arc<str>, Met)]) -> String {
    met.iter().map(|(id, met)| format!("{id} ({met})")).collect::<Vec<_>>().join(", ")
}

impl CommitmentRefused {
    /// The code under which `dendrer explain` knows it.
    pub fn code(&self) -> Code {
        match self {
            CommitmentRefused::List(fault) => fault.code,
            CommitmentRefused::IdUsed(..) | CommitmentRefused::Address(_) => Code::E0209,
            CommitmentRefused::Rank(_) => Code::E0455,
            CommitmentRefused::Violates(Violated::Scope, _) | CommitmentRefused::Outside(..) => Code::E0452,
            CommitmentRefused::Violates(Violated::Support, _) => Code::E0453,
            CommitmentRefused::Violates(Violated::Hard, _) | CommitmentRefused::Unjudged(_) => Code::E0451,
        }
    }

    /// The ids of the commitments that decided.
    pub fn ids(&self) -> Vec<Arc<str>> {
        match self {
            CommitmentRefused::List(_) | CommitmentRefused::IdUsed(..) | CommitmentRefused::Address(_) => {
                Vec::new()
            }
            CommitmentRefused::Rank(ids)
            | CommitmentRefused::Violates(_, ids)
            | CommitmentRefused::Outside(_, ids) => ids.clone(),
            CommitmentRefused::Unjudged(met) => met.iter().map(|(id, _)| Arc::clone(id)).collect(),
        }
    }

    /// Returns what is put on record of it ([`crate::sealed`]).
    pub(crate) fn sealed(&self) -> Value {
        let ids = |ids: &[Arc<str>]| {
            ("commitments", Value::array(ids.iter().map(|id| Value::String(Arc::clone(id)))))
        };
        let sealed = match self {
            CommitmentRefused::List(fault) if fault.code == Code::E0505 => {
                fact("commitment_name", [("path", Value::from(&*fault.path))])
            }
            CommitmentRefused::List(fault) => fact("commitment_list", [("path", Value::from(&*fault.path))]),
            CommitmentRefused::IdUsed(id, owner, tick) => {
                let author = ("author", Value::from(owner.to_string().as_str()));
                let members = [author, ("item", Value::String(Arc::clone(id))), ("tick", Value::from(*tick))];
                fact("commitment_id_used", members)
            }
            CommitmentRefused::Address(id) => {
                fact("commitment_address", [("item", Value::String(Arc::clone(id)))])
            }
            CommitmentRefused::Rank(all) => fact("commitment_rank", [ids(all)]),
            CommitmentRefused::Violates(rule, all) => {
                let cause = match rule {
                    Violated::Hard => "commitment_violated",
                    Violated::Scope => "commitment_scope",
                    Violated::Support => "commitment_support",
                };
                fact(cause, [ids(all)])
            }
            CommitmentRefused::Outside(fault, all) => with_ids(fault, ids(all).1),
            CommitmentRefused::Unjudged(met) => {
                let all: Vec<Arc<str>> = met.iter().map(|(id, _)| Arc::clone(id)).collect();
                fact("commitment_unjudged", [ids(&all), ("rules", rules(met))])
            }
        };
        with_code(sealed, self.code())
    }
}

fn with_ids(fault: &ScopeFault, ids: Value) -> Value {
    let mut members = fault.sealed().as_object().cloned().unwrap_or_default();
    members.set("commitments", ids);
    Value::Object(members)
}

fn rules(met: &[(Arc<str>, Met)]) -> Value {
    Value::array(met.iter().map(|(id, met)| {
        let id = ("id", Value::String(Arc::clone(id)));
        Value::record([id].into_iter().chain(met.sealed()))
    }))
}

/// Members for the transition of an admitted intent.
#[derive(Default)]
pub(crate) struct Admitted {
    /// Its notes.
    pub(crate) notes: Vec<Value>,
    /// The amounts that its calls add to the sums of commitments.
    pub(crate) spent: Option<Value>,
}

/// The values over which an intent is judged.
pub(crate) struct Admission<'a> {
    /// The action, if the intent proposes one.
    pub(crate) action: Option<&'a Value>,
    /// Whether what is violated is refused.
    pub(crate) refuses: bool,
    /// Whether what cannot be judged is refused.
    pub(crate) refuses_unjudged: bool,
    /// The state before.
    pub(crate) state: &'a Value,
    /// The counters before.
    pub(crate) counters: &'a dyn Fn() -> Value,
}

impl Commitments {
    /// Judges an intent.
    pub(crate) fn admit(&self, intent: &Intent, over: &Admission<'_>) -> Result<Admitted, CommitmentRefused> {
        if COMMITMENT_LISTS.iter().any(|name| intent.member(name).is_some()) {
            self.admit_lists(intent)?;
        }
        let heard = self.hearing(intent);
        let this = heard.as_ref().unwrap_or(self);
        let mut found = Authorized::default();
        if let Some(contract) = this.contract().filter(|_| this.hears_parents()) {
            let next = Used::of_intent(intent);
            this.over_budget(&next).into_iter().for_each(|fault| found.leave(&contract.id, fault));
        }
        let Some(action) = over.action.filter(|_| !this.is_free() || this.is_since(2)) else {
            if this.is_since(2) && intent.type_name.as_str() != RESULT {
                for named in this.relied_on(intent, &Value::object())? {
                    found.add(this.supported(&named, over.state, over.counters));
                }
            }
            return decided(found, over);
        };
        let named = this.relied_on(intent, action)?;
        if this.is_free() && named.iter().all(Vec::is_empty) {
            return decided(found, over);
        }
        for (call, relies_on) in this.calls_of(intent, action).iter().zip(&named) {
            let call = this.with_running(call, &found);
            found.add(this.authorize(&call, relies_on, over.state, over.counters));
        }
        decided(found, over)
    }

    /// A call with the sums after the earlier calls of its line.
    fn with_running(&self, call: &Value, before: &Authorized) -> Value {
        if before.spent.is_empty() {
            return call.clone();
        }
        let mut running = self.spent.clone();
        for (id, call) in &before.spent {
            spent::add(running.entry(Arc::clone(id)).or_default(), call);
        }
        let mut made = call.as_object().cloned().unwrap_or_default();
        spent::sealed(&running).into_iter().for_each(|running| made.set(spent::SPENT, running));
        Value::Object(made)
    }

    /// The calls of an action as expressions read them: with the agent, and all calls of the line.
    fn calls_of(&self, intent: &Intent, action: &Value) -> Vec<Value> {
        let each = calls(action);
        if !self.is_since(2) {
            return each;
        }
        let listed = action.get(CALLS).and_then(Value::as_array);
        let id = |call: &Value| call.get("call_id").cloned();
        let ids = listed.into_iter().flat_map(|calls| calls.iter()).map(id);
        let missing = each.len() - listed.map_or(0, Array::len);
        let ids = std::iter::repeat_n(id(action), missing).chain(ids);
        let with_id = |(call, id): (&Value, Option<Value>)| {
            let mut made = call.as_object().cloned().unwrap_or_default();
            id.into_iter().for_each(|id| made.set("call_id", id));
            Value::Object(made)
        };
        let line = Value::array(each.iter().zip(ids).map(with_id).collect::<Vec<_>>());
        let scope = intent.member(SCOPE);
        let with_line = |call: Value| {
            let mut made = call.as_object().cloned().unwrap_or_default();
            scope.into_iter().for_each(|scope| made.set(SCOPE, scope.clone()));
            made.set("agent", Value::String(Arc::clone(&intent.agent)));
            made.set(CALLS, line.clone());
            Value::Object(made)
        };
        each.into_iter().map(with_line).collect()
    }

    /// Judges the lists of an intent about commitments. By version 2 of the rules none is refused because another author has its id,
    /// or because its own has not the rank: then it has no effect.
    fn admit_lists(&self, intent: &Intent) -> Result<(), CommitmentRefused> {
        let member = |name: &str| intent.member(name).cloned();
        self.check_lists(member).map_err(CommitmentRefused::List)?;
        if !self.is_since(2) {
            let clashing = self.clashing(member, intent.author, intent.type_name.as_str());
            if let Some(id) = clashing.first() {
                let message = format!("{id} is the id of something else in this run");
                let path = "/id".to_owned();
                return Err(CommitmentRefused::List(CommitmentFault { code: Code::E0209, path, message }));
            }
            let ids = self.closed_without_rank(member, intent.author);
            return if ids.is_empty() { Ok(()) } else { Err(CommitmentRefused::Rank(ids)) };
        }
        // A result reports what happened; an item of it that its author has already has no effect, alone.
        if intent.type_name.as_str() == RESULT {
            return Ok(());
        }
        if let Some(id) = addresses(member).next() {
            return Err(CommitmentRefused::Address(id));
        }
        let owner = writer_of(intent);
        match self.used_before(member, &owner) {
            Some((id, tick)) => Err(CommitmentRefused::IdUsed(id, owner, tick)),
            None => Ok(()),
        }
    }

    /// The ids that each call of an action relies on: those of the line, of the action and of the call. A name that means an item of
    /// the line itself is left out.
    fn relied_on(&self, intent: &Intent, action: &Value) -> Result<Vec<Vec<Arc<str>>>, CommitmentRefused> {
        let said = intent.member("intent");
        // Most lines rely on nothing that they name.
        let names = |value: &Value| value.get("relies_on").is_some();
        let list = action.get("calls").and_then(Value::as_array);
        if !said.is_some_and(names)
            && !names(action)
            && !list.into_iter().flat_map(|calls| calls.iter()).any(names)
        {
            return Ok(vec![Vec::new(); count(action)]);
        }
        let mut places = vec![("/intent/relies_on".to_owned(), said.and_then(|said| said.get("relies_on")))];
        let listed = action.get("calls").and_then(Value::as_array);
        if self.is_since(2) {
            places.push(("/action/relies_on".to_owned(), action.get("relies_on")));
            let each = listed.into_iter().flat_map(|calls| calls.iter()).enumerate();
            let each =
                each.map(|(at, call)| (format!("/action/calls/{at}/relies_on"), call.get("relies_on")));
            places.extend(each);
        }
        let are_ids =
            |named: &Value| named.as_array().is_some_and(|ids| ids.iter().all(|id| id.as_str().is_some()));
        for (path, named) in &places {
            if named.is_some_and(|named| !are_ids(named)) {
                let (path, message) = (path.clone(), "relies_on is a list of ids".to_owned());
                return Err(CommitmentRefused::List(CommitmentFault { code: Code::E0209, path, message }));
            }
        }
        let line = relied_on(intent);
        if !self.is_since(2) {
            return Ok(vec![line; calls(action).len()]);
        }
        let owner = writer_of(intent);
        let brought: BTreeSet<Arc<str>> = ids(|name| intent.member(name).cloned()).collect();
        let resolve = |names: Vec<Arc<str>>| -> Vec<Arc<str>> {
            let names = names.into_iter().filter(|name| !brought.contains(name));
            names.map(|name| self.find_for(&name, Some(&owner)).unwrap_or(name)).collect()
        };
        let shared = [line, form::texts(action, "relies_on")].concat();
        let own = listed.into_iter().flat_map(|calls| calls.iter());
        let own: Vec<Vec<Arc<str>>> = own.map(|call| form::texts(call, "relies_on")).collect();
        // A tool that is named together with the list is a call before the list.
        let missing = calls(action).len() - own.len();
        let own = std::iter::repeat_n(Vec::new(), missing).chain(own);
        Ok(own.map(|own| resolve([shared.clone(), own].concat())).collect())
    }
}

/// The owner of what an intent brings.
fn writer_of(intent: &Intent) -> CommitmentOwner {
    let is_unattested = intent.member(UNATTESTED).is_some();
    match intent.author {
        Author::User => CommitmentOwner::User(intent.member(USER).and_then(Value::as_str).map(Arc::from)),
        author if author == Author::Agent || is_unattested => {
            CommitmentOwner::Agent(Some(Arc::clone(&intent.agent)))
        }
        author => CommitmentOwner::of(author, None),
    }
}

/// The ids of the atoms and commitments of a line.
fn ids(member: impl Fn(&str) -> Option<Value>) -> impl Iterator<Item = Arc<str>> {
    let lists = [form::EVIDENCE, form::COMMITMENTS].into_iter().filter_map(member);
    let items: Vec<Value> = lists
        .flat_map(|list| {
            list.as_array().into_iter().flat_map(|items| items.iter().cloned()).collect::<Vec<_>>()
        })
        .collect();
    items.into_iter().filter_map(|item| form::text(&item, "id"))
}

/// The ids of a line that read as addresses.
fn addresses(member: impl Fn(&str) -> Option<Value>) -> impl Iterator<Item = Arc<str>> {
    ids(member).filter(|id| split_address(id).is_some())
}

/// Refuses what was found, or returns the notes of it.
fn decided(found: Authorized, over: &Admission<'_>) -> Result<Admitted, CommitmentRefused> {
    let ids = || found.violates.iter().map(|(_, id)| Arc::clone(id)).collect();
    let general = found.scope.as_ref().filter(|fault| fault.is_general());
    if let Some(fault) = general.filter(|_| over.refuses) {
        return Err(CommitmentRefused::Outside(fault.clone(), ids()));
    }
    if let Some((rule, _)) = found.violates.iter().min().filter(|_| over.refuses) {
        return Err(match (&found.scope, rule) {
            (Some(fault), Violated::Scope) => CommitmentRefused::Outside(fault.clone(), ids()),
            _ => CommitmentRefused::Violates(*rule, ids()),
        });
    }
    if !found.unjudged.is_empty() && over.refuses_unjudged {
        return Err(CommitmentRefused::Unjudged(found.unjudged));
    }
    let mut notes = Vec::new();
    if !found.violates.is_empty() {
        let ids = found.violates.iter().map(|(_, id)| Value::String(Arc::clone(id)));
        let ids = Value::array(ids);
        let note = match &found.scope {
            Some(fault) => with_ids(fault, ids),
            None => Value::record([("commitments", ids)]),
        };
        let mut note = note.as_object().cloned().unwrap_or_default();
        note.set("kind", Value::from(COMMITMENT_VIOLATED));
        notes.push(Value::Object(note));
    }
    if !found.unjudged.is_empty() {
        let members = [("kind", Value::from(CANNOT_BE_JUDGED)), ("rules", rules(&found.unjudged))];
        notes.push(Value::record(members));
    }
    Ok(Admitted { notes, spent: spent::sealed(&found.spent) })
}
