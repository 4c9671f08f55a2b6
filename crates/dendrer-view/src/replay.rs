//! A replay: the states as they were made again, and whether they are those on record.

use dendrer::ask::replay::{Replayed, ReplayedTick};
use dendrer_object::Value;

use crate::answer::{End, ItemAnswer, Line, Page};
use crate::{count, document, problem, quote};

/// A replay, one tick after the other.
#[derive(Debug, Clone)]
pub struct ReplayAnswer {
    /// Whether a replay that ended early is reported and does not fail.
    pub detects: bool,
    /// The result of the replay, after it has ended.
    pub replayed: Option<Replayed>,
}

impl ReplayAnswer {
    /// Begins a replay.
    pub fn new(detects: bool) -> ReplayAnswer {
        ReplayAnswer { detects, replayed: None }
    }
}

impl ItemAnswer for ReplayAnswer {
    type Item = ReplayedTick;

    fn item(&mut self, item: &ReplayedTick) -> Option<Value> {
        let state = item.state.iter().map(|state| ("state", state.clone()));
        let members = [("tick", Value::from(item.tick)), ("state_root", Value::from(item.root))];
        Some(Value::record(members.into_iter().chain(state)))
    }

    fn item_lines(&mut self, item: &ReplayedTick, _: &Page) -> Vec<Line> {
        let state = match &item.state {
            Some(Value::String(text)) => format!("  {}", quote::escape(text)),
            Some(other) => format!("  {}", quote::value(other)),
            None => String::new(),
        };
        vec![format!("{:>6}  {}{state}", item.tick, item.root).into()]
    }

    fn summary(&self) -> Value {
        let Some(replayed) = &self.replayed else { return document("replay", []) };
        let members = [
            ("run", Value::from(replayed.run.as_str())),
            ("to", Value::from(replayed.to)),
            ("ticks", Value::from(replayed.ticks)),
            ("ok", Value::from(replayed.error.is_none())),
            ("twice", Value::from(replayed.twice)),
            (
                "divergence",
                Value::from(replayed.error.as_ref().map(|error| problem::replay(error).to_json())),
            ),
        ];
        document("replay", members)
    }

    fn kept_lines(&mut self, _: &Page) -> Vec<Line> {
        Vec::new()
    }

    /// A replay that fails has no last line: the problem is reported as an error.
    fn last_lines(&mut self, page: &Page) -> Vec<Line> {
        let Some(replayed) = &self.replayed else { return Vec::new() };
        let line = match &replayed.error {
            None => {
                let Replayed { run, tip, ticks, reducer, .. } = replayed;
                let twice = if replayed.twice { ", two evaluations each" } else { "" };
                let ticks = count(*ticks, "tick", "ticks");
                format!(
                    "replayed   OK    {ticks} of {tip} of {run}, by {reducer}{twice}; no model and no tool was called{}",
                    page.of_run(run)
                )
            }
            Some(error) if self.detects => {
                format!("replayed   WARN  {}", quote::escape(&error.to_string()))
            }
            Some(_) => return Vec::new(),
        };
        vec![line.into()]
    }

    fn end(&self) -> End {
        match self.replayed.as_ref().and_then(|replayed| replayed.error.as_ref()) {
            Some(error) if !self.detects => End::Problem(error.code()),
            _ => End::Answered,
        }
    }
}
