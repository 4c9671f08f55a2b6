//! Recording through the program: replies, refusals, pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use dendrer_object::Value;

use crate::support::Place;

fn codes(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with("E0"))).collect()
}

#[test]
fn intents_become_transitions_and_each_is_acknowledged() {
    let place = Place::with_store();
    let lines = concat!(
        r#"{"type":"observation.add","agent":"a","confidence":0.5,"delta":[{"set":"/n","value":1}]}"#,
        "\n\n",
        r#"{"transition_type":"action.request","agent_id":"a","action":{"tool":"t"}}"#,
        "\n",
        r#"{"type":"action.result","author":"runtime","agent":"a","result":{"status":"error"}}"#,
    );
    let ran = place.run_with(&["commit", "--run", "r", "--goal", "g"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let acks: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(acks.len(), 4);
    assert!(acks[0].starts_with("begun  sha256:"));
    for (tick, ack) in acks[1..].iter().enumerate() {
        assert!(ack.starts_with(&format!("tick {}  sha256:", tick + 1)), "{ack}");
    }
    assert_eq!(place.json(&["state", "r", "--path", "n"]).1.get("value"), Some(&Value::from(1u64)));
    let counters = place.json(&["state", "r", "--path", "counters"]).1;
    let value = counters.get("value").unwrap();
    assert_eq!((value.get("tool_calls"), value.get("tool_errors")), (Some(&1u64.into()), Some(&1u64.into())));
    assert_eq!(place.run(&["verify", "--all", "--replay"]).code, 0);
}

#[test]
fn a_run_goes_on_where_it_stands() {
    let place = Place::with_store();
    let line = br#"{"type":"plan.update","agent":"a","delta":[{"append":"/list","value":1}]}"#;
    for tick in 1..4 {
        let ran = place.run_with(&["commit", "--run", "r"], line);
        assert!(ran.stdout.contains(&format!("tick {tick}  ")), "{}", ran.stdout);
    }
    assert_eq!(place.json(&["state", "r"]).1.get("value").unwrap().to_string(), r#"{"list":[1,1,1]}"#);
    assert_eq!(place.json(&["show", "r@3"]).1.get("content").unwrap().get("seq"), Some(&3u64.into()));
    assert_eq!(place.run_with(&["commit", "--run", "r", "--new"], line).code, 2);
    assert_eq!(place.run_with(&["commit", "--run", "r", "--goal", "late"], line).code, 2);
    assert_eq!(place.run(&["verify", "--all", "--replay"]).code, 0);
}

#[test]
fn refusals_are_kept_and_end_with_exit_code_5() {
    let place = Place::with_store();
    let lines = concat!(
        r#"{"type":"plan.update","agent":"a"}"#,
        "\n",
        r#"{"type":"kernel.anomaly","agent":"mallory"}"#,
        "\n",
        r#"{"type":"policy.decision","agent":"a","policy":{"decision":"allow"}}"#,
        "\n",
        r#"{"type":"plan.updte","agent":"a"}"#,
        "\n",
        r#"{"type":"plan.update","agent":"a","delta":[{"set":"/policy","value":{}}]}"#,
        "\n",
        r#"{"type":"plan.update","agent":"a"}"#,
        "\n",
    );
    let ran = place.run_with(&["commit", "--run", "r"], lines.as_bytes());
    assert_eq!(ran.code, 5);
    assert_eq!(codes(&ran.stdout), ["E0401", "E0403", "E0402", "E0405"]);
    assert!(ran.stdout.contains("did you mean plan.update?"));
    let log = place.json(&["log", "r", "--refusals"]).1;
    let kinds: Vec<String> = log
        .get("items")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.get("type").unwrap().as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds,
        [
            "plan.update",
            "kernel.anomaly",
            "kernel.anomaly",
            "policy.decision",
            "plan.updte",
            "plan.update",
            "plan.update"
        ]
    );
    let anomaly = place.json(&["show", "r@2"]).1;
    assert_eq!(anomaly.get("author"), Some(&"kernel".into()));
    assert_eq!(
        place.run(&["bisect", "r", "--predicate", "kernel.anomaly_free", "--expect-onset", "2"]).code,
        0
    );
    assert_eq!(place.run(&["verify", "--all", "--replay"]).code, 0);
    assert_eq!(place.run_with(&["commit", "--run", "r", "--as", "system"], b"").code, 5);
}

#[test]
fn a_bad_line_ends_it_and_what_stood_before_it_counts() {
    let place = Place::with_store();
    let lines = concat!(
        r#"{"type":"plan.update"}"#,
        "\n",
        r#"{"type":"plan.update","intent":{"#,
        "\n",
        r#"{"type":"plan.update"}"#,
        "\n"
    );
    let ran = place.run_with(&["commit", "--run", "r"], lines.as_bytes());
    assert_eq!(ran.code, 2);
    assert!(ran.stdout.contains("tick 1  ") && !ran.stdout.contains("tick 2  "), "{}", ran.stdout);
    for part in ["error[E0201]", "line     2", "1 transition before it is committed"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let (code, error) = {
        let ran = place.run_with(&["commit", "--run", "r", "--json"], b"{\"type\":");
        (ran.code, crate::support::parse(&ran.stdout))
    };
    assert_eq!(
        (code, error.get("code").unwrap().as_str(), error.get("changed").unwrap().as_bool()),
        (2, Some("E0201"), Some(false))
    );
}

#[test]
fn a_dry_run_judges_and_writes_nothing() {
    let place = Place::with_store();
    let lines = concat!(
        r#"{"type":"plan.update","delta":[{"set":"/n","value":1}]}"#,
        "\n",
        r#"{"type":"plan.update","delta":[{"add":"/n","value":1}]}"#,
        "\n"
    );
    let ran = place.run_with(&["commit", "--run", "r", "-n"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.lines().nth(2).is_some_and(|line| line.starts_with("would be tick 2  "))
            && !ran.stdout.contains("WARN"),
        "each line is judged on those before it: {}",
        ran.stdout
    );
    assert_eq!(place.json(&["runs"]).1.get("total"), Some(&0u64.into()));
}

/// A line that comes alone is acknowledged while the pipe stays open.
#[test]
fn a_pipe_that_stays_open_is_answered_line_by_line() {
    let place = Place::with_store();
    let mut child = place
        .command(&["commit", "--run", "r"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for tick in 1..=5 {
        stdin.write_all(b"{\"type\":\"plan.update\"}\n").unwrap();
        loop {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0);
            if !line.starts_with("begun") {
                break;
            }
        }
        assert!(line.starts_with(&format!("tick {tick}  sha256:")), "{line}");
        // Another process sees it at once, and nothing half of the next.
        assert_eq!(place.json(&["log", "r"]).1.get("total"), Some(&Value::from(tick as u64)));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_follower_sees_every_transition_once_and_in_order() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}");
    let mut follower = place
        .command(&["log", "r", "--follow", "--jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(follower.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let ticks = stdout.lines().map_while(Result::ok).map(|line| {
            let item = dendrer_object::json::parse_tagged(line.as_bytes()).unwrap();
            item.get("tick").unwrap().as_u64().unwrap()
        });
        ticks.take(201).collect::<Vec<u64>>()
    });
    for _ in 0..4 {
        let lines = "{\"type\":\"plan.update\"}\n".repeat(50);
        assert_eq!(place.run_with(&["commit", "--run", "r"], lines.as_bytes()).code, 0);
    }
    assert_eq!(reader.join().unwrap(), (1..=201).collect::<Vec<u64>>());
    follower.kill().unwrap();
    follower.wait().unwrap();
}

/// The door doubles a user's `$` in paths as in names, so that no path can make a tagged value.
#[test]
fn a_users_dollar_is_doubled_in_paths_too() {
    let place = Place::new();
    place.ok(&["init"]);
    let lines = "{\"type\":\"observation.add\",\"delta\":[{\"set\":\"/o\",\"value\":{\"$a\":1}},{\"set\":\"/o/$a\",\"value\":2}]}\n\
        {\"type\":\"observation.add\",\"delta\":[{\"set\":\"/$float\",\"value\":\"NaN\"}]}\n";
    std::fs::write(place.path().join("dollar.jsonl"), lines).unwrap();
    place.ok(&["commit", "--run", "r", "--file", "dollar.jsonl"]);
    let state = place.json(&["state", "r"]).1;
    assert_eq!(state.get("value").unwrap().to_string(), r#"{"$$float":"NaN","o":{"$$a":2}}"#);
    place.ok(&["verify", "r", "--replay"]);
}

#[test]
fn a_run_whose_first_line_is_bad_is_not_left_behind() {
    let place = Place::new();
    place.ok(&["init"]);
    std::fs::write(place.path().join("bad.jsonl"), "{\"type\":\"observation.add\",\"type\":1}\n").unwrap();
    assert_eq!(place.run(&["commit", "--run", "r", "--file", "bad.jsonl"]).code, 2);
    assert_eq!(place.json(&["runs"]).1.get("items").unwrap().to_string(), "[]");
    // What stands before a bad line is on record, and the error says what it is.
    std::fs::write(place.path().join("half.jsonl"), "{\"type\":\"plan.update\"}\nnope\n").unwrap();
    let (code, answer) = place.json(&["commit", "--run", "r", "--file", "half.jsonl"]);
    assert_eq!((code, answer.get("changed")), (2, Some(&true.into())), "{answer}");
    assert_eq!(answer.get("items").and_then(|items| items.as_array()).map(|items| items.len()), Some(2));
}

/// Every verb reads `state.counters` as what is counted beside the state, so nothing else can stand there.
#[test]
fn counters_in_the_state_are_refused_at_the_door() {
    let place = Place::with_store();
    std::fs::write(place.path().join("s0.json"), r#"{"counters":{"x":1}}"#).unwrap();
    let begun =
        place.run_with(&["commit", "--run", "c", "--state", "s0.json"], b"{\"type\":\"plan.update\"}\n");
    assert_eq!(begun.code, 5, "{}", begun.stderr);
    assert!(begun.stderr.contains("error[E0405]: counters in the initial state"), "{}", begun.stderr);
    let line = br#"{"type":"plan.update","delta":[{"set":"/counters/x","value":1}]}"#;
    let ran = place.run_with(&["commit", "--run", "r"], line);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stdout.contains("E0405 counters.x cannot be written"), "{}", ran.stdout);
    let (_, state) = place.json(&["state", "r"]);
    assert_eq!(state.get("value").unwrap().to_string(), "{}");
}

#[test]
fn a_policy_that_the_beginning_breaks_is_broken_at_tick_0() {
    let place = Place::with_store();
    std::fs::write(place.path().join("s0.json"), r#"{"risk":9}"#).unwrap();
    std::fs::write(place.path().join("policy.json"), r#"[{"id":"risk","holds":"state.risk < 5"}]"#).unwrap();
    let line = br#"{"type":"plan.update","agent":"innocent","delta":[{"set":"/other","value":1}]}"#;
    let begin = ["commit", "--run", "r", "--state", "s0.json", "--policy", "policy.json"];
    assert_eq!(place.run_with(&begin, line).code, 0);
    for question in [["--predicate", "kernel.policy_compliant"], ["--holds", "state.risk < 5"]] {
        let (code, found) = place.json(&["bisect", "r", question[0], question[1]]);
        assert_eq!((code, found.get("outcome")), (0, Some(&"initial".into())), "{question:?}");
        assert_eq!(found.get("onset"), Some(&0u64.into()), "{question:?}");
    }
    let test = place.ok(&["predicate", "test", "kernel.policy_compliant", "r"]);
    assert!(test.contains("first violated at tick 0 (the initial state)"), "{test}");
    assert_eq!(place.run(&["verify", "r", "--replay"]).code, 0);
}

/// Nobody is told that the line has a slip in it: it is an attempt, and it is kept.
#[test]
fn who_claims_to_be_the_kernel_is_refused_and_kept() {
    let place = Place::with_store();
    let lines = b"{\"type\":\"run.fork\",\"author\":\"kernel\"}\n{\"type\":\"plan.update\",\"author\":\"institution\"}\n";
    let ran = place.run_with(&["commit", "--run", "r"], lines);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("1 transition, 2 refused, 1 anomaly"), "{}", ran.stderr);
    let (_, log) = place.json(&["log", "r", "--refusals"]);
    let log = log.to_string();
    for said in ["run.fork cannot be proposed", "not yours to propose as the institution", "kernel.anomaly"] {
        assert!(log.contains(said), "{said}: {log}");
    }
    assert_eq!(place.run(&["verify", "r", "--replay"]).code, 0);
    // A line that says who it is not is no way around `--as agent` either.
    let ran = place.run_with(&["commit", "--run", "s", "--as", "agent"], lines);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("2 refused"), "{}", ran.stderr);
}

/// The replies of a stream, each with what it is, its line and its tick.
fn replies(stream: &str) -> Vec<(String, Option<u64>, Option<u64>)> {
    let items = stream.lines().map(crate::support::parse).filter(|item| item.get("what").is_some());
    let number = |item: &Value, name: &str| item.get(name).and_then(Value::as_u64);
    let reply = |item: Value| {
        let what = item.get("what").unwrap().as_str().unwrap().to_owned();
        (what, number(&item, "line"), number(&item, "tick"))
    };
    items.map(reply).collect()
}

#[test]
fn each_line_has_one_reply_with_its_number() {
    let place = Place::with_store();
    let lines = concat!(
        r#"{"type":"plan.update"}"#,
        "\n\n",
        r#"{"type":"kernel.anomaly"}"#,
        "\n",
        r#"{"type":"hello"}"#,
        "\n",
        r#"{"type":"plan.update"}"#,
        "\n",
        r#"{"type":"plan.update","intnet":{}}"#,
        "\n",
        r#"{"type":"plan.update"}"#,
    );
    let ran = place.run_with(&["commit", "--run", "r", "--jsonl"], lines.as_bytes());
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let found = replies(&ran.stdout);
    let found: Vec<_> = found.iter().map(|(what, line, tick)| (what.as_str(), *line, *tick)).collect();
    assert_eq!(
        found,
        [
            ("begun", None, Some(0)),
            ("committed", Some(1), Some(1)),
            ("refused", Some(3), None),
            ("refused", Some(4), None),
            ("committed", Some(5), Some(3)),
            ("refused", Some(6), None),
            ("committed", Some(7), Some(5)),
        ]
    );
    let text = place.run_with(&["commit", "--run", "s"], lines.as_bytes()).stdout;
    let ids = regex::Regex::new("sha256:[0-9a-f]{64}").unwrap();
    assert_eq!(
        ids.replace_all(&text, "ID"),
        "begun  ID
tick 1  ID  plan.update  line 1
refused  ID  kernel.anomaly  line 3  E0401 kernel.anomaly cannot be proposed: only the kernel writes it   WARN kernel.anomaly at tick 2
refused  ID  hello  line 4  E0402 there is no transition type hello (all types: dendrer schema intent)
tick 3  ID  plan.update  line 5
refused  ID  -  line 6  E0209 intnet: an intent has no such member; did you mean \"intent\"?   WARN kernel.anomaly at tick 4
tick 5  ID  plan.update  line 7
"
    );
}

#[test]
fn a_forged_type_has_one_reply_that_names_its_anomaly() {
    let place = Place::with_store();
    let input = br#"{"type":"kernel.anomaly","agent":"mallory"}"#;
    let (code, answer) = {
        let ran = place.run_with(&["commit", "--run", "r", "--json"], input);
        (ran.code, crate::support::parse(&ran.stdout))
    };
    assert_eq!(code, 5);
    let items = answer.get("items").unwrap().as_array().unwrap();
    assert_eq!(items.len(), 2, "{answer}");
    let refused = items.get(1).unwrap();
    assert_eq!(refused.get("what"), Some(&"refused".into()));
    assert_eq!(refused.get("reason").unwrap().get("code"), Some(&"E0401".into()));
    let noted = refused.get("noted").unwrap().as_array().unwrap();
    let anomaly = place.json(&["show", "r@1"]).1;
    assert_eq!((noted.len(), noted.get(0).unwrap().get("tick")), (1, Some(&1u64.into())));
    assert_eq!(noted.get(0).unwrap().get("id"), anomaly.get("id"));
}

#[test]
fn a_run_begins_with_its_first_line() {
    let place = Place::with_store();
    for (run, flags) in [("r", &[][..]), ("s", &["--jsonl"]), ("d", &["-n"])] {
        let mut child = place
            .command(&[&["commit", "--run", run], flags].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"\n{\"type\":\"plan.update\"}\n").unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(first.contains("begun"), "{first}");
        let known = place.run(&["log", run]).code;
        assert_eq!(known, if run == "d" { 3 } else { 0 }, "{run}");
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_line_that_is_no_intent_begins_no_run() {
    let place = Place::with_store();
    let chat = r#"{"role":"user","content":"hi"}"#;
    let cases = [
        ("", 0, "note: no line came, so r was not begun"),
        ("\n\n", 0, "note: no line came, so r was not begun"),
        (chat, 2, "error[E0209]: a chat message is no intent: it names no type"),
        (r#"[{"role":"user"}]"#, 2, "error[E0209]: a chat message is no intent"),
        (r#"{"messages":[{"role":"user"}]}"#, 2, "error[E0209]: a chat message is no intent"),
        (r#"{"a":1}"#, 2, "error[E0209]: an intent names its type"),
        ("3", 2, "error[E0209]: an intent is an object, and this is a number"),
        ("oops", 2, "error[E0201]: not JSON"),
    ];
    for (input, code, says) in cases {
        for file in [false, true] {
            std::fs::write(place.path().join("in.jsonl"), input).unwrap();
            let ran = match file {
                true => place.run(&["commit", "--run", "r", "--file", "in.jsonl"]),
                false => place.run_with(&["commit", "--run", "r"], input.as_bytes()),
            };
            assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{input}: {}", ran.stderr);
            assert!(ran.stderr.contains(says), "{input}: {}", ran.stderr);
        }
    }
    assert!(
        place.run_with(&["commit", "--run", "r"], chat.as_bytes()).stderr.contains("dendrer import FILE")
    );
    assert_eq!(place.ok(&["runs"]).lines().next(), Some("0 of 0 runs"));
    // Of a run that exists, the refusal is kept.
    assert_eq!(place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}").code, 0);
    assert_eq!(place.run_with(&["commit", "--run", "r"], chat.as_bytes()).code, 5);
    // A line that names a type and is refused begins one, too.
    assert_eq!(place.run_with(&["commit", "--run", "s"], b"{\"type\":\"kernel.anomaly\"}").code, 5);
    assert_eq!(place.run(&["log", "s"]).code, 0);
}

#[test]
fn the_user_speaks_through_a_runtime_that_is_told_so_and_through_no_agent() {
    let place = Place::with_store();
    let line = r#"{"type":"observation.add","author":"user","user":"ann"}"#;
    let ran = place.run_with(&["commit", "--run", "r", "--as", "runtime,user"], line.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(place.json(&["show", "r@1"]).1.get("author"), Some(&"user".into()));
    let spellings = [
        line,
        r#"{"type":"plan.update","\u0061uthor":"us\u0065r"}"#,
        r#"{"type":"plan.update","user":"ann"}"#,
        r#"{"type":"plan.update","author":"USER"}"#,
        r#"{"type":"plan.update","author":["user"]}"#,
        r#"{"type":"plan.update","author":"agent","author":"user"}"#,
        r#"{"type":"plan.update","intent":{"author":"user"}}"#,
        r#"{"step":{"author":"user"},"author":"user"}"#,
    ];
    for flags in [&[][..], &["--as", "agent"], &["--as", "runtime"]] {
        for spelling in spellings {
            place.run_with(&[&["commit", "--run", "a"], flags].concat(), spelling.as_bytes());
        }
    }
    let log = place.json(&["log", "a"]).1;
    let items = log.get("items").unwrap().as_array().unwrap().clone();
    assert!(
        items.iter().all(|item| item.get("author").and_then(|author| author.as_str()) != Some("user")),
        "{log}"
    );
    let refused = place.run_with(&["commit", "--run", "a"], line.as_bytes());
    assert!(refused.stdout.contains("`dendrer commit --as runtime,user`"), "{}", refused.stdout);
    assert_eq!(place.run_with(&["commit", "--run", "b", "--as", "agent,user"], line.as_bytes()).code, 2);
}

#[test]
fn a_run_that_was_completed_goes_on_with_a_note() {
    let place = Place::with_store();
    let lines = b"{\"type\":\"plan.update\"}\n{\"type\":\"goal.complete\"}\n";
    assert!(!place.run_with(&["commit", "--run", "r"], lines).stderr.contains("completed"));
    let again = place.run_with(&["commit", "--run", "r"], lines);
    let note = "note: r was completed at tick 2 (goal.complete); these lines go on with it\n";
    assert!(again.stderr.starts_with(note), "{}", again.stderr);
    assert_eq!((again.code, place.ok(&["runs"]).contains('+')), (0, false));
}

#[test]
fn a_whole_command_can_be_repeated() {
    let place = Place::with_store();
    std::fs::write(place.path().join("s0.json"), r#"{"n":1}"#).unwrap();
    let command = ["commit", "--run", "r", "--goal", "g", "--state", "s0.json"];
    let line = br#"{"type":"plan.update","delta":[{"add":"/n","value":1}]}"#;
    for _ in 0..2 {
        let ran = place.run_with(&command, line);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    assert_eq!(place.ok(&["state", "r", "--path", "n"]), "3\n");
    std::fs::write(place.path().join("s0.json"), r#"{"n":2}"#).unwrap();
    let ran = place.run_with(&command, line);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("error[E0106]: r exists already, and began otherwise"), "{}", ran.stderr);
}

#[test]
fn lines_by_the_runtime_need_no_author() {
    let place = Place::with_store();
    let lines = concat!(
        r#"{"type":"action.request","action":{"tool":"t"}}"#,
        "\n",
        r#"{"type":"action.result","action":{"tool":"t"},"result":{"status":"ok"}}"#,
        "\n",
        r#"{"type":"policy.decision","policy":{"decision":"allow"}}"#,
        "\n",
        r#"{"type":"policy.decision","author":"agent","policy":{"decision":"allow"}}"#,
    );
    let ran = place.run_with(&["commit", "--run", "r", "--as", "runtime"], lines.as_bytes());
    assert_eq!((ran.code, codes(&ran.stdout)), (5, vec!["E0403"]), "{}", ran.stderr);
    let author = |tick: u64| place.json(&["show", &format!("r@{tick}")]).1.get("author").cloned();
    assert_eq!([1, 2, 3].map(author), [Some("agent".into()), Some("runtime".into()), Some("runtime".into())]);
}

/// One that the kernel names knows the pack; a word that agents use has a type, too.
#[test]
fn an_unknown_type_says_what_is_meant_and_where_all_types_are() {
    let place = Place::with_store();
    for (unknown, meant) in [
        ("message.user", Some("observation.add")),
        ("tool.call", Some("action.request")),
        ("tool_result", Some("action.result")),
        ("plan.updte", Some("plan.update")),
        ("hello", None),
    ] {
        let line = format!("{{\"type\":\"{unknown}\"}}\n");
        let ran = place.run_with(&["commit", "--run", unknown], line.as_bytes());
        let asked = ran.stdout.matches("did you mean").count();
        assert_eq!((ran.code, asked), (5, usize::from(meant.is_some())), "{}", ran.stdout);
        if let Some(meant) = meant {
            assert!(ran.stdout.contains(&format!("did you mean {meant}?")), "{}", ran.stdout);
        }
        assert!(ran.stdout.contains("(all types: dendrer schema intent)"), "{}", ran.stdout);
        let ran = place.run_with(&["commit", "--run", unknown, "--jsonl"], line.as_bytes());
        let reply = crate::support::parse(ran.stdout.lines().next().unwrap());
        assert_eq!(reply.get("meant").and_then(Value::as_str), meant);
    }
}
