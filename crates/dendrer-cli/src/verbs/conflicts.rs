//! `dendrer conflicts`: what a merge left open.

use clap::{Args, Subcommand};
use dendrer::merge::{MergeError, Resolution, Standing, Take, merged, resolve, standings};
use dendrer::recorder::World;
use dendrer_object::{Pointer, Value, json};
use dendrer_view::merge as view;
use dendrer_view::{count, document, quote};

use crate::address::Rev;
use crate::address::state_path;
use crate::context;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::out::Style;

/// `conflicts`
#[derive(Debug, Subcommand)]
pub(crate) enum ConflictsVerb {
    /// List what the runs of a merge had different values for, and how each stands
    #[command(
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts list both"
    )]
    List(ConflictsList),
    /// Show one of them with all its values
    #[command(
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts show both risk_score"
    )]
    Show(ConflictsShow),
    /// Decide one, as a transition with its reason
    #[command(
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts resolve both risk_score --take b --reason \"the later one was measured\""
    )]
    Resolve(ConflictsResolve),
}

/// `conflicts list`
#[derive(Debug, Args)]
pub(crate) struct ConflictsList {
    /// The run that was made by a merge, or a fork of it
    pub(crate) run: String,
}

/// `conflicts show`
#[derive(Debug, Args)]
pub(crate) struct ConflictsShow {
    /// The run that was made by a merge, or a fork of it
    pub(crate) run: String,
    /// The place
    pub(crate) path: String,
}

/// `conflicts resolve`
#[derive(Debug, Args)]
pub(crate) struct ConflictsResolve {
    /// The run that was made by a merge, or a fork of it
    pub(crate) run: String,
    /// The place
    pub(crate) path: String,
    /// What is put there: the name of a side (a, b, ... or its run), or a value in JSON
    #[arg(long, value_name = "a|b|JSON", allow_hyphen_values = true)]
    pub(crate) take: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: String,
    /// Who decides, as the record names it
    #[arg(long, default_value = "operator")]
    pub(crate) agent: String,
    /// Ask the run, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(global: &Global, verb: &ConflictsVerb, out: &mut Out) -> Result {
    match verb {
        ConflictsVerb::List(args) => list(global, &args.run, None, out),
        ConflictsVerb::Show(args) => list(global, &args.run, Some(&state_path(&args.path)?), out),
        ConflictsVerb::Resolve(args) => decide(global, args, out),
    }
}

fn list(global: &Global, run: &str, only: Option<&Pointer>, out: &mut Out) -> Result {
    let rev = Rev::parse(run)?;
    if rev.pos.is_some() {
        return Err(Failure::new(
            "E0106",
            "conflicts are shown as they stand now: name the run without a tick",
        ));
    }
    let source = context::sound(global, &rev, out)?;
    let trace = source.trace(&rev)?;
    let merged = merged(&trace)?;
    let standings = standings(&trace, &merged)?;
    let shown: Vec<_> = merged
        .conflicts
        .iter()
        .zip(&standings)
        .filter(|(conflict, _)| only.is_none_or(|path| conflict.path == *path))
        .collect();
    if let (Some(path), []) = (only, &shown[..]) {
        let error = MergeError::NoConflict { run: trace.name().clone(), path: path.clone() };
        return Err(Failure::from(dendrer::Error::from(error)).help(&["dendrer", "conflicts", "list", run]));
    }
    let open = standings.iter().filter(|standing| **standing == Standing::Open).count();
    if !out.is_text() {
        let items = shown.iter().map(|(conflict, standing)| view::conflict(conflict, standing));
        out.document(&document(
            "conflicts",
            [
                ("run", Value::from(trace.name().as_str())),
                ("tick", Value::from(trace.tip())),
                ("sources", view::sources(&merged)),
                ("strategy", Value::from(&*merged.strategy)),
                ("items", Value::array(items)),
                ("open", Value::from(open as u64)),
            ],
        ))?;
        return Ok(0);
    }
    for (conflict, standing) in &shown {
        let style = if **standing == Standing::Open { Style::Warn } else { Style::Good };
        let line =
            out.paint(style, &format!("{}   {}", quote::path(&conflict.path), view::standing(standing)));
        out.line(line)?;
        for (from, value) in &conflict.values {
            let (source, tick, record) =
                (view::source(&merged, &from.source), from.tick, from.record.short());
            out.line(format!(
                "  {source}   {}   written at tick {tick}, record {record}",
                quote::value(value)
            ))?;
        }
    }
    let all = count(merged.conflicts.len() as u64, "conflict", "conflicts");
    out.line(format!("{} of {all}, {open} open", shown.len()))?;
    Ok(0)
}

/// Says why a conflict is not resolved, and where it shows how it stands.
fn not_resolved(args: &ConflictsResolve, error: dendrer::Error) -> Failure {
    let code = error.code();
    let failure = Failure::from(error);
    let (run, path) = (args.run.as_str(), args.path.as_str());
    match code {
        "E0445" => failure.note("nothing was changed").help(&["dendrer", "conflicts", "list", run]),
        "E0446" => failure
            .note("nothing was changed; what is to stand there now is a change like any other")
            .help(&["dendrer", "conflicts", "show", run, path]),
        _ => failure,
    }
}

fn decide(global: &Global, args: &ConflictsResolve, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.run)?;
    if rev.bundle.is_some() || rev.pos.is_some() {
        return Err(Failure::new("E0106", "a conflict is resolved at the last tick of a run of the store")
            .note("nothing was changed"));
    }
    if args.agent.is_empty() || args.reason.trim().is_empty() {
        return Err(Failure::new("E0106", "a decision has a reason and somebody who took it")
            .note("nothing was changed"));
    }
    let resolution = Resolution {
        path: state_path(&args.path)?,
        take: take(&args.take),
        reason: args.reason.as_str().into(),
        agent: args.agent.as_str().into(),
    };
    let world = Box::new(World::default());
    let (name, record) = if args.dry_run {
        let store = &context::rehearse(global)?;
        let name = rev.run_in(store, &[])?;
        let record = resolve(store, &name, &resolution, world, true);
        let record = record.map_err(|error| not_resolved(args, error))?;
        (name, record)
    } else {
        let repo = context::write_store(global)?;
        let store = repo.writer()?;
        repo.signing_key()?;
        let name = rev.run_in(&store, &[])?;
        // What the door turned down is kept beside the run, so there is something to sign either way.
        let record = resolve(store, &name, &resolution, world, false);
        let closed = context::close(repo);
        let record = record.map_err(|error| not_resolved(args, error))?;
        closed?;
        (name, record)
    };
    let said = |place: &str| record.body().value(place);
    let taken = said("/intent/conflict").and_then(|said| said.get("take").cloned()).unwrap_or(Value::Null);
    let delta = said("/delta");
    let value = delta.as_ref().and_then(Value::as_array).and_then(|ops| ops.get(0)?.get("value").cloned());
    let value = value.unwrap_or(Value::Null);
    let tick = record.header().tick.filter(|_| !args.dry_run);
    if !out.is_text() {
        out.document(&document(
            "resolved",
            [
                ("run", Value::from(name.as_str())),
                ("path", Value::from(resolution.path.as_str())),
                ("take", taken),
                ("value", value),
                ("reason", Value::from(args.reason.as_str())),
                ("tick", Value::from(tick)),
                ("record", Value::from((!args.dry_run).then(|| record.id()))),
                ("dry_run", Value::from(args.dry_run)),
            ],
        ))?;
        return Ok(0);
    }
    let taken = taken.as_str().map(quote::escape).unwrap_or_default();
    let (path, value) = (quote::path(&resolution.path), quote::value(&value));
    match tick {
        Some(tick) => out.line(format!(
            "resolved   {path} = {value}   {taken} taken, as {name}@{tick}   hash {}",
            record.id().short()
        ))?,
        None => {
            out.line(format!("would set  {path} = {value}   {taken} taken"))?;
            out.say("nothing was written (dry run)");
        }
    }
    Ok(0)
}

/// Reads what is taken: one letter is a side, then JSON is a value, and anything else is the name of a run.
fn take(text: &str) -> Take {
    let is_letter = text.len() == 1 && text.bytes().all(|c| c.is_ascii_lowercase());
    match json::parse_door(text.as_bytes()) {
        Ok(value) if !is_letter => Take::Value(value),
        _ => Take::Side(text.to_owned()),
    }
}
