//! One handle of a store for several threads of a process, which share the waits for the disk.
//!
//! A sync costs what the disk takes, however much it covers. So whoever waits for one while another is under way waits
//! for the next, together with everybody else who came meanwhile: sixty-four threads that each commit one record pay for
//! two syncs, not for sixty-four.
//!
//! Never decides anything that the store behind it decides: a group that came too late is told so here as there, and
//! nothing is tried again. A thread that only reads opens a handle of its own, which waits for nobody.
//!
//! The invariant a newcomer would break: no lock is held while the disk is waited for, and none while a caller's closure
//! runs, which may come back for more.

use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use dendrer_object::note::{SignedNote, SigningKey};
use dendrer_object::record::{Entry, Kind};
use dendrer_object::{Digest, Pointer, Record, RunName};

use crate::contract::{RunSummary, Store, StoreInfo, SyncTicket, TreeHead};
use crate::error::StoreError;

/// How many records or entries are taken from the store at once while somebody reads through it.
const BATCH: u64 = 64;

/// A store that the threads of a process use together. Clones are the same store.
#[derive(Debug, Clone)]
pub struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    info: StoreInfo,
    store: RwLock<Box<dyn Store>>,
    syncs: Mutex<Syncs>,
}

/// Where the waits for the disk stand.
#[derive(Debug, Default)]
struct Syncs {
    durable: u64,
    /// The size that somebody waits for or will.
    wanted: u64,
    under_way: Option<SyncTicket>,
}

impl Shared {
    /// Shares a handle.
    pub fn new(store: Box<dyn Store>) -> Shared {
        let info = store.info().clone();
        Shared(Arc::new(Inner { info, store: RwLock::new(store), syncs: Mutex::default() }))
    }

    /// Gives the handle back to the last one who has it.
    pub fn into_inner(self) -> Option<Box<dyn Store>> {
        Arc::into_inner(self.0).map(|inner| inner.store.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    // A caller's panic in between leaves the store as a failed call would: it has no state of half a call.
    fn store(&self) -> RwLockReadGuard<'_, Box<dyn Store>> {
        self.0.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn store_mut(&self) -> RwLockWriteGuard<'_, Box<dyn Store>> {
        self.0.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn syncs(&self) -> MutexGuard<'_, Syncs> {
        self.0.syncs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a sync of everything that was appended, unless one is under way; returns the one that is.
    fn sync_under_way(&self, syncs: &mut Syncs) -> Result<SyncTicket, StoreError> {
        if syncs.under_way.is_none() {
            syncs.under_way = Some(self.store_mut().start_sync()?);
        }
        Ok(syncs.under_way.as_ref().expect("begun above").share())
    }

    /// Hands over the items of a range that `read` collects batch by batch.
    fn in_batches<T>(
        &self,
        range: Range<u64>,
        read: impl Fn(&dyn Store, Range<u64>, &mut Vec<(u64, T)>) -> Result<(), StoreError>,
        f: &mut dyn FnMut(u64, T) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let end = range.end.min(self.tree().size);
        let mut next = range.start;
        while next < end {
            let batch = next..end.min(next + BATCH);
            next = batch.end;
            let mut items = Vec::new();
            let read = read(&**self.store(), batch, &mut items);
            for (position, item) in items {
                if f(position, item).is_break() {
                    return Ok(());
                }
            }
            // What was read before it failed was handed over, as the store itself would have done.
            read?;
        }
        Ok(())
    }
}

impl Store for Shared {
    fn info(&self) -> &StoreInfo {
        &self.0.info
    }

    fn tree(&self) -> TreeHead {
        self.store().tree()
    }

    fn trouble(&self) -> Option<Arc<StoreError>> {
        self.store().trouble()
    }

    fn refresh(&mut self) -> Result<u64, StoreError> {
        self.store_mut().refresh()
    }

    fn get(&self, position: u64) -> Result<Option<Record>, StoreError> {
        self.store().get(position)
    }

    fn scan(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let read = |store: &dyn Store, batch, items: &mut Vec<_>| {
            store.scan(batch, &mut |position, record| {
                items.push((position, record));
                ControlFlow::Continue(())
            })
        };
        self.in_batches(range, read, f)
    }

    fn entries(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let read = |store: &dyn Store, batch, items: &mut Vec<_>| {
            store.entries(batch, &mut |position, entry| {
                items.push((position, entry));
                ControlFlow::Continue(())
            })
        };
        self.in_batches(range, read, f)
    }

    fn find(&self, id: &Digest) -> Result<Option<u64>, StoreError> {
        self.store().find(id)
    }

    fn find_prefix(&self, hex: &str, limit: usize) -> Result<Vec<(Digest, u64)>, StoreError> {
        self.store().find_prefix(hex, limit)
    }

    fn at(&self, run: &RunName, tick: u64) -> Result<Option<u64>, StoreError> {
        self.store().at(run, tick)
    }

    fn run(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        self.store().run(run)
    }

    fn runs(&self, from: u64, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.store().runs(from, limit)
    }

    fn positions(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        self.store().positions(run, ticks, limit)
    }

    fn beside(&self, run: &RunName, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        self.store().beside(run, from, limit)
    }

    fn writes(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        place: &Pointer,
        limit: usize,
    ) -> Result<Vec<(u64, Pointer)>, StoreError> {
        self.store().writes(run, ticks, place, limit)
    }

    fn knows_all_writes(&self) -> Result<bool, StoreError> {
        self.store().knows_all_writes()
    }

    fn beside_runs(&self, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        self.store().beside_runs(from, limit)
    }

    fn put_snapshot(&self, run: &RunName, tick: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.store().put_snapshot(run, tick, bytes)
    }

    fn snapshot(&self, run: &RunName, tick: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.store().snapshot(run, tick)
    }

    fn put_verdicts(&self, run: &RunName, question: &Digest, statement: &[u8]) -> Result<(), StoreError> {
        self.store().put_verdicts(run, question, statement)
    }

    fn verdicts(&self, run: &RunName, question: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.store().verdicts(run, question)
    }

    fn append(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError> {
        self.store_mut().append(records)
    }

    fn start_sync(&mut self) -> Result<SyncTicket, StoreError> {
        let size = self.tree().size;
        let mut syncs = self.syncs();
        syncs.wanted = syncs.wanted.max(size);
        let _ = self.sync_under_way(&mut syncs)?;
        // The sync under way may have begun before the last group; whoever settles looks at the size.
        Ok(SyncTicket::done(size))
    }

    fn finish_sync(&mut self, ticket: SyncTicket) -> Result<u64, StoreError> {
        loop {
            let under_way = {
                let mut syncs = self.syncs();
                if syncs.durable >= ticket.size {
                    return Ok(syncs.durable);
                }
                self.sync_under_way(&mut syncs)?
            };
            let _ = under_way.outcome.wait();
            let mut syncs = self.syncs();
            // The first of those who waited tells the store, for all of them.
            let mine = |now: &SyncTicket| Arc::ptr_eq(&now.outcome, &under_way.outcome);
            if syncs.under_way.as_ref().is_some_and(mine) {
                syncs.under_way = None;
                syncs.durable = self.store_mut().finish_sync(under_way)?;
                if syncs.wanted > syncs.durable {
                    // What came meanwhile need not wait until somebody asks. If this fails, whoever asks is told.
                    let _ = self.sync_under_way(&mut syncs);
                }
            }
        }
    }

    fn erase(&mut self, record: &Record, targets: &[(u64, Vec<Pointer>)]) -> Result<u64, StoreError> {
        self.store_mut().erase(record, targets)
    }

    fn sign_checkpoint(&mut self, key: &SigningKey) -> Result<SignedNote, StoreError> {
        self.store_mut().sign_checkpoint(key)
    }

    fn checkpoint(&self) -> Result<Option<SignedNote>, StoreError> {
        self.store().checkpoint()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.into_inner().map_or(Ok(()), Store::close)
    }
}
