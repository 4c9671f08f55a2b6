//! Makes a store from a backup, checked as a whole before anything is put in its place.
//!
//! Never deletes a store: one that was there is moved aside. What was signed here is remembered outside of stores, so a log that
//! is older than that can be read and is never written. Values that were erased in the replaced store since the backup are erased
//! again in the copy ([`erasures`]); that takes new records, so such a log is written and signed, in place of the one that the caller
//! discards, and its records name that one.
//!
//! Rule: the head of a store is remembered before the store is moved aside; tests
//! `an_older_store_that_was_restored_never_signs_a_second_history` and `a_restored_older_store_is_read_and_never_written`.

pub mod erasures;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer_object::note::VerifierKey;
use dendrer_object::{Code, Timestamp};
use dendrer_store::embedded::{Copied, CopyAs, Embedded, Options, VerifyOptions};
use dendrer_store::prelude::*;
use dendrer_store::{Damage, Mark, StoreError, TreeHead};

use self::erasures::{ErasedAgain, ErasedAgainError, NewErasures};
use super::{CareNote, Follow, HiddenLog, copy, is_of_integrity};
use crate::error::Error;
use crate::evidence::verify::judge::KnownKey;
use crate::files;
use crate::repo::heads::{refuse_rollback, remember_checkpoint};
use crate::repo::keys::{known_key, log_of};
use crate::repo::locate::{REPLACED, RESTORING, STORE_DIR};
use crate::repo::refuse_damage;
use crate::trust::Trust;

/// What may be done with a store that is in the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestoreTerms {
    /// Whether a store that is there is moved aside.
    pub replace: bool,
    /// Whether that is done even if it has records that the backup does not have.
    pub discard_newer: bool,
}

/// A store that was restored.
#[derive(Debug)]
pub struct Restored {
    /// Directory of the store.
    pub path: PathBuf,
    /// What was copied.
    pub copied: Copied,
    /// Number of records that were signed here, at the most; `None` if nothing was.
    pub last_signed_here: Option<u64>,
    /// Why the store is not written: it is older than what was signed here, or that is not known.
    pub refused: Option<Error>,
    /// Whether the key of the log is here.
    pub has_key: bool,
    /// Where the store that was there is; `None` if none was.
    pub aside: Option<PathBuf>,
    /// The values that were erased in that store since the backup was made, and are erased in this one again.
    pub erased_again: Vec<ErasedAgain>,
    /// The time of the newest record of the backup, if values may have been erased since that this store has; `None` if every
    /// erasure is known.
    pub erasures_unknown: Option<Timestamp>,
}

/// Why a store was not restored, or what failed after it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The backup cannot be opened.
    #[error(transparent)]
    Unopened(StoreError),
    /// The mark of a backup hides records of what is restored from.
    #[error("a mark of a backup hides records of {}", .0.dir.display())]
    Hidden(HiddenLog),
    /// The backup is not what was written.
    #[error("{why}")]
    Unsound {
        /// Directory of the backup.
        backup: PathBuf,
        /// What is wrong with it.
        why: Box<UnsoundBackup>,
    },
    /// What was signed here, or with which key, is not known.
    #[error(transparent)]
    Unknown(Error),
    /// Something is in the place that is no directory.
    #[error("{} is there and is no directory", .path.display())]
    NotADirectory {
        /// The place.
        path: PathBuf,
    },
    /// The lock of the store in the place is no file.
    #[error("{} is there and is no file", .lock.display())]
    LockNotAFile {
        /// The lock.
        lock: PathBuf,
        /// The place, and a free name to which it can be moved.
        place: OldPlace,
    },
    /// The place has files, and is no store.
    #[error("{} is not empty, and no store", .0.path.display())]
    NotEmpty(OldPlace),
    /// A store is in the place.
    #[error("{} is a store already", .path.display())]
    IsStore {
        /// The place.
        path: PathBuf,
        /// The backup, as it was named.
        backup: PathBuf,
    },
    /// Another process writes to the store in the place.
    #[error("another process is writing to {}", .path.display())]
    Busy {
        /// The place.
        path: PathBuf,
    },
    /// The store in the place cannot be read, so it may have more than the backup.
    #[error("{error}")]
    OldUnreadable {
        /// Why.
        error: Box<Error>,
        /// The place, and a free name to which it can be moved.
        place: OldPlace,
    },
    /// The store in the place is not the one of the backup.
    #[error("{} is another store, not the one of the backup", .path.display())]
    OtherStore {
        /// The place.
        path: PathBuf,
    },
    /// The store in the place has records that the backup does not have.
    #[error("{} has, or may have, records that the backup does not have", .path.display())]
    Newer {
        /// The place.
        path: PathBuf,
        /// The backup, as it was named.
        backup: PathBuf,
        /// Which records.
        why: Box<NewerRecords>,
        /// The values that were erased since the backup was made: a restore erases them again.
        erased: Vec<ErasedAgain>,
    },
    /// A value that was erased since could not be erased in the copy. Nothing was restored.
    #[error("{0}")]
    NotErased(Box<ErasedAgainError>),
    /// [`Follow::may_make`] said no.
    #[error("{} may not be made", .path.display())]
    Declined {
        /// The place.
        path: PathBuf,
    },
    /// The place of the copy has something else.
    #[error("{} is there and is no directory", .path.display())]
    CopyNotADirectory {
        /// The place of the copy.
        path: PathBuf,
    },
    /// The backup is in the place of the copy.
    #[error("a restore makes its copy in {}", .path.display())]
    InCopyPlace {
        /// The place of the copy.
        path: PathBuf,
    },
    /// What the replaced store has of signatures could not be remembered.
    #[error(transparent)]
    NotRemembered(Error),
    /// A file cannot be read or moved, or a copy cannot be made.
    #[error(transparent)]
    Failed(#[from] Error),
    /// The store was restored, and its name may not outlast a power cut.
    #[error("{error}")]
    NotSynced {
        /// What failed.
        error: Box<Error>,
        /// The store, and the one that was there.
        placed: PlacedStore,
    },
    /// The store was restored, and what it has of signatures could not be remembered.
    #[error("{error}")]
    RestoredNotRemembered {
        /// What failed.
        error: Box<Error>,
        /// The store, and the one that was there.
        placed: PlacedStore,
    },
}

/// A place that has something, and a free name beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldPlace {
    /// The place.
    pub path: PathBuf,
    /// A free name beside it.
    pub aside: PathBuf,
}

/// A store that was put in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedStore {
    /// Directory of the store.
    pub path: PathBuf,
    /// Where the store that was there is.
    pub aside: Option<PathBuf>,
}

/// Which records a store has that a backup does not have.
#[derive(Debug)]
pub enum NewerRecords {
    /// A mark of a backup hides the end of the store.
    Hidden(Mark),
    /// So many.
    More(u64),
    /// Records of which some are others.
    Other,
    /// Not all of the store can be read.
    Unreadable(Error),
}

/// Why a backup is not what was written.
#[derive(Debug, thiserror::Error)]
pub enum UnsoundBackup {
    /// Its log is not the one that its mark names.
    #[error("{} is not the backup that was made", .path.display())]
    OtherLog {
        /// The backup.
        path: PathBuf,
        /// The log that was copied.
        made: TreeHead,
        /// The log that is there.
        found: TreeHead,
    },
    /// Its log does not read to the end.
    #[error(transparent)]
    Unreadable(Error),
    /// It names another key than the one its store was made with here.
    #[error("the backup names another key than the one its store was made with here")]
    OtherKey {
        /// Key of the backup.
        backup: Box<VerifierKey>,
        /// Key that is kept here.
        here: Box<VerifierKey>,
    },
    /// A record, or another part of it, is damaged.
    #[error("{0}")]
    Damaged(Box<Damage>),
}

impl UnsoundBackup {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            UnsoundBackup::OtherLog { .. } => Code::E0307,
            UnsoundBackup::Unreadable(error) => error.code(),
            UnsoundBackup::OtherKey { .. } => Code::E0308,
            UnsoundBackup::Damaged(damage) => damage.code(),
        }
    }
}

impl RestoreError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            RestoreError::Unopened(error) => error.code(),
            RestoreError::Hidden(_) => Code::E0307,
            RestoreError::Unsound { why, .. } => why.code(),
            RestoreError::NotADirectory { .. }
            | RestoreError::LockNotAFile { .. }
            | RestoreError::NotEmpty(_)
            | RestoreError::CopyNotADirectory { .. }
            | RestoreError::InCopyPlace { .. } => Code::E0115,
            RestoreError::IsStore { .. } | RestoreError::OtherStore { .. } => Code::E0110,
            RestoreError::Busy { .. } => Code::E0802,
            RestoreError::Newer { .. } => Code::E0114,
            RestoreError::Declined { .. } => Code::E0106,
            RestoreError::NotErased(error) => error.code(),
            RestoreError::Unknown(error)
            | RestoreError::NotRemembered(error)
            | RestoreError::Failed(error) => error.code(),
            RestoreError::OldUnreadable { error, .. }
            | RestoreError::NotSynced { error, .. }
            | RestoreError::RestoredNotRemembered { error, .. } => error.code(),
        }
    }
}

impl From<StoreError> for RestoreError {
    fn from(error: StoreError) -> RestoreError {
        Error::from(error).into()
    }
}

fn io(action: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path: path.clone(), source }.into()
}

/// Restores a backup into a directory, as its `.dendrer`. `backup` is the backup, or a directory that has a `.dendrer`.
pub fn restore(
    backup: &Path,
    dir: &Path,
    terms: RestoreTerms,
    trust: &dyn Trust,
    follow: &mut dyn Follow,
) -> Result<Restored, RestoreError> {
    let named = backup;
    let inner = named.join(STORE_DIR);
    let from = if inner.is_dir() { inner } else { named.to_owned() };
    let target = if dir.ends_with(STORE_DIR) { dir.to_owned() } else { dir.join(STORE_DIR) };
    let mut backup = Embedded::open(&from, Options::read()).map_err(RestoreError::Unopened)?;
    follow.opened(&backup);
    if let Some(hidden) = HiddenLog::of(&backup)? {
        return Err(RestoreError::Hidden(hidden));
    }
    let has_key = check_whole(&backup, trust, follow)?;
    let old = there(named, &backup, &target, terms)?;
    let beside = beside(&target, RESTORING);
    for path in [&target, &beside, &free(&target)] {
        if !follow.may_make(path) {
            return Err(RestoreError::Declined { path: path.clone() });
        }
    }
    make_room(&from, &target, &beside, follow)?;
    let mut copied = copy(backup.start_copy(&beside, CopyAs::Store)?, follow)?;
    if let Some(old) = &old {
        match prepare(old, &beside, &backup, trust, follow) {
            Ok(tree) => copied.tree = tree.unwrap_or(copied.tree),
            Err(error) => {
                // The next restore would have to move the copy aside.
                let _ = std::fs::remove_dir_all(&beside);
                return Err(error);
            }
        }
    }
    let erased_again = old.as_ref().map(|old| old.erasures.places()).unwrap_or_default();
    let signed = trust.head(backup.info().id).map_err(Error::from)?;
    let is_known = knows_erasures(old.as_ref(), &backup, signed)?;
    let discarded = discarded(old.as_ref(), signed)?;
    let aside = put_in_place(&beside, &target, old)?;
    let signed = if erased_again.is_empty() { Ok(()) } else { sign_in_place(&target, discarded, trust) };
    let mut store = Embedded::open(&target, Options::read())?;
    if let Err(error) = signed.and_then(|()| remember_checkpoint(&store, &backup.info().key, trust)) {
        let placed = PlacedStore { path: target, aside };
        return Err(RestoreError::RestoredNotRemembered { error: error.into(), placed });
    }
    let refused = refuse_rollback(&mut store, trust).err();
    let last_signed_here = trust.head(store.info().id).map_err(Error::from)?.map(|head| head.size);
    let erasures_unknown = (!is_known).then(|| erasures::date_of(&backup)).transpose()?;
    Ok(Restored {
        path: target,
        copied,
        last_signed_here,
        refused,
        has_key,
        aside,
        erased_again,
        erasures_unknown,
    })
}

/// Erases again in a copy, and remembers what the store that is replaced has of signatures, which must not be put away with it. Returns
/// the log of the copy if it changed.
fn prepare(
    old: &Old,
    copy: &Path,
    backup: &Embedded,
    trust: &dyn Trust,
    follow: &mut dyn Follow,
) -> Result<Option<TreeHead>, RestoreError> {
    let erased = (!old.erasures.is_empty()).then(|| old.erasures.carry_out(copy, old.store.tree(), trust));
    let tree = erased.transpose().map_err(|error| RestoreError::NotErased(Box::new(error)))?;
    match remember_checkpoint(&old.store, &backup.info().key, trust) {
        Ok(()) => {}
        // A damaged store is no evidence of a signature, and is moved aside all the same.
        Err(error) if is_of_integrity(&error) => follow.note(&CareNote::HeadNotRead(error)),
        Err(error) => return Err(RestoreError::NotRemembered(error)),
    }
    Ok(tree)
}

/// Whether every erasure that a store may have had since a backup was made is known. The store that is replaced has them, if all of it
/// can be read and it has all that was signed here; and a backup that has all of that lacks none.
fn knows_erasures(old: Option<&Old>, backup: &Embedded, signed: Option<TreeHead>) -> Result<bool, Error> {
    if signed.is_some_and(|signed| signed.size <= backup.tree().size) {
        return Ok(true);
    }
    let Some(old) = old.filter(|old| old.erasures.is_whole) else { return Ok(false) };
    Ok(signed.is_none() || discarded(Some(old), signed)?.is_some())
}

/// Returns the head that was signed here if it is one of the store that is replaced: then all that was signed here is there.
fn discarded(old: Option<&Old>, signed: Option<TreeHead>) -> Result<Option<TreeHead>, Error> {
    let (Some(old), Some(signed)) = (old, signed) else { return Ok(None) };
    // A damaged log extends nothing that is known.
    if !old.erasures.is_whole {
        return Ok(None);
    }
    Ok(old.store.extends(signed.size, signed.root)?.then_some(signed))
}

/// Signs a restored log that has new erasures, and remembers it in place of the head that the caller discards. Without the key of the
/// log, or if records were signed here that the replaced store did not have, nothing is signed: then it is an older log.
fn sign_in_place(target: &Path, discarded: Option<TreeHead>, trust: &dyn Trust) -> Result<(), Error> {
    let store = Embedded::open(target, Options::write())?;
    let id = store.info().id;
    let Some(key) = trust.key(&log_of(&store)?)? else { return Ok(()) };
    let mut store = store.with_key(Some(Arc::clone(&key)));
    let mut turn = trust.turn(id).map_err(Error::NotSigned)?;
    if trust.head(id)? != discarded {
        return Ok(());
    }
    let mut failed = None;
    store.sign_if(&key, &mut |_, checkpoint| {
        let head = TreeHead { size: checkpoint.size(), root: checkpoint.root() };
        let remembered = match discarded {
            Some(discarded) => turn.replace(discarded, head),
            None => turn.remember(head),
        };
        failed = remembered.err();
        Ok(failed.is_none())
    })?;
    store.close()?;
    failed.map_or(Ok(()), |error| Err(Error::Trust(error)))
}

/// Makes room for the copy beside the target.
fn make_room(from: &Path, target: &Path, beside: &Path, follow: &mut dyn Follow) -> Result<(), RestoreError> {
    if let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(io("make", parent))?;
    }
    if std::fs::symlink_metadata(beside).is_ok_and(|about| !about.is_dir()) {
        return Err(RestoreError::CopyNotADirectory { path: beside.to_owned() });
    }
    // An interrupted restore may have left the store that it replaced there, or a whole copy: neither is written over.
    if beside.join("store.json").exists() {
        if beside.canonicalize().is_ok_and(|path| from.canonicalize().is_ok_and(|from| from == path)) {
            return Err(RestoreError::InCopyPlace { path: beside.to_owned() });
        }
        let aside = free(target);
        std::fs::rename(beside, &aside).map_err(io("move aside", beside))?;
        follow.note(&CareNote::LeftBeside(aside));
    }
    Ok(())
}

/// Returns how the log of a backup differs from the one that its mark names; `None` if it does not.
pub fn other_log(backup: &Embedded) -> Option<UnsoundBackup> {
    let (made, found) = (backup.backup_head()?, backup.tree());
    (found != made).then(|| UnsoundBackup::OtherLog { path: backup.dir().to_owned(), made, found })
}

/// Checks all of a backup before anything is made of it. Returns whether its key is here.
fn check_whole(backup: &Embedded, trust: &dyn Trust, follow: &mut dyn Follow) -> Result<bool, RestoreError> {
    let unsound = |why| RestoreError::Unsound { backup: backup.dir().to_owned(), why: Box::new(why) };
    let unknown = |error| RestoreError::Unknown(Error::Trust(error));
    other_log(backup).map_or(Ok(()), |why| Err(unsound(why)))?;
    refuse_damage(backup).map_err(|error| unsound(UnsoundBackup::Unreadable(error)))?;
    // What was signed here must be known before a log is put in the place of another.
    trust.head(backup.info().id).map_err(unknown)?;
    let log = log_of(backup).map_err(Error::from)?;
    let keys = backup.keys().map_err(Error::from)?;
    let has_key =
        match known_key(&keys, log.id, trust).map_err(|error| RestoreError::Unknown(error.into()))? {
            KnownKey::Another(here) => {
                return Err(unsound(UnsoundBackup::OtherKey { backup: Box::new(log.key), here }));
            }
            KnownKey::Without(position) => return Err(Error::KeyChanged { position }.into()),
            // The key of then was destroyed when it was changed.
            KnownKey::Older => false,
            // A key file that was named must be that of the log.
            KnownKey::Same | KnownKey::No => trust.key(&log).map_err(Error::from)?.is_some(),
        };
    let watch = follow.stage("records verified", Some(backup.tree().size));
    let options = VerifyOptions { meter: watch.meter().clone(), ..VerifyOptions::default() };
    let report = backup.verify(&options)?;
    match report.findings.into_iter().next() {
        None => Ok(has_key),
        Some(damage) => Err(unsound(UnsoundBackup::Damaged(Box::new(damage)))),
    }
}

/// A store that is to be replaced.
struct Old {
    store: Embedded,
    /// Erasures of that store that the backup does not have.
    erasures: NewErasures,
    /// Held so that no process is in the middle of an append.
    _lock: File,
}

/// Opens the store in the place, and refuses to put away records that the backup does not have.
fn there(
    named: &Path,
    backup: &Embedded,
    target: &Path,
    terms: RestoreTerms,
) -> Result<Option<Old>, RestoreError> {
    let path = target.to_owned();
    let place = || OldPlace { path: target.to_owned(), aside: free(target) };
    if std::fs::symlink_metadata(target).is_ok_and(|about| !about.is_dir()) {
        return Err(RestoreError::NotADirectory { path });
    }
    if !target.join("store.json").exists() {
        return match std::fs::read_dir(target).into_iter().flatten().next() {
            None => Ok(None),
            Some(_) => Err(RestoreError::NotEmpty(place())),
        };
    }
    if !terms.replace {
        return Err(RestoreError::IsStore { path, backup: named.to_owned() });
    }
    let lock = target.join("lock");
    if std::fs::symlink_metadata(&lock).is_ok_and(|about| !about.is_file()) {
        return Err(RestoreError::LockNotAFile { lock, place: place() });
    }
    let file = File::open(&lock).or_else(|_| File::create(&lock)).map_err(io("open", &lock))?;
    if file.try_lock().is_err() {
        return Err(RestoreError::Busy { path });
    }
    // A store that cannot be opened is not known to be older.
    let unreadable = |error| RestoreError::OldUnreadable { error: Box::new(error), place: place() };
    let store = Embedded::open(target, Options::read()).map_err(|error| unreadable(error.into()))?;
    if store.info().id != backup.info().id {
        return Err(RestoreError::OtherStore { path });
    }
    let newer = match newer_than(backup, &store) {
        Err(error) if is_of_integrity(&error) => Some(NewerRecords::Unreadable(error)),
        newer => newer.map_err(unreadable)?,
    };
    let mut erasures = NewErasures::of(&store, backup).map_err(unreadable)?;
    erasures.is_whole &= !matches!(newer, Some(NewerRecords::Hidden(_) | NewerRecords::Unreadable(_)));
    match newer {
        Some(why) if !terms.discard_newer => {
            let (backup, erased) = (named.to_owned(), erasures.places());
            Err(RestoreError::Newer { path, backup, why: Box::new(why), erased })
        }
        _ => Ok(Some(Old { store, erasures, _lock: file })),
    }
}

/// Returns which records a store has that a backup does not have.
fn newer_than(backup: &Embedded, store: &Embedded) -> Result<Option<NewerRecords>, Error> {
    if let Some(hidden) = HiddenLog::of(store)? {
        return Ok(Some(NewerRecords::Hidden(hidden.mark)));
    }
    let mine = backup.tree();
    // After damage as well, as far as anything can be read there.
    let walked = store.verify(&VerifyOptions::default())?;
    let TreeHead { size, root } = store.tree();
    let known = [size, walked.tree.size, walked.checkpoint.unwrap_or(0), store.index_status().unwrap_or(0)];
    let most = known.into_iter().max().unwrap_or(0);
    if most > mine.size {
        return Ok(Some(NewerRecords::More(most - mine.size)));
    }
    let same = store.trouble().is_some() || backup.root_of(size)? == Some(root);
    Ok((!same).then_some(NewerRecords::Other))
}

/// Returns a name beside a store that no program takes for a store.
fn beside(target: &Path, word: &str) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{word}"));
    target.with_file_name(name)
}

/// Puts the new store in its place, and the old one aside.
fn put_in_place(new: &Path, target: &Path, old: Option<Old>) -> Result<Option<PathBuf>, RestoreError> {
    let Some(old) = old else {
        if target.is_dir() {
            std::fs::remove_dir(target).map_err(io("put the store into", target))?;
        }
        std::fs::rename(new, target).map_err(io("put the store into", target))?;
        sync(target, None)?;
        return Ok(None);
    };
    // Windows moves no directory in which a file is open, the lock included.
    let _old = (!cfg!(windows)).then_some(old);
    let aside = free(target);
    if exchange(new, target)? {
        // Sync before the next rename: whatever fails now, there is a store in the place.
        sync(target, Some(new))?;
        let aside = if std::fs::rename(new, &aside).is_ok() { aside } else { new.to_owned() };
        sync(target, Some(&aside))?;
        return Ok(Some(aside));
    }
    std::fs::rename(target, &aside).map_err(io("move aside", target))?;
    if let Err(error) = std::fs::rename(new, target) {
        // Rather the old one than none.
        let _ = std::fs::rename(&aside, target);
        return Err(io("put the store into", target)(error).into());
    }
    sync(target, Some(&aside))?;
    Ok(Some(aside))
}

/// Returns a free name beside a store, for one that is moved aside.
fn free(target: &Path) -> PathBuf {
    let names = (1..).map(|n| match n {
        1 => beside(target, REPLACED),
        n => beside(target, &format!("{REPLACED}-{n}")),
    });
    let free = names.into_iter().find(|path| std::fs::symlink_metadata(path).is_err());
    free.unwrap_or_else(|| beside(target, REPLACED))
}

/// Makes the new names durable. If the system does not confirm that, the store has been restored all the same.
fn sync(target: &Path, aside: Option<&Path>) -> Result<(), RestoreError> {
    let dir = files::dir_of(target);
    files::sync_dir(dir).map_err(|error| RestoreError::NotSynced {
        error: Box::new(io("sync", dir)(error)),
        placed: PlacedStore { path: target.to_owned(), aside: aside.map(Path::to_owned) },
    })
}

/// Puts each of two directories in the place of the other, with no moment in which one is missing. Returns whether the system can.
#[cfg(target_os = "linux")]
fn exchange(new: &Path, target: &Path) -> Result<bool, Error> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, new, CWD, target, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::NOSYS | Errno::INVAL | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(io("put the store into", target)(error.into())),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> Result<bool, Error> {
    Ok(false)
}
