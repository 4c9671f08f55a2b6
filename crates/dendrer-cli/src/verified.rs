//! Which runs were found intact here, and at which tip. A note of this user's, kept outside the store.
//!
//! It says what a verification found when it ran, and nothing of what happened since: it helps to see what nobody
//! has looked at yet, and is never an answer to whether a record is intact.

use std::collections::BTreeMap;
use std::path::PathBuf;

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

/// Returns the tip at which each run was last found intact.
pub(crate) fn known(store: StoreId) -> BTreeMap<String, Digest> {
    let text = path(store).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let (run, tip) = line.split_once(' ')?;
        Some((run.to_owned(), tip.parse().ok()?))
    });
    lines.collect()
}

/// Takes in what a verification of a store found. Failing to note it is not a failure of what was asked.
pub(crate) fn note(store: StoreId, report: &Report) {
    let Some(path) = path(store) else { return };
    let mut known = known(store);
    for run in &report.runs {
        match (report.verdict <= Verdict::Intact, run.line.tip) {
            (true, Some(tip)) => known.insert(run.run.to_string(), tip),
            _ => known.remove(run.run.as_str()),
        };
    }
    let text: String = known.iter().map(|(run, tip)| format!("{run} {tip}\n")).collect();
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
        let temporary = path.with_extension("new");
        std::fs::write(&temporary, text)?;
        std::fs::rename(&temporary, &path)
    };
    let _ = write();
}
