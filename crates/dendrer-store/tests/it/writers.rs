//! Many writers and readers at once, and a checker that holds what they were told against the log that they left.
//!
//! `DENDRER_DEEP=1` makes it sixty-four writers of two thousand commits each.

use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dendrer_object::record::Entry;
use dendrer_object::{Record, Value};
use dendrer_store::conformance::{Scribe, info, name};
use dendrer_store::faulty::{Crash, Faulty};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, Shared, StoreError, VerifyOptions};
use dendrer_testkit::history::{Attempt, Look, Told, check};

/// How many writers there are, and how many commits each of them gets through.
fn scale() -> (u64, u64) {
    if crate::deep() { (64, 2000) } else { (16, 100) }
}

fn options() -> Options {
    Options { segment_size: 200_000, uncovered_max: 500, ..Options::untagged() }
}

/// Nanoseconds on the one clock that all processes of the machine read.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Commits until it got through often enough: every other writer on the run that they share, the others each on one of
/// its own. Groups are of one to three records.
fn write(store: &mut dyn Store, writer: u64, commits: u64) -> Vec<Attempt> {
    let mut scribe = Scribe::default();
    let own = format!("own-{writer}");
    let mut attempts = Vec::new();
    let shares = writer.is_multiple_of(2);
    if !shares {
        let begin = scribe.begin(&own);
        attempts.push(attempt(store, &[begin]));
    }
    let mut done = 0;
    while done < commits {
        let run = if shares { "shared" } else { &own };
        if shares {
            let head = store.run(&name(run)).unwrap().unwrap().head;
            scribe.set_head(run, head.tick.unwrap(), head.id);
        }
        let group: Vec<Record> = (0..1 + done % 3)
            .map(|n| {
                let content = Value::record([("writer", writer.into()), ("n", (done * 3 + n).into())]);
                scribe.transition(run, content)
            })
            .collect();
        let made = attempt(store, &group);
        done += u64::from(matches!(made.told, Told::Committed(_)));
        assert!(shares || made.told != Told::Nothing);
        attempts.push(made);
    }
    attempts
}

fn attempt(store: &mut dyn Store, group: &[Record]) -> Attempt {
    let begin = now();
    let told = loop {
        match store.commit(group) {
            Ok(at) => break Told::Committed(at),
            Err(StoreError::Stale { found, .. }) => break Told::Stale(found.id),
            // On a busy machine its turn may not come in time; nothing of the group was written then.
            Err(StoreError::Locked { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    };
    Attempt { time: begin..now(), group: group.iter().map(Record::id).collect(), told }
}

/// Follows the log until it is told to stop and has seen the end.
fn follow(path: &Path, done: &AtomicBool) -> Vec<Look> {
    let mut store = Embedded::open(path, Options::read()).unwrap();
    let mut looks = Vec::new();
    loop {
        let stop = done.load(Ordering::Acquire);
        let begin = now();
        let size = store.refresh().unwrap();
        looks.push(Look { time: begin..now(), size });
        assert!(store.trouble().is_none(), "{:?}", store.trouble());
        let newest = store.get(size - 1).unwrap().unwrap();
        assert!(store.find(&newest.id()).unwrap() == Some(size - 1));
        if stop {
            return looks;
        }
    }
}

fn log(store: &dyn Store) -> Vec<Entry> {
    let mut log = Vec::new();
    store
        .entries(0..store.tree().size, &mut |_, entry| {
            log.push(entry);
            ControlFlow::Continue(())
        })
        .unwrap();
    log
}

fn judge(path: &Path, attempts: &[Attempt], readers: &[Vec<Look>]) {
    let store = Embedded::open(path, options()).unwrap();
    let found = check(&log(&store), 1, attempts, readers);
    assert!(found.is_empty(), "{} findings, such as {:#?}", found.len(), &found[..found.len().min(5)]);
    let report = store.verify(&VerifyOptions { index: true, ..VerifyOptions::default() }).unwrap();
    assert_eq!(report.findings, []);
    let lost = attempts.iter().filter(|attempt| matches!(attempt.told, Told::Stale(_))).count();
    let looks: usize = readers.iter().map(Vec::len).sum();
    println!("{} attempts, {lost} of them told that they came too late; {looks} looks", attempts.len());
    println!("deep: writers {} commits", attempts.len() - lost);
    assert!(lost > 0, "nobody ever came too late, so nothing was tried");
}

/// Makes the store in which all writers find the run that they share.
fn new_store(path: &Path) -> Embedded {
    let mut store = Embedded::create(path, info(), options()).unwrap();
    store.commit(&[Scribe::default().begin("shared")]).unwrap();
    store
}

#[test]
fn what_threads_of_one_process_are_told_is_what_happened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Shared::new(Box::new(new_store(&path)));
    let (writers, commits) = scale();
    let done = AtomicBool::new(false);
    let (attempts, looks) = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| follow(&path, &done))).collect();
        let writers: Vec<_> = (0..writers)
            .map(|writer| {
                let mut store = store.clone();
                scope.spawn(move || write(&mut store, writer, commits))
            })
            .collect();
        let attempts: Vec<Attempt> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        done.store(true, Ordering::Release);
        (attempts, readers.into_iter().map(|reader| reader.join().unwrap()).collect::<Vec<_>>())
    });
    AppendLog::close(Box::new(store)).unwrap();
    judge(&path, &attempts, &looks);
}

const CHILD: &str = "DENDRER_TEST_WRITER";

/// Writes as the environment says, and prints what it was told; does nothing as a test of its own.
#[test]
fn child_that_writes() {
    let Ok(what) = std::env::var(CHILD) else { return };
    let (writer, path) = what.split_once(' ').unwrap();
    let mut store = Embedded::open(Path::new(path), options()).unwrap();
    for attempt in write(&mut store, writer.parse().unwrap(), scale().1) {
        println!("attempt {attempt}");
    }
    store.close().unwrap();
}

#[test]
fn what_processes_are_told_is_what_happened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    drop(new_store(&path));
    let children: Vec<_> = (0..scale().0)
        .map(|writer| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "writers::child_that_writes", "--nocapture"])
                .env(CHILD, format!("{writer} {}", path.display()))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let done = AtomicBool::new(false);
    let (attempts, looks) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| follow(&path, &done));
        let mut attempts = Vec::new();
        let mut failed = Vec::new();
        for mut child in children {
            let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
            let told =
                lines.filter_map(|line| Some(line.strip_prefix("attempt ")?.parse::<Attempt>().unwrap()));
            attempts.extend(told);
            failed.extend(Some(child.wait().unwrap()).filter(|status| !status.success()));
        }
        // Whoever follows is told in any case: a test that fails must not go on for ever.
        done.store(true, Ordering::Release);
        assert!(failed.is_empty(), "{failed:?}");
        (attempts, vec![reader.join().unwrap()])
    });
    judge(&path, &attempts, &looks);
}

#[test]
fn groups_that_are_submitted_stand_in_their_order_and_one_that_came_too_late_says_so_when_it_is_settled() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = Shared::new(Box::new(new_store(&path)));
    let mut scribe = Scribe::default();
    let mut all = vec![scribe.begin("r")];
    let mut under_way = vec![store.submit(&all).unwrap()];
    for _ in 0..50 {
        let group = [scribe.step("r"), scribe.step("r")];
        under_way.push(store.submit(&group).unwrap());
        all.extend(group);
    }
    // Behind a head that nothing was committed behind, and then behind that.
    let (tick, id) = scribe.head("r");
    scribe.set_head("r", tick - 1, all[all.len() - 2].id());
    let late = [scribe.step("r")];
    let later = [scribe.step("r")];
    let turned_down = [store.submit(&late).unwrap(), store.submit(&later).unwrap()];
    for submission in under_way {
        store.wait(submission).unwrap();
    }
    for submission in turned_down {
        let error = store.wait(submission).unwrap_err();
        let StoreError::Stale { found, .. } = error else { panic!("{error}") };
        assert_eq!(found.id, id);
    }
    assert_eq!(store.tree().size, 1 + all.len() as u64);
    assert_eq!(
        log(&store)[1..].iter().map(|entry| entry.hash).collect::<Vec<_>>(),
        all.iter().map(Record::id).collect::<Vec<_>>()
    );
    AppendLog::close(Box::new(store)).unwrap();
}

/// Waits until something is so that another thread sees to.
fn until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it never is");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn nobody_who_appends_waits_for_the_sync_of_somebody_else() {
    let disk = Faulty::new();
    let options = Options { disk: Arc::new(disk.clone()), index: false, ..Options::untagged() };
    let mut store = Shared::new(Box::new(Embedded::create(Path::new("/s"), info(), options).unwrap()));
    let mut scribe = Scribe::default();
    let runs = ["a", "b", "c", "d"];
    store.commit(&runs.map(|run| scribe.begin(run))).unwrap();
    for round in 0..3u64 {
        let before = 4 + 5 * round;
        disk.hold_syncs(true);
        let first = store.submit(&[scribe.step("a")]).unwrap();
        until(|| disk.held_syncs() == 1 && store.tree().size == before + 1);
        // Two in the background behind it, and one that a thread waits for, which takes along one in the background.
        let second = [scribe.step("b"), scribe.step("c")].map(|step| store.submit(&[step]).unwrap());
        // The first of the two may be taken alone, by a thread that was not yet idle; then the last one here takes the other.
        until(|| round > 0 || store.tree().size == before + 3);
        let (third, step) = (store.submit(&[scribe.step("a")]).unwrap(), scribe.step("d"));
        let mut other = store.clone();
        let waits = std::thread::spawn(move || other.commit(&[step]).unwrap());
        until(|| store.tree().size == before + 5);
        assert_eq!(disk.held_syncs(), 1, "one at a time");
        assert!(!waits.is_finished(), "nothing is told before it is on disk");
        disk.hold_syncs(false);
        assert_eq!(waits.join().unwrap(), before + 4..before + 5);
        for submission in std::iter::once(first).chain(second).chain([third]) {
            store.wait(submission).unwrap();
        }
    }
    AppendLog::close(Box::new(store)).unwrap();
}

#[test]
fn after_a_sync_that_failed_no_thread_is_told_that_its_group_is_durable() {
    for lasting in [false, true] {
        let disk = Faulty::new();
        let path = Path::new("/work/.dendrer");
        let options = Options { disk: Arc::new(disk.clone()), index: false, ..Options::untagged() };
        let store = Shared::new(Box::new(Embedded::create(path, info(), options.clone()).unwrap()));
        // All have begun before anything fails: a thread may be a long time in starting.
        let begun = Barrier::new(8);
        let told: Vec<(u64, u64)> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..8u64)
                .map(|writer| {
                    let (mut store, disk, begun) = (store.clone(), disk.clone(), &begun);
                    scope.spawn(move || {
                        let mut scribe = Scribe::default();
                        let run = format!("run-{writer}");
                        let mut done = 0;
                        store.commit(&[scribe.begin(&run)]).unwrap();
                        begun.wait();
                        loop {
                            if writer == 0 && done == 20 {
                                disk.fail_syncs(lasting);
                            }
                            let group = [scribe.step(&run)];
                            // Some wait for their group, some have it appended in the background.
                            let committed = match writer % 2 {
                                0 => store.commit(&group).map(drop),
                                _ => store.submit(&group).and_then(|group| store.wait(group)),
                            };
                            match committed {
                                Ok(()) => done += 1,
                                Err(StoreError::SyncFailed { .. } | StoreError::ReadOnly { .. }) => break,
                                Err(error) => panic!("{error}"),
                            }
                        }
                        (writer, done)
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        disk.heal();
        // What was acknowledged survives a power cut that takes everything that was not synced.
        let after = disk.image(disk.moments(), Crash::Everything);
        let store = Embedded::open(path, Options { disk: Arc::new(after), ..options }).unwrap();
        for (writer, done) in told {
            let head = store.run(&name(&format!("run-{writer}"))).unwrap().unwrap().head;
            assert!(head.tick.unwrap() >= done, "run-{writer}: {done} acknowledged, {head}");
        }
    }
}
