//! Reads the tests of a pack: small transcripts with what must come out. `crate::cases` runs them.

use std::sync::Arc;

use dendrer_object::record::Author;
use dendrer_object::text::nearest;
use dendrer_object::{Code, Intent, Pointer, Value};

use super::read::{At, Faults, did_you_mean};
use super::scopes::Place;
use super::{Origin, Pack, PackFault};
use crate::expr::Expr;
use crate::ontology::{self, Class};

/// A small transcript with what must come out.
#[derive(Debug)]
pub struct Case {
    /// The name.
    pub name: Arc<str>,
    /// Place in the pack, or in the file of cases.
    pub path: Pointer,
    pub(crate) origin: Origin,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) path: Pointer,
    pub(crate) intent: Option<Intent>,
    pub(crate) state: Option<Value>,
    pub(crate) holds: Vec<(Pointer, Expr)>,
    pub(crate) predicates: Vec<(Pointer, Arc<str>, Arc<str>)>,
    pub(crate) error: Option<Arc<str>>,
}

const MEMBERS: [&str; 5] = ["name", "s0", "meta", "inputs", "then"];
const STEP_MEMBERS: [&str; 5] = ["t", "state", "holds", "predicates", "error"];
const VERDICTS: [&str; 3] = ["ok", "violation", "uncertain"];

impl Pack {
    /// Checks a list of cases from a file of its own.
    pub fn read_cases(&self, value: &Value) -> Result<Vec<Case>, Vec<PackFault>> {
        let mut faults = Faults::default();
        let root = At::root(value);
        if value.as_array().is_none() {
            root.fault(&mut faults, "a file of cases is a list", "each item begins with `- name: ...`");
        }
        let names: Vec<&str> = self.declared().map(|declared| declared.predicate.name()).collect();
        let items: Vec<At<'_>> = root.items();
        let cases = read(&mut faults, &items, &Place::of_state(self.scope.clone()), &names);
        if faults.is_empty() { Ok(cases) } else { Err(faults) }
    }
}

pub(super) fn read(faults: &mut Faults, items: &[At<'_>], place: &Place, predicates: &[&str]) -> Vec<Case> {
    items.iter().filter_map(|at| read_case(faults, at, place, predicates)).collect()
}

fn read_case(faults: &mut Faults, at: &At<'_>, place: &Place, predicates: &[&str]) -> Option<Case> {
    at.object(faults, "a test", &MEMBERS)?;
    let name = at.shared(faults, "name");
    let message = "a test has a name";
    at.needed(faults, "name", message, "say what must hold, like `name: a refund lowers the total`");
    let given = |name: &str| at.member(name).map(|given| given.value.clone());
    let origin = Origin { s0: given("s0"), meta: given("meta"), inputs: given("inputs") };
    let message = "a test says what happens";
    at.needed(faults, "then", message, "add `then:` with a list of transitions and expectations");
    let items = at.list(faults, "then");
    let steps = items.iter().filter_map(|item| read_step(faults, item, place, predicates)).collect();
    Some(Case { name: name?, path: at.path.clone(), origin, steps })
}

fn read_step(faults: &mut Faults, at: &At<'_>, place: &Place, predicates: &[&str]) -> Option<Step> {
    at.object(faults, "a step of a test", &STEP_MEMBERS)?;
    let intent = at.member("t").and_then(|t| match Intent::from_value(t.value, None) {
        Ok(intent) => Some(by_its_author(intent, t.value)),
        Err(error) => {
            let inner: Option<Pointer> = error.path.parse().ok();
            let tokens: Vec<_> = t.path.tokens().chain(inner.iter().flat_map(Pointer::tokens)).collect();
            let place = Pointer::of(tokens.iter().map(|token| &**token));
            t.moved(place).fault_of(faults, error.code, error.message, "");
            None
        }
    });
    let state = at.member("state").and_then(|state| {
        if state.value.as_object().is_none() {
            state.fault(faults, "state names the members that must be so", "");
        }
        state.value.as_object().map(|_| state.value.clone())
    });
    let mut holds = Vec::new();
    if let Some(member) = at.member("holds") {
        let texts = if member.value.as_array().is_some() { member.items() } else { vec![member] };
        for text in texts {
            match text.value.as_str() {
                Some(source) => holds
                    .extend(text.parse(faults, 0, source, place, true).map(|expr| (text.path.clone(), expr))),
                None => text.fault(faults, "a condition is written as text", ""),
            }
        }
    }
    let mut expected = Vec::new();
    if let Some(member) = at.member("predicates") {
        for (name, verdict) in member.members() {
            if !predicates.contains(&name) {
                let hint = did_you_mean(nearest(name, predicates.iter().copied())).unwrap_or_default();
                let message = format!("the pack has no predicate {name}");
                verdict.name().fault_of(faults, Code::E0903, message, &hint);
            }
            match verdict.value.as_str().filter(|word| VERDICTS.contains(word)) {
                Some(word) => expected.push((verdict.path.clone(), name.into(), word.into())),
                None => verdict.fault(
                    faults,
                    format!("a verdict is one of {}, not {}", VERDICTS.join(", "), verdict.value),
                    "",
                ),
            }
        }
    }
    let error = at.shared(faults, "error");
    Some(Step { path: at.path.clone(), intent, state, holds, predicates: expected, error })
}

/// Sets the author of a type that only a runtime writes, so that a test need not say so each time.
fn by_its_author(intent: Intent, value: &Value) -> Intent {
    match ontology::class_of(intent.type_name.as_str()) {
        Some(Class::Runtime) if value.get("author").is_none() => Intent { author: Author::Runtime, ..intent },
        _ => intent,
    }
}
