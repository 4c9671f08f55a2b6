//! The report for others: what helps to find a fault, and nothing that says what was recorded, where, or by whom.
//!
//! Made of numbers, of words that stand in this program, and of digests of names under a salt that is thrown away. A
//! newcomer would break that by adding a message: messages hold names and paths.

use dendrer::kernel::step::KERNEL_VERSION;
use dendrer::store::contract::FORMAT;
use dendrer::store::embedded::{IndexState, KeptWhat};
use dendrer::store::{RunSummary, Store, StoreError};
use dendrer_object::record::FORMAT_VERSION;
use dendrer_object::{Digest, Value};
use dendrer_view::document;
use ring::rand::{SecureRandom, SystemRandom};

use super::Check;
use super::Found;
use crate::context;
use crate::failure::Failure;
use crate::failure::Result;
use crate::keys;

/// How many runs are spoken of one by one.
const RUNS_MAX: usize = 100;

/// Makes the report.
pub(super) fn make(checks: &[Check], found: Option<&Found>) -> Result<Value> {
    let check = |check: &Check| {
        Value::record([
            ("name", Value::from(check.name)),
            ("level", Value::from(check.level.word())),
            ("code", check.code.map_or(Value::Null, Value::from)),
            ("fixed", Value::from(check.fixed)),
        ])
    };
    Ok(document(
        "report",
        [
            ("version", Value::from(env!("CARGO_PKG_VERSION"))),
            ("os", Value::from(std::env::consts::OS)),
            ("arch", Value::from(std::env::consts::ARCH)),
            (
                "formats",
                Value::record([
                    ("record", Value::from(FORMAT_VERSION)),
                    ("bundle", Value::from(1u64)),
                    ("store", Value::from(FORMAT)),
                    ("kernel", Value::from(KERNEL_VERSION)),
                ]),
            ),
            ("checks", Value::array(checks.iter().map(check))),
            ("store", found.map_or(Ok(Value::Null), of_store)?),
        ],
    ))
}

fn of_store(found: &Found) -> Result<Value> {
    let store = &found.store;
    let mut salt = [0; 32];
    SystemRandom::new()
        .fill(&mut salt)
        .map_err(|_| Failure::new("E0801", "the system gives no randomness"))?;
    let runs = context::all_runs(store)?;
    let size = |name: &str| std::fs::metadata(found.path.join(name)).map_or(0, |about| about.len());
    let segments: Vec<u64> = std::fs::read_dir(found.path.join("segments"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.metadata().map_or(0, |about| about.len()))
        .collect();
    let kept = store.kept_rows().unwrap_or_default();
    let snapshots = kept.iter().filter(|row| matches!(row.what, KeptWhat::Snapshot(_)));
    let (index, covered) = match store.index_state() {
        IndexState::Ready(covered) => ("ready", Some(covered)),
        IndexState::Absent => ("absent", None),
        IndexState::Corrupt(_) => ("corrupt", None),
        IndexState::Newer(_) => ("newer", None),
        IndexState::Unreadable(_) => ("unreadable", None),
        IndexState::Unused => ("unused", None),
    };
    let sum = |number: fn(&RunSummary) -> u64| runs.iter().map(number).sum::<u64>();
    let items = runs.iter().take(RUNS_MAX).map(|run| of_run(run, &salt));
    Ok(Value::record([
        ("format", Value::from(store.info().format)),
        ("backup", Value::from(store.backup_head().is_some())),
        ("records", Value::from(store.tree().size)),
        ("segments", Value::from(segments.len() as u64)),
        ("log_bytes", Value::from(segments.iter().sum::<u64>())),
        ("index", Value::from(index)),
        ("index_covers", Value::from(covered)),
        ("index_bytes", Value::from(size("index.sqlite") + size("index.sqlite-wal"))),
        ("snapshots", Value::from(snapshots.clone().count() as u64)),
        ("snapshot_bytes", Value::from(snapshots.map(|row| row.bytes).sum::<u64>())),
        (
            "verdicts",
            Value::from(kept.iter().filter(|row| matches!(row.what, KeptWhat::Verdicts(_))).count() as u64),
        ),
        ("trouble", store.trouble().as_deref().map(StoreError::code).map_or(Value::Null, Value::from)),
        ("signed_here", Value::from(keys::head(store.info().id).ok().flatten().map(|head| head.size))),
        ("runs", Value::from(runs.len() as u64)),
        ("transitions", Value::from(sum(|run| run.transitions))),
        ("refusals", Value::from(sum(|run| run.refusals))),
        ("items", Value::array(items)),
    ]))
}

fn of_run(run: &RunSummary, salt: &[u8]) -> Value {
    Value::record([
        ("run", Value::from(Digest::of_parts(&[salt, run.name.as_str().as_bytes()]).short().to_string())),
        ("transitions", Value::from(run.transitions)),
        ("refusals", Value::from(run.refusals)),
        ("ended", Value::from(run.ended)),
        ("forked", Value::from(run.parent.is_some())),
    ])
}
