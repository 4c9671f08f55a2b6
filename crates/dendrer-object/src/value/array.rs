//! Arrays: a slice until the first change, then a tree of sixteen children a node, addressed by index.

use std::fmt;
use std::sync::Arc;

use super::{Cached, CachedSize, Value, add_sizes};
use crate::digest::Digest;

const ARRAY_TAG: &[u8] = b"dendrer/state/array/v1\n";
const NODE_TAG: &[u8] = b"dendrer/state/array-node/v1\n";
const WIDTH: usize = 16;

/// An ordered list. Cloning is cheap; appending or setting one item copies a path, not the list.
#[derive(Clone)]
pub struct Array(Repr);

#[derive(Clone)]
enum Repr {
    Slice(Arc<Slice>),
    /// `height` 0: the root is a leaf of up to 16 items; each level above holds 16 times as many.
    Tree {
        len: usize,
        height: u32,
        root: Arc<Node>,
    },
}

struct Slice {
    items: Box<[Value]>,
    digest: Cached,
    size: CachedSize,
}

enum Node {
    Branch { children: Vec<Arc<Node>>, digest: Cached, size: CachedSize },
    Leaf { items: Vec<Value>, digest: Cached, size: CachedSize },
}

impl Default for Array {
    fn default() -> Array {
        Vec::new().into()
    }
}

impl From<Vec<Value>> for Array {
    fn from(items: Vec<Value>) -> Array {
        Array(Repr::Slice(Arc::new(Slice {
            items: items.into(),
            digest: Cached::default(),
            size: CachedSize::default(),
        })))
    }
}

impl FromIterator<Value> for Array {
    fn from_iter<T: IntoIterator<Item = Value>>(items: T) -> Array {
        items.into_iter().collect::<Vec<_>>().into()
    }
}

impl Array {
    /// Returns how many items there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Slice(slice) => slice.items.len(),
            Repr::Tree { len, .. } => *len,
        }
    }

    /// Tells whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the item at an index from 0.
    pub fn get(&self, index: usize) -> Option<&Value> {
        if index >= self.len() {
            return None;
        }
        match &self.0 {
            Repr::Slice(slice) => slice.items.get(index),
            Repr::Tree { height, root, .. } => {
                let mut node = root;
                let mut height = *height;
                loop {
                    match &**node {
                        Node::Leaf { items, .. } => return items.get(index % WIDTH),
                        Node::Branch { children, .. } => {
                            node = &children[slot(index, height)];
                            height -= 1;
                        }
                    }
                }
            }
        }
    }

    /// Walks the items in order.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        let mut stack = Vec::new();
        let slice = match &self.0 {
            Repr::Slice(slice) => &slice.items[..],
            Repr::Tree { root, .. } => {
                stack.push(&**root);
                &[]
            }
        };
        Iter { items: slice.iter(), stack }
    }

    /// Replaces the item at `index`, which must exist.
    pub fn set(&mut self, index: usize, value: Value) {
        assert!(index < self.len(), "array index {index} is beyond the length {}", self.len());
        let (_, height, root) = self.tree_mut();
        set(root, *height, index, value);
    }

    /// Adds an item at the end.
    pub fn push(&mut self, value: Value) {
        let (len, height, root) = self.tree_mut();
        if *len == WIDTH.pow(*height + 1) {
            *root = branch(vec![Arc::clone(root)]);
            *height += 1;
        }
        push(root, *height, *len, value);
        *len += 1;
    }

    /// Removes the item at `index`, which must exist, and moves what follows one place down.
    /// Costs as much as the array is long, as any list with positions for names does.
    pub fn remove(&mut self, index: usize) -> Value {
        assert!(index < self.len(), "array index {index} is beyond the length {}", self.len());
        let mut items: Vec<Value> = self.iter().cloned().collect();
        let removed = items.remove(index);
        *self = items.into();
        removed
    }

    fn tree_mut(&mut self) -> (&mut usize, &mut u32, &mut Arc<Node>) {
        if let Repr::Slice(slice) = &self.0 {
            let (root, height) = build(&slice.items);
            self.0 = Repr::Tree { len: slice.items.len(), height, root };
        }
        match &mut self.0 {
            Repr::Tree { len, height, root } => (len, height, root),
            Repr::Slice(_) => unreachable!("just turned into a tree"),
        }
    }

    /// Returns the digest of the items: `docs/format.md`, "State root".
    pub fn digest(&self) -> Digest {
        let seal = |len: usize, root: &Node| {
            Digest::of_parts(&[ARRAY_TAG, &(len as u64).to_be_bytes(), &node_digest(root).0])
        };
        match &self.0 {
            Repr::Slice(slice) => slice.digest.get(|| seal(slice.items.len(), &build(&slice.items).0)),
            Repr::Tree { len, root, .. } => seal(*len, root),
        }
    }

    /// Returns how many bytes the canonical text has.
    pub fn size(&self) -> u64 {
        let items = match &self.0 {
            Repr::Slice(slice) => slice.size.get(|| add_sizes(slice.items.iter().map(Value::size))),
            Repr::Tree { root, .. } => node_size(root),
        };
        // Brackets, and a comma between items.
        items.saturating_add(2 + self.len().saturating_sub(1) as u64)
    }

    /// Tells whether both are the same tree in memory, so that nothing below can differ.
    pub fn same_tree(&self, other: &Array) -> bool {
        match (&self.0, &other.0) {
            (Repr::Slice(a), Repr::Slice(b)) => Arc::ptr_eq(a, b),
            (Repr::Tree { root: a, .. }, Repr::Tree { root: b, .. }) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

fn slot(index: usize, height: u32) -> usize {
    index / WIDTH.pow(height) % WIDTH
}

fn branch(children: Vec<Arc<Node>>) -> Arc<Node> {
    Arc::new(Node::Branch { children, digest: Cached::default(), size: CachedSize::default() })
}

fn leaf(items: Vec<Value>) -> Arc<Node> {
    Arc::new(Node::Leaf { items, digest: Cached::default(), size: CachedSize::default() })
}

fn build(items: &[Value]) -> (Arc<Node>, u32) {
    let mut level: Vec<Arc<Node>> = items.chunks(WIDTH).map(|chunk| leaf(chunk.to_vec())).collect();
    if level.is_empty() {
        level.push(leaf(Vec::new()));
    }
    let mut height = 0;
    while level.len() > 1 {
        level = level.chunks(WIDTH).map(|chunk| branch(chunk.to_vec())).collect();
        height += 1;
    }
    (level.remove(0), height)
}

fn set(node: &mut Arc<Node>, height: u32, index: usize, value: Value) {
    *node = match &**node {
        Node::Leaf { items, .. } => {
            let mut items = items.clone();
            items[index % WIDTH] = value;
            leaf(items)
        }
        Node::Branch { children, .. } => {
            let mut children = children.clone();
            set(&mut children[slot(index, height)], height - 1, index, value);
            branch(children)
        }
    };
}

fn push(node: &mut Arc<Node>, height: u32, index: usize, value: Value) {
    *node = match &**node {
        Node::Leaf { items, .. } => {
            let mut items = items.clone();
            items.push(value);
            leaf(items)
        }
        Node::Branch { children, .. } => {
            let mut children = children.clone();
            let at = slot(index, height);
            if at == children.len() {
                children.push(if height == 1 { leaf(Vec::new()) } else { branch(Vec::new()) });
            }
            push(&mut children[at], height - 1, index, value);
            branch(children)
        }
    };
}

/// The bytes of the items below a node, without separators.
fn node_size(node: &Node) -> u64 {
    match node {
        Node::Leaf { items, size, .. } => size.get(|| add_sizes(items.iter().map(Value::size))),
        Node::Branch { children, size, .. } => {
            size.get(|| add_sizes(children.iter().map(|child| node_size(child))))
        }
    }
}

fn node_digest(node: &Node) -> Digest {
    let hash = |count: usize, digests: &mut dyn Iterator<Item = Digest>| {
        let mut preimage = Vec::with_capacity(NODE_TAG.len() + count * 32);
        preimage.extend_from_slice(NODE_TAG);
        digests.for_each(|digest| preimage.extend_from_slice(&digest.0));
        Digest::of(&preimage)
    };
    match node {
        Node::Leaf { items, digest, .. } => {
            digest.get(|| hash(items.len(), &mut items.iter().map(Value::digest)))
        }
        Node::Branch { children, digest, .. } => {
            digest.get(|| hash(children.len(), &mut children.iter().map(|child| node_digest(child))))
        }
    }
}

struct Iter<'a> {
    items: std::slice::Iter<'a, Value>,
    stack: Vec<&'a Node>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Value;

    fn next(&mut self) -> Option<&'a Value> {
        loop {
            if let Some(item) = self.items.next() {
                return Some(item);
            }
            match self.stack.pop()? {
                Node::Leaf { items, .. } => self.items = items.iter(),
                Node::Branch { children, .. } => {
                    self.stack.extend(children.iter().rev().map(|child| &**child))
                }
            }
        }
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        self.same_tree(other) || (self.len() == other.len() && self.iter().eq(other.iter()))
    }
}

impl Eq for Array {}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Value::Array(self.clone()), f)
    }
}
