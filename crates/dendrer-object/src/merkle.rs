//! The Merkle tree of a store's log: hashes, growth, and the complete subtrees everything else is made of.
//!
//! A tree is RFC 6962 section 2.1 to the letter. [`Peaks`] grows one from the left, [`cover`] cuts a range
//! of leaves into complete subtrees, `proof` shows that a leaf or an older tree is inside a newer one, `tile`
//! lays the nodes out as C2SP tlog-tiles.
//!
//! Never fetches, stores or signs anything, and never says that a root can be trusted: that is for a signed
//! checkpoint to say.
//!
//! A [`Node`] is always complete: all leaves below it are present, so its digest never changes. The digests
//! at the right edge of a tree do change as it grows. They are folded from nodes when needed, never kept.

pub mod proof;
pub mod tile;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::digest::Digest;

pub use proof::{
    consistency_proof, inclusion_proof, subtree_consistency_proof, verify_consistency, verify_inclusion,
    verify_subtree_consistency, verify_subtree_inclusion,
};

/// Why a tree, a proof or a subtree was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message says what each field is")]
pub enum TreeError {
    /// A stored peaks does not have one digest for each one bit of its size.
    #[error("a tree of {size} leaves has {expected} peaks, not {found}")]
    PeakCount { size: u64, expected: usize, found: usize },
    /// A subtree does not begin where the tree ends, or ends beyond 2^64 - 1 leaves.
    #[error("a complete subtree of level {level} cannot follow {size} leaves")]
    Unaligned { level: u8, size: u64 },
    /// A leaf is asked for that the tree or subtree does not hold.
    #[error("leaf {index} is not among the leaves {begin} to {end}")]
    IndexOutside { index: u64, begin: u64, end: u64 },
    /// A range of leaves is no subtree of this tree: it is reversed, too long, or not aligned to its length.
    #[error("leaves {begin} to {end} are no subtree of a tree of {size} leaves")]
    NoSubtree { begin: u64, end: u64, size: u64 },
    /// A tree that is not empty is to be shown consistent with the empty one, which holds of any root.
    #[error("nothing is proven about a tree of {size} leaves by an older tree without any")]
    NothingProven { size: u64 },
    /// A proof has fewer digests than its sizes call for.
    #[error("the proof is too short: {found} digests")]
    ProofTooShort { found: usize },
    /// A proof has more digests than its sizes call for.
    #[error("the proof is too long: {found} digests")]
    ProofTooLong { found: usize },
    /// The proof leads to another root than the one it is for.
    #[error("the proof leads to root {found}, not {expected}")]
    RootDiffers { expected: Digest, found: Digest },
    /// The proof leads to another root of the older tree or subtree than the one it is for.
    #[error("the proof leads to older root {found}, not {expected}")]
    OlderRootDiffers { expected: Digest, found: Digest },
    /// The node source does not hold a node that the tree has.
    #[error("node {index} of level {level} is missing")]
    MissingNode { level: u8, index: u64 },
}

/// Returns the digest of a leaf, SHA-256 of 0x00 and the entry (RFC 6962 2.1).
pub fn leaf_hash(entry: &[u8]) -> Digest {
    Digest::of_parts(&[&[0], entry])
}

/// Returns the digests of several leaves at once, which costs less than one after the other.
pub fn leaf_hashes(entries: &[impl AsRef<[u8]>]) -> Vec<Digest> {
    Digest::of_each_behind(&[0], &entries.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

/// Returns the digest of an inner node, SHA-256 of 0x01 and both children (RFC 6962 2.1).
pub fn node_hash(left: &Digest, right: &Digest) -> Digest {
    let mut message = [1; 65];
    message[1..33].copy_from_slice(&left.0);
    message[33..].copy_from_slice(&right.0);
    Digest::of(&message)
}

/// Returns the node above each pair.
fn parents(nodes: &[Digest]) -> Vec<Digest> {
    let bytes: Vec<u8> = nodes.iter().flat_map(|node| node.0).collect();
    Digest::of_each_behind(&[1], &bytes.chunks_exact(64).collect::<Vec<_>>())
}

/// Returns the root of the tree without leaves, SHA-256 of nothing (RFC 6962 2.1).
pub fn empty_root() -> Digest {
    Digest::of(b"")
}

/// Position of a complete subtree: `index` subtrees of 2^`level` leaves are to its left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// The height above the leaves; leaves are level 0.
    pub level: u8,
    /// The place among the nodes of this level, from 0.
    pub index: u64,
}

impl Node {
    /// Returns the leaves below this node, or `None` if no tree of a `u64` size can hold it.
    pub fn leaves(self) -> Option<Range<u64>> {
        let width = 1u64.checked_shl(self.level.into())?;
        let begin = self.index.checked_mul(width)?;
        Some(begin..begin.checked_add(width)?)
    }

    fn parent(self) -> Node {
        Node { level: self.level + 1, index: self.index >> 1 }
    }
}

/// Cuts a range of leaves into the fewest complete subtrees, from left to right.
///
/// Pushed in this order with [`Peaks::push_subtree`] they stand in for the leaves themselves. A range that
/// ends before it begins has none.
pub fn cover(leaves: Range<u64>) -> impl Iterator<Item = Node> {
    let mut begin = leaves.start;
    std::iter::from_fn(move || {
        let length = leaves.end.checked_sub(begin).filter(|length| *length > 0)?;
        let level = length.ilog2().min(begin.trailing_zeros());
        let node = Node { level: level as u8, index: begin >> level };
        begin += 1 << level;
        Some(node)
    })
}

/// A tree seen from its right edge: its size and the digests of its peaks, which is all that growing it needs.
///
/// The peaks are the complete subtrees that [`cover`] gives for all leaves, largest first; at most 64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peaks {
    size: u64,
    peaks: Vec<Digest>,
}

impl Default for Peaks {
    fn default() -> Peaks {
        Peaks::new()
    }
}

impl Peaks {
    /// Makes the tree without leaves.
    pub fn new() -> Peaks {
        // With room for every peak there can be, pushing never allocates.
        Peaks { size: 0, peaks: Vec::with_capacity(64) }
    }

    /// Takes up a tree where [`Peaks::size`] and [`Peaks::peaks`] left it.
    ///
    /// Checks the count of the peaks. Whether they are the right ones shows only in the root.
    pub fn from_parts(size: u64, peaks: Vec<Digest>) -> Result<Peaks, TreeError> {
        let expected = size.count_ones() as usize;
        if peaks.len() != expected {
            return Err(TreeError::PeakCount { size, expected, found: peaks.len() });
        }
        let mut tree = Peaks::new();
        tree.peaks.extend(peaks);
        Ok(Peaks { size, ..tree })
    }

    /// Returns the number of leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the digests of the peaks, largest subtree first.
    pub fn peaks(&self) -> &[Digest] {
        &self.peaks
    }

    /// Returns the root, the Merkle Tree Hash of all leaves (RFC 6962 2.1).
    pub fn root(&self) -> Digest {
        fold(self.peaks.iter().copied()).unwrap_or_else(empty_root)
    }

    /// Appends one leaf by its digest.
    pub fn push(&mut self, leaf: Digest) {
        self.push_with(leaf, |_, _| {});
    }

    /// Appends leaves by their digests, as pushing each would, at less cost.
    pub fn extend(&mut self, leaves: Vec<Digest>) {
        let size = self.size.checked_add(leaves.len() as u64).expect("a tree holds at most 2^64 - 1 leaves");
        let (mut begin, mut nodes, mut lone) = (self.size, leaves, Vec::new());
        while !nodes.is_empty() {
            if begin & 1 == 1 {
                nodes.insert(0, self.peaks.pop().expect("the left sibling of an odd node is the last peak"));
            }
            if nodes.len() % 2 == 1 {
                lone.extend(nodes.pop());
            }
            (begin, nodes) = (begin >> 1, parents(&nodes));
        }
        self.peaks.extend(lone.into_iter().rev());
        self.size = size;
    }

    /// Appends one leaf and tells `created` of each node that it completes: the leaf, then its parents upward.
    pub fn push_with(&mut self, leaf: Digest, created: impl FnMut(Node, Digest)) {
        let pushed = self.push_subtree_with(0, leaf, created);
        assert!(pushed.is_ok(), "a tree holds at most 2^64 - 1 leaves");
    }

    /// Appends a complete subtree of 2^`level` leaves by its digest.
    ///
    /// Refused unless the size is a multiple of 2^`level`: elsewhere it would be no node of the tree.
    pub fn push_subtree(&mut self, level: u8, hash: Digest) -> Result<(), TreeError> {
        self.push_subtree_with(level, hash, |_, _| {})
    }

    /// Appends a complete subtree and tells `created` of it and of each node above it that it completes.
    pub fn push_subtree_with(
        &mut self,
        level: u8,
        mut hash: Digest,
        mut created: impl FnMut(Node, Digest),
    ) -> Result<(), TreeError> {
        let unaligned = TreeError::Unaligned { level, size: self.size };
        let width = 1u64.checked_shl(level.into()).ok_or(unaligned.clone())?;
        if self.size & (width - 1) != 0 {
            return Err(unaligned);
        }
        let size = self.size.checked_add(width).ok_or(unaligned)?;
        let mut node = Node { level, index: self.size >> level };
        created(node, hash);
        while node.index & 1 == 1 {
            let left = self.peaks.pop().expect("the left sibling of an odd node is the last peak");
            hash = node_hash(&left, &hash);
            node = node.parent();
            created(node, hash);
        }
        self.peaks.push(hash);
        self.size = size;
        Ok(())
    }
}

/// Returns the root of a tree of `size` leaves from its complete nodes.
pub fn tree_root(size: u64, node: impl FnMut(Node) -> Option<Digest>) -> Result<Digest, TreeError> {
    range_hash(0..size, node)
}

/// Makes a node source of a tree that is at hand as the digests of its leaves.
///
/// Each node is computed when asked for, at the cost of its leaves; for one proof that is one pass.
pub fn from_leaves(leaves: &[Digest]) -> impl Fn(Node) -> Option<Digest> {
    move |node| {
        let range = node.leaves()?;
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        leaves.get(range).map(perfect)
    }
}

/// Returns the Merkle Tree Hash of a range that is a subtree, also where the right edge cuts it short.
fn range_hash(leaves: Range<u64>, mut node: impl FnMut(Node) -> Option<Digest>) -> Result<Digest, TreeError> {
    let hashes: Vec<Digest> = cover(leaves)
        .map(|at| node(at).ok_or(TreeError::MissingNode { level: at.level, index: at.index }))
        .collect::<Result<_, _>>()?;
    Ok(fold(hashes.into_iter()).unwrap_or_else(empty_root))
}

/// Folds peaks into the root above them, from the right.
fn fold(peaks: impl DoubleEndedIterator<Item = Digest>) -> Option<Digest> {
    peaks.rev().reduce(|right, left| node_hash(&left, &right))
}

/// Returns the digest above a power of two of digests.
fn perfect(hashes: &[Digest]) -> Digest {
    match hashes {
        [one] => *one,
        _ => {
            let (left, right) = hashes.split_at(hashes.len() / 2);
            node_hash(&perfect(left), &perfect(right))
        }
    }
}
