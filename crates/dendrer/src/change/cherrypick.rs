//! Cherry-pick: a transition of one run, imported into another that has what it was decided on (dendrer paper 4.4).
//!
//! The order of the check is fixed: contract and version, the hash of the source made again from its state, each required
//! field of the target. There is no way around it. A transition that passes goes through the door of the target like any other.

use dendrer_kernel::commitment::{self, Commitments};
use dendrer_kernel::contract::{Checked, ImportRefused};
use dendrer_kernel::pack::Pack;
use dendrer_kernel::replay;
use dendrer_kernel::step::{Pick, Picked, RunState};
use dendrer_object::record::{LINKS_MAX, Record, Rel};
use dendrer_object::{Digest, Intent, ORIGIN, RunName, TypeName, Value};
use dendrer_store::Shared;
use dendrer_store::prelude::*;

use crate::change::history::origins;
use crate::change::reapply::check_basis;
use crate::error::Error;
use crate::record::recorder::{Environment, Recorder};
use crate::repo::Repo;
use crate::run::casebook_name;
use crate::run::pack;
use crate::run::trace::Trace;

pub mod question;

pub use crate::change::history::OwnedRecord;

/// A transition that may be imported, and what it was decided on.
#[derive(Debug)]
pub struct Candidate {
    run: RunName,
    tick: u64,
    record: Record,
    intent: Intent,
    before: Value,
    /// The commitments behind it.
    held: Commitments,
    /// The pack in force for it, with its extensions.
    pack: Option<Pack>,
}

/// How a transition is imported.
#[derive(Debug, Clone, Copy, Default)]
pub struct PickTerms {
    /// Asks the door and writes nothing.
    pub dry: bool,
    /// Takes in once more what is in the history of the target already.
    pub again: bool,
}

/// The outcome of an import.
#[derive(Debug, Clone)]
pub enum Imported {
    /// It is in the history of the target already, and nothing was done.
    Already(OwnedRecord),
    /// It was refused: the refusal is beside the target, if anything is written.
    Refused(Record),
    /// It is in the target, behind its marker.
    Done {
        /// The marker.
        marker: Record,
        /// The transition.
        record: Record,
    },
}

impl Candidate {
    /// Reads a transition with the state before it and the contracts in force there.
    pub fn read(source: &Trace, tick: u64) -> Result<Candidate, Error> {
        casebook_name::refuse_source(source)?;
        let no = |why: &str| Error::NotImportable { run: source.name().clone(), tick, why: why.to_owned() };
        if tick == 0 {
            return Err(no("tick 0 is the beginning of the run, and no transition"));
        }
        let record = source.record(tick)?;
        let segment = source.segment(tick);
        let takes_delta = pack::reducer_of_segment(source, segment)?.takes_delta();
        let Some(intent) = replay::intent(&record, takes_delta)? else {
            let type_name = record.header().type_name.as_ref().map_or("", TypeName::as_str);
            return Err(no(&format!("{type_name} was written by the kernel about that run")));
        };
        // Its basis is in the run in which it was decided: a chain of imports would lead around every rule.
        if let Some(link) = record.header().links.iter().find(|link| link.rel == Rel::PickedFrom) {
            let from = link.hash.short();
            return Err(no(&format!("it was imported itself, from the record {from}; import it from there")));
        }
        // The marker's link and that of the agent's own branch come to those of the source.
        if intent.links.len() + 2 > LINKS_MAX {
            return Err(no("it has as many links as a record may have"));
        }
        let before = source.state(tick - 1)?;
        let pack = pack::in_force(source, tick, &before)?;
        let held = source.at(tick)?.commitments;
        Ok(Candidate { run: source.name().clone(), tick, record, intent, before, held, pack })
    }

    /// Checks it against a target, given where that stands.
    pub fn check(&self, target: &Trace, at: u64) -> Result<Pick, Error> {
        let head = target.head(at)?;
        let ours = in_force_where_it_lands(target, &head)?;
        let source = (&self.before, self.pack.as_ref());
        let mut checked: Checked = check_basis(&self.record, &self.intent, source, (&head, ours.as_ref()));
        if checked.refused.is_none() {
            let counters = || head.counters().to_value();
            let dead = head.commitments().dead_support(&self.intent, &self.held, head.state(), &counters);
            checked.refused = (!dead.is_empty()).then_some(ImportRefused::DeadSupport(dead));
        }
        let (run, tick, id) = (self.run.clone(), self.tick, self.record.id());
        let mut intent = self.intent.clone();
        // A length counts from the time at which it was first on record.
        if commitment::has_length(&intent) {
            intent = intent.of_time(self.record.header().ts);
        }
        Ok(Pick { run, tick, id, intent, reason: None, checked })
    }
}

/// The pack in force for what is imported onto a head: it lands behind its marker.
fn in_force_where_it_lands(target: &Trace, head: &RunState) -> Result<Option<Pack>, Error> {
    pack::in_force(target, head.tick() + 2, head.state())
}

impl Repo {
    /// Imports a transition that was checked against a run, or keeps its refusal.
    pub fn cherrypick(
        &self,
        target: &RunName,
        pick: &mut Pick,
        at: u64,
        how: PickTerms,
    ) -> Result<Imported, Error> {
        import(self.writer()?, target, pick, at, self.environment(), how)
    }
}

/// Imports what was checked, or puts its refusal on record, unless it is in the history of the target already. The reason of a refusal
/// is in `pick`. Fails with `Moved` if the target has moved on since: then it is to be checked again.
pub fn import(
    store: &Shared,
    target: &RunName,
    pick: &mut Pick,
    at: u64,
    surroundings: Box<dyn Environment>,
    how: PickTerms,
) -> Result<Imported, Error> {
    let predicates = {
        store.clone().refresh()?;
        let trace = Trace::open(store, target)?;
        let first = origin_of_pick(pick);
        let taken = if how.again { None } else { origins(&trace, trace.tip(), Some(first))?.remove(&first) };
        if let Some(taken) = taken {
            return Ok(Imported::Already(taken));
        }
        let head = trace.head(trace.tip())?;
        in_force_where_it_lands(&trace, &head)?.map(|pack| pack.predicates).unwrap_or_default()
    };
    let mut recorder = Recorder::resume_at(store, target, at, surroundings)?;
    let before = recorder.head().clone();
    let mut imported = None;
    if pick.checked.refused.is_none() {
        let here = |error: Error| error.stopped_at(&pick.run, pick.tick);
        match recorder.pick(pick).map_err(here)? {
            Picked::Refused(reason) => {
                let (code, message, sealed) = (reason.code(), reason.to_string(), reason.sealed());
                pick.checked.refused = Some(ImportRefused::AtTheDoor { code, message, sealed });
            }
            Picked::Violates(broken) => pick.checked.refused = Some(ImportRefused::Violates(broken)),
            Picked::Imported { marker, record } => {
                // A predicate of the pack is part of the contract.
                let type_name = &pick.intent.type_name;
                let broken = pack::newly_broken(&predicates, type_name, &before, recorder.head());
                let broken = broken.map_err(here)?;
                match broken.is_empty() {
                    true => imported = Some(Imported::Done { marker, record }),
                    false => {
                        recorder.discard();
                        pick.checked.refused = Some(ImportRefused::Violates(broken));
                    }
                }
            }
        }
    }
    let imported = match (imported, &pick.checked.refused) {
        (Some(imported), _) => imported,
        (None, Some(refused)) => Imported::Refused(recorder.refuse_import(pick, refused)?),
        (None, None) => unreachable!("what is not imported was refused"),
    };
    match how.dry {
        true => drop(recorder.discard()),
        false => drop(recorder.commit()?),
    }
    Ok(imported)
}

/// The record that a picked transition repeats.
fn origin_of_pick(pick: &Pick) -> Digest {
    let origin = pick.intent.member(ORIGIN).and_then(|origin| origin.as_str()?.parse().ok());
    origin.unwrap_or(pick.id)
}
