//! Which of the states and verdicts that a store keeps are worth their room.
//!
//! [`spare()`] decides, [`clean`] removes. Neither changes an answer, only the time that it takes: what is kept follows from the
//! log, and is compared with it whenever it is used. The log is never touched.

use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_object::{Record, RunName};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, IndexState, KeptRow, KeptWhat, Leftover, Shared, Slot, StoreError};

use super::{CareNote, Follow};

use crate::error::Error;
use crate::repo::refuse_damage;
use crate::run::snapshot::{OUTWEIGH, outweigh, weight};
use crate::run::trace::{ReadHandle, Trace};
use crate::trust::Trust;
use crate::vault::{Vault, VaultError};

pub use crate::run::snapshot::Fit;

/// Why something that is kept is not worth its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpareReason {
    /// The log has no such run or tick.
    NoSuchTick,
    /// It differs from the record, so it is not used.
    DoesNotFit,
    /// What no record binds of it is not what the key of the store signed.
    NotSigned,
    /// The records since the one before do not outweigh the state.
    TooClose,
    /// Nothing was written to the run for as long as was asked for.
    Old,
}

/// What is to be kept.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Whether only each eighth snapshot that a recorder takes is worth its room: a state then takes up to eight times as
    /// long.
    pub thin: bool,
    /// Nothing of runs of which the newest record is before this time, in milliseconds since 1970.
    pub since_ms: u64,
}

/// Tells what the snapshot that is kept for a tick is good for.
pub fn judge_snapshot(store: &impl ReadHandle, run: &RunName, tick: u64) -> Result<Fit, Error> {
    let trace = Trace::open(store, run)?;
    if tick > trace.tip() { Ok(Fit::Nothing) } else { judge(&trace, tick) }
}

fn judge(trace: &Trace, tick: u64) -> Result<Fit, Error> {
    match trace.store().kept(Slot::Snapshot(trace.name(), tick)) {
        Ok(Some((at, bytes))) if at == tick => trace.judge_snapshot(tick, &bytes),
        // A row without bytes cannot be used.
        Ok(_) | Err(StoreError::Index(_) | StoreError::IndexDamaged(_)) => Ok(Fit::Nothing),
        Err(error) => Err(error.into()),
    }
}

/// Finds what is not worth its room among rows in the order in which a store lists them.
pub fn spare(
    store: &impl ReadHandle,
    rows: &[KeptRow],
    rule: Rule,
) -> Result<Vec<(KeptRow, SpareReason)>, Error> {
    let mut spare = Vec::new();
    for rows in rows.chunk_by(|a, b| a.run == b.run && is_snapshot(a) == is_snapshot(b)) {
        let Some(run) = rows.first().map(|row| &row.run) else { continue };
        let whole = match store.to_handle().run(run)? {
            None => Some(SpareReason::NoSuchTick),
            Some(summary) if summary.last_ts.ms() < rule.since_ms => Some(SpareReason::Old),
            Some(_) => None,
        };
        match whole {
            Some(why) => spare.extend(rows.iter().map(|row| (row.clone(), why))),
            None if rows.iter().all(is_snapshot) => spare.extend(spare_snapshots(store, rows, rule)?),
            // A statement is there once for each question, and a longer one takes its place.
            None => {}
        }
    }
    Ok(spare)
}

fn is_snapshot(row: &KeptRow) -> bool {
    matches!(row.what, KeptWhat::Snapshot(_))
}

/// Walks a run from snapshot to snapshot, and weighs each against what was changed since the last one that stays.
fn spare_snapshots(
    store: &impl ReadHandle,
    rows: &[KeptRow],
    rule: Rule,
) -> Result<Vec<(KeptRow, SpareReason)>, Error> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let trace = Trace::open(store, &first.run)?;
    let mut spare = Vec::new();
    let times = if rule.thin { 8 * OUTWEIGH } else { OUTWEIGH };
    let (mut records, mut from) = (0, 1);
    for row in rows {
        let KeptWhat::Snapshot(tick) = row.what else { continue };
        if tick > trace.tip() {
            spare.push((row.clone(), SpareReason::NoSuchTick));
            continue;
        }
        trace.for_each(from, tick, &mut |_, record: Record| {
            records += weight(&record);
            ControlFlow::Continue(())
        })?;
        from = tick + 1;
        match judge(&trace, tick)? {
            Fit::Nothing => spare.push((row.clone(), SpareReason::DoesNotFit)),
            Fit::StateAlone => spare.push((row.clone(), SpareReason::NotSigned)),
            Fit::Whole if outweigh(records, usize::try_from(row.bytes).unwrap_or(usize::MAX), times) => {
                records = 0;
            }
            Fit::Whole => spare.push((row.clone(), SpareReason::TooClose)),
        }
    }
    Ok(spare)
}

/// What was removed from a store, or would be.
#[derive(Debug, Clone)]
pub struct Cleaned {
    /// Whether nothing was removed.
    pub dry_run: bool,
    /// The rule that was asked for.
    pub rule: Rule,
    /// States and verdicts.
    pub spare: Vec<(KeptRow, SpareReason)>,
    /// Files of interrupted work.
    pub leftovers: Vec<Leftover>,
    /// Number of bytes of the index that hold nothing.
    pub room: u64,
    /// Number of parts in the vault that belong to no value, as an interrupted put leaves them; 0 without the key of the vault.
    pub vault_parts: u64,
}

impl Cleaned {
    /// Number of bytes of all rows and files.
    pub fn bytes(&self) -> u64 {
        let rows = self.spare.iter().map(|(row, _)| row.bytes);
        rows.chain(self.leftovers.iter().map(|file| file.bytes)).sum()
    }
}

/// Removes what follows from the log and is not worth its room, and what interrupted work left. A dry run takes a store that was
/// opened for reading.
pub fn clean(
    store: Embedded,
    rule: Rule,
    dry_run: bool,
    trust: &Arc<dyn Trust>,
    follow: &mut dyn Follow,
) -> Result<Cleaned, Error> {
    refuse_damage(&store)?;
    let store = Arc::new(store);
    let counted = follow.stage("records", None).over(&store);
    let spare = spare(&counted, &store.kept_rows()?, rule)?;
    drop(counted);
    let mut store = Arc::into_inner(store).expect("no trace is open any more");
    let mut room = store.index_room()?;
    let leftovers = match dry_run {
        true => store.leftovers()?,
        false => {
            let rows: Vec<KeptRow> = spare.iter().map(|(row, _)| row.clone()).collect();
            store.remove_kept(&rows)?;
            store.remove_leftovers()?
        }
    };
    if !dry_run && store.index_room()? > 0 {
        match store.compact_index() {
            // The rows that were removed from it are counted by themselves.
            Ok(freed) => room = freed.saturating_sub(spare.iter().map(|(row, _)| row.bytes).sum()),
            Err(error) => {
                room = 0;
                follow.note(&CareNote::IndexInUse(error));
            }
        }
    }
    if matches!(store.index_state(), IndexState::Corrupt(_)) {
        follow.note(&CareNote::IndexDoesNotOpen);
    }
    let shared = Shared::new(Box::new(store));
    let vault_parts = sweep(&shared, trust, dry_run)?;
    if let Some(store) = shared.into_inner() {
        store.close()?;
    }
    Ok(Cleaned { dry_run, rule, spare, leftovers, room, vault_parts })
}

/// Removes the parts in the vault that belong to no value. Without the key it is not known which those are.
fn sweep(store: &Shared, trust: &Arc<dyn Trust>, dry_run: bool) -> Result<u64, Error> {
    if store.secrets()?.is_empty() {
        return Ok(0);
    }
    match Vault::open(store, Arc::clone(trust)).sweep(dry_run) {
        Ok(parts) => Ok(parts),
        Err(VaultError::Store(error)) => Err(error.into()),
        // Which parts belong to a value is not known; `fsck` reports what is damaged.
        Err(_) => Ok(0),
    }
}
