//! C2SP tlog-tiles: a tree as immutable files of 256 digests or 256 entries.
//!
//! Never touches a file: it names tiles, makes their bytes, and reads bytes that someone else fetched.
//!
//! Hashes are read from tiles without a check. A proof from [`TileReader`] is evidence only after it was verified
//! against the root of a signed checkpoint.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{Node, TreeError, consistency_proof, inclusion_proof, perfect, tree_root};
use crate::digest::Digest;

/// The levels of the tree that one tile spans.
const HEIGHT: u32 = 8;
/// The digests or entries in a full tile.
pub const FULL_WIDTH: u16 = 1 << HEIGHT;
/// The highest tile level: above it there is no complete node in a tree of a `u64` size.
const LEVEL_MAX: u8 = 7;
/// The longest entry an entry bundle can hold.
pub const ENTRY_BYTES_MAX: usize = u16::MAX as usize;

/// Why a tile, its path or an entry bundle was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message says what each field is")]
pub enum TileError {
    /// The text is not exactly what [`Tile`] prints.
    #[error("not a tile path")]
    Path,
    /// The tile is needed and was not found, also not as a full tile.
    #[error("{tile} is missing")]
    Missing { tile: Tile },
    /// The bytes are not the 32 times width that the tile must have.
    #[error("{tile} has {found} bytes, not {expected}")]
    Length { tile: Tile, expected: usize, found: usize },
    /// The bytes are not exactly as many length-prefixed entries as the bundle is wide.
    #[error("{tile} is not {expected} entries")]
    Entries { tile: Tile, expected: usize },
    /// An entry is too long for its 16-bit length.
    #[error("an entry of {found} bytes does not fit a bundle, the most is 65535")]
    EntryTooLong { found: usize },
    /// The tree itself does not allow what was asked.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// The content of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TileKind {
    /// Log entries, each with its length before it.
    Entries,
    /// Digests of the nodes of tree level 8 x `level`.
    Hashes {
        /// The tile level, 0 to 7.
        level: u8,
    },
}

/// The name of one tile: `tile/<L>/<N>[.p/<W>]` or `tile/entries/<N>[.p/<W>]`.
///
/// A tile of less than [`FULL_WIDTH`] is partial, and is another file than the full one of the same index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tile {
    kind: TileKind,
    index: u64,
    width: u16,
}

impl Tile {
    /// Returns tile `index` of this kind as it is in a tree of `size` leaves; `None` if it would be empty.
    pub fn of_tree(kind: TileKind, index: u64, size: u64) -> Option<Tile> {
        let shift = hash_level(kind)?;
        let width = (size >> shift).checked_sub(index.checked_mul(FULL_WIDTH.into())?)?;
        let width = width.min(FULL_WIDTH.into()) as u16;
        (width > 0).then_some(Tile { kind, index, width })
    }

    /// Lists the tiles to write when a tree grows, entries first and then digests from level 0 upward.
    pub fn to_write(old_size: u64, new_size: u64) -> impl Iterator<Item = Tile> {
        let levels = (0..=LEVEL_MAX).map(|level| TileKind::Hashes { level });
        std::iter::once(TileKind::Entries).chain(levels).flat_map(move |kind| {
            let shift = hash_level(kind).unwrap_or(0);
            let (old, new) = (old_size >> shift, new_size >> shift);
            let indexes = if old < new { (old >> HEIGHT)..((new - 1) >> HEIGHT) + 1 } else { 0..0 };
            indexes.filter_map(move |index| Tile::of_tree(kind, index, new_size))
        })
    }

    /// Returns what the tile holds.
    pub fn kind(self) -> TileKind {
        self.kind
    }

    /// Returns the place of the tile within its level, from 0.
    pub fn index(self) -> u64 {
        self.index
    }

    /// Returns the number of digests or entries, 1 to 256.
    pub fn width(self) -> u16 {
        self.width
    }

    /// Returns the full tile that takes the place of this one when the tree has grown enough.
    pub fn full(self) -> Tile {
        Tile { width: FULL_WIDTH, ..self }
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TileKind::Entries => f.write_str("tile/entries/")?,
            TileKind::Hashes { level } => write!(f, "tile/{level}/")?,
        }
        let mut power = 1;
        while self.index / power >= 1000 {
            power *= 1000;
        }
        while power > 1 {
            write!(f, "x{:03}/", self.index / power % 1000)?;
            power /= 1000;
        }
        write!(f, "{:03}", self.index % 1000)?;
        if self.width < FULL_WIDTH { write!(f, ".p/{}", self.width) } else { Ok(()) }
    }
}

impl FromStr for Tile {
    type Err = TileError;

    /// Reads what [`Tile`] prints and nothing else. Levels above 7 are refused: no tree has them.
    fn from_str(text: &str) -> Result<Tile, TileError> {
        let tile = parse_tile(text).ok_or(TileError::Path)?;
        // One tile has one path, so whatever the parts let through is caught by printing them again.
        if tile.to_string() == text { Ok(tile) } else { Err(TileError::Path) }
    }
}

fn parse_tile(text: &str) -> Option<Tile> {
    let (level, rest) = text.strip_prefix("tile/")?.split_once('/')?;
    let kind = match level {
        "entries" => TileKind::Entries,
        level => TileKind::Hashes { level: level.parse().ok()? },
    };
    let (index, width) = match rest.split_once(".p/") {
        Some((index, width)) => (index, width.parse().ok().filter(|width| (1..FULL_WIDTH).contains(width))?),
        None => (rest, FULL_WIDTH),
    };
    let index = index.split('/').try_fold(0u64, |index, group| {
        let group: u64 = group.strip_prefix('x').unwrap_or(group).parse().ok()?;
        index.checked_mul(1000)?.checked_add(group)
    })?;
    // No tree of a `u64` size has a tile beyond this, and arithmetic on its leaves would overflow.
    let end = index.checked_mul(FULL_WIDTH.into())?.checked_add(width.into())?;
    (end <= u64::MAX >> hash_level(kind)?).then_some(Tile { kind, index, width })
}

/// Returns the tree level of the digests in a tile; entries stand for leaves.
fn hash_level(kind: TileKind) -> Option<u32> {
    match kind {
        TileKind::Entries => Some(0),
        TileKind::Hashes { level } => (level <= LEVEL_MAX).then_some(u32::from(level) * HEIGHT),
    }
}

/// Makes the bytes of a tile of digests from the nodes of the tree.
///
/// For the name of an entry bundle it gives the digests of the bundle's leaves.
pub fn encode_hashes(tile: Tile, mut node: impl FnMut(Node) -> Option<Digest>) -> Result<Vec<u8>, TreeError> {
    let level = hash_level(tile.kind).expect("a tile is only made with a level of the tree") as u8;
    let mut bytes = Vec::with_capacity(usize::from(tile.width) * 32);
    for offset in 0..u64::from(tile.width) {
        let index = tile.index * u64::from(FULL_WIDTH) + offset;
        let hash = node(Node { level, index }).ok_or(TreeError::MissingNode { level, index })?;
        bytes.extend_from_slice(&hash.0);
    }
    Ok(bytes)
}

/// Reads the bytes of a tile of digests; any other length than 32 times its width is refused.
pub fn decode_hashes(tile: Tile, bytes: &[u8]) -> Result<Vec<Digest>, TileError> {
    let expected = usize::from(tile.width) * 32;
    if bytes.len() != expected {
        return Err(TileError::Length { tile, expected, found: bytes.len() });
    }
    let chunks = bytes.chunks_exact(32);
    Ok(chunks.map(|chunk| Digest(chunk.try_into().expect("chunks of 32 bytes"))).collect())
}

/// Makes the bytes of an entry bundle: each entry after its length as 16 bits, big-endian.
pub fn encode_entries<'e>(entries: impl IntoIterator<Item = &'e [u8]>) -> Result<Vec<u8>, TileError> {
    let mut bytes = Vec::new();
    for entry in entries {
        let length =
            u16::try_from(entry.len()).map_err(|_| TileError::EntryTooLong { found: entry.len() })?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(entry);
    }
    Ok(bytes)
}

/// Reads an entry bundle; it must hold exactly as many entries as it is wide, and not a byte more.
pub fn decode_entries(tile: Tile, bytes: &[u8]) -> Result<Vec<&[u8]>, TileError> {
    let malformed = TileError::Entries { tile, expected: tile.width.into() };
    let mut entries = Vec::with_capacity(tile.width.into());
    let mut rest = bytes;
    while entries.len() < usize::from(tile.width) {
        let (length, tail) = rest.split_first_chunk::<2>().ok_or(malformed.clone())?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (entry, tail) = tail.split_at_checked(length).ok_or(malformed.clone())?;
        entries.push(entry);
        rest = tail;
    }
    if rest.is_empty() { Ok(entries) } else { Err(malformed) }
}

/// Reads nodes and proofs of one tree out of its tiles.
///
/// `lookup` returns the bytes of a tile, or `None`. Each tile is looked up once; if a partial tile is not there
/// any more, the full one is tried in its place.
pub struct TileReader<F> {
    size: u64,
    lookup: F,
    read: BTreeMap<(u8, u64), Vec<Digest>>,
}

impl<F: FnMut(Tile) -> Option<Vec<u8>>> TileReader<F> {
    /// Reads the tree of `size` leaves.
    pub fn new(size: u64, lookup: F) -> TileReader<F> {
        TileReader { size, lookup, read: BTreeMap::new() }
    }

    /// Reads the digest of one complete node of the tree.
    pub fn read_node(&mut self, node: Node) -> Result<Digest, TileError> {
        let Node { level, index } = node;
        let inside = node.leaves().is_some_and(|leaves| leaves.end <= self.size);
        if !inside {
            return Err(TreeError::MissingNode { level, index }.into());
        }
        let height = u32::from(level) % HEIGHT;
        let first = index << height;
        let hashes = self.read_hashes(level / HEIGHT as u8, first >> HEIGHT)?;
        let offset = (first & u64::from(FULL_WIDTH - 1)) as usize;
        // A node that is complete in this tree lies within the width its tile has in this tree.
        Ok(perfect(&hashes[offset..offset + (1 << height)]))
    }

    /// Reads the root of the tree.
    pub fn root(&mut self) -> Result<Digest, TileError> {
        let size = self.size;
        self.with_nodes(|node| tree_root(size, node))
    }

    /// Reads the proof that leaf `index` is in the tree.
    pub fn inclusion_proof(&mut self, index: u64) -> Result<Vec<Digest>, TileError> {
        let size = self.size;
        self.with_nodes(|node| inclusion_proof(index, size, node))
    }

    /// Reads the proof that the tree of `old_size` leaves is the begin of this one.
    pub fn consistency_proof(&mut self, old_size: u64) -> Result<Vec<Digest>, TileError> {
        let size = self.size;
        self.with_nodes(|node| consistency_proof(old_size, size, node))
    }

    fn read_hashes(&mut self, level: u8, index: u64) -> Result<&[Digest], TileError> {
        if !self.read.contains_key(&(level, index)) {
            let tile = Tile::of_tree(TileKind::Hashes { level }, index, self.size)
                .expect("a complete node of the tree lies in a tile of the tree");
            let hashes = self.fetch(tile)?;
            self.read.insert((level, index), hashes);
        }
        Ok(&self.read[&(level, index)])
    }

    fn fetch(&mut self, tile: Tile) -> Result<Vec<Digest>, TileError> {
        if let Some(bytes) = (self.lookup)(tile) {
            return decode_hashes(tile, &bytes);
        }
        if tile != tile.full()
            && let Some(bytes) = (self.lookup)(tile.full())
        {
            let mut hashes = decode_hashes(tile.full(), &bytes)?;
            hashes.truncate(tile.width.into());
            return Ok(hashes);
        }
        Err(TileError::Missing { tile })
    }

    /// Runs `make` on the nodes of this tree; if reading one failed, that is the error, not its absence.
    fn with_nodes<T>(
        &mut self,
        make: impl FnOnce(&mut dyn FnMut(Node) -> Option<Digest>) -> Result<T, TreeError>,
    ) -> Result<T, TileError> {
        let mut failure = None;
        let made = make(&mut |node| match self.read_node(node) {
            Ok(hash) => Some(hash),
            Err(error) => {
                failure.get_or_insert(error);
                None
            }
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(made?),
        }
    }
}
