//! Threads of checkpoints: rows of a log, and messages of a model framework in few words.

use std::collections::BTreeSet;

use dendrer::ask::log::LoggedRecord;
use dendrer::ask::show::{PlaceChange, ShownWrites};
use dendrer::ask::thread::{ThreadPart, ThreadPlace, channel_of};
use dendrer_object::delta::{Action, Op};
use dendrer_object::value::Object;
use dendrer_object::{Pointer, Value, document};

use crate::answer::{Line, Page, Style};
use crate::layout::{columns, cut, pad, pad_left};
use crate::{contents, quote, row};

/// A row of the log of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadRow {
    tick: Option<u64>,
    step: Option<i64>,
    node: String,
    wrote: String,
    style: Option<Style>,
}

/// Reads a row off a record of a thread.
pub(crate) fn thread_row(item: &LoggedRecord) -> ThreadRow {
    let (tick, plain) = (item.record.header().tick, row::row(&item.record));
    let Some(place) = &item.thread else {
        let wrote = format!("{}  {}", plain.type_name, plain.summary).trim_end().to_owned();
        return ThreadRow { tick, step: None, style: plain.style(), node: plain.agent, wrote };
    };
    let style = match &place.part {
        ThreadPart::Error(_) => Some(Style::Bad),
        _ => plain.style(),
    };
    ThreadRow { tick, step: place.step, node: nodes(place), wrote: wrote(item, place), style }
}

/// Writes what a put or a write adds to its thread.
fn wrote(item: &LoggedRecord, place: &ThreadPlace) -> String {
    match &place.part {
        ThreadPart::Checkpoint => match &item.writes {
            Some(ShownWrites::Known(changes)) => channels(changes),
            Some(ShownWrites::Unknown { ops: Some(ops), .. }) => operations(ops),
            Some(ShownWrites::Unknown { ops: None, .. }) => "(erased or withheld)".to_owned(),
            None => operations(&item.record.delta().unwrap_or_default().0),
        },
        ThreadPart::Interrupt(asked) => {
            let asked: Vec<String> = asked.iter().map(value_words).collect();
            format!("INTERRUPT {}", asked.join(", "))
        }
        ThreadPart::Answer(answer) => format!("RESUME {}", value_words(answer)),
        ThreadPart::Error(error) => format!("ERROR {}", value_words(error)),
        ThreadPart::Writes(values) => {
            let shown = values.iter().filter(|(channel, _)| !channel.starts_with("branch:"));
            let words = shown.map(|(channel, value)| format!("{} {}", name(channel), value_words(value)));
            words.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Writes the channels that changed, by name.
fn channels(changes: &[PlaceChange]) -> String {
    let mut shown: Vec<(String, String)> = changes
        .iter()
        .filter(|change| change.before != change.after)
        .filter_map(|change| {
            let (_, channel) = channel_of(&change.path)?;
            let words = change_words(&name(&channel), change.before.as_ref(), change.after.as_ref());
            Some((channel, words))
        })
        .collect();
    shown.sort();
    shown.into_iter().map(|(_, words)| words).collect::<Vec<_>>().join(", ")
}

/// Writes operations on channels, of a state that is not known.
fn operations(ops: &[Op]) -> String {
    let words = ops.iter().filter_map(|op| {
        let (_, channel) = channel_of(&op.path)?;
        let name = name(&channel);
        Some(match (op.action, &op.value) {
            (Action::Append, Some(item)) => grown(&name, &[item]),
            (_, Some(value)) => format!("{name} {}", value_words(value)),
            (_, None) => format!("{name} removed"),
        })
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Writes a name as a place has it.
fn name(name: &str) -> String {
    let place = quote::path(&Pointer::of([name]));
    if quote::passes_for_a_word(&place) { format!("[{}]", quote::quoted(name)) } else { place }
}

/// Writes the nodes of a place. Words of dendrer in place of a node are in brackets; a node of such a name is quoted.
fn nodes(place: &ThreadPlace) -> String {
    place.nodes.iter().map(|node| node_words(node)).collect::<Vec<_>>().join(", ")
}

/// Writes a node, or the word in its place.
pub(crate) fn node_words(node: &str) -> String {
    match node.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(named) => quote::quoted(named),
        None if node.starts_with('(') && node.ends_with(')') => quote::escape(node),
        None => quote::name(node),
    }
}

/// Writes the change of a channel, or of a member of one.
fn change_words(place: &str, before: Option<&Value>, after: Option<&Value>) -> String {
    match (before, after) {
        (_, None) => format!("{place} removed"),
        (Some(Value::Number(before)), Some(Value::Number(after))) => {
            let [before, after] = [before, after].map(|number| quote::value(&Value::Number(number.clone())));
            format!("{place} {before} -> {after}")
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            let [before, after] = [before, after].map(|list| list.iter().collect::<Vec<&Value>>());
            list_words(place, &before, &after)
        }
        (None, Some(Value::Array(after))) if after.iter().any(|item| message_words(item).is_some()) => {
            grown(place, &after.iter().collect::<Vec<_>>())
        }
        (Some(Value::Object(before)), Some(Value::Object(now))) => match changed_members(before, now) {
            Some(changed) => {
                let of = |member: &String| {
                    let place = format!("{place}.{}", name(member));
                    change_words(&place, before.get(member), now.get(member))
                };
                changed.iter().map(of).collect::<Vec<_>>().join(", ")
            }
            None => format!("{place} {}", value_words(&Value::Object(now.clone()))),
        },
        (_, Some(after)) => format!("{place} {}", value_words(after)),
    }
}

/// Lists the members that changed; `None` if that is more than half of them, so that the whole object says it shorter.
fn changed_members(before: &Object, after: &Object) -> Option<Vec<String>> {
    let all: BTreeSet<&str> = before.iter().chain(after.iter()).map(|(name, _)| &**name).collect();
    let changed = all.iter().filter(|name| before.get(name) != after.get(name));
    let changed: Vec<String> = changed.map(|name| (*name).to_owned()).collect();
    (changed.len() * 2 <= all.len()).then_some(changed)
}

/// Writes the change of a list: how many items it gained or lost at an end, how many changed, or the whole of it.
fn list_words(place: &str, before: &[&Value], after: &[&Value]) -> String {
    if let Some(items) = after.strip_prefix(before) {
        return grown(place, items);
    }
    let lost = before.len().saturating_sub(after.len());
    if lost > 0 && (before.starts_with(after) || before.ends_with(after)) {
        return format!("{place} -{lost}");
    }
    let changed = before.iter().zip(after).filter(|(before, after)| before != after).count();
    if before.len() == after.len() && changed * 2 <= after.len() {
        return format!("{place} ~{changed}");
    }
    let list = Value::array(after.iter().map(|item| (*item).clone()));
    format!("{place} {}", quote::value(&list))
}

/// Writes the items that a list gained; messages in words.
fn grown(place: &str, items: &[&Value]) -> String {
    let messages: Vec<String> = items.iter().filter_map(|item| message_words(item)).collect();
    let gained = format!("{place} +{}", items.len());
    if messages.is_empty() { gained } else { format!("{gained} {}", messages.join("; ")) }
}

/// Writes a value on one line: a message, or a list of them, in words, anything else as JSON.
fn value_words(value: &Value) -> String {
    let list = value.as_array().filter(|list| !list.is_empty());
    let messages = list.and_then(|list| list.iter().map(message_words).collect::<Option<Vec<String>>>());
    let messages = messages.map(|messages| messages.join("; "));
    messages.or_else(|| message_words(value)).unwrap_or_else(|| quote::value(value))
}

/// Writes a message of a model framework: `ai: search_price {"item":"lamp"}`. `None` for any other value.
pub(crate) fn message_words(value: &Value) -> Option<String> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    if text(value, "type").as_deref() == Some("constructor") {
        return message_words(&constructed(value)?);
    }
    let kind = text(value, "type").filter(|kind| ["human", "ai", "system", "tool"].contains(&&**kind))?;
    let content = value.get("content")?;
    let mut parts = vec![format!("{kind}:")];
    let status = text(value, "status").filter(|status| kind == "tool" && status != "success");
    parts.extend(status.map(|status| quote::status(&status)));
    parts.extend(text(value, "name").filter(|name| !name.is_empty()).map(|name| quote::name(&name)));
    let calls =
        ["tool_calls", "invalid_tool_calls"].into_iter().filter_map(|name| value.get(name)?.as_array());
    let calls: Vec<String> = calls.flat_map(|calls| calls.iter()).map(call_words).collect();
    parts.extend((!calls.is_empty()).then(|| calls.join(", ")));
    let is_empty = content.as_str().is_some_and(str::is_empty)
        || content.as_array().is_some_and(|parts| parts.is_empty())
        || *content == Value::Null;
    parts.extend((!is_empty).then(|| contents::content_words(content)));
    Some(parts.join(" "))
}

/// The message that LangChain's own form of JSON names by its class.
fn constructed(value: &Value) -> Option<Value> {
    let class = value.get("id")?.as_array()?.iter().last()?.as_str()?.to_owned();
    let kind = class.strip_suffix("Chunk").unwrap_or(&class).strip_suffix("Message")?.to_lowercase();
    let mut members = value.get("kwargs")?.as_object()?.clone();
    members.set("type", Value::from(kind));
    Some(Value::Object(members))
}

/// Writes a call: the tool, then its arguments.
fn call_words(call: &Value) -> String {
    let tool = call.get("name").and_then(Value::as_str).map_or_else(|| "?".to_owned(), quote::name);
    let args = call.get("args").filter(|args| **args != Value::Null).map(quote::value);
    std::iter::once(tool).chain(args).collect::<Vec<_>>().join(" ")
}

/// The columns of the log of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadColumns {
    node: usize,
}

/// The least and the greatest width of the column of nodes.
const NODE: (usize, usize) = (16, 24);

impl ThreadColumns {
    /// The columns that these rows need.
    pub(crate) fn of(rows: &[ThreadRow], page: &Page) -> ThreadColumns {
        let widest =
            rows.iter().map(|row| columns(&page.spell(row.node.clone()))).max().unwrap_or(0).max(NODE.0);
        ThreadColumns { node: page.width.map_or(widest, |_| widest.min(NODE.1)) }
    }

    /// The heading.
    pub(crate) fn heading(self) -> Line {
        Line::styled(Style::Dim, self.texts("tick", "step", "node", "wrote"))
    }

    fn texts(self, tick: &str, step: &str, node: &str, wrote: &str) -> String {
        let node = pad(&cut(node, self.node), self.node);
        format!("{}  {}  {node}  {wrote}", pad_left(tick, 5), pad_left(step, 4)).trim_end().to_owned()
    }

    /// Returns a row as a line, and whether it was cut.
    pub(crate) fn line(self, row: &ThreadRow, page: &Page) -> (Line, bool) {
        let or_dash = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        let tick = or_dash(row.tick.map(|tick| tick.to_string()));
        let step = row.step.map(|step| step.to_string()).unwrap_or_default();
        let (node, wrote) = (page.spell(row.node.clone()), page.spell(row.wrote.clone()));
        let whole = self.texts(&tick, &step, &node, &wrote);
        let (text, is_cut) = match page.width.filter(|_| !page.full) {
            Some(width) => (cut(&whole, width), columns(&whole) > width),
            None => (whole, false),
        };
        (Line::of(row.style, text), is_cut)
    }
}

document! {
    /// The place of a transition in the graph of a thread
    pub(crate) object ThreadObject(place: &ThreadPlace) {
        /// The step that a checkpoint ends, or that a write is of; null if its checkpoint is missing
        step: Option<i64> = place.step,
        /// The nodes of the step, or the node that writes
        node: String = place.node(),
        /// The namespace, with the ids of its tasks
        namespace: &str = &place.namespace,
        /// The source of a checkpoint, as its metadata states it; null for a write
        source: Option<&str> = place.source.as_deref(),
        /// The nodes that follow a checkpoint; null for a write
        next: Option<Vec<String>> = place.next.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    fn value(text: &str) -> Value {
        parse_door(text.as_bytes()).unwrap()
    }

    #[test]
    fn messages_of_a_framework_are_read_in_few_words() {
        for (text, words) in [
            (
                r#"{"type":"ai","content":"","tool_calls":[{"name":"search_price","args":{"item":"lamp"},"id":"c"}]}"#,
                Some(r#"ai: search_price {"item":"lamp"}"#),
            ),
            (r#"{"type":"human","content":"Pay 3","id":"h1"}"#, Some(r#"human: "Pay 3""#)),
            (
                r#"{"type":"tool","content":"declined","name":"pay","status":"error"}"#,
                Some(r#"tool: FAIL error pay "declined""#),
            ),
            (
                r#"{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":[{"type":"text","text":"x"}]}}"#,
                Some(r#"ai: "x""#),
            ),
            (r#"{"type":"order","content":"x"}"#, None),
            (r#"{"type":"ai"}"#, None),
        ] {
            assert_eq!(message_words(&value(text)).as_deref(), words, "{text}");
        }
    }

    #[test]
    fn changes_of_channels_are_written_short() {
        for (before, after, words) in [
            ("32.5", "342.5", "c 32.5 -> 342.5"),
            (r#""a""#, r#""b""#, r#"c "b""#),
            ("[1]", "[1,2,3]", "c +2"),
            ("[1,2]", "[2]", "c -1"),
            ("[1,2,3]", "[1,5,3]", "c ~1"),
            ("[1,2]", "[3]", "c [3]"),
            (r#"{"a":1,"b":2}"#, r#"{"a":1,"b":2,"c":true}"#, "c.c true"),
            (r#"{"a":1,"b":2}"#, r#"{"a":2,"b":2}"#, "c.a 1 -> 2"),
            (r#"{"a":1,"b":2}"#, r#"{"a":2,"b":3}"#, r#"c {"a":2,"b":3}"#),
            (r#"[]"#, r#"[{"type":"human","content":"hi"}]"#, r#"c +1 human: "hi""#),
        ] {
            assert_eq!(change_words("c", Some(&value(before)), Some(&value(after))), words);
        }
        assert_eq!(change_words("c", None, Some(&value("[1]"))), "c [1]");
        assert_eq!(change_words("c", Some(&value("1")), None), "c removed");
    }
}
