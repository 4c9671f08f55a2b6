//! Whether a group still fits after the heads it was made for.
//!
//! Pure: reads the log through [`Log`], writes nothing. Every store appends through [`check`], stores of other crates
//! included, so two stores cannot disagree on what is stale.

use std::collections::BTreeMap;

use dendrer_object::record::{Header, Kind};
use dendrer_object::{Digest, Record, RunName, StoreId};

use crate::error::StoreError;
use crate::store::{Head, RunSummary};

/// The knowledge of a log about a record that another one names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The kind.
    pub kind: Kind,
    /// The tick; `None` off a chain.
    pub tick: Option<u64>,
}

/// The log as the fence sees it.
pub trait Log {
    /// Returns the summary of a run; `None` if the name is free.
    fn summary(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError>;

    /// Returns the kind and the tick of a record of the log.
    fn known(&self, id: &Digest) -> Result<Option<Known>, StoreError>;
}

/// Checks a group that is to be appended at `position`, and returns the summaries, with the group, of the runs that it changes.
pub fn check(
    log: &impl Log,
    store: StoreId,
    position: u64,
    records: &[Record],
) -> Result<BTreeMap<RunName, RunSummary>, StoreError> {
    let mut group = Group { log, runs: BTreeMap::new(), ids: Vec::new() };
    for (record, position) in records.iter().zip(position..) {
        let header = record.header();
        if header.store != store {
            return Err(StoreError::OtherStore { expected: store, found: header.store });
        }
        group.check_references(header)?;
        match &header.run {
            Some(run) if header.kind == Kind::Run => group.begin(run, position, record)?,
            Some(run) => group.add(run, position, record)?,
            None => {}
        }
        group.ids.push((record.id(), Known { kind: header.kind, tick: header.tick }));
    }
    Ok(group.runs)
}

struct Group<'a, L> {
    log: &'a L,
    runs: BTreeMap<RunName, RunSummary>,
    ids: Vec<(Digest, Known)>,
}

impl<L: Log> Group<'_, L> {
    fn known(&self, id: &Digest) -> Result<Option<Known>, StoreError> {
        // The newest record of the group is the one that the next names, as a rule.
        match self.ids.iter().rev().find(|(known, _)| known == id) {
            Some((_, known)) => Ok(Some(known.clone())),
            None => self.log.known(id),
        }
    }

    fn check_references(&self, header: &Header) -> Result<(), StoreError> {
        for link in &header.links {
            if self.known(&link.hash)?.is_none() {
                return Err(StoreError::NoRecord(link.hash));
            }
        }
        match header.head {
            Some(head) if self.known(&head)?.is_none() => Err(StoreError::NoRecord(head)),
            _ => Ok(()),
        }
    }

    fn load(&mut self, run: &RunName) -> Result<bool, StoreError> {
        if self.runs.contains_key(run) {
            return Ok(true);
        }
        match self.log.summary(run)? {
            Some(summary) => {
                self.runs.insert(run.clone(), summary);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn begin(&mut self, run: &RunName, position: u64, record: &Record) -> Result<(), StoreError> {
        if self.load(run)? {
            return Err(StoreError::RunExists(run.clone()));
        }
        let header = record.header();
        // A parent that is not in this log is one of a foreign run; the first transition then fixes the tick.
        let parent_tick = match header.prev {
            Some(prev) => match self.known(&prev)? {
                Some(Known { kind: Kind::Transition | Kind::Run, tick: Some(tick) }) => Some(tick),
                Some(_) => return Err(StoreError::NoRecord(prev)),
                None => None,
            },
            None => None,
        };
        let summary = RunSummary::begin(run.clone(), position, record.id(), header, parent_tick);
        self.runs.insert(run.clone(), summary);
        Ok(())
    }

    fn add(&mut self, run: &RunName, position: u64, record: &Record) -> Result<(), StoreError> {
        if !self.load(run)? {
            return Err(StoreError::NoRun(run.clone()));
        }
        let summary = self.runs.get_mut(run).expect("loaded above");
        check_head(summary, record.header())?;
        summary.add(position, record.id(), record.header());
        Ok(())
    }
}

/// Checks a record against the run it follows.
pub(crate) fn check_head(summary: &RunSummary, header: &Header) -> Result<(), StoreError> {
    let found = summary.head;
    let (fits, expected) = match (header.kind, header.prev, header.head) {
        (Kind::Transition, Some(prev), _) => {
            let before = header.tick.map(|tick| tick.saturating_sub(1));
            (
                prev == found.id && (found.tick.is_none() || found.tick == before),
                Head { tick: before, id: prev },
            )
        }
        (Kind::End | Kind::Refusal, _, Some(head)) => (head == found.id, Head { tick: None, id: head }),
        _ => return Ok(()),
    };
    if summary.ended && header.kind != Kind::Refusal {
        return Err(StoreError::RunEnded(summary.name.clone()));
    }
    if fits {
        return Ok(());
    }
    Err(StoreError::Stale { run: summary.name.clone(), expected, found })
}
