//! The rules for the next transition: expressions, predicates, reducers, and the one door for every transition.
//!
//! Pure: no clock, randomness, I/O or hash order. The kernel does not know that stores exist.

pub(crate) mod asked;
pub(crate) mod calls;
pub mod cases;
pub mod causal;
pub mod chain_rules;
pub mod commitment;
pub mod contract;
pub mod counters;
pub mod expr;
pub mod fold;
pub mod names;
pub mod obligation;
pub mod ontology;
pub mod pack;
pub mod policy;
pub mod predicate;
pub mod progress;
pub mod reduce;
pub mod replay;
pub(crate) mod requests;
pub mod sealed;
pub mod status;
pub mod step;
pub mod stopped;
pub mod unknown;

pub use pack::Pack;
pub use predicate::{Predicate, Verdict};
pub use step::{Inputs, Outcome, RunState, Stage, Start, begin, step};
