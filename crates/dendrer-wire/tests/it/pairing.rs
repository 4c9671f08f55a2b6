//! Calls and results, whatever the source does with them.

use dendrer_object::Value;

use crate::{chat, import, shown};

fn call(ids: &[(&str, &str)]) -> String {
    let calls: Vec<String> = ids
        .iter()
        .map(|(id, tool)| format!(r#"{{"id":"{id}","function":{{"name":"{tool}","arguments":"{{}}"}}}}"#))
        .collect();
    format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, calls.join(","))
}

fn result(id: &str, tool: &str) -> String {
    let id = if id.is_empty() { String::new() } else { format!(r#""tool_call_id":"{id}","#) };
    let tool = if tool.is_empty() { String::new() } else { format!(r#""name":"{tool}","#) };
    format!(r#"{{"role":"tool",{id}{tool}"content":"x"}}"#)
}

/// For each tick: the request it answers and the kinds of its notes.
fn check(messages: &[String], expected: &[&str]) {
    let source = format!("[{}]", messages.join(","));
    let (_, records) = import(source.as_bytes(), chat()).unwrap();
    let found: Vec<String> = (1..records.len())
        .map(|tick| {
            let value = shown(&records, tick);
            let cause = value.get("caused_by").map(|tick| format!("<-{tick}")).unwrap_or_default();
            let notes = value.get("anomalies").and_then(Value::as_array);
            let kinds = notes.into_iter().flat_map(|notes| notes.iter());
            let kinds: Vec<&str> = kinds.map(|note| note.get("kind").unwrap().as_str().unwrap()).collect();
            format!("{cause}{}", kinds.join(","))
        })
        .collect();
    assert_eq!(found, expected, "{source}");
}

#[test]
fn results_find_their_calls_in_any_order() {
    check(&[call(&[("a", "t"), ("b", "u")]), result("b", ""), result("a", "")], &["", "<-1", "<-1"]);
    check(
        &[call(&[("a", "t")]), call(&[("b", "t")]), result("b", "t"), result("a", "t")],
        &["", "", "<-2", "<-1"],
    );
    // Without ids, by name and then by order.
    check(
        &[call(&[("a", "t")]), call(&[("b", "u")]), result("", "u"), result("", "")],
        &["", "", "<-2", "<-1"],
    );
}

#[test]
fn what_does_not_fit_is_marked() {
    check(&[result("a", ""), call(&[("a", "t")])], &["result_without_call", "call_without_result"]);
    check(&[call(&[("a", "t")]), result("b", "t")], &["call_without_result", "result_without_call"]);
    check(&[call(&[("a", "t")]), result("a", "t"), result("a", "t")], &["", "<-1", "repeated"]);
    check(
        &[call(&[("a", "t"), ("b", "t"), ("c", "t")]), result("b", "")],
        &["call_without_result,call_without_result", "<-1"],
    );
}

/// Which of several calls a result without id and name answers, nobody knows.
#[test]
fn a_result_that_names_no_call_is_not_paired_by_guess() {
    let message = |more: &str| format!(r#"{{"role":"tool",{more}"content":"x"}}"#);
    check(
        &[call(&[("a", "t"), ("b", "u")]), message("")],
        &["call_contested,call_contested", "result_ambiguous"],
    );
    // Two results for two calls, and nothing says which is whose: neither call is known to lack one.
    let unnamed = call(&[("a", "t"), ("b", "u")]).replace(r#""id":"a","#, "").replace(r#""id":"b","#, "");
    check(
        &[unnamed, message(""), message("")],
        &["call_contested,call_contested", "result_ambiguous", "result_ambiguous"],
    );
    check(&[call(&[("a", "t")]), message("")], &["", "<-1"]);
    check(
        &[call(&[("a", "t"), ("b", "u")]), message(r#""tool_call_id":1,"#)],
        &["call_without_result,call_without_result", "call_id_not_text,result_without_call"],
    );
    check(
        &[call(&[("a", "t")]), message(r#""tool_call_id":{"x":1},"name":"t","#)],
        &["call_without_result", "call_id_not_text,result_without_call"],
    );
    // A number names the call of the same number, and both are marked.
    let numbered = call(&[("7", "t"), ("8", "t")]).replace(r#""7""#, "7").replace(r#""8""#, "8");
    check(
        &[numbered, message(r#""tool_call_id":8,"#), message(r#""tool_call_id":7,"#)],
        &["call_id_not_text,call_id_not_text", "<-1call_id_not_text", "<-1call_id_not_text"],
    );
}

#[test]
fn a_name_that_contradicts_the_id_is_marked_and_both_are_kept() {
    check(&[call(&[("a", "alpha")]), result("a", "beta")], &["", "<-1result_name_differs"]);
    let source = format!("[{},{}]", call(&[("a", "alpha")]), result("a", "beta"));
    let (_, records) = import(source.as_bytes(), chat()).unwrap();
    let value = shown(&records, 2);
    assert_eq!(value.get("action").unwrap().get("tool"), Some(&Value::from("alpha")));
    assert_eq!(value.get("intent").unwrap().get("name"), Some(&Value::from("beta")));
}

#[test]
fn calls_where_none_is_read_are_marked() {
    let said = |more: &str| format!(r#"{{"role":"assistant","content":"x",{more}}}"#);
    let named = r#"{"name":"t","arguments":"{}"}"#;
    check(&[said(&format!(r#""tool_calls":{named}"#))], &["call_unreadable"]);
    check(&[said(r#""tool_calls":"none""#)], &["call_unreadable"]);
    check(&[said(r#""function_call":"auto""#)], &["call_unreadable"]);
    check(
        &[said(&format!(r#""tool_calls":[{named}],"function_call":{named}"#)), result("", "t")],
        &["call_unreadable", "<-1"],
    );
    check(
        &[call(&[("a", "t")]), format!(r#"{{"role":"tool","tool_call_id":"a","tool_calls":[{named}]}}"#)],
        &["", "<-1call_unreadable"],
    );
    check(&[said(r#""tool_calls":[],"function_call":null"#)], &[""]);
}

#[test]
fn what_a_message_does_not_say_is_not_made_up() {
    let (_, records) = import(br#"[{"role":"user"},{"role":"user","content":null}]"#, chat()).unwrap();
    let said = |tick| shown(&records, tick).get("intent").unwrap().to_string();
    assert_eq!((said(1), said(2)), (r#"{"role":"user"}"#.into(), r#"{"content":null,"role":"user"}"#.into()));
}

/// An agent that numbers its calls anew after an interruption: nothing says which of them was answered.
#[test]
fn a_result_whose_id_several_open_calls_have_is_paired_with_none() {
    check(
        &[call(&[("a", "t")]), call(&[("a", "t")]), result("a", ""), result("a", "")],
        &["call_contested", "call_id_repeated,call_contested", "result_ambiguous", "result_without_call"],
    );
    // The tool tells them apart.
    check(
        &[call(&[("a", "t"), ("a", "u")]), result("a", "u"), result("a", "t")],
        &["call_id_repeated", "<-1", "<-1"],
    );
    check(
        &[call(&[("a", "t"), ("a", "u")]), result("a", "v")],
        &["call_id_repeated,call_contested,call_contested", "result_ambiguous"],
    );
    // An id that was answered is free again.
    check(
        &[call(&[("a", "t")]), result("a", ""), call(&[("a", "t")]), result("a", "")],
        &["", "<-1", "", "<-3"],
    );
    let source = format!("[{},{},{}]", call(&[("a", "t")]), call(&[("a", "t")]), result("a", ""));
    let (_, records) = import(source.as_bytes(), chat()).unwrap();
    let action = shown(&records, 3).get("action").unwrap().to_string();
    assert_eq!(
        action, r#"{"call_id":"a","tool":"t"}"#,
        "no parameters are repeated, and what all calls share is"
    );
}

/// Two agents that number alike have calls of their own.
#[test]
fn an_id_is_that_of_one_agent() {
    let by = |agent: &str| {
        call(&[("1", "t")]).replace(r#""content":null"#, &format!(r#""name":"{agent}","content":null"#))
    };
    let to =
        |agent: &str| result("1", "").replace(r#""content""#, &format!(r#""agent":"{agent}","content""#));
    check(&[by("ann"), by("bob"), to("bob"), to("ann")], &["", "", "<-2", "<-1"]);
    check(&[by("ann"), by("bob"), to("bob"), result("1", "")], &["", "", "<-2", "<-1"]);
    check(
        &[by("ann"), by("bob"), result("1", "")],
        &["call_contested", "call_contested", "result_ambiguous"],
    );
}

#[test]
fn odd_calls_lose_nothing() {
    let source = r#"[{"role":"assistant","tool_calls":[5,{"id":"","index":0,"type":"odd","function":{"name":"t","arguments":"[1,","strict":true}},{"name":"u","args":null},{"function":{}}]}]"#;
    let (_, records) = import(source.as_bytes(), chat()).unwrap();
    let calls = shown(&records, 1).get("action").unwrap().get("calls").unwrap().to_string();
    assert_eq!(
        calls,
        r#"[{"extra":5},{"extra":{"function":{"strict":true},"id":"","index":0,"type":"odd"},"params":"[1,","params_are_text":true,"tool":"t"},{"params":null,"tool":"u"},{}]"#
    );
}

#[test]
fn calls_of_a_custom_tool_are_read() {
    let source = r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"sql","input":"{\"a\":1}","more":2}}]},{"role":"tool","tool_call_id":"c","content":"x"}]"#;
    let (_, records) = import(source.as_bytes(), chat()).unwrap();
    let action = |tick| shown(&records, tick).get("action").unwrap().to_string();
    assert_eq!(
        action(1),
        r#"{"call_id":"c","extra":{"custom":{"more":2}},"params":"{\"a\":1}","params_are_text":true,"tool":"sql"}"#
    );
    assert_eq!(action(2), r#"{"call_id":"c","params":"{\"a\":1}","tool":"sql"}"#);
}
