//! The fewest other edge values that flip a predicate of what a graph makes.

use std::collections::{BTreeMap, BTreeSet};

use dendrer_kernel::expr::{Budget, Env, Expr, Truth};
use dendrer_object::Value;

use crate::Graph;
use crate::frontier::{Frontier, substitute};
use crate::functions::Functions;

/// How many values a search through all sets looks at together.
pub const EXHAUSTIVE_MAX: usize = 3;

/// How many evaluations one search may take: a search through all sets that would need more is not begun.
pub const EVALUATIONS_MAX: u64 = 20_000;

/// How many steps one evaluation of the predicate may take.
const STEPS_MAX: u64 = 10_000_000;

/// How much is known of the values that were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Minimality {
    /// No smaller set of the given values flips the predicate: all were tried.
    Smallest,
    /// Without any one of them it does not flip; a smaller set of others may.
    OneMinimal,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Minimal {
    /// The predicate over the recorded values; `None` if it cannot be judged, because a value is not there.
    pub recorded: Option<bool>,
    /// The predicate over all other values together.
    pub now: Option<bool>,
    /// The values that flip it, by path; empty if all together do not.
    pub edges: BTreeMap<String, Value>,
    /// How much is known of them.
    pub minimality: Minimality,
    /// How many sets of values were evaluated.
    pub tried: u64,
}

impl Minimal {
    /// Whether the other values flip the predicate.
    pub fn flips(&self) -> bool {
        !self.edges.is_empty()
    }
}

/// Finds the fewest of some other edge values that flip a predicate over `{"edges","nodes","output"}`. Sets of up to
/// [`EXHAUSTIVE_MAX`] values are all tried, smallest first and in the order of paths; if none of them flips it, values are
/// taken out of the whole one by one. An unknown value flips nothing.
pub fn minimize(
    graph: &Graph,
    children: &BTreeMap<String, Graph>,
    functions: &Functions,
    frontier: &Frontier,
    others: &BTreeMap<String, Value>,
    predicate: &Expr,
) -> Minimal {
    let by_path: BTreeMap<&str, &Value> =
        frontier.edges.iter().map(|edge| (&*edge.path, &edge.value)).collect();
    let mut tried = 0;
    let mut said = |taken: &BTreeSet<&String>| -> Option<bool> {
        tried += 1;
        let values = others.iter().filter(|(path, _)| taken.contains(path));
        let values: BTreeMap<String, Value> =
            values.map(|(path, value)| (path.clone(), value.clone())).collect();
        // A value that a node cannot be computed from says nothing.
        let made = substitute(graph, children, functions, frontier, &values).ok()?;
        let found = Some(made.found).filter(|_| made.failed.is_empty())?;
        let edges = found.edges.iter().filter(|(_, is_there)| *is_there).filter_map(|(asked, _)| {
            let value = values.get(&asked.path).or_else(|| by_path.get(&*asked.path).copied())?;
            Some((asked.path.as_str(), value.clone()))
        });
        let nodes = found.nodes.iter().map(|(path, value)| (path.as_str(), value.clone()));
        let members = [("edges", Value::record(edges)), ("nodes", Value::record(nodes))];
        let output = found.output.as_ref().map(|output| ("output", output.clone()));
        let state = Value::record(members.into_iter().chain(output));
        let env = Env { state: &state, counters: None, others: &[] };
        match predicate.holds(&env, &mut Budget::new(STEPS_MAX)) {
            Truth::True => Some(true),
            Truth::False => Some(false),
            Truth::Uncertain(_) | Truth::Exhausted => None,
        }
    };
    let all: Vec<&String> = others.keys().collect();
    let recorded = said(&BTreeSet::new());
    let now = said(&all.iter().copied().collect());
    let is_flip = |said: Option<bool>| said.is_some() && said != recorded;
    let found = |taken: &BTreeSet<&String>, minimality, tried| {
        let edges = taken.iter().map(|path| ((*path).clone(), others[*path].clone())).collect();
        Minimal { recorded, now, edges, minimality, tried }
    };
    let mut is_exhaustive = recorded.is_some();
    let mut smallest = None;
    let mut left = EVALUATIONS_MAX;
    for size in 1..=EXHAUSTIVE_MAX.min(all.len()) {
        let sets = binomial(all.len() as u64, size as u64);
        let Some(rest) = left.checked_sub(sets).filter(|_| is_exhaustive) else {
            is_exhaustive = false;
            break;
        };
        left = rest;
        for taken in sets_of(&all, size) {
            if is_flip(said(&taken)) {
                smallest = Some(taken);
                break;
            }
        }
        if smallest.is_some() {
            break;
        }
    }
    if let Some(taken) = smallest {
        return found(&taken, Minimality::Smallest, tried);
    }
    if recorded.is_none() || !is_flip(now) {
        let minimality =
            if all.len() <= EXHAUSTIVE_MAX { Minimality::Smallest } else { Minimality::OneMinimal };
        return found(&BTreeSet::new(), minimality, tried);
    }
    let mut taken: BTreeSet<&String> = all.iter().copied().collect();
    // Taking one out may make another one superfluous, so this ends when a whole round takes none out.
    loop {
        let before = taken.len();
        for path in &all {
            if taken.remove(path) && !is_flip(said(&taken)) {
                taken.insert(path);
            }
        }
        if taken.len() == before {
            break;
        }
    }
    // Then every smaller set was tried.
    let is_smallest = is_exhaustive && taken.len() == EXHAUSTIVE_MAX + 1;
    let minimality = if is_smallest { Minimality::Smallest } else { Minimality::OneMinimal };
    found(&taken, minimality, tried)
}

fn binomial(of: u64, take: u64) -> u64 {
    (0..take).fold(1, |sets: u64, at| sets.saturating_mul(of - at) / (at + 1))
}

/// All sets of a size, in the order of the list.
fn sets_of<'s>(all: &[&'s String], size: usize) -> Vec<BTreeSet<&'s String>> {
    if size == 0 {
        return vec![BTreeSet::new()];
    }
    let with = |at: usize| {
        let rest = sets_of(&all[at + 1..], size - 1);
        rest.into_iter().map(move |mut set| {
            set.insert(all[at]);
            set
        })
    };
    (0..all.len()).flat_map(with).collect()
}
