//! Writes an export: all rows are looked through once for the kinds of columns, then written file by file, and the manifest last.
//!
//! A file is written under a name of its own, synced and renamed, then listed in `dendrer-export.part`; a later call keeps the
//! files that are listed and whole. Rule: the bytes depend on the log and the terms alone; test
//! `export_killed_at_any_file_gives_the_same_bytes`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use dendrer::Error;
use dendrer::ask::fleet::{RunCertainty, pack_in_force, undone};
use dendrer::casebook::is_of;
use dendrer::trace::{Moment, Trace, all_runs};
use dendrer_kernel::names::UNKNOWN;
use dendrer_kernel::replay::{ReplayError, state_root};
use dendrer_kernel::unknown::UnknownPlaces;
use dendrer_object::record::{Entry, Kind};
use dendrer_object::{Digest, Pointer, Record, RunName, Value, json};
use dendrer_store::Store;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::columns::{Cell, ColumnSearch, place_of, value_at};
use crate::error::FleetError;
use crate::manifest::{ExportedFile, MANIFEST, Manifest, PROGRESS};
use crate::read::digest_of;
use crate::rows::{
    COUNTERS_MARK, HIDDEN, TickRow, WHOLE, bools, entry_schema, ids, ints, run_schema, texts, tick_batch,
    tick_schema,
};

/// The largest number of bytes of texts of a row group.
const GROUP_BYTES: u64 = 64 << 20;

/// How many positions are asked of the store at a time.
const BATCH: usize = 256;

/// Contents of an export.
#[derive(Debug, Clone)]
pub struct FleetTerms {
    /// Places that are typed columns; all single values if empty.
    pub columns: Vec<String>,
    /// Whether the state of each row is written.
    pub states: bool,
    /// Whether ids, roots and entries are written.
    pub proof: bool,
    /// The largest number of rows of a row group.
    pub group_rows: u64,
    /// The number of rows after which a file ends.
    pub file_rows: u64,
}

impl Default for FleetTerms {
    fn default() -> FleetTerms {
        FleetTerms {
            columns: Vec::new(),
            states: false,
            proof: true,
            group_rows: 100_000,
            file_rows: 1_000_000,
        }
    }
}

/// Result of an export.
#[derive(Debug, Clone)]
pub struct ExportReport {
    /// The manifest.
    pub manifest: Manifest,
    /// Runs that were not named, and that a named one was forked from.
    pub ancestors: Vec<String>,
    /// Number of files that an earlier call had written.
    pub kept: u64,
    /// Whether some places are no column, because there are too many.
    pub left_out: bool,
}

/// Exports runs of a store into a directory; all runs if none are named. Finishes an export that was interrupted.
///
/// `passed` is called after each file.
///
/// # Errors
///
/// An error if a run cannot be read, or if the directory has something else.
pub fn export(
    store: &Arc<dyn Store>,
    named: &[RunName],
    dir: &Path,
    terms: &FleetTerms,
    passed: &mut dyn FnMut(&ExportedFile) -> Result<(), FleetError>,
) -> Result<ExportReport, FleetError> {
    check_dir(store, dir)?;
    let (runs, ancestors) = runs(store, named)?;
    let places = terms.columns.iter().map(|text| place_of(text)).collect::<Result<BTreeSet<_>, _>>()?;
    let places: Vec<Pointer> = places.into_iter().collect();
    let mut search = ColumnSearch::new(&places);
    let mut rows = 0;
    for run in &runs {
        each_row(&Trace::open(store, run)?, &mut |row| {
            rows += 1;
            search.row(row.state(), row.counters().as_ref());
            Ok(())
        })?;
    }
    let left_out = search.left_out;
    let mut counted = (0, 0);
    store.entries(0..store.tree().size, &mut |_, entry: Entry| {
        counted.0 += u64::from(entry.kind == Kind::Erase);
        counted.1 += u64::from(entry.kind == Kind::Key);
        ControlFlow::Continue(())
    })?;
    let manifest = Manifest {
        store: store.info().id.to_string(),
        size: store.tree().size,
        root: store.tree().root,
        checkpoint: store.checkpoint()?.map(|note| note.to_string()),
        erasures: counted.0,
        keys: counted.1,
        named: named.iter().map(ToString::to_string).collect(),
        states: terms.states,
        proof: terms.proof,
        limits: (terms.group_rows.max(1), terms.file_rows.max(1)),
        columns: search.finish(),
        rows,
        runs: runs.len() as u64,
        files: Vec::new(),
    };
    let mut writer = Files::begin(dir, manifest, passed)?;
    write_runs(&mut writer, store, &runs)?;
    write_ticks(&mut writer, store, &runs)?;
    if terms.proof {
        write_entries(&mut writer, &**store)?;
    }
    let kept = writer.kept;
    Ok(ExportReport { manifest: writer.finish()?, ancestors, kept, left_out })
}

/// Refuses a directory that has anything but an export of this store.
fn check_dir(store: &Arc<dyn Store>, dir: &Path) -> Result<(), FleetError> {
    let not_ours = |why: String| FleetError::NotOurs { dir: dir.to_owned(), why };
    let listed = match fs::read_dir(dir) {
        Ok(listed) => listed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(FleetError::file(dir)(error)),
    };
    for entry in listed {
        let name = entry.map_err(FleetError::file(dir))?.file_name();
        let name = name.to_string_lossy();
        if ![MANIFEST, PROGRESS, "ticks", "runs", "entries"].contains(&&*name) {
            return Err(not_ours(format!("it has {name}")));
        }
    }
    let id = store.info().id.to_string();
    if let Ok((manifest, _)) = Manifest::read(dir)
        && manifest.store != id
    {
        return Err(not_ours(format!("it is of the store {}", manifest.store)));
    }
    if let Some((plan, _)) = progress(dir)
        && plan.get("store").and_then(Value::as_str).is_none_or(|store| store != id)
    {
        return Err(not_ours("it was begun for another store".to_owned()));
    }
    Ok(())
}

/// Lists the runs in the order in which they began, with those that they were forked from.
fn runs(store: &Arc<dyn Store>, named: &[RunName]) -> Result<(Vec<RunName>, Vec<String>), FleetError> {
    let mut wanted: BTreeSet<RunName> = named.iter().cloned().collect();
    let mut ancestors = Vec::new();
    for run in named {
        let trace = Trace::open(store, run)?;
        for (above, _) in trace.lineage() {
            if wanted.insert(above.clone()) {
                ancestors.push(above.to_string());
            }
        }
    }
    let mut runs = Vec::new();
    for run in all_runs(&**store)? {
        let is_wanted = match named.is_empty() {
            true => !is_of(store, &run.name)?,
            false => wanted.contains(&run.name),
        };
        if is_wanted {
            runs.push(run.name);
        }
    }
    Ok((runs, ancestors))
}

/// The first own tick of a run, and the number of its own ticks.
pub(crate) fn own_ticks(trace: &Trace) -> (u64, u64) {
    let lineage = trace.lineage();
    let first = match lineage.len() {
        0 | 1 => 0,
        n => lineage[n - 2].1 + 1,
    };
    (first, (trace.tip() + 1).saturating_sub(first))
}

/// A row while the log is read.
struct LogRow<'a> {
    tick: u64,
    position: u64,
    record: &'a Record,
    /// The run after the tick; `None` from the tick on of which a change was erased or withheld.
    moment: Option<&'a Moment>,
}

impl LogRow<'_> {
    fn state(&self) -> Option<&Value> {
        self.moment.map(|moment| &moment.state)
    }

    /// The counters, if each of them is what it seems.
    fn counters(&self) -> Option<Value> {
        let moment = self.moment?;
        let value = moment.counters.to_value();
        is_plain(moment, &value).then_some(value)
    }
}

/// Whether no counter is hidden or a lower bound.
fn is_plain(moment: &Moment, counters: &Value) -> bool {
    let marks = ["unread", "missing"];
    marks.iter().all(|mark| counters.get(mark).is_none())
        && moment.counters.hidden(None::<[&str; 0]>).is_none()
}

/// Whether a state is not known because a value was erased or withheld.
fn is_erased(error: &Error) -> bool {
    matches!(error, Error::Replay(ReplayError::Erased { .. }) | Error::Hidden { .. })
}

/// Reads the own rows of a run, in order.
fn each_row(
    trace: &Trace,
    f: &mut dyn FnMut(LogRow<'_>) -> Result<(), FleetError>,
) -> Result<(), FleetError> {
    let (first, ticks) = own_ticks(trace);
    if ticks == 0 {
        return Ok(());
    }
    let at = if first == 0 { trace.genesis() } else { trace.at(first - 1) };
    let mut moment = match at {
        Ok(moment) => Some(moment),
        Err(error) if is_erased(&error) => None,
        Err(error) => return Err(error.into()),
    };
    let store = trace.store();
    if first == 0 {
        let position = trace.summary().begin;
        f(LogRow { tick: 0, position, record: trace.start(), moment: moment.as_ref() })?;
    }
    let mut positions: Vec<(u64, u64)> = Vec::new();
    let mut failed = None;
    trace.for_each(first.max(1), trace.tip(), &mut |tick, record| {
        let mut pass = || {
            if positions.last().is_none_or(|(last, _)| *last < tick) {
                positions = store.positions(trace.name(), tick..=trace.tip(), BATCH)?;
            }
            let number = positions.partition_point(|(known, _)| *known < tick);
            let position = positions.get(number).filter(|(known, _)| *known == tick).map(|(_, at)| *at);
            let lost = || FleetError::damaged(trace.name().as_str(), format!("tick {tick} has no position"));
            let position = position.ok_or_else(lost)?;
            match moment.as_mut().map(|moment| moment.advance(&record)) {
                Some(Err(error)) if is_erased(&error) => moment = None,
                Some(Err(error)) => return Err(error.into()),
                Some(Ok(())) | None => {}
            }
            f(LogRow { tick, position, record: &record, moment: moment.as_ref() })
        };
        match pass() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// Writes the columns of a row, without its keyframe.
fn tick_row(manifest: &Manifest, trace: &Trace, row: &LogRow<'_>) -> TickRow {
    let (record, moment) = (row.record, row.moment);
    let agent = record.body().value("/agent_id");
    let counters = row.counters();
    let delta = record.body().value("/delta").filter(|_| row.tick > 0 && moment.is_some());
    let cell = |column: &crate::columns::Column| {
        value_at(&column.place, row.state(), counters.as_ref()).map(|value| Cell::of(column.kind, value))
    };
    TickRow {
        run: trace.name().to_string(),
        tick: row.tick as i64,
        position: row.position as i64,
        type_name: record.header().type_name.as_ref().map(ToString::to_string),
        agent: agent.as_ref().and_then(Value::as_str).map(str::to_owned),
        ts: record.header().ts.ms() as i64,
        delta: delta.map(|delta| json::to_string(&delta)),
        keyframe: None,
        state: row.state().filter(|_| manifest.states).map(json::to_string),
        unknown: unknown_of(row).map(|marks| json::to_string(&marks)),
        cells: manifest.columns.iter().map(cell).collect(),
        id: manifest.proof.then(|| record.id()),
        root: state_root(record).filter(|_| manifest.proof && moment.is_some()),
    }
}

/// The places of a row that are not known, each with the cause; `None` if all are.
fn unknown_of(row: &LogRow<'_>) -> Option<Value> {
    let Some(moment) = row.moment else {
        let erased = Value::record([("code", Value::from("erased"))]);
        return Some(Value::record([(WHOLE, erased)]));
    };
    let mut marks = match moment.state.get(UNKNOWN).is_some() {
        true => UnknownPlaces::of(&moment.state).to_value().and_then(|value| value.as_object().cloned()),
        false => None,
    };
    let counters = moment.counters.to_value();
    if !is_plain(moment, &counters) {
        let names = dendrer_kernel::counters::NAMES.iter();
        let hidden = names.filter(|name| moment.counters.hidden(Some([**name])).is_some());
        let hidden = Value::array(hidden.map(|name| Value::from(*name)));
        let mut members = counters.as_object().cloned().unwrap_or_default();
        members.set(HIDDEN, hidden);
        marks.get_or_insert_default().set(COUNTERS_MARK, Value::Object(members));
    }
    marks.map(Value::Object)
}

/// A row of `runs/`.
struct RunLine {
    name: String,
    begin: i64,
    parent: Option<String>,
    own: (u64, u64),
    head: Digest,
    ended: bool,
    stage: Option<i64>,
    pack: Option<String>,
    rules: i64,
    certainty: Option<String>,
}

impl RunLine {
    fn of(trace: &Trace) -> Result<RunLine, FleetError> {
        let lineage = trace.lineage();
        let parent = lineage.len().checked_sub(2).map(|above| lineage[above].0.to_string());
        let pack = pack_in_force(trace)?;
        let certainty = undone(trace)?;
        let words = |text: &Option<String>| text.clone().map_or(Value::Null, Value::from);
        let value =
            Value::record([("at_tip", words(&certainty.at_tip)), ("before", words(&certainty.before))]);
        let stage = trace.begins().last().and_then(|begin| begin.body().value("/stage")?.as_u64());
        Ok(RunLine {
            name: trace.name().to_string(),
            begin: trace.summary().begin as i64,
            parent,
            own: own_ticks(trace),
            head: trace.summary().head.id,
            ended: trace.summary().ended,
            stage: stage.map(|stage| stage as i64),
            rules: pack.as_ref().map_or(0, |(_, version)| *version) as i64,
            pack: pack.map(|(value, _)| json::to_string(&value)),
            certainty: (certainty != RunCertainty::default()).then(|| json::to_string(&value)),
        })
    }
}

/// The rows of `runs/` that are written at a time.
const RUNS_BATCH: usize = 4_096;

fn write_runs(files: &mut Files<'_>, store: &Arc<dyn Store>, runs: &[RunName]) -> Result<(), FleetError> {
    let schema = run_schema();
    let ends = (runs.first().map(ToString::to_string), runs.last().map(ToString::to_string));
    let mut file = files.open("runs", 0, &schema)?;
    let is_kept = file.is_kept();
    for part in runs.chunks(RUNS_BATCH).filter(|_| !is_kept) {
        let lines = part.iter().map(|run| RunLine::of(&Trace::open(store, run)?));
        let lines = lines.collect::<Result<Vec<RunLine>, FleetError>>()?;
        let arrays = vec![
            texts(lines.iter().map(|line| Some(line.name.as_str()))),
            ints(lines.iter().map(|line| Some(line.begin))),
            texts(lines.iter().map(|line| line.parent.as_deref())),
            ints(lines.iter().map(|line| Some(line.own.0 as i64))),
            ints(lines.iter().map(|line| Some(line.own.1 as i64))),
            ids(lines.iter().map(|line| Some(line.head))),
            bools(lines.iter().map(|line| Some(line.ended))),
            ints(lines.iter().map(|line| line.stage)),
            texts(lines.iter().map(|line| line.pack.as_deref())),
            ints(lines.iter().map(|line| Some(line.rules))),
            texts(lines.iter().map(|line| line.certainty.as_deref())),
        ];
        file.write(&RecordBatch::try_new(Arc::clone(&schema), arrays).expect("each column has its type"))?;
    }
    file.close(files, runs.len() as u64, ends)
}

fn write_ticks(files: &mut Files<'_>, store: &Arc<dyn Store>, runs: &[RunName]) -> Result<(), FleetError> {
    let manifest = files.manifest.clone();
    let schema = tick_schema(&manifest);
    let (group_rows, file_rows) = manifest.limits;
    let mut group: Vec<TickRow> = Vec::new();
    let mut weight = 0;
    let mut open: Option<OpenFile> = None;
    let (mut number, mut in_file, mut ends) = (0, 0, (None, None));
    for run in runs {
        let trace = Trace::open(store, run)?;
        let mut is_first = true;
        each_row(&trace, &mut |row| {
            let mut made = tick_row(&manifest, &trace, &row);
            if is_first || group.is_empty() {
                made.keyframe = row.state().map(json::to_string);
            }
            is_first = false;
            if in_file == 0 && group.is_empty() {
                ends.0 = Some(made.run.clone());
            }
            ends.1 = Some(made.run.clone());
            weight += made.weight();
            group.push(made);
            if group.len() as u64 >= group_rows || weight >= GROUP_BYTES {
                in_file += group.len() as u64;
                let file = match &mut open {
                    Some(file) => file,
                    none => none.insert(files.open("ticks", number, &schema)?),
                };
                file.group(&manifest, &schema, &std::mem::take(&mut group))?;
                weight = 0;
                if in_file >= file_rows
                    && let Some(file) = open.take()
                {
                    file.close(files, in_file, std::mem::take(&mut ends))?;
                    (number, in_file) = (number + 1, 0);
                }
            }
            Ok(())
        })?;
    }
    if in_file > 0 || !group.is_empty() {
        in_file += group.len() as u64;
        let mut file = match open.take() {
            Some(file) => file,
            None => files.open("ticks", number, &schema)?,
        };
        file.group(&manifest, &schema, &group)?;
        file.close(files, in_file, ends)?;
    }
    Ok(())
}

fn write_entries(files: &mut Files<'_>, store: &dyn Store) -> Result<(), FleetError> {
    let schema = entry_schema();
    let step = files.manifest.limits.1;
    let size = files.manifest.size;
    for (number, from) in (0..size).step_by(usize::try_from(step).unwrap_or(usize::MAX)).enumerate() {
        let to = (from + step).min(size);
        let mut file = files.open("entries", number as u64, &schema)?;
        if !file.is_kept() {
            let mut entries: Vec<(u64, Entry)> = Vec::new();
            store.entries(from..to, &mut |position, entry| {
                entries.push((position, entry));
                ControlFlow::Continue(())
            })?;
            let run = |entry: &Entry| entry.run.as_ref().map(ToString::to_string);
            let runs: Vec<Option<String>> = entries.iter().map(|(_, entry)| run(entry)).collect();
            let arrays = vec![
                ints(entries.iter().map(|(position, _)| Some(*position as i64))),
                ids(entries.iter().map(|(_, entry)| Some(entry.hash))),
                texts(entries.iter().map(|(_, entry)| Some(entry.kind.as_str()))),
                texts(runs.iter().map(Option::as_deref)),
                ints(entries.iter().map(|(_, entry)| entry.tick.map(|tick| tick as i64))),
            ];
            let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).expect("each column has its type");
            file.write(&batch)?;
        }
        file.close(files, to - from, (None, None))?;
    }
    Ok(())
}

/// Reads the list of finished files: what the export is of, and the files.
fn progress(dir: &Path) -> Option<(Value, Vec<ExportedFile>)> {
    let text = fs::read_to_string(dir.join(PROGRESS)).ok()?;
    // The last line may have been cut.
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let plan = json::parse_canonical(lines.next()?.as_bytes()).ok()?;
    let files = lines.map_while(|line| ExportedFile::of(&json::parse_canonical(line.as_bytes()).ok()?));
    Some((plan, files.collect()))
}

/// The files of an export that is being written.
struct Files<'p> {
    dir: PathBuf,
    manifest: Manifest,
    /// The files that an earlier call finished, in order.
    finished: Vec<ExportedFile>,
    list: File,
    kept: u64,
    passed: &'p mut dyn FnMut(&ExportedFile) -> Result<(), FleetError>,
}

/// A file that is being written; `None` if an earlier call finished it.
struct OpenFile {
    name: String,
    writer: Option<ArrowWriter<File>>,
}

impl<'p> Files<'p> {
    fn begin(
        dir: &Path,
        manifest: Manifest,
        passed: &'p mut dyn FnMut(&ExportedFile) -> Result<(), FleetError>,
    ) -> Result<Files<'p>, FleetError> {
        for part in ["ticks", "runs", "entries"] {
            let path = dir.join(part);
            fs::create_dir_all(&path).map_err(FleetError::file(&path))?;
        }
        let plan = manifest.plan();
        let complete = Manifest::read(dir).ok().filter(|(found, _)| found.plan() == plan);
        let begun = progress(dir).filter(|(found, _)| *found == plan).map(|(_, files)| files);
        let listed = complete.map(|(found, _)| found.files).or(begun).unwrap_or_default();
        let is_whole = |file: &ExportedFile| {
            digest_of(&dir.join(&file.file))
                .is_ok_and(|(digest, bytes)| digest == file.sha256 && bytes == file.bytes)
        };
        let finished: Vec<ExportedFile> = listed.into_iter().take_while(is_whole).collect();
        let manifest_path = dir.join(MANIFEST);
        match fs::remove_file(&manifest_path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(FleetError::file(&manifest_path)(error));
            }
            _ => {}
        }
        remove_others(dir, &finished)?;
        let path = dir.join(PROGRESS);
        let mut list = File::create(&path).map_err(FleetError::file(&path))?;
        let mut lines = json::to_string(&plan) + "\n";
        finished.iter().for_each(|file| lines += &(json::to_string(&file.to_value()) + "\n"));
        list.write_all(lines.as_bytes()).and_then(|()| list.sync_all()).map_err(FleetError::file(&path))?;
        let kept = finished.len() as u64;
        Ok(Files { dir: dir.to_owned(), manifest, finished, list, kept, passed })
    }

    fn open(&mut self, part: &str, number: u64, schema: &Arc<Schema>) -> Result<OpenFile, FleetError> {
        let name = format!("{part}/{number:05}.parquet");
        if self.finished.iter().any(|file| file.file == name) {
            return Ok(OpenFile { name, writer: None });
        }
        let path = self.dir.join(unfinished(&name));
        let file = File::create(&path).map_err(FleetError::file(&path))?;
        let level = ZstdLevel::try_new(1).expect("a level of Zstandard");
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(usize::MAX))
            .set_created_by("dendrer".to_owned())
            .build();
        let writer = ArrowWriter::try_new(file, Arc::clone(schema), Some(properties));
        let writer = writer.map_err(|error| cannot_write(&path, error))?;
        Ok(OpenFile { name, writer: Some(writer) })
    }

    fn finish(mut self) -> Result<Manifest, FleetError> {
        let bytes = self.manifest.to_bytes();
        let (path, part) = (self.dir.join(MANIFEST), self.dir.join(PROGRESS));
        let beside = self.dir.join("runs").join("manifest.parquet.part");
        let put = || {
            let mut file = File::create(&beside)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            // The manifest is renamed last: with it the export is finished.
            fs::rename(&beside, &path)?;
            fs::remove_file(&part)
        };
        put().map_err(FleetError::file(&path))?;
        self.manifest.files.shrink_to_fit();
        Ok(self.manifest)
    }
}

fn cannot_write(path: &Path, error: parquet::errors::ParquetError) -> FleetError {
    FleetError::file(path)(std::io::Error::other(error.to_string()))
}

/// The name of a file while it is written.
fn unfinished(name: &str) -> String {
    format!("{name}.part")
}

/// Removes the files of an export that are not among those that are kept.
fn remove_others(dir: &Path, kept: &[ExportedFile]) -> Result<(), FleetError> {
    for part in ["ticks", "runs", "entries"] {
        let path = dir.join(part);
        for entry in fs::read_dir(&path).map_err(FleetError::file(&path))? {
            let entry = entry.map_err(FleetError::file(&path))?;
            let name = format!("{part}/{}", entry.file_name().to_string_lossy());
            let is_ours = name.ends_with(".parquet") || name.ends_with(".parquet.part");
            if is_ours && !kept.iter().any(|file| file.file == name) {
                fs::remove_file(entry.path()).map_err(FleetError::file(&entry.path()))?;
            }
        }
    }
    Ok(())
}

impl OpenFile {
    fn is_kept(&self) -> bool {
        self.writer.is_none()
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), FleetError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.write(batch).map_err(|error| cannot_write(Path::new(&self.name), error))
    }

    /// Writes rows as a row group of their own.
    fn group(
        &mut self,
        manifest: &Manifest,
        schema: &Arc<Schema>,
        rows: &[TickRow],
    ) -> Result<(), FleetError> {
        let Some(writer) = self.writer.as_mut().filter(|_| !rows.is_empty()) else { return Ok(()) };
        let made = writer.write(&tick_batch(manifest, schema, rows)).and_then(|()| writer.flush());
        made.map_err(|error| cannot_write(Path::new(&self.name), error))
    }

    fn close(
        self,
        files: &mut Files<'_>,
        rows: u64,
        (first, last): (Option<String>, Option<String>),
    ) -> Result<(), FleetError> {
        let OpenFile { name, writer } = self;
        let Some(writer) = writer else {
            let kept = files.finished.iter().find(|file| file.file == name).cloned();
            files.manifest.files.extend(kept);
            return Ok(());
        };
        let (path, whole) = (files.dir.join(unfinished(&name)), files.dir.join(&name));
        let file = writer.into_inner().map_err(|error| cannot_write(&path, error))?;
        file.sync_all().map_err(FleetError::file(&path))?;
        let (sha256, bytes) = digest_of(&path).map_err(FleetError::file(&path))?;
        fs::rename(&path, &whole).map_err(FleetError::file(&whole))?;
        let file = ExportedFile { file: name, rows, bytes, sha256, first, last };
        let line = json::to_string(&file.to_value()) + "\n";
        let listed = files.list.write_all(line.as_bytes()).and_then(|()| files.list.sync_all());
        listed.map_err(FleetError::file(&files.dir.join(PROGRESS)))?;
        (files.passed)(&file)?;
        files.manifest.files.push(file);
        Ok(())
    }
}
