//! Finds the directory of a store: named, or by walking up.
//!
//! Rule: a place that cannot be looked at ends the search, because it may be the store that is meant and one further up is not.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, NoStore};
use crate::files;

/// Name of the directory that is a store.
pub const STORE_DIR: &str = ".dendrer";

/// Suffix of the directory in which a restore makes its copy.
pub const RESTORING: &str = "restoring";

/// Suffix of the directory to which a restore moves the store that was there.
pub const REPLACED: &str = "replaced";

/// Returns the store in a directory or in the nearest one above it.
pub fn find(from: &Path) -> Result<PathBuf, Error> {
    for found in from.ancestors().map(|dir| dir.join(STORE_DIR)) {
        let why = match std::fs::metadata(&found) {
            Ok(about) if about.is_dir() => return Ok(found),
            Ok(_) => "it is no directory".to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound && !found.is_symlink() => {
                match interrupted(found.parent().unwrap_or(from)) {
                    Some(NoStore::Interrupted { dir, place, restored, replaced, .. }) => {
                        let stopped = NoStore::Interrupted { dir, place, restored, replaced, searched: true };
                        return Err(Error::NoStore(Box::new(stopped)));
                    }
                    _ => continue,
                }
            }
            Err(error) => error.to_string(),
        };
        return Err(Error::NoStore(Box::new(NoStore::Hidden { place: found, why })));
    }
    Err(Error::NoStore(Box::new(NoStore::Nowhere { from: from.to_owned() })))
}

/// Returns the store that a user named: its directory, or the one that holds `.dendrer`.
pub fn named(name: &str) -> Result<PathBuf, Error> {
    let path = Path::new(name);
    if path.is_file() {
        return Err(Error::NoStore(Box::new(NoStore::IsFile { name: name.to_owned() })));
    }
    let inner = path.join(STORE_DIR);
    if inner.is_dir() {
        return Ok(inner);
    }
    let outer = if path.ends_with(STORE_DIR) { files::dir_of(path) } else { path };
    let is_store = path.join("store.json").exists();
    match interrupted(outer).filter(|_| !is_store) {
        Some(error) => Err(Error::NoStore(Box::new(error))),
        None => Ok(path.to_owned()),
    }
}

/// Returns the leftovers of an interrupted restore in a directory without a store; `None` without any.
pub fn interrupted(dir: &Path) -> Option<NoStore> {
    let beside = |word: &str| dir.join(format!("{STORE_DIR}.{word}"));
    let is_there = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok();
    let place = dir.join(STORE_DIR);
    let (restored, replaced) = (beside(RESTORING), beside(REPLACED));
    if is_there(&place) || !is_there(&restored) && !is_there(&replaced) {
        return None;
    }
    Some(NoStore::Interrupted {
        dir: dir.to_owned(),
        place,
        restored: Some(restored).filter(is_there),
        replaced: Some(replaced).filter(is_there),
        searched: false,
    })
}
