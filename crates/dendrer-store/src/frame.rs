//! Frames: the length-prefixed, checksummed pieces of a segment file.
//!
//! `[len u32 LE][crc32c u32 LE][kind u8][payload]`, the checksum over length, kind and payload (`docs/format-disk.md`).
//!
//! Never interprets a payload, except that of the commit frame. Rule: the length of a frame never changes once it is
//! written, because everything after it is addressed by offset.

use std::fmt;
use std::io;
use std::sync::Arc;

use dendrer_object::Digest;

use crate::disk::{self, DiskFile};
use crate::store::Tag;

/// The bytes before a payload.
pub(crate) const HEAD: usize = 9;

/// The longest payload. Far above what any record needs; bounds what a damaged length can make a reader do.
pub(crate) const PAYLOAD_MAX: usize = 1 << 30;

pub(crate) const VALUES: u8 = b'V';
pub(crate) const CHUNK: u8 = b'C';
pub(crate) const LIST: u8 = b'L';
pub(crate) const RECORD: u8 = b'R';
pub(crate) const OPENED: u8 = b'O';
pub(crate) const VOID: u8 = b'X';
pub(crate) const COMMIT: u8 = b'E';
pub(crate) const SECRET: u8 = b'S';

/// The payload bytes of a destroyed secret: zeros would look like a sector that a crash lost.
pub(crate) const DESTROYED: u8 = 0xff;

/// The begin of a frame: the number of its segment and its offset there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct At {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
}

impl At {
    /// Writers keep segments below 4 GiB. No frame lies beyond that in a file that is not ours.
    pub(crate) fn new(segment: u32, offset: u64) -> At {
        At { segment, offset: u32::try_from(offset).unwrap_or(u32::MAX) }
    }

    pub(crate) fn to_u64(self) -> u64 {
        u64::from(self.segment) << 32 | u64::from(self.offset)
    }

    pub(crate) fn from_u64(value: u64) -> At {
        At { segment: (value >> 32) as u32, offset: value as u32 }
    }
}

impl fmt::Debug for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment, self.offset)
    }
}

/// Begins a frame in a buffer; [`end`] completes it.
pub(crate) fn begin(out: &mut Vec<u8>, kind: u8) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    out[start + 8] = kind;
    start
}

/// Completes the frame that begins at `start`: everything after it is the payload.
pub(crate) fn end(out: &mut [u8], start: usize) {
    let len = out.len() - start - HEAD;
    assert!(len <= PAYLOAD_MAX, "the caller checks sizes before it makes frames");
    let len = (len as u32).to_le_bytes();
    out[start..start + 4].copy_from_slice(&len);
    let crc = checksum(&len, &out[start + 8..]);
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}

/// Makes the frame that takes the place of an erased one with a payload of `len` bytes, zeros or [`DESTROYED`].
pub(crate) fn void(len: u32, fill: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + len as usize);
    let start = begin(&mut out, VOID);
    out.resize(start + HEAD + len as usize, fill);
    end(&mut out, start);
    out
}

fn checksum(len: &[u8; 4], kind_and_payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(len), kind_and_payload)
}

/// The fixed bytes before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHead {
    pub(crate) len: u32,
    pub(crate) crc: u32,
    pub(crate) kind: u8,
}

impl FrameHead {
    pub(crate) fn parse(bytes: &[u8; HEAD]) -> FrameHead {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        FrameHead { len: word(0), crc: word(4), kind: bytes[8] }
    }

    /// The bytes of the whole frame.
    pub(crate) fn size(&self) -> u64 {
        HEAD as u64 + u64::from(self.len)
    }

    /// Whether there is nothing here: no frame has a kind of zero, and behind nothing there may be as much of it as one likes.
    pub(crate) fn is_blank(&self) -> bool {
        (self.len, self.crc, self.kind) == (0, 0, 0)
    }
}

/// Checks a whole frame; `Ok` gives kind and payload, `Err` the checksum that the bytes have.
pub(crate) fn open(frame: &[u8]) -> Result<(u8, &[u8]), u32> {
    let head = FrameHead::parse(frame[..HEAD].try_into().expect("the caller reads whole frames"));
    let found = checksum(&head.len.to_le_bytes(), &frame[8..]);
    if found == head.crc { Ok((head.kind, &frame[HEAD..])) } else { Err(found) }
}

/// The end of a group: makes everything before it part of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commit {
    /// How many records the group has.
    pub(crate) count: u32,
    /// The size of the tree with this group.
    pub(crate) size: u64,
    /// The size that the writer knew to be on disk when it wrote this. A group below it was acknowledged, so no
    /// reader may take it for an unfinished one.
    pub(crate) synced: u64,
    /// The bytes from the first frame of the group to this frame.
    pub(crate) length: u64,
    /// The root of the tree with this group.
    pub(crate) root: Digest,
    /// The tag over store, size and root; zeros where the writer had no secret.
    pub(crate) tag: Tag,
}

const COMMIT_MAGIC: &[u8; 8] = b"dndrcmt1";
pub(crate) const COMMIT_LEN: usize = 4 + 8 + 8 + 8 + 32 + 32 + 8;
pub(crate) const COMMIT_SIZE: u64 = (HEAD + COMMIT_LEN) as u64;

impl Commit {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let start = begin(out, COMMIT);
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.size.to_le_bytes());
        out.extend_from_slice(&self.synced.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.root.0);
        out.extend_from_slice(&self.tag.0);
        // The magic is last, so that a commit never ends in zeros, which could be mistaken for a lost sector.
        out.extend_from_slice(COMMIT_MAGIC);
        end(out, start);
    }

    pub(crate) fn parse(payload: &[u8]) -> Option<Commit> {
        let payload: &[u8; COMMIT_LEN] = payload.try_into().ok()?;
        let word = |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().expect("eight bytes"));
        let commit = Commit {
            count: u32::from_le_bytes(payload[..4].try_into().expect("four bytes")),
            size: word(4),
            synced: word(12),
            length: word(20),
            root: Digest(payload[28..60].try_into().expect("32 bytes")),
            tag: Tag(payload[60..92].try_into().expect("32 bytes")),
        };
        (payload[92..] == COMMIT_MAGIC[..]).then_some(commit)
    }
}

/// How many bytes a writer may leave in a segment behind a group: what fills it up, and one more group.
pub(crate) const UNFINISHED_MAX: u64 = 3 << 30;

/// Finds the first whole commit frame at or after `from` with a size above `size`, even if the part before it cannot
/// be read. `None` if the file has no such frame up to its end, or up to the largest size that a writer can have
/// written: a sparse file can have any length.
pub(crate) fn find_commit(file: &dyn DiskFile, from: u64, size: u64) -> io::Result<Option<(u64, Commit)>> {
    const WINDOW: usize = 1 << 20;
    let left = file.len()?.saturating_sub(from);
    let mut buffer = vec![0; WINDOW.min(usize::try_from(left).unwrap_or(WINDOW))];
    let mut start = from;
    loop {
        let read = disk::read_up_to(file, &mut buffer, start)?;
        let window = &buffer[..read];
        let mut at = 0;
        while let Some(found) = find_magic(&window[at..]) {
            let magic_end = at + found + COMMIT_MAGIC.len();
            at += found + 1;
            let Some(begin) = magic_end.checked_sub(COMMIT_SIZE as usize) else { continue };
            if let Ok((COMMIT, payload)) = open(&window[begin..magic_end])
                && let Some(commit) = Commit::parse(payload)
                && commit.size > size
            {
                return Ok(Some((start + begin as u64, commit)));
            }
        }
        if read < WINDOW || start - from > UNFINISHED_MAX {
            return Ok(None);
        }
        // A commit may straddle two windows.
        start += (WINDOW - COMMIT_SIZE as usize) as u64;
    }
}

fn find_magic(bytes: &[u8]) -> Option<usize> {
    bytes.windows(COMMIT_MAGIC.len()).position(|window| window == COMMIT_MAGIC)
}

/// The next item of a reader.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// A whole frame with a good checksum.
    Frame { offset: u64, kind: u8, payload: &'a [u8] },
    /// Something that is no frame.
    Fault { offset: u64, fault: Fault },
    /// The end of the file, between two frames.
    End { offset: u64 },
}

/// Why bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The file ends inside it.
    Short { kind: Option<u8>, needed: u64, found: u64 },
    /// The checksum differs.
    Checksum { head: FrameHead, found: u32 },
}

impl Fault {
    pub(crate) fn expected(&self) -> String {
        match self {
            Fault::Short { needed, .. } => format!("{needed} bytes"),
            Fault::Checksum { head, .. } => format!("crc32c {:08x}", head.crc),
        }
    }

    pub(crate) fn found(&self) -> String {
        match self {
            Fault::Short { found, .. } => format!("{found} bytes"),
            Fault::Checksum { found, .. } => format!("{found:08x}"),
        }
    }
}

/// Reads frames of one file in order.
pub(crate) struct Reader {
    file: Arc<dyn DiskFile>,
    buffer: Vec<u8>,
    /// The file offset of `buffer[0]`.
    base: u64,
    /// The next frame, as an offset in `buffer`.
    at: usize,
    /// How much is read at once: little at first, as most readers want little.
    window: usize,
    window_max: usize,
}

/// How much room is kept for the next reader.
const ROOM_MAX: usize = 256 << 10;

/// How much a reader reads at first.
const WINDOW_MIN: usize = 16 << 10;

impl Reader {
    pub(crate) fn new(file: Arc<dyn DiskFile>, offset: u64, window_max: usize) -> Reader {
        Reader { file, buffer: Vec::new(), base: offset, at: 0, window: WINDOW_MIN, window_max }
    }

    /// Before anything was read.
    pub(crate) fn use_room(&mut self, room: Vec<u8>) {
        self.buffer = room;
        self.buffer.clear();
    }

    /// Gives back what it read into, unless that was needed once for something huge.
    pub(crate) fn into_room(self) -> Vec<u8> {
        if self.buffer.capacity() > ROOM_MAX { Vec::new() } else { self.buffer }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Continues at another place, as after damage.
    pub(crate) fn seek(&mut self, offset: u64) {
        self.base = offset;
        self.at = 0;
        self.buffer.clear();
    }

    pub(crate) fn next(&mut self) -> io::Result<Step<'_>> {
        let offset = self.offset();
        let have = self.fill(HEAD)?;
        if have == 0 {
            return Ok(Step::End { offset });
        }
        if have < HEAD {
            let fault = Fault::Short { kind: None, needed: HEAD as u64, found: have as u64 };
            return Ok(Step::Fault { offset, fault });
        }
        let head =
            FrameHead::parse(self.buffer[self.at..self.at + HEAD].try_into().expect("a head was read"));
        let short = |found: u64| Step::Fault {
            offset,
            fault: Fault::Short { kind: Some(head.kind), needed: head.size(), found },
        };
        if head.len as usize > PAYLOAD_MAX {
            let found = self.file.len()?.saturating_sub(offset);
            return Ok(short(found));
        }
        let size = head.size() as usize;
        if have < size {
            // A damaged length must not make us read or allocate more than the file has.
            let found = self.file.len()?.saturating_sub(offset);
            if found < size as u64 {
                return Ok(short(found));
            }
            let have = self.fill(size)?;
            if have < size {
                return Ok(short(have as u64));
            }
        }
        let at = self.at;
        match open(&self.buffer[at..at + size]) {
            Ok((kind, _)) => {
                self.at += size;
                Ok(Step::Frame { offset, kind, payload: &self.buffer[at + HEAD..at + size] })
            }
            Err(found) => Ok(Step::Fault { offset, fault: Fault::Checksum { head, found } }),
        }
    }

    /// Makes sure that `wanted` bytes from the current place are in the buffer, and returns how many are.
    fn fill(&mut self, wanted: usize) -> io::Result<usize> {
        let have = self.buffer.len() - self.at;
        if have >= wanted {
            return Ok(have);
        }
        self.buffer.drain(..self.at);
        self.base += self.at as u64;
        self.at = 0;
        let start = self.buffer.len();
        // Room that the file cannot fill would only be cleared.
        let left = self.file.len()?.saturating_sub(self.base + start as u64);
        let room = self.window.min(usize::try_from(left).unwrap_or(usize::MAX));
        self.buffer.resize(wanted.max(start + room), 0);
        let read = disk::read_up_to(&*self.file, &mut self.buffer[start..], self.base + start as u64)?;
        self.buffer.truncate(start + read);
        self.window = (self.window * 4).min(self.window_max);
        Ok(self.buffer.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reads_back_and_every_flipped_bit_shows() {
        let mut out = Vec::new();
        let start = begin(&mut out, VALUES);
        out.extend_from_slice(b"some payload");
        end(&mut out, start);
        assert_eq!(open(&out), Ok((VALUES, &b"some payload"[..])));
        for bit in 0..out.len() * 8 {
            let mut flipped = out.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn zeros_are_no_frame() {
        for len in [HEAD, 64, 512] {
            assert!(open(&vec![0; len][..HEAD]).is_err());
        }
        assert_eq!(open(&void(5, 0)), Ok((VOID, &[0; 5][..])));
    }

    #[test]
    fn a_commit_reads_back() {
        let commit = Commit {
            count: 3,
            size: 10,
            synced: 7,
            length: 999,
            root: Digest::of(b"root"),
            tag: Tag([5; 32]),
        };
        let mut out = Vec::new();
        commit.write(&mut out);
        let (kind, payload) = open(&out).unwrap();
        assert_eq!((kind, Commit::parse(payload)), (COMMIT, Some(commit)));
        assert_eq!(out.len() as u64, COMMIT_SIZE);
        assert_ne!(*out.last().unwrap(), 0);
    }
}
