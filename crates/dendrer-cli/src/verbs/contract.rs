//! `dendrer contract`: runs against the contracts of their packs, and contracts by themselves.

use dendrer::Trace;
use dendrer::contract::{Checked, Judged, check};
use dendrer::kernel::predicate::{Verdict, Window};
use dendrer_object::{TypeName, Value};
use dendrer_view::bisect::{intervals_json, standing_json, standing_words};
use dendrer_view::{count, document, quote};

use self::args::ContractCheck;
use crate::address;
use crate::address::Rev;
use crate::context;
use crate::context::ended;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::out::Style;

pub(crate) use self::args::ContractVerb;

mod args;
mod extend;
mod forms;
mod lint;
mod read;
mod suggest;

/// The forms that only `contract check` has.
const FORMS: [&str; 3] = ["sarif", "github", "junit"];

/// How many transitions that lack something are listed for people.
const LACKING_SHOWN: usize = 10;

pub(crate) fn run(global: &Global, verb: &ContractVerb, out: &mut Out) -> Result {
    match verb {
        ContractVerb::Check(args) => check_run(global, args, out),
        ContractVerb::Extend(args) => extend::run(global, args, out),
        ContractVerb::Keygen(args) => extend::keygen(args, out),
        ContractVerb::List => read::list(global, out),
        ContractVerb::Show(args) => read::show(global, args, out),
        ContractVerb::Diff(args) => read::diff(global, args, out),
        ContractVerb::Lint(args) => lint::run(global, args, out),
        ContractVerb::Suggest(args) => suggest::run(global, args, out),
    }
}

fn check_run(global: &Global, args: &ContractCheck, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.run)?;
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let (progress, counted) = source.watched(global, "contract");
    let trace = source.trace_through(&counted, &rev)?;
    let from = args.from.as_ref().map_or(Ok(0), |pos| pos.tick(&trace))?;
    let to = match (&args.to, &rev.pos) {
        (Some(_), Some(_)) => return Err(Failure::new("E0106", "say once where it ends: --to, or RUN@N")),
        (Some(pos), None) | (None, Some(pos)) => pos.tick(&trace)?,
        (None, None) => trace.tip(),
    };
    address::in_order(from, to)?;
    let only = args.type_name.as_deref().map(str::parse::<TypeName>).transpose();
    let only = only.map_err(|error| Failure::new("E0210", error.to_string()))?;
    let under = args.contract.as_deref().map(|contract| read::resolve(global, contract, out)).transpose()?;
    let checked = check(&trace, under.as_ref().map(|found| &found.pack), from, to, only.as_ref())?;
    drop(progress);
    if let Some(only) = &only
        && checked.in_force.iter().all(|terms| !terms.contracts.types.contains_key(only))
    {
        let shown = args.contract.as_deref().unwrap_or(trace.name().as_str());
        return Err(Failure::new("E0415", format!("no contract of {} is for {only}", trace.name()))
            .help(&["dendrer", "contract", "show", shown]));
    }
    let stage = trace.start().body().value("/stage").and_then(|stage| stage.as_u64());
    match global.format.as_deref().filter(|form| FORMS.contains(form)) {
        Some(form) => forms::write(form, &trace, &checked, args.all_violations, out)?,
        None if out.is_text() => print(args, &trace, stage, &checked, out)?,
        None => out.document(&to_json(&trace, (from, to), stage, &checked))?,
    }
    // What is broken is broken, whatever else could not be judged.
    Ok(match (checked.is_broken(), checked.is_uncertain()) {
        (_, true) => 6,
        (true, _) => 1,
        (false, false) => 0,
    })
}

fn print(
    args: &ContractCheck,
    trace: &Trace,
    stage: Option<u64>,
    checked: &Checked,
    out: &mut Out,
) -> Result<()> {
    for terms in &checked.in_force {
        let contracts = &terms.contracts;
        let name = match contracts.name.is_empty() {
            true => "none".to_owned(),
            false => format!("{}/{}", contracts.name, contracts.version),
        };
        let added = terms.extensions.iter().map(|extension| {
            format!(", + extension {} from tick {}", quote::escape(&extension.id), extension.from)
        });
        let added: String = added.collect();
        let how = if args.contract.is_some() { "asked of" } else { "in force for" };
        out.line(format!("contract  {name} ({how} ticks {}..{}){added}", terms.from, terms.to))?;
    }
    let enforced = match stage {
        _ if args.contract.is_some() => "another contract than the one in force may be asked".to_owned(),
        Some(stage) if stage >= 2 => format!("enforced when it was recorded, at stage {stage}"),
        Some(stage) => format!("not enforced when it was recorded, at stage {stage}"),
        None => "the stage it was recorded at is not known".to_owned(),
    };
    let governed = count(checked.governed, "transition", "transitions");
    let ok = if checked.lacking.is_empty() { "OK  " } else { "FAIL" };
    let style = if checked.lacking.is_empty() { Style::Good } else { Style::Bad };
    let mark = out.paint(style, ok);
    out.line(format!(
        "required  {mark}  {} of {governed} lacked what they require   {enforced}",
        checked.lacking.len()
    ))?;
    for lacking in checked.lacking.iter().take(LACKING_SHOWN) {
        let fields = lacking.lacks.iter().map(|lack| format!("{}: {}", lack.name, lack.why));
        let fields = fields.collect::<Vec<_>>().join(", ");
        out.line(format!("  tick {}  {}  {}", lacking.tick, lacking.type_name, quote::escape(&fields)))?;
    }
    if let Some(more) = checked.lacking.len().checked_sub(LACKING_SHOWN).filter(|more| *more > 0) {
        out.line(format!("  ({more} more; --json has all)"))?;
    }
    let width = checked.violations().map(|judged| judged.predicate.name().len()).max().unwrap_or(0);
    for terms in &checked.in_force {
        if checked.in_force.len() > 1 {
            out.line(format!("ticks {}..{}", terms.from, terms.to))?;
        }
        for judged in &terms.violations {
            for line in violation_lines(args, trace, judged, width, out) {
                out.line(line)?;
            }
        }
    }
    let violated = checked.violations().filter(|judged| judged.onset().is_some()).count();
    out.line(format!("{violated} of {} violated", checked.violations().count()))?;
    // Bisect knows the predicates of the pack at the tip.
    let newest = checked.in_force.last().into_iter().flat_map(|terms| &terms.violations);
    if let Some(judged) = newest.into_iter().find(|judged| judged.onset().is_some())
        && args.contract.is_none()
    {
        out.help(&["dendrer", "bisect", trace.name().as_str(), "--predicate", judged.predicate.name()]);
    }
    Ok(())
}

fn violation_lines(
    args: &ContractCheck,
    trace: &Trace,
    judged: &Judged,
    width: usize,
    out: &Out,
) -> Vec<String> {
    let name = judged.predicate.name();
    let window = match judged.predicate.window() {
        Window::After => "after",
        Window::Before => "before",
    };
    let (mark, what) = match (judged.onset(), judged.uncertain()) {
        (Some(tick), _) => (
            out.paint(Style::Bad, "FAIL"),
            format!("from tick {tick}   {}  ({window})", quote::escape(&judged.predicate.words())),
        ),
        (None, Some((tick, why))) => (
            out.paint(Style::Warn, "WARN"),
            format!("cannot be judged at tick {tick}: {}", quote::escape(why)),
        ),
        (None, None) => {
            let words = judged.standing.as_ref().map(|standing| {
                standing_words(standing, judged.intervals.last().is_some_and(|last| ended(trace, last.to)))
            });
            (out.paint(Style::Good, "OK  "), words.unwrap_or_default())
        }
    };
    let mut lines = vec![format!("  {mark}  {name:<width$}  {what}").trim_end().to_owned()];
    if args.all_violations {
        let stretches = judged.intervals.iter().filter(|interval| interval.verdict == Verdict::Violation);
        lines.extend(stretches.map(|interval| format!("        ticks {}..{}", interval.from, interval.to)));
    }
    lines
}

fn to_json(trace: &Trace, (from, to): (u64, u64), stage: Option<u64>, checked: &Checked) -> Value {
    let in_force = checked.in_force.iter().map(|terms| {
        Value::record([
            ("name", Value::from(&*terms.contracts.name)),
            ("version", Value::from(&*terms.contracts.version)),
            ("from", Value::from(terms.from)),
            ("to", Value::from(terms.to)),
            (
                "extensions",
                Value::array(terms.extensions.iter().map(|extension| {
                    Value::record([
                        ("id", Value::from(&*extension.id)),
                        ("from", Value::from(extension.from)),
                        ("approved_by", Value::from(&*extension.approved_by)),
                    ])
                })),
            ),
        ])
    });
    let lacking = checked.lacking.iter().map(|lacking| {
        let fields = lacking.lacks.iter().map(|lack| {
            Value::record([("name", Value::from(&*lack.name)), ("why", Value::from(&*lack.why))])
        });
        Value::record([
            ("tick", Value::from(lacking.tick)),
            ("type", Value::from(lacking.type_name.as_str())),
            ("fields", Value::array(fields)),
        ])
    });
    let items = checked.violations().map(|judged| {
        let uncertain = judged.uncertain().map_or(Value::Null, |(tick, why)| {
            Value::record([("tick", Value::from(tick)), ("why", Value::from(why))])
        });
        Value::record([
            ("name", Value::from(judged.predicate.name())),
            ("from", Value::from(judged.intervals.first().map(|interval| interval.from))),
            ("to", Value::from(judged.intervals.last().map(|interval| interval.to))),
            ("words", Value::from(judged.predicate.words())),
            ("ok", Value::from(judged.onset().is_none() && judged.uncertain().is_none())),
            ("onset", Value::from(judged.onset())),
            ("uncertain", uncertain),
            ("intervals", intervals_json(&judged.intervals)),
            (
                "obligation",
                standing_json(
                    judged.standing.as_ref(),
                    judged.intervals.last().is_some_and(|last| ended(trace, last.to)),
                ),
            ),
        ])
    });
    let certainty = if checked.is_uncertain() { "unavailable" } else { "exact" };
    document(
        "contract-check",
        [
            ("run", Value::from(trace.name().as_str())),
            ("from", Value::from(from)),
            ("to", Value::from(to)),
            ("stage", Value::from(stage)),
            ("in_force", Value::array(in_force)),
            ("governed", Value::from(checked.governed)),
            ("lacking", Value::array(lacking)),
            ("items", Value::array(items)),
            ("certainty", Value::from(certainty)),
        ],
    )
}
