//! Histories that share are counted once: merges, picks, and lines that are sent again.

use crate::support::Place;

fn commit(place: &Place, run: &str, lines: &str) {
    let ran = place.run_with(&["commit", "--run", run], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

/// Two branches of one run: one took a guest off the list, the other added one.
#[test]
fn a_merge_brings_nothing_back() {
    let place = Place::with_store();
    commit(
        &place,
        "base",
        r#"{"type":"plan.update","delta":[{"set":"/guests/ivy","value":"yes"},{"set":"/guests/max","value":"yes"},{"set":"/room","value":1}]}"#,
    );
    for run in ["left", "right"] {
        place.ok(&["fork", "base@1", "--as", run]);
    }
    commit(
        &place,
        "left",
        r#"{"type":"plan.update","delta":[{"remove":"/guests/max"},{"set":"/room","value":2}]}"#,
    );
    commit(&place, "right", r#"{"type":"plan.update","delta":[{"set":"/guests/uma","value":"yes"}]}"#);
    for strategy in ["manual", "lww", "first"] {
        let run = format!("both-{strategy}");
        let made =
            place.ok(&["merge", "--as", &run, "--from", "right", "--from", "left", "--strategy", strategy]);
        assert!(made.contains("base       base@1, the last record in all histories\nremoved    guests.max   by b at tick 3\n"), "{made}");
        let (_, state) = place.json(&["state", &run]);
        assert_eq!(
            state.get("value").unwrap().to_string(),
            r#"{"guests":{"ivy":"yes","uma":"yes"},"room":2}"#
        );
    }
    // A merge of a merge knows its sources: what is in both is merged over what they share.
    commit(&place, "both-lww", r#"{"type":"plan.update","delta":[{"remove":"/guests/ivy"}]}"#);
    commit(&place, "left", r#"{"type":"plan.update","delta":[{"set":"/guests/zoe","value":"yes"}]}"#);
    let made = place.ok(&["merge", "--as", "again", "--from", "both-lww", "--from", "left"]);
    assert!(made.contains("base       left@3, the last record in all histories\n"), "{made}");
    let (_, state) = place.json(&["state", "again"]);
    assert_eq!(state.get("value").unwrap().to_string(), r#"{"guests":{"uma":"yes","zoe":"yes"},"room":2}"#);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("VERIFIED"));
}

/// Both changed one place: one removed it. All is kept until somebody decides, also for the removal.
#[test]
fn a_removal_beside_a_change_is_a_conflict() {
    let place = Place::with_store();
    commit(&place, "base", r#"{"type":"plan.update","delta":[{"set":"/room","value":{"name":"hall"}}]}"#);
    for run in ["left", "right"] {
        place.ok(&["fork", "base@1", "--as", run]);
    }
    commit(&place, "left", r#"{"type":"plan.update","delta":[{"remove":"/room"}]}"#);
    commit(&place, "right", r#"{"type":"plan.update","delta":[{"set":"/room/name","value":"attic"}]}"#);
    let made = place.ok(&["merge", "--as", "both", "--from", "left", "--from", "right"]);
    assert!(
        made.contains(
            r#"conflict   room   a removed it   b {"name":"attic"}   strategy manual: all kept, none taken"#
        ),
        "{made}"
    );
    place.ok(&["conflicts", "resolve", "both", "room", "--take", "a", "--reason", "it is let"]);
    let listed = place.ok(&["conflicts", "list", "both"]);
    assert!(listed.contains("a taken at tick 1: \"it is let\"") && listed.contains("0 open"), "{listed}");
    let (_, state) = place.json(&["state", "both"]);
    assert_eq!(state.get("value").unwrap().to_string(), "{}");
    // It is settled, so the run is a source again.
    place.ok(&["merge", "--as", "more", "--from", "both", "--from", "left"]);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("VERIFIED"));
}
