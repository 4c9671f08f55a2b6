//! A store that is opened safely, and everything that is done with it.
//!
//! [`Repo::open`] compares the log with the newest head that this user signed. A log that is shorter, or has other records, can
//! be read and never written. Nothing is printed: [`Repo::warnings`] returns what was found.
//!
//! Rule: a log is signed only within a [turn](Trust::turn), after it was compared with the remembered head, and the new head is
//! remembered before its signature can be seen; test `an_older_store_is_read_and_never_written_or_signed`.

pub mod follow;
pub mod heads;
pub mod keys;
pub mod locate;
mod map;
pub mod mark;
pub mod new_run;
mod redaction;
mod resolve;
mod warnings;
mod writers;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use dendrer_kernel::step::Start;
use dendrer_object::keys::LogKeys;
use dendrer_object::map::LogCount;
use dendrer_object::note::{Checkpoint, SignedNote, SigningKey};
use dendrer_object::{Digest, RunName, StoreId, Value};
use dendrer_store::embedded::{Embedded, Options};
use dendrer_store::prelude::*;
use dendrer_store::{
    LastRecord, Memory, ReadLog, RunSummary, Shared, Store, StoreError, StoreInfo, TreeHead,
};
use ring::rand::{SecureRandom, SystemRandom};

use crate::address::Address;
use crate::error::{Error, LogDiffers, TrustError};
use crate::record::recorder::{Environment, REDACT, Recorder, World, begin_log_with};
use crate::record::redacted;
use crate::redact::{RedactionProfile, Redactor};
use crate::run::trace::{Trace, all_runs};
use crate::trust::{LogTrust, MemoryTrust, SigningTurn, Trust, make_key};
use crate::vault::Vault;
use crate::watch::Watch;

pub use redaction::{SecretVariable, redactor, secret_variables};
pub use warnings::{Warning, is_of_the_log, warnings};
pub use writers::{writer_of, writer_secret};

/// Whether a store is opened to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// For reading: takes no lock, also of a store that cannot be written. A proposal can be looked at and discarded (a dry
    /// run); committing it fails.
    Read,
    /// For reading and writing: fails for a log that is not the one that was signed here, and for damage where opening reads
    /// (the end of the log and what is signed). [`Repo::verify`] reads all of it.
    Write,
}

/// A store that was opened. Clones share one handle.
#[derive(Debug, Clone)]
pub struct Repo {
    inner: Arc<Inner>,
    watch: Option<Watch>,
}

struct Inner {
    trust: Arc<dyn Trust>,
    mode: Mode,
    /// The handle that recorders use. Opened when first needed if the store was opened for reading: then it cannot append.
    writer: OnceLock<Shared>,
    reader: Mutex<Arc<dyn Store>>,
    /// The place of the store, and the options with which a reader of it is opened; `None` for a store that is no directory.
    place: Option<(PathBuf, Options)>,
    /// The largest log that was read.
    read_to: Mutex<TreeHead>,
    /// The files that the reader has open.
    files: Mutex<Option<String>>,
    /// Whether the log was the one that was signed here when it was opened for reading, and no backup.
    had_head: bool,
    info: StoreInfo,
    key: Option<Arc<SigningKey>>,
    warnings: Vec<Warning>,
    environment: Box<dyn Fn() -> Box<dyn Environment> + Send + Sync>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("info", &self.info).field("place", &self.place).finish_non_exhaustive()
    }
}

/// Result of signing.
#[derive(Debug)]
pub enum Signed {
    /// The log is signed as it is.
    UpTo {
        /// The signed checkpoint.
        note: SignedNote,
        /// Why the head could not be remembered, if it could not: a rollback to before it would not show.
        not_remembered: Option<TrustError>,
    },
    /// The key of the log is not here: records are committed, and no checkpoint is signed.
    NoKey,
}

impl Repo {
    /// Makes a store in a directory that has none, with a new key, and signs its first checkpoint. `dir` is the directory of the
    /// store itself, usually `.dendrer`.
    pub fn init(dir: &Path, trust: Arc<dyn Trust>) -> Result<Repo, Error> {
        let id = new_id()?;
        let key = Arc::new(make_key(&id.origin())?);
        trust.keep_key(id, &key)?;
        match Repo::create(dir, id, &key, &trust) {
            Ok(repo) => Ok(repo),
            Err(error) => {
                // A store that was made keeps its key: without it the log is never signed.
                if !Embedded::open(dir, Options::read()).is_ok_and(|store| store.info().id == id) {
                    trust.drop_key(id);
                }
                Err(error)
            }
        }
    }

    /// Makes a store with an id and a key that are kept already.
    pub fn create(
        dir: &Path,
        id: StoreId,
        key: &Arc<SigningKey>,
        trust: &Arc<dyn Trust>,
    ) -> Result<Repo, Error> {
        Repo::create_with(dir, id, key, trust, RedactionProfile::Default)
    }

    /// As [`Repo::create`], with the profile by which runs of the store are redacted where nothing else is asked for.
    pub fn create_with(
        dir: &Path,
        id: StoreId,
        key: &Arc<SigningKey>,
        trust: &Arc<dyn Trust>,
        profile: RedactionProfile,
    ) -> Result<Repo, Error> {
        let io = |source| StoreError::Io { action: "make", path: dir.to_owned(), source };
        std::fs::create_dir_all(dir).map_err(io)?;
        let info = StoreInfo::new(id, key.verifier_key().clone());
        let mut store = Embedded::create(dir, info, Options::write())?.with_key(Some(Arc::clone(key)));
        begin_log_with(&mut store, &mut World::default(), profile)?;
        let repo = Repo::of(
            Shared::new(Box::new(store)),
            Some((dir, Options::read())),
            Arc::clone(trust),
            Vec::new(),
        )?;
        repo.sign()?;
        Ok(repo)
    }

    /// Makes a store in memory with a key of its own. Both are lost with the handle: for a rehearsal of what is recorded.
    pub fn in_memory(profile: RedactionProfile) -> Result<Repo, Error> {
        let id = new_id()?;
        let key = Arc::new(make_key(&id.origin())?);
        let trust: Arc<dyn Trust> = Arc::new(MemoryTrust::new());
        trust.keep_key(id, &key)?;
        let mut store =
            Memory::new(StoreInfo::new(id, key.verifier_key().clone())).with_key(Some(Arc::clone(&key)));
        begin_log_with(&mut store, &mut World::default(), profile)?;
        Repo::of(Shared::new(Box::new(store)), None, trust, Vec::new())
    }

    /// Opens the store in a directory.
    pub fn open(dir: &Path, trust: Arc<dyn Trust>, mode: Mode) -> Result<Repo, Error> {
        let (read, write) = (Options::read(), Options::write());
        Repo::open_with(dir, trust, if mode == Mode::Read { read.clone() } else { write }, mode)
    }

    /// As [`Repo::open`], with options of the embedded store.
    pub fn open_with(dir: &Path, trust: Arc<dyn Trust>, options: Options, mode: Mode) -> Result<Repo, Error> {
        let reads = Options { index: options.index, ..Options::read() };
        let files = files_of(dir);
        let mut store = Embedded::open(dir, options)?;
        // A key that cannot be used is reported when something is to be signed.
        let key = keys::log_of(&store).ok().and_then(|log| trust.key(&log).ok().flatten());
        store = store.with_key(key);
        store.set_writer(writer_of(&*trust, &store));
        match mode {
            Mode::Read => {
                let warnings = warnings::warnings(&mut store, &*trust)?;
                let (info, key) = (store.info().clone(), store.key().cloned());
                let inner = Inner {
                    had_head: warnings.is_empty() && store.mark()?.is_none(),
                    read_to: Mutex::new(store.tree()),
                    files: Mutex::new(files),
                    trust,
                    mode,
                    writer: OnceLock::new(),
                    reader: Mutex::new(Arc::new(store)),
                    place: Some((dir.to_owned(), reads)),
                    info,
                    key,
                    warnings,
                    environment: system(),
                };
                Ok(Repo { inner: Arc::new(inner), watch: None })
            }
            Mode::Write => {
                refuse_damage(&store)?;
                heads::refuse_rollback(&mut store, &*trust)?;
                keys::refuse_changed(&store, &*trust)?;
                let repo = Repo::of(Shared::new(Box::new(store)), Some((dir, reads)), trust, Vec::new())?;
                repo.settle_keys()?;
                Ok(repo)
            }
        }
    }

    /// Uses any store. It is compared with the newest head signed here like one in a directory.
    pub fn over(mut store: Box<dyn Store>, trust: Arc<dyn Trust>) -> Result<Repo, Error> {
        refuse_damage(&*store)?;
        if let Some(head) = trust.head(store.info().id)? {
            store.refresh()?;
            if let Some(why) = heads::compare_hashes(&*store, head)? {
                return Err(Error::AnotherLog { why, committed: false });
            }
        }
        keys::refuse_changed(&*store, &*trust)?;
        let writer = writer_of(&*trust, &*store);
        store.set_writer(writer);
        Repo::of(Shared::new(store), None, trust, Vec::new())
    }

    /// As [`Repo::over`], of a store that takes no records through this handle: damage and loss are warnings, and what is there
    /// can be read.
    pub fn read_over(mut store: Box<dyn Store>, trust: Arc<dyn Trust>) -> Result<Repo, Error> {
        let writer = writer_of(&*trust, &*store);
        store.set_writer(writer);
        let warnings = warnings::warnings_over(&mut *store, &*trust)?;
        let had_head = warnings.is_empty();
        let mut repo = Repo::of(Shared::new(store), None, trust, warnings)?;
        let inner = Arc::get_mut(&mut repo.inner).expect("the handle was made just now");
        (inner.mode, inner.had_head) = (Mode::Read, had_head);
        Ok(repo)
    }

    /// Begins the log of an empty store of any kind, whose key is kept already, and signs its first checkpoint.
    pub fn create_over(
        mut store: Box<dyn Store>,
        trust: Arc<dyn Trust>,
        profile: RedactionProfile,
    ) -> Result<Repo, Error> {
        let writer = writer_of(&*trust, &*store);
        store.set_writer(writer);
        begin_log_with(&mut *store, &mut World::default(), profile)?;
        let repo = Repo::of(Shared::new(store), None, trust, Vec::new())?;
        repo.sign()?;
        Ok(repo)
    }

    fn of(
        store: Shared,
        place: Option<(&Path, Options)>,
        trust: Arc<dyn Trust>,
        warnings: Vec<Warning>,
    ) -> Result<Repo, Error> {
        let (info, key) = (store.info().clone(), store.key().cloned());
        let inner = Inner {
            read_to: Mutex::new(store.tree()),
            files: Mutex::new(None),
            had_head: false,
            trust,
            reader: Mutex::new(Arc::new(store.clone())),
            mode: Mode::Write,
            writer: store.into(),
            place: place.map(|(dir, options)| (dir.to_owned(), options)),
            info,
            key,
            warnings,
            environment: system(),
        };
        Ok(Repo { inner: Arc::new(inner), watch: None })
    }

    /// Returns the store in a directory or in the nearest one above it.
    pub fn find(from: &Path) -> Result<PathBuf, Error> {
        locate::find(from)
    }

    /// Takes clock and seeds from elsewhere than the system.
    ///
    /// # Panics
    ///
    /// If the handle was cloned before.
    #[must_use]
    pub fn with_environment(
        mut self,
        environment: impl Fn() -> Box<dyn Environment> + Send + Sync + 'static,
    ) -> Repo {
        let inner =
            Arc::get_mut(&mut self.inner).expect("the environment is set before the handle is cloned");
        inner.environment = Box::new(environment);
        self
    }

    /// Returns a handle whose reads count into a watch, which can stop them.
    #[must_use]
    pub fn watched(&self, watch: Watch) -> Repo {
        Repo { inner: Arc::clone(&self.inner), watch: Some(watch) }
    }

    /// Returns what was found wrong with the store as a whole when it was opened.
    pub fn warnings(&self) -> &[Warning] {
        &self.inner.warnings
    }

    /// Id, key and format of the store.
    pub fn info(&self) -> &StoreInfo {
        &self.inner.info
    }

    /// Directory of the store; `None` for a store that is no directory.
    pub fn dir(&self) -> Option<&Path> {
        self.inner.place.as_ref().map(|(dir, _)| &**dir)
    }

    /// Returns the runs that were found intact on this machine, each with its newest record at that time. Nothing is known if
    /// a file of the log has changed since.
    pub fn found_intact(&self) -> BTreeMap<String, Digest> {
        let seen = self.inner.trust.seen(self.inner.info.id).zip(self.dir());
        seen.map(|(seen, dir)| seen.known(dir)).unwrap_or_default()
    }

    /// Returns how much of the log is signed, and how much of it was verified on this machine.
    ///
    /// # Errors
    ///
    /// An error if the store cannot be read.
    pub fn log_trust(&self) -> Result<LogTrust, Error> {
        let (store, info) = (self.reader()?, self.info());
        let size = store.tree().size;
        let holds = |head: &TreeHead| {
            head.size <= size && store.root_of(head.size).is_ok_and(|root| root == Some(head.root))
        };
        let note = store.checkpoint().ok().flatten();
        let keys = store.keys()?;
        let signed = note.and_then(|note| keys.open(&note).ok());
        let signed = signed.map(|signed| TreeHead { size: signed.size(), root: signed.root() });
        let verified = self.inner.trust.seen(info.id).and_then(|seen| seen.log());
        let size_of = |head: Option<TreeHead>| head.filter(holds).map_or(0, |head| head.size);
        let tagged = store.untagged()?.map(|groups| groups.first().map_or(size, |first| first.start));
        Ok(LogTrust { size, signed: size_of(signed), tagged, verified: size_of(verified) })
    }

    /// Fails for a handle that writes and has neither the key of the log nor a writer's secret: its records would look
    /// like those of a stranger. So it does where such records follow what is signed.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoWriter`], [`StoreError::Untagged`], [`TrustError::NotTheSecret`], or why a key that is here cannot be used.
    pub fn check_writer(&self) -> Result<(), Error> {
        let inner = &*self.inner;
        if inner.mode == Mode::Read {
            return Ok(());
        }
        let mut writer = self.writer()?.clone();
        writer.refresh()?;
        let log = self.log()?;
        let has_key = inner.key.as_ref().is_some_and(|key| *key.verifier_key() == log.key);
        if !has_key && writer_secret(&*inner.trust, &writer)?.is_none() {
            return Err(StoreError::NoWriter.into());
        }
        Ok(StoreError::refuse_untagged(&writer.untagged()?.unwrap_or_default())?)
    }

    /// Key of the log, if it is here and can be used.
    pub fn key(&self) -> Option<&Arc<SigningKey>> {
        self.inner.key.as_ref()
    }

    /// Keys and remembered heads that this handle uses.
    pub fn trust(&self) -> &Arc<dyn Trust> {
        &self.inner.trust
    }

    /// Returns the handle that recorders use. Of a store that was opened for reading it takes proposals, and fails to append.
    pub fn writer(&self) -> Result<&Shared, Error> {
        let inner = &*self.inner;
        if let Some(writer) = inner.writer.get() {
            return Ok(writer);
        }
        let (dir, options) = inner.place.as_ref().expect("a store that is no directory has a writer");
        let store = open_with_keys(dir, options.clone(), inner.key.clone(), &*inner.trust)?;
        Ok(inner.writer.get_or_init(|| Shared::new(Box::new(store))))
    }

    /// Opens the vault of the store: exact bytes that may hold secrets, encrypted under a key beside the signing key.
    pub fn vault(&self) -> Result<Vault, Error> {
        Ok(Vault::open(self.writer()?, Arc::clone(self.trust())))
    }

    /// Returns a handle for reading that has everything committed so far, by other processes too.
    ///
    /// # Errors
    ///
    /// [`Error::AnotherLog`] if the log no longer begins with what this handle has read, or with what was signed here since it
    /// was opened: it was rolled back, or another is in its place.
    pub fn reader(&self) -> Result<Arc<dyn Store>, Error> {
        let handle = self.fresh_reader()?;
        Ok(match &self.watch {
            Some(watch) => watch.over(&handle),
            None => handle,
        })
    }

    fn fresh_reader(&self) -> Result<Arc<dyn Store>, Error> {
        // Asked before the log is read: another process may sign a longer one at any time, and a log that was signed before is
        // on disk.
        let head = self.signed_here()?;
        let mut reader = self.inner.reader.lock().unwrap_or_else(PoisonError::into_inner);
        match (self.inner.mode, &self.inner.place) {
            (Mode::Read, Some((dir, options))) => {
                let mut files = self.inner.files.lock().unwrap_or_else(PoisonError::into_inner);
                let now = files_of(dir);
                match Arc::get_mut(&mut reader).filter(|_| now == *files) {
                    Some(handle) => drop(handle.refresh()?),
                    // Traces keep the handle as it is, and the files of a store that was replaced are no longer in its place.
                    None => {
                        let (key, trust) = (self.inner.key.clone(), &*self.inner.trust);
                        let fresh = open_with_keys(dir, options.clone(), key, trust)?;
                        *reader = Arc::new(fresh);
                        *files = now;
                    }
                }
            }
            _ => drop(self.writer()?.clone().refresh()?),
        }
        self.refuse_older(&**reader, head)?;
        Ok(Arc::clone(&reader))
    }

    /// Returns the head that was signed here last, if there was one when the handle was opened.
    fn signed_here(&self) -> Result<Option<TreeHead>, Error> {
        match self.inner.had_head {
            true => Ok(self.inner.trust.head(self.inner.info.id)?),
            false => Ok(None),
        }
    }

    /// Fails if a log does not extend what was read before, or what was signed here since the handle was opened. An older log
    /// that was met at opening is a [warning](Repo::warnings).
    fn refuse_older(&self, store: &dyn Store, head: Option<TreeHead>) -> Result<(), Error> {
        let mut read_to = self.inner.read_to.lock().unwrap_or_else(PoisonError::into_inner);
        let tree = store.tree();
        let mut differs = if tree == *read_to { None } else { heads::compare(store, *read_to)? };
        if differs.is_none()
            && let Some(head) = head
        {
            differs = heads::compare(store, head)?;
        }
        if let Some(why) = differs {
            return Err(Error::AnotherLog { why, committed: false });
        }
        *read_to = tree;
        Ok(())
    }

    /// Lists the runs in the order in which they began.
    pub fn runs(&self) -> Result<Vec<RunSummary>, Error> {
        all_runs(&*self.reader()?)
    }

    /// Opens a run as it is now.
    pub fn run(&self, run: &RunName) -> Result<Trace, Error> {
        Trace::open(&self.reader()?, run)
    }

    /// Opens the run that an address means, and returns the tick that it names, if it names one.
    pub fn at(&self, address: &Address) -> Result<(Trace, Option<u64>), Error> {
        let reader = self.reader()?;
        let address = address.clone().resolve(&reader)?;
        let trace = address.trace_in(&reader, &[])?;
        let tick = address.pos.as_ref().map(|pos| pos.tick(&trace)).transpose()?;
        Ok((trace, tick))
    }

    /// Begins a run. Its `run` record is part of the first group that is committed: until [`Recorder::commit`] nothing of it is
    /// durable, and another process may begin a run of the same name.
    ///
    /// # Errors
    ///
    /// [`StoreError::RunExists`] for a name that is taken, here or by the first commit.
    ///
    /// Secrets are taken out of the beginning, and of all that is proposed later, by the rules of the store and of the pack
    /// ([`Repo::redactor`]).
    pub fn begin(&self, start: &Start) -> Result<Recorder, Error> {
        let redactor = self.redactor(start.pack.as_ref().map(|bound| &bound.value))?;
        self.begin_redacted(start, redactor)
    }

    /// As [`Repo::begin`], by other rules.
    pub fn begin_redacted(&self, start: &Start, redactor: Arc<Redactor>) -> Result<Recorder, Error> {
        self.check_writer()?;
        let clean = redacted::start(&redactor, start);
        let recorder = Recorder::begin(self.writer()?, &clean, (self.inner.environment)())?;
        Ok(recorder.redacting(Some(redactor)))
    }

    /// Goes on with a run. Secrets are taken out of what is proposed, as [`Repo::begin`] says.
    pub fn recorder(&self, run: &RunName) -> Result<Recorder, Error> {
        let recorder = self.recorder_plain(run)?;
        let pack = recorder.head().in_force();
        Ok(recorder.redacting(Some(self.redactor(pack.as_ref())?)))
    }

    /// As [`Repo::recorder`], by other rules.
    pub fn recorder_redacted(&self, run: &RunName, redactor: Arc<Redactor>) -> Result<Recorder, Error> {
        Ok(self.recorder_plain(run)?.redacting(Some(redactor)))
    }

    fn recorder_plain(&self, run: &RunName) -> Result<Recorder, Error> {
        self.check_writer()?;
        Recorder::resume(self.writer()?, run, (self.inner.environment)())
    }

    /// The profile by which runs of the store are redacted where nothing else is asked for.
    pub fn profile(&self) -> Result<RedactionProfile, Error> {
        let first = self.reader()?.get(0)?;
        let named = first.and_then(|record| record.content().get(REDACT).cloned());
        Ok(named.and_then(|name| name.as_str()?.parse().ok()).unwrap_or_default())
    }

    /// The redactor of records that are made here under a pack, by the rules of the store and of the pack. Values of this
    /// process's environment whose names say that they are secrets are taken wherever they stand.
    pub fn redactor(&self, pack: Option<&Value>) -> Result<Arc<Redactor>, Error> {
        self.redactor_of(None, pack)
    }

    /// As [`Repo::redactor`], by a profile; by that of the store if none is given.
    pub fn redactor_of(
        &self,
        profile: Option<RedactionProfile>,
        pack: Option<&Value>,
    ) -> Result<Arc<Redactor>, Error> {
        let profile = profile.map_or_else(|| self.profile(), Ok)?;
        redaction::redactor(profile, pack, self.tag_key(profile))
    }

    /// The secret that makes the tags of this store: it follows from the first signing key, and lies with the one in force. `None` where the key is
    /// not here, and for profiles without tags.
    fn tag_key(&self, profile: RedactionProfile) -> Option<[u8; 32]> {
        let key = match profile {
            RedactionProfile::Default => self.inner.trust.tag_key(&self.log().ok()?).ok().flatten()?,
            RedactionProfile::Carl1 | RedactionProfile::None => return None,
        };
        Some(key.bytes())
    }

    /// Returns id and format of the store with the key in force, as far as this handle sees the log.
    pub fn log(&self) -> Result<StoreInfo, Error> {
        Ok(self.info().under(self.keys()?.now()))
    }

    /// Returns the keys of the log.
    pub fn keys(&self) -> Result<LogKeys, Error> {
        let reader = self.inner.reader.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(reader.keys()?)
    }

    /// Ends a change of keys that was stopped: finishes it if it is on record, else takes it back.
    fn settle_keys(&self) -> Result<(), Error> {
        let (trust, id) = (&**self.trust(), self.info().id);
        let Some(next) = trust.next_key(id)? else { return Ok(()) };
        if next == *self.keys()?.now() {
            // The record is on disk before the old key is destroyed.
            match self.sign() {
                Ok(Signed::UpTo { not_remembered: Some(error), .. }) => return Err(Error::NotSigned(error)),
                // The groups without a tag are adopted or set aside first.
                Err(Error::Store(StoreError::Untagged { .. })) => return Ok(()),
                signed => drop(signed?),
            }
        }
        // A process that changes the key has the turn until it is done.
        let _turn = trust.turn(id)?;
        let mut writer = self.writer()?.clone();
        writer.refresh()?;
        Ok(trust.end_change(id, self.keys()?.now(), None)?)
    }

    /// Clock and seeds for functions that write.
    pub fn environment(&self) -> Box<dyn Environment> {
        (self.inner.environment)()
    }

    /// Signs the log as it is, if its key is here, and remembers what was signed.
    pub fn sign(&self) -> Result<Signed, Error> {
        self.sign_after(&mut |_| Ok(None))
    }

    /// As [`Repo::sign`], and appends a map of all runs before, so that a bundle can be seen to be whole. A log whose newest record
    /// is a map has one.
    ///
    /// # Errors
    ///
    /// As [`Repo::sign`], and an error if the log cannot be read or written.
    pub fn sign_with_map(&self) -> Result<Signed, Error> {
        let (mut count, mut environment) = (LogCount::default(), self.environment());
        if self.inner.mode == Mode::Write && self.signing_key()?.is_some() {
            // Most of the log is counted before others have to wait.
            let mut store = self.writer()?.clone();
            store.refresh()?;
            map::count(&store, &mut count)?;
        }
        self.sign_after(&mut |store| map::record(store, &mut count, &mut *environment))
    }

    /// Signs the log, and appends the record that `last` makes before.
    fn sign_after(&self, last: &mut LastRecord<'_>) -> Result<Signed, Error> {
        if self.inner.mode == Mode::Read {
            let why = "it was opened for reading".to_owned();
            return Err(Error::Store(StoreError::ReadOnly { why }));
        }
        let mut writer = self.writer()?.clone();
        let Some(key) = self.signing_key()? else { return Ok(Signed::NoKey) };
        let (trust, id) = (&*self.inner.trust, self.inner.info.id);
        // The turn lasts from comparing with the remembered head to remembering the new one: no copy of this log is signed meanwhile.
        let mut turn = trust.turn(id).map_err(Error::NotSigned)?;
        self.sign_in(&mut *turn, &mut writer, &key, last)
    }

    /// Signs the log with a key, in a turn.
    pub(crate) fn sign_in(
        &self,
        turn: &mut dyn SigningTurn,
        writer: &mut Shared,
        key: &SigningKey,
        last: &mut LastRecord<'_>,
    ) -> Result<Signed, Error> {
        let (trust, id) = (&*self.inner.trust, self.inner.info.id);
        if let Some(head) = trust.head(id)? {
            writer.refresh()?;
            if let Some(why) = heads::compare_hashes(writer, head)? {
                return Err(Error::AnotherLog { why, committed: false });
            }
        }
        let (mut refused, mut not_remembered) = (None, None);
        let note = writer.sign_after(key, last, &mut |store: &dyn ReadLog, checkpoint: &Checkpoint| {
            match trust.head(id) {
                // A file system without locks lets another process have a turn at the same time.
                Ok(Some(head)) if !store.extends(head.size, head.root)? => {
                    let why = LogDiffers { has: checkpoint.size(), had: head.size };
                    refused = Some(Error::AnotherLog { why, committed: true });
                }
                Ok(_) => {
                    let head = TreeHead { size: checkpoint.size(), root: checkpoint.root() };
                    not_remembered = turn.remember(head).and_then(|()| know(trust, id, &key)).err();
                }
                Err(error) => refused = Some(error.into()),
            }
            Ok(refused.is_none())
        })?;
        match (refused, note) {
            (Some(error), _) => Err(error),
            (None, Some(note)) => Ok(Signed::UpTo { note, not_remembered }),
            (None, None) => unreachable!("a signature is refused with a reason"),
        }
    }

    /// Returns the key to sign with. One that is here and cannot be used is an error now.
    pub fn signing_key(&self) -> Result<Option<Arc<SigningKey>>, Error> {
        match &self.inner.key {
            Some(key) => Ok(Some(Arc::clone(key))),
            None => Ok(self.inner.trust.key(&self.log()?)?),
        }
    }

    /// Finishes background work on the index. Returns how many records are missing there if another program has it locked:
    /// nothing waits for that program.
    pub fn late_index(&self) -> Option<u64> {
        self.inner.writer.get().filter(|_| self.inner.mode == Mode::Write)?.clone().late_index()
    }

    /// Signs the log, if it was opened for writing and its key is here, and finishes background work unless clones, recorders or
    /// traces are left.
    pub fn close(self) -> Result<Signed, Error> {
        if self.inner.mode == Mode::Read {
            return Ok(Signed::NoKey);
        }
        let signed = self.sign()?;
        if let Some(inner) = Arc::into_inner(self.inner) {
            drop(inner.reader);
            if let Some(store) = inner.writer.into_inner().and_then(Shared::into_inner) {
                store.close()?;
            }
        }
        Ok(signed)
    }
}

/// Opens the store in a directory, for the one who has a key or what `trust` has.
pub(crate) fn open_with_keys(
    dir: &Path,
    options: Options,
    key: Option<Arc<SigningKey>>,
    trust: &dyn Trust,
) -> Result<Embedded, StoreError> {
    let mut store = Embedded::open(dir, options)?.with_key(key);
    store.set_writer(writer_of(trust, &store));
    Ok(store)
}

/// Remembers the key of a log with the head that it signed, where none is remembered yet: the key itself may lie elsewhere later.
fn know(trust: &dyn Trust, id: StoreId, key: &SigningKey) -> Result<(), TrustError> {
    match trust.known_keys(id)?.is_empty() {
        true => trust.know_key(id, key.verifier_key()),
        false => Ok(()),
    }
}

fn system() -> Box<dyn Fn() -> Box<dyn Environment> + Send + Sync> {
    Box::new(|| Box::new(World::default()))
}

/// Returns what changes when other files are put in the place of a store.
fn files_of(dir: &Path) -> Option<String> {
    std::fs::metadata(dir.join("store.json")).ok().map(|about| crate::files::identity(&about))
}

/// Makes the id of a new store.
pub fn new_id() -> Result<StoreId, TrustError> {
    let mut id = [0; 16];
    SystemRandom::new().fill(&mut id).map_err(|_| TrustError::NoRandomness)?;
    Ok(StoreId(id))
}

/// Fails for a handle that cannot write, or whose log is damaged.
pub fn refuse_damage(store: &dyn Store) -> Result<(), Error> {
    store.trouble().map_or(Ok(()), |trouble| Err(Error::Unwritable(trouble)))
}
