//! Reading the contracts of a pack (dendrer paper 4.4 and appendix G).

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::text::nearest;
use dendrer_object::{Code, Digest, Object, Pointer, TypeName, Value, json, tag};

use super::read::{At, Reader, Types, near_type};
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
pub(super) fn read(reader: &mut Reader, root: &At<'_>, known: &Known<'_>) -> BTreeMap<TypeName, Contract> {
    let mut contracts = BTreeMap::new();
    for (name, at) in reader.named(root, "contracts", "what they need") {
        let type_name = match name.parse::<TypeName>() {
            Ok(type_name) => type_name,
            Err(error) => {
                reader.name_fault(Code::E0903, &at, error.to_string(), None);
                continue;
            }
        };
        let class = ontology::TYPES.iter().find(|(known, _)| *known == name).map(|(_, class)| *class);
        match class {
            None if !known.types.contains_key(&type_name) => {
                let hint = near_type(known.types, name).map_or_else(
                    || "register it under `types`".to_owned(),
                    |near| format!("did you mean {near}? A new type is registered under `types`"),
                );
                reader.name_fault(
                    Code::E0903,
                    &at,
                    format!("there is no transition type {name}"),
                    Some(hint),
                );
            }
            Some(ontology::Class::System | ontology::Class::Governance) => {
                let message = format!("{name} is not proposed by anybody, so it has no contract");
                reader.name_fault(Code::E0903, &at, message, None);
            }
            _ => {}
        }
        if let Some(contract) = read_contract(reader, &at, type_name.clone(), Some(known)) {
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
    let root = At { value: pack, path: Pointer::root() };
    let mut reader = Reader::default();
    let types = root
        .member("contracts")
        .into_iter()
        .flat_map(|at| at.members().collect::<Vec<_>>())
        .filter_map(|(name, at)| {
            let type_name: TypeName = name.parse().ok()?;
            Some((type_name.clone(), read_contract(&mut reader, &at, type_name, None)?))
        })
        .collect();
    Contracts { name: text("name"), version: text("version"), types }
}

fn read_contract(
    reader: &mut Reader,
    at: &At<'_>,
    type_name: TypeName,
    known: Option<&Known<'_>>,
) -> Option<Contract> {
    reader.object(at, "a contract", &CONTRACT)?;
    let mut required: Vec<Required> = Vec::new();
    for (name, field) in reader.named(at, "required_state", "what it must be") {
        let name = tag::user_name(name);
        check_field(reader, &field, name, known, true);
        if let Some(read) = read_required(reader, &field, name, known) {
            required.push(read);
        }
    }
    let names = |reader: &mut Reader, member: &str| -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = Vec::new();
        for item in reader.list(at, member) {
            let Some(name) = item.value.as_str() else {
                let message = format!("{member} has names of fields, not {}", kind(item.value));
                reader.fault(Code::E0902, &item, message, "");
                continue;
            };
            check_field(reader, &item, name, known, false);
            if names.iter().any(|known| &**known == name) {
                reader.fault(Code::E0902, &item, format!("{name} stands twice"), "");
            }
            names.push(name.into());
        }
        names
    };
    let (seeds, advisory) = (names(reader, "hash_seeds"), names(reader, "advisory"));
    if required.is_empty() && seeds.is_empty() && known.is_some() {
        let hint = "a type that needs nothing has no contract";
        reader.missing(at, "a contract names what it needs in required_state".to_owned(), hint);
    }
    for seed in &seeds {
        if !required.iter().any(|known| known.name == *seed) {
            // The hash binds a seed, so the seed is required.
            required.push(Required::new(seed));
        }
    }
    required.sort_by(|a, b| a.name.cmp(&b.name));
    let matches = match known {
        Some(known) => read_matches(reader, at, &required, known),
        None => BTreeMap::new(),
    };
    let words = reader.shared(at, "words");
    let digest = Digest::of_parts(&[b"dendrer/contract/v1\n", &json::to_vec(at.value)]);
    Some(Contract { type_name, words, required, seeds, advisory, matches, digest })
}

/// Looks whether the pack declares the field that is named.
fn check_field(reader: &mut Reader, at: &At<'_>, name: &str, known: Option<&Known<'_>>, at_name: bool) {
    let Some(known) = known else { return };
    let top = name.split('.').next().unwrap_or_default();
    let is_kernels = crate::names::KERNEL_PATHS.contains(&top);
    if name.split('.').any(str::is_empty) {
        reader.fault(
            Code::E0903,
            at,
            format!("\"{name}\" is not the name of a field"),
            "write name, or outer.inner",
        );
    } else if !is_kernels && !known.fields.iter().any(|(field, _)| field == top) {
        let near = nearest(top, known.fields.iter().map(|(field, _)| &**field));
        let hint = near.map(|near| format!("did you mean {near}?"));
        let message = format!("no field `{top}` is declared in state");
        match at_name {
            true => reader.name_fault(Code::E0505, at, message, hint),
            false => reader.fault(Code::E0505, at, message, hint.as_deref().unwrap_or_default()),
        }
    }
}

fn read_required(
    reader: &mut Reader,
    at: &At<'_>,
    name: &str,
    known: Option<&Known<'_>>,
) -> Option<Required> {
    let mut required = Required::new(name);
    if *at.value == Value::Null {
        return Some(required);
    }
    reader.object(at, "a required field", &REQUIRED)?;
    if let Some(text) = reader.text(at, "type") {
        match ValueKind::parse(text) {
            Some(kind) => required.kind = kind,
            None => {
                let words = ValueKind::WORDS.map(|(word, _)| word).join(", ");
                let named = at.member("type").unwrap_or_else(|| at.clone());
                reader.fault(Code::E0902, &named, format!("a type is one of {words}"), "");
            }
        }
    }
    if let Some(nullable) = at.member("nullable") {
        match nullable.value.as_bool() {
            Some(truth) => required.nullable = truth,
            None => reader.fault(Code::E0902, &nullable, "nullable is true or false", ""),
        }
    }
    if let Some(precision) = at.member("precision") {
        let decimals = precision.value.as_u64().filter(|decimals| *decimals <= DECIMALS_MAX);
        required.precision = decimals.and_then(|decimals| u8::try_from(decimals).ok());
        let declared = known.and_then(|known| known.fields.iter().find(|(field, _)| field == name)?.1);
        match (required.precision, declared) {
            (None, _) => {
                let message = format!("precision is a number of decimals from 0 to {DECIMALS_MAX}");
                reader.fault(Code::E0902, &precision, message, "");
            }
            (Some(_), _)
                if !matches!(required.kind, ValueKind::Number | ValueKind::Integer | ValueKind::Any) =>
            {
                reader.fault(Code::E0902, &precision, "only a number has a precision", "");
            }
            // Two roundings of one field would make the hash and the state disagree.
            (Some(asked), Some(kept)) if asked != kept => {
                let message = format!("state.{name} is kept to {kept} decimals, and this counts {asked}");
                reader.fault(
                    Code::E0902,
                    &precision,
                    message,
                    "write the same number as `decimals` of the field",
                );
            }
            _ => {}
        }
    }
    Some(required)
}

fn read_matches(
    reader: &mut Reader,
    at: &At<'_>,
    required: &[Required],
    known: &Known<'_>,
) -> BTreeMap<Arc<str>, Match> {
    let mut matches = BTreeMap::new();
    let scope: Scope = known.place.scope.clone().root_of_state("source").root_of_state("target");
    let place = Place::of_import(scope);
    for (name, rule) in reader.named(at, "match", "rules") {
        let name = tag::user_name(name);
        if !required.iter().any(|required| &*required.name == name) {
            let near = nearest(name, required.iter().map(|required| &*required.name));
            let hint = near.map(|near| format!("did you mean {near}?"));
            reader.name_fault(
                Code::E0902,
                &rule,
                format!("{name} is not required, so nothing is compared"),
                hint,
            );
        }
        let Some(text) = rule.value.as_str() else {
            let message = format!("a rule is equal, present or an expression, not {}", kind(rule.value));
            reader.fault(Code::E0902, &rule, message, "");
            continue;
        };
        let read = match text {
            "equal" => Some(Match::Equal),
            "present" => Some(Match::Present),
            text => reader.parse(&rule, 0, text, &place, true).map(Match::Holds),
        };
        matches.extend(read.map(|read| (Arc::from(name), read)));
    }
    matches
}

/// A pack with contracts says at least once what must never happen, by a predicate that cannot recover or is lifted
/// (dendrer paper 4.4, pillar 4).
pub(super) fn check_pillars(reader: &mut Reader, root: &At<'_>, predicates: &[Declared]) {
    let Some(at) = root.member("contracts") else { return };
    if predicates.iter().any(|declared| declared.predicate.monotone() != Monotone::Unknown) {
        return;
    }
    let message = match predicates.is_empty() {
        true => "a pack with contracts has a violation predicate, and this has none",
        false => "a pack with contracts has a violation predicate that cannot recover, and all of these may",
    };
    let hint = "add one under `violations`, with `bisect_predicate: monotone_lift` where it can recover";
    reader.name_fault(Code::E0907, &at, message, Some(hint.to_owned()));
}
