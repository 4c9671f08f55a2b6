//! Scopes of the expressions of a pack: constants, definitions, and the names of each place.

use std::collections::BTreeSet;

use dendrer_object::{AT, Code, Pointer, Value};

use super::read::{At, Faults};
use crate::contract::path_of;
use crate::expr::{Expr, ExprError, Scope};
use crate::fold::transition_members;

/// The names that mean something in some expression of a pack, so that nothing else can have them.
pub(super) const RESERVED: [&str; 6] = ["state", "t", "before", "s0", "meta", "inputs"];

/// The scopes of a pack's expressions.
pub(super) struct Scopes {
    /// Rules: the state as it is, the state before, and the transition.
    pub(super) rules: Place,
    /// Predicates and expectations: the state alone.
    pub(super) state: Place,
    /// Initial values: what the run begins with.
    pub(super) init: Place,
}

/// One scope, and what is said of names that others have and it has not.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) scope: Scope,
    /// The definitions that read what this scope does not have.
    without: BTreeSet<String>,
    /// The definitions that have a fault, which is told where they stand.
    faulty: BTreeSet<String>,
    what: &'static str,
}

impl Place {
    /// A scope over the state alone, as the cases of another file have it.
    pub(super) fn of_state(scope: Scope) -> Place {
        Place {
            scope,
            without: BTreeSet::new(),
            faulty: BTreeSet::new(),
            what: "here an expression sees the state alone; what it needs is kept in the state",
        }
    }

    /// The scope of the rules by which an import compares two states.
    pub(super) fn of_import(scope: Scope) -> Place {
        let what = "a rule for imports compares source and target, the two states";
        Place { what, ..Place::of_state(scope) }
    }

    /// The same with a transition beside the state after it.
    pub(super) fn with_transition(&self) -> Place {
        let scope = self.scope.clone().root_of("t", transition_members());
        Place { scope, what: "progress sees t and the state after it", ..self.clone() }
    }

    fn new(scope: Scope, what: &'static str) -> Place {
        Place { what, ..Place::of_state(scope) }
    }

    /// The same with one more root.
    pub(super) fn with_root(&self, name: &str) -> Place {
        Place { scope: self.scope.clone().root(name), ..self.clone() }
    }

    /// Whether an error only says that a definition is missing which has a fault of its own.
    pub(super) fn is_known_fault(&self, error: &ExprError, text: &str) -> bool {
        error.code == Code::E0505 && self.faulty.contains(word_at(error, text))
    }

    /// Says of an error what only this place knows.
    pub(super) fn explain(&self, error: ExprError, text: &str) -> ExprError {
        let word = word_at(&error, text);
        let hint = if self.without.contains(word) {
            Some(format!("{word} reads what is not known here: {}", self.what))
        } else {
            (error.code == Code::E0505 && RESERVED.contains(&word)).then(|| self.what.to_owned())
        };
        match hint {
            Some(hint) => ExprError { hint: Some(hint), ..error },
            None => error,
        }
    }
}

fn word_at<'t>(error: &ExprError, text: &'t str) -> &'t str {
    let word = text.get(error.span.start as usize..error.span.end as usize).unwrap_or_default();
    word.split(['.', '(', '[']).next().unwrap_or_default().trim()
}

/// A constant that was read.
pub(super) struct Constant {
    pub(super) name: String,
    pub(super) value: Value,
}

/// A definition that was read and not yet understood.
pub(super) struct Definition<'a> {
    pub(super) name: String,
    pub(super) parameters: Vec<String>,
    pub(super) text: &'a str,
    pub(super) at: At<'a>,
}

impl Scopes {
    /// Makes the scopes, and reports the definitions that make no sense in any.
    pub(super) fn new(
        faults: &mut Faults,
        constants: Vec<Constant>,
        fields: &[(String, Option<u8>)],
        (datetimes, is_timed, by): (&[Pointer], bool, u64),
        definitions: Vec<Definition<'_>>,
    ) -> Scopes {
        let mut state = Scope::new().by_rules(by).fields(fields.iter().map(|(name, _)| &**name));
        for (name, decimals) in fields {
            if let Some(decimals) = decimals {
                state = state.precision(&path_of(name), u32::from(*decimals));
            }
        }
        state = datetimes.iter().fold(state, Scope::datetime);
        let mut init = Scope::without_state().by_rules(by).root("s0").root("meta").root("inputs");
        for constant in constants {
            state = state.constant(&constant.name, constant.value.clone());
            init = init.constant(&constant.name, constant.value);
        }
        let rules = state.clone().root_of("t", transition_members()).root_of_state("before");
        let rules = if is_timed { rules.moment_of("t", AT) } else { rules };
        let mut scopes = Scopes {
            rules: Place::new(
                rules,
                "a rule sees t, before and state; what it needs of meta, s0 or inputs is kept in a field of the state",
            ),
            state: Place::of_state(state),
            init: Place::new(init, "init sees s0, meta and inputs; there is no state before it"),
        };
        scopes.define_all(faults, definitions);
        scopes
    }

    /// Takes definitions in whatever order they can be understood: their order in a pack means nothing.
    fn define_all(&mut self, faults: &mut Faults, definitions: Vec<Definition<'_>>) {
        let mut pending = definitions;
        loop {
            let before = pending.len();
            pending.retain(|definition| !self.define(definition));
            if pending.is_empty() {
                return;
            }
            if pending.len() == before {
                break;
            }
        }
        for place in self.places() {
            place.faulty.extend(pending.iter().map(|definition| definition.name.clone()));
        }
        for definition in &pending {
            let waits_for = calls(definition, &pending);
            if in_circle(definition, &pending) {
                let others = waits_for.iter().map(|other| format!("`{}`", other.name)).collect::<Vec<_>>();
                let message =
                    format!("`{}` needs itself, by way of {}", definition.name, others.join(" and "));
                let hint = "a definition uses only what does not need it";
                definition.at.fault_of(faults, Code::E0903, message, hint);
            } else if waits_for.is_empty() {
                // A definition that waits for a faulty one has no fault of its own that is known yet.
                if let Some(error) = self.error_of(definition) {
                    definition.at.expression(faults, 0, error);
                }
            }
        }
    }

    fn places(&mut self) -> [&mut Place; 3] {
        [&mut self.rules, &mut self.state, &mut self.init]
    }

    /// Adds a definition to every scope in which it makes sense, and tells whether there is one.
    fn define(&mut self, definition: &Definition<'_>) -> bool {
        let parameters = definition.parameters();
        let defined = self.places().map(|place| {
            let scope = place.scope.clone().define(&definition.name, &parameters, definition.text).ok();
            scope.map(|scope| place.scope = scope).is_some()
        });
        let understood = defined.contains(&true);
        for (place, defined) in self.places().into_iter().zip(defined) {
            // A definition that no place accepts may be accepted later, when the names it uses are known.
            if understood && !defined {
                place.without.insert(definition.name.clone());
            }
        }
        understood
    }

    fn error_of(&self, definition: &Definition<'_>) -> Option<ExprError> {
        let uses_init = ["s0", "meta", "inputs"].iter().any(|name| has_word(definition.text, name));
        let place = if uses_init { &self.init } else { &self.rules };
        let defined = place.scope.clone().define(&definition.name, &definition.parameters(), definition.text);
        Some(place.explain(defined.err()?, definition.text))
    }
}

impl Definition<'_> {
    fn parameters(&self) -> Vec<&str> {
        self.parameters.iter().map(|name| &**name).collect()
    }
}

/// The pending definitions, itself among them, that a definition seems to use.
fn calls<'p, 'a>(definition: &Definition<'a>, pending: &'p [Definition<'a>]) -> Vec<&'p Definition<'a>> {
    pending.iter().filter(|other| has_word(definition.text, &other.name)).collect()
}

fn in_circle(definition: &Definition<'_>, pending: &[Definition<'_>]) -> bool {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut open = calls(definition, pending);
    while let Some(next) = open.pop() {
        if next.name == definition.name {
            return true;
        }
        if seen.insert(&next.name) {
            open.extend(calls(next, pending));
        }
    }
    false
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found == word)
}

/// Tells whether a name can stand for a value in an expression.
pub(super) fn is_variable(name: &str) -> bool {
    let scope = Scope::without_state().root(name);
    Expr::parse(name, &scope).is_ok_and(|expr| expr.roots().eq([name]))
}
