//! `dendrer backtrack`

use clap::Args;
use dendrer::why::{self, Node};
use dendrer_object::{Pointer, Value};
use dendrer_view::closed::closed;
use dendrer_view::why::{node_json, ops_json, ops_words, transition_json, tree_lines};
use dendrer_view::{EXACT, count, document, quote};

use crate::address;
use crate::address::Pos;
use crate::address::Rev;
use crate::address::state_path;
use crate::context;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Format;
use crate::global::Global;
use crate::global::tick_arg;
use crate::out::Out;

/// `backtrack`
#[derive(Debug, Args)]
pub(crate) struct Backtrack {
    /// The run
    pub(crate) run: String,
    /// The place: a.b[2] or /a/b/2
    pub(crate) path: String,
    /// The first tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Pos>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Pos>,
    /// Only writes of this agent
    #[arg(long, value_name = "A")]
    pub(crate) agent: Option<String>,
    /// Only the newest
    #[arg(long)]
    pub(crate) last: bool,
    /// What each write rests on, too
    #[arg(long)]
    pub(crate) inputs: bool,
    /// What stood there before and after
    #[arg(long)]
    pub(crate) values: bool,
    /// At most N; 0 for all
    #[arg(short = 'n', long = "limit", default_value_t = 50)]
    pub(crate) limit: usize,
}

/// One write as it is shown.
struct Shown {
    tick: u64,
    agent: String,
    type_name: String,
    ops: Vec<dendrer_object::delta::Op>,
    sides: Option<(Option<Value>, Option<Value>)>,
    inputs: Option<Node>,
}

pub(crate) fn run(global: &Global, args: &Backtrack, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.run)?;
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let (progress, counted) = source.watched(global, "backtrack");
    let trace = source.trace_through(&counted, &rev)?;
    let place = state_path(&args.path)?;
    let from = args.from.as_ref().map_or(Ok(1), |pos| pos.tick(&trace))?;
    let to = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    let followed = why::followed(&trace, &place, to)?;
    let found = why::writes(&trace, &followed, from, to)?;
    address::in_order(from, to)?;
    let mut shown = Vec::new();
    // Whose write it is that nobody can say any more.
    let mut nameless: Vec<u64> = Vec::new();
    for write in found.writes.into_iter().rev() {
        let record = trace.record(write.tick)?;
        let row = dendrer_view::log::row(&record);
        let agent = Pointer::of(["agent_id"]);
        if args.agent.is_some() && closed(&record).iter().any(|pointer| pointer.overlaps(&agent)) {
            nameless.push(write.tick);
        }
        if args.agent.as_ref().is_none_or(|agent| *agent == row.agent) {
            let (tick, agent, type_name, ops) = (write.tick, row.agent, row.type_name, write.ops);
            shown.push(Shown { tick, agent, type_name, ops, sides: None, inputs: None });
        }
    }
    let total = shown.len();
    let limit = if args.last { 1 } else { args.limit };
    if limit > 0 {
        shown.truncate(limit);
    }
    nameless.sort_unstable();
    let known = found.hidden.is_empty() && nameless.is_empty();
    if known && !why::ever_stood(&trace, &place, &followed, to)? {
        let failure =
            Failure::new("E0104", format!("no transition of {} wrote {}", trace.name(), place.dotted()))
                .note("nothing stands there, and nothing stood there when the run began");
        return Err(failure.help(&["dendrer", "state", &format!("{}@{to}", trace.name())]));
    }
    if let (true, Some(first)) = (args.values, shown.last().map(|write| write.tick)) {
        let mut values = why::values(&trace, &place, &followed, first, to)?;
        shown.iter_mut().for_each(|write| write.sides = values.remove(&write.tick));
    }
    if args.inputs {
        let ticks: Vec<u64> = shown.iter().map(|write| write.tick).collect();
        let nodes = why::inputs_of(&trace, &followed, &ticks)?;
        shown.iter_mut().zip(nodes).for_each(|(write, node)| write.inputs = Some(node));
    }
    drop(progress);
    let members = || {
        let hidden = Value::array(found.hidden.iter().map(|tick| Value::from(*tick)));
        [
            ("run", Value::from(trace.name().as_str())),
            ("path", Value::from(place.as_str())),
            ("followed", Value::from(followed.as_str())),
            ("from", Value::from(from)),
            ("to", Value::from(to)),
            ("total", Value::from(total as u64)),
            ("hidden", hidden),
            ("nameless", Value::array(nameless.iter().map(|tick| Value::from(*tick)))),
            ("certainty", Value::from(EXACT)),
        ]
    };
    match out.format() {
        Format::Json => {
            let items = shown.iter().map(|write| write.to_json(&trace)).collect::<Result<Vec<_>>>()?;
            out.document(&document(
                "backtrack",
                members().into_iter().chain([("items", Value::array(items))]),
            ))?;
        }
        Format::Jsonl => {
            for write in &shown {
                out.item(&write.to_json(&trace)?)?;
            }
            out.summary("backtrack", members())?;
        }
        Format::Text => {
            text(&trace, &shown, &followed, out)?;
            if followed != place {
                out.line(format!(
                    "{} stands in a list, so every write of {} is listed",
                    quote::path(&place),
                    quote::path(&followed)
                ))?;
            }
            let writes = match total == shown.len() {
                true => count(total as u64, "write", "writes"),
                false => format!(
                    "{} of {} (use -n 0 for all)",
                    shown.len(),
                    count(total as u64, "write", "writes")
                ),
            };
            out.line(format!("{writes} in {}", count((to + 1).saturating_sub(from), "tick", "ticks")))?;
            if !found.hidden.is_empty() {
                let ticks: Vec<String> = found.hidden.iter().map(ToString::to_string).collect();
                out.line(format!(
                    "not known: what ticks {} wrote was erased or withheld",
                    dendrer_view::bisect::list(&ticks, 12).unwrap_or_default()
                ))?;
            }
            if !nameless.is_empty() {
                let ticks: Vec<String> = nameless.iter().map(ToString::to_string).collect();
                out.line(format!(
                    "not known: whose writes those at ticks {} are; the agent was erased or withheld",
                    dendrer_view::bisect::list(&ticks, 12).unwrap_or_default()
                ))?;
            }
        }
    }
    Ok(if found.hidden.is_empty() && nameless.is_empty() { 0 } else { 6 })
}

impl Shown {
    fn to_json(&self, trace: &dendrer::Trace) -> Result<Value> {
        let mut members = transition_json(trace, self.tick)?;
        members.push(("ops", ops_json(&self.ops)));
        if let Some((before, after)) = &self.sides {
            let sides = [("before", before), ("after", after)];
            members.extend(sides.into_iter().filter_map(|(name, side)| Some((name, side.clone()?))));
        }
        if let Some(inputs) = &self.inputs {
            members.push(("inputs", node_json(trace, inputs)?.get("inputs").cloned().unwrap_or(Value::Null)));
            members.push(("stops", node_json(trace, inputs)?.get("stops").cloned().unwrap_or(Value::Null)));
        }
        Ok(Value::record(members))
    }
}

fn text(trace: &dendrer::Trace, shown: &[Shown], place: &Pointer, out: &mut Out) -> Result<()> {
    let width = |part: fn(&Shown) -> usize| shown.iter().map(part).max().unwrap_or(0);
    let (ticks, agents, types) = (
        width(|write| write.tick.to_string().len()),
        width(|write| write.agent.chars().count()),
        width(|write| write.type_name.len()),
    );
    let side = |value: &Option<Value>| value.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value);
    for write in shown {
        let what = match &write.sides {
            Some((before, after)) => format!("{} -> {}", side(before), side(after)),
            None => ops_words(&write.ops, Some(place)),
        };
        let line = format!(
            "  tick {:>ticks$}  {:<agents$}  {:<types$}  {what}",
            write.tick, write.agent, write.type_name
        );
        out.line(out.width().map_or(line.clone(), |width| quote::shorten(&line, width)))?;
        let Some(mut node) = write.inputs.clone() else { continue };
        // One step is all that is listed here, and why shows the rest.
        node.inputs.iter_mut().for_each(|input| input.stops = None);
        for line in tree_lines(trace, &node)?.iter().skip(1) {
            out.line(format!("      {line}"))?;
        }
    }
    Ok(())
}
