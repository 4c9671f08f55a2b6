//! Merges what several agents left in one unit (design, 14.5).
//!
//! The sides of a place are its newest writes: those at, above or below it that no other one follows. A side without one does not
//! count. If those that count differ, the one with the highest rank is taken, and the place is a decision. If all sides are
//! objects, each member is a place. Reads no graph.
//!
//! Rule: what one side alone changed is never lost, and what was written over never comes back; tests
//! `what_one_side_alone_changed_stays`, `what_was_written_over_does_not_come_back`.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::{Object, Pointer, Value, tag};

use super::origins::{Origins, Stamp};
use super::{CONFLICT, REMOVED, SyncStrategy, Write, shown};

/// A side that counts at a place.
pub(super) struct Counted {
    /// The number of the side.
    pub(super) side: usize,
    pub(super) value: Option<Value>,
    /// Its newest writes there.
    pub(super) stamps: Vec<Stamp>,
}

/// A place on which sides differ, with the sides that count there and the number among them of the one that is taken; `None`
/// if all are kept.
pub(super) struct Decided {
    pub(super) path: Pointer,
    pub(super) sides: Vec<Counted>,
    pub(super) taken: Option<usize>,
}

/// The sides of a unit, and the order and the ranks of their writes.
pub(super) struct Sides<'w> {
    /// The unit.
    pub(super) unit: &'w Pointer,
    /// The newest writes of the unit, in the order of ticks.
    pub(super) writes: &'w [&'w Write],
    pub(super) strategy: SyncStrategy,
    /// Whether the unit is one place.
    pub(super) is_whole: bool,
    /// The node that merges them.
    pub(super) at: u64,
    /// Whether a node is another one or an ancestor of it.
    pub(super) reaches: &'w dyn Fn(u64, u64) -> bool,
    /// The rank of a write with its value; of equal ones the greatest tick is taken.
    pub(super) rank: &'w dyn Fn(&Stamp, Option<&Value>) -> f64,
}

/// One side at a place.
#[derive(Clone)]
struct Side {
    number: usize,
    value: Option<Value>,
    /// Its writes there and below; those there are given.
    origins: Origins,
}

/// Whether a value is merged member by member: an object that is no tag and no kept conflict.
pub(super) fn is_map(value: &Value) -> bool {
    let Some(members) = value.as_object() else { return false };
    !tag::is_tagged(members) && members.get(CONFLICT).is_none() && members.get(REMOVED).is_none()
}

impl Sides<'_> {
    /// Merges the sides, and lists the places that were decided. If all are kept, the value is that of a side.
    pub(super) fn merge(&self) -> (Option<Value>, Origins, Vec<Decided>) {
        let mut decided = Vec::new();
        let (value, origins) = self.place(self.all(), &mut Vec::new(), &mut decided);
        (value, origins, decided)
    }

    /// The writes of sides that are equal.
    pub(super) fn agreed(&self) -> Origins {
        self.joined(&self.all())
    }

    fn all(&self) -> Vec<Side> {
        let side = |(number, write): (usize, &&Write)| {
            let (value, origins) = (shown(&write.content), write.origins.clone());
            Side { number, value, origins }
        };
        self.writes.iter().enumerate().map(side).collect()
    }

    /// Those of several writes that no other one follows.
    fn unfollowed(&self, mut stamps: Vec<Stamp>) -> Vec<Stamp> {
        stamps.sort_by_key(|stamp| (stamp.by, stamp.from, stamp.is_more));
        stamps.dedup();
        let nodes: BTreeSet<u64> = stamps.iter().map(|stamp| stamp.by).collect();
        let is_followed = |by: u64| nodes.iter().any(|other| *other != by && (self.reaches)(by, *other));
        let followed: BTreeSet<u64> = nodes.iter().copied().filter(|by| is_followed(*by)).collect();
        stamps.retain(|stamp| !followed.contains(&stamp.by));
        stamps
    }

    /// Whether a side is merged member by member. A value with a confidence is one value.
    fn has_members(&self, side: &Side) -> bool {
        let is_one =
            |value: &Value| self.strategy == SyncStrategy::Confidence && value.get("confidence").is_some();
        side.value.as_ref().is_some_and(|value| is_map(value) && !is_one(value))
    }

    fn place(
        &self,
        sides: Vec<Side>,
        steps: &mut Vec<Arc<str>>,
        decided: &mut Vec<Decided>,
    ) -> (Option<Value>, Origins) {
        let is_same = |side: &Side| side.value == sides[0].value && side.origins == sides[0].origins;
        if sides.iter().all(is_same) {
            return (sides[0].value.clone(), sides[0].origins.clone());
        }
        if !self.is_whole && sides.iter().all(|side| self.has_members(side)) {
            return self.members(&sides, steps, decided);
        }
        let all: Vec<Vec<Stamp>> = sides.iter().map(|side| side.origins.all()).collect();
        let newest = self.unfollowed(all.concat());
        let counted = |(side, stamps): (Side, Vec<Stamp>)| {
            let stamps: Vec<Stamp> = stamps.into_iter().filter(|stamp| newest.contains(stamp)).collect();
            (!stamps.is_empty()).then_some((side, stamps))
        };
        let counted: Vec<(Side, Vec<Stamp>)> = sides.into_iter().zip(all).filter_map(counted).collect();
        let first = &counted[0].0.value;
        let is_agreed = counted.iter().all(|(side, _)| side.value == *first) && !is_twofold(&counted);
        if is_agreed {
            let value = first.clone();
            let sides: Vec<Side> = counted.into_iter().map(|(side, _)| side).collect();
            return (value, self.joined(&sides));
        }
        if !self.is_whole && counted.iter().all(|(side, _)| self.has_members(side)) {
            let sides: Vec<Side> = counted.into_iter().map(|(side, _)| side).collect();
            return self.members(&sides, steps, decided);
        }
        self.choose(counted, steps, decided)
    }

    /// Takes the side of the highest rank.
    fn choose(
        &self,
        all: Vec<(Side, Vec<Stamp>)>,
        steps: &[Arc<str>],
        decided: &mut Vec<Decided>,
    ) -> (Option<Value>, Origins) {
        let mut counted: Vec<(Side, Vec<Stamp>)> = Vec::new();
        for (side, stamps) in all {
            // Sides whose values are from the same writes are one.
            let is_other = |(other, others): &(Side, Vec<Stamp>)| {
                side.value != other.value || !is_within(&stamps, others) || !is_within(others, &stamps)
            };
            if counted.iter().all(is_other) {
                counted.push((side, stamps));
            }
        }
        let tokens = self.unit.tokens().map(|token| token.into_owned());
        let tokens: Vec<String> = tokens.chain(steps.iter().map(|step| step.to_string())).collect();
        let path = Pointer::of(tokens.iter().map(String::as_str));
        let best = |(side, stamps): &(Side, Vec<Stamp>)| {
            let ranked = stamps.iter().map(|stamp| ((self.rank)(stamp, side.value.as_ref()), stamp.from));
            ranked.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).unwrap_or_default()
        };
        let ranks: Vec<(f64, u64)> = counted.iter().map(best).collect();
        let order = |a: &usize, b: &usize| {
            let (a, b) = (&ranks[*a], &ranks[*b]);
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
        };
        let taken = (0..counted.len()).max_by(order).unwrap_or(0);
        let side = &counted[taken].0;
        let chosen = (side.value.clone(), side.origins.decided(self.at));
        let is_unknown = |(side, _): &(Side, _)| {
            self.writes[side.number].unknown.iter().any(|(place, _)| place.contains(&path))
        };
        // An unknown value does not compete.
        if !counted.iter().any(is_unknown) {
            let sides = counted.into_iter();
            let sides =
                sides.map(|(Side { number, value, .. }, stamps)| Counted { side: number, value, stamps });
            let taken = (self.strategy != SyncStrategy::Manual).then_some(taken);
            decided.push(Decided { path, sides: sides.collect(), taken });
        }
        chosen
    }

    /// Merges the members of sides that are all objects.
    fn members(
        &self,
        sides: &[Side],
        steps: &mut Vec<Arc<str>>,
        decided: &mut Vec<Decided>,
    ) -> (Option<Value>, Origins) {
        let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
        for side in sides {
            let members = side.value.as_ref().and_then(Value::as_object);
            names.extend(members.into_iter().flat_map(Object::iter).map(|(name, _)| Arc::clone(name)));
            side.origins.add_names(&mut names);
        }
        let mut merged = Object::default();
        let mut origins = self.here(sides);
        for name in names {
            let inner = sides.iter().map(|side| below(side, &name)).collect();
            steps.push(Arc::clone(&name));
            let (value, below) = self.place(inner, steps, decided);
            steps.pop();
            origins.put(&name, below);
            if let Some(value) = value {
                merged.set(&name, value);
            }
        }
        (Some(Value::Object(merged)), origins)
    }

    /// The newest writes of sides at a place, without those below.
    fn here(&self, sides: &[Side]) -> Origins {
        Origins::of(&self.unfollowed(sides.iter().flat_map(|side| side.origins.here()).collect()))
    }

    /// The writes of sides that are equal.
    fn joined(&self, sides: &[Side]) -> Origins {
        if sides.iter().all(|side| side.origins == sides[0].origins) {
            return sides[0].origins.clone();
        }
        let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
        sides.iter().for_each(|side| side.origins.add_names(&mut names));
        let mut joined = self.here(sides);
        for name in names {
            let inner: Vec<Side> = sides.iter().map(|side| below(side, &name)).collect();
            joined.put(&name, self.joined(&inner));
        }
        joined
    }
}

/// A side at a member of its place.
fn below(side: &Side, name: &str) -> Side {
    let value = side.value.as_ref().and_then(|value| value.as_object()?.get(name)).cloned();
    let origins = side.origins.below(name).or(&side.origins.here());
    Side { number: side.number, value, origins }
}

/// Whether each of some values is from a write that is among others.
fn is_within(stamps: &[Stamp], others: &[Stamp]) -> bool {
    stamps.iter().all(|stamp| others.iter().any(|other| other.from == stamp.from))
}

/// Whether two sides added to what was there, each by a write that the other does not have: two changes, also if the outcome
/// is equal.
fn is_twofold(counted: &[(Side, Vec<Stamp>)]) -> bool {
    let is_of = |stamp: &Stamp, stamps: &[Stamp]| stamps.iter().any(|other| other.from == stamp.from);
    counted.iter().enumerate().any(|(number, (_, a))| {
        counted[number + 1..].iter().any(|(_, b)| {
            let only_a: Vec<&Stamp> = a.iter().filter(|stamp| !is_of(stamp, b)).collect();
            let only_b: Vec<&Stamp> = b.iter().filter(|stamp| !is_of(stamp, a)).collect();
            let is_more = only_a.iter().chain(&only_b).any(|stamp| stamp.is_more);
            !only_a.is_empty() && !only_b.is_empty() && is_more
        })
    })
}
