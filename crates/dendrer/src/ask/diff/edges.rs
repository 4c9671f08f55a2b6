//! Lining up two runs of graphs by the paths of their edges: effects that are asked at once answer in any order (Mynd Labs research
//! note R-001: two runs with one frontier are one run).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_graph::eval::numbers_of_index;
use dendrer_object::EDGE;
use dendrer_object::record::Record;

use super::{Ahead, Marker, Walk, tick_of, type_of};
use crate::error::Error;
use crate::run::frontier::NODE_FAILED;
use crate::run::trace::Trace;

/// The place of a transition in its graph: that of its edge in the frontier, and its type. A transition that is of no edge comes
/// after all edges, with the number of several.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct EdgePlace {
    index: Vec<u64>,
    path: String,
    type_name: String,
    number: u64,
}

impl EdgePlace {
    fn of(record: &Record) -> EdgePlace {
        let edge = record.content().get(EDGE).cloned();
        let member = |name: &str| edge.as_ref()?.get(name)?.as_str().map(str::to_owned);
        let index = member("index").map_or_else(|| vec![u64::MAX], |index| numbers_of_index(&index));
        EdgePlace { index, path: member("path").unwrap_or_default(), type_name: type_of(record), number: 0 }
    }
}

/// The ticks of a run by the places of its transitions; of an edge, those of the last request and of the answer that counts.
fn places(
    trace: &Trace,
    (from, end): (u64, u64),
    markers: &mut Vec<Marker>,
    is_touched: &mut bool,
) -> Result<BTreeMap<EdgePlace, u64>, Error> {
    let mut found = BTreeMap::new();
    let mut numbers: BTreeMap<EdgePlace, u64> = BTreeMap::new();
    let mut ahead = Ahead::new(trace, from, end)?;
    while let Some(record) = ahead.take(markers)? {
        let (mut place, tick, content) = (EdgePlace::of(&record), tick_of(&record), record.content());
        let said = |outer: &str, name: &str| content.get(outer)?.get(name).cloned();
        // Attempts that brought no value, and nodes that failed before the run went on, are no part of its frontier.
        let is_failed = said("result", "status").is_some_and(|status| status.as_str() != Some("ok"));
        let is_passed = said("intent", NODE_FAILED).is_some() && tick < end.min(trace.tip());
        if is_passed || (is_failed && !place.path.is_empty() && found.contains_key(&place)) {
            continue;
        }
        if place.path.is_empty() {
            let number = numbers.entry(place.clone()).or_default();
            *number += 1;
            place.number = *number;
        }
        found.insert(place, tick);
    }
    *is_touched |= ahead.is_touched;
    Ok(found)
}

impl Walk<'_, '_> {
    /// Lines up transitions of one edge and type, in the order of the frontier.
    pub(super) fn by_edge(&mut self) -> Result<ControlFlow<()>, Error> {
        let behind = self.report.shared.unwrap_or(0) + 1;
        let (a_end, b_end) = self.question.ends;
        let mut is_touched = self.is_touched;
        let left = places(self.a, (behind, a_end), &mut self.report.markers.0, &mut is_touched)?;
        let right = places(self.b, (behind, b_end), &mut self.report.markers.1, &mut is_touched)?;
        self.is_touched = is_touched;
        let (from, to, is_open) = (self.first_tick(), self.last_tick(), self.question.to.is_none());
        let mut all: Vec<&EdgePlace> = left.keys().chain(right.keys()).collect();
        all.sort_unstable();
        all.dedup();
        for place in all {
            let (a, b) = (left.get(place), right.get(place));
            if !a.map_or(is_open, |tick| (from..=to).contains(tick)) {
                continue;
            }
            let a = a.map(|tick| self.a.record(*tick)).transpose()?;
            let b = b.map(|tick| self.b.record(*tick)).transpose()?;
            if self.pair(a, b).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
