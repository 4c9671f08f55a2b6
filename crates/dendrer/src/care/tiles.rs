//! Tiles of the index, compared with sums over the records that a verification reads anyway.
//!
//! A tile that names another record than the log has at its last tick is left by a writer whose group did not reach the disk. No
//! question uses it, so it is no finding.
//!
//! Rule: sums that a timeline would use, and that do not follow from the records, are found; test
//! `a_changed_tile_is_found_by_verify`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_object::RunName;
use dendrer_object::record::{Kind, Record};
use dendrer_store::embedded::Options;
use dendrer_store::prelude::*;
use dendrer_store::{Damage, DamageKind, DamagePlace, Embedded, LogReport, Slot, StoreError, TilePlace};

use crate::error::Error;
use crate::run::tile::{self, Tally, Tile, TileMaker};
use crate::run::trace::Trace;

/// The tiles of a store, as far as the records were read.
pub(super) struct TileCheck<'s> {
    store: &'s Embedded,
    /// The runs that have tiles.
    makers: HashMap<RunName, TileMaker>,
    wrong: Vec<(RunName, TilePlace)>,
}

/// Returns the finding of a store that is not verified otherwise.
pub(super) fn differs(store: &Embedded) -> Result<Option<Damage>, Error> {
    let mut check = TileCheck::new(store)?;
    if !check.makers.is_empty() {
        store.scan(0..store.tree().size, &mut |_, record| {
            check.take(&record);
            ControlFlow::Continue(())
        })?;
    }
    Ok(check.finding())
}

impl<'s> TileCheck<'s> {
    /// Begins to compare the tiles of a store.
    pub(super) fn new(store: &'s Embedded) -> Result<TileCheck<'s>, Error> {
        let runs = match store.tiled_runs() {
            // The comparison of the other rows reports it.
            Err(StoreError::IndexDamaged(_)) => Vec::new(),
            runs => runs?,
        };
        let makers = runs.into_iter().map(|run| (run, TileMaker::default())).collect();
        Ok(TileCheck { store, makers, wrong: Vec::new() })
    }

    /// Takes the next record of the log.
    pub(super) fn take(&mut self, record: &Record) {
        let header = record.header();
        let (Kind::Transition, Some(run), Some(tick)) = (header.kind, &header.run, header.tick) else {
            return;
        };
        let Some(maker) = self.makers.get_mut(run) else { return };
        maker.add(tick, record);
        for tile in maker.ready.drain(..) {
            if is_wrong(self.store, run, &tile) {
                self.wrong.push((run.clone(), tile.place));
            }
        }
    }

    /// Adds the finding, unless the log itself has faults.
    pub(super) fn end(self, report: &mut LogReport) {
        if report.findings.iter().all(|damage| damage.kind == DamageKind::Index) {
            report.findings.extend(self.finding());
        }
    }

    fn finding(self) -> Option<Damage> {
        let mut wrong = self.wrong;
        if wrong.is_empty() {
            return None;
        }
        // Another process may have erased values while the records were read, and made tiles again.
        if let Ok(store) = Embedded::open(self.store.dir(), Options::read()) {
            let store = Arc::new(store);
            wrong.retain(|(run, place)| is_still_wrong(&store, run, *place).unwrap_or(true));
        }
        let (run, place) = wrong.first()?;
        let (first, last) = tile::ticks(*place).unwrap_or_default();
        let place = DamagePlace { file: "index.sqlite".into(), ..DamagePlace::default() };
        let expected = "table tile as the log says".into();
        let found = format!("{} rows different, such as {run} ticks {first}..{last}", wrong.len());
        let (kind, what) = (DamageKind::Index, "rows of the index");
        Some(Damage { kind, place, what, expected, found })
    }
}

/// Whether the kept tile of the same record has other sums.
fn is_wrong(store: &Embedded, run: &RunName, tile: &Tile) -> bool {
    let slot = Slot::Tile { run, place: tile.place, seen: None };
    let Ok(Some((_, bytes))) = store.kept(slot) else { return false };
    bytes != tile.to_bytes() && Tile::from_bytes(tile.place, &bytes).is_none_or(|kept| kept.id == tile.id)
}

/// Sums the records of a tile once more, and compares them with what is kept now.
fn is_still_wrong(store: &Arc<Embedded>, run: &RunName, place: TilePlace) -> Result<bool, Error> {
    let Some((first, last)) = tile::ticks(place) else { return Ok(true) };
    let trace = Trace::open(store, run)?;
    let (mut tally, mut tick) = (Tally::default(), first);
    trace.each_record(first, last, &mut |record| {
        tally.add(tick, &record);
        tick += 1;
        Ok(())
    })?;
    let id = trace.record(last)?.id();
    Ok(is_wrong(store, run, &Tile { place, id, tally }))
}
