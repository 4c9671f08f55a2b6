//! The places of the nodes and edges of a picture of a run, as a document.
//!
//! Rule: places are whole units, and the same for the same record.

use std::collections::{BTreeMap, BTreeSet};

use dendrer::ask::layout::{LayoutQuestion, LayoutReply, PictureOf};
use dendrer::ask::runs::ListedRun;
use dendrer::kernel::status;
use dendrer::problem::Problem;
use dendrer::source::{Asked as _, Desk};
use dendrer_object::{Code, Record, RunName, Value, document};
use layout::core::format::{ClipHandle, RenderBackend};
use layout::core::geometry::Point;
use layout::core::style::StyleAttr;

use crate::answer::{Answer, Line, Page};
use crate::graph::{Drawing, DrawnArrow, DrawnBox, SVG_MAX};
use crate::graphs::drawing;
use crate::steps::CompositionAnswer;
use crate::table::{Align, Table};
use crate::{commitments, count, quote};

/// The largest number of nodes that are placed.
pub const NODES_MAX: usize = 500;
/// How many edges away from a node others are drawn if no number is given.
const DEPTH: u64 = 3;

document! {
    /// The places of a picture of a run
    pub object LayoutDocument: "layout" (answer: &LayoutAnswer) {
        /// The run
        run: &RunName = &answer.run,
        /// The kind of the picture
        of: PictureOf = answer.of,
        /// The last tick that is drawn; null if the picture has no ticks
        at: Option<u64> = answer.at,
        /// The width
        width: u64 = answer.placed.width,
        /// The height
        height: u64 = answer.placed.height,
        /// The nodes
        nodes: Vec<LayoutNode> = answer.nodes().collect(),
        /// The edges
        edges: Vec<LayoutEdge> = answer.edges().collect(),
    }

    /// A node of a picture
    object LayoutNode(drawn: &DrawnBox, place: &PlacedBox) {
        /// The id, which no other node has
        id: &str = &drawn.name,
        /// The text in the box
        label: &str = &drawn.label,
        /// The kind, like `transition`, `edge` or that of a commitment
        kind: &str = &drawn.kind,
        /// The tick; null if the node has no tick
        tick: Option<u64> = drawn.tick,
        /// The run; null if the node is of no run
        run: Option<&RunName> = drawn.run.as_ref(),
        /// A word for its end or its state; null if nothing is of note
        status: Option<&str> = drawn.status,
        /// The left side
        x: u64 = place.x,
        /// The upper side
        y: u64 = place.y,
        /// The width
        w: u64 = place.w,
        /// The height
        h: u64 = place.h,
    }

    /// An edge of a picture
    object LayoutEdge(ends: (&str, &str), kind: &str, path: &[[u64; 2]]) {
        /// The id of the node that it begins at
        from: &str = ends.0,
        /// The id of the node that it leads to
        to: &str = ends.1,
        /// The relation
        rel: &str = kind,
        /// The points that it passes, each with its distance from the left and from above
        points: Vec<Vec<u64>> = path.iter().map(|point| point.to_vec()).collect(),
    }
}

/// A picture with the place of each node and edge.
#[derive(Debug)]
pub struct LayoutAnswer {
    run: RunName,
    of: PictureOf,
    at: Option<u64>,
    drawing: Drawing,
    placed: Placed,
}

/// The place of a box, in whole units.
#[derive(Debug, Clone, Copy, Default)]
struct PlacedBox {
    x: u64,
    y: u64,
    w: u64,
    h: u64,
}

/// The places of a drawing.
#[derive(Debug, Default)]
struct Placed {
    width: u64,
    height: u64,
    boxes: Vec<PlacedBox>,
    arrows: Vec<Vec<[u64; 2]>>,
}

impl LayoutAnswer {
    /// Asks for a picture, and places it.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the run cannot be read, the focus is no node, or there are more than 500 nodes.
    pub fn of(question: &LayoutQuestion, desk: &mut dyn Desk) -> Result<LayoutAnswer, Problem> {
        let (run, at, mut drawing, record): (_, _, _, RecordOf) = match question.ask(desk)? {
            LayoutReply::Causal(place, causal) => {
                let drawing = Drawing::of_causal(place.trace.name(), &causal);
                let (run, at) = (place.trace.name().clone(), place.at);
                (run, Some(at), drawing, Box::new(move |tick| Ok(Some(place.trace.record(tick)?))))
            }
            LayoutReply::Compiled(found) => {
                let mut drawing = drawing(&found.graph);
                for one in &mut drawing.boxes {
                    let edges = &found.frontier.edges;
                    let is_recorded = edges.iter().any(|edge| edge.path == one.name);
                    one.status = (one.kind == "edge" && is_recorded).then_some("recorded");
                }
                (found.run.clone(), None, drawing, Box::new(|_| Ok(None)))
            }
            LayoutReply::Commitments(found) => {
                let (run, at) = (found.run.clone(), found.at);
                let answer = commitments::CommitmentGraphAnswer { found: *found };
                (run, Some(at), answer.drawing(), Box::new(|_| Ok(None)))
            }
            LayoutReply::Steps(run, made) => {
                (run, None, CompositionAnswer(&made).drawing(), Box::new(|_| Ok(None)))
            }
            LayoutReply::Forks(run, runs) => {
                let drawing = family(&run, &runs);
                (run, None, drawing, Box::new(|_| Ok(None)))
            }
        };
        if let Some(focus) = &question.focus {
            drawing = around(drawing, focus, question.depth.unwrap_or(DEPTH))?;
        }
        if drawing.boxes.len() > NODES_MAX {
            let what = format!("the picture has {} nodes, and {NODES_MAX} are placed", drawing.boxes.len());
            return Err(Problem::new(Code::E0601, what).note(
                "focus=ID&depth=N draws a node with those near it, and at=TICK ends the picture there",
            ));
        }
        for one in &mut drawing.boxes {
            let Some(found) = one.tick.filter(|tick| *tick > 0).map(&record).transpose()?.flatten() else {
                continue;
            };
            one.status = status_of(&found);
        }
        let placed = Placed::of(&drawing);
        Ok(LayoutAnswer { run, of: question.of.unwrap_or_default(), at, drawing, placed })
    }

    fn nodes(&self) -> impl Iterator<Item = LayoutNode> {
        let places = self.drawing.boxes.iter().zip(&self.placed.boxes);
        places.map(|(drawn, place)| LayoutNode::of(drawn, place))
    }

    fn edges(&self) -> impl Iterator<Item = LayoutEdge> {
        let name = |at: usize| self.drawing.boxes.get(at).map_or("", |drawn| &*drawn.name);
        let places = self.drawing.arrows.iter().zip(&self.placed.arrows);
        places.map(move |(arrow, path)| LayoutEdge::of((name(arrow.from), name(arrow.to)), arrow.rel, path))
    }

    /// Returns the picture as SVG.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if it has too many boxes for one.
    pub fn svg(&self) -> Result<String, Problem> {
        self.drawing.svg().ok_or_else(|| {
            let boxes = self.drawing.boxes.len();
            let what = format!("the picture has {boxes} boxes, and {SVG_MAX} are drawn");
            Problem::new(Code::E0601, what).note("focus=ID&depth=N draws a node with those near it")
        })
    }
}

/// Reads the record of a tick, for a picture of transitions.
type RecordOf = Box<dyn Fn(u64) -> Result<Option<Record>, Problem>>;

/// Returns a word for what is of note at a transition; the worst one.
fn status_of(record: &Record) -> Option<&'static str> {
    let content = record.content();
    let text = |outer: &str, inner: &str| content.get(outer)?.get(inner)?.as_str();
    match () {
        () if text("policy", "decision") == Some("deny") => Some("denied"),
        () if text("result", "status").is_some_and(status::is_failed) => Some("failed"),
        () if content.get("anomalies").is_some() => Some("anomaly"),
        () => None,
    }
}

/// Draws the runs that a run was forked from, and those that were forked from any of them.
fn family(run: &RunName, runs: &[ListedRun]) -> Drawing {
    let parent = |name: &str| {
        let own = runs.iter().find(|one| one.summary.name.as_str() == name)?;
        own.forked_from.as_ref().map(|(parent, _)| parent.as_str())
    };
    // A parent of another store is no run of the list.
    let root = |name: &str| {
        let mut root = name.to_owned();
        for _ in 0..runs.len() {
            match parent(&root) {
                Some(above) if runs.iter().any(|one| one.summary.name.as_str() == above) => {
                    root = above.to_owned();
                }
                _ => break,
            }
        }
        root
    };
    let own = root(run.as_str());
    let mut members: Vec<&ListedRun> =
        runs.iter().filter(|one| root(one.summary.name.as_str()) == own).collect();
    members.sort_by(|a, b| a.summary.name.cmp(&b.summary.name));
    let at = |name: &str| members.iter().position(|one| one.summary.name.as_str() == name);
    let arrows = members.iter().enumerate().filter_map(|(to, one)| {
        let (parent, _) = one.forked_from.as_ref()?;
        Some(DrawnArrow { from: at(parent.as_str())?, to, rel: "fork" })
    });
    let boxes = members.iter().map(|one| {
        let name = one.summary.name.to_string();
        let label = match &one.forked_from {
            Some((_, tick)) => format!("{name} from tick {tick}"),
            None => name.clone(),
        };
        DrawnBox {
            name,
            label,
            kind: "run".to_owned(),
            tick: one.forked_from.as_ref().map(|(_, tick)| *tick),
            run: Some(one.summary.name.clone()),
            status: match () {
                () if one.unfinished.is_some() => Some("unfinished"),
                () if one.dropped => Some("dropped"),
                () if one.summary.ended => Some("ended"),
                () => None,
            },
        }
    });
    Drawing { title: run.to_string(), boxes: boxes.collect(), arrows: arrows.collect() }
}

/// Returns a drawing of one box, and of those that at most so many arrows lead from or to.
fn around(drawing: Drawing, focus: &str, depth: u64) -> Result<Drawing, Problem> {
    // A tick names the box of its transition.
    let is_focus =
        |one: &DrawnBox| one.name == focus || one.tick.is_some_and(|tick| tick.to_string() == focus);
    let Some(begin) = drawing.boxes.iter().position(is_focus) else {
        let what = format!("the picture has no node {}", quote::escape(focus));
        return Err(Problem::new(Code::E0104, what).note("a node is named by its id or its tick"));
    };
    let mut near: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for arrow in &drawing.arrows {
        near.entry(arrow.from).or_default().push(arrow.to);
        near.entry(arrow.to).or_default().push(arrow.from);
    }
    let (mut kept, mut edge) = (BTreeSet::from([begin]), vec![begin]);
    for _ in 0..depth {
        let next = edge.iter().flat_map(|at| near.get(at).into_iter().flatten().copied());
        let next: Vec<usize> = next.collect();
        edge = next.into_iter().filter(|at| kept.insert(*at)).collect();
        if edge.is_empty() {
            break;
        }
    }
    let places: BTreeMap<usize, usize> = kept.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let arrows = drawing.arrows.iter().filter_map(|arrow| {
        Some(DrawnArrow { from: *places.get(&arrow.from)?, to: *places.get(&arrow.to)?, ..*arrow })
    });
    let arrows = arrows.collect();
    let mut number = 0..;
    let boxes = drawing.boxes.into_iter().filter(|_| number.next().is_some_and(|at| kept.contains(&at)));
    Ok(Drawing { title: drawing.title, boxes: boxes.collect(), arrows })
}

impl Placed {
    fn of(drawing: &Drawing) -> Placed {
        let mut placed = Placed {
            boxes: vec![PlacedBox::default(); drawing.boxes.len()],
            arrows: vec![Vec::new(); drawing.arrows.len()],
            ..Placed::default()
        };
        drawing.place(&mut placed, true);
        placed
    }

    fn reaches(&mut self, x: u64, y: u64) {
        (self.width, self.height) = (self.width.max(x), self.height.max(y));
    }
}

/// Returns a distance in whole units.
fn units(distance: f64) -> u64 {
    distance.max(0.0).round() as u64
}

/// Returns the number in the property of a box or an arrow.
fn numbered(properties: Option<&String>, letter: char) -> Option<usize> {
    properties?.strip_prefix(letter)?.parse().ok()
}

impl RenderBackend for Placed {
    fn draw_rect(
        &mut self,
        xy: Point,
        size: Point,
        _: &StyleAttr,
        properties: Option<String>,
        _: Option<ClipHandle>,
    ) {
        let place = PlacedBox { x: units(xy.x), y: units(xy.y), w: units(size.x), h: units(size.y) };
        self.reaches(place.x + place.w, place.y + place.h);
        if let Some(own) = numbered(properties.as_ref(), 'n').and_then(|at| self.boxes.get_mut(at)) {
            *own = place;
        }
    }

    fn draw_arrow(
        &mut self,
        path: &[(Point, Point)],
        _: bool,
        _: (bool, bool),
        _: &StyleAttr,
        properties: Option<String>,
        _: &str,
    ) {
        // The first pair is a point and its control, each later one a control and its point.
        let places =
            path.iter().enumerate().map(|(at, (first, second))| if at == 0 { first } else { second });
        let points: Vec<[u64; 2]> = places.map(|at| [units(at.x), units(at.y)]).collect();
        points.iter().for_each(|[x, y]| self.reaches(*x, *y));
        if let Some(own) = numbered(properties.as_ref(), 'a').and_then(|at| self.arrows.get_mut(at)) {
            *own = points;
        }
    }

    fn draw_line(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn draw_circle(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn draw_text(&mut self, _: Point, _: &str, _: &StyleAttr) {}

    fn create_clip(&mut self, _: Point, _: Point, _: usize) -> ClipHandle {
        0
    }
}

impl Answer for LayoutAnswer {
    fn document(&self) -> Value {
        LayoutDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut table = Table::new([("from", Align::Left), ("relation", Align::Left), ("to", Align::Left)]);
        for arrow in &self.drawing.arrows {
            let name = |at: usize| quote::escape(&self.drawing.boxes[at].label);
            table.row(vec![name(arrow.from), arrow.rel.to_owned(), name(arrow.to)]);
        }
        let mut lines = page.rows(&table);
        let nodes = count(self.drawing.boxes.len() as u64, "node", "nodes");
        let edges = count(self.drawing.arrows.len() as u64, "edge", "edges");
        lines.push(format!("{nodes}, {edges}").into());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(boxes: usize, arrows: &[(usize, usize)]) -> Drawing {
        let one =
            |at: usize| DrawnBox { name: at.to_string(), label: format!("box {at}"), ..DrawnBox::default() };
        Drawing {
            title: "t".to_owned(),
            boxes: (0..boxes).map(one).collect(),
            arrows: arrows.iter().map(|(from, to)| DrawnArrow { from: *from, to: *to, rel: "r" }).collect(),
        }
    }

    #[test]
    fn each_box_and_arrow_has_a_place() {
        let shapes: [(usize, &[(usize, usize)]); 6] = [
            (0, &[]),
            (1, &[]),
            (1, &[(0, 0)]),
            (3, &[(0, 1), (1, 2), (2, 0)]),
            (4, &[(0, 1), (0, 1), (2, 3)]),
            (5, &[(0, 4), (1, 4), (2, 4), (3, 4), (4, 0)]),
        ];
        for (boxes, arrows) in shapes {
            let placed = Placed::of(&drawing(boxes, arrows));
            assert!(placed.boxes.iter().all(|place| place.w > 0 && place.h > 0), "{boxes} {arrows:?}");
            assert!(placed.arrows.iter().all(|points| points.len() > 1), "{boxes} {arrows:?}");
        }
    }

    #[test]
    fn the_largest_picture_is_placed() {
        let chain: Vec<(usize, usize)> = (1..NODES_MAX).map(|to| (to - 1, to)).collect();
        let branches: Vec<(usize, usize)> = (1..NODES_MAX).map(|to| (to / 3, to)).collect();
        for arrows in [chain, branches] {
            let placed = Placed::of(&drawing(NODES_MAX, &arrows));
            assert!(placed.boxes.iter().all(|place| place.w > 0));
        }
    }
}
