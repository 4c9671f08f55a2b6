//! Transitions as steps of witness chains (witness-log paper 2.1 and 2.2; the dendrer paper's ontology).
//!
//! Rule: what a line says of a step is read from its transition again; test `every_step_comes_back`.

use std::sync::Arc;

use dendrer_chain::{ActionType, RowText, RowValue, StartedAt, Step, StepStamp};
use dendrer_kernel::ontology::RESULT;
use dendrer_kernel::status;
use dendrer_kernel::unknown::{self, ROWS_BEFORE_MISSING};
use dendrer_object::record::Author;
use dendrer_object::value::Object;
use dendrer_object::{ACTION_TYPE, MESSAGES, Record, Timestamp, Value};

use crate::run::trace::Trace;
use crate::vault::VaultRef;

/// The member of a line with a step.
pub const STEP: &str = "step";

/// The member of an intent with the text of an imported row.
pub const ROW: &str = "row";

/// The place in the vault, and in a `run` record below `meta`, of the exact bytes of a file out of which secrets were taken.
pub const EXACT: &str = "meta.exact";

/// The reference that a run has in place of the exact bytes of its file, which are in the vault.
pub fn exact_of(trace: &Trace) -> Option<VaultRef> {
    let meta = trace.start().body().value("/meta")?;
    VaultRef::from_value(meta.get("exact")?)
}

/// The type with which the runtime reports the decision of a check.
pub(crate) const DECISION: &str = "policy.decision";
pub(crate) const MEMORY: &str = "memory.write";
pub(crate) const OBSERVATION: &str = "observation.add";

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
pub(crate) fn transition_of(action: ActionType, author: Author) -> &'static str {
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

/// The type of the step of a call, by the first word of its name, as graphs name effects; and that of a graph's output, which no
/// model replied.
fn action_of_call(content: &Value, type_name: &str, author: Author) -> Option<ActionType> {
    if type_name == "goal.complete" {
        return (author == Author::Runtime).then_some(ActionType::External);
    }
    let tool = content.get("action")?.get("tool")?.as_str().filter(|_| type_name == RESULT)?;
    match tool.split_once('.')?.0 {
        "model" => Some(ActionType::LlmReply),
        "clock" | "chance" | "file" => Some(ActionType::External),
        _ => None,
    }
}

/// Members of a step that are text or null.
pub(crate) const TEXTS: [&str; 4] = ["step_id", "parent_id", "session_id", "trace_id"];
/// Members of a step that are numbers or null.
pub(crate) const NUMBERS: [&str; 3] = ["duration_ms", "phi", "kuramoto_r"];
/// A transition as a step.
#[derive(Debug, Clone)]
pub struct WitnessStep {
    /// The tick.
    pub tick: u64,
    /// Whether no step was recorded here, and the transition is read as one.
    pub derived: bool,
    /// The step.
    pub step: Step,
    /// Whether it succeeded; `None` where nothing says it.
    pub success: Option<bool>,
    /// The text of the row, if it was imported.
    pub row: Option<Arc<str>>,
    /// Members of the step that are not known: erased or withheld, or of a row that cannot be read. With `action` among them it is not
    /// known of which type the step is.
    pub unknown: Vec<&'static str>,
    /// The author of the transition; `None` for a row, which does not state one.
    pub author: Option<Author>,
    /// The agent.
    pub agent: Option<Arc<str>>,
    /// Why the step is not taken for what it claims.
    pub doubt: Option<StepDoubt>,
    /// When it began as its line has it, if that is not the text of the same moment in UTC.
    pub given_at: Option<StartedAt>,
    /// Whether rows before it are missing, which may have been any steps.
    pub is_behind: bool,
}

/// Why a step is not taken for what it claims (design, 14.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepDoubt {
    /// The row does not have the hash that it states: it may have been any step.
    HashWrong,
    /// The row repeats a step: it may be none.
    Repeated,
    /// The row is of another chain of the file: it may be none of this one.
    OtherChain,
    /// An agent states a check or an evaluation of its own work.
    Claimed,
}

impl StepDoubt {
    /// The doubt in words.
    pub fn words(self) -> &'static str {
        match self {
            StepDoubt::HashWrong => "its row does not have the hash that it states",
            StepDoubt::Repeated => "its row repeats a step",
            StepDoubt::OtherChain => "its row is of another chain of the file",
            StepDoubt::Claimed => "an agent states it of itself",
        }
    }

    fn of(content: &Value, action: ActionType, author: Option<Author>) -> Option<StepDoubt> {
        let notes = content.get("anomalies").and_then(Value::as_array);
        let notes = notes.into_iter().flat_map(|notes| notes.iter());
        let kinds: Vec<&str> = notes.filter_map(|note| note.get("kind")?.as_str()).collect();
        match () {
            () if kinds.contains(&"row_hash_wrong") => Some(StepDoubt::HashWrong),
            () if kinds.contains(&"step_repeated") => Some(StepDoubt::Repeated),
            () if kinds.contains(&"row_of_other_chain") => Some(StepDoubt::OtherChain),
            () if author == Some(Author::Agent)
                && matches!(action, ActionType::GateCheck | ActionType::EvalPhase) =>
            {
                Some(StepDoubt::Claimed)
            }
            () => None,
        }
    }
}

/// Members of a step by the field of the transition that has them.
const HELD_BY: [(&str, &[&str]); 6] = [
    ("action_type", &["action"]),
    ("action", &["name", "input"]),
    ("result", &["output", "success"]),
    (MESSAGES, &["action", "name", "input", "output", "success"]),
    ("policy", &["output", "success"]),
    (
        "intent",
        &[
            "name",
            "input",
            "output",
            "success",
            "started_at",
            "duration_ms",
            "parent_id",
            "step_id",
            "session_id",
            "trace_id",
            "phi",
            "kuramoto_r",
            "channel_coherence",
        ],
    ),
];

/// The members of a step that fields of the record hold which are erased or withheld.
fn unknown_of(record: &Record) -> Vec<&'static str> {
    let mut unknown: Vec<&'static str> = Vec::new();
    for field in record.body().fields().iter().filter(|field| record.body().text(field).is_none()) {
        let first = field.pointer.tokens().next().map(|token| token.into_owned()).unwrap_or_default();
        let held = HELD_BY.iter().find(|(name, _)| *name == first).map_or(&[][..], |(_, held)| *held);
        unknown.extend(held);
    }
    sorted(unknown)
}

fn sorted(mut names: Vec<&'static str>) -> Vec<&'static str> {
    names.sort_unstable();
    names.dedup();
    names
}

impl WitnessStep {
    /// The type of the step; `None` if it is not known.
    pub fn action(&self) -> Option<ActionType> {
        (!self.unknown.contains(&"action")).then_some(self.step.action)
    }

    /// Reads a transition; `None` for a record of another kind.
    pub fn of(record: &Record) -> Option<WitnessStep> {
        let header = record.header();
        let tick = header.tick?;
        let (type_name, content) = (header.type_name.as_ref()?, record.content());
        let mut unknown = unknown_of(record);
        let said = content.get("intent");
        let own = content.get(ACTION_TYPE).and_then(Value::as_str).and_then(|name| name.parse().ok());
        let of_call = action_of_call(&content, type_name.as_str(), header.author);
        let action = own.or(of_call).unwrap_or_else(|| action_of(type_name.as_str(), header.author));
        let stamp =
            StepStamp { step_id: record.id().hex()[..12].to_owned(), started_at: StartedAt::of(header.ts) };
        let description = text_of(said.and_then(|said| said.get("description")));
        let tool = tool_of(&content);
        let name = match action {
            ActionType::ToolCall | ActionType::CliCmd | ActionType::Payment => tool,
            _ if of_call.is_some() && own.is_none() => tool,
            ActionType::External => tool.filter(|_| type_name.as_str() == RESULT),
            _ => description.clone().filter(|_| own.is_some()),
        };
        let mut step = Step::new(action, name.as_deref().unwrap_or(type_name.as_str()), stamp);
        let of_row = |value: Option<&Value>| value.map_or(RowValue::Null, RowValue::of);
        let result = content.get("result");
        step.input = of_row(content.get("action").and_then(|action| action.get("params")));
        step.output = of_row(result.and_then(|result| result.get("output")));
        let decision = content.get("policy").and_then(|policy| policy.get("decision"));
        let mut success = success_of(result.and_then(|result| result.get("status")), decision);
        match said.and_then(|said| said.get(STEP)).and_then(Value::as_object).filter(|_| own.is_some()) {
            Some(rest) => {
                fill(&mut step, rest);
                if type_name.as_str() != RESULT {
                    // A row may not know it, and has null then.
                    success = rest.get("success").map_or(Some(true), Value::as_bool);
                }
            }
            // A call has what it was asked and answered already.
            None if of_call.is_some() => {}
            None => fill_derived(&mut step, description, decision),
        }
        let of_thread = said_in_thread(&content).filter(|_| own.is_none() && unknown.is_empty());
        success = of_thread.map_or(success, |one| one.fill(&mut step));
        let row = said.and_then(|said| said.get(ROW)).and_then(Value::as_str).map(Arc::from);
        // A row that was made of a transition has the step that it was made as.
        let written = row.as_deref().filter(|_| own.is_none()).and_then(derived_row);
        if let Some((as_written, is_success)) = written {
            (step, success) = (as_written, is_success);
        } else if row.is_some() && own.is_none() {
            // A row that cannot be read may have been a step of any type.
            success = None;
            unknown = sorted(HELD_BY.iter().flat_map(|(_, held)| held.iter().copied()).collect());
        }
        success = success.filter(|_| !unknown.contains(&"success"));
        step.success = success.unwrap_or(true);
        let author = row.is_none().then_some(header.author);
        let agent = content.get("agent_id").and_then(Value::as_str).map(Arc::from);
        let doubt = StepDoubt::of(&content, action, author);
        let notes = content.get("anomalies");
        let is_behind = notes.is_some_and(|notes| unknown::has_note(notes, ROWS_BEFORE_MISSING));
        let (derived, given_at) = (own.is_none(), in_utc(&mut step));
        #[rustfmt::skip]
        let made = WitnessStep {
            tick, derived, step, success, row, unknown, author, agent, doubt, given_at, is_behind,
        };
        Some(made)
    }
}

/// The tool of a call; the marker in its place, if it was redacted.
fn tool_of(content: &Value) -> Option<String> {
    let tool = content.get("action").and_then(|action| action.get("tool"));
    text_of(tool).or_else(|| marker_of(tool))
}

/// Puts the time of a step into UTC, and returns it as it was if that is another text.
fn in_utc(step: &mut Step) -> Option<StartedAt> {
    let utc = step.started_at.in_utc();
    (utc != step.started_at).then(|| std::mem::replace(&mut step.started_at, utc))
}

/// Fills a step that no line has: with what its transition means.
fn fill_derived(step: &mut Step, description: Option<String>, decision: Option<&Value>) {
    let said = description.map_or(RowValue::Null, |text| RowValue::from(&*text));
    match step.action {
        ActionType::UserInput => step.input = said,
        ActionType::GateCheck => step.output = decision.map_or(RowValue::Null, RowValue::of),
        ActionType::LlmReply | ActionType::MemoryWrite => step.output = said,
        _ => {}
    }
}

/// The member of a row with the transition that it was made of.
pub const TRANSITION: &str = "dendrer";

/// The step of a row that was made of a transition, and whether it succeeded.
fn derived_row(text: &str) -> Option<(Step, Option<bool>)> {
    if !text.contains("\"dendrer\"") {
        return None;
    }
    let row = RowValue::parse(text).ok()?;
    row.get(TRANSITION)?.get("type")?.as_str()?;
    let stamp = || StepStamp { step_id: String::new(), started_at: StartedAt::of(Timestamp::from_ms(0)) };
    let mut step = Step::from_row(&row, stamp).ok()?;
    step.others.retain(|(name, _)| name.as_str() != Some(TRANSITION));
    let success = row.get("success").filter(|success| **success != RowValue::Null);
    Some((step, success.map(RowValue::is_truthy)))
}

/// The step that the messages of a transition make.
struct SaidInThread {
    action: ActionType,
    name: Option<String>,
    input: Option<Value>,
    output: Option<Value>,
    success: Option<bool>,
}

impl SaidInThread {
    /// Puts the action that the messages name into a step. Returns whether it succeeded.
    fn fill(self, step: &mut Step) -> Option<bool> {
        let of_row = |value: Option<Value>| value.as_ref().map_or(RowValue::Null, RowValue::of);
        step.action = self.action;
        (step.input, step.output) = (of_row(self.input), of_row(self.output));
        if let Some(name) = self.name {
            step.name = name;
        }
        self.success
    }
}

/// Reads the messages that a put or a write adds to a thread: a failed node, else results, else calls, else what was said.
fn said_in_thread(content: &Value) -> Option<SaidInThread> {
    let messages = content.get(MESSAGES)?.as_array()?;
    let new: Vec<&Value> = messages.iter().filter(|one| one.get("repeated").is_none()).collect();
    let of_role = |role: &str| -> Vec<&Value> {
        new.iter().copied().filter(|one| one.get("role").and_then(Value::as_str) == Some(role)).collect()
    };
    let results: Vec<&Value> = new.iter().copied().filter(|one| one.get("result").is_some()).collect();
    let statuses =
        results.iter().map(|one| one.get("result").and_then(|result| result.get("status")?.as_str()));
    let success = match statuses.collect::<Option<Vec<&str>>>() {
        Some(known) if known.is_empty() => None,
        Some(known) => all_succeeded(&known),
        None => None,
    };
    let calls = new.iter().filter_map(|one| one.get("calls")?.as_array()).flat_map(|calls| calls.iter());
    let calls: Vec<&Value> = calls.filter(|call| call.get("repeated").is_none()).collect();
    let one_or_list = |values: Vec<Value>| match values.len() {
        0 => None,
        1 => values.into_iter().next(),
        _ => Some(Value::array(values)),
    };
    let texts = |values: &[&Value]| {
        one_or_list(values.iter().filter_map(|one| one.get("content").cloned()).collect())
    };
    let names = |values: Vec<Option<&str>>| {
        let names: Vec<&str> = values.into_iter().flatten().collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let agents = |values: &[&Value]| {
        names(values.iter().map(|one| one.get("agent").and_then(Value::as_str)).collect())
    };
    let said = |action, name, input, output| Some(SaidInThread { action, name, input, output, success });
    let (failed, interrupts) = (of_role("error"), of_role("interrupt"));
    if !failed.is_empty() {
        return said(ActionType::External, agents(&failed), None, texts(&failed));
    }
    if !results.is_empty() {
        let tools =
            results.iter().map(|one| one.get("result").and_then(|result| result.get("tool")?.as_str()));
        return said(ActionType::External, names(tools.collect()), None, texts(&results));
    }
    if !calls.is_empty() {
        let tools = names(calls.iter().map(|call| call.get("tool").and_then(Value::as_str)).collect());
        let params = calls.iter().filter_map(|call| call.get("params").cloned()).collect();
        return said(ActionType::ToolCall, tools, one_or_list(params), None);
    }
    if !interrupts.is_empty() {
        return said(ActionType::External, Some("interrupt".to_owned()), None, texts(&interrupts));
    }
    let (answers, asked) = (of_role("assistant"), of_role("user"));
    if !answers.is_empty() {
        return said(ActionType::LlmReply, agents(&answers), None, texts(&answers));
    }
    if !asked.is_empty() {
        return said(ActionType::UserInput, agents(&asked), texts(&asked), None);
    }
    None
}

/// Returns whether all of some statuses are of calls that succeeded; `None` if one of them is in no list.
fn all_succeeded(statuses: &[&str]) -> Option<bool> {
    let failures = statuses.iter().map(|word| status::is_failure(word));
    failures.collect::<Option<Vec<bool>>>().map(|failures| !failures.contains(&true))
}

/// Returns whether a step succeeded, by the status of its result or else by the decision about it; `None` if neither is known.
fn success_of(status: Option<&Value>, decision: Option<&Value>) -> Option<bool> {
    match (status, decision) {
        (Some(status), _) => status::is_failure(status.as_str()?).map(|is_failed| !is_failed),
        (None, Some(decision)) => decision.as_str().map(|decision| decision == "allow"),
        (None, None) => None,
    }
}

fn text_of(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

/// The marker of a text that was redacted as a whole.
fn marker_of(value: Option<&Value>) -> Option<String> {
    let kind = value?.get("$redacted")?.get("kind")?.as_str()?;
    Some(format!("<redacted:{kind}>"))
}

/// Fills a step with what is at `intent.step`.
fn fill(step: &mut Step, rest: &Object) {
    let text = |name: &str| text_of(rest.get(name));
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
