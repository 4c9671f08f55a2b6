//! A run as a conversation: what was said, called, answered and decided, in the order of ticks.
//!
//! Each transition gives at least one item, and each refusal one: a chat, a thread of checkpoints, a chain and a recorded run
//! read alike.
//!
//! Rule: no transition of the range is left out; test `each_transition_is_in_the_transcript`.

use dendrer_kernel::sealed;
use dendrer_object::record::{Author, Kind, Record, Rel};
use dendrer_object::{MESSAGES, Value, json};

use crate::ask::log::LoggedRecord;
use crate::ask::thread::{ThreadPart, ThreadPlace};

pub mod question;

/// The types of a call and of its answer.
const REQUEST: &str = "action.request";
const RESULT: &str = "action.result";

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptKind {
    /// Words of a user, a model, a tool or a program.
    Message,
    /// A call.
    Call,
    /// The answer to a call.
    Result,
    /// A decision of a policy.
    Decision,
    /// A step of a graph without words.
    Step,
    /// A transition without words: it is there, and its changes are counted.
    Note,
    /// A part of the source that is missing.
    Gap,
    /// The origin of a fork or an import.
    Marker,
    /// An intent that was refused.
    Refusal,
}

impl TranscriptKind {
    /// The word for the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            TranscriptKind::Message => "message",
            TranscriptKind::Call => "call",
            TranscriptKind::Result => "result",
            TranscriptKind::Decision => "decision",
            TranscriptKind::Step => "step",
            TranscriptKind::Note => "note",
            TranscriptKind::Gap => "gap",
            TranscriptKind::Marker => "marker",
            TranscriptKind::Refusal => "refusal",
        }
    }
}

/// An item of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptItem {
    /// The tick; of a refusal the one that it was judged against.
    pub tick: u64,
    /// The kind.
    pub kind: TranscriptKind,
    /// The agent, if one is named.
    pub agent: Option<String>,
    /// Who speaks: `user`, `agent`, `tool`, `system`, `kernel` or `runtime`.
    pub role: &'static str,
    /// How many agents or graphs are around the one that speaks.
    pub depth: u64,
    /// The words; any value but a text as JSON.
    pub text: Option<String>,
    /// The text as a value, where it is an object or a list in JSON.
    pub json: Option<Value>,
    /// The tool, the node or the type.
    pub name: Option<String>,
    /// The id of the call.
    pub call_id: Option<String>,
    /// The parameters of a call.
    pub params: Option<Value>,
    /// The answer to a call.
    pub output: Option<Value>,
    /// The status of an answer, or a decision.
    pub status: Option<String>,
    /// The tick of the call that an answer is of.
    pub of: Option<u64>,
    /// The step of a graph.
    pub step: Option<i64>,
    /// How many places the transition wrote.
    pub changes: u64,
    /// How many anomalies it has.
    pub anomalies: u64,
}

/// Parts that all items of a record share.
struct Shared<'r> {
    record: &'r Record,
    content: Value,
    place: Option<&'r ThreadPlace>,
    of: Option<u64>,
    tick: u64,
}

/// Returns the items of a record, in order; at least one.
pub fn items(logged: &LoggedRecord, tick: u64) -> Vec<TranscriptItem> {
    let record = &logged.record;
    let answers = |rel: Rel, type_name: Option<&str>| rel == Rel::CausedBy && type_name == Some(REQUEST);
    let of = logged.links.iter().find_map(|(rel, _, linked)| {
        let linked = linked.as_ref()?;
        answers(*rel, linked.type_name.as_deref()).then_some(linked.tick)
    });
    let shared = Shared { record, content: record.content(), place: logged.thread.as_ref(), of, tick };
    let mut items = shared.items();
    if items.is_empty() {
        let kind = if logged.thread.is_some() { TranscriptKind::Step } else { TranscriptKind::Note };
        items.push(shared.item(kind));
    }
    items
}

impl Shared<'_> {
    fn text(&self, outer: &str, inner: &str) -> Option<&str> {
        self.content.get(outer)?.get(inner)?.as_str()
    }

    fn type_name(&self) -> Option<&str> {
        self.record.header().type_name.as_ref().map(|name| name.as_str())
    }

    /// Returns an item with what every item has.
    fn item(&self, kind: TranscriptKind) -> TranscriptItem {
        let agent = self.content.get("agent_id").and_then(Value::as_str).map(str::to_owned);
        let anomalies =
            self.content.get("anomalies").and_then(Value::as_array).map_or(0, |all| all.len() as u64);
        let (name, depth) = match self.place {
            Some(place) => {
                (Some(place.node()).filter(|node| !node.is_empty()), place.nodes.len().saturating_sub(1))
            }
            None => (self.type_name().map(str::to_owned), 0),
        };
        TranscriptItem {
            tick: self.tick,
            kind,
            agent,
            role: self.role(),
            depth: depth as u64,
            text: None,
            json: None,
            name,
            call_id: None,
            params: None,
            output: None,
            status: None,
            of: None,
            step: self.place.and_then(|place| place.step),
            changes: self.record.delta().map_or(0, |delta| delta.paths().count() as u64),
            anomalies,
        }
    }

    /// Returns who speaks.
    fn role(&self) -> &'static str {
        let header = self.record.header();
        if header.kind == Kind::Refusal || header.author == Author::Kernel {
            return "kernel";
        }
        if self.type_name() == Some(RESULT) {
            return "tool";
        }
        match (header.author, self.text("intent", "role")) {
            (_, Some("system" | "developer")) => "system",
            (Author::User, _) => "user",
            (Author::Runtime, _) => "runtime",
            (Author::Institution, _) => "user",
            _ => "agent",
        }
    }

    fn items(&self) -> Vec<TranscriptItem> {
        if self.record.header().kind == Kind::Refusal {
            let reason = self.content.get("reason");
            let words = reason.and_then(|reason| reason.get("message").or(Some(reason)));
            return vec![said(self.item(TranscriptKind::Refusal), words)];
        }
        let messages = self.content.get(MESSAGES).and_then(Value::as_array);
        let mut items: Vec<TranscriptItem> = messages
            .into_iter()
            .flat_map(|all| all.iter())
            .flat_map(|message| self.of_message(message))
            .collect();
        if let Some(place) = self.place {
            items.extend(self.of_place(place));
            return items;
        }
        items.extend(self.gap());
        items.extend(self.marker());
        let decision = self.text("policy", "decision");
        if self.type_name() == Some(RESULT) {
            items.push(self.result());
        } else {
            items.extend(self.words());
            items.extend(self.calls());
        }
        if let Some(decision) = decision.filter(|decision| items.is_empty() || *decision != "allow") {
            let notes = self.content.get("policy").and_then(|policy| policy.get("notes"));
            let item = said(self.item(TranscriptKind::Decision), notes);
            items.push(TranscriptItem { status: Some(decision.to_owned()), ..item });
        }
        if items.is_empty() {
            items.extend(self.anomaly());
        }
        items
    }

    /// The words of a transition.
    fn words(&self) -> Option<TranscriptItem> {
        let intent = self.content.get("intent")?;
        let is_said = |value: &&Value| **value != Value::Null && value.as_str() != Some("");
        let refusal = intent.get("extra").and_then(|extra| extra.get("refusal")).filter(is_said);
        let words =
            intent.get("content").filter(is_said).or_else(|| intent.get("description").filter(is_said));
        let words = words.or(refusal)?;
        Some(said(self.item(TranscriptKind::Message), Some(words)))
    }

    /// The calls of a transition: one, or several in one message.
    fn calls(&self) -> Vec<TranscriptItem> {
        let Some(action) = self.content.get("action") else { return Vec::new() };
        match action.get("calls").and_then(Value::as_array) {
            Some(calls) => calls.iter().map(|call| self.call(call)).collect(),
            None if action.get("tool").is_some() => vec![self.call(action)],
            None => Vec::new(),
        }
    }

    fn call(&self, call: &Value) -> TranscriptItem {
        TranscriptItem {
            name: call.get("tool").map(words_of),
            call_id: call.get("call_id").or_else(|| call.get("id")).map(words_of),
            params: call.get("params").cloned(),
            ..self.item(TranscriptKind::Call)
        }
    }

    /// The answer to a call.
    fn result(&self) -> TranscriptItem {
        let output = self.content.get("result").and_then(|result| result.get("output"));
        let item = said(self.item(TranscriptKind::Result), output);
        let named = |name: &str| self.content.get("action").and_then(|action| action.get(name)).map(words_of);
        TranscriptItem {
            name: named("tool").or(item.name.clone()),
            call_id: named("call_id"),
            output: output.cloned(),
            status: self.text("result", "status").map(str::to_owned),
            of: self.of,
            ..item
        }
    }

    fn gap(&self) -> Option<TranscriptItem> {
        let anomalies = self.content.get("anomalies").and_then(Value::as_array)?;
        let gap = anomalies.iter().find(|one| one.get("gap").and_then(Value::as_bool) == Some(true))?;
        let words = gap.get("message").or_else(|| gap.get("kind"));
        Some(said(self.item(TranscriptKind::Gap), words))
    }

    fn anomaly(&self) -> Option<TranscriptItem> {
        let anomaly = self.content.get("anomalies").and_then(Value::as_array)?.get(0)?;
        let kind = anomaly.get("kind").map(words_of);
        let words: Vec<String> = kind.into_iter().chain(sealed::words(anomaly)).collect();
        Some(said(self.item(TranscriptKind::Note), Some(&Value::from(words.join(": ")))))
    }

    /// The origin of a fork or an import.
    fn marker(&self) -> Option<TranscriptItem> {
        let of = |marker: &str, [run, tick, reason]: [&str; 3]| {
            let marker = self.content.get(marker)?;
            let from = format!("{}@{}", marker.get(run)?.as_str()?, marker.get(tick)?);
            let reason = marker.get(reason).and_then(Value::as_str).map(|reason| format!(": {reason}"));
            Some(format!("from {from}{}", reason.unwrap_or_default()))
        };
        let words = of("fork", ["parent_run_id", "parent_tick", "fork_reason"])
            .or_else(|| of("cherrypick", ["source_run_id", "source_tick", "import_reason"]))?;
        Some(said(self.item(TranscriptKind::Marker), Some(&Value::from(words))))
    }

    /// A message that a checkpoint added to its thread.
    fn of_message(&self, message: &Value) -> Vec<TranscriptItem> {
        let is = |name: &str| message.get(name).and_then(Value::as_bool) == Some(true);
        if is("repeated") {
            return Vec::new();
        }
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        let agent = message.get("agent").and_then(Value::as_str).map(str::to_owned);
        let role = match role {
            "user" | "human" => "user",
            "tool" => "tool",
            "system" | "developer" => "system",
            "assistant" | "ai" => "agent",
            _ => "runtime",
        };
        let item = |kind| TranscriptItem { role, agent: agent.clone(), ..self.item(kind) };
        let mut items = Vec::new();
        let content =
            message.get("content").filter(|said| **said != Value::Null && said.as_str() != Some(""));
        match message.get("result") {
            Some(result) => {
                let output = result.get("output").or(content);
                let named = |name: &str| result.get(name).map(words_of);
                items.push(TranscriptItem {
                    name: named("tool"),
                    call_id: named("call_id"),
                    output: output.cloned(),
                    status: named("status"),
                    ..said(item(TranscriptKind::Result), output)
                });
            }
            None => items.extend(content.map(|content| said(item(TranscriptKind::Message), Some(content)))),
        }
        let calls = message.get("calls").and_then(Value::as_array);
        for call in calls.into_iter().flat_map(|calls| calls.iter()) {
            items.push(TranscriptItem { role, agent: agent.clone(), ..self.call(call) });
        }
        items
    }

    /// The part of a thread that a record is.
    fn of_place(&self, place: &ThreadPlace) -> Vec<TranscriptItem> {
        let item = |words: &Value, status: &str| TranscriptItem {
            status: Some(status.to_owned()),
            ..said(self.item(TranscriptKind::Step), Some(words))
        };
        match &place.part {
            ThreadPart::Interrupt(asked) => asked.iter().map(|asked| item(asked, "interrupt")).collect(),
            ThreadPart::Answer(answer) => vec![item(answer, "resume")],
            ThreadPart::Error(error) => vec![item(error, "error")],
            ThreadPart::Checkpoint | ThreadPart::Writes(_) => Vec::new(),
        }
    }
}

/// Writes a name or an id: a text as it is.
fn words_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Adds the words of an item. The texts of a message in parts are joined; any other value is written as JSON.
fn said(item: TranscriptItem, words: Option<&Value>) -> TranscriptItem {
    let Some(words) = words.filter(|words| **words != Value::Null) else { return item };
    let part = |part: &Value| match part {
        Value::String(text) => Some(text.to_string()),
        part => {
            let kind = part.get("type")?.as_str()?;
            let text = part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str);
            Some(text.map_or_else(|| format!("[{kind}]"), str::to_owned))
        }
    };
    let parts: Option<Vec<String>> =
        words.as_array().filter(|parts| !parts.is_empty()).and_then(|parts| parts.iter().map(part).collect());
    match (words, parts) {
        (Value::String(text), _) => {
            let parsed = json::parse_door(text.as_bytes()).ok();
            let json = parsed.filter(|value| matches!(value, Value::Object(_) | Value::Array(_)));
            TranscriptItem { text: Some(text.to_string()), json, ..item }
        }
        (_, Some(parts)) => TranscriptItem { text: Some(parts.join("\n")), ..item },
        (other, None) => TranscriptItem { text: Some(other.to_string()), json: Some(other.clone()), ..item },
    }
}
