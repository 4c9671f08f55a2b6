//! The writers of each field under a pack, and the consequence: a field that no rule lowers never falls.
//!
//! Under `fold/1` the rules are the only writers of the fields, and they are all known. The result holds for ticks that rules
//! made; a fork that sets a field begins anew (dendrer paper 3.3.3 and 4.4).

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::{TypeName, Value};

use super::{Pack, PackEngine};
use crate::expr::{Budget, Env, Expr, Way};
use crate::fold::{self, Act, Step, Template, Write};
use crate::predicate::{Monotone, Polarity, Predicate};

/// A write that a rule can make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The rule, by number from 1.
    pub rule: usize,
    /// The field it lies in.
    pub field: Arc<str>,
    /// `set`, `append`, `add` or `remove`.
    pub act: &'static str,
    /// Whether it is the field itself that is written, and not something below it.
    pub whole: bool,
    /// Which way the field can go by it.
    pub way: Way,
}

/// How it is known that a predicate of a pack, once violated, stays so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sound {
    /// By its text: it looks at nothing but what the kernel alone moves, and only one way.
    ByText,
    /// By the rules of the pack, which are the only writers and never write the other way.
    ByRules,
    /// The question is only the first violation, whatever comes after it.
    Lifted,
    /// Nothing is known.
    Unknown {
        /// The rules that may turn it back, by number from 1; empty where no rule is known to write.
        turned_by: Vec<usize>,
    },
}

impl Sound {
    /// The word in documents.
    pub fn as_str(&self) -> &'static str {
        match self {
            Sound::ByText => "by_text",
            Sound::ByRules => "by_rules",
            Sound::Lifted => "lifted",
            Sound::Unknown { .. } => "unknown",
        }
    }
}

impl Pack {
    /// The fields that rules write which ask for the time of a line (`t.at`): two recordings of one line differ there.
    pub fn timed_fields(&self) -> Vec<Arc<str>> {
        let mut fields: Vec<Arc<str>> = Vec::new();
        for rule in &self.fold.rules {
            let mut is_timed = false;
            rule.for_each_expr(&mut |expr| is_timed |= crate::policy::reads_time(expr));
            rule.for_each_target(&mut |target| {
                if is_timed && !fields.contains(&target.field) {
                    fields.push(Arc::clone(&target.field));
                }
            });
        }
        fields
    }

    /// Lists every write that a rule can make, in order of the rules.
    pub fn writes(&self) -> Vec<Written> {
        let mut written = Vec::new();
        for (index, rule) in self.fold.rules.iter().enumerate() {
            self.writes_of(index + 1, &rule.steps, &mut written);
        }
        written
    }

    /// The types that a rule is for, by its number from 1; `None` for all.
    pub fn rule_types(&self, rule: usize) -> Option<&BTreeSet<TypeName>> {
        self.fold.rules.get(rule.checked_sub(1)?)?.types.as_ref()
    }

    /// The value a field begins with where it is the same in every run.
    pub fn fixed_init(&self, name: &str) -> Option<Value> {
        let field = self.fields.iter().find(|field| &*field.name == name)?;
        let (mut closed, init) = (true, field.init.as_ref()?);
        init.for_each_expr(&mut |expr| closed &= looks_at_nothing(expr));
        let nothing = Value::object();
        let value = fold::compute(init, &Env::of(&nothing), &mut Budget::default());
        value.ok().filter(|_| closed)
    }

    /// Which way a top-level field of the state can go in the course of a run.
    pub fn way_of(&self, field: &str) -> Way {
        self.way_among(&self.writes(), field)
    }

    fn way_among(&self, writes: &[Written], field: &str) -> Way {
        let is_declared = self.fields.iter().any(|known| &*known.name == field);
        if self.engine != PackEngine::Fold || !is_declared {
            return Way::Any;
        }
        writes.iter().filter(|write| &*write.field == field).map(|write| write.way).fold(Way::Fixed, Way::and)
    }

    /// Says how it is known that a predicate cannot recover under the rules of the pack.
    pub fn sound(&self, predicate: &Predicate) -> Sound {
        if predicate.cannot_recover() || predicate.monotone() == Monotone::ByConstruction {
            return Sound::ByText;
        }
        let is_lifted = predicate.monotone() == Monotone::Lifted;
        // A predicate that is scoped to some types is not judged at the others, whatever the state.
        if is_lifted && !predicate.scope().is_empty() {
            return Sound::Lifted;
        }
        let writes = self.writes();
        // The reads of a module are unknown, so the direction of its verdict is unknown as well.
        let way_of =
            |fields: &dyn Fn(&str) -> Way| predicate.expr().map_or(Way::Any, |expr| expr.way(fields));
        let way = way_of(&|field| self.way_among(&writes, field));
        let wanted = match predicate.polarity() {
            Polarity::Condition => Way::Up,
            Polarity::Holds => Way::Down,
        };
        if predicate.scope().is_empty() && (way == Way::Fixed || way == wanted) {
            return Sound::ByRules;
        }
        if is_lifted {
            return Sound::Lifted;
        }
        // Each write by itself, as if nothing else moved.
        let alone = |write: &&Written| {
            let moves = |field: &str| if *field == *write.field { write.way } else { Way::Fixed };
            let way = way_of(&|field| match self.fields.iter().any(|known| &*known.name == field) {
                true => moves(field),
                false => Way::Any,
            });
            way != Way::Fixed && way != wanted
        };
        let turned_by = writes.iter().filter(alone);
        let turned_by: BTreeSet<usize> = turned_by.map(|write| write.rule).collect();
        Sound::Unknown { turned_by: turned_by.into_iter().collect() }
    }

    fn writes_of(&self, rule: usize, steps: &[Step], written: &mut Vec<Written>) {
        for step in steps {
            match &step.act {
                Act::Let(_) => {}
                Act::Each { steps, .. } => self.writes_of(rule, steps, written),
                Act::Write { kind, target, .. } => {
                    let whole = target.segments.is_empty();
                    let (act, way) = match kind {
                        Write::Set(value) => ("set", self.way_of_set(&target.field, value)),
                        Write::Append(_) => ("append", Way::Up),
                        Write::Add(value) => ("add", if adds(value) { Way::Up } else { Way::Any }),
                        Write::Remove => ("remove", Way::Any),
                    };
                    let way = if whole { way } else { Way::Any };
                    written.push(Written { rule, field: Arc::clone(&target.field), act, whole, way });
                }
            }
        }
    }

    /// A flag that begins as one goes one way where it is only ever set to the same.
    fn way_of_set(&self, field: &str, value: &Template) -> Way {
        let set = match value {
            Template::Literal(value) => Some(value.clone()),
            Template::Expr(expr) if looks_at_nothing(expr) => {
                expr.evaluate(&Env::of(&Value::object()), &mut Budget::default()).ok()
            }
            _ => None,
        };
        let begins_as_flag = self.fixed_init(field).is_some_and(|init| init.as_bool().is_some());
        match set.and_then(|value| value.as_bool()).filter(|_| begins_as_flag) {
            Some(true) => Way::Up,
            Some(false) => Way::Down,
            None => Way::Any,
        }
    }
}

fn adds(value: &Template) -> bool {
    match value {
        Template::Literal(value) => value.as_f64().is_some_and(|value| value >= 0.0),
        Template::Expr(expr) => expr.is_never_negative(),
        Template::List(_) | Template::Map(_) => false,
    }
}

/// Whether an expression is the same wherever it is evaluated.
fn looks_at_nothing(expr: &Expr) -> bool {
    expr.read_set().is_empty() && expr.roots().next().is_none() && !expr.reads_counters()
}
