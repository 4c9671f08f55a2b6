//! What a pack says about commitments: those with which a run begins, and the tools whose results ground a claim (CCAS paper 13.4).

use dendrer_object::{Code, Pointer, Value};

use super::read::{At, Reader};
use crate::commitment::{self, TRUST};

/// Checks the `commitments` and the `trust` of a pack.
pub(super) fn check_commitments(reader: &mut Reader, root: &At<'_>) {
    if let Some(list) = root.member(commitment::INITIAL) {
        let lists = Value::record([(commitment::INITIAL, list.value.clone())]);
        if let Err(fault) = commitment::check(&lists) {
            let path = fault.path.parse().unwrap_or_else(|_| Pointer::root());
            let at = At { value: path.get(&lists).unwrap_or(list.value), path };
            reader.fault(
                Code::E0902,
                &at,
                fault.message,
                "a pack writes commitments as a line of `commit` does",
            );
        }
    }
    let Some(trust) = root.member(TRUST) else { return };
    if reader.object(&trust, "whose results ground a claim", &["tools"]).is_none() {
        return;
    }
    let is_list = |at: &At<'_>| {
        at.value.as_array().is_some_and(|names| names.iter().all(|name| name.as_str().is_some()))
    };
    if let Some(at) = trust.member("tools").filter(|at| !is_list(at)) {
        reader.fault(Code::E0902, &at, "tools is a list of names", "like `trust: {tools: [run_tests]}`");
    }
}
