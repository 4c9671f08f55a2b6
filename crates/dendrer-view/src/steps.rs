//! Steps of witness chains, their counts, their composition and their coherence, as lines and as documents.

use dendrer::ask::steps::{
    ActionStats, Coherence, CoherencePoint, CoherenceSummary, Composition, StepPlace, TraceSignals,
    TrainingDatum,
};
use dendrer::record::chain::WitnessStep;
use dendrer_chain::{ActionType, RowValue, StartedAt};
use dendrer_object::document::{As, Either};
use dendrer_object::{Object, RunName, Value, document, json, tag};

use crate::answer::{Answer, End, ItemAnswer, Line, Page, Style};
use crate::graph::{Drawing, DrawnArrow, DrawnBox};
use crate::layout::pad;
use crate::table::{Align, Table};
use crate::{count, quote};

/// A number of a step, or the tag of one that JSON cannot spell; null if it is not known.
type Number = As<Option<Either<f64, Object>>>;

fn number(value: Option<f64>) -> Number {
    As::new(value.map(tag::float))
}

/// A value of a row. Markers of the format stay what they are.
fn row(value: &RowValue) -> Value {
    json::parse_tagged(value.to_string().as_bytes())
        .or_else(|_| value.to_value())
        .unwrap_or_else(|_| tag::gap("value_too_deep", ""))
}

document! {
    /// Steps of witness chains
    pub object StepsDocument: "steps" (answer: &StepsAnswer) {
        let stats = answer.stats.as_ref();
        /// The number of steps
        shown: u64 = answer.shown,
        /// The counts of each action, with --stats
        stats?: Vec<StatsObject> =
            stats.map(|stats| stats.iter().map(|(action, stats)| StatsObject::of(*action, stats)).collect()),
        /// The steps, unless counts alone were asked for
        items?: Vec<StepObject> = None,
    }

    /// The counts of an action
    object StatsObject(action: ActionType, stats: &ActionStats) {
        /// The action
        action: ActionType = action,
        /// The number of steps
        count: u64 = stats.count,
        /// The number of steps that are known to have failed
        failed: u64 = stats.failed,
        /// The share that succeeded, of the steps of which it is known
        success_rate: Number = number(stats.success_rate()),
        /// The median duration in milliseconds
        p50_ms: Number = number(stats.percentile(0.5)),
        /// The duration in milliseconds that 95 % of the steps do not exceed
        p95_ms: Number = number(stats.percentile(0.95)),
    }

    /// A step of a witness chain
    object StepObject(name: &RunName, recorded: &WitnessStep, whole: bool) {
        let step = &recorded.step;
        let channels = step.channel_coherence.as_ref().map(|channels| {
            Value::record(channels.iter().map(|(name, value)| (tag::stored_name(name), tag::float(*value))))
        });
        let others = step
            .others
            .iter()
            .filter_map(|(name, value)| Some((tag::stored_name(name.as_str()?), row(value))))
            .collect::<Vec<_>>();
        /// The run
        run: &RunName = name,
        /// The tick
        tick: u64 = recorded.tick,
        /// Whether the transition is read as a step and none was recorded
        derived: bool = recorded.derived,
        /// The id of the step
        step_id: &str = &step.step_id,
        /// The action; null if it is erased or withheld, or the row cannot be read
        action: Option<ActionType> = recorded.action(),
        /// The name
        name: &str = &step.name,
        /// The input
        input?: Value = whole.then(|| row(&step.input)),
        /// The output
        output?: Value = whole.then(|| row(&step.output)),
        /// Whether it succeeded; null if it is not known
        success: Option<bool> = recorded.success,
        /// The time at which it began
        started_at: &str = step.started_at.as_str(),
        /// The text of that time in its line, if it is another
        given_at?: &str = recorded.given_at.as_ref().map(StartedAt::as_str),
        /// The duration in milliseconds
        duration_ms: Number = number(step.duration_ms),
        /// The id of the step in which it is nested
        parent_id: Option<&str> = step.parent_id.as_deref(),
        /// The session
        session_id: Option<&str> = step.session_id.as_deref(),
        /// The trace, which may span several runs
        trace_id: Option<&str> = step.trace_id.as_deref(),
        /// The coherence
        phi: Number = number(step.phi),
        /// The phase lock
        kuramoto_r: Number = number(step.kuramoto_r),
        /// The coherence of each channel
        channel_coherence: As<Option<Object>> = As::new(channels),
        /// The call of a probe
        probe_call?: Value = step.probe_call.as_ref().filter(|_| whole).map(row),
        /// The tree of an expression
        eml_tree?: Value = step.eml_tree.as_ref().filter(|_| whole).map(row),
        /// The other members of the row
        others?: As<Object> = (whole && !others.is_empty()).then(|| As::new(Value::record(others))),
        /// The members that are erased or withheld, or of a row that cannot be read
        not_known?: &[&str] = (!recorded.unknown.is_empty()).then_some(recorded.unknown.as_slice()),
    }

    /// Chains of several runs as one graph
    pub object CompositionDocument: "composition" (found: &Composition) {
        /// The groups of steps
        groups: Vec<GroupObject> =
            found.groups.iter().map(|(key, steps)| GroupObject::of(key, steps)).collect(),
        /// The edges, each from a step to one that is nested in it
        edges: Vec<NestedStep> = found.edges.iter().map(|(from, to)| NestedStep::of(from, to)).collect(),
        /// The steps that name a parent that is in none of the runs
        orphans: Vec<OrphanObject> =
            found.orphans.iter().map(|(step, id)| OrphanObject::of(step, id)).collect(),
        /// The cycles of steps that descend from themselves
        cycles: Vec<Vec<PlaceOfStep>> = found.cycles.iter().map(|cycle| places(cycle)).collect(),
        /// The steps that have one id
        duplicates: Vec<Vec<PlaceOfStep>> = found.duplicates.iter().map(|same| places(same)).collect(),
    }

    /// A group of steps
    object GroupObject(name: &str, members: &[StepPlace]) {
        /// The trace_id, or the id of the step that all descend from
        key: &str = name,
        /// The steps
        steps: Vec<PlaceOfStep> = places(members),
    }

    /// An edge between steps
    object NestedStep(outer: &StepPlace, inner: &StepPlace) {
        /// The step
        from: PlaceOfStep = PlaceOfStep::of(outer),
        /// The step that is nested in it
        to: PlaceOfStep = PlaceOfStep::of(inner),
    }

    /// A step without its parent
    object OrphanObject(orphan: &StepPlace, parent: &str) {
        /// The step
        step: PlaceOfStep = PlaceOfStep::of(orphan),
        /// The id that it names
        parent_id: &str = parent,
    }

    /// The place of a step
    object PlaceOfStep(place: &StepPlace) {
        /// The run
        run: &RunName = &place.run,
        /// The tick
        tick: u64 = place.tick,
        /// The id of the step
        step_id: &str = &place.step_id,
    }

    /// Coherence of steps, and the signals of traces
    pub object CoherenceDocument: "coherence" (found: &Coherence) {
        /// The steps that have a coherence
        items: Vec<CoherenceObject> = found.items.iter().map(CoherenceObject::of).collect(),
        /// The signals of each trace
        traces: Vec<SignalsObject> = found.traces.iter().map(SignalsObject::of).collect(),
    }

    /// The coherence of a step
    object CoherenceObject(point: &CoherencePoint) {
        /// The run
        run: &RunName = &point.run,
        /// The tick
        tick: u64 = point.tick,
        /// The time at which the step began
        started_at: &str = &point.started_at,
        /// The coherence
        phi: Number = number(point.phi),
        /// The phase lock
        kuramoto_r: Number = number(point.kuramoto_r),
    }

    /// The signals of a trace, as means
    object SignalsObject(trace: &TraceSignals) {
        /// The trace
        trace_id: &str = &trace.trace_id,
        /// The coherence of training steps
        phi: Number = number(trace.phi),
        /// The phase lock of evaluations
        r: Number = number(trace.r),
        /// The share of tool calls that succeeded, of those of which it is known
        tool_success: Number = number(trace.tool_success),
        /// The duration of payments in milliseconds
        facilitator_ms: Number = number(trace.facilitator_ms),
    }

    /// The difference between the coherence of two runs
    pub object CoherenceDiffDocument: "coherence-diff" (answer: &CoherenceDiffAnswer) {
        let [phi_mean, q_hat, count] = answer.rows().map(|(_, a, b)| delta(a, b));
        let delta = CoherenceSummary { phi_mean, q_hat, crystallization_count: count };
        /// The coherence of the first run
        a: CoherenceSum = CoherenceSum::of(&answer.a),
        /// The coherence of the second run
        b: CoherenceSum = CoherenceSum::of(&answer.b),
        /// The second less the first; null if one is not known
        delta: CoherenceSum = CoherenceSum::of(&delta),
    }

    /// The coherence of a run
    object CoherenceSum(found: &CoherenceSummary) {
        /// The mean coherence
        phi_mean: Number = number(found.phi_mean),
        /// The quality
        q_hat: Number = number(found.q_hat),
        /// The number of crystallizations
        crystallization_count: Number = number(found.crystallization_count),
    }

    /// A datum for training
    pub object DatumObject(name: &RunName, datum: &TrainingDatum) {
        let step = &datum.step.step;
        /// The run
        run: &RunName = name,
        /// The tick
        tick: u64 = datum.step.tick,
        /// The id of the step
        step_id: &str = &step.step_id,
        /// The input
        input: Value = row(&step.input),
        /// The output
        output: Value = row(&step.output),
        /// The reward; null if it is missing
        reward: Option<Value> = datum.reward.as_ref().map(row),
    }
}

/// The steps of runs, one by one.
#[derive(Debug, Clone)]
pub struct StepsAnswer {
    /// Whether input and output are printed.
    pub whole: bool,
    /// Whether counts alone are wanted.
    pub counts_alone: bool,
    /// Whether several runs are listed.
    pub several: bool,
    /// The counts, once they are known.
    pub stats: Option<Vec<(ActionType, ActionStats)>>,
    shown: u64,
}

impl StepsAnswer {
    /// Begins the list.
    pub fn new(whole: bool, counts_alone: bool, several: bool) -> StepsAnswer {
        StepsAnswer { whole, counts_alone, several, stats: None, shown: 0 }
    }
}

impl ItemAnswer for StepsAnswer {
    type Item = (RunName, WitnessStep);

    fn item(&mut self, (run, recorded): &Self::Item) -> Option<Value> {
        self.shown += 1;
        Some(StepObject::of(run, recorded, self.whole).into())
    }

    fn item_lines(&mut self, (run, recorded): &Self::Item, _: &Page) -> Vec<Line> {
        self.shown += 1;
        let step = &recorded.step;
        let place = match self.several {
            true => format!("{run}@{}", recorded.tick),
            false => recorded.tick.to_string(),
        };
        let failed = if recorded.success == Some(false) { "  failed" } else { "" };
        let derived = match (recorded.derived, recorded.row.is_some()) {
            (true, true) => "  (a row that cannot be read)",
            (true, false) => "  (derived)",
            (false, _) => "",
        };
        let took = step.duration_ms.map(|ms| format!("  {ms} ms")).unwrap_or_default();
        let phi = step.phi.map(|phi| format!("  phi {phi}")).unwrap_or_default();
        let trace =
            step.trace_id.as_ref().map(|id| format!("  trace {}", quote::escape(id))).unwrap_or_default();
        let mut lines = vec![Line::from(format!(
            "{place:>6}  {}  {:<15}  {}{failed}{took}{phi}{trace}{derived}",
            pad(&quote::escape(&step.step_id), 12),
            recorded.action().map_or("not known", ActionType::as_str),
            quote::name(&step.name),
        ))];
        if self.whole {
            for (name, value) in [("input", &step.input), ("output", &step.output)] {
                if *value != RowValue::Null {
                    lines.push(Line::from(format!("          {name:<6}  {}", quote::value(&row(value)))));
                }
            }
        }
        lines
    }

    fn summary(&self) -> Value {
        StepsDocument::of(self).into()
    }

    fn kept_lines(&mut self, _: &Page) -> Vec<Line> {
        Vec::new()
    }

    fn last_lines(&mut self, page: &Page) -> Vec<Line> {
        let Some(stats) = &self.stats else {
            return vec![Line::note(count(self.shown, "step", "steps"))];
        };
        let mut table = Table::new([
            ("action", Align::Left),
            ("count", Align::Right),
            ("failed", Align::Right),
            ("success", Align::Right),
            ("p50 ms", Align::Right),
            ("p95 ms", Align::Right),
        ]);
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| value.to_string());
        for (action, stats) in stats {
            table.row(vec![
                action.as_str().to_owned(),
                stats.count.to_string(),
                stats.failed.to_string(),
                stats.success_rate().map_or("-".to_owned(), |rate| format!("{:.1}%", rate * 100.0)),
                number(stats.percentile(0.5)),
                number(stats.percentile(0.95)),
            ]);
        }
        page.rows(&table)
    }

    fn end(&self) -> End {
        End::Answered
    }
}

fn places(list: &[StepPlace]) -> Vec<PlaceOfStep> {
    list.iter().map(PlaceOfStep::of).collect()
}

fn named(place: &StepPlace) -> String {
    format!("{}@{} {}", place.run, place.tick, quote::escape(&place.step_id))
}

/// Chains of several runs as one graph.
#[derive(Debug, Clone, Copy)]
pub struct CompositionAnswer<'c>(pub &'c Composition);

impl CompositionAnswer<'_> {
    /// The graph, for a drawing.
    pub fn drawing(&self) -> Drawing {
        let mut all: Vec<&StepPlace> = self.0.groups.iter().flat_map(|(_, group)| group).collect();
        all.extend(self.0.edges.iter().flat_map(|(from, to)| [from, to]));
        all.extend(self.0.orphans.iter().map(|(step, _)| step));
        all.extend(self.0.cycles.iter().chain(&self.0.duplicates).flatten());
        all.sort();
        all.dedup();
        let at = |place: &StepPlace| all.binary_search(&place).ok();
        let arrows = self
            .0
            .edges
            .iter()
            .filter_map(|(from, to)| Some(DrawnArrow { from: at(from)?, to: at(to)?, rel: "parent" }));
        let arrows = arrows.collect();
        let boxes = all.iter().map(|place| DrawnBox {
            name: named(place),
            label: named(place),
            kind: "step".to_owned(),
            tick: Some(place.tick),
            run: Some(place.run.clone()),
            status: None,
        });
        let boxes = boxes.collect();
        Drawing { title: "composition".to_owned(), boxes, arrows }
    }
}

impl Answer for CompositionAnswer<'_> {
    fn document(&self) -> Value {
        CompositionDocument::of(self.0).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let Composition { groups, edges, orphans, cycles, duplicates } = self.0;
        let list = |list: &[StepPlace]| list.iter().map(named).collect::<Vec<_>>().join(", ");
        let mut lines: Vec<Line> = Vec::new();
        for (key, group) in groups {
            lines.push(Line::from(format!(
                "{}  {}",
                quote::escape(key),
                count(group.len() as u64, "step", "steps")
            )));
            lines.extend(group.iter().map(|place| Line::from(format!("  {}", named(place)))));
        }
        let bad = |what: &str, text: String| Line::styled(Style::Bad, format!("{what:<10} {text}"));
        lines.extend(orphans.iter().map(|(step, parent)| {
            bad("orphan", format!("{}: no step has the id {}", named(step), quote::escape(parent)))
        }));
        lines.extend(cycles.iter().map(|cycle| bad("cycle", list(cycle))));
        lines.extend(duplicates.iter().map(|same| bad("duplicate", list(same))));
        lines.push(Line::note(format!(
            "{}, {}, {}, {}, {}",
            count(groups.len() as u64, "group", "groups"),
            count(edges.len() as u64, "edge", "edges"),
            count(orphans.len() as u64, "orphan", "orphans"),
            count(cycles.len() as u64, "cycle", "cycles"),
            count(duplicates.len() as u64, "duplicate", "duplicates"),
        )));
        lines
    }

    fn end(&self) -> End {
        if self.0.is_broken() { End::No } else { End::Answered }
    }
}

/// The coherence of runs.
#[derive(Debug, Clone, Copy)]
pub struct CoherenceAnswer<'c>(pub &'c Coherence);

impl CoherenceAnswer<'_> {
    /// The values over the steps that say them, as lines of a drawing.
    pub fn svg(&self) -> String {
        const WIDTH: f64 = 720.0;
        const HEIGHT: f64 = 240.0;
        const EDGE: f64 = 30.0;
        let items = &self.0.items;
        let values =
            items.iter().flat_map(|item| [item.phi, item.kuramoto_r]).flatten().filter(|one| one.is_finite());
        let (low, high) = values.fold((0.0_f64, 1.0_f64), |(low, high), one| (low.min(one), high.max(one)));
        let x = |at: usize| EDGE + at as f64 * (WIDTH - 2.0 * EDGE) / (items.len().max(2) - 1) as f64;
        let y = |value: f64| HEIGHT - EDGE - (value - low) / (high - low) * (HEIGHT - 2.0 * EDGE);
        let line = |of: fn(&CoherencePoint) -> Option<f64>, colour: &str| {
            let values = items.iter().enumerate().filter_map(|(at, item)| Some((at, of(item)?)));
            let values = values.filter(|(_, value)| value.is_finite());
            let points: Vec<String> =
                values.map(|(at, value)| format!("{:.1},{:.1}", x(at), y(value))).collect();
            format!("<polyline fill=\"none\" stroke=\"{colour}\" points=\"{}\"/>\n", points.join(" "))
        };
        let text = |x: f64, y: f64, text: &str| format!("<text x=\"{x}\" y=\"{y}\">{text}</text>\n");
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <title>coherence of {} steps: phi solid blue, kuramoto_r orange</title>\n\
             <rect x=\"{EDGE}\" y=\"{EDGE}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999\"/>\n{}{}{}{}{}</svg>\n",
            items.len(),
            WIDTH - 2.0 * EDGE,
            HEIGHT - 2.0 * EDGE,
            line(|item| item.phi, "#1f5fbf"),
            line(|item| item.kuramoto_r, "#d9731a"),
            text(2.0, EDGE, &format!("{high}")),
            text(2.0, HEIGHT - EDGE, &format!("{low}")),
            text(EDGE, HEIGHT - 10.0, "phi (blue), kuramoto_r (orange), by step"),
        )
    }
}

impl Answer for CoherenceAnswer<'_> {
    fn document(&self) -> Value {
        CoherenceDocument::of(self.0).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let text = |value: Option<f64>| value.map_or("-".to_owned(), |value| value.to_string());
        let mut lines = Vec::new();
        if !self.0.items.is_empty() {
            let columns = ["at", "started_at", "phi", "kuramoto_r"];
            let mut table = Table::new(columns.map(|name| (name, Align::Left)));
            for item in &self.0.items {
                let at = format!("{}@{}", item.run, item.tick);
                table.row(vec![at, quote::escape(&item.started_at), text(item.phi), text(item.kuramoto_r)]);
            }
            lines.extend(page.rows(&table));
        }
        if !self.0.traces.is_empty() {
            let columns = ["trace_id", "phi", "r", "tool_success", "facilitator_ms"];
            let mut table = Table::new(columns.map(|name| (name, Align::Left)));
            for one in &self.0.traces {
                table.row(vec![
                    quote::escape(&one.trace_id),
                    text(one.phi),
                    text(one.r),
                    text(one.tool_success),
                    text(one.facilitator_ms),
                ]);
            }
            lines.extend(page.rows(&table));
        }
        lines.push(Line::note(format!(
            "{} with coherence, {}; - where no step says it",
            count(self.0.items.len() as u64, "step", "steps"),
            count(self.0.traces.len() as u64, "trace", "traces")
        )));
        lines
    }

    fn end(&self) -> End {
        End::Answered
    }
}

/// How the coherence of two runs differs.
#[derive(Debug, Clone, Copy)]
pub struct CoherenceDiffAnswer {
    /// Of the first run.
    pub a: CoherenceSummary,
    /// Of the second.
    pub b: CoherenceSummary,
}

impl CoherenceDiffAnswer {
    fn rows(&self) -> [(&'static str, Option<f64>, Option<f64>); 3] {
        let (a, b) = (self.a, self.b);
        [
            ("phi_mean", a.phi_mean, b.phi_mean),
            ("q_hat", a.q_hat, b.q_hat),
            ("crystallization_count", a.crystallization_count, b.crystallization_count),
        ]
    }
}

/// The second less the first, where both are known.
fn delta(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(b? - a?)
}

impl Answer for CoherenceDiffAnswer {
    fn document(&self) -> Value {
        CoherenceDiffDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let text = |value: Option<f64>| value.map_or("-".to_owned(), |value| value.to_string());
        let columns = [("", Align::Left), ("a", Align::Right), ("b", Align::Right), ("delta", Align::Right)];
        let mut table = Table::new(columns);
        for (name, a, b) in self.rows() {
            table.row(vec![name.to_owned(), text(a), text(b), text(delta(a, b))]);
        }
        page.rows(&table)
    }

    fn end(&self) -> End {
        End::Answered
    }
}
