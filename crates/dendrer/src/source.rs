//! What a question reads, and the desk at which it is asked.
//!
//! A question names runs by addresses. A [`Desk`] opens them: the program opens files, a server only its store. A [`SourceHead`]
//! keeps where an answer was read, and with which reserve; it is the head of every answer about recorded runs.
//!
//! Rule: a bundle that is not what was signed has no answer about the record; [`QuestionSource::sound`] refuses it. A gate passes over
//! no store of that kind either; [`Desk::open`] and `judged` differ in that.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer_object::note::{SigningKey, VerifierKey};
use dendrer_object::question::Question;
use dendrer_object::{Code, Digest, RunName, Value};
use dendrer_store::embedded::{KeptMemory, Options};
use dendrer_store::{Embedded, Shared, Store};

use crate::address::{Address, Position};
use crate::casebook::diagnosis::{DiagnosisClass, Offer};
use crate::environment::Environment;
use crate::error::Error;
use crate::evidence::bundle::{self, Opened};
use crate::evidence::verify::judge::another_log;
use crate::evidence::verify::opening;
use crate::pack::{self, Files, Source};
use crate::problem::{Problem, READS_ONLY};
use crate::record::recorder::redactor_over;
use crate::record::redacted;
use crate::redact::{Redactor, TakenSecrets};
use crate::repo::follow::Follow;
use crate::repo::keys::log_of;
use crate::repo::mark::hides;
use crate::repo::{Mode, Repo, Warning};
use crate::run::lost::Lost;
use crate::run::trace::Trace;
use crate::run::unfinished::Unfinished;
use crate::trust::{LogTrust, Trust};
use crate::watch::Watch;

/// A store, or a bundle in its place, that is open for reading.
#[derive(Debug, Clone)]
pub struct QuestionSource {
    /// The handle that reads.
    pub store: Arc<dyn Store>,
    /// The runs that a bundle is of; empty for a store.
    pub runs: Vec<RunName>,
    /// The store that is read; `None` for a bundle.
    pub repo: Option<Repo>,
    /// Why it is not what was signed; `None` if nothing speaks against it.
    pub fault: Option<SourceFault>,
    /// The runs of a bundle of which records are or may be missing.
    pub partial: BTreeMap<RunName, Lost>,
}

/// Why a store or a bundle is not what was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFault {
    /// The code under which `dendrer explain` knows it.
    pub code: Code,
    /// The fault in one sentence.
    pub message: String,
    /// The store or the bundle, as a path.
    pub path: String,
    /// The run and the tick that it concerns, as an address; empty if it concerns none.
    pub place: String,
}

impl SourceFault {
    /// The fault of a bundle, by what its opening shows and what is known here of its log.
    fn of_bundle(opened: &Opened, trust: &dyn Trust) -> Option<SourceFault> {
        let path = opened.path.display().to_string();
        let Some(finding) = &opening(opened).fault else {
            let id = opened.store.info().id;
            let head = trust.head(id).ok().flatten().map(|head| (head.size, head.root));
            // The key may lie elsewhere by now: what signed here is remembered.
            let known = || trust.known_keys(id).ok()?.pop();
            let (code, message) = another_log(opened, trust.own_key(id).ok().flatten().or_else(known), head)?;
            return Some(SourceFault { code, message, path, place: String::new() });
        };
        let place = match (&finding.run, finding.tick) {
            (Some(run), Some(tick)) => format!("{run}@{tick}"),
            (Some(run), None) => run.to_string(),
            _ => String::new(),
        };
        Some(SourceFault { code: finding.code, message: finding.message.clone(), path, place })
    }

    /// The problem of a question that has no answer here.
    fn problem(&self, is_store: bool) -> Problem {
        let SourceFault { code, message, path, place } = self;
        let place = if place.is_empty() { String::new() } else { format!(", {place}") };
        let problem = Problem::new(*code, format!("TAMPERED {path}{place}: {message}"));
        match is_store {
            true => problem
                .note("what is asked here is asked of what was recorded, and this store is not that")
                .help(&["dendrer", "verify"]),
            false => problem
                .note("what is asked here is asked of what was recorded, and this file is not that")
                .help(&["dendrer", "verify", path]),
        }
    }
}

impl QuestionSource {
    /// A store.
    ///
    /// # Errors
    ///
    /// An error if the store cannot be read.
    pub fn of_store(repo: Repo) -> Result<QuestionSource, Error> {
        let path = repo.dir().map_or_else(String::new, |dir| dir.display().to_string());
        let fault = fault(repo.warnings());
        let fault = fault.map(|(code, message)| SourceFault { code, message, path, place: String::new() });
        let store = repo.reader()?;
        Ok(QuestionSource { store, runs: Vec::new(), repo: Some(repo), fault, partial: BTreeMap::new() })
    }

    /// A bundle, with what speaks against it: every door to one is this.
    pub fn of_bundle(opened: &Opened, trust: &dyn Trust) -> QuestionSource {
        QuestionSource {
            store: Arc::clone(&opened.store),
            runs: opened.runs.clone(),
            repo: None,
            fault: SourceFault::of_bundle(opened, trust),
            partial: opening(opened).partial.clone(),
        }
    }

    /// Refuses a source that is not what was signed: an answer from it would be taken for one about the record.
    ///
    /// # Errors
    ///
    /// A [`Problem`] with the code of the fault, and its place.
    pub fn sound(self) -> Result<QuestionSource, Problem> {
        let is_store = self.repo.is_some();
        self.fault.as_ref().map_or(Ok(()), |fault| Err(fault.problem(is_store)))?;
        Ok(self)
    }

    /// Returns the runs that were found intact on this machine, each with its newest record at that time. Nothing is
    /// remembered of a bundle.
    pub fn found_intact(&self) -> BTreeMap<String, Digest> {
        self.repo.as_ref().map(Repo::found_intact).unwrap_or_default()
    }

    /// Returns how much of the log is signed and verified here; `None` for a bundle, or if the log cannot be read.
    pub fn log_trust(&self) -> Option<LogTrust> {
        self.repo.as_ref().and_then(|repo| repo.log_trust().ok())
    }

    /// Opens the run that an address means.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if there is no such run, or it cannot be read.
    pub fn trace(&self, address: &Address) -> Result<Trace, Problem> {
        self.trace_through(&self.store, address)
    }

    /// Returns a text that is said of a run as it is recorded ([`clean_text`]).
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the rules of the store, or the run, cannot be read.
    pub fn clean(&self, run: &RunName, text: &str) -> Result<String, Problem> {
        self.repo.as_ref().map_or_else(|| Ok(text.to_owned()), |repo| clean_text(repo, Some(run), text))
    }

    /// As [`QuestionSource::trace`], read through a handle that counts what is read.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if there is no such run, or it cannot be read.
    pub fn trace_through(&self, store: &Arc<dyn Store>, address: &Address) -> Result<Trace, Problem> {
        let run = address.run_in(&self.store, &self.runs)?;
        let lost = self.partial.get(&run).copied();
        Ok(Trace::open(store, &run)?.with_lost(lost))
    }
}

/// A run that a question is about, and its address with the store's spelling of the run.
#[derive(Debug, Clone)]
pub struct QuestionRun {
    /// The place where the run is.
    pub source: QuestionSource,
    /// The address.
    pub address: Address,
    /// The run, read through a handle that counts.
    pub trace: Trace,
    /// What counts the records that are read.
    pub watch: Watch,
}

impl QuestionRun {
    /// Opens another run, which may be in another place. Both are counted together, and two runs of one place are read from
    /// one handle.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the run cannot be read.
    pub fn beside(&self, other: &Address, desk: &mut dyn Desk) -> Result<QuestionRun, Problem> {
        let elsewhere = (other.bundle != self.address.bundle).then(|| desk.judged(other)).transpose()?;
        let source = elsewhere.unwrap_or_else(|| self.source.clone());
        let address = other.clone().resolve(&source.store)?;
        let trace = source.trace_through(&self.watch.over(&source.store), &address)?;
        Ok(QuestionRun { source, address, trace, watch: self.watch.clone() })
    }

    /// Returns the tick that the address names; the last one if it names none.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the run has no such tick.
    pub fn tick(&self) -> Result<u64, Problem> {
        Ok(self.address.pos.as_ref().unwrap_or(&Position::Tip).tick(&self.trace)?)
    }

    /// Returns the tick that either a member or the address names. Both or neither is an error, with `what` as its message.
    ///
    /// # Errors
    ///
    /// E0106, or a [`Problem`] if the run has no such tick.
    pub fn one_tick(&self, member: Option<&Position>, what: &str) -> Result<u64, Problem> {
        match (member, &self.address.pos) {
            (Some(pos), None) | (None, Some(pos)) => Ok(pos.tick(&self.trace)?),
            _ => {
                let run = self.trace.name().as_str();
                Err(Problem::new(Code::E0106, what)
                    .note("nothing was changed")
                    .help(&["dendrer", "log", run]))
            }
        }
    }
}

/// Refuses a range that ends before it begins.
///
/// # Errors
///
/// E0106 names both ticks.
pub fn in_order(from: u64, to: u64) -> Result<(), Problem> {
    if from > to {
        return Err(Problem::new(Code::E0106, format!("--from tick {from} lies behind --to tick {to}")));
    }
    Ok(())
}

/// Refuses an empty list of runs.
///
/// # Errors
///
/// E0106 names the member.
pub fn some_run(runs: &[String]) -> Result<(), Problem> {
    match runs.is_empty() {
        true => Err(Problem::new(Code::E0106, "no run is named: the member \"runs\" lists at least one")),
        false => Ok(()),
    }
}

/// Refuses a member that is given with one that excludes it.
///
/// # Errors
///
/// E0106 names both flags.
pub fn exclude((flag, is_given): (&str, bool), others: &[(&str, bool)]) -> Result<(), Problem> {
    match others.iter().find(|(_, is_other)| is_given && *is_other) {
        Some((other, _)) => Err(Problem::new(Code::E0106, format!("{flag} cannot be used with {other}"))),
        None => Ok(()),
    }
}

/// A question with one answer, given at a desk.
pub trait Asked: Question {
    /// The answer.
    type Reply;

    /// Asks the question.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the question has no answer: a member does not fit, or a run cannot be read.
    fn ask(&self, desk: &mut dyn Desk) -> Result<Self::Reply, Problem>;
}

/// Where an answer was read, and with which reserve.
#[derive(Debug, Clone, Default)]
pub struct SourceHead {
    /// The store and the bundles that were read, as paths, in the order in which they were opened.
    pub read_from: Vec<String>,
    /// Whether a run of stage 0 is asked about: nothing was enforced there.
    pub at_stage_0: bool,
    /// Code and sentence of a record that is not what was signed.
    pub tampered: Option<(Code, String)>,
    /// The runs asked about whose import was stopped before its end.
    pub unfinished: Vec<(RunName, Unfinished)>,
}

impl SourceHead {
    /// A path was read.
    pub fn reads(&mut self, path: String) {
        if !self.read_from.contains(&path) {
            self.read_from.push(path);
        }
    }

    /// A run is asked about.
    pub fn asks(&mut self, trace: &Trace) {
        self.at_stage_0 |= trace.start().body().value("/stage") == Some(Value::from(0_u64));
        self.reads_run(trace);
    }

    /// A run is read: an answer about it is one about a part of its source, if an import of it was stopped before its end.
    pub fn reads_run(&mut self, trace: &Trace) {
        // A record that cannot be read is an error of the question itself.
        if let Ok(Some(found)) = trace.unfinished()
            && self.unfinished.iter().all(|(run, _)| run != trace.name())
        {
            self.unfinished.push((trace.name().clone(), found));
        }
    }
}

/// Returns a run that a bundle has only because another one began as a fork of it, and its last tick there: the run itself
/// may have gone on.
pub fn shared_part(opened: &Opened, address: &Address) -> Option<(RunName, u64)> {
    // An address that means no run is an error of the caller that resolves it.
    let run = address.run.as_ref().and_then(|_| address.run_in(&opened.store, &opened.runs).ok())?;
    let trace = (!opened.runs.contains(&run)).then(|| Trace::open(&opened.store, &run).ok()).flatten()?;
    Some((run, trace.tip()))
}

/// The place where questions are asked: opens what they name, and receives what is worth telling before the answer.
pub trait Desk {
    /// Opens what an address names. A bundle that is not what was signed has no answer.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if it cannot be opened.
    fn open(&mut self, address: &Address) -> Result<QuestionSource, Problem>;

    /// Opens what an address names, to show it: a bundle that is not what was signed is read, and the head of the answer
    /// has the fault.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if it cannot be opened.
    fn look(&mut self, address: &Address) -> Result<QuestionSource, Problem>;

    /// Opens the store for writing, with its key if that is here.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if there is no store, it is damaged, or its key cannot be used.
    fn writable(&mut self) -> Result<Repo, Problem>;

    /// Opens the store for reading, for what is read of it as a whole; warns of nothing.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if there is no store, or it cannot be read.
    fn store(&mut self) -> Result<Repo, Problem> {
        let source = self.open(&Address { bundle: None, run: None, pos: None })?;
        source.repo.ok_or_else(|| Problem::new(Code::E0601, "a bundle is read and never written to"))
    }

    /// Signs the log if its key is here, and closes the store.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the checkpoint cannot be written.
    fn close(&mut self, repo: Repo) -> Result<(), Problem> {
        repo.close()?;
        Ok(())
    }

    /// Opens what is asked for reading, without a warning of what may be missing in it.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if it cannot be opened.
    fn reader(&mut self) -> Result<Arc<dyn Store>, Problem>;

    /// Reads a bundle as it is, to verify it.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if it cannot be read, or is no bundle.
    fn bundle(&mut self, path: &str) -> Result<Opened, Problem>;

    /// Whether a name that no run has is that of a file, which is then read as a bundle.
    fn has_file(&self, _name: &str) -> bool {
        false
    }

    /// Returns the bundle that an address without one means; `None` for a store.
    fn bundle_here(&self) -> Option<String> {
        None
    }

    /// Returns the directory of the store.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if there is no store.
    fn dir(&mut self) -> Result<PathBuf, Problem>;

    /// Opens the store for reading, with its address, if it is no directory; `None` for one that is.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if it cannot be opened.
    fn store_elsewhere(&mut self) -> Result<Option<(String, Repo)>, Problem> {
        Ok(None)
    }

    /// Opens the files of the store in a directory, to verify them; the log may be damaged.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the files cannot be opened.
    fn log_files(&mut self, dir: &Path) -> Result<Embedded, Problem>;

    /// Returns keys and remembered heads.
    fn trust(&self) -> Arc<dyn Trust>;

    /// Returns the public half of the key file that was named; `None` if none was.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the file has no key.
    fn kept_key(&mut self) -> Result<Option<VerifierKey>, Problem> {
        Ok(self.trust().named_key().map_err(Error::from)?)
    }

    /// Returns the follower of work on the files of the store.
    fn follow(&mut self, _what: &'static str) -> Box<dyn Follow + '_> {
        Box::new(())
    }

    /// Begins work that counts records, and returns the watch that it counts into.
    fn watch(&mut self, what: &'static str) -> Watch {
        self.stage(what, "records", None)
    }

    /// Begins work that counts `unit` up to `total`, and returns the watch that it counts into.
    fn stage(&mut self, _what: &'static str, _unit: &'static str, _total: Option<u64>) -> Watch {
        Watch::new()
    }

    /// A run is asked about.
    fn asks(&mut self, _trace: &Trace) {}

    /// A run is read ([`SourceHead::reads_run`]).
    fn reads_run(&mut self, _trace: &Trace) {}

    /// A note on the answer.
    fn note(&mut self, _note: String) {}

    /// Returns the class of a failure that a person decides on; `None` if no person is asked.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if there is no class to decide on, or no person to ask.
    fn decide(&mut self, _offer: Option<&Offer>) -> Result<Option<DiagnosisClass>, Problem> {
        Ok(None)
    }

    /// Returns where the answer was read, and with which reserve.
    fn head(&self) -> SourceHead {
        SourceHead::default()
    }

    /// Returns the key with which an approver signs; `None` if no approver signs here.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the key cannot be read.
    fn approver(&mut self) -> Result<Option<SigningKey>, Problem> {
        Ok(None)
    }

    /// Returns the name, for messages, of the text that a member of the question contains.
    fn name_of(&self, member: &str) -> String {
        member.to_owned()
    }

    /// Returns where the files are that the text of a member names.
    fn files_of(&self, _member: &str) -> Files<'_> {
        Files::Nowhere
    }
}

impl dyn Desk + '_ {
    /// Opens what an address names for a gate: neither a bundle nor a store that is not what was signed has an answer.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if it cannot be opened, or is not what was signed.
    pub fn judged(&mut self, address: &Address) -> Result<QuestionSource, Problem> {
        self.open(address)?.sound()
    }

    /// As [`run`](Self::run), for a gate.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the run cannot be read, or what it is in is not what was signed.
    pub fn judged_run(&mut self, address: &Address, what: &'static str) -> Result<QuestionRun, Problem> {
        let source = self.judged(address)?;
        let found = self.run_in(source, address, what)?;
        self.asks(&found.trace);
        Ok(found)
    }

    /// Opens the run that an address means, and counts what is read of it.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the run cannot be read.
    pub fn run(&mut self, address: &Address, what: &'static str) -> Result<QuestionRun, Problem> {
        let source = self.open(address)?;
        let found = self.run_in(source, address, what)?;
        self.asks(&found.trace);
        Ok(found)
    }

    /// Opens a run of a source, and counts what is read of it.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the run cannot be read.
    pub fn run_in(
        &mut self,
        source: QuestionSource,
        address: &Address,
        what: &'static str,
    ) -> Result<QuestionRun, Problem> {
        let address = address.clone().resolve(&source.store)?;
        let watch = self.watch(what);
        let trace = source.trace_through(&watch.over(&source.store), &address)?;
        self.reads_run(&trace);
        Ok(QuestionRun { source, address, trace, watch })
    }

    /// Opens a run, and finds the tick up to which it is asked about: that of its address, that of a flag, or its last.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the run cannot be read, or its tick is named twice.
    pub fn up_to(&mut self, run: &str, at: Option<&Position>) -> Result<(Trace, u64), Problem> {
        let address = Address::parse(run)?;
        let source = self.open(&address)?;
        self.up_to_in(source, address, at)
    }

    /// As [`up_to`](Self::up_to), for a gate.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the run cannot be read, or what it is in is not what was signed.
    pub fn judged_up_to(&mut self, run: &str) -> Result<(Trace, u64), Problem> {
        let address = Address::parse(run)?;
        let source = self.judged(&address)?;
        self.up_to_in(source, address, None)
    }

    fn up_to_in(
        &mut self,
        source: QuestionSource,
        address: Address,
        at: Option<&Position>,
    ) -> Result<(Trace, u64), Problem> {
        let is_moment = address.pos.is_some();
        let address = address.resolve(&source.store)?;
        let trace = source.trace(&address)?;
        self.reads_run(&trace);
        let upto = address.pos.as_ref().map_or(Ok(trace.tip()), |position| position.tick(&trace))?;
        let Some(at) = at else { return Ok((trace, upto)) };
        if is_moment {
            return Err(Problem::new(Code::E0106, "say the tick once: RUN@TICK, or the flag"));
        }
        let upto = at.tick(&trace)?;
        Ok((trace, upto))
    }

    /// Opens several runs, each as [`up_to`](Self::up_to) does.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if none is named, or one cannot be read.
    pub fn each_up_to(&mut self, runs: &[String]) -> Result<Vec<(Trace, u64)>, Problem> {
        some_run(runs)?;
        runs.iter().map(|run| self.up_to(run, None)).collect()
    }

    /// Opens the store for a question that makes a run of others. A dry run proposes through the handle that reads them: what
    /// is proposed is discarded, and an append would fail.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the store cannot be written.
    pub fn target(&mut self, source: &QuestionSource, is_dry: bool) -> Result<Repo, Problem> {
        match (is_dry, &source.repo) {
            (true, Some(repo)) => Ok(repo.clone()),
            _ => self.writable(),
        }
    }

    /// Reads the pack whose text a member of the question contains.
    ///
    /// # Errors
    ///
    /// E0900 lists the faults of the pack.
    pub fn pack(&self, member: &str, text: &str) -> Result<Source, Problem> {
        let read = pack::read_with(text.as_bytes(), self.files_of(member));
        read.map_err(|problems| pack::unsound(&self.name_of(member), &problems))
    }

    /// Writes into the casebook of the store, and signs the log.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the store cannot be written.
    pub fn write_down<T>(
        &mut self,
        write: impl FnOnce(&Shared, Box<dyn Environment>) -> Result<T, Error>,
    ) -> Result<T, Problem> {
        let repo = self.writable()?;
        let made = write(repo.writer()?, repo.environment())?;
        self.close(repo)?;
        Ok(made)
    }
}

/// What a [`StoreDesk`] asks: a store, or a bundle.
#[derive(Debug)]
pub enum QuestionPlace {
    /// A store that is open for reading.
    Store(Repo),
    /// A bundle.
    Bundle(Box<Opened>),
}

impl QuestionPlace {
    /// Opens a store by its directory, or a bundle by its file.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the path is neither, or cannot be read.
    pub fn open(path: &Path, trust: &Arc<dyn Trust>) -> Result<QuestionPlace, Problem> {
        QuestionPlace::open_with(path, trust, Options::read())
    }

    /// As [`QuestionPlace::open`], for a server: what follows from the log is kept in memory, and not in the index of the
    /// store.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the path is neither, or cannot be read.
    pub fn open_untouched(path: &Path, trust: &Arc<dyn Trust>) -> Result<QuestionPlace, Problem> {
        QuestionPlace::open_with(
            path,
            trust,
            Options { memory: Some(KeptMemory::default()), ..Options::read() },
        )
    }

    fn open_with(path: &Path, trust: &Arc<dyn Trust>, options: Options) -> Result<QuestionPlace, Problem> {
        match path.is_file() {
            true => Ok(QuestionPlace::Bundle(Box::new(open_bundle(path)?))),
            false => {
                let repo = Repo::open_with(path, Arc::clone(trust), options, Mode::Read)?;
                Ok(QuestionPlace::Store(repo))
            }
        }
    }
}

/// The desk of a program that has one store, or one bundle, and no person to ask.
#[derive(Debug)]
pub struct StoreDesk<'p> {
    place: &'p QuestionPlace,
    trust: &'p Arc<dyn Trust>,
    head: SourceHead,
    /// Counts and stops the reads of a question of a server.
    watch: Option<Watch>,
}

impl<'p> StoreDesk<'p> {
    /// A desk for one question.
    pub fn new(place: &'p QuestionPlace, trust: &'p Arc<dyn Trust>) -> StoreDesk<'p> {
        StoreDesk { place, trust, head: SourceHead::default(), watch: None }
    }

    /// A desk of a server: an address that names a file is refused, nothing is written, and `watch` counts and stops what is
    /// read.
    pub fn confined(self, watch: Watch) -> StoreDesk<'p> {
        StoreDesk { watch: Some(watch), ..self }
    }

    /// Refuses a file that a question names at the desk of a server.
    fn refuse_file(&self, path: &str) -> Result<(), Problem> {
        let is_served = matches!(self.place, QuestionPlace::Bundle(opened) if Path::new(path) == opened.path);
        match self.watch.is_some() && !is_served {
            true => Err(Problem::new(
                Code::E0106,
                format!("{path} names a file: runs of the served source alone are asked"),
            )),
            false => Ok(()),
        }
    }

    fn reads(&mut self, path: &Path) {
        let here = std::env::current_dir().ok();
        let shown = here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
        self.head.reads(shown.display().to_string());
    }

    /// Reads a bundle. One that is not what was signed is refused, or its fault stands in the head.
    fn bundle(&mut self, opened: &Opened, must_be_sound: bool) -> Result<QuestionSource, Problem> {
        self.reads(&opened.path);
        let source = QuestionSource::of_bundle(opened, &**self.trust);
        if must_be_sound {
            return source.sound();
        }
        if let Some(fault) = &source.fault {
            self.head.tampered = Some((fault.code, fault.message.clone()));
        }
        Ok(source)
    }

    fn read(&mut self, address: &Address, must_be_sound: bool) -> Result<QuestionSource, Problem> {
        let place = self.place;
        address.bundle.as_deref().map_or(Ok(()), |path| self.refuse_file(path))?;
        match (&address.bundle, place) {
            (None, QuestionPlace::Store(repo)) => {
                self.reads(repo.dir().unwrap_or(Path::new("")));
                let source = QuestionSource::of_store(repo.clone())?;
                // A store without a fault does not take back that of a bundle.
                let fault = source.fault.as_ref().map(|fault| (fault.code, fault.message.clone()));
                self.head.tampered = fault.or(self.head.tampered.take());
                Ok(source)
            }
            (None, QuestionPlace::Bundle(opened)) => self.bundle(opened, must_be_sound),
            (Some(path), QuestionPlace::Bundle(opened)) if Path::new(path) == opened.path => {
                self.bundle(opened, must_be_sound)
            }
            (Some(path), _) => self.bundle(&open_bundle(Path::new(path))?, must_be_sound),
        }
    }
}

/// Reads a bundle file.
fn open_bundle(path: &Path) -> Result<Opened, Problem> {
    let file = File::open(path)
        .map_err(|error| Problem::new(Code::E0801, format!("cannot read {}: {error}", path.display())))?;
    Ok(bundle::open(path.to_owned(), BufReader::new(file))?)
}

impl Desk for StoreDesk<'_> {
    fn open(&mut self, address: &Address) -> Result<QuestionSource, Problem> {
        self.read(address, true)
    }

    fn look(&mut self, address: &Address) -> Result<QuestionSource, Problem> {
        self.read(address, false)
    }

    fn writable(&mut self) -> Result<Repo, Problem> {
        if self.watch.is_some() {
            return Err(Problem::new(Code::E0601, READS_ONLY));
        }
        let QuestionPlace::Store(repo) = self.place else {
            return Err(Problem::new(Code::E0601, "a bundle is read and never written to"));
        };
        let dir = repo.dir().unwrap_or(Path::new(""));
        let repo = Repo::open_with(dir, Arc::clone(self.trust), Options::write(), Mode::Write)?;
        // A key that is not here, or cannot be used, is reported before anything is made.
        repo.check_writer()?;
        Ok(repo)
    }

    fn reader(&mut self) -> Result<Arc<dyn Store>, Problem> {
        match self.place {
            QuestionPlace::Store(repo) => Ok(repo.reader()?),
            QuestionPlace::Bundle(opened) => Ok(Arc::clone(&opened.store)),
        }
    }

    fn bundle(&mut self, path: &str) -> Result<Opened, Problem> {
        self.refuse_file(path)?;
        open_bundle(Path::new(path))
    }

    fn has_file(&self, name: &str) -> bool {
        self.watch.is_none() && Path::new(name).is_file()
    }

    fn follow(&mut self, _: &'static str) -> Box<dyn Follow + '_> {
        Box::new(self.watch.clone().unwrap_or_default())
    }

    fn stage(&mut self, _: &'static str, _: &'static str, _: Option<u64>) -> Watch {
        self.watch.clone().unwrap_or_default()
    }

    fn bundle_here(&self) -> Option<String> {
        match self.place {
            QuestionPlace::Store(_) => None,
            QuestionPlace::Bundle(opened) => Some(opened.path.display().to_string()),
        }
    }

    fn dir(&mut self) -> Result<PathBuf, Problem> {
        let dir = match self.place {
            QuestionPlace::Store(repo) => repo.dir(),
            QuestionPlace::Bundle(_) => None,
        };
        dir.map(Path::to_owned).ok_or_else(|| Problem::new(Code::E0103, "no store is asked here"))
    }

    fn log_files(&mut self, dir: &Path) -> Result<Embedded, Problem> {
        let store = Embedded::open(dir, Options::read()).map_err(Error::from)?;
        // A key that cannot be used is reported by the question that needs one.
        let key = log_of(&store).ok().and_then(|log| self.trust.key(&log).ok().flatten());
        Ok(store.with_key(key))
    }

    fn trust(&self) -> Arc<dyn Trust> {
        Arc::clone(self.trust)
    }

    fn asks(&mut self, trace: &Trace) {
        self.head.asks(trace);
    }

    fn reads_run(&mut self, trace: &Trace) {
        self.head.reads_run(trace);
    }

    fn head(&self) -> SourceHead {
        self.head.clone()
    }
}

/// Returns code and sentence of the fault for which records of a store may be missing; `None` if its log is whole.
pub fn fault(warnings: &[Warning]) -> Option<(Code, String)> {
    let words = |warning: &Warning| match warning {
        Warning::Damaged(error) => Some(error.to_string()),
        Warning::Hidden(found) => Some(hides(found).unwrap_or_default()),
        Warning::AnotherLog(why) => Some(why.to_string()),
        _ => None,
    };
    warnings.iter().filter_map(|warning| Some((warning.code(), words(warning)?))).next_back()
}

/// The redactor of a text about a run: by the rules of the store, and it knows the secrets that the run took.
///
/// # Errors
///
/// A [`Problem`] if the rules of the store, or the run, cannot be read.
pub fn redactor_of_run(repo: &Repo, run: Option<&RunName>, said: &Value) -> Result<Arc<Redactor>, Problem> {
    let redactor = repo.redactor(None)?;
    let Some(run) = run else { return Ok(redactor) };
    Ok(redactor_over(redactor, &Trace::open(&repo.reader()?, run)?, said)?)
}

/// A name of a question as it is recorded: the name of its rule replaces a secret, in letters that a name has.
///
/// # Errors
///
/// A [`Problem`] if the rules of the store, or the run, cannot be read.
pub fn clean_name(repo: &Repo, run: Option<&RunName>, name: &str) -> Result<String, Problem> {
    let (clean, _) = redacted::place(&*redactor_of_run(repo, run, &Value::from(name))?, name);
    if clean == name {
        return Ok(clean);
    }
    let letters = clean.replace(|c: char| !(c.is_ascii_alphanumeric() || "._".contains(c)), "-");
    Ok(letters.trim_matches('-').to_owned())
}

/// The content of a record without its secrets, with those that were taken: a recorder would take the same out of it.
pub fn clean_content(redactor: &Redactor, content: &Value) -> (Value, TakenSecrets) {
    redacted::content(redactor, content)
}

/// A value of an answer as it is recorded: without its secrets, by the rules of the store.
///
/// # Errors
///
/// A [`Problem`] if the rules of the store cannot be read.
pub fn clean_value(repo: &Repo, value: &Value) -> Result<Value, Problem> {
    Ok(repo.redactor(None)?.value(value).0)
}

/// A text that is said of a run as it is recorded: without secrets, by the rules of the store, and those that the run took.
///
/// # Errors
///
/// A [`Problem`] if the rules of the store, or the run, cannot be read.
pub fn clean_text(repo: &Repo, run: Option<&RunName>, text: &str) -> Result<String, Problem> {
    Ok(redactor_of_run(repo, run, &Value::from(text))?.text(text).0)
}
