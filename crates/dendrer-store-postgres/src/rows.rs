//! The columns of a record: its header with the places of the fields, its seed, and its values.
//!
//! Never touches the server. Every reader accepts one spelling. A value of more than [`INLINE_MAX`] bytes is cut by
//! its content, and its pieces are stored once.
//!
//! Rule: a record that was read is sealed again and its id compared ([`Raw::seal_each`]); test
//! `altered_rows_are_named_and_never_read_as_they_are`.

use std::collections::BTreeMap;

use dendrer_object::json::{RECORD_SIZE_MAX, VALUE_SIZE_MAX};
use dendrer_object::record::{Header, Salt, Seed};
use dendrer_object::{Digest, Record, StoreId};
use dendrer_store::{
    Damage, DamageKind, DamagePlace, RawField, RawRecord, StoreError, Unsealed, split_within,
};

/// Values up to this size are in the row of their record.
pub(crate) const INLINE_MAX: usize = 64 << 10;

/// The sizes of pieces: least, average and most.
const PIECE: (usize, usize, usize) = (32 << 10, 64 << 10, 256 << 10);

/// The salt of the keys of pieces.
const CHUNK: &[u8] = b"dendrer/postgres-chunk/v1\n";

const CLOSED: u8 = 0;
const INLINE: u8 = 1;
const INLINE_SALTED: u8 = 2;
const PIECES: u8 = 3;
const PIECES_SALTED: u8 = 4;

/// A record as columns.
#[derive(Debug)]
pub(crate) struct Columns<'r> {
    pub(crate) header: Vec<u8>,
    pub(crate) seed: Option<Vec<u8>>,
    pub(crate) values: Vec<u8>,
    /// The pieces of its large values, by key.
    pub(crate) pieces: Vec<(Digest, &'r [u8])>,
}

impl<'r> Columns<'r> {
    /// Lays out a record.
    pub(crate) fn of(store: StoreId, record: &'r Record) -> Columns<'r> {
        let body = record.body();
        let is_whole = body.fields().iter().all(|field| body.text(field).is_some());
        let seed = body.seed().filter(|_| is_whole);
        let (mut values, mut pieces) = (Vec::new(), Vec::new());
        for (index, field) in body.fields().iter().enumerate() {
            let Some(text) = body.text(field) else {
                values.push(CLOSED);
                values.extend_from_slice(&field.digest.0);
                continue;
            };
            let salt = if seed.is_some() { None } else { body.salt(index) };
            let is_large = text.len() > INLINE_MAX;
            values.push(match (is_large, salt.is_some()) {
                (false, false) => INLINE,
                (false, true) => INLINE_SALTED,
                (true, false) => PIECES,
                (true, true) => PIECES_SALTED,
            });
            values.extend(salt.iter().flat_map(|salt| salt.0));
            match is_large {
                false => {
                    values.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    values.extend_from_slice(text);
                }
                true => put_pieces(store, text, &mut values, &mut pieces),
            }
        }
        let header = record.header().text_with_pointers(body.fields().iter().map(|field| &field.pointer));
        Columns { header, seed: seed.map(|seed| seed.0.to_vec()), values, pieces }
    }

    /// Returns how many bytes the row has.
    pub(crate) fn len(&self) -> usize {
        self.header.len() + self.values.len()
    }
}

fn put_pieces<'r>(
    store: StoreId,
    text: &'r [u8],
    values: &mut Vec<u8>,
    pieces: &mut Vec<(Digest, &'r [u8])>,
) {
    let (min, average, max) = PIECE;
    let (ends, mut start) = (split_within(text, min, average, max), 0);
    values.extend_from_slice(&(ends.len() as u32).to_le_bytes());
    for end in ends {
        let piece = &text[start..end];
        let key = Digest::of_parts(&[CHUNK, &store.0, piece]);
        values.extend_from_slice(&key.0);
        pieces.push((key, piece));
        start = end;
    }
}

/// The text of a value: in the row, or in pieces.
#[derive(Debug)]
enum Stored<'a> {
    Closed(Digest),
    Inline(Option<Salt>, &'a [u8]),
    Pieces(Option<Salt>, &'a [u8]),
}

/// A row of `record`.
#[derive(Debug, Clone)]
pub(crate) struct RecordRow {
    pub(crate) position: u64,
    pub(crate) id: Vec<u8>,
    pub(crate) kind: String,
    pub(crate) run: Option<String>,
    pub(crate) tick: Option<i64>,
    pub(crate) ts: i64,
    pub(crate) header: Vec<u8>,
    pub(crate) seed: Option<Vec<u8>>,
    pub(crate) values: Vec<u8>,
}

/// Returns damage of a row.
pub(crate) fn damage(
    kind: DamageKind,
    table: &str,
    position: Option<u64>,
    what: &'static str,
    (expected, found): (String, String),
) -> StoreError {
    let place = DamagePlace { file: format!("table {table}"), position, ..DamagePlace::default() };
    Damage { kind, place, what, expected, found }.into()
}

/// Reads the header of a row, and compares the columns that repeat it.
pub(crate) fn header_of(row: &RecordRow, store: StoreId) -> Result<Header, StoreError> {
    read_header(row, store).map(|(header, _)| header)
}

fn read_header(
    row: &RecordRow,
    store: StoreId,
) -> Result<(Header, Vec<dendrer_object::Pointer>), StoreError> {
    let bad = |what, expected: String, found: String| {
        damage(DamageKind::Frame, "record", Some(row.position), what, (expected, found))
    };
    let (header, pointers) = Header::parse_with_pointers(&row.header)
        .map_err(|error| bad("header", "that of a record".into(), error.to_string()))?;
    let columns = (row.kind.as_str(), row.run.as_deref(), row.tick, row.ts);
    let run = header.run.as_ref().map(|run| run.as_str());
    let stated = (header.kind.as_str(), run, header.tick.map(|tick| tick as i64), header.ts.ms() as i64);
    if columns != stated {
        return Err(bad("kind, run, tick and ts", format!("{stated:?}"), format!("{columns:?}")));
    }
    if header.store != store {
        return Err(bad("store of the record", store.to_string(), header.store.to_string()));
    }
    Ok((header, pointers))
}

fn parse_values(mut rest: &[u8], count: usize) -> Option<Vec<Stored<'_>>> {
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        let (&form, after) = rest.split_first()?;
        if form == CLOSED {
            let (digest, after) = after.split_first_chunk::<32>()?;
            fields.push(Stored::Closed(Digest(*digest)));
            rest = after;
            continue;
        }
        let (salt, after) = match form {
            INLINE | PIECES => (None, after),
            INLINE_SALTED | PIECES_SALTED => {
                let (salt, after) = after.split_first_chunk::<16>()?;
                (Some(Salt(*salt)), after)
            }
            _ => return None,
        };
        let (size, after) = after.split_first_chunk::<4>()?;
        let size = u32::from_le_bytes(*size) as usize;
        let is_inline = matches!(form, INLINE | INLINE_SALTED);
        let bytes = if is_inline { size } else { size.checked_mul(32)? };
        let (content, after) = after.split_at_checked(bytes)?;
        fields.push(if is_inline { Stored::Inline(salt, content) } else { Stored::Pieces(salt, content) });
        rest = after;
    }
    rest.is_empty().then_some(fields)
}

/// Returns the keys of the pieces that a row names, in order; nothing if the row cannot be read.
pub(crate) fn pieces_of(row: &RecordRow) -> Vec<Digest> {
    let Ok((_, pointers)) = Header::parse_with_pointers(&row.header) else { return Vec::new() };
    let fields = parse_values(&row.values, pointers.len()).unwrap_or_default();
    let keys = fields.iter().filter_map(|field| match field {
        Stored::Pieces(_, keys) => Some(*keys),
        Stored::Closed(_) | Stored::Inline(..) => None,
    });
    keys.flat_map(|keys| keys.chunks_exact(32)).map(|key| Digest(key.try_into().expect("32 bytes"))).collect()
}

/// A record that was read and is not sealed yet.
pub(crate) struct Raw {
    position: u64,
    raw: RawRecord,
}

impl Raw {
    /// Puts a record together from its row and its pieces.
    pub(crate) fn of(
        row: &RecordRow,
        store: StoreId,
        pieces: &BTreeMap<Digest, Vec<u8>>,
    ) -> Result<Raw, StoreError> {
        let bad = |what, expected: &str, found: String| {
            damage(DamageKind::Content, "record", Some(row.position), what, (expected.into(), found))
        };
        let (header, pointers) = read_header(row, store)?;
        let id = <[u8; 32]>::try_from(&row.id[..]).map(Digest);
        let id = id.map_err(|_| bad("id", "32 bytes", format!("{} bytes", row.id.len())))?;
        let seed = row.seed.as_deref().map(<[u8; 16]>::try_from).transpose();
        let seed = seed.map_err(|_| bad("seed", "16 bytes", "another size".into()))?.map(Seed);
        let stored = parse_values(&row.values, pointers.len())
            .ok_or_else(|| bad("values", "those of this record", format!("{} bytes", row.values.len())))?;
        let (mut fields, mut texts) = (Vec::with_capacity(stored.len()), Vec::new());
        for field in stored {
            let start = texts.len();
            let (digest, salt, is_open) = match field {
                Stored::Closed(digest) => (Some(digest), None, false),
                Stored::Inline(salt, text) => {
                    texts.extend_from_slice(text);
                    (None, salt, true)
                }
                Stored::Pieces(salt, keys) => {
                    for key in keys.chunks_exact(32) {
                        let key = Digest(key.try_into().expect("32 bytes"));
                        let piece = pieces.get(&key);
                        let piece = piece.ok_or_else(|| {
                            bad("pieces of a value", "a row of table chunk", format!("none for {key}"))
                        })?;
                        texts.extend_from_slice(piece);
                        // A row may name one piece as often as it likes.
                        if texts.len() > RECORD_SIZE_MAX || texts.len() - start > VALUE_SIZE_MAX {
                            return Err(bad("values", "at most 512 MiB", "more".into()));
                        }
                    }
                    (None, salt, true)
                }
            };
            fields.push(RawField { digest, salt, text: is_open.then_some(start..texts.len()) });
        }
        let raw = RawRecord { id, header, pointers, seed, fields, texts };
        Ok(Raw { position: row.position, raw })
    }

    /// Seals records, and compares their ids.
    pub(crate) fn seal_each(raws: Vec<Raw>) -> Vec<Result<Record, StoreError>> {
        let places: Vec<DamagePlace> = raws
            .iter()
            .map(|Raw { position, raw }| DamagePlace {
                file: "table record".into(),
                position: Some(*position),
                record: Some(raw.id),
                run: raw.header.run.clone(),
                tick: raw.header.tick,
                offset: None,
            })
            .collect();
        let sealed = RawRecord::seal_each(raws.into_iter().map(|raw| raw.raw).collect());
        let compare = |(sealed, place): (Result<Record, Unsealed>, DamagePlace)| {
            sealed.map_err(|unsealed| {
                let expected = place.record.map(|id| id.to_string()).unwrap_or_default();
                let found = match unsealed {
                    Unsealed::Invalid(why) => why,
                    Unsealed::Differs(found) => found.to_string(),
                };
                Damage { kind: DamageKind::Content, place, what: "id of the record", expected, found }.into()
            })
        };
        sealed.into_iter().zip(places).map(compare).collect()
    }
}

/// Refuses what no store takes, so that a log fits every other one.
pub(crate) fn check_group(records: &[Record]) -> Result<(), StoreError> {
    const HEADER_MAX: usize = 64 << 20;
    const GROUP_MAX: u64 = 2 << 30;
    let mut total = 0;
    for record in records {
        let header = record.header_text().len();
        let body = record.body();
        let values: usize = body.fields().iter().filter_map(|field| body.text(field)).map(<[u8]>::len).sum();
        for (what, size, max) in [
            ("the header of a record", header, HEADER_MAX),
            ("the values of a record", values, RECORD_SIZE_MAX),
        ] {
            if size > max {
                return Err(StoreError::TooLarge { what, size: size as u64, max: max as u64 });
            }
        }
        total += (header + values) as u64;
    }
    match total > GROUP_MAX {
        true => Err(StoreError::TooLarge { what: "a group", size: total, max: GROUP_MAX }),
        false => Ok(()),
    }
}
