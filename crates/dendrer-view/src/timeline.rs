//! A run as bins of ticks, as a list and as a document.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer::ask::timeline::{TimelineBin, TimelineLane, TimelineMark, TimelineReply, TimelineVerdicts};
use dendrer_object::{RunName, Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::row::row;
use crate::table::{Align, Table};
use crate::{count, quote};

document! {
    /// A run as bins of ticks
    pub object TimelineDocument: "timeline" reads (reply: &TimelineReply) {
        /// The run
        run: &RunName = reply.trace.name(),
        /// The first tick
        from: u64 = reply.from,
        /// The last tick
        to: u64 = reply.to,
        /// The number of ticks of a bin, a power of two; a bin begins at a multiple of it
        width: u64 = reply.width,
        /// The number of bins
        bins: u64 = reply.items.len() as u64,
        /// The lanes, the one with the most transitions first
        lanes: Vec<TimelineLaneObject> = reply.lanes.iter().map(TimelineLaneObject::of).collect(),
        /// The bins, in order
        items: Vec<TimelineBinObject> = reply.items.iter().map(TimelineBinObject::of).collect(),
        /// The verdicts of each predicate that was asked for
        verdicts: Vec<TimelineVerdictsObject> = reply.verdicts.iter().map(TimelineVerdictsObject::of).collect(),
        /// Ticks of note, the worst first; at most 200
        marks: Vec<TimelineMarkObject> = reply.marks.iter().map(TimelineMarkObject::of).collect(),
        /// The number of marks of each kind that are left out
        left_out: BTreeMap<&'static str, u64> = reply.left_out.clone(),
    }

    /// A lane of a timeline
    object TimelineLaneObject(lane: &TimelineLane) {
        /// The agent; null for the agents that share the last lane, and for transitions without one
        agent: Option<&str> = lane.agent.as_deref(),
        /// The number of agents that share the lane
        agents: u64 = lane.agents,
        /// The number of transitions of the range
        total: u64 = lane.total,
    }

    /// The counts of a range of ticks
    object TimelineBinObject(bin: &TimelineBin) {
        /// The first tick
        from: u64 = bin.from,
        /// The last tick
        to: u64 = bin.to,
        /// The number of transitions
        n: u64 = bin.transitions,
        /// The number of transitions of each lane
        lanes: Vec<u64> = bin.lanes.clone(),
        /// The number of transitions of each type
        types: BTreeMap<Arc<str>, u64> = bin.types.clone(),
        /// The number of anomalies
        anomalies: u64 = bin.anomalies,
        /// The number of refusals that were judged against a transition of the bin
        refusals: u64 = bin.refusals,
        /// The number of transitions that are denied
        denied: u64 = bin.denied,
        /// The number of results of calls that failed
        failed: u64 = bin.failed,
        /// The number of forks of a transition of the bin
        forks: u64 = bin.forks,
        /// The number of transitions with several predecessors
        merges: u64 = bin.merges,
        /// The number of gaps: transitions in place of a part of the source that is missing
        gaps: u64 = bin.gaps,
        /// The number of places that were left unknown
        unknown: u64 = bin.unknown,
        /// The number of fields that were erased or withheld
        closed: u64 = bin.closed,
        /// The lowest confidence; null if none was given
        confidence: Option<f64> = bin.confidence,
        /// The number of places that were written
        changes: u64 = bin.changes,
    }

    /// The verdicts of a predicate, bin by bin
    object TimelineVerdictsObject(verdicts: &TimelineVerdicts) {
        /// The name or the expression
        predicate: &str = &verdicts.predicate,
        /// The first tick of the range that is violated; null if none is
        onset: Option<u64> = verdicts.onset,
        /// The certainty of the onset
        certainty: ["exact" | "heuristic" | "unavailable"] = verdicts.certainty(),
        /// For each bin its verdicts, in order
        items: Vec<Vec<&'static str>> = verdicts.items.clone(),
    }

    /// A tick of note
    object TimelineMarkObject(mark: &TimelineMark) {
        /// The tick
        tick: u64 = mark.tick,
        /// The kind
        kind: &str = mark.kind.as_str(),
        /// The transition, the refusal or the predicate in one line
        text: String = mark_words(mark),
    }
}

/// Describes a mark in one line.
pub(crate) fn mark_words(mark: &TimelineMark) -> String {
    match (&mark.record, &mark.predicate) {
        (Some(record), _) => row(record).summary,
        (None, Some(predicate)) => format!("{} is violated first", quote::escape(predicate)),
        (None, None) => String::new(),
    }
}

impl Answer for TimelineReply {
    fn document(&self) -> Value {
        TimelineDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let bins = count(self.items.len() as u64, "bin", "bins");
        let ticks = count(self.width, "tick", "ticks");
        let mut lines: Vec<Line> = vec![
            format!("{}   ticks {}..{}   {bins} of {ticks}", self.trace.name(), self.from, self.to).into(),
        ];
        lines.extend(self.marks.iter().map(mark_line));
        if !self.left_out.is_empty() {
            let rest: Vec<String> =
                self.left_out.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            lines.push(Line::note(format!("left out: {}", rest.join(", "))));
        }
        lines.extend(page.list(&table(self)).0);
        lines
    }
}

fn mark_line(mark: &TimelineMark) -> Line {
    let text = format!("{:<9}  tick {}  {}", mark.kind.as_str(), mark.tick, mark_words(mark));
    Line::styled(Style::Warn, text.trim_end().to_owned())
}

/// The columns of a list of bins: the name, and the count of a bin.
type BinColumn = (&'static str, fn(&TimelineBin) -> u64);

const COLUMNS: [BinColumn; 11] = [
    ("n", |bin| bin.transitions),
    ("changes", |bin| bin.changes),
    ("anomalies", |bin| bin.anomalies),
    ("refusals", |bin| bin.refusals),
    ("denied", |bin| bin.denied),
    ("failed", |bin| bin.failed),
    ("forks", |bin| bin.forks),
    ("merges", |bin| bin.merges),
    ("gaps", |bin| bin.gaps),
    ("unknown", |bin| bin.unknown),
    ("closed", |bin| bin.closed),
];

/// Makes the list of the bins; a column without a count is left out.
fn table(reply: &TimelineReply) -> Table {
    let is_shown = |(_, read): &&BinColumn| reply.items.iter().any(|bin| read(bin) > 0);
    let shown: Vec<&BinColumn> = COLUMNS.iter().filter(is_shown).collect();
    let confidence = reply.items.iter().any(|bin| bin.confidence.is_some());
    let mut names = vec![("ticks".to_owned(), Align::Left)];
    names.extend(shown.iter().map(|(name, _)| ((*name).to_owned(), Align::Right)));
    names.extend(confidence.then(|| ("confidence".to_owned(), Align::Right)));
    names.extend(reply.verdicts.iter().map(|one| (quote::escape(&one.predicate).into(), Align::Left)));
    let mut table = Table::new(names);
    for (at, bin) in reply.items.iter().enumerate() {
        let ticks =
            if bin.from == bin.to { bin.from.to_string() } else { format!("{}..{}", bin.from, bin.to) };
        let mut cells = vec![ticks];
        cells.extend(shown.iter().map(|(_, read)| read(bin).to_string()));
        let lowest = bin.confidence.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        cells.extend(confidence.then_some(lowest));
        cells.extend(reply.verdicts.iter().map(|one| one.items[at].join(", ")));
        table.row(cells);
    }
    table
}
