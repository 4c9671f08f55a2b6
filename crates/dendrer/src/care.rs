//! Care of a store in use: copies of it, checks of its files, what can be removed, and exports.
//!
//! Prints nothing. Every function has the protections of the program; [`Follow`] receives what is worth a line before the
//! result is there. Keys and remembered heads come from a [`Trust`](crate::trust::Trust).
//!
//! Rule: nothing here passes an older log, or a part of one, for the whole of it; tests in `crates/dendrer/tests/care.rs`.

pub mod backup;
pub mod check;
pub mod erase;
pub mod export;
pub mod keys;
pub mod problem;
pub mod restore;
pub mod spare;
pub mod tags;
mod tiles;
pub mod verify;

use std::path::{Path, PathBuf};

use dendrer_store::embedded::{Copied, Copying};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Mark, StoreError};

use crate::error::{Error, TrustError};
use crate::repo::Warning;
use crate::repo::mark::MARK_FILE;
use crate::trust::Trust;

pub use crate::repo::follow::{CareNote, Follow};

/// A log that the mark of a backup cuts short.
#[derive(Debug, Clone)]
pub struct HiddenLog {
    /// Directory of the store.
    pub dir: PathBuf,
    /// The mark.
    pub mark: Mark,
}

impl HiddenLog {
    /// Returns what a mark hides of a store; `None` if it hides nothing.
    pub fn of(store: &Embedded) -> Result<Option<HiddenLog>, StoreError> {
        let mark = store.mark()?.filter(Mark::hides);
        Ok(mark.map(|mark| HiddenLog { dir: store.dir().to_owned(), mark }))
    }
}

/// Returns the file of the mark in a directory, and a name beside the directory to which it can be moved: nothing is lost if the
/// directory was a backup after all.
pub fn mark_places(dir: &Path) -> [PathBuf; 2] {
    let mut aside =
        dir.canonicalize().ok().as_deref().unwrap_or(dir).file_name().unwrap_or_default().to_owned();
    aside.push(format!(".{MARK_FILE}"));
    let aside =
        if dir.file_name().is_some() { dir.with_file_name(aside) } else { dir.join("..").join(aside) };
    [dir.join(MARK_FILE), aside]
}

/// Returns why a log may not be all that was signed here.
pub fn doubt(store: &mut Embedded, trust: &dyn Trust) -> Result<Option<Warning>, Error> {
    Ok(match trust.head(store.info().id) {
        Err(error) => Some(Warning::HeadUnknown(error.into())),
        Ok(head) => crate::repo::heads::differs(store, head)?.map(Warning::AnotherLog),
    })
}

/// Whether an error says that data is not what was written, so that nothing follows from it.
fn is_of_integrity(error: &Error) -> bool {
    use StoreError::{Damaged, Lost, Note, OtherStore};
    matches!(
        error,
        Error::Store(Damaged(_) | Lost(_) | OtherStore { .. } | Note(_))
            | Error::Trust(TrustError::NotAHead { .. })
            | Error::Note(_)
    )
}

/// Copies and verifies.
fn copy(mut copying: Copying<'_>, follow: &mut dyn Follow) -> Result<Copied, StoreError> {
    let watch = follow.stage("bytes", Some(copying.bytes()));
    copying.copy(watch.meter())?;
    let watch = follow.stage("records verified", Some(copying.records()));
    copying.finish(watch.meter().clone())
}
