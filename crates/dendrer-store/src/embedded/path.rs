//! Records proven by their paths in the tree.
//!
//! Hashes come from the tiles, and after the tiles from the entries of the log. Neither is trusted: a path counts only if it
//! leads from the entry of the record to the root of the handle. If a path from tiles does not, the entries decide.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, PoisonError};

use dendrer_object::merkle::tile::{Tile, TileReader};
use dendrer_object::merkle::{Node, inclusion_proof, leaf_hash, verify_inclusion};
use dendrer_object::record::Entry;
use dendrer_object::{Digest, Record};

use super::Embedded;
use super::tiles::read_tile;
use crate::error::StoreError;
use crate::frame::At;
use crate::layout::SEGMENT_HEADER;
use crate::store::not_in_tree;
use crate::tail::Row;

/// With more leaves after the tiles than this, newer tiles are looked for.
const LEAVES_MAX: usize = 1 << 16;

/// How many paths are read before the tiles that were read are dropped.
const PATHS_MAX: usize = 1 << 10;

type Reader = TileReader<Box<dyn FnMut(Tile) -> Option<Vec<u8>> + Send>>;

/// Nodes of the tree of a log.
pub(super) struct Nodes {
    /// The size of the tree in the tiles.
    tiled: u64,
    reader: Reader,
    /// The hashes of the leaves after the tiles.
    leaves: Vec<Digest>,
    /// Nodes above those leaves, by level and index.
    known: BTreeMap<(u8, u64), Digest>,
    /// How many paths were read.
    paths: usize,
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nodes")
            .field("tiled", &self.tiled)
            .field("leaves", &self.leaves.len())
            .finish_non_exhaustive()
    }
}

impl Nodes {
    /// Returns a node that is complete within the tiles and the leaves after them.
    fn node(&mut self, node: Node) -> Option<Digest> {
        let Node { level, index } = node;
        let leaves = node.leaves()?;
        if leaves.end <= self.tiled {
            return self.reader.read_node(node).ok();
        }
        if level == 0 {
            return self.leaves.get(usize::try_from(index.checked_sub(self.tiled)?).ok()?).copied();
        }
        if let Some(known) = self.known.get(&(level, index)) {
            return Some(*known);
        }
        let below = |index| Node { level: level - 1, index };
        let (left, right) = (self.node(below(2 * index))?, self.node(below(2 * index + 1))?);
        let hash = dendrer_object::merkle::node_hash(&left, &right);
        self.known.insert((level, index), hash);
        Some(hash)
    }

    /// Whether an entry is the leaf at a position of the tree with a root.
    fn prove(&mut self, position: u64, entry: &[u8], size: u64, root: &Digest) -> bool {
        self.paths += 1;
        let path = inclusion_proof(position, size, |node| self.node(node));
        path.is_ok_and(|path| verify_inclusion(position, size, &leaf_hash(entry), &path, root).is_ok())
    }
}

impl Embedded {
    /// Reads the record at a position, and proves it by its path.
    pub(super) fn read_proven(&self, position: u64) -> Result<Option<Record>, StoreError> {
        let Some(record) = self.read_record(position)? else { return Ok(None) };
        if self.is_leaf(position, &record)? {
            return Ok(Some(record));
        }
        // The index may have named another record.
        let record = self.read_in_log(position)?;
        if self.is_leaf(position, &record)? { Ok(Some(record)) } else { Err(not_in_tree(position, &record)) }
    }

    /// Whether the entry of a record is the leaf at a position of the tree of this handle.
    fn is_leaf(&self, position: u64, record: &Record) -> Result<bool, StoreError> {
        let (size, root, entry) = (self.size(), self.end.root, record.entry());
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_late = |nodes: &Nodes| nodes.leaves.len() > LEAVES_MAX && self.tiled_size() > nodes.tiled;
        if let Some(mut known) = nodes.take().filter(|nodes| !is_late(nodes))
            && self.add_leaves(&mut known).is_ok()
            && known.prove(position, &entry, size, &root)
        {
            if known.paths > PATHS_MAX {
                (known.reader, known.paths) = (self.tile_reader(known.tiled), 0);
            }
            *nodes = Some(known);
            return Ok(true);
        }
        // Another process may have laid out the tiles again, and the tiles may be wrong.
        let tiled = self.tiled_size();
        if tiled > 0 {
            let mut fresh = self.fresh_nodes(tiled);
            if self.add_leaves(&mut fresh).is_ok() && fresh.prove(position, &entry, size, &root) {
                *nodes = Some(fresh);
                return Ok(true);
            }
        }
        let mut fresh = self.fresh_nodes(0);
        self.add_leaves(&mut fresh)?;
        let is_leaf = fresh.prove(position, &entry, size, &root);
        *nodes = Some(fresh);
        Ok(is_leaf)
    }

    /// Returns the size of the tree in the tiles, as their checkpoint names it; 0 without tiles.
    fn tiled_size(&self) -> u64 {
        self.tiles_checkpoint().ok().flatten().map_or(0, |checkpoint| checkpoint.size())
    }

    fn tile_reader(&self, tiled: u64) -> Reader {
        let (disk, dir) = (Arc::clone(&self.options.disk), self.dir.join("log"));
        TileReader::new(tiled, Box::new(move |tile| read_tile(&*disk, &dir, tile)))
    }

    fn fresh_nodes(&self, tiled: u64) -> Nodes {
        let reader = self.tile_reader(tiled);
        Nodes { tiled, reader, leaves: Vec::new(), known: BTreeMap::new(), paths: 0 }
    }

    /// Adds the leaves up to the end of the log.
    fn add_leaves(&self, nodes: &mut Nodes) -> Result<(), StoreError> {
        let from = nodes.tiled + nodes.leaves.len() as u64;
        let mut add = |entry: Entry| nodes.leaves.push(leaf_hash(&entry.text()));
        if from < self.tail.base {
            self.leaves_in_log(from..self.tail.base, &mut add)?;
        }
        for position in from.max(self.tail.base)..self.size() {
            add(entry_of(self.tail.row(position).expect("positions of the tail are in the tail")));
        }
        Ok(())
    }

    fn leaves_in_log(&self, range: Range<u64>, add: &mut dyn FnMut(Entry)) -> Result<(), StoreError> {
        let mut each = |_: u64, entry| {
            add(entry);
            ControlFlow::Continue(())
        };
        match range.start {
            0 => self.entries_from(At::new(0, SEGMENT_HEADER as u64), range, &mut each),
            _ => self.scan_entries(range, &mut each),
        }
    }
}

fn entry_of(row: &Row) -> Entry {
    Entry { hash: row.id, kind: row.kind, run: row.run.clone(), tick: row.tick }
}
