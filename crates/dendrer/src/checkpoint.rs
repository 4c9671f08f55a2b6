//! Threads of checkpoints, as savers of agent frameworks keep them: each thread is a run, and each checkpoint a transition of it.
//!
//! A checkpoint is kept as typed bytes, which are not read here: they are in the vault, exact, and the record has a salted
//! commitment to them and a redacted decoding, which the caller makes. The content of a channel is state, at `/values/CHANNEL`,
//! or below `/subgraphs/NAMESPACE` for a namespace.
//!
//! A checkpoint without a parent begins a run. One whose parent is the last of its namespace follows it in its run. One whose parent
//! is older is a fork where the caller asked for that parent by its id, and is refused otherwise: another writer went ahead.
//!
//! Rule: what was put is read back as it was, or not at all; tests `a_checkpoint_is_read_as_it_was_put`,
//! `an_edited_checkpoint_is_refused`.

mod index;
mod messages;
mod remove;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dendrer_kernel::step::Start;
use dendrer_object::record::Record;
use dendrer_object::{Code, Digest, RunName, Value, marker};
use dendrer_store::prelude::*;

pub use self::messages::{NotRead, ReadMessages};

use self::index::{ChannelAt, Stored, StoredWrite, Thread};
use crate::address::is_reachable;
use crate::environment::Environment;
use crate::error::Error;
use crate::redact::Redactor;
use crate::repo::Repo;
use crate::repo::new_run::MADE;
use crate::run::casebook_name;
use crate::run::thread::{AGENT, NAMED_BY_DIGEST, THREAD, place_of, thread_of};
use crate::vault::{Vault, VaultError, VaultRef};

/// How many threads are kept open.
const THREADS_KEPT: usize = 256;

/// Bytes with the name of what wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedBytes {
    /// The name that the serializer gave them, such as `msgpack`.
    pub tag: Arc<str>,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

/// The content of a channel of a checkpoint.
#[derive(Debug, Clone)]
pub struct ChannelPut {
    /// The name of the channel.
    pub name: Arc<str>,
    /// The version of what it holds, as text.
    pub version: Arc<str>,
    /// Its content; `None` if it equals that of the parent, by its version.
    pub value: Option<TypedBytes>,
}

/// A checkpoint that is to be put.
#[derive(Debug, Clone)]
pub struct CheckpointPut {
    /// The thread.
    pub thread: Arc<str>,
    /// The namespace; empty at the root.
    pub namespace: Arc<str>,
    /// The checkpoint that it follows.
    pub parent: Option<Arc<str>>,
    /// Its id, unique in its namespace.
    pub id: Arc<str>,
    /// The checkpoint without what its channels hold.
    pub checkpoint: TypedBytes,
    /// Its metadata.
    pub metadata: TypedBytes,
    /// The run of the framework that made it, by which it can be removed.
    pub made_by: Option<Arc<str>>,
    /// The contents of its channels.
    pub channels: Vec<ChannelPut>,
    /// Whether the caller asked for the parent by its id.
    pub may_fork: bool,
    /// The claim under which it is put, if the caller made one.
    pub claim: Option<Arc<str>>,
    /// Notes of the caller, for the `anomalies` of its transition.
    pub noted: Vec<Value>,
}

/// Writes of a task that are to be put beside a checkpoint.
#[derive(Debug, Clone)]
pub struct WritesPut {
    /// The thread.
    pub thread: Arc<str>,
    /// The namespace.
    pub namespace: Arc<str>,
    /// The checkpoint that they belong to; it may come later.
    pub id: Arc<str>,
    /// The task.
    pub task: Arc<str>,
    /// The path of the task.
    pub path: Arc<str>,
    /// The writes.
    pub items: Vec<WritePut>,
    /// Whether they take the place of earlier ones; otherwise those stay.
    pub replaces: bool,
    /// The claim under which they are put, if the caller made one.
    pub claim: Option<Arc<str>>,
    /// Notes of the caller, for the `anomalies` of their transition.
    pub noted: Vec<Value>,
}

/// A write of a task.
#[derive(Debug, Clone)]
pub struct WritePut {
    /// Its number in the task; less than 0 for those that a framework makes.
    pub index: i64,
    /// The channel.
    pub channel: Arc<str>,
    /// The value that is written.
    pub value: TypedBytes,
}

/// A checkpoint as it was put.
#[derive(Debug, Clone)]
pub struct CheckpointFound {
    /// The thread.
    pub thread: Arc<str>,
    /// The namespace.
    pub namespace: Arc<str>,
    /// Its id.
    pub id: Arc<str>,
    /// The checkpoint that it follows.
    pub parent: Option<Arc<str>>,
    /// The checkpoint without what its channels hold.
    pub checkpoint: TypedBytes,
    /// Its metadata.
    pub metadata: TypedBytes,
    /// The contents of its channels, by name.
    pub channels: Vec<(Arc<str>, TypedBytes)>,
    /// The writes beside it, by path, task and number.
    pub writes: Vec<(Arc<str>, Arc<str>, TypedBytes)>,
}

/// Which checkpoint of which thread. Orders as a list does, by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointKey {
    /// The thread.
    pub thread: Arc<str>,
    /// The namespace.
    pub namespace: Arc<str>,
    /// The id.
    pub id: Arc<str>,
}

/// A channel of a checkpoint: its name, its place in the record and its value.
type ChannelValue<'s> = (&'s Arc<str>, &'s ChannelAt, TypedBytes);

/// Bytes of the vault, by their place.
type Opened = BTreeMap<Arc<str>, Vec<u8>>;

/// Makes readable what a channel holds.
pub trait Decode {
    /// Decodes typed bytes; `None` if they are not to be readable, or cannot be read.
    fn whole(&self, value: &TypedBytes) -> Option<Value>;

    /// Length of what is before the items of a list; `None` of anything else.
    fn head(&self, value: &TypedBytes) -> Option<usize>;

    /// Decodes what a list grew by, if `after` is `before` with more items at its end.
    fn grown(&self, before: &TypedBytes, after: &TypedBytes) -> Option<Vec<Value>>;

    /// Reads what a channel is given, as it was decoded, as messages.
    fn messages(&self, value: &Value) -> ReadMessages;
}

/// Why a checkpoint was not put or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The parent is not the last checkpoint of its namespace.
    #[error(
        "checkpoint {parent} of thread {thread} is followed by {head} already: another writer went ahead"
    )]
    Stale {
        /// The thread.
        thread: Arc<str>,
        /// The parent.
        parent: Arc<str>,
        /// The last checkpoint of the namespace.
        head: Arc<str>,
    },
    /// A deletion took the checkpoint that is put, or that the put follows.
    #[error("checkpoint {id} of thread {thread} was deleted, and nothing goes on from it")]
    Deleted {
        /// The thread.
        thread: Arc<str>,
        /// The checkpoint.
        id: Arc<str>,
    },
    /// Another writer claimed the thread.
    #[error("another writer claimed thread {thread}")]
    Superseded {
        /// The thread.
        thread: Arc<str>,
    },
    /// The parent has no such channel of that version, so its value has to be put.
    #[error("the parent has no {channel} of that version")]
    NoValue {
        /// The channel.
        channel: Arc<str>,
    },
    /// The kernel refused it.
    #[error("the kernel refused it: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// The record and the vault do not fit.
    #[error("checkpoint {id} of thread {thread} is not what was put: {why}")]
    Edited {
        /// The thread.
        thread: Arc<str>,
        /// The checkpoint.
        id: Arc<str>,
        /// Why.
        why: String,
    },
    /// The vault did not do what it was asked.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Failed(Box<Error>),
}

impl<E: Into<Error>> From<E> for CheckpointError {
    fn from(error: E) -> CheckpointError {
        CheckpointError::Failed(Box::new(error.into()))
    }
}

impl CheckpointError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            CheckpointError::Stale { .. }
            | CheckpointError::Deleted { .. }
            | CheckpointError::Superseded { .. } => Code::E0407,
            CheckpointError::NoValue { .. } => Code::E0106,
            CheckpointError::Refused { .. } => Code::E0404,
            CheckpointError::Edited { .. } => Code::E0301,
            CheckpointError::Vault(error) => error.code(),
            CheckpointError::Failed(error) => error.code(),
        }
    }
}

/// The threads of a store.
pub struct Checkpoints {
    repo: Repo,
    vault: Vault,
    redactor: Arc<Redactor>,
    /// Makes the names of places of the vault.
    chance: Mutex<Box<dyn Environment>>,
    decode: Box<dyn Decode + Send>,
    threads: BTreeMap<Arc<str>, Thread>,
    /// Threads in the order in which they were used, the oldest first.
    used: Vec<Arc<str>>,
    /// How a run of a thread begins, but for its name and the thread.
    start: Start,
}

impl std::fmt::Debug for Checkpoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoints").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl Checkpoints {
    /// Opens the threads of a store.
    pub fn open(repo: Repo, decode: Box<dyn Decode + Send>) -> Result<Checkpoints, Error> {
        let (vault, redactor) = (repo.vault()?, repo.redactor(None)?);
        let chance = Mutex::new(repo.environment());
        let (threads, used) = (BTreeMap::new(), Vec::new());
        let start = Start::new("thread".parse().expect("a run id"));
        Ok(Checkpoints { repo, vault, redactor, chance, decode, threads, used, start })
    }

    /// Begins runs of threads as `start` does from now on. The name of the run and the thread in `meta` are not taken from it.
    #[must_use]
    pub fn starting(self, start: Start) -> Checkpoints {
        Checkpoints { start, ..self }
    }

    /// The store.
    pub fn repo(&self) -> &Repo {
        &self.repo
    }

    /// Signs the log, closes every run and the store.
    pub fn close(self) -> Result<(), Error> {
        let Checkpoints { repo, vault, threads, .. } = self;
        drop((vault, threads));
        repo.close().map(drop)
    }

    /// Takes a thread out of those that are open, read on to its end.
    fn take(&mut self, thread: &Arc<str>) -> Result<Thread, CheckpointError> {
        let mut found = match self.threads.remove(thread) {
            Some(found) => found,
            None => {
                let base = match self.listed(thread)? {
                    Some(known) => known,
                    None => self.name_of(thread),
                };
                Thread::new(Arc::clone(thread), base, self.redactor.name(thread).0)
            }
        };
        self.used.retain(|used| used != thread);
        self.repo.writer()?.clone().refresh()?;
        found.catch_up(&self.repo)?;
        Ok(found)
    }

    /// Calls `f` with a thread that was read on to its end.
    fn with<T>(
        &mut self,
        thread: &Arc<str>,
        f: impl FnOnce(&Checkpoints, &mut Thread) -> T,
    ) -> Result<T, CheckpointError> {
        let mut found = self.take(thread)?;
        let done = f(self, &mut found);
        self.keep(found);
        Ok(done)
    }

    /// Puts a thread back.
    fn keep(&mut self, thread: Thread) {
        self.used.push(Arc::clone(&thread.id));
        self.threads.insert(Arc::clone(&thread.id), thread);
        if self.used.len() > THREADS_KEPT {
            let oldest = self.used.remove(0);
            self.threads.remove(&oldest);
        }
    }

    /// The first run of a thread that is asked for as [`Checkpoints::threads`] lists it, with a marker in its id.
    fn listed(&self, thread: &Arc<str>) -> Result<Option<RunName>, Error> {
        if !marker::has_marker(thread) {
            return Ok(None);
        }
        let store = self.repo.reader()?;
        for run in crate::run::trace::all_runs(&*store)? {
            if run.parent.is_none()
                && thread_of(&crate::run::trace::read(&*store, run.begin)?).as_ref() == Some(thread)
            {
                return Ok(Some(run.name));
            }
        }
        Ok(None)
    }

    /// The name of the first run of a thread: its own, if a run can have it and be addressed by it, and no secret is in it.
    pub fn name_of(&self, thread: &str) -> RunName {
        let is_clean = self.redactor.name(thread).1.is_empty();
        let own = thread.parse::<RunName>().ok().filter(|_| is_clean);
        let own = own.filter(|name| {
            is_reachable(name) && !name.as_str().contains(MADE) && casebook_name::refuse_name(name).is_ok()
        });
        own.unwrap_or_else(|| {
            // The digest of a secret would let it be guessed; its tag needs the key of the store.
            let tag = if is_clean { None } else { self.redactor.tag_of(thread) };
            let tag = tag.unwrap_or_else(|| Digest::of(thread.as_bytes()).hex()[..16].to_owned());
            let name = format!("{NAMED_BY_DIGEST}{tag}");
            name.parse().expect("hex is a name")
        })
    }

    /// The runs of a thread, in the order in which they began.
    pub fn runs_of(&mut self, thread: &Arc<str>) -> Result<Vec<RunName>, CheckpointError> {
        self.with(thread, |_, found| found.runs.iter().map(|run| run.name.clone()).collect())
    }

    /// The threads of the store.
    pub fn threads(&mut self) -> Result<Vec<Arc<str>>, CheckpointError> {
        let store = self.repo.reader()?;
        let mut found: Vec<Arc<str>> = Vec::new();
        for run in crate::run::trace::all_runs(&*store)? {
            let begin = crate::run::trace::read(&*store, run.begin)?;
            if run.parent.is_none()
                && let Some(thread) = thread_of(&begin)
                && !found.contains(&thread)
            {
                found.push(thread);
            }
        }
        Ok(found)
    }

    /// Names the channels of which a checkpoint has to bring the value: those that its parent does not have in that version.
    pub fn missing(
        &mut self,
        thread: &Arc<str>,
        namespace: &str,
        parent: Option<&str>,
        versions: &[(Arc<str>, Arc<str>)],
    ) -> Result<Vec<Arc<str>>, CheckpointError> {
        self.with(thread, |_, found| {
            let known = parent.and_then(|parent| found.stored(namespace, parent));
            let is_known = |name: &str, version: &str| {
                known.and_then(|known| known.channels.get(name)).is_some_and(|at| *at.version == *version)
            };
            let missing = versions.iter().filter(|(name, version)| !is_known(name, version));
            missing.map(|(name, _)| Arc::clone(name)).collect()
        })
    }

    /// Reads a checkpoint: the one with an id, or the newest of a namespace.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Edited`] if the record or the vault does not have what was put, [`VaultError::NoKey`] without the key.
    pub fn get(
        &mut self,
        thread: &Arc<str>,
        namespace: &str,
        id: Option<&str>,
    ) -> Result<Option<CheckpointFound>, CheckpointError> {
        self.with(thread, |all, found| all.read(found, namespace, id))?
    }

    fn read(
        &self,
        thread: &mut Thread,
        namespace: &str,
        id: Option<&str>,
    ) -> Result<Option<CheckpointFound>, CheckpointError> {
        let id = match id {
            Some(id) => Arc::from(id),
            None => match thread.newest(namespace) {
                Some(id) => id,
                None => return Ok(None),
            },
        };
        let Some(stored) = thread.stored(namespace, &id).cloned() else { return Ok(None) };
        // The root alone decides which run a put without a place continues.
        if namespace.is_empty() || thread.active.is_none() {
            thread.active = Some(stored.run);
        }
        let edited = thread.edited(&id);
        let record = self.check_record(thread, &stored).map_err(&edited)?;
        if record.body().fields().iter().any(|field| record.body().text(field).is_none()) {
            // Another process erased a value: what this one holds of it is not read any more.
            thread.forget_held();
        }
        let [checkpoint, metadata] = self.own(thread, &stored, &edited)?;
        let channels = self.channels(thread, namespace, &stored, &edited)?.into_iter();
        let channels = channels.map(|(name, _, value)| (Arc::clone(name), value)).collect();
        let mut writes = Vec::new();
        for write in thread.writes_of(namespace, &id) {
            let value = self.written(thread, write, &edited)?;
            writes.push((Arc::clone(&write.task), Arc::clone(&write.channel), value));
        }
        Ok(Some(CheckpointFound {
            thread: Arc::clone(&thread.id),
            namespace: namespace.into(),
            id,
            parent: stored.parent.clone(),
            checkpoint,
            metadata,
            channels,
            writes,
        }))
    }

    /// Reads the values of the channels of a checkpoint.
    fn channels<'s>(
        &self,
        thread: &Thread,
        namespace: &str,
        stored: &'s Stored,
        edited: &dyn Fn(String) -> CheckpointError,
    ) -> Result<Vec<ChannelValue<'s>>, CheckpointError> {
        let mut opened = Opened::default();
        let read = |(name, at)| Ok((name, at, self.exact(thread, namespace, name, at, &mut opened, edited)?));
        stored.channels.iter().map(read).collect()
    }

    /// Fails if the record of a checkpoint is not the one that was read when it was put or found.
    fn check_record(&self, thread: &Thread, stored: &Stored) -> Result<Record, String> {
        let run = &thread.runs[stored.run];
        let store = self.repo.writer().map_err(|error| error.to_string())?;
        let trace = crate::run::trace::Trace::open(store, &run.name).map_err(|error| error.to_string())?;
        let record = trace.record(stored.tick).map_err(|error| error.to_string())?;
        match record.id() == stored.record {
            true => Ok(record),
            false => Err(format!("tick {} of {} is another record", stored.tick, run.name)),
        }
    }

    fn own(
        &self,
        thread: &Thread,
        stored: &Stored,
        edited: &dyn Fn(String) -> CheckpointError,
    ) -> Result<[TypedBytes; 2], CheckpointError> {
        let bytes = self.bytes(&thread.runs[stored.run].name, &stored.at, &stored.exact, edited)?;
        let cut = bytes.split_at_checked(stored.len);
        let cut = cut.and_then(|(checkpoint, rest)| Some((checkpoint, rest.get(..stored.metadata_len)?)));
        let Some((checkpoint, metadata)) = cut else {
            return Err(edited("it is cut short".into()));
        };
        let typed = |tag: &Arc<str>, bytes: &[u8]| TypedBytes { tag: Arc::clone(tag), bytes: bytes.into() };
        Ok([typed(&stored.tags[0], checkpoint), typed(&stored.tags[1], metadata)])
    }

    /// The value that a task wrote.
    fn written(
        &self,
        thread: &Thread,
        write: &StoredWrite,
        edited: &dyn Fn(String) -> CheckpointError,
    ) -> Result<TypedBytes, CheckpointError> {
        let bytes = self.bytes(&thread.runs[write.run].name, &write.at, &write.exact, edited)?;
        let part = bytes.get(write.from..).and_then(|rest| rest.get(..write.len));
        let part = part.ok_or_else(|| edited("a write is cut short".into()))?;
        Ok(TypedBytes { tag: Arc::clone(&write.tag), bytes: part.into() })
    }

    /// The bytes of a channel: its head, and its segments.
    fn exact(
        &self,
        thread: &Thread,
        namespace: &str,
        channel: &Arc<str>,
        at: &ChannelAt,
        opened: &mut Opened,
        edited: &dyn Fn(String) -> CheckpointError,
    ) -> Result<TypedBytes, CheckpointError> {
        if let Some(held) = thread.held(namespace, channel, at) {
            return Ok(held);
        }
        let mut bytes = at.head.to_vec();
        for segment in at.segments.iter() {
            if !opened.contains_key(&segment.at) {
                let read = self.bytes(&thread.runs[segment.run].name, &segment.at, &segment.exact, edited)?;
                opened.insert(Arc::clone(&segment.at), read);
            }
            let part = opened[&segment.at].get(segment.from..).and_then(|rest| rest.get(..segment.len));
            bytes.extend_from_slice(part.ok_or_else(|| edited(format!("channel {channel} is cut short")))?);
        }
        Ok(TypedBytes { tag: Arc::clone(&at.tag), bytes: bytes.into() })
    }

    fn bytes(
        &self,
        run: &RunName,
        at: &str,
        exact: &VaultRef,
        edited: &dyn Fn(String) -> CheckpointError,
    ) -> Result<Vec<u8>, CheckpointError> {
        self.vault.get_as(run, at, exact).map_err(|error| match error {
            error
            @ (VaultError::Differs { .. } | VaultError::Damaged { .. } | VaultError::Nothing { .. }) => {
                edited(error.to_string())
            }
            error => error.into(),
        })
    }

    /// Lists the checkpoints of threads and namespaces, newest first. `None` is any thread, or any namespace.
    pub fn list(
        &mut self,
        thread: Option<&Arc<str>>,
        namespace: Option<&str>,
        id: Option<&str>,
        before: Option<&str>,
    ) -> Result<Vec<CheckpointKey>, CheckpointError> {
        let threads = match thread {
            Some(thread) => vec![Arc::clone(thread)],
            None => self.threads()?,
        };
        let mut keys = Vec::new();
        for thread in threads {
            let found = self.take(&thread)?;
            keys.extend(found.keys(namespace).filter(|key| {
                id.is_none_or(|id| *key.id == *id) && before.is_none_or(|before| *key.id < *before)
            }));
            self.keep(found);
        }
        keys.sort_by(|a, b| (&b.id, &a.thread, &a.namespace).cmp(&(&a.id, &b.thread, &b.namespace)));
        Ok(keys)
    }
}
