//! `dendrer erase`: destroys a value of a committed record, with its copies and the digests over it.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::care::erase::question::EraseQuestion;

use crate::context::desk;
use crate::failure::Result;
use crate::global::Global;
use crate::offers;
use crate::out::Out;

/// `erase`
#[derive(Debug, Args)]
pub(crate) struct Erase {
    /// The tick or the refusal: RUN@TICK, RUN@refused:N
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
        rev: args.rev.clone(),
        path: args.path.clone(),
        reason: args.reason.clone(),
        also: args.also.clone(),
        although: args.although.clone(),
        everywhere: args.everywhere,
        dry_run: args.dry_run,
        by: Some(args.by.clone()),
    };
    desk::answer(global, &question, out)
}
