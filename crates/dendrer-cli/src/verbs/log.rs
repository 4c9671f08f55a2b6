//! `dendrer log`

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

use dendrer::Trace;
use dendrer::provenance::linked_record;
use dendrer_object::delta::Delta;
use dendrer_object::record::{Kind, Record, Rel};
use dendrer_object::{Pointer, Value};
use dendrer_view::closed::Closed;
use dendrer_view::graph::Lanes;
use dendrer_view::log::{Row, row};
use dendrer_view::{RECORDED, count, document, quote, thousands};
use regex::Regex;

use crate::address::{self, Rev, state_path};
use crate::args::{Global, Log};
use crate::failure::{Failure, Result};
use crate::open::{self, Source};
use crate::out::{CUT, Format, Out, Style};
use crate::progress::{Counted, Progress};
use crate::verified;

/// How many transitions a log shows where nothing else is asked for.
const LIMIT: usize = 1000;

/// How often a log that follows looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

struct Filter {
    types: Vec<String>,
    agents: Vec<String>,
    anomalies: bool,
    path: Option<Pointer>,
    grep: Option<Regex>,
}

impl Filter {
    fn takes(&self, record: &Record) -> bool {
        let type_name = record.header().type_name.as_ref().map(|name| name.as_str());
        let agent = || record.body().value("/agent_id");
        (self.types.is_empty() || self.types.iter().any(|wanted| Some(wanted.as_str()) == type_name))
            && (self.agents.is_empty()
                || agent()
                    .and_then(|a| a.as_str().map(str::to_owned))
                    .is_some_and(|a| self.agents.contains(&a)))
            && (!self.anomalies || record.body().value("/anomalies").is_some())
            && self.path.as_ref().is_none_or(|path| writes(record, path))
            && self.grep.as_ref().is_none_or(|grep| {
                type_name.is_some_and(|name| grep.is_match(name)) || says(&record.content(), grep)
            })
    }
}

/// Whether any text in a value matches, names of members aside.
fn says(value: &Value, grep: &Regex) -> bool {
    match value {
        Value::String(text) => grep.is_match(text),
        Value::Array(list) => list.iter().any(|item| says(item, grep)),
        Value::Object(object) => object.iter().any(|(_, member)| says(member, grep)),
        _ => false,
    }
}

fn regex(text: &str) -> Result<Regex> {
    Regex::new(text).map_err(|error| {
        // The library draws the place under the pattern; each line of that is a line here.
        Failure::new("E0106", "--grep takes a regular expression").at("what", error.to_string())
    })
}

fn writes(record: &Record, place: &Pointer) -> bool {
    let delta = record.body().value("/delta").and_then(|delta| Delta::from_value(&delta).ok());
    delta.is_some_and(|delta| delta.paths().any(|path| path.overlaps(place)))
}

pub(crate) fn run(global: &Global, args: &Log, out: &mut Out) -> Result {
    if let Some((run, from, to)) = Rev::range(&args.run)? {
        if args.from.is_some() || args.to.is_some() {
            return Err(Failure::new(
                "E0106",
                format!("{} says which ticks, and so do --from and --to", args.run),
            ));
        }
        let ticks = Log { run: run.to_owned(), from: Some(from), to: Some(to), ..args.clone() };
        return listed(global, &ticks, out);
    }
    listed(global, args, out)
}

fn listed(global: &Global, args: &Log, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.run)?;
    let filter = Filter {
        types: args.types.clone(),
        agents: args.agent.clone(),
        anomalies: args.anomalies,
        path: args.path.as_deref().map(state_path).transpose()?,
        grep: args.grep.as_deref().map(regex).transpose()?,
    };
    if args.oneline && global.full {
        return Err(Failure::new("E0106", "--oneline and --full exclude each other"));
    }
    if global.format.as_deref() == Some("receipt") {
        return receipt(global, args, &rev, out);
    }
    if args.graph && !out.is_text() {
        return Err(Failure::new("E0106", "--graph draws for people; links are in `dendrer show --json`"));
    }
    if args.follows() {
        return follow(global, args, &rev, &filter, out);
    }
    let source = open::source(global, &rev, out)?;
    let rev = rev.settle(source.store())?;
    let trace = source.trace(&rev)?;
    let (from, to) = range(&trace, args, &rev)?;
    let limit = match args.limit {
        Some(0) => usize::MAX,
        Some(limit) => limit,
        None => LIMIT,
    };
    let mut refusals = if args.refusals { trace.refusals()? } else { BTreeMap::new() };
    let judged_at_start = refusals.remove(&trace.start().id()).unwrap_or_default();
    let mut writer = Writer::new(out, trace.name().as_str());
    writer.found_intact = found_intact(global, &source, &trace);
    writer.full = full(global);
    writer.edges = args.graph;
    if args.graph && !crate::out::accessible() {
        let lanes = Lanes::new(&trace.at(to)?.agents);
        writer.out.line(lanes.legend())?;
        writer.lanes = Some(lanes);
    }
    let mut result = Ok(());
    let mut visit = |record: &Record, writer: &mut Writer<'_>| -> ControlFlow<()> {
        writer.see(record, &filter);
        let tick_record = filter.takes(record).then_some(record);
        let graph = writer.lanes.as_mut().map(|lanes| lanes.step(record));
        let beside = refusals.remove(&record.id()).unwrap_or_default();
        beside.iter().for_each(|record| writer.see(record, &filter));
        for record in tick_record.into_iter().chain(&beside) {
            if writer.shown == limit {
                writer.left_out = true;
                return ControlFlow::Break(());
            }
            if let Err(failure) = writer.take(&trace, record, graph.as_deref()) {
                result = Err(failure);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    };
    if from <= 1 {
        for record in &judged_at_start {
            writer.see(record, &filter);
            writer.take(&trace, record, None)?;
        }
    }
    if args.reverse {
        let mut tick = to;
        while tick >= from.max(1) {
            let record = trace.record(tick)?;
            if visit(&record, &mut writer).is_break() {
                break;
            }
            tick -= 1;
        }
    } else {
        trace.for_each(from, to, &mut |_, record| visit(&record, &mut writer))?;
    }
    result?;
    writer.finish(&trace, from, to)?;
    Ok(0)
}

fn range(trace: &Trace<'_>, args: &Log, rev: &Rev) -> Result<(u64, u64)> {
    let from = args.from.as_ref().map_or(Ok(1), |pos| pos.tick(trace))?;
    let to = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(trace))?;
    if args.from.is_some() {
        address::in_order(from, to)?;
    }
    Ok((from, to))
}

struct Writer<'o> {
    out: &'o mut Out,
    run: String,
    items: Vec<Value>,
    rows: Vec<Row>,
    shown: usize,
    left_out: bool,
    agents: BTreeSet<String>,
    anomalies: u64,
    /// How many of what was shown are refusals, which are no transitions.
    refusals: u64,
    /// What cannot be read of the records that were looked at.
    closed: Closed,
    /// Whether a verification here found the run intact as it is now.
    found_intact: bool,
    headed: bool,
    /// Whether a line was cut.
    cut: bool,
    /// Shows each transition as `show` does, with how times are written.
    full: Option<Global>,
    /// Whether recorded links are named.
    edges: bool,
    /// Not where strokes cannot be read.
    lanes: Option<Lanes>,
}

/// The flags, if everything of each transition is asked for.
fn full(global: &Global) -> Option<Global> {
    let content = global.fields.iter().any(|field| field == "content");
    (global.full || content).then(|| global.clone())
}

impl<'o> Writer<'o> {
    fn new(out: &'o mut Out, run: &str) -> Writer<'o> {
        Writer {
            out,
            run: run.to_owned(),
            items: Vec::new(),
            rows: Vec::new(),
            shown: 0,
            left_out: false,
            agents: BTreeSet::new(),
            anomalies: 0,
            refusals: 0,
            closed: Closed::default(),
            found_intact: false,
            headed: false,
            cut: false,
            full: None,
            edges: false,
            lanes: None,
        }
    }

    /// Looks at what is not known of a record that a list may show or leave out.
    fn see(&mut self, record: &Record, filter: &Filter) {
        let all = self.full.is_some() || filter.grep.is_some();
        let path = filter.path.is_some();
        self.closed.add(record, |pointer| {
            let field = pointer.tokens().next();
            all || match field.as_deref() {
                Some("agent_id" | "intent" | "action" | "result" | "policy" | "anomalies" | "reason") => true,
                field => path && field == Some("delta"),
            }
        });
    }

    fn take(&mut self, trace: &Trace<'_>, record: &Record, graph: Option<&str>) -> Result<()> {
        let mut row = row(record);
        self.shown += 1;
        self.agents.insert(row.agent.clone());
        let is_refusal = record.header().kind == Kind::Refusal;
        self.refusals += u64::from(is_refusal);
        // What a refused intent claims is no anomaly of the run.
        self.anomalies += if is_refusal { 0 } else { row.anomalies as u64 };
        match self.out.format() {
            Format::Json => {
                let item = self.item(&row, record);
                self.items.push(item);
            }
            Format::Jsonl => {
                let item = self.item(&row, record);
                self.out.item(&item)?;
            }
            Format::Text if self.full.is_some() => {
                if self.shown > 1 {
                    self.out.line("")?;
                }
                super::show::whole(trace, record, self.out)?;
            }
            Format::Text => {
                row.graph = graph.map(str::to_owned);
                if self.edges {
                    row.summary = format!("{}{}", row.summary, edges(trace, record)?);
                }
                self.rows.push(row);
                // Enough rows to line columns up well; the first screen never waits for the last record.
                if self.rows.len() == 200 {
                    self.print()?;
                }
            }
        }
        Ok(())
    }

    fn item(&self, row: &Row, record: &Record) -> Value {
        let item = row.to_json(record);
        let mut item = item.as_object().cloned().unwrap_or_default();
        if self.full.is_some() {
            item.set("content", record.content());
        }
        Value::Object(item)
    }

    fn print(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let agent = rows.iter().map(|row| row.agent.chars().count()).max().unwrap_or(0).clamp(5, 24);
        let kind = rows.iter().map(|row| row.type_name.chars().count()).max().unwrap_or(0).max(4);
        if !self.headed && !rows.is_empty() {
            self.headed = true;
            let lanes = self.lanes.as_ref().map(|lanes| format!("{:<w$}  ", "", w = lanes.width()));
            let lanes = lanes.unwrap_or_default();
            let line = format!("  tick  {lanes}{:<agent$}  {:<kind$}  conf  summary", "agent", "type");
            let line = self.out.paint(Style::Dim, &line);
            self.out.line(line)?;
        }
        for row in rows {
            let tick = row.tick.map_or_else(|| "-".to_owned(), |tick| tick.to_string());
            let graph = row.graph.as_ref().map(|graph| format!("{graph}  ")).unwrap_or_default();
            let line = format!(
                "{tick:>6}  {graph}{:<agent$}  {:<kind$}  {:>4}  {}",
                row.agent,
                row.type_name,
                row.confidence_text(),
                row.summary
            );
            let line = match self.out.width() {
                Some(width) => {
                    self.cut |= line.trim_end().chars().count() > width;
                    quote::shorten(line.trim_end(), width)
                }
                None => line.trim_end().to_owned(),
            };
            let style = if row.tick.is_none() || row.anomalies > 0 { Some(Style::Warn) } else { None };
            let line = style.map_or(line.clone(), |style| self.out.paint(style, &line));
            self.out.line(line)?;
        }
        Ok(())
    }

    fn finish(mut self, trace: &Trace<'_>, from: u64, to: u64) -> Result<()> {
        let total = (to + 1).saturating_sub(from.max(1));
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("total", Value::from(total)),
            ("refusals", Value::from(self.refusals)),
            ("closed", self.closed.to_json()),
            ("tip", Value::from(trace.summary().head.id)),
            ("complete", Value::from(!self.left_out)),
            ("certainty", Value::from(RECORDED)),
        ];
        match self.out.format() {
            Format::Json => {
                let items = ("items", Value::array(std::mem::take(&mut self.items)));
                self.out.document(&document("log", members.into_iter().chain([items])))
            }
            Format::Jsonl => self.out.summary("log", members),
            Format::Text => {
                self.print()?;
                if self.full.is_some() && self.shown > 0 {
                    self.out.line("")?;
                }
                if self.cut {
                    self.out.line(CUT)?;
                }
                let refused = match self.refusals {
                    0 => String::new(),
                    refusals => format!(" and {}", count(refusals, "refusal", "refusals")),
                };
                let more = if self.left_out { " (use -n 0 for all)" } else { "" };
                self.out.line(format!(
                    "{} of {}{refused}{more}, {}, {}, {}",
                    thousands(self.shown as u64 - self.refusals),
                    count(total, "transition", "transitions"),
                    count(self.agents.len() as u64, "agent", "agents"),
                    count(self.anomalies, "anomaly", "anomalies"),
                    if self.found_intact { "found intact here" } else { "not verified yet" },
                ))?;
                match self.closed.line() {
                    Some(line) => self.out.line(line),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Whether a verification here found the run intact as it is now. Of a bundle nothing is remembered.
fn found_intact(global: &Global, source: &Source, trace: &Trace<'_>) -> bool {
    let Source::Store(store) = source else { return false };
    let Ok(path) = open::find(global) else { return false };
    let known = verified::known(&path, store.info().id);
    known.get(trace.name().as_str()) == Some(&trace.summary().head.id)
}

/// Names what a transition is linked to: the tick where it is of this run, else run and tick.
fn edges(trace: &Trace<'_>, record: &Record) -> Result<String> {
    let mut edges = Vec::new();
    for link in record.header().links.iter().filter(|link| link.rel != Rel::Predecessor) {
        let target = linked_record(trace.store(), &link.hash)?;
        let place = match target {
            Some(place) if place.run == *trace.name() => place.tick.to_string(),
            Some(place) => format!("{}@{}", place.run, place.tick),
            None => link.hash.short(),
        };
        edges.push(format!("{} {place}", link.rel.as_str()));
    }
    Ok(if edges.is_empty() { String::new() } else { format!("  <- {}", edges.join(", ")) })
}

/// Prints the receipt of a run (dendrer paper 7). It replays the run for its last line.
fn receipt(global: &Global, args: &Log, rev: &Rev, out: &mut Out) -> Result {
    let filtered = !args.types.is_empty()
        || !args.agent.is_empty()
        || args.anomalies
        || args.path.is_some()
        || args.grep.is_some()
        || args.from.is_some()
        || args.to.is_some()
        || rev.pos.is_some()
        || args.limit.is_some()
        || args.refusals
        || args.graph
        || args.reverse
        || args.oneline
        || args.follows();
    if filtered {
        return Err(Failure::new("E0106", "a receipt is of a whole run: it takes no other flag of log"));
    }
    let source = open::sound(global, rev, out)?;
    let run = rev.run_in(source.store(), source.named())?;
    let ticks = Trace::open(source.store(), &run)?.tip();
    let progress = Progress::start(global, "log", "records", Some(ticks * 3));
    let counted = Counted::new(source.store(), progress.counter());
    let trace = Trace::open(&counted, &run)?;
    let mut written = Ok(());
    let replayed = dendrer_view::receipt::receipt(&trace, &mut |line| {
        written = out.line(line);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written?;
    drop(progress);
    match replayed {
        Ok(_) => Ok(0),
        Err(error) => Err(super::replay::failure(&error)),
    }
}

fn follow(global: &Global, args: &Log, rev: &Rev, filter: &Filter, out: &mut Out) -> Result {
    let Source::Store(mut store) = open::source(global, rev, out)? else {
        return Err(Failure::new("E0106", "a bundle does not grow; --follow is for a store"));
    };
    if out.format() == Format::Json {
        return Err(Failure::new("E0106", "--follow has no end, so it has no one document")
            .help(&["dendrer", "log", &args.run, "--follow", "--jsonl"]));
    }
    out.has_no_end();
    let run = rev.run_in(&*store, &[])?;
    let mut next = {
        let trace = Trace::open(&*store, &run)?;
        args.from.as_ref().map_or(Ok(1), |pos| pos.tick(&trace))?.max(1)
    };
    let mut items = 0u64;
    let mut complete = false;
    loop {
        let trace = Trace::open(&*store, &run)?;
        let to = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
        let ended = trace.summary().ended;
        let mut writer = Writer::new(out, run.as_str());
        writer.full = full(global);
        writer.headed = next > 1;
        let mut result = Ok(());
        trace.for_each(next, to, &mut |tick, record| {
            next = tick + 1;
            if filter.takes(&record) {
                result = writer.take(&trace, &record, None);
            }
            let type_name = record.header().type_name.as_ref().map(|name| name.as_str());
            complete |= args.until_complete && type_name == Some("goal.complete");
            if result.is_ok() && !complete { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result?;
        writer.print()?;
        items += writer.shown as u64;
        out.flush()?;
        if ended || complete || (args.to.is_some() || rev.pos.is_some()) && next > to {
            if out.format() == Format::Jsonl {
                out.summary("log", [("run", Value::from(run.as_str())), ("total", Value::from(items))])?;
            }
            return Ok(0);
        }
        drop(trace);
        loop {
            std::thread::sleep(LOOK_EVERY);
            let before = store.tree().size;
            if store.refresh()? > before {
                break;
            }
        }
    }
}
