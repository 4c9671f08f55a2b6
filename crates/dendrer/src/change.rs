//! Runs that are made of others: forks, rebases, merges, imports, extensions. Names for predicates.
//!
//! Everything that is proposed again goes through the kernel like a first proposal.

pub mod cherrypick;
pub mod conflicts;
pub mod delegate;
mod denied;
pub mod extend;
pub mod findings;
pub mod foreign;
pub mod fork;
pub mod graph;
pub(crate) mod history;
pub mod merge;
pub mod reapply;
pub mod rebase;
pub mod reduce;
pub mod register;
pub mod replay;
pub mod selection;
