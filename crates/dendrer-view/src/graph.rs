//! The causal graph of a run as text, DOT and SVG (forensic debugger specification, 1).

use dendrer::kernel::causal::CausalGraph;
use dendrer::run::causal::Causal;
use dendrer_object::RunName;
use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::format::RenderBackend;
use layout::core::geometry::Point;
use layout::core::style::StyleAttr;
use layout::std_shapes::shapes::{Arrow, Element, ShapeKind};
use layout::topo::layout::VisualGraph;

use crate::answer::{Line, Page};
use crate::table::{Align, Table};
use crate::{count, quote, thousands};

/// The largest number of boxes in an SVG: 200 nodes of a run, and its beginning.
pub const SVG_MAX: usize = 201;

/// The largest number of nodes that are listed one by one; a longer graph is folded.
pub const ONE_BY_ONE_MAX: u64 = 200;

/// Nodes of one branch in which nothing branches and nothing is merged.
struct Stretch {
    first: u64,
    last: u64,
    nodes: u64,
    /// Parents of the first node that are of other agents, or the beginning of the run.
    from: Vec<u64>,
    /// The number of children of the last node.
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
                Some(agent) => format!("{}@{tick}", quote::name(agent)),
                None => "the beginning".to_owned(),
            })
            .collect();
        let agent = graph.agent(stretch.first).map(|agent| quote::name(agent)).unwrap_or_default();
        let branches = if stretch.children > 1 { stretch.children.to_string() } else { "-".to_owned() };
        table.row(vec![ticks, agent, thousands(stretch.nodes), from.join(", "), branches]);
    }
    let mut lines = page.rows(&table);
    let nodes = count(graph.tip(), "node", "nodes");
    lines.push(format!("{nodes} of {run} in {}", count(all.len() as u64, "stretch", "stretches")).into());
    lines
}

/// A box of a drawing.
#[derive(Debug, Clone, Default)]
pub struct DrawnBox {
    /// The name, which no other box has.
    pub name: String,
    /// The text in the box.
    pub label: String,
    /// The kind: a type, or the word of a statement.
    pub kind: String,
    /// The tick, if it is one.
    pub tick: Option<u64>,
    /// The run.
    pub run: Option<RunName>,
    /// A word for its end or its state.
    pub status: Option<&'static str>,
}

/// An arrow of a drawing, between two boxes by their places in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawnArrow {
    /// The box that it begins at.
    pub from: usize,
    /// The box that it leads to.
    pub to: usize,
    /// The relation.
    pub rel: &'static str,
}

/// A drawing: boxes, and arrows between them.
#[derive(Debug, Clone, Default)]
pub struct Drawing {
    /// The title.
    pub title: String,
    /// The boxes.
    pub boxes: Vec<DrawnBox>,
    /// The arrows.
    pub arrows: Vec<DrawnArrow>,
}

impl Drawing {
    /// Draws the causal graph of a run.
    pub fn of_causal(run: &RunName, causal: &Causal) -> Drawing {
        let graph = &causal.graph;
        let at = |tick: u64| usize::try_from(tick).expect("a tick in memory");
        let one = |tick: u64| {
            let (agent, name) = (graph.agent(tick).map_or("the beginning", |agent| agent), causal.name(tick));
            DrawnBox {
                name: format!("{tick} {name}"),
                label: format!("{tick} {agent} {name}"),
                kind: "transition".to_owned(),
                tick: Some(tick),
                run: Some(run.clone()),
                status: None,
            }
        };
        let arrows = (1..=graph.tip())
            .flat_map(|tick| graph.parents(tick).iter().map(move |parent| (*parent, tick)))
            .map(|(parent, tick)| DrawnArrow { from: at(parent), to: at(tick), rel: "parent" });
        Drawing {
            title: run.to_string(),
            boxes: (0..=graph.tip()).map(one).collect(),
            arrows: arrows.collect(),
        }
    }

    /// Writes DOT: a line for each box, and one with `->` for each arrow.
    pub fn dot(&self) -> String {
        let quoted =
            |text: &str| format!("\"{}\"", quote::escape(text).replace('\\', "\\\\").replace('"', "\\\""));
        let mut out = format!("digraph {} {{\n  rankdir=TB;\n  node [shape=box];\n", quoted(&self.title));
        for DrawnBox { name, label, .. } in &self.boxes {
            out.push_str(&format!("  {} [label={}];\n", quoted(name), quoted(label)));
        }
        for arrow in &self.arrows {
            let ends = [arrow.from, arrow.to].map(|at| quoted(&self.boxes[at].name));
            out.push_str(&format!("  {} -> {};\n", ends[0], ends[1]));
        }
        out.push_str("}\n");
        out
    }

    /// Writes SVG; `None` with more than [`SVG_MAX`] boxes.
    pub fn svg(&self) -> Option<String> {
        if self.boxes.len() > SVG_MAX {
            return None;
        }
        let mut writer = SVGWriter::new();
        self.place(&mut writer, false);
        Some(writer.finalize())
    }

    /// Places boxes and arrows, and hands them to a backend. With `names`, each has its number as a property: `n3`, `a7`.
    pub(crate) fn place(&self, backend: &mut dyn RenderBackend, names: bool) {
        if self.boxes.is_empty() {
            return;
        }
        let mut drawn = VisualGraph::new(Orientation::TopToBottom);
        let mut handles = Vec::with_capacity(self.boxes.len());
        for (number, DrawnBox { label, .. }) in self.boxes.iter().enumerate() {
            let text = quote::escape(label);
            let size = Point::new(20.0 + 9.0 * text.chars().count() as f64, 30.0);
            let mut element = Element::create(
                ShapeKind::new_box(&text),
                StyleAttr::simple(),
                Orientation::TopToBottom,
                size,
            );
            element.properties = names.then(|| format!("n{number}"));
            handles.push(drawn.add_node(element));
        }
        for (number, DrawnArrow { from, to, .. }) in self.arrows.iter().enumerate() {
            let mut arrow = Arrow::simple("");
            arrow.properties = names.then(|| format!("a{number}"));
            drawn.add_edge(arrow, handles[*from], handles[*to]);
        }
        drawn.do_it(false, false, false, backend);
    }
}
