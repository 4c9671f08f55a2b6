//! Reading records and finding them: the index for what it covers, the tail in memory for the rest.
//!
//! The index is believed as to where something is, never as to what it is: a record is sealed again and compared, and
//! where the index turns out to be wrong the segments are searched.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::PoisonError;

use dendrer_object::record::{Entry, Header, Kind};
use dendrer_object::{Digest, Record, RunName};

use super::Embedded;
use super::sealing::{Batch, seal, seal_each};
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::fence::Known;
use crate::frame::{self, At, Fault, Step};
use crate::index::IndexedRun;
use crate::layout::{self, Names, RawField, RawRecord, RecordFrame, SEGMENT_HEADER, Slot};
use crate::memory::prefix_start;
use crate::ordered::in_order;
use crate::scan::entry_of;
use crate::segments::{Read, Segments, place_name};
use crate::store::{Head, RunSummary, Skimmed};
use crate::values;

/// How much is read at once by a scan.
const WINDOW: usize = 1 << 20;

/// The bytes of a record, or the damage that keeps it from being read.
type Raw = Result<RawRecord, Box<Damage>>;

/// The frame that holds the values of a record: a values frame, or the newest opened frame.
pub(super) struct Source<'a> {
    pub(super) at: At,
    pub(super) kind: u8,
    pub(super) payload: &'a [u8],
}

/// Puts together what two frames say of a record.
pub(super) fn assemble(
    segments: &Segments,
    source: &Source<'_>,
    frame: &RecordFrame<'_>,
) -> Result<Raw, StoreError> {
    let damage = |what, expected: &str, found: String| {
        let place = place_of(source.at, frame);
        let kind = DamageKind::Frame;
        Ok(Err(Box::new(Damage { kind, place, what, expected: expected.into(), found })))
    };
    let Some(pointers) = frame.pointers() else {
        return damage("pointers of the fields", "JSON pointers", "something else".into());
    };
    let parsed = match source.kind {
        frame::VALUES => {
            layout::parse_values(source.payload, pointers.len()).map(|(seed, fields)| (Some(seed), fields))
        }
        frame::OPENED => layout::parse_opened(source.payload, pointers.len())
            .filter(|opened| opened.record == frame.id)
            .map(|opened| (None, opened.fields)),
        _ => None,
    };
    let Some((seed, stored)) = parsed else {
        return damage("values", "those of this record", format!("frame kind {:?}", char::from(source.kind)));
    };
    let mut texts = Vec::with_capacity(source.payload.len());
    let mut fields = Vec::with_capacity(stored.len());
    for field in &stored {
        let start = texts.len();
        if let Some(slot) = &field.slot
            && let Err(at) = values::read(segments, slot, source.at.to_u64(), &mut texts)?
        {
            let found = format!("what cannot be read at {:?}", At::from_u64(at));
            return damage("chunks of a value", "a chunk or list", found);
        }
        let text = field.slot.is_some().then_some(start..texts.len());
        fields.push(RawField { digest: field.digest, salt: field.salt, text });
    }
    let (id, header) = (frame.id, frame.header.clone());
    Ok(Ok(RawRecord { id, header, pointers, seed, fields, texts }))
}

fn place_of(at: At, frame: &RecordFrame<'_>) -> DamagePlace {
    DamagePlace {
        file: place_name(at.segment),
        offset: Some(at.offset.into()),
        position: None,
        record: Some(frame.id),
        run: frame.header.run.clone(),
        tick: frame.header.tick,
    }
}

fn broken(at: At, what: &'static str, read: &Read) -> Box<Damage> {
    let place = DamagePlace {
        file: place_name(at.segment),
        offset: Some(at.offset.into()),
        ..DamagePlace::default()
    };
    let (expected, found) = match read {
        Read::Frame(kind, _) => ("another frame".into(), format!("frame kind {:?}", char::from(*kind))),
        Read::Broken(head, crc) => (format!("crc32c {:08x}", head.crc), format!("{crc:08x}")),
        Read::Short => ("a frame".into(), "the end of the file".into()),
    };
    Box::new(Damage { kind: DamageKind::Frame, place, what, expected, found })
}

/// Takes the position and the frames of a record.
type Each<'f> = dyn FnMut(u64, Frames<'_>) -> Result<ControlFlow<()>, StoreError> + 'f;

/// How far a range of records is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// To its last record.
    Record,
    /// To the end of the group of its last record, which says whether all of them are where they were said to be.
    Commit,
}

impl Embedded {
    /// Reads the record at a position.
    pub(super) fn read_record(&self, position: u64) -> Result<Option<Record>, StoreError> {
        if position >= self.size() {
            return Ok(None);
        }
        if let Some(row) = self.tail.row(position) {
            return self.read_or_erased(row.values, &row.id, self.tail.opened(&row.id), position).map(Some);
        }
        // The index may be wrong; the segments decide.
        let indexed = self.index.as_ref().and_then(|index| index.record(position).ok().flatten());
        if let Some(indexed) = indexed {
            let opened = self.tail.opened(&indexed.id).or(indexed.opened);
            if let Ok(record) = self.read_at(indexed.values, &indexed.id, opened)? {
                return Ok(Some(record));
            }
        }
        self.read_in_log(position).map(Some)
    }

    /// Reads the record at a position without asking the index for its place.
    pub(super) fn read_in_log(&self, position: u64) -> Result<Record, StoreError> {
        let Some((values, id)) = self.search(position)? else {
            return Err(StoreError::NoPosition(position));
        };
        let opened = self.opened(&id, position)?;
        self.read_or_erased(values, &id, opened, position)
    }

    /// Reads a record, or what another handle that erases values just now leaves of it.
    fn read_or_erased(
        &self,
        values: At,
        id: &Digest,
        opened: Option<At>,
        position: u64,
    ) -> Result<Record, StoreError> {
        let damage = match self.read_at(values, id, opened)? {
            Ok(record) => return Ok(record),
            Err(damage) => damage,
        };
        if let Some(later) = self.opened_later(id)?
            && let Ok(record) = self.read_at(values, id, Some(later))?
        {
            return Ok(record);
        }
        Err(at_position(damage, position))
    }

    /// Looks for an opened frame of a record behind what this handle has taken in.
    pub(super) fn opened_later(&self, id: &Digest) -> Result<Option<At>, StoreError> {
        let mut segment = self.end.segment;
        let mut begin = At::new(segment, self.end.offset);
        let (mut seen, mut committed) = (None, None);
        while let Some(mut reader) = self.segments.reader(begin, WINDOW)? {
            loop {
                match reader.next().map_err(|error| self.segments.io("read", segment, error))? {
                    Step::Frame { offset, kind: frame::OPENED, payload } => {
                        let is_it = layout::opened_head(payload).is_some_and(|(about, ..)| about == *id);
                        seen = is_it.then(|| At::new(segment, offset)).or(seen);
                    }
                    Step::Frame { kind: frame::COMMIT, .. } => committed = seen,
                    Step::Frame { .. } => {}
                    Step::Fault { .. } => return Ok(committed),
                    Step::End { .. } => break,
                }
            }
            segment += 1;
            begin = At::new(segment, SEGMENT_HEADER as u64);
        }
        Ok(committed)
    }

    /// Reads the record whose values are at a place. Damage is the inner error.
    fn read_at(
        &self,
        values: At,
        id: &Digest,
        opened: Option<At>,
    ) -> Result<Result<Record, Box<Damage>>, StoreError> {
        let (first, second, record_at) = self.segments.read_two(values)?;
        let parsed = match &second {
            Read::Frame(frame::RECORD, payload) => RecordFrame::parse(payload, self.info.id),
            _ => None,
        };
        let Some(parsed) = parsed.filter(|parsed| parsed.id == *id) else {
            return Ok(Err(broken(record_at, "record frame", &second)));
        };
        let (at, read) = match opened {
            Some(at) => (at, self.segments.read(at)?),
            None => (values, first),
        };
        let Read::Frame(kind, payload) = &read else {
            let mut damage = broken(at, "checksum of the frame", &read);
            damage.place = place_of(at, &parsed);
            return Ok(Err(damage));
        };
        let source = Source { at, kind: *kind, payload };
        Ok(assemble(&self.segments, &source, &parsed)?.and_then(|raw| seal(raw, at)))
    }

    /// Returns the newest opened frame of a record that the index covers.
    pub(super) fn opened(&self, id: &Digest, position: u64) -> Result<Option<At>, StoreError> {
        if let Some(at) = self.tail.opened(id) {
            return Ok(Some(at));
        }
        if position >= self.tail.base {
            return Ok(None);
        }
        let indexed = self.index.as_ref().map_or(Ok(None), |index| index.record(position))?;
        let Some(at) = indexed.and_then(|indexed| indexed.opened) else { return Ok(None) };
        // The index may name any place; what is no such frame of this record opens nothing.
        let is_it = match self.segments.read(at)? {
            Read::Frame(frame::OPENED, payload) => {
                layout::opened_head(&payload).is_some_and(|(about, ..)| about == *id)
            }
            _ => false,
        };
        Ok(is_it.then_some(at))
    }

    /// Returns where the values of the record at a position are.
    pub(super) fn locate(&self, position: u64) -> Result<Option<At>, StoreError> {
        if let Some(row) = self.tail.row(position) {
            return Ok(Some(row.values));
        }
        let indexed = self.index.as_ref().and_then(|index| index.record(position).ok().flatten());
        match indexed {
            Some(indexed) => Ok(Some(indexed.values)),
            None => Ok(self.search(position)?.map(|(values, _)| values)),
        }
    }

    /// As [`Embedded::locate`], whatever the index says.
    pub(super) fn locate_in_log(&self, position: u64) -> Result<Option<At>, StoreError> {
        match self.tail.row(position) {
            Some(row) => Ok(Some(row.values)),
            None => Ok(self.search(position)?.map(|(values, _)| values)),
        }
    }

    /// Searches the segments for a record, by counting.
    fn search(&self, position: u64) -> Result<Option<(At, Digest)>, StoreError> {
        let mut segment = self.end.segment;
        let start = loop {
            match self.segments.header(segment)? {
                Some(header) if header.start <= position => break header.start,
                _ if segment == 0 => return Ok(None),
                _ => segment -= 1,
            }
        };
        let begin = At::new(segment, SEGMENT_HEADER as u64);
        let mut found = None;
        self.stream(begin, start..position + 1, Until::Record, &mut |at, frames| {
            if at == position {
                found = Some((frames.values, frames.record.id));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Says that a place is not that of the record at a position. If the index named it, the log may be as it was.
    pub(super) fn astray(&self, position: u64, at: At) -> StoreError {
        if position < self.tail.base && self.index.is_some() {
            let what =
                format!("it says that record {position} is at {at:?}, and the log has another one there");
            return StoreError::IndexDamaged(what);
        }
        let file = place_name(at.segment);
        let place = DamagePlace {
            file,
            offset: Some(at.offset.into()),
            position: Some(position),
            ..DamagePlace::default()
        };
        let (expected, found) = ("as many records as the end of the group says".into(), "others".into());
        Damage { kind: DamageKind::Chain, place, what: "records of a group", expected, found }.into()
    }

    /// Hands over the frames of the records in a range with their positions. The first of them is said to begin at a place; how
    /// many follow to the end of a group tells whether it does. Fails where the range does not end within what this handle sees.
    fn stream(&self, begin: At, range: Range<u64>, until: Until, f: &mut Each<'_>) -> Result<(), StoreError> {
        let mut segment = begin.segment;
        let mut position = range.start;
        let Some(mut reader) = self.segments.reader(begin, WINDOW)? else {
            return Err(self.astray(range.start, begin));
        };
        let mut before = (begin, frame::VOID, Vec::new());
        let mut names = Names::default();
        loop {
            if position >= range.end && until == Until::Record {
                return Ok(());
            }
            if (segment, reader.offset()) >= (self.end.segment, self.end.offset) {
                return Err(self.astray(range.start, begin));
            }
            let step = reader.next().map_err(|error| self.segments.io("read", segment, error))?;
            match step {
                Step::Frame { kind: frame::COMMIT, payload, .. } => {
                    if frame::Commit::parse(payload).is_none_or(|commit| commit.size != position) {
                        return Err(self.astray(range.start, begin));
                    }
                    if position >= range.end {
                        return Ok(());
                    }
                }
                Step::Frame { kind: frame::RECORD, .. } if position >= range.end => position += 1,
                Step::Frame { kind: frame::RECORD, payload, offset } => {
                    let at = At::new(segment, offset);
                    let Some(record) = RecordFrame::parse_with(payload, self.info.id, Some(&mut names))
                    else {
                        return Err(
                            (*broken(at, "record frame", &Read::Frame(frame::RECORD, Vec::new()))).into()
                        );
                    };
                    let frames = Frames { values: before.0, kind: before.1, payload: &before.2, record };
                    if f(position, frames)?.is_break() {
                        return Ok(());
                    }
                    position += 1;
                }
                Step::Frame {
                    kind: kind @ (frame::VALUES | frame::OPENED | frame::VOID),
                    payload,
                    offset,
                } => {
                    before.0 = At::new(segment, offset);
                    before.1 = kind;
                    before.2.clear();
                    before.2.extend_from_slice(payload);
                }
                Step::Frame { .. } => {}
                Step::Fault { offset, fault: Fault::Checksum { head, .. } }
                    if head.kind != frame::RECORD && head.kind != frame::COMMIT =>
                {
                    // The values are being overwritten by an erasure, or are damaged: a reader of the values gets the
                    // error.
                    before = (At::new(segment, offset), 0, Vec::new());
                    reader.seek(offset + head.size());
                }
                Step::Fault { offset, fault } => {
                    let place = DamagePlace {
                        file: place_name(segment),
                        offset: Some(offset),
                        ..DamagePlace::default()
                    };
                    let (expected, found) = (fault.expected(), fault.found());
                    let (kind, what) = (DamageKind::Frame, "checksum of the frame");
                    return Err(Damage { kind, place, what, expected, found }.into());
                }
                Step::End { .. } => {
                    segment += 1;
                    let at = At::new(segment, SEGMENT_HEADER as u64);
                    match self.segments.reader(at, WINDOW)? {
                        Some(next) => reader = next,
                        None => return Err(self.astray(range.start, begin)),
                    }
                }
            }
        }
    }

    pub(super) fn scan_records(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let end = range.end.min(self.size());
        if range.start >= end {
            return Ok(());
        }
        let begin = self.locate(range.start)?.ok_or(StoreError::NoPosition(range.start))?;
        let has_opened = self.may_have_opened()?;
        in_order(&seal_each, |line| {
            let mut batch = Batch::new(self, line, range.start, f);
            let streamed = self.stream(begin, range.start..end, Until::Record, &mut |position, frames| {
                batch.read();
                let opened = if has_opened { self.opened(&frames.record.id, position)? } else { None };
                let source = Source { at: frames.values, kind: frames.kind, payload: frames.payload };
                let raw = match opened {
                    None => assemble(&self.segments, &source, &frames.record)?.ok(),
                    Some(_) => None,
                };
                match raw {
                    Some(raw) => batch.push(raw, frames.values),
                    None => batch.alone(),
                }
            });
            // The waiting records precede the end, or the record that could not be read.
            batch.flush()?;
            streamed
        })
    }

    /// Whether there may be opened frames, so that each record is to be looked up among them.
    fn may_have_opened(&self) -> Result<bool, StoreError> {
        Ok(self.tail.has_opened() || self.index.as_ref().map_or(Ok(false), |index| index.has_opened())?)
    }

    pub(super) fn skim_records(
        &self,
        range: Range<u64>,
        wanted: &dyn Fn(&Header, &str) -> bool,
        f: &mut dyn FnMut(u64, Skimmed<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        let end = range.end.min(self.size());
        if range.start >= end {
            return Ok(true);
        }
        let Some(begin) = self.locate(range.start)? else { return Ok(false) };
        let has_opened = self.may_have_opened()?;
        let mut is_readable = true;
        self.stream(begin, range.start..end, Until::Record, &mut |position, frames| {
            let opened = if has_opened { self.opened(&frames.record.id, position)? } else { None };
            let flow = match opened {
                None => self.skim_one(frames, wanted, &mut |skimmed| f(position, skimmed))?,
                Some(_) => None,
            };
            is_readable = flow.is_some();
            Ok(flow.unwrap_or(ControlFlow::Break(())))
        })?;
        Ok(is_readable)
    }

    /// Hands over what is wanted of the frames of a record; `None` where they do not hold it.
    fn skim_one(
        &self,
        frames: Frames<'_>,
        wanted: &dyn Fn(&Header, &str) -> bool,
        f: &mut dyn FnMut(Skimmed<'_>) -> ControlFlow<()>,
    ) -> Result<Option<ControlFlow<()>>, StoreError> {
        let Some(places) = frames.record.places().filter(|_| frames.kind == frame::VALUES) else {
            return Ok(None);
        };
        let Some((_, stored)) = layout::parse_values(frames.payload, places.len()) else { return Ok(None) };
        let RecordFrame { id, header, .. } = &frames.record;
        let mut fields = Vec::with_capacity(places.len());
        for (place, stored) in places.iter().zip(stored) {
            match stored.slot.filter(|_| wanted(header, place)) {
                Some(Slot::Inline(text)) => fields.push((&**place, Cow::Borrowed(text))),
                Some(slot) => {
                    let mut text = Vec::new();
                    if values::read(&self.segments, &slot, frames.values.to_u64(), &mut text)?.is_err() {
                        return Ok(None);
                    }
                    fields.push((&**place, Cow::Owned(text)));
                }
                None => {}
            }
        }
        Ok(Some(f(Skimmed { id: *id, header, fields })))
    }

    pub(super) fn scan_entries(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let end = range.end.min(self.size());
        if range.start >= end {
            return Ok(());
        }
        let begin = self.locate(range.start)?.ok_or(StoreError::NoPosition(range.start))?;
        self.entries_from(begin, range.start..end, f)
    }

    /// As [`Embedded::scan_entries`], from a place that is not asked of the index.
    pub(super) fn entries_from(
        &self,
        begin: At,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.stream(begin, range, Until::Commit, &mut |position, frames| {
            Ok(f(position, entry_of(&frames.record)))
        })
    }

    pub(super) fn find_id(&self, id: &Digest) -> Result<Option<u64>, StoreError> {
        Ok(self.find_known(id)?.map(|(position, _)| position))
    }

    /// Returns the position and the kind of a record. Links and parents of forks depend on the answer, so the
    /// position of the index is checked in the log.
    pub(super) fn find_known(&self, id: &Digest) -> Result<Option<(u64, Known)>, StoreError> {
        let indexed = self.index.as_ref().map_or(Ok(None), |index| index.find(id, self.tail.base))?;
        let Some(position) = indexed else {
            let Some(position) = self.tail.find(id) else {
                self.index.as_ref().map_or(Ok(()), |index| index.check_records())?;
                return Ok(None);
            };
            let row = self.tail.row(position).expect("positions of the tail are in the tail");
            return Ok(Some((position, Known { kind: row.kind, tick: row.tick })));
        };
        Ok(Some((position, self.in_log(position, &|found| found.id == *id)?)))
    }

    /// Returns the record of the log at a position, if it is the one that the index has there.
    fn in_log(&self, position: u64, is_it: &dyn Fn(&RecordFrame<'_>) -> bool) -> Result<Known, StoreError> {
        let at = self.locate(position)?.ok_or(StoreError::NoPosition(position))?;
        let (_, second, _) = self.segments.read_two(at)?;
        let found = match &second {
            Read::Frame(frame::RECORD, payload) => RecordFrame::parse(payload, self.info.id),
            _ => None,
        };
        let found = found.filter(is_it).ok_or_else(|| self.astray(position, at))?;
        Ok(Known { kind: found.header.kind, tick: found.header.tick })
    }

    /// Checks that the log has a record at a position that the index names. If the index has only the frame of it wrong, the
    /// log is searched.
    fn check_in_log(
        &self,
        position: u64,
        is_it: &dyn Fn(&RecordFrame<'_>) -> bool,
    ) -> Result<(), StoreError> {
        let error = match self.in_log(position, is_it) {
            Err(error @ StoreError::IndexDamaged(_)) => error,
            found => return found.map(drop),
        };
        let Some((at, _)) = self.search(position)? else { return Err(error) };
        match self.segments.read_two(at)?.1 {
            Read::Frame(frame::RECORD, payload)
                if RecordFrame::parse(&payload, self.info.id).is_some_and(|found| is_it(&found)) =>
            {
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Says of a group that another one came before whether it is the index that has the head of the run wrong.
    pub(super) fn or_of_the_index(&self, error: StoreError) -> StoreError {
        let StoreError::Stale { run, .. } = &error else { return error };
        let Ok(Some(RunSummary { head, head_position: at, .. })) = self.run_summary(run) else {
            return error;
        };
        if at < self.tail.base
            && let Err(damaged @ StoreError::IndexDamaged(_)) = self.in_log(at, &|found| found.id == head.id)
        {
            return damaged;
        }
        error
    }

    pub(super) fn find_by_prefix(&self, hex: &str, limit: usize) -> Result<Vec<(Digest, u64)>, StoreError> {
        let Some(first) = prefix_start(hex) else { return Ok(Vec::new()) };
        let mut found = match &self.index {
            Some(index) => index.find_prefix(&first, hex, self.tail.base, limit)?,
            None => Vec::new(),
        };
        for (position, row) in self.tail.rows() {
            let known = || found.iter().any(|(id, _)| *id == row.id);
            if row.id >= first && row.id.hex().starts_with(hex) && !known() {
                found.push((row.id, position));
            }
        }
        found.sort_unstable();
        found.truncate(limit);
        Ok(found)
    }

    /// Counts the runs in the index, and holds their names against the log as far as that is quick: a run whose name is not
    /// there, or another one, could begin a second time.
    pub(super) fn check_names(&self) -> Result<(), StoreError> {
        let Some(index) = &self.index else { return Ok(()) };
        index.check_runs()?;
        let runs = index.runs(0, self.tail.base, NAMES_CHECKED + 1)?;
        if runs.len() > NAMES_CHECKED {
            return Ok(());
        }
        runs.iter().try_for_each(|(begin, name)| {
            self.in_log(*begin, &|found| found.header.run.as_ref() == Some(name)).map(drop)
        })
    }

    /// Returns where a run begins, as the index knows it.
    fn indexed_begin(&self, run: &RunName) -> Result<Option<u64>, StoreError> {
        let Some(index) = &self.index else { return Ok(None) };
        let found = index.run(run, self.tail.base)?;
        if found.is_none() && self.tail.run(run).is_none_or(|rows| rows.begin.is_none()) {
            index.check_runs()?;
        }
        Ok(found.map(|run| run.begin))
    }

    pub(super) fn run_summary(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        if let Some(known) = self.summaries.lock().unwrap_or_else(PoisonError::into_inner).get(run) {
            return Ok(Some(known.clone()));
        }
        let mut summary = self.indexed_summary(run)?;
        if let Some(rows) = self.tail.run(run) {
            if let Some(row) = rows.begin.filter(|_| summary.is_none()).and_then(|begin| self.tail.row(begin))
            {
                summary = Some(self.tail_begin(run, rows.begin.unwrap_or_default(), row)?);
            }
            if let Some(summary) = &mut summary {
                self.add_tail(summary, rows);
            }
        }
        if summary.is_none() {
            self.index.as_ref().map_or(Ok(()), |index| index.check_runs())?;
        }
        if let Some(summary) = &summary {
            let mut summaries = self.summaries.lock().unwrap_or_else(PoisonError::into_inner);
            if summaries.len() > SUMMARIES_MAX {
                summaries.clear();
            }
            summaries.insert(run.clone(), summary.clone());
        }
        Ok(summary)
    }

    /// The summary of a run as far as the index covers it.
    fn indexed_summary(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        let (Some(index), base) = (&self.index, self.tail.base) else { return Ok(None) };
        let Some(IndexedRun { begin, parent, first_own_tick, newest_tick, beside }) = index.run(run, base)?
        else {
            return Ok(None);
        };
        let Some(record) = index.record(begin)? else {
            return Err(StoreError::IndexDamaged(format!(
                "it has no row for record {begin}, which begins {run}"
            )));
        };
        let is_begin = |found: &RecordFrame<'_>| {
            (found.header.kind, found.header.run.as_ref()) == (Kind::Run, Some(run))
        };
        self.check_in_log(begin, &is_begin)?;
        let own = index.head(begin, base)?;
        if let Some((position, tick, id, _)) = own {
            self.check_in_log(position, &|found| {
                (found.id, found.header.run.as_ref(), found.header.tick) == (id, Some(run), Some(tick))
            })?;
        }
        let (refusals, ended, beside_ts, all_beside) = index.beside_counts(begin, base)?;
        if (own.map(|(_, tick, ..)| tick), all_beside) != (newest_tick, beside) {
            // Either the index is ahead of this handle, or a row is missing.
            index.check_chain(begin)?;
            index.check_beside(begin)?;
        }
        // The index may be ahead of this handle: what it says of later records does not count here.
        let first_own_tick = match parent {
            Some(parent) if own.is_none() => {
                let known = self.find_known(&parent)?.filter(|(position, _)| *position < begin);
                known.and_then(|(_, known)| known.tick).map(|tick| tick + 1)
            }
            _ => first_own_tick,
        };
        let (head, head_position, ts) = match own {
            Some((position, tick, id, ts)) => (Head { tick: Some(tick), id }, position, Some(ts)),
            None => {
                let tick = first_own_tick.and_then(|tick| tick.checked_sub(1));
                (Head { tick, id: record.id }, begin, None)
            }
        };
        let transitions = match (head.tick, first_own_tick, parent) {
            // Tick 0 is the run record.
            (Some(tick), _, None) => tick,
            (Some(tick), Some(first), Some(_)) => (tick + 1).saturating_sub(first),
            _ => 0,
        };
        let last_ts = ts.max(beside_ts).unwrap_or(dendrer_object::Timestamp::from_ms(0));
        Ok(Some(RunSummary {
            name: run.clone(),
            begin,
            parent,
            first_own_tick,
            head,
            head_position,
            transitions,
            refusals,
            ended,
            last_ts,
        }))
    }

    /// The summary of a run that begins in the tail, before its other records.
    fn tail_begin(
        &self,
        run: &RunName,
        begin: u64,
        row: &crate::tail::Row,
    ) -> Result<RunSummary, StoreError> {
        let parent_tick = match row.prev {
            Some(prev) => crate::fence::Log::known(self, &prev)?.and_then(|known| known.tick),
            None => None,
        };
        Ok(RunSummary {
            name: run.clone(),
            begin,
            parent: row.prev,
            first_own_tick: row.tick.or(parent_tick.map(|tick| tick + 1)),
            head: Head { tick: row.tick.or(parent_tick), id: row.id },
            head_position: begin,
            transitions: 0,
            refusals: 0,
            ended: false,
            last_ts: row.ts,
        })
    }

    fn add_tail(&self, summary: &mut RunSummary, rows: &crate::tail::RunRows) {
        for position in rows.chain.iter().filter(|position| **position > summary.begin) {
            let row = self.tail.row(*position).expect("positions of the tail are in the tail");
            summary.head = Head { tick: row.tick, id: row.id };
            summary.head_position = *position;
            summary.first_own_tick = summary.first_own_tick.or(row.tick);
            summary.transitions += 1;
            summary.last_ts = summary.last_ts.max(row.ts);
        }
        for (position, kind) in &rows.beside {
            let row = self.tail.row(*position).expect("positions of the tail are in the tail");
            summary.refusals += u64::from(*kind == Kind::Refusal);
            summary.ended |= *kind == Kind::End;
            summary.last_ts = summary.last_ts.max(row.ts);
        }
    }

    pub(super) fn list_runs(&self, from: u64, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        let mut names = match &self.index {
            Some(index) => {
                // A list that begins anew is to be of all runs.
                if from == 0 {
                    index.check_runs()?;
                }
                index.runs(from, self.tail.base, limit)?
            }
            None => Vec::new(),
        };
        names.extend(self.tail.begins().iter().filter(|(begin, _)| *begin >= from).cloned());
        names.truncate(limit);
        let mut runs = Vec::with_capacity(names.len());
        for (_, name) in names {
            runs.extend(self.run_summary(&name)?);
        }
        Ok(runs)
    }

    pub(super) fn position_at(&self, run: &RunName, tick: u64) -> Result<Option<u64>, StoreError> {
        if let Some(rows) = self.tail.run(run)
            && let Some(ahead) = tick.checked_sub(rows.first_tick).filter(|_| !rows.chain.is_empty())
        {
            return Ok(usize::try_from(ahead).ok().and_then(|ahead| rows.chain.get(ahead).copied()));
        }
        let (Some(begin), Some(index)) = (self.indexed_begin(run)?, &self.index) else { return Ok(None) };
        match index.at(begin, tick, self.tail.base)? {
            None if self.is_indexed(run, tick)? => Err(no_row(run, tick)),
            None => index.check_chain(begin).map(|()| None),
            found => Ok(found),
        }
    }

    /// Tells whether a tick is among those that the index is to have a row for.
    fn is_indexed(&self, run: &RunName, tick: u64) -> Result<bool, StoreError> {
        let (Some(index), base) = (&self.index, self.tail.base) else { return Ok(false) };
        let Some(IndexedRun { begin, first_own_tick, .. }) = index.run(run, base)? else { return Ok(false) };
        let newest = index.head(begin, base)?.map(|(_, newest, ..)| newest);
        Ok(first_own_tick.is_some_and(|first| first <= tick) && newest.is_some_and(|newest| tick <= newest))
    }

    pub(super) fn list_positions(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        let mut found = Vec::new();
        if ticks.start() > ticks.end() {
            return Ok(found);
        }
        if let (Some(begin), Some(index)) = (self.indexed_begin(run)?, &self.index) {
            found = index.positions(begin, ticks.clone(), self.tail.base, limit)?;
            // The rows before a missing one are returned; the next question begins at the missing row and gets the
            // error.
            let is_first = found.first().is_some_and(|(first, _)| first == ticks.start());
            if !is_first && limit > 0 && self.is_indexed(run, *ticks.start())? {
                return Err(no_row(run, *ticks.start()));
            }
            if found.len() < limit {
                index.check_chain(begin)?;
                if let Some((tick, position)) = found.last().copied() {
                    self.check_in_log(position, &|found| {
                        (found.header.run.as_ref(), found.header.tick) == (Some(run), Some(tick))
                    })?;
                }
            }
        }
        if let Some(rows) = self.tail.run(run) {
            let skip = ticks.start().saturating_sub(rows.first_tick);
            let chain =
                (rows.first_tick..).zip(&rows.chain).skip(usize::try_from(skip).unwrap_or(usize::MAX));
            let wanted = chain.take_while(|(tick, _)| tick <= ticks.end()).take(limit - found.len());
            found.extend(wanted.map(|(tick, position)| (tick, *position)));
        }
        Ok(found)
    }

    pub(super) fn list_beside(
        &self,
        run: &RunName,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Kind)>, StoreError> {
        let mut found = Vec::new();
        if let (Some(begin), Some(index)) = (self.indexed_begin(run)?, &self.index) {
            found = index.beside(begin, from, self.tail.base, limit)?;
            if found.len() < limit {
                index.check_beside(begin)?;
            }
        }
        if let Some(rows) = self.tail.run(run) {
            let later = rows.beside.iter().filter(|(position, _)| *position >= from);
            found.extend(later.take(limit - found.len()));
        }
        Ok(found)
    }

    pub(super) fn list_beside_runs(&self, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        let mut found = match &self.index {
            Some(index) => {
                let found = index.beside_runs(from, self.tail.base, limit)?;
                if found.len() < limit {
                    index.check_apart()?;
                }
                found
            }
            None => Vec::new(),
        };
        let rows = self.tail.rows().filter(|(position, row)| *position >= from && row.run.is_none());
        found
            .extend(rows.map(|(position, row)| (position, row.kind)).take(limit.saturating_sub(found.len())));
        Ok(found)
    }
}

/// The error for a tick that the index lacks between others that it has.
fn no_row(run: &RunName, tick: u64) -> StoreError {
    StoreError::IndexDamaged(format!("it has no row for tick {tick} of {run}, and has those beside it"))
}

/// Of how many runs the names are held against the log before another one begins.
const NAMES_CHECKED: usize = 1_000;

/// How many summaries of runs are kept.
const SUMMARIES_MAX: usize = 50_000;

/// A record frame of a segment, with the frame before it.
struct Frames<'a> {
    values: At,
    /// The kind of the frame before the record; 0 if that has a bad checksum.
    kind: u8,
    payload: &'a [u8],
    record: RecordFrame<'a>,
}

#[expect(clippy::boxed_local, reason = "damage comes boxed from everywhere")]
fn at_position(mut damage: Box<Damage>, position: u64) -> StoreError {
    damage.place.position = Some(position);
    (*damage).into()
}
