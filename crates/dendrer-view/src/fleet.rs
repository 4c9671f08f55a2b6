//! The answers about exports: what was written, what a check found, and a question over all runs.

use std::fmt::Write as _;

use dendrer::ask::fleet::{FleetExport, FleetReply, FleetRun};
use dendrer::kernel::predicate::Verdict;
use dendrer_object::{Digest, RunName, Value, document};

use crate::answer::{Answer, End, Line, Page};
use crate::table::{Align, Table};
use crate::{count, quote, thousands};

/// An export that was written.
#[derive(Debug, Clone)]
pub struct FleetExportAnswer {
    /// The directory.
    pub dir: String,
    /// The size of the log.
    pub size: u64,
    /// Number of runs.
    pub runs: u64,
    /// Number of rows.
    pub rows: u64,
    /// The typed columns.
    pub columns: Vec<String>,
    /// Number of files.
    pub files: u64,
    /// Number of files that an earlier call had written.
    pub kept: u64,
    /// Runs that were not named, and that a named one was forked from.
    pub ancestors: Vec<String>,
}

/// A check of an export.
#[derive(Debug, Clone)]
pub struct FleetCheckAnswer {
    /// Each file, and what is wrong with it.
    pub files: Vec<(String, Option<String>)>,
    /// The files to write again, because a value was erased since.
    pub rewrite: Vec<String>,
    /// Whether the entries make the root of the log.
    pub is_rooted: bool,
}

/// The answer of `fleet bisect`.
#[derive(Debug, Clone, Copy)]
pub struct FleetBisectAnswer<'a>(pub &'a FleetReply);

/// The answer of `fleet predicate`.
#[derive(Debug, Clone, Copy)]
pub struct FleetPredicateAnswer<'a>(pub &'a FleetReply);

document! {
    /// An export of runs as Parquet
    pub object FleetExportDocument: "parquet-export" (answer: &FleetExportAnswer) {
        /// The directory
        dir: &str = &answer.dir,
        /// The number of records of the log
        size: u64 = answer.size,
        /// The number of runs
        runs: u64 = answer.runs,
        /// The number of rows of `ticks/`
        rows: u64 = answer.rows,
        /// The typed columns
        columns: &[String] = &answer.columns,
        /// The number of files
        files: u64 = answer.files,
        /// The number of files that an earlier call had written
        kept: u64 = answer.kept,
        /// The runs that were not named, and that a named one was forked from
        ancestors: &[String] = &answer.ancestors,
    }

    /// A check of an export
    pub object FleetCheckDocument: "export-check" (answer: &FleetCheckAnswer) {
        /// The files
        files: Vec<FleetCheckedFile> = answer.files.iter().map(|(file, why)| FleetCheckedFile::of(file, why.as_deref())).collect(),
        /// The files to write again, because a value of their runs was erased since
        rewrite: &[String] = &answer.rewrite,
        /// Whether the entries of the export make the root of the log
        rooted: bool = answer.is_rooted,
    }

    /// A file of an export
    pub object FleetCheckedFile(name: &str, reason: Option<&str>) {
        /// The name in the directory of the export
        file: &str = name,
        /// Whether it is as the manifest names it
        ok: bool = reason.is_none(),
        /// The fault of the file; null if it is ok
        why: Option<&str> = reason,
    }

    /// The first violations of all runs of an export
    pub object FleetBisectDocument: "fleet-bisect" (reply: &FleetReply) {
        /// How rows were judged: by typed columns, or by states
        path: ["columns" | "state" | "sql"] = reply.path,
        /// The export
        export: FleetExportObject = FleetExportObject::of(&reply.export),
        /// The number of rows
        rows: u64 = reply.rows,
        /// The number of runs that were judged
        runs: usize = reply.runs.len(),
        /// The number of runs of which a tick cannot be judged
        unjudged: u64 = reply.unjudged(),
        /// The number of runs that end before the range
        outside: u64 = reply.outside,
        /// The runs, in order of name
        items: Vec<FleetBisectItem> = reply.runs.iter().map(FleetBisectItem::of).collect(),
        /// The number of runs with an onset at each tick
        spread: Vec<FleetSpreadItem> = reply.spread().into_iter().map(|(at, count)| FleetSpreadItem::of(at, count)).collect(),
    }

    /// An export that was asked
    pub object FleetExportObject(export: &FleetExport) {
        /// The id of the store
        store: &str = &export.store,
        /// The number of records of the log
        size: u64 = export.size,
        /// The digest of the manifest
        manifest: Digest = export.manifest,
    }

    /// The answer for a run
    pub object FleetBisectItem(one: &FleetRun) {
        /// The run
        run: &RunName = &one.run,
        /// The outcome, as bisect names it
        outcome: ["onset" | "never" | "initial" | "recovers" | "uncertain"] = one.outcome.as_str(),
        /// The first tick that is violated
        onset: Option<u64> = one.onset,
        /// The first tick that cannot be judged
        first_unknown: Option<u64> = one.first_unknown,
        /// The first tick after a violation at which the predicate holds again
        recovers_at: Option<u64> = one.recovers_at,
        /// Why a tick cannot be judged
        why?: &str = one.why.as_deref(),
    }

    /// The number of runs with an onset at a tick
    pub object FleetSpreadItem(at: u64, count: u64) {
        /// The tick
        tick: u64 = at,
        /// The number of runs
        runs: u64 = count,
    }

    /// The verdicts of a predicate on all runs of an export
    pub object FleetPredicateDocument: "fleet-predicate" (reply: &FleetReply) {
        /// How rows were judged: by typed columns, or by states
        path: ["columns" | "state" | "sql"] = reply.path,
        /// The export
        export: FleetExportObject = FleetExportObject::of(&reply.export),
        /// The number of rows
        rows: u64 = reply.rows,
        /// The number of runs that were judged
        runs: usize = reply.runs.len(),
        /// The number of runs of which a tick cannot be judged
        unjudged: u64 = reply.unjudged(),
        /// The number of runs that end before the range
        outside: u64 = reply.outside,
        /// The runs, in order of name
        items: Vec<FleetPredicateItem> = reply.runs.iter().map(FleetPredicateItem::of).collect(),
    }

    /// The verdicts on a run
    pub object FleetPredicateItem(one: &FleetRun) {
        /// The run
        run: &RunName = &one.run,
        /// The verdict over the range: violation if a tick is violated, uncertain if none is and one cannot be judged
        verdict: ["ok" | "violation" | "uncertain"] = over_range(one),
        /// The verdict at the last tick
        at_tip: ["ok" | "violation" | "uncertain"] = one.at_tip.as_ref().map_or("uncertain", word),
        /// The ticks at which the verdict became another
        turns: Vec<FleetTurn> = turns(one).into_iter().map(|(at, said)| FleetTurn::of(at, said)).collect(),
    }

    /// A tick at which a verdict became another
    pub object FleetTurn(at: u64, said: &'static str) {
        /// The tick
        tick: u64 = at,
        /// The verdict from there on
        verdict: ["ok" | "violation" | "uncertain"] = said,
    }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Violation => "violation",
        Verdict::Uncertain(_) => "uncertain",
    }
}

/// The turns of a run by word: two reasons for which a tick cannot be judged are one.
fn turns(run: &FleetRun) -> Vec<(u64, &'static str)> {
    let mut turns: Vec<(u64, &'static str)> =
        run.turns.iter().map(|(tick, verdict)| (*tick, word(verdict))).collect();
    let closed = run.first_unknown.filter(|_| run.at_tip.is_none());
    turns.extend(closed.map(|tick| (tick, "uncertain")));
    turns.dedup_by_key(|(_, word)| *word);
    turns
}

fn over_range(run: &FleetRun) -> &'static str {
    let turns = turns(run);
    let has = |wanted: &str| turns.iter().any(|(_, word)| *word == wanted);
    match (has("violation"), has("uncertain") || run.first_unknown.is_some()) {
        (true, _) => "violation",
        (false, true) => "uncertain",
        (false, false) => "ok",
    }
}

/// The last line of an answer: how it was found, and for what it is exact.
fn last_line(reply: &FleetReply) -> Line {
    let runs = count(reply.runs.len() as u64, "run", "runs");
    let rows = count(reply.rows, "row", "rows");
    let mut text =
        format!("path {}, {runs}, {rows}, {} cannot be judged", reply.path, thousands(reply.unjudged()));
    if reply.outside > 0 {
        let _ = write!(text, ", {} end before the range", thousands(reply.outside));
    }
    let _ = write!(text, "; exact for the export of {} records", thousands(reply.export.size));
    Line::from(text)
}

impl Answer for FleetBisectAnswer<'_> {
    fn document(&self) -> Value {
        FleetBisectDocument::of(self.0).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut table = Table::new([("run", Align::Left), ("outcome", Align::Left), ("where", Align::Left)]);
        for run in &self.0.runs {
            let at = match (run.onset, run.first_unknown, run.recovers_at) {
                (Some(tick), ..) => format!("tick {tick}"),
                (_, Some(tick), _) => format!("from tick {tick} on"),
                (.., Some(tick)) => format!("holds again at tick {tick}"),
                _ => String::new(),
            };
            table.row(vec![run.run.to_string(), run.outcome.to_string(), at]);
        }
        page.rows(&table).into_iter().chain([last_line(self.0)]).collect()
    }

    fn end(&self) -> End {
        match (self.0.unjudged(), self.0.runs.iter().any(|run| run.onset.is_some())) {
            (0, true) => End::Answered,
            (0, false) => End::No,
            _ => End::Unknown,
        }
    }
}

impl Answer for FleetPredicateAnswer<'_> {
    fn document(&self) -> Value {
        FleetPredicateDocument::of(self.0).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut table = Table::new([("run", Align::Left), ("verdict", Align::Left), ("turns", Align::Left)]);
        for run in &self.0.runs {
            let turns: Vec<String> = turns(run).iter().map(|(tick, word)| format!("{tick} {word}")).collect();
            table.row(vec![run.run.to_string(), over_range(run).to_owned(), turns.join(", ")]);
        }
        page.rows(&table).into_iter().chain([last_line(self.0)]).collect()
    }

    fn end(&self) -> End {
        if self.0.unjudged() == 0 { End::Answered } else { End::Unknown }
    }
}

impl Answer for FleetExportAnswer {
    fn document(&self) -> Value {
        FleetExportDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let (runs, rows) = (count(self.runs, "run", "runs"), count(self.rows, "row", "rows"));
        let wrote = format!(
            "wrote {runs}, {rows}, {} to {}",
            count(self.files, "file", "files"),
            quote::escape(&self.dir)
        );
        let mut lines = vec![Line::note(wrote)];
        if self.kept > 0 {
            lines.push(Line::note(format!(
                "went on behind {} of an earlier export",
                count(self.kept, "file", "files")
            )));
        }
        let above = self
            .ancestors
            .iter()
            .map(|run| format!("with {}, which a run was forked from", quote::escape(run)));
        lines.extend(above.map(Line::note));
        lines.push(Line::help(["dendrer", "export", "--check", &self.dir]));
        lines
    }
}

impl Answer for FleetCheckAnswer {
    fn document(&self) -> Value {
        FleetCheckDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for (file, why) in self.files.iter().filter_map(|(file, why)| Some((file, why.as_ref()?))) {
            lines.push(Line::from(format!("damaged   {}  {}", quote::escape(file), quote::escape(why))));
        }
        for file in &self.rewrite {
            lines.push(Line::from(format!("rewrite   {}  a value was erased since", quote::escape(file))));
        }
        if lines.is_empty() {
            let root = if self.is_rooted { "; the entries make the root of the log" } else { "" };
            lines.push(Line::from(format!(
                "OK        {}{root}",
                count(self.files.len() as u64, "file", "files")
            )));
        }
        lines
    }

    fn end(&self) -> End {
        if self.files.iter().any(|(_, why)| why.is_some()) {
            return End::Problem(dendrer_object::Code::E0305);
        }
        if self.rewrite.is_empty() { End::Answered } else { End::Unknown }
    }
}

/// Draws the onsets by tick as bars.
pub fn fleet_picture(reply: &FleetReply) -> String {
    let spread = reply.spread();
    let last = spread.keys().next_back().copied().unwrap_or(0);
    let most = spread.values().copied().max().unwrap_or(1).max(1);
    let (width, height) = (640.0, 160.0);
    let step = width / (last + 1) as f64;
    let mut bars = String::new();
    for (tick, runs) in &spread {
        let tall = height * *runs as f64 / most as f64;
        let (x, y, wide) = (40.0 + step * *tick as f64, 30.0 + height - tall, (step * 0.9).max(1.0));
        let _ = write!(
            bars,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\"><title>tick {tick}: {runs}</title></rect>"
        );
    }
    let words = format!(
        "{} of {}, {} cannot be judged",
        count(spread.values().sum(), "onset", "onsets"),
        count(reply.runs.len() as u64, "run", "runs"),
        thousands(reply.unjudged())
    );
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 230\" font-family=\"sans-serif\" font-size=\"12\">\
         <text x=\"40\" y=\"18\">{words}</text><g fill=\"#c0392b\">{bars}</g>\
         <line x1=\"40\" y1=\"190\" x2=\"680\" y2=\"190\" stroke=\"#555\"/>\
         <text x=\"40\" y=\"208\">tick 0</text><text x=\"680\" y=\"208\" text-anchor=\"end\">tick {last}</text>\
         <text x=\"36\" y=\"40\" text-anchor=\"end\">{most}</text></svg>\n"
    )
}
