//! A run right after some tick: its state, counters and agents, and the snapshot made of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::commitment::{Commitments, Statuses};
use dendrer_kernel::counters::Counters;
use dendrer_kernel::replay;
use dendrer_kernel::step::{AgentHead, RunState};
use dendrer_object::note::SigningKey;
use dendrer_object::record::{Header, Record};
use dendrer_object::{Digest, Timestamp, Value, json};

use crate::error::Error;
use crate::run::snapshot::{Tag, UNTAGGED, snapshot_message};

/// The member of a snapshot with commitments, where there are any.
const COMMITMENTS: &str = "commitments";

/// A run right after some tick.
#[derive(Debug, Clone)]
pub struct Moment {
    /// The tick.
    pub tick: u64,
    /// The id of the record at that tick.
    pub id: Digest,
    /// The time of its commit.
    pub ts: Timestamp,
    /// The state after it.
    pub state: Value,
    /// The derived counters after it.
    pub counters: Counters,
    /// The commitments after it.
    pub commitments: Commitments,
    /// The newest record of each agent's branch.
    pub agents: BTreeMap<Arc<str>, AgentHead>,
}

impl Moment {
    /// The moment at the head of a run that is being written.
    pub fn of(head: &RunState) -> Moment {
        Moment {
            tick: head.tick(),
            id: head.id(),
            ts: head.ts(),
            state: head.state().clone(),
            counters: head.counters().clone(),
            commitments: head.commitments().clone(),
            agents: head.agents().clone(),
        }
    }

    /// Applies the recorded delta of the next transition.
    pub fn advance(&mut self, record: &Record) -> Result<(), Error> {
        self.state = replay::recorded_state(&self.state, record)?;
        self.counters.take(record);
        self.commitments.take(record);
        let (agent, seq) = (record.body().value("/agent_id"), record.body().value("/seq"));
        self.move_to(record.header(), record.id(), agent.as_ref(), seq.as_ref());
        Ok(())
    }

    /// Moves to a transition.
    fn move_to(&mut self, header: &Header, id: Digest, agent: Option<&Value>, seq: Option<&Value>) {
        let (agent, seq) = (agent.and_then(Value::as_str), seq.and_then(Value::as_u64));
        if let (Some(agent), Some(seq)) = (agent, seq) {
            self.agents.insert(agent.into(), AgentHead { seq, id });
        }
        self.tick = header.tick.unwrap_or(self.tick);
        self.id = id;
        self.ts = header.ts;
    }

    /// Writes the moment as a snapshot: a tag, and canonical JSON. Readers compare the state with the record; the tag covers the
    /// rest, which no record binds. Without a key the tag is 32 zeros, and readers ignore that rest.
    pub fn to_snapshot(&self, key: Option<&SigningKey>) -> Vec<u8> {
        let rest = self.unbound();
        let tag = key.map_or(UNTAGGED, |key| key.tag(&snapshot_message(self.id, &rest).0));
        let value = Value::record(rest.into_iter().chain([("state", self.state.clone())]));
        let mut bytes = tag.to_vec();
        bytes.extend(json::to_vec(&value));
        bytes
    }

    /// Reads the value of a snapshot at the tick of the record with this id and time, in a run by the rules of a version. Checks neither the state against a root
    /// nor the tag.
    pub(super) fn from_snapshot(
        version: u64,
        value: &Value,
        tick: u64,
        id: Digest,
        ts: Timestamp,
    ) -> Option<Moment> {
        let agents = value.get("agents")?.as_array()?.iter().map(|pair| {
            let pair = pair.as_array()?;
            let head = pair.get(1)?;
            let head =
                AgentHead { seq: head.get("seq")?.as_u64()?, id: head.get("id")?.as_str()?.parse().ok()? };
            Some((Arc::from(pair.get(0)?.as_str()?), head))
        });
        Some(Moment {
            tick,
            id,
            ts,
            state: value.get("state")?.clone(),
            counters: Counters::from_kept(value.get("counters")?)?,
            commitments: match value.get(COMMITMENTS) {
                Some(kept) => Commitments::from_kept(version, kept),
                None => Commitments::none(version),
            },
            agents: agents.collect::<Option<_>>()?,
        })
    }

    fn agents_value(&self) -> Value {
        Value::array(self.agents.iter().map(|(name, head)| {
            let head = Value::record([("id", Value::from(head.id)), ("seq", Value::from(head.seq))]);
            Value::array([Value::String(Arc::clone(name)), head])
        }))
    }

    /// The values that expressions get besides the state: the counters, with the statuses of commitments.
    pub fn served(&self) -> Value {
        Statuses::served_with(&self.commitments, &self.state, self.counters.to_value())
    }

    /// The statuses of the commitments, with no action in question.
    pub fn statuses(&self) -> Statuses {
        Statuses::of(&self.commitments, &self.state, &|| self.counters.to_value(), None)
    }

    /// The values that no record binds: agents, counters and commitments, if there are any.
    fn unbound(&self) -> Vec<(&'static str, Value)> {
        let commitments = (!self.commitments.is_empty()).then(|| (COMMITMENTS, self.commitments.to_kept()));
        let rest = [("agents", self.agents_value()), ("counters", self.counters.to_kept())];
        rest.into_iter().chain(commitments).collect()
    }

    /// Whether the tag is that of a key on the counters and agents of this moment.
    pub(super) fn is_tagged(&self, key: &SigningKey, tag: &Tag) -> bool {
        key.has_tagged(&snapshot_message(self.id, &self.unbound()).0, tag)
    }
}
