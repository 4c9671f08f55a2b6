//! The commitments of a run at a tick (CCAS paper, definition 7).

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::commitment::{CommitmentStatus, Commitments, Statuses};
use dendrer_object::delta::Delta;
use dendrer_object::{COMMITMENT_LISTS, RunName, Value};

use crate::error::Error;
use crate::trace::Trace;

/// The commitments of a run, up to a tick.
#[derive(Debug)]
pub struct CommitmentsAt {
    /// The run.
    pub run: RunName,
    /// The tick.
    pub at: u64,
    /// What the transitions brought.
    pub all: Commitments,
    /// The statuses at the tick.
    pub statuses: Statuses,
    /// When the status of each changed for the last time.
    pub changed: BTreeMap<Arc<str>, u64>,
}

/// Reads the commitments of a run up to a tick.
pub fn commitments((trace, upto): (&Trace, u64)) -> Result<CommitmentsAt, Error> {
    let mut all = Commitments::default();
    let mut changed: BTreeMap<Arc<str>, (CommitmentStatus, u64)> = BTreeMap::new();
    let mut failed = None;
    trace.for_each(1, upto, &mut |tick, record| {
        let Some(type_name) = record.header().type_name.as_ref() else { return ControlFlow::Continue(()) };
        let brings = COMMITMENT_LISTS.iter().any(|list| record.body().value(&format!("/{list}")).is_some());
        if !brings && all.all.is_empty() {
            return ControlFlow::Continue(());
        }
        let content = record.content();
        let delta = content.get("delta").and_then(|delta| Delta::from_value(delta).ok());
        all.apply(tick, record.header().author, type_name.as_str(), &content, delta.as_ref());
        // A guard or a discharge may turn with any change of the state.
        match trace.state(tick) {
            Ok(state) => note(&all, &state, tick, &mut changed),
            Err(error) => failed = Some(error),
        }
        if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let state = trace.state(upto)?;
    let statuses = Statuses::of(&all, &state, None);
    let changed = changed.into_iter().map(|(id, (_, tick))| (id, tick)).collect();
    Ok(CommitmentsAt { run: trace.name().clone(), at: upto, all, statuses, changed })
}

fn note(
    all: &Commitments,
    state: &Value,
    tick: u64,
    changed: &mut BTreeMap<Arc<str>, (CommitmentStatus, u64)>,
) {
    let statuses = Statuses::of(all, state, None);
    for one in &all.all {
        let Some((status, _)) = statuses.get(&one.id) else { continue };
        if changed.get(&one.id).is_none_or(|(before, _)| before != status) {
            changed.insert(Arc::clone(&one.id), (*status, tick));
        }
    }
}
