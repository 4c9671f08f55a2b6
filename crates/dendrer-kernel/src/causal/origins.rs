//! Which writes the places of a unit are from.
//!
//! A tree with the form of the value: a node has the newest writes of its place and a member for each place below that was written since.
//! A write of an object over an object counts for the members that it changed. A tree shares its parts with those before it.
//!
//! Rule: a decision is a write of the sync node, and the value keeps the tick, the agent and the confidence of its own write; test
//! `a_decided_value_keeps_the_number_of_its_write`.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::{Object, Value};

use super::leaves::is_map;

/// The member of a node for its own place; those of places below begin with a slash.
const HERE: &str = ".";

/// A write of a place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stamp {
    /// The node that wrote it, or decided it.
    pub(super) by: u64,
    /// The node that the value is from.
    pub(super) from: u64,
    /// How sure the author of the value was.
    pub(super) confidence: f64,
    /// Whether it added to what was there.
    pub(super) is_more: bool,
}

impl Stamp {
    /// The stamp of a node's own write.
    pub(super) fn own(tick: u64, confidence: f64) -> Stamp {
        Stamp { by: tick, from: tick, confidence, is_more: false }
    }

    fn to_value(self) -> Value {
        let numbers = [Value::from(self.by), Value::from(self.from), Value::from(self.confidence)];
        Value::array(numbers.into_iter().chain([Value::from(self.is_more)]))
    }

    fn read(value: &Value) -> Option<Stamp> {
        let members: Vec<&Value> = value.as_array()?.iter().collect();
        let [by, from, confidence, is_more] = members[..] else { return None };
        let (by, from) = (by.as_u64()?, from.as_u64()?);
        Some(Stamp { by, from, confidence: confidence.as_f64()?, is_more: is_more.as_bool()? })
    }
}

/// The writes of a place and of those below it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Origins(Object);

impl Origins {
    /// The writes of a place as a whole.
    pub(super) fn of(stamps: &[Stamp]) -> Origins {
        let stamps = Value::array(stamps.iter().map(|stamp| stamp.to_value()));
        match Value::record([(HERE, stamps)]) {
            Value::Object(node) => Origins(node),
            _ => Origins::none(),
        }
    }

    /// Nothing of its own: the writes are those of the place above.
    pub(super) fn none() -> Origins {
        Origins(Object::default())
    }

    /// The writes of the place itself; empty if they are those of the place above.
    pub(super) fn here(&self) -> Vec<Stamp> {
        let stamps = self.0.get(HERE).and_then(Value::as_array);
        stamps.into_iter().flat_map(|stamps| stamps.iter()).filter_map(Stamp::read).collect()
    }

    pub(super) fn below(&self, name: &str) -> Origins {
        let node = self.0.get(&format!("/{name}")).and_then(Value::as_object);
        node.map_or_else(Origins::none, |node| Origins(node.clone()))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|(name, _)| name.strip_prefix('/'))
    }

    /// Adds the names of the places below that were written since.
    pub(super) fn add_names(&self, names: &mut BTreeSet<Arc<str>>) {
        names.extend(self.names().map(Arc::from));
    }

    pub(super) fn put(&mut self, name: &str, below: Origins) {
        // A place whose writes are those of the place above needs no node.
        if below.0.len() > 1 || below.0.get(HERE) != self.0.get(HERE) {
            self.0.set(&format!("/{name}"), Value::Object(below.0));
        }
    }

    /// The tree with its writes at the top: `above` if it has none there.
    pub(super) fn or(mut self, above: &[Stamp]) -> Origins {
        if self.0.get(HERE).is_none() {
            let stamps = Value::array(above.iter().map(|stamp| stamp.to_value()));
            self.0.set(HERE, stamps);
        }
        self
    }

    /// All writes of the place and of those below.
    pub(super) fn all(&self) -> Vec<Stamp> {
        let mut all = self.here();
        self.names().for_each(|name| all.extend(self.below(name).all()));
        all
    }

    /// The same, decided by a node.
    pub(super) fn decided(&self, at: u64) -> Origins {
        let here: Vec<Stamp> = self.here().into_iter().map(|stamp| Stamp { by: at, ..stamp }).collect();
        let mut decided = if here.is_empty() { Origins::none() } else { Origins::of(&here) };
        self.names().for_each(|name| decided.put(name, self.below(name).decided(at)));
        decided
    }

    /// The tree after a change at a place below.
    pub(super) fn changed(&self, steps: &[String], sides: [Option<&Value>; 2], stamp: &Stamp) -> Origins {
        let is_leaf = sides.iter().flatten().any(|value| !is_map(value));
        match steps {
            [step, rest @ ..] if !is_leaf => {
                let inner = sides.map(|side| side.and_then(|side| side.as_object()?.get(step)));
                let mut changed = self.clone();
                changed
                    .0
                    .set(&format!("/{step}"), Value::Object(self.below(step).changed(rest, inner, stamp).0));
                changed
            }
            _ => self.replaced(sides, stamp),
        }
    }

    /// The tree after a new value of the place: of an object over an object, each member that differs was written.
    fn replaced(&self, [before, after]: [Option<&Value>; 2], stamp: &Stamp) -> Origins {
        let maps = [before, after].map(|side| side.filter(|side| is_map(side)).and_then(Value::as_object));
        let [Some(before), Some(after)] = maps else { return Origins::of(&[*stamp]) };
        let mut replaced = self.clone();
        let names: BTreeSet<&Arc<str>> = before.iter().chain(after.iter()).map(|(name, _)| name).collect();
        for name in names {
            let sides = [before.get(name), after.get(name)];
            if sides[0] != sides[1] {
                let below = self.below(name).replaced(sides, stamp);
                replaced.0.set(&format!("/{name}"), Value::Object(below.0));
            }
        }
        replaced
    }

    pub(super) fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// Reads what [`Origins::to_value`] made. `None` if a write is by no known node.
    pub(super) fn read(value: &Value, is_known: &dyn Fn(u64) -> bool) -> Option<Origins> {
        let node = value.as_object()?;
        for (name, value) in node.iter() {
            if &**name != HERE {
                Origins::read(value, is_known).filter(|_| name.starts_with('/'))?;
                continue;
            }
            let stamps = value.as_array().filter(|stamps| !stamps.is_empty())?;
            for stamp in stamps.iter() {
                Stamp::read(stamp).filter(|stamp| is_known(stamp.by) && is_known(stamp.from))?;
            }
        }
        Some(Origins(node.clone()))
    }
}
