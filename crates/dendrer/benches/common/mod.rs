//! What the figures and the comparison with peers share: steps, a store, a clock. No figure is made here.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dendrer::Recorder;
use dendrer::recorder::{World, begin_log};
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::{Shared, StoreInfo};
use dendrer_kernel::step::Start;
use dendrer_object::note::SigningKey;
use dendrer_object::{Intent, StoreId, json};
use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process so far, of all threads.
pub(crate) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Text of so many bytes, never the same twice.
pub(crate) struct Words(u64);

impl Words {
    pub(crate) fn new() -> Words {
        Words(1)
    }

    pub(crate) fn text(&mut self, size: usize) -> String {
        const WORDS: [&str; 10] =
            ["alpha", "route", "storm", "hotel", "price", "train", "plan", "check", "allow", "result"];
        let mut text = String::new();
        while text.len() < size {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(WORDS[(self.0 >> 33) as usize % WORDS.len()]);
            text.push(' ');
        }
        text.truncate(size);
        text
    }
}

/// Steps of 1 KB, as lines that `dendrer commit` takes: a call of a stub model with its answer.
pub(crate) fn lines(count: usize) -> Vec<String> {
    let mut words = Words::new();
    (0..count)
        .map(|n| {
            let (prompt, output) = (words.text(420), words.text(450));
            format!(
                r#"{{"action":{{"params":{{"model":"stub","n":{n},"prompt":"{prompt}"}},"tool":"model.call"}},"agent":"agent","author":"runtime","result":{{"output":"{output}","status":"ok"}},"type":"action.result"}}"#
            )
        })
        .collect()
}

/// The same steps, made before the clock starts.
pub(crate) fn intents(count: usize) -> Vec<Intent> {
    read(&lines(count))
}

/// Reads lines as a program that is given them does.
pub(crate) fn read(lines: &[String]) -> Vec<Intent> {
    let intent = |line: &String| {
        let value = json::parse_door(line.as_bytes()).expect("JSON");
        Intent::from_value(&value, None).expect("an intent")
    };
    lines.iter().map(intent).collect()
}

pub(crate) fn key() -> SigningKey {
    SigningKey::from_seed(&StoreId([7; 16]).origin(), [7; 32]).expect("a name")
}

pub(crate) fn new_store(dir: &Path, name: &str) -> Shared {
    let path = dir.join(name);
    fs::create_dir_all(&path).expect("a directory");
    let info = StoreInfo::new(StoreId([7; 16]), key().verifier_key().clone());
    let store = Embedded::create(&path, info, Options::untagged()).expect("a store");
    let mut store = Shared::new(Box::new(store.with_key(Some(Arc::new(key())))));
    begin_log(&mut store, &mut World::default()).expect("a log");
    store
}

/// Appends steps in groups, and waits for no disk.
pub(crate) fn record_steps(store: &Shared, run: &str, intents: &[Intent], group: usize) {
    let start = Start::new(run.parse().expect("a name"));
    let mut recorder = Recorder::begin(store, &start, Box::new(World::default())).expect("a run");
    for chunk in intents.chunks(group) {
        recorder.propose_each(chunk).expect("steps");
        recorder.append().expect("appended");
    }
}

/// Makes groups durable, while the next ones are made: as many of them as a recorder has under way, those that wait sharing a
/// sync, or one, which so has a sync of its own. A step alone is waited for.
pub(crate) fn record_synced<'a>(
    store: &Shared,
    run: &str,
    groups: impl IntoIterator<Item = &'a [Intent]>,
    shares: bool,
) {
    let start = Start::new(run.parse().expect("a name"));
    let mut recorder = Recorder::begin(store, &start, Box::new(World::default())).expect("a run");
    for group in groups {
        recorder.propose_each(group).expect("steps");
        if group.len() == 1 {
            recorder.commit().expect("synced");
            continue;
        }
        let one_is_under_way = recorder.is_under_way();
        recorder.submit().expect("appended");
        if one_is_under_way && !shares {
            recorder.wait().expect("synced");
        }
    }
    while recorder.wait().expect("synced").is_some() {}
}
