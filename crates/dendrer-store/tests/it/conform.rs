use std::cell::RefCell;
use std::path::PathBuf;

use dendrer_store::conformance::{self, Subject};
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
}

impl OnDisk {
    fn new(options: Options) -> OnDisk {
        OnDisk { options, dir: RefCell::default(), reindex: false }
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
}

#[test]
fn the_memory_store_conforms() {
    conformance::run(&InMemory);
}

#[test]
fn the_embedded_store_conforms() {
    conformance::run(&OnDisk::new(Options::write()));
}

#[test]
fn the_embedded_store_conforms_without_an_index() {
    conformance::run(&OnDisk::new(Options { index: false, ..Options::write() }));
}

#[test]
fn the_embedded_store_conforms_with_an_index_that_covers_everything() {
    conformance::run(&OnDisk { reindex: true, ..OnDisk::new(Options::write()) });
}

#[test]
fn the_embedded_store_conforms_with_an_index_always_at_work() {
    conformance::run(&OnDisk::new(Options { uncovered_max: 1, ..Options::write() }));
}

#[test]
fn the_embedded_store_conforms_with_many_small_segments() {
    conformance::run(&OnDisk::new(Options { segment_size: 1, uncovered_max: 7, ..Options::write() }));
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
}

#[test]
fn a_shared_store_conforms() {
    conformance::run(&Together(InMemory));
    conformance::run(&Together(OnDisk::new(Options::write())));
}
