//! Payloads of frames: records, values, the remains of an erasure; and the header of a segment.
//!
//! Never touches a file. Every parser accepts one spelling and gives `None` for all else, so that what was read can
//! be written again byte for byte; `docs/format-disk.md` is the description.

use std::borrow::{Borrow, Cow};
use std::collections::HashSet;
use std::hash::Hash;
use std::str::FromStr;

use dendrer_object::json;
use dendrer_object::record::{Body, Field, Header, Kind, Link, Part, Salt, Seed};
use dendrer_object::{Digest, Pointer, Record, RunName, StoreId, Timestamp, TypeName};
use foldhash::fast::RandomState;

use crate::frame;

/// Name of the directory of encrypted bytes.
pub(crate) const VAULT: &str = "vault";

/// Whether a file of the vault has the name of an entry: 64 hex digits.
pub(crate) fn is_vault_name(file: &str) -> bool {
    file.len() == 64 && file.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The bytes of the name before an encrypted value.
pub(crate) const SECRET_NAME: usize = 32;

/// Appends the frame of an encrypted value, and returns where it begins in the buffer.
pub(crate) fn write_secret(name: &Digest, bytes: &[u8], out: &mut Vec<u8>) -> usize {
    let start = frame::begin(out, frame::SECRET);
    out.extend_from_slice(&name.0);
    out.extend_from_slice(bytes);
    frame::end(out, start);
    start
}

/// Reads the payload of the frame of an encrypted value: its name, and at least one byte.
pub(crate) fn parse_secret(payload: &[u8]) -> Option<(Digest, &[u8])> {
    digest(payload).filter(|(_, bytes)| !bytes.is_empty())
}

/// Whether the bytes of an encrypted value are overwritten.
pub(crate) fn is_destroyed(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == frame::DESTROYED)
}

/// The bytes of a segment header.
pub(crate) const SEGMENT_HEADER: usize = 64;
const SEGMENT_MAGIC: &[u8; 18] = b"dendrer segment 1\n";

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) store: StoreId,
    pub(crate) number: u32,
    /// The size of the tree before the first group of this segment.
    pub(crate) start: u64,
}

impl SegmentHeader {
    pub(crate) fn write(&self) -> [u8; SEGMENT_HEADER] {
        let mut out = [0; SEGMENT_HEADER];
        out[..18].copy_from_slice(SEGMENT_MAGIC);
        out[18..34].copy_from_slice(&self.store.0);
        out[34..38].copy_from_slice(&self.number.to_le_bytes());
        out[38..46].copy_from_slice(&self.start.to_le_bytes());
        let crc = crc32c::crc32c(&out[..60]);
        out[60..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(crate) fn parse(bytes: &[u8; SEGMENT_HEADER]) -> Option<SegmentHeader> {
        let header = SegmentHeader {
            store: StoreId(bytes[18..34].try_into().expect("16 bytes")),
            number: u32::from_le_bytes(bytes[34..38].try_into().expect("four bytes")),
            start: u64::from_le_bytes(bytes[38..46].try_into().expect("eight bytes")),
        };
        // Magic, padding and checksum are all settled by writing it again.
        (header.write() == *bytes).then_some(header)
    }
}

const HAS_PREV: u8 = 1;
const HAS_HEAD: u8 = 2;
const HAS_PACK: u8 = 4;

/// Appends the payload of a record frame.
pub(crate) fn write_record(record: &Record, out: &mut Vec<u8>) {
    let header = record.header();
    out.extend_from_slice(&record.id().0);
    let digests = [(header.prev, HAS_PREV), (header.head, HAS_HEAD), (header.pack, HAS_PACK)];
    out.push(digests.iter().filter(|(digest, _)| digest.is_some()).map(|(_, flag)| flag).sum());
    for digest in digests.iter().filter_map(|(digest, _)| digest.as_ref()) {
        out.extend_from_slice(&digest.0);
    }
    let mut text = |part: &str| out.extend_from_slice(part.as_bytes());
    text("{\"author\":\"");
    text(header.author.as_str());
    text("\",\"fields\":[");
    for (index, field) in record.body().fields().iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::write_string(field.pointer.as_str(), out);
    }
    let mut text = |part: &str| out.extend_from_slice(part.as_bytes());
    text("],\"kind\":\"");
    text(header.kind.as_str());
    text("\"");
    for (index, link) in header.links.iter().enumerate() {
        text(if index > 0 { ",{\"hash\":\"sha256:" } else { ",\"links\":[{\"hash\":\"sha256:" });
        text(&link.hash.hex());
        text("\",\"rel\":\"");
        text(link.rel.as_str());
        text("\"}");
    }
    if !header.links.is_empty() {
        text("]");
    }
    if let Some(run) = &header.run {
        text(",\"run\":\"");
        text(run.as_str());
        text("\"");
    }
    if let Some(tick) = header.tick {
        text(",\"tick\":");
        text(itoa::Buffer::new().format(tick));
    }
    text(",\"ts\":");
    text(itoa::Buffer::new().format(header.ts.ms()));
    if let Some(type_name) = &header.type_name {
        text(",\"type\":\"");
        text(type_name.as_str());
        text("\"");
    }
    text("}");
}

/// A record frame as read. Nothing of it is believed before the record was sealed again.
#[derive(Debug, Clone)]
pub(crate) struct RecordFrame<'a> {
    pub(crate) id: Digest,
    pub(crate) header: Header,
    /// The JSON strings of the field pointers, with commas between them.
    fields: &'a [u8],
}

/// No less room than most records need.
const FIELDS_MOSTLY: usize = 16;

/// Names that were read before: most of a log has few, and one that comes again is not made again.
#[derive(Debug, Default)]
pub(crate) struct Names {
    runs: HashSet<RunName, RandomState>,
    types: HashSet<TypeName, RandomState>,
}

/// How many names of a kind are remembered.
const NAMES_MAX: usize = 1_024;

fn known<T>(names: Option<&mut HashSet<T, RandomState>>, text: &str) -> Option<T>
where
    T: FromStr + Borrow<str> + Eq + Hash + Clone,
{
    let Some(names) = names else { return text.parse().ok() };
    if let Some(name) = names.get(text) {
        return Some(name.clone());
    }
    let name: T = text.parse().ok()?;
    if names.len() == NAMES_MAX {
        names.clear();
    }
    names.insert(name.clone());
    Some(name)
}

impl<'a> RecordFrame<'a> {
    pub(crate) fn parse(payload: &'a [u8], store: StoreId) -> Option<RecordFrame<'a>> {
        RecordFrame::parse_with(payload, store, None)
    }

    /// As [`RecordFrame::parse`], for one of many.
    pub(crate) fn parse_with(
        payload: &'a [u8],
        store: StoreId,
        names: Option<&mut Names>,
    ) -> Option<RecordFrame<'a>> {
        let (runs, types) = names.map(|names| (&mut names.runs, &mut names.types)).unzip();
        let (id, rest) = digest(payload)?;
        let (&flags, mut rest) = rest.split_first()?;
        if flags & !(HAS_PREV | HAS_HEAD | HAS_PACK) != 0 {
            return None;
        }
        let mut optional = |flag: u8| -> Option<Option<Digest>> {
            if flags & flag == 0 {
                return Some(None);
            }
            let (found, after) = digest(rest)?;
            rest = after;
            Some(Some(found))
        };
        let (prev, head, pack) = (optional(HAS_PREV)?, optional(HAS_HEAD)?, optional(HAS_PACK)?);
        let mut text = Cursor(rest);
        text.expect("{\"author\":\"")?;
        let author = text.name()?.parse().ok()?;
        text.expect(",\"fields\":[")?;
        let fields = text.strings()?;
        text.expect("],\"kind\":\"")?;
        let kind: Kind = text.name()?.parse().ok()?;
        let mut links = Vec::new();
        if text.skip(",\"links\":[") {
            loop {
                text.expect("{\"hash\":\"")?;
                let hash = text.name()?.parse().ok()?;
                text.expect(",\"rel\":\"")?;
                links.push(Link { rel: text.name()?.parse().ok()?, hash });
                text.expect("}")?;
                if !text.skip(",") {
                    break;
                }
            }
            text.expect("]")?;
        }
        let run: Option<RunName> =
            if text.skip(",\"run\":\"") { Some(known(runs, text.name()?)?) } else { None };
        let tick = if text.skip(",\"tick\":") { Some(text.number()?) } else { None };
        text.expect(",\"ts\":")?;
        let ms = text.number()?;
        let ts = Timestamp::from_ms(ms);
        let type_name: Option<TypeName> =
            if text.skip(",\"type\":\"") { Some(known(types, text.name()?)?) } else { None };
        text.expect("}")?;
        if !text.0.is_empty() || ts.ms() != ms {
            return None;
        }
        let header = Header { store, kind, run, tick, prev, head, type_name, author, ts, links, pack };
        Some(RecordFrame { id, header, fields })
    }

    /// Returns the pointers of the fields.
    pub(crate) fn pointers(&self) -> Option<Vec<Pointer>> {
        self.places()?.iter().map(|place| place.parse().ok()).collect()
    }

    /// Returns the pointers of the fields as written, for a caller that looks for a few of them. Their syntax is not
    /// checked.
    pub(crate) fn places(&self) -> Option<Vec<Cow<'a, str>>> {
        let mut places = Vec::with_capacity(FIELDS_MOSTLY);
        let mut text = Cursor(self.fields);
        while !text.0.is_empty() {
            if !places.is_empty() {
                text.expect(",")?;
            }
            let raw = text.string()?;
            places.push(match raw.contains(&b'\\') {
                false => Cow::Borrowed(std::str::from_utf8(&raw[1..raw.len() - 1]).ok()?),
                true => Cow::Owned(json::parse_canonical(raw).ok()?.as_str()?.to_owned()),
            });
        }
        Some(places)
    }
}

fn digest(bytes: &[u8]) -> Option<(Digest, &[u8])> {
    let (digest, rest) = bytes.split_first_chunk::<32>()?;
    Some((Digest(*digest), rest))
}

/// Reads JSON that has one spelling.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn skip(&mut self, text: &str) -> bool {
        match self.0.strip_prefix(text.as_bytes()) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        self.skip(text).then_some(())
    }

    /// Reads the rest of a string that has no escapes, and its closing quote.
    fn name(&mut self) -> Option<&'a str> {
        let end = self.0.iter().position(|c| *c == b'"')?;
        let name = std::str::from_utf8(&self.0[..end]).ok()?;
        self.0 = &self.0[end + 1..];
        Some(name)
    }

    /// Reads a number without sign, fraction or leading zeros.
    fn number(&mut self) -> Option<u64> {
        let digits = self.0.iter().take_while(|c| c.is_ascii_digit()).count();
        let text = std::str::from_utf8(&self.0[..digits]).ok()?;
        if digits == 0 || (digits > 1 && text.starts_with('0')) {
            return None;
        }
        self.0 = &self.0[digits..];
        text.parse().ok()
    }

    /// Reads a whole string, and returns it with its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        if self.0.first() != Some(&b'"') {
            return None;
        }
        let mut at = 1;
        loop {
            match self.0.get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        let (string, rest) = self.0.split_at(at + 1);
        self.0 = rest;
        Some(string)
    }

    /// Reads strings with commas between them, as far as they go.
    fn strings(&mut self) -> Option<&'a [u8]> {
        let all = self.0;
        if self.0.first() == Some(&b'"') {
            self.string()?;
            while self.skip(",") {
                self.string()?;
            }
        }
        Some(&all[..all.len() - self.0.len()])
    }
}

const IS_LIST: u32 = 1 << 31;

/// The place of the text of a value: the slot itself, or other frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Slot<'a> {
    Inline(&'a [u8]),
    /// Positions of chunk and list frames, eight bytes each.
    List(&'a [u8]),
}

/// Appends a slot that holds its text.
pub(crate) fn write_inline(text: &[u8], out: &mut Vec<u8>) {
    debug_assert!(text.len() < IS_LIST as usize, "large values are chunked");
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

/// Appends a slot that names where its text is.
pub(crate) fn write_list(positions: &[u64], out: &mut Vec<u8>) {
    out.extend_from_slice(&((positions.len() as u32 * 8) | IS_LIST).to_le_bytes());
    out.extend(positions.iter().flat_map(|position| position.to_le_bytes()));
}

/// Reads positions out of a list; `None` unless it is whole and not empty.
pub(crate) fn parse_list(bytes: &[u8]) -> Option<impl Iterator<Item = u64>> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(8) {
        return None;
    }
    Some(bytes.chunks_exact(8).map(|position| u64::from_le_bytes(position.try_into().expect("eight bytes"))))
}

fn parse_slot(bytes: &[u8]) -> Option<(Slot<'_>, &[u8])> {
    let (n, rest) = bytes.split_first_chunk::<4>()?;
    let n = u32::from_le_bytes(*n);
    let (content, rest) = rest.split_at_checked((n & !IS_LIST) as usize)?;
    let slot = if n & IS_LIST == 0 { Slot::Inline(content) } else { Slot::List(content) };
    Some((slot, rest))
}

/// The entry of one field in a values frame or an opened frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored<'a> {
    /// The commitment; in a values frame it follows from the text.
    pub(crate) digest: Option<Digest>,
    /// The salt of its own, where the seed is gone.
    pub(crate) salt: Option<Salt>,
    /// The text; `None` if it was erased or withheld.
    pub(crate) slot: Option<Slot<'a>>,
}

/// Reads the payload of a values frame of `count` fields.
pub(crate) fn parse_values(payload: &[u8], count: usize) -> Option<(Seed, Vec<Stored<'_>>)> {
    let (seed, mut rest) = payload.split_first_chunk::<16>()?;
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        let (slot, after) = parse_slot(rest)?;
        rest = after;
        fields.push(Stored { digest: None, salt: None, slot: Some(slot) });
    }
    rest.is_empty().then_some((Seed(*seed), fields))
}

/// As [`parse_values`], where the number of fields is not known.
pub(crate) fn parse_values_all(payload: &[u8]) -> Option<Vec<Stored<'_>>> {
    let mut rest = payload.get(16..)?;
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let (slot, after) = parse_slot(rest)?;
        rest = after;
        fields.push(Stored { digest: None, salt: None, slot: Some(slot) });
    }
    Some(fields)
}

/// The content of an opened frame: the record that it is about, the frame that it replaces, and the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened<'a> {
    pub(crate) record: Digest,
    /// The values frame or opened frame that is replaced, and is to be erased; `None` where the values were never
    /// more than this.
    pub(crate) replaces: Option<u64>,
    pub(crate) fields: Vec<Stored<'a>>,
}

/// Reads the payload of an opened frame of `count` fields.
pub(crate) fn parse_opened(payload: &[u8], count: usize) -> Option<Opened<'_>> {
    parse_opened_all(payload).filter(|opened| opened.fields.len() == count)
}

/// As [`parse_opened`], where the number of fields is not known.
pub(crate) fn parse_opened_all(payload: &[u8]) -> Option<Opened<'_>> {
    let (record, replaces, mut rest) = opened_head(payload)?;
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let (commitment, after) = digest(rest)?;
        let (&open, after) = after.split_first()?;
        rest = after;
        let mut field = Stored { digest: Some(commitment), salt: None, slot: None };
        match open {
            0 => {}
            1 => {
                let (salt, after) = rest.split_first_chunk::<16>()?;
                let (slot, after) = parse_slot(after)?;
                rest = after;
                (field.salt, field.slot) = (Some(Salt(*salt)), Some(slot));
            }
            _ => return None,
        }
        fields.push(field);
    }
    Some(Opened { record, replaces, fields })
}

/// Reads which record an opened frame is about, and which frame it takes the place of.
pub(crate) fn opened_head(payload: &[u8]) -> Option<(Digest, Option<u64>, &[u8])> {
    let (record, rest) = digest(payload)?;
    let (replaces, rest) = rest.split_first_chunk::<8>()?;
    // Offset 0 of the first segment is its header, so no frame is there.
    Some((record, Some(u64::from_le_bytes(*replaces)).filter(|at| *at != 0), rest))
}

/// Tells whether an opened frame is what an erasure left, and not what a record came with.
pub(crate) fn is_erasure(opened: &[u8]) -> bool {
    matches!(opened_head(opened), Some((_, Some(_), _)))
}

/// Appends the begin of an opened frame.
pub(crate) fn write_opened_head(record: &Digest, replaces: Option<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(&record.0);
    out.extend_from_slice(&replaces.unwrap_or(0).to_le_bytes());
}

/// Appends what an opened frame says of a field, up to the slot of an open one.
pub(crate) fn write_opened_field(field: &Field, salt: Option<Salt>, out: &mut Vec<u8>) {
    out.extend_from_slice(&field.digest.0);
    match salt {
        None => out.push(0),
        Some(salt) => {
            out.push(1);
            out.extend_from_slice(&salt.0);
        }
    }
}

/// Everything that was read of a record, before it is sealed again.
#[derive(Debug, Clone)]
pub struct RawRecord {
    /// The id under which it was filed.
    pub id: Digest,
    /// The header.
    pub header: Header,
    /// The places of the fields, in order.
    pub pointers: Vec<Pointer>,
    /// The seed of the salts, unless a value is gone.
    pub seed: Option<Seed>,
    /// The bytes of each field.
    pub fields: Vec<RawField>,
    /// The texts of all open fields, one after the other.
    pub texts: Vec<u8>,
}

/// The bytes of one field.
#[derive(Debug, Clone)]
pub struct RawField {
    /// The commitment, where it is stored.
    pub digest: Option<Digest>,
    /// The salt, where it is stored.
    pub salt: Option<Salt>,
    /// The range of the text in [`RawRecord::texts`]; `None` if it is gone.
    pub text: Option<std::ops::Range<usize>>,
}

/// Why what was read is not the record it was filed as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsealed {
    /// It does not make a record.
    Invalid(String),
    /// It makes another one.
    Differs(Digest),
}

impl RawRecord {
    /// Whether nothing of it was erased or withheld, so that the seed gives every salt.
    fn is_whole(&self) -> bool {
        self.seed.is_some() && self.fields.iter().all(|field| field.text.is_some() && field.salt.is_none())
    }

    /// As [`RawRecord::seal`], for several at once, which costs less than one after the other.
    pub fn seal_each(raws: Vec<RawRecord>) -> Vec<Result<Record, Unsealed>> {
        if !raws.iter().all(RawRecord::is_whole) {
            return raws.into_iter().map(RawRecord::seal).collect();
        }
        let mut headers = Vec::with_capacity(raws.len());
        let mut texts = Vec::with_capacity(raws.len());
        for raw in raws {
            let canonical = raw.fields.iter().zip(&raw.pointers).try_for_each(|(field, pointer)| {
                let text = field.text.clone().expect("whole");
                let too_large = text.len() > dendrer_object::json::VALUE_SIZE_MAX;
                if too_large {
                    return Err(Unsealed::Invalid(format!("the value at {pointer} is too large")));
                }
                let checked = dendrer_object::json::check_canonical(&raw.texts[text]);
                checked.map_err(|error| Unsealed::Invalid(format!("the value at {pointer}: {error}")))
            });
            let places = raw.pointers.into_iter().zip(&raw.fields);
            let places =
                places.map(|(pointer, field)| (pointer, field.text.clone().expect("whole"))).collect();
            headers.push((raw.id, raw.header, canonical));
            texts.push((places, raw.texts, raw.seed.expect("whole")));
        }
        let bodies = Body::of_texts_each(texts);
        let mut ids = Vec::with_capacity(headers.len());
        let mut parts = Vec::with_capacity(headers.len());
        for ((id, header, canonical), body) in headers.into_iter().zip(bodies) {
            let body = canonical.and_then(|()| body.map_err(|error| Unsealed::Invalid(error.to_string())));
            ids.push((id, body.as_ref().err().cloned()));
            parts.extend(body.ok().map(|body| (header, body)));
        }
        let mut sealed = Record::seal_each(parts).into_iter();
        let compare = |(id, failed): (Digest, Option<Unsealed>)| match failed {
            Some(failed) => Err(failed),
            None => match sealed.next().expect("one for each body") {
                Err(error) => Err(Unsealed::Invalid(error.to_string())),
                Ok(record) if record.id() == id => Ok(record),
                Ok(record) => Err(Unsealed::Differs(record.id())),
            },
        };
        ids.into_iter().map(compare).collect()
    }

    /// Seals what was read, and compares the id.
    pub fn seal(self) -> Result<Record, Unsealed> {
        let RawRecord { id, header, pointers, seed, fields, texts } = self;
        let parts =
            pointers.into_iter().zip(&fields).map(|(pointer, field)| match (&field.text, field.digest) {
                (Some(text), _) => (pointer, Part::Open(&texts[text.clone()], field.salt)),
                (None, Some(digest)) => (pointer, Part::Closed(digest)),
                (None, None) => unreachable!("a closed field is read with its digest"),
            });
        let body = Body::of_parts(parts.collect(), seed);
        let record = body.and_then(|body| Record::seal(header, body));
        let record = record.map_err(|error| Unsealed::Invalid(error.to_string()))?;
        if record.id() == id { Ok(record) } else { Err(Unsealed::Differs(record.id())) }
    }
}

#[cfg(test)]
mod tests {
    use dendrer_object::record::{Author, Rel};
    use dendrer_object::{Object, Value};

    use super::*;

    const STORE: StoreId = StoreId([7; 16]);

    fn record(change: impl FnOnce(&mut Header)) -> Record {
        let mut header = Header {
            store: STORE,
            kind: Kind::Transition,
            run: Some("run-1".parse().unwrap()),
            tick: Some(12),
            prev: Some(Digest::of(b"prev")),
            head: None,
            type_name: Some("plan.update".parse().unwrap()),
            author: Author::Agent,
            ts: Timestamp::from_ms(1_771_867_265_001),
            links: vec![],
            pack: None,
        };
        change(&mut header);
        let content = Value::record([("a\"b\u{e9}", Value::from("x")), ("plain", Value::Null)]);
        let content: &Object = content.as_object().unwrap();
        let body = Body::commit(dendrer_object::record::cut(content), Seed([1; 16])).unwrap();
        Record::seal(header, body).unwrap()
    }

    fn check(record: &Record) -> Vec<u8> {
        let mut payload = Vec::new();
        write_record(record, &mut payload);
        let read = RecordFrame::parse(&payload, STORE).unwrap();
        assert_eq!((read.id, &read.header), (record.id(), record.header()));
        let pointers: Vec<Pointer> =
            record.body().fields().iter().map(|field| field.pointer.clone()).collect();
        assert_eq!(read.pointers(), Some(pointers));
        payload
    }

    #[test]
    fn record_frames_read_back() {
        check(&record(|_| {}));
        let link = |rel, text: &[u8]| Link { rel, hash: Digest::of(text) };
        let full = check(&record(|header| {
            header.links = vec![link(Rel::Evidence, b"e"), link(Rel::Merges, b"m")];
            header.pack = Some(Digest::of(b"pack"));
        }));
        check(&record(|header| {
            (header.kind, header.tick, header.prev, header.run) = (Kind::Register, None, None, None);
            (header.head, header.type_name) = (Some(Digest::of(b"head")), None);
        }));
        assert_eq!(full[32], 5);
        let text = String::from_utf8_lossy(&full[33 + 64..]).into_owned();
        assert!(
            text.starts_with(
                r#"{"author":"agent","fields":["/a\"bé","/plain"],"kind":"transition","links":[{"#
            )
        );
        assert!(
            text.ends_with(r#""run":"run-1","tick":12,"ts":1771867265001,"type":"plan.update"}"#),
            "{text}"
        );
    }

    #[test]
    fn no_other_spelling_is_read() {
        let mut payload = Vec::new();
        write_record(&record(|_| {}), &mut payload);
        for at in 32..payload.len() {
            let mut cut = payload.clone();
            cut.remove(at);
            // A digit, letter or digest byte less may be another record, but never this one.
            if let Some(read) = RecordFrame::parse(&cut, STORE) {
                let whole = RecordFrame::parse(&payload, STORE).unwrap();
                assert!(read.header != whole.header || read.pointers() != whole.pointers(), "byte {at}");
            }
        }
        payload.push(b' ');
        assert!(RecordFrame::parse(&payload, STORE).is_none());
    }

    /// Names are remembered from record to record, and more of them than there is room for.
    #[test]
    fn names_that_are_remembered_change_nothing() {
        let mut names = Names::default();
        for n in 0..3 * NAMES_MAX {
            let run = format!("run-{}", n % (NAMES_MAX + 5));
            let of = record(|header| header.run = Some(run.parse().unwrap()));
            let mut payload = Vec::new();
            write_record(&of, &mut payload);
            let read = RecordFrame::parse_with(&payload, STORE, Some(&mut names)).unwrap();
            assert_eq!(&read.header, of.header());
            let at = payload.windows(run.len()).position(|part| part == run.as_bytes()).unwrap();
            payload[at] = b'-';
            assert!(
                RecordFrame::parse_with(&payload, STORE, Some(&mut names)).is_none(),
                "no run is named so"
            );
        }
        assert!(names.runs.len() <= NAMES_MAX);
    }

    #[test]
    fn a_segment_header_has_one_spelling() {
        let header = SegmentHeader { store: STORE, number: 3, start: 77 };
        let bytes = header.write();
        assert_eq!(SegmentHeader::parse(&bytes), Some(header));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::parse(&flipped), None, "bit {bit}");
        }
    }
}
