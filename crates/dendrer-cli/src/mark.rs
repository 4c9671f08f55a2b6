//! What is said of the mark of a backup, and of one that is in a store.

use std::path::Path;

use dendrer::store::StoreError;
pub(crate) use dendrer::store::embedded::Mark;
use dendrer::store::embedded::{Embedded, Options};
use dendrer_view::count;

use crate::failure::Failure;
use crate::failure::Result;
use crate::keys::ANOTHER_LOG;

const FILE: &str = "backup.json";

/// Says which records a mark in a store hides, if it hides any.
pub(crate) fn hides(mark: &Mark) -> Option<String> {
    mark.hides().then(|| {
        format!(
            "the mark of a backup ({FILE}) ends the log at {}, and {} of it stand behind that",
            count(mark.size, "record", "records"),
            count(mark.behind, "byte", "bytes")
        )
    })
}

/// Says that a mark in a store hides nothing, if that is so.
pub(crate) fn closes(mark: &Mark) -> Option<String> {
    (mark.in_store && mark.behind == 0)
        .then(|| format!("a backup is in the place of a store ({FILE}), and nothing is written to it"))
}

/// Says that the log of a backup goes on after its end, if it does.
pub(crate) fn unfinished(mark: &Mark) -> Option<String> {
    (!mark.in_store && mark.behind > 0).then(|| {
        format!(
            "{} behind the end of this backup, which nobody reads: a later one was cut off, or it is a store and {FILE} does not belong there",
            count(mark.behind, "byte", "bytes")
        )
    })
}

/// Returns the command that takes the mark out of a directory. The file is moved beside it, so that nothing is lost if the
/// directory was a backup after all.
pub(crate) fn unmark(dir: &Path) -> [String; 3] {
    let mut aside =
        dir.canonicalize().ok().as_deref().unwrap_or(dir).file_name().unwrap_or_default().to_owned();
    aside.push(format!(".{FILE}"));
    let parent =
        if dir.file_name().is_some() { dir.with_file_name(aside) } else { dir.join("..").join(aside) };
    ["mv".to_owned(), dir.join(FILE).display().to_string(), parent.display().to_string()]
}

/// Adds to a failure the command that takes the mark out of the store that it met.
pub(crate) fn explain(failure: Failure, dir: &Path) -> Failure {
    let argv = unmark(dir);
    failure
        .note(format!("with {FILE} out of the way it is a store again, with all of its records; dendrer fsck looks at them"))
        .help(&argv.each_ref().map(String::as_str))
}

/// Refuses a log that a mark cuts short.
pub(crate) fn refuse(store: &Embedded, nothing: &str) -> Result<()> {
    match store.mark()?.as_ref().and_then(hides) {
        None => Ok(()),
        Some(why) => {
            let message = format!("{}: {why}", store.dir().display());
            Err(explain(Failure::new(ANOTHER_LOG, message).note(nothing), store.dir()))
        }
    }
}

/// Opens a store. If it is refused for a mark that hides records, the failure says how to make it a store again.
pub(crate) fn open(dir: &Path, options: Options) -> Result<Embedded> {
    Embedded::open(dir, options).map_err(|error| refused(error.into()))
}

/// Adds to the failure of a store that was refused for a mark how to make it a store again, if the mark hides records.
pub(crate) fn refused(error: dendrer::Error) -> Failure {
    if let dendrer::Error::Store(StoreError::IsBackup { path }) = &error
        && let Some(why) = Mark::at(path).ok().flatten().as_ref().and_then(hides)
    {
        // A restore from it would lack the hidden records.
        return explain(Failure::new(error.code(), error.to_string()).note(why), path);
    }
    error.into()
}
