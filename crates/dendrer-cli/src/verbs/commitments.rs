//! `dendrer commitments`: what the agent of a run is bound to.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use dendrer::ask::commitments::commitments;
use dendrer_object::Code;
use dendrer_view::commitments::{CommitmentFilter, CommitmentWhyAnswer, CommitmentsAnswer};

use crate::context;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::offers;
use crate::out::Out;

/// `commitments`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CommitmentsVerb {
    #[command(subcommand)]
    pub(crate) act: Option<CommitmentsAct>,
    /// The run, or RUN@TICK for a moment of it
    #[arg(required = true, add = ArgValueCompleter::new(offers::runs))]
    pub(crate) run: Option<String>,
    /// Of this type: obs, hyp, goal, obl, pref, plan or deleg
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// With this status: retracted, superseded, discharged, stale, blocked, dormant, tentative or active
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// In this scope
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<String>,
    /// Only those with a conflict
    #[arg(long)]
    pub(crate) conflicts: bool,
    /// Only those that are stale
    #[arg(long)]
    pub(crate) stale: bool,
}

/// What is done besides listing.
#[derive(Debug, Subcommand)]
pub(crate) enum CommitmentsAct {
    /// Show what supports a commitment, and what decided its status
    Why {
        /// The run, or RUN@TICK for a moment of it
        #[arg(add = ArgValueCompleter::new(offers::runs))]
        run: String,
        /// The id of the commitment
        id: String,
    },
}

pub(crate) fn run(global: &Global, verb: &CommitmentsVerb, out: &mut Out) -> Result {
    let (run, why) = match (&verb.act, &verb.run) {
        (Some(CommitmentsAct::Why { run, id }), _) => (run, Some(id)),
        (None, Some(run)) => (run, None),
        (None, None) => return Err(Failure::new(Code::E0106, "name a run")),
    };
    let traces = context::traces(global, std::slice::from_ref(run), out)?;
    let (trace, upto) = &traces[0];
    let found = commitments((trace, *upto))?;
    if let Some(id) = why {
        if found.all.get(id).is_none() {
            return Err(Failure::new(Code::E0101, format!("{run} has no commitment {id}")).help(&[
                "dendrer",
                "commitments",
                run,
            ]));
        }
        return out.answer(&CommitmentWhyAnswer { found, id: id.clone() });
    }
    let filter = CommitmentFilter {
        kind: verb.kind.clone(),
        status: verb.status.clone(),
        scope: verb.scope.clone(),
        conflicts: verb.conflicts,
        stale: verb.stale,
    };
    out.answer(&CommitmentsAnswer { found, filter })
}
