//! Signing the log.

use dendrer_object::Record;
use dendrer_object::note::{Checkpoint, SignedNote, SigningKey};

use super::ReadLog;
use crate::error::StoreError;

/// Decides whether a checkpoint may be signed; called with the store that is to sign it.
pub type MaySign<'a> = dyn FnMut(&dyn ReadLog, &Checkpoint) -> Result<bool, StoreError> + 'a;

/// Makes the record that is appended before a log is signed, if one is due; called with the store that is to sign it.
pub type LastRecord<'a> = dyn FnMut(&dyn ReadLog) -> Result<Option<Record>, StoreError> + 'a;

/// The part of a store that signs checkpoints.
pub trait SignLog {
    /// Signs the tree as it is, keeps the note, and returns it. Never signs two roots for one size.
    fn sign_checkpoint(&mut self, key: &SigningKey) -> Result<SignedNote, StoreError> {
        Ok(self.sign_if(key, &mut |_, _| Ok(true))?.expect("nothing keeps it from being signed"))
    }

    /// As [`SignLog::sign_checkpoint`], and calls `may` before the signature can be seen: what it remembers elsewhere then covers
    /// everything that was ever signed, wherever the program is stopped. `None` if `may` returns false: nothing is signed.
    fn sign_if(&mut self, key: &SigningKey, may: &mut MaySign<'_>) -> Result<Option<SignedNote>, StoreError> {
        self.sign_after(key, &mut |_| Ok(None), may)
    }

    /// As [`SignLog::sign_if`], and appends the record that `last` makes before: no record of another writer is between the
    /// record and the end of the tree that is signed.
    fn sign_after(
        &mut self,
        key: &SigningKey,
        last: &mut LastRecord<'_>,
        may: &mut MaySign<'_>,
    ) -> Result<Option<SignedNote>, StoreError>;

    /// Returns the newest signed checkpoint.
    fn checkpoint(&self) -> Result<Option<SignedNote>, StoreError>;
}
