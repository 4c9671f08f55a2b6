//! How sure an answer is: one word in a document, and one line about the places that are unknown (design, section 7).

use dendrer::kernel::predicate::Verdict;
use dendrer::kernel::unknown::{Since, made_by};
use dendrer::timeline::Interval;
use dendrer_object::document::{Shape, one_of};
use dendrer_object::{Pointer, Record, Value, document};

use crate::answer::{Line, Style};
use crate::quote;

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
}

/// Returns unknown places for a document; `None` if every place is known.
pub fn unknown_places(places: &Places) -> Option<Vec<UnknownPlace>> {
    let each = places.iter().map(|(place, since)| UnknownPlace::of(place, since));
    (!places.is_empty()).then(|| each.collect())
}

/// Returns the member `unknown` of a document; `None` where every place is known.
pub fn unknown_member(places: &Places) -> Option<(&'static str, Value)> {
    unknown_places(places).map(|places| ("unknown", places.to_value()))
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
pub fn reasons_json(reasons: &[Interval]) -> Value {
    Value::array(reasons.iter().filter_map(|interval| match &interval.verdict {
        Verdict::Uncertain(why) => Some(Value::record([
            ("tick", Value::from(interval.from)),
            ("to", Value::from(interval.to)),
            ("why", Value::from(why.as_str())),
        ])),
        _ => None,
    }))
}

/// Names the ticks of a stretch: `tick 3`, or `ticks 3..5`.
pub fn ticks_words(from: u64, to: u64) -> String {
    if from == to { format!("tick {from}") } else { format!("ticks {from}..{to}") }
}

/// Writes why ticks cannot be judged, one reason a text: `ticks 3..5: state.a.x is missing`. The caller escapes them.
pub fn reasons_words(reasons: &[Interval]) -> Vec<String> {
    let words = |one: &Interval| match &one.verdict {
        Verdict::Uncertain(why) => Some(format!("{}: {}", ticks_words(one.from, one.to), why)),
        _ => None,
    };
    reasons.iter().filter_map(words).collect()
}

/// How many reasons are written in one line at most.
const REASONS_MAX: usize = 8;

/// Writes why ticks cannot be judged, in one line. The caller escapes it.
pub fn reasons_line(reasons: &[Interval]) -> String {
    let words = reasons_words(reasons);
    let more = words.len().saturating_sub(REASONS_MAX);
    let shown = words[..words.len() - more].join("; ");
    if more == 0 { shown } else { format!("{shown}; and {more} more reasons") }
}

/// As [`reasons_line`], where a single reason is written without its ticks.
pub fn reasons_list(first: &str, reasons: &[Interval]) -> String {
    if reasons_words(reasons).len() > 1 { reasons_line(reasons) } else { first.to_owned() }
}
