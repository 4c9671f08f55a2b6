//! The fewest values that flip a predicate, beside a search through all sets.

mod dice;

use std::collections::BTreeMap;

use dendrer_graph::eval::{asked, evaluate};
use dendrer_graph::frontier::{Frontier, RecordedEdge};
use dendrer_graph::functions::Functions;
use dendrer_graph::minimize::{EXHAUSTIVE_MAX, Minimality, minimize};
use dendrer_graph::text;
use dendrer_kernel::expr::{Expr, Scope};
use dendrer_kernel::pack::modules::NotRun;
use dendrer_object::{Value, json};

use crate::dice::Dice;

const EDGES: usize = 6;

/// Note R-001: replay with one frontier value substituted. Sets of edges whose value is 1 instead of 0, under random predicates of
/// terms `all of these are 1`, some of them negated, so that more values may flip less.
#[test]
fn the_fewest_values_are_those_of_a_search_through_all_sets() {
    let pack = r#"{"define":{"same(a)":"a"},"tools":{"tool.look":{"effect":"read"}}}"#;
    let functions = Functions::of(&json::parse_door(pack.as_bytes()).unwrap(), &NotRun);
    let mut lines = vec!["graph m".to_owned()];
    lines.extend((1..=EDGES).map(|at| format!("e{at} tool.look({at}) -> rec frontier[{at}]")));
    lines.extend(["n1 same(e1) pure".to_owned(), "replay(graph, frontier) == output required".to_owned()]);
    let graph = text::parse(&(lines.join("\n") + "\n")).unwrap();
    let children = BTreeMap::new();
    let edges = (1..=EDGES).map(|at| {
        let (args, value) = (vec![Value::from(at as u64)], Value::from(0u64));
        RecordedEdge {
            path: format!("e{at}"),
            index: at.to_string(),
            call: "tool.look".to_owned(),
            asked: asked("tool.look", &args),
            args,
            digest: value.digest(),
            value,
        }
    });
    let mut frontier = Frontier {
        inputs: BTreeMap::new(),
        edges: edges.collect(),
        nodes: BTreeMap::new(),
        output: None,
        limit: None,
        is_ordered: true,
    };
    let zero = |_: &_| Some(Value::from(0u64));
    frontier.nodes = evaluate(&graph, &children, &functions, &frontier.inputs, &mut { zero })
        .unwrap()
        .nodes
        .into_iter()
        .collect();
    let others: BTreeMap<String, Value> =
        (1..=EDGES).map(|at| (format!("e{at}"), Value::from(1u64))).collect();

    let mut seen = [0; EDGES + 1];
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let terms: Vec<(u64, bool)> = (0..=dice.below(3))
            .map(|_| {
                let size = 1 + dice.below(EDGES as u64);
                let set = (0..size).fold(0, |set, _| set | 1 << dice.below(EDGES as u64));
                (set, dice.below(6) == 0)
            })
            .collect();
        let text = terms.iter().map(|(set, negated)| {
            let all = (0..EDGES).filter(|at| set >> at & 1 == 1);
            let all: Vec<String> = all.map(|at| format!("state.edges.e{} == 1", at + 1)).collect();
            format!("{}({})", if *negated { "!" } else { "" }, all.join(" && "))
        });
        let text = text.collect::<Vec<_>>().join(" || ");
        let holds = |taken: u64| terms.iter().any(|(set, negated)| (taken & set == *set) != *negated);
        let flips: Vec<u64> = (1..1 << EDGES).filter(|taken| holds(*taken) != holds(0)).collect();
        let fewest = flips.iter().map(|taken| taken.count_ones() as usize).min();

        let predicate = Expr::parse_condition(&text, &Scope::new()).unwrap();
        let found = minimize(&graph, &children, &functions, &frontier, &others, &predicate);
        assert_eq!(found.recorded, Some(holds(0)), "{text}");
        let taken =
            found.edges.keys().fold(0u64, |set, path| set | 1 << (path[1..].parse::<u64>().unwrap() - 1));
        seen[found.edges.len()] += 1;
        let is_flip_of_all = holds((1 << EDGES) - 1) != holds(0);
        match fewest {
            Some(fewest) if fewest <= EXHAUSTIVE_MAX || is_flip_of_all => {
                assert!(holds(taken) != holds(0), "{text}: {found:?}");
                for one in (0..EDGES).filter(|one| taken >> one & 1 == 1) {
                    assert_eq!(holds(taken & !(1 << one)), holds(0), "{text}: {found:?} is not 1-minimal");
                }
                if found.minimality == Minimality::Smallest {
                    assert_eq!(found.edges.len(), fewest, "{text}: {found:?}");
                }
                assert!(fewest > EXHAUSTIVE_MAX || found.minimality == Minimality::Smallest, "{text}");
            }
            _ => assert!(!found.flips(), "{text}: {found:?}"),
        }
    }
    assert!(seen.iter().take(EXHAUSTIVE_MAX + 2).all(|many| *many > 0), "sizes {seen:?}");
}
