//! A log in the hands of a forger: its leaves, what is computed again when they change, and how it is handed over.

use std::collections::BTreeMap;

use dendrer_object::bundle::{Bundle, LogItem, Sealed};
use dendrer_object::map::{BundleMap, LogCount, LogMap};
use dendrer_object::merkle::{Peaks, cover, from_leaves, leaf_hash};
use dendrer_object::note::{Checkpoint, SignedNote, SigningKey};
use dendrer_object::record::{Body, Entry, Header, Kind, Link, Seed, cut};
use dendrer_object::{Digest, Record, RunName, Value};
use dendrer_store::{Memory, Shared, StoreInfo, TreeHead};

/// The means of a forger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// Changes bytes and computes nothing again.
    Edits,
    /// Computes again what takes no key: digests, ids, links, entries, maps and paths.
    Seals,
    /// Signs as well, with the key of the log.
    Signs,
}

/// A leaf of a log, with its record.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// The entry.
    pub entry: Entry,
    /// The record; the entry may be that of another one.
    pub record: Record,
    /// The id by which other records name it until the log is sealed.
    pub named: Digest,
    /// Whether a bundle has it. The other leaves are left out.
    pub is_here: bool,
}

/// A log in the hands of a forger.
#[derive(Debug, Clone)]
pub struct ForgedLog {
    /// The store, and the key that it names.
    pub info: StoreInfo,
    /// The runs that the header of a bundle names.
    pub runs: Vec<RunName>,
    /// The places that stay, as the header names them.
    pub although: Vec<String>,
    /// The leaves in order.
    pub leaves: Vec<Leaf>,
    /// The map that a bundle names.
    pub map: Option<BundleMap>,
    /// The signed checkpoint, as text.
    pub checkpoint: String,
    /// Whether maps stay as they are when the log is sealed.
    pub has_own_map: bool,
}

impl ForgedLog {
    /// Takes a log with a bundle of it. The forger has no more values of a record of the bundle than the bundle.
    pub fn of(info: &StoreInfo, records: &[Record], bundle: &Bundle) -> ForgedLog {
        let opened = |((position, entry), sealed): ((u64, &Entry), &Sealed)| {
            (position, sealed.open(entry, info.id).expect("an honest record"))
        };
        let here: BTreeMap<u64, Record> = bundle.positions().zip(&bundle.records).map(opened).collect();
        let leaf = |(position, record): (u64, &Record)| Leaf {
            entry: record.log_entry(),
            record: here.get(&position).unwrap_or(record).clone(),
            named: record.id(),
            is_here: here.contains_key(&position),
        };
        ForgedLog {
            info: info.clone(),
            runs: bundle.runs.clone(),
            although: bundle.although.clone(),
            leaves: (0..bundle.size).zip(records).map(leaf).collect(),
            map: bundle.map.clone(),
            checkpoint: bundle.checkpoint.clone(),
            has_own_map: false,
        }
    }

    /// Makes again what follows from the records: ids, `prev`, `head`, links, entries, the content of maps, and paths.
    pub fn seal(&mut self) {
        let mut ids: BTreeMap<Digest, Digest> = BTreeMap::new();
        let mut count = LogCount::default();
        let mut paths = BTreeMap::new();
        let named = self.map.as_ref().map(|map| map.map);
        for leaf in &mut self.leaves {
            let now = |id: Digest| ids.get(&id).copied().unwrap_or(id);
            let old = leaf.record.header();
            let mut links: Vec<Link> =
                old.links.iter().map(|link| Link { hash: now(link.hash), ..*link }).collect();
            links.sort();
            links.dedup();
            let header = Header { prev: old.prev.map(now), head: old.head.map(now), links, ..old.clone() };
            let counted = (old.kind == Kind::Map && !self.has_own_map).then(|| count.map());
            let body = match counted.filter(|map| LogMap::read(&leaf.record.content()) != Some(*map)) {
                Some(map) => body_of(&map.content(), 7),
                None => leaf.record.body().clone(),
            };
            leaf.record = Record::seal(header, body).unwrap_or_else(|_| leaf.record.clone());
            if !self.has_own_map
                && Some(leaf.named) == named
                && let Some(map) = &self.map
            {
                let again = map.paths.keys().filter_map(|run| Some((run.clone(), count.path(run)?)));
                paths = again.collect();
            }
            ids.insert(leaf.named, leaf.record.id());
            leaf.named = leaf.record.id();
            leaf.entry = leaf.record.log_entry();
            count.take(&leaf.entry);
        }
        if let Some(map) = &mut self.map {
            map.map = ids.get(&map.map).copied().unwrap_or(map.map);
            if !self.has_own_map {
                map.paths = paths;
            }
        }
    }

    /// Returns size and root of the tree over the leaves as they are.
    pub fn tree(&self) -> TreeHead {
        let mut peaks = Peaks::new();
        self.leaves.iter().for_each(|leaf| peaks.push(leaf_hash(&leaf.entry.text())));
        TreeHead { size: peaks.size(), root: peaks.root() }
    }

    /// Signs the log as it is.
    pub fn sign(&mut self, key: &SigningKey) {
        let TreeHead { size, root } = self.tree();
        let checkpoint = Checkpoint::new(&self.info.id.origin(), size, root).expect("an origin");
        self.checkpoint = checkpoint.sign(key).expect("a key of this origin").to_string();
    }

    /// Does with the log what the means allow, after it was changed.
    pub fn finish(&mut self, means: Means, key: &SigningKey) {
        if means >= Means::Seals {
            self.seal();
        }
        if means >= Means::Signs {
            self.sign(key);
        }
    }

    /// Writes the bundle.
    pub fn bundle(&self) -> Bundle {
        let hashes: Vec<Digest> = self.leaves.iter().map(|leaf| leaf_hash(&leaf.entry.text())).collect();
        let (node, size) = (from_leaves(&hashes), hashes.len());
        let mut log = Vec::new();
        let mut at = 0;
        while at < size {
            if self.leaves[at].is_here {
                log.push(LogItem::Entry(self.leaves[at].entry.clone()));
                at += 1;
                continue;
            }
            let end = (at..size).find(|next| self.leaves[*next].is_here).unwrap_or(size);
            let hashes = cover(at as u64..end as u64).filter_map(&node).collect();
            log.push(LogItem::Omitted { count: (end - at) as u64, hashes });
            at = end;
        }
        Bundle {
            store: self.info.id,
            key: self.info.key.to_string(),
            runs: self.runs.clone(),
            although: self.although.clone(),
            size: size as u64,
            log,
            records: self
                .leaves
                .iter()
                .filter(|leaf| leaf.is_here)
                .map(|leaf| Sealed::of(&leaf.record))
                .collect(),
            map: self.map.clone(),
            checkpoint: self.checkpoint.clone(),
        }
    }

    /// Returns the text of the bundle.
    pub fn text(&self) -> Vec<u8> {
        self.bundle().write(&|_| vec![0])
    }

    /// Returns the store that has these records.
    pub fn store(&self) -> Shared {
        let records = (0..).zip(self.leaves.iter().map(|leaf| leaf.record.clone())).collect();
        let note = SignedNote::parse(self.checkpoint.as_bytes()).ok();
        let memory = Memory::of_parts(self.info.clone(), self.tree(), records).with_checkpoint(note);
        Shared::new(Box::new(memory))
    }

    /// Takes a leaf out of the log, so that nothing shows that it was there: later ticks of its run move down.
    pub fn remove(&mut self, at: usize) {
        let gone = self.leaves.remove(at);
        let (id, header) = (gone.named, gone.record.header().clone());
        let is_chain = header.kind == Kind::Transition;
        for leaf in &mut self.leaves[at..] {
            let old = leaf.record.header();
            let back = |id_of: Option<Digest>| if id_of == Some(id) { header.prev } else { id_of };
            let is_later = is_chain && old.run == header.run;
            let tick = old.tick.map(|tick| if is_later { tick.saturating_sub(1) } else { tick });
            let header = Header { prev: back(old.prev), head: back(old.head), tick, ..old.clone() };
            if header != *old {
                // The number of the tick and the links are others; the id follows when the log is sealed.
                leaf.record = relinked(&leaf.record, header);
            }
        }
    }

    /// The positions of the leaves of a kind that a bundle has.
    pub fn places(&self, run: Option<&str>, kind: Kind) -> Vec<usize> {
        let is_it = |leaf: &Leaf| {
            leaf.is_here && leaf.entry.kind == kind && leaf.entry.run.as_ref().map(RunName::as_str) == run
        };
        (0..self.leaves.len()).filter(|at| is_it(&self.leaves[*at])).collect()
    }

    /// Makes the map count one record less than the log has: `hidden` is left out of the bundle, and signed all the same.
    pub fn hide_from_map(&mut self, hidden: usize) {
        (self.leaves[hidden].is_here, self.has_own_map) = (false, true);
        let mut count = LogCount::default();
        let Some(at) = self.leaves.iter().rposition(|leaf| leaf.entry.kind == Kind::Map) else { return };
        for (place, leaf) in self.leaves[..at].iter().enumerate() {
            if place != hidden {
                count.take(&leaf.entry);
            }
        }
        let map = LogMap { size: at as u64 + 1, ..count.map() };
        let leaf = &mut self.leaves[at];
        leaf.record = Record::seal(leaf.record.header().clone(), body_of(&map.content(), 9)).expect("a map");
        (leaf.entry, leaf.named) = (leaf.record.log_entry(), leaf.record.id());
        let runs: Vec<RunName> = self.map.iter().flat_map(|map| map.paths.keys().cloned()).collect();
        let paths = runs.into_iter().filter_map(|run| Some((run.clone(), count.path(&run)?))).collect();
        self.map = Some(BundleMap { map: self.leaves[at].named, paths });
    }
}

/// Commits content with a seed that follows from a number.
pub(super) fn body_of(content: &Value, seed: u8) -> Body {
    let fields = cut(content.as_object().expect("content is an object"));
    Body::commit(fields, Seed([seed; 16])).expect("small fields")
}

/// The record with another header; the body stays. A header that its kind cannot have leaves the record as it is.
pub(super) fn relinked(record: &Record, header: Header) -> Record {
    Record::seal(header, record.body().clone()).unwrap_or_else(|_| record.clone())
}

/// The record with other content.
pub(super) fn refilled(record: &Record, content: &Value, seed: u8) -> Record {
    Record::seal(record.header().clone(), body_of(content, seed)).unwrap_or_else(|_| record.clone())
}
