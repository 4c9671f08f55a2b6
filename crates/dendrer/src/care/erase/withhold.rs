//! Values that are left out of a bundle: the search of `erase`, over the records of the bundle.
//!
//! The whole log is walked, since the value may come into a run of the bundle by way of one that is not in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use dendrer_object::record::{Kind, Record};
use dendrer_object::{Code, Pointer, RunName};
use dendrer_store::prelude::*;

use super::place::{Named, Unmeant};
use super::{EraseError, ErasePlace, Goal, Search, named};
use crate::address::RecordAt;
use crate::error::Error;
use crate::run::trace::read;

/// The values that a bundle is made without.
#[derive(Debug, Clone, Default)]
pub struct WithholdTerms {
    /// Their places: `PLACE`, `TICK:PLACE` or `RUN@TICK:PLACE`. Without a tick, those of every record of the bundle.
    pub places: Vec<String>,
    /// Open places that are withheld as well, in the same spelling.
    pub also: Vec<String>,
    /// Open places that stay, in the same spelling.
    pub although: Vec<String>,
    /// Whether copies before the tick and in unrelated runs are withheld as well.
    pub everywhere: bool,
}

/// The fields that a bundle is made without.
#[derive(Debug, Clone, Default)]
pub struct Withheld {
    /// The fields that are left out, in order of the log.
    pub fields: Vec<ErasePlace>,
    /// The fields that stay although they may contain the value, in order of the log.
    pub although: Vec<ErasePlace>,
    /// The names of places that were to stay and go with the value.
    pub anyway: Vec<String>,
}

/// Why it is not known what to leave out.
#[derive(Debug, thiserror::Error)]
pub enum WithholdError {
    /// No record has a value at a place that is to be withheld.
    #[error("no record has a field at or below {}", .place.written())]
    NothingThere {
        /// The place.
        place: Pointer,
        /// A field around one of the places, which can be withheld as a whole.
        around: Option<Pointer>,
    },
    /// As for an erasure.
    #[error(transparent)]
    Search(#[from] EraseError),
}

impl Withheld {
    /// The fields by the position of their record.
    pub fn by_position(&self) -> BTreeMap<u64, Vec<Pointer>> {
        let mut by: BTreeMap<u64, Vec<Pointer>> = BTreeMap::new();
        for field in &self.fields {
            by.entry(field.position).or_default().push(field.place.clone());
        }
        by
    }

    /// The fields that stay, as the header of the bundle lists them: `TICK:PLACE`, with the run where it is not the one of the bundle.
    pub fn listed(&self, runs: &[RunName]) -> Vec<String> {
        let mut listed: Vec<String> = Vec::new();
        for place in &self.although {
            let text = match (place.at, runs) {
                (Some(at), [run]) if place.run.as_ref() == Some(run) => {
                    format!("{at}:{}", place.place.dotted())
                }
                _ => place.address(),
            };
            if !listed.contains(&text) {
                listed.push(text);
            }
        }
        listed
    }
}

/// Finds what a bundle of the records at some positions is made without. Reads the whole log.
pub(in crate::care) fn find(
    store: &dyn Store,
    positions: &BTreeSet<u64>,
    terms: &WithholdTerms,
) -> Result<Withheld, WithholdError> {
    let (goals, begins) = goals(store, positions, &named(&terms.places)?)?;
    let search = Search {
        goals,
        begins,
        also: named(&terms.also)?,
        although: named(&terms.although)?,
        everywhere: terms.everywhere,
        scope: Some(positions.clone()),
    };
    let found = search.find(store, store.tree().size)?;
    Ok(Withheld { fields: found.erased, although: found.although, anyway: found.anyway })
}

/// Finds the records that have the values, and the beginnings of all runs.
fn goals(
    store: &dyn Store,
    positions: &BTreeSet<u64>,
    places: &[Named],
) -> Result<(Vec<Goal>, Vec<Record>), WithholdError> {
    let mut refusals: HashMap<RunName, u64> = HashMap::new();
    let (mut goals, mut begins): (Vec<Goal>, Vec<Record>) = (Vec::new(), Vec::new());
    // Of each place: what it means of contents, else of states.
    let mut of_content: Vec<bool> = vec![false; places.len()];
    let mut of_state: Vec<Vec<Goal>> = places.iter().map(|_| Vec::new()).collect();
    let mut around = None;
    for position in positions {
        let record = read(store, *position).map_err(EraseError::from)?;
        let at = place_of(&record, &mut refusals);
        for (number, named) in places.iter().enumerate() {
            let goal = |target| Goal { record: record.clone(), position: *position, target };
            match named.target(&record, at, false) {
                Ok(target) => {
                    of_content[number] = true;
                    goals.push(goal(target));
                    continue;
                }
                // An erased value is in no bundle.
                Err(Unmeant::Erased) => of_content[number] = true,
                Err(_) => {}
            }
            if let Ok(target) = named.target(&record, at, true) {
                of_state[number].push(goal(target));
            }
            let mut fields = record.body().fields().iter().map(|field| &field.pointer);
            around = around.take().or_else(|| fields.find(|field| field.contains(named.place())).cloned());
        }
        if record.header().kind == Kind::Run {
            begins.push(record);
        }
    }
    // From a record that is named with its run, a value may have come into the bundle.
    let is_missing =
        |number: &usize| places[*number].is_of_run() && !of_content[*number] && of_state[*number].is_empty();
    let missing: Vec<usize> = (0..places.len()).filter(is_missing).collect();
    if !missing.is_empty() {
        let mut refusals = HashMap::new();
        let scanned = store.scan(0..store.tree().size, &mut |position, record| {
            let at = place_of(&record, &mut refusals);
            for number in &missing {
                if let Ok(target) = places[*number].target(&record, at, true) {
                    of_content[*number] = true;
                    goals.push(Goal { record: record.clone(), position, target });
                }
            }
            begins.extend((record.header().kind == Kind::Run).then_some(record));
            ControlFlow::Continue(())
        });
        scanned.map_err(Error::from)?;
    }
    for ((named, is_found), states) in places.iter().zip(of_content).zip(of_state) {
        if !is_found && states.is_empty() {
            return Err(WithholdError::NothingThere { place: named.place().clone(), around });
        }
        goals.extend(states.into_iter().filter(|_| !is_found));
    }
    Ok((goals, begins))
}

/// The place of a record in its run; refusals are counted.
fn place_of(record: &Record, refusals: &mut HashMap<RunName, u64>) -> Option<RecordAt> {
    let header = record.header();
    if let (Kind::Refusal, Some(run)) = (header.kind, &header.run) {
        let number = refusals.entry(run.clone()).or_default();
        *number += 1;
        return Some(RecordAt::Refusal(*number));
    }
    header.tick.map(RecordAt::Tick)
}

impl WithholdError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            WithholdError::NothingThere { .. } => Code::E0106,
            WithholdError::Search(error) => error.code(),
        }
    }
}

impl From<Error> for WithholdError {
    fn from(error: Error) -> WithholdError {
        WithholdError::Search(error.into())
    }
}
