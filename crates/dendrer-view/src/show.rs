//! One record in full: its document, its lines, and what it changed.

use dendrer::ask::show::{ShownRecord, ShownWrites, missing_words};
use dendrer::closed::closed;
use dendrer::kernel::pack::modules::without_bytes;
use dendrer::kernel::predicate::Window;
use dendrer::kernel::unknown::{self, made_by};
use dendrer_object::document::As;
use dendrer_object::record::{Author, Kind, Link, Record, Rel};
use dendrer_object::{
    Digest, MESSAGES, OBSERVED_AT, Object, Pointer, REDACTION, RunName, Timestamp, TypeName, Value, document,
    json, tag,
};

use crate::answer::{Answer, Line, Page, Style, pretty};
use crate::certainty::{Certainty, UnknownPlace, left_unknown, unknown_line, unknown_places};
use crate::change::ChangeObject;
pub use crate::change::content_json;
use crate::provenance::ProvenanceObject;
use crate::why::op_words;
use crate::{count, messages, provenance, quote};

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
        // Names in front of the text take twelve characters.
        let width = page.width.map(|width| width.saturating_sub(12));
        let mut lines = Vec::new();
        lines.extend(run.iter().filter(|_| self.parts.run).map(|run| Line::from(format!("beside {run}"))));
        lines.extend(title_lines(record, &content, page));
        let run = run.iter().filter(|_| !self.parts.run && !page.is_usual);
        lines.extend(run.map(|run| Line::from(format!("run         {run}{}", page.read_from()))));
        if self.parts.intent {
            lines.extend(intent_lines(&content, width));
        }
        if self.parts.result {
            lines.extend(part_lines(&content, "action", "tool", width));
            lines.extend(part_lines(&content, "result", "status", width));
            lines.extend(messages::lines(&content, width));
        }
        if self.parts.all {
            lines.extend(policy_lines(&content, width));
            lines.extend(member_lines(&content, width));
        }
        let closed = closed(record);
        if !closed.is_empty() {
            let list: Vec<String> = closed.iter().map(quote::path).collect();
            lines.push(format!("not known   {} (erased or withheld)", list.join(", ")).into());
        }
        if self.parts.changes && self.shown.tick.is_some_and(|tick| tick > 0) {
            lines.extend(writes_lines(&self.shown.writes, page));
        }
        lines.extend(left_unknown(record).map(|words| Line::styled(Style::Warn, words)));
        if self.parts.provenance {
            lines.push("provenance".into());
            let facts = provenance.iter().flat_map(provenance::lines);
            lines.extend(facts.map(|line| Line::from(format!("  {line}"))));
        }
        let notes = member(&content, "intent", "uncertainty_notes");
        if let Some(notes) = notes.filter(|notes| self.parts.intent && **notes != Value::Null) {
            lines.push("from the trace:".into());
            let text = notes.as_str().map_or_else(|| notes.to_string(), str::to_owned);
            lines.extend(quote::gutter(&format!("uncertainty: {text}")).into_iter().map(Line::from));
        }
        if let Some((window, Some(state))) = state {
            let word = if *window == Window::Before { "before" } else { "after" };
            lines.push(format!("state {word}").into());
            lines.extend(pretty(state, 1, None).into_iter().map(Line::from));
            lines.extend(unknown_line(&unknown::listed(state)));
        }
        lines
    }
}

fn member<'v>(content: &'v Value, outer: &str, inner: &str) -> Option<&'v Value> {
    content.get(outer).and_then(|value| value.get(inner))
}

fn title_lines(record: &Record, content: &Value, page: &Page) -> Vec<Line> {
    let header = record.header();
    let name = header.type_name.as_ref().map_or_else(|| header.kind.to_string(), |name| name.to_string());
    let agent = content.get("agent_id").and_then(Value::as_str).map(quote::escape).unwrap_or_default();
    let parent = header.prev.map_or_else(|| "-".to_owned(), |prev| prev.short());
    let place = match header.tick {
        _ if header.kind == Kind::Run => "tick 0".to_owned(),
        Some(tick) => format!("tick {tick}"),
        None => "beside ".to_owned(),
    };
    let agent = if agent.is_empty() { String::new() } else { format!("   agent {agent}") };
    let title = Line::styled(Style::Strong, format!("{place}  {name}"))
        .then("   ")
        .then_styled(Style::Dim, format!("hash {}   parent {parent}", record.id().short()))
        .then(format!("{agent}   author {}", header.author));
    let when = page.time(header.ts);
    let observed = content.get(OBSERVED_AT).and_then(Value::as_str);
    let when = (!when.is_empty()).then(|| match observed {
        Some(observed) => Line::from(format!("when        {}   (imported {when})", quote::escape(observed))),
        None => Line::from(format!("when        {when}")),
    });
    [title].into_iter().chain(when).collect()
}

fn intent_lines(content: &Value, width: Option<usize>) -> Vec<Line> {
    let Some(intent) = content.get("intent") else { return Vec::new() };
    let said = |name: &str| intent.get(name).filter(|value| **value != Value::Null);
    let headline = ["description", "content"].into_iter().find(|name| said(name).is_some());
    let confidence = intent.get("confidence").and_then(Value::as_f64);
    let confidence = confidence
        .map(|value| format!("      confidence {value:.3}   (quantized 0.001)"))
        .unwrap_or_default();
    let text = Line::fit(&headline.and_then(said).map(quote::value).unwrap_or_default(), width);
    let line = Line::from(format!("intent      {}{confidence}", text.text()).trim_end());
    let mut lines = vec![Line { cut: text.cut, ..line }];
    let shown = [headline.unwrap_or_default(), "uncertainty_notes", "confidence"];
    // A confidence that is no number is shown as any other member.
    let numeric = intent.get("confidence").is_none_or(|value| value.as_f64().is_some());
    lines.extend(other_lines(intent, if numeric { &shown } else { &shown[..2] }, width));
    lines
}

fn part_lines(content: &Value, part: &str, headline: &str, width: Option<usize>) -> Vec<Line> {
    let Some(members) = content.get(part) else { return Vec::new() };
    let head = members.get(headline).and_then(Value::as_str).map(quote::escape);
    let mut lines =
        vec![Line::from(format!("{part:<10}  {}", head.as_deref().unwrap_or_default()).trim_end())];
    let shown = [headline];
    lines.extend(other_lines(members, if head.is_some() { &shown } else { &[] }, width));
    lines
}

/// Writes each member but the known ones; a value without members as it is.
fn other_lines(value: &Value, known: &[&str], width: Option<usize>) -> Vec<Line> {
    let Some(members) = value.as_object() else {
        return vec![Line::fit(&format!("  {}", quote::value(value)), width)];
    };
    let members = members.iter().filter(|(name, _)| !known.contains(&&***name));
    let line = |name: &str, value: &Value| {
        format!("  {}  {}", quote::escape(tag::user_name(name)), quote::value(value))
    };
    members.map(|(name, value)| Line::fit(&line(name, value), width)).collect()
}

fn policy_lines(content: &Value, width: Option<usize>) -> Vec<Line> {
    let Some(policy) = content.get("policy") else { return Vec::new() };
    let decision = policy.get("decision").and_then(Value::as_str);
    let after = |name: &str, word: &str| {
        policy.get(name).map(|value| format!("   {word} {}", quote::value(value))).unwrap_or_default()
    };
    let (checks, version) = (after("checks", "checks"), after("policy_version", "version"));
    let head = format!("policy      {}{checks}{version}", quote::escape(decision.unwrap_or("-")));
    let shown: &[&str] = match decision {
        Some(_) => &["decision", "checks", "policy_version"],
        None => &["checks", "policy_version"],
    };
    [Line::from(head)].into_iter().chain(other_lines(policy, shown, width)).collect()
}

/// Members that other lines print, or the title.
const SHOWN: [&str; 11] = [
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

/// Writes the members besides intent, action and result, the known ones first.
fn member_lines(content: &Value, width: Option<usize>) -> Vec<Line> {
    let first = ["goal_id", "goal", "effect", "metrics", "anomalies", "meta", "stage", "reducer", "reason"];
    let members = content.as_object().into_iter().flat_map(|content| content.iter());
    let own = members.map(|(name, _)| &**name).filter(|name| !first.contains(name) && !SHOWN.contains(name));
    let line = |name: &str| {
        let value = content.get(name)?;
        // The digest of a module identifies it; its bytes help no reader.
        let modules = (name == "pack").then(|| without_bytes(value));
        let value = modules.as_ref().unwrap_or(value);
        Some(Line::fit(
            &format!("{:<10}  {}", quote::escape(tag::user_name(name)), quote::value(value)),
            width,
        ))
    };
    first.into_iter().chain(own).filter_map(line).chain(redaction_line(content, width)).collect()
}

/// Says what was taken out as a secret; nothing where nothing was.
fn redaction_line(content: &Value, width: Option<usize>) -> Option<Line> {
    let redaction = content.get(REDACTION)?;
    let (name, taken) =
        (redaction.get("rules")?.get("name")?.as_str()?, redaction.get("taken")?.as_object()?);
    let kinds: Vec<String> = taken.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let said = match (name, kinds.is_empty()) {
        ("none", _) => "nothing was looked for".to_owned(),
        (_, true) => return None,
        (_, false) => format!("{} (rules {name})", kinds.join(", ")),
    };
    Some(Line::fit(&format!("redaction   {}", quote::escape(&said)), width))
}

fn writes_lines(writes: &ShownWrites, page: &Page) -> Vec<Line> {
    let (head, lines): (String, Vec<Line>) = match writes {
        ShownWrites::Known(changed) => {
            let head = format!("state       {} written", count(changed.len() as u64, "path", "paths"));
            (head, changed.iter().map(|change| page.change(change)).collect())
        }
        ShownWrites::Unknown { tick, pointer, ops } => {
            let head = format!("state       not known: {}", missing_words(*tick, pointer.as_ref()));
            (head, ops.iter().flatten().map(|op| op_words(op, None).into()).collect())
        }
    };
    let line = |line: Line| line.after("  ").paint(Style::Warn);
    [Line::from(head)].into_iter().chain(lines.into_iter().map(line)).collect()
}
