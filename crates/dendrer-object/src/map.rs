//! Maps of a log: how many records each run has, so that a bundle of one run can be seen to be whole.
//!
//! A record of kind `map` has the digest of the object from the name of each run to its [`RunCount`]; a bundle has that record and
//! the path to each of its runs. Both are computed from the entries of the log.
//!
//! Rule: two logs with equal entries have equal maps, however they were counted; test `a_map_is_that_of_a_slow_count`.

use std::collections::BTreeMap;
use std::fmt;

use crate::digest::Digest;
use crate::name::RunName;
use crate::record::{Entry, Kind};
use crate::value::object::path::{DigestObject, digests_of_alike, digests_of_texts, root_of_path};
use crate::value::{Object, Value};

pub use crate::value::object::path::PathNode;

/// The records of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCount {
    /// The id of the record that begins it.
    pub begin: Digest,
    /// The id of its newest transition; of the record that begins it for a run without transitions.
    pub head: Digest,
    /// The number of its own transitions.
    pub transitions: u64,
    /// The number of its refusals.
    pub refusals: u64,
    /// The number of records that close it.
    pub ends: u64,
    /// The number of erasures in it.
    pub erasures: u64,
}

/// The records of one kind that belong to no run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KindCount {
    /// Their number.
    pub count: u64,
    /// The id of the newest one.
    pub newest: Option<Digest>,
}

/// The content of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogMap {
    /// The size of the log whose last leaf the map is.
    pub size: u64,
    /// The digest of the object from the name of each run to its [`RunCount`].
    pub root: Digest,
    /// The records of no run, by kind.
    pub apart: ApartCounts,
}

/// The counts of records that belong to no run, and that each bundle has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApartCounts {
    /// Erasures.
    pub erase: KindCount,
    /// Keys.
    pub key: KindCount,
    /// Registrations.
    pub register: KindCount,
}

/// A run in a map, with the path that proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPath {
    /// The records of the run.
    pub leaf: RunCount,
    /// The nodes from the root down.
    pub nodes: Vec<PathNode>,
}

/// The map that a bundle names, with the paths to its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleMap {
    /// The id of the record.
    pub map: Digest,
    /// The paths.
    pub paths: BTreeMap<RunName, RunPath>,
}

impl RunCount {
    fn begin(entry: &Entry) -> RunCount {
        let (begin, head) = (entry.hash, entry.hash);
        RunCount { begin, head, transitions: 0, refusals: 0, ends: 0, erasures: 0 }
    }

    /// Takes a later record of the run.
    fn add(&mut self, entry: &Entry) {
        match entry.kind {
            Kind::Transition => {
                self.head = entry.hash;
                self.transitions += 1;
            }
            Kind::Refusal => self.refusals += 1,
            Kind::End => self.ends += 1,
            Kind::Erase => self.erasures += 1,
            Kind::Run | Kind::Register | Kind::Key | Kind::Map => {}
        }
    }

    /// Returns the leaf of the run.
    pub fn to_value(&self) -> Value {
        Value::record([
            ("begin", Value::from(self.begin)),
            ("ends", Value::from(self.ends)),
            ("erasures", Value::from(self.erasures)),
            ("head", Value::from(self.head)),
            ("refusals", Value::from(self.refusals)),
            ("transitions", Value::from(self.transitions)),
        ])
    }

    fn read(value: &Value) -> Option<RunCount> {
        let leaf = value.as_object().filter(|leaf| leaf.len() == 6)?;
        let (id, count) = (|name| digest(leaf, name), |name| leaf.get(name)?.as_u64());
        Some(RunCount {
            begin: id("begin")?,
            head: id("head")?,
            transitions: count("transitions")?,
            refusals: count("refusals")?,
            ends: count("ends")?,
            erasures: count("erasures")?,
        })
    }
}

impl KindCount {
    fn add(&mut self, id: Digest) {
        *self = KindCount { count: self.count + 1, newest: Some(id) };
    }

    fn to_value(self) -> Value {
        Value::record([("count", Value::from(self.count)), ("newest", Value::from(self.newest))])
    }

    fn read(value: Option<&Value>) -> Option<KindCount> {
        let object = value?.as_object().filter(|object| object.len() == 2)?;
        let newest = match object.get("newest")? {
            Value::Null => None,
            _ => Some(digest(object, "newest")?),
        };
        let count = object.get("count")?.as_u64()?;
        ((count == 0) == newest.is_none()).then_some(KindCount { count, newest })
    }
}

impl ApartCounts {
    /// Takes a record that belongs to no run.
    pub fn add(&mut self, entry: &Entry) {
        match entry.kind {
            Kind::Erase => self.erase.add(entry.hash),
            Kind::Key => self.key.add(entry.hash),
            Kind::Register => self.register.add(entry.hash),
            Kind::Run | Kind::Transition | Kind::Refusal | Kind::End | Kind::Map => {}
        }
    }

    /// Lists the counts by kind.
    pub fn by_kind(&self) -> [(Kind, KindCount); 3] {
        [(Kind::Erase, self.erase), (Kind::Key, self.key), (Kind::Register, self.register)]
    }
}

impl LogMap {
    /// Returns the content of the record.
    pub fn content(&self) -> Value {
        let ApartCounts { erase, key, register } = self.apart;
        Value::record([
            ("erase", erase.to_value()),
            ("key", key.to_value()),
            ("register", register.to_value()),
            ("root", Value::from(self.root)),
            ("size", Value::from(self.size)),
        ])
    }

    /// Reads the content of a record; `None` for any other content.
    pub fn read(content: &Value) -> Option<LogMap> {
        let content = content.as_object().filter(|content| content.len() == 5)?;
        let count = |name| KindCount::read(content.get(name));
        let apart = ApartCounts { erase: count("erase")?, key: count("key")?, register: count("register")? };
        Some(LogMap { size: content.get("size")?.as_u64()?, root: digest(content, "root")?, apart })
    }
}

impl RunPath {
    /// Returns the root that the path leads to; `None` for a path to another run.
    pub fn root(&self, run: &RunName) -> Option<Digest> {
        root_of_path(run.as_str(), self.leaf.to_value().digest(), &self.nodes)
    }

    fn to_value(&self) -> Value {
        let node = |node: &PathNode| {
            let hash = |hash: &Option<Digest>| Value::from(hash.map(|hash| hash.base64url()));
            Value::record([
                ("bitmap", Value::from(u64::from(node.bitmap))),
                ("hashes", Value::array(node.hashes.iter().map(hash))),
            ])
        };
        let nodes = Value::array(self.nodes.iter().map(node));
        Value::record([("leaf", self.leaf.to_value()), ("nodes", nodes)])
    }

    fn read(value: &Value) -> Option<RunPath> {
        let node = |value: &Value| {
            let node = value.as_object().filter(|node| node.len() == 2)?;
            let hash = |hash: &Value| match hash {
                Value::Null => Some(None),
                _ => Digest::from_base64url(hash.as_str()?).map(Some),
            };
            let hashes = node.get("hashes")?.as_array()?.iter().map(hash).collect::<Option<_>>()?;
            Some(PathNode { bitmap: u16::try_from(node.get("bitmap")?.as_u64()?).ok()?, hashes })
        };
        let path = value.as_object().filter(|path| path.len() == 2)?;
        let nodes = path.get("nodes")?.as_array()?.iter().map(node).collect::<Option<_>>()?;
        Some(RunPath { leaf: RunCount::read(path.get("leaf")?)?, nodes })
    }
}

impl BundleMap {
    /// Returns the line of the bundle.
    pub fn to_value(&self) -> Value {
        let paths = self.paths.iter().map(|(run, path)| (run.as_str(), path.to_value()));
        Value::record([("map", Value::from(self.map)), ("paths", Value::record(paths))])
    }

    /// Reads the line of a bundle; `None` if it is another line.
    pub fn read(value: &Value) -> Option<BundleMap> {
        let line = value.as_object().filter(|line| line.len() == 2)?;
        let path = |(run, path): (_, &Value)| {
            let run: &std::sync::Arc<str> = run;
            Some((run.parse().ok()?, RunPath::read(path)?))
        };
        let paths = line.get("paths")?.as_object()?.iter().map(path).collect::<Option<_>>()?;
        Some(BundleMap { map: digest(line, "map")?, paths })
    }
}

/// How many leaves are hashed together, so that what they are made of stays in near memory.
const TOGETHER: usize = 1024;

/// Returns the digests of leaves: of each what [`RunCount::to_value`] has.
fn leaf_digests(counts: &[RunCount]) -> Vec<Digest> {
    let ids = |of: fn(&RunCount) -> Digest| digests_of_texts(&counts.iter().map(of).collect::<Vec<_>>());
    let mut known: BTreeMap<u64, Digest> = BTreeMap::new();
    let mut numbers = |of: fn(&RunCount) -> u64| -> Vec<Digest> {
        let mut digest = |number| *known.entry(number).or_insert_with(|| Value::from(number).digest());
        counts.iter().map(|run| digest(of(run))).collect()
    };
    let columns = [
        ids(|run| run.begin),
        numbers(|run| run.ends),
        numbers(|run| run.erasures),
        ids(|run| run.head),
        numbers(|run| run.refusals),
        numbers(|run| run.transitions),
    ];
    digests_of_alike(&["begin", "ends", "erasures", "head", "refusals", "transitions"], &columns)
}

fn digest(object: &Object, name: &str) -> Option<Digest> {
    object.get(name)?.as_str()?.parse().ok()
}

/// The records of a log, counted by run and kind while its entries are taken in order.
#[derive(Default)]
pub struct LogCount {
    size: u64,
    apart: ApartCounts,
    runs: Vec<(RunName, RunCount, bool)>,
    places: BTreeMap<RunName, usize>,
    /// The run of the last entry: the next one is often of the same run.
    last: usize,
    /// The runs that are not in the trie as they are now.
    changed: Vec<usize>,
    trie: DigestObject,
}

impl fmt::Debug for LogCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogCount")
            .field("size", &self.size)
            .field("runs", &self.runs.len())
            .finish_non_exhaustive()
    }
}

impl LogCount {
    /// The number of entries that were taken.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes the next entry.
    pub fn take(&mut self, entry: &Entry) {
        self.size += 1;
        let Some(run) = &entry.run else { return self.apart.add(entry) };
        let at = match self.runs.get(self.last) {
            Some((name, ..)) if name == run => self.last,
            _ => self.places.get(run).copied().unwrap_or_else(|| self.begin(run, entry)),
        };
        self.last = at;
        let (_, count, is_changed) = &mut self.runs[at];
        count.add(entry);
        if !std::mem::replace(is_changed, true) {
            self.changed.push(at);
        }
    }

    fn begin(&mut self, run: &RunName, entry: &Entry) -> usize {
        let at = self.runs.len();
        self.places.insert(run.clone(), at);
        self.runs.push((run.clone(), RunCount::begin(entry), false));
        at
    }

    /// Returns the map that is the next leaf of the log.
    pub fn map(&mut self) -> LogMap {
        LogMap { size: self.size + 1, root: self.trie().digest(), apart: self.apart }
    }

    /// Returns the records of a run; `None` if no record of it was taken.
    pub fn run(&self, run: &RunName) -> Option<RunCount> {
        Some(self.runs[*self.places.get(run)?].1)
    }

    /// Returns the records of no run.
    pub fn apart(&self) -> ApartCounts {
        self.apart
    }

    /// Returns a run with its path; `None` if no record of it was taken.
    pub fn path(&mut self, run: &RunName) -> Option<RunPath> {
        let leaf = self.run(run)?;
        Some(RunPath { leaf, nodes: self.trie().path(run.as_str())? })
    }

    fn trie(&mut self) -> &DigestObject {
        let changed = std::mem::take(&mut self.changed);
        changed.iter().for_each(|at| self.runs[*at].2 = false);
        let mut leaves = Vec::with_capacity(changed.len());
        for some in changed.chunks(TOGETHER) {
            let counts: Vec<RunCount> = some.iter().map(|at| self.runs[*at].1).collect();
            let names = some.iter().map(|at| self.runs[*at].0.as_str());
            leaves.extend(names.zip(leaf_digests(&counts)));
        }
        self.trie.extend(&leaves);
        &self.trie
    }
}

#[cfg(test)]
mod tests;
