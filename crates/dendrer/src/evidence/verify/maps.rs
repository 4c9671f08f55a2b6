//! Maps held against the entries of a log: of a store each map is computed again, of a bundle its path is.
//!
//! Rule: a map that counts other records than the log has is never used; test `a_false_map_is_tampered`.

use std::collections::{BTreeMap, BTreeSet};

use dendrer_object::bundle::LogItem;
use dendrer_object::map::{BundleMap, LogCount, LogMap, RunCount, RunPath};
use dendrer_object::record::{Entry, Kind, Record};
use dendrer_object::{Code, Digest, RunName};

use super::Checker;
use super::facts::{MapCounts, MapFact, MissingRecords};
use crate::evidence::bundle::Opened;
use crate::run::trace::Trace;

/// The entries of a log, counted, and what each map in it must be.
#[derive(Debug, Default)]
pub(super) struct Maps {
    count: LogCount,
    due: BTreeMap<u64, LogMap>,
    /// Whether an entry could not be read: then no map can be computed.
    is_blind: bool,
}

impl Maps {
    /// Takes the next entry.
    pub(super) fn take(&mut self, entry: &Entry) {
        if entry.kind == Kind::Map && !self.is_blind {
            self.due.insert(self.count.size(), self.count.map());
        }
        self.count.take(entry);
    }

    /// Passes by an entry that cannot be read.
    pub(super) fn miss(&mut self) {
        self.is_blind = true;
    }

    /// Whether a map is what it must be, as far as that is known.
    fn holds(&self, position: u64, map: Option<LogMap>) -> bool {
        self.due.get(&position).is_none_or(|due| Some(*due) == map)
    }
}

/// The entries of a bundle around its map.
struct Shown {
    /// Those before the map.
    count: LogCount,
    /// The records that begin runs.
    begins: BTreeMap<RunName, (u64, Digest)>,
    /// The runs with records after the map.
    later: BTreeSet<RunName>,
    /// Whether entries after the map are left out.
    hides: bool,
}

impl Shown {
    fn of(opened: &Opened, map: u64) -> Shown {
        let mut shown = Shown {
            count: LogCount::default(),
            begins: BTreeMap::new(),
            later: BTreeSet::new(),
            hides: false,
        };
        for (position, entry) in opened.bundle.positions() {
            match &entry.run {
                Some(run) if position > map => drop(shown.later.insert(run.clone())),
                _ if position < map => shown.count.take(entry),
                _ => {}
            }
            if let (Some(run), Kind::Run) = (&entry.run, entry.kind) {
                shown.begins.insert(run.clone(), (position, entry.hash));
            }
        }
        let mut next = 0;
        for item in &opened.bundle.log {
            next += if let LogItem::Omitted { count, .. } = item { *count } else { 1 };
            shown.hides |= matches!(item, LogItem::Omitted { .. }) && next > map;
        }
        shown
    }

    /// Returns how many records of a run are missing; a sentence if the map is false.
    fn missing(&self, run: &RunName, leaf: &RunCount) -> Result<MissingRecords, &'static str> {
        if self.begins.get(run).is_some_and(|(_, begin)| *begin != leaf.begin) {
            return Err("it has another begin than the map says");
        }
        let Some(here) = self.count.run(run) else {
            let RunCount { transitions, refusals, ends, erasures, .. } = *leaf;
            return Ok(MissingRecords { transitions, refusals, ends, erasures });
        };
        let less = |counted: u64, here: u64| {
            counted.checked_sub(here).ok_or("it has more records than the map counts")
        };
        let missing = MissingRecords {
            transitions: less(leaf.transitions, here.transitions)?,
            refusals: less(leaf.refusals, here.refusals)?,
            ends: less(leaf.ends, here.ends)?,
            erasures: less(leaf.erasures, here.erasures)?,
        };
        match missing.transitions == 0 && here.head != leaf.head {
            true => Err("it ends in another record than the map says"),
            false => Ok(missing),
        }
    }
}

impl Checker<'_> {
    /// Compares a map with the one that the entries give.
    pub(super) fn check_map(&mut self, position: u64, entry: &Entry, record: Option<&Record>) {
        let Some(record) = record.filter(|_| entry.kind == Kind::Map) else { return };
        let is_closed = record.body().fields().iter().any(|field| record.body().text(field).is_none());
        let map = LogMap::read(&record.content());
        // A value that was withheld is reported as that.
        if is_closed || self.maps.holds(position, map) && map.is_some_and(|map| map.size == position + 1) {
            return;
        }
        let sides =
            map.zip(self.maps.due.get(&position)).map(|(map, due)| (map.root.short(), due.root.short()));
        let message = "a map counts other records than the log has".to_owned();
        self.found(Code::E0316, Some((position, entry)), sides, message);
    }

    /// Holds the map of a bundle against its entries; it then decides whether the runs that were asked about are whole.
    pub(super) fn judge_map(&mut self, opened: &Opened, runs: &[RunName]) {
        let Some(line) = &opened.bundle.map else { return };
        let mut entries = opened.bundle.positions();
        let Some((position, entry)) =
            entries.find(|(_, entry)| entry.hash == line.map && entry.kind == Kind::Map)
        else {
            let message = "the map that the bundle names is not in it".to_owned();
            return self.found(Code::E0316, None, Some((line.map.short(), "none".to_owned())), message);
        };
        // A record that did not open, or has other values than those of a map, was reported.
        let Some(record) = opened.store.get(position).ok().flatten() else { return };
        let Some(map) = LogMap::read(&record.content()).filter(|map| map.size == position + 1) else {
            return;
        };
        let shown = Shown::of(opened, position);
        let paths = self.paths(line, &map, &shown, (position, entry));
        let mut apart = Vec::new();
        for ((kind, counted), (_, here)) in map.apart.by_kind().into_iter().zip(shown.count.apart().by_kind())
        {
            match counted.count.checked_sub(here.count) {
                Some(0) if counted.newest == here.newest => {}
                Some(missing @ 1..) => apart.push((kind, missing)),
                _ => {
                    let message = format!("the map counts other records of kind {kind} than the log has");
                    self.found(Code::E0316, Some((position, entry)), None, message);
                }
            }
        }
        let counts = |run: &RunName| (run.clone(), self.counts(run, position, &paths, &shown));
        let runs = runs.iter().map(counts).collect();
        self.map = MapFact { ts: Some(record.header().ts), apart, runs };
    }

    /// Returns the runs whose paths lead to the root of a map, each with what is missing.
    fn paths<'p>(
        &mut self,
        line: &'p BundleMap,
        map: &LogMap,
        shown: &Shown,
        place: (u64, &Entry),
    ) -> BTreeMap<&'p RunName, MissingRecords> {
        let mut paths = BTreeMap::new();
        for (run, path) in &line.paths {
            let path: &RunPath = path;
            let root = path.root(run);
            let fault = match root == Some(map.root) {
                true => match shown.missing(run, &path.leaf) {
                    Ok(missing) => {
                        paths.insert(run, missing);
                        continue;
                    }
                    Err(fault) => fault,
                },
                false => "its path does not lead to the map",
            };
            let found = root.map_or_else(|| "no path".to_owned(), |root| root.short());
            let entry = Entry { run: Some(run.clone()), ..place.1.clone() };
            let sides = (root != Some(map.root)).then(|| (map.root.short(), found));
            self.found(Code::E0316, Some((place.0, &entry)), sides, fault.to_owned());
        }
        paths
    }

    /// Returns the counts of a run and of its parents in a map.
    fn counts(
        &self,
        run: &RunName,
        map: u64,
        paths: &BTreeMap<&RunName, MissingRecords>,
        shown: &Shown,
    ) -> MapCounts {
        let is_later = shown.hides || shown.later.contains(run);
        let Some(own) = paths.get(run).copied() else {
            let begin = shown.begins.get(run).map(|(position, _)| *position);
            return if begin > Some(map) { MapCounts::Older } else { MapCounts::Nothing };
        };
        if is_later && own == MissingRecords::default() {
            return MapCounts::Older;
        }
        let lineage = Trace::open(&self.store, run).map(|trace| trace.lineage().to_vec()).unwrap_or_default();
        let mut beside_parents = 0;
        for (parent, _) in lineage.iter().filter(|(owner, _)| owner != run) {
            let Some(missing) = paths.get(parent) else { return MapCounts::Nothing };
            beside_parents += missing.refusals;
        }
        MapCounts::Missing { own, beside_parents }
    }
}
