//! Stores that earlier builds recorded (`tests/museum`, made by `make.sh` there): each later build verifies and replays them.

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
    }
}
