//! Brings the index up to date with the segments, in batches of one transaction each.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dendrer_object::record::{Header, Kind};
use dendrer_object::{Digest, RunName, StoreId, json};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::{
    APART, Covered, KeyOfChunks, NoIndex, RUNS, Sql, open_writer, open_writer_within, put_count, put_covered,
    read_meta, tick,
};
use crate::error::StoreError;
use crate::frame::{self, At, COMMIT_SIZE};
use crate::layout::{self, SEGMENT_HEADER, Stored};
use crate::scan::{End, Found, Item, Scanner};
use crate::segments::{Read, Segments};
use crate::values::{self, ChunkKey};

/// How many records one transaction takes in.
const BATCH: u64 = 5_000;

/// The rows that one group adds to the index.
#[derive(Default)]
pub(super) struct Group {
    pub(super) rows: Vec<Row>,
    chunks: Vec<(ChunkKey, u64)>,
    pub(super) opened: Vec<(At, Vec<u8>)>,
    /// Encrypted values.
    pub(super) secrets: Vec<(Digest, u64)>,
}

pub(super) struct Row {
    pub(super) position: u64,
    pub(super) id: Digest,
    pub(super) header: Header,
    pub(super) values: At,
    /// The agent that the record names.
    pub(super) agent: Option<String>,
    /// Whether the values cannot be read any more, so that nothing is known of what the record said.
    pub(super) is_gone: bool,
}

/// The field that names the agent.
const AGENT: &str = "/agent_id";

/// Advances an index to a size of the log, which the caller knows to be on disk. Returns what it covers then: less
/// if the log is damaged or an erasure is not finished, or where it begins a run or has a tick a second time; more if another
/// process went further. Each statement waits for another program for `wait`.
pub(crate) fn advance(
    path: &Path,
    segments: &Arc<Segments>,
    store: StoreId,
    target: u64,
    (stop, wait): (&AtomicBool, Duration),
    publish: &dyn Fn(&Covered),
) -> Result<Covered, StoreError> {
    let mut db = open_writer_within(path, false, wait)?;
    let covered = take_in(&mut db, segments, store, target, stop, publish, &mut None)?;
    // A handle that only reads would read all of SQLite's log when it opens the index. If others read at this moment, the log
    // stays.
    db.busy_timeout(Duration::ZERO)?;
    let _ = db.pragma_update_and_check(None, "wal_checkpoint", "TRUNCATE", |_| Ok(()));
    Ok(covered)
}

/// As [`advance`], for an index that was created just now and that no other process uses. Ids come in no order: a
/// table of them that grows with each batch is rewritten in each batch, which is most of the work once it is larger
/// than the memory of SQLite. Built from all ids at once it is sorted first.
pub(crate) fn build(
    path: &Path,
    segments: &Arc<Segments>,
    store: StoreId,
    target: u64,
) -> Result<Covered, StoreError> {
    let mut db = open_writer(path, false)?;
    db.execute_batch("DROP INDEX record_id")?;
    let (never, mut later) = (AtomicBool::new(false), Some(Later::default()));
    let covered = take_in(&mut db, segments, store, target, &never, &|_| {}, &mut later)?;
    let Later { opened, has_forks } = later.unwrap_or_default();
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch("CREATE INDEX record_id ON record (id)")?;
    if has_forks {
        // Each fork is resolved with the rows before it, as when it began.
        transaction.execute_batch(
            "UPDATE run SET first_own_tick = coalesce(
                 (SELECT tick + 1 FROM record WHERE id = run.parent AND position < run.begin ORDER BY position LIMIT 1),
                 first_own_tick
             ) WHERE parent IS NOT NULL",
        )?;
    }
    let (key, _) =
        read_meta(&transaction, store).map_err(|why: NoIndex| StoreError::Index(format!("{why:?}")))?;
    let (mut names, mut none) = (HashMap::new(), None);
    let groups = Groups { segments, key: Some(key) };
    let mut writer = Writer::new(&transaction, groups, &mut names, &mut none);
    for at in opened {
        if let Read::Frame(frame::OPENED, payload) = segments.read(at)? {
            writer.put_opened(at, &payload)?;
        }
    }
    transaction.commit()?;
    Ok(covered)
}

/// The questions that need a table of ids.
#[derive(Default)]
struct Later {
    /// Erasures.
    opened: Vec<At>,
    /// Whether there are runs whose parent is asked for.
    has_forks: bool,
}

fn take_in(
    db: &mut Connection,
    segments: &Arc<Segments>,
    store: StoreId,
    mut target: u64,
    stop: &AtomicBool,
    publish: &dyn Fn(&Covered),
    later: &mut Option<Later>,
) -> Result<Covered, StoreError> {
    loop {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let meta = read_meta(&transaction, store);
        let (key, before) = meta.map_err(|why: NoIndex| StoreError::Index(format!("{why:?}")))?;
        let mut covered = before.clone();
        if covered.size() < target && !stop.load(Ordering::Relaxed) {
            let batch = (covered.size() + BATCH).min(target);
            let mut names = HashMap::new();
            let groups = Groups { segments, key: Some(key) };
            let mut writer = Writer::new(&transaction, groups, &mut names, later);
            covered = writer.advance(store, covered, batch)?;
            if writer.is_stuck {
                // Rows of the group that has no place go with the transaction.
                target = covered.size();
                continue;
            }
            writer.put_grown()?;
            let (begun, apart) = (writer.begun, writer.apart);
            put_count(&transaction, RUNS, before.size(), covered.size(), begun)?;
            put_count(&transaction, APART, before.size(), covered.size(), apart)?;
        }
        if covered == before {
            return Ok(covered);
        }
        put_covered(&transaction, store, &covered)?;
        transaction.commit()?;
        publish(&covered);
    }
}

/// Reads what groups say that the index keeps.
#[derive(Clone, Copy)]
pub(super) struct Groups<'a> {
    pub(super) segments: &'a Arc<Segments>,
    /// Under which chunks are known again, where they are to be.
    pub(super) key: Option<KeyOfChunks>,
}

struct Writer<'a> {
    db: &'a Connection,
    groups: Groups<'a>,
    /// The begins of runs, and whether their first own tick is known.
    runs: &'a mut HashMap<RunName, (i64, bool)>,
    /// The questions that are put off while there is no table of ids.
    later: &'a mut Option<Later>,
    /// How many runs began.
    begun: u64,
    /// How many records of no run there are.
    apart: u64,
    /// The runs that got records, by where they begin.
    grown: HashMap<i64, Grown>,
    /// Whether a group has a row for which there is no room: no log that was written under the lock has one.
    is_stuck: bool,
}

/// The rows that a batch adds to a run.
#[derive(Default)]
struct Grown {
    newest_tick: Option<i64>,
    /// How many records off its chain.
    beside: i64,
}

impl Groups<'_> {
    /// Hands over the groups behind what is covered until `f` takes one not, `target` is reached, or the log ends or cannot be
    /// read. Returns what is covered then.
    pub(super) fn each(
        &self,
        store: StoreId,
        mut covered: Covered,
        target: u64,
        f: &mut dyn FnMut(Group) -> Result<bool, StoreError>,
    ) -> Result<Covered, StoreError> {
        let begin = match covered.commit {
            Some(at) => At::new(at.segment, u64::from(at.offset) + COMMIT_SIZE),
            None => At::new(0, SEGMENT_HEADER as u64),
        };
        let (size, peaks) = (covered.size(), Some(covered.peaks.clone()));
        let Some(mut scanner) = Scanner::new(self.segments, store, begin, size, peaks)? else {
            return Ok(covered);
        };
        scanner.past_secrets = true;
        let mut segment = begin.segment;
        while covered.size() < target {
            let (group, end) = self.read_group(&mut scanner)?;
            match end {
                End::Commit { at, commit, .. } => {
                    if !f(group)? {
                        return Ok(covered);
                    }
                    let peaks = scanner.peaks.clone().expect("an intact scan knows its peaks");
                    covered = Covered { root: commit.root, peaks, commit: Some(at) };
                }
                End::Clean => {
                    let next = segment + 1;
                    match self.segments.header(next)? {
                        Some(header) if header.start == covered.size() => {}
                        _ => return Ok(covered),
                    }
                    segment = next;
                    let at = At::new(next, SEGMENT_HEADER as u64);
                    let peaks = Some(covered.peaks.clone());
                    match Scanner::new(self.segments, store, at, covered.size(), peaks)? {
                        Some(next) => {
                            scanner = next;
                            scanner.past_secrets = true;
                        }
                        None => return Ok(covered),
                    }
                }
                End::Fault { .. } | End::Damage(_) => return Ok(covered),
            }
        }
        Ok(covered)
    }

    fn read_group(&self, scanner: &mut Scanner) -> Result<(Group, End), StoreError> {
        let mut group = Group::default();
        let (mut payload, mut is_opened): (Vec<u8>, bool) = (Vec::new(), false);
        let mut is_gone = true;
        let mut failure = None;
        let end = scanner.group(&mut |item| match item {
            Item::Values { payload: read } => {
                payload.clear();
                payload.extend_from_slice(read);
                (is_opened, is_gone) = (false, false);
            }
            Item::Opened { at, payload: read } => {
                payload.clear();
                payload.extend_from_slice(read);
                (is_opened, is_gone) = (true, false);
                if layout::is_erasure(read) {
                    group.opened.push((at, read.to_vec()));
                }
            }
            Item::Shared { at, payload, kind } => {
                let key = self.key.as_ref().map(|key| key.of(kind, payload));
                group.chunks.extend(key.map(|key| (key, at.to_u64())));
            }
            Item::Secret { at, name } => group.secrets.push((name, at.to_u64())),
            Item::Void | Item::Broken(_) => {
                payload.clear();
                is_gone = true;
            }
            Item::Record(found) => match self.row(found, &payload, is_opened) {
                Ok(row) => group.rows.push(Row { is_gone, ..row }),
                Err(error) => failure = Some(error),
            },
        })?;
        match failure {
            Some(error) => Err(error),
            None => Ok((group, end)),
        }
    }

    fn row(&self, found: Found<'_>, payload: &[u8], is_opened: bool) -> Result<Row, StoreError> {
        let Found { position, values, frame, .. } = found;
        let places = frame.places().unwrap_or_default();
        let fields = match is_opened {
            true => layout::parse_opened(payload, places.len()).map(|opened| opened.fields),
            false => layout::parse_values(payload, places.len()).map(|(_, fields)| fields),
        };
        let agent = self.agent(&places, &fields.unwrap_or_default(), values)?;
        Ok(Row { position, id: frame.id, values, agent, header: frame.header, is_gone: false })
    }

    /// Reads the agent that a record names.
    fn agent(
        &self,
        places: &[Cow<'_, str>],
        fields: &[Stored<'_>],
        before: At,
    ) -> Result<Option<String>, StoreError> {
        let field = places.iter().zip(fields).find(|(place, _)| *place == AGENT);
        let Some(slot) = field.and_then(|(_, field)| field.slot.as_ref()) else { return Ok(None) };
        let mut text = Vec::new();
        let read = values::read(self.segments, slot, before.to_u64(), &mut text)?;
        let value = read.ok().and_then(|()| json::parse_canonical(&text).ok());
        Ok(value.and_then(|value| value.as_str().map(str::to_owned)))
    }

    /// Reads the agent that an erasure left of a record.
    pub(super) fn agent_of_opened(
        &self,
        frame: At,
        at: At,
        opened: &layout::Opened<'_>,
    ) -> Result<Option<String>, StoreError> {
        let (_, record, _) = self.segments.read_two(frame)?;
        let Read::Frame(frame::RECORD, payload) = record else { return Ok(None) };
        let Some(parsed) = layout::RecordFrame::parse(&payload, StoreId([0; 16])) else { return Ok(None) };
        self.agent(&parsed.places().unwrap_or_default(), &opened.fields, at)
    }
}

impl<'a> Writer<'a> {
    fn new(
        db: &'a Connection,
        groups: Groups<'a>,
        runs: &'a mut HashMap<RunName, (i64, bool)>,
        later: &'a mut Option<Later>,
    ) -> Writer<'a> {
        Writer { db, groups, runs, later, begun: 0, apart: 0, grown: HashMap::new(), is_stuck: false }
    }

    fn advance(&mut self, store: StoreId, covered: Covered, target: u64) -> Result<Covered, StoreError> {
        let groups = self.groups;
        groups.each(store, covered, target, &mut |group| self.put_group(&group))
    }

    /// Adds a group. `false` if it must wait because it erases values that are still there, or has no place.
    fn put_group(&mut self, group: &Group) -> Result<bool, StoreError> {
        for (_, payload) in &group.opened {
            if let Some((_, Some(replaced), _)) = layout::opened_head(payload)
                && !is_void(self.groups.segments, At::from_u64(replaced))?
            {
                return Ok(false);
            }
        }
        for (key, frame) in &group.chunks {
            self.db
                .prepare_cached("INSERT OR IGNORE INTO chunk (key, frame) VALUES (?1, ?2)")?
                .execute(params![&key.0[..], *frame as i64])?;
        }
        for (name, frame) in &group.secrets {
            self.db
                .prepare_cached("INSERT OR REPLACE INTO secret (name, frame) VALUES (?1, ?2)")?
                .execute(params![&name.0[..], *frame as i64])?;
        }
        for row in &group.rows {
            if !self.put_row(row)? {
                self.is_stuck = true;
                return Ok(false);
            }
        }
        for (at, payload) in &group.opened {
            self.forget_copies()?;
            match self.later.as_mut() {
                Some(later) => later.opened.push(*at),
                None => self.put_opened(*at, payload)?,
            }
        }
        Ok(true)
    }

    /// Adds the rows of a record. `false` where another record has its place: the name of the run, or the tick in it.
    fn put_row(&mut self, row: &Row) -> Sql<bool> {
        let Row { position, id, header, values, agent, .. } = row;
        let run = match &header.run {
            Some(name) if header.kind == Kind::Run => match self.begin_run(name, *position, header)? {
                None => return Ok(false),
                begin => begin,
            },
            Some(name) => self.run(name, header)?,
            None => None,
        };
        let added = self
            .db
            .prepare_cached(
                "INSERT OR IGNORE INTO record (position, id, kind, run, tick, type, agent, ts, frame)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                *position as i64,
                &id.0[..],
                header.kind.as_str(),
                run,
                header.tick.map(|tick| tick as i64),
                header.type_name.as_ref().map(|name| name.as_str()),
                agent,
                header.ts.ms() as i64,
                values.to_u64() as i64,
            ])?;
        if added == 0 {
            return Ok(false);
        }
        match (run, header.tick) {
            (Some(run), Some(tick)) => {
                let grown = self.grown.entry(run).or_default();
                grown.newest_tick = grown.newest_tick.max(Some(tick as i64));
            }
            (Some(run), None) if header.kind != Kind::Run => self.grown.entry(run).or_default().beside += 1,
            (None, None) => self.apart += 1,
            _ => {}
        }
        Ok(true)
    }

    /// Puts into the rows of runs what their records add up to, so that a record without a row is noticed.
    fn put_grown(&mut self) -> Sql<()> {
        let mut statement = self.db.prepare_cached(
            "UPDATE run SET newest_tick = max(coalesce(newest_tick, ?2), coalesce(?2, newest_tick)), beside = beside + ?3
             WHERE begin = ?1",
        )?;
        for (begin, Grown { newest_tick, beside }) in self.grown.drain() {
            statement.execute(params![begin, newest_tick, beside])?;
        }
        Ok(())
    }

    /// Adds the row of a run, and returns where it begins; `None` where one of that name is there.
    fn begin_run(&mut self, name: &RunName, position: u64, header: &Header) -> Sql<Option<i64>> {
        let parent_tick = match (header.prev, self.later.as_mut()) {
            (Some(_), Some(later)) => {
                later.has_forks = true;
                None
            }
            (Some(prev), None) => self
                .db
                .prepare_cached("SELECT tick FROM record WHERE id = ?1 ORDER BY position LIMIT 1")?
                .query_row([&prev.0[..]], |row| tick(row, 0))
                .optional()?
                .flatten(),
            (None, _) => None,
        };
        let first_own_tick = header.tick.or(parent_tick.map(|tick| tick + 1));
        let added = self
            .db
            .prepare_cached(
                "INSERT OR IGNORE INTO run (begin, name, parent, first_own_tick) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                position as i64,
                name.as_str(),
                header.prev.map(|prev| prev.0.to_vec()),
                first_own_tick.map(|tick| tick as i64),
            ])?;
        if added == 0 {
            return Ok(None);
        }
        self.begun += 1;
        self.runs.insert(name.clone(), (position as i64, first_own_tick.is_some()));
        Ok(Some(position as i64))
    }

    /// Returns where a run begins. The first transition of a fork of a foreign record says its first own tick.
    fn run(&mut self, name: &RunName, header: &Header) -> Sql<Option<i64>> {
        let known = match self.runs.get(name) {
            Some(known) => *known,
            None => {
                let found = self
                    .db
                    .prepare_cached("SELECT begin, first_own_tick IS NOT NULL FROM run WHERE name = ?1")?
                    .query_row([name.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                let Some(found) = found else { return Ok(None) };
                self.runs.insert(name.clone(), found);
                found
            }
        };
        let (begin, has_first) = known;
        if let (false, Some(tick)) = (has_first, header.tick) {
            self.db
                .prepare_cached("UPDATE run SET first_own_tick = ?1 WHERE begin = ?2")?
                .execute([tick as i64, begin])?;
            self.runs.insert(name.clone(), (begin, true));
        }
        Ok(Some(begin))
    }

    /// Removes everything that may hold a copy of what was erased.
    fn forget_copies(&self) -> Sql<()> {
        self.db
            .execute_batch("DELETE FROM chunk; DELETE FROM snapshot; DELETE FROM verdict; DELETE FROM tile")
    }

    /// Removes what an erasure takes from the rows that were made of the values.
    fn put_opened(&mut self, at: At, payload: &[u8]) -> Result<(), StoreError> {
        let Some(opened) = layout::parse_opened_all(payload) else { return Ok(()) };
        let found = self
            .db
            .prepare_cached("SELECT position, frame FROM record WHERE id = ?1 ORDER BY position LIMIT 1")?
            .query_row([&opened.record.0[..]], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
            .optional()?;
        let Some((position, frame)) = found else { return Ok(()) };
        let agent = self.groups.agent_of_opened(At::from_u64(frame as u64), at, &opened)?;
        self.db
            .prepare_cached("UPDATE record SET opened = ?1, agent = ?2 WHERE position = ?3")?
            .execute(params![at.to_u64() as i64, agent, position])?;
        Ok(())
    }
}

/// Tells whether the frame at a position was erased.
pub(crate) fn is_void(segments: &Segments, at: At) -> Result<bool, StoreError> {
    Ok(matches!(segments.read(at)?, Read::Frame(frame::VOID, _)))
}
