//! The schemas of others: foreign traces that come in, and the spelling of a run for programs of others.
//!
//! Never judges an intent and never makes a record: what is read here goes through the kernel's door like any
//! other intent. The invariant a newcomer would break: nothing is recognised by whose data it is. What decides is
//! the shape of a document, never the name of a data set, a tool or a field of its domain.

pub mod import;
pub mod profile;

pub use import::ImportError;
