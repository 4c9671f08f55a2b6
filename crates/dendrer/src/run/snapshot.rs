//! Snapshots: when one is worth its room, what its bytes are, and what one is good for.

use dendrer_object::{Digest, Record, Value, json};

/// Returns about how many bytes of a log a reader of a record reads.
pub(crate) fn weight(record: &Record) -> usize {
    let body = record.body();
    let values: usize = body.fields().iter().filter_map(|field| body.text(field)).map(<[u8]>::len).sum();
    // Besides its value, a field has a name, a digest and a salt.
    record.header_text().len() + values + 64 * body.fields().len()
}

/// Factor by which the records since the last snapshot outweigh a state that is worth a snapshot.
pub(crate) const OUTWEIGH: usize = 4;

/// Cost of looking a snapshot up, in bytes: the size of a smaller state counts as this.
const LOOKED_UP: usize = 16 << 10;

/// Whether `records` bytes of records outweigh `state` bytes of a state more than `times` times.
pub(crate) fn outweigh(records: usize, state: usize, times: usize) -> bool {
    records > state.max(LOOKED_UP).saturating_mul(times)
}

/// Use of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// No use: its state is not the one on record.
    Nothing,
    /// Its state, which the record binds. The key of the store did not sign the rest.
    StateAlone,
    /// All of it: the state by every reader, counters and agents by holders of the key of the store, if it is signed.
    Whole,
}

/// Tag that the key of the store leaves on a snapshot.
pub(super) type Tag = [u8; 32];

/// Takes the place of a tag if the recorder had no key.
pub(super) const UNTAGGED: Tag = [0; 32];

/// Splits a snapshot into tag and value. Neither is checked.
pub(super) fn read_snapshot(bytes: &[u8]) -> Option<(&Tag, Value)> {
    let (tag, text) = bytes.split_first_chunk()?;
    Some((tag, json::parse_canonical(text).ok()?))
}

/// Returns the digest that a tag covers: the parts that no record binds, and the id of the record before them, which binds the
/// history. A digest, so that no signed note can be taken for it.
pub(super) fn snapshot_message(id: Digest, unbound: &[(&str, Value)]) -> Digest {
    let texts: Vec<Vec<u8>> = unbound.iter().map(|(_, value)| json::to_vec(value)).collect();
    let parts: Vec<&[u8]> = [b"dendrer/snapshot/v3\n".as_slice(), &id.0]
        .into_iter()
        .chain(texts.iter().map(Vec::as_slice))
        .collect();
    Digest::of_parts(&parts)
}
