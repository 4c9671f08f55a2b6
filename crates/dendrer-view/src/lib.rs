//! Answers as rows, text and documents; no terminal, no HTML, no files.
//!
//! Text of a trace may be hostile. Rule: it reaches lines only through [`quote`], and documents only as JSON values;
//! never format such a value directly.

pub mod answer;
pub mod ask;
pub mod backup;
pub mod bisect;
pub mod branches;
pub mod care;
pub mod casebook;
pub mod ccas;
pub mod certainty;
pub mod change;
pub mod cherrypick;
pub mod closed;
pub mod codes;
pub mod commit;
pub mod commitments;
pub mod compare;
pub mod conflicts;
pub mod contract;
pub mod contributors;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod erase;
pub mod export;
pub mod fields;
pub mod fork;
pub mod forms;
pub mod fsck;
pub mod gate;
pub mod gc;
pub mod graph;
pub mod graphs;
pub mod head;
pub mod help;
pub mod import;
pub mod init;
pub mod intent;
pub mod log;
pub mod mark;
pub mod merge;
pub mod pack;
pub mod predicate;
pub mod problem;
pub mod profile;
pub mod progress;
pub mod provenance;
pub mod quote;
pub mod rebase;
pub mod receipt;
pub mod reduce;
pub mod registration;
pub mod replay;
pub mod restore;
pub mod row;
pub mod runs;
pub mod schemas;
pub mod secrets;
pub mod show;
pub mod state;
pub mod steps;
pub mod suite;
pub mod table;
pub mod text;
pub mod verdict;
pub mod verify;
pub mod version;
pub mod why;

use dendrer_object::Value;

/// Begins a document: `schema` first in meaning, wherever canonical order puts it.
pub fn document<'k>(schema: &str, members: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    let schema = ("schema", Value::from(format!("dendrer.{schema}/1")));
    Value::record(members.into_iter().chain([schema]))
}

pub use dendrer_object::text::{count, thousands};
