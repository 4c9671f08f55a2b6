//! Stores with fixed ids and keys, records in them, and numbers that look like chance.

use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer::Recorder;
use dendrer::recorder::Fixed;
use dendrer::trust::MemoryTrust;
use dendrer_kernel::step::{Outcome, Start};
use dendrer_object::merkle::{Peaks, leaf_hash};
use dendrer_object::note::SigningKey;
use dendrer_object::{Intent, Record, RunName, StoreId};
use dendrer_store::{Memory, Shared, Store, StoreInfo, TreeHead, WriterSecret};

/// Returns the id of the store of a number.
pub fn store_id(number: u8) -> StoreId {
    StoreId([number; 16])
}

/// Returns the key of the store of a number.
pub fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(&store_id(number).origin(), [number; 32]).expect("an origin is a name for a key")
}

/// Returns what the store of a number says of itself.
pub fn info(number: u8) -> StoreInfo {
    StoreInfo::new(store_id(number), key(number).verifier_key().clone())
}

/// Makes the store of a number, empty and in memory.
pub fn memory(number: u8) -> Shared {
    Shared::new(Box::new(Memory::new(info(number))))
}

/// As [`memory`], with the key of the store at hand.
pub fn memory_with_key(number: u8) -> Shared {
    Shared::new(Box::new(Memory::new(info(number)).with_key(Some(Arc::new(key(number))))))
}

/// Returns what a service knows that appends to the store of a number, and does not sign.
pub fn appending(number: u8) -> Arc<MemoryTrust> {
    let trust = MemoryTrust::new();
    trust.keep_writer(store_id(number), WriterSecret::of(&key(number)));
    Arc::new(trust)
}

/// Parses a run name that is known to be one.
pub fn run_name(text: &str) -> RunName {
    text.parse().expect("a run name")
}

/// Begins a recording at fixed times, the salts of which follow from the name of the run.
pub fn recorder(store: &Shared, start: &Start) -> Recorder {
    let surroundings = Fixed::new(start.run.as_str(), 0, 1);
    Recorder::begin(store, start, Box::new(surroundings)).expect("a run begins")
}

/// Records a run of intents, all of which must be committed, in groups of 100.
pub fn record(store: &Shared, start: &Start, intents: impl IntoIterator<Item = Intent>) {
    let mut recorder = recorder(store, start);
    for intent in intents {
        let outcome = recorder.propose(&intent).expect("an intent that can be sealed");
        assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
        if recorder.pending() >= 100 {
            recorder.commit().expect("a group is appended");
        }
    }
    recorder.commit().expect("a group is appended");
}

/// Returns every record of a store in the order of the log.
pub fn records_of(store: &dyn Store) -> Vec<Record> {
    let mut records = Vec::new();
    let passed = store.scan(0..store.tree().size, &mut |_, record| {
        records.push(record);
        ControlFlow::Continue(())
    });
    passed.expect("every record opens");
    records
}

/// Makes a store that holds whatever it is given, past every check: what someone with the key could have written.
pub fn store_of(info: StoreInfo, records: Vec<Record>) -> Shared {
    let mut peaks = Peaks::new();
    for record in &records {
        peaks.push(leaf_hash(&record.entry()));
    }
    let tree = TreeHead { size: peaks.size(), root: peaks.root() };
    Shared::new(Box::new(Memory::of_parts(info, tree, (0..).zip(records).collect())))
}

/// A sequence of numbers from a seed that looks like chance and is the same everywhere (SplitMix64).
#[derive(Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// Returns the next number, any of 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns the next number below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
