//! One sync for all processes that commit at the same time.
//!
//! A sync covers what everybody wrote, and many of the same file at once wait for each other. So one process at a time
//! syncs, and says then in the file `synced` how far: the size of the tree and its root. Whoever finds this root at this
//! size in what it has read of the log, behind what it appended itself, need not sync.
//!
//! What the file says is only believed of a tree that the reader has seen grow from its own group: a file that is old, torn
//! or of another store has no such root. Whoever waits in vain syncs for itself. After a sync that failed nothing is said.
//!
//! The invariant a newcomer would break: nobody waits for the right to sync while it holds the lock of the log.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dendrer_object::Digest;

use super::Embedded;
use crate::disk::{self, Disk, DiskFile, Open};
use crate::error::StoreError;
use crate::frame::{self, COMMIT, COMMIT_SIZE, Commit};

/// How many groups of others there must be for each of a process: syncs of a few at once are faster than waiting for one.
const OTHERS_MIN: usize = 6;

/// How long a process waits for the syncs of others: some times what a sync takes on a slow disk.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// The bytes of what is said.
const SAID: usize = COMMIT_SIZE as usize;

/// The two files. A lock on what it guards would keep others from reading it on some systems.
#[derive(Debug)]
pub(super) struct Together {
    right: Arc<dyn DiskFile>,
    said: Arc<dyn DiskFile>,
    /// What was said when this process had waited in vain: while it stands, whoever has the right to sync is stopped.
    in_vain: Option<Option<Commit>>,
}

/// Pauses for as long as a sync may take; they are the longer, the longer it does.
fn pause(waited: Duration) -> Duration {
    waited.clamp(Duration::from_micros(200), Duration::from_millis(4))
}

impl Together {
    /// Opens both. Fails if the file to be written holds anything that was not said by this code.
    fn open(disk: &dyn Disk, dir: &Path) -> io::Result<Together> {
        let open = |name: &str| disk.open(&dir.join(name), Open::Create);
        let together = Together { right: open("sync-lock")?, said: open("synced")?, in_vain: None };
        let mut found = [0; SAID + 1];
        let len = disk::read_up_to(&*together.said, &mut found, 0)?;
        // It may be a link to somewhere else. A crash leaves zeros.
        let is_ours = len <= SAID && (together.said().is_some() || found.iter().all(|byte| *byte == 0));
        if is_ours { Ok(together) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// The end of the log that somebody synced, as a commit. `None` where it cannot be read.
    fn said(&self) -> Option<Commit> {
        let mut bytes = [0; SAID];
        disk::read_exact(&*self.said, &mut bytes, 0).ok()?;
        match frame::open(&bytes) {
            Ok((COMMIT, payload)) => Commit::parse(payload),
            _ => None,
        }
    }

    fn say(&self, size: u64, root: Digest) {
        let mut bytes = Vec::with_capacity(SAID);
        Commit { count: 0, size, synced: size, length: 0, root }.write(&mut bytes);
        // Whoever waits for it in vain syncs for itself.
        let _ = disk::write_all(&*self.said, &bytes, 0);
    }
}

impl Embedded {
    /// Makes durable what this handle appended, with one sync for all processes that are at it. Not as the lock holder.
    pub(super) fn sync_together(&mut self) -> Result<u64, StoreError> {
        let is_crowded = std::mem::take(&mut self.others) >= OTHERS_MIN;
        if !is_crowded || self.syncer.is_some() || self.durable >= self.size() {
            return self.sync_now();
        }
        let opened = match self.together.take() {
            Some(together) => Ok(together),
            None => Together::open(&*self.options.disk, &self.dir),
        };
        let Ok(mut together) = opened else { return self.sync_now() };
        self.check_writable()?;
        self.ends = vec![(self.size(), self.end.root)];
        let (result, has_right) = self.sync_or_wait(&mut together);
        self.ends.clear();
        // Closing the file gives the right back too.
        if !has_right || together.right.unlock().is_ok() {
            self.together = Some(together);
        }
        result
    }

    /// Returns whether the right to sync is still held, too.
    fn sync_or_wait(&mut self, together: &mut Together) -> (Result<u64, StoreError>, bool) {
        let wait = if together.in_vain == Some(together.said()) { Duration::ZERO } else { WAIT_MAX };
        let mut is_synced = false;
        let mut look = || {
            is_synced = self.is_synced(together);
            !is_synced
        };
        let has_right = disk::lock_while(&*together.right, wait, &pause, &mut look).unwrap_or(false);
        if is_synced || (has_right && self.is_synced(together)) {
            // What else was found in the log meanwhile is told as after any sync.
            return (self.check_writable().map(|()| self.durable), has_right);
        }
        if has_right {
            // Having read on, it is a sync for all who wrote until now.
            drop(self.catch_up_meanwhile());
        } else {
            together.in_vain = Some(together.said());
        }
        let result = self.sync_now();
        if has_right && result.is_ok() {
            together.say(self.size(), self.end.root);
        }
        (result, has_right)
    }

    /// Tells whether somebody synced what this handle waits for.
    fn is_synced(&mut self, together: &Together) -> bool {
        let Some(said) = together.said() else { return false };
        if said.size > self.size() {
            // Read when there is a reason, and not each time somebody looks. A failure shows once more when this handle
            // appends.
            drop(self.catch_up(false));
        }
        let is_so = self.ends.contains(&(said.size, said.root));
        if is_so {
            self.durable = self.durable.max(said.size);
        }
        is_so
    }
}
