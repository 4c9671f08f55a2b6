//! The smallest case of each disagreement that conversations by chance have shown.

use crate::spans::check;
use crate::{import, of, shown};

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

/// Tokens of a source in all, with `?` if a note has that there may be more.
fn counted(kind: &str, text: &str) -> String {
    let (plan, records) = import(text.as_bytes(), of(kind)).unwrap();
    let mut sum = 0;
    for tick in 1..records.len() {
        let value = shown(&records, tick);
        let tokens = value.get("metrics").and_then(|metrics| metrics.get("tokens_used"));
        sum += tokens.and_then(|tokens| tokens.as_u64()).unwrap_or_default();
    }
    let is_open = plan.tally.first_notes.iter().any(|(_, note)| note.may().contains(&"usage"));
    format!("{sum}{}", if is_open { "?" } else { "" })
}

#[test]
fn parts_of_a_usage_are_added_or_noted() {
    for (usage, expected) in [
        (
            r#"{"inputTokens":10,"outputTokens":5,"cacheReadInputTokens":100,"cacheWriteInputTokens":7}"#,
            "122",
        ),
        (r#"{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":20}"#, "35"),
        (r#"{"input_tokens":10,"output_tokens":5,"new_tokens":7}"#, "0?"),
        (r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100}}"#, "0?"),
        (r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8}}"#, "15"),
    ] {
        let text = format!(
            r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":"a","usage":{usage}}}]"#
        );
        assert_eq!(counted("openai-chat", &text), expected, "{usage}");
    }
    let steps = r#"[{"id":"a","role":"assistant","parts":[{"type":"text","text":"a"}],"metadata":{"usage":{"totalTokens":15},"totalUsage":{"totalTokens":40}}}]"#;
    assert_eq!(counted("ai-sdk", steps), "40");
    assert_eq!(counted("ai-sdk", &steps.replace("15", "50")), "0?");
}

/// A trace of OTLP: an agent with 33 tokens, and a call of a model below it.
fn agent_over(attributes: &str) -> String {
    let number = |name: &str, number: u64| format!(r#"{{"key":"{name}","value":{{"intValue":"{number}"}}}}"#);
    let span = |id: u64, parent: &str, operation: &str, rest: &str| {
        format!(
            r#"{{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"{id:016}","parentSpanId":"{parent}","name":"x","startTimeUnixNano":"{id}","attributes":[{{"key":"gen_ai.operation.name","value":{{"stringValue":"{operation}"}}}},{rest}]}}"#
        )
    };
    let agent = span(
        1,
        "",
        "invoke_agent",
        &[number("gen_ai.usage.input_tokens", 30), number("gen_ai.usage.output_tokens", 3)].join(","),
    );
    let model = span(2, "0000000000000001", "chat", attributes);
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{agent},{model}]}}]}}]}}"#)
}

#[test]
fn sums_of_spans_and_parts_of_their_tokens_are_held_against_what_is_counted() {
    let of_model = |input: u64, cached: u64| {
        let numbers = [("input_tokens", input), ("output_tokens", 3), ("cache_read_input_tokens", cached)];
        let numbers = numbers.map(|(name, number)| {
            format!(r#"{{"key":"gen_ai.usage.{name}","value":{{"intValue":"{number}"}}}}"#)
        });
        agent_over(&numbers.join(","))
    };
    assert_eq!(counted("otlp", &of_model(30, 8)), "33");
    assert_eq!(counted("otlp", &of_model(10, 8)), "13?");
    assert_eq!(counted("otlp", &of_model(30, 100)), "33?");
    let below = run(2, "llm", "m", r#""parent_run_id":"r1","inputs":{},"outputs":{},"total_tokens":24"#);
    for (sum, expected) in [(24, "24"), (54, "24?")] {
        let chain = run(1, "chain", "c", &format!(r#""inputs":{{}},"outputs":{{}},"total_tokens":{sum}"#));
        assert_eq!(counted("langsmith", &format!("{chain}\n{below}")), expected);
    }
}

#[test]
fn usage_details_without_a_total_are_added() {
    for (details, expected) in [
        (r#"{"input":86,"input_cached_tokens":17817,"output":100}"#, "18003"),
        (r#"{"input":10,"output":20,"output_reasoning_tokens":80}"#, "110"),
        (r#"{"input":17903,"input_cached_tokens":17817,"output":100,"total":18003}"#, "18003"),
    ] {
        let text = format!(
            r#"[{{"id":"o","traceId":"t","type":"GENERATION","name":"m","startTime":"2025-03-01T10:00:01Z","input":"q","output":"a","usageDetails":{details}}}]"#
        );
        assert_eq!(counted("langfuse", &text), expected, "{details}");
    }
}

#[test]
fn a_usage_of_a_thread_that_is_there_again_counts_once_and_a_gap_is_noted() {
    let said = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[]}}"#;
    let count = |(total, last): (u64, u64)| {
        format!(
            r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"total_tokens":{total}}},"last_token_usage":{{"total_tokens":{last}}}}}}}}}"#
        )
    };
    for (counts, expected) in [
        (&[(100, 100), (220, 120), (100, 100), (220, 120)][..], "220"),
        (&[(100, 100), (220, 120), (100, 100), (220, 120), (300, 80)], "300"),
        (&[(100, 100), (100, 40), (60, 60)], "160"),
        (&[(100, 100), (300, 80)], "180?"),
    ] {
        let lines: Vec<String> = counts.iter().flat_map(|one| [said.to_owned(), count(*one)]).collect();
        assert_eq!(counted("codex", &lines.join("\n")), expected, "{counts:?}");
    }
    let record = |id: u64, usage: u64, thread: u64| {
        format!(
            r#"{{"type":"token_usage_record","payload":{{"response_id":"r{id}","usage":{{"total_tokens":{usage}}},"thread_token_usage":{{"total_tokens":{thread}}}}}}}"#
        )
    };
    for (thread, expected) in [(180, "180"), (300, "180?")] {
        let lines = [said, &record(1, 100, 100), said, &record(2, 80, thread)].join("\n");
        assert_eq!(counted("codex", &lines), expected);
    }
}

#[test]
fn sums_of_what_is_not_in_the_source_are_noted() {
    let ask = r#"{"type":"assistant","uuid":"k","parentUuid":null,"sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Task","input":{"prompt":"Look.","subagent_type":"x"}}],"usage":{"input_tokens":1,"output_tokens":2}}}"#;
    let first = r#"{"type":"user","uuid":"s1","parentUuid":null,"sessionId":"s","isSidechain":true,"agentId":"a","message":{"role":"user","content":"Look."}}"#;
    let result = r#"{"type":"user","uuid":"r","parentUuid":"k","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"done"}]},"toolUseResult":{"agentId":"a","totalTokens":5000,"totalToolUseCount":7}}"#;
    assert_eq!(counted("claude-code", &[ask, result].join("\n")), "3?");
    assert_eq!(counted("claude-code", &[ask, first, result].join("\n")), "3");
    for (sum, expected) in [(15, "15"), (150, "15?")] {
        let log = format!(
            r#"{{"version":2,"status":"success","eval":{{"task":"w","created":"2026-01-02T03:04:05Z","model":"m"}},"samples":[{{"id":1,"epoch":1,"input":"q","target":"n","events":[{{"event":"model","model":"m","input":[],"output":{{"choices":[{{"message":{{"role":"assistant","content":"a"}},"stop_reason":"stop"}}],"usage":{{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}}}}],"model_usage":{{"m":{{"total_tokens":{sum}}}}}}}]}}"#
        );
        assert_eq!(counted("inspect", &log), expected);
    }
}

/// Shows each tick of a source.
fn each_shown(kind: &str, text: &str) -> Vec<String> {
    crate::spans::lines(&import(text.as_bytes(), of(kind)).unwrap().1)
}

/// A call of `f` with the id `c` and messages after it, as a chat.
fn after_call(more: &str) -> String {
    format!(
        r#"[{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","function":{{"name":"f","arguments":"{{}}"}}}}]}},{more}]"#
    )
}

#[test]
fn a_source_that_is_cut_between_two_items_is_noted_at_the_last_one() {
    let text =
        r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a","usage":{"total_tokens":5}},"#;
    let expected = [r#"observation.add user "q""#, r#"plan.update assistant "a" t5 !source_cut"#];
    check("openai-chat", text, &expected);
}

#[test]
fn a_result_that_is_there_again_states_nothing() {
    let result = |text: &str| format!(r#"{{"role":"tool","tool_call_id":"c","content":"{text}"}}"#);
    let (one, other) = (result("Error: x"), result("Error: y"));
    let first =
        ["action.request assistant f({})#c", r#"action.result assistant f({})#c <-1 = "Error: x" error"#];
    let same = [first[0], first[1], "observation.add tool !repeated"];
    check("openai-chat", &after_call(&format!("{one},{one}")), &same);
    let differs = [
        first[0],
        first[1],
        r#"action.result tool (null)#c = "Error: y" error !not_read[failures] !result_without_call"#,
    ];
    let found = each_shown("openai-chat", &after_call(&format!("{one},{other}")));
    assert_eq!(found[..2], differs[..2]);
    assert!(found[2].contains("!not_read[failures]"), "{found:?}");
    // The id may name another call after that.
    let again = after_call(&format!("{one},{}", &after_call(&one)[1..after_call(&one).len() - 1]));
    let (plan, _) = import(again.as_bytes(), of("openai-chat")).unwrap();
    assert_eq!((plan.tally.calls, plan.tally.errors, plan.tally.gaps()), (2, 2, 0));
}

#[test]
fn a_call_of_codex_that_is_written_twice_is_one() {
    let call = r#"{"type":"response_item","payload":{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}}"#;
    let result = |output: &str| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"c","output":{output}}}}}"#
        )
    };
    let failed = result(r#""Exit code: 1\nOutput:\nbad""#);
    let (plan, records) = import([call, &failed, call, &failed].join("\n").as_bytes(), of("codex")).unwrap();
    let found = crate::spans::lines(&records);
    assert_eq!((plan.tally.calls, plan.tally.errors), (1, 1), "{found:?}");
    assert!(found[2].ends_with("!repeated") && found[3].ends_with("!repeated"), "{found:?}");
    // The parts of an output are read as its text is.
    let parts = result(r#"[{"type":"input_text","text":"Exit code: 3\nOutput:\nx"}]"#);
    let (plan, _) = import([call, &parts].join("\n").as_bytes(), of("codex")).unwrap();
    assert_eq!(plan.tally.errors, 1);
}

#[test]
fn work_that_has_not_ended_has_no_result() {
    let open = |more: &str| run(1, "tool", "f", &format!(r#""inputs":{{"input":"{{}}"}},{more}"#));
    let ended = r#""outputs":null,"error":null,"status":"success","end_time":"2024-04-29T00:49:02""#;
    let span = |end: &str| {
        format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"execute_tool f","startTimeUnixNano":"1"{end},"attributes":[{{"key":"gen_ai.operation.name","value":{{"stringValue":"execute_tool"}}}},{{"key":"gen_ai.tool.name","value":{{"stringValue":"f"}}}}]}}]}}]}}]}}"#
        )
    };
    let observed = |end: &str| {
        format!(
            r#"[{{"id":"o","traceId":"t","type":"TOOL","name":"f","startTime":"2025-03-01T10:00:01Z","endTime":{end},"input":{{}},"output":null}}]"#
        )
    };
    let part = |more: &str| {
        format!(
            r#"[{{"id":"a","role":"assistant","parts":[{{"type":"tool-f","toolCallId":"c","state":"output-available","input":{{}},"output":"half"{more}}}]}}]"#
        )
    };
    for (kind, text, is_open) in [
        ("langsmith", open(r#""outputs":null,"error":null,"status":"pending""#), true),
        ("langsmith", open(r#""outputs":{},"error":null,"status":"interrupted""#), true),
        ("langsmith", open(r#""outputs":null,"error":null,"end_time":null"#), true),
        ("langsmith", open(r#""outputs":null,"error":"x","end_time":null"#), false),
        ("langsmith", open(ended), false),
        ("otlp", span(""), true),
        ("otlp", span(r#","endTimeUnixNano":"0""#), true),
        ("otlp", span(r#","endTimeUnixNano":"2""#), false),
        ("langfuse", observed("null"), true),
        ("langfuse", observed(r#""2025-03-01T10:00:02Z""#), false),
        ("ai-sdk", part(r#","preliminary":true"#), true),
        ("ai-sdk", part(""), false),
    ] {
        let found = each_shown(kind, &text);
        let (is_noted, has_result) = (
            found[0].contains("!call_without_result"),
            found.iter().any(|one| one.starts_with("action.result")),
        );
        assert_eq!((is_noted, has_result), (is_open, !is_open), "{kind} {text}: {found:?}");
    }
}

#[test]
fn a_failure_that_an_output_states_is_not_overruled() {
    let part = |output: &str| {
        format!(
            r#"[{{"id":"a","role":"assistant","parts":[{{"type":"tool-f","toolCallId":"c","state":"output-available","input":{{}},"output":{output}}}]}}]"#
        )
    };
    let result = |more: &str| after_call(&format!(r#"{{"role":"tool","tool_call_id":"c",{more}}}"#));
    let invoked = |more: &str| {
        format!(
            r#"[{{"id":"a","role":"assistant","content":"","toolInvocations":[{{"state":"result","toolCallId":"c","toolName":"f","args":{{}},"result":{{"error":"x"}}}}]{more}}}]"#
        )
    };
    let copy = r#","parts":[{"type":"step-start"},{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c","toolName":"f","args":{},"result":{"error":"x"}}}]"#;
    let answer = r#"[{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"f","input":{}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{"type":"json","value":{"error":"x"}}}]}]"#;
    for (kind, text, errors, is_unknown) in [
        ("ai-sdk", part(r#"{"isError":true,"content":[]}"#), 1, false),
        ("ai-sdk", part(r#"{"error":"x"}"#), 1, false),
        ("ai-sdk", part(r#""Error: x""#), 1, false),
        ("ai-sdk", part(r#"{"n":1}"#), 0, false),
        ("ai-sdk", answer.to_owned(), 1, false),
        ("ai-sdk", invoked(""), 1, false),
        ("ai-sdk", invoked(copy), 1, false),
        ("openai-chat", result(r#""is_error":false,"content":"{\"isError\":true}""#), 0, true),
        ("openai-chat", result(r#""is_error":false,"content":"Error: x""#), 0, false),
        ("openai-chat", result(r#""content":"{\"isError\":\"true\"}""#), 0, true),
    ] {
        let (plan, records) = import(text.as_bytes(), of(kind)).unwrap();
        let found = crate::spans::lines(&records);
        let noted = found.iter().any(|one| one.contains("!status_unknown"));
        assert_eq!(
            (plan.tally.calls, plan.tally.errors, noted),
            (1, errors, is_unknown),
            "{text}: {found:?}"
        );
        assert_eq!(plan.tally.gaps(), u64::from(is_unknown), "{text}: {found:?}");
    }
}

#[test]
fn lines_that_are_there_again_make_no_branch() {
    let user = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"q"}}"#;
    let asks = r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}}"#;
    let result = r#"{"type":"user","uuid":"r1","parentUuid":"a1","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"no","is_error":true}]}}"#;
    let ends = r#"{"type":"assistant","uuid":"a2","parentUuid":"r1","sessionId":"s","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"x"}]}}"#;
    let all = [user, asks, result, ends, asks, result, ends].join("\n");
    let (plan, records) = import(all.as_bytes(), of("claude-code")).unwrap();
    let found = crate::spans::lines(&records);
    assert_eq!((plan.branches(), plan.tally.calls, plan.tally.errors), (0, 1, 1), "{found:?}");
    assert_eq!(found.iter().filter(|one| one.ends_with("!repeated")).count(), 3, "{found:?}");
}

#[test]
fn a_model_with_several_models_below_it_is_their_sum() {
    let model = |id: u64, above: Option<u64>, tokens: Option<u64>| {
        let above = above.map(|above| format!(r#","parentObservationId":"o{above}""#)).unwrap_or_default();
        let usage =
            tokens.map(|tokens| format!(r#","usageDetails":{{"total":{tokens}}}"#)).unwrap_or_default();
        format!(
            r#"{{"id":"o{id}","traceId":"t","type":"GENERATION","name":"m","startTime":"2025-03-01T10:00:0{id}Z","input":[{{"role":"user","content":"q"}}],"output":{{"role":"assistant","content":"a"}}{above}{usage}}}"#
        )
    };
    for (own, inner, sum, notes) in [
        // A single one is the same answer.
        (Some(15), vec![Some(15)], 15, 0),
        (Some(15), vec![Some(15), Some(15)], 30, 0),
        (Some(54), vec![Some(30), Some(24)], 54, 0),
        (None, vec![Some(30), Some(24)], 54, 0),
        // What was tried in vain used nothing.
        (Some(24), vec![None, Some(24)], 24, 0),
        (Some(99), vec![Some(30), Some(24)], 54, 1),
        (Some(15), vec![None, None], 15, 0),
    ] {
        let below = inner.iter().zip(2..).map(|(tokens, id)| model(id, Some(1), *tokens));
        let all: Vec<String> = std::iter::once(model(1, None, own)).chain(below).collect();
        let (_, records) = import(format!("[{}]", all.join(",")).as_bytes(), of("langfuse")).unwrap();
        let found = crate::spans::lines(&records);
        assert_eq!(crate::spans::tokens(&records), Some(sum), "{own:?} {inner:?}: {found:?}");
        let noted = found.iter().filter(|one| one.contains("!not_read[usage]")).count();
        assert_eq!(noted, notes, "{own:?} {inner:?}: {found:?}");
    }
}
