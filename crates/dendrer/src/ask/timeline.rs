//! A run as bins of ticks: how much happened in each, the verdicts of predicates, and ticks of note.
//!
//! A bin is a range of `width` ticks that begins at a multiple of `width`, a power of two. Every count of a bin is the sum over
//! its ticks, and nothing is sampled. Counts come from kept tiles as far as there are some, and else from the records.
//!
//! Rule: a bin has the counts of a log of its ticks; test `each_bin_is_a_slow_count_of_the_log`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_kernel::predicate::Verdict;
use dendrer_object::Digest;
use dendrer_object::record::Record;

use crate::ask::predicates::PredicateTested;
use crate::ask::thread::thread_name;
use crate::error::Error;
use crate::run::tile::{self, Marked, MarkedTicks, Tally};
use crate::run::trace::{Trace, all_runs};

use sums::Sums;

pub mod question;
mod sums;

/// How many bins a timeline has if no number is given.
pub const BINS: u64 = 512;
/// The largest number of bins.
pub const BINS_MAX: u64 = 2_048;
/// How many lanes a timeline has; the agents with the fewest transitions share one more.
pub const LANES_MAX: usize = 24;
/// How many marks a timeline has; the others are counted.
pub const MARKS_MAX: usize = tile::MARKS_MAX;

/// The counts of a bin.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimelineBin {
    /// The first tick of the bin that is in the range.
    pub from: u64,
    /// The last tick of the bin that is in the range.
    pub to: u64,
    /// How many transitions it has.
    pub transitions: u64,
    /// How many of them each lane has.
    pub lanes: Vec<u64>,
    /// How many of them have each type.
    pub types: BTreeMap<Arc<str>, u64>,
    /// How many anomalies they have.
    pub anomalies: u64,
    /// How many refusals were judged against one of them.
    pub refusals: u64,
    /// How many are denied.
    pub denied: u64,
    /// How many are results of calls that failed.
    pub failed: u64,
    /// How many forks of them there are.
    pub forks: u64,
    /// How many have several predecessors.
    pub merges: u64,
    /// How many are gaps: a part of the source is missing.
    pub gaps: u64,
    /// How many places they left unknown.
    pub unknown: u64,
    /// How many of their fields were erased or withheld.
    pub closed: u64,
    /// The lowest confidence; `None` if none was given.
    pub confidence: Option<f64>,
    /// How many places they wrote.
    pub changes: u64,
}

/// A lane of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineLane {
    /// The agent; `None` for the agents that share the last lane, and for transitions without one.
    pub agent: Option<Arc<str>>,
    /// How many agents share the lane.
    pub agents: u64,
    /// How many transitions of the range it has.
    pub total: u64,
}

/// The verdicts of a predicate, bin by bin.
#[derive(Debug, Clone)]
pub struct TimelineVerdicts {
    /// The name or the expression of the predicate.
    pub predicate: String,
    /// The first tick with a violation; `None` if no tick of the range has one.
    pub onset: Option<u64>,
    /// For each bin its verdicts in order: each word at most once.
    pub items: Vec<Vec<&'static str>>,
    /// How many results the verdicts use whose status was read from prose.
    pub from_text: u64,
    /// Whether an earlier tick than the onset may be violated, or no tick can be judged.
    pub may_be_earlier: bool,
}

impl TimelineVerdicts {
    /// The certainty of the onset.
    pub fn certainty(&self) -> &'static str {
        match (self.may_be_earlier, self.from_text) {
            (true, _) => "unavailable",
            (false, 0) => "exact",
            (false, _) => "heuristic",
        }
    }
}

/// The kind of a mark, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// A predicate is violated first.
    Onset,
    /// A part of the source is missing.
    Gap,
    /// An intent was refused.
    Refusal,
    /// A call was denied.
    Denial,
    /// A call failed.
    Failure,
    /// A transition has anomalies.
    Anomaly,
    /// A graph was interrupted.
    Interrupt,
    /// A transition has several predecessors.
    Merge,
    /// A run is a fork of the tick.
    Fork,
}

impl MarkKind {
    /// The word for the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            MarkKind::Onset => "onset",
            MarkKind::Gap => "gap",
            MarkKind::Refusal => "refusal",
            MarkKind::Denial => "denial",
            MarkKind::Failure => "failure",
            MarkKind::Anomaly => "anomaly",
            MarkKind::Interrupt => "interrupt",
            MarkKind::Merge => "merge",
            MarkKind::Fork => "fork",
        }
    }
}

/// A tick of note.
#[derive(Debug, Clone)]
pub struct TimelineMark {
    /// The tick.
    pub tick: u64,
    /// The kind.
    pub kind: MarkKind,
    /// The record that the mark is of; `None` for the first violation of a predicate.
    pub record: Option<Record>,
    /// The predicate that is violated first.
    pub predicate: Option<String>,
}

/// A run as bins of ticks.
#[derive(Debug, Clone)]
pub struct TimelineReply {
    /// The run.
    pub trace: Trace,
    /// The first tick.
    pub from: u64,
    /// The last tick.
    pub to: u64,
    /// How many ticks a bin has.
    pub width: u64,
    /// The lanes, the one with the most transitions first.
    pub lanes: Vec<TimelineLane>,
    /// The bins that have a tick of the range, in order.
    pub items: Vec<TimelineBin>,
    /// The verdicts of each predicate that was asked for.
    pub verdicts: Vec<TimelineVerdicts>,
    /// The ticks of note, the worst first.
    pub marks: Vec<TimelineMark>,
    /// How many marks of each kind are left out.
    pub left_out: BTreeMap<&'static str, u64>,
}

/// The range and the bins of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineRange {
    /// The first tick.
    pub from: u64,
    /// The last tick.
    pub to: u64,
    /// How many bins there are at most.
    pub bins: u64,
}

impl TimelineRange {
    /// Returns the least power of two for which the bins cover the range.
    pub fn width(self) -> u64 {
        let covers = |width: &u64| self.to / width - self.from / width < self.bins.max(1);
        (0..64).map(|power| 1_u64 << power).find(covers).unwrap_or(1 << 63)
    }
}

/// Counts the transitions of a range of ticks.
///
/// Ticks that a kept tile has are not read; the sums are the same.
///
/// # Errors
///
/// An error if a record cannot be read.
pub fn timeline(
    trace: &Trace,
    range: TimelineRange,
    tested: &[(String, PredicateTested)],
) -> Result<TimelineReply, Error> {
    let mut refusals = trace.refusals()?;
    let mut forks: BTreeMap<Digest, u64> = BTreeMap::new();
    for run in all_runs(&**trace.store())?.into_iter().filter(|run| run.name != *trace.name()) {
        run.parent.into_iter().for_each(|parent| *forks.entry(parent).or_default() += 1);
    }
    let width = range.width();
    let wanted = refusals.keys().chain(forks.keys()).copied().collect();
    let Sums { bins, ticks } = Sums::of(trace, range, wanted)?;
    let mut marks = Marks::of(trace, &bins);
    let (lanes, mut items) = lanes(range, &bins);
    // Refusals and forks came later than their ticks: in order of ticks, as marks are.
    let ticks: BTreeSet<(u64, Digest)> = ticks.into_iter().map(|(id, tick)| (tick, id)).collect();
    for (tick, id) in ticks {
        let number = usize::try_from(tick / width - range.from / width).unwrap_or(usize::MAX);
        let Some(bin) = items.get_mut(number) else { continue };
        for refusal in refusals.remove(&id).unwrap_or_default() {
            bin.refusals += 1;
            marks.add(MarkKind::Refusal, TimelineMark::of_record(tick, MarkKind::Refusal, refusal));
        }
        if let Some(forks) = forks.get(&id) {
            bin.forks += forks;
            marks.add(MarkKind::Fork, TimelineMark::of_tick(tick, MarkKind::Fork));
        }
    }
    for (name, tested) in tested {
        if let Some(tick) = onset(tested) {
            let predicate = Some(name.clone());
            let mark = TimelineMark { predicate, ..TimelineMark::of_tick(tick, MarkKind::Onset) };
            marks.add(MarkKind::Onset, mark);
        }
    }
    let (marks, left_out) = marks.ordered(trace)?;
    let verdicts = tested.iter().map(|(name, tested)| verdicts(name, tested, &items)).collect();
    Ok(TimelineReply {
        trace: trace.clone(),
        from: range.from,
        to: range.to,
        width,
        lanes,
        items,
        verdicts,
        marks,
        left_out,
    })
}

impl TimelineMark {
    /// A mark whose record is read once it is known to be shown.
    fn of_tick(tick: u64, kind: MarkKind) -> TimelineMark {
        TimelineMark { tick, kind, record: None, predicate: None }
    }

    fn of_record(tick: u64, kind: MarkKind, record: Record) -> TimelineMark {
        TimelineMark { record: Some(record), ..TimelineMark::of_tick(tick, kind) }
    }
}

/// Marks as they are found.
#[derive(Debug, Default)]
struct Marks {
    /// The marks of each kind, the first ones.
    kept: BTreeMap<MarkKind, Vec<TimelineMark>>,
    /// How many there are of each kind.
    found: BTreeMap<MarkKind, u64>,
}

impl Marks {
    /// The marks that sums have.
    fn of(trace: &Trace, bins: &[Tally]) -> Marks {
        let mut total = Tally::default();
        bins.iter().for_each(|bin| total.add_all(bin));
        let is_thread = thread_name(trace).is_some();
        let mut marks = Marks::default();
        for (marked, _) in Marked::ALL.into_iter().filter(|(one, _)| *one != Marked::Interrupt || is_thread) {
            let MarkedTicks { found, first } = total.marked(marked);
            if *found > 0 {
                let kind = kind(marked);
                let shown = first.iter().map(|tick| TimelineMark::of_tick(*tick, kind)).collect();
                marks.kept.insert(kind, shown);
                marks.found.insert(kind, *found);
            }
        }
        marks
    }

    fn add(&mut self, kind: MarkKind, mark: TimelineMark) {
        *self.found.entry(kind).or_default() += 1;
        let kept = self.kept.entry(kind).or_default();
        if kept.len() < MARKS_MAX {
            kept.push(mark);
        }
    }

    /// Returns the marks that are shown, with their records, and how many of each kind are left out.
    fn ordered(self, trace: &Trace) -> Result<(Vec<TimelineMark>, BTreeMap<&'static str, u64>), Error> {
        let mut shown: Vec<TimelineMark> = self.kept.into_values().flatten().take(MARKS_MAX).collect();
        let mut records: BTreeMap<u64, Record> = BTreeMap::new();
        for mark in shown.iter_mut().filter(|mark| mark.record.is_none() && mark.predicate.is_none()) {
            let record = match records.get(&mark.tick) {
                Some(record) => record.clone(),
                None => trace.record(mark.tick)?,
            };
            records.insert(mark.tick, record.clone());
            mark.record = Some(record);
        }
        let mut left_out = BTreeMap::new();
        for (kind, found) in &self.found {
            let here = shown.iter().filter(|mark| mark.kind == *kind).count() as u64;
            if *found > here {
                left_out.insert(kind.as_str(), found - here);
            }
        }
        Ok((shown, left_out))
    }
}

fn kind(marked: Marked) -> MarkKind {
    match marked {
        Marked::Gap => MarkKind::Gap,
        Marked::Denial => MarkKind::Denial,
        Marked::Failure => MarkKind::Failure,
        Marked::Anomaly => MarkKind::Anomaly,
        Marked::Interrupt => MarkKind::Interrupt,
        Marked::Merge => MarkKind::Merge,
    }
}

/// Returns the lanes, and the bins with the counts of each.
fn lanes(range: TimelineRange, bins: &[Tally]) -> (Vec<TimelineLane>, Vec<TimelineBin>) {
    let mut agents: BTreeMap<Option<Arc<str>>, BTreeMap<usize, u64>> = BTreeMap::new();
    for (number, bin) in bins.iter().enumerate() {
        let named = bin.agents.iter().map(|(agent, count)| (Some(Arc::clone(agent)), *count));
        let rest = (bin.without_agent > 0).then_some((None, bin.without_agent));
        for (agent, count) in named.chain(rest) {
            agents.entry(agent).or_default().insert(number, count);
        }
    }
    let mut agents: Vec<(Option<Arc<str>>, BTreeMap<usize, u64>)> = agents.into_iter().collect();
    let total = |counts: &BTreeMap<usize, u64>| counts.values().sum::<u64>();
    agents.sort_by_key(|(_, counts)| std::cmp::Reverse(total(counts)));
    let (rest, own): (Vec<_>, Vec<_>) =
        agents.into_iter().enumerate().partition(|(at, (agent, _))| *at >= LANES_MAX || agent.is_none());
    let mut lanes: Vec<TimelineLane> = Vec::new();
    let mut counts: Vec<BTreeMap<usize, u64>> = Vec::new();
    for (_, (agent, by_bin)) in own {
        lanes.push(TimelineLane { agent, agents: 1, total: total(&by_bin) });
        counts.push(by_bin);
    }
    if !rest.is_empty() {
        let mut shared: BTreeMap<usize, u64> = BTreeMap::new();
        let shares = rest.len() as u64;
        for (number, count) in rest.into_iter().flat_map(|(_, (_, by_bin))| by_bin) {
            *shared.entry(number).or_default() += count;
        }
        lanes.push(TimelineLane { agent: None, agents: shares, total: total(&shared) });
        counts.push(shared);
    }
    let bin = |(number, bin): (usize, &Tally)| TimelineBin {
        lanes: counts.iter().map(|by_bin| by_bin.get(&number).copied().unwrap_or(0)).collect(),
        ..TimelineBin::of(range, number as u64, bin)
    };
    let bins = bins.iter().enumerate().map(bin).collect();
    (lanes, bins)
}

impl TimelineBin {
    /// A bin without its lanes, and without what came later than its ticks.
    fn of(range: TimelineRange, number: u64, tally: &Tally) -> TimelineBin {
        let width = range.width();
        let number = range.from / width + number;
        TimelineBin {
            from: (number * width).max(range.from),
            to: (number * width + (width - 1)).min(range.to),
            transitions: tally.transitions,
            types: tally.types.clone(),
            anomalies: tally.anomalies,
            denied: tally.denied,
            failed: tally.failed,
            merges: tally.merges,
            gaps: tally.gaps,
            unknown: tally.unknown,
            closed: tally.closed,
            confidence: tally.confidence,
            changes: tally.changes,
            ..TimelineBin::default()
        }
    }
}

/// Returns the first tick at which a predicate is violated.
fn onset(tested: &PredicateTested) -> Option<u64> {
    let mut turns = tested.line.turns.iter();
    turns.find(|(_, verdict)| *verdict == Verdict::Violation).map(|(tick, _)| *tick)
}

/// Returns the verdicts of a predicate in each bin.
fn verdicts(name: &str, tested: &PredicateTested, bins: &[TimelineBin]) -> TimelineVerdicts {
    let predicate = name.to_owned();
    let word = |verdict: &Verdict| match verdict {
        Verdict::Ok => "ok",
        Verdict::Violation => "violation",
        Verdict::Uncertain(_) => "uncertain",
    };
    let turns = &tested.line.turns;
    let mut items = Vec::with_capacity(bins.len());
    let mut at = 0;
    for bin in bins {
        while turns.get(at + 1).is_some_and(|(tick, _)| *tick <= bin.from) {
            at += 1;
        }
        let here = turns[at.min(turns.len())..].iter().take_while(|(tick, _)| *tick <= bin.to);
        let mut words: Vec<&'static str> = Vec::new();
        for (_, verdict) in here {
            let one = word(verdict);
            if !words.contains(&one) {
                words.push(one);
            }
        }
        items.push(words);
    }
    TimelineVerdicts {
        predicate,
        onset: onset(tested),
        items,
        from_text: tested.from_text,
        may_be_earlier: tested.line.may_hide_onset(),
    }
}
