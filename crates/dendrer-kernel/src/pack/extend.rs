//! Contract extensions: what an institution adds to the contracts of a pack while a run goes on (dendrer paper 4.4). They
//! stand in the state, under `/policy/extensions`, so the contract in force at any tick follows from the trace.
//!
//! What is in force is a pack again: the one the run carries with the additions written into it. So everything that checks
//! a pack checks an extended one.

use dendrer_object::value::{Array, Object};
use dendrer_object::{Digest, Value};

use super::{Engine, digest};

/// The member of `/policy` that lists the extensions of a run.
pub const EXTENSIONS: &str = "extensions";

/// The member of an extension that says from which tick on it holds.
pub const EFFECTIVE_FROM: &str = "effective_from_tick";

/// The extensions in a state, of whatever pack.
fn all(state: &Value) -> Option<&Array> {
    state.get("policy").and_then(|policy| policy.get(EXTENSIONS)).and_then(Value::as_array)
}

/// The extensions of a pack in a state, in the order in which they came.
pub fn listed<'v>(bound: &Value, state: &'v Value) -> impl Iterator<Item = &'v Value> {
    let listed = all(state);
    // Hashing a pack is dear, and most runs have no extension.
    let pack = listed.map(|_| digest(bound).to_string());
    let is_of_pack = move |entry: &&Value| entry.get("pack").and_then(Value::as_str) == pack.as_deref();
    listed.into_iter().flat_map(|listed| listed.iter()).filter(is_of_pack)
}

/// From which tick on an extension holds.
pub fn effective_from(extension: &Value) -> Option<u64> {
    extension.get(EFFECTIVE_FROM).and_then(Value::as_u64)
}

/// The first tick that an extension on record governs: from where it holds, but never its own transition.
pub fn governs_from(extension: &Value) -> Option<u64> {
    let own = extension.get("tick").and_then(Value::as_u64).unwrap_or(0);
    Some(effective_from(extension)?.max(own + 1))
}

/// The ticks from which on the extensions in a state hold, of whatever pack.
pub fn effective_ticks(state: &Value) -> impl Iterator<Item = u64> {
    all(state).into_iter().flat_map(|listed| listed.iter()).filter_map(effective_from)
}

/// The pack in force for the transition with this tick, by the state before it.
pub fn in_force(bound: &Value, state: &Value, tick: u64) -> Value {
    let holds = |extension: &&Value| effective_from(extension).is_some_and(|from| from <= tick);
    listed(bound, state).filter(holds).fold(bound.clone(), |pack, extension| with(&pack, extension))
}

/// The first tick behind this one at which an extension comes into force.
pub(crate) fn next(bound: &Value, state: &Value, tick: u64) -> Option<u64> {
    listed(bound, state).filter_map(effective_from).filter(|from| *from > tick).min()
}

/// From which tick on a violation is looked for that an extension added; `None` for one of the pack itself.
pub fn added(bound: &Value, state: &Value, tick: u64, id: &str) -> Option<u64> {
    let adds = |extension: &&Value| {
        let listed = extension.get("adds_violations").and_then(Value::as_array);
        listed.is_some_and(|listed| {
            listed.iter().any(|entry| entry.get("id").and_then(Value::as_str) == Some(id))
        })
    };
    let holds = |from: &u64| *from <= tick;
    listed(bound, state).filter(adds).filter_map(governs_from).find(holds)
}

/// Writes what an extension adds into a pack. Whether the pack that comes out makes sense, reading it says.
pub fn with(pack: &Value, extension: &Value) -> Value {
    let object = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let list = |value: Option<&Value>| -> Vec<Value> {
        value.and_then(Value::as_array).map(|items| items.iter().cloned().collect()).unwrap_or_default()
    };
    let mut extended = object(Some(pack));
    let required = required(extension);
    let seeds = list(extension.get("adds_hash_seeds"));
    let mut contracts = object(extended.get("contracts"));
    let types: Vec<String> = match extension.get("types") {
        Some(types) => list(Some(types)).iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        // Where no type is named, every type with a contract is meant.
        None => contracts.iter().map(|(name, _)| name.to_string()).collect(),
    };
    for name in types.iter().filter(|_| !required.is_empty() || !seeds.is_empty()) {
        let mut contract = object(contracts.get(name));
        let mut fields = object(contract.get("required_state"));
        for (field, what) in required.iter() {
            if !fields.contains_key(field) {
                fields.set(field, what.clone());
            }
        }
        if !fields.is_empty() {
            contract.set("required_state", Value::Object(fields));
        }
        if !seeds.is_empty() {
            let all = list(contract.get("hash_seeds")).into_iter().chain(seeds.iter().cloned());
            contract.set("hash_seeds", Value::array(all));
        }
        contracts.set(name, Value::Object(contract));
    }
    extended.set("contracts", Value::Object(contracts));
    let violations = list(extension.get("adds_violations"));
    if !violations.is_empty() {
        let all = list(extended.get("violations")).into_iter().chain(violations);
        extended.set("violations", Value::array(all));
    }
    let engine = extended.get("reducer").map(|reducer| reducer.get("engine").unwrap_or(reducer));
    if engine.and_then(Value::as_str) == Some(Engine::Delta.as_str()) {
        declare(&mut extended, required.iter().map(|(name, _)| &**name));
    }
    Value::Object(extended)
}

/// What an extension requires: a list of names, or a map of them with what they must be.
fn required(extension: &Value) -> Object {
    match extension.get("adds_required") {
        Some(Value::Object(fields)) => fields.clone(),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(|name| (name.into(), Value::Null)).collect()
        }
        _ => Object::default(),
    }
}

/// Declares fields that intents write by themselves. Under rules a field that none of them writes could never be there.
fn declare<'n>(pack: &mut Object, names: impl Iterator<Item = &'n str>) {
    let mut fields = pack.get("state").and_then(Value::as_object).cloned().unwrap_or_default();
    for top in names.filter_map(|name| name.split('.').next()) {
        if !fields.contains_key(top) {
            fields.set(top, Value::record([("init", Value::from("null"))]));
        }
    }
    pack.set("state", Value::Object(fields));
}

/// The digest that names an extension.
pub fn extension_digest(extension: &Value) -> Digest {
    Digest::of_parts(&[b"dendrer/extension/v1\n", &dendrer_object::json::to_vec(extension)])
}
