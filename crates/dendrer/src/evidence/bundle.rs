//! Bundles out of a store, and a store out of a bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, ErrorKind};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use dendrer_object::bundle::{Bundle, LogItem, RecordFault, Sealed, Writer};
use dendrer_object::map::{BundleMap, LogCount, LogMap};
use dendrer_object::merkle::{cover, from_leaves, leaf_hash};
use dendrer_object::note::{SignedNote, VerifierKey};
use dendrer_object::record::{Entry, Kind, Record};
use dendrer_object::{Code, Digest, Pointer, RunName, StoreId};
use dendrer_store::memory::Packed;
use dendrer_store::{Memory, Store, StoreInfo, TreeHead};

use crate::error::Error;
use crate::evidence::file_kind::{LOOKED_AT, file_kind};
use crate::evidence::page::{self, PageLines};
use crate::run::lost::Lost;
use crate::run::trace::{ReadHandle, Trace, no_run, read};
use crate::run::unfinished;

/// A bundle that was read: a store of what opened, and what did not.
#[derive(Debug)]
pub struct Opened {
    /// The file, for messages.
    pub path: PathBuf,
    /// The bundle as its lines say it, its records taken out.
    pub bundle: Bundle,
    /// The records that opened, at their positions in their store's log.
    pub store: Arc<dyn Store>,
    /// The records that did not.
    pub faults: Vec<BundleFault>,
    /// The root that the entries and subtrees of the bundle give.
    pub root: Option<Digest>,
    /// The runs that it is of, whatever runs it names.
    pub runs: Vec<RunName>,
    /// Whether it is in a page, whose words it does not prove.
    pub is_page: bool,
    /// The answer to what every reader asks of it, once it was asked.
    pub(super) opening: OnceLock<Opening>,
}

/// The facts that every reader of a bundle must know before anything is read in it.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    /// The first fault; `None` if nothing speaks against it.
    pub fault: Option<OpeningFault>,
    /// The runs of which records are or may be missing.
    pub partial: BTreeMap<RunName, Lost>,
}

/// A fault of a bundle for which answers are refused.
#[derive(Debug, Clone)]
pub struct OpeningFault {
    /// The code.
    pub code: Code,
    /// The fault in one sentence.
    pub message: String,
    /// The run that it concerns.
    pub run: Option<RunName>,
    /// The tick that it concerns.
    pub tick: Option<u64>,
}

impl Opened {
    /// The bundle as one that is in a page.
    #[must_use]
    pub fn in_page(self) -> Opened {
        Opened { is_page: true, ..self }
    }

    /// The number of records of the log that the bundle leaves out.
    pub(crate) fn left_out(&self) -> u64 {
        self.bundle.size.saturating_sub(self.bundle.positions().count() as u64)
    }
}

/// Returns the runs that a bundle is of: those that it names, and any other that begins in it and that none of these rests on.
/// What a bundle names is covered by no digest, so it cannot take a run out of what is looked at.
fn runs_of(bundle: &Bundle, store: &Arc<dyn Store>) -> Vec<RunName> {
    let lineage = |run: &RunName| -> Vec<RunName> {
        let trace = Trace::open(store, run);
        trace
            .map_or_else(|_| Vec::new(), |trace| trace.lineage().iter().map(|(run, _)| run.clone()).collect())
    };
    let mut known: BTreeSet<RunName> = bundle.runs.iter().flat_map(lineage).collect();
    known.extend(bundle.runs.iter().cloned());
    let begun = bundle.positions().filter(|(_, entry)| entry.kind == Kind::Run);
    let begun: Vec<&RunName> = begun.filter_map(|(_, entry)| entry.run.as_ref()).collect();
    let mut others = Vec::new();
    // A fork begins behind what it rests on.
    for run in begun.into_iter().rev() {
        if known.insert(run.clone()) {
            known.extend(lineage(run));
            others.push(run.clone());
        }
    }
    bundle.runs.iter().cloned().chain(others.into_iter().rev()).collect()
}

/// A record of a bundle that did not open.
#[derive(Debug, Clone)]
pub struct BundleFault {
    /// Its position in the log.
    pub position: u64,
    /// The entry that names it.
    pub entry: Entry,
    /// What is wrong with it.
    pub why: RecordFault,
}

/// Reads a bundle from what holds its lines, or from a page that it is in, and no more of it than its records. Damage inside records does not stop it: it is
/// listed, and the rest is readable.
pub fn open(path: PathBuf, mut text: impl BufRead) -> Result<Opened, Error> {
    let is_page = page::is_page(&mut text)?;
    let mut bundle = match is_page {
        true => {
            let mut lines = PageLines::new(text)?;
            Bundle::read(&mut |line, most| lines.next(line, most))?
        }
        false => {
            let begin: Vec<u8> = text.fill_buf()?.iter().copied().take(LOOKED_AT).collect();
            Bundle::read(&mut |line, most| Ok::<_, Error>(read_line(&mut text, line, most)?))
                .map_err(|error| other_file(error, &begin))?
        }
    };
    let key: VerifierKey = bundle.key.parse()?;
    let root = bundle.root();
    let tree = TreeHead { size: bundle.size, root: root.unwrap_or(Digest([0; 32])) };
    let mut store = Memory::of_parts(StoreInfo::new(bundle.store, key), tree, Vec::new());
    if root.is_some() {
        // Each record is opened against its entry, and the entries lead to the root.
        store = store.with_proven_entries();
    }
    let mut faults = Vec::new();
    // A record is held once: as it was opened, or as what it is opened from where its values share their pieces with others.
    let sealed = std::mem::take(&mut bundle.records);
    for ((position, entry), sealed) in bundle.positions().zip(sealed) {
        match sealed.open(entry, bundle.store) {
            Ok(record) => {
                let (entry, store_id) = (entry.clone(), bundle.store);
                let packed =
                    sealed.is_packed().then(|| Box::new(Shared { sealed, entry, store: store_id }) as _);
                store.hold(position, record, packed);
            }
            Err(why) => faults.push(BundleFault { position, entry: entry.clone(), why }),
        }
    }
    let store: Arc<dyn Store> = Arc::new(store);
    let runs = runs_of(&bundle, &store);
    Ok(Opened { path, bundle, store, faults, root, runs, is_page, opening: OnceLock::new() })
}

/// Names what a file looks like, if its first line is not that of a bundle.
fn other_file(error: Error, begin: &[u8]) -> Error {
    match error {
        Error::Bundle(fault) if fault.line == 1 && fault.code() == Code::E0306 => match file_kind(begin) {
            Some(looks) => Error::NotABundle { looks },
            None => fault.into(),
        },
        error => error,
    }
}

/// Reads a line, and its end. Whatever a name leads to, it is not read for ever, and what there is no room for is an error.
fn read_line(text: &mut impl BufRead, line: &mut Vec<u8>, most: usize) -> io::Result<()> {
    loop {
        let part = match text.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            part => part?,
        };
        let end = part.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
        let taken = end.unwrap_or(part.len());
        line.try_reserve(taken)?;
        line.extend_from_slice(&part[..taken]);
        text.consume(taken);
        if end.is_some() || taken == 0 || line.len() > most {
            return Ok(());
        }
    }
}

/// A record that opened, of a bundle in which a transcript that grows, say, stands once and not in every call.
#[derive(Debug)]
struct Shared {
    sealed: Sealed,
    entry: Entry,
    store: StoreId,
}

impl Packed for Shared {
    fn open(&self) -> Record {
        self.sealed.open(&self.entry, self.store).expect("it was opened before, and nothing of it changes")
    }
}

/// A bundle that is to be made of a store.
#[derive(Debug)]
pub struct Export {
    store: Arc<dyn Store>,
    /// All but the records.
    bundle: Bundle,
    /// Whether it leaves out nothing, or a map counts all of the log.
    is_counted: bool,
    /// Fields that are left out of single records, by position.
    fields: BTreeMap<u64, Vec<Pointer>>,
}

/// Plans a bundle of some runs, with the beginnings of forks, what stands beside the runs, and the records that
/// belong to the whole store. `checkpoint` must be of the log as it is now.
pub fn export(store: &impl ReadHandle, runs: &[RunName], checkpoint: &SignedNote) -> Result<Export, Error> {
    let store = store.to_handle();
    let mut keep: BTreeSet<u64> = BTreeSet::new();
    let mut named: BTreeSet<&RunName> = BTreeSet::new();
    let runs: Vec<RunName> = runs.iter().filter(|run| named.insert(run)).cloned().collect();
    for run in &runs {
        keep_run(&store, run, &mut keep)?;
    }
    let size = store.tree().size;
    let newest = newest_map(&*store)?;
    let mut counted = LogCount::default();
    let mut leaves = Vec::new();
    let mut entries = Vec::new();
    let mut hidden = None;
    // Whether the bundle leaves out anything but older maps.
    let mut leaves_out = false;
    store.entries(0..size, &mut |position, entry| {
        leaves.push(leaf_hash(&entry.text()));
        if newest.is_some_and(|map| position < map) {
            counted.take(&entry);
        }
        // A bundle of less than the run would verify, and nobody who reads it could tell.
        if entry.run.as_ref().is_some_and(|run| runs.contains(run)) && !keep.contains(&position) {
            hidden = Some((position, entry));
            return ControlFlow::Break(());
        }
        if entry.run.is_none() {
            keep.insert(position);
        }
        match keep.contains(&position) {
            true => entries.push((position, entry)),
            false => leaves_out = true,
        }
        ControlFlow::Continue(())
    })?;
    if leaves_out {
        // The counts of an older map are not those of the log as it is.
        entries.retain(|(position, entry)| entry.kind != Kind::Map || Some(*position) == newest);
    }
    if let Some((position, entry)) = hidden {
        let run = entry.run.map_or_else(String::new, |run| run.to_string());
        let what = format!("{run} is to end before record {position}, and that is one of it");
        return Err(Error::IndexDiffers { what });
    }
    let map = match newest {
        Some(position) => Some(map_of(&store, position, &runs, &mut counted)?),
        None => None,
    };
    let although = although_of(&store, &runs)?;
    let bundle = Bundle {
        store: store.info().id,
        key: store.info().key.to_string(),
        runs,
        although,
        size,
        log: log_of(entries, &leaves),
        records: Vec::new(),
        map,
        checkpoint: checkpoint.to_string(),
    };
    let is_counted = !leaves_out || newest.is_some_and(|map| map + 1 == size);
    Ok(Export { store, bundle, is_counted, fields: BTreeMap::new() })
}

/// Returns the places that foreign runs lack although others may have a value of them: so said the bundle that each is from.
fn although_of(store: &Arc<dyn Store>, runs: &[RunName]) -> Result<Vec<String>, Error> {
    let mut places = Vec::new();
    for run in runs {
        let of = unfinished::although(Trace::open(store, run)?.start());
        places.extend(of.into_iter().filter(|place| !places.contains(place)).collect::<Vec<_>>());
    }
    Ok(places)
}

/// Returns the log of a bundle: the entries that it has, and the hashes of subtrees for the others.
fn log_of(entries: Vec<(u64, Entry)>, leaves: &[Digest]) -> Vec<LogItem> {
    let (node, mut log, mut next) = (from_leaves(leaves), Vec::new(), 0);
    let omit = |log: &mut Vec<LogItem>, from: u64, to: u64| {
        if from < to {
            let hashes = cover(from..to).map(|subtree| node(subtree).expect("the leaves are here")).collect();
            log.push(LogItem::Omitted { count: to - from, hashes });
        }
    };
    for (position, entry) in entries {
        omit(&mut log, next, position);
        log.push(LogItem::Entry(entry));
        next = position + 1;
    }
    omit(&mut log, next, leaves.len() as u64);
    log
}

/// Finds the newest map of a log. As a rule it is the last record.
fn newest_map(store: &dyn Store) -> Result<Option<u64>, Error> {
    for begin in [store.tree().size.saturating_sub(1), 0] {
        let (mut newest, mut from) = (None, begin);
        loop {
            let batch = store.beside_runs(from, 1024)?;
            let Some((last, _)) = batch.last() else { break };
            from = last + 1;
            newest = batch.iter().rev().find(|(_, kind)| *kind == Kind::Map).map(|(at, _)| *at).or(newest);
        }
        if newest.is_some() {
            return Ok(newest);
        }
    }
    Ok(None)
}

/// Returns the line of a map with the paths to runs and to their parents. A map that counts other records than the log has
/// would make the bundle TAMPERED.
fn map_of(
    store: &Arc<dyn Store>,
    position: u64,
    runs: &[RunName],
    counted: &mut LogCount,
) -> Result<BundleMap, Error> {
    let record = read(&**store, position)?;
    if record.header().kind != Kind::Map || LogMap::read(&record.content()) != Some(counted.map()) {
        return Err(Error::MapFalse { position });
    }
    let mut paths = BTreeMap::new();
    for run in runs {
        let trace = Trace::open(store, run)?;
        for (owner, _) in trace.lineage() {
            paths.extend(counted.path(owner).map(|path| (owner.clone(), path)));
        }
    }
    Ok(BundleMap { map: record.id(), paths })
}

impl Export {
    /// Whether the bundle leaves out nothing, or a map counts all of the log.
    pub fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// Leaves out fields of single records, by position, and lists in the header those that stay although they may have a value of them.
    #[must_use]
    pub fn without_fields(mut self, fields: BTreeMap<u64, Vec<Pointer>>, although: Vec<String>) -> Self {
        self.bundle.although.extend(although);
        Export { fields, ..self }
    }

    /// The positions of the records that the bundle will hold.
    pub fn positions(&self) -> BTreeSet<u64> {
        self.bundle.positions().map(|(position, _)| position).collect()
    }

    /// The runs that it is made for.
    pub fn runs(&self) -> &[RunName] {
        &self.bundle.runs
    }

    /// Writes the bundle, a line at a time. Of the records one is held; those with large values are read twice, since the
    /// pieces of these stand behind all records.
    pub fn write<E: From<Error>>(&self, sink: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        for line in self.bundle.head_lines() {
            sink(&line)?;
        }
        let mut large = Vec::new();
        let mut writer = Writer::new(&dendrer_store::split);
        for (position, _) in self.bundle.positions() {
            let sealed = self.sealed(position)?;
            sink(&writer.record(&sealed, &mut |_| ()))?;
            if sealed.has_large() {
                large.push(position);
            }
        }
        let mut writer = Writer::new(&dendrer_store::split);
        for position in large {
            let mut written = Ok(());
            writer.record(&self.sealed(position)?, &mut |piece| {
                if written.is_ok() {
                    written = sink(&Writer::blob(piece));
                }
            });
            written?;
        }
        sink(&self.bundle.last_lines())
    }

    /// As [`Export::write`], into memory.
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        self.write(&mut |line| {
            text.extend_from_slice(line);
            Ok::<_, Error>(())
        })?;
        Ok(text)
    }

    fn sealed(&self, position: u64) -> Result<Sealed, Error> {
        let record = read(&*self.store, position)?;
        let withheld = self.fields.get(&position).map_or(&[][..], Vec::as_slice);
        let touched = record
            .body()
            .fields()
            .iter()
            .any(|field| withheld.iter().any(|place| place.contains(&field.pointer)));
        Ok(if touched { Sealed::of(&record.without(withheld)) } else { Sealed::of(&record) })
    }
}

/// The positions of the records of a bundle of some runs.
pub(crate) fn positions(store: &impl ReadHandle, runs: &[RunName]) -> Result<BTreeSet<u64>, Error> {
    let store = store.to_handle();
    let mut keep = BTreeSet::new();
    runs.iter().try_for_each(|run| keep_run(&store, run, &mut keep))?;
    store.entries(0..store.tree().size, &mut |position, entry| {
        keep.extend((entry.run.is_none() && entry.kind != Kind::Run).then_some(position));
        ControlFlow::Continue(())
    })?;
    Ok(keep)
}

/// Collects the positions of everything a reader of the run needs.
fn keep_run(store: &Arc<dyn Store>, run: &RunName, keep: &mut BTreeSet<u64>) -> Result<(), Error> {
    let Some(summary) = store.run(run)? else { return Err(no_run(&**store, run)) };
    keep.insert(summary.begin);
    let trace = Trace::open(store, run)?;
    trace.each_record(1, trace.tip(), &mut |record| {
        keep.extend(store.find(&record.id())?);
        Ok(())
    })?;
    for (owner, _) in trace.lineage() {
        keep.extend(store.run(owner)?.map(|owner| owner.begin));
    }
    let mut from = 0;
    loop {
        let batch = store.beside(run, from, 1024)?;
        let Some((last, _)) = batch.last() else { return Ok(()) };
        from = last + 1;
        keep.extend(batch.iter().map(|(position, _)| *position));
    }
}
