//! Recording and reading while another program has `index.sqlite` locked.

use std::time::{Duration, Instant};

use crate::keep::commit;
use crate::support::{Place, Ran};

/// Locks the index of a store as a database browser does with an edit that is not saved.
fn lock(place: &Place, how: &str) -> rusqlite::Connection {
    let db = rusqlite::Connection::open(place.path().join(".dendrer/index.sqlite")).unwrap();
    db.execute_batch(how).unwrap();
    db
}

/// A store with an index that covers all of its log, and with two forks of its run.
fn indexed() -> Place {
    let place = Place::with_store();
    commit(&place, "r", 1_500, 0);
    place.ok(&["fork", "r@20", "--as", "a", "--set", "x=1"]);
    place.ok(&["fork", "r@20", "--as", "b", "--set", "y=1"]);
    place
}

fn timed(place: &Place, args: &[&str], input: &[u8]) -> (Ran, Duration) {
    let begin = Instant::now();
    let ran = place.run_with(args, input);
    (ran, begin.elapsed())
}

fn lines(count: u64) -> Vec<u8> {
    let line = |n| {
        format!("{{\"type\":\"plan.update\",\"delta\":[{{\"set\":\"/n\",\"value\":{n}}}]}}\n").into_bytes()
    };
    (0..count).flat_map(line).collect()
}

const EDIT: &str = "BEGIN IMMEDIATE";
const EXCLUSIVE: &str = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; UPDATE meta SET value = value";

#[test]
fn a_thousand_lines_are_acknowledged_as_fast_while_the_index_is_locked() {
    for how in [EDIT, EXCLUSIVE] {
        let place = indexed();
        let input = lines(1_000);
        let record = |run: &str| {
            let (ran, took) = timed(&place, &["commit", "--run", run], &input);
            assert_eq!((ran.code, ran.stdout.lines().count()), (0, 1_001), "{}", ran.stderr);
            (ran, took)
        };
        let free = (0..3).map(|n| record(&format!("free-{n}")).1).min().unwrap();
        let db = lock(&place, how);
        let mut locked = Duration::MAX;
        for n in 0..3 {
            let (ran, took) = record(&format!("locked-{n}"));
            assert!(ran.stderr.contains("another program has index.sqlite locked"), "{}", ran.stderr);
            locked = locked.min(took);
        }
        // A handle that cannot read the index reads the log once more, 50 ms later.
        assert!(locked <= free * 3 / 2 + Duration::from_millis(100), "{how}: {locked:?}, without {free:?}");
        let doctor = place.run(&["doctor"]).stdout;
        assert!(doctor.contains("another program") && doctor.contains("locked"), "{doctor}");
        drop(db);
        let ran = record("after").0;
        assert_eq!(ran.stderr, "1,000 transitions, 0 refused, 0 anomalies\n");
        let doctor = place.run(&["doctor"]).stdout;
        let index = doctor.lines().find(|line| line.contains(" index ")).unwrap();
        assert!(index.starts_with("ok ") && index.contains("covers"), "{index}");
    }
}

#[test]
fn every_command_records_and_reads_at_once_while_the_index_is_locked() {
    let place = indexed();
    std::fs::write(
        place.path().join("chat.json"),
        r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]"#,
    )
    .unwrap();
    let db = lock(&place, EDIT);
    let commands: &[&[&str]] = &[
        &["import", "chat.json", "--run", "chat"],
        &["fork", "r@10", "--as", "c", "--set", "z=1"],
        &["fork", "r@10", "--replay-rest", "--as", "d"],
        &["merge", "--as", "m", "--from", "a", "--from", "b"],
        &["rebase", "a", "--onto", "b"],
        &["cherrypick", "r@5", "--into", "a"],
        &["note", "r@3", "seen"],
        &["label", "good", "r@3"],
        &["runs"],
        &["log", "r"],
        &["state", "r@700"],
        &["bisect", "r", "--holds", "state.slots.s3 != 'x'"],
        &["verify", "r"],
    ];
    for args in commands {
        let (ran, took) = timed(&place, args, b"");
        assert!(took < Duration::from_secs(5), "{args:?}: {took:?}\n{}", ran.stderr);
        assert!(!ran.stderr.contains("E0802"), "{args:?}: {}", ran.stderr);
    }
    drop(db);
    let runs = place.ok(&["runs"]);
    for run in ["chat", "c", "d", "m"] {
        assert!(runs.lines().any(|line| line.split(' ').next() == Some(run)), "{run}: {runs}");
    }
}
