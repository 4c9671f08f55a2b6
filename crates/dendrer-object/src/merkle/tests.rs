#![expect(clippy::needless_range_loop, reason = "sizes and indexes are what these tests are about")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::tile::{
    ENTRY_BYTES_MAX, FULL_WIDTH, Tile, TileError, TileKind, TileReader, decode_entries, decode_hashes,
    encode_entries, encode_hashes,
};
use super::*;

/// The tree written down as RFC 6962 section 2.1 has it: recursive, over entries, with nothing remembered.
mod oracle {
    use super::Digest;

    fn split(n: usize) -> usize {
        let mut k = 1;
        while k * 2 < n {
            k *= 2;
        }
        k
    }

    pub(super) fn mth(d: &[Vec<u8>]) -> Digest {
        match d {
            [] => Digest::of(&[]),
            [entry] => Digest::of(&[&[0], entry.as_slice()].concat()),
            _ => {
                let (left, right) = d.split_at(split(d.len()));
                Digest::of(&[&[1], &mth(left).0[..], &mth(right).0[..]].concat())
            }
        }
    }

    pub(super) fn path(m: usize, d: &[Vec<u8>]) -> Vec<Digest> {
        if d.len() == 1 {
            return vec![];
        }
        let k = split(d.len());
        let (left, right) = d.split_at(k);
        let (mut path, sibling) =
            if m < k { (path(m, left), mth(right)) } else { (path(m - k, right), mth(left)) };
        path.push(sibling);
        path
    }

    /// SUBTREE_SUBPROOF; with a start of 0 it is SUBPROOF of RFC 6962.
    pub(super) fn subproof(start: usize, end: usize, d: &[Vec<u8>], known: bool) -> Vec<Digest> {
        if start == 0 && end == d.len() {
            return if known { vec![] } else { vec![mth(d)] };
        }
        let k = split(d.len());
        let (left, right) = d.split_at(k);
        let (mut proof, sibling) = if end <= k {
            (subproof(start, end, left, known), mth(right))
        } else if k <= start {
            (subproof(start - k, end - k, right, known), mth(left))
        } else {
            (subproof(0, end - k, right, false), mth(left))
        };
        proof.push(sibling);
        proof
    }
}

const SIZE_MAX: usize = 70;

fn entries(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| format!("entry {i}").into_bytes()).collect()
}

fn leaves(entries: &[Vec<u8>]) -> Vec<Digest> {
    entries.iter().map(|entry| leaf_hash(entry)).collect()
}

fn flip(digest: Digest, bit: usize) -> Digest {
    let mut bytes = digest.0;
    bytes[bit / 8] ^= 1 << (bit % 8);
    Digest(bytes)
}

/// Every proof that is one digest longer, one shorter, or has two neighbours swapped.
fn reshaped(proof: &[Digest]) -> Vec<Vec<Digest>> {
    let mut all = Vec::new();
    for at in 0..=proof.len() {
        for extra in proof.iter().copied().chain([empty_root(), Digest([0; 32])]) {
            let mut longer = proof.to_vec();
            longer.insert(at, extra);
            all.push(longer);
        }
    }
    for at in 0..proof.len() {
        let mut shorter = proof.to_vec();
        shorter.remove(at);
        all.push(shorter);
        if at > 0 && proof[at] != proof[at - 1] {
            let mut swapped = proof.to_vec();
            swapped.swap(at, at - 1);
            all.push(swapped);
        }
    }
    all
}

/// Every proof with one bit of one digest changed; `step` greater than 1 leaves bits out.
fn flipped(proof: &[Digest], step: usize) -> Vec<Vec<Digest>> {
    let bits = (0..proof.len() * 256).step_by(step);
    bits.map(|bit| {
        let mut changed = proof.to_vec();
        changed[bit / 256] = flip(changed[bit / 256], bit % 256);
        changed
    })
    .collect()
}

/// All bits for small trees and those around a power of two, a sample that moves from bit to bit for the rest.
fn bit_step(size: usize) -> usize {
    if size <= 9 || (63..=65).contains(&size) { 1 } else { 61 }
}

#[test]
fn hashes_are_those_of_rfc_6962() {
    let hex = |digest: Digest| digest.hex();
    assert_eq!(hex(empty_root()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(hex(leaf_hash(b"")), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
    let (left, right) = (leaf_hash(b"a"), leaf_hash(b"b"));
    assert_eq!(node_hash(&left, &right), Digest::of(&[&[1], &left.0[..], &right.0[..]].concat()));
}

#[test]
fn the_frontier_has_the_root_of_every_prefix() {
    let entries = entries(300);
    let mut peaks = Peaks::new();
    for size in 0..=entries.len() {
        assert_eq!(peaks.size(), size as u64);
        assert_eq!(peaks.root(), oracle::mth(&entries[..size]));
        let again = Peaks::from_parts(peaks.size(), peaks.peaks().to_vec()).unwrap();
        assert_eq!(again, peaks);
        if let Some(entry) = entries.get(size) {
            peaks.push(leaf_hash(entry));
        }
    }
}

#[test]
fn leaves_in_groups_give_the_tree_that_single_leaves_give() {
    let leaves: Vec<Digest> = entries(150).iter().map(|entry| leaf_hash(entry)).collect();
    for begin in 0..70 {
        let mut single = Peaks::new();
        leaves[..begin].iter().for_each(|leaf| single.push(*leaf));
        for end in begin..leaves.len() {
            let mut grouped = Peaks::from_parts(begin as u64, single.peaks().to_vec()).unwrap();
            grouped.extend(leaves[begin..end].to_vec());
            let mut pushed = single.clone();
            leaves[begin..end].iter().for_each(|leaf| pushed.push(*leaf));
            assert_eq!(grouped, pushed, "{begin} to {end}");
        }
    }
}

#[test]
fn the_frontier_tells_of_each_complete_node_once() {
    let entries = entries(SIZE_MAX);
    let mut peaks = Peaks::new();
    let mut nodes = BTreeMap::new();
    for entry in &entries {
        peaks.push_with(leaf_hash(entry), |node, hash| {
            assert_eq!(nodes.insert(node, hash), None, "{node:?} told twice");
        });
    }
    for (node, hash) in &nodes {
        let leaves = node.leaves().unwrap();
        assert_eq!(*hash, oracle::mth(&entries[leaves.start as usize..leaves.end as usize]));
    }
    let complete: usize = (0..7).map(|level| SIZE_MAX >> level).sum();
    assert_eq!(nodes.len(), complete);
}

#[test]
fn a_frontier_needs_one_peak_for_each_one_bit() {
    let refused = Peaks::from_parts(5, vec![empty_root()]);
    assert_eq!(refused, Err(TreeError::PeakCount { size: 5, expected: 2, found: 1 }));
    assert!(Peaks::from_parts(0, vec![empty_root()]).is_err());
    assert!(Peaks::from_parts(u64::MAX, vec![empty_root(); 64]).is_ok());
}

#[test]
fn a_subtree_is_refused_where_it_is_no_node() {
    let hash = empty_root();
    for size in 0u64..=16 {
        for level in 0..=80u8 {
            let peaks = vec![hash; size.count_ones() as usize];
            let mut peaks = Peaks::from_parts(size, peaks).unwrap();
            let fits = level < 64 && size % (1 << level) == 0;
            assert_eq!(peaks.push_subtree(level, hash).is_ok(), fits, "size {size} level {level}");
            let grown = if fits { size + (1 << level) } else { size };
            assert_eq!((peaks.size(), peaks.peaks().len()), (grown, grown.count_ones() as usize));
        }
    }
    let mut peaks = Peaks::from_parts(1 << 63, vec![hash]).unwrap();
    assert_eq!(peaks.push_subtree(63, hash), Err(TreeError::Unaligned { level: 63, size: 1 << 63 }));
}

#[test]
#[should_panic(expected = "a tree holds at most 2^64 - 1 leaves")]
fn a_tree_of_all_leaves_takes_no_more() {
    Peaks::from_parts(u64::MAX, vec![empty_root(); 64]).unwrap().push(empty_root());
}

#[test]
fn a_cover_is_the_shortest_list_of_adjoining_nodes() {
    for begin in 0..=SIZE_MAX {
        // The fewest aligned blocks from `begin` to each end, by trying every last block.
        let mut fewest = vec![0usize; SIZE_MAX + 1];
        for end in begin + 1..=SIZE_MAX {
            let blocks = (0..7).map(|level| 1usize << level);
            let fitting = blocks.filter(|width| end % width == 0 && end - begin >= *width);
            fewest[end] = 1 + fitting.map(|width| fewest[end - width]).min().unwrap();
        }
        for end in begin..=SIZE_MAX {
            let mut reached = begin as u64;
            let nodes: Vec<Node> = cover(begin as u64..end as u64).collect();
            for node in &nodes {
                let leaves = node.leaves().unwrap();
                assert_eq!(leaves.start, reached);
                reached = leaves.end;
            }
            assert_eq!((reached, nodes.len()), (end as u64, fewest[end]));
        }
    }
    let reversed = Range { start: 5, end: 3 };
    assert_eq!(cover(reversed).count(), 0);
    assert_eq!(cover(0..u64::MAX).count(), 64);
    assert_eq!(cover(1..u64::MAX).count(), 126);
}

#[test]
fn omitted_leaves_are_replaced_by_their_cover() {
    let entries = entries(SIZE_MAX);
    let leaves = leaves(&entries);
    let node = from_leaves(&leaves);
    for begin in 0..=SIZE_MAX {
        for end in begin..=SIZE_MAX {
            let mut peaks = Peaks::new();
            leaves[..begin].iter().for_each(|leaf| peaks.push(*leaf));
            for omitted in cover(begin as u64..end as u64) {
                peaks.push_subtree(omitted.level, node(omitted).unwrap()).unwrap();
            }
            leaves[end..].iter().for_each(|leaf| peaks.push(*leaf));
            assert_eq!((peaks.size(), peaks.root()), (70, oracle::mth(&entries)));
        }
    }
}

#[test]
fn nodes_beyond_any_tree_have_no_leaves() {
    let check = |level, index, expected| assert_eq!(Node { level, index }.leaves(), expected);
    check(0, 0, Some(0..1));
    check(3, 2, Some(16..24));
    check(63, 0, Some(0..1 << 63));
    check(63, 1, None);
    check(64, 0, None);
    check(255, u64::MAX, None);
    check(0, u64::MAX, None);
    assert_eq!(from_leaves(&[empty_root()])(Node { level: 0, index: 1 }), None);
}

#[test]
fn inclusion_proofs_are_path_and_nothing_near_them_verifies() {
    let entries = entries(SIZE_MAX);
    let leaves = leaves(&entries);
    for size in 1..=SIZE_MAX {
        let (tree, root) = (&entries[..size], oracle::mth(&entries[..size]));
        let node = from_leaves(&leaves[..size]);
        assert_eq!(tree_root(size as u64, &node).unwrap(), root);
        for index in 0..size {
            let proof = inclusion_proof(index as u64, size as u64, &node).unwrap();
            assert_eq!(proof, oracle::path(index, tree));
            let verify = |index: usize, leaf: Digest, proof: &[Digest], root: Digest| {
                verify_inclusion(index as u64, size as u64, &leaf, proof, &root)
            };
            assert_eq!(verify(index, leaves[index], &proof, root), Ok(()));
            for other in (0..size + 3).filter(|other| *other != index) {
                assert!(verify(other, leaves[index], &proof, root).is_err());
            }
            for wrong in reshaped(&proof).iter().chain(&flipped(&proof, bit_step(size))) {
                assert!(verify(index, leaves[index], wrong, root).is_err());
            }
            let bit = (size * 7 + index) % 256;
            assert!(verify(index, flip(leaves[index], bit), &proof, root).is_err());
            let differs =
                TreeError::RootDiffers { expected: flip(root, bit), found: oracle::mth(&entries[..size]) };
            assert_eq!(verify(index, leaves[index], &proof, flip(root, bit)), Err(differs));
        }
        assert!(inclusion_proof(size as u64, size as u64, &node).is_err());
    }
    let outside = TreeError::IndexOutside { index: 0, begin: 0, end: 0 };
    assert_eq!(verify_inclusion(0, 0, &leaves[0], &[], &empty_root()), Err(outside.clone()));
    assert_eq!(inclusion_proof(0, 0, |_| None), Err(outside));
}

#[test]
fn consistency_proofs_are_proof_and_nothing_near_them_verifies() {
    let entries = entries(SIZE_MAX);
    let leaves = leaves(&entries);
    let roots: Vec<Digest> = (0..=SIZE_MAX).map(|size| oracle::mth(&entries[..size])).collect();
    for new in 0..=SIZE_MAX {
        let node = from_leaves(&leaves[..new]);
        for old in 0..=new {
            let proof = consistency_proof(old as u64, new as u64, &node).unwrap();
            let expected = if old == 0 { vec![] } else { oracle::subproof(0, old, &entries[..new], true) };
            assert_eq!(proof, expected);
            let verify = |proof: &[Digest], old_root: Digest, new_root: Digest| {
                verify_consistency(old as u64, new as u64, proof, &old_root, &new_root)
            };
            let nothing = Err(TreeError::NothingProven { size: new as u64 });
            let verdict = if old == 0 && new > 0 { nothing } else { Ok(()) };
            assert_eq!(verify(&proof, roots[old], roots[new]), verdict);
            for wrong in reshaped(&proof).iter().chain(&flipped(&proof, bit_step(new))) {
                assert!(verify(wrong, roots[old], roots[new]).is_err(), "{old} {new}");
            }
            let bit = (old * 7 + new) % 256;
            assert!(verify(&proof, flip(roots[old], bit), roots[new]).is_err());
            assert!(verify(&proof, roots[old], flip(roots[new], bit)).is_err());
            let reversed = verify_consistency(new as u64, old as u64, &proof, &roots[new], &roots[old]);
            assert_eq!(reversed.is_ok(), old == new);
        }
    }
}

#[test]
fn a_proof_of_the_wrong_length_is_told_from_a_wrong_one() {
    let leaves = leaves(&entries(7));
    let (node, root) = (from_leaves(&leaves), oracle::mth(&entries(7)));
    let proof = inclusion_proof(2, 7, &node).unwrap();
    let verify = |proof: &[Digest]| verify_inclusion(2, 7, &leaves[2], proof, &root);
    assert_eq!(verify(&proof[..2]), Err(TreeError::ProofTooShort { found: 2 }));
    assert_eq!(verify(&[&proof[..], &[root]].concat()), Err(TreeError::ProofTooLong { found: 4 }));
    let proof = consistency_proof(3, 7, &node).unwrap();
    let old_root = oracle::mth(&entries(3));
    let verify = |proof: &[Digest], old: Digest| verify_consistency(3, 7, proof, &old, &root);
    assert_eq!(verify(&[], old_root), Err(TreeError::ProofTooShort { found: 0 }));
    assert_eq!(verify(&proof[..3], old_root), Err(TreeError::ProofTooShort { found: 3 }));
    assert_eq!(verify(&[&proof[..], &[root]].concat(), old_root), Err(TreeError::ProofTooLong { found: 5 }));
    let differs = TreeError::OlderRootDiffers { expected: root, found: old_root };
    assert_eq!(verify(&proof, root), Err(differs));
}

#[test]
fn subtree_proofs_are_subtree_proof_and_verify() {
    let entries = entries(40);
    let leaves = leaves(&entries);
    for size in 0..=40usize {
        let root = oracle::mth(&entries[..size]);
        let node = from_leaves(&leaves[..size]);
        for (begin, end) in (0..=size + 1).flat_map(|begin| (0..=size + 1).map(move |end| (begin, end))) {
            let subtree = Range { start: begin as u64, end: end as u64 };
            let proof = subtree_consistency_proof(subtree.clone(), size as u64, &node);
            let width = end.saturating_sub(begin).next_power_of_two();
            if begin > end || end > size || (begin < end && begin % width != 0) {
                let refused =
                    TreeError::NoSubtree { begin: begin as u64, end: end as u64, size: size as u64 };
                assert_eq!(proof, Err(refused));
                continue;
            }
            let (proof, subroot) = (proof.unwrap(), oracle::mth(&entries[begin..end]));
            if begin < end {
                assert_eq!(proof, oracle::subproof(begin, end, &entries[..size], true));
            }
            let verify = |proof: &[Digest], subroot: Digest, root: Digest| {
                verify_subtree_consistency(subtree.clone(), size as u64, proof, &subroot, &root)
            };
            assert_eq!(verify(&proof, subroot, root), Ok(()));
            for wrong in reshaped(&proof).iter().chain(&flipped(&proof, 101)) {
                assert!(verify(wrong, subroot, root).is_err());
            }
            assert!(verify(&proof, flip(subroot, end % 256), root).is_err());
            for index in begin..end {
                let proof = oracle::path(index - begin, &entries[begin..end]);
                let verify = |at: usize| {
                    let (at, leaf) = (at as u64, &leaves[index]);
                    verify_subtree_inclusion(at, subtree.clone(), leaf, &proof, &subroot)
                };
                assert_eq!(verify(index), Ok(()));
                assert!(verify(end).is_err() && verify(index + 1).is_err());
                assert!(begin == 0 || verify(begin - 1).is_err());
            }
        }
    }
}

#[test]
fn a_missing_node_is_named() {
    let leaves = leaves(&entries(7));
    let missing = Node { level: 1, index: 2 };
    let node = |at: Node| if at == missing { None } else { from_leaves(&leaves)(at) };
    let expected = TreeError::MissingNode { level: 1, index: 2 };
    assert_eq!(inclusion_proof(0, 7, node), Err(expected.clone()));
    assert_eq!(consistency_proof(4, 7, node), Err(expected.clone()));
    assert_eq!(tree_root(7, node), Err(expected));
    assert!(inclusion_proof(4, 7, node).is_ok());
}

#[test]
fn proofs_reach_the_largest_tree() {
    let hash = empty_root();
    let proof = inclusion_proof(u64::MAX - 1, u64::MAX, |_| Some(hash)).unwrap();
    let root = tree_root(u64::MAX, |_| Some(hash)).unwrap();
    assert_eq!(verify_inclusion(u64::MAX - 1, u64::MAX, &hash, &proof, &root), Ok(()));
    let consistency = consistency_proof(1 << 63, u64::MAX, |_| Some(hash)).unwrap();
    assert_eq!(verify_consistency(1 << 63, u64::MAX, &consistency, &hash, &root), Ok(()));
    let long = 1..u64::MAX;
    let refused = TreeError::NoSubtree { begin: 1, end: u64::MAX, size: u64::MAX };
    assert_eq!(verify_subtree_consistency(long, u64::MAX, &[], &hash, &root), Err(refused));
}

#[test]
fn tile_paths_are_those_of_tlog_tiles() {
    let size = 1_234_067 * 256 + 19;
    let path = |kind, index, size| Tile::of_tree(kind, index, size).map(|tile| tile.to_string());
    let hashes = |level| TileKind::Hashes { level };
    let check = |found: Option<String>, expected: &str| assert_eq!(found.as_deref(), Some(expected));
    check(path(hashes(0), 1_234_067, size), "tile/0/x001/x234/067.p/19");
    check(path(hashes(0), 1_234_066, size), "tile/0/x001/x234/066");
    check(path(TileKind::Entries, 0, size), "tile/entries/000");
    check(path(TileKind::Entries, 1000, size), "tile/entries/x001/000");
    check(path(hashes(7), 0, u64::MAX), "tile/7/000.p/255");
    assert_eq!(path(hashes(0), 1_234_068, size), None);
    assert_eq!(path(hashes(8), 0, u64::MAX), None);
    assert_eq!(path(hashes(1), 0, 255), None);
    assert_eq!(path(hashes(0), u64::MAX, u64::MAX), None);
}

#[test]
fn a_tree_of_70000_has_the_tiles_of_the_specification() {
    let tiles: Vec<Tile> = Tile::to_write(0, 70_000).collect();
    let count = |kind, full: bool| {
        tiles.iter().filter(|tile| tile.kind() == kind && (tile.width() == FULL_WIDTH) == full).count()
    };
    let level = |level| TileKind::Hashes { level };
    assert_eq!((count(level(0), true), count(level(0), false)), (273, 1));
    assert_eq!((count(level(1), true), count(level(1), false)), (1, 1));
    assert_eq!((count(level(2), true), count(level(2), false)), (0, 1));
    assert_eq!((count(TileKind::Entries, true), count(TileKind::Entries, false)), (273, 1));
    assert_eq!(tiles.len(), 274 * 2 + 3);
    for tile in ["tile/0/273.p/112", "tile/1/001.p/17", "tile/2/000.p/1"] {
        assert!(tiles.contains(&tile.parse().unwrap()), "{tile}");
    }
}

#[test]
fn only_new_tiles_are_written() {
    let check = |old, new, expected: &str| {
        let tiles: Vec<String> = Tile::to_write(old, new).map(|tile| tile.to_string()).collect();
        assert_eq!(tiles.join(" "), expected);
    };
    check(0, 0, "");
    check(5, 5, "");
    check(0, 1, "tile/entries/000.p/1 tile/0/000.p/1");
    check(255, 256, "tile/entries/000 tile/0/000 tile/1/000.p/1");
    check(256, 257, "tile/entries/001.p/1 tile/0/001.p/1");
    check(300, 520, "tile/entries/001 tile/entries/002.p/8 tile/0/001 tile/0/002.p/8 tile/1/000.p/2");
}

#[test]
fn tile_paths_have_one_spelling() {
    for good in ["tile/0/000", "tile/7/000.p/255", "tile/entries/x001/x234/067.p/1"] {
        assert_eq!(good.parse::<Tile>().unwrap().to_string(), good);
    }
    let bad = [
        "",
        "tile",
        "tile/",
        "tile/0",
        "tile/0/",
        "/tile/0/000",
        "tile/0/000/",
        "tile/00/000",
        "tile/+1/000",
        "tile/8/000",
        "tile/63/000",
        "tile/-1/000",
        "tile/a/000",
        "tile/0/0",
        "tile/0/00",
        "tile/0/0000",
        "tile/0/x000/000",
        "tile/0/001/000",
        "tile/0/x001/x000",
        "tile/0/x001",
        "tile/0/X001/000",
        "tile/0/x1/000",
        "tile/0/xx001/000",
        "tile/0/+01",
        "tile/0/000.p",
        "tile/0/000.p/",
        "tile/0/000.p/0",
        "tile/0/000.p/256",
        "tile/0/000.p/01",
        "tile/0/000.p/+1",
        "tile/0/000.p/1/",
        "tile/0/000.p/1.p/1",
        "tile/7/000",
        "tile/7/001.p/1",
        "tile/Entries/000",
        "tile/entries/",
        "tile/data/000",
        "tile/0/../000",
        "tile/0/x072/x057/x594/x037/x927/936",
        "tile/0/x999/x999/x999/x999/x999/x999/x999/x999/999",
    ];
    for text in bad {
        assert_eq!(text.parse::<Tile>(), Err(TileError::Path), "{text}");
    }
    // One less than the first refused index is the last full tile that a tree can have.
    assert!("tile/0/x072/x057/x594/x037/x927/934".parse::<Tile>().is_ok());
    assert!("tile/0/x072/x057/x594/x037/x927/935.p/255".parse::<Tile>().is_ok());
    assert!("tile/0/x072/x057/x594/x037/x927/935".parse::<Tile>().is_err());
}

#[test]
fn entry_bundles_hold_exactly_their_entries() {
    let tile: Tile = "tile/entries/000.p/3".parse().unwrap();
    let long = vec![7; ENTRY_BYTES_MAX];
    let entries: [&[u8]; 3] = [b"", b"one", &long];
    let bytes = encode_entries(entries).unwrap();
    assert_eq!(bytes[..8], [0, 0, 0, 3, b'o', b'n', b'e', 0xff]);
    assert_eq!(decode_entries(tile, &bytes).unwrap(), entries);
    for cut in [0, 1, 2, 3, 6, 7, 8, bytes.len() - 1] {
        assert_eq!(decode_entries(tile, &bytes[..cut]), Err(TileError::Entries { tile, expected: 3 }));
    }
    let surplus = [&bytes[..], &[0, 0]].concat();
    assert_eq!(decode_entries(tile, &surplus), Err(TileError::Entries { tile, expected: 3 }));
    let longer = vec![7; ENTRY_BYTES_MAX + 1];
    assert_eq!(encode_entries([&longer[..]]), Err(TileError::EntryTooLong { found: 65536 }));
}

/// All tiles of the trees at `sizes`, as a log would serve them after growing from one size to the next.
fn served(leaves: &[Digest], sizes: &[u64]) -> BTreeMap<Tile, Vec<u8>> {
    let mut tiles = BTreeMap::new();
    let mut old = 0;
    for size in sizes {
        let node = from_leaves(&leaves[..*size as usize]);
        for tile in Tile::to_write(old, *size).filter(|tile| tile.kind() != TileKind::Entries) {
            tiles.insert(tile, encode_hashes(tile, &node).unwrap());
        }
        old = *size;
    }
    tiles
}

#[test]
fn proofs_are_read_out_of_tiles() {
    let entries = entries(66_000);
    let leaves = leaves(&entries);
    let node = from_leaves(&leaves);
    let tiles = served(&leaves, &[1, 200, 256, 257, 600, 65_536, 66_000]);
    for size in [1u64, 200, 256, 257, 600, 65_536, 66_000] {
        let mut lookups = Vec::new();
        let mut reader = TileReader::new(size, |tile| {
            lookups.push(tile);
            tiles.get(&tile).cloned()
        });
        let root = reader.root().unwrap();
        assert_eq!(root, tree_root(size, &node).unwrap());
        for index in [0, 1, 100, 255, 256, 300, 599, 40_000, 65_535, size - 1] {
            if index < size {
                let proof = reader.inclusion_proof(index).unwrap();
                assert_eq!(proof, inclusion_proof(index, size, &node).unwrap());
                verify_inclusion(index, size, &leaves[index as usize], &proof, &root).unwrap();
            }
            if index <= size {
                let proof = reader.consistency_proof(index).unwrap();
                assert_eq!(proof, consistency_proof(index, size, &node).unwrap());
            }
        }
        assert!(reader.inclusion_proof(size).is_err());
        assert!(reader.consistency_proof(size + 1).is_err());
        let looked_up = lookups.len();
        lookups.sort();
        lookups.dedup();
        assert_eq!(looked_up, lookups.len(), "a tile was looked up twice");
    }
}

#[test]
fn a_full_tile_stands_in_for_a_partial_one() {
    let leaves = leaves(&entries(600));
    let mut tiles = served(&leaves, &[600]);
    let mut reader = TileReader::new(500, |tile| tiles.get(&tile).cloned());
    let missing: Tile = "tile/1/000.p/1".parse().unwrap();
    assert_eq!(reader.root(), Err(TileError::Missing { tile: missing }));

    tiles.insert(missing, encode_hashes(missing, from_leaves(&leaves)).unwrap());
    let mut reader = TileReader::new(500, |tile| tiles.get(&tile).cloned());
    assert_eq!(reader.root(), tree_root(500, from_leaves(&leaves)).map_err(TileError::Tree));
}

#[test]
fn malformed_tiles_are_refused() {
    let leaves = leaves(&entries(300));
    let tiles = served(&leaves, &[300]);
    for change in [-32isize, -1, 1, 32] {
        let mut reader = TileReader::new(300, |tile| {
            let mut bytes = tiles.get(&tile)?.clone();
            bytes.resize(bytes.len().saturating_add_signed(change), 0);
            Some(bytes)
        });
        assert!(matches!(reader.root(), Err(TileError::Length { .. })), "{change}");
    }
    let tile: Tile = "tile/0/001.p/44".parse().unwrap();
    let bytes = &tiles[&tile];
    assert_eq!(decode_hashes(tile, bytes).unwrap(), leaves[256..]);
    let length = TileError::Length { tile: tile.full(), expected: 8192, found: 44 * 32 };
    assert_eq!(decode_hashes(tile.full(), bytes), Err(length));
    let mut reader = TileReader::new(300, |tile| tiles.get(&tile).cloned());
    for (level, index) in [(0, 300), (9, 0), (8, 1), (64, 0), (255, u64::MAX)] {
        let missing = TreeError::MissingNode { level, index };
        assert_eq!(reader.read_node(Node { level, index }), Err(TileError::Tree(missing)));
    }
}

#[test]
fn errors_read_as_sentences() {
    let check = |error: &dyn std::fmt::Display, expected: &str| assert_eq!(error.to_string(), expected);
    check(&TreeError::IndexOutside { index: 9, begin: 0, end: 9 }, "leaf 9 is not among the leaves 0 to 9");
    let tile: Tile = "tile/0/001.p/44".parse().unwrap();
    check(&TileError::Length { tile, expected: 1408, found: 3 }, "tile/0/001.p/44 has 3 bytes, not 1408");
}

fn any_entries() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trees_of_any_entries_agree_with_the_oracle(
        entries in any_entries(), at: prop::sample::Index, old: prop::sample::Index,
    ) {
        let leaves = leaves(&entries);
        let (size, index) = (entries.len(), at.index(entries.len()));
        let old = old.index(size + 1);
        let node = from_leaves(&leaves);
        let mut peaks = Peaks::new();
        leaves.iter().for_each(|leaf| peaks.push(*leaf));
        let root = oracle::mth(&entries);
        prop_assert_eq!(peaks.root(), root);

        let proof = inclusion_proof(index as u64, size as u64, &node).unwrap();
        prop_assert_eq!(&proof, &oracle::path(index, &entries));
        verify_inclusion(index as u64, size as u64, &leaves[index], &proof, &root).unwrap();

        let old_root = oracle::mth(&entries[..old]);
        let proof = consistency_proof(old as u64, size as u64, &node).unwrap();
        let verdict = verify_consistency(old as u64, size as u64, &proof, &old_root, &root);
        prop_assert_eq!(verdict.is_ok(), old > 0);
    }

    #[test]
    fn a_proof_for_any_place_is_refused_at_any_other(
        size in 1u64.., a: prop::sample::Index, b: prop::sample::Index, seed: [u8; 32],
    ) {
        // Distinct digests for all nodes stand for a tree too large to build.
        let node = |at: Node| Some(Digest::of_parts(&[&seed, &[at.level], &at.index.to_be_bytes()]));
        let size = size.min(1 << 40);
        let (a, b) = (a.index(size as usize) as u64, b.index(size as usize) as u64);
        let leaf = node(Node { level: 0, index: a }).unwrap();
        let proof = inclusion_proof(a, size, node).unwrap();
        let found = match verify_inclusion(a, size, &leaf, &proof, &empty_root()) {
            Err(TreeError::RootDiffers { found, .. }) => found,
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(verify_inclusion(b, size, &leaf, &proof, &found).is_ok(), a == b);
    }

    #[test]
    fn any_tile_path_is_read_as_it_is_printed(level in 0u8..=7, index: u64, size: u64) {
        for kind in [TileKind::Entries, TileKind::Hashes { level }] {
            let shift = if kind == TileKind::Entries { 0 } else { u32::from(level) * 8 };
            let index = index % ((size >> shift >> 8) + 1);
            if let Some(tile) = Tile::of_tree(kind, index, size) {
                prop_assert_eq!(tile.to_string().parse::<Tile>(), Ok(tile));
            }
        }
    }

    #[test]
    fn no_text_or_bytes_panic(
        text in "(tile/)?[0-9exntris/.px+-]{0,40}",
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        width in 1u16..=255,
    ) {
        if let Ok(tile) = text.parse::<Tile>() {
            prop_assert_eq!(tile.to_string(), text);
        }
        let tile: Tile = format!("tile/entries/000.p/{width}").parse().unwrap();
        if let Ok(entries) = decode_entries(tile, &bytes) {
            prop_assert_eq!(encode_entries(entries).unwrap(), bytes);
        }
    }
}
