//! A record as a row: who, which type, and one line of what it says.

use dendrer::kernel::sealed;
use dendrer::kernel::status;
use dendrer::kernel::unknown::made_by;
use dendrer::record::chain;
use dendrer_object::document::As;
use dendrer_object::record::{Author, Kind, Record};
use dendrer_object::{Digest, Timestamp, TypeName, Value, document};

use crate::answer::Style;
use crate::certainty::{UnknownPlace, left_unknown, unknown_places};
use crate::contents::{REFUSAL, call_words, content_words, refusal_words};
use crate::{messages, quote};

/// One transition or refusal, as a log lists it.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The tick; `None` for a record off the chain.
    pub tick: Option<u64>,
    /// The number of a refusal in its run, from 1, if a log counted it.
    pub refused: Option<u64>,
    /// The id.
    pub id: String,
    /// The one who speaks, as [`speaker`] names it.
    pub agent: String,
    /// The type, or what else the record is.
    pub type_name: String,
    /// The confidence, where one was given.
    pub confidence: Option<f64>,
    /// One line of what it says, quoted.
    pub summary: String,
    /// How many anomalies it carries.
    pub anomalies: usize,
    /// Whether it is a refusal, a denial or a failure.
    pub is_bad: bool,
}

/// Reads a row off a record.
pub fn row(record: &Record) -> Row {
    let header = record.header();
    let content = record.content();
    let type_name =
        header.type_name.as_ref().map_or_else(|| header.kind.to_string(), |name| name.to_string());
    let type_name = if header.kind == Kind::Refusal { format!("refused {type_name}") } else { type_name };
    Row {
        tick: header.tick,
        refused: None,
        id: record.id().to_string(),
        agent: speaker(record),
        type_name,
        confidence: content.get("intent").and_then(|intent| intent.get("confidence")).and_then(Value::as_f64),
        summary: match left_unknown(record) {
            // In front, because long rows are cut.
            Some(words) => format!("{words} {}", summary(&content)).trim_end().to_owned(),
            None => summary(&content),
        },
        anomalies: content.get("anomalies").and_then(Value::as_array).map_or(0, |list| list.len()),
        is_bad: header.kind == Kind::Refusal || is_denied_or_failed(&content),
    }
}

/// Names the one who speaks in a record: `user` for the author user, then in brackets the name on record if it is another;
/// else the agent, and the author where no agent is named. An agent called by the word of an author is quoted.
pub(crate) fn speaker(record: &Record) -> String {
    let author = record.header().author;
    let agent = record.body().value("/agent_id");
    let agent = agent.as_ref().and_then(Value::as_str).unwrap_or_default();
    let is_a_person = matches!(author, Author::User | Author::Institution);
    match (is_a_person, agent) {
        (true, "" | AGENT) => author.to_string(),
        (_, agent) if agent == author.as_str() => author.to_string(),
        (true, agent) => format!("{author} ({})", quote::name(agent)),
        (false, "") if author == Author::Agent => String::new(),
        (false, "") => author.to_string(),
        (false, agent) => quote::name(agent),
    }
}

/// The name of an agent where none was given.
const AGENT: &str = "agent";

fn is_denied_or_failed(content: &Value) -> bool {
    let text = |outer: &str, inner: &str| content.get(outer)?.get(inner)?.as_str().map(str::to_owned);
    text("policy", "decision").as_deref() == Some("deny")
        || text("result", "status").as_deref().is_some_and(status::is_failed)
}

/// Says in one line what a record says: refusal, failure, decision, call, words, or what else there is.
fn summary(content: &Value) -> String {
    let at = |outer: &str, inner: &str| content.get(outer).and_then(|value| value.get(inner));
    let mut parts: Vec<String> = Vec::new();
    if let Some(message) = chain::refused(content) {
        parts.push(quote::escape(&message));
    }
    if let Some(decision) = at("policy", "decision").and_then(Value::as_str) {
        parts.push(quote::escape(decision));
    }
    let status = at("result", "status").and_then(Value::as_str);
    if let Some(status) = status {
        parts.push(quote::status(status));
    }
    let calls = at("action", "calls").and_then(Value::as_array);
    let words =
        at("intent", "description").or_else(|| at("intent", "content")).filter(|said| **said != Value::Null);
    let action = content.get("action").filter(|action| action.get("tool").is_some());
    match (calls, action) {
        (Some(calls), _) => parts.push(calls.iter().map(call_words).collect::<Vec<_>>().join(", ")),
        // The parameters of a call that was answered are in the row of its request, and in `show`.
        (None, Some(action)) if status.is_some() => {
            parts.extend(action.get("tool").and_then(Value::as_str).map(quote::name))
        }
        (None, Some(action)) => parts.push(call_words(action)),
        (None, None) => {}
    }
    parts.extend(words.filter(|said| !is_empty(said)).map(content_words));
    // An import keeps members that it does not read in `extra`.
    let refused = at("intent", REFUSAL).or_else(|| at("intent", "extra")?.get(REFUSAL));
    parts.extend(refused.and_then(refusal_words));
    if let Some(output) = at("result", "output") {
        parts.push(content_words(output));
    }
    parts.extend(messages::summary(content));
    if let Some((run, tick, reason)) = came_from(content) {
        parts.push(format!("from {}@{tick}", quote::escape(run)));
        parts.extend(reason.map(quote::quoted));
    }
    if parts.is_empty() {
        let anomaly = content.get("anomalies").and_then(Value::as_array).and_then(|list| list.get(0));
        let kind = anomaly.and_then(|anomaly| anomaly.get("kind")).and_then(Value::as_str).map(quote::escape);
        let message = anomaly.and_then(sealed::words).map(|words| quote::quoted(&words));
        parts.extend(kind.into_iter().chain(message));
    }
    parts.join(" ")
}

fn is_empty(said: &Value) -> bool {
    said.as_str().is_some_and(str::is_empty) || said.as_array().is_some_and(|parts| parts.is_empty())
}

/// Returns the origin of the records after a marker: the run, the tick, and the reason.
pub(crate) fn came_from(content: &Value) -> Option<(&str, &Value, Option<&str>)> {
    let of = |marker: &str, [run, tick, reason]: [&str; 3]| {
        let marker = content.get(marker)?;
        let reason = marker.get(reason).and_then(Value::as_str);
        Some((marker.get(run)?.as_str()?, marker.get(tick)?, reason))
    };
    of("fork", ["parent_run_id", "parent_tick", "fork_reason"])
        .or_else(|| of("cherrypick", ["source_run_id", "source_tick", "import_reason"]))
}

document! {
    /// A transition or a refusal, as a log lists it
    pub object RowObject(record: &Record) {
        let (header, row) = (record.header(), row(record));
        /// The tick; null for a record off the chain
        tick: Option<u64> = header.tick,
        ..NamedRecord = NamedRecord::of(record, &row),
        /// The kind of the record
        kind: Kind = header.kind,
        /// The kind of the author
        author: Author = header.author,
        /// The confidence of the intent; null if none was given
        confidence: Option<f64> = row.confidence,
        /// The number of anomalies
        anomalies: usize = row.anomalies,
        /// The time
        ts: Timestamp = header.ts,
        /// The time that the source of an imported transition states; absent if it states none
        observed_at?: As<String> = record.body().value("/observed_at").map(As::new),
        /// The places that the transition left unknown; absent if it left none
        unknown?: Vec<UnknownPlace> = unknown_places(&made_by(record)),
    }

    /// A transition of a chain
    pub object TransitionObject(record: &Record) {
        /// The tick
        tick: u64 = record.header().tick.unwrap_or_default(),
        ..NamedRecord = NamedRecord::of(record, &row(record)),
    }

    /// The id of a record and what it says
    object NamedRecord(record: &Record, row: &Row) {
        /// The id
        id: Digest = record.id(),
        /// The type; null for a record without one
        type: Option<&TypeName> = record.header().type_name.as_ref(),
        /// The agent; null if the record names none
        agent: As<Option<String>> = As::new(record.body().value("/agent_id").unwrap_or(Value::Null)),
        /// The record in one line
        summary: &str = &row.summary,
    }
}

impl Row {
    /// The style of a row: a refusal, a denial and a failure are in the colour of errors.
    pub(crate) fn style(&self) -> Option<Style> {
        match () {
            () if self.is_bad => Some(Style::Bad),
            () if self.tick.is_none() || self.anomalies > 0 => Some(Style::Warn),
            () => None,
        }
    }

    /// Writes the confidence with two decimals, or a dash.
    pub fn confidence_text(&self) -> String {
        self.confidence.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
    }
}
