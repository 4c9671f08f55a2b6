//! The keys of a log, and what this machine knows of them.
//!
//! Rule: where the key that is known here was changed without it, nothing is written; test
//! `who_knows_the_key_before_writes_nothing`.

use dendrer_object::StoreId;
use dendrer_object::keys::{KeyTrust, LogKeys};
use dendrer_object::note::VerifierKey;
use dendrer_store::{ReadLog as _, Store, StoreError, StoreInfo};

use super::{Repo, Signed};
use crate::error::{Error, TrustError};
use crate::trust::Trust;

/// How the key in force follows from the one that is known on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownKey {
    /// None is known.
    No,
    /// It is the same, or follows from it.
    Same,
    /// The record at this position changed it without the one that is known.
    Without(u64),
    /// The log ends before the key was changed here.
    Older,
    /// The known key, which is none of the log.
    Another(Box<VerifierKey>),
}

impl KnownKey {
    /// Compares the keys of a log with what this machine knows, and remembers a key that follows from a known one.
    pub fn of(keys: &LogKeys, store: StoreId, trust: &dyn Trust) -> Result<KnownKey, TrustError> {
        let now = keys.now();
        let is_named = trust.named_key().ok().flatten().as_ref() == Some(now);
        let own = match trust.own_key(store) {
            // Who names the key in force needs no other.
            Err(_) if is_named => None,
            own => own?,
        };
        let mut known = trust.known_keys(store)?;
        let is_held = is_named || own.as_ref() == Some(now);
        if is_held && known.is_empty() {
            return Ok(KnownKey::Same);
        }
        known = if known.is_empty() { own.into_iter().collect() } else { known };
        let newest = match known.last() {
            Some(newest) => newest.clone(),
            // Who signed here has known the key of that size.
            None => match trust.head(store)? {
                Some(head) => keys.in_force_at(head.size).clone(),
                None => return Ok(KnownKey::No),
            },
        };
        match keys.follows(&newest) {
            _ if is_held => {}
            KeyTrust::Follows => {}
            KeyTrust::Without(position) => return Ok(KnownKey::Without(position)),
            KeyTrust::Another if known.contains(now) => return Ok(KnownKey::Older),
            KeyTrust::Another => return Ok(KnownKey::Another(Box::new(newest))),
        }
        if newest != *now {
            remember(store, &known, now, trust);
        }
        Ok(KnownKey::Same)
    }
}

/// Remembers a key after those that are known. Where that cannot be written, the next command asks the log again.
fn remember(store: StoreId, known: &[VerifierKey], now: &VerifierKey, trust: &dyn Trust) {
    let kept = trust.known_keys(store).unwrap_or_default();
    let missing = known.iter().filter(|key| !kept.contains(key)).chain([now]);
    missing.for_each(|key| {
        let _ = trust.know_key(store, key);
    });
}

/// Returns id and format of a store, with the key in force.
pub fn log_of(store: &dyn Store) -> Result<StoreInfo, StoreError> {
    Ok(store.info().under(store.keys()?.now()))
}

/// Fails where the key of the log was changed without the one that is known here.
pub(crate) fn refuse_changed(store: &dyn Store, trust: &dyn Trust) -> Result<(), Error> {
    match KnownKey::of(&store.keys()?, store.info().id, trust)? {
        KnownKey::Without(position) => Err(Error::KeyChanged { position }),
        _ => Ok(()),
    }
}

impl Repo {
    /// Returns id and format of the store with the key in force, as far as this handle sees the log.
    pub fn log(&self) -> Result<StoreInfo, Error> {
        Ok(self.info().under(self.keys()?.now()))
    }

    /// Returns the keys of the log.
    pub fn keys(&self) -> Result<LogKeys, Error> {
        let reader = self.inner.reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(reader.keys()?)
    }

    /// Ends a change of keys that was stopped: finishes it if it is on record, else takes it back.
    pub(super) fn settle_keys(&self) -> Result<(), Error> {
        let (trust, id) = (&**self.trust(), self.info().id);
        let Some(next) = trust.next_key(id)? else { return Ok(()) };
        if next == *self.keys()?.now() {
            // What is on record is on disk before the old key is destroyed.
            if let Signed::UpTo { not_remembered: Some(error), .. } = self.sign()? {
                return Err(Error::NotSigned(error));
            }
            remember(id, &[], &next, trust);
        }
        // Whoever changes the key has the turn until it is done.
        let _turn = trust.turn(id)?;
        let mut writer = self.writer()?.clone();
        writer.refresh()?;
        Ok(trust.end_change(id, self.keys()?.now(), None)?)
    }
}
