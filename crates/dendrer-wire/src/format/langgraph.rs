//! Databases of LangGraph: each thread is a run, which the saver of [`crate::langgraph`] records.
//!
//! The rows are read by [`Database`] and not as items: a database has no bytes that are read from front to back.

use super::openai_chat::Messages;
use crate::foreign::Format;
use crate::import::ImportError;
use crate::langgraph::database::{Database, MAGIC};

/// The format.
pub(super) static LANGGRAPH: Format = Format {
    sniff: |head| head.bytes.starts_with(MAGIC),
    shape: "a database of SQLite with the tables `checkpoints` and `writes`",
    database: Some(Database::open),
    survey: |_, _| {
        Err(ImportError::unfit(
            "a database is read in place: name its file, neither compressed nor through a pipe",
        ))
    },
    ..Format::new("langgraph", "SQLite databases of LangGraph's checkpoints", |_| {
        Box::new(Messages::default())
    })
};
