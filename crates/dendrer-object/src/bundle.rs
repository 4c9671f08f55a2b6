//! Bundles (`.dnd`): one text file of canonical JSON lines that holds records, the proof that they stand in
//! their store's log, and a signed checkpoint of that log.
//!
//! ```text
//! {"bundle":1,"draft":3,"key":...,"records":n,"runs":[...],"size":N,"store":...}      one header
//! {"hash":...,"kind":...,"run":...,"tick":...}                              entries, in the order of the log,
//! {"hashes":[...],"omitted":k}                                              or subtrees for k that are left out
//! {"header":{...},"seed":...,"values":{...}}                                one record for each entry
//! {"blob":"<base64url>"}                                                    pieces of large values
//! {"map":...,"paths":{...}}                                                 the map that counts the runs, if there is one
//! {"checkpoint":"..."}                                                      the signed note
//! ```
//!
//! Reading is in two steps: [`Bundle::parse`] accepts the lines or none of them, and the records in it are
//! opened one by one, so that damage in one leaves the others readable.
//!
//! Rule: a byte that writing would not give is never read.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::Code;
use crate::digest::{Digest, decode_base64url, encode_base64url};
use crate::json::{self, JsonError};
use crate::map::BundleMap;
use crate::merkle::Peaks;
use crate::name::{RunName, StoreId};
use crate::note::{Checkpoint, NoteError, SignedNote, VerifierKey};
use crate::number::Number;
use crate::pointer::Pointer;
use crate::record::{Entry, Gathered, Header, Part, Record, Salt, SealError, Seed};
use crate::value::Value;

/// Values longer than this stand in blobs, so that what repeats is written once.
pub const INLINE_MAX: usize = 1024;

/// How many bytes a line may have, the one that ends it included: a piece that is a whole value of the largest size, in base64, and
/// more than any record takes.
pub const LINE_MAX: usize = 2 * json::VALUE_SIZE_MAX;

/// The same of the header: what is no bundle at all often has one long line.
const HEAD_MAX: usize = 16 << 20;

/// The member of the header with fields that stay.
const ALTHOUGH: &str = "although";

/// Appends a line, and little more than as many bytes as are asked for at most.
pub type NextLine<'n, E> = dyn FnMut(&mut Vec<u8>, usize) -> Result<(), E> + 'n;

/// A bundle as its lines say it, before any record of it is opened.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// The store whose log this is part of.
    pub store: StoreId,
    /// The verifier key that the store names, as text.
    pub key: String,
    /// The runs the bundle was made for.
    pub runs: Vec<RunName>,
    /// Fields that stay although they may have a value that was withheld, as they were named when the bundle was made.
    pub although: Vec<String>,
    /// The number of entries in the log that the checkpoint covers.
    pub size: u64,
    /// The log: every entry in the bundle, and the hashes in place of the others.
    pub log: Vec<LogItem>,
    /// One for each entry that is here, in order.
    pub records: Vec<Sealed>,
    /// The map that counts the records of the runs; `None` without a map.
    pub map: Option<BundleMap>,
    /// The signed checkpoint, as text.
    pub checkpoint: String,
}

/// A stretch of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogItem {
    /// An entry whose record is in the bundle.
    Entry(Entry),
    /// Entries that are left out, as the digests of the complete subtrees that cover them, from left to right.
    Omitted {
        /// How many.
        count: u64,
        /// The subtrees.
        hashes: Vec<Digest>,
    },
}

/// A record as a line holds it. [`Sealed::open`] checks it.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// The canonical header with the digests it claims.
    pub header_text: Vec<u8>,
    seed: Option<Seed>,
    fields: Vec<SealedField>,
}

#[derive(Debug, Clone)]
struct SealedField {
    pointer: Pointer,
    digest: Digest,
    salt: Option<Salt>,
    text: Option<Text>,
}

/// The text of a value, or the pieces it is made of, which others may have as well.
#[derive(Debug, Clone)]
enum Text {
    Own(Vec<u8>),
    Pieces(Pieces, Vec<usize>),
}

/// The pieces of all values of a bundle.
type Pieces = Arc<Vec<Vec<u8>>>;

impl Text {
    fn whole(&self) -> Cow<'_, [u8]> {
        match self {
            Text::Own(text) => Cow::Borrowed(text),
            Text::Pieces(pieces, indexes) => {
                Cow::Owned(indexes.iter().flat_map(|index| &pieces[*index]).copied().collect())
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Text::Own(text) => text.len(),
            Text::Pieces(pieces, indexes) => indexes.iter().map(|index| pieces[*index].len()).sum(),
        }
    }
}

/// A fault of one record of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// A value does not match its commitment in the header.
    #[error("the value at {} does not match its commitment in the header", .pointer.dotted())]
    Value {
        /// Which value.
        pointer: Pointer,
        /// The commitment in the header.
        stored: Digest,
        /// The digest of the value that is there.
        computed: Digest,
    },
    /// The header is not the one the log's entry names.
    #[error("the header does not match its entry in the log")]
    Header {
        /// The id in the log.
        stored: Digest,
        /// The digest of the header.
        computed: Digest,
    },
    /// The entry repeats kind, run or tick otherwise than the header.
    #[error("the log's entry and the header disagree on kind, run or tick")]
    Entry,
    /// The record belongs to another store.
    #[error("the record belongs to another store")]
    Store,
    /// The parts do not make a record.
    #[error("{0}")]
    Seal(#[from] SealError),
}

/// Why a text is not a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleError {
    /// The line, from 1.
    pub line: usize,
    /// The fault.
    pub why: String,
    code: Code,
}

/// The number of this form of the format, until the format is frozen. A form that was replaced is not read any more.
pub const DRAFT: u64 = 3;

impl BundleError {
    fn new(line: usize, why: impl Into<String>) -> BundleError {
        BundleError { line, why: why.into(), code: Code::E0306 }
    }

    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        self.code
    }
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the bundle: {}", self.line, self.why)
    }
}

impl std::error::Error for BundleError {}

impl Sealed {
    /// Takes a record as it is.
    pub fn of(record: &Record) -> Sealed {
        let body = record.body();
        let own_salts = body.seed().is_none();
        let fields = body.fields().iter().enumerate().map(|(index, field)| SealedField {
            pointer: field.pointer.clone(),
            digest: field.digest,
            salt: if own_salts && body.text(field).is_some() { body.salt(index) } else { None },
            text: body.text(field).map(|text| Text::Own(text.to_vec())),
        });
        Sealed { header_text: record.header_text().to_vec(), seed: body.seed(), fields: fields.collect() }
    }

    /// Whether a value of it is long enough to stand in blobs.
    pub fn has_large(&self) -> bool {
        self.fields.iter().any(|field| field.text.as_ref().is_some_and(|text| text.len() > INLINE_MAX))
    }

    /// Whether it has pieces that other values may have as well, so that it takes more room when it is opened.
    pub fn is_packed(&self) -> bool {
        self.fields.iter().any(|field| matches!(field.text, Some(Text::Pieces(..))))
    }

    /// Opens the record that the log's entry names: digests, id, entry and store must agree.
    pub fn open(&self, entry: &Entry, store: StoreId) -> Result<Record, RecordFault> {
        // One value after the other is made and compared: a wrong one ends it before the others take their room.
        let mut body = Gathered::new(self.fields.len(), self.seed);
        for field in &self.fields {
            let text = field.text.as_ref().map(Text::whole);
            let part = match &text {
                Some(text) => Part::Open(text, field.salt),
                None => Part::Closed(field.digest),
            };
            let computed = body.push(field.pointer.clone(), part)?;
            if field.digest != computed {
                let pointer = field.pointer.clone();
                return Err(RecordFault::Value { pointer, stored: field.digest, computed });
            }
        }
        let body = body.body()?;
        let (header, _) = Header::parse_with_digests(&self.header_text).map_err(|_| RecordFault::Entry)?;
        let record = Record::seal(header, body)?;
        if record.id() != entry.hash {
            return Err(RecordFault::Header { stored: entry.hash, computed: record.id() });
        }
        let header = record.header();
        if (header.kind, &header.run, header.tick) != (entry.kind, &entry.run, entry.tick) {
            return Err(RecordFault::Entry);
        }
        if header.store != store {
            return Err(RecordFault::Store);
        }
        Ok(record)
    }
}

impl Bundle {
    /// Returns the positions in the log of the entries that are here.
    pub fn positions(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let mut next = 0;
        self.log.iter().filter_map(move |item| {
            let at = next;
            match item {
                LogItem::Entry(entry) => {
                    next += 1;
                    Some((at, entry))
                }
                LogItem::Omitted { count, .. } => {
                    next += count;
                    None
                }
            }
        })
    }

    /// Computes the root that entries and subtrees give; `None` where they do not fit the claimed size.
    pub fn root(&self) -> Option<Digest> {
        let mut peaks = Peaks::new();
        for item in &self.log {
            match item {
                LogItem::Entry(entry) => {
                    peaks.push(crate::merkle::leaf_hash(&entry.text()));
                }
                LogItem::Omitted { count, hashes } => {
                    let end = peaks.size().checked_add(*count)?;
                    let subtrees: Vec<_> = crate::merkle::cover(peaks.size()..end).collect();
                    let mut hashes = hashes.iter();
                    for subtree in subtrees {
                        peaks.push_subtree(subtree.level, *hashes.next()?).ok()?;
                    }
                    if hashes.next().is_some() {
                        return None;
                    }
                }
            }
        }
        (peaks.size() == self.size).then(|| peaks.root())
    }

    /// Writes the bundle. `split` says at which offsets a large text is cut into pieces; equal pieces are
    /// written once.
    pub fn write(&self, split: &dyn Fn(&[u8]) -> Vec<usize>) -> Vec<u8> {
        let mut out: Vec<u8> = self.head_lines().flatten().collect();
        let (mut writer, mut blobs) = (Writer::new(split), Vec::new());
        for record in &self.records {
            out.extend(writer.record(record, &mut |piece| blobs.extend(Writer::blob(piece))));
        }
        out.extend(blobs);
        out.extend(self.last_lines());
        out
    }

    /// Returns the lines before the records: the header and the log.
    pub fn head_lines(&self) -> impl Iterator<Item = Vec<u8>> {
        let head = [
            ("bundle", Value::from(1u64)),
            ("draft", Value::from(DRAFT)),
            ("key", Value::from(self.key.as_str())),
            ("records", Value::from(self.positions().count() as u64)),
            ("runs", Value::array(self.runs.iter().map(|run| Value::from(run.as_str())))),
            ("size", Value::from(self.size)),
            ("store", Value::from(self.store.to_string())),
        ];
        let although = Value::array(self.although.iter().map(|place| Value::from(place.as_str())));
        let although = (!self.although.is_empty()).then_some((ALTHOUGH, although));
        let head = Value::record(head.into_iter().chain(although));
        let log = self.log.iter().map(|item| match item {
            LogItem::Entry(entry) => [&entry.text()[..], b"\n"].concat(),
            LogItem::Omitted { count, hashes } => line(&Value::record([
                ("hashes", Value::array(hashes.iter().map(|hash| Value::from(hash.base64url())))),
                ("omitted", Value::from(*count)),
            ])),
        });
        std::iter::once(line(&head)).chain(log)
    }

    /// Returns the lines that end the file: the map, if there is one, and the checkpoint.
    pub fn last_lines(&self) -> Vec<u8> {
        let map = self.map.as_ref().map_or_else(Vec::new, |map| line(&map.to_value()));
        let checkpoint = line(&Value::record([("checkpoint", Value::from(self.checkpoint.as_str()))]));
        [map, checkpoint].concat()
    }

    /// Reads a bundle. Any byte that [`Bundle::write`] could not have written is an error, but for damage
    /// inside records and proofs, which [`Sealed::open`] and [`Bundle::root`] find and name.
    pub fn parse(text: &[u8]) -> Result<Bundle, BundleError> {
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        Bundle::read(&mut |line, _| {
            line.extend_from_slice(lines.next().unwrap_or_default());
            Ok(())
        })
    }

    /// As [`Bundle::parse`], of what is nowhere all at once. `next` appends the next line, with the byte that ends it, and
    /// nothing at the end. It need not append more bytes than it is told, [`LINE_MAX`] at most, and one more.
    pub fn read<E: From<BundleError>>(next: &mut NextLine<'_, E>) -> Result<Bundle, E> {
        let mut lines = Lines { source: next, line: Vec::new(), number: 0 };
        let head = lines.next()?.ok_or_else(|| BundleError::new(1, "the file is empty"))?;
        let (mut bundle, count) = read_head(&head)?;
        let mut covered = 0u64;
        let mut entries = 0usize;
        while covered < bundle.size {
            let value = lines.need("a log entry")?;
            let item = read_log_item(&value).map_err(|why| lines.error(why))?;
            let adjacent = matches!(
                (&item, bundle.log.last()),
                (LogItem::Omitted { .. }, Some(LogItem::Omitted { .. }))
            );
            if adjacent {
                return Err(lines.error("two stretches of omitted entries stand side by side").into());
            }
            let step = if let LogItem::Omitted { count, .. } = &item { *count } else { 1 };
            entries += usize::from(matches!(item, LogItem::Entry(_)));
            covered =
                covered.checked_add(step).ok_or_else(|| lines.error("more entries than a log can have"))?;
            bundle.log.push(item);
        }
        if covered != bundle.size || entries != count {
            return Err(lines.error("the log has not as many entries as the header says").into());
        }
        let mut uses = Vec::new();
        let mut records = Vec::new();
        for _ in 0..count {
            let value = lines.need("a record")?;
            let record = RawRecord::read(&value).map_err(|why| lines.error(why))?;
            let known = uses.len();
            uses.extend(record.fields.iter().filter_map(|field| field.blobs.as_ref()).flatten().copied());
            // A record without blobs is resolved at once, so that it is not kept in two forms.
            records.push(match uses.len() == known {
                true => Ok(record.resolve(&Pieces::default()).map_err(|why| lines.error(why))?),
                false => Err((record, lines.number)),
            });
        }
        let blobs = Pieces::new(read_blobs(&mut lines, &uses)?);
        let records = records.into_iter().map(|record| {
            record.or_else(|(raw, line)| raw.resolve(&blobs).map_err(|why| BundleError::new(line, why)))
        });
        bundle.records = records.collect::<Result<_, _>>()?;
        let mut last = lines.need("the checkpoint")?;
        if last.get("map").is_some() {
            bundle.map = Some(BundleMap::read(&last).ok_or_else(|| lines.error("not a line of a map"))?);
            last = lines.need("the checkpoint")?;
        }
        bundle.checkpoint = read_checkpoint(&last).map_err(|why| lines.error(why))?;
        if lines.advance()? {
            return Err(lines.error("there is something after the checkpoint").into());
        }
        Ok(bundle)
    }
}

fn parse_own(text: &[u8]) -> Value {
    json::parse_canonical(text).expect("what this crate writes is canonical")
}

fn read_head(value: &Value) -> Result<(Bundle, usize), BundleError> {
    let error = |why: &str| BundleError::new(1, why);
    // Any other whole number, of whatever size, says that this is not for this version to read.
    let is_whole = |version: &&Number| version.as_i64().is_some() || version.is_big();
    match value.get("bundle").and_then(Value::as_number).filter(is_whole) {
        Some(version) if version.as_u64() == Some(1) => {}
        Some(version) => {
            let why = format!("the bundle has format version {version}, and this program reads version 1");
            return Err(BundleError { line: 1, why, code: Code::E0803 });
        }
        None => return Err(error("not the header of a bundle")),
    }
    let draft = value.get("draft");
    if draft.and_then(Value::as_u64) != Some(DRAFT) {
        let found = draft.map_or_else(|| "none".to_owned(), Value::to_string);
        let why = format!(
            "it was made before the format was frozen: draft {found}, and this program reads draft {DRAFT}"
        );
        return Err(BundleError { line: 1, why, code: Code::E0811 });
    }
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let number = |name: &str| value.get(name).and_then(Value::as_u64);
    let runs = value
        .get("runs")
        .and_then(Value::as_array)
        .and_then(|runs| runs.iter().map(|run| run.as_str()?.parse().ok()).collect::<Option<Vec<RunName>>>());
    let read = || {
        let bundle = Bundle {
            store: text("store")?.parse().ok()?,
            key: text("key").filter(|key| key.parse::<VerifierKey>().is_ok())?.to_owned(),
            runs: runs?,
            although: read_although(value)?,
            size: number("size")?,
            log: Vec::new(),
            records: Vec::new(),
            map: None,
            checkpoint: String::new(),
        };
        Some((bundle, usize::try_from(number("records")?).ok()?))
    };
    match value.as_object() {
        Some(object) if object.len() == 7 + usize::from(object.get(ALTHOUGH).is_some()) => {
            let (bundle, records) =
                read().ok_or_else(|| error("a member of the header is not what it must be"))?;
            // Each run that is named begins with a record. No digest covers the names, so they could be any number.
            let names: BTreeSet<&RunName> = bundle.runs.iter().collect();
            if bundle.runs.len() > records.max(1) || names.len() < bundle.runs.len() {
                return Err(error("the header names more runs than there are records, or one of them twice"));
            }
            Ok((bundle, records))
        }
        _ => Err(error(
            "the header has exactly the members bundle, draft, key, records, runs, size and store, and may have although",
        )),
    }
}

/// Reads the line of the checkpoint. Its text must have the form of one; whether the signature holds is found later.
fn read_checkpoint(line: &Value) -> Result<String, String> {
    let only = line.as_object().filter(|object| object.len() == 1);
    let text = only.and_then(|object| object.get("checkpoint")?.as_str()).ok_or("not a checkpoint line")?;
    let wrong = |error: NoteError| format!("not a checkpoint: {error}");
    let note = SignedNote::parse(text.as_bytes()).map_err(wrong)?;
    Checkpoint::parse(note.text()).map_err(wrong)?;
    Ok(text.to_owned())
}

/// Reads the fields that stay; none where the member is absent. An empty list is never written.
fn read_although(value: &Value) -> Option<Vec<String>> {
    let Some(listed) = value.get(ALTHOUGH) else { return Some(Vec::new()) };
    let listed = listed.as_array()?.iter().map(|place| place.as_str().map(str::to_owned));
    listed.collect::<Option<Vec<String>>>().filter(|listed| !listed.is_empty())
}

fn read_log_item(value: &Value) -> Result<LogItem, String> {
    let Some(omitted) = value.get("omitted") else {
        let entry = Entry::parse(&json::to_vec(value)).map_err(|error| error.to_string())?;
        return Ok(LogItem::Entry(entry));
    };
    let hashes = value.get("hashes").and_then(Value::as_array).and_then(|hashes| {
        hashes.iter().map(|hash| Digest::from_base64url(hash.as_str()?)).collect::<Option<Vec<_>>>()
    });
    match (omitted.as_u64(), hashes, value.as_object()) {
        (Some(count @ 1..), Some(hashes), Some(object)) if object.len() == 2 => {
            Ok(LogItem::Omitted { count, hashes })
        }
        _ => Err("not a stretch of omitted entries".to_owned()),
    }
}

struct Lines<'s, E> {
    source: &'s mut NextLine<'s, E>,
    line: Vec<u8>,
    number: usize,
}

impl<E: From<BundleError>> Lines<'_, E> {
    fn error(&self, why: impl Into<String>) -> BundleError {
        BundleError::new(self.number, why)
    }

    /// How long the next line may be.
    fn longest(&self) -> usize {
        if self.number == 0 { HEAD_MAX } else { LINE_MAX }
    }

    /// Advances to the next line; returns false at the end.
    fn advance(&mut self) -> Result<bool, E> {
        self.line.clear();
        let longest = self.longest();
        (self.source)(&mut self.line, longest)?;
        self.number += usize::from(!self.line.is_empty());
        Ok(!self.line.is_empty())
    }

    fn next(&mut self) -> Result<Option<Value>, E> {
        let longest = self.longest();
        if !self.advance()? {
            return Ok(None);
        }
        if self.line.len() > longest {
            return Err(self.error(format!("the line is longer than {longest} bytes")).into());
        }
        let Some((b'\n', line)) = self.line.split_last() else {
            return Err(self.error("the line does not end: the file is cut short").into());
        };
        let value = json::parse_canonical(line);
        Ok(Some(value.map_err(|error: JsonError| self.error(error.to_string()))?))
    }

    fn need(&mut self, what: &str) -> Result<Value, E> {
        let value = self.next()?;
        let missing = || BundleError::new(self.number + 1, format!("the file ends where {what} is expected"));
        Ok(value.ok_or_else(missing)?)
    }
}

/// Writes the lines of records and of the pieces of their large values, for a caller that does not hold them all at once.
/// Keeps a digest for each piece.
pub struct Writer<'s> {
    split: &'s dyn Fn(&[u8]) -> Vec<usize>,
    known: std::collections::BTreeMap<Digest, usize>,
}

impl<'s> Writer<'s> {
    /// Begins before the first record. `split` says at which offsets a large text is cut into pieces.
    pub fn new(split: &'s dyn Fn(&[u8]) -> Vec<usize>) -> Writer<'s> {
        Writer { split, known: std::collections::BTreeMap::new() }
    }

    /// Returns the line of the next record. `fresh` is handed each piece that no record before it has: behind the records
    /// there is a [line](Writer::blob) for each, in this order.
    pub fn record(&mut self, record: &Sealed, fresh: &mut dyn FnMut(&[u8])) -> Vec<u8> {
        let mut values = Vec::new();
        let mut chunked = Vec::new();
        let mut salts = Vec::new();
        for field in &record.fields {
            let name = field.pointer.as_str();
            let Some(text) = field.text.as_ref().map(Text::whole) else { continue };
            salts.extend(field.salt.map(|salt| (name, Value::from(salt.base64url()))));
            if text.len() <= INLINE_MAX {
                values.push((name, parse_own(&text)));
                continue;
            }
            let mut start = 0;
            let mut pieces = Vec::new();
            for end in (self.split)(&text).into_iter().chain([text.len()]) {
                if end > start {
                    pieces.push(Value::from(self.number(&text[start..end], fresh) as u64));
                    start = end;
                }
            }
            chunked.push((name, Value::array(pieces)));
        }
        let mut members = vec![("header", parse_own(&record.header_text)), ("values", Value::record(values))];
        if !chunked.is_empty() {
            members.push(("chunked", Value::record(chunked)));
        }
        match record.seed {
            Some(seed) => members.push(("seed", Value::from(seed.base64url()))),
            None => members.push(("salts", Value::record(salts))),
        }
        line(&Value::record(members))
    }

    fn number(&mut self, piece: &[u8], fresh: &mut dyn FnMut(&[u8])) -> usize {
        let next = self.known.len();
        *self.known.entry(Digest::of(piece)).or_insert_with(|| {
            fresh(piece);
            next
        })
    }

    /// Returns the line of a piece of a large value.
    pub fn blob(piece: &[u8]) -> Vec<u8> {
        line(&Value::record([("blob", Value::from(encode_base64url(piece)))]))
    }
}

fn line(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    json::write(value, &mut out);
    out.push(b'\n');
    out
}

struct RawRecord {
    header_text: Vec<u8>,
    seed: Option<Seed>,
    fields: Vec<RawField>,
}

struct RawField {
    pointer: Pointer,
    digest: Digest,
    salt: Option<Salt>,
    text: Option<Vec<u8>>,
    blobs: Option<Vec<usize>>,
}

impl RawRecord {
    fn read(value: &Value) -> Result<RawRecord, String> {
        let object = value.as_object().ok_or("a record is an object")?;
        let member = |name: &str| object.get(name);
        let header_text = json::to_vec(member("header").ok_or("a record has a header")?);
        let (_, digests) = Header::parse_with_digests(&header_text).map_err(|error| error.to_string())?;
        let seed = member("seed")
            .map(|seed| seed.as_str().and_then(Seed::from_base64url).ok_or("the seed is not one"));
        let salts = member("salts").map(|salts| salts.as_object().ok_or("salts is an object"));
        let values = member("values").and_then(Value::as_object).ok_or("a record has values")?;
        let chunked =
            member("chunked").map(|c| c.as_object().filter(|c| !c.is_empty()).ok_or("chunked is an object"));
        let (seed, salts, chunked) = (seed.transpose()?, salts.transpose()?, chunked.transpose()?);
        if seed.is_some() == salts.is_some() {
            return Err("a record has either a seed or salts".into());
        }
        let expected = 3 + usize::from(chunked.is_some());
        if object.len() != expected {
            return Err(
                "a record has header, values, seed or salts, and chunked where values are large".into()
            );
        }
        let mut open = 0;
        let mut fields = Vec::with_capacity(digests.len());
        for (pointer, digest) in digests {
            let name = pointer.as_str();
            let text = values.get(name).map(json::to_vec);
            let blobs = chunked.and_then(|chunked| chunked.get(name)).map(read_indexes).transpose()?;
            let salt = salts.and_then(|salts| salts.get(name));
            let salt = salt
                .map(|salt| salt.as_str().and_then(Salt::from_base64url).ok_or("a salt is not one"))
                .transpose()?;
            let is_open = text.is_some() || blobs.is_some();
            if text.is_some() && blobs.is_some() {
                return Err(format!("{name} stands both in values and in chunked"));
            }
            if text.as_ref().is_some_and(|text| text.len() > INLINE_MAX) {
                return Err(format!("{name} is too large to stand in values"));
            }
            if seed.is_some() && !is_open {
                return Err(format!("the value at {name} is missing, and the seed is there"));
            }
            if seed.is_none() && salt.is_some() != is_open {
                return Err(format!("{name} has a salt without a value, or a value without a salt"));
            }
            open += usize::from(is_open);
            fields.push(RawField { pointer, digest, salt, text, blobs });
        }
        if open != values.len() + chunked.map_or(0, |chunked| chunked.len())
            || salts.is_some_and(|salts| salts.len() != open)
        {
            return Err("there is a value or a salt that the header does not commit to".into());
        }
        // The salts follow from the seed, so that a record with both would have two spellings.
        if salts.is_some() && open == fields.len() {
            return Err("every value is here, so the seed is due in place of salts".into());
        }
        Ok(RawRecord { header_text, seed, fields })
    }

    /// The same blob may stand in a value many times over, and in many values, so a short line can ask for much: what
    /// they would be is known before any is made.
    fn check_sizes(&self, blobs: &Pieces) -> Result<(), String> {
        let mut whole = 0;
        for field in &self.fields {
            let mut size = field.text.as_ref().map_or(0, Vec::len);
            for index in field.blobs.iter().flatten() {
                size += blobs[*index].len();
                if size > json::VALUE_SIZE_MAX {
                    return Err(format!("{} has more than {} bytes", field.pointer, json::VALUE_SIZE_MAX));
                }
            }
            whole += size;
            if whole > json::RECORD_SIZE_MAX {
                let max = json::RECORD_SIZE_MAX;
                return Err(format!("the values of the record have more than {max} bytes together"));
            }
        }
        Ok(())
    }

    fn resolve(self, blobs: &Pieces) -> Result<Sealed, String> {
        self.check_sizes(blobs)?;
        let resolve = |field: RawField| {
            let text = match (field.text, field.blobs) {
                (None, Some(indexes)) => {
                    let text = Text::Pieces(Arc::clone(blobs), indexes);
                    if text.len() <= INLINE_MAX {
                        return Err(format!("{} is too small to stand in blobs", field.pointer));
                    }
                    json::check_canonical(&text.whole())
                        .map_err(|error| format!("{}: {error}", field.pointer))?;
                    Some(text)
                }
                (text, _) => text.map(Text::Own),
            };
            Ok(SealedField { pointer: field.pointer, digest: field.digest, salt: field.salt, text })
        };
        let fields = self.fields.into_iter().map(resolve).collect::<Result<_, String>>()?;
        Ok(Sealed { header_text: self.header_text, seed: self.seed, fields })
    }
}

fn read_indexes(value: &Value) -> Result<Vec<usize>, String> {
    let indexes = value.as_array().filter(|items| !items.is_empty()).and_then(|items| {
        items.iter().map(|item| usize::try_from(item.as_u64()?).ok()).collect::<Option<Vec<_>>>()
    });
    indexes.ok_or_else(|| "a chunked value is a list of blob numbers".to_owned())
}

/// Reads as many blobs as the records use, which must use them first in the order in which they stand.
fn read_blobs<E: From<BundleError>>(lines: &mut Lines<'_, E>, uses: &[usize]) -> Result<Vec<Vec<u8>>, E> {
    let mut count = 0;
    for index in uses {
        match index.cmp(&count) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => count += 1,
            std::cmp::Ordering::Greater => {
                return Err(lines.error("blobs are not numbered in the order of their first use").into());
            }
        }
    }
    let mut blobs: Vec<Vec<u8>> = Vec::new();
    for _ in 0..count {
        let value = lines.need("a blob")?;
        let blob = value
            .as_object()
            .filter(|object| object.len() == 1)
            .and_then(|object| decode_base64url(object.get("blob")?.as_str()?));
        let blob = blob.filter(|blob| !blob.is_empty());
        blobs.push(blob.ok_or_else(|| lines.error("not a blob"))?);
    }
    let mut sorted: Vec<&Vec<u8>> = blobs.iter().collect();
    sorted.sort();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(lines.error("the same blob stands twice").into());
    }
    Ok(blobs)
}

#[cfg(test)]
mod tests;
