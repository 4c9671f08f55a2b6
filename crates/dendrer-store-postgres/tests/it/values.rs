//! Large values, erasure, and the same log on a disk.

use dendrer_object::record::Kind;
use dendrer_object::{Digest, Record, Value};
use dendrer_store::conformance::{Scribe, check_holds, info, key};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, StoreError};
use dendrer_store_postgres::Postgres;

use crate::server::{Server, is_deep, untagged};

/// Text that does not repeat.
fn noise(seed: u64, size: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(size);
    while text.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push(char::from(b'a' + (state % 26) as u8));
    }
    text
}

fn with_text(scribe: &mut Scribe, texts: &[&str]) -> Record {
    let intent = texts.iter().zip(0..).map(|(text, n)| (format!("text{n}"), Value::from(*text)));
    let content = Value::record([
        ("agent_id", Value::from("a")),
        ("intent", Value::record(intent.collect::<Vec<_>>())),
    ]);
    scribe.transition("r", content)
}

fn count(server: &Server, store: &Postgres, table: &str) -> u64 {
    let sql = format!("select count(*) from {}.{table}", store.address().schema());
    server.sql("postgres", &sql).unwrap().parse().unwrap()
}

#[test]
fn a_text_that_grows_is_stored_in_pieces_that_are_shared() {
    let Some(server) = Server::start() else { return };
    let mut store = server.create(&server.address());
    let mut scribe = Scribe::default();
    let text = noise(1, 3 << 20);
    let mut records = vec![scribe.begin("r")];
    for size in [1 << 20, 2 << 20, 3 << 20] {
        records.push(with_text(&mut scribe, &[&text[..size]]));
    }
    store.commit(&records).unwrap();
    let size = format!("select sum(length(bytes)) from {}.chunk", store.address().schema());
    let size: usize = server.sql("postgres", &size).unwrap().parse().unwrap();
    assert!(size < 4 << 20, "{size} bytes for 6 MiB of which 3 are different");
    check_holds(&Postgres::open(store.address(), untagged()).unwrap(), &records);
}

#[test]
fn a_piece_goes_with_the_last_value_that_uses_it() {
    let Some(server) = Server::start() else { return };
    let mut store = server.create(&server.address());
    let mut scribe = Scribe::default();
    let (text, other) = (noise(1, 300_000), noise(2, 300_000));
    let mut records =
        vec![scribe.begin("r"), with_text(&mut scribe, &[&text, &other]), with_text(&mut scribe, &[&text])];
    store.commit(&records).unwrap();
    let all = count(&server, &store, "chunk");
    let mut erase = |store: &mut Postgres, records: &mut Vec<Record>, position: usize, place: &str| {
        let record = scribe.beside(Kind::Erase, "r", Value::record::<&str>([]));
        let places = vec![place.parse().unwrap()];
        store.erase(&record, &[(position as u64, places.clone())]).unwrap();
        records.push(record);
        records[position] = records[position].without(&places);
    };
    erase(&mut store, &mut records, 1, "/intent/text0");
    assert_eq!(count(&server, &store, "chunk"), all, "the other record uses these pieces");
    erase(&mut store, &mut records, 1, "/intent");
    let left = count(&server, &store, "chunk");
    assert!(0 < left && left < all, "{left} of {all}");
    erase(&mut store, &mut records, 2, "/intent/text0");
    assert_eq!((count(&server, &store, "chunk"), count(&server, &store, "chunk_use")), (0, 0));
    check_holds(&store, &records);
    check_holds(&Postgres::open(store.address(), untagged()).unwrap(), &records);
    // Nothing of the texts is in a row that can be read.
    let part = &text[..40];
    let sql = format!(
        "select count(*) from {}.record where position(convert_to('{part}', 'UTF8') in \"values\") > 0",
        store.address().schema()
    );
    assert_eq!(server.sql("postgres", &sql).unwrap(), "0");
}

/// The most memory that this process has had, in MiB.
fn memory_max() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or_default() >> 10
}

#[test]
fn a_record_of_half_a_gibibyte_comes_back_with_bounded_memory() {
    let Some(server) = Server::start() else { return };
    let mut store = server.create(&server.address());
    let mut scribe = Scribe::default();
    let (parts, size) = if is_deep() { (8, (64 << 20) - 64) } else { (3, 16 << 20) };
    let texts: Vec<String> = (0..parts).map(|n| noise(n + 1, size)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let records = [scribe.begin("r"), with_text(&mut scribe, &texts)];
    let before = memory_max();
    store.commit(&records).unwrap();
    let sent = memory_max() - before;
    drop(store.get(1).unwrap().unwrap());
    let read = memory_max() - before;
    let whole = (parts as usize * size) >> 20;
    println!("{whole} MiB in one record: {sent} MiB more to send, {read} MiB more to send and read");
    assert!(sent < 128, "{sent} MiB more to send {whole}");
    assert!(read < 6 * whole as u64 + 128, "{read} MiB more to read {whole}");
    let found = store.get(1).unwrap().unwrap();
    assert_eq!(found.id(), records[1].id());
}

/// Everything that a script does: runs, forks, refusals, withheld and erased values, checkpoints.
fn script(store: &mut dyn Store) -> Vec<String> {
    let mut scribe = Scribe::default();
    let mut notes = Vec::new();
    let commit = |store: &mut dyn Store, group: &[Record]| {
        store.commit(group).unwrap();
    };
    let first = scribe.begin("a");
    let parent = first.id();
    commit(store, &[first, scribe.step("a"), scribe.step("a")]);
    notes.push(store.sign_checkpoint(&key()).unwrap().to_string());
    commit(store, &[scribe.fork("b", 0, parent), scribe.step("b")]);
    commit(store, &[scribe.beside(Kind::Refusal, "a", Value::record([("reason", Value::from("no"))]))]);
    let withheld = scribe.step("a").without(&["/intent".parse().unwrap()]);
    commit(store, &[withheld, scribe.apart(Kind::Register, Value::record([("pack", Value::from("text"))]))]);
    for n in 0..40u64 {
        let text = noise(n, 2_000 * n as usize);
        let content = Value::record([("agent_id", Value::from("a")), ("text", Value::from(text))]);
        commit(store, &[scribe.transition("a", content), scribe.step("b")]);
    }
    let erase = scribe.beside(Kind::Erase, "a", Value::record([("reason", Value::from("asked to"))]));
    store
        .erase(&erase, &[(1, vec!["/agent_id".parse().unwrap()]), (60, vec!["/text".parse().unwrap()])])
        .unwrap();
    commit(store, &[scribe.step("a"), scribe.beside(Kind::End, "b", Value::record::<&str>([]))]);
    notes.push(store.sign_checkpoint(&key()).unwrap().to_string());
    notes
}

#[test]
fn one_script_gives_the_same_ids_root_and_checkpoints_on_a_disk_and_on_a_server() {
    let Some(server) = Server::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut disk = Embedded::create(&dir.path().join(".dendrer"), info(), Options::untagged()).unwrap();
    let mut store = server.create(&server.address());
    let (of_disk, of_server) = (script(&mut disk), script(&mut store));
    assert_eq!(of_disk, of_server, "checkpoints");
    assert_eq!(disk.tree(), store.tree());
    let all = |store: &dyn Store| {
        let mut records = Vec::new();
        let scan = store.scan(0..u64::MAX, &mut |_, record| {
            records.push(record);
            std::ops::ControlFlow::Continue(())
        });
        scan.unwrap();
        records
    };
    let records = all(&disk);
    assert_eq!(records, all(&store));
    assert_eq!(disk.runs(0, 10).unwrap(), store.runs(0, 10).unwrap());
    check_holds(&Postgres::open(store.address(), untagged()).unwrap(), &records);
    let ids: Vec<Digest> = records.iter().map(Record::id).collect();
    println!("{} records, root {}, newest {}", ids.len(), store.tree().root, ids[ids.len() - 1]);
}

#[test]
fn what_is_too_large_is_refused_before_anything_is_sent() {
    let Some(server) = Server::start() else { return };
    let mut store = server.create(&server.address());
    let secret = vec![(Digest([1; 32]), vec![0; dendrer_store::SECRET_SIZE_MAX + 1])];
    let error = store.put_secrets(&secret, dendrer_store::Given::default()).expect_err("too large");
    assert!(matches!(error, StoreError::Unsupported(_)));
    assert_eq!(store.secrets().unwrap(), []);
}
