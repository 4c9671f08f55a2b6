//! Keys of logs and of their vaults, and the newest head that was signed with each.
//!
//! Neither is ever in a store: a copied store must not bring its key along, and a store that was rolled back must not roll back
//! what this user knows to be signed. [`UserTrust`] keeps both in files of the user, [`MemoryTrust`] in memory.
//!
//! Rule: a head is remembered before its signature can be seen, and only within a [turn](Trust::turn); tests
//! `only_one_has_a_turn_at_a_time` and `a_smaller_head_never_replaces_a_larger_one` run over both implementations.

mod memory;
mod seen;
mod tag_key;
mod user;
mod vault_key;
mod writer_file;

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer_object::StoreId;
use dendrer_object::note::{SigningKey, VerifierKey};
use dendrer_store::{StoreInfo, TreeHead, WriterSecret};

pub use crate::error::TrustError;
pub use memory::MemoryTrust;
pub use seen::{Seen, Stamp};
pub use tag_key::TagKey;
pub use user::{UserTrust, make_key, read_key, write_key, write_writer};
pub use vault_key::VaultKey;
pub use writer_file::WriterFile;

/// How far a log can be relied on, in numbers of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogTrust {
    /// The records of the log.
    pub size: u64,
    /// Those that are signed.
    pub signed: u64,
    /// Those that are signed, or in groups with the tag of its writers; `None` if neither is here.
    pub tagged: Option<u64>,
    /// Those that a verification of the whole log on this machine found intact.
    pub verified: u64,
}

/// Keys, and the newest head signed with each.
pub trait Trust: Debug + Send + Sync {
    /// Returns the key of a log; `None` if it is not here. A key that is here and cannot be used, or is that of another log,
    /// is an error: a replaced key must not go unnoticed.
    fn key(&self, log: &StoreInfo) -> Result<Option<Arc<SigningKey>>, TrustError>;

    /// Returns the secret of those who append to a log; `None` if neither it nor the key is here.
    ///
    /// # Errors
    ///
    /// As [`Trust::key`].
    fn writer(&self, log: &StoreInfo) -> Result<Option<Arc<WriterSecret>>, TrustError> {
        Ok(self.key(log)?.map(|key| Arc::new(WriterSecret::of(&key))))
    }

    /// Returns the place of that secret, for messages.
    fn writer_place(&self, _store: StoreId) -> PathBuf {
        "memory".into()
    }

    /// Returns the secret that makes the tags of redacted values: it follows from the key that the log began with here, and stays
    /// when that is changed. `None` if the key is not here.
    ///
    /// # Errors
    ///
    /// As [`Trust::key`].
    fn tag_key(&self, log: &StoreInfo) -> Result<Option<TagKey>, TrustError> {
        Ok(self.key(log)?.map(|key| TagKey::of(log.id, &key)))
    }

    /// Keeps the key that is to take the place of the key of a log, with the secret of its tags.
    ///
    /// # Errors
    ///
    /// [`TrustError::NoHome`] if there is no place for it.
    fn keep_next(
        &self,
        _store: StoreId,
        _key: &Arc<SigningKey>,
        _tags: Option<TagKey>,
    ) -> Result<(), TrustError> {
        Err(TrustError::NoHome)
    }

    /// Returns the public half of the key that is to take the place of the key of a log.
    fn next_key(&self, _store: StoreId) -> Result<Option<VerifierKey>, TrustError> {
        Ok(None)
    }

    /// Ends a change of keys. If the next key is in force, it takes the place of the old one, which is destroyed;
    /// with `out` that is a new file. If another one is in force, it is destroyed itself. Done again, it does nothing.
    fn end_change(
        &self,
        _store: StoreId,
        _in_force: &VerifierKey,
        _out: Option<&Path>,
    ) -> Result<(), TrustError> {
        Ok(())
    }

    /// Lists the keys of a log that this user has known, in order.
    fn known_keys(&self, _store: StoreId) -> Result<Vec<VerifierKey>, TrustError> {
        Ok(Vec::new())
    }

    /// Remembers a key of a log after those that were known before.
    fn know_key(&self, _store: StoreId, _key: &VerifierKey) -> Result<(), TrustError> {
        Ok(())
    }

    /// Returns the public half of the key of a log in the place of this user, whatever key file was named; `None` if it is not here.
    fn own_key(&self, store: StoreId) -> Result<Option<VerifierKey>, TrustError>;

    /// Keeps the key of a new log. Never replaces a key.
    fn keep_key(&self, store: StoreId, key: &Arc<SigningKey>) -> Result<(), TrustError>;

    /// Forgets the key of a log that was never made.
    fn drop_key(&self, store: StoreId);

    /// Returns the newest head of a log that was signed here; `None` if none was. A head that cannot be read is an error, never
    /// `None`: an older log would pass for the whole of it.
    fn head(&self, store: StoreId) -> Result<Option<TreeHead>, TrustError>;

    /// Returns the key of the vault of a store; `None` if it is not here, because it was never made or was destroyed.
    ///
    /// # Errors
    ///
    /// A key that is here and cannot be read is an error, never `None`: a second key would be made, and what the first one
    /// encrypted be lost.
    fn vault_key(&self, store: StoreId) -> Result<Option<VaultKey>, TrustError>;

    /// Keeps the key of a vault. Never replaces a key.
    ///
    /// # Errors
    ///
    /// [`TrustError::KeyNotWritten`] if there is one already, with the source [`AlreadyExists`](std::io::ErrorKind::AlreadyExists).
    fn keep_vault_key(&self, store: StoreId, key: &VaultKey) -> Result<(), TrustError>;

    /// Destroys the key of a vault, and with it everything that it encrypted, wherever there are copies. A key that is not here
    /// is passed over.
    fn destroy_vault_key(&self, store: StoreId) -> Result<(), TrustError>;

    /// Returns the public half of the key in the file that the user named; `None` if none was named.
    ///
    /// # Errors
    ///
    /// A file that has no key is an error.
    fn named_key(&self) -> Result<Option<VerifierKey>, TrustError> {
        Ok(None)
    }

    /// Returns the note on the runs of a store that were found intact on this machine; `None` if there is no place for one.
    fn seen(&self, _store: StoreId) -> Option<Seen> {
        None
    }

    /// Waits until no other process or thread signs this log, and keeps them from it until the turn is dropped.
    fn turn(&self, store: StoreId) -> Result<Box<dyn SigningTurn + '_>, TrustError>;
}

/// The right to sign a log, for as long as it is not dropped.
pub trait SigningTurn {
    /// Remembers a head, unless one as large is remembered already. If this fails the head may still be signed: the caller
    /// reports that a rollback to before it would not show.
    fn remember(&mut self, head: TreeHead) -> Result<(), TrustError>;

    /// Remembers a head in place of the one that is remembered, which it does not extend: the caller discards the other log,
    /// and the new one has erasures that must be written. From now on the other log is the one that is never written.
    ///
    /// # Errors
    ///
    /// [`TrustError::NotRemembered`] if another head than `discarded` is remembered, or this trust keeps none.
    fn replace(&mut self, discarded: TreeHead, head: TreeHead) -> Result<(), TrustError> {
        let why =
            format!("a head of {} records cannot take the place of one of {}", head.size, discarded.size);
        Err(TrustError::NotRemembered { path: Default::default(), why })
    }
}

#[cfg(test)]
mod tests;
