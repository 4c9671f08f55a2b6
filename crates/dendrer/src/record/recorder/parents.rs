//! The parents that a line names by its links: which are refused at the door, and what its reply states of the others.
//!
//! Only transitions of the run are parents ([`crate::run::causal`]). A `merges` link to another record is refused. A `caused_by`
//! link of an agent's first transition is taken, and the agent begins at the beginning of the run. Writes nothing.
//!
//! Rule: what [`crate::evidence::branches`] calls a fault is refused here; test `links_to_other_runs_are_refused_or_said`.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_kernel::causal::{MergeRules, SyncStrategy};
use dendrer_kernel::step::LineFault;
use dendrer_object::record::{Kind, Record, Rel};
use dendrer_object::{Digest, Intent, RunName, Value};
use dendrer_store::prelude::*;

use super::Recorder;
use crate::error::{CausalRefused, Error};
use crate::record::lines::LineRead;
use crate::run::trace::Trace;

/// A fact about the parents of a committed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentNote {
    /// The first transition of an agent names a record that is no transition of the run: the agent begins with the run.
    Begins(Digest),
    /// A parent is named more than once, and counts once.
    Twice(Digest),
    /// The strategy `policy` is asked for, and the pack gives this agent no role.
    NoRole(Arc<str>),
}

impl Recorder {
    /// A line that was read, refused if it merges a record that is no transition of the run.
    pub(crate) fn with_parents(
        &self,
        read: LineRead,
        line: impl FnOnce() -> Value,
    ) -> Result<LineRead, Error> {
        let LineRead::Intent(intent) = &read else { return Ok(read) };
        match self.other_run(intent)? {
            None => Ok(read),
            Some((at, error)) => {
                let (code, message) = (error.code(), error.to_string());
                let path = format!("/links/{at}/hash");
                Ok(LineRead::Fault(line(), LineFault::Schema { code, path, message }))
            }
        }
    }

    /// Refuses a `merges` link to a record that is no transition of the run.
    pub(super) fn check_parents(&self, intents: &[Intent]) -> Result<(), (usize, Error)> {
        for (at, intent) in intents.iter().enumerate() {
            if let Some((_, error)) = self.other_run(intent).map_err(|error| (at, error))? {
                return Err((at, error.into()));
            }
        }
        Ok(())
    }

    /// The first link that merges a record that is there and no transition of the run.
    fn other_run(&self, intent: &Intent) -> Result<Option<(usize, CausalRefused)>, Error> {
        for (at, link) in intent.links.iter().enumerate().filter(|(_, link)| link.rel == Rel::Merges) {
            if let Some(record) = self.record_of(&link.hash)?
                && !self.is_parent(&record)?
            {
                let (run, record) = (self.head.run().clone(), link.hash);
                return Ok(Some((at, CausalRefused::OtherRun { run, record })));
            }
        }
        Ok(None)
    }

    /// The parents of a committed line, for its reply.
    pub(super) fn parent_notes(&self, intent: &Intent, record: &Record) -> Result<Vec<ParentNote>, Error> {
        let to = |rel: Rel| intent.links.iter().filter(move |link| link.rel == rel).map(|link| link.hash);
        let caused: Vec<Digest> = to(Rel::CausedBy).collect();
        let is_first = !caused.is_empty() && self.is_first(intent, record);
        let mut notes = Vec::new();
        for target in caused.iter().filter(|_| is_first) {
            if self.parent(target)?.is_none() {
                notes.push(ParentNote::Begins(*target));
            }
        }
        let mut named = BTreeSet::new();
        for target in to(Rel::Merges).chain(caused.iter().copied().filter(|_| is_first)) {
            let note = ParentNote::Twice(target);
            if !named.insert(target) && !notes.contains(&note) {
                notes.push(note);
            }
        }
        if intent.links.iter().any(|link| link.rel == Rel::Merges) {
            notes.extend(self.without_role(intent)?.into_iter().map(ParentNote::NoRole));
        }
        Ok(notes)
    }

    /// Whether a record is the first of its agent.
    fn is_first(&self, intent: &Intent, record: &Record) -> bool {
        let newest = self.head.agents().get(&*intent.agent);
        // Most agents have a long branch: then the record need not be read.
        newest.is_none_or(|newest| newest.seq <= super::WEIGHED as u64)
            && record.body().value("/seq").and_then(|seq| seq.as_u64()) == Some(1)
    }

    /// The agents of a sync node and of what it merges that have no role, if `policy` decides there.
    fn without_role(&self, intent: &Intent) -> Result<Vec<Arc<str>>, Error> {
        let pack = self.head.in_force();
        let of_pack = MergeRules::of(pack.as_ref().and_then(|pack| pack.get("merge")));
        let said = intent.member("intent").and_then(|said| said.get("merge"));
        let of_node = MergeRules::of(said);
        let asks = |rules: &MergeRules| rules.keys.values().any(|one| *one == SyncStrategy::Policy);
        let general = of_node.strategy.or(of_pack.strategy);
        if general != Some(SyncStrategy::Policy) && !asks(&of_node) && !asks(&of_pack) {
            return Ok(Vec::new());
        }
        let mut agents = BTreeSet::from([Arc::clone(&intent.agent)]);
        for link in intent.links.iter().filter(|link| link.rel == Rel::Merges) {
            agents.extend(self.parent(&link.hash)?.and_then(|record| agent_of(&record)));
        }
        Ok(agents.into_iter().filter(|agent| !of_pack.roles.contains_key(agent)).collect())
    }

    /// The record of an id: of a transition of the run, or of its beginning; `None` for any other.
    fn parent(&self, id: &Digest) -> Result<Option<Record>, Error> {
        match self.record_of(id)? {
            Some(record) if self.is_parent(&record)? => Ok(Some(record)),
            _ => Ok(None),
        }
    }

    /// The record of an id, gathered or in the log.
    fn record_of(&self, id: &Digest) -> Result<Option<Record>, Error> {
        let gathered = self.under_way.iter().flat_map(|submitted| &submitted.records).chain(&self.pending);
        if let Some(record) = gathered.into_iter().find(|record| record.id() == *id) {
            return Ok(Some(record.clone()));
        }
        let position = self.store.find(id)?;
        Ok(position.map(|position| self.store.get(position)).transpose()?.flatten())
    }

    /// Whether a record is a transition of the run, or its beginning.
    fn is_parent(&self, record: &Record) -> Result<bool, Error> {
        let header = record.header();
        let (Some(run), Some(tick)) = (&header.run, header.tick) else { return Ok(false) };
        let is_node = header.kind == Kind::Transition || header.kind == Kind::Run;
        let is_own = run == self.head.run()
            || self.prefix()?.iter().any(|(ancestor, last)| ancestor == run && tick <= *last);
        Ok(is_node && is_own)
    }

    /// The runs that the run branched off, each with the last tick that it shares.
    fn prefix(&self) -> Result<Vec<(RunName, u64)>, Error> {
        let run = self.head.run();
        let gathered = self.under_way.iter().flat_map(|submitted| &submitted.records).chain(&self.pending);
        let is_begin =
            |record: &&Record| record.header().kind == Kind::Run && record.header().run.as_ref() == Some(run);
        let Some(begin) = gathered.into_iter().find(is_begin) else {
            let trace = Trace::open(&self.store, run)?;
            let (_, above) = trace.lineage().split_last().expect("a run is in its lineage");
            return Ok(above.to_vec());
        };
        // A run that begins is not in the store yet: it continues the record before its first.
        let Some(prev) = begin.header().prev else { return Ok(Vec::new()) };
        let position = self.store.find(&prev)?;
        let prev = position.map(|position| self.store.get(position)).transpose()?.flatten();
        let header = prev.as_ref().map(Record::header);
        let Some((parent, tick)) = header.and_then(|header| Some((header.run.clone()?, header.tick?))) else {
            return Ok(Vec::new());
        };
        let mut lineage = Trace::open(&self.store, &parent)?.lineage().to_vec();
        if let Some((_, last)) = lineage.last_mut() {
            *last = tick;
        }
        Ok(lineage)
    }
}

fn agent_of(record: &Record) -> Option<Arc<str>> {
    record.body().value("/agent_id").as_ref().and_then(Value::as_str).map(Arc::from)
}
