//! Events of a stream (WHATWG HTML, server-sent events), as values.

use dendrer_object::{Value, json};

/// Reads the data of the events of a stream: those that are JSON as values, another as a text.
pub(crate) fn events(body: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(body);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let (mut events, mut data): (Vec<Value>, Vec<&str>) = (Vec::new(), Vec::new());
    // A line ends at CR LF, LF or CR.
    let lines = text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'));
    for line in lines.chain([""]) {
        if line.is_empty() {
            if !data.is_empty() {
                events.push(value(&data.join("\n")));
            }
            data.clear();
        } else if let Some(rest) = line.strip_prefix("data:") {
            data.push(rest.strip_prefix(' ').unwrap_or(rest));
        }
    }
    events
}

/// Whether what came so far ends with the last event of an answer.
pub(crate) fn is_last(body: &[u8]) -> bool {
    let ends: [&[u8]; 2] = [b"\n\n", b"\r\n\r\n"];
    let Some(rest) = ends.iter().find_map(|end| body.strip_suffix(*end)) else { return false };
    let begin = (1..rest.len())
        .rev()
        .find(|at| rest[*at - 1] == b'\n' && (rest[*at] == b'\n' || rest[*at..].starts_with(b"\r\n")));
    let last = &rest[begin.unwrap_or(0)..];
    let text = String::from_utf8_lossy(&last[..last.len().min(256)]);
    let first = text.trim_start();
    let names = ["message_stop", "response.completed", "response.incomplete", "response.failed"];
    last.ends_with(b"[DONE]")
        || names
            .iter()
            .any(|name| first.strip_prefix("event:").is_some_and(|rest| rest.trim_start().starts_with(name)))
}

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap_or_else(|_| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_at_an_empty_line_and_may_have_several_lines_of_data() {
        let body =
            b"event: a\ndata: {\"n\":1}\n\n: a comment\r\ndata: {\"n\":\r\ndata:2}\r\n\r\ndata: [DONE]\n\n";
        let events = events(body);
        let shown: Vec<String> = events.iter().map(json::to_string).collect();
        assert_eq!(shown, ["{\"n\":1}", "{\"n\":2}", "\"[DONE]\""]);
    }

    #[test]
    fn a_stream_that_was_cut_gives_what_came() {
        assert_eq!(events(b"data: {\"n\":1}\n\ndata: {\"n\"").len(), 2);
        assert_eq!(events(b""), []);
    }
}
