//! Which runs were found intact here, and at which tip. A note of this user's, kept outside the store.
//!
//! It says what a verification found when it ran. The note is bound to the name, the size and the times of change of each
//! file of the log: when one of them differs, nothing is known any more. It helps to see what nobody has looked at yet,
//! and is never an answer to whether a record is intact.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use dendrer::verify::{Report, Verdict};
use dendrer_object::{Digest, StoreId};

use crate::{demo, keys};

fn path(store: StoreId) -> Option<PathBuf> {
    // All demos have one id, so what was found of one says nothing of another.
    if store == demo::STORE_ID {
        return None;
    }
    Some(keys::config_dir()?.join("verified").join(store.to_string()))
}

/// Returns what the files of the log look like from outside; `None` if that cannot be told.
pub(crate) fn stamp(dir: &Path) -> Option<Digest> {
    let mut files: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(dir.join("segments")).ok()? {
        let entry = entry.ok()?;
        let about = entry.metadata().ok()?;
        let changed = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        files.push(format!("{:?} {} {changed} {}\n", entry.file_name(), about.len(), touched(&about)));
    }
    files.sort();
    Some(Digest::of_parts(&[b"dendrer/verified/v1\n", files.concat().as_bytes()]))
}

/// What the system notes by itself whenever a file changes: nobody can put it back, as they can the time of change.
#[cfg(unix)]
fn touched(about: &Metadata) -> String {
    use std::os::unix::fs::MetadataExt as _;
    format!("{} {} {}", about.ino(), about.ctime(), about.ctime_nsec())
}

#[cfg(not(unix))]
fn touched(_: &Metadata) -> &'static str {
    ""
}

/// Returns the tip at which each run was last found intact, as far as the files in `dir` are those of then.
pub(crate) fn known(dir: &Path, store: StoreId) -> BTreeMap<String, Digest> {
    let Some(stamp) = stamp(dir) else { return BTreeMap::new() };
    let text = path(store).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
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

/// Takes in what a verification of a store found, with what its files looked like before. Failing to note it is not a
/// failure of what was asked.
pub(crate) fn note(dir: &Path, store: StoreId, before: Option<Digest>, report: &Report) {
    let Some(path) = path(store) else { return };
    let Some(stamp) = before.filter(|before| Some(*before) == stamp(dir)) else { return };
    let mut known = known(dir, store);
    for run in &report.runs {
        match (report.verdict <= Verdict::Intact && run.passed == 0, run.line.tip) {
            (true, Some(tip)) => known.insert(run.run.to_string(), tip),
            // A look at a part takes nothing back.
            (false, _) if report.verdict <= Verdict::Intact => None,
            _ => known.remove(run.run.as_str()),
        };
    }
    let lines: String = known.iter().map(|(run, tip)| format!("{run} {tip}\n")).collect();
    let text = format!("files {stamp}\n{lines}");
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
        let temporary = path.with_extension("new");
        std::fs::write(&temporary, text)?;
        std::fs::rename(&temporary, &path)
    };
    let _ = write();
}
