//! Observations of Langfuse: a trace or a session as its pages download them, or lists of observations of its exports and its API.
//!
//! [`MEMBERS`] has the members of an observation that are read or kept, in both spellings. Rule: usage is read from observations
//! that are calls of models alone.

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
pub(super) static LANGFUSE: Format = Format {
    tables: || vec![("an observation", MEMBERS.to_vec())],
    sniff,
    shape: "observations of Langfuse with `type` and `traceId`",
    survey: |source, choice| spans::survey(source, choice, Box::<Langfuse>::default()),
    items: |source, layout, hints, visit| {
        spans::hand_over(source, layout, hints, Box::<Langfuse>::default(), visit)
    },
    ..Format::new("langfuse", "Traces, sessions and observations of Langfuse", |_| {
        Box::new(Messages::default())
    })
};

/// Types of observations.
const TYPES: &[&str] = &[
    "SPAN",
    "GENERATION",
    "EVENT",
    "AGENT",
    "TOOL",
    "CHAIN",
    "RETRIEVER",
    "EVALUATOR",
    "EMBEDDING",
    "GUARDRAIL",
];

fn sniff(head: &Head<'_>) -> bool {
    let holds = |object: &Object, name: &str| {
        let list = object.get(name).and_then(Value::as_array);
        list.is_some_and(|list| list.iter().filter_map(Value::as_object).any(is_observation))
    };
    head.any(|object| {
        is_observation(object)
            || holds(object, "observations")
            || holds(object, "data")
            || object.get("traces").and_then(Value::as_array).is_some_and(|traces| {
                traces.iter().filter_map(Value::as_object).any(|trace| holds(trace, "observations"))
            })
    }) || is_long(head)
}

/// Whether the first value is longer than what is looked at, and has the names of an observation.
fn is_long(head: &Head<'_>) -> bool {
    head.values.is_empty()
        && head.bytes.trim_ascii_start().first().is_some_and(|byte| b"{[".contains(byte))
        && ["observations", "parentObservationId", "parent_observation_id"]
            .iter()
            .any(|name| head.names(name))
        && (head.names("traceId") || head.names("trace_id"))
        && (head.names("startTime") || head.names("start_time"))
}

fn is_observation(object: &Object) -> bool {
    let kind = object.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| TYPES.contains(&kind))
        && ["traceId", "trace_id"].iter().any(|name| object.contains_key(name))
        && ["startTime", "start_time"].iter().any(|name| object.contains_key(name))
}

const MODEL: &[Of] = &[Of::Model];
const OTHERS: &[Of] = &[Of::Outside, Of::Result];

/// The members of an observation, in the spelling with capitals.
static MEMBERS: &[Row] = &[
    read("id", ANY, "the observation"),
    read("traceId", ANY, "the trace"),
    read("sessionId", ANY, "the session"),
    read("parentObservationId", ANY, "the observation above"),
    read("startTime", ANY, "the order"),
    read("type", ANY, "what the observation is"),
    read("name", ANY, "the tool, the agent, or what was observed"),
    read("input", ANY, "messages, or arguments"),
    read("output", ANY, "messages, or the output"),
    read("level", ANY, "whether it failed"),
    read("statusMessage", ANY, "how it failed"),
    read("usageDetails", MODEL, "tokens"),
    read("usage", MODEL, "tokens, as before version 3"),
    read("costDetails", MODEL, "cost"),
    read("calculatedTotalCost", MODEL, "cost"),
    read("totalCost", MODEL, "cost"),
    kept("usageDetails", OTHERS, "looked at: a number in it is noted"),
    kept("usage", OTHERS, "looked at: a number in it is noted"),
    kept("costDetails", OTHERS, "looked at: a number in it is noted"),
    kept("calculatedTotalCost", OTHERS, "a sum of what is below"),
    kept("totalCost", OTHERS, "a sum of what is below"),
    kept("inputUsage", ANY, "a copy"),
    kept("outputUsage", ANY, "a copy"),
    kept("totalUsage", ANY, "a copy"),
    kept("promptTokens", ANY, "a copy"),
    kept("completionTokens", ANY, "a copy"),
    kept("totalTokens", ANY, "a copy"),
    kept("inputCost", ANY, "a part of the cost"),
    kept("outputCost", ANY, "a part of the cost"),
    kept("calculatedInputCost", ANY, "a part of the cost"),
    kept("calculatedOutputCost", ANY, "a part of the cost"),
    kept("providedUsageDetails", ANY, "a copy"),
    kept("providedCostDetails", ANY, "a copy"),
    kept("usagePricingTierId", ANY, "a price"),
    kept("usagePricingTierName", ANY, "a price"),
    kept("modelParameters", ANY, "settings"),
    kept("metadata", ANY, "data of the program"),
    kept("toolDefinitions", ANY, "definitions"),
    kept("toolCalls", MODEL, "a copy of the output"),
    kept("toolCallNames", MODEL, "a copy of the output"),
    kept("scores", ANY, "scores"),
    kept("timeToFirstToken", ANY, "a time"),
];

/// Reads a file.
#[derive(Default)]
struct Langfuse {
    /// Number, observation, and the session or the trace around it.
    observations: Vec<(u64, Object, Option<Arc<str>>)>,
    meta: Vec<Object>,
}

impl Native for Langfuse {
    fn take(&mut self, value: &Object, numbers: &mut u64) -> bool {
        if let Some(traces) = value.get("traces").and_then(Value::as_array) {
            let mut about = value.clone();
            about.remove("traces");
            let session = text(&about, "id").map(Arc::from);
            self.meta.push(about);
            for trace in traces.iter().filter_map(Value::as_object) {
                self.trace(trace, session.clone(), numbers);
            }
            return true;
        }
        if value.contains_key("observations")
            || value.get("trace").is_some_and(|trace| trace.as_object().is_some())
        {
            return self.trace(value, None, numbers);
        }
        if let Some(list) =
            value.get("data").and_then(Value::as_array).filter(|_| !value.contains_key("type"))
        {
            self.list(list.iter(), None, numbers);
            return !list.is_empty();
        }
        let is_one =
            value.contains_key("type") && (value.contains_key("traceId") || value.contains_key("trace_id"));
        if is_one {
            self.list([Value::Object(value.clone())].iter(), None, numbers);
        }
        is_one
    }

    fn end(self: Box<Self>, account: &mut Account) -> Result<Traces, ImportError> {
        let Langfuse { observations, mut meta } = *self;
        let read = |(number, object, conversation): (u64, Object, Option<Arc<str>>)| Span {
            conversation,
            ..read_observation(number, &object, account)
        };
        let spans = observations.into_iter().map(read).collect();
        let meta = match meta.len() {
            0 => Object::default(),
            1 => meta.remove(0),
            _ => {
                let all = Value::array(meta.drain(..).map(Value::Object));
                [(Arc::from("traces"), all)].into_iter().collect()
            }
        };
        Ok(Traces { spans, meta, ..Traces::default() })
    }
}

impl Langfuse {
    /// Takes a trace with its observations, of a session if there is one.
    fn trace(&mut self, value: &Object, session: Option<Arc<str>>, numbers: &mut u64) -> bool {
        let mut about = value.clone();
        let list = about.remove("observations");
        let inner = about.get("trace").and_then(Value::as_object).cloned();
        let mut lists: Vec<Value> = list.into_iter().collect();
        if let Some(mut inner) = inner {
            lists.extend(inner.remove("observations"));
            about.remove("trace");
            for (name, value) in inner.iter() {
                about.set(name, value.clone());
            }
        }
        let run = session.or_else(|| text(&about, "id").map(Arc::from));
        self.meta.push(about);
        for list in &lists {
            match list.as_array() {
                Some(list) => self.list(list.iter(), run.clone(), numbers),
                None => self.list([list.clone()].iter(), run.clone(), numbers),
            }
        }
        !lists.is_empty()
    }

    fn list<'v>(&mut self, list: impl Iterator<Item = &'v Value>, run: Option<Arc<str>>, numbers: &mut u64) {
        for value in list {
            let odd = || [(Arc::from("value"), value.clone())].into_iter().collect();
            let object = value.as_object().cloned().unwrap_or_else(odd);
            self.observations.push((*numbers, object, run.clone()));
            *numbers += 1;
        }
    }
}

/// The observation with its names in one spelling.
fn respelled(object: &Object) -> Object {
    let one = |name: &str| {
        let mut made = String::new();
        let mut is_next = false;
        for letter in name.chars() {
            match letter {
                '_' if !made.is_empty() => is_next = true,
                letter if std::mem::take(&mut is_next) => made.extend(letter.to_uppercase()),
                letter => made.push(letter),
            }
        }
        made
    };
    let pairs = object.iter().map(|(name, value)| {
        let other = one(name);
        let is_known = MEMBERS.iter().any(|row| row.name == other) && !object.contains_key(&other);
        (if is_known { Arc::from(other) } else { Arc::clone(name) }, value.clone())
    });
    pairs.collect()
}

fn text<'o>(object: &'o Object, name: &str) -> Option<&'o str> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Reads an observation.
fn read_observation(number: u64, object: &Object, account: &mut Account) -> Span {
    let at = At::item("", number);
    let content = short(json::to_string(&Value::Object(object.clone())).as_bytes());
    let own = respelled(object);
    let word = text(&own, "type").map(str::to_ascii_uppercase);
    let kind = match word.as_deref() {
        Some("GENERATION") => Kind::Model,
        Some("TOOL") => Kind::Tool,
        Some("AGENT") => Kind::Agent,
        _ => Kind::Other,
    };
    let mut notes = Vec::new();
    account.item(MEMBERS, kind.of(), &own, &at, &mut notes);
    if word.as_deref().is_none_or(|word| !TYPES.contains(&word)) {
        let text = "this is no observation of a type that is known";
        notes.push(ImportNote::not_read(at, &[CALLS, USAGE], text));
    }
    let name = text(&own, "name").unwrap_or("unnamed");
    let mut span = Span {
        number,
        name: name.to_owned(),
        id: text(&own, "id").map(Arc::from),
        parent: text(&own, "parentObservationId").map(Arc::from),
        trace: text(&own, "traceId").unwrap_or_default().into(),
        order: text(&own, "startTime").and_then(moment).map(|time| (time, Arc::from(""))),
        kind,
        content,
        ..Span::default()
    };
    // The trace itself may be named as the parent.
    span.is_parent_elsewhere = span.parent.as_deref() == Some(&*span.trace);
    if text(&own, "level") == Some("ERROR") {
        span.failed = Some(true);
        span.error = text(&own, "statusMessage").map(Value::from);
    }
    span.is_unfinished = own.get("endTime") == Some(&Value::Null);
    let part = |name: &str| own.get(name).map_or(Value::Null, plain);
    let usage = usage(&own);
    match kind {
        Kind::Model => {
            let input = part("input");
            span.inputs = spoken::messages(&input, "user");
            span.outputs = spoken::messages(&part("output"), "assistant");
            span.usage = usage;
        }
        Kind::Tool => {
            tool(&mut span, name, part("input"), part("output"));
            if usage.is_some() {
                notes.push(ImportNote::not_read(
                    format!("{at}/usageDetails"),
                    &[USAGE],
                    "a tool that states a usage",
                ));
            }
        }
        Kind::Agent | Kind::Other => {
            span.agent = (kind == Kind::Agent).then(|| Arc::from(name));
            span.usage = usage;
        }
    }
    span.notes = notes;
    span.rest = own;
    if kind == Kind::Model {
        span.rest.remove("input");
    }
    span
}

/// Fills the call of a tool from what it was given and gave back.
fn tool(span: &mut Span, name: &str, call: Value, output: Value) {
    span.tool = Some(name.to_owned());
    let is_call = call.get("type").and_then(Value::as_str) == Some("tool_call");
    span.call_id = call.get("id").filter(|_| is_call).and_then(Value::as_str).map(str::to_owned);
    let params = if is_call { call.get("args").cloned() } else { Some(call) };
    span.params = params.filter(|params| *params != Value::Null);
    let said = spoken::messages(&output, "tool");
    match said.first().filter(|message| said.len() == 1 && message.contains_key("tool_call_id")) {
        Some(message) => {
            let id = message.get("tool_call_id").and_then(Value::as_str).map(str::to_owned);
            span.call_id = id.or(span.call_id.take());
            span.output = message.get("content").cloned();
            let word = message.get("status").and_then(Value::as_str);
            span.failed = span.failed.or_else(|| dendrer::kernel::status::is_failure(word?));
        }
        None => span.output = Some(output).filter(|output| *output != Value::Null),
    }
}

/// Tokens and cost of an observation, as a chat states them.
fn usage(own: &Object) -> Option<Object> {
    let mut found = Object::default();
    let details = own
        .get("usageDetails")
        .map(plain)
        .filter(|details| details.as_object().is_some_and(|one| !one.is_empty()));
    let details = details.or_else(|| own.get("usage").map(plain));
    let number = |value: Option<&Value>| {
        let value = value?;
        let value = match value.as_str() {
            Some(text) => json::parse_door(text.as_bytes()).ok()?,
            None => value.clone(),
        };
        value.as_f64().is_some_and(|number| number >= 0.0).then_some(value)
    };
    for (name, of) in [
        ("input_tokens", ["input", "inputTokens"]),
        ("output_tokens", ["output", "outputTokens"]),
        ("total_tokens", ["total", "totalTokens"]),
    ] {
        let value = details.as_ref().and_then(|details| of.iter().find_map(|name| number(details.get(name))));
        value.into_iter().for_each(|value| found.set(name, value));
    }
    let cost = own.get("costDetails").map(plain);
    let cost = number(cost.as_ref().and_then(|cost| cost.get("total")));
    let cost =
        cost.or_else(|| ["calculatedTotalCost", "totalCost"].iter().find_map(|name| number(own.get(name))));
    // The numbers of `usageDetails` are apart from each other: without a total, it is the sum of all.
    if !found.contains_key("total_tokens")
        && let Some(details) =
            own.get("usageDetails").map(plain).and_then(|details| details.as_object().cloned())
        && !details.is_empty()
    {
        let mut numbers = details.iter().filter_map(|(_, value)| number(Some(value)));
        let sum = numbers.try_fold(0u64, |sum, value| sum.checked_add(value.as_u64()?));
        sum.into_iter().for_each(|sum| found.set("total_tokens", Value::from(sum)));
    }
    let has_tokens = found.iter().any(|(_, value)| value.as_f64() != Some(0.0));
    if !has_tokens {
        found = Object::default();
    }
    // A cost of 0 with tokens is a model whose price is not known.
    if let Some(cost) = cost.filter(|cost| cost.as_f64() != Some(0.0)) {
        found.set("cost", cost);
    }
    (!found.is_empty()).then_some(found)
}
