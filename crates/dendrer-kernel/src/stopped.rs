//! A program that was ended by a limit of its engine.
//!
//! Engines count differently, so the limit depends on the engine and not on the state: neither a verdict nor a record
//! may depend on it. Predicates and reducers that are modules both return [`Stopped`].

use dendrer_object::Digest;

/// A program ended by a limit. Says nothing of the state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("module {} was stopped: {limit}", .program.short())]
pub struct Stopped {
    /// The digest of the program.
    pub program: Digest,
    /// Which limit, in words.
    pub limit: String,
}
