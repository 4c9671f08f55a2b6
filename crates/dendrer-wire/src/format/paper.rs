//! Events of the dendrer paper (appendix B), as `export --format paper` and `--format jsonl` write them.
//!
//! An event of an agent or its runtime is proposed again, with the change between its states. The kernel's and the institution's
//! events cannot be proposed, and types of a pack are unknown without it: such an event becomes an `observation.add`. Members that this store
//! did not make are kept in a note, and `export` writes them where they were. Never makes a record of the kernel from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer::kernel::ontology::{self, Class};
use dendrer::kernel::step::{COUNTERS, KERNEL_PATHS};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::Author;
use dendrer_object::value::Object;
use dendrer_object::{Intent, Pointer, TypeName, Value, tag};

use crate::event::EVENT;
use crate::import::error::ImportError;
use crate::import::note::{At, ImportNote, NoteKind};
use crate::import::transition::Step;
use crate::profile::{CHAIN_HASH, Chain};

/// The type of an event that cannot be proposed under its own.
const OBSERVED: &str = "observation.add";

/// The agent of an event whose own goes by a reserved name.
const IMPORTER: &str = "import";

/// Members that are made again by the kernel, and ids and times.
const MADE_AGAIN: [&str; 9] =
    ["tick", "ts", "run_id", "id", "prev", CHAIN_HASH, "state_root", "author", "seq"];

/// Members that an intent takes as they are.
const PROPOSED: [&str; 9] =
    ["goal_id", "intent", "action", "result", "policy", "metrics", "anomalies", "effect", "fork_type"];

/// What all events together say of the run: found by a reading before the first event is proposed.
#[derive(Debug, Default)]
pub(crate) struct Before {
    members: BTreeMap<Arc<str>, Option<Value>>,
    chain: Option<Chain>,
    /// The state after the first event, and its digest as the file has it.
    first: Option<(Value, Option<Arc<str>>)>,
}

impl Before {
    /// Reads one event: the first value of each member of the state, and the hash of the event.
    pub(crate) fn take(&mut self, item: &Value, at: At<'_>) -> Result<(), ImportError> {
        let Some(event) = stored(item) else { return Ok(()) };
        if self.first.is_none() {
            self.chain = event.get(CHAIN_HASH).map(|_| Chain::default());
            let root = event.get("state_root").and_then(Value::as_str).map(Arc::from);
            self.first = Some((side(&event, "state_after"), root));
        }
        if let Some(chain) = &mut self.chain {
            chain
                .check(&tag::undoubled(item))
                .map_err(|fault| ImportError::Chain { why: fault.why, at: at.to_string() })?;
        }
        let (before, after) = (side(&event, "state_before"), side(&event, "state_after"));
        for name in names(&before, &after) {
            let first = before.get(&name).cloned();
            self.members.entry(name).or_insert(first);
        }
        Ok(())
    }

    /// The state before the first event, as far as events say it.
    pub(crate) fn state(&self) -> Value {
        let own = self.members.iter().filter(|(name, _)| !is_kernels(name));
        Value::record(
            own.filter_map(|(name, value)| Some((Arc::clone(name), value.clone()?))).collect::<Vec<_>>(),
        )
    }

    /// The note that the file does not have the whole state.
    pub(crate) fn note(&self) -> Option<ImportNote> {
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

/// Reads one event.
pub(crate) fn read(item: &Value, at: At<'_>) -> Result<Step<'static>, ImportError> {
    let Some(event) = stored(item) else {
        let mut step = Step::lost(item.clone());
        let text = format!("an event is an object, not {}", item.described());
        step.notes.push(ImportNote::new(NoteKind::MessageUnreadable, at, text));
        return Ok(step);
    };
    let text = |name: &str| event.get(name).and_then(Value::as_str);
    let mut kept = Object::default();
    let mut reasons = Vec::new();
    let Some(source_type) = text("transition_type").and_then(|name| name.parse::<TypeName>().ok()) else {
        let message = format!(
            "an event has a transition_type, and that of this one is {}",
            event.get("transition_type").unwrap_or(&Value::Null)
        );
        return Err(ImportError::Refused { code: dendrer_object::Code::E0210, message, at: at.to_string() });
    };
    let class = ontology::class(&source_type, &BTreeSet::new());
    let type_name = match class {
        Some(Class::Agent | Class::Runtime) => source_type.clone(),
        _ => OBSERVED.parse().expect("a type of the ontology"),
    };
    let author = match text("author").and_then(|author| author.parse::<Author>().ok()) {
        _ if class == Some(Class::Runtime) => Author::Runtime,
        Some(author) if !ontology::is_claimed(author) => author,
        Some(_) => Author::Runtime,
        None => Author::Agent,
    };
    if type_name != source_type {
        kept.set("transition_type", Value::from(source_type.as_str()));
        reasons.push(match class {
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
        kept.set("agent_id", Value::from(source_agent));
        keep(&mut kept, &event, "seq");
    }
    let members =
        PROPOSED.into_iter().filter_map(|name| Some((name, brought(name, &event, &type_name, author)?)));
    let own = [("transition_type", Value::from(type_name.as_str())), ("agent_id", Value::from(agent))];
    let fail = |error| ImportError::Intent { error, at: at.to_string() };
    let mut intent = Intent::from_value(&Value::record(members.chain(own)), None).map_err(fail)?;
    intent.author = author;
    let (before, after) = (side(&event, "state_before"), side(&event, "state_after"));
    let touched = names(&before, &after);
    if touched.iter().any(|name| is_kernels(name)) {
        keep(&mut kept, &event, "state_before");
        keep(&mut kept, &event, "state_after");
        reasons.push("the state that the kernel writes is kept as it is".to_owned());
    }
    let ops = touched.iter().filter(|name| !is_kernels(name)).map(|name| {
        let path = Pointer::of([&**name]);
        match after.get(name) {
            Some(value) => Op::set(path, value.clone()),
            None => Op { action: Action::Remove, path, value: None },
        }
    });
    intent.delta = Some(Delta(ops.collect()));
    let mut others = Vec::new();
    for (name, value) in event.as_object().into_iter().flat_map(Object::iter) {
        let is_empty = *value == Value::Null
            || (&**name == "anomalies" && value.as_array().is_some_and(|list| list.is_empty()));
        let is_proposed = PROPOSED.contains(&&**name)
            && brought(name, &event, &type_name, author).is_some_and(|brought| brought == *value);
        let made = MADE_AGAIN.contains(&&**name) || is_proposed;
        let read = ["transition_type", "agent_id", "state_before", "state_after"].contains(&&**name);
        if !made && !read && !is_empty {
            kept.set(name, value.clone());
            others.push(&**name);
        }
    }
    if !others.is_empty() {
        reasons.push(format!("kept: {}", others.join(", ")));
    }
    let mut step = Step::new(intent);
    if !kept.is_empty() {
        let note = ImportNote::new(NoteKind::KeptFromSource, at, reasons.join("; "));
        step.notes.push(note.with(EVENT, Value::Object(kept)));
    }
    Ok(step)
}

fn keep(kept: &mut Object, event: &Value, name: &str) {
    kept.set(name, event.get(name).cloned().unwrap_or(Value::Null));
}

/// Returns a member as its author may propose it: only the runtime brings policies and anomalies, but for the kinds of the
/// kernel, a user a decision, and only the result of a call is one.
fn brought(name: &str, event: &Value, type_name: &TypeName, author: Author) -> Option<Value> {
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
