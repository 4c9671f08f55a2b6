//! Files that somebody named on the command line. A name may lead to anything, so no more is read than shows that it is
//! too long for what it is read for.

use std::fs::File;
use std::io::{self, Read as _};

use dendrer_object::json::DOCUMENT_SIZE_MAX;
use dendrer_object::{Value, json};

use crate::failure::{Failure, Result};
use crate::verbs::behind_mark;

/// Reads a file, and one byte more than `most` at most.
pub(crate) fn read(path: &str, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| cannot_read(path, &error))
}

/// Says that a file cannot be read, and why.
pub(crate) fn cannot_read(path: &str, error: &io::Error) -> Failure {
    Failure::new("E0108", format!("cannot read {path}")).at("cause", error.to_string())
}

/// Reads a JSON file.
pub(crate) fn json(path: &str) -> Result<Value> {
    json::parse_door(behind_mark(&read(path, DOCUMENT_SIZE_MAX)?))
        .map_err(|error| Failure::new(error.code(), error.to_string()).at("file", path))
}
