//! A long run whose state is large, for the benches that ask about one.

use std::path::Path;
use std::sync::Arc;

use dendrer::Recorder;
use dendrer::recorder::{World, begin_log};
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::store::{Shared, StoreInfo};
use dendrer_kernel::step::Start;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::note::SigningKey;
use dendrer_object::{Intent, StoreId, Value};

/// 600 members of about 100 bytes.
pub(crate) fn state() -> Value {
    let members = (0..600).map(|n| (format!("member_{n:03}").into(), Value::from("v".repeat(84))));
    Value::Object(members.chain([("n".into(), Value::from(0.0))]).collect())
}

/// Records it as the run `long` of `dir`/store, whose key is in `dir`/key.
pub(crate) fn record(dir: &Path, state: Value, ticks: u64) {
    let id = StoreId([7; 16]);
    let key = Arc::new(SigningKey::from_seed(&id.origin(), [7; 32]).expect("a name"));
    std::fs::write(dir.join("key"), format!("{}\n", key.secret_text())).expect("written");
    let path = dir.join("store");
    let info = StoreInfo::new(id, key.verifier_key().clone());
    let store = Embedded::create(&path, info, Options::untagged()).expect("a store");
    let mut store = Shared::new(Box::new(store.with_key(Some(Arc::clone(&key)))));
    begin_log(&mut store, &mut World::default()).expect("a log");
    let mut start = Start::new("long".parse().expect("a name"));
    start.state = state;
    let mut recorder = Recorder::begin(&store, &start, Box::new(World::default())).expect("a run");
    let mut from = 1;
    while from <= ticks {
        let group: Vec<Intent> = (from..=ticks.min(from + 99)).map(intent).collect();
        recorder.propose_each(&group).expect("steps");
        recorder.append().expect("appended");
        from += 100;
    }
    drop(recorder);
    let ticket = store.submit(&[]).expect("a sync");
    store.wait(ticket).expect("synced");
    store.sign_checkpoint(&key).expect("signed");
    AppendLog::close(Box::new(store)).expect("closed");
}

/// Counts, and writes to one of the other members.
fn intent(tick: u64) -> Intent {
    let at = |path: String| path.parse().expect("a pointer");
    let delta = Delta(vec![
        Op::set(at("/n".to_owned()), Value::from(tick as f64)),
        Op::set(at(format!("/member_{:03}", tick * 7919 % 600)), Value::from(format!("{tick:084}"))),
    ]);
    Intent::new("memory.write".parse().expect("a type"), "agent").with_delta(delta)
}
