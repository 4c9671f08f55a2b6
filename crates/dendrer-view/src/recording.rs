//! The recording of a program from the outside: a line for each record, and the counts.

use dendrer_object::{Digest, Record, RunName, Value, document};

use crate::answer::{End, ItemAnswer, Line, Page};
use crate::count;

/// An address that a program asked without being recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WentAround {
    /// The address and the port.
    pub peer: String,
    /// How many connections to it were seen.
    pub connections: u64,
}

/// How many addresses have a note each.
const NOTED_MAX: usize = 5;

/// The recording of a program.
#[derive(Debug, Clone)]
pub struct RecordedAnswer {
    /// The run.
    pub run: RunName,
    /// Agents that were distinguished.
    pub agents: u64,
    /// Calls that were captured.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Parts that are missing.
    pub gaps: u64,
    /// The other addresses that the program asked; `None` if they were not looked at.
    pub around: Option<Vec<WentAround>>,
    /// The exit code that the program ended with; 128 and the signal if one ended it.
    pub exit: u8,
    /// The last tick, and its record.
    pub tip: Option<(u64, Digest)>,
}

document! {
    /// The recording of a program from the outside
    pub object RecordedDocument: "recorded" (answer: &RecordedAnswer) {
        /// The run
        run: &RunName = &answer.run,
        /// How many ticks it has
        ticks: u64 = answer.tip.map_or(0, |(tick, _)| tick),
        /// How many agents were distinguished
        agents: u64 = answer.agents,
        /// How many calls were captured
        calls: u64 = answer.calls,
        /// How many of them failed, or were not answered to their end
        failed: u64 = answer.failed,
        /// How many parts are missing
        gaps: u64 = answer.gaps,
        /// The addresses that it asked without being recorded, as far as they were seen; null if they were not looked at
        around: Option<Vec<AroundObject>> = answer.around.as_ref().map(|peers| peers.iter().map(AroundObject::of).collect()),
        /// The exit code of the program; 128 and the signal if one ended it
        exit: u64 = u64::from(answer.exit),
        /// The record of the last tick; null if it has no tick
        tip: Option<Digest> = answer.tip.map(|(_, id)| id),
        /// The records, as they became durable
        items: stream RecordedItem,
    }

    /// An address that a program asked without being recorded
    pub object AroundObject(around: &WentAround) {
        /// The address and the port
        peer: &str = &around.peer,
        /// How many connections to it were seen
        connections: u64 = around.connections,
    }

    /// A record that is durable
    object RecordedItem(record: &Record) {
        /// The tick; null for the beginning and the end of the run
        tick: Option<u64> = record.header().tick.filter(|tick| *tick > 0),
        /// The id of the record
        id: Digest = record.id(),
        /// The type of the transition, or the kind of the record
        type: String = type_of(record),
        /// The agent; null for the beginning and the end of the run
        agent_id: Option<String> = record.body().value("/agent_id").and_then(|agent| agent.as_str().map(str::to_owned)),
    }
}

fn type_of(record: &Record) -> String {
    let header = record.header();
    header.type_name.as_ref().map_or_else(|| header.kind.as_str().to_owned(), ToString::to_string)
}

impl ItemAnswer for RecordedAnswer {
    type Item = Record;

    fn item(&mut self, record: &Record) -> Option<Value> {
        self.see(record);
        Some(RecordedItem::of(record).into())
    }

    fn item_lines(&mut self, record: &Record, _: &Page) -> Vec<Line> {
        self.see(record);
        Vec::new()
    }

    fn summary(&self) -> Value {
        RecordedDocument::of(self).into()
    }

    fn kept_lines(&mut self, _: &Page) -> Vec<Line> {
        Vec::new()
    }

    fn last_lines(&mut self, _: &Page) -> Vec<Line> {
        let mut parts = vec![count(self.tip.map_or(0, |(tick, _)| tick), "tick", "ticks")];
        parts.push(count(self.agents, "agent", "agents"));
        parts.push(count(self.calls, "call", "calls"));
        parts.push(format!("{} failed", self.failed));
        parts.push(count(self.gaps, "gap", "gaps"));
        parts.extend(self.tip.map(|(_, id)| format!("tip {}", id.short())));
        let recorded = Line::note(format!("recorded {}: {}", self.run, parts.join(", ")));
        let peers = self.around.iter().flatten();
        let noted = peers.clone().take(NOTED_MAX).map(|one| {
            let connections = count(one.connections, "connection", "connections");
            Line::note(format!("note: went around: {}, {connections}", one.peer))
        });
        let more = peers.count().saturating_sub(NOTED_MAX);
        let rest = (more > 0).then(|| {
            Line::note(format!(
                "note: went around: {}",
                count(more as u64, "other address", "other addresses")
            ))
        });
        std::iter::once(recorded).chain(noted).chain(rest).collect()
    }

    fn end(&self) -> End {
        End::Answered
    }
}

impl RecordedAnswer {
    /// Begins the answer of a recording.
    pub fn new(run: RunName) -> RecordedAnswer {
        RecordedAnswer { run, agents: 0, calls: 0, failed: 0, gaps: 0, around: None, exit: 0, tip: None }
    }

    fn see(&mut self, record: &Record) {
        if let Some(tick) = record.header().tick.filter(|tick| *tick > 0) {
            self.tip = Some((tick, record.id()));
        }
    }
}
