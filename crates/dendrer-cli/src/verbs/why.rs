//! `dendrer why`

use clap::Args;
use dendrer::why::{self, Because, Node, Reach};
use dendrer_object::Value;
use dendrer_view::why::{node_json, tree_lines};
use dendrer_view::{HEURISTIC, RECORDED, document, quote};

use crate::address::Pos;
use crate::address::Rev;
use crate::address::state_path;
use crate::context;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// `why`
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Where: RUN@TICK
    pub(crate) rev: String,
    /// The place: a.b[2] or /a/b/2
    pub(crate) path: String,
    /// How many steps to go down
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=64))]
    pub(crate) depth: u8,
    /// Go on from transitions of other agents
    #[arg(long)]
    pub(crate) cross_agent: bool,
}

pub(crate) fn run(global: &Global, args: &Why, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.rev)?;
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let (progress, counted) = source.watched(global, "why");
    let trace = source.trace_through(&counted, &rev)?;
    let tick = rev.pos.as_ref().unwrap_or(&Pos::Tip).tick(&trace)?;
    let place = state_path(&args.path)?;
    let followed = why::followed(&trace, &place, tick)?;
    let reach = Reach { depth: usize::from(args.depth), cross_agent: args.cross_agent };
    let answer = why::why(&trace, tick, &place, reach)?;
    let value = place.get(&trace.state(tick)?).cloned();
    if value.is_none() && answer.hidden.is_empty() && !why::ever_stood(&trace, &place, &followed, tick)? {
        let failure = Failure::new(
            "E0104",
            format!("no transition of {} up to tick {tick} wrote {}", trace.name(), place.dotted()),
        );
        return Err(failure.help(&["dendrer", "state", &format!("{}@{tick}", trace.name())]));
    }
    drop(progress);
    let certainty = match answer.root.as_ref().is_some_and(guesses) {
        true => HEURISTIC,
        false => RECORDED,
    };
    if !out.is_text() {
        let root = answer.root.as_ref().map(|root| node_json(&trace, root)).transpose()?;
        out.document(&document(
            "why",
            [
                ("run", Value::from(trace.name().as_str())),
                ("tick", Value::from(tick)),
                ("path", Value::from(place.as_str())),
                ("followed", Value::from(followed.as_str())),
                ("there", Value::from(value.is_some())),
                ("value", Value::from(value)),
                ("root", Value::from(root)),
                ("hidden", Value::array(answer.hidden.iter().map(|tick| Value::from(*tick)))),
                ("reads", Value::from(if answer.rules { "rules" } else { "unknown" })),
                ("certainty", Value::from(certainty)),
            ],
        ))?;
    } else {
        let shown = value.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value);
        out.line(format!("{} at {}@{tick}   {shown}", quote::path(&place), trace.name()))?;
        match &answer.root {
            Some(root) => {
                for line in tree_lines(&trace, root)? {
                    out.line(out.width().map_or(line.clone(), |width| quote::shorten(&line, width)))?;
                }
            }
            None => out.line("no transition wrote it: the run began with it")?,
        }
        if followed != place {
            out.line(format!(
                "{} stands in the list {}: the last write that changed what stands there is shown",
                quote::path(&place),
                quote::path(&followed)
            ))?;
        }
        if !answer.hidden.is_empty() {
            let ticks: Vec<String> = answer.hidden.iter().map(ToString::to_string).collect();
            out.line(format!(
                "not known: what ticks {} wrote was erased or withheld",
                dendrer_view::bisect::list(&ticks, 12).unwrap_or_default()
            ))?;
        }
        out.say("note: that a transition wrote is exact; what it rested on is as sure as each line says");
    }
    Ok(if answer.hidden.is_empty() { 0 } else { 6 })
}

fn guesses(node: &Node) -> bool {
    matches!(node.because, Some(Because::MayRead(_) | Because::MayReadWhole(_)))
        || node.inputs.iter().any(guesses)
}
