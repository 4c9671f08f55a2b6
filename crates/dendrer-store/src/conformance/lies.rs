//! Lookups that lie: an index with a row too few, too many, or in a wrong place.
//!
//! The suite reads as a reader does that checks what it reads. An answer must be right or an error.

use std::collections::BTreeMap;

use dendrer_object::record::Kind;
use dendrer_object::{Record, RunName};

use super::{Scribe, Subject, info, name, nothing};
use crate::store::{RunSummary, Store};

/// A lie of lookups that are kept apart from the log, such as an index. The suite plants them one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// The newest tick of run `a` is missing.
    HiddenTick,
    /// The `key` record is missing.
    HiddenKey,
    /// Run `b` is missing.
    HiddenRun,
    /// The refusal of run `a` is missing.
    HiddenRefusal,
    /// Ticks 2 and 3 of run `a` have each other's positions.
    WrongPositions,
    /// Run `a` has a tick 99.
    SurplusTick,
    /// There is a run `ghost`.
    SurplusRun,
}

impl Lie {
    /// Every lie.
    pub const ALL: [Lie; 7] = [
        Lie::HiddenTick,
        Lie::HiddenKey,
        Lie::HiddenRun,
        Lie::HiddenRefusal,
        Lie::WrongPositions,
        Lie::SurplusTick,
        Lie::SurplusRun,
    ];
}

/// Plants lies into the lookups of a store: every answer is right or an error.
pub fn lies(subject: &dyn Subject) {
    for lie in Lie::ALL {
        a_lying_lookup_gives_no_wrong_answer(subject, lie);
    }
}

/// The summaries of the runs of a log.
fn summaries(records: &[Record]) -> BTreeMap<RunName, RunSummary> {
    let mut runs: BTreeMap<RunName, RunSummary> = BTreeMap::new();
    for (position, record) in (0..).zip(records) {
        let (header, id) = (record.header(), record.id());
        let Some(run) = &header.run else { continue };
        match runs.get_mut(run) {
            Some(summary) => summary.add(position, id, header),
            None => {
                drop(runs.insert(run.clone(), RunSummary::begin(run.clone(), position, id, header, None)))
            }
        }
    }
    runs
}

/// Checks that each answer of a store, as a reader gets it that checks what it reads, is right or an error.
fn check_right_or_error(store: &dyn Store, records: &[Record], lie: Lie) {
    let numbered = || (0u64..).zip(records);
    assert!(store.covers_log(), "lookups that cover less than the log may not know of a record");
    for (position, record) in numbered() {
        for found in [store.get(position), store.proven(position)].into_iter().flatten() {
            assert_eq!(found.as_ref(), Some(record), "{lie:?}: the record at {position}");
        }
        if let Ok(found) = store.find(&record.id()) {
            assert_eq!(found, Some(position), "{lie:?}: where {} is", record.id());
        }
    }
    let known = summaries(records);
    for run in ["a", "b", "ghost"].map(name) {
        if let Ok(found) = store.run(&run) {
            assert_eq!(found.as_ref(), known.get(&run), "{lie:?}: {run}");
        }
        let of_run = || numbered().filter(|(_, record)| record.header().run.as_ref() == Some(&run));
        for tick in (0..10).chain([99]) {
            let expected = of_run().find(|(_, record)| record.header().tick == Some(tick));
            if let Ok(found) = store.proven_at(&run, tick) {
                assert_eq!(found.as_ref(), expected.map(|(_, record)| record), "{lie:?}: {run} at {tick}");
            }
        }
        if let Ok(found) = store.positions(&run, 0..=u64::MAX, usize::MAX >> 1) {
            let ticks: Vec<u64> = found.iter().map(|(tick, _)| *tick).collect();
            let expected: Vec<u64> = of_run().filter_map(|(_, record)| record.header().tick).collect();
            assert_eq!(ticks, expected, "{lie:?}: the ticks of {run}");
        }
        if let Ok(found) = store.beside(&run, 0, usize::MAX >> 1) {
            let beside = of_run().filter(|(_, record)| record.header().tick.is_none());
            let expected: Vec<_> =
                beside.map(|(position, record)| (position, record.header().kind)).collect();
            assert_eq!(found, expected, "{lie:?}: beside {run}");
        }
    }
    if let Ok(found) = store.runs(0, usize::MAX >> 1) {
        let mut expected: Vec<_> = known.values().cloned().collect();
        expected.sort_by_key(|summary| summary.begin);
        assert_eq!(found, expected, "{lie:?}: the runs");
    }
    if let Ok(found) = store.beside_runs(0, usize::MAX >> 1) {
        let apart = numbered().filter(|(_, record)| record.header().run.is_none());
        let expected: Vec<_> = apart.map(|(position, record)| (position, record.header().kind)).collect();
        assert_eq!(found, expected, "{lie:?}: beside all runs");
    }
}

fn a_lying_lookup_gives_no_wrong_answer(subject: &dyn Subject, lie: Lie) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("a"), scribe.begin("b")];
    records.extend((0..4).map(|_| scribe.step("a")));
    records.push(scribe.beside(Kind::Refusal, "a", nothing()));
    records.push(scribe.apart(Kind::Key, nothing()));
    records.push(scribe.step("b"));
    let before = scribe.clone();
    records.push(scribe.step("a"));
    store.commit(&records).expect("they fit");
    store.close().expect("it closes");
    // The lookups are made by now, if they are made at all.
    let Some(store) = subject.reopen() else { return };
    store.close().expect("it closes");
    if !subject.plant(lie) {
        return;
    }
    let Some(mut store) = subject.reopen() else { return };
    check_right_or_error(&*store, &records, lie);
    // Whatever is hidden is not written a second time.
    let mut second = before;
    assert!(store.append(&[second.step("a")]).is_err(), "{lie:?}: a tick that is there");
    assert!(store.append(&[Scribe::default().begin("b")]).is_err(), "{lie:?}: a run that is there");
    let next = scribe.step("a");
    if store.commit(std::slice::from_ref(&next)).is_ok() {
        records.push(next);
    }
    check_right_or_error(&*store, &records, lie);
}
