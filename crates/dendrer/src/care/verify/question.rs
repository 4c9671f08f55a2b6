//! The question of `verify` as data.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_object::merkle::{empty_root, leaf_hash};
use dendrer_object::note::{NoteError, SignedNote, VerifierKey};
use dendrer_object::{Code, Digest, RunName, question};
use dendrer_store::embedded::Options;
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Store, StoreInfo, TreeHead};

use super::{of_bundle, of_files};
use crate::address::{Address, Position};
use crate::error::Error;
use crate::evidence::branches::{BranchesAnswer, branches};
use crate::evidence::bundle::Opened;
use crate::evidence::shown::ShownTree;
use crate::evidence::verify::judge::{VerifiedLog, chains_of, compare_histories};
use crate::evidence::verify::{VerifyReport, VerifyTerms, VerifyVerdict};
use crate::problem::Problem;
use crate::repo::{Repo, is_of_the_log};
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
        /// Whether deltas are not compared with roots, nor authors checked
        pub quick: bool,
        /// Whether every transition is made again as well
        pub replay: bool,
        /// Whether a second log of the same key must be comparable
        pub compare: bool,
        /// Whether a bundle that cannot be read leaves the others to be verified
        pub keep_going: bool,
        /// Whether the branches of the agents of one run are checked instead
        pub branches: bool,
        /// The first tick whose records are opened
        pub from: Option<Position>,
        /// Tips kept elsewhere, which the runs must have on their chains
        pub tip: Vec<String>,
        /// The text of a checkpoint kept elsewhere, which the log must contain
        pub checkpoint: Option<String>,
        /// Verifier keys kept elsewhere, under which the log must be signed
        pub verifier: Vec<String>,
        /// Whether the answer is no if records may be missing
        pub require_complete: bool,
        /// Whether the answer is no without a witness up to the last tick that is asked about
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
    checkpoint: Option<SignedNote>,
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
        let plan = self.plan(desk.bundle_here())?.with_files(desk)?.beside(|| desk.reader().ok());
        let trust = desk.trust();
        let found: Vec<_> = plan
            .bundles
            .iter()
            .map(|address| {
                let opened = desk.bundle(address.bundle.as_deref().unwrap_or_default());
                plan.bundle(address, opened.as_ref().map_err(Problem::clone), &*trust)
            })
            .collect();
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
            quick: self.quick,
            replay: self.replay,
            keys: self.verifier.iter().map(|text| key(text)).collect::<Result<_, _>>()?,
            tips: self.tip.iter().map(|text| tip(text)).collect::<Result<_, _>>()?,
            ..VerifyTerms::default()
        };
        let note = |text: &String| {
            let wrong = |error: NoteError| Problem::new(Code::E0308, format!("not a checkpoint: {error}"));
            SignedNote::parse(text.as_bytes()).map_err(wrong)
        };
        let checkpoint = self.checkpoint.as_ref().map(note).transpose()?;
        let (mut bundles, mut runs) = (Vec::new(), Vec::new());
        for target in &self.targets {
            let mut address = Address::parse(target)?;
            if matches!(address.pos, Some(Position::Refused(_))) {
                let what = format!("{target} names a refusal, and a run is verified up to a tick");
                return Err(Problem::new(Code::E0106, what));
            }
            address.bundle = address.bundle.or_else(|| here.clone());
            if address.bundle.is_some() { &mut bundles } else { &mut runs }.push(address);
        }
        if self.targets.is_empty() && here.is_some() {
            bundles.push(Address { bundle: here, run: None, pos: None });
        }
        VerifyPlan { question: self, terms, checkpoint, bundles, runs }.of_one_log()
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
                ("--tip", !self.tip.is_empty()),
                ("--checkpoint", self.checkpoint.is_some()),
                ("--verifier", !self.verifier.is_empty()),
                ("--require-witness", self.require_witness),
                ("--require-complete", self.require_complete),
                ("--quick", self.quick),
                ("--compare", self.compare),
                from,
            ],
        )?;
        exclude(("--quick", self.quick), &[("--replay", self.replay)])?;
        match [branches, from].into_iter().find(|(_, given)| *given && !targets.1) {
            Some((flag, _)) => Err(Problem::new(Code::E0106, format!("{flag} is of one run: name one"))),
            None => Ok(()),
        }
    }
}

impl VerifyPlan<'_> {
    /// Refuses a tip that could be of several logs.
    fn of_one_log(self) -> Result<Self, Problem> {
        match !self.terms.tips.is_empty() && self.bundles.len() + usize::from(!self.runs.is_empty()) > 1 {
            true => {
                let what = "a tip is that of a run of one log; name that log and no other";
                Err(Problem::new(Code::E0106, what))
            }
            false => Ok(self),
        }
    }

    /// Takes names that no run of the store has and a file has as bundles.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if a tip is given, and the names are of several logs.
    pub fn with_files(mut self, desk: &mut dyn Desk) -> Result<Self, Problem> {
        let is_file = |address: &Address| {
            address.pos.is_none() && address.run.as_deref().is_some_and(|name| desk.has_file(name))
        };
        let (files, runs): (Vec<_>, Vec<_>) = self.runs.iter().cloned().partition(is_file);
        if files.is_empty() {
            return Ok(self);
        }
        // Without a store there are no runs.
        let elsewhere = desk.store_elsewhere()?.map(|(_, repo)| repo.reader()).transpose()?;
        let store = match &elsewhere {
            Some(_) => None,
            None => desk.dir().and_then(|dir| desk.log_files(&dir)).map(Arc::new).ok(),
        };
        let is_run = |address: &Address| match &elsewhere {
            Some(store) => address.run_in(store, &[]).is_ok(),
            None => store.as_ref().is_some_and(|store| run_of(address, store).is_ok()),
        };
        let (named, files): (Vec<_>, Vec<_>) = files.into_iter().partition(is_run);
        self.runs = runs.into_iter().chain(named).collect();
        self.bundles.extend(files.into_iter().map(|address| Address {
            bundle: address.run,
            run: None,
            pos: None,
        }));
        self.of_one_log()
    }

    /// Looks the tips up in the store that is here, if there is one: a tip by itself does not say of which tick it is, so a bundle
    /// that ends before it looks like one that was rewritten.
    #[must_use]
    pub fn beside(mut self, store: impl FnOnce() -> Option<Arc<dyn Store>>) -> Self {
        if self.terms.tips.is_empty() || self.bundles.is_empty() {
            return self;
        }
        let Some(store) = store() else { return self };
        let place = |tip: &Digest| {
            let record = store.get(store.find(tip).ok()??).ok()??;
            Some((*tip, (record.header().run.clone()?, record.header().tick?)))
        };
        self.terms.tip_places = self.terms.tips.iter().filter_map(place).collect();
        self
    }

    /// Verifies a bundle that is named. Of bytes that are no bundle the verdict is MALFORMED.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the bundle has no such run, or cannot be read.
    pub fn bundle(
        &self,
        address: &Address,
        opened: Result<&Opened, Problem>,
        trust: &dyn Trust,
    ) -> Result<VerifiedLog, Problem> {
        let opened = match opened {
            Ok(opened) => opened,
            Err(problem) => return malformed(address.bundle.as_deref().unwrap_or_default(), problem),
        };
        let terms = self.terms_of(&*opened.store)?;
        let mut log = verify_bundle(address, opened, &terms, self.question.from.as_ref(), trust)?;
        // One log is compared with no other.
        if self.bundles.len() > 1 || !self.runs.is_empty() {
            let runs = log.report.runs.iter().map(|run| run.run.clone()).collect();
            log.chains = chains_of(&opened.store, &runs);
            log.shown = ShownTree::of_bundle(&opened.bundle);
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
        let VerifyQuestion { require_complete, require_witness, compare, .. } = *self.question;
        logs.into_iter().for_each(|log| log.report.require(require_complete, require_witness, compare));
        Ok(outcomes)
    }

    /// Returns the terms for a log, with the checkpoint that was given opened under the key of its size.
    fn terms_of(&self, store: &dyn Store) -> Result<VerifyTerms, Problem> {
        let keys = store.keys().map_err(Error::from)?;
        let opened = |note: &SignedNote| {
            let wrong = |error: NoteError| {
                Problem::new(
                    Code::E0308,
                    format!("the checkpoint that was given is none of this log: {error}"),
                )
            };
            let checkpoint = keys.open(note).map_err(wrong)?;
            Ok::<_, Problem>((checkpoint.size(), checkpoint.root()))
        };
        let checkpoints = self.checkpoint.iter().map(opened).collect::<Result<_, _>>()?;
        Ok(VerifyTerms { checkpoints, ..self.terms.clone() })
    }

    /// Verifies runs of the store, or all of it. `known` are the runs of bundles, which are compared with those here.
    fn store(
        &self,
        desk: &mut dyn Desk,
        known: &BTreeSet<RunName>,
        is_compared: bool,
    ) -> Result<VerifiedLog, Problem> {
        if let Some((name, repo)) = desk.store_elsewhere()? {
            return self.store_elsewhere(name, &repo, desk, known, is_compared);
        }
        let path = desk.dir()?;
        let stamp = Stamp::of(&path);
        let mut store = match desk.log_files(&path) {
            Ok(store) => Arc::new(store),
            Err(problem) => return malformed(&path.display().to_string(), problem),
        };
        let mut names = Vec::new();
        for address in &self.runs {
            names.push(run_of(address, &store)?);
        }
        // A key file that is named is a key kept elsewhere, as a verifier key is.
        let file = desk.kept_key()?;
        let from = first_tick(self.question.from.as_ref(), &store, &names)?;
        let to = last_ticks(self.runs.iter().zip(&names), &store)?;
        let mut named = BTreeSet::new();
        names.retain(|run| named.insert(run.clone()));
        let runs = (!self.runs.is_empty()).then_some(names);
        let mut terms = VerifyTerms { runs, from, to, ..self.terms_of(&*store)? };
        terms.keys.extend(file);
        let trust = desk.trust();
        let report = of_files(&mut store, &terms, &*trust, &mut *desk.follow("verify"))?;
        let info = store.info().clone();
        let (chains, mut shown) = (chains_of(&store, known), ShownTree::default());
        if is_compared && report.findings.is_empty() {
            store.entries(0..store.tree().size, &mut |_, entry| {
                shown.push(leaf_hash(&entry.text()));
                ControlFlow::Continue(())
            })?;
        }
        if let Some(seen) = trust.seen(info.id) {
            let intact = report.verdict <= VerifyVerdict::Intact;
            let (size, root) = report.log;
            let log = root
                .filter(|_| intact)
                .map_or(TreeHead { size: 0, root: empty_root() }, |root| TreeHead { size, root });
            // Runs that are named one by one may be all there are.
            let is_whole = !report.is_quick && report.records == report.log.0;
            seen.note(&path, stamp, report.notes(), is_whole.then_some(log));
        }
        let is_whole = self.runs.is_empty();
        Ok(VerifiedLog {
            chains,
            shown,
            is_whole,
            ..verified(path.display().to_string(), report, false, &info)
        })
    }
}

impl VerifyPlan<'_> {
    /// Verifies runs of a store that is no directory, or all of it. Nothing is remembered of it: there are no files whose change
    /// would show.
    fn store_elsewhere(
        &self,
        name: String,
        repo: &Repo,
        desk: &mut dyn Desk,
        known: &BTreeSet<RunName>,
        is_compared: bool,
    ) -> Result<VerifiedLog, Problem> {
        let store = repo.reader()?;
        let mut names = Vec::new();
        for address in &self.runs {
            names.push(address.run_in(&store, &[])?);
        }
        let file = desk.kept_key()?;
        let from = first_tick(self.question.from.as_ref(), &store, &names)?;
        let to = last_ticks(self.runs.iter().zip(&names), &store)?;
        let mut named = BTreeSet::new();
        names.retain(|run| named.insert(run.clone()));
        let runs = (!self.runs.is_empty()).then_some(names);
        let mut terms = VerifyTerms { runs, from, to, ..self.terms_of(&*store)? };
        terms.keys.extend(file);
        let report = repo.verify(&terms, &mut *desk.follow("verify"))?;
        let (chains, mut shown) = (chains_of(&store, known), ShownTree::default());
        if is_compared && report.findings.is_empty() {
            store.entries(0..store.tree().size, &mut |_, entry| {
                shown.push(leaf_hash(&entry.text()));
                ControlFlow::Continue(())
            })?;
        }
        let is_whole = self.runs.is_empty();
        Ok(VerifiedLog { chains, shown, is_whole, ..verified(name, report, false, store.info()) })
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
    let all = named.as_ref().unwrap_or(runs);
    let from = first_tick(from, &opened.store, all).map_err(in_bundle)?;
    let to = match (&address.pos, &all[..]) {
        (None, _) => BTreeMap::new(),
        (Some(place), [run]) => [last_tick(place, &opened.store, run).map_err(in_bundle)?].into(),
        (Some(_), _) => {
            return Err(in_bundle(Problem::new(Code::E0106, "a tick is that of one run; name that run")));
        }
    };
    let terms = VerifyTerms { runs: named, from, to, ..terms.clone() };
    let report = of_bundle(opened, &terms, trust)?;
    Ok(verified(path.to_owned(), report, true, opened.store.info()))
}

/// Reads a tip, with or without the name of its hash.
///
/// # Errors
///
/// E0106 if the text is no tip.
pub fn tip(text: &str) -> Result<Digest, Problem> {
    let with_tag = if text.starts_with("sha256:") { text.to_owned() } else { format!("sha256:{text}") };
    with_tag.parse().map_err(|_| {
        Problem::new(Code::E0106, format!("\"{text}\" is no tip"))
            .note("a tip is sha256: and 64 hex digits in lower case; `dendrer runs --json` prints them whole")
    })
}

fn verified(name: String, report: VerifyReport, is_bundle: bool, info: &StoreInfo) -> VerifiedLog {
    let (store, key) = (info.id, info.key.clone());
    let (chains, shown) = Default::default();
    VerifiedLog { name, report, is_bundle, is_whole: is_bundle, of: Some((store, key)), chains, shown }
}

/// Turns the problem of bytes that have not the form of a bundle or a store into a verdict.
///
/// # Errors
///
/// Any other problem as it is.
pub fn malformed(name: &str, problem: Problem) -> Result<VerifiedLog, Problem> {
    if !matches!(problem.code, Code::E0305 | Code::E0306) {
        return Err(problem);
    }
    let (chains, shown) = Default::default();
    let report = VerifyReport::malformed(problem.code, problem.message.into());
    let name = name.to_owned();
    Ok(VerifiedLog { name, report, is_bundle: true, is_whole: true, of: None, chains, shown })
}

/// Finds the run of an address, also where a damaged index does not name it.
fn run_of(address: &Address, store: &Arc<Embedded>) -> Result<RunName, Problem> {
    let found = address.run_in(store, &[]).map_err(Problem::from);
    found.or_else(|problem| {
        if store.trouble().is_none() {
            let plain = Embedded::open(store.dir(), Options { index: false, ..Options::read() });
            if let Some(run) = plain.ok().and_then(|plain| address.run_in(&Arc::new(plain), &[]).ok()) {
                return Ok(run);
            }
        }
        Err(not_found(problem, &**store))
    })
}

/// Returns the first tick whose records are opened, which is that of one run.
fn first_tick(from: Option<&Position>, store: &impl ReadHandle, runs: &[RunName]) -> Result<u64, Problem> {
    match (from, runs) {
        (None, _) => Ok(0),
        (Some(from), [run]) => Ok(from.tick(&Trace::open(store, run)?)?),
        (Some(_), _) => Err(Problem::new(Code::E0106, "--from is a tick of one run; name that run")),
    }
}

/// Returns a run with the last tick that is asked about.
fn last_tick(place: &Position, store: &impl ReadHandle, run: &RunName) -> Result<(RunName, u64), Problem> {
    Ok((run.clone(), place.tick(&Trace::open(store, run)?)?))
}

/// Returns the last ticks that are asked about, of the runs that are not asked about whole. Of several targets of one run the one
/// that reaches farthest is judged: what holds of it holds of the others.
fn last_ticks<'a>(
    targets: impl Iterator<Item = (&'a Address, &'a RunName)>,
    store: &impl ReadHandle,
) -> Result<BTreeMap<RunName, u64>, Problem> {
    let mut ticks: BTreeMap<RunName, Option<u64>> = BTreeMap::new();
    for (address, run) in targets {
        let tick = match &address.pos {
            Some(place) => Some(last_tick(place, store, run)?.1),
            None => None,
        };
        let known = ticks.entry(run.clone()).or_insert(tick);
        *known = known.zip(tick).map(|(known, tick)| known.max(tick));
    }
    Ok(ticks.into_iter().filter_map(|(run, tick)| Some((run, tick?))).collect())
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
