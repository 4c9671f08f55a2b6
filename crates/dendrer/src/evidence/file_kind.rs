//! Names what a file looks like that is no bundle, by its first bytes.
//!
//! Reads nothing of the file but these bytes, and decides nothing: the file is refused all the same.
//!
//! Rule: a text that could be a damaged bundle has no name here, so the place of its fault is reported; test
//! `a_damaged_bundle_is_no_other_file`.

use dendrer_object::Value;
use dendrer_object::json::parse_tagged;

/// How many bytes are looked at.
pub(crate) const LOOKED_AT: usize = 4096;

/// First bytes of formats that are no text.
const MAGIC: [(&[u8], &str); 5] = [
    (b"\x1f\x8b", "a gzip file: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file: unpack it first"),
    (b"PK\x03\x04", "a ZIP archive: unpack it first"),
    (b"SQLite format 3\0", "a database of SQLite"),
    (b"dendrer/", "a checkpoint, which --checkpoint takes"),
];

/// Returns what a file looks like that begins with these bytes; `None` if it is empty or could be a bundle.
pub(crate) fn file_kind(begin: &[u8]) -> Option<&'static str> {
    if begin.is_empty() {
        return None;
    }
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| begin.starts_with(magic)) {
        return Some(kind);
    }
    let line = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match parse_tagged(line) {
        Ok(value) => json_kind(&value),
        Err(_) if begin.windows(8).any(|part| part == b"\"bundle\"") => None,
        Err(_) if matches!(begin.trim_ascii_start().first(), Some(b'{' | b'[')) => Some(TRACE),
        // A character may be cut at the end.
        Err(_) => match std::str::from_utf8(begin) {
            Ok(_) => Some("text"),
            Err(error) if error.error_len().is_none() => Some("text"),
            Err(_) => Some("bytes that are no text"),
        },
    }
}

/// The name of JSON that is neither ours nor a line of a run.
const TRACE: &str = "JSON; a trace is read by `dendrer import`";

fn json_kind(value: &Value) -> Option<&'static str> {
    let is_text = |name: &str| value.get(name).is_some_and(|value| value.as_str().is_some());
    match value.as_object() {
        Some(object) if object.get("bundle").is_some() => None,
        Some(_) if is_text("schema") => Some("a document that a command printed with --json"),
        Some(_) if is_text("type") => Some("the lines of a run, which `dendrer commit --file` records"),
        _ => Some(TRACE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_its_first_bytes() {
        for (begin, kind) in [
            (&b"{\"type\":\"plan.update\",\"agent\":\"a\"}\n{"[..], "the lines of a run"),
            (b"{\"schema\":\"dendrer.verify/1\"}\n", "a document"),
            (b"{\"role\":\"user\",\"content\":\"hi\"}\n", "JSON"),
            (b"[\n  {\"role\":", "JSON"),
            (b"{\n  \"messages\": [", "JSON"),
            (b"dendrer/0707\n8\n", "a checkpoint"),
            (b"\x1f\x8b\x08", "a gzip file"),
            (b"PK\x03\x04..", "a ZIP archive"),
            (b"SQLite format 3\0\x10", "a database"),
            ("root:x:0:0:é".as_bytes(), "text"),
            (&"\u{e9}".as_bytes()[..1], "text"),
            (b"\xff\xfe\0", "bytes"),
        ] {
            let found = file_kind(begin).unwrap_or_default();
            assert!(found.starts_with(kind), "{found}: {}", String::from_utf8_lossy(begin));
        }
    }

    #[test]
    fn a_damaged_bundle_is_no_other_file() {
        for begin in
            [&b""[..], b"{\"bundle\":1,\"draft\":3}\n", b"{\"bundle\": 1", b"{\"although\":[],\"bundle\":1"]
        {
            assert_eq!(file_kind(begin), None, "{}", String::from_utf8_lossy(begin));
        }
    }
}
