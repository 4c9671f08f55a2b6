//! The search for all that goes with a value: walks over the log, until no field that the caller has to name is left out.
//!
//! The first walk takes an open field to stay. If there is one, a second takes all of them to go: what may follow from them is asked for at
//! once, and not in the next answer.
//!
//! Rule: who names each field of one answer is not asked again; test `all_open_places_are_listed_at_once`.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use dendrer_object::record::Record;
use dendrer_store::Store;

use super::lineage::Lineage;
use super::needles::Needles;
use super::place::{Named, Target};
use super::{EraseError, ErasePlace};

/// A value that is looked for: the record that has it, and what it is there.
#[derive(Debug)]
pub(super) struct Goal {
    pub(super) record: Record,
    pub(super) position: u64,
    pub(super) target: Target,
}

/// The terms of a search.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The values.
    pub(super) goals: Vec<Goal>,
    /// The `run` records of the runs that have them.
    pub(super) begins: Vec<Record>,
    /// Places that are erased as well.
    pub(super) also: Vec<Named>,
    /// Places that stay.
    pub(super) although: Vec<Named>,
    /// Whether copies are erased wherever they are.
    pub(super) everywhere: bool,
    /// The positions of the records that are looked at; the whole log if it is missing.
    pub(super) scope: Option<BTreeSet<u64>>,
}

/// The open fields that a walk takes to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assumed {
    /// None of them.
    Nothing,
    /// Those that the caller did not name.
    Open,
    /// Those that the caller lets stay, too.
    All,
}

/// The fields that a walk found.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// They are erased.
    pub(super) erased: Vec<ErasePlace>,
    /// They stay, each under the names that the caller gave.
    pub(super) although: Vec<(ErasePlace, Vec<String>)>,
    /// The caller named none of them.
    pub(super) open: Vec<ErasePlace>,
    /// The places of the vault with the exact bytes of an erased field, and the field that names each.
    pub(super) exact: Vec<(ErasePlace, Arc<str>)>,
    /// The names of fields outside of the bundle that stay.
    pub(super) apart: BTreeSet<String>,
    /// The names that name a field.
    pub(super) used: BTreeSet<String>,
    /// Those of them that name one that is erased.
    pub(super) gone: BTreeSet<String>,
}

/// The fields of a search.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) erased: Vec<ErasePlace>,
    pub(super) although: Vec<ErasePlace>,
    pub(super) exact: Vec<(ErasePlace, Arc<str>)>,
    /// The names with which the caller lets fields stay that all go with the value.
    pub(super) anyway: Vec<String>,
}

impl Fields {
    /// Sorts the fields that are erased, and leaves them out of those that stay.
    pub(super) fn in_order(mut self) -> Fields {
        // Fields at the beginning of a run were found after it.
        self.erased.sort_by(|a, b| key(a).cmp(&key(b)));
        self.erased.dedup_by(|a, b| key(a) == key(b));
        let gone: HashSet<_> = self.erased.iter().map(key).collect();
        self.although.retain(|(place, _)| !gone.contains(&key(place)));
        self
    }

    /// The open fields of this walk and of another, in order of the log, without those that go whatever the caller says.
    fn left_open(&self, others: &[ErasePlace]) -> Vec<ErasePlace> {
        let gone: HashSet<_> = self.erased.iter().map(key).collect();
        let open = self.open.iter().chain(others).filter(|place| !gone.contains(&key(place)));
        let mut open: Vec<ErasePlace> = open.cloned().collect();
        open.sort_by(|a, b| key(a).cmp(&key(b)));
        open.dedup_by(|a, b| key(a) == key(b));
        open
    }
}

fn key(place: &ErasePlace) -> (u64, &str) {
    (place.position, place.place.as_str())
}

impl Search {
    /// Whether a text contains one of the values, or a part of it.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let text = dendrer_object::json::to_string(&dendrer_object::Value::from(text));
        Needles::of(self.goals.iter().flat_map(|goal| &goal.target.values)).find(&text).is_some()
    }

    /// Returns the fields of a log up to a size, or those that the caller has to name first.
    pub(super) fn find(&self, store: &dyn Store, size: u64) -> Result<Found, EraseError> {
        let walk = |assumed: Assumed| Lineage::new(self, assumed).read(store, size);
        let fields = walk(Assumed::Nothing)?;
        if !fields.left_open(&[]).is_empty() {
            return Err(EraseError::Open { open: fields.left_open(&walk(Assumed::Open)?.open) });
        }
        let is_idle = |named: &&Named| !fields.used.contains(&named.text);
        let idle: Vec<&Named> = self.also.iter().chain(&self.although).filter(is_idle).collect();
        if !idle.is_empty() {
            // An answer to what would be asked if another place went.
            let used = walk(Assumed::All)?.used;
            if let Some(named) = idle.iter().find(|named| !used.contains(&named.text)) {
                return Err(EraseError::Idle { text: named.text.clone() });
            }
        }
        let stay = fields.although.iter().flat_map(|(_, names)| names);
        let stay: BTreeSet<&String> = stay.chain(&fields.apart).collect();
        let is_gone = |named: &&Named| fields.gone.contains(&named.text) && !stay.contains(&named.text);
        let anyway = self.although.iter().filter(is_gone).map(|named| named.text.clone()).collect();
        let although = fields.although.into_iter().map(|(place, _)| place).collect();
        Ok(Found { erased: fields.erased, although, exact: fields.exact, anyway })
    }
}
