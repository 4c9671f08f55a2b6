//! `dendrer gc`: removes what follows from the log and is not needed. Never the log, so every state stays readable.

use std::sync::Arc;

use clap::Args;
use clap::ValueEnum;
use dendrer::care::spare::{Cleaned, Rule, clean};
use dendrer::store::embedded::{Leftover, Options};
use dendrer::trust::Trust;
use dendrer_object::Code;

use crate::context;
use crate::context::care::Follower;
use crate::context::keys;
use crate::demo::making;
use crate::failure::{Failure, Result};
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
    let path = context::find(global);
    let left = making::left(path.as_deref().ok());
    let rule = args.rule();
    if path.is_err() && !left.is_empty() {
        remove(args, &left)?;
        let (dry_run, leftovers) = (args.dry_run, left);
        return out.answer(&Cleaned { dry_run, rule, spare: Vec::new(), leftovers, room: 0, vault_parts: 0 });
    }
    let path = path?;
    let options = if args.dry_run { Options::read() } else { Options::write() };
    let store = context::embedded(global, &path, options)?;
    let mut follower = Follower::new(global, "gc", out);
    let trust: Arc<dyn Trust> = keys::trust(global);
    let cleaned = clean(store, rule, args.dry_run, &trust, &mut follower);
    let mut cleaned = follower.end(cleaned)?;
    remove(args, &left)?;
    cleaned.leftovers.extend(left);
    out.answer(&cleaned)
}

impl Gc {
    /// The rule of the flags.
    fn rule(&self) -> Rule {
        let now = u64::try_from(now_ms()).unwrap_or(0);
        Rule {
            thin: self.snapshots == Some(SnapshotsChoice::Thin),
            since_ms: self.keep.map_or(0, |age| now.saturating_sub(age)),
        }
    }
}

/// Removes what an interrupted demo left.
fn remove(args: &Gc, left: &[Leftover]) -> Result<()> {
    if args.dry_run {
        return Ok(());
    }
    making::remove(left).map_err(|error| {
        Failure::new(Code::E0801, "what an interrupted demo left cannot be removed")
            .at("cause", error.to_string())
    })
}
