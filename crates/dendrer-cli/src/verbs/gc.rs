//! `dendrer gc`: removes what follows from the log and is not needed. Never the log, so every state stays readable.

use std::sync::Arc;

use clap::Args;
use clap::ValueEnum;
use dendrer::care::spare::{Rule, clean};
use dendrer::store::embedded::Options;
use dendrer::trust::Trust;

use crate::context;
use crate::context::care::Follower;
use crate::context::keys;
use crate::failure::Result;
use crate::global::{Global, age_arg, now_ms};
use crate::out::Out;

/// `gc`
#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Say what would go, and remove nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Keep what is derived only of runs that were written to within this time, like 30d, 12h or 2w
    #[arg(long, value_name = "TIME", value_parser = age_arg)]
    pub(crate) keep: Option<u64>,
    /// Keep fewer snapshots of states: it takes up to eight times as long to read one
    #[arg(long, value_enum)]
    pub(crate) snapshots: Option<SnapshotsChoice>,
}

/// How many snapshots are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SnapshotsChoice {
    /// Where the records since the last one outweigh the state four times.
    All,
    /// Where they outweigh it 32 times.
    Thin,
}

pub(crate) fn run(global: &Global, args: &Gc, out: &mut Out) -> Result {
    let path = context::find(global)?;
    let options = if args.dry_run { Options::read() } else { Options::write() };
    let store = context::embedded(global, &path, options)?;
    let now = u64::try_from(now_ms()).unwrap_or(0);
    let rule = Rule {
        thin: args.snapshots == Some(SnapshotsChoice::Thin),
        since_ms: args.keep.map_or(0, |age| now.saturating_sub(age)),
    };
    let mut follower = Follower::new(global, "gc", out);
    let trust: Arc<dyn Trust> = keys::trust(global);
    let cleaned = clean(store, rule, args.dry_run, &trust, &mut follower);
    let cleaned = follower.end(cleaned)?;
    out.answer(&cleaned)
}
