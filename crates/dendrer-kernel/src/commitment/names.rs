//! Ids and addresses: the item that a name means, and the id under which an item is held.
//!
//! The item of the highest rank is held as `ID`, each other one as `ID@OWNER`. An item of a higher rank that comes later takes the
//! plain id; the other one, with its edges, is kept under its address.

use std::sync::Arc;

use dendrer_object::Value;

use super::owner::{address, split_address};
use super::projection::HELD_AS;
use super::{Commitment, CommitmentOwner, Commitments};

impl Commitments {
    /// Returns the id under which the item is held that a name means: `ID` or an address like `ID@agent:dev`.
    pub fn find(&self, name: &str) -> Option<Arc<str>> {
        self.find_for(name, None)
    }

    /// As [`Commitments::find`], for a name in a line: of two items of one rank it means that of the writer.
    pub(super) fn find_for(&self, name: &str, writer: Option<&CommitmentOwner>) -> Option<Arc<str>> {
        if !self.is_since(2) {
            return self.has(name).then(|| name.into());
        }
        if let Some(own) = writer.map(|writer| address(name, writer))
            && self.has(&own)
            && self
                .writer_of(name)
                .is_none_or(|other| Some(other.rank()) == writer.map(CommitmentOwner::rank))
        {
            return Some(own);
        }
        if self.has(name) {
            return Some(name.into());
        }
        let (id, owner) = split_address(name)?;
        (self.writer_of(id).as_ref() == Some(&owner)).then(|| id.into())
    }

    /// The commitment that a name means.
    pub fn named(&self, name: &str) -> Option<&Arc<Commitment>> {
        self.get(&self.find(name)?)
    }

    /// Who an item belongs to as far as its id goes: its author, and the parent for what a contract imported.
    fn writer_of(&self, id: &str) -> Option<CommitmentOwner> {
        match self.get(id) {
            Some(one) if one.is_imported => Some(CommitmentOwner::Parent),
            Some(one) => Some(one.writer()),
            None => self.atom(id).map(|atom| atom.writer),
        }
    }

    /// The item that an owner has under an id, as it is held.
    pub(super) fn held_by(&self, id: &str, owner: &CommitmentOwner) -> Option<Arc<str>> {
        let own = address(id, owner);
        if self.has(&own) {
            return Some(own);
        }
        (self.writer_of(id).as_ref() == Some(owner)).then(|| id.into())
    }

    /// The tick of an item.
    pub(super) fn tick_of(&self, id: &str) -> u64 {
        self.get(id).map(|one| one.tick).or_else(|| self.atom(id).map(|atom| atom.tick)).unwrap_or(0)
    }

    /// Returns the id under which a new item of an owner is held; `None` if the owner has an item with this id already. An item of
    /// a lower rank that has the plain id gives it up.
    pub(super) fn place_for(&mut self, id: &str, owner: &CommitmentOwner) -> Option<Arc<str>> {
        if self.held_by(id, owner).is_some() {
            return None;
        }
        let Some(holder) = self.writer_of(id) else { return Some(id.into()) };
        let moved = address(id, &holder);
        if owner.rank() > holder.rank() && !self.has(&moved) {
            self.rename(id, &moved);
            return Some(id.into());
        }
        Some(address(id, owner))
    }

    /// Holds an item under another id, in its edges too.
    fn rename(&mut self, old: &str, new: &Arc<str>) {
        if let Some(Value::Object(mut atom)) = self.atoms.remove(old) {
            atom.set(HELD_AS, Value::String(Arc::clone(new)));
            self.atoms.set(new, Value::Object(atom));
        }
        self.rename_commitment(old, new);
        let grounded: Vec<Arc<str>> = self.edges_from(old).map(|edge| edge.to).collect();
        for id in grounded {
            self.change_one(&id, |one| {
                if one.grounded_by.as_deref() == Some(old) {
                    one.grounded_by = Some(Arc::clone(new));
                }
            });
        }
        for end in ["from", "to"] {
            let index = if end == "from" { &mut self.from } else { &mut self.to };
            let Some(numbers) = index.remove(old) else { continue };
            let each: Vec<usize> = numbers
                .as_array()
                .into_iter()
                .flat_map(|numbers| numbers.iter())
                .filter_map(|number| usize::try_from(number.as_u64()?).ok())
                .collect();
            index.set(new, numbers);
            for number in each {
                if let Some(Value::Object(edge)) = self.edges.get(number) {
                    let mut edge = edge.clone();
                    edge.set(end, Value::String(Arc::clone(new)));
                    self.edges.set(number, Value::Object(edge));
                }
            }
        }
    }
}
