//! Seals records that were read, many at a time and on several processors: most of the time of reading a log.
//!
//! Rule: records come out in the order of the log, and after an unreadable record none comes out in its place.

use std::ops::ControlFlow;

use dendrer_object::Record;

use super::Embedded;
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::frame::At;
use crate::layout::{RawRecord, Unsealed};
use crate::ordered::Line;
use crate::segments::place_name;

/// Seals what was read, or says how it differs.
pub(super) fn seal(raw: RawRecord, at: At) -> Result<Record, Box<Damage>> {
    seal_each(vec![(raw, at)]).pop().expect("one for one")
}

/// As [`seal`], for several at once.
pub(super) fn seal_each(raws: Waiting) -> Sealed {
    let place = |(raw, at): &(RawRecord, At)| DamagePlace {
        file: place_name(at.segment),
        offset: Some(at.offset.into()),
        position: None,
        record: Some(raw.id),
        run: raw.header.run.clone(),
        tick: raw.header.tick,
    };
    // Whole records hash together; one that is not would hold the others back.
    let places: Vec<DamagePlace> = raws.iter().map(place).collect();
    let sealed = RawRecord::seal_each(raws.into_iter().map(|(raw, _)| raw).collect());
    let compare = |(sealed, place): (Result<Record, Unsealed>, DamagePlace)| {
        sealed.map_err(|unsealed| {
            let expected = place.record.map(|id| id.to_string()).unwrap_or_default();
            let found = match unsealed {
                Unsealed::Invalid(why) => why,
                Unsealed::Differs(found) => found.to_string(),
            };
            Box::new(Damage { kind: DamageKind::Content, place, what: "id of the record", expected, found })
        })
    };
    sealed.into_iter().zip(places).map(compare).collect()
}

/// How many records are sealed together, and how many bytes of values at most wait for that.
pub(super) const SEALED_TOGETHER: usize = 128;
pub(super) const WAITING_BYTES: usize = 4 << 20;

/// Records that are to be sealed together.
pub(super) type Waiting = Vec<(RawRecord, At)>;

/// The same, sealed.
pub(super) type Sealed = Vec<Result<Record, Box<Damage>>>;

/// Records of a scan on their way to the caller.
pub(super) struct Batch<'a, 'scope, 'env> {
    store: &'a Embedded,
    line: &'a mut Line<'scope, 'env, Waiting, Sealed>,
    /// The position of the first one that was not handed over.
    next: u64,
    read: u64,
    waiting: Waiting,
    bytes: usize,
    /// Whether nothing more is to be handed over.
    stopped: bool,
    f: &'a mut dyn FnMut(u64, Record) -> ControlFlow<()>,
}

impl<'a, 'scope, 'env> Batch<'a, 'scope, 'env> {
    /// Hands records over to `f` from a position on.
    pub(super) fn new(
        store: &'a Embedded,
        line: &'a mut Line<'scope, 'env, Waiting, Sealed>,
        from: u64,
        f: &'a mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Self {
        Batch { store, line, next: from, read: from, waiting: Vec::new(), bytes: 0, stopped: false, f }
    }

    /// The position behind the last record that was read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    pub(super) fn push(&mut self, raw: RawRecord, at: At) -> Result<ControlFlow<()>, StoreError> {
        self.read += 1;
        self.bytes += raw.texts.len();
        self.waiting.push((raw, at));
        if self.waiting.len() < SEALED_TOGETHER && self.bytes < WAITING_BYTES {
            return Ok(ControlFlow::Continue(()));
        }
        self.send();
        while let Some(sealed) = self.line.take() {
            self.hand_over(sealed)?;
        }
        Ok(self.flow())
    }

    fn send(&mut self) {
        self.bytes = 0;
        if !self.waiting.is_empty() {
            self.line.push(std::mem::take(&mut self.waiting));
        }
    }

    /// Hands over everything that was read.
    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        if self.stopped {
            return Ok(());
        }
        self.send();
        while let Some(sealed) = self.line.take_any() {
            self.hand_over(sealed)?;
        }
        Ok(())
    }

    /// Hands over the record that was read last by itself, behind all before it.
    pub(super) fn alone(&mut self) -> Result<ControlFlow<()>, StoreError> {
        self.flush()?;
        self.read += 1;
        self.single()?;
        Ok(self.flow())
    }

    fn hand_over(&mut self, sealed: Sealed) -> Result<(), StoreError> {
        for sealed in sealed {
            match sealed {
                Ok(record) => self.give(record),
                Err(_) => self.single()?,
            }
        }
        Ok(())
    }

    /// Hands over the next record as a single read gives it, which knows about erasures, also about one that is under
    /// way, and says precisely what is wrong.
    fn single(&mut self) -> Result<(), StoreError> {
        if self.stopped {
            return Ok(());
        }
        // Nothing behind a record that cannot be read is handed over in its place.
        self.stopped = true;
        let record = self.store.read_record(self.next)?.ok_or(StoreError::NoPosition(self.next))?;
        self.stopped = false;
        self.give(record);
        Ok(())
    }

    fn give(&mut self, record: Record) {
        if !self.stopped {
            self.stopped = (self.f)(self.next, record).is_break();
            self.next += 1;
        }
    }

    fn flow(&self) -> ControlFlow<()> {
        if self.stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
