//! Reads groups of frames in order, checks that they are whole, and classifies a group that is not.
//!
//! Never writes and never decides to cut: it tells an unfinished group from damage, the lock holder acts on it.
//!
//! Rule: an acknowledged group is never taken for an unfinished one. A crash leaves an end that is missing or sectors
//! that read as zeros; any other fault is damage, and so is one of these in a group that a later commit reports as on
//! disk.

use std::io;
use std::ops::Range;

use dendrer_object::merkle::{Peaks, leaf_hashes};
use dendrer_object::record::{Entry, Kind};
use dendrer_object::{Digest, StoreId};

use crate::disk::{self, DiskFile};
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::frame::{self, At, COMMIT_SIZE, Commit, Fault, HEAD, Step};
use crate::layout::{self, Names, RecordFrame, SECRET_NAME};
use crate::segments::{Segments, place_name};

/// The unit in which disks lose what was not synced.
const SECTOR: u64 = 512;

/// How much is read at once.
const WINDOW: usize = 256 << 10;

/// A frame of a group.
#[expect(clippy::large_enum_variant, reason = "most items are records, and none is kept")]
pub(crate) enum Item<'a> {
    Values {
        payload: &'a [u8],
    },
    Opened {
        at: At,
        payload: &'a [u8],
    },
    Shared {
        at: At,
        payload: &'a [u8],
        kind: u8,
    },
    Void,
    /// An encrypted value of the vault.
    Secret {
        at: At,
        name: Digest,
    },
    Record(Found<'a>),
    /// A frame with a bad checksum, skipped.
    Broken(Box<Damage>),
}

/// A record and where it was found.
pub(crate) struct Found<'a> {
    pub(crate) position: u64,
    /// The frame with its values, just before it.
    pub(crate) values: At,
    pub(crate) frame: RecordFrame<'a>,
}

/// How reading a group ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The group is whole.
    Commit { at: At, commit: Commit, end: u64 },
    /// There is no further group in this segment.
    Clean,
    /// A frame that cannot be read, so the group has no end; `group` is where it begins.
    Fault { group: u64, offset: u64, fault: Fault },
    /// Frames that can be read and do not fit.
    Damage(Box<Damage>),
}

/// Reads the groups of one segment.
pub(crate) struct Scanner {
    store: StoreId,
    segment: u32,
    reader: frame::Reader,
    /// The position of the next record.
    pub(crate) position: u64,
    /// The tree before the next group; `None` after damage that hides a leaf.
    pub(crate) peaks: Option<Peaks>,
    /// Whether frames with a bad checksum are skipped where their length may be right.
    pub(crate) tolerant: bool,
    /// Whether secrets with a bad checksum are skipped. Only in a part of the log that is known to be on disk.
    pub(crate) past_secrets: bool,
    /// Whether groups are read together: the tree is worked out behind the last of them.
    together: bool,
    entries: Entries,
    names: Names,
}

/// Buffers of a scanner, kept for the next one: fresh memory is slow.
#[derive(Debug, Default)]
pub(crate) struct Room {
    buffer: Vec<u8>,
    entries: Entries,
    names: Names,
}

/// How many bytes of entries are kept for the next scanner.
const ENTRIES_MAX: usize = 1 << 20;

/// The texts of entries of the tree, one behind the other.
#[derive(Debug, Default)]
struct Entries {
    texts: Vec<u8>,
    ends: Vec<usize>,
    /// How many of them are in groups that were read to their end.
    whole: usize,
}

impl Entries {
    fn push(&mut self, entry: &Entry) {
        entry.write(&mut self.texts);
        self.ends.push(self.texts.len());
    }

    /// Drops those of a group that has no end.
    fn drop_rest(&mut self) {
        self.ends.truncate(self.whole);
        self.texts.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Adds the leaves of all groups to the tree, and forgets them.
    fn add_to(&mut self, peaks: &mut Peaks) {
        self.drop_rest();
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let texts: Vec<&[u8]> = begins.zip(&self.ends).map(|(begin, end)| &self.texts[begin..*end]).collect();
        peaks.extend(leaf_hashes(&texts));
        self.clear();
    }

    fn clear(&mut self) {
        self.whole = 0;
        self.drop_rest();
    }
}

/// The position of a scanner between two groups.
pub(crate) struct Mark {
    offset: u64,
    position: u64,
    peaks: Option<Peaks>,
}

impl Scanner {
    /// Begins at a place between two groups. `None` if there is no such segment.
    pub(crate) fn new(
        segments: &Segments,
        store: StoreId,
        at: At,
        position: u64,
        peaks: Option<Peaks>,
    ) -> Result<Option<Scanner>, StoreError> {
        let reader = segments.reader(at, WINDOW)?;
        let (segment, tolerant, past_secrets, together) = (at.segment, false, false, false);
        let (entries, names) = Default::default();
        Ok(reader.map(|reader| Scanner {
            store,
            segment,
            reader,
            position,
            peaks,
            tolerant,
            past_secrets,
            together,
            entries,
            names,
        }))
    }

    /// Reads into room that another scanner had.
    pub(crate) fn with_room(mut self, room: Room) -> Scanner {
        self.reader.use_room(room.buffer);
        (self.entries, self.names) = (room.entries, room.names);
        self.entries.clear();
        self
    }

    /// Gives the room back.
    pub(crate) fn into_room(self) -> Room {
        // A buffer that was needed once for a huge group is not kept for ever.
        let entries =
            if self.entries.texts.capacity() > ENTRIES_MAX { Entries::default() } else { self.entries };
        Room { buffer: self.reader.into_room(), entries, names: self.names }
    }

    /// Returns the position of the scanner, to come back to.
    pub(crate) fn mark(&self) -> Mark {
        Mark { offset: self.offset(), position: self.position, peaks: self.peaks.clone() }
    }

    /// Goes back to where it stood. Frames that were read together since do not count.
    pub(crate) fn return_to(&mut self, mark: Mark) {
        self.reader.seek(mark.offset);
        (self.position, self.peaks, self.together) = (mark.position, mark.peaks, false);
        self.entries.clear();
    }

    /// From here on reads groups without working out the tree behind each of them.
    pub(crate) fn begin_together(&mut self) {
        self.together = self.peaks.is_some();
    }

    /// Works out the tree behind the groups that were read together. The root of the last one answers for all of their
    /// leaves.
    pub(crate) fn end_together(&mut self) {
        if let (true, Some(peaks)) = (std::mem::take(&mut self.together), &mut self.peaks) {
            self.entries.add_to(peaks);
        }
    }

    /// Returns where the next group begins.
    pub(crate) fn offset(&self) -> u64 {
        self.reader.offset()
    }

    /// Reads a group again.
    pub(crate) fn rewind(&mut self, group: u64) {
        self.reader.seek(group);
    }

    /// Continues after a commit frame, if the part before it cannot be read.
    pub(crate) fn resume(&mut self, offset: u64, commit: &Commit) {
        self.reader.seek(offset + COMMIT_SIZE);
        self.position = commit.size;
        self.peaks = None;
        self.entries.clear();
    }

    fn place(&self, offset: u64) -> DamagePlace {
        DamagePlace { file: place_name(self.segment), offset: Some(offset), ..DamagePlace::default() }
    }

    fn damage(&self, kind: DamageKind, offset: u64, what: &'static str, sides: [String; 2]) -> Box<Damage> {
        let [expected, found] = sides;
        Box::new(Damage { kind, place: self.place(offset), what, expected, found })
    }

    /// Reads one group. Nothing of it counts before [`End::Commit`].
    pub(crate) fn group(&mut self, visit: &mut dyn FnMut(Item<'_>)) -> Result<End, StoreError> {
        let group = self.reader.offset();
        // Whether every leaf up to here is known.
        let mut known = self.peaks.is_some();
        self.entries.drop_rest();
        let mut position = self.position;
        let mut before: Option<At> = None;
        // An erasure is told on record: a frame that would have values overwritten is nobody's word where none is.
        let (mut erases, mut takes) = (false, None);
        loop {
            let segment = self.segment;
            let step = self
                .reader
                .next()
                .map_err(|error| StoreError::io("read", std::path::Path::new(&place_name(segment)), error))?;
            let (offset, kind, payload) = match step {
                Step::Frame { offset, kind, payload } => (offset, kind, payload),
                Step::End { offset } if offset == group => return Ok(End::Clean),
                Step::End { offset } => {
                    let fault = Fault::Short { kind: None, needed: HEAD as u64, found: 0 };
                    return Ok(End::Fault { group, offset, fault });
                }
                Step::Fault { offset, fault } => {
                    let Some(skipped) = self.skip(offset, fault) else {
                        return Ok(End::Fault { group, offset, fault });
                    };
                    if let Fault::Checksum { head, .. } = fault {
                        before = Some(At::new(segment, offset));
                        if head.kind == frame::RECORD {
                            (known, before) = (false, None);
                            position += 1;
                        }
                    }
                    visit(Item::Broken(skipped));
                    continue;
                }
            };
            let at = At::new(segment, offset);
            match kind {
                frame::VALUES => visit(Item::Values { payload }),
                frame::OPENED => {
                    if layout::parse_opened_all(payload).is_none_or(|opened| opened.replaces.is_some()) {
                        takes = takes.or(Some(offset));
                    }
                    visit(Item::Opened { at, payload });
                }
                frame::CHUNK | frame::LIST => visit(Item::Shared { at, payload, kind }),
                frame::VOID => visit(Item::Void),
                frame::SECRET if payload.len() > SECRET_NAME => {
                    let (name, _) = layout::parse_secret(payload).expect("it is longer than a name");
                    visit(Item::Secret { at, name });
                }
                frame::RECORD => {
                    let parsed = RecordFrame::parse_with(payload, self.store, Some(&mut self.names));
                    let (Some(parsed), Some(values)) = (parsed, before) else {
                        let sides = ["a record behind its values".into(), "something else".into()];
                        return Ok(End::Damage(self.damage(
                            DamageKind::Frame,
                            offset,
                            "record frame",
                            sides,
                        )));
                    };
                    if known {
                        self.entries.push(&entry_of(&parsed));
                    }
                    erases |= parsed.header.kind == Kind::Erase;
                    visit(Item::Record(Found { position, values, frame: parsed }));
                    position += 1;
                }
                frame::COMMIT if known && !erases && takes.is_some() => {
                    let sides = ["an erase record in its group".into(), "none".into()];
                    let offset = takes.unwrap_or(offset);
                    return Ok(End::Damage(self.damage(DamageKind::Frame, offset, "opened frame", sides)));
                }
                frame::COMMIT => {
                    let commit = Commit::parse(payload);
                    let end = self.reader.offset();
                    return self.commit(group, at, commit, end, position, known);
                }
                other => {
                    let sides = ["a kind of format 2".into(), format!("kind {other:#04x}")];
                    return Ok(End::Damage(self.damage(DamageKind::Frame, offset, "frame kind", sides)));
                }
            }
            before = matches!(kind, frame::VALUES | frame::OPENED | frame::VOID).then_some(at);
        }
    }

    /// Skips a frame with a bad checksum if that is asked for and its length may be right.
    fn skip(&mut self, offset: u64, fault: Fault) -> Option<Box<Damage>> {
        let Fault::Checksum { head, .. } = fault else { return None };
        let is_skipped = self.tolerant || self.past_secrets && head.kind == frame::SECRET;
        if !is_skipped || head.kind == frame::COMMIT || head.is_blank() {
            return None;
        }
        self.reader.seek(offset + head.size());
        Some(self.damage(
            DamageKind::Frame,
            offset,
            "checksum of the frame",
            [fault.expected(), fault.found()],
        ))
    }

    fn commit(
        &mut self,
        group: u64,
        at: At,
        commit: Option<Commit>,
        end: u64,
        position: u64,
        known: bool,
    ) -> Result<End, StoreError> {
        let offset = u64::from(at.offset);
        let damage = |this: &Scanner, kind, what, expected: String, found: String| {
            Ok(End::Damage(this.damage(kind, offset, what, [expected, found])))
        };
        let Some(commit) = commit else {
            return damage(
                self,
                DamageKind::Frame,
                "commit frame",
                "its magic".into(),
                "something else".into(),
            );
        };
        let count = position - self.position;
        if u64::from(commit.count) != count {
            let (expected, found) = (commit.count.to_string(), count.to_string());
            return damage(self, DamageKind::Frame, "records of the group", expected, found);
        }
        if commit.size != position {
            let (expected, found) = (commit.size.to_string(), position.to_string());
            return damage(self, DamageKind::Frame, "size of the tree", expected, found);
        }
        if commit.length != offset - group || commit.synced > self.position {
            let (expected, found) = (commit.length.to_string(), (offset - group).to_string());
            return damage(self, DamageKind::Frame, "length of the group", expected, found);
        }
        self.entries.whole = self.entries.ends.len();
        if !known {
            self.peaks = None;
            self.entries.clear();
        } else if !self.together {
            let mut peaks = self.peaks.clone().expect("entries are kept where the tree is known");
            self.entries.add_to(&mut peaks);
            if peaks.root() != commit.root {
                let (expected, found) = (commit.root.to_string(), peaks.root().to_string());
                return damage(self, DamageKind::Root, "root of the tree", expected, found);
            }
            self.peaks = Some(peaks);
        }
        self.position = position;
        Ok(End::Commit { at, commit, end })
    }

    /// The damage that a fault is, where it is no unfinished group.
    pub(crate) fn fault_damage(&self, offset: u64, fault: Fault) -> Damage {
        let what = match fault {
            Fault::Short { .. } => "length of the frame",
            Fault::Checksum { .. } => "checksum of the frame",
        };
        let mut place = self.place(offset);
        place.position = Some(self.position);
        Damage { kind: DamageKind::Frame, place, what, expected: fault.expected(), found: fault.found() }
    }
}

/// Returns the leaf of a record in the tree.
pub(crate) fn entry_of(frame: &RecordFrame<'_>) -> Entry {
    Entry { hash: frame.id, kind: frame.header.kind, run: frame.header.run.clone(), tick: frame.header.tick }
}

/// Tells whether a fault in the last segment is what a crash leaves of groups that were never acknowledged.
///
/// `size` is the size of the tree before the group that begins at `group`.
pub(crate) fn is_unfinished(
    file: &dyn DiskFile,
    group: u64,
    offset: u64,
    fault: &Fault,
    size: u64,
) -> io::Result<bool> {
    let len = file.len()?;
    if len - group.min(len) > frame::UNFINISHED_MAX {
        return Ok(false);
    }
    let mut later = false;
    let mut from = offset;
    while let Some((at, commit)) = frame::find_commit(file, from, size)? {
        if commit.synced > size {
            return Ok(false);
        }
        later = true;
        from = at + 1;
    }
    let frame = match fault {
        Fault::Short { kind: Some(frame::COMMIT), needed, .. } if *needed != COMMIT_SIZE => return Ok(false),
        Fault::Short { .. } if !later => return Ok(true),
        Fault::Short { .. } => offset..len,
        Fault::Checksum { head, .. } => offset..offset + head.size(),
    };
    let ends_in_magic = matches!(fault, Fault::Checksum { head, .. } if head.kind == frame::COMMIT);
    has_lost_sector(file, group..len, frame, ends_in_magic)
}

/// Tells whether a sector that is part of a frame reads as zeros, as far as it belongs to the unsynced part of the
/// file. Less than eight bytes of a sector say nothing: a frame may well have that many zeros. Two places cannot: the
/// length with which a group begins, and the magic with which a commit ends.
fn has_lost_sector(
    file: &dyn DiskFile,
    unsynced: Range<u64>,
    frame: Range<u64>,
    ends_in_magic: bool,
) -> io::Result<bool> {
    const LEAST: u64 = 8;
    const LENGTH: u64 = 4;
    let mut sector = frame.start / SECTOR * SECTOR;
    let mut bytes = [0; SECTOR as usize];
    while sector < frame.end {
        let (start, end) = (sector.max(unsynced.start), (sector + SECTOR).min(unsynced.end));
        let least = match () {
            () if start == unsynced.start => LENGTH,
            () if ends_in_magic && start < frame.end && frame.end <= end => 1,
            () => LEAST,
        };
        if end >= start + least {
            let part = &mut bytes[..(end - start) as usize];
            disk::read_exact(file, part, start)?;
            if part.iter().all(|byte| *byte == 0) {
                return Ok(true);
            }
        }
        sector += SECTOR;
    }
    Ok(false)
}
