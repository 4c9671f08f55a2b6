//! A disk that is full: the program says so, keeps what it acknowledged, and goes on when there is room again.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::process::Command;

use dendrer_object::{Value, json};

use crate::support::{Place, Ran, can_mount, ran};

const LINES: u64 = 6000;

/// Intents that are distinct and take room.
fn intents() -> String {
    let line = |n: u64| {
        format!(
            "{{\"type\":\"plan.update\",\"delta\":[{{\"set\":\"/n\",\"value\":{n}}}],\"intent\":{{\"description\":\"{n} {}\"}}}}\n",
            "room ".repeat(60)
        )
    };
    (0..LINES).map(line).collect()
}

/// Ticks and ids of a stream of acknowledgements or of a log.
fn ids(text: &str) -> BTreeMap<u64, String> {
    let items = text.lines().filter_map(|line| {
        let item = json::parse_door(line.as_bytes()).ok()?;
        Some((item.get("tick")?.as_u64()?, item.get("id")?.as_str()?.to_owned()))
    });
    // Tick 0 is the begin of the run, which a log does not list.
    items.filter(|(tick, _)| *tick > 0).collect()
}

/// What must hold after a disk was full: checked with nothing but the program's own answers.
fn check(stopped: &Ran, log: &str, verified: &Ran, further: &Ran, verified_again: &Ran) {
    assert_eq!(stopped.code, 8, "{}", stopped.stderr);
    let last = stopped.stdout.lines().last().unwrap();
    assert!(last.contains("\"code\":\"E0801\"") && last.contains("no space left for "), "{last}");
    let acknowledged = ids(&stopped.stdout);
    let kept = ids(log);
    assert!(!acknowledged.is_empty() && (acknowledged.len() as u64) < LINES, "{}", acknowledged.len());
    for (tick, id) in &acknowledged {
        assert_eq!(kept.get(tick), Some(id), "tick {tick} was acknowledged");
    }
    // Nothing is half-written: ticks have no gaps, and what was not acknowledged was not recorded.
    assert_eq!(kept.keys().copied().collect::<Vec<_>>(), (1..=kept.len() as u64).collect::<Vec<_>>());
    assert_eq!(kept.len(), acknowledged.len());
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    assert_eq!(further.code, 0, "{}", further.stderr);
    let next = ids(&further.stdout);
    assert_eq!(next.keys().copied().collect::<Vec<_>>(), [kept.len() as u64 + 1]);
    assert_eq!(verified_again.code, 0, "{}{}", verified_again.stdout, verified_again.stderr);
}

/// The limit on the size of a file stands in for a full disk where nobody may mount one.
#[test]
fn a_limit_on_files_ends_it_and_loses_nothing() {
    let place = Place::with_store();
    std::fs::write(place.path().join("intents.jsonl"), intents()).unwrap();
    let script = format!(
        "trap '' XFSZ; ulimit -f 1000; exec {} commit --run r --jsonl --file intents.jsonl",
        env!("CARGO_BIN_EXE_dendrer")
    );
    let stopped = Command::new("sh")
        .args(["-c", &script])
        .current_dir(place.path())
        .env("HOME", place.path())
        .output()
        .unwrap();
    let stopped = ran(stopped);
    let log = place.ok(&["log", "r", "-n", "0", "--jsonl"]);
    let verified = place.run(&["verify", "--all", "--replay"]);
    let further = place.run_with(&["commit", "--run", "r", "--jsonl"], b"{\"type\":\"plan.update\"}\n");
    check(&stopped, &log, &verified, &further, &place.run(&["verify", "--all", "--replay"]));
}

/// A file system of two megabytes, in a namespace of its own.
#[test]
#[cfg(target_os = "linux")]
fn a_full_file_system_ends_it_and_loses_nothing() {
    if !can_mount() {
        return;
    }
    let place = Place::new();
    std::fs::write(place.path().join("intents.jsonl"), intents()).unwrap();
    std::fs::create_dir(place.path().join("disk")).unwrap();
    // Everything happens in one namespace, because the file system goes away with it; answers go to files outside.
    let script = r#"
        set -e
        mount -t tmpfs -o size=2m none disk
        "$D" init disk >/dev/null 2>&1
        step() { name=$1; shift; set +e; "$D" --store disk "$@" >"$name.out" 2>"$name.err"; echo $? >"$name.rc"; set -e; }
        step stopped commit --run r --jsonl --file intents.jsonl
        step again commit --run r --jsonl --file intents.jsonl
        mount -o remount,size=64m disk
        step log log r -n 0 --jsonl
        step verified verify --all --replay
        echo '{"type":"plan.update"}' >one.jsonl
        step further commit --run r --jsonl --file one.jsonl
        step checked verify --all --replay
    "#;
    let step = place.in_namespace(script);
    // A second try on the full disk fails in the same way. Whatever still fitted in counts.
    let (mut stopped, again) = (step("stopped"), step("again"));
    assert!(stopped.stdout.contains("No space left on device"), "the file system was full");
    assert_eq!(again.code, 8, "{}", again.stderr);
    stopped.stdout.push_str(&again.stdout);
    check(&stopped, &step("log").stdout, &step("verified"), &step("further"), &step("checked"));
}

/// The same failure as a document, for programs.
#[test]
fn a_full_disk_is_one_document_with_json() {
    let place = Place::with_store();
    std::fs::write(place.path().join("intents.jsonl"), intents()).unwrap();
    let script = format!(
        "trap '' XFSZ; ulimit -f 1000; exec {} commit --run r --json --file intents.jsonl",
        env!("CARGO_BIN_EXE_dendrer")
    );
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(place.path()).env("HOME", place.path()).output();
    let stopped = ran(output.unwrap());
    let error = crate::support::parse(&stopped.stdout);
    assert_eq!((stopped.code, error.get("code").unwrap().as_str()), (8, Some("E0801")));
    assert_eq!(error.get("changed"), Some(&Value::from(true)), "some of it is on record");
}

/// What was imported before the disk was full is not taken for the whole of it.
#[test]
fn half_of_an_import_is_not_called_imported() {
    let place = Place::with_store();
    let message = |n: u64| format!(r#"{{"role":"user","content":"{n} {}"}}"#, "room ".repeat(200));
    let chat = format!("[{}]", (0..900).map(message).collect::<Vec<_>>().join(","));
    std::fs::write(place.path().join("chat.json"), chat).unwrap();
    let script = format!(
        "trap '' XFSZ; ulimit -f 1000; exec {} import chat.json --run r",
        env!("CARGO_BIN_EXE_dendrer")
    );
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(place.path()).env("HOME", place.path()).output();
    let stopped = ran(output.unwrap());
    assert_eq!(stopped.code, 8, "{}", stopped.stderr);
    let kept = ids(&place.ok(&["log", "r", "-n", "0", "--jsonl"])).len();
    assert!(kept > 0 && kept < 900, "{kept}");
    let (code, error) = place.json(&["import", "chat.json", "--run", "s"]);
    let message = error.get("message").unwrap().to_string();
    assert_eq!((code, error.get("code").unwrap().as_str()), (2, Some("E0214")), "{message}");
    assert!(message.contains(&format!("interrupted: {kept} of 900 ticks are there")), "{message}");
    place.ok(&["import", "chat.json", "--run", "s", "--again"]);
    place.ok(&["verify", "--all", "--replay"]);
}

/// What keeps the log from being signed is told only where nothing else went wrong before.
#[test]
fn of_two_failures_the_first_is_told() {
    let place = Place::with_store();
    std::fs::create_dir(place.path().join(".dendrer/checkpoint.tmp")).unwrap();
    let line = "{\"type\":\"plan.update\"}\n";
    let stopped =
        place.run_with(&["commit", "--run", "r"], format!("{line}{line}not one\n{line}").as_bytes());
    assert!(stopped.stderr.contains("2 transitions before it are committed"), "{}", stopped.stderr);
    assert!(stopped.stderr.starts_with("error[E0201]"), "{}", stopped.stderr);
    let unsigned = place.run_with(&["commit", "--run", "r"], line.as_bytes());
    assert_eq!(unsigned.code, 8, "{}", unsigned.stderr);
    assert!(unsigned.stderr.contains("checkpoint"), "{}", unsigned.stderr);
    assert_eq!(ids(&place.ok(&["log", "r", "-n", "0", "--jsonl"])).len(), 3);
}

/// A store that was made has its key, whatever went wrong behind that, and what is said is what is there.
#[test]
fn a_store_that_could_not_be_signed_keeps_its_key() {
    let place = Place::new();
    std::fs::create_dir_all(place.path().join(".dendrer/checkpoint.tmp")).unwrap();
    let made = place.run(&["init"]);
    assert_eq!(made.code, 8, "{}", made.stderr);
    assert!(
        made.stderr.contains("note: the store is in ") && made.stderr.contains(".key"),
        "{}",
        made.stderr
    );
    std::fs::remove_dir(place.path().join(".dendrer/checkpoint.tmp")).unwrap();
    let further = place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    assert!(further.code == 0 && !further.stderr.contains("E0804"), "{}", further.stderr);
    assert!(place.ok(&["verify", "--all"]).contains("\nINTACT"));
    // Where no store was made, no key is left, and init goes on.
    let place = Place::new();
    std::fs::create_dir_all(place.path().join(".dendrer/store.tmp")).unwrap();
    let made = place.run(&["init"]);
    assert!(made.code == 8 && made.stderr.contains("note: no store was made"), "{}", made.stderr);
    assert!(std::fs::read_dir(place.config().join("keys")).unwrap().next().is_none());
    std::fs::remove_dir(place.path().join(".dendrer/store.tmp")).unwrap();
    place.ok(&["init"]);
}

/// On a full disk nothing is called as it was that was not there.
#[test]
#[cfg(target_os = "linux")]
fn a_store_that_is_made_on_a_full_disk_says_what_is_there() {
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let script = r#"
        mkdir disk
        step() { name=$1; shift; "$D" --store disk "$@" >"$name.out" 2>"$name.err"; echo $? >"$name.rc"; }
        for pages in 1 2 3 4; do
            mount -t tmpfs -o size=$((pages * $(getconf PAGESIZE))) none disk
            step init-$pages init
            mount -o remount,size=64m disk
            "$D" --store disk init >/dev/null 2>&1
            echo '{"type":"plan.update"}' >one
            step commit-$pages commit --run r --file one
            step verify-$pages verify --all
            umount disk
        done
    "#;
    let step = place.in_namespace(script);
    let mut said = [0; 3];
    for pages in 1..=4 {
        let init = step(&format!("init-{pages}"));
        assert!(!init.stderr.contains("as it was"), "{}", init.stderr);
        let counts = [
            init.stderr.contains("note: no store was made"),
            init.stderr.contains("note: the store is in "),
            init.code == 0,
        ];
        assert_eq!(counts.iter().filter(|is| **is).count(), 1, "{}", init.stderr);
        said.iter_mut().zip(counts).for_each(|(sum, is)| *sum += u32::from(is));
        let commit = step(&format!("commit-{pages}"));
        assert!(commit.code == 0 && !commit.stderr.contains("E0804"), "{}", commit.stderr);
        assert_eq!(step(&format!("verify-{pages}")).code, 0);
    }
    assert!(said[0] > 0 && said[1] > 0, "{said:?}");
}

/// What only reads needs no lock, so it works on media that nobody can write to.
#[test]
fn a_store_on_read_only_media_is_read_and_handed_over() {
    if !can_mount() {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.path().join("media")).unwrap();
    let step = place.in_namespace(
        r#"
        set -e
        mount -t tmpfs none media
        "$D" init media >/dev/null 2>&1
        step() { name=$1; shift; set +e; "$D" "$@" >"$name.out" 2>"$name.err"; echo $? >"$name.rc"; set -e; }
        printf '{"type":"plan.update"}\n{"type":"plan.update"}\n' >lines
        step recorded commit --run r --store media --file lines
        mount -o remount,ro media
        step exported export r -o r.dnd --store media
        step verified verify r.dnd
        step forked fork r --from 1 -n --store media
        step refused commit --run r --store media --file lines
    "#,
    );
    for (name, code) in [("recorded", 0), ("exported", 0), ("verified", 0), ("forked", 0), ("refused", 8)] {
        let ran = step(name);
        assert_eq!(ran.code, code, "{name}: {}", ran.stderr);
    }
}
