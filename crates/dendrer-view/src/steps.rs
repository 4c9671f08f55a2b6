//! Steps of witness chains, their counts, their composition and their coherence, as lines and as documents.

use dendrer::ask::steps::{ActionStats, Coherence, CoherenceSummary, Composition, StepPlace, TrainingDatum};
use dendrer::record::chain::WitnessStep;
use dendrer_chain::{ActionType, RowValue};
use dendrer_object::{RunName, Value, json, tag};

use crate::answer::{Answer, End, ItemAnswer, Line, Page, Style};
use crate::table::{Align, Table};
use crate::{count, document, quote};

fn number(value: Option<f64>) -> Value {
    value.map_or(Value::Null, tag::float)
}

/// A value of a row. Markers of the format stay what they are.
fn row(value: &RowValue) -> Value {
    json::parse_tagged(value.to_string().as_bytes())
        .or_else(|_| value.to_value())
        .unwrap_or_else(|_| tag::gap("value_too_deep", ""))
}

/// The members of a step, in the order of its row.
fn step_members(recorded: &WitnessStep, whole: bool) -> Vec<(&'static str, Value)> {
    let step = &recorded.step;
    let text = |text: &Option<String>| Value::from(text.as_deref());
    let channels = step.channel_coherence.as_ref().map(|channels| {
        Value::record(channels.iter().map(|(name, value)| (tag::stored_name(name), tag::float(*value))))
    });
    let mut members = vec![
        ("step_id", Value::from(step.step_id.as_str())),
        ("action", Value::from(recorded.action())),
        ("name", Value::from(step.name.as_str())),
    ];
    if whole {
        members.extend([("input", row(&step.input)), ("output", row(&step.output))]);
    }
    members.extend([
        ("success", Value::from(recorded.success)),
        ("started_at", Value::from(step.started_at.as_str())),
        ("duration_ms", number(step.duration_ms)),
        ("parent_id", text(&step.parent_id)),
        ("session_id", text(&step.session_id)),
        ("trace_id", text(&step.trace_id)),
        ("phi", number(step.phi)),
        ("kuramoto_r", number(step.kuramoto_r)),
        ("channel_coherence", channels.unwrap_or(Value::Null)),
    ]);
    if whole {
        let own = [("probe_call", &step.probe_call), ("eml_tree", &step.eml_tree)];
        members.extend(own.into_iter().filter_map(|(name, value)| Some((name, row(value.as_ref()?)))));
        let others = step
            .others
            .iter()
            .filter_map(|(name, value)| Some((tag::stored_name(name.as_str()?), row(value))));
        let others: Vec<_> = others.collect();
        if !others.is_empty() {
            members.push(("others", Value::record(others)));
        }
    }
    if !recorded.unknown.is_empty() {
        members.push(("not_known", Value::array(recorded.unknown.iter().map(|name| Value::from(*name)))));
    }
    members
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
        let begin = [
            ("run", Value::from(run.as_str())),
            ("tick", Value::from(recorded.tick)),
            ("derived", Value::from(recorded.derived)),
        ];
        Some(Value::record(begin.into_iter().chain(step_members(recorded, self.whole))))
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
            "{place:>6}  {:<12}  {:<15}  {}{failed}{took}{phi}{trace}{derived}",
            quote::escape(&step.step_id),
            recorded.action().map_or("not known", ActionType::as_str),
            quote::escape(&step.name),
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
        let stats = self.stats.iter().flatten().map(|(action, stats)| {
            Value::record([
                ("action", Value::from(*action)),
                ("count", Value::from(stats.count)),
                ("failed", Value::from(stats.failed)),
                ("success_rate", number(stats.success_rate())),
                ("p50_ms", number(stats.percentile(0.5))),
                ("p95_ms", number(stats.percentile(0.95))),
            ])
        });
        let stats = self.stats.is_some().then(|| ("stats", Value::array(stats)));
        document("steps", [("shown", Value::from(self.shown))].into_iter().chain(stats))
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
        page.table(&table)
    }

    fn end(&self) -> End {
        End::Answered
    }
}

fn place(place: &StepPlace) -> Value {
    Value::record([
        ("run", Value::from(place.run.as_str())),
        ("tick", Value::from(place.tick)),
        ("step_id", Value::from(place.step_id.as_str())),
    ])
}

fn places(list: &[StepPlace]) -> Value {
    Value::array(list.iter().map(place))
}

fn named(place: &StepPlace) -> String {
    format!("{}@{} {}", place.run, place.tick, quote::escape(&place.step_id))
}

/// Chains of several runs as one graph.
#[derive(Debug, Clone, Copy)]
pub struct CompositionAnswer<'c>(pub &'c Composition);

impl CompositionAnswer<'_> {
    /// The graph, for a drawing.
    pub fn drawing(&self) -> crate::graph::Drawing {
        let mut all: Vec<&StepPlace> = self.0.groups.iter().flat_map(|(_, group)| group).collect();
        all.extend(self.0.edges.iter().flat_map(|(from, to)| [from, to]));
        all.extend(self.0.orphans.iter().map(|(step, _)| step));
        all.extend(self.0.cycles.iter().chain(&self.0.duplicates).flatten());
        all.sort();
        all.dedup();
        let at = |place: &StepPlace| all.binary_search(&place).ok();
        let arrows = self.0.edges.iter().filter_map(|(from, to)| Some((at(from)?, at(to)?))).collect();
        let boxes = all.iter().map(|place| (named(place), named(place))).collect();
        crate::graph::Drawing { title: "composition".to_owned(), boxes, arrows }
    }
}

impl Answer for CompositionAnswer<'_> {
    fn document(&self) -> Value {
        let Composition { groups, edges, orphans, cycles, duplicates } = self.0;
        let group = |(key, group): &(String, Vec<StepPlace>)| {
            Value::record([("key", Value::from(key.as_str())), ("steps", places(group))])
        };
        let edge =
            |(from, to): &(StepPlace, StepPlace)| Value::record([("from", place(from)), ("to", place(to))]);
        let orphan = |(step, parent): &(StepPlace, String)| {
            Value::record([("step", place(step)), ("parent_id", Value::from(parent.as_str()))])
        };
        let members = [
            ("groups", Value::array(groups.iter().map(group))),
            ("edges", Value::array(edges.iter().map(edge))),
            ("orphans", Value::array(orphans.iter().map(orphan))),
            ("cycles", Value::array(cycles.iter().map(|cycle| places(cycle)))),
            ("duplicates", Value::array(duplicates.iter().map(|same| places(same)))),
        ];
        document("composition", members)
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
        let line = |of: fn(&dendrer::ask::steps::CoherencePoint) -> Option<f64>, colour: &str| {
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
        let items = self.0.items.iter().map(|item| {
            Value::record([
                ("run", Value::from(item.run.as_str())),
                ("tick", Value::from(item.tick)),
                ("started_at", Value::from(item.started_at.as_str())),
                ("phi", number(item.phi)),
                ("kuramoto_r", number(item.kuramoto_r)),
            ])
        });
        let traces = self.0.traces.iter().map(|one| {
            Value::record([
                ("trace_id", Value::from(one.trace_id.as_str())),
                ("phi", number(one.phi)),
                ("r", number(one.r)),
                ("tool_success", number(one.tool_success)),
                ("facilitator_ms", number(one.facilitator_ms)),
            ])
        });
        document("coherence", [("items", Value::array(items)), ("traces", Value::array(traces))])
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
            lines.extend(page.table(&table));
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
            lines.extend(page.table(&table));
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
        let of = |pick: fn(Option<f64>, Option<f64>) -> Option<f64>| {
            Value::record(self.rows().map(|(name, a, b)| (name, number(pick(a, b)))))
        };
        let members = [("a", of(|a, _| a)), ("b", of(|_, b| b)), ("delta", of(delta))];
        document("coherence-diff", members)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let text = |value: Option<f64>| value.map_or("-".to_owned(), |value| value.to_string());
        let columns = [("", Align::Left), ("a", Align::Right), ("b", Align::Right), ("delta", Align::Right)];
        let mut table = Table::new(columns);
        for (name, a, b) in self.rows() {
            table.row(vec![name.to_owned(), text(a), text(b), text(delta(a, b))]);
        }
        page.table(&table)
    }

    fn end(&self) -> End {
        End::Answered
    }
}

/// A datum for training as a line.
pub fn datum_json(run: &RunName, datum: &TrainingDatum) -> Value {
    let step = &datum.step.step;
    Value::record([
        ("run", Value::from(run.as_str())),
        ("tick", Value::from(datum.step.tick)),
        ("step_id", Value::from(step.step_id.as_str())),
        ("input", row(&step.input)),
        ("output", row(&step.output)),
        ("reward", datum.reward.as_ref().map_or(Value::Null, row)),
    ])
}
