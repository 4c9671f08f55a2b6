//! Anomalies: what the kernel or the runtime saw and must not pass over (dendrer paper 3.3.2).

use std::sync::Arc;

use dendrer_object::delta::{Delta, Op};
use dendrer_object::record::{Author, Record, SealError};
use dendrer_object::{Pointer, Value};

use super::{Change, Inputs, RunState, Transition, draft_transition, seal_one};
use crate::ontology::KERNEL;

/// Something that the runtime saw and must not pass over (dendrer paper 3.3.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// A word for what it is, like `replay_divergence` or `tool_failure`.
    pub kind: Arc<str>,
    /// The runtime's description: an object whose members are kept as they are, like `{"text": "..."}`.
    pub about: Value,
    /// The agent it concerns.
    pub agent: Option<Arc<str>>,
}

/// The kind of the anomaly that a recording program notes where an exception ended it: a goal that was complete before is not
/// any more.
pub const ENDED_BY: &str = "ended_by";

impl Anomaly {
    /// An anomaly that is described by a text of the runtime.
    pub fn told(kind: &str, text: &str) -> Anomaly {
        Anomaly { kind: kind.into(), about: Value::record([("text", Value::from(text))]), agent: None }
    }
}

/// Puts an anomaly that the runtime saw on record: a `kernel.anomaly`, which no agent can author.
pub fn note_anomaly(head: &mut RunState, anomaly: &Anomaly, inputs: Inputs) -> Result<Record, SealError> {
    let mut entry = anomaly.about.as_object().cloned().unwrap_or_default();
    entry.set("kind", Value::from(&*anomaly.kind));
    if let Some(agent) = &anomaly.agent {
        entry.set("agent_id", Value::String(Arc::clone(agent)));
    }
    make_anomaly(head, Value::Object(entry), inputs)
}

pub(super) fn make_anomaly(head: &mut RunState, entry: Value, inputs: Inputs) -> Result<Record, SealError> {
    let change = anomaly_change(head, &entry);
    let transition = Transition {
        type_name: "kernel.anomaly".parse().expect("a type of the ontology"),
        author: Author::Kernel,
        agent: KERNEL.into(),
        goal: None,
        members: vec![("anomalies".into(), Value::array([entry]))],
        links: Vec::new(),
    };
    let prepared = draft_transition(head, transition, change, inputs)?;
    Ok(seal_one(head, prepared))
}

/// Returns the change of an anomaly: the state lists it from then on.
pub(super) fn anomaly_change(head: &RunState, entry: &Value) -> Change {
    let mut in_state = entry.as_object().cloned().unwrap_or_default();
    // The id of a record is made with chance, and nothing by chance is in the state (design, section 4).
    in_state.remove("refusal");
    in_state.set("tick", Value::from(head.tick + 1));
    let path = Pointer::of(["kernel_anomalies"]);
    let delta = Delta(vec![Op::append(path, Value::Object(in_state))]);
    let state = delta.apply(&head.state).expect("kernel_anomalies is an array that only the kernel writes");
    Change::of(state, delta)
}
