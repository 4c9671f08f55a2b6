//! Replay: every transition and every refusal of a run made again and compared with the record.

use std::ops::ControlFlow;

use dendrer_kernel::reduce::{Purity, Reducer};
use dendrer_kernel::replay::{ReplayError, replay_fork, replay_refusal, replay_start, replay_step};
use dendrer_kernel::step::RunState;
use dendrer_object::{Record, RunName};

use crate::error::Error;
use crate::handle::ReadHandle;
use crate::run::pack;
use crate::run::trace::Trace;

/// Replays a run to its tip. Returns the number of its transitions, or the first difference.
pub fn replay(store: &impl ReadHandle, run: &RunName) -> Result<Result<u64, ReplayError>, Error> {
    let trace = Trace::open(store, run)?;
    let reducer = pack::reducer_of(&trace)?;
    replay_range(&trace, 0, trace.tip(), &*reducer, false, &mut |_, _| ControlFlow::Continue(()))
}

/// Replays the ticks after the recorded state at tick `begin`, up to a tick, and calls `f` with the head after each transition. Each run of a lineage is replayed by the reducer of the pack in
/// force there; a function of the host that is tested on the record replaces them all.
pub fn replay_range(
    trace: &Trace,
    begin: u64,
    to: u64,
    reducer: &dyn Reducer,
    twice: bool,
    f: &mut dyn FnMut(&RunState, &Record) -> ControlFlow<()>,
) -> Result<Result<u64, ReplayError>, Error> {
    let own = |segment| match reducer.info().purity {
        Purity::ByConstruction => pack::reducer_of_segment(trace, segment).map(Some),
        Purity::Tested => Ok(None),
    };
    let mut refusals = trace.refusals()?;
    let mut result = Ok(begin);
    let mut segment = trace.segment(begin);
    let mut recorded = own(segment)?;
    let first = own(0)?;
    let mut head = match replay_start(trace.start(), first.as_deref().map_or(reducer, |own| own)) {
        Err(error) => return Ok(Err(error)),
        Ok(head) if begin == 0 => head,
        Ok(_) => trace.head(begin)?,
    };
    loop {
        let reducer: &dyn Reducer = recorded.as_deref().map_or(reducer, |own| own);
        let mut judge = |head: &RunState| {
            let mut judged = refusals.remove(&head.id()).into_iter().flatten();
            judged.try_for_each(|refusal| replay_refusal(head, &refusal, reducer))
        };
        if let Err(error) = judge(&head) {
            return Ok(Err(error));
        }
        let end = trace.lineage()[segment].1.min(to);
        let mut stopped = false;
        trace.for_each(head.tick() + 1, end, &mut |tick, record| {
            if let Err(error) = replay_step(&mut head, &record, reducer, twice).and_then(|()| judge(&head)) {
                result = Err(error);
                return ControlFlow::Break(());
            }
            result = Ok(tick);
            let flow = f(&head, &record);
            stopped = flow.is_break();
            flow
        })?;
        if result.is_err() || stopped || head.tick() >= to || segment + 1 == trace.lineage().len() {
            break;
        }
        segment += 1;
        if let Err(error) = replay_fork(&mut head, &trace.begins()[segment], reducer) {
            return Ok(Err(error));
        }
        recorded = own(segment)?;
    }
    // A refusal at a record that replay did not reach was not judged: counted as judged, an invented one would pass.
    match refusals.values().flatten().next() {
        Some(refusal) if begin == 0 && result == Ok(trace.tip()) => {
            Ok(Err(ReplayError::Unplaced { refusal: refusal.id(), head: refusal.header().head }))
        }
        _ => Ok(result),
    }
}
