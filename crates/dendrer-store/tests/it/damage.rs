//! Flipped bits, cut files, and files that are gone.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer_object::record::Kind;
use dendrer_object::{Code, Digest, Pointer, Record, Value};
use dendrer_store::conformance::{Scribe, check_holds, info, key, noise};
use dendrer_store::faulty::Faulty;
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, NewSecrets, Options, StoreError, VerifyOptions};

use proptest::prelude::*;

use crate::{cases, deep, threads};

const DIR: &str = "/store";

fn options(disk: &Faulty, segment_size: u64) -> Options {
    Options { disk: Arc::new(disk.clone()), index: false, segment_size, ..Options::untagged() }
}

fn pointer(text: &str) -> Pointer {
    text.parse().unwrap()
}

/// A small store with everything in it: two runs, a refusal, links, chunks, an erasure, a checkpoint, two segments.
fn small_store(sign: bool) -> (BTreeMap<PathBuf, Vec<u8>>, Vec<Record>) {
    store_of(sign, 1)
}

/// A value of the vault, in the group of the third record.
fn vault_value() -> NewSecrets {
    NewSecrets { items: vec![(Digest([0x5a; 32]), noise(300, 9).into_bytes())], there: Vec::new() }
}

/// The same with more steps at its end.
fn store_of(sign: bool, steps: usize) -> (BTreeMap<PathBuf, Vec<u8>>, Vec<Record>) {
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk, 3000)).unwrap();
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r"), scribe.step("r")];
    store.commit(&records).unwrap();
    let large = Value::record([
        ("agent_id", Value::from("someone")),
        ("intent", Value::record([("text", Value::from(noise(1500, 1))), ("plain", Value::from("x"))])),
    ]);
    let mut groups = vec![
        vec![scribe.transition("r", large.clone())],
        vec![scribe.beside(Kind::Refusal, "r", Value::record([("why", Value::from("no"))]))],
        vec![scribe.fork("f", 1, records[1].id()), scribe.step("f")],
    ];
    groups.push(vec![scribe.transition("r", large), scribe.beside(Kind::End, "r", Value::object())]);
    for group in groups {
        let secrets = if records.len() == 2 { vault_value() } else { NewSecrets::default() };
        store.append_with(&group, &[], &secrets).unwrap();
        store.sync().unwrap();
        records.extend(group);
    }
    let erase = scribe.beside(Kind::Erase, "r", Value::object());
    store.erase(&erase, &[(2, vec![pointer("/intent/text")])]).unwrap();
    records[2] = records[2].without(&[pointer("/intent/text")]);
    records.push(erase);
    for _ in 0..steps {
        let step = scribe.step("f");
        store.commit(std::slice::from_ref(&step)).unwrap();
        records.push(step);
    }
    if sign {
        store.sign_checkpoint(&key()).unwrap();
    }
    check_holds(&store, &records);
    let files = disk.files();
    let kept = files.into_iter().filter(|(path, _)| {
        !path.starts_with("/store/log") && path.file_name().is_some_and(|name| name != "lock")
    });
    (kept.collect(), records)
}

/// Opens and verifies; returns what is said, in words, or `None` if nothing is wrong. Checks that nothing wrong is
/// handed out and nothing acknowledged is removed on the way.
fn diagnose(files: &BTreeMap<PathBuf, Vec<u8>>, records: &[Record], context: &str) -> Option<String> {
    let disk = Faulty::with_files(files.clone());
    let store = match Embedded::open(Path::new(DIR), options(&disk, 3000)) {
        Ok(store) => store,
        Err(error) => return Some(format!("{} {error}", error.code())),
    };
    for (position, record) in (0..store.tree().size).zip(records) {
        match store.get(position) {
            Ok(read) => assert_eq!(read.as_ref(), Some(record), "{context}"),
            Err(error) => assert!(error.code().as_str().starts_with("E03"), "{error} {context}"),
        }
    }
    let report = store.verify(&VerifyOptions::default()).unwrap();
    let said = report.findings.first().map(|finding| format!("{} {finding}", finding.code()));
    // Who authenticates the bytes finds other ones.
    let (name, bytes) = &vault_value().items[0];
    let is_changed = store.get_secret(name).unwrap().as_ref() != Some(bytes);
    match (store.trouble(), said) {
        (Some(trouble), Some(_)) => Some(format!("{} {trouble}", trouble.code())),
        (None, None) => {
            assert!(
                store.tree().size == records.len() as u64,
                "records are missing and nobody says so: {context}"
            );
            is_changed.then(|| "the value of the vault".to_owned())
        }
        // What only a walk sees, such as a damaged record that the index covers, need not trouble a handle; but what
        // troubles a handle must be seen by a walk.
        (None, said) => said,
        (Some(trouble), None) => panic!("verify finds nothing, the handle has {trouble}: {context}"),
    }
}

#[test]
fn every_flipped_bit_is_reported_or_means_nothing() {
    // As large as may be: every bit of 13 KB.
    let (files, records) = store_of(true, if deep() { 19 } else { 1 });
    let bytes: usize = files.values().map(Vec::len).sum();
    assert!(bytes <= 16 << 10, "{bytes}");
    assert_eq!(diagnose(&files, &records, "untouched"), None);
    let all: Vec<(&PathBuf, usize)> =
        files.iter().flat_map(|(path, content)| (0..content.len() * 8).map(move |bit| (path, bit))).collect();
    let flips = all.len();
    let judge = |(path, bit): &(&PathBuf, usize)| {
        let mut files = files.clone();
        files.get_mut(*path).unwrap()[bit / 8] ^= 1 << (bit % 8);
        let context = format!("bit {} of byte {} of {}", bit % 8, bit / 8, path.display());
        let is_silent = diagnose(&files, &records, &context).is_none();
        is_silent.then(|| (path.file_name().unwrap().to_string_lossy().into_owned(), bit / 8, bit % 8))
    };
    let mut silent: Vec<_> = std::thread::scope(|scope| {
        // A walk looks again before it calls something damage, so most of the time is waiting.
        let parts = all.chunks(flips.div_ceil(8 * threads()));
        let parts: Vec<_> =
            parts.map(|part| scope.spawn(|| part.iter().filter_map(judge).collect::<Vec<_>>())).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    silent.sort();
    println!("deep: bit-flips {flips}");
    // The frame that an erasure made void is zeros whose checksum is wrong: made void again.
    check_only_void(&files, &silent);
}

/// Checks that these bits lie in the frame whose values were erased.
fn check_only_void(files: &BTreeMap<PathBuf, Vec<u8>>, bits: &[(String, usize, usize)]) {
    for (name, byte, bit) in bits {
        let content = &files[&Path::new("/store/segments").join(name)];
        let mut at = 64;
        while at < content.len() {
            let len = u32::from_le_bytes(content[at..at + 4].try_into().unwrap()) as usize;
            if (at..at + 9 + len).contains(byte) {
                // The checksum of a value of the vault says nothing of the bytes, which are authenticated.
                let is_checksum = content[at + 8] == b'S' && (at + 4..at + 8).contains(byte);
                assert!(is_checksum || content[at + 8] == b'X', "bit {bit} of byte {byte} of {name}");
            }
            at += 9 + len;
        }
    }
}

#[test]
fn every_cut_file_is_reported_when_a_checkpoint_knows_better() {
    let (files, records) = store_of(true, if deep() { 19 } else { 1 });
    println!("deep: truncations {}", files.values().map(Vec::len).sum::<usize>());
    for (path, content) in &files {
        for length in 0..content.len() {
            let mut files = files.clone();
            files.get_mut(path).unwrap().truncate(length);
            let context = format!("{} cut to {length}", path.display());
            let said = diagnose(&files, &records, &context);
            assert!(said.is_some(), "{context}");
        }
    }
    for path in files.keys() {
        let mut files = files.clone();
        files.remove(path);
        let said = diagnose(&files, &records, &format!("{} gone", path.display()));
        assert!(said.is_some() || path.ends_with("checkpoint"), "{} gone", path.display());
    }
}

#[test]
fn a_cut_tail_without_a_checkpoint_is_a_shorter_log() {
    let (files, records) = small_store(false);
    let last = files.keys().rfind(|path| path.starts_with("/store/segments")).unwrap().clone();
    let mut sizes = Vec::new();
    for length in 0..=files[&last].len() {
        let mut files = files.clone();
        files.get_mut(&last).unwrap().truncate(length);
        let disk = Faulty::with_files(files);
        let store = Embedded::open(Path::new(DIR), options(&disk, 3000)).unwrap();
        assert!(store.trouble().is_none(), "{length}");
        let size = store.tree().size;
        let report = store.verify(&VerifyOptions::default()).unwrap();
        check_holds_begin(&store, &records[..size as usize]);
        // Values that were erased are missed where what says so was cut.
        let erased = records[2..].iter().position(|record| record.header().kind == Kind::Erase).unwrap() + 2;
        let missing: Vec<_> = report.findings.iter().map(|finding| finding.place.position).collect();
        assert_eq!(missing, if size > erased as u64 { vec![] } else { vec![Some(2)] }, "{length}");
        sizes.push(size);
    }
    assert!(sizes.is_sorted() && sizes.last() == Some(&(records.len() as u64)));
}

#[test]
fn what_a_checkpoint_covers_is_not_cut_by_a_writer() {
    let (files, _) = small_store(true);
    let last = files.keys().rfind(|path| path.starts_with("/store/segments")).unwrap().clone();
    for length in 0..files[&last].len() {
        let mut files = files.clone();
        files.get_mut(&last).unwrap().truncate(length);
        let disk = Faulty::with_files(files.clone());
        let mut store = Embedded::open(Path::new(DIR), options(&disk, 3000)).unwrap();
        assert_eq!(store.trouble().map(|trouble| trouble.code()), Some(Code::E0307), "cut to {length}");
        let mut scribe = Scribe::default();
        assert!(store.append(&[scribe.begin("more")]).is_err());
        assert!(disk.files()[&last] == files[&last], "what is left of it is evidence: cut to {length}");
    }
}

#[test]
fn what_a_checkpoint_covers_is_not_cut_by_a_writer_that_was_there_before() {
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk, 3000)).unwrap();
    let mut other = Embedded::open(Path::new(DIR), options(&disk, 3000)).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    store.sign_checkpoint(&key()).unwrap();
    let path = Path::new("/store/segments/00000000.seg");
    let file = dendrer_store::disk::Disk::open(&disk, path, dendrer_store::disk::Open::Write).unwrap();
    file.set_len(disk.files()[path].len() as u64 - 3).unwrap();
    let before = disk.files();
    let error = other.append(&[scribe.begin("s")]).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    assert_eq!(other.trouble().unwrap().code(), "E0307");
    assert_eq!(disk.files(), before);
}

fn check_holds_begin(store: &Embedded, records: &[Record]) {
    for (position, record) in (0..).zip(records) {
        match store.get(position) {
            Ok(read) => assert_eq!(read.as_ref(), Some(record)),
            Err(error) => assert_eq!((error.code(), position), (Code::E0305, 2)),
        }
    }
}

#[test]
fn damage_makes_a_handle_read_only_and_hides_nothing_else() {
    let (files, records) = small_store(false);
    let first = Path::new("/store/segments/00000000.seg");
    let mut flipped = files.clone();
    // The first values frame begins right behind the header.
    flipped.get_mut(first).unwrap()[64 + 9 + 3] ^= 1;
    let disk = Faulty::with_files(flipped);
    let mut store = Embedded::open(Path::new(DIR), options(&disk, 3000)).unwrap();
    let trouble = store.trouble().unwrap();
    assert_eq!(trouble.code(), "E0305");
    assert_eq!(store.tree().size, records.len() as u64, "what follows is still there");
    let error = store.get(0).unwrap_err();
    let StoreError::Damaged(damage) = &error else { panic!("{error}") };
    assert_eq!((damage.place.file.as_str(), damage.place.offset), ("segments/00000000.seg", Some(64)));
    assert_eq!((damage.place.position, damage.place.tick), (Some(0), Some(0)));
    for position in 1..records.len() as u64 {
        assert_eq!(store.get(position).unwrap().as_ref(), Some(&records[position as usize]));
    }
    let mut scribe = Scribe::default();
    let error = store.append(&[scribe.begin("new")]).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    let report = store.verify(&VerifyOptions::default()).unwrap();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert_eq!((report.findings[0].place.position, report.findings[0].place.tick), (Some(0), Some(0)));
    assert!(report.root_checked);
}

#[test]
fn a_walk_goes_on_behind_damage_that_hides_records() {
    let (files, records) = small_store(false);
    let first = Path::new("/store/segments/00000000.seg");
    let mut flipped = files.clone();
    // The length of the first frame: nothing in this group can be told apart any more.
    flipped.get_mut(first).unwrap()[64 + 1] ^= 1;
    let disk = Faulty::with_files(flipped);
    let store = Embedded::open(Path::new(DIR), options(&disk, 3000)).unwrap();
    assert_eq!(store.tree().size, 0, "nothing before it");
    let report = store.verify(&VerifyOptions::default()).unwrap();
    assert!(!report.root_checked);
    assert_eq!(report.tree.size, records.len() as u64);
    assert_eq!(report.records, records.len() as u64 - 2, "all but the damaged group are sealed again");
    assert_eq!(report.findings[0].place.offset, Some(64));
}

#[test]
fn a_newer_format_is_not_touched() {
    let (files, _) = small_store(false);
    let path = Path::new("/store/store.json");
    let text = String::from_utf8(files[path].clone()).unwrap();
    let open = |text: String, write: bool| {
        let mut files = files.clone();
        files.insert(path.to_owned(), text.into_bytes());
        let disk = Faulty::with_files(files);
        let before = disk.files();
        let opened = Embedded::open(Path::new(DIR), Options { write, ..options(&disk, 3000) });
        let code = opened.as_ref().err().map(StoreError::code);
        assert!(code.is_none() || disk.files() == before, "nothing is touched");
        code
    };
    let newer_writer = text.replace("\"writer\":2", "\"writer\":3").replace("\"format\":2", "\"format\":3");
    assert_eq!(open(newer_writer.clone(), true), Some(Code::E0803));
    assert_eq!(open(newer_writer, false), None, "readers of this format are still served");
    assert_eq!(open(text.replace("\"reader\":2", "\"reader\":3"), false), Some(Code::E0803));
    assert_eq!(open("{}".into(), false), Some(Code::E0305));
    let disk = Faulty::new();
    let error = Embedded::open(Path::new(DIR), options(&disk, 3000)).unwrap_err();
    assert_eq!(error.code(), "E0103");
    Embedded::create(Path::new(DIR), info(), options(&disk, 3000)).unwrap();
    let error = Embedded::create(Path::new(DIR), info(), options(&disk, 3000)).unwrap_err();
    assert_eq!(error.code(), "E0110");
}

#[test]
fn a_log_that_lost_its_descriptor_is_not_overwritten() {
    let (mut files, _) = small_store(false);
    files.remove(Path::new("/store/store.json"));
    let disk = Faulty::with_files(files);
    let error = Embedded::create(Path::new(DIR), info(), options(&disk, 3000)).unwrap_err();
    assert_eq!(error.code(), "E0110");
}

#[test]
fn a_rolled_back_log_is_noticed_by_the_checkpoint() {
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk, 3000)).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r"), scribe.step("r")]).unwrap();
    let before = disk.files();
    let mut other = scribe.clone();
    store.commit(&[scribe.step("r")]).unwrap();
    store.sign_checkpoint(&key()).unwrap();
    let mut files = disk.files();
    let first = Path::new("/store/segments/00000000.seg");
    // The older log under the newer checkpoint, and then with another history of the same length.
    files.insert(first.to_owned(), before[first].clone());
    let disk = Faulty::with_files(files);
    let store = Embedded::open(Path::new(DIR), options(&disk, 3000)).unwrap();
    assert_eq!(store.trouble().unwrap().code(), "E0307");
    let mut unaware = disk.files();
    unaware.remove(Path::new("/store/checkpoint"));
    let unaware = Faulty::with_files(unaware);
    let mut store = Embedded::open(Path::new(DIR), options(&unaware, 3000)).unwrap();
    let another = other.transition("r", Value::record([("other", Value::Null)]));
    store.commit(&[another]).unwrap();
    let mut files = disk.files();
    files.insert(first.to_owned(), unaware.files()[first].clone());
    let disk = Faulty::with_files(files);
    let mut store = Embedded::open(Path::new(DIR), options(&disk, 3000)).unwrap();
    assert_eq!(store.trouble().unwrap().code(), "E0307");
    assert!(store.sign_checkpoint(&key()).is_err(), "no second root for a size");
    assert_eq!(store.verify(&VerifyOptions::default()).unwrap().findings[0].code(), "E0307");
}

/// A change of a file: where, what, and how much of the old it takes away.
#[derive(Debug, Clone)]
struct Splice {
    file: usize,
    at: usize,
    gone: usize,
    put: Vec<u8>,
}

fn splice() -> impl Strategy<Value = Splice> {
    let put = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        (0usize..1200).prop_map(|count| vec![0; count]),
        Just(b"dndrcmt1".to_vec()),
    ];
    (0usize..4, 0usize..4000, 0usize..600, put).prop_map(|(file, at, gone, put)| Splice {
        file,
        at,
        gone,
        put,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(1500), ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_files_hold_nothing_wrong_is_read(splices in proptest::collection::vec(splice(), 1..4)) {
        let (files, records) = small_store(true);
        let mut changed = files.clone();
        for Splice { file, at, gone, put } in &splices {
            let content = changed.values_mut().nth(file % files.len()).unwrap();
            let at = at % (content.len() + 1);
            let end = (at + gone).min(content.len());
            content.splice(at..end, put.iter().copied());
        }
        let said = diagnose(&changed, &records, &format!("{splices:?}"));
        prop_assert!(said.is_some() || changed == files || only_numbers_differ(&changed, &files), "{:?}", splices);
    }
}

/// Whether the only difference is the number of the format, which says nothing, in what was erased, or bytes behind
/// the end, which nobody ever committed.
fn only_numbers_differ(changed: &BTreeMap<PathBuf, Vec<u8>>, files: &BTreeMap<PathBuf, Vec<u8>>) -> bool {
    changed.iter().zip(files).all(|((path, new), (_, old))| {
        if new.len() != old.len() {
            let last = files.keys().rfind(|path| path.starts_with("/store/segments"));
            return last == Some(path) && new.starts_with(old);
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = (0..old.len()).filter(|at| new[*at] != old[*at]).map(|at| (name.clone(), at, 0));
        match &*name {
            "store.json" => bytes.count() <= 1,
            "checkpoint" => bytes.count() == 0,
            _ => {
                check_only_void(files, &bytes.collect::<Vec<_>>());
                true
            }
        }
    })
}

/// Scans from `from` on; returns what was handed over, and the code of what went wrong.
fn scan(store: &Embedded, from: u64, until: u64) -> (Vec<(u64, Record)>, Option<&'static str>) {
    let mut found = Vec::new();
    let scanned = store.scan(from..store.tree().size, &mut |position, record| {
        found.push((position, record));
        if position == until { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (found, scanned.err().map(|error| error.code().as_str()))
}

/// Long enough that records are sealed on several processors. One is erased, and one is another than it was filed as.
#[test]
fn a_long_scan_is_in_order_and_ends_at_damage() {
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk, 1 << 20)).unwrap();
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    records.extend((0..2_500).map(|_| scribe.step("r")));
    records.chunks(100).for_each(|group| store.commit(group).map(drop).unwrap());
    let place = records[700].body().fields()[0].pointer.clone();
    let erase = scribe.beside(Kind::Erase, "r", Value::object());
    store.erase(&erase, &[(700, vec![place.clone()])]).unwrap();
    records[700] = records[700].without(&[place]);
    records.push(erase);
    let all: Vec<(u64, Record)> = (0..).zip(records.iter().cloned()).collect();
    assert_eq!(scan(&store, 0, u64::MAX), (all.clone(), None));
    assert_eq!(scan(&store, 650, u64::MAX), (all[650..].to_vec(), None));
    for until in [0, 127, 128, 699, 700, 701, 1_999] {
        assert_eq!(scan(&store, 0, until), (all[..=until as usize].to_vec(), None), "until {until}");
    }
    drop(store);
    let mut files = disk.files();
    let damaged = swap_values(files.get_mut(Path::new("/store/segments/00000000.seg")).unwrap(), 1_800);
    let disk = Faulty::with_files(files);
    let store = Embedded::open(Path::new(DIR), options(&disk, 1 << 20)).unwrap();
    assert_eq!(scan(&store, 0, u64::MAX), (all[..damaged].to_vec(), Some("E0301")));
    assert_eq!(scan(&store, damaged as u64 + 1, u64::MAX), (all[damaged + 1..].to_vec(), None));
    let report = store.verify(&VerifyOptions::default()).unwrap();
    let places: Vec<_> =
        report.findings.iter().map(|finding| (finding.code(), finding.place.position)).collect();
    assert_eq!(places, [(Code::E0301, Some(damaged as u64))]);
    assert_eq!((report.records, report.closed), (records.len() as u64 - 1, 1));
}

/// Puts the values of another record in the place of those of the `n`-th, checksum and all; returns its position.
fn swap_values(segment: &mut [u8], n: usize) -> usize {
    let mut values = Vec::new();
    let mut at = 64;
    while at + 9 < segment.len() {
        let len = u32::from_le_bytes(segment[at..at + 4].try_into().unwrap()) as usize;
        if matches!(segment[at + 8], b'V' | b'X') {
            values.push(at..at + 9 + len);
        }
        at += 9 + len;
    }
    let other = values[..n].iter().rfind(|other| other.len() == values[n].len()).unwrap().clone();
    let bytes = segment[other].to_vec();
    segment[values[n].clone()].copy_from_slice(&bytes);
    n
}

/// Where the frames of a segment are, with their kinds.
fn frames_of(log: &[u8]) -> Vec<(usize, u8, std::ops::Range<usize>)> {
    let (mut found, mut at) = (Vec::new(), 64);
    while at + 9 <= log.len() {
        let end = at + 9 + u32::from_le_bytes(log[at..at + 4].try_into().unwrap()) as usize;
        found.push((at, log[at + 8], at + 9..end));
        at = end;
    }
    found
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_le_bytes();
    let summed = [&len[..], &[kind], payload].concat();
    [&len[..], &crc32c::crc32c(&summed).to_le_bytes(), &[kind], payload].concat()
}

/// Puts a frame into the last group that would have the values of a record overwritten, with every checksum and length right.
fn with_opened(log: &[u8], before: usize, opened: &[u8]) -> Vec<u8> {
    let frames = frames_of(log);
    let ends: Vec<_> = frames.iter().filter(|(_, kind, _)| *kind == b'E').collect();
    let (at, _, payload) = ends[ends.len() - before].clone();
    let behind = log[payload.end..].to_vec();
    let mut commit = log[payload].to_vec();
    let length = u64::from_le_bytes(commit[20..28].try_into().unwrap()) + opened.len() as u64;
    commit[20..28].copy_from_slice(&length.to_le_bytes());
    [&log[..at], opened, &frame(b'E', &commit), &behind].concat()
}

/// An erasure is on record, and what it leaves is what is left of the record. Whoever put a frame into a group says neither, and
/// nobody destroys anything on the word of it.
#[test]
fn no_forged_erasure_destroys_what_was_acknowledged() {
    let path = Path::new("/store/segments/00000000.seg");
    for has_erasure in [false, true] {
        let disk = Faulty::new();
        let mut store = Embedded::create(Path::new(DIR), info(), options(&disk, 1 << 20)).unwrap();
        let mut scribe = Scribe::default();
        let mut records = vec![scribe.begin("r")];
        records.extend((0..6).map(|_| scribe.step("r")));
        for record in &records {
            store.commit(std::slice::from_ref(record)).unwrap();
        }
        if has_erasure {
            // Of another record, by the book.
            let erase = scribe.beside(Kind::Erase, "r", Value::object());
            store.erase(&erase, &[(5, vec![pointer("/agent_id")])]).unwrap();
        }
        drop(store);
        let log = disk.files()[path].clone();
        let values: Vec<_> = frames_of(&log).into_iter().filter(|(_, kind, _)| *kind == b'V').collect();
        let target = &records[2];
        let fields = target.body().fields();
        let head = [&target.id().0[..], &(values[2].0 as u64).to_le_bytes()].concat();
        let closed: Vec<u8> = fields.iter().flat_map(|field| [&field.digest.0[..], &[0]].concat()).collect();
        let garbage: Vec<u8> = fields.iter().flat_map(|_| [&[0x11; 32][..], &[0]].concat()).collect();
        let mut forgeries = vec![(head.clone(), "cut"), ([&head[..], &garbage[..]].concat(), "garbage")];
        if !has_erasure {
            forgeries.push(([head, closed].concat(), "fitting"));
        }
        for (payload, what) in forgeries {
            let forged = with_opened(&log, 1, &frame(b'O', &payload));
            let mut files = disk.files();
            files.insert(path.to_owned(), forged);
            let place = Faulty::with_files(files);
            let seen = place.files()[path][values[2].2.clone()].to_vec();
            let found = Embedded::open(Path::new(DIR), options(&place, 1 << 20)).and_then(|mut store| {
                let report = store.verify(&VerifyOptions::default())?;
                let committed = store.commit(&[scribe.clone().step("r")]);
                Ok((report.findings.len(), committed.is_ok()))
            });
            let kept = place.files()[path][values[2].2.clone()].to_vec();
            assert_eq!(kept, seen, "{what}, {has_erasure}: values were overwritten");
            let (findings, committed) = found.unwrap();
            assert!(findings > 0, "{what}, {has_erasure}: nobody tells");
            assert!(has_erasure || !committed, "{what}: written behind what is no log");
        }
    }
}
