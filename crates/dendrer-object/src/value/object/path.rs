//! Objects of which only the digests of the values are held, and the paths that prove one member of them.

use std::sync::{Arc, OnceLock};

use super::{
    Cached, LEAF_TAG, NODE_TAG, Node, ObjectEntry, SCALAR_TAG, Unknown, build, empty_digest, insert, nibble,
    node_digest,
};
use crate::digest::{Digest, Messages};
use crate::value::Value;

/// The most nodes of a path: a name has as many nibbles.
const DEPTH_MAX: usize = 64;

/// An object of which only the digests of the values are held. Its digest is that of the object ([`super::Object::digest`]).
#[derive(Clone, Default)]
pub(crate) struct DigestObject {
    root: Option<Arc<Node>>,
}

/// A node on the way to a member (`docs/format.md`, "State root").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathNode {
    /// A bit for each of the 16 nibbles that has a child.
    pub bitmap: u16,
    /// The digests of the children in order; `None` on the path.
    pub hashes: Vec<Option<Digest>>,
}

impl DigestObject {
    /// Sets members by the digests of their values.
    pub(crate) fn extend(&mut self, members: &[(&str, Digest)]) {
        let names: Vec<&[u8]> = members.iter().map(|(name, _)| name.as_bytes()).collect();
        let keys = Digest::of_each(&names);
        let mut leaves: Vec<(Digest, Digest)> =
            keys.iter().copied().zip(leaf_digests(&keys, members)).collect();
        match &mut self.root {
            None => {
                leaves.sort_unstable();
                let leaves: Vec<Arc<Node>> =
                    leaves.into_iter().map(|(key, digest)| Arc::new(known_leaf(key, digest))).collect();
                self.root = build(&leaves, 0);
            }
            Some(root) => leaves.into_iter().for_each(|(key, digest)| {
                insert(root, 0, known_leaf(key, digest));
            }),
        }
    }

    /// Returns the digest of the object.
    pub(crate) fn digest(&self) -> Digest {
        let Some(root) = &self.root else { return empty_digest() };
        let mut unknown = Unknown::default();
        unknown.find(root, 0);
        unknown.hash();
        node_digest(root)
    }

    /// Returns the nodes from the root down to a member; `None` for a name that it lacks.
    pub(crate) fn path(&self, name: &str) -> Option<Vec<PathNode>> {
        let (wanted, mut node) = (Digest::of(name.as_bytes()), self.root.as_ref()?);
        let mut nodes = Vec::new();
        loop {
            match &**node {
                Node::Leaf { key_digest, .. } => return (*key_digest == wanted).then_some(nodes),
                Node::Branch { bitmap, children, .. } => {
                    let at = child(*bitmap, &wanted, nodes.len())?;
                    let digest =
                        |(place, child): (usize, &Arc<Node>)| (place != at).then(|| node_digest(child));
                    nodes.push(PathNode {
                        bitmap: *bitmap,
                        hashes: children.iter().enumerate().map(digest).collect(),
                    });
                    node = &children[at];
                }
            }
        }
    }
}

/// Returns the digests of objects that have the same names, from the digests of their values: a column for each name. Many are
/// hashed at once, which costs a fraction of one after the other.
pub(crate) fn digests_of_alike(names: &[&str], columns: &[Vec<Digest>]) -> Vec<Digest> {
    let keys = names.iter().map(|name| Digest::of(name.as_bytes()));
    let mut leaves: Vec<(Digest, Vec<Digest>)> =
        keys.zip(columns).map(|(key, values)| (key, leaves_of_column(&key, values))).collect();
    leaves.sort_unstable_by_key(|(key, _)| *key);
    nodes_of_columns(&leaves, 0)
}

/// As [`build`] and [`node_digest`], for many objects of one shape at once: leaves are sorted by key digest.
fn nodes_of_columns(leaves: &[(Digest, Vec<Digest>)], level: usize) -> Vec<Digest> {
    if let [(_, leaf)] = leaves {
        return leaf.clone();
    }
    let (mut bitmap, mut children) = (0u16, Vec::new());
    for group in leaves.chunk_by(|(a, _), (b, _)| nibble(a, level) == nibble(b, level)) {
        bitmap |= 1 << nibble(&group[0].0, level);
        children.push(nodes_of_columns(group, level + 1));
    }
    let rows = children.first().map_or(0, Vec::len);
    let mut messages = Messages::with_capacity(rows * (NODE_TAG.len() + 2 + 32 * children.len()), rows);
    for row in 0..rows {
        messages.push(|out| {
            out.extend_from_slice(NODE_TAG);
            out.extend_from_slice(&bitmap.to_be_bytes());
            children.iter().for_each(|child| out.extend_from_slice(&child[row].0));
        });
    }
    messages.digests()
}

/// Returns the digests of one member in many objects. Equal values that follow each other are hashed once.
fn leaves_of_column(key: &Digest, values: &[Digest]) -> Vec<Digest> {
    let runs: Vec<&[Digest]> = values.chunk_by(|a, b| a == b).collect();
    let firsts: Vec<&[u8]> = runs.iter().map(|run| &run[0].0[..]).collect();
    let hashed = Digest::of_each_behind(&[LEAF_TAG, &key.0].concat(), &firsts);
    hashed.into_iter().zip(runs).flat_map(|(leaf, run)| std::iter::repeat_n(leaf, run.len())).collect()
}

/// Returns the digests of the texts of digests.
pub(crate) fn digests_of_texts(digests: &[Digest]) -> Vec<Digest> {
    let size = SCALAR_TAG.len() + Digest::TEXT_SIZE + 2;
    let mut messages = Messages::with_capacity(digests.len() * size, digests.len());
    for digest in digests {
        messages.push(|out| {
            out.extend_from_slice(SCALAR_TAG);
            out.push(b'"');
            digest.write_text(out);
            out.push(b'"');
        });
    }
    messages.digests()
}

/// Computes the digest of an object from one member and the nodes from the root down to it. `None` if the nodes do not lead to a
/// member of this name.
pub(crate) fn root_of_path(name: &str, value: Digest, nodes: &[PathNode]) -> Option<Digest> {
    if nodes.len() > DEPTH_MAX {
        return None;
    }
    let key = Digest::of(name.as_bytes());
    let mut digest = Digest::of_parts(&[LEAF_TAG, &key.0, &value.0]);
    for (level, node) in nodes.iter().enumerate().rev() {
        let at = child(node.bitmap, &key, level)?;
        if node.hashes.len() != node.bitmap.count_ones() as usize {
            return None;
        }
        let mut preimage = [NODE_TAG, &node.bitmap.to_be_bytes()[..]].concat();
        for (place, hash) in node.hashes.iter().enumerate() {
            match (hash, place == at) {
                (Some(hash), false) => preimage.extend_from_slice(&hash.0),
                (None, true) => preimage.extend_from_slice(&digest.0),
                _ => return None,
            }
        }
        digest = Digest::of(&preimage);
    }
    Some(digest)
}

/// The place of the child on the path of a name; `None` without such a child.
fn child(bitmap: u16, key: &Digest, level: usize) -> Option<usize> {
    let bit = 1u16 << nibble(key, level);
    (bitmap & bit != 0).then(|| (bitmap & (bit - 1)).count_ones() as usize)
}

fn leaf_digests(keys: &[Digest], members: &[(&str, Digest)]) -> Vec<Digest> {
    let mut messages = Messages::with_capacity(members.len() * (LEAF_TAG.len() + 64), members.len());
    for (key, (_, value)) in keys.iter().zip(members) {
        messages.push(|out| [LEAF_TAG, &key.0, &value.0].iter().for_each(|part| out.extend_from_slice(part)));
    }
    messages.digests()
}

/// A leaf whose digest is known, and whose member is not.
fn known_leaf(key_digest: Digest, leaf: Digest) -> Node {
    static NAME: OnceLock<Arc<str>> = OnceLock::new();
    let key = Arc::clone(NAME.get_or_init(|| "".into()));
    let digest = Cached::default();
    digest.get(|| leaf);
    Node::Leaf { key_digest, entry: ObjectEntry { key, value: Value::Null, salt: None }, digest }
}
