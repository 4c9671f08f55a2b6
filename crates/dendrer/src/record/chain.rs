//! Steps of witness chains as transitions (witness-log paper 2.1 and 2.2); [`crate::run::witness`] reads them again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_chain::{ActionType, StartedAt, StepStamp};
use dendrer_kernel::ontology::RESULT;
use dendrer_kernel::{commitment, sealed};
use dendrer_object::document::Shape;
use dendrer_object::intent::IntentError;
use dendrer_object::record::{Author, Seed};
use dendrer_object::value::Object;
use dendrer_object::{ACTION_TYPE, Code, Intent, Value};

use crate::environment::Environment;
use crate::run::witness::{DECISION, NUMBERS, TEXTS, transition_of};

pub use crate::run::witness::{ACTION_OF, ROW, STEP, TRANSITION, TRANSITION_OF, WitnessStep};

dendrer_object::line! {
    /// A step of a witness chain, in place of type: agent, delta, base, key, links and reads are the only other members of its
    /// line. Members that are not here are kept
    pub open StepLine {
        /// The type of the step, like tool_call; docs/chains.md lists all
        action: String = required,
        /// The tool, phase or metric of the step
        name: String = required,
        /// Input of the step
        input: Value,
        /// Output of the step
        output: Value,
        /// Whether the step succeeded; true if it is missing, and never null
        success: Option<bool>,
        /// Duration in milliseconds; an object is a tagged float
        duration_ms: Option<TaggedNumber>,
        /// Order parameter phi of a training step or of a phase of an eval; an object is a tagged float
        phi: Option<TaggedNumber>,
        /// Order parameter R of Kuramoto, from 0 to 1; an object is a tagged float
        kuramoto_r: Option<TaggedNumber>,
        /// Coherence of each channel by name
        channel_coherence: Option<BTreeMap<String, TaggedNumber>>,
        /// Id of the step, once in a run; made if it is missing
        step_id: Option<String>,
        /// Id of the step that this one is part of
        parent_id: Option<String>,
        /// Id of the session
        session_id: Option<String>,
        /// Id that the steps of several chains share
        trace_id: Option<String>,
        /// Begin of the step, like 2026-04-20T10:00:00+00:00; the time of the commit if it is missing
        started_at: Option<String>,
    }
}

/// A number, or an object that is a tagged float.
enum TaggedNumber {}

impl Shape for TaggedNumber {
    fn schema() -> Value {
        Value::record([("type", Value::array(["number", "object"].map(Value::from)))])
    }

    fn to_value(&self) -> Value {
        match *self {}
    }
}

/// Members of a line beside `step`.
const BESIDE: [&str; 8] = [STEP, "agent", "agent_id", "delta", "base", "key", "links", "reads"];

fn fault<T>(path: &str, message: impl Into<String>) -> Result<T, IntentError> {
    Err(IntentError { code: Code::E0209, path: path.to_owned(), message: message.into() })
}

/// Reads a line with `step` as an intent. `authors` says who writes a transition of a type.
pub(crate) fn intent_of_line(
    line: &Value,
    agent: Option<&str>,
    authors: impl Fn(&str) -> Author,
) -> Result<Intent, IntentError> {
    intent_of((line, false), agent, authors)
}

/// Reads a line, or a row in the place of `step`: a row may not know whether it succeeded, and may have an empty id.
fn intent_of(
    (line, is_row): (&Value, bool),
    agent: Option<&str>,
    authors: impl Fn(&str) -> Author,
) -> Result<Intent, IntentError> {
    let object = line.as_object().expect("a line with a member is an object");
    if let Some((name, _)) = object.iter().find(|(name, _)| !BESIDE.contains(&&***name)) {
        return fault(
            &format!("/{name}"),
            "beside step stand agent, delta, base, key, links and reads alone",
        );
    }
    let Some(step) = object.get(STEP).and_then(Value::as_object) else {
        return fault("/step", "a step is an object like {\"action\":\"tool_call\",\"name\":\"get\"}");
    };
    let action = check(step, is_row)?;
    let type_name = match action {
        // Who may write a decision writes a check as one.
        ActionType::GateCheck if decided(step).is_some() => transition_of(action, authors(DECISION)),
        // A verdict that is not understood, or contradicts `success`, is no decision.
        ActionType::GateCheck => transition_of(action, Author::Agent),
        _ => transition_of(action, Author::Runtime),
    };
    let mut members = object.clone();
    members.remove(STEP);
    members.set("type", Value::from(type_name));
    let (named, others) = members_of(step, action, type_name);
    for (name, value) in named {
        members.set(name, value);
    }
    let mut said = Object::default();
    if let Some(text) = others.get("name").cloned() {
        said.set("description", text);
    }
    let mut rest = others;
    rest.remove("name");
    said.set(STEP, Value::Object(rest));
    members.set("intent", Value::Object(said));
    let mut intent = Intent::from_value(&Value::Object(members), agent)?;
    intent.author = match action {
        // An evaluation counts at a gate only by who may also decide, so it has that author.
        ActionType::EvalPhase if authors(DECISION) == Author::Runtime => Author::Runtime,
        _ => authors(type_name),
    };
    Ok(intent.carrying(ACTION_TYPE, Value::from(action.as_str())))
}

/// A step as an intent, as a line with `step` is read: an object with the members of the witness-log paper 2.2, `action` and `name`
/// required. The runtime is its author where the type of the transition is the runtime's.
pub fn intent_of_step(step: Value, agent: Option<&str>) -> Result<Intent, IntentError> {
    intent_of_line(&Value::record([(STEP, step)]), agent, runtime)
}

/// The check of a predicate whose inputs are known, and what it decided (witness-log paper 3.6). The one way in which consent, tiers and
/// all other gates are recorded; a prompt for a credential is a step of type `gate` and none of these.
pub fn gate_check(name: &str, input: Value, allowed: bool) -> Result<Intent, IntentError> {
    let members = [
        ("action", Value::from(ActionType::GateCheck.as_str())),
        ("input", input),
        ("name", Value::from(name)),
        ("output", Value::record([("allowed", Value::from(allowed))])),
        ("success", Value::from(allowed)),
    ];
    intent_of_step(Value::record(members), None)
}

/// The metadata of a run whose chain has a context.
pub fn meta_of_context(context: Value) -> Value {
    Value::record([("context", context)])
}

/// Who writes a transition of a type where the runtime writes.
fn runtime(type_name: &str) -> Author {
    match type_name {
        RESULT | DECISION => Author::Runtime,
        _ => Author::Agent,
    }
}

/// The sentence on a refusal, from its content ([`sealed::refused`]). The fault of a line that is no step shows in the line
/// itself.
pub fn refused(content: &Value) -> Option<String> {
    let line = content.get("line").filter(|line| line.get(STEP).is_some());
    let error = line.and_then(|line| intent_of_line(line, None, runtime).err());
    let error = error.map(|error| error.message).or_else(|| {
        let reason = content.get("reason")?;
        let is_line = reason.get("cause").and_then(Value::as_str) == Some("schema_mismatch");
        let line = content.get("line").filter(|_| is_line)?;
        // A line that is no intent at all is told by what an intent is.
        Intent::from_value(line, None).ok()?;
        commitment::check(line).err().map(|fault| fault.message)
    });
    error.or_else(|| sealed::refused(content))
}

/// An imported row as a transition at its own tick: it happened, so its author is the runtime where the type is the runtime's and the row
/// names no agent as the author of a check or an evaluation.
pub fn intent_of_row(row: &Value, text: &str, author: Option<Author>) -> Result<Intent, IntentError> {
    let authors = |type_name: &str| match author {
        Some(Author::Agent) if type_name == DECISION => Author::Agent,
        _ => runtime(type_name),
    };
    let mut intent = intent_of((&Value::record([(STEP, row.clone())]), true), None, authors)?;
    for (name, value) in &mut intent.members {
        if &**name == "intent" {
            let mut said = value.as_object().cloned().unwrap_or_default();
            // Hashes are of the row's text, and its values stand in the transition.
            let mut step = said.get(STEP).and_then(Value::as_object).cloned().unwrap_or_default();
            step.remove(dendrer_chain::CONTENT_HASH);
            step.remove(dendrer_chain::PREV_HASH);
            said.set(STEP, Value::Object(step));
            said.set(ROW, Value::from(text));
            *value = Value::Object(said);
        }
    }
    Ok(intent)
}

/// Checks the members of a step, and returns its type.
fn check(step: &Object, is_row: bool) -> Result<ActionType, IntentError> {
    let action = match step.get("action") {
        Some(Value::String(name)) => match ActionType::read(name) {
            Ok(action) => action,
            Err(error) => {
                let near = dendrer_object::text::nearest(name, ActionType::WORDS.iter().copied());
                let meant = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                return fault("/step/action", format!("{error}{meant}"));
            }
        },
        _ => return fault("/step/action", "a step names its action, like \"tool_call\""),
    };
    if !matches!(step.get("name"), Some(Value::String(_))) {
        return fault("/step/name", "a step has a name, like \"get\"");
    }
    for name in TEXTS {
        match step.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::String(id)) if !id.is_empty() || is_row => {}
            Some(_) => return fault(&format!("/step/{name}"), "this is text, and not empty"),
        }
    }
    let is_number =
        |value: &Value| value.as_f64().is_some() || dendrer_object::tag::as_float(value).is_some();
    for name in NUMBERS {
        if !step.get(name).is_none_or(|value| *value == Value::Null || is_number(value)) {
            return fault(&format!("/step/{name}"), "this is a number");
        }
    }
    match step.get("success") {
        None | Some(Value::Bool(_)) => {}
        Some(Value::Null) if is_row => {}
        Some(_) => return fault("/step/success", "success is true or false; a step without it succeeded"),
    }
    match step.get("started_at") {
        None | Some(Value::Null) => {}
        Some(at) if at.as_str().is_some_and(|text| StartedAt::parse(text).is_some()) => {}
        Some(_) => return fault("/step/started_at", "a time is like 2026-04-20T10:00:00+00:00"),
    }
    match step.get("channel_coherence") {
        None | Some(Value::Null) => {}
        Some(Value::Object(channels)) if channels.iter().all(|(_, value)| is_number(value)) => {}
        Some(_) => return fault("/step/channel_coherence", "this maps names to numbers"),
    }
    Ok(action)
}

/// The members of a transition that a step has, and the rest of the step.
fn members_of(step: &Object, action: ActionType, type_name: &str) -> (Vec<(&'static str, Value)>, Object) {
    let mut rest = step.clone();
    rest.remove("action");
    // A null member is as if it were not there.
    let is_unknown = step.get("success") == Some(&Value::Null);
    let nulls: Vec<Arc<str>> =
        step.iter().filter(|(_, value)| **value == Value::Null).map(|(name, _)| Arc::clone(name)).collect();
    for name in nulls {
        rest.remove(&name);
    }
    let said = rest.get("success").and_then(Value::as_bool);
    // A check that says its verdict alone succeeded if it allows.
    let decided = if action == ActionType::GateCheck { decided(step) } else { None };
    let known = said.or(decided).or((!is_unknown).then_some(true));
    let success = known.unwrap_or(false);
    // True is the default, and null is not known.
    rest.set("success", known.map_or(Value::Null, Value::from));
    if success {
        rest.remove("success");
    }
    let mut made = Vec::new();
    match type_name {
        RESULT => {
            let mut call = Object::default();
            call.set("tool", rest.remove("name").unwrap_or(Value::Null));
            if let Some(input) = rest.remove("input") {
                call.set("params", input);
            }
            let mut result = Object::default();
            if let Some(output) = rest.remove("output") {
                result.set("output", output);
            }
            if known.is_some() {
                result.set("status", Value::from(if success { "ok" } else { "error" }));
            }
            rest.remove("success");
            made.extend([("action", Value::Object(call)), ("result", Value::Object(result))]);
        }
        DECISION if action == ActionType::GateCheck => {
            let decision = if success { "allow" } else { "deny" };
            made.push(("policy", Value::record([("decision", Value::from(decision))])));
        }
        _ => {}
    }
    (made, rest)
}

/// The decision of a check; `None` if it has none, or two.
fn decided(step: &Object) -> Option<bool> {
    let success = step.get("success").and_then(Value::as_bool);
    match (step.get("output").filter(|output| **output != Value::Null), success) {
        (None, success) => success,
        (Some(output), None) => verdict(output),
        (Some(output), Some(success)) => verdict(output).filter(|allowed| *allowed == success),
    }
}

/// The decision in the output of a check: `true`, `{"allowed": true}`, `"allow"`, or their opposites; `None` for any other
/// output.
fn verdict(output: &Value) -> Option<bool> {
    let said = ["allowed", "allow", "granted", "passed", "decision", "verdict"]
        .iter()
        .find_map(|name| output.get(name));
    match said.unwrap_or(output) {
        Value::Bool(is) => Some(*is),
        Value::String(word) => match &**word {
            "allow" | "allowed" => Some(true),
            "deny" | "denied" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// The intents, with an id and a time for each step that brings none.
pub(crate) fn stamped<'i>(intents: &'i [Intent], surroundings: &mut dyn Environment) -> Cow<'i, [Intent]> {
    if intents.iter().all(|intent| intent.member(ACTION_TYPE).is_none()) {
        return Cow::Borrowed(intents);
    }
    let mut make = |intent: &Intent| {
        let made = stamp(intent, || {
            let Seed(bytes) = surroundings.seed();
            let random = bytes.first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
            StepStamp::new(random, surroundings.now())
        });
        made.unwrap_or_else(|| intent.clone())
    };
    Cow::Owned(intents.iter().map(&mut make).collect())
}

/// The id that a line gives its step. Ids of rows are compared by their import.
pub(crate) fn given_id(intent: &Intent) -> Option<&str> {
    intent.member(ACTION_TYPE)?;
    let said = intent.member("intent").filter(|said| said.get(ROW).is_none())?;
    said.get(STEP)?.get("step_id")?.as_str()
}

/// Gives the step of an intent the id and the time that the line did not bring. A row that was imported lacks what it lacks.
fn stamp(intent: &Intent, make: impl FnOnce() -> StepStamp) -> Option<Intent> {
    intent.member(ACTION_TYPE)?;
    let said = intent.member("intent")?.as_object()?;
    let step = said.get(STEP)?.as_object()?;
    let is_whole = step.contains_key("step_id") && step.contains_key("started_at");
    if is_whole || said.contains_key(ROW) {
        return None;
    }
    let stamp = make();
    let mut step = step.clone();
    for (name, value) in [("step_id", &*stamp.step_id), ("started_at", stamp.started_at.as_str())] {
        if !step.contains_key(name) {
            step.set(name, Value::from(value));
        }
    }
    Some(with_step(intent, step))
}

/// A recorded step without what the line did not bring.
pub(crate) fn unstamped(recorded: &Intent, line: &Intent) -> Option<Intent> {
    let of = |intent: &Intent| intent.member("intent")?.get(STEP)?.as_object().cloned();
    let (mut step, brought) = (of(recorded)?, of(line)?);
    for name in ["step_id", "started_at"] {
        if !brought.contains_key(name) {
            step.remove(name);
        }
    }
    Some(with_step(recorded, step))
}

fn with_step(intent: &Intent, step: Object) -> Intent {
    let mut made = intent.clone();
    for (name, value) in &mut made.members {
        if &**name == "intent" {
            let mut said = value.as_object().cloned().unwrap_or_default();
            said.set(STEP, Value::Object(step.clone()));
            *value = Value::Object(said);
        }
    }
    made
}
