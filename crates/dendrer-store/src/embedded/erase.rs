//! Destroying values: commit what is left of a record, then overwrite what is not.
//!
//! The order makes a crash harmless: once the opened frame is on disk, readers use it, and the next lock holder
//! finishes the rest. Values go last, because they are what leads to their chunks.

use std::collections::{BTreeMap, BTreeSet};

use dendrer_object::{Digest, Pointer, Record};

use super::Embedded;
use super::append::put_opened;
use super::read::{Source, assemble};
use super::sealing::seal;
use crate::disk;
use crate::error::StoreError;
use crate::fence;
use crate::frame::{self, At, Fault, Step};
use crate::index;
use crate::layout::{self, RecordFrame, SEGMENT_HEADER, Slot};
use crate::memory::check_erase;
use crate::segments::Read;
use crate::store::{EraseValues, ReadLog as _};
use crate::values;

/// How much is read at once.
const WINDOW: usize = 1 << 20;

/// The frames that erasures overwrite.
#[derive(Debug, Default)]
pub(super) struct Doomed {
    /// Values and opened frames that were replaced.
    values: BTreeSet<u64>,
    /// Chunks and lists that those use; others may use them too.
    shared: BTreeSet<u64>,
    /// Both.
    pub(super) all: BTreeSet<u64>,
}

impl EraseValues for Embedded {
    fn erase(&mut self, record: &Record, targets: &[(u64, Vec<Pointer>)]) -> Result<u64, StoreError> {
        check_erase(record)?;
        let position = self.locked_behind_tags(|store| store.erase_locked(record, targets))?;
        self.forget_in_index()?;
        Ok(position)
    }
}

impl Embedded {
    fn erase_locked(&mut self, record: &Record, targets: &[(u64, Vec<Pointer>)]) -> Result<u64, StoreError> {
        let mut places: BTreeMap<u64, Vec<Pointer>> = BTreeMap::new();
        for (position, more) in targets {
            places.entry(*position).or_default().extend(more.iter().cloned());
        }
        let mut left = Vec::with_capacity(places.len());
        for (position, places) in &places {
            let target = self.get(*position)?.ok_or(StoreError::NoPosition(*position))?;
            let replaces = match self.opened(&target.id(), *position)? {
                Some(opened) => opened,
                None => self.locate(*position)?.ok_or(StoreError::NoPosition(*position))?,
            };
            // An erasure of anything else would be acknowledged, and the values stay.
            let (first, second, _) = self.segments.read_two(replaces)?;
            let holds = match &first {
                Read::Frame(frame::OPENED, payload) => {
                    layout::opened_head(payload).is_some_and(|(about, ..)| about == target.id())
                }
                Read::Frame(frame::VALUES, _) => self.is_record(&second, &target.id()),
                _ => false,
            };
            if !holds {
                return Err(self.astray(*position, replaces));
            }
            left.push((target.without(places), Some(replaces.to_u64())));
        }
        let position = self.size();
        let group = std::slice::from_ref(record);
        let changed = fence::check(self, self.info.id, position, group)?;
        // Bytes that are about to be overwritten must be seen to have been on disk, not to be an unfinished end.
        self.sync_now()?;
        let mut opened = Vec::with_capacity(left.len());
        self.write_group(
            group,
            &mut |writer, out| {
                opened.clear();
                for (left, replaces) in &left {
                    let at = At::from_u64(put_opened(left, *replaces, writer, out));
                    opened.push((left.id(), at));
                }
            },
            changed,
        )?;
        for (id, at) in &opened {
            self.tail.open(*id, *at);
            self.note_erasure(*at, self.size());
        }
        self.chunks.clear();
        self.segments.forget();
        self.sync_now()?;
        self.finish_erasures()?;
        Ok(position)
    }

    /// Overwrites the frames that opened frames took the place of, and the chunks and lists that only those used. May
    /// be done again after a crash.
    pub(super) fn destroy(&mut self, opened: &[At]) -> Result<(), StoreError> {
        let mut doomed = self.doomed(opened)?;
        if !doomed.shared.is_empty() {
            self.keep_living(&mut doomed)?;
        }
        let (mut chunks, mut lists) = (Vec::new(), Vec::new());
        for position in doomed.shared {
            match self.segments.read(At::from_u64(position))? {
                Read::Frame(frame::VOID, _) => {}
                Read::Frame(frame::LIST, _) => lists.push(position),
                _ => chunks.push(position),
            }
        }
        self.segments.forget();
        // A list must stay readable until the chunks that it names are gone, and values until both are.
        self.void(chunks)?;
        self.void(lists)?;
        self.void(doomed.values)
    }

    /// Returns which frame an opened frame takes the place of: one of the same record and before it. A log that came from
    /// elsewhere may name any place there, and nothing that others committed is destroyed on its word.
    pub(super) fn replaced_by(&self, opened: At) -> Result<Option<At>, StoreError> {
        let Read::Frame(frame::OPENED, payload) = self.segments.read(opened)? else { return Ok(None) };
        let Some((record, Some(replaced), _)) = layout::opened_head(&payload) else { return Ok(None) };
        let replaced = At::from_u64(replaced);
        if replaced >= opened {
            return Ok(None);
        }
        let (first, second, _) = self.segments.read_two(replaced)?;
        let is_its = match &first {
            Read::Frame(frame::VOID, _) => true,
            Read::Frame(frame::OPENED, payload)
                if layout::opened_head(payload).is_some_and(|(about, ..)| about == record) =>
            {
                true
            }
            // The record comes after its values, also while these are being overwritten.
            _ if self.is_record(&second, &record) => true,
            // Of an opened frame that is being overwritten nothing tells any more whose it was.
            Read::Broken(head, _) if matches!(head.kind, frame::OPENED | frame::VOID) => {
                let mut is_frame = false;
                self.each_frame_from((replaced.segment, SEGMENT_HEADER as u64), &mut |at, _, _| {
                    is_frame |= at == replaced;
                })?;
                is_frame
            }
            _ => false,
        };
        Ok((is_its && self.is_left_of(opened, &payload, &record)? != Some(false)).then_some(replaced))
    }

    /// Tells whether an opened frame is what is left of a record: sealed with what it closes, it has the id of that. Nothing is
    /// destroyed for the sake of one that is not. `None` where this handle does not know the record, as of a copy that is made.
    pub(super) fn is_left_of(
        &self,
        opened: At,
        payload: &[u8],
        id: &Digest,
    ) -> Result<Option<bool>, StoreError> {
        let Some(position) = self.find(id)? else { return Ok(None) };
        let Some(values) = self.locate(position)? else { return Ok(None) };
        let (_, second, _) = self.segments.read_two(values)?;
        let Read::Frame(frame::RECORD, record) = &second else { return Ok(None) };
        let Some(record) = RecordFrame::parse(record, self.info.id) else { return Ok(None) };
        let source = Source { at: opened, kind: frame::OPENED, payload };
        Ok(Some(assemble(&self.segments, &source, &record)?.is_ok_and(|raw| seal(raw, opened).is_ok())))
    }

    fn is_record(&self, read: &Read, id: &Digest) -> bool {
        matches!(read, Read::Frame(frame::RECORD, payload)
            if RecordFrame::parse(payload, self.info.id).is_some_and(|frame| frame.id == *id))
    }

    /// Finds what erasures are about to overwrite, or have begun to.
    pub(super) fn doomed(&self, opened: &[At]) -> Result<Doomed, StoreError> {
        let mut doomed = Doomed::default();
        for at in opened {
            let Some(replaced) = self.replaced_by(*at)? else { continue };
            doomed.values.insert(replaced.to_u64());
            self.visit_shared(replaced, &mut |position| doomed.shared.insert(position))?;
        }
        doomed.all = doomed.values.union(&doomed.shared).copied().collect();
        Ok(doomed)
    }

    /// Takes out what a living value uses.
    fn keep_living(&self, doomed: &mut Doomed) -> Result<(), StoreError> {
        let mut living = Vec::new();
        self.each_frame(&mut |at, kind, payload| {
            // Frames that earlier erasures replaced are void by now, so a frame that is there and not doomed is living.
            if !doomed.values.contains(&at.to_u64()) && has_list(kind, payload) {
                living.push(at);
            }
        })?;
        let mut looked_into: BTreeSet<u64> = BTreeSet::new();
        for at in living {
            self.visit_shared(at, &mut |position| {
                doomed.shared.remove(&position);
                looked_into.insert(position)
            })?;
        }
        Ok(())
    }

    /// Hands over the chunks and lists that the values of a frame use.
    fn visit_shared(&self, at: At, f: &mut dyn FnMut(u64) -> bool) -> Result<(), StoreError> {
        let Read::Frame(kind, payload) = self.segments.read(at)? else { return Ok(()) };
        for slot in slots(kind, &payload) {
            values::visit(&self.segments, &slot, f)?;
        }
        Ok(())
    }

    /// Overwrites frames in place, and makes that durable.
    pub(super) fn void(&self, positions: impl IntoIterator<Item = u64>) -> Result<(), StoreError> {
        let mut touched = BTreeSet::new();
        for position in positions {
            let at = At::from_u64(position);
            // A frame that is void already was overwritten by someone who may not have come to sync it.
            touched.insert(at.segment);
            let len = match self.segments.read(at)? {
                Read::Frame(frame::VOID, _) => continue,
                Read::Frame(_, payload) => payload.len() as u32,
                Read::Broken(head, _) => head.len,
                Read::Short => continue,
            };
            let io = |error| self.segments.io("overwrite", at.segment, error);
            let Some(file) = self.segments.file(at.segment)? else { continue };
            disk::write_all(&*file, &frame::void(len, 0), at.offset.into()).map_err(io)?;
        }
        self.sync_segments(touched)
    }

    /// Makes durable what was overwritten in segments.
    pub(super) fn sync_segments(&self, segments: BTreeSet<u32>) -> Result<(), StoreError> {
        for segment in segments {
            let io = |error: std::io::Error| StoreError::SyncFailed { why: error.to_string() };
            if let Some(file) = self.segments.file(segment)? {
                self.sync_file(&*file).map_err(io)?;
            }
        }
        Ok(())
    }

    /// Hands over all frames that can be read, those behind damage too. A frame with a bad checksum has kind 0.
    pub(super) fn each_frame(&self, f: &mut dyn FnMut(At, u8, &[u8])) -> Result<(), StoreError> {
        self.each_frame_from((0, SEGMENT_HEADER as u64), f)
    }

    /// As [`Embedded::each_frame`], from a place between two groups on.
    pub(super) fn each_frame_from(
        &self,
        from: (u32, u64),
        f: &mut dyn FnMut(At, u8, &[u8]),
    ) -> Result<(), StoreError> {
        for segment in self.segments.numbers()?.into_iter().filter(|segment| *segment >= from.0) {
            let begin = if segment == from.0 { from.1 } else { SEGMENT_HEADER as u64 };
            let begin = At::new(segment, begin);
            let Some(mut reader) = self.segments.reader(begin, WINDOW)? else { continue };
            // Bytes after the end are not committed, unless damage keeps this handle from getting there.
            let is_end = |offset| !self.stuck && (segment, offset) >= (self.end.segment, self.end.offset);
            while !is_end(reader.offset()) {
                match reader.next().map_err(|error| self.segments.io("read", segment, error))? {
                    Step::Frame { offset, kind, payload } => f(At::new(segment, offset), kind, payload),
                    Step::Fault { offset, fault: Fault::Checksum { head, .. } } if !head.is_blank() => {
                        f(At::new(segment, offset), 0, &[]);
                        reader.seek(offset + head.size());
                    }
                    Step::Fault { offset, .. } => {
                        let Some(file) = self.segments.file(segment)? else { break };
                        let next = frame::find_commit(&*file, offset, 0);
                        match next.map_err(|error| self.segments.io("read", segment, error))? {
                            Some((next, _)) => reader.seek(next),
                            None => break,
                        }
                    }
                    Step::End { .. } => break,
                }
            }
        }
        Ok(())
    }

    /// Brings the erasure into the index; if that fails, the index goes.
    fn forget_in_index(&mut self) -> Result<(), StoreError> {
        if !self.options.index || !self.index_path().exists() {
            return Ok(());
        }
        if self.update_index().and_then(|()| index::truncate_log(&self.index_path())).is_ok() {
            return Ok(());
        }
        self.index = None;
        let removed = index::remove(&self.index_path());
        // Also where it could not be removed: this handle has no other way to what an index covers.
        self.open_again()?;
        removed
    }
}

fn has_list(kind: u8, payload: &[u8]) -> bool {
    slots(kind, payload).iter().any(|slot| matches!(slot, Slot::List(_)))
}

/// Returns the slots of a values or opened frame.
fn slots(kind: u8, payload: &[u8]) -> Vec<Slot<'_>> {
    let fields = match kind {
        frame::VALUES => layout::parse_values_all(payload),
        frame::OPENED => layout::parse_opened_all(payload).map(|opened| opened.fields),
        _ => None,
    };
    fields.unwrap_or_default().into_iter().filter_map(|field| field.slot).collect()
}
