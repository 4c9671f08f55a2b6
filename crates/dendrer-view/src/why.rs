//! Writes, trees of inputs and what followed, as lines and as documents.

use dendrer::Trace;
use dendrer::why::{Because, Chain, Node, Stops};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::{Pointer, Value};

use crate::{EXACT, HEURISTIC, RECORDED, log, quote};

/// What is said of deltas of which nobody recorded more.
pub const UNKNOWN: &str =
    "inputs unknown: a delta says what it wrote, not what it read, and no link says more";

/// How sure it is that something is an input.
pub fn certainty(because: &Because) -> &'static str {
    match because {
        Because::StoodThere => EXACT,
        Because::Link(_) => RECORDED,
        Because::MayRead(_) | Because::MayReadWhole(_) => HEURISTIC,
    }
}

/// Says why something is an input.
pub fn because_words(because: &Because) -> String {
    match because {
        Because::StoodThere => "built on what stood there (exact)".to_owned(),
        Because::Link(rel) => format!("{rel} (recorded)"),
        Because::MayRead(place) => format!("a rule may read {} (heuristic)", quote::path(place)),
        Because::MayReadWhole(place) => format!(
            "a rule may read {} as a whole, and this is the newest write in it (heuristic)",
            quote::path(place)
        ),
    }
}

/// Writes an operation on one line; the path only where it is not the place that was asked about.
pub fn op_words(op: &Op, place: Option<&Pointer>) -> String {
    let word = match op.action {
        Action::Set => "set",
        Action::Remove => "remove",
        Action::Append => "append",
        Action::Add => "add",
    };
    let path = if place == Some(&op.path) { String::new() } else { format!(" {}", quote::path(&op.path)) };
    match &op.value {
        Some(value) => format!("{word}{path} {}", quote::value(value)),
        None => format!("{word}{path}"),
    }
}

/// Writes operations on one line.
pub fn ops_words(ops: &[Op], place: Option<&Pointer>) -> String {
    let words: Vec<String> = ops.iter().map(|op| op_words(op, place)).collect();
    words.join("; ")
}

/// Says why a tree does not go on.
pub fn stops_words(stops: &Stops) -> &'static str {
    match stops {
        Stops::Depth => "(--depth goes further)",
        Stops::Above => "(its inputs are above)",
        Stops::OtherAgent => "(another agent's; --cross-agent goes on from there)",
        Stops::Size => "(the tree is as large as it may be)",
        Stops::Unknown => UNKNOWN,
        Stops::Nothing => "no input: the rules that write there look at nothing that any transition wrote",
    }
}

/// Writes a tree, two blanks a level.
pub fn tree_lines(trace: &Trace, node: &Node) -> Result<Vec<String>, dendrer::Error> {
    let mut lines = Vec::new();
    node_lines(trace, node, 0, &mut lines)?;
    Ok(lines)
}

fn node_lines(
    trace: &Trace,
    node: &Node,
    level: usize,
    lines: &mut Vec<String>,
) -> Result<(), dendrer::Error> {
    let pad = "  ".repeat(level);
    let row = log::row(&trace.record(node.tick)?);
    let what = match &node.wrote {
        Some((place, ops)) => {
            let path = if level == 0 { String::new() } else { format!("{}: ", quote::path(place)) };
            format!("{path}{}", ops_words(ops, Some(place)))
        }
        None => row.summary.clone(),
    };
    let arrow = if level == 0 { "" } else { "<- " };
    let why = node.because.as_ref().map_or(String::new(), |because| format!("   {}", because_words(because)));
    let stops = match &node.stops {
        Some(stops @ (Stops::Depth | Stops::Above | Stops::OtherAgent)) => {
            format!("   {}", stops_words(stops))
        }
        _ => String::new(),
    };
    lines.push(format!(
        "{pad}{arrow}tick {}  {}  {}  {what}{why}{stops}",
        node.tick, row.agent, row.type_name
    ));
    for input in &node.inputs {
        node_lines(trace, input, level + 1, lines)?;
    }
    if let Some(stops @ (Stops::Unknown | Stops::Nothing | Stops::Size)) = &node.stops {
        lines.push(format!("{pad}  {}", stops_words(stops)));
    }
    Ok(())
}

/// Returns what identifies a transition in these documents.
pub fn transition_json(trace: &Trace, tick: u64) -> Result<Vec<(&'static str, Value)>, dendrer::Error> {
    let record = trace.record(tick)?;
    let row = log::row(&record).to_json(&record);
    let take = |name: &'static str| (name, row.get(name).cloned().unwrap_or(Value::Null));
    Ok(["tick", "id", "type", "agent", "summary"].map(take).to_vec())
}

/// Returns operations as they are recorded.
pub fn ops_json(ops: &[Op]) -> Value {
    Delta(ops.to_vec()).to_value()
}

fn because_json(because: &Because) -> Value {
    let (how, place) = match because {
        Because::StoodThere => ("stood there", None),
        Because::Link(rel) => (rel.as_str(), None),
        Because::MayRead(place) | Because::MayReadWhole(place) => {
            ("may read", Some(("path", Value::from(place.as_str()))))
        }
    };
    let whole = matches!(because, Because::MayReadWhole(_)).then(|| ("whole", Value::from(true)));
    let place = place.into_iter().chain(whole);
    let members = [("how", Value::from(how)), ("certainty", Value::from(certainty(because)))];
    Value::record(members.into_iter().chain(place))
}

/// Returns a tree.
pub fn node_json(trace: &Trace, node: &Node) -> Result<Value, dendrer::Error> {
    let mut members = transition_json(trace, node.tick)?;
    if let Some((place, ops)) = &node.wrote {
        members.push(("path", Value::from(place.as_str())));
        members.push(("ops", ops_json(ops)));
    }
    if let Some(because) = &node.because {
        members.push(("because", because_json(because)));
    }
    let stops = node.stops.as_ref().map(|stops| match stops {
        Stops::Depth => "depth",
        Stops::Above => "above",
        Stops::OtherAgent => "other agent",
        Stops::Size => "size",
        Stops::Unknown => "unknown",
        Stops::Nothing => "nothing",
    });
    members.push(("stops", Value::from(stops)));
    let inputs = node.inputs.iter().map(|input| node_json(trace, input));
    members.push(("inputs", Value::array(inputs.collect::<Result<Vec<_>, _>>()?)));
    Ok(Value::record(members))
}

/// Writes what followed from an onset.
pub fn chain_lines(trace: &Trace, chain: &Chain) -> Result<Vec<String>, dendrer::Error> {
    let basis = match chain.rules {
        true => "links, and what the rules of the pack may read",
        false => "recorded links alone: what a delta read is not known",
    };
    let mut lines = vec![format!("CAUSAL CHAIN (heuristic)  by {basis}")];
    for member in &chain.members {
        let row = log::row(&trace.record(member.tick)?);
        let how = member.because.iter().map(|(tick, because)| format!("{tick} {}", because_words(because)));
        let how: Vec<String> = how.collect();
        let how = match (how.is_empty(), member.tick == chain.members[0].tick) {
            (_, true) => "the onset".to_owned(),
            (true, _) => "only comes after".to_owned(),
            (false, _) => format!("<- {}", how.join(", ")),
        };
        lines.push(format!("  tick {}  {}  {}   {how}", member.tick, row.type_name, row.summary));
    }
    if chain.more {
        lines.push("  (more follow; --chain-limit shows more)".to_owned());
    }
    Ok(lines)
}

/// Returns what followed from an onset.
pub fn chain_json(trace: &Trace, chain: &Chain) -> Result<Value, dendrer::Error> {
    let items = chain.members.iter().map(|member| {
        let mut members = transition_json(trace, member.tick)?;
        let because = member.because.iter().map(|(tick, because)| {
            let mut object = because_json(because).as_object().cloned().unwrap_or_default();
            object.set("tick", Value::from(*tick));
            Value::Object(object)
        });
        members.push(("because", Value::array(because)));
        members.push((
            "temporal",
            Value::from(member.because.is_empty() && member.tick != chain.members[0].tick),
        ));
        Ok(Value::record(members))
    });
    Ok(Value::record([
        ("certainty", Value::from(HEURISTIC)),
        ("reads", Value::from(if chain.rules { "rules" } else { "unknown" })),
        ("looked_to", Value::from(chain.looked_to)),
        ("more", Value::from(chain.more)),
        ("items", Value::array(items.collect::<Result<Vec<_>, dendrer::Error>>()?)),
    ]))
}
