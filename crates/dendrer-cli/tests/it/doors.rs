//! Each way into a run asks what `commit` asks (design, section 14.1).

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::Place;

/// A line that sets one place.
fn sets(agent: &str, path: &str, value: u64) -> String {
    json!({"type": "memory.write", "agent": agent, "delta": [{"set": path, "value": value}]}).to_string()
}

#[test]
fn lines_without_a_base_of_ten_processes_are_all_committed() {
    let place = Place::with_store();
    assert_eq!(place.run_with(&["commit", "--run", "r"], sets("lead", "/m/lead", 1).as_bytes()).code, 0);
    let begun: Vec<_> = (0..10)
        .map(|n| {
            let mut command = place.command(&["commit", "--run", "r"]);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let line = sets(&format!("a{n}"), &format!("/m/k{n}"), n);
            child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
            child
        })
        .collect();
    for child in begun {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let (_, state) = place.json(&["state", "r", "--path", "m"]);
    assert_eq!(state["value"].as_object().unwrap().len(), 11, "{state}");
}

#[test]
fn a_line_that_sets_a_place_that_another_process_set_meanwhile_says_so() {
    let place = Place::with_store();
    let mut command = place.command(&["commit", "--run", "r", "-o", "jsonl"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut reply = || -> Value {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    writeln!(input, "{}", sets("ann", "/m/x", 1)).unwrap();
    let first = reply();
    let first = if first["what"] == "begun" { reply() } else { first };
    assert_eq!(first["tick"], 1, "{first}");
    assert_eq!(place.run_with(&["commit", "--run", "r"], sets("bob", "/m/x", 2).as_bytes()).code, 0);
    writeln!(input, "{}", sets("ann", "/m/x", 3)).unwrap();
    let second = reply();
    assert_eq!((&second["what"], &second["tick"]), (&json!("committed"), &json!(3)), "{second}");
    assert_eq!(second["overtaken"], json!([{"path": "/m/x", "tick": 2, "agent": "bob"}]));
    // A place of its own is not overtaken, and neither is a place that this process has read since.
    assert_eq!(place.run_with(&["commit", "--run", "r"], sets("bob", "/m/y", 2).as_bytes()).code, 0);
    for line in [sets("ann", "/m/x", 4), sets("ann", "/m/y", 5)] {
        writeln!(input, "{line}").unwrap();
        let reply = reply();
        assert_eq!((&reply["what"], reply.get("overtaken")), (&json!("committed"), None), "{reply}");
    }
    // A base is a condition that the writer set.
    let mut based: Value = serde_json::from_str(&sets("ann", "/m/z", 1)).unwrap();
    based["base"] = json!(1);
    writeln!(input, "{based}").unwrap();
    assert_eq!(reply()["reason"]["code"], "E0407");
    drop(input);
    child.wait().unwrap();
}
