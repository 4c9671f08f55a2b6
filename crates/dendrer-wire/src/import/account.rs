//! The account of a source: each member of an item is read, or kept and states nothing, or it is named as not read.
//!
//! A format has one table of the members that it reads, and of those that it keeps although their names show. Any other member
//! is kept as well. It states none of what is counted, unless its name or its shape shows: then a note `not_read` has its place
//! and what it may state, and what depends on that is uncertain from there on (design, 14.3).

use std::collections::BTreeMap;

use dendrer::kernel::unknown::{CALLS, FAILURES, SPEAKERS, USAGE};
use dendrer_object::value::{Array, Object};
use dendrer_object::{Value, json};

use super::found::Accounted;
use super::note::ImportNote;
use super::usage;

/// How deep members of no table are looked through.
const DEPTH: usize = 5;

/// A kind of item in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// Words that reach an agent from outside.
    Outside,
    /// Words of a model.
    Model,
    /// The result of a call.
    Result,
}

impl Of {
    /// The kind of item in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Of::Outside => "words to an agent",
            Of::Model => "words of a model",
            Of::Result => "results",
        }
    }
}

/// Use of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is read as this.
    Read(&'static str),
    /// It is kept and states nothing, for this reason.
    Kept(&'static str),
}

/// A row of a table: a member of some kinds of items.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) of: &'static [Of],
    pub(crate) what: Use,
}

/// Each kind of item.
pub(crate) const ANY: &[Of] = &[Of::Outside, Of::Model, Of::Result];

/// A row of what is read.
pub(crate) const fn read(name: &'static str, of: &'static [Of], as_this: &'static str) -> Row {
    Row { name, of, what: Use::Read(as_this) }
}

/// A row of what is kept.
pub(crate) const fn kept(name: &'static str, of: &'static [Of], why: &'static str) -> Row {
    Row { name, of, what: Use::Kept(why) }
}

/// The account of one source.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// By place in an item: names with `/` between them, `*` for a number.
    pub(crate) places: BTreeMap<String, Accounted>,
}

impl Account {
    /// Accounts for the members of an item, and returns a note for each that is not read.
    pub(crate) fn item(
        &mut self,
        table: &[Row],
        of: Of,
        item: &Object,
        at: &dyn std::fmt::Display,
        notes: &mut Vec<ImportNote>,
    ) {
        // A table that reads the usage of a model reads its other places as well.
        let meters = of == Of::Model
            && table.iter().any(|row| row.name == "usage" && matches!(row.what, Use::Read(_)));
        for (name, value) in item.iter() {
            match table.iter().find(|row| row.name == &**name && row.of.contains(&of)) {
                Some(row) => self.member(name, row.what),
                // Who speaks is read from whichever member states so.
                None if of != Of::Result && value.as_str().is_some() && names_speaker(name).is_some() => {
                    self.count(name, |one| one.read += 1);
                }
                None => {
                    let before = notes.len();
                    look(
                        Place { name: Some(name), value, of, depth: 0, item, meters },
                        &format!("{at}/{name}"),
                        notes,
                    );
                    match &notes[before..] {
                        [] => self.count(name, |one| one.kept += 1),
                        new => new.iter().for_each(|note| self.not_read(at, note)),
                    }
                }
            }
        }
    }

    /// Counts a member that a table of another kind has.
    pub(crate) fn member(&mut self, name: &str, what: Use) {
        self.count(name, |one| match what {
            Use::Read(_) => one.read += 1,
            Use::Kept(_) => one.kept += 1,
        });
    }

    /// Adds the account of an object within items; `prefix` leads to it.
    pub(crate) fn add(&mut self, prefix: &str, within: Account) {
        for (place, more) in within.places {
            self.count(&format!("{prefix}{place}"), |one| {
                (one.read, one.kept) = (one.read + more.read, one.kept + more.kept);
                one.not_read += more.not_read;
                if !more.may.is_empty() {
                    one.may = more.may;
                }
            });
        }
    }

    /// Counts a note of what is not read in the item at a place.
    pub(crate) fn not_read(&mut self, at: &dyn std::fmt::Display, note: &ImportNote) {
        let place = note.path.strip_prefix(&at.to_string()).unwrap_or(&note.path).trim_start_matches('/');
        let names = place.split('/').map(|name| match name.bytes().all(|byte| byte.is_ascii_digit()) {
            true if !name.is_empty() => "*",
            _ => name,
        });
        let place = names.collect::<Vec<_>>().join("/");
        let may = note.may();
        self.count(&place, |one| (one.not_read, one.may) = (one.not_read + 1, may));
    }

    fn count(&mut self, place: &str, change: impl FnOnce(&mut Accounted)) {
        match self.places.get_mut(place) {
            Some(one) => change(one),
            None => {
                let mut one = Accounted::default();
                change(&mut one);
                self.places.insert(place.to_owned(), one);
            }
        }
    }
}

/// A place that is in no table, and of which the user states that it states nothing: a JSON pointer in which `*` is any name or
/// number. It covers what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPlace(String);

impl KeptPlace {
    /// Reads a pattern; `None` if it is no JSON pointer to a place below the top.
    pub fn new(text: &str) -> Option<KeptPlace> {
        (text.starts_with('/') && text.len() > 1).then(|| KeptPlace(text.to_owned()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it covers a place.
    pub(crate) fn covers(&self, path: &str) -> bool {
        let mut names = path.split('/');
        self.0.split('/').all(|wanted| names.next().is_some_and(|name| wanted == "*" || wanted == name))
    }
}

/// A member that is looked at.
struct Place<'v> {
    /// Its name; `None` for an item of a list.
    name: Option<&'v str>,
    value: &'v Value,
    of: Of,
    depth: usize,
    /// The item it is in: a copy of what is read states nothing new.
    item: &'v Object,
    /// Whether the places of a usage are read.
    meters: bool,
}

/// Notes what a member of no table may state, by its name or its shape, or what is in it.
fn look(place: Place<'_>, path: &str, notes: &mut Vec<ImportNote>) {
    let Place { name, value, of, depth, item, meters } = place;
    // The places of a usage of a model are read.
    if meters && name.is_some() && usage::is_place(path) {
        return;
    }
    if matches!(value, Value::Null | Value::Bool(false)) || is_copy(value, item) {
        return;
    }
    let by_shape = value.as_object().and_then(shape);
    let by_name = name.and_then(|name| telling(name).into_iter().find(|word| fits(word, value, of)));
    if let Some(may) = by_shape.or(by_name) {
        let what = if by_shape.is_some() { "shape" } else { "name" };
        let text =
            format!("this member is in no table, and by its {what} it may state {}", may.join(" and "));
        notes.push(ImportNote::not_read(path, may, text));
        return;
    }
    if depth == DEPTH {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter() {
                look(
                    Place { name: Some(name), value, of, depth: depth + 1, item, meters },
                    &format!("{path}/{name}"),
                    notes,
                );
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let before = notes.len();
                look(
                    Place { name: None, value, of, depth: depth + 1, item, meters },
                    &format!("{path}/{index}"),
                    notes,
                );
                // One item of a list is for all of them.
                if notes.len() > before {
                    break;
                }
            }
        }
        _ => {}
    }
}

/// Notes the members of a part or of a call that are in no table and show. Who speaks is not read there.
pub(crate) fn within(
    known: &[&str],
    of: Of,
    object: &Object,
    at: &dyn std::fmt::Display,
    notes: &mut Vec<ImportNote>,
) {
    for (name, value) in object.iter().filter(|(name, _)| !known.contains(&&***name)) {
        let place = Place { name: Some(name), value, of, depth: 0, item: object, meters: false };
        look(place, &format!("{at}/{name}"), notes);
    }
}

/// Whether a value is an object that a member of the item repeats.
fn is_copy(value: &Value, item: &Object) -> bool {
    let is_structured = matches!(value, Value::Object(_) | Value::Array(_));
    is_structured && item.iter().filter(|(_, other)| *other == value).count() > 1
}

/// Meaning of the last word of a name; a final id, name, count, total, list, data or usd does not count.
fn telling(name: &str) -> Option<&'static [&'static str]> {
    let words = words_of(name);
    let last =
        words.iter().rev().map(|word| singular(word)).find(|word| {
            !matches!(*word, "id" | "name" | "count" | "total" | "list" | "data" | "usd" | "")
        })?;
    Some(match last {
        "tool" | "call" | "function" | "invocation" => &[CALLS],
        "usage" | "token" | "cost" => &[USAGE],
        "error" | "exception" | "fail" | "failed" | "failure" | "status" | "result" | "response"
        | "denied" | "retry" => &[FAILURES],
        "agent" | "sender" | "speaker" | "author" => &[SPEAKERS],
        _ => return None,
    })
}

/// Whether a name shows who speaks, and whether by an id alone.
pub(crate) fn names_speaker(name: &str) -> Option<bool> {
    // Most names state nothing of the kind, and each is asked.
    let begins = |part: &[u8]| {
        ["agent", "sende", "speak", "autho"].iter().any(|word| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    if !name.as_bytes().windows(5).any(begins) {
        return None;
    }
    let words = words_of(name);
    let is_id = words.last().is_some_and(|word| matches!(&**word, "id" | "ids"));
    (telling(name)? == [SPEAKERS]).then_some(is_id)
}

/// The words of a name, in small letters: split at case, `_`, `-` and `.`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if matches!(letter, '_' | '-' | '.' | ' ' | ':') || (letter.is_uppercase() && was_small) {
            words.push(String::new());
        }
        was_small = letter.is_lowercase() || letter.is_ascii_digit();
        if letter.is_alphanumeric() {
            words.last_mut().expect("there is one").extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn singular(word: &str) -> &str {
    match word {
        "retries" => "retry",
        "status" | "statuses" => "status",
        word => word.strip_suffix('s').unwrap_or(word),
    }
}

/// Whether a value fits what its name shows.
fn fits(may: &&'static [&'static str], value: &Value, of: Of) -> bool {
    match may.first() {
        Some(&CALLS) => has_objects(value),
        Some(&USAGE) => has_number(value, 3),
        Some(&FAILURES) if of == Of::Result => !says_no_failure(value),
        Some(&FAILURES) => has_objects(value),
        _ => value.as_str().is_some_and(|text| !text.trim().is_empty()),
    }
}

fn has_objects(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => items.iter().any(|item| item.as_object().is_some_and(|item| !item.is_empty())),
        _ => false,
    }
}

fn has_number(value: &Value, depth: usize) -> bool {
    match value {
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Object(members) if depth > 0 => members.iter().any(|(_, value)| has_number(value, depth - 1)),
        Value::Array(items) if depth > 0 => items.iter().any(|value| has_number(value, depth - 1)),
        _ => false,
    }
}

/// Whether a value states that nothing failed, or nothing at all.
fn says_no_failure(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => {
            text.trim().is_empty() || dendrer::kernel::status::is_failure(text.trim()) == Some(false)
        }
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) => false,
    }
}

/// Meaning that an object of this shape may have: a call, the result of one, or a usage.
fn shape(object: &Object) -> Option<&'static [&'static str]> {
    let text = |names: &[&str]| names.iter().any(|name| object.get(name).and_then(Value::as_str).is_some());
    let has = |names: &[&str]| names.iter().any(|name| object.contains_key(name));
    if text(&["tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "call_id"]) {
        return Some(&[CALLS, FAILURES]);
    }
    if text(&["name", "tool", "tool_name", "toolName", "function"])
        && has(&["arguments", "args", "input", "params", "parameters"])
        && !has(&["description"])
    {
        return Some(&[CALLS]);
    }
    let states_tokens = |(name, value): (&std::sync::Arc<str>, &Value)| {
        telling(name) == Some(&[USAGE]) && name.to_ascii_lowercase().contains("token") && has_number(value, 0)
    };
    object.iter().any(states_tokens).then_some(&[USAGE])
}

/// Tags by which models write a call into their text: what opens it, and with what it continues (nothing: anything).
pub(crate) const CALL_TAGS: &[(&str, &[&str])] = &[
    ("<tool_call>", &["{", "<", "["]),
    ("<tool_calls>", &[]),
    ("<function=", &[]),
    ("<function_call>", &[]),
    ("<function_calls>", &[]),
    ("<invoke name=", &[]),
    ("<tool_use>", &[]),
    ("<|tool_call|>", &[]),
    ("<|tool_call_begin|>", &[]),
    ("<|tool_calls_section_begin|>", &[]),
    ("<\u{ff5c}tool\u{2581}calls\u{2581}begin\u{ff5c}>", &[]),
    ("<\u{ff5c}tool\u{2581}call\u{2581}begin\u{ff5c}>", &[]),
    ("<|python_tag|>", &[]),
    ("[TOOL_CALLS]", &[]),
    ("[TOOL_CALL]", &[]),
    ("<|channel|>commentary to=", &[]),
];

/// Tags with which a user's text begins that brings a result.
pub(crate) const RESULT_TAGS: &[&str] = &[
    "<tool_response>",
    "<tool_result>",
    "<tool_results>",
    "<tool_output>",
    "<function_result>",
    "<function_results>",
    "<function_response>",
    "<|tool_response|>",
    "<|tool_outputs_begin|>",
    "<\u{ff5c}tool\u{2581}outputs\u{2581}begin\u{ff5c}>",
    "<|ipython|>",
    "[TOOL_RESULTS]",
    "[TOOL_RESULT]",
];

/// Returns what a text opens, outside of code: what it may state.
pub(crate) fn tagged(text: &str, of: Of) -> Option<&'static [&'static str]> {
    match of {
        Of::Outside => {
            let text = text.trim_start();
            RESULT_TAGS.iter().any(|tag| text.starts_with(tag)).then_some(&[CALLS, FAILURES])
        }
        Of::Model => opens_call(text).then_some(&[CALLS, FAILURES]),
        Of::Result => None,
    }
}

/// Whether a text has a tag that opens a call, outside of blocks and spans of code.
fn opens_call(text: &str) -> bool {
    if !text.contains(['<', '[']) {
        return false;
    }
    let mut is_block = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let from = start;
        start += line.len();
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
            continue;
        }
        // A span of code lies between two of these marks.
        let (mut marks, mut counted) = (0, 0);
        let opens = |(at, _): (usize, &str)| {
            let begins = CALL_TAGS.iter().any(|(tag, next)| opens_here(&text[from + at..], tag, next));
            marks += line[counted..at].matches('`').count();
            counted = at;
            begins && marks % 2 == 0
        };
        if !is_block && line.match_indices(['<', '[']).any(opens) {
            return true;
        }
    }
    false
}

/// Whether a text begins with a tag and one of these texts; an empty list admits any.
fn opens_here(text: &str, tag: &str, next: &[&str]) -> bool {
    text.strip_prefix(tag)
        .is_some_and(|rest| next.is_empty() || next.iter().any(|next| rest.trim_start().starts_with(next)))
}

/// Notes the tags in the texts of a content.
pub(crate) fn tags(
    content: &Value,
    of: Of,
    (at, list): (&dyn std::fmt::Display, &str),
    notes: &mut Vec<ImportNote>,
) {
    let what = if of == Of::Model { "a tag in this text opens a call" } else { "a tag opens a result" };
    match content {
        Value::String(content) => {
            let may = tagged(content, of);
            notes.extend(may.map(|may| ImportNote::not_read(format!("{at}/{list}"), may, what)));
        }
        Value::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                let text = part.as_str().or_else(|| part.get("text")?.as_str());
                let may = text.and_then(|text| tagged(text, of));
                notes.extend(may.map(|may| ImportNote::not_read(format!("{at}/{list}/{index}"), may, what)));
            }
        }
        _ => {}
    }
}

/// Reads a text that is JSON of a list of parts with texts.
pub(crate) fn parts_in_text(text: &str) -> Option<Array> {
    let text = text.trim_ascii();
    if !text.starts_with('[') || !text.contains("\"text\"") {
        return None;
    }
    let parts = json::parse_door(text.as_bytes()).ok()?;
    let parts = parts.as_array()?.clone();
    let is_part = |part: &Value| {
        part.get("type").and_then(Value::as_str).is_some()
            && part.get("text").and_then(Value::as_str).is_some()
    };
    (!parts.is_empty() && parts.iter().all(is_part)).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    fn noted(of: Of, item: &str) -> Vec<(String, Vec<&'static str>)> {
        let item = parse_door(item.as_bytes()).unwrap();
        let mut notes = Vec::new();
        Account::default().item(&[], of, item.as_object().unwrap(), &"", &mut notes);
        notes.iter().map(|note| (note.path.clone(), note.may().to_vec())).collect()
    }

    #[test]
    fn a_member_in_no_table_is_noted_if_its_name_or_its_shape_tells() {
        for (of, item, place, may) in [
            (Of::Model, r#"{"invoked_functions":[{"x":1}]}"#, "/invoked_functions", CALLS),
            (Of::Model, r#"{"pendingCalls":{"a":1}}"#, "/pendingCalls", CALLS),
            (Of::Model, r#"{"raw":{"deep":[{"name":"f","arguments":"{}"}]}}"#, "/raw/deep/0", CALLS),
            (Of::Model, r#"{"sub":{"inputTokens":3}}"#, "/sub", USAGE),
            (Of::Result, r#"{"usage":{"total_tokens":9000}}"#, "/usage", USAGE),
            (Of::Outside, r#"{"total_cost_usd":0.5}"#, "/total_cost_usd", USAGE),
            (Of::Result, r#"{"http_status":500}"#, "/http_status", FAILURES),
            (Of::Result, r#"{"tool_exception":"late"}"#, "/tool_exception", FAILURES),
            (Of::Result, r#"{"retries":2}"#, "/retries", FAILURES),
            (Of::Model, r#"{"last_error":{"code":3}}"#, "/last_error", FAILURES),
            (Of::Model, r#"{"meta":{"speaker":"Bob"}}"#, "/meta/speaker", SPEAKERS),
            (Of::Result, r#"{"senderName":"Bob"}"#, "/senderName", SPEAKERS),
        ] {
            let found = noted(of, item);
            assert_eq!(found.len(), 1, "{item}: {found:?}");
            assert!(found[0].0 == place && found[0].1.contains(&may), "{item}: {found:?}");
        }
    }

    #[test]
    fn a_harmless_member_is_no_note() {
        for (of, item) in [
            (Of::Model, r#"{"id":"m1","created_at":"2026-01-02","model":"x","tool_call_id":"c1"}"#),
            (Of::Model, r#"{"tool_calls":[],"calls":null,"call_count":3,"function":"f"}"#),
            (Of::Model, r#"{"usage":{"total_tokens":0},"cost":0,"tokens":null}"#),
            (Of::Model, r#"{"error":"late","status":"completed","response":"x","failed":true}"#),
            (Of::Result, r#"{"error":null,"failed":false,"status":"ok","retries":0,"exception":""}"#),
            (Of::Outside, r#"{"agent":"","metadata":{"theme":"dark","tags":["a"]},"location":{"lat":1.5}}"#),
        ] {
            assert_eq!(noted(of, item), [], "{item}");
        }
    }

    #[test]
    fn a_tag_opens_a_call_outside_of_code_alone() {
        for (text, opens) in [
            ("<tool_call>\n{\"name\":\"f\"}", true),
            ("I look. <function=delete>{}", true),
            ("[TOOL_CALLS] [{\"name\":\"f\"}]", true),
            ("Write `<function=NAME>` to call.", false),
            ("```\n<tool_call>{\"name\":\"f\"}\n```\nThat is it.", false),
            ("```\nx\n```\n<tool_call>{\"name\":\"f\"}", true),
            ("A <tool_call> is a tag.", false),
            ("a < b and [x]", false),
        ] {
            assert_eq!(tagged(text, Of::Model).is_some(), opens, "{text}");
        }
        assert!(tagged(" <tool_response>\nok", Of::Outside).is_some());
        assert!(tagged("What is <tool_response>?", Of::Outside).is_none());
    }
}
