//! The smallest case of each disagreement that conversations by chance have shown.

use crate::spans::check;
use crate::{import, of};

#[test]
fn system_messages_in_front_of_a_tree_are_no_branch() {
    let text = r#"{"role":"system","content":"Be brief."}
        {"id":"m0","parent":null,"role":"user","content":"q"}
        {"id":"m1","parent":"m0","role":"assistant","content":"a"}
        {"id":"m2","parent":"m0","role":"assistant","content":"b"}"#;
    let (plan, records) = import(text.as_bytes(), of("openai-chat")).unwrap();
    assert_eq!((plan.branches(), plan.tally.preamble, plan.tally.ticks), (1, 1, 2));
    assert!(records[0].content().get("meta").unwrap().to_string().contains("Be brief."));
}

#[test]
fn an_empty_list_of_calls_hides_no_tag() {
    for more in [r#""tool_calls":[]"#, r#""tool_calls":null,"function_call":null"#] {
        let text = format!(
            r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":"<tool_call>{{}}",{more}}}]"#
        );
        let expected = [
            r#"observation.add user "q""#,
            r#"plan.update assistant "<tool_call>{}" !not_read[calls,failures]"#,
        ];
        check("openai-chat", &text, &expected);
    }
}

#[test]
fn steps_without_tools_are_items_of_their_own_and_their_tags_are_noted() {
    let text = r#"[{"id":"a","role":"assistant","metadata":{"usage":{"inputTokens":7,"outputTokens":3}},"parts":[
        {"type":"step-start"},{"type":"text","text":"One."},
        {"type":"step-start"},{"type":"text","text":"<tool_call>{}"}]}]"#;
    let expected = [
        r#"plan.update assistant "One.""#,
        r#"plan.update assistant "<tool_call>{}" t10 !not_read[calls,failures]"#,
    ];
    check("ai-sdk", text, &expected);
}

#[test]
fn a_denial_of_one_call_is_none_of_the_others_of_its_request() {
    let text = r#"[{"id":"a","role":"assistant","parts":[
        {"type":"tool-wipe","toolCallId":"c1","state":"output-denied","input":{},"approval":{"approved":false}},
        {"type":"tool-look","toolCallId":"c2","state":"output-available","input":{},"output":"found"}]}]"#;
    let expected = [
        "action.request assistant wipe({})#c1 look({})#c2",
        "policy.decision policy",
        r#"action.result assistant look({})#c2 <-1 = "found" ok"#,
    ];
    check("ai-sdk", text, &expected);
}

#[test]
fn items_and_responses_that_are_there_again_count_once() {
    let call = r#"{"type":"function_call","id":"fc","call_id":"c1","name":"f","arguments":"{}"}"#;
    let expected =
        ["action.request assistant f({})#c1 !call_without_result", "observation.add assistant !repeated"];
    check("openai-responses", &format!("[{call},{call}]"), &expected);
    let response = format!(
        r#"{{"id":"r","object":"response","output":[{call}],"usage":{{"input_tokens":1,"output_tokens":2,"total_tokens":3}}}}"#
    );
    let expected =
        ["action.request assistant f({})#c1 t3 !call_without_result", "observation.add assistant !repeated"];
    check("openai-responses", &format!("{response}\n{response}"), &expected);
}

#[test]
fn items_in_front_of_a_response_are_no_branch() {
    let response = |id: &str, before: &str| {
        format!(
            r#"{{"id":"{id}","object":"response","previous_response_id":{before},"output":[{{"type":"message","role":"assistant","content":"{id}"}}]}}"#
        )
    };
    let log =
        [r#"{"role":"user","content":"q"}"#.to_owned(), response("r1", "null"), response("r2", "\"r1\"")];
    let (plan, _) = import(log.join("\n").as_bytes(), of("openai-responses")).unwrap();
    assert_eq!((plan.tally.ticks, plan.branches()), (3, 0));
}

#[test]
fn parts_in_the_output_of_a_tool_are_data() {
    let served = r#"[{"type":"code_interpreter_call","id":"ci","status":"completed","code":"1","outputs":[{"type":"logs","logs":"2"}]}]"#;
    let expected = [
        "action.request assistant code_interpreter(\"1\")#ci",
        r#"action.result assistant code_interpreter("1")#ci <-1 = [{"logs":"2","type":"logs"}] ok"#,
    ];
    let (_, records) = import(served.as_bytes(), of("openai-responses")).unwrap();
    let found = crate::spans::lines(&records);
    assert!(found.len() == 2 && found[1].ends_with(&expected[1][expected[1].len() - 20..]), "{found:?}");
    let inner = r#"[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
        {"type":"function_call_output","call_id":"c1","output":[{"type":"tool_use","id":"x","name":"rm","input":{}}]}]"#;
    let (plan, _) = import(inner.as_bytes(), of("openai-responses")).unwrap();
    assert_eq!((plan.tally.calls, plan.tally.ticks, plan.tally.gaps()), (1, 2, 0));
}

#[test]
fn the_first_line_of_a_sub_agent_that_is_there_again_states_nothing() {
    let ask = r#"{"type":"assistant","uuid":"k","parentUuid":null,"sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Task","input":{"prompt":"Look.","subagent_type":"x"}}]}}"#;
    let first = r#"{"type":"user","uuid":"s1","parentUuid":null,"sessionId":"s","isSidechain":true,"agentId":"a","message":{"role":"user","content":"Look."}}"#;
    let (_, records) = import([ask, first, first].join("\n").as_bytes(), of("claude-code")).unwrap();
    let found = crate::spans::lines(&records);
    assert!(found[1].starts_with("observation.add main") && found[2].contains("!repeated"), "{found:?}");
}

/// A run of LangSmith.
fn run(id: u64, kind: &str, name: &str, more: &str) -> String {
    format!(
        r#"{{"id":"r{id}","trace_id":"t","dotted_order":"{id:04}","run_type":"{kind}","name":"{name}",{more}}}"#
    )
}

#[test]
fn arguments_as_python_shows_them_find_their_call() {
    let calls = r#"[{"name":"f","args":{"n":1,"on":true},"id":"c1"},{"name":"f","args":{"n":2,"on":true},"id":"c2"}]"#;
    let model = format!(
        r#""inputs":{{"messages":[]}},"outputs":{{"messages":[{{"type":"ai","content":"","tool_calls":{calls}}}]}}"#
    );
    let tool =
        run(2, "tool", "f", r#""inputs":{"input":"{'n': 2, 'on': True}"},"outputs":null,"error":"late""#);
    let expected = [
        r#"action.request assistant "" f({"n":1,"on":true})#c1 f({"n":2,"on":true})#c2 !call_without_result"#,
        r#"action.result assistant f({"n":2,"on":true})#c2 <-1 =  error "late""#,
    ];
    check("langsmith", &[run(1, "llm", "m", &model), tool].join("\n"), &expected);
}

#[test]
fn the_status_of_a_message_of_a_tool_is_read_in_its_run() {
    for (word, status) in [("success", "ok"), ("error", "error")] {
        let message =
            format!(r#"{{"type":"tool","content":"ValueError: x","tool_call_id":"c","status":"{word}"}}"#);
        let tool =
            run(1, "tool", "f", &format!(r#""inputs":{{"input":"{{}}"}},"outputs":{{"output":{message}}}"#));
        let result = format!(r#"action.result assistant f({{}})#c <-1 = "ValueError: x" {status}"#);
        check("langsmith", &tool, &["action.request assistant f({})#c", &result]);
    }
}

#[test]
fn members_of_parts_calls_and_spans_that_show_are_noted() {
    let said = |part: &str| {
        format!(r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":[{part}]}}]"#)
    };
    let called = r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"c","x_usage":7,"function":{"name":"f","arguments":"{}"}}]}]"#;
    let span = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"x","startTimeUnixNano":"1","x_calls":[{"a":1}]}]}]}]}"#;
    let asked = run(
        1,
        "llm",
        "m",
        r#""inputs":{"messages":[]},"outputs":{"messages":[{"type":"ai","content":"a","x_calls":[{"a":1}]}]}"#,
    );
    for (kind, text, path) in [
        ("openai-chat", said(r#"{"type":"text","text":"a","x_calls":[{"a":1}]}"#), "/1/content/0/x_calls"),
        (
            "anthropic",
            said(r#"{"type":"tool_use","id":"c","name":"f","input":{},"x_usage":7}"#),
            "/1/content/0/x_usage",
        ),
        ("openai-chat", called.to_owned(), "/0/tool_calls/0/x_usage"),
        ("otlp", span.to_owned(), "/0/x_calls"),
        ("langsmith", asked, "/0/x_calls"),
    ] {
        let (plan, _) = import(text.as_bytes(), of(kind)).unwrap();
        let paths: Vec<&str> = plan.tally.first_notes.iter().map(|(_, note)| note.path.as_str()).collect();
        assert!(paths.contains(&path), "{path}: {paths:?}");
    }
}
