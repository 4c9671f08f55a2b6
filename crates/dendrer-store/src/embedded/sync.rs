//! Making durable what was appended, now or in the background.
//!
//! A sync covers the last segment: all earlier ones were synced before it was begun.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use super::Embedded;
use crate::contract::{SyncOutcome, SyncTicket};
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;

/// What is to be synced: the last segment, earlier ones that this handle wrote to since its last sync, and for a new one its
/// directory and that of the store.
pub(super) struct Job {
    files: Vec<Arc<dyn DiskFile>>,
    dirs: Option<(Arc<dyn Disk>, [PathBuf; 2])>,
}

impl Job {
    fn run(&self) -> io::Result<()> {
        self.files.iter().try_for_each(|file| file.sync())?;
        match &self.dirs {
            Some((disk, dirs)) => dirs.iter().try_for_each(|dir| disk.sync_dir(dir)),
            None => Ok(()),
        }
    }
}

/// The thread that syncs.
pub(super) struct Syncer {
    jobs: Option<Sender<(Job, Arc<SyncOutcome>)>>,
    /// Ends with why a sync failed, if one did.
    thread: Option<JoinHandle<Option<String>>>,
}

impl Syncer {
    fn start() -> io::Result<Syncer> {
        let (jobs, queue) = channel::<(Job, Arc<SyncOutcome>)>();
        let work = move || {
            let mut failed: Option<String> = None;
            while let Ok(first) = queue.recv() {
                // Whoever came while the disk was busy shares the next sync. What was asked for last covers the rest: all
                // earlier segments were synced before a new one was begun.
                let waiting: Vec<_> = std::iter::once(first).chain(queue.try_iter()).collect();
                let (job, _) = waiting.last().expect("one at least");
                // The system reports a failure once. A later sync that succeeds would say nothing about it.
                let result = match &failed {
                    Some(why) => Err(why.clone()),
                    None => job.run().map_err(|error| error.to_string()),
                };
                failed = result.as_ref().err().cloned();
                waiting.iter().for_each(|(_, outcome)| outcome.set(result.clone()));
            }
            failed
        };
        let thread = std::thread::Builder::new().name("dendrer-sync".into()).spawn(work)?;
        Ok(Syncer { jobs: Some(jobs), thread: Some(thread) })
    }
}

impl Syncer {
    /// Waits until everything is synced that was asked for. A failure that nobody waited for must not be forgotten.
    pub(super) fn end(mut self) -> Result<(), String> {
        self.jobs = None;
        match self.thread.take().and_then(|thread| thread.join().ok()).flatten() {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Embedded {
    fn job(&self) -> Result<Option<Job>, StoreError> {
        let segment = self.end.segment;
        if self.durable >= self.size() {
            return Ok(None);
        }
        let file = |number| {
            let file = self.segments.file(number)?;
            file.ok_or_else(|| self.segments.io("sync", number, io::ErrorKind::NotFound.into()))
        };
        // Whoever began the last one synced those before, and may not have been told what this handle would be.
        let first = self.unsynced.map_or(segment, |first| first.min(segment));
        let files = (first..=segment).map(file).collect::<Result<_, StoreError>>()?;
        let is_named = self.named.is_some_and(|named| named >= segment);
        // Whoever made the segment, or the store, may have been killed before the name of it was on disk.
        let dirs = || (Arc::clone(&self.options.disk), [self.segments.dir().to_owned(), self.dir.clone()]);
        Ok(Some(Job { files, dirs: (!is_named).then(dirs) }))
    }

    pub(super) fn begin_sync(&mut self) -> Result<SyncTicket, StoreError> {
        self.check_writable()?;
        let size = self.size();
        let segment = self.end.segment;
        let Some(job) = self.job()? else {
            return Ok(SyncTicket::done(size));
        };
        let outcome = Arc::new(SyncOutcome::default());
        if self.syncer.is_none() {
            self.syncer = Syncer::start().ok();
        }
        match self.syncer.as_ref().and_then(|syncer| syncer.jobs.as_ref()) {
            Some(jobs) => {
                jobs.send((job, Arc::clone(&outcome))).expect("the thread lives as long as its queue");
            }
            // Without a thread it is done here and now.
            None => {
                let result = job.run().map_err(|error| error.to_string());
                if let Err(why) = &result {
                    // A later sync that succeeds would say nothing about it.
                    self.set_trouble(StoreError::SyncFailed { why: why.clone() });
                }
                outcome.set(result);
            }
        }
        Ok(SyncTicket { size, segment: Some(segment), outcome })
    }

    pub(super) fn end_sync(&mut self, ticket: SyncTicket) -> Result<u64, StoreError> {
        self.check_owner()?;
        let result = ticket.outcome.wait();
        self.synced(ticket.size, ticket.segment, result)
    }

    pub(super) fn sync_now(&mut self) -> Result<u64, StoreError> {
        self.sync_to(self.size())
    }

    /// Syncs, and counts as on disk what is before `size`.
    pub(super) fn sync_to(&mut self, size: u64) -> Result<u64, StoreError> {
        if self.syncer.is_some() {
            // Behind whatever is under way there, so that its failure is not missed.
            let ticket = self.begin_sync()?;
            return self.end_sync(ticket);
        }
        self.check_writable()?;
        let Some(job) = self.job()? else { return Ok(self.durable) };
        let result = job.run().map_err(|error| error.to_string());
        self.synced(size, Some(self.end.segment), result)
    }

    /// Takes note of a sync. Of a segment that had nothing to be synced nobody knows whether its name is on disk.
    fn synced(
        &mut self,
        size: u64,
        segment: Option<u32>,
        result: Result<(), String>,
    ) -> Result<u64, StoreError> {
        match result {
            Ok(()) => {
                // An earlier sync that failed may have lost what this one did not see any more.
                self.check_writable()?;
                self.durable = self.durable.max(size);
                if let Some(segment) = segment {
                    self.own_durable = self.own_durable.max(size);
                    self.named = self.named.max(Some(segment));
                    // Of what was appended since, the first may stand in this segment.
                    self.unsynced = (size < self.size()).then_some(segment);
                }
                Ok(self.durable)
            }
            Err(why) => {
                self.set_trouble(StoreError::SyncFailed { why: why.clone() });
                Err(StoreError::SyncFailed { why })
            }
        }
    }
}
