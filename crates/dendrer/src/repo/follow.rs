//! Following work on the files of a store: its stages, and the notes that it makes on the way.

use std::path::{Path, PathBuf};

use dendrer_store::{Embedded, StoreError};

use super::Warning;
use crate::error::{Error, TrustError};
use crate::watch::Watch;

/// Receives how work on a store goes, while it goes. `()` ignores all of it.
pub trait Follow {
    /// A store was opened.
    fn opened(&mut self, _store: &Embedded) {}

    /// Something is known that the result does not say, or that holds even if the work fails.
    fn note(&mut self, _note: &CareNote) {}

    /// A stage begins that counts `unit` up to `total`. Returns the watch that it counts into.
    fn stage(&mut self, _unit: &'static str, _total: Option<u64>) -> Watch {
        Watch::new()
    }

    /// Returns whether a file or a directory may be made, for a caller that has other plans with a name.
    fn may_make(&mut self, _path: &Path) -> bool {
        true
    }
}

impl Follow for () {}

/// Every stage counts into one watch, which may stop it.
impl Follow for Watch {
    fn stage(&mut self, _unit: &'static str, _total: Option<u64>) -> Watch {
        self.clone()
    }
}

/// A fact that is known before the result is.
#[derive(Debug)]
#[non_exhaustive]
pub enum CareNote {
    /// The log may not be all that was signed here.
    Warning(Warning),
    /// A store that an interrupted restore had left in the place of the copy was moved to this path.
    LeftBeside(PathBuf),
    /// The log was signed, and its head could not be remembered.
    NotRemembered(TrustError),
    /// The store that is replaced cannot say what was signed.
    HeadNotRead(Error),
    /// The index is in use, so its file keeps its size.
    IndexInUse(StoreError),
    /// The index does not open.
    IndexDoesNotOpen,
    /// A bundle that leaves out records has no map that counts its newest ones, since the key of the log is not here.
    NotCounted,
    /// A place that was to stay goes with the value that is erased or withheld.
    GoesAnyway(String),
}
