//! Host functions: nodes that a command computes. Each is called twice and compared, is on record, and is never called by a replay.

use dendrer_object::Value;

use crate::graphs::write_note;
use crate::support::Place;

const PACK: &str = "name: hosts\nversion: v1\ndefine:\n  text_of(request): request.text\n  is_late(answer): answer.day == 'sunday'\n  \"all(a, b, c)\": \"[a, b, c]\"\ntools:\n  model.call: {effect: read}\n";

const GRAPH: &str = "graph hosts
n0 score(request) pure
n1 text_of(request) pure
n2 score(n1) pure
e1 model.call(n2) -> rec frontier[1]
r1 repeat(e1) max 2 until n4 or limit
n3 score(r1) pure
e2 model.call(n3) -> rec frontier[2.*.1]
n4 is_late(e2) pure
n5 score(e2) pure
end r1
e3 graph.inner(r1) -> rec frontier[3]
n6 score(\"in a branch that is not taken\") pure
n7 select(true, n2, n6) pure
n8 all(n0, n7, e3) pure
replay(graph, frontier) == output required
";

const INNER: &str = "graph inner\nn0 score(given) pure\nreplay(graph, frontier) == output required\n";

const RUN: [&str; 7] = [
    "graph",
    "run",
    "hosts.graph",
    "--pack=hosts.yaml",
    "--child=inner.graph",
    "--input=request=request.json",
    "--exec=model.call=cat model.json",
];

fn hosts() -> Place {
    let place = Place::with_store();
    write_note(place.path());
    let declared = format!("{PACK}  score: {{effect: host, timeout: 2s}}\n");
    let defined = PACK.replace("  text_of", "  score(a): a\n  text_of");
    for (name, text) in [
        ("hosts.graph", GRAPH),
        ("inner.graph", INNER),
        ("hosts.yaml", PACK),
        ("declared.yaml", &declared),
        ("defined.yaml", &defined),
        ("edge.graph", &GRAPH.replace("e1 model.call", "e1 score")),
    ] {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    place
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Each value has its place in canonical order, so that the frontier file and the bundle replay without the command.
#[test]
fn host_functions_in_repeats_and_children_replay_in_order() {
    let place = hosts();
    place.ok(&[&RUN[..], &["--function=score=cat model.json"]].concat());
    let (_, listed) = place.json(&["graph", "frontier", "hosts"]);
    let items = listed.get("items").unwrap().as_array().unwrap();
    let places =
        items.iter().map(|one| [text(one, "path"), text(one, "index"), text(one, "effect")].join(" "));
    let expected = "n0 0+1 host, n2 0+3 host, e1 1 read, r1.1.n3 2.1.0+1 host, r1.1.e2 2.1.1 read, r1.1.n5 2.1.1+2 host, \
        r1.2.n3 2.2.0+1 host, r1.2.e2 2.2.1 read, r1.2.n5 2.2.1+2 host, e3.n0 3.0+1 host";
    assert_eq!(places.collect::<Vec<_>>().join(", "), expected);
    let sizes = ["edges", "nodes", "tested"].map(|name| listed.get(name).and_then(Value::as_u64));
    assert_eq!(sizes, [3, 5, 7].map(Some));
    for (format, file) in [("frontier", "hosts.frontier"), ("bundle", "hosts.dnd")] {
        place.ok(&["export", "hosts", "--format", format, "-o", file]);
    }
    let test = ["graph", "test", "hosts.frontier", "hosts.dnd"];
    assert!(place.ok(&test).contains("2 passed, 0 failed"));
    assert!(place.ok(&[&test[..], &["--pack", "declared.yaml"]].concat()).contains("2 passed, 0 failed"));
    assert!(place.ok(&["verify", "hosts", "--replay"]).contains("\nINTACT"));
    let other = place.run(&[&test[..], &["--pack", "hosts.yaml"]].concat());
    assert!(other.code == 7 && other.stdout.contains("E0926"), "{}", other.stdout);
    // A fork with another value of a node holds the host functions that are asked the same.
    std::fs::write(place.path().join("n0.json"), "5").unwrap();
    place.ok(&["replay", "hosts", "--set", "n0=n0.json", "--as", "fork"]);
    assert_eq!(
        place.json(&["replay", "fork"]).1.get("output").unwrap().as_array().unwrap().get(0),
        Some(&Value::from(5u64))
    );
}

/// What is wrong with a host function is said before anything is called, and what differs is on record with its place.
#[test]
fn host_functions_that_are_not_pure_are_refused() {
    let place = hosts();
    let run = |more: &[&str]| place.run(&[&RUN[..], more].concat());
    let check =
        |pack: &str| place.json(&["graph", "check", "hosts.graph", "--child=inner.graph", "--pack", pack]);
    assert_eq!(check("hosts.yaml").1.get("ok"), Some(&Value::from(false)));
    let (code, checked) = check("declared.yaml");
    let nodes = checked.get("nodes").and_then(Value::as_u64);
    assert_eq!(
        (code, nodes, checked.get("tested").unwrap().to_string()),
        (0, Some(4), "[\"score\"]".to_owned())
    );
    for (more, code, exit) in [
        (&["--function=score=echo 1", "--stage=2"][..], "E0946", 2),
        (&["--function=score=echo 1", "--stage=3"], "E0946", 2),
        (&["--function=other=echo 1", "--function=score=echo 1"], "E0106", 2),
        (&["--function=text_of=echo 1"], "E0106", 2),
        (&["--function=model.call=echo 1"], "E0106", 2),
        (&["--pack=defined.yaml", "--function=score=echo 1"], "E0106", 2),
        (&["--function=score"], "E0106", 2),
        (&[], "E0926", 2),
    ] {
        let more: Vec<&str> = more.to_vec();
        let args: Vec<&str> = RUN
            .iter()
            .copied()
            .filter(|arg| !(more.join(" ").contains("--pack=") && arg.starts_with("--pack=")))
            .collect();
        let ran = place.run(&[&args[..], &more[..]].concat());
        assert!(ran.code == exit && ran.stderr.contains(code), "{more:?}: {}", ran.stderr);
    }
    let edge = place.run(&["graph", "check", "edge.graph", "--child=inner.graph", "--pack=declared.yaml"]);
    assert!(edge.stdout.contains("E0928") && edge.stdout.contains("make it a node"), "{}", edge.stdout);
    assert_eq!(place.json(&["runs"]).1.get("items").unwrap().as_array().unwrap().len(), 0);
    // `again` of the second call, a clock, a failure of the second call, and secrets.
    for (name, command, why) in [
        ("line", "cat", " at again: nothing and true"),
        ("clock", "date +%s%N", ": "),
        (
            "second",
            "grep -q again && exit 3; echo 1",
            ", the second one failed: the command failed: exit status: 3",
        ),
        ("text", "echo no JSON", "the answer is not JSON"),
        (
            "secret",
            "echo \"{\\\"a\\\":\\\"ghp_$(date +%N)abcdefghijABCDEFGHIJ012345678\\\"}\"",
            " at a: {\"$redacted\"",
        ),
    ] {
        let ran = run(&["--as", name, &format!("--function=score={command}")]);
        let (code, words) = if name == "text" {
            ("E0936", why.to_owned())
        } else {
            ("E0945", format!("score is not pure: two runs differ{why}"))
        };
        assert!(
            ran.code == 8 && ran.stderr.contains(code) && ran.stderr.contains(&words),
            "{name}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("ghp_"), "{}", ran.stderr);
    }
    let shown = place.ok(&["show", "line@3"]);
    assert!(
        shown.contains("\"ended\":\"not_pure\"")
            && shown.contains("effect \"host\"   tested, not pure by construction"),
        "{shown}"
    );
    // The function is mended, and its call alone was open.
    place.ok(&[
        "graph",
        "run",
        "hosts.graph",
        "--pack=hosts.yaml",
        "--child=inner.graph",
        "--resume=line",
        "--exec=model.call=cat model.json",
        "--function=score=echo 1",
    ]);
    assert_eq!(place.json(&["replay", "line"]).1.get("ok"), Some(&Value::from(true)));
}
