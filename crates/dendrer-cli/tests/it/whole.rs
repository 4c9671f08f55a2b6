//! What is wrong with a store or a bundle as a whole is told by whoever reads it: a part is never shown as the whole.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Place, Ran, at_home, copy, parse, ran};

use dendrer::object::bundle::{Bundle, LogItem};
use dendrer::object::merkle::leaf_hash;
use dendrer::object::record::Kind;
use dendrer_object::Value;

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
        assert!(verified.stdout.contains("derived   damaged: index"), "{}", verified.stdout);
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
    // A run is a chain: one that both have shows it, whatever the lengths of the logs.
    twin.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    twin.ok(&["export", "r", "-o", "r.dnd"]);
    std::fs::copy(twin.path().join("r.dnd"), elsewhere.path().join("c.dnd")).unwrap();
    for pair in [["a.dnd", "c.dnd"], ["c.dnd", "a.dnd"]] {
        let (code, both) = elsewhere.json(&["verify", pair[0], pair[1]]);
        let verdicts = both.get("items").and_then(|items| items.as_array().cloned()).unwrap();
        assert!(
            code == 4
                && verdicts.iter().all(|item| item.get("verdict").unwrap().as_str() == Some("EQUIVOCATION"))
        );
        let said = elsewhere.run(&["verify", pair[0], pair[1]]).stdout;
        assert!(said.contains("has another record at tick 9 of r: there are two histories"), "{said}");
    }
    let said = elsewhere.run(&["verify", "b.dnd", "c.dnd", "a.dnd"]).stdout;
    assert!(said.contains("EQUIVOCATION at 11 with a.dnd"), "{said}");
    // A store beside a file of a copy of it that went on.
    let ran = place.run(&["verify", "r", elsewhere.path().join("c.dnd").to_str().unwrap()]);
    assert!(ran.code == 4 && ran.stdout.matches("\nEQUIVOCATION  ").count() == 2, "{}", ran.stdout);
    // Different runs at one position of the log.
    for (of, run) in [(&place, "p"), (&twin, "q")] {
        of.run_with(&["commit", "--run", run], LINE.as_bytes());
        of.ok(&["export", run, "-o", "run.dnd"]);
        std::fs::copy(of.path().join("run.dnd"), elsewhere.path().join(format!("{run}.dnd"))).unwrap();
    }
    let ran = elsewhere.run(&["verify", "p.dnd", "q.dnd"]);
    assert!(ran.code == 4 && ran.stdout.matches("\nEQUIVOCATION  ").count() == 2, "{}", ran.stdout);
    assert!(ran.stdout.contains("of the log: there are two histories"), "{}", ran.stdout);
    // Bundles that leave nothing out are compared up to the end of the shorter one.
    let said = elsewhere.ok(&["verify", "b.dnd", "c.dnd", "--compare"]);
    assert!(said.contains("compared  same history to 12 with c.dnd"), "{said}");
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
    assert!(place.ok(&["verify", "logistics-run-47@22"]).contains("\nINTACT    logistics-run-47@22  "));
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
    let newer = text.replace("\"writer\":1", "\"writer\":3").replace("\"format\":1", "\"format\":3");
    std::fs::write(&file, newer).unwrap();
    place.ok(&["export", "r", "-o", "r.dnd"]);
    place.ok(&["verify", "r.dnd"]);
    let ran = place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    assert!(ran.code == 8 && ran.stderr.contains("has format 3 for writing"), "{}", ran.stderr);
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

/// What is committed without the key of the log is behind what was signed: nobody outside has seen it.
#[test]
fn a_pin_is_no_witness_of_what_came_behind_it() {
    let place = recorded();
    let said = place.ok(&["verify", "r"]);
    assert!(said.contains("signed 10 of 10 records; the signer this machine knows"), "{said}");
    assert!(said.contains("witness   UNWITNESSED"), "{said}");
    let elsewhere = place.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    place.ok(&["key", "writer", "--out", "w.key"]);
    let mut stranger = place.command(&["commit", "--run", "p", "--file", "line", "--key", "w.key"]);
    std::fs::write(place.path().join("line"), LINE).unwrap();
    assert!(at_home(&mut stranger, &elsewhere).output().unwrap().status.success());
    let ran = place.run(&["verify", "p", "--require-witness"]);
    assert_eq!(ran.code, 6, "{}", ran.stdout);
    for said in [
        "whole     partial      p: records after checkpoint 10 are not counted by it",
        "error[E0313]",
        "\nINTACT    p",
    ] {
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
    let (code, answer) = place.json(&["verify", "--all"]);
    let text = |name: &str| answer.get(name).map(ToString::to_string);
    assert_eq!((code, text("verdict"), text("witnesses")), (0, Some("\"INTACT\"".into()), Some("[]".into())));
    assert_eq!(place.json(&["verify", "--all", "--require-witness"]).0, 6);
    // The head that was signed here lies with the key: it is no witness of the run before it either.
    assert_eq!(place.run(&["verify", "r", "--require-witness"]).code, 6);
}

/// No digest covers the names of the runs that a bundle is of.
#[test]
fn a_run_that_a_bundle_does_not_name_is_verified_too() {
    let place = recorded();
    place.run_with(&["commit", "--run", "s"], LINE.as_bytes());
    place.ok(&["fork", "--run", "r", "--from", "tick", "3", "--as", "f", "--reason", "a test"]);
    place.ok(&["export", "f", "s", "-o", "both.dnd"]);
    let text = std::fs::read_to_string(place.path().join("both.dnd")).unwrap();
    let runs = |file: &str| -> Vec<String> {
        let (code, answer) = place.json(&["verify", file, "--replay"]);
        assert_eq!(code, 0, "{answer}");
        let items = answer.get("items").unwrap().as_array().unwrap();
        assert!(
            items.iter().all(|item| *item.get("replay").unwrap() != dendrer_object::Value::Null),
            "{answer}"
        );
        items.iter().map(|item| item.get("run").unwrap().as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(runs("both.dnd"), ["f", "s"]);
    for (named, found) in [("[]", ["s", "f"]), ("[\"f\"]", ["f", "s"]), ("[\"s\"]", ["s", "f"])] {
        std::fs::write(
            place.path().join("edited.dnd"),
            text.replacen("\"runs\":[\"f\",\"s\"]", &format!("\"runs\":{named}"), 1),
        )
        .unwrap();
        assert_eq!(runs("edited.dnd"), found, "{named}");
        let ran = place.run(&["log", "edited.dnd"]);
        assert!(ran.code == 3 && ran.stderr.contains("the bundle holds 2 runs"), "{}", ran.stderr);
    }
}

#[test]
fn what_would_not_verify_is_not_handed_over() {
    let place = recorded();
    let path = segment(&place);
    let before = std::fs::metadata(&path).unwrap().len() as usize;
    place.run_with(&["commit", "--run", "s"], LINE.as_bytes());
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..before + 40]).unwrap();
    for (run, said) in [("r", "the bundle would be TAMPERED"), ("s", "may be in what is missing")] {
        let ran = place.run(&["export", run, "-o", "out.dnd"]);
        assert_eq!(ran.code, 4, "{run}: {}", ran.stderr);
        assert!(ran.stderr.contains("is TAMPERED") && ran.stderr.contains(said), "{}", ran.stderr);
        assert!(!place.path().join("out.dnd").exists());
    }
    assert_eq!(place.run(&["merge", "--as", "m", "--from", "r", "--from", "s"]).code, 4);
}

/// Gives the record of a tick the values of the one before it, with their checksum: nothing but its id shows it.
fn have_the_values_of_the_one_before(segment: &Path, tick: usize) {
    let mut log = std::fs::read(segment).unwrap();
    let (mut values, mut at) = (Vec::new(), 64);
    while at + 9 < log.len() {
        let end = at + 9 + u32::from_le_bytes(log[at..at + 4].try_into().unwrap()) as usize;
        if log[at + 8] == b'V' {
            values.push(at..end);
        }
        at = end;
    }
    // The log begins with its key and the run.
    let (before, this) = (values[tick].clone(), values[tick + 1].clone());
    assert_eq!(before.len(), this.len());
    let copy = log[before].to_vec();
    log[this].copy_from_slice(&copy);
    std::fs::write(segment, log).unwrap();
}

/// A root binds the state that records behind a snapshot lead to, and not what they count.
#[test]
fn what_is_counted_is_counted_of_sealed_records() {
    let place = Place::with_store();
    // Each second step writes what is there, and counts something else.
    let lines = |from: u64, to: u64| -> Vec<u8> {
        let line = |n: u64| {
            format!(
                "{{\"type\":\"memory.write\",\"delta\":[{{\"set\":\"/slots/s{}\",\"value\":\"{:0>120}\"}}],\"metrics\":{{\"tokens_used\":{}}}}}\n",
                n / 2 % 50,
                n / 2,
                if n.is_multiple_of(2) { 10 } else { 99 },
            )
        };
        (from..to).flat_map(|n| line(n).into_bytes()).collect()
    };
    let commit = |from, to| assert_eq!(place.run_with(&["commit", "--run", "r"], &lines(from, to)).code, 0);
    commit(0, 1200);
    commit(1200, 2400);
    let db = rusqlite::Connection::open(place.path().join(".dendrer/index.sqlite")).unwrap();
    let newest = || -> u32 {
        db.query_row("SELECT coalesce(max(tick), 0) FROM snapshot", [], |row| row.get(0)).unwrap()
    };
    // Where snapshots are taken depends on when there was an index.
    let mut tip = 2400;
    while newest() + 5 > tip {
        commit(tip.into(), u64::from(tip) + 6);
        tip += 6;
    }
    assert!(newest() > 1200, "it is read on from a snapshot");
    let (counted, state) = (["state", "r", "--path", "counters.tokens_used"], ["state", "r", "--json"]);
    assert_eq!(place.ok(&counted).trim(), (tip / 2 * 109).to_string());
    let before = place.ok(&state);
    have_the_values_of_the_one_before(&segment(&place), tip as usize - 2);
    assert_eq!(place.ok(&state), before, "the root shows that it is the state");
    let ran = place.run(&counted);
    assert!(ran.code == 4 && ran.stderr.contains("E0301"), "{}{}", ran.stdout, ran.stderr);
    let ran = place.run(&["runs", "--where", "state.counters.tokens_used > 1", "--json"]);
    assert!(!ran.stdout.contains("\"name\":\"r\"") || ran.code != 0, "{}", ran.stdout);
    assert_eq!(place.run(&["verify", "r"]).code, 4);
}

/// A record whose values are those of the one before it, with their checksum: nothing but its id shows it.
#[test]
fn what_is_good_ends_before_what_the_files_show() {
    let place = recorded();
    have_the_values_of_the_one_before(&segment(&place), 6);
    for from in ["1", "7"] {
        let ran = place.run(&["verify", "r", "--from", from]);
        assert_eq!(ran.code, 4, "{}", ran.stdout);
        let said = "last good tick: 5    ticks 7..8 rest on tick 6 and are not trustworthy";
        assert!(ran.stdout.contains(said), "{from}: {}", ran.stdout);
    }
}

#[test]
fn of_two_histories_none_is_called_sound() {
    let demo = Place::with_demo();
    let ran = demo.run(&["verify", "logistics-run-47", "--from", "64", "--replay"]);
    assert!(ran.stdout.contains("replay    OK           1 of 64 states reproduced"), "{}", ran.stdout);
    let ran = demo.run(&["verify", "corrupt/rewritten.dnd", "logistics-run-47.dnd"]);
    assert!(ran.stdout.contains("EQUIVOCATION") && !ran.stderr.contains("still sound"), "{}", ran.stderr);
    let other = format!("sha256:{}", "1".repeat(64));
    // The run is open, so a tip that nothing here knows may be a later one.
    let ran = demo.run(&["verify", "logistics-run-47.dnd", "--tip", &other]);
    assert!(ran.code == 6 && ran.stdout.contains("older than the tip given, or rewritten"), "{}", ran.stdout);
    let known = id_at(&demo, "logistics-run-47", 64);
    let ran = demo.run(&["verify", "corrupt/rewritten.dnd", "--tip", &known]);
    assert!(
        ran.code == 4 && ran.stdout.contains("note: this is what a run looks like that was rewritten"),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_helps_with_a_bundle_asks_the_bundle() {
    let demo = Place::with_demo();
    std::fs::create_dir(demo.path().join("apart")).unwrap();
    std::fs::copy(demo.path().join("logistics-run-47.dnd"), demo.path().join("apart/l.dnd")).unwrap();
    std::fs::remove_dir_all(demo.path().join(".dendrer")).unwrap();
    for args in [
        &["show", "apart/l.dnd@9999"][..],
        &["replay", "apart/l.dnd", "--to", "tick", "99"],
        &["log", "apart/l.dnd", "--from", "tick", "99"],
        &["verify", "apart/l.dnd", "--from", "65"],
        &["why", "apart/l.dnd", "nope"],
        &["backtrack", "apart/l.dnd", "nope"],
        &["show", "apart/l.dnd#x"],
    ] {
        let ran = demo.run(&[args, &["--json"]].concat());
        assert_ne!(ran.code, 0, "{args:?}");
        let answer = parse(if ran.stdout.is_empty() { &ran.stderr } else { &ran.stdout });
        let help = answer.get("help").unwrap().as_array().unwrap();
        let argv = help.get(0).unwrap_or_else(|| panic!("{args:?}: {answer}")).get("argv").unwrap();
        let words: Vec<&str> =
            argv.as_array().unwrap().iter().skip(1).map(|word| word.as_str().unwrap()).collect();
        assert_eq!(demo.run(&words).code, 0, "{args:?}: {words:?}");
    }
}

#[test]
fn ticks_from_one_to_another_are_an_address_of_log() {
    let demo = Place::with_demo();
    let asked = ["logistics-run-47@10..12", "logistics-run-47@-54..12", "logistics-run-47.dnd@10..tick:12"];
    let as_flags = demo.ok(&["log", "logistics-run-47", "--from", "10", "--to", "12"]);
    let lines = |text: &str| text.lines().filter(|line| line.trim_start().starts_with("1")).count();
    assert_eq!(lines(&as_flags), 3, "{as_flags}");
    assert_eq!(demo.ok(&["log", asked[0]]), as_flags);
    assert!(asked.iter().all(|range| lines(&demo.ok(&["log", range])) == 3));
    assert_eq!(demo.run(&["log", "logistics-run-47@10..x y"]).code, 2);
    assert_eq!(demo.run(&["log", "logistics-run-47@10..12", "--to", "11"]).code, 2);
}

/// Where the system lets no thread begin, what can be done alone is done, and the rest says so.
#[test]
#[cfg(target_os = "linux")]
fn without_threads_nothing_panics() {
    let place = Place::with_demo();
    let script = r#"
        chmod -R a+rwX "$PWD"
        limited() { setpriv --reuid 65534 --regid 65534 --clear-groups bash -c 'ulimit -u 1; exec "$@"' bash "$D" "$@"; }
        limited verify logistics-run-47.dnd tampered.dnd --jobs 2 > verify.out 2> verify.err; echo $? > verify.rc
        limited verify --all --progress plain > all.out 2> all.err; echo $? > all.rc
        echo '{"type":"plan.update"}' > line
        limited commit --run new < line > commit.out 2> commit.err; echo $? > commit.rc
        limited log logistics-run-47 > log.out 2> log.err; echo $? > log.rc
    "#;
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if !is_root || Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("SKIPPED: without_threads_nothing_panics needs root and setpriv");
        return;
    }
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(place.path())
        .env("HOME", place.path())
        .env("D", env!("CARGO_BIN_EXE_dendrer"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    let codes = ["verify.rc", "all.rc", "commit.rc", "log.rc"].map(|name| read(name).trim().to_owned());
    let said = ["verify.err", "all.err", "commit.err", "log.err"].map(read);
    assert_eq!(codes, ["4", "0", "8", "0"], "{said:?}");
    assert!(said[2].starts_with("error[E0801]: no thread could be begun"), "{}", said[2]);
}

/// What stands beside a run behind a tip is bound by no tip.
#[test]
fn a_tip_is_no_witness_of_a_refusal_that_came_behind_it() {
    let place = recorded();
    let (_, runs) = place.json(&["runs"]);
    let tip = runs.get("items").unwrap().as_array().unwrap().get(0).unwrap().get("tip").unwrap().clone();
    let tip = tip.as_str().unwrap();
    assert!(place.ok(&["verify", "r", "--tip", tip, "--require-witness"]).contains("by the tip given"));
    let elsewhere = place.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(place.path().join("line"), "{\"type\":\"policy.decision\",\"agent\":\"m\"}\n").unwrap();
    place.ok(&["key", "writer", "--out", "w.key"]);
    let mut stranger = place.command(&["commit", "--run", "r", "--file", "line", "--key", "w.key"]);
    at_home(&mut stranger, &elsewhere).output().unwrap();
    assert_eq!(
        place.json(&["runs"]).1.get("items").unwrap().as_array().unwrap().get(0).unwrap().get("tip"),
        Some(&tip.into())
    );
    let ran = place.run(&["verify", "r", "--tip", tip, "--require-witness"]);
    assert_eq!(ran.code, 6, "{}", ran.stdout);
    assert!(ran.stdout.contains("what stands beside r behind the tip that was given"), "{}", ran.stdout);
}

#[test]
fn a_backup_is_sound_when_the_store_has_gone_on() {
    let place = recorded();
    place.ok(&["backup", "copy"]);
    place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    let said = place.ok(&["verify", "--all", "--store", "copy"]);
    assert!(
        said.contains(
            "not checked: the log of 11 records that was signed here since this backup of 10 was made"
        ),
        "{said}"
    );
    let ran = place.run(&["log", "r", "--store", "copy"]);
    assert!(ran.code == 0 && ran.stderr.is_empty(), "{}", ran.stderr);
    assert!(place.ok(&["doctor", "--store", "copy"]).contains("since this backup was made"));
    // The same log without the word that it is a backup is one that was rolled back.
    std::fs::remove_file(place.path().join("copy/backup.json")).unwrap();
    assert_eq!(place.run(&["verify", "--all", "--store", "copy"]).code, 4);
}

/// Each line of a writer is signed; whoever looks meanwhile reads the log first, or what was signed.
#[test]
fn who_looks_while_others_write_finds_nothing_wrong() {
    let place = recorded();
    std::thread::scope(|scope| {
        let writer = scope
            .spawn(|| (0..40).for_each(|_| drop(place.run_with(&["commit", "--run", "r"], LINE.as_bytes()))));
        let verbs = [&["verify", "--all"][..], &["fsck"], &["doctor"], &["runs"], &["log", "r"]];
        for args in verbs.iter().cycle() {
            let ran = place.run(args);
            assert!(
                ran.code <= 1 && !ran.stderr.contains("TAMPERED"),
                "{args:?}: {}{}",
                ran.stdout,
                ran.stderr
            );
            if writer.is_finished() {
                break;
            }
        }
        writer.join().unwrap();
    });
}

#[test]
#[cfg(unix)]
fn an_export_replaces_no_file_but_its_own() {
    let place = recorded();
    std::fs::write(place.path().join("r.dnd.partial"), "precious").unwrap();
    place.ok(&["export", "r", "-o", "r.dnd"]);
    assert_eq!(std::fs::read(place.path().join("r.dnd.partial")).unwrap(), b"precious");
    let whole = std::fs::read(place.path().join("r.dnd")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path().join("pipe")).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = place.path().join("pipe");
        move || std::fs::read(pipe).unwrap()
    });
    place.ok(&["export", "r", "-o", "pipe"]);
    assert_eq!(reader.join().unwrap(), whole);
}

/// A table that is gone is damage of the index, of which everybody can do without and which is made again.
#[test]
fn an_index_without_a_table_is_left_out_and_made_again() {
    const ENDLESS: &str =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
    let trigger = |when: &str| format!("CREATE TRIGGER t AFTER {when} BEGIN SELECT ({ENDLESS}); END");
    let view = |table: &str, columns: &str| {
        format!(
            "ALTER TABLE {table} RENAME TO was; CREATE VIEW {table}({columns}) AS SELECT {columns} FROM was WHERE ({ENDLESS}) > 0"
        )
    };
    for sql in [
        "DROP TABLE chunk",
        "UPDATE run SET name = x'00ff'",
        "UPDATE run SET newest_tick = 'x'",
        "DROP INDEX record_id",
        // Programs that never end.
        &trigger("INSERT ON record"),
        &trigger("UPDATE ON meta"),
        &trigger("INSERT ON snapshot"),
        &format!(
            "{}; PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = 'TRIGGER' WHERE type = 'trigger'",
            trigger("INSERT ON record")
        ),
        &format!("PRAGMA user_version = 1; {}", view("meta", "key, value")),
        "DELETE FROM snapshot; CREATE INDEX slow ON snapshot (instr(hex(zeroblob(200000000)), hex(zeroblob(100000000)) || '1'))",
        "CREATE TABLE beside (a CHECK (instr(hex(zeroblob(200000000)), hex(zeroblob(100000000)) || '1') = 0))",
        &view("meta", "key, value"),
        &view("record", "position, id, kind, run, tick, type, agent, ts, frame, opened"),
        &view("snapshot", "run, tick, state"),
    ] {
        let place = Place::with_store();
        place.run_with(&["commit", "--run", "r"], LINE.repeat(1500).as_bytes());
        place.run_with(
            &["commit", "--run", "r"],
            b"{\"type\":\"memory.write\",\"delta\":[{\"set\":\"/a\",\"value\":1}]}\n",
        );
        place.ok(&["doctor", "--fix"]);
        let db = rusqlite::Connection::open(place.path().join(".dendrer/index.sqlite")).unwrap();
        db.execute_batch(sql).unwrap();
        drop(db);
        let verified = within_a_minute(&place, &["verify", "--all"]);
        assert!(matches!(verified.code, 0 | 4), "{sql}: {}{}", verified.stdout, verified.stderr);
        for args in [&["runs"][..], &["log", "r"]] {
            assert_eq!(within_a_minute(&place, args).code, 0, "{sql}: {args:?}");
        }
        within_a_minute(&place, &["doctor", "--fix"]);
        assert_eq!(within_a_minute(&place, &["verify", "--all"]).code, 0, "{sql}");
    }
}

/// Runs the program, which must come to an end by itself.
fn within_a_minute(place: &Place, args: &[&str]) -> Ran {
    let mut command = place.command(args);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let ends = Instant::now() + Duration::from_secs(60);
    let read =
        std::thread::spawn(move || (std::io::read_to_string(&mut out), std::io::read_to_string(&mut err)));
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > ends => {
                child.kill().unwrap();
                panic!("{args:?} does not end (process {id})");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let (stdout, stderr) = read.join().unwrap();
    Ran { code: status.code().unwrap_or(-1), stdout: stdout.unwrap(), stderr: stderr.unwrap() }
}

/// Opening a pipe waits for whoever is at its other end.
#[test]
#[cfg(unix)]
fn a_pipe_in_the_place_of_a_file_keeps_nobody_waiting() {
    let make = || {
        let place = Place::with_store();
        place.run_with(&["commit", "--run", "r"], LINE.repeat(1500).as_bytes());
        place.ok(&["doctor", "--fix"]);
        place
    };
    let files = [
        "store.json",
        "checkpoint",
        "lock",
        "index-lock",
        "sync-lock",
        "synced",
        "backup.json",
        "index.sqlite",
        "index.sqlite-wal",
        "index.sqlite-journal",
        "index-new.sqlite",
        "checkpoint.tmp",
        "log/checkpoint",
        "segments/00000000.seg",
        "segments/00000001.seg",
    ];
    for file in files {
        let place = make();
        let path = place.path().join(".dendrer").join(file);
        std::fs::remove_file(&path).ok();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        for args in [
            &["runs"][..],
            &["log", "r"],
            &["verify", "--all"],
            &["fsck"],
            &["doctor"],
            &["commit", "--run", "s", "--file", "line.jsonl"],
            &["export", "r", "-o", "r.dnd"],
            &["backup", "safe"],
            &["gc"],
            &["doctor", "--fix"],
            &["restore", "safe", "--replace"],
        ] {
            std::fs::write(place.path().join("line.jsonl"), LINE).unwrap();
            let ran = within_a_minute(&place, args);
            assert!((0..=8).contains(&ran.code), "{file}: {args:?}: {}{}", ran.stdout, ran.stderr);
        }
    }
}

/// What is put beside the store first is put there and nowhere else.
#[test]
#[cfg(unix)]
fn a_link_leads_nothing_out_of_the_store() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "r"], LINE.repeat(1500).as_bytes());
    place.ok(&["backup", "safe"]);
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), place.path().join(".dendrer.restoring")).unwrap();
    let ran = place.run(&["restore", "safe", "--replace"]);
    assert!(ran.code == 2 && ran.stderr.contains("E0115"), "{}", ran.stderr);
    std::fs::remove_file(place.path().join(".dendrer.restoring")).unwrap();
    // Nor where what an interrupted copy left has a link in it.
    std::fs::write(outside.path().join("precious"), "precious").unwrap();
    let mark = std::fs::read_to_string(place.path().join("safe/backup.json")).unwrap();
    let half = place.path().join(".dendrer.restoring");
    std::fs::create_dir(&half).unwrap();
    let begun = mark.split("\"root\"").next().unwrap().to_owned() + "\"root\":null}";
    for (name, mark) in [("segments", &mark), ("segments", &begun), ("log", &mark)] {
        std::fs::write(half.join("backup.json"), mark).unwrap();
        std::os::unix::fs::symlink(outside.path(), half.join(name)).unwrap();
        for args in [&["restore", "safe", "--replace"][..], &["backup", ".dendrer.restoring"]] {
            let ran = place.run(args);
            assert_ne!(ran.code, 0, "{name}: {args:?}: {}", ran.stdout);
            assert_eq!(std::fs::read(outside.path().join("precious")).unwrap(), b"precious", "{name}");
        }
        std::fs::remove_file(half.join(name)).unwrap();
    }
    std::fs::remove_dir_all(&half).unwrap();
    std::fs::remove_file(outside.path().join("precious")).unwrap();
    // Nor what is signed.
    let log = place.path().join(".dendrer/log");
    std::fs::rename(&log, place.path().join("log-aside")).unwrap();
    std::os::unix::fs::symlink(outside.path(), &log).unwrap();
    place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "tiles were laid out elsewhere");
    std::fs::remove_file(&log).unwrap();
    let segments = place.path().join(".dendrer/segments");
    std::fs::rename(&segments, place.path().join("segments-aside")).unwrap();
    std::os::unix::fs::symlink(place.path().join("segments-aside"), &segments).unwrap();
    let ran = place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    assert!(ran.code == 8 && ran.stderr.contains("is a link"), "{}", ran.stderr);
    std::fs::remove_file(&segments).unwrap();
    std::fs::rename(place.path().join("segments-aside"), &segments).unwrap();
    for name in ["index.sqlite", "index.sqlite-wal"] {
        let (index, other) = (place.path().join(".dendrer").join(name), outside.path().join("other"));
        std::fs::remove_file(&index).ok();
        std::os::unix::fs::symlink(&other, &index).unwrap();
        place.run_with(&["commit", "--run", "r"], LINE.repeat(1500).as_bytes());
        assert!(!other.exists(), "{name}: something was made where the link leads");
        place.ok(&["doctor", "--fix"]);
        assert!(!other.exists(), "{name}: an index was made where the link leads");
        assert!(index.symlink_metadata().is_ok_and(|about| about.is_file()) || name != "index.sqlite");
        place.ok(&["verify", "--all"]);
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

/// A store that cannot be looked at may be the one that is meant, and another that is further up is not.
#[test]
#[cfg(unix)]
fn no_other_store_and_no_other_file_is_taken_for_what_was_named() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = recorded();
    let inner = place.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let inside = |args: &[&str]| ran(place.command(args).current_dir(&inner).output().unwrap());
    assert_eq!(inside(&["runs"]).code, 0, "the store above");
    let there = inner.join(".dendrer");
    std::fs::write(&there, "a file").unwrap();
    assert!(inside(&["runs"]).stderr.contains("it is no directory"));
    std::fs::remove_file(&there).unwrap();
    for leads_to in [".dendrer", "nowhere"] {
        std::os::unix::fs::symlink(leads_to, &there).unwrap();
        let ran = inside(&["runs"]);
        assert!(ran.code == 8 && ran.stderr.contains("E0801"), "{leads_to}: {}", ran.stderr);
        std::fs::remove_file(&there).unwrap();
    }
    let odd = std::ffi::OsStr::from_bytes(b"o\xff");
    let ran_odd = ran(place.command(&["export", "r", "-o"]).arg(odd).output().unwrap());
    assert!(ran_odd.code == 2 && ran_odd.stderr.contains("is not UTF-8"), "{}", ran_odd.stderr);
    let ran_odd = ran(place.command(&["runs"]).env("DENDRER_STORE", odd).output().unwrap());
    assert!(ran_odd.code == 2 && ran_odd.stderr.contains("is not UTF-8"), "{}", ran_odd.stderr);
    assert!(!place.path().join("o\u{fffd}").exists());
    // What may not be read is not what is not there.
    let segment = segment(&place);
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&segment, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&segment).is_err() {
        let refused = place.run(&["log", "r"]);
        assert!(refused.code == 8 && refused.stderr.contains("E0801"), "{}", refused.stderr);
    }
    std::fs::set_permissions(&segment, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// The last transition of a run is cut out of its bundle: every byte that is left is as it was sealed, and one is missing.
#[test]
fn a_bundle_without_its_last_transition_is_partial() {
    let place = Place::with_store();
    for run in ["v", "w"] {
        place.run_with(&["commit", "--run", run], LINE.repeat(4).as_bytes());
    }
    let (whole, cut) = (place.path().join("w.dnd"), place.path().join("cut.dnd"));
    assert_eq!(place.run(&["export", "w", "-o", "w.dnd"]).code, 0);
    let verify = |name: &str| place.run(&["verify", name, "--require-complete", "--json"]);
    let whole_line = |ran: &Ran| {
        let answer = parse(&ran.stdout);
        answer.get("lines").and_then(|lines| lines.get("whole")).cloned().unwrap()
    };
    let ran = verify("./w.dnd");
    let line = whole_line(&ran);
    assert_eq!((ran.code, line.get("word").and_then(Value::as_str)), (0, Some("COMPLETE")), "{}", ran.stdout);
    assert!(line.get("map_ts").is_some_and(|ts| ts.as_str().is_some()), "{line}");
    let mut bundle = Bundle::parse(&std::fs::read(whole).unwrap()).unwrap();
    let is_last = |item: &LogItem| matches!(item, LogItem::Entry(entry) if entry.kind == Kind::Transition);
    let last = bundle.log.iter().rposition(is_last).unwrap();
    let LogItem::Entry(entry) = bundle.log[last].clone() else { panic!("it is an entry") };
    let record = bundle.log[..last].iter().filter(|item| matches!(item, LogItem::Entry(_))).count();
    bundle.log[last] = LogItem::Omitted { count: 1, hashes: vec![leaf_hash(&entry.text())] };
    bundle.records.remove(record);
    std::fs::write(cut, bundle.write(&|_| vec![0])).unwrap();
    let ran = verify("./cut.dnd");
    let verdict = parse(&ran.stdout).get("verdict").cloned();
    assert_eq!((ran.code, verdict), (6, Some(Value::from("INTACT"))), "{}", ran.stdout);
    let line = whole_line(&ran);
    let expected = r#"[{"ends":0,"erasures":0,"refusals":0,"run":"w","transitions":1,"why":"missing"}]"#;
    let sides = (line.get("word"), line.get("checkpoint"), line.get("partial").map(ToString::to_string));
    let word = Value::from("partial");
    assert_eq!(sides, (Some(&word), Some(&bundle.size.into()), Some(expected.to_owned())));
}

/// A file that is named and is no bundle gets a verdict, also where its name could be that of a run.
#[test]
fn a_file_that_is_no_bundle_is_malformed() {
    let place = recorded();
    let line = |ran: &Ran| ran.stdout.lines().next().unwrap_or_default().to_owned();
    place.ok(&["export", "--format", "checkpoint", "-o", "kept"]);
    std::fs::write(place.path().join("lines.jsonl"), LINE).unwrap();
    std::fs::write(place.path().join("notes.txt"), "not checked\n").unwrap();
    let looks = [
        ("lines.jsonl", "the lines of a run, which `dendrer commit --file` records"),
        ("notes.txt", "text"),
        ("kept", "a checkpoint, which --checkpoint takes"),
    ];
    for (name, kind) in looks {
        for named in [name.to_owned(), format!("./{name}")] {
            let ran = place.run(&["verify", &named]);
            let said = format!("record    MALFORMED    E0306: not a bundle: the file looks like {kind}");
            assert_eq!((ran.code, line(&ran)), (4, said), "{named}: {}", ran.stderr);
        }
    }
    // Without a store, too.
    let elsewhere = Place::new();
    std::fs::copy(place.path().join("lines.jsonl"), elsewhere.path().join("lines.jsonl")).unwrap();
    assert_eq!(elsewhere.run(&["verify", "lines.jsonl"]).code, 4);
    assert_eq!(elsewhere.run(&["verify", "gone.jsonl"]).code, 3);
    // A bundle of any name is verified, and a run of the store comes first.
    place.ok(&["export", "r", "-o", "r.bundle"]);
    assert!(place.ok(&["verify", "r.bundle", "--require-complete"]).ends_with("that inputs were true\n"));
    std::fs::write(place.path().join("r"), "text").unwrap();
    assert!(place.ok(&["verify", "r"]).starts_with("record    INTACT"));
    assert_eq!(place.run(&["verify", "gone.jsonl"]).code, 3);
    let tip = "0".repeat(64);
    assert_eq!(place.run(&["verify", "r", "lines.jsonl", "--tip", &tip]).code, 2);
    // A checkpoint that has not the form of one is found before any digest.
    let text = std::fs::read_to_string(place.path().join("r.bundle")).unwrap();
    let (before, _) = text.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(place.path().join("no-note.dnd"), format!("{before}\n{{\"checkpoint\":\"signed\"}}\n"))
        .unwrap();
    let ran = place.run(&["verify", "no-note.dnd"]);
    assert!(
        ran.code == 4 && ran.stdout.contains("MALFORMED") && line(&ran).contains("not a checkpoint"),
        "{}",
        ran.stdout
    );
}

/// The header of a bundle lists what stays in it although it may follow from what was withheld.
#[test]
fn fields_that_stay_in_a_bundle_are_noted() {
    let place = Place::with_store();
    let lines = [
        r#"{"type":"memory.write","agent":"a","delta":[{"set":"/n","value":"the first value"}]}"#,
        r#"{"type":"memory.write","agent":"a","intent":{"description":"after it"},"delta":[{"set":"/m","value":1}]}"#,
    ];
    place.run_with(&["commit", "--run", "r"], (lines.join("\n") + "\n").as_bytes());
    let ran = place.naming("--although", &["export", "r", "--withhold", "1:delta", "-o", "less.dnd"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = place.run(&["verify", "less.dnd"]);
    let note = ran.stdout.lines().find(|line| line.starts_with("notes     although")).unwrap_or_default();
    assert!(note.contains("2:") && note.ends_with("a withheld value may follow from it"), "{}", ran.stdout);
    let (code, json) = place.json(&["verify", "less.dnd"]);
    let notes = json.get("lines").unwrap().get("notes").unwrap().as_array().unwrap();
    let places: Vec<&str> = notes.iter().map(|note| note.get("place").unwrap().as_str().unwrap()).collect();
    assert!(code == 6 && !places.is_empty() && places.iter().all(|place| note.contains(place)), "{json}");
    assert!(notes.iter().all(|note| *note.get("position").unwrap() == dendrer_object::Value::Null), "{json}");
}

/// Returns the id of the record at a tick.
fn id_at(place: &Place, run: &str, tick: u64) -> String {
    let (_, shown) = place.json(&["show", &format!("{run}@{tick}")]);
    let text = shown.to_string();
    let at = text.find(r#""id":"sha256:"#).unwrap() + 6;
    text[at..at + 71].to_owned()
}

#[test]
fn each_target_is_witnessed_by_itself() {
    let place = recorded();
    place.run_with(&["commit", "--run", "s"], LINE.repeat(2).as_bytes());
    let (third, last) = (id_at(&place, "r", 3), id_at(&place, "r", 8));
    let part = place.run(&["verify", "r@3", "--tip", &third, "--require-witness"]);
    assert!(part.code == 0 && part.stdout.contains("VERIFIED  r@3 "), "{}", part.stdout);
    // All of r was asked about as well, in either order.
    for targets in [["r", "r@3"], ["r@3", "r"], ["r@3", "r@8"]] {
        let args = [&["verify"][..], &targets, &["--tip", &third, "--require-witness"]].concat();
        let ran = place.run(&args);
        assert!(ran.code == 6 && ran.stdout.contains("error[E0313]"), "{targets:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("note: the tip that was given witnesses r@3"), "{}", ran.stderr);
    }
    // The part that was asked about is named, however far a tip leads.
    let ran = place.run(&["verify", "s", "r@3", "--tip", &last]);
    assert!(ran.stdout.contains("  s, r@3 "), "{}", ran.stdout);
    // The ticks that a fork needs are read, also of a run that is asked about in part.
    place.ok(&["fork", "r@6", "--as", "f"]);
    let ran = place.run(&["verify", "f", "r@3"]);
    assert!(ran.code == 0 && ran.stdout.contains("INTACT    f, r@3 "), "{}", ran.stdout);
    let ran = place.run(&["verify", "f", "r@3", "--tip", &third]);
    assert!(ran.stdout.contains("WITNESSED    to tick 3 of r by the tip given\n"), "{}", ran.stdout);
    let (_, answer) = place.json(&["verify", "f", "r@3"]);
    let items = answer.get("items").unwrap().to_string();
    assert!(items.contains(r#""run":"r""#) && items.contains(r#""ticks":6"#), "{items}");
    for tip in ["xyz".to_owned(), last.to_uppercase(), last[..20].to_owned()] {
        let ran = place.run(&["verify", "r", "--tip", &tip]);
        assert!(ran.code == 2 && ran.stderr.contains("error[E0106]"), "{tip}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_checkpoint_covers_the_runs_whose_records_are_in_it() {
    let place = recorded();
    place.ok(&["export", "--format", "checkpoint", "-o", "kept"]);
    // The map of an export is of no run.
    place.ok(&["export", "r", "-o", "r.dnd"]);
    place.run_with(&["commit", "--run", "s"], LINE.as_bytes());
    let with = |target: &[&str]| {
        let args = [&["verify"][..], target, &["--checkpoint", "kept", "--require-witness"]].concat();
        place.run(&args)
    };
    for target in [&["r"][..], &["r@3"]] {
        let ran = with(target);
        assert!(ran.code == 0 && ran.stdout.contains("VERIFIED"), "{target:?}: {}", ran.stdout);
    }
    for (target, open) in [(&["s"][..], "s"), (&["r", "s"], "s"), (&["--all"], "r, s")] {
        let ran = with(target);
        assert!(ran.code == 6 && ran.stdout.contains("error[E0313]"), "{target:?}: {}", ran.stdout);
        let told = "note: the checkpoint that was given covers the first";
        let behind = ["records of s follow", "records of r, s follow"];
        let is_told = ran.stderr.contains(told) && behind.iter().any(|what| ran.stderr.contains(what));
        assert!(is_told, "{target:?}, {open}: {}", ran.stderr);
    }
    let both = place.run(&["verify", "r", "s", "--checkpoint", "kept"]);
    assert!(both.stdout.contains(", of r to the end, by the checkpoint given"), "{}", both.stdout);
    place.run_with(&["commit", "--run", "r"], LINE.as_bytes());
    assert_eq!(with(&["r"]).code, 6);
    assert_eq!(with(&["r@8"]).code, 0);
}
