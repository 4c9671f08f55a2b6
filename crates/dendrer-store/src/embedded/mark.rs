//! The mark of a backup, and whether it is where it belongs.
//!
//! `backup.json` says where the log of a backup ends, and no reader looks further: a part of a later backup that was interrupted
//! may follow. In a store the same file hides records. A directory is a store or a backup by its name: `.dendrer` is a store, and
//! so is a directory with an index, which no backup has.

use std::io;
use std::path::Path;

use dendrer_object::{Value, json};

use super::Embedded;
use crate::error::StoreError;

const FILE: &str = "backup.json";

/// The name of a directory that is a store.
const STORE_DIR: &str = ".dendrer";

/// The mark of a backup in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Number of records up to the end that the mark names.
    pub size: u64,
    /// Number of bytes of the log after that.
    pub behind: u64,
    /// Whether the directory is a store, where the mark does not belong.
    pub in_store: bool,
}

impl Mark {
    /// Reads the mark of a directory; `None` if no mark ends the log.
    pub fn at(dir: &Path) -> Result<Option<Mark>, StoreError> {
        let path = dir.join(FILE);
        if !path.is_file() {
            return Ok(None);
        }
        let bytes = read(&path).map_err(|error| StoreError::io("read", &path, error))?;
        let Ok(value) = json::parse_canonical(&bytes) else { return Ok(None) };
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        let (Some(size), Some(segment), Some(offset)) = (number("size"), number("segment"), number("offset"))
        else {
            return Ok(None);
        };
        let segments = dir.join("segments");
        let behind = behind(&segments, segment, offset)
            .map_err(|error| StoreError::io("look at", &segments, error))?;
        Ok(Some(Mark { size, behind, in_store: is_store(dir) }))
    }

    /// Whether the mark hides records of a store.
    pub fn hides(&self) -> bool {
        self.in_store && self.behind > 0
    }
}

impl Embedded {
    /// Returns the mark of a backup that ends this log; `None` if none does.
    pub fn mark(&self) -> Result<Option<Mark>, StoreError> {
        if self.backup_head().is_none() { Ok(None) } else { Mark::at(self.dir()) }
    }
}

/// A name may lead to anything: no more is read than a mark can have.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(std::fs::File::open(path)?, 1 << 16), &mut bytes)?;
    Ok(bytes)
}

fn behind(dir: &Path, segment: u64, offset: u64) -> io::Result<u64> {
    let sum = || -> io::Result<u64> {
        let mut sum = 0;
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let number = name.and_then(|name| name.strip_suffix(".seg")?.parse::<u64>().ok());
            let Some(number) = number.filter(|number| *number >= segment) else { continue };
            let len = std::fs::metadata(&path)?.len();
            sum += if number > segment { len } else { len.saturating_sub(offset) };
        }
        Ok(sum)
    };
    match sum() {
        // A missing segment is reported by the readers of the log.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        sum => sum,
    }
}

fn is_store(dir: &Path) -> bool {
    // A link may lead there, and the current directory may be inside.
    let named = |dir: &Path| dir.file_name().is_some_and(|name| name == STORE_DIR);
    named(dir)
        || dir.canonicalize().is_ok_and(|dir| named(&dir))
        || std::fs::symlink_metadata(dir.join("index.sqlite")).is_ok()
}
