//! A replay: the states as they were made again, and whether they are those on record.

use dendrer::ask::replay::{Replayed, ReplayedTick};
use dendrer::reread::Reread;
use dendrer_object::Value;

use crate::answer::{End, ItemAnswer, Line, Page};
use crate::certainty::{unknown_line, unknown_member};
use crate::problem::ShownProblem as _;
use crate::{count, document, problem, quote};

/// A replay, one tick after the other.
#[derive(Debug, Clone)]
pub struct ReplayAnswer {
    /// Whether a replay that ended early is reported and does not fail.
    pub detects: bool,
    /// The result of the replay, after it has ended.
    pub replayed: Option<Replayed>,
    /// The calls that were made once more; `None` if no tool was to be called.
    pub reread: Option<Vec<Reread>>,
}

impl ReplayAnswer {
    /// Begins a replay.
    pub fn new(detects: bool) -> ReplayAnswer {
        ReplayAnswer { detects, replayed: None, reread: None }
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
            ("made", Value::from("ticks")),
            ("to", Value::from(replayed.to)),
            ("ticks", Value::from(replayed.ticks)),
            ("ok", Value::from(replayed.error.is_none())),
            ("twice", Value::from(replayed.twice)),
            (
                "divergence",
                Value::from(replayed.error.as_ref().map(|error| problem::replay(error).to_json())),
            ),
        ];
        let reread = self.reread.as_ref().map(|made| ("reread", Value::array(made.iter().map(reread_json))));
        document("replay", members.into_iter().chain(unknown_member(&replayed.unknown)).chain(reread))
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
                let called = match &self.reread {
                    None => "no model and no tool was called",
                    Some(_) => "no model was called, and no tool but those below",
                };
                format!(
                    "replayed   OK    {ticks} of {tip} of {run}, by {reducer}{twice}; {called}{}",
                    page.of_run(run)
                )
            }
            Some(error) if self.detects => {
                format!("replayed   WARN  {}", quote::escape(&error.to_string()))
            }
            Some(_) => return Vec::new(),
        };
        let made = self.reread.iter().flatten().map(|made| reread_line(made).into());
        [line.into()].into_iter().chain(unknown_line(&replayed.unknown)).chain(made).collect()
    }

    fn end(&self) -> End {
        match self.replayed.as_ref().and_then(|replayed| replayed.error.as_ref()) {
            Some(error) if !self.detects => End::Problem(error.code()),
            _ if self.reread.iter().flatten().any(|made| !made.is_same()) => End::No,
            _ => End::Answered,
        }
    }
}

fn reread_json(made: &Reread) -> Value {
    let (recorded_at, recorded) = made.recorded.clone().unzip();
    let (now, error) = match &made.now {
        Ok(now) => (Some(("now", now.clone())), None),
        Err(why) => (None, Some(("error", Value::from(why.as_str())))),
    };
    let members = [
        ("tick", Value::from(made.tick)),
        ("index", Value::from(made.index)),
        ("tool", Value::from(made.tool.as_str())),
        ("params", made.params.clone()),
        ("recorded_at", Value::from(recorded_at)),
        ("same", Value::from(made.is_same())),
    ];
    let recorded = recorded.map(|recorded| ("recorded", recorded));
    Value::record(members.into_iter().chain(recorded).chain(now).chain(error))
}

fn reread_line(made: &Reread) -> String {
    let call = format!("tick {}  {} {}", made.tick, quote::escape(&made.tool), quote::value(&made.params));
    let recorded = match &made.recorded {
        None => "no answer recorded".to_owned(),
        Some((tick, output)) => format!("recorded at tick {tick} {}", quote::value(output)),
    };
    match &made.now {
        Ok(_) if made.is_same() => format!("read again  same     {call}  {recorded}"),
        Ok(now) => format!("read again  DIFFERS  {call}  {recorded}, now {}", quote::value(now)),
        Err(why) => format!("read again  FAILED   {call}  {recorded}; {}", quote::escape(why)),
    }
}
