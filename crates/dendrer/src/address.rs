//! Addresses as values: `RUN`, `RUN@POSITION`, `RUN@refused:N`, `@`, `file.dnd#RUN@POSITION` (or `file.html`), a label, and the first digits of an id.
//!
//! Nothing is looked up here, neither in a store nor in the file system: a name without `/`, `#`, `.dnd` and `.html` is a run, and so is
//! `STORE/RUN`, also where a file has that name. The meaning of an address in a store is found by [`resolve`](crate::repo::resolve).

use std::fmt;

use dendrer_object::document::{Shape, any_of};
use dendrer_object::name::NAME_SIZE_MAX;
use dendrer_object::question::QuestionMember;
use dendrer_object::{Pointer, RunName, Value};

use crate::error::AddressError;

/// The mark of a name that the program makes for a run of another.
pub const MADE: char = '+';

/// The mark in the name of a foreign run, between its store and its own name.
pub const OF_STORE: char = '/';

/// The mark between a run and the number of ticks before its tip.
const BACK: char = '~';

/// An address as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The bundle file, if one is named.
    pub bundle: Option<String>,
    /// The run; `None` if the source decides.
    pub run: Option<String>,
    /// The place in the run.
    pub pos: Option<Position>,
}

/// A place in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// A tick.
    Tick(u64),
    /// So many ticks before the tip.
    Back(u64),
    /// The last tick.
    Tip,
    /// The first tick of a fork that is its own.
    Fork,
    /// The onset that the last recorded bisect of the run found.
    Onset,
    /// The tick that a label is on.
    Label(String),
    /// A refusal of the run by its number, from 1. It has no tick.
    Refused(u64),
}

/// A record of a run: one at a tick, or a refusal, which is off the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordAt {
    /// The beginning of the run, or a transition, by its tick.
    Tick(u64),
    /// A refusal by its number, from 1, in order of commit.
    Refusal(u64),
}

impl RecordAt {
    /// The tick; `None` for a refusal.
    pub fn tick(self) -> Option<u64> {
        match self {
            RecordAt::Tick(tick) => Some(tick),
            RecordAt::Refusal(_) => None,
        }
    }

    /// The number of a refusal; `None` for a record at a tick.
    pub fn refused(self) -> Option<u64> {
        match self {
            RecordAt::Tick(_) => None,
            RecordAt::Refusal(number) => Some(number),
        }
    }

    /// Names the record in a sentence: `tick 3`, `refusal 1`.
    pub fn words(self) -> String {
        match self {
            RecordAt::Tick(tick) => format!("tick {tick}"),
            RecordAt::Refusal(number) => format!("refusal {number}"),
        }
    }
}

/// Writes the record as an address has it after `@`.
impl fmt::Display for RecordAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordAt::Tick(tick) => Position::Tick(*tick).fmt(f),
            RecordAt::Refusal(number) => Position::Refused(*number).fmt(f),
        }
    }
}

/// The beginning of a place that names a refusal by its number.
const REFUSED: &str = "refused:";

impl Address {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Address, AddressError> {
        let bad = || AddressError::NotAnAddress(text.to_owned());
        let (bundle, rest) = match bundle_end(text) {
            Some(end) => (Some(text[..end].to_owned()), text[end..].trim_start_matches('#')),
            None => (None, text),
        };
        if bundle.is_none() && matches!(rest, "@" | "@-") {
            return Ok(Address { bundle, run: Some(rest.to_owned()), pos: None });
        }
        let (run, pos) = match rest.rfind('@').filter(|at| *at > 0 || !rest[at + 1..].starts_with(BACK)) {
            Some(at) => match several(&rest[at + 1..]) {
                true => return Err(AddressError::Several(text.to_owned())),
                false => (&rest[..at], Some(Position::parse(&rest[at + 1..]).ok_or_else(bad)?)),
            },
            None => before_tip(rest, bundle.is_some()).map_or((rest, None), |(run, pos)| (run, Some(pos))),
        };
        if run.is_empty() && bundle.is_none() {
            return Err(bad());
        }
        Ok(Address { bundle, run: (!run.is_empty()).then(|| run.to_owned()), pos })
    }

    /// Reads `RUN:AGENT` or `RUN:AGENT@POSITION`: the address of the run, and what follows the colon. `None` for any other address.
    pub fn of_agent(text: &str) -> Result<Option<(Address, &str)>, AddressError> {
        let begin = bundle_end(text).filter(|end| *end < text.len()).unwrap_or(0);
        let Some(colon) = text[begin..].find(':').map(|at| begin + at) else { return Ok(None) };
        let (run, agent) = (&text[..colon], &text[colon + 1..]);
        match run[begin..].contains('@') || run == "sha256" {
            // A place, or the id of a record.
            true => Ok(None),
            false if agent.is_empty() => Err(AddressError::NotAnAddress(text.to_owned())),
            false => Ok(Some((Address::parse(run)?, agent))),
        }
    }

    /// The address of a run, or of a tick of it.
    pub fn of(run: &RunName, tick: Option<u64>) -> Address {
        Address { bundle: None, run: Some(run.to_string()), pos: tick.map(Position::Tick) }
    }

    /// Reads `RUN@FROM..TO`: the address of the run, and the two places. `None` for any other address.
    pub fn range(text: &str) -> Result<Option<(&str, Position, Position)>, AddressError> {
        let Some((whole, from, to)) = text
            .rsplit_once('@')
            .and_then(|(whole, places)| places.split_once("..").map(|(from, to)| (whole, from, to)))
        else {
            return Ok(None);
        };
        // A path may hold both an `@` and dots.
        if bundle_end(text) == Some(text.len()) {
            return Ok(None);
        }
        match (Position::parse(from), Position::parse(to)) {
            (Some(from), Some(to)) => Ok(Some((whole, from, to))),
            _ => Err(AddressError::NotARange(text.to_owned())),
        }
    }

    /// Writes the address of another tick of the same run, in the same file if it is in one.
    pub fn beside(&self, run: &RunName, tick: u64) -> String {
        match (&self.bundle, &self.run) {
            (Some(file), Some(named)) => format!("{file}#{named}@{tick}"),
            (Some(file), None) => format!("{file}@{tick}"),
            (None, _) => format!("{run}@{tick}"),
        }
    }
}

/// Whether a place is two ticks with dots between them.
fn several(place: &str) -> bool {
    let is_tick =
        |text: &str| Position::parse(text).is_some_and(|place| !matches!(place, Position::Label(_)));
    place.split_once("..").is_some_and(|(from, to)| is_tick(from) && is_tick(to))
}

/// Reads `RUN~N`, the tick that is N before the tip; `RUN~` is `RUN~1`.
/// Of a bundle of one run the name may be left out.
fn before_tip(text: &str, is_in_bundle: bool) -> Option<(&str, Position)> {
    let (run, back) = text.rsplit_once(BACK)?;
    let is_number = back.bytes().all(|byte| byte.is_ascii_digit());
    let back = if back.is_empty() { 1 } else { back.parse().ok().filter(|_| is_number)? };
    // The home directory of a user is no run.
    ((is_in_bundle || !run.is_empty()) && !run.contains('~')).then_some((run, Position::Back(back)))
}

/// The ends of names of bundles: a bundle by itself, and one in a page.
const BUNDLE_ENDS: [&str; 2] = [".dnd", ".html"];

/// Whether a bare name is that of a bundle, or of a page with one.
pub fn is_bundle_name(name: &str) -> bool {
    BUNDLE_ENDS.iter().any(|end| name.ends_with(end))
}

/// The end of the name of a bundle in an address; `None` if it names none.
fn bundle_end(text: &str) -> Option<usize> {
    let name = text.split(['@', ':']).next().unwrap_or(text);
    if name.contains(OF_STORE) && !is_bundle_name(name) && name.parse::<RunName>().is_ok() {
        return None;
    }
    let marks =
        BUNDLE_ENDS.iter().flat_map(|end| ['#', '@', '~'].map(|mark| (format!("{end}{mark}"), end.len())));
    let marked = marks.into_iter().find_map(|(mark, end)| Some(text.find(&mark)? + end));
    marked.or_else(|| text.find('#').filter(|at| *at > 0)).or_else(|| {
        let is_file = is_bundle_name(text) || text.contains('/');
        is_file.then_some(text.len())
    })
}

impl Position {
    /// Reads a place: `12`, `tick:12`, `tip`, `-2`, `fork`, `onset`, `refused:1`, or a label.
    pub fn parse(text: &str) -> Option<Position> {
        let digits = |text: &str| {
            (!text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()))
                .then(|| text.parse().ok())
                .flatten()
        };
        let is_label =
            |text: &str| text.parse::<RunName>().is_ok() && !text.bytes().all(|c| c.is_ascii_digit());
        let label = || is_label(text).then(|| Position::Label(text.to_owned()));
        match text {
            "tip" => Some(Position::Tip),
            "fork" => Some(Position::Fork),
            "onset" => Some(Position::Onset),
            _ => match (text.strip_prefix('-'), text.strip_prefix(REFUSED)) {
                (Some(back), _) => digits(back).map(Position::Back),
                (None, Some(number)) => digits(number).map(Position::Refused),
                (None, None) => {
                    digits(text.strip_prefix("tick:").unwrap_or(text)).map(Position::Tick).or_else(label)
                }
            },
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Tick(tick) => write!(f, "{tick}"),
            Position::Back(back) => write!(f, "-{back}"),
            Position::Tip => f.write_str("tip"),
            Position::Fork => f.write_str("fork"),
            Position::Onset => f.write_str("onset"),
            Position::Label(label) => f.write_str(label),
            Position::Refused(number) => write!(f, "{REFUSED}{number}"),
        }
    }
}

impl Shape for Position {
    fn schema() -> Value {
        any_of([u64::schema(), str::schema()])
    }

    fn to_value(&self) -> Value {
        match self {
            Position::Tick(tick) => Value::from(*tick),
            other => Value::from(other.to_string()),
        }
    }
}

impl QuestionMember for Position {
    fn kind() -> String {
        "a tick, like 12, tip, -1 or a label".to_owned()
    }

    fn read(value: &Value) -> Option<Position> {
        value.as_u64().map(Position::Tick).or_else(|| Position::parse(value.as_str()?))
    }
}

/// Reads a path of the state: `a.b[2]`, `a["x y"]`, `state.a.b`, or a JSON pointer.
pub fn state_path(text: &str) -> Result<Pointer, AddressError> {
    match Pointer::from_place(text) {
        Some(read) => Ok(read?),
        None => Err(AddressError::NotAPath(text.to_owned())),
    }
}

/// Returns the name of the run with a number that is made of another: `RUN+2`. A run that has such a name is not made longer.
pub fn made_name(of: &str, number: u64) -> String {
    // What is made of a foreign run is a run of this store.
    let of = of.rsplit_once(OF_STORE).map_or(of, |(_, own)| own);
    let stem = of.split_once(MADE).map_or(of, |(stem, _)| stem);
    let number = format!("{MADE}{number}");
    // A name is ASCII.
    let stem = &stem[..stem.len().min(NAME_SIZE_MAX - number.len())];
    format!("{stem}{number}")
}

/// Whether an address reaches a run of this name. Others read as a file, or as the beginning of a hash.
pub fn is_reachable(run: &RunName) -> bool {
    !is_bundle_name(run.as_str()) && !is_hash(run)
}

/// Whether the name of a run reads as the beginning of a hash.
pub fn is_hash(run: &RunName) -> bool {
    let text = run.as_str();
    text.len() >= 12 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_written() {
        let check = |text: &str, expected: &str| {
            let found = Address::parse(text)
                .map_or_else(|error| error.code().to_string(), |address| format!("{address:?}"));
            assert_eq!(found, expected, "{text}");
        };
        check("r", "Address { bundle: None, run: Some(\"r\"), pos: None }");
        check("r@22", "Address { bundle: None, run: Some(\"r\"), pos: Some(Tick(22)) }");
        check("r@-2", "Address { bundle: None, run: Some(\"r\"), pos: Some(Back(2)) }");
        check("r@tip", "Address { bundle: None, run: Some(\"r\"), pos: Some(Tip) }");
        check("@", "Address { bundle: None, run: Some(\"@\"), pos: None }");
        check("a.dnd", "Address { bundle: Some(\"a.dnd\"), run: None, pos: None }");
        check("a.html", "Address { bundle: Some(\"a.html\"), run: None, pos: None }");
        check("a.html#r@3", "Address { bundle: Some(\"a.html\"), run: Some(\"r\"), pos: Some(Tick(3)) }");
        check("a.html@3", "Address { bundle: Some(\"a.html\"), run: None, pos: Some(Tick(3)) }");
        check("a.dnd#r@3", "Address { bundle: Some(\"a.dnd\"), run: Some(\"r\"), pos: Some(Tick(3)) }");
        check("a.dnd@3", "Address { bundle: Some(\"a.dnd\"), run: None, pos: Some(Tick(3)) }");
        check("./a", "Address { bundle: Some(\"./a\"), run: None, pos: None }");
        check("ab12/r@3", "Address { bundle: None, run: Some(\"ab12/r\"), pos: Some(Tick(3)) }");
        check("ab12/r.dnd", "Address { bundle: Some(\"ab12/r.dnd\"), run: None, pos: None }");
        check("a/b/c", "Address { bundle: Some(\"a/b/c\"), run: None, pos: None }");
        check("/dev/fd/63", "Address { bundle: Some(\"/dev/fd/63\"), run: None, pos: None }");
        check("a#r@3", "Address { bundle: Some(\"a\"), run: Some(\"r\"), pos: Some(Tick(3)) }");
        check("r@onset", "Address { bundle: None, run: Some(\"r\"), pos: Some(Onset) }");
        check("r@x", "Address { bundle: None, run: Some(\"r\"), pos: Some(Label(\"x\")) }");
        check("r@refused:3", "Address { bundle: None, run: Some(\"r\"), pos: Some(Refused(3)) }");
        check(
            "a.dnd#r@refused:1",
            "Address { bundle: Some(\"a.dnd\"), run: Some(\"r\"), pos: Some(Refused(1)) }",
        );
        check("r@refused:", "E0105");
        check("r@refused:x", "E0105");
        check("r~3", "Address { bundle: None, run: Some(\"r\"), pos: Some(Back(3)) }");
        check("@~", "Address { bundle: None, run: Some(\"@\"), pos: Some(Back(1)) }");
        check("a.dnd~1", "Address { bundle: Some(\"a.dnd\"), run: None, pos: Some(Back(1)) }");
        check("a.dnd~", "Address { bundle: Some(\"a.dnd\"), run: None, pos: Some(Back(1)) }");
        check("a.dnd#r~2", "Address { bundle: Some(\"a.dnd\"), run: Some(\"r\"), pos: Some(Back(2)) }");
        check("~/a.dnd", "Address { bundle: Some(\"~/a.dnd\"), run: None, pos: None }");
        check("r@32..34", "E0105");
        check("r@x y", "E0105");
        check("r@3x:", "E0105");
        check("", "E0105");
    }

    #[test]
    fn an_agent_stands_behind_a_colon() {
        let found =
            |text| Address::of_agent(text).unwrap().map(|(address, agent)| (address.run.unwrap(), agent));
        assert_eq!(found("r:ann"), Some(("r".to_owned(), "ann")));
        assert_eq!(found("r:ann@x@3"), Some(("r".to_owned(), "ann@x@3")));
        assert_eq!(found("a.dnd#r:a:b"), Some(("r".to_owned(), "a:b")));
        assert_eq!(found("r@tick:3"), None);
        assert_eq!(found("r"), None);
        assert_eq!(found("sha256:0a1b"), None);
        assert_eq!(Address::of_agent("r:").unwrap_err().code(), "E0105");
    }

    #[test]
    fn a_range_has_a_run_and_two_places() {
        let found = Address::range("r@10..tip").unwrap().unwrap();
        assert_eq!(found, ("r", Position::Tick(10), Position::Tip));
        assert_eq!(Address::range("r@10").unwrap(), None);
        assert_eq!(Address::range("./a@b..c").unwrap(), None);
        assert_eq!(Address::range("r@x y..3").unwrap_err().code(), "E0105");
    }

    #[test]
    fn paths_are_read_in_both_spellings() {
        let check =
            |text: &str, expected: &str| assert_eq!(state_path(text).unwrap().as_str(), expected, "{text}");
        check("risk_score", "/risk_score");
        check("state.a.b[2].c", "/a/b/2/c");
        check("a[\"x y/z\"]", "/a/x y~1z");
        check("/a/b", "/a/b");
        check("state", "");
        for bad in ["a..b", "a[", ".a", "a[\"x]", "/~"] {
            assert!(state_path(bad).is_err(), "{bad}");
        }
    }
}
