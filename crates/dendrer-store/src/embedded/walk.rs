//! Walks the whole log on disk, for a verification.
//!
//! Passes on what was read without trust: nothing is sealed, and the index is not asked. Continues after damage if
//! possible, and reports the parts it left out.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use dendrer_object::Digest;
use dendrer_object::merkle::Peaks;
use dendrer_object::record::Header;

use super::Embedded;
use super::read::{Source, assemble};
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::frame::{self, At, Fault};
use crate::layout::{self, RawRecord, RecordFrame, SEGMENT_HEADER};
use crate::scan::{End, Item, Scanner, is_unfinished};
use crate::segments::{Read, place_name};

/// The result of a walk.
#[derive(Debug)]
#[non_exhaustive]
pub enum WalkItem {
    /// A record as read: to be sealed and compared, one by one or many at once.
    Record {
        /// The position in the log, as far as commits before it could be read.
        position: u64,
        /// Segment and offset of its values, as `segment << 32 | offset`.
        frame: u64,
        /// The bytes that were read.
        raw: Box<RawRecord>,
    },
    /// A record of which the values cannot be read.
    Unreadable {
        /// The position in the log.
        position: u64,
        /// The id under which it was filed.
        id: Digest,
        /// The header as read; whether it is the one that was committed cannot be known.
        header: Box<Header>,
        /// Why.
        damage: Box<Damage>,
    },
    /// The end of a group. Its size, count and length were checked, and its root if `root_checked`.
    Commit {
        /// The size of the tree.
        size: u64,
        /// The root of the tree.
        root: Digest,
        /// Whether the root was computed from the records before it. Not so behind damage that hides a record.
        root_checked: bool,
    },
    /// Something that is not what it must be.
    Damage(Box<Damage>),
    /// Bytes at the end of the log that were never committed. The next append removes them.
    Unfinished {
        /// The segment file.
        file: String,
        /// Their begin.
        offset: u64,
    },
}

struct Walk<'a> {
    store: &'a Embedded,
    f: &'a mut dyn FnMut(WalkItem) -> ControlFlow<()>,
    erasures: Option<Erasures>,
    stopped: bool,
}

/// The content of the log after the part that the handle has taken in.
enum Probe {
    /// A whole group.
    Whole,
    /// Something that cannot be read.
    Damaged,
    /// Nothing, or an unfinished group.
    End,
}

/// The remains of erasures, found when first needed.
struct Erasures {
    /// The newest opened frame of each record.
    newest: HashMap<Digest, At>,
    /// Frames that are overwritten, or about to be.
    doomed: BTreeSet<u64>,
}

impl Embedded {
    /// Walks all frames of all segments in order, until `f` breaks.
    pub fn walk(&self, f: &mut dyn FnMut(WalkItem) -> ControlFlow<()>) -> Result<(), StoreError> {
        self.check_owner()?;
        let mut walk = Walk { store: self, f, erasures: None, stopped: false };
        let mut position = 0;
        let mut peaks = Some(Peaks::new());
        let numbers = self.segments.numbers()?;
        let last = numbers.last().copied().unwrap_or(0);
        for segment in 0..=last {
            match self.segments.header(segment) {
                Ok(Some(header)) => {
                    if header.start != position {
                        let sides = [position.to_string(), header.start.to_string()];
                        walk.damage(segment, 0, DamageKind::Chain, "begin of the segment", sides);
                        (position, peaks) = (header.start, None);
                    }
                }
                Ok(None) if segment == last && segment > 0 && self.is_not_begun(segment, position)? => break,
                Ok(None) => {
                    let sides = ["a segment header".into(), "none".into()];
                    walk.damage(segment, 0, DamageKind::File, "segment header", sides);
                    if self.segments.file(segment)?.is_none() {
                        peaks = None;
                        continue;
                    }
                }
                Err(StoreError::Damaged(damage)) => walk.say(WalkItem::Damage(damage)),
                Err(error) => return Err(error),
            }
            (position, peaks) = walk.segment(segment, position, peaks, segment == last)?;
            if walk.stopped {
                break;
            }
        }
        Ok(())
    }

    /// Tells whether the last segment is one whose begin never reached the disk.
    fn is_not_begun(&self, segment: u32, size: u64) -> Result<bool, StoreError> {
        let Some(file) = self.segments.file(segment)? else { return Ok(true) };
        let fault = Fault::Short { kind: None, needed: SEGMENT_HEADER as u64, found: 0 };
        is_unfinished(&*file, 0, 0, &fault, size).map_err(|error| self.segments.io("read", segment, error))
    }
}

impl Walk<'_> {
    fn say(&mut self, item: WalkItem) {
        if !self.stopped {
            self.stopped = (self.f)(item).is_break();
        }
    }

    fn damage(
        &mut self,
        segment: u32,
        offset: u64,
        kind: DamageKind,
        what: &'static str,
        sides: [String; 2],
    ) {
        let [expected, found] = sides;
        let place = DamagePlace { file: place_name(segment), offset: Some(offset), ..DamagePlace::default() };
        self.say(WalkItem::Damage(Box::new(Damage { kind, place, what, expected, found })));
    }

    /// Walks one segment; returns position and tree behind it.
    fn segment(
        &mut self,
        segment: u32,
        position: u64,
        peaks: Option<Peaks>,
        is_last: bool,
    ) -> Result<(u64, Option<Peaks>), StoreError> {
        let store = self.store;
        let begin = At::new(segment, SEGMENT_HEADER as u64);
        let scanner = Scanner::new(&store.segments, store.info.id, begin, position, peaks)?;
        let Some(mut scanner) = scanner else { return Ok((position, None)) };
        scanner.tolerant = true;
        let mut is_damaged = store.stuck;
        loop {
            // Behind what the handle has taken in, what cannot be read may be an unfinished end.
            let is_behind = (segment, scanner.offset()) >= (store.end.segment, store.end.offset);
            if is_behind && is_last && !is_damaged {
                match self.probe(segment, &mut scanner)? {
                    Probe::Whole => {}
                    Probe::Damaged => is_damaged = true,
                    Probe::End => break,
                }
            }
            let end = self.group(&mut scanner)?;
            if self.stopped {
                break;
            }
            let behind = match end {
                End::Commit { commit, .. } => {
                    let root_checked = scanner.peaks.is_some();
                    self.say(WalkItem::Commit { size: commit.size, root: commit.root, root_checked });
                    continue;
                }
                End::Clean => break,
                End::Fault { offset, fault, .. } => {
                    self.say(WalkItem::Damage(Box::new(scanner.fault_damage(offset, fault))));
                    offset
                }
                End::Damage(damage) => {
                    let offset = damage.place.offset.unwrap_or_default();
                    self.say(WalkItem::Damage(damage));
                    offset
                }
            };
            let file = store.segments.file(segment)?;
            let next = match file {
                Some(file) => frame::find_commit(&*file, behind, scanner.position)
                    .map_err(|error| store.segments.io("read", segment, error))?,
                None => None,
            };
            match next {
                Some((offset, commit)) => scanner.resume(offset, &commit),
                None => {
                    scanner.peaks = None;
                    break;
                }
            }
        }
        Ok((scanner.position, scanner.peaks.take()))
    }

    /// Looks at a group without handing over anything of it, and says so if it is unfinished.
    fn probe(&mut self, segment: u32, scanner: &mut Scanner) -> Result<Probe, StoreError> {
        let begin = scanner.mark();
        let position = scanner.position;
        scanner.tolerant = false;
        let end = scanner.group(&mut |_| {})?;
        scanner.tolerant = true;
        scanner.return_to(begin);
        let (group, offset, fault) = match end {
            End::Commit { .. } => return Ok(Probe::Whole),
            End::Clean => return Ok(Probe::End),
            End::Damage(_) => return Ok(Probe::Damaged),
            End::Fault { group, offset, fault } => (group, offset, fault),
        };
        let Some(file) = self.store.segments.file(segment)? else { return Ok(Probe::End) };
        let unfinished = is_unfinished(&*file, group, offset, &fault, position)
            .map_err(|error| self.store.segments.io("read", segment, error))?;
        if !unfinished {
            return Ok(Probe::Damaged);
        }
        self.say(WalkItem::Unfinished { file: place_name(segment), offset: group });
        Ok(Probe::End)
    }

    /// Walks one group.
    fn group(&mut self, scanner: &mut Scanner) -> Result<End, StoreError> {
        let mut values: (u8, Vec<u8>) = (frame::VOID, Vec::new());
        let mut failure = None;
        let mut broken: Option<Box<Damage>> = None;
        let mut left = Vec::new();
        let end = scanner.group(&mut |item| {
            if let Item::Opened { at, payload } = &item
                && layout::is_erasure(payload)
            {
                left.push((*at, payload.to_vec()));
            }
            match item {
                Item::Values { payload } | Item::Opened { payload, .. } => {
                    values.1.clear();
                    values.1.extend_from_slice(payload);
                }
                _ => {}
            }
            match item {
                Item::Values { .. } => values.0 = frame::VALUES,
                Item::Opened { .. } => values.0 = frame::OPENED,
                Item::Void => values.0 = frame::VOID,
                Item::Shared { .. } | Item::Secret { .. } => {}
                Item::Broken(damage) => {
                    // If a record follows, it says whose values these are.
                    if let Some(before) = broken.replace(damage) {
                        failure = self.suspect(before).err().or(failure.take());
                    }
                    values.0 = 0;
                }
                Item::Record(found) => {
                    let source = Source { at: found.values, kind: values.0, payload: &values.1 };
                    let damage = broken.take();
                    match self.record(found.position, &source, &found.frame, damage) {
                        Ok(item) => self.say(item),
                        Err(error) => failure = Some(error),
                    }
                }
            }
        })?;
        if let Some(damage) = broken {
            self.suspect(damage)?;
        }
        for (at, payload) in left {
            // A reader of the record reads this frame, and the next writer destroys the frame that it replaces.
            let Some((id, ..)) = layout::opened_head(&payload) else { continue };
            if self.store.is_left_of(at, &payload, &id)? == Some(false) {
                let file = place_name(at.segment);
                let place = DamagePlace { file, offset: Some(at.offset.into()), ..DamagePlace::default() };
                let (kind, what) = (DamageKind::Frame, "opened frame");
                let (expected, found) = ("what is left of its record".into(), "something else".into());
                self.suspect(Box::new(Damage { kind, place, what, expected, found }))?;
            }
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(end),
        }
    }

    fn record(
        &mut self,
        position: u64,
        source: &Source<'_>,
        frame: &RecordFrame<'_>,
        broken: Option<Box<Damage>>,
    ) -> Result<WalkItem, StoreError> {
        let is_stored = matches!(source.kind, frame::VALUES | frame::OPENED);
        let mut read = match broken {
            Some(damage) if !is_stored => Err(damage),
            broken => {
                // A broken frame further up, such as a chunk, is no reason to leave this record out.
                if let Some(damage) = broken {
                    self.suspect(damage)?;
                }
                assemble(&self.store.segments, source, frame)?
            }
        };
        if read.is_err()
            && let Some(at) = self.opened(&frame.id)?
            && let Read::Frame(kind, payload) = self.store.segments.read(at)?
        {
            let source = Source { at, kind, payload: &payload };
            read = assemble(&self.store.segments, &source, frame)?.or(read);
        }
        Ok(match read {
            Ok(raw) => WalkItem::Record { position, frame: source.at.to_u64(), raw: Box::new(raw) },
            Err(mut damage) => {
                damage.place.position = Some(position);
                damage.place.record = Some(frame.id);
                damage.place.run = frame.header.run.clone();
                damage.place.tick = frame.header.tick;
                WalkItem::Unreadable {
                    position,
                    id: frame.id,
                    header: Box::new(frame.header.clone()),
                    damage,
                }
            }
        })
    }

    /// Returns what an erasure left of a record, also one that was begun after this handle last looked.
    fn opened(&mut self, id: &Digest) -> Result<Option<At>, StoreError> {
        match self.erasures()?.newest.get(id) {
            Some(at) => Ok(Some(*at)),
            None => self.store.opened_later(id),
        }
    }

    /// Looks through the log for erasures, once.
    fn erasures(&mut self) -> Result<&Erasures, StoreError> {
        if self.erasures.is_none() {
            let mut newest = HashMap::new();
            self.store.each_frame(&mut |at, kind, payload| {
                if let (frame::OPENED, Some((id, Some(_), _))) = (kind, layout::opened_head(payload)) {
                    newest.insert(id, at);
                }
            })?;
            let opened: Vec<At> = newest.values().copied().collect();
            let doomed = self.store.doomed(&opened)?.all;
            self.erasures = Some(Erasures { newest, doomed });
        }
        Ok(self.erasures.as_ref().expect("set above"))
    }

    /// Passes on damage, unless it is an erasure that was interrupted, or a frame of the vault, which is no part of the log.
    fn suspect(&mut self, damage: Box<Damage>) -> Result<(), StoreError> {
        let at = damage.frame_at();
        if let Some(at) = at
            && self.store.torn_secret(At::from_u64(at))?.is_some()
        {
            return Ok(());
        }
        let erasures = self.erasures()?;
        if !at.is_some_and(|at| erasures.doomed.contains(&at)) {
            self.say(WalkItem::Damage(damage));
        }
        Ok(())
    }
}
