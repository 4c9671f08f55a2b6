//! Statuses: which of eight applies to each commitment at a tick.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::Value;

use super::{ClosedAs, Commitment, Commitments, EdgeKind, form};
use crate::expr::{Budget, Env, Expr, Truth};

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

impl Statuses {
    /// Reads them over the state of the tick. `action` is the call that is asked about, if there is one.
    pub fn of(all: &Commitments, state: &Value, action: Option<&Value>) -> Statuses {
        let mut made = Statuses(BTreeMap::new());
        // What is over or stale first: others depend on it. A chain of dependencies is as long as there are commitments at most.
        for _ in 0..=all.all.len() {
            let mut is_same = true;
            for one in &all.all {
                let fallen = made.fallen(all, one, state);
                if fallen.is_some() && made.0.get(&one.id) != fallen.as_ref() {
                    is_same = false;
                    made.0.insert(
                        Arc::clone(&one.id),
                        fallen.unwrap_or((CommitmentStatus::Stale, StatusCause::default())),
                    );
                }
            }
            if is_same {
                break;
            }
        }
        // The strongest first: one that is blocked blocks nothing.
        let mut standing: Vec<&Commitment> = all.all.iter().collect();
        let strength = |one: &Commitment| (all.binds(one), all.owner(one).rank());
        standing.sort_by(|a, b| strength(b).cmp(&strength(a)).then(b.priority.total_cmp(&a.priority)));
        for one in standing {
            if !made.0.contains_key(&one.id) {
                let standing = made.standing(all, one, state, action);
                made.0.insert(Arc::clone(&one.id), standing);
            }
        }
        made
    }

    /// The status of a commitment.
    pub fn get(&self, id: &str) -> Option<&(CommitmentStatus, StatusCause)> {
        self.0.get(id)
    }

    /// Whether a commitment is over or stale, and why.
    fn fallen(
        &self,
        all: &Commitments,
        one: &Commitment,
        state: &Value,
    ) -> Option<(CommitmentStatus, StatusCause)> {
        if let Some(closed) = all.closed.get(&one.id) {
            let status = match closed.how {
                ClosedAs::Retracted => CommitmentStatus::Retracted,
                ClosedAs::Superseded => CommitmentStatus::Superseded,
                ClosedAs::Discharged => CommitmentStatus::Discharged,
            };
            return Some((status, StatusCause { because: Vec::new(), since: Some(closed.tick) }));
        }
        let is_done =
            one.discharge.as_deref().is_some_and(|text| truth(text, state, None) == Some(Truth::True));
        if is_done {
            return Some((CommitmentStatus::Discharged, StatusCause::default()));
        }
        if !one.kind.is_claim() {
            return None;
        }
        if let Some((name, tick)) = all.changed_since(one) {
            let cause = StatusCause { because: vec![Arc::clone(name)], since: Some(tick) };
            return Some((CommitmentStatus::Stale, cause));
        }
        let depends = all.edges.iter().filter(|edge| edge.kind == EdgeKind::DependsOn && edge.from == one.id);
        let fallen = depends.filter(|edge| {
            matches!(
                self.0.get(&edge.to),
                Some((
                    CommitmentStatus::Stale | CommitmentStatus::Retracted | CommitmentStatus::Superseded,
                    _
                ))
            )
        });
        let because: Vec<Arc<str>> = fallen.map(|edge| Arc::clone(&edge.to)).collect();
        (!because.is_empty()).then_some((CommitmentStatus::Stale, StatusCause { because, since: None }))
    }

    /// The status of a commitment that is neither over nor stale.
    fn standing(
        &self,
        all: &Commitments,
        one: &Commitment,
        state: &Value,
        action: Option<&Value>,
    ) -> (CommitmentStatus, StatusCause) {
        let because: Vec<Arc<str>> = all
            .edges
            .iter()
            .filter(|edge| edge.kind == EdgeKind::ConflictsWith)
            .filter_map(|edge| match () {
                _ if edge.from == one.id => Some(&edge.to),
                _ if edge.to == one.id => Some(&edge.from),
                _ => None,
            })
            .filter(|other| all.get(other).is_some_and(|other| self.wins(all, other, one)))
            .cloned()
            .collect();
        if !because.is_empty() {
            return (CommitmentStatus::Blocked, StatusCause { because, since: None });
        }
        let is_dormant =
            one.guard.as_deref().is_some_and(|text| truth(text, state, action) != Some(Truth::True));
        let is_open = one.kind.is_claim() && all.grounded_by(&one.id).is_none();
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
        if !all.binds(winner) || fallen {
            return false;
        }
        let order = |one: &Commitment| (all.binds(one), all.owner(one).rank());
        match order(winner).cmp(&order(loser)) {
            std::cmp::Ordering::Equal => winner.priority > loser.priority,
            order => order == std::cmp::Ordering::Greater,
        }
    }
}

/// What an expression of a commitment says; `None` for another text. One that reads `action` is not true where no action is asked about.
pub(super) fn truth(text: &str, state: &Value, action: Option<&Value>) -> Option<Truth> {
    let expr = Expr::parse_condition(text, &form::scope()).ok()?;
    if action.is_none() && expr.roots().any(|root| root == "action") {
        return None;
    }
    let nothing = Value::object();
    let others = [("action", action.unwrap_or(&nothing))];
    Some(expr.holds(&Env { state, counters: None, others: &others }, &mut Budget::default()))
}
