//! Session files of Claude Code: what each line becomes.

use std::path::{Path, PathBuf};

use dendrer_object::Record;
use dendrer_object::Value;
use dendrer_object::record::Rel;
use dendrer_wire::format;
use dendrer_wire::import::{ImportPlan, NoteKind};

use crate::{import, of};

/// A line with the members that every line of a session has.
fn line(members: &str) -> String {
    format!(
        r#"{{"sessionId":"5e55","version":"2.1.4","cwd":"/home/me/shop","gitBranch":"main","userType":"external","timestamp":"2026-03-01T10:00:00.000Z",{members}}}"#
    )
}

fn user(uuid: &str, parent: &str, content: &str, more: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("{parent:?}") };
    let side = if more.contains("isSidechain") { "" } else { r#""isSidechain":false,"# };
    line(&format!(
        r#""type":"user",{side}"uuid":"{uuid}","parentUuid":{parent},"message":{{"role":"user","content":{content}}}{more}"#
    ))
}

/// A piece of an answer.
fn answer(uuid: &str, parent: &str, id: &str, part: &str, output: u32, more: &str) -> String {
    let side = if more.contains("isSidechain") { "" } else { r#""isSidechain":false,"# };
    line(&format!(
        r#""type":"assistant",{side}"uuid":"{uuid}","parentUuid":"{parent}","requestId":"req_1","message":{{"id":"{id}","type":"message","role":"assistant","model":"claude-x","content":[{part}],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":100,"output_tokens":{output},"service_tier":"standard"}}}}{more}"#
    ))
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

fn tool_use(id: &str, name: &str, input: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#)
}

fn result(id: &str, content: &str, more: &str) -> String {
    format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":"{content}"{more}}}]"#)
}

/// Each transition in a line: what it is, by whom, and what it states.
pub(crate) fn shown(plan: &ImportPlan, records: &[Record]) -> Vec<String> {
    let mut shown = Vec::new();
    for record in &records[1..] {
        let (header, value) = (record.header(), record.content());
        let at = |path: &[&str]| path.iter().try_fold(&value, |value, name| value.get(name)).cloned();
        let mut line = format!(
            "{} {} {}",
            header.type_name.as_ref().unwrap().as_str(),
            header.author.as_str(),
            value.get("agent_id").and_then(Value::as_str).unwrap()
        );
        for (name, path) in [
            ("", &["action", "call_id"][..]),
            ("", &["result", "status"]),
            ("from ", &["result", "status_from"]),
            ("tokens ", &["metrics", "tokens_used"]),
            ("cost ", &["metrics", "cost_usd"]),
        ] {
            let value = at(path).filter(|value| name != "cost " || *value != Value::Null);
            line += &value.map(|value| format!(" {name}{value}")).unwrap_or_default();
        }
        for link in header.links.iter().filter(|link| link.rel == Rel::CausedBy) {
            line += &format!(" by {}", records.iter().position(|other| other.id() == link.hash).unwrap());
        }
        for note in
            value.get("anomalies").and_then(Value::as_array).into_iter().flat_map(|notes| notes.iter())
        {
            let text = |name: &str| note.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            line += &format!(" !{}{}", text("kind"), text("path"));
        }
        shown.push(line.replace('"', ""));
    }
    assert_eq!(plan.tally.ticks as usize, shown.len());
    shown
}

fn read(lines: &[String]) -> (ImportPlan, Vec<Record>) {
    import(lines.join("\n").as_bytes(), of("claude-code")).unwrap()
}

#[track_caller]
fn check(lines: &[String], expected: &[&str]) -> (ImportPlan, Vec<Record>) {
    let (plan, records) = read(lines);
    assert_eq!(shown(&plan, &records), expected);
    (plan, records)
}

fn words(records: &[Record], tick: usize) -> Value {
    records[tick].content().get("intent").unwrap().clone()
}

/// One question with an answer in three pieces, whose two calls are answered in parallel.
fn session() -> Vec<String> {
    vec![
        r#"{"type":"file-history-snapshot","messageId":"u1","snapshot":{"trackedFileBackups":{}},"isSnapshotUpdate":false}"#.into(),
        user("u1", "", "\"Which lamps are sold?\"", r#","thinkingMetadata":{"maxThinkingTokens":31999},"todos":[]"#),
        answer("a1", "u1", "msg_1", r#"{"type":"thinking","thinking":"Look first.","signature":"c2ln"}"#, 1, ""),
        answer("a2", "a1", "msg_1", &tool_use("t1", "Read", r#"{"file_path":"/lamps"}"#), 1, ""),
        answer("a3", "a2", "msg_1", &tool_use("t2", "Bash", r#"{"command":"ls"}"#), 30, ""),
        user("r1", "a2", &result("t1", "brass, blue", ""), r#","sourceToolAssistantUUID":"a2","toolUseResult":{"type":"text","file":{"numLines":1},"status":"failed?","total_cost_usd":3}"#),
        line(r#""type":"progress","uuid":"p1","parentUuid":"a3","toolUseID":"t2","data":{"type":"bash_progress"}"#),
        user("r2", "a3", &result("t2", "no such directory", r#","is_error":true"#), r#","toolUseResult":"Error: no such directory""#),
        line(r#""type":"system","subtype":"turn_duration","uuid":"s1","parentUuid":"r2","durationMs":10,"isMeta":false"#),
        answer("a4", "s1", "msg_2", &text("Brass and blue ones."), 7, ""),
    ]
}

#[test]
fn a_session_is_one_line_of_items() {
    let (plan, records) = check(
        &session(),
        &[
            "observation.add user user",
            "plan.update agent main tokens 111",
            "action.request agent main t1 tokens 0",
            "action.request agent main t2 tokens 29",
            "action.result runtime main t1 ok from text by 3",
            "action.result runtime main t2 error from flag by 4",
            "plan.update agent main tokens 117",
        ],
    );
    assert_eq!((plan.tally.gaps(), plan.branches()), (0, 0));
    assert_eq!((plan.tally.calls, plan.tally.paired, plan.tally.errors), (2, 2, 1));
    let thought = words(&records, 2).get("content").unwrap().to_string();
    assert_eq!(thought, r#"[{"signature":"c2ln","thinking":"Look first.","type":"thinking"}]"#);
    let extra = words(&records, 5).get("extra").unwrap().clone();
    assert_eq!(extra.get("toolUseResult").unwrap().get("status"), Some(&Value::from("failed?")));
    assert_eq!(extra.get("uuid"), Some(&Value::from("r1")));
    let kept =
        |tick| words(&records, tick).get("extra").and_then(|extra| Some(extra.get("lines")?.to_string()));
    assert!(kept(1).unwrap().contains("trackedFileBackups"));
    assert!(kept(6).unwrap().contains("bash_progress"));
    assert!(kept(7).unwrap().contains("turn_duration"));
}

#[test]
fn a_session_is_known_by_its_lines() {
    for source in [session().join("\n"), session()[1..].join("\n"), session()[4].clone()] {
        let mut source = std::io::Cursor::new(source.into_bytes());
        assert_eq!(format::of_source(&mut source, false).unwrap().name, "claude-code");
    }
    let chat = r#"{"type":"user","role":"user","content":"x","sessionId":"s"}"#;
    let found = format::of_source(&mut std::io::Cursor::new(chat.as_bytes()), false).unwrap();
    assert_eq!(found.name, "openai-chat");
}

#[test]
fn lines_without_an_item_are_kept_and_nothing_is_lost() {
    let (_, records) = read(&session());
    let all: String = records.iter().map(|record| record.content().to_string()).collect();
    for word in ["31999", "numLines", "req_1", "gitBranch", "2.1.4", "service_tier", "claude-x", "durationMs"]
    {
        assert!(all.contains(word), "{word}");
    }
    let last = line(r#""type":"summary","summary":"Lamps","leafUuid":"a4""#);
    let lines = [session(), vec![last]].concat();
    let (plan, records) = read(&lines);
    assert_eq!(plan.tally.ticks, 7);
    assert!(records[0].content().get("meta").unwrap().to_string().contains("Lamps"));
}

#[test]
fn words_of_a_program_are_not_those_of_the_user() {
    let lines = [
        user("u1", "", "\"Caveat\"", r#","isMeta":true"#),
        user("u2", "u1", "\"<command-name>/model</command-name>\"", ""),
        user("u3", "u2", "\"<local-command-stdout>Set model</local-command-stdout>\"", ""),
        user(
            "u4",
            "u3",
            "\"The story so far\"",
            r#","isCompactSummary":true,"isVisibleInTranscriptOnly":true"#,
        ),
        user("u5", "u4", r#"[{"type":"text","text":"[Request interrupted by user]"}]"#, ""),
        user("u6", "u5", "\"done\"", r#","origin":{"kind":"task-notification"}"#),
        user("u7", "u6", "\"Go on.\"", r#","origin":{"kind":"human"}"#),
    ];
    let expected = ["agent", "user", "agent", "agent", "agent", "agent", "user"];
    let (_, records) = read(&lines);
    let authors: Vec<&str> = records[1..].iter().map(|record| record.header().author.as_str()).collect();
    assert_eq!(authors, expected);
}

#[test]
fn an_error_of_the_api_is_an_item_without_a_failure() {
    let error = line(
        r#""type":"assistant","uuid":"e1","parentUuid":"u1","isSidechain":false,"isApiErrorMessage":true,"error":{"type":"rate_limit","status":429},"message":{"id":"c0","model":"<synthetic>","role":"assistant","type":"message","content":[{"type":"text","text":"API Error: 429"}],"usage":{"input_tokens":0,"output_tokens":0}}"#,
    );
    check(
        &[user("u1", "", "\"Hello\"", ""), error],
        &["observation.add user user", "plan.update agent main tokens 0"],
    );
}

#[test]
fn a_rewind_makes_a_branch_and_the_newest_leaf_is_the_run() {
    let lines = [
        user("u1", "", "\"Paint it.\"", ""),
        answer("a1", "u1", "m1", &text("Blue?"), 5, ""),
        user("u2", "a1", "\"Yes.\"", ""),
        answer("a2", "u2", "m2", &text("Done."), 5, ""),
        user("u3", "a1", "\"No, red.\"", ""),
        answer("a3", "u3", "m3", &text("Red then."), 5, ""),
    ];
    let (plan, records) = read(&lines);
    assert_eq!((plan.branches(), plan.tally.ticks), (1, 4));
    assert_eq!(words(&records, 3).get("content"), Some(&Value::from("No, red.")));
}

#[test]
fn a_conversation_goes_on_after_a_compaction() {
    let boundary = line(
        r#""type":"system","subtype":"compact_boundary","uuid":"c1","parentUuid":null,"logicalParentUuid":"a1","compactMetadata":{"trigger":"auto","preTokens":155000}"#,
    );
    let old = [user("u1", "", "\"Begin.\"", ""), answer("a1", "u1", "m1", &text("Begun."), 5, "")];
    let new = |parent: &str| {
        [
            user("u2", parent, "\"What was said\"", r#","isCompactSummary":true"#),
            answer("a2", "u2", "m2", &text("On."), 5, ""),
        ]
    };
    let expected = [
        "observation.add user user",
        "plan.update agent main tokens 115",
        "observation.add agent user",
        "plan.update agent main tokens 115",
    ];
    check(&[&old[..], &[boundary], &new("c1")].concat(), &expected);
    // Older versions have no such line, and a summary without a parent.
    let (plan, _) = check(&[&old[..], &new("")].concat(), &expected);
    assert_eq!(plan.branches(), 0);
}

#[test]
fn a_sub_agent_in_the_file_goes_with_the_call_that_began_it() {
    let side = r#","isSidechain":true"#;
    let task = |id: &str, kind: &str, prompt: &str| {
        tool_use(
            id,
            "Task",
            &format!(r#"{{"description":"d","prompt":"{prompt}","subagent_type":"{kind}"}}"#),
        )
    };
    let lines = [
        user("w0", "", "\"Warmup\"", side),
        answer("w1", "w0", "mw", &text("Ready."), 1, side),
        user("u1", "", "\"Find the lamps.\"", ""),
        answer("a1", "u1", "m1", &task("t1", "Explore", "Look in the cellar"), 5, ""),
        answer("a2", "a1", "m1", &task("t2", "Explore", "Look in the attic"), 5, ""),
        user("x0", "", "\"Look in the attic\"", side),
        user("y0", "", "\"Look in the cellar\"", side),
        answer("x1", "x0", "mx", &tool_use("tx", "Bash", "{}"), 3, side),
        answer("y1", "y0", "my", &text("Nothing."), 3, side),
        user("x2", "x1", &result("tx", "ok", ""), side),
        user("r1", "a1", &result("t1", "Nothing.", ""), ""),
        user("r2", "a2", &result("t2", "Two.", ""), ""),
        answer("a3", "r2", "m3", &text("Two lamps."), 5, ""),
    ];
    let (plan, records) = check(
        &lines,
        &[
            "observation.add agent main",
            "plan.update agent sub:agent-1 tokens 111",
            "observation.add user user",
            "action.request agent main t1 tokens 115",
            "action.request agent main t2 tokens 0",
            "observation.add agent main by 5",
            "observation.add agent main by 4",
            "action.request agent sub:Explore-1 tx tokens 113",
            "plan.update agent sub:Explore-2 tokens 113",
            "action.result runtime sub:Explore-1 tx ok from text by 8",
            "action.result runtime main t1 ok from text by 4",
            "action.result runtime main t2 ok from text by 5",
            "plan.update agent main tokens 115",
        ],
    );
    assert_eq!((plan.branches(), plan.tally.gaps(), plan.tally.paired), (0, 0, 3));
    assert_eq!(words(&records, 6).get("name"), Some(&Value::from("main")));
}

#[test]
fn a_line_that_is_there_again_states_nothing() {
    let call = answer("a1", "u1", "m1", &tool_use("t1", "Bash", "{}"), 5, "");
    let answered = user("r1", "a1", &result("t1", "ok", ""), "");
    let lines = [
        user("u1", "", "\"Go.\"", ""),
        call.clone(),
        line(r#""type":"queue-operation","operation":"enqueue""#),
        call,
        answered.clone(),
        answered,
        answer("a2", "r1", "m2", &text("Done."), 5, ""),
    ];
    let (plan, _) = check(
        &lines,
        &[
            "observation.add user user",
            "action.request agent main t1 tokens 115",
            "observation.add agent main !repeated/3/message",
            "action.result runtime main t1 ok from text by 2",
            "observation.add agent tool !repeated/5/message/content/0",
            "plan.update agent main tokens 115",
        ],
    );
    assert_eq!((plan.tally.calls, plan.tally.paired, plan.branches()), (1, 1, 0));
}

#[test]
fn what_no_table_has_is_noted_if_it_may_state_something() {
    let begin = user("u1", "", "\"Go.\"", "");
    for (more, note) in [
        (
            answer("a1", "u1", "m1", &text("Hm."), 5, r#","pendingCalls":[{"x":1}]"#),
            "!not_read/1/pendingCalls",
        ),
        (answer("a1", "u1", "m1", &text("Hm."), 5, r#","senderName":"Bob""#), "!not_read/1/message"),
        (answer("a1", "u1", "m1", r#"{"type":"teleport","to":"x"}"#, 5, ""), "!not_read/1/message/content/0"),
        (
            answer("a1", "u1", "m1", &text("Hm."), 5, "")
                .replace(r#""model""#, r#""tool_calls":[{"id":"c"}],"model""#),
            "!not_read/1/message/tool_calls",
        ),
        (
            user("u2", "u1", "\"x\"", "").replace(r#""role""#, r#""usage":{"input_tokens":5},"role""#),
            "!not_read/1/message/usage",
        ),
        (line(r#""type":"side-run","calls":[{"tool":"rm","args":{}}]"#), "!not_read/1/calls"),
        (line(r#""type":"result","usage":{"input_tokens":5}"#), "!not_read/1/usage"),
    ] {
        let (plan, records) = read(&[begin.clone(), more.clone()]);
        let shown = shown(&plan, &records);
        assert!(shown.len() == 2 && shown[1].contains(note), "{more}: {shown:?}");
    }
    for more in [
        answer(
            "a1",
            "u1",
            "m1",
            &text("Hm."),
            5,
            r#","slug":"x","entrypoint":"cli","agentName":"lead","todos":[{"content":"x","status":"pending"}]"#,
        ),
        user("u2", "u1", "\"x\"", r#","permissionMode":"default","imagePasteIds":[1],"mood":{"is":"fine"}"#),
        line(r#""type":"mood","is":"fine""#),
        line(r#""type":"system","subtype":"api_error","error":{"status":529},"retryAttempt":1"#),
    ] {
        let (plan, _) = read(&[begin.clone(), more.clone()]);
        assert_eq!(plan.tally.gaps(), 0, "{more}");
    }
}

/// The directory of a test, empty.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn gathered(session: &Path) -> Option<Vec<u8>> {
    let gather = format::named("claude-code").unwrap().gather.unwrap();
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut gather(session).unwrap()?.lines, &mut all).unwrap();
    Some(all)
}

fn at(line: &str, second: u32) -> String {
    line.replace("10:00:00.000Z", &format!("10:00:{second:02}.000Z"))
}

#[test]
fn sub_agents_in_files_beside_the_session_are_in_its_run() {
    let dir = directory("claude-subagents");
    let session = dir.join("5e55.jsonl");
    let agents = dir.join("5e55/subagents");
    std::fs::create_dir_all(agents.join("workflows/w1")).unwrap();
    let agent = r#"{"description":"d","prompt":"Search","subagent_type":"Explore","run_in_background":true}"#;
    let lines = [
        at(&user("u1", "", "\"Go.\"", ""), 1),
        at(&answer("a1", "u1", "m1", &tool_use("t1", "Agent", agent), 5, ""), 2),
        at(
            &user(
                "r1",
                "a1",
                &result("t1", "launched", ""),
                r#","toolUseResult":{"status":"async_launched","agentId":"b7"}"#,
            ),
            3,
        ),
        at(&answer("a2", "r1", "m2", &text("Waiting."), 5, ""), 6),
    ];
    std::fs::write(&session, lines.join("\n") + "\n").unwrap();
    assert!(gathered(&session).is_none());
    let side = r#","isSidechain":true,"agentId":"b7""#;
    let sub = [
        at(&user("s1", "", "\"Search\"", side), 4),
        at(
            &line(
                r#""type":"attachment","uuid":"s2","parentUuid":"s1","isSidechain":true,"attachment":{"type":"x"}"#,
            ),
            4,
        ),
        at(&answer("s3", "s2", "ms", &text("Found."), 3, side), 5),
        at(&answer("s4", "s3", "mt", &text("More."), 3, side), 8),
    ];
    std::fs::write(agents.join("agent-b7.jsonl"), sub.join("\n")).unwrap();
    std::fs::write(agents.join("agent-b7.meta.json"), r#"{"agentType":"Explore","toolUseId":"t1"}"#).unwrap();
    let cut =
        format!("{}\n{{\"type\":\"assis", at(&user("z1", "", "\"Other\"", r#","isSidechain":true"#), 7));
    std::fs::write(agents.join("workflows/w1/agent-c8.jsonl"), cut).unwrap();
    let all = gathered(&session).unwrap();
    let (plan, records) = import(&all, of("claude-code")).unwrap();
    assert_eq!(
        shown(&plan, &records),
        [
            "observation.add user user",
            "action.request agent main t1 tokens 115",
            "action.result runtime main t1 ok from text by 2",
            "observation.add agent main by 2",
            "plan.update agent sub:Explore-1 tokens 113",
            "plan.update agent main tokens 115",
            "observation.add agent main",
            "observation.add agent environment !source_cut/8",
            "plan.update agent sub:Explore-1 tokens 113",
        ]
    );
    assert_eq!(plan.branches(), 0);
    let place = words(&records, 5).get("extra").unwrap().get("subagent").unwrap().clone();
    assert_eq!(place.get("file"), Some(&Value::from("subagents/agent-b7.jsonl")));
    assert!(words(&records, 5).to_string().contains("attachment"));
}

#[test]
fn older_sub_agents_lie_beside_the_session() {
    let dir = directory("claude-older");
    let session = dir.join("5e55.jsonl");
    let agent = r#"{"prompt":"Search","subagent_type":"Explore"}"#;
    let lines = [
        at(&user("u1", "", "\"Go.\"", ""), 1),
        at(&answer("a1", "u1", "m1", &tool_use("t1", "Task", agent), 5, ""), 2),
        at(&user("r1", "a1", &result("t1", "Found.", ""), ""), 5),
    ];
    std::fs::write(&session, lines.join("\n")).unwrap();
    let sub = at(&user("s1", "", "\"Search\"", r#","isSidechain":true,"agentId":"d9""#), 3);
    std::fs::write(dir.join("agent-d9.jsonl"), &sub).unwrap();
    std::fs::write(dir.join("agent-e0.jsonl"), sub.replace("5e55", "other")).unwrap();
    let (plan, records) = import(&gathered(&session).unwrap(), of("claude-code")).unwrap();
    let expected = [
        "observation.add user user",
        "action.request agent main t1 tokens 115",
        "observation.add agent main by 2",
        "action.result runtime main t1 ok from text by 2",
    ];
    assert_eq!(shown(&plan, &records), expected);
    // A session that is cut ends at its cut.
    std::fs::write(&session, lines.join("\n") + "\n{\"type\":\"us").unwrap();
    let (plan, records) = import(&gathered(&session).unwrap(), of("claude-code")).unwrap();
    assert_eq!(shown(&plan, &records)[4], "observation.add agent unknown !source_cut/4");
}

#[test]
fn hostile_files_are_refused_or_marked() {
    let whole = session().join("\n");
    for end in (0..whole.len()).step_by(251) {
        if let Ok((plan, _)) = import(&whole.as_bytes()[..end], of("claude-code")) {
            let is_whole_line = whole.as_bytes()[end] == b'\n' || whole.as_bytes()[end - 1] == b'\n';
            assert!(plan.tally.gaps() > 0 || is_whole_line, "cut at {end}");
        }
    }
    let values = ["null", "7", "true", "\"x\"", "[]", "[7,null]", "{}", r#"{"a":[1]}"#, r#"[[{}]]"#];
    for (place, line) in session().iter().enumerate() {
        let parsed = dendrer_object::json::parse_door(line.as_bytes()).unwrap();
        let names: Vec<String> =
            parsed.as_object().unwrap().iter().map(|(name, _)| name.to_string()).collect();
        let inner: Vec<String> = parsed
            .get("message")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|inner| inner.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>())
            .collect();
        for value in values {
            let value = dendrer_object::json::parse_door(value.as_bytes()).unwrap();
            for (name, is_inner) in names.iter().map(|n| (n, false)).chain(inner.iter().map(|n| (n, true))) {
                let mut odd = parsed.as_object().unwrap().clone();
                if is_inner {
                    let mut message = odd.get("message").unwrap().as_object().unwrap().clone();
                    message.set(name, value.clone());
                    odd.set("message", Value::Object(message));
                } else {
                    odd.set(name, value.clone());
                }
                let mut lines = session();
                lines[place] = Value::Object(odd).to_string();
                let (plan, records) = import(lines.join("\n").as_bytes(), of("claude-code")).unwrap();
                assert_eq!(plan.tally.ticks as usize + 1, records.len());
            }
        }
    }
    let circle = [
        user("u1", "u2", "\"x\"", ""),
        user("u2", "u1", "\"y\"", ""),
        line(r#""type":"system","uuid":"s1","parentUuid":"s1""#),
        user("u3", "s1", "\"z\"", ""),
        user("u4", "u4", "\"z\"", ""),
    ];
    let (plan, records) = read(&circle);
    assert!(shown(&plan, &records).join(" ").contains("!parent_"));
    let same = [
        user("u1", "", "\"x\"", ""),
        answer("u1", "u1", "u1", &text("y"), 1, ""),
        user("u1", "u1", "\"z\"", ""),
    ];
    let (plan, _) = read(&same);
    assert_eq!((plan.tally.ticks, plan.branches()), (2, 1));
    let damaged = format!("{}\n{{\"type\":\"us\n{}", session()[1], session()[2]);
    let (plan, records) = import(damaged.as_bytes(), of("claude-code")).unwrap();
    assert!(shown(&plan, &records).join(" ").contains("!message_unreadable"));
}

/// A file of very many branches: at one item, and each at the next.
fn bushes() -> [Vec<String>; 2] {
    let star = (0..10_000).map(|number| user(&format!("l{number}"), "u", "\"x\"", ""));
    let star = std::iter::once(user("u", "", "\"Go.\"", "")).chain(star).collect();
    let comb = (0..5_000).flat_map(|number| {
        let leaf = user(&format!("l{number}"), &format!("u{number}"), "\"x\"", "");
        [leaf, user(&format!("u{}", number + 1), &format!("u{number}"), "\"y\"", "")]
    });
    let comb = std::iter::once(user("u0", "", "\"Go.\"", "")).chain(comb).collect();
    [star, comb]
}

#[test]
fn very_many_branches_take_bounded_time_and_those_left_out_are_noted() {
    for (lines, ticks, left_out) in
        bushes().into_iter().zip([(2, 9_899), (5_001, 4_900)]).map(|(a, (b, c))| (a, b, c))
    {
        let start = std::time::Instant::now();
        let (plan, records) = read(&lines);
        assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
        assert_eq!((plan.tally.ticks, plan.branches()), (ticks, 100));
        let last = records.last().unwrap().content().to_string();
        assert!(last.contains("branches_left_out"), "{last}");
        let note =
            plan.tally.first_notes.iter().find(|(_, note)| note.kind == NoteKind::BranchesLeftOut).unwrap();
        assert!(note.1.message.starts_with(&left_out.to_string()), "{}", note.1.message);
    }
}
