//! The cause of a recorded transition, and making the transition again from it.

use std::sync::Arc;

use dendrer_object::delta::Delta;
use dendrer_object::record::{Author, Kind, Record, Rel};
use dendrer_object::{Intent, Timestamp, Value};

use super::extension::{EXTENSION, make_extension};
use super::finding::is_finding;
use super::fork::{FORK, make_marker};
use super::import::{PICK, PICK_MEMBER, import_refusal};
use super::line::LINE;
use super::outcome::line_refusal;
use super::{
    CLOCK_WENT_BACK, Inputs, PROPOSED, ROUNDED, RunState, STILL_VIOLATED, Seeds, StepError, VIOLATION,
    WOULD_REFUSE, is_kernel_path, kernel_note, make_anomaly, make_violation, step_alone,
};
use crate::commitment::SPENT;
use crate::contract::CONTEXT;
use crate::ontology::{DELEGATE, is_claimed};
use crate::reduce::Reducer;

/// The cause of a recorded transition: enough to make it again.
pub(crate) enum Cause {
    Proposed(Box<Intent>),
    /// A marker or a finding, as the intent that would say so if an agent could propose it.
    Marker(Box<Intent>),
    Anomaly(Value),
    /// The violations of the transition before it; the state lists them.
    Violation,
    /// An extension of the contract, with its approval.
    Extension(Box<Intent>),
    /// The refusal of an import: what was to be imported, from where, and why not. It was judged by a state of another run.
    Import(Box<Intent>, Value, Value),
    /// The refusal of a line that is no intent: whose it was, the line, and why.
    Line(Arc<str>, Value, Value),
}

/// Takes a recorded transition or refusal apart into what the kernel was given. If the reducer takes no delta, the recorded one
/// was made and not given.
pub(crate) fn cause(record: &Record, takes_delta: bool) -> Option<(Cause, Inputs)> {
    let header = record.header();
    let content = record.content();
    let seed = record.body().seed()?;
    let mut clock = header.ts;
    if let Some(line) = content.get(LINE).filter(|_| header.kind == Kind::Refusal) {
        let agent = content.get("agent_id")?.as_str()?.into();
        let cause = Cause::Line(agent, line.clone(), content.get("reason")?.clone());
        return Some((cause, Inputs { clock, seeds: Seeds::recorded(seed) }));
    }
    let mut intent = Intent::new(header.type_name.clone()?, content.get("agent_id")?.as_str()?);
    intent.author = header.author;
    intent.goal = content.get("goal_id").and_then(Value::as_str).map(Arc::from);
    intent.links = header.links.iter().copied().filter(|link| link.rel != Rel::Predecessor).collect();
    let mut delta = Delta::from_value(content.get("delta").unwrap_or(&Value::array([]))).ok()?;
    let mut has_delta = content.get("delta").is_some();
    let is_extension = header.author == Author::Institution && intent.type_name.as_str() == EXTENSION;
    let is_violation = header.author == Author::Kernel && intent.type_name.as_str() == VIOLATION;
    let is_marker = header.author == Author::Kernel
        && (matches!(intent.type_name.as_str(), FORK | PICK | DELEGATE) || is_finding(&intent.type_name));
    let refused_import = content.get(PICK_MEMBER).filter(|_| header.kind == Kind::Refusal);
    if header.kind == Kind::Transition {
        delta.0.retain(|op| !is_kernel_path(&op.path));
        has_delta = (takes_delta || is_marker) && !delta.is_empty();
    }
    for (name, value) in content.as_object()?.iter() {
        match &**name {
            "reason" if header.kind == Kind::Refusal => {
                let claimed = value.get("claimed_author").and_then(Value::as_str);
                let claimed = claimed.and_then(|text| text.parse().ok());
                intent.author = claimed.filter(|author| is_claimed(*author)).unwrap_or(intent.author);
            }
            PICK_MEMBER if header.kind == Kind::Refusal => {}
            "agent_id" | "goal_id" | "delta" | "seq" | "state_root" | "reason" => {}
            // Made by the kernel, and made again by it.
            CONTEXT | STILL_VIOLATED | WOULD_REFUSE | ROUNDED | SPENT => {}
            PROPOSED if header.kind == Kind::Transition && takes_delta => {
                delta = Delta::from_value(value).ok()?;
                has_delta = true;
            }
            "anomalies" if header.author == Author::Kernel && !is_marker && !is_violation => {
                let entry = value.as_array()?.get(0)?.clone();
                if let Some(note) = value.as_array()?.iter().find(|entry| kernel_note(entry).is_some()) {
                    clock = earlier(clock, note);
                }
                return Some((Cause::Anomaly(entry), Inputs { clock, seeds: Seeds::recorded(seed) }));
            }
            "anomalies" if header.kind == Kind::Transition => {
                let mut own = Vec::new();
                for entry in value.as_array()?.iter() {
                    match kernel_note(entry) {
                        Some(CLOCK_WENT_BACK) => clock = earlier(clock, entry),
                        Some(_) if !matches!(entry.get("delta"), None | Some(Value::Null)) => {
                            delta = Delta::from_value(entry.get("delta")?).ok()?;
                            has_delta = true;
                        }
                        Some(_) => {}
                        None => own.push(entry.clone()),
                    }
                }
                // Notes of an import or a runtime are on record beside what the author said.
                intent.noted = own;
            }
            _ => intent.members.push((Arc::clone(name), value.clone())),
        }
    }
    intent.delta = has_delta.then_some(delta);
    let intent = Box::new(intent);
    let cause = match refused_import {
        Some(about) => Cause::Import(intent, about.clone(), content.get("reason")?.clone()),
        None if is_marker => Cause::Marker(intent),
        None if is_violation => Cause::Violation,
        None if is_extension => Cause::Extension(intent),
        None => Cause::Proposed(intent),
    };
    Some((cause, Inputs { clock, seeds: Seeds::recorded(seed) }))
}

fn earlier(ts: Timestamp, note: &Value) -> Timestamp {
    let by_ms = note.get("by_ms").and_then(Value::as_u64).unwrap_or(0);
    Timestamp::from_ms(ts.ms().saturating_sub(by_ms))
}

/// Makes a recorded transition again on the head before it.
pub(crate) fn again(
    head: &mut RunState,
    cause: &Cause,
    inputs: Inputs,
    reducer: &dyn Reducer,
) -> Result<Record, StepError> {
    let made = match cause {
        Cause::Anomaly(entry) => make_anomaly(head, entry.clone(), inputs),
        Cause::Import(intent, about, why) => import_refusal(head, intent, about.clone(), why.clone(), inputs),
        Cause::Line(agent, line, why) => line_refusal(head, agent, line.clone(), why.clone(), inputs),
        Cause::Violation => make_violation(head, inputs),
        Cause::Extension(intent) => make_extension(head, intent, inputs),
        Cause::Marker(marker) => make_marker(head, Intent::clone(marker), inputs),
        Cause::Proposed(intent) => return step_alone(head, intent, inputs, reducer),
    };
    Ok(made?)
}
