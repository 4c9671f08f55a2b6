//! The embedded store: segment files that are the log, and what is derived from them.
//!
//! Several processes may append in turns; readers take no lock. `docs/format-disk.md` describes every byte.
//!
//! Never rewrites a header, never moves an offset, never cuts anything but the unfinished end of the log, and never
//! repairs: damage makes a handle read-only and is reported.
//!
//! Rule: an append is acknowledged only after a sync that succeeded, and after a failed sync nothing is acknowledged
//! any more.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dendrer_object::keys::LogKeys;
use dendrer_object::merkle::Peaks;
use dendrer_object::note::{Checkpoint, SignedNote, SigningKey};
use dendrer_object::record::{Entry, Header, Kind};
use dendrer_object::{Digest, Record, RunName};

use crate::descriptor;
use crate::disk::{self, Disk, DiskFile, Open, Real};
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::frame::{self, At};
use crate::group::sync::Durable;
pub use crate::index::KeptMemory;
use crate::index::{self, Covered, Index, KeptTiles, NoIndex, Snapshot};
use crate::layout::SEGMENT_HEADER;
use crate::scan::Room;
use crate::segments::{Read, Segments};
use crate::store::{
    AppendLog, GroupEnd, Head, KeepDerived, LastRecord, LogWriter, MaySign, ReadLog, RunSummary, SignLog,
    Skimmed, Slot, StoreInfo, Tags, Ticket, TilePlace, TreeHead, WaitForSync, check_heads,
};
use crate::tail::Tail;
use crate::values::{Chunks, KeyOfChunks};

mod append;
mod aside;
mod catch_up;
mod checkpoint;
mod copy;
mod erase;
mod keep;
mod mark;
mod path;
mod read;
mod sealing;
mod tags;
mod tiles;
mod vault;
mod verify;
mod walk;

pub use copy::{Copied, CopyAs, Copying};
pub use keep::{IndexState, Leftover, TilesState};
pub use mark::Mark;
pub use verify::{LogReport, VerifyOptions};
pub use walk::WalkItem;

/// A new segment begins when the last one is larger than this.
pub const SEGMENT_SIZE: u64 = 64 << 20;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether this handle appends. One that does not never writes anything anywhere.
    pub write: bool,
    /// How long an append waits for other processes that append.
    pub lock_wait: Duration,
    /// Whether the index is read, and advanced by handles that write.
    pub index: bool,
    /// The memory for verdicts and tiles that follow from the log, of a handle that reads; `None` keeps them in the index.
    pub memory: Option<KeptMemory>,
    /// The size of a segment after which a new one begins.
    pub segment_size: u64,
    /// How many records may be outside the index before it is advanced in the background.
    pub uncovered_max: u64,
    /// The file system. The index is always on that of the machine.
    pub disk: Arc<dyn Disk>,
    /// Whether a handle that was given neither key nor secret appends groups without a tag: for tests, and for a store whose owner
    /// wants no tags. Any other such handle is refused before it writes ([`StoreError::NoWriter`]).
    pub untagged: bool,
}

impl Options {
    /// Opens for reading and appending.
    pub fn write() -> Options {
        Options {
            write: true,
            lock_wait: Duration::from_secs(10),
            index: true,
            memory: None,
            segment_size: SEGMENT_SIZE,
            uncovered_max: 20_000,
            disk: Arc::new(Real),
            untagged: false,
        }
    }

    /// Opens for reading and appending, and appends groups without a tag if neither key nor secret is given.
    pub fn untagged() -> Options {
        Options { untagged: true, ..Options::write() }
    }

    /// Opens for reading only.
    pub fn read() -> Options {
        Options { write: false, ..Options::write() }
    }
}

/// How far a handle has read the log.
#[derive(Debug, Clone)]
pub(crate) struct LogEnd {
    pub(crate) segment: u32,
    /// The begin of the next group.
    offset: u64,
    peaks: Peaks,
    pub(crate) root: Digest,
}

/// A handle of a store on disk.
pub struct Embedded {
    info: StoreInfo,
    key: Option<Arc<SigningKey>>,
    writer: LogWriter,
    /// Tags that were seen, also by a reader.
    tags: Mutex<Tags>,
    /// The keys of the log, and the size up to which its records were taken.
    keys: Mutex<Option<(u64, LogKeys)>>,
    /// The size up to which groups were adopted by this handle.
    adopted: u64,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    /// The process that may use this handle.
    owner: u32,
    /// The log of a backup, as its mark said; `None` of a store.
    made: Option<TreeHead>,
    pub(crate) segments: Arc<Segments>,
    lock: Option<Arc<dyn DiskFile>>,
    pub(crate) end: LogEnd,
    pub(crate) durable: Durable,
    /// The begin of the part of the log that the index does not cover: segment and offset.
    covered_to: (u32, u64),
    tail: Tail,
    summaries: Mutex<HashMap<RunName, RunSummary>>,
    chunks: Chunks,
    /// A size and a root that the log is known to begin with, by its hashes.
    proved: Mutex<Option<(u64, Digest)>>,
    /// Nodes of the tree that paths of records were read of.
    nodes: Mutex<Option<path::Nodes>>,
    /// Erasures seen in the tail, to be finished by the lock holder: opened frames.
    erasures: Vec<At>,
    /// Frames that could not be read, until it is clear whether they are damage.
    suspects: Vec<Damage>,
    trouble: Option<Arc<StoreError>>,
    /// After damage that hides what follows: the log is not read further.
    stuck: bool,
    index: Option<Arc<Index>>,
    no_index: Option<NoIndex>,
    indexer: Indexer,
    /// Snapshots for an index that is not made yet.
    snapshots: Mutex<Vec<Snapshot>>,
    /// Sums of tiles that no index has yet.
    run_tiles: KeptMemory,
    /// Whether this handle saw an erasure: a recorder of this handle may still have the erased values.
    saw_erasure: bool,
    /// The buffer in which a group is put together.
    buffer: Vec<u8>,
    /// The buffer into which the log is read.
    room: Room,
}

/// The background thread that advances the index, and what it found.
#[derive(Default)]
struct Indexer {
    thread: Option<JoinHandle<()>>,
    shared: Arc<IndexerShared>,
}

#[derive(Default)]
struct IndexerShared {
    stop: AtomicBool,
    covered: Mutex<Option<Covered>>,
    failure: Mutex<Option<String>>,
    /// When another program was last seen to have the index locked.
    locked: Mutex<Option<Instant>>,
}

impl IndexerShared {
    fn note_lock(&self, seen: Option<Instant>) {
        *self.locked.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    fn was_locked_just_now(&self) -> bool {
        let seen = *self.locked.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_some_and(|seen| seen.elapsed() < LOCKED_PAUSE)
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("dir", &self.dir).field("size", &self.size()).finish_non_exhaustive()
    }
}

impl Embedded {
    /// Makes a store in a directory that does not exist, is empty, or holds what an interrupted creation left.
    pub fn create(dir: &Path, info: StoreInfo, options: Options) -> Result<Embedded, StoreError> {
        let disk = Arc::clone(&options.disk);
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |error| StoreError::io(action, &path, error)
        };
        let segments = dir.join("segments");
        disk.create_dir(dir).map_err(io("create", dir))?;
        let lock_path = dir.join("lock");
        let lock = disk.open(&lock_path, Open::Create).map_err(io("create", &lock_path))?;
        if !disk::lock_within(&*lock, options.lock_wait).map_err(io("lock", &lock_path))? {
            return Err(StoreError::Locked { path: lock_path });
        }
        let created = create_files(&*disk, dir, &segments, &info);
        // Closing it gives it back in any case.
        drop(lock);
        created?;
        if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            disk.sync_dir(parent).map_err(io("sync", parent))?;
        }
        Embedded::open(dir, options)
    }

    /// Opens a store.
    ///
    /// Fails only where nothing can be read: no store, a newer format, a system error. Damage and loss do not keep a
    /// store from being opened; they keep it from being written, and [`Store::trouble`] tells.
    pub fn open(dir: &Path, options: Options) -> Result<Embedded, StoreError> {
        let disk = Arc::clone(&options.disk);
        let info = descriptor::read(&*disk, dir, options.write)?;
        let made = copy::end_of_backup(&*disk, dir, info.id)?;
        if options.write && made.is_some() {
            return Err(StoreError::IsBackup { path: dir.to_owned() });
        }
        let limit = made.as_ref().map(|made| (made.segment, made.offset));
        let mut store = Embedded::unread(dir, info, options, limit);
        store.made = made.map(|made| made.tree);
        if store.options.write {
            let segments = dir.join("segments");
            disk::refuse_links(dir, &segments).map_err(|error| StoreError::io("open", &segments, error))?;
            let path = store.lock_path();
            let lock =
                disk.open(&path, Open::Create).map_err(|error| StoreError::io("open", &path, error))?;
            store.lock = Some(lock);
        }
        store.check_files()?;
        let begun = store.open_index().and_then(|()| store.begin()).and_then(|()| store.meet_memory());
        let Err(StoreError::IndexDamaged(why)) = begun else { return begun.map(|()| store) };
        // Its content is in the log as well.
        let options = store.options.clone();
        let without = Options { index: false, ..options.clone() };
        drop(store);
        let mut store = Embedded::open(dir, without)?;
        (store.options, store.no_index) = (options, Some(NoIndex::Corrupt(why)));
        Ok(store)
    }

    /// Empties the memory that this handle shares with earlier ones if something was erased since they read the log. The
    /// records that the index does not cover are read by this handle, and an erasure there empties it too.
    fn meet_memory(&mut self) -> Result<(), StoreError> {
        let (Some(memory), size) = (&self.options.memory, self.size()) else { return Ok(()) };
        let mut kept = memory.lock();
        let since = kept.met(size);
        let is_erased = match &self.index {
            Some(index) => index.has_erasure(since)?,
            None => since < size,
        };
        if is_erased {
            kept.forget(size);
        }
        Ok(())
    }

    /// Sets the signing key. A key that is not the one in force is ignored.
    #[must_use]
    pub fn with_key(mut self, key: Option<Arc<SigningKey>>) -> Embedded {
        // A record that cannot be read is reported by its reader.
        let now = self.log_keys().map_or_else(|_| self.info.key.clone(), |keys| keys.now().clone());
        self.key = key.filter(|key| *key.verifier_key() == now);
        self.writer = self
            .key
            .as_ref()
            .map_or_else(|| LogWriter::without(self.options.untagged), |key| LogWriter::of(key));
        self
    }

    /// Opens the store as if for the first time.
    fn open_again(&mut self) -> Result<(), StoreError> {
        let mut again = Embedded::open(&self.dir, self.options.clone())?.with_key(self.key.take());
        // Tickets that were given out name syncs of this one.
        again.durable.syncs = Arc::clone(&self.durable.syncs);
        (again.writer, again.adopted) = (std::mem::take(&mut self.writer), self.adopted);
        *self = again;
        Ok(())
    }

    /// A handle that has not looked at any file yet. The log ends at `limit`, if there is one.
    fn unread(dir: &Path, info: StoreInfo, options: Options, limit: Option<(u32, u64)>) -> Embedded {
        let disk = Arc::clone(&options.disk);
        let segments = Segments::new(disk, dir.join("segments"), info.id, options.write).limited(limit);
        let peaks = Peaks::new();
        let root = peaks.root();
        let end = LogEnd { segment: 0, offset: SEGMENT_HEADER as u64, peaks, root };
        Embedded {
            info,
            key: None,
            writer: LogWriter::without(options.untagged),
            tags: Mutex::default(),
            keys: Mutex::default(),
            adopted: 0,
            dir: dir.to_owned(),
            owner: std::process::id(),
            made: None,
            segments: Arc::new(segments),
            lock: None,
            end,
            durable: Durable::default(),
            covered_to: (0, SEGMENT_HEADER as u64),
            tail: Tail::new(0),
            summaries: Mutex::default(),
            chunks: Chunks::new(KeyOfChunks::random()),
            proved: Mutex::default(),
            nodes: Mutex::default(),
            erasures: Vec::new(),
            snapshots: Mutex::default(),
            run_tiles: options.memory.clone().unwrap_or_default(),
            saw_erasure: false,
            suspects: Vec::new(),
            trouble: None,
            stuck: false,
            index: None,
            no_index: None,
            indexer: Indexer::default(),
            buffer: Vec::new(),
            room: Room::default(),
            options,
        }
    }

    /// Reads the log after the covered part of the index, and finishes the work of a crashed writer if no other
    /// process is writing.
    fn begin(&mut self) -> Result<(), StoreError> {
        let holder = match &self.lock {
            Some(lock) => lock.try_lock().unwrap_or(false),
            None => false,
        };
        let result = self.catch_up(holder);
        if holder {
            self.unlock();
        }
        result?;
        self.durable.opened(self.size());
        self.check_newer_checkpoint()
    }

    /// Checks that the segments are all there.
    fn check_files(&mut self) -> Result<(), StoreError> {
        let numbers = self.segments.numbers()?;
        let complete = numbers.iter().copied().eq(0..numbers.len() as u32);
        // A file that cannot be read now shows nothing of its content.
        let has_begin = match self.segments.header(0) {
            Err(StoreError::Damaged(_)) => false,
            header => header?.is_some(),
        };
        if complete && has_begin {
            return Ok(());
        }
        let missing = (0..).find(|number| !numbers.contains(number)).unwrap_or(0);
        let file = crate::segments::place_name(if complete { 0 } else { missing });
        let place = DamagePlace { file, ..DamagePlace::default() };
        let (what, expected, found) = ("segment file", "a segment".into(), "none".into());
        self.set_trouble(Damage { kind: DamageKind::File, place, what, expected, found }.into());
        // The rest is read as far as it goes; without a begin there is nothing to read.
        self.stuck = missing == 0 || numbers.is_empty() || complete;
        Ok(())
    }

    fn index_path(&self) -> PathBuf {
        self.dir.join("index.sqlite")
    }

    fn lock_path(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// Opens the index and starts behind what it covers, if the log agrees with it.
    fn open_index(&mut self) -> Result<(), StoreError> {
        if !self.options.index || self.stuck {
            return Ok(());
        }
        let (index, covered) = match Index::open(&self.index_path(), self.info.id) {
            Ok(opened) => opened,
            Err(why) => {
                self.no_index = Some(why);
                return Ok(());
            }
        };
        if let Some(loss) = self.check_covered(&covered)? {
            self.set_trouble(loss.into());
            return Ok(());
        }
        self.chunks.key = index.key;
        self.index = Some(Arc::new(index));
        self.start_behind(covered);
        Ok(())
    }

    fn start_behind(&mut self, covered: Covered) {
        if let Some(commit) = covered.commit {
            self.end = LogEnd {
                segment: commit.segment,
                offset: u64::from(commit.offset) + frame::COMMIT_SIZE,
                peaks: covered.peaks,
                root: covered.root,
            };
        }
        self.covered_to = (self.end.segment, self.end.offset);
        // The index never covers what was not on disk.
        self.durable.size = self.end.peaks.size();
        self.tail = Tail::new(self.end.peaks.size());
    }

    /// Checks that the log has the commit that the index ends with. Otherwise the index knows of a log that this is
    /// not any more.
    fn check_covered(&mut self, covered: &Covered) -> Result<Option<Damage>, StoreError> {
        let Some(at) = covered.commit else { return Ok(None) };
        let place = DamagePlace {
            file: crate::segments::place_name(at.segment),
            offset: Some(at.offset.into()),
            ..DamagePlace::default()
        };
        let found = match self.segments.read(at)? {
            Read::Frame(frame::COMMIT, payload) => match frame::Commit::parse(&payload) {
                Some(commit) if commit.size == covered.size() && commit.root == covered.root => {
                    return Ok(None);
                }
                Some(commit) => format!("{} records with root {}", commit.size, commit.root),
                None => "no commit".into(),
            },
            Read::Broken(head, crc) => {
                // The frame is where it must be and damaged: that is damage of the log, not loss.
                let (expected, found) = (format!("crc32c {:08x}", head.crc), format!("{crc:08x}"));
                let (kind, what) = (DamageKind::Frame, "checksum of the frame");
                self.set_trouble(Damage { kind, place, what, expected, found }.into());
                return Ok(None);
            }
            Read::Frame(..) => "another frame".into(),
            Read::Short => "the end of the log".into(),
        };
        let expected = format!("{} records with root {}, as the index knows", covered.size(), covered.root);
        Ok(Some(Damage { kind: DamageKind::Loss, place, what: "end of the index", expected, found }))
    }

    pub(crate) fn set_trouble(&mut self, trouble: StoreError) {
        // The first one is the one that explains the others.
        self.trouble.get_or_insert(Arc::new(trouble));
    }

    /// After a sync that failed this handle writes no more.
    fn note_failed_sync<T>(&mut self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::SyncFailed { why }) = &done {
            self.set_trouble(StoreError::SyncFailed { why: why.clone() });
        }
        done
    }

    pub(crate) fn size(&self) -> u64 {
        self.end.peaks.size()
    }

    pub(crate) fn check_owner(&self) -> Result<(), StoreError> {
        match std::process::id() == self.owner {
            true => Ok(()),
            false => Err(StoreError::Forked { owner: self.owner }),
        }
    }

    /// Refuses to write where this handle must not.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        self.check_owner()?;
        self.check_untroubled()
    }

    fn check_untroubled(&self) -> Result<(), StoreError> {
        match &self.trouble {
            _ if !self.options.write => Err(StoreError::ReadOnly { why: "it was opened for reading".into() }),
            Some(trouble) => Err(StoreError::ReadOnly { why: trouble.to_string() }),
            None => Ok(()),
        }
    }

    fn take_lock(&mut self) -> Result<(), StoreError> {
        self.take_lock_within(self.options.lock_wait)
    }

    fn take_lock_within(&mut self, wait: Duration) -> Result<(), StoreError> {
        let path = self.lock_path();
        let io = |error| StoreError::io("lock", &path, error);
        let lock = match &self.lock {
            Some(lock) => Arc::clone(lock),
            None => {
                let lock = self.options.disk.open(&path, Open::Create).map_err(io)?;
                Arc::clone(self.lock.insert(lock))
            }
        };
        // Commits of others are taken in while we wait, so that all others do not wait for us. A failure shows once more when
        // we hold the lock.
        let mut catch_up = || {
            drop(self.catch_up_meanwhile());
            true
        };
        match disk::lock_while(&*lock, wait, &disk::briefly_held, &mut catch_up).map_err(io)? {
            true => Ok(()),
            false => Err(StoreError::Locked { path }),
        }
    }

    fn unlock(&mut self) {
        // Closing the file gives the lock back too. Bytes that were written under it count in any case.
        if self.lock.as_ref().is_some_and(|lock| lock.unlock().is_err()) {
            self.lock = None;
        }
    }

    /// Runs `f` as the lock holder, with everything taken in that others committed.
    fn locked<T>(&mut self, f: impl FnOnce(&mut Embedded) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.check_writable()?;
        self.take_lock()?;
        let result = self.catch_up(true).and_then(|()| self.check_untroubled()).and_then(|()| f(self));
        self.unlock();
        result
    }

    /// As [`Embedded::locked`], for what appends to the log or signs it: not after a group without a tag.
    fn locked_behind_tags<T>(
        &mut self,
        f: impl FnOnce(&mut Embedded) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_writable()?;
        if matches!(self.writer, LogWriter::Missing) {
            return Err(StoreError::NoWriter);
        }
        self.locked(|store| {
            store.check_tags()?;
            f(store)
        })
    }

    /// Takes over what the background thread did.
    fn absorb_index(&mut self) {
        let covered = self.indexer.shared.covered.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(covered) = covered {
            self.trim(&covered);
        }
    }

    fn waiting_snapshots(&self) -> MutexGuard<'_, Vec<Snapshot>> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts into the index what waited for it to be made, or for the thread that advances it, which can take long. While
    /// another program has the index locked, the newest snapshots wait.
    fn keep_snapshots(&self, wait: Duration) -> Result<(), StoreError> {
        let busy = self.indexer.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        let Some(index) = self.index.as_ref().filter(|_| !busy) else { return Ok(()) };
        let mut snapshots = std::mem::take(&mut *self.waiting_snapshots());
        for at in 0..snapshots.len() {
            match index.put_snapshot(&snapshots[at], self.size(), wait) {
                Err(StoreError::IndexLocked) => {
                    let newest = snapshots.len().saturating_sub(SNAPSHOTS_WAITING_MAX);
                    *self.waiting_snapshots() = snapshots.split_off(at.max(newest));
                    return Ok(());
                }
                put => put?,
            }
        }
        Ok(())
    }

    fn kept_tiles(&self) -> MutexGuard<'_, KeptTiles> {
        self.run_tiles.lock()
    }

    /// Moves the sums of tiles into the index: as the recorder of the run, or as a reader with the key of the store. Without an
    /// index, and for every other reader, they stay with this handle.
    fn keep_tiles(&self, wait: Duration) -> Result<(), StoreError> {
        let busy = self.indexer.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        let is_writer = self.may_index();
        let may_read = self.options.memory.is_none() && self.trouble.is_none() && self.key.is_some();
        let may_write = is_writer || !self.options.write && may_read;
        let Some(index) = self.index.as_ref().filter(|_| !busy && may_write) else { return Ok(()) };
        let mut kept = self.kept_tiles();
        match kept.len() {
            0 => Ok(()),
            _ => index.take_tiles(&mut kept, self.size(), (is_writer, wait)),
        }
    }

    /// Lists the runs of which the index has sums of tiles.
    pub fn tiled_runs(&self) -> Result<Vec<RunName>, StoreError> {
        self.check_owner()?;
        self.index.as_ref().map_or(Ok(Vec::new()), |index| index.tiled_runs())
    }

    /// Returns the sums of a tile. Those of the index do not count while an erasure is in the part that the index does not cover.
    fn kept_tile(&self, run: &RunName, place: TilePlace) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(bytes) = self.kept_tiles().get(run, place) {
            return Ok(Some(bytes.to_vec()));
        }
        match &self.index {
            Some(index) if self.erasures.is_empty() && !self.tail.has_opened() => index.tile(run, place),
            _ => Ok(None),
        }
    }

    /// Notes an erasure that is to be finished. `size` is the least size of the log that has it.
    fn note_erasure(&mut self, at: At, size: u64) {
        self.erasures.push(at);
        self.saw_erasure = true;
        self.waiting_snapshots().clear();
        self.kept_tiles().forget(size);
    }

    fn trim(&mut self, covered: &Covered) {
        // The index is new, or another process replaced the one that is open here: entries that only the open one has
        // must stay in the tail.
        let knows = |index: &Index| index.covered(self.info.id).is_ok_and(|own| own.size() >= covered.size());
        if !self.index.as_deref().is_some_and(knows) {
            match Index::open(&self.index_path(), self.info.id) {
                Ok((_, found)) if found.size() < covered.size() => return,
                Ok((index, _)) => self.index = Some(Arc::new(index)),
                Err(why) => {
                    self.no_index = Some(why);
                    return;
                }
            }
        }
        if let Some(at) = covered.commit
            && covered.size() <= self.size()
        {
            self.tail.trim(covered.size(), at);
            self.covered_to = (at.segment, u64::from(at.offset) + frame::COMMIT_SIZE);
        }
        // Derived data that is missing costs time at most.
        let _ = self.keep_snapshots(Duration::ZERO);
        let _ = self.keep_tiles(Duration::ZERO);
    }

    /// Starts to advance the index in the background if much is uncovered and known to be on disk.
    fn index_in_background(&mut self) {
        self.absorb_index();
        let uncovered = self.durable.size.saturating_sub(self.tail.base);
        let much = uncovered >= self.options.uncovered_max || self.uncovered_bytes() >= UNCOVERED_BYTES;
        if uncovered == 0 || !much || !self.may_index() || self.indexer.shared.was_locked_just_now() {
            return;
        }
        if self.indexer.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        if let Some(thread) = self.indexer.thread.take() {
            let _ = thread.join();
        }
        // A commit is acknowledged after this, so no lock is waited for. The next commit looks again.
        if let Err(error) = self.make_index(Duration::ZERO) {
            if matches!(error, StoreError::IndexLocked) {
                self.indexer.shared.note_lock(Some(Instant::now()));
            }
            return;
        }
        let (path, segments, store) = (self.index_path(), Arc::clone(&self.segments), self.info.id);
        let (target, shared) = (self.durable.size, Arc::clone(&self.indexer.shared));
        let work = move || {
            let publish = |covered: &Covered| {
                *shared.covered.lock().unwrap_or_else(PoisonError::into_inner) = Some(covered.clone());
            };
            // Closing waits for this thread, so it does not wait for another program.
            match index::advance(&path, &segments, store, target, (&shared.stop, index::BRIEF), &publish) {
                Ok(_) => shared.note_lock(None),
                Err(StoreError::IndexLocked) => shared.note_lock(Some(Instant::now())),
                Err(error) => {
                    *shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                }
            }
        };
        self.indexer.thread = std::thread::Builder::new().name("dendrer-index".into()).spawn(work).ok();
    }

    /// About how many bytes of the log the index does not cover.
    fn uncovered_bytes(&self) -> u64 {
        let (segment, offset) = self.covered_to;
        let segments = u64::from(self.end.segment.saturating_sub(segment));
        (segments * self.options.segment_size + self.end.offset).saturating_sub(offset)
    }

    /// Whether this handle may write the index.
    fn may_index(&self) -> bool {
        let failed = || self.indexer.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let usable = !matches!(self.no_index, Some(NoIndex::Newer(_) | NoIndex::Unreadable(_)));
        self.options.write && self.options.index && self.trouble.is_none() && usable && !failed()
    }

    /// Makes an empty index where none is usable.
    fn make_index(&mut self, wait: Duration) -> Result<(), StoreError> {
        if self.index.is_some() {
            return Ok(());
        }
        self.take_lock_within(wait)?;
        // Another process may have made it since.
        let made = match Index::open(&self.index_path(), self.info.id) {
            Ok(_) => Ok(()),
            Err(NoIndex::Locked) => Err(StoreError::IndexLocked),
            Err(_) => Index::create(&self.index_path(), self.info.id, self.chunks.key),
        };
        self.unlock();
        made
    }

    /// Brings the index up to the end of the log, and waits for it.
    pub fn update_index(&mut self) -> Result<(), StoreError> {
        self.check_owner()?;
        if !self.may_index() {
            return Err(StoreError::Index("this handle does not write the index".into()));
        }
        if let Some(thread) = self.indexer.thread.take() {
            let _ = thread.join();
        }
        // Without starting the thread again: two that advance the index at once keep its log from ever being emptied.
        self.sync_together()?;
        self.make_index(self.options.lock_wait)?;
        self.advance_index(index::PATIENT)
    }

    fn advance_index(&mut self, wait: Duration) -> Result<(), StoreError> {
        let (path, stop) = (self.index_path(), AtomicBool::new(false));
        let (id, target) = (self.info.id, self.durable.size);
        let covered = index::advance(&path, &self.segments, id, target, (&stop, wait), &|_| {})?;
        self.indexer.shared.covered.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.trim(&covered);
        Ok(())
    }

    /// Throws the index away and builds it again from the segments, stored snapshots included. The new index is built
    /// beside the old one and then replaces it, so that a concurrent reader has one or the other.
    ///
    /// An index that covers more than the log is evidence of a loss, and is only discarded if `discard_evidence`
    /// allows it.
    pub fn rebuild_index(&mut self, discard_evidence: bool) -> Result<(), StoreError> {
        self.check_owner()?;
        let lost = matches!(self.trouble.as_deref(), Some(StoreError::Lost(_)));
        if !self.options.write || (lost && !discard_evidence) {
            return Err(StoreError::ReadOnly { why: "the index is not discarded by this handle".into() });
        }
        if let Some(thread) = self.indexer.thread.take() {
            let _ = thread.join();
        }
        let _making = self.lock_making(self.options.lock_wait)?;
        let path = self.index_path();
        let beside = self.dir.join("index-new.sqlite");
        Index::create(&beside, self.info.id, self.chunks.key)?;
        if !lost {
            self.sync_now()?;
            index::build(&beside, &self.segments, self.info.id, self.durable.size)?;
        }
        self.take_lock()?;
        // An erasure meanwhile brought the old one up to date; this one would say what was erased, wherever the program is
        // stopped.
        let caught_up = if lost { Ok(()) } else { self.catch_up_beside(&beside) };
        self.index = None;
        let placed = caught_up.and_then(|()| index::put_in_place(&beside, &path));
        self.unlock();
        // Also where it stays the old one: this handle has no other way to what an index covers.
        self.open_again()?;
        placed?;
        self.update_index()?;
        // Values that were erased while it was made were taken in above, and must not stay in SQLite's own log.
        index::truncate_log(&path)
    }

    /// Takes into an index that was made beside what was written meanwhile. The caller holds the lock.
    fn catch_up_beside(&mut self, beside: &Path) -> Result<(), StoreError> {
        self.catch_up(true)?;
        self.sync_now()?;
        let never = AtomicBool::new(false);
        let (id, target) = (self.info.id, self.durable.size);
        index::advance(beside, &self.segments, id, target, (&never, index::PATIENT), &|_| {}).map(drop)
    }

    /// Takes the lock for building an index beside the one in use. The lock is held as long as the returned file.
    fn lock_making(&self, wait: Duration) -> Result<Arc<dyn DiskFile>, StoreError> {
        let path = self.dir.join("index-lock");
        let io = |error| StoreError::io("lock", &path, error);
        let lock = self.options.disk.open(&path, Open::Create).map_err(io)?;
        match disk::lock_within(&*lock, wait).map_err(io)? {
            true => Ok(lock),
            false => Err(StoreError::Locked { path }),
        }
    }

    /// Returns why this handle works without an index, if it does.
    pub fn index_status(&self) -> Result<u64, String> {
        match (&self.index, &self.no_index) {
            (Some(_), _) => Ok(self.tail.base),
            (None, Some(why)) => Err(format!("{why:?}")),
            (None, None) => Err("not used".into()),
        }
    }

    /// Returns the directory of the store.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes durable what was appended, and returns the size that is.
    pub fn sync(&mut self) -> Result<u64, StoreError> {
        let size = self.sync_together()?;
        self.index_in_background();
        Ok(size)
    }

    /// Finishes background work and brings the index up to date if much is missing there.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), StoreError> {
        if self.check_owner().is_ok() {
            self.bring_up_index();
        }
        Ok(())
    }

    /// Finishes background work, and brings the index up to date if much is missing there. Never waits for another program
    /// that has the index locked: then returns how many records are missing in the index.
    fn bring_up_index(&mut self) -> Option<u64> {
        if let Err(why) = self.durable.syncs.wait_for_all() {
            self.set_trouble(StoreError::SyncFailed { why });
        }
        if let Some(thread) = self.indexer.thread.take() {
            let _ = thread.join();
        }
        self.absorb_index();
        let much = self.tail.len() >= CLOSE_UNCOVERED || self.uncovered_bytes() >= CLOSE_UNCOVERED_BYTES;
        let late = self.tail.len() as u64;
        if late == 0 || !self.may_index() {
            return None;
        }
        if !much {
            let kept = self.keep_snapshots(index::BRIEF);
            return (kept.is_ok() && self.index.is_some() && !self.waiting_snapshots().is_empty())
                .then_some(late);
        }
        if self.indexer.shared.was_locked_just_now() {
            return Some(late);
        }
        let brought = self.sync_together().and_then(|_| self.make_index(index::BRIEF));
        match brought.and_then(|()| self.advance_index(index::BRIEF)) {
            Err(StoreError::IndexLocked) => {
                self.indexer.shared.note_lock(Some(Instant::now()));
                Some(late)
            }
            // An index that could not be brought up to date is late, not wrong.
            _ => None,
        }
    }
}

/// How many snapshots wait while another program has the index locked, at most.
const SNAPSHOTS_WAITING_MAX: usize = 16;

/// How many tiles are put into the index in one transaction.
const TILES_TOGETHER: usize = 64;

/// For how long no handle tries again to advance an index that was locked.
const LOCKED_PAUSE: Duration = Duration::from_millis(500);

/// How many bytes may be outside the index before it is advanced in the background.
const UNCOVERED_BYTES: u64 = 32 << 20;

/// How many records and bytes may be outside the index when a handle is closed: reading them again takes some
/// milliseconds.
const CLOSE_UNCOVERED: usize = 1_000;
const CLOSE_UNCOVERED_BYTES: u64 = 8 << 20;

impl Drop for Embedded {
    fn drop(&mut self) {
        if self.check_owner().is_err() {
            // The threads of the parent are not here, and its database must not be touched from here.
            std::mem::forget(self.indexer.thread.take());
            std::mem::forget(self.index.take());
            return;
        }
        self.indexer.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.indexer.thread.take() {
            let _ = thread.join();
        }
        let _ = self.durable.syncs.wait_for_all();
        let _ = self.keep_snapshots(index::BRIEF);
        let _ = self.keep_tiles(index::BRIEF);
    }
}

/// Writes the files of a new store; `store.json` last, so that a store that has it has all.
fn create_files(disk: &dyn Disk, dir: &Path, segments: &Path, info: &StoreInfo) -> Result<(), StoreError> {
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |error| StoreError::io(action, &path, error)
    };
    let already = || StoreError::AlreadyAStore { path: dir.to_owned() };
    if disk.list(dir).map_err(io("list", dir))?.iter().any(|name| name == "store.json") {
        return Err(already());
    }
    disk.create_dir(segments).map_err(io("create", segments))?;
    let first = segments.join(crate::segments::file_name(0));
    let file = disk.open(&first, Open::Create).map_err(io("create", &first))?;
    // More than a header is a log whose store.json is gone. Such a log is not for us to overwrite.
    if file.len().map_err(io("read", &first))? > SEGMENT_HEADER as u64
        || disk.list(segments).map_err(io("list", segments))?.len() > 1
    {
        return Err(already());
    }
    let header = crate::layout::SegmentHeader { store: info.id, number: 0, start: 0 }.write();
    file.set_len(0).map_err(io("write", &first))?;
    disk::write_all(&*file, &header, 0).map_err(io("write", &first))?;
    file.sync().map_err(io("sync", &first))?;
    disk.sync_dir(segments).map_err(io("sync", segments))?;
    let path = dir.join("store.json");
    disk::replace_file(disk, &path, descriptor::text(info).as_bytes()).map_err(io("write", &path))
}

impl ReadLog for Embedded {
    fn info(&self) -> &StoreInfo {
        &self.info
    }

    fn tree(&self) -> TreeHead {
        TreeHead { size: self.size(), root: self.end.root }
    }

    fn trouble(&self) -> Option<Arc<StoreError>> {
        self.trouble.clone()
    }

    fn refresh(&mut self) -> Result<u64, StoreError> {
        self.check_owner()?;
        self.absorb_index();
        self.catch_up(false)?;
        Ok(self.size())
    }

    fn get(&self, position: u64) -> Result<Option<Record>, StoreError> {
        self.check_owner()?;
        self.read_record(position)
    }

    fn scan(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.check_owner()?;
        self.scan_records(range, f)
    }

    fn entries(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.check_owner()?;
        self.scan_entries(range, f)
    }

    fn skim(
        &self,
        range: Range<u64>,
        wanted: &dyn Fn(&Header, &str) -> bool,
        f: &mut dyn FnMut(u64, Skimmed<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        self.check_owner()?;
        self.skim_records(range, wanted, f)
    }

    fn find(&self, id: &Digest) -> Result<Option<u64>, StoreError> {
        self.check_owner()?;
        self.find_id(id)
    }

    fn find_prefix(&self, hex: &str, limit: usize) -> Result<Vec<(Digest, u64)>, StoreError> {
        self.check_owner()?;
        self.find_by_prefix(hex, limit)
    }

    fn at(&self, run: &RunName, tick: u64) -> Result<Option<u64>, StoreError> {
        self.check_owner()?;
        self.position_at(run, tick)
    }

    fn run(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        self.check_owner()?;
        self.run_summary(run)
    }

    fn runs(&self, from: u64, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.check_owner()?;
        self.list_runs(from, limit)
    }

    fn positions(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        self.check_owner()?;
        self.list_positions(run, ticks, limit)
    }

    fn beside(&self, run: &RunName, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        self.check_owner()?;
        self.list_beside(run, from, limit)
    }

    fn beside_runs(&self, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        self.check_owner()?;
        self.list_beside_runs(from, limit)
    }

    fn covers_log(&self) -> bool {
        // The index covers the log up to the tail: the commit frame with its size and root was found when it was opened.
        true
    }

    fn keys(&self) -> Result<LogKeys, StoreError> {
        self.check_owner()?;
        self.log_keys()
    }

    fn root_of(&self, size: u64) -> Result<Option<Digest>, StoreError> {
        self.check_owner()?;
        if size > self.size() { Ok(None) } else { self.root_at(size) }
    }

    fn extends(&self, size: u64, root: Digest) -> Result<bool, StoreError> {
        self.check_owner()?;
        self.begins_with(size, root)
    }

    fn proven(&self, position: u64) -> Result<Option<Record>, StoreError> {
        self.check_owner()?;
        self.read_proven(position)
    }
}

impl KeepDerived for Embedded {
    fn key(&self) -> Option<&Arc<SigningKey>> {
        self.key.as_ref()
    }

    fn keep(&self, slot: Slot<'_>, bytes: &[u8]) -> Result<(), StoreError> {
        self.check_owner()?;
        match (slot, &self.index) {
            (Slot::Snapshot(run, tick), _) if self.may_index() && !self.saw_erasure => {
                self.waiting_snapshots().push(Snapshot { run: run.clone(), tick, bytes: bytes.to_vec() });
                self.keep_snapshots(Duration::ZERO)
            }
            (Slot::Verdicts(run, question), _) if self.options.memory.is_some() => {
                self.kept_tiles().put_verdicts(run, *question, self.size(), bytes);
                Ok(())
            }
            (Slot::Verdicts(run, question), Some(index)) if self.trouble.is_none() => {
                index.put_verdicts(run, question, bytes)
            }
            // A recorder may still have values that were erased.
            (Slot::Tile { run, place, seen }, _) if seen.is_some() || !self.saw_erasure => {
                let seen = seen.unwrap_or(self.size());
                let waiting = {
                    let mut kept = self.kept_tiles();
                    kept.put(run, place, seen, bytes);
                    kept.len()
                };
                // Not at each tile from there on: another program may have the index locked.
                if waiting.is_multiple_of(TILES_TOGETHER) { self.keep_tiles(Duration::ZERO) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn kept(&self, slot: Slot<'_>) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.check_owner()?;
        if let Slot::Tile { run, place, .. } = slot {
            return Ok(self.kept_tile(run, place)?.map(|bytes| (0, bytes)));
        }
        if let (Slot::Verdicts(run, question), Some(_)) = (slot, &self.options.memory)
            && let Some(bytes) = self.kept_tiles().verdicts(run, question)
        {
            return Ok(Some((0, bytes)));
        }
        let Some(index) = &self.index else { return Ok(None) };
        match slot {
            Slot::Snapshot(run, tick) => index.snapshot(run, tick),
            Slot::Verdicts(run, question) => Ok(index.verdicts(run, question)?.map(|bytes| (0, bytes))),
            Slot::Tile { .. } => Ok(None),
        }
    }
}

impl AppendLog for Embedded {
    fn late_index(&mut self) -> Option<u64> {
        self.check_owner().ok()?;
        self.bring_up_index()
    }

    fn append(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError> {
        if records.is_empty() {
            self.check_owner()?;
            return Ok(self.size()..self.size());
        }
        let positions = self.locked_behind_tags(|store| store.append_group(records, &[]))?;
        self.index_in_background();
        Ok(positions)
    }

    fn append_after(
        &mut self,
        records: &[Record],
        heads: &[(RunName, Head)],
    ) -> Result<Range<u64>, StoreError> {
        if records.is_empty() || heads.is_empty() {
            return self.append(records);
        }
        let positions = self.locked_behind_tags(|store| {
            check_heads(store, heads)?;
            store.append_group(records, &[])
        })?;
        self.index_in_background();
        Ok(positions)
    }

    fn submit(&mut self, records: &[Record]) -> Result<Ticket, StoreError> {
        if records.is_empty() {
            return self.ask_for_sync();
        }
        self.append(records)?;
        self.ask_for_sync().map_err(|error| error.as_failed_sync())
    }

    fn wait(&mut self, ticket: Ticket) -> Result<(), StoreError> {
        self.end_sync(&ticket).map_err(|error| error.as_failed_sync())?;
        self.index_in_background();
        Ok(())
    }

    fn commit(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError> {
        let positions = self.append(records)?;
        self.sync().map_err(|error| error.as_failed_sync())?;
        Ok(positions)
    }

    fn waiter(&self) -> Option<Arc<dyn WaitForSync>> {
        Some(Arc::clone(&self.durable.syncs) as _)
    }

    fn set_writer(&mut self, writer: LogWriter) {
        self.writer = match self.log_keys() {
            Ok(keys) => writer.under(keys.now()),
            // Without the keys of the log nothing is written.
            Err(_) => LogWriter::Missing,
        };
        // Looked at with another secret.
        *self.tags.get_mut().unwrap_or_else(PoisonError::into_inner) = Tags::default();
    }

    fn group_of(&self, position: u64) -> Result<Option<GroupEnd>, StoreError> {
        self.check_owner()?;
        self.end_of(position)
    }

    fn untagged(&self) -> Result<Option<Vec<Range<u64>>>, StoreError> {
        self.check_owner()?;
        self.list_untagged()
    }

    fn adopt(&mut self, to: TreeHead) -> Result<(), StoreError> {
        self.check_owner()?;
        self.adopt_to(to)
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Embedded::close(*self)
    }
}

impl SignLog for Embedded {
    fn sign_after(
        &mut self,
        key: &SigningKey,
        last: &mut LastRecord<'_>,
        may: &mut MaySign<'_>,
    ) -> Result<Option<SignedNote>, StoreError> {
        self.locked_behind_tags(|store| {
            let is_another = store.log_keys()?.now() != key.verifier_key();
            if let Some(record) = last(store)? {
                // A new key tags the group of the record that brings it.
                let writer = if is_another { LogWriter::of(key) } else { store.writer.clone() };
                let before = std::mem::replace(&mut store.writer, writer);
                if let Err(error) = store.append_group(std::slice::from_ref(&record), &[]) {
                    store.writer = before;
                    return Err(error);
                }
            }
            if is_another && store.log_keys()?.now() != key.verifier_key() {
                return Err(StoreError::NoWriter);
            }
            store.sign(key, may)
        })
    }

    fn checkpoint(&self) -> Result<Option<SignedNote>, StoreError> {
        self.check_owner()?;
        Ok(self.read_checkpoint()?.map(|(note, _)| note))
    }
}

#[cfg(test)]
mod tests;

/// The checkpoint that a store keeps: the note, and what it says.
type Kept = (SignedNote, Checkpoint);

/// Summaries of runs that a group changes.
type Changed = BTreeMap<RunName, RunSummary>;
