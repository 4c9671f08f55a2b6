//! Groups that a program without the secret of the log appended, and groups that only look so.

use std::path::Path;
use std::sync::Arc;

use dendrer_object::note::Checkpoint;
use dendrer_object::record::Kind;
use dendrer_object::{Pointer, Value};
use dendrer_store::conformance::{Scribe, info, key, name};
use dendrer_store::faulty::{Crash, Faulty};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, LogWriter, Options, StoreError, WriterSecret};

use crate::crash::{DIR, options};

/// Bytes of a commit frame: head, payload; the tag and the magic are last.
const COMMIT: usize = 9 + 100;

fn owner(disk: &Faulty) -> Embedded {
    let mut store = Embedded::open(Path::new(DIR), options(disk)).unwrap();
    store.set_writer(LogWriter::of(&key()));
    store
}

fn stranger(disk: &Faulty) -> Embedded {
    Embedded::open(Path::new(DIR), options(disk)).unwrap()
}

/// A log of an owner: signed up to size 2, and two groups with tags behind that.
fn begun() -> (Faulty, Scribe) {
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
    store.set_writer(LogWriter::of(&key()));
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r"), scribe.step("r")]).unwrap();
    store.sign_checkpoint(&key()).unwrap();
    store.commit(&[scribe.step("r")]).unwrap();
    store.commit(&[scribe.step("r")]).unwrap();
    (disk, scribe)
}

/// Makes the disk anew with other bytes of the first segment. `change` gets the bytes and the begins of the commit frames.
fn edited(disk: &Faulty, change: impl Fn(&mut Vec<u8>, &[usize])) -> Faulty {
    let files = disk.files().into_iter().map(|(path, mut bytes)| {
        if path.ends_with("segments/00000000.seg") {
            let ends = bytes.windows(8).enumerate().filter(|(_, window)| window == b"dndrcmt1");
            let begins: Vec<usize> = ends.map(|(at, _)| at + 8 - COMMIT).collect();
            change(&mut bytes, &begins);
            for begin in begins {
                let crc = crc32c::crc32c_append(
                    crc32c::crc32c(&bytes[begin..begin + 4]),
                    &bytes[begin + 8..begin + COMMIT],
                );
                bytes[begin + 4..begin + 8].copy_from_slice(&crc.to_le_bytes());
            }
        }
        (path, bytes)
    });
    Faulty::with_files(files.collect::<Vec<_>>())
}

fn refused(disk: &Faulty, untagged: std::ops::Range<u64>) {
    let mut store = owner(disk);
    assert!(store.trouble().is_none(), "{:?}", store.trouble());
    let head = store.run(&name("r")).unwrap().unwrap().head;
    let mut scribe = Scribe::default();
    scribe.set_head("r", head.tick.unwrap(), head.id);
    let error = store.commit(&[scribe.step("r")]).unwrap_err();
    let (from, to) = (untagged.start, untagged.end);
    assert!(
        matches!(&error, StoreError::Untagged { from: a, to: b, groups: 1 } if (*a, *b) == (from, to)),
        "{error:?}"
    );
    assert_eq!(store.sign_checkpoint(&key()).unwrap_err().code(), "E0814");
}

#[test]
fn a_tag_that_was_flipped_or_moved_from_another_group_is_none() {
    let (disk, _) = begun();
    let same = edited(&disk, |_, commits| assert_eq!(commits.len(), 3));
    assert_eq!(owner(&same).untagged().unwrap(), Some(vec![]));
    for bit in [0, 7, 100, 255] {
        let flipped =
            edited(&disk, |bytes, commits| bytes[commits[1] + COMMIT - 40 + bit / 8] ^= 1 << (bit % 8));
        refused(&flipped, 2..3);
    }
    let spliced = edited(&disk, |bytes, commits| {
        let tag = bytes[commits[1] + COMMIT - 40..commits[1] + COMMIT - 8].to_vec();
        bytes[commits[2] + COMMIT - 40..commits[2] + COMMIT - 8].copy_from_slice(&tag);
    });
    refused(&spliced, 3..4);
    // A signature counts for all before it.
    let signed = edited(&disk, |bytes, commits| bytes[commits[0] + COMMIT - 40] ^= 1);
    assert_eq!(owner(&signed).untagged().unwrap(), Some(vec![]));
}

#[test]
fn a_handle_without_key_and_secret_is_refused_before_it_writes() {
    let (disk, mut scribe) = begun();
    let plain = || Options { untagged: false, ..options(&disk) };
    let (before, step) = (disk.files(), scribe.step("r"));
    let mut store = Embedded::open(Path::new(DIR), plain()).unwrap();
    for mut store in [store.with_key(None), Embedded::open(Path::new(DIR), plain()).unwrap()] {
        assert_eq!(store.commit(std::slice::from_ref(&step)).unwrap_err().code(), "E0804");
        assert_eq!(store.sign_checkpoint(&key()).unwrap_err().code(), "E0804");
    }
    assert_eq!(disk.files(), before);
    store = Embedded::open(Path::new(DIR), plain()).unwrap().with_key(Some(Arc::new(key())));
    store.commit(&[step]).unwrap();
    // A test says so, and writes without a tag.
    stranger(&disk).commit(&[scribe.step("r")]).unwrap();
    assert_eq!(owner(&disk).untagged().unwrap(), Some(vec![5..6]));
}

/// The index covers the group, so opening reads none of its frames.
#[test]
fn a_group_that_the_index_covers_is_looked_at_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
    store.set_writer(LogWriter::of(&key()));
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    store.sign_checkpoint(&key()).unwrap();
    store.commit(&[scribe.step("r")]).unwrap();
    store.update_index().unwrap();
    AppendLog::close(Box::new(store)).unwrap();
    let open = || {
        let mut store = Embedded::open(&path, Options::untagged()).unwrap();
        assert_eq!(store.index_status(), Ok(store.tree().size));
        store.set_writer(LogWriter::of(&key()));
        store
    };
    assert_eq!(open().untagged().unwrap(), Some(vec![]));
    let mut other = Embedded::open(&path, Options::untagged()).unwrap();
    other.commit(&[scribe.step("r"), scribe.step("r")]).unwrap();
    other.update_index().unwrap();
    AppendLog::close(Box::new(other)).unwrap();
    assert_eq!(open().untagged().unwrap(), Some(vec![2..4]));
    assert_eq!(open().commit(&[scribe.step("r")]).unwrap_err().code(), "E0814");
}

#[test]
fn two_owners_a_writer_with_the_secret_and_a_backup_need_nothing() {
    let (disk, mut scribe) = begun();
    let (mut first, mut second) = (owner(&disk), owner(&disk));
    let secret = WriterSecret::from_secret_text(&WriterSecret::of(&key()).secret_text()).unwrap();
    let mut third = stranger(&disk);
    third.set_writer(LogWriter::Secret(Arc::new(secret)));
    for _ in 0..3 {
        for store in [&mut first, &mut second, &mut third] {
            store.commit(&[scribe.step("r")]).unwrap();
        }
    }
    second.sign_checkpoint(&key()).unwrap();
    third.commit(&[scribe.step("r")]).unwrap();
    // As a copy has it: the files, and the checkpoint of then.
    let copy = edited(&disk, |_, _| {});
    let mut copy = owner(&copy);
    copy.commit(&[scribe.step("r")]).unwrap();
    copy.sign_checkpoint(&key()).unwrap();
}

#[test]
fn a_kill_never_takes_the_tag_of_an_own_group() {
    let (disk, mut scribe) = begun();
    let mut store = owner(&disk);
    let first = disk.moments();
    for turn in 0..6 {
        store.append(&[scribe.step("r"), scribe.step("r")]).unwrap();
        store.sync().unwrap();
        if turn % 2 == 1 {
            store.sign_checkpoint(&key()).unwrap();
        }
    }
    let (mut tried, mut unsigned) = (0, 0);
    for moment in first..=disk.moments() {
        let seed = moment as u64;
        for crash in [Crash::Process, Crash::Everything, Crash::Random(seed), Crash::Random(!seed)] {
            let mut again = owner(&disk.image(moment, crash));
            let size = again.tree().size;
            let note = again.checkpoint().unwrap().unwrap();
            unsigned += u32::from(Checkpoint::parse(note.text()).unwrap().size() < size);
            assert_eq!(again.untagged().unwrap(), Some(vec![]), "moment {moment}, {crash:?}");
            let head = again.run(&name("r")).unwrap().unwrap().head;
            let mut scribe = Scribe::default();
            scribe.set_head("r", head.tick.unwrap(), head.id);
            again.commit(&[scribe.step("r")]).unwrap();
            again.sign_checkpoint(&key()).unwrap();
            tried += 1;
        }
    }
    assert!(tried > 80 && unsigned > 20, "{tried} {unsigned}");
}

#[test]
fn groups_are_set_aside_whole_and_the_log_goes_on() {
    let (disk, mut scribe) = begun();
    let before = disk.files();
    let owned = scribe.clone();
    let mut other = stranger(&disk);
    // Enough for segments of their own.
    let all: Vec<Vec<_>> = (0..4).map(|_| (0..9).map(|_| scribe.step("r")).collect()).collect();
    all.iter().for_each(|group| drop(other.commit(group).unwrap()));
    let forged = disk.files();
    let segments = |files: &std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>| {
        let names = files.iter().filter(|(path, _)| path.to_string_lossy().contains("segments/"));
        names.map(|(path, bytes)| (path.clone(), bytes.clone())).collect::<Vec<_>>()
    };
    assert!(segments(&forged).len() > segments(&before).len());
    let mut store = owner(&disk);
    let aside = Path::new("/work/aside");
    let listed = store.set_aside(None, None).unwrap().unwrap();
    assert_eq!((listed.from, listed.to, listed.groups), (4, 40, 4));
    assert_eq!(segments(&disk.files()), segments(&forged), "a look changes nothing");
    let head = Some(dendrer_store::TreeHead { size: 5, root: store.root_of(40).unwrap().unwrap() });
    assert_eq!(store.set_aside(Some(aside), head).unwrap_err().code(), "E0815");
    let moment = disk.moments();
    assert_eq!(store.set_aside(Some(aside), None).unwrap(), Some(listed.clone()));
    assert_eq!(segments(&disk.files()), segments(&before), "what is left are the bytes of before");
    let moved: usize =
        disk.files().iter().filter(|(path, _)| path.starts_with(aside)).map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(moved as u64, listed.bytes);
    let mut on = owned.clone();
    store.commit(&[on.step("r")]).unwrap();
    store.sign_checkpoint(&key()).unwrap();
    assert_eq!(store.set_aside(Some(Path::new("/work/b")), None).unwrap(), None);
    // Wherever it was stopped, the groups are all in the log, or all aside, and the rest can be done.
    let mut stopped = 0;
    for at in moment..=disk.moments() {
        let image = disk.image(at, Crash::Everything);
        let mut again = owner(&image);
        assert!(again.trouble().is_none(), "moment {at}: {:?}", again.trouble());
        if again.tree().size > 5 {
            stopped += 1;
            again.set_aside(Some(Path::new("/work/again")), None).unwrap().unwrap();
        }
        assert!(again.tree().size <= 5);
    }
    assert!(stopped > 5, "{stopped}");
}

#[test]
fn what_a_tag_follows_or_has_erased_values_is_not_set_aside() {
    let (disk, mut scribe) = begun();
    stranger(&disk).commit(&[scribe.step("r")]).unwrap();
    let mut store = owner(&disk);
    store.adopt(store.tree()).unwrap();
    store.commit(&[scribe.step("r")]).unwrap();
    // Stopped before the signature: the group has no tag, and one with a tag follows.
    let mut store = owner(&disk);
    assert_eq!(store.untagged().unwrap(), Some(vec![4..5]));
    assert_eq!(store.set_aside(Some(Path::new("/work/aside")), None).unwrap_err().code(), "E0815");
    let (disk, mut scribe) = begun();
    let erase = scribe.beside(Kind::Erase, "r", Value::record([("n", 1u64.into())]));
    let place: Pointer = "/intent".parse().unwrap();
    stranger(&disk).erase(&erase, &[(1, vec![place])]).unwrap();
    let mut store = owner(&disk);
    assert_eq!(store.untagged().unwrap(), Some(vec![4..5]));
    assert_eq!(store.set_aside(Some(Path::new("/work/aside")), None).unwrap_err().code(), "E0815");
}
