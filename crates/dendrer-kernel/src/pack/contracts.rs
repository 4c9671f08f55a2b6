//! Reading the contracts of a pack (dendrer paper 4.4 and appendix G).

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::text::nearest;
use dendrer_object::{Code, Digest, Object, Pointer, TypeName, Value, json, tag};

use super::read::{At, Faults, Types, did_you_mean, named_type, near_type};
use super::scopes::Place;
use super::{DECIMALS_MAX, Declared};
use crate::contract::{Contract, Contracts, Match, Required, ValueKind, path_of};
use crate::expr::Scope;
use crate::fold::kind;
use crate::ontology;
use crate::predicate::Monotone;

const CONTRACT: [&str; 5] = ["words", "required_state", "hash_seeds", "advisory", "match"];

const REQUIRED: [&str; 3] = ["type", "precision", "nullable"];

/// The parts of a pack that contracts refer to.
pub(super) struct Known<'a> {
    /// The fields of the state with their decimals.
    pub(super) fields: &'a [(String, Option<u8>)],
    pub(super) types: &'a Types,
    /// The scope of expressions over the state, with constants and definitions.
    pub(super) place: &'a Place,
}

/// Reads the contracts, and reports all that is wrong with them.
pub(super) fn read(faults: &mut Faults, root: &At<'_>, known: &Known<'_>) -> BTreeMap<TypeName, Contract> {
    let mut contracts = BTreeMap::new();
    for (name, at) in root.named(faults, "contracts", "what they need") {
        let Some(type_name) = named_type(faults, &at, name) else { continue };
        match ontology::class_of(name) {
            None if !known.types.contains_key(&type_name) => {
                let hint = near_type(known.types, name).map_or_else(
                    || "register it under `types`".to_owned(),
                    |near| format!("{near} A new type is registered under `types`"),
                );
                at.name().fault_of(faults, Code::E0903, format!("there is no transition type {name}"), &hint);
            }
            Some(ontology::Class::System | ontology::Class::Governance) => {
                let message = format!("{name} is not proposed by anybody, so it has no contract");
                at.name().fault_of(faults, Code::E0903, message, "");
            }
            _ => {}
        }
        if let Some(contract) = read_contract(faults, &at, type_name.clone(), Some(known)) {
            contracts.insert(type_name, contract);
        }
    }
    contracts
}

/// Finds the places of the state that a contract declares `datetime`, so that expressions take their texts as moments.
pub(super) fn datetimes(root: &At<'_>) -> Vec<Pointer> {
    let members = |value: &Value, name: &str| -> Object {
        value.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let mut found = Vec::new();
    for (_, contract) in members(root.value, "contracts").iter() {
        for (name, field) in members(contract, "required_state").iter() {
            let kind = field.get("type").and_then(Value::as_str).and_then(ValueKind::parse);
            if kind == Some(ValueKind::Datetime) {
                found.push(path_of(tag::user_name(name)));
            }
        }
    }
    found
}

/// Reads the contracts of a pack that was checked when it was bound, without the rules for imports.
pub(crate) fn of_checked(pack: &Value) -> Contracts {
    let text = |name: &str| pack.get(name).and_then(Value::as_str).unwrap_or_default().into();
    let mut faults = Faults::default();
    let root = At::root(pack);
    let contracts = root.member("contracts").map(|at| at.members()).unwrap_or_default();
    let types = contracts.into_iter().filter_map(|(name, at)| {
        let type_name: TypeName = name.parse().ok()?;
        Some((type_name.clone(), read_contract(&mut faults, &at, type_name, None)?))
    });
    let types = types.collect();
    Contracts { name: text("name"), version: text("version"), types }
}

fn read_contract(
    faults: &mut Faults,
    at: &At<'_>,
    type_name: TypeName,
    known: Option<&Known<'_>>,
) -> Option<Contract> {
    at.object(faults, "a contract", &CONTRACT)?;
    let mut required: Vec<Required> = Vec::new();
    for (name, field) in at.named(faults, "required_state", "what it must be") {
        let name = tag::user_name(name);
        check_field(faults, &field.name(), name, known);
        if let Some(read) = read_required(faults, &field, name, known) {
            required.push(read);
        }
    }
    let mut names = |member: &str| -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = Vec::new();
        for item in at.list(faults, member) {
            let Some(name) = item.value.as_str() else {
                item.fault(faults, format!("{member} has names of fields, not {}", kind(item.value)), "");
                continue;
            };
            check_field(faults, &item, name, known);
            if names.iter().any(|known| &**known == name) {
                item.fault(faults, format!("{name} stands twice"), "");
            }
            names.push(name.into());
        }
        names
    };
    let (seeds, advisory) = (names("hash_seeds"), names("advisory"));
    if required.is_empty() && seeds.is_empty() && known.is_some() {
        let hint = "a type that needs nothing has no contract";
        at.fault(faults, "a contract names what it needs in required_state", hint);
    }
    for seed in &seeds {
        if !required.iter().any(|known| known.name == *seed) {
            // The hash binds a seed, so the seed is required.
            required.push(Required::new(seed));
        }
    }
    required.sort_by(|a, b| a.name.cmp(&b.name));
    let matches = match known {
        Some(known) => read_matches(faults, at, &required, known),
        None => BTreeMap::new(),
    };
    let words = at.shared(faults, "words");
    let digest = Digest::of_parts(&[b"dendrer/contract/v1\n", &json::to_vec(at.value)]);
    Some(Contract { type_name, words, required, seeds, advisory, matches, digest })
}

/// Looks whether the pack declares the field that is named.
fn check_field(faults: &mut Faults, at: &At<'_>, name: &str, known: Option<&Known<'_>>) {
    let Some(known) = known else { return };
    let top = name.split('.').next().unwrap_or_default();
    let is_kernels = crate::names::KERNEL_PATHS.contains(&top);
    if name.split('.').any(str::is_empty) {
        let message = format!("\"{name}\" is not the name of a field");
        at.at_value().fault_of(faults, Code::E0903, message, "write name, or outer.inner");
    } else if !is_kernels && !known.fields.iter().any(|(field, _)| field == top) {
        let near = nearest(top, known.fields.iter().map(|(field, _)| &**field));
        let hint = did_you_mean(near);
        let message = format!("no field `{top}` is declared in state");
        at.fault_of(faults, Code::E0505, message, &hint.unwrap_or_default());
    }
}

fn read_required(
    faults: &mut Faults,
    at: &At<'_>,
    name: &str,
    known: Option<&Known<'_>>,
) -> Option<Required> {
    let mut required = Required::new(name);
    if *at.value == Value::Null {
        return Some(required);
    }
    at.object(faults, "a required field", &REQUIRED)?;
    if let Some(text) = at.text(faults, "type") {
        match ValueKind::parse(text) {
            Some(kind) => required.kind = kind,
            None => {
                let words = "any, string, number, float, integer, bool, boolean, list, map, datetime";
                let named = at.member_or_self("type");
                named.fault(faults, format!("a type is one of {words}"), "");
            }
        }
    }
    let nullable = at.member("nullable");
    required.nullable =
        nullable.and_then(|at| at.truth(faults, "nullable is true or false")).unwrap_or(false);
    if let Some(precision) = at.member("precision") {
        let decimals = precision.value.as_u64().filter(|decimals| *decimals <= DECIMALS_MAX);
        required.precision = decimals.and_then(|decimals| u8::try_from(decimals).ok());
        let declared = known.and_then(|known| known.fields.iter().find(|(field, _)| field == name)?.1);
        match (required.precision, declared) {
            (None, _) => {
                let message = format!("precision is a number of decimals from 0 to {DECIMALS_MAX}");
                precision.fault(faults, message, "");
            }
            (Some(_), _)
                if !matches!(required.kind, ValueKind::Number | ValueKind::Integer | ValueKind::Any) =>
            {
                precision.fault(faults, "only a number has a precision", "");
            }
            // Two roundings of one field would make the hash and the state disagree.
            (Some(asked), Some(kept)) if asked != kept => {
                let message = format!("state.{name} is kept to {kept} decimals, and this counts {asked}");
                precision.fault(faults, message, "write the same number as `decimals` of the field");
            }
            _ => {}
        }
    }
    Some(required)
}

fn read_matches(
    faults: &mut Faults,
    at: &At<'_>,
    required: &[Required],
    known: &Known<'_>,
) -> BTreeMap<Arc<str>, Match> {
    let mut matches = BTreeMap::new();
    let scope: Scope = known.place.scope.clone().root_of_state("source").root_of_state("target");
    let place = Place::of_import(scope);
    for (name, rule) in at.named(faults, "match", "rules") {
        let name = tag::user_name(name);
        if !required.iter().any(|required| &*required.name == name) {
            let near = nearest(name, required.iter().map(|required| &*required.name));
            let hint = did_you_mean(near);
            let message = format!("{name} is not required, so nothing is compared");
            rule.name().fault(faults, message, &hint.unwrap_or_default());
        }
        let Some(text) = rule.value.as_str() else {
            let message = format!("a rule is equal, present or an expression, not {}", kind(rule.value));
            rule.fault(faults, message, "");
            continue;
        };
        let read = match text {
            "equal" => Some(Match::Equal),
            "present" => Some(Match::Present),
            text => rule.parse(faults, 0, text, &place, true).map(Match::Holds),
        };
        matches.extend(read.map(|read| (Arc::from(name), read)));
    }
    matches
}

/// A pack with contracts says at least once what must never happen, by a predicate that cannot recover or is lifted
/// (dendrer paper 4.4, pillar 4).
pub(super) fn check_pillars(faults: &mut Faults, root: &At<'_>, predicates: &[Declared]) {
    let Some(at) = root.member("contracts") else { return };
    if predicates.iter().any(|declared| declared.predicate.monotone() != Monotone::Unknown) {
        return;
    }
    let message = match predicates.is_empty() {
        true => "a pack with contracts has a violation predicate, and this has none",
        false => "a pack with contracts has a violation predicate that cannot recover, and all of these may",
    };
    let hint = "add one under `violations`, with `bisect_predicate: monotone_lift` where it can recover";
    at.name().fault_of(faults, Code::E0907, message, hint);
}
