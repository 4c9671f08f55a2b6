//! Copies of a store: making one, and checking that it is the one that was made.

use std::path::Path;

use dendrer::store::Store as _;
use dendrer::store::embedded::{Copied, Copying, Embedded};

use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::progress::Progress;

/// Copies and verifies, and shows the progress of both.
pub(crate) fn make(global: &Global, verb: &'static str, mut copying: Copying<'_>) -> Result<Copied> {
    let progress = Progress::start(global, verb, "bytes", Some(copying.bytes()));
    copying.copy(&progress.counter())?;
    drop(progress);
    let progress = Progress::start(global, verb, "records verified", Some(copying.records()));
    Ok(copying.finish(progress.counter())?)
}

/// Refuses a backup whose log is not the one that its mark names.
pub(crate) fn check_head(backup: &Embedded, path: &Path) -> Result<()> {
    let Some(made) = backup.backup_head() else { return Ok(()) };
    let found = backup.tree();
    if found == made {
        return Ok(());
    }
    Err(Failure::new("E0307", format!("{} is not the backup that was made", path.display()))
        .at("made", format!("{} records, root {}", made.size, made.root))
        .at("found", format!("{} records, root {}", found.size, found.root)))
}
