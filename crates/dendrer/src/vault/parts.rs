//! A value as parts: pieces cut where its content says, and lists of them, up to a list that is short enough for an entry.
//!
//! Two values of a run that share most of their content share most of their parts. A value that grows at its end costs the last
//! piece and one list of each level.

use dendrer_object::Digest;
use dendrer_store::split_within;

/// How many names a list has at most.
pub(super) const LIST_MAX: usize = 32;

/// A value of more bytes than this is refused.
pub(super) const VALUE_MAX: usize = 1 << 30;

/// The least, the average and the greatest size of a piece. The last piece of a value that grows is written again each time, so
/// small values have small pieces.
fn sizes(len: usize) -> (usize, usize, usize) {
    match len {
        0..0x10_0000 => (2 << 10, 4 << 10, 16 << 10),
        0x10_0000..0x400_0000 => (8 << 10, 16 << 10, 64 << 10),
        _ => (64 << 10, 128 << 10, 512 << 10),
    }
}

/// Cuts a value.
pub(super) fn cut(bytes: &[u8]) -> Vec<&[u8]> {
    let (min, average, max) = sizes(bytes.len());
    let mut begin = 0;
    let pieces = split_within(bytes, min, average, max).into_iter().map(|end| {
        let piece = &bytes[begin..end];
        begin = end;
        piece
    });
    pieces.collect()
}

/// Writes a list of names.
pub(super) fn list(names: &[Digest]) -> Vec<u8> {
    names.iter().flat_map(|name| name.0).collect()
}

/// Reads what [`list`] writes.
pub(super) fn read_list(bytes: &[u8]) -> Option<Vec<Digest>> {
    let (names, rest) = bytes.as_chunks::<32>();
    rest.is_empty().then(|| names.iter().copied().map(Digest).collect())
}
