//! The causal graph of a run as text, DOT and SVG (forensic debugger specification, 1).

use dendrer::kernel::causal::CausalGraph;
use dendrer::run::causal::Causal;
use dendrer_object::RunName;
use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::geometry::Point;
use layout::core::style::StyleAttr;
use layout::std_shapes::shapes::{Arrow, Element, ShapeKind};
use layout::topo::layout::VisualGraph;

use crate::answer::{Line, Page};
use crate::table::{Align, Table};
use crate::{count, quote, thousands};

/// How many nodes an SVG has at most.
pub const SVG_MAX: u64 = 200;

/// How many nodes are listed one by one; a longer graph is folded.
pub const ONE_BY_ONE_MAX: u64 = 200;

/// Nodes of one branch in which nothing branches and nothing is merged.
struct Stretch {
    first: u64,
    last: u64,
    nodes: u64,
    /// Parents of the first node that are of other agents, or the beginning of the run.
    from: Vec<u64>,
    /// How many children the last node has.
    children: usize,
}

fn stretches(graph: &CausalGraph) -> Vec<Stretch> {
    let children = graph.children();
    let at = |tick: u64| usize::try_from(tick).expect("a tick in memory");
    let mut found: Vec<Stretch> = Vec::new();
    // The stretch that each node is in.
    let mut of = vec![0; at(graph.tip()) + 1];
    for tick in 1..=graph.tip() {
        let parents = graph.parents(tick);
        let own =
            parents.iter().copied().find(|parent| *parent > 0 && graph.agent(*parent) == graph.agent(tick));
        match (parents, own) {
            ([only], Some(own)) if *only == own && children[at(own)].len() == 1 => {
                let stretch = of[at(own)];
                of[at(tick)] = stretch;
                let stretch: &mut Stretch = &mut found[stretch];
                (stretch.last, stretch.nodes) = (tick, stretch.nodes + 1);
                stretch.children = children[at(tick)].len();
            }
            _ => {
                of[at(tick)] = found.len();
                let from = parents.iter().copied().filter(|parent| Some(*parent) != own).collect();
                found.push(Stretch {
                    first: tick,
                    last: tick,
                    nodes: 1,
                    from,
                    children: children[at(tick)].len(),
                });
            }
        }
    }
    found
}

/// Lists the stretches of a graph, each with its agent, its ticks, how many nodes it has, and what it is merged from.
pub fn folded_lines(run: &RunName, causal: &Causal, page: &Page) -> Vec<Line> {
    let graph = &causal.graph;
    let mut table = Table::new([
        ("ticks", Align::Left),
        ("agent", Align::Left),
        ("nodes", Align::Right),
        ("from", Align::Left),
        ("branches", Align::Right),
    ]);
    let all = stretches(graph);
    for stretch in &all {
        let ticks = match stretch.first == stretch.last {
            true => stretch.first.to_string(),
            false => format!("{}..{}", stretch.first, stretch.last),
        };
        let from: Vec<String> = stretch
            .from
            .iter()
            .map(|tick| match graph.agent(*tick) {
                Some(agent) => format!("{}@{tick}", quote::escape(agent)),
                None => "the beginning".to_owned(),
            })
            .collect();
        let agent = graph.agent(stretch.first).map(|agent| quote::escape(agent)).unwrap_or_default();
        let branches = if stretch.children > 1 { stretch.children.to_string() } else { "-".to_owned() };
        table.row(vec![ticks, agent, thousands(stretch.nodes), from.join(", "), branches]);
    }
    let mut lines = page.table(&table);
    let nodes = count(graph.tip(), "node", "nodes");
    lines.push(format!("{nodes} of {run} in {}", count(all.len() as u64, "stretch", "stretches")).into());
    lines
}

/// Writes the graph as DOT: a line for each node, and one with `->` for each parent.
pub fn dot(run: &RunName, causal: &Causal) -> String {
    let quoted =
        |text: &str| format!("\"{}\"", quote::escape(text).replace('\\', "\\\\").replace('"', "\\\""));
    let graph = &causal.graph;
    let name = |tick: u64| quoted(&format!("{tick} {}", causal.name(tick)));
    let mut out = format!("digraph {} {{\n  rankdir=TB;\n  node [shape=box];\n", quoted(run.as_str()));
    for tick in 0..=graph.tip() {
        let agent = graph.agent(tick).map_or("the beginning", |agent| agent);
        out.push_str(&format!("  {} [label={}];\n", name(tick), quoted(&label(causal, tick, agent))));
    }
    for tick in 1..=graph.tip() {
        for parent in graph.parents(tick) {
            out.push_str(&format!("  {} -> {};\n", name(*parent), name(tick)));
        }
    }
    out.push_str("}\n");
    out
}

fn label(causal: &Causal, tick: u64, agent: &str) -> String {
    format!("{tick} {agent} {}", causal.name(tick))
}

/// Writes the graph as SVG; `None` if it has more than [`SVG_MAX`] nodes.
pub fn svg(causal: &Causal) -> Option<String> {
    let graph = &causal.graph;
    if graph.tip() > SVG_MAX {
        return None;
    }
    let mut drawn = VisualGraph::new(Orientation::TopToBottom);
    let mut handles = Vec::new();
    for tick in 0..=graph.tip() {
        let agent = graph.agent(tick).map_or("the beginning", |agent| agent);
        let text = quote::escape(&label(causal, tick, agent));
        let size = Point::new(20.0 + 9.0 * text.chars().count() as f64, 30.0);
        let shape = ShapeKind::new_box(&text);
        handles.push(drawn.add_node(Element::create(
            shape,
            StyleAttr::simple(),
            Orientation::TopToBottom,
            size,
        )));
    }
    let at = |tick: u64| usize::try_from(tick).expect("a tick in memory");
    for tick in 1..=graph.tip() {
        for parent in graph.parents(tick) {
            drawn.add_edge(Arrow::simple(""), handles[at(*parent)], handles[at(tick)]);
        }
    }
    let mut writer = SVGWriter::new();
    drawn.do_it(false, false, false, &mut writer);
    Some(writer.finalize())
}
