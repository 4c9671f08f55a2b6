//! The event of the dendrer paper (appendix B), written from a record.
//!
//! Besides the paper's members an event has every other member of the record: the context hash and the contract that it was
//! checked against, the parent of a fork, the source of an import, the violations, the text of an extension. Links are left
//! out, because they name records of one store. Never judges anything.
//!
//! Rule: a run that was imported from events is written as its source was, except for `author`, ids and times; test
//! `every_demo_run_comes_back_from_the_papers_form`.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer::Trace;
use dendrer::run::pack;
use dendrer_object::delta::Delta;
use dendrer_object::record::Record;
use dendrer_object::value::Object;
use dendrer_object::{Digest, Value};

/// The name and version of the form, as an imported run names it.
pub(crate) const KIND: &str = "paper/1";

/// The kind of the note that keeps the members of a source event that this store did not make.
pub(crate) const KEPT: &str = "kept_from_source";

/// The member of that note with the members of the event.
pub(crate) const EVENT: &str = "event";

/// Members of a record that an event has under another name, or as the states before and after.
const OTHERWISE: [&str; 5] = ["agent_id", "context", "delta", "seq", "state_root"];

/// The members that every event has from the content of a record; null if the record has none.
const ALWAYS: [&str; 6] = ["goal_id", "intent", "action", "result", "policy", "metrics"];

/// Name and version of a pack.
type NameAndVersion = (Arc<str>, Arc<str>);

/// Writes the events of one run.
#[derive(Debug)]
pub(crate) struct Writer<'t> {
    trace: &'t Trace,
    /// Whether the run was imported from events, and its events are written as they were.
    restores: bool,
    /// Name and version of each pack that was looked up.
    packs: BTreeMap<Digest, Option<NameAndVersion>>,
}

impl<'t> Writer<'t> {
    /// A writer of what the records say.
    pub(crate) fn new(trace: &'t Trace) -> Writer<'t> {
        Writer { trace, restores: false, packs: BTreeMap::new() }
    }

    /// A writer that writes the events of an import as its source had them.
    pub(crate) fn of_source(trace: &'t Trace) -> Writer<'t> {
        let source = trace.start().body().value("/inputs");
        let kind = source.as_ref().and_then(|inputs| inputs.get("source")?.get("kind")?.as_str());
        Writer { restores: kind == Some(KIND), ..Writer::new(trace) }
    }

    /// Writes one record, given the states before and after it.
    pub(crate) fn event(&mut self, record: &Record, before: &Value, after: &Value) -> Value {
        let (header, content) = (record.header(), record.content());
        let member = |name: &str| content.get(name).cloned().unwrap_or(Value::Null);
        let mut event = Object::default();
        let mut set = |name: &str, value: Value| event.set(name, value);
        set("tick", Value::from(header.tick));
        set("ts", Value::from(header.ts.to_string()));
        set("agent_id", member("agent_id"));
        set("run_id", Value::from(self.trace.name().as_str()));
        set("transition_type", Value::from(header.type_name.as_ref().map(|name| name.to_string())));
        for name in ALWAYS {
            set(name, member(name));
        }
        let touched = touched(record, before, after);
        for (name, state) in [("state_before", before), ("state_after", after)] {
            let members = touched.iter().filter_map(|name| Some((&**name, state.get(name)?.clone())));
            set(name, Value::record(members));
        }
        set("anomalies", content.get("anomalies").cloned().unwrap_or_else(|| Value::array([])));
        set("author", Value::from(header.author.as_str()));
        set("seq", member("seq"));
        set("state_root", member("state_root"));
        let context = content.get("context");
        let hash = context.and_then(|context| context.get("hash"));
        set("intent_context_hash", hash.cloned().unwrap_or(Value::Null));
        set("contract", self.contract(record, context));
        set("id", Value::from(record.id()));
        set("prev", Value::from(header.prev));
        for (name, value) in content.as_object().into_iter().flat_map(Object::iter) {
            match &**name {
                name if OTHERWISE.contains(&name) || ALWAYS.contains(&name) || name == "anomalies" => {}
                // The paper prints the members of the marker in the event itself (4.1).
                "fork" => value
                    .as_object()
                    .into_iter()
                    .flat_map(Object::iter)
                    .filter(|(name, _)| !content.as_object().is_some_and(|own| own.contains_key(name)))
                    .for_each(|(name, value)| set(name, value.clone())),
                // The paper calls the text of an extension its payload (4.4).
                "extension" => set("payload", value.clone()),
                name => set(name, value.clone()),
            }
        }
        if self.restores {
            restore(&mut event);
        }
        Value::Object(event)
    }

    /// Id, version and digest of the contract that a transition was made under; null without a pack.
    fn contract(&mut self, record: &Record, context: Option<&Value>) -> Value {
        let header = record.header();
        let Some(digest) = header.pack else { return Value::Null };
        let trace = self.trace;
        let named = self.packs.entry(digest).or_insert_with(|| {
            // A pack that was erased or withheld leaves its digest.
            let pack = pack::in_force(trace, header.tick.unwrap_or(0), &Value::object()).ok()??;
            (pack.digest() == digest).then(|| (Arc::clone(&pack.name), Arc::clone(&pack.version)))
        });
        let text = |name: &str| context.and_then(|context| context.get(name)).cloned();
        let (id, version) = named.clone().unzip();
        let mut contract = Object::default();
        contract.set("id", text("contract").unwrap_or_else(|| id.map_or(Value::Null, Value::String)));
        contract.set("pack", Value::from(digest));
        contract
            .set("version", text("version").unwrap_or_else(|| version.map_or(Value::Null, Value::String)));
        for (name, value) in context.and_then(Value::as_object).into_iter().flat_map(Object::iter) {
            if !["contract", "hash", "version"].contains(&&**name) {
                contract.set(name, value.clone());
            }
        }
        Value::Object(contract)
    }
}

/// Names of the top members of the state that a transition wrote.
fn touched(record: &Record, before: &Value, after: &Value) -> Vec<Arc<str>> {
    let delta = record.body().value("/delta").and_then(|delta| Delta::from_value(&delta).ok());
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
    let is_kept = |note: &&Value| note.get("kind").and_then(Value::as_str) == Some(KEPT);
    let kept: Vec<Value> =
        anomalies.iter().filter(is_kept).filter_map(|note| note.get(EVENT).cloned()).collect();
    event.set("anomalies", Value::array(anomalies.iter().filter(|note| !is_kept(note)).cloned()));
    for (name, value) in kept.iter().filter_map(Value::as_object).flat_map(Object::iter) {
        event.set(name, value.clone());
    }
}
