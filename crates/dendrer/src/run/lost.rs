//! Records of a run that are missing or may be: by the map of the bundle that is read, or on record in a foreign run that was
//! imported from such a bundle.

use dendrer_object::record::Kind;
use dendrer_object::{Object, Value};
use dendrer_store::{RunSummary, Store};

use crate::error::Error;

dendrer_object::words! {
    /// The reason why records of a run may be missing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PartialReason {
        /// Entries are left out, and no map counts those of the run.
        NoMap = "no_map",
        /// Records of the run are newer than what counts them.
        AfterMap = "after_map",
        /// Fewer records are here than the map counts.
        Missing = "missing",
        /// A fork is here without the refusals of its parent.
        ParentRefusals = "parent_refusals",
    }
}

/// How many records of a run are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MissingRecords {
    /// Transitions.
    pub transitions: u64,
    /// Refusals.
    pub refusals: u64,
    /// Records that close the run.
    pub ends: u64,
    /// Erasures.
    pub erasures: u64,
}

impl MissingRecords {
    /// The kinds in words, with the numbers.
    fn by_kind(self) -> [(&'static str, u64); 4] {
        let MissingRecords { transitions, refusals, ends, erasures } = self;
        [("transition", transitions), ("refusal", refusals), ("end", ends), ("erasure", erasures)]
    }

    fn words(self) -> Option<String> {
        let some = self.by_kind().into_iter().filter(|(_, count)| *count > 0);
        let words: Vec<String> = some
            .map(|(kind, count)| format!("{count} {kind}{}", if count == 1 { "" } else { "s" }))
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Counts the records of a run that are in a store.
    pub(crate) fn here(store: &dyn Store, run: &RunSummary) -> Result<MissingRecords, Error> {
        let (mut erasures, mut from) = (0, 0);
        loop {
            let batch = store.beside(&run.name, from, 1024)?;
            let Some((last, _)) = batch.last() else { break };
            from = last + 1;
            erasures += batch.iter().filter(|(_, kind)| *kind == Kind::Erase).count() as u64;
        }
        let (transitions, refusals) = (run.transitions, run.refusals);
        Ok(MissingRecords { transitions, refusals, ends: u64::from(run.ended), erasures })
    }

    fn zip(self, other: MissingRecords, with: fn(u64, u64) -> u64) -> MissingRecords {
        MissingRecords {
            transitions: with(self.transitions, other.transitions),
            refusals: with(self.refusals, other.refusals),
            ends: with(self.ends, other.ends),
            erasures: with(self.erasures, other.erasures),
        }
    }
}

/// The records that a run lacks, or may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The reason.
    pub why: PartialReason,
    /// How many records are missing; `None` if nothing counts them.
    pub missing: Option<MissingRecords>,
    /// Whether it is on record in the run itself, which was imported from a part.
    pub is_on_record: bool,
}

/// The member with the reason.
const WHY: &str = "why";

/// The member with the numbers of records that the run has by the map of its bundle.
const COUNTED: &str = "counted";

impl Lost {
    /// The reason why an answer does not hold for all of the run.
    pub fn words(&self) -> String {
        let missing = self.missing.and_then(MissingRecords::words);
        let what = match (self.why, missing) {
            (PartialReason::Missing, Some(missing)) => format!("{missing} missing"),
            (PartialReason::Missing, None) => "records of its log are missing".to_owned(),
            (PartialReason::ParentRefusals, missing) => {
                let missing = missing.unwrap_or_else(|| "refusals".to_owned());
                format!("without {missing} beside what it branched off from")
            }
            (PartialReason::NoMap, _) => "no map counts its records".to_owned(),
            (PartialReason::AfterMap, _) => "records after the newest map are not counted".to_owned(),
        };
        let place = if self.is_on_record { "what was imported of it is partial" } else { "it is partial" };
        format!("{place}: {what}")
    }

    /// Whether an answer up to a tick may depend on what is missing. The chain has no gaps, so transitions are missing after the
    /// last one alone; a refusal or an erasure has no such place.
    pub fn reaches(&self, is_tip: bool) -> bool {
        let is_beside = self.missing.is_some_and(|missing| missing.refusals + missing.erasures > 0);
        is_tip || is_beside
    }

    /// Returns what a foreign run has on record of it: the numbers are those that the run has when it is whole.
    pub(crate) fn to_value(self, store: &dyn Store, run: &RunSummary) -> Result<Value, Error> {
        let mut about = Object::default();
        about.set(WHY, Value::from(self.why.as_str()));
        if let Some(missing) = self.missing.filter(|missing| missing.words().is_some()) {
            let all = missing.zip(MissingRecords::here(store, run)?, |missing, here| missing + here);
            let of_parents = self.why == PartialReason::ParentRefusals;
            let all = if of_parents { missing } else { all };
            let counts = all.by_kind().map(|(kind, count)| (kind, Value::from(count)));
            about.set(COUNTED, Value::record(counts));
        }
        Ok(Value::Object(about))
    }

    /// Reads what is on record of a foreign run; `None` if all that was missing is here.
    pub(crate) fn read(value: &Value, store: &dyn Store, run: &RunSummary) -> Result<Option<Lost>, Error> {
        let Some(why) = value.get(WHY).and_then(Value::as_str).and_then(PartialReason::from_word) else {
            return Ok(None);
        };
        let counted = value.get(COUNTED).map(|counted| {
            let count = |name: &str| counted.get(name).and_then(Value::as_u64).unwrap_or(0);
            MissingRecords {
                transitions: count("transition"),
                refusals: count("refusal"),
                ends: count("end"),
                erasures: count("erasure"),
            }
        });
        let missing = match (why, counted) {
            (PartialReason::Missing, Some(counted)) => {
                let missing = counted.zip(MissingRecords::here(store, run)?, u64::saturating_sub);
                if missing == MissingRecords::default() {
                    return Ok(None);
                }
                Some(missing)
            }
            (_, counted) => counted,
        };
        Ok(Some(Lost { why, missing, is_on_record: true }))
    }
}
