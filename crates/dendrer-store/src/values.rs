//! Large values: cut into chunks where their content says, stored once, put together again.
//!
//! A known chunk is named by its position instead of being written again. The knowledge only saves space: a handle
//! without any writes more, and is as right as one that has all.
//!
//! Rule: a position may be reused only while its frame cannot have been erased. Every erasure therefore makes all
//! knowledge void ([`Chunks::clear`]), here and in the index.

use std::collections::HashMap;

use dendrer_object::Digest;
use dendrer_object::json::{RECORD_SIZE_MAX, VALUE_SIZE_MAX};
use fastcdc::v2020::FastCDC;

use crate::error::StoreError;
use crate::frame::{self, At};
use crate::layout::{self, Slot};
use crate::segments::Segments;

/// Values up to this size stand in the slot itself.
pub(crate) const INLINE_MAX: usize = 1024;

/// How deep lists may be nested.
const DEPTH_MAX: usize = 8;

/// How many positions may lead to one value, those of lists included: twice what the smallest chunks of any writer need.
const POSITIONS_MAX: usize = VALUE_SIZE_MAX / 128;

/// A group of positions becomes a list of its own behind a chunk whose checksum ends in so many zero bits, so that an
/// edit in the middle of a value changes few lists, and one at its end few positions.
const GROUP_MASK: u32 = 3;
const GROUP_MIN: usize = 4;
const GROUP_MAX: usize = 32;

/// How many chunks a handle remembers at least.
const KNOWN_MAX: usize = 100_000;

/// The key of a chunk or list: the first half of a digest that cannot be computed without the store's chunk key, so
/// that the index discloses nothing about values to a reader of the index alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ChunkKey(pub(crate) [u8; 16]);

/// The key of the chunk digests of one index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyOfChunks(pub(crate) [u8; 32]);

impl KeyOfChunks {
    pub(crate) fn random() -> KeyOfChunks {
        use ring::rand::SecureRandom as _;
        let mut key = [0; 32];
        ring::rand::SystemRandom::new().fill(&mut key).expect("the system gives random bytes");
        KeyOfChunks(key)
    }

    pub(crate) fn of(&self, kind: u8, payload: &[u8]) -> ChunkKey {
        let digest = Digest::of_parts(&[b"dendrer/chunk/v1\n", &self.0, &[kind], payload]);
        ChunkKey(digest.0[..16].try_into().expect("half of 32 bytes"))
    }
}

impl std::fmt::Debug for KeyOfChunks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyOfChunks(..)")
    }
}

/// Which chunks and lists this handle knows, and where they stand.
#[derive(Debug)]
pub(crate) struct Chunks {
    pub(crate) key: KeyOfChunks,
    young: HashMap<ChunkKey, u64>,
    old: HashMap<ChunkKey, u64>,
    /// Frames seen while the log was scanned; hashed only if a large value is ever appended.
    seen: Vec<u64>,
}

impl Chunks {
    pub(crate) fn new(key: KeyOfChunks) -> Chunks {
        Chunks { key, young: HashMap::new(), old: HashMap::new(), seen: Vec::new() }
    }

    pub(crate) fn see(&mut self, positions: impl IntoIterator<Item = u64>) {
        self.seen.extend(positions);
        if self.seen.len() > KNOWN_MAX {
            // The newest are those that a growing value needs.
            self.seen.drain(..KNOWN_MAX / 2);
        }
    }

    pub(crate) fn learn(&mut self, fresh: HashMap<ChunkKey, u64>) {
        self.young.extend(fresh);
        if self.young.len() > KNOWN_MAX {
            self.old = std::mem::take(&mut self.young);
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Chunks::new(self.key);
    }

    pub(crate) fn get(&self, key: &ChunkKey) -> Option<u64> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    /// Hashes what was only seen so far.
    pub(crate) fn hash_seen(&mut self, segments: &Segments) -> Result<(), StoreError> {
        for at in std::mem::take(&mut self.seen) {
            if let Some(found) = segments.read_shared(at)? {
                self.young.insert(self.key.of(found.0, &found.1), at);
            }
        }
        Ok(())
    }
}

/// Writes the chunks and lists of large values into the buffer of a group.
pub(crate) struct Writer<'a> {
    /// The place that the buffer will have.
    pub(crate) origin: At,
    pub(crate) chunks: &'a Chunks,
    /// Asks the index.
    pub(crate) lookup: &'a dyn Fn(&ChunkKey) -> Option<u64>,
    /// The frames that this group adds.
    pub(crate) fresh: HashMap<ChunkKey, u64>,
}

/// Returns the offsets at which a large text is cut: where its content says, so that what two texts share is cut
/// alike in both.
pub fn split(text: &[u8]) -> Vec<usize> {
    let (min, average, max) = sizes(text.len());
    FastCDC::new(text, min, average, max).map(|chunk| chunk.offset + chunk.length).collect()
}

/// As [`split`], with the least, the average and the greatest size of a piece.
pub fn split_within(bytes: &[u8], min: usize, average: usize, max: usize) -> Vec<usize> {
    FastCDC::new(bytes, min, average, max).map(|chunk| chunk.offset + chunk.length).collect()
}

impl Writer<'_> {
    /// Writes what is not known yet, and returns the positions whose contents make up the value.
    pub(crate) fn write(&mut self, text: &[u8], out: &mut Vec<u8>) -> Vec<u64> {
        let (min, average, max) = sizes(text.len());
        let chunks = FastCDC::new(text, min, average, max);
        let items =
            chunks.map(|chunk| self.put(frame::CHUNK, &text[chunk.offset..chunk.offset + chunk.length], out));
        let mut level: Vec<(u64, u32)> = items.collect();
        // The remaining items of each level follow the lists of the level above it.
        let mut tails: Vec<Vec<u64>> = Vec::new();
        while level.len() > GROUP_MIN {
            let (above, tail) = self.group(&level, out);
            if above.is_empty() {
                break;
            }
            tails.push(tail);
            level = above;
        }
        let mut positions: Vec<u64> = level.into_iter().map(|(position, _)| position).collect();
        positions.extend(tails.into_iter().rev().flatten());
        positions
    }

    /// Makes lists of the groups of one level; returns them, and the positions that are in no group.
    fn group(&mut self, level: &[(u64, u32)], out: &mut Vec<u8>) -> (Vec<(u64, u32)>, Vec<u64>) {
        let mut above = Vec::new();
        let mut group: Vec<u64> = Vec::new();
        for (position, checksum) in level {
            group.push(*position);
            let ends = group.len() >= GROUP_MIN && checksum & GROUP_MASK == 0;
            if ends || group.len() == GROUP_MAX {
                let list: Vec<u8> = group.drain(..).flat_map(u64::to_le_bytes).collect();
                above.push(self.put(frame::LIST, &list, out));
            }
        }
        (above, group)
    }

    /// Writes a chunk or list unless it is known; returns its position and the checksum of its payload.
    fn put(&mut self, kind: u8, payload: &[u8], out: &mut Vec<u8>) -> (u64, u32) {
        let key = self.chunks.key.of(kind, payload);
        let checksum = crc32c::crc32c(payload);
        let known = self.fresh.get(&key).copied().or_else(|| self.chunks.get(&key));
        if let Some(position) = known.or_else(|| (self.lookup)(&key)) {
            return (position, checksum);
        }
        let start = frame::begin(out, kind);
        out.extend_from_slice(payload);
        frame::end(out, start);
        let position = self.position(start);
        self.fresh.insert(key, position);
        (position, checksum)
    }

    /// Returns the position of what begins at an offset of the buffer.
    pub(crate) fn position(&self, start: usize) -> u64 {
        At::new(self.origin.segment, u64::from(self.origin.offset) + start as u64).to_u64()
    }
}

/// Small chunks find more that repeats, large ones cost less each; long values are seldom edited. The last chunk of a text
/// that grows is written again each time, so none of the small ones is much longer than most.
fn sizes(len: usize) -> (usize, usize, usize) {
    match len {
        0..0x10_0000 => (192, 384, 1024),
        0x10_0000..0x100_0000 => (8 << 10, 16 << 10, 128 << 10),
        _ => (32 << 10, 64 << 10, 512 << 10),
    }
}

/// Appends the text of a slot to `out`, which holds what is read of the same record already. `Err` names the frame that is not
/// what it must be.
pub(crate) fn read(
    segments: &Segments,
    slot: &Slot<'_>,
    before: u64,
    out: &mut Vec<u8>,
) -> Result<Result<(), u64>, StoreError> {
    match slot {
        Slot::Inline(text) => {
            out.extend_from_slice(text);
            Ok(Ok(()))
        }
        Slot::List(list) => {
            let limit = RECORD_SIZE_MAX.min(out.len() + VALUE_SIZE_MAX);
            let mut reader = Reader { segments, limit, positions: POSITIONS_MAX, out };
            reader.list(list, before, DEPTH_MAX)
        }
    }
}

/// The bytes of one value. Frames may name others many times over, so a short log could make a reader read for ever.
struct Reader<'a> {
    segments: &'a Segments,
    /// How long `out` may get.
    limit: usize,
    /// How many positions may still be followed.
    positions: usize,
    out: &'a mut Vec<u8>,
}

impl Reader<'_> {
    fn list(&mut self, list: &[u8], before: u64, depth: usize) -> Result<Result<(), u64>, StoreError> {
        let (Some(positions), Some(depth)) = (layout::parse_list(list), depth.checked_sub(1)) else {
            return Ok(Err(before));
        };
        for position in positions {
            let Some(left) = self.positions.checked_sub(1) else { return Ok(Err(position)) };
            self.positions = left;
            // A list names only what was written before it, so there are no cycles.
            let found = if position < before { self.segments.read_shared(position)? } else { None };
            let Some(found) = found else { return Ok(Err(position)) };
            match found.0 {
                frame::CHUNK if self.out.len() + found.1.len() <= self.limit => {
                    self.out.extend_from_slice(&found.1);
                }
                frame::LIST => {
                    if let Err(at) = self.list(&found.1, position, depth)? {
                        return Ok(Err(at));
                    }
                }
                _ => return Ok(Err(position)),
            }
        }
        Ok(Ok(()))
    }
}

/// Hands over the positions that a slot names, those inside lists included, in order. `f` says whether to look into
/// a list.
pub(crate) fn visit(
    segments: &Segments,
    slot: &Slot<'_>,
    f: &mut dyn FnMut(u64) -> bool,
) -> Result<(), StoreError> {
    match slot {
        Slot::Inline(_) => Ok(()),
        Slot::List(list) => visit_list(segments, list, DEPTH_MAX, f),
    }
}

fn visit_list(
    segments: &Segments,
    list: &[u8],
    depth: usize,
    f: &mut dyn FnMut(u64) -> bool,
) -> Result<(), StoreError> {
    let (Some(positions), Some(depth)) = (layout::parse_list(list), depth.checked_sub(1)) else {
        return Ok(());
    };
    for position in positions {
        if f(position)
            && let Some(found) = segments.read_shared(position)?
            && found.0 == frame::LIST
        {
            visit_list(segments, &found.1, depth, f)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use dendrer_object::StoreId;

    use super::*;
    use crate::faulty::Faulty;
    use crate::layout::{SEGMENT_HEADER, SegmentHeader};
    use crate::segments::file_name;

    /// A segment with frames of these kinds and payloads, and the offset of each.
    fn segment(mut frames: impl FnMut(&[u64]) -> Option<(u8, Vec<u8>)>) -> (Segments, Vec<u64>) {
        let store = StoreId([1; 16]);
        let mut bytes = SegmentHeader { store, number: 0, start: 0 }.write().to_vec();
        assert_eq!(bytes.len(), SEGMENT_HEADER);
        let mut at = Vec::new();
        while let Some((kind, payload)) = frames(&at) {
            let start = frame::begin(&mut bytes, kind);
            bytes.extend_from_slice(&payload);
            frame::end(&mut bytes, start);
            at.push(At::new(0, start as u64).to_u64());
        }
        let dir = Path::new("/segments");
        let disk = Faulty::with_files([(dir.join(file_name(0)), bytes)]);
        (Segments::new(Arc::new(disk), dir.to_owned(), store, false), at)
    }

    fn list(positions: impl IntoIterator<Item = u64>) -> Vec<u8> {
        positions.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Lists that name one another are followed as far as a value can be long, and no further.
    #[test]
    fn a_short_log_does_not_make_a_long_reading() {
        for chunk in [vec![], b"x".to_vec(), vec![b'x'; 1000]] {
            let (segments, at) = segment(|at| match at.len() {
                0 => Some((frame::CHUNK, chunk.clone())),
                n @ 1..=6 => Some((frame::LIST, list([at[n - 1]; 500]))),
                _ => None,
            });
            let top = list([at[6]; 500]);
            let mut out = Vec::new();
            let read = read(&segments, &Slot::List(&top), u64::MAX, &mut out).expect("the disk works");
            assert!(read.is_err() && out.len() <= VALUE_SIZE_MAX, "{} bytes", out.len());
        }
    }

    /// Values that a record already has count: those of one record are not each as long as the longest may be.
    #[test]
    fn the_values_of_a_record_have_a_limit_together() {
        let (segments, at) = segment(|at| at.is_empty().then(|| (frame::CHUNK, vec![b'x'; 1 << 20])));
        let value = list(vec![at[0]; VALUE_SIZE_MAX >> 20]);
        let mut out = Vec::new();
        let mut read = || read(&segments, &Slot::List(&value), u64::MAX, &mut out).expect("the disk works");
        for _ in 0..RECORD_SIZE_MAX / VALUE_SIZE_MAX {
            assert_eq!(read(), Ok(()));
        }
        assert_eq!(read(), Err(at[0]));
    }
}
