//! Keeping encrypted bytes that are in no record.

use std::ops::Range;

use dendrer_object::{Digest, Record, RunName};

use super::{AppendLog, Head};
use crate::error::StoreError;

/// The most bytes that are kept under one name.
pub const SECRET_SIZE_MAX: usize = 1 << 20;

/// The condition of a change of the kept bytes. The default always holds.
///
/// Checked by the store together with the change, so that of two callers the second sees what the first did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'a> {
    /// These names have bytes.
    pub there: &'a [Digest],
    /// These names have none.
    pub absent: &'a [Digest],
    /// No other name than these, in order, has bytes.
    pub only: Option<&'a [Digest]>,
}

impl Given<'_> {
    /// Whether it holds. `has` says whether a name has bytes, `list` lists the names.
    pub fn holds<E>(
        &self,
        has: &mut dyn FnMut(&Digest) -> Result<bool, E>,
        list: &mut dyn FnMut() -> Result<Vec<Digest>, E>,
    ) -> Result<bool, E> {
        for name in self.there {
            if !has(name)? {
                return Ok(false);
            }
        }
        for name in self.absent {
            if has(name)? {
                return Ok(false);
            }
        }
        match self.only {
            Some(only) => Ok(list()?.iter().all(|name| only.binary_search(name).is_ok())),
            None => Ok(true),
        }
    }
}

/// Encrypted bytes that are put with the records that name them.
#[derive(Debug, Clone, Default)]
pub struct NewSecrets {
    /// Names and bytes, at least one byte each.
    pub items: Vec<(Digest, Vec<u8>)>,
    /// Names that must have bytes already.
    pub there: Vec<Digest>,
}

/// The part of a store that keeps encrypted bytes under opaque names.
///
/// A store does not know what they are: the caller encrypts, and makes the names so that they reveal nothing. They are no part
/// of the log, so no root and no signature covers them. They are in no bundle; a backup copies them.
///
/// Rule: [`KeepSecrets::get_secret`] returns bytes that were put under the name as a whole, or nothing, wherever a writer was
/// stopped. Bytes that changed on disk are returned as they are; the caller authenticates them.
pub trait KeepSecrets: AppendLog {
    /// As [`AppendLog::append_after`], and puts bytes with the group.
    ///
    /// A store on disk has both or neither after a crash. Any other puts the bytes first: those of a group that is refused may stay.
    ///
    /// # Errors
    ///
    /// [`StoreError::SecretGone`] if a name that must have bytes has none: nothing of the group is written.
    fn append_with(
        &mut self,
        records: &[Record],
        heads: &[(RunName, Head)],
        secrets: &NewSecrets,
    ) -> Result<Range<u64>, StoreError> {
        check_new(&secrets.items)?;
        let given = Given { there: &secrets.there, ..Given::default() };
        match self.put_secrets(&secrets.items, given)? {
            true => self.append_after(records, heads),
            false => Err(StoreError::SecretGone),
        }
    }

    /// Puts bytes under names, each in place of those that were there. They are durable when this returns true; false if what was
    /// given does not hold: nothing is put.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unsupported`] for more than [`SECRET_SIZE_MAX`] bytes under one name: nothing is put. If another error is
    /// returned, each name has the old bytes or the new ones.
    fn put_secrets(&mut self, secrets: &[(Digest, Vec<u8>)], given: Given<'_>) -> Result<bool, StoreError>;

    /// Returns the bytes under a name; `None` if nothing is kept there.
    fn get_secret(&self, name: &Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Destroys the bytes under names. A name that has none is passed over. False if what was given does not hold: nothing is
    /// destroyed.
    fn remove_secrets(&mut self, names: &[Digest], given: Given<'_>) -> Result<bool, StoreError>;

    /// Lists the names, in order.
    fn secrets(&self) -> Result<Vec<Digest>, StoreError>;
}

/// Refuses bytes that are too large for one name, and none: the frame of a destroyed value is known by its bytes.
pub fn check_new(secrets: &[(Digest, Vec<u8>)]) -> Result<(), StoreError> {
    match secrets.iter().any(|(_, bytes)| bytes.is_empty()) {
        true => Err(StoreError::Unsupported("a name of the vault has at least one byte")),
        false => check_sizes(secrets),
    }
}

/// Refuses bytes that are too large for one name.
pub fn check_sizes(secrets: &[(Digest, Vec<u8>)]) -> Result<(), StoreError> {
    match secrets.iter().any(|(_, bytes)| bytes.len() > SECRET_SIZE_MAX) {
        true => Err(StoreError::Unsupported("at most 1 MiB is kept under one name of the vault")),
        false => Ok(()),
    }
}
