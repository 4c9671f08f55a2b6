//! The edges that a statement reads, by its path: directly, through nodes, and through repeats and graphs that an edge runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Argument, Graph, Reference, Statement, StatementBody, last_node};

/// The owner of a list of statements.
#[derive(Debug, Clone, Copy)]
enum Around<'g> {
    /// The graph itself.
    Whole,
    /// A round of a repeat, from 1.
    Round(&'g Statement, u64),
    /// A graph that an edge runs.
    Child(&'g Statement, &'g Graph),
}

/// A list of statements around a place, with the beginning of the paths in it.
#[derive(Debug, Clone)]
struct Level<'g> {
    statements: &'g [Statement],
    prefix: String,
    around: Around<'g>,
}

/// A statement, with the lists around it from the outside in.
type Placed<'g> = (Vec<Level<'g>>, &'g Statement);

fn find<'g>(graph: &'g Graph, children: &'g BTreeMap<String, Graph>, path: &str) -> Option<Placed<'g>> {
    let whole = Level { statements: &graph.statements, prefix: String::new(), around: Around::Whole };
    let mut levels = vec![whole];
    let mut parts = path.split('.').peekable();
    loop {
        let (id, level) = (parts.next()?, levels.last()?);
        let statement = level.statements.iter().find(|statement| statement.id == id)?;
        if parts.peek().is_none() {
            return Some((levels, statement));
        }
        let inner = match &statement.body {
            StatementBody::Node { .. } => return None,
            StatementBody::Repeat { .. } => round(&levels, statement, parts.next()?.parse().ok()?),
            StatementBody::Edge { .. } => child(&levels, statement, children)?,
        };
        levels.push(inner);
    }
}

fn path_of(levels: &[Level<'_>], statement: &Statement) -> String {
    format!("{}{}", levels.last().map_or("", |level| &level.prefix), statement.id)
}

fn round<'g>(levels: &[Level<'g>], repeat: &'g Statement, round: u64) -> Level<'g> {
    let statements = match &repeat.body {
        StatementBody::Repeat { statements, .. } => &statements[..],
        _ => &[],
    };
    let prefix = format!("{}.{round}.", path_of(levels, repeat));
    Level { statements, prefix, around: Around::Round(repeat, round) }
}

fn child<'g>(
    levels: &[Level<'g>],
    edge: &'g Statement,
    children: &'g BTreeMap<String, Graph>,
) -> Option<Level<'g>> {
    let child = children.get(edge.call()?.0.strip_prefix("graph.")?)?;
    let prefix = format!("{}.", path_of(levels, edge));
    Some(Level { statements: &child.statements, prefix, around: Around::Child(edge, child) })
}

/// The effect of an edge, or the function of a node, by its path.
pub fn effect_at<'g>(graph: &'g Graph, children: &'g BTreeMap<String, Graph>, path: &str) -> Option<&'g str> {
    Some(find(graph, children, path)?.1.call()?.0)
}

/// The walk from a statement to the edges that it reads.
struct Walk<'g, 'k> {
    children: &'g BTreeMap<String, Graph>,
    known: &'k BTreeSet<String>,
    left: Vec<Placed<'g>>,
    met: BTreeSet<String>,
}

impl<'g> Walk<'g, '_> {
    fn add(&mut self, levels: Vec<Level<'g>>, id: &str) {
        let statements = levels.last().map_or(&[][..], |level| level.statements);
        if let Some(statement) = statements.iter().find(|statement| statement.id == id)
            && self.met.insert(path_of(&levels, statement))
        {
            self.left.push((levels, statement));
        }
    }

    /// Adds the statement whose value an argument has.
    fn argument(&mut self, levels: &[Level<'g>], argument: &Argument) {
        if let Argument::Reference(reference) = argument {
            self.reference(levels, reference);
        }
    }

    fn reference(&mut self, levels: &[Level<'g>], reference: &Reference) {
        for (depth, level) in levels.iter().enumerate().rev() {
            if level.statements.iter().any(|statement| statement.id == reference.name) {
                return self.add(levels[..=depth].to_vec(), &reference.name);
            }
            match level.around {
                Around::Round(repeat, 1) if repeat.id == reference.name => {
                    if let StatementBody::Repeat { from, .. } = &repeat.body {
                        return self.argument(&levels[..depth], from);
                    }
                }
                Around::Round(repeat, number) if repeat.id == reference.name => {
                    return self.round(&levels[..depth], repeat, number - 1);
                }
                Around::Child(edge, child) => {
                    let at = child.inputs().into_iter().position(|name| name == reference.name);
                    let args = edge.call().map_or(&[][..], |(_, args)| args);
                    if let Some(argument) = at.and_then(|at| args.get(at)) {
                        self.argument(&levels[..depth], argument);
                    }
                    return;
                }
                Around::Whole | Around::Round(..) => {}
            }
        }
    }

    /// Adds what a round of a repeat ends with: its last node, and whether it was the last round.
    fn round(&mut self, levels: &[Level<'g>], repeat: &'g Statement, number: u64) {
        let StatementBody::Repeat { until, statements, .. } = &repeat.body else { return };
        let inner = [levels, &[round(levels, repeat, number)]].concat();
        for id in last_node(statements).into_iter().chain([&**until]) {
            self.add(inner.clone(), id);
        }
    }

    /// Adds what a statement reads.
    fn of(&mut self, levels: &[Level<'g>], statement: &'g Statement) {
        statement.condition.iter().for_each(|reference| self.reference(levels, reference));
        match &statement.body {
            StatementBody::Repeat { from, .. } => {
                self.argument(levels, from);
                let prefix = format!("{}.", path_of(levels, statement));
                let rounds =
                    self.known.iter().filter_map(|path| path.strip_prefix(&prefix)?.split('.').next());
                let last = rounds.filter_map(|number| number.parse().ok()).max().unwrap_or(1);
                self.round(levels, statement, last);
            }
            StatementBody::Node { args, .. } | StatementBody::Edge { args, .. } => {
                args.iter().for_each(|argument| self.argument(levels, argument));
            }
        }
    }
}

/// The paths of the edges that a statement reads: directly, or through anything but an edge. `known` has the paths of edges, by which
/// the rounds of repeats are counted.
pub fn edges_read(
    graph: &Graph,
    children: &BTreeMap<String, Graph>,
    path: &str,
    known: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut walk = Walk { children, known, left: Vec::new(), met: BTreeSet::new() };
    let Some((levels, first)) = find(graph, children, path) else { return found };
    walk.of(&levels, first);
    while let Some((mut levels, statement)) = walk.left.pop() {
        let is_edge = matches!(statement.body, StatementBody::Edge { .. });
        match child(&levels, statement, walk.children) {
            Some(inner) => {
                statement.condition.iter().for_each(|reference| walk.reference(&levels, reference));
                let last = last_node(inner.statements);
                levels.push(inner);
                last.into_iter().for_each(|id| walk.add(levels.clone(), id));
            }
            None if is_edge => drop(found.insert(path_of(&levels, statement))),
            None => {
                // The result of a host function is on record as the value of an edge is.
                found.extend(known.get(&path_of(&levels, statement)).cloned());
                walk.of(&levels, statement);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    #[test]
    fn edges_are_found_through_nodes_repeats_and_children() {
        let graph = "graph g\ne1 a.a(1) -> rec frontier[1]\ne2 a.b(e1) -> rec frontier[2]\nn0 f(e2) pure\nr1 repeat(n0) max 3 until n1\ne3 a.c(r1) -> rec frontier[3.*.1]\nn1 f(e3) pure\nn2 f(r1) pure\nend r1\nn3 f(r1) pure\ne4 graph.c(n0) -> rec frontier[4]\nn4 f(e4) pure\nreplay(graph, frontier) == output required\n";
        let child = "graph c\nn1 f(x) pure\ne1 a.d(x) -> rec frontier[1]\nn2 f(n1, e1) pure\nreplay(graph, frontier) == output required\n";
        let (graph, child) = (text::parse(graph).unwrap(), text::parse(child).unwrap());
        let children = BTreeMap::from([("c".to_owned(), child)]);
        let known = ["e1", "e2", "r1.1.e3", "r1.2.e3", "e4.e1"].map(str::to_owned).into();
        let read =
            |path| edges_read(&graph, &children, path, &known).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(read("n0"), "e2");
        assert_eq!(read("e2"), "e1");
        assert_eq!(read("r1.2.n2"), "e2 r1.1.e3");
        assert_eq!(read("n3"), "e2 r1.1.e3 r1.2.e3");
        assert_eq!(read("e4.n2"), "e2 e4.e1");
        assert_eq!(read("n4"), "e2 e4.e1");
        assert_eq!(read("gone"), "");
        assert_eq!(effect_at(&graph, &children, "e4.e1"), Some("a.d"));
    }
}
