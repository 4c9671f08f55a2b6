//! The question of `commitments` as data.

use std::sync::Arc;

use dendrer_kernel::commitment::{Commitment, CommitmentKind, CommitmentStatus, EdgeKind};
use dendrer_object::{Code, RunName, Value, question};

use crate::address::Position;
use crate::ask::commitments::{Admission, CommitmentsAt, admissible, commitments};
use crate::problem::Problem;
use crate::source::{Asked, Desk, exclude};

question! {
    /// Asks for the commitments of a run, or of calls whether they are admissible
    pub struct CommitmentsQuestion: "commitments-question" {
        /// The run, or a moment of it, as an address
        pub run: String,
        /// The tick, if the address names none
        pub at: Option<Position>,
        /// The only type that is listed
        pub kind: Option<CommitmentKind>,
        /// The only status that is listed
        pub status: Option<CommitmentStatus>,
        /// The only scope that is listed
        pub scope: Option<String>,
        /// Whether only commitments with a conflict are listed
        pub conflicts: bool,
        /// Whether only stale commitments are listed
        pub stale: bool,
        /// The calls that are judged, each with tool and params
        pub admissible: Option<Vec<Value>>,
    }
}

/// The answer about the commitments of a run.
#[derive(Debug)]
pub enum CommitmentsReply {
    /// The commitments that fit the conditions.
    Listed(Box<ListedCommitments>),
    /// The calls, and whether each is admissible.
    Judged(JudgedCalls),
}

/// The commitments of a run at a tick, and those that fit the conditions.
#[derive(Debug)]
pub struct ListedCommitments {
    /// The commitments.
    pub found: CommitmentsAt,
    /// The commitments that fit.
    pub listed: Vec<Arc<Commitment>>,
}

/// Calls that were judged at a tick of a run.
#[derive(Debug)]
pub struct JudgedCalls {
    /// The run.
    pub run: RunName,
    /// The tick.
    pub at: u64,
    /// The calls.
    pub items: Vec<Admission>,
}

impl Asked for CommitmentsQuestion {
    type Reply = CommitmentsReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<CommitmentsReply, Problem> {
        if self.admissible.is_some() {
            let others = [
                ("--kind", self.kind.is_some()),
                ("--status", self.status.is_some()),
                ("--scope", self.scope.is_some()),
                ("--conflicts", self.conflicts),
                ("--stale", self.stale),
            ];
            exclude(("--admissible", true), &others)?;
        }
        let (trace, at) = desk.up_to(&self.run, self.at.as_ref())?;
        if let Some(calls) = &self.admissible {
            for (number, call) in (1..).zip(calls) {
                check_call(call).map_err(|fault| {
                    Problem::new(Code::E0201, format!("admissible, call {number}: {fault}"))
                })?;
            }
            let items = admissible((&trace, at), calls)?;
            return Ok(CommitmentsReply::Judged(JudgedCalls { run: trace.name().clone(), at, items }));
        }
        let found = commitments((&trace, at))?;
        let listed = found.all.all().iter().filter(|one| self.takes(&found, one)).cloned().collect();
        Ok(CommitmentsReply::Listed(Box::new(ListedCommitments { found, listed })))
    }
}

impl CommitmentsQuestion {
    /// Whether a commitment fits the conditions.
    fn takes(&self, found: &CommitmentsAt, one: &Commitment) -> bool {
        let status = found.status(one);
        let has_conflict = || {
            let mut edges = found.all.edges_from(&one.id).chain(found.all.edges_to(&one.id));
            edges.any(|edge| edge.kind == EdgeKind::ConflictsWith && !found.all.is_claimed(&edge))
        };
        self.kind.is_none_or(|kind| kind == one.kind)
            && self.status.is_none_or(|wanted| wanted == status)
            && self.scope.as_deref().is_none_or(|scope| *scope == *one.scope)
            && (!self.conflicts || has_conflict())
            && (!self.stale || status == CommitmentStatus::Stale)
    }
}

/// Checks a call that is to be judged.
///
/// # Errors
///
/// The fault as a clause.
pub fn check_call(call: &Value) -> Result<(), String> {
    let members = call.as_object().ok_or_else(|| "a call is an object".to_owned())?;
    let known = ["tool", "params", "relies_on"];
    if let Some((name, _)) = members.iter().find(|(name, _)| !known.contains(&&***name)) {
        return Err(format!("a call has tool, params and relies_on, and not {name}"));
    }
    match call.get("tool").and_then(Value::as_str) {
        Some(_) => Ok(()),
        None => Err("a call names its tool".to_owned()),
    }
}
