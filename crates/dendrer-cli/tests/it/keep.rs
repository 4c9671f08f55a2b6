//! Backup, restore, fsck, gc and doctor, as somebody meets them who has to keep a store.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use dendrer_object::Value;

#[cfg(target_os = "linux")]
use crate::support::can_mount;
use crate::support::{Place, at_home, parse, ran};

/// Intents that change a state of some size, so that snapshots are taken.
fn intents(count: u64, from: u64) -> Vec<u8> {
    let line = |n: u64| {
        let text = format!("{n:0>120}");
        format!(
            "{{\"type\":\"memory.write\",\"delta\":[{{\"set\":\"/slots/s{}\",\"value\":\"{text}\"}}],\"intent\":{{\"description\":\"step {n}\"}}}}\n",
            n % 50
        )
    };
    (from..from + count).flat_map(|n| line(n).into_bytes()).collect()
}

pub(crate) fn commit(place: &Place, run: &str, count: u64, from: u64) {
    let ran = place.run_with(&["commit", "--run", run], &intents(count, from));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// A place with a store that has something in it.
pub(crate) fn filled(count: u64) -> Place {
    let place = Place::with_store();
    commit(&place, "r", count, 0);
    place
}

pub(crate) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("{name} in {value}"))
}

fn is_true(value: &Value, name: &str) -> bool {
    value.get(name) == Some(&Value::from(true))
}

pub(crate) fn code_of(value: &Value) -> &str {
    value.get("code").and_then(Value::as_str).unwrap_or_else(|| panic!("{value}"))
}

/// An answer without the place where it was read.
fn anywhere(answer: &str) -> String {
    let text = regex::Regex::new(r#","read_from":\["[^"]*"\]|; r, read from [^\n]*"#).unwrap();
    text.replace_all(answer, "").into_owned()
}

/// The secret of the store's key, which is in no file but its own.
fn secret(place: &Place) -> Vec<u8> {
    let dir = place.config().join("keys");
    let file = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
    std::fs::read(file).unwrap().trim_ascii().to_vec()
}

#[test]
fn a_backup_is_read_like_a_store_grows_with_it_and_holds_no_key() {
    let place = filled(20);
    let (code, first) = place.json(&["backup", "safe"]);
    assert_eq!((code, number(&first, "before"), number(&first, "records")), (0, 0, 22));
    assert_eq!(anywhere(&place.ok(&["log", "r", "--store", "safe"])), place.ok(&["log", "r"]));
    assert_eq!(place.run(&["verify", "--all", "--replay", "--store", "safe"]).code, 0);
    commit(&place, "r", 5, 20);
    let text = place.run(&["backup", "safe"]);
    let lines: Vec<&str> = text.stdout.lines().collect();
    assert!(
        lines[0].starts_with("BACKED UP  27 records, root ") && lines[0].ends_with("verified in the copy"),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("copied     5 since the last backup, "), "{lines:?}");
    assert_eq!(lines[2], "signed     up to 27 records");
    assert!(text.stderr.contains("help: dendrer restore safe DIR"), "{}", text.stderr);
    assert_eq!(
        anywhere(&place.ok(&["log", "r", "--store", "safe", "--json"])),
        anywhere(&place.ok(&["log", "r", "--json"]))
    );
    let names: Vec<PathBuf> = files(&place.path().join("safe")).into_keys().collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("index")), "{names:?}");
    let secret = secret(&place);
    for (path, content) in files(&place.path().join("safe")) {
        assert!(!contains(&content, &secret), "{}", path.display());
    }
    // Nothing writes to it.
    for args in [&["commit", "--run", "r", "--store", "safe"][..], &["gc", "--store", "safe"]] {
        let (code, error) = place.json(args);
        assert_eq!((code, code_of(&error)), (5, "E0806"), "{args:?}");
    }
    assert_eq!(place.run(&["fsck", "--store", "safe"]).code, 0);
    assert_eq!(place.run(&["doctor", "--fix", "--store", "safe"]).code, 0);
}

/// Where the store goes on while it is copied, each copy is a beginning of it.
#[test]
fn backups_and_restores_while_a_program_writes() {
    let rounds: u64 = std::env::var("DENDRER_DEEP").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let place = filled(10);
    let mut child = place
        .command(&["commit", "--run", "busy", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let feeder = std::thread::spawn(move || {
        let mut n = 0;
        while matches!(stopped.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty)) {
            stdin.write_all(&intents(20, n)).unwrap();
            n += 20;
            std::thread::sleep(Duration::from_millis(60));
        }
        n
    });
    let mut sizes = Vec::new();
    for round in 0..rounds {
        let to = if round % 2 == 0 { "safe".to_owned() } else { format!("safe-{round}") };
        let (code, made) = place.json(&["backup", &to]);
        assert_eq!(code, 0, "{made}");
        let dir = format!("restored-{round}");
        let (code, restored) = place.json(&["restore", &to, &dir]);
        assert_eq!((code, restored.get("root")), (0, made.get("root")), "{restored}");
        let verified = place.run(&["verify", "--all", "--replay", "--store", &dir]);
        // Where the other goes on and signs, this one is older than what was signed here, and says so.
        assert!(verified.code == 0 || verified.stdout.contains("signed here"), "{}", verified.stdout);
        assert_eq!(place.run(&["fsck", "--store", &dir]).code, 0);
        sizes.push(number(&made, "records"));
    }
    drop(stop);
    let fed = feeder.join().unwrap();
    let output = ran(child.wait_with_output().unwrap());
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(sizes.is_sorted() && sizes.first() < sizes.last(), "{sizes:?}");
    let (_, last) = place.json(&["backup", "safe"]);
    assert_eq!(number(&last, "records"), 13 + fed);
    assert_eq!(
        anywhere(&place.ok(&["log", "busy", "-n", "0", "--json", "--store", "safe"])),
        anywhere(&place.ok(&["log", "busy", "-n", "0", "--json"]))
    );
}

#[test]
fn a_backup_that_is_killed_is_none_or_the_one_before() {
    let place = filled(3000);
    let mut killed = 0;
    for round in 0..24u64 {
        let to = format!("safe-{}", round / 6);
        let mut child =
            place.command(&["backup", &to]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(2_000 + round % 6 * 12_000));
        child.kill().unwrap();
        killed += u64::from(!child.wait().unwrap().success());
        let ran = place.run(&["verify", "--all", "--store", &to]);
        match ran.code {
            0 => assert!(place.path().join(&to).join("store.json").exists()),
            3 => assert!(!place.path().join(&to).join("store.json").exists()),
            code => panic!("{code}: {}{}", ran.stdout, ran.stderr),
        }
    }
    assert!(killed > 6, "{killed}");
    for n in 0..4 {
        let to = format!("safe-{n}");
        place.ok(&["backup", &to]);
        place.ok(&["verify", "--all", "--store", &to]);
        let log = |store: &str| anywhere(&place.ok(&["log", "r", "--json", "--store", store]));
        assert!(log(&to) == log("."), "{to}");
    }
    // What was not finished says so, and no verb takes it for a store.
    std::fs::create_dir(place.path().join("half")).unwrap();
    std::fs::copy(place.path().join("safe-0/backup.json"), place.path().join("half/backup.json")).unwrap();
    let ran = place.run(&["runs", "--store", "half"]);
    assert!(ran.code == 3 && ran.stderr.contains("was not finished"), "{}", ran.stderr);
}

#[test]
fn a_backup_is_made_in_a_place_of_its_own_or_not_at_all() {
    let place = filled(3);
    std::fs::create_dir_all(place.path().join("full")).unwrap();
    std::fs::write(place.path().join("full/notes.txt"), "mine").unwrap();
    std::fs::write(place.path().join("file"), "mine").unwrap();
    let other = Place::with_store();
    other.ok(&["backup", "safe"]);
    let others = other.path().join("safe");
    let before = files(place.path());
    for (to, code, exit) in [
        (".dendrer", "E0106", 2),
        (".dendrer/safe", "E0106", 2),
        (".dendrer/segments", "E0106", 2),
        (".", "E0106", 2),
        ("./full/../.dendrer/x", "E0106", 2),
        ("full", "E0115", 2),
        ("file", "E0115", 2),
        (others.to_str().unwrap(), "E0113", 5),
    ] {
        let (found, error) = place.json(&["backup", to]);
        assert_eq!((found, code_of(&error)), (exit, code), "{to}: {error}");
    }
    let (code, error) = place.json(&["backup", "full"]);
    assert!(code == 2 && error.to_string().contains("notes.txt"), "{error}");
    let without_lock = |files: BTreeMap<PathBuf, Vec<u8>>| files.into_keys().collect::<Vec<_>>();
    assert_eq!(without_lock(files(place.path())), without_lock(before), "nothing was made anywhere");
    // A store that is no backup is not written over.
    place.ok(&["init", "second"]);
    let (code, error) = place.json(&["backup", "second/.dendrer"]);
    assert_eq!((code, code_of(&error)), (2, "E0110"), "{error}");
}

#[test]
#[cfg(unix)]
fn a_backup_is_not_written_through_links() {
    let place = filled(3);
    let link = |from: &str, to: &str| {
        std::os::unix::fs::symlink(place.path().join(from), place.path().join(to)).unwrap()
    };
    link(".dendrer", "way-in");
    assert_eq!(code_of(&place.json(&["backup", "way-in"]).1), "E0106");
    assert_eq!(code_of(&place.json(&["backup", "way-in/deeper"]).1), "E0106");
    for inner in ["segments", "segments/00000000.seg"] {
        std::fs::remove_dir_all(place.path().join("safe")).ok();
        place.ok(&["backup", "safe"]);
        let path = place.path().join("safe").join(inner);
        std::fs::rename(&path, place.path().join(format!("moved-{}", inner.len()))).unwrap();
        link(&format!(".dendrer/{inner}"), &format!("safe/{inner}"));
        commit(&place, "r", 1, 100);
        let before = files(&place.path().join(".dendrer/segments"));
        assert_eq!(code_of(&place.json(&["backup", "safe"]).1), "E0113", "{inner}");
        assert_eq!(files(&place.path().join(".dendrer/segments")), before);
    }
    // A link to a directory elsewhere is how disks are named, and is followed.
    std::fs::create_dir(place.path().join("disk")).unwrap();
    link("disk", "by-name");
    place.ok(&["backup", "by-name"]);
    place.ok(&["verify", "--all", "--store", "disk"]);
}

/// A file system of one megabyte for the backup, and one that cannot be written.
#[test]
#[cfg(target_os = "linux")]
fn a_full_or_closed_disk_ends_a_backup_and_the_next_one_goes_on() {
    if !can_mount() {
        return;
    }
    let place = filled(4000);
    std::fs::create_dir(place.path().join("disk")).unwrap();
    let script = r#"
        mount -t tmpfs -o size=1m none disk
        step() { name=$1; shift; "$D" "$@" >"$name.out" 2>"$name.err"; echo $? >"$name.rc"; }
        step full backup disk/safe
        step none verify --all --store disk/safe
        mount -o remount,size=64m disk
        step again backup disk/safe
        step there verify --all --store disk/safe
        "$D" commit --run late --file one.jsonl >/dev/null 2>&1
        mount -o remount,ro disk
        step closed backup disk/safe
        step still verify --all --store disk/safe
        mount -o remount,rw disk
        step open backup disk/safe
    "#;
    std::fs::write(place.path().join("one.jsonl"), "{\"type\":\"plan.update\"}\n").unwrap();
    let step = place.in_namespace(script);
    let full = step("full");
    assert!(full.code == 8 && full.stderr.contains("no space left for"), "{}", full.stderr);
    assert_eq!(step("none").code, 3, "what is there is no store");
    assert_eq!((step("again").code, step("there").code), (0, 0));
    let closed = step("closed");
    assert!(closed.code == 8 && closed.stderr.contains("E0801"), "{}", closed.stderr);
    // The store was signed further since, so the older backup shows as what it is: behind.
    assert!(
        step("still").stdout.contains("signed here") || step("still").code == 0,
        "{}",
        step("still").stdout
    );
    assert_eq!(step("open").code, 0, "{}", step("open").stderr);
}

#[test]
fn a_restore_checks_everything_first_and_never_puts_away_what_is_newer() {
    let place = filled(10);
    place.ok(&["backup", "safe"]);
    let log = anywhere(&place.ok(&["log", "r", "--json"]));
    let fresh = place.run(&["restore", "safe", "fresh"]);
    assert_eq!(fresh.code, 0, "{}", fresh.stderr);
    assert!(fresh.stdout.starts_with("RESTORED  fresh"), "{}", fresh.stdout);
    assert!(fresh.stdout.contains(".dendrer: 12 records, root "), "{}", fresh.stdout);
    assert_eq!(anywhere(&place.ok(&["log", "r", "--json", "--store", "fresh"])), log);
    assert!(!place.path().join("fresh/.dendrer/backup.json").exists());
    // There is a store already.
    assert_eq!(code_of(&place.json(&["restore", "safe"]).1), "E0110");
    // It has the same records: then it is moved aside when that is asked for.
    let (code, replaced) = place.json(&["restore", "safe", "--replace"]);
    assert_eq!((code, is_true(&replaced, "writable")), (0, true), "{replaced}");
    assert!(place.path().join(".dendrer.replaced/store.json").exists());
    // Now it has more.
    commit(&place, "r", 1, 50);
    let before = files(&place.path().join(".dendrer/segments"));
    let (code, error) = place.json(&["restore", "safe", "--replace"]);
    assert_eq!((code, code_of(&error)), (5, "E0114"), "{error}");
    assert!(error.to_string().contains("has 1 record that the backup does not have"), "{error}");
    assert_eq!(files(&place.path().join(".dendrer/segments")), before);
    assert_eq!(place.run(&["restore", "safe", "--discard-newer"]).code, 2, "not without --replace");
    // Another store is never put away.
    let other = Place::with_store();
    let safe = place.path().join("safe");
    assert_eq!(code_of(&other.json(&["restore", safe.to_str().unwrap(), "--replace"]).1), "E0110");
    // A changed backup is not restored, whatever was changed.
    for (path, content) in files(&safe) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.components().any(|part| part.as_os_str() == "log") || name == "lock" {
            continue;
        }
        let mut changed = content.clone();
        let at = content.len() / 2;
        changed[at] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        let (code, error) = place.json(&["restore", "safe", "again"]);
        assert!(code == 4 || code == 2 || code == 8, "{name}: {error}");
        std::fs::write(&path, &content[..at]).unwrap();
        let (code, error) = place.json(&["restore", "safe", "again"]);
        assert!(code == 4, "{name} cut: {error}");
        assert!(!place.path().join("again/.dendrer").exists(), "{name}");
        std::fs::write(&path, &content).unwrap();
    }
    place.ok(&["restore", "safe", "again"]);
}

/// What was signed is remembered outside of stores: behind an older log no verb writes, and none signs.
#[test]
fn an_older_store_that_was_restored_never_signs_a_second_history() {
    for forget_pin in [false, true] {
        let place = filled(10);
        place.ok(&["backup", "safe"]);
        commit(&place, "r", 5, 50);
        if forget_pin {
            // Only the store that is put away knows by then what was signed.
            std::fs::remove_dir_all(place.config().join("heads")).unwrap();
        }
        let (code, restored) = place.json(&["restore", "safe", "--replace", "--discard-newer"]);
        assert_eq!((code, is_true(&restored, "writable")), (0, false), "{restored}");
        assert_eq!((number(&restored, "records"), number(&restored, "last_signed_here")), (12, 17));
        assert_eq!(place.run(&["log", "r"]).code, 0, "it is read");
        let before = files(&place.path().join(".dendrer"));
        std::fs::write(place.path().join("chat.json"), r#"[{"role":"user","content":"hello"}]"#).unwrap();
        for args in [
            &["commit", "--run", "r", "--file", "chat.json"][..],
            &["commit", "--run", "new", "--file", "chat.json"],
            &["import", "chat.json", "--run", "imported"],
            &["predicate", "register", "acme.ok", "--holds", "state.n == 1"],
        ] {
            let (code, error) = place.json(args);
            assert_eq!((code, code_of(&error)), (4, "E0307"), "{args:?}: {error}");
        }
        // An export signs nothing, and goes under the signature that is there.
        place.ok(&["export", "r", "-o", "r.dnd"]);
        let after = files(&place.path().join(".dendrer"));
        let of_log = |files: &BTreeMap<PathBuf, Vec<u8>>| {
            let kept = files.iter().filter(|(path, _)| !path.to_string_lossy().contains("index"));
            kept.map(|(path, content)| (path.clone(), content.clone())).collect::<Vec<_>>()
        };
        assert!(of_log(&before) == of_log(&after), "nothing was written");
        let ran = place.run(&["doctor"]);
        assert!(
            ran.code == 4 && ran.stdout.contains("17 records were signed here, and the log has 12"),
            "{}",
            ran.stdout
        );
        // The newer one is still there, and can come back.
        std::fs::rename(place.path().join(".dendrer"), place.path().join("older")).unwrap();
        std::fs::rename(place.path().join(".dendrer.replaced"), place.path().join(".dendrer")).unwrap();
        commit(&place, "r", 1, 60);
        assert_eq!(place.run(&["verify", "--all"]).code, 0);
    }
}

/// As long as an older copy is as long as the other was when it was signed, only its root tells.
#[test]
fn a_twin_of_the_same_length_is_not_signed_either() {
    let place = filled(10);
    place.ok(&["backup", "safe"]);
    place.ok(&["restore", "safe", "twin"]);
    commit(&place, "r", 1, 50);
    // The twin does not know of that record, and would put another one in its place.
    let (code, error) = place.json(&["commit", "--run", "r", "--file", "/dev/null", "--store", "twin"]);
    assert_eq!((code, code_of(&error)), (4, "E0307"), "{error}");
}

#[test]
fn fsck_says_what_is_wrong_with_which_file_and_what_is_lost() {
    let place = filled(30);
    let (code, fine) = place.json(&["fsck"]);
    assert_eq!((code, is_true(&fine, "intact"), number(&fine, "lost")), (0, true, 0), "{fine}");
    let text = place.ok(&["fsck"]);
    assert!(
        text.contains("ok         segments/") && text.lines().last().unwrap().starts_with("INTACT   "),
        "{text}"
    );
    let dir = place.path().join(".dendrer");
    std::fs::write(dir.join("store.tmp"), "half").unwrap();
    std::fs::write(dir.join("notes.txt"), "mine").unwrap();
    let text = place.ok(&["fsck"]);
    assert!(text.contains("left over  store.tmp") && text.contains("foreign    notes.txt"), "{text}");
    // A flipped bit in the values of one record.
    let segment = dir.join("segments/00000000.seg");
    let content = std::fs::read(&segment).unwrap();
    let at = content.windows(6).position(|window| window == b"step 7").unwrap();
    let mut damaged = content.clone();
    damaged[at] ^= 1;
    std::fs::write(&segment, &damaged).unwrap();
    let (code, found) = place.json(&["fsck"]);
    assert_eq!((code, is_true(&found, "intact"), number(&found, "lost")), (4, false, 1), "{found}");
    let text = place.run(&["fsck"]);
    assert!(text.stdout.contains("error[E0305]: run r tick 8, position 9"), "{}", text.stdout);
    assert!(
        text.stdout.contains("lost       1 record; every other one opens as it was committed"),
        "{}",
        text.stdout
    );
    assert_eq!(place.run(&["verify", "--all"]).code, 4, "as verify says");
    assert_eq!(place.json(&["backup", "safe"]).0, 4, "damage is not backed up");
    // The end is gone: what was signed tells how much.
    std::fs::write(&segment, &content[..content.len() / 2]).unwrap();
    let (code, found) = place.json(&["fsck"]);
    assert!(code == 4 && number(&found, "lost") > 10, "{found}");
    std::fs::write(&segment, &content).unwrap();
    place.ok(&["fsck"]);
}

fn states(place: &Place, run: &str, ticks: &[u64]) -> Vec<String> {
    ticks.iter().map(|tick| place.ok(&["state", &format!("{run}@{tick}"), "--json"])).collect()
}

#[test]
fn gc_removes_what_nothing_needs_and_every_state_is_read_as_before() {
    // Snapshots are kept in the index, which is made when a store has some records.
    let place = filled(1200);
    commit(&place, "r", 4000, 1200);
    // Kept answers of predicates as well.
    let bisect = || place.run(&["bisect", "r", "--holds", "state.slots.s1 != \"x\""]).code;
    let answer = bisect();
    let dir = place.path().join(".dendrer");
    std::fs::write(dir.join("checkpoint.tmp"), "half").unwrap();
    let ticks = [1, 77, 1999, 2500, 4000];
    let before = states(&place, "r", &ticks);
    let segments = files(&dir.join("segments"));
    // A dry run removes nothing.
    let all = files(&dir).into_keys().collect::<Vec<_>>();
    let (code, dry) = place.json(&["gc", "-n"]);
    let items = |answer: &Value| answer.get("items").unwrap().as_array().unwrap().len();
    assert_eq!((code, items(&dry), number(&dry, "bytes")), (0, 1, 4), "the rule kept its own: {dry}");
    assert_eq!(files(&dir).into_keys().collect::<Vec<_>>(), all);
    let (_, done) = place.json(&["gc"]);
    assert_eq!(items(&done), 1);
    assert!(!dir.join("checkpoint.tmp").exists());
    assert_eq!(states(&place, "r", &ticks), before);
    // Fewer snapshots.
    let (_, would) = place.json(&["gc", "-n", "--snapshots", "thin"]);
    let size = || std::fs::metadata(dir.join("index.sqlite")).unwrap().len();
    let large = size();
    let (_, thin) = place.json(&["gc", "--snapshots", "thin"]);
    let total = |answer: &Value| number(answer, "bytes") + number(answer, "room");
    assert_eq!(total(&thin), large - size(), "what was removed is counted once: {thin}");
    let foretold = total(&would);
    assert!((foretold..foretold * 3 / 2).contains(&total(&thin)), "but for parts of pages: {would} {thin}");
    assert!(items(&thin) >= 3 && items(&thin) == items(&would), "{thin}");
    assert_eq!(states(&place, "r", &ticks), before);
    assert!(place.ok(&["gc", "--snapshots", "thin"]).starts_with("nothing to remove"));
    // What was not written to for so long: everything derived of it goes.
    assert_eq!(items(&place.json(&["gc", "--keep", "30d"]).1), 0, "it was written to just now");
    let (_, old) = place.json(&["gc", "--keep", "0h"]);
    let kinds: Vec<&str> = old
        .get("items")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item.get("what")?.as_str())
        .collect();
    assert!(kinds.contains(&"verdicts"), "{kinds:?}");
    assert_eq!(states(&place, "r", &ticks), before);
    assert_eq!(files(&dir.join("segments")), segments, "the log is as it was");
    assert_eq!(place.run(&["verify", "--all", "--replay"]).code, 0);
    assert_eq!(place.run(&["gc", "--keep", "soon"]).code, 2);
    assert_eq!(bisect(), answer);
}

#[test]
fn a_snapshot_that_lies_is_found_and_goes() {
    let place = filled(1200);
    commit(&place, "r", 1200, 1200);
    let dir = place.path().join(".dendrer");
    let db = rusqlite::Connection::open(dir.join("index.sqlite")).unwrap();
    let changed = db.execute("UPDATE snapshot SET state = replace(state, '0', '1') WHERE tick = (SELECT min(tick) FROM snapshot)", []).unwrap();
    db.execute("INSERT INTO snapshot (run, tick, state) VALUES ('nobody', 3, x'00')", []).unwrap();
    drop(db);
    assert_eq!(changed, 1, "a run of so many ticks has snapshots");
    let ran = place.run(&["fsck"]);
    assert_eq!((ran.code, ran.stdout.matches("derived    index.sqlite").count()), (0, 2), "{}", ran.stdout);
    assert!(ran.stdout.contains("a snapshot that is not the state of nobody@3"), "{}", ran.stdout);
    let text = place.ok(&["gc"]);
    assert!(text.contains("removed  1 snapshot, 1 byte: the log has no such run or tick"), "{text}");
    assert!(text.contains("not the state on record"), "{text}");
    assert!(!place.ok(&["fsck"]).contains("derived"), "clean");
}

/// The state of a snapshot is bound by its record; what else it says counts under the key of the store alone, for whoever asks
/// and for whoever goes on from there.
#[test]
fn a_snapshot_that_was_forged_leads_nobody_astray() {
    let place = filled(1200);
    commit(&place, "r", 1200, 1200);
    let path = place.path().join(".dendrer/index.sqlite");
    let db = rusqlite::Connection::open(&path).unwrap();
    // One may be of the end of the run.
    db.execute("DELETE FROM snapshot WHERE tick >= 2399", []).unwrap();
    let newest = "FROM snapshot WHERE run = 'r' ORDER BY tick DESC LIMIT 1";
    let (tick, bytes): (u32, Vec<u8>) = db
        .query_row(&format!("SELECT tick, state {newest}"), [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert!(tick > 2000, "{tick}");
    let text = String::from_utf8(bytes[32..].to_vec()).unwrap();
    // What it counted, and how many transitions of their own its agents have.
    let forged = text
        .replace(&format!("\"transitions\":{tick}"), &format!("\"transitions\":{}", tick + 5000))
        .replace("\"seq\":", "\"seq\":7");
    assert_ne!(forged.len(), text.len());
    for signature in [&bytes[..32], &[0; 32]] {
        let forged = [signature, forged.as_bytes()].concat();
        db.execute("UPDATE snapshot SET state = ?1 WHERE tick = ?2", rusqlite::params![forged, tick])
            .unwrap();
        let counted = |at: u32| place.ok(&["state", &format!("r@{at}"), "--path", "counters.transitions"]);
        for at in [tick, tick + 1] {
            assert_eq!(counted(at).trim(), at.to_string());
        }
        let many = format!("state.counters.transitions > {}", tick + 4000);
        assert!(place.run(&["runs", "--where", &many, "--json"]).stdout.contains("\"items\":[]"));
        let said = place.ok(&["fsck"]).contains(&format!("r@{tick} whose counters are not what the key"));
        assert_eq!(said, signature != [0; 32], "what nobody signed is no forgery");
    }
    // Whoever has not the key of the store counts for himself, too.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = place.command(&["state", &format!("r@{tick}"), "--path", "counters.transitions"]);
    let ran = ran(at_home(&mut command, elsewhere.path()).output().unwrap());
    assert_eq!((ran.code, ran.stdout.trim()), (0, &*tick.to_string()), "{}", ran.stderr);
    place.ok(&["key", "writer", "--out", "w.key"]);
    let mut command = place.command(&["commit", "--run", "r", "--file", "-", "--key", "w.key"]);
    let input = place.path().join("step.jsonl");
    std::fs::write(&input, intents(1, 2400)).unwrap();
    let file = std::fs::File::open(input).unwrap();
    let ran = self::ran(at_home(&mut command, elsewhere.path()).stdin(file).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    commit(&place, "r", 1, 2401);
    let ran = place.run(&["verify", "--all", "--replay"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let gone = place.ok(&["gc"]);
    assert!(!gone.contains("not the state on record"), "{gone}");
}

/// One line of `doctor`: level, code, what.
#[cfg(unix)]
fn line<'v>(answer: &'v Value, name: &str) -> (&'v str, Option<&'v str>, &'v str) {
    let items = answer.get("items").unwrap().as_array().unwrap();
    let item = items.iter().find(|item| item.get("name").unwrap().as_str() == Some(name));
    let item = item.unwrap_or_else(|| panic!("{name}: {answer}"));
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    (text("level").unwrap(), text("code"), text("what").unwrap())
}

#[test]
#[cfg(unix)]
fn doctor_says_what_is_wrong_and_fixes_what_is_derived() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let (code, nothing) = place.json(&["doctor"]);
    assert_eq!((code, line(&nothing, "store").1), (0, Some("E0103")), "{nothing}");
    let place = filled(1500);
    let (code, fine) = place.json(&["doctor"]);
    assert_eq!((code, fine.get("level").unwrap().as_str()), (0, Some("ok")), "{fine}");
    for name in
        ["version", "config", "store", "log", "signed", "key", "index", "lock", "leftovers", "clock", "sync"]
    {
        assert_eq!(line(&fine, name).0, "ok", "{name}");
    }
    let dir = place.path().join(".dendrer");
    let keys = place.config().join("keys");
    let key = std::fs::read_dir(keys).unwrap().next().unwrap().unwrap().path();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(dir.join("index.sqlite"), "no database").unwrap();
    std::fs::remove_file(dir.join("index.sqlite-wal")).ok();
    std::fs::write(dir.join("store.tmp"), "half").unwrap();
    let segments = files(&dir.join("segments"));
    let (code, ill) = place.json(&["doctor"]);
    assert_eq!(code, 1, "{ill}");
    assert_eq!((line(&ill, "key").0, line(&ill, "key").1), ("fail", Some("E0804")));
    assert_eq!((line(&ill, "index").0, line(&ill, "leftovers").0), ("warn", "warn"));
    let text = place.run(&["doctor"]).stdout;
    assert!(text.contains("next: dendrer doctor --fix") && text.contains("next: chmod 600 "), "{text}");
    let fixed = place.run(&["doctor", "--fix"]);
    assert_eq!((fixed.code, fixed.stdout.matches("fixed  ").count()), (0, 3), "{}", fixed.stdout);
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!dir.join("store.tmp").exists());
    assert_eq!(files(&dir.join("segments")), segments, "the log is as it was");
    let (code, again) = place.json(&["doctor"]);
    assert_eq!((code, again.get("level").unwrap().as_str()), (0, Some("ok")), "{again}");
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
    // An index of a newer version is left alone, and one of another store is made anew.
    let db = rusqlite::Connection::open(dir.join("index.sqlite")).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    let (_, newer) = place.json(&["doctor", "--fix"]);
    assert_eq!((line(&newer, "index").0, line(&newer, "index").1), ("warn", Some("E0803")));
    let other = filled(1500);
    std::fs::copy(other.path().join(".dendrer/index.sqlite"), dir.join("index.sqlite")).unwrap();
    let (_, foreign) = place.json(&["doctor"]);
    assert_eq!(line(&foreign, "index").1, Some("E0309"), "{foreign}");
    place.ok(&["doctor", "--fix"]);
    assert!(line(&place.json(&["doctor"]).1, "index").2.starts_with("covers 1,502 of 1,502"));
    // Damage is told and never touched.
    let segment = dir.join("segments/00000000.seg");
    let content = std::fs::read(&segment).unwrap();
    std::fs::write(&segment, &content[..content.len() / 2]).unwrap();
    let (code, lost) = place.json(&["doctor", "--fix"]);
    assert_eq!((code, line(&lost, "log").0, line(&lost, "log").1), (4, "fail", Some("E0307")), "{lost}");
    assert_eq!(std::fs::read(&segment).unwrap().len(), content.len() / 2);
}

/// Of what a store makes nothing but three directories is one: others are told, and what is in them is nobody's to remove.
#[test]
fn a_directory_in_the_place_of_a_file_is_told_and_left_alone() {
    let place = filled(1500);
    let dir = place.path().join(".dendrer");
    for name in ["x.tmp", "log/y.tmp", "index-new.sqlite"] {
        std::fs::create_dir_all(dir.join(name)).unwrap();
    }
    for verb in [&["gc"][..], &["doctor", "--fix"]] {
        place.ok(verb);
        let (code, said) = place.json(&["fsck"]);
        let lines = said.to_string();
        assert_eq!(code, 0, "{lines}");
        for name in ["x.tmp", "log/y.tmp", "index-new.sqlite"] {
            assert!(dir.join(name).is_dir() && lines.contains(name), "{name}: {lines}");
        }
        assert!(!lines.contains("left over"), "{lines}");
    }
    std::fs::remove_dir(dir.join("index-new.sqlite")).unwrap();
    let index = dir.join("index.sqlite");
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    std::fs::write(index.join("mine"), "kept").unwrap();
    for _ in 0..2 {
        let (code, ill) = place.json(&["doctor", "--fix"]);
        assert_eq!((code, line(&ill, "index").0), (1, "fail"), "{ill}");
        assert!(line(&ill, "index").2.contains("it is a directory"), "{ill}");
        assert!(index.join("mine").exists() && line(&ill, "leftovers").0 == "ok", "{ill}");
    }
    std::fs::remove_dir_all(&index).unwrap();
    place.ok(&["doctor", "--fix"]);
    assert_eq!(line(&place.json(&["doctor"]).1, "index").0, "ok");
}

/// Canaries in every field, in names, paths and the key: none of them gets into the report.
#[test]
fn the_report_for_others_says_nothing_of_what_was_recorded() {
    let place = Place::new();
    let dir = place.path().join("canary-dir");
    std::fs::create_dir(&dir).unwrap();
    let home = |args: &[&str]| {
        let mut command = place.command(args);
        command.current_dir(&dir);
        command
    };
    assert!(home(&["init"]).output().unwrap().status.success());
    let line = r#"{"type":"plan.update","agent":"canary-agent","goal":"canary-goal","intent":{"description":"canary-intent"},"author":"runtime","action":{"tool":"canary-tool"},"policy":{"canary-policy":1},"metrics":{"canary-metric":1},"anomalies":["canary-anomaly"],"delta":[{"set":"/canary-path","value":"canary-value"}]}"#;
    let mut child = home(&["commit", "--run", "canary-run", "--goal", "canary-aim", "--as", "runtime"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(format!("{line}\n{line}\n{{\"type\":\"canary.type\"}}\n").as_bytes())
        .unwrap();
    child.wait().unwrap();
    std::fs::write(dir.join(".dendrer/canary-file"), "canary").unwrap();
    std::fs::write(dir.join(".dendrer/canary.tmp"), "canary").unwrap();
    let secret = secret(&place);
    let id = {
        let text = std::fs::read_to_string(dir.join(".dendrer/store.json")).unwrap();
        parse(&text).get("id").unwrap().as_str().unwrap().to_owned()
    };
    let check = |name: &str| {
        let ran = ran(home(&["doctor", "--report", name]).output().unwrap());
        let report = std::fs::read_to_string(dir.join(name)).unwrap();
        parse(&report);
        let home = place.path().to_str().unwrap().to_owned();
        let user = std::env::var("USER").unwrap_or_else(|_| "canary".to_owned());
        for part in ["canary", &id, &id[..12], &home, ".dendrer", std::str::from_utf8(&secret).unwrap()] {
            assert!(!report.contains(part), "{part} in {report}");
        }
        assert!(user.len() < 4 || !report.contains(&user), "{report}");
        (ran.code, parse(&report))
    };
    let (code, report) = check("one.json");
    assert_eq!(code, 0, "{report}");
    let store = report.get("store").unwrap();
    assert_eq!(
        (number(store, "runs"), number(store, "transitions"), number(store, "refusals")),
        (1, 2, 1),
        "{report}"
    );
    // Two reports give a run two names, so neither can be guessed from the other or from a list.
    let run = |report: &Value| {
        report
            .get("store")
            .unwrap()
            .get("items")
            .unwrap()
            .as_array()
            .unwrap()
            .get(0)
            .unwrap()
            .get("run")
            .unwrap()
            .clone()
    };
    let (_, second) = check("two.json");
    assert_ne!(run(&report), run(&second));
    // Nor when everything fails, with messages full of names and paths.
    let segment = dir.join(".dendrer/segments/00000000.seg");
    let mut content = std::fs::read(&segment).unwrap();
    let at = contains_at(&content, b"canary-intent");
    content[at] ^= 1;
    std::fs::write(&segment, content).unwrap();
    let (code, report) = check("three.json");
    assert_eq!((code, report.get("store").unwrap().get("trouble").unwrap().as_str()), (4, Some("E0305")));
}

fn contains_at(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).unwrap()
}

/// What was signed is written down twice: a checkpoint that is none is taken from beside the tiles, if that is signed and the log
/// says the same; else it stays as it is.
#[test]
fn a_broken_checkpoint_is_mended_from_beside_the_tiles() {
    let place = Place::with_store();
    let hello = b"{\"type\":\"observation.add\"}\n";
    for _ in 0..3 {
        assert_eq!(place.run_with(&["commit", "--run", "r"], hello).code, 0);
    }
    let dir = place.path().join(".dendrer");
    let (checkpoint, twin) = (dir.join("checkpoint"), dir.join("log/checkpoint"));
    let whole = std::fs::read_to_string(&checkpoint).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let forged = whole.replacen(lines[2], "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii=", 1);
    for broken in ["", "not a note", &whole[..60], &forged] {
        std::fs::write(&checkpoint, broken).unwrap();
        let refused = place.run_with(&["commit", "--run", "r"], hello);
        assert!(
            refused.code == 4 && refused.stderr.contains("help: dendrer doctor --fix"),
            "{}",
            refused.stderr
        );
        assert!(place.run(&["doctor"]).stdout.contains("next: dendrer doctor --fix"));
        // A twin that is no better, or of another log, mends nothing.
        let other = whole.replacen(lines[2], &lines[2].chars().rev().collect::<String>(), 1);
        for twice in [broken, &other] {
            std::fs::write(&twin, twice).unwrap();
            assert_eq!(place.run(&["doctor", "--fix"]).code, 4);
            assert_eq!(std::fs::read_to_string(&checkpoint).unwrap(), *broken);
        }
        std::fs::write(&twin, &whole).unwrap();
        assert!(place.ok(&["doctor", "--fix"]).contains("fixed  checkpoint"));
        assert_eq!(std::fs::read_to_string(&checkpoint).unwrap(), whole);
        assert_eq!(place.run(&["verify", "--all"]).code, 0);
    }
    // What speaks for a longer log is kept, and where nothing says how long it was, nothing is known to be the newest.
    let elsewhere = place.path().join("elsewhere");
    for (broken, config) in
        [(whole.replacen("\n5\n", "\n9\n", 1), place.config()), (String::new(), elsewhere)]
    {
        std::fs::write(&checkpoint, &broken).unwrap();
        let mut doctor = place.command(&["doctor", "--fix"]);
        let left = ran(doctor.env("XDG_CONFIG_HOME", config.parent().unwrap()).output().unwrap());
        assert!(left.code == 4 && !left.stdout.contains("fixed  checkpoint"), "{}", left.stdout);
        assert_eq!(std::fs::read_to_string(&checkpoint).unwrap(), broken);
    }
    std::fs::write(&checkpoint, &whole).unwrap();
    assert_eq!(place.run_with(&["commit", "--run", "r"], hello).code, 0);
}

/// Records that all open, and are not the log that was signed: what of it is lost is not known.
#[test]
fn what_another_log_has_lost_is_not_known() {
    let place = Place::with_store();
    let commit = |place: &Place, kind: &str| {
        let line = format!("{{\"type\":\"{kind}\"}}\n");
        assert_eq!(place.run_with(&["commit", "--run", "r"], line.as_bytes()).code, 0);
    };
    commit(&place, "plan.update");
    let twin = Place::new();
    for dir in [".dendrer", ".config"] {
        crate::support::copy(&place.path().join(dir), &twin.path().join(dir));
    }
    commit(&place, "plan.update");
    commit(&twin, "observation.add");
    std::fs::copy(twin.path().join(".dendrer/checkpoint"), place.path().join(".dendrer/checkpoint")).unwrap();
    let found = place.run(&["fsck"]);
    assert!(
        found.code == 4 && found.stdout.contains("lost       not known: each record opens"),
        "{}",
        found.stdout
    );
    let (_, json) = place.json(&["fsck"]);
    assert!(json.get("lost").is_some_and(|lost| *lost == dendrer_object::Value::Null), "{json}");
}
