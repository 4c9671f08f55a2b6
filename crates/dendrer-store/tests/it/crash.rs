//! Power cuts at every moment of a script, and calls that fail one by one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dendrer_object::record::Kind;
use dendrer_object::{Digest, Pointer, Record, Value};
use dendrer_store::conformance::{Scribe, info, key, noise};
use dendrer_store::disk::{Disk, Open, write_all};
use dendrer_store::faulty::{Crash, DiskFault, Faulty};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Given, NewSecrets, Options, StoreError, VerifyOptions};

use crate::threads;

pub(crate) const DIR: &str = "/work/.dendrer";

pub(crate) fn options(disk: &Faulty) -> Options {
    Options { disk: Arc::new(disk.clone()), index: false, segment_size: 3000, ..Options::untagged() }
}

fn secret() -> String {
    format!("the-secret-{}", noise(1500, 77))
}

fn pointer(text: &str) -> Pointer {
    text.parse().unwrap()
}

/// A store with a run in it, on a disk of its own.
fn begun() -> (Faulty, Embedded, Scribe) {
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    (disk, store, scribe)
}

/// One step of the script.
enum Step {
    Commit(Vec<Record>),
    /// With a value of the vault.
    Put(Vec<Record>),
    /// Destroys the value of a record.
    Destroy(Digest),
    Append(Vec<Record>),
    Sync,
    Sign,
    Erase(Record, u64, Pointer),
}

/// A script that uses everything, and the records that it leaves.
fn script() -> (Vec<Step>, Vec<Record>) {
    let mut scribe = Scribe::default();
    let mut steps = Vec::new();
    let mut all = vec![scribe.begin("r")];
    steps.push(Step::Commit(all.clone()));
    let large = |scribe: &mut Scribe, size: usize| {
        let content = Value::record([
            ("agent_id", Value::from("a")),
            (
                "intent",
                Value::record([("secret", Value::from(secret())), ("keep", Value::from(noise(size, 3)))]),
            ),
        ]);
        scribe.transition("r", content)
    };
    for turn in 0..4 {
        let group = vec![scribe.step("r"), scribe.step("r")];
        all.extend(group.clone());
        steps.push(Step::Commit(group));
        let group = vec![large(&mut scribe, 200 + 700 * turn)];
        all.extend(group.clone());
        steps.push(if turn % 2 == 0 { Step::Put(group) } else { Step::Append(group) });
        let group = vec![scribe.beside(Kind::Refusal, "r", Value::record([("why", Value::from("no"))]))];
        all.extend(group.clone());
        steps.push(Step::Append(group));
        steps.push(Step::Sync);
        if turn % 2 == 1 {
            steps.push(Step::Sign);
        }
    }
    for position in [3, 7] {
        let erase = scribe.beside(Kind::Erase, "r", Value::record([("n", position.into())]));
        all.push(erase.clone());
        steps.push(Step::Erase(erase, position, pointer("/intent/secret")));
    }
    steps.push(Step::Destroy(all[3].id()));
    let group = vec![large(&mut scribe, 900), scribe.step("r")];
    all.extend(group.clone());
    steps.push(Step::Commit(group));
    (steps, all)
}

fn value_of(record: &Record) -> NewSecrets {
    NewSecrets { items: vec![(record.id(), noise(600, 5).into_bytes())], there: Vec::new() }
}

fn perform(store: &mut Embedded, step: &Step) -> Result<(), StoreError> {
    match step {
        Step::Commit(records) => store.commit(records).map(drop),
        Step::Put(records) => {
            store.append_with(records, &[], &value_of(&records[0]))?;
            store.sync().map(drop)
        }
        Step::Destroy(name) => store.remove_secrets(&[*name], Given::default()).map(drop),
        Step::Append(records) => store.append(records).map(drop),
        Step::Sync => store.sync().map(drop),
        Step::Sign => store.sign_checkpoint(&key()).map(drop),
        Step::Erase(record, position, place) => {
            store.erase(record, &[(*position, vec![place.clone()])]).map(drop)
        }
    }
}

const ERASED: u64 = 1 << 32;

/// Runs the script on a disk; marks acknowledged sizes and erasures.
fn record_script(disk: &Faulty, steps: &[Step]) {
    let mut store = Embedded::create(Path::new(DIR), info(), options(disk)).unwrap();
    disk.mark(0);
    for step in steps {
        perform(&mut store, step).unwrap();
        if let Step::Erase(_, position, _) = step {
            disk.mark(ERASED + position);
        }
        if !matches!(step, Step::Append(_)) {
            disk.mark(store.tree().size);
        }
    }
}

/// Checks that a store holds a begin of the script, with at least what was acknowledged.
fn check_begin(store: &Embedded, all: &[Record], marks: &[u64], context: &dyn Fn() -> String) {
    let acknowledged = marks.iter().filter(|mark| **mark < ERASED).max().copied().unwrap_or(0);
    let erased: BTreeSet<u64> = marks.iter().filter_map(|mark| mark.checked_sub(ERASED)).collect();
    let size = store.tree().size;
    assert!(size >= acknowledged, "{} of {acknowledged} records {}", size, context());
    assert!(size <= all.len() as u64, "{}", context());
    for position in 0..size {
        let read = store.get(position).unwrap_or_else(|error| panic!("{error} {}", context())).unwrap();
        let whole = &all[position as usize];
        let place = pointer("/intent/secret");
        // A value is there with its record; only one was destroyed, or is about to be.
        let value = store.get_secret(&whole.id()).unwrap();
        let is_put = [3, 11].contains(&position) && whole.body().value("/intent/keep").is_some();
        let is_whole = value.as_ref() == is_put.then(|| value_of(whole).items.remove(0).1).as_ref();
        assert!(is_whole || is_put && position == 3, "at {position} {}", context());
        if erased.contains(&position) {
            assert_eq!(read, whole.without(&[place]), "erased at {position} {}", context());
        } else {
            assert!(read == *whole || read == whole.without(&[place]), "at {position} {}", context());
        }
    }
}

fn check_verifies(store: &Embedded, context: &dyn Fn() -> String) {
    assert!(store.trouble().is_none(), "{:?} {}", store.trouble(), context());
    let report = store.verify(&VerifyOptions::default()).unwrap();
    assert_eq!(report.findings, [], "{}", context());
    assert!(report.root_checked && !report.unfinished, "{}", context());
    assert_eq!((report.tree, report.records), (store.tree(), store.tree().size), "{}", context());
}

/// Checks what a crash at a moment leaves. Returns whether there was a store already.
pub(crate) fn check_crash(disk: &Faulty, moment: usize, crash: Crash, all: &[Record]) -> bool {
    let image = disk.image(moment, crash);
    let marks = disk.marks(moment);
    let context = || format!("after {moment} {crash:?}");
    // First as a reader, who changes nothing.
    let before = image.files();
    let read = Options { write: false, ..options(&image) };
    match Embedded::open(Path::new(DIR), read) {
        Ok(store) => {
            check_begin(&store, all, &marks, &context);
            assert!(store.trouble().is_none(), "{:?} {}", store.trouble(), context());
            let report = store.verify(&VerifyOptions::default()).unwrap();
            assert_eq!(report.findings, [], "{}", context());
            assert_eq!((report.tree, report.records), (store.tree(), store.tree().size), "{}", context());
        }
        Err(StoreError::NotAStore { .. }) if marks.is_empty() => {
            Embedded::create(Path::new(DIR), info(), options(&image)).unwrap();
            return false;
        }
        Err(error) => panic!("{error} {}", context()),
    }
    assert_eq!(image.files(), before, "a reader changes nothing {}", context());
    let mut store = Embedded::open(Path::new(DIR), options(&image)).unwrap();
    check_begin(&store, all, &marks, &context);
    check_verifies(&store, &context);
    // Then it goes on, and what it writes survives the next power cut.
    let size = store.tree().size;
    let rest = &all[size as usize..];
    for record in rest {
        store.append(std::slice::from_ref(record)).unwrap_or_else(|error| panic!("{error} {}", context()));
    }
    store.sync().unwrap();
    drop(store);
    let again = image.image(image.moments(), Crash::Everything);
    let store = Embedded::open(Path::new(DIR), options(&again)).unwrap();
    assert_eq!(store.tree().size, all.len() as u64, "{}", context());
    check_verifies(&store, &context);
    true
}

pub(crate) fn seeds() -> u64 {
    std::env::var("DENDRER_CRASH_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(12)
}

#[test]
fn what_was_acknowledged_survives_a_crash_at_every_moment() {
    let (steps, all) = script();
    let disk = Faulty::new();
    record_script(&disk, &steps);
    let next = AtomicUsize::new(0);
    let tried = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                loop {
                    let moment = next.fetch_add(1, Ordering::Relaxed);
                    if moment > disk.moments() {
                        return;
                    }
                    let mut crashes = vec![Crash::Process, Crash::Everything];
                    crashes.extend((0..seeds()).map(|seed| Crash::Random(seed * 1_000_003 + moment as u64)));
                    for crash in crashes {
                        check_crash(&disk, moment, crash, &all);
                        tried.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let tried = tried.into_inner();
    println!("deep: power-loss {tried} crashes at {} moments, seeds 0 to {} each", disk.moments(), seeds());
}

#[test]
fn a_store_whose_maker_was_killed_keeps_what_others_commit() {
    let disk = Faulty::new();
    Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
    let mut opened = 0;
    for moment in 0..=disk.moments() {
        let disk = disk.killed(moment);
        let Ok(mut store) = Embedded::open(Path::new(DIR), options(&disk)) else { continue };
        opened += 1;
        store.commit(&[Scribe::default().begin("r")]).unwrap();
        let image = disk.image(disk.moments(), Crash::Everything);
        let store = Embedded::open(Path::new(DIR), options(&image));
        let store = store.unwrap_or_else(|error| panic!("killed at {moment}: {error}"));
        assert_eq!(store.tree().size, 1, "killed at {moment}");
    }
    assert!(opened > 1, "{opened}");
}

/// A handle that knows all of the log to be on disk finds the begin of the next segment, whose maker was killed in the
/// middle of its first group. That there was nothing to sync says nothing of the name of that segment.
#[test]
fn the_name_of_a_segment_that_somebody_else_began_is_synced() {
    for erases in [false, true] {
        let disk = Faulty::new();
        let mut scribe = Scribe::default();
        let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
        let mut all = vec![scribe.begin("a"), scribe.begin("b")];
        store.commit(&all).unwrap();
        let segment = |n: u32| Path::new(DIR).join(format!("segments/{n:08}.seg"));
        while disk.files()[&segment(0)].len() <= 3000 {
            all.push(scribe.step("a"));
            store.commit(&all[all.len() - 1..]).unwrap();
        }
        let step = scribe.step("b");
        let other = disk.killed(disk.moments());
        Embedded::open(Path::new(DIR), options(&other)).unwrap().append(std::slice::from_ref(&step)).unwrap();
        let begun = other.files()[&segment(1)].clone();
        let file = disk.open(&segment(1), Open::Create).unwrap();
        write_all(&*file, &begun[..begun.len() / 2], 0).unwrap();
        let acknowledged = if erases {
            let erase = scribe.beside(Kind::Erase, "a", Value::record([("n", 1u64.into())]));
            let whole = store.get(2).unwrap().unwrap();
            let places = whole.body().fields().iter().map(|field| field.pointer.clone()).collect();
            store.erase(&erase, &[(2, places)]).unwrap() + 1
        } else {
            store.refresh().unwrap();
            store.sync().unwrap();
            store.commit(&[step]).unwrap().end
        };
        let image = disk.image(disk.moments(), Crash::Everything);
        let left = Embedded::open(Path::new(DIR), options(&image)).unwrap();
        assert_eq!(left.tree().size, acknowledged, "erases: {erases}");
        check_verifies(&left, &|| format!("erases: {erases}"));
    }
}

#[test]
fn erased_bytes_are_on_no_disk_once_the_erasure_is_acknowledged() {
    let (steps, _) = script();
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
    let secret = secret();
    let first = &secret.as_bytes()[..40];
    let holds = |disk: &Faulty| {
        let files = disk.files();
        files.values().any(|content| content.windows(first.len()).any(|window| window == first))
    };
    for step in &steps {
        perform(&mut store, step).unwrap();
    }
    assert!(holds(&disk), "other records have the same secret");
    let erase = Scribe::default().apart(Kind::Erase, Value::record([("all", Value::Null)]));
    let all: Vec<_> =
        (0..store.tree().size).map(|position| (position, vec![pointer("/intent/secret")])).collect();
    store.erase(&erase, &all).unwrap();
    for crash in [Crash::Process, Crash::Everything] {
        assert!(!holds(&disk.image(disk.moments(), crash)), "{crash:?}");
    }
    check_verifies(&store, &String::new);
}

/// Performs the script although calls fail: after an error the store is opened again where it must be, and a step
/// whose records are not there is repeated.
fn perform_with_faults(disk: &Faulty, steps: &[Step], all: &[Record], context: &dyn Fn() -> String) {
    let path = Path::new(DIR);
    let open = || -> Embedded {
        for _ in 0..3 {
            match Embedded::open(path, options(disk)) {
                Ok(store) => return store,
                Err(StoreError::NotAStore { .. }) => {}
                Err(_) => continue,
            }
            match Embedded::create(path, info(), options(disk)) {
                Ok(store) => return store,
                Err(_) => continue,
            }
        }
        disk.heal();
        match Embedded::open(path, options(disk)) {
            Ok(store) => store,
            Err(StoreError::NotAStore { .. }) => Embedded::create(path, info(), options(disk)).unwrap(),
            Err(error) => panic!("{error:?} {}", context()),
        }
    };
    let mut store = open();
    for step in steps {
        let mut tries = 0;
        while let Err(error) = perform(&mut store, step) {
            tries += 1;
            if tries > 2 {
                // A lasting fault ends some day: space is freed.
                disk.heal();
            }
            assert!(tries < 6, "{error} {}", context());
            if store.trouble().is_some() {
                drop(store);
                store = open();
            }
            // What failed at the sync may be there all the same.
            let records = match step {
                Step::Commit(records) | Step::Put(records) | Step::Append(records) => records.as_slice(),
                Step::Erase(record, ..) => std::slice::from_ref(record),
                Step::Sync | Step::Sign | Step::Destroy(_) => continue,
            };
            if store.refresh().is_ok() && store.find(&records[0].id()).is_ok_and(|found| found.is_some()) {
                while store.sync().is_err() {
                    drop(store);
                    disk.heal();
                    store = open();
                }
                break;
            }
        }
    }
    disk.heal();
    drop(store);
    let store = Embedded::open(path, options(disk)).unwrap();
    assert_eq!(store.tree().size, all.len() as u64, "{}", context());
    check_begin(&store, all, &[], context);
    check_verifies(&store, context);
    // All of it was acknowledged.
    let after = disk.image(disk.moments(), Crash::Everything);
    let store = Embedded::open(path, options(&after)).unwrap();
    assert_eq!(store.tree().size, all.len() as u64, "{}", context());
    check_verifies(&store, context);
}

#[test]
fn a_store_goes_on_after_any_call_failed() {
    let (steps, all) = script();
    let mut points = 0;
    let faults = [
        (DiskFault::Error(std::io::ErrorKind::StorageFull), false),
        (DiskFault::Error(std::io::ErrorKind::StorageFull), true),
        (DiskFault::Error(std::io::ErrorKind::Other), false),
        (DiskFault::Error(std::io::ErrorKind::Other), true),
        (DiskFault::Error(std::io::ErrorKind::Interrupted), false),
        (DiskFault::Short, false),
        (DiskFault::Torn, false),
        (DiskFault::Torn, true),
    ];
    for (fault, lasting) in faults {
        for call in 0.. {
            let disk = Faulty::new();
            disk.fail(call, fault, lasting);
            let context = || format!("with {fault:?} {lasting} at call {call}");
            perform_with_faults(&disk, &steps, &all, &context);
            points += 1;
            if disk.is_pending() || never_reached(&disk, call) {
                break;
            }
        }
    }
    println!("{points} failing calls");
}

/// The script makes fewer calls than this one.
fn never_reached(disk: &Faulty, call: u64) -> bool {
    disk.calls() < call
}

#[test]
fn a_full_disk_leaves_the_handle_usable() {
    let (disk, mut store, mut scribe) = begun();
    let step = scribe.step("r");
    disk.fail(0, DiskFault::Torn, true);
    for _ in 0..3 {
        // The lock cannot be taken either at first; what counts is that nothing breaks.
        assert!(store.commit(std::slice::from_ref(&step)).is_err());
    }
    disk.heal();
    store.refresh().unwrap();
    if let Some(trouble) = store.trouble() {
        assert!(matches!(&*trouble, StoreError::SyncFailed { .. }), "{trouble:?}");
    }
}

#[test]
fn only_the_write_fails_when_the_disk_is_full_and_the_handle_goes_on() {
    let (steps, all) = script();
    // Which calls are writes of segments shows in the code of the error.
    let mut full = 0;
    for call in 0..400 {
        let disk = Faulty::new();
        let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
        disk.fail(call, DiskFault::Error(std::io::ErrorKind::StorageFull), false);
        for step in &steps {
            if let Err(error) = perform(&mut store, step) {
                if !matches!(error, StoreError::DiskFull { .. }) || store.trouble().is_some() {
                    break;
                }
                full += 1;
                perform(&mut store, step).unwrap_or_else(|error| panic!("{error} at call {call}"));
            }
        }
        disk.heal();
        if store.trouble().is_none() && store.tree().size == all.len() as u64 {
            check_begin(&store, &all, &[], &|| format!("call {call}"));
        }
    }
    assert!(full > 10, "{full}");
}

#[test]
fn a_failed_sync_makes_the_handle_read_only_for_good() {
    let (disk, mut store, mut scribe) = begun();
    let step = scribe.step("r");
    store.append(std::slice::from_ref(&step)).unwrap();
    disk.fail(0, DiskFault::Error(std::io::ErrorKind::Other), false);
    let error = store.sync().unwrap_err();
    assert_eq!(error.code(), "E0805");
    disk.heal();
    for error in [store.sync().unwrap_err(), store.append(&[scribe.step("r")]).unwrap_err()] {
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
        assert_eq!(error.code(), "E0805");
    }
    assert_eq!(store.get(0).unwrap().unwrap().header().kind, Kind::Run, "it still reads");
    let ticket = Embedded::open(Path::new(DIR), options(&disk)).unwrap().submit(&[]);
    assert!(ticket.is_ok(), "another handle starts anew");
}

/// What cuts an unfinished end syncs the file, and learns for all that stands in it that this failed.
#[test]
fn a_cut_that_could_not_be_synced_makes_the_handle_read_only() {
    let (disk, mut store, mut scribe) = begun();
    let segment = Path::new(DIR).join("segments/00000000.seg");
    let len = disk.files()[&segment].len() as u64;
    let file = disk.open(&segment, Open::Write).unwrap();
    write_all(&*file, &[1, 0, 0], len).unwrap();
    disk.fail_syncs(false);
    let step = scribe.step("r");
    assert_eq!(store.append(std::slice::from_ref(&step)).unwrap_err().code(), "E0805");
    assert!(matches!(store.append(&[step]).unwrap_err(), StoreError::ReadOnly { .. }));
}

#[test]
fn a_failed_sync_that_nobody_waited_for_is_not_forgotten() {
    let (disk, mut store, mut scribe) = begun();
    store.append(&[scribe.step("r")]).unwrap();
    disk.fail_syncs(false);
    drop(store.submit(&[scribe.step("r")]).unwrap());
    // The system would say yes to this one, although what it failed to write before is gone.
    let error = store.sync().unwrap_err();
    assert!(matches!(error, StoreError::SyncFailed { .. }), "{error}");
    assert!(store.commit(&[scribe.step("r")]).is_err());
}
