//! The four lists of a line with commitments, and what is wrong with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::document::NonEmpty;
use dendrer_object::value::{Array, Object};
use dendrer_object::{AT, COMMITMENT_LISTS, Code, Intent, Value};

use super::fault::CommitmentFault;
use super::{ClosedAs, CommitmentKind, EdgeKind, spent};
use crate::expr::{ExprError, Scope, Until, until_of};
use crate::step::FIRST_VERSION;

const LISTS: [&str; 4] = COMMITMENT_LISTS;
pub(super) const EVIDENCE: &str = LISTS[0];
pub(super) const COMMITMENTS: &str = LISTS[1];
pub(super) const EDGES: &str = LISTS[2];
pub(super) const CLOSES: &str = LISTS[3];

/// Members of an atom that the kernel derives.
const DERIVED: [&str; 3] = ["mode", "time", "attestation"];

/// Whether an intent brings a commitment whose `until` is a length.
pub fn has_length(intent: &Intent) -> bool {
    let items = intent.member(COMMITMENTS).and_then(Value::as_array);
    let mut items = items.into_iter().flat_map(|items| items.iter());
    items.any(|item| matches!(text(item, "until").and_then(|until| until_of(&until)), Some(Until::For(_))))
}

/// The time at which the content of a transition was first on record, if it was proposed again: milliseconds since 1970.
pub(super) fn first_said(content: &Value) -> Option<u64> {
    match until_of(content.get(AT)?.as_str()?)? {
        Until::At(ms) => Some(ms),
        Until::For(_) => None,
    }
}

dendrer_object::line! {
    /// An atom of evidence
    pub closed LineAtom {
        /// The id, once in a run
        id: NonEmpty = required,
        /// The content
        content: Value = required,
        /// The source
        source: NonEmpty,
        /// Places of the state that it is about
        touches: [String],
    }

    /// A commitment of an agent
    pub closed LineCommitment {
        /// The id, once in a run
        id: NonEmpty = required,
        /// The type
        type: CommitmentKind = required,
        /// The commitment in words
        gloss: NonEmpty = required,
        /// Whether an action that violates it is refused
        hard: bool,
        /// Ids of the evidence and the commitments that support it
        support: [String],
        /// An expression over `state`, `action` (`tool`, `params`, `agent`) and `t.calls`
        guard: String,
        /// An expression over `state`, `action` (`tool`, `params`, `agent`) and `t.calls`
        discharge: String,
        /// An expression over `state`, `action` (`tool`, `params`, `agent`) and `t.calls`
        holds: String,
        /// An expression over `state`, `action` (`tool`, `params`, `agent`) and `t.calls`
        condition: String,
        /// Places of the state that it watches
        watch: [String],
        /// The priority
        priority: f64,
        /// The scope
        scope: String,
        /// Ids of commitments that it is in conflict with
        conflicts: [String],
        /// Ids of commitments that it depends on
        depends_on: [String],
        /// Ids of commitments that it makes more exact
        refines: [String],
        /// The id of the commitment that it replaces
        supersedes: String,
        /// A moment as RFC 3339 writes it, or a length of time from its tick on, like `900s`; from then on it is discharged
        until: String,
        /// Tools and files that a child run may use
        allowed: Object,
        /// Actions that a child run may not do
        forbidden: Array,
    }

    /// An edge between atoms and commitments
    pub closed LineEdge {
        /// The relation
        edge: EdgeKind = required,
        /// The id at its begin
        from: NonEmpty = required,
        /// The id at its end
        to: NonEmpty = required,
    }

    /// A commitment that is closed
    pub closed LineClosing {
        /// The id
        id: NonEmpty = required,
        /// The status
        as: ClosedAs = required,
        /// The reason
        reason: String,
    }
}

/// A text, without a copy of it.
fn text_of(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::String(text) => Some(Arc::clone(text)),
        value => value.as_str().map(Arc::from),
    }
}

/// A text member of an object.
pub(super) fn text(value: &Value, name: &str) -> Option<Arc<str>> {
    text_of(value.get(name)?)
}

/// A member that is a list of texts; other items are left out.
pub(super) fn texts(value: &Value, name: &str) -> Vec<Arc<str>> {
    let list = value.get(name).and_then(Value::as_array);
    list.into_iter().flat_map(|list| list.iter()).filter_map(text_of).collect()
}

/// The names that expressions of commitments know by version 1 of the rules.
pub(crate) fn first_scope() -> Scope {
    Scope::new().by_rules(FIRST_VERSION).root_of("action", ["tool", "params"])
}

/// The names that expressions of commitments know: the state, the call with the agent that makes it, the calls of the line, and
/// constants and definitions of a pack.
pub(crate) fn scope(names: Option<&Value>) -> Scope {
    let mut scope = Scope::new().root_of("action", ["tool", "params", "agent"]).root_of("t", ["calls"]);
    let members = |name: &str| names.and_then(|names| names.get(name)).and_then(Value::as_object);
    for (name, value) in members(CONSTANTS).into_iter().flat_map(Object::iter) {
        scope = scope.constant(name, value.clone());
    }
    let mut open: Vec<(&str, Vec<&str>, &str)> = Vec::new();
    for (signature, text) in members(DEFINE).into_iter().flat_map(Object::iter) {
        let (name, inside) = signature.split_once('(').unwrap_or((signature, ""));
        let parameters = inside.trim_end().trim_end_matches(')').split(',').map(str::trim);
        let parameters = parameters.filter(|name| !name.is_empty()).collect();
        open.extend(text.as_str().map(|text| (name.trim(), parameters, text)));
    }
    // In whatever order they can be understood. One that reads what a commitment does not see is not known here.
    loop {
        let before = open.len();
        open.retain(|(name, parameters, text)| match scope.clone().define(name, parameters, text) {
            Ok(with) => {
                scope = with;
                false
            }
            Err(_) => true,
        });
        if open.len() == before {
            return scope;
        }
    }
}

/// Members of a pack, and of the kept form, whose names expressions know.
pub(super) const CONSTANTS: &str = "constants";
pub(super) const DEFINE: &str = "define";

/// Returns the constants and definitions of a pack; `None` if it has neither.
pub(super) fn names_of(pack: &Value) -> Option<Value> {
    let members = [CONSTANTS, DEFINE].into_iter().filter_map(|name| Some((name, pack.get(name)?.clone())));
    let members: Vec<_> = members.collect();
    (!members.is_empty()).then(|| Value::record(members))
}

/// The expressions of a commitment, each with its member.
pub(crate) const EXPRESSIONS: [&str; 4] = ["guard", "discharge", "holds", "condition"];

/// Checks the lists of a line. Names in expressions are for the run to know: its pack may declare them.
pub fn check(line: &Value) -> Result<(), CommitmentFault> {
    check_lists(|name| line.get(name).cloned(), &Form { scope: &scope(None), is_first: false, is_open: true })
}

/// By what the lists of a line are checked.
pub(super) struct Form<'s> {
    /// The names that expressions know.
    pub(super) scope: &'s Scope,
    /// Whether version 1 of the rules applies.
    pub(super) is_first: bool,
    /// Whether expressions may use names that are not known here.
    pub(super) is_open: bool,
}

/// As [`check`], for lists that are given by name.
pub(super) fn check_lists(
    list_of: impl Fn(&str) -> Option<Value>,
    form: &Form<'_>,
) -> Result<(), CommitmentFault> {
    let mut made = BTreeSet::new();
    for list in LISTS {
        let Some(value) = list_of(list) else { continue };
        let Some(items) = value.as_array() else {
            return fault(&format!("/{list}"), format!("{list} is a list"));
        };
        for (at, item) in items.iter().enumerate() {
            let place = format!("/{list}/{at}");
            if item.as_object().is_none() {
                return fault(&place, "this is an object");
            }
            match list {
                EVIDENCE => atom(item, &place)?,
                COMMITMENTS => commitment(item, &place, form)?,
                EDGES => edge(item, &place)?,
                _ => closed(item, &place)?,
            }
            let mut is_new = || text(item, "id").is_none_or(|id| made.insert(id));
            if [EVIDENCE, COMMITMENTS].contains(&list) && !is_new() {
                return fault(&format!("{place}/id"), "this id is used twice here");
            }
        }
    }
    Ok(())
}

fn fault<T>(path: &str, message: impl Into<String>) -> Result<T, CommitmentFault> {
    Err(CommitmentFault { code: Code::E0209, path: path.to_owned(), message: message.into() })
}

/// Checks that an object has a text, and knows its members.
pub(super) fn members(
    item: &Value,
    place: &str,
    needed: &[&str],
    known: &[&str],
) -> Result<(), CommitmentFault> {
    for name in needed {
        if item.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
            return fault(&format!("{place}/{name}"), format!("{name} is a text"));
        }
    }
    let names = item.as_object().into_iter().flat_map(|item| item.iter());
    match names.map(|(name, _)| name).find(|name| !needed.contains(&&***name) && !known.contains(&&***name)) {
        Some(name) => fault(&format!("{place}/{name}"), "no such member is known here"),
        None => Ok(()),
    }
}

pub(super) fn are_texts(item: &Value, place: &str, names: &[&str]) -> Result<(), CommitmentFault> {
    for name in names {
        let is_list = |value: &Value| {
            value.as_array().is_some_and(|list| list.iter().all(|text| text.as_str().is_some()))
        };
        if item.get(name).is_some_and(|value| !is_list(value)) {
            return fault(&format!("{place}/{name}"), format!("{name} is a list of texts"));
        }
    }
    Ok(())
}

fn atom(item: &Value, place: &str) -> Result<(), CommitmentFault> {
    if let Some(name) = DERIVED.iter().find(|name| item.get(name).is_some()) {
        let message = format!("{name} follows from author and type of the transition, and cannot be brought");
        return Err(CommitmentFault { code: Code::E0454, path: format!("{place}/{name}"), message });
    }
    members(item, place, &["id"], LineAtom::NAMES)?;
    if item.get("content").is_none() {
        return fault(&format!("{place}/content"), "an atom has a content");
    }
    are_texts(item, place, &["touches"])
}

fn commitment(item: &Value, place: &str, form: &Form<'_>) -> Result<(), CommitmentFault> {
    let lists = ["support", "watch", "conflicts", "depends_on", "refines"];
    members(item, place, &["id", "type", "gloss"], LineCommitment::NAMES)?;
    are_texts(item, place, &lists)?;
    if item.get("type").and_then(Value::as_str).and_then(CommitmentKind::from_word).is_none() {
        return fault(&format!("{place}/type"), "a type is obs, hyp, goal, obl, pref, plan or deleg");
    }
    if item.get("hard").is_some_and(|value| value.as_bool().is_none()) {
        return fault(&format!("{place}/hard"), "hard is true or false");
    }
    if item.get("priority").is_some_and(|value| value.as_f64().is_none()) {
        return fault(&format!("{place}/priority"), "a priority is a number");
    }
    for name in ["scope", "supersedes"] {
        if item.get(name).is_some_and(|value| value.as_str().is_none()) {
            return fault(&format!("{place}/{name}"), format!("{name} is a text"));
        }
    }
    if item.get("holds").is_some() && item.get("condition").is_some() {
        return fault(&format!("{place}/condition"), "holds and condition are two ways to say one thing");
    }
    if let Some(until) = item.get("until") {
        let at = format!("{place}/until");
        if form.is_first {
            return fault(&at, "no such member is known here");
        }
        if until.as_str().and_then(until_of).is_none() {
            return fault(&at, "until is a moment like \"2026-11-28T12:00:00Z\" or a length like \"900s\"");
        }
    }
    for name in EXPRESSIONS {
        let Some(value) = item.get(name) else { continue };
        let Some(text) = value.as_str() else {
            return fault(&format!("{place}/{name}"), "this is an expression");
        };
        let is_unknown = |error: &ExprError| form.is_open && error.code == Code::E0505;
        let read = spent::read(text, form.scope, 0);
        if name == "discharge" && read.as_ref().is_ok_and(|read| !read.sums.is_empty()) {
            return fault(&format!("{place}/{name}"), "spent is of holds, condition and guard");
        }
        if let Err(error) = read
            && !is_unknown(&error)
        {
            let path = format!("{place}/{name}");
            return Err(CommitmentFault { code: error.code, path, message: error.message });
        }
    }
    Ok(())
}

fn edge(item: &Value, place: &str) -> Result<(), CommitmentFault> {
    members(item, place, &["edge", "from", "to"], LineEdge::NAMES)?;
    match item.get("edge").and_then(Value::as_str).and_then(EdgeKind::from_word) {
        Some(_) => Ok(()),
        None => {
            let message = "an edge is supports, depends-on, conflicts-with, refines, discharges or attests";
            fault(&format!("{place}/edge"), message)
        }
    }
}

fn closed(item: &Value, place: &str) -> Result<(), CommitmentFault> {
    members(item, place, &["id", "as"], LineClosing::NAMES)?;
    match item.get("as").and_then(Value::as_str).and_then(ClosedAs::from_word) {
        Some(_) => Ok(()),
        None => {
            fault(&format!("{place}/as"), "a commitment is closed as discharged, retracted or superseded")
        }
    }
}
