//! Calls and the contents of messages in words: lists of parts read as what they are.

use dendrer_object::Value;

use crate::quote;

/// Writes a call: the tool, then its parameters.
pub(crate) fn call_words(call: &Value) -> String {
    let tool = call.get("tool").map(|tool| tool.as_str().map_or_else(|| quote::value(tool), quote::name));
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
            let refused = part.get(REFUSAL).filter(|_| kind == REFUSAL).and_then(refusal_words);
            Some(text.map(quote::quoted).or(refused).unwrap_or_else(|| format!("[{}]", quote::escape(kind))))
        }
    };
    let parts = said.as_array().filter(|parts| parts.iter().any(|part| part.get("type").is_some()));
    let words: Option<Vec<String>> = parts.and_then(|parts| parts.iter().map(part).collect());
    words.map_or_else(|| quote::value(said), |words| words.join(" "))
}

/// The type of a part with the words of a model that refuses, and the member with the words, of the part or of its message.
pub(crate) const REFUSAL: &str = "refusal";

/// Writes the words of a refusal; `None` if it has no words.
pub(crate) fn refusal_words(words: &Value) -> Option<String> {
    let words = words.as_str().filter(|words| !words.is_empty())?;
    Some(format!("[{REFUSAL}] {}", quote::quoted(words)))
}

/// As [`content_words`], with everything that a part has.
pub(crate) fn content_whole(said: &Value) -> String {
    let part = |part: &Value| {
        let members = part.as_object()?;
        let kind = part.get("type")?.as_str()?;
        let text = part.get("text").filter(|_| kind.contains("text")).and_then(Value::as_str);
        let refused = members.get(REFUSAL).filter(|_| kind == REFUSAL).and_then(refusal_words);
        let shown = |name: &str| match name {
            "type" => true,
            "text" => text.is_some(),
            REFUSAL => refused.is_some(),
            _ => false,
        };
        let rest = members.iter().filter(|(name, _)| !shown(name));
        let rest: Vec<(String, Value)> =
            rest.map(|(name, value)| (name.to_string(), value.clone())).collect();
        let head = match text {
            None if refused.is_some() => refused.clone().unwrap_or_default(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    #[test]
    fn a_refusal_is_read_with_its_words() {
        let said = parse_door(
            br#"[{"type":"text","text":"a"},{"type":"refusal","refusal":"I cannot"},{"type":"image"}]"#,
        );
        let said = said.unwrap();
        assert_eq!(content_words(&said), r#""a" [refusal] "I cannot" [image]"#);
        assert_eq!(content_whole(&said), r#""a"; [refusal] "I cannot"; [image]"#);
    }
}
