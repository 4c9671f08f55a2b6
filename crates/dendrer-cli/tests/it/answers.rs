//! Where answers and reports go: over nothing that is needed, and under a name whatever was left beside it.

use std::path::PathBuf;
use std::process::Stdio;

use crate::support::{Place, ran};

fn place() -> Place {
    let place = Place::with_store();
    assert_eq!(place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n").code, 0);
    place
}

fn key(place: &Place) -> PathBuf {
    let keys = std::fs::read_dir(place.config().join("keys")).unwrap();
    keys.map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|it| it == "key"))
        .unwrap()
}

#[test]
fn no_answer_and_no_report_goes_over_a_key_or_into_a_store() {
    let place = place();
    let own = key(&place);
    let copy = place.path().join("copy.key");
    std::fs::copy(&own, &copy).unwrap();
    let secret = std::fs::read(&own).unwrap();
    let own = own.to_str().unwrap();
    let cases: [&[&str]; 9] = [
        &["--key", "copy.key", "log", "r", "-o", "copy.key"],
        &["export", "r", "-o", own],
        &["log", "r", "-o", own],
        &["doctor", "--report", own],
        &["log", "r", "-o", &format!("{own}.new")],
        &["--key", "copy.key", "export", "r", "-o", "copy.key"],
        &["--key", "copy.key", "doctor", "--report", "copy.key"],
        &["doctor", "--report", ".dendrer/segments/00000000.seg"],
        &["doctor", "--report", ".dendrer/new"],
    ];
    for args in cases {
        let refused = place.run(args);
        assert!(
            refused.code == 2 && refused.stderr.starts_with("error[E0106]"),
            "{args:?}: {}",
            refused.stderr
        );
    }
    assert_eq!(std::fs::read(own).unwrap(), secret);
    assert_eq!(std::fs::read(copy).unwrap(), secret);
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
    place.ok(&["doctor", "--report", "report.json"]);
}

#[test]
#[cfg(unix)]
fn what_stands_on_standard_input_or_has_another_name_is_not_written_over() {
    let place = place();
    let line = "{\"type\":\"plan.update\"}\n";
    std::fs::write(place.path().join("lines"), line).unwrap();
    let mut command = place.command(&["commit", "--run", "r", "-o", "lines"]);
    command.stdin(std::fs::File::open(place.path().join("lines")).unwrap());
    let refused = ran(command.output().unwrap());
    assert!(refused.code == 2 && refused.stderr.starts_with("error[E0106]"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(place.path().join("lines")).unwrap(), line);
    // A file that grows is written to where it is.
    let segment = place.path().join(".dendrer/segments/00000000.seg");
    let before = std::fs::read(&segment).unwrap();
    std::fs::hard_link(&segment, place.path().join("out")).unwrap();
    std::os::unix::fs::symlink(".dendrer/segments/zzz", place.path().join("link")).unwrap();
    for (out, code) in [("out", "E0801"), ("link", "E0106")] {
        let refused = place.run(&["log", "r", "--follow", "-o", out]);
        assert!(refused.stderr.starts_with(&format!("error[{code}]")), "{out}: {}", refused.stderr);
    }
    assert_eq!(std::fs::read(&segment).unwrap(), before);
    assert!(!place.path().join(".dendrer/segments/zzz").exists());
    // What leads to a file that is not there yet does so afterwards.
    std::os::unix::fs::symlink("target", place.path().join("dangling")).unwrap();
    place.ok(&["log", "r", "-o", "dangling"]);
    assert!(place.path().join("dangling").is_symlink() && place.path().join("target").is_file());
}

#[test]
#[cfg(target_os = "linux")]
fn an_answer_gets_its_name_whatever_was_left_beside_it_and_however_long_it_is() {
    let place = place();
    let script = "echo x > o.$$.partial; echo x > o.$$-0.partial; exec \"$0\" log r -o o";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_dendrer")]).current_dir(place.path());
    let ran = command.env("HOME", place.path()).stdin(Stdio::null()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(std::fs::read_to_string(place.path().join("o")).unwrap().contains("plan.update"));
    place.ok(&["log", "r", "-o", &"n".repeat(255)]);
    // The other names of standard output are not files to be replaced.
    std::fs::write(place.path().join("all"), "old\n").unwrap();
    let all = std::fs::File::options().append(true).open(place.path().join("all")).unwrap();
    let mut command = place.command(&["log", "r", "-o", "/dev/stdout"]);
    assert!(command.stdout(all).status().unwrap().success());
    let all = std::fs::read_to_string(place.path().join("all")).unwrap();
    assert!(all.starts_with("old\n") && all.contains("plan.update"), "{all}");
}

/// What a verb makes is not there when it begins, and no place for its answer.
#[test]
fn no_answer_goes_over_what_is_made_for_it() {
    let place = place();
    place.ok(&["backup", "BK"]);
    std::fs::create_dir(place.path().join("empty")).unwrap();
    std::fs::create_dir_all(place.path().join("there/.dendrer")).unwrap();
    let cases: [(&[&str], i32); 16] = [
        (&["init", "--store", "q", "-o", "q"], 2),
        (&["restore", "BK", "q", "-o", "q"], 2),
        (&["restore", "BK", "there", "-o", "there/.dendrer.restoring"], 2),
        (&["demo", "q", "-o", "q"], 2),
        (&["runs", "-o", "empty/new/"], 8),
        (&["init", "new", "--key", "k", "-o", "k"], 2),
        (&["init", "new", "-o", "new/.dendrer/store.json"], 8),
        (&["init", "there", "-o", "there/.dendrer/store.json"], 2),
        (&["backup", "B", "-o", "B/store.json"], 8),
        (&["backup", "empty", "-o", "empty/store.json"], 2),
        (&["restore", "BK", "R", "-o", "R/.dendrer/segments/00000000.seg"], 8),
        (&["restore", "BK", "there", "-o", "there/.dendrer/checkpoint"], 2),
        (&["demo", "-o", "dendrer-demo/.dendrer/checkpoint"], 8),
        (&["demo", "empty", "-o", "empty/tampered.dnd"], 2),
        (&["doctor", "--report", "x", "-o", "x"], 2),
        (&["doctor", "--report", "/dev/stdout"], 2),
    ];
    for (args, code) in cases {
        let refused = place.run(args);
        assert_eq!(refused.code, code, "{args:?}: {}{}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains("nothing was done"), "{args:?}: {}", refused.stderr);
    }
    let names = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.filter(|name| name != ".config").collect();
    names.sort();
    assert_eq!(names, [".dendrer", "BK", "empty", "there"]);
    assert_eq!(place.ok(&["init", "new", "--key", "k", "-o", "said"]), "");
    assert!(std::fs::read_to_string(place.path().join("k")).unwrap().contains("PRIVATE"));
    // A store without its descriptor is one that somebody mends.
    std::fs::rename(place.path().join(".dendrer/store.json"), place.path().join("aside")).unwrap();
    let refused = place.run(&["--store", "new", "runs", "-o", ".dendrer/segments/00000000.seg"]);
    assert!(refused.code == 2 && refused.stderr.contains("is in the store"), "{}", refused.stderr);
}

/// What was not read because the answer goes there is not written over either, whatever else there was to do.
#[test]
fn an_answer_over_a_bundle_that_was_to_be_verified_is_none() {
    let place = place();
    place.ok(&["demo", "--no-tour"]);
    let bundle = |name: &str| place.path().join("dendrer-demo").join(name);
    std::fs::copy(bundle("logistics-run-47.dnd"), bundle("1.dnd")).unwrap();
    let whole = std::fs::read(bundle("1.dnd")).unwrap();
    for args in [
        &["verify", "1.dnd", "--keep-going", "--json", "-o", "1.dnd"][..],
        &["verify", "tampered.dnd", "1.dnd", "--keep-going", "-o", "1.dnd"],
        &["verify", "--suite", "corrupt/suite.json", "-o", "corrupt/gap.dnd"],
    ] {
        let gap = std::fs::read(bundle("corrupt/gap.dnd")).unwrap();
        let mut command = place.command(args);
        let refused = ran(command.current_dir(place.path().join("dendrer-demo")).output().unwrap());
        let said = refused.stdout + &refused.stderr;
        assert!(refused.code == 2 && said.contains("E0106"), "{args:?}: {} {said}", refused.code);
        assert_eq!(std::fs::read(bundle("1.dnd")).unwrap(), whole);
        assert_eq!(std::fs::read(bundle("corrupt/gap.dnd")).unwrap(), gap);
    }
}

/// Help, version and greeting are answers: where they cannot be written, that is told.
#[test]
#[cfg(target_os = "linux")]
fn what_is_printed_without_a_verb_is_not_lost_without_a_word() {
    let place = Place::new();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for args in [&[][..], &["--help"], &["log", "--help"], &["-V"], &["help"]] {
        let ran = ran(place.command(args).stdout(full()).stderr(Stdio::piped()).output().unwrap());
        assert!(
            ran.code == 8 && ran.stderr.contains("error[E0801]"),
            "{args:?}: {} {}",
            ran.code,
            ran.stderr
        );
        let mut command = place.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let gone = crate::support::ran(child.wait_with_output().unwrap());
        assert!(gone.code == 0 && gone.stderr.is_empty(), "{args:?}: {} {}", gone.code, gone.stderr);
    }
}
