//! Sums over ticks of a run, and tiles: the sums of `1 << level` ticks that a store keeps.
//!
//! A [`Tally`] is a sum over records. A tile is kept under the run that owns all its ticks, with the id of its last record, which
//! binds the history that it is of. Never sums what comes later than a tick: refusals and forks.
//!
//! Rule: a sum from tiles equals the sum over the records; test `tiles_give_the_same_timeline_as_records`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::names::UNKNOWN;
use dendrer_kernel::status;
use dendrer_kernel::unknown::made_by;
use dendrer_object::record::{Field, Record, Rel};
use dendrer_object::{Digest, RunName, Value, json};
use dendrer_store::{KeepDerived, Slot, TilePlace};
use memchr::{memchr2, memmem};

use crate::run::thread::{WRITES, is_interrupt};
use crate::run::trace::Trace;

/// The levels of tiles: each tile has 8 of the level before it.
pub(crate) const LEVELS: [u8; 3] = [6, 9, 12];

/// How many ticks of each mark a sum lists; the others are counted.
pub(crate) const MARKS_MAX: usize = 200;

/// The longest text of a tile that is kept.
const TEXT_MAX: usize = 256 << 10;

/// The reasons for marks of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Marked {
    /// A part of the source is missing.
    Gap,
    /// A call was denied.
    Denial,
    /// A call failed.
    Failure,
    /// A transition has anomalies, and is no gap.
    Anomaly,
    /// A graph was interrupted. Counts for a run that is a thread.
    Interrupt,
    /// A transition has several predecessors.
    Merge,
}

impl Marked {
    /// Each with its name in a tile.
    pub(crate) const ALL: [(Marked, &'static str); 6] = [
        (Marked::Gap, "gap"),
        (Marked::Denial, "denial"),
        (Marked::Failure, "failure"),
        (Marked::Anomaly, "anomaly"),
        (Marked::Interrupt, "interrupt"),
        (Marked::Merge, "merge"),
    ];
}

/// The ticks with a mark.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MarkedTicks {
    /// How many there are.
    pub(crate) found: u64,
    /// The first of them, in order.
    pub(crate) first: Vec<u64>,
}

/// Sums over the transitions of some ticks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tally {
    /// How many transitions there are.
    pub(crate) transitions: u64,
    /// How many of them each agent has.
    pub(crate) agents: BTreeMap<Arc<str>, u64>,
    /// How many of them have no agent.
    pub(crate) without_agent: u64,
    /// How many of them have each type.
    pub(crate) types: BTreeMap<Arc<str>, u64>,
    /// How many anomalies they have.
    pub(crate) anomalies: u64,
    /// How many are denied.
    pub(crate) denied: u64,
    /// How many are results of calls that failed.
    pub(crate) failed: u64,
    /// How many have several predecessors.
    pub(crate) merges: u64,
    /// How many are gaps.
    pub(crate) gaps: u64,
    /// How many places they left unknown.
    pub(crate) unknown: u64,
    /// How many of their fields were erased or withheld.
    pub(crate) closed: u64,
    /// How many places they wrote.
    pub(crate) changes: u64,
    /// The lowest confidence.
    pub(crate) confidence: Option<f64>,
    marks: [MarkedTicks; Marked::ALL.len()],
}

impl Tally {
    /// Adds a transition. Ticks come in order.
    pub(crate) fn add(&mut self, tick: u64, record: &Record) {
        let facts = Facts::of(record);
        self.transitions += 1;
        match &facts.agent {
            Some(agent) => count(&mut self.agents, agent, 1),
            None => self.without_agent += 1,
        }
        if let Some(name) = &record.header().type_name {
            count(&mut self.types, name.as_str(), 1);
        }
        let links = &record.header().links;
        let is_merge = links.iter().filter(|link| link.rel == Rel::Predecessor).count() > 1;
        self.anomalies += facts.anomalies;
        self.denied += u64::from(facts.is_denied);
        self.failed += u64::from(facts.is_failed);
        self.merges += u64::from(is_merge);
        self.gaps += u64::from(facts.is_gap);
        self.unknown += facts.unknown;
        self.closed += facts.closed;
        self.changes += facts.changes;
        self.confidence = lowest(self.confidence, facts.confidence);
        let found = [
            (Marked::Gap, facts.is_gap),
            (Marked::Denial, facts.is_denied),
            (Marked::Failure, facts.is_failed),
            (Marked::Anomaly, facts.anomalies > 0 && !facts.is_gap),
            (Marked::Interrupt, facts.is_interrupt),
            (Marked::Merge, is_merge),
        ];
        for (marked, _) in found.into_iter().filter(|(_, is_here)| *is_here) {
            self.marks[marked as usize].add(1, &[tick]);
        }
    }

    /// Adds the sums over later ticks.
    pub(crate) fn add_all(&mut self, other: &Tally) {
        self.transitions += other.transitions;
        other.agents.iter().for_each(|(agent, more)| count(&mut self.agents, agent, *more));
        self.without_agent += other.without_agent;
        other.types.iter().for_each(|(name, more)| count(&mut self.types, name, *more));
        self.anomalies += other.anomalies;
        self.denied += other.denied;
        self.failed += other.failed;
        self.merges += other.merges;
        self.gaps += other.gaps;
        self.unknown += other.unknown;
        self.closed += other.closed;
        self.changes += other.changes;
        self.confidence = lowest(self.confidence, other.confidence);
        for (ticks, more) in self.marks.iter_mut().zip(&other.marks) {
            ticks.add(more.found, &more.first);
        }
    }

    /// Returns the ticks with a mark.
    pub(crate) fn marked(&self, marked: Marked) -> &MarkedTicks {
        &self.marks[marked as usize]
    }

    /// Returns the sums as a value, without those that are 0.
    fn to_value(&self, id: Digest) -> Value {
        let mut members = vec![("id", Value::from(id)), ("n", Value::from(self.transitions))];
        let numbers = self.numbers().into_iter().filter(|(_, number)| *number > 0);
        members.extend(numbers.map(|(name, number)| (name, Value::from(number))));
        members.push(("agents", pairs(&self.agents)));
        members.push(("types", pairs(&self.types)));
        if let Some(confidence) = self.confidence {
            members.push(("confidence", Value::from(format!("{confidence:?}"))));
        }
        for (marked, name) in Marked::ALL {
            let MarkedTicks { found, first } = self.marked(marked);
            if *found > 0 {
                let ticks = [found].into_iter().chain(first).map(|number| Value::from(*number));
                members.push((name, Value::array(ticks)));
            }
        }
        Value::record(members)
    }

    fn numbers(&self) -> [(&'static str, u64); 9] {
        [
            ("anomalies", self.anomalies),
            ("changes", self.changes),
            ("closed", self.closed),
            ("denied", self.denied),
            ("failed", self.failed),
            ("gaps", self.gaps),
            ("merges", self.merges),
            ("nobody", self.without_agent),
            ("unknown", self.unknown),
        ]
    }

    /// Reads sums, and the id that a tile has with them. `None` for a value that [`Tally::to_value`] does not write.
    fn from_value(value: &Value) -> Option<(Digest, Tally)> {
        let number = |name: &str| value.get(name).map_or(Some(0), Value::as_u64);
        let confidence = match value.get("confidence") {
            Some(text) => Some(text.as_str()?.parse().ok()?),
            None => None,
        };
        let mut marks: [MarkedTicks; Marked::ALL.len()] = Default::default();
        for (marked, name) in Marked::ALL {
            let Some(list) = value.get(name) else { continue };
            let numbers: Vec<u64> = list.as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
            let (found, first) = numbers.split_first()?;
            marks[marked as usize] = MarkedTicks { found: *found, first: first.to_vec() };
        }
        let tally = Tally {
            transitions: number("n")?,
            agents: unpaired(value.get("agents")?)?,
            without_agent: number("nobody")?,
            types: unpaired(value.get("types")?)?,
            anomalies: number("anomalies")?,
            denied: number("denied")?,
            failed: number("failed")?,
            merges: number("merges")?,
            gaps: number("gaps")?,
            unknown: number("unknown")?,
            closed: number("closed")?,
            changes: number("changes")?,
            confidence,
            marks,
        };
        Some((value.get("id")?.as_str()?.parse().ok()?, tally))
    }
}

impl MarkedTicks {
    fn add(&mut self, found: u64, ticks: &[u64]) {
        self.found += found;
        let room = MARKS_MAX - self.first.len();
        self.first.extend(ticks.iter().take(room));
    }
}

/// The facts of a transition that sums are of. Read without its values being built, since every transition that is recorded
/// comes here.
#[derive(Debug, Default)]
struct Facts<'r> {
    agent: Option<Cow<'r, str>>,
    anomalies: u64,
    is_gap: bool,
    is_denied: bool,
    is_failed: bool,
    is_interrupt: bool,
    unknown: u64,
    closed: u64,
    changes: u64,
    confidence: Option<f64>,
}

impl<'r> Facts<'r> {
    fn of(record: &'r Record) -> Facts<'r> {
        let (body, mut facts) = (record.body(), Facts::default());
        for field in body.fields() {
            match body.text(field) {
                Some(text) => facts.read(record, field, text),
                None => facts.closed += 1,
            }
        }
        facts
    }

    fn read(&mut self, record: &Record, field: &Field, text: &'r [u8]) {
        let value = || json::parse_canonical(text).unwrap_or(Value::Null);
        let place = field.pointer.as_str();
        match place {
            "/agent_id" => self.agent = string(text),
            "/anomalies" if text != b"[]" => {
                let anomalies = value();
                let anomalies = anomalies.as_array();
                self.anomalies = anomalies.map_or(0, |list| list.len() as u64);
                let is_gap = |anomaly: &Value| anomaly.get("gap").and_then(Value::as_bool) == Some(true);
                self.is_gap = anomalies.is_some_and(|list| list.iter().any(is_gap));
            }
            "/policy" if memmem::find(text, b"\"deny\"").is_some() => {
                self.is_denied = value().get("decision").and_then(Value::as_str) == Some("deny");
            }
            "/policy/decision" => self.is_denied = text == b"\"deny\"",
            "/result/status" => self.is_failed = value().as_str().is_some_and(status::is_failed),
            "/result" => {
                let status = value();
                let status = status.get("status").and_then(Value::as_str);
                self.is_failed = status.is_some_and(status::is_failed);
            }
            "/intent/confidence" => self.confidence = value().as_f64(),
            "/intent" => self.confidence = value().get("confidence").and_then(Value::as_f64),
            "/delta" => {
                self.changes = items(text);
                if memmem::find(text, UNKNOWN.as_bytes()).is_some() {
                    self.unknown = made_by(record).len() as u64;
                }
            }
            _ if place.strip_prefix("/intent/") == Some(WRITES) => self.is_interrupt = is_interrupt(record),
            _ => {}
        }
    }
}

/// Reads a canonical text that is a string.
fn string(text: &[u8]) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if !inner.contains(&b'\\') {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    Some(Cow::Owned(json::parse_canonical(text).ok()?.as_str()?.to_owned()))
}

/// Counts the items of a canonical text that is an array; 0 for any other.
fn items(text: &[u8]) -> u64 {
    if text.first() != Some(&b'[') || text == b"[]" {
        return 0;
    }
    let (mut at, mut depth, mut count) = (0, 0_u32, 1);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => count += 1,
            b'"' => at += length_of_string(&text[at..]),
            _ => {}
        }
    }
    count
}

/// Returns how long the rest of a string is, with the quote that ends it.
fn length_of_string(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        match text[at - 1] {
            b'"' => return at,
            // The byte after it is a part of the escape.
            _ => at += 1,
        }
    }
    text.len()
}

fn count(counts: &mut BTreeMap<Arc<str>, u64>, name: &str, more: u64) {
    match counts.get_mut(name) {
        Some(count) => *count += more,
        None => drop(counts.insert(Arc::from(name), more)),
    }
}

/// Returns the lower of two numbers. A total order: sums do not depend on how ticks are grouped, -0 included.
fn lowest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.total_cmp(&one).is_lt() { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Lists names with their counts: a name of an agent may be any text, and that of a member not.
fn pairs(counts: &BTreeMap<Arc<str>, u64>) -> Value {
    let pair = |(name, count): (&Arc<str>, &u64)| Value::array([Value::from(&**name), Value::from(*count)]);
    Value::array(counts.iter().map(pair))
}

fn unpaired(value: &Value) -> Option<BTreeMap<Arc<str>, u64>> {
    let pair = |pair: &Value| {
        let pair = pair.as_array()?;
        Some((Arc::from(pair.get(0)?.as_str()?), pair.get(1)?.as_u64()?))
    };
    value.as_array()?.iter().map(pair).collect()
}

/// The sums of a tile, with the id of its last record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tile {
    pub(crate) place: TilePlace,
    pub(crate) id: Digest,
    pub(crate) tally: Tally,
}

impl Tile {
    /// Returns the bytes that are kept.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        json::to_vec(&self.tally.to_value(self.id))
    }

    /// Reads kept bytes. `None` for bytes that are not the sums of so many ticks.
    pub(crate) fn from_bytes(place: TilePlace, bytes: &[u8]) -> Option<Tile> {
        let (id, tally) = Tally::from_value(&json::parse_canonical(bytes).ok()?)?;
        let (first, last) = ticks(place)?;
        (tally.transitions == last - first + 1).then_some(Tile { place, id, tally })
    }

    /// Keeps the tile, of the run that owns its ticks. One that could not be kept costs only time.
    pub(crate) fn keep<S: KeepDerived + ?Sized>(&self, store: &S, run: &RunName, seen: Option<u64>) {
        let bytes = self.to_bytes();
        if bytes.len() <= TEXT_MAX {
            let _ = store.keep(Slot::Tile { run, place: self.place, seen }, &bytes);
        }
    }

    /// Finds the kept tile of some ticks of a run. A tile of another history is of no use, and bytes that this program does not
    /// write are as good as none.
    pub(crate) fn find(trace: &Trace, place: TilePlace) -> Option<Tile> {
        let (first, last) = ticks(place)?;
        let owner = trace.segment(last);
        if !trace.uses_snapshots() || last > trace.tip() || trace.segment(first) != owner {
            return None;
        }
        let slot = Slot::Tile { run: &trace.lineage()[owner].0, place, seen: None };
        let (_, bytes) = trace.store().kept(slot).ok()??;
        let tile = Tile::from_bytes(place, &bytes)?;
        (trace.record(last).ok()?.id() == tile.id).then_some(tile)
    }
}

/// Returns the first and the last tick of a tile. Tick 0 is the beginning of the run, and no transition.
pub(crate) fn ticks(place: TilePlace) -> Option<(u64, u64)> {
    let first = place.number.checked_mul(1 << place.level)?;
    Some((first.max(1), first + ((1 << place.level) - 1)))
}

/// Makes tiles of the transitions of one run as they come.
#[derive(Debug, Default)]
pub(crate) struct TileMaker {
    /// The tick that follows the last one.
    next: u64,
    /// The tile under way at each level.
    levels: [UnderWay; LEVELS.len()],
    /// The tiles that are complete.
    pub(crate) ready: Vec<Tile>,
}

/// A tile as far as its ticks came.
#[derive(Debug, Default)]
struct UnderWay {
    /// Whether every tick of it came.
    is_whole: bool,
    tally: Tally,
}

impl TileMaker {
    /// Adds a transition. A tick that does not follow the last one begins anew: tiles that have earlier ticks are not made.
    pub(crate) fn add(&mut self, tick: u64, record: &Record) {
        self.reach(tick);
        self.levels[0].tally.add(tick, record);
        self.next = tick + 1;
        if self.next.is_multiple_of(1 << LEVELS[0]) {
            self.finish(0, record.id(), true);
        }
    }

    /// Adds a tile that is kept already.
    pub(crate) fn add_tile(&mut self, tile: &Tile) {
        let Some((first, last)) = ticks(tile.place) else { return };
        let Some(level) = LEVELS.iter().position(|level| *level == tile.place.level) else { return };
        self.reach(first);
        self.levels[level].tally = tile.tally.clone();
        self.next = last + 1;
        self.finish(level, tile.id, false);
    }

    /// Leaves the tiles under way: what comes next is of another run.
    pub(crate) fn leave(&mut self) {
        self.next = 0;
    }

    fn reach(&mut self, tick: u64) {
        if tick == self.next {
            return;
        }
        for (under_way, level) in self.levels.iter_mut().zip(LEVELS) {
            let is_whole = tick == 1 || tick.is_multiple_of(1 << level);
            *under_way = UnderWay { is_whole, tally: Tally::default() };
        }
    }

    /// Ends the tile of a level with the tick before the next one, and those above that end there.
    fn finish(&mut self, level: usize, id: Digest, is_new: bool) {
        let whole = UnderWay { is_whole: true, tally: Tally::default() };
        let UnderWay { is_whole, tally } = std::mem::replace(&mut self.levels[level], whole);
        if let Some(above) = self.levels.get_mut(level + 1) {
            above.is_whole &= is_whole;
            above.tally.add_all(&tally);
        }
        if is_whole && is_new {
            let number = (self.next >> LEVELS[level]) - 1;
            let place = TilePlace { level: LEVELS[level], number };
            self.ready.push(Tile { place, id, tally });
        }
        if LEVELS.get(level + 1).is_some_and(|level| self.next.is_multiple_of(1 << *level)) {
            self.finish(level + 1, id, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_an_array_are_counted_in_its_text() {
        for (text, expected) in [
            ("[]", 0),
            ("{}", 0),
            ("[1]", 1),
            (r#"["a,\"],[","b\\",{"c":[1,2,{"d":","}]}]"#, 3),
            (r#"[{"set":"/n","value":"\\\""},{"remove":"/m"}]"#, 2),
        ] {
            assert_eq!(items(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_tile_is_read_as_it_was_kept() {
        let mut tally =
            Tally { transitions: 63, without_agent: 1, confidence: Some(-0.0), ..Tally::default() };
        count(&mut tally.agents, "$cut", 62);
        count(&mut tally.types, "plan.update", 63);
        tally.marks[Marked::Merge as usize].add(300, &[3, 5]);
        let place = TilePlace { level: 6, number: 0 };
        let tile = Tile { place, id: Digest([7; 32]), tally };
        let bytes = tile.to_bytes();
        assert_eq!(Tile::from_bytes(place, &bytes), Some(tile));
        assert_eq!(Tile::from_bytes(TilePlace { level: 6, number: 1 }, &bytes), None);
        assert_eq!(Tile::from_bytes(place, &bytes[..bytes.len() - 1]), None);
    }
}
