//! The manifest of an export: the store it is of, its columns and every file with its digest. Written last, by rename.

use std::fs;
use std::path::Path;

use dendrer_object::{Digest, Pointer, Value, json};

use crate::columns::{Column, ColumnKind};
use crate::error::FleetError;

/// The name of the manifest.
pub const MANIFEST: &str = "dendrer-export.json";

/// The name of the list of files that are finished while the export is not.
pub(crate) const PROGRESS: &str = "dendrer-export.part";

/// The schema of the manifest.
const SCHEMA: &str = "dendrer.parquet-export/1";

/// The largest manifest that is read.
const MANIFEST_MAX: u64 = 256 << 20;

/// Store, terms, columns and files of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The id of the store.
    pub store: String,
    /// The size of the log.
    pub size: u64,
    /// The root of the log.
    pub root: Digest,
    /// The newest signed checkpoint of the log; `None` if it has none.
    pub checkpoint: Option<String>,
    /// Number of erasures in the log.
    pub erasures: u64,
    /// Number of records of keys in the log.
    pub keys: u64,
    /// The runs that were named; empty for all.
    pub named: Vec<String>,
    /// Whether the state of each row is there.
    pub states: bool,
    /// Whether ids, roots and entries are there.
    pub proof: bool,
    /// The largest number of rows of a row group and of a file.
    pub limits: (u64, u64),
    /// The typed columns, in order.
    pub columns: Vec<Column>,
    /// The number of rows of `ticks/`.
    pub rows: u64,
    /// The number of runs.
    pub runs: u64,
    /// The files.
    pub files: Vec<ExportedFile>,
}

/// A file of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFile {
    /// The name, relative to the directory.
    pub file: String,
    /// Number of rows.
    pub rows: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// The digest of the bytes.
    pub sha256: Digest,
    /// The run of the first row, if the file has rows of runs.
    pub first: Option<String>,
    /// The run of the last row.
    pub last: Option<String>,
}

impl ExportedFile {
    pub(crate) fn to_value(&self) -> Value {
        Value::record([
            ("bytes", Value::from(self.bytes)),
            ("file", Value::from(self.file.as_str())),
            ("first", Value::from(self.first.clone())),
            ("last", Value::from(self.last.clone())),
            ("rows", Value::from(self.rows)),
            ("sha256", Value::from(self.sha256)),
        ])
    }

    pub(crate) fn of(value: &Value) -> Option<ExportedFile> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let file = text("file")?;
        // A name must not lead out of the directory.
        let is_plain = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'.')
        };
        let parts: Vec<&str> = file.split('/').collect();
        if !matches!(parts[..], ["ticks" | "runs" | "entries", name] if is_plain(name)) {
            return None;
        }
        Some(ExportedFile {
            rows: value.get("rows")?.as_u64()?,
            bytes: value.get("bytes")?.as_u64()?,
            sha256: text("sha256")?.parse().ok()?,
            first: text("first"),
            last: text("last"),
            file,
        })
    }
}

impl Manifest {
    /// Returns the manifest without its files: two exports with equal plans have equal files.
    pub(crate) fn plan(&self) -> Value {
        let columns = self.columns.iter().map(|column| {
            Value::record([
                ("kind", Value::from(column.kind.as_str())),
                ("name", Value::from(column.name())),
                ("nulls", Value::from(column.nulls)),
                ("place", Value::from(column.place.as_str())),
            ])
        });
        Value::record([
            ("checkpoint", Value::from(self.checkpoint.clone())),
            ("columns", Value::array(columns)),
            ("erasures", Value::from(self.erasures)),
            ("keys", Value::from(self.keys)),
            ("limits", Value::array([Value::from(self.limits.0), Value::from(self.limits.1)])),
            ("named", Value::array(self.named.iter().map(|name| Value::from(name.as_str())))),
            ("proof", Value::Bool(self.proof)),
            ("root", Value::from(self.root)),
            ("rows", Value::from(self.rows)),
            ("runs", Value::from(self.runs)),
            ("schema", Value::from(SCHEMA)),
            ("size", Value::from(self.size)),
            ("states", Value::Bool(self.states)),
            ("store", Value::from(self.store.as_str())),
        ])
    }

    /// Writes the manifest.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut members = self.plan().as_object().cloned().unwrap_or_default();
        members.set("files", Value::array(self.files.iter().map(ExportedFile::to_value)));
        let mut bytes = json::to_vec(&Value::Object(members));
        bytes.push(b'\n');
        bytes
    }

    /// Reads a manifest; `None` for anything else.
    pub fn of_bytes(bytes: &[u8]) -> Option<Manifest> {
        let value = json::parse_canonical(bytes.strip_suffix(b"\n")?).ok()?;
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        let flag = |name: &str| value.get(name).and_then(Value::as_bool);
        if text("schema")? != SCHEMA {
            return None;
        }
        let columns = value.get("columns")?.as_array()?.iter().map(|column| {
            let text = |name: &str| column.get(name).and_then(Value::as_str);
            Some(Column {
                place: text("place")?.parse::<Pointer>().ok()?,
                kind: text("kind")?.parse::<ColumnKind>().ok()?,
                nulls: column.get("nulls")?.as_u64()?,
            })
        });
        let limits = value.get("limits")?.as_array()?;
        let named = value.get("named")?.as_array()?;
        let manifest = Manifest {
            store: text("store")?,
            size: number("size")?,
            root: text("root")?.parse().ok()?,
            checkpoint: text("checkpoint"),
            erasures: number("erasures")?,
            keys: number("keys")?,
            named: named.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?,
            states: flag("states")?,
            proof: flag("proof")?,
            limits: (limits.get(0)?.as_u64()?, limits.get(1)?.as_u64()?),
            columns: columns.collect::<Option<_>>()?,
            rows: number("rows")?,
            runs: number("runs")?,
            files: value.get("files")?.as_array()?.iter().map(ExportedFile::of).collect::<Option<_>>()?,
        };
        (manifest.to_bytes() == bytes).then_some(manifest)
    }

    /// Reads the manifest of a directory, with the digest of its bytes.
    pub fn read(dir: &Path) -> Result<(Manifest, Digest), FleetError> {
        let path = dir.join(MANIFEST);
        let size = match fs::metadata(&path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(FleetError::Unfinished { dir: dir.to_owned() });
            }
            Err(error) => return Err(FleetError::file(&path)(error)),
        };
        if size > MANIFEST_MAX {
            return Err(FleetError::damaged(MANIFEST, "it is larger than any manifest"));
        }
        let bytes = fs::read(&path).map_err(FleetError::file(&path))?;
        let manifest = Manifest::of_bytes(&bytes)
            .ok_or_else(|| FleetError::damaged(MANIFEST, "it is no manifest of an export"))?;
        Ok((manifest, Digest::of(&bytes)))
    }
}
