//! `dendrer show`

use dendrer::Trace;
use dendrer_object::record::{Kind, Record};
use dendrer_object::{Value, json};
use dendrer_view::show::{Changed, changes};
use dendrer_view::{RECORDED, count, document, provenance, quote};

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
    let shown = args.state.unwrap_or(if sections(args).all { StateChoice::Delta } else { StateChoice::None });
    let mut changed = if tick == 0 { Vec::new() } else { changes(&record, &before, &after) };
    if let Some(path) = &path {
        changed.retain(|change| change.path.overlaps(path));
    }
    let state = match shown {
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
        let mut answer =
            to_json(&trace, tick, &record, &changed, state).as_object().cloned().unwrap_or_default();
        if args.provenance || global.fields.iter().any(|field| field == "provenance") {
            answer.set("provenance", provenance::find(&trace, &record)?.to_json());
        }
        out.document(&Value::Object(answer))?;
        return Ok(0);
    }
    let listed = (shown != StateChoice::None).then_some(changed.as_slice());
    text(global, &sections(args), &trace, &record, listed, out)?;
    if let Some(state) = state {
        let mut lines = Vec::new();
        super::pretty(&state, 1, None, &mut lines, "");
        out.line(format!("state {}", if shown == StateChoice::Before { "before" } else { "after" }))?;
        for line in lines {
            out.line(line)?;
        }
    }
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
pub(super) fn whole(global: &Global, trace: &Trace<'_>, record: &Record, out: &mut Out) -> Result<()> {
    let sections = Sections { all: true, intent: true, result: true, provenance: false };
    // A refusal has no tick and changed nothing.
    let changed = match record.header().tick {
        Some(tick) if tick > 0 => changes(record, &trace.at(tick - 1)?.state, &trace.at(tick)?.state),
        _ => return text(global, &sections, trace, record, None, out),
    };
    text(global, &sections, trace, record, Some(&changed), out)
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
    sections: &Sections,
    trace: &Trace<'_>,
    record: &Record,
    changed: Option<&[Changed]>,
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
    let when = super::time(header.ts, global.time);
    if !when.is_empty() {
        out.line(format!("when        {when}"))?;
    }
    let at = |outer: &str, inner: &str| content.get(outer).and_then(|value| value.get(inner));
    let width = out.width().map(|width| width.saturating_sub(12));
    let said = at("intent", "content").filter(|content| **content != Value::Null);
    if sections.intent
        && let Some(description) = at("intent", "description").or(said)
    {
        let confidence = at("intent", "confidence").and_then(Value::as_f64);
        let confidence = confidence
            .map(|value| format!("      confidence {value:.3}   (quantized 0.001)"))
            .unwrap_or_default();
        let description = out.fit(&quote::value(description), width);
        out.line(format!("intent      {description}{confidence}"))?;
    }
    let rest = |object: &str, known: &[&str]| -> Vec<String> {
        let object = content.get(object).and_then(Value::as_object);
        let members = object.into_iter().flat_map(|object| object.iter());
        let members = members.filter(|(name, _)| !known.contains(&&***name));
        members.map(|(name, value)| format!("  {}  {}", quote::escape(name), quote::value(value))).collect()
    };
    if sections.intent && !sections.all {
        for line in rest("intent", &["description", "confidence", "uncertainty_notes"]) {
            let line = out.fit(&line, width);
            out.line(line)?;
        }
    }
    for (part, headline) in [("action", "tool"), ("result", "status")] {
        if sections.result && content.get(part).and_then(Value::as_object).is_some() {
            let head = at(part, headline).and_then(Value::as_str).map(quote::escape).unwrap_or_default();
            out.line(format!("{part:<10}  {head}").trim_end())?;
            for line in rest(part, &[headline]) {
                let line = out.fit(&line, width);
                out.line(line)?;
            }
        }
    }
    if sections.all {
        about(&content, width, out)?;
    }
    if let Some(changed) = changed.filter(|_| header.tick.is_some_and(|tick| tick > 0)) {
        out.line(format!("state       {} written", count(changed.len() as u64, "path", "paths")))?;
        for change in changed {
            let line = format!("  {}", out.change(change));
            let line = out.paint(Style::Warn, &line);
            out.line(line)?;
        }
    }
    if sections.provenance {
        out.line("provenance")?;
        for line in provenance::find(trace, record)?.lines() {
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

/// Prints what a record says besides intent, action and result.
fn about(content: &Value, width: Option<usize>, out: &mut Out) -> Result<()> {
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
    for name in ["goal_id", "goal", "effect", "metrics", "anomalies", "meta", "stage", "reducer", "reason"] {
        if let Some(value) = content.get(name) {
            let line = out.fit(&format!("{name:<10}  {}", quote::value(value)), width);
            out.line(line)?;
        }
    }
    Ok(())
}
