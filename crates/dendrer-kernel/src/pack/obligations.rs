//! Reading the obligations of a pack: what must have held by then.

use std::collections::BTreeSet;

use dendrer_object::{Code, Digest, TypeName, Value};

use super::Declared;
use super::read::{At, Faults, Types, check_name, has_type, known_type, read_entry, read_listed};
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
    pub(super) fn read_type(&self, faults: &mut Faults, parent: &At<'_>, member: &str) -> Option<TypeName> {
        let text = parent.text(faults, member)?;
        let at = parent.member(member)?;
        known_type(faults, &at, self.types, text, "a new type is registered under `types`")
    }
}

/// Reads the obligations, and reports all that is wrong with them.
pub(super) fn read(
    faults: &mut Faults,
    root: &At<'_>,
    known: &Known<'_>,
    version: Option<&str>,
    pack: Digest,
) -> Vec<Declared> {
    let mut taken: BTreeSet<&str> = known.taken.iter().copied().collect();
    let mut read = Vec::new();
    for at in read_listed(faults, root, "obligations") {
        let Some((id, name)) = read_entry(faults, &at, "an obligation", &OBLIGATION, "confirmed") else {
            continue;
        };
        if check_name(faults, &id, name) && !taken.insert(name) {
            id.fault_of(faults, Code::E0903, format!("there is another predicate named {name}"), "");
        }
        let words = at.shared(faults, "words");
        let message = format!("{name} does not say what must hold");
        at.needed(faults, "holds", message, "add a line like `holds: state.confirmed`");
        let holds = at.condition(faults, "holds", known.place);
        let due = read_due(faults, &at, known);
        let lost = at.condition(faults, "lost", known.place);
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

fn read_due(faults: &mut Faults, at: &At<'_>, known: &Known<'_>) -> Option<Due> {
    match (at.member("by"), at.member("within")) {
        (Some(by), None) => read_by(faults, at, &by, known),
        (None, Some(within)) => read_within(faults, &within, known),
        _ => {
            let hint =
                "like `by: goal.complete`, `by: {tick: 40}` or `within: {ticks: 5, of: action.request}`";
            at.refuse(faults, "an obligation has exactly one of by and within", hint)
        }
    }
}

fn read_by(faults: &mut Faults, parent: &At<'_>, by: &At<'_>, known: &Known<'_>) -> Option<Due> {
    if let Value::Object(_) = by.value {
        by.object(faults, "by", &["tick"])?;
        return read_ticks(faults, by, "tick").map(Due::Tick);
    }
    if by.value.as_str().is_none() {
        let message = format!("by is a transition type or a tick, not {}", kind(by.value));
        return by.refuse(faults, message, "like `by: goal.complete` or `by: {tick: 40}`");
    }
    known.read_type(faults, parent, "by").map(Due::OfType)
}

fn read_within(faults: &mut Faults, within: &At<'_>, known: &Known<'_>) -> Option<Due> {
    within.object(faults, "within", &["ticks", "of"])?;
    let ticks = read_ticks(faults, within, "ticks");
    let Some(of) = within.member("of") else {
        let message = "within does not say of what";
        return within.refuse(faults, message, "a transition type, or a condition on the state");
    };
    // A known type is read as a type, though it may parse as an expression.
    let named =
        of.value.as_str().and_then(|text| text.parse().ok()).filter(|name| has_type(known.types, name));
    let trigger = match named {
        Some(name) => Trigger::OfType(name),
        None => Trigger::Becomes(within.condition(faults, "of", known.place)?),
    };
    Some(Due::Within(ticks?, trigger))
}

fn read_ticks(faults: &mut Faults, parent: &At<'_>, name: &str) -> Option<u64> {
    let Some(at) = parent.member(name) else {
        return parent.refuse(
            faults,
            format!("there is no `{name}`"),
            &format!("add `{name}:` and a number"),
        );
    };
    let ticks = at.value.as_u64();
    if ticks.is_none() {
        at.fault(faults, format!("{name} is a number from 0 on, not {}", kind(at.value)), "");
    }
    ticks
}
