//! The log as C2SP tlog-tiles under `log/`: what a mirror or a witness reads, and where proofs come from.
//!
//! Derived, written when a checkpoint is signed. The store reads them to extend them, and for hashes that lead to a root.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dendrer_object::Digest;
use dendrer_object::merkle::tile::{FULL_WIDTH, Tile, TileKind, TileReader, encode_entries, encode_hashes};
use dendrer_object::merkle::{Node, Peaks, cover, leaf_hash, node_hash, verify_consistency};
use dendrer_object::note::{Checkpoint, SignedNote};

use super::Embedded;
use crate::disk::{self, Disk, Open};
use crate::error::StoreError;

const TILE_SIZE_MAX: u64 = 64 << 20;

/// How many leaves are laid out at once, so that memory stays small.
const STEP: u64 = 256 * 256;

impl Embedded {
    /// Brings the tiles up to a size, and puts the checkpoint beside them, last.
    pub(super) fn write_tiles(&self, note: &SignedNote, size: u64) -> Result<(), StoreError> {
        self.write_tiles_to(&self.dir, note, size)
    }

    /// As [`Embedded::write_tiles`], for a copy of this store in another directory.
    pub(super) fn write_tiles_to(&self, dir: &Path, note: &SignedNote, size: u64) -> Result<(), StoreError> {
        let tiles = Tiles { store: self, dir: dir.join("log") };
        tiles.write(note, size)
    }

    /// Returns the checkpoint of the tiles. It is not compared with them.
    pub(super) fn tiles_checkpoint(&self) -> Result<Option<Checkpoint>, StoreError> {
        Tiles { store: self, dir: self.dir.join("log") }.checkpoint()
    }

    /// Returns the size that the tiles are complete for, if they lead to the root that was signed for it, and what
    /// their checkpoint says.
    pub(super) fn tiled(&self) -> Result<(u64, Option<Checkpoint>), StoreError> {
        let tiles = Tiles { store: self, dir: self.dir.join("log") };
        Ok((tiles.size()?, tiles.checkpoint()?))
    }
}

impl Embedded {
    /// Returns the size of the tiles, if their tree begins with the one that had this root at this size, and their
    /// hashes up to the last one of the entries. Tiles can be written by any process; only the path to the root makes
    /// them true.
    pub(super) fn tiled_beyond(&self, size: u64, root: Digest) -> Result<Option<Tiled>, StoreError> {
        let tiles = Tiles { store: self, dir: self.dir.join("log") };
        let end = tiles.checkpoint()?.map(|checkpoint| checkpoint.size());
        let Some(end) = end.filter(|end| *end >= size && *end > 0) else { return Ok(None) };
        let mut reader = TileReader::new(end, |tile| tiles.read_tile(tile));
        let mut peaks_of = |size: u64| {
            let nodes: Result<Vec<Digest>, _> = cover(0..size).map(|node| reader.read_node(node)).collect();
            nodes.ok().and_then(|nodes| Peaks::from_parts(size, nodes).ok())
        };
        let border = (end - 1) / u64::from(FULL_WIDTH) * u64::from(FULL_WIDTH);
        let (Some(whole), Some(before)) = (peaks_of(end), peaks_of(border)) else { return Ok(None) };
        let proof = reader.consistency_proof(size);
        let is_begin =
            proof.is_ok_and(|proof| verify_consistency(size, end, &proof, &root, &whole.root()).is_ok());
        Ok(is_begin.then(|| Tiled { before, end, root: whole.root() }))
    }
}

/// The log according to its tiles.
pub(super) struct Tiled {
    /// The tree up to where the last tile of entries begins.
    pub before: Peaks,
    /// How many entries they are of.
    pub end: u64,
    /// The root of the tree of those.
    pub root: Digest,
}

/// Reads a tile below a directory; `None` if it is missing or cannot be read.
pub(super) fn read_tile(disk: &dyn Disk, dir: &Path, tile: Tile) -> Option<Vec<u8>> {
    disk::read_file(disk, &dir.join(tile.to_string()), TILE_SIZE_MAX).ok().flatten()
}

/// The tiles in a directory, which follow from the log of a store.
struct Tiles<'s> {
    store: &'s Embedded,
    dir: PathBuf,
}

impl Tiles<'_> {
    fn disk(&self) -> &dyn Disk {
        &*self.store.options.disk
    }

    fn write(&self, note: &SignedNote, size: u64) -> Result<(), StoreError> {
        disk::refuse_links(self.dir.parent().unwrap_or(&self.dir), &self.dir)
            .map_err(|error| StoreError::io("write", &self.dir, error))?;
        let mut from = self.size()?;
        if from > size {
            from = 0;
        }
        let begin = from;
        while from < size {
            let next = (from / STEP * STEP + STEP).min(size);
            self.lay_out(from, next)?;
            from = next;
        }
        let path = self.dir.join("checkpoint");
        self.disk().create_dir(&self.dir).map_err(|error| StoreError::io("create", &path, error))?;
        disk::replace_file(self.disk(), &path, note.to_string().as_bytes())
            .map_err(|error| StoreError::io("write", &path, error))?;
        self.remove_partial(begin, size);
        Ok(())
    }

    /// Returns what the checkpoint beside the tiles says.
    fn checkpoint(&self) -> Result<Option<Checkpoint>, StoreError> {
        let path = self.dir.join("checkpoint");
        let bytes = disk::read_file(self.disk(), &path, 1 << 20)
            .map_err(|error| StoreError::io("read", &path, error))?;
        let note = bytes.and_then(|bytes| SignedNote::parse(&bytes).ok());
        Ok(note.and_then(|note| Checkpoint::parse(note.text()).ok()))
    }

    /// Returns the size that the tiles are complete for, if they lead to the root that was signed for it.
    fn size(&self) -> Result<u64, StoreError> {
        let Some(checkpoint) = self.checkpoint()? else { return Ok(0) };
        let root = TileReader::new(checkpoint.size(), |tile| self.read_tile(tile)).root();
        Ok(if root.is_ok_and(|root| root == checkpoint.root()) { checkpoint.size() } else { 0 })
    }

    fn read_tile(&self, tile: Tile) -> Option<Vec<u8>> {
        read_tile(self.disk(), &self.dir, tile)
    }

    /// Writes the tiles that change between two sizes.
    fn lay_out(&self, old: u64, new: u64) -> Result<(), StoreError> {
        let first = old / u64::from(FULL_WIDTH) * u64::from(FULL_WIDTH);
        let mut entries: Vec<Vec<u8>> = Vec::with_capacity((new - first) as usize);
        self.store.scan_entries(first..new, &mut |_, entry| {
            entries.push(entry.text());
            ControlFlow::Continue(())
        })?;
        let mut known: BTreeMap<(u8, u64), Digest> = BTreeMap::new();
        for (index, entry) in (first..).zip(&entries) {
            known.insert((0, index), leaf_hash(entry));
        }
        for tile in Tile::to_write(old, new) {
            let bytes = match tile.kind() {
                TileKind::Entries => {
                    let begin = (tile.index() * u64::from(FULL_WIDTH) - first) as usize;
                    let end = begin + usize::from(tile.width());
                    let texts = entries.get(begin..end).unwrap_or_default();
                    encode_entries(texts.iter().map(Vec::as_slice)).ok()
                }
                TileKind::Hashes { .. } => encode_hashes(tile, |node| self.node(node, old, &mut known)).ok(),
            };
            let Some(bytes) = bytes else { continue };
            self.write_tile(tile, &bytes)?;
        }
        Ok(())
    }

    /// Returns a node at a tile border: known, read from an earlier tile, or made from the tile below.
    fn node(&self, node: Node, old: u64, known: &mut BTreeMap<(u8, u64), Digest>) -> Option<Digest> {
        let Node { level, index } = node;
        if let Some(found) = known.get(&(level, index)) {
            return Some(*found);
        }
        let tile_index = index / u64::from(FULL_WIDTH);
        let before = Tile::of_tree(TileKind::Hashes { level: level / 8 }, tile_index, old);
        if let Some(tile) = before.filter(|tile| index % u64::from(FULL_WIDTH) < u64::from(tile.width())) {
            let bytes = self.read_tile(tile).or_else(|| self.read_tile(tile.full()))?;
            let offset = (index % u64::from(FULL_WIDTH)) as usize * 32;
            return Some(Digest(bytes.get(offset..offset + 32)?.try_into().ok()?));
        }
        let below = level.checked_sub(8)?;
        let mut hashes = Vec::with_capacity(usize::from(FULL_WIDTH));
        for child in 0..u64::from(FULL_WIDTH) {
            let at = Node { level: below, index: index * u64::from(FULL_WIDTH) + child };
            hashes.push(self.node(at, old, known)?);
        }
        while hashes.len() > 1 {
            hashes = hashes.chunks(2).map(|pair| node_hash(&pair[0], &pair[1])).collect();
        }
        known.insert((level, index), hashes[0]);
        Some(hashes[0])
    }

    fn write_tile(&self, tile: Tile, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.dir.join(tile.to_string());
        let io = |error| StoreError::io("write", &path, error);
        if let Some(parent) = path.parent() {
            disk::refuse_links(&self.dir, parent).map_err(io)?;
            self.disk().create_dir(parent).map_err(io)?;
        }
        let beside = path.with_extension("tmp");
        let file = self.disk().open(&beside, Open::Create).map_err(io)?;
        file.set_len(0).map_err(io)?;
        disk::write_all(&*file, bytes, 0).map_err(io)?;
        self.disk().rename(&beside, &path).map_err(io)
    }

    /// Removes partial tiles that larger ones took the place of.
    fn remove_partial(&self, old: u64, new: u64) {
        let levels = (0..=7).map(|level| TileKind::Hashes { level });
        for kind in std::iter::once(TileKind::Entries).chain(levels) {
            let shift = if let TileKind::Hashes { level } = kind { u32::from(level) * 8 } else { 0 };
            let index = (old >> shift) / u64::from(FULL_WIDTH);
            let tiles = [Tile::of_tree(kind, index, old), Tile::of_tree(kind, index, new)];
            if let [Some(before), Some(now)] = tiles
                && before != now
                && before.width() < FULL_WIDTH
            {
                let path = self.dir.join(before.to_string());
                if disk::refuse_links(&self.dir, &path).is_ok() {
                    let _ = self.disk().remove(&path);
                }
            }
        }
    }
}
