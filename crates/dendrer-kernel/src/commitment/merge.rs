//! Commitments of several runs as one: what a merged run begins with, and what a parent takes from a child.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::Value;
use dendrer_object::value::Object;

use super::projection::{ATOMS, EDGES, HIDDEN, ITEMS, TRUST, initial_of_pack, with_tick};
use super::{Commitments, form};

/// Members of a commitment that name others.
const NAMING: [&str; 4] = ["support", "conflicts", "depends_on", "refines"];

/// Returns what a run begins with that continues several, each given with its name: `None` if there is nothing.
///
/// A commitment that two of them have is there once, and closed if one of them closed it. An id that two use for different
/// things is the first one's; the other's is renamed to `ID@RUN`.
pub fn merged(sides: &[(&str, &Commitments)]) -> Option<Value> {
    let mut all: Option<Value> = None;
    for (name, side) in sides {
        let Some(initial) = side.to_initial() else { continue };
        all = Some(match all {
            None => initial,
            Some(all) => join(&all, &initial, name),
        });
    }
    all
}

/// Returns what a run that is reduced again begins with: without the commitments of the pack that it had.
pub fn without_pack(initial: &Value) -> Option<Value> {
    let mut members = initial.as_object()?.clone();
    let items = list(initial, ITEMS).filter(|item| !initial_of_pack(item)).cloned();
    members.set(ITEMS, Value::array(items.collect::<Vec<_>>()));
    members.remove(TRUST);
    Some(Value::Object(members))
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flat_map(|list| list.iter())
}

fn id_of(item: &Value) -> Option<Arc<str>> {
    form::text(item.get("commitment")?, "id")
}

fn join(first: &Value, second: &Value, name: &str) -> Value {
    let mut atoms = first.get(ATOMS).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut items: Vec<Value> = list(first, ITEMS).cloned().collect();
    let at: BTreeMap<Arc<str>, usize> =
        items.iter().enumerate().filter_map(|(at, item)| Some((id_of(item)?, at))).collect();
    let theirs = renamed(second, name, |id, value| {
        let same_item = at.get(id).map(|at| items[*at].get("commitment") == value.get("commitment"));
        let same_atom = atoms.get(id).map(|atom| with_tick(atom, 0) == with_tick(value, 0));
        same_item.or(same_atom).is_some_and(|is_same| !is_same)
    });
    for (id, atom) in theirs.get(ATOMS).and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        if !atoms.contains_key(id) {
            atoms.set(id, atom.clone());
        }
    }
    for item in list(&theirs, ITEMS) {
        match id_of(item).and_then(|id| at.get(&id).copied()) {
            None => items.push(item.clone()),
            Some(at) => {
                for member in ["closed", "stale_by"] {
                    if let (None, Some(theirs), Value::Object(ours)) =
                        (items[at].get(member).cloned(), item.get(member), &mut items[at])
                    {
                        ours.set(member, theirs.clone());
                    }
                }
            }
        }
    }
    let mut edges: Vec<Value> = list(first, EDGES).cloned().collect();
    let known: std::collections::BTreeSet<String> = edges.iter().map(Value::to_string).collect();
    edges.extend(list(&theirs, EDGES).filter(|edge| !known.contains(&edge.to_string())).cloned());
    let mut made = first.as_object().cloned().unwrap_or_default();
    if let Some(hidden) = second.get(HIDDEN) {
        made.set(HIDDEN, hidden.clone());
    }
    made.set(ATOMS, Value::Object(atoms));
    made.set(EDGES, Value::array(edges));
    made.set(ITEMS, Value::array(items));
    Value::Object(made)
}

/// Returns an initial form in which each id that is taken by something else is `ID@RUN`, wherever it is named.
pub(super) fn renamed(initial: &Value, run: &str, is_taken: impl Fn(&str, &Value) -> bool) -> Value {
    let atoms = initial.get(ATOMS).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut names: BTreeMap<Arc<str>, Value> = BTreeMap::new();
    let mut take = |id: &Arc<str>, value: &Value| {
        if is_taken(id, value) {
            names.insert(Arc::clone(id), Value::from(format!("{id}@{run}").as_str()));
        }
    };
    atoms.iter().for_each(|(id, atom)| take(id, atom));
    list(initial, ITEMS).filter_map(|item| Some((id_of(item)?, item))).for_each(|(id, item)| take(&id, item));
    if names.is_empty() {
        return initial.clone();
    }
    let rename = |value: &Value| match value {
        Value::String(id) => names.get(id).unwrap_or(value).clone(),
        Value::Array(ids) => Value::array(ids.iter().map(|id| match id {
            Value::String(text) => names.get(text).unwrap_or(id).clone(),
            id => id.clone(),
        })),
        value => value.clone(),
    };
    let rename_in = |value: &Value, members: &[&str]| {
        let mut made = value.as_object().cloned().unwrap_or_default();
        for name in members {
            if let Some(member) = made.get(name).cloned() {
                made.set(name, rename(&member));
            }
        }
        Value::Object(made)
    };
    let inside = |value: &Value, member: &str, names: &[&str]| {
        let mut made = value.as_object().cloned().unwrap_or_default();
        if let Some(inner) = made.get(member).cloned() {
            made.set(member, rename_in(&inner, names));
        }
        Value::Object(made)
    };
    let mut made = initial.as_object().cloned().unwrap_or_default();
    let atoms = atoms.iter().map(|(id, atom)| {
        let id = names.get(id).and_then(Value::as_str).map_or_else(|| Arc::clone(id), Arc::from);
        (id, inside(atom, "atom", &["id"]))
    });
    made.set(ATOMS, Value::record(atoms.collect::<Vec<_>>()));
    let named: Vec<&str> = ["id", "supersedes"].into_iter().chain(NAMING).collect();
    made.set(ITEMS, Value::array(list(initial, ITEMS).map(|item| inside(item, "commitment", &named))));
    made.set(EDGES, Value::array(list(initial, EDGES).map(|edge| rename_in(edge, &["from", "to"]))));
    Value::Object(made)
}
