//! Compares the index with the rows that follow from the log, both read side by side from their beginning.
//!
//! Nothing is set aside on disk: what follows from a record is compared as soon as it was read. Only erasures reach back, to
//! rows of earlier records; where there are any, they are found first and the log is read once more.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use dendrer_object::record::{Header, Kind};
use dendrer_object::{Digest, RunName, StoreId};
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator as _;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row as Found, Rows, params};

use super::advance::{Group, Groups, Row};
use super::{Covered, Index, Sql, read_meta};
use crate::error::StoreError;
use crate::frame::{self, At};
use crate::layout;
use crate::segments::{Read, Segments};

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

impl IndexDifference {
    fn none(table: &'static str) -> IndexDifference {
        IndexDifference { table, missing: 0, surplus: 0, example: String::new() }
    }

    fn lacks(&mut self, row: &[ValueRef<'_>]) {
        self.missing += 1;
        self.shows(row);
    }

    fn has(&mut self, row: &[ValueRef<'_>]) {
        self.surplus += 1;
        self.shows(row);
    }

    fn shows(&mut self, row: &[ValueRef<'_>]) {
        if self.example.is_empty() {
            self.example = row.iter().map(text).collect::<Vec<_>>().join(" ");
        }
    }
}

/// Compares an index with the log; returns how many records it covers, and the tables in which it differs.
pub(crate) fn compare(
    index: &Index,
    segments: &Arc<Segments>,
    store: StoreId,
) -> Result<(u64, Vec<IndexDifference>), StoreError> {
    let db = index.reader();
    // One read transaction: another process may advance the index meanwhile.
    let transaction = db.unchecked_transaction()?;
    let (_, covered) =
        read_meta(&transaction, store).map_err(|why| StoreError::IndexDamaged(format!("{why:?}")))?;
    let groups = Groups { segments, key: None };
    let mut erased = HashMap::new();
    loop {
        let mut comparison = Comparison::new(&transaction, groups, &erased);
        let found = comparison.compare(store, &covered)?;
        if found == erased {
            return Ok((covered.size(), comparison.differences));
        }
        erased = found;
    }
}

const RECORDS: &str = "SELECT position, id, kind, run, tick, type, agent, ts, frame, opened
     FROM record ORDER BY position";
/// The index of the agent among them.
const AGENT: usize = 6;

const RUNS: &str = "SELECT begin, name, parent, first_own_tick, newest_tick, beside FROM run ORDER BY begin";

/// A run as the log says.
struct Run {
    name: RunName,
    parent: Option<Digest>,
    first_own_tick: Option<u64>,
    newest_tick: Option<u64>,
    /// How many records off its chain.
    beside: u64,
}

struct Comparison<'a> {
    db: &'a Connection,
    groups: Groups<'a>,
    /// Remains of erasures, of records that were not reached yet.
    erased: HashMap<Digest, At>,
    runs: BTreeMap<i64, Run>,
    begins: HashMap<RunName, i64>,
    /// The newest frame of each encrypted value.
    secrets: BTreeMap<Digest, u64>,
    /// In the order of `RECORD`, `RUN` and `SECRET`; in the end those that there are.
    differences: Vec<IndexDifference>,
}

const RECORD: usize = 0;
const RUN: usize = 1;
const SECRET: usize = 2;

impl<'a> Comparison<'a> {
    fn new(db: &'a Connection, groups: Groups<'a>, erased: &HashMap<Digest, At>) -> Comparison<'a> {
        Comparison {
            db,
            groups,
            erased: erased.clone(),
            runs: BTreeMap::new(),
            begins: HashMap::new(),
            secrets: BTreeMap::new(),
            differences: ["record", "run", "secret"].map(IndexDifference::none).into(),
        }
    }

    /// Compares what is covered, and returns the newest frame of each record of which something was erased.
    fn compare(&mut self, store: StoreId, covered: &Covered) -> Result<HashMap<Digest, At>, StoreError> {
        let mut found = HashMap::new();
        let mut statement = self.db.prepare(RECORDS)?;
        let mut records = Beside { rows: statement.query([])?, is_waiting: false };
        let groups = self.groups;
        groups.each(store, Covered::nothing(), covered.size(), &mut |group| {
            for (at, payload) in &group.opened {
                found.extend(layout::opened_head(payload).map(|(id, ..)| (id, *at)));
            }
            self.group(group, &mut records)?;
            Ok(true)
        })?;
        while let Some(row) = records.next()? {
            self.differences[RECORD].has(&values(row, 10)?);
        }
        self.compare_runs()?;
        self.compare_secrets()?;
        self.differences.retain(|difference| difference.missing + difference.surplus > 0);
        Ok(found)
    }

    fn group(&mut self, group: Group, records: &mut Beside<'_>) -> Result<(), StoreError> {
        self.secrets.extend(group.secrets);
        for row in group.rows {
            self.row(row, records)?;
        }
        Ok(())
    }

    fn row(&mut self, row: Row, records: &mut Beside<'_>) -> Result<(), StoreError> {
        let Row { position, id, header, values: at, mut agent, is_gone } = row;
        let run = self.run(position, &header)?;
        let opened = self.erased.remove(&id);
        if let Some(opened) = opened
            && let Read::Frame(frame::OPENED, payload) = self.groups.segments.read(opened)?
            && let Some(left) = layout::parse_opened_all(&payload)
        {
            agent = self.groups.agent_of_opened(at, opened, &left)?;
        }
        // Erased after the index covered the record: its row was true of the values, which can no longer be checked.
        // The row is removed when the index reaches the erasure.
        let is_unknown = is_gone && opened.is_none();
        let int = |value: u64| ValueRef::Integer(value as i64);
        let optional = |value: Option<ValueRef<'static>>| value.unwrap_or(ValueRef::Null);
        let expected = [
            int(position),
            ValueRef::Blob(&id.0),
            ValueRef::Text(header.kind.as_str().as_bytes()),
            optional(run.map(ValueRef::Integer)),
            optional(header.tick.map(int)),
            optional_text(header.type_name.as_ref().map(|name| name.as_str())),
            optional_text(agent.as_deref()),
            int(header.ts.ms()),
            int(at.to_u64()),
            optional(opened.map(|at| int(at.to_u64()))),
        ];
        records.hold(&expected, is_unknown.then_some(AGENT), &mut self.differences[RECORD])?;
        Ok(())
    }

    /// Returns where the run of a record begins, and learns of the run what the record says.
    fn run(&mut self, position: u64, header: &Header) -> Sql<Option<i64>> {
        let Some(name) = &header.run else { return Ok(None) };
        if header.kind == Kind::Run {
            let begin = position as i64;
            let parent_tick = match header.prev {
                // Rows of earlier records were compared already: where one of them is wrong, so is the index.
                Some(prev) => self
                    .db
                    .prepare_cached(
                        "SELECT tick FROM record WHERE id = ?1 AND position < ?2 ORDER BY position LIMIT 1",
                    )?
                    .query_row(params![&prev.0[..], begin], |row| {
                        Ok(row.get_ref(0)?.as_i64_or_null().ok().flatten())
                    })
                    .optional()?
                    .flatten(),
                None => None,
            };
            let first_own_tick = header.tick.or(parent_tick.map(|tick| tick as u64 + 1));
            if !self.begins.contains_key(name) {
                self.begins.insert(name.clone(), begin);
                let (parent, newest_tick) = (header.prev, header.tick);
                self.runs.insert(
                    begin,
                    Run { name: name.clone(), parent, first_own_tick, newest_tick, beside: 0 },
                );
            }
            return Ok(Some(begin));
        }
        let begin = self.begins.get(name).copied();
        if let Some(run) = begin.and_then(|begin| self.runs.get_mut(&begin)) {
            run.first_own_tick = run.first_own_tick.or(header.tick);
            run.newest_tick = run.newest_tick.max(header.tick);
            run.beside += u64::from(header.tick.is_none());
        }
        Ok(begin)
    }

    fn compare_secrets(&mut self) -> Result<(), StoreError> {
        let mut statement = self.db.prepare("SELECT name, frame FROM secret")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let values = values(row, 2)?;
            let (name, frame) = (super::digest(row, 0)?, row.get::<_, i64>(1)? as u64);
            if self.secrets.get(&name) == Some(&frame) {
                self.secrets.remove(&name);
                continue;
            }
            // The row of a destroyed value stays, and leads to nothing.
            match self.groups.segments.read(At::from_u64(frame))? {
                Read::Frame(frame::VOID, _) | Read::Broken(..) => {}
                _ => self.differences[SECRET].has(&values),
            }
        }
        for (name, frame) in &self.secrets {
            let values = [ValueRef::Blob(&name.0), ValueRef::Integer(*frame as i64)];
            self.differences[SECRET].lacks(&values);
        }
        Ok(())
    }

    fn compare_runs(&mut self) -> Result<(), StoreError> {
        let mut statement = self.db.prepare(RUNS)?;
        let mut runs = Beside { rows: statement.query([])?, is_waiting: false };
        for (begin, Run { name, parent, first_own_tick, newest_tick, beside }) in &self.runs {
            let tick =
                |tick: &Option<u64>| tick.map_or(ValueRef::Null, |tick| ValueRef::Integer(tick as i64));
            let expected = [
                ValueRef::Integer(*begin),
                ValueRef::Text(name.as_str().as_bytes()),
                parent.as_ref().map_or(ValueRef::Null, |parent| ValueRef::Blob(&parent.0)),
                tick(first_own_tick),
                tick(newest_tick),
                ValueRef::Integer(*beside as i64),
            ];
            runs.hold(&expected, None, &mut self.differences[RUN])?;
        }
        while let Some(row) = runs.next()? {
            self.differences[RUN].has(&values(row, 6)?);
        }
        Ok(())
    }
}

/// The rows of a table, in the order of their key, which is a number and comes first.
struct Beside<'a> {
    rows: Rows<'a>,
    /// Whether the row that was read last is still to be compared.
    is_waiting: bool,
}

impl Beside<'_> {
    fn next(&mut self) -> Sql<Option<&Found<'_>>> {
        if std::mem::take(&mut self.is_waiting) {
            return Ok(self.rows.get());
        }
        self.rows.next()
    }

    /// Holds a row that should be there against the next that is, but for a column of which nothing is known.
    fn hold(
        &mut self,
        expected: &[ValueRef<'_>],
        unknown: Option<usize>,
        difference: &mut IndexDifference,
    ) -> Sql<()> {
        let ValueRef::Integer(key) = expected[0] else { unreachable!("keys are numbers") };
        loop {
            let Some(row) = self.next()? else {
                difference.lacks(expected);
                return Ok(());
            };
            // Keys of these tables can be nothing but numbers.
            let found: i64 = row.get(0)?;
            if found > key {
                difference.lacks(expected);
                self.is_waiting = true;
                return Ok(());
            }
            let mut is_same = true;
            for (column, expected) in expected.iter().enumerate() {
                is_same &= row.get_ref(column)? == *expected || unknown == Some(column);
            }
            if is_same {
                return Ok(());
            }
            difference.has(&values(row, expected.len())?);
            if found == key {
                difference.missing += 1;
                return Ok(());
            }
        }
    }
}

fn values<'r>(row: &'r Found<'_>, columns: usize) -> Sql<Vec<ValueRef<'r>>> {
    (0..columns).map(|column| row.get_ref(column)).collect()
}

fn optional_text(text: Option<&str>) -> ValueRef<'_> {
    text.map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes()))
}

fn text(value: &ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "null".into(),
        ValueRef::Integer(value) => value.to_string(),
        ValueRef::Real(value) => value.to_string(),
        ValueRef::Text(value) => String::from_utf8_lossy(value).into_owned(),
        ValueRef::Blob(value) => dendrer_object::digest::hex(value),
    }
}
