//! Checks every document that a test or a page shows against its published JSON Schema.
//!
//! [`crate::support::ran`] calls [`check_output`], so no test asks for it. Schemas are made strict: an object schema with
//! `properties` and without `additionalProperties` allows no other member.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value, json};

/// Part of a published schema that a printed line must fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Document of `--json`.
    Whole,
    /// Item of a stream.
    Item,
    /// Item of `commit` as a command under `fork --exec` is answered: without `head`.
    Reply,
    /// Last line of a stream.
    Summary,
}

/// Whether a line has every required member, or only those chosen by `--fields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    Full,
    Chosen,
}

/// Checks each line of `text` that is a document, an item of a stream or its summary. Other text passes.
///
/// Returns the lines that may be items of a stream that was interrupted: a summary would name their schema.
pub(crate) fn check_output(text: &str, extent: Extent) -> Vec<Value> {
    let (mut documents, mut items) = (BTreeSet::new(), Vec::new());
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            assert!(!line.contains("\"schema\":\"dendrer."), "a document that is no JSON: {line}");
            continue;
        };
        if let Some(name) = schema_name(&value) {
            check(name, Part::Whole, extent, &value);
            documents.insert(name.to_owned());
        } else if let Some(name) = value.get("summary").and_then(schema_name) {
            // The summary does not repeat a document that is an item of its stream.
            let is_whole = !documents.contains(name);
            let of_summary = if is_whole { Extent::Full } else { Extent::Chosen };
            check(name, Part::Summary, of_summary, &value["summary"]);
            let items = std::mem::take(&mut items);
            match value["summary"].get("exec").is_some() {
                true => items.iter().for_each(|item| check("commit", Part::Reply, extent, item)),
                false => check_items(name, &items, extent),
            }
        } else {
            items.push(value);
        }
    }
    items
}

/// Checks items of a stream; no schema has the name of a verb that has no list.
pub(crate) fn check_items(name: &str, items: &[Value], extent: Extent) {
    for item in items.iter().filter(|_| dendrer_view::schemas::find(name).is_some()) {
        check(name, Part::Item, extent, item);
    }
}

/// Checks each line of `export --format jsonl`.
pub(crate) fn check_events(text: &str) {
    for line in text.lines() {
        check("event", Part::Whole, Extent::Full, &serde_json::from_str(line).unwrap());
    }
}

/// Checks a line that is given to `dendrer commit`.
pub(crate) fn check_intent(line: &str) {
    check("intent", Part::Whole, Extent::Full, &serde_json::from_str(line).unwrap());
}

/// Returns the name of a document's schema without `dendrer.` and the version.
fn schema_name(value: &Value) -> Option<&str> {
    value.get("schema")?.as_str()?.strip_prefix("dendrer.")?.strip_suffix("/1")
}

fn check(name: &str, part: Part, extent: Extent, value: &Value) {
    // A document of a failure is never cut.
    let extent = if name == "error" { Extent::Full } else { extent };
    let validator = validator(name, part, extent);
    let mut errors = Vec::new();
    validator.iter_errors(value).for_each(|error| describe(&error, &mut errors));
    assert!(errors.is_empty(), "{part:?} of schema {name} does not fit:\n{}", errors.join("\n"));
}

/// Adds the place of each error, what is wrong there and the value; of a choice, the errors of its variants.
fn describe(error: &ValidationError<'_>, lines: &mut Vec<String>) {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().flatten().for_each(|error| describe(error, lines));
        }
        _ => {
            let found: String = error.instance().to_string().chars().take(300).collect();
            lines.push(format!("{}: {}: {found}", error.instance_path(), error.masked()));
        }
    }
}

/// Returns the validator of a part, compiled once.
fn validator(name: &str, part: Part, extent: Extent) -> Arc<Validator> {
    type Known = BTreeMap<(String, Part, Extent), Arc<Validator>>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let compiled = known.entry((name.to_owned(), part, extent)).or_insert_with(|| {
        let schema = dendrer_view::schemas::find(name).unwrap_or_else(|| panic!("no schema {name}"));
        let schema = cut(serde_json::from_str(&schema.to_string()).unwrap(), part, extent);
        Arc::new(jsonschema::draft202012::new(&strict(schema)).unwrap())
    });
    Arc::clone(compiled)
}

/// Returns the schema of a part of the documents that `schema` describes.
fn cut(mut schema: Value, part: Part, extent: Extent) -> Value {
    match part {
        Part::Whole => {}
        Part::Item | Part::Reply => {
            let definitions = schema.get("$defs").cloned();
            schema = item_schema(&mut schema).map(Value::take).unwrap_or(schema);
            schema.as_object_mut().unwrap().extend(definitions.map(|schemas| ("$defs".to_owned(), schemas)));
        }
        Part::Summary => schema["properties"]["items"] = json!({"type": "integer"}),
    }
    if part == Part::Reply {
        schema["required"].as_array_mut().unwrap().retain(|name| name != "head");
    }
    if extent == Extent::Chosen {
        schema.as_object_mut().unwrap().remove("required");
        item_schema(&mut schema).and_then(Value::as_object_mut).map(|item| item.remove("required"));
    }
    schema
}

/// Returns the schema of the items of a document; `None` if it has no list.
fn item_schema(schema: &mut Value) -> Option<&mut Value> {
    let list = schema.pointer_mut("/properties/items")?;
    match list.get("anyOf").is_some() {
        true => list["anyOf"].as_array_mut()?.iter_mut().find_map(|variant| variant.get_mut("items")),
        false => list.get_mut("items"),
    }
}

/// Closes each object schema that has `properties` and no `additionalProperties`.
fn strict(schema: Value) -> Value {
    closed(schema, true)
}

/// As [`strict`]; a schema that is applied together with its parent's `properties` is left to the parent to close.
fn closed(schema: Value, closes: bool) -> Value {
    let Value::Object(members) = schema else { return schema };
    let is_open = members.contains_key("properties") && !members.contains_key("additionalProperties");
    let parts_close = closes && !members.contains_key("properties");
    let mut made: Map<String, Value> = members
        .into_iter()
        .map(|(keyword, value)| {
            let value = match (keyword.as_str(), value) {
                ("properties" | "$defs", Value::Object(schemas)) => {
                    schemas.into_iter().map(|(name, schema)| (name, strict(schema))).collect()
                }
                ("items" | "additionalProperties", schema) => strict(schema),
                ("prefixItems", Value::Array(schemas)) => schemas.into_iter().map(strict).collect(),
                ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                    schemas.into_iter().map(|schema| closed(schema, parts_close)).collect()
                }
                (_, value) => value,
            };
            (keyword, value)
        })
        .collect();
    if is_open && closes {
        made.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(made)
}
