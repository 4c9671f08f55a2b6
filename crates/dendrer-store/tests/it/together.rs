//! Several handles at once: rival writers, readers that follow, processes that fork.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dendrer_object::record::Kind;
use dendrer_object::{Pointer, Record, Value};
use dendrer_store::conformance::{Scribe, info, name, noise};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, StoreError, VerifyOptions};

fn open(path: &Path, options: Options) -> Embedded {
    Embedded::open(path, options).unwrap()
}

#[test]
fn rival_writers_on_one_run_take_turns_and_losers_are_told() {
    const WRITERS: u64 = 4;
    const EACH: u64 = 60;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let options = Options { uncovered_max: 50, segment_size: 20_000, ..Options::untagged() };
    let mut store = Embedded::create(&path, info(), options.clone()).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("shared")]).unwrap();
    let stale = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (path, options, stale) = (&path, options.clone(), &stale);
            scope.spawn(move || {
                let mut store = open(path, options);
                let mut scribe = Scribe::default();
                let own = format!("own-{writer}");
                store.commit(&[scribe.begin(&own)]).unwrap();
                let mut done = 0;
                while done < EACH {
                    let head = store.run(&name("shared")).unwrap().unwrap().head;
                    scribe.set_head("shared", head.tick.unwrap(), head.id);
                    let content = Value::record([("writer", writer.into()), ("n", done.into())]);
                    let mine = scribe.step(&own);
                    let shared = scribe.transition("shared", content);
                    match store.commit(&[mine.clone(), shared]) {
                        Ok(_) => done += 1,
                        Err(StoreError::Stale { run, found, .. }) => {
                            assert_eq!(run, name("shared"));
                            assert_ne!(found, head);
                            stale.fetch_add(1, Ordering::Relaxed);
                            // Nothing of the group was written, so the run of our own did not move either.
                            let tick = mine.header().tick.unwrap() - 1;
                            scribe.set_head(&own, tick, mine.header().prev.unwrap());
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    store.refresh().unwrap();
    assert_eq!(store.tree().size, 1 + WRITERS + 2 * WRITERS * EACH);
    let mut seen = vec![0; WRITERS as usize];
    for (tick, position) in store.positions(&name("shared"), 1..=u64::MAX, 10_000).unwrap() {
        let record = store.get(position).unwrap().unwrap();
        assert_eq!(record.header().tick, Some(tick));
        let number = |place: &str| record.body().value(place).unwrap().as_u64().unwrap();
        assert_eq!(number("/n"), seen[number("/writer") as usize], "each writer's records are in its order");
        seen[number("/writer") as usize] += 1;
    }
    assert_eq!(seen, vec![EACH; WRITERS as usize]);
    let report = store.verify(&VerifyOptions { index: true, ..VerifyOptions::default() }).unwrap();
    assert_eq!(report.findings, []);
    println!("{} were told that they came too late", stale.load(Ordering::Relaxed));
}

#[test]
fn a_reader_follows_a_writer_and_never_sees_half_a_group() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let options = Options { segment_size: 30_000, uncovered_max: 100, ..Options::untagged() };
    let mut store = Embedded::create(&path, info(), options).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut store = open(&path, Options::read());
            let mut refreshed = 0;
            while !done.load(Ordering::Relaxed) || store.tree().size < 1 + 3 * 400 {
                let size = store.refresh().unwrap();
                assert_eq!((size - 1) % 3, 0, "groups are of three");
                assert!(store.trouble().is_none(), "{:?}", store.trouble());
                let run = store.run(&name("r")).unwrap().unwrap();
                assert_eq!(run.head.tick, Some(size - 1));
                let newest = store.get(size - 1).unwrap().unwrap();
                assert_eq!(newest.id(), run.head.id);
                refreshed += 1;
            }
            refreshed
        });
        for _ in 0..400 {
            let group: Vec<Record> = (0..3).map(|_| scribe.step("r")).collect();
            store.append(&group).unwrap();
        }
        store.sync().unwrap();
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn a_reader_that_has_not_refreshed_reads_what_an_erasure_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
    let mut scribe = Scribe::default();
    let large = || Value::record([("intent", Value::record([("text", Value::from(noise(4000, 1)))]))]);
    let mut records = vec![scribe.begin("r"), scribe.transition("r", large()), scribe.step("r")];
    store.commit(&records).unwrap();
    let reader = open(&path, Options::read());
    let erase = scribe.beside(Kind::Erase, "r", Value::object());
    let places: Vec<Pointer> = vec!["/intent".parse().unwrap()];
    store.erase(&erase, &[(1, places.clone()), (2, places.clone())]).unwrap();
    for record in &mut records[1..] {
        *record = record.without(&places);
    }
    assert_eq!(reader.tree().size, 3);
    dendrer_store::conformance::check_holds(&reader, &records);
}

#[test]
fn an_append_waits_no_longer_than_it_was_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
    let lock = std::fs::OpenOptions::new().write(true).open(path.join("lock")).unwrap();
    lock.lock().unwrap();
    drop(store);
    store = open(&path, Options { lock_wait: Duration::from_millis(20), ..Options::untagged() });
    let mut scribe = Scribe::default();
    let begin = scribe.begin("r");
    let error = store.commit(std::slice::from_ref(&begin)).unwrap_err();
    assert_eq!(error.code(), "E0802");
    assert!(open(&path, Options::read()).refresh().is_ok(), "readers need no lock");
    drop(lock);
    store.commit(&[begin]).unwrap();
}

/// The bytes of a commit frame (`docs/format-disk.md`).
const COMMIT_SIZE: usize = 109;

#[test]
fn what_others_began_and_did_not_finish_is_cut_by_the_next_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
    let mut other = open(&path, Options::untagged());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    store.commit(&records).unwrap();
    let segment = path.join("segments/00000000.seg");
    let whole = std::fs::read(&segment).unwrap();
    let step = scribe.step("r");
    store.commit(std::slice::from_ref(&step)).unwrap();
    let longer = std::fs::read(&segment).unwrap();
    drop(store);
    for cut in [1, 100, longer.len() - whole.len() - 1] {
        std::fs::write(&segment, &longer[..longer.len() - cut]).unwrap();
        let mut reader = open(&path, Options::read());
        assert_eq!(reader.refresh().unwrap(), 1);
        assert_eq!(std::fs::read(&segment).unwrap().len(), longer.len() - cut, "a reader cuts nothing");
        std::fs::write(&segment, &longer[..longer.len() - cut]).unwrap();
    }
    other.commit(std::slice::from_ref(&step)).unwrap();
    records.push(step);
    dendrer_store::conformance::check_holds(&other, &records);
    // Only the commit differs: this writer does not know how much of what it found is on disk.
    let again = std::fs::read(&segment).unwrap();
    assert_eq!(again.len(), longer.len());
    assert_eq!(again[..longer.len() - COMMIT_SIZE], longer[..longer.len() - COMMIT_SIZE]);
}

const CHILD: &str = "DENDRER_TEST_CHILD";

/// Appends to the run of its own that the environment names; does nothing as a test of its own.
#[test]
fn child_that_appends() {
    let Ok(what) = std::env::var(CHILD) else { return };
    let (path, run) = what.split_once(' ').unwrap();
    let mut store = open(Path::new(path), Options { uncovered_max: 30, ..Options::untagged() });
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin(run)]).unwrap();
    for _ in 0..50 {
        store.commit(&[scribe.step(run), scribe.step(run)]).unwrap();
    }
    store.close().unwrap();
}

#[test]
fn processes_of_their_own_append_in_turns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store =
        Embedded::create(&path, info(), Options { segment_size: 20_000, ..Options::untagged() }).unwrap();
    let children: Vec<_> = (0..4)
        .map(|number| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "together::child_that_appends"])
                .env(CHILD, format!("{} run-{number}", path.display()))
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(store.refresh().unwrap(), 4 * 101);
    for number in 0..4 {
        let run = store.run(&name(&format!("run-{number}"))).unwrap().unwrap();
        assert_eq!((run.transitions, run.head.tick), (100, Some(100)));
    }
    let report = store.verify(&VerifyOptions { index: true, ..VerifyOptions::default() }).unwrap();
    assert_eq!(report.findings, []);
}
