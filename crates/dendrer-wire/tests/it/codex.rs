//! Rollout files of Codex: what each line becomes.

use dendrer_object::Value;
use dendrer_object::json::parse_door;
use dendrer_wire::format;

use crate::claude_code::shown;
use crate::{import, of};

fn line(second: u32, kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-03-01T10:00:{second:02}.000Z","type":"{kind}","payload":{payload}}}"#)
}

fn item(payload: &str) -> String {
    line(1, "response_item", payload)
}

fn event(payload: &str) -> String {
    line(2, "event_msg", payload)
}

fn user(text: &str) -> String {
    item(&format!(
        r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#
    ))
}

fn said(text: &str) -> String {
    item(&format!(
        r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}}"#
    ))
}

fn call(id: &str, command: &str) -> String {
    item(&format!(
        r#"{{"type":"function_call","name":"shell","arguments":"{{\"command\":[\"{command}\"]}}","call_id":"{id}"}}"#
    ))
}

fn output(id: &str, text: &str) -> String {
    item(&format!(r#"{{"type":"function_call_output","call_id":"{id}","output":{}}}"#, Value::from(text)))
}

fn tokens(last: u32, total: u32) -> String {
    let usage = |tokens| {
        format!(
            r#"{{"input_tokens":{tokens},"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0,"total_tokens":{tokens}}}"#
        )
    };
    event(&format!(
        r#"{{"type":"token_count","info":{{"total_token_usage":{},"last_token_usage":{},"model_context_window":258400}},"rate_limits":{{"primary":{{"used_percent":{last}.0}}}}}}"#,
        usage(total),
        usage(last)
    ))
}

const REASONING: &str = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"**Looking**"}],"content":null,"encrypted_content":"gAAA"}"#;

fn meta(more: &str) -> String {
    line(
        0,
        "session_meta",
        &format!(
            r#"{{"id":"019a","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/home/me","originator":"codex_cli_rs","cli_version":"0.98.0","source":"cli","forked_from_id":"0199","base_instructions":{{"text":"You are Codex."}}{more}}}"#
        ),
    )
}

#[track_caller]
fn check(lines: &[String], expected: &[&str]) -> Vec<dendrer_object::Record> {
    let (plan, records) = import(lines.join("\n").as_bytes(), of("codex")).unwrap();
    assert_eq!(shown(&plan, &records), expected);
    records
}

fn session() -> Vec<String> {
    vec![
        meta(""),
        item(
            r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"<permissions instructions>"}]}"#,
        ),
        user("<environment_context>\\n  <cwd>/home/me</cwd>\\n</environment_context>"),
        event(r#"{"type":"task_started","turn_id":"1","model_context_window":258400}"#),
        line(
            1,
            "turn_context",
            r#"{"cwd":"/home/me","approval_policy":"never","model":"gpt-x","effort":"high"}"#,
        ),
        user("Count the lamps."),
        event(r#"{"type":"user_message","message":"Count the lamps.","images":[]}"#),
        tokens(0, 0).replace(r#""info":{"total"#, r#""info":null,"was":{"total"#),
        event(r#"{"type":"agent_reasoning","text":"**Looking**"}"#),
        item(REASONING),
        call("c1", "wc"),
        call("c2", "ls"),
        event(r#"{"type":"exec_command_end","call_id":"c1","command":["wc"],"exit_code":0,"stdout":"7"}"#),
        tokens(120, 120),
        tokens(120, 120),
        output("c1", "Error: 7 lamps"),
        output("c2", "gone"),
        event(r#"{"type":"exec_command_end","call_id":"c2","command":["ls"],"exit_code":2}"#),
        said("Seven."),
        event(r#"{"type":"agent_message","message":"Seven."}"#),
        tokens(130, 250),
        event(r#"{"type":"task_complete","turn_id":"1","last_agent_message":"Seven."}"#),
    ]
}

#[test]
fn a_rollout_is_one_line_of_items() {
    let records = check(
        &session(),
        &[
            "observation.add agent user",
            "observation.add user user",
            "plan.update agent main",
            "action.request agent main c1",
            "action.request agent main c2 tokens 120",
            "action.result runtime main c1 ok from flag by 4",
            "action.result runtime main c2 error from flag by 5",
            "plan.update agent main tokens 130",
        ],
    );
    let start = records[0].content().get("meta").unwrap().to_string();
    for word in ["permissions instructions", "forked_from_id", "You are Codex.", "task_complete"] {
        assert!(start.contains(word), "{word}");
    }
    let thought = records[3].content().get("intent").unwrap().to_string();
    assert!(thought.contains("gAAA") && thought.contains("**Looking**"), "{thought}");
    let params = records[4].content().get("action").unwrap().get("params").unwrap().to_string();
    assert_eq!(params, r#"{"command":["wc"]}"#);
}

#[test]
fn a_rollout_is_known_by_its_lines() {
    let older = r#"{"id":"0199","timestamp":"2025-07-01T10:00:00.000Z","instructions":null}"#;
    for source in [session().join("\n"), session()[5..].join("\n"), older.to_owned()] {
        let found = format::of_source(&mut std::io::Cursor::new(source.as_bytes()), false).unwrap();
        assert_eq!(found.name, "codex");
    }
}

#[test]
fn older_rollouts_have_items_without_lines_around_them() {
    let bare = |line: &str| {
        let parsed = parse_door(line.as_bytes()).unwrap();
        parsed.get("payload").unwrap().to_string()
    };
    let lines = [
        r#"{"id":"0199","timestamp":"2025-07-01T10:00:00.000Z","instructions":"Be brief.","git":{}}"#
            .to_owned(),
        r#"{"record_type":"state"}"#.to_owned(),
        bare(&user("<user_instructions>\\nBe brief.\\n</user_instructions>")),
        bare(&user("Go.")),
        bare(&item(REASONING)),
        bare(&call("c1", "false")),
        bare(&output("c1", r#"{"output":"no","metadata":{"exit_code":1,"duration_seconds":0.1}}"#)),
        bare(&item(
            r#"{"type":"local_shell_call","id":"l1","call_id":"c2","status":"completed","action":{"type":"exec","command":["true"]}}"#,
        )),
        bare(&output("c2", r#"{"output":"yes","metadata":{"exit_code":0}}"#)),
        bare(&said("Done.")),
    ];
    check(
        &lines,
        &[
            "observation.add agent user",
            "observation.add user user",
            "plan.update agent main tokens null",
            "action.request agent main c1",
            "action.result runtime main c1 error from json by 4",
            "action.request agent main c2",
            "action.result runtime main c2 ok from json by 6",
            "plan.update agent main",
        ],
    );
}

#[test]
fn the_usage_of_a_request_counts_once() {
    let record = |id: &str, tokens: u32, thread: u32| {
        line(
            3,
            "token_usage_record",
            &format!(
                r#"{{"thread_id":"t","response_id":"{id}","usage":{{"input_tokens":{tokens},"output_tokens":0,"total_tokens":{tokens}}},"thread_token_usage":{{"total_tokens":{thread}}}}}"#
            ),
        )
    };
    // Records count, and other statements repeat them.
    check(
        &[
            user("Go."),
            said("A"),
            record("r1", 5, 5),
            tokens(5, 5),
            said("B"),
            record("r2", 6, 11),
            record("r2", 6, 11),
            tokens(6, 11),
        ],
        &["observation.add user user", "plan.update agent main tokens 5", "plan.update agent main tokens 6"],
    );
    // The usage of a request for a summary is that of the summary; without an item it is one.
    let compacted = line(
        4,
        "compacted",
        r#"{"message":"So far: lamps.","replacement_history":[{"type":"function_call","name":"x","arguments":"{}","call_id":"old"}]}"#,
    );
    check(
        &[
            user("Go."),
            said("A"),
            tokens(5, 5),
            tokens(7, 12),
            compacted.clone(),
            said("B"),
            tokens(6, 18),
            tokens(9, 27),
        ],
        &[
            "observation.add user user",
            "plan.update agent main tokens 5",
            "plan.update agent main tokens 7",
            "plan.update agent main tokens 6",
            "plan.update agent main tokens 9",
        ],
    );
    check(
        &[user("Go."), tokens(7, 7), tokens(8, 15), user("On."), said("B")],
        &[
            "observation.add user user",
            "plan.update agent main tokens 7",
            "plan.update agent main tokens 8",
            "observation.add user user",
            "plan.update agent main tokens null",
        ],
    );
    // A turn that ends without one has none.
    let done = event(r#"{"type":"task_complete","turn_id":"1"}"#);
    check(
        &[user("Go."), said("A"), done, user("On."), said("B"), tokens(6, 6)],
        &[
            "observation.add user user",
            "plan.update agent main tokens null",
            "observation.add user user",
            "plan.update agent main tokens 6",
        ],
    );
}

#[test]
fn each_kind_of_call_has_its_result() {
    let lines = [
        item(
            r#"{"type":"custom_tool_call","status":"completed","call_id":"p1","name":"apply_patch","input":"*** Begin Patch"}"#,
        ),
        event(r#"{"type":"patch_apply_end","call_id":"p1","stdout":"","stderr":"no","success":false}"#),
        item(
            r#"{"type":"custom_tool_call_output","call_id":"p1","output":"{\"output\":\"x\",\"metadata\":{\"exit_code\":0}}"}"#,
        ),
        item(r#"{"type":"web_search_call","status":"completed","action":{"type":"search","query":"lamps"}}"#),
        item(r#"{"type":"web_search_call","status":"failed","action":{"type":"search","query":"lamps"}}"#),
        call("m1", "x"),
        event(
            r#"{"type":"item_completed","thread_id":"t","turn_id":"1","item":{"type":"McpToolCall","id":"m1","status":"failed","error":{"message":"x"}}}"#,
        ),
        output("m1", "fine"),
        call("m2", "x"),
        event(r#"{"type":"mcp_tool_call_end","call_id":"m2","result":{"Ok":{"content":[],"isError":true}}}"#),
        output("m2", "fine"),
        call("e1", "x"),
        output("e1", "Exit code: 3\nWall time: 1 seconds\nOutput:\nExit code: 0"),
        call("e2", "x"),
        output("e2", "Wall time: 1 seconds\nProcess exited with code 0\nOutput:\nValueError: x"),
        call("e3", "x"),
        event(
            r#"{"type":"item_completed","item":{"type":"CommandExecution","id":"i1","call_id":"e3","status":"declined"}}"#,
        ),
        output("e3", "rejected by user"),
        item(
            r#"{"type":"tool_search_call","call_id":"s1","status":"completed","execution":"client","arguments":{"query":"x"}}"#,
        ),
        item(
            r#"{"type":"tool_search_output","call_id":"s1","status":"completed","execution":"client","tools":[{"name":"t","parameters":{}}]}"#,
        ),
    ];
    check(
        &lines,
        &[
            "action.request agent main p1 tokens null",
            "action.result runtime main p1 error from flag by 1",
            "action.request agent main",
            "action.result runtime main ok from flag by 3",
            "action.request agent main",
            "action.result runtime main error from flag by 5",
            "action.request agent main m1",
            "action.result runtime main m1 error from flag by 7",
            "action.request agent main m2",
            "action.result runtime main m2 error from flag by 9",
            "action.request agent main e1",
            "action.result runtime main e1 error from text by 11",
            "action.request agent main e2",
            "action.result runtime main e2 ok from text by 13",
            "action.request agent main e3",
            "action.result runtime main e3 error from flag by 15",
            "action.request agent main s1",
            "action.result runtime main s1 ok from flag by 17",
        ],
    );
}

#[test]
fn another_thread_has_its_own_agent() {
    for (more, agent) in [
        (
            r#","source":{"subagent":{"thread_spawn":{"parent_thread_id":"x","depth":1,"agent_nickname":"Ada"}}}"#,
            "Ada",
        ),
        (r#","source":{"subagent":"review"}"#, "review"),
        (r#","agent_nickname":"Bo""#, "Bo"),
        ("", "main"),
    ] {
        let start = meta("").replace(r#","source":"cli""#, more);
        let said_by = format!("plan.update agent {agent} tokens 5");
        let told = item(
            r#"{"type":"agent_message","author":"/root","recipient":"/root/ada","content":[{"type":"input_text","text":"Look."}]}"#,
        );
        check(&[start, told, said("A"), tokens(5, 5)], &["observation.add agent /root", &said_by]);
    }
}

#[test]
fn what_no_table_has_is_noted_if_it_may_state_something() {
    for (more, note) in [
        (
            item(r#"{"type":"teleport_call","name":"x","arguments":"{}"}"#),
            "observation.add agent environment !not_read/1/payload",
        ),
        (
            line(1, "side_run", r#"{"calls":[{"tool":"rm","args":{}}]}"#),
            "observation.add agent environment !not_read/1/payload/calls",
        ),
        (
            said("x").replace(r#""role""#, r#""pending_calls":[{"x":1}],"role""#),
            "!not_read/1/payload/pending_calls",
        ),
        (said("x").replace("output_text", "teleport"), "!not_read/1/payload/content/0"),
        (
            output("c1", "x").replace(r#""call_id""#, r#""http_status":500,"call_id""#),
            "!not_read/1/payload/http_status",
        ),
    ] {
        let (plan, records) = import([user("Go."), more.clone()].join("\n").as_bytes(), of("codex")).unwrap();
        let shown = shown(&plan, &records);
        assert!(shown.len() == 2 && shown[1].contains(note), "{more}: {shown:?}");
    }
    for more in [
        item(r#"{"type":"mood","is":"fine"}"#),
        line(1, "mood", r#"{"is":"fine"}"#),
        line(1, "world_state", r#"{"status":{"x":1},"calls":[{"a":1}]}"#),
        item(r#"{"type":"ghost_snapshot","ghost_commit":{"id":"x"}}"#),
    ] {
        let (plan, _) = import([user("Go."), more.clone()].join("\n").as_bytes(), of("codex")).unwrap();
        assert_eq!(plan.tally.gaps(), 0, "{more}");
    }
}

#[test]
fn hostile_files_are_refused_or_marked() {
    let whole = session().join("\n");
    for end in (0..whole.len()).step_by(199) {
        if let Ok((plan, _)) = import(&whole.as_bytes()[..end], of("codex")) {
            let is_whole_line = whole.as_bytes()[end] == b'\n' || whole.as_bytes()[end - 1] == b'\n';
            assert!(plan.tally.gaps() > 0 || is_whole_line, "cut at {end}");
        }
    }
    let values = ["null", "7", "true", "\"x\"", "[]", "[7,null]", "{}", r#"{"a":[1]}"#, r#"[[{}]]"#];
    let mut all = session();
    all.push(item(r#"{"type":"web_search_call","status":"completed","id":"w","action":{"type":"search"}}"#));
    all.push(line(4, "compacted", r#"{"message":"x","replacement_history":[]}"#));
    for (place, line) in all.iter().enumerate() {
        let parsed = parse_door(line.as_bytes()).unwrap();
        let names = |value: &Value| -> Vec<String> {
            value.as_object().unwrap().iter().map(|(name, _)| name.to_string()).collect()
        };
        let payload = parsed.get("payload").unwrap();
        for value in values {
            let value = parse_door(value.as_bytes()).unwrap();
            let outer = names(&parsed).into_iter().map(|name| (name, false));
            for (name, is_inner) in outer.chain(names(payload).into_iter().map(|name| (name, true))) {
                let mut odd = parsed.as_object().unwrap().clone();
                if is_inner {
                    let mut payload = payload.as_object().unwrap().clone();
                    payload.set(&name, value.clone());
                    odd.set("payload", Value::Object(payload));
                } else {
                    odd.set(&name, value.clone());
                }
                let mut lines = all.clone();
                lines[place] = Value::Object(odd).to_string();
                let (plan, records) = import(lines.join("\n").as_bytes(), of("codex")).unwrap();
                assert_eq!(plan.tally.ticks as usize + 1, records.len());
            }
        }
    }
    // Items wait for a usage that never comes, and memory is bounded.
    let many: Vec<String> = (0..3_000).map(|number| said(&number.to_string())).collect();
    let (plan, _) = import(many.join("\n").as_bytes(), of("codex")).unwrap();
    assert_eq!(plan.tally.ticks, 3_000);
}
