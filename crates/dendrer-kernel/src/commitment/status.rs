//! Statuses: which of eight applies to each commitment at a tick.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::Value;

use super::{ClosedAs, Commitment, CommitmentEdge, Commitments, EdgeKind};
use crate::expr::{Budget, Env, Expr, Truth};
use crate::names::SERVED_COMMITMENTS;

/// Where a commitment is in its life; the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommitmentStatus {
    /// It was taken back.
    Retracted,
    /// Another took its place.
    Superseded,
    /// It is done.
    Discharged,
    /// What it watches changed after its last support, or what it depends on fell.
    Stale,
    /// It conflicts with one that wins.
    Blocked,
    /// It does not apply now.
    Dormant,
    /// It is not grounded, or hard and does not bind.
    Tentative,
    /// It applies.
    Active,
}

impl CommitmentStatus {
    /// The word for it in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            CommitmentStatus::Retracted => "retracted",
            CommitmentStatus::Superseded => "superseded",
            CommitmentStatus::Discharged => "discharged",
            CommitmentStatus::Stale => "stale",
            CommitmentStatus::Blocked => "blocked",
            CommitmentStatus::Dormant => "dormant",
            CommitmentStatus::Tentative => "tentative",
            CommitmentStatus::Active => "active",
        }
    }

    /// Whether a claim that depends on a commitment with this status is stale.
    pub fn fells(self) -> bool {
        matches!(self, CommitmentStatus::Stale | CommitmentStatus::Retracted | CommitmentStatus::Superseded)
    }

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        matches!(
            self,
            CommitmentStatus::Retracted | CommitmentStatus::Superseded | CommitmentStatus::Discharged
        )
    }
}

/// What decided a status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusCause {
    /// Ids and watched names that decided it.
    pub because: Vec<Arc<str>>,
    /// Since when, if a tick decided it.
    pub since: Option<u64>,
}

/// The statuses of all commitments at a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statuses(BTreeMap<Arc<str>, (CommitmentStatus, StatusCause)>);

/// What expressions of commitments read besides the action: the state, and the counters where one asks for them.
type Known<'k> = (&'k Value, &'k dyn Fn() -> Value);

impl Statuses {
    /// Reads them over the state of the tick. `action` is the call that is asked about, if there is one.
    pub fn of(
        all: &Commitments,
        state: &Value,
        counters: &dyn Fn() -> Value,
        action: Option<&Value>,
    ) -> Statuses {
        let mut made = Statuses(BTreeMap::new());
        let known = (state, counters);
        made.find_fallen(all, known);
        // The strongest first: one that is blocked blocks nothing.
        let mut standing: Vec<&Commitment> =
            all.all().iter().map(|one| &**one).filter(|one| !made.0.contains_key(&one.id)).collect();
        standing.sort_by_cached_key(|one| std::cmp::Reverse(strength(all, one)));
        for one in standing {
            let standing = made.standing(all, one, known, action);
            made.0.insert(Arc::clone(&one.id), standing);
        }
        made
    }

    /// The status of a commitment.
    pub fn get(&self, id: &str) -> Option<&(CommitmentStatus, StatusCause)> {
        self.0.get(id)
    }

    /// What expressions read as `state.commitments`: the status of each.
    pub fn to_value(&self) -> Value {
        Value::record(self.0.iter().map(|(id, (status, _))| {
            (Arc::clone(id), Value::record([("status", Value::from(status.as_str()))]))
        }))
    }

    /// Adds to counters, as expressions are given them, what `state.commitments` reads.
    pub fn served_with(all: &Commitments, state: &Value, counters: Value) -> Value {
        let statuses = Statuses::of(all, state, &|| counters.clone(), None).to_value();
        let mut served = counters.as_object().cloned().unwrap_or_default();
        served.set(SERVED_COMMITMENTS, statuses);
        Value::Object(served)
    }

    /// What is over or stale: first by itself, and then by what it depends on.
    fn find_fallen(&mut self, all: &Commitments, known: Known<'_>) {
        let mut open: Vec<Arc<str>> = Vec::new();
        for one in all.all() {
            if let Some(fallen) = fallen(all, one, known) {
                open.extend(fallen.0.fells().then(|| Arc::clone(&one.id)));
                self.0.insert(Arc::clone(&one.id), fallen);
            }
        }
        let mut by_others = Vec::new();
        while let Some(id) = open.pop() {
            for edge in all.edges_to(&id).filter(|edge| edge.kind == EdgeKind::DependsOn) {
                let Some(one) = all.get(&edge.from).filter(|one| one.kind.is_claim()) else { continue };
                if !self.0.contains_key(&one.id) {
                    self.0.insert(Arc::clone(&one.id), (CommitmentStatus::Stale, StatusCause::default()));
                    open.push(Arc::clone(&one.id));
                    by_others.push(Arc::clone(&one.id));
                }
            }
        }
        for id in by_others {
            let depends = all.edges_from(&id).filter(|edge| edge.kind == EdgeKind::DependsOn);
            let fallen =
                depends.filter(|edge| self.0.get(&edge.to).is_some_and(|(status, _)| status.fells()));
            let because = fallen.map(|edge| edge.to).collect();
            self.0.insert(id, (CommitmentStatus::Stale, StatusCause { because, since: None }));
        }
    }

    /// The status of a commitment that is neither over nor stale.
    fn standing(
        &self,
        all: &Commitments,
        one: &Commitment,
        known: Known<'_>,
        action: Option<&Value>,
    ) -> (CommitmentStatus, StatusCause) {
        let conflicts = |edge: &CommitmentEdge| edge.kind == EdgeKind::ConflictsWith;
        let others = all.edges_from(&one.id).filter(conflicts).map(|edge| edge.to);
        let others = others.chain(all.edges_to(&one.id).filter(conflicts).map(|edge| edge.from));
        let mut because: Vec<Arc<str>> =
            others.filter(|other| all.get(other).is_some_and(|other| self.wins(all, other, one))).collect();
        because.sort();
        because.dedup();
        if !because.is_empty() {
            return (CommitmentStatus::Blocked, StatusCause { because, since: None });
        }
        let is_dormant =
            one.guard.as_ref().is_some_and(|guard| truth(guard, known, action) != Some(Truth::True));
        let is_open = one.kind.is_claim() && one.grounded_by.is_none();
        let status = match () {
            _ if is_dormant => CommitmentStatus::Dormant,
            _ if is_open || (one.is_hard && !all.binds(one)) => CommitmentStatus::Tentative,
            _ => CommitmentStatus::Active,
        };
        (status, StatusCause::default())
    }

    /// Whether a commitment binds and wins over another: hard before soft, then rank, then priority.
    fn wins(&self, all: &Commitments, winner: &Commitment, loser: &Commitment) -> bool {
        let fallen = self.0.get(&winner.id).is_some_and(|(status, _)| {
            status.is_over() || matches!(status, CommitmentStatus::Stale | CommitmentStatus::Blocked)
        });
        all.binds(winner) && !fallen && strength(all, winner) > strength(all, loser)
    }
}

/// The order in which one of two in conflict wins.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Strength(bool, u8, Priority);

/// A priority in the order of numbers.
#[derive(PartialEq)]
struct Priority(f64);

impl Eq for Priority {}

impl PartialOrd for Priority {
    fn partial_cmp(&self, other: &Priority) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Priority {
    fn cmp(&self, other: &Priority) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

fn strength(all: &Commitments, one: &Commitment) -> Strength {
    Strength(all.binds(one), all.owner(one).rank(), Priority(one.priority))
}

/// Whether a commitment is over or stale by itself, and why.
fn fallen(all: &Commitments, one: &Commitment, known: Known<'_>) -> Option<(CommitmentStatus, StatusCause)> {
    if let Some(closed) = &one.closed {
        let status = match closed.how {
            ClosedAs::Retracted => CommitmentStatus::Retracted,
            ClosedAs::Superseded => CommitmentStatus::Superseded,
            ClosedAs::Discharged => CommitmentStatus::Discharged,
        };
        return Some((status, StatusCause { because: Vec::new(), since: Some(closed.tick) }));
    }
    if one.discharge.as_ref().is_some_and(|discharge| truth(discharge, known, None) == Some(Truth::True)) {
        return Some((CommitmentStatus::Discharged, StatusCause::default()));
    }
    let (name, tick) = all.changed_since(one).filter(|_| one.kind.is_claim())?;
    let cause = StatusCause { because: vec![Arc::clone(name)], since: Some(tick) };
    Some((CommitmentStatus::Stale, cause))
}

/// What an expression of a commitment says. `None` where it reads `action` and no action is asked about.
fn truth(expr: &Expr, known: Known<'_>, action: Option<&Value>) -> Option<Truth> {
    if action.is_none() && expr.roots().any(|root| root == "action") {
        return None;
    }
    Some(evaluate(expr, known, action))
}

/// Evaluates an expression of a commitment.
pub(super) fn evaluate(expr: &Expr, (state, counters): Known<'_>, action: Option<&Value>) -> Truth {
    let nothing = Value::object();
    let others = [("action", action.unwrap_or(&nothing))];
    let counters = expr.reads_counters().then(counters);
    expr.holds(&Env { state, counters: counters.as_ref(), others: &others }, &mut Budget::default())
}
