//! Recorded graph runs replay to identical bytes, in whatever order their effects answered.

#![expect(clippy::print_stdout, reason = "the deep run adds it up")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};

use dendrer::change::graph::{GraphTerms, run_graph};
use dendrer::graph::eval::EdgeRequest;
use dendrer::graph::frontier::replay;
use dendrer::graph::functions::Functions;
use dendrer::graph::text;
use dendrer::pack::Files;
use dendrer::recorder::Fixed;
use dendrer::run::frontier::{GraphRun, graph_run};
use dendrer::store::Shared;
use dendrer::wasm::Engine;
use dendrer::{Trace, casebook, pack};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::{Pointer, Value, json, tag};
use dendrer_testkit::{Dice, memory_with_key, run_name};

const GRAPH: &str = "graph fan
n0 same(request) pure
e1 tool.look(n0, 1) -> rec frontier[1]
e2 tool.look(n0, 2) -> rec frontier[2]
e3 tool.look(n0, 3) -> rec frontier[3]
e4 tool.look(n0, 4) -> rec frontier[4]
n1 pair(e1, e2) pure
n2 pair(e3, e4) pure
e5 model.call(n1, n2) -> rec frontier[5]
n3 pair(n1, e5) pure
replay(graph, frontier) == output required
";

const PACK: &str = "name: fan
version: v1
define:
  same(a): {module: value_of.wasm}
  \"pair(a, b)\": \"[a, b]\"
tools:
  tool.look: {effect: read}
  model.call: {effect: read}
";

/// Lets effects answer in one order, as far as they are asked at once.
struct Order {
    order: Vec<&'static str>,
    turn: Mutex<usize>,
    moved: Condvar,
}

impl Order {
    fn wait(&self, path: &str) {
        let Some(mine) = self.order.iter().position(|one| *one == path) else { return };
        let mut turn = self.turn.lock().unwrap();
        while *turn < mine {
            turn = self.moved.wait(turn).unwrap();
        }
        *turn += 1;
        self.moved.notify_all();
    }
}

fn orders(paths: &[&'static str]) -> Vec<Vec<&'static str>> {
    match paths {
        [] => vec![Vec::new()],
        _ => (0..paths.len())
            .flat_map(|at| {
                let mut rest = paths.to_vec();
                let first = rest.remove(at);
                orders(&rest).into_iter().map(move |tail| [vec![first], tail].concat())
            })
            .collect(),
    }
}

fn record(store: &Shared, name: &str, order: Vec<&'static str>, request: &Value, seed: u64) -> GraphRun {
    let graph = text::parse(GRAPH).unwrap();
    let module = include_bytes!("../../../examples/modules/value_of.wasm");
    let modules = json::parse_door(br#"{"define":{"same(a)":{}}}"#).unwrap();
    let set = Op::set(Pointer::of(["define", "same(a)", "module"]), tag::bytes(module));
    let modules = Delta(vec![set]).apply(&modules).unwrap();
    let pack = pack::read_with(PACK.as_bytes(), Files::Of(&modules)).unwrap();
    let terms = GraphTerms {
        run: run_name(name),
        graph: &graph,
        children: &BTreeMap::new(),
        pack: &pack,
        stage: None,
        inputs: BTreeMap::from([("request".to_owned(), request.clone())]),
        redactor: None,
        resume: None,
    };
    let order = Order { order, turn: Mutex::new(0), moved: Condvar::new() };
    let executor = |asked: &EdgeRequest| {
        order.wait(&asked.path);
        // Values whose bytes are easily lost: doubles, text, nested and null.
        let mut dice = Dice(seed + asked.index.len() as u64 + asked.path.bytes().map(u64::from).sum::<u64>());
        let number = dice.below(1 << 50) as f64 / 3.0;
        Ok(Value::record([
            ("at", json::parse_door(number.to_string().as_bytes()).unwrap()),
            ("nothing", Value::Null),
            ("text", Value::from(format!("\u{1f980} {}", dice.below(10)))),
        ]))
    };
    run_graph(store, &terms, &executor, Box::new(Fixed::new(name, 0, 1))).unwrap();
    graph_run(&Trace::open(store, &run_name(name)).unwrap()).unwrap()
}

/// Y-8, Y-23, Y-27.
#[test]
fn re_evaluating_the_graph_against_a_recorded_frontier_reproduces_the_run_bit_for_bit_on_any_machine_at_any_later_date()
 {
    let store = memory_with_key(1);
    let seeds = if std::env::var_os("DENDRER_DEEP").is_some() { 42 } else { 5 };
    let mut runs = 0;
    for seed in 0..seeds {
        let request = Value::record([("n", Value::from(seed))]);
        let mut first: Option<Vec<u8>> = None;
        for order in orders(&["e1", "e2", "e3", "e4"]) {
            let name = format!("fan-{seed}-{}", order.join(""));
            let run = record(&store, &name, order, &request, seed);
            let (again, divergence) =
                replay(&run.graph, &run.children, &run.functions, &run.frontier).unwrap();
            assert_eq!(divergence, None, "{name}");
            for engine in Engine::ALL {
                let functions = Functions::of(&run.pack, engine);
                let (other, divergence) =
                    replay(&run.graph, &run.children, &functions, &run.frontier).unwrap();
                assert_eq!((other.nodes, divergence), (again.nodes.clone(), None), "{name} {engine:?}");
            }
            // The bytes of everything that was made, in canonical order.
            let edges = run
                .edges()
                .into_iter()
                .map(|edge| Value::array([Value::from(edge.path.as_str()), edge.value.clone()]));
            let nodes = again
                .nodes
                .iter()
                .map(|(path, value)| Value::array([Value::from(path.as_str()), value.clone()]));
            let bytes = json::to_vec(&Value::array(edges.chain(nodes).chain(again.output.clone())));
            assert_eq!(*first.get_or_insert_with(|| bytes.clone()), bytes, "{name}");
            assert_eq!(run.frontier.output, again.output);
            runs += 1;
        }
    }
    assert!(runs >= 100, "{runs}");
    println!("deep: graph-runs {runs}");
}

/// A divergence is written down in the casebook, since the run itself is closed: a `kernel.anomaly` with both sides.
#[test]
fn a_divergence_is_a_kernel_anomaly_of_the_casebook() {
    let store = memory_with_key(1);
    record(&store, "fan", vec!["e1", "e2", "e3", "e4"], &Value::from(1u64), 0);
    let trace = Trace::open(&store, &run_name("fan")).unwrap();
    let divergence =
        json::parse_door(br#"{"kind":"changed_output","path":"output","expected":1,"got":2}"#).unwrap();
    let place = casebook::Place::of(&trace, None).unwrap();
    let world = Box::new(Fixed::new("casebook", 0, 1));
    let made = casebook::record_divergence(&store, &place, &divergence, world).unwrap();
    let record = made.last().unwrap();
    assert_eq!(record.header().type_name.as_ref().unwrap().as_str(), "kernel.anomaly");
    let noted = record.content().get("anomalies").unwrap().as_array().unwrap().get(0).unwrap().clone();
    assert_eq!(noted.get("kind").and_then(Value::as_str), Some("replay_divergence"));
    assert_eq!(noted.get("divergence"), Some(&divergence));
    assert_eq!(noted.get("run").and_then(Value::as_str), Some("fan"));
}

/// How long a graph runs whose edges all wait for an answer.
fn waiting(count: usize) -> std::time::Duration {
    let edges =
        (1..=count).map(|k| format!("e{k} tool.look({k}) -> rec frontier[{k}]\n")).collect::<String>();
    let text =
        format!("graph wide\n{edges}n1 same(e{count}) pure\nreplay(graph, frontier) == output required\n");
    let graph = text::parse(&text).unwrap();
    let pack = "name: wide\nversion: v1\ndefine: {same(a): a}\ntools: {tool.look: {effect: read}}\n";
    let terms = GraphTerms {
        run: run_name("wide"),
        graph: &graph,
        children: &BTreeMap::new(),
        pack: &pack::read(pack.as_bytes()).unwrap(),
        stage: None,
        inputs: BTreeMap::new(),
        redactor: None,
        resume: None,
    };
    let begun = std::time::Instant::now();
    let world = Box::new(Fixed::new("wide", 0, 1));
    let made =
        run_graph(&memory_with_key(1), &terms, &|_: &EdgeRequest| Ok(Value::from(7u64)), world).unwrap();
    assert_eq!((made.asked, made.edges), (count as u64, count as u64));
    begun.elapsed()
}

/// The time grows with the number of edges, and not with its square: that would be a hundred times as long.
#[test]
fn ten_times_as_many_edges_take_ten_times_as_long() {
    let best = |count| (0..2).map(|_| waiting(count)).min().unwrap();
    let (few, many) = (best(300), best(3_000));
    assert!(many < few * 25, "{few:?} {many:?}");
}
