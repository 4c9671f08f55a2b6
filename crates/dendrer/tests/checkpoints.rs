//! The exact bytes of checkpoints are put with the records that name them: one sync, both or neither, and in no bundle.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dendrer::checkpoint::{
    ChannelPut, CheckpointError, CheckpointPut, Checkpoints, Decode, ReadMessages, TypedBytes, WritePut,
    WritesPut,
};
use dendrer::object::Value;
use dendrer::store::faulty::{Crash, Faulty};
use dendrer::store::prelude::*;
use dendrer::store::{Embedded, Given, Options, VerifyOptions};
use dendrer::trust::MemoryTrust;
use dendrer::{Repo, bundle};

const DIR: &str = "/work/.dendrer";

/// Bytes that a framework made, and nothing reads.
struct Opaque;

impl Decode for Opaque {
    fn whole(&self, _: &TypedBytes) -> Option<Value> {
        None
    }

    fn head(&self, _: &TypedBytes) -> Option<usize> {
        None
    }

    fn grown(&self, _: &TypedBytes, _: &TypedBytes) -> Option<Vec<Value>> {
        None
    }

    fn messages(&self, _: &Value) -> ReadMessages {
        ReadMessages::default()
    }
}

fn options(disk: &Faulty) -> Options {
    Options { disk: Arc::new(disk.clone()), index: false, ..Options::untagged() }
}

fn create(disk: &Faulty) {
    drop(Embedded::create(Path::new(DIR), dendrer_testkit::info(1), options(disk)).unwrap());
}

fn saver(disk: &Faulty, trust: &MemoryTrust) -> Checkpoints {
    let store = Embedded::open(Path::new(DIR), options(disk)).unwrap();
    let repo = Repo::over(Box::new(store), Arc::new(trust.clone())).unwrap();
    Checkpoints::open(repo, Box::new(Opaque)).unwrap()
}

/// Bytes that repeat nowhere.
fn noise(size: usize, seed: u64) -> Arc<[u8]> {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(size).collect()
}

fn typed(size: usize, seed: u64) -> TypedBytes {
    TypedBytes { tag: "bin".into(), bytes: noise(size, seed) }
}

fn value(n: u64) -> TypedBytes {
    // In the entry, and in parts.
    typed(if n % 3 == 2 { 20_000 } else { 900 }, n)
}

fn checkpoint(n: u64) -> CheckpointPut {
    let channel = ChannelPut { name: "c".into(), version: n.to_string().into(), value: Some(value(n)) };
    CheckpointPut {
        thread: "t".into(),
        namespace: "".into(),
        parent: n.checked_sub(1).map(|n| format!("id-{n}").into()),
        id: format!("id-{n}").into(),
        checkpoint: typed(60, 1_000 + n),
        metadata: typed(30, 2_000 + n),
        made_by: None,
        channels: vec![channel],
        may_fork: false,
        claim: None,
        noted: Vec::new(),
    }
}

fn writes(n: u64) -> WritesPut {
    WritesPut {
        thread: "t".into(),
        namespace: "".into(),
        id: format!("id-{n}").into(),
        task: "task".into(),
        path: "path".into(),
        items: vec![WritePut { index: 0, channel: "c".into(), value: typed(300, 3_000 + n) }],
        replaces: false,
        claim: None,
        noted: Vec::new(),
    }
}

fn check(saver: &mut Checkpoints, n: u64) {
    let found = saver.get(&"t".into(), "", Some(&format!("id-{n}"))).unwrap().expect("it is there");
    assert_eq!(found.checkpoint.bytes, checkpoint(n).checkpoint.bytes);
    assert_eq!(found.channels[0].1.bytes, value(n).bytes);
}

/// The bytes that the store keeps under names.
fn kept(saver: &Checkpoints) -> Vec<Vec<u8>> {
    let store = saver.repo().reader().unwrap();
    store.secrets().unwrap().iter().map(|name| store.get_secret(name).unwrap().unwrap()).collect()
}

/// The file of a disk that has a piece of some bytes.
fn file_with(disk: &Faulty, bytes: &[Vec<u8>]) -> Option<String> {
    let pieces: HashSet<&[u8]> = bytes.iter().flat_map(|bytes| bytes[20..].chunks_exact(24)).collect();
    let has = |file: &[u8]| file.windows(24).any(|here| pieces.contains(here));
    disk.files().into_iter().find(|(_, file)| has(file)).map(|(path, _)| path.display().to_string())
}

#[test]
fn a_put_makes_one_sync() {
    let (disk, trust) = (Faulty::new(), MemoryTrust::clone(&dendrer_testkit::appending(1)));
    create(&disk);
    let mut saver = saver(&disk, &trust);
    // The first makes the vault, and the format.
    saver.put(&checkpoint(0)).unwrap();
    let files = disk.files().len();
    for n in 1..7 {
        let before = disk.syncs();
        saver.put(&checkpoint(n)).unwrap();
        assert_eq!(disk.syncs() - before, 1, "put {n}");
        saver.put_writes(&writes(n)).unwrap();
        assert_eq!(disk.syncs() - before, 2, "put_writes {n}");
    }
    assert_eq!(disk.files().len(), files, "no file for a value");
    (0..7).for_each(|n| check(&mut saver, n));
}

#[test]
fn a_checkpoint_that_is_listed_after_a_crash_is_read_whole() {
    let (disk, trust) = (Faulty::new(), MemoryTrust::clone(&dendrer_testkit::appending(1)));
    create(&disk);
    let mut first = saver(&disk, &trust);
    first.put(&checkpoint(0)).unwrap();
    let begin = disk.moments();
    for n in 1..4 {
        first.put(&checkpoint(n)).unwrap();
        first.put_writes(&writes(n)).unwrap();
    }
    let (end, mut counts) = (disk.moments(), HashSet::new());
    for moment in begin..=end {
        for crash in [Crash::Process, Crash::Everything, Crash::Random(moment as u64)] {
            let image = disk.image(moment, crash);
            let mut saver = saver(&image, &trust);
            let listed = saver.list(Some(&"t".into()), None, None, None).unwrap().len() as u64;
            (0..listed).for_each(|n| check(&mut saver, n));
            // Nothing is left of a value without its record.
            let mut vault = saver.repo().vault().unwrap();
            assert_eq!(vault.sweep(true).unwrap(), 0, "{moment} {crash:?}");
            let report = dendrer::vault::check(&*saver.repo().reader().unwrap(), &trust).unwrap().unwrap();
            assert_eq!(report.damaged, [], "{moment} {crash:?}");
            counts.insert((listed, report.entries));
            saver.put(&checkpoint(listed)).unwrap();
            check(&mut saver, listed);
        }
    }
    // Each entry came with its record: after each checkpoint, and after each write beside it.
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable();
    assert_eq!(counts, [(1, 1), (2, 2), (2, 3), (3, 4), (3, 5), (4, 6), (4, 7)]);
}

#[test]
fn a_value_is_in_no_entry_of_the_log_and_in_no_bundle() {
    let (disk, trust) = (Faulty::new(), MemoryTrust::clone(&dendrer_testkit::appending(1)));
    create(&disk);
    let mut saver = saver(&disk, &trust);
    (0..5).for_each(|n| saver.put(&checkpoint(n)).unwrap());
    let secrets = kept(&saver);
    assert!(secrets.len() > 5, "{}", secrets.len());
    assert!(file_with(&disk, &secrets).is_some_and(|file| file.ends_with(".seg")));
    let pieces: HashSet<&[u8]> = secrets.iter().flat_map(|bytes| bytes[20..].chunks_exact(24)).collect();
    let has = |bytes: &[u8]| bytes.windows(24).any(|here| pieces.contains(here));
    let mut store = saver.repo().writer().unwrap().clone();
    let mut entries = Vec::new();
    let each = &mut |_, entry: dendrer::object::record::Entry| {
        entry.write(&mut entries);
        ControlFlow::Continue(())
    };
    store.entries(0..store.tree().size, each).unwrap();
    assert!(!entries.is_empty() && !has(&entries));
    let note = store.sign_checkpoint(&dendrer_testkit::key(1)).unwrap();
    assert!(!has(note.to_string().as_bytes()));
    let runs: Vec<_> = store.runs(0, 9).unwrap().into_iter().map(|summary| summary.name).collect();
    let bundle = bundle::export(&store, &runs, &note).and_then(|export| export.to_vec()).unwrap();
    assert!(!has(&bundle));
    // Nor in another spelling: the bundle says of the values what it says without them.
    let names = store.secrets().unwrap();
    store.remove_secrets(&names, Given::default()).unwrap();
    assert_eq!(bundle::export(&store, &runs, &note).and_then(|export| export.to_vec()).unwrap(), bundle);
}

#[test]
fn a_deleted_thread_is_in_no_file_wherever_the_deletion_was_stopped() {
    let (disk, trust) = (Faulty::new(), MemoryTrust::clone(&dendrer_testkit::appending(1)));
    create(&disk);
    let mut first = saver(&disk, &trust);
    // A value that stays, with parts of its own.
    first.put(&CheckpointPut { thread: "other".into(), ..checkpoint(0) }).unwrap();
    let stays = kept(&first);
    (0..50).for_each(|n| {
        first.put(&checkpoint(n)).unwrap();
        first.put_writes(&writes(n)).unwrap();
    });
    let gone: Vec<_> = kept(&first).into_iter().filter(|bytes| !stays.contains(bytes)).collect();
    assert!(gone.len() >= 100, "{} values", gone.len());
    let begin = disk.moments();
    first.delete_thread(&"t".into()).unwrap();
    assert_eq!(file_with(&disk, &gone), None);
    let end = disk.moments();
    for moment in (begin..end).step_by((end - begin) / 6) {
        for disk in [disk.killed(moment), disk.image(moment, Crash::Random(moment as u64))] {
            let mut saver = saver(&disk, &trust);
            let deleted = saver.delete_thread(&"t".into());
            assert!(
                deleted.is_ok(),
                "{moment}: {:?}",
                deleted.map_err(|error: CheckpointError| error.to_string())
            );
            assert_eq!(file_with(&disk, &gone), None, "{moment}");
            let left = kept(&saver);
            assert!(stays.iter().all(|bytes| left.contains(bytes)), "{moment}");
            drop(saver);
            let store = Embedded::open(Path::new(DIR), options(&disk)).unwrap();
            assert_eq!(store.verify(&VerifyOptions::default()).unwrap().findings, [], "{moment}");
        }
    }
}
