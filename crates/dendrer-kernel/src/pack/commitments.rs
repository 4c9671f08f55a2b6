//! The commitments of a pack: those with which a run begins, and the tools whose results ground a claim (CCAS paper 13.4).

use dendrer_object::{Code, Pointer, Value};

use super::PackField;
use super::read::{At, Faults};
use crate::commitment::{self, TRUST};

/// Checks the `commitments` and the `trust` of a pack.
pub(super) fn check_commitments(faults: &mut Faults, root: &At<'_>, fields: &[PackField]) {
    if let Some(list) = root.member(commitment::INITIAL) {
        let one_of = |items: Vec<Value>| Value::record([(commitment::INITIAL, Value::array(items))]);
        let items: Vec<At<'_>> = list.items();
        // Each by itself, so that all faults are told; then all of them, for what is wrong between two.
        let mut wrong: Vec<_> =
            items.iter().map(|item| commitment::check(&one_of(vec![item.value.clone()])).err()).collect();
        if list.value.as_array().is_none() || wrong.iter().all(Option::is_none) {
            let whole = Value::record([(commitment::INITIAL, list.value.clone())]);
            wrong.push(commitment::check(&whole).err());
        }
        for (number, fault) in wrong.into_iter().enumerate() {
            let Some(fault) = fault else { continue };
            let path = match items.get(number) {
                // It was the first of one.
                Some(_) => fault.path.replacen("/0", &format!("/{number}"), 1),
                None => fault.path,
            };
            let path: Pointer = path.parse().unwrap_or_else(|_| list.path.clone());
            let at = list.moved(path);
            at.fault(faults, fault.message, "a pack writes commitments as a line of `commit` does");
        }
        let mut scope = commitment::scope_of_pack(Some(root.value));
        if !fields.is_empty() {
            scope = scope.fields(fields.iter().map(|field| &*field.name));
        }
        for item in &items {
            for at in commitment::EXPRESSIONS.iter().filter_map(|name| item.member(name)) {
                let Some(text) = at.value.as_str() else { continue };
                // Any other fault of a text was reported before.
                if let Err(error) = commitment::condition(text, &scope)
                    && error.code == Code::E0505
                {
                    at.fault_of(faults, error.code, error.message, &error.hint.unwrap_or_default());
                }
            }
        }
    }
    let Some(trust) = root.member(TRUST) else { return };
    if trust.object(faults, "whose results ground a claim", &["tools"]).is_none() {
        return;
    }
    let is_list = |at: &At<'_>| {
        at.value.as_array().is_some_and(|names| names.iter().all(|name| name.as_str().is_some()))
    };
    if let Some(at) = trust.member("tools").filter(|at| !is_list(at)) {
        at.fault(faults, "tools is a list of names", "like `trust: {tools: [run_tests]}`");
    }
}
