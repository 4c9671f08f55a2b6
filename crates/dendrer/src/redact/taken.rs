//! The secrets that were taken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many secrets of each kind were taken, and which: what is taken once is looked for elsewhere. They are never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TakenSecrets {
    counts: BTreeMap<Arc<str>, u64>,
    values: BTreeSet<String>,
}

impl std::fmt::Debug for TakenSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TakenSecrets").field(&self.counts).finish()
    }
}

impl TakenSecrets {
    /// Counts a secret of which the value is not kept.
    pub(crate) fn count(&mut self, kind: &Arc<str>) {
        *self.counts.entry(Arc::clone(kind)).or_default() += 1;
    }

    /// Counts a secret, and keeps its value.
    pub(crate) fn take(&mut self, kind: &Arc<str>, secret: &str) {
        self.count(kind);
        self.values.insert(secret.to_owned());
    }

    /// Adds what was taken elsewhere.
    pub fn add(&mut self, other: &TakenSecrets) {
        for (kind, count) in &other.counts {
            *self.counts.entry(Arc::clone(kind)).or_default() += count;
        }
        self.values.extend(other.values.iter().cloned());
    }

    /// Whether nothing was taken.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The kinds, with how many of each.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(kind, count)| (&**kind, *count))
    }

    /// The values that were taken, as they were written.
    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(String::as_str)
    }
}
