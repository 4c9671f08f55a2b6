//! Checks the files of a store against its log, and repairs what follows from the log.
//!
//! [`check_files`] reads everything: it finds which files are damaged and how many records that costs. [`check_log`] and
//! [`check_derived`] look at what a store is opened with, in little time, and can repair it. The log itself is never changed.
//!
//! Rule: nothing is rebuilt while the log is damaged, because derived data may be the last evidence of it; test
//! `nothing_is_repaired_over_a_damaged_log`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer_object::{Code, Digest, RunName, StoreId};
use dendrer_store::prelude::*;
use dendrer_store::{
    Damage, DamageKind, Embedded, IndexState, KeptWhat, Leftover, LogReport, Mark, Options, RunSummary,
    StoreError, TilesState, TreeHead, VerifyOptions,
};
use ring::rand::{SecureRandom, SystemRandom};

use super::restore::{UnsoundBackup, other_log};
use super::spare::{Fit, judge_snapshot};
use super::tiles::{self, TileCheck};
use super::{Follow, doubt};
use crate::error::{Error, TrustError};
use crate::repo::Warning;
use crate::repo::heads;
use crate::run::trace::all_runs;
use crate::trust::Trust;
use crate::vault::{self, VaultError, VaultReport};

/// How many records may be outside the index before it is worth a rebuild.
const UNCOVERED_MANY: u64 = 100_000;

/// How many runs are listed in [`StoreFigures`].
const RUNS_MAX: usize = 100;

/// What every file of a store is worth.
#[derive(Debug)]
pub struct FilesReport {
    /// Directory of the store.
    pub path: PathBuf,
    /// Number of records of the log.
    pub size: u64,
    /// Number of records that do not open as they were committed; `None` if that is not known, because each record opens and
    /// together they are another log than the one that was signed.
    pub lost: Option<u64>,
    /// Whether the mark of a backup hides the end of the log.
    pub is_hidden: bool,
    /// What was found, file by file.
    pub facts: Vec<FileFact>,
}

/// A fact about a file of a store.
#[derive(Debug)]
pub enum FileFact {
    /// Bytes of the log, or a file beside it, are not what was written.
    Damage(Damage),
    /// The log reads to its end.
    Log {
        /// Number of records.
        size: u64,
        /// Root, if it was computed.
        root: Option<Digest>,
    },
    /// The log ends with a group that was never acknowledged.
    Unfinished,
    /// Number of records that are signed; `None` if nothing is.
    Checkpoint(Option<u64>),
    /// The description of the store.
    Descriptor(StoreId),
    /// The backup is not the one that was made.
    Unsound(UnsoundBackup),
    /// The mark of a backup ends the log.
    Mark(Mark),
    /// The log may not be all that was signed here.
    Doubt(Warning),
    /// The index differs from the log.
    IndexDiffers(Damage),
    /// The index agrees with the log, or is not used.
    Index(IndexState),
    /// The snapshot of a tick cannot be used, or only its state.
    Snapshot {
        /// The run.
        run: RunName,
        /// The tick.
        tick: u64,
        /// Whether the state is that of the record, and the rest is not signed.
        is_state: bool,
    },
    /// So many snapshots, each the state on record.
    Snapshots(u64),
    /// Tiles of the log.
    Tiles(TilesState),
    /// The vault, if the store has one.
    Vault(VaultReport),
    /// Whether no process writes.
    Lock(bool),
    /// A file of interrupted work.
    Leftover(Leftover),
    /// A file that does not belong to a store.
    Foreign(Leftover),
}

/// Compares every file of a store with its log.
pub fn check_files(
    store: Embedded,
    trust: &dyn Trust,
    follow: &mut dyn Follow,
) -> Result<FilesReport, Error> {
    let mut store = Arc::new(store);
    let watch = follow.stage("records", Some(store.tree().size));
    let options = VerifyOptions { index: true, meter: watch.meter().clone(), ..VerifyOptions::default() };
    let mut tiles = TileCheck::new(&store)?;
    let mut take = |_, record| tiles.take(&record);
    let mut report = store.verify_handing_over(&options, Some(&mut take))?;
    tiles.end(&mut report);
    let mut facts = log_facts(&store, &report);
    facts.extend(other_log(&store).map(FileFact::Unsound));
    let mark = store.mark()?;
    let is_hidden = mark.as_ref().is_some_and(Mark::hides);
    facts.extend(mark.map(FileFact::Mark));
    // The files of a log that was put back to an earlier state are whole.
    let own = Arc::get_mut(&mut store).expect("no trace is open yet");
    facts.extend(doubt(own, trust)?.map(FileFact::Doubt));
    let of_index = report.findings.iter().find(|damage| damage.kind == DamageKind::Index);
    facts.push(match of_index {
        Some(damage) if damage.what == "index" => FileFact::Index(IndexState::Corrupt(damage.found.clone())),
        Some(damage) => FileFact::IndexDiffers(damage.clone()),
        None => FileFact::Index(store.index_state()),
    });
    facts.extend(snapshot_facts(&store, follow)?);
    facts.push(FileFact::Tiles(store.tiles_state()?));
    facts.extend(vault_fact(&store, trust)?);
    facts.push(FileFact::Lock(store.is_lock_free()?));
    facts.extend(store.leftovers()?.into_iter().map(FileFact::Leftover));
    facts.extend(store.foreign()?.into_iter().map(FileFact::Foreign));
    let lost = lost(&report).filter(|lost| *lost > 0 || !is_hidden);
    Ok(FilesReport { path: store.dir().to_owned(), size: report.tree.size, lost, is_hidden, facts })
}

/// Checks the vault: every file, and with its key every value.
fn vault_fact(store: &Embedded, trust: &dyn Trust) -> Result<Option<FileFact>, Error> {
    match vault::check(store, trust) {
        Ok(report) => Ok(report.map(FileFact::Vault)),
        Err(VaultError::Store(error)) => Err(error.into()),
        Err(VaultError::Trust(error)) => Err(error.into()),
        Err(error) => unreachable!("a check reports what is damaged: {error}"),
    }
}

/// Counts the records that do not open as they were committed. Each record of another log may open, and how many are others is
/// not known.
fn lost(report: &LogReport) -> Option<u64> {
    let is_of_another = |damage: &Damage| matches!(damage.kind, DamageKind::Root | DamageKind::Loss);
    match report.tree.size.max(report.checkpoint.unwrap_or(0)).saturating_sub(report.records) {
        0 if report.findings.iter().any(is_of_another) => None,
        lost => Some(lost),
    }
}

fn log_facts(store: &Embedded, report: &LogReport) -> Vec<FileFact> {
    let damages = || report.findings.iter().filter(|damage| damage.kind != DamageKind::Index);
    let mut facts: Vec<FileFact> = damages().cloned().map(FileFact::Damage).collect();
    if damages().all(|damage| !damage.place.file.starts_with("segments")) {
        let root = report.root_checked.then_some(report.tree.root);
        facts.push(FileFact::Log { size: report.tree.size, root });
    }
    if report.unfinished {
        facts.push(FileFact::Unfinished);
    }
    if damages().all(|damage| damage.place.file != "checkpoint") {
        facts.push(FileFact::Checkpoint(report.checkpoint));
    }
    facts.push(FileFact::Descriptor(store.info().id));
    facts
}

/// Compares each state that is kept with the record that it is of.
fn snapshot_facts(store: &Arc<Embedded>, follow: &mut dyn Follow) -> Result<Vec<FileFact>, Error> {
    let rows = store.kept_rows()?;
    let snapshots: Vec<_> = rows
        .iter()
        .filter_map(|row| match row.what {
            KeptWhat::Snapshot(tick) => Some((&row.run, tick)),
            KeptWhat::Verdicts(_) => None,
        })
        .collect();
    let watch = follow.stage("snapshots", Some(snapshots.len() as u64));
    let mut facts = Vec::new();
    for (run, tick) in &snapshots {
        let fact = |is_state| FileFact::Snapshot { run: (*run).clone(), tick: *tick, is_state };
        match judge_snapshot(store, run, *tick).unwrap_or(Fit::Nothing) {
            Fit::Whole => {}
            Fit::StateAlone => facts.push(fact(true)),
            Fit::Nothing => facts.push(fact(false)),
        }
        watch.meter().add(1)?;
    }
    if facts.is_empty() && !snapshots.is_empty() {
        facts.push(FileFact::Snapshots(snapshots.len() as u64));
    }
    Ok(facts)
}

/// A fact about a store that was opened.
#[derive(Debug)]
pub enum StoreFact {
    /// The checkpoint was replaced by the copy in `log/`, which is signed for so many records; or could not be.
    Mended(Result<u64, StoreError>),
    /// The store, or the backup.
    Opened {
        /// Directory.
        path: PathBuf,
        /// Its log.
        tree: TreeHead,
        /// Whether it is a backup.
        is_backup: bool,
        /// Whether a backup is in the place of a store.
        is_closed: bool,
    },
    /// The mark of a backup hides the end of the log.
    Hidden {
        /// Directory.
        path: PathBuf,
        /// The mark.
        mark: Mark,
    },
    /// The backup has another log than the one that was copied.
    OtherBackup {
        /// The log that was copied.
        made: TreeHead,
        /// The log that is there.
        found: TreeHead,
    },
    /// What is wrong with the log, as far as a store is read when it is opened.
    Log {
        /// What; `None` if nothing is.
        trouble: Option<Arc<StoreError>>,
        /// Whether a repair may mend it.
        can_mend: bool,
    },
    /// A later backup into this directory was interrupted.
    UnfinishedBackup(Mark),
    /// The log, compared with the newest head that was signed here.
    Signed(SignedFact),
    /// The index.
    Index(IndexFact),
    /// Whether no process writes.
    Lock(Result<bool, StoreError>),
    /// Files of interrupted work.
    Leftovers {
        /// The files.
        files: Vec<Leftover>,
        /// Whether they were removed; `None` if that was not tried.
        removed: Option<Result<(), StoreError>>,
    },
    /// Files that do not belong to a store.
    Foreign(Vec<Leftover>),
}

/// How a log compares with the newest head that was signed here.
#[derive(Debug)]
pub enum SignedFact {
    /// What was signed cannot be read.
    Unknown(TrustError),
    /// Nothing was signed here.
    Nothing,
    /// So many records were signed here, up to which the log is the same.
    UpTo(u64),
    /// So many records were signed here since the backup was made.
    SinceBackup(u64),
    /// The log is shorter, or has other records.
    Differs {
        /// Number of records that were signed here.
        signed: u64,
        /// Number of records of the log, if it is shorter.
        shorter: Option<u64>,
    },
}

/// How the index of a store compares with its log.
#[derive(Debug)]
pub struct IndexFact {
    /// The index as it was found.
    pub state: IndexState,
    /// Whether its pages are damaged, or its rows differ from the log.
    pub is_damaged: bool,
    /// Number of records of the log.
    pub size: u64,
    /// Whether the store is a backup, which has no index.
    pub is_backup: bool,
    /// Whether another program has the index locked while it lacks records of the log.
    pub is_locked: bool,
    /// Whether a rebuild is worth its time.
    pub is_wanting: bool,
    /// Number of records that the rebuilt index covers, and number of records of the log; `None` if it was not rebuilt.
    pub rebuilt: Option<Result<(u64, u64), StoreError>>,
}

/// Looks at the log of a store, and with `fix` replaces a damaged checkpoint by its copy.
pub fn check_log(store: &mut Embedded, fix: bool, trust: &dyn Trust) -> Result<Vec<StoreFact>, Error> {
    let mut facts = Vec::new();
    if fix && is_of_the_checkpoint(store) {
        facts.extend(mend_checkpoint(store, trust)?.map(StoreFact::Mended));
    }
    let (tree, head, mark) = (store.tree(), store.backup_head(), store.mark()?);
    let path = store.dir().to_owned();
    let is_closed = mark.is_some_and(|mark| mark.in_store && mark.behind == 0);
    facts.push(StoreFact::Opened { path: path.clone(), tree, is_backup: head.is_some(), is_closed });
    facts.push(match (head, mark.filter(Mark::hides)) {
        (_, Some(mark)) => StoreFact::Hidden { path, mark },
        (Some(made), _) if made != tree => StoreFact::OtherBackup { made, found: tree },
        _ => StoreFact::Log { trouble: store.trouble(), can_mend: !fix && is_of_the_checkpoint(store) },
    });
    let is_unfinished = |mark: &Mark| !mark.in_store && mark.behind > 0;
    facts.extend(mark.filter(is_unfinished).map(StoreFact::UnfinishedBackup));
    facts.push(StoreFact::Signed(signed(store, trust)?));
    Ok(facts)
}

/// Looks at what follows from the log of a store, and with `fix` rebuilds and removes it. A backup and a damaged log stay as they
/// are.
pub fn check_derived(store: &mut Embedded, fix: bool) -> Result<Vec<StoreFact>, Error> {
    let fix = fix && store.backup_head().is_none() && store.trouble().is_none();
    let path = store.dir().to_owned();
    let index = index(store, &path, fix);
    let lock = store.is_lock_free();
    let files = store.leftovers()?;
    let removed = (fix && !files.is_empty()).then(|| {
        Embedded::open(&path, Options::write()).and_then(|mut store| store.remove_leftovers().map(drop))
    });
    let mut facts =
        vec![StoreFact::Index(index), StoreFact::Lock(lock), StoreFact::Leftovers { files, removed }];
    let foreign = store.foreign()?;
    if !foreign.is_empty() {
        facts.push(StoreFact::Foreign(foreign));
    }
    Ok(facts)
}

fn is_of_the_checkpoint(store: &Embedded) -> bool {
    let trouble = store.trouble();
    matches!(trouble.as_deref(), Some(StoreError::Damaged(damage)) if damage.place.file == "checkpoint")
}

/// Replaces a damaged checkpoint by the one beside the tiles, if that is signed and of this log.
fn mend_checkpoint(
    store: &mut Embedded,
    trust: &dyn Trust,
) -> Result<Option<Result<u64, StoreError>>, Error> {
    let path = store.dir().to_owned();
    let known = trust.head(store.info().id)?.map(|head| head.size);
    let mended = Embedded::open(&path, Options { index: false, ..Options::write() })
        .and_then(|mut store| store.mend_checkpoint(known));
    *store = Embedded::open(&path, Options::read())?;
    Ok(mended.transpose())
}

/// Compares a log with the newest head that was signed here.
fn signed(store: &mut Embedded, trust: &dyn Trust) -> Result<SignedFact, Error> {
    let head = match trust.head(store.info().id) {
        Ok(head) => head,
        Err(error) => return Ok(SignedFact::Unknown(error)),
    };
    // Another process may have signed records that it committed after this handle had read the log.
    store.refresh()?;
    let Some(TreeHead { size: signed, .. }) = head else { return Ok(SignedFact::Nothing) };
    Ok(match heads::differs(store, head)? {
        Some(why) => SignedFact::Differs { signed, shorter: (why.had > why.has).then_some(why.has) },
        None if signed > store.tree().size => SignedFact::SinceBackup(signed),
        None => SignedFact::UpTo(signed),
    })
}

/// Returns where the rows or the tiles of the index differ from the log.
fn index_differs(store: &Embedded) -> Result<Option<Damage>, Error> {
    Ok(match store.index_differs()? {
        Some(damage) => Some(damage),
        None => tiles::differs(store)?,
    })
}

/// Looks at the index, and with `fix` rebuilds one that is damaged, or lacks much of the log.
fn index(store: &mut Embedded, path: &Path, fix: bool) -> IndexFact {
    let (size, is_backup) = (store.tree().size, store.backup_head().is_some());
    let (state, is_damaged) = match store.check_index() {
        Err(StoreError::IndexDamaged(why)) => (IndexState::Corrupt(why), true),
        // To compare each row with the log takes as long as a rebuild, so it is done only before one.
        Ok(()) if fix => match index_differs(store) {
            Ok(Some(differs)) => (IndexState::Corrupt(differs.to_string()), true),
            _ => (store.index_state(), false),
        },
        _ => (store.index_state(), false),
    };
    let is_wanting = match state {
        IndexState::Ready(covered) => size.saturating_sub(covered) >= UNCOVERED_MANY,
        IndexState::Absent => !is_backup && size >= UNCOVERED_MANY,
        IndexState::Corrupt(_) => true,
        // The log is damaged, or the index knows more than it: that is evidence.
        IndexState::Newer(_) | IndexState::Locked | IndexState::Unreadable(_) | IndexState::Unused => false,
    };
    let is_behind = !matches!(state, IndexState::Ready(covered) if covered >= size);
    let is_locked = is_behind && store.is_index_locked();
    let is_wanting = is_wanting && !is_locked;
    let rebuilt = (fix && is_wanting).then(|| rebuild(store, path));
    IndexFact { state, is_damaged, size, is_backup, is_locked, is_wanting, rebuilt }
}

fn rebuild(store: &mut Embedded, path: &Path) -> Result<(u64, u64), StoreError> {
    // Windows cannot rename an open file: reopen without the index first.
    let without = Embedded::open(path, Options { index: false, ..Options::read() });
    let made = without.map(|without| *store = without).and_then(|()| {
        let mut store = Embedded::open(path, Options::write())?;
        // Another process may write meanwhile.
        let size = store.tree().size;
        store.rebuild_index(false)?;
        let covered = store.index_status().unwrap_or(0);
        store.close()?;
        Ok((covered, size))
    });
    if let Ok(again) = Embedded::open(path, Options::read()) {
        *store = again;
    }
    made
}

/// Sizes and counts of a store, without content, names, paths or keys: for a report that is handed over.
#[derive(Debug)]
pub struct StoreFigures {
    /// Format of the store.
    pub format: u64,
    /// Whether it is a backup.
    pub is_backup: bool,
    /// Number of records.
    pub records: u64,
    /// Number of bytes of each segment of the log.
    pub segments: Vec<u64>,
    /// The index.
    pub index: IndexState,
    /// Number of bytes of the index.
    pub index_bytes: u64,
    /// Number of snapshots.
    pub snapshots: u64,
    /// Number of bytes of all snapshots.
    pub snapshot_bytes: u64,
    /// Number of kept answers of predicates.
    pub verdicts: u64,
    /// Code of what is wrong with the log.
    pub trouble: Option<Code>,
    /// Number of records that were signed here, if that is known.
    pub signed_here: Option<u64>,
    /// Every run.
    pub runs: Vec<RunSummary>,
    /// Digests of the names of the first runs, under a salt that is not kept.
    pub names: Vec<String>,
}

/// Counts what there is in a store.
pub fn figures(store: &Embedded, trust: &dyn Trust) -> Result<StoreFigures, Error> {
    let mut salt = [0; 32];
    SystemRandom::new().fill(&mut salt).map_err(|_| TrustError::NoRandomness)?;
    let runs = all_runs(store)?;
    let size = |name: &str| std::fs::metadata(store.dir().join(name)).map_or(0, |about| about.len());
    let segments = std::fs::read_dir(store.dir().join("segments")).into_iter().flatten().flatten();
    let kept = store.kept_rows().unwrap_or_default();
    let snapshots = kept.iter().filter(|row| matches!(row.what, KeptWhat::Snapshot(_)));
    let digest = |run: &RunSummary| Digest::of_parts(&[&salt, run.name.as_str().as_bytes()]).short();
    Ok(StoreFigures {
        format: store.info().format,
        is_backup: store.backup_head().is_some(),
        records: store.tree().size,
        segments: segments.map(|entry| entry.metadata().map_or(0, |about| about.len())).collect(),
        index: store.index_state(),
        index_bytes: size("index.sqlite") + size("index.sqlite-wal"),
        snapshots: snapshots.clone().count() as u64,
        snapshot_bytes: snapshots.map(|row| row.bytes).sum(),
        verdicts: kept.iter().filter(|row| matches!(row.what, KeptWhat::Verdicts(_))).count() as u64,
        trouble: store.trouble().as_deref().map(StoreError::code),
        signed_here: trust.head(store.info().id).ok().flatten().map(|head| head.size),
        names: runs.iter().take(RUNS_MAX).map(digest).collect(),
        runs,
    })
}
