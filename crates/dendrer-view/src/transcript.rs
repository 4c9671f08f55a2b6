//! A run as a conversation, as lines and as a document.

use std::collections::BTreeSet;

use dendrer::ask::transcript::question::TranscriptReply;
use dendrer::ask::transcript::{TranscriptItem, TranscriptKind};
use dendrer_object::{RunName, Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::{count, quote, thousands};

document! {
    /// A run as a conversation
    pub object TranscriptDocument: "transcript" reads (reply: &TranscriptReply) {
        /// The run
        run: &RunName = reply.trace.name(),
        /// The number of transitions of the range
        total: u64 = reply.total,
        /// The tick at which the next part begins; null if this is the last one
        next: Option<u64> = reply.next,
        /// The items, in the order of ticks
        items: Vec<TranscriptItemObject> = reply.items.iter().map(TranscriptItemObject::of).collect(),
    }

    /// A message, a call, an answer, a decision or a step
    object TranscriptItemObject(item: &TranscriptItem) {
        /// The tick; of a refusal the one that it was judged against
        tick: u64 = item.tick,
        /// The kind
        kind: ["message" | "call" | "result" | "decision" | "step" | "note" | "gap" | "marker" | "refusal"] =
            item.kind.as_str(),
        /// The agent; null if none is named
        agent: Option<&str> = item.agent.as_deref(),
        /// The speaker
        role: ["user" | "agent" | "tool" | "system" | "kernel" | "runtime"] = item.role,
        /// The number of agents or graphs around the one that speaks
        depth: u64 = item.depth,
        /// The words; any value but a text as JSON
        text: Option<&str> = item.text.as_deref(),
        /// The words as a value, where they are an object or a list in JSON; else null
        json: Value = item.json.clone().unwrap_or(Value::Null),
        /// The tool, the node or the type
        name: Option<&str> = item.name.as_deref(),
        /// The id of the call
        call_id: Option<&str> = item.call_id.as_deref(),
        /// The parameters of a call; null for anything else
        params: Value = item.params.clone().unwrap_or(Value::Null),
        /// The answer to a call; null for anything else
        output: Value = item.output.clone().unwrap_or(Value::Null),
        /// The status of an answer, or a decision
        status: Option<&str> = item.status.as_deref(),
        /// The tick of the call that an answer is of
        of: Option<u64> = item.of,
        /// The step of a graph
        step: Option<i64> = item.step,
        /// The number of places that the transition wrote
        changes: u64 = item.changes,
        /// The number of anomalies of the transition
        anomalies: u64 = item.anomalies,
    }
}

impl Answer for TranscriptReply {
    fn document(&self) -> Value {
        TranscriptDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines: Vec<Line> = vec![
            format!("{}   {}", self.trace.name(), count(self.total, "transition", "transitions")).into(),
        ];
        let ticks = self.items.iter().map(|item| item.tick.to_string().len()).max().unwrap_or(1);
        let several = several_calls(&self.items);
        lines.extend(self.items.iter().map(|item| item_line(item, ticks, &several)));
        if let Some(next) = self.next {
            let run = self.trace.name().as_str();
            lines.push(Line::help(["dendrer", "log", run, "--transcript", "--from", &next.to_string()]));
        }
        lines
    }
}

/// Returns the ticks that have several calls: a tick alone does not name one of them.
pub(crate) fn several_calls(items: &[TranscriptItem]) -> BTreeSet<u64> {
    let calls = items.iter().filter(|item| item.kind == TranscriptKind::Call);
    let ticks: Vec<u64> = calls.map(|call| call.tick).collect();
    ticks.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
}

/// Names the speaker of an item. The user of a chat is an agent of that name; any other agent of a name that reads like a word
/// is in quotes.
pub(crate) fn speaker(item: &TranscriptItem) -> String {
    let agent = item.agent.as_deref().filter(|agent| *agent != item.role);
    agent.map_or_else(|| item.role.to_owned(), quote::name)
}

/// Names the call of an item: its id where the tick has several, and the tick of the call that an answer is of.
pub(crate) fn call_words(item: &TranscriptItem, several: &BTreeSet<u64>) -> Option<String> {
    let id = item.call_id.as_deref().map(quote::name);
    match (item.of, id) {
        (Some(tick), Some(id)) if several.contains(&tick) => {
            Some(format!("(of tick {}, call {id})", thousands(tick)))
        }
        (Some(tick), _) => Some(format!("(of tick {})", thousands(tick))),
        (None, Some(id)) if several.contains(&item.tick) => Some(format!("(call {id})")),
        (None, _) => None,
    }
}

/// Writes an item: tick, speaker, and what it is.
fn item_line(item: &TranscriptItem, ticks: usize, several: &BTreeSet<u64>) -> Line {
    let agent = speaker(item);
    let mut words = vec![format!("{:>ticks$}  {}{agent}", item.tick, "  ".repeat(item.depth as usize))];
    let is_named = !matches!(item.kind, TranscriptKind::Message);
    words.push(item.kind.as_str().to_owned());
    words.extend(item.step.map(|step| format!("step {step}")));
    words.extend(item.status.as_deref().map(quote::escape).map(String::from));
    words.extend(item.name.as_deref().filter(|_| is_named).map(quote::escape).map(String::from));
    words.extend(item.params.as_ref().filter(|params| **params != Value::Null).map(quote::value));
    words.extend(match (&item.json, &item.text) {
        (Some(json), _) => Some(quote::value(json)),
        (None, Some(text)) => Some(quote::quoted(text)),
        (None, None) => None,
    });
    words.extend(call_words(item, several));
    let is_bad = matches!(item.kind, TranscriptKind::Refusal | TranscriptKind::Gap)
        || matches!(item.status.as_deref(), Some("deny" | "error" | "interrupted"));
    let line = Line::value(words.join("  "), Vec::new());
    if is_bad { line.paint(Style::Bad) } else { line }
}
