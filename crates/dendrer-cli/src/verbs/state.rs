//! `dendrer state`

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::Trace;
use dendrer_object::{Pointer, Value};
use dendrer_view::difference::differences;
use dendrer_view::show::Changed;
use dendrer_view::{RECORDED, count, document, text};

use crate::address::{Pos, Rev, state_path};
use crate::context::runs::state_at;
use crate::failure::{Failure, Result};
use crate::global::{Global, WindowChoice};
use crate::out::{Out, Style};
use crate::{context, offers};

/// `state`
#[derive(Debug, Args)]
pub(crate) struct State {
    /// What: RUN@TICK
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) rev: String,
    /// One path of it
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) path: Option<String>,
    /// The state before the transition, or after it
    #[arg(long, value_enum, default_value = "after")]
    pub(crate) window: WindowChoice,
    /// Print what differs from the state there, instead of the state
    #[arg(long, value_name = "REV", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) base: Option<String>,
    /// How deep to print
    #[arg(long, conflicts_with = "base")]
    pub(crate) depth: Option<usize>,
}

/// Prints what differs from the state at another place.
#[expect(clippy::too_many_arguments, reason = "both sides, the place, and where the answer goes")]
fn difference(
    global: &Global,
    args: &State,
    trace: &Trace,
    tick: u64,
    state: &Value,
    base: &str,
    path: &Pointer,
    out: &mut Out,
) -> Result {
    let rev = Rev::parse(base)?;
    let source = context::source(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let other = source.trace(&rev)?;
    let from = rev.pos.as_ref().unwrap_or(&Pos::Tip).tick(&other)?;
    let before = state_at(&other, &rev, from)?;
    let mut found = differences(&before, state);
    found.retain(|change| change.path.overlaps(path));
    if !out.is_text() {
        out.document(&document(
            "state-difference",
            [
                ("run", Value::from(trace.name().as_str())),
                ("tick", Value::from(tick)),
                (
                    "base",
                    Value::record([("run", Value::from(other.name().as_str())), ("tick", Value::from(from))]),
                ),
                ("window", Value::from(window(args))),
                ("path", Value::from(path.as_str())),
                ("items", Value::array(found.iter().map(Changed::to_json))),
                ("certainty", Value::from(RECORDED)),
            ],
        ))?;
        return Ok(0);
    }
    for change in &found {
        let line = out.change(change);
        let line = out.paint(Style::Warn, &line);
        out.line(line)?;
    }
    out.line(format!(
        "{} from {}@{from} to {}@{tick}",
        count(found.len() as u64, "difference", "differences"),
        other.name(),
        trace.name()
    ))?;
    Ok(0)
}

fn window(args: &State) -> &'static str {
    if args.window == WindowChoice::After { "after" } else { "before" }
}

pub(crate) fn run(global: &Global, args: &State, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.rev)?;
    let source = context::source(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let (progress, counted) = source.watched(global, "state");
    let trace = source.trace_through(&counted, &rev)?;
    let tick = rev.pos.as_ref().unwrap_or(&Pos::Tip).tick(&trace)?;
    let looked_at = match args.window {
        WindowChoice::After => tick,
        WindowChoice::Before => tick.saturating_sub(1),
    };
    let state = state_at(&trace, &rev, looked_at)?;
    drop(progress);
    let root = state.digest();
    let path = state_path(args.path.as_deref().unwrap_or_default())?;
    if let Some(base) = &args.base {
        return difference(global, args, &trace, tick, &state, base, &path, out);
    }
    // `counters` is derived and lies outside the root, but it is asked for like any other path.
    let in_counters = path.tokens().next().is_some_and(|first| first == "counters");
    let found = if in_counters {
        let (counters, counter) = (trace.at(looked_at)?.counters, path.tokens().nth(1));
        if let Some(hidden) = counters.hidden(counter.as_deref().map(|name| [name])) {
            let (what, pointer) = (format!("state.{}", path.dotted()), hidden.pointer.clone());
            return Err(dendrer::Error::Hidden { what, tick: hidden.tick, pointer }.into());
        }
        path.get(&Value::record([("counters", counters.to_value())])).cloned()
    } else {
        path.get(&state).cloned()
    };
    let Some(value) = found else {
        let failure = Failure::new(
            "E0104",
            format!("there is nothing at {} in {}@{tick}", path.dotted(), trace.name()),
        );
        let names: Vec<String> = state
            .as_object()
            .map(|state| state.iter().map(|(name, _)| name.to_string()).collect())
            .unwrap_or_default();
        let wanted = path.tokens().next().unwrap_or_default().into_owned();
        return Err(match dendrer_object::text::nearest(&wanted, names.iter().map(String::as_str)) {
            Some(near) => failure
                .note(format!("did you mean {near}?"))
                .help(&["dendrer", "state", &args.rev, "--path", near]),
            None => failure.help(&["dendrer", "state", &args.rev, "--depth", "1"]),
        });
    };
    if !out.is_text() {
        out.document(&document(
            "state",
            [
                ("run", Value::from(trace.name().as_str())),
                ("tick", Value::from(tick)),
                ("window", Value::from(window(args))),
                ("path", Value::from(path.as_str())),
                ("state_root", Value::from(root)),
                ("value", value),
                ("certainty", Value::from(if in_counters { "derived" } else { RECORDED })),
            ],
        ))?;
        return Ok(0);
    }
    let mut lines = Vec::new();
    text::pretty(&value, 0, args.depth, &mut lines, "");
    for line in lines {
        let line = out.fit(&line, out.width());
        out.line(line)?;
    }
    if path.as_str().is_empty() {
        out.say(format!("state root {root}"));
    }
    Ok(0)
}
