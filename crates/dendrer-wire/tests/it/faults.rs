//! A disk that fails once, at every call of an import: what was told is what is on record.

use std::io::{Cursor, ErrorKind};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dendrer::kernel::step::Start;
use dendrer::recorder::Fixed;
use dendrer_object::record::Kind;
use dendrer_store::faulty::{DiskFault, Faulty};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, Shared, StoreError, StoreInfo};
use dendrer_wire::import::{self, ImportError};

use crate::chat;

#[test]
fn what_an_import_that_failed_has_told_is_what_is_on_record() {
    let message = |n: usize| format!(r#"{{"role":"user","content":"{n}"}}"#);
    let source = format!("[{}]", (0..650).map(message).collect::<Vec<_>>().join(","));
    let plan = import::plan(&mut Cursor::new(&source), chat(), Start::new("r".parse().unwrap())).unwrap();
    // So often it failed where groups before it had been told of already, were under way, and came too late.
    let (mut failed, mut told_some) = (0, 0);
    for at in 0.. {
        let disk = Faulty::new();
        let key = dendrer_testkit::key(1);
        let info = StoreInfo::new(dendrer_testkit::store_id(1), key.verifier_key().clone());
        let options = Options { disk: Arc::new(disk.clone()), index: false, ..Options::untagged() };
        let store = Shared::new(Box::new(Embedded::create(Path::new("/store"), info, options).unwrap()));
        disk.fail(at, DiskFault::Error(ErrorKind::StorageFull), false);
        let (mut told, surroundings) = (0, Box::new(Fixed::new("import", 0, 1)));
        let result = import::record(&store, &mut Cursor::new(&source), &plan, surroundings, &mut |more| {
            told += more;
        });
        let is_over = disk.is_pending();
        disk.heal();
        let mut on_record = 0;
        store
            .entries(0..store.tree().size, &mut |_, entry| {
                on_record += u64::from(entry.kind == Kind::Transition);
                ControlFlow::Continue(())
            })
            .unwrap();
        let Err(error) = result else {
            assert_eq!(told, 650);
            if is_over {
                break;
            }
            continue;
        };
        failed += 1;
        told_some += u32::from(told > 0);
        let ImportError::Repository(dendrer::Error::Store(error)) = error else { panic!("{error}") };
        match error {
            // What is on record may not be on disk.
            StoreError::SyncFailed { .. } => assert!(told <= on_record, "{at}: {told} of {on_record}"),
            StoreError::Stale { .. } => panic!("{at}: that is what came of it, and not what happened"),
            error => assert_eq!(told, on_record, "{at}: {error}"),
        }
    }
    assert!(failed > 20 && told_some > 5, "{failed} {told_some}");
}
