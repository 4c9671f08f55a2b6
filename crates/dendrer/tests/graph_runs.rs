//! Recorded graph runs replay to identical bytes, in whatever order their effects answered.

#![expect(clippy::print_stdout, reason = "the deep run adds it up")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex};

use dendrer::change::graph::{
    AskEdge, EdgeEnd, EdgeFailure, GraphOutcome, GraphResume, GraphTerms, inject, run_graph,
};
use dendrer::error::GraphRefused;
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
use dendrer_object::{Digest, Pointer, Value, json, tag};
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
  \"late(a, b)\": \"[a.day, b]\"
  \"flag(a)\": \"a == 3 || a == 5\"
tools:
  tool.look: {effect: read}
  model.call: {effect: read}
  mail.send: {effect: effectful}
";

/// The effect of a drawn edge.
fn drawn_call(dice: &mut Dice) -> &'static str {
    ["tool.look", "model.call", "mail.send"][dice.below(3) as usize]
}

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
                let (max, call) = (1 + dice.below(3), drawn_call(dice));
                text += &format!(
                    "r{at} repeat({one}) max {max} until n{at}2{limit}\ne{at} {call}(r{at}, {other}) -> rec frontier[{index}.*.1]\nn{at}2 flag(e{at}) pure\nn{at}3 same(e{at}) pure\nend r{at}\n"
                );
                format!("r{at}")
            }
            1..=4 if at + 1 < count => {
                index += 1;
                let call = drawn_call(dice);
                let at_once = if call == "mail.send" && dice.below(2) == 0 { " at once" } else { "" };
                text += &format!("e{at} {call}({one}, {at}){condition} -> rec frontier[{index}]{at_once}\n");
                format!("e{at}")
            }
            5 => {
                text += &format!("n{at} pair({one}, {other}){condition} pure\n");
                format!("n{at}")
            }
            6 if !flags.is_empty() => {
                let flag = flags[dice.below(flags.len() as u64) as usize].clone();
                text += &match dice.below(2) {
                    0 => format!("n{at} select({flag}, {one}, {other}){condition} pure\n"),
                    _ => format!("n{at} switch({one}, 3, {other}, {flag}, 1, {one}){condition} pure\n"),
                };
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
        self.go(name, executor, None)
    }

    fn go(
        &self,
        name: &str,
        executor: &AskEdge<'_>,
        resume: Option<GraphResume>,
    ) -> Result<GraphOutcome, dendrer::Error> {
        let terms = GraphTerms {
            run: run_name(name),
            graph: &self.graph,
            children: &BTreeMap::new(),
            pack: self.pack,
            stage: None,
            inputs: BTreeMap::from([("request".to_owned(), self.request.clone())]),
            redactor: None,
            resume,
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
fn forks_of_drawn_graphs(dice: Dice, many: u64) -> [u64; 3] {
    counted_over_drawn_graphs(dice, many, draw, |one, name, dice| {
        let answers = Mutex::new(Dice(dice.next()));
        let first = one.run(name, &|_: &EdgeRequest| Ok(drawn_value(&mut answers.lock().unwrap())));
        let paths = evaluated(&one.recorded(name).1);
        if paths.is_empty() {
            return [false; 3];
        }
        let path = |dice: &mut Dice| paths[dice.below(paths.len() as u64) as usize].clone();
        let others = (0..1 + dice.below(2)).map(|_| (path(dice), drawn_value(dice))).collect();
        let [made, is_limit] = fork_of(one, name, &others);
        [made, is_limit, made && first.is_err()]
    })
}

/// Draws graphs, each with a store, and counts what is so of each.
fn counted_over_drawn_graphs<const N: usize>(
    mut dice: Dice,
    many: u64,
    draw: fn(&mut Dice, &str) -> String,
    each: impl Fn(&DrawnRun<'_>, &str, &mut Dice) -> [bool; N],
) -> [u64; N] {
    let pack = pack::read(DRAWN_PACK.as_bytes()).unwrap();
    let functions = Functions::of(pack.pack.value(), &Engine::default());
    let mut counts = [0; N];
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
        let more = each(&one, &name, &mut dice);
        counts.iter_mut().zip(more).for_each(|(count, more)| *count += u64::from(more));
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

/// After any replaced answer a run is closed as one that had the newer answers from the beginning: each effectful edge has acted once
/// on its path, and none beside it. It is refused (E0940) only if an edge that has acted would not be asked the same.
#[test]
fn a_run_with_a_replaced_answer_acts_once_on_its_path() {
    let halves = std::thread::scope(|scope| {
        let half = |seed| {
            scope.spawn(move || {
                counted_over_drawn_graphs(Dice(seed), 300, draw_acting, |one, name, dice| {
                    replaced_answers(one, name, dice)
                })
            })
        };
        [17, 18].map(half).map(|half| half.join().unwrap())
    });
    let [closed, kept, limits, refused] = [0, 1, 2, 3].map(|at| halves[0][at] + halves[1][at]);
    println!(
        "closed {closed}, of them {kept} after an effect acted and {limits} at a limit; refused {refused}"
    );
    assert!(closed > 100 && kept > 50 && limits > 2 && refused > 50, "{closed} {kept} {limits} {refused}");
}

const EFFECTFUL: &str = "mail.send";

/// Draws a graph whose first answer decides what is sent after it, and whose last node cannot take it if it has no day.
fn draw_acting(dice: &mut Dice, name: &str) -> String {
    let mut text = format!("graph {name}\ne1 model.call(request) -> rec frontier[1]\n");
    text += "n1 flag(e1.n) pure\nn2 flag(e1.m) pure\n";
    let one_of = |dice: &mut Dice, list: &[String]| list[dice.below(list.len() as u64) as usize].clone();
    let mut flags = ["n1", "n2"].map(str::to_owned).to_vec();
    let mut known = ["e1.n", "e1.m", "3", "4"].map(str::to_owned).to_vec();
    let mut index = 1;
    for at in 3..7 + dice.below(5) {
        let [one, other, more] = [(); 3].map(|()| one_of(dice, &known));
        let flag = one_of(dice, &flags);
        let condition = if dice.below(3) == 0 { format!(" if {flag}") } else { String::new() };
        let (kind, limit) = (dice.below(8), if dice.below(2) == 0 { "" } else { " or limit" });
        let until = if dice.below(2) == 0 { format!("same({flag})") } else { format!("flag(e{at})") };
        index += u64::from(kind < 4);
        let id = if kind < 3 { format!("e{at}") } else { format!("n{at}") };
        text += &match kind {
            0 => format!("{id} mail.send({one}, {at}){condition} -> rec frontier[{index}] at once\n"),
            1 => format!("{id} mail.send({one}, {at}){condition} -> rec frontier[{index}]\n"),
            2 => format!("{id} tool.look({one}){condition} -> rec frontier[{index}]\n"),
            3 => format!(
                "r{at} repeat({one}) max 3 until n{at}1{limit}\ne{at} mail.send(r{at}, {other}) -> rec frontier[{index}.*.1]\nn{at}1 {until} pure\nn{at}2 pair(e{at}, {flag}) pure\nend r{at}\n{id} same(r{at}) pure\n"
            ),
            4 => format!("{id} select({flag}, {one}, {other}) pure\n"),
            5 => format!("{id} switch({one}, 3, {other}, {flag}, 4, {more}) pure\n"),
            6 => format!("{id} flag({one}) pure\n"),
            _ => format!("{id} pair({one}, {other}){condition} pure\n"),
        };
        if kind == 6 {
            flags.push(id.clone());
        }
        known.push(id);
    }
    let last = known.last().cloned().unwrap_or_default();
    text + &format!("n99 late(e1, {last}) pure\nreplay(graph, frontier) == output required\n")
}

/// An answer of a drawn effect; the first one has numbers, and sometimes a day.
fn answer_of(dice: &mut Dice, path: &str, has_day: bool) -> Value {
    let [n, m] = [(); 2].map(|()| Value::from(3 + u64::from(dice.below(4) == 0)));
    match (path, has_day) {
        ("e1", false) => Value::record([("m", m), ("n", n)]),
        ("e1", true) => Value::record([("day", Value::from(1u64)), ("m", m), ("n", n)]),
        _ => n,
    }
}

/// Runs a graph, and replaces answers that a node cannot take, up to four times. Returns whether the run was closed so, whether an
/// effect had acted before, whether it came to a limit, and whether it was refused.
fn replaced_answers(one: &DrawnRun<'_>, name: &str, dice: &mut Dice) -> [bool; 4] {
    let answers = Mutex::new(Dice(dice.next()));
    let acts: Mutex<Vec<(String, Digest)>> = Mutex::new(Vec::new());
    let executor = |asked: &EdgeRequest| {
        if asked.call == EFFECTFUL {
            acts.lock().unwrap().push((asked.path.clone(), asked.asked));
        }
        let mut dice = answers.lock().unwrap();
        let has_day = dice.below(5) == 0;
        Ok(answer_of(&mut dice, &asked.path, has_day))
    };
    let mut made = one.run(name, &executor);
    let (mut decided, mut has_acted): (BTreeSet<String>, bool) = (BTreeSet::new(), false);
    for _ in 0..4 {
        let Err(dendrer::Error::Graph(GraphRefused::Failed { edges, .. })) = &made else { break };
        if edges.is_empty() {
            return [false; 4];
        }
        let answered = ["tool.look", "model.call", EFFECTFUL].map(str::to_owned).into();
        let mut resume = GraphResume { answered, ..GraphResume::default() };
        for at in 0..1 + dice.below(2) {
            let path = if at == 0 {
                "e1".to_owned()
            } else {
                edges[dice.below(edges.len() as u64) as usize].clone()
            };
            match dice.below(6) {
                0 if !resume.set.contains_key(&path) => drop(resume.ask_again.insert(path)),
                _ if !resume.ask_again.contains(&path) => {
                    let has_day = dice.below(5) > 0;
                    let value = answer_of(dice, &path, has_day);
                    drop(resume.set.insert(path, value));
                }
                _ => {}
            }
        }
        let before = acts.lock().unwrap().clone();
        let (trace, run) = one.recorded(name);
        let lost = lost(&run, &resume);
        let said = format!("{name} {:?} {resume:?} {lost:?}", one.graph);
        decided.extend(resume.ask_again.iter().chain(resume.set.keys()).cloned());
        made = one.go(name, &executor, Some(resume));
        match &made {
            Err(dendrer::Error::Graph(GraphRefused::Acted { path, .. })) => {
                assert!(lost.contains(path), "{path} {said}");
                assert_eq!(
                    (one.recorded(name).0.tip(), &before),
                    (trace.tip(), &*acts.lock().unwrap()),
                    "{said}"
                );
                return [false, false, false, true];
            }
            Err(dendrer::Error::Graph(GraphRefused::NotDue { .. })) => return [false; 4],
            Ok(_) => assert_eq!(lost, [""; 0], "{said}"),
            Err(_) => {}
        }
        has_acted = !before.is_empty();
    }
    let Ok(outcome) = made else { return [false; 4] };
    if decided.is_empty() {
        return [false; 4];
    }
    let acts = acts.into_inner().unwrap();
    as_if_fresh(one, name, &acts.into_iter().filter(|(path, _)| !decided.contains(path)).collect::<Vec<_>>());
    // A fork of such a run has none of the answers that were replaced.
    let paths = evaluated(&one.recorded(name).1);
    let path = paths[dice.below(paths.len() as u64) as usize].clone();
    fork_of(one, name, &BTreeMap::from([(path.clone(), answer_of(dice, &path, true))]));
    [true, has_acted, outcome.limit.is_some(), false]
}

/// The paths of effectful edges with a value that are asked something else with other values, or not at all.
fn lost(run: &GraphRun, resume: &GraphResume) -> Vec<String> {
    let mut frontier = run.frontier.clone();
    frontier.edges.retain(|edge| !resume.ask_again.contains(&edge.path));
    let made = substitute(&run.graph, &run.children, &run.functions, &frontier, &resume.set).unwrap();
    let is_kept = |path: &str| {
        let is_named = resume.ask_again.contains(path) || resume.set.contains_key(path);
        let mut edges = made.found.edges.iter();
        let is_reached =
            edges.any(|(asked, is_there)| asked.path == path && (*is_there || made.max.is_none()));
        made.asked.iter().any(|asked| asked == path) || (is_named && is_reached)
    };
    let acted = run.frontier.edges.iter().filter(|edge| edge.call == EFFECTFUL && !is_kept(&edge.path));
    acted.map(|edge| edge.path.clone()).collect()
}

/// Compares a closed run with a new one whose effects give its values.
fn as_if_fresh(one: &DrawnRun<'_>, name: &str, acts: &[(String, Digest)]) {
    let (trace, run) = one.recorded(name);
    let (_, divergence) = replay(&run.graph, &run.children, &run.functions, &run.frontier).unwrap();
    assert_eq!((divergence, trace.summary().ended), (None, true), "{name}");
    let asked = |run: &GraphRun| -> BTreeSet<(String, Digest)> {
        run.frontier.edges.iter().map(|edge| (edge.path.clone(), edge.asked)).collect()
    };
    let own = asked(&run);
    let said = format!("{name} {acts:?} {own:?}");
    let paths: BTreeSet<&String> = acts.iter().map(|(path, _)| path).collect();
    assert!(paths.len() == acts.len() && acts.iter().all(|act| own.contains(act)), "{said}");
    let fresh = format!("{name}-anew");
    let outcome = one.run(&fresh, &|asked: &EdgeRequest| {
        let edge = run.frontier.edges.iter().find(|edge| edge.path == asked.path);
        edge.map(|edge| edge.value.clone()).ok_or_else(|| EdgeFailure::new(EdgeEnd::Answered, "off the path"))
    });
    // What a run at its limit has asked beside it is a matter of time.
    if run.frontier.limit.is_none() {
        assert_eq!(outcome.unwrap().output, run.frontier.output, "{said}");
        assert_eq!(asked(&one.recorded(&fresh).1), own, "{said}");
    }
}
