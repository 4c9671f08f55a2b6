//! Lines of JSON-RPC between clients and servers of MCP, and when two names are of the same tool.

use std::collections::BTreeSet;

use dendrer_object::value::Object;
use dendrer_object::{Digest, Value, json};

use crate::body::BodyFault;
use crate::exchange::CallNumber;
pub use crate::frame::{McpEnd, McpSide};

/// The name of this protocol in records.
pub(crate) const MCP: &str = "mcp";

/// Whether `intent.capture` is that of something that came over MCP.
pub(crate) fn is_mcp(capture: &Value) -> bool {
    capture.get("api") == Some(&Value::from(MCP))
}

/// Something that passed between a client and a server.
#[derive(Debug, Clone)]
pub struct McpCopy {
    /// Which server of the recording, from 1. A server that is started twice is two.
    pub server: u64,
    /// The part that passed.
    pub what: McpCopied,
}

/// See [`McpCopy`].
#[derive(Debug, Clone)]
pub enum McpCopied {
    /// A client started the server.
    Begun {
        /// The name that `mcp-shim --name` has.
        name: Option<String>,
        /// The command, as the shim got it.
        command: Vec<String>,
    },
    /// A line, whole or not.
    Line(McpLine),
    /// The server ended; `None` if the shim ended without a word.
    Ended(Option<McpEnd>),
    /// All that shims copied before the tape asked so is in front of this.
    Synced(u64),
}

/// A line that one side sent.
#[derive(Debug, Clone)]
pub struct McpLine {
    /// The side that sent it.
    pub from: McpSide,
    /// When its end was copied, in nanoseconds of a clock of the machine; 0 if that is not known.
    pub at: u64,
    /// Its bytes, without the end of line.
    pub bytes: Vec<u8>,
    /// Its messages, or a word for the record why it cannot be read.
    pub(crate) said: Result<Vec<McpSaid>, &'static str>,
}

/// A message of JSON-RPC.
#[derive(Debug, Clone)]
pub(crate) enum McpSaid {
    /// A request, with the number of the call if the client made it.
    Request { call: CallNumber, id: Value, method: String, whole: Value },
    /// A message that wants no answer.
    Notification { method: String, whole: Value },
    /// The result of a request, or an error.
    Answer { id: Value, answer: Result<Value, Value>, whole: Value },
}

impl McpLine {
    /// Reads a line. `left_out` bytes of it were not copied. `next_call` numbers the requests of the client.
    pub fn new(
        from: McpSide,
        bytes: Vec<u8>,
        left_out: u64,
        next_call: &mut dyn FnMut() -> CallNumber,
    ) -> McpLine {
        let mut number = || if from == McpSide::Client { next_call() } else { 0 };
        let said = match left_out {
            0 => read(&bytes, &mut number),
            _ => Err(BodyFault::TooLarge.word()),
        };
        McpLine { from, at: 0, bytes, said }
    }
}

impl McpCopy {
    /// When it was copied; `None` if it is no line.
    pub(crate) fn time(&self) -> Option<u64> {
        match &self.what {
            McpCopied::Line(line) => Some(line.at),
            McpCopied::Begun { .. } | McpCopied::Ended(_) | McpCopied::Synced(_) => None,
        }
    }

    /// How many bytes it has.
    pub(crate) fn size(&self) -> u64 {
        match &self.what {
            McpCopied::Line(line) => line.bytes.len() as u64,
            McpCopied::Begun { .. } | McpCopied::Ended(_) | McpCopied::Synced(_) => 0,
        }
    }
}

/// Whether the first bytes of a client are those of MCP: a line with JSON-RPC.
pub(crate) fn is_json_rpc(line: &[u8]) -> bool {
    let name = b"\"jsonrpc\"";
    matches!(line.trim_ascii_start().first(), Some(b'{' | b'['))
        && line.windows(name.len()).any(|part| part == name)
}

/// Reads the messages of a line; a batch has several, an empty line none.
fn read(line: &[u8], number: &mut dyn FnMut() -> CallNumber) -> Result<Vec<McpSaid>, &'static str> {
    if line.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let text = std::str::from_utf8(line).map_err(|_| "not_utf8")?;
    let whole = json::parse_door(text.as_bytes()).map_err(|_| "no_json")?;
    let messages = match &whole {
        Value::Array(batch) if !batch.is_empty() => batch.iter().cloned().collect(),
        other => vec![other.clone()],
    };
    // All are read before one of them gets a number.
    let said = messages.into_iter().map(said).collect::<Option<Vec<McpSaid>>>().ok_or("no_json_rpc")?;
    Ok(said.into_iter().map(|said| said.numbered(number)).collect())
}

fn said(whole: Value) -> Option<McpSaid> {
    let object = whole.as_object()?;
    let method = object.get("method").and_then(Value::as_str).map(str::to_owned);
    let id = object.get("id").filter(|id| matches!(id, Value::String(_) | Value::Number(_))).cloned();
    let answer = match (object.get("result"), object.get("error")) {
        (Some(result), None) => Some(Ok(result.clone())),
        (None, Some(error)) => Some(Err(error.clone())),
        _ => None,
    };
    match (method, id, answer) {
        (Some(method), Some(id), None) => Some(McpSaid::Request { call: 0, id, method, whole }),
        (Some(method), None, None) if !object.contains_key("id") => {
            Some(McpSaid::Notification { method, whole })
        }
        (None, id, Some(answer)) => Some(McpSaid::Answer { id: id.unwrap_or(Value::Null), answer, whole }),
        _ => None,
    }
}

impl McpSaid {
    fn numbered(self, number: &mut dyn FnMut() -> CallNumber) -> McpSaid {
        match self {
            McpSaid::Request { id, method, whole, .. } => {
                McpSaid::Request { call: number(), id, method, whole }
            }
            other => other,
        }
    }

    /// The message.
    pub(crate) fn whole(&self) -> &Value {
        match self {
            McpSaid::Request { whole, .. }
            | McpSaid::Notification { whole, .. }
            | McpSaid::Answer { whole, .. } => whole,
        }
    }
}

/// Lines out of bytes as they come; a line that is too long is counted, and not kept.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
    left_out: u64,
}

impl Lines {
    /// Takes bytes, and hands over each line that ends in them with the number of its bytes that were left out. `may_keep` returns whether
    /// so many bytes more may be kept.
    pub(crate) fn take(
        &mut self,
        mut bytes: &[u8],
        may_keep: &mut dyn FnMut(&Lines, usize) -> bool,
        line: &mut dyn FnMut(Vec<u8>, u64),
    ) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(&bytes[..end], may_keep);
            line(std::mem::take(&mut self.line), std::mem::take(&mut self.left_out));
            bytes = &bytes[end + 1..];
        }
        self.add(bytes, may_keep);
    }

    fn add(&mut self, bytes: &[u8], may_keep: &mut dyn FnMut(&Lines, usize) -> bool) {
        if bytes.is_empty() {
            return;
        }
        if self.left_out > 0 || !may_keep(self, bytes.len()) {
            self.left_out += bytes.len() as u64;
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    /// Bytes of the line that were not copied.
    pub(crate) fn leave_out(&mut self, count: u64) {
        self.left_out += count;
    }

    /// How many bytes are kept of the line that has not ended.
    pub(crate) fn kept(&self) -> usize {
        self.line.len()
    }

    /// The line that has no end; `None` for an empty one.
    pub(crate) fn rest(&mut self) -> Option<(Vec<u8>, u64)> {
        let rest = (std::mem::take(&mut self.line), std::mem::take(&mut self.left_out));
        (!rest.0.is_empty() || rest.1 > 0).then_some(rest)
    }
}

/// The parameters of a message as they count: without `_meta`, which has tokens of progress and of traces.
pub(crate) fn params(whole: &Value) -> Value {
    match whole.get("params").and_then(Value::as_object) {
        Some(params) => {
            let kept = params.iter().filter(|(name, _)| &***name != "_meta");
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        None => whole.get("params").cloned().unwrap_or(Value::Null),
    }
}

/// The tool and the arguments of `tools/call`.
pub(crate) fn tool(method: &str, whole: &Value) -> Option<(String, Value)> {
    let params = whole.get("params").filter(|_| method == "tools/call")?;
    Some((params.get("name")?.as_str()?.to_owned(), arguments(params.get("arguments"))))
}

/// The bytes by which the command of a server is known again.
pub(crate) fn command_key(command: &[String]) -> Vec<u8> {
    json::to_vec(&Value::array(command.iter().map(|word| Value::from(word.as_str()))))
}

/// The bytes by which a request is known again: the command of its server, its method, and its parameters without `_meta`.
pub(crate) fn request_key(command: &[String], method: &str, params: &Value) -> Vec<u8> {
    let command = Value::array(command.iter().map(|word| Value::from(word.as_str())));
    json::to_vec(&Value::array([command, Value::from(method), params.clone()]))
}

/// Arguments as they are compared: none is an empty object.
pub(crate) fn arguments(given: Option<&Value>) -> Value {
    given.filter(|given| **given != Value::Null).cloned().unwrap_or_else(Value::object)
}

/// How well the name that a model asked for is that of a tool of a server: 3 the name itself, 2 with the name of the server
/// in front, 1 with another prefix of MCP, 0 not at all.
pub(crate) fn rank(asked: &str, server: &str, tool: &str) -> u8 {
    if asked == tool {
        return 3;
    }
    let Some(prefix) = asked.strip_suffix(tool).filter(|_| !tool.is_empty()) else { return 0 };
    let ends = ['_', '-', '.', '/', ':'];
    let Some(name) = prefix.strip_suffix(ends) else { return 0 };
    let plain = |text: &str| -> String {
        text.chars().filter(|one| one.is_ascii_alphanumeric()).map(|one| one.to_ascii_lowercase()).collect()
    };
    let of_mcp = name.strip_prefix(MCP).and_then(|rest| rest.strip_prefix(ends));
    let is_server = |name: &str| !server.is_empty() && plain(name) == plain(server);
    match of_mcp {
        _ if is_server(name) || of_mcp.is_some_and(is_server) => 2,
        Some(_) => 1,
        None => u8::from(prefix.ends_with("__") || name == MCP),
    }
}

/// The name of a server: that of `--name`, else of what its command runs.
pub(crate) fn server_name(name: Option<&str>, command: &[String]) -> String {
    const RUNNERS: [&str; 13] =
        ["npx", "uvx", "uv", "node", "bun", "bunx", "deno", "python", "python3", "env", "sh", "bash", "pipx"];
    let file = |word: &String| {
        let word = word.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        // A version: `server@1.2`, `server==1.2`.
        let word = word.split(['@', '=', '[']).find(|part| !part.is_empty()).unwrap_or_default();
        word.trim_end_matches(".py").trim_end_matches(".js").to_owned()
    };
    let first = command.first().map(file).unwrap_or_default();
    let others = command.iter().skip(1).filter(|word| {
        !word.starts_with('-') && word.split_once('=').is_none_or(|(_, value)| value.starts_with('='))
    });
    let ran = others.map(file).find(|word| !matches!(word.as_str(), "" | "run" | "exec" | "tool"));
    let named = name.map(str::to_owned).filter(|name| !name.is_empty());
    let found = named.or_else(|| ran.filter(|_| RUNNERS.contains(&first.as_str()))).unwrap_or(first);
    let mut clean: String = found.chars().filter(|one| !one.is_control()).take(64).collect();
    if clean.is_empty() {
        clean.push_str("server");
    }
    clean
}

/// A command without the arguments that may carry a key.
pub(crate) fn without_keys(command: &[String]) -> Value {
    const LEFT_OUT: &str = "(left out)";
    let carries = |name: &str| {
        let name = name.to_ascii_lowercase();
        let words = [
            "key", "token", "secret", "pass", "auth", "cred", "bearer", "header", "cookie", "session", "pat",
        ];
        words.iter().any(|word| name.contains(word))
    };
    let mut is_value = false;
    let clean = command.iter().enumerate().map(|(at, word)| {
        if at > 0 && std::mem::take(&mut is_value) && !word.starts_with("--") {
            return Value::from(LEFT_OUT);
        }
        let is_flag = word.starts_with('-') && at > 0;
        match word.split_once('=') {
            Some((name, _)) if at > 0 && carries(name) && !name.contains("://") => {
                Value::from(format!("{name}={LEFT_OUT}"))
            }
            _ if is_flag && (carries(word) || word == "-H") => {
                is_value = true;
                Value::from(word.as_str())
            }
            _ => Value::from(without_secrets_of_url(word)),
        }
    });
    Value::array(clean.collect::<Vec<_>>())
}

/// An address without its user, password, query and fragment; any other word as it is.
fn without_secrets_of_url(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    path.map_or_else(|| format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"))
}

/// The content of a result in the forms in which clients tell it to a model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    forms: BTreeSet<Digest>,
    /// The words of a failure, which clients tell in words of their own.
    failure: Option<String>,
}

/// How much of the words of a failure is compared.
const FAILURE_MAX: usize = 4 << 10;

impl Told {
    /// The forms of the result of `tools/call`, or of an error.
    pub(crate) fn of_answer(answer: &Result<Value, Value>) -> Told {
        let mut forms = BTreeSet::new();
        let (result, is_failed) = match answer {
            Ok(result) => (result, result.get("isError") == Some(&Value::from(true))),
            Err(error) => (error, true),
        };
        let content = result.get("content").cloned().unwrap_or_else(|| Value::array([]));
        forms_of(&content, &mut forms);
        for whole in [Some(result), result.get("structuredContent")].into_iter().flatten() {
            forms.insert(reduced(whole).digest());
        }
        let words = match answer {
            Ok(_) => texts(&content).concat(),
            Err(error) => error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
        };
        let failure = Some(words).filter(|words| is_failed && !words.is_empty());
        Told { forms, failure: failure.map(|words| words.chars().take(FAILURE_MAX).collect()) }
    }

    /// Whether a content in a request is this one.
    pub(crate) fn is(&self, told: &Value) -> bool {
        let mut forms = BTreeSet::new();
        forms_of(told, &mut forms);
        let has_words = |words: &String| texts(told).concat().contains(words.as_str());
        !self.forms.is_disjoint(&forms) || self.failure.as_ref().is_some_and(has_words)
    }
}

/// The digests of a content: as a text, however its parts are put together, and as JSON.
fn forms_of(content: &Value, forms: &mut BTreeSet<Digest>) {
    let texts = texts(content);
    for between in ["", "\n", "\n\n", " "] {
        let text = texts.join(between);
        if let Ok(value @ (Value::Object(_) | Value::Array(_))) = json::parse_door(text.as_bytes()) {
            forms.insert(reduced(&value).digest());
        }
        // A content of images has no text, and is not equal to any other without one.
        if !text.is_empty() || is_text(content) {
            forms.insert(Value::from(text).digest());
        }
    }
    forms.insert(reduced(content).digest());
    if let Some(parts) = content.as_array().filter(|parts| parts.len() == 1) {
        forms.extend(parts.get(0).map(|part| reduced(part).digest()));
    }
}

fn is_text(content: &Value) -> bool {
    match content {
        Value::Array(parts) => parts.is_empty(),
        Value::String(_) | Value::Null => true,
        _ => false,
    }
}

/// The texts of a content, part by part.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.to_string()],
        Value::Array(parts) => parts.iter().flat_map(texts).collect(),
        Value::Object(part) => {
            part.get("text").and_then(Value::as_str).map(str::to_owned).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// A value without the members that clients add to a content, with texts and images in one form.
fn reduced(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::array(items.iter().map(reduced)),
        Value::Object(object) => reduced_part(object),
        other => other.clone(),
    }
}

fn reduced_part(object: &Object) -> Value {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let nested = |name: &str, member: &str| text(object.get(name).and_then(|value| value.get(member)));
    let data = text(object.get("data").filter(|_| object.contains_key("mimeType")))
        .or_else(|| nested("source", "data"))
        .or_else(|| {
            nested("image_url", "url")
                .or_else(|| text(object.get("image_url")))
                .and_then(|url| url.split_once(";base64,").map(|(_, data)| data.to_owned()))
        });
    if let Some(data) = data {
        return Value::record([("data", Value::from(data))]);
    }
    let added = ["annotations", "_meta", "meta", "cache_control", "isError"];
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let kept = object.iter().filter(|(name, value)| !added.contains(&&***name) && !is_empty(value));
    let is_kind = |name: &str, value: &Value| {
        name == "type" && value.as_str().is_some_and(|kind| kind.ends_with("text"))
    };
    let kept = kept.filter(|(name, value)| !is_kind(name, value));
    Value::Object(kept.map(|(name, value)| (name.clone(), reduced(value))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(text: &str) -> Value {
        json::parse_door(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_tool_is_known_under_the_names_that_clients_give_it() {
        for (asked, server, tool, expected) in [
            ("count", "depot", "count", 3),
            ("mcp__depot__count", "depot", "count", 2),
            ("mcp__De-Pot__count", "depot", "count", 2),
            ("depot_count", "depot", "count", 2),
            ("depot.count", "depot", "count", 2),
            ("mcp__other__count", "depot", "count", 1),
            ("other__count", "depot", "count", 1),
            ("mcp_count", "depot", "count", 1),
            ("recount", "depot", "count", 0),
            ("file_count", "depot", "count", 0),
            ("count", "depot", "", 0),
            ("count_all", "depot", "count", 0),
        ] {
            assert_eq!(rank(asked, server, tool), expected, "{asked} of {server}");
        }
    }

    #[test]
    fn a_server_is_named_by_what_it_runs() {
        for (command, expected) in [
            ("npx -y @modelcontextprotocol/server-everything stdio", "server-everything"),
            ("npx -y mcp-server@1.2.3", "mcp-server"),
            ("uvx mcp-server-git==1.0 --repository .", "mcp-server-git"),
            ("uv run server.py", "server"),
            ("/opt/bin/tool --flag", "tool"),
            ("python3 depot.py", "depot"),
            ("npx", "npx"),
            ("", "server"),
        ] {
            let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            assert_eq!(server_name(None, &command), expected, "{command:?}");
        }
        assert_eq!(server_name(Some("mine"), &["npx".to_owned()]), "mine");
    }

    #[test]
    fn arguments_that_carry_keys_are_left_out() {
        let command = [
            "npx",
            "server",
            "--api-key",
            "canary-1",
            "--token=canary-2",
            "API_KEY=canary-3",
            "-H",
            "Authorization: canary-4",
            "https://me:canary-5@host/path?key=canary-6",
            "--port",
            "80",
        ];
        let found = without_keys(&command.map(str::to_owned)).to_string();
        assert!(!found.contains("canary"), "{found}");
        assert!(found.contains(r#""--port","80""#) && found.contains(r#""https://host/path""#), "{found}");
    }

    #[test]
    fn a_content_is_the_same_in_every_form_that_clients_tell_it_in() {
        let result = v(
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"structuredContent":{"n":1}}"#,
        );
        let told = Told::of_answer(&Ok(result));
        for same in [
            r#""ab""#,
            r#""a\nb""#,
            r#"[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]"#,
            r#""[{\"type\":\"text\",\"text\":\"a\",\"annotations\":null},{\"type\":\"text\",\"text\":\"b\"}]""#,
            r#""{\"n\": 1}""#,
        ] {
            assert!(told.is(&v(same)), "{same}");
        }
        for other in [r#""""#, r#""a""#, r#""ba""#, r#"[]"#, r#""{\"n\":2}""#, "null"] {
            assert!(!told.is(&v(other)), "{other}");
        }
        let image =
            Told::of_answer(&Ok(v(r#"{"content":[{"type":"image","data":"QUJD","mimeType":"image/png"}]}"#)));
        assert!(image.is(&v(
            r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]"#
        )));
        assert!(image.is(&v(r#"[{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]"#)));
        assert!(!image.is(&v(r#""""#)));
        let error = Told::of_answer(&Err(v(r#"{"code":-32602,"message":"no such train"}"#)));
        assert!(error.is(&v(r#""Error: no such train""#)) && !error.is(&v(r#""Error""#)));
    }

    #[test]
    fn a_line_is_messages_or_has_a_reason_why_not() {
        let read = |line: &[u8]| {
            let mut calls = 0;
            let line = McpLine::new(McpSide::Client, line.to_vec(), 0, &mut || {
                calls += 1;
                calls
            });
            (line.said.map(|said| said.len()), calls)
        };
        assert_eq!(read(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), (Ok(1), 1));
        assert_eq!(
            read(br#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":"1","method":"b"}]"#),
            (Ok(2), 2)
        );
        assert_eq!(read(b"  \r"), (Ok(0), 0));
        assert_eq!(read(b"plain words"), (Err("no_json"), 0));
        assert_eq!(read(b"{\"jsonrpc\":\"\xff\"}"), (Err("not_utf8"), 0));
        assert_eq!(read(br#"[{"jsonrpc":"2.0","id":1,"method":"a"},7]"#), (Err("no_json_rpc"), 0));
        assert_eq!(read(br#"{"id":null,"method":"a"}"#), (Err("no_json_rpc"), 0));
        assert_eq!(read(br#"{"id":1,"result":1,"error":2}"#), (Err("no_json_rpc"), 0));
        assert_eq!(read(b"[]"), (Err("no_json_rpc"), 0));
    }

    #[test]
    fn lines_are_put_together_and_long_ones_counted() {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let mut take = |lines: &mut Lines, bytes: &[u8]| {
            let may = &mut |lines: &Lines, more| lines.kept() + more <= 4;
            lines.take(bytes, may, &mut |line, left_out| {
                found.push((String::from_utf8(line).unwrap(), left_out))
            });
        };
        take(&mut lines, b"on");
        take(&mut lines, b"e\n\ntwo\nlong");
        take(&mut lines, b"er than that\nx");
        assert_eq!(lines.rest(), Some((b"x".to_vec(), 0)));
        let found: Vec<(&str, u64)> = found.iter().map(|(line, left)| (line.as_str(), *left)).collect();
        assert_eq!(found, [("one", 0), ("", 0), ("two", 0), ("long", 12)]);
    }
}
