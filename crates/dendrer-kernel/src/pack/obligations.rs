//! Reading the obligations of a pack: what must have held by then.

use std::collections::BTreeSet;

use dendrer_object::{Code, Digest, TypeName, Value};

use super::Declared;
use super::read::{At, Reader, Types, check_name, has_type, near_type, read_id};
use super::scopes::Place;
use crate::fold::kind;
use crate::obligation::{Due, Obligation, Trigger};
use crate::predicate::{Polarity, Predicate, Window};

const OBLIGATION: [&str; 6] = ["id", "words", "holds", "by", "within", "lost"];

/// The parts of a pack that obligations refer to.
pub(super) struct Known<'a> {
    pub(super) types: &'a Types,
    /// The scope of expressions over the state, with constants and definitions.
    pub(super) place: &'a Place,
    /// The names that predicates have.
    pub(super) taken: &'a [&'a str],
}

impl Known<'_> {
    /// Reads a transition type that the ontology or the pack has.
    pub(super) fn read_type(&self, reader: &mut Reader, parent: &At<'_>, member: &str) -> Option<TypeName> {
        let text = reader.text(parent, member)?;
        if let Some(name) = text.parse().ok().filter(|name| has_type(self.types, name)) {
            return Some(name);
        }
        let hint = near_type(self.types, text).map_or_else(
            || "a new type is registered under `types`".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        let at = parent.member(member)?;
        reader.fault(Code::E0903, &at, format!("there is no transition type {text}"), &hint);
        None
    }
}

/// Reads the obligations, and reports all that is wrong with them.
pub(super) fn read(
    reader: &mut Reader,
    root: &At<'_>,
    known: &Known<'_>,
    version: Option<&str>,
    pack: Digest,
) -> Vec<Declared> {
    let listed = reader.list(root, "obligations");
    if let Some(at) = root.member("obligations") {
        reader.count(&at, listed.len());
    }
    let mut taken: BTreeSet<&str> = known.taken.iter().copied().collect();
    let mut read = Vec::new();
    for at in listed {
        if reader.object(&at, "an obligation", &OBLIGATION).is_none() {
            continue;
        }
        let Some((id, name)) = read_id(reader, &at, "an obligation", "confirmed") else { continue };
        if let Err((message, hint)) = check_name(name) {
            reader.fault(Code::E0903, &id, message, hint);
        } else if !taken.insert(name) {
            reader.fault(Code::E0903, &id, format!("there is another predicate named {name}"), "");
        }
        let words = reader.shared(&at, "words");
        if at.member("holds").is_none() {
            let message = format!("{name} does not say what must hold");
            reader.missing(&at, message, "add a line like `holds: state.confirmed`");
        }
        let holds = reader.condition(&at, "holds", known.place);
        let due = read_due(reader, &at, known);
        let lost = reader.condition(&at, "lost", known.place);
        // A `lost` with a fault was reported, and then nothing of the pack is taken.
        let (Some(holds), Some(due)) = (holds, due) else { continue };
        let owed = Obligation::new(&holds, due, lost);
        let (polarity, window) = (Polarity::Holds, Window::After);
        let version = version.unwrap_or_default();
        let predicate = Predicate::registered(name, version, polarity, window, holds, pack).owed(owed);
        read.push(Declared { predicate, words, is_violation: false });
    }
    read
}

fn read_due(reader: &mut Reader, at: &At<'_>, known: &Known<'_>) -> Option<Due> {
    match (at.member("by"), at.member("within")) {
        (Some(by), None) => read_by(reader, at, &by, known),
        (None, Some(within)) => read_within(reader, &within, known),
        _ => {
            let hint =
                "like `by: goal.complete`, `by: {tick: 40}` or `within: {ticks: 5, of: action.request}`";
            reader.fault(Code::E0902, at, "an obligation has exactly one of by and within", hint);
            None
        }
    }
}

fn read_by(reader: &mut Reader, parent: &At<'_>, by: &At<'_>, known: &Known<'_>) -> Option<Due> {
    if let Value::Object(_) = by.value {
        reader.object(by, "by", &["tick"])?;
        return read_ticks(reader, by, "tick").map(Due::Tick);
    }
    if by.value.as_str().is_none() {
        let message = format!("by is a transition type or a tick, not {}", kind(by.value));
        reader.fault(Code::E0902, by, message, "like `by: goal.complete` or `by: {tick: 40}`");
        return None;
    }
    known.read_type(reader, parent, "by").map(Due::OfType)
}

fn read_within(reader: &mut Reader, within: &At<'_>, known: &Known<'_>) -> Option<Due> {
    reader.object(within, "within", &["ticks", "of"])?;
    let ticks = read_ticks(reader, within, "ticks");
    let Some(of) = within.member("of") else {
        let hint = "a transition type, or a condition on the state";
        reader.missing(within, "within does not say of what".to_owned(), hint);
        return None;
    };
    // A known type is read as a type, though it may parse as an expression.
    let named =
        of.value.as_str().and_then(|text| text.parse().ok()).filter(|name| has_type(known.types, name));
    let trigger = match named {
        Some(name) => Trigger::OfType(name),
        None => Trigger::Becomes(reader.condition(within, "of", known.place)?),
    };
    Some(Due::Within(ticks?, trigger))
}

fn read_ticks(reader: &mut Reader, parent: &At<'_>, name: &str) -> Option<u64> {
    let Some(at) = parent.member(name) else {
        reader.missing(parent, format!("there is no `{name}`"), &format!("add `{name}:` and a number"));
        return None;
    };
    let ticks = at.value.as_u64();
    if ticks.is_none() {
        reader.fault(Code::E0902, &at, format!("{name} is a number from 0 on, not {}", kind(at.value)), "");
    }
    ticks
}
