//! A real file system that is full, and one handle that is there before, during and after.
//!
//! `DENDRER_FULL_DIR` names a directory on a small file system; `cargo run -p xtask -- deep full-loop` makes one.

use std::io::Write as _;
use std::path::Path;

use dendrer_object::Value;
use dendrer_store::conformance::{Scribe, check_holds, info, noise};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, StoreError, VerifyOptions};

/// Fills a file until no more fits, then leaves so many bytes.
fn fill(ballast: &Path, leave: u64) {
    let mut file = std::fs::File::create(ballast).unwrap();
    while file.write_all(&[0x5a; 1024]).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(leave)).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_handle_goes_on_when_there_is_room_again() {
    let Some(dir) = std::env::var_os("DENDRER_FULL_DIR") else {
        println!("SKIPPED: DENDRER_FULL_DIR names no small file system");
        return;
    };
    let dir = Path::new(&dir);
    let mut reopened = 0;
    for point in 0..50u64 {
        let (path, ballast) = (dir.join(format!("handle-{point}")), dir.join("ballast"));
        let mut store = Embedded::create(&path, info(), Options::untagged()).unwrap();
        let mut scribe = Scribe::default();
        let mut all = vec![scribe.begin("r")];
        store.commit(&all).unwrap();
        fill(&ballast, 3_000 + point * 4_111);
        let mut failed = 0;
        while failed < 3 {
            let before = scribe.clone();
            let text = noise(200 + (point as usize * 37 + all.len() * 211) % 3000, all.len() as u64);
            let record = scribe.transition("r", Value::record([("result", Value::from(text))]));
            match store.commit(std::slice::from_ref(&record)) {
                Ok(_) => all.push(record),
                Err(error) => {
                    failed += 1;
                    assert!(
                        matches!(
                            error,
                            StoreError::DiskFull { .. }
                                | StoreError::SyncFailed { .. }
                                | StoreError::ReadOnly { .. }
                        ),
                        "{error}"
                    );
                    scribe = before;
                }
            }
        }
        std::fs::remove_file(&ballast).unwrap();
        if store.trouble().is_some() {
            // A sync that failed stops the handle for good; the process goes on with another one.
            reopened += 1;
            drop(store);
            store = Embedded::open(&path, Options::untagged()).unwrap();
        }
        store.refresh().unwrap();
        assert_eq!(store.tree().size, all.len() as u64, "nothing that failed is there");
        for _ in 0..3 {
            let record = scribe.step("r");
            store.commit(std::slice::from_ref(&record)).unwrap();
            all.push(record);
        }
        check_holds(&store, &all);
        assert_eq!(store.verify(&VerifyOptions::default()).unwrap().findings, []);
        drop(store);
        std::fs::remove_dir_all(&path).unwrap();
        println!("deep: full-handle 1");
    }
    println!("{reopened} of 50 handles were opened again");
}
