//! `dendrer erase`: destroys a value of a committed record, with its copies and the digests over it.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::Address;
use dendrer::care::erase::{EraseQuestion, plan};

use crate::context;
use crate::context::care::Follower;
use crate::failure::Result;
use crate::global::Global;
use crate::offers;
use crate::out::Out;

/// `erase`
#[derive(Debug, Args)]
pub(crate) struct Erase {
    /// The tick: RUN@TICK
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) rev: String,
    /// The place: of the record, like result.output or /action/params/token, or of the state that the tick wrote, like state.token
    pub(crate) path: String,
    /// Why; stays on record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// Erase this place as well: PLACE, TICK:PLACE or RUN@TICK:PLACE
    #[arg(long, value_name = "PLACE")]
    pub(crate) also: Vec<String>,
    /// Let this place stay, although it may follow from the value
    #[arg(long, value_name = "PLACE")]
    pub(crate) although: Vec<String>,
    /// Erase copies before the tick and in other runs as well
    #[arg(long)]
    pub(crate) everywhere: bool,
    /// Say what would go, and change nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Name of the person who erases; not checked
    #[arg(long, value_name = "NAME", default_value = "person")]
    pub(crate) by: String,
}

pub(crate) fn run(global: &Global, args: &Erase, out: &mut Out) -> Result {
    let question = EraseQuestion {
        at: Address::parse(&args.rev)?,
        path: args.path.clone(),
        reason: args.reason.clone(),
        by: args.by.clone(),
        also: args.also.clone(),
        although: args.although.clone(),
        everywhere: args.everywhere,
    };
    let repo = match args.dry_run {
        true => {
            let (repo, path) = context::read_repo(global)?;
            context::warn(repo.warnings(), &path, out);
            repo
        }
        false => context::write_store(global)?,
    };
    // A key that cannot be used is reported before anything is erased.
    repo.signing_key()?;
    let mut follower = Follower::new(global, "erase", out);
    let planned = plan(&repo, &question, &mut follower);
    let planned = follower.end(planned)?;
    if args.dry_run {
        return out.answer(&planned.dry());
    }
    let erased = planned.carry_out(&repo)?;
    context::close(repo)?;
    out.answer(&erased)
}
