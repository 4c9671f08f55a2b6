//! Two agents of a run, compared, and heatmaps, as lines and as documents.

use dendrer::ask::compare::{AgentComparison, HeatItem, HeatMetric, NamedNode};
use dendrer_object::Value;

use crate::answer::{Answer, End, Line, Page, Style};
use crate::certainty::{Certainty, unknown_line, unknown_member};
use crate::table::{Align, Table};
use crate::{count, document, quote};

fn node(node: &NamedNode) -> Value {
    Value::record([("tick", Value::from(node.tick)), ("node", Value::from(node.node.as_str()))])
}

fn nodes(list: &[NamedNode]) -> Value {
    Value::array(list.iter().map(node))
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

impl Answer for CompareAnswer<'_> {
    fn document(&self) -> Value {
        let found = self.found;
        let variance = found.variance.iter().map(|(path, a, b)| {
            let sides =
                [("a", a), ("b", b)].into_iter().filter_map(|(name, side)| Some((name, side.clone()?)));
            Value::record([("path", Value::from(path.written()))].into_iter().chain(sides))
        });
        let made_again = found
            .made_again
            .map(|(all, same)| Value::record([("nodes", Value::from(all)), ("same", Value::from(same))]));
        let members = [
            ("run", Value::from(found.run.as_str())),
            ("a", Value::from(found.agents[0].as_str())),
            ("b", Value::from(found.agents[1].as_str())),
            ("a_head", node(&found.heads[0])),
            ("b_head", node(&found.heads[1])),
            ("ancestors", nodes(&found.ancestors)),
            ("ancestor", node(&found.ancestor)),
            ("a_extension", nodes(&found.extensions[0])),
            ("b_extension", nodes(&found.extensions[1])),
            ("variance", Value::array(variance)),
            ("congruent", self.congruent().map_or(Value::Null, dendrer_object::tag::float)),
            ("made_again", made_again.unwrap_or(Value::Null)),
            ("certainty", Value::from(Certainty::Exact.unless(!found.unknown.is_empty()))),
        ];
        document("compare", members.into_iter().chain(unknown_member(&found.unknown)))
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
        let agents = found.agents.each_ref().map(|agent| quote::escape(agent));
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
        let variance = found.variance.iter().take(SHOWN).map(|(path, a, b)| {
            let line = format!(
                "differs    {}   {} {}   {} {}",
                quote::path(path),
                agents[0],
                side(a),
                agents[1],
                side(b)
            );
            page.fit(&line).paint(Style::Warn)
        });
        lines.extend(variance);
        if found.variance.len() > SHOWN {
            lines.push(Line::note(format!(
                "note: {} more places differ; --json has all of them",
                found.variance.len() - SHOWN
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

/// A heatmap of some runs.
#[derive(Debug, Clone, Copy)]
pub struct HeatmapAnswer<'h> {
    /// What is shown.
    pub metric: HeatMetric,
    /// The nodes, the highest value first.
    pub items: &'h [HeatItem],
    /// How many nodes are listed at most; 0 for all.
    pub limit: usize,
}

impl HeatmapAnswer<'_> {
    fn formula(&self) -> &'static str {
        match self.metric {
            HeatMetric::Branching => "number of children, where there are several",
            HeatMetric::Divergence => "units that differ between the states of the children",
            HeatMetric::Anomaly => "anomalies of the node",
            HeatMetric::Confidence => "1 - confidence",
        }
    }

    fn shown(&self) -> &[HeatItem] {
        match self.limit {
            0 => self.items,
            limit => &self.items[..self.items.len().min(limit)],
        }
    }
}

impl Answer for HeatmapAnswer<'_> {
    fn document(&self) -> Value {
        let items = self.shown().iter().map(|item| {
            Value::record([
                ("run", Value::from(item.run.as_str())),
                ("tick", Value::from(item.node.tick)),
                ("node", Value::from(item.node.node.as_str())),
                ("agent", Value::from(item.agent.as_deref())),
                ("value", dendrer_object::tag::float(item.value)),
            ])
        });
        let members = [
            ("metric", Value::from(self.metric.as_str())),
            ("formula", Value::from(self.formula())),
            ("total", Value::from(self.items.len() as u64)),
            ("items", Value::array(items)),
        ];
        document("heatmap", members)
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
        for item in self.shown() {
            let bar = "#".repeat((item.value / most * 20.0).round().max(1.0) as usize);
            let value = match self.metric {
                HeatMetric::Confidence => format!("{:.3}", item.value),
                _ => item.value.to_string(),
            };
            let agent = item.agent.as_deref().map(quote::escape).unwrap_or_else(|| "-".to_owned());
            table.row(vec![
                value,
                format!("{}@{}", item.run, item.node.tick),
                quote::escape(&item.node.node),
                agent,
                bar,
            ]);
        }
        let mut lines = if self.items.is_empty() { Vec::new() } else { page.table(&table) };
        let more = if self.shown().len() < self.items.len() { " (use -n 0 for all)" } else { "" };
        let all = count(self.items.len() as u64, "node", "nodes");
        lines.push(
            format!("{}: {}; {} of {all}{more}", self.metric.as_str(), self.formula(), self.shown().len())
                .into(),
        );
        lines
    }
}
