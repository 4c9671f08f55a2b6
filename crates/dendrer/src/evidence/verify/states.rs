//! The states of runs while their records are taken in the order of the log: each delta must make the root that its record has,
//! and each transition have an author that may write it.
//!
//! Rule: a state that cannot be followed is never taken for one that fits; test `a_state_behind_an_erased_delta_is_not_followed`.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::ontology::check_recorded;
use dendrer_kernel::replay::{ReplayError, recorded_state};
use dendrer_object::record::{Entry, Kind, Record};
use dendrer_object::{Code, RunName, Value};
use dendrer_store::Store;

use crate::run::trace::Trace;

/// The last state of each run; a run whose state is not known has none.
#[derive(Debug, Default)]
pub(super) struct States(BTreeMap<RunName, (u64, Value)>);

/// The code of a fault, the recorded and the computed side, and a sentence.
type Fault = (Code, Option<(String, String)>, String);

/// Returns what is wrong with the author of a record; `None` for one that may write it, or that is no transition.
pub(super) fn author(record: &Record) -> Option<Fault> {
    let header = record.header();
    let name = header.type_name.as_ref().filter(|_| header.kind == Kind::Transition)?;
    let agent = record.body().value("/agent_id");
    let error = check_recorded(name, header.author, agent.as_ref().and_then(Value::as_str)).err()?;
    Some((error.code(), None, format!("its author cannot be: {error}")))
}

impl States {
    /// Takes the next record of a run, and returns what is wrong with its root and its author.
    pub(super) fn take(
        &mut self,
        store: &Arc<dyn Store>,
        entry: &Entry,
        record: Option<&Record>,
    ) -> Vec<Fault> {
        let Some(run) = &entry.run else { return Vec::new() };
        let Some(record) = record else {
            self.0.remove(run);
            return Vec::new();
        };
        match entry.kind {
            Kind::Run => return self.begin(store, run, record).into_iter().collect(),
            Kind::Transition => return self.follow(run, record),
            Kind::End => drop(self.0.remove(run)),
            _ => {}
        }
        Vec::new()
    }

    fn begin(&mut self, store: &Arc<dyn Store>, run: &RunName, record: &Record) -> Option<Fault> {
        let trace = Trace::open(store, run).ok()?;
        let (tick, state) = match record.header().prev {
            None => (0, trace.genesis().ok()?.state),
            // A fork begins with a state of its parent, which is at hand if the parent has not gone on.
            Some(_) => {
                let (owner, tick) = trace.lineage().iter().rev().nth(1)?;
                let known = self.0.get(owner).filter(|(at, _)| at == tick).cloned();
                known.or_else(|| Some((*tick, trace.state(*tick).ok()?)))?
            }
        };
        let made = Value::from(state.digest());
        self.0.insert(run.clone(), (tick, state));
        let said = record.body().value("/state_root").filter(|said| *said != made)?;
        let sides = Some((said.to_string(), made.to_string()));
        Some((
            Code::E0301,
            sides,
            "the state that it begins with has another root than it records".to_owned(),
        ))
    }

    fn follow(&mut self, run: &RunName, record: &Record) -> Vec<Fault> {
        let header = record.header();
        let mut faults: Vec<Fault> = author(record).into_iter().collect();
        let Some((tick, state)) = self.0.remove(run) else { return faults };
        if header.tick != Some(tick + 1) {
            return faults;
        }
        match recorded_state(&state, record) {
            Ok(after) => drop(self.0.insert(run.clone(), (tick + 1, after))),
            // A value that was erased or withheld is reported as that.
            Err(ReplayError::Erased { .. }) => {}
            Err(ReplayError::Divergence(found)) => {
                let text = |side: &Option<Value>| side.as_ref().map_or_else(String::new, ToString::to_string);
                let sides = Some((text(&found.expected), text(&found.found)));
                faults.push((
                    Code::E0301,
                    sides,
                    "its delta makes another state root than it records".to_owned(),
                ));
            }
            Err(error) => faults.push((Code::E0301, None, format!("its delta makes no state: {error}"))),
        }
        faults
    }
}
