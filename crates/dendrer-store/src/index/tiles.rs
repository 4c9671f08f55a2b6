//! Sums of tiles of runs: rows of the index, and those that a handle keeps until the index takes them.
//!
//! Never derives a sum: callers do, from the records, and hold what they read against them.
//!
//! Rule: sums from before an erasure are not kept after it; test `sums_from_before_an_erasure_are_not_kept`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dendrer_object::{Digest, RunName};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::{Index, Sql, clamp, open_writer_within};
use crate::error::StoreError;
use crate::store::TilePlace;

/// How many bytes of sums one handle keeps at most.
const BYTES_MAX: usize = 32 << 20;
/// How many statements on verdicts a memory has at most.
const VERDICTS_MAX: usize = 1_000;

/// The sums that a handle keeps. Each is true of the log as the handle sees it: an erasure removes all of them.
#[derive(Debug, Default)]
pub(crate) struct KeptTiles {
    rows: BTreeMap<(RunName, TilePlace), Vec<u8>>,
    bytes: usize,
    /// The least size of the log that has every erasure that the handle saw.
    erased: u64,
    /// Statements on verdicts, by run and question; only where they are not kept in the index.
    verdicts: BTreeMap<(RunName, Digest), Vec<u8>>,
    /// The largest size of the log at which a handle was opened with it.
    met: u64,
}

/// A memory of what follows from the log, for handles that read one store and add nothing to its index.
#[derive(Debug, Clone, Default)]
pub struct KeptMemory(Arc<Mutex<KeptTiles>>);

impl KeptMemory {
    pub(crate) fn lock(&self) -> MutexGuard<'_, KeptTiles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptTiles {
    /// Keeps sums that were made of a log of `seen` records or more, unless there are too many, or something was erased since.
    pub(crate) fn put(&mut self, run: &RunName, place: TilePlace, seen: u64, bytes: &[u8]) {
        let size = self.bytes + bytes.len();
        if seen >= self.erased && size <= BYTES_MAX {
            let before = self.rows.insert((run.clone(), place), bytes.to_vec());
            self.bytes = size - before.map_or(0, |before| before.len());
        }
    }

    pub(crate) fn get(&self, run: &RunName, place: TilePlace) -> Option<&[u8]> {
        // A key of a map is owned; most handles keep nothing.
        let found = (!self.rows.is_empty()).then(|| self.rows.get(&(run.clone(), place))).flatten();
        found.map(|bytes| &bytes[..])
    }

    /// Removes everything after an erasure: only sums of a log of `size` or more count from here on.
    pub(crate) fn forget(&mut self, size: u64) {
        (self.rows, self.bytes, self.verdicts) = Default::default();
        self.erased = size;
    }

    /// Keeps a statement on verdicts that was made of a log of `seen` records, unless there are too many, or something was erased
    /// since.
    pub(crate) fn put_verdicts(&mut self, run: &RunName, question: Digest, seen: u64, bytes: &[u8]) {
        if seen >= self.erased && self.verdicts.len() < VERDICTS_MAX {
            self.verdicts.insert((run.clone(), question), bytes.to_vec());
        }
    }

    pub(crate) fn verdicts(&self, run: &RunName, question: &Digest) -> Option<Vec<u8>> {
        self.verdicts.get(&(run.clone(), *question)).cloned()
    }

    /// Notes that a handle was opened at a size of the log, and returns the largest one before.
    pub(crate) fn met(&mut self, size: u64) -> u64 {
        let before = self.met;
        self.met = before.max(size);
        before
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }
}

impl Index {
    /// Moves the sums that a handle keeps into the index. If another program has the index locked, they stay with the handle. The
    /// handle sees a log of `seen` records. A handle that only reads opens a connection for it, and closes it.
    pub(crate) fn take_tiles(
        &self,
        kept: &mut KeptTiles,
        seen: u64,
        (is_writer, wait): (bool, Duration),
    ) -> Result<(), StoreError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = None;
        let place = if is_writer { &mut *writer } else { &mut own };
        let db = match place {
            Some(db) => db,
            None => place.insert(open_writer_within(&self.path, false, wait)?),
        };
        db.busy_timeout(wait)?;
        put_tiles(db, &kept.rows, seen)?;
        (kept.rows, kept.bytes) = Default::default();
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

    /// Whether a record of an erasure is at a position or after it.
    pub(crate) fn has_erasure(&self, position: u64) -> Result<bool, StoreError> {
        let db = self.reader();
        let sql = "SELECT EXISTS(SELECT 1 FROM record WHERE position >= ?1 AND kind = 'erase')";
        let mut statement = db.prepare_cached(sql)?;
        Ok(statement.query_row(params![clamp(position)], |row| row.get(0))?)
    }

    /// Lists the runs with sums. A text that no run can have as its name is left out.
    pub(crate) fn tiled_runs(&self) -> Result<Vec<RunName>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached("SELECT DISTINCT run FROM tile")?;
        let names = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Sql<Vec<_>>>()?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }
}

/// Adds rows in one transaction. An index that covers more than the handle sees may have been emptied by an erasure that the rows
/// do not know: then they are not kept.
fn put_tiles(db: &mut Connection, rows: &BTreeMap<(RunName, TilePlace), Vec<u8>>, seen: u64) -> Sql<()> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO tile (run, level, number, sums) SELECT ?1, ?2, ?3, ?4
         WHERE (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'size') <= ?5",
    )?;
    for ((run, place), sums) in rows {
        statement.execute(params![run.as_str(), place.level, clamp(place.number), sums, clamp(seen)])?;
    }
    drop(statement);
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_from_before_an_erasure_are_not_kept() {
        let run: RunName = "r".parse().unwrap();
        let (one, other) = (TilePlace { level: 6, number: 0 }, TilePlace { level: 6, number: 1 });
        let mut kept = KeptTiles::default();
        kept.put(&run, one, 70, b"one");
        kept.forget(80);
        assert_eq!((kept.get(&run, one), kept.len()), (None, 0));
        kept.put(&run, one, 79, b"one");
        kept.put(&run, other, 80, b"other");
        assert_eq!((kept.get(&run, one), kept.get(&run, other)), (None, Some(&b"other"[..])));
        kept.put(&run, one, 90, &vec![0; BYTES_MAX]);
        assert_eq!(kept.get(&run, one), None);
    }
}
