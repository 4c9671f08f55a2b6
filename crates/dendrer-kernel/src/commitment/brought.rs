//! What a child run brings its parent is judged as lines of the same authors in the parent would be (design, section 14.2): an edge
//! that an agent wrote lowers nothing that the child did not bring itself, and raises nothing with what it was given.
//!
//! Rule: after an acceptance each commitment that bound the parent binds it still, and no other hard one of an agent does; test
//! `a_child_lowers_nothing_of_its_parent`.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::Value;
use dendrer_object::record::Author;

use super::projection::ITEMS;
use super::{CommitmentEdge, EdgeKind, form};

/// The ids that a child brings and its parent has not.
pub(super) struct Brought {
    ids: BTreeSet<Arc<str>>,
    /// Hard commitments of agents among them.
    hard: BTreeSet<Arc<str>>,
}

impl Brought {
    /// Reads the kept form of what a child brings, with its new atoms. `is_known` says what the parent has.
    pub(super) fn of(
        atoms: &[(Arc<str>, Value)],
        brought: &Value,
        is_known: impl Fn(&str) -> bool,
    ) -> Brought {
        let items = brought.get(ITEMS).and_then(Value::as_array);
        let items = items.into_iter().flat_map(|items| items.iter());
        let mut made =
            Brought { ids: atoms.iter().map(|(id, _)| Arc::clone(id)).collect(), hard: BTreeSet::new() };
        for item in items {
            let Some(written) = item.get("commitment") else { continue };
            let Some(id) = form::text(written, "id").filter(|id| !is_known(id)) else { continue };
            let is_agent = form::text(item, "author").as_deref() == Some(Author::Agent.as_str());
            if is_agent && written.get("hard").and_then(Value::as_bool) == Some(true) {
                made.hard.insert(Arc::clone(&id));
            }
            made.ids.insert(id);
        }
        made
    }

    /// Whether an edge may come with the result: one of an agent lowers only what the child brought, and supports none of its hard
    /// commitments with what the child was given.
    pub(super) fn may_bring(&self, edge: &CommitmentEdge) -> bool {
        if edge.author != Author::Agent {
            return true;
        }
        let is_own = |id: &Arc<str>| self.ids.contains(id);
        match edge.kind {
            EdgeKind::ConflictsWith => is_own(&edge.from) && is_own(&edge.to),
            EdgeKind::Discharges | EdgeKind::Attests => is_own(&edge.to),
            EdgeKind::DependsOn => is_own(&edge.from),
            EdgeKind::Supports => is_own(&edge.from) || !self.hard.contains(&edge.to),
            EdgeKind::Refines => true,
        }
    }
}
