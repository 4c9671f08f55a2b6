//! Limits and keys of a handle.
//!
//! Never has a password: that is read when a connection is made, and kept nowhere.

use std::sync::Arc;
use std::time::Duration;

use dendrer_object::note::SigningKey;
use dendrer_store::TreeHead;

/// How a store on a server is opened.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// How long a call waits for the server before it gives up ([`StoreError::Unreachable`]).
    pub deadline: Duration,
    /// After how long the server throws out a writer that was stopped inside an append.
    pub idle_in_append: Duration,
    /// How long a writer waits for the others ([`StoreError::Locked`]): longer than [`PostgresOptions::idle_in_append`].
    pub lock_wait: Duration,
    /// The key of the log, if it is here.
    pub key: Option<Arc<SigningKey>>,
    /// Whether nothing is written through the handle.
    pub reads_only: bool,
    /// Whether groups are written without a tag where neither key nor secret is here: for tests.
    pub untagged: bool,
    /// The epoch and the tree that were seen of this store before, from outside the server: a server that has less was
    /// restored from an older copy.
    pub seen: Option<(u64, TreeHead)>,
}

impl Default for PostgresOptions {
    fn default() -> PostgresOptions {
        PostgresOptions {
            deadline: Duration::from_secs(60),
            idle_in_append: Duration::from_secs(10),
            lock_wait: Duration::from_secs(20),
            key: None,
            reads_only: false,
            untagged: false,
            seen: None,
        }
    }
}
