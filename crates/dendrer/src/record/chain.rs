//! Steps of witness chains as transitions, and transitions as steps (witness-log paper 2.1 and 2.2; the dendrer paper's ontology).
//!
//! Rule: what a line says of a step is read from its transition again; test `every_step_comes_back`.

use std::sync::Arc;

use dendrer_chain::{ActionType, RowText, RowValue, StartedAt, Step, StepStamp};
use dendrer_object::record::Author;
use dendrer_object::value::Object;
use dendrer_object::{ACTION_TYPE, Code, Intent, Record, Value, intent::IntentError};

/// The member of a line with a step.
pub const STEP: &str = "step";

/// The member of an intent with the text of an imported row.
pub const ROW: &str = "row";

/// The type with which the runtime says what a tool answered.
const RESULT: &str = "action.result";
/// The type with which the runtime says what a check decided.
const DECISION: &str = "policy.decision";
const MEMORY: &str = "memory.write";
const OBSERVATION: &str = "observation.add";

/// As which type of transition each type of step is recorded. A check that another than the runtime writes is an observation.
pub const TRANSITION_OF: [(ActionType, &str); 16] = [
    (ActionType::UserInput, OBSERVATION),
    (ActionType::ToolCall, RESULT),
    (ActionType::LlmReply, OBSERVATION),
    (ActionType::CliCmd, RESULT),
    (ActionType::Gate, OBSERVATION),
    (ActionType::GateCheck, DECISION),
    (ActionType::External, RESULT),
    (ActionType::Payment, RESULT),
    (ActionType::TrainingStep, OBSERVATION),
    (ActionType::EvalPhase, OBSERVATION),
    (ActionType::Reward, OBSERVATION),
    (ActionType::Checkpoint, OBSERVATION),
    (ActionType::MemoryRead, OBSERVATION),
    (ActionType::MemoryWrite, MEMORY),
    (ActionType::HeartbeatCycle, OBSERVATION),
    (ActionType::StickyNote, OBSERVATION),
];

/// As which type of step each type of transition is read where no step says its own. An observation by the user is `user_input`.
pub const ACTION_OF: [(&str, ActionType); 16] = [
    (OBSERVATION, ActionType::LlmReply),
    ("plan.update", ActionType::LlmReply),
    ("action.request", ActionType::External),
    (RESULT, ActionType::ToolCall),
    (MEMORY, ActionType::MemoryWrite),
    (DECISION, ActionType::GateCheck),
    ("anomaly.flag", ActionType::External),
    ("goal.complete", ActionType::LlmReply),
    ("kernel.anomaly", ActionType::External),
    ("predicate.violation", ActionType::External),
    ("run.fork", ActionType::External),
    ("run.cherrypick", ActionType::External),
    ("bisect.result", ActionType::External),
    ("diff.summary", ActionType::External),
    ("causal.chain", ActionType::External),
    ("policy.contract_extension", ActionType::External),
];

/// The type of the transition of a step.
fn transition_of(action: ActionType, author: Author) -> &'static str {
    let found = TRANSITION_OF.iter().find(|(each, _)| *each == action).map_or(OBSERVATION, |(_, name)| *name);
    if found == DECISION && author != Author::Runtime { OBSERVATION } else { found }
}

/// The type of the step of a transition that says none.
fn action_of(type_name: &str, author: Author) -> ActionType {
    if type_name == OBSERVATION && author == Author::User {
        return ActionType::UserInput;
    }
    // A type of a pack is named by its own.
    ACTION_OF.iter().find(|(name, _)| *name == type_name).map_or(ActionType::External, |(_, action)| *action)
}

/// Members of a step that are text or null.
const TEXTS: [&str; 4] = ["step_id", "parent_id", "session_id", "trace_id"];
/// Members of a step that are numbers or null.
const NUMBERS: [&str; 3] = ["duration_ms", "phi", "kuramoto_r"];
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
    let action = check(step)?;
    let type_name = match action {
        // Who may write a decision writes a check as one.
        ActionType::GateCheck => transition_of(action, authors(DECISION)),
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
    intent.author = authors(type_name);
    Ok(intent.carrying(ACTION_TYPE, Value::from(action.name())))
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
        ("action", Value::from(ActionType::GateCheck.name())),
        ("input", input),
        ("name", Value::from(name)),
        ("output", Value::record([("allowed", Value::from(allowed))])),
        ("success", Value::from(allowed)),
    ];
    intent_of_step(Value::record(members), None)
}

/// Who writes a transition of a type where the runtime writes.
fn runtime(type_name: &str) -> Author {
    match type_name {
        RESULT | DECISION => Author::Runtime,
        _ => Author::Agent,
    }
}

/// An imported row as a transition at its own tick: it happened, so its author is the runtime where the type is the runtime's.
pub fn intent_of_row(row: &Value, text: &str) -> Result<Intent, IntentError> {
    let mut intent = intent_of_step(row.clone(), None)?;
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
fn check(step: &Object) -> Result<ActionType, IntentError> {
    let action = match step.get("action") {
        Some(Value::String(name)) => match name.parse::<ActionType>() {
            Ok(action) => action,
            Err(error) => {
                let names = ActionType::ALL.iter().map(|action| action.name());
                let near = dendrer_object::text::nearest(name, names);
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
            Some(Value::String(_)) => {}
            Some(_) => return fault(&format!("/step/{name}"), "this is text"),
        }
    }
    let is_number =
        |value: &Value| value.as_f64().is_some() || dendrer_object::tag::as_float(value).is_some();
    for name in NUMBERS {
        if !step.get(name).is_none_or(|value| *value == Value::Null || is_number(value)) {
            return fault(&format!("/step/{name}"), "this is a number");
        }
    }
    if !matches!(step.get("success"), None | Some(Value::Bool(_))) {
        return fault("/step/success", "success is true or false");
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

/// What a step says, as members of the transition, and what is left of it.
fn members_of(step: &Object, action: ActionType, type_name: &str) -> (Vec<(&'static str, Value)>, Object) {
    let mut rest = step.clone();
    rest.remove("action");
    // What is null is as if it were not there.
    let nulls: Vec<Arc<str>> =
        step.iter().filter(|(_, value)| **value == Value::Null).map(|(name, _)| Arc::clone(name)).collect();
    for name in nulls {
        rest.remove(&name);
    }
    let success = rest.get("success").and_then(Value::as_bool).unwrap_or(true);
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
            result.set("status", Value::from(if success { "ok" } else { "error" }));
            rest.remove("success");
            made.extend([("action", Value::Object(call)), ("result", Value::Object(result))]);
        }
        DECISION if action == ActionType::GateCheck => {
            let allowed = verdict(rest.get("output")).unwrap_or(success);
            let decision = if allowed { "allow" } else { "deny" };
            made.push(("policy", Value::record([("decision", Value::from(decision))])));
        }
        _ => {}
    }
    (made, rest)
}

/// What the output of a check says: `true`, `{"allowed": true}`, `"allow"`, or their opposites; `None` if it says none of these.
fn verdict(output: Option<&Value>) -> Option<bool> {
    let output = output?;
    let said = ["allowed", "allow", "decision", "verdict"].iter().find_map(|name| output.get(name));
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

/// Gives the step of an intent the id and the time that the line did not bring. A row that was imported lacks what it lacks.
pub(crate) fn stamp(intent: &Intent, make: impl FnOnce() -> StepStamp) -> Option<Intent> {
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

/// A transition as a step.
#[derive(Debug, Clone)]
pub struct RecordedStep {
    /// The tick.
    pub tick: u64,
    /// Whether the transition is none of a step, and is read as one.
    pub derived: bool,
    /// The step.
    pub step: Step,
    /// Whether it succeeded; `None` where nothing says it.
    pub success: Option<bool>,
    /// The text of the row, if it was imported.
    pub row: Option<Arc<str>>,
    /// Whether parts of the transition are erased or withheld, so that the step lacks them.
    pub is_partial: bool,
}

impl RecordedStep {
    /// Reads a transition; `None` for a record of another kind.
    pub fn of(record: &Record) -> Option<RecordedStep> {
        let header = record.header();
        let tick = header.tick?;
        let type_name = header.type_name.as_ref()?;
        let content = record.content();
        let is_partial = record.body().fields().iter().any(|field| record.body().text(field).is_none());
        let said = content.get("intent");
        let own = content.get(ACTION_TYPE).and_then(Value::as_str).and_then(|name| name.parse().ok());
        let action = own.unwrap_or_else(|| action_of(type_name.as_str(), header.author));
        let stamp =
            StepStamp { step_id: record.id().hex()[..12].to_owned(), started_at: StartedAt::of(header.ts) };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let description = text(said.and_then(|said| said.get("description")));
        let tool = text(content.get("action").and_then(|action| action.get("tool")));
        let name = match action {
            ActionType::ToolCall | ActionType::CliCmd | ActionType::Payment => tool,
            ActionType::External => tool.filter(|_| type_name.as_str() == RESULT),
            _ if own.is_some() => description.clone(),
            _ => None,
        };
        let name = name.unwrap_or_else(|| type_name.as_str().to_owned());
        let mut step = Step::new(action, &name, stamp);
        let row = |value: Option<&Value>| value.map_or(RowValue::Null, RowValue::of);
        let result = content.get("result");
        step.input = row(content.get("action").and_then(|action| action.get("params")));
        step.output = row(result.and_then(|result| result.get("output")));
        let decision = content.get("policy").and_then(|policy| policy.get("decision"));
        let mut success = match (result.and_then(|result| result.get("status")), decision) {
            (Some(status), _) => status.as_str().map(|status| matches!(status, "ok" | "success")),
            (None, Some(decision)) => decision.as_str().map(|decision| decision == "allow"),
            (None, None) => None,
        };
        match said.and_then(|said| said.get(STEP)).and_then(Value::as_object).filter(|_| own.is_some()) {
            Some(rest) => {
                fill(&mut step, rest);
                if type_name.as_str() != RESULT {
                    success = Some(rest.get("success").and_then(Value::as_bool).unwrap_or(true));
                }
            }
            None => {
                let said = description.map_or(RowValue::Null, |text| RowValue::from(&*text));
                match action {
                    ActionType::UserInput => step.input = said,
                    ActionType::GateCheck => step.output = row(decision),
                    ActionType::LlmReply | ActionType::MemoryWrite => step.output = said,
                    _ => {}
                }
            }
        }
        step.success = success.unwrap_or(true);
        Some(RecordedStep {
            tick,
            derived: own.is_none(),
            step,
            success,
            row: said.and_then(|said| said.get(ROW)).and_then(Value::as_str).map(Arc::from),
            is_partial,
        })
    }
}

/// Fills a step with what is at `intent.step`.
fn fill(step: &mut Step, rest: &Object) {
    let text = |name: &str| rest.get(name).and_then(Value::as_str).map(str::to_owned);
    let float = |value: &Value| value.as_f64().or_else(|| dendrer_object::tag::as_float(value));
    let number = |name: &str| rest.get(name).and_then(float);
    if let Some(id) = text("step_id") {
        step.step_id = id;
    }
    if let Some(at) = text("started_at").and_then(|at| StartedAt::parse(&at)) {
        step.started_at = at;
    }
    (step.duration_ms, step.phi, step.kuramoto_r) =
        (number("duration_ms"), number("phi"), number("kuramoto_r"));
    (step.parent_id, step.session_id, step.trace_id) =
        (text("parent_id"), text("session_id"), text("trace_id"));
    if let Some(channels) = rest.get("channel_coherence").and_then(Value::as_object) {
        let of = |(name, value): (&Arc<str>, &Value)| Some((name.to_string(), float(value)?));
        step.channel_coherence = Some(channels.iter().filter_map(of).collect());
    }
    for (name, value) in rest.iter() {
        let value = RowValue::of(value);
        match &**name {
            "input" => step.input = value,
            "output" => step.output = value,
            "probe_call" => step.probe_call = Some(value),
            "eml_tree" => step.eml_tree = Some(value),
            "success" | "started_at" | "channel_coherence" => {}
            name if TEXTS.contains(&name) || NUMBERS.contains(&name) => {}
            name => step.others.push((RowText::from(name), value)),
        }
    }
}
