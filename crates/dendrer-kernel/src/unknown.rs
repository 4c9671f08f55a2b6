//! Places of a state that are not known (design, section 7).
//!
//! A change that could not be computed leaves the state behind what happened. The kernel keeps the places that it would
//! have written in the state itself, at `/kernel_unknown`: an object of place to `{"code", "tick"}`, absent while empty.
//! So the root binds them, and snapshots, forks, merges and replay carry them like any other member.
//!
//! Rule: a place of the state is unknown if it and a place of the set are equal or one lies above the other; what the
//! kernel itself writes is always known. Test `a_place_is_unknown_at_above_and_below`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::Author;
use dendrer_object::{Digest, Intent, Object, Pointer, Record, Value};

use crate::names::{KERNEL_PATHS, UNKNOWN};
use crate::ontology::DECISION;

/// Since when a place is unknown, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Since {
    /// The tick of the transition that could not be computed.
    pub tick: u64,
    /// A word for the cause: [`RULE_FAILED`], [`DELTA_FAILED`], [`REDUCER_FAILED`], [`NO_RESULT`], [`NOT_READ`],
    /// [`CONFLICT`], [`RESULT_AMBIGUOUS`], [`CALL_CONTESTED`], [`STATUS_UNKNOWN`], [`NO_USAGE`], [`FINER`] or
    /// [`READS_UNKNOWN`].
    pub code: Arc<str>,
}

/// A rule of the pack met an error, so no rule of that transition wrote.
pub const RULE_FAILED: &str = "rule_failed";
/// A delta did not fit the state.
pub const DELTA_FAILED: &str = "delta_failed";
/// A module or a function of the host met an error.
pub const REDUCER_FAILED: &str = "reducer_failed";
/// The result of a call is not on record.
pub const NO_RESULT: &str = "no_result";
/// A part of the source could not be read, and it may have been anything.
pub const NOT_READ: &str = "not_read";
/// Kinds of anomalies that an import notes for an item that it could not read, which may have been anything.
pub const UNREAD: [&str; 6] = [
    "message_unreadable",
    "message_without_role",
    "message_outside",
    "parts_not_read",
    "source_cut",
    "call_unreadable",
];
/// A result may answer several calls.
pub const RESULT_AMBIGUOUS: &str = "result_ambiguous";
/// A result may answer a call, or another one of its id. Counters alone are unknown by it.
pub const CALL_CONTESTED: &str = "call_contested";
/// A result has a status that states neither that the call failed nor that it did not. Counters alone are unknown by it.
pub const STATUS_UNKNOWN: &str = "status_unknown";
/// A message of a model does not say what it used. Counters alone are unknown by it.
pub const NO_USAGE: &str = "no_usage";
/// The sources of a merge have different values there, and the conflict is open.
pub const CONFLICT: &str = "conflict";
/// Kinds of anomalies that an import notes of a row that is never counted as sound: its hash is wrong, its step is repeated, or it
/// belongs to another chain of the file.
pub const UNSOUND_ROWS: [&str; 3] = ["row_hash_wrong", STEP_REPEATED, "row_of_other_chain"];
/// A step has the id of a step before it.
pub const STEP_REPEATED: &str = "step_repeated";
/// Rows of the chain before this one are missing. The row counts; counters are lower bounds by it.
pub const ROWS_BEFORE_MISSING: &str = "rows_before_missing";
/// A rule reads a place that is unknown.
pub const READS_UNKNOWN: &str = "reads_unknown";

/// A number was added that is finer than the decimals of the field.
pub const FINER: &str = "finer_than_declared";

impl Since {
    /// A sentence on the cause, such as `a rule failed at tick 5`.
    pub fn words(&self) -> String {
        let tick = self.tick;
        match &*self.code {
            CONFLICT => "the sources of the merge differ there, and the conflict is open".to_owned(),
            _ if tick == 0 => "it was unknown in a source of the merge".to_owned(),
            RULE_FAILED => format!("a rule failed at tick {tick}"),
            DELTA_FAILED => format!("a delta failed at tick {tick}"),
            REDUCER_FAILED => format!("the reducer failed at tick {tick}"),
            NO_RESULT => format!("a call at tick {tick} has no result"),
            RESULT_AMBIGUOUS => format!("a result at tick {tick} may answer several calls"),
            CALL_CONTESTED => format!("whether the call at tick {tick} has a result is not known"),
            STATUS_UNKNOWN => format!("a result at tick {tick} has a status that is not known"),
            NO_USAGE => format!("a message at tick {tick} does not say what it used"),
            "row_hash_wrong" => format!("the row at tick {tick} does not have the hash that it states"),
            STEP_REPEATED => format!("the row at tick {tick} repeats a step"),
            "row_of_other_chain" => format!("the row at tick {tick} is of another chain of the file"),
            ROWS_BEFORE_MISSING => format!("rows of the chain before tick {tick} are missing"),
            NOT_READ => format!("a part of the source was not read at tick {tick}"),
            FINER => format!("a number finer than its field was added at tick {tick}"),
            READS_UNKNOWN => format!("computed from an unknown place at tick {tick}"),
            other => format!("{other} at tick {tick}"),
        }
    }
}

/// Returns what an import notes as missing in a transition: the code of the cause, if rules may have written because of it.
/// `docs/format.md` has the table of kinds.
pub(crate) fn gap(intent: &Intent) -> Option<&'static str> {
    match () {
        () if notes_any(&intent.noted, &UNREAD) => Some(NOT_READ),
        () if unread_meanings(&intent.noted).any(|word| [CALLS, FAILURES].contains(&word)) => Some(NOT_READ),
        () if notes_any(&intent.noted, &["call_without_result"]) => Some(NO_RESULT),
        () if is_ambiguous(intent) => Some(RESULT_AMBIGUOUS),
        () => None,
    }
}

/// Meanings that a part of a source may have which no reader knows: an import names them in the member `may` of a note [`NOT_READ`].
pub const MEANINGS: [&str; 4] = [CALLS, USAGE, FAILURES, SPEAKERS];
/// A part that was not read may be a call.
pub const CALLS: &str = "calls";
/// A part that was not read may state tokens or a cost.
pub const USAGE: &str = "usage";
/// A part that was not read may state that a call failed.
pub const FAILURES: &str = "failures";
/// A part that was not read may name the speaker.
pub const SPEAKERS: &str = "speakers";

/// Returns the meanings that parts of a transition may have which an import did not read.
pub fn unread_meanings<'a>(noted: impl IntoIterator<Item = &'a Value>) -> impl Iterator<Item = &'static str> {
    let unread = noted.into_iter().filter(|note| note.get("kind").and_then(Value::as_str) == Some(NOT_READ));
    let meanings = unread.filter_map(|note| note.get("may")?.as_array()).flat_map(|may| may.iter());
    meanings.filter_map(|word| MEANINGS.into_iter().find(|known| word.as_str() == Some(known)))
}

fn notes_any<'a>(noted: impl IntoIterator<Item = &'a Value>, kinds: &[&str]) -> bool {
    noted
        .into_iter()
        .any(|note| note.get("kind").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind)))
}

/// Whether these anomalies of a transition note that its message could not be read: it may have been anything.
pub fn has_unread(anomalies: &Value) -> bool {
    notes_any(anomalies.as_array().into_iter().flat_map(|noted| noted.iter()), &UNREAD)
}

/// Whether these anomalies have one of this kind.
pub fn has_note(anomalies: &Value, kind: &str) -> bool {
    notes_any(anomalies.as_array().into_iter().flat_map(|noted| noted.iter()), &[kind])
}

/// Returns the place of an open conflict that a decision resolves, if user or runtime made it.
pub(crate) fn resolved(intent: &Intent) -> Option<Pointer> {
    let is_decision = intent.author != Author::Agent && intent.type_name.as_str() == DECISION;
    intent.member("intent").filter(|_| is_decision)?.get("conflict")?.get("path")?.as_str()?.parse().ok()
}

/// Whether an import notes of a result that it may answer several calls.
pub(crate) fn is_ambiguous(intent: &Intent) -> bool {
    notes_any(&intent.noted, &[RESULT_AMBIGUOUS])
}

/// The places of a state that are unknown. Sorted, and equal for equal states.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownPlaces(BTreeMap<Pointer, Since>);

impl UnknownPlaces {
    /// Reads the unknown places of a state.
    pub fn of(state: &Value) -> UnknownPlaces {
        UnknownPlaces(entries(state).collect())
    }

    /// Whether every place is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Walks the places in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Pointer, &Since)> {
        self.0.iter()
    }

    /// Returns the unknown place that a place meets since the earliest tick, if any.
    pub fn meets(&self, place: &Pointer) -> Option<(&Pointer, &Since)> {
        let is_met = |(unknown, _): &(&Pointer, &Since)| is_met(unknown, place);
        self.0.iter().filter(is_met).min_by_key(|(_, since)| since.tick)
    }

    /// Marks a place. One at or above it that is marked already stays as it is.
    pub fn mark(&mut self, place: Pointer, tick: u64, code: &str) {
        if !self.0.keys().any(|known| known.contains(&place)) {
            self.0.insert(place, Since { tick, code: code.into() });
        }
    }

    /// Takes over the marks of another state.
    pub fn mark_as(&mut self, place: Pointer, since: &Since) {
        self.mark(place, since.tick, &since.code);
    }

    /// Clears the marks at and below a place that was set from what is known. The mark of the whole state stays for good.
    pub fn clear(&mut self, place: &Pointer) {
        self.0.retain(|unknown, _| unknown.as_str().is_empty() || !place.contains(unknown));
    }

    /// Clears what a delta sets: a `set` of a place or above it, and nothing else.
    pub fn clear_set(&mut self, delta: &Delta) {
        for op in delta.0.iter().filter(|op| op.action == Action::Set) {
            self.clear(&op.path);
        }
    }

    /// The member of the state that says so; `None` while empty.
    pub fn to_value(&self) -> Option<Value> {
        let member = |(place, since): (&Pointer, &Since)| {
            let since = Value::record([
                ("code", Value::String(Arc::clone(&since.code))),
                ("tick", Value::from(since.tick)),
            ]);
            (Arc::<str>::from(place.as_str()), since)
        };
        let members: Object = self.0.iter().map(member).collect();
        (!self.0.is_empty()).then_some(Value::Object(members))
    }

    /// Returns the change that makes these marks of those that a state has.
    pub(crate) fn change_of(&self, state: &Value) -> Delta {
        let before = UnknownPlaces::of(state);
        if before == *self {
            return Delta::default();
        }
        let top = Pointer::of([UNKNOWN]);
        let Some(whole) = self.to_value() else { return Delta(vec![removal(top)]) };
        if before.is_empty() {
            return Delta(vec![Op::set(top, whole)]);
        }
        let below = |place: &Pointer| Pointer::of([UNKNOWN, place.as_str()]);
        let gone = before.0.keys().filter(|place| !self.0.contains_key(*place));
        let mut ops: Vec<Op> = gone.map(|place| removal(below(place))).collect();
        for (place, since) in &self.0 {
            if before.0.get(place) != Some(since) {
                let value = whole.get(place.as_str()).cloned().expect("each place has a member");
                ops.push(Op::set(below(place), value));
            }
        }
        Delta(ops)
    }
}

fn removal(path: Pointer) -> Op {
    Op { action: Action::Remove, path, value: None }
}

/// The digest of the name, by which members are found.
static NAME: LazyLock<Digest> = LazyLock::new(|| Digest::of(UNKNOWN.as_bytes()));

/// The member of a state that holds the marks.
fn member(state: &Value) -> Option<&Value> {
    state.as_object()?.get_hashed(UNKNOWN, &NAME)
}

/// Reads the marks of a state; a member of another form is passed over.
fn entries(state: &Value) -> impl Iterator<Item = (Pointer, Since)> + '_ {
    let members = member(state).and_then(Value::as_object);
    members
        .into_iter()
        .flat_map(|members| members.iter())
        .filter_map(|(place, since)| Some((place.parse().ok()?, since_of(since)?)))
}

fn since_of(value: &Value) -> Option<Since> {
    let (tick, code) = (value.get("tick")?.as_u64()?, value.get("code")?.as_str()?);
    Some(Since { tick, code: code.into() })
}

/// Whether a state has unknown places. One lookup.
pub fn is_incomplete(state: &Value) -> bool {
    member(state).is_some()
}

/// Returns the unknown place of a state that a place meets since the earliest tick, if any.
pub fn meets(state: &Value, place: &Pointer) -> Option<(Pointer, Since)> {
    member(state)?;
    entries(state).filter(|(unknown, _)| is_met(unknown, place)).min_by_key(|(_, since)| since.tick)
}

/// Lists the unknown places of a state that a place meets, each with its cause: what a reader of the place cannot know.
pub fn met_by(state: &Value, place: &Pointer) -> Vec<(Pointer, Since)> {
    entries(state).filter(|(unknown, _)| is_met(unknown, place)).collect()
}

/// Whether a transition changed which places are unknown, by the text of its recorded delta.
pub fn is_touched_by(record: &Record) -> bool {
    let body = record.body();
    let delta = body.fields().iter().find(|field| field.pointer.as_str() == "/delta");
    let text = delta.and_then(|field| body.text(field)).unwrap_or_default();
    text.windows(UNKNOWN.len()).any(|part| part == UNKNOWN.as_bytes())
}

/// Reads the marks of a state as texts, for people: each place with the cause.
pub fn listed(state: &Value) -> Vec<(Pointer, Since)> {
    entries(state).collect()
}

/// Returns the places that a transition made unknown, by its recorded delta.
pub fn made_by(record: &Record) -> Vec<(Pointer, Since)> {
    let delta = record.delta();
    let mut found = Vec::new();
    for Op { action, path, value } in delta.unwrap_or_default().0 {
        let (Some(marked), Action::Set, Some(value)) = (marks(&path), action, value) else { continue };
        match marked {
            Some(place) => found.extend(since_of(&value).map(|since| (place, since))),
            None => found.extend(entries(&Value::record([(UNKNOWN, value)])).collect::<Vec<_>>()),
        }
    }
    found
}

/// Whether a transition that wrote at a path may have changed what is known of a place: a mark is written below the name
/// of the set, under the place that it marks.
pub fn marks(path: &Pointer) -> Option<Option<Pointer>> {
    let mut tokens = path.tokens();
    (tokens.next().as_deref() == Some(UNKNOWN)).then(|| tokens.next().and_then(|place| place.parse().ok()))
}

/// A place of the kernel is unknown by a mark of its own alone: the kernel computes it from rules, and not from the state as
/// a whole.
fn is_met(unknown: &Pointer, place: &Pointer) -> bool {
    unknown.overlaps(place) && (!is_kernels(place) || is_kernels(unknown))
}

/// Whether a place lies at or below a name of the kernel.
fn is_kernels(place: &Pointer) -> bool {
    place.tokens().next().is_some_and(|top| KERNEL_PATHS.contains(&&*top))
}

/// Returns the place that an operation writes, or the list in which it does: an index moves if the list is not known.
pub(crate) fn written(op: &Op, state: &Value) -> Pointer {
    let tokens: Vec<_> = op.path.tokens().map(|token| token.into_owned()).collect();
    let mut found = Some(state);
    for (depth, token) in tokens.iter().enumerate() {
        if matches!(found, Some(Value::Array(_))) {
            return Pointer::of(tokens[..depth].iter().map(String::as_str));
        }
        found = found.and_then(|value| value.get(token));
    }
    op.path.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(text: &str) -> Pointer {
        text.parse().unwrap()
    }

    fn state_of(unknown: &UnknownPlaces) -> Value {
        let change = unknown.change_of(&Value::object());
        change.apply(&Value::object()).unwrap()
    }

    #[test]
    fn a_place_is_unknown_at_above_and_below() {
        let mut unknown = UnknownPlaces::default();
        unknown.mark(pointer("/a/b"), 5, RULE_FAILED);
        let state = state_of(&unknown);
        for (place, is_unknown) in [
            ("/a/b", true),
            ("/a", true),
            ("", true),
            ("/a/b/c", true),
            ("/a/c", false),
            ("/ab", false),
            ("/kernel_unknown", false),
            ("/policy/violated", false),
        ] {
            assert_eq!(meets(&state, &pointer(place)).is_some(), is_unknown, "{place}");
        }
        unknown.mark(Pointer::root(), 7, REDUCER_FAILED);
        assert_eq!(unknown.meets(&pointer("/x")).unwrap().1.tick, 7);
        assert_eq!(unknown.meets(&pointer("/a")).unwrap().1.tick, 5);
        assert_eq!(unknown.meets(&pointer("/policy")), None);
    }

    #[test]
    fn a_set_clears_its_place_and_what_is_below() {
        let mut unknown = UnknownPlaces::default();
        for place in ["/a/b", "/c", "/d/e/f"] {
            unknown.mark(pointer(place), 1, DELTA_FAILED);
        }
        unknown.clear(&pointer("/a"));
        unknown.clear(&pointer("/c/below"));
        unknown.clear(&pointer("/d/e/f"));
        let left: Vec<&str> = unknown.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(left, ["/c"]);
        unknown.mark(Pointer::root(), 2, REDUCER_FAILED);
        unknown.clear(&Pointer::root());
        let left: Vec<&str> = unknown.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(left, [""], "what is unknown as a whole stays so");
    }

    #[test]
    fn a_change_of_marks_leads_from_one_set_to_the_other() {
        let sets: [&[(&str, u64)]; 5] =
            [&[], &[("/a", 1)], &[("/a", 1), ("/b~1c", 2)], &[("/b~1c", 3)], &[("", 4), ("/x/y", 1)]];
        let made = sets.map(|places| {
            let mut unknown = UnknownPlaces::default();
            for (place, tick) in places.iter().rev() {
                unknown.mark(pointer(place), *tick, RULE_FAILED);
            }
            unknown
        });
        for from in &made {
            for to in &made {
                let state = state_of(from);
                let after = to.change_of(&state).apply(&state).unwrap();
                assert_eq!(UnknownPlaces::of(&after), *to);
                assert_eq!(is_incomplete(&after), !to.is_empty());
            }
        }
    }
}
