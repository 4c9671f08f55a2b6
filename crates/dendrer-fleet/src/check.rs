//! Checks an export: the bytes of each file, the entries against the root of the log, and a store against what was erased since.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array as _, FixedSizeBinaryArray};
use dendrer::trace::Trace;
use dendrer_object::merkle::{Peaks, leaf_hash};
use dendrer_object::record::{Entry, Kind};
use dendrer_object::{Digest, RunName};
use dendrer_store::Store;

use crate::error::FleetError;
use crate::manifest::{MANIFEST, PROGRESS};
use crate::read::FleetReader;
use crate::rows::{array_of, entry_schema, int_at, text_at};

/// A file that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedExportFile {
    /// The name, relative to the export.
    pub file: String,
    /// Fault of the file; `None` if it is as the manifest names it.
    pub why: Option<String>,
}

/// The answer to a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportCheck {
    /// The files.
    pub files: Vec<CheckedExportFile>,
    /// The files with rows of runs of which a value was erased since; to be written again.
    pub rewrite: Vec<String>,
    /// Whether the entries were compared with the root of the log.
    pub is_rooted: bool,
}

impl ExportCheck {
    /// Whether every file is as the manifest names it.
    pub fn is_whole(&self) -> bool {
        self.files.iter().all(|file| file.why.is_none())
    }
}

/// Checks an export, and with a store what it erased since.
///
/// # Errors
///
/// An error if there is no manifest, or if it is of another store.
pub fn check(dir: &Path, store: Option<&Arc<dyn Store>>) -> Result<ExportCheck, FleetError> {
    let export = FleetReader::open(dir)?;
    if let Some(store) = store
        && store.info().id.to_string() != export.manifest.store
    {
        let why = format!("it is of the store {}", export.manifest.store);
        return Err(FleetError::NotOurs { dir: dir.to_owned(), why });
    }
    let mut files = Vec::new();
    for listed in &export.manifest.files {
        let why = match export.open_file(listed) {
            Ok(_) => None,
            Err(FleetError::Damaged { why, .. }) => Some(why),
            Err(error) => return Err(error),
        };
        files.push(CheckedExportFile { file: listed.file.clone(), why });
    }
    files.extend(foreign(&export, dir)?);
    let mut found = ExportCheck { files, rewrite: Vec::new(), is_rooted: false };
    if found.is_whole() && export.manifest.proof {
        match root_of(&export)? {
            Ok(root) if root == export.manifest.root => found.is_rooted = true,
            Ok(_) => found.fail(&export, "its entries are not those of the root of the log"),
            Err(why) => found.fail(&export, &why),
        }
    }
    if let Some(store) = store {
        if store.root_of(export.manifest.size)?.is_some_and(|root| root != export.manifest.root) {
            found.fail(&export, "the store has another history");
        }
        found.rewrite = erased_since(&export, store)?;
    }
    Ok(found)
}

impl ExportCheck {
    fn fail(&mut self, export: &FleetReader, why: &str) {
        let part = if export.files("entries").next().is_some() { "entries/" } else { "runs/" };
        for file in self.files.iter_mut().filter(|file| file.file.starts_with(part)) {
            file.why.get_or_insert_with(|| why.to_owned());
        }
    }
}

/// Files that the manifest does not name.
fn foreign(export: &FleetReader, dir: &Path) -> Result<Vec<CheckedExportFile>, FleetError> {
    let listed: BTreeSet<&str> = export.manifest.files.iter().map(|file| file.file.as_str()).collect();
    let mut found = Vec::new();
    let mut add = |name: String, is_listed: bool| {
        if !is_listed {
            found.push(CheckedExportFile {
                file: name,
                why: Some("the manifest does not name it".to_owned()),
            });
        }
    };
    for entry in fs::read_dir(dir).map_err(FleetError::file(dir))? {
        let entry = entry.map_err(FleetError::file(dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !["ticks", "runs", "entries"].contains(&name.as_str()) {
            add(name.clone(), name == MANIFEST || name == PROGRESS);
            continue;
        }
        for below in fs::read_dir(entry.path()).map_err(FleetError::file(&entry.path()))? {
            let below = below.map_err(FleetError::file(&entry.path()))?;
            let name = format!("{name}/{}", below.file_name().to_string_lossy());
            let is_listed = listed.contains(name.as_str());
            add(name, is_listed);
        }
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(found)
}

/// Returns the root of the log that the entries make; the inner error is the fault of the entries.
fn root_of(export: &FleetReader) -> Result<Result<Digest, String>, FleetError> {
    let schema = entry_schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let mut peaks = Peaks::new();
    let mut fault = None;
    for file in export.files("entries") {
        let read = export.batches(file, &schema, &names, &mut |batch| {
            for row in 0..batch.num_rows() {
                let entry =
                    entry_at(batch, row, peaks.size()).map_err(|why| FleetError::damaged(&file.file, why))?;
                peaks.push(leaf_hash(&entry.text()));
            }
            Ok(())
        });
        match read {
            Ok(()) => {}
            Err(FleetError::Damaged { why, .. }) => fault = Some(why),
            Err(error) => return Err(error),
        }
    }
    if peaks.size() != export.manifest.size {
        fault.get_or_insert_with(|| "entries are missing".to_owned());
    }
    Ok(fault.map_or_else(|| Ok(peaks.root()), Err))
}

fn entry_at(batch: &arrow_array::RecordBatch, row: usize, due: u64) -> Result<Entry, String> {
    let position = int_at(batch, "position", row)?.unwrap_or(-1);
    if u64::try_from(position) != Ok(due) {
        return Err(format!("it has position {position} where {due} is due"));
    }
    let ids = array_of::<FixedSizeBinaryArray>(batch, "id")?;
    let id: [u8; 32] = match ids.is_valid(row) {
        true => ids.value(row).try_into().map_err(|_| "an id has 32 bytes")?,
        false => return Err("an id is missing".to_owned()),
    };
    let kind = text_at(batch, "kind", row)?.and_then(|word| word.parse::<Kind>().ok());
    let run = text_at(batch, "run", row)?.map(|name| name.parse::<RunName>());
    let tick = int_at(batch, "tick", row)?.map(u64::try_from);
    Ok(Entry {
        hash: Digest(id),
        kind: kind.ok_or("an entry is of no kind")?,
        run: run.transpose().map_err(|_| "a run has no name")?,
        tick: tick.transpose().map_err(|_| "a tick is below zero")?,
    })
}

/// The files with rows of a run of which a value was erased after the export, or of a fork of such a run.
fn erased_since(export: &FleetReader, store: &Arc<dyn Store>) -> Result<Vec<String>, FleetError> {
    let mut erased: BTreeSet<RunName> = BTreeSet::new();
    let mut is_of_log = false;
    store.entries(export.manifest.size..store.tree().size, &mut |_, entry: Entry| {
        if entry.kind == Kind::Erase {
            match entry.run {
                Some(run) => drop(erased.insert(run)),
                None => is_of_log = true,
            }
        }
        ControlFlow::Continue(())
    })?;
    if erased.is_empty() && !is_of_log {
        return Ok(Vec::new());
    }
    let runs = export.runs()?;
    let mut touched: BTreeSet<String> = BTreeSet::new();
    for run in &runs {
        let lineage = match Trace::open(store, &run.name) {
            Ok(trace) => trace.lineage().to_vec(),
            Err(_) => vec![(run.name.clone(), 0)],
        };
        if is_of_log || lineage.iter().any(|(name, _)| erased.contains(name)) {
            touched.insert(run.name.to_string());
        }
    }
    // A file has the runs from its first to its last, in the order of `runs/`.
    let place = |name: &Option<String>| {
        name.as_ref().and_then(|name| runs.iter().position(|run| run.name.as_str() == name))
    };
    let is_touched = |file: &&crate::manifest::ExportedFile| match (place(&file.first), place(&file.last)) {
        (Some(first), Some(last)) if first <= last => {
            runs[first..=last].iter().any(|run| touched.contains(run.name.as_str()))
        }
        _ => false,
    };
    let ticks = export.files("ticks").filter(is_touched).map(|file| file.file.clone());
    let runs = export.files("runs").map(|file| file.file.clone());
    Ok(runs.chain(ticks).collect())
}
