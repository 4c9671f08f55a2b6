//! Formats of programs: what each item of a file becomes.

use dendrer_object::Value;

use dendrer_wire::import::Map;

use crate::{import, mapped, of, shown};

/// Each transition in a line: type, agent, what it asks or answers, where it came from, metrics and notes.
pub(crate) fn lines(format: &str, source: &str) -> Vec<String> {
    let (_, records) = import(source.as_bytes(), of(format)).unwrap();
    (1..records.len()).map(|tick| line(&shown(&records, tick))).collect()
}

fn line(value: &Value) -> String {
    let text = |path: &[&str]| {
        let mut at = value;
        for name in path {
            at = at.get(name)?;
        }
        Some(at.as_str().map_or_else(|| at.to_string(), str::to_owned))
    };
    let mut parts: Vec<String> = vec![text(&["type"]).unwrap(), text(&["agent_id"]).unwrap()];
    parts.extend(
        text(&["action", "tool"])
            .map(|tool| format!("{tool}{}", text(&["action", "params"]).unwrap_or_default())),
    );
    parts.extend(
        text(&["action", "calls"]).map(|calls| format!("calls{}", calls.matches("\"tool\"").count())),
    );
    parts.extend(
        text(&["result", "status"])
            .map(|status| format!("{status}={}", text(&["result", "output"]).unwrap_or_default())),
    );
    parts.extend(text(&["policy", "decision"]));
    parts.extend(text(&["intent", "content"]).map(|content| format!("'{content}'")));
    parts.extend(text(&["metrics", "tokens_used"]).map(|tokens| format!("t{tokens}")));
    parts.extend(text(&["caused_by"]).map(|cause| format!("<-{cause}")));
    let notes = value.get("anomalies").and_then(Value::as_array);
    for note in notes.into_iter().flat_map(|notes| notes.iter()) {
        parts.push(format!("!{}", note.get("kind").and_then(Value::as_str).unwrap()));
    }
    parts.join(" ")
}

#[test]
fn items_of_the_responses_api() {
    let items = r#"[{"role":"user","content":"Order."},
        {"type":"reasoning","id":"rs","summary":[],"encrypted_content":"x"},
        {"type":"function_call","id":"fc","call_id":"c1","name":"order","arguments":"{\"n\":2}","status":"completed"},
        {"type":"function_call_output","call_id":"c1","output":"Error: none left","status":"completed"},
        {"type":"custom_tool_call","call_id":"c2","name":"patch","input":"{}"},
        {"type":"custom_tool_call_output","call_id":"c2","output":"ok","status":"failed"},
        {"type":"mcp_call","id":"m","name":"roll","server_label":"dice","arguments":"{}","output":null,"error":"down"},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Sorry.","annotations":[]}]}]"#;
    let expected = [
        "observation.add user 'Order.'",
        "plan.update assistant 'null' tnull",
        r#"action.request assistant order{"n":2} 'null'"#,
        "action.result assistant order{\"n\":2} error=Error: none left <-3",
        "action.request assistant patch{} 'null'",
        "action.result assistant patch{} error=ok <-5",
        "action.request assistant roll{} 'null'",
        "action.result assistant roll{} error=null <-7",
        "plan.update assistant 'Sorry.'",
    ];
    assert_eq!(lines("openai-responses", items), expected);
    let conversation = format!(r#"{{"object":"list","data":{items},"has_more":false}}"#);
    assert_eq!(lines("openai-responses", &conversation), expected);
}

#[test]
fn the_usage_of_a_response_counts_once_and_responses_are_a_tree() {
    let response = |id: &str, before: &str, text: &str| {
        format!(
            r#"{{"id":"{id}","object":"response","previous_response_id":{before},"status":"completed","error":null,"tools":[],
            "output":[{{"type":"reasoning","id":"rs_{id}","summary":[]}},{{"type":"message","role":"assistant","id":"msg_{id}","content":[{{"type":"output_text","text":"{text}"}}]}}],
            "usage":{{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}}"#
        )
    };
    let line = |ids: &[(&str, &str, &str)]| {
        let all: Vec<String> = ids.iter().map(|(id, before, text)| response(id, before, text)).collect();
        format!("[{}]", all.join(","))
    };
    let found = lines("openai-responses", &line(&[("a", "null", "A"), ("b", "\"a\"", "B")]));
    let expected = [
        "plan.update assistant 'null'",
        "plan.update assistant 'A' t15",
        "plan.update assistant 'null'",
        "plan.update assistant 'B' t15",
    ];
    assert_eq!(found, expected);
    // Two answers to one response: the newer one was gone on with.
    let found =
        lines("openai-responses", &line(&[("a", "null", "A"), ("b", "\"a\"", "B"), ("c", "\"a\"", "C")]));
    assert_eq!((found.len(), &*found[3]), (4, "plan.update assistant 'C' t15"));
}

#[test]
fn an_item_in_no_table_is_named() {
    for (item, notes) in [
        (r#"{"type":"gadget_call","id":"g"}"#, true),
        (r#"{"type":"item_reference","id":"g"}"#, true),
        (r#"{"type":"mcp_list_tools","tools":[{"name":"f","input_schema":{}}]}"#, false),
        (
            r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}","sub_usage":{"total_tokens":7}}"#,
            true,
        ),
        (r#"{"type":"message","role":"user","content":"x","theme":"dark"}"#, false),
    ] {
        let found = lines(
            "openai-responses",
            &format!(r#"[{item},{{"type":"message","role":"user","content":"q"}}]"#),
        );
        assert_eq!(found[0].contains("!not_read"), notes, "{item}: {found:?}");
    }
}

#[test]
fn messages_with_parts_of_a_chat_store() {
    let messages = r#"[{"id":"u","role":"user","parts":[{"type":"text","text":"Pay."}]},
        {"id":"a","role":"assistant","metadata":{"usage":{"inputTokens":7,"outputTokens":3}},"parts":[
            {"type":"step-start"},{"type":"text","text":"I look."},
            {"type":"tool-look","toolCallId":"c1","state":"output-available","input":{"q":1},"output":"found"},
            {"type":"step-start"},
            {"type":"dynamic-tool","toolName":"pay","toolCallId":"c2","state":"output-error","input":{},"errorText":"declined"},
            {"type":"tool-wipe","toolCallId":"c3","state":"output-denied","input":{},"approval":{"id":"x","approved":false,"reason":"no"}},
            {"type":"step-start"},{"type":"text","text":"Done."}]}]"#;
    let expected = [
        "observation.add user 'Pay.'",
        r#"action.request assistant look{"q":1} 'I look.'"#,
        r#"action.result assistant look{"q":1} ok=found <-2"#,
        "action.request assistant calls2 'null'",
        "action.result assistant pay{} error=declined <-4",
        // A link to a request of several calls would be a decision about each of them.
        "policy.decision policy deny",
        "plan.update assistant 'Done.' t10",
    ];
    assert_eq!(lines("ai-sdk", messages), expected);
}

fn by_map(map: &str, source: &str) -> Vec<String> {
    let map = Map::from_value(&dendrer_object::json::parse_door(map.as_bytes()).unwrap()).unwrap();
    let (_, records) = import(source.as_bytes(), mapped(map)).unwrap();
    (1..records.len()).map(|tick| line(&shown(&records, tick))).collect()
}

#[test]
fn a_line_gives_a_transition_for_each_mapping_that_fits() {
    let map = r#"{"each":[
        {"type":{"from":"/call","words":{"*":"action.request"}},"agent":{"const":"a"},"action":{"tool":"/call","call_id":"/id"}},
        {"type":{"from":"/out","words":{"*":"action.result"}},"agent":{"const":"a"},"action":{"call_id":"/id"},"result":{"output":"/out"}}],
        "order":"/at"}"#;
    let lines = r#"{"at":2,"id":"2","call":"g"}
        {"at":1,"id":"1","call":"f","out":"Error: no"}
        {"id":"2","out":"ok"}"#;
    let expected = [
        "action.request a f tnull",
        "action.result a f error=Error: no <-1",
        "action.result a ok=ok !result_without_call !no_order",
        "action.request a g !call_without_result",
    ];
    let found = by_map(map, lines);
    assert_eq!(found.len(), 4);
    assert_eq!(found[..2], expected[..2]);
    assert!(found[2].contains("!no_order"), "{found:?}");
    // By time, too.
    let times = lines
        .replace("\"at\":2", "\"at\":\"2026-01-01T00:00:02Z\"")
        .replace("\"at\":1", "\"at\":\"2026-01-01T01:00:01+01:00\"");
    assert_eq!(by_map(map, &times), found);
}

#[test]
fn a_mapping_accounts_for_what_it_does_not_name() {
    let map = |more: &str| {
        format!(r#"{{"type":"/type","agent":{{"const":"a"}},"intent":{{"content":"/text"}}{more}}}"#)
    };
    let lines = r#"{"type":"plan.update","text":"x","sub":{"total_tokens":9},"theme":"dark"}"#;
    assert!(by_map(&map(""), lines)[0].contains("!not_read"));
    assert!(!by_map(&map(r#","kept":["/sub"]"#), lines)[0].contains("!not_read"));
    for (more, place) in
        [(r#","kept":["sub"]"#, "/kept/0"), (r#","order":3"#, "/order"), (r#","each":[]"#, "/each")]
    {
        let error =
            Map::from_value(&dendrer_object::json::parse_door(map(more).as_bytes()).unwrap()).unwrap_err();
        assert_eq!((error.code().as_str(), &*error.place()[0].1), ("E0215", place), "{error}");
    }
}
