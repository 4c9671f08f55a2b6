//! Findings about doors: fields that anyone writes, requirements that never fail, rules that cannot be judged (design, section
//! 4).

use std::collections::BTreeSet;

use dendrer_object::{Code, Pointer, Value, tag};

use super::{LintFinding, Linter, predicate_path};
use crate::contract::ValueKind;
use crate::expr::NamedPlace;
use crate::pack::{Origin, PackEngine};

impl Linter<'_> {
    /// Fields that a contract or a violation reads, and that any intent may write: under `delta/1` an agent brings the change of
    /// state itself.
    pub(super) fn open_fields(&mut self) {
        if self.pack.engine != PackEngine::Delta {
            return;
        }
        let top = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
        let required = self.required().map(|(type_name, required)| {
            (top(&required.name), format!("the contract of {type_name} requires it"))
        });
        let violations = self.pack.predicates.iter().filter(|declared| declared.is_violation);
        let read = violations.flat_map(|declared| {
            let reads = declared.predicate.read_set().iter();
            let tops = reads.filter_map(|place| Some(tag::user_name(&place.tokens().next()?).to_owned()));
            tops.map(|name| (name, format!("{} reads it", declared.predicate.name())))
        });
        let mut seen = BTreeSet::new();
        let all: Vec<(String, String)> = required.chain(read).collect();
        for (name, reason) in all {
            let field = self.pack.fields.iter().find(|field| *field.name == *name);
            if !field.is_some_and(|field| field.writers.is_empty()) || !seen.insert(name.clone()) {
                continue;
            }
            let message = format!("any agent may write {name}, and {reason}");
            let why = "under delta/1 an intent brings the change of state itself, so it can meet its own requirement";
            let step = "say who may write it, like `writers: [action.result, user]`; or give the pack rules";
            self.push(
                LintFinding::new(Code::W0448, Pointer::of(["state", &name]), message, why, step).of_name(),
            );
        }
    }

    /// Required fields that begin with a value that nothing gave: such a requirement never fails.
    pub(super) fn never_missing(&mut self) {
        let begins = self.pack.init(&Origin::default());
        let required: Vec<_> = self.required().collect();
        for (type_name, required) in required {
            let Some(field) = self.pack.fields.iter().find(|field| *field.name == *required.name) else {
                continue;
            };
            let invented = match (&begins, self.pack.fixed_init(&field.name)) {
                // A word stands for a value that is not there; a number or an empty list counts from the beginning.
                (_, Some(Value::String(word))) => Some(Value::String(word)),
                (_, Some(_)) => None,
                (Ok(begins), None) if field.has_init() => begins.get(&field.name).cloned(),
                _ => None,
            };
            let Some(value) = invented.filter(|value| *value != Value::Null) else { continue };
            let message = format!(
                "{} begins with {value} where a run is given none, and {type_name} requires it",
                field.name
            );
            let why = "it is there from the beginning, so the contract never finds it missing";
            let step = "leave out `init`: the field then has what the run is given, and is absent until something is written";
            self.push(LintFinding::new(
                Code::W0449,
                Pointer::of(["state", &field.name, "init"]),
                message,
                why,
                step,
            ));
        }
    }

    /// Equality of a field that is declared a `datetime`: one moment has many texts.
    pub(super) fn moments_as_texts(&mut self) {
        let contracts = self.pack.contracts.types.values();
        let required = contracts.flat_map(|contract| contract.required.iter());
        let datetimes: Vec<&str> =
            required.filter(|one| one.kind == ValueKind::Datetime).map(|one| &*one.name).collect();
        for (path, one) in self.comparisons(|_| true) {
            let is_text = |value: &Value| match value {
                Value::Array(items) => items.iter().any(|item| item.as_str().is_some()),
                value => value.as_str().is_some(),
            };
            let named = |place: &&NamedPlace| {
                matches!(&*place.root, "state" | "before" | "source" | "target")
                    && datetimes.contains(&&*place.names.join("."))
            };
            let beside = one.places.len() > 1 || one.literals.iter().any(|literal| is_text(&literal.value));
            let Some(place) = one.places.iter().find(named) else { continue };
            if !matches!(one.symbol, "==" | "!=" | "in") || !one.is_whole || !beside {
                continue;
            }
            let name = place.names.join(".");
            let message = format!("{name} is a datetime, and `{}` compares its text", one.symbol);
            let why = "one moment has many texts: each offset and each number of fraction digits is another";
            let step = format!("write timestamp({0}.{name}) and timestamp(...) of the other", place.root);
            self.push(LintFinding::new(Code::W0451, path, message, why, step).spanning(one.span));
        }
    }

    /// Violations and progress contracts that cannot be judged where something is missing that nothing puts there.
    pub(super) fn may_be_missing(&mut self) {
        let pack = self.pack;
        let violations = pack.predicates.iter().filter(|declared| declared.is_violation);
        // The predicates that the door judges, as `Terms` collects them.
        for declared in violations.chain(&pack.progress_contracts) {
            let predicate = &declared.predicate;
            let (Some(expr), Some(path)) = (predicate.expr(), predicate_path(&pack.value, predicate.name()))
            else {
                continue;
            };
            let at_door = "the door notes cannot_be_judged, and at stage 3 refuses the proposal".to_owned();
            for (index, span) in expr.unguarded() {
                let message = format!("{} cannot be judged where {index} is missing", predicate.name());
                let step = format!(
                    "guard it: `has({index}) && ...`, or say with `!has({index}) || ...` that a missing one is a violation"
                );
                self.push(
                    LintFinding::new(Code::W0450, path.clone(), message, at_door.clone(), step)
                        .spanning(span),
                );
            }
            for place in expr.read_set() {
                let Some(top) = place.tokens().next() else { continue };
                let is_open = pack.fields.iter().any(|field| *field.stored() == *top && !field.has_init());
                if !is_open || expr.canonical().contains(&format!("has(state.{top}")) {
                    continue;
                }
                let message = format!("{} cannot be judged before {top} is written", predicate.name());
                let step = format!("guard it: `has(state.{top}) && ...`; or give the field an `init`");
                self.push(LintFinding::new(Code::W0450, path.clone(), message, at_door.clone(), step));
            }
        }
    }
}
