//! Backups of a store in use: made while others write and erase, cut off at every moment, and tampered with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dendrer_object::record::Kind;
use dendrer_object::{Code, Pointer, Record, StoreId, Value};
use dendrer_store::conformance::{STORE, Scribe, check_holds, info, key, noise};
use dendrer_store::faulty::{Crash, DiskFault, Faulty};
use dendrer_store::prelude::*;
use dendrer_store::{
    Copied, CopyAs, Embedded, Given, Meter, Options, StoreError, StoreInfo, TilesState, VerifyOptions,
};

fn pointer(text: &str) -> Pointer {
    text.parse().unwrap()
}

/// What is erased later: short enough to stand in the values, or so long that it is cut into chunks.
fn secret(n: u64) -> String {
    format!("secret-{n}-{}", noise(if n.is_multiple_of(2) { 200 } else { 3000 }, n + 1000))
}

/// A transition with a secret. What goes before the secret is the same everywhere, so that chunks are shared.
fn with_secret(scribe: &mut Scribe, n: u64) -> Record {
    let intent = Value::record([("secret", Value::from(secret(n))), ("keep", Value::from(noise(4000, 9)))]);
    scribe.transition("r", Value::record([("agent_id", Value::from("a")), ("intent", intent)]))
}

fn erase(store: &mut Embedded, scribe: &mut Scribe, position: u64) -> Record {
    let record = scribe.beside(Kind::Erase, "r", Value::record([("position", position.into())]));
    store.erase(&record, &[(position, vec![pointer("/intent/secret")])]).unwrap();
    record
}

fn copy(store: &mut Embedded, to: &Path, what: CopyAs) -> Result<Copied, StoreError> {
    let meter = Meter::default();
    let mut copying = store.start_copy(to, what)?;
    copying.copy(&meter)?;
    let copied = copying.finish(Meter::default())?;
    assert_eq!(meter.done(), copied.bytes, "what is copied is counted");
    Ok(copied)
}

fn check_verifies(store: &Embedded) {
    assert!(store.trouble().is_none(), "{:?}", store.trouble());
    let report = store.verify(&VerifyOptions::default()).unwrap();
    assert_eq!(report.findings, []);
    assert!(report.root_checked && !report.unfinished);
    assert_eq!((report.tree, report.records), (store.tree(), store.tree().size));
}

/// How often something is tried: a few times, or as often as a deep test asks for.
fn rounds() -> u64 {
    std::env::var("DENDRER_DEEP").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// Every file below a directory as one text of bytes.
fn bytes_below(dir: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => bytes.extend(bytes_below(&path)),
            false => bytes.extend(std::fs::read(&path).unwrap()),
        }
    }
    bytes
}

fn contains(bytes: &[u8], text: &str) -> bool {
    // Chunks may be cut anywhere, so a part from the begin and one from the end are looked for.
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    has(&text.as_bytes()[..40]) || has(&text.as_bytes()[text.len() - 40..])
}

#[test]
fn copies_made_while_others_write_and_erase_are_whole_and_keep_nothing_erased() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let options = Options { segment_size: 40_000, uncovered_max: 50, ..Options::untagged() };
    let mut store = Embedded::create(&path, info(), options).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut records = store.get(0).unwrap().into_iter().collect::<Vec<_>>();
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) || n < 30 {
                let group = vec![with_secret(&mut scribe, n), scribe.step("r")];
                store.commit(&group).unwrap();
                records.extend(group);
                if n % 3 == 2 {
                    // That of this group, so that it is erased while it may be under way to a copy.
                    let position = records.len() as u64 - 2;
                    records.push(erase(&mut store, &mut scribe, position));
                }
                if n % 10 == 9 {
                    store.sign_checkpoint(&key()).unwrap();
                }
                n += 1;
            }
            (store, records)
        });
        let mut copies = Vec::new();
        let again = dir.path().join("again");
        for round in 0..rounds() {
            let fresh = dir.path().join(format!("copy-{round}"));
            let mut source = Embedded::open(&path, Options::read()).unwrap();
            copies.push((copy(&mut source, &fresh, CopyAs::Backup).unwrap(), fresh));
            let copied = copy(&mut source, &again, CopyAs::Backup).unwrap();
            let reader = Embedded::open(&again, Options::read()).unwrap();
            assert_eq!(reader.tree(), copied.tree);
            check_verifies(&reader);
        }
        stop.store(true, Ordering::Relaxed);
        let (mut store, records) = writer.join().unwrap();
        copies.push((copy(&mut store, &again, CopyAs::Backup).unwrap(), again));
        for (copied, path) in &copies {
            let reader = Embedded::open(path, Options::read()).unwrap();
            assert_eq!((reader.tree(), reader.backup_head()), (copied.tree, Some(copied.tree)));
            assert_eq!(store.root_of(copied.tree.size).unwrap(), Some(copied.tree.root));
            check_verifies(&reader);
            assert!(!path.join("index.sqlite").exists());
            let bytes = bytes_below(&path.join("segments"));
            let erased: Vec<u64> = records[..copied.tree.size as usize]
                .iter()
                .filter_map(|record| record.body().value("/position")?.as_u64())
                .collect();
            for (position, record) in (0..copied.tree.size).zip(&records) {
                let read = reader.get(position).unwrap().unwrap();
                assert_eq!(read.id(), record.id());
                let text = record.body().value("/intent/secret");
                let Some(text) = text.as_ref().and_then(Value::as_str) else { continue };
                match erased.contains(&position) {
                    true => {
                        assert_eq!(read, record.without(&[pointer("/intent/secret")]));
                        assert!(!contains(&bytes, text), "the secret at {position} is in {}", path.display());
                    }
                    false => assert_eq!(&read, record),
                }
            }
        }
        // Nothing but the copies was written.
        check_verifies(&store);
    });
}

#[test]
fn what_was_erased_since_goes_from_the_backup_when_it_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, to) = (dir.path().join("store"), dir.path().join("backup"));
    let options = Options { segment_size: 9000, ..Options::untagged() };
    let mut store = Embedded::create(&path, info(), options).unwrap();
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    records.extend((0..6).map(|n| with_secret(&mut scribe, n)));
    records.iter().for_each(|record| {
        store.commit(std::slice::from_ref(record)).unwrap();
    });
    let first = copy(&mut store, &to, CopyAs::Backup).unwrap();
    assert_eq!((first.before, first.tree, first.voided), (0, store.tree(), 0));
    for n in [2, 3] {
        assert!(contains(&bytes_below(&to), &secret(n)), "it was there");
    }
    for position in [3, 4] {
        records.push(erase(&mut store, &mut scribe, position));
        records[position as usize] = records[position as usize].without(&[pointer("/intent/secret")]);
    }
    let second = copy(&mut store, &to, CopyAs::Backup).unwrap();
    assert_eq!((second.before, second.tree), (7, store.tree()));
    assert!(second.bytes < first.bytes && second.voided > 0, "{second:?}");
    for n in [2, 3] {
        assert!(!contains(&bytes_below(&to), &secret(n)), "it is gone");
    }
    check_holds(&Embedded::open(&to, Options::read()).unwrap(), &records);
    // Bytes of the log are those of the store.
    for (name, bytes) in segments(&path) {
        assert_eq!(segments(&to)[&name], bytes, "{name}");
    }
    let third = copy(&mut store, &to, CopyAs::Backup).unwrap();
    assert_eq!((third.bytes, third.voided), (0, 0), "nothing to do");
}

fn segments(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(dir.join("segments")).unwrap().map(|entry| entry.unwrap());
    files.map(|file| (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap())).collect()
}

const FROM: &str = "/work/store";
const TO: &str = "/else/backup";

fn options(disk: &Faulty) -> Options {
    Options { disk: Arc::new(disk.clone()), index: false, segment_size: 6000, ..Options::untagged() }
}

fn open(disk: &Faulty, path: &str) -> Result<Embedded, StoreError> {
    Embedded::open(Path::new(path), Options { write: false, ..options(disk) })
}

/// A store, and where `signed` asks for it a backup, with a first part that a backup has, and a second one that it has not: an erasure of a value of the first
/// is in it. Returns the records of both.
struct Grown {
    store: Embedded,
    first: Vec<Record>,
    all: Vec<Record>,
}

fn grown(disk: &Faulty) -> Grown {
    grow(disk, true)
}

fn grow(disk: &Faulty, signed: bool) -> Grown {
    let mut store = Embedded::create(Path::new(FROM), info(), options(disk)).unwrap();
    let mut scribe = Scribe::default();
    let mut all = vec![scribe.begin("r")];
    all.extend((0..4).map(|n| with_secret(&mut scribe, n)));
    for record in &all {
        store.commit(std::slice::from_ref(record)).unwrap();
    }
    if signed {
        store.sign_checkpoint(&key()).unwrap();
        copy(&mut store, Path::new(TO), CopyAs::Backup).unwrap();
    }
    let first = all.clone();
    for position in [2, 3] {
        all.push(erase(&mut store, &mut scribe, position));
        all[position as usize] = all[position as usize].without(&[pointer("/intent/secret")]);
    }
    for n in 4..7 {
        let group = [with_secret(&mut scribe, n), scribe.step("r")];
        store.commit(&group).unwrap();
        all.extend(group);
    }
    if signed {
        store.sign_checkpoint(&key()).unwrap();
    }
    Grown { store, first, all }
}

/// Checks what is left of a backup: none, the one that was there before, or the new one; never anything else.
fn check_left(disk: &Faulty, first: Option<&[Record]>, all: &[Record], context: &dyn Fn() -> String) {
    let store = match open(disk, TO) {
        Ok(store) => store,
        Err(StoreError::NotAStore { .. }) if first.is_none() => return,
        Err(error) => panic!("{error} {}", context()),
    };
    assert!(store.trouble().is_none(), "{:?} {}", store.trouble(), context());
    let report = store.verify(&VerifyOptions::default()).unwrap();
    assert_eq!(report.findings, [], "{}", context());
    let size = store.tree().size as usize;
    assert!(size == all.len() || first.is_some_and(|first| first.len() == size), "{size} {}", context());
    for (position, record) in (0..size as u64).zip(all) {
        let read = store.get(position).unwrap().unwrap();
        assert_eq!(read.id(), record.id(), "{}", context());
    }
}

fn check_done(disk: &Faulty, all: &[Record], context: &dyn Fn() -> String) {
    check_left(disk, None, all, context);
    check_holds(&open(disk, TO).unwrap(), all);
    let files = disk.files();
    for n in [1, 2] {
        let kept = files.iter().filter(|(path, _)| path.starts_with(TO));
        let kept: Vec<&PathBuf> =
            kept.filter(|(_, c)| contains(c, &secret(n))).map(|(path, _)| path).collect();
        assert!(kept.is_empty(), "{kept:?} {}", context());
    }
}

#[test]
fn power_cuts_at_every_moment_leave_the_earlier_backup_or_the_new_one() {
    let disk = Faulty::new();
    let Grown { mut store, first, all } = grown(&disk);
    let begin = disk.moments();
    copy(&mut store, Path::new(TO), CopyAs::Backup).unwrap();
    check_done(&disk, &all, &|| "undisturbed".into());
    let mut states = 0;
    for moment in begin..=disk.moments() {
        let seeds = (0..4).map(|n| Crash::Random(n * 1000 + moment as u64));
        for crash in [Crash::Process, Crash::Everything].into_iter().chain(seeds) {
            let context = || format!("after {moment} of {begin}.. {crash:?}");
            let image = disk.image(moment, crash);
            check_left(&image, Some(&first), &all, &context);
            let mut store = open(&image, FROM).unwrap();
            copy(&mut store, Path::new(TO), CopyAs::Backup).unwrap_or_else(|e| panic!("{e} {}", context()));
            check_done(&image, &all, &context);
            states += 1;
        }
    }
    println!("{states} states");
}

#[test]
fn power_cuts_at_every_moment_of_a_first_backup_leave_none_or_all_of_it() {
    let disk = Faulty::new();
    // Without tiles, because the crashed disk knows directories before they are made.
    let Grown { mut store, all, .. } = grow(&disk, false);
    let begin = disk.moments();
    copy(&mut store, Path::new(TO), CopyAs::Backup).unwrap();
    let mut stores = 0;
    for moment in begin..=disk.moments() {
        for crash in [Crash::Process, Crash::Everything, Crash::Random(moment as u64)] {
            let context = || format!("after {moment} of {begin}.. {crash:?}");
            let image = disk.image(moment, crash);
            check_left(&image, None, &all, &context);
            stores += u64::from(open(&image, TO).is_ok());
            let mut store = open(&image, FROM).unwrap();
            copy(&mut store, Path::new(TO), CopyAs::Backup).unwrap_or_else(|e| panic!("{e} {}", context()));
            check_done(&image, &all, &context);
        }
    }
    assert!(stores > 3, "the last moments have all of it");
}

#[test]
fn calls_that_fail_leave_the_earlier_backup_and_the_next_try_goes_on() {
    let mut at = 0;
    for fault in [DiskFault::Error(std::io::ErrorKind::StorageFull), DiskFault::Short, DiskFault::Torn] {
        loop {
            let disk = Faulty::new();
            let Grown { mut store, first, all } = grown(&disk);
            disk.fail(at, fault, true);
            let result = copy(&mut store, Path::new(TO), CopyAs::Backup);
            let pending = disk.is_pending();
            disk.heal();
            let context = || format!("call {at} {fault:?}: {result:?}");
            check_left(&disk, Some(&first), &all, &context);
            let mut store = open(&disk, FROM).unwrap();
            copy(&mut store, Path::new(TO), CopyAs::Backup).unwrap_or_else(|e| panic!("{e} {}", context()));
            check_done(&disk, &all, &context);
            if pending {
                assert!(result.is_ok());
                break;
            }
            at += if fault == DiskFault::Short { 1 } else { 3 };
        }
        assert!(at > 30, "{at} calls");
        at = 0;
    }
}

#[test]
fn a_store_that_is_made_from_a_backup_is_one_and_goes_on() {
    let disk = Faulty::new();
    let Grown { mut store, all, .. } = grown(&disk);
    copy(&mut store, Path::new(TO), CopyAs::Backup).unwrap();
    let mut backup = open(&disk, TO).unwrap();
    assert!(matches!(Embedded::open(Path::new(TO), options(&disk)), Err(StoreError::IsBackup { .. })));
    let new = Path::new("/new/.dendrer");
    copy(&mut backup, new, CopyAs::Store).unwrap();
    let files = disk.files();
    assert!(!files.contains_key(&new.join("backup.json")) && files.contains_key(&new.join("store.json")));
    assert_eq!(files[&new.join("checkpoint")], files[Path::new("/work/store/checkpoint")]);
    assert_eq!(open(&disk, TO).unwrap().tiles_state().unwrap(), TilesState::Ready(all.len() as u64));
    let mut restored = Embedded::open(new, options(&disk)).unwrap();
    check_holds(&restored, &all);
    restored.commit(&[Scribe::default().begin("further")]).unwrap();
    restored.sign_checkpoint(&key()).unwrap();
    check_verifies(&restored);
    // A second one is not made over the first, nor a backup.
    for what in [CopyAs::Store, CopyAs::Backup] {
        let refused = store.start_copy(new, what).unwrap_err();
        assert_eq!(refused.code(), "E0110");
    }
}

#[test]
fn a_power_cut_while_a_store_is_made_from_a_backup_leaves_none_or_a_whole_one() {
    let disk = Faulty::new();
    let Grown { mut store, all, .. } = grow(&disk, false);
    let begin = disk.moments();
    let new = Path::new("/new/.dendrer");
    copy(&mut store, new, CopyAs::Store).unwrap();
    for moment in begin..=disk.moments() {
        for crash in [Crash::Process, Crash::Everything, Crash::Random(moment as u64)] {
            let image = disk.image(moment, crash);
            match Embedded::open(new, options(&image)) {
                Ok(store) => {
                    check_holds(&store, &all);
                    check_verifies(&store);
                }
                Err(StoreError::NotAStore { .. }) => {
                    let mut store = open(&image, FROM).unwrap();
                    copy(&mut store, new, CopyAs::Store).unwrap();
                }
                Err(error) => panic!("{error} after {moment} {crash:?}"),
            }
        }
    }
}

#[test]
fn a_backup_goes_on_only_from_a_beginning_of_the_same_log() {
    let disk = Faulty::new();
    let Grown { mut store, all, .. } = grown(&disk);
    copy(&mut store, Path::new(TO), CopyAs::Backup).unwrap();
    let before = disk.files();
    let refused = |disk: &Faulty, from: &str| {
        let mut store = Embedded::open(Path::new(from), options(disk)).unwrap();
        let error = store.start_copy(Path::new(TO), CopyAs::Backup).map(|_| ()).unwrap_err();
        (error.code(), error.to_string())
    };
    // Another store.
    let other = StoreInfo { id: StoreId([1; 16]), ..info() };
    drop(Embedded::create(Path::new("/other"), other, options(&disk)).unwrap());
    let (code, why) = refused(&disk, "/other");
    assert!(code == "E0113" && why.contains("it is one of store 5a5a"), "{why}");
    // The same store with fewer records, and with others.
    drop(Embedded::create(Path::new("/shorter"), info(), options(&disk)).unwrap());
    let (code, why) = refused(&disk, "/shorter");
    assert!(
        code == "E0113" && why.contains(&format!("it has {} records, and the store has 0", all.len())),
        "{why}"
    );
    let mut twin = Embedded::create(Path::new("/twin"), info(), options(&disk)).unwrap();
    let mut scribe = Scribe::new(STORE);
    twin.commit(&[scribe.begin("twin")]).unwrap();
    for _ in 0..20 {
        twin.commit(&[scribe.step("twin")]).unwrap();
    }
    drop(twin);
    let (code, why) = refused(&disk, "/twin");
    assert!(code == "E0113" && why.contains("records are not those of the store"), "{why}");
    // Something else in the directory.
    let file =
        dendrer_store::disk::Disk::open(&disk, Path::new("/full/notes"), dendrer_store::disk::Open::Create);
    drop(file);
    let after = disk.files();
    for (path, content) in &before {
        if path.starts_with(TO) && !path.ends_with("lock") {
            assert_eq!(after.get(path), Some(content), "{} is as it was", path.display());
        }
    }
}

/// A backup of which anything was changed or cut is found out when it is read, and when it is made again.
#[test]
fn a_tampered_backup_is_found_out() {
    let disk = Faulty::new();
    let Grown { mut store, all, .. } = grown(&disk);
    copy(&mut store, Path::new(TO), CopyAs::Backup).unwrap();
    drop(store);
    let files = disk.files();
    let of_log = |path: &Path| path.starts_with("/else/backup/segments");
    let mut voids = 0;
    for (path, content) in files.iter().filter(|(path, _)| of_log(path)) {
        for byte in (0..content.len()).step_by(29) {
            let mut changed = files.clone();
            changed.get_mut(path).unwrap()[byte] ^= 1 << (byte % 8);
            let image = Faulty::with_files(changed);
            let found = open(&image, TO).map_or(true, |store| {
                store.trouble().is_some()
                    || !store.verify(&VerifyOptions::default()).unwrap().findings.is_empty()
            });
            let mut source = open(&image, FROM).unwrap();
            let again = copy(&mut source, Path::new(TO), CopyAs::Backup);
            match again {
                // A frame that an erasure made void has no meaning, and is made void again.
                Ok(copied) => {
                    voids += 1;
                    assert!(copied.voided > 0, "byte {byte} of {}", path.display());
                    check_done(&image, &all, &|| format!("byte {byte} of {}", path.display()));
                }
                Err(error) => {
                    assert!(
                        found && error.code().as_str().starts_with('E'),
                        "byte {byte} of {}",
                        path.display()
                    );
                }
            }
        }
        for len in (0..content.len()).step_by(97) {
            let mut cut = files.clone();
            cut.get_mut(path).unwrap().truncate(len);
            let image = Faulty::with_files(cut);
            let store = open(&image, TO).unwrap();
            assert!(store.trouble().is_some() || store.backup_head() != Some(store.tree()), "{len}");
            let mut source = open(&image, FROM).unwrap();
            let refused = copy(&mut source, Path::new(TO), CopyAs::Backup).unwrap_err();
            assert_eq!(refused.code(), Code::E0113, "{refused}");
        }
    }
    println!("{voids} flips in void frames");
    assert!(voids > 0 && voids < 500, "{voids}");
}

/// Whoever reads a backup reads the one that was there when it was opened, also where a later one is made in its place.
#[test]
fn a_later_backup_is_no_damage_of_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let (path, to) = (dir.path().join("s"), dir.path().join("b"));
    let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r"), scribe.step("r")]).unwrap();
    store.sign_checkpoint(&key()).unwrap();
    let first = copy(&mut store, &to, CopyAs::Backup).unwrap();
    let reader = Embedded::open(&to, Options::read()).unwrap();
    store.commit(&[scribe.step("r"), scribe.step("r")]).unwrap();
    store.sign_checkpoint(&key()).unwrap();
    let second = copy(&mut store, &to, CopyAs::Backup).unwrap();
    assert!(second.tree.size > first.tree.size);
    assert_eq!((reader.tree(), reader.backup_head()), (first.tree, Some(first.tree)));
    check_verifies(&reader);
    // What is made of the one that was read is whole all the same: the later one with its checkpoint, or nothing.
    let mut reader = reader;
    let restored = copy(&mut reader, &dir.path().join("restored"), CopyAs::Store).unwrap();
    assert_eq!((restored.tree, restored.signed), (second.tree, Some(second.tree.size)));
    let restored = Embedded::open(&dir.path().join("restored"), Options::untagged()).unwrap();
    assert!(restored.trouble().is_none(), "{:?}", restored.trouble());
    // A mark is there before its checkpoint, whoever is at work: one that lacks what was signed is damage.
    let older = dir.path().join("older");
    let mut source = Embedded::open(&to, Options::read()).unwrap();
    copy(&mut source, &older, CopyAs::Backup).unwrap();
    store.commit(&[scribe.step("r")]).unwrap();
    store.sign_checkpoint(&key()).unwrap();
    std::fs::copy(path.join("checkpoint"), older.join("checkpoint")).unwrap();
    let lock = std::fs::File::create(older.join("lock")).unwrap();
    lock.lock().unwrap();
    assert!(Embedded::open(&older, Options::read()).unwrap().trouble().is_some());
    lock.unlock().unwrap();
    // Whose backup it is, is held against whose log it is.
    let (id, other) = (info().id.to_string(), "5".repeat(31) + "0");
    let mark = std::fs::read_to_string(to.join("backup.json")).unwrap();
    std::fs::write(to.join("backup.json"), mark.replace(&id, &other)).unwrap();
    let damaged = Embedded::open(&to, Options::read()).unwrap_err();
    assert!(damaged.code() == "E0305" && damaged.to_string().contains("backup.json"), "{damaged}");
}

/// Of two backups into one directory the second waits for the first, and goes on from that.
#[test]
fn a_backup_waits_for_the_one_that_is_made_there() {
    let dir = tempfile::tempdir().unwrap();
    let (path, to) = (dir.path().join("s"), dir.path().join("b"));
    let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r"), scribe.step("r")]).unwrap();
    copy(&mut store, &to, CopyAs::Backup).unwrap();
    store.commit(&[scribe.step("r")]).unwrap();
    store.sign_checkpoint(&key()).unwrap();
    // As it stands between the mark and the checkpoint of another one, seen from behind it.
    std::fs::copy(path.join("checkpoint"), to.join("checkpoint")).unwrap();
    let lock = std::fs::File::create(to.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut late =
        Embedded::open(&path, Options { lock_wait: Duration::from_millis(50), ..Options::untagged() })
            .unwrap();
    let waited = late.start_copy(&to, CopyAs::Backup).map(drop).unwrap_err();
    assert!(matches!(waited, StoreError::Locked { .. }), "{waited}");
    lock.unlock().unwrap();
    let refused = late.start_copy(&to, CopyAs::Backup).map(drop).unwrap_err();
    assert_eq!(refused.code(), "E0113");
}

#[test]
fn a_backup_has_the_vault_of_the_store_and_loses_what_was_destroyed() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to, back) = (dir.path().join("s"), dir.path().join("b"), dir.path().join("r"));
    let mut store = Embedded::create(&from, info(), Options::untagged()).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    let [a, b] = [dendrer_object::Digest([1; 32]), dendrer_object::Digest([2; 32])];
    store
        .put_secrets(&[(a, b"ciphertext of a".to_vec()), (b, b"ciphertext of b".to_vec())], Given::default())
        .unwrap();
    copy(&mut store, &to, CopyAs::Backup).unwrap();
    let backup = Embedded::open(&to, Options::read()).unwrap();
    assert_eq!(backup.secrets().unwrap(), [a, b]);
    assert_eq!(backup.get_secret(&a).unwrap().as_deref(), Some(&b"ciphertext of a"[..]));
    assert_eq!(backup.foreign().unwrap(), []);
    drop(backup);
    // Another one in its place, one more gone, and no record since.
    store.put_secrets(&[(a, b"another one of a".to_vec())], Given::default()).unwrap();
    store.remove_secrets(&[b], Given::default()).unwrap();
    copy(&mut store, &to, CopyAs::Backup).unwrap();
    let mut backup = Embedded::open(&to, Options::read()).unwrap();
    assert_eq!(backup.secrets().unwrap(), [a]);
    assert!(!bytes_below(&to).windows(15).any(|part| part == b"ciphertext of b"));
    copy(&mut backup, &back, CopyAs::Store).unwrap();
    let restored = Embedded::open(&back, Options::untagged()).unwrap();
    assert_eq!(restored.get_secret(&a).unwrap().as_deref(), Some(&b"another one of a"[..]));
}
