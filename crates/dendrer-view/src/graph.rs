//! A lane for each agent beside a log. Only what is on record is drawn: whose transition it is, and when each
//! agent's branch begins and ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer::kernel::step::AgentHead;
use dendrer_object::record::Record;
use dendrer_object::{Digest, Value};

use crate::quote;

/// The lanes of a range of ticks, as far as they were walked.
#[derive(Debug, Clone)]
pub struct Lanes(Vec<Lane>);

#[derive(Debug, Clone)]
struct Lane {
    agent: Arc<str>,
    /// The last record of the branch.
    end: Digest,
    open: bool,
}

impl Lanes {
    /// One lane for each agent, by name; each ends with the record that is the agent's newest.
    pub fn new(agents: &BTreeMap<Arc<str>, AgentHead>) -> Lanes {
        let lane = |(agent, head): (&Arc<str>, &AgentHead)| Lane {
            agent: Arc::clone(agent),
            end: head.id,
            open: false,
        };
        Lanes(agents.iter().map(lane).collect())
    }

    /// How many characters the lanes take.
    pub fn width(&self) -> usize {
        (self.0.len() * 2).saturating_sub(1)
    }

    /// Names the lanes, from left to right.
    pub fn legend(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|lane| quote::escape(&lane.agent)).collect();
        format!("lanes   {}", names.join(", "))
    }

    /// Draws the lanes at a record: `*` for whose it is, `|` for a branch that goes on.
    pub fn step(&mut self, record: &Record) -> String {
        let agent = record.body().value("/agent_id");
        let agent = agent.as_ref().and_then(Value::as_str);
        let marks = self.0.iter_mut().map(|lane| {
            let is_here = agent == Some(&*lane.agent);
            let mark = if is_here {
                "*"
            } else if lane.open {
                "|"
            } else {
                " "
            };
            if is_here {
                lane.open = record.id() != lane.end;
            }
            mark
        });
        marks.collect::<Vec<_>>().join(" ")
    }
}
