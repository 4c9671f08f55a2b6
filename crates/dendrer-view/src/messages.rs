//! Messages that a put or a write adds to a thread, as words: in the row of a log, and line by line.

use dendrer::kernel::status;
use dendrer_object::{MESSAGES, Value};

use crate::answer::{Line, Style};
use crate::{contents, quote};

/// The messages of a transition.
fn of(content: &Value) -> impl Iterator<Item = &Value> {
    content.get(MESSAGES).and_then(Value::as_array).into_iter().flat_map(|list| list.iter())
}

fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

fn says(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool) == Some(true)
}

/// Whether a message is the result of a call that failed, or the failure of a node.
fn is_failure(message: &Value) -> bool {
    message.get("result").is_some_and(|result| text(result, "status").is_none_or(status::is_failed))
}

/// One message in a few words: who speaks, a failure, calls, what is said.
fn words(message: &Value) -> String {
    let (agent, role) = (text(message, "agent"), text(message, "role"));
    let speaker = match agent.filter(|agent| role != Some(*agent)) {
        Some(agent) => quote::name(agent),
        None => quote::escape(role.unwrap_or("?")),
    };
    let mut parts = vec![format!("{speaker}:")];
    match text(message, "role") {
        Some("interrupt") => parts.push("interrupt".to_owned()),
        Some("node") => parts.push("ran".to_owned()),
        Some("remove") => parts.push("message removed".to_owned()),
        Some("error") => parts.push("FAIL node".to_owned()),
        _ => {}
    }
    parts.extend(says(message, "edited").then(|| "edited".to_owned()));
    parts.extend(says(message, "repeated").then(|| "repeated".to_owned()));
    if let Some(result) = message.get("result").filter(|_| text(message, "role") != Some("error")) {
        let status = text(result, "status");
        parts.push(match status {
            Some(word) => quote::status(word),
            None => "status unknown".to_owned(),
        });
        parts.extend(text(result, "tool").map(quote::name));
    }
    let calls = message.get("calls").and_then(Value::as_array);
    for call in calls.into_iter().flat_map(|calls| calls.iter()).filter(|call| !says(call, "repeated")) {
        let params = call.get("params").map(quote::value).unwrap_or_default();
        parts.push(
            format!("calls {} {params}", text(call, "tool").map_or_else(|| "?".to_owned(), quote::name))
                .trim_end()
                .to_owned(),
        );
    }
    match message.get("content") {
        None | Some(Value::Null) => {}
        Some(Value::String(said)) if said.is_empty() => {}
        Some(Value::String(said)) => parts.push(quote::quoted(said)),
        Some(said) => parts.push(contents::content_words(said)),
    }
    parts.extend(text(message, "id").filter(|_| parts.len() == 1).map(quote::escape));
    parts.join(" ")
}

/// The messages of a transition in one line; failures come first. Nothing if it adds none.
pub(crate) fn summary(content: &Value) -> Option<String> {
    let is_new = |message: &&Value| !says(message, "repeated") || is_failure(message);
    let (failed, others): (Vec<&Value>, Vec<&Value>) =
        of(content).filter(is_new).partition(|one| is_failure(one));
    let all: Vec<String> = failed.into_iter().chain(others).map(words).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// A line for each message of a transition.
pub(crate) fn lines(content: &Value, more: &[String]) -> Vec<Line> {
    let line = |message: &Value| {
        let tokens = message.get("usage").and_then(|usage| usage.get("tokens_used")?.as_f64());
        let tokens = tokens.map(|tokens| format!("   {tokens} tokens")).unwrap_or_default();
        let id = text(message, "id").map(|id| format!("   id {}", quote::escape(id))).unwrap_or_default();
        let line = Line::value(format!("message  {}{tokens}{id}", words(message)), more.to_vec());
        if is_failure(message) { line.paint(Style::Warn) } else { line }
    };
    of(content).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    #[test]
    fn messages_are_written_in_a_few_words() {
        let content = r#"{"messages":[{"agent":"user","role":"user","content":"Pay 3","id":"h1"},
            {"agent":"model","role":"assistant","id":"a1","content":"","calls":[{"tool":"pay","params":{"n":3}}],"usage":{"tokens_used":6100}},
            {"agent":"tool","role":"tool","content":"card declined","result":{"tool":"pay","status":"error"}},
            {"role":"tool","id":"t1","repeated":true,"of":{"tick":1,"item":0}},
            {"agent":"ask","role":"interrupt","content":"go on?"},{"agent":"plan","role":"error","content":"ValueError('x')","result":{"status":"error"}},
            {"agent":"done","role":"node"}]}"#;
        let content = parse_door(content.as_bytes()).unwrap();
        assert_eq!(
            summary(&content).unwrap(),
            r#"tool: FAIL error pay "card declined"; plan: FAIL node "ValueError('x')"; user: "Pay 3"; model: calls pay {"n":3}; ask: interrupt "go on?"; done: ran"#
        );
        let lines: Vec<String> = lines(&content, &[]).iter().map(|line| line.text().to_string()).collect();
        assert_eq!(lines.len(), 7);
        assert_eq!(lines[1], r#"message  model: calls pay {"n":3}   6100 tokens   id a1"#);
        assert_eq!(lines[3], "message  tool: repeated   id t1");
        assert_eq!(summary(&parse_door(b"{}").unwrap()), None);
    }
}
