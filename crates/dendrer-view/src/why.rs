//! Writes, trees of inputs and what followed, as lines and as documents.

use dendrer::ask::why::gather::{Backtracked, BacktrackedWrite, Records, WhyAnswer};
use dendrer::why::{Because, Chain, Stops, UpstreamRecord, WhyNode};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::{Pointer, Value};

use crate::answer::{Answer, End, Line, Page};
use crate::certainty::{Certainty, unknown_line, unknown_member};
use crate::change::{change_json, change_line};
use crate::verdict::list;
use crate::{count, document, quote, row};

/// The words for a delta without any other record of its inputs.
pub const UNKNOWN: &str =
    "inputs unknown: a delta says what it wrote, not what it read, and no link says more";

/// How sure it is that something is an input.
pub fn certainty(because: &Because) -> Certainty {
    match because {
        Because::StoodThere => Certainty::Exact,
        Because::Link(_) => Certainty::Recorded,
        Because::MayRead(_) | Because::MayReadWhole(_) => Certainty::Heuristic,
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

/// Returns the row of a tick; an empty one if its record is missing.
pub(crate) fn row_of(records: &Records, tick: u64) -> row::Row {
    records.get(&tick).map(row::row).unwrap_or_default()
}

/// Writes a tree, two blanks a level.
pub fn tree_lines(records: &Records, node: &WhyNode) -> Vec<String> {
    let mut lines = Vec::new();
    node_lines(records, node, 0, &mut lines);
    lines
}

fn node_lines(records: &Records, node: &WhyNode, level: usize, lines: &mut Vec<String>) {
    let pad = "  ".repeat(level);
    let row = row_of(records, node.tick);
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
        node_lines(records, input, level + 1, lines);
    }
    if let Some(stops @ (Stops::Unknown | Stops::Nothing | Stops::Size)) = &node.stops {
        lines.push(format!("{pad}  {}", stops_words(stops)));
    }
}

/// Returns what identifies a transition in these documents.
pub fn transition_json(records: &Records, tick: u64) -> Vec<(&'static str, Value)> {
    let row = records.get(&tick).map(|record| row::row(record).to_json(record)).unwrap_or_else(Value::object);
    let take = |name: &'static str| (name, row.get(name).cloned().unwrap_or(Value::Null));
    ["tick", "id", "type", "agent", "summary"].map(take).to_vec()
}

/// Returns operations as they are recorded.
pub fn ops_json(ops: &[Op]) -> Value {
    Delta(ops.to_vec()).written()
}

fn because_json(because: &Because) -> Value {
    let (how, place) = match because {
        Because::StoodThere => ("stood there", None),
        Because::Link(rel) => (rel.as_str(), None),
        Because::MayRead(place) | Because::MayReadWhole(place) => {
            ("may read", Some(("path", Value::from(place.written()))))
        }
    };
    let whole = matches!(because, Because::MayReadWhole(_)).then(|| ("whole", Value::from(true)));
    let place = place.into_iter().chain(whole);
    let members = [("how", Value::from(how)), ("certainty", Value::from(certainty(because)))];
    Value::record(members.into_iter().chain(place))
}

/// Returns a tree.
pub fn node_json(records: &Records, node: &WhyNode) -> Value {
    let mut members = transition_json(records, node.tick);
    if let Some((place, ops)) = &node.wrote {
        members.push(("path", Value::from(place.written())));
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
    members.push(("inputs", Value::array(node.inputs.iter().map(|input| node_json(records, input)))));
    Value::record(members)
}

/// Writes what followed from an onset.
pub fn chain_lines(records: &Records, chain: &Chain, width: Option<usize>) -> Vec<String> {
    let basis = match chain.rules {
        true => "links, and what the rules of the pack may read",
        false => "recorded links alone: what a delta read is not known",
    };
    let mut lines = vec![format!("CAUSAL CHAIN (heuristic)  by {basis}")];
    for member in &chain.members {
        let row = row_of(records, member.tick);
        let how = member.because.iter().map(|(tick, because)| format!("{tick} {}", because_words(because)));
        let how: Vec<String> = how.collect();
        let how = match (how.is_empty(), member.tick == chain.members[0].tick) {
            (_, true) => "the onset".to_owned(),
            (true, _) => "only comes after".to_owned(),
            (false, _) => format!("<- {}", how.join(", ")),
        };
        lines.push(format!("  tick {}  {}  {}   {how}", member.tick, row.type_name, row.summary));
        // The changes of the onset are shown with it.
        let is_onset = member.tick == chain.members[0].tick;
        match member.changes.as_ref().filter(|_| !is_onset) {
            Some(changes) => {
                lines.extend(changes.iter().map(|one| format!("      {}", change_line(one, width))))
            }
            None if is_onset => {}
            None => lines.push("      changes not known: a value was erased or withheld".to_owned()),
        }
    }
    if chain.more {
        lines.push("  (more follow; --chain-limit shows more)".to_owned());
    }
    lines
}

/// Writes what the recorded links of an onset lead back to.
pub fn upstream_lines(records: &Records, upstream: &[UpstreamRecord]) -> Vec<String> {
    let mut lines = Vec::new();
    for one in upstream {
        let row = row_of(records, one.tick);
        let by: Vec<String> = one.named_by.iter().map(|(tick, rel)| format!("{rel} of {tick}")).collect();
        lines.push(format!("  tick {}  {}  {}   {}", one.tick, row.type_name, row.summary, by.join(", ")));
    }
    if !lines.is_empty() {
        lines.insert(0, "UPSTREAM (recorded)  what the links of the onset lead back to".to_owned());
    }
    lines
}

/// Returns what the recorded links of an onset lead back to.
pub fn upstream_json(records: &Records, upstream: &[UpstreamRecord]) -> Value {
    Value::array(upstream.iter().map(|one| {
        let mut members = transition_json(records, one.tick);
        let named_by = one.named_by.iter().map(|(tick, rel)| {
            Value::record([("tick", Value::from(*tick)), ("link", Value::from(rel.as_str()))])
        });
        members.push(("named_by", Value::array(named_by)));
        Value::record(members)
    }))
}

/// Returns what followed from an onset.
pub fn chain_json(records: &Records, chain: &Chain) -> Value {
    let items = chain.members.iter().map(|member| {
        let mut members = transition_json(records, member.tick);
        let because = member.because.iter().map(|(tick, because)| {
            let mut object = because_json(because).as_object().cloned().unwrap_or_default();
            object.set("tick", Value::from(*tick));
            Value::Object(object)
        });
        members.push(("because", Value::array(because)));
        let changes = member.changes.as_ref().map(|changes| Value::array(changes.iter().map(change_json)));
        members.push(("changes", Value::from(changes)));
        members.push((
            "temporal",
            Value::from(member.because.is_empty() && member.tick != chain.members[0].tick),
        ));
        Value::record(members)
    });
    Value::record([
        ("certainty", Value::from(Certainty::Heuristic)),
        ("reads", Value::from(if chain.rules { "rules" } else { "unknown" })),
        ("looked_to", Value::from(chain.looked_to)),
        ("more", Value::from(chain.more)),
        ("items", Value::array(items)),
    ])
}

/// Whether a tree contains an input that nothing on record names.
fn guesses(node: &WhyNode) -> bool {
    matches!(node.because, Some(Because::MayRead(_) | Because::MayReadWhole(_)))
        || node.inputs.iter().any(guesses)
}

/// Notes ticks whose writes are not known; `None` if every write is known.
fn hidden_line(hidden: &[u64]) -> Option<Line> {
    let ticks = list(&hidden.iter().map(ToString::to_string).collect::<Vec<_>>(), 12)?;
    Some(format!("not known: what ticks {ticks} wrote was erased or withheld").into())
}

fn ticks_json(ticks: &[u64]) -> Value {
    Value::array(ticks.iter().map(|tick| Value::from(*tick)))
}

/// Cuts a line at the width of the page, without a note that it was cut.
fn shortened(page: &Page, line: &str) -> Line {
    page.width.map_or_else(|| line.to_owned(), |width| quote::shorten(line, width)).into()
}

impl Answer for WhyAnswer {
    fn document(&self) -> Value {
        let root = self.why.root.as_ref();
        let certainty = if root.is_some_and(guesses) { Certainty::Heuristic } else { Certainty::Recorded };
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("tick", Value::from(self.tick)),
            ("path", Value::from(self.path.written())),
            ("followed", Value::from(self.followed.written())),
            ("there", Value::from(self.value.is_some())),
            ("value", Value::from(self.value.clone())),
            ("root", Value::from(root.map(|root| node_json(&self.records, root)))),
            ("hidden", ticks_json(&self.why.hidden)),
            ("reads", Value::from(if self.why.rules { "rules" } else { "unknown" })),
            ("certainty", Value::from(certainty.unless(!self.unknown.is_empty()))),
        ];
        document("why", members.into_iter().chain(unknown_member(&self.unknown)))
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let (path, followed) = (quote::path(&self.path), quote::path(&self.followed));
        let shown = self.value.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value);
        let place = format!("{path} at {}@{}   {shown}{}", self.run, self.tick, page.of_run(&self.run));
        let mut lines = vec![Line::from(place)];
        match &self.why.root {
            Some(root) => {
                lines.extend(tree_lines(&self.records, root).iter().map(|line| shortened(page, line)));
            }
            None => lines.push("no transition wrote it: the run began with it".into()),
        }
        if self.followed != self.path {
            let line = format!(
                "{path} stands in the list {followed}: the last write that changed what stands there is shown"
            );
            lines.push(line.into());
        }
        lines.extend(hidden_line(&self.why.hidden));
        lines.extend(unknown_line(&self.unknown));
        lines.push(Line::note(
            "note: that a transition wrote is exact; what it rested on is as sure as each line says",
        ));
        lines
    }

    fn end(&self) -> End {
        let is_known = self.why.hidden.is_empty() && self.unknown.is_empty();
        if is_known { End::Answered } else { End::Unknown }
    }
}

impl Answer for Backtracked {
    fn document(&self) -> Value {
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("path", Value::from(self.path.written())),
            ("followed", Value::from(self.followed.written())),
            ("from", Value::from(self.range.0)),
            ("to", Value::from(self.range.1)),
            ("total", Value::from(self.total as u64)),
            ("hidden", ticks_json(&self.hidden)),
            ("nameless", ticks_json(&self.nameless)),
            ("certainty", Value::from(Certainty::Exact.unless(!self.unknown.is_empty()))),
            ("items", Value::array(self.writes.iter().map(|write| write_json(&self.records, write)))),
        ];
        document("backtrack", members.into_iter().chain(unknown_member(&self.unknown)))
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut lines = write_lines(self, page);
        if self.followed != self.path {
            let (path, followed) = (quote::path(&self.path), quote::path(&self.followed));
            lines.push(format!("{path} stands in a list, so every write of {followed} is listed").into());
        }
        let all = count(self.total as u64, "write", "writes");
        let shown = self.writes.len();
        let writes = match self.total == shown {
            true => all,
            false => format!("{shown} of {all} (use -n 0 for all)"),
        };
        let (from, to) = self.range;
        let ticks = count((to + 1).saturating_sub(from), "tick", "ticks");
        lines.push(format!("{writes} in {ticks}{}", page.of_run(&self.run)).into());
        lines.extend(hidden_line(&self.hidden));
        let nameless: Vec<String> = self.nameless.iter().map(ToString::to_string).collect();
        if let Some(ticks) = list(&nameless, 12) {
            let line = format!(
                "not known: whose writes those at ticks {ticks} are; the agent was erased or withheld"
            );
            lines.push(line.into());
        }
        lines.extend(unknown_line(&self.unknown));
        lines
    }

    fn end(&self) -> End {
        let is_known = self.hidden.is_empty() && self.nameless.is_empty() && self.unknown.is_empty();
        if is_known { End::Answered } else { End::Unknown }
    }
}

/// Writes each write with what it did, its columns lined up, and its inputs below it.
fn write_lines(found: &Backtracked, page: &Page) -> Vec<Line> {
    let rows: Vec<(&BacktrackedWrite, row::Row)> =
        found.writes.iter().map(|write| (write, row_of(&found.records, write.tick))).collect();
    let widest =
        |size: &dyn Fn(&(&BacktrackedWrite, row::Row)) -> usize| rows.iter().map(size).max().unwrap_or(0);
    let ticks = widest(&|(write, _)| write.tick.to_string().len());
    let agents = widest(&|(_, row)| row.agent.chars().count());
    let types = widest(&|(_, row)| row.type_name.len());
    let side = |value: &Option<Value>| value.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value);
    let mut lines = Vec::new();
    for (write, row) in &rows {
        let what = match &write.sides {
            Some((before, after)) => format!("{} -> {}", side(before), side(after)),
            None => ops_words(&write.ops, Some(&found.followed)),
        };
        let (tick, agent, type_name) = (write.tick, &row.agent, &row.type_name);
        let line = format!("  tick {tick:>ticks$}  {agent:<agents$}  {type_name:<types$}  {what}");
        lines.push(shortened(page, &line));
        let Some(mut node) = write.inputs.clone() else { continue };
        // Only one step is listed here; `why` shows the rest.
        node.inputs.iter_mut().for_each(|input| input.stops = None);
        let inputs = tree_lines(&found.records, &node).into_iter().skip(1);
        lines.extend(inputs.map(|line| Line::from(format!("      {line}"))));
    }
    lines
}

fn write_json(records: &Records, write: &BacktrackedWrite) -> Value {
    let mut members = transition_json(records, write.tick);
    members.push(("ops", ops_json(&write.ops)));
    if let Some((before, after)) = &write.sides {
        let sides = [("before", before), ("after", after)];
        members.extend(sides.into_iter().filter_map(|(name, side)| Some((name, side.clone()?))));
    }
    if let Some(inputs) = &write.inputs {
        let node = node_json(records, inputs);
        let take = |name: &'static str| (name, node.get(name).cloned().unwrap_or(Value::Null));
        members.extend(["inputs", "stops"].map(take));
    }
    Value::record(members)
}
