//! Execution graphs: refused unless they can be replayed, run through executors, replayed from the record alone.

use std::path::Path;

use dendrer_object::{Value, json};

use crate::support::{Place, strip};

fn block<'p>(page: &'p str, kind: &str) -> &'p str {
    page.split("```").find_map(|block| block.strip_prefix(kind)?.strip_prefix('\n')).unwrap()
}

const PAGE: &str = include_str!("../../../../docs/graphs.md");

/// The graph and the pack of the page, with answers for its effects.
fn note() -> Place {
    let place = Place::with_store();
    write_note(place.path());
    place
}

pub(crate) fn write_note(dir: &Path) {
    for (name, text) in [
        ("note.graph", block(PAGE, "graph")),
        ("note.yaml", block(PAGE, "yaml")),
        ("request.json", r#"{"text":"what is on friday?"}"#),
        ("model.json", r#"{"day":"friday"}"#),
        ("calendar.json", r#"{"items":["dentist","lunch"]}"#),
        ("free.json", r#"{"items":[]}"#),
        ("monday.json", r#"{"day":"monday"}"#),
        ("null.json", "null"),
        ("again.graph", &block(PAGE, "graph").replace("cal_read(n1)", "cal_read(request)")),
        ("late.graph", "graph late\nn0 parse(today) pure\nreplay(graph, frontier) == output required\n"),
        ("charge.json", r#"{"id":"ch_1"}"#),
        ("sent.json", r#""sent""#),
        ("titled.json", r#"{"title":"on friday"}"#),
        ("done.json", r#"{"status":"done"}"#),
        ("waiting.json", r#"{"status":"waiting"}"#),
    ] {
        std::fs::write(dir.join(name), text).unwrap();
    }
    // A block with a name is a file.
    for block in PAGE.split("```").skip(1).step_by(2) {
        let (first, text) = block.split_once('\n').unwrap();
        if let Some((_, name)) = first.split_once(' ') {
            std::fs::write(dir.join(name), text).unwrap();
        }
    }
}

pub(crate) const RUN: [&str; 10] = [
    "graph",
    "run",
    "note.graph",
    "--pack",
    "note.yaml",
    "--input",
    "request=request.json",
    "--exec",
    "model.call=cat model.json",
    "--exec=tool.cal_read=cat calendar.json",
];

/// The page shows what the program prints.
#[test]
fn the_page_shows_what_is_printed() {
    let place = note();
    let lines = br#"{"type":"action.request","agent":"a","action":{"tool":"search","call_id":"c1","params":{"q":1}}}
{"type":"action.result","agent":"a","author":"runtime","action":{"tool":"search","call_id":"c1"},"result":{"status":"ok","output":{"n":3}}}
{"type":"action.request","agent":"a","action":{"tool":"mail","params":"hi"}}
"#;
    assert_eq!(place.run_with(&["commit", "--run", "plain", "--new"], lines).code, 0);
    let mut tried = 0;
    for block in PAGE.split("```").filter_map(|block| block.strip_prefix("console\n")) {
        for shown in block.split("$ dendrer ").skip(1) {
            let (command, expected) = shown.split_once('\n').unwrap();
            let mut args: Vec<&str> = Vec::new();
            for (at, part) in command.split('"').enumerate() {
                if at % 2 == 1 { args.push(part) } else { args.extend(part.split_whitespace()) }
            }
            let ran = place.run(&args);
            assert_eq!(ran.stdout, expected, "{command}: {}", ran.stderr);
            tried += 1;
        }
    }
    assert!(tried >= 16, "{tried}");
    // The run of a graph takes no lines of others.
    let more = place.run_with(&["commit", "--run", "run-84f2"], b"{\"type\":\"observation.add\"}\n");
    assert_eq!((more.code, more.stderr.contains("E0941")), (5, true), "{}", more.stderr);
    // The contract's sentence: from the bundle alone, in another home, with nothing to ask.
    place.ok(&["export", "run-84f2", "-o", "run.dnd"]);
    let elsewhere = Place::new();
    std::fs::copy(place.path().join("run.dnd"), elsewhere.path().join("run.dnd")).unwrap();
    let again = elsewhere.ok(&["replay", "run.dnd"]);
    assert!(again.contains("replay(graph, frontier) == output   OK"), "{again}");
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// Y-18, Y-19: each rule, with its place, and nothing is run.
#[test]
fn a_graph_that_could_not_be_replayed_is_refused() {
    let place = note();
    let check = |text: &str| {
        std::fs::write(place.path().join("t.graph"), text).unwrap();
        let (code, answer) = place.json(&["graph", "check", "t.graph", "--pack", "note.yaml"]);
        let items = answer.get("items").unwrap().as_array().unwrap();
        let of = |item: &Value| {
            let text = |name: &str| item.get(name).unwrap().as_str().unwrap().to_owned();
            assert!(!text("bug").is_empty() && !text("message").is_empty());
            format!("{}@{}", text("rule"), item.get("line").unwrap())
        };
        (code, items.iter().map(of).collect::<Vec<_>>())
    };
    let end = "replay(graph, frontier) == output required\n";
    for (line, rule) in [
        ("n0 parse(request) pure", "no_contract@2"),
        ("e1 model.call(request)\nn0 parse(e1) pure\n{end}", "no_rec@2"),
        ("e1 model.call(request) -> rec frontier[2]\nn0 parse(e1) pure\n{end}", "frontier_index@2"),
        ("n0 parse(n7) pure\n{end}", "undefined_argument@2"),
        ("n0 parse(n1) pure\nn1 parse(request) pure\nn2 brief(n0, n1) pure\n{end}", "forward_argument@2"),
        ("n0 polish(request) pure\n{end}", "undefined_function@2"),
        ("n0 model.call(request) pure\n{end}", "impure_node@2"),
        ("e1 tool.mail(request) -> rec frontier[1]\nn0 parse(e1) pure\n{end}", "no_effect_class@2"),
        (
            "n0 parse(request) pure\nr1 repeat(n0) until n1\nn1 parse(r1) pure\nend r1\nn2 parse(r1) pure\n{end}",
            "unbounded_loop@3",
        ),
        ("n0 parse(now) pure\n{end}", "ambient_clock@2"),
        ("n0 today() pure\n{end}", "ambient_clock@2"),
        ("n0 parse(env.HOME) pure\n{end}", "ambient_environment@2"),
        ("n0 brief(request, uuid) pure\n{end}", "ambient_chance@2"),
        ("n0 read_file(\"a\") pure\n{end}", "ambient_file@2"),
    ] {
        let (code, found) = check(&format!("graph t\n{}", line.replace("{end}", end)));
        assert_eq!((code, found.first().map(String::as_str)), (1, Some(rule)), "{line}: {found:?}");
    }
    // An ambient name inside a definition that a pure statement uses.
    let pack = block(PAGE, "yaml")
        .replace("request.text", "helper(request)")
        .replace("define:\n", "define:\n  helper(r): now()\n");
    std::fs::write(place.path().join("ambient.yaml"), pack).unwrap();
    let (code, answer) = place.json(&["graph", "check", "note.graph", "--pack", "ambient.yaml"]);
    let first = answer.get("items").unwrap().as_array().unwrap().get(0).unwrap().clone();
    assert_eq!((code, first.get("rule").unwrap().as_str()), (1, Some("ambient_clock")));
    // What is refused is not run.
    std::fs::write(place.path().join("note.graph"), "graph t\nn0 parse(now) pure\n").unwrap();
    assert_eq!(place.run(&RUN).code, 2);
    assert_eq!(place.run(&["log", "t"]).code, 3);
    for text in [
        "",
        "n0 parse(x) pure\n",
        "graph t\nx parse(a) pure\n",
        "graph t\nn0 parse(a pure\n",
        "graph t\nr1 repeat(a) max 2 until n1\n",
    ] {
        assert_eq!(check(text).0, 1, "{text}");
    }
}

/// Y-6, Y-7, Y-23: each way in which a frontier and a graph can part is found at the right edge, with both sides.
#[test]
fn each_change_of_a_frontier_is_found_where_it_is() {
    let place = note();
    place.ok(&RUN);
    let text = place.ok(&["export", "run-84f2", "--format", "frontier"]);
    let lines: Vec<Value> = text.lines().map(|line| json::parse_door(line.as_bytes()).unwrap()).collect();
    let with = |value: &Value, path: &[&str], new: Value| {
        fn set(value: &Value, path: &[&str], new: Value) -> Value {
            let Some((first, rest)) = path.split_first() else { return new };
            let mut members = value.as_object().unwrap().clone();
            let inner = set(value.get(first).unwrap_or(&Value::Null), rest, new);
            members.set(first, inner);
            Value::Object(members)
        }
        set(value, path, new)
    };
    let test = |lines: &[Value]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(place.path().join("x.frontier"), text).unwrap();
        let (code, answer) = place.json(&["graph", "test", "x.frontier"]);
        let divergence = answer
            .get("items")
            .unwrap()
            .as_array()
            .unwrap()
            .get(0)
            .unwrap()
            .get("divergence")
            .unwrap()
            .clone();
        let text = |name: &str| divergence.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        (code, text("kind"), text("path"))
    };
    assert_eq!(test(&lines), (0, String::new(), String::new()));
    let [header, e1, e2] = &lines[..] else { panic!("{lines:?}") };
    let other = json::parse_door(br#"{"day":"monday"}"#).unwrap();
    let redigested = |edge: &Value, value: &Value| {
        with(&with(edge, &["value"], value.clone()), &["digest"], Value::from(value.digest()))
    };
    let renamed = |edge: &Value, path: &str| with(edge, &["path"], Value::from(path));
    for (name, changed, kind, path) in [
        ("removed", vec![header.clone(), e1.clone()], "missing", "e2"),
        ("added", vec![header.clone(), e1.clone(), e2.clone(), renamed(e2, "e9")], "surplus", "e9"),
        ("doubled", vec![header.clone(), e1.clone(), e2.clone(), e2.clone()], "duplicate", "e2"),
        ("swapped", vec![header.clone(), e2.clone(), e1.clone()], "reordered", "e1"),
        (
            "value",
            vec![header.clone(), with(e1, &["value"], other.clone()), e2.clone()],
            "changed_value",
            "e1",
        ),
        (
            "value and digest",
            vec![header.clone(), redigested(e1, &other), e2.clone()],
            "changed_request",
            "e2",
        ),
        (
            "arguments",
            vec![header.clone(), with(e1, &["args"], Value::array([Value::from("x")])), e2.clone()],
            "changed_request",
            "e1",
        ),
        (
            "call",
            vec![header.clone(), with(e1, &["call"], Value::from("tool.cal_read")), e2.clone()],
            "changed_request",
            "e1",
        ),
        (
            "node",
            vec![with(header, &["nodes", "n1"], Value::from("x")), e1.clone(), e2.clone()],
            "changed_node",
            "n1",
        ),
        (
            "output",
            vec![with(header, &["output"], Value::from("x")), e1.clone(), e2.clone()],
            "changed_output",
            "output",
        ),
        (
            "input",
            vec![with(header, &["inputs", "request", "text"], Value::from("x")), e1.clone(), e2.clone()],
            "changed_request",
            "e1",
        ),
    ] {
        assert_eq!(test(&changed), (7, kind.to_owned(), path.to_owned()), "{name}");
    }
    // A changed pack: the same frontiers are the regression suite.
    std::fs::write(
        place.path().join("new.yaml"),
        block(PAGE, "yaml").replace("size(calendar.items)", "size(calendar.items) + 1"),
    )
    .unwrap();
    let ran = place.run(&["graph", "test", "--runs", "ticks > 0", "--pack", "new.yaml"]);
    assert!(ran.code == 7 && ran.stdout.contains("FAIL  changed_node at n2: run-84f2\n"), "{}", ran.stdout);
}

/// A repeat, a condition, a choice, a child, and edges that are asked at once.
#[test]
fn repeats_conditions_and_children_are_recorded_and_replayed() {
    let place = Place::with_store();
    let graph = "graph counting
n0 start(request) pure
r1 repeat(n0) max 5 until n3   # a round is one look at the counter
e1 tool.add(r1) -> rec frontier[1.*.1]
n2 keep(e1) pure
n3 enough(n2) pure
n4 keep(n2) pure
end r1
n5 enough(r1) pure
e2 model.praise(r1) if n5 -> rec frontier[2]
e3 clock.now() -> rec frontier[3]
e4 graph.greet(e2, \"world\") -> rec frontier[4]
e5 model.praise(r1) if n0 -> rec frontier[5]
n6 select(n5, e4, \"too little\") pure
n7 switch(r1, 7, \"seven\", 8, \"eight\", \"more\") pure
n8 result(n6, n7, e3) pure
replay(graph, frontier) == output required
";
    let child = "graph greet
n0 join(words, whom) pure
e1 tool.add(1) -> rec frontier[1]
n1 join(n0, e1) pure
replay(graph, frontier) == output required
";
    let pack = "name: counting
version: v1
define:
  start(request): request.from
  keep(n): n
  enough(n): n >= 7
  join(a, b): string(a) + ' ' + string(b)
  \"result(words, n, at)\": \"{'words': words, 'n': n, 'at': at}\"
tools:
  tool.add: {effect: read, output: json}
  model.praise: {effect: read}
  clock.now: {effect: read}
";
    for (name, text) in [
        ("g.graph", graph.replace("if n0", "if n5")),
        ("c.graph", child.to_owned()),
        ("p.yaml", pack.to_owned()),
        ("r.json", r#"{"from":1}"#.to_owned()),
    ] {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    // Adds 3 to what it is given; needs no other program than the shell's.
    let add = r#"--exec=tool.add=read l; n=${l#*[}; n=${n%%]*}; echo $((n+3))"#;
    let run = [
        "graph",
        "run",
        "g.graph",
        "--pack",
        "p.yaml",
        "--child",
        "c.graph",
        "--input",
        "request=r.json",
        add,
        "--exec=model.praise=echo well done",
        "--exec=clock.now=date +%s",
    ];
    place.ok(&run);
    let (_, frontier) = place.json(&["graph", "frontier", "counting"]);
    let items = frontier.get("items").unwrap().as_array().unwrap();
    let of = |item: &Value, name: &str| item.get(name).unwrap().as_str().unwrap().to_owned();
    let places: Vec<String> =
        items.iter().map(|item| format!("{} {}", of(item, "index"), of(item, "path"))).collect();
    assert_eq!(places, ["1.1.1 r1.1.e1", "1.2.1 r1.2.e1", "2 e2", "3 e3", "4.1 e4.e1", "5 e5"]);
    let (_, replayed) = place.json(&["replay", "counting"]);
    assert_eq!(
        (replayed.get("made").unwrap().as_str(), replayed.get("ok").unwrap().as_bool()),
        (Some("graph"), Some(true))
    );
    let output = replayed.get("output").unwrap();
    assert_eq!((of(output, "words"), of(output, "n")), ("well done world 4".to_owned(), "seven".to_owned()));
    // Both forms of a graph have one digest.
    let (_, shown) = place.json(&["graph", "show", "counting"]);
    std::fs::write(place.path().join("g.json"), shown.get("graph").unwrap().to_string()).unwrap();
    let (_, checked) = place.json(&["graph", "check", "g.json", "--pack", "p.yaml"]);
    assert_eq!(
        (checked.get("ok").unwrap().as_bool(), checked.get("digest")),
        (Some(true), shown.get("digest")),
        "{checked}"
    );
    // A name that is taken, an executor and an input that are missing: nothing is called or recorded.
    assert_eq!(place.run(&run).code, 5);
    let without: Vec<&str> =
        run.iter().copied().filter(|arg| !arg.contains("clock.now")).chain(["--as", "other"]).collect();
    assert_eq!(place.run(&without).code, 2);
    assert_eq!(place.run(&["log", "other"]).code, 3);
    // An effect that fails is on record, and the run stays open.
    let mut fails = run.to_vec();
    fails[10] = "--exec=model.praise=exit 3";
    fails.extend(["--as", "broken"]);
    let ran = place.run(&fails);
    assert_eq!(ran.code, 8, "{}", ran.stderr);
    assert!(place.ok(&["log", "broken"]).contains("error model.praise"), "{}", place.ok(&["log", "broken"]));
    assert_eq!(place.run(&["replay", "broken"]).code, 7);
    // Another value, as a fork.
    std::fs::write(place.path().join("v.json"), "\"fine\"").unwrap();
    place.ok(&["replay", "counting", "--set", "e2=v.json", "--as", "injected"]);
    let answers = (1..).map_while(|tick| {
        let (code, shown) = place.json(&["show", &format!("injected@{tick}")]);
        (code == 0).then(|| shown.get("content").unwrap().clone())
    });
    let kinds = answers.filter(|content| content.get("edge").is_some_and(|edge| of(edge, "path") == "e2"));
    let kinds: Vec<Value> = kinds.filter_map(|content| content.get("fork_type").cloned()).collect();
    assert_eq!(kinds, [Value::from("injection")]);
    place.ok(&["replay", "injected"]);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// R-001: recorded frontiers are fixtures; files, bundles and runs are replayed, and what parts is said in the forms of other programs.
#[test]
fn frontiers_are_a_regression_suite_in_every_form() {
    let place = note();
    place.ok(&RUN);
    place.ok(&["export", "run-84f2", "--format", "frontier", "-o", "suite.frontier"]);
    place.ok(&["export", "run-84f2", "-o", "suite.dnd"]);
    std::fs::create_dir(place.path().join("suite")).unwrap();
    for name in ["suite.frontier", "suite.dnd"] {
        std::fs::rename(place.path().join(name), place.path().join("suite").join(name)).unwrap();
    }
    assert_eq!(
        place.ok(&["graph", "test", "suite"]),
        "OK    suite/suite.dnd\nOK    suite/suite.frontier\n2 passed, 0 failed\n"
    );
    let runs = ["graph", "test", "--runs", "name == \"run-84f2\""];
    assert_eq!(place.ok(&runs), "OK    run-84f2\n1 passed, 0 failed\n");
    assert_eq!(place.ok(&[&runs[..], &["--since", "1h"]].concat()), "OK    run-84f2\n1 passed, 0 failed\n");

    let changed = ["graph", "test", "suite", "--graph", "again.graph"];
    let in_form = |form| {
        let ran = place.run(&[&changed[..], &["--format", form]].concat());
        assert_eq!(ran.code, 7, "{}", ran.stderr);
        ran.stdout
    };
    let junit = in_form("junit");
    assert!(junit.contains("tests=\"2\" failures=\"2\""), "{junit}");
    assert_eq!(junit.matches("<failure message=\"changed_request at e2: ").count(), 2, "{junit}");
    let sarif = json::parse_door(in_form("sarif").as_bytes()).unwrap();
    let run = sarif.get("runs").unwrap().as_array().unwrap().get(0).unwrap().clone();
    assert_eq!(run.get("results").unwrap().as_array().unwrap().len(), 2, "{run:?}");
    let github = in_form("github");
    assert!(github.starts_with("::error file=suite/suite.dnd,title=changed_request::"), "{github}");
    let check = ["graph", "check", "late.graph", "--pack", "note.yaml", "--format", "github"];
    let ran = place.run(&check);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.starts_with("::error file=late.graph,line=2,col=1,title=ambient_clock::"),
        "{}",
        ran.stdout
    );
}

/// F7: a directory is tested with those inside it; links to directories and directories with a dot are left alone.
#[test]
fn a_suite_has_directories_inside() {
    let place = note();
    place.ok(&RUN);
    place.ok(&["export", "run-84f2", "--format", "frontier", "-o", "good.frontier"]);
    let at = |path: &str| place.path().join(path);
    std::fs::create_dir_all(at("suite/more/deep")).unwrap();
    std::fs::create_dir_all(at("suite/.git")).unwrap();
    std::fs::copy(at("good.frontier"), at("suite/good.frontier")).unwrap();
    for path in ["suite/more/deep/bad.frontier", "suite/.git/bad.frontier"] {
        std::fs::write(at(path), "{}\n").unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(at("suite"), at("suite/more/back")).unwrap();
    let ran = place.run(&["graph", "test", "suite"]);
    assert_eq!(ran.code, 7, "{}", ran.stderr);
    assert!(ran.stdout.ends_with("1 passed, 1 failed\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("suite/more/deep/bad.frontier"), "{}", ran.stdout);
    std::fs::remove_file(at("suite/good.frontier")).unwrap();
    std::fs::remove_file(at("suite/more/deep/bad.frontier")).unwrap();
    assert_eq!(place.run(&["graph", "test", "suite"]).code, 2);
}

/// A node that another pack cannot compute, and one that another graph lacks, are divergences of their frontier and do not end the test.
#[test]
fn a_node_that_cannot_be_computed_any_more_is_a_divergence() {
    let place = note();
    place.ok(&RUN);
    place.ok(&["export", "run-84f2", "--format", "frontier", "-o", "a.frontier"]);
    let pack = std::fs::read_to_string(place.path().join("note.yaml")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write("other.yaml", &pack.replace("size(calendar.items)", "size(calendar.meetings)"));
    let ran = place.run(&["graph", "test", "a.frontier", "--pack", "other.yaml"]);
    assert_eq!(ran.code, 7, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("FAIL  changed_node at n2: a.frontier\n"), "{}", ran.stdout);
    let more = block(PAGE, "graph").replace("n1 plan(e1) pure\n", "n1 plan(e1) pure\nn3 plan(e1) pure\n");
    write("more.graph", &more);
    let mut run = RUN.to_vec();
    run[2] = "more.graph";
    run.extend(["--as", "more"]);
    place.ok(&run);
    let ran = place.run(&["graph", "test", "--runs", "name == \"more\"", "--graph", "note.graph"]);
    assert_eq!(ran.code, 7, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("FAIL  changed_node at n3: more\n"), "{}", ran.stdout);
}

/// R-001: a graph is acyclic; one that runs itself is refused and, where a file says so all the same, stopped.
#[test]
fn a_graph_that_runs_itself_is_refused_and_stopped() {
    let place = note();
    let text = "graph loop\nn0 parse(x) pure\ne1 graph.loop(n0) -> rec frontier[1]\nn1 parse(e1) pure\nreplay(graph, frontier) == output required\n";
    std::fs::write(place.path().join("loop.graph"), text).unwrap();
    let ran = place.run(&["graph", "check", "loop.graph", "--pack", "note.yaml", "--child", "loop.graph"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("error[E0929]: unbounded_loop: graph loop runs itself"), "{}", ran.stdout);
    place.ok(&RUN);
    place.ok(&["export", "run-84f2", "--format", "frontier", "-o", "a.frontier"]);
    let lines = std::fs::read_to_string(place.path().join("a.frontier")).unwrap();
    let header = json::parse_door(lines.lines().next().unwrap().as_bytes()).unwrap();
    let graph = r#"{"graph":"loop","statements":[{"id":"e1","call":"graph.loop","args":[],"rec":"1"},{"id":"n1","call":"plan","args":[{"ref":"e1"}],"pure":true}]}"#;
    let mut hostile = json::parse_door(graph.as_bytes()).unwrap().as_object().unwrap().clone();
    hostile.set("children", Value::record([("loop", json::parse_door(graph.as_bytes()).unwrap())]));
    let mut header = header.as_object().unwrap().clone();
    header.set("graph", Value::Object(hostile));
    let line = json::to_string(&Value::Object(header));
    std::fs::write(place.path().join("loop.frontier"), format!("{line}\n")).unwrap();
    let ran = place.run(&["graph", "test", "loop.frontier"]);
    assert_eq!(ran.code, 7, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("unbounded_loop at e1: graph loop runs itself"), "{}", ran.stdout);
}

/// A divergence is written down beside the closed run, in the casebook.
#[test]
fn a_divergence_is_recorded_in_the_casebook() {
    let place = note();
    place.ok(&RUN);
    let before = place.ok(&["runs"]);
    place.ok(&["replay", "run-84f2", "--record"]);
    assert_eq!(place.ok(&["runs"]), before, "without a divergence there is nothing to write down");
    place.ok(&["graph", "show", "run-84f2", "--format", "dot"]);
    let svg = place.ok(&["graph", "show", "note.graph", "--format", "svg"]);
    assert!(svg.starts_with("<?xml"), "{svg}");
}

/// R-001: re-evaluating the graph against a recorded frontier must reproduce the run bit-for-bit, on any machine, at any later date.
/// Four programs that know nothing of dendrer are the edges; the bundle alone is replayed, with no network and an empty home.
#[test]
#[cfg(target_os = "linux")]
fn a_bundle_is_replayed_without_network_and_home() {
    let place = note();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write(
        "model.py",
        "import sys\nasked = sys.stdin.readline()\nprint('{\"day\":\"friday\",\"asked\":%d}' % len(asked))\n",
    );
    write("tool.sh", "read -r line\nprintf '[1.5,\"%s\"]' \"$PPID\"\n");
    write("clock.sh", "date +%s%N\n");
    write("dice.sh", "od -An -N4 -tu4 /dev/urandom | tr -d ' \\n'\n");
    write(
        "four.graph",
        "graph four\ne1 model.call(\"plan\") -> rec frontier[1]\ne2 clock.now() -> rec frontier[2]\ne3 chance.dice() -> rec frontier[3]\n\
         e4 tool.look(e1.day, e3) -> rec frontier[4]\nn1 brief(e1, e2, e3, e4) pure\nreplay(graph, frontier) == output required\n",
    );
    write(
        "four.yaml",
        "name: four\nversion: v1\ndefine:\n  \"brief(a, b, c, d)\": \"{'day': a.day, 'all': [b, c, d]}\"\ntools:\n  model.call: {effect: read}\n  \
         clock.now: {effect: read}\n  chance.dice: {effect: read}\n  tool.look: {effect: read}\n",
    );
    place.ok(&[
        "graph",
        "run",
        "four.graph",
        "--pack",
        "four.yaml",
        "--exec",
        "model.call=python3 model.py",
        "--exec",
        "clock.now=sh clock.sh",
        "--exec",
        "chance.dice=sh dice.sh",
        "--exec",
        "tool.look=sh tool.sh",
    ]);
    let output = |text: &str| json::parse_door(text.as_bytes()).unwrap().get("output").unwrap().clone();
    let recorded = output(&place.ok(&["replay", "four", "--json"]));
    place.ok(&["export", "four", "-o", "four.dnd"]);
    let away = tempfile::tempdir().unwrap();
    std::fs::copy(place.path().join("four.dnd"), away.path().join("four.dnd")).unwrap();
    let command = |program: &str| {
        let mut command = std::process::Command::new(program);
        command.current_dir(away.path()).env_clear().env("HOME", away.path());
        command
    };
    let isolated = command("/usr/bin/unshare").args(["-rn", "true"]).status().is_ok_and(|ran| ran.success());
    let mut replay = match isolated {
        true => {
            let mut replay = command("/usr/bin/unshare");
            replay.arg("-rn").arg(env!("CARGO_BIN_EXE_dendrer"));
            replay
        }
        false => {
            eprintln!("SKIPPED: no network namespace can be made here; replayed with an empty home alone");
            command(env!("CARGO_BIN_EXE_dendrer"))
        }
    };
    let ran = replay.args(["replay", "four.dnd", "--json"]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(output(std::str::from_utf8(&ran.stdout).unwrap()), recorded);
}

/// The test that is exported replays the run, and fails if the bundle is not the one that was recorded.
#[test]
fn an_exported_test_replays_the_run() {
    let place = note();
    place.ok(&RUN);
    place.ok(&["export", "run-84f2", "--format", "pytest", "-o", "test_run.py"]);
    let path = place.path().join("test_run.py");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("def test_run_84f2(tmp_path):"), "{text}");
    let call = "import pathlib, tempfile, test_run; test_run.test_run_84f2(pathlib.Path(tempfile.mkdtemp()))";
    let python = || {
        let mut command = std::process::Command::new("python3");
        command.args(["-B", "-c", call]).current_dir(place.path());
        command.env("DENDRER", env!("CARGO_BIN_EXE_dendrer")).output()
    };
    let Ok(ran) = python() else {
        eprintln!("SKIPPED: no python3");
        return;
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let middle = text.len() / 2;
    let other = if text.as_bytes()[middle] == b'A' { "B" } else { "A" };
    let changed = format!("{}{other}{}", &text[..middle], &text[middle + 1..]);
    std::fs::write(&path, changed).unwrap();
    assert!(!python().unwrap().status.success(), "a changed bundle is not replayed");
}

/// A frontier file is what it says as a whole: other places, effects, absent members and refused graphs do not pass.
#[test]
fn a_changed_frontier_file_does_not_pass() {
    let place = note();
    place.ok(&RUN);
    place.ok(&["export", "run-84f2", "--format", "frontier", "-o", "a.frontier"]);
    let text = std::fs::read_to_string(place.path().join("a.frontier")).unwrap();
    for (from, to) in [
        (r#""index":"1""#, r#""index":"9""#),
        (r#""effect":"read""#, r#""effect":"write""#),
        (r#""nodes":{"#, r#""was":{"#),
        (r#""output":{"#, r#""out":{"#),
        (r#""rec":"2""#, r#""rec":"7""#),
        (r#""tool.cal_read":{"effect":"read"}"#, r#""tool.other":{"effect":"read"}"#),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        std::fs::write(place.path().join("b.frontier"), changed).unwrap();
        let ran = place.run(&["graph", "test", "b.frontier", "a.frontier"]);
        assert_eq!(ran.code, 7, "{to}: {}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stdout.contains("OK    a.frontier") && ran.stdout.ends_with("1 passed, 1 failed\n"),
            "{}",
            ran.stdout
        );
    }
    std::fs::create_dir(place.path().join("empty")).unwrap();
    assert_eq!(place.run(&["graph", "test", "empty"]).code, 2);
}

/// What JSON has no form for is recorded, exported and replayed like any value.
#[test]
fn values_beside_json_pass_their_own_test() {
    let place = note();
    for (name, answer) in [("nan", "NaN"), ("half", r#""\ud800""#), ("dollar", r#"{"$float":"NaN"}"#)] {
        let file = format!("{name}.json");
        std::fs::write(place.path().join(&file), answer).unwrap();
        std::fs::write(place.path().join("one.graph"), "graph one\ne1 model.call() -> rec frontier[1]\nn1 same(e1) pure\nreplay(graph, frontier) == output required\n").unwrap();
        std::fs::write(
            place.path().join("one.yaml"),
            "name: one\nversion: v1\ndefine:\n  same(a): a\ntools:\n  model.call: {effect: read}\n",
        )
        .unwrap();
        let exec = format!("model.call=cat {file}");
        place.ok(&["graph", "run", "one.graph", "--as", name, "--pack", "one.yaml", "--exec", &exec]);
        let frontier = format!("{name}.frontier");
        place.ok(&["export", name, "--format", "frontier", "-o", &frontier]);
        place.ok(&["graph", "test", &frontier]);
    }
}

/// A run that did not end is open and not divergent, and nothing of it is written down; a value that was withheld is said to be.
#[test]
fn an_open_run_and_a_withheld_value_are_no_divergence() {
    let place = note();
    let mut failing = RUN.to_vec();
    *failing.last_mut().unwrap() = "--exec=tool.cal_read=exit 3";
    assert_eq!(place.run(&failing).code, 8);
    let ran = place.run(&["replay", "run-84f2", "--record"]);
    assert_eq!(ran.code, 7);
    assert!(
        ran.stdout.contains("OPEN         the run did not end: there is no value for e2"),
        "{}",
        ran.stdout
    );
    assert!(!place.ok(&["runs"]).contains("casebook"));

    let mut again = RUN.to_vec();
    again.extend(["--as", "whole"]);
    place.ok(&again);
    place.ok(&["export", "whole", "-o", "w.dnd"]);
    strip(place.path().join("w.dnd"), &["/result/output"]);
    for verb in [&["replay", "w.dnd"][..], &["graph", "frontier", "w.dnd"]] {
        let ran = place.run(verb);
        assert_eq!(ran.code, 6, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("erased or withheld"), "{}", ran.stderr);
    }
}

/// A repeat has as many rounds as its text says, or is refused; built-in functions take as many arguments as they take.
#[test]
fn what_cannot_be_evaluated_is_refused_before_it_runs() {
    let place = note();
    let rounds = "graph far\nr1 repeat(0) max 100001 until n2\nn2 plan(r1) pure\nn1 plan(r1) pure\nend r1\nn3 plan(r1) pure\n";
    let arity = "graph far\nn1 select(1, 2) pure\n";
    for (text, rule) in [(rounds, "unbounded_loop"), (arity, "undefined_function")] {
        let text = format!("{text}replay(graph, frontier) == output required\n");
        std::fs::write(place.path().join("far.graph"), text).unwrap();
        let ran = place.run(&["graph", "check", "far.graph", "--pack", "note.yaml"]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stdout.contains(rule), "{}", ran.stdout);
    }
    let shown = place.ok(&["graph", "show", "note.graph", "--json"]);
    std::fs::write(place.path().join("shown.json"), shown).unwrap();
    let check = |file| place.ok(&["graph", "check", file, "--pack", "note.yaml"]);
    assert_eq!(check("shown.json"), check("note.graph"));
}

/// Answers requests by HTTP, in turn, and returns what was sent to it.
fn service(answers: Vec<(u16, &'static str)>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/answer", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let mut sent = Vec::new();
        for (status, body) in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let (mut line, mut length, mut first) = (String::new(), 0, String::new());
            while reader.read_line(&mut line).unwrap() > 2 {
                if first.is_empty() {
                    first.clone_from(&line);
                }
                if let Some((name, value)) = line.split_once(':')
                    && name.eq_ignore_ascii_case("content-length")
                {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut asked = vec![0; length];
            reader.read_exact(&mut asked).unwrap();
            sent.push(format!("{} {}", first.trim(), String::from_utf8(asked).unwrap()));
            let size = body.len();
            let more = "location: /other\r\nconnection: close";
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {size}\r\n{more}\r\n\r\n{body}");
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
        }
        sent
    });
    (url, served)
}

/// Y-1: an effect is answered by a service as it is by a command; one that does not answer with a value fails the edge.
#[test]
fn a_service_answers_an_effect() {
    let place = note();
    let (url, served) = service(vec![(200, r#"{"day":"friday"}"#)]);
    let http = format!("model.call={url}");
    let mut args =
        vec!["graph", "run", "note.graph", "--pack", "note.yaml", "--input", "request=request.json"];
    args.extend(["--exec=tool.cal_read=cat calendar.json", "--http", &http]);
    let ran = place.ok(&args);
    assert!(ran.contains("closed     good"), "{ran}");
    let sent = "{\"args\":[\"what is on friday?\"],\"call\":\"model.call\",\"path\":\"e1\"}\n";
    assert_eq!(served.join().unwrap(), [format!("POST /answer HTTP/1.1 {sent}")]);
    assert!(place.ok(&["replay", "run-84f2"]).contains("OK, no model and no tool was called"));
    // Another status, a redirect, a body that is no text, nobody there.
    for (name, answer) in [("bad", (500, "no")), ("moved", (302, "{}"))] {
        let (url, served) = service(vec![answer]);
        let http = format!("model.call={url}");
        let ran = place.run(&[&args[..args.len() - 1], &[&http, "--as", name]].concat());
        assert_eq!(ran.code, 8, "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("answered with status {}", answer.0)), "{}", ran.stderr);
        served.join().unwrap();
    }
    for (http, code, why) in [
        ("model.call=http://127.0.0.1:1/", 8, "the service cannot be asked"),
        ("model.call=ftp://x/", 2, "does not begin with http:// or https://"),
        ("tool.cal_read=http://127.0.0.1:1/", 2, "two executors"),
    ] {
        let ran = place.run(&[&args[..args.len() - 1], &[http, "--as", "gone"]].concat());
        assert_eq!((ran.code, ran.stderr.contains(why)), (code, true), "{http}: {}", ran.stderr);
    }
}

/// Y-4: a pure function is a module as well; the run and its frontier file carry it.
#[test]
fn a_function_of_a_pack_is_a_module() {
    let place = note();
    std::fs::write(
        place.path().join("value_of.wasm"),
        include_bytes!("../../../../examples/modules/value_of.wasm"),
    )
    .unwrap();
    let pack = block(PAGE, "yaml")
        .replace("parse(request): request.text", "parse(request): {module: value_of.wasm}");
    std::fs::write(place.path().join("note.yaml"), pack).unwrap();
    place.ok(&["pack", "check", "note.yaml"]);
    assert!(place.ok(&["graph", "check", "note.graph", "--pack", "note.yaml"]).starts_with("OK"));
    place.ok(&RUN);
    place.ok(&["export", "run-84f2", "--format", "frontier", "-o", "run.frontier"]);
    std::fs::remove_file(place.path().join("value_of.wasm")).unwrap();
    assert!(place.ok(&["replay", "run-84f2"]).contains("OK, no model and no tool was called"));
    assert!(place.ok(&["graph", "test", "run.frontier"]).contains("1 passed, 0 failed"));
    assert!(place.ok(&["verify", "run-84f2", "--replay"]).contains("\nINTACT"));
    // A module that is gone, and one that is none.
    let gone = place.run(&["graph", "check", "note.graph", "--pack", "note.yaml"]);
    assert!(gone.code == 1 || gone.stderr.contains("cannot read"), "{}", gone.stderr);
    std::fs::write(place.path().join("value_of.wasm"), "no module").unwrap();
    let none = place.run(&["graph", "check", "note.graph", "--pack", "note.yaml"]);
    assert_eq!(none.code, 1, "{}{}", none.stdout, none.stderr);
}

/// Another graph is compiled before it is replayed: what it reads beside the record is refused, and no value is served to it.
#[test]
fn a_changed_graph_is_checked_before_it_is_tested() {
    let place = note();
    place.ok(&RUN);
    let other = block(PAGE, "graph").replace("parse(request)", "parse(today)");
    std::fs::write(place.path().join("other.graph"), other).unwrap();
    let tested = place.run(&["graph", "test", "--runs", "name == \"run-84f2\"", "--graph", "other.graph"]);
    assert!(tested.stdout.contains("the graph is refused: ambient_clock at n0"), "{}", tested.stdout);
    assert_ne!(tested.code, 0);
}
