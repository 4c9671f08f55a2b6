//! A store, or a file, that counts what is read from it, so that long reading shows how far it has come.

use std::io::{self, Read};
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dendrer::store::{
    AppendLog, EraseValues, KeepDerived, ReadLog, RunSummary, SignLog, Skimmed, Slot, Store, StoreError,
    StoreInfo, Ticket, TreeHead,
};
use dendrer_object::note::{SignedNote, SigningKey};
use dendrer_object::record::{Entry, Header, Kind};
use dendrer_object::{Digest, Pointer, Record, RunName};

/// Another store, for reading alone. Every record that is handed over counts.
#[derive(Debug)]
pub(crate) struct Counted<'s> {
    inner: &'s dyn Store,
    count: Arc<AtomicU64>,
}

impl<'s> Counted<'s> {
    /// Counts what is read from `inner` into `count`.
    pub(crate) fn new(inner: &'s dyn Store, count: Arc<AtomicU64>) -> Counted<'s> {
        Counted { inner, count }
    }

    fn one(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// A file, or what else is read from its beginning to its end. Every byte counts.
pub(crate) struct CountedRead<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R> CountedRead<R> {
    /// Counts what is read from `inner` into `count`.
    pub(crate) fn new(inner: R, count: Arc<AtomicU64>) -> CountedRead<R> {
        CountedRead { inner, count }
    }
}

impl<R: Read> Read for CountedRead<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Nothing that counts reading is written to.
fn reading_only<T>() -> Result<T, StoreError> {
    Err(StoreError::ReadOnly { why: "this handle counts what is read".to_owned() })
}

impl ReadLog for Counted<'_> {
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
        self.one();
        self.inner.get(position)
    }

    fn scan(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.inner.scan(range, &mut |position, record| {
            self.one();
            f(position, record)
        })
    }

    fn entries(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.inner.entries(range, f)
    }

    fn skim(
        &self,
        range: Range<u64>,
        wanted: &dyn Fn(&Header, &str) -> bool,
        f: &mut dyn FnMut(u64, Skimmed<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        self.inner.skim(range, wanted, &mut |position, skimmed| {
            self.one();
            f(position, skimmed)
        })
    }

    fn find(&self, id: &Digest) -> Result<Option<u64>, StoreError> {
        self.inner.find(id)
    }

    fn find_prefix(&self, hex: &str, limit: usize) -> Result<Vec<(Digest, u64)>, StoreError> {
        self.inner.find_prefix(hex, limit)
    }

    fn at(&self, run: &RunName, tick: u64) -> Result<Option<u64>, StoreError> {
        self.inner.at(run, tick)
    }

    fn run(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        self.inner.run(run)
    }

    fn runs(&self, from: u64, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.inner.runs(from, limit)
    }

    fn positions(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        self.inner.positions(run, ticks, limit)
    }

    fn beside(&self, run: &RunName, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        self.inner.beside(run, from, limit)
    }

    fn beside_runs(&self, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        self.inner.beside_runs(from, limit)
    }

    fn covers_log(&self) -> bool {
        self.inner.covers_log()
    }

    fn root_of(&self, size: u64) -> Result<Option<Digest>, StoreError> {
        self.inner.root_of(size)
    }

    fn extends(&self, size: u64, root: Digest) -> Result<bool, StoreError> {
        self.inner.extends(size, root)
    }

    fn proven(&self, position: u64) -> Result<Option<Record>, StoreError> {
        self.one();
        self.inner.proven(position)
    }
}

impl KeepDerived for Counted<'_> {
    fn key(&self) -> Option<&Arc<SigningKey>> {
        self.inner.key()
    }

    fn keep(&self, slot: Slot<'_>, bytes: &[u8]) -> Result<(), StoreError> {
        self.inner.keep(slot, bytes)
    }

    fn kept(&self, slot: Slot<'_>) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.inner.kept(slot)
    }
}

impl AppendLog for Counted<'_> {
    fn append(&mut self, _: &[Record]) -> Result<Range<u64>, StoreError> {
        reading_only()
    }

    fn submit(&mut self, _: &[Record]) -> Result<Ticket, StoreError> {
        reading_only()
    }

    fn wait(&mut self, _: Ticket) -> Result<(), StoreError> {
        reading_only()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

impl EraseValues for Counted<'_> {
    fn erase(&mut self, _: &Record, _: &[(u64, Vec<Pointer>)]) -> Result<u64, StoreError> {
        reading_only()
    }
}

impl SignLog for Counted<'_> {
    fn sign_checkpoint(&mut self, _: &SigningKey) -> Result<SignedNote, StoreError> {
        reading_only()
    }

    fn checkpoint(&self) -> Result<Option<SignedNote>, StoreError> {
        self.inner.checkpoint()
    }
}
