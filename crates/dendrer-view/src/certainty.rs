//! How sure an answer is: one word in a document, and one line about the places that are unknown (design, section 7).

pub use dendrer::ask::reasons::{reasons_line, reasons_list, reasons_words, ticks_words};
use dendrer::kernel::unknown::{Since, made_by};
use dendrer::timeline::Interval;
use dendrer_object::document::{Shape, one_of};
use dendrer_object::{Pointer, Record, Value, document};

use crate::answer::{Line, Style};
use crate::quote;
use crate::verdict::uncertain;

/// How sure an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// It follows from what is on record, and nothing it rests on is unknown.
    Exact,
    /// It is an aid to thought.
    Heuristic,
    /// It is what is on record.
    Recorded,
    /// It is derived from what is on record, and no root covers it.
    Derived,
    /// Something that it rests on is unknown, or not there to be read.
    Unavailable,
}

impl Certainty {
    /// Returns the word of a document.
    pub fn as_str(self) -> &'static str {
        match self {
            Certainty::Exact => "exact",
            Certainty::Heuristic => "heuristic",
            Certainty::Recorded => "recorded",
            Certainty::Derived => "derived",
            Certainty::Unavailable => "unavailable",
        }
    }

    /// Returns this, unless something that the answer rests on is unknown.
    pub fn unless(self, is_unknown: bool) -> Certainty {
        if is_unknown { Certainty::Unavailable } else { self }
    }
}

impl Shape for Certainty {
    fn schema() -> Value {
        one_of(&["exact", "heuristic", "recorded", "derived", "unavailable"])
    }

    fn to_value(&self) -> Value {
        Value::from(self.as_str())
    }
}

impl From<Certainty> for Value {
    fn from(certainty: Certainty) -> Value {
        Value::from(certainty.as_str())
    }
}

/// Unknown places, each with its cause.
pub type Places = [(Pointer, Since)];

document! {
    /// A place of the state that is unknown
    pub object UnknownPlace(at: &Pointer, since: &Since) {
        /// The place, as a JSON pointer
        place: &Pointer = at,
        /// The word for the cause
        code: &str = &since.code,
        /// The tick from which on it is unknown
        tick: u64 = since.tick,
    }

    /// A stretch of ticks that cannot be judged for one reason
    pub object ReasonObject(interval: &Interval, reason: &str) {
        /// The first tick
        tick: u64 = interval.from,
        /// The last tick
        to: u64 = interval.to,
        /// The reason
        why: &str = reason,
    }
}

/// Returns unknown places for a document; `None` if every place is known.
pub fn unknown_places(places: &Places) -> Option<Vec<UnknownPlace>> {
    let each = places.iter().map(|(place, since)| UnknownPlace::of(place, since));
    (!places.is_empty()).then(|| each.collect())
}

/// Names the places and the first cause: `approved, total (a rule failed at tick 2)`. `None` where every place is known.
pub fn unknown_words(places: &Places) -> Option<String> {
    let (_, first) = places.iter().min_by_key(|(_, since)| since.tick)?;
    let name = |(place, _): &(Pointer, Since)| match place.as_str() {
        "" => "the whole state".to_owned(),
        _ => quote::escape(&place.dotted()),
    };
    let names: Vec<String> = places.iter().map(name).collect();
    let names = crate::verdict::list(&names, 8).unwrap_or_default();
    Some(format!("{names} ({})", first.words()))
}

/// Returns the line of an answer that reads unknown places; `None` where every place is known.
pub fn unknown_line(places: &Places) -> Option<Line> {
    unknown_words(places).map(|words| Line::styled(Style::Warn, format!("UNKNOWN    {words}")))
}

/// Returns what a transition left unknown, in words for a row: `UNKNOWN from here on: approved (a rule failed at tick 2)`.
pub fn left_unknown(record: &Record) -> Option<String> {
    unknown_words(&made_by(record)).map(|words| format!("UNKNOWN from here on: {words}"))
}

/// Returns why ticks cannot be judged: each reason with its first and last tick.
pub fn reasons(intervals: &[Interval]) -> Vec<ReasonObject> {
    intervals.iter().filter_map(|one| Some(ReasonObject::of(one, uncertain(&one.verdict)?))).collect()
}
