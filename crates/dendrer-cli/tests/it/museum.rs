//! Stores that earlier builds recorded (`tests/museum`, made by `make.sh` and `make-vault.sh` there): each later build verifies and
//! replays them, and reads what is in their vaults.

use std::fs;
use std::path::Path;

use dendrer_object::json;

use crate::support::{Place, copy};

#[test]
fn each_recorded_store_is_verified_and_replayed() {
    let museum = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/museum");
    let rooms = fs::read_dir(museum).unwrap().map(|entry| entry.unwrap().path());
    let rooms: Vec<_> = rooms.filter(|path| path.is_dir()).collect();
    assert!(!rooms.is_empty());
    for room in rooms {
        let place = Place::new();
        copy(&room.join("store"), &place.path().join(".dendrer"));
        let has_vault = bring_keys(&room, &place);
        let verified = place.ok(&["verify", "--all", "--replay"]);
        // The key was kept elsewhere, so nothing here says whose the log is.
        assert!(verified.contains("\nINTACT "), "{}: {verified}", room.display());
        let recorded = json::parse_door(&fs::read(room.join("runs.json")).unwrap()).unwrap();
        let (_, runs) = place.json(&["runs", "--all", "-n", "0", "--sort", "name"]);
        let members = ["name", "ticks", "tip", "refusals"];
        let found = runs.get("items").unwrap().as_array().unwrap();
        let recorded = recorded.as_array().unwrap();
        assert_eq!(found.len(), recorded.len());
        for (found, recorded) in found.iter().zip(recorded.iter()) {
            for (now, then) in members.into_iter().zip(["run", "ticks", "tip", "refusals"]) {
                assert_eq!(found.get(now), recorded.get(then), "{}", room.display());
            }
            // The state at the tip is computed, too.
            place.ok(&["state", found.get("name").unwrap().as_str().unwrap()]);
        }
        if has_vault {
            assert!(place.ok(&["fsck"]).contains("6 values in 9 parts, each read"), "{}", room.display());
        }
    }
}

/// Brings the key of the vault of a store, if it has one.
fn bring_keys(room: &Path, place: &Place) -> bool {
    let keys = room.join("keys");
    if keys.is_dir() {
        copy(&keys, &place.config().join("keys"));
    }
    keys.is_dir()
}

/// A store whose values are files of `vault/` goes on with values in its log, becomes one of format 2, and loses nothing.
#[test]
fn a_store_of_format_1_goes_on_with_values_in_its_log() {
    let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/museum/2026-11-29-files");
    let place = Place::new();
    let store = place.path().join(".dendrer");
    copy(&room.join("store"), &store);
    bring_keys(&room, &place);
    let format = || fs::read_to_string(store.join("store.json")).unwrap();
    let files = || fs::read_dir(store.join("vault")).unwrap().count();
    let before = files();
    assert!(format().contains(r#""format":1,"#));
    let db = crate::databases::tables(&place);
    crate::databases::put(&db, "t", "1", None, "[]");
    crate::databases::put(&db, "t", "2", Some("1"), "[1]");
    drop(db);
    place.ok(&["import", "c.sqlite"]);
    assert_eq!(files(), before, "no file for a value");
    assert!(format().contains(r#""format":2,"#) && format().contains(r#""reader":2,"writer":2"#));
    assert!(place.ok(&["fsck"]).contains("8 values in 11 parts, each read"));
    place.ok(&["backup", "b"]);
    assert!(place.ok(&["fsck", "--store", "b"]).contains("8 values in 11 parts, each read"));
    place.ok(&["gc"]);
    place.ok(&["verify", "--all", "--replay"]);
}
