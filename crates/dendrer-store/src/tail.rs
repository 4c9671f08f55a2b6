//! The part of the log that the index does not cover yet, as a handle keeps it in memory.
//!
//! Never the only copy of anything: it is read out of the segments again whenever a store is opened.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use dendrer_object::record::{Header, Kind};
use dendrer_object::{Digest, RunName, Timestamp};

use crate::frame::At;

/// One record of the tail.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The frame with its values.
    pub(crate) values: At,
    pub(crate) id: Digest,
    pub(crate) kind: Kind,
    pub(crate) run: Option<RunName>,
    pub(crate) tick: Option<u64>,
    pub(crate) prev: Option<Digest>,
    pub(crate) ts: Timestamp,
}

impl Row {
    pub(crate) fn new(values: At, id: Digest, header: &Header) -> Row {
        let Header { kind, ref run, tick, prev, ts, .. } = *header;
        Row { values, id, kind, run: run.clone(), tick, prev, ts }
    }
}

/// The rows of one run in the tail.
#[derive(Debug)]
pub(crate) struct RunRows {
    name: RunName,
    /// The position of the `run` record, if it is in the tail.
    pub(crate) begin: Option<u64>,
    /// Positions of the chain, one per tick, from `first_tick` on.
    pub(crate) chain: Vec<u64>,
    pub(crate) first_tick: u64,
    /// Positions and kinds of the records off the chain.
    pub(crate) beside: Vec<(u64, Kind)>,
}

impl RunRows {
    fn new(name: RunName) -> RunRows {
        RunRows { name, begin: None, chain: Vec::new(), first_tick: 0, beside: Vec::new() }
    }

    /// Drops the rows before a position. Returns whether any are left.
    fn trim(&mut self, base: u64) -> bool {
        self.begin = self.begin.filter(|begin| *begin >= base);
        // The chain has one position for each tick, in order.
        let gone = self.chain.partition_point(|position| *position < base);
        self.chain.drain(..gone);
        self.first_tick += gone as u64;
        self.beside.retain(|(position, _)| *position >= base);
        self.begin.is_some() || !self.chain.is_empty() || !self.beside.is_empty()
    }
}

/// How many rows are allocated at once. Fresh memory costs more than the rows written to it, and pieces of this size
/// are reused once the index covers their rows.
const ROOM: usize = 256;

/// The records from `base` on.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    pub(crate) base: u64,
    /// The rows, [`ROOM`] in each but the last.
    rows: VecDeque<Vec<Row>>,
    /// How many rows in front are dropped already.
    dropped: usize,
    ids: Mutex<Ids>,
    runs: HashMap<RunName, RunRows, foldhash::fast::RandomState>,
    /// Runs that begin in the tail, in order.
    begins: Vec<(u64, RunName)>,
    /// The newest opened frame of a record of which a value was erased.
    opened: HashMap<Digest, At>,
    /// The newest frame of each encrypted value.
    secrets: HashMap<Digest, At>,
}

/// Positions of ids, looked up for the rows before `end`. Most recording asks for no id, so ids are added here on the
/// first question.
#[derive(Debug, Default)]
struct Ids {
    found: HashMap<Digest, u64, foldhash::fast::RandomState>,
    end: u64,
}

impl Tail {
    pub(crate) fn new(base: u64) -> Tail {
        Tail { base, ..Tail::default() }
    }

    /// Returns the size of the log.
    pub(crate) fn size(&self) -> u64 {
        self.base + self.len() as u64
    }

    pub(crate) fn len(&self) -> usize {
        let last = self.rows.back().map_or(0, Vec::len);
        self.rows.len().saturating_sub(1) * ROOM + last - self.dropped
    }

    pub(crate) fn push(&mut self, mut row: Row) {
        self.place(self.size(), &mut row);
        match self.rows.back_mut().filter(|rows| rows.len() < ROOM) {
            Some(rows) => rows.push(row),
            None => {
                let mut rows = Vec::with_capacity(ROOM);
                rows.push(row);
                self.rows.push_back(rows);
            }
        }
    }

    fn place(&mut self, position: u64, row: &mut Row) {
        let Some(name) = &mut row.run else { return };
        let rows = match self.runs.get_mut(name) {
            Some(rows) => rows,
            None => self.runs.entry(name.clone()).or_insert_with(|| RunRows::new(name.clone())),
        };
        // One text for all rows of the run.
        name.clone_from(&rows.name);
        if row.kind == Kind::Run {
            rows.begin = Some(position);
            self.begins.push((position, name.clone()));
        }
        match (row.tick, row.kind) {
            (Some(tick), _) => {
                if rows.chain.is_empty() {
                    rows.first_tick = tick;
                }
                rows.chain.push(position);
            }
            (None, Kind::Run) => {}
            (None, kind) => rows.beside.push((position, kind)),
        }
    }

    pub(crate) fn open(&mut self, record: Digest, at: At) {
        self.opened.insert(record, at);
    }

    pub(crate) fn opened(&self, record: &Digest) -> Option<At> {
        self.opened.get(record).copied()
    }

    pub(crate) fn put_secret(&mut self, name: Digest, at: At) {
        let newest = self.secrets.entry(name).or_insert(at);
        *newest = at.max(*newest);
    }

    pub(crate) fn secret(&self, name: &Digest) -> Option<At> {
        self.secrets.get(name).copied()
    }

    pub(crate) fn has_opened(&self) -> bool {
        !self.opened.is_empty()
    }

    pub(crate) fn row(&self, position: u64) -> Option<&Row> {
        let at = usize::try_from(position.checked_sub(self.base)?).ok()? + self.dropped;
        self.rows.get(at / ROOM)?.get(at % ROOM)
    }

    pub(crate) fn find(&self, id: &Digest) -> Option<u64> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        for position in ids.end.max(self.base)..self.size() {
            let row = self.row(position).expect("it is within the tail");
            ids.found.entry(row.id).or_insert(position);
        }
        ids.end = self.size();
        ids.found.get(id).copied()
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, &Row)> {
        (self.base..).zip(self.rows.iter().flatten().skip(self.dropped))
    }

    pub(crate) fn run(&self, run: &RunName) -> Option<&RunRows> {
        self.runs.get(run)
    }

    pub(crate) fn begins(&self) -> &[(u64, RunName)] {
        &self.begins
    }

    /// Drops what the index covers now: the records before `base`, which end before the frame at `end`.
    pub(crate) fn trim(&mut self, base: u64, end: At) {
        if base <= self.base {
            return;
        }
        let ids = self.ids.get_mut().unwrap_or_else(PoisonError::into_inner);
        ids.found.retain(|_, position| *position >= base);
        self.dropped += self.len().min((base - self.base) as usize);
        while self.rows.front().is_some_and(|rows| self.dropped >= rows.len()) {
            self.dropped -= self.rows.pop_front().map_or(0, |rows| rows.len());
        }
        self.base = base;
        self.begins.retain(|(position, _)| *position >= base);
        self.runs.retain(|_, rows| rows.trim(base));
        self.opened.retain(|_, at| *at > end);
        self.secrets.retain(|_, at| *at > end);
    }
}
