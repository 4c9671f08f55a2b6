//! Extensions of the contract of a run that is reduced again: the same extension governs the new run from the same transition
//! on, judged once more by the door, under the new pack.
//!
//! The violations that the contract of the source found are left out, so later ticks have other numbers in the new run, and so
//! has the tick from which an extension holds. An approval was signed for one run: if the new pack names keys, it is not valid.

use std::ops::ControlFlow;

use dendrer_kernel::pack::extend::{EFFECTIVE_FROM, effective_from};
use dendrer_kernel::replay;
use dendrer_kernel::step::{self, EXTENSION, Extension, Inputs, RunState, Seeds, Start, VIOLATION};
use dendrer_object::record::Record;
use dendrer_object::{StoreId, Timestamp, Value};

use crate::error::Error;
use crate::pack::Source;
use crate::run::pack::reducer_for;
use crate::run::trace::Trace;

/// The parts of a source that differ in the new run.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The ticks of the violations that its contract found, in order. The new run leaves them out.
    spoken: Vec<u64>,
    /// The last tick at which its contract was extended.
    last: Option<u64>,
}

/// Whether a record extends a contract.
pub(super) fn is_extension(record: &Record) -> bool {
    record.header().type_name.as_ref().is_some_and(|name| name.as_str() == EXTENSION)
}

impl Plan {
    /// Takes in a transition of the source.
    pub(super) fn note(&mut self, tick: u64, record: &Record) {
        if record.header().type_name.as_ref().is_some_and(|name| name.as_str() == VIOLATION) {
            self.spoken.push(tick);
        }
        if is_extension(record) {
            self.last = Some(tick);
        }
    }

    /// The tick in the new run of what has this tick in the source, or is to have it.
    fn tick(&self, tick: u64) -> u64 {
        tick - self.spoken.partition_point(|spoken| *spoken < tick) as u64
    }

    /// Judges an extension of the source as the next transition of the new run.
    pub(super) fn extension(
        &self,
        source: &Trace,
        tick: u64,
        record: &Record,
        pack: &Source,
        head: &RunState,
    ) -> Result<Extension, Error> {
        let content = record.content();
        let mut members = content.get("extension").and_then(Value::as_object).cloned().unwrap_or_default();
        if let Some(from) = effective_from(&Value::Object(members.clone())) {
            members.set(EFFECTIVE_FROM, Value::from(self.tick(from)));
        }
        // If no keys are named, an approval is recorded as it is given.
        let asks_for_key = !pack.pack.approvers.is_empty();
        let approval = content.get("approval").and_then(Value::as_str).filter(|_| asks_for_key);
        Extension::check(head, &Value::Object(members), approval).map_err(|error| Error::NotRetold {
            run: source.name().clone(),
            tick,
            error: Box::new(error),
        })
    }

    /// Reduces as much of the source as its extensions need, and keeps nothing: they are all judged before anything is
    /// written.
    pub(super) fn rehearse(
        &self,
        source: &Trace,
        store: StoreId,
        start: &Start,
        pack: &Source,
    ) -> Result<(), Error> {
        let Some(last) = self.last else { return Ok(()) };
        let reducer = reducer_for(start)?;
        // None of these records is kept, so any time will do.
        let inputs = Inputs { clock: Timestamp::from_ms(0), seeds: Seeds::of_secret([0; 16]) };
        let (_, mut head) = step::begin(store, start, inputs)?;
        source.try_each::<Error>(1, last, &mut |tick, record| {
            if is_extension(&record) {
                let extension = self.extension(source, tick, &record, pack, &head)?;
                step::extend(&mut head, &extension, inputs)?;
            } else {
                replay::retell(&mut head, &record, &|link| link, false, inputs, &*reducer)?;
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}
