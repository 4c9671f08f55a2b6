//! Two agents of a run, compared, and heatmaps, as lines and as documents.

use dendrer::ask::compare::question::Heatmap;
use dendrer::ask::compare::{AgentComparison, HeatItem, HeatMetric, NamedNode};
use dendrer_object::{Pointer, RunName, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::certainty::{Certainty, UnknownPlace, unknown_line, unknown_places};
use crate::table::{Align, Table};
use crate::{count, layout, quote};

fn nodes(list: &[NamedNode]) -> Vec<NodeObject> {
    list.iter().map(NodeObject::of).collect()
}

/// A comparison; `is_profile` if the block of the document is wanted, and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct CompareAnswer<'c> {
    /// The comparison.
    pub found: &'c AgentComparison,
    /// Whether only the block of the document is printed.
    pub is_profile: bool,
}

/// How many nodes or places are printed.
const SHOWN: usize = 20;

/// How many places that differ are listed, unless all are asked for.
const PLACES: usize = 40;

impl CompareAnswer<'_> {
    /// The share of nodes that were borne out, in percent, without digits that say nothing.
    fn congruent(&self) -> Option<f64> {
        let (all, same) = self.found.made_again?;
        Some(if all == 0 { 100.0 } else { same as f64 * 100.0 / all as f64 })
    }

    /// The block of the document (5).
    fn block(&self) -> Vec<Line> {
        let AgentComparison { agents: [a, b], ancestor, extensions, .. } = self.found;
        let (a, b) = (quote::escape(a), quote::escape(b));
        let list = |nodes: &[NamedNode]| {
            let names = nodes.iter().map(|node| format!("'{}'", quote::escape(&node.node)));
            names.collect::<Vec<_>>().join(", ")
        };
        let congruent = self.congruent().unwrap_or(0.0);
        let end = match congruent {
            100.0 => "[SUCCESS] Multi-Agent CFD Verification Complete. 100% congruent.".to_owned(),
            // Never rounded up to what it is not.
            less => format!(
                "[FAILED] Multi-Agent CFD Verification Complete. {:.1}% congruent.",
                (less * 10.0).floor() / 10.0
            ),
        };
        [
            format!("--- COMPARING AGENTS: {a} vs {b} ---"),
            format!("Lowest Common Ancestor (LCA): {}", quote::escape(&ancestor.node)),
            format!("Agent {a} sub-path extensions: [{}]", list(&extensions[0])),
            format!("Agent {b} sub-path extensions: [{}]", list(&extensions[1])),
            end,
        ]
        .map(Line::from)
        .into()
    }
}

document! {
    /// Two agents of a run, compared
    pub object CompareDocument: "compare" (answer: &CompareAnswer<'_>) {
        let found = answer.found;
        /// The run
        run: &RunName = &found.run,
        /// The first agent
        a: &str = &found.agents[0],
        /// The second agent
        b: &str = &found.agents[1],
        /// The last node of the first agent
        a_head: NodeObject = NodeObject::of(&found.heads[0]),
        /// The last node of the second agent
        b_head: NodeObject = NodeObject::of(&found.heads[1]),
        /// The lowest common ancestors
        ancestors: Vec<NodeObject> = nodes(&found.ancestors),
        /// The lowest common ancestor that counts
        ancestor: NodeObject = NodeObject::of(&found.ancestor),
        /// The nodes of the first agent since then
        a_extension: Vec<NodeObject> = nodes(&found.extensions[0]),
        /// The nodes of the second agent since then
        b_extension: Vec<NodeObject> = nodes(&found.extensions[1]),
        /// The places in which the states differ
        variance: Vec<VarianceObject> = found.variance.iter().map(|(path, a, b)| VarianceObject::of(path, a, b)).collect(),
        /// The percentage of nodes that verify and whose state, made again, is the same; null if none was made again
        congruent: Option<f64> = answer.congruent(),
        /// The nodes that were made again
        made_again: Option<MadeAgain> = found.made_again.map(|(all, same)| MadeAgain::of(all as u64, same as u64)),
        /// The certainty of the answer
        certainty: ["exact" | "unavailable"] = Certainty::Exact.unless(!found.unknown.is_empty()).as_str(),
        /// The unknown places of the states; absent if every place is known
        unknown?: Vec<UnknownPlace> = unknown_places(&found.unknown),
    }

    /// A node of the causal graph
    object NodeObject(named: &NamedNode) {
        /// The tick
        tick: u64 = named.tick,
        /// The name of the node
        node: &str = &named.node,
    }

    /// A place in which two states differ
    object VarianceObject(place: &Pointer, first: &Option<Value>, second: &Option<Value>) {
        /// The place, as a JSON pointer
        path: &Pointer = place,
        /// The value of the first agent; absent if it is missing
        a?: Value = first.clone(),
        /// The value of the second agent; absent if it is missing
        b?: Value = second.clone(),
    }

    /// The nodes that were made again
    object MadeAgain(all: u64, equal: u64) {
        /// The number of nodes
        nodes: u64 = all,
        /// The number of nodes with the same state
        same: u64 = equal,
    }

    /// Nodes of the causal graph by a metric
    pub object HeatmapDocument: "heatmap" (answer: &Heatmap) {
        /// The metric
        metric: HeatMetric = answer.metric,
        /// The formula of the value
        formula: &str = formula(answer.metric),
        /// The number of nodes
        total: usize = answer.items.len(),
        /// Whether no node was left out because of the limit
        complete: bool = answer.listed().len() == answer.items.len(),
        /// The nodes, the highest value first
        items: Vec<HeatObject> = answer.listed().iter().map(HeatObject::of).collect(),
    }

    /// A node with its value
    object HeatObject(item: &HeatItem) {
        /// The run
        run: &RunName = &item.run,
        ..NodeObject = NodeObject::of(&item.node),
        /// The agent
        agent: Option<&str> = item.agent.as_deref(),
        /// The value
        value: f64 = item.value,
    }
}

impl Answer for CompareAnswer<'_> {
    fn document(&self) -> Value {
        CompareDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        if self.is_profile {
            return self.block();
        }
        let found = self.found;
        let place = |node: &NamedNode| match node.tick {
            0 => "the beginning of the run".to_owned(),
            tick => format!("tick {tick} {}", quote::escape(&node.node)),
        };
        let agents = found.agents.each_ref().map(|agent| quote::name(agent));
        let mut lines: Vec<Line> = Vec::new();
        let ancestors: Vec<String> = found.ancestors.iter().map(place).collect();
        lines.push(format!("ancestor   {}{}", place(&found.ancestor), page.of_run(&found.run)).into());
        if ancestors.len() > 1 {
            lines.push(format!("           all lowest: {}", ancestors.join(", ")).into());
        }
        for (agent, extension) in agents.iter().zip(&found.extensions) {
            let shown: Vec<String> = extension.iter().take(SHOWN).map(|node| node.tick.to_string()).collect();
            let more = if extension.len() > SHOWN { ", ..." } else { "" };
            let since = count(extension.len() as u64, "node", "nodes");
            let ticks = if extension.is_empty() {
                String::new()
            } else {
                format!("   ticks {}{more}", shown.join(", "))
            };
            lines.push(format!("{agent}   {since} since{ticks}").into());
        }
        let side = |value: &Option<Value>| value.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value);
        let listed = if page.width.is_some() && !page.full { PLACES } else { usize::MAX };
        let variance = found.variance.iter().take(listed).map(|(path, a, b)| {
            let line = format!(
                "differs    {}   {} {}   {} {}",
                quote::path(path),
                agents[0],
                side(a),
                agents[1],
                side(b)
            );
            Line::from(line).paint(Style::Warn)
        });
        lines.extend(variance);
        if found.variance.len() > listed {
            lines.push(Line::note(format!(
                "note: {} more places differ; --full shows them",
                found.variance.len() - listed
            )));
        }
        lines.push(
            format!("{} between the states", count(found.variance.len() as u64, "difference", "differences"))
                .into(),
        );
        lines.push(match found.made_again {
            Some((all, same)) => {
                format!("made again {same} of {} verified, with the same state", count(all, "node", "nodes"))
                    .into()
            }
            None => Line::note("note: the nodes were not made again; --check does that"),
        });
        lines.extend(unknown_line(&found.unknown));
        lines
    }

    fn end(&self) -> End {
        match self.found.made_again {
            Some((all, same)) if same < all => End::Problem(crate::branches::BRANCH),
            _ if !self.found.unknown.is_empty() => End::Unknown,
            _ => End::Answered,
        }
    }
}

fn formula(metric: HeatMetric) -> &'static str {
    match metric {
        HeatMetric::Branching => "number of children, where there are several",
        HeatMetric::Divergence => "units that differ between the states of the children",
        HeatMetric::Anomaly => "anomalies of the node",
        HeatMetric::Confidence => "1 - confidence",
    }
}

impl Answer for Heatmap {
    fn document(&self) -> Value {
        HeatmapDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut table = Table::new([
            ("value", Align::Right),
            ("at", Align::Left),
            ("node", Align::Left),
            ("agent", Align::Left),
            ("", Align::Left),
        ]);
        let most = self.items.first().map_or(1.0, |item| item.value).max(f64::MIN_POSITIVE);
        for item in self.listed() {
            let bar = "#".repeat((item.value / most * 20.0).round().max(1.0) as usize);
            let value = match self.metric {
                HeatMetric::Confidence => format!("{:.3}", item.value),
                _ => item.value.to_string(),
            };
            let agent = item.agent.as_deref().map(quote::name).unwrap_or_else(|| "-".to_owned());
            table.row(vec![
                value,
                format!("{}@{}", item.run, item.node.tick),
                quote::escape(&item.node.node),
                agent,
                bar,
            ]);
        }
        let (mut lines, cut) = if self.items.is_empty() { (Vec::new(), false) } else { page.list(&table) };
        let more = if self.listed().len() < self.items.len() { " (use -n 0 for all)" } else { "" };
        let all = count(self.items.len() as u64, "node", "nodes");
        let (metric, shown) = (self.metric, self.listed().len());
        let sum = format!("{}: {}; {shown} of {all}{more}", metric.as_str(), formula(metric));
        lines.extend(layout::counted(&sum, cut, page));
        lines
    }
}
