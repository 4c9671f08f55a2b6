//! The requests that are forbidden in runs, for a run that continues them: a merged run, and a child (design, 14.1: a decision on
//! record binds).
//!
//! Rule: a run that is made of others refuses what a decision denied in any of them; test `every_door_refuses_what_commit_refuses`.

use dendrer_kernel::step::DENIED;
use dendrer_object::Value;

use crate::error::Error;
use crate::run::trace::Trace;

/// Returns the requests that are forbidden in any of some runs at a tick, as a `run` record has them; `None` without any.
pub(super) fn forbidden<'t>(
    sources: impl IntoIterator<Item = (&'t Trace, u64)>,
) -> Result<Option<Value>, Error> {
    let mut all: Vec<Value> = Vec::new();
    for (trace, tick) in sources {
        let counters = trace.at(tick)?.counters;
        for request in counters.forbidden() {
            let listed = match request.tick {
                0 => begun_with(trace, request.decision, |action| counters.is_denied(action)),
                tick => vec![request.sealed(&trace.record(tick)?)],
            };
            for one in listed {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
    }
    Ok((!all.is_empty()).then(|| Value::array(all)))
}

/// The requests with which a run began that a decision still forbids.
fn begun_with(trace: &Trace, decision: &str, is_denied: impl Fn(&Value) -> bool) -> Vec<Value> {
    let listed = trace.start().content().get(DENIED).cloned();
    let listed = listed.as_ref().and_then(Value::as_array).into_iter().flat_map(|list| list.iter());
    let still = listed.filter(|entry| {
        let is_open = decision != "deny" || entry.get("action").is_some_and(&is_denied);
        entry.get("decision").and_then(Value::as_str) == Some(decision) && is_open
    });
    still.cloned().collect()
}
