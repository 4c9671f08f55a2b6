//! Opens a store that the mark of a backup may end.

use std::path::Path;

use dendrer::store::StoreError;
pub(crate) use dendrer::store::embedded::Mark;
use dendrer::store::embedded::{Embedded, Options};
pub(crate) use dendrer_view::mark::{closes, hides, unfinished, unmark};

use crate::failure::Failure;
use crate::failure::Result;

/// Opens a store. If it is refused for a mark that hides records, the failure says how to make it a store again.
pub(crate) fn open(dir: &Path, options: Options) -> Result<Embedded> {
    super::server::refuse(dir)?;
    Embedded::open(dir, options).map_err(|error| refused(error.into()))
}

/// Adds to the failure of a store that was refused for a mark how to make it a store again, if the mark hides records.
pub(crate) fn refused(error: dendrer::Error) -> Failure {
    if let dendrer::Error::Store(StoreError::IsBackup { path }) = &error
        && let Some(why) = Mark::at(path).ok().flatten().as_ref().and_then(hides)
    {
        // A restore from it would lack the hidden records.
        return dendrer_view::mark::explain(Failure::new(error.code(), error.to_string()).note(why), path);
    }
    error.into()
}
