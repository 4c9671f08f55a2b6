use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dendrer_object::Digest;
use dendrer_store::StoreInfo;

use super::*;

fn both() -> [(Arc<dyn Trust>, Option<tempfile::TempDir>); 2] {
    let dir = tempfile::tempdir().unwrap();
    [(Arc::new(MemoryTrust::new()), None), (Arc::new(UserTrust::at(dir.path())), Some(dir))]
}

fn head(size: u64, byte: u8) -> TreeHead {
    TreeHead { size, root: Digest([byte; 32]) }
}

#[test]
fn a_key_comes_back_and_is_never_replaced() {
    for (trust, _dir) in both() {
        let info = dendrer_testkit::info(1);
        assert!(trust.key(&info).unwrap().is_none());
        let key = Arc::new(dendrer_testkit::key(1));
        trust.keep_key(info.id, &key).unwrap();
        assert_eq!(trust.key(&info).unwrap().unwrap().verifier_key(), key.verifier_key());
        assert_eq!(trust.keep_key(info.id, &key).unwrap_err().code(), "E0112");
        // A store whose description names another key was exchanged, or its key was.
        let other = StoreInfo::new(info.id, dendrer_testkit::info(2).key);
        assert_eq!(trust.key(&other).unwrap_err().code(), "E0804");
        trust.drop_key(info.id);
        assert!(trust.key(&info).unwrap().is_none());
    }
}

#[test]
fn a_smaller_head_never_replaces_a_larger_one() {
    for (trust, _dir) in both() {
        let store = dendrer_testkit::store_id(1);
        assert_eq!(trust.head(store).unwrap(), None);
        let mut turn = trust.turn(store).unwrap();
        turn.remember(head(5, 1)).unwrap();
        turn.remember(head(4, 2)).unwrap();
        turn.remember(head(5, 3)).unwrap();
        drop(turn);
        assert_eq!(trust.head(store).unwrap(), Some(head(5, 1)));
        assert_eq!(trust.head(dendrer_testkit::store_id(2)).unwrap(), None);
    }
}

#[test]
fn only_one_has_a_turn_at_a_time() {
    for (trust, _dir) in both() {
        let store = dendrer_testkit::store_id(1);
        let is_over = AtomicBool::new(false);
        let turn = trust.turn(store).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _turn = trust.turn(store).unwrap();
                assert!(is_over.load(Ordering::SeqCst), "two had a turn");
            });
            // Another log is signed meanwhile.
            drop(trust.turn(dendrer_testkit::store_id(2)).unwrap());
            std::thread::sleep(Duration::from_millis(50));
            is_over.store(true, Ordering::SeqCst);
            drop(turn);
        });
    }
}

#[test]
fn a_head_that_is_none_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let trust = UserTrust::at(dir.path());
    let store = dendrer_testkit::store_id(1);
    trust.turn(store).unwrap().remember(head(5, 1)).unwrap();
    let path = trust.head_path(store).unwrap();
    std::fs::write(&path, b"something else").unwrap();
    assert_eq!(trust.head(store).unwrap_err().code(), "E0306");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(trust.head(store).unwrap_err().code(), "E0801");
}
