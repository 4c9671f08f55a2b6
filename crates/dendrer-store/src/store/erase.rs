//! Destroying values.

use dendrer_object::{Pointer, Record};

use crate::error::StoreError;

/// The part of a store that destroys values.
pub trait EraseValues {
    /// Commits an `erase` record, then destroys the values at or below the given places of earlier records.
    /// Their commitments stay; their records still verify.
    fn erase(&mut self, record: &Record, targets: &[(u64, Vec<Pointer>)]) -> Result<u64, StoreError>;
}
