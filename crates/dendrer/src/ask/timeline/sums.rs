//! Sums over the ticks of each bin: of kept tiles, and of records where there are no tiles.
//!
//! A tile that the records complete is kept, so that the next question need not read them.
//!
//! Rule: sums are the same with tiles and without; test `tiles_give_the_same_timeline_as_records`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use dendrer_object::Digest;
use dendrer_object::record::{Entry, Kind};
use dendrer_store::TilePlace;

use crate::ask::timeline::TimelineRange;
use crate::error::Error;
use crate::run::tile::{self, LEVELS, Tally, Tile, TileMaker};
use crate::run::trace::Trace;

/// The sums of the bins of a range.
#[derive(Debug)]
pub(super) struct Sums {
    /// The sums, in order of the bins.
    pub(super) bins: Vec<Tally>,
    /// The ticks of the wanted records that are in the range.
    pub(super) ticks: BTreeMap<Digest, u64>,
}

/// Sums under way.
struct Summing<'t> {
    trace: &'t Trace,
    range: TimelineRange,
    width: u64,
    sums: Sums,
    /// The records whose ticks are asked for, as far as they were not found.
    wanted: BTreeSet<Digest>,
    /// Whether a tile took the place of records.
    has_tiles: bool,
    maker: TileMaker,
    /// The number of the run of the lineage whose tiles are made.
    owner: usize,
}

impl Sums {
    /// Sums a range, and finds the ticks of records.
    pub(super) fn of(trace: &Trace, range: TimelineRange, wanted: BTreeSet<Digest>) -> Result<Sums, Error> {
        let width = range.width();
        let count = usize::try_from(range.to / width - range.from / width + 1).unwrap_or(usize::MAX);
        let sums = Sums { bins: vec![Tally::default(); count], ticks: BTreeMap::new() };
        let maker = TileMaker::default();
        let mut summing = Summing { trace, range, width, sums, wanted, has_tiles: false, maker, owner: 0 };
        summing.sum()?;
        summing.find_wanted()?;
        Ok(summing.sums)
    }
}

impl Summing<'_> {
    fn sum(&mut self) -> Result<(), Error> {
        let (mut next, to) = (self.range.from.max(1), self.range.to);
        // The first tick of the records that are to be read.
        let mut unread = next;
        while next <= to {
            let Some(tile) = self.tile_at(next) else {
                // Tiles begin at multiples of the least number of ticks that one has.
                let least = 1 << LEVELS[0];
                next = if self.width < least { to + 1 } else { (next / least + 1) * least };
                continue;
            };
            self.read(unread, next - 1)?;
            self.take(&tile);
            next = tile::ticks(tile.place).map_or(next, |(_, last)| last) + 1;
            unread = next;
        }
        self.read(unread, to)
    }

    /// Finds the largest tile that begins at a tick and lies in one bin of the range.
    fn tile_at(&self, tick: u64) -> Option<Tile> {
        let fits = LEVELS.into_iter().rev().filter(|level| 1 << *level <= self.width);
        let places = fits.map(|level| TilePlace { level, number: tick >> level });
        let begins = |place: &TilePlace| {
            tile::ticks(*place).is_some_and(|(first, last)| first == tick && last <= self.range.to)
        };
        places.filter(begins).find_map(|place| Tile::find(self.trace, place))
    }

    fn bin(&mut self, tick: u64) -> Option<&mut Tally> {
        let number = tick / self.width - self.range.from / self.width;
        self.sums.bins.get_mut(usize::try_from(number).ok()?)
    }

    /// Adds a tile.
    fn take(&mut self, tile: &Tile) {
        let first = tile::ticks(tile.place).map_or(0, |(first, _)| first);
        self.has_tiles = true;
        if let Some(bin) = self.bin(first) {
            bin.add_all(&tile.tally);
        }
        self.is_of(first);
        self.maker.add_tile(tile);
        self.keep();
    }

    /// Adds records.
    fn read(&mut self, from: u64, to: u64) -> Result<(), Error> {
        if from > to {
            return Ok(());
        }
        let trace = self.trace;
        trace.try_each(from, to, &mut |tick, record| {
            if let Some(bin) = self.bin(tick) {
                bin.add(tick, &record);
            }
            if self.wanted.remove(&record.id()) {
                self.sums.ticks.insert(record.id(), tick);
            }
            if trace.uses_snapshots() {
                self.is_of(tick);
                self.maker.add(tick, &record);
                self.keep();
            }
            Ok::<_, Error>(ControlFlow::Continue(()))
        })
    }

    /// Notes the run that a tick is of: a tile is of one run.
    fn is_of(&mut self, tick: u64) {
        let owner = self.trace.segment(tick);
        if owner != self.owner {
            self.maker.leave();
            self.owner = owner;
        }
    }

    /// Keeps the tiles that are complete.
    fn keep(&mut self) {
        let Some((run, _)) = self.trace.lineage().get(self.owner) else { return };
        for tile in self.maker.ready.drain(..) {
            tile.keep(&**self.trace.store(), run, Some(self.trace.size()));
        }
    }

    /// Finds the ticks of wanted records whose ticks a tile has.
    fn find_wanted(&mut self) -> Result<(), Error> {
        if !self.has_tiles {
            return Ok(());
        }
        for id in std::mem::take(&mut self.wanted) {
            if let Some(tick) = self.tick_of(&id)? {
                self.sums.ticks.insert(id, tick);
            }
        }
        Ok(())
    }

    /// Returns the tick of a record, if that is a transition of the range.
    fn tick_of(&self, id: &Digest) -> Result<Option<u64>, Error> {
        let store = self.trace.store();
        let Some(position) = store.find(id)? else { return Ok(None) };
        let mut found: Option<Entry> = None;
        store.entries(position..position + 1, &mut |_, entry| {
            found = Some(entry);
            ControlFlow::Break(())
        })?;
        let Some(entry) = found.filter(|entry| entry.hash == *id && entry.kind == Kind::Transition) else {
            return Ok(None);
        };
        let range = self.range.from.max(1)..=self.range.to;
        let Some(tick) = entry.tick.filter(|tick| range.contains(tick)) else { return Ok(None) };
        let (owner, _) = &self.trace.lineage()[self.trace.segment(tick)];
        Ok((entry.run.as_ref() == Some(owner)).then_some(tick))
    }
}
