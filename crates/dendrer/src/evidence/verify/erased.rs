//! Values that are not here: erased where an `erase` record of the log names them, else withheld.
//!
//! Rule: a value that is in a bundle although the log says that it was erased is a fault; in a store it is noted, because its
//! destruction may be under way. Test
//! `a_value_that_was_erased_and_is_here_is_tampered`.

use std::collections::{BTreeMap, BTreeSet};

use dendrer_object::record::{Entry, Kind, Record};
use dendrer_object::{Code, Digest, Pointer};

use super::Checker;
use super::facts::VerifyNote;

/// What the records of a log say of erased values, and the values that are not here.
#[derive(Debug, Default)]
pub(super) struct Erasures {
    /// The fields that were erased, by the id of their record.
    named: BTreeMap<Digest, BTreeSet<Pointer>>,
    closed: Vec<ClosedFields>,
}

/// The fields of a record whose values are not here.
#[derive(Debug)]
struct ClosedFields {
    /// The place of its line among the parts that were not checked.
    line: usize,
    place: String,
    id: Digest,
    fields: Vec<Pointer>,
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
    fn words(&self, closed: &ClosedFields) -> String {
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

impl Checker<'_> {
    /// Takes the `erase` record at a position that is not otherwise looked at: a value of another run may be in it.
    pub(super) fn take_erasure(&mut self, position: u64) {
        // What cannot be read is a finding where its own run is asked about.
        if let Ok(Some(record)) = self.store.get(position) {
            self.erasures.take(&record);
        }
    }

    /// Keeps the fields of a record that are not here. Why is known at the end of the log.
    pub(super) fn take_values(&mut self, place: String, entry: &Entry, record: &Record) {
        self.erasures.take(record);
        let closed = record.body().fields().iter().filter(|field| record.body().text(field).is_none());
        let fields: Vec<Pointer> = closed.map(|field| field.pointer.clone()).collect();
        if fields.is_empty() {
            return;
        }
        self.closed += fields.len() as u64;
        if let (Some(run), Kind::Run | Kind::Transition) = (&entry.run, entry.kind) {
            self.closed_from.entry(run.clone()).or_insert(entry.tick.unwrap_or(0));
        }
        let line = self.not_checked.len();
        self.add_unreadable(place.clone());
        self.erasures.closed.push(ClosedFields { line, place, id: record.id(), fields });
    }

    /// Looks for values that are here although they were erased, and says of the others why they are not.
    pub(super) fn judge_erasures(&mut self) {
        let erasures = std::mem::take(&mut self.erasures);
        for closed in &erasures.closed {
            self.not_checked[closed.line] = erasures.words(closed);
        }
        let mut open = Vec::new();
        for (id, places) in &erasures.named {
            let Ok(Some(position)) = self.store.find(id) else { continue };
            // A record that cannot be read was reported.
            let Ok(Some(record)) = self.store.get(position) else { continue };
            if !self.wanted(record.header().run.as_ref()) {
                continue;
            }
            let body = record.body();
            let fields = body.fields().iter().filter(|field| places.contains(&field.pointer));
            let here = fields.filter(|field| body.text(field).is_some());
            open.extend(here.map(|field| (position, record.log_entry(), field.pointer.dotted())));
        }
        open.sort_by_key(|(position, ..)| *position);
        for (position, entry, field) in open {
            if !self.is_bundle {
                // A reader may come between the record of an erasure and the destruction of the value.
                self.notes.list.push(VerifyNote::not_erased(position, entry.run.clone(), field));
                continue;
            }
            let message = format!("{field} is here although the log says that it was erased");
            self.found(Code::E0317, Some((position, &entry)), None, message);
        }
    }
}
