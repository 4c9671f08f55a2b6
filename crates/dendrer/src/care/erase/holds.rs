//! The one list of what goes with a value: by which member of a record it could be read, or guessed from a digest.
//!
//! `erase` destroys these fields, and `export --withhold` leaves them out. Each row has the condition on which one member holds the value, or a
//! digest over a whole that does. Rows are asked until none adds a field, since one may follow from another.
//!
//! Rule: a value that is gone is found from no digest that is left; tests `nothing_is_left_to_guess_a_number`, `.._a_word`, `.._a_yes_or_no`.

use std::sync::Arc;

use dendrer_kernel::step::ROUNDED;
use dendrer_object::intent::line;
use dendrer_object::record::{Kind, Record};
use dendrer_object::{Digest, MESSAGES, Pointer, RunName, Value};

use super::EraseReason;
use super::place::below;
use crate::run::merged::MEMBER as MERGE;

/// Who fills a member of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    /// Its author, who may have read the value before.
    ByAuthor,
    /// The kernel, or the program that wrote the record: what it has is a copy, or nothing of the value.
    ByKernel,
}

/// Members of the content with values.
const MEMBERS: [(&str, Filled); 39] = [
    ("accepted", Filled::ByKernel),
    ("action", Filled::ByAuthor),
    ("anomalies", Filled::ByAuthor),
    ("bisect", Filled::ByAuthor),
    ("chain", Filled::ByAuthor),
    ("cherrypick", Filled::ByKernel),
    ("closes", Filled::ByAuthor),
    ("commitments", Filled::ByAuthor),
    ("contract", Filled::ByKernel),
    ("delta", Filled::ByAuthor),
    ("denied", Filled::ByAuthor),
    ("diff", Filled::ByAuthor),
    ("edges", Filled::ByAuthor),
    ("evidence", Filled::ByAuthor),
    ("extension", Filled::ByKernel),
    ("fork", Filled::ByKernel),
    ("fork_reason", Filled::ByKernel),
    ("goal", Filled::ByAuthor),
    ("graph", Filled::ByKernel),
    ("guidance", Filled::ByKernel),
    ("import_reason", Filled::ByKernel),
    ("intent", Filled::ByAuthor),
    ("line", Filled::ByAuthor),
    ("metrics", Filled::ByAuthor),
    ("meta", Filled::ByAuthor),
    ("pack", Filled::ByKernel),
    ("pack_text", Filled::ByKernel),
    ("policy", Filled::ByAuthor),
    ("proposed", Filled::ByAuthor),
    ("reason", Filled::ByKernel),
    ("result", Filled::ByAuthor),
    ("scope", Filled::ByAuthor),
    ("spent", Filled::ByKernel),
    ("state", Filled::ByAuthor),
    ("violations", Filled::ByKernel),
    ("would_refuse", Filled::ByKernel),
    (MESSAGES, Filled::ByAuthor),
    (ROUNDED, Filled::ByAuthor),
    ("deleg", Filled::ByKernel),
];

/// Fields of those members with one of a few words or a number.
const WORDS: [&str; 3] = ["/action/tool", "/intent/confidence", "/result/status"];

/// Who fills a field; `None` for names and words of the kernel.
pub(super) fn filled(field: &Pointer) -> Option<Filled> {
    if WORDS.contains(&field.as_str()) {
        return None;
    }
    let member = field.tokens().next()?;
    MEMBERS.iter().find(|(name, _)| **name == *member).map(|(_, filled)| *filled)
}

/// Maker of the changes of a run's state.
#[derive(Debug, Clone, Default)]
pub(super) enum Reducer {
    /// The author of each line.
    #[default]
    Author,
    /// The rules of a pack, which look at these places of the state.
    Rules(Arc<[Pointer]>),
    /// A module, which is given the whole state.
    Module,
}

/// Another record that a record was made of, as far as it has the value.
#[derive(Debug, Clone, Default)]
pub(super) struct Source {
    /// The places of its state that hold the value.
    pub(super) held: Vec<Pointer>,
    /// Whether commitments or evidence of its run are gone.
    pub(super) has_lists: bool,
}

/// The facts around one record when the list is asked.
#[derive(Debug)]
pub(super) struct Seen<'r> {
    pub(super) record: &'r Record,
    /// The fields that go so far.
    pub(super) gone: Vec<Pointer>,
    /// The places of the state before that hold the value.
    pub(super) before: Vec<Pointer>,
    /// Whether the run has the value in its history, or it is the record that was named.
    pub(super) is_related: bool,
    /// Whether the run has the value in its history.
    pub(super) is_behind: bool,
    /// Whether it is a refusal of which a member was named as a whole.
    pub(super) is_whole: bool,
    /// Whether the run has the value since a refusal of it.
    pub(super) is_after: bool,
    /// Whether it is about a refusal of which something is gone, and may have it in a place.
    pub(super) of_refusal: bool,
    /// The fields that are gone of the records that this one was made of.
    pub(super) of_origin: Vec<Pointer>,
    /// The runs with the value that it was made of, or that it quotes.
    pub(super) sources: Vec<Source>,
    pub(super) reducer: Reducer,
    /// Whether the pack of the run that it continues is gone.
    pub(super) is_pack_gone: bool,
    pub(super) is_graph: bool,
    /// Whether it is a finding about a run that has the value.
    pub(super) is_finding: bool,
}

impl Seen<'_> {
    fn is_gone(&self, members: &[&str]) -> bool {
        members.iter().any(|member| touches(&self.gone, member))
    }

    fn is_run(&self) -> bool {
        self.record.header().kind == Kind::Run
    }

    fn is_type(&self, name: &str) -> bool {
        self.record.header().type_name.as_ref().is_some_and(|found| found.as_str() == name)
    }

    /// Whether a source holds the value in its state.
    fn is_held(&self) -> bool {
        self.sources.iter().any(|source| !source.held.is_empty())
    }

    fn has_lists(&self) -> bool {
        self.sources.iter().any(|source| source.has_lists)
    }

    /// Whether a member has one of some names somewhere inside.
    fn has(&self, member: &str, names: &[&str]) -> bool {
        let value = self.record.body().value(Pointer::of([member]).as_str());
        value.is_some_and(|value| has_name(&value, names))
    }

    /// Whether the rules or the module computed the change from what is gone.
    fn is_computed(&self) -> bool {
        let reads = match &self.reducer {
            Reducer::Author => return false,
            Reducer::Rules(read) => {
                self.before.iter().any(|held| read.iter().any(|place| place.overlaps(held)))
            }
            Reducer::Module => !self.before.is_empty(),
        };
        reads || self.is_gone(&["intent", "action", "result", "policy", "evidence", "scope", MESSAGES])
    }

    /// Whether the marker of a fork states values that are gone, as they were before it and after.
    fn is_enforced(&self) -> bool {
        let about = self.record.body().value("/fork");
        let enforced = about.as_ref().and_then(|about| about.get("enforced")?.as_array());
        enforced.into_iter().flat_map(|list| list.iter()).any(|one| {
            let place = one.get("state").and_then(Value::as_str).and_then(|place| place.parse().ok());
            match place {
                Some(place) => {
                    let place: Pointer = place;
                    self.is_gone(&["delta"]) || self.before.iter().any(|held| held.overlaps(&place))
                }
                None => self.is_pack_gone,
            }
        })
    }
}

/// When a member goes.
type When = fn(&Seen<'_>) -> bool;

/// Names below which notes, reasons and findings of the kernel quote values.
const QUOTED: [&str; 10] =
    ["delta", "fields", "first", "found", "second", "source", "target", "text", "value", "values"];

/// The list: the field, why it goes, and when.
const HELD: [(&str, EraseReason, When); 28] = [
    // Under rules and modules, what was done to the state is computed; a graph's end has the answers of all nodes.
    ("/delta", EraseReason::Copy, |seen| {
        seen.is_related && seen.is_computed()
            || touches(&seen.of_origin, "delta")
            || seen.is_type("kernel.anomaly") && seen.is_gone(&["anomalies"])
            || seen.is_graph && !seen.before.is_empty() && seen.is_type("goal.complete")
    }),
    ("/result/output", EraseReason::Copy, |seen| {
        seen.is_graph && !seen.before.is_empty() && seen.is_type("goal.complete")
    }),
    // The change as it was proposed, before the kernel rounded it, and what was rounded.
    ("/proposed", EraseReason::Copy, |seen| seen.is_gone(&["delta"])),
    ("/rounded", EraseReason::Copy, |seen| seen.is_gone(&["delta"])),
    // The messages that a thread is given: its channel or a write has them.
    ("/messages", EraseReason::Copy, |seen| seen.gone.iter().any(holds_messages)),
    ("/anomalies", EraseReason::Copy, |seen| {
        seen.is_gone(&["delta", "intent", "action", "result"]) && seen.has("anomalies", &QUOTED)
            || seen.of_refusal
    }),
    ("/would_refuse", EraseReason::Copy, |seen| {
        (!seen.gone.is_empty() || !seen.before.is_empty()) && seen.has("would_refuse", &QUOTED)
    }),
    // The reason of a refusal names places as its author wrote them.
    ("/reason", EraseReason::Copy, |seen| {
        seen.record.header().kind == Kind::Refusal
            && !seen.gone.is_empty()
            && (seen.is_behind || seen.is_whole && names_places(seen.record, "reason"))
            || (!seen.gone.is_empty() || !seen.before.is_empty() || seen.is_held())
                && seen.has("reason", &QUOTED)
    }),
    // Amounts of a call, which commitments sum up, are computed from it and from the state before.
    ("/spent", EraseReason::Copy, |seen| seen.is_gone(&["action"]) || !seen.before.is_empty()),
    // The text of an imported row has all that its record has, and each later row a hash over that text.
    ("/intent/row", EraseReason::Digest, |seen| seen.is_related || seen.is_after),
    ("/intent/cfd", EraseReason::Digest, |seen| seen.is_related || seen.is_after),
    ("/intent/cfd_text", EraseReason::Digest, |seen| seen.is_related || seen.is_after),
    // A hash over what was bound of the state, and over the action.
    ("/context", EraseReason::Digest, |seen| seen.is_gone(&["action"]) || !seen.before.is_empty()),
    ("/edge", EraseReason::Digest, |seen| seen.is_gone(&["action", "result"])),
    // The values of the fields of a contract on both sides, and the hash over those of the source.
    ("/cherrypick", EraseReason::Digest, |seen| {
        !seen.before.is_empty() || seen.is_held() || seen.is_gone(&["delta", "action"])
    }),
    ("/fork", EraseReason::Copy, |seen| seen.is_enforced()),
    // Values that a parent takes of its child, and those that a child has of its parents.
    ("/accepted", EraseReason::Copy, |seen| !seen.sources.is_empty()),
    ("/contract", EraseReason::Copy, |seen| seen.is_held() || seen.has_lists()),
    // Beginnings with the values of other runs.
    ("/pack", EraseReason::Copy, |seen| seen.is_run() && seen.is_pack_gone),
    ("/pack_text", EraseReason::Copy, |seen| seen.is_run() && (seen.is_pack_gone || seen.is_gone(&["pack"]))),
    ("/meta", EraseReason::Digest, |seen| {
        seen.is_run() && seen.is_held() && seen.has("meta", &[MERGE, "state_root"])
    }),
    ("/commitments", EraseReason::Copy, |seen| seen.is_run() && seen.has_lists()),
    ("/inputs", EraseReason::Digest, |seen| {
        seen.is_run() && (seen.is_gone(&["pack", "pack_text", "state"]) || seen.is_held())
    }),
    ("/state_root", EraseReason::Digest, |seen| seen.is_gone(&["pack", "pack_text", "state"])),
    // A finding quotes states, steps and roots of the run that it is about.
    ("/bisect", EraseReason::Copy, |seen| seen.is_finding),
    ("/chain", EraseReason::Copy, |seen| seen.is_finding),
    ("/diff", EraseReason::Copy, |seen| seen.is_finding),
    ("/violations", EraseReason::Copy, |seen| !seen.before.is_empty() && seen.has("violations", &QUOTED)),
];

/// Returns the fields that go with those that are gone already.
pub(super) fn held_by(mut seen: Seen<'_>) -> Vec<(Pointer, EraseReason)> {
    let fields = seen.record.body().fields();
    let mut found: Vec<(Pointer, EraseReason)> = Vec::new();
    // The state with which a run begins is that of its sources, place by place.
    if seen.is_run() {
        let state = |held: &Pointer| below("state", held);
        let held: Vec<Pointer> =
            seen.sources.iter().flat_map(|source| source.held.iter().map(state)).collect();
        for field in fields.iter().filter(|field| held.iter().any(|held| held.overlaps(&field.pointer))) {
            found.push((field.pointer.clone(), EraseReason::Copy));
            seen.gone.push(field.pointer.clone());
        }
    }
    loop {
        let known = found.len();
        for (name, reason, when) in HELD {
            let field = fields.iter().map(|field| &field.pointer).find(|field| field.as_str() == name);
            let Some(field) = field.filter(|field| !seen.gone.contains(field)) else { continue };
            if when(&seen) {
                seen.gone.push(field.clone());
                found.push((field.clone(), reason));
            }
        }
        if found.len() == known {
            return found;
        }
    }
}

/// Whether a member of the kernel has a place that an author named: one of the state, or none that a line has.
pub(super) fn names_places(record: &Record, member: &str) -> bool {
    fn is_there(value: &Value) -> bool {
        let is_of_author = |path: &str| {
            let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
            value.get("operation").is_some() || !line::MEMBERS.iter().any(|member| member.name == first)
        };
        match value {
            Value::Object(members) => {
                value.get("path").and_then(Value::as_str).is_some_and(is_of_author)
                    || members.iter().any(|(_, value)| is_there(value))
            }
            Value::Array(items) => items.iter().any(is_there),
            _ => false,
        }
    }
    record.body().value(Pointer::of([member]).as_str()).is_some_and(|value| is_there(&value))
}

/// Members that the kernel writes, with words and decisions of a person who asked for it.
const OF_PERSON: [&str; 4] = ["cherrypick", "contract", "fork", "meta"];

/// The names of those words and decisions.
const WORDED: [&str; 7] =
    ["although", "constants", "enforced", "fork_reason", "gloss", "guidance", "import_reason"];

/// Whether a person filled a field of a record that the kernel wrote: the marker of a fork, a delegation, an import, a beginning.
pub(super) fn is_of_person(record: &Record, field: &Pointer) -> bool {
    let header = record.header();
    let is_fork = header.type_name.as_ref().is_some_and(|name| name.as_str() == "run.fork");
    let has_words = |member: &str| {
        let member = Pointer::of([member]);
        member.contains(field)
            && record.body().value(field.as_str()).is_some_and(|value| has_name(&value, &WORDED))
    };
    match field.as_str() {
        "/delta" => is_fork,
        "/goal" => header.kind == Kind::Run,
        "/commitments" => header.kind != Kind::Run && has_words("commitments"),
        _ => OF_PERSON.iter().any(|member| has_words(member)),
    }
}

fn has_name(value: &Value, names: &[&str]) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().any(|(name, value)| names.contains(&&**name) || has_name(value, names))
        }
        Value::Array(items) => items.iter().any(|value| has_name(value, names)),
        _ => false,
    }
}

/// The runs, each at a tick, that a record was made of or that it quotes.
pub(super) fn sources_of(record: &Record) -> Vec<(RunName, u64)> {
    let body = record.body();
    let mut named: Vec<(Option<RunName>, Option<u64>)> = Vec::new();
    let mut take = |value: &Value, run: &str, tick: &str| {
        let run = value.get(run).and_then(Value::as_str).and_then(|run| run.parse().ok());
        named.push((run, value.get(tick).and_then(Value::as_u64)));
    };
    let member = |name: &str| body.value(name).filter(|value| value.as_object().is_some());
    if let Some(meta) = member("/meta") {
        let sources = meta.get(MERGE).and_then(|merge| merge.get("sources")?.as_array());
        sources.into_iter().flat_map(|all| all.iter()).for_each(|source| take(source, "run", "tick"));
    }
    if let Some(contract) = member("/contract") {
        contract.get("parent").into_iter().for_each(|parent| take(parent, "run", "tick"));
        let parents = contract.get("parents").and_then(Value::as_array);
        parents.into_iter().flat_map(|all| all.iter()).for_each(|parent| take(parent, "run", "tick"));
    }
    if let Some(picked) = member("/cherrypick") {
        take(&picked, "source_run_id", "source_tick");
    }
    if let Some(accepted) = member("/accepted") {
        take(&accepted, "child", "tick");
    }
    if let Some(inputs) = member("/inputs").filter(|_| record.header().kind == Kind::Run) {
        inputs.get("reduced_from").into_iter().for_each(|from| take(from, "run", "begin"));
    }
    named.into_iter().filter_map(|(run, tick)| Some((run?, tick.unwrap_or_default()))).collect()
}

/// The digests that stand in a text, in any spelling of the format.
pub(super) fn digests_in(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.split(move |c: char| !c.is_ascii() || !is_part(c as u8)).filter(|part| matches!(part.len(), 43 | 64))
}

/// The spellings of a digest, as [`digests_in`] finds them.
pub(super) fn spellings(digest: Digest) -> [String; 2] {
    let text = digest.to_string();
    let hex = text.rsplit(':').next().unwrap_or_default().to_owned();
    [hex, digest.base64url()]
}

/// Whether a field has what the messages of the same record say: the change of a channel, or the writes of a task.
pub(super) fn holds_messages(field: &Pointer) -> bool {
    [Pointer::of(["delta"]), Pointer::of(["intent", "values"])].iter().any(|holds| field.overlaps(holds))
}

/// Whether one of some fields is a member of the content, or below it.
pub(super) fn touches(fields: &[Pointer], member: &str) -> bool {
    let member = Pointer::of([member]);
    fields.iter().any(|field| member.contains(field))
}
