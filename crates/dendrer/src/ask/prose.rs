//! Results whose status was read from prose, and the answers that use them (design, section 9).

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use dendrer_kernel::pack::reads_status;
use dendrer_kernel::predicate::Predicate;

use crate::run::pack;
use crate::{Error, Trace};

/// Returns how many results up to a tick have a status that one rule read from their text, if the verdicts of a predicate use it: it, or a
/// rule of the pack that writes what it reads, reads the status of a result, or it reads the counter of failures. 0 otherwise.
pub fn results_read_from_text(trace: &Trace, predicate: &Predicate, upto: u64) -> Result<u64, Error> {
    if !rests_on_status(trace, predicate)? {
        return Ok(0);
    }
    let mut count = 0;
    trace.for_each(1, upto, &mut |_, record| {
        if record.header().type_name.as_ref().is_some_and(|name| name.as_str() == "action.result") {
            let content = record.content();
            let from = content.get("result").and_then(|result| result.get("status_from")?.as_str());
            count += u64::from(from == Some("text"));
        }
        ControlFlow::Continue(())
    })?;
    Ok(count)
}

fn rests_on_status(trace: &Trace, predicate: &Predicate) -> Result<bool, Error> {
    if predicate.exprs().any(|expr| expr.reads_counter("tool_errors") || reads_status(expr)) {
        return Ok(true);
    }
    let fields = match pack::of_run(trace)? {
        Some(pack) => pack.reads_status(),
        None => BTreeSet::new(),
    };
    let is_one = |top: Option<&str>| top.map_or(!fields.is_empty(), |top| fields.contains(top));
    Ok(predicate.read_set().iter().any(|place| is_one(place.tokens().next().as_deref())))
}
