//! Traces that other programs wrote, through the program.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use dendrer_object::{Value, json};

use crate::support::{Place, parse};

const CHAT: &str = r#"{"task":7,"talk":[{"role":"system","content":"be kind"},
{"role":"user","content":"hello"},
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"door\"}"}}]},
{"role":"tool","tool_call_id":"c1","content":"Error: it is dark"},
{"role":"assistant","content":"it is dark"}]}"#;

fn with_chat() -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("chat.json"), CHAT).unwrap();
    place
}

#[test]
fn the_schema_lists_the_formats() {
    let schema = dendrer_view::schemas::find("import").unwrap();
    let listed = schema.get("properties").and_then(|members| members.get("kind")?.get("enum")).unwrap();
    let names = dendrer_wire::format::FORMATS.iter().map(|format| format.name.into());
    assert_eq!(*listed, Value::array(names));
}

#[test]
fn a_chat_is_a_run_on_which_everything_works() {
    let place = with_chat();
    let said = place.run(&["import", "chat.json"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.starts_with("imported chat: 4 ticks, 0 gaps, tip "), "{}", said.stdout);
    assert!(
        said.stderr.contains("help: dendrer bisect chat --holds 'state.counters.tool_errors == 0'"),
        "{}",
        said.stderr
    );
    let log = place.ok(&["log", "chat"]);
    assert!(log.contains("FAIL error look \"Error: it is dark\""), "{log}");
    assert!(log.contains("\"hello\""), "{log}");
    assert!(place.ok(&["show", "chat@1"]).contains("\n  \"hello\"\n"));
    let (code, found) = place.json(&["bisect", "chat", "--holds", "state.counters.tool_errors == 0"]);
    assert_eq!((code, found.get("onset")), (0, Some(&3u64.into())));
    assert_eq!(place.run(&["verify", "chat", "--replay"]).code, 0);
    let start = place.json(&["show", "chat@0"]).1;
    let start = start.get("content").unwrap();
    assert_eq!(
        start.get("meta").unwrap().to_string(),
        r#"{"system_messages":[{"content":"be kind","role":"system"}],"task":7}"#
    );
    assert_eq!(start.get("stage"), Some(&0u64.into()));
    let links = place.json(&["show", "chat@3"]).1.get("links").unwrap().to_string();
    let asked = place.json(&["show", "chat@2"]).1.get("id").unwrap().as_str().unwrap().to_owned();
    assert!(links.contains(&format!(r#"{{"hash":"{asked}","rel":"caused_by"}}"#)), "{links}");
}

/// One message is one tick, so a tick that nobody said cannot stand among them.
#[test]
fn nothing_is_added_to_an_imported_run() {
    let place = with_chat();
    place.ok(&["import", "chat.json"]);
    let ran = place.run_with(&["commit", "--run", "chat"], b"{\"type\":\"plan.update\"}\n");
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("error[E0409]: chat was imported"), "{}", ran.stderr);
    assert!(ran.stderr.contains("help: dendrer reduce chat --pack FILE --as NEW"), "{}", ran.stderr);
    assert_eq!(place.json(&["state", "chat"]).1.get("tick"), Some(&4u64.into()));
}

#[test]
fn a_dry_run_says_what_it_took_and_why_and_writes_nothing() {
    let place = with_chat();
    let said = place.ok(&["import", "chat.json", "-n"]);
    for line in [
        "kind       openai-chat (detected: the list at /talk)",
        "would make run  chat   stage 0, 4 ticks, 2 agents",
        "types      action.request 1, action.result 1, observation.add 1, plan.update 1",
        "calls      1 asked for, 1 answered, 1 failed",
        "meta       system_messages, task",
        "tick 1  user  observation.add  \"hello\"",
        "nothing was written (dry run)",
    ] {
        assert!(said.lines().any(|found| found == line), "{line} in {said}");
    }
    let (code, document) = place.json(&["import", "chat.json", "-n"]);
    assert_eq!((code, document.get("tip")), (0, Some(&Value::Null)));
    assert_eq!(document.get("items").unwrap().as_array().unwrap().len(), 4);
    assert_eq!(place.json(&["runs"]).1.get("total"), Some(&0u64.into()));
    // It needs no store.
    let bare = Place::new();
    std::fs::write(bare.path().join("chat.json"), CHAT).unwrap();
    assert_eq!(bare.run(&["import", "chat.json", "-n"]).code, 0);
    assert_eq!(bare.run(&["import", "chat.json"]).code, 3);
}

#[test]
fn importing_twice_is_noticed_and_names_the_run() {
    let place = with_chat();
    place.ok(&["import", "chat.json", "--run", "first"]);
    std::fs::copy(place.path().join("chat.json"), place.path().join("copy.json")).unwrap();
    for args in
        [&["import", "chat.json"][..], &["import", "copy.json", "--run", "x"], &["import", "copy.json", "-n"]]
    {
        let (code, error) = place.json(args);
        assert_eq!((code, error.get("code")), (2, Some(&"E0214".into())), "{args:?}");
        assert!(error.get("message").unwrap().as_str().unwrap().contains("as first"), "{error}");
    }
    let piped = place.run_with(&["import", "-", "--run", "x"], CHAT.as_bytes());
    assert_eq!(piped.code, 2, "{}", piped.stderr);
    assert_eq!(place.json(&["runs"]).1.get("total"), Some(&1u64.into()));
    place.ok(&["import", "copy.json", "--again", "--run", "second"]);
    assert_eq!(
        place.json(&["import", "copy.json", "--again", "--run", "second"]).1.get("code"),
        Some(&"E0111".into())
    );
    // One byte more is another trace, and another run of a file is another part of it.
    std::fs::write(place.path().join("copy.json"), format!("{CHAT}\n")).unwrap();
    place.ok(&["import", "copy.json"]);
    std::fs::write(place.path().join("two.json"), format!("[{CHAT},{CHAT}]")).unwrap();
    place.ok(&["import", "two.json", "--index", "0"]);
    place.ok(&["import", "two.json", "--index", "1"]);
    assert_eq!(place.json(&["import", "two.json", "--index", "1", "--run", "y"]).0, 2);
    let names = place.ok(&["runs", "--sort", "name"]);
    assert!(names.contains("two-0") && names.contains("two-1"), "{names}");
}

#[test]
fn standard_input_and_pipes_can_be_read() {
    let place = Place::with_store();
    let said = place.run_with(&["import", "-"], CHAT.as_bytes());
    assert!(said.stdout.starts_with("imported import-"), "{}{}", said.stdout, said.stderr);
    if cfg!(target_os = "linux") {
        let said = place.run_with(&["import", "/dev/stdin", "--run", "x", "--again"], CHAT.as_bytes());
        assert!(said.stdout.starts_with("imported x: 4 ticks"), "{}{}", said.stdout, said.stderr);
    }
    assert_eq!(place.run(&["verify", "--all", "--replay"]).code, 0);
}

#[test]
fn what_cannot_be_imported_says_why_and_leaves_nothing() {
    let place = with_chat();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write("talk.txt", "She said: hello.\n");
    write("two.json", r#"{"a":[{"role":"user","content":1}],"b":[{"role":"user","content":1}]}"#);
    write("map.json", r#"{"type":"/t"}"#);
    write("bad-map.json", r#"{"typ":"/t"}"#);
    write("lines.jsonl", "{\"t\":\"plan.update\"}\n{\"t\":\"kernel.anomaly\"}\n");
    for (args, code, exit) in [
        (&["import", "talk.txt"][..], "E0203", 2),
        (&["import", "two.json"], "E0212", 2),
        (&["import", "two.json", "--messages", "/c"], "E0212", 2),
        (&["import", "two.json", "--messages", "c"], "E0106", 2),
        (&["import", "chat.json", "--index", "3"], "E0212", 2),
        (&["import", "nowhere.json"], "E0108", 3),
        (&["import", ".", "--run", "x"], "E0106", 2),
        (&["import", "chat.json", "--run", "a b"], "E0210", 2),
        (&["import", "chat.json", "--kind", "jsonl"], "E0106", 2),
        (&["import", "chat.json", "--kind", "openai-chat", "--map", "map.json"], "E0106", 2),
        (&["import", "chat.json", "--state", "nowhere.json"], "E0108", 3),
        (&["import", "chat.json", "--state", "lines.jsonl"], "E0201", 2),
        (&["import", "lines.jsonl", "--map", "bad-map.json"], "E0215", 2),
        (&["import", "lines.jsonl", "--map", "map.json"], "E0401", 5),
    ] {
        let (found, error) = place.json(args);
        assert_eq!((error.get("code"), found), (Some(&code.into()), exit), "{args:?}: {error}");
        assert_eq!(error.get("changed"), Some(&false.into()));
    }
    for index in ["-1", "first", ""] {
        let refused = place.run(&["import", "chat.json", "--index", index]);
        let why = "an index is the number of a run in the file, counted from 0";
        assert!(refused.code == 2 && refused.stderr.contains(why), "{}", refused.stderr);
    }
    let text = place.run(&["import", "two.json"]).stderr;
    assert!(text.contains("  | list     /a  1 of 1 items are messages"), "{text}");
    assert!(text.contains("  | list     /b  1 of 1 items are messages"), "{text}");
    assert!(text.contains("help: dendrer import two.json --messages /a"), "{text}");
    let named = place.json(&["import", "two.json"]).1.get("where").unwrap().get("list").unwrap().to_string();
    assert!(named.contains("/a  1") && named.contains("/b  1"), "{named}");
    assert_eq!(place.json(&["runs"]).1.get("total"), Some(&0u64.into()));
    assert!(place.ok(&["import", "two.json", "--messages", "/a"]).starts_with("imported two: 1 tick, "));
}

#[test]
fn the_door_of_import_is_the_door_of_commit() {
    for content in [
        "NaN",
        "-Infinity",
        r#""\ud800""#,
        "1208925819614629174706177",
        "1e999",
        r#"{"a":1,"a":2}"#,
        r#"{"$a":1}"#,
        "nope",
        r#""\x""#,
        "01",
    ] {
        let place = Place::with_store();
        let intent =
            format!(r#"{{"type":"observation.add","agent":"user","intent":{{"content":{content}}}}}"#);
        let committed = place.run_with(&["commit", "--run", "c", "--json"], intent.as_bytes());
        let message = format!(r#"[{{"role":"user","content":{content}}}]"#);
        let imported = place.run_with(&["import", "-", "--run", "i", "--json"], message.as_bytes());
        assert_eq!(committed.code, imported.code, "{content}: {}{}", committed.stdout, imported.stdout);
        if committed.code == 0 {
            let content = |run: &str| {
                let shown = place.json(&["show", run]).1;
                shown.get("content").unwrap().get("intent").unwrap().get("content").unwrap().to_string()
            };
            assert_eq!(content("c@1"), content("i@1"));
        } else {
            assert_eq!(
                parse(&committed.stdout).get("code"),
                parse(&imported.stdout).get("code"),
                "{content}"
            );
            assert_eq!(place.run(&["show", "i@0"]).code, 3, "{content}: nothing is left of it");
        }
    }
}

/// A mark in front of a file is no part of it, and what is no text is told as that, whichever verb is asked.
#[test]
fn the_bytes_in_front_of_a_file_are_taken_alike() {
    let place = Place::with_store();
    let marked = |text: &str| [b"\xef\xbb\xbf".as_slice(), text.as_bytes()].concat();
    std::fs::write(place.path().join("s0.json"), marked(r#"{"n":1}"#)).unwrap();
    let line = marked("{\"type\":\"plan.update\"}\n");
    let ran = place.run_with(&["commit", "--run", "r", "--state", "s0.json"], &line);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    std::fs::write(place.path().join("chat.json"), marked(r#"[{"role":"user","content":"hi"}]"#)).unwrap();
    place.ok(&["import", "chat.json", "--state", "s0.json"]);
    let utf_16: Vec<u8> = "\u{feff}[{}]".encode_utf16().flat_map(u16::to_le_bytes).collect();
    // An import inflates what is compressed, and this is cut.
    for (name, bytes, code) in
        [("utf-16", &utf_16[..], "E0206"), ("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "E0201")]
    {
        std::fs::write(place.path().join("other.json"), bytes).unwrap();
        let committed = place.run_with(&["commit", "--run", "s"], bytes);
        for (ran, code) in [(place.run(&["import", "other.json"]), code), (committed, "E0206")] {
            assert_eq!(ran.code, 2, "{name}: {}", ran.stderr);
            assert!(ran.stderr.contains(&format!("error[{code}]")), "{name}: {}", ran.stderr);
        }
    }
}

#[test]
fn state_goal_and_policy_are_those_of_the_run() {
    let place = with_chat();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write("state.json", r#"{"rooms":{"hall":1}}"#);
    write("policy.json", r#"[{"id":"one-room","holds":"size(state.rooms) == 1"}]"#);
    place.ok(&["import", "chat.json", "--state", "state.json", "--policy", "policy.json", "--goal", "light"]);
    assert_eq!(place.json(&["state", "chat@tip", "--path", "rooms.hall"]).1.get("value"), Some(&1u64.into()));
    assert_eq!(place.run(&["verify", "chat", "--replay"]).code, 0);
    let (code, _) = place.json(&["bisect", "chat", "--predicate", "kernel.policy_compliant"]);
    assert_eq!(code, 1, "never violated");
    assert!(place.ok(&["runs"]).contains("light"));
}

#[test]
fn lines_of_any_kind_come_in_by_a_mapping() {
    let place = Place::with_store();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write(
        "map.json",
        r#"{"type":{"from":"/k","words":{"ask":"action.request","got":"action.result","*":"observation.add"}},"agent":"/by","action":{"tool":"/tool"},"result":{"status":"/status"},"delta":"/delta"}"#,
    );
    write(
        "lines.jsonl",
        "{\"k\":\"hm\",\"by\":\"a\",\"t\":5,\"delta\":[{\"set\":\"/n\",\"value\":1}]}\n{\"k\":\"ask\",\"by\":\"a\",\"tool\":\"x\"}\n{\"k\":\"got\",\"by\":\"a\",\"status\":\"error\"}\n",
    );
    let said = place.ok(&["import", "lines.jsonl", "--map", "map.json", "-n"]);
    assert!(said.contains("kind       jsonl (because of --map: one item a line)"), "{said}");
    place.ok(&["import", "lines.jsonl", "--map", "map.json"]);
    assert_eq!(place.json(&["state", "lines", "--path", "n"]).1.get("value"), Some(&1u64.into()));
    let (_, found) = place.json(&["bisect", "lines", "--holds", "state.counters.tool_errors == 0"]);
    assert_eq!(found.get("onset"), Some(&3u64.into()));
    assert_eq!(place.run(&["verify", "lines", "--replay"]).code, 0);
}

/// The most memory the program had, in MiB, or `None` where the system does not say.
fn peak_of_import(place: &Place, args: &[&str]) -> (Value, Option<u64>) {
    let mut child = place.command(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    // The mark only rises, so the last look before the end is the one that counts.
    let mut peak = None;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(line.map(|kb: u64| kb >> 10));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    (parse(&String::from_utf8(output.stdout).unwrap()), peak)
}

#[test]
fn a_hundred_thousand_messages_fit_in_little_memory() {
    let place = Place::with_store();
    let mut file = BufWriter::new(File::create(place.path().join("many.json")).unwrap());
    file.write_all(b"{\"messages\":[").unwrap();
    for n in 0..25_000 {
        let comma = if n == 0 { "" } else { "," };
        let text = if n == 20_000 { "Error: no" } else { "fine" };
        write!(
            file,
            r#"{comma}{{"role":"user","content":"{}"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{n}","function":{{"name":"t","arguments":"{{\"n\":{n}}}"}}}}]}},{{"role":"tool","tool_call_id":"c{n}","content":"{text}"}},{{"role":"assistant","content":"answer {n}"}}"#,
            "x".repeat(600),
        )
        .unwrap();
    }
    file.write_all(b"],\"behind\":true}").unwrap();
    file.into_inner().unwrap();
    let (document, peak) = peak_of_import(&place, &["import", "many.json", "--json"]);
    assert_eq!(document.get("ticks"), Some(&100_000u64.into()));
    assert_eq!(
        (document.get("gaps"), document.get("results_failed")),
        (Some(&0u64.into()), Some(&1u64.into()))
    );
    let size = std::fs::metadata(place.path().join("many.json")).unwrap().len() >> 20;
    if let Some(peak) = peak {
        // Tables and buffers that double, and the allocator, come to 85 to 118 MiB; half as many messages take 70.
        assert!(peak < 128, "{peak} MiB for {size} MiB of messages");
    }
    let status = place.json(&["show", "many@80003"]).1;
    let status = status.get("content").unwrap().get("result").unwrap().get("status").cloned();
    assert_eq!(status, Some("error".into()));
}

#[test]
fn a_message_of_200_megabytes_is_a_gap_and_fits_in_less() {
    let place = Place::with_store();
    let mut file = BufWriter::new(File::create(place.path().join("huge.json")).unwrap());
    let front = r#"[{"role":"user","content":"go"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"t","arguments":"{}"}}]},{"role":"tool","content":""#;
    file.write_all(front.as_bytes()).unwrap();
    for _ in 0..200 {
        file.write_all(&[b'x'; 1 << 20]).unwrap();
    }
    file.write_all(br#"","tool_call_id":"c"},{"role":"user","content":"after"}]"#).unwrap();
    file.into_inner().unwrap();
    let (document, peak) = peak_of_import(&place, &["import", "huge.json", "--json"]);
    assert_eq!((document.get("ticks"), document.get("gaps")), (Some(&4u64.into()), Some(&1u64.into())));
    if let Some(peak) = peak {
        // Threads and the allocator make 119 to 181 MiB of it.
        assert!(peak < 200, "{peak} MiB for a message of 200");
    }
    let shown = place.json(&["show", "huge@3"]).1;
    let content = shown.get("content").unwrap();
    // What stands around the value that is too large is there: the result still belongs to its call.
    assert_eq!(content.get("action").unwrap().get("tool"), Some(&"t".into()));
    assert_eq!(
        content.get("result").unwrap().get("output").unwrap().to_string(),
        r#"{"$gap":{"path":"/2/content","reason":"value_too_large"}}"#
    );
    let (code, error) = place.json(&["import", "huge.json", "--on-gap", "stop", "--again", "--run", "x"]);
    assert_eq!((code, error.get("code")), (2, Some(&"E0205".into())));
    assert!(error.to_string().contains("/2/content"), "{error}");
}

/// Every published run there is: as many ticks as it has messages, and the first refused call where a linear scan
/// over the source found it.
#[test]
fn every_run_of_the_corpus_is_imported_tick_by_tick() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let Ok(runs) = std::fs::read_to_string(corpus.join("runs.jsonl")) else {
        // Seen whether or not output is captured.
        let _ =
            std::io::stderr().write_all(format!("SKIPPED: no corpus at {}\n", corpus.display()).as_bytes());
        return;
    };
    let rows = |text: &str| -> Vec<Value> {
        text.lines().map(|line| json::parse_door(line.as_bytes()).unwrap()).collect()
    };
    let runs = rows(&runs);
    assert_eq!(runs.len(), 87);
    let mut expected = rows(&std::fs::read_to_string(corpus.join("expected.jsonl")).unwrap());
    expected.retain(|case| case.get("predicate").and_then(Value::as_str) == Some("no_refused_call"));
    let place = Place::with_store();
    let mut wrong = String::new();
    let mut checked = 0;
    for (at, run) in runs.iter().enumerate() {
        let file = run.get("file").unwrap().as_str().unwrap();
        let name = format!("run-{at}");
        let path = corpus.join(file);
        let (code, said) = place.json(&["import", path.to_str().unwrap(), "--run", &name]);
        if code != 0 || said.get("ticks") != run.get("n") || said.get("noted").unwrap().to_string() != "{}" {
            let _ = writeln!(wrong, "{file}: {said}");
            continue;
        }
        assert_eq!(said.get("calls"), said.get("results_paired"), "{file}");
        let (code, found) = place.json(&["bisect", &name, "--holds", "state.counters.tool_errors == 0"]);
        let onset = match code {
            0 => found.get("onset").cloned().unwrap(),
            _ => Value::Null,
        };
        let case = expected.iter().find(|case| case.get("file") == run.get("file"));
        let oracle = case.map_or(Value::Null, |case| case.get("onset").cloned().unwrap());
        checked += u64::from(case.is_some());
        if onset != oracle {
            let _ = writeln!(wrong, "{file}: onset {onset}, expected {oracle}");
        }
        if at % 20 == 0 {
            let log = place.ok(&["log", &name, "--jsonl"]);
            assert!(log.lines().count() > 1 && place.run(&["show", &format!("{name}@1")]).code == 0);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(checked, 59, "runs with calls have an expected onset");
    let verified = place.run(&["verify", "--all", "--replay"]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
}
