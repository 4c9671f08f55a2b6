//! Appending a group: one buffer, one write.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::PoisonError;

use dendrer_object::json::RECORD_SIZE_MAX;
use dendrer_object::merkle::{Peaks, leaf_hashes};
use dendrer_object::{Digest, Record, RunName};

use super::{Changed, Embedded, LogEnd};
use crate::disk::{self, Open};
use crate::error::StoreError;
use crate::fence::{self, Known, Log};
use crate::frame::{self, At, Commit};
use crate::index::Index;
use crate::layout::{self, SEGMENT_HEADER, SegmentHeader};
use crate::segments::Segments;
use crate::store::{GroupEnd, RunSummary, Tag, TreeHead};
use crate::tail::Row;
use crate::values::{ChunkKey, Chunks, INLINE_MAX, Writer};

/// How large a group may be, so that offsets in a segment stay within 32 bits.
const GROUP_MAX: u64 = 2 << 30;

/// Appends further frames to a group.
pub(super) type More<'a> = dyn FnMut(&mut Writer<'_>, &mut Vec<u8>) + 'a;

/// The place where a group is about to be written.
struct Spot {
    segment: u32,
    /// The begin of the group: after the header in a segment that begins with it.
    offset: u64,
    /// Whether the segment begins with this group.
    fresh: bool,
}

/// A group, made but not yet written.
struct Made {
    rows: Vec<Row>,
    peaks: Peaks,
    root: Digest,
    tag: Tag,
    learned: HashMap<ChunkKey, u64>,
}

impl Embedded {
    /// Appends a group. The caller holds the lock and has taken in what others committed.
    pub(super) fn append_group(
        &mut self,
        records: &[Record],
        secrets: &[(Digest, Vec<u8>)],
    ) -> Result<Range<u64>, StoreError> {
        let begin = self.size();
        let checked = fence::check(self, self.info.id, begin, records);
        let changed = checked.map_err(|error| self.or_of_the_index(error))?;
        if !secrets.is_empty() {
            self.need_secrets()?;
        }
        let mut put = Vec::with_capacity(secrets.len());
        self.write_group(
            records,
            &mut |writer, out| {
                for (name, bytes) in secrets {
                    let start = layout::write_secret(name, bytes, out);
                    put.push((*name, At::from_u64(writer.position(start))));
                }
            },
            changed,
        )?;
        put.into_iter().for_each(|(name, at)| self.tail.put_secret(name, at));
        Ok(begin..self.size())
    }

    /// Makes and writes a group. `more` appends further frames after the records.
    pub(super) fn write_group(
        &mut self,
        records: &[Record],
        more: &mut More<'_>,
        changed: Changed,
    ) -> Result<(), StoreError> {
        if check_sizes(records)? > INLINE_MAX {
            self.chunks.hash_seen(&self.segments)?;
        }
        let spot = self.spot();
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let made = self.make_group(&spot, records, more, &mut buffer);
        let end = buffer.len() as u64;
        let written = match end {
            0..=GROUP_MAX => self.write_buffer(&spot, &buffer),
            _ => Err(StoreError::TooLarge { what: "a group", size: end, max: GROUP_MAX }),
        };
        // A buffer that was needed once for something huge is not kept for ever.
        buffer.shrink_to(1 << 20);
        self.buffer = buffer;
        written?;
        self.take_made(made, &spot, end, changed);
        Ok(())
    }

    fn spot(&self) -> Spot {
        let LogEnd { segment, offset, .. } = self.end;
        if offset > self.options.segment_size && offset > SEGMENT_HEADER as u64 {
            Spot { segment: segment + 1, offset: SEGMENT_HEADER as u64, fresh: true }
        } else {
            Spot { segment, offset, fresh: false }
        }
    }

    fn make_group(&self, spot: &Spot, records: &[Record], more: &mut More<'_>, buffer: &mut Vec<u8>) -> Made {
        if spot.fresh {
            let header = SegmentHeader { store: self.info.id, number: spot.segment, start: self.size() };
            buffer.extend_from_slice(&header.write());
        }
        let group = buffer.len();
        let base = spot.offset - group as u64;
        let known = Lookup { index: self.usable_chunks(), segments: &self.segments, chunks: &self.chunks };
        let lookup = |key: &ChunkKey| known.find(key);
        let mut writer = Writer {
            origin: At::new(spot.segment, base),
            chunks: &self.chunks,
            lookup: &lookup,
            fresh: HashMap::new(),
        };
        let mut peaks = self.end.peaks.clone();
        let mut rows = Vec::with_capacity(records.len());
        for record in records {
            let values = put_record(record, &mut writer, buffer);
            rows.push(Row::new(At::from_u64(values), record.id(), record.header()));
        }
        let entries: Vec<Vec<u8>> = records.iter().map(Record::entry).collect();
        peaks.extend(leaf_hashes(&entries));
        more(&mut writer, buffer);
        let root = peaks.root();
        let tag = self.writer.tag(self.info.id, TreeHead { size: peaks.size(), root });
        let commit = Commit {
            count: records.len() as u32,
            size: peaks.size(),
            synced: self.durable.size.min(self.size()),
            length: (buffer.len() - group) as u64,
            root,
            tag,
        };
        let learned = writer.fresh;
        commit.write(buffer);
        Made { rows, peaks, root, tag, learned }
    }

    /// The index, where its knowledge of chunks is not void because of an erasure that it does not cover yet.
    fn usable_chunks(&self) -> Option<&Index> {
        self.index.as_deref().filter(|_| !self.tail.has_opened())
    }

    fn write_buffer(&mut self, spot: &Spot, buffer: &[u8]) -> Result<(), StoreError> {
        let number = spot.segment;
        let start = if spot.fresh { 0 } else { spot.offset };
        if spot.fresh {
            // A group in a later segment must not outlive one in an earlier segment.
            self.sync_now()?;
            let path = self.segments.path(number);
            let io = |error| StoreError::io("create", &path, error);
            let file = self.options.disk.open(&path, Open::Create).map_err(io)?;
            self.segments.put_file(number, file);
        }
        let file = self
            .segments
            .file(number)?
            .ok_or_else(|| self.segments.io("open", number, std::io::ErrorKind::NotFound.into()))?;
        let Err(error) = disk::write_all(&*file, buffer, start) else { return Ok(()) };
        let error = self.segments.io("write", number, error);
        // The written part of it is removed, durably: its bytes must not show through under a later group.
        if let Err(second) = file.set_len(start).and_then(|()| self.sync_file(&*file)) {
            let why =
                StoreError::SyncFailed { why: format!("a failed write could not be taken back: {second}") };
            self.set_trouble(why);
        }
        Err(error)
    }

    fn take_made(&mut self, made: Made, spot: &Spot, size: u64, changed: Changed) {
        let end = if spot.fresh { size } else { spot.offset + size };
        for row in made.rows {
            self.tail.push(row);
        }
        self.chunks.learn(made.learned);
        let segment = spot.segment;
        let (peaks, root) = (made.peaks, made.root);
        let tree = TreeHead { size: peaks.size(), root };
        self.look_at(&GroupEnd { begin: self.size(), tree, tag: made.tag });
        self.durable.appended(segment);
        self.end = LogEnd { segment, offset: end, peaks, root };
        self.summaries.get_mut().unwrap_or_else(PoisonError::into_inner).extend(changed);
    }
}

/// Chunks that the index knows. Each is read before it is used: the index is derived and may be wrong.
struct Lookup<'a> {
    index: Option<&'a Index>,
    segments: &'a Segments,
    chunks: &'a Chunks,
}

impl Lookup<'_> {
    fn find(&self, key: &ChunkKey) -> Option<u64> {
        let position = self.index?.chunk(key).ok()??;
        let found = self.segments.read_shared(position).ok()??;
        (self.chunks.key.of(found.0, &found.1) == *key).then_some(position)
    }
}

fn texts(record: &Record) -> impl Iterator<Item = &[u8]> {
    record.body().fields().iter().filter_map(|field| record.body().text(field))
}

/// Checks what the layout cannot hold; returns the size of the largest value.
fn check_sizes(records: &[Record]) -> Result<usize, StoreError> {
    let (mut total, mut largest) = (0, 0);
    for record in records {
        let header = record.header_text().len();
        if header > frame::PAYLOAD_MAX {
            let (size, max) = (header as u64, frame::PAYLOAD_MAX as u64);
            return Err(StoreError::TooLarge { what: "the header of a record", size, max });
        }
        let mut values = 0;
        for text in texts(record) {
            values += text.len();
            largest = largest.max(text.len());
        }
        if values > RECORD_SIZE_MAX {
            let (size, max) = (values as u64, RECORD_SIZE_MAX as u64);
            return Err(StoreError::TooLarge { what: "the values of a record", size, max });
        }
        total += (header + values) as u64;
    }
    if total > GROUP_MAX {
        return Err(StoreError::TooLarge { what: "a group", size: total, max: GROUP_MAX });
    }
    Ok(largest)
}

/// Writes the frames of a record, and returns the position of its values.
fn put_record(record: &Record, writer: &mut Writer<'_>, out: &mut Vec<u8>) -> u64 {
    let body = record.body();
    let is_whole = body.fields().iter().all(|field| body.text(field).is_some());
    let position = match body.seed().filter(|_| is_whole) {
        Some(seed) => {
            // Chunks stand before the values that name them.
            let mut large =
                texts(record).filter_map(|text| slot(text, writer, out)).collect::<Vec<_>>().into_iter();
            let start = frame::begin(out, frame::VALUES);
            out.extend_from_slice(&seed.0);
            for text in texts(record) {
                let slot = if text.len() > INLINE_MAX { large.next() } else { None };
                put_slot(&slot, text, out);
            }
            frame::end(out, start);
            writer.position(start)
        }
        None => put_opened(record, None, writer, out),
    };
    let start = frame::begin(out, frame::RECORD);
    layout::write_record(record, out);
    frame::end(out, start);
    position
}

/// Writes an opened frame: what is left of a record of which a value is gone. Returns its position.
pub(super) fn put_opened(
    record: &Record,
    replaces: Option<u64>,
    writer: &mut Writer<'_>,
    out: &mut Vec<u8>,
) -> u64 {
    let body = record.body();
    let slots: Vec<_> =
        body.fields().iter().map(|field| body.text(field).map(|text| slot(text, writer, out))).collect();
    let start = frame::begin(out, frame::OPENED);
    layout::write_opened_head(&record.id(), replaces, out);
    for (index, (field, slot)) in body.fields().iter().zip(&slots).enumerate() {
        let open = slot.as_ref().zip(body.text(field)).zip(body.salt(index));
        layout::write_opened_field(field, open.as_ref().map(|(_, salt)| *salt), out);
        if let Some(((slot, text), _)) = open {
            put_slot(slot, text, out);
        }
    }
    frame::end(out, start);
    writer.position(start)
}

/// Writes the chunks of a large value, and returns where they are.
fn slot(text: &[u8], writer: &mut Writer<'_>, out: &mut Vec<u8>) -> Option<Vec<u64>> {
    (text.len() > INLINE_MAX).then(|| writer.write(text, out))
}

fn put_slot(slot: &Option<Vec<u64>>, text: &[u8], out: &mut Vec<u8>) {
    match slot {
        Some(positions) => layout::write_list(positions, out),
        None => layout::write_inline(text, out),
    }
}

impl Log for Embedded {
    fn summary(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        let summary = self.run_summary(run)?;
        if summary.is_none() {
            self.check_names()?;
        }
        Ok(summary)
    }

    fn known(&self, id: &Digest) -> Result<Option<Known>, StoreError> {
        Ok(self.find_known(id)?.map(|(_, known)| known))
    }
}
