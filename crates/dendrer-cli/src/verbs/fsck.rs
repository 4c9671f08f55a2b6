//! `dendrer fsck`: every file of a store against its log. `verify` answers for runs and proofs, this for files: which are damaged,
//! what that costs, which follow from the log and which do not belong.

use clap::Args;
use dendrer::care::check::check_files;

use crate::context;
use crate::context::care::Follower;
use crate::context::keys;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// `fsck`
#[derive(Debug, Args)]
pub(crate) struct Fsck {}

pub(crate) fn run(global: &Global, out: &mut Out) -> Result {
    let path = context::find(global)?;
    let store = context::embedded(global, &path, global.reads())?;
    let mut follower = Follower::new(global, "fsck", out);
    let report = check_files(store, &*keys::trust(global), &mut follower);
    let report = follower.end(report)?;
    out.answer(&report)
}
