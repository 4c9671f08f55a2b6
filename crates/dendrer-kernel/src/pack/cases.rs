//! Tests of a pack: small transcripts, and what must come out of them.
//!
//! A case goes through the same door as a run, at stage 2, so that an error in a rule is a refusal. Nothing is
//! stored. A newcomer would break one rule: an expectation that cannot be judged has failed.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::record::{Author, Seed};
use dendrer_object::text::nearest;
use dendrer_object::{Intent, Pointer, StoreId, Timestamp, TypeName, Value};

use super::read::{At, Reader};
use super::scopes::Place;
use super::{Bound, Fault, Origin, Pack};
use crate::expr::{Budget, Env, Expr, Truth};
use crate::obligation::Course;
use crate::ontology::{self, Class};
use crate::predicate::{Predicate, Verdict};
use crate::step::{Head, Inputs, Outcome, Stage, Start, StepError, begin, step_with};
use crate::stopped::Stopped;

/// A small transcript with what must come out.
#[derive(Debug)]
pub struct Case {
    /// What it is called.
    pub name: Arc<str>,
    /// Where in the pack, or in the file of cases, it stands.
    pub path: Pointer,
    origin: Origin,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    path: Pointer,
    intent: Option<Intent>,
    state: Option<Value>,
    holds: Vec<(Pointer, Expr)>,
    predicates: Vec<(Pointer, Arc<str>, Arc<str>)>,
    error: Option<Arc<str>>,
}

/// What became of a case.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// What came out otherwise; nothing where all is well.
    pub failed: Vec<Failed>,
    /// The rules that wrote to the state, by number from 1.
    pub rules: BTreeSet<usize>,
    /// Where a limit ended a module, and of which predicate: then it is not known whether the case has failed.
    pub stopped: Option<(Pointer, Option<Arc<str>>, Stopped)>,
}

/// Something that came out otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Where the expectation stands.
    pub path: Pointer,
    /// One sentence with both sides.
    pub message: String,
}

const MEMBERS: [&str; 5] = ["name", "s0", "meta", "inputs", "then"];
const STEP_MEMBERS: [&str; 5] = ["t", "state", "holds", "predicates", "error"];
const VERDICTS: [&str; 3] = ["ok", "violation", "uncertain"];

impl Pack {
    /// Checks a list of cases that stands in a file of its own.
    pub fn read_cases(&self, value: &Value) -> Result<Vec<Case>, Vec<Fault>> {
        let mut reader = Reader::default();
        let root = At { value, path: Pointer::root() };
        if value.as_array().is_none() {
            reader.fault("E0902", &root, "a file of cases is a list", "each item begins with `- name: ...`");
        }
        let names: Vec<&str> = self.declared().map(|declared| declared.predicate.name()).collect();
        let items: Vec<At<'_>> = root.items().collect();
        let cases = read(&mut reader, &items, &Place::of_state(self.scope.clone()), &names);
        let faults = reader.finish();
        if faults.is_empty() { Ok(cases) } else { Err(faults) }
    }
}

pub(super) fn read(reader: &mut Reader, items: &[At<'_>], place: &Place, predicates: &[&str]) -> Vec<Case> {
    items.iter().filter_map(|at| read_case(reader, at, place, predicates)).collect()
}

fn read_case(reader: &mut Reader, at: &At<'_>, place: &Place, predicates: &[&str]) -> Option<Case> {
    reader.object(at, "a test", &MEMBERS)?;
    let name = reader.shared(at, "name");
    if at.member("name").is_none() {
        reader.missing(
            at,
            "a test has a name".to_owned(),
            "say what must hold, like `name: a refund lowers the total`",
        );
    }
    let given = |name: &str| at.member(name).map(|given| given.value.clone());
    let origin = Origin { s0: given("s0"), meta: given("meta"), inputs: given("inputs") };
    if at.member("then").is_none() {
        reader.missing(
            at,
            "a test says what happens".to_owned(),
            "add `then:` with a list of transitions and expectations",
        );
    }
    let items = reader.list(at, "then");
    let steps = items.iter().filter_map(|item| read_step(reader, item, place, predicates)).collect();
    Some(Case { name: name?, path: at.path.clone(), origin, steps })
}

fn read_step(reader: &mut Reader, at: &At<'_>, place: &Place, predicates: &[&str]) -> Option<Step> {
    reader.object(at, "a step of a test", &STEP_MEMBERS)?;
    let intent = at.member("t").and_then(|t| match Intent::from_value(t.value, None) {
        Ok(intent) => Some(by_its_author(intent, t.value)),
        Err(error) => {
            let inner: Option<Pointer> = error.path.parse().ok();
            let tokens: Vec<String> = t
                .path
                .tokens()
                .chain(inner.iter().flat_map(Pointer::tokens))
                .map(|token| token.into_owned())
                .collect();
            let place = Pointer::of(tokens.iter().map(String::as_str));
            reader.fault(error.code, &At { value: t.value, path: place }, error.message, "");
            None
        }
    });
    let state = at.member("state").and_then(|state| {
        if state.value.as_object().is_none() {
            reader.fault("E0902", &state, "state names the members that must be so", "");
        }
        state.value.as_object().map(|_| state.value.clone())
    });
    let mut holds = Vec::new();
    if let Some(member) = at.member("holds") {
        let texts = if member.value.as_array().is_some() { member.items().collect() } else { vec![member] };
        for text in texts {
            match text.value.as_str() {
                Some(source) => holds.extend(
                    reader.parse(&text, 0, source, place, true).map(|expr| (text.path.clone(), expr)),
                ),
                None => reader.fault("E0902", &text, "a condition is written as text", ""),
            }
        }
    }
    let mut expected = Vec::new();
    if let Some(member) = at.member("predicates") {
        for (name, verdict) in member.members() {
            if !predicates.contains(&name) {
                let hint =
                    nearest(name, predicates.iter().copied()).map(|near| format!("did you mean {near}?"));
                reader.name_fault("E0903", &verdict, format!("the pack has no predicate {name}"), hint);
            }
            match verdict.value.as_str().filter(|word| VERDICTS.contains(word)) {
                Some(word) => expected.push((verdict.path.clone(), name.into(), word.into())),
                None => reader.fault(
                    "E0902",
                    &verdict,
                    format!("a verdict is one of {}, not {}", VERDICTS.join(", "), verdict.value),
                    "",
                ),
            }
        }
    }
    let error = reader.shared(at, "error");
    Some(Step { path: at.path.clone(), intent, state, holds, predicates: expected, error })
}

/// What only a runtime writes is written by it, so that a test need not say so each time.
fn by_its_author(intent: Intent, value: &Value) -> Intent {
    let class =
        ontology::TYPES.iter().find(|(name, _)| *name == intent.type_name.as_str()).map(|(_, class)| *class);
    match class {
        Some(Class::Runtime) if value.get("author").is_none() => Intent { author: Author::Runtime, ..intent },
        _ => intent,
    }
}

/// Runs a case.
pub fn run(pack: &Pack, case: &Case) -> Ran {
    let fail = |why: String| Ran {
        failed: vec![Failed { path: case.path.clone(), message: why }],
        ..Ran::default()
    };
    let state = match pack.init(&case.origin) {
        Ok(state) => state,
        Err(error) => return fail(error.to_string()),
    };
    let start = Start {
        stage: Stage::Contracts,
        reducer: pack.engine.as_str().into(),
        state,
        pack: Some(Bound { value: pack.value.clone(), text: "".into() }),
        ..Start::new("test".parse().expect("a run may be called test"))
    };
    let inputs = Inputs { clock: Timestamp::from_ms(0), seed: Seed([0; 16]) };
    let mut head = match begin(StoreId([0; 16]), &start, inputs) {
        Ok((_, head)) => head,
        Err(error) => return fail(error.to_string()),
    };
    let mut ran = Ran::default();
    let obligations = pack.obligations.iter().map(|declared| &declared.predicate);
    let mut courses: Courses<'_> = obligations.map(|owed| (owed, Course::default())).collect();
    pass(&mut courses, &head, None);
    for step in &case.steps {
        run_step(pack, &mut head, step, inputs, &mut courses, &mut ran);
        // Nothing behind it can be judged.
        if ran.stopped.is_some() {
            break;
        }
    }
    ran
}

/// The obligations of a pack on their way through a case.
type Courses<'p> = Vec<(&'p Predicate, Course)>;

fn pass(courses: &mut Courses<'_>, head: &Head, type_name: Option<&TypeName>) {
    let counters = head.counters().to_value();
    for (predicate, course) in courses {
        let look = predicate.look(head.state(), Some(&counters));
        if let (Some(owed), Some(look)) = (predicate.obligation(), look) {
            course.pass(owed, head.tick(), type_name, &look);
        }
    }
}

fn run_step(
    pack: &Pack,
    head: &mut Head,
    step: &Step,
    inputs: Inputs,
    courses: &mut Courses<'_>,
    ran: &mut Ran,
) {
    let before = head.state().clone();
    let Ran { failed, rules, stopped } = ran;
    let mut say = |path: &Pointer, message: String| failed.push(Failed { path: path.clone(), message });
    let reducer = pack.reducer();
    let stepped = step.intent.as_ref().map(|intent| (intent, step_with(head, intent, inputs, &*reducer)));
    let refused = match stepped {
        None => None,
        Some((intent, Ok(Outcome::Committed(record) | Outcome::Violated { record, .. }))) => {
            pass(courses, head, record.header().type_name.as_ref());
            rules.extend(pack.fold.writers(&before, intent).into_iter().map(|index| index + 1));
            None
        }
        Some((_, Ok(Outcome::Refused(refused)))) => Some(refused.reason.to_string()),
        // A limit of the engine is no error that anybody could expect.
        Some((_, Err(StepError::Stopped(limit)))) => {
            *stopped = Some((step.path.clone(), None, limit));
            return;
        }
        Some((_, Err(error))) => Some(error.to_string()),
    };
    match (&refused, &step.error) {
        (None, None) => {}
        (None, Some(expected)) => {
            say(&step.path, format!("expected an error with {expected:?}, and there was none"))
        }
        (Some(found), None) => say(&step.path, found.clone()),
        (Some(found), Some(expected)) if found.contains(&**expected) => {}
        (Some(found), Some(expected)) => {
            say(&step.path, format!("expected an error with {expected:?}, found: {found}"))
        }
    }
    let state = head.state();
    if let Some(expected) = &step.state {
        differences(expected, state, &mut Vec::new(), &mut |path, message| {
            say(&step.path, format!("state.{path} {message}"))
        });
    }
    for (path, expr) in &step.holds {
        let env = Env::of(state);
        match expr.holds(&env, &mut Budget::default()) {
            Truth::True => {}
            Truth::False => say(path, format!("does not hold: {}", expr.text())),
            Truth::Uncertain(why) => say(path, format!("cannot be judged: {}: {why}", expr.text())),
            Truth::Exhausted => say(path, format!("takes too many steps: {}", expr.text())),
        }
    }
    for (path, name, expected) in &step.predicates {
        let Some(predicate) = pack.predicate(name) else { continue };
        let looked_at = match predicate.window() {
            crate::predicate::Window::Before => &before,
            crate::predicate::Window::After => state,
        };
        let course = courses.iter().find(|(owed, _)| owed.name() == predicate.name());
        let verdict = match course {
            Some((_, course)) => course.verdict(),
            None if !predicate.is_for(step.intent.as_ref().map(|intent| &intent.type_name)) => Verdict::Ok,
            None => match predicate.judge(looked_at, Some(&head.counters().to_value())) {
                Ok(verdict) => verdict,
                Err(limit) => {
                    *stopped = Some((path.clone(), Some(Arc::clone(name)), limit));
                    return;
                }
            },
        };
        let word = match &verdict {
            Verdict::Ok => "ok",
            Verdict::Violation => "violation",
            Verdict::Uncertain(_) => "uncertain",
        };
        if word != &**expected {
            say(path, format!("{name}: expected {expected}, found {verdict}"));
        }
    }
}

/// Compares what was named: members of objects one by one, everything else as a whole.
fn differences(
    expected: &Value,
    found: &Value,
    names: &mut Vec<String>,
    say: &mut dyn FnMut(String, String),
) {
    let (Some(wanted), Some(there)) = (expected.as_object(), found.as_object()) else {
        if expected != found {
            let place = Pointer::of(names.iter().map(String::as_str)).dotted();
            say(place, format!("is {}, expected {}", short(found), short(expected)));
        }
        return;
    };
    for (name, expected) in wanted.iter() {
        names.push(name.to_string());
        match there.get(name) {
            Some(found) => differences(expected, found, names, say),
            None => {
                let place = Pointer::of(names.iter().map(String::as_str)).dotted();
                say(place, format!("is not there, expected {}", short(expected)));
            }
        }
        names.pop();
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}... ({} bytes)", &text[..at], text.len()),
        None => text,
    }
}
