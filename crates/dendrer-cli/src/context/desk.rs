//! The desk of a command: opens stores and bundles, shows progress, and prints what is worth telling before the answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer::Trace;
use dendrer::address::Address;
use dendrer::ask::bisect::question::nothing_to_diagnose;
use dendrer::bundle::Opened;
use dendrer::care::Follow;
use dendrer::casebook::diagnosis::{DiagnosisClass, Offer};
use dendrer::pack::Files;
use dendrer::repo::Repo;
use dendrer::source::{Asked, Desk, QuestionSource};
use dendrer::store::{Embedded, Store};
use dendrer::trust::Trust;
use dendrer::watch::Watch;
use dendrer_object::note::{SigningKey, VerifierKey};
use dendrer_view::answer::Answer;

use super::care::Follower;
use super::keys::{self, read_signer};
use super::packs::beside;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::progress::Progress;

/// The place where a command asks its question.
pub(crate) struct CommandDesk<'d> {
    global: &'d Global,
    out: &'d mut Out,
    progress: Option<Progress>,
    /// The names of files whose texts are members of the question.
    names: Vec<(String, String)>,
    /// The bundle that is read instead of the store.
    file: Option<&'d str>,
    /// Asks a person for the class of a failure.
    decide: Option<Decide<'d>>,
}

type Decide<'d> = Box<dyn Fn(&Offer) -> Result<Option<DiagnosisClass>> + 'd>;

impl<'d> CommandDesk<'d> {
    /// A desk that prints to `out`.
    pub(crate) fn new(global: &'d Global, out: &'d mut Out) -> CommandDesk<'d> {
        CommandDesk { global, out, progress: None, names: Vec::new(), file: None, decide: None }
    }

    /// Has a person decide on the class of a failure.
    pub(crate) fn decides(&mut self, decide: impl Fn(&Offer) -> Result<Option<DiagnosisClass>> + 'd) {
        self.decide = Some(Box::new(decide));
    }

    /// Reads a bundle instead of the store. A file that does not look like one is read as one all the same: an answer about the
    /// store would answer another question.
    pub(crate) fn is_of(&mut self, file: Option<&'d str>) {
        self.file = file;
    }

    /// Names the file whose text is a member of the question.
    pub(crate) fn names(&mut self, member: impl Into<String>, path: Option<&str>) {
        self.names.extend(path.map(|path| (member.into(), path.to_owned())));
    }

    fn path(&self, member: &str) -> Option<&str> {
        self.names.iter().find(|(name, _)| name == member).map(|(_, path)| path.as_str())
    }

    /// Closes the desk, and keeps the progress that it shows until the answer is complete.
    pub(crate) fn into_progress(self) -> Option<Progress> {
        self.progress
    }
}

impl Desk for CommandDesk<'_> {
    fn open(&mut self, address: &Address) -> Result<QuestionSource> {
        super::sound(self.global, address, self.out)
    }

    fn look(&mut self, address: &Address) -> Result<QuestionSource> {
        match self.file.filter(|_| address.bundle.is_none()) {
            Some(file) => {
                let address = Address { bundle: Some(file.to_owned()), ..address.clone() };
                super::source(self.global, &address, self.out)
            }
            None => super::source(self.global, address, self.out),
        }
    }

    fn writable(&mut self) -> Result<Repo> {
        let repo = super::write_store(self.global)?;
        // A key that cannot be used is reported before anything is made.
        repo.signing_key()?;
        Ok(repo)
    }

    fn store(&mut self) -> Result<Repo> {
        Ok(super::read_repo(self.global)?.0)
    }

    fn close(&mut self, repo: Repo) -> Result<()> {
        super::close(repo)
    }

    fn stage(&mut self, what: &'static str, unit: &'static str, total: Option<u64>) -> Watch {
        // The line of an earlier stage is wiped first.
        self.progress = None;
        self.progress.insert(Progress::start(self.global, what, unit, total)).watch()
    }

    fn reader(&mut self) -> Result<Arc<dyn Store>> {
        super::read_store(self.global)
    }

    fn bundle(&mut self, path: &str) -> Result<Opened> {
        super::open_bundle(Some(self.global), path)
    }

    fn has_file(&self, name: &str) -> bool {
        Path::new(name).is_file()
    }

    fn dir(&mut self) -> Result<PathBuf> {
        super::find(self.global)
    }

    fn store_elsewhere(&mut self) -> Result<Option<(String, Repo)>> {
        match super::find(self.global) {
            Ok(path) if super::server::is_address(&path) => {
                Ok(Some((path.display().to_string(), super::read_repo(self.global)?.0)))
            }
            _ => Ok(None),
        }
    }

    fn log_files(&mut self, dir: &Path) -> Result<Embedded> {
        super::embedded(self.global, dir, self.global.reads())
    }

    fn trust(&self) -> Arc<dyn Trust> {
        keys::trust(self.global)
    }

    fn kept_key(&mut self) -> Result<Option<VerifierKey>> {
        self.global.key.as_deref().map_or(Ok(None), keys::read_verifier)
    }

    fn follow(&mut self, what: &'static str) -> Box<dyn Follow + '_> {
        Box::new(Follower::new(self.global, what, self.out))
    }

    fn asks(&mut self, trace: &Trace) {
        self.out.asks(trace);
    }

    fn reads_run(&mut self, trace: &Trace) {
        self.out.reads_run(trace);
    }

    fn note(&mut self, note: String) {
        self.out.say(note);
    }

    fn decide(&mut self, offer: Option<&Offer>) -> Result<Option<DiagnosisClass>> {
        match (&self.decide, offer) {
            (None, _) => Ok(None),
            (Some(_), None) => Err(nothing_to_diagnose()),
            (Some(decide), Some(offer)) => decide(offer),
        }
    }

    fn approver(&mut self) -> Result<Option<SigningKey>> {
        self.path("approver_key").map(read_signer).transpose()
    }

    fn name_of(&self, member: &str) -> String {
        self.path(member).unwrap_or(member).to_owned()
    }

    fn files_of(&self, member: &str) -> Files<'_> {
        self.path(member).map_or(Files::Nowhere, beside)
    }
}

/// Asks a question at the desk of a command.
pub(crate) fn ask<Q: Asked>(global: &Global, question: &Q, out: &mut Out) -> Result<Q::Reply> {
    question.ask(&mut CommandDesk::new(global, out))
}

/// Asks a question, and prints the answer.
pub(crate) fn answer<Q>(global: &Global, question: &Q, out: &mut Out) -> Result
where
    Q: Asked<Reply: Answer>,
{
    let reply = ask(global, question, out)?;
    out.answer(&reply)
}
