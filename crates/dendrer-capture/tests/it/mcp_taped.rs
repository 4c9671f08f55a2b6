//! Calls over MCP as transitions: without a socket, line by line.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dendrer_capture::mcp::{McpCopied, McpCopy, McpEnd, McpLine, McpSide};
use dendrer_capture::proxy::PassedCopy;
use dendrer_capture::tape::ProgramEnd;
use dendrer_capture::{Ended, player};
use dendrer_object::Value;
use dendrer_testkit::run_name;

use crate::taped::{ASKS, BRINGS, CALLS, CHAT, Desk, SAYS};

/// The call that `CALLS` asks for.
const COUNT: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"of":1}}}"#;
/// The result that `BRINGS` tells.
const TWELVE: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"12"}],"isError":false}}"#;

impl Desk {
    fn mcp(&mut self, what: McpCopied) {
        self.tape.take(PassedCopy::Mcp(McpCopy { server: 1, what })).unwrap();
    }

    fn begin(&mut self, command: &[&str]) {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        self.mcp(McpCopied::Begun { name: Some("depot".to_owned()), command });
    }

    fn line(&mut self, from: McpSide, line: &[u8]) {
        let calls = &mut self.calls;
        let line = McpLine::new(from, line.to_vec(), 0, &mut || {
            *calls += 1;
            *calls
        });
        self.mcp(McpCopied::Line(line));
    }

    fn client(&mut self, line: &str) {
        self.line(McpSide::Client, line.as_bytes());
    }

    fn server(&mut self, line: &str) {
        self.line(McpSide::Server, line.as_bytes());
    }

    fn end(&mut self) {
        self.tape.end(&ProgramEnd { exit: Some(0), signal: None, refused: 0, around: None }).unwrap();
    }

    fn at(&self, tick: u64, path: &[&str]) -> String {
        let content = self.content(tick);
        path.iter()
            .try_fold(&content, |value, name| value.get(name))
            .map_or_else(String::new, ToString::to_string)
    }

    fn anomaly(&self, tick: u64) -> Value {
        let content = self.content(tick);
        content
            .get("anomalies")
            .and_then(Value::as_array)
            .and_then(|list| list.get(0))
            .cloned()
            .unwrap_or(Value::Null)
    }
}

#[test]
fn a_call_that_is_seen_three_times_is_one_call() {
    let mut desk = Desk::new();
    desk.begin(&["npx", "depot"]);
    desk.chat(ASKS, CALLS);
    desk.client(COUNT);
    desk.server(TWELVE);
    desk.chat(&format!("{ASKS},{CALLS},{BRINGS}"), SAYS);
    assert_eq!(
        desk.shown(),
        [
            r#"user/0 observation.add "how many?""#,
            r#"main/0 action.request "count""#,
            r#"main/0 action.result "count""#,
            r#"main/0 plan.update "twelve""#,
        ]
    );
    let result = desk.content(3);
    assert!(result.get("unattested").is_none(), "the server said so");
    assert_eq!(desk.at(3, &["action"]), r#"{"call_id":"c1","params":{"of":1},"tool":"count"}"#);
    assert_eq!(desk.at(3, &["result", "status"]), r#""ok""#);
    assert_eq!(
        desk.at(3, &["intent", "capture", "api"]) + &desk.at(3, &["intent", "capture", "seen"]),
        r#""mcp""mcp""#
    );
    assert_eq!(desk.trace().record(3).unwrap().header().links.len(), 1, "the request of the model");
    let again = desk.at(4, &["intent", "capture", "seen_again"]);
    let id = desk.trace().record(3).unwrap().id();
    assert_eq!(again, format!(r#"[{{"call":2,"result":"{id}"}}]"#));
    assert!(
        player::tools_inside(&desk.trace(), desk.trace().tip()).unwrap().is_empty(),
        "no tool of the program ran"
    );
    let exact = desk.repo.vault().unwrap().get(&run_name("r"), "call/2/answer").unwrap();
    assert_eq!(String::from_utf8(exact).unwrap(), format!("{{}}\n{TWELVE}"));
}

#[test]
fn another_content_in_the_request_is_an_anomaly() {
    let mut desk = Desk::new();
    desk.begin(&["npx", "depot"]);
    desk.chat(ASKS, CALLS);
    desk.client(COUNT);
    desk.server(TWELVE);
    desk.chat(&format!("{ASKS},{CALLS},{}", BRINGS.replace("12", "13")), SAYS);
    assert_eq!(desk.shown()[3], r#"main/0 observation.add "13""#);
    let anomaly = desk.anomaly(4);
    assert_eq!(anomaly.get("kind"), Some(&Value::from("result_differs")));
    assert_eq!(anomaly.get("call"), Some(&Value::from(2_u64)));
    assert!(desk.content(4).get("unattested").is_none());
    assert_eq!(desk.shown().len(), 5);
}

#[test]
fn a_name_behind_a_prefix_is_the_tool_if_the_params_are_equal() {
    for (name, of, expected) in [
        ("mcp__depot__count", "1", "main/0 action.result \"mcp__depot__count\""),
        ("mcp__depot__count", "2", "mcp:depot/0 action.result \"count\""),
        ("discount", "1", "mcp:depot/0 action.result \"count\""),
    ] {
        let mut desk = Desk::new();
        desk.begin(&["npx", "depot"]);
        let calls = CALLS.replace("count", name).replace("1}", &format!("{of}}}"));
        assert!(calls.contains(name) && calls.contains(&format!("{of}}}")), "{calls}");
        desk.chat(ASKS, &calls);
        desk.client(COUNT);
        desk.server(TWELVE);
        assert_eq!(desk.shown().last().unwrap(), expected, "{name} {of}");
    }
}

#[test]
fn a_call_that_no_model_asked_for_is_one_of_its_server() {
    let mut desk = Desk::new();
    desk.begin(&["npx", "depot"]);
    desk.client(COUNT);
    desk.server(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}"#);
    desk.client(&COUNT.replace(":1,", ":\"x\","));
    desk.server(r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32602,"message":"no such tool"}}"#);
    let both = ["mcp:depot/0 action.request \"count\"", "mcp:depot/0 action.result \"count\""];
    assert_eq!(desk.shown(), [both, both].concat());
    for tick in [2, 4] {
        assert_eq!(desk.at(tick, &["result", "status"]), r#""error""#);
    }
    assert_eq!(desk.tape.tally().failed, 2);
    // It is told without the call of a model on record: by an equal tool and equal params.
    let told = BRINGS.replace("\"12\"", "\"Error: no such tool\"");
    desk.chat(&format!("{ASKS},{CALLS},{told}"), SAYS);
    assert_eq!(
        desk.shown().iter().filter(|line| line.contains("action.result")).count(),
        2,
        "{:?}",
        desk.shown()
    );
}

#[test]
fn a_call_waits_for_the_answer_that_may_ask_for_it() {
    let mut desk = Desk::new();
    desk.begin(&["npx", "depot"]);
    let call = desk.ask(CHAT, &format!(r#"{{"model":"m","messages":[{ASKS}]}}"#));
    // The client acts before the stream of the answer has ended.
    desk.client(COUNT);
    desk.server(TWELVE);
    assert_eq!(desk.shown().len(), 1);
    desk.answer(
        call,
        200,
        "application/json",
        &format!(r#"{{"choices":[{{"message":{CALLS}}}]}}"#),
        Ended::Whole,
    );
    assert_eq!(desk.shown()[1..], [r#"main/0 action.request "count""#, r#"main/0 action.result "count""#]);
    // An answer that asks for nothing leaves it to the server.
    let call = desk.ask(CHAT, &format!(r#"{{"model":"n","messages":[{ASKS}]}}"#));
    desk.client(&COUNT.replace(":1,", ":2,"));
    desk.answer(
        call,
        200,
        "application/json",
        &format!(r#"{{"choices":[{{"message":{SAYS}}}]}}"#),
        Ended::Whole,
    );
    assert_eq!(desk.shown().last().unwrap(), r#"mcp:depot/0 action.request "count""#);
}

#[test]
fn a_request_that_overtakes_the_answer_of_a_server_waits_for_it() {
    let mut desk = Desk::new();
    desk.begin(&["npx", "depot"]);
    desk.chat(ASKS, CALLS);
    desk.client(COUNT);
    desk.chat(&format!("{ASKS},{CALLS},{BRINGS}"), SAYS);
    assert_eq!(desk.shown().len(), 2);
    desk.server(TWELVE);
    assert_eq!(desk.shown()[2..], [r#"main/0 action.result "count""#, r#"main/0 plan.update "twelve""#]);
    assert!(desk.content(3).get("unattested").is_none());
}

#[test]
fn a_request_waits_for_no_server_that_does_not_answer() {
    let mut desk = Desk::new();
    desk.begin(&["npx", "depot"]);
    desk.chat(ASKS, CALLS);
    desk.client(COUNT);
    desk.client(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    desk.chat(&format!("{ASKS},{CALLS},{BRINGS}"), SAYS);
    assert_eq!(desk.shown().last().unwrap(), r#"main/0 plan.update "twelve""#);
    desk.end();
    let anomalies = (1..=desk.trace().tip()).map(|tick| desk.anomaly(tick).to_string()).collect::<String>();
    assert!(anomalies.contains(r#""ended":"cancelled","kind":"mcp_call_failed""#), "{anomalies}");

    let mut desk = Desk::new();
    desk.begin(&["npx", "depot"]);
    desk.chat(ASKS, CALLS);
    desk.client(COUNT);
    desk.chat(&format!("{ASKS},{CALLS},{BRINGS}"), SAYS);
    desk.end();
    assert!(desk.shown().contains(&r#"main/0 plan.update "twelve""#.to_owned()), "{:?}", desk.shown());
}

#[test]
fn answers_come_in_any_order_and_ids_may_repeat() {
    let mut desk = Desk::new();
    desk.begin(&["npx", "depot"]);
    let call = |id: &str, of: u8| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"count","arguments":{{"of":{of}}}}}}}"#
        )
    };
    let answer = |id: &str, of: u8| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{of}"}}]}}}}"#)
    };
    desk.client(&format!("[{},{},{}]", call("1", 1), call("\"1\"", 2), call("1", 3)));
    desk.server(&answer("\"1\"", 2));
    desk.server(&format!("[{},{}]", answer("1", 1), answer("1", 3)));
    let results = (1..=desk.trace().tip()).filter(|tick| !desk.at(*tick, &["result"]).is_empty());
    let results: Vec<String> = results
        .map(|tick| desk.at(tick, &["action", "params", "of"]) + &desk.at(tick, &["result", "output"]))
        .collect();
    let text = |of: u8| format!(r#"{of}[{{"text":"{of}","type":"text"}}]"#);
    assert_eq!(results, [text(2), text(1), text(3)]);
}

#[test]
fn messages_of_both_sides_are_observations() {
    let mut desk = Desk::new();
    desk.begin(&["npx", "depot"]);
    desk.client(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
    );
    desk.server(r#"{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"depot"}}}"#);
    desk.client(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    desk.server(r#"{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"messages":[]}}"#);
    desk.client(r#"{"jsonrpc":"2.0","id":0,"result":{"role":"assistant"}}"#);
    desk.server(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#);
    let said: Vec<String> = (1..=desk.trace().tip()).map(|tick| desk.at(tick, &["intent", "mcp"])).collect();
    assert_eq!(
        said,
        [
            r#"{"command":["npx","depot"],"method":"initialize","params":{"protocolVersion":"2025-06-18"},"result":{"serverInfo":{"name":"depot"}}}"#,
            r#"{"from":"client","method":"notifications/initialized"}"#,
            r#"{"from":"server","method":"sampling/createMessage","params":{"messages":[]}}"#,
            r#"{"from":"client","method":"sampling/createMessage","result":{"role":"assistant"}}"#,
            r#"{"from":"server","method":"notifications/progress","params":{"progress":1}}"#,
        ]
    );
    assert_eq!(desk.tape.tally().calls, 1);
}

#[test]
fn hostile_lines_stop_nothing_and_are_counted() {
    let mut desk = Desk::new();
    desk.begin(&["npx", "depot"]);
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    for line in [
        &b"no json"[..],
        b"\xff\xfe",
        b"[]",
        b"7",
        b"null",
        b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":1}",
        b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"x\"}",
        b"{\"jsonrpc\":\"2.0\",\"method\":7}",
        b"{\"id\":1,\"id\":2,\"method\":\"tools/call\"}",
        deep.as_bytes(),
    ] {
        desk.line(McpSide::Client, line);
        desk.line(McpSide::Server, line);
        desk.line(McpSide::Server, line);
    }
    let too_long = McpLine::new(McpSide::Server, Vec::new(), 1, &mut || 0);
    desk.mcp(McpCopied::Line(too_long));
    desk.client(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":7,"arguments":[]}}"#);
    desk.client(COUNT);
    desk.server(TWELVE);
    desk.mcp(McpCopied::Ended(Some(McpEnd { exit: None, signal: Some(9) })));
    desk.line(McpSide::Client, b"after the end");
    let all =
        (1..=desk.trace().tip()).map(|tick| desk.content(tick).to_string()).collect::<Vec<_>>().join("\n");
    for why in ["no_json", "not_utf8", "no_json_rpc", "answer_without_request", "too_large"] {
        assert!(all.contains(&format!(r#""why":"{why}""#)), "{why} in {all}");
    }
    assert!(all.contains(r#""ended":{"exit":null,"signal":9}"#), "{all}");
    assert!(all.contains(r#""method":"tools/call""#) && all.contains("mcp_call_failed"), "{all}");
    assert_eq!(desk.tape.tally().gaps, 31, "each line is counted once");
    assert!(all.matches("capture_gap").count() < 12, "and not each is a transition: {all}");
}

#[test]
fn a_line_of_an_unknown_server_is_no_record() {
    let mut desk = Desk::new();
    desk.client(COUNT);
    desk.server(TWELVE);
    assert!(desk.shown().is_empty());
}

#[test]
fn a_request_that_tells_results_waits_for_what_shims_copied_before_it() {
    let mut desk = Desk::new();
    desk.begin(&["npx", "depot"]);
    let asked = Arc::new(AtomicU64::new(0));
    let question = Arc::clone(&asked);
    desk.tape.with_shims(Box::new(move |number| {
        question.store(number, Ordering::SeqCst);
        true
    }));
    desk.chat(ASKS, CALLS);
    assert_eq!(asked.load(Ordering::SeqCst), 0, "a request without results waits for nothing");
    desk.chat(&format!("{ASKS},{CALLS},{BRINGS}"), SAYS);
    assert_eq!(desk.shown().len(), 2);
    // Both came before the request, by another way.
    desk.client(COUNT);
    desk.server(TWELVE);
    let number = asked.load(Ordering::SeqCst);
    desk.mcp(McpCopied::Synced(number));
    assert_eq!(desk.shown()[2..], [r#"main/0 action.result "count""#, r#"main/0 plan.update "twelve""#]);
    assert!(desk.content(3).get("unattested").is_none());
}
