//! Bundles out of a store, and a store out of a bundle.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;

use dendrer_object::bundle::{Bundle, LogItem, RecordFault, Sealed};
use dendrer_object::merkle::{cover, from_leaves, leaf_hash};
use dendrer_object::note::{SignedNote, VerifierKey};
use dendrer_object::record::{Entry, Kind};
use dendrer_object::{Digest, RunName};
use dendrer_store::{Memory, Store, StoreInfo, TreeHead};

use crate::error::Error;
use crate::trace::{Trace, no_run, read};

/// A bundle that was read: a store of what opened, and what did not.
#[derive(Debug)]
pub struct Opened {
    /// The file, for messages.
    pub path: PathBuf,
    /// The bundle as its lines say it.
    pub bundle: Bundle,
    /// The records that opened, at their positions in their store's log.
    pub store: Memory,
    /// The records that did not.
    pub faults: Vec<Fault>,
    /// The root that the entries and subtrees of the bundle give.
    pub root: Option<Digest>,
    /// The runs that it is of, whatever runs it names.
    pub runs: Vec<RunName>,
}

/// Returns the runs that a bundle is of: those that it names, and any other that begins in it and that none of these rests on.
/// What a bundle names is covered by no digest, so it cannot take a run out of what is looked at.
fn runs_of(bundle: &Bundle, store: &Memory) -> Vec<RunName> {
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
pub struct Fault {
    /// Its position in the log.
    pub position: u64,
    /// The entry that names it.
    pub entry: Entry,
    /// What is wrong with it.
    pub why: RecordFault,
}

/// Reads a bundle. Damage inside records does not stop it: it is listed, and the rest is readable.
pub fn open(path: PathBuf, text: &[u8]) -> Result<Opened, Error> {
    let bundle = Bundle::parse(text)?;
    let key: VerifierKey = bundle.key.parse()?;
    let mut records = Vec::new();
    let mut faults = Vec::new();
    for ((position, entry), sealed) in bundle.positions().zip(&bundle.records) {
        match sealed.open(entry, bundle.store) {
            Ok(record) => records.push((position, record)),
            Err(why) => faults.push(Fault { position, entry: entry.clone(), why }),
        }
    }
    let root = bundle.root();
    let tree = TreeHead { size: bundle.size, root: root.unwrap_or(Digest([0; 32])) };
    let store = Memory::of_parts(StoreInfo::new(bundle.store, key), tree, records);
    let runs = runs_of(&bundle, &store);
    Ok(Opened { path, bundle, store, faults, root, runs })
}

/// Makes a bundle of some runs, with the beginnings of forks, what stands beside the runs, and the records that
/// belong to the whole store. `checkpoint` must be of the log as it is now.
pub fn export(store: &dyn Store, runs: &[RunName], checkpoint: &SignedNote) -> Result<Bundle, Error> {
    let mut keep: BTreeSet<u64> = BTreeSet::new();
    for run in runs {
        keep_run(store, run, &mut keep)?;
    }
    let size = store.tree().size;
    let mut leaves = Vec::new();
    let mut entries = Vec::new();
    store.entries(0..size, &mut |position, entry| {
        leaves.push(leaf_hash(&entry.text()));
        if entry.run.is_none() && entry.kind != Kind::Run {
            keep.insert(position);
        }
        if keep.contains(&position) {
            entries.push((position, entry));
        }
        ControlFlow::Continue(())
    })?;
    let node = from_leaves(&leaves);
    let mut bundle = Bundle {
        store: store.info().id,
        key: store.info().key.to_string(),
        runs: runs.to_vec(),
        size,
        log: Vec::new(),
        records: Vec::new(),
        checkpoint: checkpoint.to_string(),
    };
    let mut next = 0;
    let omit = |log: &mut Vec<LogItem>, from: u64, to: u64| {
        if from < to {
            let hashes = cover(from..to).map(|subtree| node(subtree).expect("the leaves are here")).collect();
            log.push(LogItem::Omitted { count: to - from, hashes });
        }
    };
    for (position, entry) in entries {
        omit(&mut bundle.log, next, position);
        bundle.log.push(LogItem::Entry(entry));
        bundle.records.push(Sealed::of(&read(store, position)?));
        next = position + 1;
    }
    omit(&mut bundle.log, next, size);
    Ok(bundle)
}

/// Collects the positions of everything a reader of the run needs.
fn keep_run(store: &dyn Store, run: &RunName, keep: &mut BTreeSet<u64>) -> Result<(), Error> {
    let Some(summary) = store.run(run)? else { return Err(no_run(store, run)) };
    keep.insert(summary.begin);
    let trace = Trace::open(store, run)?;
    let mut failed = None;
    trace.for_each(1, trace.tip(), &mut |_, record| match store.find(&record.id()) {
        Ok(position) => {
            keep.extend(position);
            ControlFlow::Continue(())
        }
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
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
