//! Statuses: which of eight applies to each commitment at a tick.

use std::sync::{Arc, LazyLock};

use dendrer_object::Value;
use dendrer_object::record::Author;

use super::projection::Core;
use super::spent::SPENT;
use super::{ClosedAs, Commitment, CommitmentEdge, Commitments, EdgeKind};
use crate::expr::{Budget, Env, Expr, Truth};
use crate::names::SERVED_COMMITMENTS;

dendrer_object::words! {
    /// The status of a commitment; the first that applies.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CommitmentStatus {
        /// It was taken back.
        Retracted = "retracted",
        /// Another took its place.
        Superseded = "superseded",
        /// It is done.
        Discharged = "discharged",
        /// A place that it watches changed after its last support, or a dependency of it fell.
        Stale = "stale",
        /// It conflicts with one that wins.
        Blocked = "blocked",
        /// It does not apply now.
        Dormant = "dormant",
        /// It is not grounded, or hard and does not bind.
        Tentative = "tentative",
        /// It applies.
        Active = "active",
    }
}

impl CommitmentStatus {
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

/// The reason for a status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusCause {
    /// Ids and watched names that decided it.
    pub because: Vec<Arc<str>>,
    /// Since when, if a tick decided it.
    pub since: Option<u64>,
}

/// The statuses of all commitments at a tick.
#[derive(Clone)]
pub struct Statuses {
    core: Arc<Core>,
    /// In the order of the commitments; `None` while it is worked out.
    all: Vec<Option<(CommitmentStatus, StatusCause)>>,
}

/// The values that expressions of commitments read besides the action: the state, and the counters if one asks for them.
type Known<'k> = (&'k Value, &'k dyn Fn() -> Value);

impl Statuses {
    /// Reads them over the state of the tick. `action` is the call that is asked about, if there is one.
    pub fn of(
        all: &Commitments,
        state: &Value,
        counters: &dyn Fn() -> Value,
        action: Option<&Value>,
    ) -> Statuses {
        if !all.core().reads_statuses {
            return Statuses::with(all, state, counters, action);
        }
        // An expression that reads statuses sees them as they are without any such expression.
        let others = Statuses::with(all, state, counters, None).to_value();
        let served = || {
            let mut served = counters().as_object().cloned().unwrap_or_default();
            served.set(SERVED_COMMITMENTS, others.clone());
            Value::Object(served)
        };
        Statuses::with(all, state, &served, action)
    }

    /// As [`Statuses::of`], where expressions see the statuses that the counters serve.
    fn with(
        all: &Commitments,
        state: &Value,
        counters: &dyn Fn() -> Value,
        action: Option<&Value>,
    ) -> Statuses {
        let core = all.core();
        let mut made = Statuses { core: Arc::clone(core), all: vec![None; core.all.len()] };
        let known = (state, counters);
        made.find_fallen(all, known);
        // The strongest first: one that is blocked blocks nothing.
        let mut standing: Vec<usize> = (0..core.all.len()).filter(|at| made.all[*at].is_none()).collect();
        standing.sort_by_cached_key(|at| std::cmp::Reverse(strength(all, &core.all[*at])));
        for at in standing {
            made.all[at] = Some(made.standing(all, &core.all[at], known, action));
        }
        made
    }

    /// The status of a commitment.
    pub fn get(&self, id: &str) -> Option<&(CommitmentStatus, StatusCause)> {
        self.at(self.core.number(id)?)
    }

    /// The status of a commitment by its place in [`Commitments::all`].
    pub fn at(&self, number: usize) -> Option<&(CommitmentStatus, StatusCause)> {
        self.all.get(number)?.as_ref()
    }

    /// The value of `state.commitments` in expressions: the status of each.
    pub fn to_value(&self) -> Value {
        let each =
            self.core.all.iter().zip(&self.all).filter_map(|(one, found)| Some((one, found.as_ref()?)));
        Value::record(each.map(|(one, (status, _))| {
            (Arc::clone(&one.id), Value::record([("status", Value::from(status.as_str()))]))
        }))
    }

    /// Adds to counters, as expressions are given them, what `state.commitments` reads.
    pub fn served_with(all: &Commitments, state: &Value, counters: Value) -> Value {
        // A run without commitments is most runs, and this is asked at each tick.
        if all.all().is_empty() {
            return counters;
        }
        let statuses = Statuses::of(all, state, &|| counters.clone(), None).to_value();
        let mut served = counters.as_object().cloned().unwrap_or_default();
        served.set(SERVED_COMMITMENTS, statuses);
        Value::Object(served)
    }

    /// Finds the commitments that are over or stale: first by themselves, and then by their dependencies.
    fn find_fallen(&mut self, all: &Commitments, known: Known<'_>) {
        let mut open: Vec<usize> = Vec::new();
        for (at, one) in all.all().iter().enumerate() {
            if let Some(fallen) = fallen(all, one, known) {
                open.extend(fallen.0.fells().then_some(at));
                self.all[at] = Some(fallen);
            }
        }
        let mut by_others = Vec::new();
        while let Some(at) = open.pop() {
            for (edge, other) in dependents(all, &all.all()[at].id) {
                let Some(other) = self.core.number(&other) else { continue };
                if all.has_effect(&edge, &all.all()[other])
                    && all.all()[other].kind.is_claim()
                    && self.all[other].is_none()
                {
                    self.all[other] = Some((CommitmentStatus::Stale, StatusCause::default()));
                    open.push(other);
                    by_others.push(other);
                }
            }
        }
        for at in by_others {
            let one = &all.all()[at];
            let depends = dependencies(all, &one.id).filter(|(edge, _)| all.has_effect(edge, one));
            let fallen = depends.filter(|(_, id)| self.get(id).is_some_and(|(status, _)| status.fells()));
            let because = fallen.map(|(_, id)| id).collect();
            self.all[at] = Some((CommitmentStatus::Stale, StatusCause { because, since: None }));
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
        let mut because: Vec<Arc<str>> = Vec::new();
        if one.has_conflicts {
            let conflicts =
                |edge: &CommitmentEdge| edge.kind == EdgeKind::ConflictsWith && all.has_effect(edge, one);
            let others = all.edges_from(&one.id).filter(conflicts).map(|edge| edge.to);
            let others = others.chain(all.edges_to(&one.id).filter(conflicts).map(|edge| edge.from));
            let wins = |other: &Arc<str>| all.get(other).is_some_and(|other| self.wins(all, other, one));
            because = others.filter(wins).collect();
            because.sort();
            because.dedup();
        }
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

    /// Whether a commitment binds and wins over another: hard before soft, then rank, then priority. The word of an owner wins over
    /// what an agent derived from it.
    fn wins(&self, all: &Commitments, winner: &Commitment, loser: &Commitment) -> bool {
        let fallen = self.get(&winner.id).is_some_and(|(status, _)| {
            status.is_over() || matches!(status, CommitmentStatus::Stale | CommitmentStatus::Blocked)
        });
        // Two that bind are both asked, whatever their priority (design, section 14.2).
        let is_tie = all.is_since(2) && all.binds(loser);
        all.binds(winner) && !fallen && !is_tie && strength(all, winner) > strength(all, loser)
    }
}

impl std::fmt::Debug for Statuses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Statuses({})", self.to_value())
    }
}

/// The order in which one of two in conflict wins.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Strength {
    binds: bool,
    /// The word of the user, the institution or a contract, and not what an agent derives from it.
    is_own_word: bool,
    rank: u8,
    priority: Priority,
}

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
    let is_own_word = one.is_imported || matches!(one.author, Author::User | Author::Institution);
    let (binds, rank) = (all.binds(one), all.owner(one).first_rank());
    Strength { binds, is_own_word, rank, priority: Priority(one.priority) }
}

/// The edges by which others fall with a commitment, each with the other end.
fn dependents<'a>(
    all: &'a Commitments,
    id: &'a str,
) -> impl Iterator<Item = (CommitmentEdge, Arc<str>)> + 'a {
    let depend = all.edges_to(id).filter(|edge| edge.kind == EdgeKind::DependsOn);
    let depend = depend.map(|edge| (edge.clone(), edge.from));
    // Version 1 of the rules does not follow the support of one commitment by another.
    let supported = all.is_since(2).then(|| all.edges_from(id)).into_iter().flatten();
    let supported = supported.filter(|edge| edge.kind == EdgeKind::Supports);
    depend.chain(supported.map(|edge| (edge.clone(), edge.to)))
}

/// The edges by which a commitment falls with others, each with the other end.
fn dependencies<'a>(
    all: &'a Commitments,
    id: &'a str,
) -> impl Iterator<Item = (CommitmentEdge, Arc<str>)> + 'a {
    let depends = all.edges_from(id).filter(|edge| edge.kind == EdgeKind::DependsOn);
    let depends = depends.map(|edge| (edge.clone(), edge.to));
    let support = all.is_since(2).then(|| all.edges_to(id)).into_iter().flatten();
    let support = support.filter(|edge| edge.kind == EdgeKind::Supports);
    depends.chain(support.map(|edge| (edge.clone(), edge.from)))
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
    if all.is_past(one) {
        return Some((CommitmentStatus::Discharged, StatusCause::default()));
    }
    if one.discharge.as_ref().is_some_and(|discharge| truth(discharge, known, None) == Some(Truth::True)) {
        return Some((CommitmentStatus::Discharged, StatusCause::default()));
    }
    let (name, tick) = one.kind.is_claim().then(|| all.changed_since(one)).flatten()?;
    let cause = StatusCause { because: vec![Arc::clone(name)], since: Some(tick) };
    Some((CommitmentStatus::Stale, cause))
}

/// The value of an expression of a commitment. `None` where it reads `action` and no action is asked about.
fn truth(expr: &Expr, known: Known<'_>, action: Option<&Value>) -> Option<Truth> {
    if action.is_none() && expr.roots().any(|root| ["action", "t", SPENT].contains(&root)) {
        return None;
    }
    Some(evaluate(expr, known, action))
}

/// Returns `t`: the calls of the line of a call, or the call alone where it is asked about by itself.
fn line_of(action: &Value) -> Value {
    let calls = action.get(CALLS).cloned().unwrap_or_else(|| Value::array([action.clone()]));
    Value::record([(CALLS, calls)])
}

/// The member of a call with all calls of its line, which expressions read as `t.calls`.
pub(super) const CALLS: &str = "calls";

/// Evaluates an expression of a commitment.
pub(super) fn evaluate(expr: &Expr, known: Known<'_>, action: Option<&Value>) -> Truth {
    static NOTHING: LazyLock<Value> = LazyLock::new(Value::object);
    over(expr, known, action.unwrap_or(&NOTHING), |env| expr.holds(env, &mut Budget::default()))
}

/// The value of an expression of a commitment; `None` if it has none.
pub(super) fn value_of(expr: &Expr, known: Known<'_>, action: &Value) -> Option<Value> {
    over(expr, known, action, |env| expr.evaluate(env, &mut Budget::default()).ok())
}

/// Hands over what an expression of a commitment reads.
fn over<T>(expr: &Expr, (state, counters): Known<'_>, action: &Value, f: impl FnOnce(&Env<'_>) -> T) -> T {
    // Each of a thousand commitments is asked of one call: what an expression does not read is not looked up.
    let (mut reads_line, mut reads_sums) = (false, false);
    for root in expr.roots() {
        reads_line |= root == "t";
        reads_sums |= root == SPENT;
    }
    let line = if reads_line { line_of(action) } else { Value::Null };
    let sums =
        if reads_sums { action.get(SPENT).cloned().unwrap_or_else(Value::object) } else { Value::Null };
    let others = [("action", action), ("t", &line), (SPENT, &sums)];
    let counters = expr.reads_counters().then(counters);
    f(&Env { state, counters: counters.as_ref(), others: &others })
}
