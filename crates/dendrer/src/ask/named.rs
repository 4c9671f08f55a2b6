//! Names and expressions of predicates, resolved for a run.
//!
//! A name is built in, registered, or declared by the pack of the run or an extension of it, in this order; any other text
//! is an expression over the state.

use dendrer_kernel::counters;
use dendrer_kernel::expr::ExprError;
use dendrer_kernel::names::KERNEL_PATHS;
use dendrer_kernel::pack::{Pack, extend};
use dendrer_kernel::predicate::{BUILT_IN, Polarity, Predicate, Window};
use dendrer_kernel::progress::{CANNOT_TELL, NO_SCORE};
use dendrer_object::text::{behind_mark, count, nearest};
use dendrer_object::{Code, Digest, Pointer, Value, json};

use crate::error::Error;
use crate::pack;
use crate::problem::Problem;
use crate::registry::{self, Registered, Registry, Unfit};
use crate::run::declared;
use crate::run::trace::Trace;

/// The predicate that a text resolved to.
#[derive(Debug, Clone)]
pub struct NamedPredicate {
    /// The predicate.
    pub predicate: Predicate,
    /// The registration of the name.
    pub registered: Option<Registered>,
    /// The digest of another predicate of the same name in the pack of the run.
    pub other_in_pack: Option<Digest>,
    /// The tick from which on it is part of the contract, if an extension added it.
    pub since: Option<u64>,
}

/// Why a text resolves to no predicate.
#[derive(Debug, thiserror::Error)]
pub enum NotNamed {
    /// The name is unknown.
    #[error("there is no predicate {}", .0.name)]
    Unknown(UnknownPredicate),
    /// The name was retired.
    #[error("{name} was retired")]
    Retired {
        /// The name.
        name: String,
        /// How many registrations cannot be read any more; one of them may be of this name.
        unreadable: u64,
    },
    /// A window was asked for, and the predicate has its own.
    #[error("--window is for expressions, and {0} has a name")]
    Window(String),
    /// The run or the registry cannot be read, or the expression does not check.
    #[error(transparent)]
    Error(#[from] Error),
}

/// A name that no predicate has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPredicate {
    /// The name.
    pub name: String,
    /// The names that exist.
    pub known: Vec<String>,
    /// The name that was probably meant.
    pub near: Option<String>,
    /// How many registrations cannot be read any more; one of them may be of this name.
    pub unreadable: u64,
}

/// Why a list of predicates cannot be used.
#[derive(Debug)]
pub enum ListFault {
    /// The list has another member beside `predicates`.
    Member(String),
    /// The item at this index is no predicate.
    Item(usize, Unfit),
    /// The run cannot be read.
    Error(Error),
}

/// What helps if a predicate cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnjudgedHint {
    /// A module must judge every state.
    Module,
    /// This field or counter was probably meant.
    Near(String),
    /// The progress contract itself says that it cannot tell.
    Own,
    /// The score of a progress contract must be a number from 0 to 1.
    Score,
    /// The expression must say what these missing places mean, the outermost first.
    Missing(Vec<Pointer>),
}

impl NamedPredicate {
    /// A predicate without a registration.
    pub fn plain(predicate: Predicate) -> NamedPredicate {
        NamedPredicate { predicate, registered: None, other_in_pack: None, since: None }
    }

    /// Lets an expression look at the state before or after a transition. A predicate with a name has its own window.
    pub fn at_window(self, window: Option<Window>) -> Result<NamedPredicate, NotNamed> {
        let Some(window) = window.filter(|window| *window != self.predicate.window()) else {
            return Ok(self);
        };
        if self.registered.is_some() || self.predicate.name() != "expression" {
            return Err(NotNamed::Window(self.predicate.name().to_owned()));
        }
        Ok(NamedPredicate { predicate: self.predicate.clone().at_window(window), ..self })
    }
}

/// Resolves a name, or reads an expression that is true in a violation.
pub fn resolve(trace: &Trace, text: &str) -> Result<NamedPredicate, NotNamed> {
    if let Some(built_in) = Predicate::built_in(text) {
        return Ok(NamedPredicate::plain(built_in));
    }
    let registry = Registry::read(trace.store())?;
    let found = registry.newest(text);
    let pack = crate::run::pack::of_run(trace)?;
    if let Some(entry) = found.filter(|entry| entry.retired.is_none()) {
        let (predicate, registered) = (entry.predicate.clone(), Some(entry.clone()));
        let declared = pack.as_ref().and_then(|pack| pack.predicate(text));
        let other = declared.filter(|declared| !declared.means_the_same(&predicate));
        let other_in_pack = other.map(Predicate::digest);
        return Ok(NamedPredicate { predicate, registered, other_in_pack, since: None });
    }
    if let Some(declared) = pack.as_ref().and_then(|pack| pack.predicate(text)) {
        let since = crate::run::pack::declared_since(trace, declared)?;
        return Ok(NamedPredicate { since, ..NamedPredicate::plain(declared.clone()) });
    }
    // Extensions come last, because the state has to be read for them.
    if pack.is_some() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c)) {
        let tip = trace.tip();
        let state = trace.state(tip)?;
        let extended = crate::run::pack::in_force(trace, tip + 1, &state)?;
        if let Some(added) = extended.as_ref().and_then(|pack| pack.predicate(text)) {
            let since = pack.as_ref().and_then(|pack| extend::added(pack.value(), &state, tip + 1, text));
            return Ok(NamedPredicate { since, ..NamedPredicate::plain(added.clone()) });
        }
    }
    // One word is no condition, unless the pack has a constant or a definition of that name.
    let is_word = text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-/".contains(&c))
        && text != "state"
        && !text.starts_with("state.");
    let is_unread = || expression(trace, Polarity::Condition, text).is_err();
    if registry::is_name(text) || text.starts_with("kernel.") || is_word && is_unread() {
        let unreadable = registry.unreadable.len() as u64;
        return Err(match found {
            Some(_) => NotNamed::Retired { name: text.to_owned(), unreadable },
            None => NotNamed::Unknown(unknown(text, &registry, pack.as_ref())),
        });
    }
    Ok(NamedPredicate::plain(expression(trace, Polarity::Condition, text)?))
}

/// Returns the predicate that is violated from the first anomaly of a kind on. The kind must be declared.
pub fn anomaly(trace: &Trace, kind: &str) -> Result<NamedPredicate, Error> {
    declared::anomaly(trace, kind)?;
    Ok(NamedPredicate::plain(Predicate::anomaly(kind)))
}

/// Returns what is known of a name that no predicate has.
pub fn unknown(name: &str, registry: &Registry, pack: Option<&Pack>) -> UnknownPredicate {
    let declared = pack.into_iter().flat_map(Pack::declared).map(|one| one.predicate.name());
    let live = registry.entries.iter().filter(|entry| entry.retired.is_none());
    let known: Vec<&str> =
        BUILT_IN.iter().copied().chain(live.map(|entry| entry.predicate.name())).chain(declared).collect();
    UnknownPredicate {
        name: name.to_owned(),
        near: declared::near(name, known.iter().copied()).map(str::to_owned),
        known: known.into_iter().map(str::to_owned).collect(),
        unreadable: registry.unreadable.len() as u64,
    }
}

/// Reads an expression that is asked of a run. It may use the constants and definitions of the pack of the run, and is
/// checked against the fields that the pack declares.
pub fn expression(trace: &Trace, polarity: Polarity, text: &str) -> Result<Predicate, Error> {
    Ok(under(crate::run::pack::of_run(trace)?.as_ref(), polarity, text)?)
}

/// As [`expression`], for a run with this pack.
pub(crate) fn under(pack: Option<&Pack>, polarity: Polarity, text: &str) -> Result<Predicate, ExprError> {
    let plain = match polarity {
        Polarity::Holds => Predicate::holds("expression", text),
        Polarity::Condition => Predicate::condition("expression", text),
    };
    match (plain, pack) {
        (Err(_), Some(pack)) => pack.expression(polarity, text),
        (Ok(plain), Some(pack)) => {
            pack.check_expression(text)?;
            // Fields that the pack declares `datetime` give the same text another meaning.
            let under = pack.expression(polarity, text).ok();
            Ok(under.filter(|under| !under.means_the_same(&plain)).unwrap_or(plain))
        }
        (plain, None) => plain,
    }
}

/// Reads `{"predicates":[..]}`, whose expressions may use the names of the pack of the run; `None` for any other value.
pub fn listed(trace: &Trace, value: &Value) -> Result<Option<Vec<Predicate>>, ListFault> {
    let Some(list) = value.get("predicates").and_then(Value::as_array) else { return Ok(None) };
    let mut members = value.as_object().into_iter().flat_map(|object| object.iter());
    if let Some((other, _)) = members.find(|(name, _)| &***name != "predicates") {
        return Err(ListFault::Member(other.to_string()));
    }
    let bound = crate::run::pack::of_run(trace).map_err(ListFault::Error)?;
    let make = |polarity, text: &str| under(bound.as_ref(), polarity, text);
    let mut found: Vec<Predicate> = Vec::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        let unfit = |why: String| ListFault::Item(at, Unfit::Shape(why));
        let predicate =
            registry::read_value(item, "", "v1", &make).map_err(|fault| ListFault::Item(at, fault))?;
        if predicate.name().is_empty() {
            return Err(unfit("a predicate has a name".to_owned()));
        }
        if found.iter().any(|other| other.name() == predicate.name()) {
            return Err(unfit(format!("there is another predicate named {}", predicate.name())));
        }
        found.push(predicate);
    }
    Ok(Some(found))
}

impl From<NotNamed> for Problem {
    fn from(error: NotNamed) -> Problem {
        match error {
            NotNamed::Unknown(unknown) => unknown_predicate(&unknown),
            NotNamed::Retired { name, unreadable } => {
                let failure = Problem::new(Code::E0511, format!("{name} was retired"));
                with_unreadable(failure.note("registering it again takes the name up again"), unreadable)
            }
            error @ NotNamed::Window(_) => Problem::new(Code::E0106, error.to_string()).note(
                "its window is part of what it says; `dendrer predicate register` gives another name to another",
            ),
            NotNamed::Error(error) => error.into(),
        }
    }
}

/// Reports a name that no predicate has.
pub fn unknown_predicate(unknown: &UnknownPredicate) -> Problem {
    let failure = Problem::new(Code::E0511, format!("there is no predicate {}", unknown.name));
    let known = || unknown.known.join(", ");
    let failure = match &unknown.near {
        Some(near) => failure.note(format!("did you mean {near}?")),
        None => failure.note(format!("there are {}, or write an expression over state", known())),
    };
    with_unreadable(failure.help(&["dendrer", "predicate", "list"]), unknown.unreadable)
}

/// Notes registrations that cannot be read: one of them may be the missing one.
pub fn with_unreadable(failure: Problem, unreadable: u64) -> Problem {
    match unreadable {
        0 => failure,
        n => failure.note(format!(
            "{} cannot be read any more, and may be of this name",
            count(n, "registration", "registrations")
        )),
    }
}

/// Notes what helps if a predicate cannot be judged on a run for a reason.
pub fn with_hint(failure: Problem, trace: &Trace, predicate: &Predicate, why: &str) -> Problem {
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
            let has = |place: &Pointer| format!("has({})", place.dotted());
            // A missing field is no violation.
            let advice: Vec<String> = match predicate.polarity() {
                Polarity::Condition => places.iter().map(|place| format!("{} && ", has(place))).collect(),
                Polarity::Holds => places.iter().map(|place| format!("!{} || ", has(place))).collect(),
            };
            failure.note(format!("say what a missing field means, like: {}...", advice.concat()))
        }
    }
}

/// The word for the standard questions instead of a list of predicates.
pub const STANDARD: &str = "standard";

/// The predicates of the kernel among the standard questions.
const STANDARD_NAMES: [&str; 2] = ["kernel.policy_compliant", "kernel.anomaly_free"];

/// The conditions among the standard questions.
const STANDARD_HOLDS: [&str; 2] = ["state.counters.tool_errors == 0", "state.counters.denied_count == 0"];

/// Returns the standard questions of a run: each predicate and violation of the pack in force with its extensions, that the run
/// kept its policy, has no anomaly, no failed call and no denied one. A predicate that an extension added has the tick since when.
pub fn standard(trace: &Trace) -> Result<Vec<NamedPredicate>, Error> {
    let mut asked = Vec::new();
    if let Some(own) = crate::run::pack::of_run(trace)? {
        // The state has the extensions of a pack, and is read for nothing else.
        let next = trace.tip() + 1;
        let state = trace.state(trace.tip())?;
        let pack = crate::run::pack::in_force(trace, next, &state)?;
        for declared in pack.iter().flat_map(Pack::declared) {
            let since = match own.predicate(declared.predicate.name()) {
                Some(_) => crate::run::pack::declared_since(trace, &declared.predicate)?,
                None => extend::added(own.value(), &state, next, declared.predicate.name()),
            };
            asked.push(NamedPredicate { since, ..NamedPredicate::plain(declared.predicate.clone()) });
        }
    }
    asked.extend(STANDARD_NAMES.into_iter().filter_map(Predicate::built_in).map(NamedPredicate::plain));
    for text in STANDARD_HOLDS {
        asked.push(NamedPredicate::plain(Predicate::holds("expression", text)?));
    }
    Ok(asked)
}

/// Reads the predicates of a text that are asked of a run: a list of them as JSON, which may use the names of the pack of the
/// run, or a pack. `name` is the name of the text for messages.
pub fn of_text(trace: &Trace, text: &str, name: &str) -> Result<Vec<Predicate>, Problem> {
    let value = json::parse_door(behind_mark(text.as_bytes())).ok();
    let listed = value.map_or(Ok(None), |value| listed(trace, &value)).map_err(|fault| match fault {
        ListFault::Member(other) => unfit(name, format!("a list of predicates has no \"{other}\" beside it")),
        ListFault::Item(at, Unfit::Shape(why)) => unfit(name, format!("predicates[{at}]: {why}")),
        ListFault::Item(at, Unfit::Expr(error)) => {
            Problem::from(error).at("where", format!("{name}, predicates[{at}]"))
        }
        ListFault::Error(error) => error.into(),
    })?;
    let found = match listed {
        Some(listed) => listed,
        None => {
            let source = pack::read(text.as_bytes()).map_err(|problems| pack::unsound(name, &problems))?;
            source.pack.declared().map(|declared| declared.predicate.clone()).collect()
        }
    };
    match found.is_empty() {
        true => Err(Problem::new(Code::E0512, format!("{name} has no predicates"))),
        false => Ok(found),
    }
}

/// Reports a text that does not describe predicates.
pub fn unfit(name: &str, why: String) -> Problem {
    Problem::new(Code::E0512, format!("{name} does not describe predicates")).at("why", why)
}

/// Returns what helps if a predicate cannot be judged on a run for a reason.
pub fn unjudged_hint(trace: &Trace, predicate: &Predicate, why: &str) -> Option<UnjudgedHint> {
    // The reason names the rule; the text of the predicate itself is not the user's.
    if predicate.is_policy() {
        return None;
    }
    if predicate.expr().is_none() {
        return Some(UnjudgedHint::Module);
    }
    if let Some(near) = near_field(trace, predicate) {
        return Some(UnjudgedHint::Near(near));
    }
    let path = predicate.read_set().first()?.clone();
    if predicate.progress().is_some() && why.ends_with(CANNOT_TELL) {
        return Some(UnjudgedHint::Own);
    }
    if predicate.progress().is_some() && why.ends_with(NO_SCORE) {
        return Some(UnjudgedHint::Score);
    }
    // `has` helps only if something is missing.
    if !why.ends_with(" is missing") {
        return None;
    }
    // An inner place may be missing because an outer one is. An expression names each with one `$`.
    let names: Vec<String> =
        path.tokens().map(|name| name.strip_prefix("$").unwrap_or(&name).to_owned()).collect();
    let place =
        |count: usize| Pointer::of(["state"].into_iter().chain(names[..count].iter().map(String::as_str)));
    Some(UnjudgedHint::Missing((1..=names.len().min(3)).map(place).collect()))
}

/// Returns the one field of which a word is near to a name: `total_chf` for `totl`.
fn has_word<'f>(name: &str, fields: impl Iterator<Item = &'f str>) -> Option<&'f str> {
    let mut found = fields.filter(|field| field.split('_').any(|word| nearest(name, [word]).is_some()));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Finds the counter or field of the state that was probably meant by a name that the state of a run does not have.
pub fn near_field(trace: &Trace, predicate: &Predicate) -> Option<String> {
    if predicate.is_policy() {
        return None;
    }
    let first = |path: &Pointer| path.tokens().next().map(|name| name.into_owned());
    let names: Vec<String> = predicate.read_set().iter().filter_map(first).collect();
    if let Some(name) = names.iter().find(|name| counters::NAMES.contains(&name.as_str())) {
        return Some(format!("state.counters.{name}"));
    }
    // No verdict depends on this: a state that cannot be read any more gives no hint.
    let state = trace.state(trace.tip()).ok()?;
    let mut missing = predicate.read_set().iter().filter(|place| place.get(&state).is_none());
    let near = missing.find_map(|place| near_place(&state, place))?;
    Some(near.in_state())
}

/// Finds the place of a state that was probably meant by one that it does not have: a member of the object that lacks it, by its
/// name or the first words of that, else the same name elsewhere in the state.
fn near_place(state: &Value, place: &Pointer) -> Option<Pointer> {
    let names: Vec<String> = place.tokens().map(std::borrow::Cow::into_owned).collect();
    let above = |count: usize| Pointer::of(names[..count].iter().map(String::as_str));
    let (count, object) = (0..names.len()).rev().find_map(|count| Some((count, above(count).get(state)?)))?;
    let name = &names[count];
    let members = || object.as_object().into_iter().flat_map(|object| object.entries()).map(|one| &*one.key);
    let of_words = || {
        let is_near = |key: &str| {
            let ends = key.match_indices(['_', '-']).map(|(at, _)| at);
            ends.into_iter().any(|end| nearest(name, [&key[..end]]).is_some())
        };
        members().find(|key| is_near(key))
    };
    let found = nearest(name, members()).or_else(of_words).or_else(|| has_word(name, members()));
    let own = found.map(|found| Pointer::of(names[..count].iter().map(String::as_str).chain([found])));
    own.or_else(|| elsewhere(state, names.last()?))
}

/// How many objects of a state are looked through for a name.
const OBJECTS_MAX: usize = 1_000;

/// Finds a name in an object inside of a state, the outermost first.
fn elsewhere(state: &Value, name: &str) -> Option<Pointer> {
    let mut waiting = std::collections::VecDeque::from([(Pointer::root(), state)]);
    for _ in 0..OBJECTS_MAX {
        let (place, object) = waiting.pop_front()?;
        let tokens: Vec<_> = place.tokens().collect();
        let at = |key: &str| Pointer::of(tokens.iter().map(|token| &**token).chain([key]));
        if !tokens.is_empty() && object.get(name).is_some() {
            return Some(at(name));
        }
        let members = object.as_object().into_iter().flat_map(|object| object.entries());
        let objects = members.filter(|one| one.value.as_object().is_some() && !is_kernel_name(&one.key));
        waiting.extend(objects.map(|one| (at(&one.key), &one.value)));
    }
    None
}

fn is_kernel_name(name: &str) -> bool {
    KERNEL_PATHS.contains(&name)
}
