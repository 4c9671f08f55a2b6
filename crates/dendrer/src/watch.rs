//! Progress of long reads, and a way to stop them.
//!
//! A [`Watch`] is a counter and a flag. The thread that asked shows the counter and may set the flag; the work never waits for
//! that thread, and its answer does not depend on who looks.
//!
//! Rule: a cancelled read fails with [`StoreError::Cancelled`] and never returns a part as the whole; test
//! `a_cancelled_read_is_an_error_and_no_shorter_answer`.

use std::io::{self, Read};
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dendrer_object::keys::LogKeys;
use dendrer_object::note::{SignedNote, SigningKey};
use dendrer_object::record::{Entry, Header, Kind};
use dendrer_object::{Digest, Pointer, Record, RunName};
use dendrer_store::{
    AppendLog, EraseValues, Given, GroupEnd, KeepDerived, KeepSecrets, LastRecord, LogWriter, MaySign, Meter,
    ReadLog, RunSummary, SignLog, Skimmed, Slot, Store, StoreError, StoreInfo, Ticket, TreeHead,
};

use crate::handle::ReadHandle;

/// Counts what long work has read, and stops it when asked. Clones watch the same work.
#[derive(Debug, Clone, Default)]
pub struct Watch(Meter);

impl Watch {
    /// Starts at 0, not cancelled.
    pub fn new() -> Watch {
        Watch::default()
    }

    /// Counts into a number that the caller has.
    pub fn counting(done: Arc<AtomicU64>) -> Watch {
        Watch(Meter::counting(done))
    }

    /// Number of records, or bytes of a [`Watch::reader`], read so far.
    pub fn done(&self) -> u64 {
        self.0.done()
    }

    /// The count and the flag, for work on files.
    pub fn meter(&self) -> &Meter {
        &self.0
    }

    /// Makes the next read of the watched work fail with [`StoreError::Cancelled`].
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether [`Watch::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Returns a handle for reading alone that counts each record it returns.
    pub fn over(&self, store: &impl ReadHandle) -> Arc<dyn Store> {
        Arc::new(Watched { inner: store.to_handle(), watch: self.clone() })
    }

    /// Returns a reader that counts each byte.
    pub fn reader<R: Read>(&self, inner: R) -> WatchedRead<R> {
        WatchedRead { inner, watch: self.clone() }
    }
}

/// A reader that counts its bytes into a [`Watch`].
#[derive(Debug)]
pub struct WatchedRead<R> {
    inner: R,
    watch: Watch,
}

impl<R: Read> Read for WatchedRead<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.watch.0.add(read as u64).map_err(io::Error::other)?;
        Ok(read)
    }
}

/// A store handle for reading alone whose records count into a [`Watch`].
#[derive(Debug)]
struct Watched {
    inner: Arc<dyn Store>,
    watch: Watch,
}

fn reading_only<T>() -> Result<T, StoreError> {
    Err(StoreError::ReadOnly { why: "a watched handle is for reading alone".to_owned() })
}

impl ReadLog for Watched {
    fn info(&self) -> &StoreInfo {
        self.inner.info()
    }

    fn tree(&self) -> TreeHead {
        self.inner.tree()
    }

    fn trouble(&self) -> Option<Arc<StoreError>> {
        self.inner.trouble()
    }

    fn refresh(&mut self) -> Result<u64, StoreError> {
        reading_only()
    }

    fn get(&self, position: u64) -> Result<Option<Record>, StoreError> {
        self.watch.0.check()?;
        let record = self.inner.get(position)?;
        // The record is here: cancelling takes effect at the next read.
        let _ = self.watch.0.add(1);
        Ok(record)
    }

    fn scan(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.watch.0.check()?;
        let mut is_cut = false;
        self.inner.scan(range, &mut |position, record| {
            is_cut = self.watch.0.add(1).is_err();
            if is_cut { ControlFlow::Break(()) } else { f(position, record) }
        })?;
        if is_cut { Err(StoreError::Cancelled) } else { Ok(()) }
    }

    fn entries(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.watch.0.check()?;
        let mut is_cut = false;
        self.inner.entries(range, &mut |position, entry| {
            is_cut = self.watch.is_cancelled();
            if is_cut { ControlFlow::Break(()) } else { f(position, entry) }
        })?;
        if is_cut { Err(StoreError::Cancelled) } else { Ok(()) }
    }

    fn skim(
        &self,
        range: Range<u64>,
        wanted: &dyn Fn(&Header, &str) -> bool,
        f: &mut dyn FnMut(u64, Skimmed<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        self.watch.0.check()?;
        let mut is_cut = false;
        let is_read = self.inner.skim(range, wanted, &mut |position, skimmed| {
            is_cut = self.watch.0.add(1).is_err();
            if is_cut { ControlFlow::Break(()) } else { f(position, skimmed) }
        })?;
        if is_cut { Err(StoreError::Cancelled) } else { Ok(is_read) }
    }

    fn find(&self, id: &Digest) -> Result<Option<u64>, StoreError> {
        self.watch.0.check()?;
        self.inner.find(id)
    }

    fn find_prefix(&self, hex: &str, limit: usize) -> Result<Vec<(Digest, u64)>, StoreError> {
        self.watch.0.check()?;
        self.inner.find_prefix(hex, limit)
    }

    fn at(&self, run: &RunName, tick: u64) -> Result<Option<u64>, StoreError> {
        self.watch.0.check()?;
        self.inner.at(run, tick)
    }

    fn run(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        self.watch.0.check()?;
        self.inner.run(run)
    }

    fn runs(&self, from: u64, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.watch.0.check()?;
        self.inner.runs(from, limit)
    }

    fn positions(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        self.watch.0.check()?;
        self.inner.positions(run, ticks, limit)
    }

    fn beside(&self, run: &RunName, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        self.watch.0.check()?;
        self.inner.beside(run, from, limit)
    }

    fn beside_runs(&self, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        self.watch.0.check()?;
        self.inner.beside_runs(from, limit)
    }

    fn keys(&self) -> Result<LogKeys, StoreError> {
        self.watch.0.check()?;
        self.inner.keys()
    }

    fn root_of(&self, size: u64) -> Result<Option<Digest>, StoreError> {
        self.watch.0.check()?;
        self.inner.root_of(size)
    }

    fn extends(&self, size: u64, root: Digest) -> Result<bool, StoreError> {
        self.watch.0.check()?;
        self.inner.extends(size, root)
    }

    fn covers_log(&self) -> bool {
        self.inner.covers_log()
    }

    fn proven(&self, position: u64) -> Result<Option<Record>, StoreError> {
        self.watch.0.check()?;
        let record = self.inner.proven(position)?;
        let _ = self.watch.0.add(1);
        Ok(record)
    }

    fn proven_at(&self, run: &RunName, tick: u64) -> Result<Option<Record>, StoreError> {
        self.watch.0.check()?;
        let record = self.inner.proven_at(run, tick)?;
        let _ = self.watch.0.add(1);
        Ok(record)
    }
}

impl KeepDerived for Watched {
    fn key(&self) -> Option<&Arc<SigningKey>> {
        self.inner.key()
    }

    fn keep(&self, slot: Slot<'_>, bytes: &[u8]) -> Result<(), StoreError> {
        self.inner.keep(slot, bytes)
    }

    fn kept(&self, slot: Slot<'_>) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.watch.0.check()?;
        self.inner.kept(slot)
    }
}

impl AppendLog for Watched {
    fn append(&mut self, _: &[Record]) -> Result<Range<u64>, StoreError> {
        reading_only()
    }

    fn submit(&mut self, _: &[Record]) -> Result<Ticket, StoreError> {
        reading_only()
    }

    fn wait(&mut self, _: Ticket) -> Result<(), StoreError> {
        reading_only()
    }

    fn set_writer(&mut self, _: LogWriter) {}

    fn untagged(&self) -> Result<Option<Vec<Range<u64>>>, StoreError> {
        self.watch.0.check()?;
        self.inner.untagged()
    }

    fn group_of(&self, position: u64) -> Result<Option<GroupEnd>, StoreError> {
        self.watch.0.check()?;
        self.inner.group_of(position)
    }

    fn adopt(&mut self, _: TreeHead) -> Result<(), StoreError> {
        reading_only()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

impl EraseValues for Watched {
    fn erase(&mut self, _: &Record, _: &[(u64, Vec<Pointer>)]) -> Result<u64, StoreError> {
        reading_only()
    }
}

impl KeepSecrets for Watched {
    fn put_secrets(&mut self, _: &[(Digest, Vec<u8>)], _: Given<'_>) -> Result<bool, StoreError> {
        reading_only()
    }

    fn get_secret(&self, name: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.watch.0.check()?;
        self.inner.get_secret(name)
    }

    fn remove_secrets(&mut self, _: &[Digest], _: Given<'_>) -> Result<bool, StoreError> {
        reading_only()
    }

    fn secrets(&self) -> Result<Vec<Digest>, StoreError> {
        self.watch.0.check()?;
        self.inner.secrets()
    }
}

impl SignLog for Watched {
    fn sign_after(
        &mut self,
        _: &SigningKey,
        _: &mut LastRecord<'_>,
        _: &mut MaySign<'_>,
    ) -> Result<Option<SignedNote>, StoreError> {
        reading_only()
    }

    fn checkpoint(&self) -> Result<Option<SignedNote>, StoreError> {
        self.watch.0.check()?;
        self.inner.checkpoint()
    }
}
