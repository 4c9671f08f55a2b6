//! Tickets: a submitted group that is not known to be durable yet.

use std::fmt;

use crate::error::StoreError;

/// A group on its way to the disk. Given back to [`AppendLog::wait`](super::AppendLog::wait) of the store that gave it out.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "nothing is durable before the store waited for the ticket"]
pub struct Ticket {
    /// Names the group, or its sync, to the store. The store decides on its unit.
    pub number: u64,
    /// The size of the log with the group; 0 where another thread appends the group later.
    pub size: u64,
}

/// Waits for the syncs of a store without the store, so that other threads use the store meanwhile.
pub trait WaitForSync: fmt::Debug + Send + Sync {
    /// Waits until what a ticket covers is durable. The store is still to be told, by
    /// [`AppendLog::wait`](super::AppendLog::wait), and says there what a failure means.
    fn wait_for_sync(&self, ticket: &Ticket) -> Result<(), StoreError>;
}
