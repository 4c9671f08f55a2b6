//! `dendrer show`

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use dendrer::Trace;
use dendrer::kernel::pack::modules::without_bytes;
use dendrer::kernel::replay::ReplayError;
use dendrer::store::Store;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::record::{Kind, Record};
use dendrer_object::{Pointer, RunName, Value, json};
use dendrer_view::closed::closed;
use dendrer_view::show::{Changed, changes};
use dendrer_view::why::op_words;
use dendrer_view::{RECORDED, count, document, provenance, quote, text};
use std::sync::Arc;

use crate::address::{Pos, Rev, state_path};
use crate::context::runs::state_at;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::{Out, Style};
use crate::{context, offers};

/// `show`
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// What: RUN@TICK
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) rev: String,
    /// Which state to print beside the rest; the change, where no part is named
    #[arg(long, value_enum)]
    pub(crate) state: Option<StateChoice>,
    /// Only this path of the state
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) path: Option<String>,
    /// Only the intent, unless more is asked for
    #[arg(long)]
    pub(crate) intent: bool,
    /// Only the result, unless more is asked for
    #[arg(long)]
    pub(crate) result: bool,
    /// Where it comes from: author, branch, predecessor, links, run, log
    #[arg(long)]
    pub(crate) provenance: bool,
    /// Print header and content as they are
    #[arg(long, conflicts_with_all = ["intent", "result", "provenance", "path"])]
    pub(crate) raw_json: bool,
}

/// Which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateChoice {
    /// What changed.
    Delta,
    /// The state before.
    Before,
    /// The state after.
    After,
    /// None.
    None,
}

pub(crate) fn run(global: &Global, args: &Show, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.rev)?;
    let source = context::source(global, &rev, out)?;
    // An id is that of one record, whether it stands at a tick or beside the chain.
    if let Some(record) = rev.named_record(source.store())?.filter(|_| rev.pos.is_none())
        && !stands_at_a_tick(&record)
    {
        return beside(global, args, &record, source.store(), out);
    }
    let rev = rev.resolve(source.store())?;
    let trace = source.trace(&rev)?;
    let tick = rev.pos.as_ref().unwrap_or(&Pos::Tip).tick(&trace)?;
    let record = trace.record(tick)?;
    if args.raw_json {
        out.document(&raw(&record))?;
        return Ok(0);
    }
    let path = args.path.as_deref().map(state_path).transpose()?;
    let shown = args.state.unwrap_or(if sections(args).all { StateChoice::Delta } else { StateChoice::None });
    let mut written = Written::of(&trace, tick, &record)?;
    if let Some(path) = &path {
        written.keep(path);
    }
    // What was asked for is the state, so without it there is no answer.
    let state = match shown {
        StateChoice::Before => Some(state_at(&trace, &rev, tick.saturating_sub(1))?),
        StateChoice::After => Some(state_at(&trace, &rev, tick)?),
        StateChoice::Delta | StateChoice::None => None,
    };
    let state = match (&path, state) {
        (Some(path), Some(state)) => {
            let found = path.get(&state).cloned();
            Some(found.ok_or_else(|| {
                Failure::new(
                    "E0104",
                    format!("there is nothing at {} in {}@{tick}", path.dotted(), trace.name()),
                )
            })?)
        }
        (_, state) => state,
    };
    if !out.is_text() {
        let mut answer = to_json(Some(trace.name()), Some(tick), &record, &written, state)
            .as_object()
            .cloned()
            .unwrap_or_default();
        if args.provenance || global.fields.iter().any(|field| field == "provenance") {
            answer.set("provenance", provenance::find(&trace, &record)?.to_json());
        }
        out.document(&Value::Object(answer))?;
        return Ok(0);
    }
    let listed = (shown != StateChoice::None).then_some(&written);
    text(global, &sections(args), Some(&trace), &record, listed, out)?;
    if let Some(state) = state {
        let mut lines = Vec::new();
        text::pretty(&state, 1, None, &mut lines, "");
        out.line(format!("state {}", if shown == StateChoice::Before { "before" } else { "after" }))?;
        for line in lines {
            out.line(line)?;
        }
    }
    Ok(0)
}

/// What a transition wrote.
enum Written {
    /// Each place, with what stood there before and after.
    Known(Vec<Changed>),
    /// A value was erased or withheld, so the states are not known; why, in words, and the operations of the transition
    /// itself, if they are left.
    Unknown(String, Option<Vec<Op>>),
}

impl Written {
    fn of(trace: &Trace, tick: u64, record: &Record) -> Result<Written> {
        if tick == 0 {
            return Ok(Written::Known(Vec::new()));
        }
        let states = trace.state(tick - 1).and_then(|before| Ok((before, trace.state(tick)?)));
        match states {
            Ok((before, after)) => Ok(Written::Known(changes(record, &before, &after))),
            Err(dendrer::Error::Replay(ReplayError::Erased { tick: first, pointer })) => {
                let what = pointer.map_or_else(|| "a value".to_owned(), |pointer| pointer.dotted());
                let why = format!("the {what} of tick {first} was erased or withheld");
                let delta = record.body().value("/delta").and_then(|delta| Delta::from_value(&delta).ok());
                Ok(Written::Unknown(why, delta.map(|delta| delta.0)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Leaves out what does not touch a place.
    fn keep(&mut self, place: &Pointer) {
        match self {
            Written::Known(changed) => changed.retain(|change| change.path.overlaps(place)),
            Written::Unknown(_, ops) => {
                ops.iter_mut().for_each(|ops| ops.retain(|op| op.path.overlaps(place)))
            }
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Written::Known(changed) => Value::array(changed.iter().map(Changed::to_json)),
            Written::Unknown(..) => Value::Null,
        }
    }

    fn print(&self, out: &mut Out) -> Result<()> {
        let lines: Vec<String> = match self {
            Written::Known(changed) => {
                out.line(format!("state       {} written", count(changed.len() as u64, "path", "paths")))?;
                changed.iter().map(|change| out.change(change)).collect()
            }
            Written::Unknown(why, ops) => {
                out.line(format!("state       not known: {why}"))?;
                ops.iter().flatten().map(|op| op_words(op, None)).collect()
            }
        };
        for line in lines {
            let line = out.paint(Style::Warn, &format!("  {line}"));
            out.line(line)?;
        }
        Ok(())
    }
}

/// Whether a record is a transition, or what a run begins with that is no fork.
fn stands_at_a_tick(record: &Record) -> bool {
    let header = record.header();
    header.run.is_some()
        && (header.kind == Kind::Transition || header.kind == Kind::Run && header.prev.is_none())
}

/// Shows a record that stands at no tick: a refusal, a registration, the beginning of a fork. It changed no state.
fn beside(global: &Global, args: &Show, record: &Record, store: &Arc<dyn Store>, out: &mut Out) -> Result {
    let run = record.header().run.clone();
    if args.raw_json {
        out.document(&raw(record))?;
        return Ok(0);
    }
    if args.path.is_some() || matches!(args.state, Some(StateChoice::Before | StateChoice::After)) {
        let what =
            format!("a {} record stands at no tick, so there is no state to show", record.header().kind);
        return Err(Failure::new("E0106", what));
    }
    let trace = run.as_ref().map(|run| Trace::open(store, run)).transpose()?;
    let sections = sections(args);
    if out.is_text() {
        if let (true, Some(run)) = (sections.all, &run) {
            out.line(format!("beside {run}"))?;
        }
        text(global, &sections, trace.as_ref(), record, None, out)?;
        return Ok(0);
    }
    let mut answer = to_json(run.as_ref(), None, record, &Written::Known(Vec::new()), None)
        .as_object()
        .cloned()
        .unwrap_or_default();
    if let Some(trace) =
        trace.filter(|_| sections.provenance || global.fields.iter().any(|f| f == "provenance"))
    {
        answer.set("provenance", provenance::find(&trace, record)?.to_json());
    }
    out.document(&Value::Object(answer))?;
    Ok(0)
}

/// Which parts are printed.
struct Sections {
    all: bool,
    intent: bool,
    result: bool,
    provenance: bool,
}

/// Naming a part leaves out the others.
fn sections(args: &Show) -> Sections {
    let all = !(args.intent || args.result || args.provenance);
    Sections { all, intent: all || args.intent, result: all || args.result, provenance: args.provenance }
}

/// Prints a record in full, as `log --full` does.
pub(super) fn whole(global: &Global, trace: &Trace, record: &Record, out: &mut Out) -> Result<()> {
    let sections = Sections { all: true, intent: true, result: true, provenance: false };
    // A refusal has no tick and changed nothing.
    let written = match record.header().tick {
        Some(tick) if tick > 0 => Written::of(trace, tick, record)?,
        _ => return text(global, &sections, Some(trace), record, None, out),
    };
    text(global, &sections, Some(trace), record, Some(&written), out)
}

fn raw(record: &Record) -> Value {
    let header = json::parse_canonical(record.header_text()).unwrap_or(Value::Null);
    document("record", [("id", Value::from(record.id())), ("header", header), ("content", record.content())])
}

fn to_json(
    run: Option<&RunName>,
    tick: Option<u64>,
    record: &Record,
    written: &Written,
    state: Option<Value>,
) -> Value {
    let header = record.header();
    let mut members = vec![
        ("run", Value::from(run.map(|run| run.to_string()))),
        ("tick", Value::from(tick)),
        ("id", Value::from(record.id())),
        ("prev", Value::from(header.prev)),
        ("kind", Value::from(header.kind.as_str())),
        ("type", Value::from(header.type_name.as_ref().map(|name| name.to_string()))),
        ("author", Value::from(header.author.as_str())),
        ("ts", Value::from(header.ts.to_string())),
        (
            "links",
            Value::array(header.links.iter().map(|link| {
                Value::record([("hash", Value::from(link.hash)), ("rel", Value::from(link.rel.as_str()))])
            })),
        ),
        ("content", record.content()),
        ("closed", Value::array(closed(record).iter().map(|place| Value::from(place.as_str())))),
        ("changes", written.to_json()),
        ("certainty", Value::from(RECORDED)),
    ];
    members.extend(state.map(|state| ("state", state)));
    document("show", members)
}

fn text(
    global: &Global,
    sections: &Sections,
    trace: Option<&Trace>,
    record: &Record,
    written: Option<&Written>,
    out: &mut Out,
) -> Result<()> {
    let header = record.header();
    let content = record.content();
    let name = header.type_name.as_ref().map_or_else(|| header.kind.to_string(), |name| name.to_string());
    let agent = content.get("agent_id").and_then(Value::as_str).map(quote::escape).unwrap_or_default();
    let parent = header.prev.map_or_else(|| "-".to_owned(), |prev| prev.short());
    let place = match header.tick {
        _ if header.kind == Kind::Run => "tick 0".to_owned(),
        Some(tick) => format!("tick {tick}"),
        None => "beside ".to_owned(),
    };
    let title = out.paint(Style::Strong, &format!("{place}  {name}"));
    let ids = out.paint(Style::Dim, &format!("hash {}   parent {parent}", record.id().short()));
    let agent = if agent.is_empty() { String::new() } else { format!("   agent {agent}") };
    out.line(format!("{title}   {ids}{agent}   author {}", header.author))?;
    let when = text::time(header.ts, &global.times());
    if !when.is_empty() {
        out.line(format!("when        {when}"))?;
    }
    let at = |outer: &str, inner: &str| content.get(outer).and_then(|value| value.get(inner));
    let width = out.width().map(|width| width.saturating_sub(12));
    let said = |name: &str| at("intent", name).filter(|value| **value != Value::Null);
    let headline = ["description", "content"].into_iter().find(|name| said(name).is_some());
    if sections.intent && content.get("intent").is_some() {
        let confidence = at("intent", "confidence").and_then(Value::as_f64);
        let confidence = confidence
            .map(|value| format!("      confidence {value:.3}   (quantized 0.001)"))
            .unwrap_or_default();
        let said = headline.and_then(said).map(quote::value).unwrap_or_default();
        let said = out.fit(&said, width);
        out.line(format!("intent      {said}{confidence}").trim_end())?;
    }
    let rest = |object: &str, known: &[&str]| -> Vec<String> {
        let Some(members) = content.get(object) else { return Vec::new() };
        let Some(members) = members.as_object() else { return vec![format!("  {}", quote::value(members))] };
        let members = members.iter().filter(|(name, _)| !known.contains(&&***name));
        members.map(|(name, value)| format!("  {}  {}", quote::escape(name), quote::value(value))).collect()
    };
    if sections.intent {
        let shown = [headline.unwrap_or_default(), "confidence", "uncertainty_notes"];
        // What is no number is no confidence, and is shown as it is.
        let numeric = at("intent", "confidence").is_none_or(|value| value.as_f64().is_some());
        let shown = if numeric { &shown[..] } else { &[shown[0], shown[2]][..] };
        for line in rest("intent", shown) {
            let line = out.fit(&line, width);
            out.line(line)?;
        }
    }
    for (part, headline) in [("action", "tool"), ("result", "status")] {
        if sections.result && content.get(part).is_some() {
            let head = at(part, headline).and_then(Value::as_str).map(quote::escape);
            out.line(format!("{part:<10}  {}", head.as_deref().unwrap_or_default()).trim_end())?;
            let shown = [headline];
            for line in rest(part, if head.is_some() { &shown } else { &[] }) {
                let line = out.fit(&line, width);
                out.line(line)?;
            }
        }
    }
    if sections.all {
        about(&content, width, out)?;
    }
    let closed = closed(record);
    if !closed.is_empty() {
        let list: Vec<String> = closed.iter().map(quote::path).collect();
        out.line(format!("not known   {} (erased or withheld)", list.join(", ")))?;
    }
    if let Some(written) = written.filter(|_| header.tick.is_some_and(|tick| tick > 0)) {
        written.print(out)?;
    }
    if sections.provenance {
        out.line("provenance")?;
        let lines = trace.map(|trace| provenance::find(trace, record)).transpose()?;
        for line in lines.iter().flat_map(|found| found.lines()) {
            out.line(format!("  {line}"))?;
        }
    }
    let notes = at("intent", "uncertainty_notes").filter(|notes| sections.intent && **notes != Value::Null);
    if let Some(notes) = notes {
        out.line("from the trace:")?;
        let text = notes.as_str().map_or_else(|| notes.to_string(), str::to_owned);
        for line in quote::gutter(&format!("uncertainty: {text}")) {
            out.line(line)?;
        }
    }
    Ok(())
}

/// What is printed elsewhere, or in the title.
const SHOWN: [&str; 8] = ["intent", "action", "result", "policy", "agent_id", "delta", "state_root", "seq"];

/// Prints what a record says besides intent, action and result: every member, the known ones first.
fn about(content: &Value, width: Option<usize>, out: &mut Out) -> Result<()> {
    if let Some(policy) = content.get("policy") {
        let decision = policy.get("decision").and_then(Value::as_str);
        let checks = policy
            .get("checks")
            .map(|checks| format!("   checks {}", quote::value(checks)))
            .unwrap_or_default();
        let version = policy
            .get("policy_version")
            .map(|version| format!("   version {}", quote::value(version)))
            .unwrap_or_default();
        out.line(format!("policy      {}{checks}{version}", quote::escape(decision.unwrap_or("-"))))?;
        let shown: &[&str] = match decision {
            Some(_) => &["decision", "checks", "policy_version"],
            None => &["checks", "policy_version"],
        };
        let members = policy.as_object().into_iter().flat_map(|policy| policy.iter());
        for (name, value) in members.filter(|(name, _)| !shown.contains(&&***name)) {
            let line = out.fit(&format!("  {}  {}", quote::escape(name), quote::value(value)), width);
            out.line(line)?;
        }
        if policy.as_object().is_none() {
            let line = out.fit(&format!("  {}", quote::value(policy)), width);
            out.line(line)?;
        }
    }
    let first = ["goal_id", "goal", "effect", "metrics", "anomalies", "meta", "stage", "reducer", "reason"];
    let members = content.as_object().into_iter().flat_map(|content| content.iter());
    let own = members.map(|(name, _)| &**name).filter(|name| !first.contains(name) && !SHOWN.contains(name));
    for name in first.into_iter().chain(own) {
        if let Some(value) = content.get(name) {
            // The bytes of a module say nothing to people; its digest says which it is.
            let modules = (name == "pack").then(|| without_bytes(value));
            let value = modules.as_ref().unwrap_or(value);
            let line = out.fit(&format!("{:<10}  {}", quote::escape(name), quote::value(value)), width);
            out.line(line)?;
        }
    }
    Ok(())
}
