//! Counters as places: the transitions that changed one.
//!
//! Counters follow from the records and no root covers them, so no delta names them: their changes are found by counting each
//! record once more.

use std::ops::ControlFlow;

use dendrer_object::delta::Op;
use dendrer_object::{Pointer, Value};

use crate::ask::derived::{served, unknown_at, value_at};
use crate::ask::why::gather::{BacktrackTerms, Backtracked, BacktrackedWrite, Records, WhyAnswer};
use crate::ask::why::{WhyNode, WhyTree};
use crate::error::Error;
use crate::run::declared;
use crate::run::trace::Trace;

/// The counters after the transitions of a range of ticks, one by one, with the record; stops when `f` breaks.
fn each(
    trace: &Trace,
    (from, to): (u64, u64),
    f: &mut dyn FnMut(u64, &Value, &Value, dendrer_object::Record) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut counters = trace.at(from.saturating_sub(1))?.counters;
    let mut before = served(&counters);
    trace.for_each(from, to, &mut |tick, record| {
        counters.take(&record);
        let after = served(&counters);
        let next = f(tick, &before, &after, record);
        before = after;
        next
    })
}

/// Lists the transitions that changed a counter, newest first; `None` if there is no such counter.
pub fn backtrack(trace: &Trace, terms: &BacktrackTerms) -> Result<Option<Backtracked>, Error> {
    let BacktrackTerms { path, from, to, .. } = terms;
    declared::agents(trace, terms.agent.as_deref())?;
    let state = trace.state(*to)?;
    let Some(_) = value_at(trace, *to, &state, path)? else { return Ok(None) };
    let (mut writes, mut records) = (Vec::new(), Records::new());
    each(trace, (*from, *to), &mut |tick, before, after, record| {
        let (before, after) = (path.get(before), path.get(after));
        let agent = record.body().value("/agent_id");
        let is_theirs = terms
            .agent
            .as_deref()
            .is_none_or(|wanted| agent.as_ref().and_then(Value::as_str).unwrap_or_default() == wanted);
        let is_along = terms.along.as_ref().is_none_or(|along| along.ticks.contains(&tick));
        if before != after && is_theirs && is_along {
            let value = after.cloned().unwrap_or(Value::Null);
            let sides = terms.values.then(|| (before.cloned(), after.cloned()));
            let ops = vec![Op::set(path.clone(), value)];
            let conflicts = Vec::new();
            writes.push(BacktrackedWrite { tick, ops, sides, inputs: None, from: None, conflicts });
            records.insert(tick, record);
        }
        ControlFlow::Continue(())
    })?;
    let total = writes.len();
    writes.reverse();
    if terms.limit > 0 {
        writes.truncate(terms.limit);
    }
    records.retain(|tick, _| writes.iter().any(|write| write.tick == *tick));
    Ok(Some(Backtracked {
        run: trace.name().clone(),
        path: path.clone(),
        followed: path.clone(),
        range: (*from, *to),
        total,
        writes,
        hidden: Vec::new(),
        nameless: Vec::new(),
        records,
        unknown: unknown_at(trace, *to, &state, path)?,
    }))
}

/// Finds the last transition up to a tick that changed a counter; `None` if there is no such counter.
pub fn why(trace: &Trace, tick: u64, path: &Pointer) -> Result<Option<WhyAnswer>, Error> {
    let state = trace.state(tick)?;
    let Some(value) = value_at(trace, tick, &state, path)? else { return Ok(None) };
    let (mut last, mut records) = (None, Records::new());
    each(trace, (1, tick), &mut |tick, before, after, record| {
        if let (before, Some(after)) = (path.get(before), path.get(after))
            && before != Some(after)
        {
            last = Some((tick, after.clone(), record));
        }
        ControlFlow::Continue(())
    })?;
    let root = last.map(|(tick, after, record)| {
        records.insert(tick, record);
        let wrote = Some((path.clone(), vec![Op::set(path.clone(), after)]));
        WhyNode { tick, wrote, because: None, inputs: Vec::new(), stops: None }
    });
    Ok(Some(WhyAnswer {
        run: trace.name().clone(),
        tick,
        path: path.clone(),
        followed: path.clone(),
        value: Some(value),
        why: WhyTree { root, initial: None, hidden: Vec::new(), rules: true },
        records,
        from: None,
        sources: Vec::new(),
        unknown: unknown_at(trace, tick, &state, path)?,
        first_seen: None,
    }))
}
