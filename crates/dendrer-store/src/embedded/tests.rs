use std::io::ErrorKind;

use dendrer_object::note::Checkpoint;
use dendrer_object::{Code, Pointer, Value};

use super::*;
use crate::conformance::{Scribe, info};
use crate::faulty::{DiskFault, Faulty};
use crate::store::EraseValues as _;

fn on(disk: &Faulty) -> Options {
    Options { disk: Arc::new(disk.clone()), index: false, ..Options::untagged() }
}

#[test]
fn a_handle_refuses_after_a_fork() {
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new("/s"), info(), on(&disk)).unwrap();
    let mut scribe = Scribe::default();
    let begin = scribe.begin("r");
    store.commit(std::slice::from_ref(&begin)).unwrap();
    // As the child of a fork sees it: the same memory in another process.
    store.owner = std::process::id() + 1;
    let step = [scribe.step("r")];
    let before = disk.calls();
    let refused = [
        store.append(&step).map(drop),
        store.append(&[]).map(drop),
        store.sync().map(drop),
        store.submit(&[]).map(drop),
        store.submit(&step).map(drop),
        store.proven(0).map(drop),
        store.refresh().map(drop),
        store.get(0).map(drop),
        store.find(&begin.id()).map(drop),
        store.runs(0, 9).map(drop),
        store.walk(&mut |_| ControlFlow::Continue(())),
        store.update_index(),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert!(matches!(error, StoreError::Forked { .. }), "{error}");
        assert_eq!(error.code(), "E0805");
    }
    assert_eq!(disk.calls(), before, "nothing was touched");
    store.close().unwrap();
    assert_eq!(disk.calls(), before, "nor by closing it");
}

#[test]
fn a_group_begins_a_new_segment_when_the_last_one_is_large() {
    let disk = Faulty::new();
    let options = Options { segment_size: 1000, ..on(&disk) };
    let mut store = Embedded::create(Path::new("/s"), info(), options.clone()).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    for _ in 0..20 {
        store.commit(&[scribe.step("r")]).unwrap();
    }
    let files = disk.files();
    let sizes: Vec<usize> = files
        .iter()
        .filter(|(path, _)| path.starts_with("/s/segments"))
        .map(|(_, file)| file.len())
        .collect();
    assert!(sizes.len() > 5 && sizes[..sizes.len() - 1].iter().all(|size| *size > 1000), "{sizes:?}");
    drop(store);
    assert_eq!(Embedded::open(Path::new("/s"), options).unwrap().tree().size, 21);
}

#[test]
fn a_commit_says_what_was_known_to_be_on_disk() {
    let disk = Faulty::new();
    let mut store = Embedded::create(Path::new("/s"), info(), on(&disk)).unwrap();
    let mut scribe = Scribe::default();
    store.append(&[scribe.begin("r")]).unwrap();
    store.append(&[scribe.step("r")]).unwrap();
    store.sync().unwrap();
    store.append(&[scribe.step("r")]).unwrap();
    let file = store.segments.file(0).unwrap().unwrap();
    let mut said = Vec::new();
    let mut from = 0;
    while let Some((at, commit)) = frame::find_commit(&*file, from, 0).unwrap() {
        said.push((commit.size, commit.synced));
        from = at + 1;
    }
    assert_eq!(said, [(1, 0), (2, 0), (3, 2)]);
}

/// A system may report a failure once. A handle that gets the report while it undoes a group, cuts an end or finishes
/// an erasure must pass it on to the groups that wait for their sync.
#[test]
fn a_sync_beside_the_line_that_fails_fails_for_those_in_it() {
    let begin = || {
        let disk = Faulty::new();
        let mut store = Embedded::create(Path::new("/s"), info(), on(&disk)).unwrap();
        let mut scribe = Scribe::default();
        store.commit(&[scribe.begin("r")]).unwrap();
        store.append(&[scribe.step("r")]).unwrap();
        let ticket = store.submit(&[]).unwrap();
        (disk, store, scribe, ticket)
    };
    let mut failed = 0;
    for at in 0.. {
        let (disk, mut store, mut scribe, ticket) = begin();
        disk.fail(at, DiskFault::Error(ErrorKind::StorageFull), false);
        disk.fail_syncs(false);
        let appended = store.append(&[scribe.step("r")]);
        // Bytes that could not be written could not be taken back either.
        if matches!(store.trouble().as_deref(), Some(StoreError::SyncFailed { .. })) {
            failed += 1;
            appended.unwrap_err();
            store.waiter().unwrap().wait_for_sync(&ticket).unwrap_err();
        } else if appended.is_ok() {
            break;
        }
    }
    assert!(failed > 0);

    let (disk, mut store, mut scribe, ticket) = begin();
    let path = store.segments.path(0);
    let file = disk.open(&path, Open::Write).unwrap();
    file.write_at(b"half a group", disk.files()[&path].len() as u64).unwrap();
    disk.fail_syncs(false);
    assert!(matches!(store.append(&[scribe.step("r")]), Err(StoreError::SyncFailed { .. })));
    store.waiter().unwrap().wait_for_sync(&ticket).unwrap_err();

    let (disk, mut store, mut scribe, ticket) = begin();
    let why = Value::record([("reason", "asked to".into())]);
    let erase = scribe.beside(Kind::Erase, "r", why);
    let mut other = Embedded::open(Path::new("/s"), on(&disk)).unwrap();
    other.erase(&erase, &[(0, vec![Pointer::root()])]).unwrap();
    disk.fail_syncs(false);
    assert!(matches!(store.append(&[scribe.step("r")]), Err(StoreError::SyncFailed { .. })));
    store.waiter().unwrap().wait_for_sync(&ticket).unwrap_err();
}

/// A signature claims that the log extends the last signed head. A log that was rewritten without the key, down to
/// the commit frame at the signed size, opens, because opening reads only a part of the log. It is not signed.
#[test]
fn a_rewritten_log_is_not_signed() {
    let dir = tempfile::tempdir().unwrap();
    let (good, bad) = (dir.path().join("good"), dir.path().join("bad"));
    let key = crate::conformance::key();
    let mut store = Embedded::create(&good, info(), Options::untagged()).unwrap();
    let mut other = Embedded::create(&bad, info(), Options::untagged()).unwrap();
    let (mut scribe, mut forger) = (Scribe::default(), Scribe::default());
    for (store, scribe) in [(&mut store, &mut scribe), (&mut other, &mut forger)] {
        store.commit(&[scribe.begin("r")]).unwrap();
    }
    for n in 0..40u64 {
        store.commit(&[scribe.step("r")]).unwrap();
        other.commit(&[forger.transition("r", Value::record([("forged", n.into())]))]).unwrap();
    }
    let signed = store.sign_checkpoint(&key).unwrap();
    let signed = Checkpoint::parse(signed.text()).unwrap();
    for _ in 0..20 {
        store.commit(&[scribe.step("r")]).unwrap();
        other.commit(&[forger.step("r")]).unwrap();
    }
    // The index covers all of it, so opening reads none of these commits again.
    other.update_index().unwrap();
    AppendLog::close(Box::new(other)).unwrap();
    std::fs::copy(good.join("checkpoint"), bad.join("checkpoint")).unwrap();
    let path = bad.join("segments/00000000.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    let file = Real.open(&path, Open::Read).unwrap();
    let mut from = 0;
    let at = loop {
        let (at, commit) = frame::find_commit(&*file, from, 0).unwrap().unwrap();
        if commit.size == signed.size() {
            let mut forged = Vec::new();
            frame::Commit { root: signed.root(), ..commit }.write(&mut forged);
            bytes[at as usize..at as usize + forged.len()].copy_from_slice(&forged);
            break at;
        }
        from = at + 1;
    };
    std::fs::write(&path, &bytes).unwrap();
    let mut other = Embedded::open(&bad, Options::untagged()).unwrap();
    assert!(other.trouble().is_none(), "at {at}: {:?}", other.trouble());
    assert!(!other.extends(signed.size(), signed.root()).unwrap());
    let refused = other.sign_checkpoint(&key).unwrap_err();
    assert!(matches!(refused.code(), Code::E0307 | Code::E0805), "{refused}");
    assert!(matches!(other.trouble().as_deref(), Some(StoreError::Damaged(_) | StoreError::Lost(_))));
    assert_eq!(
        std::fs::read(bad.join("checkpoint")).unwrap(),
        std::fs::read(good.join("checkpoint")).unwrap()
    );
    // The log that was signed is, with its tiles and without them, with its index and without it.
    let extends = || {
        let fresh = Embedded::open(&good, Options::read()).unwrap();
        let other_root = fresh.root_of(signed.size() - 1).unwrap().unwrap();
        assert!(!fresh.extends(signed.size(), other_root).unwrap());
        assert!(!fresh.extends(signed.size() + 100, signed.root()).unwrap());
        fresh.extends(signed.size(), signed.root()).unwrap()
            && fresh.extends(signed.size() - 1, other_root).unwrap()
            && fresh.extends(fresh.tree().size, fresh.tree().root).unwrap()
            && fresh.extends(0, dendrer_object::merkle::empty_root()).unwrap()
    };
    assert!(extends());
    store.update_index().unwrap();
    assert!(extends());
    std::fs::remove_dir_all(good.join("log")).unwrap();
    assert!(extends());
    store.sign_checkpoint(&key).unwrap();
}

/// The end of a log is what is written behind. If the log was rewritten, and the index that covers all of it has the signed
/// end, a handle opens with the root that was signed. Hashes of the entries say otherwise, before anything follows.
#[test]
fn a_rewritten_end_is_not_written_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (good, bad) = (dir.path().join("good"), dir.path().join("bad"));
    let key = crate::conformance::key();
    let mut root = None;
    for (path, last) in [(&good, 1000_u64), (&bad, 2000)] {
        let mut store = Embedded::create(path, info(), Options::untagged()).unwrap();
        let mut scribe = Scribe::default();
        store.commit(&[scribe.begin("r")]).unwrap();
        for n in 0..300 {
            let value = if n == 299 { last } else { 3000 + n };
            store.commit(&[scribe.transition("r", Value::record([("n", value.into())]))]).unwrap();
        }
        store.update_index().unwrap();
        if path == &good {
            store.sign_checkpoint(&key).unwrap();
        }
        root.get_or_insert(store.tree());
        AppendLog::close(Box::new(store)).unwrap();
    }
    let signed = root.unwrap();
    let segment = |dir: &std::path::Path| dir.join("segments/00000000.seg");
    let (honest, mut forged) =
        (std::fs::read(segment(&good)).unwrap(), std::fs::read(segment(&bad)).unwrap());
    assert_eq!(honest.len(), forged.len());
    // The last commit frame has the root that was signed.
    let file = Real.open(&segment(&good), Open::Read).unwrap();
    let mut from = 0;
    while let Some((at, commit)) = frame::find_commit(&*file, from, 0).unwrap() {
        if commit.size == signed.size {
            forged.truncate(at as usize);
            forged.extend_from_slice(&honest[at as usize..]);
            break;
        }
        from = at + 1;
    }
    assert_eq!(honest.len(), forged.len());
    assert_ne!(honest, forged);
    std::fs::write(segment(&good), &forged).unwrap();
    let store = Embedded::open(&good, Options::untagged()).unwrap();
    assert!(store.trouble().is_none() && store.tree() == signed, "nobody reads all of a log to open it");
    assert!(!store.extends(signed.size, signed.root).unwrap());
    drop(store);
    std::fs::write(segment(&good), &honest).unwrap();
    let mut store = Embedded::open(&good, Options::untagged()).unwrap();
    assert!(store.extends(signed.size, signed.root).unwrap());
    store.sign_checkpoint(&key).unwrap();
}

/// A log in which a run begins twice, or has a tick twice, comes from a writer that does not check. An index covers
/// the part before it, and can be built again.
#[test]
fn an_index_ends_before_what_has_no_place_in_it() {
    for again in ["begin", "tick"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
        let mut scribe = Scribe::default();
        store.commit(&[scribe.begin("r")]).unwrap();
        for _ in 0..9 {
            store.commit(&[scribe.step("r")]).unwrap();
        }
        let mut other = Scribe::default();
        let (begin, step) = (other.begin("r"), other.step("r"));
        let twice = if again == "begin" { begin } else { step };
        store.write_group(&[scribe.step("r"), twice], &mut |_, _| {}, BTreeMap::new()).unwrap();
        store.commit(&[scribe.begin("q")]).unwrap();
        store.update_index().unwrap();
        AppendLog::close(Box::new(store)).unwrap();
        let index = path.join("index.sqlite");
        for made_again in [false, true] {
            if made_again {
                std::fs::remove_file(&index).unwrap();
                let mut store = Embedded::open(&path, Options::untagged()).unwrap();
                store.rebuild_index(false).unwrap();
            }
            let db = rusqlite::Connection::open(&index).unwrap();
            let count = |text: &str| db.query_row(text, [], |row| row.get::<_, i64>(0)).unwrap();
            assert_eq!(count("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'size'"), 10, "{again}");
            assert_eq!(count("SELECT count(*) FROM record"), 10, "{again}");
            assert_eq!(
                count("SELECT count(*) FROM meta WHERE key = 'runs' AND value = '10 1'"),
                1,
                "{again}"
            );
        }
        let store = Embedded::open(&path, Options::read()).unwrap();
        assert_eq!(store.tree().size, 13);
        assert!(store.index_differs().unwrap().is_none());
    }
}

/// A head that the caller refuses is not signed.
#[test]
fn what_may_not_be_signed_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let key = crate::conformance::key();
    let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    store.sign_checkpoint(&key).unwrap();
    let before = std::fs::read(path.join("checkpoint")).unwrap();
    store.commit(&[scribe.step("r")]).unwrap();
    let mut asked = 0;
    let note = store.sign_if(&key, &mut |store, checkpoint| {
        asked = checkpoint.size();
        assert_eq!((checkpoint.size(), checkpoint.root()), (store.tree().size, store.tree().root));
        Ok(false)
    });
    assert!(note.unwrap().is_none() && asked == 2);
    let no = StoreError::Unsupported("no");
    assert!(
        store
            .sign_if(&key, &mut |_, _| Err(StoreError::Unsupported("no")))
            .is_err_and(|said| said.to_string() == no.to_string())
    );
    assert_eq!(std::fs::read(path.join("checkpoint")).unwrap(), before);
    store.sign_checkpoint(&key).unwrap();
}
