//! `dendrer verify`

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use dendrer::Trace;
use dendrer::address::{Address, Position};
use dendrer::care;
use dendrer::store::StoreInfo;
use dendrer::store::embedded::{Embedded, Options as OpenOptions};
use dendrer::store::prelude::*;
use dendrer::trace::ReadHandle;
use dendrer::trust::{Stamp, Trust};
use dendrer::verify::judge::{VerifiedLog, compare_histories};
use dendrer::verify::{VerifyQuestion, VerifyReport};
use dendrer_object::note::{NoteError, VerifierKey};
use dendrer_object::{Code, Digest, RunName};
use dendrer_view::verify::{VerifyAnswer, VerifyOutcome};
use dendrer_wire::cfd::CfdTerms;

use crate::context;
use crate::context::care::Follower;
use crate::context::keys;
use crate::context::pool;
use crate::failure::{Failure, Result};
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
    /// Check files of `export --format paper` or `cfd` against the hashes of that document
    #[arg(long, value_name = "paper|cfd", requires = "targets", conflicts_with_all = ["replay", "tip", "verifier", "require_witness", "from"])]
    pub(crate) profile: Option<profile::ProfileChoice>,
    /// The first `seq` of a branch that --profile cfd demands; 0 or 1 without it
    #[arg(long, value_name = "N", requires = "profile")]
    pub(crate) s0: Option<u64>,
    /// The `prev_hash` that --profile cfd demands of a node without parents; empty without it
    #[arg(long, value_name = "TEXT", requires = "profile")]
    pub(crate) genesis: Option<String>,
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

/// What is asked of every log.
struct Asked<'a> {
    options: VerifyQuestion,
    from: Option<&'a Position>,
    trust: Arc<dyn Trust>,
}

pub(crate) fn run(global: &Global, args: &Verify, out: &mut Out) -> Result {
    if let Some(path) = &args.suite {
        return suite::verify(global, path, out);
    }
    if let Some(choice) = args.profile {
        let terms = CfdTerms { s0: args.s0, genesis: args.genesis.clone().unwrap_or_default() };
        return profile::check(choice, &args.targets, &terms, out);
    }
    if args.branches {
        return branches(global, &args.targets, out);
    }
    let options = VerifyQuestion {
        replay: args.replay,
        key: args.verifier.as_deref().map(parse_key).transpose()?,
        tip: args.tip.as_deref().map(parse_tip).transpose()?,
        ..VerifyQuestion::default()
    };
    let asked = Asked { options, from: args.from.as_ref(), trust: keys::trust(global) };
    let (bundles, runs) = targets(&args.targets)?;
    if args.tip.is_some() && args.targets.len() != 1 {
        return Err(Failure::new(Code::E0106, "a tip is that of one run; name that run and no other"));
    }
    let jobs = usize::try_from(args.jobs).unwrap_or(1);
    let mut outcomes = verify_bundles(global, &bundles, &asked, jobs, args.keep_going)?;
    if !runs.is_empty() || args.targets.is_empty() {
        outcomes.push(VerifyOutcome::Verified(Box::new(verify_store(global, &runs, &asked, out)?)));
    }
    let verified = outcomes.iter_mut().filter_map(|outcome| match outcome {
        VerifyOutcome::Verified(log) => Some(&mut **log),
        VerifyOutcome::Unreadable(..) => None,
    });
    let mut logs: Vec<&mut VerifiedLog> = verified.collect();
    compare_histories(&mut logs);
    logs.into_iter().for_each(|log| log.report.close(args.replay, args.require_witness));
    out.answer(&VerifyAnswer { outcomes: &outcomes, is_list: out.format() == Format::Jsonl })
}

/// Checks the branches of the agents of a run.
fn branches(global: &Global, targets: &[String], out: &mut Out) -> Result {
    let [target] = targets else {
        return Err(Failure::new(Code::E0106, "--branches is of one run: name one"));
    };
    let rev = Address::parse(target)?;
    let source = context::source(global, &rev, out)?;
    let (progress, counted) = context::watched(global, &source, "verify");
    let trace = source.trace_through(&counted, &rev.resolve(&source.store)?)?;
    let answer = dendrer::evidence::branches::branches(&trace)?;
    drop(progress);
    out.answer(&answer)
}

/// Returns the bundles that are named, and the runs of the store.
fn targets(names: &[String]) -> Result<(Vec<Address>, Vec<Address>)> {
    let (mut bundles, mut runs) = (Vec::new(), Vec::new());
    for target in names {
        let rev = Address::parse(target)?;
        if rev.pos.is_some() {
            let what = format!("{target} names a tick, and a run is verified as a whole");
            return Err(Failure::new(Code::E0106, what).note("where to begin is said with --from"));
        }
        if rev.bundle.is_some() { &mut bundles } else { &mut runs }.push(rev);
    }
    Ok((bundles, runs))
}

/// Verifies bundles, some at a time, and returns the outcomes in the order in which they were named.
fn verify_bundles(
    global: &Global,
    bundles: &[Address],
    asked: &Asked<'_>,
    jobs: usize,
    keep_going: bool,
) -> Result<Vec<VerifyOutcome>> {
    // The progress of one bundle alone is that of reading it.
    let alone = (bundles.len() == 1).then_some(global);
    let progress =
        alone.is_none().then(|| Progress::start(global, "verify", "bundles", Some(bundles.len() as u64)));
    let done = progress.as_ref().map(Progress::counter).unwrap_or_default();
    let found = pool::each(bundles, jobs, |rev| {
        let answer = verify_bundle(alone, rev, asked);
        done.fetch_add(1, Ordering::Relaxed);
        answer
    });
    let mut outcomes = Vec::new();
    for (rev, answer) in bundles.iter().zip(found) {
        match answer {
            Ok(log) => outcomes.push(VerifyOutcome::Verified(Box::new(log))),
            Err(failure) if keep_going => {
                outcomes.push(VerifyOutcome::Unreadable(rev.bundle.clone().unwrap_or_default(), failure));
            }
            Err(failure) if bundles.len() > 1 => {
                return Err(failure.note("--keep-going verifies the others all the same"));
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(outcomes)
}

/// Finds the tick that `--from` means, which is that of one run.
fn first_tick(from: Option<&Position>, store: &impl ReadHandle, runs: &[RunName]) -> Result<u64> {
    match (from, runs) {
        (None, _) => Ok(0),
        (Some(from), [run]) => Ok(from.tick(&Trace::open(store, run)?)?),
        (Some(_), _) => Err(Failure::new(Code::E0106, "--from is a tick of one run; name that run")),
    }
}

fn verify_bundle(alone: Option<&Global>, rev: &Address, asked: &Asked<'_>) -> Result<VerifiedLog> {
    let path = rev.bundle.as_deref().unwrap_or_default();
    let opened = context::open_bundle(alone, path)?;
    let _progress = alone.map(|global| Progress::start(global, "verify", "bundles", Some(1)));
    let runs = &opened.runs;
    let in_bundle = |failure: Failure| failure.help_in(path, runs);
    let named = match rev.run {
        Some(_) => Some(vec![rev.run_in(&opened.store, runs).map_err(|error| in_bundle(error.into()))?]),
        None => None,
    };
    let from = first_tick(asked.from, &opened.store, named.as_ref().unwrap_or(runs)).map_err(in_bundle)?;
    let options = VerifyQuestion { runs: named, from, ..asked.options.clone() };
    let report = care::verify::of_bundle(&opened, &options, &*asked.trust)?;
    Ok(verified(path.to_owned(), report, true, opened.store.info()))
}

fn verified(name: String, report: VerifyReport, is_bundle: bool, info: &StoreInfo) -> VerifiedLog {
    VerifiedLog { name, report, is_bundle, store: info.id, key: info.key.clone() }
}

fn parse_tip(text: &str) -> Result<Digest> {
    let with_tag = if text.starts_with("sha256:") { text.to_owned() } else { format!("sha256:{text}") };
    with_tag.parse().map_err(|_| {
        Failure::new(Code::E0304, format!("\"{text}\" is not a whole tip, so no run can have it"))
            .note("a tip is sha256: and 64 hex digits; `dendrer runs --json` prints them whole")
    })
}

fn parse_key(text: &str) -> Result<VerifierKey> {
    text.parse().map_err(|error: NoteError| Failure::new(Code::E0106, format!("not a verifier key: {error}")))
}

fn verify_store(global: &Global, revs: &[Address], asked: &Asked<'_>, out: &mut Out) -> Result<VerifiedLog> {
    let path = context::find(global)?;
    let stamp = Stamp::of(&path);
    let mut store = Arc::new(context::embedded(global, &path, global.reads())?);
    let mut names = Vec::new();
    for rev in revs {
        names.push(rev.run_in(&store, &[]).map_err(|error| context::not_found(error.into(), &*store))?);
    }
    // A key file that is named is a key kept elsewhere, as a verifier key is.
    let file = global.key.as_deref().map(keys::read_verifier).transpose()?;
    let from = first_tick(asked.from, &store, &names)?;
    let runs = (!revs.is_empty()).then_some(names);
    let key = asked.options.key.clone().or(file);
    let question = VerifyQuestion { runs, from, key, ..asked.options.clone() };
    let mut follower = Follower::new(global, "verify", out);
    let verified_files = care::verify::of_files(&mut store, &question, &*asked.trust, &mut follower);
    let mut report = follower.end(verified_files)?;
    let info = store.info().clone();
    // Windows cannot rename an open index, so it is closed first.
    drop(store);
    if report.has_only_index_findings() {
        rebuild_index(&path, &mut report);
    }
    if let Some(seen) = keys::seen(info.id) {
        seen.note(&path, stamp, report.notes());
    }
    Ok(verified(path.display().to_string(), report, false, &info))
}

/// Rebuilds an index that alone is wrong, and adds to the findings that it was rebuilt.
fn rebuild_index(path: &Path, report: &mut VerifyReport) {
    let made = match Embedded::open(path, OpenOptions::write()) {
        Ok(mut store) => store.rebuild_index(false),
        Err(error) => Err(error),
    };
    let words = match made {
        Ok(()) => "the index was made again from the log, so the next verification finds it right".to_owned(),
        Err(error) => format!("the index could not be made again: {error}"),
    };
    let findings = report.findings.iter_mut();
    findings.for_each(|finding| finding.message = format!("{}; {words}", finding.message));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use dendrer::recorder::{Fixed, begin_log};
    use dendrer::store::{Memory, Shared};
    use dendrer::verify;
    use dendrer::verify::judge::records_to_read;
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
            let options = VerifyQuestion { runs, replay, ..VerifyQuestion::default() };
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
