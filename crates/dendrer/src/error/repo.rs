//! Why a store is not found, or is not the log that was signed here.

use dendrer_object::Code;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why no store was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoStore {
    /// Neither in the directory nor in one above it.
    #[error("no store in {} or above", .from.display())]
    Nowhere {
        /// The directory.
        from: PathBuf,
    },
    /// A restore was interrupted in this directory, so that the store is beside its place.
    #[error("no store in {}, where a restore was cut off", .dir.display())]
    Interrupted {
        /// The directory.
        dir: PathBuf,
        /// The expected place of the store.
        place: PathBuf,
        /// The copy that the restore was making, if it is there.
        restored: Option<PathBuf>,
        /// The store that the restore moved aside, if it is there.
        replaced: Option<PathBuf>,
        /// Whether directories above this one were not looked at.
        searched: bool,
    },
    /// A place where the store could be cannot be looked at.
    #[error("cannot look at {}", .place.display())]
    Hidden {
        /// The place.
        place: PathBuf,
        /// Why not.
        why: String,
    },
    /// A file was named as a store.
    #[error("{name} is a file, and a store is a directory")]
    IsFile {
        /// The name.
        name: String,
    },
    /// The process has no current directory.
    #[error("there is no current directory")]
    NoDirectory {
        /// The error of the system.
        source: io::Error,
    },
    /// The environment names a store in text that is not UTF-8.
    #[error("DENDRER_STORE is not UTF-8: {text}")]
    NotText {
        /// The text, with replacement characters.
        text: String,
    },
}

impl NoStore {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            NoStore::Nowhere { .. } | NoStore::Interrupted { .. } | NoStore::IsFile { .. } => Code::E0103,
            NoStore::Hidden { .. } | NoStore::NoDirectory { .. } => Code::E0801,
            NoStore::NotText { .. } => Code::E0106,
        }
    }
}

/// How a log differs from the one that was signed here last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogDiffers {
    /// Number of records it has.
    pub has: u64,
    /// Number of records that were signed.
    pub had: u64,
}

impl std::error::Error for LogDiffers {}

impl fmt::Display for LogDiffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogDiffers { has, had } = self;
        match had > has {
            true => write!(f, "it has {has} records, and had {had} when it was last signed here"),
            false => write!(f, "its first {had} records are not the ones that were last signed here"),
        }
    }
}
