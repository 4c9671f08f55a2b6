//! The members of events that are read or kept.

use crate::import::account::{ANY, Of, Row, kept, read};

const MODEL: &[Of] = &[Of::Model];
const RESULT: &[Of] = &[Of::Result];
const OUTSIDE: &[Of] = &[Of::Outside];

/// The members of an event.
pub(super) static EVENT: &[Row] = &[
    read("event", ANY, "what the event is"),
    read("uuid", ANY, "the event"),
    read("span_id", ANY, "the span above"),
    read("pending", ANY, "whether it had not ended"),
    kept("timestamp", ANY, "a time"),
    kept("working_start", ANY, "a time"),
    kept("working_time", ANY, "a time"),
    kept("completed", ANY, "a time"),
    read("input", MODEL, "messages"),
    read("input_refs", MODEL, "messages"),
    read("output", MODEL, "the answer and its usage"),
    read("role", MODEL, "who speaks, outside of agents"),
    read("cache", MODEL, "whether a cache answered"),
    kept("tools", MODEL, "definitions"),
    kept("tool_choice", MODEL, "a setting"),
    kept("config", MODEL, "settings"),
    kept("call", MODEL, "the request and the answer as they were sent"),
    kept("retries", MODEL, "requests that gave no answer"),
    kept("request_ids", MODEL, "ids of requests"),
    kept("error", MODEL, "a request that gave no answer"),
    kept("traceback", MODEL, "a request that gave no answer"),
    kept("traceback_ansi", MODEL, "a request that gave no answer"),
    read("type", RESULT, "the kind of the call"),
    read("id", RESULT, "the call"),
    read("function", RESULT, "the tool"),
    read("arguments", RESULT, "the arguments"),
    read("result", RESULT, "the output"),
    read("error", RESULT, "whether the call failed"),
    read("failed", RESULT, "whether the call failed"),
    read("agent", RESULT, "the agent that the call begins"),
    kept("agent_span_id", RESULT, "the agent that the call begins"),
    kept("message_id", RESULT, "a message"),
    kept("view", RESULT, "a picture of the call"),
    read("id", OUTSIDE, "the span"),
    read("parent_id", OUTSIDE, "the span above"),
    read("type", OUTSIDE, "the kind of the span"),
    read("name", OUTSIDE, "the span, or the agent"),
    read("changes", OUTSIDE, "changes of the state"),
    read("from_anchor", OUTSIDE, "where a branch begins"),
    read("anchor_id", OUTSIDE, "where a branch begins"),
    read("action", OUTSIDE, "the begin or the end of a step"),
    read("state", OUTSIDE, "the state at the begin"),
    read("error", OUTSIDE, "words"),
    read("message", OUTSIDE, "words"),
    kept("sample", OUTSIDE, "a copy"),
    kept("call", OUTSIDE, "the call that is judged"),
    kept("modified", OUTSIDE, "the call that is judged"),
    kept("view", OUTSIDE, "a picture of the call"),
    kept("result", OUTSIDE, "the end of a command"),
    kept("score", OUTSIDE, "a score"),
    kept("edit", OUTSIDE, "a score"),
    kept("model_usage", OUTSIDE, "a sum"),
    kept("role_usage", OUTSIDE, "a sum"),
    kept("tokens_before", OUTSIDE, "the size of a context"),
    kept("tokens_after", OUTSIDE, "the size of a context"),
    kept("interrupted_tool_call_id", OUTSIDE, "the call that was interrupted"),
    kept("conversation", OUTSIDE, "a copy"),
    kept("status", OUTSIDE, "how a check went"),
];

/// The members of the output of a model.
pub(super) static OUTPUT: &[Row] = &[
    read("choices", MODEL, "the answer"),
    read("usage", MODEL, "tokens and cost"),
    kept("model", MODEL, "the model"),
    kept("completion", MODEL, "a copy"),
    kept("time", MODEL, "a time"),
    kept("error", MODEL, "a request that gave no answer"),
    kept("fallback", MODEL, "the model"),
    kept("input_context_tokens", MODEL, "the size of a context"),
    kept("response_id", MODEL, "an id of the request"),
];

/// The members of a choice.
pub(super) static CHOICE: &[Row] = &[
    read("message", MODEL, "the answer"),
    read("stop_reason", MODEL, "whether the model asked for a call"),
    kept("stop_details", MODEL, "why the model ended"),
    kept("logprobs", MODEL, "numbers"),
    kept("prompt_logprobs", MODEL, "numbers"),
];

/// All tables, each with what it is of.
pub(super) fn all() -> Vec<(&'static str, Vec<Row>)> {
    vec![("an event", EVENT.to_vec()), ("an output", OUTPUT.to_vec()), ("a choice", CHOICE.to_vec())]
}
