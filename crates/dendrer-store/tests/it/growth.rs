//! Large values: what they cost on disk, and that the largest ones work.

use std::path::Path;

use dendrer_object::record::Kind;
use dendrer_object::{Pointer, Record, Value};
use dendrer_store::conformance::{Scribe, check_holds, info, noise};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, VerifyOptions};

fn segment_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir.join("segments")).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

fn message(turn: u64) -> Value {
    Value::record([("content", Value::from(noise(1000, turn + 1))), ("role", Value::from("assistant"))])
}

/// Records a run whose transcript grows by a message of 1 KB a turn, in new handles where asked for.
fn grow(turns: u64, reopen: bool) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    store.commit(&records).unwrap();
    let mut transcript = Vec::new();
    for turn in 0..turns {
        transcript.push(message(turn));
        // All that a recorder puts into a call of a model.
        let params = Value::record([("messages", Value::array(transcript.clone()))]);
        let content = Value::record([
            ("action", Value::record([("params", params), ("tool", Value::from("model.call"))])),
            ("agent_id", Value::from("agent")),
            ("delta", Value::array([])),
            ("result", Value::record([("status", Value::from("ok"))])),
            ("seq", Value::from(turn + 1)),
            ("state_root", Value::from(Value::object().digest())),
        ]);
        let record = scribe.transition("r", content);
        if reopen {
            store.close().unwrap();
            store = Embedded::open(&path, Options::untagged()).unwrap();
        }
        store.commit(std::slice::from_ref(&record)).unwrap();
        records.push(record);
    }
    for position in [1, turns / 2, turns] {
        assert_eq!(store.get(position).unwrap().as_ref(), Some(&records[position as usize]));
    }
    assert_eq!(store.verify(&VerifyOptions::default()).unwrap().findings, []);
    segment_bytes(&path) as f64 / turns as f64
}

#[test]
fn a_growing_transcript_costs_about_what_it_grows_by() {
    let bytes = grow(400, false);
    println!("{bytes:.0} bytes a turn of {} bytes", 1000 + 33);
    // 32 of them are the tag of the group.
    assert!(bytes <= 2080.0, "{bytes}");
}

#[test]
fn so_it_does_when_every_turn_is_a_process_of_its_own() {
    let bytes = grow(60, true);
    println!("{bytes:.0} bytes a turn");
    assert!(bytes <= 2048.0, "{bytes}");
}

#[test]
fn a_value_of_50_mb_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
    let mut scribe = Scribe::default();
    let large = Value::from(noise(50_000_000, 1));
    let content =
        Value::record([("intent", Value::record([("large", large.clone()), ("small", Value::Null)]))]);
    let mut records = vec![scribe.begin("r"), scribe.transition("r", content.clone())];
    store.commit(&records).unwrap();
    let once = segment_bytes(&path);
    assert!(once < 51_000_000, "{once}");
    // The same value again costs next to nothing; one that was changed in the middle a few chunks.
    let again = scribe.transition("r", content);
    store.commit(std::slice::from_ref(&again)).unwrap();
    let twice = segment_bytes(&path) - once;
    assert!(twice < 4_000, "{twice}");
    let mut text = large.as_str().unwrap().to_owned();
    text.replace_range(25_000_000..25_000_010, "something that is longer");
    let changed = scribe.transition("r", Value::record([("intent", Value::from(text))]));
    store.commit(std::slice::from_ref(&changed)).unwrap();
    let change = segment_bytes(&path) - once - twice;
    assert!(change < 2_000_000, "{change}");
    println!("again {twice} bytes, changed {change} bytes");
    records.extend([again, changed]);
    drop(store);
    let mut store = Embedded::open(&path, Options::untagged()).unwrap();
    check_holds(&store, &records);
    // Erased from one, it is still there in the others.
    let places: Vec<Pointer> = vec!["/intent/large".parse().unwrap()];
    for (position, rest) in [(1, 3), (2, 2)] {
        let erase = scribe.beside(Kind::Erase, "r", Value::record([("rest", Value::from(rest as u64))]));
        store.erase(&erase, &[(position, places.clone())]).unwrap();
        records.push(erase);
        records[position as usize] = records[position as usize].without(&places);
    }
    check_holds(&store, &records);
    assert_eq!(
        store.verify(&VerifyOptions { index: true, ..VerifyOptions::default() }).unwrap().findings,
        []
    );
}

#[test]
fn a_value_edited_near_its_begin_shares_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    let mut text = noise(300_000, 4);
    let mut add = |text: &str, store: &mut Embedded| {
        let before = segment_bytes(&path);
        let record: Record = scribe.transition("r", Value::record([("intent", Value::from(text))]));
        store.commit(&[record]).unwrap();
        segment_bytes(&path) - before
    };
    let whole = add(&text, &mut store);
    text.insert_str(100, "inserted");
    let edited = add(&text, &mut store);
    println!("{whole} bytes, then {edited}");
    assert!(whole < 320_000 && edited < 4_000, "{whole} {edited}");
}
