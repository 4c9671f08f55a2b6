//! A log compared with the newest head that was signed here.

use dendrer_object::note::VerifierKey;
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Store, TreeHead};

use super::keys::known_key;
use crate::error::{Error, LogDiffers};
use crate::evidence::verify::judge::KnownKey;
use crate::trust::Trust;

/// Compares a log with a head; `None` if it begins with what the head names.
///
/// Takes in what other processes wrote first. A backup is expected to be shorter: the store it was made of went on.
pub fn differs(store: &mut Embedded, head: Option<TreeHead>) -> Result<Option<LogDiffers>, Error> {
    let Some(head) = head else { return Ok(None) };
    if head.size > store.tree().size {
        store.refresh()?;
    }
    let size = store.tree().size;
    if head.size > size && store.mark()?.is_some_and(|mark| !mark.in_store) {
        return Ok(None);
    }
    compare(store, head)
}

/// As [`differs`], of a store that is no backup and that was refreshed.
pub(super) fn compare(store: &dyn Store, head: TreeHead) -> Result<Option<LogDiffers>, Error> {
    let size = store.tree().size;
    Ok((store.root_of(head.size)? != Some(head.root)).then_some(LogDiffers { has: size, had: head.size }))
}

/// As [`compare`], by the hashes of entries: a commit frame holds whatever its writer put there.
pub(super) fn compare_hashes(store: &dyn Store, head: TreeHead) -> Result<Option<LogDiffers>, Error> {
    let differs = compare(store, head)?;
    let size = store.tree().size;
    if differs.is_none() && head.size <= size && !store.extends(head.size, head.root)? {
        return Ok(Some(LogDiffers { has: size, had: head.size }));
    }
    Ok(differs)
}

/// Fails if a log was seen longer here, or with other records: what followed would be a second history under one key, and a
/// log never has two signed roots for one size.
pub fn refuse_rollback(store: &mut Embedded, trust: &dyn Trust) -> Result<(), Error> {
    let head = trust.head(store.info().id)?;
    let mut why = differs(store, head)?;
    if let (None, Some(head)) = (why, head)
        && head.size <= store.tree().size
    {
        why = compare_hashes(store, head)?;
    }
    why.map_or(Ok(()), |why| Err(Error::AnotherLog { why, committed: false }))
}

/// Remembers the checkpoint of a store that is about to be moved aside, if a key that follows from `key` signed it. The caller
/// knows the first key of the log: the store's own description is no evidence of it.
pub fn remember_checkpoint(store: &Embedded, key: &VerifierKey, trust: &dyn Trust) -> Result<(), Error> {
    let Some(note) = store.checkpoint()? else { return Ok(()) };
    let (keys, id) = (store.keys()?, store.info().id);
    let is_own =
        store.info().key == *key && matches!(known_key(&keys, id, trust)?, KnownKey::Same | KnownKey::No);
    if is_own && let Ok(checkpoint) = keys.open(&note) {
        let head = TreeHead { size: checkpoint.size(), root: checkpoint.root() };
        if trust.head(id)?.is_some_and(|known| known.size >= head.size) {
            return Ok(());
        }
        trust.turn(id)?.remember(head)?;
    }
    Ok(())
}
