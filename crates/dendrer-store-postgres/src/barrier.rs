//! The barrier: what makes groups durable that were committed without waiting for the disk.
//!
//! The write-ahead log of a server is one sequence, so a flush after a group covers the group and all before it. The barrier is
//! a transaction of its own that writes to that log; one that only takes a number would not flush.
//!
//! Rule: a barrier counts only if the server still has the group: one that crashed in between and came up again has lost it, and
//! flushes happily. So each one looks the group up.

use std::sync::{Arc, Mutex, PoisonError};

use dendrer_object::Digest;
use dendrer_store::{StoreError, Ticket, TreeHead, WaitForSync};

use crate::wire::{Which, Wire};

#[derive(Debug)]
pub(crate) struct Barrier {
    wire: Arc<Wire>,
    /// The newest tree that was committed or read.
    newest: Mutex<Option<TreeHead>>,
    /// The size that is durable. Held while a barrier runs, so that those who wait share it.
    durable: Mutex<u64>,
    failed: Mutex<Option<String>>,
}

const BARRIER: &str = "select pg_logical_emit_message(true, 'dendrer', '')::text, \
                       (select root from group_end where size = $1)";

impl Barrier {
    pub(crate) fn new(wire: Arc<Wire>) -> Barrier {
        Barrier { wire, newest: Mutex::default(), durable: Mutex::default(), failed: Mutex::default() }
    }

    /// Notes the tree that the next barrier covers.
    pub(crate) fn appended(&self, tree: TreeHead) {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(tree);
    }

    /// Returns why no barrier can succeed any more.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        let why = self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(StoreError::SyncFailed { why })
    }

    /// Waits until the log is durable up to a size.
    pub(crate) fn cover(&self, size: u64) -> Result<(), StoreError> {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        if *durable >= size {
            return Ok(());
        }
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let newest = *self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tree) = newest.filter(|tree| tree.size >= size) else {
            return Err(StoreError::Unsupported("a ticket of another store"));
        };
        // The connection may have been lost since: then the server is asked once more, over a new one.
        let mut done = self.once(tree.size);
        if matches!(done, Err(StoreError::Unreachable { .. })) {
            done = self.once(tree.size);
        }
        match done {
            Ok(Some(root)) if root == tree.root => {
                *durable = tree.size;
                Ok(())
            }
            Ok(_) => {
                let why = format!("the server has lost the group that ends at size {}", tree.size);
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
                Err(StoreError::SyncFailed { why })
            }
            // Whether the group is durable is not known, and a later barrier may find out.
            Err(error) => Err(StoreError::SyncFailed { why: error.to_string() }),
        }
    }

    fn once(&self, size: u64) -> Result<Option<Digest>, StoreError> {
        self.wire.run(Which::Sync, |session| async move {
            let rows = session.query(BARRIER, &[&(size as i64)]).await?;
            let root = rows.first().map(|row| row.try_get::<_, Option<Vec<u8>>>(1)).transpose()?.flatten();
            Ok(root.and_then(|root| root.try_into().ok()).map(Digest))
        })
    }
}

impl WaitForSync for Barrier {
    fn wait_for_sync(&self, ticket: &Ticket) -> Result<(), StoreError> {
        self.cover(ticket.size)
    }
}
