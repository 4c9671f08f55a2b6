//! The schemas of others: what comes in from foreign traces.
//!
//! Never judges an intent and never makes a record: what is read here goes through the kernel's door like any
//! other intent. The invariant a newcomer would break: nothing is recognised by whose data it is. What decides is
//! the shape of a document, never the name of a data set, a tool or a field of its domain.

pub mod import;

pub use import::ImportError;
