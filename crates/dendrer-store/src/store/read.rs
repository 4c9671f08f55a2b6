//! Reading the log.

use std::borrow::Cow;
use std::fmt;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::Arc;

use dendrer_object::keys::LogKeys;
use dendrer_object::merkle::{Peaks, leaf_hash};
use dendrer_object::record::{Entry, Header, Kind};
use dendrer_object::{Digest, Record, RunName, Timestamp};

use super::head::Head;
use super::{StoreInfo, TreeHead};
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};

/// A run as a store knows it without reading a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// The name.
    pub name: RunName,
    /// The position of the `run` record.
    pub begin: u64,
    /// For a fork: the record that it branched off at.
    pub parent: Option<Digest>,
    /// The first tick that is the run's own: 0, or in a fork the tick after the parent's. `None` for a fork of a
    /// record that is not in this log, until its first transition says.
    pub first_own_tick: Option<u64>,
    /// The end of the chain.
    pub head: Head,
    /// The position of the head.
    pub head_position: u64,
    /// How many transitions the run owns.
    pub transitions: u64,
    /// How many refusals of the run there are, off its chain.
    pub refusals: u64,
    /// Whether an `end` record closed it.
    pub ended: bool,
    /// The time of its newest record of any kind.
    pub last_ts: Timestamp,
}

impl RunSummary {
    /// Makes the summary of a run that just began. `parent_tick` is the tick of the record named by `prev`.
    pub fn begin(
        name: RunName,
        position: u64,
        id: Digest,
        header: &Header,
        parent_tick: Option<u64>,
    ) -> RunSummary {
        let tick = header.tick.or(parent_tick);
        RunSummary {
            name,
            begin: position,
            parent: header.prev,
            first_own_tick: header.tick.or(parent_tick.map(|tick| tick + 1)),
            head: Head { tick, id },
            head_position: position,
            transitions: 0,
            refusals: 0,
            ended: false,
            last_ts: header.ts,
        }
    }

    /// Takes a later record of the run into account.
    pub fn add(&mut self, position: u64, id: Digest, header: &Header) {
        match header.kind {
            Kind::Transition => {
                self.head = Head { tick: header.tick, id };
                self.head_position = position;
                self.first_own_tick = self.first_own_tick.or(header.tick);
                self.transitions += 1;
            }
            Kind::Refusal => self.refusals += 1,
            Kind::End => self.ended = true,
            Kind::Run | Kind::Register | Kind::Erase | Kind::Key | Kind::Map => {}
        }
        self.last_ts = self.last_ts.max(header.ts);
    }
}

/// The fields of a record as they are in a store. None of it was compared with a digest.
#[derive(Debug)]
pub struct Skimmed<'a> {
    /// The id that the store has it under.
    pub id: Digest,
    /// Its header.
    pub header: &'a Header,
    /// The fields that were wanted and are there, in order, with their canonical texts.
    pub fields: Vec<(&'a str, Cow<'a, [u8]>)>,
}

/// The part of a store that reads.
///
/// Positions count the records of the log from 0. A handle sees the log as it was when it was opened, plus what it
/// appended and what [`ReadLog::refresh`] took in.
pub trait ReadLog: fmt::Debug + Send + Sync {
    /// Returns id, key and format of the store.
    fn info(&self) -> &StoreInfo;

    /// Returns the log as this handle sees it.
    fn tree(&self) -> TreeHead;

    /// Returns why this handle refuses to append although it was opened for writing, or sees less than there is:
    /// damage, loss, a failed sync.
    fn trouble(&self) -> Option<Arc<StoreError>>;

    /// Takes in what other handles committed, and returns the new size.
    fn refresh(&mut self) -> Result<u64, StoreError>;

    /// Returns the record at a position, sealed again from what was read: never one that differs from a committed one. `None`
    /// if this handle sees no such position. An index that lies can name another record of the store; [`ReadLog::proven`]
    /// checks that as well.
    fn get(&self, position: u64) -> Result<Option<Record>, StoreError>;

    /// Hands over the records of a range in order until `f` breaks or the log ends.
    fn scan(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Hands over the entries of a range in order, without reading values: the leaves of the tree.
    fn entries(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Hands over the wanted fields of the records of a range, as they are in the store and without sealing anything: the
    /// caller must be able to tell by other means that they are what was committed, and reads the records if not. `f`
    /// must not use the store. Returns `false`, after some records or none, if a record cannot be read so: a value of it
    /// was erased, a frame is damaged, or this store offers nothing of the kind.
    fn skim(
        &self,
        _range: Range<u64>,
        _wanted: &dyn Fn(&Header, &str) -> bool,
        _f: &mut dyn FnMut(u64, Skimmed<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Returns the position of a record.
    fn find(&self, id: &Digest) -> Result<Option<u64>, StoreError>;

    /// Lists records whose id begins with these hex digits, at most `limit` of them, in order of id.
    fn find_prefix(&self, hex: &str, limit: usize) -> Result<Vec<(Digest, u64)>, StoreError>;

    /// Returns the position of a run's own record at a tick. The earlier ticks of a fork belong to its parent.
    fn at(&self, run: &RunName, tick: u64) -> Result<Option<u64>, StoreError>;

    /// Returns the summary of a run.
    fn run(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError>;

    /// Lists the runs whose `run` record is at `from` or later, in that order, at most `limit` of them.
    fn runs(&self, from: u64, limit: usize) -> Result<Vec<RunSummary>, StoreError>;

    /// Lists ticks and positions of a run's own chain in order, at most `limit` of them.
    fn positions(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, StoreError>;

    /// Lists the records of a run off its chain (refusals, end, erasures ...) from a position on, at
    /// most `limit` of them. The `run` record is not among them.
    fn beside(&self, run: &RunName, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError>;

    /// Lists the records that belong to no run (keys, registrations ...) from a position on, at most `limit` of them.
    fn beside_runs(&self, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        let mut found = Vec::new();
        self.entries(from..self.tree().size, &mut |position, entry| {
            if entry.run.is_none() && found.len() < limit {
                found.push((position, entry.kind));
            }
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(found)
    }

    /// Returns the keys of the log, as far as this handle sees it. A change that does not hold is passed over: a
    /// verification finds it.
    fn keys(&self) -> Result<LogKeys, StoreError> {
        let (info, mut from) = (self.info(), 0);
        let mut keys = LogKeys::new(info.id, info.key.clone());
        loop {
            let batch = self.beside_runs(from, KEYS_STEP)?;
            let Some((last, _)) = batch.last() else { return Ok(keys) };
            from = last + 1;
            for (position, _) in batch.iter().filter(|(_, kind)| *kind == Kind::Key) {
                take_key(&mut keys, *position, self.get(*position), &mut |size| self.root_of(size))?;
            }
        }
    }

    /// Whether the lookups ([`ReadLog::find`], [`ReadLog::at`], [`ReadLog::run`] and those that list) are of every record
    /// of the log, up to the size and the root of [`ReadLog::tree`]. If so, a lookup that finds nothing says that the log
    /// has nothing there; otherwise only [`ReadLog::entries`] does.
    fn covers_log(&self) -> bool {
        false
    }

    /// Returns the root that the log had at a size; `None` if the log is shorter, or no group ends there and the store
    /// knows roots of groups alone.
    fn root_of(&self, size: u64) -> Result<Option<Digest>, StoreError> {
        let tree = self.tree();
        if size >= tree.size {
            return Ok((size == tree.size).then_some(tree.root));
        }
        Ok(peaks_of(self, 0..size)?.filter(|peaks| peaks.size() == size).map(|peaks| peaks.root()))
    }

    /// Whether the log as it is begins with the tree that had a root at a size, by the hashes of entries alone.
    fn extends(&self, size: u64, root: Digest) -> Result<bool, StoreError> {
        let tree = self.tree();
        if size > tree.size {
            return Ok(false);
        }
        let Some(mut peaks) = peaks_of(self, 0..size)? else { return Ok(false) };
        let begins = peaks.size() == size && peaks.root() == root;
        let to_end = self.entries(size..tree.size, &mut |_, entry| {
            peaks.push(leaf_hash(&entry.text()));
            ControlFlow::Continue(())
        });
        to_end?;
        Ok(begins && (peaks.size(), peaks.root()) == (tree.size, tree.root))
    }

    /// Returns the record at a position as [`ReadLog::get`] does, after checking that its entry is the leaf at this position
    /// of the tree that [`ReadLog::tree`] names. A single record that was read so can be trusted without reading the log.
    ///
    /// Stores that can read the nodes of their tree read O(log n) of them. The definition here reads all entries.
    fn proven(&self, position: u64) -> Result<Option<Record>, StoreError> {
        let Some(record) = self.get(position)? else { return Ok(None) };
        let (tree, mut peaks, mut is_leaf) = (self.tree(), Some(Peaks::new()), false);
        self.entries(0..tree.size, &mut |at, entry| {
            is_leaf |= at == position && entry == record.log_entry();
            push_next(&mut peaks, at, &entry);
            ControlFlow::Continue(())
        })?;
        let leads = peaks.is_some_and(|peaks| (peaks.size(), peaks.root()) == (tree.size, tree.root));
        if is_leaf && leads { Ok(Some(record)) } else { Err(not_in_tree(position, &record)) }
    }

    /// Returns the record of a run's own chain at a tick, [proven](ReadLog::proven). A lookup that names another record is an
    /// error. If [`ReadLog::covers_log`], `None` says that the log has no such tick.
    fn proven_at(&self, run: &RunName, tick: u64) -> Result<Option<Record>, StoreError> {
        let Some(position) = self.at(run, tick)? else { return Ok(None) };
        let is_own =
            |record: &Record| (record.header().run.as_ref(), record.header().tick) == (Some(run), Some(tick));
        match self.proven(position)?.filter(is_own) {
            Some(record) => Ok(Some(record)),
            None => {
                let what =
                    format!("it names record {position} for tick {tick} of {run}, which is another one");
                Err(StoreError::IndexDamaged(what))
            }
        }
    }
}

/// How many records of no run are listed at once.
const KEYS_STEP: usize = 1024;

/// Takes a record of kind `key` as it was read. One that cannot be read, or whose change was signed over another log, changes no key
/// here: a verification has the reason.
pub fn take_key(
    keys: &mut LogKeys,
    position: u64,
    read: Result<Option<Record>, StoreError>,
    root_of: &mut dyn FnMut(u64) -> Result<Option<Digest>, StoreError>,
) -> Result<(), StoreError> {
    let record = match read {
        Ok(Some(record)) => record,
        Ok(None) | Err(StoreError::Damaged(_) | StoreError::Lost(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut changed = keys.clone();
    let Ok(Some(change)) = changed.take(position, &record) else { return Ok(()) };
    let (size, root) = change.before;
    match root_of(size) {
        Ok(found) if found.is_some_and(|found| found != root) => Ok(()),
        Ok(_) | Err(StoreError::Damaged(_) | StoreError::Lost(_)) => {
            *keys = changed;
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Returns the tree over a range of entries from the beginning of the log; `None` if one of them is missing.
fn peaks_of<S: ReadLog + ?Sized>(store: &S, range: Range<u64>) -> Result<Option<Peaks>, StoreError> {
    let mut peaks = Some(Peaks::new());
    store.entries(range, &mut |position, entry| {
        push_next(&mut peaks, position, &entry);
        ControlFlow::Continue(())
    })?;
    Ok(peaks)
}

fn push_next(peaks: &mut Option<Peaks>, position: u64, entry: &Entry) {
    match peaks {
        Some(known) if known.size() == position => known.push(leaf_hash(&entry.text())),
        _ => *peaks = None,
    }
}

/// Returns the error of a record whose entry is not the leaf of the tree at its position.
pub(crate) fn not_in_tree(position: u64, record: &Record) -> StoreError {
    let header = record.header();
    let place = DamagePlace {
        position: Some(position),
        record: Some(record.id()),
        run: header.run.clone(),
        tick: header.tick,
        ..DamagePlace::default()
    };
    let (kind, what) = (DamageKind::Chain, "entry of the record");
    let (expected, found) = ("a leaf of the tree at its position".into(), "another leaf there".into());
    Damage { kind, place, what, expected, found }.into()
}
