//! Tags of groups: looked at after the newest checkpoint, before anything is appended or signed after them.

use std::ops::{ControlFlow, Range};
use std::sync::PoisonError;

use dendrer_object::keys::LogKeys;
use dendrer_object::record::Kind;

use super::Embedded;
use crate::error::StoreError;
use crate::frame::{self, At, Commit, Fault, Step};
use crate::layout::SEGMENT_HEADER;
use crate::memory::check_adopted;
use crate::store::{GroupEnd, Tags, TreeHead, WriterSecret, take_key};

/// How many records of no run are listed at once.
const LISTED: usize = 1024;

/// How much is read at once.
const WINDOW: usize = 1 << 20;

impl Embedded {
    /// Looks at the tag of a group that was just read or written.
    pub(super) fn look_at(&mut self, group: &GroupEnd) {
        if let Some(secret) = self.writer.secret() {
            let tags = self.tags.get_mut().unwrap_or_else(PoisonError::into_inner);
            tags.look(secret, self.info.id, group);
        }
    }

    /// Fails if there is a group without a tag after the newest checkpoint. The caller holds the lock.
    pub(super) fn check_tags(&mut self) -> Result<(), StoreError> {
        if let Some(secret) = self.writer.secret()
            && secret.key() != self.log_keys()?.now()
        {
            // The key was changed since this handle was opened.
            return Err(StoreError::NoWriter);
        }
        match self.looked()? {
            Some(tags) => tags.check(),
            None => Ok(()),
        }
    }

    /// Returns the keys of the log. Each record is looked at once.
    pub(super) fn log_keys(&self) -> Result<LogKeys, StoreError> {
        let mut known = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let size = self.size();
        let begin = || (0, LogKeys::new(self.info.id, self.info.key.clone()));
        let (from, mut keys) = known.take().filter(|(to, _)| *to <= size).unwrap_or_else(begin);
        for position in self.key_records(from)? {
            take_key(&mut keys, position, self.read_record(position), &mut |size| self.root_at(size))?;
        }
        *known = Some((size, keys.clone()));
        Ok(keys)
    }

    /// Returns the positions of the records of kind `key` that belong to no run, from a size on.
    fn key_records(&self, begin: u64) -> Result<Vec<u64>, StoreError> {
        let (mut from, mut found) = (begin, Vec::new());
        while from < self.tail.base {
            let batch = match self.list_beside_runs(from, LISTED) {
                Ok(batch) => batch,
                // The log has all that a damaged index lacks.
                Err(StoreError::Index(_) | StoreError::IndexDamaged(_) | StoreError::IndexLocked) => {
                    return self.key_records_in_log(begin);
                }
                Err(error) => return Err(error),
            };
            let Some((last, _)) = batch.last() else { break };
            from = last + 1;
            found.extend(batch.iter().filter(|(_, kind)| *kind == Kind::Key).map(|(position, _)| *position));
        }
        // The tail has the records after those of the index.
        found.retain(|position| *position < self.tail.base);
        for position in begin.max(self.tail.base)..self.size() {
            let row = self.tail.row(position);
            let is_key = row.is_some_and(|row| row.kind == Kind::Key && row.run.is_none());
            found.extend(is_key.then_some(position));
        }
        Ok(found)
    }

    fn key_records_in_log(&self, from: u64) -> Result<Vec<u64>, StoreError> {
        let (first, mut found) = (At::new(0, SEGMENT_HEADER as u64), Vec::new());
        self.entries_from(first, 0..self.size(), &mut |position, entry| {
            let is_key = entry.kind == Kind::Key && entry.run.is_none() && position >= from;
            found.extend(is_key.then_some(position));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Returns the groups without a tag after the newest checkpoint; `None` without a secret.
    pub(super) fn list_untagged(&self) -> Result<Option<Vec<Range<u64>>>, StoreError> {
        Ok(self.looked()?.map(|tags| tags.untagged().to_vec()))
    }

    /// Returns what was seen of tags up to the end of the log; `None` without a secret.
    fn looked(&self) -> Result<Option<Tags>, StoreError> {
        let Some(secret) = self.writer.secret() else { return Ok(None) };
        if secret.key() != self.log_keys()?.now() {
            return Ok(None);
        }
        let mut tags = self.tags.lock().unwrap_or_else(PoisonError::into_inner);
        self.look_on(secret, &mut tags)?;
        Ok(Some(tags.clone()))
    }

    /// Looks at the groups that were not looked at yet: those that the index covers, and those that were read before the secret
    /// was known.
    fn look_on(&self, secret: &WriterSecret, tags: &mut Tags) -> Result<(), StoreError> {
        tags.pass(self.adopted);
        if tags.looked_to() >= self.size() && tags.untagged().is_empty() {
            return Ok(());
        }
        tags.pass(self.signed_size()?.max(self.log_keys()?.changed_at()));
        let from = tags.looked_to();
        if from < self.size() {
            self.each_end(from, &mut |group| {
                tags.look(secret, self.info.id, group);
                ControlFlow::Continue(())
            })?;
            // Groups that cannot be read have no tag.
            tags.leave(self.size());
        }
        Ok(())
    }

    /// Returns the size of the newest checkpoint that the key of its size signed and that the log has; 0 without such a checkpoint.
    fn signed_size(&self) -> Result<u64, StoreError> {
        let Some((note, kept)) = self.read_checkpoint()? else { return Ok(0) };
        let is_signed = self.log_keys()?.open(&note).is_ok();
        let is_here =
            is_signed && kept.size() <= self.size() && self.root_at(kept.size())? == Some(kept.root());
        Ok(if is_here { kept.size() } else { 0 })
    }

    /// Calls `f` with each group after a size, until it breaks. Frames that cannot be read are passed over.
    pub(super) fn each_end(
        &self,
        from: u64,
        f: &mut dyn FnMut(&GroupEnd) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.frames_from(from, &mut |kind, payload, _| {
            let commit = if kind == frame::COMMIT { Commit::parse(payload) } else { None };
            let Some(commit) = commit.filter(|commit| commit.size > from) else {
                return ControlFlow::Continue(());
            };
            let begin = commit.size.saturating_sub(commit.count.into());
            let tree = TreeHead { size: commit.size, root: commit.root };
            f(&GroupEnd { begin, tree, tag: commit.tag })
        })
    }

    /// Returns the group that holds a record.
    pub(super) fn end_of(&self, position: u64) -> Result<Option<GroupEnd>, StoreError> {
        let mut found = None;
        if position < self.size() {
            self.each_end(position, &mut |group| {
                found = (group.begin <= position).then_some(*group);
                ControlFlow::Break(())
            })?;
        }
        Ok(found)
    }

    /// Calls `f` with kind and payload of each frame from that of the record before a size on, and the place after it, until it
    /// breaks.
    pub(super) fn frames_from(
        &self,
        from: u64,
        f: &mut dyn FnMut(u8, &[u8], At) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut at = match from.checked_sub(1) {
            Some(last) => self.locate_in_log(last)?.ok_or(StoreError::NoPosition(last))?,
            None => At::new(0, SEGMENT_HEADER as u64),
        };
        while at.segment <= self.end.segment {
            let Some(mut reader) = self.segments.reader(at, WINDOW)? else { return Ok(()) };
            loop {
                let step = reader.next().map_err(|error| self.segments.io("read", at.segment, error))?;
                match step {
                    Step::Frame { offset, kind, payload } => {
                        let behind = offset + (frame::HEAD + payload.len()) as u64;
                        if f(kind, payload, At::new(at.segment, behind)).is_break() {
                            return Ok(());
                        }
                    }
                    Step::Fault { offset, fault: Fault::Checksum { head, .. } }
                        if head.kind != frame::COMMIT && !head.is_blank() =>
                    {
                        reader.seek(offset + head.size());
                    }
                    Step::Fault { .. } | Step::End { .. } => break,
                }
            }
            at = At::new(at.segment + 1, SEGMENT_HEADER as u64);
        }
        Ok(())
    }

    /// Lets the groups up to a tree count as tagged.
    pub(super) fn adopt_to(&mut self, to: TreeHead) -> Result<(), StoreError> {
        let found = if to.size > self.size() { None } else { self.root_at(to.size)? };
        check_adopted(found.map(|root| TreeHead { size: to.size, root }), to)?;
        self.adopted = self.adopted.max(to.size);
        Ok(())
    }
}
