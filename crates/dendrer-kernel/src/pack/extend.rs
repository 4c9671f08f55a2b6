//! Contract extensions: what an institution adds to the contracts of a pack during a run (dendrer paper 4.4). They
//! are in the state, under `/policy/extensions`, so the contract in force at any tick follows from the trace.
//!
//! The contract in force is a pack again: the one the run carries with the additions written into it. So every check
//! of a pack checks an extended one.

use dendrer_object::value::Object;
use dendrer_object::{Digest, Pointer, Value};

use super::PackEngine;

/// The member of `/policy` that lists the extensions of a run.
pub const EXTENSIONS: &str = "extensions";

/// The member of an extension that says from which tick on it holds.
pub const EFFECTIVE_FROM: &str = "effective_from_tick";

/// The member of an extension that declares fields, as `state` of a pack does.
pub const ADDS_STATE: &str = "adds_state";

/// The member of an extension that lists rules, as `rules` of a pack does.
pub const ADDS_RULES: &str = "adds_rules";

/// Whether an extension that holds changes how states follow from each other.
pub(crate) fn changes_reducer(bound: &Value, state: &Value, tick: u64) -> bool {
    let is_it = |extension: &Value| [ADDS_STATE, ADDS_RULES].iter().any(|name| extension.get(name).is_some());
    holding(bound, state, tick).any(is_it)
}

/// The first field that an extension declares and the pack declares already.
pub fn declared_twice(pack: &Value, extension: &Value) -> Option<String> {
    let fields = pack.get("state").and_then(Value::as_object)?;
    let added = extension.get(ADDS_STATE).and_then(Value::as_object)?;
    added.iter().map(|(name, _)| name).find(|name| fields.contains_key(name)).map(ToString::to_string)
}

/// The extensions in a state, of whatever contract.
pub fn all(state: &Value) -> impl Iterator<Item = &Value> {
    let listed = state.get("policy").and_then(|policy| policy.get(EXTENSIONS)).and_then(Value::as_array);
    listed.into_iter().flat_map(|listed| listed.iter())
}

/// Whether an extension is of the contract that a pack is. It is approved for a contract by name and version, so a fork
/// under the same contract with another constant keeps the extensions.
pub fn is_of(extension: &Value, pack: &Value) -> bool {
    let text = |name: &str| pack.get(name).and_then(Value::as_str).unwrap_or_default();
    let target = extension.get("target_contract").and_then(Value::as_str).unwrap_or_default();
    let version = target.strip_prefix(text("name")).and_then(|rest| rest.strip_prefix(['/', '.']));
    version == Some(text("version"))
}

/// The extensions of a pack in a state, in the order in which they came.
pub fn listed<'v>(bound: &'v Value, state: &'v Value) -> impl Iterator<Item = &'v Value> {
    all(state).filter(|extension| is_of(extension, bound))
}

/// From which tick on an extension holds.
pub fn effective_from(extension: &Value) -> Option<u64> {
    extension.get(EFFECTIVE_FROM).and_then(Value::as_u64)
}

/// The first tick that an extension on record governs.
pub fn governs_from(extension: &Value) -> Option<u64> {
    let own = extension.get("tick").and_then(Value::as_u64).unwrap_or(0);
    governs_behind(extension, own)
}

/// The first tick that an extension governs whose own tick is this: from where it holds, but never its own transition.
pub fn governs_behind(extension: &Value, own: u64) -> Option<u64> {
    Some(effective_from(extension)?.max(own + 1))
}

/// The ticks from which on the extensions in a state hold, of whatever pack.
pub fn effective_ticks(state: &Value) -> impl Iterator<Item = u64> {
    all(state).filter_map(effective_from)
}

/// The extensions of a pack that hold for the transition with this tick, by the state before it.
pub fn holding<'v>(bound: &'v Value, state: &'v Value, tick: u64) -> impl Iterator<Item = &'v Value> {
    listed(bound, state).filter(move |one| effective_from(one).is_some_and(|from| from <= tick))
}

/// The pack in force for the transition with this tick, by the state before it.
pub fn in_force(bound: &Value, state: &Value, tick: u64) -> Value {
    holding(bound, state, tick).fold(bound.clone(), |pack, extension| with(&pack, extension))
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

/// The field that an extension requires in other words than a contract of the pack does already, and the type of that contract.
/// A required field stays as the contract requires it, so such an extension would have no effect.
pub fn clash(pack: &Value, extension: &Value) -> Option<(String, String)> {
    let contracts = pack.get("contracts").and_then(Value::as_object)?;
    let required = required(extension);
    for name in types(pack, extension) {
        let fields = contracts.get(&name).and_then(|contract| contract.get("required_state"));
        let Some(fields) = fields.and_then(Value::as_object) else { continue };
        let differs = |field: &str, what: &Value| {
            *what != Value::Null && fields.get(field).is_some_and(|required| required != what)
        };
        if let Some((field, _)) = required.iter().find(|(field, what)| differs(field, what)) {
            return Some((field.to_string(), name));
        }
    }
    None
}

/// The types whose contracts an extension adds to: every one with a contract where it names none.
fn types(pack: &Value, extension: &Value) -> Vec<String> {
    match extension.get("types").and_then(Value::as_array) {
        Some(types) => types.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => {
            let contracts = pack.get("contracts").and_then(Value::as_object);
            contracts
                .into_iter()
                .flat_map(|contracts| contracts.iter())
                .map(|(name, _)| name.to_string())
                .collect()
        }
    }
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
    for name in types(pack, extension).iter().filter(|_| !required.is_empty() || !seeds.is_empty()) {
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
    let state = object(extension.get(ADDS_STATE));
    if !state.is_empty() {
        let mut fields = object(extended.get("state"));
        state.iter().for_each(|(name, field)| fields.set(name, field.clone()));
        extended.set("state", Value::Object(fields));
    }
    let rules = list(extension.get(ADDS_RULES));
    if !rules.is_empty() {
        let all = list(extended.get("rules")).into_iter().chain(rules);
        extended.set("rules", Value::array(all));
    }
    let violations = list(extension.get("adds_violations"));
    if !violations.is_empty() {
        let all = list(extended.get("violations")).into_iter().chain(violations);
        extended.set("violations", Value::array(all));
    }
    let engine = extended.get("reducer").map(|reducer| reducer.get("engine").unwrap_or(reducer));
    let engine = engine.and_then(Value::as_str);
    if [PackEngine::Delta, PackEngine::Wasm].iter().any(|other| engine == Some(other.as_str())) {
        declare(&mut extended, required.iter().map(|(name, _)| &**name));
    }
    Value::Object(extended)
}

/// Returns the place in an extension of a place in the pack that comes out of it ([`with`]).
pub fn place_in(pack: &Value, extension: &Value, path: &Pointer) -> Pointer {
    let tokens: Vec<_> = path.tokens().collect();
    let tokens: Vec<&str> = tokens.iter().map(|token| &**token).collect();
    let known = |path: &[&str]| {
        let listed = Pointer::of(path.iter().copied()).get(pack).and_then(Value::as_array);
        listed.map_or(0, |listed| listed.len())
    };
    let place = |index: &str, known: usize| index.parse::<usize>().ok()?.checked_sub(known);
    let item = |name: &str, text: &str| {
        let listed = extension.get(name).and_then(Value::as_array)?;
        listed.iter().position(|item| item.as_str() == Some(text)).map(|at| at.to_string())
    };
    let below = |name: &str, item: Option<String>, rest: &[&str]| {
        let item: Vec<String> = item.into_iter().collect();
        Pointer::of([name].into_iter().chain(item.iter().map(String::as_str)).chain(rest.iter().copied()))
    };
    let required = |field: &str, rest: &[&str]| match item("adds_required", field) {
        Some(at) => below("adds_required", Some(at), &[]),
        None => below("adds_required", Some(field.to_owned()), rest),
    };
    match &*tokens {
        ["name" | "version"] => Pointer::of(["target_contract"]),
        [list @ ("violations" | "rules"), index, rest @ ..] => {
            let index = place(index, known(&[list])).map(|at| at.to_string());
            below(if *list == "rules" { ADDS_RULES } else { "adds_violations" }, index, rest)
        }
        ["state", field, rest @ ..] => match extension.get(ADDS_STATE).and_then(|added| added.get(field)) {
            Some(_) => below(ADDS_STATE, Some((*field).to_owned()), rest),
            None => required(field, &[]),
        },
        ["contracts", _, "required_state", field, rest @ ..] => required(field, rest),
        ["contracts", name, "hash_seeds", index, ..] => {
            let index = place(index, known(&["contracts", name, "hash_seeds"]));
            below("adds_hash_seeds", index.map(|at| at.to_string()), &[])
        }
        ["contracts", name, ..] => {
            item("types", name).map_or_else(Pointer::root, |at| below("types", Some(at), &[]))
        }
        _ => Pointer::root(),
    }
}

/// Returns the additions of an extension, without its name and its first tick: two extensions may add the same.
pub fn added_by(extension: &Value) -> Value {
    let members = [
        "target_contract",
        "types",
        ADDS_STATE,
        ADDS_RULES,
        "adds_required",
        "adds_hash_seeds",
        "adds_violations",
    ];
    Value::record(members.into_iter().filter_map(|name| Some((name, extension.get(name)?.clone()))))
}

/// Returns the requirements of an extension: a list of names, or a map of names to their terms.
fn required(extension: &Value) -> Object {
    match extension.get("adds_required") {
        Some(Value::Object(fields)) => fields.clone(),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(|name| (name.into(), Value::Null)).collect()
        }
        _ => Object::default(),
    }
}

/// Declares fields that intents or a module write by themselves. Under rules a field that none of them writes could never be there.
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
