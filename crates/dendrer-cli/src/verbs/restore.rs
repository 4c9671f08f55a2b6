//! `dendrer restore`: a store from a backup, checked as a whole before anything is put in its place.

use std::path::Path;

use clap::{Args, ValueHint};
use dendrer::care::restore::{RestoreTerms, restore};

use crate::context::care::Follower;
use crate::context::keys;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// `restore`
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) backup: String,
    /// Where; here if not given
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<String>,
    /// Put it in the place of the store that is there, which is moved aside
    #[arg(long)]
    pub(crate) replace: bool,
    /// Do so although the store that is there has records that the backup does not have
    #[arg(long, requires = "replace")]
    pub(crate) discard_newer: bool,
}

pub(crate) fn run(global: &Global, args: &Restore, out: &mut Out) -> Result {
    let (backup, dir) = (Path::new(&args.backup), Path::new(args.dir.as_deref().unwrap_or(".")));
    let terms = RestoreTerms { replace: args.replace, discard_newer: args.discard_newer };
    let mut follower = Follower::new(global, "restore", out);
    let restored = restore(backup, dir, terms, &*keys::trust(global), &mut follower);
    let restored = follower.end(restored)?;
    out.answer(&restored)
}
