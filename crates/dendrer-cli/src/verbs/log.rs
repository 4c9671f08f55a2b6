//! `dendrer log`

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

use dendrer::Trace;
use dendrer_object::delta::Delta;
use dendrer_object::record::Record;
use dendrer_object::{Pointer, Value};
use dendrer_view::log::{Row, row};
use dendrer_view::{RECORDED, count, document, quote, thousands};

use crate::address::{Rev, state_path};
use crate::args::{Global, Log};
use crate::failure::{Failure, Result};
use crate::open::{self, Source};
use crate::out::{Format, Out, Style};

/// How many transitions a log shows where nothing else is asked for.
const LIMIT: usize = 1000;

/// How often a log that follows looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

struct Filter {
    types: Vec<String>,
    agents: Vec<String>,
    anomalies: bool,
    path: Option<Pointer>,
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
    }
}

fn writes(record: &Record, place: &Pointer) -> bool {
    let delta = record.body().value("/delta").and_then(|delta| Delta::from_value(&delta).ok());
    delta.is_some_and(|delta| delta.paths().any(|path| path.overlaps(place)))
}

pub(crate) fn run(global: &Global, args: &Log, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.run)?;
    let filter = Filter {
        types: args.types.clone(),
        agents: args.agent.clone(),
        anomalies: args.anomalies,
        path: args.path.as_deref().map(state_path).transpose()?,
    };
    if args.follow {
        return follow(global, args, &rev, &filter, out);
    }
    let source = open::source(global, &rev)?;
    let trace = source.trace(&rev)?;
    let (from, to) = range(&trace, args)?;
    let limit = match args.limit {
        Some(0) => usize::MAX,
        Some(limit) => limit,
        None => LIMIT,
    };
    let mut refusals = if args.refusals { trace.refusals()? } else { BTreeMap::new() };
    let judged_at_start = refusals.remove(&trace.start().id()).unwrap_or_default();
    let mut writer = Writer::new(out, trace.name().as_str());
    let mut result = Ok(());
    let mut visit = |record: &Record, writer: &mut Writer<'_>| -> ControlFlow<()> {
        let tick_record = filter.takes(record).then_some(record);
        let beside = refusals.remove(&record.id()).unwrap_or_default();
        for record in tick_record.into_iter().chain(&beside) {
            if writer.shown == limit {
                writer.left_out = true;
                return ControlFlow::Break(());
            }
            if let Err(failure) = writer.take(record) {
                result = Err(failure);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    };
    if from <= 1 {
        for record in &judged_at_start {
            writer.take(record)?;
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

fn range(trace: &Trace<'_>, args: &Log) -> Result<(u64, u64)> {
    let from = args.from.as_ref().map_or(Ok(1), |pos| pos.tick(trace))?;
    let to = args.to.as_ref().map_or(Ok(trace.tip()), |pos| pos.tick(trace))?;
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
    headed: bool,
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
            headed: false,
        }
    }

    fn take(&mut self, record: &Record) -> Result<()> {
        let row = row(record);
        self.shown += 1;
        self.agents.insert(row.agent.clone());
        self.anomalies += row.anomalies as u64;
        match self.out.format() {
            Format::Json => self.items.push(row.to_json(record)),
            Format::Jsonl => self.out.item(&row.to_json(record))?,
            Format::Text => {
                self.rows.push(row);
                // Enough rows to line columns up well; the first screen never waits for the last record.
                if self.rows.len() == 200 {
                    self.print()?;
                }
            }
        }
        Ok(())
    }

    fn print(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let agent = rows.iter().map(|row| row.agent.chars().count()).max().unwrap_or(0).clamp(5, 24);
        let kind = rows.iter().map(|row| row.type_name.chars().count()).max().unwrap_or(0).max(4);
        if !self.headed && !rows.is_empty() {
            self.headed = true;
            let line = format!("  tick  {:<agent$}  {:<kind$}  conf  summary", "agent", "type");
            let line = self.out.paint(Style::Dim, &line);
            self.out.line(line)?;
        }
        for row in rows {
            let tick = row.tick.map_or_else(|| "-".to_owned(), |tick| tick.to_string());
            let line = format!(
                "{tick:>6}  {:<agent$}  {:<kind$}  {:>4}  {}",
                row.agent,
                row.type_name,
                row.confidence_text(),
                row.summary
            );
            let line = self
                .out
                .width()
                .map_or_else(|| line.trim_end().to_owned(), |width| quote::shorten(line.trim_end(), width));
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
                let more = if self.left_out { " (use -n 0 for all)" } else { "" };
                self.out.line(format!(
                    "{} of {}{more}, {}, {}, not verified yet",
                    thousands(self.shown as u64),
                    count(total, "transition", "transitions"),
                    count(self.agents.len() as u64, "agent", "agents"),
                    count(self.anomalies, "anomaly", "anomalies"),
                ))
            }
        }
    }
}

fn follow(global: &Global, args: &Log, rev: &Rev, filter: &Filter, out: &mut Out) -> Result {
    let Source::Store(mut store) = open::source(global, rev)? else {
        return Err(Failure::new("E0601", "a bundle does not grow; --follow is for a store"));
    };
    if out.format() == Format::Json {
        return Err(Failure::new("E0106", "--follow has no end, so it has no one document")
            .help(&["dendrer", "log", &args.run, "--follow", "--jsonl"]));
    }
    let run = rev.run_in(&*store, &[])?;
    let mut next = {
        let trace = Trace::open(&*store, &run)?;
        args.from.as_ref().map_or(Ok(1), |pos| pos.tick(&trace))?.max(1)
    };
    let mut items = 0u64;
    loop {
        let trace = Trace::open(&*store, &run)?;
        let to = args.to.as_ref().map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
        let ended = trace.summary().ended;
        let mut writer = Writer::new(out, run.as_str());
        writer.headed = next > 1;
        let mut result = Ok(());
        trace.for_each(next, to, &mut |tick, record| {
            next = tick + 1;
            if filter.takes(&record) {
                result = writer.take(&record);
            }
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result?;
        writer.print()?;
        items += writer.shown as u64;
        out.flush()?;
        if ended || args.to.is_some() && next > to {
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
