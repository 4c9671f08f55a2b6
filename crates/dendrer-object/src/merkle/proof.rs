//! Inclusion and consistency proofs: made from nodes, checked against roots.
//!
//! Proofs are those of RFC 6962 section 2.1; checking follows RFC 9162 2.1.3.2 and 2.1.4.2 (C2SP
//! merkle-tree), and for subtrees draft-ietf-plants-merkle-tree-certs section 4.
//!
//! Never accepts a proof that is merely good enough: one digest too many is as wrong as one too few. Making
//! and checking share no code on purpose, so that one mistake cannot hide in both.
//!
//! A proof binds what lies under a root, not the size: the size must come from where the root comes from,
//! a signed checkpoint.

use std::ops::Range;

use super::{Node, TreeError, empty_root, node_hash, range_hash};
use crate::digest::Digest;

/// Makes the proof that leaf `index` is in the tree of `size` leaves (PATH, RFC 6962 2.1.1).
///
/// `node` gives the digests of complete nodes. The nodes asked for are all inside the tree.
pub fn inclusion_proof(
    index: u64,
    size: u64,
    mut node: impl FnMut(Node) -> Option<Digest>,
) -> Result<Vec<Digest>, TreeError> {
    check_index(index, &(0..size))?;
    let (mut begin, mut end) = (0, size);
    let mut siblings = Vec::new();
    while end - begin > 1 {
        let middle = middle(begin, end);
        if index < middle {
            siblings.push(middle..end);
            end = middle;
        } else {
            siblings.push(begin..middle);
            begin = middle;
        }
    }
    siblings.into_iter().rev().map(|range| range_hash(range, &mut node)).collect()
}

/// Checks that `leaf` is leaf `index` of the tree of `size` leaves under `root` (RFC 9162 2.1.3.2).
pub fn verify_inclusion(
    index: u64,
    size: u64,
    leaf: &Digest,
    proof: &[Digest],
    root: &Digest,
) -> Result<(), TreeError> {
    check_index(index, &(0..size))?;
    let (mut position, mut last) = (index, size - 1);
    let mut hash = *leaf;
    for sibling in proof {
        if last == 0 {
            return Err(TreeError::ProofTooLong { found: proof.len() });
        }
        if position & 1 == 1 || position == last {
            hash = node_hash(sibling, &hash);
            // On these levels the node is the last one and has no sibling: it is its own parent.
            while position & 1 == 0 && position != 0 {
                position >>= 1;
                last >>= 1;
            }
        } else {
            hash = node_hash(&hash, sibling);
        }
        position >>= 1;
        last >>= 1;
    }
    if last != 0 {
        return Err(TreeError::ProofTooShort { found: proof.len() });
    }
    check_root(root, hash)
}

/// Checks that `leaf` is leaf `index` of a tree and lies in its subtree with `subtree_root`.
///
/// `index` counts from the begin of the tree. A range is a subtree if its begin is a multiple of its length
/// rounded up to a power of two (draft-ietf-plants-merkle-tree-certs 4.1).
pub fn verify_subtree_inclusion(
    index: u64,
    subtree: Range<u64>,
    leaf: &Digest,
    proof: &[Digest],
    subtree_root: &Digest,
) -> Result<(), TreeError> {
    check_subtree(&subtree, subtree.end)?;
    check_index(index, &subtree)?;
    verify_inclusion(index - subtree.start, subtree.end - subtree.start, leaf, proof, subtree_root)
}

/// Makes the proof that the tree of `old_size` leaves is the begin of that of `new_size`.
///
/// PROOF in RFC 6962 2.1.2. It is empty if both are the same, and if the older tree is empty; what follows an
/// empty tree is then left unproven, and [`verify_consistency`] says so.
pub fn consistency_proof(
    old_size: u64,
    new_size: u64,
    node: impl FnMut(Node) -> Option<Digest>,
) -> Result<Vec<Digest>, TreeError> {
    subtree_consistency_proof(0..old_size, new_size, node)
}

/// Checks that the tree under `old_root` is the begin of the tree under `new_root` (RFC 9162 2.1.4.2).
///
/// Nothing can be shown of a tree by its begin of 0 leaves, so that is refused unless both trees are empty.
/// A witness of a new log has no older root, so it has nothing to check.
pub fn verify_consistency(
    old_size: u64,
    new_size: u64,
    proof: &[Digest],
    old_root: &Digest,
    new_root: &Digest,
) -> Result<(), TreeError> {
    if old_size == 0 && new_size > 0 {
        return Err(TreeError::NothingProven { size: new_size });
    }
    verify_subtree_consistency(0..old_size, new_size, proof, old_root, new_root)
}

/// Makes the proof that a subtree is part of the tree of `size` leaves.
///
/// SUBTREE_PROOF in draft-ietf-plants-merkle-tree-certs 4; with a begin of 0 it is RFC 6962's PROOF.
pub fn subtree_consistency_proof(
    subtree: Range<u64>,
    size: u64,
    mut node: impl FnMut(Node) -> Option<Digest>,
) -> Result<Vec<Digest>, TreeError> {
    check_subtree(&subtree, size)?;
    consistency_ranges(subtree, size).into_iter().map(|range| range_hash(range, &mut node)).collect()
}

/// Checks that the subtree with `subtree_root` is part of the tree of `size` leaves under `root`.
///
/// The algorithm of draft-ietf-plants-merkle-tree-certs 4; with a begin of 0 it is that of RFC 9162 2.1.4.2.
/// An empty subtree is part of every tree; its proof is empty and says nothing about `root`.
pub fn verify_subtree_consistency(
    subtree: Range<u64>,
    size: u64,
    proof: &[Digest],
    subtree_root: &Digest,
    root: &Digest,
) -> Result<(), TreeError> {
    check_subtree(&subtree, size)?;
    if subtree.is_empty() {
        return verify_empty(size, proof, subtree_root, root);
    }
    let too_short = TreeError::ProofTooShort { found: proof.len() };
    let too_long = TreeError::ProofTooLong { found: proof.len() };

    // `first` and `last` are the subtree's outermost leaves, `tip` the tree's last one, each as the index of
    // the node above it at the level reached so far.
    let (mut first, mut last, mut tip) = (subtree.start, subtree.end - 1, size - 1);
    while first != last && (last == tip || last & 1 == 1) {
        first >>= 1;
        last >>= 1;
        tip >>= 1;
    }

    let mut rest = proof.iter();
    // A subtree that is one node of the tree is its own start; otherwise the proof brings its last peak.
    let start = if first == last { subtree_root } else { rest.next().ok_or(too_short.clone())? };
    let (mut older, mut newer) = (*start, *start);
    for sibling in rest {
        if tip == 0 {
            return Err(too_long);
        }
        if last & 1 == 1 || last == tip {
            if first < last {
                older = node_hash(sibling, &older);
            }
            newer = node_hash(sibling, &newer);
            while last & 1 == 0 {
                first >>= 1;
                last >>= 1;
                tip >>= 1;
            }
        } else {
            newer = node_hash(&newer, sibling);
        }
        first >>= 1;
        last >>= 1;
        tip >>= 1;
    }
    if tip != 0 {
        return Err(too_short);
    }
    if older != *subtree_root {
        return Err(TreeError::OlderRootDiffers { expected: *subtree_root, found: older });
    }
    check_root(root, newer)
}

/// Checks the one case without a path: nothing is part of everything.
fn verify_empty(size: u64, proof: &[Digest], subtree_root: &Digest, root: &Digest) -> Result<(), TreeError> {
    let found = empty_root();
    if !proof.is_empty() {
        return Err(TreeError::ProofTooLong { found: proof.len() });
    }
    if *subtree_root != found {
        return Err(TreeError::OlderRootDiffers { expected: *subtree_root, found });
    }
    if size == 0 { check_root(root, found) } else { Ok(()) }
}

/// Lists the subtrees whose digests make up a consistency proof, from the bottom upward.
fn consistency_ranges(mut subtree: Range<u64>, size: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    if subtree.is_empty() {
        return ranges;
    }
    let (mut begin, mut end) = (0, size);
    let mut root_is_known = true;
    while subtree != (begin..end) {
        let middle = middle(begin, end);
        if subtree.end <= middle {
            ranges.push(middle..end);
            end = middle;
        } else {
            ranges.push(begin..middle);
            begin = middle;
            if subtree.start < middle {
                subtree.start = middle;
                root_is_known = false;
            }
        }
    }
    if !root_is_known {
        ranges.push(subtree);
    }
    ranges.reverse();
    ranges
}

/// Returns where RFC 6962 splits two or more leaves: after the largest power of two below their number.
fn middle(begin: u64, end: u64) -> u64 {
    begin + (1 << (end - begin - 1).ilog2())
}

fn check_index(index: u64, leaves: &Range<u64>) -> Result<(), TreeError> {
    if leaves.contains(&index) {
        return Ok(());
    }
    Err(TreeError::IndexOutside { index, begin: leaves.start, end: leaves.end })
}

fn check_subtree(subtree: &Range<u64>, size: u64) -> Result<(), TreeError> {
    let (begin, end) = (subtree.start, subtree.end);
    let aligned = end.checked_sub(begin).is_some_and(|length| match length.checked_next_power_of_two() {
        Some(width) => length == 0 || begin & (width - 1) == 0,
        None => begin == 0,
    });
    if aligned && end <= size { Ok(()) } else { Err(TreeError::NoSubtree { begin, end, size }) }
}

fn check_root(expected: &Digest, found: Digest) -> Result<(), TreeError> {
    if found == *expected { Ok(()) } else { Err(TreeError::RootDiffers { expected: *expected, found }) }
}
