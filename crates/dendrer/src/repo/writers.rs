//! The writer of a store.
//!
//! Rule: a secret is used only if it made the tag of the group with the record that binds the key of the log; test
//! `a_secret_that_is_not_that_of_the_log_writes_nothing`.

use std::sync::Arc;

use dendrer_store::{LogWriter, Store, WriterSecret};

use super::keys::log_of;
use crate::error::Error;
use crate::trust::{Trust, TrustError};

/// The position of the record that binds the key of a log. Its group was written with the key.
const KEY_RECORD: u64 = 0;

/// Returns the writer of a store: with the key of its log, with the secret of its writers, or not at all.
pub fn writer_of(trust: &dyn Trust, store: &dyn Store) -> LogWriter {
    match (store.key(), writer_secret(trust, store)) {
        (Some(key), _) => LogWriter::of(key),
        (None, Ok(Some(secret))) => LogWriter::Secret(secret),
        (None, _) => LogWriter::Missing,
    }
}

/// Returns the secret of the writers of a log; `None` if neither it nor the key is here.
///
/// # Errors
///
/// [`TrustError::NotTheSecret`] for a secret that did not tag the group of the key, or why it cannot be read.
pub fn writer_secret(trust: &dyn Trust, store: &dyn Store) -> Result<Option<Arc<WriterSecret>>, Error> {
    let (log, keys) = (log_of(store)?, store.keys()?);
    let Some(secret) = trust.writer(&log)? else { return Ok(None) };
    let is_proven = match keys.writer() {
        // A change of the key states the digest of the secret that follows from the new one.
        Some(mark) => secret.mark() == mark,
        // An empty log binds no key yet.
        None if store.tree().size == 0 => true,
        None => {
            store.group_of(KEY_RECORD)?.is_some_and(|group| secret.has_tagged(log.id, group.tree, &group.tag))
        }
    };
    if is_proven || trust.key(&log).is_ok_and(|key| key.is_some()) {
        return Ok(Some(secret));
    }
    Err(TrustError::NotTheSecret { place: trust.writer_place(log.id) }.into())
}
