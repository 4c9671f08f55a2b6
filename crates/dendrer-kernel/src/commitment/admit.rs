//! The judgement of commitments on an intent at the door: refused, noted, or nothing.

use std::sync::Arc;

use dendrer_object::{COMMITMENT_LISTS, Code, Intent, Value};

use super::authorize::relied_on;
use super::{Authorized, CommitmentFault, Commitments, Violated, form};
use crate::names::CANNOT_BE_JUDGED;
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
    /// It closes what its author has not the rank to close.
    Rank(Vec<Arc<str>>),
    /// A call violates commitments.
    Violates(Violated, Vec<Arc<str>>),
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
            CommitmentRefused::Rank(_) => Code::E0455,
            CommitmentRefused::Violates(Violated::Scope, _) => Code::E0452,
            CommitmentRefused::Violates(Violated::Support, _) => Code::E0453,
            CommitmentRefused::Violates(Violated::Hard, _) | CommitmentRefused::Unjudged(_) => Code::E0451,
        }
    }

    /// The ids of the commitments that it names.
    pub(crate) fn ids(&self) -> Vec<Arc<str>> {
        match self {
            CommitmentRefused::List(_) => Vec::new(),
            CommitmentRefused::Rank(all) | CommitmentRefused::Violates(_, all) => all.clone(),
            CommitmentRefused::Unjudged(met) => met.iter().map(|(id, _)| Arc::clone(id)).collect(),
        }
    }

    /// Returns what is put on record of it ([`crate::sealed`]).
    pub(crate) fn sealed(&self) -> Value {
        let ids = |ids: &[Arc<str>]| {
            ("commitments", Value::array(ids.iter().map(|id| Value::String(Arc::clone(id)))))
        };
        let sealed = match self {
            CommitmentRefused::List(fault) => fact("commitment_list", [("path", Value::from(&*fault.path))]),
            CommitmentRefused::Rank(all) => fact("commitment_rank", [ids(all)]),
            CommitmentRefused::Violates(rule, all) => {
                let cause = match rule {
                    Violated::Hard => "commitment_violated",
                    Violated::Scope => "commitment_scope",
                    Violated::Support => "commitment_support",
                };
                fact(cause, [ids(all)])
            }
            CommitmentRefused::Unjudged(met) => {
                let all: Vec<Arc<str>> = met.iter().map(|(id, _)| Arc::clone(id)).collect();
                fact("commitment_unjudged", [ids(&all), ("rules", rules(met))])
            }
        };
        with_code(sealed, self.code())
    }
}

fn rules(met: &[(Arc<str>, Met)]) -> Value {
    Value::array(met.iter().map(|(id, met)| {
        let id = ("id", Value::String(Arc::clone(id)));
        Value::record([id].into_iter().chain(met.sealed()))
    }))
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
    /// Judges an intent. Returns the notes for its transition.
    pub(crate) fn admit(
        &self,
        intent: &Intent,
        over: &Admission<'_>,
    ) -> Result<Vec<Value>, CommitmentRefused> {
        if COMMITMENT_LISTS.iter().any(|name| intent.member(name).is_some()) {
            let member = |name: &str| intent.member(name).cloned();
            form::check_lists(member).map_err(CommitmentRefused::List)?;
            let clashing = self.clashing(member, intent.author, intent.type_name.as_str());
            if let Some(id) = clashing.first() {
                let message = format!("{id} is the id of something else in this run");
                let path = "/id".to_owned();
                return Err(CommitmentRefused::List(CommitmentFault { code: Code::E0209, path, message }));
            }
            let ids = self.closed_without_rank(member, intent.author);
            if !ids.is_empty() {
                return Err(CommitmentRefused::Rank(ids));
            }
        }
        let Some(action) = over.action.filter(|_| !self.is_free()) else { return Ok(Vec::new()) };
        let named = intent.member("intent").and_then(|said| said.get("relies_on"));
        let are_ids =
            |named: &Value| named.as_array().is_some_and(|ids| ids.iter().all(|id| id.as_str().is_some()));
        if named.is_some_and(|named| !are_ids(named)) {
            let (path, message) = ("/intent/relies_on".to_owned(), "relies_on is a list of ids".to_owned());
            return Err(CommitmentRefused::List(CommitmentFault { code: Code::E0209, path, message }));
        }
        let relies_on = relied_on(intent);
        let mut found = Authorized::default();
        for call in calls(action) {
            found.add(self.authorize(&call, &relies_on, over.state, over.counters));
        }
        if let Some((rule, _)) = found.violates.iter().min().filter(|_| over.refuses) {
            let ids = found.violates.iter().map(|(_, id)| Arc::clone(id)).collect();
            return Err(CommitmentRefused::Violates(*rule, ids));
        }
        if !found.unjudged.is_empty() && over.refuses_unjudged {
            return Err(CommitmentRefused::Unjudged(found.unjudged));
        }
        let mut notes = Vec::new();
        if !found.violates.is_empty() {
            let ids = found.violates.iter().map(|(_, id)| Value::String(Arc::clone(id)));
            let kind = ("kind", Value::from(COMMITMENT_VIOLATED));
            notes.push(Value::record([("commitments", Value::array(ids)), kind]));
        }
        if !found.unjudged.is_empty() {
            let members = [("kind", Value::from(CANNOT_BE_JUDGED)), ("rules", rules(&found.unjudged))];
            notes.push(Value::record(members));
        }
        Ok(notes)
    }
}

/// The calls of an action, each as expressions read it: one, or those under `calls`.
pub fn calls(action: &Value) -> Vec<Value> {
    let of = |call: &Value| {
        let members = ["tool", "params"].into_iter().filter_map(|name| Some((name, call.get(name)?.clone())));
        Value::record(members)
    };
    let listed = action.get("calls").and_then(Value::as_array);
    let mut calls: Vec<Value> = listed.into_iter().flat_map(|calls| calls.iter()).map(of).collect();
    if action.get("tool").is_some() || calls.is_empty() {
        calls.insert(0, of(action));
    }
    calls
}
