//! The places that the rules of a pack may read when they write a place: a question about causes follows them.

use dendrer_object::record::Record;
use dendrer_object::{Pointer, TypeName, Value};

use super::Cause;
use crate::expr::Expr;
use crate::fold::{self, Rule, steps_exprs};
use crate::pack::{Pack, PackEngine};

impl Pack {
    /// Returns the places of the state that the rules which applied to a recorded transition looked at, given the state
    /// before it: their conditions, and the steps that ran. With a field, only of rules that wrote below it. An element of
    /// a map is told apart from the map where its key is known; an index into a list looks at the list. `None` where no
    /// rule decides what is written, or where the record cannot be read as a whole.
    pub fn reads_at(&self, before: &Value, record: &Record, field: Option<&str>) -> Option<Vec<Pointer>> {
        if self.engine != PackEngine::Fold {
            return None;
        }
        match super::cause(record, false)?.0 {
            // The kernel's own: no rule is asked.
            Cause::Anomaly(_)
            | Cause::Marker(_)
            | Cause::Violation
            | Cause::Extension(_)
            | Cause::Line(..)
            | Cause::Import(..) => Some(Vec::new()),
            Cause::Proposed(intent) => {
                Some(Pointer::outermost(fold::reads(&self.fold, before, &intent, field)))
            }
        }
    }

    /// Returns the places of the state that rules may look at when a transition of a type writes below a field, or
    /// anywhere; `None` where no rule decides what is written. Which of them a rule did look at is not known: a
    /// condition that failed, or an item that was skipped, leaves no trace.
    pub fn may_read(&self, type_name: &TypeName, field: Option<&str>) -> Option<Vec<Pointer>> {
        if self.engine != PackEngine::Fold {
            return None;
        }
        let mut places = Vec::new();
        for rule in self.fold.rules.iter().filter(|rule| applies(rule, type_name, field)) {
            let mut expr = |expr: &Expr| {
                places.extend(expr.read_set().iter().chain(expr.reads_of("before")).cloned());
            };
            rule.when.iter().for_each(&mut expr);
            steps_exprs(&rule.steps, &mut expr);
            // Looking for the first item of a list reads the list.
            rule.for_each_target(&mut |target| {
                if target.searches() {
                    places.push(Pointer::of([&*target.field]));
                }
            });
        }
        Some(Pointer::outermost(places))
    }
}

fn applies(rule: &Rule, type_name: &TypeName, field: Option<&str>) -> bool {
    let mut writes = field.is_none();
    rule.for_each_target(&mut |target| writes |= Some(&*target.field) == field);
    writes && rule.types.as_ref().is_none_or(|types| types.contains(type_name))
}
