//! `dendrer log`

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::{Address, Position};
use dendrer_object::{Code, Record};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use dendrer::ask::log::question::{LogQuestion, LogTexts, OpenedLog};
use dendrer::ask::log::{self, Lanes, LogDetails, LogFilter, LoggedRecord};
use dendrer::ask::receipt;
use dendrer::ask::thread::{ThreadIndex, ThreadPlace, thread_name};
use dendrer::ask::timeline::question::TimelineQuestion;
use dendrer::ask::transcript::question::TranscriptQuestion;
use dendrer::run::causal::Causal;
use dendrer::run::declared;
use dendrer::source::QuestionSource;
use dendrer::store::Store;
use dendrer::{Repo, Trace};
use dendrer_view::draw::Frame;
use dendrer_view::draw::timeline::picture;
use dendrer_view::graph::{Drawing, ONE_BY_ONE_MAX, folded_lines};
use dendrer_view::log::{LogAnswer, LogEnd};
use dendrer_view::problem;
use dendrer_view::receipt as view;

use crate::context;
use crate::context::desk::{CommandDesk, answer, ask};
use crate::failure::{Failure, Result};
use crate::global::{Format, Global, since_arg, tick_arg, until_arg};
use crate::offers;
use crate::out::drawing::draw;
use crate::out::{Out, accessible};
use crate::progress::Progress;

/// `log`
#[derive(Debug, Clone, Args)]
pub(crate) struct Log {
    /// The run, or RUN@FROM..TO; the latest if not given
    #[arg(default_value = "@", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) run: String,
    /// The first tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Position>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Position>,
    /// Only these types
    #[arg(long = "type", value_delimiter = ',', value_name = "T,..")]
    pub(crate) types: Vec<String>,
    /// Only these agents
    #[arg(long, value_delimiter = ',', value_name = "A,..")]
    pub(crate) agent: Vec<String>,
    /// Only transitions with anomalies
    #[arg(long)]
    pub(crate) anomalies: bool,
    /// Only ticks that wrote at this path
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) path: Option<String>,
    /// Only transitions with this in their type, agent, texts, numbers or names of members: a regular expression, matched in
    /// linear time
    #[arg(long, value_name = "RE")]
    pub(crate) grep: Option<String>,
    /// Only transitions of this time or later: 2h, 3d, 2w ago; 2026-03-01; "2026-03-01 12:00"
    #[arg(long, value_parser = since_arg, value_name = "TIME")]
    pub(crate) since: Option<u64>,
    /// Only transitions of this time or earlier; of a date, a minute or a second, all of it
    #[arg(long, value_parser = until_arg, value_name = "TIME")]
    pub(crate) until: Option<u64>,
    /// Refusals too, where they were judged
    #[arg(long)]
    pub(crate) refusals: bool,
    /// Draw a lane for each agent, and name the recorded links
    #[arg(long, conflicts_with = "reverse")]
    pub(crate) graph: bool,
    /// Name the recorded links of each transition
    #[arg(long, conflicts_with = "graph")]
    pub(crate) links: bool,
    /// One line each (the default; --full shows each as show does)
    #[arg(long)]
    pub(crate) oneline: bool,
    /// Newest first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// At most N; 0 for all
    #[arg(short = 'n', long = "limit")]
    pub(crate) limit: Option<u64>,
    /// Count the transitions in at most so many bins of ticks, up to 2048, instead of listing them
    #[arg(long, value_name = "N", conflicts_with_all = ["types", "agent", "anomalies", "path", "grep", "since", "until", "refusals", "graph", "links", "oneline", "reverse", "limit", "follow", "until_complete"])]
    pub(crate) bins: Option<u64>,
    /// Read the run as a conversation: messages, calls, answers, decisions; 200 transitions unless -n has another number
    #[arg(long, conflicts_with_all = ["types", "agent", "anomalies", "path", "grep", "since", "until", "refusals", "graph", "links", "oneline", "reverse", "bins", "follow", "until_complete"])]
    pub(crate) transcript: bool,
    /// With --bins or --format svg: a registered predicate whose verdicts each bin has
    #[arg(long, value_name = "NAME")]
    pub(crate) predicate: Vec<String>,
    /// With --bins or --format svg: an expression that must be true, whose verdicts each bin has
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) holds: Vec<String>,
    /// Wait for more, until interrupted or the run ends
    #[arg(long, conflicts_with_all = ["reverse", "limit", "graph"])]
    pub(crate) follow: bool,
    /// As --follow, until a goal is complete or the run ends
    #[arg(long, conflicts_with_all = ["reverse", "limit", "graph"])]
    pub(crate) until_complete: bool,
}

impl Log {
    /// Whether the timeline is drawn.
    fn draws(&self, global: &Global) -> bool {
        !self.graph && global.format.as_deref() == Some("svg")
    }

    /// Whether it waits for what is not there yet.
    pub(crate) fn follows(&self) -> bool {
        self.follow || self.until_complete
    }
}

/// How often a log that follows looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Returns the question of the flags.
fn question(global: &Global, args: &Log) -> LogQuestion {
    LogQuestion {
        run: Some(args.run.clone()),
        from: args.from.clone(),
        to: args.to.clone(),
        r#type: args.types.clone(),
        agent: args.agent.clone(),
        anomalies: args.anomalies,
        path: args.path.clone(),
        grep: args.grep.clone(),
        since: args.since,
        until: args.until,
        refusals: args.refusals,
        reverse: args.reverse,
        limit: args.limit,
        full: global.full || global.fields.iter().any(|field| field == "content"),
        links: args.links || global.fields.iter().any(|field| field == "links"),
    }
}

/// Returns the address of the run, without a range of ticks: that is in the texts of the question.
fn run_of(args: &Log) -> Result<String> {
    Ok(Address::range(&args.run)?.map_or(&*args.run, |(run, _, _)| run).to_owned())
}

/// Prints the run as a conversation.
fn transcript(global: &Global, args: &Log, texts: &LogTexts, out: &mut Out) -> Result {
    let question = TranscriptQuestion {
        run: run_of(args)?,
        from: texts.from.clone(),
        to: texts.to.clone(),
        limit: args.limit,
    };
    answer(global, &question, out)
}

/// Prints the run as bins of ticks.
fn timeline(global: &Global, args: &Log, texts: &LogTexts, out: &mut Out) -> Result {
    let question = TimelineQuestion {
        run: run_of(args)?,
        from: texts.from.clone(),
        to: texts.to.clone(),
        bins: args.bins,
        predicate: args.predicate.clone(),
        holds: args.holds.clone(),
    };
    if !args.draws(global) {
        return answer(global, &question, out);
    }
    let reply = ask(global, &question, out)?;
    out.bytes(picture(&reply, Frame::File).as_bytes())?;
    Ok(0)
}

/// Refuses flags of the timeline without it, and flags that choose transitions with its picture, which has all of them.
fn refuse_timeline_flags(global: &Global, args: &Log, texts: &LogTexts) -> Result<()> {
    let is_drawn = args.draws(global);
    let verdicts = [("--holds", args.holds.is_empty()), ("--predicate", args.predicate.is_empty())];
    if let Some((flag, _)) =
        verdicts.iter().find(|(_, is_empty)| !is_empty && args.bins.is_none() && !is_drawn)
    {
        return Err(Failure::new(Code::E0106, format!("{flag} is of a timeline: --bins N or --format svg")));
    }
    let chooses = !texts.filter.is_empty() || args.limit.is_some();
    let is_list = args.refusals || args.reverse || args.oneline || args.transcript || args.follows();
    if is_drawn && (chooses || is_list) {
        return Err(Failure::new(
            Code::E0106,
            "a timeline has every transition of its ticks: it takes --from, --to, --bins, --holds and --predicate",
        ));
    }
    Ok(())
}

pub(crate) fn run(global: &Global, args: &Log, out: &mut Out) -> Result {
    out.ends_with_its_reader();
    let question = question(global, args);
    let texts = question.texts()?;
    refuse_timeline_flags(global, args, &texts)?;
    if args.bins.is_some() || args.draws(global) {
        return timeline(global, args, &texts, out);
    }
    if args.transcript {
        return transcript(global, args, &texts, out);
    }
    list(global, args, question, texts, out)
}

/// Lists the transitions.
fn list(global: &Global, args: &Log, question: LogQuestion, texts: LogTexts, out: &mut Out) -> Result {
    if args.oneline && global.full {
        return Err(Failure::new(Code::E0106, "--oneline and --full exclude each other"));
    }
    let is_part = texts.from.is_some() || args.limit.is_some() || args.refusals || !texts.filter.is_empty();
    if global.format.as_deref() == Some("receipt") {
        let is_part = is_part || texts.to.is_some() || texts.address.pos.is_some();
        if is_part || args.graph || args.reverse || args.oneline || args.follows() {
            return Err(Failure::new(
                Code::E0106,
                "a receipt is of a whole run: it takes no other flag of log",
            ));
        }
        return receipt(global, &texts.address, out);
    }
    if let Some(form @ ("dot" | "svg")) = global.format.as_deref() {
        return graph(global, args, &texts.address, form, out);
    }
    if args.graph && !out.is_text() {
        return Err(Failure::new(
            Code::E0106,
            "--graph draws for people; links are in `dendrer log --links --json`",
        ));
    }
    let details = LogDetails {
        whole: question.full,
        writes: question.full && out.is_text(),
        links: question.links || args.graph,
    };
    if args.follows() {
        return follow(global, args, texts, details, out);
    }
    let OpenedLog { trace, mut terms, found_intact, trust } =
        question.open(texts, &mut CommandDesk::new(global, out))?;
    if args.graph && terms.to > ONE_BY_ONE_MAX && !is_part && !question.full {
        let causal = Causal::of(&trace, terms.to)?;
        let lines = folded_lines(trace.name(), &causal, &out.page());
        out.print(lines)?;
        return Ok(0);
    }
    let mut answer = LogAnswer::new(trace.name().clone(), question.full).with_links(question.links);
    if let Some(name) = listed_thread(global, args, &trace, out) {
        answer = answer.of_thread(name);
        terms.folds = true;
    }
    // A screen reader cannot read strokes.
    if args.graph && !accessible() {
        let lanes = Lanes::new(&trace.at(terms.to)?.agents);
        answer = answer.with_lanes(lanes.agents());
        terms.lanes = Some(lanes);
    }
    terms.details = LogDetails { writes: details.writes || terms.folds, ..details };
    let summary = log::log(&trace, terms, &mut |item| out.take(&mut answer, &item))?;
    answer.ends(LogEnd::Summed { summary, found_intact, trust });
    out.end(&mut answer)
}

/// Returns the name of the thread of a run whose steps and nodes are listed: as lines, and not with everything of each record.
fn listed_thread(global: &Global, args: &Log, trace: &Trace, out: &Out) -> Option<Arc<str>> {
    thread_name(trace).filter(|_| out.is_text() && !global.full && !args.graph && global.fields.is_empty())
}

/// Prints the causal graph of a run as DOT or SVG.
fn graph(global: &Global, args: &Log, rev: &Address, form: &str, out: &mut Out) -> Result {
    if !args.graph {
        return Err(Failure::new(
            Code::E0106,
            format!("--format {form} is of the graph: log RUN --graph --format {form}"),
        ));
    }
    let source = context::source(global, rev, out)?;
    let rev = rev.clone().resolve(&source.store)?;
    let (progress, counted) = context::watched(global, &source, "log");
    let trace = source.trace_through(&counted, &rev)?;
    let tick = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    let causal = Causal::of(&trace, tick)?;
    drop(progress);
    draw(&Drawing::of_causal(trace.name(), &causal), form, out, || {
        let note = "DOT has no limit, and --to tick N ends the drawing earlier";
        (note, vec!["dendrer", "log", trace.name().as_str(), "--graph", "--format", "dot"])
    })
}

/// Prints the receipt of a run (dendrer paper 7). The run is replayed for its last line.
fn receipt(global: &Global, rev: &Address, out: &mut Out) -> Result {
    let source = context::sound(global, rev, out)?;
    let run = rev.run_in(&source.store, &source.runs)?;
    let ticks = Trace::open(&source.store, &run)?.tip();
    let progress = Progress::start(global, "log", "records", Some(ticks * 3));
    let counted = progress.watch().over(&source.store);
    let trace = Trace::open(&counted, &run)?;
    let receipt = receipt::receipt(&trace)?;
    out.print(view::first_lines(&receipt))?;
    let mut printed = Ok(());
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        printed = out.print(vec![view::record_line(&receipt, tick, &record)]);
        if printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    printed?;
    out.print(view::last_lines(&receipt))?;
    drop(progress);
    match receipt.replayed {
        Ok(_) => Ok(0),
        Err(error) => Err(problem::replay(&error)),
    }
}

fn follow(global: &Global, args: &Log, texts: LogTexts, details: LogDetails, out: &mut Out) -> Result {
    let LogTexts { address: rev, from, to, filter } = &texts;
    let QuestionSource { repo: Some(repo), mut store, .. } = context::source(global, rev, out)? else {
        return Err(Failure::new(Code::E0106, "a bundle does not grow; --follow is for a store"));
    };
    if out.format() == Format::Json {
        return Err(Failure::new(Code::E0106, "--follow has no end, so it has no one document")
            .help(&["dendrer", "log", &args.run, "--follow", "--jsonl"]));
    }
    out.has_no_end();
    let run = rev.run_in(&store, &[])?;
    let mut next = {
        let trace = Trace::open(&store, &run)?;
        // An agent or a place may still come; a type is declared before it is written.
        declared::types(&trace, filter.types.iter().map(String::as_str))?;
        from.as_ref().map_or(Ok(1), |pos| pos.tick(&trace))?.max(1)
    };
    let to = to.as_ref().or(rev.pos.as_ref());
    let (mut items, mut complete) = (0, false);
    loop {
        let trace = Trace::open(&store, &run)?;
        let to_tick = to.map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
        let ended = trace.summary().ended;
        let mut answer =
            LogAnswer::new(run.clone(), details.whole).with_links(details.links).headed(next > 1);
        let name = listed_thread(global, args, &trace, out);
        let (folds, details) = (
            name.is_some() && filter.folds(),
            LogDetails { writes: details.writes || name.is_some(), ..details },
        );
        answer = name.into_iter().fold(answer, LogAnswer::of_thread);
        let mut threads = ThreadIndex::of(&trace);
        let mut result = Ok(());
        trace.for_each(next, to_tick, &mut |tick, record| {
            next = tick + 1;
            let type_name = record.header().type_name.as_ref().map(|name| name.as_str());
            complete |= args.until_complete && type_name == Some("goal.complete");
            result = match followed(&trace, &mut threads, (filter, folds), details, record) {
                Ok(None) => Ok(()),
                Ok(Some(item)) => {
                    items += 1;
                    out.take(&mut answer, &item)
                }
                Err(error) => Err(error),
            };
            if result.is_ok() && !complete { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result?;
        out.pause(&mut answer)?;
        out.flush()?;
        if ended || complete || to.is_some() && next > to_tick {
            answer.ends(LogEnd::Followed(items));
            return out.end(&mut answer);
        }
        drop(trace);
        store = grown(&repo, store)?;
    }
}

/// Returns a record as a log lists it; `None` if the log leaves it out.
fn followed(
    trace: &Trace,
    threads: &mut Option<ThreadIndex<'_>>,
    (filter, folds): (&LogFilter, bool),
    details: LogDetails,
    record: Record,
) -> Result<Option<LoggedRecord>> {
    let place = threads.as_mut().map(|threads| threads.place(&record)).transpose()?.flatten();
    let is_folded = folds && place.as_ref().is_some_and(ThreadPlace::is_folded);
    if is_folded || !filter.takes(&record, place.as_ref()) {
        return Ok(None);
    }
    Ok(Some(LoggedRecord::of(trace, (record, None), details, None, place)?))
}

/// Waits until a store has more records.
fn grown(repo: &Repo, store: Arc<dyn Store>) -> Result<Arc<dyn Store>> {
    let mut store = store;
    loop {
        std::thread::sleep(LOOK_EVERY);
        let before = store.tree().size;
        // The handle is refreshed in place if nothing else has it.
        drop(store);
        store = repo.reader()?;
        if store.tree().size > before {
            return Ok(store);
        }
    }
}
