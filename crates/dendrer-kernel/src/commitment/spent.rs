//! `spent(EXPR)` in an expression of a commitment: the running sum of EXPR over the committed calls that the commitment judged.
//!
//! The text is read with each `spent(EXPR)` as a place `spent.sN`; EXPR is kept with it. The amounts that a committed call adds are
//! sealed in its transition (`spent`), so reading a run needs no expression and no state.
//!
//! Rule: a call whose EXPR is unknown makes the sum unknown from there on; test `spent_is_a_running_sum`.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::{Number, Value};

use super::{Authorized, Commitments};
use crate::expr::{Expr, ExprError, Scope};

/// The root of the places, and the member of a transition with what its calls add.
pub const SPENT: &str = "spent";

/// How many sums a text may have.
const SUMS_MAX: usize = 8;

const PLACES: [&str; SUMS_MAX] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

/// A text with its sums.
pub(super) struct Summed {
    /// The text as a condition.
    pub(super) expr: Expr,
    /// The expressions that are summed.
    pub(super) sums: Vec<Expr>,
}

/// Reads a condition that may have sums. `first` is the number of the first place that is free.
pub(super) fn read(text: &str, scope: &Scope, first: usize) -> Result<Summed, ExprError> {
    if !text.contains(SPENT) || scope_is_first(scope) {
        return Ok(Summed { expr: Expr::parse_condition(text, scope)?, sums: Vec::new() });
    }
    let (mut rest, mut made, mut sums) = (text, String::new(), Vec::new());
    while let Some((before, inside, behind)) = next(rest) {
        let Some(place) = PLACES.get(first + sums.len()) else { break };
        let sum = Expr::parse(inside, scope)?;
        made.push_str(before);
        let is_double = inside.trim_start().starts_with("double(");
        made.push_str(&if is_double {
            format!("double({SPENT}.{place})")
        } else {
            format!("{SPENT}.{place}")
        });
        sums.push(sum);
        rest = behind;
    }
    made.push_str(rest);
    let scope = scope.clone().root_of(SPENT, PLACES);
    Ok(Summed { expr: Expr::parse_condition_as(&made, text, &scope)?, sums })
}

/// Whether a scope is that of version 1 of the rules, which knows no sums.
fn scope_is_first(scope: &Scope) -> bool {
    !scope.has_root("t")
}

/// Finds the first `spent(EXPR)` outside of texts: the text before it, EXPR, and the text after it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let bytes = text.as_bytes();
    let (mut at, mut begin, mut depth) = (0, None, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'"') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'(' if begin.is_some() => depth += 1,
            b'(' => {
                let is_name = text[..at].trim_end().ends_with(SPENT);
                let start = text[..at].trim_end().len().checked_sub(SPENT.len());
                let is_word = |start: usize| {
                    let before = text[..start].bytes().next_back();
                    before.is_none_or(|c| !(c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.')))
                };
                if let Some(start) = start.filter(|start| is_name && is_word(*start)) {
                    begin = Some((start, at + 1));
                }
            }
            b')' if begin.is_some() && depth > 0 => depth -= 1,
            b')' => {
                if let Some((start, inside)) = begin {
                    return Some((&text[..start], &text[inside..at], &text[at + 1..]));
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The sums of commitments by id: for each place its sum, `null` where it is not known.
pub(super) type Sums = BTreeMap<Arc<str>, Vec<Value>>;

/// Reads sums as they are sealed and kept: by id, each a list.
pub(super) fn sums_of(value: Option<&Value>) -> Sums {
    let members = value.and_then(Value::as_object);
    let members = members.into_iter().flat_map(|members| members.iter());
    members.map(|(id, list)| (Arc::clone(id), list_of(list))).collect()
}

pub(super) fn list_of(value: &Value) -> Vec<Value> {
    value.as_array().map(|list| list.iter().cloned().collect()).unwrap_or_default()
}

/// Returns sums as they are sealed; `None` without any.
pub(super) fn sealed(sums: &Sums) -> Option<Value> {
    let each = sums.iter().map(|(id, list)| (Arc::clone(id), Value::array(list.iter().cloned())));
    (!sums.is_empty()).then(|| Value::record(each))
}

/// Adds one call to sums.
pub(super) fn add(sums: &mut Vec<Value>, call: &[Value]) {
    for (at, value) in call.iter().enumerate() {
        let sum = sums.get(at).cloned().unwrap_or_else(|| Value::from(0u64));
        let made = match (int(&sum), int(value)) {
            (Some(a), Some(b)) => a.checked_add(b).map(Value::from),
            _ => {
                sum.as_f64().zip(value.as_f64()).and_then(|(a, b)| Number::from_f64(a + b)).map(Value::Number)
            }
        };
        let made = made.unwrap_or(Value::Null);
        match sums.get_mut(at) {
            Some(sum) => *sum = made,
            None => sums.push(made),
        }
    }
}

/// Returns what sums grew by since they were `before`.
pub(super) fn grown(now: &[Value], before: &[Value]) -> Vec<Value> {
    let zero = Value::from(0u64);
    let since = |(at, now): (usize, &Value)| {
        let before = before.get(at).unwrap_or(&zero);
        let made = match (int(now), int(before)) {
            (Some(a), Some(b)) => a.checked_sub(b).map(Value::from),
            _ => {
                let both = now.as_f64().zip(before.as_f64());
                both.and_then(|(a, b)| Number::from_f64(a - b)).map(Value::Number)
            }
        };
        made.unwrap_or(Value::Null)
    };
    now.iter().enumerate().map(since).collect()
}

/// The amounts that the calls of a delegated run add to the sums of its parent.
#[derive(Debug, Clone, Default)]
pub struct SpentBelow {
    sums: Sums,
    /// The amounts that the calls of the judged record add.
    line: Sums,
}

impl SpentBelow {
    /// Judges a call of the child by the commitments of the parent, with the sums after the calls before it.
    pub fn judge(
        &mut self,
        parent: &Commitments,
        call: &Value,
        state: &Value,
        counters: &dyn Fn() -> Value,
    ) -> Authorized {
        let mut running = parent.spent.clone();
        for (id, call) in self.sums.iter().chain(&self.line) {
            add(running.entry(Arc::clone(id)).or_default(), call);
        }
        let mut members = call.as_object().cloned().unwrap_or_default();
        sealed(&running).into_iter().for_each(|running| members.set(SPENT, running));
        let found = parent.authorize(&Value::Object(members), &[], state, counters);
        for (id, call) in &found.spent {
            add(self.line.entry(Arc::clone(id)).or_default(), call);
        }
        found
    }

    /// Ends a record of the child. Its sealed amounts count for commitments that were handed over; for others count the amounts that
    /// the parent judged. The record of a result repeats its request and adds nothing.
    pub fn end_record(&mut self, content: &Value, child: &Commitments, is_request: bool) {
        let mut line = std::mem::take(&mut self.line);
        if !is_request {
            return;
        }
        let handed = sums_of(content.get(SPENT));
        line.extend(handed.into_iter().filter(|(id, _)| child.get(id).is_some_and(|one| one.is_imported)));
        for (id, call) in line {
            add(self.sums.entry(id).or_default(), &call);
        }
    }

    /// As it is sealed; `None` if nothing was spent.
    pub fn sealed(&self) -> Option<Value> {
        sealed(&self.sums)
    }
}

fn int(value: &Value) -> Option<i64> {
    value.as_number().and_then(Number::as_i64)
}

/// The value of the root `spent` for a commitment; a sum that is not known is no member.
pub(super) fn places(count: usize, sums: &[Value]) -> Value {
    let zero = Value::from(0u64);
    let each = PLACES.iter().take(count).enumerate();
    Value::record(each.filter_map(|(at, place)| {
        let sum = sums.get(at).unwrap_or(&zero);
        (*sum != Value::Null).then(|| (*place, sum.clone()))
    }))
}
