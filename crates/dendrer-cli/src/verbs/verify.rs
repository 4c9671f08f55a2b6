//! `dendrer verify`

use std::sync::atomic::Ordering;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::Position;
use dendrer::care::verify::question::{VerifyOutcome, VerifyPlan, VerifyQuestion};
use dendrer_view::verify::VerifyAnswer;
use dendrer_wire::foreign::CfdTerms;

use crate::context;
use crate::context::desk::CommandDesk;
use crate::context::keys;
use crate::context::pool;
use crate::failure::Result;
use crate::global::{Format, Global, tick_arg};
use crate::offers;
use crate::out::Out;
use crate::progress::Progress;

mod profile;
mod suite;

/// `verify`
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Runs, runs up to a tick (RUN@TICK), or bundle files; with none, the whole store
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) targets: Vec<String>,
    /// Every run of the store
    #[arg(long, conflicts_with = "targets")]
    pub(crate) all: bool,
    /// Leave out deltas against state roots, and authors: the most that is said then is INTACT
    #[arg(long, conflicts_with = "replay")]
    pub(crate) quick: bool,
    /// Make every transition again, too
    #[arg(long)]
    pub(crate) replay: bool,
    /// Fail unless a second log of the same key is here and can be compared
    #[arg(long)]
    pub(crate) compare: bool,
    /// A file that cannot be read at all does not keep the others from being verified
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// How many bundles are verified at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(crate) jobs: u64,
    /// Run a suite: a JSON file that lists traces, and which of them must be rejected
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets", "all", "tip", "checkpoint", "verifier", "require_witness", "require_complete", "quick", "compare"],
        value_hint = ValueHint::FilePath)]
    pub(crate) suite: Option<String>,
    /// Check files of `export --format paper`, `cfd` or `carl` against the hashes of that document; those of a rotated chain are joined
    #[arg(long, value_name = "paper|cfd|carl", requires = "targets", conflicts_with_all = ["replay", "tip", "checkpoint", "verifier", "require_witness", "require_complete", "quick", "compare", "from"])]
    pub(crate) profile: Option<profile::ProfileChoice>,
    /// The first `seq` of a branch that --profile cfd demands; 0 or 1 without it
    #[arg(long, value_name = "N", requires = "profile")]
    pub(crate) s0: Option<u64>,
    /// The `prev_hash` that --profile cfd demands of a node without parents; empty without it
    #[arg(long, value_name = "TEXT", requires = "profile")]
    pub(crate) genesis: Option<String>,
    /// The `schema_version` of nodes that have none, for --profile cfd
    #[arg(long, value_name = "TEXT", requires = "profile")]
    pub(crate) schema_version: Option<String>,
    /// Check the branches of the agents of one run: places without gaps, links to the node before, parents that exist
    #[arg(long, requires = "targets", conflicts_with_all = ["replay", "tip", "checkpoint", "verifier", "require_witness", "require_complete", "quick", "compare", "from", "profile", "suite"])]
    pub(crate) branches: bool,
    /// Open the records from this tick on, and take what stands before it as it is
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true, requires = "targets")]
    pub(crate) from: Option<Position>,
    /// A tip kept elsewhere, which a run must have on its chain; can be given several times
    #[arg(long, value_name = "HASH")]
    pub(crate) tip: Vec<String>,
    /// A checkpoint kept elsewhere (`export --format checkpoint`), which the log must contain
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) checkpoint: Option<String>,
    /// A verifier key kept elsewhere, under which the log must be signed; can be given several times
    #[arg(long, value_name = "KEY")]
    pub(crate) verifier: Vec<String>,
    /// Fail if records may be missing
    #[arg(long)]
    pub(crate) require_complete: bool,
    /// Fail unless a tip or a checkpoint that was given agrees up to the last tick
    #[arg(long)]
    pub(crate) require_witness: bool,
}

pub(crate) fn run(global: &Global, args: &Verify, out: &mut Out) -> Result {
    if let Some(path) = &args.suite {
        return suite::verify(global, path, out);
    }
    if let Some(choice) = args.profile {
        let terms = CfdTerms {
            s0: args.s0,
            genesis: args.genesis.clone().unwrap_or_default(),
            schema_version: args.schema_version.clone(),
        };
        return profile::check(choice, &args.targets, &terms, out);
    }
    let question = VerifyQuestion {
        targets: args.targets.clone(),
        all: args.all,
        quick: args.quick,
        replay: args.replay,
        compare: args.compare,
        keep_going: args.keep_going,
        branches: args.branches,
        from: args.from.clone(),
        tip: args.tip.clone(),
        checkpoint: args.checkpoint.as_deref().map(keys::note_in).transpose()?,
        verifier: args.verifier.clone(),
        require_complete: args.require_complete,
        require_witness: args.require_witness,
    };
    if args.branches {
        let answer = question.of_branches(&mut CommandDesk::new(global, out))?;
        return out.answer(&answer);
    }
    let plan = question.plan(None)?.with_files(&mut CommandDesk::new(global, out))?;
    let plan = plan.beside(|| context::read_store(global).ok());
    let outcomes = verify_bundles(global, &plan, usize::try_from(args.jobs).unwrap_or(1))?;
    let outcomes = plan.end(outcomes, &mut CommandDesk::new(global, out))?;
    out.answer(&VerifyAnswer { outcomes: &outcomes, is_list: out.format() == Format::Jsonl })
}

/// Verifies the bundles of a plan, some at a time.
fn verify_bundles(global: &Global, plan: &VerifyPlan<'_>, jobs: usize) -> Result<Vec<VerifyOutcome>> {
    let trust = keys::trust(global);
    // The progress of one bundle alone is that of reading it.
    let alone = (plan.bundles.len() == 1).then_some(global);
    let total = Some(plan.bundles.len() as u64);
    let progress = alone.is_none().then(|| Progress::start(global, "verify", "bundles", total));
    let done = progress.as_ref().map(Progress::counter).unwrap_or_default();
    let found = pool::each(&plan.bundles, jobs, |address| {
        let opened = context::open_bundle(alone, address.bundle.as_deref().unwrap_or_default());
        let alone = alone.map(|global| Progress::start(global, "verify", "bundles", Some(1)));
        let found = plan.bundle(address, opened.as_ref().map_err(Clone::clone), &*trust);
        drop(alone);
        done.fetch_add(1, Ordering::Relaxed);
        found
    });
    plan.outcomes(found)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use dendrer::recorder::{Fixed, begin_log};
    use dendrer::store::prelude::*;
    use dendrer::store::{Memory, Shared};
    use dendrer::verify::judge::records_to_read;
    use dendrer::verify::{self, VerifyTerms};
    use dendrer::watch::Watch;

    use super::*;
    use crate::demo;

    /// The remaining time depends on this count.
    #[test]
    fn as_many_records_are_read_as_were_foretold() {
        let mut store = Shared::new(Box::new(Memory::new(demo::store_info())));
        begin_log(&mut store, &mut Fixed::new("demo", 0, 1)).unwrap();
        demo::fill(&store).unwrap();
        let forks = store.runs(0, 100).unwrap().into_iter().filter(|run| run.parent.is_some());
        let forks: Vec<_> = forks.map(|run| run.name).collect();
        assert!(forks.len() >= 4, "{forks:?}");
        let one = Some(vec!["hostile-1".parse().unwrap()]);
        let cases = [(None, false), (None, true), (one.clone(), false), (one, true)];
        let cases = cases.into_iter().chain(forks.into_iter().map(|fork| (Some(vec![fork]), false)));
        for ((runs, replay), quick) in cases.flat_map(|case| [(case.clone(), true), (case, false)]) {
            let options = VerifyTerms { runs, replay, quick, ..VerifyTerms::default() };
            let foretold = records_to_read(&store, &options).unwrap();
            let count = Arc::new(AtomicU64::new(0));
            verify::store(&Watch::counting(Arc::clone(&count)).over(&store), &options).unwrap();
            let read = count.load(Ordering::Relaxed);
            // Opening one of the runs, once more where it is replayed and where its states are followed, reads where it begins, and
            // of the four forks where they branched off and where their parents begin. The last state of a run whose state may be
            // incomplete is read once. That is all that may come on top.
            let states = 80;
            let most = foretold + 3 * (12 + 4 * 4) + states;
            assert!(read >= foretold && read <= most, "{foretold} {read} {options:?}");
        }
    }
}
