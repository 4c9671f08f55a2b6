//! The questions of `commitments delegate` and `commitments accept` as data.

use dendrer_kernel::commitment::{CommitmentFault, DelegationScope};
use dendrer_object::{Code, Value, question};

use super::{Accepted, Delegated, decide};
use crate::address::Address;
use crate::change::reduce::question::read_stage;
use crate::problem::Problem;
use crate::repo::new_run::{read_name, refuse_made};
use crate::source::{Asked, Desk};

question! {
    /// Asks for a child run under a contract, with the commitments that are relevant to its scope
    pub struct DelegateQuestion: "commitments-delegate-question" {
        /// The parent, as an address
        pub run: String,
        /// The scope: id, gloss, goal, allowed, tools, forbidden, touches, budget, deliverables, failure, until, scope
        pub scope: Option<Value>,
        /// The id of the delegation, in place of the one of the scope
        pub id: Option<String>,
        /// The name of the child
        pub r#as: String,
        /// The stage of the child, 0 to 3; that of the parent if not given
        pub stage: Option<u64>,
        /// Whether nothing is written
        pub dry_run: bool,
    }

    /// Asks for the result of a child run to be taken into its parent
    pub struct AcceptQuestion: "commitments-accept-question" {
        /// The child, as an address
        pub child: String,
        /// Whether nothing is written
        pub dry_run: bool,
    }
}

/// A delegation.
#[derive(Debug)]
pub struct DelegateReply {
    /// The delegation.
    pub made: Delegated,
    /// Whether nothing was recorded.
    pub dry_run: bool,
}

/// The decision on a child.
#[derive(Debug)]
pub struct AcceptReply {
    /// The decision.
    pub accepted: Accepted,
    /// Whether nothing was recorded.
    pub dry_run: bool,
}

impl Asked for DelegateQuestion {
    type Reply = DelegateReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<DelegateReply, Problem> {
        let (child, stage) = (read_name(&self.r#as)?, read_stage(self.stage)?);
        refuse_made(&child)?;
        let mut scope = self.scope.clone().unwrap_or(Value::Null);
        if let (Some(id), Value::Object(members)) = (&self.id, &mut scope) {
            members.set("id", Value::from(id.as_str()));
        }
        let scope = DelegationScope::read(&scope);
        let scope = scope.map_err(|CommitmentFault { code, path, message }| {
            let what = format!("{}{path}: {message}", desk.name_of("scope"));
            Problem::new(code, what).note("nothing was changed")
        })?;
        let address = in_store(&self.run)?;
        let source = desk.open(&address)?;
        let trace = source.trace(&address)?;
        let repo = desk.target(&source, self.dry_run)?;
        let made = repo.delegate(&trace, &scope, &child, stage, self.dry_run)?;
        desk.close(repo)?;
        Ok(DelegateReply { made, dry_run: self.dry_run })
    }
}

impl Asked for AcceptQuestion {
    type Reply = AcceptReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<AcceptReply, Problem> {
        let address = Address::parse(&self.child)?;
        if address.bundle.is_some() && self.dry_run {
            let source = desk.open(&address)?;
            let (accepted, ..) = decide(&source.store, source.trace(&address)?.name())?;
            return Ok(AcceptReply { accepted, dry_run: true });
        }
        let address = in_store(&self.child)?;
        let source = desk.open(&address)?;
        let trace = source.trace(&address)?;
        let repo = desk.target(&source, self.dry_run)?;
        let accepted = repo.accept(trace.name(), self.dry_run)?;
        desk.close(repo)?;
        Ok(AcceptReply { accepted, dry_run: self.dry_run })
    }
}

/// Reads the address of a run of the store, at its last tick.
fn in_store(run: &str) -> Result<Address, Problem> {
    let address = Address::parse(run)?;
    if address.bundle.is_some() || address.pos.is_some() {
        let what = "this is done to a run of the store, at its last tick";
        return Err(Problem::new(Code::E0106, what).note("nothing was changed"));
    }
    Ok(address)
}
