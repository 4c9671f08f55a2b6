//! The question of `verify` as data.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dendrer_object::note::{NoteError, VerifierKey};
use dendrer_object::{Code, Digest, RunName, question};
use dendrer_store::embedded::Options;
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, StoreInfo};

use super::{of_bundle, of_files};
use crate::address::{Address, Position};
use crate::evidence::branches::{BranchesAnswer, branches};
use crate::evidence::bundle::Opened;
use crate::evidence::verify::judge::{VerifiedLog, chains_of, compare_histories};
use crate::evidence::verify::{VerifyReport, VerifyTerms};
use crate::problem::Problem;
use crate::repo::is_of_the_log;
use crate::run::trace::{ReadHandle, Trace};
use crate::source::{Asked, Desk, exclude};
use crate::trust::{Stamp, Trust};

question! {
    /// Asks whether records are what was committed
    pub struct VerifyQuestion: "verify-question" {
        /// The runs and the bundles, as addresses; the whole store if none is given
        pub targets: Vec<String>,
        /// Whether every run of the store is verified, as if no target is given
        pub all: bool,
        /// Whether every transition is made again as well
        pub replay: bool,
        /// Whether a bundle that cannot be read leaves the others to be verified
        pub keep_going: bool,
        /// Whether the branches of the agents of one run are checked instead
        pub branches: bool,
        /// The first tick whose records are opened
        pub from: Option<Position>,
        /// A tip kept elsewhere, which the run must have
        pub tip: Option<String>,
        /// A verifier key kept elsewhere, under which the log must be signed
        pub verifier: Option<String>,
        /// Whether a log without a witness is not taken for intact
        pub require_witness: bool,
    }
}

/// The answer to a verification.
#[derive(Debug, Clone)]
pub enum VerifyReply {
    /// Logs, in the order in which they were named.
    Logs(Vec<VerifyOutcome>),
    /// The branches of one run.
    Branches(BranchesAnswer),
}

/// A log that was to be verified.
#[derive(Debug, Clone)]
pub enum VerifyOutcome {
    /// It was verified.
    Verified(Box<VerifiedLog>),
    /// It could not be read, and the others were verified all the same.
    Unreadable(String, Problem),
}

/// A verification with its texts read: the logs, and what is asked of each.
#[derive(Debug)]
pub struct VerifyPlan<'q> {
    question: &'q VerifyQuestion,
    terms: VerifyTerms,
    /// The bundles that are named.
    pub bundles: Vec<Address>,
    /// The runs of the store that are named.
    runs: Vec<Address>,
}

impl Asked for VerifyQuestion {
    type Reply = VerifyReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<VerifyReply, Problem> {
        if self.branches {
            return self.of_branches(desk).map(VerifyReply::Branches);
        }
        let plan = self.plan(desk.bundle_here())?;
        let trust = desk.trust();
        let found = plan.bundles.iter().map(|address| {
            let opened = desk.bundle(address.bundle.as_deref().unwrap_or_default())?;
            plan.bundle(address, &opened, &*trust)
        });
        let outcomes = plan.outcomes(found)?;
        plan.end(outcomes, desk).map(VerifyReply::Logs)
    }
}

impl VerifyQuestion {
    /// Checks the branches of the agents of the run that is named.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if no run or several are named, or the run cannot be read.
    pub fn of_branches(&self, desk: &mut dyn Desk) -> Result<BranchesAnswer, Problem> {
        self.check()?;
        let [target] = &self.targets[..] else {
            return Err(Problem::new(Code::E0106, "--branches is of one run: name one"));
        };
        let address = Address::parse(target)?;
        let source = desk.look(&address)?;
        Ok(branches(&desk.run_in(source, &address, "verify")?.trace)?)
    }

    /// Reads the texts of the question. `here` is the bundle that an address without one means; `None` for a store.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if members do not go together, or a text is not what it must be.
    pub fn plan(&self, here: Option<String>) -> Result<VerifyPlan<'_>, Problem> {
        self.check()?;
        let key = |text: &str| {
            let wrong = |error: NoteError| Problem::new(Code::E0106, format!("not a verifier key: {error}"));
            text.parse::<VerifierKey>().map_err(wrong)
        };
        let terms = VerifyTerms {
            replay: self.replay,
            key: self.verifier.as_deref().map(key).transpose()?,
            tip: self.tip.as_deref().map(tip).transpose()?,
            ..VerifyTerms::default()
        };
        let (mut bundles, mut runs) = (Vec::new(), Vec::new());
        for target in &self.targets {
            let mut address = Address::parse(target)?;
            if address.pos.is_some() {
                let what = format!("{target} names a tick, and a run is verified as a whole");
                return Err(Problem::new(Code::E0106, what).note("where to begin is said with --from"));
            }
            address.bundle = address.bundle.or_else(|| here.clone());
            if address.bundle.is_some() { &mut bundles } else { &mut runs }.push(address);
        }
        if self.tip.is_some() && self.targets.len() != 1 {
            let what = "a tip is that of one run; name that run and no other";
            return Err(Problem::new(Code::E0106, what));
        }
        if self.targets.is_empty() && here.is_some() {
            bundles.push(Address { bundle: here, run: None, pos: None });
        }
        Ok(VerifyPlan { question: self, terms, bundles, runs })
    }

    /// Refuses members that do not go together.
    fn check(&self) -> Result<(), Problem> {
        let targets = ("TARGETS", !self.targets.is_empty());
        let branches = ("--branches", self.branches);
        let from = ("--from", self.from.is_some());
        exclude(("--all", self.all), &[targets])?;
        exclude(
            branches,
            &[
                ("--replay", self.replay),
                ("--tip", self.tip.is_some()),
                ("--verifier", self.verifier.is_some()),
                ("--require-witness", self.require_witness),
                from,
            ],
        )?;
        match [branches, from].into_iter().find(|(_, given)| *given && !targets.1) {
            Some((flag, _)) => Err(Problem::new(Code::E0106, format!("{flag} is of one run: name one"))),
            None => Ok(()),
        }
    }
}

impl VerifyPlan<'_> {
    /// Verifies a bundle that is named.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the bundle has no such run, or cannot be read.
    pub fn bundle(
        &self,
        address: &Address,
        opened: &Opened,
        trust: &dyn Trust,
    ) -> Result<VerifiedLog, Problem> {
        let mut log = verify_bundle(address, opened, &self.terms, self.question.from.as_ref(), trust)?;
        // One log is compared with no other.
        if self.bundles.len() > 1 || !self.runs.is_empty() {
            let runs = log.report.runs.iter().map(|run| run.run.clone()).collect();
            log.chains = chains_of(&opened.store, &runs);
            log.positions = opened.bundle.positions().map(|(at, entry)| (at, entry.clone())).collect();
        }
        Ok(log)
    }

    /// Returns the outcomes of the bundles, in their order.
    ///
    /// # Errors
    ///
    /// The [`Problem`] of the first bundle that cannot be read, unless the others are verified all the same.
    pub fn outcomes(
        &self,
        found: impl IntoIterator<Item = Result<VerifiedLog, Problem>>,
    ) -> Result<Vec<VerifyOutcome>, Problem> {
        let outcome = |(address, found): (&Address, _)| match found {
            Ok(log) => Ok(VerifyOutcome::Verified(Box::new(log))),
            Err(problem) if self.question.keep_going => {
                Ok(VerifyOutcome::Unreadable(address.bundle.clone().unwrap_or_default(), problem))
            }
            Err(problem) if self.bundles.len() > 1 => {
                Err(Problem::note(problem, "--keep-going verifies the others all the same"))
            }
            Err(problem) => Err(problem),
        };
        self.bundles.iter().zip(found).map(outcome).collect()
    }

    /// Verifies the store if it is asked about, and compares the logs.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the store has no such run, or cannot be read.
    pub fn end(
        &self,
        mut outcomes: Vec<VerifyOutcome>,
        desk: &mut dyn Desk,
    ) -> Result<Vec<VerifyOutcome>, Problem> {
        if !self.runs.is_empty() || self.bundles.is_empty() {
            let known = outcomes.iter().filter_map(|outcome| match outcome {
                VerifyOutcome::Verified(log) => Some(log.chains.keys().cloned()),
                VerifyOutcome::Unreadable(..) => None,
            });
            let known = known.flatten().collect();
            let is_compared = !outcomes.is_empty();
            outcomes.push(VerifyOutcome::Verified(Box::new(self.store(desk, &known, is_compared)?)));
        }
        let verified = outcomes.iter_mut().filter_map(|outcome| match outcome {
            VerifyOutcome::Verified(log) => Some(&mut **log),
            VerifyOutcome::Unreadable(..) => None,
        });
        let mut logs: Vec<&mut VerifiedLog> = verified.collect();
        compare_histories(&mut logs);
        let VerifyQuestion { replay, require_witness, .. } = *self.question;
        logs.into_iter().for_each(|log| log.report.close(replay, require_witness));
        Ok(outcomes)
    }

    /// Verifies runs of the store, or all of it. `known` are the runs of bundles, which are compared with those here.
    fn store(
        &self,
        desk: &mut dyn Desk,
        known: &BTreeSet<RunName>,
        is_compared: bool,
    ) -> Result<VerifiedLog, Problem> {
        let path = desk.dir()?;
        let stamp = Stamp::of(&path);
        let mut store = Arc::new(desk.log_files(&path)?);
        let mut names = Vec::new();
        for address in &self.runs {
            names.push(address.run_in(&store, &[]).map_err(|error| not_found(error.into(), &*store))?);
        }
        // A key file that is named is a key kept elsewhere, as a verifier key is.
        let file = desk.kept_key()?;
        let from = first_tick(self.question.from.as_ref(), &store, &names)?;
        let runs = (!self.runs.is_empty()).then_some(names);
        let key = self.terms.key.clone().or(file);
        let terms = VerifyTerms { runs, from, key, ..self.terms.clone() };
        let trust = desk.trust();
        let mut report = of_files(&mut store, &terms, &*trust, &mut *desk.follow("verify"))?;
        let info = store.info().clone();
        let (chains, mut positions) = (chains_of(&store, known), BTreeMap::new());
        if is_compared && report.findings.is_empty() {
            store.entries(0..store.tree().size, &mut |at, entry| {
                positions.insert(at, entry);
                ControlFlow::Continue(())
            })?;
        }
        // Windows cannot rename an open index, so it is closed first.
        drop(store);
        if report.has_only_index_findings() {
            rebuild_index(&path, &mut report);
        }
        if let Some(seen) = trust.seen(info.id) {
            seen.note(&path, stamp, report.notes());
        }
        Ok(VerifiedLog { chains, positions, ..verified(path.display().to_string(), report, false, &info) })
    }
}

/// Verifies a bundle, or one run of it.
///
/// # Errors
///
/// A [`Problem`] if the bundle has no such run, or cannot be read.
pub fn verify_bundle(
    address: &Address,
    opened: &Opened,
    terms: &VerifyTerms,
    from: Option<&Position>,
    trust: &dyn Trust,
) -> Result<VerifiedLog, Problem> {
    let path = address.bundle.as_deref().unwrap_or_default();
    let runs = &opened.runs;
    let in_bundle = |problem: Problem| problem.help_in(path, runs);
    let named = match address.run {
        Some(_) => Some(vec![address.run_in(&opened.store, runs).map_err(|error| in_bundle(error.into()))?]),
        None => None,
    };
    let from = first_tick(from, &opened.store, named.as_ref().unwrap_or(runs)).map_err(in_bundle)?;
    let terms = VerifyTerms { runs: named, from, ..terms.clone() };
    let report = of_bundle(opened, &terms, trust)?;
    Ok(verified(path.to_owned(), report, true, opened.store.info()))
}

/// Reads a tip, with or without the name of its hash.
///
/// # Errors
///
/// E0304 if the text is not a whole tip.
pub fn tip(text: &str) -> Result<Digest, Problem> {
    let with_tag = if text.starts_with("sha256:") { text.to_owned() } else { format!("sha256:{text}") };
    with_tag.parse().map_err(|_| {
        Problem::new(Code::E0304, format!("\"{text}\" is not a whole tip, so no run can have it"))
            .note("a tip is sha256: and 64 hex digits; `dendrer runs --json` prints them whole")
    })
}

fn verified(name: String, report: VerifyReport, is_bundle: bool, info: &StoreInfo) -> VerifiedLog {
    let (store, key) = (info.id, info.key.clone());
    VerifiedLog { name, report, is_bundle, store, key, chains: BTreeMap::new(), positions: BTreeMap::new() }
}

/// Returns the first tick whose records are opened, which is that of one run.
fn first_tick(from: Option<&Position>, store: &impl ReadHandle, runs: &[RunName]) -> Result<u64, Problem> {
    match (from, runs) {
        (None, _) => Ok(0),
        (Some(from), [run]) => Ok(from.tick(&Trace::open(store, run)?)?),
        (Some(_), _) => Err(Problem::new(Code::E0106, "--from is a tick of one run; name that run")),
    }
}

/// Turns the problem of a run that is not found into that of the log, if the log is damaged: the run may be in the missing part.
fn not_found(problem: Problem, store: &Embedded) -> Problem {
    match store.trouble().filter(|trouble| is_of_the_log(trouble)) {
        Some(trouble) if matches!(problem.code, Code::E0101 | Code::E0107) => {
            problem.of_damaged_log(trouble.code())
        }
        _ => problem,
    }
}

/// Rebuilds an index that alone is wrong, and adds to the findings that it was rebuilt.
fn rebuild_index(path: &Path, report: &mut VerifyReport) {
    let made = match Embedded::open(path, Options::write()) {
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
