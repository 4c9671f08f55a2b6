//! Places of values that are derived from the record, such as counters: a value, what is unknown of it, and its change.
//!
//! No root covers them, and no delta names them.

use dendrer_kernel::counters::Counters;
use dendrer_kernel::step::COUNTERS;
use dendrer_kernel::unknown::{self, Since};
use dendrer_object::{Pointer, Value};

use crate::ask::difference::{PlaceChange, differences};
use crate::error::Error;
use crate::run::trace::Trace;

/// Counters as the member of a state that expressions read.
pub(crate) fn served(counters: &Counters) -> Value {
    Value::record([(COUNTERS, counters.to_value())])
}

/// Finds the value at a path of a state that was read at a tick; `None` if the path leads nowhere.
///
/// `counters` is derived and lies outside the state, but is found like any other member.
pub fn value_at(trace: &Trace, tick: u64, state: &Value, path: &Pointer) -> Result<Option<Value>, Error> {
    if !is_derived(path) {
        return Ok(path.get(state).cloned());
    }
    let (counters, counter) = (trace.at(tick)?.counters, path.tokens().nth(1));
    if let Some(hidden) = counters.hidden(counter.as_deref().map(|name| [name])) {
        let (what, pointer) = (path.in_state(), hidden.pointer.clone());
        return Err(Error::Hidden { what, tick: hidden.tick, pointer });
    }
    Ok(path.get(&served(&counters)).cloned())
}

/// Lists the unknown places that a value meets, each with its cause. A counter is unknown behind a message that could not be read.
pub fn unknown_at(
    trace: &Trace,
    tick: u64,
    state: &Value,
    path: &Pointer,
) -> Result<Vec<(Pointer, Since)>, Error> {
    if !is_derived(path) {
        return Ok(unknown::met_by(state, path));
    }
    let counters = trace.at(tick)?.counters;
    let (name, member) = (path.tokens().nth(1), path.tokens().nth(2));
    let since = match &name {
        None => counters.unread_since(),
        Some(name) => counters.unknown_since(Some(name), member.as_deref()),
    };
    Ok(since.map(|since| (path.clone(), since)).into_iter().collect())
}

/// Whether a path leads to values that are derived from the record.
pub fn is_derived(path: &Pointer) -> bool {
    path.tokens().next().is_some_and(|first| first == COUNTERS)
}

/// The counters at, above or below a place that the transition at a tick changed.
pub fn changes_at(trace: &Trace, tick: u64, path: &Pointer) -> Result<Vec<PlaceChange>, Error> {
    if tick == 0 {
        return Ok(Vec::new());
    }
    let (before, after) = (served(&trace.at(tick - 1)?.counters), served(&trace.at(tick)?.counters));
    let mut changes = differences(&before, &after);
    changes.retain(|change| change.path.overlaps(path));
    Ok(changes)
}
