//! Runs of LangSmith, as its API and its exports give them: a list, or one a line.
//!
//! [`MEMBERS`] has the members of a run that are read or kept. Rule: usage is read from runs of the type `llm` alone, because those
//! above them sum it.

use std::sync::Arc;

use dendrer::kernel::unknown::{CALLS, USAGE};
use dendrer_object::value::Object;
use dendrer_object::{Value, json};

use super::openai_chat::Messages;
use crate::foreign::{Format, Head};
use crate::import::account::{ANY, Account, Of, Row, kept, read};
use crate::import::error::ImportError;
use crate::import::moment::moment;
use crate::import::note::{At, ImportNote};
use crate::import::once::short;
use crate::import::spans::{self, Kind, Native, Span, Traces, plain};
use crate::import::spoken;

/// The format.
pub(super) static LANGSMITH: Format = Format {
    tables: || vec![("a run", MEMBERS.to_vec())],
    sniff,
    shape: "runs of LangSmith with `run_type` and `inputs`",
    survey: |source, choice| spans::survey(source, choice, Box::<LangSmith>::default()),
    items: |source, layout, hints, visit| {
        spans::hand_over(source, layout, hints, Box::<LangSmith>::default(), visit)
    },
    ..Format::new("langsmith", "Runs of LangSmith, from its API or an export", |_| {
        Box::new(Messages::default())
    })
};

fn sniff(head: &Head<'_>) -> bool {
    let holds = |object: &Object| {
        let runs = object.get("runs").and_then(Value::as_array);
        is_run(object) || runs.is_some_and(|runs| runs.iter().filter_map(Value::as_object).any(is_run))
    };
    head.any(holds) || is_long(head)
}

/// Whether the first value is longer than what is looked at, and has the names of a run.
fn is_long(head: &Head<'_>) -> bool {
    head.values.is_empty()
        && head.bytes.trim_ascii_start().first().is_some_and(|byte| b"{[".contains(byte))
        && head.names("run_type")
        && (head.names("dotted_order") || head.names("trace_id"))
}

fn is_run(object: &Object) -> bool {
    let text = |name: &str| object.get(name).and_then(Value::as_str).is_some();
    text("run_type")
        && text("id")
        && (object.contains_key("inputs") || text("trace_id") || text("dotted_order"))
}

const MODEL: &[Of] = &[Of::Model];
const OTHERS: &[Of] = &[Of::Outside, Of::Result];

/// The members of a run.
static MEMBERS: &[Row] = &[
    read("id", ANY, "the run"),
    read("trace_id", ANY, "the trace"),
    read("parent_run_id", ANY, "the run above"),
    read("dotted_order", ANY, "the order"),
    read("start_time", ANY, "the order, if there is no other"),
    read("name", ANY, "the tool, or what was run"),
    read("run_type", ANY, "what the run is"),
    read("inputs", ANY, "messages, or arguments"),
    read("outputs", ANY, "messages, or the output"),
    read("error", ANY, "whether the run failed"),
    read("status", ANY, "whether the run failed"),
    read("total_tokens", MODEL, "tokens, if the outputs have none"),
    read("prompt_tokens", MODEL, "tokens, if the outputs have none"),
    read("completion_tokens", MODEL, "tokens, if the outputs have none"),
    read("total_cost", MODEL, "cost"),
    kept("total_tokens", OTHERS, "a sum of the runs below"),
    kept("prompt_tokens", OTHERS, "a sum of the runs below"),
    kept("completion_tokens", OTHERS, "a sum of the runs below"),
    kept("total_cost", OTHERS, "a sum of the runs below"),
    kept("prompt_cost", ANY, "a part of the cost"),
    kept("completion_cost", ANY, "a part of the cost"),
    kept("prompt_token_details", ANY, "parts of tokens"),
    kept("completion_token_details", ANY, "parts of tokens"),
    kept("prompt_cost_details", ANY, "parts of the cost"),
    kept("completion_cost_details", ANY, "parts of the cost"),
    kept("first_token_time", ANY, "a time"),
    kept("serialized", ANY, "a definition"),
    kept("manifest", ANY, "a definition"),
    kept("extra", ANY, "settings"),
    kept("events", ANY, "times"),
    kept("tags", ANY, "labels"),
    kept("feedback_stats", ANY, "scores"),
    kept("attachments", ANY, "files"),
    kept("child_runs", ANY, "runs that have their own place in a list"),
];

/// Reads a file.
#[derive(Default)]
struct LangSmith {
    runs: Vec<(u64, Object)>,
}

impl Native for LangSmith {
    fn take(&mut self, value: &Object, numbers: &mut u64) -> bool {
        if let Some(list) =
            value.get("runs").and_then(Value::as_array).filter(|_| !value.contains_key("run_type"))
        {
            for run in list.iter() {
                self.add(&run.as_object().cloned().unwrap_or_default(), numbers);
            }
            return !list.is_empty();
        }
        if !value.contains_key("run_type") {
            return false;
        }
        self.add(value, numbers);
        true
    }

    fn end(self: Box<Self>, account: &mut Account) -> Result<Traces, ImportError> {
        let spans = self.runs.into_iter().map(|(number, run)| read_run(number, run, account)).collect();
        Ok(Traces { spans, ..Traces::default() })
    }
}

impl LangSmith {
    /// Takes a run, and those inside it.
    fn add(&mut self, run: &Object, numbers: &mut u64) {
        let mut waiting = vec![run.clone()];
        while let Some(mut run) = waiting.pop() {
            if let Some(inside) = run.get("child_runs").and_then(Value::as_array).cloned() {
                run.remove("child_runs");
                let inside: Vec<Object> = inside.iter().filter_map(Value::as_object).cloned().collect();
                waiting.extend(inside.into_iter().rev());
            }
            self.runs.push((*numbers, run));
            *numbers += 1;
        }
    }
}

fn text<'o>(object: &'o Object, name: &str) -> Option<&'o str> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Reads a run.
fn read_run(number: u64, run: Object, account: &mut Account) -> Span {
    let at = At::item("", number);
    let content = short(json::to_string(&Value::Object(run.clone())).as_bytes());
    let kind = match text(&run, "run_type") {
        Some("llm") => Kind::Model,
        Some("tool") => Kind::Tool,
        _ => Kind::Other,
    };
    let mut notes = Vec::new();
    account.item(MEMBERS, kind.of(), &run, &at, &mut notes);
    if text(&run, "run_type").is_none() {
        let note = "this run does not say what it is";
        notes.push(ImportNote::not_read(at, &[CALLS, USAGE], note));
    }
    let id = text(&run, "id");
    let order = match text(&run, "dotted_order") {
        Some(order) => Some((0, Arc::from(order))),
        None => text(&run, "start_time").and_then(moment).map(|time| (time, Arc::from(""))),
    };
    let mut span = Span {
        number,
        name: text(&run, "name").unwrap_or("unnamed").to_owned(),
        id: id.map(Arc::from),
        parent: text(&run, "parent_run_id").map(Arc::from),
        trace: text(&run, "trace_id").or(id).unwrap_or_default().into(),
        order,
        kind,
        content,
        ..Span::default()
    };
    let failure = run.get("error").filter(|error| !matches!(error, Value::Null | Value::Bool(false)));
    let failure = failure.filter(|error| error.as_str() != Some(""));
    span.failed = match (failure, text(&run, "status")) {
        (Some(_), _) | (None, Some("error")) => Some(true),
        _ => None,
    };
    span.error =
        failure.map(|error| Value::from(error.as_str().map_or_else(|| error.to_string(), str::to_owned)));
    let (inputs, outputs) = (part(&run, "inputs"), part(&run, "outputs"));
    let is_waiting = matches!(text(&run, "status"), Some("pending" | "interrupted"));
    span.is_unfinished = is_waiting || run.get("end_time") == Some(&Value::Null);
    match kind {
        Kind::Model => model(&mut span, &run, &inputs, &outputs, &mut notes),
        Kind::Tool => tool(&mut span, &inputs, &outputs),
        Kind::Agent | Kind::Other => span.usage = Some(tokens_of(&run)).filter(|usage| !usage.is_empty()),
    }
    span.notes = notes;
    span.rest = run;
    if kind == Kind::Model {
        span.rest.remove("inputs");
    }
    span
}

/// Inputs or outputs; an export may have them as text.
fn part(run: &Object, name: &str) -> Value {
    run.get(name).map_or(Value::Null, plain)
}

/// The tokens that a run states itself.
fn tokens_of(run: &Object) -> Object {
    let names = ["prompt_tokens", "completion_tokens", "total_tokens"];
    let stated =
        |name: &str| run.get(name).filter(|value| value.as_f64().is_some_and(|number| number > 0.0)).cloned();
    names.into_iter().filter_map(|name| Some((Arc::from(name), stated(name)?))).collect()
}

/// A call of a model.
fn model(span: &mut Span, run: &Object, inputs: &Value, outputs: &Value, notes: &mut Vec<ImportNote>) {
    let inputs = inputs.get("input").filter(|_| inputs.get("messages").is_none()).unwrap_or(inputs);
    span.inputs = spoken::messages(inputs, "user");
    let made = match outputs {
        Value::Object(object) if object.is_empty() => Value::Null,
        other => other.get("output").filter(|_| other.get("generations").is_none()).unwrap_or(other).clone(),
    };
    span.outputs = spoken::messages(&made, "assistant");
    let stated = |holder: &Value, path: &[&str]| -> Option<Object> {
        let value = path.iter().try_fold(holder, |value, name| value.get(name))?;
        let usage = value.as_object()?;
        usage
            .iter()
            .any(|(_, value)| value.as_f64().is_some_and(|number| number != 0.0))
            .then(|| usage.clone())
    };
    let of_message = span.outputs.iter().find_map(|message| {
        let message = Value::Object(message.clone());
        stated(&message, &["usage_metadata"])
            .or_else(|| stated(&message, &["response_metadata", "token_usage"]))
    });
    let beside = tokens_of(run);
    let places: [&[&str]; 4] =
        [&["usage_metadata"], &["llm_output", "token_usage"], &["usage"], &["llm_output", "usage"]];
    let found = places.iter().find_map(|path| stated(outputs, path)).or(of_message);
    let mut usage = found.or_else(|| (!beside.is_empty()).then_some(beside));
    let cost = run.get("total_cost").map(|cost| match cost.as_str() {
        Some(text) => json::parse_door(text.as_bytes()).unwrap_or(Value::Null),
        None => cost.clone(),
    });
    if let Some(cost) = cost.filter(|cost| cost.as_f64().is_some_and(|cost| cost > 0.0)) {
        usage.get_or_insert_default().set("total_cost", cost);
    }
    for message in &mut span.outputs {
        message.remove("usage_metadata");
    }
    let is_batch = inputs
        .get("messages")
        .and_then(Value::as_array)
        .is_some_and(|lists| lists.len() > 1 && lists.iter().all(|list| list.as_array().is_some()));
    if is_batch {
        let text = "several conversations in one call: which answer is of which is not read";
        notes.push(ImportNote::not_read(format!("{}/inputs", At::item("", span.number)), &[CALLS], text));
    }
    span.usage = usage;
}

/// A call of a tool.
fn tool(span: &mut Span, inputs: &Value, outputs: &Value) {
    span.tool = Some(span.name.clone());
    let only = |value: &Value, name: &str| {
        let object = value.as_object().filter(|object| object.len() == 1)?;
        object.get(name).cloned()
    };
    // A call as the model made it.
    let call = inputs.get("type").and_then(Value::as_str) == Some("tool_call");
    let params = match call {
        true => inputs.get("args").cloned(),
        false => only(inputs, "input").or_else(|| Some(inputs.clone())),
    };
    span.params = params.map(|params| plain(&params)).filter(|params| *params != Value::Null);
    let output = only(outputs, "output").unwrap_or_else(|| outputs.clone());
    let own = inputs.get("id").filter(|_| call).and_then(Value::as_str).map(str::to_owned);
    let said = spoken::messages(&output, "tool");
    let message = said.first().filter(|message| said.len() == 1 && message.contains_key("tool_call_id"));
    match message {
        Some(message) => {
            span.call_id = message.get("tool_call_id").and_then(Value::as_str).map(str::to_owned).or(own);
            span.output = message.get("content").cloned();
            let word = message.get("status").and_then(Value::as_str);
            span.failed = span.failed.or_else(|| dendrer::kernel::status::is_failure(word?));
        }
        None => {
            span.call_id = own;
            let is_empty = span.is_unfinished && output.as_object().is_some_and(|output| output.is_empty());
            span.output = Some(output).filter(|output| *output != Value::Null && !is_empty);
        }
    }
}
