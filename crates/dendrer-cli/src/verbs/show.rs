//! `dendrer show`

use dendrer::Trace;
use dendrer_object::record::Record;
use dendrer_object::{Value, json};
use dendrer_view::show::{Changed, changes};
use dendrer_view::{RECORDED, count, document, quote};

use crate::address::{Pos, Rev, state_path};
use crate::args::{Global, Show, StateChoice};
use crate::failure::{Failure, Result};
use crate::open;
use crate::out::{Out, Style};

pub(crate) fn run(global: &Global, args: &Show, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.rev)?;
    let source = open::source(global, &rev)?;
    let trace = source.trace(&rev)?;
    let tick = rev.pos.as_ref().unwrap_or(&Pos::Tip).tick(&trace)?;
    let record = trace.record(tick)?;
    if args.raw_json {
        out.document(&raw(&record))?;
        return Ok(0);
    }
    let after = trace.at(tick)?.state;
    let before = if tick == 0 { after.clone() } else { trace.at(tick - 1)?.state };
    let path = args.path.as_deref().map(state_path).transpose()?;
    let mut changed = if tick == 0 { Vec::new() } else { changes(&record, &before, &after) };
    if let Some(path) = &path {
        changed.retain(|change| change.path.overlaps(path));
    }
    let state = match args.state {
        StateChoice::Before => Some(before),
        StateChoice::After => Some(after),
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
        out.document(&to_json(&trace, tick, &record, &changed, state))?;
        return Ok(0);
    }
    text(global, args, tick, &record, &changed, out)?;
    if let Some(state) = state {
        let mut lines = Vec::new();
        super::pretty(&state, 1, None, &mut lines, "");
        out.line(format!("state {}", if args.state == StateChoice::Before { "before" } else { "after" }))?;
        for line in lines {
            out.line(line)?;
        }
    }
    Ok(0)
}

fn raw(record: &Record) -> Value {
    let header = json::parse_canonical(record.header_text()).unwrap_or(Value::Null);
    document("record", [("id", Value::from(record.id())), ("header", header), ("content", record.content())])
}

fn to_json(
    trace: &Trace<'_>,
    tick: u64,
    record: &Record,
    changed: &[Changed],
    state: Option<Value>,
) -> Value {
    let header = record.header();
    let mut members = vec![
        ("run", Value::from(trace.name().as_str())),
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
        ("changes", Value::array(changed.iter().map(Changed::to_json))),
        ("certainty", Value::from(RECORDED)),
    ];
    members.extend(state.map(|state| ("state", state)));
    document("show", members)
}

fn text(
    global: &Global,
    args: &Show,
    tick: u64,
    record: &Record,
    changed: &[Changed],
    out: &mut Out,
) -> Result<()> {
    let header = record.header();
    let content = record.content();
    let name = header.type_name.as_ref().map_or_else(|| header.kind.to_string(), |name| name.to_string());
    let agent = content.get("agent_id").and_then(Value::as_str).map(quote::escape).unwrap_or_default();
    let parent = header.prev.map_or_else(|| "-".to_owned(), |prev| prev.short());
    let title = out.paint(Style::Strong, &format!("tick {tick}  {name}"));
    let ids = out.paint(Style::Dim, &format!("hash {}   parent {parent}", record.id().short()));
    let agent = if agent.is_empty() { String::new() } else { format!("   agent {agent}") };
    out.line(format!("{title}   {ids}{agent}   author {}", header.author))?;
    let when = super::time(header.ts, global.time);
    if !when.is_empty() {
        out.line(format!("when        {when}"))?;
    }
    let at = |outer: &str, inner: &str| content.get(outer).and_then(|value| value.get(inner));
    let width = out.width();
    let cut =
        |text: String| width.map_or(text.clone(), |width| quote::shorten(&text, width.saturating_sub(12)));
    let said = at("intent", "content").filter(|content| **content != Value::Null);
    if let Some(description) = at("intent", "description").or(said) {
        let confidence = at("intent", "confidence").and_then(Value::as_f64);
        let confidence = confidence
            .map(|value| format!("      confidence {value:.3}   (quantized 0.001)"))
            .unwrap_or_default();
        out.line(format!("intent      {}{confidence}", cut(quote::value(description))))?;
    }
    if let Some(action) = content.get("action").and_then(Value::as_object) {
        let tool = action.get("tool").and_then(Value::as_str).map(quote::escape).unwrap_or_default();
        out.line(format!("action      {tool}").trim_end())?;
        for (name, value) in action.iter().filter(|(name, _)| &***name != "tool") {
            out.line(cut(format!("  {}  {}", quote::escape(name), quote::value(value))))?;
        }
    }
    if let Some(result) = content.get("result").and_then(Value::as_object) {
        let status = result.get("status").and_then(Value::as_str).map(quote::escape).unwrap_or_default();
        out.line(format!("result      {status}").trim_end())?;
        for (name, value) in result.iter().filter(|(name, _)| &***name != "status") {
            out.line(cut(format!("  {}  {}", quote::escape(name), quote::value(value))))?;
        }
    }
    if let Some(policy) = content.get("policy") {
        let decision = policy.get("decision").and_then(Value::as_str).unwrap_or("-");
        let checks = policy
            .get("checks")
            .map(|checks| format!("   checks {}", quote::value(checks)))
            .unwrap_or_default();
        let version = policy
            .get("policy_version")
            .map(|version| format!("   version {}", quote::value(version)))
            .unwrap_or_default();
        out.line(format!("policy      {}{checks}{version}", quote::escape(decision)))?;
    }
    for name in ["goal_id", "goal", "effect", "metrics", "anomalies", "meta", "stage", "reducer"] {
        if let Some(value) = content.get(name) {
            out.line(cut(format!("{name:<10}  {}", quote::value(value))))?;
        }
    }
    if args.state != StateChoice::None && tick > 0 {
        out.line(format!("state       {} written", count(changed.len() as u64, "path", "paths")))?;
        for change in changed {
            let line = format!("  {}", change.line(width.map(|width| width / 3)));
            let line = out.paint(Style::Warn, &line);
            out.line(line)?;
        }
    }
    if let Some(notes) = at("intent", "uncertainty_notes").filter(|notes| **notes != Value::Null) {
        out.line("from the trace:")?;
        let text = notes.as_str().map_or_else(|| notes.to_string(), str::to_owned);
        for line in quote::gutter(&format!("uncertainty: {text}")) {
            out.line(line)?;
        }
    }
    Ok(())
}
