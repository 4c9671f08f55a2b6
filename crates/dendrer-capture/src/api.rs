//! The APIs of models, one file each.
//!
//! Rule: nothing outside a file of `api/` asks which API a call has; a difference is a member of [`Api`].

mod anthropic;
mod chat;
mod gemini;
mod merge;
mod responses;

pub use crate::spoken::Api;

/// All APIs.
pub static APIS: [&Api; 4] = [&chat::CHAT, &responses::RESPONSES, &anthropic::MESSAGES, &gemini::CONTENT];

/// Returns the API of a request by its path, which may have a query; `None` if it is another one.
pub fn of_path(method: &str, path: &str) -> Option<&'static Api> {
    let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
    APIS.into_iter().find(|api| method == "POST" && api.paths.iter().any(|end| path.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use dendrer_object::{Value, json};

    use super::*;
    use crate::sse;

    /// An answer of each API, in which every part that a stream cuts has something.
    const ANSWERS: [(&str, &str); 3] = [
        (
            "openai-chat",
            r#"{"choices":[{"finish_reason":"tool_calls","index":0,"message":{"content":"I look","role":"assistant","tool_calls":[{"function":{"arguments":"{\"of\":1}","name":"count"},"id":"c1","type":"function"},{"function":{"arguments":"{}","name":"sum"},"id":"c2","type":"function"}]}}],"id":"r","model":"m","usage":{"total_tokens":3}}"#,
        ),
        (
            "openai-responses",
            r#"{"id":"r","output":[{"id":"m1","type":"message","role":"assistant","content":[{"type":"output_text","text":"I look"}]},{"arguments":"{}","call_id":"c1","id":"f1","name":"count","type":"function_call"}],"status":"completed"}"#,
        ),
        (
            "anthropic",
            r#"{"content":[{"signature":"s","thinking":"hm","type":"thinking"},{"text":"I look","type":"text"},{"id":"c1","input":{"of":[1]},"name":"count","type":"tool_use"}],"id":"r","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":{"input_tokens":1,"output_tokens":2}}"#,
        ),
    ];

    #[test]
    fn a_stream_of_an_answer_is_put_together_to_the_answer() {
        for (name, text) in ANSWERS {
            let api = APIS.into_iter().find(|api| api.name == name).unwrap();
            let answer = json::parse_door(text.as_bytes()).unwrap();
            let asks =
                json::parse_door(br#"{"stream":true,"stream_options":{"include_usage":true}}"#).unwrap();
            let events = (api.stream)(asks.as_object().unwrap(), answer.as_object().unwrap());
            let bytes: Vec<u8> = events.iter().flat_map(|event| event.bytes()).collect();
            let mut whole = (api.gather)(&sse::events(&bytes)).unwrap();
            if let Value::Object(members) = &mut whole {
                members.remove("object");
            }
            assert_eq!(whole, answer, "{name}");
            // A cut stream is no answer.
            let events = sse::events(&bytes);
            assert!((api.gather)(&events[..1]).is_none(), "{name}");
        }
    }
}
