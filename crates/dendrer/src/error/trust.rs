//! Why a key or a remembered head cannot be had or kept.

use std::io;
use std::path::PathBuf;

use dendrer_object::Code;
use dendrer_object::note::NoteError;

/// Why a key or a head cannot be had or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// There is no place for files of the user.
    #[error("there is no home directory to keep the key of the log in")]
    NoHome,
    /// The system gives no random bytes.
    #[error("the system gives no randomness")]
    NoRandomness,
    /// A key cannot have this name.
    #[error("{0}")]
    KeyName(NoteError),
    /// There is a key already, or its file cannot be written.
    #[error("cannot write the key to {}", .path.display())]
    KeyNotWritten {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A key file cannot be read.
    #[error("cannot read the key in {}", .path.display())]
    KeyNotRead {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A key file cannot be used.
    #[error("the key in {} cannot be {what}", .path.display())]
    KeyUnusable {
        /// The file.
        path: PathBuf,
        /// `used` or `read`.
        what: &'static str,
        /// Why not.
        why: String,
    },
    /// A writer's secret made no tag of the log.
    #[error("the secret in {} is not that of this log", .place.display())]
    NotTheSecret {
        /// The file.
        place: PathBuf,
    },
    /// Another process has been signing for as long as is waited.
    #[error("another program has been signing this log for half a minute")]
    Busy {
        /// The lock it holds.
        lock: PathBuf,
    },
    /// The lock cannot be held.
    #[error("cannot hold {}", .path.display())]
    NoLock {
        /// The lock.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The remembered head cannot be read.
    #[error("cannot read {}", .path.display())]
    HeadNotRead {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file of the remembered head holds something else.
    #[error("{} is not the head of this log", .path.display())]
    NotAHead {
        /// The file.
        path: PathBuf,
        /// How many bytes it has.
        size: usize,
    },
    /// A head could not be remembered.
    #[error(
        "what was signed could not be remembered in {} ({why}), so a log that is put back to before it, or a copy that is signed as well, would not show",
        .path.display()
    )]
    NotRemembered {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

impl TrustError {
    /// The message with its cause.
    pub(crate) fn in_full(&self) -> String {
        match self {
            TrustError::KeyNotWritten { source, .. }
            | TrustError::KeyNotRead { source, .. }
            | TrustError::NoLock { source, .. }
            | TrustError::HeadNotRead { source, .. } => format!("{self} (cause: {source})"),
            TrustError::KeyUnusable { why, .. } => format!("{self} (cause: {why})"),
            TrustError::NotAHead { size, .. } => {
                format!("{self} (found: {size} byte{})", if *size == 1 { "" } else { "s" })
            }
            TrustError::Busy { lock } => format!("{self} (lock: {})", lock.display()),
            _ => self.to_string(),
        }
    }

    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            TrustError::NoHome => Code::E0807,
            TrustError::KeyName(_) => Code::E0106,
            TrustError::KeyNotWritten { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                Code::E0112
            }
            TrustError::KeyNotRead { .. }
            | TrustError::KeyUnusable { .. }
            | TrustError::NotTheSecret { .. } => Code::E0804,
            TrustError::Busy { .. } => Code::E0802,
            TrustError::NotAHead { .. } => Code::E0306,
            TrustError::NoRandomness
            | TrustError::KeyNotWritten { .. }
            | TrustError::NoLock { .. }
            | TrustError::HeadNotRead { .. }
            | TrustError::NotRemembered { .. } => Code::E0801,
        }
    }
}
