//! The replies of `commit`: one for each line, as JSON and as text.
//!
//! The members are those of the schema `commit`. Text of a record reaches a line only through [`quote`](crate::quote).

use dendrer::kernel::commitment::COMMITMENT_VIOLATED;
use dendrer::kernel::ontology::{Class, TYPES};
use dendrer::kernel::sealed;
use dendrer::kernel::step::STILL_VIOLATED;
use dendrer::kernel::unknown::made_by;
use dendrer::lines::{FailedLine, LinesTally, Reply, TurnedLine};
use dendrer::record::chain;
use dendrer_object::text::nearest;
use dendrer_object::{ACTION_TYPE, Code, Pointer, Record, RunName, Value};

use crate::answer::{End, ItemAnswer, Line, Page, Style};
use crate::certainty::{left_unknown, unknown_member};
use crate::{count, document, quote};

/// Code of a refusal of a type that neither the ontology nor the pack of the run has.
const UNKNOWN_TYPE: Code = Code::E0402;

/// How a message of the kernel names a type that may be meant.
const DID_YOU_MEAN: &str = "; did you mean ";

/// Words that agents use in types of their own, with the type that is meant. The first word that occurs counts.
const MEANT: &[(&str, &str)] = &[
    ("result", "action.result"),
    ("response", "action.result"),
    ("output", "action.result"),
    ("call", "action.request"),
    ("tool", "action.request"),
    ("action", "action.request"),
    ("policy", "policy.decision"),
    ("plan", "plan.update"),
    ("thought", "plan.update"),
    ("memory", "memory.write"),
    ("anomaly", "anomaly.flag"),
    ("error", "anomaly.flag"),
    ("goal", "goal.complete"),
    ("done", "goal.complete"),
    ("message", "observation.add"),
    ("user", "observation.add"),
    ("observation", "observation.add"),
];

/// The replies to the lines of `commit`, and their counts.
#[derive(Debug, Clone)]
pub struct CommitAnswer {
    run: RunName,
    tally: LinesTally,
    dry_run: bool,
    /// The last tick of the run.
    head: u64,
}

impl CommitAnswer {
    /// Begins the replies to lines for a run, given its last tick.
    pub fn new(run: RunName, head: u64, dry_run: bool) -> CommitAnswer {
        CommitAnswer { run, tally: LinesTally::default(), dry_run, head }
    }

    /// The counts so far.
    pub fn tally(&self) -> &LinesTally {
        &self.tally
    }
}

impl ItemAnswer for CommitAnswer {
    type Item = Reply;

    fn item(&mut self, reply: &Reply) -> Option<Value> {
        self.tally.count(reply);
        let ticks = reply.records().filter_map(|record| record.header().tick);
        self.head = ticks.chain([self.head]).max().unwrap_or(0);
        if let Reply::Turned { why: TurnedLine::Stale { head, .. }, .. } = reply {
            self.head = *head;
        }
        let mut item = item(reply).as_object().cloned().unwrap_or_default();
        item.set("head", Value::from(self.head));
        Some(Value::Object(item))
    }

    fn item_lines(&mut self, reply: &Reply, _: &Page) -> Vec<Line> {
        self.tally.count(reply);
        vec![styled_line(reply, self.dry_run)]
    }

    fn summary(&self) -> Value {
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("committed", Value::from(self.tally.committed)),
            ("refused", Value::from(self.tally.refused)),
            ("repeated", Value::from(self.tally.repeated)),
            ("stale", Value::from(self.tally.turned)),
            ("dry_run", Value::from(self.dry_run)),
        ];
        document("commit", members)
    }

    fn kept_lines(&mut self, _: &Page) -> Vec<Line> {
        Vec::new()
    }

    fn last_lines(&mut self, _: &Page) -> Vec<Line> {
        let dry = if self.dry_run { "nothing was written (dry run): " } else { "" };
        vec![Line::note(format!("{dry}{}", words(&self.tally)))]
    }

    fn end(&self) -> End {
        if self.tally.refused + self.tally.turned > 0 { End::Refused } else { End::Answered }
    }
}

/// Returns the types that a line of `commit` may have without a pack, in the order of the ontology.
pub fn types() -> impl Iterator<Item = &'static str> {
    let proposed = TYPES.iter().filter(|(_, class)| matches!(class, Class::Agent | Class::Runtime));
    proposed.map(|(name, _)| *name)
}

/// Returns the type that an unknown type probably means.
pub fn meant(unknown: &str) -> Option<&'static str> {
    let has = |word: &str| unknown.split(['.', '_']).any(|part| part == word);
    nearest(unknown, types()).or_else(|| MEANT.iter().find(|(word, _)| has(word)).map(|(_, name)| *name))
}

/// Returns the type that a refused one probably means: the one that the kernel names, which knows the pack, or [`meant`].
fn suggestion(unknown: &str, message: &str) -> Option<String> {
    let named = message.split_once(DID_YOU_MEAN).and_then(|(_, rest)| rest.strip_suffix('?'));
    named.or_else(|| meant(unknown)).map(str::to_owned)
}

/// Returns a reply as an item of the document `commit`.
pub fn item(reply: &Reply) -> Value {
    match reply {
        Reply::Begun(record) => Value::record(members("begun", None, record)),
        Reply::Committed { line, record, noted } => {
            let members = members("committed", Some(*line), record);
            Value::record(members.into_iter().chain(noted_member(noted)))
        }
        Reply::Refused { line, refusal, noted } => {
            let mut members = members("refused", Some(*line), refusal);
            let reason = refusal.body().value("/reason");
            if let Some((name, message)) = unknown_type(refusal, reason.as_ref()) {
                members.extend(suggestion(&name, &message).map(|meant| ("meant", Value::from(meant))));
                members.push(("help", Value::array([Value::record([("argv", argv(&HELP))])])));
            }
            members.extend(reason.map(|reason| ("reason", told(&reason, refusal))));
            Value::record(members.into_iter().chain(noted_member(noted)))
        }
        Reply::Repeated { line, record } => Value::record(members("repeated", Some(*line), record)),
        Reply::Turned { line, why } => {
            let (what, mut reason) = match why {
                TurnedLine::Stale { base, head, changed } => {
                    let path = changed.first().map(Pointer::written);
                    let changed = changed.iter().map(|path| Value::from(path.written()));
                    let members = [
                        ("base", Value::from(*base)),
                        ("head", Value::from(*head)),
                        ("path", Value::from(path)),
                        ("changed", Value::array(changed)),
                    ];
                    ("stale", members.to_vec())
                }
                TurnedLine::KeyUsed(tick) => ("key_used", vec![("tick", Value::from(*tick))]),
            };
            reason.push(("code", Value::from(why.code())));
            reason.push(("message", Value::from(turned(why))));
            Value::record([
                ("what", Value::from(what)),
                ("line", Value::from(*line)),
                ("tick", Value::Null),
                ("id", Value::Null),
                ("type", Value::Null),
                ("reason", Value::record(reason)),
            ])
        }
        Reply::Failed(failed) => Value::record([
            ("what", Value::from("failed")),
            ("line", Value::from(failed.line)),
            ("tick", Value::Null),
            ("id", Value::Null),
            ("type", Value::Null),
            ("reason", reason(failed)),
        ]),
    }
}

/// The command that lists the types.
const HELP: [&str; 3] = ["dendrer", "schema", "intent"];

fn argv(words: &[&str]) -> Value {
    Value::array(words.iter().map(|word| Value::from(*word)))
}

fn members(what: &str, line: Option<u64>, record: &Record) -> Vec<(&'static str, Value)> {
    let mut members = vec![("what", Value::from(what)), ("line", Value::from(line))];
    members.extend(of_record(record));
    members
}

/// The members that every record has in a reply.
fn of_record(record: &Record) -> impl Iterator<Item = (&'static str, Value)> {
    let header = record.header();
    let listed = ["anomalies", STILL_VIOLATED, "violations"]
        .into_iter()
        .filter_map(|name| Some((name, record.body().value(&format!("/{name}"))?)));
    [
        ("tick", Value::from(header.tick)),
        ("id", Value::from(record.id())),
        ("type", Value::from(header.type_name.as_ref().map(|name| name.to_string()))),
    ]
    .into_iter()
    .chain(step_id(record).map(|id| ("step_id", id)))
    .chain(listed)
    .chain(violates(record))
    .chain(unknown_member(&made_by(record)))
}

/// The ids of the commitments that an action violates which was committed all the same.
fn violates(record: &Record) -> Option<(&'static str, Value)> {
    let notes = record.body().value("/anomalies")?;
    let is_it = |note: &&Value| note.get("kind").and_then(Value::as_str) == Some(COMMITMENT_VIOLATED);
    let ids = notes.as_array()?.iter().find(is_it)?.get("commitments")?.clone();
    Some(("violates", ids))
}

/// The id of the step that the transition is of.
fn step_id(record: &Record) -> Option<Value> {
    record.body().value(&format!("/{ACTION_TYPE}"))?;
    record.content().get("intent")?.get("step")?.get("step_id").cloned()
}

fn noted_member(noted: &[Record]) -> Option<(&'static str, Value)> {
    let each = noted.iter().map(|record| Value::record(of_record(record)));
    (!noted.is_empty()).then(|| ("noted", Value::array(each)))
}

/// The reason of a refusal with its sentence.
fn told(reason: &Value, refusal: &Record) -> Value {
    let kept =
        ["claimed_author", "code", "commitments", "path"].map(|name| Some((name, reason.get(name)?.clone())));
    let message = chain::refused(&refusal.content()).map(|words| ("message", Value::from(words)));
    Value::record(kept.into_iter().flatten().chain(message))
}

fn reason(failed: &FailedLine) -> Value {
    let mut members =
        vec![("code", Value::from(failed.code)), ("message", Value::from(failed.message.as_str()))];
    members.extend((!failed.path.is_empty()).then(|| ("path", Value::from(failed.path.as_str()))));
    members.extend(failed.byte.map(|byte| ("byte", Value::from(byte as u64))));
    Value::record(members)
}

/// Returns the type and the message of a refusal whose type is unknown.
fn unknown_type(refusal: &Record, reason: Option<&Value>) -> Option<(String, String)> {
    let reason = reason?;
    let name = refusal.header().type_name.as_ref()?.to_string();
    (UNKNOWN_TYPE == *reason.get("code")?.as_str()?)
        .then(|| sealed::words(reason))
        .flatten()
        .map(|words| (name, words))
}

/// Returns a reply as a line. A refusal is painted.
pub(crate) fn styled_line(reply: &Reply, dry_run: bool) -> Line {
    let line = Line::from(line(reply, dry_run));
    if matches!(reply, Reply::Refused { .. } | Reply::Turned { .. }) { line.paint(Style::Bad) } else { line }
}

/// Returns a reply as a line of text. In a dry run no line begins with `tick`: scripts take such lines as acknowledgements.
fn line(reply: &Reply, dry_run: bool) -> String {
    let would_be = if dry_run { "would be " } else { "" };
    match reply {
        Reply::Begun(record) => format!("{would_be}begun  {}", record.id()),
        Reply::Committed { line, record, noted } => {
            format!("{would_be}{}  line {line}{}{}", transition(record), listed(record), noted_text(noted))
        }
        Reply::Refused { line, refusal, noted } => {
            let reason = refusal.body().value("/reason").unwrap_or(Value::Null);
            let part =
                |name: &str| reason.get(name).and_then(Value::as_str).map(quote::escape).unwrap_or_default();
            let message = chain::refused(&refusal.content()).map(|words| quote::escape(&words));
            let message = message.unwrap_or_default();
            let code = part("code");
            let name = type_name(refusal);
            let hint = unknown_type(refusal, Some(&reason)).map(|(name, message)| {
                let new = suggestion(&name, &message).filter(|_| !message.contains(DID_YOU_MEAN));
                let new = new.map(|meant| format!("{DID_YOU_MEAN}{meant}?")).unwrap_or_default();
                format!("{new} (all types: {})", HELP.join(" "))
            });
            let hint = hint.or_else(|| why_hint(refusal, &reason)).unwrap_or_default();
            let id = refusal.id();
            format!(
                "{would_be}refused  {id}  {name}  line {line}  {code} {message}{hint}{}",
                noted_text(noted)
            )
        }
        Reply::Repeated { line, record } => format!("repeated  {}  line {line}", transition(record)),
        Reply::Turned { line, why } => {
            let what = if matches!(why, TurnedLine::Stale { .. }) { "stale" } else { "key_used" };
            format!("{what}  line {line}  {} {}", why.code(), turned(why))
        }
        Reply::Failed(failed) => {
            let FailedLine { line, code, message, .. } = failed;
            format!("failed  line {line}  {code} {}", quote::escape(message))
        }
    }
}

/// The command that says who is behind the first commitment that an intent violates.
fn why_hint(refusal: &Record, reason: &Value) -> Option<String> {
    // The contract of a delegated run is no commitment of that run.
    let is_scope = reason.get("code").and_then(Value::as_str) == Some(Code::E0452.as_str());
    let id = reason.get("commitments").filter(|_| !is_scope)?.as_array()?.get(0)?.as_str()?;
    let run = refusal.header().run.as_ref()?;
    Some(format!(" (dendrer commitments why {run} {})", quote::shell(&[id.to_owned()])))
}

/// Why a line with a `base` or a `key` was not taken.
fn turned(why: &TurnedLine) -> String {
    match why {
        TurnedLine::Stale { base, head, changed } => {
            let places: Vec<String> = changed.iter().map(quote::path).collect();
            let places = match places.is_empty() {
                true => String::new(),
                false => format!("; written since: {}", places.join(", ")),
            };
            format!("it was decided on tick {base}, and the run is at tick {head}{places}")
        }
        TurnedLine::KeyUsed(tick) => {
            format!("its key is that of tick {tick}, which says something else")
        }
    }
}

fn type_name(record: &Record) -> String {
    record.header().type_name.as_ref().map_or_else(|| "-".to_owned(), |name| name.to_string())
}

fn transition(record: &Record) -> String {
    let tick = record.header().tick.unwrap_or_default();
    let step =
        step_id(record).as_ref().and_then(Value::as_str).map(|id| format!("  step {}", quote::escape(id)));
    format!("tick {tick}  {}  {}{}", record.id(), type_name(record), step.unwrap_or_default())
}

/// Anomalies and violations of a transition.
fn listed(record: &Record) -> String {
    let lists = ["/anomalies", "/violations"].into_iter().filter_map(|place| record.body().value(place));
    let lists = lists.map(|list| format!("   WARN {}", quote::value(&list)));
    lists
        .chain(still_violated(record))
        .chain(left_unknown(record).map(|words| format!("   {words}")))
        .collect()
}

/// Violations that began earlier and that a transition leaves as they are.
fn still_violated(record: &Record) -> Option<String> {
    let still = record.body().value(&format!("/{STILL_VIOLATED}"))?;
    let each = still.as_array()?.iter().map(|one| {
        let id = one.get("id").and_then(Value::as_str).map(quote::escape).unwrap_or_default();
        format!("{id} (since tick {})", one.get("since").unwrap_or(&Value::Null))
    });
    Some(format!("   WARN still violated: {}", each.collect::<Vec<_>>().join(", ")))
}

/// Transitions that the kernel committed because of a line. The anomaly that names a forged type repeats the refusal, so its
/// tick is enough.
fn noted_text(noted: &[Record]) -> String {
    let each = noted.iter().map(|record| {
        let tick = record.header().tick.unwrap_or_default();
        let violations = record.body().value("/violations");
        let warning = violations.map(|list| format!(" {}", quote::value(&list))).unwrap_or_default();
        format!("   WARN {} at tick {tick}{warning}", type_name(record))
    });
    each.collect()
}

/// Returns the counts of a recording as text.
pub(crate) fn words(tally: &LinesTally) -> String {
    let more = [(tally.repeated, "repeated"), (tally.turned, "stale")].into_iter();
    let more = more.filter(|(number, _)| *number > 0).map(|(number, word)| format!(", {number} {word}"));
    format!(
        "{}, {} refused, {}{}",
        count(tally.committed, "transition", "transitions"),
        tally.refused,
        count(tally.anomalies, "anomaly", "anomalies"),
        more.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_type_means_the_nearest_or_the_one_that_its_words_name() {
        for (unknown, expected) in [
            ("plan.updte", Some("plan.update")),
            ("tool.call", Some("action.request")),
            ("tool_result", Some("action.result")),
            ("message.user", Some("observation.add")),
            ("final.thought", Some("plan.update")),
            ("hello", None),
            ("recall", None),
        ] {
            assert_eq!(meant(unknown), expected, "{unknown}");
        }
        for (word, name) in MEANT {
            assert!(types().any(|known| known == *name), "{word} means {name}, which is no type");
        }
    }

    #[test]
    fn a_failed_line_has_its_number_and_its_reason() {
        let failed = FailedLine {
            line: 4,
            code: Code::E0209,
            message: "this is \u{1b}[2J an object".to_owned(),
            path: "/action".to_owned(),
            byte: None,
        };
        let reply = Reply::Failed(failed);
        assert_eq!(
            item(&reply).to_string(),
            r#"{"id":null,"line":4,"reason":{"code":"E0209","message":"this is \u001b[2J an object","path":"/action"},"tick":null,"type":null,"what":"failed"}"#
        );
        let text = line(&reply, false);
        assert!(text.starts_with("failed  line 4  E0209 this is ") && !text.contains('\u{1b}'), "{text}");
    }
}
