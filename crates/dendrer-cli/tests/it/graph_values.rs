//! Runs of graphs with other values of edges, recorded graphs that are checked again, and frontiers of runs that are no graph's.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;

use dendrer::change::graph::{GraphTerms, run_graph};
use dendrer::graph::eval::EdgeRequest;
use dendrer::graph::text;
use dendrer::recorder::Fixed;
use dendrer::repo::{Mode, Repo};
use dendrer::run::frontier::graph_run;
use dendrer::trust::UserTrust;
use dendrer::{Trace, pack};
use dendrer_object::Value;
use dendrer_testkit::{memory_with_key, run_name};
use dendrer_view::graphs::frontier_file;

use crate::graphs::{RUN, write_note};
use crate::support::Place;

fn recorded() -> Place {
    let place = Place::with_store();
    write_note(place.path());
    place.ok(&RUN);
    place
}

fn member(value: &Value, path: &[&str]) -> Value {
    let found = path.iter().try_fold(value, |value, name| value.get(name));
    found.unwrap_or_else(|| panic!("{path:?}: {value}")).clone()
}

fn paths(value: &Value, name: &str) -> Vec<String> {
    let listed = member(value, &[name]);
    listed.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

/// Y-15: a fork with other values replays, or is not made and says what is missing; it is no test.
#[test]
fn a_fork_with_other_values_replays_and_is_hypothetical() {
    let place = recorded();
    let set = ["replay", "run-84f2", "--set", "e1=monday.json"];
    let ran = place.run(&[&set[..], &["--as", "alone"]].concat());
    assert_eq!(ran.code, 7, "{}", ran.stderr);
    let words = "not forked   it would not replay: there is no value for e2; --set e2=FILE gives one\n";
    assert!(ran.stdout.ends_with(words), "{}", ran.stdout);
    assert_eq!(place.run(&["replay", "alone"]).code, 3);
    let (code, made) = place.json(&[&set[..], &["--set", "e2=free.json", "--as", "both"]].concat());
    assert_eq!((code, member(&made, &["fork"])), (0, Value::from("both")));
    assert_eq!((paths(&made, "asked"), paths(&made, "unknown").len()), (vec!["e1".to_owned()], 0));
    let (code, replayed) = place.json(&["replay", "both"]);
    assert_eq!((code, member(&replayed, &["output"])), (0, member(&made, &["output"])));
    // Its second request is the one that the graph makes, and each answer follows from a request.
    let request = member(&place.json(&["show", "both@4"]).1, &["content", "action", "params"]);
    assert_eq!(request.to_string(), r#"["monday"]"#);
    place.ok(&["verify", "both", "--replay"]);
    assert!(place.ok(&["runs"]).contains("hypothetical: both"));
    let (_, listed) = place.json(&["runs", "--where", "hypothetical"]);
    let items = member(&listed, &["items"]);
    let names: Vec<Value> = items.as_array().unwrap().iter().map(|run| member(run, &["name"])).collect();
    assert_eq!(names, [Value::from("both")]);
    // As a run, a bundle and a frontier file, and as a fork of it.
    place.ok(&["fork", "both@5", "--as", "child"]);
    place.ok(&["export", "both", "-o", "b.dnd"]);
    place.ok(&["export", "both", "--format", "frontier", "-o", "b.frontier"]);
    place.ok(&["export", "run-84f2", "--format", "frontier", "-o", "a.frontier"]);
    for test in [&["b.dnd"][..], &["b.frontier"], &["--runs", "name == \"both\" || name == \"child\""]] {
        let ran = place.run(&[&["graph", "test"][..], test].concat());
        assert!(ran.code == 7 && ran.stdout.contains("FAIL  E0944"), "{test:?}: {}", ran.stdout);
        assert!(ran.stdout.contains("0 passed"), "{test:?}: {}", ran.stdout);
    }
    place.ok(&["graph", "test", "a.frontier"]);
    place.ok(&["graph", "test", "--runs", "graph == \"run-84f2\" && !hypothetical"]);
}

/// Y-15: a value that a node cannot take is answered: the path that fails, what is asked as before, and what is not known after it.
#[test]
fn a_value_that_a_node_cannot_take_is_answered() {
    let place = recorded();
    let set = ["replay", "run-84f2", "--set", "e1=null.json"];
    let (code, answer) = place.json(&set);
    assert_eq!((code, member(&answer, &["first", "node"])), (0, Value::from("n1")));
    assert_eq!(member(&answer, &["first", "recorded"]), Value::from("friday"));
    let why = member(&answer, &["first", "now", "error"]);
    let failed = member(&answer, &["failed"]).as_array().unwrap().get(0).unwrap().clone();
    assert_eq!((member(&failed, &["path"]), member(&failed, &["error"])), (Value::from("n1"), why.clone()));
    let lists = ["reaches", "same", "asked", "unknown"].map(|name| paths(&answer, name).join(" "));
    assert_eq!(lists, ["n1", "n0", "e1", "e2 n2"]);
    assert_eq!(member(&answer, &["output"]), Value::Null);
    let ran = place.run(&set);
    let end = format!("unknown      e2, n2\nfails        n1: {}\n", why.as_str().unwrap());
    assert!(ran.code == 0 && ran.stdout.ends_with(&end), "{}{}", ran.stdout, ran.stderr);
    let ran = place.run(&[&set[..], &["--as", "none"]].concat());
    assert!(ran.code == 7 && ran.stdout.contains("n1 cannot be computed"), "{}", ran.stdout);
    // A run that a node ended takes another value, and what does not follow from it is the same.
    std::fs::copy(place.path().join("null.json"), place.path().join("model.json")).unwrap();
    assert_eq!(place.run(&[&RUN[..], &["--as", "failed"]].concat()).code, 8);
    let set = ["replay", "failed", "--set", "e1=monday.json", "--set", "e2=free.json"];
    let (code, answer) = place.json(&[&set[..], &["--as", "mended"]].concat());
    let lists = ["reaches", "same", "failed"].map(|name| member(&answer, &[name]).to_string());
    assert_eq!((code, lists), (0, [r#"["n1","n2"]"#, r#"["n0"]"#, "[]"].map(str::to_owned)));
    assert_eq!(place.run(&["replay", "mended"]).code, 0);
    let ran = place.run(&["replay", "failed", "--set", "e7=free.json"]);
    assert!(ran.code == 2 && ran.stderr.contains("E0938"), "{}", ran.stderr);
}

/// X-7: requests and answers of any run are listed, and no frontier file is made of them.
#[test]
fn the_calls_of_any_run_are_listed_and_are_no_frontier() {
    let place = Place::with_store();
    let lines = br#"{"type":"action.request","agent":"a","action":{"tool":"search","call_id":"c1","params":{"q":1}}}
{"type":"action.result","agent":"a","author":"runtime","action":{"tool":"search","call_id":"c1"},"result":{"status":"ok","output":{"n":3}}}
{"type":"action.request","agent":"a","action":{"calls":[{"tool":"x","params":{}},{"tool":"y","params":2}]}}
{"type":"action.result","agent":"a","author":"runtime","action":{"tool":"y","params":2},"result":{"status":"error","error":{"message":"no"}}}
"#;
    assert_eq!(place.run_with(&["commit", "--run", "plain", "--new"], lines).code, 0);
    let digest = Value::record([("n", Value::from(3u64))]).digest();
    let short = digest.short();
    let ran = place.run(&["graph", "frontier", "plain"]);
    let listed = format!(
        "c1  search({{\"q\":1}})  ok {short} = {{\"n\":3}}\n3.0  x({{}})  no_answer\n3.1  y(2)  error\n3 calls, 2 answers: plain is not the run of a graph\n"
    );
    assert_eq!((ran.code, ran.stdout), (0, listed));
    assert!(ran.stderr.contains("no frontier to replay"), "{}", ran.stderr);
    let (code, answer) = place.json(&["graph", "frontier", "plain"]);
    let first = member(&answer, &["items"]).as_array().unwrap().get(0).unwrap().clone();
    assert_eq!((code, member(&answer, &["graph"])), (0, Value::Null));
    assert_eq!(member(&first, &["digest"]), Value::from(digest));
    assert_eq!([member(&first, &["tick"]), member(&first, &["answered"])], [1u64, 2].map(Value::from));
    for verb in [&["export", "plain", "--format", "frontier"][..], &["graph", "show", "plain"]] {
        let ran = place.run(verb);
        assert!(ran.code == 2 && ran.stderr.contains("E0938"), "{}", ran.stderr);
        assert!(ran.stderr.contains("help: dendrer graph frontier plain"), "{}", ran.stderr);
    }
    // Of a graph's run, the answer has its name.
    let place = recorded();
    let (_, answer) = place.json(&["graph", "frontier", "run-84f2"]);
    assert_eq!(member(&answer, &["graph"]), Value::from("run-84f2"));
}

/// The keys of the user of a place.
fn trust_of(place: &Place) -> UserTrust {
    UserTrust::at(place.config())
}

/// A recorded graph that the compiler refuses today is refused by the suite, too: with its rule, as a run and as a bundle.
#[test]
fn a_recorded_graph_is_checked_before_it_is_tested() {
    let place = Place::with_store();
    let dir = place.path().join(".dendrer");
    let repo = Repo::open(&dir, Arc::new(trust_of(&place)), Mode::Write).unwrap();
    let graph = "graph late\nn0 same(today) pure\ne1 look.at(n0) -> rec frontier[1]\nn1 same(e1) pure\nreplay(graph, frontier) == output required\n";
    let pack = "name: late\nversion: v1\ndefine: {same(a): a}\ntools: {look.at: {effect: read}}\n";
    let terms = GraphTerms {
        run: run_name("late"),
        graph: &text::parse(graph).unwrap(),
        children: &BTreeMap::new(),
        pack: &pack::read(pack.as_bytes()).unwrap(),
        inputs: BTreeMap::from([("today".to_owned(), Value::from("friday"))]),
        stage: None,
        redactor: None,
        resume: None,
    };
    // The library runs what it is given; the program checks it first.
    repo.run_graph(&terms, &|_: &EdgeRequest| Ok(Value::from(7u64))).unwrap();
    drop(repo);
    assert_eq!(place.run(&["replay", "late"]).code, 0);
    place.ok(&["export", "late", "-o", "late.dnd"]);
    place.ok(&["export", "late", "--format", "frontier", "-o", "late.frontier"]);
    for test in [&["--runs", "name == \"late\""][..], &["late.dnd"], &["late.frontier"]] {
        let ran = place.run(&[&["graph", "test"][..], test].concat());
        assert_eq!(ran.code, 7, "{test:?}: {}", ran.stderr);
        assert!(ran.stdout.contains("graph is refused: ambient_clock at n0"), "{test:?}: {}", ran.stdout);
    }
}

/// A bundle (rules 2) and a frontier file (version 1) that an older program recorded, with a repeat at its limit: it went on, and so
/// it is read.
#[test]
fn a_repeat_at_its_limit_is_read_as_it_was_recorded() {
    let place = Place::with_store();
    let old = |name: &str| format!("{}/tests/data/graphs-1/{name}", env!("CARGO_MANIFEST_DIR"));
    let (bundle, file) = (old("limit.dnd"), old("limit.frontier"));
    assert_eq!(
        place.ok(&["graph", "test", &bundle, &file]).lines().last(),
        Some("2 passed, 0 failed"),
        "{bundle}"
    );
    let (code, replayed) = place.json(&["replay", &bundle]);
    assert_eq!((code, member(&replayed, &["limit"])), (0, Value::Null));
    assert_eq!(member(&replayed, &["output"]).to_string(), r#"{"status":"pending"}"#);
    let (_, begun) = place.json(&["show", &format!("{bundle}@0")]);
    assert_eq!(member(&begun, &["content", "kernel"]).as_u64(), Some(2));
    // The same statements as a file of today end at the limit, and so the recorded output does not fit.
    let text = std::fs::read_to_string(&file).unwrap();
    let today = text.replacen("{\"frontier\":1,", "{\"frontier\":2,", 1);
    let today = today.replacen("\"nodes\":{", "\"limit\":null,\"nodes\":{", 1);
    assert_ne!(today, text);
    std::fs::write(place.path().join("today.frontier"), today).unwrap();
    let ran = place.run(&["graph", "test", "today.frontier"]);
    assert!(ran.code == 7 && ran.stdout.contains("1 failed"), "{}{}", ran.stdout, ran.stderr);
}

/// Frontiers are read and replayed on all processors: no thread does most of the work.
#[cfg(target_os = "linux")]
#[test]
fn a_suite_is_replayed_on_all_processors() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let place = Place::new();
    let edges = (1..=150).map(|k| format!("e{k} look.at({k}) -> rec frontier[{k}]\nn{k} same(e{k}) pure\n"));
    let edges: String = edges.collect();
    let graph = format!("graph wide\n{edges}replay(graph, frontier) == output required\n");
    let pack = "name: wide\nversion: v1\ndefine: {same(a): a}\ntools: {look.at: {effect: read}}\n";
    let terms = GraphTerms {
        run: run_name("wide"),
        graph: &text::parse(&graph).unwrap(),
        children: &BTreeMap::new(),
        pack: &pack::read(pack.as_bytes()).unwrap(),
        inputs: BTreeMap::new(),
        stage: None,
        redactor: None,
        resume: None,
    };
    let store = memory_with_key(1);
    let world = Box::new(Fixed::new("wide", 0, 1));
    run_graph(&store, &terms, &|_: &EdgeRequest| Ok(Value::from(7u64)), world).unwrap();
    let run = graph_run(&Trace::open(&store, &run_name("wide")).unwrap()).unwrap();
    let file: String = frontier_file(&run).iter().map(|line| format!("{line}\n")).collect();
    let dir = place.path().join("many");
    std::fs::create_dir(&dir).unwrap();
    (0..200).for_each(|k| std::fs::write(dir.join(format!("{k}.frontier")), &file).unwrap());
    let mut child = place.command(&["graph", "test", "many"]).stdout(Stdio::null()).spawn().unwrap();
    let mut spent: BTreeMap<String, u64> = BTreeMap::new();
    let ended = loop {
        for task in std::fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten() {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let after = stat.rsplit(')').next().unwrap_or_default();
            let ticks =
                after.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
            spent.insert(task.file_name().to_string_lossy().into_owned(), ticks.sum());
        }
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert!(ended.success());
    let (most, all) = (spent.values().max().unwrap(), spent.values().sum::<u64>());
    assert!(all > 20 && *most * 10 < all * 8, "{spent:?}");
}
