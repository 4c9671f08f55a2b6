//! A run as a reader sees it: its records, its states, the verdicts along it.

pub(crate) mod casebook_name;
pub mod causal;
pub mod closed;
pub mod declared;
pub mod event;
pub mod frontier;
mod line;
mod moment;
pub mod pack;
pub mod replay;
pub(crate) mod snapshot;
pub mod timeline;
pub mod trace;
pub(crate) mod verdicts;
pub mod witness;
