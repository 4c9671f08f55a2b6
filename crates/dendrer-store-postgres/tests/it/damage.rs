//! Rows that another program altered: each is named, and no answer is wrong.

use dendrer_object::{Record, Value};
use dendrer_store::conformance::{Scribe, key};
use dendrer_store::prelude::*;
use dendrer_store::{LogWriter, StoreError};
use dendrer_store_postgres::{Postgres, PostgresOptions, ServerAddress};

use crate::server::{Server, untagged};

/// A store of two runs, with a large value at position 4.
fn store_of(server: &Server) -> (ServerAddress, Vec<Record>) {
    let address = server.address();
    let mut store = server.create(&address);
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("a"), scribe.begin("b"), scribe.step("a"), scribe.step("b")];
    let text: String = (0..40_000u32).map(|n| format!("{:08x}", n.wrapping_mul(2_654_435_761))).collect();
    let content = Value::record([
        ("agent_id", Value::from("a")),
        ("intent", Value::record([("text", Value::from(text))])),
    ]);
    records.push(scribe.transition("a", content));
    records.push(scribe.step("a"));
    for group in records.chunks(2) {
        store.commit(group).unwrap();
    }
    store.sign_checkpoint(&key()).unwrap();
    (address, records)
}

/// Alterations, and what names them: a part of the message.
const ALTERED: [(&str, &str); 17] = [
    ("update record set \"values\" = set_byte(\"values\", 30, 255) where position = 2", "position 2"),
    ("update record set \"values\" = '' where position = 2", "position 2"),
    (
        "update record set seed = set_byte(seed, 0, (get_byte(seed, 0) + 1) % 256) where position = 3",
        "position 3",
    ),
    (
        "update record set header = convert_to(replace(convert_from(header, 'UTF8'), 'plan.update', 'plan.upgrade'), 'UTF8') where position = 5",
        "position 5",
    ),
    ("update record set header = '' where position = 2", "position 2"),
    ("update record set id = sha256('x') where position = 3", "position 3"),
    ("update record set kind = 'refusal' where position = 2", "position 2"),
    ("update record set run = 'b', tick = 9 where position = 2", "position 2"),
    ("update record set tick = null where position = 5", "position 5"),
    ("update record set ts = ts + 1 where position = 2", "position 2"),
    ("delete from record where position = 3", "position 3"),
    ("delete from record where position = 5", "position 5"),
    ("delete from chunk where key = (select key from chunk order by key limit 1)", "position 4"),
    (
        "update chunk set bytes = set_byte(bytes, 0, 33) where key = (select key from chunk order by key limit 1)",
        "position 4",
    ),
    ("update group_end set root = sha256('x') where size = 4", "position 2"),
    ("delete from group_end where size = 4", "position 2"),
    ("update record set position = position + 100 where position = 5", "position 5"),
];

/// Reads everything, and returns the errors. What is read must be what was written.
fn errors_of(store: &Postgres, records: &[Record]) -> Vec<StoreError> {
    let mut errors = Vec::new();
    for (position, record) in (0..).zip(records) {
        match store.proven(position) {
            Ok(Some(found)) => assert_eq!(&found, record, "the record at {position}"),
            Ok(None) => assert!(position >= store.tree().size, "{position} is seen and not there"),
            Err(error) => errors.push(error),
        }
        if let Some(found) = store.find(&record.id()).unwrap() {
            assert_eq!(found, position);
        }
    }
    errors
}

#[test]
fn altered_rows_are_named_and_never_read_as_they_are() {
    let Some(server) = Server::start() else { return };
    for (sql, named) in ALTERED {
        let (address, records) = store_of(&server);
        let seeing = Postgres::open(&address, untagged()).unwrap();
        let schema = address.schema();
        server.sql("postgres", &format!("set search_path = {schema}; {sql}")).unwrap();
        let store = Postgres::open(&address, untagged()).unwrap();
        let errors = errors_of(&store, &records);
        let trouble = store.trouble();
        let all: Vec<String> =
            errors.iter().map(ToString::to_string).chain(trouble.iter().map(ToString::to_string)).collect();
        assert!(all.iter().any(|text| text.contains(named)), "{sql}: {all:?}");
        for error in errors.iter().chain(trouble.as_deref()) {
            assert!(matches!(error, StoreError::Damaged(_) | StoreError::Lost(_)), "{sql}: {error:?}");
        }
        // A handle that saw the log before knows its entries, and is not misled either.
        errors_of(&seeing, &records);
        if trouble.is_some() {
            let mut store = store;
            let refused = store.append(&[Scribe::default().begin("c")]).expect_err("it only reads");
            assert_eq!(refused.code(), "E0805", "{sql}");
        }
    }
}

#[test]
fn an_altered_tree_is_named_and_nothing_is_built_on_it() {
    let Some(server) = Server::start() else { return };
    for (sql, named) in [
        ("update tree set root = sha256('x')", "root of the log"),
        ("update tree set edge = set_byte(edge, 0, (get_byte(edge, 0) + 1) % 256)", "edge of the tree"),
        ("update tree set tag = sha256('x')", "tag of the tree"),
        ("update tree set size = 5", "root of the log"),
        ("update tree set size = 7", "end of a group"),
        ("update tree set size = -1", "epoch and size"),
        ("delete from tree", "rows"),
    ] {
        let (address, records) = store_of(&server);
        let mut seeing = Postgres::open(&address, untagged()).unwrap();
        let schema = address.schema();
        server.sql("postgres", &format!("set search_path = {schema}; {sql}")).unwrap();
        let error = seeing.append(&[Scribe::default().begin("c")]).expect_err("nothing is built on it");
        assert!(matches!(error, StoreError::Damaged(_) | StoreError::Lost(_)), "{sql}: {error:?}");
        assert!(error.to_string().contains(named) || sql.contains("size = 5"), "{sql}: {error}");
        assert_eq!(errors_of(&seeing, &records).len(), 0, "{sql}");
        let count = server.sql("postgres", &format!("select count(*) from {schema}.record")).unwrap();
        assert_eq!(count, "6", "{sql}: nothing was written");
    }
}

#[test]
fn altered_heads_stop_an_append() {
    let Some(server) = Server::start() else { return };
    for sql in [
        "update head set id = sha256('x') where run = 'a'",
        "delete from head where run = 'a'",
        "insert into head values ('c', 0, sha256('x'), false)",
    ] {
        let (address, records) = store_of(&server);
        let schema = address.schema();
        server.sql("postgres", &format!("set search_path = {schema}; {sql}")).unwrap();
        let mut store = Postgres::open(&address, untagged()).unwrap();
        let mut scribe = Scribe::default();
        let group = match sql.starts_with("insert") {
            true => scribe.begin("c"),
            false => {
                scribe.begin("a");
                scribe.set_head("a", 3, records[5].id());
                scribe.step("a")
            }
        };
        let error = store.append(&[group]).expect_err("the heads differ from the log");
        assert!(matches!(error, StoreError::Damaged(_)), "{sql}: {error:?}");
        let size = server.sql("postgres", &format!("select size from {schema}.tree")).unwrap();
        assert_eq!(size, "6", "{sql}");
        assert_eq!(errors_of(&store, &records).len(), 0);
    }
}

#[test]
fn a_group_by_a_program_with_the_database_and_no_secret_is_met() {
    let Some(server) = Server::start() else { return };
    let address = server.address();
    let owned = || PostgresOptions { key: Some(std::sync::Arc::new(key())), ..PostgresOptions::default() };
    let mut store = server.create(&address);
    let mut scribe = Scribe::default();
    store.set_writer(LogWriter::of(&key()));
    store.commit(&[scribe.begin("r")]).unwrap();
    let mut other = Postgres::open(&address, untagged()).unwrap();
    other.commit(&[scribe.step("r")]).unwrap();
    assert_eq!(store.append(&[scribe.step("r")]).expect_err("no tag").code(), "E0814");
    let mut owner = Postgres::open(&address, owned()).unwrap();
    assert_eq!(owner.untagged().unwrap().unwrap().as_slice(), std::slice::from_ref(&(1..2)));
    assert_eq!(owner.sign_checkpoint(&key()).expect_err("no tag").code(), "E0814");
    // Without key or secret nothing is written.
    let mut none = Postgres::open(&address, PostgresOptions::default()).unwrap();
    assert_eq!(none.append(&[scribe.step("r")]).expect_err("no secret").code(), "E0804");
}

#[test]
fn two_notes_of_one_size_are_not_both_kept() {
    let Some(server) = Server::start() else { return };
    let (address, _) = store_of(&server);
    let schema = address.schema();
    // The note of another log with as many records, put in the place of the one that is to come.
    let mut store = Postgres::open(&address, untagged()).unwrap();
    store.commit(&[Scribe::default().begin("c")]).unwrap();
    let forged = format!(
        "insert into {schema}.checkpoint select 7, convert_to(replace(convert_from(note, 'UTF8'), E'\\n6\\n', E'\\n7\\n'), \
         'UTF8') from {schema}.checkpoint"
    );
    server.sql("postgres", &forged).unwrap();
    let error = store.sign_checkpoint(&key()).expect_err("another note is there");
    assert!(matches!(error.code().as_str(), "E0307" | "E0308"), "{error}");
    assert!(store.trouble().is_some());
}
