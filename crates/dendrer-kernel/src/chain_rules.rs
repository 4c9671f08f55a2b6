//! Checks the rules of the chain: ticks, predecessors and times of the records of a log.
//!
//! Knows entries and headers, not stores, and trusts no writer.
//!
//! Rule: report a fault at its record and go on with the next, so that a reader learns how much is sound; test
//! `faults_are_named_where_they_are_and_the_rest_is_still_checked`.

use std::collections::BTreeMap;

use dendrer_object::record::{Entry, Kind, Record};
use dendrer_object::{Digest, RunName, Timestamp};

/// A violation of a rule of the chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainFault {
    /// A tick is missing, repeated or out of order.
    #[error("tick {found} stands where tick {expected} must")]
    Tick {
        /// The tick that must come.
        expected: u64,
        /// The one that does.
        found: u64,
    },
    /// A record names another predecessor than the one it follows.
    #[error("it names {found} as the record before it, and that is {expected}")]
    Prev {
        /// The record before it.
        expected: Digest,
        /// The one it names.
        found: Digest,
    },
    /// A refusal, or the end of a run, names another record than the one that was newest when it was made.
    #[error("it was judged against {found}, and the newest record of its run was {expected}")]
    Head {
        /// The newest record of the chain.
        expected: Digest,
        /// The one it names.
        found: Digest,
    },
    /// The time of a transition lies before that of the record it follows.
    #[error("its time {found} lies before {before}, the time of the record before it")]
    Time {
        /// The time of the record before it.
        before: Timestamp,
        /// Its own.
        found: Timestamp,
    },
    /// A transition or refusal of a run that has not begun.
    #[error("its run has not begun")]
    NotBegun,
    /// A run begins a second time.
    #[error("its run begins a second time")]
    BegunTwice,
    /// Something on the chain of a run that was closed.
    #[error("its run had ended")]
    Ended,
    /// The record a fork branched off at is not among those before it.
    #[error("it was forked from {0}, which is not here")]
    MissingPrefix(Digest),
}

/// The state of one run's chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainLine {
    /// The record with which it begins.
    pub genesis: Option<Digest>,
    /// The newest record of the chain.
    pub tip: Option<Digest>,
    /// The tick of the tip.
    pub tick: u64,
    /// How many transitions were seen.
    pub transitions: u64,
    /// How many refusals were seen.
    pub refusals: u64,
    /// Whether it was closed.
    pub ended: bool,
    /// The last tick up to which everything held.
    pub last_good: Option<u64>,
    /// Whether something did not hold.
    pub broken: bool,
    /// The tick is not known: the beginning of the fork is missing.
    open_start: bool,
    /// The time of the newest record of the chain that could be opened.
    ts: Option<Timestamp>,
}

/// Checks the records of a log in order.
#[derive(Debug, Default)]
pub struct Chains {
    lines: BTreeMap<RunName, ChainLine>,
}

impl Chains {
    /// Takes the next entry of the log, with its record if that could be opened. `place_of` finds tick and time of an
    /// earlier chain record by id, for forks.
    pub fn take(
        &mut self,
        entry: &Entry,
        record: Option<&Record>,
        place_of: &dyn Fn(&Digest) -> Option<(u64, Timestamp)>,
    ) -> Result<(), ChainFault> {
        let Some(run) = &entry.run else { return Ok(()) };
        let known = self.lines.contains_key(run);
        let line = self.lines.entry(run.clone()).or_default();
        let result = match entry.kind {
            Kind::Run if known && line.genesis.is_some() => Err(ChainFault::BegunTwice),
            Kind::Run => line.begin(entry, record, place_of),
            _ if line.genesis.is_none() => Err(ChainFault::NotBegun),
            Kind::Transition => line.follow(entry, record),
            Kind::Refusal => {
                line.refusals += 1;
                line.check_head(record)
            }
            Kind::End if line.ended => Err(ChainFault::Ended),
            Kind::End => {
                line.ended = true;
                line.check_head(record)
            }
            Kind::Register | Kind::Erase | Kind::Key | Kind::Map => Ok(()),
        };
        if result.is_err() || record.is_none() {
            line.broken = true;
        } else if !line.broken {
            line.last_good = Some(line.tick);
        }
        result
    }

    /// Passes by a transition whose record is not opened: what follows is checked against it.
    pub fn pass(&mut self, entry: &Entry) {
        let Some(line) = entry.run.as_ref().and_then(|run| self.lines.get_mut(run)) else { return };
        line.open_start = false;
        line.tip = Some(entry.hash);
        line.tick = entry.tick.unwrap_or(line.tick);
        line.transitions += 1;
        line.last_good = Some(line.tick).filter(|_| !line.broken).or(line.last_good);
    }

    /// Returns what was found of each run.
    pub fn lines(&self) -> &BTreeMap<RunName, ChainLine> {
        &self.lines
    }
}

impl ChainLine {
    fn begin(
        &mut self,
        entry: &Entry,
        record: Option<&Record>,
        place_of: &dyn Fn(&Digest) -> Option<(u64, Timestamp)>,
    ) -> Result<(), ChainFault> {
        self.genesis = Some(entry.hash);
        self.tip = Some(entry.hash);
        self.ts = record.map(|record| record.header().ts);
        let Some(parent) = record.and_then(|record| record.header().prev) else { return Ok(()) };
        match place_of(&parent) {
            Some((tick, before)) => {
                self.tick = tick;
                match self.ts.filter(|found| *found < before) {
                    Some(found) => Err(ChainFault::Time { before, found }),
                    None => Ok(()),
                }
            }
            None => {
                self.open_start = true;
                Err(ChainFault::MissingPrefix(parent))
            }
        }
    }

    fn follow(&mut self, entry: &Entry, record: Option<&Record>) -> Result<(), ChainFault> {
        let found = entry.tick.unwrap_or(0);
        let expected = if std::mem::take(&mut self.open_start) { found } else { self.tick + 1 };
        let before = self.tip.replace(entry.hash);
        let ts = record.map(|record| record.header().ts);
        let ts_before = self.ts;
        self.ts = ts.or(ts_before);
        self.tick = found;
        self.transitions += 1;
        if self.ended {
            return Err(ChainFault::Ended);
        }
        if found != expected {
            return Err(ChainFault::Tick { expected, found });
        }
        if let (Some(expected), Some(found)) = (before, record.and_then(|record| record.header().prev))
            && expected != found
        {
            return Err(ChainFault::Prev { expected, found });
        }
        match (ts_before, ts) {
            (Some(before), Some(found)) if found < before => Err(ChainFault::Time { before, found }),
            _ => Ok(()),
        }
    }

    /// Checks that a refusal or the end of a run names the newest record of the chain (design, section 2: fenced
    /// writers).
    fn check_head(&self, record: Option<&Record>) -> Result<(), ChainFault> {
        match (self.tip, record.and_then(|record| record.header().head)) {
            (Some(expected), Some(found)) if expected != found => Err(ChainFault::Head { expected, found }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{Inputs, Outcome, Seeds, Start, begin, step};
    use dendrer_object::record::{Body, Header, Seed};
    use dendrer_object::{Intent, StoreId, Timestamp};

    fn run() -> Vec<Record> {
        let inputs =
            |n: u8| Inputs { clock: Timestamp::from_ms(u64::from(n)), seeds: Seeds::of_secret([n; 16]) };
        let (first, mut head) =
            begin(StoreId([1; 16]), &Start::new("r".parse().unwrap()), inputs(0)).unwrap();
        let mut records = vec![first];
        for n in 1..6 {
            let intent = Intent::new("plan.update".parse().unwrap(), "a");
            let Outcome::Committed(record) = step(&mut head, &intent, inputs(n)).unwrap() else { panic!() };
            records.push(record);
        }
        records
    }

    fn check(records: &[&Record]) -> (Vec<(usize, String)>, ChainLine) {
        let mut chains = Chains::default();
        let faults = records.iter().enumerate().filter_map(|(at, record)| {
            let entry = Entry::parse(&record.entry()).unwrap();
            chains.take(&entry, Some(record), &|_| None).err().map(|fault| (at, fault.to_string()))
        });
        let faults = faults.collect();
        (faults, chains.lines().values().next().unwrap().clone())
    }

    #[test]
    fn faults_are_named_where_they_are_and_the_rest_is_still_checked() {
        let run = run();
        let all: Vec<&Record> = run.iter().collect();
        let (faults, line) = check(&all);
        assert_eq!((faults.len(), line.tick, line.last_good, line.transitions), (0, 5, Some(5), 5));

        let gap: Vec<&Record> = [0, 1, 2, 4, 5].iter().map(|at| &run[*at]).collect();
        let (faults, line) = check(&gap);
        assert_eq!(faults, [(3, "tick 4 stands where tick 3 must".to_owned())]);
        assert_eq!(line.last_good, Some(2));

        let swap: Vec<&Record> = [0, 1, 3, 2, 4, 5].iter().map(|at| &run[*at]).collect();
        assert_eq!(check(&swap).0[0], (2, "tick 3 stands where tick 2 must".to_owned()));

        let repeat: Vec<&Record> = [0, 1, 1, 2].iter().map(|at| &run[*at]).collect();
        assert_eq!(check(&repeat).0[0], (2, "tick 1 stands where tick 2 must".to_owned()));

        let headless: Vec<&Record> = run[1..].iter().collect();
        assert_eq!(check(&headless).0[0], (0, "its run has not begun".to_owned()));

        // A fork that begins before the record that it branched off at.
        let early = |ms: u64| {
            let header = Header {
                kind: Kind::Run,
                run: Some("f".parse().unwrap()),
                tick: None,
                type_name: None,
                prev: Some(run[5].id()),
                ts: Timestamp::from_ms(ms),
                ..run[1].header().clone()
            };
            let fork = Record::seal(header, Body::commit(Vec::new(), Seed([8; 16])).unwrap()).unwrap();
            let entry = Entry::parse(&fork.entry()).unwrap();
            Chains::default().take(&entry, Some(&fork), &|_| Some((5, run[5].header().ts)))
        };
        assert!(matches!(early(4), Err(ChainFault::Time { .. })) && early(5).is_ok());

        // Beside the chain: what was judged against another record than the newest, and time that runs backwards.
        let refused = |head: &Record| {
            let header = Header { prev: None, tick: None, head: Some(head.id()), ..run[1].header().clone() };
            let header = Header { kind: Kind::Refusal, ..header };
            Record::seal(header, Body::commit(Vec::new(), Seed([7; 16])).unwrap()).unwrap()
        };
        let (stale, fresh) = (refused(&run[1]), refused(&run[2]));
        assert_eq!(check(&[&run[0], &run[1], &run[2], &fresh, &run[3]]).0, []);
        let (faults, _) = check(&[&run[0], &run[1], &run[2], &stale, &run[3]]);
        assert_eq!((faults.len(), faults[0].0), (1, 3));
        assert!(faults[0].1.starts_with("it was judged against"), "{faults:?}");

        let early = Header { ts: Timestamp::from_ms(1), ..run[3].header().clone() };
        let early = Record::seal(early, run[3].body().clone()).unwrap();
        let (faults, _) = check(&[&run[0], &run[1], &run[2], &early]);
        assert_eq!(
            faults,
            [(
                3,
                "its time 1970-01-01T00:00:00.001Z lies before 1970-01-01T00:00:00.002Z, the time of the record before it"
                    .to_owned()
            )]
        );

        let twice: Vec<&Record> = [0, 1, 0].iter().map(|at| &run[*at]).collect();
        assert_eq!(check(&twice).0[0], (2, "its run begins a second time".to_owned()));
    }
}
