//! `store.json`: what a store says of itself, and who may read and write it.
//!
//! Never changed once written, except by an upgrade of the format. Who does not know the format touches nothing.

use std::path::Path;

use dendrer_object::bundle::DRAFT;
use dendrer_object::{StoreId, Value, json};

use crate::disk::{self, Disk, Open};
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::store::{FORMAT, StoreInfo};

pub(crate) const NAME: &str = "store.json";

/// The file that marks a directory as a backup, with its end.
pub(crate) const MARK: &str = "backup.json";
const TAG: &str = "store/1";
const SIZE_MAX: u64 = 1 << 16;

/// Returns the canonical text.
pub(crate) fn text(info: &StoreInfo) -> String {
    Value::record([
        ("dendrer", Value::from(TAG)),
        ("draft", Value::from(DRAFT)),
        ("format", info.format.into()),
        ("id", info.id.to_string().into()),
        ("key", info.key.to_string().into()),
        ("reader", info.reader.into()),
        ("writer", info.writer.into()),
    ])
    .to_string()
}

/// Returns the draft of a store that was made before the format was frozen, if it is another one than this code reads.
fn other_draft(draft: Option<&Value>, format: Option<&Value>) -> Option<u64> {
    // Of a newer format the version is named.
    let is_newer = format.and_then(Value::as_u64).is_some_and(|format| format > FORMAT);
    let found = match draft {
        None => Some(1),
        Some(draft) => draft.as_u64(),
    };
    found.filter(|found| !is_newer && *found != DRAFT)
}

/// Reads the descriptor of a store, and checks that this code may read or write it.
pub(crate) fn read(disk: &dyn Disk, dir: &Path, write: bool) -> Result<StoreInfo, StoreError> {
    let path = dir.join(NAME);
    let bytes =
        disk::read_file(disk, &path, SIZE_MAX).map_err(|error| StoreError::io("read", &path, error))?;
    let Some(bytes) = bytes else {
        // The mark with which a copy begins is there until the copy is whole.
        let why = match disk.open(&dir.join(MARK), Open::Read) {
            Ok(_) => "a backup or restore into it was not finished".to_owned(),
            Err(_) => format!("it has no {NAME}"),
        };
        return Err(StoreError::NotAStore { path: dir.to_owned(), why });
    };
    let damaged = |what: &'static str, expected: &str, found: String| {
        let place = DamagePlace { file: NAME.into(), ..DamagePlace::default() };
        StoreError::from(Damage { kind: DamageKind::File, place, what, expected: expected.into(), found })
    };
    let value = json::parse_canonical(&bytes)
        .map_err(|error| damaged("descriptor", "canonical JSON", error.to_string()))?;
    let object = value.as_object();
    let member = |name: &str| object.and_then(|object| object.get(name));
    let tag = member("dendrer").and_then(Value::as_str).unwrap_or("nothing");
    if tag != TAG {
        return Err(damaged("dendrer", TAG, tag.into()));
    }
    if let Some(found) = other_draft(member("draft"), member("format")) {
        return Err(StoreError::DraftFormat { path, found, known: DRAFT });
    }
    let number = |name: &'static str| {
        let found = member(name).and_then(Value::as_u64).filter(|number| *number > 0);
        found.ok_or_else(|| damaged(name, "a number from 1", format!("{:?}", member(name))))
    };
    let (format, reader, writer) = (number("format")?, number("reader")?, number("writer")?);
    for (what, found, is_needed) in [("reading", reader, true), ("writing", writer, write)] {
        if is_needed && found > FORMAT {
            return Err(StoreError::NewerFormat { path, what, found, known: FORMAT });
        }
    }
    let text = |name: &'static str| {
        member(name)
            .and_then(Value::as_str)
            .ok_or_else(|| damaged(name, "a text", format!("{:?}", member(name))))
    };
    let id = text("id")?.parse::<StoreId>();
    let key = text("key")?.parse();
    let info = StoreInfo {
        id: id.map_err(|error| damaged("id", "16 bytes in hex", error.to_string()))?,
        key: key.map_err(|error| damaged("key", "a verifier key", format!("{error}")))?,
        format,
        reader,
        writer,
    };
    // A format that older programs may write is not a new format.
    if format > FORMAT && reader.max(writer) <= FORMAT {
        let found = format!("format {format}, reader {reader}, writer {writer}");
        return Err(damaged("descriptor", "a writer as new as its format", found));
    }
    if format <= FORMAT && reader.max(writer) > format {
        let found = format!("reader {reader}, writer {writer}");
        return Err(damaged("descriptor", "a reader and a writer no newer than its format", found));
    }
    // A newer version that lets this one read may have added members; this one never writes the file again.
    if format <= FORMAT && self::text(&info).as_bytes() != bytes {
        return Err(damaged("descriptor", &self::text(&info), String::from_utf8_lossy(&bytes).into_owned()));
    }
    Ok(info)
}
