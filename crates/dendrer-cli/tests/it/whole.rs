//! What is wrong with a store or a bundle as a whole is told by whoever reads it: a part is never shown as the whole.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::support::{Place, parse};

const LINE: &str = "{\"type\":\"plan.update\"}\n";

fn recorded() -> Place {
    let place = Place::with_store();
    for _ in 0..2 {
        place.run_with(&["commit", "--run", "r"], LINE.repeat(4).as_bytes());
    }
    place
}

fn segment(place: &Place) -> std::path::PathBuf {
    place.path().join(".dendrer/segments/00000000.seg")
}

/// Reading what is left is allowed, and says each time that it is not all.
fn check_that_a_loss_is_told(place: &Place) {
    for args in [&["runs"][..], &["log", "r"], &["show", "r@1"], &["bisect", "r", "--holds", "true"]] {
        let ran = place.run(args);
        assert!(
            ran.stderr.starts_with("warning[E03") && ran.stderr.contains("is TAMPERED"),
            "{args:?}: {}",
            ran.stderr
        );
        assert!(ran.code != 3, "{args:?}: what is lost is not what never was: {}", ran.stderr);
    }
    let (_, runs) = place.json(&["runs"]);
    assert!(runs.get("tampered").is_some());
    assert_eq!(place.run(&["verify", "r"]).code, 4);
    assert_eq!(place.run(&["verify", "--all"]).code, 4);
}

#[test]
fn a_store_without_its_log_has_lost_its_runs() {
    let place = recorded();
    std::fs::remove_file(segment(&place)).unwrap();
    check_that_a_loss_is_told(&place);
    let ran = place.run(&["log", "r"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("no run named \"r\"") && ran.stderr.contains("help: dendrer verify --all"),
        "{}",
        ran.stderr
    );
    let other = place.run(&["verify", "nobody"]);
    assert_eq!(other.code, 4, "{}", other.stderr);
}

#[test]
fn a_store_that_lost_its_last_group_says_so_to_whoever_reads_it() {
    let place = recorded();
    let path = segment(&place);
    let long = std::fs::read(&path).unwrap();
    std::fs::write(&path, &long[..long.len() - 40]).unwrap();
    check_that_a_loss_is_told(&place);
    std::fs::write(&path, long).unwrap();
    let ran = place.run(&["log", "r"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn a_store_that_was_put_back_is_not_the_one_that_was_signed_here() {
    let place = recorded();
    let old = place.path().join("old");
    copy(&place.path().join(".dendrer"), &old);
    place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    std::fs::remove_dir_all(place.path().join(".dendrer")).unwrap();
    std::fs::rename(&old, place.path().join(".dendrer")).unwrap();
    check_that_a_loss_is_told(&place);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

#[test]
fn a_damaged_index_is_left_out_and_made_again() {
    let place = Place::new();
    place.ok(&["demo", ".", "--size", "20000", "--no-tour"]);
    let path = place.path().join(".dendrer/index.sqlite");
    let mut index = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let pages = index.metadata().unwrap().len() / 4096;
    let mut all = Vec::new();
    index.read_to_end(&mut all).unwrap();
    let answers = |place: &Place| {
        [
            &["runs", "--json"][..],
            &["log", "generated-20000", "-n", "3", "--json"],
            &["show", "generated-20000@19999", "--json"],
        ]
        .map(|args| place.ok(args))
    };
    let before = answers(&place);
    for damaged in [1..2, 2..5, 1..pages] {
        for page in damaged {
            index.seek(SeekFrom::Start(page * 4096)).unwrap();
            index.write_all(&[0xa5; 4096]).unwrap();
        }
        assert_eq!(answers(&place), before);
        let verified = place.run(&["verify", "--all"]);
        assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
        assert!(verified.stdout.contains("not checked: the index, which is damaged"), "{}", verified.stdout);
        let checked = place.ok(&["fsck"]);
        assert!(checked.contains("damaged ("), "{checked}");
        let ran = place.run(&["doctor"]);
        assert!(
            ran.stdout.contains("warn   index") && ran.stdout.contains("dendrer doctor --fix"),
            "{}",
            ran.stdout
        );
        place.ok(&["doctor", "--fix"]);
        let ran = place.run(&["runs"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
        assert_eq!(answers(&place), before);
        index = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    }
    drop(index);
    // A writer says what is to be done, and that nothing was.
    let all = std::fs::metadata(&path).unwrap().len();
    std::fs::write(
        &path,
        [&std::fs::read(&path).unwrap()[..4096], &vec![0xa5; all as usize - 4096]].concat(),
    )
    .unwrap();
    let ran = place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    assert!(ran.code == 0 || ran.stderr.contains("help: dendrer doctor --fix"), "{}", ran.stderr);
}

#[test]
fn two_logs_that_one_key_signed_are_two_histories() {
    let place = recorded();
    let twin = Place::new();
    copy(place.path(), twin.path());
    for (of, line) in
        [(&place, LINE), (&twin, "{\"type\":\"plan.update\",\"intent\":{\"description\":\"another\"}}\n")]
    {
        of.run_with(&["commit", "--run", "r"], line.as_bytes());
        of.ok(&["export", "r", "-o", "r.dnd"]);
    }
    let elsewhere = Place::new();
    for (of, name) in [(&place, "a.dnd"), (&twin, "b.dnd")] {
        std::fs::copy(of.path().join("r.dnd"), elsewhere.path().join(name)).unwrap();
        elsewhere.ok(&["verify", name]);
    }
    let (code, both) = elsewhere.json(&["verify", "a.dnd", "b.dnd"]);
    let items = both.get("items").and_then(|items| items.as_array().cloned()).unwrap();
    assert_eq!(code, 4);
    for item in items.iter() {
        assert_eq!(item.get("verdict").and_then(|verdict| verdict.as_str()), Some("EQUIVOCATION"));
    }
    // Of logs that end elsewhere it is not known.
    twin.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    twin.ok(&["export", "r", "-o", "r.dnd"]);
    std::fs::copy(twin.path().join("r.dnd"), elsewhere.path().join("b.dnd")).unwrap();
    let said = elsewhere.ok(&["verify", "a.dnd", "b.dnd"]);
    assert!(said.contains("not checked: whether a.dnd and b.dnd are of one history"), "{said}");
    std::fs::copy(elsewhere.path().join("b.dnd"), elsewhere.path().join("c.dnd")).unwrap();
    let said = elsewhere.ok(&["verify", "a.dnd", "b.dnd", "c.dnd"]);
    assert!(
        said.contains("not checked: whether a.dnd and 2 others of the same log are of one history"),
        "{said}"
    );
}

#[test]
fn what_is_not_there_is_no_other_thing() {
    let place = Place::with_demo();
    for file in ["nobody", "nobody.dnd", "."] {
        let ran = place.run(&["runs", file]);
        assert!(
            ran.code != 0 && ran.stdout.is_empty() && ran.stderr.contains("E0108"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
    }
    let ran = place.run(&["verify", "logistics-run-47@22"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let shown = place.ok(&["show", "trip-planner-b@fork"]);
    assert_eq!(shown, place.ok(&["show", "trip-planner-b@31"]));
    let ran = place.run(&["show", "trip-planner-a@fork"]);
    assert!(ran.code == 3 && ran.stderr.contains("trip-planner-a is no fork"), "{}", ran.stderr);
    let (_, verified) = place.json(&["verify", "--all"]);
    let not_checked = verified.get("not_checked").and_then(|list| list.as_array().cloned()).unwrap();
    assert!(not_checked.iter().any(|item| item.as_str() == Some("replay (--replay)")));
    let sized = Place::new();
    let made = parse(&sized.ok(&["demo", ".", "--size", "5", "--json"]));
    assert_eq!(made.get("tour").and_then(|tour| tour.as_array().map(|tour| tour.len())), Some(0));
}

#[test]
fn what_may_be_read_and_not_written_is_exported_as_it_was_signed() {
    let place = recorded();
    let file = place.path().join(".dendrer/store.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"writer\":1"));
    std::fs::write(&file, text.replace("\"writer\":1", "\"writer\":2")).unwrap();
    place.ok(&["export", "r", "-o", "r.dnd"]);
    place.ok(&["verify", "r.dnd"]);
    let ran = place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    assert!(ran.code == 8 && ran.stderr.contains("has format 2 for writing"), "{}", ran.stderr);
}

/// What was found intact once is not known of a file that changed since, whatever its time of change says.
#[test]
#[cfg(unix)]
fn a_time_of_change_that_was_put_back_hides_nothing() {
    let place = recorded();
    let unverified = |place: &Place| {
        place
            .json(&["runs", "--unverified"])
            .1
            .get("items")
            .and_then(|items| items.as_array().map(|items| items.len()))
    };
    assert_eq!(unverified(&place), Some(1));
    place.ok(&["verify", "r"]);
    assert_eq!(unverified(&place), Some(0));
    let path = segment(&place);
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut all = Vec::new();
    file.read_to_end(&mut all).unwrap();
    // A byte of the last value: reading the list of runs does not come by it.
    let at = all.len() - 200;
    all[at] ^= 1;
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&all).unwrap();
    file.set_modified(before).unwrap();
    drop(file);
    assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), before);
    assert_ne!(unverified(&place), Some(0));
}
