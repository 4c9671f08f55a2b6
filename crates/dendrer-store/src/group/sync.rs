//! Making durable what a handle appended.
//!
//! A sync covers every segment that this handle wrote to and has not seen synced: the last one, mostly, as a segment is synced
//! before the next is begun.

use std::io;
use std::sync::Arc;

use dendrer_object::Digest;

use super::syncs::{Syncs, Work};
use super::together::Together;
use crate::disk::DiskFile;
use crate::embedded::Embedded;
use crate::error::StoreError;
use crate::store::Ticket;

/// How far the log of a handle is on disk, and what the handle knows of the syncs that made it so.
#[derive(Debug, Default)]
pub(crate) struct Durable {
    /// The size that is known to be on disk.
    pub(crate) size: u64,
    /// The size that syncs of this handle itself cover, or what it may believe: what others say of their own syncs may be of a
    /// file that they opened after writing it back had failed.
    pub(super) own: u64,
    /// The segment of the first group that this handle appended and did not sync yet.
    pub(super) unsynced: Option<u32>,
    /// The segment of which the directory entry is known to be on disk.
    named: Option<u32>,
    pub(crate) syncs: Arc<Syncs>,
    pub(super) together: Option<Together>,
    /// How many groups others committed since this handle was opened, or last asked to share a sync.
    pub(super) others: usize,
    /// Whether the last group that this handle knows is one of its own.
    pub(super) ends_with_own: bool,
    /// While a sync is waited for: the size and the root of the tree after each group from that of this handle on.
    pub(super) ends: Vec<(u64, Digest)>,
}

impl Durable {
    /// Notes what another handle wrote that its size is on disk.
    pub(crate) fn learn(&mut self, size: u64) {
        self.size = self.size.max(size);
    }

    /// Notes that the handle is open: what was in the log before is not for it to answer for.
    pub(crate) fn opened(&mut self, size: u64) {
        (self.others, self.own) = (0, size);
    }

    /// Notes a group of this handle.
    pub(crate) fn appended(&mut self, segment: u32) {
        self.unsynced.get_or_insert(segment);
        self.ends_with_own = true;
    }

    /// Notes groups of other handles: the size and the root of the tree after each.
    pub(crate) fn caught_up(&mut self, ends: &mut Vec<(u64, Digest)>) {
        self.others += ends.len();
        self.ends_with_own = false;
        if !self.ends.is_empty() {
            self.ends.append(ends);
        }
    }
}

impl Embedded {
    /// Returns what syncs the last segment, earlier ones that this handle wrote to since its last sync, and for a new one its
    /// directory and that of the store. `None` if there is nothing to sync.
    fn work(&self) -> Result<Option<Work>, StoreError> {
        let segment = self.end.segment;
        if self.durable.size >= self.size() {
            return Ok(None);
        }
        let file = |number| {
            let file = self.segments.file(number)?;
            file.ok_or_else(|| self.segments.io("sync", number, io::ErrorKind::NotFound.into()))
        };
        // The process that began the last segment synced the ones before it, and may not have been told of a failure
        // that this handle would be told of.
        let first = self.durable.unsynced.map_or(segment, |first| first.min(segment));
        let files: Vec<_> = (first..=segment).map(file).collect::<Result<_, StoreError>>()?;
        let is_named = self.durable.named.is_some_and(|named| named >= segment);
        // The process that created the segment, or the store, may have been killed before its name was on disk.
        let dirs = || [self.segments.dir().to_owned(), self.dir.clone()];
        let (dirs, disk) = ((!is_named).then(dirs), Arc::clone(&self.options.disk));
        Ok(Some(Box::new(move || {
            files.iter().try_for_each(|file| file.sync())?;
            dirs.iter().flatten().try_for_each(|dir| disk.sync_dir(dir))
        })))
    }

    /// Asks for a sync of what was appended. The thread that waits for the ticket does the sync.
    pub(crate) fn ask_for_sync(&self) -> Result<Ticket, StoreError> {
        self.check_writable()?;
        // The newest request covers the others: it begins with the first segment that is not known to be synced.
        let number = self.work()?.map_or(0, |work| self.durable.syncs.ask(self.end.segment, work));
        Ok(Ticket { number, size: self.size() })
    }

    /// Waits for the sync of a ticket. Returns the size that is known to be on disk.
    pub(crate) fn end_sync(&mut self, ticket: &Ticket) -> Result<u64, StoreError> {
        self.check_owner()?;
        if !self.durable.syncs.is_asked(ticket.number) {
            return Err(StoreError::Unsupported("a ticket is waited for by the store that gave it out"));
        }
        let synced = match ticket.number {
            0 => Ok(None),
            number => self.durable.syncs.wait(number).map(Some),
        };
        let segment = synced.map_err(|why| {
            self.set_trouble(StoreError::SyncFailed { why: why.clone() });
            StoreError::SyncFailed { why }
        })?;
        // An earlier sync that failed may have lost what this one did not see any more.
        self.check_writable()?;
        let (size, durable) = (self.size(), &mut self.durable);
        durable.learn(ticket.size);
        // If a segment had nothing to sync, it is unknown whether its name is on disk.
        if let Some(segment) = segment {
            durable.own = durable.own.max(ticket.size);
            durable.named = durable.named.max(Some(segment));
            // Of what was appended since, the first may be in this segment.
            durable.unsynced = (ticket.size < size).then_some(segment);
        }
        Ok(durable.size)
    }

    /// Syncs a file for a reason of its own. If that fails, what others wait for may be lost too, and no later sync reports it.
    pub(crate) fn sync_file(&self, file: &dyn DiskFile) -> io::Result<()> {
        self.durable.syncs.run_beside(|| file.sync())
    }

    pub(crate) fn sync_now(&mut self) -> Result<u64, StoreError> {
        self.sync_to(self.size())
    }

    /// Syncs, and counts as on disk what is before `size`.
    pub(super) fn sync_to(&mut self, size: u64) -> Result<u64, StoreError> {
        let ticket = self.ask_for_sync()?;
        self.end_sync(&Ticket { size, ..ticket })
    }
}
