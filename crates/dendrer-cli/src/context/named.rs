//! Predicates by name: what a name or an expression on the command line means for a run.

use dendrer::Trace;
use dendrer::kernel::counters;
use dendrer::kernel::expr::ExprError;
use dendrer::kernel::pack::{Pack, extend};
use dendrer::kernel::predicate::{BUILT_IN, Polarity, Predicate, Window};
use dendrer::registry::{self, Registered, Registry, Unfit};
use dendrer_object::text::{behind_mark, nearest};
use dendrer_object::{Digest, Pointer, Value, json};
use dendrer_view::count;

use super::packs;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::WindowChoice;

/// A predicate that was asked for, with its registration.
pub(crate) struct Meant {
    /// The predicate.
    pub(crate) predicate: Predicate,
    /// The registration that the name resolved to.
    pub(crate) registered: Option<Registered>,
    /// Digest of another predicate with the same name in the pack of the run.
    pub(crate) other: Option<Digest>,
    /// First tick at which the predicate is part of the contract, if an extension added it.
    pub(crate) since: Option<u64>,
}

impl Meant {
    /// A predicate without a registration.
    pub(crate) fn plain(predicate: Predicate) -> Meant {
        Meant { predicate, registered: None, other: None, since: None }
    }

    /// Whether the predicate has a name, and so a window of its own.
    fn is_named(&self) -> bool {
        self.registered.is_some() || self.predicate.name() != "expression"
    }

    /// Sets the window of an expression; a predicate with a name has its own.
    pub(crate) fn at_window(self, choice: Option<WindowChoice>) -> Result<Meant> {
        let Some(asked) = choice.map(window).filter(|asked| *asked != self.predicate.window()) else {
            return Ok(self);
        };
        if self.is_named() {
            let name = self.predicate.name();
            return Err(Failure::new("E0106", format!("--window is for expressions, and {name} has a name"))
                .note("its window is part of what it says; `dendrer predicate register` gives another name to another"));
        }
        Ok(Meant { predicate: self.predicate.clone().at_window(asked), ..self })
    }

    /// Returns the line that the pack of the run has another predicate of this name.
    pub(crate) fn other_line(&self) -> Option<String> {
        let other = self.other?;
        Some(format!(
            "           the pack of this run has another predicate of this name, digest {}",
            other.short()
        ))
    }

    /// As [`Meant::other_line`], for documents.
    pub(crate) fn add_other(&self, document: Value) -> Value {
        match (self.other, document) {
            (Some(other), Value::Object(mut members)) => {
                members.set("other_in_pack", Value::from(other));
                Value::Object(members)
            }
            (_, document) => document,
        }
    }
}

/// Resolves a name, or reads an expression that names the violation. Order: built-in, registered, declared by the pack of
/// the run, added by an extension, expression.
pub(crate) fn resolve(trace: &Trace, text: &str) -> Result<Meant> {
    if let Some(built_in) = Predicate::built_in(text) {
        return Ok(Meant::plain(built_in));
    }
    let registry = Registry::read(trace.store())?;
    let found = registry.newest(text);
    let pack = dendrer::pack::of_run(trace)?;
    if let Some(entry) = found.filter(|entry| entry.retired.is_none()) {
        let (predicate, registered) = (entry.predicate.clone(), Some(entry.clone()));
        let declared = pack.as_ref().and_then(|pack| pack.predicate(text));
        let other = declared.filter(|declared| !declared.means_the_same(&predicate)).map(Predicate::digest);
        return Ok(Meant { predicate, registered, other, since: None });
    }
    if let Some(declared) = pack.as_ref().and_then(|pack| pack.predicate(text)) {
        let since = dendrer::pack::declared_since(trace, declared)?;
        return Ok(Meant { since, ..Meant::plain(declared.clone()) });
    }
    // Extensions come last, because they need the state.
    if pack.is_some() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c)) {
        let tip = trace.tip();
        let state = trace.state(tip)?;
        let extended = dendrer::pack::in_force(trace, tip + 1, &state)?;
        if let Some(added) = extended.as_ref().and_then(|pack| pack.predicate(text)) {
            let since = pack.as_ref().and_then(|pack| extend::added(pack.value(), &state, tip + 1, text));
            return Ok(Meant { since, ..Meant::plain(added.clone()) });
        }
    }
    if registry::is_name(text) || text.starts_with("kernel.") {
        let failure = match found {
            Some(_) => Failure::new("E0511", format!("{text} was retired"))
                .note("registering it again takes the name up again"),
            None => unknown(text, &registry, pack.as_ref()),
        };
        return Err(hidden(&registry, failure));
    }
    Ok(Meant::plain(expression(trace, Polarity::Condition, text)?))
}

/// Reads an expression about a run. An expression that is complete by itself is the same predicate on every run; any other
/// may use the constants and definitions of the run's pack. Both are checked against the fields that the pack declares.
pub(crate) fn expression(trace: &Trace, polarity: Polarity, text: &str) -> Result<Predicate> {
    Ok(under(dendrer::pack::of_run(trace)?.as_ref(), polarity, text)?)
}

fn under(pack: Option<&Pack>, polarity: Polarity, text: &str) -> std::result::Result<Predicate, ExprError> {
    let plain = match polarity {
        Polarity::Holds => Predicate::holds("expression", text),
        Polarity::Condition => Predicate::condition("expression", text),
    };
    match (plain, pack) {
        (Err(_), Some(pack)) => pack.expression(polarity, text),
        (Ok(plain), Some(pack)) => pack.check_expression(text).map(|()| plain),
        (plain, None) => plain,
    }
}

/// The failure of a name that is not known.
pub(crate) fn unknown(text: &str, registry: &Registry, pack: Option<&Pack>) -> Failure {
    let declared = pack.into_iter().flat_map(Pack::declared).map(|one| one.predicate.name());
    let live = registry.entries.iter().filter(|entry| entry.retired.is_none());
    let known: Vec<&str> =
        BUILT_IN.iter().copied().chain(live.map(|entry| entry.predicate.name())).chain(declared).collect();
    let failure = Failure::new("E0511", format!("there is no predicate {text}"));
    match nearest(text, known.iter().copied()) {
        Some(near) => failure.note(format!("did you mean {near}?")),
        None => failure.note(format!("there are {}, or write an expression over state", known.join(", "))),
    }
    .help(&["dendrer", "predicate", "list"])
}

/// Adds a note if registrations cannot be read: the missing one may be among them.
pub(crate) fn hidden(registry: &Registry, failure: Failure) -> Failure {
    match registry.unreadable.len() as u64 {
        0 => failure,
        n => failure.note(format!(
            "{} cannot be read any more, and may be of this name",
            count(n, "registration", "registrations")
        )),
    }
}

/// Reads the predicates of a file: a pack, or a list as JSON, whose expressions may use the names of the run's pack.
pub(crate) fn of_file(path: &str, trace: &Trace) -> Result<Vec<Predicate>> {
    let text = packs::read_file(path)?;
    let value = json::parse_door(behind_mark(&text)).ok();
    let listed =
        value.as_ref().and_then(|value| value.get("predicates")?.as_array().map(|list| (value, list)));
    let Some((value, listed)) = listed else {
        let source = packs::load(path)?;
        return Ok(source.pack.declared().map(|declared| declared.predicate.clone()).collect());
    };
    if let Some((other, _)) =
        value.as_object().into_iter().flat_map(|o| o.iter()).find(|(n, _)| &***n != "predicates")
    {
        return Err(unfit(path, format!("a list of predicates has no \"{other}\" beside it")));
    }
    let bound = dendrer::pack::of_run(trace)?;
    let make = |polarity, text: &str| under(bound.as_ref(), polarity, text);
    let mut found: Vec<Predicate> = Vec::with_capacity(listed.len());
    for (at, item) in listed.iter().enumerate() {
        let place = |why: String| unfit(path, format!("predicates[{at}]: {why}"));
        let predicate = match registry::read_value(item, "", "v1", &make) {
            Ok(predicate) => predicate,
            Err(Unfit::Shape(why)) => return Err(place(why)),
            Err(Unfit::Expr(error)) => {
                return Err(Failure::from(error).at("where", format!("{path}, predicates[{at}]")));
            }
        };
        if predicate.name().is_empty() {
            return Err(place("a predicate has a name".to_owned()));
        }
        if found.iter().any(|other| other.name() == predicate.name()) {
            return Err(place(format!("there is another predicate named {}", predicate.name())));
        }
        found.push(predicate);
    }
    Ok(found)
}

/// The failure of a file that is not a list of predicates.
pub(crate) fn unfit(path: &str, why: String) -> Failure {
    Failure::new("E0512", format!("{path} does not describe predicates")).at("why", why)
}

/// Returns the window that a flag names.
pub(crate) fn window(choice: WindowChoice) -> Window {
    match choice {
        WindowChoice::After => Window::After,
        WindowChoice::Before => Window::Before,
    }
}

/// Adds a hint to a verdict that is uncertain: the name that was probably meant, or how to handle a missing field.
pub(crate) fn has_hint(failure: Failure, trace: &Trace, predicate: &Predicate) -> Failure {
    if predicate.expr().is_none() {
        return failure.note("the module is to say ok or violation of every state, whatever a state has not");
    }
    match (meant_field(trace, predicate), predicate.read_set().first()) {
        (Some(meant), _) => failure.note(format!("did you mean {meant}?")),
        (None, Some(_)) if predicate.progress().is_some() => {
            failure.note("a score is a number from 0 to 1: mend the expression of the progress contract")
        }
        // `has` helps only if the reason is a missing field.
        (None, Some(path)) if failure.place.iter().any(|(_, why)| why.ends_with(" is missing")) => {
            // The field around it may be missing, so each level is asked for. Expressions write names with one `$`.
            let names: Vec<String> =
                path.tokens().map(|name| name.strip_prefix("$").unwrap_or(&name).to_owned()).collect();
            let has = |count: usize| {
                let place =
                    Pointer::of(std::iter::once("state").chain(names[..count].iter().map(String::as_str)));
                format!("has({})", place.dotted())
            };
            let asked: Vec<String> = (1..=names.len().min(3)).map(has).collect();
            failure.note(format!("say what a missing field means, like: {} && ...", asked.join(" && ")))
        }
        (None, _) => failure,
    }
}

/// Finds the counter, or the field of the state at the tip, that a missing name was probably meant to be.
pub(crate) fn meant_field(trace: &Trace, predicate: &Predicate) -> Option<String> {
    let first = |path: &Pointer| path.tokens().next().map(|name| name.into_owned());
    let names: Vec<String> = predicate.read_set().iter().filter_map(first).collect();
    if let Some(name) = names.iter().find(|name| counters::NAMES.contains(&name.as_str())) {
        return Some(format!("state.counters.{name}"));
    }
    // A hint is no verdict: a state that cannot be read gives none.
    let state = trace.state(trace.tip()).ok()?;
    let fields = state.as_object()?;
    let known = || fields.entries().map(|entry| &*entry.key);
    let mut missing = names.iter().filter(|name| !fields.contains_key(name));
    let near = missing.find_map(|name| nearest(name, known()))?;
    Some(Pointer::of(["state", near]).dotted())
}
