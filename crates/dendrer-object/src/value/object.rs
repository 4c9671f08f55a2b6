//! Objects: a sorted slice until the first change, then a trie over the SHA-256 of the names.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::{Cached, CachedSize, LeafSalt, SCALAR_TAG, Value, add_sizes, compare_names};
use crate::digest::{Digest, Messages};

pub(crate) mod path;

const EMPTY_TAG: &[u8] = b"dendrer/state/empty-object/v1\n";
const NODE_TAG: &[u8] = b"dendrer/state/object-node/v1\n";
const LEAF_TAG: &[u8] = b"dendrer/state/member/v1\n";
const SALTED_TAG: &[u8] = b"dendrer/state/salted-member/v1\n";

/// A map from distinct names to values. Cloning is cheap; changing one member copies a path, not the map.
#[derive(Clone)]
pub struct Object(Repr);

#[derive(Clone)]
enum Repr {
    /// Sorted by [`compare_names`], never changed in place.
    Slice(Arc<Slice>),
    Trie {
        len: usize,
        root: Option<Arc<Node>>,
    },
}

struct Slice {
    entries: Box<[ObjectEntry]>,
    /// The same members as a trie, made when their digest or another form is asked for.
    trie: OnceLock<Option<Arc<Node>>>,
    size: CachedSize,
}

/// A member of an object.
#[derive(Clone)]
pub struct ObjectEntry {
    /// The name.
    pub key: Arc<str>,
    /// The value.
    pub value: Value,
    /// Present where the path is personal: the leaf then hashes this salt too.
    pub salt: Option<LeafSalt>,
}

/// Members on their way out. Those of a slice stand in order already.
enum Entries<'a> {
    Slice(std::slice::Iter<'a, ObjectEntry>),
    Collected(std::vec::IntoIter<&'a ObjectEntry>),
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a ObjectEntry;

    fn next(&mut self) -> Option<&'a ObjectEntry> {
        match self {
            Entries::Slice(entries) => entries.next(),
            Entries::Collected(entries) => entries.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Entries::Slice(entries) => entries.size_hint(),
            Entries::Collected(entries) => entries.size_hint(),
        }
    }
}

#[derive(Clone)]
enum Node {
    /// `bitmap` has a bit for each of the 16 values of this level's nibble that has a child.
    Branch {
        bitmap: u16,
        children: Box<[Arc<Node>]>,
        digest: Cached,
        size: CachedSize,
    },
    Leaf {
        key_digest: Digest,
        entry: ObjectEntry,
        digest: Cached,
    },
}

impl Default for Object {
    fn default() -> Object {
        Object(Repr::Trie { len: 0, root: None })
    }
}

impl Object {
    /// Returns how many members there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Slice(slice) => slice.entries.len(),
            Repr::Trie { len, .. } => *len,
        }
    }

    /// Tells whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes members that are already in canonical order without repeats. The parser's way in.
    pub(crate) fn from_sorted(entries: Vec<ObjectEntry>) -> Object {
        debug_assert!(entries.windows(2).all(|pair| compare_names(&pair[0].key, &pair[1].key).is_lt()));
        Object(Repr::Slice(Arc::new(Slice {
            entries: entries.into(),
            trie: OnceLock::new(),
            size: CachedSize::default(),
        })))
    }

    /// Returns the value of a member.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns a member with its salt.
    pub fn entry(&self, key: &str) -> Option<&ObjectEntry> {
        match &self.0 {
            Repr::Slice(slice) => slice.get(key),
            Repr::Trie { root, .. } => find(root.as_ref()?, &Digest::of(key.as_bytes())),
        }
    }

    /// As [`Object::get`], for a caller that looks the same name up often and has its SHA-256.
    pub fn get_hashed(&self, key: &str, key_digest: &Digest) -> Option<&Value> {
        match &self.0 {
            Repr::Slice(slice) => slice.get(key).map(|entry| &entry.value),
            Repr::Trie { root, .. } => find(root.as_ref()?, key_digest).map(|entry| &entry.value),
        }
    }

    /// As [`Object::get_hashed`], for a caller that looks for many names in canonical order. `next` is 0 at first, and kept
    /// from one to the next.
    pub fn get_in_turn(&self, key: &str, key_digest: &Digest, next: &mut usize) -> Option<&Value> {
        let Repr::Slice(slice) = &self.0 else { return self.get_hashed(key, key_digest) };
        let at = match slice.entries.get(*next) {
            Some(entry) if is_same(&entry.key, key) => *next,
            _ => slice.position(key)?,
        };
        *next = at + 1;
        Some(&slice.entries[at].value)
    }

    /// Tells whether there is a member of this name.
    pub fn contains_key(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Walks the members in canonical order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.sorted().map(|entry| (&entry.key, &entry.value))
    }

    /// Walks the members in an order that is fixed but means nothing: use it where order cannot matter.
    pub fn entries(&self) -> impl Iterator<Item = &ObjectEntry> {
        self.walk(|_| {})
    }

    fn sorted(&self) -> Entries<'_> {
        self.walk(|all| all.sort_unstable_by(|a, b| compare_names(&a.key, &b.key)))
    }

    /// Walks a slice as it is, and of a trie what `arrange` makes of its members.
    fn walk<'a>(&'a self, arrange: impl FnOnce(&mut Vec<&'a ObjectEntry>)) -> Entries<'a> {
        match &self.0 {
            Repr::Slice(slice) => Entries::Slice(slice.entries.iter()),
            Repr::Trie { len, root } => {
                let mut all = Vec::with_capacity(*len);
                if let Some(root) = root {
                    collect(root, &mut all);
                }
                arrange(&mut all);
                Entries::Collected(all.into_iter())
            }
        }
    }

    /// Returns the value of a member to be changed in its place. Nodes that other objects share are copied first, as far as
    /// they lead there.
    pub fn value_mut(&mut self, key: &str) -> Option<&mut Value> {
        if matches!(&self.0, Repr::Slice(slice) if slice.position(key).is_none()) {
            return None;
        }
        let key_digest = Digest::of(key.as_bytes());
        let root = self.trie_mut().1.as_mut()?;
        find(root, &key_digest)?;
        Some(value_mut(root, 0, &key_digest))
    }

    /// Sets a member, without a salt.
    pub fn set(&mut self, key: &str, value: Value) {
        self.set_entry(ObjectEntry { key: key.into(), value, salt: None });
    }

    /// Sets a member whose leaf is salted.
    pub fn set_salted(&mut self, key: &str, value: Value, salt: LeafSalt) {
        self.set_entry(ObjectEntry { key: key.into(), value, salt: Some(salt) });
    }

    /// Sets a member as given.
    pub fn set_entry(&mut self, entry: ObjectEntry) {
        let key_digest = Digest::of(entry.key.as_bytes());
        let (len, root) = self.trie_mut();
        match root {
            Some(node) => *len += usize::from(insert(node, 0, leaf(key_digest, entry))),
            None => {
                *root = Some(Arc::new(leaf(key_digest, entry)));
                *len = 1;
            }
        }
    }

    /// Removes a member and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let removed = self.get(key)?.clone();
        let key_digest = Digest::of(key.as_bytes());
        let (len, root) = self.trie_mut();
        *root = remove(root.as_ref()?, 0, &key_digest);
        *len -= 1;
        Some(removed)
    }

    /// Turns into the form that can be changed, once.
    fn trie_mut(&mut self) -> (&mut usize, &mut Option<Arc<Node>>) {
        if let Repr::Slice(slice) = &self.0 {
            self.0 = Repr::Trie { len: slice.entries.len(), root: slice.trie().cloned() };
        }
        match &mut self.0 {
            Repr::Trie { len, root } => (len, root),
            Repr::Slice(_) => unreachable!("just turned into a trie"),
        }
    }

    /// Returns the digest of the members: `docs/format.md`, "State root".
    pub fn digest(&self) -> Digest {
        let root = match &self.0 {
            Repr::Slice(slice) => slice.trie(),
            Repr::Trie { root, .. } => root.as_ref(),
        };
        let Some(root) = root else { return empty_digest() };
        if self.len() >= MANY {
            let mut unknown = Unknown::default();
            unknown.find(root, 0);
            unknown.hash();
        }
        node_digest(root)
    }

    /// Returns how many bytes the canonical text has.
    pub fn size(&self) -> u64 {
        let members = match &self.0 {
            Repr::Slice(slice) => slice.size.get(|| add_sizes(slice.entries.iter().map(entry_size))),
            Repr::Trie { root, .. } => root.as_deref().map_or(0, node_size),
        };
        // Braces, and a comma between members.
        members.saturating_add(2 + self.len().saturating_sub(1) as u64)
    }

    /// Tells whether both are the same tree in memory, so that nothing below can differ.
    pub fn same_tree(&self, other: &Object) -> bool {
        match (&self.0, &other.0) {
            (Repr::Slice(a), Repr::Slice(b)) => Arc::ptr_eq(a, b),
            (Repr::Trie { root: Some(a), .. }, Repr::Trie { root: Some(b), .. }) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Slice {
    fn get(&self, key: &str) -> Option<&ObjectEntry> {
        self.position(key).map(|at| &self.entries[at])
    }

    fn position(&self, key: &str) -> Option<usize> {
        // Most objects have few members. Asking each whether it is the one is quicker then than asking for an order, which no
        // processor can foresee.
        match self.entries.len() <= 32 {
            true => self.entries.iter().position(|entry| is_same(&entry.key, key)),
            false => self.entries.binary_search_by(|entry| compare_names(&entry.key, key)).ok(),
        }
    }

    fn trie(&self) -> Option<&Arc<Node>> {
        let make = || {
            let keys: Vec<&[u8]> = self.entries.iter().map(|entry| entry.key.as_bytes()).collect();
            let mut members: Vec<(Digest, &ObjectEntry)> =
                Digest::of_each(&keys).into_iter().zip(self.entries.iter()).collect();
            // Eight bytes tell nearly all of them apart, and are compared in one step.
            let first =
                |key_digest: &Digest| key_digest.0.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
            members.sort_unstable_by(|(a, _), (b, _)| first(a).cmp(&first(b)).then_with(|| a.cmp(b)));
            let leaves = members.into_iter().map(|(digest, entry)| Arc::new(leaf(digest, entry.clone())));
            build(&leaves.collect::<Vec<_>>(), 0)
        };
        self.trie.get_or_init(make).as_ref()
    }
}

/// Compares names: lengths first, and then how they end, since names that stand together begin alike.
fn is_same(a: &str, b: &str) -> bool {
    let ends = |name: &str| name.as_bytes().last_chunk::<8>().copied();
    a.len() == b.len() && ends(a) == ends(b) && a == b
}

fn leaf(key_digest: Digest, entry: ObjectEntry) -> Node {
    Node::Leaf { key_digest, entry, digest: Cached::default() }
}

fn key_digest(node: &Node) -> &Digest {
    match node {
        Node::Leaf { key_digest, .. } => key_digest,
        Node::Branch { .. } => unreachable!("asked of leaves only"),
    }
}

fn nibble(key_digest: &Digest, level: usize) -> u16 {
    let byte = key_digest.0[level / 2];
    u16::from(if level.is_multiple_of(2) { byte >> 4 } else { byte & 15 })
}

/// Makes the node for leaves sorted by key digest that agree in the nibbles above `level`.
fn build(leaves: &[Arc<Node>], level: usize) -> Option<Arc<Node>> {
    match leaves {
        [] => None,
        [one] => Some(Arc::clone(one)),
        many => {
            let mut bitmap = 0u16;
            let mut children = Vec::new();
            for group in many.chunk_by(|a, b| nibble(key_digest(a), level) == nibble(key_digest(b), level)) {
                bitmap |= 1 << nibble(key_digest(&group[0]), level);
                children.extend(build(group, level + 1));
            }
            Some(branch(bitmap, children))
        }
    }
}

fn branch(bitmap: u16, children: Vec<Arc<Node>>) -> Arc<Node> {
    Arc::new(Node::Branch {
        bitmap,
        children: children.into(),
        digest: Cached::default(),
        size: CachedSize::default(),
    })
}

fn find<'a>(mut node: &'a Arc<Node>, wanted: &Digest) -> Option<&'a ObjectEntry> {
    let mut level = 0;
    loop {
        match &**node {
            Node::Leaf { key_digest, entry, .. } => return (key_digest == wanted).then_some(entry),
            Node::Branch { bitmap, children, .. } => {
                let bit = 1u16 << nibble(wanted, level);
                if bitmap & bit == 0 {
                    return None;
                }
                node = &children[(bitmap & (bit - 1)).count_ones() as usize];
                level += 1;
            }
        }
    }
}

/// Puts a leaf below `node` and tells whether the name is new there.
fn insert(node: &mut Arc<Node>, level: usize, new: Node) -> bool {
    let wanted = *key_digest(&new);
    match &**node {
        Node::Leaf { key_digest, .. } if *key_digest == wanted => {
            *node = Arc::new(new);
            false
        }
        Node::Leaf { .. } => {
            let mut both = [Arc::clone(node), Arc::new(new)];
            both.sort_unstable_by_key(|leaf| *key_digest(leaf));
            *node = build(&both, level).expect("two leaves make a node");
            true
        }
        Node::Branch { .. } => {
            let (bitmap, children) = branch_mut(node);
            let bit = 1u16 << nibble(&wanted, level);
            let at = (*bitmap & (bit - 1)).count_ones() as usize;
            if *bitmap & bit != 0 {
                return insert(&mut children[at], level + 1, new);
            }
            let mut more = std::mem::take(children).into_vec();
            more.insert(at, Arc::new(new));
            (*bitmap, *children) = (*bitmap | bit, more.into());
            true
        }
    }
}

/// Opens a branch to be changed. One that others have as well is copied first.
fn branch_mut(node: &mut Arc<Node>) -> (&mut u16, &mut Box<[Arc<Node>]>) {
    match Arc::make_mut(node) {
        Node::Branch { bitmap, children, digest, size } => {
            (*digest, *size) = (Cached::default(), CachedSize::default());
            (bitmap, children)
        }
        Node::Leaf { .. } => unreachable!("asked of branches only"),
    }
}

/// Opens the value of a name that is below `node` to be changed.
fn value_mut<'a>(node: &'a mut Arc<Node>, level: usize, wanted: &Digest) -> &'a mut Value {
    if let Node::Branch { .. } = &**node {
        let (bitmap, children) = branch_mut(node);
        let below = *bitmap & ((1u16 << nibble(wanted, level)) - 1);
        return value_mut(&mut children[below.count_ones() as usize], level + 1, wanted);
    }
    match Arc::make_mut(node) {
        Node::Leaf { entry, digest, .. } => {
            *digest = Cached::default();
            &mut entry.value
        }
        Node::Branch { .. } => unreachable!("looked at above"),
    }
}

/// Returns `node` without the name, collapsed so that its shape is that of a fresh build.
fn remove(node: &Arc<Node>, level: usize, wanted: &Digest) -> Option<Arc<Node>> {
    let Node::Branch { bitmap, children, .. } = &**node else {
        return None;
    };
    let bit = 1u16 << nibble(wanted, level);
    let at = (bitmap & (bit - 1)).count_ones() as usize;
    let mut rest = children.to_vec();
    let mut bitmap = *bitmap;
    match remove(&children[at], level + 1, wanted) {
        Some(child) => rest[at] = child,
        None => {
            rest.remove(at);
            bitmap &= !bit;
        }
    }
    match &rest[..] {
        [] => None,
        // A lone leaf moves up; a lone branch stays, since several names share the nibble.
        [only] if matches!(**only, Node::Leaf { .. }) => Some(Arc::clone(only)),
        _ => Some(branch(bitmap, rest)),
    }
}

fn collect<'a>(node: &'a Node, all: &mut Vec<&'a ObjectEntry>) {
    match node {
        Node::Leaf { entry, .. } => all.push(entry),
        Node::Branch { children, .. } => children.iter().for_each(|child| collect(child, all)),
    }
}

fn empty_digest() -> Digest {
    static EMPTY: OnceLock<Digest> = OnceLock::new();
    *EMPTY.get_or_init(|| Digest::of(EMPTY_TAG))
}

/// The bytes of a member: name, colon, value.
fn entry_size(entry: &ObjectEntry) -> u64 {
    let mut name = Vec::with_capacity(entry.key.len() + 2);
    crate::json::write_string(&entry.key, &mut name);
    entry.value.size().saturating_add(name.len() as u64 + 1)
}

/// The bytes of the members below a node, without separators.
fn node_size(node: &Node) -> u64 {
    match node {
        Node::Leaf { entry, .. } => entry_size(entry),
        Node::Branch { children, size, .. } => {
            size.get(|| add_sizes(children.iter().map(|child| node_size(child))))
        }
    }
}

fn node_digest(node: &Node) -> Digest {
    match node {
        Node::Leaf { key_digest, entry, digest } => {
            digest.get(|| Digest::of_parts(&leaf_parts(key_digest, entry, &entry.value.digest())))
        }
        Node::Branch { bitmap, children, digest, .. } => digest.get(|| {
            let mut preimage = Vec::with_capacity(NODE_TAG.len() + 2 + children.len() * 32);
            write_branch(*bitmap, children, &mut preimage);
            Digest::of(&preimage)
        }),
    }
}

/// Returns the parts that the digest of a leaf is computed from.
fn leaf_parts<'a>(key_digest: &'a Digest, entry: &'a ObjectEntry, value: &'a Digest) -> [&'a [u8]; 4] {
    let (tag, salt): (_, &[u8]) = match &entry.salt {
        None => (LEAF_TAG, &[]),
        Some(salt) => (SALTED_TAG, salt),
    };
    [tag, salt, &key_digest.0, &value.0]
}

/// Appends what the digest of a branch is made of.
fn write_branch(bitmap: u16, children: &[Arc<Node>], out: &mut Vec<u8>) {
    out.extend_from_slice(NODE_TAG);
    out.extend_from_slice(&bitmap.to_be_bytes());
    children.iter().for_each(|child| out.extend_from_slice(&node_digest(child).0));
}

/// From how many members, leaves or branches on it is worth while to hash them together.
const MANY: usize = 16;

/// How many are hashed together at most, so that what they are made of stays in near memory.
const TOGETHER: usize = 1024;

/// Up to how many bytes a text is copied to be hashed beside others. A longer one fills the processor by itself.
const SHORT: usize = 64 << 10;

/// Nodes of which the digest is not known yet.
#[derive(Default)]
struct Unknown<'a> {
    leaves: Vec<UnknownLeaf<'a>>,
    /// By level, from the root down.
    branches: Vec<Vec<UnknownBranch<'a>>>,
}

/// A key digest, its member, and where the digest of the leaf is kept.
type UnknownLeaf<'a> = (&'a Digest, &'a ObjectEntry, &'a Cached);

/// A bitmap, its children, and where the digest of the branch is kept.
type UnknownBranch<'a> = (u16, &'a [Arc<Node>], &'a Cached);

impl<'a> Unknown<'a> {
    /// Finds them. A node below a known digest is known.
    fn find(&mut self, node: &'a Node, level: usize) {
        match node {
            Node::Leaf { key_digest, entry, digest } if !digest.is_known() => {
                self.leaves.push((key_digest, entry, digest));
            }
            Node::Branch { bitmap, children, digest, .. } if !digest.is_known() => {
                if self.branches.len() <= level {
                    self.branches.push(Vec::new());
                }
                self.branches[level].push((*bitmap, children, digest));
                children.iter().for_each(|child| self.find(child, level + 1));
            }
            _ => {}
        }
    }

    /// Computes the digests side by side, where there are many.
    fn hash(&self) {
        if self.leaves.len() >= MANY {
            self.leaves.chunks(TOGETHER).for_each(hash_leaves);
        }
        // The lowest first, because their digests stand in those above.
        for level in self.branches.iter().rev().filter(|level| level.len() >= MANY) {
            level.chunks(TOGETHER).for_each(hash_branches);
        }
    }
}

fn hash_leaves(leaves: &[UnknownLeaf<'_>]) {
    let is_short = |value: &Value| match value {
        Value::Array(_) | Value::Object(_) => false,
        Value::String(text) => text.len() <= SHORT,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    };
    let (mut short, mut messages) = (Messages::default(), Messages::default());
    for (_, entry, _) in leaves.iter().filter(|(_, entry, _)| is_short(&entry.value)) {
        short.push(|out| {
            out.extend_from_slice(SCALAR_TAG);
            crate::json::write(&entry.value, out);
        });
    }
    let mut short = short.digests().into_iter();
    for (key_digest, entry, _) in leaves {
        let value = match is_short(&entry.value) {
            true => short.next().expect("one for each of them"),
            false => entry.value.digest(),
        };
        messages.push(|out| {
            leaf_parts(key_digest, entry, &value).iter().for_each(|part| out.extend_from_slice(part));
        });
    }
    for ((_, _, cached), digest) in leaves.iter().zip(messages.digests()) {
        cached.get(|| digest);
    }
}

fn hash_branches(branches: &[UnknownBranch<'_>]) {
    let mut messages = Messages::default();
    for (bitmap, children, _) in branches {
        messages.push(|out| write_branch(*bitmap, children, out));
    }
    for ((_, _, cached), digest) in branches.iter().zip(messages.digests()) {
        cached.get(|| digest);
    }
}

impl FromIterator<(Arc<str>, Value)> for Object {
    /// Of several pairs with one name the last one wins.
    fn from_iter<T: IntoIterator<Item = (Arc<str>, Value)>>(pairs: T) -> Object {
        let mut entries: Vec<ObjectEntry> =
            pairs.into_iter().map(|(key, value)| ObjectEntry { key, value, salt: None }).collect();
        if entries.windows(2).all(|pair| compare_names(&pair[0].key, &pair[1].key).is_lt()) {
            return Object::from_sorted(entries);
        }
        // A stable sort: of several members with one name the last one given wins.
        entries.sort_by(|a, b| compare_names(&a.key, &b.key));
        entries.reverse();
        entries.dedup_by(|later, kept| later.key == kept.key);
        entries.reverse();
        Object::from_sorted(entries)
    }
}

impl PartialEq for Object {
    /// Equal when names and values are; a salt is not part of the value.
    fn eq(&self, other: &Object) -> bool {
        self.same_tree(other)
            || (self.len() == other.len()
                && self.sorted().zip(other.sorted()).all(|(a, b)| a.key == b.key && a.value == b.value))
    }
}

impl Eq for Object {}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Value::Object(self.clone()), f)
    }
}
