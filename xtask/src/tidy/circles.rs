//! Finds the circles of a crate: sets of files each of which reaches every other one along arrows.

use std::collections::BTreeSet;

use super::graph::Graph;
use super::limits::Count;

/// Counts the files of the largest circle of a crate, 0 if there is none. The lines are the arrows inside it.
pub(super) fn count(member: &str, graph: &Graph) -> Count {
    let largest = largest(graph);
    let is_inside = |(from, to): &(usize, usize)| largest.contains(from) && largest.contains(to);
    let arrows = graph.arrows.keys().copied().filter(is_inside).map(|arrow| graph.arrow(arrow)).collect();
    Count {
        key: format!("circle.{member}"),
        meaning: format!("of {} files are in the largest circle", graph.files.len()),
        number: largest.len(),
        lines: arrows,
    }
}

fn largest(graph: &Graph) -> BTreeSet<usize> {
    let ahead = reached(graph.files.len(), graph.arrows.keys().copied());
    let circle = |from: usize| -> BTreeSet<usize> {
        ahead[from].iter().copied().filter(|to| ahead[*to].contains(&from)).collect()
    };
    // Of circles of the same size the first is kept, so that reports do not change by chance.
    (0..graph.files.len()).rev().map(circle).max_by_key(BTreeSet::len).unwrap_or_default()
}

/// Returns for each file the files that it reaches in one step or more.
fn reached(files: usize, arrows: impl Iterator<Item = (usize, usize)>) -> Vec<BTreeSet<usize>> {
    let mut next = vec![Vec::new(); files];
    arrows.for_each(|(from, to)| next[from].push(to));
    let reach = |from: usize| {
        let (mut seen, mut open) = (BTreeSet::new(), next[from].clone());
        while let Some(file) = open.pop() {
            if seen.insert(file) {
                open.extend(&next[file]);
            }
        }
        seen
    };
    (0..files).map(reach).collect()
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::graph;
    use super::*;

    fn check(files: &[(&str, &str)], number: usize, lines: &[&str]) {
        let count = count("x", &graph(files));
        assert_eq!(
            (count.number, count.lines),
            (number, lines.iter().map(|line| (*line).to_owned()).collect())
        );
    }

    #[test]
    fn the_largest_circle_is_counted() {
        check(
            &[
                ("a", "use crate::b::B;"),
                ("b", "use crate::c::C; pub struct B;"),
                ("c", "use crate::a::A; use crate::d::D; pub struct C;"),
                ("d", "use crate::e::E; pub struct D;"),
                ("e", "use crate::d::D; pub struct E;"),
                ("lib", "use crate::a::A;"),
            ],
            3,
            &["a -> b (line 1: crate::b::B)", "b -> c (line 1: crate::c::C)", "c -> a (line 1: crate::a::A)"],
        );
    }

    #[test]
    fn a_crate_without_a_circle_has_0() {
        check(&[("a", "use crate::b::f;"), ("b", "pub fn f() {}"), ("lib", "")], 0, &[]);
    }
}
