//! What a fork did, what a gate read, and counters as places.

use dendrer_object::Value;

use crate::support::{Place, demo};

/// A run whose tool answers with texts: one of JSON, one of words.
fn shop() -> Place {
    let place = Place::with_store();
    let lines = concat!(
        r#"{"type":"action.request","action":{"tool":"price"}}"#,
        "\n",
        r#"{"type":"action.result","action":{"tool":"price"},"result":{"status":"ok","output":"{\"price\": 310.0}"},"delta":[{"set":"/total","value":310}]}"#,
        "\n",
        r#"{"type":"action.result","result":{"status":"ok","output":"sunny"},"delta":[{"set":"/sky","value":1}]}"#,
        "\n",
    );
    let ran = place.run_with(&["commit", "--run", "shop", "--as", "runtime"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let other = r#"{"output":{"price":291.4},"delta":[{"set":"/total","value":291.4}]}"#;
    std::fs::write(place.path().join("other.json"), other).unwrap();
    place
}

#[test]
fn another_answer_is_put_in_as_the_text_of_json_that_the_record_holds() {
    let place = shop();
    let ran = place.run(&["fork", "shop@1", "--tool-output", "2=other.json", "--replay-rest"]);
    let says = "changed    tool output of parent tick 2, as a text that holds JSON\n";
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("forked     shop+2 from shop@1") && ran.stdout.contains(says),
        "{}",
        ran.stdout
    );
    let (_, shown) = place.json(&["show", "shop+2@3", "--raw-json"]);
    assert!(shown.to_string().contains(r#"{\"price\":291.4}"#), "{shown}");
    let ran = place.run(&["fork", "shop@1", "--tool-output", "3=other.json", "--replay-rest"]);
    let says =
        "error[E0106]: the output of shop@3 is a text that holds no JSON, and the answer for it is an object";
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.starts_with(says), "{}", ran.stderr);
    assert_eq!(place.run(&["log", "shop+3"]).code, 3, "nothing was made");
}

#[test]
fn a_fork_whose_state_is_unknown_ends_with_6_and_names_rule_and_place() {
    let place = shop();
    let pack = r#"{"name":"p","version":"v1","reducer":"fold/1","state":{"n":{"init":0}},
        "rules":[{"words":"adds it","when_type":"action.result","steps":[{"set":"n","value":"state.n + t.result.output.price"}]}]}"#;
    std::fs::write(place.path().join("p.json"), pack).unwrap();
    let lines = concat!(
        r#"{"type":"action.request","action":{"tool":"price"}}"#,
        "\n",
        r#"{"type":"action.result","result":{"status":"ok","output":{"price":3}}}"#,
        "\n",
    );
    let ran =
        place.run_with(&["commit", "--run", "r", "--pack", "p.json", "--as", "runtime"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    std::fs::write(place.path().join("free.json"), r#"{"cost":"free"}"#).unwrap();
    let ran = place.run(&["fork", "r@1", "--tool-output", "2=free.json", "--replay-rest"]);
    assert_eq!(ran.code, 6, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("UNKNOWN    n (") && ran.stdout.contains("           2: "), "{}", ran.stdout);
}

#[test]
fn a_command_that_prints_no_intent_ends_with_1() {
    let place = shop();
    for (command, line) in
        [("true", ""), ("echo hello", "\"hello\""), ("echo hi; echo '{\"type\":\"plan.update\"}'", "\"hi\"")]
    {
        let ran = place.run(&["fork", "shop@1", "--exec", command]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stdout.ends_with("ended      the command printed no intent\n"), "{}", ran.stdout);
        let note = format!("note: its first line is {line}; each line is an intent, a JSON object\n");
        assert_eq!(ran.stderr.contains(&note), !line.is_empty(), "{}", ran.stderr);
        assert!(!ran.stderr.contains("error"), "{}", ran.stderr);
    }
    let (code, answer) = place.json(&["fork", "shop@1", "--exec", "echo hello"]);
    let committed = answer.get("exec").and_then(|exec| exec.get("committed")).cloned();
    assert_eq!((code, committed), (1, Some(Value::from(0u64))));
}

#[test]
fn forks_that_begin_at_once_have_a_name_each() {
    let place = shop();
    let spawn = |_| place.command(&["fork", "shop@2", "-q"]).output();
    let all: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|n| scope.spawn(move || spawn(n))).collect();
        all.into_iter().map(|one| one.join().unwrap().unwrap()).collect()
    });
    assert!(all.iter().all(|output| output.status.success()), "{all:?}");
    let runs = place.ok(&["runs"]);
    for number in 2..10 {
        assert!(runs.contains(&format!("shop+{number} ")), "{runs}");
    }
}

#[test]
fn a_gate_over_states_names_values_and_tick() {
    let place = shop();
    let ran = place.run(&["assert", "shop", "--holds", "state.total <= 400"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "PASS  state.total is 310 at tick 3\n      state.total <= 400\n")
    );
    let ran = place.run(&["assert", "shop@2", "--holds", "state.counters.tool_errors == 1"]);
    let says = "FAIL  state.counters.tool_errors is 0 at tick 2\n      state.counters.tool_errors == 1\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (1, says));
}

#[test]
fn counters_are_places() {
    let run = "logistics-run-47";
    for place in ["counters.tool_errors", "state.counters.tool_errors"] {
        assert_eq!(demo().run(&["state", run, place]).stdout, "1\n");
        assert!(
            demo().run(&["backtrack", run, place]).stdout.contains("tick 39  feed-reader  action.result")
        );
        let why = demo().run(&["why", run, place]);
        assert_eq!((why.code, why.stdout.contains("tick 39")), (0, true), "{}", why.stdout);
        let show = demo().run(&["show", &format!("{run}@39"), "--path", place]).stdout;
        assert!(show.contains("counters.tool_errors  0 -> 1"), "{show}");
    }
    let counters = serde_json::from_str::<serde_json::Value>(&demo().run(&["state", run, "counters"]).stdout);
    assert_eq!(counters.unwrap()["tool_calls"], 16);
    assert_eq!(demo().run(&["why", run, "counters.nope"]).code, 3);
}

#[test]
fn a_state_is_valid_json() {
    let runs = demo().run(&["runs", "--json"]).stdout;
    let runs: serde_json::Value = serde_json::from_str(&runs).unwrap();
    for run in runs["items"].as_array().unwrap() {
        let run = run["name"].as_str().unwrap();
        for depth in [&[][..], &["--depth", "0"], &["--depth", "1"]] {
            let stdout = demo().run(&[&["state", run], depth].concat()).stdout;
            serde_json::from_str::<serde_json::Value>(&stdout).unwrap_or_else(|_| panic!("{run}: {stdout}"));
        }
    }
    let place = Place::with_store();
    std::fs::write(place.path().join("chat.json"), r#"[{"role":"user","content":"hi"}]"#).unwrap();
    assert_eq!(place.run(&["import", "chat.json", "--run", "chat"]).code, 0);
    let ran = place.run(&["state", "chat"]);
    let note = "note: no pack made a state; counters: dendrer state chat counters\n";
    assert_eq!((ran.stdout.as_str(), ran.stderr.starts_with(note)), ("{}\n", true), "{}", ran.stderr);
}

#[test]
#[cfg(unix)]
fn an_interrupted_demo_is_named_and_removed() {
    for after_ms in [5, 20, 60, 150, 400] {
        for size in [&[][..], &["--size", "20000"]] {
            let place = Place::new();
            let args = [&["demo", "shown"], size].concat();
            let mut child = place.command(&args).stdout(std::process::Stdio::null()).spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(after_ms));
            child.kill().unwrap();
            child.wait().unwrap();
            let left = || match std::fs::read_dir(place.path().join("shown")) {
                Ok(entries) => {
                    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
                }
                Err(_) => Vec::new(),
            };
            let is_making = |name: &String| name.starts_with(".dendrer-making-");
            let made = left();
            if made.iter().any(|name| name == ".dendrer") || !made.iter().any(is_making) {
                continue;
            }
            assert!(made.iter().all(is_making), "{made:?}");
            let mut doctor = place.command(&["doctor"]);
            let doctor = doctor.current_dir(place.path().join("shown")).output().unwrap();
            let doctor = String::from_utf8(doctor.stdout).unwrap();
            assert!(doctor.contains("of a demo that was interrupted"), "{doctor}");
            let mut gc = place.command(&["gc"]);
            assert!(gc.current_dir(place.path().join("shown")).output().unwrap().status.success());
            assert!(left().is_empty(), "{:?}", left());
            assert_eq!(place.run(&["demo", "shown", "--no-tour"]).code, 0);
        }
    }
}
