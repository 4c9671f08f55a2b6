//! Keys and heads in memory: for tests, and for a service that keeps its keys elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use dendrer_object::StoreId;
use dendrer_object::note::{SigningKey, VerifierKey};
use dendrer_store::{StoreInfo, TreeHead, WriterSecret};

use super::{SigningTurn, Trust, TrustError, VaultKey};

/// Keys and heads of this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryTrust(Arc<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    kept: Mutex<Kept>,
    turn_ended: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    keys: BTreeMap<StoreId, Arc<SigningKey>>,
    heads: BTreeMap<StoreId, TreeHead>,
    vault_keys: BTreeMap<StoreId, VaultKey>,
    writers: BTreeMap<StoreId, Arc<WriterSecret>>,
    known: BTreeMap<StoreId, Vec<VerifierKey>>,
    /// The logs that are being signed.
    turns: BTreeSet<StoreId>,
}

impl MemoryTrust {
    /// Knows no key and no head.
    pub fn new() -> MemoryTrust {
        MemoryTrust::default()
    }

    /// Keeps the secret of those who append to a log: for a service that writes and does not sign.
    pub fn keep_writer(&self, store: StoreId, secret: WriterSecret) {
        self.kept().writers.insert(store, Arc::new(secret));
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trust for MemoryTrust {
    fn key(&self, log: &StoreInfo) -> Result<Option<Arc<SigningKey>>, TrustError> {
        match self.kept().keys.get(&log.id) {
            Some(key) if *key.verifier_key() != log.key => Err(TrustError::KeyUnusable {
                path: "memory".into(),
                what: "used",
                why: format!("it is not the key of this store, which is {}", log.key),
            }),
            key => Ok(key.cloned()),
        }
    }

    fn writer(&self, log: &StoreInfo) -> Result<Option<Arc<WriterSecret>>, TrustError> {
        let key = self.key(log)?.map(|key| Arc::new(WriterSecret::of(&key)));
        Ok(key.or_else(|| self.kept().writers.get(&log.id).cloned()))
    }

    fn known_keys(&self, store: StoreId) -> Result<Vec<VerifierKey>, TrustError> {
        Ok(self.kept().known.get(&store).cloned().unwrap_or_default())
    }

    fn know_key(&self, store: StoreId, key: &VerifierKey) -> Result<(), TrustError> {
        self.kept().known.entry(store).or_default().push(key.clone());
        Ok(())
    }

    fn own_key(&self, store: StoreId) -> Result<Option<VerifierKey>, TrustError> {
        Ok(self.kept().keys.get(&store).map(|key| key.verifier_key().clone()))
    }

    fn keep_key(&self, store: StoreId, key: &Arc<SigningKey>) -> Result<(), TrustError> {
        let mut kept = self.kept();
        if kept.keys.contains_key(&store) {
            let source = std::io::ErrorKind::AlreadyExists.into();
            return Err(TrustError::KeyNotWritten { path: "memory".into(), source });
        }
        kept.keys.insert(store, Arc::clone(key));
        Ok(())
    }

    fn drop_key(&self, store: StoreId) {
        self.kept().keys.remove(&store);
    }

    fn head(&self, store: StoreId) -> Result<Option<TreeHead>, TrustError> {
        Ok(self.kept().heads.get(&store).copied())
    }

    fn vault_key(&self, store: StoreId) -> Result<Option<VaultKey>, TrustError> {
        Ok(self.kept().vault_keys.get(&store).cloned())
    }

    fn keep_vault_key(&self, store: StoreId, key: &VaultKey) -> Result<(), TrustError> {
        let mut kept = self.kept();
        if kept.vault_keys.contains_key(&store) {
            let source = std::io::ErrorKind::AlreadyExists.into();
            return Err(TrustError::KeyNotWritten { path: "memory".into(), source });
        }
        kept.vault_keys.insert(store, key.clone());
        Ok(())
    }

    fn destroy_vault_key(&self, store: StoreId) -> Result<(), TrustError> {
        self.kept().vault_keys.remove(&store);
        Ok(())
    }

    fn turn(&self, store: StoreId) -> Result<Box<dyn SigningTurn + '_>, TrustError> {
        let mut kept = self.kept();
        while !kept.turns.insert(store) {
            kept = self.0.turn_ended.wait(kept).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(Box::new(MemoryTurn { trust: self, store }))
    }
}

/// Why a head takes no other's place.
pub(super) const OTHER_HEAD: &str = "another head was remembered meanwhile";

struct MemoryTurn<'t> {
    trust: &'t MemoryTrust,
    store: StoreId,
}

impl SigningTurn for MemoryTurn<'_> {
    fn remember(&mut self, head: TreeHead) -> Result<(), TrustError> {
        let mut kept = self.trust.kept();
        if kept.heads.get(&self.store).is_none_or(|known| known.size < head.size) {
            kept.heads.insert(self.store, head);
        }
        Ok(())
    }

    fn replace(&mut self, discarded: TreeHead, head: TreeHead) -> Result<(), TrustError> {
        let mut kept = self.trust.kept();
        if kept.heads.get(&self.store) != Some(&discarded) {
            return Err(TrustError::NotRemembered { path: "memory".into(), why: OTHER_HEAD.to_owned() });
        }
        kept.heads.insert(self.store, head);
        Ok(())
    }
}

impl Drop for MemoryTurn<'_> {
    fn drop(&mut self) {
        self.trust.kept().turns.remove(&self.store);
        self.trust.0.turn_ended.notify_all();
    }
}
