//! The largest writes up to an onset, and where their values were seen first, as documents and as lines.

use dendrer::ask::first_seen::{FirstSeen, MovedWrite, SeenValue};
use dendrer_object::document::As;
use dendrer_object::{Pointer, RunName, TypeName, Value, document};

use crate::answer::{Line, Style};
use crate::certainty::Certainty;
use crate::change::place_text;
use crate::layout::{columns, pad, pad_left};
use crate::verdict::list;
use crate::{change, count, quote, row, thousands};

document! {
    /// The members that say where the value of an onset or a write came from
    pub object FirstSeenMembers(found: &FirstSeen) {
        /// The writes with the largest change of a number to the places that were looked at, the largest first; three at most
        moved: Vec<MovedObject> = found.moved.iter().map(MovedObject::of).collect(),
        /// The values of these writes, or of the last write of a place without a number, each with the earliest transition that has an
        /// equal one
        first_seen: Vec<SeenObject> = found.seen.iter().map(SeenObject::of).collect(),
        /// The places and the ticks that moved and first_seen are about
        looked: LookedObject = LookedObject::of(found),
    }

    /// A write of a number
    pub object MovedObject(write: &MovedWrite) {
        let record = &write.record;
        /// The place
        place: &Pointer = &write.place,
        /// The tick
        tick: u64 = write.tick,
        /// The value before; absent if there was none
        before?: &Value = write.before.as_ref(),
        /// The value after
        after: &Value = &write.after,
        /// The change, in decimals as they are printed; null if the value before is no number, or not known
        change: Option<&Value> = write.change.as_ref(),
        /// The type of the transition
        type: Option<&TypeName> = record.header().type_name.as_ref(),
        /// The agent; null if the record names none
        agent: As<Option<String>> = As::new(record.body().value("/agent_id").unwrap_or(Value::Null)),
        /// The tool of the call; absent if the record names none
        tool?: As<String> = record.body().value("/action/tool").map(As::new),
    }

    /// A value, and the earliest transition that has an equal one
    pub object SeenObject(seen: &SeenValue) {
        let at = seen.at.as_ref();
        let record = at.and_then(|at| at.record.as_ref());
        /// The value
        value: &Value = &seen.value,
        /// The certainty
        certainty: ["heuristic"] = Certainty::Heuristic.as_str(),
        /// The tick of the transition; 0 is the state with which the run begins. Null if no transition up to the write has the value
        tick: Option<u64> = at.map(|at| at.tick),
        /// The place in the content of its record, through texts that hold JSON; in the state below /state
        path?: &Pointer = at.map(|at| &at.path),
        /// The type of the transition
        type?: &TypeName = record.and_then(|record| record.header().type_name.as_ref()),
        /// The agent of the transition
        agent?: As<String> =
            record.and_then(|record| record.body().value("/agent_id")).filter(|agent| agent.as_str().is_some()).map(As::new),
        /// The tool of the call that the place is part of
        tool?: &str = at.and_then(|at| at.tool.as_deref()),
        /// The object around the value if it has at most 140 characters of JSON, else the value
        within?: &Value = at.map(|at| &at.within),
        /// The number of further transitions up to the write that have the value
        others?: u64 = at.map(|at| at.others),
        /// The tick of the write
        write: u64 = seen.write,
        /// The place of the write
        place: &Pointer = &seen.place,
        /// The number of transitions before it, or up to the write, that have a value that was erased, withheld, redacted or not
        /// recorded
        unread: u64 = seen.unread,
    }

    /// The places and the ticks that were looked at
    object LookedObject(found: &FirstSeen) {
        /// The places
        places: &[Pointer] = &found.places,
        /// The broken rule that reads the places, for kernel.policy_compliant
        rule?: &str = found.rule.as_deref(),
        /// The number of writes of the places
        writes: u64 = found.writes,
        /// The number of ticks whose change was erased or withheld
        hidden: u64 = found.hidden,
        /// The first tick; 0 is the state with which the run begins
        from: u64 = found.from,
        /// The last tick
        to: u64 = found.upto,
        /// Whether every transition up to the last tick was looked at
        whole: bool = found.is_whole(),
    }
}

/// Writes the largest writes; nothing if none was of a number.
pub(crate) fn moved_lines(found: &FirstSeen) -> Vec<Line> {
    let [first, ..] = &found.moved[..] else { return Vec::new() };
    let several = found.moved.iter().any(|write| write.place != first.place);
    let rows: Vec<[String; 6]> = found.moved.iter().map(|write| moved_row(write, several)).collect();
    let widest = |at: usize| rows.iter().map(|row| columns(&row[at])).max().unwrap_or(0);
    let [tick, before, after, change, kind] = [0, 1, 2, 3, 4].map(widest);
    let lines = rows.iter().map(|row| {
        let cells = [
            format!("tick {}", pad_left(&row[0], tick)),
            format!("{} -> {}", pad_left(&row[1], before), pad(&row[2], after)),
            pad(&row[3], change),
            pad(&row[4], kind),
            row[5].clone(),
        ];
        let cells = cells.into_iter().filter(|cell| !cell.is_empty());
        Line::from(format!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end()))
    });
    let place = |place: &Pointer| match found.rule {
        Some(_) => place_text(place),
        None => format!("state.{}", place_text(place)),
    };
    let mut places: Vec<String> = Vec::new();
    for name in found.moved.iter().map(|write| place(&write.place)) {
        if !places.contains(&name) {
            places.push(name);
        }
    }
    let rule = found.rule.as_ref().map(|rule| format!(", which {} reads", quote::escape(rule)));
    let shown = found.moved.len();
    let head = format!(
        "  {shown} of {} to {}{}",
        thousands(found.writes),
        list(&places, 4).unwrap_or_default(),
        rule.unwrap_or_default()
    );
    let head = [Line::styled(Style::Strong, "LARGEST WRITES").then(head)];
    let hidden = (found.hidden > 0).then(|| {
        let ticks = count(found.hidden, "tick", "ticks");
        Line::styled(Style::Warn, format!("  not known: the writes of {ticks}, erased or withheld"))
    });
    head.into_iter().chain(lines).chain(hidden).collect()
}

/// The cells of a write: tick, both sides, the change, the type, and the tool or the agent.
fn moved_row(write: &MovedWrite, several: bool) -> [String; 6] {
    let row = row::row(&write.record);
    let tool = write.record.body().value("/action/tool");
    let tool = tool.as_ref().and_then(Value::as_str).map(quote::name);
    let change = write.change.as_ref().map(quote::value).unwrap_or_default();
    let sign = if change.is_empty() || change.starts_with('-') { "" } else { "+" };
    let place = if several { format!("  {}", place_text(&write.place)) } else { String::new() };
    [
        write.tick.to_string(),
        write.before.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value),
        quote::value(&write.after),
        format!("{sign}{change}"),
        row.type_name,
        format!("{}{place}", tool.unwrap_or(row.agent)),
    ]
}

/// Writes where each value was seen first; nothing if no value was looked for.
pub(crate) fn seen_lines(run: &RunName, found: &FirstSeen) -> Vec<Line> {
    if found.seen.is_empty() {
        return Vec::new();
    }
    let head = Line::styled(Style::Strong, "FIRST SEEN (heuristic)");
    let is_plain = |seen: &SeenValue| seen.at.is_none() && seen.unread == 0;
    let mut lines = Vec::new();
    if found.seen.iter().all(is_plain) {
        let values: Vec<String> = found.seen.iter().map(|seen| quote::value(&seen.value)).collect();
        let before = match &found.seen[..] {
            [one] => format!("not before tick {}", one.write),
            _ => "not before their own ticks".to_owned(),
        };
        lines.push(head.then(format!("  {}: {before}", values.join(", "))));
    } else {
        lines.push(head.then("  an equal value, earliest on record"));
        let widest = found.seen.iter().map(|seen| columns(&quote::value(&seen.value))).max().unwrap_or(0);
        let widest = widest.min(VALUE_MAX);
        lines.extend(found.seen.iter().flat_map(|seen| value_lines(run, seen, widest)));
    }
    if !found.is_whole() {
        let (from, to) = (thousands(found.from), thousands(found.upto));
        lines.push(Line::styled(Style::Warn, format!("  looked at ticks {from} to {to} alone")));
    }
    lines
}

/// The columns to which values are padded at most.
const VALUE_MAX: usize = 24;

fn value_lines(run: &RunName, seen: &SeenValue, widest: usize) -> Vec<Line> {
    let value = pad(&quote::value(&seen.value), widest);
    let deeper = " ".repeat(widest + 4);
    let Some(at) = &seen.at else {
        let unread = match seen.unread {
            0 => String::new(),
            unread => {
                let values = count(unread, "transition has a value", "transitions have values");
                format!(" in what can be read ({values} that cannot)")
            }
        };
        return vec![Line::from(format!("  {value}  not before tick {}{unread}", seen.write))];
    };
    let agent = at.record.as_ref().map(|record| row::row(record).agent).filter(|agent| !agent.is_empty());
    let of = match (&at.tool, agent) {
        (Some(tool), _) => format!(" of {}", quote::name(tool)),
        (None, Some(agent)) => format!(" by {agent}"),
        (None, None) => String::new(),
    };
    let more = change::whole_command(run, at.tick, None);
    let place = format!("  {value}  tick {}  {}{of}", at.tick, quote::path(&at.path));
    let mut lines = vec![Line::from(place).hang(widest + 6)];
    if at.within != seen.value {
        lines.push(Line::value(format!("{deeper}{}", quote::value(&at.within)), more));
    }
    if seen.unread > 0 {
        let earlier = count(seen.unread, "earlier transition has", "earlier transitions have");
        let text = format!("{deeper}{earlier} a value that cannot be read");
        lines.push(Line::styled(Style::Warn, text));
    }
    lines
}
