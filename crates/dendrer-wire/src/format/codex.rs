//! Rollout files of Codex: one line `{"timestamp", "type", "payload"}` after the other.
//!
//! A `response_item` is an item, and so is `compacted`; all else is kept with the next item. Events repeat items, but three things
//! are stated by them alone: the usage of a request, after its items; how a call ended, before or right after its output; and where
//! a turn ends. Older files have the items without the lines around them.
//!
//! Rule: a usage counts once. Items of the model wait for the usage of their request, which the last of them gets; a usage without
//! an item is an item.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::Read;

use dendrer::kernel::unknown::USAGE;
use dendrer_object::value::Object;
use dendrer_object::{Value, json};

use super::claude_code::lines_alone;
use super::openai_chat::Messages;
use crate::foreign::{Format, Head, Visit};
use crate::import::account::{ANY, Account, Of, Row, kept, names_speaker, read};
use crate::import::chat::{MESSAGE, Turn};
use crate::import::error::ImportError;
use crate::import::items::Around;
use crate::import::layout::Layout;
use crate::import::native::{self, Made, Native};
use crate::import::note::{At, ImportNote, NoteKind};
use crate::import::once::{Short, short};
use crate::import::outcome::Outcome;
use crate::import::scan::Sizes;
use crate::import::tokens;
use crate::import::transition::free_name;

/// The format.
pub(super) static CODEX: Format = Format {
    tables: || vec![("a line", LINE.to_vec()), ("an item", ITEM.to_vec())],
    sniff,
    shape: "lines with `timestamp`, `type` and `payload`",
    survey: lines_alone,
    items,
    ..Format::new("codex", "Rollout files of Codex", |_| Box::new(Messages::default()))
};

/// The members of a line.
static LINE: &[Row] = &[
    read("type", ANY, "the kind of the line"),
    kept("timestamp", ANY, "a time"),
    kept("ordinal", ANY, "a number"),
    read("payload", ANY, "the item"),
];

/// The members of a line whose item is of an unknown type.
fn line_of_unknown() -> &'static [Row] {
    &LINE[..3]
}

/// The members of an item.
static ITEM: &[Row] = &[
    read("type", ANY, "the kind of the item"),
    read("role", ANY, "who speaks"),
    read("author", ANY, "who speaks"),
    read("content", ANY, "the words"),
    read("message", ANY, "the words"),
    read("call_id", ANY, "the call"),
    read("name", ANY, "the tool"),
    read("arguments", &[Of::Model], "arguments"),
    read("input", &[Of::Model], "arguments"),
    read("action", &[Of::Model], "arguments"),
    read("output", &[Of::Result], "the output"),
    read("result", &[Of::Model], "the output"),
    kept("tools", &[Of::Result], "definitions"),
    read("status", ANY, "whether the call failed"),
    read("success", &[Of::Result], "whether the call failed"),
    kept("execution", ANY, "who runs the tool"),
    kept("replacement_history", ANY, "items that are there already"),
    kept("latest_token_usage_record", ANY, "a usage that is there already"),
    kept("recipient", ANY, "to whom"),
];

/// Types of lines that are no items.
const KEPT_TYPES: &[&str] = &[
    "session_meta",
    "turn_context",
    "event_msg",
    "token_usage_record",
    "world_state",
    "retained_context",
    "realtime_item",
    "inter_agent_communication_metadata",
];

/// Types of items that are no part of the conversation.
const KEPT_ITEMS: &[&str] = &["ghost_snapshot", "compaction_trigger"];

/// Beginnings of texts that the program writes under the role of a user.
const OF_PROGRAM: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "<hook_prompt",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<model_switch>",
];

/// How many outcomes are remembered for outputs that did not come yet.
const OUTCOMES_MAX: usize = 1_000;

/// Lines of an output that are searched for the status of its command.
const STATUS_LINES: usize = 8;

fn sniff(head: &Head<'_>) -> bool {
    let text = |line: &Object, name: &str| line.get(name).and_then(Value::as_str).is_some();
    let is_line = |line: &Object| {
        let kind = line.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_known = ["response_item", "compacted"].contains(&kind) || KEPT_TYPES.contains(&kind);
        is_known && line.get("payload").is_some_and(|payload| payload.as_object().is_some())
    };
    let is_older = || {
        let first = head.values.first().and_then(Value::as_object);
        first.is_some_and(|first| {
            ["id", "timestamp"].iter().all(|name| text(first, name))
                && first.contains_key("instructions")
                && !first.contains_key("role")
        })
    };
    // The first line may be longer than what is looked at.
    let start = head.bytes.get(..200).unwrap_or(head.bytes);
    let is_begun = || start.windows(21).any(|bytes| bytes == br#""type":"session_meta""#);
    head.any(is_line) || is_older() || (head.values.is_empty() && is_begun())
}

fn items(
    source: &mut dyn Read,
    layout: &Layout,
    hints: Sizes,
    visit: Visit<'_>,
) -> Result<Around, ImportError> {
    native::read(source, layout, hints, &mut Rollout::default(), visit)
}

/// A rollout as far as it is read.
#[derive(Debug, Default)]
struct Rollout {
    agent: Option<String>,
    /// Whether usage is stated by records, so that other statements repeat it.
    has_records: bool,
    responses: BTreeSet<Short>,
    /// Statements of another kind that were met, the newest total, and the tokens of the thread at the last that was counted.
    met: BTreeSet<Short>,
    counted: Option<Short>,
    thread: Thread,
    /// A usage without an item.
    usage: Option<Stated>,
    /// How calls ended whose outputs did not come yet, oldest first, and that of the newest line.
    outcomes: VecDeque<(String, bool)>,
    ended: Option<(String, bool)>,
    /// By the id of a call: the line of its item, what it asks for, and whether it is answered.
    called: HashMap<Short, (u64, Short, bool)>,
    /// The line at which waiting items are complete.
    closed: Option<Closed>,
}

/// A usage, and why it may not be all.
#[derive(Debug)]
struct Stated {
    usage: Value,
    note: Option<ImportNote>,
}

/// The tokens of a thread as far as they are stated: `None` is a statement without a number.
#[derive(Debug)]
struct Thread(Option<u64>);

impl Default for Thread {
    fn default() -> Thread {
        Thread(Some(0))
    }
}

impl Stated {
    /// Moves it to a message.
    fn give(self, turn: &mut Turn) {
        turn.message.set("usage", self.usage);
        turn.notes.extend(self.note);
    }
}

impl Thread {
    /// Takes in a total and the usage that it grew by. Returns whether it grew by something else; a total that is the usage begins
    /// anew.
    fn grows_by_other(&mut self, total: Option<&Value>, usage: &Value) -> bool {
        let number = |usage: &Value| tokens::of(usage.as_object()?, false).ok()??.as_u64();
        let Some(total) = total.map(number) else { return false };
        let before = std::mem::replace(&mut self.0, total);
        match (before, total, number(usage)) {
            (_, Some(total), Some(usage)) if total == usage => false,
            (Some(before), Some(total), Some(usage)) => before.checked_add(usage) != Some(total),
            _ => false,
        }
    }
}

/// Items that no later line completes.
#[derive(Debug, Clone, Copy)]
enum Closed {
    All,
    /// Those of lines before this one.
    Before(u64),
}

impl Native for Rollout {
    fn item(&mut self, line: &Object, at: At<'_>, account: &mut Account) -> Result<Vec<Turn>, ImportError> {
        let number = at.number.unwrap_or_default();
        let kind = text(line, "type").unwrap_or_default();
        let payload = line.get("payload").and_then(Value::as_object);
        let empty = Object::default();
        let mut notes = Vec::new();
        let mut turns = match (kind, payload) {
            ("response_item" | "compacted", Some(payload)) => {
                let kind = if kind == "compacted" { kind } else { text(payload, "type").unwrap_or_default() };
                if KEPT_ITEMS.contains(&kind) {
                    return Ok(Vec::new());
                }
                let table = if is_item(kind) { LINE } else { line_of_unknown() };
                account.item(table, Of::Model, line, &at, &mut notes);
                self.turns(kind, payload, line, at, account, &mut notes)
            }
            ("inter_agent_communication", Some(payload)) => {
                self.turns("agent_message", payload, line, at, account, &mut notes)
            }
            ("response_item" | "compacted", None) => {
                let found = line.get("payload").map_or("nothing", Value::described);
                let text = format!("the payload of a line is an object, not {found}");
                notes.push(ImportNote::new(NoteKind::MessageUnreadable, at, text));
                vec![other(line)]
            }
            (kind, _) if KEPT_TYPES.contains(&kind) => {
                return Ok(self.heard(kind, payload.unwrap_or(&empty), at).into_iter().collect());
            }
            // An older file has items without lines around them.
            (kind, None) if is_item(kind) => self.turns(kind, line, &empty, at, account, &mut notes),
            _ if line.contains_key("record_type") || line.contains_key("instructions") => {
                return Ok(Vec::new());
            }
            _ => {
                account.item(line_of_unknown(), Of::Model, line, &at, &mut notes);
                if notes.is_empty() {
                    return Ok(Vec::new());
                }
                vec![other(line)]
            }
        };
        let is_of_model = turns.iter().any(is_of_model);
        if let Some(usage) = self.usage.take() {
            match turns.iter_mut().find(|turn| is_of_model_without_usage(turn)) {
                Some(turn) => usage.give(turn),
                None => turns.insert(0, self.without_item(usage)),
            }
        }
        if kind == "compacted"
            || (!is_of_model && turns.iter().any(|turn| text(&turn.message, "role") != Some("tool")))
        {
            self.closed = Some(Closed::Before(number));
        }
        if let Some(first) = turns.first_mut() {
            first.notes.append(&mut notes);
        }
        Ok(turns)
    }

    fn complete(&mut self, made: &mut VecDeque<Made>) -> usize {
        // The usage of a request comes after its items.
        if let Some(usage) = self.usage.take() {
            let mut waiting = made.iter_mut().rev().filter(|made| is_of_model_without_usage(&made.turn));
            match waiting.next() {
                Some(last) => {
                    usage.give(&mut last.turn);
                    waiting.for_each(|made| made.turn.is_counted_elsewhere = true);
                }
                None => self.usage = Some(usage),
            }
        }
        if let Some((call, failed)) = self.ended.take() {
            let answers = |made: &&mut Made| {
                text(&made.turn.message, "role") == Some("tool")
                    && text(&made.turn.message, "tool_call_id") == Some(&call)
            };
            match made.iter_mut().rev().find(answers) {
                Some(made) => made.turn.outcome = Some(Outcome::Flag(failed)),
                None => {
                    self.outcomes.push_back((call, failed));
                    if self.outcomes.len() > OUTCOMES_MAX {
                        self.outcomes.pop_front();
                    }
                }
            }
        }
        let open = made.iter().position(|made| is_of_model_without_usage(&made.turn)).unwrap_or(made.len());
        let is_result = |made: &Made| text(&made.turn.message, "role") == Some("tool");
        let open = open.min(made.len() - usize::from(made.back().is_some_and(is_result)));
        match self.closed.take() {
            None => open,
            Some(Closed::All) => made.len(),
            Some(Closed::Before(number)) => {
                let before = made.iter().take_while(|made| made.number < number).count();
                before.max(open)
            }
        }
    }

    fn end(&mut self, _: &mut VecDeque<Made>) -> Option<Turn> {
        let usage = self.usage.take()?;
        Some(self.without_item(usage))
    }
}

impl Rollout {
    fn agent(&self) -> &str {
        self.agent.as_deref().unwrap_or("main")
    }

    /// A usage of which no item is there.
    fn without_item(&self, usage: Stated) -> Turn {
        let mut message = Object::default();
        message.set("role", Value::from("assistant"));
        message.set("name", Value::from(self.agent()));
        let mut turn = Turn { message, ..Turn::default() };
        usage.give(&mut turn);
        turn
    }

    /// Takes in a line that is no item. Returns an item for a usage that no item came for.
    fn heard(&mut self, kind: &str, payload: &Object, at: At<'_>) -> Option<Turn> {
        let event = text(payload, "type").unwrap_or_default();
        match (kind, event) {
            ("session_meta", _) => {
                self.agent.get_or_insert_with(|| agent_of(payload));
                None
            }
            ("turn_context", _)
            | (
                "event_msg",
                "task_started" | "task_complete" | "turn_started" | "turn_complete" | "turn_aborted",
            ) => {
                self.closed = Some(Closed::All);
                None
            }
            ("token_usage_record", _) => {
                self.has_records = true;
                let usage = payload.get("usage").filter(|usage| usage.as_object().is_some())?;
                let response = text(payload, "response_id").map(|id| short(id.as_bytes()));
                match response.is_none_or(|response| self.responses.insert(response)) {
                    true => {
                        let total = payload.get("thread_token_usage");
                        let place = format!("{at}/payload/thread_token_usage");
                        let note = self.thread.grows_by_other(total, usage).then(|| grown(place));
                        self.stated(usage.clone(), note)
                    }
                    false => None,
                }
            }
            ("event_msg", "token_count") if !self.has_records => {
                let info = payload.get("info").and_then(Value::as_object)?;
                let usage = info.get("last_token_usage").filter(|usage| usage.as_object().is_some())?;
                let total = info.get("total_token_usage");
                if !self.is_new(total.unwrap_or(usage), usage) {
                    return None;
                }
                let place = format!("{at}/payload/info/total_token_usage");
                let note = self.thread.grows_by_other(total, usage).then(|| grown(place));
                self.stated(usage.clone(), note)
            }
            ("event_msg", _) => {
                self.ended = ended(payload);
                None
            }
            _ => None,
        }
    }

    /// Takes in a total with the usage of the newest request; false if it was there already, or if the total is the one before.
    fn is_new(&mut self, total: &Value, usage: &Value) -> bool {
        let identity = |value: &Value| short(json::to_string(value).as_bytes());
        let is_same = self.counted.replace(identity(total)) == Some(identity(total));
        let pair = Value::array([total.clone(), usage.clone()]);
        self.met.insert(identity(&pair)) && !is_same
    }

    fn stated(&mut self, usage: Value, note: Option<ImportNote>) -> Option<Turn> {
        let before = self.usage.replace(Stated { usage, note })?;
        Some(self.without_item(before))
    }

    /// The messages of an item.
    fn turns(
        &mut self,
        kind: &str,
        payload: &Object,
        line: &Object,
        at: At<'_>,
        account: &mut Account,
        notes: &mut Vec<ImportNote>,
    ) -> Vec<Turn> {
        let prefix = account_item(kind, payload, line, at, account, notes);
        let taken = taken_of(kind, payload);
        let mut turn = Turn {
            message: rest(payload, line, taken),
            within: prefix.trim_end_matches('/'),
            ..Turn::default()
        };
        turn.answer = text(payload, "id").map(|id| format!("{kind} {id}"));
        let message = &mut turn.message;
        let set = |message: &mut Object, name: &str, value: Option<&Value>| {
            if let Some(value) = value {
                message.set(name, value.clone());
            }
        };
        let role = role_of(kind, payload);
        message.set("role", Value::from(role));
        if !matches!(role, "user" | "tool" | "developer" | "system" | "environment" | "") {
            message.set("name", Value::from(self.agent()));
        }
        match kind {
            "message" => {
                set(message, "content", payload.get("content"));
                turn.is_of_program = role == "user" && is_of_program(payload.get("content"));
            }
            "agent_message" => {
                set(message, "content", payload.get("content"));
                set(message, "name", payload.get("author").filter(|author| author.as_str().is_some()));
                turn.is_of_program = true;
            }
            "compacted" => set(message, "content", payload.get("message")),
            kind if kind.ends_with("_output") => return vec![self.output(payload, turn)],
            kind if kind.ends_with("_call") && is_item(kind) => {
                message.set("content", Value::Null);
                let asked = call(kind, payload);
                turn.repeats = self.called_again(&asked, payload, at.number.unwrap_or_default());
                message.set("tool_calls", Value::array([asked]));
                let result = answered(kind, payload).map(|result| Turn { within: turn.within, ..result });
                return [Some(turn), result].into_iter().flatten().collect();
            }
            _ => set(message, "content", payload.get("content")),
        }
        vec![turn]
    }

    /// Takes in a call, and returns the line of the item that it repeats: one of the same id and content that is answered.
    fn called_again(&mut self, asked: &Value, payload: &Object, number: u64) -> Option<u64> {
        let id = short(text(payload, "call_id")?.as_bytes());
        let content = short(json::to_string(asked).as_bytes());
        match self.called.get(&id) {
            Some((first, known, true)) if *known == content => Some(*first),
            _ => {
                self.called.insert(id, (number, content, false));
                None
            }
        }
    }

    /// The output of a call.
    fn output(&mut self, payload: &Object, mut turn: Turn) -> Turn {
        let output = payload.get("output");
        let call = payload.get("call_id");
        turn.is_output = true;
        for (name, value) in [("content", output), ("tool_call_id", call)] {
            if let Some(value) = value {
                turn.message.set(name, value.clone());
            }
        }
        let known = call.and_then(Value::as_str);
        if let Some(called) = known.and_then(|id| self.called.get_mut(&short(id.as_bytes()))) {
            called.2 = true;
        }
        let known = self.outcomes.iter().position(|(call, _)| Some(call.as_str()) == known);
        let known = known.and_then(|known| self.outcomes.remove(known));
        turn.outcome = match known {
            Some((_, failed)) => Some(Outcome::Flag(failed)),
            None => output.and_then(text_of).and_then(|text| stated_in(&text)),
        };
        turn
    }
}

/// The note of a total that did not grow by the usage of the newest request.
fn grown(place: String) -> ImportNote {
    let text = "the total of the thread did not grow by the usage that is stated with it";
    ImportNote::not_read(place, &[USAGE], text)
}

/// Accounts for the members of an item, and returns the path to it in its line.
fn account_item(
    kind: &str,
    payload: &Object,
    line: &Object,
    at: At<'_>,
    account: &mut Account,
    notes: &mut Vec<ImportNote>,
) -> &'static str {
    let of = match kind {
        "message" if text(payload, "role") == Some("assistant") => Of::Model,
        "message" | "agent_message" => Of::Outside,
        kind if kind.ends_with("_output") => Of::Result,
        _ => Of::Model,
    };
    let mut within = Account::default();
    let (prefix, place) = match line.is_empty() {
        true => ("", at.to_string()),
        false => ("payload/", format!("{at}/payload")),
    };
    if is_item(kind) {
        within.item(ITEM, of, payload, &place, notes);
    }
    account.add(prefix, within);
    prefix
}

/// The members of an item that have their place in a message.
fn taken_of(kind: &str, payload: &Object) -> &'static [&'static str] {
    match kind {
        "message" if payload.get("role").is_some_and(|role| role.as_str().is_some()) => &["role", "content"],
        "message" => &["content"],
        "agent_message" if text(payload, "author").is_some() => &["content", "author"],
        "compacted" => &["message"],
        "function_call" | "tool_search_call" => &["name", "arguments", "call_id"],
        "custom_tool_call" => &["name", "input", "call_id"],
        "local_shell_call" => &["action", "call_id"],
        "web_search_call" => &["action", "call_id"],
        "image_generation_call" => &["result", "call_id"],
        kind if kind.ends_with("_output") => &["output", "call_id"],
        _ => &["content"],
    }
}

/// The role of an item in a chat.
fn role_of<'p>(kind: &str, payload: &'p Object) -> &'p str {
    match kind {
        "message" => text(payload, "role").unwrap_or_default(),
        "agent_message" => "user",
        kind if kind.ends_with("_output") => "tool",
        kind if is_item(kind) => "assistant",
        _ => "environment",
    }
}

/// A text member that is not empty.
fn text<'o>(object: &'o Object, name: &str) -> Option<&'o str> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Whether a type is that of an item of the model, or of what reaches it.
fn is_item(kind: &str) -> bool {
    matches!(
        kind,
        "message"
            | "agent_message"
            | "reasoning"
            | "compacted"
            | "compaction"
            | "compaction_summary"
            | "context_compaction"
            | "function_call"
            | "function_call_output"
            | "custom_tool_call"
            | "custom_tool_call_output"
            | "mcp_tool_call_output"
            | "local_shell_call"
            | "local_shell_call_output"
            | "tool_search_call"
            | "tool_search_output"
            | "web_search_call"
            | "image_generation_call"
    )
}

fn is_of_model(turn: &Turn) -> bool {
    text(&turn.message, "role") == Some("assistant")
}

fn is_of_model_without_usage(turn: &Turn) -> bool {
    is_of_model(turn)
        && turn.repeats.is_none()
        && !turn.is_counted_elsewhere
        && !turn.message.contains_key("usage")
}

/// A line that is no item, as an observation.
fn other(line: &Object) -> Turn {
    let mut message = Object::default();
    message.set("role", Value::from("environment"));
    message.set("line", Value::Object(line.clone()));
    Turn { message, ..Turn::default() }
}

/// The agent of a thread: that of the user, or the name of another one.
fn agent_of(meta: &Object) -> String {
    let within = |value: &Value, name: &str| value.get(name).cloned();
    let source = meta.get("source").and_then(|source| within(source, "subagent"));
    let spawned = source.as_ref().and_then(|source| within(source, "thread_spawn"));
    let nickname = [
        meta.get("agent_nickname").cloned(),
        spawned.as_ref().and_then(|spawned| within(spawned, "agent_nickname")),
    ];
    let named = nickname.into_iter().flatten().find_map(|name| name.as_str().map(str::to_owned));
    let kind = source.as_ref().and_then(|source| match source {
        Value::String(kind) => Some(kind.to_string()),
        Value::Object(kinds) => kinds.iter().next().map(|(kind, _)| kind.to_string()),
        _ => None,
    });
    named.or(kind).filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "main".to_owned())
}

/// The members of an item that are in no other place, and those of its line. One that has the name of a member that is read in a
/// message is in `payload` or `line`.
fn rest(payload: &Object, line: &Object, taken: &[&str]) -> Object {
    let is_read = |name: &str| {
        MESSAGE.iter().any(|row| row.name == name && !matches!(name, "status" | "success" | "error"))
            || matches!(name, "lines" | "payload" | "line")
            || names_speaker(name).is_some()
    };
    let (mut message, mut of_payload, mut of_line) =
        (Object::default(), Object::default(), Object::default());
    for (name, value) in payload.iter().filter(|(name, _)| !taken.contains(&&***name)) {
        if is_read(name) { of_payload.set(name, value.clone()) } else { message.set(name, value.clone()) }
    }
    for (name, value) in line.iter() {
        match &**name {
            "type" | "payload" => {}
            name if is_read(name) || message.contains_key(name) => of_line.set(name, value.clone()),
            name => message.set(name, value.clone()),
        }
    }
    for (name, rest) in [("payload", of_payload), ("line", of_line)] {
        if !rest.is_empty() {
            message.set(&free_name(&message, name), Value::Object(rest));
        }
    }
    message
}

/// A call in the shape of a chat.
fn call(kind: &str, payload: &Object) -> Value {
    let id = payload.get("call_id").filter(|id| **id != Value::Null).or_else(|| payload.get("id")).cloned();
    let named = |name: &str| payload.get("name").cloned().unwrap_or_else(|| Value::from(name));
    let (name, arguments) = match kind {
        "custom_tool_call" => {
            let custom = [("name", payload.get("name")), ("input", payload.get("input"))];
            let custom = custom.into_iter().filter_map(|(name, value)| Some((name, value?.clone())));
            let call =
                [("custom", Some(Value::record(custom))), ("id", id), ("type", Some(Value::from("custom")))];
            return Value::record(call.into_iter().filter_map(|(name, value)| Some((name, value?))));
        }
        "local_shell_call" => (Value::from("local_shell"), payload.get("action")),
        "web_search_call" => (Value::from("web_search"), payload.get("action")),
        "image_generation_call" => (Value::from("image_generation"), None),
        "tool_search_call" => (named("tool_search"), payload.get("arguments")),
        _ => (payload.get("name").cloned().unwrap_or(Value::Null), payload.get("arguments")),
    };
    let call = [("arguments", arguments.cloned()), ("id", id), ("name", Some(name))];
    Value::record(call.into_iter().filter_map(|(name, value)| Some((name, value?))))
}

/// The result of a call that the service itself answers: it is stated with the call.
fn answered(kind: &str, payload: &Object) -> Option<Turn> {
    let name = match kind {
        "web_search_call" => "web_search",
        "image_generation_call" => "image_generation",
        _ => return None,
    };
    let status = payload.get("status").filter(|status| status.as_str() != Some("in_progress"));
    let result = payload.get("result").filter(|result| **result != Value::Null);
    if status.is_none() && result.is_none() {
        return None;
    }
    let id = payload.get("call_id").filter(|id| **id != Value::Null).or_else(|| payload.get("id"));
    let mut message = Object::default();
    message.set("role", Value::from("tool"));
    message.set("name", Value::from(name));
    for (name, value) in [("status", status), ("tool_call_id", id), ("content", result)] {
        if let Some(value) = value {
            message.set(name, value.clone());
        }
    }
    Some(Turn { message, is_output: true, ..Turn::default() })
}

/// The call that an event says has ended, and whether it failed.
fn ended(event: &Object) -> Option<(String, bool)> {
    let (about, id) = match text(event, "type")? {
        "item_completed" => {
            let item = event.get("item")?.as_object()?;
            (item, text(item, "call_id").or_else(|| text(item, "id"))?)
        }
        "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" | "dynamic_tool_call_response" => {
            (event, text(event, "call_id")?)
        }
        _ => return None,
    };
    let word = text(about, "status").and_then(|word| match word {
        "declined" => Some(true),
        word => dendrer::kernel::status::is_failure(word),
    });
    let result = about.get("result").and_then(|result| {
        let within = result.get("Ok").unwrap_or(result);
        let flag = ["isError", "is_error"].iter().find_map(|name| within.get(name)?.as_bool());
        if result.get("Err").is_some() { Some(true) } else { flag }
    });
    let code = about.get("exit_code").and_then(Value::as_f64).map(|code| code != 0.0);
    let success = about.get("success").and_then(Value::as_bool).map(|success| !success);
    let stated = [code, success, result, word];
    let failed = stated.iter().flatten().any(|failed| *failed);
    stated.iter().any(Option::is_some).then(|| (id.to_owned(), failed))
}

/// The text of an output, which may be in parts.
fn text_of(output: &Value) -> Option<Cow<'_, str>> {
    match output {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Array(parts) => parts.iter().map(|part| part.get("text")?.as_str()).collect(),
        _ => None,
    }
}

/// Whether the text of an output states how its command ended.
fn stated_in(output: &str) -> Option<Outcome> {
    let trimmed = output.trim_ascii();
    if trimmed.starts_with('{') && trimmed.contains("\"exit_code\"") {
        let parsed = json::parse_door(trimmed.as_bytes()).ok()?;
        let code = parsed.get("metadata")?.get("exit_code")?.as_f64()?;
        return Some(Outcome::Json(code != 0.0));
    }
    let lines = output.lines().take(STATUS_LINES).take_while(|line| line.trim() != "Output:");
    lines
        .filter_map(|line| {
            line.strip_prefix("Exit code: ").or(line.strip_prefix("Process exited with code "))
        })
        .find_map(|code| code.trim().parse::<i64>().ok())
        .map(|code| Outcome::Text(code != 0))
}

/// Whether a program wrote a message under the role of a user.
fn is_of_program(content: Option<&Value>) -> bool {
    let Some(content) = content else { return false };
    let parts = content.as_array().into_iter().flat_map(|parts| parts.iter());
    let text = content.as_str().or_else(|| parts.into_iter().find_map(|part| part.get("text")?.as_str()));
    text.is_some_and(|text| OF_PROGRAM.iter().any(|tag| text.trim_start().starts_with(tag)))
}
