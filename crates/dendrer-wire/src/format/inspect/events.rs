//! Events of a sample as spans.
//!
//! The end of a span is kept with its begin, and the begin of the span of a tool with the call. Rule: the messages that a model was
//! given are those of `input`, or those that `input_refs` refers to, and never both.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use dendrer::kernel::unknown::{CALLS, FAILURES, USAGE};
use dendrer_object::value::Object;
use dendrer_object::{Delta, Value, json};

use super::shared::{Shared, references};
use super::state::{STORE, States, TASK};
use super::tables::{CHOICE, EVENT, OUTPUT};
use super::{Name, message};
use crate::import::account::{Account, Of, Row};
use crate::import::error::ImportError;
use crate::import::note::{At, ImportNote};
use crate::import::once::short;
use crate::import::spans::{self, Kind, Native, Span, Traces, Tree};
use crate::import::tokens;
use crate::import::transition::free_name;

/// Types of spans.
const AGENT: &str = "agent";
const TOOL: &str = "tool";
const SUBTASK: &str = "subtask";

/// Reads the events of a sample.
pub(super) struct Events {
    frame: Object,
    shared: Shared,
    pool: BTreeMap<&'static str, Value>,
    /// How many bytes the sample has.
    size: usize,
    events: Vec<(u64, Object)>,
}

impl Events {
    pub(super) fn new(
        frame: Object,
        shared: Shared,
        pool: BTreeMap<&'static str, Value>,
        size: usize,
    ) -> Events {
        Events { frame, shared, pool, size, events: Vec::new() }
    }
}

impl Native for Events {
    fn take(&mut self, value: &Object, numbers: &mut u64) -> bool {
        self.events.push((*numbers, value.clone()));
        *numbers += 1;
        true
    }

    fn end(self: Box<Self>, account: &mut Account) -> Result<Traces, ImportError> {
        let Events { frame, shared, pool, size, events } = *self;
        let outline = Outline::of(&events);
        let mut states = States::default();
        let mut spans = Vec::with_capacity(events.len());
        for at in 0..events.len() {
            if outline.merged.contains(&at) {
                if let Some(id) = text(&events[at].1, "id").filter(|_| kind(&events[at].1) == "span_begin") {
                    states.begin(id);
                }
                continue;
            }
            let span =
                Reader { events: &events, outline: &outline, shared: &shared, account }.span(at, &mut states);
            spans.push(span);
            shared.check()?;
            states.check(size)?;
        }
        let of_model = spans.iter().filter(|span: &&Span| span.kind == Kind::Model);
        let counted = of_model.filter_map(spans::tokens_of).fold(0, u64::saturating_add);
        if let Some(first) = spans.first_mut() {
            note_retries(&frame, &mut first.notes);
            first.notes.extend(note_sum(&frame, counted));
        }
        let meta = meta(&frame, &shared, &pool, &events);
        shared.check()?;
        let tree = outline.tree(&events);
        Ok(Traces { spans, meta, is_ordered: true, tree })
    }
}

/// Notes events of attempts before the one of the sample.
fn note_retries(frame: &Object, notes: &mut Vec<ImportNote>) {
    let retries = frame.get("error_retries").and_then(Value::as_array).cloned().unwrap_or_default();
    for (index, retry) in retries.iter().enumerate() {
        if retry.get("events").and_then(Value::as_array).is_some_and(|events| !events.is_empty()) {
            let text = "the events of an attempt before this one are kept and not read";
            let at = format!("/error_retries/{index}/events");
            notes.push(ImportNote::not_read(at, &[CALLS, FAILURES, USAGE], text));
        }
    }
}

/// Notes that the sample states more tokens than its events.
fn note_sum(frame: &Object, counted: u64) -> Option<ImportNote> {
    let of_models = frame.get("model_usage")?.as_object()?;
    let tokens = |usage: &Value| tokens::of(usage.as_object()?, false).ok()??.as_u64();
    let sum = of_models.iter().filter_map(|(_, usage)| tokens(usage)).fold(0, u64::saturating_add);
    let text = "the sample has more tokens than the calls of models among its events";
    (sum > counted).then(|| ImportNote::not_read("/model_usage", &[USAGE], text))
}

/// The members around the events, with the shared parts that no event has taken in.
fn meta(
    frame: &Object,
    shared: &Shared,
    pool: &BTreeMap<&'static str, Value>,
    events: &[(u64, Object)],
) -> Object {
    let mut meta = shared.members(frame, &[]);
    for name in ["events", "attachments", "events_data"] {
        meta.remove(name);
    }
    let mut needed = BTreeSet::new();
    let mut data = Object::default();
    for (name, list) in pool {
        let is_read = *name == "messages" && shared.used.borrow().messages.len() == shared.messages();
        if !is_read && list.as_array().is_some_and(|list| !list.is_empty()) {
            references(list, &mut needed);
            data.set(name, list.clone());
        }
    }
    events.iter().filter_map(|(_, event)| event.get("call")).for_each(|call| references(call, &mut needed));
    if !data.is_empty() {
        meta.set("events_data", Value::Object(data));
    }
    let used = &shared.used.borrow().attachments;
    let left = shared.attachments.iter().filter(|(name, _)| needed.contains(*name) || !used.contains(*name));
    let left: Object = left
        .map(|(name, text)| (dendrer_object::tag::stored_name(name), Value::String(Arc::clone(text))))
        .collect();
    if !left.is_empty() {
        meta.set("attachments", Value::Object(left));
    }
    meta
}

fn text<'o>(object: &'o Object, name: &str) -> Option<&'o str> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn kind(event: &Object) -> &str {
    text(event, "event").unwrap_or_default()
}

/// The spans of a sample, before its events are read.
#[derive(Default)]
struct Outline {
    /// The begin of each span, by its id: its place among the events.
    begins: HashMap<Name, usize>,
    /// By place: the end of a span, or the begin of the span of a tool, that is kept with another event.
    with: HashMap<usize, Vec<(&'static str, usize)>>,
    merged: BTreeSet<usize>,
    /// The ids of calls that models asked for.
    asked: BTreeSet<Name>,
}

impl Outline {
    fn of(events: &[(u64, Object)]) -> Outline {
        let mut outline = Outline::default();
        let mut waiting: HashMap<(Option<&str>, &str), VecDeque<usize>> = HashMap::new();
        for (at, (_, event)) in events.iter().enumerate() {
            match kind(event) {
                "span_begin" => {
                    let Some(id) = text(event, "id") else { continue };
                    outline.begins.entry(id.into()).or_insert(at);
                    if text(event, "type") == Some(TOOL) {
                        let key = (text(event, "parent_id"), text(event, "name").unwrap_or_default());
                        waiting.entry(key).or_default().push_back(at);
                    }
                }
                TOOL => {
                    let key = (text(event, "span_id"), text(event, "function").unwrap_or_default());
                    if let Some(begin) = waiting.get_mut(&key).and_then(VecDeque::pop_front) {
                        outline.merge(at, "span_begin", begin);
                    }
                }
                "model" => outline.asked.extend(asked(event)),
                _ => {}
            }
        }
        let owner: HashMap<usize, usize> =
            outline.with.iter().flat_map(|(at, with)| with.iter().map(|(_, begin)| (*begin, *at))).collect();
        for (at, (_, event)) in events.iter().enumerate().filter(|(_, (_, event))| kind(event) == "span_end")
        {
            let begin = text(event, "id").and_then(|id| outline.begins.get(id)).copied();
            let Some(begin) = begin.filter(|begin| *begin < at) else { continue };
            let owner = owner.get(&begin).copied().unwrap_or(begin);
            let is_first =
                outline.with.get(&owner).is_none_or(|with| with.iter().all(|(name, _)| *name != "span_end"));
            if is_first {
                outline.merge(owner, "span_end", at);
            }
        }
        outline
    }

    fn merge(&mut self, at: usize, name: &'static str, other: usize) {
        self.with.entry(at).or_default().push((name, other));
        self.merged.insert(other);
    }

    /// Whether a span, or one above it, is of a type.
    fn is_within(&self, events: &[(u64, Object)], span: Option<&str>, wanted: &str) -> bool {
        let mut span = span;
        for _ in 0..=self.begins.len() {
            let Some(begin) = span.and_then(|id| self.begins.get(id)) else { return false };
            let event = &events[*begin].1;
            if text(event, "type") == Some(wanted) {
                return true;
            }
            span = text(event, "parent_id");
        }
        false
    }

    /// The event before each event, by number, if the sample has branches: that of a branch begins at its anchor.
    fn tree(&self, events: &[(u64, Object)]) -> Tree {
        let branches: HashMap<&str, &str> = events
            .iter()
            .filter(|(_, event)| kind(event) == "branch")
            .filter_map(|(_, event)| {
                Some((text(event, "span_id")?, text(event, "from_anchor").unwrap_or_default()))
            })
            .collect();
        if branches.is_empty() {
            return Tree::default();
        }
        let mut anchors: HashMap<&str, u64> = HashMap::new();
        // The newest event of the line that is outside all branches, and of each branch.
        let mut newest: HashMap<Option<&str>, u64> = HashMap::new();
        let mut tree = Tree::default();
        for (at, (number, event)) in events.iter().enumerate().filter(|(at, _)| !self.merged.contains(at)) {
            let branch = self.branch_of(events, at, &branches);
            let before = match newest.get(&branch) {
                Some(before) => Some(Some(*before)),
                None => branch.map(|branch| anchors.get(branches[branch]).copied()),
            };
            tree.insert(*number, before);
            newest.insert(branch, *number);
            if let Some(anchor) = text(event, "anchor_id").filter(|_| kind(event) == "anchor") {
                anchors.entry(anchor).or_insert(*number);
            }
        }
        tree
    }

    /// The innermost span with a branch that an event is in.
    fn branch_of<'e>(
        &self,
        events: &'e [(u64, Object)],
        at: usize,
        branches: &HashMap<&'e str, &'e str>,
    ) -> Option<&'e str> {
        let event = &events[at].1;
        let own = if kind(event) == "span_begin" { "id" } else { "span_id" };
        let mut span = text(event, own);
        for _ in 0..=self.begins.len() {
            let id = span?;
            if branches.contains_key(id) {
                return Some(id);
            }
            span = text(&events[*self.begins.get(id)?].1, "parent_id");
        }
        None
    }
}

/// The ids of the calls in the answer of a model.
fn asked(event: &Object) -> Vec<Name> {
    let first = event.get("output").and_then(|output| output.get("choices")?.as_array()?.get(0));
    let calls = first.and_then(|first| first.get("message")?.get("tool_calls")?.as_array());
    let ids = calls.into_iter().flat_map(|calls| calls.iter()).filter_map(|call| call.get("id")?.as_str());
    ids.map(Arc::from).collect()
}

/// Reads one event.
struct Reader<'e, 'a> {
    events: &'e [(u64, Object)],
    outline: &'e Outline,
    shared: &'e Shared,
    account: &'a mut Account,
}

impl Reader<'_, '_> {
    fn span(&mut self, at: usize, states: &mut States) -> Span {
        let (number, event) = (&self.events[at].0, &self.events[at].1);
        let (place, kind) = (At::item("", *number).to_string(), kind(event));
        let of = match kind {
            "model" => Kind::Model,
            TOOL if !is_pending(event) => Kind::Tool,
            "span_begin" if text(event, "type") == Some(AGENT) => Kind::Agent,
            _ => Kind::Other,
        };
        let mut notes = Vec::new();
        let table = if kind == TOOL { Of::Result } else { of.of() };
        self.account.item(EVENT, table, event, &place, &mut notes);
        let is_asked = || text(event, "id").is_some_and(|id| self.outline.asked.contains(id));
        if kind == TOOL && of != Kind::Tool && !is_asked() {
            let text = "this call had not ended when the log was written, and no model asked for it";
            notes.push(ImportNote::not_read(&place, &[CALLS, FAILURES], text));
        }
        let is_begin = kind == "span_begin";
        let above = if is_begin { "parent_id" } else { "span_id" };
        let mut span = Span {
            number: *number,
            name: kind.to_owned(),
            id: text(event, if is_begin { "id" } else { "uuid" }).map(Arc::from),
            parent: text(event, above).map(Arc::from),
            trace: "sample".into(),
            order: Some((i128::from(*number), Arc::from(""))),
            kind: of,
            content: short(json::to_string(&Value::Object(event.clone())).as_bytes()),
            ..Span::default()
        };
        let without: &[&str] = match of {
            Kind::Model => &["call"],
            _ => &[],
        };
        let mut rest = self.shared.members(event, without);
        self.shared.note_missing(&place, &mut notes);
        match of {
            Kind::Model => self.model(&mut span, &mut rest, &place, &mut notes),
            Kind::Tool => {
                tool(&mut span, &rest);
                rest.remove("arguments");
                rest.remove("result");
            }
            Kind::Agent | Kind::Other => {
                span.name = words(&rest).unwrap_or(kind).to_owned();
                span.delta = self.delta(&rest, states);
            }
        }
        if of == Kind::Agent {
            span.agent = Some(span.name.as_str().into());
        }
        self.merge(at, &mut span, &mut rest);
        (span.notes, span.rest) = (notes, rest);
        span
    }

    /// Keeps the events that go with one in what is kept of it.
    fn merge(&self, at: usize, span: &mut Span, rest: &mut Object) {
        for (name, other) in self.outline.with.get(&at).into_iter().flatten() {
            let other = &self.events[*other].1;
            if *name == "span_begin" {
                span.id = text(other, "id").map(Arc::from);
            }
            rest.set(&free_name(rest, name), Value::Object(self.shared.members(other, &[])));
        }
    }

    fn model(&mut self, span: &mut Span, event: &mut Object, place: &str, notes: &mut Vec<ImportNote>) {
        span.inputs = match event.remove("input_refs").filter(|refs| *refs != Value::Null) {
            Some(refs) => {
                let at = format!("{place}/input_refs");
                let given = self.shared.inputs(&refs, &at, notes);
                span.said = given.iter().map(|(_, said)| *said).collect();
                given.into_iter().map(|(message, _)| message).collect()
            }
            None => {
                let listed = event.get("input").and_then(Value::as_array).cloned().unwrap_or_default();
                listed.iter().filter_map(Value::as_object).map(message).collect()
            }
        };
        event.remove("input");
        let of_role = text(event, "role")
            .filter(|_| !self.outline.is_within(self.events, span.parent.as_deref(), AGENT));
        span.agent = of_role.map(Arc::from);
        let Some(mut output) = event.get("output").and_then(Value::as_object).cloned() else { return };
        let at = format!("{place}/output");
        self.within("output/", OUTPUT, &output, &at, notes);
        let mut choices: Vec<Value> = output
            .get("choices")
            .and_then(Value::as_array)
            .into_iter()
            .flat_map(|list| list.iter().cloned())
            .collect();
        if let Some(Value::Object(first)) = choices.first_mut() {
            self.within("output/choices/*/", CHOICE, first, &format!("{at}/choices/0"), notes);
            span.says_calls = text(first, "stop_reason") == Some("tool_calls");
            if let Some(made) = first.remove("message") {
                let made = message(made.as_object().unwrap_or(&Object::default()));
                span.answer = text(&made, "id").map(str::to_owned);
                span.outputs = vec![made];
            }
        }
        for (index, choice) in choices.iter().enumerate().skip(1) {
            let asks = choice.get("message").and_then(|made| made.get("tool_calls"));
            if asks.and_then(Value::as_array).is_some_and(|calls| !calls.is_empty()) {
                let text = "the first answer of several is read, and this one asks for calls";
                notes.push(ImportNote::not_read(format!("{at}/choices/{index}"), &[CALLS], text));
            }
        }
        span.usage = output.get("usage").and_then(Value::as_object).cloned();
        if text(event, "cache") == Some("read") {
            // No model was called: the usage is that of the call whose answer was kept.
            span.answer = None;
            span.usage = Some([(Arc::from("total_tokens"), Value::from(0u64))].into_iter().collect());
        } else {
            output.remove("usage");
        }
        if !choices.is_empty() {
            output.set("choices", Value::array(choices));
        }
        event.set("output", Value::Object(output));
    }

    /// Accounts for the members of an object in an event.
    fn within(
        &mut self,
        prefix: &str,
        table: &[Row],
        object: &Object,
        at: &str,
        notes: &mut Vec<ImportNote>,
    ) {
        let mut within = Account::default();
        within.item(table, Of::Model, object, &at, notes);
        self.account.add(prefix, within);
    }

    /// The change of state that an event states.
    fn delta(&self, event: &Object, states: &mut States) -> Option<Delta> {
        let span = text(event, "span_id");
        let changes = || -> Vec<Value> {
            event
                .get("changes")
                .and_then(Value::as_array)
                .into_iter()
                .flat_map(|list| list.iter().cloned())
                .collect()
        };
        // A task of its own has a state of its own.
        let is_own = || self.outline.is_within(self.events, span, SUBTASK);
        let delta = match kind(event) {
            "sample_init" => states.init(event.get("state").unwrap_or(&Value::Null)),
            "state" if !is_own() => states.patch(TASK, span, &changes()),
            "store" if !is_own() => states.patch(STORE, span, &changes()),
            "span_begin" => {
                if let Some(id) = text(event, "id") {
                    states.begin(id);
                }
                return None;
            }
            "step" => {
                states.step(text(event, "action") == Some("begin"));
                return None;
            }
            _ => return None,
        };
        (!delta.is_empty()).then_some(delta)
    }
}

/// A call of a tool.
fn tool(span: &mut Span, event: &Object) {
    span.tool = text(event, "function").map(str::to_owned);
    span.call_id = text(event, "id").map(str::to_owned);
    span.params = event.get("arguments").filter(|params| **params != Value::Null).cloned();
    span.error = event.get("error").filter(|error| **error != Value::Null).cloned();
    span.output = event.get("result").cloned();
    span.failed = Some(is_failed(event));
}

fn is_failed(event: &Object) -> bool {
    event.get("error").is_some_and(|error| *error != Value::Null)
        || event.get("failed").and_then(Value::as_bool) == Some(true)
}

/// Whether a call had not ended when the log was written.
fn is_pending(event: &Object) -> bool {
    event.get("pending").and_then(Value::as_bool) == Some(true) && !is_failed(event)
}

/// The words of an event that is no call.
fn words(event: &Object) -> Option<&str> {
    match kind(event) {
        "span_begin" | "step" | "subtask" => text(event, "name"),
        "error" => event.get("error").and_then(|error| error.get("message")?.as_str()),
        "logger" => event.get("message").and_then(|message| message.get("message")?.as_str()),
        _ => None,
    }
}
