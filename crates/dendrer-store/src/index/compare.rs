//! Builds the index again, beside the one that is there, and compares.

use std::path::Path;
use std::sync::Arc;

use dendrer_object::StoreId;

use super::{Covered, Index, build, open_writer, remove};
use crate::error::StoreError;
use crate::segments::Segments;
use crate::values::KeyOfChunks;

/// Rows of a table that the index has and should not have, or the other way round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDifference {
    /// The table.
    pub table: &'static str,
    /// How many rows follow from the log and are missing or different.
    pub missing: u64,
    /// How many rows do not follow from the log.
    pub surplus: u64,
    /// One of those rows, in words.
    pub example: String,
}

/// Tables and the columns that follow from the log, those of the key among them.
const TABLES: [(&str, &[&str]); 3] = [
    ("run", &["begin", "name", "parent", "first_own_tick"]),
    ("record", &["position", "id", "kind", "run", "tick", "type", "agent", "ts", "frame", "opened"]),
    ("write", &["run", "path", "tick", "number"]),
];

/// Compares an index with one made anew from the segments at `beside`, which is removed again.
pub(crate) fn compare(
    index: &Path,
    covered: &Covered,
    beside: &Path,
    segments: &Arc<Segments>,
    store: StoreId,
) -> Result<Vec<IndexDifference>, StoreError> {
    Index::create(beside, store, KeyOfChunks::random())?;
    let compared = build_and_compare(index, covered, beside, segments, store);
    remove(beside)?;
    compared
}

fn build_and_compare(
    index: &Path,
    covered: &Covered,
    beside: &Path,
    segments: &Arc<Segments>,
    store: StoreId,
) -> Result<Vec<IndexDifference>, StoreError> {
    let size = covered.size() as i64;
    build(beside, segments, store, covered.size(), false)?;
    let db = open_writer(beside, false)?;
    db.execute("ATTACH DATABASE ?1 AS old", [index.to_string_lossy()])?;
    let mut differences = Vec::new();
    for (table, columns) in TABLES {
        // Another process may have advanced the old one meanwhile; what lies beyond is not compared.
        let limit = match table {
            "run" => "a.begin < ?1",
            "record" => "a.position < ?1",
            _ => {
                "EXISTS (SELECT 1 FROM main.record r WHERE r.run = a.run AND r.tick = a.tick AND r.position < ?1)"
            }
        };
        // Row by row, found by its key: nothing is sorted or set aside, however long the log is.
        let same = columns
            .iter()
            .map(|column| format!("b.{column} IS a.{column}"))
            .collect::<Vec<_>>()
            .join(" AND ");
        let rows = |from: &str, but: &str| {
            format!(
                "FROM {from}.{table} a WHERE {limit} AND NOT EXISTS (SELECT 1 FROM {but}.{table} b WHERE {same})"
            )
        };
        let count = |from: &str, but: &str| -> Result<u64, rusqlite::Error> {
            let sql = format!("SELECT count(*) {}", rows(from, but));
            db.query_row(&sql, [size], |row| Ok(row.get::<_, i64>(0)? as u64))
        };
        let (missing, surplus) = (count("main", "old")?, count("old", "main")?);
        if missing + surplus > 0 {
            let (from, but) = if surplus > 0 { ("old", "main") } else { ("main", "old") };
            let shown = columns.iter().map(|column| format!("a.{column}")).collect::<Vec<_>>().join(", ");
            let sql = format!("SELECT {shown} {} LIMIT 1", rows(from, but));
            let example = db.query_row(&sql, [size], |row| {
                let values = (0..columns.len()).map(|column| Ok(text(row.get_ref(column)?)));
                Ok(values.collect::<Result<Vec<_>, rusqlite::Error>>()?.join(" "))
            })?;
            differences.push(IndexDifference { table, missing, surplus, example });
        }
    }
    Ok(differences)
}

fn text(value: rusqlite::types::ValueRef<'_>) -> String {
    use rusqlite::types::ValueRef::{Blob, Integer, Null, Real, Text};
    match value {
        Null => "null".into(),
        Integer(value) => value.to_string(),
        Real(value) => value.to_string(),
        Text(value) => String::from_utf8_lossy(value).into_owned(),
        Blob(value) => dendrer_object::digest::hex(value),
    }
}
