//! Signing the log.

use dendrer_object::note::{SignedNote, SigningKey};

use crate::error::StoreError;

/// The part of a store that signs checkpoints.
pub trait SignLog {
    /// Signs the tree as it is, keeps the note, and returns it. Never signs two roots for one size.
    fn sign_checkpoint(&mut self, key: &SigningKey) -> Result<SignedNote, StoreError>;

    /// Returns the newest signed checkpoint.
    fn checkpoint(&self) -> Result<Option<SignedNote>, StoreError>;
}
