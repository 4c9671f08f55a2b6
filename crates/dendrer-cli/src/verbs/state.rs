//! `dendrer state`

use dendrer_object::Value;
use dendrer_view::{RECORDED, document};

use crate::address::{Pos, Rev, state_path};
use crate::args::{Global, State, WindowChoice};
use crate::failure::{Failure, Result};
use crate::open;
use crate::out::Out;

pub(crate) fn run(global: &Global, args: &State, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.rev)?;
    let source = open::source(global, &rev)?;
    let trace = source.trace(&rev)?;
    let tick = rev.pos.as_ref().unwrap_or(&Pos::Tip).tick(&trace)?;
    let looked_at = match args.window {
        WindowChoice::After => tick,
        WindowChoice::Before => tick.saturating_sub(1),
    };
    let moment = trace.at(looked_at)?;
    let root = moment.state.digest();
    let path = state_path(args.path.as_deref().unwrap_or_default())?;
    let counters = moment.counters.to_value();
    // `counters` is derived and lies outside the root, but it is asked for like any other path.
    let in_counters = path.tokens().next().is_some_and(|first| first == "counters");
    let found = if in_counters {
        path.get(&Value::record([("counters", counters)])).cloned()
    } else {
        path.get(&moment.state).cloned()
    };
    let Some(value) = found else {
        let failure = Failure::new(
            "E0104",
            format!("there is nothing at {} in {}@{tick}", path.dotted(), trace.name()),
        );
        let names: Vec<String> = moment
            .state
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
                ("window", Value::from(if args.window == WindowChoice::After { "after" } else { "before" })),
                ("path", Value::from(path.as_str())),
                ("state_root", Value::from(root)),
                ("value", value),
                ("certainty", Value::from(if in_counters { "derived" } else { RECORDED })),
            ],
        ))?;
        return Ok(0);
    }
    let mut lines = Vec::new();
    super::pretty(&value, 0, args.depth, &mut lines, "");
    for line in lines {
        out.line(out.width().map_or(line.clone(), |width| dendrer_view::quote::shorten(&line, width)))?;
    }
    if path.as_str().is_empty() {
        out.say(format!("state root {root}"));
    }
    Ok(0)
}
