//! Runs that are made of others: forks, rebases, merges, imports, extensions.
//!
//! Everything that is proposed again goes through the kernel like a first proposal.

pub mod cherrypick;
pub mod conflicts;
pub mod extend;
pub mod fork;
pub mod merge;
pub mod rebase;
pub mod reduce;
