//! Random graphs beside a slow interpreter, and random changes of their frontiers.
//!
//! 1,000 graphs; 10,000 with `DENDRER_DEEP=1`. The interpreter walks the text with a table of values and asks a world that answers
//! otherwise each time; ambient names are traps in it. The compiler accepts no graph on which a trap fires.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    reason = "the deep run adds it up"
)]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod dice;

use std::cell::RefCell;
use std::collections::BTreeMap;

use dendrer_graph::check::{GraphRule, ambient, check};
use dendrer_graph::eval::{EdgeRequest, GraphEvaluation, GraphValues, evaluate};
use dendrer_graph::frontier::{DivergenceKind, Frontier, RecordedEdge, replay};
use dendrer_graph::functions::Functions;
use dendrer_graph::{form, text};
use dendrer_kernel::pack::modules::NotRun;
use dendrer_object::{Value, json};

use crate::dice::Dice;

fn functions() -> Functions {
    let pack = r#"{"define":{"same(a)":"a","pair(a, b)":"[a, b]","wrap(a)":"{'w': a}","is_seven(a)":"a == 7","sneaky(a)":"now()"},"tools":{"model.call":{"effect":"read"},"tool.look":{"effect":"read"},"clock.now":{"effect":"read"}}}"#;
    Functions::of(&json::parse_door(pack.as_bytes()).unwrap(), &NotRun)
}

/// A statement of a drawn graph, as the slow interpreter reads it.
struct Drawn {
    id: String,
    call: String,
    args: Vec<String>,
    is_edge: bool,
}

/// Draws a graph as text. `fault` breaks one rule in it.
fn draw(dice: &mut Dice, fault: Option<GraphRule>) -> (String, Vec<Drawn>) {
    let count = 3 + dice.below(10);
    let mut drawn: Vec<Drawn> = Vec::new();
    let mut lines = vec!["graph g".to_owned()];
    let mut edges = 0;
    let broken = dice.below(count - 1);
    for at in 0..count {
        let is_edge = at + 1 < count && dice.below(3) == 0;
        let arity = if is_edge { 1 + dice.below(2) } else { 1 };
        let mut args: Vec<String> = (0..arity)
            .map(|_| match dice.below(4) {
                0 => "request".to_owned(),
                1 => dice.below(100).to_string(),
                _ if drawn.is_empty() => "\"text\"".to_owned(),
                _ => drawn[dice.below(drawn.len() as u64) as usize].id.clone(),
            })
            .collect();
        let mut call = match is_edge {
            true => ["model.call", "tool.look", "clock.now"][dice.below(3) as usize],
            false => ["same", "wrap", "is_seven"][dice.below(3) as usize],
        }
        .to_owned();
        if !is_edge && dice.below(4) == 0 {
            call = "pair".to_owned();
            args.push("request".to_owned());
        }
        let id = format!("{}{at}", if is_edge { "e" } else { "n" });
        let mut tail = if is_edge {
            edges += 1;
            format!("-> rec frontier[{edges}]")
        } else {
            "pure".to_owned()
        };
        if at == broken {
            let name =
                |names: &[&str], dice: &mut Dice| names[dice.below(names.len() as u64) as usize].to_owned();
            match fault {
                Some(GraphRule::AmbientClock) if !is_edge && dice.below(2) == 0 => call = "sneaky".to_owned(),
                Some(GraphRule::AmbientClock) => args[0] = name(&["now", "today", "clock.time"], dice),
                Some(GraphRule::AmbientEnvironment) => {
                    args[0] = name(&["env.HOME", "argv", "cwd", "host"], dice)
                }
                Some(GraphRule::AmbientChance) => args[0] = name(&["random", "uuid", "chance.dice"], dice),
                Some(GraphRule::AmbientFile) => args[0] = name(&["file.text", "open"], dice),
                Some(GraphRule::UndefinedArgument) => args[0] = "n99".to_owned(),
                Some(GraphRule::ForwardArgument) => args[0] = format!("n{}", count - 1),
                Some(GraphRule::NoRec) if is_edge => tail = String::new(),
                Some(GraphRule::FrontierIndex) if is_edge => tail = "-> rec frontier[77]".to_owned(),
                Some(GraphRule::NoEffectClass) if is_edge => call = "tool.mail".to_owned(),
                Some(GraphRule::UndefinedFunction) if !is_edge => call = "polish".to_owned(),
                Some(GraphRule::ImpureNode) if !is_edge => call = "model.call".to_owned(),
                _ => {}
            }
        }
        lines.push(format!("{id} {call}({}) {tail}", args.join(", ")));
        drawn.push(Drawn { id, call, args, is_edge });
    }
    lines.push("replay(graph, frontier) == output required".to_owned());
    (lines.join("\n") + "\n", drawn)
}

/// The slow interpreter: a table of values, an answer of the world for each edge. The error is a trap that fired, or a name that has
/// no value.
fn interpret(
    drawn: &[Drawn],
    request: &Value,
    answer: &mut dyn FnMut(&str, &str, &[Value]) -> Value,
) -> Result<BTreeMap<String, Value>, String> {
    let mut table: BTreeMap<String, Value> = BTreeMap::new();
    for one in drawn {
        let mut args = Vec::new();
        for arg in &one.args {
            args.push(match arg.as_str() {
                "request" => request.clone(),
                name if ambient(name).is_some() => return Err(format!("trap: {name}")),
                literal if literal.starts_with('"') || literal.bytes().all(|c| c.is_ascii_digit()) => {
                    json::parse_door(literal.as_bytes()).unwrap()
                }
                name => table.get(name).cloned().ok_or_else(|| format!("no value: {name}"))?,
            });
        }
        let value = match one.call.as_str() {
            call if one.is_edge => answer(&one.id, call, &args),
            "same" => args[0].clone(),
            "pair" => Value::array(args.clone()),
            "wrap" => Value::record([("w", args[0].clone())]),
            "is_seven" => Value::from(args[0] == Value::from(7u64)),
            "sneaky" => return Err("trap: now".to_owned()),
            other => return Err(format!("no function: {other}")),
        };
        table.insert(one.id.clone(), value);
    }
    Ok(table)
}

fn deep(few: u64, many: u64) -> u64 {
    if std::env::var_os("DENDRER_DEEP").is_some() { many } else { few }
}

#[test]
fn what_the_compiler_accepts_is_what_the_slow_interpreter_computes() {
    let functions = functions();
    let request = Value::from("what is on friday?");
    let rules = [
        GraphRule::AmbientClock,
        GraphRule::AmbientEnvironment,
        GraphRule::AmbientChance,
        GraphRule::AmbientFile,
        GraphRule::UndefinedArgument,
        GraphRule::ForwardArgument,
        GraphRule::NoRec,
        GraphRule::FrontierIndex,
        GraphRule::NoEffectClass,
        GraphRule::UndefinedFunction,
        GraphRule::ImpureNode,
    ];
    let mut refused: BTreeMap<GraphRule, u64> = BTreeMap::new();
    let mut accepted = 0;
    let count = deep(1_000, 10_000);
    for number in 0..count {
        let mut dice = Dice(number);
        let fault = (number % 3 > 0).then(|| rules[dice.below(rules.len() as u64) as usize]);
        let (written, drawn) = draw(&mut dice, fault);
        let graph = text::parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        let (findings, _) = check(&graph, &functions, &BTreeMap::new());
        for finding in &findings {
            *refused.entry(finding.rule).or_default() += 1;
        }
        let world = RefCell::new(Dice(number + 1));
        let answers = RefCell::new(BTreeMap::new());
        let table = interpret(&drawn, &request, &mut |id, call, args| {
            let value = Value::record([
                ("call", Value::from(call)),
                ("n", Value::from(world.borrow_mut().below(1000))),
            ]);
            answers.borrow_mut().insert(id.to_owned(), (call.to_owned(), args.to_vec(), value.clone()));
            value
        });
        if !findings.is_empty() {
            continue;
        }
        accepted += 1;
        let table = table.unwrap_or_else(|why| panic!("accepted, and {why}\n{written}"));
        let inputs = BTreeMap::from([("request".to_owned(), request.clone())]);
        let answers = answers.into_inner();
        let found = evaluate(&graph, &BTreeMap::new(), &functions, &inputs, &mut |asked: &EdgeRequest| {
            answers.get(&asked.path).map(|(_, args, value)| {
                assert_eq!(*args, asked.args, "{written}");
                value.clone()
            })
        })
        .unwrap_or_else(|fault| panic!("{fault}\n{written}"));
        for (path, value) in &found.nodes {
            assert_eq!(Some(value), table.get(path), "{path}\n{written}");
        }
        assert_eq!(found.output, graph.output().and_then(|id| table.get(id).cloned()));
        // Both forms are the same graph.
        let value = form::to_value(&graph, &BTreeMap::new());
        let (again, _) = form::read(&json::parse_door(value.to_string().as_bytes()).unwrap()).unwrap();
        assert_eq!(form::digest(&form::to_value(&again, &BTreeMap::new())), form::digest(&value));
    }
    assert!(accepted * 4 > count, "{accepted}");
    // Each rule is broken by 1 in 50 of all at least; each refused graph holds what it is refused for.
    for rule in rules {
        assert!(refused.get(&rule).copied().unwrap_or(0) * 50 > count / 3, "{rule:?}: {refused:?}");
    }
    println!("deep: graphs {count}");
}

/// Y-18: what is refused for reading the world gives two outputs in two worlds. The evaluator is handed what the name would have read.
#[test]
fn a_graph_refused_for_an_ambient_name_gives_another_output_in_another_world() {
    let functions = functions();
    let cases = [
        (GraphRule::AmbientClock, "today", ["monday", "tuesday"]),
        (GraphRule::AmbientEnvironment, "host", ["laptop", "server"]),
        (GraphRule::AmbientChance, "random", ["4", "2"]),
        (GraphRule::AmbientFile, "open", ["before", "after"]),
    ];
    for (rule, name, worlds) in cases {
        let written = format!(
            "graph g\nn1 same({name}) pure\nn2 wrap(n1) pure\nreplay(graph, frontier) == output required\n"
        );
        let graph = text::parse(&written).unwrap();
        let (findings, _) = check(&graph, &functions, &BTreeMap::new());
        assert_eq!(findings.iter().map(|finding| finding.rule).collect::<Vec<_>>(), [rule], "{name}");
        let outputs = worlds.map(|read| {
            let inputs = BTreeMap::from([(name.to_owned(), Value::from(read))]);
            evaluate(&graph, &BTreeMap::new(), &functions, &inputs, &mut |_: &EdgeRequest| None)
                .unwrap()
                .output
        });
        assert!(outputs.iter().all(Option::is_some) && outputs[0] != outputs[1], "{name}: {outputs:?}");
    }
}

#[test]
fn no_change_of_a_frontier_passes() {
    let functions = functions();
    let request = Value::from("what is on friday?");
    let (mut tried, mut number) = (0, 0);
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    while tried < deep(1_000, 10_000) {
        number += 1;
        let mut dice = Dice(number);
        let (written, _) = draw(&mut dice, None);
        let graph = text::parse(&written).unwrap();
        let inputs = BTreeMap::from([("request".to_owned(), request.clone())]);
        let mut edges = Vec::new();
        let found = evaluate(&graph, &BTreeMap::new(), &functions, &inputs, &mut |asked: &EdgeRequest| {
            let value = Value::record([("n", Value::from(dice.below(1000)))]);
            edges.push(RecordedEdge {
                path: asked.path.clone(),
                index: asked.index.clone(),
                call: asked.call.clone(),
                args: asked.args.clone(),
                asked: asked.asked,
                digest: value.digest(),
                value: value.clone(),
            });
            Some(value)
        })
        .unwrap();
        let whole = Frontier {
            inputs,
            edges,
            nodes: found.nodes.iter().cloned().collect(),
            output: found.output.clone(),
            limit: None,
            is_ordered: true,
        };
        let of = |frontier: &Frontier| {
            let (_, divergence) = replay(&graph, &BTreeMap::new(), &functions, frontier).unwrap();
            divergence
        };
        assert_eq!(of(&whole), None, "{written}");
        if whole.edges.is_empty() {
            continue;
        }
        tried += 1;
        let at = dice.below(whole.edges.len() as u64) as usize;
        let path = whole.edges[at].path.clone();
        let mut changed = whole.clone();
        let (kind, place) = match dice.below(8) {
            0 => {
                changed.edges.remove(at);
                // In a file with an order, the next line is in the place of the one that is gone.
                (DivergenceKind::Missing, Some(path))
            }
            1 => {
                let mut more = whole.edges[at].clone();
                more.path = "e77".to_owned();
                changed.edges.push(more);
                (DivergenceKind::Surplus, Some("e77".to_owned()))
            }
            2 => {
                changed.edges.insert(at, whole.edges[at].clone());
                (DivergenceKind::Duplicate, Some(path))
            }
            3 if at > 0 => {
                changed.edges.swap(at, at - 1);
                (DivergenceKind::Reordered, Some(whole.edges[at - 1].path.clone()))
            }
            4 => {
                changed.edges[at].value = Value::from("other");
                (DivergenceKind::ChangedValue, Some(path))
            }
            5 => {
                changed.edges[at].args.push(Value::Null);
                (DivergenceKind::ChangedRequest, Some(path))
            }
            6 => {
                let (node, _) = &found.nodes[dice.below(found.nodes.len() as u64) as usize];
                changed.nodes.insert(node.clone(), Value::from("other"));
                (DivergenceKind::ChangedNode, Some(node.clone()))
            }
            _ => {
                changed.output = Some(Value::from("other"));
                (DivergenceKind::ChangedOutput, Some("output".to_owned()))
            }
        };
        let divergence = of(&changed).unwrap_or_else(|| panic!("passed: {kind:?}\n{written}"));
        *kinds.entry(divergence.kind.as_str()).or_default() += 1;
        assert_eq!((divergence.kind, Some(divergence.path)), (kind, place), "{written}");
    }
    assert_eq!(kinds.len(), 8, "{kinds:?}");
    println!("deep: graphs {tried}");
}

/// A drawn graph whose values come one at a time, in any order, has the values of one walk.
#[test]
fn values_that_come_in_any_order_give_the_same_values() {
    let functions = functions();
    let inputs = BTreeMap::from([("request".to_owned(), Value::from("what is on friday?"))]);
    let of = |asked: &EdgeRequest| {
        Value::record([("call", Value::from(asked.call.as_str())), ("of", Value::array(asked.args.clone()))])
    };
    for number in 0..deep(1_000, 10_000) {
        let mut dice = Dice(number);
        let (written, _) = draw(&mut dice, None);
        // Every other graph does its statements in rounds, the last of which is `n9`'s.
        let written = match number % 2 {
            0 => written,
            _ => written
                .replacen("graph g\n", "graph g\nr77 repeat(request) max 3 until n99 or limit\n", 1)
                .replace("frontier[", "frontier[1.*.")
                .replace(
                    "replay(",
                    "n99 is_seven(r77) pure\nn98 wrap(r77) pure\nend r77\nn97 same(r77) pure\nreplay(",
                ),
        };
        let graph = text::parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert_eq!(check(&graph, &functions, &BTreeMap::new()).0, [], "{written}");
        let children = BTreeMap::new();
        let whole =
            evaluate(&graph, &children, &functions, &inputs, &mut |asked: &EdgeRequest| Some(of(asked)));
        let mut evaluation = GraphEvaluation::new(&graph, &children, &functions, &inputs).unwrap();
        loop {
            evaluation.advance(&mut |_: &EdgeRequest| None).unwrap();
            let due: Vec<EdgeRequest> = evaluation.due().cloned().collect();
            if due.is_empty() {
                break;
            }
            let asked = &due[dice.below(due.len() as u64) as usize];
            assert!(evaluation.bring(&asked.path, of(asked)) && !evaluation.bring(&asked.path, Value::Null));
        }
        let (whole, found) = (whole.unwrap(), evaluation.values());
        assert_eq!(
            (whole.nodes, whole.edges, whole.output),
            (found.nodes, found.edges, found.output),
            "{written}"
        );
        assert!(found.waits.is_empty() && found.limit.is_none(), "{written}");
    }
}

/// The values of a graph over its inputs, and what its edges ask: each answers with its own arguments.
fn values_of(written: &str, inputs: &str) -> Result<GraphValues, String> {
    let pack = r#"{"define":{"same(a)":"a","big(a)":"a > 5","more(a)":"a + 1"},"tools":{"tool.look":{"effect":"read"}}}"#;
    let functions = Functions::of(&json::parse_door(pack.as_bytes()).unwrap(), &NotRun);
    let graph =
        text::parse(&format!("graph g\n{written}replay(graph, frontier) == output required\n")).unwrap();
    assert_eq!(check(&graph, &functions, &BTreeMap::new()).0, [], "{written}");
    let inputs = json::parse_door(inputs.as_bytes()).unwrap();
    let inputs =
        inputs.as_object().unwrap().iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    evaluate(&graph, &BTreeMap::new(), &functions, &inputs, &mut |asked: &EdgeRequest| {
        Some(asked.args[0].clone())
    })
    .map_err(|fault| fault.to_string())
}

/// Y-26: data-dependent control flow needs a declared construct. The branch that is not taken is not evaluated, a statement behind
/// a skipped one is skipped, and a repeat that comes to its limit ends the graph unless it says `or limit`.
#[test]
fn a_branch_that_is_not_taken_is_not_evaluated() {
    let x = r#"{"x":{"temp":7,"kind":"b"}}"#;
    let output =
        |written: &str| values_of(written, x).map(|found| found.output.map(|output| output.to_string()));
    let some = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(output("n0 select(true, x.temp, x.nope) pure\n"), some("7"));
    assert_eq!(output("n0 select(false, x.nope, 3) pure\n"), some("3"));
    assert_eq!(output("n0 select(true, x.nope, 3) pure\n"), Err("n0: x.nope has no value".to_owned()));
    assert_eq!(output("n0 switch(x.kind, \"a\", x.nope, \"b\", x.temp, x.nope) pure\n"), some("7"));
    assert_eq!(output("n0 switch(x.kind, \"a\", x.nope, x.temp) pure\n"), some("7"));
    assert_eq!(output("n0 switch(x.kind, \"b\", 1, x.nope, 2, 3) pure\n"), some("1"));
    let skipped =
        "n0 big(1) pure\nn1 big(9) if n0 pure\ne2 tool.look(1) if n1 -> rec frontier[1]\nn3 same(e2) pure\n";
    let found = values_of(skipped, "{}").unwrap();
    assert_eq!((found.edges, found.output), (vec![], Some(Value::Null)));
    assert_eq!(
        output("n0 same(1) pure\nn1 same(2) if n0 pure\n"),
        Err("n1: n0 is no condition: a number".to_owned())
    );
}

#[test]
fn a_repeat_at_its_limit_ends_the_graph() {
    let poll = |max: u64, or: &str| {
        format!(
            "r1 repeat(0) max {max} until n2{or}\ne3 tool.look(r1) -> rec frontier[1.*.1]\nn1 more(e3) pure\nn2 big(n1) pure\nn4 same(n1) pure\nend r1\n\
             e5 tool.look(r1) -> rec frontier[2]\ne7 tool.look(1) -> rec frontier[3]\nn6 same(e5) pure\n"
        )
    };
    let found = values_of(&poll(9, ""), "{}").unwrap();
    assert_eq!((found.limit, found.output), (None, Some(Value::from(6u64))));
    let paths =
        |found: &GraphValues| found.edges.iter().map(|(asked, _)| asked.path.clone()).collect::<Vec<_>>();
    let found = values_of(&poll(2, ""), "{}").unwrap();
    // What waits for the repeat is not asked; what does not may have been.
    assert_eq!(paths(&found), ["r1.1.e3", "r1.2.e3", "e7"]);
    assert_eq!((found.limit.as_deref(), found.output), (Some("r1"), None));
    let found = values_of(&poll(2, " or limit"), "{}").unwrap();
    assert_eq!((found.limit, found.output), (None, Some(Value::from(2u64))));
    // A form without the words has the same bytes as before them.
    let graph = text::parse(&format!("graph g\n{}replay(graph, frontier) == output\n", poll(2, ""))).unwrap();
    assert!(!form::to_value(&graph, &BTreeMap::new()).to_string().contains("limit"));
}

/// Y-18: only what reads the world is refused: a parameter or a variable of a macro may have any name.
#[test]
fn bound_names_are_not_ambient() {
    let of = |define: &str| {
        let pack = json::parse_door(format!(r#"{{"define":{{{define}}}}}"#).as_bytes()).unwrap();
        let functions = Functions::of(&pack, &NotRun);
        let graph = text::parse("graph g\nn0 f(x) pure\nreplay(graph, frontier) == output\n").unwrap();
        check(&graph, &functions, &BTreeMap::new()).0.into_iter().map(|one| one.rule).collect::<Vec<_>>()
    };
    for sound in [
        r#""f(now)":"now""#,
        r#""f(host)":"host.name""#,
        r#""f(x)":"x.map(today, today + 1)""#,
        r#""f(x)":"x.now""#,
        r#""f(x)":"'now'""#,
        r#""g(random)":"random + 1","f(x)":"g(x)""#,
    ] {
        assert_eq!(of(sound), [], "{sound}");
    }
    for (unsound, rule) in [
        (r#""f(x)":"now()""#, GraphRule::AmbientClock),
        (r#""f(now)":"now + today""#, GraphRule::AmbientClock),
        (r#""f(x)":"env.HOME""#, GraphRule::AmbientEnvironment),
        (r#""g(x)":"random()","f(x)":"g(x)""#, GraphRule::AmbientChance),
        (r#""f(x)":"x + host""#, GraphRule::AmbientEnvironment),
    ] {
        assert_eq!(of(unsound), [rule], "{unsound}");
    }
}

#[test]
fn words_at_the_end_of_a_statement_are_in_both_forms() {
    let written = "graph g\nr1 repeat(0) max 2 until n2 or limit\ne3 bank.pay(r1) -> rec frontier[1.*.1] at once\nn2 same(e3) pure\nend r1\nn4 same(r1) pure\nreplay(graph, frontier) == output\n";
    let graph = text::parse(written).unwrap();
    let value = form::to_value(&graph, &BTreeMap::new());
    assert!(
        value.to_string().contains(r#""at_once":true"#) && value.to_string().contains(r#""or_limit":true"#)
    );
    let (again, _) = form::read(&value).unwrap();
    assert_eq!(form::to_value(&again, &BTreeMap::new()), value);
    for wrong in ["-> rec frontier[1] atonce", "-> rec frontier[1]at once", "at once"] {
        let text =
            format!("graph g\ne1 bank.pay(1) {wrong}\nn2 same(e1) pure\nreplay(graph, frontier) == output\n");
        assert!(text::parse(&text).is_err(), "{wrong}");
    }
}

/// Whatever brought a graph that runs itself past the compiler, and one whose rounds have no end in sight, is stopped.
#[test]
fn an_evaluation_without_end_is_stopped() {
    let own = r#"{"graph":"loop","statements":[{"args":[],"call":"graph.loop","id":"e1","rec":"1"},{"args":[{"ref":"e1"}],"call":"same","id":"n1","pure":true}]}"#;
    let far = r#"{"graph":"far","statements":[{"id":"r1","repeat":{"from":{"value":0},"max":4000000000,"until":"n2"},"statements":[{"args":[{"ref":"r1"}],"call":"is_seven","id":"n2","pure":true},{"args":[{"ref":"r1"}],"call":"same","id":"n1","pure":true}]},{"args":[{"ref":"r1"}],"call":"same","id":"n3","pure":true}]}"#;
    for (text, why) in
        [(own, "graphs run graphs more than 32 deep"), (far, "a repeat has 100000 rounds at most")]
    {
        let (graph, _) = form::read(&json::parse_door(text.as_bytes()).unwrap()).unwrap();
        let children = BTreeMap::from([(graph.name.clone(), graph.clone())]);
        let found = evaluate(&graph, &children, &functions(), &BTreeMap::new(), &mut |_: &EdgeRequest| None);
        assert_eq!(found.unwrap_err().why, why);
    }
}
