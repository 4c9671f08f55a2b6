//! Facts that all items of a source together show, for a second reading.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::once::{Branch, Branches, Short};

/// Account of a place of a source, for `import --explain`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounted {
    /// How often it was read.
    pub read: u64,
    /// How often it was kept.
    pub kept: u64,
    /// How often it was not read.
    pub not_read: u64,
    /// Meanings that it may have, where it was not read.
    pub may: &'static [&'static str],
}

/// Facts that are known after all items.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Account of each place.
    pub(crate) places: BTreeMap<String, Accounted>,
    /// Values that look like ids and are not.
    pub(crate) void: BTreeSet<Short>,
    /// The branches, if the items are a tree.
    pub(crate) branches: Option<Branches>,
}

/// Facts of items that a first reading found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Values that look like ids and are not.
    pub(crate) void: Arc<BTreeSet<Short>>,
    /// The branch that is read; `None` for all items.
    pub(crate) branch: Option<Branch>,
    /// Items whose parent is not in the file, and items whose parents make a circle.
    pub(crate) orphans: Arc<[BTreeSet<u64>; 2]>,
    /// How many branches are not read.
    pub(crate) branches_left_out: usize,
}

impl Found {
    /// Takes in what a reading of all items found; the branches next to the main one if the items are to be read again.
    pub(crate) fn learn(&mut self, gathered: &mut Gathered) -> Option<Vec<Branch>> {
        let is_new = !gathered.void.is_subset(&self.void);
        self.void = Arc::new(std::mem::take(&mut gathered.void));
        match gathered.branches.take() {
            Some(found) => {
                self.branch = Some(found.main);
                self.branches_left_out = found.left_out;
                self.orphans =
                    Arc::new([found.missing, found.cycles].map(|items| items.into_iter().collect()));
                Some(found.others)
            }
            None => is_new.then(Vec::new),
        }
    }
}
