//! The derived index: one SQLite database beside the log, for lookups by id, run and tick.
//!
//! Advanced in the background from the segments; disposable; open to any SQL program (`docs/index-tables.md`). Never
//! consulted for an answer that is called exact, and never ahead of the part that is known to be on disk.
//!
//! Rule: rows and the place they cover change in one transaction, so the database is true of the log up to exactly
//! that place.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dendrer_object::digest::{hex, unhex};
use dendrer_object::merkle::Peaks;
use dendrer_object::record::Kind;
use dendrer_object::{Digest, RunName, StoreId, Timestamp};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use crate::error::StoreError;
use crate::frame::At;
use crate::values::{ChunkKey, KeyOfChunks};

mod advance;
mod compare;
mod kept;
mod tiles;

pub(crate) use advance::{advance, build};
pub use compare::IndexDifference;
pub(crate) use compare::compare;
pub(crate) use kept::{compact, put_in_place, remove_kept};
pub use tiles::KeptMemory;
pub(crate) use tiles::KeptTiles;

/// The version of the tables (`user_version`).
const SCHEMA_VERSION: i64 = 5;

/// `dndr` in ASCII: what `file` shows of the database.
const APPLICATION_ID: i64 = 0x646e_6472;

/// The key in `meta` of how many runs began in what is covered, after the size of that. If the size is another, another program
/// advanced the index and did not count; then the rows are counted when it grows next.
const RUNS: &str = "runs";

/// The key in `meta` of how many records of no run there are, in the same form.
const APART: &str = "apart";

/// Returns the query for the rows that a count in `meta` is of.
fn counted_rows(key: &str) -> &'static str {
    match key {
        RUNS => "SELECT count(*) FROM run",
        _ => "SELECT count(*) FROM record WHERE run IS NULL AND tick IS NULL",
    }
}

const SCHEMA: &str = include_str!("index/schema.sql");

/// How long a statement of maintenance waits for another program that has the index locked.
pub(crate) const PATIENT: Duration = Duration::from_secs(10);

/// How long a statement waits when a record or an answer waits for it: the index may be late, and is derived.
pub(crate) const BRIEF: Duration = Duration::from_millis(20);

/// How long a handle waits to open the index before it works without.
const BUSY_OPEN: Duration = Duration::from_millis(50);

/// Up to where the index is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Covered {
    /// The tree, size and peaks.
    pub(crate) peaks: Peaks,
    pub(crate) root: Digest,
    /// The commit frame of that size; `None` for the empty log.
    pub(crate) commit: Option<At>,
}

impl Covered {
    pub(crate) fn nothing() -> Covered {
        let peaks = Peaks::new();
        Covered { root: peaks.root(), peaks, commit: None }
    }

    pub(crate) fn size(&self) -> u64 {
        self.peaks.size()
    }
}

/// Why there is no index to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoIndex {
    /// There is no file, or one of an older version of the tables.
    Absent,
    /// Another program has it locked at this moment, for reading too.
    Locked,
    /// It cannot be opened here, as WAL databases sometimes cannot on read-only media.
    Unreadable(String),
    /// It is not what it must be, or of another store. May be made anew.
    Corrupt(String),
    /// A newer version made it. Not ours to remove.
    Newer(i64),
}

/// A place where a record is, as the index says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Indexed {
    pub(crate) id: Digest,
    pub(crate) values: At,
    pub(crate) opened: Option<At>,
}

/// The index, opened for reading.
#[derive(Debug)]
pub(crate) struct Index {
    path: PathBuf,
    reader: Mutex<Connection>,
    /// Opened when a snapshot is first kept.
    writer: Mutex<Option<Connection>>,
    pub(crate) key: KeyOfChunks,
}

/// Bytes that are kept for a run and tick.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) run: RunName,
    pub(crate) tick: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A run, as the index says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexedRun {
    pub(crate) begin: u64,
    pub(crate) parent: Option<Digest>,
    /// As of what the index covers, which may be more than a handle sees.
    pub(crate) first_own_tick: Option<u64>,
    pub(crate) newest_tick: Option<u64>,
    /// How many records off its chain.
    pub(crate) beside: u64,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
        };
        use rusqlite::ffi::{ErrorCode, SQLITE_IOERR_SHORT_READ};
        if matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) {
            return StoreError::IndexLocked;
        }
        let is_missing = |error: &rusqlite::Error| error.to_string().starts_with("no such ");
        match error.sqlite_error() {
            // A table, a column or a value that this code did not put there.
            _ if is_missing(&error)
                || matches!(
                    error,
                    FromSqlConversionFailure(..)
                        | IntegralValueOutOfRange(..)
                        | InvalidColumnType(..)
                        | Utf8Error(..)
                ) =>
            {
                StoreError::IndexDamaged(error.to_string())
            }
            Some(inner)
                if matches!(inner.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
                    || inner.extended_code == SQLITE_IOERR_SHORT_READ =>
            {
                StoreError::IndexDamaged(error.to_string())
            }
            _ => StoreError::Index(error.to_string()),
        }
    }
}

/// The positions of the ticks of a run.
const POSITIONS: &str = "SELECT tick, position FROM record
     WHERE run = ?1 AND tick BETWEEN ?2 AND ?3 AND tick IS NOT NULL AND position < ?4 ORDER BY tick LIMIT ?5";

type Sql<T> = Result<T, rusqlite::Error>;

impl Index {
    fn new(path: &Path, reader: Connection, key: KeyOfChunks) -> Index {
        Index { path: path.to_owned(), reader: Mutex::new(reader), writer: Mutex::default(), key }
    }

    /// Opens the index for reading, and says what it covers.
    pub(crate) fn open(path: &Path, store: StoreId) -> Result<(Index, Covered), NoIndex> {
        if !are_files(path).map_err(NoIndex::Corrupt)? {
            return Err(NoIndex::Absent);
        }
        match open_reader(path, false).and_then(|db| read_meta(&db, store).map(|meta| (db, meta))) {
            Ok((reader, (key, covered))) => Ok((Index::new(path, reader, key), covered)),
            Err(NoIndex::Unreadable(why)) => {
                // A WAL database on media that cannot be written opens only when told that nothing changes, which
                // holds only if no log was left behind.
                let wal = path.with_extension("sqlite-wal");
                if std::fs::metadata(&wal).is_ok_and(|wal| wal.len() > 0) {
                    return Err(NoIndex::Unreadable(why));
                }
                let db = open_reader(path, true)?;
                let (key, covered) = read_meta(&db, store)?;
                Ok((Index::new(path, db, key), covered))
            }
            Err(why) => Err(why),
        }
    }

    /// Reads what the index that is open covers.
    pub(crate) fn covered(&self, store: StoreId) -> Result<Covered, NoIndex> {
        read_meta(&self.reader(), store).map(|(_, covered)| covered)
    }

    /// Makes an empty index. The caller holds the write lock of the store.
    pub(crate) fn create(path: &Path, store: StoreId, key: KeyOfChunks) -> Result<(), StoreError> {
        remove(path)?;
        let mut db = open_writer(path, true)?;
        let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        put_meta(&transaction, "chunk_key", &hex(&key.0))?;
        put_covered(&transaction, store, &Covered::nothing())?;
        put_meta(&transaction, RUNS, &counted(0, 0))?;
        put_meta(&transaction, APART, &counted(0, 0))?;
        transaction.commit()?;
        Ok(())
    }

    /// Keeps bytes for a run and tick, by someone who has seen so many records. An index that knows more may have been
    /// emptied by an erasure that the bytes know nothing of: then they are not kept.
    pub(crate) fn put_snapshot(
        &self,
        snapshot: &Snapshot,
        seen: u64,
        wait: Duration,
    ) -> Result<(), StoreError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let db = match &*writer {
            Some(db) => db,
            None => writer.insert(open_writer_within(&self.path, false, wait)?),
        };
        db.busy_timeout(wait)?;
        let mut statement = db.prepare_cached(
            "INSERT OR REPLACE INTO snapshot (run, tick, state) SELECT ?1, ?2, ?3
             WHERE (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'size') <= ?4",
        )?;
        let Snapshot { run, tick, bytes } = snapshot;
        statement.execute(params![run.as_str(), clamp(*tick), bytes, clamp(seen)])?;
        Ok(())
    }

    /// Keeps a statement of verdicts. By a connection of its own, because readers of a store keep them as well.
    pub(crate) fn put_verdicts(
        &self,
        run: &RunName,
        question: &Digest,
        statement: &[u8],
    ) -> Result<(), StoreError> {
        let db = open_writer_within(&self.path, false, BRIEF)?;
        db.execute(
            "INSERT OR REPLACE INTO verdict (run, question, statement) VALUES (?1, ?2, ?3)",
            params![run.as_str(), &question.0[..], statement],
        )?;
        Ok(())
    }

    pub(crate) fn verdicts(&self, run: &RunName, question: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let db = self.reader();
        let mut statement =
            db.prepare_cached("SELECT statement FROM verdict WHERE run = ?1 AND question = ?2")?;
        Ok(statement.query_row(params![run.as_str(), &question.0[..]], |row| row.get(0)).optional()?)
    }

    /// Reads every page, and holds what rows are found by against the rows.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let db = self.reader();
        let said: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if said == "ok" { Ok(()) } else { Err(StoreError::IndexDamaged(said)) }
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record(&self, position: u64) -> Result<Option<Indexed>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached("SELECT id, frame, opened FROM record WHERE position = ?1")?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok(Indexed {
                id: digest(row, 0)?,
                values: At::from_u64(row.get::<_, i64>(1)? as u64),
                opened: row.get::<_, Option<i64>>(2)?.map(|at| At::from_u64(at as u64)),
            })
        };
        Ok(statement.query_row([position as i64], row).optional()?)
    }

    /// Tells whether values of any covered record were erased.
    pub(crate) fn has_opened(&self) -> Result<bool, StoreError> {
        let db = self.reader();
        let mut statement =
            db.prepare_cached("SELECT EXISTS (SELECT 1 FROM record WHERE opened IS NOT NULL)")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    pub(crate) fn find(&self, id: &Digest, below: u64) -> Result<Option<u64>, StoreError> {
        let db = self.reader();
        let mut statement =
            db.prepare_cached("SELECT min(position) FROM record WHERE id = ?1 AND position < ?2")?;
        let found: Option<i64> = statement.query_row(params![&id.0[..], below as i64], |row| row.get(0))?;
        Ok(found.map(|position| position as u64))
    }

    pub(crate) fn find_prefix(
        &self,
        first: &Digest,
        hex: &str,
        below: u64,
        limit: usize,
    ) -> Result<Vec<(Digest, u64)>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached(
            "SELECT id, position FROM record WHERE id >= ?1 AND position < ?2 ORDER BY id, position",
        )?;
        let mut rows = statement.query(params![&first.0[..], below as i64])?;
        let mut found: Vec<(Digest, u64)> = Vec::new();
        while let Some(row) = rows.next()? {
            let id = digest(row, 0)?;
            if found.len() >= limit || !id.hex().starts_with(hex) {
                break;
            }
            if found.last().is_none_or(|(last, _)| *last != id) {
                found.push((id, position(row, 1)?));
            }
        }
        Ok(found)
    }

    pub(crate) fn run(&self, run: &RunName, below: u64) -> Result<Option<IndexedRun>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached(
            "SELECT begin, parent, first_own_tick, newest_tick, beside FROM run WHERE name = ?1 AND begin < ?2",
        )?;
        let row = |row: &rusqlite::Row<'_>| {
            let parent = row.get_ref(1)?.as_blob_or_null()?.map(<[u8; 32]>::try_from);
            let parent = parent.transpose().map_err(|_| bad_column(1))?.map(Digest);
            Ok(IndexedRun {
                begin: position(row, 0)?,
                parent,
                first_own_tick: tick(row, 2)?,
                newest_tick: tick(row, 3)?,
                beside: position(row, 4)?,
            })
        };
        let found = statement.query_row(params![run.as_str(), below as i64], row).optional()?;
        if found.is_some() {
            return Ok(found);
        }
        // One bit in what rows are found by would have a run begin a second time: the rows are asked before a name is free.
        let mut rows = db.prepare_cached("SELECT 1 FROM run NOT INDEXED WHERE name = ?1 AND begin < ?2")?;
        if rows.exists(params![run.as_str(), below as i64])? {
            return Err(StoreError::IndexDamaged(format!("the row of {run} is not found by its name")));
        }
        Ok(None)
    }

    /// Counts the rows of the runs: a run without a row would look like a free name.
    pub(crate) fn check_runs(&self) -> Result<(), StoreError> {
        self.check_count(RUNS, "runs")
    }

    /// Counts the rows of the records of no run.
    pub(crate) fn check_apart(&self) -> Result<(), StoreError> {
        self.check_count(APART, "records of no run")
    }

    fn check_count(&self, key: &str, what: &str) -> Result<(), StoreError> {
        let all = format!(
            "SELECT ({}), (SELECT value FROM meta WHERE key = ?1),
             (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'size')",
            counted_rows(key)
        );
        let row = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?, row.get::<_, i64>(2)?))
        };
        let (found, said, size) = self.reader().prepare_cached(&all)?.query_row([key], row)?;
        match said.as_deref().and_then(count_of) {
            Some((at, known)) if at == size as u64 && known != found as u64 => {
                Err(StoreError::IndexDamaged(format!("it has rows of {found} {what}, and {known} began")))
            }
            _ => Ok(()),
        }
    }

    /// Compares two numbers, of which one query returns both.
    fn check_pair(&self, both: &str, begin: Option<u64>, what: &str) -> Result<(), StoreError> {
        let row = |row: &rusqlite::Row<'_>| Ok((tick(row, 0)?, tick(row, 1)?));
        let begin = begin.map(|begin| begin as i64);
        let db = self.reader();
        let mut statement = db.prepare_cached(both)?;
        let pair = match begin {
            Some(begin) => statement.query_row([begin], row),
            None => statement.query_row([], row),
        };
        let Some((known, found)) = pair.optional()?.filter(|(known, found)| known != found) else {
            return Ok(());
        };
        let text =
            |number: Option<u64>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
        let of = begin.map_or_else(String::new, |begin| format!(" of the run at {begin}"));
        let what = format!("{what}{of}: {} by its count, and {} by its rows", text(known), text(found));
        Err(StoreError::IndexDamaged(what))
    }

    /// Compares the rows of the chain of a run with the newest tick in the row of the run: a tick without a row would look like
    /// one that was never committed.
    pub(crate) fn check_chain(&self, begin: u64) -> Result<(), StoreError> {
        let both = "SELECT newest_tick, (SELECT max(tick) FROM record WHERE run = ?1 AND tick IS NOT NULL)
                    FROM run WHERE begin = ?1";
        self.check_pair(both, Some(begin), "newest tick")
    }

    /// Compares the number of records off the chain of a run with that in the row of the run.
    pub(crate) fn check_beside(&self, begin: u64) -> Result<(), StoreError> {
        let both =
            "SELECT beside, (SELECT count(*) FROM record WHERE run = ?1 AND tick IS NULL AND kind <> 'run')
                    FROM run WHERE begin = ?1";
        self.check_pair(both, Some(begin), "records off the chain")
    }

    /// Counts the rows of records: an id without a row would look like that of no record.
    pub(crate) fn check_records(&self) -> Result<(), StoreError> {
        let both =
            "SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'size'), count(*) FROM record";
        self.check_pair(both, None, "records")
    }

    /// Lists where runs begin, and their names.
    pub(crate) fn runs(
        &self,
        from: u64,
        below: u64,
        limit: usize,
    ) -> Result<Vec<(u64, RunName)>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached(
            "SELECT begin, name FROM run WHERE begin >= ?1 AND begin < ?2 ORDER BY begin LIMIT ?3",
        )?;
        let rows = statement.query_map(params![from as i64, below as i64, limit as i64], |row| {
            let name = row.get::<_, String>(1)?.parse().map_err(|_| bad_column(1))?;
            Ok((position(row, 0)?, name))
        })?;
        Ok(rows.collect::<Sql<_>>()?)
    }

    /// Returns position, tick, id and time of the newest chain record of the run that begins at `begin`.
    pub(crate) fn head(
        &self,
        begin: u64,
        below: u64,
    ) -> Result<Option<(u64, u64, Digest, Timestamp)>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached(
            "SELECT position, tick, id, ts FROM record WHERE run = ?1 AND tick IS NOT NULL AND position < ?2
             ORDER BY tick DESC LIMIT 1",
        )?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok((position(row, 0)?, position(row, 1)?, digest(row, 2)?, Timestamp::from_ms(position(row, 3)?)))
        };
        Ok(statement.query_row(params![begin as i64, below as i64], row).optional()?)
    }

    /// Counts the records off the chain of a run: refusals, whether there is an end, the newest time, and all of them.
    pub(crate) fn beside_counts(
        &self,
        begin: u64,
        below: u64,
    ) -> Result<(u64, bool, Option<Timestamp>, u64), StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached(
            "SELECT count(*) FILTER (WHERE kind = 'refusal'), count(*) FILTER (WHERE kind = 'end'), max(ts),
                    count(*) FILTER (WHERE kind <> 'run')
             FROM record WHERE run = ?1 AND tick IS NULL AND position < ?2",
        )?;
        let row = |row: &rusqlite::Row<'_>| {
            let ts: Option<i64> = row.get(2)?;
            let ts = ts.map(|ts| Timestamp::from_ms(ts as u64));
            Ok((position(row, 0)?, position(row, 1)? > 0, ts, position(row, 3)?))
        };
        Ok(statement.query_row(params![begin as i64, below as i64], row)?)
    }

    pub(crate) fn at(&self, begin: u64, tick: u64, below: u64) -> Result<Option<u64>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached(
            "SELECT position FROM record WHERE run = ?1 AND tick = ?2 AND tick IS NOT NULL AND position < ?3",
        )?;
        let found =
            statement.query_row(params![begin as i64, tick as i64, below as i64], |row| position(row, 0));
        Ok(found.optional()?)
    }

    pub(crate) fn positions(
        &self,
        begin: u64,
        ticks: RangeInclusive<u64>,
        below: u64,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached(POSITIONS)?;
        let (first, last) = (clamp(*ticks.start()), clamp(*ticks.end()));
        let values = params![begin as i64, first, last, below as i64, limit as i64];
        let rows = statement.query_map(values, |row| Ok((position(row, 0)?, position(row, 1)?)))?;
        Ok(rows.collect::<Sql<_>>()?)
    }

    pub(crate) fn beside(
        &self,
        begin: u64,
        from: u64,
        below: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Kind)>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached(
            "SELECT position, kind FROM record
             WHERE run = ?1 AND tick IS NULL AND position >= ?2 AND position < ?3 AND kind <> 'run'
             ORDER BY position LIMIT ?4",
        )?;
        let values = params![begin as i64, clamp(from), below as i64, limit as i64];
        let rows = statement.query_map(values, |row| Ok((position(row, 0)?, kind(row, 1)?)))?;
        Ok(rows.collect::<Sql<_>>()?)
    }

    pub(crate) fn beside_runs(
        &self,
        from: u64,
        below: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Kind)>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached(
            "SELECT position, kind FROM record
             WHERE run IS NULL AND tick IS NULL AND position >= ?1 AND position < ?2 ORDER BY position LIMIT ?3",
        )?;
        let values = params![clamp(from), below as i64, clamp(limit as u64)];
        let rows = statement.query_map(values, |row| Ok((position(row, 0)?, kind(row, 1)?)))?;
        Ok(rows.collect::<Sql<_>>()?)
    }

    pub(crate) fn chunk(&self, key: &ChunkKey) -> Result<Option<u64>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached("SELECT frame FROM chunk WHERE key = ?1")?;
        Ok(statement.query_row([&key.0[..]], |row| position(row, 0)).optional()?)
    }

    /// Returns the newest frame of an encrypted value, as far as the log is covered.
    pub(crate) fn secret(&self, name: &Digest) -> Result<Option<At>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached("SELECT frame FROM secret WHERE name = ?1")?;
        let found: Option<i64> = statement.query_row([&name.0[..]], |row| row.get(0)).optional()?;
        Ok(found.map(|at| At::from_u64(at as u64)))
    }

    pub(crate) fn snapshot(&self, run: &RunName, tick: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let db = self.reader();
        let mut statement = db.prepare_cached(
            "SELECT tick, state FROM snapshot WHERE run = ?1 AND tick <= ?2 ORDER BY tick DESC LIMIT 1",
        )?;
        let values = params![run.as_str(), clamp(tick)];
        Ok(statement.query_row(values, |row| Ok((position(row, 0)?, row.get(1)?))).optional()?)
    }
}

/// Moves everything into the database file, so that nothing removed stays readable in SQLite's own log.
pub(crate) fn truncate_log(path: &Path) -> Result<(), StoreError> {
    let db = open_writer(path, false)?;
    Ok(db.pragma_update_and_check(None, "wal_checkpoint", "TRUNCATE", |_| Ok(()))?)
}

/// Whether there is a database. Fails for a file of it that is a link or a pipe: SQLite would write through a link,
/// and wait for the writer of a pipe.
fn are_files(path: &Path) -> Result<bool, String> {
    let mut is_there = false;
    for extension in FILES {
        let path = path.with_extension(extension);
        match std::fs::symlink_metadata(&path) {
            Ok(about) if !about.is_file() => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                return Err(format!("{name} is no file"));
            }
            about => is_there = about.is_ok(),
        }
    }
    Ok(is_there)
}

/// The suffixes of the files of a database, the database itself last.
const FILES: [&str; 4] = ["sqlite-wal", "sqlite-shm", "sqlite-journal", "sqlite"];

/// Removes an index and what SQLite keeps beside it.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    for extension in FILES {
        let path = path.with_extension(extension);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::io("remove", &path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn open_reader(path: &Path, immutable: bool) -> Result<Connection, NoIndex> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let db = if immutable {
        Connection::open_with_flags(uri(path), flags)
    } else {
        Connection::open_with_flags(path, flags)
    };
    let db = db.map_err(no_index)?;
    db.busy_timeout(BUSY_OPEN).map_err(no_index)?;
    keep_plans(&db).map_err(no_index)?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(db)
}

fn uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}

/// Whether another program has the index locked, so that nothing is written there.
pub(crate) fn is_locked(path: &Path) -> bool {
    let asked = open_writer_within(path, false, BUSY_OPEN).and_then(|mut db| {
        drop(db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?);
        Ok(())
    });
    matches!(asked, Err(StoreError::IndexLocked))
}

pub(crate) fn open_writer(path: &Path, create: bool) -> Result<Connection, StoreError> {
    open_writer_within(path, create, PATIENT)
}

/// Opens the index to be written, by statements that wait so long for another program.
pub(crate) fn open_writer_within(
    path: &Path,
    create: bool,
    wait: Duration,
) -> Result<Connection, StoreError> {
    are_files(path).map_err(StoreError::IndexDamaged)?;
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(wait)?;
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    // Bytes that an erasure removes are overwritten, not only unlinked.
    db.pragma_update(None, "secure_delete", true)?;
    db.pragma_update(None, "cache_size", -32_768)?;
    keep_plans(&db)?;
    Ok(db)
}

/// Has SQLite keep the plan of a statement whatever it is asked with. It otherwise looks at how many rows are wanted at most,
/// and prepares the statement once more each time it is asked, which takes longer than the question itself.
fn keep_plans(db: &Connection) -> Sql<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_| ())
}

fn no_index(error: rusqlite::Error) -> NoIndex {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseBusy, DatabaseLocked, PermissionDenied, ReadOnly, SystemIoFailure,
    };
    match error.sqlite_error_code() {
        Some(DatabaseBusy | DatabaseLocked) => NoIndex::Locked,
        Some(CannotOpen | ReadOnly | PermissionDenied | SystemIoFailure) => {
            NoIndex::Unreadable(error.to_string())
        }
        _ => NoIndex::Corrupt(error.to_string()),
    }
}

/// Reads and checks what the index says of itself.
fn read_meta(db: &Connection, store: StoreId) -> Result<(KeyOfChunks, Covered), NoIndex> {
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(no_index)?;
    if version > SCHEMA_VERSION {
        return Err(NoIndex::Newer(version));
    }
    if (1..SCHEMA_VERSION).contains(&version) {
        // Derived, and of no use any more: a handle that writes replaces it once it needs an index.
        return Err(NoIndex::Absent);
    }
    if version != SCHEMA_VERSION {
        return Err(NoIndex::Corrupt(format!("its tables are of version {version}")));
    }
    check_schema(db)?;
    let get = |key: &str| -> Result<String, NoIndex> {
        let mut statement = db.prepare_cached("SELECT value FROM meta WHERE key = ?1").map_err(no_index)?;
        statement.query_row([key], |row| row.get(0)).map_err(no_index)
    };
    let corrupt = |what: &str| NoIndex::Corrupt(format!("{what} is not what it must be"));
    // Both values are read at once: between two queries another process may have moved both, and an index that looks
    // corrupt is rebuilt while others use it.
    let both = "SELECT a.value, b.value FROM meta a, meta b WHERE a.key = 'covered' AND b.key = 'check'";
    let (text, check): (String, String) =
        db.query_row(both, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(no_index)?;
    if check != check_of(store, &text) {
        return Err(corrupt("meta"));
    }
    let covered = parse_covered(&text).ok_or_else(|| corrupt("covered"))?;
    let key = unhex(&get("chunk_key")?).and_then(|key| key.try_into().ok());
    Ok((KeyOfChunks(key.ok_or_else(|| corrupt("chunk_key"))?), covered))
}

/// Checks that the tables are the ones that this program makes, and no others. Views, triggers, checks and indexes
/// over expressions are programs: they may never end, and the giver of the store may have written them.
fn check_schema(db: &Connection) -> Result<(), NoIndex> {
    let found = db.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").and_then(|mut all| {
        let rows = all.query_map([], |row| row.get::<_, String>(0))?;
        rows.collect::<Sql<Vec<_>>>()
    });
    let found = found.map_err(no_index)?;
    let has = |made: &str| found.iter().any(|sql| sql == made);
    // An index of SQLite may be missing while rows are put in, and would be there for speed alone.
    let missing = made_here().filter(|made| made.starts_with("CREATE TABLE")).find(|made| !has(made));
    let foreign = found.iter().find(|sql| made_here().all(|made| made != sql.as_str()));
    let name = |sql: &str| sql.chars().take(40).collect::<String>();
    match (missing, foreign) {
        (None, None) => Ok(()),
        (Some(made), _) => Err(NoIndex::Corrupt(format!("it lacks {}...", name(made)))),
        (_, Some(sql)) => Err(NoIndex::Corrupt(format!("it has {}..., which is not made here", name(sql)))),
    }
}

/// The statements of the schema, as SQLite keeps them.
fn made_here() -> impl Iterator<Item = &'static str> {
    // Comments stand between statements and hold no semicolon.
    SCHEMA.split(';').filter_map(|statement| Some(statement[statement.find("CREATE ")?..].trim_end()))
}

fn check_of(store: StoreId, covered: &str) -> String {
    Digest::of(format!("dendrer/index/v1\n{store}\n{covered}").as_bytes()).hex()
}

/// `size frame root peak...`: the frame is that of the commit, as `segment << 32 | offset`, or `-`.
fn format_covered(covered: &Covered) -> String {
    let frame = covered.commit.map_or("-".into(), |at| at.to_u64().to_string());
    let mut text = format!("{} {frame} {}", covered.size(), covered.root.hex());
    for peak in covered.peaks.peaks() {
        text.push(' ');
        text.push_str(&peak.hex());
    }
    text
}

fn parse_covered(text: &str) -> Option<Covered> {
    let mut words = text.split(' ');
    let size = words.next()?.parse().ok()?;
    let commit = match words.next()? {
        "-" => None,
        frame => Some(At::from_u64(frame.parse().ok()?)),
    };
    let digest = |word: &str| Some(Digest(unhex(word)?.try_into().ok()?));
    let root = digest(words.next()?)?;
    let peaks = words.map(digest).collect::<Option<Vec<_>>>()?;
    let peaks = Peaks::from_parts(size, peaks).ok()?;
    (peaks.root() == root && commit.is_some() == (size > 0)).then_some(Covered { peaks, root, commit })
}

fn put_meta(db: &Connection, key: &str, value: &str) -> Sql<()> {
    db.prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?.execute([key, value])?;
    Ok(())
}

/// Counts what was added, from one size to another. Inside the transaction that adds the rows.
fn put_count(db: &Connection, key: &str, before: u64, size: u64, added: u64) -> Sql<()> {
    let known = "SELECT value FROM meta WHERE key = ?1";
    let known: Option<String> = db.prepare_cached(known)?.query_row([key], |row| row.get(0)).optional()?;
    let count = match known.as_deref().and_then(count_of) {
        Some((at, known)) if at == before => known + added,
        _ => db.query_row(counted_rows(key), [], |row| row.get::<_, i64>(0))? as u64,
    };
    put_meta(db, key, &counted(size, count))
}

fn counted(size: u64, count: u64) -> String {
    format!("{size} {count}")
}

fn count_of(text: &str) -> Option<(u64, u64)> {
    let (size, count) = text.split_once(' ')?;
    Some((size.parse().ok()?, count.parse().ok()?))
}

/// Moves the place that the index covers. Inside the transaction that adds the rows.
fn put_covered(db: &Connection, store: StoreId, covered: &Covered) -> Sql<()> {
    let text = format_covered(covered);
    put_meta(db, "store", &store.to_string())?;
    put_meta(db, "size", &covered.size().to_string())?;
    put_meta(db, "root", &covered.root.to_string())?;
    put_meta(db, "check", &check_of(store, &text))?;
    put_meta(db, "covered", &text)
}

fn bad_column(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, "not what it must be".into(), rusqlite::types::Type::Blob)
}

fn digest(row: &rusqlite::Row<'_>, column: usize) -> Sql<Digest> {
    let bytes = row.get_ref(column)?.as_blob_or_null()?.ok_or_else(|| bad_column(column))?;
    Ok(Digest(bytes.try_into().map_err(|_| bad_column(column))?))
}

fn kind(row: &rusqlite::Row<'_>, column: usize) -> Sql<Kind> {
    row.get::<_, String>(column)?.parse().map_err(|_| bad_column(column))
}

/// Returns a number of a row. Nothing that is counted in the index is negative.
fn position(row: &rusqlite::Row<'_>, column: usize) -> Sql<u64> {
    u64::try_from(row.get::<_, i64>(column)?).map_err(|_| bad_column(column))
}

fn tick(row: &rusqlite::Row<'_>, column: usize) -> Sql<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|tick| tick as u64))
}

/// SQLite counts to 2^63 - 1; no position or tick goes beyond.
fn clamp(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes an empty index, `index.sqlite` of a directory.
    fn empty() -> (tempfile::TempDir, StoreId) {
        let (dir, store) = (tempfile::tempdir().unwrap(), StoreId([3; 16]));
        Index::create(&dir.path().join("index.sqlite"), store, KeyOfChunks([1; 32])).unwrap();
        (dir, store)
    }

    #[test]
    fn a_statement_is_prepared_once_whatever_it_is_asked_with() {
        let (dir, store) = empty();
        let path = dir.path().join("index.sqlite");
        let (index, _) = Index::open(&path, store).unwrap();
        for limit in 1..5 {
            assert_eq!(index.positions(0, 1..=9, 99, limit).unwrap(), []);
        }
        let db = index.reader();
        let again = db.prepare_cached(POSITIONS).unwrap().get_status(rusqlite::StatementStatus::RePrepare);
        assert_eq!(again, 0);
        let plan = format!("EXPLAIN QUERY PLAN {POSITIONS}");
        let plan: String = db.query_row(&plan, params![0, 0, 0, 0, 0], |row| row.get("detail")).unwrap();
        assert!(plan.contains("INDEX record_tick (run=? AND tick>? AND tick<?)"), "{plan}");
    }

    #[test]
    fn an_index_that_is_being_advanced_never_looks_corrupt() {
        let (dir, store) = empty();
        let path = dir.path().join("index.sqlite");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut db = open_writer(&path, false).unwrap();
                let mut covered = Covered::nothing();
                for size in 1..2000u64 {
                    covered.peaks.push(Digest::of(&size.to_be_bytes()));
                    covered.root = covered.peaks.root();
                    covered.commit = Some(At { segment: 0, offset: size as u32 });
                    let transaction = db.transaction().unwrap();
                    put_covered(&transaction, store, &covered).unwrap();
                    transaction.commit().unwrap();
                }
                done.store(true, std::sync::atomic::Ordering::Release);
            });
            while !done.load(std::sync::atomic::Ordering::Acquire) {
                let opened = Index::open(&path, store);
                assert!(!matches!(opened, Err(NoIndex::Corrupt(_))), "{:?}", opened.err());
            }
        });
    }
}
