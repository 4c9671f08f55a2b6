//! How many secrets were taken.

use std::collections::BTreeMap;
use std::sync::Arc;

/// How many secrets of each kind were taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenSecrets(BTreeMap<Arc<str>, u64>);

impl TakenSecrets {
    pub(super) fn count(&mut self, kind: &Arc<str>) {
        *self.0.entry(Arc::clone(kind)).or_default() += 1;
    }

    /// Adds what was taken elsewhere.
    pub fn add(&mut self, other: &TakenSecrets) {
        for (kind, count) in &other.0 {
            *self.0.entry(Arc::clone(kind)).or_default() += count;
        }
    }

    /// Whether nothing was taken.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The kinds, with how many of each.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(kind, count)| (&**kind, *count))
    }
}
