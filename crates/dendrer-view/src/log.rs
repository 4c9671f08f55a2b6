//! Transitions as rows of a log, and the log of a run.

use std::sync::Arc;

use dendrer::ask::log::{LaneMark, LogSummary, LoggedRecord};
use dendrer::ask::provenance::LinkedRecord;
use dendrer::ask::show::{ShownRecord, ShownSync, ShownWrites};
use dendrer::trust::LogTrust;
use dendrer_object::document::As;
use dendrer_object::record::Rel;
use dendrer_object::{Digest, Object, RunName, Value, document};

use crate::answer::{Answer, ItemAnswer, Line, Page, Style};
use crate::certainty::Certainty;
use crate::change::content_json;
use crate::closed::{self, ClosedField};
use crate::layout::{self, columns, cut, pad, pad_left};
use crate::row::RowObject;
use crate::runs::{TrustObject, trust_line};
use crate::show::{ShowAnswer, ShowParts};
use crate::thread::{ThreadColumns, ThreadObject, ThreadRow, thread_row};
use crate::{count, quote, thousands};

pub use crate::row::{Row, row};

/// How many rows are kept to line their columns up. The first screen never waits for the last record.
const ROWS: usize = 200;

/// The log of a run, one record after the other.
#[derive(Debug, Clone)]
pub struct LogAnswer {
    run: RunName,
    /// Whether everything of each record is shown.
    whole: bool,
    /// Whether each record has its links.
    links: bool,
    /// The agents of the lanes, until the legend is printed.
    legend: Option<Vec<Arc<str>>>,
    /// How many lanes are drawn; `None` if none are.
    lanes: Option<usize>,
    rows: Vec<(Row, String)>,
    /// The name of the thread, if steps and nodes are listed.
    thread: Option<Arc<str>>,
    thread_rows: Vec<ThreadRow>,
    thread_shape: Option<ThreadColumns>,
    headed: bool,
    shape: Option<LogColumns>,
    cut: bool,
    shown: u64,
    ended: LogEnd,
}

/// How a log ended.
#[derive(Debug, Clone)]
pub enum LogEnd {
    /// Every record of the range was looked at.
    Summed {
        /// The counts of the log.
        summary: LogSummary,
        /// Whether a verification on this machine found the run intact as it is now.
        found_intact: bool,
        /// How much of the log is signed and verified here; `None` for a bundle.
        trust: Option<LogTrust>,
    },
    /// A log that was followed ended after so many records.
    Followed(u64),
}

impl LogAnswer {
    /// Begins a log; `whole` shows everything of each record.
    pub fn new(run: RunName, whole: bool) -> LogAnswer {
        LogAnswer {
            run,
            whole,
            links: false,
            legend: None,
            lanes: None,
            rows: Vec::new(),
            thread: None,
            thread_rows: Vec::new(),
            thread_shape: None,
            headed: false,
            shape: None,
            cut: false,
            shown: 0,
            ended: LogEnd::Followed(0),
        }
    }

    /// Draws a lane for each of these agents.
    pub fn with_lanes(self, agents: Vec<Arc<str>>) -> LogAnswer {
        LogAnswer { lanes: Some(agents.len()), legend: Some(agents), ..self }
    }

    /// Adds the links of each record to its item.
    pub fn with_links(self, links: bool) -> LogAnswer {
        LogAnswer { links, ..self }
    }

    /// Lists the steps and nodes of a thread.
    pub fn of_thread(self, name: Arc<str>) -> LogAnswer {
        LogAnswer { thread: Some(name), ..self }
    }

    /// Leaves the heading out: it was printed before.
    pub fn headed(self, headed: bool) -> LogAnswer {
        LogAnswer { headed, ..self }
    }

    /// Ends the log.
    pub fn ends(&mut self, ended: LogEnd) {
        self.ended = ended;
    }

    /// How many records were taken as text.
    pub fn shown(&self) -> u64 {
        self.shown
    }

    /// Returns the line that counts the records of a thread.
    fn thread_sum(&self, summary: &LogSummary, found_intact: bool, more: &str, page: &Page) -> Vec<Line> {
        let listed = summary.shown - summary.refusals;
        let all = thousands(listed + summary.folded);
        let mut sum = format!("{all} of {}{more}", count(summary.of, "transition", "transitions"));
        if summary.folded > 0 {
            let folded = count(summary.folded, "task write", "task writes");
            sum.push_str(&format!(": {} listed, {folded} folded (--full)", thousands(listed)));
        }
        if summary.anomalies > 0 {
            sum.push_str(&format!(", {}", count(summary.anomalies, "anomaly", "anomalies")));
        }
        if found_intact {
            sum.push_str(", found intact here");
        }
        sum.push_str(&page.of_run(&self.run));
        // One flag shows both what is folded and what is cut.
        layout::counted(&sum, self.cut && summary.folded == 0, page)
    }

    fn legend_line(&mut self) -> Option<Line> {
        let names: Vec<String> = self.legend.take()?.iter().map(|agent| quote::name(agent)).collect();
        Some(format!("lanes   {}", names.join(", ")).into())
    }

    /// Returns the rows of a thread that were kept, below its name.
    fn thread_lines(&mut self, name: &str, page: &Page) -> Vec<Line> {
        let rows = std::mem::take(&mut self.thread_rows);
        let shape = self.thread_shape.unwrap_or_else(|| ThreadColumns::of(&rows, page));
        let mut lines = Vec::new();
        if !self.headed && !rows.is_empty() {
            self.headed = true;
            lines.push(Line::styled(Style::Strong, format!("thread {}", quote::quoted(name))));
            lines.push(shape.heading());
        }
        for row in &rows {
            let (line, is_cut) = shape.line(row, page);
            self.cut |= is_cut;
            lines.push(line);
        }
        self.thread_shape = Some(shape);
        lines
    }

    /// Returns the rows that were kept, each column as wide as the first rows need it.
    fn rows_lines(&mut self, page: &Page) -> Vec<Line> {
        if let Some(name) = self.thread.clone() {
            return self.thread_lines(&name, page);
        }
        let rows = std::mem::take(&mut self.rows);
        let shape = self.shape.take().unwrap_or_else(|| LogColumns::of(&rows, page));
        let mut lines = Vec::new();
        if !self.headed && !rows.is_empty() {
            self.headed = true;
            let lanes = self.lanes.map(|lanes| format!("{:<w$}  ", "", w = (lanes * 2).saturating_sub(1)));
            let heading = Row {
                agent: "agent".to_owned(),
                type_name: "type".to_owned(),
                summary: "summary".to_owned(),
                ..Row::default()
            };
            let line = shape.line("tick", &lanes.unwrap_or_default(), &heading, "conf");
            lines.push(Line::styled(Style::Dim, line));
        }
        for (row, graph) in rows {
            let tick = match (row.tick, row.refused) {
                (Some(tick), _) => tick.to_string(),
                (None, Some(number)) => format!("#{number}"),
                (None, None) => "-".to_owned(),
            };
            let line = shape.line(&tick, &graph, &row, &row.confidence_text());
            let below = shape.is_below.then(|| format!("{}{}", " ".repeat(BELOW), row.summary));
            for text in [line].into_iter().chain(below.filter(|text| !text.trim().is_empty())) {
                let text = page.spell(text);
                let width = page.width.filter(|_| !page.full).unwrap_or(usize::MAX);
                self.cut |= columns(&text) > width;
                lines.push(Line::of(row.style(), cut(&text, width)));
            }
        }
        self.shape = Some(shape);
        lines
    }
}

/// The columns of a log: the first rows decide on them.
#[derive(Debug, Clone)]
struct LogColumns {
    agent: usize,
    kind: usize,
    has_confidence: bool,
    /// Whether each summary is on the line below.
    is_below: bool,
}

/// The columns at which a log has the confidence.
const WITH_CONFIDENCE: usize = 100;
/// The columns in front of a summary on a line of its own.
const BELOW: usize = 7;
/// The least columns of a summary after its type.
const SUMMARY_MIN: usize = 12;
/// The widest that the columns of a log get on a page with a width.
const COLUMN_MAX: usize = 24;

impl LogColumns {
    fn of(rows: &[(Row, String)], page: &Page) -> LogColumns {
        let widest = |text: &dyn Fn(&Row) -> usize, least: usize| {
            let widest = rows.iter().map(|(row, _)| text(row)).max().unwrap_or(0).max(least);
            page.width.map_or(widest, |_| widest.min(COLUMN_MAX))
        };
        let has_confidence = rows.iter().any(|(row, _)| row.confidence.is_some()) || rows.len() == ROWS;
        let is_wide = page.width.is_none_or(|width| width >= WITH_CONFIDENCE);
        let (agent, kind) =
            (widest(&|row| columns(&row.agent), 5), widest(&|row| columns(&row.type_name), 4));
        // A name is never cut for the summary, which has a line of its own where little is left of this one.
        let taken = agent + kind + 11 + rows.first().map_or(0, |(_, graph)| columns(graph));
        let room = page.width.filter(|_| !page.full).map(|width| width.saturating_sub(taken));
        LogColumns {
            agent,
            kind,
            has_confidence: has_confidence && is_wide,
            is_below: room.is_some_and(|room| room < SUMMARY_MIN),
        }
    }

    fn line(&self, tick: &str, graph: &str, row: &Row, confidence: &str) -> String {
        let (agent, kind) = (cut(&row.agent, self.agent), cut(&row.type_name, self.kind));
        let confidence = if self.has_confidence { format!("{confidence:>4}  ") } else { String::new() };
        let line = format!(
            "{}  {graph}{}  {}  {confidence}{}",
            pad_left(tick, 5),
            pad(&agent, self.agent),
            pad(&kind, self.kind),
            if self.is_below { "" } else { &row.summary }
        );
        line.trim_end().to_owned()
    }
}

document! {
    /// Transitions
    pub object LogDocument: "log" reads (name: &RunName, number: u64, sums: Option<&LogSummary>, of: Option<LogTrust>) {
        /// The run
        run: &RunName = name,
        /// The number of transitions in the range; of records that were printed, for a log that was followed
        total: u64 = number,
        ..?LogSums = sums.map(LogSums::of),
        /// How much of the log is signed and verified here; absent for a bundle
        trust?: TrustObject = of.as_ref().map(TrustObject::of),
        /// The transitions and refusals
        items: stream LogItem,
    }

    /// The counts of a log that was not followed
    object LogSums(summary: &LogSummary) {
        /// The number of refusals
        refusals: u64 = summary.refusals,
        /// The fields that were erased or withheld, as far as they decide what is listed
        closed: Vec<ClosedField> =
            summary.closed.0.iter().map(|(field, records)| ClosedField::of(field, *records)).collect(),
        /// The id of the newest transition; null if it is missing
        tip: Option<Digest> = summary.tip,
        /// Whether no record was left out because of the limit
        complete: bool = !summary.left_out,
        /// The tick to go on from; null if no later record was left out because of the limit
        next: Option<u64> = summary.next,
        /// The certainty
        certainty: ["recorded"] = Certainty::Recorded.as_str(),
    }

    /// A record of a log
    object LogItem(item: &LoggedRecord, whole: bool, links: Option<&[(Rel, Digest, Option<LinkedRecord>)]>) {
        let record = &item.record;
        ..RowObject = RowObject::of(record),
        /// The number of a refusal, from 1, as RUN@refused:N names it; absent for a transition
        refused?: u64 = item.refused,
        ..?ThreadObject = item.thread.as_ref().map(ThreadObject::of),
        /// The content, if whole records were asked for
        content?: As<Object> = whole.then(|| As::new(content_json(record))),
        /// The links to other records, if they were asked for
        links?: Vec<LogLink> = links.map(|links| links.iter().map(LogLink::of).collect::<Vec<_>>()),
    }

    /// A link to a record by its place
    object LogLink(link: &(Rel, Digest, Option<LinkedRecord>)) {
        /// The relation
        rel: Rel = link.0,
        /// The run; null if the record is in no run of this source
        run: Option<&RunName> = link.2.as_ref().map(|place| &place.run),
        /// The tick; null if the record is in no run of this source
        tick: Option<u64> = link.2.as_ref().map(|place| place.tick),
    }
}

impl ItemAnswer for LogAnswer {
    type Item = LoggedRecord;

    fn item(&mut self, item: &LoggedRecord) -> Option<Value> {
        let links = self.links.then_some(&item.links[..]);
        Some(LogItem::of(item, self.whole, links).into())
    }

    fn item_lines(&mut self, item: &LoggedRecord, page: &Page) -> Vec<Line> {
        let mut lines: Vec<Line> = self.legend_line().into_iter().collect();
        self.shown += 1;
        if self.whole {
            lines.extend((self.shown > 1).then(|| Line::from("")));
            lines.extend(whole_lines(item, page));
            return lines;
        }
        if self.thread.is_some() {
            self.thread_rows.push(thread_row(item));
            return if self.thread_rows.len() == ROWS { self.rows_lines(page) } else { lines };
        }
        let mut row = row(&item.record);
        row.refused = item.refused;
        row.agent = page.spell(row.agent);
        row.summary.push_str(&link_words(item));
        let graph = item.lanes.as_ref().map(|marks| format!("{}  ", lane_words(marks))).unwrap_or_default();
        self.rows.push((row, graph));
        if self.rows.len() == ROWS {
            lines.extend(self.rows_lines(page));
        }
        lines
    }

    fn summary(&self) -> Value {
        match &self.ended {
            LogEnd::Summed { summary, trust, .. } => {
                LogDocument::of(&self.run, summary.total, Some(summary), *trust).into()
            }
            LogEnd::Followed(total) => LogDocument::of(&self.run, *total, None, None).into(),
        }
    }

    fn kept_lines(&mut self, page: &Page) -> Vec<Line> {
        let legend = self.legend_line();
        legend.into_iter().chain(self.rows_lines(page)).collect()
    }

    fn last_lines(&mut self, page: &Page) -> Vec<Line> {
        let LogEnd::Summed { summary, found_intact, trust } = &self.ended else { return Vec::new() };
        let trust = trust.iter().map(trust_line);
        let mut lines = Vec::new();
        lines.extend((self.whole && summary.shown > 0).then(|| Line::from("")));
        let refused = match summary.refusals {
            0 => String::new(),
            refusals => format!(" and {}", count(refusals, "refusal", "refusals")),
        };
        let more = if summary.left_out { " (use -n 0 for all)" } else { "" };
        if self.thread.is_some() {
            lines.extend(self.thread_sum(summary, *found_intact, &format!("{refused}{more}"), page));
            lines.extend(closed::line(&summary.closed).map(Line::from).into_iter().chain(trust));
            return lines;
        }
        let sum = format!(
            "{} of {}{refused}{more}, {}, {}{}{}",
            thousands(summary.shown - summary.refusals),
            count(summary.of, "transition", "transitions"),
            count(summary.agents, "agent", "agents"),
            count(summary.anomalies, "anomaly", "anomalies"),
            if *found_intact { ", found intact here" } else { "" },
            page.of_run(&self.run),
        );
        lines.extend(layout::counted(&sum, self.cut, page));
        lines.extend(closed::line(&summary.closed).map(Line::from).into_iter().chain(trust));
        lines
    }
}

fn whole_lines(item: &LoggedRecord, page: &Page) -> Vec<Line> {
    let LoggedRecord { run, record, writes, .. } = item.clone();
    let writes = writes.unwrap_or(ShownWrites::Known(Vec::new()));
    let tick = record.header().tick;
    let shown = ShownRecord {
        run: Some(run),
        tick,
        record,
        writes,
        sync: ShownSync::default(),
        state: None,
        provenance: None,
    };
    let parts =
        ShowParts { all: true, intent: true, result: true, changes: true, provenance: false, run: false };
    ShowAnswer { shown: &shown, parts }.lines(page)
}

/// Writes the lanes at a record: `*` for its agent, `|` for any other open branch.
fn lane_words(marks: &[LaneMark]) -> String {
    let mark = |mark: &LaneMark| match mark {
        LaneMark::Empty => " ",
        LaneMark::Open => "|",
        LaneMark::Here => "*",
    };
    marks.iter().map(mark).collect::<Vec<_>>().join(" ")
}

/// Writes the links of a record: the tick if it is of this run, else run and tick.
fn link_words(item: &LoggedRecord) -> String {
    let others = item.links.iter().filter(|(rel, ..)| *rel != Rel::Predecessor);
    let links = others.map(|(rel, hash, target)| {
        let place = match target {
            Some(place) if place.run == item.run => place.tick.to_string(),
            Some(place) => format!("{}@{}", place.run, place.tick),
            None => hash.short(),
        };
        format!("{} {place}", rel.as_str())
    });
    let links: Vec<String> = links.collect();
    if links.is_empty() { String::new() } else { format!("  <- {}", links.join(", ")) }
}
