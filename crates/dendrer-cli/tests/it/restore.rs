//! Backups and restores where something is not as it should be: files that are shared, marks in the wrong place, work that was
//! cut off. Nothing that was acknowledged goes, and what is older is not taken for what is newer.

use std::path::Path;
use std::process::Stdio;

use dendrer_object::Digest;
use dendrer_object::note::{Checkpoint, SigningKey};

use crate::keep::{code_of, commit, files, filled};
use crate::lies::writes;
use crate::support::{Place, at_home, can_strace, copy, ran};

/// A backup writes to files of its own: one that shares its segments with the store, or holds what the store does not, is none
/// to go on from.
#[cfg(unix)]
#[test]
fn a_backup_cuts_nothing_but_what_an_interrupted_one_left() {
    let place = filled(50);
    place.ok(&["backup", "bk"]);
    let segment = |dir: &str| place.path().join(dir).join("segments/00000000.seg");
    std::fs::remove_file(segment("bk")).unwrap();
    std::fs::hard_link(segment(".dendrer"), segment("bk")).unwrap();
    commit(&place, "r", 50, 50);
    let whole = std::fs::read(segment(".dendrer")).unwrap();
    let refused = place.run(&["backup", "bk"]);
    assert!(refused.code == 5 && refused.stderr.contains("that of the store itself"), "{}", refused.stderr);
    // Two backups that share theirs.
    std::fs::remove_dir_all(place.path().join("bk")).unwrap();
    place.ok(&["backup", "bk"]);
    commit(&place, "r", 10, 100);
    std::fs::hard_link(segment("bk"), place.path().join("another name")).unwrap();
    let refused = place.run(&["backup", "bk"]);
    assert!(refused.code == 5 && refused.stderr.contains("2 names"), "{}", refused.stderr);
    std::fs::remove_file(place.path().join("another name")).unwrap();
    place.ok(&["backup", "bk"]);
    assert!(std::fs::read(segment(".dendrer")).unwrap().starts_with(&whole));
    // A store with the mark of an older backup in it.
    let mark = std::fs::read(place.path().join("bk/backup.json")).unwrap();
    place.ok(&["restore", "bk", "old"]);
    place.ok(&["restore", "bk", "other"]);
    let other = place.path().join("other/.dendrer");
    place.command(&["commit", "--store", "other", "--run", "r", "--file", "-"]).output().unwrap();
    let mut child = place.command(&["commit", "--store", "other", "--run", "r"]);
    std::fs::write(place.path().join("three.jsonl"), writes(0..3)).unwrap();
    child.args(["--file", "three.jsonl"]);
    assert!(child.output().unwrap().status.success());
    let other = {
        let renamed = place.path().join("as-backup");
        std::fs::rename(&other, &renamed).unwrap();
        renamed
    };
    let before = files(&other.join("segments"));
    std::fs::write(other.join("backup.json"), &mark).unwrap();
    for checkpoint in [true, false] {
        if !checkpoint {
            std::fs::copy(place.path().join("bk/checkpoint"), other.join("checkpoint")).unwrap();
        }
        let refused = place.run(&["backup", "as-backup", "--store", "old"]);
        assert!(refused.code == 5, "{}{}", refused.stdout, refused.stderr);
        assert_eq!(files(&other.join("segments")), before);
    }
}

/// The mark of a backup says where a log ends. In a store it would make an older log of it, and nobody would know.
#[test]
fn a_mark_of_a_backup_in_a_store_hides_nothing() {
    let place = filled(10);
    place.ok(&["backup", "safe"]);
    commit(&place, "r", 30, 10);
    let store = place.path().join(".dendrer");
    let latest = std::fs::read(store.join("checkpoint")).unwrap();
    for file in ["backup.json", "checkpoint"] {
        std::fs::copy(place.path().join("safe").join(file), store.join(file)).unwrap();
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let asked = |args: &[&str], home: &Path| {
        ran(at_home(&mut place.command(args), home).stdin(Stdio::null()).output().unwrap())
    };
    // Whether anybody here remembers a longer log or not.
    for home in [place.path(), elsewhere.path()] {
        for args in [&["runs"][..], &["log", "r"], &["state", "r"]] {
            let said = asked(args, home);
            assert!(said.code <= 1 && said.stderr.starts_with("warning[E0307]"), "{args:?}: {}", said.stderr);
            assert!(said.stderr.contains("backup.json"), "{args:?}: {}", said.stderr);
        }
        assert!(asked(&["show", "r@30"], home).code == 4, "what is not found may be behind the mark");
        let gate = asked(&["bisect", "r", "--holds", "!has(state.x)"], home);
        assert!(gate.code == 4 && gate.stderr.contains("backup.json"), "{}", gate.stderr);
        for args in [&["fsck"][..], &["doctor"], &["verify", "--all"], &["verify", "r"]] {
            let said = asked(args, home);
            let ends = "ends the log at 12 records";
            assert!(said.code == 4 && said.stdout.contains(ends), "{args:?}: {}", said.stdout);
        }
        let said = asked(&["commit", "--run", "r", "--file", "-"], home);
        assert!(said.code == 5 && said.stderr.contains("help: mv "), "{}", said.stderr);
        assert!(!said.stderr.contains("dendrer restore"), "{}", said.stderr);
        // Nothing is made of it that would pass for the whole of it.
        for args in [&["backup", "second"][..], &["restore", ".dendrer", "second"]] {
            let said = asked(args, home);
            assert!(said.code == 4 && said.stderr.contains("E0307"), "{args:?}: {}", said.stderr);
        }
        assert!(!place.path().join("second").exists());
        let said = asked(&["restore", "safe", "--replace"], home);
        assert!(said.code == 5 && said.stderr.contains("E0114"), "{}", said.stderr);
    }
    // What is said to help does.
    std::fs::rename(store.join("backup.json"), place.path().join(".dendrer.backup.json")).unwrap();
    commit(&place, "r", 1, 40);
    assert_ne!(std::fs::read(store.join("checkpoint")).unwrap(), latest);
    place.ok(&["verify", "--all", "--replay"]);
}

/// What stands behind the end of a backup is of a later one that was cut off, and the backup is what it was.
#[test]
fn what_a_backup_that_was_cut_off_left_behind_the_end_is_a_note() {
    let place = filled(10);
    place.ok(&["backup", "safe"]);
    commit(&place, "r", 5, 10);
    for args in [&["log", "r", "--store", "safe"][..], &["runs", "--store", "safe"]] {
        let quiet = place.run(args);
        assert!(quiet.code == 0 && quiet.stderr.is_empty(), "{args:?}: {}", quiet.stderr);
    }
    let segment = Path::new("segments/00000000.seg");
    std::fs::copy(place.path().join(".dendrer").join(segment), place.path().join("safe").join(segment))
        .unwrap();
    let said = place.run(&["log", "r", "--store", "safe"]);
    assert!(said.code == 0 && said.stderr.starts_with("note: "), "{}", said.stderr);
    for args in [
        &["fsck", "--store", "safe"][..],
        &["doctor", "--store", "safe"],
        &["verify", "--all", "--store", "safe"],
    ] {
        let said = place.ok(args);
        assert!(said.contains("behind the end of this backup"), "{args:?}: {said}");
    }
    place.ok(&["backup", "safe"]);
    assert!(!place.ok(&["fsck", "--store", "safe"]).contains("behind the end"));
}

/// A backup that was copied into the place of a store is an older log, and no place for one is made by `backup`.
#[test]
fn a_backup_in_the_place_of_a_store_is_an_older_log() {
    let place = filled(10);
    place.ok(&["backup", "safe"]);
    assert_eq!(code_of(&place.json(&["backup", "elsewhere/.dendrer"]).1), "E0106");
    std::fs::remove_dir_all(place.path().join(".dendrer")).unwrap();
    std::fs::rename(place.path().join("safe"), place.path().join(".dendrer")).unwrap();
    let said = place.run(&["runs"]);
    assert!(said.code == 0 && said.stderr.starts_with("warning[E0806]"), "{}", said.stderr);
    let doctor = place.run(&["doctor"]);
    assert!(doctor.code == 0 && doctor.stdout.contains("in the place of a store"), "{}", doctor.stdout);
    // The one that was signed here is longer.
    let place = filled(10);
    place.ok(&["backup", "safe"]);
    commit(&place, "r", 5, 10);
    std::fs::remove_dir_all(place.path().join(".dendrer")).unwrap();
    std::fs::rename(place.path().join("safe"), place.path().join(".dendrer")).unwrap();
    let said = place.run(&["runs"]);
    assert!(said.code == 0 && said.stderr.starts_with("warning[E0307]"), "{}", said.stderr);
    assert_eq!(place.run(&["verify", "--all"]).code, 4);
    assert_eq!(place.run(&["doctor"]).code, 4);
}

/// A restore that was cut off leaves no store where one was. The one that is meant is not further up, and not a new one.
#[test]
fn where_a_restore_was_cut_off_no_other_store_is_taken_for_the_one_that_was_there() {
    let place = filled(3);
    let inner = place.path().join("inner");
    std::fs::create_dir_all(inner.join("deeper")).unwrap();
    let inside = |dir: &Path, args: &[&str]| {
        let mut command = place.command(args);
        ran(command.current_dir(dir).stdin(Stdio::null()).output().unwrap())
    };
    let fine = |dir: &Path, args: &[&str]| {
        let ran = inside(dir, args);
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    };
    fine(&inner, &["init"]);
    std::fs::write(place.path().join("line"), "{\"type\":\"plan.update\"}\n").unwrap();
    fine(&inner, &["commit", "--run", "mine", "--file", "../line"]);
    fine(&inner, &["backup", "../safe"]);
    let at = |name: &str| inner.join(name);
    for (left, helps) in [
        (&[".dendrer.restoring", ".dendrer.replaced"][..], "help: mv "),
        (&[".dendrer.replaced"], "help: mv "),
        (&[".dendrer.restoring"], "help: dendrer restore BACKUP "),
    ] {
        std::fs::rename(at(".dendrer"), at(".dendrer.replaced")).unwrap();
        fine(&inner, &["restore", "../safe", "../copy"]);
        std::fs::rename(place.path().join("copy/.dendrer"), at(".dendrer.restoring")).unwrap();
        for name in [".dendrer.restoring", ".dendrer.replaced"] {
            if !left.contains(&name) {
                std::fs::rename(at(name), place.path().join("away")).unwrap();
            }
        }
        for (dir, args) in [
            (&inner, &["runs"][..]),
            (&at("deeper"), &["log", "mine"]),
            (&at("deeper"), &["commit", "--run", "mine", "--file", "../../line"]),
            (&inner, &["init"]),
            (&inner, &["demo", "."]),
            (&inner, &["runs", "--store", "."]),
            (&inner, &["runs", "--store", ".dendrer"]),
        ] {
            let said = inside(dir, args);
            assert!(said.code == 3 && said.stderr.contains("E0103"), "{left:?} {args:?}: {}", said.stderr);
            assert!(said.stderr.contains(helps), "{left:?} {args:?}: {}", said.stderr);
            assert!(!said.stderr.contains("dendrer init"), "{left:?} {args:?}: {}", said.stderr);
            assert!(left.iter().all(|name| said.stderr.contains(name)), "{left:?} {args:?}: {}", said.stderr);
            assert!(!at(".dendrer").exists(), "{args:?}");
        }
        let doctor = inside(&inner, &["doctor"]);
        assert!(
            !doctor.stdout.contains("dendrer init") && doctor.stdout.contains(left[0]),
            "{}",
            doctor.stdout
        );
        // The one that was there is put back, or the restore is run again.
        if left.contains(&".dendrer.replaced") {
            std::fs::rename(at(".dendrer.replaced"), at(".dendrer")).unwrap();
            assert!(fine(&inner, &["runs"]).contains("mine"));
            std::fs::rename(at(".dendrer"), at(".dendrer.replaced")).unwrap();
        }
        let again = inside(&inner, &["restore", "../safe", "--replace"]);
        assert_eq!(again.code, 0, "{}", again.stderr);
        assert_eq!(
            again.stderr.contains("was cut off"),
            left.contains(&".dendrer.restoring"),
            "{}",
            again.stderr
        );
        assert!(fine(&inner, &["runs"]).contains("mine"));
        fine(&inner, &["verify", "--all"]);
        for entry in std::fs::read_dir(&inner).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().starts_with(".dendrer.") {
                std::fs::remove_dir_all(path).unwrap();
            }
        }
        std::fs::remove_dir_all(place.path().join("away")).ok();
        std::fs::remove_dir_all(place.path().join("copy")).unwrap();
    }
    assert!(!place.ok(&["runs"]).contains("mine"), "nothing was committed to the store above");
}

/// At every call that renames, the program is stopped, where the system exchanges names and where it does not.
#[test]
#[cfg(target_os = "linux")]
fn a_restore_that_is_killed_leaves_a_store_or_says_where_it_is() {
    if !can_strace() {
        return;
    }
    const LAST: u32 = 40;
    for exchanges in [true, false] {
        let mut stopped_between = 0;
        for when in 1.. {
            assert!(when < LAST, "it does not end");
            let place = filled(2);
            place.ok(&["backup", "safe"]);
            let mut command = std::process::Command::new("strace");
            command.args(["-f", "-y", "-o", "trace", "-e", "trace=rename,renameat2,fsync"]);
            command.args(["-e", &format!("inject=rename:signal=KILL:when={when}")]);
            if !exchanges {
                command.args(["-e", "inject=renameat2:error=EINVAL"]);
            }
            command.arg(env!("CARGO_BIN_EXE_dendrer")).args(["restore", "safe", "--replace"]);
            let status = at_home(&mut command, place.path())
                .current_dir(place.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            if status.success() {
                assert!(place.path().join(".dendrer.replaced/store.json").exists());
                // The names are on disk when the program says so.
                let trace = std::fs::read_to_string(place.path().join("trace")).unwrap();
                let last = |text: &str| trace.rfind(text).unwrap();
                let dir = place.path().canonicalize().unwrap();
                assert!(last("rename") < last(&format!("<{}>)", dir.display())), "{trace}");
                break;
            }
            let is_there = place.path().join(".dendrer").exists();
            assert!(is_there || !exchanges, "a moment without a store");
            let said = place.run(&["log", "r"]);
            match is_there {
                true => assert_eq!(said.code, 0, "{}", said.stderr),
                false => {
                    stopped_between += 1;
                    assert!(said.code == 3 && said.stderr.contains(".dendrer.replaced"), "{}", said.stderr);
                }
            }
            place.ok(&["restore", "safe", "--replace"]);
            place.ok(&["verify", "--all"]);
            commit(&place, "r", 1, 2);
        }
        assert_eq!(stopped_between, u32::from(!exchanges));
    }
}

/// What a store says of its own key, somebody may have written there. Only what the key of the log signed is remembered.
#[test]
fn a_stranger_has_nothing_remembered_by_a_restore() {
    let place = Place::with_store();
    let line = b"{\"type\":\"plan.update\"}\n";
    assert_eq!(place.run_with(&["commit", "--run", "r"], line).code, 0);
    place.ok(&["backup", "safe"]);
    let store = place.path().join(".dendrer");
    let text = std::fs::read_to_string(store.join("store.json")).unwrap();
    let origin =
        std::fs::read_to_string(store.join("checkpoint")).unwrap().lines().next().unwrap().to_owned();
    let stranger = SigningKey::from_seed(&origin, [7; 32]).unwrap();
    let own =
        text.split('"').find(|part| part.starts_with(&origin) && part.contains('+')).unwrap().to_owned();
    std::fs::write(store.join("store.json"), text.replace(&own, &stranger.verifier_key().to_string()))
        .unwrap();
    let larger = Checkpoint::new(&origin, 1_000_000, Digest::of_parts(&[b"x"])).unwrap();
    std::fs::write(store.join("checkpoint"), larger.sign(&stranger).unwrap().to_string()).unwrap();
    assert_eq!(place.run(&["verify", "--all"]).code, 4);
    place.ok(&["restore", "safe", "--replace", "--discard-newer"]);
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
    assert_eq!(place.run_with(&["commit", "--run", "r"], line).code, 0);
}

/// A store is restored when it is broken; what it is cannot keep anybody from that, and what is said to help does.
#[test]
fn a_store_that_is_broken_in_any_file_can_be_replaced() {
    for file in ["checkpoint", "store.json", "lock", "segments/00000000.seg"] {
        for cut in [true, false] {
            let place = Place::with_store();
            let line = b"{\"type\":\"plan.update\"}\n";
            assert_eq!(place.run_with(&["commit", "--run", "r"], line).code, 0);
            place.ok(&["backup", "safe"]);
            let path = place.path().join(".dendrer").join(file);
            match cut {
                true => std::fs::write(&path, "{\"dendrer").unwrap(),
                false => {
                    std::fs::remove_file(&path).unwrap();
                    std::fs::create_dir(&path).unwrap();
                }
            }
            let restored = place.run(&["restore", "safe", "--replace", "--discard-newer"]);
            if restored.code != 0 {
                let help = restored.stderr.lines().find_map(|line| line.strip_prefix("help: mv "));
                let help = help.unwrap_or_else(|| panic!("{file} {cut}: {}", restored.stderr));
                let (from, to) = help.split_once(' ').unwrap();
                std::fs::rename(place.path().join(from), place.path().join(to)).unwrap();
                place.ok(&["restore", "safe"]);
            }
            assert_eq!(place.run(&["verify", "--all"]).code, 0, "{file} {cut}");
            assert_eq!(place.run_with(&["commit", "--run", "r"], line).code, 0, "{file} {cut}");
        }
    }
}

/// What was put back to before is whole, and less than there was.
#[test]
fn a_backup_of_a_log_that_was_put_back_says_so() {
    let place = Place::with_store();
    let line = b"{\"type\":\"plan.update\"}\n";
    assert_eq!(place.run_with(&["commit", "--run", "r"], line).code, 0);
    let (store, older) = (place.path().join(".dendrer"), place.path().join("older"));
    copy(&store, &older);
    assert!(!place.run(&["backup", "good"]).stderr.contains("warning"));
    assert!(!place.ok(&["fsck"]).contains("heads"));
    assert_eq!(place.run_with(&["commit", "--run", "r"], line).code, 0);
    std::fs::remove_dir_all(&store).unwrap();
    copy(&older, &store);
    let made = place.run(&["backup", "less"]);
    assert!(made.code == 0 && made.stderr.contains("warning[E0307]"), "{}", made.stderr);
    let looked = place.run(&["fsck"]);
    assert!(looked.stdout.contains("not the log that was signed here"), "{}", looked.stdout);
}

/// Where the last thing that fails is to make the names durable, the store has been restored, and whoever asked is told so.
#[test]
#[cfg(target_os = "linux")]
fn a_restore_that_took_place_says_so() {
    if !can_strace() {
        return;
    }
    let place = Place::with_store();
    let line = b"{\"type\":\"plan.update\"}\n";
    assert_eq!(place.run_with(&["commit", "--run", "r"], line).code, 0);
    place.ok(&["backup", "BK"]);
    let (store, aside) = (place.path().join(".dendrer"), place.path().join("aside"));
    assert_eq!(place.run_with(&["commit", "--run", "r"], line).code, 0);
    crate::support::copy(&store, &aside);
    let ticks = || place.ok(&["runs", "--json", "--fields", "name,ticks"]);
    let newer = ticks();
    let mut told = 0;
    for when in 1..16 {
        for left in ["", ".replaced", ".restoring"] {
            let _ = std::fs::remove_dir_all(place.path().join(format!(".dendrer{left}")));
        }
        crate::support::copy(&aside, &store);
        let mut command = std::process::Command::new("strace");
        command.args(["-f", "-o", "/dev/null", "-e"]).arg(format!("inject=fsync:error=EIO:when={when}"));
        command.arg(env!("CARGO_BIN_EXE_dendrer")).args(["restore", "BK", "--replace", "--discard-newer"]);
        command.current_dir(place.path()).env("HOME", place.path()).stdin(std::process::Stdio::null());
        let ran = crate::support::ran(command.output().unwrap());
        let is_restored = ticks() != newer;
        let is_told = ran.stderr.contains("is the restored store");
        assert!(ran.code == 0 || is_told == is_restored, "{when}: {} {}", ran.code, ran.stderr);
        told += u64::from(is_told);
    }
    assert!(told > 0, "no failure came that late");
}
