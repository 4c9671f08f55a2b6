//! Recorded graph runs replay to identical bytes, in whatever order their effects answered.

#![expect(clippy::print_stdout, reason = "the deep run adds it up")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};

use dendrer::change::graph::{AskEdge, EdgeEnd, EdgeFailure, GraphOutcome, GraphTerms, inject, run_graph};
use dendrer::graph::check::check;
use dendrer::graph::eval::EdgeRequest;
use dendrer::graph::frontier::{RecordedEdge, replay, substitute};
use dendrer::graph::functions::Functions;
use dendrer::graph::{Graph, text};
use dendrer::pack::{Files, Source};
use dendrer::recorder::Fixed;
use dendrer::run::frontier::{GraphRun, graph_run};
use dendrer::store::Shared;
use dendrer::trust::MemoryTrust;
use dendrer::wasm::Engine;
use dendrer::{Repo, Trace, casebook, pack};
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

/// The functions of drawn graphs. Each of the last three meets values that it cannot take.
const DRAWN_PACK: &str = "name: drawn
version: v1
define:
  same(a): a
  is_even(a): size(string(a)) % 2 == 0
  \"pair(a, b)\": \"[a, b]\"
  next(a): a + 1
  day(a): a.day
  \"flag(a)\": \"a == 3 || a == 5\"
tools:
  tool.look: {effect: read}
  model.call: {effect: read}
  mail.send: {effect: effectful}
";

/// Draws the text of a graph with conditions, branches and repeats. An argument is an earlier statement, the input or a number.
fn draw(dice: &mut Dice, name: &str) -> String {
    let mut text = format!("graph {name}\n");
    let (mut known, mut index): (Vec<String>, u64) = (Vec::new(), 0);
    let count = 4 + dice.below(8);
    for at in 0..count {
        let argument = |dice: &mut Dice| match dice.below(5) {
            0 => "request".to_owned(),
            1 => dice.below(6).to_string(),
            _ if known.is_empty() => "request".to_owned(),
            _ => known[dice.below(known.len() as u64) as usize].clone(),
        };
        let (one, other) = (argument(dice), argument(dice));
        let flags: Vec<&String> = known.iter().filter(|id| text.contains(&format!("\n{id} flag("))).collect();
        let condition = match flags.is_empty() || dice.below(2) == 0 {
            true => String::new(),
            false => format!(" if {}", flags[dice.below(flags.len() as u64) as usize]),
        };
        let id = match dice.below(10) {
            0 if at + 1 < count => {
                index += 1;
                let limit = ["", " or limit"][dice.below(2) as usize];
                let max = 1 + dice.below(3);
                text += &format!(
                    "r{at} repeat({one}) max {max} until n{at}2{limit}\ne{at} tool.look(r{at}, {other}) -> rec frontier[{index}.*.1]\nn{at}2 flag(e{at}) pure\nn{at}3 same(e{at}) pure\nend r{at}\n"
                );
                format!("r{at}")
            }
            1..=4 if at + 1 < count => {
                index += 1;
                let call = ["tool.look", "model.call", "mail.send"][dice.below(3) as usize];
                let at_once = if call == "mail.send" && dice.below(2) == 0 { " at once" } else { "" };
                text += &format!("e{at} {call}({one}, {at}){condition} -> rec frontier[{index}]{at_once}\n");
                format!("e{at}")
            }
            5 => {
                text += &format!("n{at} pair({one}, {other}){condition} pure\n");
                format!("n{at}")
            }
            _ => {
                let call = ["same", "flag", "flag", "next", "day", "is_even"][dice.below(6) as usize];
                text += &format!("n{at} {call}({one}){condition} pure\n");
                format!("n{at}")
            }
        };
        known.push(id);
    }
    let last = known.last().cloned().unwrap_or_default();
    text + &format!("n99 same({last}) pure\nreplay(graph, frontier) == output required\n")
}

fn drawn_value(dice: &mut Dice) -> Value {
    match dice.below(6) {
        0 => Value::Null,
        1 => Value::record([("day", Value::from(dice.below(4)))]),
        2 => Value::from("text"),
        _ => Value::from(dice.below(7)),
    }
}

/// A drawn graph with the answers of its effects, and runs of it in one store.
struct DrawnRun<'d> {
    repo: &'d Repo,
    graph: Graph,
    pack: &'d Source,
    request: Value,
}

impl DrawnRun<'_> {
    fn run(&self, name: &str, executor: &AskEdge<'_>) -> Result<GraphOutcome, dendrer::Error> {
        let terms = GraphTerms {
            run: run_name(name),
            graph: &self.graph,
            children: &BTreeMap::new(),
            pack: self.pack,
            stage: None,
            inputs: BTreeMap::from([("request".to_owned(), self.request.clone())]),
            redactor: None,
            resume: None,
        };
        self.repo.run_graph(&terms, executor)
    }

    fn recorded(&self, name: &str) -> (Trace, GraphRun) {
        let trace = Trace::open(&self.repo.reader().unwrap(), &run_name(name)).unwrap();
        let run = graph_run(&trace).unwrap();
        (trace, run)
    }
}

/// Y-15. The oracle runs the graph anew: its effects answer with the other values, or with recorded ones to what was recorded.
#[test]
fn each_fork_with_other_values_replays_or_is_not_made() {
    let halves = std::thread::scope(|scope| {
        let half = |seed| scope.spawn(move || forks_of_drawn_graphs(Dice(seed), 1_000));
        [15, 16].map(half).map(|half| half.join().unwrap())
    });
    let [made, limits, of_open] = [0, 1, 2].map(|at| halves[0][at] + halves[1][at]);
    println!("made {made}, of them {limits} at a limit and {of_open} of open runs");
    assert!((400..1_600).contains(&made) && limits > 20 && of_open > 5, "{made} {limits} {of_open}");
}

/// Forks runs of drawn graphs with other values of edges. Returns how many forks were made, ended at a limit, and are of open runs.
fn forks_of_drawn_graphs(mut dice: Dice, many: u64) -> [u64; 3] {
    let pack = pack::read(DRAWN_PACK.as_bytes()).unwrap();
    let functions = Functions::of(pack.pack.value(), &Engine::default());
    let mut counts = [0; 3];
    let mut drawn = 0;
    while drawn < many {
        let name = format!("g{drawn}");
        let graph = text::parse(&draw(&mut dice, &name)).unwrap();
        if !check(&graph, &functions, &BTreeMap::new()).0.is_empty() {
            continue;
        }
        drawn += 1;
        let repo = Repo::over(Box::new(memory_with_key(1)), Arc::new(MemoryTrust::new())).unwrap();
        let repo = repo.with_environment(|| Box::new(Fixed::new("drawn", 100, 1)));
        let one = DrawnRun { repo: &repo, graph, pack: &pack, request: drawn_value(&mut dice) };
        let answers = Mutex::new(Dice(dice.next()));
        let first = one.run(&name, &|_: &EdgeRequest| Ok(drawn_value(&mut answers.lock().unwrap())));
        let paths = evaluated(&one.recorded(&name).1);
        if !paths.is_empty() {
            let path = |dice: &mut Dice| paths[dice.below(paths.len() as u64) as usize].clone();
            let others = (0..1 + dice.below(2)).map(|_| (path(&mut dice), drawn_value(&mut dice))).collect();
            let [made, is_limit] = fork_of(&one, &name, &others);
            let more = [made, is_limit, made && first.is_err()];
            counts.iter_mut().zip(more).for_each(|(count, more)| *count += u64::from(more));
        }
    }
    counts
}

/// Forks a run with other values. Returns whether the fork was made, and whether it ended at a limit.
fn fork_of(one: &DrawnRun<'_>, name: &str, others: &BTreeMap<String, Value>) -> [bool; 2] {
    let (trace, run) = one.recorded(name);
    let fork = format!("{name}-fork");
    let injected = inject(one.repo, &trace, &run, run_name(&fork), others).unwrap();
    let fresh = one.run(&format!("{name}-fresh"), &|asked: &EdgeRequest| {
        let is_same = |edge: &&RecordedEdge| edge.asked == asked.asked && edge.path == asked.path;
        let kept = run.frontier.edges.iter().find(is_same).map(|edge| &edge.value);
        let value = others.get(&asked.path).or(kept).cloned();
        value.ok_or_else(|| EdgeFailure::new(EdgeEnd::Answered, "nothing was recorded"))
    });
    let said = format!("{name} {others:?} {:?} {fresh:?}", injected.not_made);
    if injected.not_made.is_some() {
        // A fresh run that came to its limit has not asked everything.
        assert!(!fresh.is_ok_and(|run| run.limit.is_none()), "{said}");
        assert!(one.repo.reader().unwrap().run(&run_name(&fork)).unwrap().is_none(), "{said}");
        return [false, false];
    }
    let (forked, fork) = one.recorded(&fork);
    let (again, divergence) = replay(&fork.graph, &fork.children, &fork.functions, &fork.frontier).unwrap();
    assert_eq!((divergence, fork.frontier.is_open(), fork.hypothetical), (None, false, true), "{said}");
    assert!(forked.summary().ended, "{said}");
    if again.limit.is_none() {
        assert_eq!(again.output, fresh.unwrap().output, "{said}");
    }
    [true, again.limit.is_some()]
}

/// The paths of the edges that a run of a graph has asked, or would ask next.
fn evaluated(run: &GraphRun) -> Vec<String> {
    let none = BTreeMap::new();
    let made = substitute(&run.graph, &run.children, &run.functions, &run.frontier, &none).unwrap();
    made.found.edges.into_iter().map(|(asked, _)| asked.path).collect()
}
