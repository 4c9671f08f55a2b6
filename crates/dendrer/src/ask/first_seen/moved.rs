//! The writes of places up to a tick: the largest changes of numbers, and what the last write left.
//!
//! Deltas are read as they are in the store, so that a long run costs little; the records of the writes that are shown are
//! sealed. The answer is a heuristic, and nothing exact follows from it.

use std::cmp::Ordering;

use dendrer_kernel::names::UNKNOWN;
use dendrer_kernel::unknown;
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::number::Number;
use dendrer_object::{Pointer, Value, json};

use super::search::{ReadTick, each_tick};
use super::{MOVED_MAX, VALUES_MAX, decimal};
use crate::run::timeline::from_first_name;
use crate::run::trace::Trace;

/// A write of a number.
#[derive(Debug, Clone)]
pub(super) struct NumberWrite {
    pub(super) tick: u64,
    pub(super) place: Pointer,
    /// `None` if the place had no value.
    pub(super) before: Option<Value>,
    pub(super) after: Number,
    /// `None` if the value before is no number, or not known.
    pub(super) change: Option<Number>,
}

/// The writes of some places in a range of ticks.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// The largest, in order.
    pub(super) largest: Vec<NumberWrite>,
    /// How many writes there are.
    pub(super) count: u64,
    /// Ticks whose change was erased or withheld.
    pub(super) hidden: u64,
    /// The values that the last tick left in the places that hold no number, each with its place.
    pub(super) left: Vec<(Pointer, Value)>,
}

impl NumberWrite {
    /// How far the number moved.
    fn size(&self) -> Number {
        decimal::magnitude(self.change.as_ref().unwrap_or(&self.after))
    }

    /// Orders by size, the largest first, and then by tick.
    fn order(&self, other: &NumberWrite) -> Ordering {
        other.size().compare(&self.size()).then(self.tick.cmp(&other.tick))
    }

    fn moves(&self) -> bool {
        self.size().compare(&Number::from_u64(0)) == Ordering::Greater
    }
}

/// Reads the writes of places in a range of ticks; `first` begins after a tick whose state is known.
pub(super) fn writes(trace: &Trace, places: &[Pointer], first: u64, last: u64) -> Writes {
    let mut fold = Fold::new(trace, places, first, last);
    each_tick(trace, first..=last, &|field| field == "/delta", &mut |read| fold.pass(&read));
    if !fold.is_whole {
        // What came before an erased change is not known; the states around the last tick may be.
        let (hidden, count) = (fold.writes.hidden, fold.writes.count);
        let states = trace.state(last - 1).and_then(|before| Ok((before, trace.state(last)?)));
        let delta = trace.record(last).ok().and_then(|record| record.delta());
        let mut writes = Writes::default();
        if let (Ok((before, after)), Some(delta)) = (states, delta) {
            fold = Fold::new(trace, places, last, last);
            fold.take(last, &delta, &before, &after);
            writes = fold.writes;
        }
        return Writes { hidden, count, ..writes };
    }
    fold.writes
}

/// The state at the places, on its way through the ticks.
struct Fold<'p> {
    places: &'p [Pointer],
    watched: Vec<Pointer>,
    last: u64,
    state: Value,
    /// Whether every change so far is known.
    is_whole: bool,
    writes: Writes,
}

impl<'p> Fold<'p> {
    fn new(trace: &Trace, places: &'p [Pointer], first: u64, last: u64) -> Fold<'p> {
        let watched = places.iter().map(from_first_name).chain([Pointer::of([UNKNOWN])]).collect();
        let state = trace.state(first.saturating_sub(1)).ok();
        let is_whole = state.is_some();
        let state = state.unwrap_or_else(Value::object);
        Fold { places, watched, last, state, is_whole, writes: Writes::default() }
    }

    fn pass(&mut self, read: &ReadTick<'_>) {
        let Some((_, text)) = read.fields.iter().find(|(field, _)| *field == "/delta") else {
            if read.is_closed {
                self.writes.hidden += 1;
                self.is_whole = false;
            }
            return;
        };
        if !self.may_touch(text) {
            return;
        }
        let delta = json::parse_canonical(text).ok().and_then(|delta| Delta::from_value(&delta).ok());
        let Some(delta) = delta else {
            self.is_whole = false;
            return;
        };
        let touches = |op: &&Op| self.watched.iter().any(|place| place.overlaps(&op.path));
        let part = Delta(delta.0.iter().filter(touches).cloned().collect());
        if part.0.is_empty() {
            return;
        }
        let Ok(after) = part.apply(&self.state) else {
            self.is_whole = false;
            return;
        };
        let before = std::mem::replace(&mut self.state, after.clone());
        self.take(read.tick, &part, &before, &after);
    }

    /// Whether the text of a delta may write near a place: it names the first member of one.
    fn may_touch(&self, text: &[u8]) -> bool {
        let is_named = |place: &Pointer| memchr::memmem::find(text, place.as_str().as_bytes()).is_some();
        // A name with other characters than these may be escaped in the text.
        let is_plain = |place: &Pointer| {
            place.as_str().bytes().all(|c| c == b'/' || c == b'_' || c.is_ascii_alphanumeric())
        };
        self.watched.iter().any(|place| place.as_str().is_empty() || !is_plain(place) || is_named(place))
    }

    /// Takes in the writes of a tick, each place once.
    fn take(&mut self, tick: u64, delta: &Delta, before: &Value, after: &Value) {
        let mut seen: Vec<Pointer> = Vec::new();
        for op in &delta.0 {
            for read in self.places.iter().filter(|read| read.overlaps(&op.path)) {
                // A write below a place is one of a part of it.
                let place = if read.contains(&op.path) { &op.path } else { read };
                if seen.contains(place) {
                    continue;
                }
                seen.push(place.clone());
                let is_part = read.as_str().is_empty();
                self.take_place(tick, op, place, is_part, (before, after));
            }
        }
    }

    fn take_place(
        &mut self,
        tick: u64,
        op: &Op,
        place: &Pointer,
        is_part: bool,
        (before, after): (&Value, &Value),
    ) {
        let (old, new) = (place.get(before), place.get(after));
        if old.is_none() && new.is_none() {
            return;
        }
        self.writes.count += 1;
        match new {
            // In the whole state numbers of all kinds are written, and their sizes cannot be compared.
            Some(Value::Number(new)) if !is_part => {
                let change = match old {
                    Some(Value::Number(old)) => decimal::difference(new, old),
                    None if unknown::meets(before, place).is_none() => Some(new.clone()),
                    _ => None,
                };
                let (place, before) = (place.clone(), old.cloned());
                self.add(NumberWrite { tick, place, before, after: new.clone(), change });
            }
            Some(new) if tick == self.last => {
                let is_inside = place.contains(&op.path);
                let left =
                    op.value.as_ref().filter(|_| is_inside && op.action == Action::Append).unwrap_or(new);
                let room = VALUES_MAX.saturating_sub(self.writes.left.len());
                let leaves = leaves(left, place, room);
                self.writes.left.extend(leaves);
            }
            _ => {}
        }
    }

    /// Keeps a write if it is among the largest.
    fn add(&mut self, write: NumberWrite) {
        let largest = &mut self.writes.largest;
        if !write.moves() {
            return;
        }
        let at = largest.partition_point(|other| other.order(&write) != Ordering::Greater);
        if at < MOVED_MAX {
            largest.insert(at, write);
            largest.truncate(MOVED_MAX);
        }
    }
}

/// The first values in a value that can be looked for, each with its place.
fn leaves(value: &Value, place: &Pointer, most: usize) -> Vec<(Pointer, Value)> {
    let mut found = Vec::new();
    let mut waiting = vec![(place.clone(), value)];
    while let Some((place, value)) = waiting.pop() {
        if found.len() == most {
            break;
        }
        let at = |name: &str| super::wanted::below(&place, &[name.to_owned()]);
        match value {
            Value::Object(members) => {
                let inner: Vec<_> = members.entries().map(|one| (at(&one.key), &one.value)).collect();
                waiting.extend(inner.into_iter().rev());
            }
            Value::Array(items) => {
                let inner: Vec<_> =
                    items.iter().enumerate().map(|(index, one)| (at(&index.to_string()), one)).collect();
                waiting.extend(inner.into_iter().rev());
            }
            leaf if super::wanted::Wanted::value(leaf).is_some() => found.push((place, leaf.clone())),
            _ => {}
        }
    }
    found
}
