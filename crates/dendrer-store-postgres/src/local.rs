//! Lookups of one handle: ids, runs, ticks and groups of the part of the log that was compared with the root.
//!
//! A private SQLite database without a name: it lies in a temporary file, is held in memory only in part, and goes with the
//! handle. The server is never asked where a record is, so it cannot hide one. Never holds a value.
//!
//! Rule: rows come in with the group that they belong to, and only after its root was compared ([`Local::take_in`]).

use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dendrer_object::merkle::{Peaks, leaf_hash};
use dendrer_object::record::{Entry, Header, Kind};
use dendrer_object::{Digest, RunName, Timestamp};
use dendrer_store::checks::prefix_start;
use dendrer_store::fence::{Known, Log};
use dendrer_store::{DamageKind, GroupEnd, Head, RunSummary, StoreError, Tag, TreeHead};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::rows::damage;

/// How many entries are read before they are handed over.
const BATCH: u64 = 4_096;

const SCHEMA: &str = "
create table entry (
    position integer primary key,
    id       blob    not null,
    kind     text    not null,
    run      integer,
    tick     integer,
    bytes    integer not null
);
create index entry_id on entry (id, position);
create unique index entry_tick on entry (run, tick) where tick is not null;
create index entry_beside on entry (run, position) where tick is null;
create table run (
    begin          integer primary key,
    name           text    not null unique,
    parent         blob,
    first_own_tick integer,
    head_tick      integer,
    head_id        blob    not null,
    head_position  integer not null,
    transitions    integer not null,
    refusals       integer not null,
    ended          integer not null,
    last_ts        integer not null
);
create table group_end (
    size  integer primary key,
    begin integer not null,
    root  blob    not null,
    tag   blob    not null
);
create table kept (
    what   text    not null,
    run    text    not null,
    key    blob    not null,
    tick   integer not null,
    bytes  blob    not null,
    primary key (what, run, key, tick)
) without rowid;
";

/// A record as it comes in: what the lookups know of it.
pub(crate) struct Incoming {
    pub(crate) id: Digest,
    pub(crate) header: Header,
    /// How many bytes its values have in the row.
    pub(crate) bytes: u64,
}

impl Incoming {
    pub(crate) fn entry(&self) -> Entry {
        let Header { kind, run, tick, .. } = &self.header;
        Entry { hash: self.id, kind: *kind, run: run.clone(), tick: *tick }
    }
}

#[derive(Debug)]
pub(crate) struct Local {
    db: Mutex<Connection>,
}

type Sql<T> = Result<T, rusqlite::Error>;

/// SQLite counts to 2^63 - 1; no position or tick goes beyond.
fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn uint(row: &Row<'_>, column: usize) -> Sql<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

fn optional(row: &Row<'_>, column: usize) -> Sql<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|value| value as u64))
}

fn wrong(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, "not what it must be".into(), rusqlite::types::Type::Blob)
}

fn digest(row: &Row<'_>, column: usize) -> Sql<Digest> {
    let bytes: Vec<u8> = row.get(column)?;
    Ok(Digest(bytes.try_into().map_err(|_| wrong(column))?))
}

fn parsed<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> Sql<T> {
    row.get::<_, String>(column)?.parse().map_err(|_| wrong(column))
}

const RUN: &str = "select begin, name, parent, first_own_tick, head_tick, head_id, head_position, transitions, \
                   refusals, ended, last_ts from run ";

fn summary(row: &Row<'_>) -> Sql<RunSummary> {
    let parent: Option<Vec<u8>> = row.get(2)?;
    Ok(RunSummary {
        name: parsed(row, 1)?,
        begin: uint(row, 0)?,
        parent: parent.map(|id| id.try_into().map(Digest)).transpose().map_err(|_| wrong(2))?,
        first_own_tick: optional(row, 3)?,
        head: Head { tick: optional(row, 4)?, id: digest(row, 5)? },
        head_position: uint(row, 6)?,
        transitions: uint(row, 7)?,
        refusals: uint(row, 8)?,
        ended: row.get(9)?,
        last_ts: Timestamp::from_ms(uint(row, 10)?),
    })
}

fn group_end(row: &Row<'_>) -> Sql<GroupEnd> {
    let tag: Vec<u8> = row.get(3)?;
    Ok(GroupEnd {
        begin: uint(row, 1)?,
        tree: TreeHead { size: uint(row, 0)?, root: digest(row, 2)? },
        tag: Tag(tag.try_into().map_err(|_| wrong(3))?),
    })
}

impl Local {
    pub(crate) fn new() -> Result<Local, StoreError> {
        // Without a name SQLite makes a temporary file that no other program can open by one.
        let db = Connection::open("")?;
        db.execute_batch(
            "pragma journal_mode = memory; pragma synchronous = off; pragma secure_delete = on; \
             pragma cache_size = -32768;",
        )?;
        db.execute_batch(SCHEMA)?;
        db.set_prepared_statement_cache_capacity(64);
        Ok(Local { db: Mutex::new(db) })
    }

    fn db(&self) -> MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in records of one group at positions from the size of `peaks` on; `records` hands them over. All or nothing: kept
    /// only if `is_right` accepts the tree with them.
    pub(crate) fn take_in(
        &self,
        peaks: &Peaks,
        records: &mut dyn FnMut() -> Result<Vec<Incoming>, StoreError>,
        is_right: &mut dyn FnMut(&Peaks) -> Result<GroupEnd, StoreError>,
    ) -> Result<Peaks, StoreError> {
        let mut db = self.db();
        let transaction = db.transaction()?;
        let mut peaks = peaks.clone();
        loop {
            let batch = records()?;
            if batch.is_empty() {
                break;
            }
            for record in batch {
                put_record(&transaction, peaks.size(), &record)?;
                peaks.push(leaf_hash(&record.entry().text()));
            }
        }
        let GroupEnd { begin, tree, tag } = is_right(&peaks)?;
        transaction
            .prepare_cached("insert into group_end (size, begin, root, tag) values (?1, ?2, ?3, ?4)")?
            .execute(params![int(tree.size), int(begin), &tree.root.0[..], &tag.0[..]])?;
        transaction.commit()?;
        Ok(peaks)
    }

    /// Hands over entries of a range in order.
    pub(crate) fn entries(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut from = range.start;
        while from < range.end {
            let to = range.end.min(from.saturating_add(BATCH));
            let batch = self.entries_of(from, to)?;
            if batch.is_empty() {
                return Ok(());
            }
            for (position, entry) in batch {
                from = position + 1;
                if f(position, entry).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn entries_of(&self, from: u64, to: u64) -> Result<Vec<(u64, Entry)>, StoreError> {
        let db = self.db();
        let mut statement = db.prepare_cached(
            "select entry.position, entry.id, entry.kind, run.name, entry.tick from entry \
             left join run on run.begin = entry.run where position >= ?1 and position < ?2 order by position",
        )?;
        let rows = statement.query_map([int(from), int(to)], |row| {
            let run = row.get::<_, Option<String>>(3)?.map(|run| run.parse()).transpose();
            let entry = Entry {
                hash: digest(row, 1)?,
                kind: parsed(row, 2)?,
                run: run.map_err(|_| wrong(3))?,
                tick: optional(row, 4)?,
            };
            Ok((uint(row, 0)?, entry))
        })?;
        Ok(rows.collect::<Sql<Vec<_>>>()?)
    }

    pub(crate) fn entry(&self, position: u64) -> Result<Option<Entry>, StoreError> {
        Ok(self.entries_of(position, position.saturating_add(1))?.pop().map(|(_, entry)| entry))
    }

    /// Returns positions and sizes of rows, at most `limit` of them.
    pub(crate) fn sizes(&self, range: Range<u64>, limit: usize) -> Result<Vec<(u64, u64)>, StoreError> {
        let db = self.db();
        let mut statement = db.prepare_cached(
            "select position, bytes from entry where position >= ?1 and position < ?2 order by position limit ?3",
        )?;
        let values = params![int(range.start), int(range.end), int(limit as u64)];
        let rows = statement.query_map(values, |row| Ok((uint(row, 0)?, uint(row, 1)?)))?;
        Ok(rows.collect::<Sql<Vec<_>>>()?)
    }

    pub(crate) fn find(&self, id: &Digest) -> Result<Option<u64>, StoreError> {
        let db = self.db();
        let mut statement = db.prepare_cached("select min(position) from entry where id = ?1")?;
        Ok(statement.query_row([&id.0[..]], |row| optional(row, 0))?)
    }

    pub(crate) fn find_prefix(&self, hex: &str, limit: usize) -> Result<Vec<(Digest, u64)>, StoreError> {
        let Some(first) = prefix_start(hex) else { return Ok(Vec::new()) };
        let db = self.db();
        let mut statement = db.prepare_cached(
            "select id, min(position) from entry where id >= ?1 group by id order by id limit ?2",
        )?;
        let values = params![&first.0[..], int(limit as u64)];
        let rows = statement.query_map(values, |row| Ok((digest(row, 0)?, uint(row, 1)?)))?;
        let mut found = rows.collect::<Sql<Vec<_>>>()?;
        found.retain(|(id, _)| id.hex().starts_with(hex));
        Ok(found)
    }

    fn begin(&self, run: &RunName) -> Result<Option<i64>, StoreError> {
        let db = self.db();
        let mut statement = db.prepare_cached("select begin from run where name = ?1")?;
        Ok(statement.query_row([run.as_str()], |row| row.get(0)).optional()?)
    }

    pub(crate) fn at(&self, run: &RunName, tick: u64) -> Result<Option<u64>, StoreError> {
        let Some(begin) = self.begin(run)? else { return Ok(None) };
        let db = self.db();
        let mut statement = db.prepare_cached("select position from entry where run = ?1 and tick = ?2")?;
        Ok(statement.query_row([begin, int(tick)], |row| uint(row, 0)).optional()?)
    }

    pub(crate) fn runs(&self, from: u64, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        let db = self.db();
        let mut statement = db.prepare_cached(&format!("{RUN} where begin >= ?1 order by begin limit ?2"))?;
        let rows = statement.query_map([int(from), int(limit as u64)], summary)?;
        Ok(rows.collect::<Sql<Vec<_>>>()?)
    }

    pub(crate) fn positions(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        let Some(begin) = self.begin(run)? else { return Ok(Vec::new()) };
        let db = self.db();
        let mut statement = db.prepare_cached(
            "select tick, position from entry where run = ?1 and tick between ?2 and ?3 order by tick limit ?4",
        )?;
        let values = [begin, int(*ticks.start()), int(*ticks.end()), int(limit as u64)];
        let rows = statement.query_map(values, |row| Ok((uint(row, 0)?, uint(row, 1)?)))?;
        Ok(rows.collect::<Sql<Vec<_>>>()?)
    }

    pub(crate) fn beside(
        &self,
        run: &RunName,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Kind)>, StoreError> {
        let Some(begin) = self.begin(run)? else { return Ok(Vec::new()) };
        let db = self.db();
        // The `run` record of a fork has no tick, and is not among them.
        let mut statement = db.prepare_cached(
            "select position, kind from entry where run = ?1 and tick is null and position >= ?2 \
             and kind <> 'run' order by position limit ?3",
        )?;
        let values = [begin, int(from), int(limit as u64)];
        let rows = statement.query_map(values, |row| Ok((uint(row, 0)?, parsed(row, 1)?)))?;
        Ok(rows.collect::<Sql<Vec<_>>>()?)
    }

    pub(crate) fn beside_runs(&self, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        let db = self.db();
        let mut statement = db.prepare_cached(
            "select position, kind from entry where run is null and tick is null and position >= ?1 \
             order by position limit ?2",
        )?;
        let values = [int(from), int(limit as u64)];
        let rows = statement.query_map(values, |row| Ok((uint(row, 0)?, parsed(row, 1)?)))?;
        Ok(rows.collect::<Sql<Vec<_>>>()?)
    }

    /// Returns the root of the group that ends at a size.
    pub(crate) fn root_of(&self, size: u64) -> Result<Option<Digest>, StoreError> {
        let db = self.db();
        let mut statement = db.prepare_cached("select root from group_end where size = ?1")?;
        Ok(statement.query_row([int(size)], |row| digest(row, 0)).optional()?)
    }

    pub(crate) fn group_of(&self, position: u64) -> Result<Option<GroupEnd>, StoreError> {
        Ok(self.groups(position, 1)?.pop().filter(|group| group.begin <= position))
    }

    /// Returns the groups that end after a size, in order.
    pub(crate) fn groups(&self, after: u64, limit: usize) -> Result<Vec<GroupEnd>, StoreError> {
        let db = self.db();
        let mut statement = db.prepare_cached(
            "select size, begin, root, tag from group_end where size > ?1 order by size limit ?2",
        )?;
        let rows = statement.query_map([int(after), int(limit as u64)], group_end)?;
        Ok(rows.collect::<Sql<Vec<_>>>()?)
    }

    pub(crate) fn keep(
        &self,
        (what, run, key, tick): (&str, &RunName, &[u8], u64),
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let db = self.db();
        let mut statement = db.prepare_cached(
            "insert or replace into kept (what, run, key, tick, bytes) values (?1, ?2, ?3, ?4, ?5)",
        )?;
        statement.execute(params![what, run.as_str(), key, int(tick), bytes])?;
        Ok(())
    }

    pub(crate) fn kept(
        &self,
        (what, run, key, tick): (&str, &RunName, &[u8], u64),
    ) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let db = self.db();
        let mut statement = db.prepare_cached(
            "select tick, bytes from kept where what = ?1 and run = ?2 and key = ?3 and tick <= ?4 \
             order by tick desc limit 1",
        )?;
        let values = params![what, run.as_str(), key, int(tick)];
        Ok(statement.query_row(values, |row| Ok((uint(row, 0)?, row.get(1)?))).optional()?)
    }

    /// Forgets what was derived from values.
    pub(crate) fn forget(&self) -> Result<(), StoreError> {
        Ok(self.db().execute_batch("delete from kept")?)
    }
}

impl Log for Local {
    fn summary(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        let db = self.db();
        Ok(read_summary(&db, run)?)
    }

    fn known(&self, id: &Digest) -> Result<Option<Known>, StoreError> {
        let db = self.db();
        Ok(read_known(&db, id)?)
    }
}

fn read_summary(db: &Connection, run: &RunName) -> Sql<Option<RunSummary>> {
    let mut statement = db.prepare_cached(&format!("{RUN} where name = ?1"))?;
    statement.query_row([run.as_str()], summary).optional()
}

fn read_known(db: &Connection, id: &Digest) -> Sql<Option<Known>> {
    let mut statement =
        db.prepare_cached("select kind, tick from entry where id = ?1 order by position limit 1")?;
    let known = |row: &Row<'_>| Ok(Known { kind: parsed(row, 0)?, tick: optional(row, 1)? });
    statement.query_row([&id.0[..]], known).optional()
}

fn put_record(db: &Connection, position: u64, record: &Incoming) -> Result<(), StoreError> {
    let Incoming { id, header, bytes } = record;
    let mut begin = None;
    if let Some(name) = &header.run {
        let mut run = match read_summary(db, name)? {
            Some(mut run) => {
                run.add(position, *id, header);
                run
            }
            None => {
                let parent = header.prev.map(|prev| read_known(db, &prev)).transpose()?.flatten();
                let parent_tick = parent.and_then(|parent| parent.tick);
                RunSummary::begin(name.clone(), position, *id, header, parent_tick)
            }
        };
        begin = Some(int(run.begin));
        put_summary(db, &mut run)?;
    }
    let mut statement = db.prepare_cached(
        "insert into entry (position, id, kind, run, tick, bytes) values (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let tick = header.tick.map(int);
    let row = params![int(position), &id.0[..], header.kind.as_str(), begin, tick, int(*bytes)];
    match statement.execute(row) {
        Ok(_) => Ok(()),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {
            let (run, tick) = (header.run.as_ref().map_or("", |run| run.as_str()), tick.unwrap_or_default());
            let sides = ("one record".into(), format!("a second one for tick {tick} of {run}"));
            Err(damage(DamageKind::Chain, "record", Some(position), "ticks of the run", sides))
        }
        Err(error) => Err(error.into()),
    }
}

fn put_summary(db: &Connection, run: &mut RunSummary) -> Sql<()> {
    let mut statement = db.prepare_cached(
        "insert or replace into run (begin, name, parent, first_own_tick, head_tick, head_id, head_position, \
         transitions, refusals, ended, last_ts) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    statement.execute(params![
        int(run.begin),
        run.name.as_str(),
        run.parent.map(|id| id.0.to_vec()),
        run.first_own_tick.map(int),
        run.head.tick.map(int),
        &run.head.id.0[..],
        int(run.head_position),
        int(run.transitions),
        int(run.refusals),
        run.ended,
        int(run.last_ts.ms()),
    ])?;
    Ok(())
}
