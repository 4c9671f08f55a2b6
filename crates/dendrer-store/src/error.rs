//! Why a store did not do what it was asked, and what it found damaged.
//!
//! Never says what to do about it: the caller has the exit codes and hints. Rule: a report of damage has both sides,
//! the expected and the found one; a mismatch is never turned into a plain I/O error.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use dendrer_object::{Code, Digest, RunName, StoreId};

use crate::store::Head;

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No run of this name.
    #[error("no run {0} in this store")]
    NoRun(RunName),
    /// A record is named that the log does not hold.
    #[error("no record {0} in this store")]
    NoRecord(Digest),
    /// No record at this place of the log.
    #[error("the log has no record at position {0}")]
    NoPosition(u64),
    /// The bytes that were read are not those that were committed.
    #[error("{0}")]
    Damaged(Box<Damage>),
    /// The index or a signed checkpoint knows more than the log: records were lost or rolled back.
    #[error("{0}")]
    Lost(Box<Damage>),
    /// Someone else moved the run on after the caller read it. Read again, then decide.
    #[error("run {run} has moved: decided on {expected}, its head is {found}")]
    Stale {
        /// The run.
        run: RunName,
        /// The head that the record was made for.
        expected: Head,
        /// The head that the run has.
        found: Head,
    },
    /// Another process destroyed bytes of the vault that the group depends on. Read again, then decide.
    #[error("a value of the vault was destroyed meanwhile")]
    SecretGone,
    /// A run of this name was begun before.
    #[error("run {0} exists")]
    RunExists(RunName),
    /// The run is closed.
    #[error("run {0} has ended")]
    RunEnded(RunName),
    /// A record belongs to another store.
    #[error("the record belongs to store {found}, this is {expected}")]
    OtherStore {
        /// This store.
        expected: StoreId,
        /// The one that the record names.
        found: StoreId,
    },
    /// A group or a part of it is larger than the format allows.
    #[error("{what} of {size} bytes is too large, the most is {max}")]
    TooLarge {
        /// The thing that is too large.
        what: &'static str,
        /// How large it is.
        size: u64,
        /// How large it may be.
        max: u64,
    },
    /// This handle does not write.
    #[error("this handle only reads: {why}")]
    ReadOnly {
        /// Why it does not.
        why: String,
    },
    /// The handle was made by another process, before a fork.
    #[error("this handle belongs to process {owner}; open the store again after a fork")]
    Forked {
        /// The process that may use it.
        owner: u32,
    },
    /// Who opened the store has neither the key of its log nor a writer's secret.
    #[error("the key of this log is not here, and no writer's secret")]
    NoWriter,
    /// A writer without the secret appended: nothing is written or signed after it.
    #[error("{}", untagged(*from, *to, *groups))]
    Untagged {
        /// The first record of the first such group.
        from: u64,
        /// The size of the log with the last of them.
        to: u64,
        /// How many groups there are.
        groups: usize,
    },
    /// The groups without a tag cannot be set aside.
    #[error("the groups without a tag stay: {0}")]
    NotSetAside(&'static str),
    /// Another process holds the write lock, longer than the caller wanted to wait.
    #[error("another process is writing to {}", .path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The store was written by a newer version.
    #[error("{} has format {found} for {what}, and this version knows {known}", .path.display())]
    NewerFormat {
        /// The file that has the format.
        path: PathBuf,
        /// The action that takes that format: reading or writing.
        what: &'static str,
        /// The format that is needed.
        found: u64,
        /// The newest format known here.
        known: u64,
    },
    /// The store was made before the format was frozen, in a form that is not read any more.
    #[error("{} was made before the format was frozen: draft {found}, and this version reads draft {known}", .path.display())]
    DraftFormat {
        /// The file that has the format.
        path: PathBuf,
        /// The draft of the store.
        found: u64,
        /// The draft that is read here.
        known: u64,
    },
    /// No store is there.
    #[error("{} is not a store: {why}", .path.display())]
    NotAStore {
        /// The path without a store.
        path: PathBuf,
        /// The part that is missing or wrong.
        why: String,
    },
    /// A store is there already.
    #[error("{} is a store already", .path.display())]
    AlreadyAStore {
        /// Its path.
        path: PathBuf,
    },
    /// A backup was opened for writing.
    #[error("{} is a backup", .path.display())]
    IsBackup {
        /// Its path.
        path: PathBuf,
    },
    /// A copy continues an earlier one, and the target has none of this store.
    #[error("what is in {} is not the beginning of this store: {why}", .path.display())]
    NotItsBackup {
        /// Its path.
        path: PathBuf,
        /// The part that does not fit.
        why: String,
    },
    /// A store or a copy of one is made in a directory of its own.
    #[error("{} is not empty: it has {found}", .path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// Its content.
        found: String,
    },
    /// The disk or the quota is full. The store is as it was before the call.
    #[error("no space left for {}", .path.display())]
    DiskFull {
        /// The path that was being written.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The system refused to read or write.
    #[error("cannot {action} {}", .path.display())]
    Io {
        /// The action that was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The system could not say that data is on disk. Bytes that were appended since the last sync may be lost at a power cut,
    /// and asking again would not help (a failed fsync is forgotten by the kernel).
    #[error("the disk did not confirm what was written: {why}")]
    SyncFailed {
        /// The error of the system.
        why: String,
    },
    /// The derived index could not be used. Nothing is lost: it can be deleted.
    #[error("the index: {0}")]
    Index(String),
    /// Another program has the derived index locked. Nothing is lost: the index is late.
    #[error("the index is locked by another program")]
    IndexLocked,
    /// Pages of the derived index are not what was written. Nothing is lost: it can be made again, and done without.
    #[error("the index is damaged: {0}")]
    IndexDamaged(String),
    /// A key, note or checkpoint was refused.
    #[error(transparent)]
    Note(#[from] dendrer_object::note::NoteError),
    /// This store cannot do that.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The address of a store on a server is refused. Never repeats the address, which may have a password.
    #[error("the address of the store is refused: {0}")]
    Address(String),
    /// The program was built without stores on a server.
    #[error("{server} is a store on a server, and this program was built without those")]
    NotBuilt {
        /// The address.
        server: String,
    },
    /// The server is not one that records are entrusted to.
    #[error("{server} is refused: {why}")]
    ServerRefused {
        /// The address, without secrets.
        server: String,
        /// The setting that is wrong.
        why: String,
    },
    /// There is no connection to the server, or there was none until the end of the call. Nothing was written.
    #[error("no connection to {server}: {why}")]
    Unreachable {
        /// The address, without secrets.
        server: String,
        /// The reason.
        why: String,
    },
    /// The server has another epoch of the store than this handle began with: one of the two is left behind.
    #[error("the server has epoch {found} of this store, and this handle began in epoch {own}")]
    OtherEpoch {
        /// The epoch of the handle.
        own: u64,
        /// The epoch of the server.
        found: u64,
    },
    /// The caller stopped the work.
    #[error("cancelled: the caller stopped the work")]
    Cancelled,
}

/// Names the records that were appended without a tag.
fn untagged(from: u64, to: u64, groups: usize) -> String {
    let (records, groups) = (count(to - from, "record"), count(groups as u64, "group"));
    format!(
        "{records} from position {from} on, in {groups}, came from a writer without the secret of this log"
    )
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

impl StoreError {
    /// Fails if there is a group without a tag: nothing is written or signed after one.
    pub fn refuse_untagged(groups: &[Range<u64>]) -> Result<(), StoreError> {
        let (Some(first), Some(last)) = (groups.first(), groups.last()) else { return Ok(()) };
        Err(StoreError::Untagged { from: first.start, to: last.end, groups: groups.len() })
    }

    /// Returns the error for a group whose sync failed: the group stays appended.
    pub(crate) fn as_failed_sync(&self) -> StoreError {
        match self {
            StoreError::SyncFailed { why } => StoreError::SyncFailed { why: why.clone() },
            other => StoreError::SyncFailed { why: other.to_string() },
        }
    }

    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            StoreError::NoRun(_) => Code::E0101,
            StoreError::NoRecord(_) | StoreError::NoPosition(_) => Code::E0102,
            StoreError::NotAStore { .. } => Code::E0103,
            StoreError::AlreadyAStore { .. } => Code::E0110,
            StoreError::RunExists(_) => Code::E0111,
            StoreError::NotItsBackup { .. } => Code::E0113,
            StoreError::NotEmpty { .. } => Code::E0115,
            StoreError::TooLarge { .. } => Code::E0205,
            StoreError::Damaged(damage) | StoreError::Lost(damage) => damage.code(),
            StoreError::OtherStore { .. } => Code::E0306,
            StoreError::RunEnded(_) => Code::E0406,
            StoreError::Stale { .. } | StoreError::SecretGone => Code::E0407,
            StoreError::DiskFull { .. } | StoreError::Io { .. } | StoreError::Index(_) => Code::E0801,
            StoreError::IndexDamaged(_) => Code::E0809,
            StoreError::Locked { .. } | StoreError::IndexLocked => Code::E0802,
            StoreError::NoWriter => Code::E0804,
            StoreError::Untagged { .. } => Code::E0814,
            StoreError::NotSetAside(_) => Code::E0815,
            StoreError::NewerFormat { .. } => Code::E0803,
            StoreError::DraftFormat { .. } => Code::E0811,
            StoreError::SyncFailed { .. } | StoreError::ReadOnly { .. } | StoreError::Forked { .. } => {
                Code::E0805
            }
            StoreError::IsBackup { .. } => Code::E0806,
            StoreError::Note(_) => Code::E0308,
            StoreError::Unsupported(_) => Code::E0601,
            StoreError::Address(_) => Code::E0816,
            StoreError::NotBuilt { .. } => Code::E0818,
            StoreError::ServerRefused { .. } => Code::E0817,
            StoreError::Unreachable { .. } => Code::E0819,
            StoreError::OtherEpoch { .. } => Code::E0823,
            StoreError::Cancelled => Code::E0810,
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> StoreError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                StoreError::DiskFull { path, source }
            }
            _ => StoreError::Io { action, path, source },
        }
    }
}

/// The kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DamageKind {
    /// The content of a record does not match its id.
    Content,
    /// The chain of a run has a gap, a repeat or another predecessor.
    Chain,
    /// The tree of the log has another root.
    Root,
    /// Bytes of the log are not what was written.
    Frame,
    /// A file beside the log is not what it must be.
    File,
    /// The index or a checkpoint knows more than the log, or something else.
    Loss,
    /// The derived index says something else than the log.
    Index,
    /// A signature does not verify, or its key is not known.
    Signature,
}

impl DamageKind {
    /// The code under which `dendrer explain` knows this damage.
    pub fn code(self) -> Code {
        match self {
            DamageKind::Content => Code::E0301,
            DamageKind::Chain => Code::E0302,
            DamageKind::Root => Code::E0303,
            DamageKind::Frame | DamageKind::File => Code::E0305,
            DamageKind::Loss => Code::E0307,
            DamageKind::Signature => Code::E0308,
            DamageKind::Index => Code::E0309,
        }
    }
}

/// The place of damage, as closely as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DamagePlace {
    /// The file, below the store's directory.
    pub file: String,
    /// The byte offset in the file.
    pub offset: Option<u64>,
    /// The position in the log.
    pub position: Option<u64>,
    /// The id under which the record was filed.
    pub record: Option<Digest>,
    /// The run.
    pub run: Option<RunName>,
    /// The tick.
    pub tick: Option<u64>,
}

impl fmt::Display for DamagePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        match (&self.run, self.tick) {
            (Some(run), Some(tick)) => parts.push(format!("run {run} tick {tick}")),
            (Some(run), None) => parts.push(format!("run {run}")),
            _ => {}
        }
        parts.extend(self.position.map(|position| format!("position {position}")));
        parts.extend(self.record.map(|record| format!("record {}", record.short())));
        match self.offset {
            Some(offset) => parts.push(format!("{} at byte {offset}", self.file)),
            None if !self.file.is_empty() => parts.push(self.file.clone()),
            None => {}
        }
        f.write_str(&parts.join(", "))
    }
}

/// One thing that is not what it must be: where, what should stand there, what does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The kind of damage.
    pub kind: DamageKind,
    /// Where.
    pub place: DamagePlace,
    /// The property that was checked.
    pub what: &'static str,
    /// The value that is expected.
    pub expected: String,
    /// The value that was found.
    pub found: String,
}

impl Damage {
    /// The code under which `dendrer explain` knows this damage.
    pub fn code(&self) -> Code {
        self.kind.code()
    }
}

impl Damage {
    /// Returns the position of the damaged frame, as `segment << 32 | offset`.
    pub(crate) fn frame_at(&self) -> Option<u64> {
        let number = self.place.file.strip_prefix("segments/")?.strip_suffix(".seg")?;
        Some(number.parse::<u64>().ok()? << 32 | self.place.offset?)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { place, what, expected, found, .. } = self;
        write!(f, "{place}: {what}: expected {expected}, found {found}")
    }
}

impl From<Damage> for StoreError {
    fn from(damage: Damage) -> StoreError {
        match damage.kind {
            DamageKind::Loss => StoreError::Lost(Box::new(damage)),
            _ => StoreError::Damaged(Box::new(damage)),
        }
    }
}
