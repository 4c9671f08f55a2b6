//! `dendrer backup`

use std::path::Path;

use clap::Args;
use clap::ValueHint;
use dendrer::care::backup::backup;

use crate::context;
use crate::context::care::Follower;
use crate::context::keys;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// `backup`
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// A directory that is new or empty, or an earlier backup of the same store
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: String,
}

pub(crate) fn run(global: &Global, args: &Backup, out: &mut Out) -> Result {
    let path = context::find(global)?;
    context::server::refuse(&path)?;
    let mut follower = Follower::new(global, "backup", out);
    let made = backup(&path, Path::new(&args.dir), &*keys::trust(global), &mut follower);
    let made = follower.end(made)?;
    out.answer(&made)
}
