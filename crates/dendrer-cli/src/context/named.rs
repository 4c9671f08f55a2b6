//! Failures of names of predicates, for every verb that resolves one.

use dendrer::Trace;
use dendrer::ask::named::{ListFault, NotNamed, UnjudgedHint, UnknownPredicate, listed, unjudged_hint};
use dendrer::kernel::predicate::{Predicate, Window};
use dendrer::registry::Unfit;
use dendrer_object::Code;
use dendrer_object::json;
use dendrer_object::text::behind_mark;
use dendrer_view::count;

use super::packs;
use crate::failure::{Failure, Result};
use crate::global::WindowChoice;

/// Reports why a text resolves to no predicate.
pub(crate) fn not_named(error: NotNamed) -> Failure {
    match error {
        NotNamed::Unknown(unknown) => unknown_predicate(&unknown),
        NotNamed::Retired { name, unreadable } => {
            let failure = Failure::new(Code::E0511, format!("{name} was retired"));
            with_unreadable(failure.note("registering it again takes the name up again"), unreadable)
        }
        error @ NotNamed::Window(_) => Failure::new(Code::E0106, error.to_string()).note(
            "its window is part of what it says; `dendrer predicate register` gives another name to another",
        ),
        NotNamed::Error(error) => error.into(),
    }
}

/// Reports a name that no predicate has.
pub(crate) fn unknown_predicate(unknown: &UnknownPredicate) -> Failure {
    let failure = Failure::new(Code::E0511, format!("there is no predicate {}", unknown.name));
    let known = || unknown.known.join(", ");
    let failure = match &unknown.near {
        Some(near) => failure.note(format!("did you mean {near}?")),
        None => failure.note(format!("there are {}, or write an expression over state", known())),
    };
    with_unreadable(failure.help(&["dendrer", "predicate", "list"]), unknown.unreadable)
}

/// Notes registrations that cannot be read: one of them may be the missing one.
pub(crate) fn with_unreadable(failure: Failure, unreadable: u64) -> Failure {
    match unreadable {
        0 => failure,
        n => failure.note(format!(
            "{} cannot be read any more, and may be of this name",
            count(n, "registration", "registrations")
        )),
    }
}

/// Notes what helps if a predicate cannot be judged on a run for a reason.
pub(crate) fn with_hint(failure: Failure, trace: &Trace, predicate: &Predicate, why: &str) -> Failure {
    match unjudged_hint(trace, predicate, why) {
        None => failure,
        Some(UnjudgedHint::Module) => {
            failure.note("the module is to say ok or violation of every state, whatever a state has not")
        }
        Some(UnjudgedHint::Near(near)) => failure.note(format!("did you mean {near}?")),
        Some(UnjudgedHint::Score) => {
            failure.note("a score is a number from 0 to 1: mend the expression of the progress contract")
        }
        Some(UnjudgedHint::Own) => {
            failure.note("`uncertain` of the progress contract is true of this state, so there is no verdict")
        }
        Some(UnjudgedHint::Missing(places)) => {
            let asked: Vec<String> = places.iter().map(|place| format!("has({})", place.dotted())).collect();
            failure.note(format!("say what a missing field means, like: {} && ...", asked.join(" && ")))
        }
    }
}

/// Reads the predicates of a file that are asked of a run: a pack, or a list of them as JSON, which may use the names of
/// the pack of the run.
pub(crate) fn of_file(path: &str, trace: &Trace) -> Result<Vec<Predicate>> {
    let text = packs::read_file(path)?;
    let value = json::parse_door(behind_mark(&text)).ok();
    let listed = value.map_or(Ok(None), |value| listed(trace, &value)).map_err(|fault| match fault {
        ListFault::Member(other) => unfit(path, format!("a list of predicates has no \"{other}\" beside it")),
        ListFault::Item(at, Unfit::Shape(why)) => unfit(path, format!("predicates[{at}]: {why}")),
        ListFault::Item(at, Unfit::Expr(error)) => {
            Failure::from(error).at("where", format!("{path}, predicates[{at}]"))
        }
        ListFault::Error(error) => error.into(),
    })?;
    match listed {
        Some(listed) => Ok(listed),
        None => {
            let source = packs::load(path)?;
            Ok(source.pack.declared().map(|declared| declared.predicate.clone()).collect())
        }
    }
}

/// Reports a file that does not describe predicates.
pub(crate) fn unfit(path: &str, why: String) -> Failure {
    Failure::new(Code::E0512, format!("{path} does not describe predicates")).at("why", why)
}

/// Returns the window of a flag.
pub(crate) fn window(choice: WindowChoice) -> Window {
    match choice {
        WindowChoice::After => Window::After,
        WindowChoice::Before => Window::Before,
    }
}
