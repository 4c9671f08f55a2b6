//! The keys of a log, and what this machine knows of them.
//!
//! Rule: where the key that is known here was changed without it, nothing is written; test
//! `who_knows_the_key_before_writes_nothing`.

use dendrer_object::StoreId;
use dendrer_object::keys::{KeyTrust, LogKeys};
use dendrer_store::{Store, StoreError, StoreInfo};

use crate::error::{Error, TrustError};
use crate::evidence::verify::judge::KnownKey;
use crate::trust::Trust;

/// Compares the keys of a log with the one that is known on this machine.
pub fn known_key(keys: &LogKeys, store: StoreId, trust: &dyn Trust) -> Result<KnownKey, TrustError> {
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
    // A key that lies here and that the log never had speaks against one of the two, whatever signed here before.
    if let Some(own) =
        own.as_ref().filter(|own| keys.follows(own) == KeyTrust::Another && !known.contains(own))
    {
        return Ok(KnownKey::Another(Box::new(own.clone())));
    }
    known = if known.is_empty() { own.into_iter().collect() } else { known };
    // A head alone is no key: who signed here has remembered the key with it.
    let Some(newest) = known.last().cloned() else { return Ok(KnownKey::No) };
    match keys.follows(&newest) {
        _ if is_held => {}
        KeyTrust::Follows => {}
        KeyTrust::Without(position) => return Ok(KnownKey::Without(position)),
        KeyTrust::Another if known.contains(now) => return Ok(KnownKey::Older),
        KeyTrust::Another => return Ok(KnownKey::Another(Box::new(newest))),
    }
    Ok(KnownKey::Same)
}

/// Remembers the key in force of a store that was accepted, after those that are known. A bundle is remembered nowhere: the thief of
/// a key can make one. A list that cannot be written is asked of the log by the next command.
pub(crate) fn accept(keys: &LogKeys, store: StoreId, trust: &dyn Trust) {
    let kept = trust.known_keys(store).unwrap_or_default();
    let own = trust.own_key(store).ok().flatten().filter(|_| kept.is_empty());
    let knows = kept
        .last()
        .or(own.as_ref())
        .map_or_else(|| trust.head(store).is_ok_and(|head| head.is_some()), |newest| newest != keys.now());
    if keys.spans().len() > 1 && knows {
        for key in own.iter().chain([keys.now()]) {
            let _ = trust.know_key(store, key);
        }
    }
}

/// Returns id and format of a store, with the key in force.
pub fn log_of(store: &dyn Store) -> Result<StoreInfo, StoreError> {
    Ok(store.info().under(store.keys()?.now()))
}

/// Fails where the key of the log was changed without the one that is known here.
pub(crate) fn refuse_changed(store: &dyn Store, trust: &dyn Trust) -> Result<(), Error> {
    let (keys, id) = (store.keys()?, store.info().id);
    match known_key(&keys, id, trust)? {
        KnownKey::Without(position) => return Err(Error::KeyChanged { position }),
        KnownKey::Same => accept(&keys, id, trust),
        KnownKey::No | KnownKey::Older | KnownKey::Another(_) => {}
    }
    Ok(())
}
