//! The start of a graph's run: its form, its inputs without secrets, and the pack with the places that a graph writes.

use std::collections::BTreeMap;

use dendrer_graph::functions::HOST;
use dendrer_kernel::step::Start;
use dendrer_object::value::first_difference;
use dendrer_object::{Object, Value};

use crate::error::{Error, GraphRefused};
use crate::pack::{Files, Source};
use crate::record::redacted;
use crate::run::frontier::functions_of;

use super::terms::GraphTerms;

/// The start of a run, as it is recorded.
pub(super) fn beginning(
    terms: &GraphTerms<'_>,
    form: &Value,
    inputs: &BTreeMap<String, Value>,
) -> Result<Start, Error> {
    let mut start =
        with_places(terms.pack)?.bind(Start { stage: terms.stage, ..Start::new(terms.run.clone()) })?;
    start.graph = Some(form.clone());
    let given = inputs.iter().map(|(name, value)| (name.as_str(), value.clone()));
    start.meta = Some(Value::record([("inputs", Value::record(given))]));
    Ok(match &terms.redactor {
        Some(redactor) => redacted::start(redactor, &start),
        None => start,
    })
}

/// The inputs without secrets. The graph is the program, so one with a secret in it is refused.
pub(super) fn redacted_inputs(
    terms: &GraphTerms<'_>,
    form: &Value,
) -> Result<BTreeMap<String, Value>, GraphRefused> {
    let mut inputs = terms.inputs.clone();
    let Some(redactor) = &terms.redactor else { return Ok(inputs) };
    if let Some(held) = first_difference(form, &redactor.value(form).0) {
        return Err(GraphRefused::HoldsSecret(held.path.dotted()));
    }
    for (name, value) in &mut inputs {
        let named = redactor.value(&Value::record([(name.as_str(), value.clone())])).0;
        *value = named.get(name).cloned().unwrap_or(Value::Null);
    }
    Ok(inputs)
}

/// The value of a pack that declares also some functions of the host, under `tools`.
///
/// # Errors
///
/// A [`GraphRefused`] if the pack defines one, or declares it with another class.
pub fn with_hosts(pack: &Value, hosts: &[&str]) -> Result<Value, GraphRefused> {
    let functions = functions_of(pack);
    let mut tools = pack.get("tools").and_then(Value::as_object).cloned().unwrap_or_default();
    for name in hosts {
        let why = match functions.effect(name) {
            Some(HOST) if functions.is_host(name) => continue,
            None if !functions.has(name) => {
                tools.set(name, Value::record([("effect", Value::from(HOST))]));
                continue;
            }
            Some(class) => format!("`tools` of the pack declares it as {class}"),
            None => "the pack defines it".to_owned(),
        };
        return Err(GraphRefused::NoHost { name: (*name).to_owned(), why });
    }
    let mut members = pack.as_object().cloned().unwrap_or_default();
    if !tools.is_empty() {
        members.set("tools", Value::Object(tools));
    }
    Ok(Value::Object(members))
}

/// A pack that declares also some functions of the host.
///
/// # Errors
///
/// As [`with_hosts`].
pub fn with_functions(source: Source, hosts: &[&str]) -> Result<Source, Error> {
    let value = with_hosts(source.pack.value(), hosts)?;
    if value == *source.pack.value() { Ok(source) } else { read_again(&value) }
}

/// Reads the value of a pack that was changed.
fn read_again(value: &Value) -> Result<Source, Error> {
    let read = crate::pack::read_with(crate::pack::text_of(value).as_bytes(), Files::Of(value));
    read.map_err(|problems| {
        GraphRefused::Pack(problems.first().map(|one| one.message.clone()).unwrap_or_default()).into()
    })
}

/// The places of the state that a graph writes.
const PLACES: [&str; 3] = ["edges", "nodes", "output"];

/// A pack under which a graph brings the changes of state itself, and which declares what it writes.
fn with_places(pack: &Source) -> Result<Source, Error> {
    let mut value = pack.pack.value().as_object().cloned().unwrap_or_default();
    let has_rules = value.get("rules").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    if has_rules || value.get("reducer").is_some_and(|reducer| reducer.as_str() != Some("delta/1")) {
        return Err(GraphRefused::Rules.into());
    }
    value.set("reducer", Value::from("delta/1"));
    let mut state = value.get("state").and_then(Value::as_object).cloned().unwrap_or_else(Object::default);
    for place in PLACES.into_iter().filter(|place| !state.contains_key(place)).collect::<Vec<_>>() {
        // The places that a graph computes belong to the runtime.
        state.set(place, Value::record([("writers", Value::array([Value::from("runtime")]))]));
    }
    value.set("state", Value::Object(state));
    read_again(&Value::Object(value))
}
