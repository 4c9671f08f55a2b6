//! The derived index: built, followed, lost, corrupt, ahead of the log; and what erasures leave in it.

use std::path::{Path, PathBuf};

use dendrer_object::record::Kind;
use dendrer_object::{Code, Digest, Pointer, Record, Value};
use dendrer_store::conformance::{Scribe, check_holds, info, key, name, noise};
use dendrer_store::embedded::Leftover;
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, Slot, StoreError, VerifyOptions};

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Dir {
        Dir(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join(".dendrer")
    }

    fn index(&self) -> PathBuf {
        self.path().join("index.sqlite")
    }

    fn create(&self) -> Embedded {
        Embedded::create(&self.path(), info(), Options::untagged()).unwrap()
    }

    fn open(&self) -> Embedded {
        Embedded::open(&self.path(), Options::untagged()).unwrap()
    }

    fn read(&self) -> Embedded {
        Embedded::open(&self.path(), Options::read()).unwrap()
    }
}

fn pointer(text: &str) -> Pointer {
    text.parse().unwrap()
}

fn everything() -> VerifyOptions {
    VerifyOptions { index: true, ..VerifyOptions::default() }
}

/// A store with some runs in it.
fn filled(dir: &Dir, steps: usize) -> (Embedded, Scribe, Vec<Record>) {
    let mut store = dir.create();
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("a"), scribe.begin("b")];
    for step in 0..steps {
        records.push(scribe.step(if step % 3 == 0 { "b" } else { "a" }));
        if step % 7 == 0 {
            records.push(scribe.beside(Kind::Refusal, "a", Value::record([("n", (step as u64).into())])));
        }
    }
    for group in records.chunks(10) {
        store.append(group).unwrap();
    }
    store.sync().unwrap();
    (store, scribe, records)
}

fn check_verifies(store: &Embedded) {
    let report = store.verify(&everything()).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn an_index_is_made_at_close_when_much_is_uncovered_and_used_at_the_next_opening() {
    let dir = Dir::new();
    let (store, mut scribe, mut records) = filled(&dir, 1200);
    assert!(store.index_status().is_err());
    store.close().unwrap();
    let mut store = dir.open();
    assert_eq!(store.index_status(), Ok(records.len() as u64));
    let more: Vec<Record> = (0..20).map(|_| scribe.step("a")).collect();
    store.commit(&more).unwrap();
    records.extend(more);
    check_holds(&store, &records);
    check_verifies(&store);
    store.close().unwrap();
    let reader = dir.read();
    assert_eq!(reader.index_status(), Ok(records.len() as u64 - 20));
    check_holds(&reader, &records);
    check_verifies(&reader);
}

#[test]
fn a_deleted_index_changes_nothing_but_time() {
    let dir = Dir::new();
    let (mut store, _, records) = filled(&dir, 300);
    store.update_index().unwrap();
    drop(store);
    std::fs::remove_file(dir.index()).unwrap();
    let store = dir.open();
    assert!(store.index_status().is_err() && store.trouble().is_none());
    check_holds(&store, &records);
    drop(store);
    let mut store = dir.open();
    store.update_index().unwrap();
    assert_eq!(store.index_status(), Ok(records.len() as u64));
    check_holds(&store, &records);
}

#[test]
fn a_corrupt_index_is_left_aside_and_made_again() {
    for damage in ["zeros", "text", "meta", "other store", "cut"] {
        let dir = Dir::new();
        let (mut store, _, records) = filled(&dir, 200);
        store.update_index().unwrap();
        drop(store);
        match damage {
            "zeros" => std::fs::write(dir.index(), vec![0; 8192]).unwrap(),
            "text" => std::fs::write(dir.index(), "no database").unwrap(),
            "cut" => {
                let bytes = std::fs::read(dir.index()).unwrap();
                std::fs::write(dir.index(), &bytes[..3000]).unwrap();
            }
            "meta" => change(&dir, "UPDATE meta SET value = replace(value, ' ', '  ') WHERE key = 'covered'"),
            _ => change(&dir, "UPDATE meta SET value = 'x' WHERE key = 'check'"),
        }
        let mut store = dir.open();
        assert!(store.trouble().is_none(), "{damage}: {:?}", store.trouble());
        check_holds(&store, &records);
        store.update_index().unwrap_or_else(|error| panic!("{damage}: {error}"));
        assert_eq!(store.index_status(), Ok(records.len() as u64), "{damage}");
        check_holds(&store, &records);
        check_verifies(&store);
    }
}

fn change(dir: &Dir, sql: &str) {
    let db = rusqlite::Connection::open(dir.index()).unwrap();
    db.pragma_update(None, "foreign_keys", false).unwrap();
    assert!(db.execute(sql, []).unwrap() > 0, "{sql}");
}

#[test]
fn wrong_rows_never_give_a_wrong_record_and_verify_tells() {
    for sql in [
        "UPDATE record SET frame = (SELECT frame FROM record WHERE position = 9) WHERE position = 5",
        "UPDATE record SET frame = frame + 1 WHERE position = 5",
        "UPDATE record SET id = (SELECT id FROM record WHERE position = 9) WHERE position = 5",
        "DELETE FROM record WHERE position = 5",
        "UPDATE record SET opened = frame WHERE position = 5",
    ] {
        let dir = Dir::new();
        let (mut store, _, records) = filled(&dir, 50);
        store.update_index().unwrap();
        drop(store);
        change(&dir, sql);
        let store = dir.open();
        match store.get(5) {
            Ok(record) => assert_eq!(record.as_ref(), Some(&records[5]), "{sql}"),
            Err(error) => assert!(error.code().as_str().starts_with("E03"), "{sql}: {error}"),
        }
        let report = store.verify(&everything()).unwrap();
        let codes: Vec<_> = report.findings.iter().map(|finding| finding.code()).collect();
        assert_eq!(codes, [Code::E0309], "{sql}");
        drop(store);
        let mut store = dir.open();
        store.rebuild_index(false).unwrap();
        check_holds(&store, &records);
        check_verifies(&store);
    }
}

#[test]
fn an_index_that_cannot_be_put_in_place_leaves_the_one_before() {
    let dir = Dir::new();
    let (mut store, _, records) = filled(&dir, 50);
    store.update_index().unwrap();
    let in_the_way = dir.path().join("index-old.sqlite");
    std::fs::create_dir(&in_the_way).unwrap();
    let error = store.rebuild_index(false).unwrap_err();
    assert_eq!(error.code(), "E0801", "{error}");
    check_holds(&store, &records);
    check_verifies(&store);
    std::fs::remove_dir(&in_the_way).unwrap();
    store.rebuild_index(false).unwrap();
    check_holds(&store, &records);
    assert_eq!(store.leftovers().unwrap(), []);
}

/// SQLite opens files so that Windows does not let them be moved.
#[test]
#[cfg(windows)]
fn an_index_that_another_handle_reads_stays_and_is_made_anew_later() {
    let dir = Dir::new();
    let (mut store, _, records) = filled(&dir, 50);
    store.update_index().unwrap();
    let reader = dir.read();
    check_holds(&reader, &records);
    let error = store.rebuild_index(false).unwrap_err();
    assert_eq!(error.code(), "E0801", "{error}");
    check_holds(&store, &records);
    check_holds(&reader, &records);
    drop(reader);
    store.rebuild_index(false).unwrap();
    check_holds(&store, &records);
    check_verifies(&store);
    assert_eq!(store.leftovers().unwrap(), []);
}

#[test]
fn a_newer_index_is_not_ours_to_remove() {
    let dir = Dir::new();
    let (mut store, _, records) = filled(&dir, 100);
    store.update_index().unwrap();
    drop(store);
    let db = rusqlite::Connection::open(dir.index()).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    let mut store = dir.open();
    check_holds(&store, &records);
    assert!(store.update_index().is_err());
    store.close().unwrap();
    let db = rusqlite::Connection::open(dir.index()).unwrap();
    assert_eq!(db.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).unwrap(), 99);
}

#[test]
fn an_index_that_knows_more_than_the_log_is_evidence_of_loss() {
    let dir = Dir::new();
    let (store, _, records) = filled(&dir, 10);
    drop(store);
    let segment = dir.path().join("segments/00000000.seg");
    let older = std::fs::read(&segment).unwrap();
    let mut store = dir.open();
    let mut scribe = Scribe::default();
    let more = [scribe.begin("late"), scribe.step("late")];
    store.commit(&more).unwrap();
    store.update_index().unwrap();
    drop(store);
    let index = std::fs::read(dir.index()).unwrap();
    std::fs::write(&segment, &older).unwrap();
    let check = |expected: &[Record]| {
        let mut store = dir.open();
        assert_eq!(store.trouble().unwrap().code(), "E0307");
        check_holds(&store, expected);
        assert!(store.commit(&[Scribe::default().begin("new")]).is_err());
        assert!(store.update_index().is_err());
        assert!(store.rebuild_index(false).is_err(), "not quietly");
        let report = store.verify(&everything()).unwrap();
        assert!(report.findings.iter().any(|finding| finding.code() == "E0307"));
        store.close().unwrap();
        assert_eq!(std::fs::read(dir.index()).unwrap(), index, "the evidence stays");
    };
    check(&records);
    // The same with another history of the same length: a log that was rolled back and went on.
    std::fs::remove_file(dir.index()).unwrap();
    let mut store = dir.open();
    let other = [scribe.begin("other"), scribe.step("other")];
    store.commit(&other).unwrap();
    drop(store);
    std::fs::write(dir.index(), &index).unwrap();
    check(&[records, other.to_vec()].concat());
    let mut store = dir.open();
    store.rebuild_index(true).unwrap();
    assert!(store.trouble().is_none(), "discarded when asked to");
    check_verifies(&store);
}

#[test]
fn a_log_that_is_shorter_than_what_a_handle_read_is_lost() {
    let dir = Dir::new();
    let (mut store, ..) = filled(&dir, 10);
    let mut reader = dir.read();
    let segment = dir.path().join("segments/00000000.seg");
    let file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.trouble().unwrap().code(), "E0307");
    assert!(store.commit(&[Scribe::default().begin("new")]).is_err());
    assert_eq!(store.trouble().unwrap().code(), "E0307");
}

#[test]
fn erased_values_leave_the_index_and_every_file() {
    let dir = Dir::new();
    let mut store = dir.create();
    let mut scribe = Scribe::default();
    let secret = format!("secret-{}", noise(5000, 3));
    let person = "person-of-interest";
    let mut records = vec![scribe.begin("r")];
    for _ in 0..3 {
        let path = format!("/people/{person}");
        let delta = Value::array([Value::record([("set", Value::from(path)), ("value", Value::Null)])]);
        let content = Value::record([
            ("agent_id", Value::from(person)),
            ("delta", delta),
            ("intent", Value::record([("text", Value::from(secret.clone())), ("plain", Value::from("p"))])),
        ]);
        records.push(scribe.transition("r", content));
    }
    store.commit(&records).unwrap();
    // Waits for the index to be made.
    store.keep(Slot::Snapshot(&name("r"), 2), secret.as_bytes()).unwrap();
    assert_eq!(store.kept(Slot::Snapshot(&name("r"), 2)).unwrap(), None);
    store.update_index().unwrap();
    let unaware = dir.open();
    store.keep(Slot::Snapshot(&name("r"), 3), secret.as_bytes()).unwrap();
    assert_eq!(store.kept(Slot::Snapshot(&name("r"), 2)).unwrap().map(|(tick, _)| tick), Some(2));
    assert_eq!(store.kept(Slot::Snapshot(&name("r"), 3)).unwrap().map(|(tick, _)| tick), Some(3));
    let question = Digest([1; 32]);
    store.keep(Slot::Verdicts(&name("r"), &question), secret.as_bytes()).unwrap();
    let places = vec![pointer("/agent_id"), pointer("/delta"), pointer("/intent/text")];
    let holds = |text: &str| {
        let mut holding = Vec::new();
        let mut dirs = vec![dir.path()];
        while let Some(next) = dirs.pop() {
            for entry in std::fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path);
                } else if std::fs::read(&path).unwrap().windows(text.len()).any(|at| at == text.as_bytes()) {
                    holding.push(path);
                }
            }
        }
        holding
    };
    let middle = &secret[2000..2030];
    assert!(!holds(person).is_empty() && !holds(middle).is_empty());
    let erase = scribe.beside(Kind::Erase, "r", Value::object());
    store.erase(&erase, &[(1, places.clone())]).unwrap();
    records.push(erase);
    records[1] = records[1].without(&places);
    check_holds(&store, &records);
    assert!(!holds(middle).is_empty(), "two records still have it");
    let erase = scribe.beside(Kind::Erase, "r", Value::object());
    store.erase(&erase, &[(2, places.clone()), (3, places.clone())]).unwrap();
    records.push(erase);
    for position in [2, 3] {
        records[position] = records[position].without(&places);
    }
    check_holds(&store, &records);
    assert_eq!(holds(person), Vec::<PathBuf>::new());
    assert_eq!(holds(&secret[..40]), Vec::<PathBuf>::new());
    assert_eq!(holds(middle), Vec::<PathBuf>::new());
    assert_eq!(store.kept(Slot::Snapshot(&name("r"), 9)).unwrap(), None);
    assert_eq!(store.kept(Slot::Verdicts(&name("r"), &question)).unwrap(), None);
    // A recorder that stands behind what was erased still has it in its state.
    store.update_index().unwrap();
    for handle in [&store, &unaware] {
        handle.keep(Slot::Snapshot(&name("r"), 3), secret.as_bytes()).unwrap();
        assert_eq!(store.kept(Slot::Snapshot(&name("r"), 9)).unwrap(), None);
        assert_eq!(holds(middle), Vec::<PathBuf>::new());
    }
    check_verifies(&store);
    // What is rebuilt says the same, also while another handle reads the old one, where the system lets it be moved.
    if cfg!(windows) {
        drop(unaware);
    }
    store.rebuild_index(false).unwrap();
    check_holds(&store, &records);
    check_verifies(&store);
    // And chunks that were erased are not used again.
    let step = scribe.transition("r", Value::record([("intent", Value::from(secret.clone()))]));
    store.commit(std::slice::from_ref(&step)).unwrap();
    records.push(step);
    check_holds(&store, &records);
}

/// The rows of an index, as texts.
fn rows(dir: &Dir) -> Vec<String> {
    let db = rusqlite::Connection::open(dir.index()).unwrap();
    let mut found = Vec::new();
    for table in ["run", "record", "chunk"] {
        let mut statement = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = if table == "chunk" { 1 } else { statement.column_count() };
        let row = |row: &rusqlite::Row<'_>| {
            let values = (0..columns).map(|column| format!("{:?}", row.get_ref(column).unwrap()));
            Ok(format!("{table} {}", values.collect::<Vec<_>>().join(" ")))
        };
        found.extend(statement.query_map([], row).unwrap().map(Result::unwrap));
    }
    found
}

/// A store with forks, erasures and chunks, whose index grew with it.
fn with_everything(dir: &Dir) -> (Embedded, Scribe) {
    let mut store = dir.create();
    let mut scribe = Scribe::default();
    let content = |n: u64| {
        let delta =
            Value::array([Value::record([("set", Value::from(format!("/n/{n}"))), ("value", n.into())])]);
        Value::record([
            ("agent_id", Value::from(format!("agent-{n}"))),
            ("delta", delta),
            ("intent", Value::record([("text", Value::from(noise(3000, n)))])),
        ])
    };
    let grow = |store: &mut Embedded, records: &[Record]| {
        store.commit(records).unwrap();
        store.update_index().unwrap();
    };
    let mut records = vec![scribe.begin("a")];
    records.extend((1..9).map(|n| scribe.transition("a", content(n))));
    grow(&mut store, &records);
    // Forks of a record of this log, with and without steps of their own, and of records that it does not have.
    let own = records[4].id();
    let mut more = vec![scribe.fork("of-ours", 4, own), scribe.fork("of-ours-bare", 4, own)];
    more.push(scribe.transition("of-ours", content(20)));
    more.push(scribe.fork("of-theirs", 6, Digest([6; 32])));
    more.push(scribe.transition("of-theirs", content(21)));
    more.push(scribe.fork("of-theirs-bare", 6, Digest([6; 32])));
    grow(&mut store, &more);
    // A value that is erased twice over, and one whose chunks are used again after that.
    for (position, place) in [(3, "/agent_id"), (3, "/delta"), (5, "/intent"), (11, "/delta")] {
        let erase = scribe.beside(Kind::Erase, "a", Value::object());
        store.erase(&erase, &[(position, vec![pointer(place)])]).unwrap();
        store.update_index().unwrap();
    }
    grow(&mut store, &[scribe.transition("a", content(2)), scribe.transition("a", content(5))]);
    (store, scribe)
}

#[test]
fn an_index_that_is_made_at_once_is_the_one_that_grew() {
    let dir = Dir::new();
    let (mut store, _) = with_everything(&dir);
    let grown = rows(&dir);
    let begun = |name: &str| {
        let found = grown
            .iter()
            .find(|row| row.starts_with("run ") && row.contains(&format!("{:?}", name.as_bytes())));
        found.cloned().unwrap_or_default()
    };
    assert!(begun("of-ours-bare").ends_with("Integer(5) Null Integer(0)"), "{}", begun("of-ours-bare"));
    assert!(begun("of-theirs").ends_with("Integer(7) Integer(7) Integer(0)"), "{}", begun("of-theirs"));
    assert!(begun("of-theirs-bare").ends_with("Null Null Integer(0)"), "{}", begun("of-theirs-bare"));
    assert!(grown.iter().any(|row| row.starts_with("chunk ")));
    check_verifies(&store);
    store.rebuild_index(false).unwrap();
    assert_eq!(rows(&dir), grown);
    check_verifies(&store);
}

#[test]
fn each_row_that_is_not_as_the_log_says_is_found() {
    let dir = Dir::new();
    let (store, _) = with_everything(&dir);
    check_verifies(&store);
    drop(store);
    let sound = std::fs::read(dir.index()).unwrap();
    for (sql, table, missing, surplus) in [
        ("UPDATE record SET agent = 'x' WHERE position = 1", "record", 1, 1),
        // What was erased is there again, or only the word of it is gone.
        ("UPDATE record SET agent = 'agent-3' WHERE position = 3", "record", 1, 1),
        ("UPDATE record SET opened = NULL WHERE position = 11", "record", 1, 1),
        ("UPDATE record SET ts = ts + 1 WHERE position = 9", "record", 1, 1),
        ("DELETE FROM record WHERE position = 6", "record", 1, 0),
        ("DELETE FROM record WHERE position = (SELECT max(position) FROM record)", "record", 1, 0),
        (
            "INSERT INTO record SELECT 99, id, kind, run, 99, type, agent, ts, frame, opened FROM record WHERE position = 1",
            "record",
            0,
            1,
        ),
        (
            "INSERT INTO record SELECT -1, id, kind, run, 99, type, agent, ts, frame, opened FROM record WHERE position = 1",
            "record",
            0,
            1,
        ),
        ("UPDATE record SET position = 99 WHERE position = 0", "record", 1, 1),
        ("UPDATE run SET first_own_tick = 1 WHERE name = 'of-theirs'", "run", 1, 1),
        ("UPDATE run SET first_own_tick = NULL WHERE name = 'of-ours-bare'", "run", 1, 1),
        ("UPDATE run SET parent = NULL WHERE name = 'of-theirs-bare'", "run", 1, 1),
        ("INSERT INTO run VALUES (98, 'ghost', NULL, 0, NULL, 0)", "run", 0, 1),
        ("UPDATE run SET newest_tick = 3 WHERE name = 'a'", "run", 1, 1),
        ("UPDATE run SET newest_tick = 9 WHERE name = 'of-ours-bare'", "run", 1, 1),
        ("UPDATE run SET beside = 3 WHERE name = 'a'", "run", 1, 1),
        ("DELETE FROM run WHERE name = 'of-ours-bare'", "run", 1, 0),
        // What is of another type than this code writes.
        ("UPDATE run SET name = x'00ff' WHERE name = 'of-theirs'", "run", 1, 1),
        ("UPDATE run SET first_own_tick = 'x' WHERE name = 'of-theirs'", "run", 1, 1),
        ("UPDATE record SET ts = 'x' WHERE position = 9", "record", 1, 1),
    ] {
        std::fs::write(dir.index(), &sound).unwrap();
        change(&dir, sql);
        let report = dir.read().verify(&everything()).unwrap();
        let said: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        let counts = format!("{missing} rows missing or different, {surplus} too many, such as ");
        assert!(
            said.len() == 1 && said[0].contains(&format!("table {table} ")) && said[0].contains(&counts),
            "{sql}: {said:?}"
        );
        assert_eq!(report.findings[0].code(), "E0309");
    }
}

/// Windows lets nobody put another file in the place of one that is open.
#[test]
#[cfg(unix)]
fn a_handle_finds_what_only_the_index_that_others_made_anew_covers() {
    let dir = Dir::new();
    let (mut store, mut scribe, mut records) = filled(&dir, 50);
    store.update_index().unwrap();
    let mut other = dir.open();
    other.rebuild_index(false).unwrap();
    drop(other);
    let more: Vec<Record> = (0..200).map(|_| scribe.step("a")).collect();
    store.commit(&more).unwrap();
    records.extend(more);
    store.update_index().unwrap();
    check_holds(&store, &records);
    for (position, record) in (0..).zip(&records) {
        assert_eq!(store.find(&record.id()).unwrap(), Some(position));
    }
    check_verifies(&store);
}

/// The index covers a record and not its erasure: what it keeps of the values was true of what it covers.
#[test]
fn an_index_that_does_not_know_of_an_erasure_yet_is_not_wrong() {
    let dir = Dir::new();
    let (store, mut scribe) = with_everything(&dir);
    drop(store);
    let before = std::fs::read(dir.index()).unwrap();
    let mut store = Embedded::open(&dir.path(), Options { index: false, ..Options::untagged() }).unwrap();
    let erase = scribe.beside(Kind::Erase, "a", Value::object());
    store.erase(&erase, &[(1, vec![pointer("/agent_id"), pointer("/delta")])]).unwrap();
    drop(store);
    std::fs::write(dir.index(), before).unwrap();
    check_verifies(&dir.read());
}

#[test]
fn an_index_made_between_an_erasure_and_its_frame_becomes_right() {
    let dir = Dir::new();
    let mut first = dir.create();
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    records.extend((0..4).map(|_| scribe.step("r")));
    first.commit(&records).unwrap();
    let mut second = dir.open();
    let erase = scribe.beside(Kind::Erase, "r", Value::object());
    first.erase(&erase, &[(1, vec![pointer("/intent")])]).unwrap();
    // It knows of the records alone, and finds the values of one of them gone.
    second.update_index().unwrap();
    second.refresh().unwrap();
    second.update_index().unwrap();
    check_verifies(&second);
}

#[test]
fn a_handle_that_knew_chunks_forgets_them_when_another_one_erases() {
    let dir = Dir::new();
    let mut first = dir.create();
    let mut scribe = Scribe::default();
    let text = noise(4000, 5);
    let content = || Value::record([("intent", Value::record([("text", Value::from(text.clone()))]))]);
    let mut records = vec![scribe.begin("r"), scribe.transition("r", content())];
    first.commit(&records).unwrap();
    let mut second = dir.open();
    let same = scribe.transition("r", content());
    second.commit(std::slice::from_ref(&same)).unwrap();
    records.push(same);
    let erase = scribe.beside(Kind::Erase, "r", Value::object());
    let places = vec![pointer("/intent")];
    first.refresh().unwrap();
    first.erase(&erase, &[(1, places.clone()), (2, places.clone())]).unwrap();
    records.push(erase);
    for position in [1, 2] {
        records[position] = records[position].without(&places);
    }
    let again = scribe.transition("r", content());
    second.commit(std::slice::from_ref(&again)).unwrap();
    records.push(again);
    check_holds(&second, &records);
    let other = dir.open();
    check_holds(&other, &records);
    check_verifies(&other);
}

#[test]
fn snapshots_come_back_from_the_index() {
    let dir = Dir::new();
    let (mut store, ..) = filled(&dir, 30);
    store.update_index().unwrap();
    let run = name("a");
    for tick in [4, 8, 12] {
        store.keep(Slot::Snapshot(&run, tick), format!("state {tick}").as_bytes()).unwrap();
    }
    let store = dir.read();
    for (tick, expected) in [(3, None), (4, Some(4)), (11, Some(8)), (99, Some(12))] {
        let expected = expected.map(|tick| (tick, format!("state {tick}").into_bytes()));
        assert_eq!(store.kept(Slot::Snapshot(&run, tick)).unwrap(), expected);
    }
}

#[test]
fn verdicts_are_kept_by_readers_too() {
    let dir = Dir::new();
    let (mut store, ..) = filled(&dir, 30);
    store.update_index().unwrap();
    let (reader, question) = (dir.read(), Digest([1; 32]));
    reader.keep(Slot::Verdicts(&name("a"), &question), b"statement").unwrap();
    for store in [&store, &reader, &dir.read()] {
        assert_eq!(
            store.kept(Slot::Verdicts(&name("a"), &question)).unwrap(),
            Some((0, b"statement".to_vec()))
        );
    }
    check_verifies(&reader);
    // Derived, and gone with the rest.
    drop(reader);
    store.rebuild_index(false).unwrap();
    assert_eq!(store.kept(Slot::Verdicts(&name("a"), &question)).unwrap(), None);
}

/// Whoever makes an index anew is not disturbed by whoever does so, too, or cleans up.
#[test]
fn an_index_that_is_made_is_no_leftover() {
    let dir = Dir::new();
    let (store, ..) = filled(&dir, 3000);
    drop(store);
    let beside = dir.path().join("index-new.sqlite");
    std::fs::write(&beside, "half of it").unwrap();
    std::fs::write(dir.path().join("store.tmp"), "cut off").unwrap();
    let makes = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(dir.path().join("index-lock"))
        .unwrap();
    makes.try_lock().unwrap();
    let quick = Options { lock_wait: std::time::Duration::from_millis(50), ..Options::untagged() };
    let mut store = Embedded::open(&dir.path(), quick).unwrap();
    let names = |left: Vec<Leftover>| left.into_iter().map(|left| left.file).collect::<Vec<_>>();
    assert_eq!(names(store.leftovers().unwrap()), ["store.tmp"]);
    assert_eq!(names(store.remove_leftovers().unwrap()), ["store.tmp"]);
    let error = store.rebuild_index(false).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert_eq!(std::fs::read(&beside).unwrap(), b"half of it");
    drop(makes);
    assert_eq!(names(store.leftovers().unwrap()), ["index-new.sqlite"]);
    assert_eq!(names(store.remove_leftovers().unwrap()), ["index-new.sqlite"]);
    drop(store);
    if cfg!(windows) {
        // No index takes the place of one that others have open.
        return;
    }
    // Several at once, and somebody who cleans up all the time: each gets one.
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let making: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut store = Embedded::open(&dir.path(), Options::untagged()).unwrap();
                    store.rebuild_index(false).unwrap();
                    assert_eq!(store.index_status().unwrap(), store.tree().size);
                })
            })
            .collect();
        let cleaning = scope.spawn(|| {
            let mut store = Embedded::open(&dir.path(), Options::untagged()).unwrap();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                store.remove_leftovers().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let made: Vec<_> = making.into_iter().map(|making| making.join()).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(made.iter().all(Result::is_ok), "{made:?}");
        cleaning.join().unwrap();
    });
    check_verifies(&dir.read());
}

/// Nothing but verdicts, which only whoever holds the key of the store keeps.
#[test]
fn a_reader_never_writes() {
    let dir = Dir::new();
    let (mut store, ..) = filled(&dir, 1500);
    store.sign_checkpoint(&key()).unwrap();
    drop(store);
    let list = |dir: &Path| {
        let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    };
    let before = list(&dir.path());
    let mut store = dir.read();
    assert!(store.commit(&[Scribe::default().begin("x")]).is_err());
    assert!(store.sign_checkpoint(&key()).is_err());
    assert!(store.update_index().is_err());
    store.keep(Slot::Snapshot(&name("a"), 1), b"x").unwrap();
    assert_eq!(store.kept(Slot::Snapshot(&name("a"), 1)).unwrap(), None);
    check_verifies(&store);
    store.close().unwrap();
    assert_eq!(list(&dir.path()), before);
}

/// Whoever has the lock of the log may have been stopped; what is on disk is acknowledged all the same.
#[test]
fn a_commit_waits_for_nobody_to_make_an_index() {
    let dir = Dir::new();
    let lock_wait = std::time::Duration::from_secs(3600);
    let options = Options { uncovered_max: 10, lock_wait, ..Options::untagged() };
    let mut store = Embedded::create(&dir.path(), info(), options).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("a")]).unwrap();
    let group: Vec<Record> = (0..20).map(|_| scribe.step("a")).collect();
    store.append(&group).unwrap();
    let stopped = std::fs::File::open(dir.path().join("lock")).unwrap();
    stopped.try_lock().unwrap();
    assert_eq!(store.sync().unwrap(), 21);
    assert!(!dir.index().exists());
    stopped.unlock().unwrap();
    store.sync().unwrap();
    assert!(dir.index().exists());
}

#[test]
fn the_index_is_advanced_in_the_background() {
    let dir = Dir::new();
    let options = Options { uncovered_max: 100, ..Options::untagged() };
    let mut store = Embedded::create(&dir.path(), info(), options).unwrap();
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("a")];
    store.commit(&records).unwrap();
    for _ in 0..100 {
        let group: Vec<Record> = (0..10).map(|_| scribe.step("a")).collect();
        store.commit(&group).unwrap();
        records.extend(group);
    }
    // The handle takes over what the thread did whenever it appends.
    for _ in 0..200 {
        if store.index_status().is_ok_and(|covered| covered >= 800) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        store.refresh().unwrap();
        let step = scribe.step("a");
        store.commit(std::slice::from_ref(&step)).unwrap();
        records.push(step);
    }
    assert!(store.index_status().unwrap() >= 800);
    check_holds(&store, &records);
    check_verifies(&store);
}

/// An erasure that would overwrite something else is refused, and not acknowledged while the values stay.
#[test]
fn an_erasure_is_of_the_record_that_was_named() {
    let dir = Dir::new();
    let (mut store, mut scribe, _) = filled(&dir, 300);
    let at = store
        .append(&[scribe.transition("a", Value::record([("intent", noise(900, 7).into())]))])
        .unwrap()
        .start;
    store.sync().unwrap();
    store.update_index().unwrap();
    store.close().unwrap();
    let db = rusqlite::Connection::open(dir.index()).unwrap();
    let honest: i64 =
        db.query_row("SELECT frame FROM record WHERE position = ?1", [at as i64], |row| row.get(0)).unwrap();
    for lie in ["(SELECT frame FROM record WHERE position = 5)", "4294967280", "64"] {
        db.execute(&format!("UPDATE record SET frame = {lie} WHERE position = {at}"), []).unwrap();
        let mut store = dir.open();
        let size = store.tree().size;
        let erase = scribe.beside(Kind::Erase, "a", Value::object());
        let refused = store.erase(&erase, &[(at, vec![pointer("/intent")])]);
        assert!(refused.is_err() && store.tree().size == size, "{lie}: {refused:?}");
    }
    db.execute("UPDATE record SET frame = ?1 WHERE position = ?2", [honest, at as i64]).unwrap();
    let mut store = dir.open();
    let erase = scribe.beside(Kind::Erase, "a", Value::object());
    store.erase(&erase, &[(at, vec![pointer("/intent")])]).unwrap();
    assert!(store.get(at).unwrap().unwrap().body().value("/intent").is_none());
}

/// A file can be said to have any length and take no room: nobody reads all of it to find that nothing is there.
#[test]
fn a_long_file_with_nothing_in_it_keeps_nobody_waiting() {
    let dir = Dir::new();
    let (store, _, records) = filled(&dir, 30);
    store.close().unwrap();
    for name in ["segments/00000001.seg", "segments/00000000.seg"] {
        let path = dir.path().join(name);
        let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path).unwrap();
        file.set_len(1 << 42).unwrap();
        for options in [Options::read(), Options::untagged()] {
            let store = Embedded::open(&dir.path(), options).unwrap();
            assert!(store.trouble().is_some(), "{name}");
            check_holds(&store, &records);
        }
        if name.contains("1.seg") {
            std::fs::remove_file(&path).unwrap();
        }
    }
}
