//! What a record means, for whoever compares it with another: its content without what only places, times or measures it.
//!
//! Numbers are rounded by the rules that the packs declare before anything is compared; after that equal means equal, as
//! everywhere (dendrer paper 3.3, 4.2). A newcomer would break one rule: what is closed, since it was erased or withheld,
//! is put out of sight on *both* sides and named. Left as missing on one side it would pass for a difference, and left
//! out on both without a word for agreement.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use dendrer_kernel::pack::Pack;
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::intent::CONFIDENCE_DECIMALS;
use dendrer_object::number::round_half_even;
use dendrer_object::pointer::array_index;
use dendrer_object::record::{Author, Field, Record};
use dendrer_object::value::{Difference, Object};
use dendrer_object::{
    Digest, EDGE, KEY, MESSAGES, Number, OBSERVED_AT, ORIGIN, Pointer, REDACTION, Value, json, marker,
};

use dendrer_kernel::commitment::SPENT;
use dendrer_kernel::step::{ROUNDED, WOULD_REFUSE};

use super::thread;
use crate::run::thread::{CHECKPOINT, WRITES, is_of_thread};
use crate::run::witness::ROW;

use super::{DiffChange, DiffHidden, DiffKind, DiffSides, STATE};

/// Members of the content that say where, when and how expensively something was done, or under which id: never what. The
/// commitments in `context`, which an import is checked against, are salted, and two of one value are not equal.
const NOT_COMPARED: [&str; 15] = [
    "context",
    "goal_id",
    "inputs",
    KEY,
    "metrics",
    OBSERVED_AT,
    ORIGIN,
    "pack_text",
    "proposed",
    REDACTION,
    ROUNDED,
    "seq",
    SPENT,
    "state_root",
    WOULD_REFUSE,
];

const CONFIDENCE: &str = "/intent/confidence";
const DELTA: &str = "/delta";

/// How contents are compared.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// The members of the state whose numbers are rounded, with their decimals.
    decimals: BTreeMap<String, u8>,
    /// What is left out.
    ignore: Vec<Ignored>,
    /// The one place that is asked for, if one is.
    asked: Option<Pointer>,
    /// What is left out because it only names a run or a message.
    left_out: RefCell<BTreeSet<Pointer>>,
    /// Whether a record of a thread was compared, so that states are those of threads.
    is_thread: Cell<bool>,
}

/// Names of members that only name a run or a message, say when it was, or what it cost: nothing of what an agent did. Beside the
/// messages of an import they lie in `intent.extra`, at the top in `meta`.
const OWN: [&str; 43] = [
    "checkpoint_id",
    "conversation_id",
    "created",
    "created_at",
    "date",
    "duration",
    "duration_ms",
    "elapsed",
    "elapsed_ms",
    "end_time",
    "ended_at",
    "finished_at",
    "id",
    "latency",
    "latency_ms",
    "message_id",
    "msg_id",
    "parent_id",
    "request_id",
    "response_id",
    "run",
    "run_id",
    "run_name",
    "session",
    "session_id",
    "span_id",
    "start_time",
    "started_at",
    "thread_id",
    "time",
    "timestamp",
    "token_usage",
    "tool_call_id",
    "trace_id",
    "ts",
    "updated_at",
    "usage",
    "usage_metadata",
    "uuid",
    "created_ms",
    "observed_at",
    "call_id",
    "step_id",
];

/// Where such members lie.
const OWNERS: [&[&str]; 5] = [
    &["intent", "extra"],
    &["intent", "extra", "response_metadata"],
    &["intent", "step"],
    &["intent"],
    &["meta"],
];

/// Members of the metadata of a run that are the header of its chain.
const OF_CHAIN: [&str; 5] = ["chain", "chain_newline", "chain_row", "context", "exact"];

/// Whether a member only names a run or a message. In an intent that is the text of a row, which has the hashes and the id of its step.
fn is_own(owner: &[&str], name: &str) -> bool {
    match owner {
        ["intent"] => name == ROW,
        ["meta"] => name == "name" || OF_CHAIN.contains(&name) || OWN.contains(&name),
        _ => OWN.contains(&name),
    }
}

/// A place that is left out.
#[derive(Debug)]
struct Ignored {
    place: Pointer,
    /// Whether anything was there to be left out, so that whoever misspells a place is told.
    met: Cell<bool>,
}

impl Ignored {
    /// Takes what stands here out of a value that stands so many steps below where places begin.
    fn cut_from(&self, value: &Value, depth: usize) -> Option<Value> {
        let tokens: Vec<_> = self.place.tokens().skip(depth).collect();
        if Pointer::of(tokens.iter().map(|token| &**token)).get(value).is_some() {
            self.met.set(true);
        }
        without(value, &tokens)
    }
}

impl Rules {
    /// Takes the rules of both packs. A member with a rule in each is rounded by the coarser one: both sides by one rule,
    /// or equal numbers could come out different.
    ///
    /// What only names a run or a message is left out, unless `path` asks for it.
    pub(super) fn new<'p>(
        packs: impl IntoIterator<Item = &'p Pack>,
        ignore: &[Pointer],
        path: Option<&Pointer>,
    ) -> Rules {
        let mut decimals: BTreeMap<String, u8> = BTreeMap::new();
        for field in packs.into_iter().flat_map(|pack| &pack.fields) {
            if let Some(own) = field.decimals {
                decimals
                    .entry(field.stored().to_string())
                    .and_modify(|known| *known = own.min(*known))
                    .or_insert(own);
            }
        }
        let ignored = |place: &Pointer| Ignored { place: place.clone(), met: Cell::new(false) };
        let ignore = ignore.iter().map(ignored).collect();
        Rules {
            decimals,
            ignore,
            asked: path.cloned(),
            left_out: RefCell::default(),
            is_thread: Cell::new(false),
        }
    }

    /// Compares states as those of threads, whose steps are compared without what places and names their records.
    pub(super) fn takes_threads(&self) {
        self.is_thread.set(true);
        let places = [CHECKPOINT, "metadata", WRITES].map(|name| Pointer::of(["intent", name]));
        self.left_out.borrow_mut().extend(places.into_iter().chain([Pointer::of([MESSAGES])]));
    }

    pub(super) fn ignores(&self, place: &Pointer) -> bool {
        let found = self.ignore.iter().find(|ignored| ignored.place.contains(place));
        found.inspect(|ignored| ignored.met.set(true)).is_some()
    }

    /// The places that are left out, and whether anything stood there.
    pub(super) fn ignored(&self) -> Vec<(Pointer, bool)> {
        self.ignore.iter().map(|ignored| (ignored.place.clone(), ignored.met.get())).collect()
    }

    /// The places that are left out because they only name a run or a message, where there was something.
    pub(super) fn left_out(&self) -> Vec<Pointer> {
        self.left_out.borrow().iter().cloned().collect()
    }

    /// Takes out what only names a run or a message.
    fn without_own(&self, content: Value) -> Value {
        let mut content = content;
        for owner in OWNERS {
            let mut value = Some(&content);
            for name in owner {
                value = value.and_then(|value| value.get(name));
            }
            let Some(members) = value.and_then(Value::as_object) else { continue };
            let places = members.iter().filter(|(name, _)| is_own(owner, name));
            let places = places.map(|(name, _)| Pointer::of(owner.iter().copied().chain([&**name])));
            let places: Vec<Pointer> = places
                .filter(|place| !self.asked.as_ref().is_some_and(|asked| place.contains(asked)))
                .collect();
            for place in places {
                let tokens: Vec<_> = place.tokens().collect();
                content = without(&content, &tokens).unwrap_or_else(Value::object);
                self.left_out.borrow_mut().insert(place);
            }
            // An intent that has the text of a row alone, or metadata with a header alone, say nothing else.
            if let [top] = owner
                && content.get(top) == Some(&Value::object())
            {
                content = without(&content, owner).unwrap_or_else(Value::object);
            }
        }
        content
    }

    /// Returns a state as it is compared. `number` tells the number of a tick that does not count markers: the kernel
    /// writes ticks into the state, and the same moment has another tick behind a marker.
    pub(super) fn state(&self, state: &Value, number: &dyn Fn(u64) -> u64) -> Value {
        let Value::Object(members) = state else { return state.clone() };
        let mut members = members.clone();
        for (name, decimals) in &self.decimals {
            if let Some(value) = members.get(name).and_then(|value| rounded(value, *decimals)) {
                members.set(name, value);
            }
        }
        if self.is_thread.get() {
            thread::state(&mut members, self.asked_in_state().as_ref());
        }
        let placed = |value: &Value| placed(value, number);
        if let Some(Value::Array(list)) = members.get("kernel_anomalies") {
            let list = Value::array(list.iter().map(placed));
            members.set("kernel_anomalies", list);
        }
        if let Some(policy @ Value::Object(_)) = members.get("policy") {
            let mut policy = policy.as_object().cloned().unwrap_or_default();
            if let Some(violated) = policy.get("violated").map(placed) {
                policy.set("violated", violated);
            }
            members.set("policy", Value::Object(policy));
        }
        self.cut(Value::Object(members), 1).unwrap_or_else(Value::object)
    }

    /// The one place of the state that is asked for.
    pub(super) fn asked_in_state(&self) -> Option<Pointer> {
        self.asked.as_ref()?.as_str().strip_prefix(STATE)?.parse().ok()
    }

    /// Takes what is ignored out of a value that stands so many steps below where places begin: 0 for content, 1 for a
    /// state. `None` if nothing is left.
    fn cut(&self, value: Value, depth: usize) -> Option<Value> {
        let of_state =
            |one: &&Ignored| depth == 0 || one.place.tokens().next().is_some_and(|first| first == "state");
        self.ignore.iter().filter(of_state).try_fold(value, |value, one| one.cut_from(&value, depth))
    }

    /// Returns a change of state as it is compared.
    fn writes(&self, ops: Vec<Op>) -> Vec<Op> {
        let mut kept: Vec<Op> = ops.into_iter().filter_map(|op| self.write(op)).collect();
        if is_any_order_the_same(&kept) {
            // A stable sort: what is done to one place keeps its order.
            kept.sort_by(|a, b| a.path.cmp(&b.path));
        }
        kept
    }

    fn write(&self, op: Op) -> Option<Op> {
        let place = in_state(&op.path);
        if self.ignores(&place) {
            return None;
        }
        let Some(mut value) = op.value else { return Some(op) };
        let by_kernel: &[&str] = match (op.action, op.path.as_str()) {
            (Action::Append, "/kernel_anomalies") => &["tick", "refusal"],
            (Action::Set, "/policy/violated") => &["tick"],
            _ => &[],
        };
        if let Value::Object(members) = &mut value {
            by_kernel.iter().for_each(|name| drop(members.remove(name)));
        }
        let decimals = op.path.as_str().strip_prefix('/').and_then(|name| self.decimals.get(name));
        if let Some(value_rounded) = decimals.and_then(|decimals| rounded(&value, *decimals)) {
            value = value_rounded;
        }
        let below = self.ignore.iter().filter(|one| op.action == Action::Set && place.contains(&one.place));
        let depth = place.tokens().count();
        for one in below {
            value = one.cut_from(&value, depth)?;
        }
        Some(Op { value: Some(value), ..op })
    }
}

/// The place of a place in the state, among those of a whole transition.
pub(super) fn in_state(path: &Pointer) -> Pointer {
    let text = format!("{STATE}{}", path.as_str());
    text.parse().expect("a pointer behind a name is one")
}

/// Returns a value without what stands at a path, and without objects that have nothing left. `None` if that is all of
/// it. An item of a list leaves a null, so that those behind it stay where they are.
fn without<T: AsRef<str>>(value: &Value, tokens: &[T]) -> Option<Value> {
    let (first, rest) = tokens.split_first()?;
    let first = first.as_ref();
    match value {
        Value::Object(members) => {
            let Some(inner) = members.get(first) else { return Some(value.clone()) };
            let mut members = members.clone();
            match without(inner, rest) {
                Some(inner) => members.set(first, inner),
                None => drop(members.remove(first)),
            }
            (!members.is_empty()).then_some(Value::Object(members))
        }
        Value::Array(list) => {
            let Some((at, inner)) = array_index(first).and_then(|at| Some((at, list.get(at)?))) else {
                return Some(value.clone());
            };
            let mut list = list.clone();
            list.set(at, without(inner, rest).unwrap_or(Value::Null));
            Some(Value::Array(list))
        }
        _ => Some(value.clone()),
    }
}

/// Puts a null at a path, making objects on the way. `None` if something else than an object stands there.
fn blanked<T: AsRef<str>>(value: Option<&Value>, tokens: &[T]) -> Option<Value> {
    let Some((first, rest)) = tokens.split_first() else { return Some(Value::Null) };
    let mut members = match value {
        None => Object::default(),
        Some(Value::Object(members)) => members.clone(),
        Some(_) => return None,
    };
    let inner = blanked(members.get(first.as_ref()), rest)?;
    members.set(first.as_ref(), inner);
    Some(Value::Object(members))
}

/// Rounds a number that arithmetic can touch.
fn rounded(value: &Value, decimals: u8) -> Option<Value> {
    let exact = value.as_f64()?;
    Number::from_f64(round_half_even(exact, decimals)).map(Value::Number)
}

/// Returns what the kernel wrote of a moment, with the number of the tick for the tick, and without the id of a refusal.
fn placed(value: &Value, number: &dyn Fn(u64) -> u64) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let mut members = members.clone();
    members.remove("refusal");
    if let Some(tick) = members.get("tick").and_then(Value::as_u64) {
        members.set("tick", Value::from(number(tick)));
    }
    Value::Object(members)
}

/// Tells whether a change comes to the same in any order of places: none lies inside another, and no item is taken out
/// of a list, which would move those behind it.
fn is_any_order_the_same(ops: &[Op]) -> bool {
    let places: BTreeSet<&str> = ops.iter().map(|op| op.path.as_str()).collect();
    let above = |text: &'_ str| -> bool {
        let ends = text.bytes().enumerate().skip(1).filter(|(_, byte)| *byte == b'/').map(|(at, _)| at);
        ends.into_iter().any(|at| places.contains(&text[..at]))
    };
    let moves = |op: &Op| {
        op.action == Action::Remove
            && op.path.tokens().last().is_some_and(|last| array_index(&last).is_some())
    };
    !ops.iter().any(moves) && !places.iter().any(|text| above(text))
}

/// What a record means, taken apart.
struct Meaning {
    content: Value,
    confidence: Option<Value>,
    writes: Vec<Op>,
}

impl Meaning {
    fn of(record: &Record, rules: &Rules) -> Meaning {
        let content = record.content();
        let mut members = content.as_object().cloned().unwrap_or_default();
        NOT_COMPARED.iter().for_each(|name| drop(members.remove(name)));
        members.set("author", Value::from(record.header().author.as_str()));
        if let Some(list) = members.get("anomalies").and_then(Value::as_array) {
            let by_kernel = record.header().author == Author::Kernel;
            let kept: Vec<Value> = list.iter().filter_map(|noted| anomaly(noted, by_kernel)).collect();
            match kept.is_empty() {
                true => drop(members.remove("anomalies")),
                false => members.set("anomalies", Value::array(kept)),
            }
        }
        // Who brought the value of an edge is no part of the frontier.
        if members.contains_key(EDGE) {
            members.remove("intent");
        }
        if let Some(action) = members.get("action").map(without_call_ids) {
            members.set("action", action);
        }
        let confidence = take_confidence(&mut members).filter(|_| !rules.ignores(&pointer(CONFIDENCE)));
        let mut delta = members.get("delta").and_then(|delta| Delta::from_value(delta).ok());
        if delta.is_some() {
            members.remove("delta");
        }
        if is_of_thread(record) {
            rules.is_thread.set(true);
            thread::content(&mut members, rules.asked.as_ref(), &mut rules.left_out.borrow_mut());
            let asked = rules.asked_in_state();
            delta = delta
                .map(|delta| Delta(delta.0.into_iter().map(|op| thread::op(op, asked.as_ref())).collect()));
        }
        // That with which a run begins; a transition has no member of this name.
        if let Some(state) = members.get("state") {
            let state = rules.state(state, &|tick| tick);
            members.set("state", state);
        }
        let content = rules.without_own(Value::Object(members));
        let content = rules.cut(content, 0).unwrap_or_else(Value::object);
        Meaning { content, confidence, writes: rules.writes(delta.unwrap_or_default().0) }
    }
}

/// Returns what a marker wrote, as it is compared; `None` if it was erased or withheld.
pub(super) fn writes(marker: &Record, rules: &Rules) -> Option<Vec<Op>> {
    let delta = marker.body().value(DELTA)?;
    Some(rules.writes(Delta::from_value(&delta).ok()?.0))
}

fn pointer(text: &str) -> Pointer {
    text.parse().expect("a pointer")
}

/// Returns a noted anomaly without what is of its moment alone; nothing is left of a note about the clock.
fn anomaly(noted: &Value, by_kernel: bool) -> Option<Value> {
    if noted.get("kind").and_then(Value::as_str) == Some("clock_went_back") {
        return None;
    }
    let mut noted = noted.clone();
    if let (Value::Object(members), true) = (&mut noted, by_kernel) {
        members.remove("refusal");
    }
    Some(noted)
}

/// Returns an action without the ids that pair its calls with their results: whoever answers makes them up anew.
fn without_call_ids(action: &Value) -> Value {
    let Value::Object(members) = action else { return action.clone() };
    let mut members = members.clone();
    members.remove("call_id");
    if let Some(calls) = members.get("calls").and_then(Value::as_array) {
        let bare = |call: &Value| without(call, &["call_id"]).unwrap_or_else(Value::object);
        let calls = Value::array(calls.iter().map(bare));
        members.set("calls", calls);
    }
    Value::Object(members)
}

/// Takes the confidence out of the intent, rounded. An intent of a confidence alone is removed with it.
fn take_confidence(members: &mut Object) -> Option<Value> {
    let mut intent = members.get("intent")?.as_object()?.clone();
    let confidence = intent.remove("confidence")?;
    match intent.is_empty() {
        true => drop(members.remove("intent")),
        false => members.set("intent", Value::Object(intent)),
    }
    Some(rounded(&confidence, CONFIDENCE_DECIMALS).unwrap_or(confidence))
}

fn is_compared(place: &Pointer) -> bool {
    !place.tokens().next().is_some_and(|first| NOT_COMPARED.contains(&&*first))
}

/// Tells whether two transitions of one type are the same, text by text. Most are, and need not be taken apart.
fn are_same_bytes(a: &Record, b: &Record) -> bool {
    fn fields(record: &Record) -> Vec<&Field> {
        record.body().fields().iter().filter(|field| is_compared(&field.pointer)).collect()
    }
    let (x, y) = (fields(a), fields(b));
    a.header().author == b.header().author
        && x.len() == y.len()
        && x.iter().zip(y).all(|(x, y)| {
            let (left, right) = (a.body().text(x), b.body().text(y));
            // Equal markers without a tag may replace two secrets.
            let is_open = |text: &[u8]| memchr::memmem::find(text, b"redacted").is_some();
            x.pointer == y.pointer && left.is_some_and(|text| !is_open(text)) && left == right
        })
}

/// Lists what is compared of a record and cannot be read any more.
fn closed(record: &Record, rules: &Rules) -> Vec<Pointer> {
    let body = record.body();
    let closed = body.fields().iter().filter(|field| body.text(field).is_none());
    let places =
        closed.map(|field| &field.pointer).filter(|place| is_compared(place) && !rules.ignores(place));
    // Whatever was written, nobody looks at the state.
    places.filter(|place| place.as_str() != DELTA || !rules.ignores(&pointer(STATE))).cloned().collect()
}

/// What came out for a pair.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) changes: Vec<DiffChange>,
    pub(super) hidden: Vec<DiffHidden>,
}

/// Compares two records of one type.
pub(super) fn compare(a: &Record, b: &Record, rules: &Rules) -> Found {
    if are_same_bytes(a, b) {
        return Found::default();
    }
    let (mut x, mut y) = (Meaning::of(a, rules), Meaning::of(b, rules));
    let hidden = hide(&mut x, &mut y, &closed(a, rules), &closed(b, rules));
    let change = |found: Difference| DiffChange {
        path: found.path,
        kind: DiffKind::Semantic,
        sides: DiffSides::Values(found.left, found.right),
    };
    let compared = marker::compare(&x.content, &y.content);
    let mut changes: Vec<DiffChange> = compared.differences.into_iter().map(change).collect();
    let (wrote, open) = compare_writes(x.writes, y.writes);
    changes.extend(wrote);
    let mut hidden = hidden;
    hidden.extend(compared.open.into_iter().chain(open).map(DiffHidden::redacted));
    if x.confidence != y.confidence {
        let sides = DiffSides::Values(x.confidence, y.confidence);
        changes.push(DiffChange { path: pointer(CONFIDENCE), kind: DiffKind::Confidence, sides });
    }
    Found { changes, hidden }
}

/// Puts what is closed on one side out of sight on both, and names it.
fn hide(a: &mut Meaning, b: &mut Meaning, closed_a: &[Pointer], closed_b: &[Pointer]) -> Vec<DiffHidden> {
    let mut all: Vec<&Pointer> = closed_a.iter().chain(closed_b).collect();
    // What holds others comes first.
    all.sort_by_key(|place| (place.as_str().len(), place.as_str()));
    let mut places: Vec<Pointer> = Vec::new();
    for place in all {
        if places.iter().any(|known| known.contains(place)) {
            continue;
        }
        places.push(match place.as_str() {
            DELTA => {
                for side in [&mut *a, &mut *b] {
                    side.writes.clear();
                    // What is no delta was left where it stands.
                    side.content = without(&side.content, &["delta"]).unwrap_or_else(Value::object);
                }
                place.clone()
            }
            _ => {
                if place.contains(&pointer(CONFIDENCE)) {
                    (a.confidence, b.confidence) = (None, None);
                }
                blank_both(a, b, place)
            }
        });
    }
    let side = |place: &Pointer, closed: &[Pointer]| closed.iter().any(|closed| closed.overlaps(place));
    let hidden = places.into_iter().map(|path| DiffHidden {
        in_a: side(&path, closed_a),
        in_b: side(&path, closed_b),
        path,
        redacted: false,
    });
    hidden.collect()
}

/// Puts the same at a place on both sides. Where something else than an object stands on the way, that is as far as it
/// can be compared, so the place moves up to there.
fn blank_both(a: &mut Meaning, b: &mut Meaning, place: &Pointer) -> Pointer {
    let tokens: Vec<_> = place.tokens().collect();
    for end in (1..=tokens.len()).rev() {
        let blank = |side: &Meaning| blanked(Some(&side.content), &tokens[..end]);
        if let (Some(x), Some(y)) = (blank(a), blank(b)) {
            (a.content, b.content) = (x, y);
            return Pointer::of(tokens[..end].iter().map(|token| &**token));
        }
    }
    unreachable!("a member of content can be set")
}

/// Lists where two changes of state differ, place by place, and which places redacted values leave open.
fn compare_writes(a: Vec<Op>, b: Vec<Op>) -> (Vec<DiffChange>, Vec<Pointer>) {
    let is_open = |op: &Op| op.value.as_ref().is_some_and(marker::has_untagged);
    if a == b && !a.iter().any(is_open) {
        return Default::default();
    }
    let mut places: BTreeMap<Pointer, (Vec<Op>, Vec<Op>)> = BTreeMap::new();
    a.iter().for_each(|op| places.entry(op.path.clone()).or_default().0.push(op.clone()));
    b.iter().for_each(|op| places.entry(op.path.clone()).or_default().1.push(op.clone()));
    let (mut changes, mut open) = (Vec::new(), Vec::new());
    let mut is_same_at_each = true;
    for (path, (x, y)) in places {
        if x != y || x.iter().any(is_open) {
            let (found, left) = compare_writes_at(&in_state(&path), x, y);
            is_same_at_each &= found.is_empty();
            changes.extend(found);
            open.extend(left);
        }
    }
    if is_same_at_each && open.is_empty() && a != b {
        // The same is done to each place and in another order, which can come to something else.
        let sides = DiffSides::Writes(a, b);
        changes.push(DiffChange { path: pointer(STATE), kind: DiffKind::Semantic, sides });
    }
    (changes, open)
}

/// Values where both sides did no more than set them, operations elsewhere.
fn compare_writes_at(place: &Pointer, a: Vec<Op>, b: Vec<Op>) -> (Vec<DiffChange>, Vec<Pointer>) {
    let set = |ops: &[Op]| match ops {
        [] => Some(None),
        [op] if op.action == Action::Set => Some(op.value.clone()),
        _ => None,
    };
    let change = |path, sides| DiffChange { path, kind: DiffKind::Semantic, sides };
    match (set(&a), set(&b)) {
        (Some(Some(x)), Some(Some(y))) => {
            let found = marker::compare(&x, &y);
            let below = |path: &Pointer| pointer(&format!("{}{}", place.as_str(), path.as_str()));
            let changed = found.differences.into_iter();
            let changed = changed.map(|one| change(below(&one.path), DiffSides::Values(one.left, one.right)));
            (changed.collect(), found.open.iter().map(below).collect())
        }
        (Some(x), Some(y)) => (vec![change(place.clone(), DiffSides::Values(x, y))], Vec::new()),
        _ => compare_operations(place, a, b),
    }
}

/// Compares what was done at a place, where it is more than setting a value.
fn compare_operations(place: &Pointer, a: Vec<Op>, b: Vec<Op>) -> (Vec<DiffChange>, Vec<Pointer>) {
    let shape = |ops: &[Op]| ops.iter().map(|op| (op.action, op.path.clone())).collect::<Vec<_>>();
    let values = |ops: &[Op]| Value::array(ops.iter().map(|op| op.value.clone().unwrap_or(Value::Null)));
    let found = match shape(&a) == shape(&b) {
        true => marker::same(&values(&a), &values(&b)),
        false => Some(false),
    };
    match found {
        Some(true) => Default::default(),
        None => (Vec::new(), vec![place.clone()]),
        Some(false) => {
            let sides = DiffSides::Writes(a, b);
            (vec![DiffChange { path: place.clone(), kind: DiffKind::Semantic, sides }], Vec::new())
        }
    }
}

/// Returns the content digest of a transition: equal for equal meanings. Derived, kept nowhere, in no hash. `None` where
/// something that is compared cannot be read, so that it is equal to nothing.
pub(super) fn content_digest(record: &Record, rules: &Rules) -> Option<Digest> {
    if !closed(record, rules).is_empty() {
        return None;
    }
    let meaning = Meaning::of(record, rules);
    let type_name = record.header().type_name.as_ref().map(|name| name.to_string());
    let writes = Delta(meaning.writes).to_value();
    // A redacted part without a tag is equal to nothing.
    if marker::has_untagged(&meaning.content) || marker::has_untagged(&writes) {
        return None;
    }
    let value =
        Value::array([Value::from(type_name), meaning.content, Value::array(meaning.confidence), writes]);
    Some(Digest::of_parts(&[b"dendrer/content/v1\n", &json::to_vec(&value)]))
}
