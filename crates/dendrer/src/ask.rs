//! Questions about a record: where it went wrong, why, how two runs differ, what was bound.
//!
//! Reads runs and never writes one. A method stands with its question: [`Trace::bisect`](crate::run::trace::Trace::bisect) is in
//! [`bisect`]. Text and documents of the answers are made by `dendrer-view`.

pub mod bisect;
pub mod commitments;
pub mod compare;
pub mod contract;
pub mod contributors;
pub mod counters;
pub mod derived;
pub mod diagnosis;
pub mod diff;
mod difference;
pub mod first_seen;
pub mod fleet;
pub mod gate;
pub mod graphs;
pub mod layout;
pub mod log;
pub mod named;
pub mod packs;
pub mod predicates;
pub mod prose;
pub mod provenance;
pub mod reasons;
pub mod receipt;
pub mod regression;
pub mod replay;
pub mod runs;
pub mod secrets;
pub mod show;
pub mod state;
pub mod steps;
pub mod thread;
pub mod timeline;
pub mod transcript;
pub mod why;
