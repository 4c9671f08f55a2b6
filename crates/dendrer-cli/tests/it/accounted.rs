//! Imports that account for their source: what is in no table is named, one thing counts once, and a tree is a tree.

use std::process::Stdio;

use dendrer_object::Value;

use crate::support::Place;

fn imported(text: &str, more: &[&str]) -> (Place, Value) {
    let place = Place::with_store();
    std::fs::write(place.path().join("t.json"), text).unwrap();
    let answer = place.ok(&[&["import", "t.json", "--run", "r", "--json"], more].concat());
    (place, dendrer_object::json::parse_door(answer.as_bytes()).unwrap())
}

/// The onset of a violation, and the exit code.
fn onset(place: &Place, run: &str, holds: &str) -> (Option<u64>, i32) {
    let ran = place.run(&["bisect", run, "--holds", holds, "--json"]);
    let answer = dendrer_object::json::parse_door(ran.stdout.as_bytes()).unwrap();
    (answer.get("onset").and_then(Value::as_u64), ran.code)
}

fn uncertain(place: &Place, holds: &str) -> bool {
    onset(place, "r", holds).1 == 6
}

const NO_ERROR: &str = "state.counters.tool_errors == 0";
const ONE_CALL: &str = "state.counters.tool_calls <= 1";

/// E14: the usage of one id counts once, each statement in place of the one before.
#[test]
fn the_usage_of_one_id_counts_once() {
    let text = r#"{"role":"user","content":"q"}
        {"id":"m1","role":"assistant","content":"a","usage":{"input_tokens":900,"output_tokens":100}}
        {"id":"m1","role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}],"usage":{"input_tokens":900,"output_tokens":150}}
        {"role":"tool","tool_call_id":"c","content":"ok"}
        {"id":"m2","role":"assistant","content":"b","usage":{"input_tokens":1400,"output_tokens":0}}"#;
    let (place, _) = imported(text, &[]);
    assert_eq!(onset(&place, "r", "state.counters.tokens_used <= 1049"), (Some(3), 0));
    assert_eq!(onset(&place, "r", "state.counters.tokens_used <= 2449"), (Some(5), 0));
    assert_eq!(onset(&place, "r", "state.counters.tokens_used <= 2450"), (None, 1));
    // Another number of tokens that went in is another statement, and neither is believed.
    let (place, _) = imported(&text.replacen("900", "800", 1), &[]);
    assert!(uncertain(&place, "state.counters.tokens_used <= 9999999"));
}

/// An item that is there already with its id and its content states nothing.
#[test]
fn an_item_that_is_repeated_counts_once() {
    let call = r#"{"id":"m1","role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}],"usage":{"total_tokens":5}}"#;
    let result = r#"{"role":"tool","tool_call_id":"c","content":"ok"}"#;
    let (place, answer) = imported(&format!("[{call},{result},{call}]"), &[]);
    assert_eq!(onset(&place, "r", ONE_CALL), (None, 1));
    assert_eq!(
        onset(&place, "r", "state.counters.tokens_used == 5 or state.counters.transitions == 0"),
        (None, 1)
    );
    assert_eq!(answer.get("noted").and_then(|noted| noted.get("repeated")), Some(&Value::from(1u64)));
    assert_eq!(answer.get("gaps"), Some(&Value::from(0u64)));
}

/// A value that stands on items of several roles names no item.
#[test]
fn an_id_of_the_conversation_is_no_id_of_a_message() {
    let text = r#"[{"id":"s","role":"assistant","content":"a","usage":{"total_tokens":5}},
        {"id":"s","role":"assistant","content":"b","usage":{"total_tokens":7}},
        {"id":"s","role":"user","content":"c"}]"#;
    let (place, _) = imported(text, &[]);
    assert_eq!(onset(&place, "r", "state.counters.tokens_used < 12"), (Some(2), 0));
}

/// E16, E37: a usage where none is read, and a total below its parts, make the counter uncertain and nothing else.
#[test]
fn a_usage_that_was_not_read_is_named() {
    let text = r#"[{"role":"user","content":"q"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}],"usage":{"total_tokens":400}},
        {"role":"tool","tool_call_id":"c","content":"ok","usage":{"total_tokens":9000}}]"#;
    let (place, answer) = imported(text, &[]);
    assert!(uncertain(&place, "state.counters.tokens_used <= 3200"));
    assert_eq!(onset(&place, "r", NO_ERROR), (None, 1));
    let note = answer.get("notes").and_then(|notes| notes.as_array()?.get(0).cloned()).unwrap();
    assert_eq!(note.get("path"), Some(&Value::from("/2/usage")));
    assert_eq!(note.get("may"), Some(&Value::array([Value::from("usage")])));
    let (place, _) = imported(text, &["--kept", "/*/usage"]);
    assert_eq!(onset(&place, "r", "state.counters.tokens_used <= 3200"), (None, 1));
    assert!(place.ok(&["show", "r@0", "--json"]).contains("/*/usage"));
    let (place, _) = imported(
        r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a","usage":{"prompt_tokens":4000,"completion_tokens":1,"total_tokens":0}}]"#,
        &[],
    );
    assert!(uncertain(&place, "state.counters.tokens_used <= 5000"));
}

/// E17: a published tag that opens a call, outside of code.
#[test]
fn calls_in_tags_are_named() {
    let text = |said: &str| {
        format!(r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":{}}}]"#, Value::from(said))
    };
    let (place, _) = imported(&text("I do it.\n<tool_call>\n{\"name\":\"delete\"}\n</tool_call>"), &[]);
    assert!(
        uncertain(&place, "state.counters.tool_calls == 0")
            && uncertain(&place, "state.counters.last_tool != 'x'")
    );
    let (place, _) = imported(&text("In `<tool_call>{}` the name stands first."), &[]);
    assert_eq!(onset(&place, "r", "state.counters.tool_calls == 0"), (None, 1));
}

/// E18: calls and results among the parts of a content; a part in no table may be either.
#[test]
fn parts_are_calls_and_results() {
    for (call, result) in [
        (
            r#"{"type":"tool-call","toolCallId":"c","toolName":"pay","input":{"n":1}}"#,
            r#"{"type":"tool-result","toolCallId":"c","toolName":"pay","output":{"type":"error-text","value":"no"}}"#,
        ),
        (
            r#"{"type":"tool_use","id":"c","name":"pay","input":{"n":1}}"#,
            r#"{"type":"tool_result","tool_use_id":"c","content":"no","is_error":true}"#,
        ),
        (
            r#"{"toolUse":{"toolUseId":"c","name":"pay","input":{"n":1}}}"#,
            r#"{"toolResult":{"toolUseId":"c","content":[{"text":"no"}],"status":"error"}}"#,
        ),
        (
            r#"{"functionCall":{"name":"pay","args":{"n":1}}}"#,
            r#"{"functionResponse":{"name":"pay","response":{"error":"no"}}}"#,
        ),
    ] {
        let text = format!(
            r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":[{{"type":"text","text":"I pay."}},{call}]}},{{"role":"user","content":[{result}]}}]"#
        );
        let (place, answer) = imported(&text, &[]);
        assert_eq!(onset(&place, "r", NO_ERROR), (Some(3), 0), "{text}");
        assert_eq!(onset(&place, "r", "state.counters.tool_calls == 0"), (Some(2), 0), "{text}");
        assert_eq!(
            (answer.get("ticks"), answer.get("gaps")),
            (Some(&3u64.into()), Some(&0u64.into())),
            "{text}"
        );
        let shown = place.ok(&["show", "r@3", "--json"]);
        assert!(
            shown.contains(r#""source":{"index":2,"part":0}"#) && shown.contains(r#"{"n":1}"#),
            "{shown}"
        );
    }
    let text = r#"[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"gadget","x":1}]}]"#;
    assert!(uncertain(&imported(text, &[]).0, "state.counters.tool_calls == 0"));
}

/// E20: a list of parts says the same as its text.
#[test]
fn a_list_of_parts_written_out_as_text_says_what_the_list_says() {
    let parts = r#"[{"type":"text","text":"Error: declined"}]"#;
    for content in [parts.to_owned(), Value::from(parts).to_string()] {
        let text = format!(
            r#"[{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c","content":{content}}}]"#
        );
        assert_eq!(onset(&imported(&text, &[]).0, "r", NO_ERROR), (Some(2), 0), "{content}");
    }
}

/// E22: one member that says who speaks is taken beside any role; of two that differ none is believed.
#[test]
fn who_speaks_is_read_from_whichever_member_says_so() {
    for member in ["sender", "agent_name", "speaker", "author"] {
        let text = format!(
            r#"[{{"role":"user","content":"q"}},{{"role":"assistant","{member}":"Refunds","content":"a"}}]"#
        );
        let (place, _) = imported(&text, &[]);
        assert!(place.ok(&["log", "r", "--agent", "Refunds"]).contains("plan.update"), "{member}");
        let both = text.replace("\"content\":\"a\"", "\"name\":\"Triage\",\"content\":\"a\"");
        assert!(uncertain(&imported(&both, &[]).0, "state.counters.by_agent.Refunds == 0"), "{member}");
    }
}

/// E46: messages that name a parent are a tree; the run is the branch that was gone on with, the others are forks of it.
#[test]
fn an_answer_that_was_thrown_away_is_a_fork() {
    let text = r#"{"id":"m1","parent":null,"role":"user","content":"Pay."}
        {"id":"m2","parent":"m1","role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"pay","arguments":"{}"}}]}
        {"id":"m3","parent":"m2","role":"tool","tool_call_id":"c1","content":"declined","is_error":true}
        {"id":"m4","parent":"m1","role":"assistant","content":null,"tool_calls":[{"id":"c2","function":{"name":"pay","arguments":"{}"}}]}
        {"id":"m5","parent":"m4","role":"tool","tool_call_id":"c2","content":"paid","is_error":false}"#;
    let (place, answer) = imported(text, &[]);
    assert_eq!(onset(&place, "r", NO_ERROR), (None, 1));
    assert_eq!(onset(&place, "r", ONE_CALL), (None, 1));
    assert_eq!(answer.get("forks"), Some(&Value::array([Value::from("r+2")])));
    assert_eq!(onset(&place, "r+2", NO_ERROR).1, 0);
    place.ok(&["verify", "--all", "--replay"]);
    // The branch that the file names is the run.
    let listed = text.lines().collect::<Vec<_>>().join(",");
    let named = format!(r#"{{"current_node":"m3","messages":[{listed}]}}"#);
    assert_eq!(onset(&imported(&named, &[]).0, "r", NO_ERROR), (Some(3), 0));
}

const CHAT: &str = r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]"#;

/// A file that is compressed is read as what it holds, in one frame or several; a bomb and UTF-16 are refused by name.
#[test]
fn compressed_files_are_read_and_bombs_are_not() {
    use std::io::Write as _;
    let place = Place::with_store();
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let zstd =
        |bytes: &[u8]| ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
    let (front, back) = CHAT.as_bytes().split_at(20);
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
    for (name, bytes) in [
        ("g.json.gz", [gzip(front), gzip(back)].concat()),
        ("z.json.zst", [zstd(front), skippable.to_vec(), zstd(back)].concat()),
    ] {
        std::fs::write(place.path().join(name), bytes).unwrap();
        let made = place.ok(&["import", name, "--again"]);
        assert!(made.contains(&format!("imported {}: 2 ticks", &name[..1])), "{made}");
    }
    std::fs::write(place.path().join("bomb.gz"), gzip(&vec![b' '; 300 << 20])).unwrap();
    let ran = place.run(&["import", "bomb.gz"]);
    assert!(ran.code != 0 && ran.stderr.contains("E0205"), "{}", ran.stderr);
    std::fs::write(place.path().join("cut.gz"), &gzip(CHAT.as_bytes())[..20]).unwrap();
    assert!(place.run(&["import", "cut.gz"]).stderr.contains("E0201"));
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain(CHAT.bytes().flat_map(|byte| [byte, 0])).collect();
    std::fs::write(place.path().join("wide.json"), wide).unwrap();
    assert!(place.run(&["import", "wide.json"]).stderr.contains("UTF-16"));
}

/// Of a directory each file that is recognised is imported, and the others are named.
#[test]
fn a_directory_gives_what_is_recognised_and_names_the_rest() {
    let place = Place::with_store();
    std::fs::create_dir_all(place.path().join("d/sub")).unwrap();
    for (name, text) in [
        ("d/a.json", CHAT),
        ("d/sub/a.json", &*CHAT.replace("\"q\"", "\"r\"")),
        ("d/items.json", r#"[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]"#),
        ("d/notes.txt", "no trace"),
    ] {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    let dry = place.ok(&["import", "d", "-n"]);
    assert!(dry.contains("left  notes.txt") && dry.contains("openai-responses  items.json"), "{dry}");
    assert!(place.ok(&["runs", "--json"]).contains("\"items\":[]"));
    let made = place.ok(&["import", "d", "--json"]);
    let made = dendrer_object::json::parse_door(made.as_bytes()).unwrap();
    let files = made.get("files").and_then(Value::as_array).unwrap();
    let runs: Vec<&str> = files.iter().filter_map(|file| file.get("run")?.as_str()).collect();
    assert_eq!(runs, ["a", "items", "a-2"]);
    assert_eq!(place.run(&["import", "d/sub", "--json"]).code, 0);
    std::fs::remove_file(place.path().join("d/sub/a.json")).unwrap();
    assert_eq!(place.run(&["import", "d/sub"]).code, 1);
}

/// The account of a file, without recording it.
#[test]
fn explain_shows_what_would_be_read_kept_and_not_read() {
    let place = Place::with_store();
    let text = r#"[{"role":"user","content":"q","id":1},{"role":"tool","tool_call_id":"c","content":"x","usage":{"total_tokens":9}}]"#;
    std::fs::write(place.path().join("t.json"), text).unwrap();
    let shown = place.ok(&["import", "t.json", "--explain", "--json"]);
    let shown = dendrer_object::json::parse_door(shown.as_bytes()).unwrap();
    let items = shown.get("items").and_then(Value::as_array).unwrap();
    let row = |place: &str| {
        let row = items.iter().find(|item| item.get("place").and_then(Value::as_str) == Some(place)).unwrap();
        ["read", "kept", "not_read"].map(|name| row.get(name).and_then(Value::as_u64).unwrap())
    };
    assert_eq!((row("/content"), row("/id"), row("/usage")), ([2, 0, 0], [0, 1, 0], [0, 0, 1]));
    assert!(place.ok(&["import", "t.json", "--explain"]).contains("nothing was written"));
    assert!(place.ok(&["runs", "--json"]).contains("\"items\":[]"));
}

/// An import that was killed is marked until the same command has gone on with it.
#[test]
fn an_import_that_was_killed_goes_on() {
    let place = Place::with_store();
    let line = |n: usize| format!("{{\"role\":\"user\",\"content\":\"{n} {}\"}}\n", "x".repeat(400));
    std::fs::write(place.path().join("t.jsonl"), (0..80_000).map(line).collect::<String>()).unwrap();
    let import = ["import", "t.jsonl", "--run", "r"];
    let mut child = place.command(&import).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ticks = || {
        let listed = place.json(&["runs"]).1;
        let run = listed.get("items").and_then(|items| items.as_array()?.get(0).cloned());
        run.map(|run| (run.get("ticks").and_then(Value::as_u64), run.get("unfinished").cloned()))
    };
    while ticks().is_none() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (Some(killed_at), unfinished) = ticks().unwrap() else { panic!("a run has ticks") };
    assert!(killed_at > 0 && killed_at < 80_000 && unfinished == Some(Value::from(true)), "{killed_at}");
    for verb in [
        &["log", "r", "-n", "1"][..],
        &["show", "r@1"],
        &["state", "r"],
        &["steps", "r"],
        &["coherence", "r"],
    ] {
        assert_eq!(place.json(verb).1.get("unfinished"), Some(&Value::from(true)), "{verb:?}");
        assert!(place.ok(verb).contains("UNFINISHED r: "), "{verb:?}");
    }
    let verified = place.json(&["verify", "r"]).1;
    let run = verified.get("items").and_then(|items| items.as_array()?.get(0).cloned()).unwrap();
    let part = Value::record([("items", Value::from(killed_at)), ("of", Value::from(80_000u64))]);
    assert_eq!(run.get("import_unfinished"), Some(&part));
    assert_eq!(onset(&place, "r", NO_ERROR), (None, 6));
    assert_eq!(onset(&place, "r", "state.counters.transitions < 5"), (Some(5), 0));
    assert_eq!(place.run(&["assert", "r", "--holds", NO_ERROR]).code, 6);
    // Another command has no run of this name.
    assert_eq!(place.run(&[&import[..], &["--goal", "g"]].concat()).code, 2);
    assert!(place.ok(&import).contains("80,000 ticks"));
    assert_eq!(ticks(), Some((Some(80_000), None)));
    assert_eq!(onset(&place, "r", NO_ERROR), (None, 1));
    assert!(place.run(&import).stderr.contains("E0214"));
    place.ok(&["verify", "r", "--replay"]);
}

/// A4: a damaged line in the middle is a gap with its number, and what depends on it is not known behind it.
#[test]
fn a_damaged_line_is_a_gap() {
    let mut lines = vec![
        r#"{"role":"user","content":"Count the crates."}"#.to_owned(),
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"k1","function":{"name":"count","arguments":"{}"}}]}"#.into(),
        "\0".repeat(300),
        r#"{"role":"tool","tool_call_id":"k1","content":"Error: bay 5 is locked"}"#.into(),
    ];
    let (place, answer) = imported(&lines.join("\n"), &[]);
    assert_eq!(answer.get("ticks"), Some(&Value::from(4u64)));
    let note = answer.get("notes").and_then(|notes| notes.as_array()?.get(0).cloned()).unwrap();
    assert_eq!(note.get("tick"), Some(&Value::from(3u64)));
    assert!(note.get("message").and_then(Value::as_str).unwrap().starts_with("line 3 "), "{note:?}");
    assert_eq!(onset(&place, "r", NO_ERROR).1, 6);
    assert!(place.ok(&["show", "r@4"]).contains("bay 5 is locked"));
    let stopped = place.run(&["import", "t.json", "--run", "s", "--on-gap", "stop", "--again"]);
    assert!(stopped.code == 2 && stopped.stderr.contains("line 3 "), "{}", stopped.stderr);
    // One line, or a list, has no lines to mark.
    lines.truncate(1);
    std::fs::write(place.path().join("t.json"), format!("[{}, \0]", lines[0])).unwrap();
    assert_eq!(place.run(&["import", "t.json", "--run", "t"]).code, 2);
}

/// Logs of Inspect and protobuf of OTLP are recognised in a directory, and what an event states is in the state of the run.
#[test]
fn logs_of_inspect_and_protobuf_are_recognised() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../dendrer-wire/tests/fixtures");
    let place = Place::with_store();
    let traces = place.path().join("traces");
    std::fs::create_dir(&traces).unwrap();
    for name in ["sums.eval", "spans.pb"] {
        std::fs::copy(format!("{fixtures}/{name}"), traces.join(name)).unwrap();
    }
    std::fs::write(traces.join("other.zip"), b"PK\x03\x04\x00\x00other").unwrap();
    let ran = place.run(&["import", "traces", "--json"]);
    let answer = dendrer_object::json::parse_door(ran.stdout.as_bytes()).unwrap();
    let text = answer.to_string();
    assert!(text.contains(r#""kind":"otlp""#) && text.contains("2 samples are in it"), "{text}");
    assert!(text.contains("other.zip"), "{text}");
    place.ok(&["import", "traces/sums.eval", "--index", "1", "--run", "r"]);
    assert_eq!(onset(&place, "r", NO_ERROR), (Some(12), 0));
    assert_eq!(onset(&place, "r", "state.counters.tokens_used < 68"), (Some(15), 0));
    assert_eq!(onset(&place, "r", "!has(state.store.adds) || state.store.adds < 1"), (Some(9), 0));
    // Rules of a pack make the states: changes that the log states are kept in its words.
    let pack = "name: p\nversion: v1\nwords: w\nstate:\n  calls:\n    words: w\n    init: 0\n";
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    let ran = place.run(&[
        "import",
        "traces/sums.eval",
        "--index",
        "0",
        "--run",
        "s",
        "--pack",
        "p.yaml",
        "--json",
    ]);
    assert!(!ran.stdout.contains("proposed_delta"), "{}{}", ran.stdout, ran.stderr);
    let cut = std::fs::read(traces.join("sums.eval")).unwrap();
    std::fs::write(place.path().join("cut.eval"), &cut[..cut.len() - 9]).unwrap();
    let ran = place.run(&["import", "cut.eval", "--run", "t"]);
    assert!(ran.stderr.contains("E0201") && ran.code != 0, "{}", ran.stderr);
    assert!(place.run(&["log", "t"]).code != 0);
}

/// A6: an action has an id and its observation names it as its cause; each is of another mapping.
#[test]
fn parts_stand_at_other_places_in_lines_of_another_kind() {
    let place = Place::with_store();
    let events = r#"[{"id":0,"source":"user","action":"message","args":{"content":"List."}},
        {"id":1,"source":"agent","action":"run","args":{"command":"ls seeds"}},
        {"id":2,"source":"agent","action":"read","args":{"path":"beans.txt"}},
        {"id":3,"source":"agent","observation":"read","cause":2,"content":"runner beans"},
        {"id":4,"source":"agent","observation":"run","cause":1,"content":"no folder","extras":{"exit_code":2}}]"#;
    let map = r#"{"each":[{"type":{"from":"/action","words":{"message":"observation.add","*":"action.request"}},"agent":"/source","action":{"tool":"/action","params":"/args","call_id":"/id"}},
        {"type":{"from":"/observation","words":{"*":"action.result"}},"agent":"/source","action":{"call_id":"/cause"},"result":{"output":"/content","status":{"from":"/extras/exit_code","words":{"0":"ok","null":"ok","*":"error"}}}}]}"#;
    std::fs::write(place.path().join("events.json"), events).unwrap();
    std::fs::write(place.path().join("map.json"), map).unwrap();
    let answer = place.json(&["import", "events.json", "--map", "map.json", "--run", "r"]).1;
    assert_eq!(answer.get("gaps"), Some(&Value::from(0u64)), "{answer}");
    let tool = |tick: &str| {
        let shown = place.json(&["show", tick]).1;
        let content = shown.get("content").unwrap().clone();
        content.get("action").and_then(|action| action.get("tool")?.as_str().map(str::to_owned))
    };
    assert_eq!((tool("r@4").as_deref(), tool("r@5").as_deref()), (Some("read"), Some("run")));
    assert_eq!(onset(&place, "r", NO_ERROR), (Some(5), 0));
}

/// A9: the time of the source is shown, exported and read by rules; a mapping names its place.
#[test]
fn the_time_of_the_source_is_the_time_of_the_step() {
    let chat = r#"[{"role":"user","content":"Next ferry?","timestamp":"2026-02-03T09:00:00Z"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"f1","function":{"name":"ferries","arguments":"{}"}}],"timestamp":"2026-02-03T10:00:02+01:00"},
        {"role":"tool","tool_call_id":"f1","content":"11:30","timestamp":1770109247},
        {"role":"assistant","content":"At half past.","created_at":"2026-02-03 09:00:48"}]"#;
    let (place, _) = imported(chat, &[]);
    let observed = |run: &str| -> Vec<String> {
        let log = place.json(&["log", run]).1;
        let items = log.get("items").and_then(Value::as_array).unwrap();
        items.iter().filter_map(|item| Some(item.get("observed_at")?.as_str()?.to_owned())).collect()
    };
    let expected = [
        "2026-02-03T09:00:00.000Z",
        "2026-02-03T09:00:02.000Z",
        "2026-02-03T09:00:47.000Z",
        "2026-02-03T09:00:48.000",
    ];
    assert_eq!(observed("r"), expected);
    assert!(place.ok(&["show", "r@3"]).contains("2026-02-03T09:00:47.000Z"));
    assert!(
        place
            .ok(&["export", "r", "--format", "jsonl"])
            .contains(r#""observed_at":"2026-02-03T09:00:47.000Z""#)
    );
    place.ok(&["verify", "--all", "--replay"]);
    let lines = r#"{"kind":"call","who":"desk","tool":"ferries","id":"f1","at":"2026-02-03T09:00:02Z"}
        {"kind":"return","who":"desk","id":"f1","out":"11:30","at":"2026-02-03T09:00:47Z"}"#;
    let map = r#"{"type":{"from":"/kind","words":{"call":"action.request","return":"action.result"}},"agent":"/who","ts":"/at","action":{"tool":"/tool","call_id":"/id"},"result":{"output":"/out","status":{"from":"/kind","words":{"return":"ok","call":"ok"}}}}"#;
    std::fs::write(place.path().join("t.jsonl"), lines).unwrap();
    std::fs::write(place.path().join("map.json"), map).unwrap();
    place.ok(&["import", "t.jsonl", "--map", "map.json", "--run", "s"]);
    assert_eq!(observed("s"), &expected[1..3]);
    // A failure is no part of a request, and is not passed over.
    std::fs::write(place.path().join("map.json"), map.replace(r#""call":"ok""#, r#""call":"error""#))
        .unwrap();
    let refused = place.run(&["import", "t.jsonl", "--map", "map.json", "--run", "t", "--again"]);
    assert!(refused.stderr.contains("E0427"), "{}", refused.stderr);
}

/// A10: one line is a call and its result.
#[test]
fn a_line_may_be_a_call_and_its_result() {
    let place = Place::with_store();
    let lines = r#"{"step":1,"thought":"look","action":"ls","observation":"a.txt","exit":0}
        {"step":2,"thought":"read","action":"cat b.txt","observation":"not there","exit":1}
        {"step":3,"thought":"then","action":"cat a.txt","observation":"hello","exit":0}"#;
    let map = r#"{"each":[{"type":{"const":"action.request"},"agent":{"const":"coder"},"intent":{"content":"/thought"},"action":{"tool":{"const":"shell"},"params":"/action","call_id":"/step"}},
        {"type":{"const":"action.result"},"agent":{"const":"coder"},"action":{"call_id":"/step"},"result":{"output":"/observation","status":{"from":"/exit","words":{"0":"ok","*":"error"}}}}]}"#;
    std::fs::write(place.path().join("steps.jsonl"), lines).unwrap();
    std::fs::write(place.path().join("map.json"), map).unwrap();
    let answer = place.json(&["import", "steps.jsonl", "--map", "map.json", "--run", "r"]).1;
    assert_eq!(
        (answer.get("ticks"), answer.get("gaps")),
        (Some(&Value::from(6u64)), Some(&Value::from(0u64)))
    );
    assert_eq!(onset(&place, "r", NO_ERROR), (Some(4), 0));
    assert_eq!(onset(&place, "r", "state.counters.tool_calls < 3"), (Some(5), 0));
}

/// E23: a row of a chain that was altered is never counted as sound.
#[test]
fn an_altered_row_decides_nothing() {
    let place = Place::with_store();
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/cases/E23/altered.jsonl");
    let Ok(rows) = std::fs::read(case) else {
        return eprintln!("SKIPPED an_altered_row_decides_nothing: {case} is not there");
    };
    std::fs::write(place.path().join("altered.jsonl"), rows).unwrap();
    assert_eq!(place.run(&["verify", "altered.jsonl", "--profile", "carl"]).code, 4);
    place.ok(&["import", "--kind", "carl", "altered.jsonl", "--run", "r"]);
    assert_eq!(place.run(&["assert", "r", "--holds", r#"by_action("tool_call").all(s, s.success)"#]).code, 6);
    assert_eq!(onset(&place, "r", NO_ERROR).1, 6);
}
