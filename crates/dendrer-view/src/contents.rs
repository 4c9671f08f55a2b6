//! Calls and the contents of messages in words: lists of parts read as what they are.

use dendrer_object::Value;

use crate::quote;

/// Writes a call: the tool, then its parameters.
pub(crate) fn call_words(call: &Value) -> String {
    let tool = call.get("tool").map(|tool| tool.as_str().map_or_else(|| quote::value(tool), quote::escape));
    let params = call.get("params").filter(|params| **params != Value::Null).map(quote::value);
    tool.into_iter().chain(params).collect::<Vec<_>>().join(" ")
}

/// Writes what a message contains: a list of parts as its texts in quotes and the kinds of the others in brackets.
pub(crate) fn content_words(said: &Value) -> String {
    let part = |part: &Value| match part {
        Value::String(text) => Some(quote::quoted(text)),
        _ => {
            let kind = part.get("type")?.as_str()?;
            let text = part.get("text").filter(|_| kind.contains("text")).and_then(Value::as_str);
            Some(text.map_or_else(|| format!("[{}]", quote::escape(kind)), quote::quoted))
        }
    };
    let parts = said.as_array().filter(|parts| parts.iter().any(|part| part.get("type").is_some()));
    let words: Option<Vec<String>> = parts.and_then(|parts| parts.iter().map(part).collect());
    words.map_or_else(|| quote::value(said), |words| words.join(" "))
}

/// As [`content_words`], with everything that a part has.
pub(crate) fn content_whole(said: &Value) -> String {
    let part = |part: &Value| {
        let members = part.as_object()?;
        let kind = part.get("type")?.as_str()?;
        let text = part.get("text").filter(|_| kind.contains("text")).and_then(Value::as_str);
        let rest =
            members.iter().filter(|(name, _)| &***name != "type" && (text.is_none() || &***name != "text"));
        let rest: Vec<(String, Value)> =
            rest.map(|(name, value)| (name.to_string(), value.clone())).collect();
        let head = match text {
            Some(text) if kind == "text" => quote::quoted(text),
            Some(text) => format!("[{}] {}", quote::escape(kind), quote::quoted(text)),
            None => format!("[{}]", quote::escape(kind)),
        };
        let rest = (!rest.is_empty()).then(|| quote::value(&Value::record(rest)));
        Some([head].into_iter().chain(rest).collect::<Vec<_>>().join(" "))
    };
    let parts = said.as_array().filter(|parts| !parts.is_empty());
    let words: Option<Vec<String>> = parts.and_then(|parts| parts.iter().map(part).collect());
    words.map_or_else(|| quote::value(said), |words| words.join("; "))
}
