//! The replies of `commit`: one for each line, as JSON and as text.
//!
//! The members are those of the schema `commit`. Text of a record reaches a line only through [`quote`](crate::quote).

use std::sync::Arc;

use dendrer::kernel::commitment::COMMITMENT_VIOLATED;
use dendrer::kernel::ontology::{Class, TYPES};
use dendrer::kernel::sealed;
use dendrer::kernel::step::{ROUNDED, STILL_VIOLATED};
use dendrer::kernel::unknown::made_by;
use dendrer::lines::{FailedLine, LineNotes, LinesTally, Overtaken, Reply, TurnedLine};
use dendrer::record::chain;
use dendrer::recorder::ParentNote;
use dendrer_object::document::{As, Positive};
use dendrer_object::text::nearest;
use dendrer_object::value::{Array, Object};
use dendrer_object::{ACTION_TYPE, Code, Digest, Pointer, Record, RunName, TypeName, Value, document};

use crate::answer::{End, ItemAnswer, Line, Page, Style};
use crate::certainty::{UnknownPlace, left_unknown, unknown_places};
use crate::merge::BegunViolated;
use crate::problem::HelpCommand;
use crate::{count, quote};

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
    /// Ids of rules and hard commitments that its stage does not enforce.
    not_enforced: Vec<Arc<str>>,
}

impl CommitAnswer {
    /// Begins the replies to lines for a run, given its last tick.
    pub fn new(run: RunName, head: u64, dry_run: bool) -> CommitAnswer {
        CommitAnswer { run, tally: LinesTally::default(), dry_run, head, not_enforced: Vec::new() }
    }

    /// Names the rules and hard commitments that the stage of the run does not enforce.
    pub fn without_enforcing(self, ids: Vec<Arc<str>>) -> CommitAnswer {
        CommitAnswer { not_enforced: ids, ..self }
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
        Some(CommitItem::of(reply, self.head).into())
    }

    fn item_lines(&mut self, reply: &Reply, _: &Page) -> Vec<Line> {
        self.tally.count(reply);
        vec![styled_line(reply, self.dry_run)]
    }

    fn summary(&self) -> Value {
        CommitDocument::of(self).into()
    }

    fn kept_lines(&mut self, _: &Page) -> Vec<Line> {
        Vec::new()
    }

    fn last_lines(&mut self, _: &Page) -> Vec<Line> {
        let dry = if self.dry_run { "nothing was written (dry run): " } else { "" };
        let mut lines = vec![Line::note(format!("{dry}{}", words(&self.tally)))];
        if !self.not_enforced.is_empty() {
            let ids = self.not_enforced.iter().map(|id| quote::escape(id)).collect::<Vec<_>>().join(", ");
            lines.push(Line::note(format!("note: the stage of {} does not enforce: {ids}", self.run)));
        }
        lines
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

document! {
    /// The replies to the lines of intents
    pub object CommitDocument: "commit" (answer: &CommitAnswer) {
        let tally = &answer.tally;
        /// The run
        run: &RunName = &answer.run,
        /// The number of lines that were committed
        committed: u64 = tally.committed,
        /// The number of lines that were refused
        refused: u64 = tally.refused,
        /// The number of lines that were committed before
        repeated: u64 = tally.repeated,
        /// The number of lines with a base or a key that were not taken
        stale: u64 = tally.turned,
        /// Ids of rules and hard commitments of the pack that the stage of the run does not enforce
        not_enforced?: &[Arc<str>] = Some(&*answer.not_enforced).filter(|ids| !ids.is_empty()),
        /// Whether nothing was written
        dry_run: bool = answer.dry_run,
        /// The replies
        items: stream CommitItem,
    }

    /// The reply to a line, and the end of the run after it
    object CommitItem(reply: &Reply, last: u64) {
        ..ReplyObject = ReplyObject::of(reply),
        /// The last tick of the run after the line
        head: u64 = last,
    }

    /// The reply to a line
    pub object ReplyObject(reply: &Reply) {
        let (word, number, record, made) = parts(reply);
        let why = record.and_then(|record| record.body().value("/reason"));
        let unknown = record.and_then(|record| unknown_type(record, why.as_ref()));
        /// The outcome
        what: ["begun" | "committed" | "refused" | "repeated" | "stale" | "key_used" | "failed"] = word,
        /// The number of the input line; null for begun
        line: Option<Positive> = number.map(Positive),
        /// The tick of the record; null if the line has none
        tick: Option<u64> = record.and_then(|record| record.header().tick),
        /// The id of the record; null if the line has none
        id: Option<Digest> = record.map(Record::id),
        /// The type of the record; null if the line has none
        type: Option<&TypeName> = record.and_then(|record| record.header().type_name.as_ref()),
        ..?RecordNotes = record.map(RecordNotes::of),
        /// Transitions that the kernel committed because of the line
        noted?: Vec<NotedRecord> = (!made.is_empty()).then(|| made.iter().map(NotedRecord::of).collect()),
        /// Places that the line sets, and that another process set since this one read the run
        overtaken?: Vec<OvertakenPlace> = notes_of(reply)
            .filter(|notes| !notes.overtaken.is_empty())
            .map(|notes| notes.overtaken.iter().map(OvertakenPlace::of).collect()),
        /// Ids of rules and hard commitments that would have refused the line, or that it brings, below stage 2
        not_enforced?: Vec<&str> = notes_of(reply)
            .filter(|notes| !notes.not_enforced.is_empty())
            .map(|notes| notes.not_enforced.iter().map(|id| &**id).collect()),
        /// The rules that the line is the first to break
        violations?: Vec<BegunViolated> = notes_of(reply)
            .filter(|notes| !notes.violations.is_empty())
            .map(|notes| notes.violations.iter().map(BegunViolated::of).collect()),
        /// Facts about the parents that the line names
        parents?: Vec<ParentNoteObject> = notes_of(reply)
            .filter(|notes| !notes.parents.is_empty())
            .map(|notes| notes.parents.iter().map(ParentNoteObject::of).collect()),
        /// The stage at which the run is recorded, in begun
        stage?: u64 = begun_stage(reply),
        /// The type that an unknown type probably means
        meant?: String = unknown.as_ref().and_then(|(name, message)| suggestion(name, message)),
        /// Commands that help with an unknown type
        help?: Vec<HelpCommand> = unknown.map(|_| vec![HelpCommand::of(&HELP.map(str::to_owned))]),
        /// The reason why the line was not committed
        reason?: ReplyReason = ReasonParts::of(reply).as_ref().map(ReplyReason::of),
    }

    /// A fact about the parents of a line
    object ParentNoteObject(note: &ParentNote) {
        let (word, record, agent) = match note {
            ParentNote::Begins(record) => ("begins", Some(*record), None),
            ParentNote::Twice(record) => ("twice", Some(*record), None),
            ParentNote::NoRole(agent) => ("no_role", None, Some(&**agent)),
        };
        /// The agent begins with the run; a parent is named twice; policy decides, and an agent has no role
        note: ["begins" | "twice" | "no_role"] = word,
        /// The record that is named
        hash?: Digest = record,
        /// The agent without a role
        agent?: &str = agent,
    }

    /// A place that a line sets, and that another process set before
    object OvertakenPlace(place: &Overtaken) {
        /// The place
        path: String = place.path.written(),
        /// The tick of the other write
        tick: u64 = place.tick,
        /// The agent of the other write
        agent: &str = &place.agent,
    }

    /// A transition that the kernel committed because of a line
    object NotedRecord(record: &Record) {
        /// The tick
        tick: u64 = record.header().tick.unwrap_or_default(),
        /// The id
        id: Digest = record.id(),
        /// The type
        type: String = type_name(record),
        /// The violations that it names
        violations?: As<Array> = record.body().value("/violations").map(As::new),
        ..RecordNotes = RecordNotes::of(record),
    }

    /// The notes of a record
    object RecordNotes(record: &Record) {
        let part = |name: &str| record.body().value(&format!("/{name}"));
        /// The id of the step of a witness chain
        step_id?: As<str> = step_id(record).map(As::new),
        /// The anomalies
        anomalies?: As<Array> = part("anomalies").map(As::new),
        /// Violations that began earlier, and that this transition leaves although it changes a place that they read
        still_violated?: As<Vec<StillViolated>> = part(STILL_VIOLATED).map(As::new),
        /// Values that were rounded to the decimals of their field
        rounded?: Vec<RoundedValue> = part(ROUNDED).map(|all| rounded(&all)),
        /// Ids of the commitments that the committed action violates
        violates?: As<[String]> = violates(record).map(As::new),
        /// Places of the state that are unknown from this transition on
        unknown?: Vec<UnknownPlace> = unknown_places(&made_by(record)),
    }

    /// A value that was rounded to the decimals of its field
    object RoundedValue(rounding: &Value) {
        /// The place, as a JSON pointer
        path: String = rounding.get("path").and_then(Value::as_str).unwrap_or_default().to_owned(),
        /// The value that was to be written
        from: Value = rounding.get("from").cloned().unwrap_or(Value::Null),
        /// The value that is there
        to: Value = rounding.get("to").cloned().unwrap_or(Value::Null),
    }

    /// A violation that began earlier
    object StillViolated(name: &str, began: u64) {
        /// The id of the predicate
        id: &str = name,
        /// The tick at which it began
        since: u64 = began,
    }

    /// The reason why a line was not committed
    object ReplyReason(parts: &ReasonParts<'_>) {
        /// The code, as `dendrer explain` takes it
        code: &str = &parts.code,
        /// The reason in one sentence
        message: &str = &parts.message,
        /// The place in the line, or the first place that was written after base; null if none was
        path?: Option<String> = parts.path.clone(),
        /// The byte of the line
        byte?: usize = parts.byte,
        /// The tick that the line was decided on
        base?: u64 = parts.base,
        /// The last tick of the run
        head?: u64 = parts.head,
        /// The tick that has the key of the line
        tick?: u64 = parts.tick,
        /// Places that were written after base
        changed?: &[Pointer] = parts.changed,
        /// Author that the line named, kernel or institution
        claimed_author?: &str = parts.claimed_author.as_deref(),
        /// Ids of the commitments that refuse the line
        commitments?: As<[String]> = parts.commitments.clone().map(As::new),
        /// For each limit of a contract's budget that is reached: what is used, and the limit
        budget?: As<Object> = parts.budget.clone().map(As::new),
    }
}

/// Returns the outcome in a word, the line, its record, and those that the kernel committed because of it.
fn parts(reply: &Reply) -> (&'static str, Option<u64>, Option<&Record>, &[Record]) {
    match reply {
        Reply::Begun(record) => ("begun", None, Some(record), &[]),
        Reply::Committed { line, record, noted, .. } => ("committed", Some(*line), Some(record), noted),
        Reply::Refused { line, refusal, noted } => ("refused", Some(*line), Some(refusal), noted),
        Reply::Repeated { line, record } => ("repeated", Some(*line), Some(record), &[]),
        Reply::Turned { line, why } => (turned_word(why), Some(*line), None, &[]),
        Reply::Failed(failed) => ("failed", Some(failed.line), None, &[]),
    }
}

fn rounded(all: &Value) -> Vec<RoundedValue> {
    all.as_array().into_iter().flat_map(|all| all.iter()).map(RoundedValue::of).collect()
}

/// Returns the stage of a run that begins.
fn begun_stage(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Begun(record) => record.body().value("/stage")?.as_u64(),
        _ => None,
    }
}

/// Returns what a reply to a committed line states and no record has.
fn notes_of(reply: &Reply) -> Option<&LineNotes> {
    match reply {
        Reply::Committed { notes, .. } => Some(notes),
        _ => None,
    }
}

/// Returns a reply as an item of the document `commit`, without the end of its run.
pub fn item(reply: &Reply) -> Value {
    ReplyObject::of(reply).into()
}

/// Parts of the reason why a line was not committed.
#[derive(Debug, Default)]
struct ReasonParts<'r> {
    code: String,
    message: String,
    path: Option<Option<String>>,
    byte: Option<usize>,
    base: Option<u64>,
    head: Option<u64>,
    tick: Option<u64>,
    changed: Option<&'r [Pointer]>,
    claimed_author: Option<String>,
    commitments: Option<Value>,
    budget: Option<Value>,
}

impl ReasonParts<'_> {
    /// Returns the reason in a reply; `None` if the line is committed.
    fn of(reply: &Reply) -> Option<ReasonParts<'_>> {
        match reply {
            Reply::Refused { refusal, .. } => {
                let reason = refusal.body().value("/reason")?;
                let text = |name: &str| reason.get(name).and_then(Value::as_str).map(str::to_owned);
                Some(ReasonParts {
                    code: text("code").unwrap_or_default(),
                    message: refused(refusal),
                    path: text("path").map(Some),
                    claimed_author: text("claimed_author"),
                    commitments: reason.get("commitments").cloned(),
                    budget: reason.get("budget").filter(|budget| budget.as_object().is_some()).cloned(),
                    ..ReasonParts::default()
                })
            }
            Reply::Turned { why, .. } => {
                let parts = ReasonParts {
                    code: why.code().to_string(),
                    message: turned(why),
                    ..ReasonParts::default()
                };
                Some(match why {
                    TurnedLine::Stale { base, head, changed } => ReasonParts {
                        base: Some(*base),
                        head: Some(*head),
                        path: Some(changed.first().map(Pointer::written)),
                        changed: Some(changed),
                        ..parts
                    },
                    TurnedLine::KeyUsed(tick) => ReasonParts { tick: Some(*tick), ..parts },
                })
            }
            Reply::Failed(failed) => Some(ReasonParts {
                code: failed.code.to_string(),
                message: failed.message.clone(),
                path: (!failed.path.is_empty()).then(|| Some(failed.path.clone())),
                byte: failed.byte,
                ..ReasonParts::default()
            }),
            _ => None,
        }
    }
}

/// The command that lists the types.
const HELP: [&str; 3] = ["dendrer", "schema", "intent"];

/// Returns the sentence on a refusal. Of a line that names the user it names the flag with which a line may.
fn refused(refusal: &Record) -> String {
    let message = chain::refused(&refusal.content()).unwrap_or_default();
    let reason = refusal.body().value("/reason");
    let names_user = |reason: &Value| {
        let is = |name: &str, text: &str| reason.get(name).and_then(Value::as_str) == Some(text);
        is("cause", "author_not_given") && is("author", "user")
    };
    match reason.as_ref().is_some_and(names_user) {
        true => format!("{message}; `dendrer commit --as runtime,user` takes lines of a user"),
        false => message,
    }
}

/// Returns the word for a line with a `base` or a `key` that was not taken.
fn turned_word(why: &TurnedLine) -> &'static str {
    if matches!(why, TurnedLine::Stale { .. }) { "stale" } else { "key_used" }
}

/// Returns the ids of the commitments that an action violates which was committed all the same.
fn violates(record: &Record) -> Option<Value> {
    let notes = record.body().value("/anomalies")?;
    let is_it = |note: &&Value| note.get("kind").and_then(Value::as_str) == Some(COMMITMENT_VIOLATED);
    notes.as_array()?.iter().find(is_it)?.get("commitments").cloned()
}

/// The id of the step that the transition is of.
fn step_id(record: &Record) -> Option<Value> {
    record.body().value(&format!("/{ACTION_TYPE}"))?;
    record.content().get("intent")?.get("step")?.get("step_id").cloned()
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
        Reply::Begun(record) => {
            let stage = begun_stage(reply).filter(|stage| *stage != 1);
            let stage = stage.map(|stage| format!("  stage {stage}")).unwrap_or_default();
            format!("{would_be}begun  {}{stage}", record.id())
        }
        Reply::Committed { line, record, noted, notes } => {
            let notes = notes_text(notes, noted);
            let (listed, noted) = (listed(record), noted_text(noted));
            format!("{would_be}{}  line {line}{listed}{noted}{notes}", transition(record))
        }
        Reply::Refused { line, refusal, noted } => {
            let reason = refusal.body().value("/reason").unwrap_or(Value::Null);
            let part =
                |name: &str| reason.get(name).and_then(Value::as_str).map(quote::escape).unwrap_or_default();
            let message = quote::escape(&self::refused(refusal));
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
                "{would_be}refused  {id}  {name}  line {line}  {code} {}{message}{hint}{}",
                member(reason.get("path").and_then(Value::as_str).filter(|_| part("cause") == SCHEMA)),
                noted_text(noted)
            )
        }
        Reply::Repeated { line, record } => format!("repeated  {}  line {line}", transition(record)),
        Reply::Turned { line, why } => {
            format!("{}  line {line}  {} {}", turned_word(why), why.code(), turned(why))
        }
        Reply::Failed(failed) => {
            let FailedLine { line, code, message, path, .. } = failed;
            format!("failed  line {line}  {code} {}{}", member(Some(path)), quote::escape(message))
        }
    }
}

/// The cause of a refusal of a line that has not the form of an intent.
const SCHEMA: &str = "schema_mismatch";

/// Writes the member of a line that a fault is in, before the fault; nothing for the line as a whole.
fn member(path: Option<&str>) -> String {
    let place = path.and_then(|path| path.parse::<Pointer>().ok()).map(|place| quote::path(&place));
    place.filter(|place| !place.is_empty()).map(|place| format!("{place}: ")).unwrap_or_default()
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
        .chain(rounded_text(record))
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

/// Returns the notes of a committed line as text. A violation that the kernel named in a record of its own is there already.
fn notes_text(notes: &LineNotes, noted: &[Record]) -> String {
    let each = notes.overtaken.iter().map(|Overtaken { path, tick, agent }| {
        format!("{} (tick {tick}, {})", quote::path(path), quote::name(agent))
    });
    let overtaken = each.collect::<Vec<_>>().join(", ");
    let ids = notes.not_enforced.iter().map(|id| quote::escape(id)).collect::<Vec<_>>().join(", ");
    let named: Vec<Value> = noted.iter().filter_map(|record| record.body().value("/violations")).collect();
    let named = named.iter().filter_map(Value::as_array).flat_map(|all| all.iter());
    let named: Vec<&str> = named.filter_map(|one| one.get("id")?.as_str()).collect();
    let broken = notes.violations.iter().filter(|broken| !named.contains(&&*broken.predicate));
    let broken = broken.map(|broken| quote::escape(&broken.predicate)).collect::<Vec<_>>().join(", ");
    let each = [("overtaken", overtaken), ("not enforced", ids), ("violates", broken)];
    let each = each.into_iter().filter(|(_, text)| !text.is_empty());
    let each = each.map(|(word, text)| format!("   WARN {word}: {text}"));
    each.chain(notes.parents.iter().map(|note| format!("   note: {}", parent_words(note)))).collect()
}

fn parent_words(note: &ParentNote) -> String {
    match note {
        ParentNote::Begins(record) => {
            format!(
                "{} is of another run, so the agent starts from the beginning of this run",
                record.short()
            )
        }
        ParentNote::Twice(record) => format!("the parent {} is named twice and counts once", record.short()),
        ParentNote::NoRole(agent) => {
            format!("policy decides, and the pack gives {} no role (it counts as 0)", quote::name(agent))
        }
    }
}

/// Returns the values of a transition that were rounded, as text.
fn rounded_text(record: &Record) -> Option<String> {
    let all = record.body().value(&format!("/{ROUNDED}"))?;
    let part = |one: &Value, name: &str| quote::value(one.get(name).unwrap_or(&Value::Null));
    let path = |one: &Value| {
        let path = one.get("path").and_then(Value::as_str).and_then(|path| path.parse().ok());
        path.map(|path| quote::path(&path)).unwrap_or_default()
    };
    let each = all
        .as_array()?
        .iter()
        .map(|one| format!("{} {} -> {}", path(one), part(one, "from"), part(one, "to")));
    Some(format!("   rounded: {}", each.collect::<Vec<_>>().join(", ")))
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
        assert!(
            text.starts_with("failed  line 4  E0209 action: this is ") && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}
