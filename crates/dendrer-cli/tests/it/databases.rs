//! Databases of LangGraph's checkpoints, through the program: hostile ones are refused with a code or marked, and nothing is
//! recorded of one that is refused.

use std::path::Path;

use dendrer_object::Value;
use rusqlite::{Connection, params};

use crate::support::Place;

const TABLES: &str = "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
    CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL, task_path TEXT NOT NULL DEFAULT '', idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));";

fn made(path: &Path, sql: &str) -> Connection {
    let db = Connection::open(path).unwrap();
    db.execute_batch(sql).unwrap();
    db
}

pub(crate) fn tables(place: &Place) -> Connection {
    made(&place.path().join("c.sqlite"), TABLES)
}

/// Adds a checkpoint of JSON whose channel `messages` has one more call of a tool than there are others before it.
pub(crate) fn put(db: &Connection, thread: &str, id: &str, parent: Option<&str>, messages: &str) {
    let text = format!(
        r#"{{"v":4,"id":"{id}","channel_values":{{"messages":{messages}}},"channel_versions":{{"messages":"{id}"}}}}"#
    );
    let sql = "INSERT INTO checkpoints VALUES (?1, '', ?2, ?3, 'json', ?4, ?5)";
    db.execute(sql, params![thread, id, parent, text.as_bytes(), b"{\"step\":1}".as_slice()]).unwrap();
}

pub(crate) fn write(db: &Connection, checkpoint: &str, task: &str, index: i64, value: &[u8]) {
    let sql =
        "INSERT INTO writes VALUES ('t', '', ?1, ?2, '~__pregel_pull, model', ?3, 'messages', 'json', ?4)";
    db.execute(sql, params![checkpoint, task, index, value]).unwrap();
}

const CALL: &str =
    r#"[{"type":"ai","id":"a1","content":"","tool_calls":[{"name":"pay","args":{},"id":"c1"}]}]"#;

/// The code of an import that is refused; nothing is recorded.
fn refused(place: &Place, more: &[&str]) -> String {
    let ran = place.run(&[&["import", "c.sqlite", "--json"], more].concat());
    assert_ne!(ran.code, 0, "{}", ran.stdout);
    let (_, runs) = place.json(&["runs"]);
    assert_eq!(runs.get("items").unwrap().to_string(), "[]", "{}", ran.stderr);
    let error = dendrer_object::json::parse_door(ran.stdout.as_bytes()).unwrap();
    let text = error.get("message").unwrap().as_str().unwrap().to_owned();
    format!("{} {text}", error.get("code").unwrap().as_str().unwrap())
}

#[test]
fn a_thread_becomes_a_run() {
    let place = Place::with_store();
    let db = tables(&place);
    put(&db, "t", "1", None, "[]");
    write(&db, "1", "x", 0, CALL.as_bytes());
    put(&db, "t", "2", Some("1"), CALL);
    drop(db);
    let before = std::fs::read(place.path().join("c.sqlite")).unwrap();
    let (_, answer) = place.json(&["import", "c.sqlite"]);
    assert_eq!(answer.get("kind"), Some(&"langgraph".into()));
    assert_eq!((answer.get("ticks"), answer.get("calls")), (Some(&3u64.into()), Some(&1u64.into())));
    assert_eq!(std::fs::read(place.path().join("c.sqlite")).unwrap(), before);
    let log = place.ok(&["log", "t"]);
    assert!(log.contains("    3     1  model             messages +1 ai: pay {}\n"), "{log}");
    assert_eq!(place.run(&["verify", "t", "--replay"]).code, 0);
    // The run is one of a thread: the saver may go on with it, and the program as well.
    let line = br#"{"type":"observation.add","intent":{"content":"more"}}"#;
    assert_eq!(place.run_with(&["commit", "--run", "t"], line).code, 0);
    assert_eq!(place.run(&["import", "c.sqlite"]).code, 2);
}

#[test]
fn other_tables_are_refused() {
    let checkpoints = TABLES.split_once(';').unwrap().0;
    let writes = TABLES.split_once(';').unwrap().1;
    for (sql, expected) in [
        ("CREATE TABLE t (a)".to_owned(), "has no table checkpoints"),
        (checkpoints.to_owned(), "has no table writes"),
        (TABLES.replace("metadata BLOB,", ""), "has no column metadata"),
        (TABLES.replace("channel TEXT NOT NULL,", ""), "has no column channel"),
        (TABLES.to_owned(), "are empty"),
        (
            format!("CREATE TABLE u (a); CREATE VIEW checkpoints AS SELECT * FROM u;{writes}"),
            "no ordinary table",
        ),
        (TABLES.replace("checkpoint BLOB", "checkpoint BLOB AS (zeroblob(9))"), "no ordinary one"),
        (TABLES.replace("metadata BLOB,", "metadata BLOB, rowid TEXT,"), "no ordinary one"),
        (TABLES.replace("checkpoint_id));", "checkpoint_id)) WITHOUT ROWID;"), "no such column: rowid"),
    ] {
        let place = Place::with_store();
        drop(made(&place.path().join("c.sqlite"), &sql));
        let found = refused(&place, &[]);
        assert!(found.starts_with("E0203") && found.contains(expected), "{sql}: {found}");
        assert_eq!(refused(&place, &["--kind", "langgraph"]), found);
        // In a directory it is a file that is left.
        let (_, answer) = place.json(&["import", "."]);
        assert_eq!(answer.get("left").unwrap().as_array().unwrap().len(), 1);
    }
}

#[test]
fn values_of_other_types_are_refused() {
    for (change, expected) in [
        ("UPDATE checkpoints SET thread_id = x'00'", "E0203 "),
        ("UPDATE checkpoints SET parent_checkpoint_id = x'00'", "E0203 "),
        ("UPDATE checkpoints SET checkpoint_id = CAST(x'ff' AS TEXT)", "E0206 "),
        ("UPDATE checkpoints SET checkpoint = zeroblob(67108865)", "E0205 "),
        ("UPDATE checkpoints SET type = x'00'", "E0203 "),
        ("UPDATE writes SET idx = 'x'", "E0203 "),
        ("UPDATE writes SET channel = x'00'", "E0203 "),
        ("UPDATE writes SET value = zeroblob(67108865)", "E0205 "),
    ] {
        let place = Place::with_store();
        let db = tables(&place);
        put(&db, "t", "1", None, "[]");
        write(&db, "1", "x", 0, CALL.as_bytes());
        db.execute_batch(change).unwrap();
        drop(db);
        let found = refused(&place, &[]);
        assert!(found.starts_with(expected), "{change}: {found}");
        assert!(refused(&place, &["-n"]).starts_with(expected));
    }
}

/// A note of each kind, as `KIND PATH`, and the calls that were counted.
fn noted(place: &Place) -> (Vec<String>, Value) {
    let (code, answer) = place.json(&["import", "c.sqlite"]);
    assert_eq!(code, 0, "{answer}");
    let text = |note: &Value, name: &str| note.get(name).unwrap().as_str().unwrap().to_owned();
    let notes = answer.get("notes").unwrap().as_array().unwrap().clone();
    let notes = notes.iter().map(|note| format!("{} {}", text(note, "kind"), text(note, "path"))).collect();
    (notes, answer.get("calls").unwrap().clone())
}

#[test]
fn parents_that_are_missing_or_make_a_circle_are_gaps() {
    let place = Place::with_store();
    let db = tables(&place);
    put(&db, "t", "5", Some("4"), CALL);
    put(&db, "t", "6", Some("5"), CALL);
    put(&db, "t", "8", Some("9"), "[]");
    put(&db, "t", "9", Some("8"), CALL);
    put(&db, "t", "a", Some("a"), "[]");
    write(&db, "7", "x", 0, b"[]");
    drop(db);
    let (notes, calls) = noted(&place);
    let expected = [
        "parent_missing /checkpoints//5",
        "parent_cycle /checkpoints//8",
        "parent_cycle /checkpoints//a",
        "parent_missing /writes//7",
    ];
    assert_eq!((notes, calls), (expected.map(str::to_owned).to_vec(), 1u64.into()));
    let place = Place::with_store();
    put(&tables(&place), "t", "5", Some("4"), CALL);
    assert!(refused(&place, &["--on-gap", "stop"]).starts_with("E0213"));
}

#[test]
fn bytes_that_cannot_be_read_make_counters_unknown() {
    for (kind, bytes) in
        [("msgpack", &b"\xc1\xff"[..]), ("pickle", b"x"), ("msgpack+aes", b"x"), ("json", b"{")]
    {
        let place = Place::with_store();
        let db = tables(&place);
        put(&db, "t", "1", None, CALL);
        put(&db, "t", "2", Some("1"), "[]");
        db.execute(
            "UPDATE checkpoints SET type = ?1, checkpoint = ?2 WHERE checkpoint_id = '2'",
            params![kind, bytes],
        )
        .unwrap();
        drop(db);
        let (notes, _) = noted(&place);
        assert_eq!(notes, ["message_unreadable /values"], "{kind}");
        let ran = place.run(&["bisect", "t", "--holds", "state.counters.tool_errors == 0"]);
        assert_eq!(ran.code, 6, "{kind}: {}", ran.stdout);
    }
    // A write that cannot be read is noted with its channel.
    let place = Place::with_store();
    let db = tables(&place);
    put(&db, "t", "1", None, "[]");
    write(&db, "1", "x", 0, b"\xff");
    drop(db);
    assert_eq!(noted(&place).0, ["message_unreadable /values/messages"]);
}

#[test]
fn a_damaged_database_is_refused() {
    let place = Place::with_store();
    let db = tables(&place);
    for number in 100..400 {
        let before = (number > 100).then(|| (number - 1).to_string());
        put(&db, "t", &number.to_string(), before.as_deref(), CALL);
    }
    drop(db);
    let path = place.path().join("c.sqlite");
    let whole = std::fs::read(&path).unwrap();
    for size in [16, 90, 100, 4_096, 5_000, whole.len() / 2, whole.len() - 4_096, whole.len() - 1] {
        std::fs::write(&path, &whole[..size]).unwrap();
        let found = refused(&place, &[]);
        assert!(found.starts_with("E0203") || found.starts_with("E0213"), "{size}: {found}");
    }
    // Each page in turn is overwritten: whatever that hits, the program ends with an answer or a code.
    for page in (1..whole.len() / 4_096).step_by(7) {
        let mut bytes = whole.clone();
        bytes[page * 4_096..(page + 1) * 4_096].fill(0xa5);
        std::fs::write(&path, &bytes).unwrap();
        let ran = place.run(&["import", "c.sqlite", "-n"]);
        assert!([0, 2].contains(&ran.code), "page {page}: {} {}", ran.code, ran.stderr);
    }
}

#[test]
fn triggers_and_the_log_of_the_database_stay_as_they_are() {
    let place = Place::with_store();
    let path = place.path().join("c.sqlite");
    let db = tables(&place);
    put(&db, "t", "1", None, CALL);
    db.execute_batch(
        "CREATE TABLE seen (a); CREATE TRIGGER checkpoints_t AFTER INSERT ON checkpoints BEGIN INSERT INTO seen VALUES (1); END;
         PRAGMA journal_mode = WAL;",
    )
    .unwrap();
    put(&db, "t", "2", Some("1"), "[]");
    let count = |path: &Path| std::fs::read_dir(path.parent().unwrap()).unwrap().count();
    let before = count(&path);
    // The newest row is in the log next to the file, which another process has open.
    let (_, answer) = place.json(&["import", "c.sqlite"]);
    assert_eq!(answer.get("ticks"), Some(&2u64.into()));
    assert_eq!(count(&path), before);
    let (_, all) = place.json(&["import", "."]);
    assert_eq!((all.get("there"), all.get("left")), (Some(&1u64.into()), None));
    drop(db);
    // Closed, the database has no log, and none is made.
    let before = count(&path);
    assert_eq!(place.run(&["import", "c.sqlite", "--again", "-n"]).code, 0);
    assert_eq!(count(&path), before);
}

#[test]
fn a_locked_database_is_refused() {
    let place = Place::with_store();
    let db = tables(&place);
    put(&db, "t", "1", None, CALL);
    db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let found = refused(&place, &[]);
    assert!(found.starts_with("E0802"), "{found}");
    drop(db);
    assert_eq!(place.run(&["import", "c.sqlite"]).code, 0);
}

#[test]
fn a_value_that_changes_under_its_version_is_recorded() {
    let place = Place::with_store();
    let db = tables(&place);
    put(&db, "t", "1", None, "[]");
    put(&db, "t", "2", Some("1"), CALL);
    db.execute_batch("UPDATE checkpoints SET checkpoint = replace(CAST(checkpoint AS TEXT), '\"messages\":\"2\"', '\"messages\":\"1\"')")
        .unwrap();
    drop(db);
    assert_eq!(place.json(&["import", "c.sqlite"]).1.get("calls"), Some(&1u64.into()));
}

#[test]
fn flags_of_other_formats_are_refused() {
    let place = Place::with_store();
    let db = tables(&place);
    put(&db, "t", "1", None, CALL);
    put(&db, "u", "2", None, CALL);
    drop(db);
    for flags in
        [&["--messages", "/a"][..], &["--kept", "/a"], &["--redact", "none"], &["--policy", "p.json"]]
    {
        assert!(refused(&place, flags).starts_with("E0106"), "{flags:?}");
    }
    assert!(refused(&place, &["--index", "2"]).starts_with("E0212"));
    assert!(refused(&place, &["--run", "x"]).contains("2 threads are in it"));
    // Another run has the name of one of them.
    let line = br#"{"type":"observation.add","intent":{"content":"x"}}"#;
    assert_eq!(place.run_with(&["commit", "--run", "t"], line).code, 0);
    let (_, answer) = place.json(&["import", "c.sqlite"]);
    let names: Vec<String> = answer
        .get("items")
        .and_then(Value::as_array)
        .unwrap()
        .iter()
        .map(|item| item.get("run").unwrap().as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["t-2", "u"]);
}
