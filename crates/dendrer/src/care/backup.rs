//! Copies a store into a backup, or goes on with an earlier backup of the same store.
//!
//! The copy counts as a backup after all of it was read back and verified. Nothing is copied that may be less than the store: a log
//! that is damaged, or that a mark cuts short, is refused.
//!
//! Rule: nothing is written through a link, into the store or around it; test `a_backup_is_made_in_a_place_of_its_own`.

use dendrer_object::Code;
use std::path::{Path, PathBuf};

use dendrer_store::StoreError;
use dendrer_store::embedded::{Copied, CopyAs, Embedded, Options};

use super::{CareNote, Follow, HiddenLog, copy, doubt};
use crate::error::Error;
use crate::repo::locate::STORE_DIR;
use crate::repo::refuse_damage;
use crate::trust::Trust;

/// A backup that was made.
#[derive(Debug, Clone)]
pub struct BackedUp {
    /// Directory of the backup.
    pub path: PathBuf,
    /// What was copied.
    pub copied: Copied,
}

/// Why a backup was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The place is a file.
    #[error("{} is a file, and a backup is a directory", .path.display())]
    IsFile {
        /// The place.
        path: PathBuf,
    },
    /// The place has the name of a store, so that every program would take the backup for one.
    #[error("{} is the name of a store, and a backup is none", .path.display())]
    StoreName {
        /// The place.
        path: PathBuf,
    },
    /// The place is in the store, or the store is in the place.
    #[error("a backup does not lie in what it is a backup of, nor around it")]
    Overlaps,
    /// A file of the backup is a link, so that a write would change another file.
    #[error("{} is a link", .path.display())]
    IsLink {
        /// The link.
        path: PathBuf,
    },
    /// [`Follow::may_make`] said no.
    #[error("{} may not be made", .path.display())]
    Declined {
        /// The place.
        path: PathBuf,
    },
    /// The log is damaged.
    #[error(transparent)]
    Damaged(Error),
    /// The mark of a backup hides records of the store.
    #[error("a mark of a backup hides records of {}", .0.dir.display())]
    Hidden(HiddenLog),
    /// The copy cannot begin in this place, or the store cannot be copied.
    #[error(transparent)]
    NotBegun(StoreError),
    /// The copy is not complete: it is no backup of the store as it is now.
    #[error(transparent)]
    Incomplete(StoreError),
    /// The store cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Error),
}

impl BackupError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            BackupError::IsFile { .. } => Code::E0115,
            BackupError::StoreName { .. } | BackupError::Overlaps | BackupError::Declined { .. } => {
                Code::E0106
            }
            BackupError::IsLink { .. } => Code::E0113,
            BackupError::Hidden(_) => Code::E0307,
            BackupError::NotBegun(error) | BackupError::Incomplete(error) => error.code(),
            BackupError::Damaged(error) | BackupError::Unreadable(error) => error.code(),
        }
    }
}

impl From<StoreError> for BackupError {
    fn from(error: StoreError) -> BackupError {
        Error::from(error).into()
    }
}

/// Backs up the store in a directory. `to` is new, empty, or an earlier backup of the same store; writers need not stop.
pub fn backup(
    store: &Path,
    to: &Path,
    trust: &dyn Trust,
    follow: &mut dyn Follow,
) -> Result<BackedUp, BackupError> {
    refuse_place(store, to)?;
    if !follow.may_make(to) {
        return Err(BackupError::Declined { path: to.to_owned() });
    }
    let mut store = Embedded::open(store, Options::read())?;
    follow.opened(&store);
    // The copy may have less than there was.
    if let Some(warning) = doubt(&mut store, trust)? {
        follow.note(&CareNote::Warning(warning));
    }
    refuse_damage(&store).map_err(BackupError::Damaged)?;
    if let Some(hidden) = HiddenLog::of(&store)? {
        return Err(BackupError::Hidden(hidden));
    }
    let copying = store.start_copy(to, CopyAs::Backup).map_err(BackupError::NotBegun)?;
    let copied = copy(copying, follow).map_err(BackupError::Incomplete)?;
    Ok(BackedUp { path: to.to_owned(), copied })
}

/// Refuses a place that is the store, in it or around it, a file, or one of links that lead elsewhere.
fn refuse_place(store: &Path, to: &Path) -> Result<(), BackupError> {
    if to.is_file() {
        return Err(BackupError::IsFile { path: to.to_owned() });
    }
    // A store or a backup in this place is reported when the copy begins.
    if to.file_name().is_some_and(|name| name == STORE_DIR) && !to.join("store.json").exists() {
        return Err(BackupError::StoreName { path: to.to_owned() });
    }
    let (inner, outer) = (resolved(to), resolved(store));
    if inner.starts_with(&outer) || outer.starts_with(&inner) {
        return Err(BackupError::Overlaps);
    }
    let inside =
        ["segments", "log", "checkpoint", "store.json", "backup.json", "lock"].map(|name| to.join(name));
    let segments = std::fs::read_dir(to.join("segments")).into_iter().flatten().flatten();
    let mut links = inside.into_iter().chain(segments.map(|entry| entry.path()));
    // A write through a link changes another file: in the worst case one of the store itself.
    match links.find(|path| std::fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink())) {
        Some(path) => Err(BackupError::IsLink { path }),
        None => Ok(()),
    }
}

/// Returns the path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for known in absolute.ancestors() {
        if let (Ok(real), Ok(rest)) = (known.canonicalize(), absolute.strip_prefix(known)) {
            return real.join(rest);
        }
    }
    absolute
}
