//! Appending a group: the lock on the order, the fence, one transaction.
//!
//! Two round trips for a small group: lock and read; insert, update and commit. The commit does not wait for the disk; the
//! [barrier](crate::barrier) does, after the lock is gone.
//!
//! Rule: an answer to a commit that was lost is read back and never sent again ([`Postgres::read_back`]); test
//! `an_answer_to_a_commit_that_was_lost_is_read_back`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dendrer_object::merkle::{Peaks, leaf_hashes};
use dendrer_object::record::Kind;
use dendrer_object::{Digest, Record, RunName};
use dendrer_store::fence::{self, Log as _};
use dendrer_store::{
    AppendLog, DamageKind, GroupEnd, Head, LogWriter, ReadLog as _, RunSummary, StoreError, Ticket, TreeHead,
    WaitForSync, checks,
};

use crate::local::Incoming;
use crate::rows::{Columns, check_group, damage};
use crate::store::Postgres;
use crate::tree::{TREE_LOCKED, TreeRow, edge_of, tree_row};
use crate::wire::{Failed, Parameter, Which};

/// How many bytes of rows are sent in one statement.
const SENT_TOGETHER: usize = 8 << 20;

/// How many records are read while the lock is held. More are read without it, so that a slow reader holds no other writer up.
const READ_UNDER_LOCK: u64 = 2_048;

const INSERT: &str = "insert into record (position, id, kind, run, tick, ts, header, seed, \"values\") \
    select * from unnest($1::int8[], $2::bytea[], $3::text[], $4::text[], $5::int8[], $6::int8[], $7::bytea[], \
    $8::bytea[], $9::bytea[])";

/// Ends a group: its end, the heads of its runs and the tree. Divides by zero, which undoes all of it, if one of them is not what
/// the group was made for.
const FINISH: &str = "with ended as (insert into group_end (size, begin, root, tag) values ($1, $2, $3, $4)), \
    grown as (update tree set size = $1, root = $3, tag = $4, edge = $5 \
              where epoch = $6 and size = $2 and root = $7 returning 1), \
    moved as (update head set tick = new.tick, id = new.id, ended = new.ended \
              from unnest($8::text[], $9::bytea[], $10::int8[], $11::bytea[], $12::bool[]) \
                   as new (run, prev, tick, id, ended) \
              where head.run = new.run and head.id = new.prev returning 1), \
    begun as (insert into head (run, tick, id, ended) \
              select * from unnest($13::text[], $14::int8[], $15::bytea[], $16::bool[])) \
    select 1 / ((select count(*) from grown) = 1 and (select count(*) from moved) = cardinality($8::text[]))::int4";

/// The columns of several records, each a list.
#[derive(Default)]
struct Rows {
    position: Vec<i64>,
    id: Vec<Vec<u8>>,
    kind: Vec<String>,
    run: Vec<Option<String>>,
    tick: Vec<Option<i64>>,
    ts: Vec<i64>,
    header: Vec<Vec<u8>>,
    seed: Vec<Option<Vec<u8>>>,
    values: Vec<Vec<u8>>,
    bytes: usize,
}

impl Rows {
    fn push(&mut self, position: u64, record: &Record, columns: Columns<'_>) {
        let header = record.header();
        self.bytes += columns.len();
        self.position.push(position as i64);
        self.id.push(record.id().0.to_vec());
        self.kind.push(header.kind.as_str().to_owned());
        self.run.push(header.run.as_ref().map(|run| run.as_str().to_owned()));
        self.tick.push(header.tick.map(|tick| tick as i64));
        self.ts.push(header.ts.ms() as i64);
        self.header.push(columns.header);
        self.seed.push(columns.seed);
        self.values.push(columns.values);
    }

    async fn insert(&self, session: &crate::wire::Session) -> Result<(), tokio_postgres::Error> {
        if self.position.is_empty() {
            return Ok(());
        }
        let Rows { position, id, kind, run, tick, ts, header, seed, values, .. } = self;
        session.execute(INSERT, &[position, id, kind, run, tick, ts, header, seed, values]).await.map(drop)
    }
}

/// The heads that a group moves, each column a list, and those of the runs that it begins.
#[derive(Default)]
struct Heads {
    run: Vec<String>,
    prev: Vec<Vec<u8>>,
    tick: Vec<Option<i64>>,
    id: Vec<Vec<u8>>,
    ended: Vec<bool>,
    begun: Vec<String>,
    begun_tick: Vec<Option<i64>>,
    begun_id: Vec<Vec<u8>>,
    begun_ended: Vec<bool>,
}

impl Heads {
    fn push(&mut self, before: Option<RunSummary>, after: &RunSummary) {
        let (run, tick) = (after.name.as_str().to_owned(), after.head.tick.map(|tick| tick as i64));
        let (id, ended) = (after.head.id.0.to_vec(), after.ended);
        match before {
            Some(before) => {
                self.run.push(run);
                self.prev.push(before.head.id.0.to_vec());
                self.tick.push(tick);
                self.id.push(id);
                self.ended.push(ended);
            }
            None => {
                self.begun.push(run);
                self.begun_tick.push(tick);
                self.begun_id.push(id);
                self.begun_ended.push(ended);
            }
        }
    }
}

/// Does what else belongs into the transaction of a group, before its records.
pub(crate) type More<'a> = dyn FnMut(&mut Postgres) -> Result<(), StoreError> + 'a;

/// Whether a transaction waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// At the next barrier.
    Later,
    /// With its commit.
    Now,
}

impl Postgres {
    /// Begins a transaction, waits for the order, and takes in what others committed. Fails with the transaction rolled back.
    pub(crate) fn lock(&mut self, sync: Sync) -> Result<(), StoreError> {
        for attempt in 0.. {
            let own = self.peaks.size();
            self.wire.pin()?;
            let tree = self.wire.run(Which::Work, |session| async move {
                session.prepare(&[TREE_LOCKED]).await?;
                let begin = match sync {
                    Sync::Later => "begin; set local synchronous_commit = off",
                    Sync::Now => "begin; set local synchronous_commit = on",
                };
                let (begun, rows) = tokio::join!(session.batch(begin), session.query(TREE_LOCKED, &[]));
                begun?;
                tree_row(&rows?)
            });
            let tree = tree.inspect_err(|_| self.unlock())?;
            let is_far = tree.size.saturating_sub(own) > READ_UNDER_LOCK && attempt < 8;
            if is_far {
                self.unlock();
                self.catch_up().map_err(|error| self.stopped_at(error))?;
                continue;
            }
            let checked = self.check_epoch(&tree).and_then(|()| self.catch_up_to(&tree));
            if let Err(error) = checked {
                self.unlock();
                return Err(self.stopped_at(error));
            }
            return Ok(());
        }
        unreachable!("the last attempt reads under the lock")
    }

    fn check_epoch(&self, tree: &TreeRow) -> Result<(), StoreError> {
        match tree.epoch == self.epoch {
            true => Ok(()),
            false => Err(StoreError::OtherEpoch { own: self.epoch, found: tree.epoch }),
        }
    }

    /// Rolls back. If that cannot be asked, the end of the connection does it.
    pub(crate) fn unlock(&self) {
        let done = self.wire.run(Which::Work, |session| async move { Ok(session.batch("rollback").await?) });
        if done.is_err() {
            self.wire.hang_up(Which::Work);
        }
        self.wire.unpin();
    }

    pub(crate) fn commit_transaction(&self) -> Result<(), StoreError> {
        let done = self.wire.run(Which::Work, |session| async move { Ok(session.batch("commit").await?) });
        self.wire.unpin();
        done
    }

    /// Appends a group, with whatever else `more` does in its transaction.
    pub(crate) fn append_group(
        &mut self,
        records: &[Record],
        heads: &[(RunName, Head)],
        sync: Sync,
        more: &mut More<'_>,
    ) -> Result<Range<u64>, StoreError> {
        self.check_writable()?;
        check_group(records)?;
        self.lock(sync)?;
        self.check_tags().inspect_err(|_| self.unlock())?;
        self.append_locked(records, heads, more)
    }

    /// Appends a group under the lock, and ends the transaction in any case.
    pub(crate) fn append_locked(
        &mut self,
        records: &[Record],
        heads: &[(RunName, Head)],
        more: &mut More<'_>,
    ) -> Result<Range<u64>, StoreError> {
        let begin = self.peaks.size();
        let prepared = self.prepare_locked(records, heads, more);
        let (rows, ending) = prepared.inspect_err(|_| self.unlock())?;
        let Ending { peaks, group, heads } = ending;
        let sent = self.send_last(rows, &peaks, group, heads);
        self.wire.unpin();
        match sent {
            Ok(()) => {}
            Err(StoreError::Unreachable { why, .. }) => self.read_back(records, group, &why)?,
            Err(error) => {
                self.unlock();
                return Err(self.stopped_at(error));
            }
        }
        self.count_own(records, peaks, group)?;
        Ok(begin..self.peaks.size())
    }

    /// Makes the checks of a group, and sends all of it but what ends it.
    fn prepare_locked(
        &mut self,
        records: &[Record],
        heads: &[(RunName, Head)],
        more: &mut More<'_>,
    ) -> Result<(Rows, Ending), StoreError> {
        checks::check_heads(self, heads)?;
        let begin = self.peaks.size();
        let changed = fence::check(&self.local, self.info.id, begin, records)?;
        more(self)?;
        let rows = self.send_records(begin, records)?;
        let mut peaks = self.peaks.clone();
        let entries: Vec<Vec<u8>> = records.iter().map(Record::entry).collect();
        peaks.extend(leaf_hashes(&entries));
        let tree = TreeHead { size: peaks.size(), root: peaks.root() };
        let group = GroupEnd { begin, tree, tag: self.writer.tag(self.info.id, tree) };
        let heads = self.heads_of(changed)?;
        Ok((rows, Ending { peaks, group, heads }))
    }

    fn heads_of(&self, changed: BTreeMap<RunName, RunSummary>) -> Result<Heads, StoreError> {
        let mut heads = Heads::default();
        for (run, after) in changed {
            heads.push(self.local.summary(&run)?, &after);
        }
        Ok(heads)
    }

    /// Sends the rows of a group but for the last ones, which go with what ends it.
    fn send_records(&self, begin: u64, records: &[Record]) -> Result<Rows, StoreError> {
        let mut rows = Rows::default();
        for (record, position) in records.iter().zip(begin..) {
            let columns = Columns::of(self.info.id, record);
            self.send_pieces(position, &columns.pieces)?;
            if rows.bytes > 0 && rows.bytes + columns.len() > SENT_TOGETHER {
                let full = std::mem::take(&mut rows);
                self.wire.run(Which::Work, |session| async move { Ok(full.insert(&session).await?) })?;
            }
            rows.push(position, record, columns);
        }
        Ok(rows)
    }

    /// Sends the pieces of large values that the server does not have, and notes who uses them.
    pub(crate) fn send_pieces(&self, position: u64, pieces: &[(Digest, &[u8])]) -> Result<(), StoreError> {
        let mut rest = pieces;
        while !rest.is_empty() {
            let mut bytes = 0;
            let count = rest.iter().take_while(|(_, piece)| {
                bytes += piece.len();
                bytes <= SENT_TOGETHER
            });
            let (batch, after) = rest.split_at(count.count().max(1));
            rest = after;
            let keys: Vec<Vec<u8>> = batch.iter().map(|(key, _)| key.0.to_vec()).collect();
            let asked = keys.clone();
            let known = self.wire.run(Which::Work, |session| async move {
                let rows = session.query("select key from chunk where key = any($1)", &[&asked]).await?;
                let keys = rows.iter().map(|row| row.try_get(0));
                Ok(keys.collect::<Result<std::collections::BTreeSet<Vec<u8>>, _>>()?)
            })?;
            let new = batch.iter().filter(|(key, _)| !known.contains(&key.0[..]));
            let (new_keys, new_bytes): (Vec<Vec<u8>>, Vec<Vec<u8>>) =
                new.map(|(key, piece)| (key.0.to_vec(), piece.to_vec())).unzip();
            self.wire.run(Which::Work, |session| async move {
                let chunks = "insert into chunk (key, bytes) select * from unnest($1::bytea[], $2::bytea[]) \
                              on conflict do nothing";
                session.execute(chunks, &[&new_keys, &new_bytes]).await?;
                let uses = "insert into chunk_use (position, key) select $1, unnest($2::bytea[]) \
                            on conflict do nothing";
                session.execute(uses, &[&(position as i64), &keys]).await?;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn send_last(&self, rows: Rows, peaks: &Peaks, group: GroupEnd, heads: Heads) -> Result<(), StoreError> {
        let GroupEnd { begin, tree, tag } = group;
        let (size, begin, epoch) = (tree.size as i64, begin as i64, self.epoch as i64);
        let (root, tag, edge) = (tree.root.0.to_vec(), tag.0.to_vec(), edge_of(peaks));
        let before = self.peaks.root().0.to_vec();
        let is_empty = size == begin;
        self.wire.run(Which::Work, |session| async move {
            if is_empty {
                return Ok(session.batch("commit").await?);
            }
            session.prepare(&[INSERT, FINISH]).await?;
            let Heads { run, prev, tick, id, ended, begun, begun_tick, begun_id, begun_ended } = &heads;
            let values: [Parameter<'_>; 16] = [
                &size,
                &begin,
                &root,
                &tag,
                &edge,
                &epoch,
                &before,
                run,
                prev,
                tick,
                id,
                ended,
                begun,
                begun_tick,
                begun_id,
                begun_ended,
            ];
            let finish = session.query(FINISH, &values);
            // Sent one after the other without waiting in between; the server undoes all of it if one fails.
            let (inserted, finished, committed) =
                tokio::join!(rows.insert(&session), finish, session.batch("commit"));
            if let Some(error) = inserted.err().or(finished.err()) {
                return Err(of_group(error, begin as u64));
            }
            Ok(committed?)
        })
    }

    /// Finds out whether a group was committed whose answer was lost. `Ok` if it was.
    ///
    /// Waits for the order first, so that a transaction that is still on its way has ended.
    fn read_back(&mut self, records: &[Record], group: GroupEnd, why: &str) -> Result<(), StoreError> {
        let GroupEnd { begin, tree, .. } = group;
        let end = Instant::now() + self.wire.deadline();
        let found = loop {
            self.wire.hang_up(Which::Work);
            let found = self.wire.run(Which::Work, |session| async move {
                session.batch("begin").await?;
                tree_row(&session.query(TREE_LOCKED, &[]).await?)?;
                let sql = "select root from group_end where size = $1 and begin = $2";
                let rows = session.query(sql, &[&(tree.size as i64), &(begin as i64)]).await?;
                let root = rows.first().map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()?;
                session.batch("rollback").await?;
                Ok(root)
            });
            match found {
                Err(StoreError::Unreachable { .. }) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                found => break found,
            }
        };
        match found {
            Ok(Some(root)) if root == tree.root.0 => Ok(()),
            Ok(_) => {
                self.catch_up().map_err(|error| self.stopped_at(error))?;
                fence::check(&self.local, self.info.id, self.peaks.size(), records)?;
                let server = self.address.to_string();
                Err(StoreError::Unreachable { server, why: format!("{why}; nothing was written") })
            }
            Err(error) => {
                let why = format!(
                    "the answer to a commit was lost ({why}), and whether it was written cannot be read: {error}"
                );
                self.trouble.get_or_insert_with(|| Arc::new(StoreError::SyncFailed { why: why.clone() }));
                Err(StoreError::SyncFailed { why })
            }
        }
    }

    /// Takes a group that this handle committed into the lookups.
    fn count_own(&mut self, records: &[Record], peaks: Peaks, group: GroupEnd) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut batch: Vec<Incoming> = records
            .iter()
            .map(|record| {
                let body = record.body();
                let texts = body.fields().iter().filter_map(|field| body.text(field));
                let bytes = texts.map(|text| text.len() as u64).sum();
                Incoming { id: record.id(), header: record.header().clone(), bytes }
            })
            .collect();
        let has = |kind| records.iter().any(|record| record.header().kind == kind);
        let (is_key, is_erasure) = (has(Kind::Key), has(Kind::Erase));
        self.local.take_in(&self.peaks, &mut || Ok(std::mem::take(&mut batch)), &mut |_| Ok(group))?;
        self.took(peaks, group, is_key, is_erasure)
    }
}

/// The end of a group, before it is sent.
struct Ending {
    peaks: Peaks,
    group: GroupEnd,
    heads: Heads,
}

/// Returns the damage that the server met when it refused a group under the lock: rows are not what they must be.
fn of_group(error: tokio_postgres::Error, begin: u64) -> Failed {
    use tokio_postgres::error::SqlState;
    let damage = |table, what, expected: &str, found: &str| {
        let sides = (expected.to_owned(), found.to_owned());
        Failed::Store(damage(DamageKind::Chain, table, Some(begin), what, sides))
    };
    match error.code() {
        Some(code) if *code == SqlState::DIVISION_BY_ZERO => {
            damage("head", "heads of the runs of a group", "those of the log", "others")
        }
        Some(code) if *code == SqlState::UNIQUE_VIOLATION => {
            damage("record", "rows after the end of the log", "none", "some, or heads without a run")
        }
        _ => error.into(),
    }
}

impl AppendLog for Postgres {
    fn append(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError> {
        self.append_after(records, &[])
    }

    fn append_after(
        &mut self,
        records: &[Record],
        heads: &[(RunName, Head)],
    ) -> Result<Range<u64>, StoreError> {
        if records.is_empty() && heads.is_empty() {
            self.check_writable()?;
            self.check_tags()?;
            let size = self.peaks.size();
            return Ok(size..size);
        }
        self.append_group(records, heads, Sync::Later, &mut |_| Ok(()))
    }

    fn submit(&mut self, records: &[Record]) -> Result<Ticket, StoreError> {
        if !records.is_empty() {
            self.append(records)?;
        }
        Ok(Ticket { number: 0, size: self.peaks.size() })
    }

    fn wait(&mut self, ticket: Ticket) -> Result<(), StoreError> {
        let done = self.barrier.cover(ticket.size);
        if let Some(why) = self.barrier.failure() {
            self.trouble.get_or_insert_with(|| Arc::new(why));
        }
        done
    }

    fn waiter(&self) -> Option<Arc<dyn WaitForSync>> {
        Some(self.barrier.clone())
    }

    fn set_writer(&mut self, writer: LogWriter) {
        if let Err(error) = self.use_writer(writer) {
            // Without the keys of the log nothing is written.
            self.writer = LogWriter::Missing;
            self.tags = None;
            drop(self.stop_at(error));
        }
    }

    fn untagged(&self) -> Result<Option<Vec<Range<u64>>>, StoreError> {
        Ok(self.tags.as_ref().map(|tags| tags.untagged().to_vec()))
    }

    fn group_of(&self, position: u64) -> Result<Option<GroupEnd>, StoreError> {
        self.local.group_of(position)
    }

    fn adopt(&mut self, to: TreeHead) -> Result<(), StoreError> {
        let found = self.root_of(to.size)?;
        checks::check_adopted(found.map(|root| TreeHead { size: to.size, root }), to)?;
        self.adopted = self.adopted.max(to.size);
        if let Some(tags) = &mut self.tags {
            tags.pass(to.size);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}
