//! Runs the tests of a pack: small transcripts with the state, verdicts and errors that they expect.
//!
//! A case goes through the same door as a run, at stage 2, so that an error in a rule is a refusal. Stores nothing.
//!
//! Rule: an expectation that cannot be judged has failed, see `run_step`.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::{Intent, Pointer, Record, StoreId, Timestamp, TypeName, Value};

use crate::expr::{Budget, Env, Truth};
use crate::obligation::ObligationCourse;
use crate::pack::cases::{Case, Step};
use crate::pack::{Bound, Pack};
use crate::predicate::{Predicate, Verdict};
use crate::reduce::{ReduceError, Reducer};
use crate::step::{
    Inputs, Outcome, REDUCER_ERROR, RunState, Seeds, Stage, Start, StepError, begin, step_with,
};
use crate::stopped::Stopped;
use crate::unknown;

/// The outcome of a case.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The differences from the expected result; empty if the case passed.
    pub failed: Vec<Failed>,
    /// The rules that wrote to the state, by number from 1.
    pub rules: BTreeSet<usize>,
    /// The place and the predicate at which a limit ended a module, so that the case has neither passed nor failed;
    /// `None` if no limit did.
    pub stopped: Option<(Pointer, Option<Arc<str>>, Stopped)>,
}

/// Something that came out otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Place of the expectation in the pack, or in the file of cases.
    pub path: Pointer,
    /// One sentence with both sides.
    pub message: String,
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
        stage: Some(Stage::Contracts),
        reducer: pack.engine.as_str().into(),
        state,
        pack: Some(Bound { value: pack.value().clone(), text: "".into() }),
        ..Start::new("test".parse().expect("a run may be called test"))
    };
    let inputs = Inputs { clock: Timestamp::from_ms(0), seeds: Seeds::of_secret([0; 16]) };
    let mut head = match begin(StoreId([0; 16]), &start, inputs) {
        Ok((_, head)) => head,
        Err(error) => return fail(error.to_string()),
    };
    let mut ran = Ran::default();
    let obligations = pack.obligations.iter().map(|declared| &declared.predicate);
    let mut courses: Courses<'_> = obligations.map(|owed| (owed, ObligationCourse::default())).collect();
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
type Courses<'p> = Vec<(&'p Predicate, ObligationCourse)>;

fn pass(courses: &mut Courses<'_>, head: &RunState, type_name: Option<&TypeName>) {
    let counters = head.served();
    for (predicate, course) in courses {
        let look = predicate.look(head.state(), Some(&counters));
        if let (Some(owed), Some(look)) = (predicate.obligation(), look) {
            course.pass(owed, head.tick(), type_name, &look);
        }
    }
}

/// Why a rule failed on what happened, which is committed all the same. A record has no sentence, so the rule is run once more.
fn failed_rule(record: &Record, before: &Value, intent: &Intent, reducer: &dyn Reducer) -> Option<String> {
    record.body().value("/anomalies").filter(|notes| unknown::has_note(notes, REDUCER_ERROR))?;
    let tick = record.header().tick.unwrap_or_default();
    match reducer.reduce_calls(before, intent, tick) {
        // A module may return a delta that the state does not take.
        Ok(made) => made.delta.apply(before).err().map(|error| ReduceError::from(error).to_string()),
        Err(error) => Some(error.to_string()),
    }
}

fn run_step(
    pack: &Pack,
    head: &mut RunState,
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
            failed_rule(&record, &before, intent, &*reducer)
        }
        Some((_, Ok(Outcome::Refused(refused)))) => Some(refused.reason.to_string()),
        // A limit depends on the engine, so no case can expect it.
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
            None => match predicate.judge(looked_at, Some(&head.served())) {
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
