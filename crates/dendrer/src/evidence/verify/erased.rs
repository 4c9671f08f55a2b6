//! Values that are not here: erased where an `erase` record of the log names them, else withheld.
//!
//! Rule: a value that is in a bundle although the log names it as erased is a fault; in a store it is noted, because its
//! destruction may be under way. Test
//! `a_value_that_was_erased_and_is_here_is_tampered`.

use std::collections::{BTreeMap, BTreeSet};

use dendrer_object::record::{Kind, Record};
use dendrer_object::{Digest, Pointer};

/// The erasures that the records of a log name, and the values that are not here.
#[derive(Debug, Default)]
pub(super) struct Erasures {
    /// The fields that were erased, by the id of their record.
    pub(super) named: BTreeMap<Digest, BTreeSet<Pointer>>,
    pub(super) closed: Vec<ClosedFields>,
}

/// The fields of a record whose values are not here.
#[derive(Debug)]
pub(super) struct ClosedFields {
    /// The place of its line among the parts that were not checked.
    pub(super) line: usize,
    pub(super) place: String,
    pub(super) id: Digest,
    pub(super) fields: Vec<Pointer>,
}

impl Erasures {
    /// Takes the fields that an `erase` record names.
    pub(super) fn take(&mut self, record: &Record) {
        if record.header().kind != Kind::Erase {
            return;
        }
        let Some(listed) = record.body().value("/erased") else { return };
        for entry in listed.as_array().into_iter().flat_map(|list| list.iter()) {
            let text = |name: &str| entry.get(name)?.as_str().map(str::to_owned);
            let id = text("record").and_then(|id| id.parse::<Digest>().ok());
            let place = text("place").and_then(|place| place.parse::<Pointer>().ok());
            if let (Some(id), Some(place)) = (id, place) {
                self.named.entry(id).or_default().insert(place);
            }
        }
    }

    /// Whether an `erase` record names a field.
    fn names(&self, id: &Digest, field: &Pointer) -> bool {
        self.named.get(id).is_some_and(|places| places.contains(field))
    }

    /// Names fields with the reason why they are not here.
    pub(super) fn words(&self, closed: &ClosedFields) -> String {
        let (erased, withheld): (Vec<_>, Vec<_>) =
            closed.fields.iter().partition(|field| self.names(&closed.id, field));
        let part = |fields: &[&Pointer], why: &str| {
            let names: Vec<String> = fields.iter().map(|field| field.dotted()).collect();
            (!names.is_empty()).then(|| format!("{} ({why})", names.join(", ")))
        };
        let parts = [part(&erased, "erased"), part(&withheld, "withheld")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{}: {}", closed.place, parts.join(", "))
    }
}
