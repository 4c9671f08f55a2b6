//! Commitments: what an agent is bound to, why, and until when ("CCAS", called the CCAS paper here). A projection of the transitions of
//! a run, outside the state root, as counters are.
//!
//! Mode and attestation of evidence follow from author and type of the transition, never from what it says. A claim is grounded only by
//! an `attests` edge that the user, the runtime or the institution wrote from an atom that is not self-authored; a hard commitment binds
//! only with the user or the institution behind it.
//!
//! Rule: no sequence of self-authored events grounds a claim or makes a hard commitment bind; test
//! `nothing_self_authored_grounds_or_binds`.

mod admit;
mod authorize;
mod budget;
mod contract;
mod fault;
mod files;
mod form;
mod merge;
mod names;
mod outside;
mod owner;
mod parents;
mod projection;
mod ranked;
mod spent;
mod status;

use std::sync::Arc;

use dendrer_object::Value;
use dendrer_object::record::Author;

use crate::expr::Expr;

pub use crate::calls::calls;
pub(crate) use admit::{Admission, Admitted};
pub use admit::{COMMITMENT_VIOLATED, CommitmentRefused};
pub use authorize::{Authorized, UNKNOWN_ID, Violated};
pub use budget::{ContractBudget, Used};
pub(crate) use contract::is_file_place;
pub use contract::{DelegationContract, DelegationScope, HandedOver};
pub use fault::CommitmentFault;
pub(crate) use form::{EXPRESSIONS, scope as scope_of_pack};
pub use form::{LineAtom, LineClosing, LineCommitment, LineEdge};
pub use form::{check, has_length};
pub use merge::{SpentTogether, merged, without_pack};
pub use outside::ScopeFault;
pub use owner::CommitmentOwner;
pub use parents::{PARENTS, ParentParts, ParentSaid};
pub use projection::{ACCEPTED, CONTRACT, Commitments, INITIAL, TRUST, WithoutEffect, initial};
pub use ranked::ADOPTS;
pub use spent::{SPENT, SpentBelow};
pub use status::{CommitmentStatus, StatusCause, Statuses};

dendrer_object::words! {
    /// Who says an atom, as the kernel derives it (CCAS paper, evidence modes).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum EvidenceMode {
        /// A person, in their own words.
        UserAuthored = "user-authored",
        /// A tool, as the runtime says.
        ToolAttested = "tool-attested",
        /// A source outside of the agent, without an attestation.
        ExternallyObserved = "externally-observed",
        /// The agent itself.
        SelfAuthored = "self-authored",
    }
}

impl EvidenceMode {
    /// The mode of what a transition says.
    pub fn of(author: Author, type_name: &str) -> EvidenceMode {
        match (author, type_name) {
            (Author::User, _) => EvidenceMode::UserAuthored,
            (Author::Runtime, "action.result") => EvidenceMode::ToolAttested,
            (Author::Agent, "action.result") => EvidenceMode::ExternallyObserved,
            (Author::Agent, _) => EvidenceMode::SelfAuthored,
            (Author::Runtime | Author::Institution | Author::Kernel, _) => EvidenceMode::ExternallyObserved,
        }
    }
}

/// A piece of evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Atom {
    /// Its id in the run.
    pub id: Arc<str>,
    /// Its statement.
    pub content: Value,
    /// Its origin, in a few words.
    pub source: Option<Arc<str>>,
    /// Watched names that it changes.
    pub touches: Vec<Arc<str>>,
    /// Who says it.
    pub mode: EvidenceMode,
    /// The author of the transition, with the name of the agent or the user.
    pub writer: CommitmentOwner,
    /// Who attests it: `runtime`, `institution` or `kernel`; `None` for words of an agent, and of a person without a key.
    pub attestation: Option<&'static str>,
    /// The tick; 0 for one with which the run began.
    pub tick: u64,
    /// The tool of the action that brought it.
    pub tool: Option<Arc<str>>,
}

dendrer_object::words! {
    /// The kind of a commitment (CCAS paper, seven types).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CommitmentKind {
        /// Something was observed.
        Observation = "obs",
        /// Something is supposed.
        Hypothesis = "hyp",
        /// Something is to be reached.
        Goal = "goal",
        /// Something must be kept.
        Obligation = "obl",
        /// Something is preferred.
        Preference = "pref",
        /// Something is going to be done.
        Plan = "plan",
        /// Something is done by a child run.
        Delegation = "deleg",
    }
}

impl CommitmentKind {
    /// Whether it is a claim, which can be stale and must be grounded.
    pub fn is_claim(self) -> bool {
        matches!(self, CommitmentKind::Observation | CommitmentKind::Hypothesis | CommitmentKind::Plan)
    }
}

/// A commitment: as it was written, and what has become of it.
#[derive(Debug, Clone)]
pub struct Commitment {
    /// Its id in the run.
    pub id: Arc<str>,
    /// Its kind.
    pub kind: CommitmentKind,
    /// Whether an action that violates it is not admissible.
    pub is_hard: bool,
    /// Its text for people.
    pub gloss: Arc<str>,
    /// When it applies.
    pub guard: Option<Expr>,
    /// When it is done.
    pub discharge: Option<Expr>,
    /// The condition that an action must meet.
    pub holds: Option<Expr>,
    /// The condition that an action must not meet.
    pub condition: Option<Expr>,
    /// Names and places whose change makes it stale.
    pub watch: Vec<Arc<str>>,
    /// A higher one wins.
    pub priority: f64,
    /// The scope in which it applies.
    pub scope: Arc<str>,
    /// The commitment that it takes the place of.
    pub supersedes: Option<Arc<str>>,
    /// The moment from which on it is discharged, in milliseconds since 1970.
    pub until: Option<u64>,
    /// The first of its expressions that cannot be read here: it reads a name that another pack declares.
    pub unread: Option<&'static str>,
    /// Who wrote it.
    pub author: Author,
    /// The agent or the user who wrote it; `None` for one without a name, and in a run by version 1 of the rules.
    pub by: Option<Arc<str>>,
    /// The user or the institution that made it theirs.
    pub adopted: Option<AdoptedCommitment>,
    /// Whether the contract of a delegation imported it.
    pub is_imported: bool,
    /// Whether a parent added it after the run was delegated: it is judged over the places of both.
    pub is_of_parent: bool,
    /// The tick; 0 for one with which the run began.
    pub tick: u64,
    /// As it was written.
    pub written: Value,
    /// How it was closed, if it was.
    pub closed: Option<ClosedCommitment>,
    /// The tick of the newest edge that supports or attests it, or its own.
    pub supported_at: u64,
    /// The atom that grounds it: attested by user, runtime or institution, and not self-authored.
    pub grounded_by: Option<Arc<str>>,
    /// Whether a user-authored atom is in its support.
    is_backed: bool,
    /// Whether an edge says that it conflicts with another.
    has_conflicts: bool,
    /// The expressions that `spent` sums.
    sums: Vec<Expr>,
    /// The type of the transition that brought it.
    type_name: Arc<str>,
    /// The watched name that had changed when the run began.
    stale_by: Option<Arc<str>>,
}

/// Reads a condition of a commitment.
pub(crate) fn condition(text: &str, scope: &crate::expr::Scope) -> Result<Expr, crate::expr::ExprError> {
    spent::read(text, scope, 0).map(|read| read.expr)
}

impl Commitment {
    /// Who wrote it, with the name.
    pub fn writer(&self) -> CommitmentOwner {
        CommitmentOwner::of(self.author, self.by.clone())
    }

    /// The id as it was written, without the author that an address adds.
    pub fn written_id(&self) -> &str {
        self.written.get("id").and_then(Value::as_str).unwrap_or(&self.id)
    }

    /// Its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        [&self.guard, &self.discharge, &self.holds, &self.condition].into_iter().flatten()
    }

    /// The actions that a `deleg` allows the child (`allowed`), as they were written.
    pub fn allowed(&self) -> Option<&Value> {
        self.written.get("allowed")
    }
}

dendrer_object::words! {
    /// The relation of one commitment or atom to another (CCAS paper, six edge kinds).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum EdgeKind {
        /// It is a reason for it.
        Supports = "supports",
        /// It falls with it.
        DependsOn = "depends-on",
        /// Both cannot be kept.
        ConflictsWith = "conflicts-with",
        /// It says it more exactly.
        Refines = "refines",
        /// It ends it.
        Discharges = "discharges",
        /// It grounds it.
        Attests = "attests",
    }
}

/// An edge as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitmentEdge {
    /// Its kind.
    pub kind: EdgeKind,
    /// The id of an atom or a commitment.
    pub from: Arc<str>,
    /// The id of an atom or a commitment.
    pub to: Arc<str>,
    /// Who wrote it.
    pub author: Author,
    /// The agent or the user who wrote it, where that is known.
    pub by: Option<Arc<str>>,
    /// The tick.
    pub tick: u64,
}

impl CommitmentEdge {
    /// Who wrote it, with the name.
    pub fn writer(&self) -> CommitmentOwner {
        CommitmentOwner::of(self.author, self.by.clone())
    }
}

dendrer_object::words! {
    /// How a commitment was closed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ClosedAs {
        /// It is done.
        Discharged = "discharged",
        /// It is taken back.
        Retracted = "retracted",
        /// Another took its place.
        Superseded = "superseded",
    }
}

/// A commitment that a line of a user or the institution adopted (`adopts`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedCommitment {
    /// Who did.
    pub owner: CommitmentOwner,
    /// The tick.
    pub tick: u64,
}

/// A commitment that was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedCommitment {
    /// How.
    pub how: ClosedAs,
    /// The tick.
    pub tick: u64,
    /// Why, in words.
    pub reason: Option<Arc<str>>,
}
