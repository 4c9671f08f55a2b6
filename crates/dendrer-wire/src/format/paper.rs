//! Events of the dendrer paper (appendix B) with the chain hash of 3.1, as `export --format paper` writes them.
//!
//! Reading: an event of an agent or its runtime is proposed again, with the change between its states. The kernel's and the
//! institution's events cannot be proposed, and types of a pack are unknown without it: such an event becomes an
//! `observation.add`. Members that this store did not make are kept in a note, and an export writes them where they were.
//! Never makes a record of the kernel from a file.
//!
//! Writing: besides the paper's members an event has every other member of the record: the context hash and the contract
//! that it was checked against, the parent of a fork, the source of an import, the violations, the text of an extension.
//! Links are left out, because they name records of one store. Rule: a run that was imported from events is written as its
//! source was, except for `author`, ids and times; test `every_demo_run_comes_back_from_the_papers_form`.
//!
//! The chain hash covers the canonical JSON of the event without `chain_hash`, followed by the previous hash as 64 hex
//! digits. It proves nothing: no separators are put between what is joined, so two texts can have one hash (design,
//! section 3).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer::Trace;
use dendrer::kernel::ontology::{self, Class};
use dendrer::kernel::step::{COUNTERS, KERNEL_PATHS, Start};
use dendrer::run::event::{EventContract, EventLine};
use dendrer::run::pack;
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::intent::line;
use dendrer_object::record::{Author, Record};
use dendrer_object::value::Object;
use dendrer_object::{Code, Digest, Intent, Pointer, TypeName, Value, json, tag};

use crate::foreign::{self, CfdTerms, CheckedFile, FileFault, Format, Steps, WriteError, WrittenPart};
use crate::import::calls::Calls;
use crate::import::error::ImportError;
use crate::import::items::{self, Item};
use crate::import::layout::Layout;
use crate::import::note::{At, ImportNote, NoteKind};
use crate::import::scan::Sizes;
use crate::import::transition::{Step, name_of};

/// The format.
pub(super) static PAPER: Format = Format {
    accept: |map, engine| match (map, engine) {
        (None, Some(_)) => Err(ImportError::unfit("events bring their changes of state; leave --pack out")),
        _ => foreign::without_map(map),
    },
    begin,
    write: Some(|trace, _, line| write(trace, true, line)),
    single: Some("a chain of hashes"),
    check: Some(check),
    ..Format::new("paper", "Events of the dendrer paper, as export --format paper writes them", |_| {
        Box::new(Events)
    })
};

/// The type of an event that cannot be proposed under its own.
const OBSERVED: &str = "observation.add";

/// The member of an event with its hash (3.1).
const CHAIN_HASH: &str = "chain_hash";

/// The agent of an event whose own goes by a reserved name.
const IMPORTER: &str = "import";

/// Members that are made again by the kernel, and ids and times.
const MADE_AGAIN: [&str; 9] =
    ["tick", "ts", "run_id", "id", "prev", CHAIN_HASH, "state_root", "author", "seq"];

/// Members that a step is read from.
const READ: [&str; 4] = ["transition_type", "agent_id", "state_before", "state_after"];

/// Events as steps.
struct Events;

impl Steps for Events {
    fn step<'i>(&mut self, item: &'i Item<'_>, _: &mut Calls) -> Result<Step<'i>, ImportError> {
        read(&item.value, item.at)
    }
}

/// Checks the chain of hashes, and gives a run whose state the caller does not give the state before its first event.
fn begin(
    source: &mut dyn std::io::Read,
    layout: &Layout,
    start: &mut Start,
) -> Result<Option<ImportNote>, ImportError> {
    let mut before = Before::default();
    items::read(source, layout, Sizes::default(), &mut |item| before.take(&item.value, item.at))?;
    if start.state != Value::object() {
        return Ok(None);
    }
    start.state = before.state();
    Ok(before.note())
}

/// The run as all of its events together say it, read before the first event is proposed.
#[derive(Debug, Default)]
struct Before {
    members: BTreeMap<Arc<str>, Option<Value>>,
    chain: Option<Chain>,
    /// The state after the first event, and its digest as the file has it.
    first: Option<(Value, Option<Arc<str>>)>,
}

impl Before {
    /// Reads one event: the first value of each member of the state, and the hash of the event.
    fn take(&mut self, item: &Value, at: At<'_>) -> Result<(), ImportError> {
        let Some(event) = stored(item) else { return Ok(()) };
        if self.first.is_none() {
            self.chain = event.get(CHAIN_HASH).map(|_| Chain::default());
            let root = event.get("state_root").and_then(Value::as_str).map(Arc::from);
            self.first = Some((side(&event, "state_after"), root));
        }
        if let Some(chain) = &mut self.chain {
            chain.check(&tag::undoubled(item)).map_err(|why| ImportError::refused(Code::E0213, why, at))?;
        }
        let (before, after) = (side(&event, "state_before"), side(&event, "state_after"));
        for name in names(&before, &after) {
            let first = before.get(&name).cloned();
            self.members.entry(name).or_insert(first);
        }
        Ok(())
    }

    /// The state before the first event, as far as events say it.
    fn state(&self) -> Value {
        let own = self.members.iter().filter(|(name, _)| !is_kernels(name));
        Value::record(
            own.filter_map(|(name, value)| Some((Arc::clone(name), value.clone()?))).collect::<Vec<_>>(),
        )
    }

    /// The note that the file does not have the whole state.
    fn note(&self) -> Option<ImportNote> {
        let (after, root) = self.first.as_ref()?;
        let mut state = self.state().as_object().cloned().unwrap_or_default();
        for (name, value) in after.as_object().into_iter().flat_map(Object::iter) {
            state.set(name, value.clone());
        }
        let is_whole = root.as_deref() == Some(&*Value::Object(state).digest().to_string());
        let text = "members of the state that no event wrote, and those of the kernel, are not in the events";
        (!is_whole).then(|| ImportNote::new(NoteKind::StateIncomplete, "", text))
    }
}

/// Members of an event that are not made again by the kernel, and the reasons why they are kept.
#[derive(Default)]
struct Kept {
    members: Object,
    reasons: Vec<String>,
}

impl Kept {
    fn keep(&mut self, event: &Value, name: &str) {
        self.members.set(name, event.get(name).cloned().unwrap_or(Value::Null));
    }

    /// Keeps the members that the intent does not propose and nothing makes again.
    fn keep_others(&mut self, event: &Value, proposed: &Value) {
        let mut others = Vec::new();
        for (name, value) in event.as_object().into_iter().flat_map(Object::iter) {
            let is_empty = *value == Value::Null
                || (&**name == "anomalies" && value.as_array().is_some_and(|list| list.is_empty()));
            let is_made = MADE_AGAIN.contains(&&**name) || READ.contains(&&**name);
            if !is_made && !is_empty && proposed.get(name) != Some(value) {
                self.members.set(name, value.clone());
                others.push(&**name);
            }
        }
        if !others.is_empty() {
            self.reasons.push(format!("kept: {}", others.join(", ")));
        }
    }
}

/// Reads one event.
fn read(item: &Value, at: At<'_>) -> Result<Step<'static>, ImportError> {
    let Some(event) = stored(item) else {
        let text = format!("an event is an object, not {}", item.described());
        return Ok(Step::unreadable(item, at, text));
    };
    let text = |name: &str| event.get(name).and_then(Value::as_str);
    let mut kept = Kept::default();
    let Some(source_type) = text("transition_type").and_then(|name| name.parse::<TypeName>().ok()) else {
        let found = event.get("transition_type").unwrap_or(&Value::Null);
        let message = format!("an event has a transition_type, and that of this one is {found}");
        return Err(ImportError::refused(Code::E0210, message, at));
    };
    let class = ontology::class(&source_type, &BTreeSet::new());
    let is_proposed = matches!(class, Some(Class::Agent | Class::Runtime));
    let type_name = if is_proposed { source_type.clone() } else { name_of(OBSERVED) };
    let author = match text("author").and_then(|author| author.parse::<Author>().ok()) {
        _ if class == Some(Class::Runtime) => Author::Runtime,
        Some(author) if !ontology::is_claimed(author) => author,
        Some(_) => Author::Runtime,
        None => Author::Agent,
    };
    if type_name != source_type {
        kept.keep(&event, "transition_type");
        kept.reasons.push(match class {
            None => format!("{source_type} is a type of a pack, and recorded as {OBSERVED}"),
            Some(_) => {
                format!("{source_type} of another store is not judged here, and recorded as {OBSERVED}")
            }
        });
    }
    let source_agent = text("agent_id").unwrap_or_default();
    let agent = match ontology::check_name(source_agent) {
        Ok(()) if !source_agent.is_empty() => source_agent,
        _ => IMPORTER,
    };
    if agent != source_agent {
        kept.members.set("agent_id", Value::from(source_agent));
        kept.keep(&event, "seq");
    }
    // Members that an intent takes as they are.
    let members = line::kept()
        .chain(["goal_id"])
        .filter_map(|name| Some((name, brought(name, &event, &type_name, author)?)));
    let own = [("transition_type", Value::from(type_name.as_str())), ("agent_id", Value::from(agent))];
    let proposed = Value::record(members.chain(own));
    let fail = |error| ImportError::Intent { error, at: at.to_string() };
    let mut intent = Intent::from_value(&proposed, None).map_err(fail)?;
    intent.author = author;
    intent.delta = Some(changes(&event, &mut kept));
    kept.keep_others(&event, &proposed);
    let mut step = Step::new(intent);
    if !kept.members.is_empty() {
        let note = ImportNote::new(NoteKind::KeptFromSource, at, kept.reasons.join("; "));
        step.notes.push(note.with(EVENT, Value::Object(kept.members)));
    }
    Ok(step)
}

/// The changes between the states of an event; changes of the kernel's own paths are kept.
fn changes(event: &Value, kept: &mut Kept) -> Delta {
    let (before, after) = (side(event, "state_before"), side(event, "state_after"));
    let (kernels, touched): (Vec<_>, Vec<_>) =
        names(&before, &after).into_iter().partition(|name| is_kernels(name));
    if !kernels.is_empty() {
        kept.keep(event, "state_before");
        kept.keep(event, "state_after");
        kept.reasons.push("the state that the kernel writes is kept as it is".to_owned());
    }
    let ops = touched.iter().map(|name| {
        let path = Pointer::of([&**name]);
        match after.get(name) {
            Some(value) => Op::set(path, value.clone()),
            None => Op { action: Action::Remove, path, value: None },
        }
    });
    Delta(ops.collect())
}

/// Returns a member as its author may propose it: only the runtime brings policies and anomalies, but for the kinds of the
/// kernel, a user a decision, and only the result of a call is one.
pub(super) fn brought(name: &str, event: &Value, type_name: &TypeName, author: Author) -> Option<Value> {
    let value = event.get(name).filter(|value| **value != Value::Null)?;
    let may_bring = match name {
        "result" => type_name.as_str() == "action.result",
        "policy" if type_name.as_str() == "policy.decision" => author != Author::Agent,
        "policy" | "anomalies" => author == Author::Runtime,
        _ => true,
    };
    if name != "anomalies" {
        return may_bring.then(|| value.clone());
    }
    let notes = value.as_array()?;
    let others: Vec<Value> =
        notes.iter().filter(|note| ontology::kernel_kind(note).is_none()).cloned().collect();
    (may_bring && !others.is_empty()).then(|| Value::array(others))
}

fn is_kernels(name: &str) -> bool {
    name == COUNTERS || KERNEL_PATHS.contains(&name)
}

fn side(event: &Value, name: &str) -> Value {
    event.get(name).filter(|side| side.as_object().is_some()).cloned().unwrap_or_else(Value::object)
}

fn names(before: &Value, after: &Value) -> BTreeSet<Arc<str>> {
    let members = [before, after].into_iter().filter_map(Value::as_object).flat_map(Object::iter);
    members.map(|(name, _)| Arc::clone(name)).collect()
}

/// An event as it was stored: dendrer wrote it, tagged forms included. `None` if it is no object.
fn stored(item: &Value) -> Option<Value> {
    let value = tag::from_user_names(item);
    value
        .as_object()
        .is_some_and(|object| !object.iter().any(|(name, _)| tag::is_tag_name(name)))
        .then_some(value)
}

/// The member of the note `kept_from_source` with the members of the event.
const EVENT: &str = "event";

/// Members of a record that an event has under another name, or as the states before and after.
const OTHERWISE: [&str; 3] = ["context", "delta", "extension"];

/// Name and version of a pack.
type NameAndVersion = (Arc<str>, Arc<str>);

/// Writes the events of a run; with `has_hash` each has its hash, and those of an import are as their source had them.
pub(super) fn write(
    trace: &Trace,
    has_hash: bool,
    line: &mut dyn FnMut(WrittenPart<'_>) -> ControlFlow<()>,
) -> Result<(), WriteError> {
    let source = trace.start().body().value("/inputs");
    let kind = source.as_ref().and_then(|inputs| inputs.get("source")?.get("kind")?.as_str());
    let restores = has_hash && kind == Some(&PAPER.recorded_name());
    let mut writer = EventWriter { trace, restores, packs: BTreeMap::new() };
    let (mut before, mut previous) = (trace.state(0)?, None);
    trace.moments(0, trace.tip(), &mut |moment, record| {
        let after = moment.state.clone();
        let before = std::mem::replace(&mut before, after);
        let Some(record) = record else { return Ok(ControlFlow::Continue(())) };
        let mut event = tag::with_user_names(&writer.event(record, &before, &moment.state));
        if has_hash {
            let hash = chain_hash(&event, previous);
            previous = Some(hash);
            if let Value::Object(members) = &mut event {
                members.set(CHAIN_HASH, Value::from(hash.hex()));
            }
        }
        Ok(line(WrittenPart::Value(&event)))
    })
}

fn chain_hash(payload: &Value, previous: Option<Digest>) -> Digest {
    let previous = previous.map_or_else(String::new, |digest| digest.hex());
    Digest::of_parts(&[&json::to_vec(payload), previous.as_bytes()])
}

/// Checks the hashes of a file.
fn check(bytes: &[u8], _: &CfdTerms) -> Result<CheckedFile, FileFault> {
    // As they are: the hashes are of these bytes.
    let lines = foreign::lines(bytes, |line| json::parse_door(line).map(|value| tag::undoubled(&value)))?;
    let mut chain = Chain::default();
    let fault = (1..).zip(&lines).find_map(|(line, event)| Some((line, chain.check(event).err()?)));
    Ok(CheckedFile { fault, ..CheckedFile::of(lines.len()) })
}

/// The hash of the events so far (3.1).
#[derive(Debug, Default)]
struct Chain(Option<Digest>);

impl Chain {
    /// Checks the `chain_hash` of the next event, and returns why it is wrong.
    fn check(&mut self, event: &Value) -> Result<(), String> {
        let Some(stated) = event.get(CHAIN_HASH).and_then(Value::as_str) else {
            return Err("it has no chain_hash".to_owned());
        };
        let mut payload = event.as_object().cloned().unwrap_or_default();
        payload.remove(CHAIN_HASH);
        let hash = chain_hash(&Value::Object(payload), self.0);
        if hash.hex() != stated {
            return Err(format!("its chain_hash is {stated}, and its payload gives {}", hash.hex()));
        }
        self.0 = Some(hash);
        Ok(())
    }
}

/// Writes the events of one run.
#[derive(Debug)]
struct EventWriter<'t> {
    trace: &'t Trace,
    /// Whether the run was imported from events, and its events are written as they were.
    restores: bool,
    /// Name and version of each pack that was looked up.
    packs: BTreeMap<Digest, Option<NameAndVersion>>,
}

impl EventWriter<'_> {
    /// Writes one record, given the states before and after it.
    fn event(&mut self, record: &Record, before: &Value, after: &Value) -> Value {
        let content = record.content();
        let touched = touched(record, before, after);
        let of = |state: &Value| {
            let members =
                touched.iter().filter_map(|name| Some((Arc::clone(name), state.get(name)?.clone())));
            members.collect::<Object>()
        };
        let contract = self.contract(record, content.get("context"));
        let line = EventLine::of(self.trace.name(), record, &content, of(before), of(after), contract);
        let mut event = Value::from(line).as_object().cloned().unwrap_or_default();
        let mut set = |name: &str, value: Value| event.set(name, value);
        // Members that the schema does not name, such as those that a later version adds.
        for (name, value) in content.as_object().into_iter().flat_map(Object::iter) {
            match &**name {
                name if OTHERWISE.contains(&name) => {}
                // The paper prints the members of the marker in the event itself (4.1).
                "fork" => value
                    .as_object()
                    .into_iter()
                    .flat_map(Object::iter)
                    .filter(|(name, _)| !content.as_object().is_some_and(|own| own.contains_key(name)))
                    .for_each(|(name, value)| set(name, value.clone())),
                name => set(name, value.clone()),
            }
        }
        if self.restores {
            restore(&mut event);
        }
        Value::Object(event)
    }

    /// Id, version and digest of the contract that a transition was made under; `None` without a pack.
    fn contract(&mut self, record: &Record, context: Option<&Value>) -> Option<EventContract> {
        let header = record.header();
        let digest = header.pack?;
        let trace = self.trace;
        let named = self.packs.entry(digest).or_insert_with(|| {
            // A pack that was erased or withheld leaves its digest.
            let pack = pack::in_force(trace, header.tick.unwrap_or(0), &Value::object()).ok()??;
            (pack.digest() == digest).then(|| (Arc::clone(&pack.name), Arc::clone(&pack.version)))
        });
        let text = |name: &str| context.and_then(|context| context.get(name)).cloned();
        let (id, version) = named.clone().unzip();
        let id = text("contract").or(id.map(Value::String));
        let version = text("version").or(version.map(Value::String));
        Some(EventContract::of(id, version, digest, context))
    }
}

/// Names of the top members of the state that a transition wrote.
fn touched(record: &Record, before: &Value, after: &Value) -> Vec<Arc<str>> {
    let delta = record.delta();
    let mut touched: Vec<Arc<str>> = Vec::new();
    for path in delta.iter().flat_map(Delta::paths) {
        match path.tokens().next() {
            Some(name) => touched.push(Arc::from(&*name)),
            // The whole state was written.
            None => {
                let members = [before, after].into_iter().filter_map(Value::as_object).flat_map(Object::iter);
                touched.extend(members.map(|(name, _)| Arc::clone(name)));
            }
        }
    }
    touched.sort();
    touched.dedup();
    touched
}

/// Writes the kept members of the source event where they were, and removes the note that kept them.
fn restore(event: &mut Object) {
    let Some(Value::Array(anomalies)) = event.get("anomalies").cloned() else { return };
    let is_kept =
        |note: &&Value| note.get("kind").and_then(Value::as_str) == Some(NoteKind::KeptFromSource.as_str());
    let kept: Vec<Value> =
        anomalies.iter().filter(is_kept).filter_map(|note| note.get(EVENT).cloned()).collect();
    event.set("anomalies", Value::array(anomalies.iter().filter(|note| !is_kept(note)).cloned()));
    for (name, value) in kept.iter().filter_map(Value::as_object).flat_map(Object::iter) {
        event.set(name, value.clone());
    }
}
