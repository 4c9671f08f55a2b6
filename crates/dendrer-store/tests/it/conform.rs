use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use dendrer_store::conformance::{self, Lie, Subject};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Memory, Options, Shared, StoreInfo};

struct InMemory;

impl Subject for InMemory {
    fn create(&self, info: StoreInfo) -> Box<dyn Store> {
        Box::new(Memory::new(info))
    }

    fn reopen(&self) -> Option<Box<dyn Store>> {
        None
    }
}

struct OnDisk {
    options: Options,
    dir: RefCell<Option<tempfile::TempDir>>,
    /// Whether the index is brought up to date at every reopening.
    reindex: bool,
    /// How many lies were planted.
    planted: Cell<usize>,
}

impl OnDisk {
    fn new(options: Options) -> OnDisk {
        OnDisk { options, dir: RefCell::default(), reindex: false, planted: Cell::default() }
    }

    fn path(&self) -> PathBuf {
        self.dir.borrow().as_ref().unwrap().path().join(".dendrer")
    }
}

impl Subject for OnDisk {
    fn create(&self, info: StoreInfo) -> Box<dyn Store> {
        self.dir.replace(Some(tempfile::tempdir().unwrap()));
        Box::new(Embedded::create(&self.path(), info, self.options.clone()).unwrap())
    }

    fn reopen(&self) -> Option<Box<dyn Store>> {
        let mut store = Embedded::open(&self.path(), self.options.clone()).unwrap();
        if self.reindex {
            store.update_index().unwrap();
            drop(store);
            store = Embedded::open(&self.path(), self.options.clone()).unwrap();
            assert_eq!(store.index_status(), Ok(store.tree().size));
        }
        Some(Box::new(store))
    }

    fn plant(&self, lie: Lie) -> bool {
        let index = self.path().join("index.sqlite");
        if !index.exists() {
            return false;
        }
        let db = rusqlite::Connection::open(index).unwrap();
        db.pragma_update(None, "foreign_keys", false).unwrap();
        let newest = "SELECT max(position) FROM record WHERE run = 0 AND tick IS NOT NULL";
        let sql = match lie {
            Lie::HiddenTick => format!("DELETE FROM record WHERE position = ({newest})"),
            Lie::HiddenKey => "DELETE FROM record WHERE kind = 'key'".into(),
            Lie::HiddenRun => "DELETE FROM run WHERE name = 'b'".into(),
            Lie::HiddenRefusal => "UPDATE record SET run = 1 WHERE kind = 'refusal'".into(),
            Lie::WrongPositions => "UPDATE record SET tick = -1 WHERE run = 0 AND tick = 2;
                 UPDATE record SET tick = 2 WHERE run = 0 AND tick = 3;
                 UPDATE record SET tick = 3 WHERE tick = -1"
                .into(),
            Lie::SurplusTick => "UPDATE record SET run = 0, tick = 99 WHERE run = 1 AND tick = 1;
                 UPDATE run SET newest_tick = 99 WHERE begin = 0"
                .into(),
            Lie::SurplusRun => "INSERT INTO run VALUES (3, 'ghost', NULL, 0, NULL, 0)".into(),
        };
        db.execute_batch(&sql).unwrap();
        self.planted.set(self.planted.get() + 1);
        true
    }
}

#[test]
fn the_memory_store_conforms() {
    conformance::run(&InMemory);
}

#[test]
fn the_embedded_store_conforms() {
    conformance::run(&OnDisk::new(Options::untagged()));
}

#[test]
fn the_embedded_store_conforms_without_an_index() {
    conformance::run(&OnDisk::new(Options { index: false, ..Options::untagged() }));
}

#[test]
fn the_embedded_store_conforms_with_an_index_that_covers_everything() {
    let subject = OnDisk { reindex: true, ..OnDisk::new(Options::untagged()) };
    conformance::run(&subject);
    assert_eq!(subject.planted.get(), Lie::ALL.len());
}

#[test]
fn the_embedded_store_conforms_with_an_index_always_at_work() {
    conformance::run(&OnDisk::new(Options { uncovered_max: 1, ..Options::untagged() }));
}

#[test]
fn the_embedded_store_conforms_with_many_small_segments() {
    conformance::run(&OnDisk::new(Options { segment_size: 1, uncovered_max: 7, ..Options::untagged() }));
}

/// Another store behind a handle that threads share.
struct Together<S>(S);

impl<S: Subject> Subject for Together<S> {
    fn create(&self, info: StoreInfo) -> Box<dyn Store> {
        Box::new(Shared::new(self.0.create(info)))
    }

    fn reopen(&self) -> Option<Box<dyn Store>> {
        Some(Box::new(Shared::new(self.0.reopen()?)))
    }

    fn plant(&self, lie: Lie) -> bool {
        self.0.plant(lie)
    }
}

#[test]
fn a_shared_store_conforms() {
    conformance::run(&Together(InMemory));
    conformance::run(&Together(OnDisk::new(Options::untagged())));
    conformance::lies(&Together(OnDisk { reindex: true, ..OnDisk::new(Options::untagged()) }));
}
