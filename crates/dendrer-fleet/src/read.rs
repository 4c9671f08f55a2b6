//! Reads an export: files by the names and digests of the manifest, rows in the order of the runs, each tick once.
//!
//! Rule: a file whose bytes are not those of the manifest is not parsed; rows that are missing, doubled or of another run end
//! with an error that names the file; test `damaged_files_are_named_and_never_answered_from`.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{BooleanArray, FixedSizeBinaryArray, RecordBatch};
use arrow_schema::Schema;
use dendrer::ask::fleet::RunCertainty;
use dendrer_object::{Digest, RunName, Value};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;
use ring::digest::{Context, SHA256};

use crate::error::FleetError;
use crate::manifest::{ExportedFile, Manifest};
use crate::rows::{array_of, int_at, json_of, run_schema, text_at};

/// The rows that are decoded at a time.
const BATCH_ROWS: usize = 4_096;

/// The largest column of a row group that is read.
const CHUNK_MAX: i64 = 1 << 30;

/// The largest number of rows of a row group that is read.
const GROUP_ROWS_MAX: i64 = 4_000_000;

/// An export that is read.
#[derive(Debug)]
pub struct FleetReader {
    pub(crate) dir: PathBuf,
    /// The manifest.
    pub manifest: Manifest,
    /// The digest of the manifest.
    pub digest: Digest,
}

/// A run of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedRun {
    /// The name.
    pub name: RunName,
    /// The run that it was forked from.
    pub parent: Option<RunName>,
    /// The first own tick.
    pub first: u64,
    /// Number of own ticks.
    pub ticks: u64,
    /// Its newest record.
    pub head: Digest,
    /// Whether it was closed.
    pub ended: bool,
    /// The pack in force, and the version of the rules that it is read by.
    pub pack: Option<(Value, u64)>,
    /// Why answers about it may lack something.
    pub certainty: RunCertainty,
}

/// Returns the digest and the number of bytes of a file, in bounded memory.
pub(crate) fn digest_of(path: &Path) -> io::Result<(Digest, u64)> {
    digest_of_open(&mut File::open(path)?)
}

fn digest_of_open(file: &mut File) -> io::Result<(Digest, u64)> {
    let mut context = Context::new(&SHA256);
    let (mut buffer, mut bytes) = (vec![0; 1 << 20], 0);
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        context.update(&buffer[..read]);
        bytes += read as u64;
    }
    let digest = context.finish();
    let digest = digest.as_ref().try_into().map_err(|_| io::Error::other("a digest has 32 bytes"))?;
    Ok((Digest(digest), bytes))
}

impl FleetReader {
    /// Opens the export in a directory.
    pub fn open(dir: &Path) -> Result<FleetReader, FleetError> {
        let (manifest, digest) = Manifest::read(dir)?;
        Ok(FleetReader { dir: dir.to_owned(), manifest, digest })
    }

    /// The files of a part, in order.
    pub(crate) fn files<'e>(&'e self, part: &str) -> impl Iterator<Item = &'e ExportedFile> {
        let part = format!("{part}/");
        self.manifest.files.iter().filter(move |file| file.file.starts_with(&part))
    }

    /// Opens a file of the manifest, if its bytes are those that the manifest names.
    pub(crate) fn open_file(&self, listed: &ExportedFile) -> Result<File, FleetError> {
        let path = self.dir.join(&listed.file);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(FleetError::damaged(&listed.file, "it is missing"));
            }
            Err(error) => return Err(FleetError::file(&path)(error)),
        };
        let size = file.metadata().map_err(FleetError::file(&path))?.len();
        if size != listed.bytes {
            let why = format!("it has {size} bytes, and the manifest names {}", listed.bytes);
            return Err(FleetError::damaged(&listed.file, why));
        }
        let (digest, _) = digest_of_open(&mut file).map_err(FleetError::file(&path))?;
        if digest != listed.sha256 {
            return Err(FleetError::damaged(&listed.file, "its bytes are not those that the manifest names"));
        }
        file.rewind().map_err(FleetError::file(&path))?;
        Ok(file)
    }

    /// Hands over the wanted columns of a file, batch by batch.
    pub(crate) fn batches(
        &self,
        listed: &ExportedFile,
        schema: &Arc<Schema>,
        wanted: &[&str],
        f: &mut dyn FnMut(&RecordBatch) -> Result<(), FleetError>,
    ) -> Result<(), FleetError> {
        let damaged = |why: String| FleetError::damaged(&listed.file, why);
        let file = self.open_file(listed)?;
        // A panic of the decoder over made-up bytes is damage of the file, as an error is.
        let guarded = |what: &mut dyn FnMut() -> Result<Option<RecordBatch>, String>| {
            catch_unwind(AssertUnwindSafe(what))
                .unwrap_or_else(|_| Err("its pages cannot be decoded".to_owned()))
        };
        let mut reader = None;
        guarded(&mut || {
            let file = file.try_clone().map_err(|error| error.to_string())?;
            let builder =
                ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
            check_metadata(builder.metadata(), listed)?;
            let found = builder.schema();
            let is_same = found.fields().len() == schema.fields().len()
                && found
                    .fields()
                    .iter()
                    .zip(schema.fields())
                    .all(|(a, b)| a.name() == b.name() && a.data_type() == b.data_type());
            if !is_same {
                return Err("its columns are not those of the manifest".to_owned());
            }
            let numbers = schema.fields().iter().enumerate();
            let numbers = numbers.filter(|(_, field)| wanted.contains(&field.name().as_str()));
            let mask = ProjectionMask::roots(builder.parquet_schema(), numbers.map(|(number, _)| number));
            let made = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
            reader = Some(made.map_err(|error| error.to_string())?);
            Ok(None)
        })
        .map_err(damaged)?;
        let mut rows = 0;
        while let Some(batch) = guarded(&mut || {
            let next = reader.as_mut().and_then(Iterator::next);
            next.transpose().map_err(|error| error.to_string())
        })
        .map_err(damaged)?
        {
            rows += batch.num_rows() as u64;
            f(&batch)?;
        }
        match rows == listed.rows {
            true => Ok(()),
            false => Err(damaged(format!("it has {rows} rows, and the manifest names {}", listed.rows))),
        }
    }

    /// Reads the runs.
    pub fn runs(&self) -> Result<Vec<ExportedRun>, FleetError> {
        let schema = run_schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let mut runs: Vec<ExportedRun> = Vec::new();
        let mut last = String::new();
        for file in self.files("runs") {
            self.batches(file, &schema, &names, &mut |batch| {
                for row in 0..batch.num_rows() {
                    let run = run_of(batch, row).map_err(|why| FleetError::damaged(&file.file, why))?;
                    runs.push(run);
                }
                Ok(())
            })?;
            last.clone_from(&file.file);
        }
        let damaged = |why: String| FleetError::damaged(&last, why);
        if runs.len() as u64 != self.manifest.runs {
            return Err(damaged(format!(
                "there are {} runs, and the manifest names {}",
                runs.len(),
                self.manifest.runs
            )));
        }
        let rows = runs.iter().try_fold(0_u64, |rows, run| rows.checked_add(run.ticks));
        if rows != Some(self.manifest.rows) {
            return Err(damaged("the ticks of the runs are not the rows of the manifest".to_owned()));
        }
        Ok(runs)
    }
}

/// Refuses a file that would take more memory than any export does.
fn check_metadata(metadata: &ParquetMetaData, listed: &ExportedFile) -> Result<(), String> {
    let mut rows = 0_i64;
    for group in metadata.row_groups() {
        if !(0..=GROUP_ROWS_MAX).contains(&group.num_rows()) {
            return Err("a row group is larger than any of an export".to_owned());
        }
        rows = rows.saturating_add(group.num_rows());
        if group.columns().iter().any(|column| !(0..=CHUNK_MAX).contains(&column.uncompressed_size())) {
            return Err("a column is larger than any of an export".to_owned());
        }
    }
    match u64::try_from(rows) == Ok(listed.rows) {
        true => Ok(()),
        false => Err(format!("it has {rows} rows, and the manifest names {}", listed.rows)),
    }
}

fn run_of(batch: &RecordBatch, row: usize) -> Result<ExportedRun, String> {
    let name = |column: &str| {
        let text = text_at(batch, column, row)?;
        text.map(|text| text.parse::<RunName>().map_err(|_| format!("{column} is no name of a run")))
            .transpose()
    };
    let number = |column: &str| {
        let value = int_at(batch, column, row)?.ok_or_else(|| format!("{column} is missing"))?;
        u64::try_from(value).map_err(|_| format!("{column} is below zero"))
    };
    let pack = text_at(batch, "pack", row)?.map(|text| json_of(text, "pack")).transpose()?;
    let certainty = text_at(batch, "certainty", row)?.map(|text| json_of(text, "certainty")).transpose()?;
    let words = |member: &str| Some(certainty.as_ref()?.get(member)?.as_str()?.to_owned());
    let head = array_of::<FixedSizeBinaryArray>(batch, "head_id")?.value(row);
    let (first, ticks) = (number("first_own_tick")?, number("ticks")?);
    // Ticks are signed in the files, and a run ends before the largest.
    first.checked_add(ticks).filter(|end| i64::try_from(*end).is_ok()).ok_or("a run ends nowhere")?;
    let parent = name("parent")?;
    if parent.is_none() && (first != 0 || ticks == 0) || parent.is_some() && first == 0 {
        return Err("a run begins at a tick that it cannot begin at".to_owned());
    }
    Ok(ExportedRun {
        name: name("name")?.ok_or("a run has no name")?,
        parent,
        first,
        ticks,
        head: Digest(head.try_into().map_err(|_| "an id has 32 bytes")?),
        ended: array_of::<BooleanArray>(batch, "ended")?.value(row),
        pack: pack.map(|value| Ok::<_, String>((value, number("rules")?))).transpose()?,
        certainty: RunCertainty { at_tip: words("at_tip"), before: words("before") },
    })
}
