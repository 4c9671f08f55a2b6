//! A run as a reader sees it: its records, its states, the verdicts along it.

pub mod calls;
pub(crate) mod casebook_name;
pub mod causal;
pub mod closed;
pub(crate) mod copied;
pub mod declared;
pub mod event;
pub mod frontier;
mod line;
pub mod lost;
pub(crate) mod merged;
mod moment;
pub mod pack;
pub(crate) mod parents;
pub mod replay;
pub(crate) mod snapshot;
pub(crate) mod thread;
pub(crate) mod tile;
pub mod timeline;
pub mod trace;
pub mod unfinished;
pub(crate) mod verdicts;
pub mod witness;
