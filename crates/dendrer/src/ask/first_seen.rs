//! Looks for where the value that crossed a limit came from: the largest writes, and the earliest transition with an equal value.
//!
//! Never changes an onset, an exit code or the certainty of an answer, and never names a cause: equal is not same.
//!
//! Rule: a value that is found nowhere is `not before` its write only for what could be read; the rest is counted
//! ([`SeenValue::unread`]), test `erased_values_are_counted`.

use dendrer_kernel::names::{COUNTERS, KERNEL_PATHS};
use dendrer_kernel::predicate::{Predicate, Window};
use dendrer_object::record::Record;
use dendrer_object::{Pointer, Value};

use crate::error::Error;
use crate::run::timeline::policy;
use crate::run::trace::Trace;

use self::moved::NumberWrite;
use self::search::{Asked, FoundAt};
use self::wanted::Wanted;

mod decimal;
mod moved;
mod search;
mod wanted;

/// How many writes are shown.
pub const MOVED_MAX: usize = 3;

/// How many values are looked for that a write left in a place without a number.
const VALUES_MAX: usize = 3;

/// How many transitions back are looked at.
pub const REACH: u64 = 100_000;

/// The largest writes before an onset, and where their values were seen first.
#[derive(Debug, Clone)]
pub struct FirstSeen {
    /// The last tick that is looked at: the onset, or the write that was asked about.
    pub upto: u64,
    /// The places whose writes are looked at.
    pub places: Vec<Pointer>,
    /// The broken rule that reads the places, for `kernel.policy_compliant`.
    pub rule: Option<String>,
    /// The writes with the largest change of a number, at most [`MOVED_MAX`]; of equal ones the earlier first.
    pub moved: Vec<MovedWrite>,
    /// How many writes of the places there are, of numbers and others.
    pub writes: u64,
    /// Ticks whose change was erased or withheld.
    pub hidden: u64,
    /// The values that are looked for, those of `moved` first and in its order. A value that is not looked for has none.
    pub seen: Vec<SeenValue>,
    /// The first tick that was looked at; 0 is the state with which the run begins.
    pub from: u64,
}

/// A write of a number.
#[derive(Debug, Clone)]
pub struct MovedWrite {
    /// The tick.
    pub tick: u64,
    /// The place.
    pub place: Pointer,
    /// The value before; `None` if there was none.
    pub before: Option<Value>,
    /// The number after.
    pub after: Value,
    /// The change, in decimals as they are printed. `None` if the value before is no number, or not known.
    pub change: Option<Value>,
    /// The record.
    pub record: Record,
}

/// A value that was looked for.
#[derive(Debug, Clone)]
pub struct SeenValue {
    /// The value that was written, if it is on record before; else the change, or of a decrease that was found by its amount the
    /// amount.
    pub value: Value,
    /// The tick of the write that the value is of.
    pub write: u64,
    /// The place of that write.
    pub place: Pointer,
    /// The earliest transition that has it; `None` if no transition up to the write has it.
    pub at: Option<SeenAt>,
    /// How many transitions before it, or up to the write, have a value that was erased, withheld, redacted or not recorded.
    pub unread: u64,
}

/// The earliest transition that has a value.
#[derive(Debug, Clone)]
pub struct SeenAt {
    /// The tick; 0 is the state with which the run begins.
    pub tick: u64,
    /// The place in the content of the record, through texts that hold JSON; of a state below `/state`.
    pub path: Pointer,
    /// The smallest object around it if that has at most 140 characters of JSON, else the value; of a long text the part around it.
    pub within: Value,
    /// How many further transitions up to the write have the value.
    pub others: u64,
    /// The record; `None` at tick 0.
    pub record: Option<Record>,
    /// The tool of the call that the place is part of.
    pub tool: Option<String>,
}

impl FirstSeen {
    /// Looks at the places that a predicate reads, up to its onset; of `kernel.policy_compliant` those that the broken rule
    /// reads. `None` if it reads no place of the state that transitions write.
    ///
    /// # Errors
    ///
    /// An error if the rule that is broken cannot be found. Ticks that cannot be read are counted.
    pub fn of_onset(trace: &Trace, predicate: &Predicate, onset: u64) -> Result<Option<FirstSeen>, Error> {
        let (rule, places, upto) = match predicate.is_policy() {
            true => match policy::broken_rule(trace, predicate, onset)? {
                Some(broken) => (Some(broken.name), broken.reads, broken.tick),
                None => return Ok(None),
            },
            false => {
                let lag = u64::from(predicate.window() == Window::Before);
                (None, predicate.read_set().to_vec(), onset.saturating_sub(lag))
            }
        };
        let is_written = |place: &Pointer| {
            let first = place.tokens().next();
            first.is_none_or(|first| first != COUNTERS && !KERNEL_PATHS.contains(&&*first))
        };
        let places = Pointer::outermost(places.into_iter().filter(is_written).collect());
        if places.is_empty() || upto == 0 {
            return Ok(None);
        }
        Ok(Some(FirstSeen::up_to(trace, places, rule, first_tick(upto), upto)))
    }

    /// Looks at one write of a place.
    pub fn of_write(trace: &Trace, place: &Pointer, tick: u64) -> FirstSeen {
        FirstSeen::up_to(trace, vec![place.clone()], None, tick, tick)
    }

    /// Reads the writes of a range of ticks, and looks for their values from [`REACH`] transitions before its end on.
    fn up_to(trace: &Trace, places: Vec<Pointer>, rule: Option<String>, first: u64, upto: u64) -> FirstSeen {
        let found = moved::writes(trace, &places, first, upto);
        // A write whose record is damaged is not shown.
        let read = found.largest.into_iter();
        let moved: Vec<MovedWrite> = read
            .filter_map(|write| Some((trace.record(write.tick).ok()?, write)))
            .map(MovedWrite::of)
            .collect();
        let of_moved = moved.iter().map(WriteValues::of_moved);
        let of_left = found.left.iter().map(|(place, value)| WriteValues::of_left(place, value, upto));
        let writes: Vec<WriteValues> = of_moved.chain(of_left).collect();
        let ask = |write: &WriteValues| {
            let upto = write.tick;
            let asked = write.wanted.iter().enumerate().map(move |(at, wanted)| {
                let is_datum = write.has_change && at == 0;
                Asked { wanted: wanted.clone(), is_datum, upto }
            });
            asked.collect::<Vec<_>>()
        };
        let asked: Vec<Asked> = writes.iter().flat_map(ask).collect();
        // The state with which the run begins counts if every transition is looked at.
        let from = if first_tick(upto) == 1 { 0 } else { first_tick(upto) };
        let mut results = search::search(trace, &asked, from).into_iter();
        let seen =
            writes.iter().filter_map(|write| write.seen(results.by_ref().take(write.wanted.len()).collect()));
        let (seen, writes, hidden) = (seen.collect(), found.count, found.hidden);
        FirstSeen { upto, places, rule, moved, writes, hidden, seen, from }
    }

    /// Whether every transition up to the last was looked at.
    pub fn is_whole(&self) -> bool {
        self.from == 0
    }

    /// The first of the values that came in with the output of a call.
    pub fn answered(&self) -> Option<(&SeenValue, &SeenAt)> {
        self.seen.iter().filter_map(|seen| Some((seen, seen.at.as_ref()?))).find(|(_, at)| {
            let is_output = at.path.as_str().starts_with("/result/output");
            let is_result = |record: &Record| {
                record.header().type_name.as_ref().is_some_and(|name| name.as_str() == "action.result")
            };
            is_output && at.record.as_ref().is_some_and(is_result)
        })
    }
}

/// The values of a write that are looked for, in the order in which they count.
struct WriteValues {
    tick: u64,
    place: Pointer,
    wanted: Vec<Wanted>,
    /// Whether the first of them is the value that was written, and others are its change.
    has_change: bool,
    /// Name if none is found; `None` if that is not looked for.
    otherwise: Option<Value>,
}

impl WriteValues {
    /// The number, and its change with its sign, and without.
    fn of_moved(write: &MovedWrite) -> WriteValues {
        let MovedWrite { tick, place, after, change, .. } = write;
        let value = Wanted::value(after);
        let changes = change.as_ref().map(Wanted::changes).unwrap_or_default();
        let has_change = value.is_some() && change.is_some();
        let otherwise = match change {
            Some(change) => (!changes.is_empty()).then(|| change.clone()),
            None => value.is_some().then(|| after.clone()),
        };
        let wanted = value.into_iter().chain(changes).collect();
        WriteValues { tick: *tick, place: place.clone(), wanted, has_change, otherwise }
    }

    fn of_left(place: &Pointer, value: &Value, tick: u64) -> WriteValues {
        let wanted: Vec<Wanted> = Wanted::value(value).into_iter().collect();
        let otherwise = (!wanted.is_empty()).then(|| value.clone());
        WriteValues { tick, place: place.clone(), wanted, has_change: false, otherwise }
    }

    /// Chooses what is named: of a sum the change, which was added; if that is not on record before the write, the value that
    /// was written, if that is; else the change, and then the value, in the transition of the write.
    fn seen(&self, mut found: Vec<FoundAt>) -> Option<SeenValue> {
        let is_seen = |_: &Self, found: &FoundAt| found.at.is_some();
        let is_before =
            |this: &Self, found: &FoundAt| found.at.as_ref().is_some_and(|at| at.tick < this.tick);
        let changes = if self.has_change { 1 } else { 0 };
        let change = |is_it: fn(&Self, &FoundAt) -> bool| {
            found.iter().skip(changes).position(|found| is_it(self, found)).map(|at| at + changes)
        };
        let value = found.first().filter(|found| self.has_change && is_before(self, found)).map(|_| 0);
        let chosen = change(is_before)
            .or(value)
            .or_else(|| change(is_seen))
            .or_else(|| found.iter().position(|one| is_seen(self, one)));
        let unread = found.iter().map(|found| found.unread).max().unwrap_or(0);
        let (tick, place) = (self.tick, self.place.clone());
        let named = |value, at, unread| SeenValue { value, write: tick, place, at, unread };
        let Some(FoundAt { at, value, unread }) = chosen.map(|at| found.swap_remove(at)) else {
            return self.otherwise.clone().map(|value| named(value, None, unread));
        };
        let is_number = |value: &Value| matches!(value, Value::Number(_));
        let value = value.filter(|value| is_number(value)).or_else(|| self.otherwise.clone())?;
        Some(named(value, at, unread))
    }
}

impl MovedWrite {
    fn of((record, write): (Record, NumberWrite)) -> MovedWrite {
        let NumberWrite { tick, place, before, after, change } = write;
        MovedWrite {
            tick,
            place,
            before,
            after: Value::Number(after),
            change: change.map(Value::Number),
            record,
        }
    }
}

/// The first of the transitions that are looked at up to a tick.
fn first_tick(upto: u64) -> u64 {
    (upto + 1).saturating_sub(REACH).max(1)
}
