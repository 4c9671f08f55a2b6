//! `dendrer contract suggest`: fields that decide what happens and that no contract names.

use dendrer::contract::suggest::{Asked, Found, LeftOut, Suggested, field_name, suggest};
use dendrer::store::Store;
use dendrer_object::{TypeName, Value};
use dendrer_view::{HEURISTIC, count, document, quote};
use std::sync::Arc;

use super::args::ContractSuggest;
use crate::address::Rev;
use crate::context;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::out::Style;
use crate::progress::Progress;

/// How many fields are printed for people.
const SHOWN: usize = 20;

pub(super) fn run(global: &Global, args: &ContractSuggest, out: &mut Out) -> Result {
    let only = args.type_name.as_deref().map(str::parse::<TypeName>).transpose();
    let only = only.map_err(|error| Failure::new("E0210", error.to_string()))?;
    let mut sources = Vec::new();
    for run in &args.runs {
        let rev = Rev::parse(run)?;
        if rev.pos.is_some() {
            return Err(Failure::new("E0106", format!("{run} names a tick; whole runs are looked at")));
        }
        sources.push((context::sound(global, &rev, out)?, rev));
    }
    let progress = Progress::start(global, "contract", "records", None);
    let counted: Vec<Arc<dyn Store>> =
        sources.iter().map(|(source, _)| progress.watch().over(source.store())).collect();
    let mut traces = Vec::new();
    for ((source, rev), counted) in sources.iter().zip(&counted) {
        let trace = source.trace_through(counted, rev)?;
        if traces.iter().any(|known: &dendrer::Trace| known.name() == trace.name() && rev.bundle.is_none()) {
            return Err(Failure::new("E0106", format!("{} is named twice", trace.name())));
        }
        traces.push(trace);
    }
    let found = suggest(&traces, Asked { only: only.as_ref(), tries: args.tries })?;
    drop(progress);
    match out.is_text() {
        true => print(&found, out),
        false => out.document(&to_json(args, &found)).map(|()| 0),
    }
}

fn print(found: &Found, out: &mut Out) -> Result {
    out.line(
        "HEURISTIC  each field was tried with the values it had elsewhere; what nothing reads and nobody names is not found",
    )?;
    for one in found.items.iter().take(SHOWN) {
        let head = out.paint(Style::Strong, &quote::escape(&field_name(&one.place)));
        let contract = if one.has_contract { "" } else { "   (the type has no contract)" };
        out.line(format!("{head}   for {}{contract}", one.type_name))?;
        out.line(format!("  decides   {}", weight(one)))?;
        for flip in &one.shown {
            let (run, tick) = &flip.from;
            out.line(format!(
                "  at        {}@{}: with {} (as before {run}@{tick}) {}",
                flip.run,
                flip.tick,
                quote::value(&flip.value),
                quote::escape(&flip.what)
            ))?;
        }
        if !one.readers.is_empty() {
            out.line(format!("  read by   {}", quote::escape(&one.readers.join(", "))))?;
        }
    }
    if let Some(more) = found.items.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        out.line(format!("({more} more; --json has all)"))?;
    }
    let decide = if found.items.len() == 1 { "decides and is" } else { "decide and are" };
    let untried = match found.untried {
        0 => String::new(),
        untried => format!("; {untried} were not tried (no other value, or no try left)"),
    };
    out.line(format!(
        "{} {decide} not required; {} that are read made no difference{untried}",
        count(found.items.len() as u64, "field", "fields"),
        found.silent
    ))?;
    out.line(format!(
        "{} looked at, decided again {}",
        count(found.transitions, "transition", "transitions"),
        count(found.tries, "time", "times")
    ))?;
    for line in left_out_lines(&found.left_out) {
        out.line(format!("left out   {line}"))?;
    }
    Ok(0)
}

fn weight(one: &Suggested) -> String {
    let of = |n: u64| format!("{n} of {}", one.tried);
    let mut parts = Vec::new();
    if one.flips > 0 {
        parts.push(format!("verdicts after {} transitions", of(one.flips)));
    }
    if one.refusals > 0 {
        parts.push(format!("whether the rules refuse, {}", of(one.refusals)));
    }
    if one.changes > 0 {
        parts.push(format!("what is written, {}", of(one.changes)));
    }
    if one.named > 0 {
        parts.push(format!("named by the model in {}", count(one.named, "transition", "transitions")));
    }
    parts.join("; ")
}

fn left_out_lines(left: &LeftOut) -> Vec<String> {
    let mut lines = Vec::new();
    let counted = [
        (left.transitions, "transitions of types of which many were looked at"),
        (left.values, "values beyond the first of a field"),
        (left.tries, "combinations; --tries N allows more"),
        (left.pairs, "fields of types beyond the limit"),
    ];
    lines.extend(counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
    for name in &left.before {
        lines.push(format!("{name}, which looks at the state before: no transition decides it"));
    }
    for run in &left.without {
        lines.push(format!("{run}: it has no pack"));
    }
    for (run, tick, why) in &left.unreadable {
        lines.push(format!("{run} from tick {tick} on: {}", quote::escape(why)));
    }
    lines
}

fn to_json(args: &ContractSuggest, found: &Found) -> Value {
    let item = |one: &Suggested| {
        let shown = one.shown.iter().map(|flip| {
            Value::record([
                ("run", Value::from(flip.run.as_str())),
                ("tick", Value::from(flip.tick)),
                ("what", Value::from(flip.what.as_str())),
                ("value", flip.value.clone()),
                ("from_run", Value::from(flip.from.0.as_str())),
                ("from_tick", Value::from(flip.from.1)),
            ])
        });
        Value::record([
            ("type", Value::from(one.type_name.as_str())),
            ("path", Value::from(one.place.as_str())),
            ("field", Value::from(field_name(&one.place))),
            ("contract", Value::from(one.has_contract)),
            ("flips", Value::from(one.flips)),
            ("refusals", Value::from(one.refusals)),
            ("changes", Value::from(one.changes)),
            ("named", Value::from(one.named)),
            ("tried", Value::from(one.tried)),
            ("shown", Value::array(shown)),
            ("readers", Value::array(one.readers.iter().map(|reader| Value::from(reader.as_str())))),
        ])
    };
    let left = &found.left_out;
    let unreadable = left.unreadable.iter().map(|(run, tick, why)| {
        Value::record([
            ("run", Value::from(run.as_str())),
            ("tick", Value::from(*tick)),
            ("why", Value::from(why.as_str())),
        ])
    });
    let left_out = Value::record([
        ("transitions", Value::from(left.transitions)),
        ("values", Value::from(left.values)),
        ("tries", Value::from(left.tries)),
        ("pairs", Value::from(left.pairs)),
        ("before", Value::array(left.before.iter().map(|name| Value::from(name.as_str())))),
        ("without", Value::array(left.without.iter().map(|run| Value::from(run.as_str())))),
        ("unreadable", Value::array(unreadable)),
    ]);
    document(
        "contract-suggest",
        [
            ("runs", Value::array(args.runs.iter().map(|run| Value::from(run.as_str())))),
            ("certainty", Value::from(HEURISTIC)),
            ("transitions", Value::from(found.transitions)),
            ("tries", Value::from(found.tries)),
            ("silent", Value::from(found.silent)),
            ("untried", Value::from(found.untried)),
            ("left_out", left_out),
            ("items", Value::array(found.items.iter().map(item))),
        ],
    )
}
