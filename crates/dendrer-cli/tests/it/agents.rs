//! One history, many agents: trace files of the forensic debugger specification, branches, states along causal ancestors, merges,
//! comparisons.

use dendrer_object::{Digest, Value, json};

use crate::support::Place;

/// A node of the document, with its hash.
pub(crate) fn node(
    id: &str,
    agent: &str,
    seq: u64,
    prev: &Value,
    parents: &[&str],
    event: &str,
    delta: &str,
) -> Value {
    versioned(id, agent, seq, prev, parents, event, delta, "2.0.0")
}

#[expect(clippy::too_many_arguments, reason = "the members of a node")]
fn versioned(
    id: &str,
    agent: &str,
    seq: u64,
    prev: &Value,
    parents: &[&str],
    event: &str,
    delta: &str,
    version: &str,
) -> Value {
    let prev = prev.get("hash").and_then(Value::as_str).unwrap_or_default();
    let mut sorted = parents.to_vec();
    sorted.sort_unstable();
    // The formula of 1.2, over an event that is written canonically above.
    let text = format!("{prev}{event}{seq}{agent}{version}{}", sorted.join(","));
    let value = |text: &str| json::parse_door(text.as_bytes()).unwrap();
    Value::record([
        ("node_id", Value::from(id)),
        ("agent_id", Value::from(agent)),
        ("seq", Value::from(seq)),
        ("timestamp", value("1.5")),
        ("event", value(event)),
        ("state_delta", value(delta)),
        ("prev_hash", Value::from(prev)),
        ("hash", Value::from(Digest::of(text.as_bytes()).hex())),
        ("parents", Value::array(parents.iter().map(|id| Value::from(*id)))),
        ("fork_type", Value::from("natural")),
        ("schema_version", Value::from(version)),
    ])
}

fn with(node: &Value, name: &str, member: Value) -> Value {
    let mut members = node.as_object().unwrap().clone();
    members.set(name, member);
    Value::Object(members)
}

fn write(place: &Place, name: &str, nodes: &[&Value]) {
    let lines: String = nodes.iter().map(|node| format!("{node}\n")).collect();
    std::fs::write(place.path().join(name), lines).unwrap();
}

/// The four nodes of the document's fixture.
fn four(version: &str) -> [Value; 4] {
    let none = Value::Null;
    let n0 = versioned(
        "n0",
        "system",
        0,
        &none,
        &[],
        r#"{"action":"start"}"#,
        r#"{"memory":{"x":0,"y":1}}"#,
        version,
    );
    let n1_a = versioned(
        "n1_a",
        "agent_a",
        0,
        &n0,
        &["n0"],
        r#"{"action":"inspect"}"#,
        r#"{"memory":{"x":1}}"#,
        version,
    );
    let n1_b = versioned(
        "n1_b",
        "agent_b",
        0,
        &n0,
        &["n0"],
        r#"{"action":"guess","confidence":0.4}"#,
        r#"{"beliefs":{"sure":false},"goals":["g"],"memory":{"x":2}}"#,
        version,
    );
    let n2 = versioned(
        "n2",
        "agent_a",
        1,
        &n1_a,
        &["n1_a"],
        r#"{"action":"act"}"#,
        r#"{"memory":{"__remove":["y"]}}"#,
        version,
    );
    [n0, n1_a, n2, n1_b]
}

/// F-32, F-34, F-41: the fixture of the document prints its lines.
#[test]
fn the_fixture_of_the_document_verifies_and_prints_its_lines() {
    let place = Place::with_store();
    for version in ["1.0", "1.1", "2.0.0", "v1.0", "v1.1", "v2.0.0"] {
        write(&place, "t.jsonl", &four(version).each_ref());
        assert_eq!(
            place.ok(&["verify", "t.jsonl", "--profile", "cfd"]),
            "=== CORTEX FORENSIC DEBUGGER (CFD) v2.0.0 ===
Loaded 4 trace nodes from DATG.
  Branch 'system': VALID
  Branch 'agent_a': VALID
  Branch 'agent_b': VALID
[SUCCESS] All branches verified successfully.
not covered by the formula: timestamp, state_delta, fork_type
our reading: events as they are written (Python), and as RFC 8785
not checked: whether lines are missing at the end: a file that was cut there has the same hashes
",
            "{version}"
        );
    }
    place.ok(&["import", "t.jsonl", "--kind", "cfd", "--run", "r"]);
    // F-33.
    assert_eq!(
        place.ok(&["compare", "r:agent_a", "r:agent_b", "--profile", "cfd"]),
        "--- COMPARING AGENTS: agent_a vs agent_b ---
Lowest Common Ancestor (LCA): n0
Agent agent_a sub-path extensions: ['n1_a', 'n2']
Agent agent_b sub-path extensions: ['n1_b']
[SUCCESS] Multi-Agent CFD Verification Complete. 100% congruent.
"
    );
    let (code, compared) = place.json(&["compare", "r:agent_a", "r:agent_b"]);
    assert_eq!(code, 0);
    assert_eq!(compared.get("ancestors").unwrap().to_string(), r#"[{"node":"n0","tick":1}]"#);
    assert_eq!(
        compared.get("a_extension").unwrap().to_string(),
        r#"[{"node":"n1_a","tick":2},{"node":"n2","tick":3}]"#
    );
    assert_eq!(compared.get("congruent").unwrap().as_f64(), Some(100.0));
    assert_eq!(
        compared.get("variance").unwrap().to_string(),
        r#"[{"b":{"sure":false},"path":"/beliefs"},{"b":["g"],"path":"/goals"},{"a":1,"b":2,"path":"/memory/x"},{"b":1,"path":"/memory/y"}]"#
    );
    // Each branch is valid natively, too, and what this does not show is said.
    let branches = place.ok(&["verify", "r", "--branches"]);
    assert!(branches.contains("  Branch 'agent_a': VALID\n") && branches.contains("[SUCCESS]"), "{branches}");
    let (_, branches) = place.json(&["verify", "r", "--branches"]);
    assert_eq!(branches.get("branches").unwrap().as_array().unwrap().len(), 3);
    assert!(!branches.get("open").unwrap().as_array().unwrap().is_empty());
    // Imported nodes go out as they came.
    let out = place.ok(&["export", "r", "--format", "cfd"]);
    let expected: String = four("v2.0.0").iter().map(|node| format!("{node}\n")).collect();
    assert_eq!(out, expected);
    // A run that was recorded here has nodes that verify.
    let lines = r#"{"type":"plan.update","agent":"a","delta":[{"set":"/memory/k","value":1}]}
{"type":"plan.update","agent":"b","delta":[{"set":"/memory/k","value":2}]}
{"type":"plan.update","agent":"a","delta":[{"remove":"/memory/k"}]}
"#;
    assert_eq!(place.run_with(&["commit", "--run", "own"], lines.as_bytes()).code, 0);
    std::fs::write(place.path().join("own.jsonl"), place.ok(&["export", "own", "--format", "cfd"])).unwrap();
    place.ok(&["verify", "own.jsonl", "--profile", "cfd"]);
    place.ok(&["import", "own.jsonl", "--kind", "cfd", "--run", "again"]);
    for agent in ["a", "b"] {
        let of = |run: &str| place.json(&["state", &format!("{run}:{agent}")]).1.get("value").cloned();
        assert_eq!(of("own"), of("again"));
    }
}

/// F-35 to F-40, F-44: the five cases of the document, as a suite, and what the formula does not cover.
#[test]
fn the_corruption_suite_of_the_document() {
    let place = Place::with_store();
    let [n0, n1_a, n2, n1_b] = &four("v1.1");
    let n3 = node("n3", "agent_a", 2, n2, &["n2"], r#"{"action":"end"}"#, "{}");
    write(&place, "valid.jsonl", &[n0, n1_a, n2, n1_b]);
    let payload = with(n1_a, "event", Value::record([("action", Value::from("other"))]));
    write(&place, "payload.jsonl", &[n0, &payload, n2, n1_b]);
    write(&place, "gap.jsonl", &[n0, n1_a, &n3, n1_b]);
    write(&place, "swap.jsonl", &[n0, n2, n1_a, n1_b]);
    let metadata = with(n1_a, "agent_id", Value::from("agent_c"));
    write(&place, "metadata.jsonl", &[n0, &metadata, n2, n1_b]);
    let cases = [
        ("Valid Trace", "valid", "verified"),
        ("Payload Corruption", "payload", "rejected"),
        ("Sequence Gap", "gap", "rejected"),
        ("Event Swap", "swap", "rejected"),
        ("Metadata Corruption", "metadata", "rejected"),
    ];
    let suite = cases.map(|(case, file, expect)| {
        format!(r#"{{"case":"{case}","file":"{file}.jsonl","expect":"{expect}","profile":"cfd"}}"#)
    });
    std::fs::write(place.path().join("suite.json"), format!(r#"{{"cases":[{}]}}"#, suite.join(","))).unwrap();
    let ran = place.ok(&["verify", "--suite", "suite.json"]);
    for line in [
        "--- RUNNING Valid Trace ---\n[PASS] Replay CLI successfully verified the trace (Valid Trace).\n",
        "--- RUNNING Payload Corruption ---\n[PASS] Replay CLI correctly rejected the corrupted trace (Payload Corruption).\n",
        "--- RUNNING Event Swap ---\n[PASS] Replay CLI correctly rejected the corrupted trace (Event Swap).\n",
        "--- ALL TESTS PASSED ---\n",
    ] {
        assert!(ran.contains(line), "{ran}");
    }
    // Each breaks the rule that it is about, and is not imported.
    for (_, file, expect) in cases.into_iter().skip(1) {
        let path = format!("{file}.jsonl");
        let (code, answer) = place.json(&["verify", &path, "--profile", "cfd"]);
        assert_eq!((code, expect), (4, "rejected"));
        let items = answer.get("items").unwrap().as_array().unwrap();
        let branches = items.get(0).unwrap().get("branches").unwrap().as_array().unwrap();
        let rules: Vec<String> = branches
            .iter()
            .flat_map(|branch| {
                branch.get("faults").unwrap().as_array().unwrap().iter().cloned().collect::<Vec<_>>()
            })
            .map(|fault| fault.get("rule").unwrap().as_str().unwrap().to_owned())
            .collect();
        let expected: &[&str] = match file {
            "payload" => &["hash"],
            "gap" => &["monotonicity", "lineage", "containment", "exists"],
            "swap" => &["monotonicity", "lineage", "containment"],
            _ => &["hash"],
        };
        for rule in expected {
            assert!(rules.iter().any(|found| found == rule), "{file}: {rules:?}");
        }
        assert_eq!(place.run(&["import", &path, "--kind", "cfd", "--run", file]).code, 4);
    }
    // What the formula leaves out can be changed unseen; natively every byte is covered.
    let unseen = with(n1_a, "state_delta", json::parse_door(br#"{"memory":{"x":99}}"#).unwrap());
    write(&place, "unseen.jsonl", &[n0, &unseen, n2, n1_b]);
    let shown = place.ok(&["verify", "unseen.jsonl", "--profile", "cfd"]);
    assert!(shown.contains("not covered by the formula: timestamp, state_delta, fork_type"), "{shown}");
    // The same place twice, a parent that is not there, a circle, an unknown version, a first place of 5.
    let twice = node("n1_x", "agent_a", 0, n0, &["n0"], r#"{"action":"lie"}"#, "{}");
    let orphan = node("o", "agent_o", 0, n0, &["n0", "nobody"], "{}", "{}");
    let ring = node("k", "agent_k", 0, n0, &["n0", "k"], "{}", "{}");
    let odd = versioned("v", "agent_v", 0, n0, &["n0"], "{}", "{}", "3.0");
    let late = node("l", "agent_l", 5, n0, &["n0"], "{}", "{}");
    for (node, rule) in [
        (twice, "equivocation"),
        (orphan, "exists"),
        (ring, "acyclic"),
        (odd, "version"),
        (late, "monotonicity"),
    ] {
        write(&place, "odd.jsonl", &[n0, n1_a, &node]);
        let ran = place.run(&["verify", "odd.jsonl", "--profile", "cfd"]);
        assert!(ran.code == 4 && ran.stdout.contains(&format!("  {rule}: ")), "{}", ran.stdout);
    }
    let s0 = ["verify", "valid.jsonl", "--profile", "cfd", "--s0", "1"];
    assert_eq!(place.run(&s0).code, 4);
}

fn state(place: &Place, of: &str) -> String {
    place.json(&["state", of]).1.get("value").unwrap().to_string()
}

/// F-18 to F-28: agents that saw each other, by each strategy.
#[test]
fn a_sync_node_merges_what_its_parents_left() {
    let place = Place::with_store();
    let [n0, n1_a, n2, n1_b] = &four("2.0.0");
    for (strategy, x) in [
        ("", r#"{"__conflict":true,"values":[1,2]}"#),
        (r#","merge":{"strategy":"lww"}"#, "2"),
        (r#","merge":{"strategy":"confidence"}"#, "2"),
        (r#","merge":{"strategy":"policy"}"#, "1"),
        (r#","merge":{"keys":{"memory.x":"lww"},"strategy":"manual"}"#, "2"),
    ] {
        let event = format!(r#"{{"action":"sync"{strategy}}}"#);
        let n3 = node("n3", "agent_b", 1, n1_b, &["n1_b", "n2"], &event, r#"{"context_stack":["c"]}"#);
        write(&place, "t.jsonl", &[n0, n1_a, n2, n1_b, &n3]);
        std::fs::write(
            place.path().join("roles.yaml"),
            "name: team\nversion: v1\nreducer: delta/1\nstate: {memory: {}, beliefs: {}, goals: {}, context_stack: {}}\nmerge: {roles: {agent_a: 2, agent_b: 1}}\n",
        )
        .unwrap();
        let run = format!("r-{}", Digest::of(strategy.as_bytes()).short());
        let import = ["import", "t.jsonl", "--kind", "cfd", "--run", &run, "--pack", "roles.yaml"];
        place.ok(&import);
        // What one of them alone wrote or removed is there; x is decided; y was removed by agent_a alone.
        assert_eq!(
            state(&place, &format!("{run}:agent_b")),
            format!(
                r#"{{"beliefs":{{"sure":false}},"context_stack":["c"],"goals":["g"],"memory":{{"x":{x}}}}}"#
            ),
            "{strategy}"
        );
        assert_eq!(
            state(&place, &format!("{run}:agent_b@4")),
            r#"{"beliefs":{"sure":false},"goals":["g"],"memory":{"x":2,"y":1}}"#
        );
        assert_eq!(state(&place, &format!("{run}:agent_a")), r#"{"memory":{"x":1}}"#);
    }
    // A conflict that was kept is listed; in a fork it is resolved.
    let kept = format!("r-{}", Digest::of(b"").short());
    let listed = place.ok(&["conflicts", "list", &kept]);
    assert!(
        listed.contains("memory.x   at tick 5   open")
            && listed.contains("  agent_a   1   written at tick 2\n"),
        "{listed}"
    );
    assert_eq!(
        place.run(&["conflicts", "resolve", &kept, "memory.x", "--take", "agent_a", "--reason", "r"]).code,
        5
    );
    place.ok(&["fork", &kept, "--from", "tip", "--as", "live"]);
    place.ok(&[
        "conflicts",
        "resolve",
        "live",
        "memory.x",
        "--take",
        "agent_a",
        "--reason",
        "it was measured",
    ]);
    let listed = place.ok(&["conflicts", "list", "live"]);
    assert!(
        listed.contains(r#"agent_a taken at tick 7: "it was measured""#) && listed.contains("0 open"),
        "{listed}"
    );
    assert_eq!(
        state(&place, "live:operator"),
        r#"{"beliefs":{"sure":false},"context_stack":["c"],"goals":["g"],"memory":{"x":1}}"#
    );
    // F-29: each write of a key along the causal path of one agent, and no other.
    let (_, writes) = place.json(&["backtrack", &format!("{kept}:agent_a"), "memory.x"]);
    let ticks = |writes: &Value| -> Vec<u64> {
        writes
            .get("items")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item.get("tick").unwrap().as_u64().unwrap())
            .collect()
    };
    assert_eq!(ticks(&writes), [2, 1]);
    let (_, writes) = place.json(&["backtrack", &format!("{kept}:agent_b"), "memory.x"]);
    assert_eq!(ticks(&writes), [5, 4, 2, 1]);
    // F-30: where branches part, and by how much they differ.
    let (_, heat) = place.json(&["heatmap", &kept]);
    assert_eq!(
        heat.get("items").unwrap().as_array().unwrap().get(0).unwrap().get("node").unwrap().as_str(),
        Some("n0")
    );
    let (_, heat) = place.json(&["heatmap", &kept, "--metric", "confidence"]);
    assert_eq!(
        heat.get("items").unwrap().as_array().unwrap().get(0).unwrap().get("value").unwrap().as_f64(),
        Some(0.6)
    );
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// Nodes in any order of lines become ticks with parents before children.
#[test]
fn nodes_are_sorted_where_children_come_first() {
    let place = Place::with_store();
    let [n0, n1_a, n2, n1_b] = &four("2.0.0");
    write(&place, "t.jsonl", &[n1_b, n1_a, n2, n0]);
    place.ok(&["import", "t.jsonl", "--kind", "cfd", "--run", "r"]);
    let names = |run: &str| {
        let out = place.ok(&["export", run, "--format", "cfd"]);
        let name = |line: &str| {
            json::parse_door(line.as_bytes()).unwrap().get("node_id").unwrap().as_str().unwrap().to_owned()
        };
        out.lines().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names("r"), ["n0", "n1_a", "n1_b", "n2"]);
    for (line, code) in [("{\"seq\":0}", 2), ("[]", 2), ("{", 2)] {
        std::fs::write(place.path().join("bad.jsonl"), format!("{line}\n{n0}\n")).unwrap();
        assert_eq!(place.run(&["verify", "bad.jsonl", "--profile", "cfd"]).code, code, "{line}");
        assert_ne!(place.run(&["import", "bad.jsonl", "--kind", "cfd", "--run", "bad"]).code, 0, "{line}");
    }
}

/// D-146: agents on disjoint places do not wait for each other; one on the same place is told.
#[test]
fn agents_on_disjoint_places_do_not_wait_for_each_other() {
    let place = Place::with_store();
    let begun = r#"{"type":"plan.update","agent":"a","delta":[{"set":"/memory","value":{"x":0,"y":0}}]}"#;
    assert_eq!(place.run_with(&["commit", "--run", "r"], begun.as_bytes()).code, 0);
    let line = |agent: &str, more: &str| format!(r#"{{"type":"plan.update","agent":"{agent}",{more}}}"#);
    let commit = |lines: &[String]| {
        let ran = place
            .run_with(&["commit", "--run", "r", "--causal", "--jsonl"], (lines.join("\n") + "\n").as_bytes());
        let replies: Vec<Value> =
            ran.stdout.lines().map(|line| json::parse_door(line.as_bytes()).unwrap()).collect();
        (ran.code, replies)
    };
    let what = |reply: &Value| reply.get("what").unwrap().as_str().unwrap().to_owned();
    // b decided on tick 1 and writes y; a wrote x meanwhile: b is taken.
    assert_eq!(commit(&[line("a", r#""base":1,"delta":[{"set":"/memory/x","value":1}]"#)]).0, 0);
    assert_eq!(commit(&[line("b", r#""base":1,"delta":[{"set":"/memory/y","value":1}]"#)]).0, 0);
    // c decided on tick 1 and writes x, or read it, or a place above or below it: stale. What follows is taken.
    for more in [
        r#""base":1,"delta":[{"set":"/memory/x","value":2}]"#,
        r#""base":1,"reads":["memory.x"],"delta":[{"set":"/memory/z","value":2}]"#,
        r#""base":1,"reads":["/memory"]"#,
        r#""base":1,"delta":[{"set":"/memory/x/deep","value":2}]"#,
    ] {
        let (code, replies) =
            commit(&[line("c", more), line("c", r#""delta":[{"set":"/memory/w","value":1}]"#)]);
        assert_eq!(
            (code, what(&replies[0]), what(&replies[1])),
            (5, "stale".to_owned(), "committed".to_owned()),
            "{replies:?}"
        );
        let reason = replies[0].get("reason").unwrap();
        assert_eq!(reason.get("code").unwrap().as_str(), Some("E0407"));
        assert!(reason.get("head").unwrap().as_u64() > Some(2));
        assert!(
            ["/memory/x", "/memory/y"].contains(&reason.get("path").unwrap().as_str().unwrap()),
            "{reason}"
        );
    }
    // Its own writes never make it stale, nor what no other agent touched.
    assert_eq!(commit(&[line("a", r#""base":1,"delta":[{"set":"/memory/x","value":3}]"#)]).0, 0);
    // Without --causal the member has no meaning, and is refused.
    let ran = place.run_with(&["commit", "--run", "r"], line("c", r#""reads":["memory.x"]"#).as_bytes());
    assert_eq!(ran.code, 5, "{}", ran.stdout);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// One process holds its proposal for a second; others on disjoint places commit meanwhile, one on the same place is stale.
#[test]
fn a_proposal_that_is_held_stops_nobody_elsewhere() {
    use std::io::Write as _;
    let place = Place::with_store();
    let begun = r#"{"type":"plan.update","agent":"a","delta":[{"set":"/memory","value":{"x":0,"y":0}}]}"#;
    assert_eq!(place.run_with(&["commit", "--run", "r"], begun.as_bytes()).code, 0);
    let mut held = place
        .command(&["commit", "--run", "r", "--causal", "--jsonl"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It has read tick 1 and thinks for a second.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let asked = std::time::Instant::now();
    for (agent, key) in [("b", "y"), ("c", "z"), ("d", "x")] {
        let line = format!(
            r#"{{"type":"plan.update","agent":"{agent}","delta":[{{"set":"/memory/{key}","value":1}}]}}"#
        );
        assert_eq!(place.run_with(&["commit", "--run", "r", "--causal"], line.as_bytes()).code, 0);
    }
    assert!(asked.elapsed() < std::time::Duration::from_millis(900), "{:?}", asked.elapsed());
    let mut input = held.stdin.take().unwrap();
    input
        .write_all(
            b"{\"type\":\"plan.update\",\"agent\":\"a2\",\"delta\":[{\"set\":\"/memory/x\",\"value\":5}]}\n",
        )
        .unwrap();
    input.write_all(b"{\"type\":\"plan.update\",\"agent\":\"a2\",\"delta\":[{\"set\":\"/memory/own\",\"value\":5}]}\n").unwrap();
    drop(input);
    let out = held.wait_with_output().unwrap();
    let replies: Vec<Value> = String::from_utf8(out.stdout)
        .unwrap()
        .lines()
        .map(|line| json::parse_door(line.as_bytes()).unwrap())
        .collect();
    assert_eq!(out.status.code(), Some(5), "{replies:?}");
    assert_eq!(replies[0].get("what").unwrap().as_str(), Some("stale"));
    assert_eq!(replies[0].get("reason").unwrap().get("path").unwrap().as_str(), Some("/memory/x"));
    assert_eq!(replies[1].get("what").unwrap().as_str(), Some("committed"));
}

/// Several processes that begin one new run at once all succeed, and the order that was recorded replays exactly.
#[test]
fn writers_that_begin_one_run_at_once_all_succeed() {
    const WRITERS: usize = 16;
    const LINES: usize = 20;
    let place = Place::with_store();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let place = &place;
            scope.spawn(move || {
                let lines: String = (0..LINES)
                    .map(|n| format!("{{\"type\":\"plan.update\",\"agent\":\"w{writer}\",\"delta\":[{{\"set\":\"/memory/w{writer}\",\"value\":{n}}}]}}\n"))
                    .collect();
                let ran = place.run_with(&["commit", "--run", "shared", "--causal"], lines.as_bytes());
                assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
            });
        }
    });
    let (_, log) = place.json(&["log", "shared", "-n", "0"]);
    assert_eq!(log.get("items").unwrap().as_array().unwrap().len(), WRITERS * LINES);
    for writer in 0..WRITERS {
        let last = (LINES - 1).to_string();
        assert_eq!(
            state(&place, &format!("shared:w{writer}")),
            format!(r#"{{"memory":{{"w{writer}":{last}}}}}"#)
        );
    }
    assert!(place.ok(&["verify", "shared", "--branches"]).contains("[SUCCESS]"));
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// F-1: the graph as DOT, one line for each parent, and as SVG; a long one is folded.
#[test]
fn the_graph_is_drawn() {
    let place = Place::with_store();
    write(&place, "t.jsonl", &four("2.0.0").each_ref());
    place.ok(&["import", "t.jsonl", "--kind", "cfd", "--run", "r"]);
    let dot = place.ok(&["log", "r", "--graph", "--format", "dot"]);
    assert!(
        dot.contains("  \"1 n0\" -> \"2 n1_a\";\n") && dot.contains("  \"2 n1_a\" -> \"3 n2\";\n"),
        "{dot}"
    );
    assert_eq!(dot.matches("->").count(), 4, "{dot}");
    let svg = place.ok(&["log", "r", "--graph", "--format", "svg"]);
    assert!(svg.contains("</svg>") && svg.contains("agent_b n1_b"), "{svg}");
    assert_eq!(place.run(&["log", "r", "--format", "dot"]).code, 2);
    let lines: String = (0..1000)
        .map(|n| {
            format!("{{\"type\":\"plan.update\",\"agent\":\"<a{}>\",\"intent\":{{\"n\":{n}}}}}\n", n % 3)
        })
        .collect();
    assert_eq!(place.run_with(&["commit", "--run", "long"], lines.as_bytes()).code, 0);
    let folded = place.ok(&["log", "long", "--graph"]);
    assert!(folded.contains("1,000 nodes of long in 3 stretches") && folded.lines().count() < 10, "{folded}");
    let ran = place.run(&["log", "long", "--graph", "--format", "svg"]);
    assert!(ran.code != 0 && ran.stderr.contains("--format dot"), "{}", ran.stderr);
    let svg = place.ok(&["log", "long", "--to", "tick", "30", "--graph", "--format", "svg"]);
    assert!(svg.contains("&lt;a1&gt;"), "{svg}");
}

/// The page shows what the program prints.
#[test]
fn the_page_shows_what_is_printed() {
    let page = include_str!("../../../../docs/agents.md");
    let place = Place::with_store();
    let blocks: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
    let mut tried = 0;
    for block in blocks {
        if let Some(nodes) = block.strip_prefix("jsonl\n") {
            std::fs::write(place.path().join("team.jsonl"), nodes).unwrap();
        }
        let Some(console) = block.strip_prefix("console\n") else { continue };
        for shown in console.split("$ dendrer ").skip(1) {
            let (command, expected) = shown.split_once('\n').unwrap();
            // Words between quotes are one argument.
            let mut args: Vec<&str> = Vec::new();
            for (at, part) in command.split('"').enumerate() {
                if at % 2 == 1 { args.push(part) } else { args.extend(part.split_whitespace()) }
            }
            let printed = place.ok(&args);
            tried += 1;
            // A command that is shown alone prints ids.
            if !expected.trim().is_empty() {
                assert_eq!(printed, expected, "{command}");
            }
        }
    }
    assert!(tried >= 10, "{tried}");
}

/// A place in `reads` is read in every spelling; any other text is refused.
#[test]
fn reads_are_places_in_every_spelling() {
    let place = Place::with_store();
    let commit =
        |lines: &str| place.run_with(&["commit", "--run", "r", "--causal", "--json"], lines.as_bytes());
    let first = r#"{"type":"plan.update","agent":"a","delta":[{"set":"/m","value":{"x":1,"a.b":3}},{"set":"/l","value":[1,2]}]}"#;
    let second = r#"{"type":"plan.update","agent":"b","delta":[{"append":"/l","value":3},{"set":"/m/a.b","value":4}]}"#;
    assert_eq!(commit(&format!("{first}\n{second}\n")).code, 0);
    for (reads, is_stale) in [
        ("", true),
        (r#"m[\"a.b\"]"#, true),
        ("l[2]", true),
        ("state.l", true),
        ("/m", true),
        ("m.x", false),
        ("l2", false),
    ] {
        let line = format!(
            r#"{{"type":"plan.update","agent":"a","base":1,"reads":["{reads}"],"delta":[{{"set":"/o","value":1}}]}}"#
        );
        let ran = place.run_with(&["commit", "--run", "r", "--causal", "-n", "--json"], line.as_bytes());
        assert_eq!(ran.stdout.contains("\"what\":\"stale\""), is_stale, "{reads}: {}", ran.stdout);
    }
    for reads in ["m..x", "m/x", "m/x/", "m.*"] {
        let line = format!(r#"{{"type":"plan.update","agent":"a","reads":["{reads}"],"delta":[]}}"#);
        let ran = commit(&line);
        assert_eq!(ran.code, 5, "{reads}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("/reads/0"), "{}", ran.stdout);
    }
}

/// A conflict that a sync node kept is no value for the next one: a strategy decides between its sides and the new one, and
/// `manual` keeps them all in one list.
#[test]
fn a_kept_conflict_does_not_compete() {
    let place = Place::with_store();
    let write = |line: String| {
        let ran = place.run_with(&["commit", "--run", "p", "--json"], line.as_bytes());
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        let at = ran.stdout.find("sha256:").expect("an id");
        ran.stdout[at..at + 71].to_owned()
    };
    let link = |rel: &str, ids: &[&String]| {
        let one = |id: &&String| format!(r#"{{"rel":"{rel}","hash":"{id}"}}"#);
        ids.iter().map(one).collect::<Vec<_>>().join(",")
    };
    let set = |agent: &str, value: u64, sure: f64, links: String| {
        format!(
            r#"{{"type":"plan.update","agent":"{agent}","confidence":{sure},"links":[{links}],"delta":[{{"set":"/memory/price","value":{value}}}]}}"#
        )
    };
    let merge = |agent: &str, strategy: &str, ids: &[&String]| {
        let links = link("merges", ids);
        format!(
            r#"{{"type":"plan.update","agent":"{agent}","intent":{{"merge":{{"strategy":"{strategy}"}}}},"links":[{links}]}}"#
        )
    };
    let first = write(set("s", 0, 0.0, String::new()));
    let [a, b, c] = [("a", 10, 0.5), ("b", 20, 0.9), ("c", 30, 0.3)]
        .map(|(agent, value, sure)| write(set(agent, value, sure, link("caused_by", &[&first]))));
    let kept = write(merge("lead", "manual", &[&b, &c]));
    for (agent, strategy, value) in [
        ("l", "lww", "30"),
        ("k", "confidence", "20"),
        ("m", "manual", r#"{"__conflict":true,"values":[10,20,30]}"#),
    ] {
        write(merge(agent, strategy, &[&kept, &a]));
        let state = place.ok(&["state", &format!("p:{agent}"), "memory.price", "--json"]);
        assert!(state.contains(value), "{strategy}: {state}");
    }
    let list = place.run(&["conflicts", "list", "p"]);
    assert!(list.stdout.contains("open"), "{}", list.stdout);
    let taken = place.run(&["conflicts", "resolve", "p", "memory.price", "--take", "lead", "--reason", "r"]);
    assert_ne!(taken.code, 0, "{}", taken.stdout);
}

/// F-24, F-54: merge rules of a node that are none are noted with their place, and the node is imported.
#[test]
fn merge_rules_that_are_none_are_noted_by_an_import() {
    let place = Place::with_store();
    for (rules, at, word) in [
        (r#"{"strategy":"newest"}"#, "/event/merge/strategy", "newest"),
        (r#"{"stratgy":"lww"}"#, "/event/merge", "stratgy"),
        (r#"{"keys":{"memory/x":"lww"}}"#, "/event/merge/keys", "memory.x"),
        (r#"{"strategy":"lww"}"#, "", ""),
    ] {
        let event = format!(r#"{{"action":"sync","merge":{rules}}}"#);
        let text = spelled(&event, &event, (0, ""), r#","schema_version":"2.0.0""#);
        std::fs::write(place.path().join("m.jsonl"), text + "\n").unwrap();
        let (code, answer) = place.json(&["import", "m.jsonl", "--kind", "cfd", "--run", "m", "--dry-run"]);
        let notes = answer.get("notes").unwrap().to_string();
        assert_eq!((code, notes.contains("merge_not_read")), (0, !at.is_empty()), "{rules}: {answer}");
        assert!(notes.contains(at) && notes.contains(word), "{rules}: {notes}");
    }
}

/// A line with one node, with the hash of an event that is spelled in some way, and further members.
fn spelled(event: &str, hashed: &str, (seq, prev): (u64, &str), more: &str) -> String {
    let hash = Digest::of(format!("{prev}{hashed}{seq}a2.0.0").as_bytes()).hex();
    format!(
        r#"{{"node_id":"n0","agent_id":"a","seq":{seq},"timestamp":1.5,"event":{event},"state_delta":{{}},"prev_hash":"{prev}","hash":"{hash}","parents":[],"fork_type":null{more}}}"#
    )
}

/// F-10, F-11, F-36: an event is hashed as it is spelled, and as RFC 8785 spells it if each number is a double.
#[test]
fn an_event_is_hashed_as_its_line_spells_it() {
    let place = Place::with_store();
    let version = r#","schema_version":"2.0.0""#;
    for (event, hashed, code, spelling) in [
        (r#"{"b": 1, "a": "x"}"#, r#"{"a":"x","b":1}"#, 0, "either"),
        (r#"{"c": 1.0, "b": [0.0, -0.0]}"#, r#"{"b":[0.0,-0.0],"c":1.0}"#, 0, "as_written"),
        (r#"{"n": 1e-05, "m": 1e+16}"#, r#"{"m":1e+16,"n":1e-05}"#, 0, "as_written"),
        (r#"{"\u00e9": "\u00e9"}"#, r#"{"\u00e9":"\u00e9"}"#, 0, "as_written"),
        (r#"{"\u00e9": "\u00e9"}"#, "{\"é\":\"é\"}", 0, "rfc8785"),
        (r#"{"c":1.0}"#, r#"{"c":1}"#, 0, "rfc8785"),
        (r#"{"id":12345678901234567890}"#, r#"{"id":12345678901234567890}"#, 0, "as_written"),
        (r#"{"id":12345678901234567891}"#, r#"{"id":12345678901234567890}"#, 4, ""),
        (r#"{"id":12345678901234567890}"#, r#"{"id":12345678901234567000}"#, 4, ""),
        (r#"{"c":1.5}"#, r#"{"c":1.25}"#, 4, ""),
    ] {
        let text = spelled(event, hashed, (0, ""), version) + "\n";
        std::fs::write(place.path().join("n.jsonl"), &text).unwrap();
        let (exit, answer) = place.json(&["verify", "n.jsonl", "--profile", "cfd"]);
        let item = answer.get("items").and_then(|items| items.as_array()?.get(0).cloned()).unwrap();
        let found = item.get("spelling").and_then(Value::as_str).unwrap_or_default();
        assert_eq!((exit, found), (code, spelling), "{event}: {answer}");
        let import = ["import", "n.jsonl", "--kind", "cfd", "--run", "r", "--again", "--dry-run"];
        assert_eq!(place.run(&import).code, code, "{event}");
    }
}

/// F-2, F-46: nodes without a version, with further members, and with another beginning; each comes back as it is spelled.
#[test]
fn nodes_are_imported_on_the_terms_that_verify_takes() {
    let place = Place::with_store();
    let version = r#","schema_version":"2.0.0""#;
    let event = r#"{"confidence":1.0,"id":12345678901234567890,"who":"\u00e9"}"#;
    for (name, text, flags) in [
        ("bare", spelled(event, event, (0, ""), ""), &["--schema-version", "2.0.0"][..]),
        ("begun", spelled(event, event, (7, "GENESIS"), version), &["--genesis", "GENESIS", "--s0", "7"]),
        ("more", spelled(event, event, (0, ""), &format!(r#"{version},"note":{{"$a":1.50}}"#)), &[]),
    ] {
        let file = format!("{name}.jsonl");
        std::fs::write(place.path().join(&file), text.clone() + "\n").unwrap();
        let verify = ["verify", &file, "--profile", "cfd"];
        let import = ["import", &file, "--kind", "cfd", "--run", name];
        if !flags.is_empty() {
            assert_ne!(place.run(&verify).code, 0, "{name}");
            assert_ne!(place.run(&import).code, 0, "{name}");
        }
        let found = place.ok(&[&verify[..], flags].concat());
        assert_eq!(found.contains("fork_type, note"), name == "more", "{found}");
        place.ok(&[&import[..], flags].concat());
        assert_eq!(place.ok(&["export", name, "--format", "cfd"]), text + "\n", "{name}");
    }
    let ran = place.run(&["verify", "bare.jsonl", "--profile", "cfd"]);
    assert!(ran.stderr.contains("--schema-version"), "{}", ran.stderr);
    let ran = place.run(&["import", "bare.jsonl", "--kind", "carl", "--genesis", "x"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

/// F-40: a suite says VERIFIED of nodes that verify against the expectation.
#[test]
fn a_suite_says_what_came_of_a_file_of_nodes() {
    let place = Place::with_store();
    let version = r#","schema_version":"2.0.0""#;
    let good = spelled(r#"{"a":1}"#, r#"{"a":1}"#, (0, ""), version);
    std::fs::write(place.path().join("good.jsonl"), &good).unwrap();
    std::fs::write(place.path().join("bad.jsonl"), good.replace(r#"{"a":1}"#, r#"{"a":2}"#)).unwrap();
    let case = |name: &str, expect: &str| {
        format!(r#"{{"case":"{name}","file":"{name}.jsonl","expect":"{expect}","profile":"cfd"}}"#)
    };
    let suite = format!(r#"{{"cases":[{},{}]}}"#, case("good", "rejected"), case("bad", "verified"));
    std::fs::write(place.path().join("s.json"), suite).unwrap();
    let ran = place.run(&["verify", "--suite", "s.json"]);
    assert_eq!(ran.code, 1);
    for said in ["said VERIFIED (good), expected: rejected", "said REJECTED E0303 (bad), expected: verified"]
    {
        assert!(ran.stdout.contains(said), "{}", ran.stdout);
    }
}
