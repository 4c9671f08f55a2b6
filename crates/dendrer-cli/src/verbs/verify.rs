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
    /// Runs or bundle files; with none, the whole store
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) targets: Vec<String>,
    /// Every run of the store
    #[arg(long, conflicts_with = "targets")]
    pub(crate) all: bool,
    /// Make every transition again, too
    #[arg(long)]
    pub(crate) replay: bool,
    /// A file that cannot be read at all does not keep the others from being verified
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// How many bundles are verified at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(crate) jobs: u64,
    /// Run a suite: a JSON file that lists traces, and which of them must be rejected
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets", "all", "tip", "verifier", "require_witness"],
        value_hint = ValueHint::FilePath)]
    pub(crate) suite: Option<String>,
    /// Check files of `export --format paper`, `cfd` or `carl` against the hashes of that document; those of a rotated chain are joined
    #[arg(long, value_name = "paper|cfd|carl", requires = "targets", conflicts_with_all = ["replay", "tip", "verifier", "require_witness", "from"])]
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
    #[arg(long, requires = "targets", conflicts_with_all = ["replay", "tip", "verifier", "require_witness", "from", "profile", "suite"])]
    pub(crate) branches: bool,
    /// Open the records from this tick on, and take what stands before it as it is
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true, requires = "targets")]
    pub(crate) from: Option<Position>,
    /// A tip kept elsewhere, which the run must have
    #[arg(long, value_name = "HASH")]
    pub(crate) tip: Option<String>,
    /// A verifier key kept elsewhere, under which the log must be signed
    #[arg(long, value_name = "KEY")]
    pub(crate) verifier: Option<String>,
    /// Fail unless a log outside agrees
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
        replay: args.replay,
        keep_going: args.keep_going,
        branches: args.branches,
        from: args.from.clone(),
        tip: args.tip.clone(),
        verifier: args.verifier.clone(),
        require_witness: args.require_witness,
    };
    if args.branches {
        let answer = question.of_branches(&mut CommandDesk::new(global, out))?;
        return out.answer(&answer);
    }
    let plan = question.plan(None)?;
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
        let verify = || {
            let opened = context::open_bundle(alone, address.bundle.as_deref().unwrap_or_default())?;
            let _progress = alone.map(|global| Progress::start(global, "verify", "bundles", Some(1)));
            plan.bundle(address, &opened, &*trust)
        };
        let found = verify();
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
        let one = Some(vec!["hostile-1".parse().unwrap()]);
        for (runs, replay) in [(None, false), (None, true), (one.clone(), false), (one, true)] {
            let options = VerifyTerms { runs, replay, ..VerifyTerms::default() };
            let foretold = records_to_read(&store, &options).unwrap();
            let count = Arc::new(AtomicU64::new(0));
            verify::store(&Watch::counting(Arc::clone(&count)).over(&store), &options).unwrap();
            let read = count.load(Ordering::Relaxed);
            // Opening one of the runs, twice where it is replayed, reads where it begins, and of the four forks where they branched
            // off and where their parents begin. The last state of a run whose state may be incomplete is read once. That is all
            // that may come on top.
            let states = 50;
            let most = foretold + 2 * (10 + 4 * 4) + states;
            assert!(read >= foretold && read <= most, "{foretold} {read} {options:?}");
        }
    }
}
