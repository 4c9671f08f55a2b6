//! Sums of tiles of runs: rows of the index, and those that a handle keeps until the index takes them.
//!
//! Never derives a sum: callers do, from the records, and hold what they read against them.
//!
//! Rule: sums from before an erasure are not kept after it; test `sums_from_before_an_erasure_are_not_kept`.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use dendrer_object::RunName;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::{Index, Sql, clamp, open_writer_within};
use crate::error::StoreError;
use crate::store::TilePlace;

/// How many bytes of sums one handle keeps at most.
const BYTES_MAX: usize = 32 << 20;

/// Sums of a tile, and the size of the log from which they follow.
#[derive(Debug, Clone)]
pub(crate) struct KeptTile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) seen: u64,
}

/// The sums that a handle keeps.
#[derive(Debug, Default)]
pub(crate) struct KeptTiles {
    rows: BTreeMap<(RunName, TilePlace), KeptTile>,
    bytes: usize,
    /// The least size of the log that has every erasure that the handle saw.
    erased: u64,
}

impl KeptTiles {
    /// Keeps sums, unless there are too many, or something was erased since they were read.
    pub(crate) fn put(&mut self, run: &RunName, place: TilePlace, tile: KeptTile) {
        let size = self.bytes + tile.bytes.len();
        if tile.seen >= self.erased && size <= BYTES_MAX {
            let before = self.rows.insert((run.clone(), place), tile);
            self.bytes = size - before.map_or(0, |before| before.bytes.len());
        }
    }

    pub(crate) fn get(&self, run: &RunName, place: TilePlace) -> Option<&[u8]> {
        // A key of a map is owned; most handles keep nothing.
        let found = (!self.rows.is_empty()).then(|| self.rows.get(&(run.clone(), place))).flatten();
        found.map(|tile| &tile.bytes[..])
    }

    /// Removes everything after an erasure: only sums of a log of `size` or more count from here on.
    pub(crate) fn forget(&mut self, size: u64) {
        (self.rows, self.bytes) = Default::default();
        self.erased = size;
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    fn take(&mut self) -> BTreeMap<(RunName, TilePlace), KeptTile> {
        self.bytes = 0;
        std::mem::take(&mut self.rows)
    }
}

impl Index {
    /// Moves the sums that a handle keeps into the index. If another program has the index locked, they stay with the handle.
    /// A handle that only reads opens a connection for it, and closes it.
    pub(crate) fn take_tiles(
        &self,
        kept: &mut KeptTiles,
        is_writer: bool,
        wait: Duration,
    ) -> Result<(), StoreError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = None;
        let place = if is_writer { &mut *writer } else { &mut own };
        let db = match place {
            Some(db) => db,
            None => place.insert(open_writer_within(&self.path, false, wait)?),
        };
        db.busy_timeout(wait)?;
        put_tiles(db, &kept.rows)?;
        kept.take();
        Ok(())
    }

    /// Reads the sums of a tile.
    pub(crate) fn tile(&self, run: &RunName, place: TilePlace) -> Result<Option<Vec<u8>>, StoreError> {
        let db = self.reader();
        let mut statement =
            db.prepare_cached("SELECT sums FROM tile WHERE run = ?1 AND level = ?2 AND number = ?3")?;
        let values = params![run.as_str(), place.level, clamp(place.number)];
        Ok(statement.query_row(values, |row| row.get(0)).optional()?)
    }

    /// Lists the runs with sums. A name that is none is of no run.
    pub(crate) fn tiled_runs(&self) -> Result<Vec<RunName>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached("SELECT DISTINCT run FROM tile")?;
        let names = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Sql<Vec<_>>>()?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }
}

/// Adds rows in one transaction. An index that covers more than a row was made of may have been emptied by an erasure that the
/// row does not know: then the row is left out.
fn put_tiles(db: &mut Connection, rows: &BTreeMap<(RunName, TilePlace), KeptTile>) -> Sql<()> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO tile (run, level, number, sums) SELECT ?1, ?2, ?3, ?4
         WHERE (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'size') <= ?5",
    )?;
    for ((run, place), tile) in rows {
        let number = clamp(place.number);
        statement.execute(params![run.as_str(), place.level, number, tile.bytes, clamp(tile.seen)])?;
    }
    drop(statement);
    transaction.commit()
}
