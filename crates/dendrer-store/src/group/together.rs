//! One sync for the processes that commit step by step at the same time.
//!
//! A sync covers the writes of every process, and many syncs of one file at once wait for each other. So of the
//! handles that see many groups of others one at a time syncs, and then writes the synced size to the file `synced`
//! (`docs/format-disk.md`, appending). Handles that see few, or of which another sync is under way, sync for
//! themselves and write nothing.
//!
//! The file counts only for a tree that the reader has read from the log, after its own last append, and not if it
//! may be of another time: the first content of the file may be older than the log, and a process that opened the
//! segment after a group was written is not told by the system that writing it back failed. A handle that waits in
//! vain syncs for itself.
//!
//! Rule: a handle never waits for the right to sync while it has the lock of the log.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dendrer_object::Digest;

use crate::disk::{self, Disk, DiskFile, Open};
use crate::embedded::Embedded;
use crate::error::StoreError;
use crate::frame::{self, COMMIT, COMMIT_SIZE, Commit};
use crate::store::Tag;

/// How many groups of others there must be for each of a process: syncs of a few at once are faster than waiting for one.
const OTHERS_MIN: usize = 6;

/// How long a process waits for the syncs of others, unless a sync takes long.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// How many times as long as its own newest sync took a process waits at most.
const SYNCS_MAX: u32 = 3;

/// Bytes of the frame in `synced`.
const SAID: usize = COMMIT_SIZE as usize;

/// The two files. A lock on what it guards would keep others from reading it on some systems.
#[derive(Debug)]
pub(super) struct Together {
    right: Arc<dyn DiskFile>,
    said: Arc<dyn DiskFile>,
    /// Content of `synced` when it was opened: of before a crash, or of another copy of the store.
    first: Option<Commit>,
    /// The content of `synced` when this process waited in vain: while it is unchanged, waiting again would be in
    /// vain too.
    in_vain: Option<Option<Commit>>,
    /// The segment as this handle has it open, and the size of the tree when that was so for sure.
    file: Option<(Arc<dyn DiskFile>, u64)>,
    /// How long its newest sync took.
    took: Duration,
}

/// Pauses for as long as a sync may take; they are the longer, the longer it does.
fn pause(waited: Duration) -> Duration {
    waited.clamp(Duration::from_micros(200), Duration::from_millis(4))
}

impl Together {
    fn open(disk: &dyn Disk, dir: &Path) -> io::Result<Together> {
        let (lock, path) = (dir.join("sync-lock"), dir.join("synced"));
        let (right, said) = (disk.open(&lock, Open::Create)?, disk.open(&path, Open::Create)?);
        let took = Duration::ZERO;
        let mut together = Together { right, said, first: None, in_vain: None, file: None, took };
        together.first = together.said();
        if together.first.is_none() && !together.said.is_empty()? {
            // It may be another name of some other file, which is not for us to write.
            disk.remove(&path)?;
            together.said = disk.open(&path, Open::Create)?;
        }
        Ok(together)
    }

    /// The end of the log that another process synced. `None` if it cannot be read.
    fn said(&self) -> Option<Commit> {
        let mut bytes = [0; SAID];
        disk::read_exact(&*self.said, &mut bytes, 0).ok()?;
        match frame::open(&bytes) {
            Ok((COMMIT, payload)) => {
                Commit::parse(payload).filter(|said| (said.count, said.length) == (0, 0))
            }
            _ => None,
        }
    }

    fn say(&self, size: u64, root: Digest, since: u64) {
        let mut bytes = Vec::with_capacity(SAID);
        Commit { count: 0, size, synced: since, length: 0, root, tag: Tag::default() }.write(&mut bytes);
        // A handle that waits for it in vain syncs for itself.
        let _ = disk::write_all(&*self.said, &bytes, 0);
    }

    /// Returns the size of the tree after which everything was written while this handle had the file open.
    fn since(&mut self, file: Arc<dyn DiskFile>, size: u64) -> u64 {
        match &self.file {
            Some((known, since)) if Arc::ptr_eq(known, &file) => *since,
            _ => self.file.insert((file, size)).1,
        }
    }

    fn wait(&self, most: Duration) -> Duration {
        if self.in_vain == Some(self.said()) {
            return Duration::ZERO;
        }
        WAIT_MAX.max(self.took * SYNCS_MAX).min(most)
    }
}

impl Embedded {
    /// Makes durable what this handle appended, with one sync for all processes that are at it. Not as the lock holder.
    pub(crate) fn sync_together(&mut self) -> Result<u64, StoreError> {
        let is_crowded = std::mem::take(&mut self.durable.others) >= OTHERS_MIN;
        let is_synced = self.durable.size >= self.size();
        // If something of others was read since it appended, it is not known whether that was written to its end.
        if !is_crowded || !self.durable.ends_with_own || self.durable.syncs.is_open() || is_synced {
            return self.sync_now();
        }
        self.check_writable()?;
        let opened = match self.durable.together.take() {
            Some(together) => Ok(together),
            None => Together::open(&*self.options.disk, &self.dir),
        };
        let Ok(mut together) = opened else { return self.sync_now() };
        self.durable.ends = vec![(self.size(), self.end.root)];
        let (result, has_right) = self.sync_or_wait(&mut together);
        self.durable.ends.clear();
        // Closing the file gives the right back too.
        if !has_right || together.right.unlock().is_ok() {
            self.durable.together = Some(together);
        }
        result
    }

    /// Returns whether the right to sync is still held, too.
    fn sync_or_wait(&mut self, together: &mut Together) -> (Result<u64, StoreError>, bool) {
        let (durable, most) = (self.durable.own, self.options.lock_wait);
        let mut is_synced = false;
        let mut look = || {
            is_synced = self.is_synced(together, durable);
            !is_synced
        };
        let has_right =
            disk::lock_while(&*together.right, together.wait(most), &pause, &mut look).unwrap_or(false);
        if is_synced || (has_right && self.is_synced(together, durable)) {
            // Trouble that was found in the log meanwhile is reported as after any sync.
            return (self.check_writable().map(|()| self.durable.size), has_right);
        }
        if !has_right {
            together.in_vain = Some(together.said());
            return (self.sync_now(), false);
        }
        // After reading on, this sync covers every group so far. The writer of the last group may still be writing;
        // the writer of a group before it was done when the lock was passed on.
        drop(self.catch_up_meanwhile());
        let ends = &self.durable.ends;
        let (size, root) = ends[ends.len().saturating_sub(2)];
        let (is_known, file) = (self.durable.size >= self.size(), self.segments.file(self.end.segment));
        let begin = Instant::now();
        let result = self.sync_to(size);
        together.took = begin.elapsed();
        if let (Ok(Some(file)), Ok(_), false) = (file, &result, is_known) {
            let since = together.since(file, self.size());
            together.say(size, root, since);
        }
        (result, true)
    }

    /// Whether another process synced the group that this handle waits for. The handle itself knows that all before
    /// `durable` is on disk.
    fn is_synced(&mut self, together: &Together, durable: u64) -> bool {
        let said = together.said().filter(|said| said.synced <= durable && Some(*said) != together.first);
        let Some(said) = said else { return false };
        if said.size > self.size() {
            // Read only if there is a reason, not at each look. A failure shows once more when this handle appends.
            drop(self.catch_up(false));
        }
        let is_so = self.durable.ends.contains(&(said.size, said.root));
        if is_so {
            self.durable.learn(said.size);
            self.durable.own = self.durable.own.max(said.size);
            self.durable.unsynced = None;
        }
        is_so
    }
}
