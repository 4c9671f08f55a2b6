//! What was last signed here is remembered outside of stores. Where that cannot be read, nobody takes it for nothing.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dendrer_object::Digest;
use dendrer_object::note::Checkpoint;

use crate::support::{Place, can_strace, copy, ran};

const LINE: &str = "{\"type\":\"plan.update\"}\n";

/// A place with a store of some records, all signed.
fn signed(lines: usize) -> Place {
    let place = Place::with_store();
    let ran = place.run_with(&["commit", "--run", "r"], LINE.repeat(lines).as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    place
}

/// The one file of a folder of the configuration that ends so.
fn kept(place: &Place, folder: &str, ends: &str) -> PathBuf {
    let entries = std::fs::read_dir(place.config().join(folder)).unwrap();
    let mut found = entries.map(|entry| entry.unwrap().path());
    found.find(|path| path.to_string_lossy().ends_with(ends)).unwrap()
}

#[test]
fn a_head_that_cannot_be_read_is_not_taken_for_none() {
    let place = signed(3);
    let store = place.path().join(".dendrer");
    let older = place.path().join("older");
    copy(&store, &older);
    place.run_with(&["commit", "--run", "r"], LINE.repeat(5).as_bytes());
    let head = kept(&place, "heads", ".head");
    let real = std::fs::read(&head).unwrap();
    let other = Checkpoint::new("dendrer/another", 3, Digest::of_parts(&[b"x"])).unwrap().to_string();
    // The store is put back to what it was, and what would show that cannot be read.
    std::fs::remove_dir_all(&store).unwrap();
    copy(&older, &store);
    let contents: [(&str, Option<&[u8]>); 5] = [
        ("E0306", Some(b"")),
        ("E0306", Some(b"\xff\xfe")),
        ("E0306", Some(&real[..real.len() / 2])),
        ("E0306", Some(other.as_bytes())),
        ("E0801", None),
    ];
    for (code, content) in contents {
        std::fs::remove_file(&head).ok();
        match content {
            Some(content) => std::fs::write(&head, content).unwrap(),
            None => std::fs::create_dir(&head).unwrap(),
        }
        let exit = if code == "E0801" { 8 } else { 4 };
        let size = std::fs::metadata(store.join("segments/00000000.seg")).unwrap().len();
        let refused = place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
        assert_eq!(refused.code, exit, "{}", refused.stderr);
        assert!(refused.stderr.starts_with(&format!("error[{code}]")), "{}", refused.stderr);
        assert!(refused.stderr.contains(head.to_str().unwrap()), "{}", refused.stderr);
        assert!(refused.stderr.contains("note: nothing was committed"), "{}", refused.stderr);
        assert_eq!(std::fs::metadata(store.join("segments/00000000.seg")).unwrap().len(), size);
        match content {
            Some(content) => assert_eq!(std::fs::read(&head).unwrap(), content, "nothing was written over"),
            None => assert!(head.is_dir(), "nothing was written over"),
        }
        let doctor = place.run(&["doctor"]);
        assert_eq!(doctor.code, if exit == 4 { 4 } else { 1 }, "{}", doctor.stdout);
        assert!(
            doctor.stdout.contains(code)
                && doctor.stdout.contains(if exit == 4 {
                    "next: mv "
                } else {
                    "next: dendrer explain E0801"
                }),
            "{}",
            doctor.stdout
        );
        // What is there can be read, with a word on it.
        for args in [&["runs"][..], &["log", "r"]] {
            let read = place.run(args);
            assert!(
                read.code == 0 && read.stderr.starts_with(&format!("warning[{code}]")),
                "{args:?}: {}",
                read.stderr
            );
        }
        place.ok(&["export", "r", "-o", "r.dnd"]);
        for args in
            [&["verify", "--all"][..], &["verify", "r.dnd"], &["verify", "--all", "--require-witness"]]
        {
            let verified = place.run(args);
            assert_eq!(verified.code, 6, "{args:?}: {}", verified.stdout);
            assert!(
                verified.stdout.contains("not checked: what is kept here of this log"),
                "{}",
                verified.stdout
            );
            assert!(verified.stdout.contains("witness   UNWITNESSED"), "{}", verified.stdout);
        }
        let _ = std::fs::remove_dir(&head);
    }
    // With the head back in its place the log is an older one.
    std::fs::remove_file(&head).ok();
    std::fs::write(&head, real).unwrap();
    assert_eq!(place.run_with(&["commit", "--run", "r"], LINE.as_bytes()).code, 4);
    // What is said to help does.
    std::fs::rename(&head, head.with_extension("head.aside")).unwrap();
    assert_eq!(place.run_with(&["commit", "--run", "r"], LINE.as_bytes()).code, 0);
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
}

/// Whether the key of the log was exchanged is not known without the one that it was made with.
#[test]
fn a_key_that_cannot_be_read_is_not_taken_for_none() {
    let place = signed(3);
    place.ok(&["backup", "safe"]);
    let key = kept(&place, "keys", ".key");
    std::fs::write(&key, "no key").unwrap();
    let verified = place.run(&["verify", "--all"]);
    assert_eq!(verified.code, 6, "{}", verified.stdout);
    assert!(verified.stdout.contains("cannot be used"), "{}", verified.stdout);
    let restored = place.run(&["restore", "safe", "there"]);
    assert!(restored.code == 8 && restored.stderr.contains("E0804"), "{}", restored.stderr);
    assert!(!place.path().join("there").exists());
}

/// Whoever signs looks at what was signed last when it is its turn, and not before.
#[test]
fn what_somebody_else_signed_meanwhile_is_looked_at_before_signing() {
    let place = signed(3);
    let head = kept(&place, "heads", ".head");
    let known = Checkpoint::parse(&std::fs::read_to_string(&head).unwrap()).unwrap();
    let turn = std::fs::File::create(head.with_extension("lock")).unwrap();
    turn.lock().unwrap();
    let store = place.path().join(".dendrer");
    let before = std::fs::read(store.join("checkpoint")).unwrap();
    let size = || std::fs::metadata(store.join("segments/00000000.seg")).unwrap().len();
    let length = size();
    let line = place.path().join("line");
    std::fs::write(&line, LINE).unwrap();
    let mut child = place
        .command(&["commit", "--run", "r", "--file", "line"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has written its record, and waits for its turn to sign.
    let ends = Instant::now() + Duration::from_secs(60);
    while size() == length {
        assert!(Instant::now() < ends && child.try_wait().unwrap().is_none(), "it did not wait");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(std::fs::read(store.join("checkpoint")).unwrap(), before, "it did not wait");
    let larger = Checkpoint::new(known.origin(), 100, Digest::of_parts(&[b"x"])).unwrap().to_string();
    // As the program does it: the child may be looking.
    let other = head.with_extension("other");
    std::fs::write(&other, &larger).unwrap();
    std::fs::rename(&other, &head).unwrap();
    turn.unlock().unwrap();
    let ran = ran(child.wait_with_output().unwrap());
    assert!(ran.code == 4 && ran.stderr.contains("E0307"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&head).unwrap(), larger);
    assert_eq!(std::fs::read(store.join("checkpoint")).unwrap(), before);
}

/// Of two copies of a store one goes on, and no two roots are signed for one size.
#[test]
fn of_two_copies_that_sign_at_once_one_does() {
    for _ in 0..10 {
        let place = signed(3);
        copy(&place.path().join(".dendrer"), &place.path().join("copy"));
        std::fs::write(place.path().join("line"), LINE).unwrap();
        let start = |store: &str| {
            let mut command = place.command(&["commit", "--run", "r", "--file", "line", "--store", store]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let children = [start(".dendrer"), start("copy")];
        let codes = children.map(|mut child| child.wait().unwrap().code().unwrap());
        assert!(codes == [0, 4] || codes == [4, 0], "{codes:?}");
    }
}

/// A program that is stopped before others can see what it signed has remembered it, or has not signed it.
#[test]
#[cfg(target_os = "linux")]
fn whatever_was_signed_is_remembered_wherever_the_program_is_stopped() {
    if !can_strace() {
        return;
    }
    let place = signed(3);
    let store = place.path().join(".dendrer");
    let aside = place.path().join("aside");
    copy(&store, &aside);
    let config = place.path().join("config aside");
    copy(&place.config(), &config);
    std::fs::write(place.path().join("line"), LINE).unwrap();
    let signed = |path: &std::path::Path| {
        let text = std::fs::read_to_string(path).unwrap();
        // A note is what was signed, an empty line, and signatures.
        let signed = text.split_once("\n\n").map_or(text.clone(), |(text, _)| format!("{text}\n"));
        Checkpoint::parse(&signed).unwrap().size()
    };
    let head = kept(&place, "heads", ".head");
    let mut ahead = 0;
    for call in ["linkat", "rename,renameat,renameat2", "fsync,fdatasync", "openat"] {
        for when in 1..12 {
            std::fs::remove_dir_all(&store).unwrap();
            copy(&aside, &store);
            std::fs::remove_dir_all(place.config()).unwrap();
            copy(&config, &place.config());
            let mut command = Command::new("strace");
            let skip = if call == "openat" { 30 } else { 0 };
            command.args(["-f", "-o", "/dev/null", "-e"]);
            command.arg(format!("inject={call}:signal=KILL:when={}", skip + when));
            command.arg(env!("CARGO_BIN_EXE_dendrer")).args(["commit", "--run", "r", "--file", "line"]);
            command.current_dir(place.path()).env("HOME", place.path()).stdin(Stdio::null());
            command.output().unwrap();
            let (here, there) = (signed(&store.join("checkpoint")), signed(&head));
            assert!(there >= here, "{call} {when}: {here} signed, {there} remembered");
            ahead += u64::from(there > here);
        }
    }
    assert!(ahead > 0, "no stop was between the two");
}

/// What is remembered is on disk before it has its name, and the name when the program ends; a key as well.
#[test]
#[cfg(target_os = "linux")]
fn what_is_kept_for_a_store_outlasts_a_power_cut() {
    if !can_strace() {
        return;
    }
    let place = Place::new();
    let traced = |args: &[&str]| {
        let trace = place.path().join("trace");
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-e", "trace=fsync,fdatasync,rename,renameat,renameat2", "-o"]).arg(&trace);
        command.arg(env!("CARGO_BIN_EXE_dendrer")).args(args);
        let ran = command.current_dir(place.path()).env("HOME", place.path()).stdin(Stdio::null()).output();
        assert!(ran.unwrap().status.success(), "{args:?}");
        std::fs::read_to_string(trace).unwrap()
    };
    let at = |trace: &str, call: &str, what: &str| {
        let found = trace.lines().position(|line| line.contains(call) && line.contains(what));
        found.unwrap_or_else(|| panic!("{call} {what}: {trace}"))
    };
    let trace = traced(&["init"]);
    assert!(at(&trace, "sync(", ".key>") < at(&trace, "sync(", "/dendrer/keys>"), "{trace}");
    at(&trace, "sync(", "/.config/dendrer>");
    std::fs::write(place.path().join("line"), LINE).unwrap();
    let trace = traced(&["commit", "--run", "r", "--file", "line"]);
    let (content, name, dir) =
        (at(&trace, "sync(", "/heads/"), at(&trace, "rename", ".head\""), at(&trace, "sync(", "/heads>"));
    assert!(content < name && name < dir, "{trace}");
}

/// Two copies of a store are signed at once, and the one whose turn it is is slow to remember it.
#[test]
#[cfg(target_os = "linux")]
fn a_copy_waits_until_what_is_signed_is_remembered() {
    if !can_strace() {
        return;
    }
    let place = signed(3);
    copy(&place.path().join(".dendrer"), &place.path().join("copy"));
    let head = kept(&place, "heads", ".head").canonicalize().unwrap();
    std::fs::write(place.path().join("one"), LINE).unwrap();
    std::fs::write(place.path().join("many"), LINE.repeat(20)).unwrap();
    let calls = "?rename,?renameat,?renameat2";
    let mut slow = Command::new("strace");
    slow.args(["-f", "-o", "trace", "-e", &format!("trace={calls}")]);
    slow.args(["-e", &format!("inject={calls}:delay_enter=800000")]);
    slow.arg(env!("CARGO_BIN_EXE_dendrer")).args(["commit", "--run", "r", "--file", "one"]);
    slow.current_dir(place.path()).env("HOME", place.path()).stdout(Stdio::null());
    let mut slow = slow.spawn().unwrap();
    // It has written what it is to rename.
    let ends = Instant::now() + Duration::from_secs(60);
    let is_written = || {
        let names = std::fs::read_dir(head.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        let of_heads = ["head", "lock", "known"].map(std::ffi::OsStr::new);
        names.into_iter().any(|path| !of_heads.contains(&path.extension().unwrap_or_default()))
    };
    while !is_written() {
        assert!(Instant::now() < ends && slow.try_wait().unwrap().is_none(), "it was not slow");
        std::thread::sleep(Duration::from_millis(5));
    }
    let other = place.run(&["commit", "--run", "r", "--file", "many", "--store", "copy"]);
    assert!(other.code == 4 && other.stderr.contains("E0307"), "{}", other.stderr);
    assert!(slow.wait().unwrap().success());
    let known = Checkpoint::parse(&std::fs::read_to_string(&head).unwrap()).unwrap();
    assert_eq!(known.size(), 6, "the one that signed");
}

/// Whoever cannot have a turn does not sign: not while somebody has one and is stopped in it, and not where the lock cannot be held.
/// What was committed stands, and is signed with what comes next. What was left by whoever was killed in a turn goes.
#[test]
fn without_a_turn_nothing_is_signed() {
    let place = signed(3);
    let store = place.path().join(".dendrer");
    let checkpoint = || std::fs::read_to_string(store.join("checkpoint")).unwrap();
    let (head, lock) = (kept(&place, "heads", ".head"), kept(&place, "heads", ".lock"));
    let before = checkpoint();
    let held = std::fs::File::open(&lock).unwrap();
    held.lock().unwrap();
    let begin = Instant::now();
    let late = place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    assert!(late.code == 8 && late.stderr.contains("error[E0802]"), "{}", late.stderr);
    assert!(late.stdout.contains("tick 4") && late.stderr.contains("is not signed"), "{}", late.stderr);
    assert!(begin.elapsed() > Duration::from_secs(20) && checkpoint() == before);
    held.unlock().unwrap();

    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let refused = place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    assert!(refused.code == 8 && refused.stderr.contains("error[E0801]"), "{}", refused.stderr);
    assert!(refused.stderr.contains(lock.to_str().unwrap()) && checkpoint() == before, "{}", refused.stderr);
    std::fs::remove_dir(&lock).unwrap();

    let left = head.with_extension("head.77-0.partial");
    std::fs::write(&left, "half").unwrap();
    let signed = place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    assert!(signed.code == 0 && checkpoint() != before && !left.exists(), "{}", signed.stderr);
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
}

/// What is read while somebody else signs, or makes a later backup, is the one or the other: never the log of one with the
/// checkpoint of the other.
#[test]
#[cfg(target_os = "linux")]
fn what_is_read_is_signed_as_it_is_read() {
    if !can_strace() {
        return;
    }
    let place = signed(3);
    place.ok(&["backup", "BK"]);
    let slow = |calls: &str, when: usize, args: &[&str], config: &str| {
        let mut command = Command::new("strace");
        command.args(["-f", "-o", "/dev/null", "-e"]).arg(format!("trace={calls}"));
        command.arg("-e").arg(format!("inject={calls}:delay_enter=600000:when={when}"));
        command.arg(env!("CARGO_BIN_EXE_dendrer")).args(args);
        command.current_dir(place.path()).env("HOME", place.path()).env("XDG_CONFIG_HOME", config);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // Somebody without the key, and without a head.
    let nobody = place.path().join("nobody");
    let nobody = nobody.to_str().unwrap();
    let mut done = 0;
    for when in [8, 10, 11, 12, 13, 15] {
        let export = slow("?openat", when, &["export", "r", "-o", "r.dnd"], nobody);
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(place.run_with(&["commit", "--run", "r"], LINE.as_bytes()).code, 0);
        let export = ran(export.wait_with_output().unwrap());
        if export.code == 0 {
            let verified = place.run(&["verify", "r.dnd"]);
            assert_eq!(verified.code, 0, "{when}: {}{}", verified.stdout, verified.stderr);
            done += 1;
        }
    }
    assert!(done > 0, "no export was in time");
    for when in 1..4 {
        let to = format!("R{when}");
        let restore = slow("?mkdir,?mkdirat", when, &["restore", "BK", &to], nobody);
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(place.run_with(&["commit", "--run", "r"], LINE.as_bytes()).code, 0);
        place.ok(&["backup", "BK"]);
        let restore = ran(restore.wait_with_output().unwrap());
        assert_eq!(restore.code, 0, "{when}: {}", restore.stderr);
        let verified = place.run(&["verify", "--all", "--store", &to]);
        assert!(
            verified.code == 0 || verified.stdout.contains("were signed here"),
            "{when}: {}",
            verified.stdout
        );
        let mut verified = place.command(&["verify", "--all", "--store", &to]);
        let verified = ran(verified.env("XDG_CONFIG_HOME", nobody).output().unwrap());
        assert_eq!(verified.code, 0, "{when}: {}", verified.stdout);
    }
}
