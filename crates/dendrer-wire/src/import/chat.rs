//! Reads messages of a chat one by one: accounts for what is in them, takes them apart, and knows those that were there.
//!
//! Formats of other shapes hand their items on as such messages, so that all of them are read by one set of rules.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use dendrer::kernel::unknown::{CALLS, SPEAKERS, USAGE};
use dendrer_object::value::Object;
use dendrer_object::{Delta, Value, json};

use super::account::{self, ANY, Account, Of, Row, kept, read};
use super::error::ImportError;
use super::found::{Found, Gathered};
use super::items::Item;
use super::note::{At, ImportNote, NoteKind};
use super::once::{Again, Node, Once, Short, Tree, short};
use super::outcome::Outcome;
use super::parts::{self, Piece};
use super::tokens::Doubt;
use crate::foreign::Visit;

const MODEL: &[Of] = &[Of::Model];
const RESULT: &[Of] = &[Of::Result];

/// The members of a message of a chat.
pub(crate) static MESSAGE: &[Row] = &[
    read("role", ANY, "who speaks"),
    read("content", ANY, "the words, the parts, or the output of a tool"),
    read("parts", ANY, "the parts"),
    read("toolInvocations", ANY, "calls with their results"),
    read("name", ANY, "who speaks, or the tool"),
    read("tool_calls", ANY, "calls"),
    read("function_call", ANY, "a call"),
    read("usage", MODEL, "tokens and cost"),
    read("usage_metadata", MODEL, "tokens and cost"),
    read("token_usage", MODEL, "tokens and cost"),
    read("metrics", MODEL, "tokens and cost"),
    read("total_tokens", MODEL, "tokens"),
    read("totalTokenCount", MODEL, "tokens"),
    read("tokens_used", MODEL, "tokens"),
    read("tokens", MODEL, "tokens"),
    read("prompt_tokens", MODEL, "tokens"),
    read("completion_tokens", MODEL, "tokens"),
    read("input_tokens", MODEL, "tokens"),
    read("output_tokens", MODEL, "tokens"),
    read("cost_usd", MODEL, "cost"),
    read("total_cost", MODEL, "cost"),
    read("cost", MODEL, "cost"),
    read("tool_call_id", RESULT, "the call"),
    read("tool_call", RESULT, "the call"),
    read("error", RESULT, "whether the call failed"),
    read("is_error", RESULT, "whether the call failed"),
    read("isError", RESULT, "whether the call failed"),
    read("success", RESULT, "whether the call failed"),
    read("exit_code", RESULT, "whether the call failed"),
    read("status", RESULT, "whether the call failed"),
    read("agent", RESULT, "who asked"),
    read("agent_id", RESULT, "who asked"),
    kept("artifact", RESULT, "data of the tool"),
    kept("details", RESULT, "data of the tool"),
    kept("structuredContent", RESULT, "data of the tool"),
    kept("structured_content", RESULT, "data of the tool"),
    kept("tools", ANY, "definitions"),
    kept("functions", ANY, "definitions"),
    kept("tool_choice", ANY, "a setting"),
    kept("response_format", ANY, "a setting"),
    kept("repeated_calls", ANY, "calls of an earlier piece"),
];

/// The members of a message with those that libraries of models add.
pub(crate) static OF_LIBRARIES: LazyLock<Vec<Row>> = LazyLock::new(|| [MESSAGE, ADDED].concat());

static ADDED: &[Row] = &[
    kept("additional_kwargs", ANY, "a copy, or settings"),
    kept("response_metadata", ANY, "read where it states a usage"),
    kept("invalid_tool_calls", ANY, "read with the calls"),
    kept("tool_call_chunks", ANY, "a copy"),
    kept("finish_reason", ANY, "why it ends"),
    kept("generation_info", ANY, "why it ends"),
    kept("message", ANY, "a copy"),
    kept("logprobs", ANY, "a copy"),
    kept("audio", ANY, "a medium"),
    kept("content_blocks", ANY, "a copy"),
];

/// An item of another format as a message of a chat, with what no message states.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Role, content, calls, usage and all else, by the names of a chat; the rest is kept as `intent.extra`.
    pub(crate) message: Object,
    /// The id of the item, and of the one before it.
    pub(crate) id: Option<String>,
    pub(crate) parent: Option<String>,
    /// The id of the answer that it is a piece of.
    pub(crate) answer: Option<String>,
    /// The path in the item to the message; empty if the item is one.
    pub(crate) within: &'static str,
    /// The part of the message that it is.
    pub(crate) part: Option<(&'static str, u64)>,
    pub(crate) notes: Vec<ImportNote>,
    /// Whether a program wrote it under the role of a user.
    pub(crate) is_of_program: bool,
    /// A decision on a call, in place of a message: the member `policy`.
    pub(crate) decision: Option<Value>,
    /// Whether another agent than the one of the conversation made it: it goes with its parent, and makes no branch.
    pub(crate) is_aside: bool,
    /// The ids of its calls that may begin an agent.
    pub(crate) begins: Vec<String>,
    /// The id of the call that began the agent whose first item it is.
    pub(crate) begun_by: Option<String>,
    /// Whether the call that it answers failed, as far as its format states it elsewhere.
    pub(crate) outcome: Option<Outcome>,
    /// Whether the usage of its request is stated on another item.
    pub(crate) is_counted_elsewhere: bool,
    /// The number of an item before that it repeats, as far as its format finds that without an id.
    pub(crate) repeats: Option<u64>,
    /// Whether its content is the output of a tool: then parts of it are data, and no calls or results.
    pub(crate) is_output: bool,
    /// The change of state that it states.
    pub(crate) delta: Option<Delta>,
}

/// Reads the messages of one list.
pub(crate) struct ChatReader<'l> {
    table: &'static [Row],
    found: &'l Found,
    pub(crate) account: Account,
    once: Once,
    tree: Tree,
    calls: BTreeMap<Short, Vec<(Short, Short)>>,
    /// Whether ticks are no longer the numbers of messages, so that each transition states which it is.
    is_shifted: bool,
}

impl<'l> ChatReader<'l> {
    /// Begins to read messages with the members of this table.
    pub(crate) fn new(table: &'static [Row], found: &'l Found) -> ChatReader<'l> {
        ChatReader {
            table,
            found,
            account: Account::default(),
            once: Once::without(&found.void),
            tree: Tree::default(),
            calls: BTreeMap::new(),
            is_shifted: found.branch.is_some(),
        }
    }

    /// Ends the reading. `around` are the members around the list.
    pub(crate) fn end(self, around: Option<&Value>) -> Gathered {
        let branches = match &self.found.branch {
            None => self.tree.branches(around),
            Some(_) => None,
        };
        Gathered { places: self.account.places, void: self.once.void, branches }
    }

    /// Takes a message, and hands over what it becomes.
    pub(crate) fn take(&mut self, mut item: Item<'_>, visit: Visit<'_>) -> Result<(), ImportError> {
        let number = item.at.number.unwrap_or(u64::MAX);
        if self.is_beside(number) {
            return Ok(());
        }
        let Some(message) = item.value.as_object().cloned().filter(|_| !item.is_lost) else {
            if item.at.number.is_some() {
                self.tree.item(Node { number, ..Node::default() });
            }
            return visit(item);
        };
        let of = kind_of(&message);
        if item.at.number.is_some() {
            self.tree.message(&message, number, of == Of::Result, is_preamble(&item.value));
        }
        if is_preamble(&item.value) {
            return visit(item);
        }
        let mut notes = Vec::new();
        self.account.item(self.table, of, &message, &item.at, &mut notes);
        item.notes.append(&mut notes);
        let again = self.once.message(&message, None, number);
        self.message(message, item, again, false, visit)
    }

    /// Whether the item of a number is on another branch than the one that is read.
    fn is_beside(&self, number: u64) -> bool {
        self.found.branch.as_ref().is_some_and(|branch| !branch.items.contains(&number))
    }

    /// Hands over what an item of another format became.
    pub(crate) fn turn(
        &mut self,
        turn: Turn,
        at: At<'_>,
        size: usize,
        visit: Visit<'_>,
    ) -> Result<(), ImportError> {
        let number = at.number.unwrap_or(u64::MAX);
        if self.is_beside(number) {
            return Ok(());
        }
        self.is_shifted = true;
        let Turn { message, id, parent, answer, part, notes, is_of_program, decision, is_aside, .. } = turn;
        let (is_output, repeats) = (turn.is_output, turn.repeats);
        let key = |text: Option<String>| text.map(|text| short(text.as_bytes()));
        let (id, parent, answer) = (key(id), key(parent), key(answer));
        let is_result = kind_of(&message) == Of::Result || decision.is_some() || is_aside;
        let is_preamble = is_preamble_message(&message);
        let node = Node { number, id, parent, answer, is_result, is_aside, is_preamble };
        let node = Some(node).filter(|_| part.is_none_or(|(_, number)| number == 0));
        let at = At { within: turn.within, part, ..at };
        let mut item = Item::new(Value::Object(message.clone()), at, size);
        (item.notes, item.is_of_program, item.decision) = (notes, is_of_program, decision);
        (item.begins, item.begun_by, item.outcome) = (turn.begins, turn.begun_by, turn.outcome);
        (item.is_counted_elsewhere, item.delta) = (turn.is_counted_elsewhere, turn.delta);
        if is_preamble || item.decision.is_some() {
            node.into_iter().for_each(|node| self.tree.item(node));
            item.source = self.source(item.at);
            return visit(item);
        }
        let again = match repeats {
            Some(first) => (None, Again::Repeated(first)),
            None => self.once.message(&message, answer, number),
        };
        // An item that is there again goes with the one before it, and makes no branch.
        let is_again = matches!(again.1, Again::Repeated(_));
        let alone = |node: Node| if is_again { Node { number, ..Node::default() } } else { node };
        node.into_iter().for_each(|node| self.tree.item(alone(node)));
        self.message(message, item, again, is_output, visit)
    }

    fn message(
        &mut self,
        message: Object,
        mut item: Item<'_>,
        (id, again): (Option<Short>, Again),
        is_output: bool,
        visit: Visit<'_>,
    ) -> Result<(), ImportError> {
        let number = item.at.number.unwrap_or(u64::MAX);
        let of = kind_of(&message);
        (item.id, item.again) = (id, again);
        if let Again::Repeated(first) = again {
            let at = At { number: Some(first), part: None, ..item.at };
            let note = ImportNote::new(NoteKind::Repeated, item.at, format!("{at} has this id and content"));
            item.notes = vec![note.with("first", Value::from(at.to_string()))];
            item.source = self.source(item.at);
            return visit(item);
        }
        let mut notes = Vec::new();
        let kinds = [NoteKind::ParentMissing, NoteKind::ParentCycle];
        for (kind, numbers) in kinds.into_iter().zip(self.found.orphans.iter()) {
            if numbers.contains(&number) {
                let text = "the item that this one names before it is not there; the one before it in the file is taken";
                notes.push(ImportNote::new(kind, item.at, text));
            }
        }
        let before = notes.len();
        if !is_output {
            parts::account(&message, &item.at, &mut notes);
            parts::account_calls(&message, &item.at, &mut notes);
        }
        note_speakers(&message, of, item.at, &mut notes);
        note_totals(&message, of, item.at, &mut notes);
        let pieces = if is_output { None } else { parts::split(&message, of) };
        if pieces.is_none() {
            note_tags(&message, &item.at, &mut notes);
        }
        let whole = At { within: "", part: None, ..item.at };
        notes[before..].iter().for_each(|note| self.account.not_read(&whole, note));
        item.notes.append(&mut notes);
        match pieces {
            None => {
                item.source = self.source(item.at);
                if let Value::Object(message) = &mut item.value {
                    parts::words_in_content(message);
                }
                self.piece(&mut item);
                visit(item)
            }
            Some(pieces) => self.hand_over(pieces, item, visit),
        }
    }

    fn hand_over(&mut self, pieces: Vec<Piece>, item: Item<'_>, visit: Visit<'_>) -> Result<(), ImportError> {
        let single = pieces.len() == 1 && pieces[0].part.is_none();
        self.is_shifted |= !single;
        let (size, whole) = (item.size / pieces.len().max(1), item.at);
        let (mut notes, usage, again, is_of_program) =
            (item.notes, item.usage, item.again, item.is_of_program);
        for Piece { value, part, decision, is_counted_elsewhere } in pieces {
            let at = At { part, ..whole };
            let mut one = Item::new(value, at, size);
            one.notes = std::mem::take(&mut notes);
            (one.source, one.again, one.is_of_program) = (self.source(at), again, is_of_program);
            one.decision = decision;

            if part.is_none() {
                (one.id, one.usage) = (item.id, usage.clone());
                one.is_counted_elsewhere = is_counted_elsewhere || item.is_counted_elsewhere;
                (one.begins, one.begun_by) = (item.begins.clone(), item.begun_by.clone());
                let before = one.notes.len();
                one.value.as_object().into_iter().for_each(|said| note_tags(said, &whole, &mut one.notes));
                one.notes[before..].iter().for_each(|note| self.account.not_read(&whole, note));
                self.piece(&mut one);
            }
            visit(one)?;
        }
        Ok(())
    }

    /// The place of an item in its source, for the record of its transition.
    fn source(&self, at: At<'_>) -> Option<Value> {
        let number = at.number.filter(|_| self.is_shifted)?;
        let mut members = vec![("index", Value::from(number))];
        members.extend(at.part.map(|(_, part)| ("part", Value::from(part))));
        Some(Value::record(members))
    }

    /// Takes the calls out of a piece of an answer that an earlier piece has asked for.
    fn piece(&mut self, item: &mut Item<'_>) {
        let (Some(id), Value::Object(message)) = (item.id, &mut item.value) else { return };
        let Some(listed) = message.get("tool_calls").and_then(Value::as_array).cloned() else { return };
        let known = self.calls.entry(id).or_default();
        let (mut new, mut old) = (Vec::new(), Vec::new());
        for call in listed.iter() {
            let content = short(json::to_string(call).as_bytes());
            let Some(call_id) = call.get("id").and_then(Value::as_str).map(|id| short(id.as_bytes())) else {
                new.push(call.clone());
                continue;
            };
            match known.iter().find(|(known, _)| *known == call_id) {
                None => {
                    known.push((call_id, content));
                    new.push(call.clone());
                }
                Some((_, first)) => {
                    if *first != content {
                        let text = "a call of this id has other parameters in an earlier piece of the answer";
                        item.notes.push(ImportNote::not_read(
                            format!("{}/tool_calls", item.at),
                            &[CALLS],
                            text,
                        ));
                    }
                    old.push(call.clone());
                }
            }
        }
        set_calls(message, new, old);
    }
}

/// Leaves in a message the calls that are new, and moves those that are known aside.
pub(crate) fn set_calls(message: &mut Object, new: Vec<Value>, known: Vec<Value>) {
    if known.is_empty() {
        return;
    }
    match new.is_empty() {
        true => drop(message.remove("tool_calls")),
        false => message.set("tool_calls", Value::array(new)),
    }
    message.set("repeated_calls", Value::array(known));
}

/// The kind of a message in the table.
pub(crate) fn kind_of(message: &Object) -> Of {
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    match () {
        () if is_one_of(role, RESULTS) => Of::Result,
        () if role.is_empty() || is_one_of(role, OUTSIDE) => Of::Outside,
        () => Of::Model,
    }
}

/// Roles of what reaches an agent from outside. Any other role is an agent that speaks.
pub(crate) const OUTSIDE: &[&str] = &["user", "human", "system", "developer", "environment"];

/// Roles of messages that bring the result of a call.
pub(crate) const RESULTS: &[&str] = &["tool", "function"];

/// Whether a role is one of these, in small or capital letters.
pub(crate) fn is_one_of(role: &str, roles: &[&str]) -> bool {
    roles.iter().any(|known| known.eq_ignore_ascii_case(role))
}

/// Tells whether a message in front of all others belongs to the run and not to any tick.
pub(crate) fn is_preamble(item: &Value) -> bool {
    item.as_object().is_some_and(is_preamble_message)
}

fn is_preamble_message(message: &Object) -> bool {
    matches!(message.get("role").and_then(Value::as_str), Some("system" | "developer"))
}

/// Returns the member of a message that states who speaks, next to its role: a name, else what an id names; and another one that
/// states otherwise.
pub(crate) fn speaker(message: &Object) -> (Option<&str>, Option<&str>) {
    let own = message.get("name").and_then(Value::as_str).filter(|name| !name.trim().is_empty());
    let (mut named, mut ids): (Vec<&str>, Vec<&str>) = (own.into_iter().collect(), Vec::new());
    for (name, value) in message.iter() {
        let Some(text) = value.as_str().filter(|text| !text.trim().is_empty()) else { continue };
        // These names are the kernel's: such a member states something else.
        if ["kernel", "institution"].contains(&text) {
            continue;
        }
        match account::names_speaker(name) {
            Some(true) => ids.push(text),
            Some(false) => named.push(text),
            None => {}
        }
    }
    let all = if named.is_empty() { ids } else { named };
    let first = all.first().copied();
    (first, all.iter().copied().find(|other| Some(*other) != first))
}

fn note_speakers(message: &Object, of: Of, at: At<'_>, notes: &mut Vec<ImportNote>) {
    if of != Of::Result
        && let (Some(one), Some(other)) = speaker(message)
    {
        let text = format!("members of this message say that {one:?} and that {other:?} speaks");
        notes.push(ImportNote::not_read(at, &[SPEAKERS], text));
    }
}

/// Whether a member that holds calls holds none.
fn is_empty(calls: &Value) -> bool {
    *calls == Value::Null || calls.as_array().is_some_and(|calls| calls.is_empty())
}

/// Notes the tags in the texts of a message without calls.
fn note_tags(message: &Object, at: &At<'_>, notes: &mut Vec<ImportNote>) {
    let asks = |name: &str| message.get(name).is_some_and(|calls| !is_empty(calls));
    if asks("tool_calls") || asks("function_call") {
        return;
    }
    for list in parts::LISTS {
        if let Some(content) = message.get(list) {
            account::tags(content, kind_of(message), (at, list), notes);
        }
    }
}

/// Notes tokens that are not counted.
fn note_totals(message: &Object, of: Of, at: At<'_>, notes: &mut Vec<ImportNote>) {
    if of == Of::Model
        && let Some(Doubt { name, text, .. }) = super::usage::doubt_of(message)
    {
        notes.push(ImportNote::not_read(format!("{at}/{name}"), &[USAGE], text));
    }
}
