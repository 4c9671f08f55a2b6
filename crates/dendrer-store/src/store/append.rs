//! Appending to the log.

use std::ops::Range;
use std::sync::Arc;

use dendrer_object::{Record, RunName};

use super::ticket::{Ticket, WaitForSync};
use super::{GroupEnd, Head, LogWriter, ReadLog, TreeHead};
use crate::error::StoreError;

/// The part of a store that appends.
///
/// A group is appended whole or not at all. [`fence::check`](crate::fence::check) decides whether it fits, the same for
/// every store.
pub trait AppendLog: ReadLog {
    /// Appends one group, whole or not at all, and returns its positions. Visible from now on; durable after the next
    /// group that is committed, or submitted and waited for.
    ///
    /// Refused with nothing written: a transition or end that is not made for its run's head ([`StoreError::Stale`]),
    /// a `run` record of a known name, anything on the chain of an ended run, a link or head that names no earlier
    /// record, a record of another store.
    fn append(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError>;

    /// As [`AppendLog::append`], for a group that was decided on the heads of other runs: if one of them has moved, nothing is written
    /// ([`StoreError::Stale`]). A store that several processes append to checks that under its lock.
    fn append_after(
        &mut self,
        records: &[Record],
        heads: &[(RunName, Head)],
    ) -> Result<Range<u64>, StoreError> {
        check_heads(self, heads)?;
        self.append(records)
    }

    /// Starts to append one group and to make it durable, so that the caller can prepare the next one meanwhile. A group
    /// that came too late fails here, or in [`AppendLog::wait`]. Fails as [`AppendLog::commit`] does.
    ///
    /// The sync may be left to the thread that waits. Without records, the ticket is for what was appended before.
    fn submit(&mut self, records: &[Record]) -> Result<Ticket, StoreError>;

    /// Waits until a group is durable. Fails as [`AppendLog::commit`] does. A ticket of another store is misuse.
    fn wait(&mut self, ticket: Ticket) -> Result<(), StoreError>;

    /// Appends one group and makes it, and all that was appended before, durable. If this fails with anything but
    /// [`StoreError::SyncFailed`], nothing of the group was written.
    fn commit(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError> {
        let positions = self.append(records)?;
        let ticket = self.submit(&[]).map_err(|error| error.as_failed_sync())?;
        self.wait(ticket)?;
        Ok(positions)
    }

    /// Returns what waits for tickets without this handle. `None`: [`AppendLog::wait`] is the only way, and a
    /// [`Shared`](crate::Shared) store is not used by others while it waits.
    fn waiter(&self) -> Option<Arc<dyn WaitForSync>> {
        None
    }

    /// Sets who writes from now on. A secret that is not that of the store's key is [`LogWriter::Missing`].
    fn set_writer(&mut self, writer: LogWriter);

    /// Returns the groups after the newest valid checkpoint whose tags this writer did not make, by their positions, as far as
    /// this handle sees the log; `None` without a secret.
    ///
    /// While there is one, and it was not adopted, nothing is appended, erased or signed ([`StoreError::Untagged`]). A store that
    /// several processes append to checks that under its lock.
    fn untagged(&self) -> Result<Option<Vec<Range<u64>>>, StoreError>;

    /// Returns the end of the group that holds a record; `None` without such a group, or from a store that keeps none. With its
    /// tag a secret can be proven.
    fn group_of(&self, _position: u64) -> Result<Option<GroupEnd>, StoreError> {
        Ok(None)
    }

    /// Lets the groups up to a tree count as tagged, for this handle: the holder of the key has seen them, and is about to sign.
    ///
    /// # Errors
    ///
    /// [`StoreError::Lost`] if the log does not have this tree.
    fn adopt(&mut self, to: TreeHead) -> Result<(), StoreError>;

    /// Finishes background work. Groups that were submitted and not waited for may be written or not.
    fn close(self: Box<Self>) -> Result<(), StoreError>;

    /// Finishes background work on what is derived from the log. Returns how many records are missing there if another program
    /// has it locked: nothing waits for that program, and nothing is lost.
    fn late_index(&mut self) -> Option<u64> {
        None
    }
}

/// Fails if one of some runs has another head.
pub fn check_heads<S: ReadLog + ?Sized>(store: &S, heads: &[(RunName, Head)]) -> Result<(), StoreError> {
    for (run, expected) in heads {
        let found = store.run(run)?.map(|summary| summary.head);
        if found.as_ref() != Some(expected) {
            let (run, expected) = (run.clone(), expected.clone());
            return Err(StoreError::Stale {
                run,
                found: found.unwrap_or_else(|| expected.clone()),
                expected,
            });
        }
    }
    Ok(())
}
