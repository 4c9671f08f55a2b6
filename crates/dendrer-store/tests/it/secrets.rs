//! Encrypted values in the group of the record that names them: crashes, kills, failing calls, damage, destruction and copies.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer_object::{Digest, Record};
use dendrer_store::conformance::{Scribe, info, noise};
use dendrer_store::disk::{Disk, Open, write_all};
use dendrer_store::embedded::CopyAs;
use dendrer_store::faulty::{Crash, DiskFault, Faulty};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Given, Meter, NewSecrets, Options, StoreError, VerifyOptions};

use crate::crash::{DIR, options, seeds};

const BACKUP: &str = "/work/backup";

/// A record and the value that it names.
struct Pair {
    record: Record,
    name: Digest,
    bytes: Vec<u8>,
}

impl Pair {
    fn secrets(&self) -> NewSecrets {
        NewSecrets { items: vec![(self.name, self.bytes.clone())], there: Vec::new() }
    }
}

/// Pairs, after a record that begins their run. Their values span no sector, one, and several.
fn pairs(count: u64) -> (Record, Vec<Pair>) {
    let mut scribe = Scribe::default();
    let begin = scribe.begin("r");
    let pair = |n: u64| Pair {
        record: scribe.step("r"),
        name: Digest::of(&n.to_le_bytes()),
        bytes: noise(60 + 450 * (n as usize % 4), n).into_bytes(),
    };
    (begin, (0..count).map(pair).collect())
}

fn open(disk: &Faulty) -> Embedded {
    Embedded::open(Path::new(DIR), options(disk)).unwrap()
}

fn put(store: &mut Embedded, pair: &Pair) -> Result<(), StoreError> {
    store.append_with(std::slice::from_ref(&pair.record), &[], &pair.secrets())?;
    store.sync().map(drop)
}

fn destroy(store: &mut Embedded, pair: &Pair) -> Result<(), StoreError> {
    assert!(store.remove_secrets(&[pair.name], Given::default())?);
    Ok(())
}

/// The file that has a piece of one of some values.
fn file_with<'p>(disk: &Faulty, pairs: impl IntoIterator<Item = &'p Pair>) -> Option<PathBuf> {
    let pieces: HashSet<&[u8]> = pairs.into_iter().flat_map(|pair| pair.bytes.chunks_exact(30)).collect();
    let has = |file: &[u8]| file.windows(30).any(|here| pieces.contains(here));
    disk.files().into_iter().find(|(_, file)| has(file)).map(|(path, _)| path)
}

fn format_of(disk: &Faulty) -> String {
    let text = String::from_utf8(disk.files()[&Path::new(DIR).join("store.json")].clone()).unwrap();
    ["format", "reader", "writer"]
        .map(|member| text.split(&format!("\"{member}\":")).nth(1).unwrap()[..1].to_owned())
        .concat()
}

fn check_verifies(store: &Embedded, context: &str) {
    assert!(store.trouble().is_none(), "{:?} {context}", store.trouble());
    let report = store.verify(&VerifyOptions::default()).unwrap();
    assert_eq!(report.findings, [], "{context}");
    assert!(report.root_checked && !report.unfinished, "{context}");
}

/// The values whose destruction was acknowledged are marked so.
const DESTROYED: u64 = 1 << 32;

/// Puts all, and destroys every third.
fn play(disk: &Faulty, begin: &Record, pairs: &[Pair]) {
    let mut store = Embedded::create(Path::new(DIR), info(), options(disk)).unwrap();
    store.commit(std::slice::from_ref(begin)).unwrap();
    disk.mark(1);
    for (n, pair) in pairs.iter().enumerate() {
        put(&mut store, pair).unwrap();
        disk.mark(store.tree().size);
        if n % 3 == 2 {
            destroy(&mut store, &pairs[n - 1]).unwrap();
            disk.mark(DESTROYED + n as u64 - 1);
        }
    }
    // Also one of the last group, where bytes that are zero would look like an unfinished end.
    destroy(&mut store, &pairs[pairs.len() - 1]).unwrap();
    disk.mark(DESTROYED + pairs.len() as u64 - 1);
}

/// Whether the destruction of a value is part of what [`play`] does.
fn may_be_gone(n: usize, pairs: &[Pair]) -> bool {
    n % 3 == 1 || n == pairs.len() - 1
}

#[test]
fn value_and_record_are_there_together_after_a_crash_at_every_moment() {
    let (begin, pairs) = pairs(7);
    let disk = Faulty::new();
    play(&disk, &begin, &pairs);
    for moment in 0..=disk.moments() {
        let marks = disk.marks(moment);
        if marks.is_empty() {
            continue;
        }
        let acknowledged = marks.iter().filter(|mark| **mark < DESTROYED).max().copied().unwrap_or(0);
        let mut crashes = vec![Crash::Process, Crash::Everything];
        crashes.extend((0..seeds()).map(|seed| Crash::Random(seed * 1_000_003 + moment as u64)));
        for crash in crashes {
            let context = format!("{crash:?} at {moment}");
            let image = disk.image(moment, crash);
            let mut store = open(&image);
            check_verifies(&store, &context);
            assert!(store.tree().size >= acknowledged, "{context}");
            let names = store.secrets().unwrap();
            for (n, pair) in pairs.iter().enumerate() {
                let is_there = store.find(&pair.record.id()).unwrap().is_some();
                let found = store.get_secret(&pair.name).unwrap();
                if marks.contains(&(DESTROYED + n as u64)) {
                    assert_eq!(found, None, "{n} {context}");
                    assert_eq!(file_with(&image, [pair]), None, "{n} {context}");
                } else if !may_be_gone(n, &pairs) || !is_there {
                    assert_eq!(found, is_there.then(|| pair.bytes.clone()), "{n} {context}");
                    assert_eq!(names.contains(&pair.name), is_there, "{n} {context}");
                }
            }
            if !names.is_empty() {
                assert_eq!(format_of(&image), "222", "{context}");
            }
            // A destruction that was interrupted is done again, and the store goes on.
            for pair in pairs.iter().filter(|pair| names.contains(&pair.name)) {
                destroy(&mut store, pair).unwrap();
                assert_eq!(file_with(&image, [pair]), None, "{context}");
            }
            assert_eq!(store.secrets().unwrap(), [], "{context}");
            for pair in pairs.iter().skip(store.tree().size as usize - 1) {
                put(&mut store, pair).unwrap();
            }
            check_verifies(&open(&image), &context);
        }
    }
}

#[test]
fn any_call_that_fails_leaves_both_or_neither() {
    let (begin, pairs) = pairs(2);
    let faults = [
        DiskFault::Error(std::io::ErrorKind::Other),
        DiskFault::Error(std::io::ErrorKind::StorageFull),
        DiskFault::Error(std::io::ErrorKind::Interrupted),
        DiskFault::Short,
        DiskFault::Torn,
    ];
    let mut failed = 0;
    for (fault, destroys) in faults.into_iter().flat_map(|fault| [(fault, false), (fault, true)]) {
        for call in 0.. {
            let context = format!("{fault:?} at call {call}");
            let disk = Faulty::new();
            let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
            store.commit(std::slice::from_ref(&begin)).unwrap();
            if destroys {
                put(&mut store, &pairs[0]).unwrap();
            }
            disk.fail(call, fault, false);
            let done = if destroys { destroy(&mut store, &pairs[0]) } else { put(&mut store, &pairs[0]) };
            let was_reached = !disk.is_pending();
            disk.heal();
            failed += u64::from(done.is_err());
            drop(store);
            let mut store = open(&disk);
            check_verifies(&store, &context);
            let is_there = store.find(&pairs[0].record.id()).unwrap().is_some();
            let found = store.get_secret(&pairs[0].name).unwrap();
            match (destroys, done.is_ok()) {
                (false, true) => assert_eq!(found.as_ref(), Some(&pairs[0].bytes), "{context}"),
                (false, false) => assert_eq!(found, is_there.then(|| pairs[0].bytes.clone()), "{context}"),
                (true, true) => assert_eq!(file_with(&disk, &pairs[..1]), None, "{context}"),
                (true, false) => {
                    destroy(&mut store, &pairs[0]).unwrap();
                    assert_eq!(file_with(&disk, &pairs[..1]), None, "{context}");
                }
            }
            if is_there {
                put(&mut store, &pairs[1]).unwrap();
            } else {
                put(&mut store, &pairs[0]).unwrap();
            }
            drop(store);
            check_verifies(&open(&disk.image(disk.moments(), Crash::Everything)), &context);
            if !was_reached {
                break;
            }
        }
    }
    assert!(failed > 40, "{failed}");
}

/// A process is killed while it destroys, another one goes on, and then the power fails.
#[test]
fn a_destruction_that_was_killed_is_done_again_and_survives_a_power_cut() {
    let (begin, pairs) = pairs(4);
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
    store.commit(&[begin]).unwrap();
    pairs.iter().for_each(|pair| put(&mut store, pair).unwrap());
    let from = disk.moments();
    let names: Vec<Digest> = pairs.iter().map(|pair| pair.name).collect();
    store.remove_secrets(&names, Given::default()).unwrap();
    for moment in from..=disk.moments() {
        let disk = disk.killed(moment);
        let mut store = open(&disk);
        check_verifies(&store, &format!("killed at {moment}"));
        // As a caller does who asks what is left.
        let left: Vec<Digest> =
            names.iter().copied().filter(|name| store.get_secret(name).unwrap().is_some()).collect();
        store.remove_secrets(&left, Given::default()).unwrap();
        for crash in [Crash::Everything, Crash::Random(moment as u64)] {
            let image = disk.image(disk.moments(), crash);
            check_verifies(&open(&image), &format!("killed at {moment}, {crash:?}"));
            assert_eq!(file_with(&image, &pairs), None, "killed at {moment}, {crash:?}");
        }
    }
}

#[test]
fn the_format_is_2_once_a_value_is_in_the_log() {
    let (begin, pairs) = pairs(2);
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
    let mut other = open(&disk);
    store.commit(&[begin]).unwrap();
    store.put_secrets(&[(Digest([1; 32]), b"a file".to_vec())], Given::default()).unwrap();
    assert_eq!(format_of(&disk), "111", "files of the vault are of format 1");
    let refused = store.append_with(&[pairs[1].record.clone()], &[], &pairs[0].secrets());
    assert_eq!((refused.unwrap_err().code().as_str(), format_of(&disk).as_str()), ("E0407", "111"));
    put(&mut store, &pairs[0]).unwrap();
    assert_eq!(format_of(&disk), "222");
    // A handle that was open before finds it, and writes no older format over it.
    other.refresh().unwrap();
    assert_eq!(other.get_secret(&pairs[0].name).unwrap().as_ref(), Some(&pairs[0].bytes));
    put(&mut other, &pairs[1]).unwrap();
    assert_eq!(other.secrets().unwrap().len(), 3);
    assert_eq!(format_of(&disk), "222");
    // Of a newer format that another process made it, nothing is written over either.
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
    let path = Path::new(DIR).join("store.json");
    let text = String::from_utf8(disk.files()[&path].clone()).unwrap();
    let newer = text.replace("\"format\":1", "\"format\":3").replace("\"writer\":1", "\"writer\":3");
    write_all(&*disk.open(&path, Open::Write).unwrap(), newer.as_bytes(), 0).unwrap();
    let (begin, _) = self::pairs(0);
    let refused = store.append_with(&[begin], &[], &pairs[0].secrets()).unwrap_err();
    assert!(matches!(refused, StoreError::NewerFormat { found: 3, known: 2, .. }), "{refused}");
    assert_eq!(disk.files()[&path], newer.as_bytes());
}

#[test]
fn a_damaged_value_is_no_damage_of_the_log() {
    let (begin, pairs) = pairs(3);
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
    store.commit(&[begin]).unwrap();
    pairs.iter().for_each(|pair| put(&mut store, pair).unwrap());
    drop(store);
    let files = disk.files();
    let segment = Path::new(DIR).join("segments/00000000.seg");
    let find = |part: &[u8]| files[&segment].windows(part.len()).position(|here| here == part).unwrap();
    let (name, bytes) = (find(&pairs[1].name.0), find(&pairs[1].bytes));
    // The checksum, the name and the bytes of the frame.
    for byte in (name - 5..name - 1).chain(name..name + 32).chain(bytes..bytes + pairs[1].bytes.len()) {
        let mut files = files.clone();
        files.get_mut(&segment).unwrap()[byte] ^= 1 << (byte % 8);
        let disk = Faulty::with_files(files);
        let mut store = open(&disk);
        let context = format!("byte {byte}");
        check_verifies(&store, &context);
        let names = store.secrets().unwrap();
        let found: Vec<_> = names.iter().map(|name| store.get_secret(name).unwrap()).collect();
        assert_eq!(names.len(), 3, "{context}");
        let is_changed =
            |found: &Option<Vec<u8>>| !pairs.iter().any(|pair| found.as_ref() == Some(&pair.bytes));
        let changed = found.iter().filter(|found| is_changed(found)).count();
        assert_eq!(changed, usize::from(byte >= bytes), "{context}: the bytes are returned as they are");
        // It is destroyed all the same, and what follows can be written.
        store.remove_secrets(&names, Given::default()).unwrap();
        assert_eq!(file_with(&disk, &pairs[1..2]), None, "{context}");
        store.commit(&[Scribe::default().begin("s")]).unwrap();
        check_verifies(&open(&disk), &context);
    }
    // The length and the kind are those of the log.
    for byte in (name - 9..name - 5).chain([name - 1]) {
        let mut files = files.clone();
        files.get_mut(&segment).unwrap()[byte] ^= 1;
        let store = open(&Faulty::with_files(files));
        assert_eq!(
            store.trouble().map(|trouble| trouble.code()),
            Some(dendrer_object::Code::E0305),
            "{byte}"
        );
    }
}

#[test]
fn the_root_is_the_same_with_a_value_and_without() {
    let (begin, pairs) = pairs(2);
    let trees = [false, true].map(|with| {
        let mut store = Embedded::create(Path::new(DIR), info(), options(&Faulty::new())).unwrap();
        store.commit(std::slice::from_ref(&begin)).unwrap();
        for Pair { record, .. } in &pairs {
            let secrets = if with { pairs[0].secrets() } else { NewSecrets::default() };
            store.append_with(std::slice::from_ref(record), &[], &secrets).unwrap();
        }
        store.tree()
    });
    assert_eq!(trees[0], trees[1]);
}

fn back_up(store: &mut Embedded, to: &str, what: CopyAs) {
    let mut copying = store.start_copy(Path::new(to), what).unwrap();
    copying.copy(&Meter::default()).unwrap();
    copying.finish(Meter::default()).unwrap();
}

#[test]
fn a_hundred_destroyed_values_are_in_no_file_of_store_and_backup() {
    let (begin, pairs) = pairs(100);
    let disk = Faulty::new();
    let large = Options { segment_size: 20_000, ..options(&disk) };
    let mut store = Embedded::create(Path::new(DIR), info(), large.clone()).unwrap();
    store.commit(&[begin]).unwrap();
    // The backup is begun in format 1, and goes on in format 2.
    back_up(&mut store, BACKUP, CopyAs::Backup);
    pairs[..60].iter().for_each(|pair| put(&mut store, pair).unwrap());
    back_up(&mut store, BACKUP, CopyAs::Backup);
    let backup = Embedded::open(Path::new(BACKUP), Options { write: false, ..large.clone() }).unwrap();
    assert_eq!((backup.info().reader, backup.secrets().unwrap().len()), (2, 60));
    assert_eq!(backup.get_secret(&pairs[7].name).unwrap().as_ref(), Some(&pairs[7].bytes));
    drop(backup);
    pairs[60..].iter().for_each(|pair| put(&mut store, pair).unwrap());
    let names: Vec<Digest> = pairs.iter().map(|pair| pair.name).collect();
    let moments = disk.moments();
    store.remove_secrets(&names[1..], Given::default()).unwrap();
    // Killed in the middle of it: the next one destroys the rest.
    let killed = disk.killed((moments + disk.moments()) / 2);
    for disk in [&disk, &killed] {
        let mut store =
            Embedded::open(Path::new(DIR), Options { disk: Arc::new(disk.clone()), ..large.clone() })
                .unwrap();
        store.remove_secrets(&names[1..], Given::default()).unwrap();
        back_up(&mut store, BACKUP, CopyAs::Backup);
        let options = Options { disk: Arc::new(disk.clone()), write: false, ..large.clone() };
        let mut backup = Embedded::open(Path::new(BACKUP), options).unwrap();
        back_up(&mut backup, "/work/restored", CopyAs::Store);
        for dir in [DIR, BACKUP, "/work/restored"] {
            let options = Options { disk: Arc::new(disk.clone()), write: false, ..large.clone() };
            let store = Embedded::open(Path::new(dir), options).unwrap();
            check_verifies(&store, dir);
            assert_eq!(store.secrets().unwrap(), [names[0]], "{dir}");
            assert_eq!(store.get_secret(&names[0]).unwrap().as_ref(), Some(&pairs[0].bytes), "{dir}");
        }
        assert_eq!(file_with(disk, &pairs[1..]), None);
    }
}

#[test]
fn an_index_without_a_row_keeps_no_value_from_being_destroyed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".dendrer");
    let (begin, pairs) = pairs(9);
    let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
    store.commit(&[begin]).unwrap();
    pairs.iter().for_each(|pair| put(&mut store, pair).unwrap());
    store.update_index().unwrap();
    // Found by the index alone, also by one that is made at once.
    for _ in 0..2 {
        drop(store);
        store = Embedded::open(&path, Options::untagged()).unwrap();
        assert!(store.index_status().is_ok_and(|covered| covered == 10));
        for pair in &pairs {
            assert_eq!(store.get_secret(&pair.name).unwrap().as_ref(), Some(&pair.bytes));
        }
        store.rebuild_index(false).unwrap();
    }
    let everything = VerifyOptions { index: true, ..VerifyOptions::default() };
    assert_eq!(store.verify(&everything).unwrap().findings, []);
    destroy(&mut store, &pairs[0]).unwrap();
    assert_eq!(store.get_secret(&pairs[0].name).unwrap(), None);
    assert_eq!(
        store.verify(&everything).unwrap().findings,
        [],
        "the row of a destroyed value leads to nothing"
    );
    let db = rusqlite::Connection::open(path.join("index.sqlite")).unwrap();
    let changed = db.execute("DELETE FROM secret WHERE name = ?1", [&pairs[1].name.0[..]]).unwrap();
    assert_eq!(changed, 1);
    assert!(!store.verify(&everything).unwrap().findings.is_empty());
    destroy(&mut store, &pairs[1]).unwrap();
    let files = std::fs::read_dir(path.join("segments")).unwrap();
    for file in files.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()) {
        assert!(!file.windows(30).any(|part| part == &pairs[1].bytes[..30]));
    }
}
