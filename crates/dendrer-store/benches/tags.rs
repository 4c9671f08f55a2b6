//! The cost of the tag of a group, as a share of appending the group (`docs/benchmarks.md`): 100 records a group, no sync.
//!
//! Two stores take turns, one with a writer's secret and one without, so that what else the machine does meets both.

use std::path::Path;
use std::time::{Duration, Instant};

use dendrer_object::Record;
use dendrer_store::conformance::{Scribe, info, key};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, LogWriter, Options, TreeHead, WriterSecret};

const GROUPS: usize = 60;
const RECORDS: usize = 100;

/// How many tags are timed together.
const BATCH: u32 = 50;

/// The most that a tag may cost.
const SHARE_MAX: f64 = 0.05;

fn store(dir: &Path, name: &str, writer: LogWriter) -> (Embedded, Scribe) {
    let options = Options { index: false, ..Options::untagged() };
    let mut store = Embedded::create(&dir.join(name), info(), options).expect("a store");
    store.set_writer(writer);
    let mut scribe = Scribe::default();
    store.append(&[scribe.begin("r")]).expect("it fits");
    (store, scribe)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut stores = [
        store(dir.path(), "with", LogWriter::of(&key())),
        store(dir.path(), "without", LogWriter::Unchecked),
    ];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..GROUPS {
        for (which, (store, scribe)) in stores.iter_mut().enumerate() {
            let group: Vec<Record> = (0..RECORDS).map(|_| scribe.step("r")).collect();
            let begin = Instant::now();
            store.append(&group).expect("it fits");
            times[which].push(begin.elapsed());
        }
    }
    let [with, without] = times.map(median);
    let secret = WriterSecret::of(&key());
    let (store, tree) = (info().id, stores[0].0.tree());
    let tags = (0..GROUPS as u64).map(|batch| {
        let begin = Instant::now();
        for size in 0..BATCH {
            let tree = TreeHead { size: batch * u64::from(BATCH) + u64::from(size), ..tree };
            let tag = secret.tag(store, tree);
            assert!(secret.has_tagged(store, tree, &tag));
        }
        begin.elapsed() / BATCH
    });
    let tag = median(tags.collect());
    let share = tag.as_secs_f64() / without.as_secs_f64();
    println!("a group of {RECORDS} records  {without:?} without tag, {with:?} with");
    println!("a tag, made and looked at  {tag:?}, {share:.4} of the group; at most {SHARE_MAX}");
    println!("ratio of the medians       {:.4}", with.as_secs_f64() / without.as_secs_f64());
    assert!(share <= SHARE_MAX, "a tag costs {share} of a group");
}
