//! Records proven by their paths, where tiles or rows of the index are wrong.

use std::path::{Path, PathBuf};

use dendrer_object::Record;
use dendrer_store::conformance::{Scribe, check_holds, info, key, name};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options};

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}

/// A store of 650 records, of which 600 are signed and all are in the index.
fn filled(at: &Path) -> Vec<Record> {
    let mut store = Embedded::create(at, info(), Options::untagged()).unwrap();
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    records.extend((1..600).map(|_| scribe.step("r")));
    store.commit(&records).unwrap();
    store.sign_checkpoint(&key()).unwrap();
    let more: Vec<Record> = (0..50).map(|_| scribe.step("r")).collect();
    store.commit(&more).unwrap();
    store.update_index().unwrap();
    records.extend(more);
    records
}

fn check_proven(at: &Path, records: &[Record], what: &str) {
    let store = Embedded::open(at, Options::read()).unwrap();
    for position in [0, 17, 255, 256, 511, 512, 598, 599, 600, 649] {
        let found = store.proven(position).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(found.as_ref(), records.get(position as usize), "{what}: {position}");
    }
    assert_eq!(store.proven(650).unwrap(), None, "{what}");
}

#[test]
fn wrong_tiles_hide_no_record_and_make_none() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("store");
    let records = filled(&at);
    check_proven(&at, &records, "sound tiles");
    for path in files_below(&at.join("log")) {
        let sound = std::fs::read(&path).unwrap();
        for (damage, bytes) in [("zeros", vec![0; sound.len()]), ("cut", sound[..sound.len() / 2].to_vec())] {
            std::fs::write(&path, bytes).unwrap();
            check_proven(&at, &records, &format!("{damage}: {}", path.display()));
        }
        std::fs::remove_file(&path).unwrap();
        check_proven(&at, &records, &format!("removed: {}", path.display()));
        std::fs::write(&path, sound).unwrap();
    }
    std::fs::remove_dir_all(at.join("log")).unwrap();
    check_proven(&at, &records, "no tiles");
}

#[test]
fn a_handle_proves_records_while_another_appends_and_signs() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("store");
    let mut writer = Embedded::create(&at, info(), Options::untagged()).unwrap();
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    writer.commit(&records).unwrap();
    let old = Embedded::open(&at, Options::read()).unwrap();
    let mut reader = Embedded::open(&at, Options::read()).unwrap();
    for steps in [3, 250, 1, 2, 256, 700] {
        let group: Vec<Record> = (0..steps).map(|_| scribe.step("r")).collect();
        writer.commit(&group).unwrap();
        records.extend(group);
        writer.sign_checkpoint(&key()).unwrap();
        // The tiles are of a longer log than this handle sees.
        let known = reader.tree().size;
        assert_eq!(reader.proven(known - 1).unwrap().as_ref(), records.get(known as usize - 1));
        reader.refresh().unwrap();
        for position in (0..records.len()).step_by(97) {
            assert_eq!(reader.proven(position as u64).unwrap().as_ref(), records.get(position));
        }
        assert_eq!(old.proven(0).unwrap().as_ref(), records.first());
        assert_eq!(old.proven(1).unwrap(), None);
    }
    check_holds(&reader, &records);
}

#[test]
fn a_row_that_names_another_record_proves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("store");
    let records = filled(&at);
    let db = rusqlite::Connection::open(at.join("index.sqlite")).unwrap();
    let copied = "UPDATE record SET (id, frame) = (SELECT id, frame FROM record WHERE position = 9) WHERE position = 5";
    assert_eq!(db.execute(copied, []).unwrap(), 1);
    drop(db);
    let store = Embedded::open(&at, Options::read()).unwrap();
    assert_eq!(store.get(5).unwrap().as_ref(), records.get(9), "a record of the log, and not this one");
    assert_eq!(store.proven(5).unwrap().as_ref(), records.get(5));
    assert_eq!(store.proven_at(&name("r"), 5).unwrap().as_ref(), records.get(5));
}
