//! The contract of a store: one append-only log of records, read by position, id, run and tick.
//!
//! Synchronous, and takes batches. Never retries, never resolves a conflict, never looks at a clock.
//!
//! The invariant a newcomer would break: [`Store::append`] writes a group whole or not at all, and only behind the
//! heads that its records name. A caller that gets [`StoreError::Stale`] has written nothing.

use std::borrow::Cow;
use std::fmt;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::Arc;

use dendrer_object::note::{Checkpoint, SignedNote, SigningKey, VerifierKey};
use dendrer_object::record::{Entry, Header, Kind};
use dendrer_object::{Delta, Digest, Pointer, Record, RunName, StoreId, Timestamp, Value};

use crate::error::StoreError;
use crate::shared::Job;
use crate::syncs::Syncs;

/// The format that this code writes.
pub const FORMAT: u64 = 1;

/// What a store says of itself. Fixed when it is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreInfo {
    /// The id, which every record of the store names in its header.
    pub id: StoreId,
    /// The key under which the log's checkpoints are signed.
    pub key: VerifierKey,
    /// The format the store was last written in.
    pub format: u64,
    /// Who knows this format may read.
    pub reader: u64,
    /// Who knows this format may write.
    pub writer: u64,
}

impl StoreInfo {
    /// Describes a new store.
    pub fn new(id: StoreId, key: VerifierKey) -> StoreInfo {
        StoreInfo { id, key, format: FORMAT, reader: FORMAT, writer: FORMAT }
    }

    /// Returns a key if it is that of the store.
    pub(crate) fn own(&self, key: Option<Arc<SigningKey>>) -> Option<Arc<SigningKey>> {
        key.filter(|key| *key.verifier_key() == self.key)
    }
}

/// The log as one handle sees it: how many records, and the root of the tree over their entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeHead {
    /// The number of records.
    pub size: u64,
    /// The RFC 6962 root over their entries.
    pub root: Digest,
}

/// The end of a run: the record that the next one must name as its `prev`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The tick. For a fork without own ticks, the tick it branched off at; `None` if that is not known here.
    pub tick: Option<u64>,
    /// The id of the newest chain record, or of the `run` record.
    pub id: Digest,
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tick {
            Some(tick) => write!(f, "tick {tick} ({})", self.id.short()),
            None => write!(f, "{}", self.id.short()),
        }
    }
}

/// What a store knows of a run without reading a value.
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
    /// How many refusals stand beside it.
    pub refusals: u64,
    /// Whether an `end` record closed it.
    pub ended: bool,
    /// The time of its newest record of any kind.
    pub last_ts: Timestamp,
}

/// A sync that was asked for. Given back to [`Store::finish_sync`].
#[derive(Debug, Clone)]
#[must_use = "nothing is durable before the ticket was given back to finish_sync"]
pub struct SyncTicket {
    pub(crate) size: u64,
    /// The segment that is synced, if one is.
    pub(crate) segment: Option<u32>,
    /// Which sync it is, unless there is nothing to wait for.
    pub(crate) sync: Option<(Arc<Syncs>, u64)>,
}

impl SyncTicket {
    /// Makes the ticket of a store where everything up to `size` is durable already.
    pub fn done(size: u64) -> SyncTicket {
        SyncTicket { size, segment: None, sync: None }
    }

    /// Returns the size that is durable once the ticket was given back.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Waits for the sync, or does it.
    pub(crate) fn wait(&self) -> Result<(), String> {
        self.sync.as_ref().map_or(Ok(()), |(syncs, number)| syncs.wait(*number))
    }
}

/// A group on its way to the disk. Given back to [`Store::settle`].
#[derive(Debug)]
#[must_use = "nothing is durable before the submission was given back to settle"]
pub struct Submission(pub(crate) OnItsWay);

#[derive(Debug)]
pub(crate) enum OnItsWay {
    /// It was appended, and its sync is under way.
    Appended(SyncTicket),
    /// Another thread appends it and sees to its sync.
    Queued(Arc<Job>),
}

/// What a record says, as it stands in a store. Nothing of it was held against a digest.
#[derive(Debug)]
pub struct Skimmed<'a> {
    /// The id that the store has it under.
    pub id: Digest,
    /// Its header.
    pub header: &'a Header,
    /// The fields that were wanted and are there, in order, with their canonical texts.
    pub fields: Vec<(&'a str, Cow<'a, [u8]>)>,
}

/// Decides whether a checkpoint may be signed; asked with the store that is to sign it.
pub type MaySign<'a> = dyn FnMut(&dyn Store, &Checkpoint) -> Result<bool, StoreError> + 'a;

/// Where records are kept.
///
/// Positions count the records of the log from 0. A handle sees the log as it was when it was opened, plus what it
/// appended and what [`Store::refresh`] took in.
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns what the store says of itself.
    fn info(&self) -> &StoreInfo;

    /// Returns the log as this handle sees it.
    fn tree(&self) -> TreeHead;

    /// Returns why this handle refuses to append although it was opened for writing, or sees less than there is:
    /// damage, loss, a failed sync.
    fn trouble(&self) -> Option<Arc<StoreError>>;

    /// Takes in what other handles committed, and returns the new size.
    fn refresh(&mut self) -> Result<u64, StoreError>;

    /// Returns the record at a position, sealed again from what was read: never another one. `None` if this
    /// handle sees no such position.
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

    /// Hands over what the records of a range say in the fields that are wanted, as it stands in the store and without
    /// sealing anything: whoever asks must be able to tell by other means that it is what was committed, and reads the
    /// records where it is not. `f` must not use the store. Returns `false`, after some records or none, where a record
    /// cannot be read so: a value of it was erased, a frame is damaged, or this store offers nothing of the kind.
    fn skim(
        &self,
        _range: Range<u64>,
        _wanted: &dyn Fn(&Header, &str) -> bool,
        _f: &mut dyn FnMut(u64, Skimmed<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Returns the root that the log had at a size; `None` if the log is shorter, or no group ends there and the store
    /// knows roots of groups alone.
    fn root_of(&self, size: u64) -> Result<Option<Digest>, StoreError>;

    /// Whether the log as it is begins with the tree that had a root at a size, by the hashes of entries alone.
    fn extends(&self, size: u64, root: Digest) -> Result<bool, StoreError>;

    /// Returns the position of a record.
    fn find(&self, id: &Digest) -> Result<Option<u64>, StoreError>;

    /// Lists records whose id begins with these hex digits, at most `limit` of them, in order of id.
    fn find_prefix(&self, hex: &str, limit: usize) -> Result<Vec<(Digest, u64)>, StoreError>;

    /// Returns the position of a run's own record at a tick. The earlier ticks of a fork belong to its parent.
    fn at(&self, run: &RunName, tick: u64) -> Result<Option<u64>, StoreError>;

    /// Returns what is known of a run.
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

    /// Lists the records that stand beside a run's chain (refusals, end, erasures ...) from a position on, at
    /// most `limit` of them. The `run` record is not among them.
    fn beside(&self, run: &RunName, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError>;

    /// Lists the writes of a run's own transitions that can change what is read at `place`: tick and path, in
    /// order, at most `limit` of them. An erased delta lists nothing.
    fn writes(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        place: &Pointer,
        limit: usize,
    ) -> Result<Vec<(u64, Pointer)>, StoreError> {
        writes_by_reading(self, run, ticks, place, limit)
    }

    /// Tells whether [`Store::writes`] answers without reading records, and no delta is hidden from it. Where it says
    /// no, whoever must not miss a write reads the records once instead.
    fn knows_all_writes(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

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

    /// The key of the store, if whoever opened it had it at hand. What was derived and kept before counts under it
    /// alone where no record binds it: anybody can write to an index.
    fn key(&self) -> Option<&Arc<SigningKey>>;

    /// Keeps derived bytes for a run and tick, such as a snapshot of the state. May be forgotten at any time. Whoever reads
    /// them must be able to tell that they are genuine: stores keep them as anyone could have left them.
    fn put_snapshot(&self, run: &RunName, tick: u64, bytes: &[u8]) -> Result<(), StoreError>;

    /// Returns the newest bytes kept for a run at or before a tick, and their tick.
    fn snapshot(&self, run: &RunName, tick: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError>;

    /// Keeps a statement of what a question gives along a run, by the digest of the question. May be forgotten at any
    /// time. Whoever reads it must be able to tell that it is genuine: stores keep it as anyone could have left it.
    fn put_verdicts(&self, run: &RunName, question: &Digest, statement: &[u8]) -> Result<(), StoreError>;

    /// Returns the statement kept for a run and a question.
    fn verdicts(&self, run: &RunName, question: &Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Appends one group, whole or not at all, and returns its positions. Visible from now on, durable after a
    /// sync.
    ///
    /// Refused with nothing written: a transition or end that is not made for its run's head ([`StoreError::Stale`]),
    /// a `run` record of a known name, anything on the chain of an ended run, a link or head that names no earlier
    /// record, a record of another store.
    fn append(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError>;

    /// Starts to make durable what was appended, in the background, so that the caller can prepare the next group.
    fn start_sync(&mut self) -> Result<SyncTicket, StoreError>;

    /// Does so for a caller who waits for it at once: whoever waits may be the one who does it.
    fn plan_sync(&mut self) -> Result<SyncTicket, StoreError> {
        self.start_sync()
    }

    /// Waits for a sync. What was appended before it was started is durable once this returns.
    fn finish_sync(&mut self, ticket: SyncTicket) -> Result<u64, StoreError>;

    /// Makes durable what was appended, and returns the durable size.
    fn sync(&mut self) -> Result<u64, StoreError> {
        let ticket = self.start_sync()?;
        self.finish_sync(ticket)
    }

    /// Appends one group and makes it durable. If this fails with anything but [`StoreError::SyncFailed`], nothing of the group
    /// was written.
    fn commit(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError> {
        let positions = self.append(records)?;
        self.sync().map_err(|error| error.as_failed_sync())?;
        Ok(positions)
    }

    /// Starts to append one group and to make it durable, so that the caller can prepare the next one meanwhile. That
    /// the group came too late shows here, or when it is settled. Fails as [`Store::commit`] does.
    fn submit(&mut self, records: &[Record]) -> Result<Submission, StoreError> {
        self.append(records)?;
        let ticket = self.start_sync().map_err(|error| error.as_failed_sync())?;
        Ok(Submission(OnItsWay::Appended(ticket)))
    }

    /// Waits until a group is durable. Fails as [`Store::commit`] does.
    fn settle(&mut self, submission: Submission) -> Result<(), StoreError> {
        match submission.0 {
            OnItsWay::Appended(ticket) => {
                self.finish_sync(ticket).map(drop).map_err(|error| error.as_failed_sync())
            }
            OnItsWay::Queued(job) => job.wait(&|| {}).map(drop),
        }
    }

    /// Commits an `erase` record, then destroys the values at or below the given places of earlier records.
    /// Their commitments stay; their records still verify.
    fn erase(&mut self, record: &Record, targets: &[(u64, Vec<Pointer>)]) -> Result<u64, StoreError>;

    /// Signs the tree as it is, keeps the note, and returns it. Never signs two roots for one size.
    fn sign_checkpoint(&mut self, key: &SigningKey) -> Result<SignedNote, StoreError> {
        Ok(self.sign_if(key, &mut |_, _| Ok(true))?.expect("nothing keeps it from being signed"))
    }

    /// As [`Store::sign_checkpoint`], and calls `may` before the signature can be seen: what it remembers elsewhere then covers
    /// everything that was ever signed, wherever the program is stopped. `None` if `may` returns false: nothing is signed.
    fn sign_if(&mut self, key: &SigningKey, may: &mut MaySign<'_>) -> Result<Option<SignedNote>, StoreError>;

    /// Returns the newest signed checkpoint.
    fn checkpoint(&self) -> Result<Option<SignedNote>, StoreError>;

    /// Finishes background work, but for groups that were submitted and not settled: those may be written or not.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// Lists writes by reading the deltas themselves: what an index must agree with.
pub fn writes_by_reading<S: Store + ?Sized>(
    store: &S,
    run: &RunName,
    ticks: RangeInclusive<u64>,
    place: &Pointer,
    limit: usize,
) -> Result<Vec<(u64, Pointer)>, StoreError> {
    let mut found = Vec::new();
    let mut next = *ticks.start();
    loop {
        let batch = store.positions(run, next..=*ticks.end(), 256)?;
        let Some(&(last, _)) = batch.last() else { return Ok(found) };
        for (tick, position) in batch {
            let record = store.get(position)?.ok_or(StoreError::NoPosition(position))?;
            if record.header().kind != Kind::Transition {
                continue;
            }
            for path in written_paths(&record) {
                if found.len() == limit {
                    return Ok(found);
                }
                if path.overlaps(place) {
                    found.push((tick, path));
                }
            }
        }
        let Some(after) = last.checked_add(1) else { return Ok(found) };
        next = after;
    }
}

/// Returns the paths that a record's delta writes, each once, in order of first writing.
pub(crate) fn written_paths(record: &Record) -> Vec<Pointer> {
    paths_of(record.body().value(DELTA))
}

/// As [`written_paths`], of the value of a delta.
pub(crate) fn paths_of(delta: Option<Value>) -> Vec<Pointer> {
    let delta = delta.and_then(|delta| Delta::from_value(&delta).ok()).unwrap_or_default();
    let mut paths: Vec<Pointer> = Vec::with_capacity(delta.0.len());
    for path in delta.paths() {
        if !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    paths
}

/// The field that holds what a transition changed.
pub(crate) const DELTA: &str = "/delta";

/// The field that names the agent.
pub(crate) const AGENT: &str = "/agent_id";
