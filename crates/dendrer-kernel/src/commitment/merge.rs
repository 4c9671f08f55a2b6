//! Commitments of several runs as one: what a merged run begins with, and what a parent takes from a child.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_object::Value;
use dendrer_object::value::Object;

use super::owner::{address, split_address};
use super::projection::{
    ATOMS, EDGES, HELD_AS, ITEMS, NAMES, TRUST, initial_of_pack, read_edge, read_item, with_tick,
};
use super::{Commitment, CommitmentEdge, CommitmentOwner, Commitments, form, spent};
use crate::step::KERNEL_VERSION;

/// Members of a commitment that name others.
const NAMING: [&str; 4] = ["support", "conflicts", "depends_on", "refines"];

/// Returns what a run begins with that continues several, each given with its name: `None` if there is nothing.
///
/// A commitment that two of them have is there once, and closed if one of them closed it. An id that two authors use is that of the
/// higher rank, as in a line; one that an author uses for different things is renamed to `ID@RUN` for the second run.
///
/// The sums of a commitment are those of `spent`, whatever the order of the runs.
pub fn merged(sides: &[(&str, &Commitments)], spent: &SpentTogether) -> Option<Value> {
    let mut all: Option<Commitments> = None;
    for (name, side) in sides {
        let Some(initial) = side.to_initial() else { continue };
        match &mut all {
            None => all = Some(Commitments::at_start(KERNEL_VERSION, Some(&initial), None)),
            Some(all) => all.absorb(&initial, name, 0),
        }
    }
    let mut all = all?;
    let sums =
        all.all().iter().filter_map(|one| Some((Arc::clone(&one.id), spent.0.get(&identity(one))?.clone())));
    let sums: Vec<_> = sums.collect();
    all.spent.extend(sums);
    all.to_initial()
}

/// The amounts that the histories of several runs spent together, by commitment: each record counts once.
#[derive(Debug, Clone, Default)]
pub struct SpentTogether(BTreeMap<String, Vec<Value>>);

impl SpentTogether {
    /// Adds what a part of a history spent: the sums at its end, without those at its begin.
    pub fn add(&mut self, end: &Commitments, begin: Option<&Commitments>) {
        let known = |one: &Commitment| {
            let same = begin?.all().iter().find(|other| identity(other) == identity(one))?;
            begin?.spent.get(&same.id).cloned()
        };
        for one in end.all() {
            let Some(sums) = end.spent.get(&one.id) else { continue };
            let grown = spent::grown(sums, &known(one).unwrap_or_default());
            spent::add(self.0.entry(identity(one)).or_default(), &grown);
        }
    }
}

/// The text that two runs have in common of one commitment: its owner and how it was written.
fn identity(one: &Commitment) -> String {
    let owner = if one.is_imported { CommitmentOwner::Parent } else { one.writer() };
    format!("{owner:?} {}", one.written)
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

/// The author of an item of a kept form, with the name.
fn writer(item: &Value) -> Option<CommitmentOwner> {
    let author = item.get("author")?.as_str()?.parse().ok()?;
    Some(CommitmentOwner::of(author, form::text(item, "by")))
}

impl Commitments {
    /// Takes over the items and edges of an initial form of another run, with their authors, under the tick.
    pub(super) fn absorb(&mut self, initial: &Value, run: &str, tick: u64) {
        self.learn(initial.get(NAMES).cloned());
        let spent = spent::sums_of(initial.get(spent::SPENT));
        let mut names: BTreeMap<Arc<str>, Held> = BTreeMap::new();
        let atoms = initial.get(ATOMS).and_then(Value::as_object).into_iter().flat_map(Object::iter);
        for (held_as, atom) in atoms {
            names.extend(Some(Arc::clone(held_as)).zip(self.absorb_atom(atom, run, tick)));
        }
        for item in list(initial, ITEMS) {
            let Some(one) = read_item(&with_tick(item, tick), (&self.scope(), self.now())) else { continue };
            let (held_as, sums) = (Arc::clone(&one.id), spent.get(&one.id).cloned());
            let held = self.absorb_commitment(one, run, tick);
            if let Some((place, sums)) = held.new.clone().zip(sums) {
                self.spent.insert(place, sums);
            }
            names.insert(held_as, held);
        }
        let known: BTreeSet<String> = self.edges().map(|edge| edge.key()).collect();
        for edge in list(initial, EDGES).filter_map(|edge| read_edge(&with_tick(edge, tick))) {
            let found = [&edge.from, &edge.to].map(|id| names.get(id).and_then(|held| self.found(held)));
            let [Some(from), Some(to)] = found else { continue };
            let edge = CommitmentEdge { from, to, ..edge };
            if !known.contains(&edge.key()) {
                self.push_edge(edge);
            }
        }
    }

    fn absorb_atom(&mut self, atom: &Value, run: &str, tick: u64) -> Option<Held> {
        let (inner, owner) = (atom.get("atom")?, writer(atom)?);
        let id = form::text(inner, "id")?;
        let is_same = |all: &Commitments, held: &str| {
            all.atoms.get(held).is_some_and(|held| held.get("atom") == Some(inner))
        };
        let new = self.place_of(&id, &owner, run, is_same);
        if let Some(place) = &new {
            let mut atom = with_tick(atom, tick).as_object().cloned().unwrap_or_default();
            atom.remove(HELD_AS);
            self.hold_atom(place, Value::Object(atom));
        }
        Some(Held { id, owner, new })
    }

    fn absorb_commitment(&mut self, mut one: Commitment, run: &str, tick: u64) -> Held {
        let id: Arc<str> = one.written_id().into();
        let owner = if one.is_imported { CommitmentOwner::Parent } else { one.writer() };
        let is_same =
            |all: &Commitments, held: &str| all.get(held).is_some_and(|held| held.written == one.written);
        let new = self.place_of(&id, &owner, run, is_same);
        match &new {
            Some(place) => {
                one.id = Arc::clone(place);
                self.insert(one);
            }
            // A merged run has what became of it in either; a parent goes by its own lines.
            None if tick == 0 => {
                if let Some(held) = self.held_by(&id, &owner) {
                    self.change_one(&held, |ours| {
                        ours.closed = ours.closed.take().or(one.closed);
                        ours.adopted = ours.adopted.take().or(one.adopted);
                        ours.stale_by = ours.stale_by.take().or(one.stale_by);
                    });
                }
            }
            None => {}
        }
        Held { id, owner, new }
    }

    /// The id for an item of another run; `None` if it is here already.
    fn place_of(
        &mut self,
        id: &str,
        owner: &CommitmentOwner,
        run: &str,
        is_same: impl Fn(&Commitments, &str) -> bool,
    ) -> Option<Arc<str>> {
        match self.held_by(id, owner) {
            Some(held) if is_same(self, &held) => None,
            None => self.place_for(id, owner),
            Some(_) => {
                // A run that is named like an owner makes no address.
                let of_run = format!("{id}@{run}");
                let of_run =
                    if split_address(&of_run).is_some() { format!("{id}@run {run}") } else { of_run };
                (!self.has(&of_run)).then(|| of_run.into())
            }
        }
    }

    /// The id under which an item of another run is held here by now.
    fn found(&self, held: &Held) -> Option<Arc<str>> {
        let of_run = held.new.as_ref().filter(|id| self.has(id) && !is_plain_or_address(id, held));
        of_run.cloned().or_else(|| self.held_by(&held.id, &held.owner))
    }
}

/// An item of another run: the id as it was written, the author, and the id that it got here.
struct Held {
    id: Arc<str>,
    owner: CommitmentOwner,
    new: Option<Arc<str>>,
}

/// Whether an id is one that the author of an item gives it, and not one with the name of a run.
fn is_plain_or_address(id: &Arc<str>, held: &Held) -> bool {
    *id == held.id || *id == address(&held.id, &held.owner)
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
