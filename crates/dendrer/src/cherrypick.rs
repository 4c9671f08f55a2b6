//! Cherry-pick: a transition of one run, imported into another that has what it was decided on (dendrer paper 4.4).
//!
//! The order of the check is fixed: contract and version, the hash of the source made again from its state, each required
//! field of the target. There is no way around it. What passes goes through the door of the target like anything else.

use dendrer_kernel::contract::{CONTEXT, Checked, Contracts, Import, Side, check_import};
use dendrer_kernel::replay;
use dendrer_kernel::step::{Pick, Picked};
use dendrer_object::record::{Author, Record};
use dendrer_object::{RunName, TypeName};
use dendrer_store::Store;

use crate::error::Error;
use crate::pack;
use crate::recorder::{Recorder, Surroundings};
use crate::trace::{Moment, Trace};

/// A transition that may be imported, and what it was decided on.
#[derive(Debug, Clone)]
pub struct Candidate {
    run: RunName,
    tick: u64,
    record: Record,
    takes_delta: bool,
    before: Moment,
    contracts: Contracts,
}

/// What became of an import.
#[derive(Debug, Clone)]
pub enum Imported {
    /// The check refused it: the refusal is beside the target.
    Refused(Record),
    /// The check found nothing against it, and the door did.
    AtTheDoor(dendrer_kernel::step::Refused),
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
    pub fn read(source: &Trace<'_>, tick: u64) -> Result<Candidate, Error> {
        let no = |why: &str| Error::NotImportable { run: source.name().clone(), tick, why: why.to_owned() };
        if tick == 0 {
            return Err(no("tick 0 is the beginning of the run, and no transition"));
        }
        let record = source.record(tick)?;
        if !matches!(record.header().author, Author::Agent | Author::Runtime) {
            let type_name = record.header().type_name.as_ref().map_or("", TypeName::as_str);
            return Err(no(&format!("{type_name} was written by the kernel about that run")));
        }
        let segment = source.segment(tick);
        let takes_delta = pack::reducer_of_segment(source, segment)?.takes_delta();
        let contracts = pack::of_segment(source, segment)?.map(|pack| pack.contracts).unwrap_or_default();
        let before = source.at(tick - 1)?;
        Ok(Candidate { run: source.name().clone(), tick, record, takes_delta, before, contracts })
    }

    /// The type.
    pub fn type_name(&self) -> &TypeName {
        self.record.header().type_name.as_ref().expect("a transition has a type")
    }

    /// The record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Checks it against a target, given where that stands.
    pub fn check(&self, target: &Trace<'_>, at: u64) -> Result<Pick, Error> {
        let contracts = pack::of_run(target)?.map(|pack| pack.contracts).unwrap_or_default();
        let state = target.at(at)?.state;
        let Some(intent) = replay::intent(&self.record, self.takes_delta)? else {
            let why = "it was written by the kernel about that run".to_owned();
            return Err(Error::NotImportable { run: self.run.clone(), tick: self.tick, why });
        };
        let context = self.record.body().value(&format!("/{CONTEXT}"));
        let import = Import { intent: &intent, context: context.as_ref(), seed: self.record.body().seed() };
        let source = Side { state: &self.before.state, contracts: &self.contracts };
        let checked: Checked = check_import(&import, source, Side { state: &state, contracts: &contracts });
        let (run, tick, id) = (self.run.clone(), self.tick, self.record.id());
        Ok(Pick { run, tick, id, intent, reason: None, checked })
    }
}

/// Imports what was checked, or puts its refusal on record. Fails with `Stale` where the target has moved on since: then it
/// is to be checked again.
pub fn import(
    store: &mut dyn Store,
    target: &RunName,
    pick: &Pick,
    at: u64,
    surroundings: Box<dyn Surroundings>,
) -> Result<Imported, Error> {
    let mut recorder = Recorder::resume(store, target, surroundings)?;
    if recorder.head().tick() != at {
        return Err(Error::Moved { run: target.clone(), tick: recorder.head().tick() });
    }
    let imported = match &pick.checked.refused {
        Some(refused) => Imported::Refused(recorder.refuse_import(pick, refused)?),
        None => match recorder.pick(pick)? {
            Picked::Imported { marker, record } => Imported::Done { marker, record },
            Picked::Refused(refused) => Imported::AtTheDoor(refused),
        },
    };
    recorder.commit()?;
    Ok(imported)
}
