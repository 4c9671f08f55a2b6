//! The merge rules of a pack: of lists in a field, and of agents of one run.

use super::Combine;
use super::read::{At, Faults};
use crate::causal::{SyncStrategy, unit_fault};

/// How a merge combines the lists of a field.
pub(super) fn read_combine(faults: &mut Faults, field: &At<'_>) -> Option<Combine> {
    let at = field.member("combine")?;
    let combine = at.value.as_str().and_then(Combine::from_word);
    if combine.is_none() {
        let message = format!("combine is set or append, not {}", at.value);
        at.fault(faults, message, "leave it out where a list is one value");
    }
    combine
}

/// Checks how agents of a run are merged: `strategy`, `keys` by unit, and `roles` by agent.
pub(super) fn check_merge(faults: &mut Faults, root: &At<'_>) {
    let Some(merge) = root.member("merge") else { return };
    if merge.object(faults, "how agents are merged", &["strategy", "keys", "roles"]).is_none() {
        return;
    }
    let keys: Vec<At<'_>> = merge.member("keys").iter().flat_map(At::members).map(|(_, at)| at).collect();
    for at in merge.member("strategy").into_iter().chain(keys) {
        if at.value.as_str().and_then(SyncStrategy::from_word).is_none() {
            let message = format!("a strategy is manual, lww, confidence or policy, not {}", at.value);
            at.fault(faults, message, "leave it out for manual");
        }
    }
    // Packs on record may have such names: they decide nothing there.
    for (name, at) in merge.member("keys").iter().flat_map(At::members) {
        if let Some(message) = unit_fault(name) {
            let known = faults.len();
            at.fault(faults, message, "the names of units are those of `conflicts list`");
            faults.iter_mut().skip(known).for_each(|fault| fault.is_of_new = true);
        }
    }
    for (_, at) in merge.member("roles").iter().flat_map(At::members) {
        if at.value.as_f64().is_none() {
            let message = format!("the priority of an agent is a number, not {}", at.value);
            at.fault(faults, message, "the highest number wins");
        }
    }
    for name in ["keys", "roles"] {
        if let Some(at) = merge.member(name).filter(|at| at.value.as_object().is_none()) {
            at.fault(faults, format!("{name} is an object, not {}", at.value.described()), "");
        }
    }
}
