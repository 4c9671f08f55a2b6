//! One record in full: its document, its lines, and what it changed.

use dendrer::ask::show::{ShownRecord, ShownSync, ShownWrites, missing_words};
use dendrer::closed::closed;
use dendrer::kernel::pack::modules::without_bytes;
use dendrer::kernel::predicate::Window;
use dendrer::kernel::unknown::{self, made_by};
use dendrer::record::chain;
use dendrer_object::document::As;
use dendrer_object::intent::Effect;
use dendrer_object::record::{Author, Kind, Link, Record, Rel};
use dendrer_object::{
    Digest, MESSAGES, OBSERVED_AT, Object, Pointer, REDACTION, RunName, Timestamp, TypeName, Value, document,
    json, tag,
};

use crate::answer::{Answer, Line, Page, Style};
use crate::certainty::{Certainty, UnknownPlace, left_unknown, unknown_line, unknown_places};
pub use crate::change::content_json;
use crate::change::{ChangeObject, ShownChange};
use crate::conflicts::DecisionObject;
use crate::layout::{columns, pad};
use crate::provenance::ProvenanceObject;
use crate::text::pretty;
use crate::why::op_words;
use crate::{conflicts, contents, count, messages, provenance, quote, row};

/// A record, and the parts of it that people asked for. The document has every part.
#[derive(Debug, Clone, Copy)]
pub struct ShowAnswer<'s> {
    /// The record.
    pub shown: &'s ShownRecord,
    /// The parts that are printed.
    pub parts: ShowParts,
}

/// The parts of a record that are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShowParts {
    /// Policy, goal and every other member of the record.
    pub all: bool,
    /// The intent.
    pub intent: bool,
    /// The action and the result.
    pub result: bool,
    /// The places that were written.
    pub changes: bool,
    /// The origin.
    pub provenance: bool,
    /// The run of a record off the chain.
    pub run: bool,
}

/// Header and content of a record as they are, in the names of the user.
#[derive(Debug, Clone, Copy)]
pub struct RawRecordAnswer<'r>(pub &'r Record);

document! {
    /// One record as it is
    pub object RecordDocument: "record" (record: &Record) {
        /// The id
        id: Digest = record.id(),
        /// The header
        header: As<Object> = As::new(json::parse_canonical(record.header_text()).unwrap_or(Value::Null)),
        /// The content
        content: As<Object> = As::new(record.content()),
    }

    /// One transition
    pub object ShowDocument: "show" reads (shown: &ShownRecord) {
        let (record, header) = (&shown.record, shown.record.header());
        let state = shown.state.as_ref().map(|(_, state)| state.as_ref());
        let changes = match &shown.writes {
            ShownWrites::Known(changed) => Some(changed.iter().map(ChangeObject::of).collect()),
            ShownWrites::Unknown { .. } => None,
        };
        /// The run; null for a record of no run
        run: Option<&RunName> = shown.run.as_ref(),
        /// The tick; null for a record off the chain
        tick: Option<u64> = shown.tick,
        /// The id
        id: Digest = record.id(),
        /// The id of the record before it in the chain
        prev: Option<Digest> = header.prev,
        /// The kind of the record
        kind: Kind = header.kind,
        /// The type; null for a record without one
        type: Option<&TypeName> = header.type_name.as_ref(),
        /// The kind of the author
        author: Author = header.author,
        /// The time
        ts: Timestamp = header.ts,
        /// The links to other records
        links: Vec<LinkObject> = header.links.iter().map(LinkObject::of).collect(),
        /// The content
        content: As<Object> = As::new(content_json(record)),
        /// The fields that were erased or withheld
        closed: Vec<Pointer> = closed(record),
        /// The changes of the state; null if a value was erased or withheld
        changes: Option<Vec<ChangeObject>> = changes,
        /// The units that it put together from the states of its parents; absent if it did not have to
        merged?: Vec<&Pointer> = (!shown.sync.merged.is_empty())
            .then(|| shown.sync.merged.iter().map(|merged| &merged.unit).collect()),
        /// The conflicts of agents that it kept or decided; absent if there were none
        decided?: Vec<DecisionObject> = (!shown.sync.conflicts.is_empty())
            .then(|| shown.sync.conflicts.iter().map(DecisionObject::of).collect()),
        /// The certainty
        certainty: ["recorded"] = Certainty::Recorded.as_str(),
        /// The places that the transition left unknown; absent if it left none
        unknown?: Vec<UnknownPlace> = unknown_places(&made_by(record)),
        /// The state before or after, or its value at the path, if it was asked for
        state?: Option<&Value> = state,
        /// The unknown places of the state that was asked for; absent if every place is known
        state_unknown?: Vec<UnknownPlace> =
            unknown_places(&state.flatten().map(unknown::listed).unwrap_or_default()),
        /// The origin, if it was asked for
        provenance?: ProvenanceObject = shown.provenance.as_ref().map(ProvenanceObject::of),
    }

    /// A link to an earlier record
    object LinkObject(link: &Link) {
        /// The id of the record
        hash: Digest = link.hash,
        /// The relation
        rel: Rel = link.rel,
    }
}

impl Answer for RawRecordAnswer<'_> {
    fn document(&self) -> Value {
        RecordDocument::of(self.0).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        vec![quote::json(&self.document()).into()]
    }
}

impl Answer for ShowAnswer<'_> {
    fn document(&self) -> Value {
        ShowDocument::of(self.shown).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let ShownRecord { run, record, state, provenance, .. } = self.shown;
        let content = record.content();
        let parts = self.parts;
        let whole = WholeRecord::of(self.shown);
        let mut lines = Vec::new();
        if parts.all {
            lines.extend(run.iter().filter(|_| parts.run).map(|run| Line::from(format!("beside {run}"))));
            lines.extend(title_lines(record, &content, page));
            let run = run.iter().filter(|_| !parts.run && !page.is_usual);
            lines.extend(run.map(|run| Line::from(format!("run  {run}{}", page.read_from()))));
        }
        if parts.intent {
            lines.extend(intent_lines(&content, &whole));
        }
        if parts.result {
            lines.extend(action_lines(&content, parts.all, &whole));
            lines.extend(result_lines(&content, &whole));
            lines.extend(messages::lines(&content, &whole.part("--result")));
        }
        if parts.all {
            lines.extend(refusal_line(&content));
            lines.extend(policy_lines(&content, &whole));
        }
        let closed = closed(record);
        if !closed.is_empty() {
            let list: Vec<String> = closed.iter().map(quote::path).collect();
            lines.push(format!("not known  {} (erased or withheld)", list.join(", ")).into());
        }
        if parts.changes && self.shown.tick.is_some_and(|tick| tick > 0) {
            lines.extend(writes_lines(&self.shown.writes, &whole, page));
            lines.extend(sync_lines(&self.shown.sync));
        }
        lines.extend(left_unknown(record).map(|words| Line::styled(Style::Warn, words)));
        if parts.all {
            lines.extend(member_lines(record, &content, &whole));
        }
        if parts.provenance {
            lines.push(Line::styled(Style::Strong, "provenance"));
            let facts = provenance.iter().flat_map(provenance::lines);
            lines.extend(facts.map(|line| Line::from(format!("  {line}"))));
        }
        if let Some((window, Some(state))) = state {
            let word = if *window == Window::Before { "before" } else { "after" };
            lines.push(Line::styled(Style::Strong, format!("state {word}")));
            lines.extend(pretty(state, 1, None).into_iter().map(Line::from));
            lines.extend(unknown_line(&unknown::listed(state)));
        }
        lines
    }
}

/// Writes what a sync node made of its parents: each conflict, and units that were put together without one.
fn sync_lines(sync: &ShownSync) -> Vec<Line> {
    let mut lines = Vec::new();
    for merged in &sync.merged {
        let mut here = sync.conflicts.iter().filter(|one| merged.unit.contains(&one.path)).peekable();
        if here.peek().is_none() {
            lines.push(format!("merged     {}   no place in conflict", quote::path(&merged.unit)).into());
        }
        lines.extend(here.map(|one| Line::from(format!("merged     {}", conflicts::decision(one)))));
    }
    lines
}

/// The command that prints a record whole.
struct WholeRecord {
    rev: String,
}

impl WholeRecord {
    fn of(shown: &ShownRecord) -> WholeRecord {
        let place = shown.run.as_ref().zip(shown.tick);
        let rev =
            place.map(|(run, tick)| format!("{run}@{tick}")).unwrap_or_else(|| shown.record.id().to_string());
        WholeRecord { rev }
    }

    /// The command that prints one part whole.
    fn part(&self, flag: &str) -> Vec<String> {
        let rev = self.rev.clone();
        let words = ["dendrer", "show", &rev, flag, "--full"].into_iter();
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// The command that prints the writes at a place whole.
    fn place(&self, path: &Pointer) -> Vec<String> {
        let rev = self.rev.clone();
        let words = ["dendrer", "show", &rev, "--path", &quote::path(path), "--full"];
        words.map(str::to_owned).to_vec()
    }
}

fn title_lines(record: &Record, content: &Value, page: &Page) -> Vec<Line> {
    let header = record.header();
    let name = header.type_name.as_ref().map_or_else(|| header.kind.to_string(), |name| name.to_string());
    let name = if header.kind == Kind::Refusal { format!("refused {name}") } else { name };
    let agent = row::speaker(record);
    let place = match header.tick {
        _ if header.kind == Kind::Run => "tick 0".to_owned(),
        Some(tick) => format!("tick {tick}"),
        None => "beside ".to_owned(),
    };
    let when = page.time(header.ts);
    let observed = content.get(OBSERVED_AT).and_then(Value::as_str).map(quote::escape);
    let mut title = format!("{place}  {name}");
    if !agent.is_empty() {
        title.push_str(&format!("  by {agent}"));
    }
    match &observed {
        Some(observed) => title.push_str(&format!("  {observed}  (imported {when})")),
        None => title.push_str(&format!("  {when}")),
    }
    vec![Line::styled(Style::Strong, title.trim_end().to_owned())]
}

/// Writes names and values below each other, padded to the longest name.
fn named_lines(members: &[(String, String)], more: &[String]) -> Vec<Line> {
    let widest = members.iter().map(|(name, _)| columns(name)).max().unwrap_or(0).min(NAME_MAX);
    let line = |(name, value): &(String, String)| {
        Line::value(format!("  {}  {value}", pad(name, widest)), more.to_vec())
    };
    members.iter().map(line).collect()
}

/// The columns to which names are padded at most.
const NAME_MAX: usize = 24;

fn intent_lines(content: &Value, whole: &WholeRecord) -> Vec<Line> {
    let Some(intent) = content.get("intent") else { return Vec::new() };
    let more = whole.part("--intent");
    let said = |name: &str| intent.get(name).filter(|value| **value != Value::Null);
    let headline = ["description", "content"].into_iter().find(|name| said(name).is_some());
    let mut lines: Vec<Line> = match headline.and_then(said) {
        Some(text) => vec![Line::value(format!("  {}", contents::content_whole(text)), more.clone())],
        None => Vec::new(),
    };
    let Some(members) = intent.as_object() else {
        lines.push(Line::value(format!("  {}", quote::value(intent)), more));
        return lines;
    };
    let mut shown = Vec::new();
    let known = [headline.unwrap_or_default(), "uncertainty_notes", "confidence"];
    for (name, value) in members.iter().filter(|(name, _)| !known.contains(&&***name)) {
        shown.push((quote::name(tag::user_name(name)), quote::value(value)));
    }
    if let Some(confidence) = intent.get("confidence").filter(|value| **value != Value::Null) {
        let text =
            confidence.as_f64().map_or_else(|| quote::value(confidence), |value| format!("{value:.3}"));
        shown.push(("confidence".to_owned(), text));
    }
    if let Some(notes) = said("uncertainty_notes") {
        shown.push(("uncertainty".to_owned(), quote::value(notes)));
    }
    lines.extend(named_lines(&shown, &more));
    lines
}

/// Writes the calls of an action, each on a line of its own. Beside a result alone its call is not repeated.
fn action_lines(content: &Value, all: bool, whole: &WholeRecord) -> Vec<Line> {
    let Some(action) = content.get("action").filter(|_| all || content.get("result").is_none()) else {
        return Vec::new();
    };
    let more = whole.part("--result");
    let calls = action.get("calls").and_then(Value::as_array);
    let mut lines = Vec::new();
    for call in calls
        .into_iter()
        .flat_map(|calls| calls.iter())
        .chain([action].into_iter().filter(|_| calls.is_none()))
    {
        lines.push(Line::value(format!("call  {}", contents::call_words(call)), more.clone()));
        lines.extend(other_lines(call, &["tool", "params"], &more));
    }
    if calls.is_some() {
        lines.extend(other_lines(action, &["calls"], &more));
    }
    lines
}

/// Writes the status of a result, and below it the output.
fn result_lines(content: &Value, whole: &WholeRecord) -> Vec<Line> {
    let Some(result) = content.get("result") else { return Vec::new() };
    let more = whole.part("--result");
    // A status that a rule read from prose may be wrong; the other sources are as sure as the member.
    let is_prose = result.get("status_from").is_some_and(|from| from.as_str() == Some("text"));
    let known = if is_prose { ["status", "output", ""] } else { ["status", "output", "status_from"] };
    let status = match result.get("status") {
        Some(Value::String(status)) => quote::status(status),
        Some(other) => quote::value(other),
        None => "result".to_owned(),
    };
    let style = status.starts_with("FAIL").then_some(Style::Bad);
    let Some(output) = result.get("output") else {
        return [Line::of(style, status)].into_iter().chain(other_lines(result, &known, &more)).collect();
    };
    let holds = output.as_str().and_then(quote::held_json).map_or("", |_| " (text that holds JSON)");
    let head = format!("{status}  output{holds}");
    let value = Line::value(format!("  {}", contents::content_whole(output)), more.clone());
    [Line::of(style, head), value].into_iter().chain(other_lines(result, &known, &more)).collect()
}

/// Writes why a line was refused.
fn refusal_line(content: &Value) -> Option<Line> {
    let message = chain::refused(content)?;
    Some(Line::styled(Style::Bad, format!("refused  {}", quote::escape(&message))))
}

/// Writes each member but the known ones; a value without members as it is.
fn other_lines(value: &Value, known: &[&str], more: &[String]) -> Vec<Line> {
    let Some(members) = value.as_object() else {
        return vec![Line::value(format!("  {}", quote::value(value)), more.to_vec())];
    };
    let members = members.iter().filter(|(name, _)| !known.contains(&&***name));
    let shown = members.map(|(name, value)| (quote::name(tag::user_name(name)), quote::value(value)));
    named_lines(&shown.collect::<Vec<_>>(), more)
}

fn policy_lines(content: &Value, whole: &WholeRecord) -> Vec<Line> {
    let Some(policy) = content.get("policy") else { return Vec::new() };
    let more = whole.part("");
    let decision = policy.get("decision").and_then(Value::as_str);
    let head = Line::from(format!("policy  {}", quote::escape(decision.unwrap_or("-"))));
    let head = if decision == Some("deny") { head.paint(Style::Bad) } else { head };
    let shown: &[&str] = if decision.is_some() { &["decision"] } else { &[] };
    [head].into_iter().chain(other_lines(policy, shown, &more)).collect()
}

/// Members that other lines print, or the title.
const SHOWN: [&str; 12] = [
    "goal_id",
    "intent",
    "action",
    "result",
    MESSAGES,
    OBSERVED_AT,
    "policy",
    "agent_id",
    "delta",
    "state_root",
    "seq",
    REDACTION,
];

/// Writes goal and author, the members besides intent, action and result, and the ids of the record.
fn member_lines(record: &Record, content: &Value, whole: &WholeRecord) -> Vec<Line> {
    let more = whole.part("");
    let header = record.header();
    // The title names an agent that no person speaks for.
    let agent = content.get("agent_id").and_then(Value::as_str).map(quote::name);
    let agent = agent.filter(|agent| !row::speaker(record).contains(agent.trim_matches('"')));
    let agent = agent.map(|agent| format!("   agent {agent}")).unwrap_or_default();
    let author = format!("author {}{agent}", header.author);
    let goal = content.get("goal_id").map(|goal| format!("goal {}   ", quote::value(goal)));
    let mut lines = vec![Line::from(format!("{}{author}", goal.unwrap_or_default()))];
    let first = ["goal", "effect", "metrics", "anomalies", "meta", "stage", "reducer", "reason"];
    let members = content.as_object().into_iter().flat_map(|content| content.iter());
    let own = members.map(|(name, _)| &**name).filter(|name| !first.contains(name) && !SHOWN.contains(name));
    for name in first.into_iter().chain(own) {
        let Some(value) = content.get(name) else { continue };
        // The digest of a module identifies it; its bytes help no reader.
        let modules = (name == "pack").then(|| without_bytes(value));
        let value = modules.as_ref().unwrap_or(value);
        let is_host = name == "effect" && value.as_str() == Some(Effect::Host.as_str());
        let label = if is_host { "   tested, not pure by construction" } else { "" };
        let text = format!("{} {}{label}", quote::name(tag::user_name(name)), quote::value(value));
        let line = Line::value(text, more.clone());
        lines.push(if name == "anomalies" { line.paint(Style::Warn) } else { line });
    }
    lines.extend(redaction_line(content));
    lines.extend(links_line(record));
    let after = header.prev.map(|prev| format!("   after {}", prev.short())).unwrap_or_default();
    lines.push(Line::styled(Style::Dim, format!("id {}{after}", record.id().short())));
    lines
}

/// Writes the relations to earlier records and their ids; that of the record before is next to the own id.
fn links_line(record: &Record) -> Option<Line> {
    let links = record.header().links.iter().filter(|link| link.rel != Rel::Predecessor);
    let links: Vec<String> = links.map(|link| format!("{} {}", link.rel, link.hash.short())).collect();
    (!links.is_empty()).then(|| format!("links {}", links.join(", ")).into())
}

/// Writes what was taken out as a secret; nothing where nothing was.
fn redaction_line(content: &Value) -> Option<Line> {
    let redaction = content.get(REDACTION)?;
    let (name, taken) =
        (redaction.get("rules")?.get("name")?.as_str()?, redaction.get("taken")?.as_object()?);
    let kinds: Vec<String> = taken.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let said = match (name, kinds.is_empty()) {
        ("none", _) => "nothing was looked for".to_owned(),
        (_, true) => return None,
        (_, false) => format!("{} (rules {name})", kinds.join(", ")),
    };
    Some(format!("redaction {}", quote::escape(&said)).into())
}

fn writes_lines(writes: &ShownWrites, whole: &WholeRecord, page: &Page) -> Vec<Line> {
    match writes {
        ShownWrites::Known(changed) => {
            let head = format!("state  {} written", count(changed.len() as u64, "place", "places"));
            let shown = changed.iter().map(|change| ShownChange::of_write(change, whole.place(&change.path)));
            let lines = page.changes(&shown.collect::<Vec<_>>(), 2);
            [Line::from(head)].into_iter().chain(lines).collect()
        }
        ShownWrites::Unknown { tick, pointer, ops } => {
            let head = format!("state  not known: {}", missing_words(*tick, pointer.as_ref()));
            let lines = ops.iter().flatten().map(|op| Line::from(format!("  {}", op_words(op, None))));
            [Line::styled(Style::Warn, head)].into_iter().chain(lines).collect()
        }
    }
}
