//! Merges the objects that several agents left in one unit, leaf by leaf (design, 14.5).
//!
//! A side counts at a place unless another side changed the place since the last common write of both and it did not. If the
//! sides that count differ, the one with the highest rank is taken, and the place is a decision. Reads no graph.
//!
//! Rule: what one side alone changed since the last common write is never lost; test
//! `what_one_side_alone_changed_stays`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::{Object, Pointer, Value, marker, tag};

use super::{CONFLICT, Content, REMOVED, Write};

/// A place on which sides differ, with the sides that count there by number, and the one that is taken.
pub(super) struct Decided {
    pub(super) path: Pointer,
    pub(super) sides: Vec<(usize, Option<Value>)>,
    pub(super) taken: usize,
}

/// The sides of a unit in conflict.
pub(super) struct Sides<'w> {
    /// The unit.
    pub(super) unit: &'w Pointer,
    /// The newest writes, in the order of ticks.
    pub(super) writes: &'w [&'w Write],
    /// The newest common writes of each pair of sides, by `a * sides + b` where a < b.
    pub(super) common: Vec<Vec<Cow<'w, Write>>>,
    /// The rank of each side: the highest one is taken.
    pub(super) ranks: Vec<usize>,
}

/// Whether a value is merged member by member: an object that is no tag and no kept conflict.
pub(super) fn has_leaves(content: &Content) -> bool {
    matches!(content, Content::Value(value) if is_map(value))
}

fn is_map(value: &Value) -> bool {
    let Some(members) = value.as_object() else { return false };
    !tag::is_tagged(members) && members.get(CONFLICT).is_none() && members.get(REMOVED).is_none()
}

impl<'w> Sides<'w> {
    /// Merges the sides, and lists the places that the ranks decided.
    pub(super) fn merge(&self) -> (Option<Value>, Vec<Decided>) {
        let mut decided = Vec::new();
        let all: Vec<usize> = (0..self.writes.len()).collect();
        let value = self.members(&all, &mut Vec::new(), &mut decided);
        (value, decided)
    }

    /// Merges the members of sides that are all objects.
    fn members(
        &self,
        sides: &[usize],
        steps: &mut Vec<Arc<str>>,
        decided: &mut Vec<Decided>,
    ) -> Option<Value> {
        let objects = sides.iter().filter_map(|side| at(self.writes[*side], steps)?.as_object());
        let names: BTreeSet<Arc<str>> =
            objects.flat_map(Object::iter).map(|(name, _)| Arc::clone(name)).collect();
        let mut merged = Object::default();
        for name in names {
            steps.push(Arc::clone(&name));
            let value = self.place(sides, steps, decided);
            steps.pop();
            if let Some(value) = value {
                merged.set(&name, value);
            }
        }
        Some(Value::Object(merged))
    }

    fn place(&self, sides: &[usize], steps: &mut Vec<Arc<str>>, decided: &mut Vec<Decided>) -> Option<Value> {
        let tokens = self.unit.tokens().map(|token| token.into_owned());
        let tokens: Vec<String> = tokens.chain(steps.iter().map(|step| step.to_string())).collect();
        let path = Pointer::of(tokens.iter().map(String::as_str));
        let is_unknown = |write: &Write| write.unknown.iter().any(|(place, _)| place.contains(&path));
        let value = |side: &usize| at(self.writes[*side], steps);
        let is_beaten = |side: &usize| {
            let beats = |other: &usize| {
                value(other) != value(side) && self.is_unchanged(*side, *other, steps, &is_unknown)
            };
            sides.iter().any(beats)
        };
        let mut count: Vec<usize> = sides.iter().copied().filter(|side| !is_beaten(side)).collect();
        if count.is_empty() {
            // Last common writes of three sides may beat each other in a circle.
            count = sides.to_vec();
        }
        let first = value(&count[0]);
        if count.iter().all(|side| value(side) == first) {
            return first.cloned();
        }
        if count.iter().all(|side| value(side).is_some_and(is_map)) {
            return self.members(&count, steps, decided);
        }
        let taken = count.iter().copied().max_by_key(|side| self.ranks[*side]).unwrap_or(count[0]);
        // An unknown value does not compete.
        if !count.iter().any(|side| is_unknown(self.writes[*side])) {
            let values = count.iter().map(|side| (*side, value(side).cloned())).collect();
            decided.push(Decided { path, sides: values, taken });
        }
        value(&taken).cloned()
    }

    /// Whether a side has at a place what the last common writes of it and another side have. Several that disagree, and one
    /// that is not known, have nothing in common.
    fn is_unchanged(
        &self,
        side: usize,
        other: usize,
        steps: &[Arc<str>],
        is_unknown: &dyn Fn(&Write) -> bool,
    ) -> bool {
        let pair = side.min(other) * self.writes.len() + side.max(other);
        let value = at(self.writes[side], steps);
        self.common[pair].iter().all(|write| !is_unknown(write) && marker::agree(at(write, steps), value))
    }
}

/// The value of a write at steps below the unit.
fn at<'w>(write: &'w Write, steps: &[Arc<str>]) -> Option<&'w Value> {
    let Content::Value(value) = &write.content else { return None };
    steps.iter().try_fold(value, |value, step| value.as_object()?.get(step))
}
