//! Records: a small canonical header that commits to every field of its content; the id is its digest.
//!
//! Each field is committed by itself with a salt (SD-JWT disclosures, RFC 9901 4.2), so any value can be erased
//! or withheld later and the record still verifies. Salts derive from one random seed per record.
//!
//! A [`Record`] is always consistent: it is made only by [`Record::seal`], which computes digests and id from the
//! values, so a reader seals it again and compares the id.
//!
//! Rule: there is no way to set an id; test `no_byte_can_change_unseen`.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::Code;
use crate::delta::Delta;
use crate::digest::{Base64Batch, Digest, decode_base64url, encode_base64url};
use crate::json::{self, JsonError, VALUE_SIZE_MAX};
use crate::name::{RunName, StoreId, TypeName};
use crate::pointer::Pointer;
use crate::time::Timestamp;
use crate::value::{Object, Value, compare_names};

mod content;
mod text;

pub use content::{content_from_fields, cut};
pub use text::HeaderTextError;

/// The version of the format that this code writes, in every header as `v`.
pub const FORMAT_VERSION: u64 = 1;

/// How many links a record may have.
pub const LINKS_MAX: usize = 256;

/// How many fields a record may have.
pub const FIELDS_MAX: usize = 1024;

const ID_TAG: &[u8] = b"dendrer/record/v1\n";
const SALT_TAG: &[u8] = b"dendrer/salt/v1\n";

/// 16 random bytes from which the salts of one record derive. Who has the seed and a digest can test guesses of
/// the value, so the seed goes when a value is erased.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub [u8; 16]);

/// The salt of one field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt(pub [u8; 16]);

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(..)")
    }
}

impl Seed {
    /// Derives the salts of the first `count` fields, in the order of the header (`docs/format.md`, "Fields").
    /// Each digest gives two salts.
    pub fn salts(&self, count: usize) -> Vec<Salt> {
        let preimages: Vec<[u8; 36]> = self.preimages(count).collect();
        let digests = Digest::of_each(&preimages.iter().map(|preimage| &preimage[..]).collect::<Vec<_>>());
        digests.into_iter().flat_map(Salt::pair).take(count).collect()
    }

    /// Returns the preimages of the salts of `count` fields; one preimage gives two salts.
    fn preimages(&self, count: usize) -> impl Iterator<Item = [u8; 36]> + use<> {
        let seed = self.0;
        (0..count.div_ceil(2) as u32).map(move |pair| {
            let mut preimage = [0; 36];
            preimage[..16].copy_from_slice(SALT_TAG);
            preimage[16..32].copy_from_slice(&seed);
            preimage[32..].copy_from_slice(&pair.to_be_bytes());
            preimage
        })
    }
}

crate::words! {
    /// The kind of a record.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Kind {
        /// A run begins; tick 0, or in a fork no tick.
        Run = "run",
        /// A transition; its ticks run from 1 without gaps.
        Transition = "transition",
        /// An intent or import that was turned down, kept beside the run.
        Refusal = "refusal",
        /// A pack or predicate was registered.
        Register = "register",
        /// A value was erased.
        Erase = "erase",
        /// A key of the log begins or ends.
        Key = "key",
        /// A run is closed.
        End = "end",
        /// The records of each run are counted.
        Map = "map",
    }
}

crate::words! {
    /// The kind of author. The name of an agent or a person is a field, so that it can be erased.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Author {
        /// A model, through its agent.
        Agent = "agent",
        /// The program that runs the agents: tool results, policy decisions.
        Runtime = "runtime",
        /// A person, in their own words.
        User = "user",
        /// dendrer itself.
        Kernel = "kernel",
        /// People, with an approval.
        Institution = "institution",
    }
}

crate::words! {
    /// The relation of a record to the target of a link.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Rel {
        /// The linked record asked for this one or caused it.
        CausedBy = "caused_by",
        /// This record depends on the linked one.
        Evidence = "evidence",
        /// This run branched off there.
        ForkOf = "fork_of",
        /// This takes a concurrent branch in.
        Merges = "merges",
        /// This was imported from there.
        PickedFrom = "picked_from",
        /// The same agent's record before this one. Left out where that is `prev`.
        Predecessor = "predecessor",
    }
}

/// A typed edge to an earlier record of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// The relation to the target.
    pub rel: Rel,
    /// The id of the target.
    pub hash: Digest,
}

/// Everything in a header but the digests of the fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The store that the record belongs to.
    pub store: StoreId,
    /// The kind of record.
    pub kind: Kind,
    /// The run, where it belongs to one.
    pub run: Option<RunName>,
    /// The place in the run, where it has one.
    pub tick: Option<u64>,
    /// The record before this one in the chain.
    pub prev: Option<Digest>,
    /// For a record without a place in the chain: the newest chain record it was made against.
    pub head: Option<Digest>,
    /// The type of a transition, or the one a refused intent asked for.
    pub type_name: Option<TypeName>,
    /// The kind of author.
    pub author: Author,
    /// When it was committed. Tamper-evident, but no diff, predicate or reducer sees it.
    pub ts: Timestamp,
    /// Edges to earlier records, sorted, without repeats.
    pub links: Vec<Link>,
    /// The TaskPack in force.
    pub pack: Option<Digest>,
}

/// One field: its place, its commitment, and its value unless that was erased or withheld.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Place of the value in the content.
    pub pointer: Pointer,
    /// The commitment in the header.
    pub digest: Digest,
    salt: Option<Salt>,
    text: Option<Range<usize>>,
}

/// The committed content of a record: the part that needs no header and can be computed before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    fields: Vec<Field>,
    values: Vec<u8>,
    /// `None` once a value of the record was erased or withheld.
    seed: Option<Seed>,
}

/// Places and ranges of texts, the texts, and the seed: what a body is made of.
pub type TextsOfBody = (Vec<(Pointer, Range<usize>)>, Vec<u8>, Seed);

/// A header and content on their way to becoming a record: checked and written out, not yet hashed. It has no id,
/// and its header can still be told what comes before it.
#[derive(Debug)]
pub struct Draft {
    /// The header; `prev`, `head` and links are set when the record before it is known.
    pub header: Header,
    texts: TextsOfBody,
}

impl Draft {
    /// Writes content out, cut into fields as [`cut`] does.
    pub fn new(header: Header, content: &Object, seed: Seed) -> Result<Draft, SealError> {
        let (texts, values) = write_texts(content::places(content))?;
        // Fields are cut in order, so only their number can be wrong.
        debug_assert_eq!(
            check_order(texts.iter().map(|(pointer, _)| pointer)).err(),
            too_many(texts.len()).err()
        );
        too_many(texts.len())?;
        Ok(Draft { header, texts: (texts, values, seed) })
    }

    /// Computes the commitments of several drafts at once, which costs less than one after the other. [`Record::seal`] is left
    /// to do.
    pub fn commit_each(drafts: Vec<Draft>) -> Vec<(Header, Body)> {
        let (headers, texts): (Vec<Header>, Vec<TextsOfBody>) =
            drafts.into_iter().map(|draft| (draft.header, draft.texts)).unzip();
        headers.into_iter().zip(Body::of_checked_each(texts)).collect()
    }
}

/// One field of a body that is rebuilt from its parts.
pub enum Part<'a> {
    /// The canonical text of the value, and the salt unless the record's seed gives it.
    Open(&'a [u8], Option<Salt>),
    /// Only the commitment.
    Closed(Digest),
}

/// A sealed record. Cloning is cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct Record(Arc<Inner>);

#[derive(PartialEq, Eq)]
struct Inner {
    header: Header,
    body: Body,
    header_text: Vec<u8>,
    id: Digest,
}

/// Why content or a header cannot be sealed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// A value is too large.
    #[error("the value at {pointer} has {size} bytes; at most {VALUE_SIZE_MAX} are accepted")]
    ValueTooLarge {
        /// Place of the value.
        pointer: Pointer,
        /// Its canonical size.
        size: usize,
    },
    /// There are too many fields.
    #[error("{0} fields are more than the {FIELDS_MAX} a record may have")]
    TooManyFields(usize),
    /// Fields out of order, repeated, or one inside another.
    #[error("the field {0} repeats, is out of order, or lies inside another")]
    FieldOrder(Pointer),
    /// The header does not fit its kind.
    #[error("a {kind} record {rule}")]
    Shape {
        /// The kind of the record.
        kind: Kind,
        /// The rule that does not hold.
        rule: &'static str,
    },
    /// A value is not canonical text.
    #[error("the value at {pointer}: {error}")]
    Value {
        /// Place of the value.
        pointer: Pointer,
        /// The error of the JSON reader.
        error: JsonError,
    },
    /// Neither the seed nor the field gives a salt for a value.
    #[error("the value at {0} has no salt")]
    NoSalt(Pointer),
}

impl SealError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            SealError::ValueTooLarge { .. } => Code::E0205,
            SealError::TooManyFields(_) => Code::E0211,
            _ => Code::E0306,
        }
    }
}

/// A body that is put together field by field, so that the caller need not have all values at once.
pub(crate) struct Gathered {
    body: Body,
    salts: Option<Vec<Salt>>,
}

impl Gathered {
    /// Begins a body of so many fields.
    pub(crate) fn new(count: usize, seed: Option<Seed>) -> Gathered {
        let body = Body { fields: Vec::with_capacity(count), values: Vec::new(), seed };
        Gathered { body, salts: seed.map(|seed| seed.salts(count)) }
    }

    /// Takes the next field, and returns its digest.
    pub(crate) fn push(&mut self, pointer: Pointer, part: Part<'_>) -> Result<Digest, SealError> {
        let Body { fields, values, .. } = &mut self.body;
        let field = match part {
            Part::Closed(digest) => Field { pointer, digest, salt: None, text: None },
            Part::Open(text, own) => {
                let derived = self.salts.as_ref().map(|salts| salts[fields.len()]);
                let Some(salt) = own.or(derived) else { return Err(SealError::NoSalt(pointer)) };
                if text.len() > VALUE_SIZE_MAX {
                    return Err(SealError::ValueTooLarge { pointer, size: text.len() });
                }
                if let Err(error) = json::check_canonical(text) {
                    return Err(SealError::Value { pointer, error });
                }
                let digest = disclosure_digest(&salt, &pointer, text);
                let start = values.len();
                values.extend_from_slice(text);
                Field { pointer, digest, salt: own, text: Some(start..values.len()) }
            }
        };
        let digest = field.digest;
        fields.push(field);
        Ok(digest)
    }

    /// Ends it.
    pub(crate) fn body(self) -> Result<Body, SealError> {
        self.body.check_order()?;
        Ok(self.body)
    }
}

impl Body {
    /// Commits to content, a sorted list of places and values as [`cut`] gives it.
    pub fn commit(content: Vec<(Pointer, Value)>, seed: Seed) -> Result<Body, SealError> {
        let (texts, values) = write_texts(content)?;
        Body::of_texts(texts, values, seed)
    }

    /// Commits to values given as canonical text, each a range of `values`.
    /// The texts are taken as canonical: check those that come from outside first.
    pub fn of_texts(
        texts: Vec<(Pointer, Range<usize>)>,
        values: Vec<u8>,
        seed: Seed,
    ) -> Result<Body, SealError> {
        Body::of_texts_each(vec![(texts, values, seed)]).pop().expect("one for one")
    }

    /// As [`Body::of_texts`], for several at once, which costs less than one after the other.
    pub fn of_texts_each(items: Vec<TextsOfBody>) -> Vec<Result<Body, SealError>> {
        let bodies = Body::of_checked_each(items);
        bodies.into_iter().map(|body| body.check_order().map(|()| body)).collect()
    }

    /// As [`Body::of_texts_each`], where the order of the fields is known to be right.
    fn of_checked_each(items: Vec<TextsOfBody>) -> Vec<Body> {
        // Enough fields to fill the lanes in which they are hashed, few enough for their texts to stay in the nearest
        // memory.
        const AT_ONCE: usize = 16;
        let mut bodies = Vec::with_capacity(items.len());
        let mut items = items.into_iter();
        let mut room = Room::default();
        while items.len() > 0 {
            bodies.extend(Body::of_few(items.by_ref().take(AT_ONCE).collect(), &mut room));
        }
        bodies
    }

    fn of_few(items: Vec<TextsOfBody>, room: &mut Room) -> impl Iterator<Item = Body> + use<> {
        let Room { salts: salt_texts, disclosures, texts: [salt_room, disclosure_room] } = room;
        let preimages: Vec<[u8; 36]> =
            items.iter().flat_map(|(texts, _, seed)| seed.preimages(texts.len())).collect();
        let salts = Digest::of_each(&preimages.iter().map(|preimage| &preimage[..]).collect::<Vec<_>>());
        let count = items.iter().map(|(texts, ..)| texts.len()).sum();
        salt_texts.clear(count * 16, count);
        let mut pairs = salts.into_iter();
        for (texts, ..) in &items {
            // One digest for two fields; an odd field leaves half of one over.
            let salts = pairs.by_ref().take(texts.len().div_ceil(2)).flat_map(Salt::pair);
            salts.take(texts.len()).for_each(|salt| salt_texts.push(|out| out.extend_from_slice(&salt.0)));
        }
        let mut salts = salt_texts.encode(salt_room);
        let size: usize = items.iter().map(|(texts, values, _)| values.len() + texts.len() * 48).sum();
        disclosures.clear(size, count);
        for (texts, values, _) in &items {
            for (pointer, text) in texts {
                let salt = salts.next().expect("one for each field");
                disclosures.push(|out| write_disclosed(salt, pointer, &values[text.clone()], out));
            }
        }
        let disclosures: Vec<&[u8]> = disclosures.encode(disclosure_room).collect();
        let mut digests = Digest::of_each(&disclosures).into_iter();
        items.into_iter().map(move |(texts, values, seed)| {
            let fields = texts.into_iter().map(|(pointer, text)| {
                let digest = digests.next().expect("one for each field");
                Field { pointer, digest, salt: None, text: Some(text) }
            });
            Body { fields: fields.collect(), values, seed: Some(seed) }
        })
    }

    /// Puts a body together from what is left of its fields, checking that open values are canonical.
    pub fn of_parts(parts: Vec<(Pointer, Part<'_>)>, seed: Option<Seed>) -> Result<Body, SealError> {
        let mut gathered = Gathered::new(parts.len(), seed);
        for (pointer, part) in parts {
            gathered.push(pointer, part)?;
        }
        gathered.body()
    }

    fn check_order(&self) -> Result<(), SealError> {
        check_order(self.fields.iter().map(|field| &field.pointer))
    }

    /// Returns the fields in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the seed, unless a value was erased or withheld.
    pub fn seed(&self) -> Option<Seed> {
        self.seed
    }

    /// Returns the canonical text of a field's value, unless it was erased or withheld.
    pub fn text(&self, field: &Field) -> Option<&[u8]> {
        Some(&self.values[field.text.clone()?])
    }

    /// Returns the salt of the field at `index`, given or derived.
    pub fn salt(&self, index: usize) -> Option<Salt> {
        self.fields[index].salt.or_else(|| Some(self.seed?.salts(index + 1)[index]))
    }

    /// Returns the value at a field's pointer: `None` if there is no such field, or its value is gone.
    pub fn value(&self, pointer: &str) -> Option<Value> {
        let field = self.fields.iter().find(|field| field.pointer.as_str() == pointer)?;
        Some(json::parse_canonical(self.text(field)?).expect("texts of a body are canonical"))
    }

    /// Returns the same body without the values at `withheld`: commitments stay, the seed goes, every other field keeps its own
    /// salt. The result is the body after an erasure, and the body that an auditor may be given.
    pub fn without(&self, withheld: &[Pointer]) -> Body {
        let salts: Vec<_> = (0..self.fields.len()).map(|index| self.salt(index)).collect();
        let mut values = Vec::new();
        let fields = self.fields.iter().zip(salts).map(|(field, salt)| {
            let text =
                self.text(field).filter(|_| !withheld.iter().any(|place| place.contains(&field.pointer)));
            let text = text.map(|text| {
                let start = values.len();
                values.extend_from_slice(text);
                start..values.len()
            });
            Field { salt: salt.filter(|_| text.is_some()), text, ..field.clone() }
        });
        let fields = fields.collect();
        Body { fields, values, seed: None }
    }
}

/// Buffers for bodies, kept for the next group: to free and allocate them again is slow.
#[derive(Default)]
struct Room {
    salts: Base64Batch,
    disclosures: Base64Batch,
    texts: [Vec<u8>; 2],
}

/// Places with the ranges of their texts, and the texts.
type Texts = (Vec<(Pointer, Range<usize>)>, Vec<u8>);

/// Writes the canonical texts of content one after the other.
fn write_texts<V: Borrow<Value>>(content: Vec<(Pointer, V)>) -> Result<Texts, SealError> {
    let room = content.iter().map(|(_, value)| size_at_least(value.borrow())).sum();
    let mut values = Vec::with_capacity(room);
    let mut texts = Vec::with_capacity(content.len());
    for (pointer, value) in content {
        let start = values.len();
        json::write(value.borrow(), &mut values);
        if values.len() - start > VALUE_SIZE_MAX {
            return Err(SealError::ValueTooLarge { pointer, size: values.len() - start });
        }
        texts.push((pointer, start..values.len()));
    }
    Ok((texts, values))
}

/// Returns about how long a text gets, without walking deep: what room is worth setting aside.
fn size_at_least(value: &Value) -> usize {
    let shallow = |value: &Value| 16 + value.as_str().map_or(0, str::len);
    match value {
        Value::Object(members) => {
            members.entries().map(|entry| entry.key.len() + 4 + shallow(&entry.value)).sum()
        }
        value => shallow(value),
    }
}

fn too_many(fields: usize) -> Result<(), SealError> {
    if fields > FIELDS_MAX { Err(SealError::TooManyFields(fields)) } else { Ok(()) }
}

/// Fields are sorted, none repeats, none lies inside another, and none is the whole content.
fn check_order<'p>(pointers: impl ExactSizeIterator<Item = &'p Pointer>) -> Result<(), SealError> {
    too_many(pointers.len())?;
    let mut seen: Vec<&str> = Vec::with_capacity(pointers.len());
    for pointer in pointers {
        let text = pointer.as_str();
        let follows = seen.last().is_none_or(|before| compare_names(before, text).is_lt());
        if !follows || text.is_empty() || lies_inside(text, &seen) {
            return Err(SealError::FieldOrder(pointer.clone()));
        }
        seen.push(text);
    }
    Ok(())
}

/// Tells whether a place lies inside one of those that sort before it, which need not be the last: `/a!` sorts
/// between `/a` and `/a/b`.
fn lies_inside(text: &str, seen: &[&str]) -> bool {
    let ends = text.bytes().enumerate().skip(1).filter(|(_, byte)| *byte == b'/').map(|(at, _)| at);
    ends.into_iter().any(|at| seen.binary_search_by(|field| compare_names(field, &text[..at])).is_ok())
}

/// Returns the disclosure of a field, the text whose digest commits to it (RFC 9901 4.2.1).
pub fn disclosure(salt: &Salt, pointer: &Pointer, text: &[u8]) -> String {
    let mut array = Vec::with_capacity(text.len() + 64);
    write_disclosed(salt.base64url().as_bytes(), pointer, text, &mut array);
    encode_base64url(&array)
}

/// Appends the array that a disclosure encodes.
fn write_disclosed(salt: &[u8], pointer: &Pointer, text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"[\"");
    out.extend_from_slice(salt);
    out.extend_from_slice(b"\",");
    json::write_string(pointer.as_str(), out);
    out.push(b',');
    out.extend_from_slice(text);
    out.push(b']');
}

fn disclosure_digest(salt: &Salt, pointer: &Pointer, text: &[u8]) -> Digest {
    Digest::of(disclosure(salt, pointer, text).as_bytes())
}

impl Header {
    fn check_shape(&self) -> Result<(), SealError> {
        let chained = (self.tick, self.prev);
        let fits = match self.kind {
            Kind::Transition => {
                self.run.is_some()
                    && matches!(chained, (Some(1..), Some(_)))
                    && self.head.is_none()
                    && self.type_name.is_some()
            }
            Kind::Run => {
                self.run.is_some()
                    && matches!(chained, (Some(0), None) | (None, Some(_)))
                    && self.head.is_none()
                    && self.type_name.is_none()
            }
            Kind::Refusal => self.run.is_some() && chained == (None, None) && self.head.is_some(),
            Kind::End => {
                self.run.is_some()
                    && chained == (None, None)
                    && self.head.is_some()
                    && self.type_name.is_none()
            }
            Kind::Register | Kind::Erase | Kind::Key => chained == (None, None) && self.type_name.is_none(),
            Kind::Map => {
                self.run.is_none()
                    && chained == (None, None)
                    && self.head.is_none()
                    && self.type_name.is_none()
            }
        };
        let rule = match self.kind {
            Kind::Transition => "has run, type, prev and a tick from 1, and no head",
            Kind::Run => "has a run and either tick 0 or, in a fork, prev; no head and no type",
            Kind::Refusal => "has a run and a head, and neither tick nor prev",
            Kind::End => "has a run and a head, and neither tick, prev nor type",
            Kind::Register | Kind::Erase | Kind::Key => "has neither tick, prev nor type",
            Kind::Map => "has neither run, tick, prev, head nor type",
        };
        let shape = |rule| Err(SealError::Shape { kind: self.kind, rule });
        if !fits {
            return shape(rule);
        }
        if self.links.len() > LINKS_MAX {
            return shape("has at most 256 links");
        }
        if !self.links.windows(2).all(|pair| pair[0] < pair[1]) {
            return shape("has its links sorted and without repeats");
        }
        if self.tick.is_some_and(|tick| tick > crate::number::SAFE_INTEGER_MAX) {
            return shape("has a tick within 2^53-1");
        }
        Ok(())
    }
}

impl Record {
    /// Seals a header and a body: from here on the id binds both.
    pub fn seal(header: Header, body: Body) -> Result<Record, SealError> {
        header.check_shape()?;
        let mut header_text = Vec::with_capacity(512 + body.fields.len() * 72);
        text::write_header(&header, &body, &mut header_text);
        let id = Digest::of_parts(&[ID_TAG, &header_text]);
        Ok(Record(Arc::new(Inner { header, body, header_text, id })))
    }

    /// As [`Record::seal`], for several at once whose headers are complete, which costs less than one after the other.
    pub fn seal_each(parts: Vec<(Header, Body)>) -> Vec<Result<Record, SealError>> {
        let texts: Vec<Vec<u8>> = parts
            .iter()
            .map(|(header, body)| {
                let mut text = Vec::with_capacity(512 + body.fields.len() * 72);
                text::write_header(header, body, &mut text);
                text
            })
            .collect();
        let ids = Digest::of_each_behind(ID_TAG, &texts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let records = parts.into_iter().zip(texts).zip(ids).map(|(((header, body), header_text), id)| {
            header.check_shape()?;
            Ok(Record(Arc::new(Inner { header, body, header_text, id })))
        });
        records.collect()
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.0.header
    }

    /// Returns the committed content.
    pub fn body(&self) -> &Body {
        &self.0.body
    }

    /// Returns the canonical header with the digests of the fields: what the id is the digest of.
    pub fn header_text(&self) -> &[u8] {
        &self.0.header_text
    }

    /// Returns the id: `SHA-256("dendrer/record/v1\n" || header)`.
    pub fn id(&self) -> Digest {
        self.0.id
    }

    /// Returns the entry of the store's log: canonical JSON of hash, kind, run and tick.
    pub fn entry(&self) -> Vec<u8> {
        self.log_entry().text()
    }

    /// Returns the entry of the store's log.
    pub fn log_entry(&self) -> Entry {
        let header = &self.0.header;
        Entry { hash: self.0.id, kind: header.kind, run: header.run.clone(), tick: header.tick }
    }

    /// Returns the same record with some values withheld. The id stays.
    pub fn without(&self, withheld: &[Pointer]) -> Record {
        Record(Arc::new(Inner {
            header: self.0.header.clone(),
            body: self.0.body.without(withheld),
            header_text: self.0.header_text.clone(),
            id: self.0.id,
        }))
    }

    /// Returns the content as one value; what was erased or withheld is missing there.
    pub fn content(&self) -> Value {
        content_from_fields(&self.0.body)
    }

    /// Returns the change of the state that it made; `None` if it made none, or if that was erased or withheld.
    pub fn delta(&self) -> Option<Delta> {
        Delta::from_value(&self.0.body.value("/delta")?).ok()
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({} {})", self.0.id.short(), String::from_utf8_lossy(&self.0.header_text))
    }
}

/// A leaf of the store's log: enough for a monitor to see order, gaps and repeats without any payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The id of the record.
    pub hash: Digest,
    /// The kind of record.
    pub kind: Kind,
    /// Its run.
    pub run: Option<RunName>,
    /// Its tick.
    pub tick: Option<u64>,
}

impl Entry {
    /// Returns the canonical text.
    pub fn text(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(160);
        self.write(&mut out);
        out
    }

    /// Appends the canonical text.
    pub fn write(&self, out: &mut Vec<u8>) {
        text::write_entry(self, out);
    }
}

impl Salt {
    /// The two salts in one digest.
    fn pair(digest: Digest) -> [Salt; 2] {
        let half = |range: Range<usize>| Salt(digest.0[range].try_into().expect("half of 32 bytes"));
        [half(0..16), half(16..32)]
    }

    /// Returns the base64url text of the salt.
    pub fn base64url(&self) -> String {
        encode_base64url(&self.0)
    }

    /// Reads what [`Salt::base64url`] writes.
    pub fn from_base64url(text: &str) -> Option<Salt> {
        Some(Salt(decode_base64url(text)?.try_into().ok()?))
    }
}

impl Seed {
    /// Returns the base64url text of the seed.
    pub fn base64url(&self) -> String {
        encode_base64url(&self.0)
    }

    /// Reads what [`Seed::base64url`] writes.
    pub fn from_base64url(text: &str) -> Option<Seed> {
        Some(Seed(decode_base64url(text)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests;
