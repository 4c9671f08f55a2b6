//! ZIP archives in memory: their members by name, inflated one at a time.
//!
//! Reads members that are stored, deflated or Zstandard in any number of frames, and checks size and CRC of each. Never touches a
//! file system: a name is a key and no path. Rule: an archive in which a member is encrypted, has the name of another one or shares
//! bytes with it is refused as a whole; test `archives_that_are_not_sound_are_refused`.

use std::collections::BTreeMap;
use std::io::Read;

use dendrer_object::Code;
use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};

use super::error::ImportError;
use crate::inflate::{self, Frames};

/// The bytes with which an archive begins.
pub(crate) const MAGIC: &[u8] = b"PK\x03\x04";

/// An archive.
pub(crate) struct Archive<'b> {
    zip: ZipSliceArchive<&'b [u8]>,
    members: BTreeMap<String, Member>,
}

/// A member of an archive.
struct Member {
    at: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
}

impl<'b> Archive<'b> {
    /// Reads the directory of an archive.
    pub(crate) fn open(bytes: &'b [u8]) -> Result<Archive<'b>, ImportError> {
        let zip = ZipArchive::from_slice(bytes).map_err(|error| damaged("the archive", &error))?;
        let (mut members, mut ranges) = (BTreeMap::new(), Vec::new());
        let mut entries = zip.entries();
        while let Some(entry) =
            entries.next_entry().map_err(|error| damaged("the directory of the archive", &error))?
        {
            let name = std::str::from_utf8(entry.file_path().as_bytes())
                .map_err(|error| damaged("a name in the archive", &error))?
                .to_owned();
            if entry.flags().is_encrypted() || entry.flags().has_strong_encryption() {
                return Err(unfit(Code::E0203, format!("{name} in the archive is encrypted")));
            }
            let (at, method) = (entry.wayfinder(), entry.compression_method());
            let found = zip.get_entry(at).map_err(|error| damaged(&name, &error))?;
            ranges.push(found.compressed_data_range());
            if members.insert(name.clone(), Member { at, method }).is_some() {
                return Err(unfit(Code::E0202, format!("{name} is twice in the archive")));
            }
        }
        ranges.sort_unstable();
        if ranges.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return Err(damaged("the archive", &"members share their bytes"));
        }
        Ok(Archive { zip, members })
    }

    /// The names of its members, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Inflates a member; `None` if there is no such member.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ImportError> {
        let Some(member) = self.members.get(name) else { return Ok(None) };
        let entry = self.zip.get_entry(member.at).map_err(|error| damaged(name, &error))?;
        let data = entry.data();
        let inflated = match member.method {
            CompressionMethod::STORE => inflated(entry.verifying_reader(data), name, data.len()),
            CompressionMethod::DEFLATE => {
                inflated(entry.verifying_reader(DeflateDecoder::new(data)), name, data.len())
            }
            CompressionMethod::ZSTD => inflated(entry.verifying_reader(Frames::new(data)), name, data.len()),
            other => {
                let text = format!("{name} in the archive is compressed by method {}", other.as_u16());
                return Err(unfit(Code::E0203, text));
            }
        };
        inflated.map(Some)
    }
}

/// Reads a member to its end.
fn inflated(mut reader: impl Read, name: &str, size: usize) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = reader.read(&mut buffer).map_err(|error| damaged(name, &error))?;
        if count == 0 {
            return Ok(bytes);
        }
        if inflate::is_too_large((bytes.len() + count) as u64, size as u64) {
            let text =
                format!("{name} in the archive inflates to more than {} times its size", inflate::TIMES);
            return Err(unfit(Code::E0205, text));
        }
        bytes.extend_from_slice(&buffer[..count]);
    }
}

fn damaged(what: &str, why: &dyn std::fmt::Display) -> ImportError {
    unfit(Code::E0201, format!("{what} cannot be read: {why}"))
}

fn unfit(code: Code, message: String) -> ImportError {
    ImportError::Unfit { code, message, note: None }
}
