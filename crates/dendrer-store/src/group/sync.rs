//! Making durable what was appended, now or in the background.
//!
//! A sync covers every segment that this handle wrote to and has not seen synced: the last one, mostly, as a segment is synced
//! before the next is begun.

use std::io;
use std::sync::Arc;

use super::Embedded;
use crate::disk::DiskFile;
use crate::error::StoreError;
use crate::group::syncs::Work;
use crate::store::Ticket;

impl Embedded {
    /// Returns what syncs the last segment, earlier ones that this handle wrote to since its last sync, and for a new one its
    /// directory and that of the store. `None` where there is nothing to sync.
    fn work(&self) -> Result<Option<Work>, StoreError> {
        let segment = self.end.segment;
        if self.durable >= self.size() {
            return Ok(None);
        }
        let file = |number| {
            let file = self.segments.file(number)?;
            file.ok_or_else(|| self.segments.io("sync", number, io::ErrorKind::NotFound.into()))
        };
        // The process that began the last segment synced the ones before it, and may not have been told of a failure
        // that this handle would be told of.
        let first = self.unsynced.map_or(segment, |first| first.min(segment));
        let files: Vec<_> = (first..=segment).map(file).collect::<Result<_, StoreError>>()?;
        let is_named = self.named.is_some_and(|named| named >= segment);
        // The process that created the segment, or the store, may have been killed before its name was on disk.
        let dirs = || [self.segments.dir().to_owned(), self.dir.clone()];
        let (dirs, disk) = ((!is_named).then(dirs), Arc::clone(&self.options.disk));
        Ok(Some(Box::new(move || {
            files.iter().try_for_each(|file| file.sync())?;
            dirs.iter().flatten().try_for_each(|dir| disk.sync_dir(dir))
        })))
    }

    /// Asks for a sync of what was appended. The thread that waits for the ticket does the sync.
    pub(super) fn ask_for_sync(&mut self) -> Result<Ticket, StoreError> {
        self.check_writable()?;
        let (size, segment) = (self.size(), self.end.segment);
        let Some(work) = self.work()? else {
            return Ok(Ticket { number: 0, size });
        };
        // What was asked for last covers the rest: it begins with the first segment that is not known to be synced.
        let number = self.syncer.get_or_insert_default().syncs().ask(work);
        if self.asked.last().is_none_or(|(_, last)| *last != segment) {
            self.asked.push((number, segment));
        }
        Ok(Ticket { number, size })
    }

    /// Asks for a sync, and has it done in the background.
    pub(super) fn begin_sync(&mut self) -> Result<Ticket, StoreError> {
        let ticket = self.ask_for_sync()?;
        if let (Some(syncer), 1..) = (&mut self.syncer, ticket.number) {
            syncer.start();
        }
        Ok(ticket)
    }

    /// Waits for the sync of a ticket. Returns the size that is known to be on disk.
    pub(super) fn end_sync(&mut self, ticket: &Ticket) -> Result<u64, StoreError> {
        self.check_owner()?;
        if ticket.number == 0 {
            return self.synced(ticket.size, None, Ok(()));
        }
        let syncs = self.syncer.as_ref().map(|syncer| Arc::clone(syncer.syncs()));
        let Some(syncs) = syncs.filter(|syncs| syncs.is_asked(ticket.number)) else {
            return Err(StoreError::Unsupported("a ticket is waited for by the store that gave it out"));
        };
        let result = syncs.wait(ticket.number);
        // The newest segment that the sync covered; those before it are asked for no more.
        let asked = self.asked.partition_point(|(first, _)| *first <= ticket.number);
        let segment = asked.checked_sub(1).map(|last| self.asked[last].1);
        self.asked.drain(..asked.saturating_sub(1));
        self.synced(ticket.size, segment, result)
    }

    /// Syncs a file for a reason of its own. Where that fails, what others wait for may be lost too, and no later sync says so.
    pub(super) fn sync_file(&self, file: &dyn DiskFile) -> io::Result<()> {
        match &self.syncer {
            Some(syncer) => syncer.syncs().run_beside(|| file.sync()),
            None => file.sync(),
        }
    }

    pub(super) fn sync_now(&mut self) -> Result<u64, StoreError> {
        self.sync_to(self.size())
    }

    /// Syncs, and counts as on disk what is before `size`.
    pub(super) fn sync_to(&mut self, size: u64) -> Result<u64, StoreError> {
        if self.syncer.is_some() {
            // After whatever is under way there, so that its failure is not missed.
            let ticket = self.ask_for_sync()?;
            return self.end_sync(&ticket);
        }
        self.check_writable()?;
        let Some(work) = self.work()? else { return Ok(self.durable) };
        let result = work().map_err(|error| error.to_string());
        self.synced(size, Some(self.end.segment), result)
    }

    /// Records a sync. If a segment had nothing to sync, it is unknown whether its name is on disk.
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
