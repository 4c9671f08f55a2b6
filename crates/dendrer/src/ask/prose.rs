//! Results whose status was read from prose, and the answers that use them (design, section 9).

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use dendrer_kernel::expr::Expr;
use dendrer_kernel::pack::reads_status;
use dendrer_kernel::predicate::Predicate;
use dendrer_object::{MESSAGES, Pointer, Value};

use crate::error::Error;
use crate::run::trace::Trace;
use crate::run::{pack, timeline};

/// Returns how many results up to a tick have a status that one rule read from their text, if the verdicts of any of the predicates use
/// it: it, or a rule of the pack that writes what it reads, reads the status of a result, or it reads the counter of failures. 0 otherwise.
pub fn results_read_from_text<'p>(
    trace: &Trace,
    predicates: impl IntoIterator<Item = &'p Predicate>,
    upto: u64,
) -> Result<u64, Error> {
    let mut uses_status = false;
    for predicate in predicates {
        let own = is_asked(trace, predicate.exprs(), predicate.read_set());
        uses_status = uses_status || own? || predicate.is_policy() && rules_ask(trace, upto)?;
    }
    if uses_status { count(trace, upto) } else { Ok(0) }
}

/// Whether a rule in force up to a tick uses the status of a result.
fn rules_ask(trace: &Trace, upto: u64) -> Result<bool, Error> {
    for rule in timeline::policy::predicates(trace, upto)? {
        if is_asked(trace, rule.exprs(), rule.read_set())? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// As [`results_read_from_text`], for expressions that read these places.
pub(crate) fn results_under<'e>(
    trace: &Trace,
    exprs: impl IntoIterator<Item = &'e Expr>,
    reads: &[Pointer],
    upto: u64,
) -> Result<u64, Error> {
    if is_asked(trace, exprs, reads)? { count(trace, upto) } else { Ok(0) }
}

/// Returns how many results up to a tick have a status that one rule read from their text.
pub(crate) fn count(trace: &Trace, upto: u64) -> Result<u64, Error> {
    let mut count = 0;
    trace.for_each(1, upto, &mut |_, record| {
        if record.header().type_name.as_ref().is_some_and(|name| name.as_str() == "action.result") {
            let content = record.content();
            let from = content.get("result").and_then(|result| result.get("status_from")?.as_str());
            count += u64::from(from == Some("text"));
        }
        // Results of a thread are in its messages.
        let messages = record.body().value(&format!("/{MESSAGES}"));
        let messages = messages.as_ref().and_then(Value::as_array).into_iter().flat_map(|list| list.iter());
        let from = messages.filter_map(|message| message.get("result")?.get("status_from")?.as_str());
        count += from.filter(|from| *from == "text").count() as u64;
        ControlFlow::Continue(())
    })?;
    Ok(count)
}

/// Whether the value of expressions that read these places uses the status of a result.
fn is_asked<'e>(
    trace: &Trace,
    exprs: impl IntoIterator<Item = &'e Expr>,
    reads: &[Pointer],
) -> Result<bool, Error> {
    if exprs.into_iter().any(|expr| expr.reads_counter("tool_errors") || reads_status(expr)) {
        return Ok(true);
    }
    let fields = match pack::of_run(trace)? {
        Some(pack) => pack.reads_status(),
        None => BTreeSet::new(),
    };
    let is_one = |top: Option<&str>| top.map_or(!fields.is_empty(), |top| fields.contains(top));
    Ok(reads.iter().any(|place| is_one(place.tokens().next().as_deref())))
}
