//! A run as bins of ticks: how much happened in each, the verdicts of predicates, and ticks of note.
//!
//! A bin is a range of `width` ticks that begins at a multiple of `width`, a power of two. Every count of a bin is the sum over
//! its ticks, and nothing is sampled.
//!
//! Rule: a bin has the counts of a log of its ticks; test `each_bin_is_a_slow_count_of_the_log`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::predicate::Verdict;
use dendrer_kernel::unknown::made_by;
use dendrer_object::record::{Kind, Record, Rel};
use dendrer_object::{Digest, Value};

use crate::ask::predicates::PredicateTested;
use crate::ask::thread::{ThreadIndex, ThreadPart};
use crate::error::Error;
use crate::run::closed::closed;
use crate::run::trace::{Trace, all_runs};

pub mod question;

/// How many bins a timeline has if no number is given.
pub const BINS: u64 = 512;
/// The largest number of bins.
pub const BINS_MAX: u64 = 2_048;
/// How many lanes a timeline has; the agents with the fewest transitions share one more.
pub const LANES_MAX: usize = 24;
/// How many marks a timeline has; the others are counted.
pub const MARKS_MAX: usize = 200;

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
/// # Errors
///
/// An error if a record cannot be read.
pub fn timeline(
    trace: &Trace,
    range: TimelineRange,
    tested: &[(String, PredicateTested)],
) -> Result<TimelineReply, Error> {
    let mut counting = Counting::of(trace, range)?;
    trace.try_each(range.from.max(1), range.to, &mut |tick, record| {
        counting.count(tick, &record)?;
        Ok::<_, Error>(ControlFlow::Continue(()))
    })?;
    for (name, tested) in tested {
        counting.onset(name, tested);
    }
    let (marks, left_out) = counting.marks.ordered();
    let (lanes, items) = counting.lanes();
    let width = range.width();
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

/// Marks as they are found.
#[derive(Debug, Default)]
struct Marks {
    /// The marks of each kind, the first ones.
    kept: BTreeMap<MarkKind, Vec<TimelineMark>>,
    /// How many there are of each kind.
    found: BTreeMap<MarkKind, u64>,
}

impl Marks {
    fn add(&mut self, tick: u64, kind: MarkKind, record: Option<&Record>, predicate: Option<&str>) {
        *self.found.entry(kind).or_default() += 1;
        let kept = self.kept.entry(kind).or_default();
        if kept.len() < MARKS_MAX {
            kept.push(TimelineMark {
                tick,
                kind,
                record: record.cloned(),
                predicate: predicate.map(str::to_owned),
            });
        }
    }

    /// Returns the marks that are shown, and how many of each kind are left out.
    fn ordered(&mut self) -> (Vec<TimelineMark>, BTreeMap<&'static str, u64>) {
        let kept = std::mem::take(&mut self.kept);
        let shown: Vec<TimelineMark> = kept.into_values().flatten().take(MARKS_MAX).collect();
        let mut left_out = BTreeMap::new();
        for (kind, found) in &self.found {
            let here = shown.iter().filter(|mark| mark.kind == *kind).count() as u64;
            if *found > here {
                left_out.insert(kind.as_str(), found - here);
            }
        }
        (shown, left_out)
    }
}

/// The counts of a timeline as far as its range was read.
struct Counting<'t> {
    range: TimelineRange,
    width: u64,
    bins: Vec<TimelineBin>,
    /// For each agent its transitions, by bin.
    agents: BTreeMap<Option<Arc<str>>, BTreeMap<usize, u64>>,
    marks: Marks,
    refusals: BTreeMap<Digest, Vec<Record>>,
    /// How many runs are forks of each record.
    forks: BTreeMap<Digest, u64>,
    thread: Option<ThreadIndex<'t>>,
}

impl<'t> Counting<'t> {
    fn of(trace: &'t Trace, range: TimelineRange) -> Result<Counting<'t>, Error> {
        let width = range.width();
        let first = range.from / width;
        let bins = (first..=range.to / width).map(|number| TimelineBin {
            from: (number * width).max(range.from),
            to: (number * width + (width - 1)).min(range.to),
            ..TimelineBin::default()
        });
        let mut forks: BTreeMap<Digest, u64> = BTreeMap::new();
        for run in all_runs(&**trace.store())?.into_iter().filter(|run| run.name != *trace.name()) {
            run.parent.into_iter().for_each(|parent| *forks.entry(parent).or_default() += 1);
        }
        Ok(Counting {
            range,
            width,
            bins: bins.collect(),
            agents: BTreeMap::new(),
            marks: Marks::default(),
            refusals: trace.refusals()?,
            forks,
            thread: ThreadIndex::of(trace),
        })
    }

    /// Counts a transition, and what was refused after it.
    fn count(&mut self, tick: u64, record: &Record) -> Result<(), Error> {
        let number = usize::try_from(tick / self.width - self.range.from / self.width).unwrap_or(usize::MAX);
        let refused = self.refusals.remove(&record.id()).unwrap_or_default();
        let forks = self.forks.get(&record.id()).copied().unwrap_or(0);
        let content = record.content();
        let text = |outer: &str, inner: &str| content.get(outer)?.get(inner)?.as_str();
        let anomalies = content.get("anomalies").and_then(Value::as_array);
        let is_gap = anomalies.is_some_and(|list| {
            list.iter().any(|anomaly| anomaly.get("gap").and_then(Value::as_bool) == Some(true))
        });
        let anomalies = anomalies.map_or(0, |list| list.len() as u64);
        let is_denied = text("policy", "decision") == Some("deny");
        let is_failed = text("result", "status").is_some_and(|status| status != "ok");
        let links = &record.header().links;
        let is_merge = links.iter().filter(|link| link.rel == Rel::Predecessor).count() > 1;
        let confidence =
            content.get("intent").and_then(|intent| intent.get("confidence")).and_then(Value::as_f64);
        let agent = content.get("agent_id").and_then(Value::as_str).map(Arc::from);
        *self.agents.entry(agent).or_default().entry(number).or_default() += 1;
        let Some(bin) = self.bins.get_mut(number) else { return Ok(()) };
        bin.transitions += 1;
        if let Some(name) = &record.header().type_name {
            *bin.types.entry(Arc::from(name.as_str())).or_default() += 1;
        }
        bin.anomalies += anomalies;
        bin.refusals += refused.len() as u64;
        bin.denied += u64::from(is_denied);
        bin.failed += u64::from(is_failed);
        bin.forks += forks;
        bin.merges += u64::from(is_merge);
        bin.gaps += u64::from(is_gap);
        bin.unknown += made_by(record).len() as u64;
        bin.closed += closed(record).len() as u64;
        bin.confidence = match (bin.confidence, confidence) {
            (Some(before), Some(here)) => Some(before.min(here)),
            (before, here) => before.or(here),
        };
        bin.changes += record.delta().map_or(0, |delta| delta.paths().count() as u64);
        let is_interrupt = self.is_interrupt(record)?;
        for refusal in &refused {
            self.marks.add(tick, MarkKind::Refusal, Some(refusal), None);
        }
        let found = [
            (MarkKind::Gap, is_gap),
            (MarkKind::Denial, is_denied),
            (MarkKind::Failure, is_failed),
            (MarkKind::Anomaly, anomalies > 0 && !is_gap),
            (MarkKind::Interrupt, is_interrupt),
            (MarkKind::Merge, is_merge),
            (MarkKind::Fork, forks > 0),
        ];
        for (kind, _) in found.into_iter().filter(|(_, is_here)| *is_here) {
            self.marks.add(tick, kind, Some(record), None);
        }
        debug_assert!(record.header().kind == Kind::Transition, "a tick of a run is a transition");
        Ok(())
    }

    /// Whether a record is an interrupt of a graph.
    fn is_interrupt(&mut self, record: &Record) -> Result<bool, Error> {
        let place = self.thread.as_mut().map(|thread| thread.place(record)).transpose()?.flatten();
        Ok(place.is_some_and(|place| matches!(place.part, ThreadPart::Interrupt(_))))
    }

    /// Marks the first violation of a predicate.
    fn onset(&mut self, name: &str, tested: &PredicateTested) {
        if let Some(tick) = onset(tested) {
            self.marks.add(tick, MarkKind::Onset, None, Some(name));
        }
    }

    /// Returns the lanes, and the bins with the counts of each.
    fn lanes(self) -> (Vec<TimelineLane>, Vec<TimelineBin>) {
        let mut agents: Vec<(Option<Arc<str>>, BTreeMap<usize, u64>)> = self.agents.into_iter().collect();
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
        let mut bins = self.bins;
        for (number, bin) in bins.iter_mut().enumerate() {
            bin.lanes = counts.iter().map(|by_bin| by_bin.get(&number).copied().unwrap_or(0)).collect();
        }
        (lanes, bins)
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
