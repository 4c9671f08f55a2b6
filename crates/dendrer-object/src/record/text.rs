//! The canonical texts of headers and entries: printable ASCII, one spelling.

use super::{Author, Body, Digest, Entry, FORMAT_VERSION, Header, Kind, Link, Rel};
use crate::digest::{DigestTexts, write_hex};
use crate::json;
use crate::name::{RunName, StoreId, TypeName};
use crate::pointer::Pointer;
use crate::time::Timestamp;
use crate::value::{Object, Value};

/// Why a text is not a header or an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a {what} of format version {FORMAT_VERSION}: {why}")]
pub struct HeaderTextError {
    what: &'static str,
    why: String,
}

pub(super) fn write_header(header: &Header, body: &Body, out: &mut Vec<u8>) {
    write(header, out, |out| {
        for (index, fields) in body.fields().chunks(DigestTexts::MAX).enumerate() {
            let digests = DigestTexts::of(fields.iter().map(|field| &field.digest));
            for (place, (field, digest)) in fields.iter().zip(digests.iter()).enumerate() {
                out.push(if index + place == 0 { b'{' } else { b',' });
                json::write_string(field.pointer.as_str(), out);
                out.extend_from_slice(b":\"");
                out.extend_from_slice(digest);
                out.push(b'"');
            }
        }
        out.extend_from_slice(if body.fields().is_empty() { b"{}" } else { b"}" });
    });
}

fn write(header: &Header, out: &mut Vec<u8>, fields: impl FnOnce(&mut Vec<u8>)) {
    text(out, "{\"author\":\"", header.author.as_str());
    out.extend_from_slice(b"\",\"fields\":");
    fields(out);
    digest_or_null(out, ",\"head\":", header.head);
    text(out, ",\"kind\":\"", header.kind.as_str());
    out.extend_from_slice(b"\",\"links\":[");
    for (index, link) in header.links.iter().enumerate() {
        text(out, if index > 0 { "," } else { "" }, "{\"hash\":\"");
        link.hash.write_text(out);
        text(out, "\",\"rel\":\"", link.rel.as_str());
        out.extend_from_slice(b"\"}");
    }
    digest_or_null(out, "],\"pack\":", header.pack);
    digest_or_null(out, ",\"prev\":", header.prev);
    text_or_null(out, ",\"run\":", header.run.as_ref().map(RunName::as_str));
    text(out, ",\"store\":\"", "");
    write_hex(&header.store.0, out);
    number_or_null(out, "\",\"tick\":", header.tick);
    text(out, ",\"ts\":\"", "");
    header.ts.write(out);
    text_or_null(out, "\",\"type\":", header.type_name.as_ref().map(TypeName::as_str));
    text(out, ",\"v\":", itoa::Buffer::new().format(FORMAT_VERSION));
    out.push(b'}');
}

pub(super) fn write_entry(entry: &Entry, out: &mut Vec<u8>) {
    text(out, "{\"hash\":\"", "");
    entry.hash.write_text(out);
    text(out, "\",\"kind\":\"", entry.kind.as_str());
    text_or_null(out, "\",\"run\":", entry.run.as_ref().map(RunName::as_str));
    number_or_null(out, ",\"tick\":", entry.tick);
    out.push(b'}');
}

fn text(out: &mut Vec<u8>, before: &str, text: &str) {
    out.extend_from_slice(before.as_bytes());
    out.extend_from_slice(text.as_bytes());
}

// Names and digests need no escapes: their rules allow no character that has one.
fn text_or_null(out: &mut Vec<u8>, before: &str, value: Option<&str>) {
    match value {
        Some(value) => {
            text(out, before, "\"");
            text(out, value, "\"");
        }
        None => text(out, before, "null"),
    }
}

fn digest_or_null(out: &mut Vec<u8>, before: &str, value: Option<Digest>) {
    match value {
        Some(digest) => {
            text(out, before, "\"");
            digest.write_text(out);
            out.push(b'"');
        }
        None => text(out, before, "null"),
    }
}

fn number_or_null(out: &mut Vec<u8>, before: &str, value: Option<u64>) {
    match value {
        Some(value) => text(out, before, itoa::Buffer::new().format(value)),
        None => text(out, before, "null"),
    }
}

impl Header {
    /// Returns the canonical header with the list of field pointers in place of their digests: what a store
    /// keeps beside the values, from which the digests follow.
    pub fn text_with_pointers<'a>(&self, pointers: impl IntoIterator<Item = &'a Pointer>) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        write(self, &mut out, |out| {
            out.push(b'[');
            for (index, pointer) in pointers.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                json::write_string(pointer.as_str(), out);
            }
            out.push(b']');
        });
        out
    }

    /// Reads what [`Header::text_with_pointers`] writes.
    pub fn parse_with_pointers(text: &[u8]) -> Result<(Header, Vec<Pointer>), HeaderTextError> {
        let (header, fields) = parse(text)?;
        let pointers =
            fields.as_array().and_then(|items| items.iter().map(pointer).collect::<Option<Vec<_>>>());
        Ok((header, pointers.ok_or_else(|| header_error("fields is a list of pointers"))?))
    }

    /// Reads a header with the digests of its fields, as a bundle holds it.
    pub fn parse_with_digests(text: &[u8]) -> Result<(Header, Vec<(Pointer, Digest)>), HeaderTextError> {
        let (header, fields) = parse(text)?;
        Ok((header, digests(&fields).ok_or_else(|| header_error("fields maps pointers to digests"))?))
    }
}

fn pointer(value: &Value) -> Option<Pointer> {
    value.as_str()?.parse().ok()
}

fn digests(fields: &Value) -> Option<Vec<(Pointer, Digest)>> {
    let read = |(name, digest): (&std::sync::Arc<str>, &Value)| {
        Some((name.parse().ok()?, Digest::from_base64url(digest.as_str()?)?))
    };
    fields.as_object()?.iter().map(read).collect()
}

fn header_error(why: impl Into<String>) -> HeaderTextError {
    HeaderTextError { what: "header", why: why.into() }
}

/// Reads the members that every header has; the fields come back as they are.
fn parse(text: &[u8]) -> Result<(Header, Value), HeaderTextError> {
    let value = json::parse_canonical(text).map_err(|error| header_error(error.to_string()))?;
    let object = value.as_object().ok_or_else(|| header_error("an object is needed"))?;
    if object.len() != 13 {
        return Err(header_error("it has exactly 13 members"));
    }
    let read = Reader { object, what: "header" };
    let version = read.member("v")?.as_u64();
    if version != Some(FORMAT_VERSION) {
        return Err(read.wrong("v"));
    }
    let links = read.member("links")?.as_array().and_then(|links| links.iter().map(link).collect());
    let header = Header {
        store: read.parsed::<StoreId>("store")?,
        kind: read.parsed::<Kind>("kind")?,
        run: read.nullable::<RunName>("run")?,
        tick: read.nullable_number("tick")?,
        prev: read.nullable::<Digest>("prev")?,
        head: read.nullable::<Digest>("head")?,
        type_name: read.nullable::<TypeName>("type")?,
        author: read.parsed::<Author>("author")?,
        ts: read.parsed::<Timestamp>("ts")?,
        links: links.ok_or_else(|| read.wrong("links"))?,
        pack: read.nullable::<Digest>("pack")?,
    };
    Ok((header, read.member("fields")?.clone()))
}

fn link(value: &Value) -> Option<Link> {
    let object = value.as_object().filter(|object| object.len() == 2)?;
    let rel: Rel = object.get("rel")?.as_str()?.parse().ok()?;
    Some(Link { rel, hash: object.get("hash")?.as_str()?.parse().ok()? })
}

impl Entry {
    /// Reads what [`Entry::text`] writes.
    pub fn parse(text: &[u8]) -> Result<Entry, HeaderTextError> {
        let error = |why: String| HeaderTextError { what: "log entry", why };
        let value = json::parse_canonical(text).map_err(|e| error(e.to_string()))?;
        let object = value.as_object().filter(|object| object.len() == 4);
        let object = object.ok_or_else(|| error("it has exactly 4 members".into()))?;
        let read = Reader { object, what: "log entry" };
        Ok(Entry {
            hash: read.parsed("hash")?,
            kind: read.parsed("kind")?,
            run: read.nullable("run")?,
            tick: read.nullable_number("tick")?,
        })
    }
}

struct Reader<'a> {
    object: &'a Object,
    what: &'static str,
}

impl Reader<'_> {
    fn wrong(&self, name: &str) -> HeaderTextError {
        HeaderTextError { what: self.what, why: format!("{name} is not what it must be") }
    }

    fn member(&self, name: &str) -> Result<&Value, HeaderTextError> {
        self.object
            .get(name)
            .ok_or_else(|| HeaderTextError { what: self.what, why: format!("{name} is missing") })
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<T, HeaderTextError> {
        self.member(name)?.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| self.wrong(name))
    }

    fn nullable<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, HeaderTextError> {
        match self.member(name)? {
            Value::Null => Ok(None),
            _ => self.parsed(name).map(Some),
        }
    }

    fn nullable_number(&self, name: &str) -> Result<Option<u64>, HeaderTextError> {
        match self.member(name)? {
            Value::Null => Ok(None),
            value => value.as_u64().map(Some).ok_or_else(|| self.wrong(name)),
        }
    }
}
