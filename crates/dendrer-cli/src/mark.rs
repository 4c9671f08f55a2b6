//! The mark of a backup, and whether it stands where it belongs.
//!
//! `backup.json` says where the log of a backup ends, and no reader looks behind that: there may be a part of a later backup that was
//! cut off. In a store the same file hides records. By its name a directory is the one or the other: what is called `.dendrer` is a
//! store, and so is what has an index, which no backup has. A mark in a store is told by every verb that reads it.

use std::path::Path;

use dendrer::store::StoreError;
use dendrer::store::embedded::{Embedded, Options};
use dendrer_object::{Value, json};
use dendrer_view::count;

use crate::context::STORE_DIR;
use crate::failure::{Failure, Result};
use crate::keys::ANOTHER_LOG;
use crate::out::files;

const FILE: &str = "backup.json";

/// What the mark of a directory says, and what it is the mark of.
pub(crate) struct Mark {
    /// How many records the log has up to there.
    size: u64,
    /// How many bytes of the log stand behind that.
    behind: u64,
    /// Whether it is in a store.
    pub(crate) in_store: bool,
}

/// Looks for a mark; `None` if there is none that ends a log.
pub(crate) fn of(store: &Embedded) -> Result<Option<Mark>> {
    // Whether it is one is known there.
    if store.backup_head().is_none() { Ok(None) } else { at(store.dir()) }
}

/// As [`of`], of a directory that nobody has opened.
pub(crate) fn at(dir: &Path) -> Result<Option<Mark>> {
    let path = dir.join(FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = files::read(&path.display().to_string(), 1 << 16)?;
    let Ok(value) = json::parse_canonical(&bytes) else { return Ok(None) };
    let number = |name: &str| value.get(name).and_then(Value::as_u64);
    let (Some(size), Some(segment), Some(offset)) = (number("size"), number("segment"), number("offset"))
    else {
        return Ok(None);
    };
    Ok(Some(Mark { size, behind: behind(dir, segment, offset)?, in_store: is_store(dir) }))
}

fn behind(dir: &Path, segment: u64, offset: u64) -> Result<u64> {
    let dir = dir.join("segments");
    let sum = || -> std::io::Result<u64> {
        let mut sum = 0;
        for entry in std::fs::read_dir(&dir)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let number = name.and_then(|name| name.strip_suffix(".seg")?.parse::<u64>().ok());
            let Some(number) = number.filter(|number| *number >= segment) else { continue };
            let len = std::fs::metadata(&path)?.len();
            sum += if number > segment { len } else { len.saturating_sub(offset) };
        }
        Ok(sum)
    };
    match sum() {
        // What is missing is for those to tell who read the log.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        sum => sum.map_err(|error| {
            Failure::new("E0801", format!("cannot look at {}", dir.display())).at("cause", error.to_string())
        }),
    }
}

fn is_store(dir: &Path) -> bool {
    // A link may lead there, and somebody may stand in it.
    let named = |dir: &Path| dir.file_name().is_some_and(|name| name == STORE_DIR);
    named(dir)
        || dir.canonicalize().is_ok_and(|dir| named(&dir))
        || std::fs::symlink_metadata(dir.join("index.sqlite")).is_ok()
}

impl Mark {
    /// Says what a mark in a store hides, if it hides anything.
    pub(crate) fn hides(&self) -> Option<String> {
        (self.in_store && self.behind > 0).then(|| {
            format!(
                "the mark of a backup ({FILE}) ends the log at {}, and {} of it stand behind that",
                count(self.size, "record", "records"),
                count(self.behind, "byte", "bytes")
            )
        })
    }

    /// Says that a mark in a store hides nothing, if that is so.
    pub(crate) fn closes(&self) -> Option<String> {
        (self.in_store && self.behind == 0)
            .then(|| format!("a backup is in the place of a store ({FILE}), and nothing is written to it"))
    }

    /// Says what stands behind the end of a backup, if anything does.
    pub(crate) fn unfinished(&self) -> Option<String> {
        (!self.in_store && self.behind > 0).then(|| {
            format!(
                "{} behind the end of this backup, which nobody reads: a later one was cut off, or it is a store and {FILE} does not belong there",
                count(self.behind, "byte", "bytes")
            )
        })
    }
}

/// What makes a store again of one that has a mark: a file beside it, so that nothing is lost if it was one after all.
pub(crate) fn unmark(dir: &Path) -> [String; 3] {
    let mut aside =
        dir.canonicalize().ok().as_deref().unwrap_or(dir).file_name().unwrap_or_default().to_owned();
    aside.push(format!(".{FILE}"));
    let parent =
        if dir.file_name().is_some() { dir.with_file_name(aside) } else { dir.join("..").join(aside) };
    ["mv".to_owned(), dir.join(FILE).display().to_string(), parent.display().to_string()]
}

/// Says of a failure what makes a store again of what it met.
pub(crate) fn explain(failure: Failure, dir: &Path) -> Failure {
    let argv = unmark(dir);
    failure
        .note(format!("with {FILE} out of the way it is a store again, with all of its records; dendrer fsck looks at them"))
        .help(&argv.each_ref().map(String::as_str))
}

/// Refuses to take a log for the whole of it that a mark cuts short.
pub(crate) fn refuse(store: &Embedded, nothing: &str) -> Result<()> {
    match of(store)?.and_then(|mark| mark.hides()) {
        None => Ok(()),
        Some(why) => {
            let message = format!("{}: {why}", store.dir().display());
            Err(explain(Failure::new(ANOTHER_LOG, message).note(nothing), store.dir()))
        }
    }
}

/// Opens a store. If it is refused for a mark that hides records, the failure says how to make it a store again.
pub(crate) fn open(dir: &Path, options: Options) -> Result<Embedded> {
    Embedded::open(dir, options).map_err(|error| match &error {
        StoreError::IsBackup { path } => match at(path).ok().flatten().and_then(|mark| mark.hides()) {
            // A restore from it would lack the hidden records.
            Some(why) => explain(Failure::new(error.code(), error.to_string()).note(why), path),
            None => error.into(),
        },
        _ => error.into(),
    })
}
