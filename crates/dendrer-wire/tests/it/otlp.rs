//! Spans of OpenTelemetry, in each convention.

use dendrer_object::{Code, Value, json};
use dendrer_wire::format;
use dendrer_wire::import::{ImportError, NoteKind};

use crate::spans::{check, damaged, indexed, large, lines, tokens};
use crate::{import, of};

/// A value of an attribute as a file has it.
fn any(value: &Value) -> Value {
    let tagged = |name: &str, value: Value| Value::record([(name, value)]);
    match value {
        Value::String(_) => tagged("stringValue", value.clone()),
        Value::Bool(_) => tagged("boolValue", value.clone()),
        Value::Number(number) if number.as_i64().is_some() => {
            tagged("intValue", Value::from(value.to_string()))
        }
        Value::Number(_) => tagged("doubleValue", value.clone()),
        Value::Array(items) => {
            tagged("arrayValue", Value::record([("values", Value::array(items.iter().map(any)))]))
        }
        Value::Object(_) => tagged("kvlistValue", Value::record([("values", attributes(value))])),
        Value::Null => Value::object(),
    }
}

fn attributes(value: &Value) -> Value {
    let members = value.as_object().unwrap().iter();
    Value::array(
        members.map(|(name, value)| Value::record([("key", Value::from(&**name)), ("value", any(value))])),
    )
}

fn parse(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap()
}

/// A span of the trace `t`: number, number of the parent, start, name, attributes; `more` are members of the span.
fn span_of(trace: &str, id: u64, parent: u64, start: u64, name: &str, named: &str, more: &str) -> String {
    let parent = if parent == 0 { String::new() } else { format!(r#","parentSpanId":"{parent:016x}""#) };
    format!(
        r#"{{"traceId":"{trace}","spanId":"{id:016x}"{parent},"name":"{name}","kind":1,"startTimeUnixNano":"{}","endTimeUnixNano":"{}","attributes":{}{more}}}"#,
        1_000_000 + start,
        1_000_100 + start,
        attributes(&parse(named))
    )
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn span(id: u64, parent: u64, start: u64, name: &str, named: &str) -> String {
    span_of(TRACE, id, parent, start, name, named, "")
}

fn request(spans: &[String]) -> String {
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"shop"}}}}]}},"scopeSpans":[{{"scope":{{"name":"lib"}},"spans":[{}]}}]}}]}}"#,
        spans.join(",")
    )
}

const QUESTION: &str = r#"{"role":"user","parts":[{"type":"text","content":"How warm is it in Oslo?"}]}"#;
const ASKED: &str = r#"{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"weather","arguments":{"city":"Oslo"}}]}"#;
const ANSWERED: &str =
    r#"{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"3 C"}]}"#;
const SAID: &str =
    r#"{"role":"assistant","parts":[{"type":"text","content":"3 degrees."}],"finish_reason":"stop"}"#;

fn text(list: &[&str]) -> String {
    Value::from(format!("[{}]", list.join(","))).to_string()
}

/// A conversation with one call, as the conventions have it: agent, model, tool, model.
fn agent_run() -> Vec<String> {
    let asked = ASKED.replace("}]}", r#"}],"finish_reason":"tool_call"}"#);
    let first = format!(
        r#"{{"gen_ai.operation.name":"chat","gen_ai.provider.name":"openai","gen_ai.request.model":"m","gen_ai.request.max_tokens":100,"gen_ai.system_instructions":{},"gen_ai.input.messages":{},"gen_ai.output.messages":{},"gen_ai.usage.input_tokens":10,"gen_ai.usage.output_tokens":5,"gen_ai.response.finish_reasons":["tool_calls"]}}"#,
        Value::from(r#"[{"type":"text","content":"Be brief."}]"#),
        text(&[QUESTION]),
        text(&[&asked])
    );
    let second = format!(
        r#"{{"gen_ai.operation.name":"chat","gen_ai.request.model":"m","gen_ai.system_instructions":{},"gen_ai.input.messages":{},"gen_ai.output.messages":{},"gen_ai.usage.input_tokens":20,"gen_ai.usage.output_tokens":7,"gen_ai.usage.cache_read.input_tokens":8}}"#,
        Value::from(r#"[{"type":"text","content":"Be brief."}]"#),
        text(&[QUESTION, ASKED, ANSWERED]),
        text(&[SAID])
    );
    let agent = r#"{"gen_ai.operation.name":"invoke_agent","gen_ai.agent.name":"Clerk","gen_ai.usage.input_tokens":30,"gen_ai.usage.output_tokens":12}"#;
    let tool = r#"{"gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"weather","gen_ai.tool.call.id":"c1","gen_ai.tool.call.arguments":"{\"city\":\"Oslo\"}","gen_ai.tool.call.result":"3 C"}"#;
    // Children end first, and are written first.
    vec![
        span(2, 1, 10, "chat m", &first),
        span(3, 1, 20, "execute_tool weather", tool),
        span(4, 1, 30, "chat m", &second),
        span(1, 0, 0, "invoke_agent Clerk", agent),
    ]
}

const AGENT_RUN: [&str; 6] = [
    r#"observation.add Clerk "invoke_agent Clerk""#,
    r#"observation.add system "Be brief.""#,
    r#"observation.add user "How warm is it in Oslo?""#,
    r#"action.request Clerk weather({"city":"Oslo"})#c1 t15"#,
    r#"action.result Clerk weather({"city":"Oslo"})#c1 <-4 = "3 C" ok"#,
    r#"plan.update Clerk "3 degrees." t27"#,
];

#[test]
fn an_agent_its_model_and_its_tool_are_one_conversation() {
    let plan = check("otlp", &request(&agent_run()), &AGENT_RUN);
    assert_eq!((plan.tally.calls, plan.tally.paired, plan.tally.gaps()), (1, 1, 0));
    // One span a line, as a collector writes them; both spellings of the names, and ids in base64.
    let by_line: Vec<String> = agent_run().into_iter().map(|span| request(&[span])).collect();
    check("otlp", &by_line.join("\n"), &AGENT_RUN);
    let snake = by_line.join("\n");
    let snake = [
        ("resourceSpans", "resource_spans"),
        ("scopeSpans", "scope_spans"),
        ("traceId", "trace_id"),
        ("spanId", "span_id"),
        ("parentSpanId", "parent_span_id"),
        ("startTimeUnixNano", "start_time_unix_nano"),
        ("stringValue", "string_value"),
        ("intValue", "int_value"),
    ]
    .iter()
    .fold(snake, |text, (one, other)| text.replace(one, other));
    check("otlp", &snake, &AGENT_RUN);
    let mixed = request(&agent_run()).replace(r#""spanId":"0000000000000002""#, r#""spanId":"AAAAAAAAAAI=""#);
    check(
        "otlp",
        &mixed.replace(r#""parentSpanId":"0000000000000001""#, r#""parentSpanId":"AAAAAAAAAAE=""#),
        &AGENT_RUN,
    );
    check("otlp", &format!("[{}]", by_line.join(",")), &AGENT_RUN);
}

#[test]
fn the_kind_is_seen_and_recorded_with_its_version() {
    for source in [request(&agent_run()), format!(" [\n{}]", request(&agent_run()))] {
        let found = format::of_source(&mut std::io::Cursor::new(source.as_bytes()), false).unwrap();
        assert_eq!((found.name, found.recorded_name().as_str()), ("otlp", "otlp/1"));
    }
    let chat = br#"[{"role":"user","content":"what is \"resourceSpans\"?"}]"#;
    assert_eq!(format::of_source(&mut std::io::Cursor::new(chat), false).unwrap().name, "openai-chat");
}

/// One request of three spans, as the exporters of OpenTelemetry for Python write it, in protobuf and in JSON.
const PROTOBUF: &[u8] = include_bytes!("../fixtures/spans.pb");
const JSON: &[u8] = include_bytes!("../fixtures/spans.json");

/// Requests, each after its length.
fn prefixed(requests: &[&[u8]]) -> Vec<u8> {
    requests.iter().flat_map(|one| [&(one.len() as u32).to_be_bytes()[..], one].concat()).collect()
}

/// A field of protobuf that has a length.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut made = vec![(number << 3) | 2];
    let mut size = bytes.len();
    while size >= 0x80 {
        made.push((size & 0x7f) as u8 | 0x80);
        size >>= 7;
    }
    made.push(size as u8);
    made.extend_from_slice(bytes);
    made
}

/// A request with one span of these fields.
fn request_of(span: &[u8]) -> Vec<u8> {
    field(1, &field(2, &field(2, span)))
}

#[test]
fn protobuf_and_json_of_the_same_spans_are_the_same_run() {
    let shown = |source: &[u8]| {
        assert_eq!(format::of_source(&mut std::io::Cursor::new(source), false).unwrap().name, "otlp");
        let (plan, records) = import(source, of("otlp")).unwrap();
        assert_eq!(plan.bytes, source.len() as u64);
        (1..records.len()).map(|tick| crate::shown(&records, tick).to_string()).collect::<Vec<_>>()
    };
    let wanted = shown(JSON);
    assert_eq!(wanted.len(), 4);
    assert_eq!(shown(PROTOBUF), wanted);
    assert_eq!(shown(&prefixed(&[PROTOBUF])), wanted);
    // A span that stands twice as it is counts once.
    let (plan, _) = import(&prefixed(&[PROTOBUF, b"", PROTOBUF]), of("otlp")).unwrap();
    assert_eq!((plan.tally.ticks, plan.tally.notes.get(&NoteKind::Repeated)), (4, Some(&3)));
}

#[test]
fn unknown_fields_are_counted_and_named() {
    let time = [&[(7 << 3) | 1][..], &[1; 8]].concat();
    let id = [field(1, &[7; 16]), field(2, &[7; 8]), field(5, b"work"), time].concat();
    let span = [&id[..], &[0xf2, 1, 1, b'x'], &[0xf8, 1, 5], &field(11, &field(9, b"y"))].concat();
    let (plan, records) = import(&request_of(&span), of("otlp")).unwrap();
    let line = crate::spans::line(&records, 1);
    assert_eq!(line, r#"observation.add environment "work" !not_read[calls,usage,failures,speakers]"#);
    assert_eq!(plan.tally.first_notes.iter().filter(|(_, note)| note.path == "/0/unknownFields").count(), 1);
    assert!(records[1].content().to_string().contains(r#""unknownFields":3"#), "{}", records[1].content());
    let around = [field(1, &field(2, &field(2, &id))), field(9, b"z")].concat();
    let (plan, records) = import(&around, of("otlp")).unwrap();
    assert_eq!(plan.tally.gaps(), 1);
    assert_eq!(
        records[0].content().get("meta").and_then(|meta| meta.get("unknown_fields")),
        Some(&Value::from(1u64))
    );
}

#[test]
fn protobuf_that_is_not_sound_is_refused() {
    let code = |source: &[u8]| import(source, of("otlp")).map(|_| ()).map_err(|error| error.code());
    for end in 1..PROTOBUF.len() {
        assert!(code(&PROTOBUF[..end]).is_err(), "{end}");
    }
    let two = prefixed(&[PROTOBUF, PROTOBUF]);
    for end in PROTOBUF.len() + 5..two.len() {
        assert_eq!(code(&two[..end]), Err(Code::E0201), "{end}");
    }
    let id = [field(1, &[7; 16]), field(2, &[7; 8])].concat();
    let span = |more: &[u8]| code(&request_of(&[&id[..], more].concat()));
    assert_eq!(span(&field(5, b"\xff")), Err(Code::E0206));
    assert_eq!(span(&[7 << 3, 1]), Err(Code::E0201));
    assert_eq!(span(&[0xff; 12]), Err(Code::E0201));
    assert_eq!(
        span(&[(9 << 3) | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        Err(Code::E0201)
    );
    // Values in values.
    let mut value = field(1, b"x");
    for _ in 0..10_000 {
        value = field(5, &field(1, &value));
    }
    assert_eq!(span(&field(9, &[field(1, b"k"), field(2, &value)].concat())), Err(Code::E0204));
    // A byte changed anywhere is an error or another run, and never a panic.
    for place in 0..PROTOBUF.len() {
        for change in [0x01, 0x41, 0x80, 0xff] {
            let mut changed = PROTOBUF.to_vec();
            changed[place] ^= change;
            if let Err(error) = import(&changed, of("otlp")) {
                assert!(!matches!(error, ImportError::Repository(_)), "{place}: {error}");
            }
        }
    }
}

#[test]
fn a_tool_without_the_models_call_is_a_request_and_a_result() {
    let tool = r#"{"gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"pay","gen_ai.tool.call.arguments":{"n":2},"error.type":"TimeoutError"}"#;
    let failed =
        span_of(TRACE, 2, 0, 5, "execute_tool pay", tool, r#","status":{"code":2,"message":"no answer"}"#);
    let fine = r#"{"gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"pay","gen_ai.tool.call.id":"p","gen_ai.tool.call.result":"Error: old"}"#;
    let fine = span_of(TRACE, 3, 0, 9, "execute_tool pay", fine, r#","status":{"code":"STATUS_CODE_OK"}"#);
    let plan = check(
        "otlp",
        &request(&[failed, fine]),
        &[
            r#"action.request assistant pay({"n":2})#0000000000000002"#,
            r#"action.result assistant pay({"n":2})#0000000000000002 <-1 =  error "no answer""#,
            "action.request assistant pay()#p",
            r#"action.result assistant pay()#p <-3 = "Error: old" ok"#,
        ],
    );
    assert_eq!((plan.tally.calls, plan.tally.errors), (2, 1));
}

#[test]
fn a_result_comes_behind_the_spans_below_its_tool() {
    let tool = |id: &str| {
        format!(
            r#"{{"gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"ask","gen_ai.tool.call.id":"{id}","gen_ai.tool.call.result":"done"}}"#
        )
    };
    let agent = r#"{"gen_ai.operation.name":"invoke_agent","gen_ai.agent.name":"Helper"}"#;
    check(
        "otlp",
        &request(&[
            span(1, 0, 0, "t", &tool("a")),
            span(2, 1, 1, "invoke_agent", agent),
            span(3, 2, 2, "t", &tool("b")),
        ]),
        &[
            "action.request assistant ask()#a",
            r#"observation.add Helper "invoke_agent""#,
            "action.request Helper ask()#b",
            r#"action.result Helper ask()#b <-3 = "done" ok"#,
            r#"action.result assistant ask()#a <-1 = "done" ok"#,
        ],
    );
    // Two layers of a program measure one call.
    check(
        "otlp",
        &request(&[span(1, 0, 0, "t", &tool("a")), span(2, 1, 1, "tools/call ask", &tool("a"))]),
        &[
            "action.request assistant ask()#a",
            r#"observation.add assistant "tools/call ask""#.replace("assistant", "environment").as_str(),
            r#"action.result assistant ask()#a <-1 = "done" ok"#,
        ],
    );
}

#[test]
fn previous_names_and_events_say_the_same() {
    // Attributes that go on with numbers, as OpenLLMetry writes them.
    let first = r#"{"llm.request.type":"chat","gen_ai.system":"OpenAI","gen_ai.prompt.0.role":"user","gen_ai.prompt.0.content":"hi","gen_ai.completion.0.role":"assistant","gen_ai.completion.0.finish_reason":"tool_calls","gen_ai.completion.0.tool_calls.0.id":"c1","gen_ai.completion.0.tool_calls.0.name":"look","gen_ai.completion.0.tool_calls.0.arguments":"{\"x\": 1}","gen_ai.usage.prompt_tokens":3,"gen_ai.usage.completion_tokens":4,"llm.usage.total_tokens":7}"#;
    let tool = r#"{"traceloop.span.kind":"tool","traceloop.entity.name":"look","traceloop.entity.input":"{\"x\":1}","traceloop.entity.output":"found"}"#;
    let second = r#"{"llm.request.type":"chat","gen_ai.system":"OpenAI","gen_ai.prompt.0.role":"user","gen_ai.prompt.0.content":"hi","gen_ai.prompt.1.role":"assistant","gen_ai.prompt.1.tool_calls.0.id":"c1","gen_ai.prompt.1.tool_calls.0.name":"look","gen_ai.prompt.1.tool_calls.0.arguments":"{\"x\": 1}","gen_ai.prompt.2.role":"tool","gen_ai.prompt.2.tool_call_id":"c1","gen_ai.prompt.2.content":"found","gen_ai.completion.0.role":"assistant","gen_ai.completion.0.content":"done","gen_ai.usage.prompt_tokens":9,"gen_ai.usage.completion_tokens":1}"#;
    let workflow = r#"{"traceloop.span.kind":"workflow","traceloop.entity.name":"w"}"#;
    let expected = [
        r#"observation.add environment "w.workflow""#,
        r#"observation.add user "hi""#,
        r#"action.request assistant look({"x":1})#c1 t7"#,
        r#"action.result assistant look({"x":1})#c1 <-3 = "found" ok"#,
        r#"plan.update assistant "done" t10"#,
    ];
    let spans = [
        span(1, 0, 0, "w.workflow", workflow),
        span(2, 1, 1, "openai.chat", first),
        span(3, 1, 2, "look.tool", tool),
        span(4, 1, 3, "openai.chat", second),
    ];
    check("otlp", &request(&spans), &expected);
    // Messages in events of the span, and in records of a log.
    let event = |name: &str, named: &str| {
        format!(r#"{{"timeUnixNano":"5","name":"{name}","attributes":{}}}"#, attributes(&parse(named)))
    };
    let choice = r#"{"gen_ai.system":"openai","index":0,"finish_reason":"tool_calls","message":"{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"{}\"}}]}"}"#;
    let events =
        [event("gen_ai.user.message", r#"{"content":"hi"}"#), event("gen_ai.choice", choice)].join(",");
    let named =
        r#"{"gen_ai.operation.name":"chat","gen_ai.usage.input_tokens":1,"gen_ai.usage.output_tokens":2}"#;
    let one = span_of(TRACE, 1, 0, 0, "chat m", named, &format!(r#","events":[{events}]"#));
    let record = |name: &str, body: &str| {
        format!(
            r#"{{"timeUnixNano":"9","eventName":"{name}","traceId":"{TRACE}","spanId":"0000000000000002","attributes":[],"body":{}}}"#,
            any(&parse(body))
        )
    };
    let records = [
        record("gen_ai.user.message", r#"{"content":"hi"}"#),
        record(
            "gen_ai.assistant.message",
            r#"{"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]}"#,
        ),
        record("gen_ai.tool.message", r#"{"id":"c1","content":"Error: none"}"#),
        record(
            "gen_ai.choice",
            r#"{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"done"}}"#,
        ),
    ];
    let logs = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{}]}}]}}]}}"#, records.join(","));
    check(
        "otlp",
        &format!("{logs}\n{}", request(&[one, span(2, 0, 1, "chat m", named)])),
        &[
            r#"observation.add user "hi""#,
            "action.request assistant look({})#c1 t3",
            r#"action.result assistant look({})#c1 <-2 = "Error: none" error"#,
            r#"plan.update assistant "done" t3"#,
        ],
    );
}

#[test]
fn spans_of_open_inference_are_read() {
    let model = r#"{"openinference.span.kind":"LLM","llm.model_name":"m","llm.input_messages.0.message.role":"user","llm.input_messages.0.message.contents.0.message_content.type":"text","llm.input_messages.0.message.contents.0.message_content.text":"hi","llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.tool_calls.0.tool_call.id":"c1","llm.output_messages.0.message.tool_calls.0.tool_call.function.name":"look","llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments":"{\"x\": 1}","llm.token_count.prompt":3,"llm.token_count.completion":4,"llm.token_count.total":7,"llm.token_count.prompt_details.cache_read":2,"llm.cost.total":0.5,"input.value":"{\"messages\":[]}","input.mime_type":"application/json","output.value":"{}"}"#;
    let tool = r#"{"openinference.span.kind":"TOOL","tool.name":"look","tool.description":"looks","input.value":"{\"x\":1}","output.value":"{\"error\":\"none\"}","output.mime_type":"application/json"}"#;
    let plan = check(
        "otlp",
        &request(&[
            span(
                1,
                0,
                0,
                "run",
                r#"{"openinference.span.kind":"AGENT","agent.name":"Ann","input.value":"hi"}"#,
            ),
            span(2, 1, 1, "ChatCompletion", model),
            span(3, 1, 2, "look", tool),
            span(
                4,
                1,
                3,
                "find",
                r#"{"openinference.span.kind":"RETRIEVER","retrieval.documents.0.document.content":"x"}"#,
            ),
        ]),
        &[
            r#"observation.add Ann "run""#,
            r#"observation.add user "hi""#,
            r#"action.request Ann look({"x":1})#c1 t7 $0.5"#,
            r#"action.result Ann look({"x":1})#c1 <-3 = "{\"error\":\"none\"}" error"#,
            r#"observation.add Ann "find""#,
        ],
    );
    assert_eq!(plan.tally.gaps(), 0);
}

#[test]
fn messages_are_new_once_and_in_order() {
    let chat = |list: &[&str], out: &str| {
        let message = |at: usize, said: &&str| {
            format!(
                r#"{{"role":"{}","content":"{said}"}}"#,
                if at.is_multiple_of(2) { "user" } else { "assistant" }
            )
        };
        let given: Vec<String> = list.iter().enumerate().map(|(at, said)| message(at, said)).collect();
        format!(
            r#"{{"gen_ai.operation.name":"chat","gen_ai.input.messages":{},"gen_ai.output.messages":{},"gen_ai.usage.input_tokens":1,"gen_ai.usage.output_tokens":1}}"#,
            Value::from(format!("[{}]", given.join(","))),
            Value::from(format!(r#"[{{"role":"assistant","content":"{out}"}}]"#))
        )
    };
    let spans = [
        span(1, 0, 0, "chat", &chat(&["go"], "yes?")),
        span(2, 0, 1, "chat", &chat(&["go", "yes?", "go"], "gone")),
        // The window moves on: what was said first is left out.
        span(3, 0, 2, "chat", &chat(&["go", "gone", "go"], "gone")),
        // The same request again.
        span(4, 0, 3, "chat", &chat(&["go", "gone", "go"], "again")),
    ];
    let said: Vec<String> = lines(&import(request(&spans).as_bytes(), of("otlp")).unwrap().1);
    let short: Vec<&str> = said.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(
        short,
        [
            r#"user "go""#,
            r#"assistant "yes?" t2"#,
            r#"user "go""#,
            r#"assistant "gone" t2"#,
            r#"user "go""#,
            r#"assistant "gone" t2"#,
            r#"assistant "again" t2"#
        ]
    );
}

#[test]
fn usage_is_counted_once() {
    let model = |id: &str, tokens: u64| {
        format!(
            r#"{{"gen_ai.operation.name":"chat",{id}"gen_ai.output.messages":"[{{\"role\":\"assistant\",\"content\":\"x\"}}]","gen_ai.usage.input_tokens":{tokens},"gen_ai.usage.output_tokens":1}}"#
        )
    };
    let sum = |spans: &[String]| {
        let (plan, records) = import(request(spans).as_bytes(), of("otlp")).unwrap();
        (tokens(&records), plan.tally.gaps())
    };
    // A library and the client below it measure the same answer.
    assert_eq!(
        sum(&[span(1, 0, 0, "ChatModel", &model("", 4)), span(2, 1, 1, "chat", &model("", 4))]),
        (Some(5), 0)
    );
    let id = r#""gen_ai.response.id":"r1","#;
    assert_eq!(sum(&[span(1, 0, 0, "a", &model(id, 4)), span(2, 0, 1, "b", &model(id, 4))]), (Some(5), 0));
    assert_eq!(sum(&[span(1, 0, 0, "a", &model("", 4)), span(2, 0, 1, "b", &model("", 4))]), (Some(10), 0));
    // Two statements that differ, a total that is less than its parts, a model that states nothing.
    let both = model("", 4).replacen('{', r#"{"llm.token_count.prompt":5,"#, 1);
    assert_eq!(sum(&[span(1, 0, 0, "a", &both)]), (None, 1));
    let total = model("", 4).replacen('{', r#"{"gen_ai.usage.total_tokens":2,"#, 1);
    assert_eq!(sum(&[span(1, 0, 0, "a", &total)]), (None, 1));
    assert_eq!(sum(&[span(1, 0, 0, "a", r#"{"gen_ai.operation.name":"chat"}"#)]), (None, 0));
    // An agent sums what is below it; one with nothing below it is the only one that says so, as are embeddings.
    let agent = r#"{"gen_ai.operation.name":"invoke_agent","gen_ai.usage.input_tokens":99}"#;
    assert_eq!(sum(&[span(1, 0, 0, "a", agent), span(2, 1, 1, "b", &model("", 4))]), (Some(5), 0));
    assert_eq!(sum(&[span(1, 0, 0, "a", agent), span(2, 0, 1, "b", &model("", 4))]).1, 1);
    let embedding = r#"{"gen_ai.operation.name":"embeddings","gen_ai.usage.input_tokens":9}"#;
    assert_eq!(sum(&[span(1, 0, 0, "e", embedding)]).1, 1);
}

#[test]
fn a_span_twice_is_one_and_two_spans_of_one_id_are_a_gap() {
    let mut twice = agent_run();
    twice.push(twice[0].clone());
    let mut expected: Vec<String> = AGENT_RUN.iter().map(|line| (*line).to_owned()).collect();
    expected[3] += " !repeated";
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    let plan = check("otlp", &request(&twice), &expected);
    assert_eq!(plan.tally.gaps(), 0);
    let last = twice.len() - 1;
    twice[last] = twice[last].replace("1000110", "1000111");
    let (plan, records) = import(request(&twice).as_bytes(), of("otlp")).unwrap();
    assert_eq!((records.len(), plan.tally.gaps()), (8, 1));
    assert!(
        lines(&records).contains(
            &r#"observation.add Clerk "chat m" !not_read[calls,usage,failures,speakers]"#.to_owned()
        )
    );
    assert_eq!(tokens(&records), Some(42));
}

#[test]
fn attributes_of_no_table_are_noted_if_they_tell() {
    let with = |more: &str| {
        let named = format!(
            r#"{{"gen_ai.operation.name":"chat","gen_ai.output.messages":"[{{\"role\":\"assistant\",\"content\":\"x\"}}]","gen_ai.usage.input_tokens":1,"gen_ai.usage.output_tokens":1,{more}}}"#
        );
        let (_, records) = import(request(&[span(1, 0, 0, "chat", &named)]).as_bytes(), of("otlp")).unwrap();
        lines(&records).concat().split_once(" t2").unwrap().1.to_owned()
    };
    for (more, said) in [
        (r#""acme.team":"blue","acme.retries":0,"acme.flags":["a"]"#, ""),
        (r#""gen_ai.request.top_k":3,"gen_ai.openai.response.system_fingerprint":"f","server.port":443"#, ""),
        (r#""acme.tool_calls":"[{\"name\":\"pay\",\"arguments\":{}}]""#, " !not_read[calls]"),
        (r#""acme.usage":{"total_tokens":9}"#, " !not_read[usage]"),
        (r#""acme.speaker":"bob""#, ""),
        (r#""mlflow.spanType":"LLM""#, ""),
    ] {
        assert_eq!(with(more), said, "{more}");
    }
    let other = |named: &str| {
        let (_, records) = import(request(&[span(1, 0, 0, "x", named)]).as_bytes(), of("otlp")).unwrap();
        lines(&records).concat()
    };
    assert_eq!(
        other(r#"{"mlflow.spanType":"LLM","mlflow.spanInputs":"{}"}"#),
        r#"observation.add environment "x" !not_read[calls,usage,failures]"#
    );
    assert_eq!(
        other(r#"{"http.request.method":"GET","http.response.status_code":500}"#),
        r#"observation.add environment "x""#
    );
    let tool = r#"{"gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"t","acme.failure":"late","gen_ai.usage.input_tokens":4}"#;
    assert!(other(tool).ends_with("ok !not_read[failures] !not_read[usage]"), "{}", other(tool));
    let dropped = span_of(
        TRACE,
        1,
        0,
        0,
        "chat",
        r#"{"gen_ai.operation.name":"chat"}"#,
        r#","droppedAttributesCount":2"#,
    );
    let (plan, _) = import(request(&[dropped]).as_bytes(), of("otlp")).unwrap();
    assert_eq!(plan.tally.gaps(), 1);
}

#[test]
fn a_conversation_is_a_run_and_several_are_chosen_from() {
    let other = "1af7651916cd43dd8448eb211c80319c";
    let chat = |more: &str| format!(r#"{{"gen_ai.operation.name":"chat"{more}}}"#);
    let of_conversation = chat(r#","gen_ai.conversation.id":"k""#);
    let spans = [
        span_of(TRACE, 1, 0, 0, "a", "{}", ""),
        span_of(TRACE, 2, 1, 1, "b", &of_conversation, ""),
        span_of(other, 1, 0, 2, "c", &of_conversation, ""),
    ];
    let (plan, records) = import(request(&spans).as_bytes(), of("otlp")).unwrap();
    assert_eq!((plan.layout.index, records.len()), (None, 4));
    let several =
        [spans[0].clone(), span_of(other, 1, 0, 2, "c", &chat(""), ""), span(3, 1, 4, "d", &chat(""))];
    let error = import(request(&several).as_bytes(), of("otlp")).unwrap_err();
    assert!(matches!(error, ImportError::SeveralTraces { .. }));
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (Code::E0212, "2 runs are in it, by conversation or trace")
    );
    assert_eq!(error.place(), [("run", format!("0  {TRACE}  2 spans\n1  {other}  1 spans"))]);
    let (plan, records) = import(request(&several).as_bytes(), indexed("otlp", 1)).unwrap();
    assert_eq!((plan.layout.index, records.len()), (Some(1), 2));
    let error = import(request(&several).as_bytes(), indexed("otlp", 2)).unwrap_err();
    assert!(matches!(error, ImportError::NoRun { index: 2, count: 2 }));
}

#[test]
fn missing_times_and_parents_are_marked() {
    let chat = r#"{"gen_ai.operation.name":"invoke_workflow"}"#;
    let without = span(2, 1, 5, "b", chat).replace(r#""startTimeUnixNano":"1000005","#, "");
    let circle = [span(3, 4, 6, "c", chat), span(4, 3, 7, "d", chat), span(5, 5, 8, "e", chat)];
    let elsewhere = span_of(TRACE, 7, 98, 9, "g", chat, r#","flags":769"#);
    let spans = [&[span(1, 99, 4, "a", chat), without][..], &circle[..], &[elsewhere][..]].concat();
    check(
        "otlp",
        &request(&spans),
        &[
            r#"observation.add environment "a" !parent_missing"#,
            r#"observation.add environment "b" !no_order"#,
            r#"observation.add environment "c" !parent_cycle"#,
            r#"observation.add environment "d""#,
            r#"observation.add environment "e" !parent_cycle"#,
            r#"observation.add environment "g""#,
        ],
    );
}

#[test]
fn the_order_of_times_is_noted_once() {
    let (plan, records) = import(request(&agent_run()).as_bytes(), of("otlp")).unwrap();
    let noted: Vec<u64> = plan.tally.first_notes.iter().map(|(tick, _)| *tick).collect();
    assert_eq!((plan.tally.notes.len(), noted), (1, vec![1]));
    assert!(crate::shown(&records, 1).get("anomalies").unwrap().to_string().contains("ordered_by_time"));
}

#[test]
fn damaged_files_are_refused_or_have_gaps() {
    damaged("otlp", &request(&agent_run()), 200);
    let by_line: Vec<String> = agent_run().into_iter().map(|span| request(&[span])).collect();
    damaged("otlp", &by_line.join("\n"), 200);
    for source in [
        r#"{"resourceSpans":5}"#,
        r#"{"resourceSpans":[5]}"#,
        r#"{"resourceSpans":[{"scopeSpans":[{"spans":[null]}]}]}"#,
    ] {
        let (plan, _) = import(source.as_bytes(), of("otlp")).unwrap();
        assert_eq!(plan.tally.gaps(), 1, "{source}");
    }
    assert_eq!(import(br#"{"resourceSpans":[]}"#, of("otlp")).unwrap_err().code(), Code::E0203);
}

#[test]
fn a_hundred_thousand_spans_take_bounded_time() {
    let chain: Vec<String> = (1..=100_000u64)
        .map(|at| {
            span(at, at - 1, at, "x", r#"{"gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"t"}"#)
        })
        .collect();
    let plan = large("otlp", &request(&chain));
    assert!(plan.tally.calls >= 1);
    // One request has all the messages, and each other one of them.
    let said = |at: u64| format!(r#"{{"role":"user","content":"{at}"}}"#);
    let chat = |list: &[String]| {
        format!(
            r#"{{"gen_ai.operation.name":"chat","gen_ai.input.messages":{}}}"#,
            Value::from(format!("[{}]", list.join(",")))
        )
    };
    let all: Vec<String> = (0..20_000).map(said).collect();
    let mut asked = vec![span(1, 0, 1, "chat", &chat(&all))];
    asked.extend((0..20_000u64).map(|at| span(at + 2, 0, at + 2, "chat", &chat(&all[at as usize..][..1]))));
    assert_eq!(large("otlp", &request(&asked)).tally.ticks, 40_001);
    let circle: Vec<String> = (1..=20_000u64).map(|at| span(at, at % 20_000 + 1, 1, "x", "{}")).collect();
    assert_eq!(large("otlp", &request(&circle)).tally.gaps(), 1);
}
