//! The tree of a log as far as a log shows it: entries, and the hashes of subtrees that are left out.
//!
//! Two logs of one key are compared by the nodes that both have, whatever their sizes.
//!
//! Rule: a node that one side lacks is never taken for equal; test `what_one_side_lacks_is_not_compared`.

use std::collections::BTreeMap;

use dendrer_object::Digest;
use dendrer_object::bundle::{Bundle, LogItem};
use dendrer_object::merkle::{Node, Peaks, cover, leaf_hash, node_hash};

/// The nodes that a log shows.
#[derive(Debug, Clone, Default)]
pub struct ShownTree {
    /// The number of entries of the log.
    pub size: u64,
    /// Level and hash of each node, by its first leaf.
    nodes: BTreeMap<u64, (u8, Digest)>,
}

/// The result of comparing two logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreesCompared {
    /// One history up to the smaller of the two sizes.
    Same(u64),
    /// Two histories: the first size at which the two differ.
    Differ(u64),
    /// The nodes that both have do not decide it.
    NotCompared,
}

impl ShownTree {
    /// Returns the nodes that a bundle shows. A subtree count that does not fit its range shows nothing.
    pub fn of_bundle(bundle: &Bundle) -> ShownTree {
        let mut shown = ShownTree::default();
        for item in &bundle.log {
            match item {
                LogItem::Entry(entry) => shown.push(leaf_hash(&entry.text())),
                LogItem::Omitted { count, hashes } => {
                    let end = shown.size.saturating_add(*count);
                    for (node, hash) in cover(shown.size..end).zip(hashes) {
                        shown.nodes.extend(node.leaves().map(|leaves| (leaves.start, (node.level, *hash))));
                    }
                    shown.size = end;
                }
            }
        }
        shown
    }

    /// Adds the next entry by its leaf hash.
    pub fn push(&mut self, leaf: Digest) {
        self.nodes.insert(self.size, (0, leaf));
        self.size += 1;
    }

    /// Returns the root of the log at a size; `None` if a node that it takes is not shown.
    pub fn root(&self, size: u64) -> Option<Digest> {
        let mut peaks = Peaks::new();
        for node in cover(0..size) {
            peaks.push_subtree(node.level, self.node(node)?).ok()?;
        }
        Some(peaks.root())
    }

    /// Compares two logs up to the end of the shorter one.
    pub fn compare(&self, other: &ShownTree) -> TreesCompared {
        let size = self.size.min(other.size);
        if size == 0 {
            return TreesCompared::NotCompared;
        }
        cover(0..size).fold(TreesCompared::Same(size), |known, node| known.and(self.at(other, node)))
    }

    fn at(&self, other: &ShownTree, node: Node) -> TreesCompared {
        let leaves = node.leaves().unwrap_or_default();
        let (own, others) = (self.node(node), other.node(node));
        if own.is_some() && own == others {
            return TreesCompared::Same(leaves.end);
        }
        let below = match halves(node) {
            Some([left, right]) if !self.hides(node) && !other.hides(node) => {
                self.at(other, left).and(self.at(other, right))
            }
            _ => TreesCompared::NotCompared,
        };
        match below {
            // Both have the node, and the place of the difference below it is not shown.
            TreesCompared::NotCompared if own.is_some() && others.is_some() => {
                TreesCompared::Differ(leaves.start + 1)
            }
            below => below,
        }
    }

    fn node(&self, node: Node) -> Option<Digest> {
        let start = node.leaves()?.start;
        match self.nodes.get(&start) {
            Some((level, hash)) if *level == node.level => Some(*hash),
            Some((level, _)) if *level > node.level => None,
            _ => {
                let [left, right] = halves(node)?;
                Some(node_hash(&self.node(left)?, &self.node(right)?))
            }
        }
    }

    /// Whether a node lies in a subtree that is shown by its hash alone.
    fn hides(&self, node: Node) -> bool {
        let Some(leaves) = node.leaves() else { return true };
        let before = self.nodes.range(..=leaves.start).next_back();
        before.is_some_and(|(start, (level, _))| *level > 0 && start + (1 << level) >= leaves.end)
    }
}

impl TreesCompared {
    /// Joins the results of two ranges, the earlier one first.
    fn and(self, later: TreesCompared) -> TreesCompared {
        match (self, later) {
            (differ @ TreesCompared::Differ(_), _) | (_, differ @ TreesCompared::Differ(_)) => differ,
            (TreesCompared::NotCompared, _) | (_, TreesCompared::NotCompared) => TreesCompared::NotCompared,
            (TreesCompared::Same(one), TreesCompared::Same(two)) => TreesCompared::Same(one.max(two)),
        }
    }
}

fn halves(node: Node) -> Option<[Node; 2]> {
    let level = node.level.checked_sub(1)?;
    Some([0, 1].map(|half| Node { level, index: node.index * 2 + half }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(numbers: &[u8]) -> ShownTree {
        let mut shown = ShownTree::default();
        numbers.iter().for_each(|number| shown.push(leaf_hash(&[*number])));
        shown
    }

    /// Leaves out a range, as a bundle does.
    fn omit(shown: &ShownTree, from: u64, to: u64) -> ShownTree {
        let mut cut = shown.clone();
        cut.nodes.retain(|at, _| !(from..to).contains(at));
        for node in cover(from..to) {
            cut.nodes.insert(node.leaves().unwrap().start, (node.level, shown.node(node).unwrap()));
        }
        cut
    }

    #[test]
    fn two_sizes_of_one_history_are_the_same_to_the_smaller() {
        let (five, nine) = (leaves(&[1, 2, 3, 4, 5]), leaves(&[1, 2, 3, 4, 5, 6, 7, 8, 9]));
        assert_eq!(five.compare(&nine), TreesCompared::Same(5));
        assert_eq!(omit(&five, 1, 4).compare(&omit(&nine, 2, 5)), TreesCompared::Same(5));
        assert_eq!(nine.root(5), five.root(5));
    }

    #[test]
    fn a_leaf_or_a_subtree_that_differs_is_two_histories() {
        let (one, two) = (leaves(&[1, 2, 3, 4, 5]), leaves(&[1, 2, 3, 9, 5, 6]));
        assert_eq!(one.compare(&two), TreesCompared::Differ(4));
        assert_eq!(omit(&one, 0, 4).compare(&two), TreesCompared::Differ(1));
        assert_eq!(omit(&one, 0, 2).compare(&omit(&two, 4, 6)), TreesCompared::Differ(4));
    }

    #[test]
    fn what_one_side_lacks_is_not_compared() {
        let (five, nine) = (leaves(&[1, 2, 3, 4, 5]), leaves(&[1, 2, 3, 4, 5, 6, 7, 8, 9]));
        let hidden = omit(&nine, 4, 8);
        assert_eq!(five.compare(&hidden), TreesCompared::NotCompared);
        assert_eq!((hidden.root(5), hidden.root(8).is_some()), (None, true));
        assert_eq!(leaves(&[]).compare(&five), TreesCompared::NotCompared);
    }
}
