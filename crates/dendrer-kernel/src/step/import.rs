//! Imports: a transition of another run goes through the door once more, behind a marker that says where it came from
//! (dendrer paper 4.4). Whether it may is for [`check_import`](crate::contract::check_import); nothing here asks again.

use std::sync::Arc;

use dendrer_object::intent::ForkType;
use dendrer_object::record::{Author, Link, Record, Rel, SealError};
use dendrer_object::{Code, Digest, Intent, RunName, Value};

use super::fork::make_marker;
use super::{Inputs, Outcome, Reason, RunState, StepError, refusal_of, seal, step_with};
use crate::commitment::{ACCEPTED, CONTRACT, INITIAL, SPENT};
use crate::contract::{Checked, ImportRefused};
use crate::ontology::DELEGATE;
use crate::reduce::Reducer;
use crate::sealed::{fact, with_code};

/// The type of the marker before what was imported.
pub(super) const PICK: &str = "run.cherrypick";

/// The member of the marker, and of the refusal of an import, that says where it comes from.
pub(super) const PICK_MEMBER: &str = "cherrypick";

/// An import: the intent, and the record it comes from.
#[derive(Debug, Clone)]
pub struct Pick {
    /// The run it comes from.
    pub run: RunName,
    /// Its tick there.
    pub tick: u64,
    /// Its record there.
    pub id: Digest,
    /// The intent that is proposed again.
    pub intent: Intent,
    /// Why it is imported.
    pub reason: Option<Arc<str>>,
    /// The result of the checks.
    pub checked: Checked,
}

/// The outcome of an import.
#[derive(Debug, Clone)]
pub enum Picked {
    /// It is a transition of this run now.
    Imported {
        /// The marker before it.
        marker: Record,
        /// The transition.
        record: Record,
    },
    /// The door turned it down; nothing of it is in the run.
    Refused(Reason),
    /// It would bring about what the contract says must never happen; nothing of it is in the run.
    Violates(Vec<Arc<str>>),
}

/// Imports a transition that was checked: the marker, and what the door makes of the intent here.
pub fn cherrypick(
    head: &mut RunState,
    pick: &Pick,
    inputs: Inputs,
    reducer: &dyn Reducer,
) -> Result<Picked, StepError> {
    let link = Link { rel: Rel::PickedFrom, hash: pick.id };
    let mut marker = Intent::new(PICK.parse().expect("a type of the ontology"), "kernel");
    marker.author = Author::Kernel;
    marker.links.push(link);
    marker.members.push((PICK_MEMBER.into(), about(pick)));
    marker.members.push(("fork_type".into(), Value::from(ForkType::Injection.as_str())));
    let mut behind = head.clone();
    let marker = make_marker(&mut behind, marker, inputs)?;
    let mut intent = pick.intent.clone().of_origin(pick.id);
    intent.links.push(link);
    match step_with(&mut behind, &intent, inputs.behind(1), reducer)? {
        Outcome::Committed(record) => {
            *head = behind;
            Ok(Picked::Imported { marker, record })
        }
        outcome @ Outcome::Violated { .. } => Ok(Picked::Violates(outcome.violated())),
        // It was turned down behind a marker that is not there then.
        Outcome::Refused(refused) => Ok(Picked::Refused(refused.reason)),
    }
}

/// Puts the refusal of an import on record, beside the run, with the values that decided.
pub fn refuse_import(
    head: &RunState,
    pick: &Pick,
    refused: &ImportRefused,
    inputs: Inputs,
) -> Result<Record, SealError> {
    import_refusal(head, &pick.intent, about(pick), refused.sealed(), inputs)
}

pub(super) fn import_refusal(
    head: &RunState,
    intent: &Intent,
    about: Value,
    why: Value,
    inputs: Inputs,
) -> Result<Record, SealError> {
    let (mut header, mut content) = refusal_of(head, intent, why, inputs);
    header.head = Some(head.id);
    content.push((PICK_MEMBER.into(), about));
    let content = content.iter().map(|(name, value)| (&**name, value.clone())).collect();
    seal(header, content, inputs.seeds.nth(0))
}

/// Says where an import comes from, and what was compared.
fn about(pick: &Pick) -> Value {
    let checked = &pick.checked;
    let fields = checked.fields.iter().map(|field| {
        let side = |value: &Option<Value>| value.clone().unwrap_or(Value::Null);
        let mut members = vec![
            ("name", Value::String(Arc::clone(&field.name))),
            ("rule", Value::String(Arc::clone(&field.rule))),
            ("source", side(&field.source)),
            ("target", side(&field.target)),
        ];
        members.extend(field.wrong.as_ref().map(|wrong| ("wrong", wrong.sealed())));
        Value::record(members)
    });
    let mut members = vec![
        ("contract", Value::String(Arc::clone(&checked.contracts[0].0))),
        ("fields", Value::array(fields)),
        ("source_record", Value::from(pick.id)),
        ("source_run_id", Value::from(pick.run.as_str())),
        ("source_tick", Value::from(pick.tick)),
        ("version", Value::String(Arc::clone(&checked.contracts[0].1))),
    ];
    members.extend(checked.hash.map(|hash| ("context_hash", Value::from(hash))));
    members.extend(pick.reason.clone().map(|reason| ("import_reason", Value::String(reason))));
    if !checked.advisory.is_empty() {
        let names = checked.advisory.iter().map(|name| Value::String(Arc::clone(name)));
        members.push(("advisory_missing", Value::array(names)));
    }
    // A recorded tool answer is reused as it is; no tool was called.
    if pick.intent.member("result").is_some() {
        members.push(("result", Value::from("reused")));
    }
    Value::record(members)
}

// Delegation, and its merge gate (CCAS paper 6.5, algorithm 2). Whether a parent may take a result is the caller's to check.

/// Puts a delegation on record: the `deleg`, and the contract that the child works under.
pub fn delegate(
    head: &mut RunState,
    deleg: &Value,
    contract: &Value,
    inputs: Inputs,
) -> Result<Record, SealError> {
    let mut intent = Intent::new(DELEGATE.parse().expect("a type of the ontology"), "kernel");
    intent.author = Author::Kernel;
    intent.members.push((INITIAL.into(), Value::array([deleg.clone()])));
    intent.members.push((CONTRACT.into(), contract.clone()));
    make_marker(head, intent, inputs)
}

/// The member of what a parent took with the output of the child.
const OUTPUT: &str = "output";

/// A result of a child run.
#[derive(Debug, Clone)]
pub struct ChildResult {
    /// The child.
    pub child: RunName,
    /// Its last tick.
    pub tick: u64,
    /// The record there.
    pub id: Digest,
    /// The `deleg` of the parent.
    pub delegation: Arc<str>,
    /// The commitments that it brought, in their initial form.
    pub commitments: Option<Value>,
    /// The output with which it completed its goal: the deliverables.
    pub output: Option<Value>,
    /// The amounts that its calls add to the sums of the parent's commitments, by id.
    pub spent: Option<Value>,
}

impl ChildResult {
    fn intent(&self) -> Intent {
        let mut intent = Intent::new(PICK.parse().expect("a type of the ontology"), "kernel");
        intent.author = Author::Kernel;
        intent.links.push(Link { rel: Rel::PickedFrom, hash: self.id });
        intent
    }

    fn about(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("child", Value::from(self.child.as_str())),
            ("delegation", Value::String(Arc::clone(&self.delegation))),
            ("tick", Value::from(self.tick)),
        ]
    }
}

/// Takes the result of a child: its atoms and commitments with their modes and authors. The delegation is discharged.
pub fn accept(head: &mut RunState, result: &ChildResult, inputs: Inputs) -> Result<Record, SealError> {
    let commitments = result.commitments.clone().map(|commitments| (INITIAL, commitments));
    let output = result.output.clone().filter(|_| head.is_since(2)).map(|output| (OUTPUT, output));
    let spent = result.spent.clone().filter(|_| head.is_since(2)).map(|spent| (SPENT, spent));
    let about = Value::record(result.about().into_iter().chain(commitments).chain(output).chain(spent));
    let mut intent = result.intent();
    intent.members.push((ACCEPTED.into(), about));
    make_marker(head, intent, inputs)
}

/// Keeps the refusal of a result, with the commitments that it violates.
pub fn refuse_accept(
    head: &RunState,
    result: &ChildResult,
    violates: &[Arc<str>],
    inputs: Inputs,
) -> Result<Record, SealError> {
    let ids = Value::array(violates.iter().map(|id| Value::String(Arc::clone(id))));
    let child = ("child", Value::from(result.child.as_str()));
    let why = with_code(fact("delegate_rejected", [("commitments", ids), child]), Code::E0456);
    import_refusal(head, &result.intent(), Value::record(result.about()), why, inputs)
}
