//! Witness chains: what each consumer writes, files of `carl-core`, gates, and chains of several runs.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use dendrer::record::chain::{ACTION_OF, TRANSITION_OF};
use dendrer_chain::{ActionType, ChainFile, InteractionChain, RowValue, Step, StepStamp};
use dendrer_object::Timestamp;
use serde_json::{Value, json};

use crate::support::{Place, strip};

const PAGE: &str = include_str!("../../../../docs/chains.md");

/// Records lines of steps, and returns the steps as `steps --full` lists them.
fn record(place: &Place, run: &str, author: &str, lines: &[Value]) -> Vec<Value> {
    let text: String = lines.iter().map(|step| format!("{}\n", json!({ "step": step }))).collect();
    let ran = place.run_with(&["commit", "--run", run, "--as", author], text.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    steps(place, run)
}

fn steps(place: &Place, run: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_str(&place.ok(&["steps", run, "--full", "--json"])).unwrap();
    answer["items"].as_array().unwrap().clone()
}

/// The two tables of the page are those of the code.
#[test]
fn the_tables_of_the_page_are_those_of_the_code() {
    for (action, type_name) in TRANSITION_OF {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{action}` | `")));
        assert!(row.is_some_and(|row| row.contains(&format!("| `{type_name}`"))), "{action} {type_name}");
    }
    for (type_name, action) in ACTION_OF {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{type_name}` | `")));
        assert!(row.is_some_and(|row| row.contains(&format!("| `{action}`"))), "{type_name} {action}");
    }
}

/// Each of the types goes in with all members, and comes back as it was, by each author (W-1 to W-23).
#[test]
fn every_step_comes_back() {
    let place = Place::with_store();
    for author in ["runtime", "pipe"] {
        let lines: Vec<Value> = ActionType::ALL
            .iter()
            .enumerate()
            .map(|(n, action)| {
                json!({
                    "action": action.as_str(), "name": format!("name {n}"), "input": {"n": n, "x": [1, null]}, "output": {"y": 0.5},
                    "success": n % 3 != 0, "started_at": "2026-04-20T10:00:00.250000+02:00", "duration_ms": 1.5,
                    "parent_id": "p", "step_id": format!("{n:012x}"), "session_id": "s", "trace_id": "t", "phi": 0.25,
                    "kuramoto_r": 0.75, "channel_coherence": {"c": 0.5},
                })
            })
            .collect();
        let text: String = lines.iter().map(|step| format!("{}\n", json!({ "step": step }))).collect();
        let mut args = vec!["commit", "--run", author];
        args.extend((author == "runtime").then_some(["--as", "runtime"]).into_iter().flatten());
        assert_eq!(place.run_with(&args, text.as_bytes()).code, 0);
        let back = steps(&place, author);
        assert_eq!(back.len(), lines.len());
        for (line, step) in lines.iter().zip(&back) {
            for (name, value) in line.as_object().unwrap() {
                let value = match name.as_str() {
                    "started_at" => &json!("2026-04-20T08:00:00.250000+00:00"),
                    _ => value,
                };
                assert_eq!(&step[name], value, "{author} {name} of {line}");
            }
            assert_eq!(step["derived"], false);
        }
    }
}

/// What a step lacks takes its default; what is wrong is refused with its place (W-17, W-19, W-20).
#[test]
fn defaults_and_refusals() {
    let place = Place::with_store();
    let step = &record(&place, "r", "runtime", &[json!({"action": "user_input", "name": "chat"})])[0];
    let id = step["step_id"].as_str().unwrap();
    assert!(id.len() == 12 && id.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
    assert!(step["started_at"].as_str().unwrap().ends_with("+00:00"));
    assert_eq!((&step["success"], &step["input"], &step["phi"]), (&json!(true), &Value::Null, &Value::Null));
    for (line, path) in [
        (json!({"action": "tool_cal", "name": "x"}), "step.action"),
        (json!({"name": "x"}), "step.action"),
        (json!({"action": "tool_call"}), "step.name"),
        (json!({"action": "tool_call", "name": "x", "phi": "high"}), "step.phi"),
        (json!({"action": "tool_call", "name": "x", "success": 1}), "step.success"),
        (json!({"action": "tool_call", "name": "x", "started_at": "yesterday"}), "step.started_at"),
        (
            json!({"action": "tool_call", "name": "x", "channel_coherence": {"a": "b"}}),
            "step.channel_coherence",
        ),
        (json!("x"), "step"),
    ] {
        let text = format!("{}\n", json!({ "step": line }));
        let ran = place.run_with(&["commit", "--run", "r", "--as", "runtime", "--json"], text.as_bytes());
        assert_eq!(ran.code, 5, "{line}");
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let reason = &answer["items"][0]["reason"];
        assert_eq!(reason["path"], format!("/{}", path.replace('.', "/")), "{line}");
        let is_slip = line.get("action") == Some(&json!("tool_cal"));
        let message = reason["message"].as_str().unwrap();
        assert!(!is_slip || message.contains("did you mean \"tool_call\""), "{message}");
    }
}

/// The typed sequence of each consumer of the paper (W-40 to W-56), and that no credential's value is in it (W-21, W-39).
#[test]
fn each_consumer_leaves_its_typed_sequence() {
    let place = Place::with_store();
    let secret = format!("Bearer {}", "a1B2c3D4".repeat(5));
    let step = |action: &str, name: &str| json!({"action": action, "name": name});
    let table: Vec<(&str, Vec<Value>)> = vec![
        (
            "chat",
            vec![
                json!({"action": "cli_cmd", "name": "carl chat"}),
                json!({"action": "user_input", "name": "prompt", "input": "hello"}),
                json!({"action": "llm_reply", "name": "reply", "output": "hi", "phi": 0.5}),
                json!({"action": "tool_call", "name": "ingest", "input": {"q": 1}, "output": {"n": 1}}),
                json!({"action": "memory_read", "name": "recall", "output": ["a"]}),
                json!({"action": "memory_write", "name": "commit", "input": "a"}),
                json!({"action": "gate", "name": "require:ANTHROPIC_API_KEY", "input": "ANTHROPIC_API_KEY"}),
                json!({"action": "gate_check", "name": "consent", "output": {"allowed": true}}),
            ],
        ),
        (
            "training",
            vec![
                json!({"action": "training_step", "name": "step 1", "phi": 0.4, "kuramoto_r": 0.6}),
                json!({"action": "reward", "name": "batch", "output": {"mean": 0.3}}),
                json!({"action": "checkpoint", "name": "save", "output": {"path": "ckpt-1"}}),
            ],
        ),
        (
            "eval",
            vec![
                json!({"action": "eval_phase", "name": "phase1:start"}),
                json!({"action": "eval_phase", "name": "phase1:end", "success": false}),
            ],
        ),
        (
            "payment",
            vec![
                json!({"action": "payment", "name": "check_x402", "output": {"status": 402}}),
                json!({"action": "payment", "name": "negotiate", "input": {"headers": {"Authorization": secret}}}),
                json!({"action": "payment", "name": "execute", "success": false, "output": {"error": "declined"}}),
            ],
        ),
        (
            "heartbeat",
            vec![
                step("heartbeat_cycle", "start"),
                json!({"action": "sticky_note", "name": "dequeue", "input": {"note": "n1"}}),
                step("heartbeat_cycle", "end"),
            ],
        ),
        ("push", vec![step("cli_cmd", "carl push"), step("external", "POST /feedback")]),
    ];
    for (consumer, lines) in table {
        let found = record(&place, consumer, "runtime", &lines);
        let sequence = |list: &[Value]| -> Vec<(Value, Value, Value)> {
            let one = |step: &Value| {
                (
                    step["action"].clone(),
                    step["name"].clone(),
                    step.get("success").cloned().unwrap_or(json!(true)),
                )
            };
            list.iter().map(one).collect()
        };
        assert_eq!(sequence(&found), sequence(&lines), "{consumer}");
        assert!(!format!("{found:?}").contains("a1B2c3D4a1B2"), "{consumer} kept a header");
    }
    // Coherence is that of the training steps.
    let answer: Value = serde_json::from_str(&place.ok(&["coherence", "training", "--json"])).unwrap();
    assert_eq!(answer["items"][0]["phi"], 0.4);
}

/// A tool, called by a local user and by a client of a server over a connection: both leave the same shape (W-52, W-53, W-58). The
/// server's requests to its client, sampling and elicitation, are external steps.
#[test]
fn a_remote_client_leaves_the_same_shape_as_a_local_one() {
    fn tool(input: &Value) -> Value {
        json!({"sum": input["a"].as_i64().unwrap() + input["b"].as_i64().unwrap()})
    }
    fn call(chain: &mut InteractionChain, number: u64, input: &Value, ask: &mut dyn FnMut(&str) -> Value) {
        let stamp = |n: u64| StepStamp::new((number * 8 + n) << 40, Timestamp::from_ms(number * 1_000));
        for (n, kind) in ["sampling/createMessage", "elicitation/create"].into_iter().enumerate() {
            let mut step = Step::new(ActionType::External, kind, stamp(n as u64));
            step.output = RowValue::parse(&ask(kind).to_string()).unwrap();
            chain.record(step);
        }
        let mut step = Step::new(ActionType::ToolCall, "add", stamp(2));
        step.input = RowValue::parse(&input.to_string()).unwrap();
        step.output = RowValue::parse(&tool(input).to_string()).unwrap();
        chain.record(step);
    }
    let inputs: Vec<Value> = (0..5).map(|n| json!({"a": n, "b": n * n})).collect();
    let begin = || InteractionChain::new("0123456789ab", Timestamp::from_ms(0));
    let mut local = begin();
    for (number, input) in inputs.iter().enumerate() {
        call(&mut local, number as u64, input, &mut |kind| json!({ "answer": kind }));
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let (mut lines, mut out) = (BufReader::new(stream.try_clone().unwrap()).lines(), stream);
        let mut chain = begin();
        let mut number = 0;
        while let Some(Ok(line)) = lines.next() {
            let request: Value = serde_json::from_str(&line).unwrap();
            call(&mut chain, number, &request["params"], &mut |kind| {
                writeln!(out, "{}", json!({"jsonrpc": "2.0", "id": 7, "method": kind})).unwrap();
                let reply: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
                reply["result"].clone()
            });
            let result = tool(&request["params"]);
            writeln!(out, "{}", json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).unwrap();
            number += 1;
        }
        chain
    });
    let stream = TcpStream::connect(address).unwrap();
    let (mut lines, mut out) = (BufReader::new(stream.try_clone().unwrap()).lines(), stream);
    for (id, input) in inputs.iter().enumerate() {
        writeln!(out, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": input}))
            .unwrap();
        loop {
            let message: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            match message["method"].as_str() {
                Some(kind) => writeln!(out, "{}", json!({"id": 7, "result": {"answer": kind}})).unwrap(),
                None => {
                    assert_eq!(message["result"], tool(input));
                    break;
                }
            }
        }
    }
    out.shutdown(std::net::Shutdown::Both).unwrap();
    let remote = server.join().unwrap();
    assert_eq!(local.to_jsonl(), remote.to_jsonl());
}

/// A gate over nothing is never passed (W-50, W-60).
#[test]
fn a_gate_over_no_steps_never_passes() {
    let place = Place::with_store();
    let lines = [
        json!({"action": "eval_phase", "name": "a"}),
        json!({"action": "eval_phase", "name": "b", "success": false}),
        json!({"action": "tool_call", "name": "get", "output": {"items": []}}),
    ];
    record(&place, "r", "runtime", &lines);
    for (args, code) in [
        (vec!["--holds", "by_action(\"eval_phase\").exists(s, s.success)"], 0),
        (vec!["--holds", "by_action(\"eval_phase\").all(s, s.success)"], 1),
        (vec!["--predicate", "by_action('eval_phase').exists(s, !s.success)"], 1),
        (vec!["--holds", "success_rate(by_action(\"eval_phase\")) >= 0.5"], 0),
        (vec!["--holds", "by_action(\"tool_call\").all(s, s.output.items.all(i, i > 0))"], 0),
        (vec!["--holds", "by_action(\"reward\").all(s, s.success)"], 6),
        (vec!["--holds", "size(by_action(\"reward\")) == 0"], 6),
        (vec!["--holds", "size(by_action(\"reward\")) == 0", "--allow-empty"], 0),
        (vec!["--predicate", "by_action(\"reward\").exists(s, !s.success)"], 6),
        (vec!["--holds", "by_action(\"eval_phase\").filter(s, s.name == \"no\").all(s, s.success)"], 6),
        (vec!["--holds", "steps.filter(s, s.action == \"reward\").all(s, s.success)"], 6),
        (vec!["--holds", "success_rate(steps.filter(s, s.action == \"reward\")) == 1.0"], 6),
        (vec!["--holds", "by_action(\"eval_phase\").all(s, s.output.x > 1)"], 6),
        (vec!["--holds", "by_action(state.x).all(s, s.success)"], 2),
        (vec!["--holds", "by_action(\"evalphase\").all(s, s.success)"], 2),
        (vec![], 2),
    ] {
        let ran = place.run(&[vec!["assert", "r"], args.clone()].concat());
        assert_eq!(ran.code, code, "{args:?}: {}{}", ran.stdout, ran.stderr);
    }
    // A run without a step, and each form for CI.
    place.run_with(&["commit", "--run", "empty"], b"");
    assert_ne!(place.run(&["assert", "empty", "--holds", "steps.all(s, s.success)"]).code, 0);
    for form in ["junit", "sarif", "github"] {
        let args =
            ["assert", "r", "--holds", "by_action(\"eval_phase\").all(s, s.success)", "--format", form];
        let ran = place.run(&args);
        assert_eq!(ran.code, 1);
        assert!(ran.stdout.contains("tick 2"), "{form}: {}", ran.stdout);
    }
}

/// Files with damage of each kind: gaps with their line, or nothing at all (W-72, W-73).
#[test]
fn hostile_chains_are_gaps_or_nothing() {
    let place = Place::with_store();
    let mut chain = InteractionChain::new("abc123abc123", Timestamp::from_ms(0));
    for n in 0..4 {
        chain.record(Step::new(
            ActionType::ToolCall,
            "get",
            StepStamp::new((n + 1) << 40, Timestamp::from_ms(n)),
        ));
    }
    let good = chain.to_jsonl() + "\n";
    let lines: Vec<&str> = good.lines().collect();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    let deep = format!(
        "{{\"action\":\"tool_call\",\"name\":\"x\",\"input\":{}1{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let cases = [
        ("cut", good[..good.len() - 40].to_owned(), vec![5], 8),
        ("middle", [lines[0], lines[1], &lines[2][..30], lines[3], lines[4]].join("\n"), vec![3], 8),
        ("deep", [lines[0], &deep, lines[1]].join("\n"), vec![2], 8),
        ("hash", good.replacen("\"get\"", "\"got\"", 1), vec![2], 4),
        ("order", [lines[0], lines[2], lines[1]].join("\n"), vec![2, 3], 4),
        ("twice", [lines[0], lines[1], lines[1]].join("\n"), vec![3], 4),
        ("action", good.replacen("tool_call", "tool_cal", 1), vec![2], 8),
        ("names", [lines[0], "[1]", "\u{0}", "{\"action\":1}"].join("\n"), vec![2, 3, 4], 8),
    ];
    for (name, text, bad, _) in &cases {
        let file = format!("{name}.jsonl");
        write(&file, text);
        let stopped = place.run(&["import", "--kind", "carl", &file, "--on-gap", "stop"]);
        assert_ne!(stopped.code, 0, "{name}");
        assert_eq!(place.run(&["log", name]).code, 3, "{name}: something was recorded");
        let answer: Value =
            serde_json::from_str(&place.ok(&["import", "--kind", "carl", &file, "--json"])).unwrap();
        let rows = text.lines().skip(1).filter(|line| !line.trim().is_empty()).count();
        assert_eq!(answer["ticks"], rows, "{name}");
        let marked: Vec<u64> = answer["notes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|note| note["tick"].as_u64().unwrap() + 1)
            .collect();
        for line in bad {
            assert!(marked.contains(line), "{name}: line {line} of {answer}");
        }
        assert_eq!(place.ok(&["export", name, "--format", "carl"]), *text, "{name}");
    }
    assert_eq!(
        place
            .run(&["import", "--kind", "carl", "hash.jsonl", "--run", "h2", "--again", "--on-gap", "stop"])
            .code,
        4
    );
    let found = place.run(&["verify", "hash.jsonl", "--profile", "carl", "--json"]);
    assert_eq!(found.code, 4);
    assert!(found.stdout.contains("\"broken\":[2],\"rows\":4,\"rule\":\"content_hash\""), "{}", found.stdout);
    for id in ["../secret", "a/b", "a\\b", ".."] {
        assert_eq!(place.run(&["import", "--kind", "carl", id, "--run", "x"]).code, 2, "{id}");
    }
    for empty in ["", "\n", "[]\n", "{}\n"] {
        write("none.jsonl", empty);
        let ran = place.run(&["import", "--kind", "carl", "none.jsonl"]);
        assert!(ran.code != 0 && ran.stderr.contains("none.jsonl"), "{empty:?}: {}", ran.stderr);
    }
}

/// Secrets in rows: the row is redacted with a new hash, and the exact file is in the vault.
#[test]
fn the_exact_file_is_in_the_vault() {
    let place = Place::with_store();
    let canary =
        format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8").chars().take(40).collect::<String>();
    let mut chain = InteractionChain::new("abc123abc123", Timestamp::from_ms(0));
    for text in [canary.as_str(), "nothing"] {
        let mut step = Step::new(ActionType::ToolCall, "get", StepStamp::new(7 << 50, Timestamp::from_ms(0)));
        step.step_id = format!("step-{text}").chars().take(7).collect();
        step.output = RowValue::parse(&json!({"text": text, "x": 1.0}).to_string()).unwrap();
        chain.record(step);
    }
    let text = chain.to_jsonl() + "\n";
    std::fs::write(place.path().join("c.jsonl"), &text).unwrap();
    let answer: Value =
        serde_json::from_str(&place.ok(&["import", "--kind", "carl", "c.jsonl", "--json"])).unwrap();
    assert_eq!(answer["changed"], json!([2]));
    let exported = place.ok(&["export", "c", "--format", "carl"]);
    assert!(!exported.contains(&canary));
    let file = ChainFile::read(exported.as_bytes()).unwrap();
    assert!(file.rows.iter().all(|row| row.faults.is_empty()), "{exported}");
    assert_eq!(place.ok(&["export", "c", "--format", "carl", "--exact"]), text);
    // What is erased is destroyed in the vault, too.
    place.ok(&["import", "--kind", "carl", "c.jsonl", "--run", "gone", "--again"]);
    let erased = place.ok(&[
        "erase",
        "gone@1",
        "result.output",
        "--reason",
        "a key",
        "--although",
        "intent",
        "--although",
        "redaction",
        "--although",
        "2:result.output",
        // The run of the same file has a copy of the value.
        "--also",
        "c@1:result.output",
        "--although",
        "c@1:intent.row",
        "--although",
        "c@1:redaction",
    ]);
    assert!(erased.contains("erased  gone  the exact file in the vault"), "{erased}");
    for run in ["gone", "c"] {
        assert_eq!(place.run(&["export", run, "--format", "carl", "--exact"]).code, 6, "{run}");
    }
    assert_eq!(place.run(&["export", "c", "--format", "jsonl", "--exact"]).code, 2);
    // A second run has none in the vault.
    let ran =
        place.run_with(&["commit", "--run", "r"], b"{\"step\":{\"action\":\"data_open\",\"name\":\"x\"}}\n");
    assert_eq!(ran.code, 0);
    assert_eq!(place.run(&["export", "r", "--format", "carl", "--exact"]).code, 2);
    // A step of the extension is exported where it is named.
    assert_eq!(place.run(&["export", "r", "--format", "carl"]).code, 5);
    assert!(place.ok(&["export", "r", "--format", "carl", "--with", "carl-core/0.2"]).contains("data_open"));
}

/// Chains of several runs (W-61 to W-63, X-15).
#[test]
fn chains_of_several_runs_are_one_graph() {
    let place = Place::with_store();
    let step = |id: &str, parent: Option<&str>, trace: &str| json!({"action": "external", "name": id, "step_id": id, "parent_id": parent, "trace_id": trace});
    record(
        &place,
        "a",
        "runtime",
        &[step("a1", None, "t"), step("a2", Some("b1"), "t"), step("dup", None, "u")],
    );
    record(
        &place,
        "b",
        "runtime",
        &[step("b1", Some("a1"), "t"), step("c1", Some("c2"), "u"), step("c2", Some("c1"), "u")],
    );
    record(&place, "c", "runtime", &[step("dup", Some("gone"), "t")]);
    // A fork shares its steps with its parent: they are no duplicates.
    place.ok(&["fork", "a@2", "--as", "f"]);
    let ran = place.run(&["steps", "a", "b", "c", "f", "--compose", "parent", "--json"]);
    assert_eq!(ran.code, 1);
    let made: Value = serde_json::from_str(&ran.stdout).unwrap();
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|step| step["step_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&made["groups"][0]["steps"]), ["a1", "a2", "b1"]);
    assert_eq!(made["orphans"][0]["parent_id"], "gone");
    assert_eq!(ids(&made["cycles"][0]), ["c1", "c2"]);
    assert_eq!(ids(&made["duplicates"][0]), ["dup", "dup"]);
    let made: Value =
        serde_json::from_str(&place.run(&["steps", "a", "b", "--compose", "trace", "--json"]).stdout)
            .unwrap();
    assert_eq!(ids(&made["groups"][0]["steps"]), ["a1", "a2", "b1"]);
    assert!(place.run(&["steps", "a", "b", "--compose", "parent", "--format", "dot"]).stdout.contains("a1"));
}

/// A datum names its run and tick, and its state is made again (W-59); differences of coherence (W-48).
#[test]
fn a_training_datum_is_made_again() {
    let place = Place::with_store();
    let lines = concat!(
        r#"{"step":{"action":"user_input","name":"p","input":"go"}}"#,
        "\n",
        r#"{"step":{"action":"tool_call","name":"get","step_id":"x1","input":{"q":1},"output":{"n":2},"phi":0.5},"delta":[{"set":"/n","value":2}]}"#,
        "\n",
        r#"{"step":{"action":"llm_reply","name":"r","output":"two"}}"#,
        "\n",
        r#"{"step":{"action":"reward","name":"own","parent_id":"x1","output":{"mean":1}}}"#,
        "\n",
        r#"{"step":{"action":"reward","name":"all","output":{"mean":0.5,"q_hat":3,"crystallizations":[1,2]},"phi":0.7}}"#,
        "\n",
    );
    assert_eq!(place.run_with(&["commit", "--run", "t", "--as", "runtime"], lines.as_bytes()).code, 0);
    let data: Vec<Value> = place
        .ok(&["export", "t", "--format", "training"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(data.len(), 2);
    assert_eq!((&data[0]["reward"]["mean"], &data[1]["reward"]["mean"]), (&json!(1), &json!(0.5)));
    let tick = data[0]["tick"].to_string();
    let state = place.ok(&["replay", "t", "--to", &tick, "--print", "state"]);
    assert!(state.contains('2'), "{state}");
    record(
        &place,
        "u",
        "runtime",
        &[
            json!({"action": "training_step", "name": "s", "phi": 0.1, "output": {"q_hat": 5, "crystallization_count": 9}}),
        ],
    );
    let made: Value = serde_json::from_str(&place.ok(&["diff", "t", "u", "--coherence", "--json"])).unwrap();
    assert_eq!(made["a"], json!({"phi_mean": 0.6, "q_hat": 3, "crystallization_count": 2}));
    assert_eq!(made["delta"]["crystallization_count"], 7);
}

/// A directory of `carl`: chains and sessions at once, and what is there is passed over (W-32, W-46).
#[test]
fn a_directory_of_carl_is_imported_in_one_go() {
    let place = Place::with_store();
    let home = place.path().join("carl");
    for room in ["interactions", "sessions"] {
        std::fs::create_dir_all(home.join(room)).unwrap();
    }
    let mut chain = InteractionChain::new("c1", Timestamp::from_ms(0));
    chain.record(Step::new(ActionType::UserInput, "p", StepStamp::new(1 << 40, Timestamp::from_ms(0))));
    std::fs::write(home.join("interactions/c1.jsonl"), chain.to_jsonl() + "\n").unwrap();
    let session = |version: Value| json!({"id": "s", "schema_version": version, "title": "x", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]});
    std::fs::write(home.join("sessions/s1.json"), session(json!("1")).to_string()).unwrap();
    place.ok(&["import", "--kind", "carl", "carl"]);
    assert_eq!(steps(&place, "c1").len(), 1);
    assert_eq!(steps(&place, "s1").len(), 2);
    std::fs::write(home.join("sessions/s2.json"), session(json!(1)).to_string().replace("hi", "ho")).unwrap();
    let ran = place.run(&["import", "--kind", "carl", "carl"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("2 of them were there already"), "{}", ran.stderr);
    std::fs::write(home.join("sessions/s3.json"), session(json!(2)).to_string()).unwrap();
    assert_eq!(place.run(&["import", "--kind", "carl", "carl/sessions/s3.json"]).code, 8);
}

/// A verb ends at the tick that is named, and answers say no more than the record does.
#[test]
fn answers_end_at_the_tick_and_know_what_is_withheld() {
    let place = Place::with_store();
    let lines = [
        json!({"action": "gate_check", "name": "a", "output": {"allowed": false}}),
        json!({"action": "gate_check", "name": "b", "output": "no idea"}),
        json!({"action": "gate_check", "name": "c", "output": true, "success": false}),
        json!({"action": "gate_check", "name": "d"}),
        json!({"action": "payment", "name": "pay", "success": false, "phi": 0.5}),
    ];
    let found = record(&place, "d", "runtime", &lines);
    // A check that says only its verdict failed if it denies; one that is not understood is no decision.
    assert_eq!(found[0]["success"], false);
    let log = place.ok(&["log", "d"]);
    assert_eq!((log.matches("policy.decision").count(), log.matches("allow").count()), (1, 0), "{log}");
    assert_eq!(steps(&place, "d@2").len(), 2);
    assert_eq!(place.run(&["steps", "d@99"]).code, 3);
    assert_eq!(place.run(&["assert", "d@1", "--holds", "size(steps) == 1"]).code, 0);
    let answer: Value = serde_json::from_str(&place.ok(&["coherence", "d@4", "--json"])).unwrap();
    assert_eq!(answer["items"], json!([]));
    // An empty list that `exists` is asked of passes nothing either.
    for gate in [
        ["--predicate", "by_action(\"payment\").filter(s, s.name == \"deploy\").exists(s, !s.success)"],
        ["--holds", "!(by_action(\"payment\").filter(s, s.name == \"no\").exists(s, true))"],
    ] {
        assert_eq!(place.run(&["assert", "d", gate[0], gate[1]]).code, 6, "{gate:?}");
    }
    for (withheld, gate) in [
        ("/result", "by_action(\"payment\").all(s, s.success)"),
        ("/action_type", "by_action(\"gate_check\").all(s, s.name != \"x\")"),
        ("/intent", "by_action(\"gate_check\").all(s, s.name != \"x\")"),
    ] {
        place.ok(&["export", "d", "-o", "w.dnd"]);
        strip(place.path().join("w.dnd"), &[withheld]);
        assert_eq!(place.run(&["assert", "w.dnd", "--holds", gate]).code, 6, "{withheld}");
        let ran = place.run(&["export", "w.dnd", "--format", "carl"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (6, ""), "{withheld}: {}", ran.stderr);
    }
}

/// What a reader of a file may be told, and what not.
#[test]
fn files_are_what_they_were_or_it_is_said() {
    let place = Place::with_store();
    let write = |name: &str, bytes: &[u8]| std::fs::write(place.path().join(name), bytes).unwrap();
    let mut chain = InteractionChain::new("c", Timestamp::from_ms(0));
    for n in 0..3 {
        chain.record(Step::new(
            ActionType::ToolCall,
            "get",
            StepStamp::new((n + 1) << 40, Timestamp::from_ms(n)),
        ));
    }
    let text = chain.to_jsonl();
    let lines: Vec<&str> = text.lines().collect();
    let without = |row: &str| {
        let at = row.find(", \"prev_hash\"").unwrap();
        row[..at].replace("\"get\"", "\"got\"") + "}"
    };
    // Rows without hashes behind rows that name each other, and a file with none at all.
    let forged = [
        [lines[0], lines[1], lines[2], &without(lines[3])].join("\n"),
        [lines[0], lines[1], lines[2], lines[3], &without(lines[3]).replace("000000000003", "f")].join("\n"),
        [lines[0], &without(lines[1])].join("\n"),
    ];
    for (n, text) in forged.iter().enumerate() {
        write("forged.jsonl", text.as_bytes());
        assert_eq!(place.run(&["verify", "forged.jsonl", "--profile", "carl"]).code, 4, "{n}");
    }
    // No newline at the end, a blank line, and a row that is cut inside a character.
    let mut cut = text.clone().into_bytes();
    cut.extend_from_slice(b"\n{\"action\": \"\xc3");
    let blank = text.replacen('\n', "\n\n", 2);
    for (name, bytes, is_plain) in
        [("end", text.as_bytes(), true), ("blank", blank.as_bytes(), false), ("cut", &cut[..], false)]
    {
        write(&format!("{name}.jsonl"), bytes);
        place.ok(&["import", "--kind", "carl", &format!("{name}.jsonl")]);
        let args = ["export", name, "--format", "carl", "-o", "out"];
        let exact = [&args[..], &["--exact"]].concat();
        place.ok(if is_plain { &args[..] } else { &exact[..] });
        assert_eq!(std::fs::read(place.path().join("out")).unwrap(), bytes, "{name}");
    }
    // Rows that carl-core reads: a truth of Python, an id that is a number.
    let odd = [lines[0], r#"{"action": "tool_call", "name": "x", "success": 1, "session_id": 5}"#].join("\n");
    write("odd.jsonl", odd.as_bytes());
    place.ok(&["import", "--kind", "carl", "odd.jsonl"]);
    assert_eq!(
        (&steps(&place, "odd")[0]["action"], &steps(&place, "odd")[0]["success"]),
        (&json!("tool_call"), &json!(true))
    );
    // Rows that cannot be read are no steps of any type, and no data for training.
    write("bad.jsonl", [lines[0], "{\"a", "[1]", r#"{"action": "zzz", "name": "x"}"#].join("\n").as_bytes());
    place.ok(&["import", "--kind", "carl", "bad.jsonl"]);
    assert!(steps(&place, "bad").iter().all(|step| step["action"].is_null()));
    assert_eq!(place.run(&["assert", "bad", "--holds", "size(by_action(\"llm_reply\")) >= 3"]).code, 6);
    assert_eq!(place.ok(&["export", "bad", "--format", "training"]), "");
    // A hash that was wrong stays wrong where its row is redacted; and no answer prints what was taken.
    let token = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    let secret =
        [lines[0].to_owned(), lines[1].replace("\"output\": null", &format!("\"output\": \"{token}\""))]
            .join("\n");
    write("secret.jsonl", secret.as_bytes());
    for args in [["--json", "--on-gap", "mark"], ["--json", "--on-gap", "stop"]] {
        let ran = place.run(&[&["import", "--kind", "carl", "secret.jsonl"][..], &args].concat());
        assert!(!(ran.stdout + &ran.stderr).contains(&token), "{args:?}");
    }
    write("again.jsonl", place.ok(&["export", "secret", "--format", "carl"]).as_bytes());
    assert_eq!(place.run(&["verify", "again.jsonl", "--profile", "carl"]).code, 4);
    // Paths and ids.
    assert_eq!(place.run(&["import", "--kind", "carl", "./missing.jsonl"]).code, 3);
    // A reply names its step, and nothing is written of a chain that cannot be exported.
    let ran = place.run_with(
        &["commit", "--run", "e", "--json"],
        b"{\"step\":{\"action\":\"external\",\"name\":\"x\"}}\n{\"step\":{\"action\":\"data_open\",\"name\":\"x\"}}\n",
    );
    assert_eq!(ran.stdout.matches("\"step_id\":").count(), 2, "{}", ran.stdout);
    let ran = place.run(&["export", "e", "--format", "carl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (5, ""));
}

/// A directory is imported as far as it goes: nothing is passed over because of its name.
#[test]
fn nothing_of_a_directory_is_lost() {
    let place = Place::with_store();
    let rooms = ["carl/interactions", "carl/sessions"];
    rooms.iter().for_each(|room| std::fs::create_dir_all(place.path().join(room)).unwrap());
    let write = |name: &str, text: &str| std::fs::write(place.path().join("carl").join(name), text).unwrap();
    let mut chain = InteractionChain::new("c", Timestamp::from_ms(0));
    let mut add = |n: u64| {
        chain.record(Step::new(
            ActionType::ToolCall,
            "get",
            StepStamp::new((n + 1) << 40, Timestamp::from_ms(n)),
        ));
        chain.to_jsonl() + "\n"
    };
    write("interactions/same.jsonl", &add(0));
    write("interactions/0empty.jsonl", "");
    write("sessions/same.json", r#"{"messages":[{"role":"user","content":"hi"}]}"#);
    let ran = place.run(&["import", "--kind", "carl", "carl", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (answer["items"].as_array().unwrap().len(), answer["failed"].as_array().unwrap().len()),
        (2, 1)
    );
    assert_ne!(ran.code, 0);
    assert_eq!(steps(&place, "same-2").len(), 1);
    write("interactions/same.jsonl", &add(1));
    std::fs::remove_file(place.path().join("carl/interactions/0empty.jsonl")).unwrap();
    let answer: Value =
        serde_json::from_str(&place.ok(&["import", "--kind", "carl", "carl", "--json"])).unwrap();
    assert_eq!((&answer["there"], &answer["items"][0]["ticks"]), (&json!(1), &json!(2)), "{answer}");
}
