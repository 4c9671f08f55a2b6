//! The queue of commits and its syncs, in orders of threads that a scheduler draws (`shuttle`). A line is acknowledged only when
//! it would outlive a power loss, and no line is lost or there twice.
//!
//! `cargo test -p dendrer-store --features schedules,conformance,faulty --test schedules`; `DENDRER_DEEP=1` draws 50 times as many.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dendrer_object::record::Entry;
use dendrer_object::{Digest, Record, Value};
use dendrer_store::conformance::{Scribe, info, name};
use dendrer_store::faulty::{Crash, Faulty};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, Shared, StoreError};
use shuttle::thread;

const DIR: &str = "/store";

fn options(disk: &Faulty) -> Options {
    // The index is another thread's work, and that thread is not the scheduler's.
    Options { disk: Arc::new(disk.clone()), index: false, ..Options::untagged() }
}

fn orders() -> usize {
    if std::env::var_os("DENDRER_DEEP").is_some() { 100_000 } else { 2_000 }
}

/// How often each id is in a log.
fn counts(store: &Embedded) -> BTreeMap<Digest, usize> {
    let mut counts = BTreeMap::new();
    store
        .entries(0..store.tree().size, &mut |_, entry: Entry| {
            *counts.entry(entry.hash).or_default() += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    counts
}

/// Whether a power loss now would leave all of these records.
fn would_survive(disk: &Faulty, records: &[Record]) -> bool {
    let after = disk.image(disk.moments(), Crash::Everything);
    let store = Embedded::open(Path::new(DIR), options(&after)).unwrap();
    records.iter().all(|record| store.find(&record.id()).unwrap().is_some())
}

/// How a writer hands over a group.
#[derive(Clone, Copy)]
enum By {
    Commit,
    Submit,
}

/// Writes groups of one run, and returns those that were acknowledged and those of which a failed sync was reported.
fn write(
    disk: &Faulty,
    store: &mut Shared,
    run: &str,
    groups: &[usize],
    by: By,
) -> (Vec<Record>, Vec<Record>) {
    let mut scribe = Scribe::default();
    let (mut kept, mut failed) = (Vec::new(), Vec::new());
    let begin = scribe.begin(run);
    let mut submitted = Vec::new();
    for (number, lines) in groups.iter().enumerate() {
        let mut group = if number == 0 { vec![begin.clone()] } else { Vec::new() };
        group.extend((0..*lines).map(|line| {
            scribe.transition(
                run,
                Value::record([("group", (number as u64).into()), ("line", (line as u64).into())]),
            )
        }));
        match by {
            By::Commit => take(disk, store.commit(&group).map(drop), group, &mut kept, &mut failed),
            By::Submit => submitted.push((store.submit(&group).unwrap(), group)),
        }
    }
    for (ticket, group) in submitted {
        take(disk, store.wait(ticket).map(drop), group, &mut kept, &mut failed);
    }
    (kept, failed)
}

fn take(
    disk: &Faulty,
    told: Result<(), StoreError>,
    group: Vec<Record>,
    kept: &mut Vec<Record>,
    failed: &mut Vec<Record>,
) {
    match told {
        Ok(()) => {
            assert!(would_survive(disk, &group), "acknowledged before its sync");
            kept.extend(group);
        }
        Err(_) => failed.extend(group),
    }
}

/// Three writers of one handle, two of which wait for each group; the syncs fail from some moment on, or never.
fn race(fails: bool) {
    let disk = Faulty::new();
    let store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
    let mut store = Shared::new(Box::new(store));
    let writers = [("a", By::Commit), ("b", By::Submit), ("c", By::Commit)];
    let threads: Vec<_> = writers
        .into_iter()
        .map(|(run, by)| {
            let (disk, mut store) = (disk.clone(), store.clone());
            thread::spawn(move || write(&disk, &mut store, run, &[1, 2], by))
        })
        .collect();
    if fails {
        let disk = disk.clone();
        thread::spawn(move || {
            thread::yield_now();
            disk.fail_syncs(true);
        });
    }
    let told: Vec<(Vec<Record>, Vec<Record>)> =
        threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let kept: Vec<&Record> = told.iter().flat_map(|(kept, _)| kept).collect();
    let failed = told.iter().map(|(_, failed)| failed.len()).sum::<usize>();
    assert!(fails || (failed == 0 && kept.len() == 12), "{} kept, {failed} failed", kept.len());
    assert!(store.refresh().is_ok() || fails);
    drop(store);

    disk.heal();
    let found = counts(&Embedded::open(Path::new(DIR), options(&disk)).unwrap());
    assert!(kept.iter().all(|record| found.get(&record.id()) == Some(&1)), "an acknowledged line is lost");
    assert!(found.values().all(|count| *count == 1), "a line is there twice");
    assert!(fails || found.len() == 12);
    if !fails {
        let store = Embedded::open(Path::new(DIR), options(&disk)).unwrap();
        for (run, _) in writers {
            assert_eq!(store.run(&name(run)).unwrap().unwrap().head.tick, Some(3));
        }
    }
}

#[test]
fn no_line_is_lost_doubled_or_acknowledged_before_its_sync() {
    shuttle::check_random(|| race(false), orders());
    shuttle::check_pct(|| race(false), orders() / 2, 3);
}

#[test]
fn a_failed_sync_is_reported_to_each_line_that_it_covers() {
    shuttle::check_random(|| race(true), orders());
    shuttle::check_pct(|| race(true), orders() / 2, 3);
}
