//! The schemas of others: foreign traces that come in, and the spelling of a run for programs of others.
//!
//! Never judges an intent and never makes a record: imported items go through the kernel's door like any other
//! intent. Rule: a source is recognised by the shape of its documents, never by the name of a data set, a tool or a
//! field of its domain.

pub mod foreign;
pub mod format;
pub mod import;
pub mod inflate;
pub mod langgraph;
pub mod live;

pub use import::ImportError;
