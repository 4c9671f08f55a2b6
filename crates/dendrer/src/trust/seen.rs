//! Which runs were found intact here, and at which tip: a note of this user, outside the store.
//!
//! The note is bound to name, size and times of change of each file of the log. When one of them differs, nothing is known any
//! more. The note helps to see which runs were never verified, and is no answer to whether a record is intact.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use dendrer_object::{Digest, RunName, StoreId};
use dendrer_store::TreeHead;

use crate::files::identity;

/// The look of the files of a log from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(Digest);

impl Stamp {
    /// Looks at the files of the log in a store's directory; `None` if they cannot be looked at.
    pub fn of(dir: &Path) -> Option<Stamp> {
        stamp(dir).map(Stamp)
    }
}

/// Begins the line of the log as a whole. No run is named like this, with two words after it.
const LOG: &str = "log to ";

/// The note on one store.
#[derive(Debug)]
pub struct Seen {
    path: PathBuf,
}

impl Seen {
    /// The note on a store, in the folder of a user.
    pub(super) fn of(dir: &Path, store: StoreId) -> Seen {
        Seen { path: dir.join("verified").join(store.to_string()) }
    }

    /// Returns the tip at which each run was last found intact, if the files in `dir` are those of then.
    pub fn known(&self, dir: &Path) -> BTreeMap<String, Digest> {
        let Some(stamp) = stamp(dir) else { return BTreeMap::new() };
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let mut lines = text.lines();
        if lines.next() != Some(format!("files {stamp}").as_str()) {
            return BTreeMap::new();
        }
        let lines = lines.filter_map(|line| {
            let (run, tip) = line.split_once(' ')?;
            Some((run.to_owned(), tip.parse().ok()?))
        });
        lines.collect()
    }

    /// Returns size and root of the log that was last verified as a whole and found intact; `None` if it was not. A log that grows
    /// keeps it.
    pub fn log(&self) -> Option<TreeHead> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        let (size, root) = text.lines().find_map(|line| line.strip_prefix(LOG))?.split_once(' ')?;
        Some(TreeHead { size: size.parse().ok()?, root: root.parse().ok()? })
    }

    /// Adds what a verification found: for each run its tip if it is intact, else `None`; `log` is the log if it was verified as a
    /// whole, of size 0 if it is not intact. `before` is the stamp from before the verification. A note that cannot be written is
    /// no failure of the verification.
    pub fn note(
        &self,
        dir: &Path,
        before: Option<Stamp>,
        runs: impl IntoIterator<Item = (RunName, Option<Digest>)>,
        log: Option<TreeHead>,
    ) {
        let Some(Stamp(stamp)) = before.filter(|before| Some(*before) == Stamp::of(dir)) else { return };
        let mut known = self.known(dir);
        for (run, tip) in runs {
            match tip {
                Some(tip) => known.insert(run.to_string(), tip),
                None => known.remove(run.as_str()),
            };
        }
        let lines: String = known.iter().map(|(run, tip)| format!("{run} {tip}\n")).collect();
        let log = log.or_else(|| self.log()).map(|log| format!("{LOG}{} {}\n", log.size, log.root));
        let text = format!("files {stamp}\n{lines}{}", log.unwrap_or_default());
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(self.path.parent().unwrap_or(&self.path))?;
            let temporary = self.path.with_extension("new");
            std::fs::write(&temporary, text)?;
            std::fs::rename(&temporary, &self.path)
        };
        let _ = write();
    }
}

fn stamp(dir: &Path) -> Option<Digest> {
    let mut files: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(dir.join("segments")).ok()? {
        let entry = entry.ok()?;
        let about = entry.metadata().ok()?;
        let changed = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        files.push(format!("{:?} {} {changed} {}\n", entry.file_name(), about.len(), identity(&about)));
    }
    files.sort();
    Some(Digest::of_parts(&[b"dendrer/verified/v1\n", files.concat().as_bytes()]))
}
