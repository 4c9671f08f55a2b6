//! One handle of a store for several threads of a process, which share the waits for the disk.
//!
//! A sync costs the same however much it covers, and passing a lock from thread to thread costs more than appending a
//! record. So of the threads that commit, one at a time appends for all that wait, and syncs; meanwhile the next one
//! appends for those that came since, and they share the next sync.
//!
//! Never decides in place of its store: a group that came too late gets the error of the store, and nothing is tried
//! again. A thread that only reads opens a handle of its own, which never waits.
//!
//! Rule: no lock is held during a wait for the disk, and none while a closure of the caller runs, which may call this
//! handle again.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::{Arc, PoisonError, TryLockError, Weak};

use dendrer_object::keys::LogKeys;
use dendrer_object::note::{SignedNote, SigningKey};
use dendrer_object::record::{Entry, Header, Kind};
use dendrer_object::{Digest, Pointer, Record, RunName};

use super::threads::{
    Condvar, Mutex, MutexGuard, Receiver, RwLock, RwLockReadGuard, RwLockWriteGuard, SyncSender,
    sync_channel, thread,
};
use crate::error::StoreError;
use crate::store::{
    AppendLog, EraseValues, Given, GroupEnd, Head, KeepDerived, KeepSecrets, LastRecord, LogWriter, MaySign,
    NewSecrets, ReadLog, RunSummary, SignLog, Skimmed, Slot, Store, StoreInfo, Ticket, TilePlace, TreeHead,
    WaitForSync,
};

/// How many records or entries are taken from the store at once by a reader of this handle.
const BATCH: u64 = 64;

/// A store that the threads of a process use together. Clones are the same store.
#[derive(Debug, Clone)]
pub struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    info: StoreInfo,
    key: Option<Arc<SigningKey>>,
    store: RwLock<Box<dyn Store>>,
    line: Line,
    /// The newest finished sync that the store was not told of yet. The next change of the store reports it, so that
    /// no thread waits for another one's append only to report it.
    synced: Mutex<Option<Ticket>>,
    /// Snapshots and tiles that came while another thread had the store: the next append stores them, so that no reader waits.
    snapshots: Mutex<Vec<Waiting>>,
}

/// A run, a place in it, and the bytes that are kept for them.
type Waiting = (RunName, WaitingPlace, Vec<u8>);

/// The place of bytes that wait.
#[derive(Debug, Clone, Copy)]
enum WaitingPlace {
    /// The tick of a snapshot.
    Snapshot(u64),
    /// A tile, and the size of the log that it was made of.
    Tile(TilePlace, Option<u64>),
}

impl WaitingPlace {
    fn slot(self, run: &RunName) -> Slot<'_> {
        match self {
            WaitingPlace::Snapshot(tick) => Slot::Snapshot(run, tick),
            WaitingPlace::Tile(place, seen) => Slot::Tile { run, place, seen },
        }
    }
}

/// Bytes of snapshots that wait, at most, unless one is larger: one that is not kept costs only time.
const SNAPSHOT_BYTES_MAX: usize = 16 << 20;

/// The groups that wait for a thread that appends them.
#[derive(Debug, Default)]
struct Queue {
    groups: Vec<Queued>,
    /// Groups that were submitted and not waited for yet, by the numbers of their tickets.
    submitted: HashMap<u64, Receiver<Told>>,
    /// The number of the newest ticket.
    newest: u64,
    /// Whether some thread appends, or was told to.
    is_led: bool,
    /// Number of threads that append groups without a waiting caller, started on first use, and how many of them are
    /// idle.
    threads: usize,
    idle: usize,
    /// The process that they are in: a child made by `fork()` has none of them.
    process: u32,
    /// Whether the store is gone, and they with it.
    is_closed: bool,
}

/// One that appends while the other syncs, where several groups wait for that. One group alone is appended and synced
/// sooner by a thread that has what it needs in its caches.
const THREADS: usize = 2;

/// The queue, with what its threads sleep on. Those end when it is dropped.
#[derive(Debug, Default)]
struct Line(Arc<(Mutex<Queue>, Condvar)>);

impl Queue {
    /// Puts a group at the end of the queue.
    fn push(
        &mut self,
        records: Vec<Record>,
        heads: Heads,
        secrets: NewSecrets,
        is_waited_for: bool,
    ) -> Receiver<Told> {
        let (told, is_told) = sync_channel(2);
        self.groups.push(Queued { records, heads, secrets, told, is_waited_for });
        is_told
    }
}

impl Line {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut queue = self.queue();
        queue.is_closed = true;
        // Their tickets cannot be waited for any more: no handle is left.
        queue.groups.clear();
        drop(queue);
        self.0.1.notify_all();
    }
}

/// Appends groups without a waiting caller, until the store is gone.
fn append_in_background(line: &(Mutex<Queue>, Condvar), store: &Weak<Inner>) {
    let (queue, changed) = line;
    let mut waits = queue.lock().unwrap_or_else(PoisonError::into_inner);
    while !waits.is_closed {
        if waits.is_led || waits.groups.is_empty() {
            waits.idle += 1;
            waits = changed.wait(waits).unwrap_or_else(PoisonError::into_inner);
            waits.idle -= 1;
            continue;
        }
        waits.is_led = true;
        drop(waits);
        // Those whose groups they are have the store, too.
        let Some(inner) = store.upgrade() else { return };
        Shared(inner).lead_for_others();
        waits = queue.lock().unwrap_or_else(PoisonError::into_inner);
    }
}

/// Heads of other runs that a group was decided on.
type Heads = Vec<(RunName, Head)>;

/// A group to be committed, until it is appended.
#[derive(Debug)]
struct Queued {
    records: Vec<Record>,
    heads: Heads,
    secrets: NewSecrets,
    told: SyncSender<Told>,
    /// Whether a thread waits for it from the beginning, and may be told to append for all.
    is_waited_for: bool,
}

/// A message to the thread that waits for a group: at most two for each group.
#[derive(Debug)]
enum Told {
    /// The thread is the next one to append for all.
    Leads,
    Done(Result<Range<u64>, StoreError>),
}

/// A group with what became of it so far.
type Appended = (SyncSender<Told>, Result<Range<u64>, StoreError>);

/// The sync of what was appended.
type Planned = Result<(Ticket, Option<Arc<dyn WaitForSync>>), StoreError>;

fn tell(done: Vec<Appended>) {
    // Ignored: the ticket was given up.
    done.into_iter().for_each(|(told, outcome)| drop(told.send(Told::Done(outcome))));
}

/// Waits until a group is done; meanwhile runs `lead` if the thread is told to.
fn wait(told: &Receiver<Told>, lead: &dyn Fn()) -> Result<Range<u64>, StoreError> {
    loop {
        match told.recv() {
            Ok(Told::Leads) => lead(),
            Ok(Told::Done(outcome)) => return outcome,
            // The thread that appended it panicked.
            Err(_) => return Err(StoreError::SyncFailed { why: "a panic".into() }),
        }
    }
}

impl Shared {
    /// Shares a handle.
    pub fn new(store: Box<dyn Store>) -> Shared {
        let (info, key) = (store.info().clone(), store.key().cloned());
        let store = RwLock::new(store);
        let (line, synced, snapshots) = (Line::default(), Mutex::default(), Mutex::default());
        Shared(Arc::new(Inner { info, key, store, line, synced, snapshots }))
    }

    /// Gives the handle back to its last user. After a group that was submitted and not waited for, a thread of this handle may
    /// be the last.
    pub fn into_inner(self) -> Option<Box<dyn Store>> {
        // Dropped: the store reports its own failure at its next use.
        drop(self.store_mut());
        self.put_waiting_snapshots();
        Arc::into_inner(self.0).map(|inner| inner.store.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Hands a group to the threads of this handle, which append it and make it durable meanwhile. Errors come out of
    /// [`AppendLog::wait`].
    pub fn submit_group(&self, records: &[Record]) -> Ticket {
        self.submit_group_after(records, Vec::new())
    }

    /// As [`Shared::submit_group`], for a group that was decided on the heads of other runs: if one of them has moved by the time it
    /// is appended, nothing of it is written.
    pub fn submit_group_after(&self, records: &[Record], heads: Vec<(RunName, Head)>) -> Ticket {
        let records = records.to_vec();
        let mut queue = self.queue();
        queue.newest += 1;
        let (number, told) = (queue.newest, queue.push(records, heads, NewSecrets::default(), false));
        queue.submitted.insert(number, told);
        let is_led = queue.is_led;
        drop(queue);
        if !is_led {
            self.lead_in_background();
        }
        Ticket { number, size: 0 }
    }

    /// As [`AppendLog::commit`], for a group that was decided on the heads of other runs: if one of them has moved, nothing of it is
    /// written. Bytes of the vault go with it as in [`KeepSecrets::append_with`].
    pub fn commit_after(
        &self,
        records: &[Record],
        heads: Vec<(RunName, Head)>,
        secrets: NewSecrets,
    ) -> Result<Range<u64>, StoreError> {
        let records = records.to_vec();
        let mut queue = self.queue();
        let told = queue.push(records, heads, secrets, true);
        let is_led = std::mem::replace(&mut queue.is_led, true);
        drop(queue);
        if !is_led {
            self.lead();
        }
        wait(&told, &|| self.lead())
    }

    // A caller's panic in between leaves the store as a failed call would: it has no state of half a call.
    fn store(&self) -> RwLockReadGuard<'_, Box<dyn Store>> {
        self.0.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the store unless another thread changes it at this moment.
    fn store_if_free(&self) -> Option<RwLockReadGuard<'_, Box<dyn Store>>> {
        match self.0.store.try_read() {
            Ok(store) => Some(store),
            Err(TryLockError::Poisoned(store)) => Some(store.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn store_mut(&self) -> RwLockWriteGuard<'_, Box<dyn Store>> {
        let mut store = self.0.store.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(ticket) = self.synced().take() {
            // Ignored: the sync succeeded, and the store reports other trouble at its next use.
            let _ = store.wait(ticket);
        }
        store
    }

    fn synced(&self) -> MutexGuard<'_, Option<Ticket>> {
        self.0.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshots(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.0.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a snapshot or a tile until the store is free.
    fn have_wait(&self, snapshot: Waiting) {
        let mut waiting = self.snapshots();
        let size =
            waiting.iter().map(|(.., bytes)| bytes.len()).fold(snapshot.2.len(), usize::saturating_add);
        if waiting.is_empty() || size <= SNAPSHOT_BYTES_MAX {
            waiting.push(snapshot);
        }
    }

    /// Stores the queued snapshots, unless another thread has the store again: then that thread does.
    fn put_waiting_snapshots(&self) {
        let Some(store) = self.store_if_free() else { return };
        let waiting = std::mem::take(&mut *self.snapshots());
        for (run, place, bytes) in waiting {
            let _ = store.keep(place.slot(&run), &bytes);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.line.queue()
    }

    /// Appends every group that waits, lets the next thread go on with those that come meanwhile, and tells the threads
    /// whose groups they are once these are durable.
    fn lead(&self) {
        let (appended, ticket) = self.append_all();
        tell(self.finish_all(appended, ticket));
        self.put_waiting_snapshots();
    }

    /// As [`Shared::lead`], for groups without a waiting caller.
    fn lead_for_others(self) {
        let (appended, ticket) = self.append_all();
        self.put_waiting_snapshots();
        let done = self.finish_all(appended, ticket);
        // After that, the thread of a group may be the last user of the store: this one must not use it any more.
        drop(self);
        tell(done);
    }

    /// Appends every group that waits.
    fn append_all(&self) -> (Vec<Appended>, Option<Planned>) {
        let groups = std::mem::take(&mut self.queue().groups);
        let (appended, ticket) = {
            let mut store = self.store_mut();
            let append = |Queued { records, heads, secrets, told, .. }| {
                let has_secrets = !(secrets.items.is_empty() && secrets.there.is_empty());
                let appended = match has_secrets {
                    true => store.append_with(&records, &heads, &secrets),
                    false => store.append_after(&records, &heads),
                };
                (told, appended)
            };
            let appended: Vec<Appended> = groups.into_iter().map(append).collect();
            // Nothing was written of groups that the store refused, and nothing is waited for.
            let is_any = appended.iter().any(|(_, outcome)| outcome.is_ok());
            let ticket = is_any.then(|| store.submit(&[]).map(|ticket| (ticket, store.waiter())));
            (appended, ticket)
        };
        self.pass_on();
        (appended, ticket)
    }

    /// Makes the longest-waiting thread the one that appends. If no caller waits for a queued group, a thread of this
    /// handle appends it.
    fn pass_on(&self) {
        let mut queue = self.queue();
        let next = queue.groups.iter().find(|group| group.is_waited_for);
        queue.is_led = next.is_some_and(|group| group.told.send(Told::Leads).is_ok());
        if !queue.is_led && !queue.groups.is_empty() {
            drop(queue);
            self.lead_in_background();
        }
    }

    /// Makes durable what was appended.
    fn finish_all(&self, appended: Vec<Appended>, ticket: Option<Planned>) -> Vec<Appended> {
        let synced = ticket.map_or(Ok(()), |planned| {
            let (ticket, waiter) = planned?;
            self.finish(ticket, waiter.as_deref())
        });
        let with_sync = |(told, outcome): Appended| match &synced {
            Err(error) if outcome.is_ok() => (told, Err(error.as_failed_sync())),
            _ => (told, outcome),
        };
        appended.into_iter().map(with_sync).collect()
    }

    /// Wakes a thread that appends what waits, or makes one, unless it is as well to let one that is busy go on with it.
    fn lead_in_background(&self) {
        let mut queue = self.queue();
        let process = std::process::id();
        if queue.process != process {
            (queue.process, queue.threads, queue.idle) = (process, 0, 0);
        }
        if queue.threads > queue.idle && queue.groups.len() < 2 {
            return;
        }
        if queue.idle == 0 && queue.threads < THREADS {
            let (line, store) = (Arc::clone(&self.0.line.0), Arc::downgrade(&self.0));
            let work = move || append_in_background(&line, &store);
            let thread = thread::Builder::new().name("dendrer-append".into()).spawn(work);
            queue.threads += usize::from(thread.is_ok());
        }
        if queue.threads > 0 {
            self.0.line.0.1.notify_one();
            return;
        }
        // Without a thread it is done here and now, unless another thread is doing it.
        let is_led = std::mem::replace(&mut queue.is_led, true);
        drop(queue);
        if !is_led {
            self.lead();
        }
    }

    fn finish(&self, ticket: Ticket, waiter: Option<&dyn WaitForSync>) -> Result<(), StoreError> {
        let is_synced = waiter.is_some_and(|waiter| waiter.wait_for_sync(&ticket).is_ok());
        if !is_synced {
            return self.store_mut().wait(ticket);
        }
        let mut synced = self.synced();
        if synced.as_ref().is_none_or(|before| before.size <= ticket.size) {
            *synced = Some(ticket);
        }
        Ok(())
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
            // Items that were read before a failure are handed over, as by the store itself.
            read?;
        }
        Ok(())
    }
}

impl ReadLog for Shared {
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

    fn keys(&self) -> Result<LogKeys, StoreError> {
        self.store().keys()
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

    fn skim(
        &self,
        range: Range<u64>,
        wanted: &dyn Fn(&Header, &str) -> bool,
        f: &mut dyn FnMut(u64, Skimmed<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        // `f` does not use the store, so it cannot wait for a writer that waits for this lock.
        self.store().skim(range, wanted, f)
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

    fn beside_runs(&self, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        self.store().beside_runs(from, limit)
    }

    fn covers_log(&self) -> bool {
        self.store().covers_log()
    }

    fn root_of(&self, size: u64) -> Result<Option<Digest>, StoreError> {
        self.store().root_of(size)
    }

    fn extends(&self, size: u64, root: Digest) -> Result<bool, StoreError> {
        self.store().extends(size, root)
    }

    fn proven(&self, position: u64) -> Result<Option<Record>, StoreError> {
        self.store().proven(position)
    }
}

impl KeepDerived for Shared {
    fn key(&self) -> Option<&Arc<SigningKey>> {
        self.0.key.as_ref()
    }

    fn keep(&self, slot: Slot<'_>, bytes: &[u8]) -> Result<(), StoreError> {
        let place = match slot {
            Slot::Snapshot(_, tick) => WaitingPlace::Snapshot(tick),
            Slot::Tile { place, seen, .. } => WaitingPlace::Tile(place, seen),
            Slot::Verdicts(..) => return self.store().keep(slot, bytes),
        };
        if let Some(store) = self.store_if_free() {
            return store.keep(slot, bytes);
        }
        self.have_wait((slot.run().clone(), place, bytes.to_vec()));
        Ok(())
    }

    fn kept(&self, slot: Slot<'_>) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.store().kept(slot)
    }
}

impl AppendLog for Shared {
    fn append(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError> {
        let appended = self.store_mut().append(records);
        self.put_waiting_snapshots();
        appended
    }

    fn append_after(
        &mut self,
        records: &[Record],
        heads: &[(RunName, Head)],
    ) -> Result<Range<u64>, StoreError> {
        let appended = self.store_mut().append_after(records, heads);
        self.put_waiting_snapshots();
        appended
    }

    fn commit(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError> {
        self.commit_after(records, Vec::new(), NewSecrets::default())
    }

    fn submit(&mut self, records: &[Record]) -> Result<Ticket, StoreError> {
        Ok(self.submit_group(records))
    }

    fn wait(&mut self, ticket: Ticket) -> Result<(), StoreError> {
        let told = self.queue().submitted.remove(&ticket.number);
        let unknown = "a ticket is waited for once, by the store that gave it out";
        wait(&told.ok_or(StoreError::Unsupported(unknown))?, &|| {}).map(drop)
    }

    fn set_writer(&mut self, writer: LogWriter) {
        self.store_mut().set_writer(writer);
    }

    fn untagged(&self) -> Result<Option<Vec<Range<u64>>>, StoreError> {
        self.store().untagged()
    }

    fn group_of(&self, position: u64) -> Result<Option<GroupEnd>, StoreError> {
        self.store().group_of(position)
    }

    fn adopt(&mut self, to: TreeHead) -> Result<(), StoreError> {
        self.store_mut().adopt(to)
    }

    fn late_index(&mut self) -> Option<u64> {
        self.store_mut().late_index()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.into_inner().map_or(Ok(()), AppendLog::close)
    }
}

impl EraseValues for Shared {
    fn erase(&mut self, record: &Record, targets: &[(u64, Vec<Pointer>)]) -> Result<u64, StoreError> {
        let mut store = self.store_mut();
        let erased = store.erase(record, targets);
        // They may hold what was erased.
        self.snapshots().clear();
        erased
    }
}

impl KeepSecrets for Shared {
    fn put_secrets(&mut self, secrets: &[(Digest, Vec<u8>)], given: Given<'_>) -> Result<bool, StoreError> {
        self.store_mut().put_secrets(secrets, given)
    }

    fn append_with(
        &mut self,
        records: &[Record],
        heads: &[(RunName, Head)],
        secrets: &NewSecrets,
    ) -> Result<Range<u64>, StoreError> {
        let appended = self.store_mut().append_with(records, heads, secrets);
        self.put_waiting_snapshots();
        appended
    }

    fn get_secret(&self, name: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.store().get_secret(name)
    }

    fn remove_secrets(&mut self, names: &[Digest], given: Given<'_>) -> Result<bool, StoreError> {
        self.store_mut().remove_secrets(names, given)
    }

    fn secrets(&self) -> Result<Vec<Digest>, StoreError> {
        self.store().secrets()
    }
}

impl SignLog for Shared {
    fn sign_after(
        &mut self,
        key: &SigningKey,
        last: &mut LastRecord<'_>,
        may: &mut MaySign<'_>,
    ) -> Result<Option<SignedNote>, StoreError> {
        self.store_mut().sign_after(key, last, may)
    }

    fn checkpoint(&self) -> Result<Option<SignedNote>, StoreError> {
        self.store().checkpoint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::memory::Memory;

    #[test]
    fn whoever_keeps_a_snapshot_waits_for_nobody_who_appends() {
        let mut scribe = crate::conformance::Scribe::default();
        let mut store = Shared::new(Box::new(Memory::new(crate::conformance::info())));
        store.commit(&[scribe.begin("r")]).unwrap();
        let run: RunName = "r".parse().unwrap();
        let keep = |tick: u64| {
            let appends = store.store_mut();
            let (kept, is_kept) = channel();
            let (other, run) = (store.clone(), run.clone());
            std::thread::spawn(move || kept.send(other.keep(Slot::Snapshot(&run, tick), b"bytes")));
            is_kept.recv_timeout(std::time::Duration::from_secs(20)).expect("it does not wait").unwrap();
            drop(appends);
        };
        keep(1);
        assert_eq!(store.kept(Slot::Snapshot(&run, 9)).unwrap(), None);
        let mut other = store.clone();
        other.commit(&[scribe.step("r")]).unwrap();
        assert_eq!(store.kept(Slot::Snapshot(&run, 9)).unwrap(), Some((1, b"bytes".to_vec())));
        for tick in [2, 3] {
            keep(tick);
            let step = [scribe.step("r")];
            if tick == 2 {
                other.append(&step).unwrap();
            } else {
                let submission = other.submit(&step).unwrap();
                other.wait(submission).unwrap();
            }
            assert_eq!(store.kept(Slot::Snapshot(&run, 9)).unwrap(), Some((tick, b"bytes".to_vec())));
        }
        // An erasure takes along what waits.
        keep(4);
        let why = dendrer_object::Value::record([("reason", "asked to".into())]);
        other.erase(&scribe.beside(Kind::Erase, "r", why), &[]).unwrap();
        // The last group is appended even if no other group follows.
        keep(5);
        drop(other);
        let inner = loop {
            // The thread that kept it has a clone until it ends.
            if Arc::strong_count(&store.0) == 1 {
                break store.into_inner().unwrap();
            }
            std::thread::yield_now();
        };
        assert_eq!(inner.kept(Slot::Snapshot(&run, 4)).unwrap(), None);
        assert_eq!(inner.kept(Slot::Snapshot(&run, 9)).unwrap(), Some((5, b"bytes".to_vec())));
    }

    /// After `fork()` the appending thread is in the other process, and its queue is read by no thread.
    #[test]
    fn a_process_waits_for_no_thread_of_another() {
        let info = crate::conformance::info();
        let record = crate::conformance::Scribe::default().begin("r");
        let mut store = Shared::new(Box::new(Memory::new(info)));
        {
            let mut queue = store.queue();
            (queue.process, queue.threads) = (std::process::id() + 1, THREADS);
        }
        let submission = store.submit(&[record]).unwrap();
        store.wait(submission).unwrap();
        assert_eq!(store.tree().size, 1);
    }

    #[test]
    fn a_ticket_is_waited_for_once_by_the_store_that_gave_it_out() {
        let record = crate::conformance::Scribe::default().begin("r");
        let memory = || Shared::new(Box::new(Memory::new(crate::conformance::info())));
        let (mut store, mut other) = (memory(), memory());
        let ticket = store.submit(&[record]).unwrap();
        let again = Ticket { ..ticket };
        assert!(matches!(other.wait(Ticket { ..ticket }), Err(StoreError::Unsupported(_))));
        store.wait(ticket).unwrap();
        assert!(matches!(store.wait(again), Err(StoreError::Unsupported(_))));
    }
}
