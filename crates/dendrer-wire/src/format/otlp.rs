//! Traces of OpenTelemetry, as a file exporter or a collector writes them: `resourceSpans`, one request a line or one in a file, in
//! JSON or in protobuf.
//!
//! [`ATTRIBUTES`] has the name of each attribute that is read or kept, of the conventions of OpenTelemetry for generative AI, of
//! OpenInference and of OpenLLMetry. Rule: a name is added to the table and never given another meaning, because
//! the version of the kind, `otlp/1`, is that of the table.

mod protobuf;

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::{Arc, LazyLock};

use dendrer::kernel::unknown::{CALLS, FAILURES, SPEAKERS, USAGE};
use dendrer_object::value::{Array, Object};
use dendrer_object::{Digest, Value, json, tag};

use super::openai_chat::Messages;
use crate::foreign::{Format, Head, Surveyed, Visit};
use crate::import::account::{self, ANY, Account, Of, Row, Use};
use crate::import::error::ImportError;
use crate::import::items::Around;
use crate::import::layout::{Choice, Layout};
use crate::import::note::{At, ImportNote, NoteKind};
use crate::import::once::short;
use crate::import::scan::{Fingerprint, Sizes};
use crate::import::spans::{self, Kind, Native, Span, Traces, plain};
use crate::import::spoken;
use crate::import::tokens;

/// The format.
pub(super) static OTLP: Format = Format {
    tables: || vec![("an attribute", ATTRIBUTES.iter().map(Attribute::row).collect())],
    sniff,
    shape: "spans of OpenTelemetry under `resourceSpans`",
    survey,
    items,
    ..Format::new("otlp", "Spans of OpenTelemetry, with calls of models and tools", |_| {
        Box::new(Messages::default())
    })
};

/// Members by which the spans and the logs of a file are known, in both spellings.
const TOPS: [&str; 4] = ["resourceSpans", "resource_spans", "resourceLogs", "resource_logs"];

fn sniff(head: &Head<'_>) -> bool {
    if is_binary(head.bytes) {
        return protobuf::begins(head.bytes);
    }
    let holds = |object: &Object| {
        TOPS.iter().any(|name| object.get(name).is_some_and(|list| list.as_array().is_some()))
    };
    if head.any(holds) {
        return true;
    }
    // One request may be longer than the beginning of its file.
    let text = head.bytes.trim_ascii_start();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let inside = text.strip_prefix(b"[").map_or(text, <[u8]>::trim_ascii_start);
    inside.strip_prefix(b"{").is_some_and(|inside| {
        let inside = inside.trim_ascii_start();
        TOPS.iter().any(|name| inside.starts_with(format!("\"{name}\"").as_bytes()))
    })
}

/// Whether a file is protobuf and no JSON.
fn is_binary(bytes: &[u8]) -> bool {
    let first = &bytes[..bytes.len().min(256)];
    let is_text = first.iter().all(|byte| *byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r'));
    // The length of the first message may be the byte of a bracket.
    let text = first.trim_ascii_start();
    !is_text && (protobuf::begins(first) || !text.starts_with(b"{") && !text.starts_with(b"["))
}

/// The beginning of a source, as far as shows whether it is protobuf.
fn beginning(source: &mut dyn Read) -> Result<Vec<u8>, ImportError> {
    let mut first = Vec::new();
    source.take(256).read_to_end(&mut first).map_err(ImportError::Io)?;
    Ok(first)
}

fn survey(source: &mut dyn Read, choice: &Choice) -> Result<Surveyed, ImportError> {
    let mut bytes = beginning(source)?;
    if !is_binary(&bytes) {
        return spans::survey(&mut bytes.chain(source), choice, Box::<Otlp>::default());
    }
    source.read_to_end(&mut bytes).map_err(ImportError::Io)?;
    let text = protobuf::to_json(&bytes)?;
    let (layout, _, sizes) = spans::survey(&mut text.as_bytes(), choice, Box::<Otlp>::default())?;
    Ok((layout, Fingerprint::of(&bytes), sizes))
}

fn items(
    source: &mut dyn Read,
    layout: &Layout,
    hints: Sizes,
    visit: Visit<'_>,
) -> Result<Around, ImportError> {
    let mut bytes = beginning(source)?;
    if !is_binary(&bytes) {
        return spans::hand_over(&mut bytes.chain(source), layout, hints, Box::<Otlp>::default(), visit);
    }
    source.read_to_end(&mut bytes).map_err(ImportError::Io)?;
    let text = protobuf::to_json(&bytes)?;
    let around = spans::hand_over(&mut text.as_bytes(), layout, hints, Box::<Otlp>::default(), visit)?;
    Ok(Around { fingerprint: Fingerprint::of(&bytes), sha256: Digest::of(&bytes), ..around })
}

/// The meaning of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The kind of the span.
    Kind,
    Conversation,
    Agent,
    /// The tool; of an agent's span, the agent.
    Tool,
    CallId,
    Params,
    Output,
    /// Instructions, messages that a model was given, and messages that it made.
    System,
    Inputs,
    Outputs,
    Answer,
    Finish,
    TokensIn,
    TokensOut,
    Tokens,
    Cost,
    Failure,
    /// It is kept, for this reason.
    Kept(&'static str),
    /// The span is of a program whose attributes are in no table.
    Unread,
}

/// A row of the table: an attribute of some kinds of spans. A name that ends in `.*` is that of all that begin so.
struct Attribute {
    name: &'static str,
    of: &'static [Of],
    what: Meaning,
}

impl Attribute {
    /// The row as the tables of other formats have it.
    fn row(&self) -> Row {
        let what = match self.what {
            Meaning::Kind => Use::Read("the kind of the span"),
            Meaning::Conversation => Use::Read("the conversation"),
            Meaning::Agent => Use::Read("who speaks"),
            Meaning::Tool => Use::Read("the tool"),
            Meaning::CallId => Use::Read("the call"),
            Meaning::Params => Use::Read("the arguments of the call"),
            Meaning::Output => Use::Read("the output of the tool"),
            Meaning::System => Use::Read("instructions"),
            Meaning::Inputs => Use::Read("messages that a model was given"),
            Meaning::Outputs | Meaning::Answer => Use::Read("messages that a model made"),
            Meaning::Finish => Use::Read("how an answer ended"),
            Meaning::TokensIn | Meaning::TokensOut | Meaning::Tokens => Use::Read("tokens"),
            Meaning::Cost => Use::Read("cost"),
            Meaning::Failure => Use::Read("whether the call failed"),
            Meaning::Kept(why) => Use::Kept(why),
            Meaning::Unread => Use::Kept("noted as not read: its program is in no table"),
        };
        Row { name: self.name, of: self.of, what }
    }
}

const fn row(name: &'static str, of: &'static [Of], what: Meaning) -> Attribute {
    Attribute { name, of, what }
}

const MODEL: &[Of] = &[Of::Model];
const TOOL: &[Of] = &[Of::Result];
const OTHER: &[Of] = &[Of::Outside];
/// Usage: a tool has none.
const USING: &[Of] = &[Of::Model, Of::Outside];

const PART: Meaning = Meaning::Kept("a part of another number");
const SETTING: Meaning = Meaning::Kept("a setting");
const DEFINITION: Meaning = Meaning::Kept("a definition");
const SUM: Meaning = Meaning::Kept("a sum of what the spans below state");
const COPY: Meaning = Meaning::Kept("a copy");
const DATA: Meaning = Meaning::Kept("data");

/// The attributes. Of several that state the same, the first counts.
static ATTRIBUTES: &[Attribute] = &[
    // OpenTelemetry, conventions for generative AI: 1.41 and the repository that they moved to.
    row("gen_ai.operation.name", ANY, Meaning::Kind),
    row("gen_ai.conversation.id", ANY, Meaning::Conversation),
    row("gen_ai.agent.name", ANY, Meaning::Agent),
    row("gen_ai.agent.id", ANY, Meaning::Agent),
    row("gen_ai.agent.*", ANY, DATA),
    row("gen_ai.system_instructions", MODEL, Meaning::System),
    row("gen_ai.input.messages", MODEL, Meaning::Inputs),
    row("gen_ai.output.messages", USING, Meaning::Outputs),
    row("gen_ai.response.id", MODEL, Meaning::Answer),
    row("gen_ai.response.finish_reasons", MODEL, Meaning::Finish),
    row("gen_ai.usage.input_tokens", USING, Meaning::TokensIn),
    row("gen_ai.usage.output_tokens", USING, Meaning::TokensOut),
    row("gen_ai.usage.total_tokens", USING, Meaning::Tokens),
    row("gen_ai.usage.cost", USING, Meaning::Cost),
    row("gen_ai.tool.name", TOOL, Meaning::Tool),
    row("gen_ai.tool.call.id", TOOL, Meaning::CallId),
    row("gen_ai.tool.call.arguments", TOOL, Meaning::Params),
    row("gen_ai.tool.call.result", TOOL, Meaning::Output),
    row("gen_ai.tool.definitions", ANY, DEFINITION),
    row("gen_ai.tool.type", ANY, DEFINITION),
    row("gen_ai.tool.description", ANY, DEFINITION),
    row("gen_ai.system_instructions", OTHER, COPY),
    row("gen_ai.input.messages", OTHER, COPY),
    row("gen_ai.usage.cache_read.input_tokens", USING, PART),
    row("gen_ai.usage.cache_creation.input_tokens", USING, PART),
    row("gen_ai.usage.cache_write.input_tokens", USING, PART),
    row("gen_ai.usage.reasoning.output_tokens", USING, PART),
    row("gen_ai.usage.text.input_tokens", USING, PART),
    row("gen_ai.usage.image.input_tokens", USING, PART),
    row("gen_ai.usage.audio.input_tokens", USING, PART),
    row("gen_ai.usage.video.input_tokens", USING, PART),
    row("gen_ai.usage.text.output_tokens", USING, PART),
    row("gen_ai.usage.audio.output_tokens", USING, PART),
    row("gen_ai.request.*", ANY, SETTING),
    row("gen_ai.retrieval.*", ANY, DATA),
    row("gen_ai.memory.*", ANY, DATA),
    row("gen_ai.evaluation.*", ANY, DATA),
    row("gen_ai.workflow.name", ANY, DATA),
    row("error.type", ANY, Meaning::Failure),
    row("error.message", ANY, DATA),
    // The same, before 1.37.
    row("gen_ai.prompt", MODEL, Meaning::Inputs),
    row("gen_ai.completion", MODEL, Meaning::Outputs),
    row("gen_ai.usage.prompt_tokens", USING, Meaning::TokensIn),
    row("gen_ai.usage.completion_tokens", USING, Meaning::TokensOut),
    row("gen_ai.openai.request.*", ANY, SETTING),
    row("gen_ai.openai.response.*", ANY, SETTING),
    row("gen_ai.tool.message", TOOL, Meaning::Output),
    row("gen_ai.prompt.name", ANY, DATA),
    row("gen_ai.prompt.version", ANY, DATA),
    // OpenInference 0.1.42.
    row("openinference.span.kind", ANY, Meaning::Kind),
    row("agent.name", ANY, Meaning::Agent),
    row("llm.input_messages", MODEL, Meaning::Inputs),
    row("llm.output_messages", USING, Meaning::Outputs),
    row("llm.input_messages", OTHER, COPY),
    row("llm.prompts", MODEL, Meaning::Inputs),
    row("llm.token_count.prompt", USING, Meaning::TokensIn),
    row("llm.token_count.completion", USING, Meaning::TokensOut),
    row("llm.token_count.total", USING, Meaning::Tokens),
    row("llm.token_count.*", USING, PART),
    row("llm.cost.total", USING, Meaning::Cost),
    row("llm.cost.*", USING, PART),
    row("llm.finish_reason", MODEL, Meaning::Finish),
    row("llm.tools", ANY, DEFINITION),
    row("llm.invocation_parameters", ANY, SETTING),
    row("llm.prompt_template.*", ANY, DATA),
    row("llm.function_call", MODEL, COPY),
    row("tool.name", TOOL, Meaning::Tool),
    row("tool.id", TOOL, Meaning::CallId),
    row("tool_call.id", TOOL, Meaning::CallId),
    row("tool_call.function.name", TOOL, Meaning::Tool),
    row("tool_call.function.arguments", TOOL, Meaning::Params),
    row("tool.parameters", ANY, DEFINITION),
    row("tool.description", ANY, DEFINITION),
    row("tool.json_schema", ANY, DEFINITION),
    row("input.value", TOOL, Meaning::Params),
    row("output.value", TOOL, Meaning::Output),
    row("input.value", MODEL, Meaning::Inputs),
    row("output.value", MODEL, Meaning::Outputs),
    row("input.value", OTHER, DATA),
    row("output.value", OTHER, DATA),
    row("retrieval.documents", ANY, DATA),
    row("reranker.*", ANY, DATA),
    row("embedding.*", ANY, DATA),
    row("document.*", ANY, DATA),
    row("metadata", ANY, DATA),
    row("tag.tags", ANY, DATA),
    row("graph.node.*", ANY, DATA),
    row("exception.*", ANY, DATA),
    // OpenLLMetry (Traceloop) 0.5.1.
    row("traceloop.span.kind", ANY, Meaning::Kind),
    row("llm.request.type", ANY, Meaning::Kind),
    row("traceloop.entity.name", TOOL, Meaning::Tool),
    row("traceloop.entity.name", OTHER, Meaning::Tool),
    row("traceloop.entity.input", TOOL, Meaning::Params),
    row("traceloop.entity.output", TOOL, Meaning::Output),
    row("traceloop.*", ANY, DATA),
    row("llm.completions", MODEL, Meaning::Outputs),
    row("llm.usage.prompt_tokens", USING, Meaning::TokensIn),
    row("llm.usage.completion_tokens", USING, Meaning::TokensOut),
    row("llm.usage.total_tokens", USING, Meaning::Tokens),
    row("llm.usage.cache_read_input_tokens", USING, PART),
    row("llm.usage.cache_creation_input_tokens", USING, PART),
    row("llm.usage.reasoning_tokens", USING, PART),
    row("gen_ai.usage.cache_read_input_tokens", USING, PART),
    row("gen_ai.usage.cache_creation_input_tokens", USING, PART),
    row("gen_ai.usage.reasoning_tokens", USING, PART),
    row("llm.request.functions", ANY, DEFINITION),
    row("llm.response.finish_reason", MODEL, Meaning::Finish),
    row("llm.response.stop_reason", MODEL, Meaning::Finish),
    row("llm.is_streaming", ANY, SETTING),
    // Logfire and Pydantic AI.
    row("gen_ai.aggregated_usage.*", USING, SUM),
    row("gen_ai.usage.details.*", USING, PART),
    row("operation.cost", USING, Meaning::Cost),
    row("all_messages_events", OTHER, COPY),
    row("pydantic_ai.all_messages", OTHER, COPY),
    row("model_request_parameters", ANY, SETTING),
    row("logfire.*", ANY, DATA),
    // Conventions of other kinds of programs.
    row("http.*", ANY, DATA),
    row("rpc.*", ANY, DATA),
    row("db.*", ANY, DATA),
    row("mcp.*", ANY, DATA),
    row("code.*", ANY, DATA),
    row("otel.*", ANY, DATA),
    // Programs whose attributes are in no table.
    row("mlflow.spanType", ANY, Meaning::Unread),
    row("lmnr.span.type", ANY, Meaning::Unread),
    row("langfuse.observation.type", ANY, Meaning::Unread),
    row("ai.operationId", ANY, Meaning::Unread),
    row("langsmith.span.kind", ANY, Meaning::Unread),
];

/// The members of a span.
const MEMBERS: &[&str] = &[
    "traceId",
    "trace_id",
    "spanId",
    "span_id",
    "parentSpanId",
    "parent_span_id",
    "name",
    "kind",
    "flags",
    "attributes",
    "events",
    "links",
    "status",
    "startTimeUnixNano",
    "start_time_unix_nano",
    "endTimeUnixNano",
    "end_time_unix_nano",
];

/// Places of rows in the table, by name.
static BY_NAME: LazyLock<HashMap<&str, Vec<usize>>> = LazyLock::new(|| {
    let mut found: HashMap<&str, Vec<usize>> = HashMap::new();
    ATTRIBUTES.iter().enumerate().for_each(|(at, row)| found.entry(row.name).or_default().push(at));
    found
});

/// The place in the table of an attribute of a kind of span, by its name or by the beginning of it.
fn lookup(name: &str, of: Of) -> Option<usize> {
    let find = |name: &str| BY_NAME.get(name)?.iter().copied().find(|at| ATTRIBUTES[*at].of.contains(&of));
    find(name).or_else(|| {
        let dots = name.bytes().enumerate().filter(|(_, byte)| *byte == b'.').map(|(at, _)| at);
        let beginnings: Vec<usize> = dots.take(NUMBERED).collect();
        beginnings.into_iter().rev().find_map(|at| find(&format!("{}.*", &name[..at])))
    })
}

/// How many names with dots between them an attribute is taken apart into.
const NUMBERED: usize = 16;

/// Reads a file.
#[derive(Default)]
struct Otlp {
    raw: Vec<Raw>,
    logs: Vec<(u64, Object)>,
    resources: Vec<Value>,
    metrics: u64,
    /// How many fields of protobuf around the spans are in no table.
    unknown: u64,
}

/// A span as it was read, or a value in place of one.
enum Raw {
    Span(u64, Object),
    Odd(u64, Value, String),
}

impl Native for Otlp {
    fn take(&mut self, value: &Object, numbers: &mut u64) -> bool {
        let spans = either(value, "resourceSpans", "resource_spans");
        let logs = either(value, "resourceLogs", "resource_logs");
        let metrics = either(value, "resourceMetrics", "resource_metrics");
        if let Some(list) = spans {
            let scopes = ["scopeSpans", "scope_spans", "instrumentationLibrarySpans"];
            self.walk(list, &scopes, &["spans"], numbers, &mut |reader, number, value| match value {
                Value::Object(span) => reader.raw.push(Raw::Span(number, span.clone())),
                other => reader.odd(number, other, "a span"),
            });
        }
        if let Some(list) = logs {
            let scopes = ["scopeLogs", "scope_logs"];
            let records = ["logRecords", "log_records"];
            self.walk(list, &scopes, &records, numbers, &mut |reader, number, value| match value {
                Value::Object(record) => reader.logs.push((number, record.clone())),
                other => reader.odd(number, other, "a record of a log"),
            });
        }
        self.metrics += u64::from(metrics.is_some());
        self.unknown += unknown(value.get(protobuf::UNKNOWN));
        spans.is_some() || logs.is_some() || metrics.is_some()
    }

    fn end(self: Box<Self>, account: &mut Account) -> Result<Traces, ImportError> {
        let Otlp { raw, logs, resources, metrics, unknown } = *self;
        let mut events: HashMap<(String, String), Vec<(String, Object)>> = HashMap::new();
        let ids: std::collections::HashSet<(String, String)> = raw
            .iter()
            .filter_map(|raw| match raw {
                Raw::Span(_, span) => {
                    Some((id_of(span, "traceId", "trace_id")?, id_of(span, "spanId", "span_id")?))
                }
                Raw::Odd(..) => None,
            })
            .collect();
        let (mut spans, mut beside) = (Vec::new(), 0u64);
        for (number, record) in logs {
            let (name, members) = event_of(&record);
            let of = id_of(&record, "traceId", "trace_id").zip(id_of(&record, "spanId", "span_id"));
            match of.filter(|of| ids.contains(of)) {
                Some(of) => events.entry(of).or_default().push((name, members)),
                None if name.starts_with("gen_ai.") || name.starts_with("claude_code.") => {
                    let text =
                        format!("this record of a log ({name}) is of no span in the file, and is not read");
                    spans.push(unread(number, &Value::Object(record), text));
                }
                None => beside += 1,
            }
        }
        for raw in raw {
            spans.push(match raw {
                Raw::Span(number, object) => read(number, &object, &mut events, account),
                Raw::Odd(number, value, text) => unread(number, &value, text),
            });
        }
        spans.sort_by_key(|span| span.number);
        if let Some(first) = spans.first_mut().filter(|_| unknown > 0) {
            let may = &[CALLS, USAGE, FAILURES, SPEAKERS];
            let text = "fields around the spans are in no table";
            first.notes.push(ImportNote::not_read(format!("/{}", protobuf::UNKNOWN), may, text));
        }
        let counts = [("log_records", beside), ("metrics", metrics), ("unknown_fields", unknown)];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        let meta = counts
            .map(|(name, count)| (name, Value::from(count)))
            .chain((!resources.is_empty()).then(|| ("resources", Value::array(resources))));
        let meta = meta.map(|(name, value)| (Arc::from(name), value)).collect();
        Ok(Traces { spans, meta, ..Traces::default() })
    }
}

/// Takes a record of a request, given its number.
type Record<'r> = &'r mut dyn FnMut(&mut Otlp, u64, &Value);

/// How many different resources are kept.
const RESOURCES: usize = 100;

impl Otlp {
    fn walk(&mut self, list: &Value, scopes: &[&str], records: &[&str], numbers: &mut u64, take: Record<'_>) {
        let Some(resources) = list.as_array() else {
            return self.odd(next(numbers), list, "a list of resources");
        };
        for resource in resources.iter() {
            self.unknown += unknown(resource.get(protobuf::UNKNOWN));
            let about =
                resource.get("resource").map(plain_attributes).filter(|about| *about != Value::object());
            if let Some(about) =
                about.filter(|about| self.resources.len() < RESOURCES && !self.resources.contains(about))
            {
                self.resources.push(about);
            }
            let Some(found) = scopes.iter().find_map(|name| resource.get(name)) else {
                if resource.as_object().is_none() {
                    self.odd(next(numbers), resource, "a resource");
                }
                continue;
            };
            let Some(found) = found.as_array() else {
                self.odd(next(numbers), found, "a list of scopes");
                continue;
            };
            for scope in found.iter() {
                self.unknown += unknown(scope.get(protobuf::UNKNOWN));
                match records.iter().find_map(|name| scope.get(name)) {
                    Some(Value::Array(list)) => list.iter().for_each(|one| take(self, next(numbers), one)),
                    Some(Value::Null) => {}
                    None if scope.as_object().is_some() => {}
                    Some(other) => self.odd(next(numbers), other, "a list of records"),
                    None => self.odd(next(numbers), scope, "a scope"),
                }
            }
        }
    }

    fn odd(&mut self, number: u64, value: &Value, wanted: &str) {
        let text = format!("{wanted} is no {}: it is not read", value.type_name());
        self.raw.push(Raw::Odd(number, value.clone(), text));
    }
}

/// How many fields of a message are in no table.
fn unknown(count: Option<&Value>) -> u64 {
    count.and_then(Value::as_u64).unwrap_or(0)
}

fn next(numbers: &mut u64) -> u64 {
    *numbers += 1;
    *numbers - 1
}

/// A value in place of a span: it is kept, and may state anything.
fn unread(number: u64, value: &Value, text: String) -> Span {
    let note = ImportNote::not_read(At::item("", number), &[CALLS, USAGE, FAILURES, SPEAKERS], text);
    Span {
        number,
        name: "not read".to_owned(),
        order: Some((i128::MAX, Arc::from(""))),
        rest: [(Arc::from("value"), value.clone())].into_iter().collect(),
        notes: vec![note],
        ..Span::default()
    }
}

/// A member in either of its spellings.
fn either<'o>(object: &'o Object, one: &str, other: &str) -> Option<&'o Value> {
    object.get(one).or_else(|| object.get(other)).filter(|value| !matches!(value, Value::Null))
}

/// An id in hexadecimal, which some programs write as base64; `None` if it is empty.
fn id_of(object: &Object, one: &str, other: &str) -> Option<String> {
    let text = either(object, one, other)?.as_str()?;
    let is_hex =
        |text: &str| text.len().is_multiple_of(16) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = match text.len() {
        _ if is_hex(text) => text.to_ascii_lowercase(),
        12 | 24 if text.ends_with('=') => of_base64(text).unwrap_or_else(|| text.to_owned()),
        _ => text.to_owned(),
    };
    (!id.bytes().all(|byte| byte == b'0')).then_some(id)
}

fn of_base64(text: &str) -> Option<String> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(u32::from(byte - b'A')),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    };
    let (mut bits, mut count, mut hex) = (0u32, 0, String::new());
    for byte in text.trim_end_matches('=').bytes() {
        bits = (bits << 6) | digit(byte)?;
        count += 6;
        if count >= 8 {
            count -= 8;
            hex.push_str(&format!("{:02x}", (bits >> count) & 0xff));
        }
    }
    Some(hex)
}

/// A value of an attribute.
fn any(value: &Value) -> Value {
    let Some(object) = value.as_object() else { return value.clone() };
    let [(name, inner)] = &object.iter().collect::<Vec<_>>()[..] else { return value.clone() };
    let list = |inner: &Value| inner.get("values").and_then(Value::as_array).cloned();
    match &***name {
        "stringValue" | "string_value" | "boolValue" | "bool_value" | "bytesValue" | "bytes_value" => {
            (*inner).clone()
        }
        "intValue" | "int_value" | "doubleValue" | "double_value" => match inner.as_str() {
            Some(text) => match json::parse_door(text.trim().as_bytes()) {
                Ok(number @ Value::Number(_)) => number,
                _ => (*inner).clone(),
            },
            None => (*inner).clone(),
        },
        "arrayValue" | "array_value" => Value::array(list(inner).iter().flat_map(Array::iter).map(any)),
        "kvlistValue" | "kvlist_value" => {
            pairs(&Value::Array(list(inner).unwrap_or_default())).0.into_value()
        }
        _ => value.clone(),
    }
}

/// Attributes by their names, as the source spells them.
#[derive(Debug, Default)]
struct Named(BTreeMap<String, Value>);

impl Named {
    fn into_value(self) -> Value {
        Value::Object(self.0.into_iter().map(|(name, value)| (tag::stored_name(&name), value)).collect())
    }
}

/// Reads attributes. Returns the items that are no attributes, and names with several values, as well.
fn pairs(value: &Value) -> (Named, Vec<Value>) {
    let (mut named, mut odd) = (Named::default(), Vec::new());
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (tag::user_name(name).to_owned(), any(value)));
            named.0.extend(members);
        }
        Value::Array(items) => {
            for item in items.iter() {
                let pair = item
                    .get("key")
                    .and_then(Value::as_str)
                    .zip(Some(item.get("value").map_or(Value::Null, any)));
                match pair {
                    Some((key, value)) => match named.0.get(key) {
                        Some(known) if *known != value => odd.push(item.clone()),
                        _ => drop(named.0.insert(key.to_owned(), value)),
                    },
                    None => odd.push(item.clone()),
                }
            }
        }
        Value::Null => {}
        other => odd.push(other.clone()),
    }
    (named, odd)
}

/// A resource with its attributes by name.
fn plain_attributes(resource: &Value) -> Value {
    pairs(resource.get("attributes").unwrap_or(&Value::Null)).0.into_value()
}

/// An attribute with numbers in its name, as a tree of the parts of the name.
#[derive(Default)]
struct Tree {
    value: Option<Value>,
    below: BTreeMap<String, Tree>,
}

impl Tree {
    fn into_value(mut self) -> Value {
        match self.value.take() {
            Some(value) if self.below.is_empty() => return value,
            // The name is that of a value, and the beginning of other names.
            Some(value) => self.below.entry("value".to_owned()).or_default().value = Some(value),
            None => {}
        }
        let numbers: Option<BTreeMap<u64, &String>> =
            self.below.keys().map(|name| Some((name.parse().ok()?, name))).collect();
        match numbers {
            Some(numbers) if numbers.len() == self.below.len() => {
                let order: Vec<String> = numbers.into_values().cloned().collect();
                let mut below = self.below;
                Value::array(order.iter().filter_map(|name| below.remove(name)).map(Tree::into_value))
            }
            _ => {
                let members = self.below.into_iter();
                Value::Object(
                    members.map(|(name, tree)| (tag::stored_name(&name), tree.into_value())).collect(),
                )
            }
        }
    }
}

/// Puts attributes like `llm.input_messages.0.message.role` together: one list under the name before the number.
fn grouped(named: Named) -> Named {
    let mut groups: BTreeMap<String, Tree> = BTreeMap::new();
    let mut made = Named::default();
    for (name, value) in named.0 {
        let parts: Vec<&str> = name.split('.').collect();
        let is_number = |part: &&str| {
            !part.is_empty() && part.len() < 10 && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let Some(at) = parts.iter().position(is_number).filter(|at| *at > 0 && parts.len() <= NUMBERED)
        else {
            made.0.insert(name, value);
            continue;
        };
        let mut tree = groups.entry(parts[..at].join(".")).or_default();
        for part in &parts[at..] {
            tree = tree.below.entry((*part).to_owned()).or_default();
        }
        tree.value = Some(value);
    }
    for (name, tree) in groups {
        let name = if made.0.contains_key(&name) { format!("{name}.N") } else { name };
        made.0.insert(name, tree.into_value());
    }
    made
}

/// The name and the members of an event, or of a record of a log that is one.
fn event_of(event: &Object) -> (String, Object) {
    let mut named = pairs(event.get("attributes").unwrap_or(&Value::Null)).0;
    if let Some(Value::Object(body)) = event.get("body").map(any) {
        body.iter()
            .for_each(|(name, value)| drop(named.0.insert(tag::user_name(name).to_owned(), value.clone())));
    }
    let own = either(event, "eventName", "event_name").or_else(|| event.get("name")).and_then(Value::as_str);
    let own = own.filter(|name| !name.is_empty()).map(str::to_owned);
    let name = own.or_else(|| Some(named.0.get("event.name")?.as_str()?.to_owned())).unwrap_or_default();
    let members = match named.into_value() {
        Value::Object(members) => members,
        _ => Object::default(),
    };
    (name, members)
}

/// Returns the kind of a span by its attributes.
fn kind_of(named: &Named) -> Kind {
    let text = |name: &str| named.0.get(name).and_then(Value::as_str);
    let has = |name: &str| named.0.contains_key(name);
    match text("gen_ai.operation.name") {
        Some("chat" | "generate_content" | "text_completion") => return Kind::Model,
        Some("execute_tool") => return Kind::Tool,
        Some("invoke_agent" | "create_agent") => return Kind::Agent,
        Some(_) => return Kind::Other,
        None => {}
    }
    if let Some(kind) = text("openinference.span.kind") {
        return match kind.to_ascii_uppercase().as_str() {
            "LLM" => Kind::Model,
            "TOOL" => Kind::Tool,
            "AGENT" => Kind::Agent,
            _ => Kind::Other,
        };
    }
    match (text("traceloop.span.kind"), text("llm.request.type")) {
        (Some("tool"), _) => return Kind::Tool,
        (Some("agent"), _) => return Kind::Agent,
        (Some(_), _) => return Kind::Other,
        (None, Some("chat" | "completion")) => return Kind::Model,
        (None, Some(_)) => return Kind::Other,
        (None, None) => {}
    }
    let is_model = (has("gen_ai.system") || has("gen_ai.provider.name") || has("gen_ai.request.model"))
        && ["gen_ai.prompt", "gen_ai.completion", "gen_ai.input.messages", "gen_ai.output.messages"]
            .iter()
            .any(|name| has(name));
    match () {
        () if has("gen_ai.tool.call.id") || has("gen_ai.tool.call.arguments") => Kind::Tool,
        () if is_model => Kind::Model,
        () if has("gen_ai.request.model") && has("gen_ai.response.id") => Kind::Model,
        () => Kind::Other,
    }
}

/// Attributes of a span that the table has, in its order.
#[derive(Default)]
struct Stated(Vec<(usize, String, Value)>);

impl Stated {
    fn all(&self, what: Meaning) -> impl Iterator<Item = (&str, &Value)> {
        self.0
            .iter()
            .filter(move |(at, ..)| ATTRIBUTES[*at].what == what)
            .map(|(_, name, value)| (&**name, value))
    }

    fn text(&self, what: Meaning) -> Option<&str> {
        self.all(what).find_map(|(_, value)| value.as_str().filter(|text| !text.trim().is_empty()))
    }

    /// A number that is stated; none, and a note, if it is stated twice and differs.
    fn number(&self, what: Meaning, at: At<'_>, notes: &mut Vec<ImportNote>) -> Option<Value> {
        let mut found: Option<(&str, Value)> = None;
        for (name, value) in self.all(what) {
            let value = match value.as_str() {
                Some(text) => json::parse_door(text.as_bytes()).unwrap_or(Value::Null),
                None => value.clone(),
            };
            let Some(number) = value.as_f64().filter(|number| *number >= 0.0) else { continue };
            match &found {
                None => found = Some((name, value)),
                Some((_, known)) if known.as_f64() == Some(number) => {}
                Some((first, _)) => {
                    let text = format!("{first} and {name} state other numbers");
                    notes.push(ImportNote::not_read(at, &[USAGE], text));
                    return None;
                }
            }
        }
        found.map(|(_, value)| value)
    }
}

/// Reads a span.
fn read(
    number: u64,
    object: &Object,
    events: &mut HashMap<(String, String), Vec<(String, Object)>>,
    account: &mut Account,
) -> Span {
    let at = At::item("", number);
    let content = short(json::to_string(&Value::Object(object.clone())).as_bytes());
    let (trace, id) = (id_of(object, "traceId", "trace_id"), id_of(object, "spanId", "span_id"));
    let (mut named, odd) = pairs(object.get("attributes").unwrap_or(&Value::Null));
    let mut notes = Vec::new();
    let mut told: Vec<(String, Object)> = Vec::new();
    if let Some(list) = object.get("events").and_then(Value::as_array) {
        told.extend(list.iter().filter_map(Value::as_object).map(event_of));
    }
    if let Some(of) = trace.clone().zip(id.clone()) {
        told.extend(events.remove(&of).unwrap_or_default());
    }
    for (_, members) in told.iter().filter(|(name, _)| name == "gen_ai.client.inference.operation.details") {
        let members = members.iter().map(|(name, value)| (tag::user_name(name).to_owned(), value.clone()));
        for (name, value) in members {
            named.0.entry(name).or_insert(value);
        }
    }
    let named = grouped(named);
    let kind = kind_of(&named);
    let (stated, unknown) = sorted(named, kind, account);
    account.item(&[], kind.of(), &unknown.looked, &at, &mut notes);
    account::within(MEMBERS, kind.of(), object, &at, &mut notes);
    note_losses(object, &stated, kind, !odd.is_empty(), at, &mut notes);
    let mut span = Span {
        number,
        name: object.get("name").and_then(Value::as_str).unwrap_or("unnamed").to_owned(),
        id: id.map(Arc::from),
        parent: id_of(object, "parentSpanId", "parent_span_id").map(Arc::from),
        // Bits 8 and 9 say that it is known whether the parent is in another process, and that it is.
        is_parent_elsewhere: object
            .get("flags")
            .and_then(Value::as_u64)
            .is_some_and(|flags| flags & 0x300 == 0x300),
        trace: trace.unwrap_or_default().into(),
        conversation: stated.text(Meaning::Conversation).map(Arc::from),
        order: time(object, "startTimeUnixNano", "start_time_unix_nano").map(|time| (time, Arc::from(""))),
        kind,
        content,
        ..Span::default()
    };
    span.agent = stated.text(Meaning::Agent).map(Arc::from);
    if kind == Kind::Agent && span.agent.is_none() {
        let named = span.name.strip_prefix("invoke_agent ").map(str::trim);
        span.agent = stated.text(Meaning::Tool).or(named).filter(|name| !name.is_empty()).map(Arc::from);
    }
    let taken = fill(&mut span, &stated, &told, &mut notes);
    status(&mut span, object, &stated, &told, &mut notes);
    span.is_unfinished = time(object, "endTimeUnixNano", "end_time_unix_nano").is_none();
    span.notes = notes;
    span.rest = rest(object, stated, unknown.kept, odd, told, &taken);
    span
}

/// Notes attributes and events that are missing, and a span of a program that the table does not have.
fn note_losses(
    object: &Object,
    stated: &Stated,
    kind: Kind,
    has_odd: bool,
    at: At<'_>,
    notes: &mut Vec<ImportNote>,
) {
    if has_odd {
        let text = "attributes without a name, or twice with several values, are not read";
        notes.push(ImportNote::not_read(format!("{at}/attributes"), &[CALLS, USAGE, FAILURES], text));
    }
    for (one, other) in [
        ("droppedAttributesCount", "dropped_attributes_count"),
        ("droppedEventsCount", "dropped_events_count"),
    ] {
        if either(object, one, other).is_some_and(|count| !matches!(count.as_f64(), Some(0.0))) {
            let text = "attributes or events of this span were dropped before it was written";
            notes.push(ImportNote::not_read(format!("{at}/{one}"), &[CALLS, USAGE, FAILURES], text));
        }
    }
    if object.contains_key(protobuf::UNKNOWN) {
        let may = &[CALLS, USAGE, FAILURES, SPEAKERS];
        let text = "fields of this span are in no table";
        notes.push(ImportNote::not_read(format!("{at}/{}", protobuf::UNKNOWN), may, text));
    }
    let unread = stated.all(Meaning::Unread).next().map(|(name, _)| name.to_owned());
    if let Some(name) = unread.filter(|_| kind == Kind::Other) {
        let text = format!("a span with {name} is of a program whose attributes are in no table");
        notes.push(ImportNote::not_read(format!("{at}/{name}"), &[CALLS, USAGE, FAILURES], text));
    }
}

/// Attributes of no table: as they are kept, and as they are looked through.
#[derive(Default)]
struct Unknown {
    kept: Vec<(String, Value)>,
    looked: Object,
}

/// Divides attributes by the table.
fn sorted(named: Named, kind: Kind, account: &mut Account) -> (Stated, Unknown) {
    let (mut stated, mut unknown) = (Stated::default(), Unknown::default());
    let mut looked: Vec<(Arc<str>, Value)> = Vec::new();
    for (name, value) in named.0 {
        match lookup(&name, kind.of()) {
            Some(at) => {
                let what = match ATTRIBUTES[at].what {
                    Meaning::Kept(why) => Use::Kept(why),
                    _ => Use::Read("see the table"),
                };
                if ATTRIBUTES[at].what != Meaning::Unread {
                    account.member(ATTRIBUTES[at].name, what);
                }
                stated.0.push((at, name, value));
            }
            None => {
                looked.push((tag::stored_name(&name), plain(&value)));
                unknown.kept.push((name, value));
            }
        }
    }
    stated.0.sort_by_key(|(at, ..)| *at);
    unknown.looked = looked.into_iter().collect();
    (stated, unknown)
}

fn time(object: &Object, one: &str, other: &str) -> Option<i128> {
    let value = either(object, one, other)?;
    let time: i128 = match value.as_str() {
        Some(text) => text.trim().parse().ok()?,
        None => i128::from(value.as_u64()?),
    };
    (time > 0).then_some(time)
}

/// Fills in what a span states by its kind. Returns the meanings that are read, and so not kept again.
fn fill(
    span: &mut Span,
    stated: &Stated,
    told: &[(String, Object)],
    notes: &mut Vec<ImportNote>,
) -> Vec<Meaning> {
    let at = At::item("", span.number);
    let usage = usage_of(stated, at, notes);
    let states_usage = usage.iter().any(|(_, value)| value.as_f64() != Some(0.0));
    match span.kind {
        Kind::Model => {
            note_parts(stated, &usage, at, notes);
            span.usage = (!usage.is_empty()).then_some(usage);
            span.answer = stated.text(Meaning::Answer).map(str::to_owned);
            let first = |what, role: &str| {
                stated
                    .all(what)
                    .map(|(_, value)| spoken::messages(value, role))
                    .find(|found| !found.is_empty())
            };
            let (told_in, told_out) = messages_of(told);
            let mut inputs = first(Meaning::Inputs, "user").unwrap_or(told_in);
            let has_system = |inputs: &[Object]| {
                inputs.first().is_some_and(|one| one.get("role").and_then(Value::as_str) == Some("system"))
            };
            if let Some(system) = first(Meaning::System, "system").filter(|_| !has_system(&inputs)) {
                inputs.splice(0..0, system);
            }
            span.inputs = inputs;
            span.outputs = first(Meaning::Outputs, "assistant").unwrap_or(told_out);
            let finish = stated.all(Meaning::Finish).map(|(_, value)| json::to_string(value));
            let ends =
                span.outputs.iter().filter_map(|message| message.get("finish_reason")).map(json::to_string);
            span.says_calls =
                finish.chain(ends).any(|text| text.contains("tool") || text.contains("function_call"));
            vec![Meaning::Inputs, Meaning::Outputs, Meaning::System]
        }
        Kind::Tool => {
            let named = span.name.strip_prefix("execute_tool ").map(str::to_owned);
            span.tool = stated.text(Meaning::Tool).map(str::to_owned).or(named);
            span.call_id = stated.text(Meaning::CallId).map(str::to_owned);
            span.params = stated.all(Meaning::Params).next().map(|(_, value)| value.clone());
            span.output = stated.all(Meaning::Output).next().map(|(_, value)| value.clone());
            vec![Meaning::Params, Meaning::Output]
        }
        Kind::Agent | Kind::Other => {
            span.usage = states_usage.then_some(usage);
            span.outputs = stated
                .all(Meaning::Outputs)
                .flat_map(|(_, value)| spoken::messages(value, "assistant"))
                .collect();
            Vec::new()
        }
    }
}

/// The tokens and the cost that a span states.
fn usage_of(stated: &Stated, at: At<'_>, notes: &mut Vec<ImportNote>) -> Object {
    let mut usage = Object::default();
    for (what, name) in [
        (Meaning::TokensIn, "input_tokens"),
        (Meaning::TokensOut, "output_tokens"),
        (Meaning::Tokens, "total_tokens"),
        (Meaning::Cost, "cost"),
    ] {
        if let Some(value) = stated.number(what, at, notes) {
            usage.set(name, value);
        }
    }
    usage
}

/// Notes a part of the tokens that is larger than the whole that it is of.
fn note_parts(stated: &Stated, usage: &Object, at: At<'_>, notes: &mut Vec<ImportNote>) {
    let mut whole = usage.clone();
    for (name, value) in stated.all(PART) {
        let is_of_output = ["output", "completion", "reasoning", "thought", "candidates"]
            .iter()
            .any(|word| name.contains(word));
        whole.set(if is_of_output { "output_token_details" } else { "input_token_details" }, plain(value));
        if let Err(doubt) = tokens::of(&whole, false)
            && !doubt.is_contradiction
        {
            notes.push(ImportNote::not_read(format!("{at}/attributes/{name}"), &[USAGE], doubt.text));
            return;
        }
    }
}

/// The messages that events have: those that a model was given, and those that it made.
fn messages_of(told: &[(String, Object)]) -> (Vec<Object>, Vec<Object>) {
    let (mut given, mut made) = (Vec::new(), Vec::new());
    for (name, members) in told {
        let role = match name.as_str() {
            "gen_ai.system.message" => "system",
            "gen_ai.user.message" => "user",
            "gen_ai.assistant.message" | "gen_ai.choice" => "assistant",
            "gen_ai.tool.message" => "tool",
            "gen_ai.content.prompt" => {
                given.extend(
                    members.get("gen_ai.prompt").iter().flat_map(|value| spoken::messages(value, "user")),
                );
                continue;
            }
            "gen_ai.content.completion" => {
                let value = members.get("gen_ai.completion");
                made.extend(value.iter().flat_map(|value| spoken::messages(value, "assistant")));
                continue;
            }
            _ => continue,
        };
        let inner = members.get("gen_ai.event.content").map(plain);
        let own = inner.as_ref().and_then(Value::as_object).unwrap_or(members);
        let mut message = Object::default();
        for (name, value) in own.iter() {
            // A member of the event is no member of the message.
            if name.contains('.') {
                continue;
            }
            let value = match &**name {
                "message" | "tool_calls" => plain(value),
                _ => value.clone(),
            };
            message.set(name, value);
        }
        let mut message = spoken::message(&message, role);
        if let Some(id) = message.get("id").cloned().filter(|_| role == "tool") {
            message.remove("id");
            message.set("tool_call_id", id);
        }
        message.remove("index");
        if name == "gen_ai.choice" { made.push(message) } else { given.push(message) }
    }
    (given, made)
}

/// Reads the status of a span.
fn status(
    span: &mut Span,
    object: &Object,
    stated: &Stated,
    told: &[(String, Object)],
    notes: &mut Vec<ImportNote>,
) {
    let status = object.get("status").cloned().unwrap_or(Value::Null);
    let code = status.get("code").cloned().unwrap_or(Value::Null);
    let word = code.as_str().map(|word| word.trim_start_matches("STATUS_CODE_").to_ascii_uppercase());
    let by_code = match (code.as_u64(), word.as_deref()) {
        (Some(2), _) | (_, Some("ERROR" | "2")) => Some(true),
        (Some(1), _) | (_, Some("OK" | "1")) => Some(false),
        (Some(0), _) | (_, Some("UNSET" | "0" | "")) => None,
        _ if code == Value::Null => None,
        _ => {
            if span.kind == Kind::Tool {
                let text = "the status of this span is a word that is not known";
                notes.push(ImportNote::new(
                    NoteKind::StatusUnknown,
                    format!("{}/status", At::item("", span.number)),
                    text,
                ));
            }
            None
        }
    };
    let kind = stated.text(Meaning::Failure);
    span.failed = if kind.is_some() { Some(true) } else { by_code };
    if span.failed == Some(true) {
        let words = |value: Option<&Value>| {
            value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let thrown = told.iter().find(|(name, _)| name == "exception").map(|(_, members)| members);
        let text = words(status.get("message"))
            .or_else(|| words(thrown?.get("exception.message")))
            .or_else(|| kind.map(str::to_owned));
        span.error = text.map(Value::from);
    }
}

/// Returns the kept members of a span: its own, the attributes that are not read as messages, and its events.
fn rest(
    object: &Object,
    stated: Stated,
    unknown: Vec<(String, Value)>,
    odd: Vec<Value>,
    told: Vec<(String, Object)>,
    taken: &[Meaning],
) -> Object {
    let mut members: Vec<(Arc<str>, Value)> = object
        .iter()
        .filter(|(name, _)| !matches!(&***name, "attributes" | "events"))
        .map(|(name, value)| (Arc::clone(name), value.clone()))
        .collect();
    let known = stated.0.into_iter().filter(|(at, ..)| !taken.contains(&ATTRIBUTES[*at].what));
    let kept = Named(known.map(|(_, name, value)| (name, value)).chain(unknown).collect());
    if !kept.0.is_empty() {
        members.push((Arc::from("attributes"), kept.into_value()));
    }
    if !odd.is_empty() {
        members.push((Arc::from("attributes_not_read"), Value::array(odd)));
    }
    let is_read = |name: &str| {
        !taken.is_empty()
            && name.starts_with("gen_ai.")
            && (name.ends_with(".message")
                || name.starts_with("gen_ai.content.")
                || matches!(name, "gen_ai.choice" | "gen_ai.client.inference.operation.details"))
    };
    let events: Vec<Value> = told
        .into_iter()
        .filter(|(name, _)| !is_read(name))
        .map(|(name, members)| {
            Value::record([("attributes", Value::Object(members)), ("name", Value::from(name))])
        })
        .collect();
    if !events.is_empty() {
        members.push((Arc::from("events"), Value::array(events)));
    }
    members.into_iter().collect()
}
