//! Codes that are put on record, and the sentences that are shown for them (design, section 3).
//!
//! A record holds codes, numbers, places and values, and none of our sentences: a sentence is made when it is shown, so another
//! wording changes no id. A sealed reason is an object with a `cause`, a word of this module, and values; [`words`] makes the
//! sentence. Text of a module, a host or a caller is data, and is kept as `text`.
//!
//! Rule: every sentence about what is on record is made here, or by `Display` of an error that is not sealed; test
//! `no_sentence_is_sealed`, and `cargo run -p xtask -- altered`, which replays all vectors with other messages.

use std::fmt;

use dendrer_object::delta::{DeltaError, DeltaErrorKind};
use dendrer_object::{Code, Digest, Intent, Pointer, Value};

use crate::ontology::by;

/// A member that is not there.
pub const MISSING: &str = "missing";
/// A value that is null.
pub const NULL: &str = "null";
/// A value of another kind than the operation takes.
pub const KIND: &str = "kind";
/// A place of the state that is unknown.
pub const UNKNOWN: &str = "unknown";
/// A value that was erased, withheld, or never accepted.
pub const WITHHELD: &str = "withheld";
/// A value that the operation does not take.
pub const VALUE: &str = "value";
/// A value that is nested too deep.
pub const DEEP: &str = "deep";
/// A value, or the state after it, that is too large.
pub const LARGE: &str = "large";
/// More steps or writes than a transition may take.
pub const STEPS: &str = "steps";
/// An integer beyond 2^53-1 in a calculation.
pub const BIG_INTEGER: &str = "big_integer";
/// A result beyond 64 bits.
pub const OVERFLOW: &str = "overflow";
/// A result that is no finite number.
pub const NOT_FINITE: &str = "not_finite";
/// A division by zero.
pub const DIVISION_BY_ZERO: &str = "division_by_zero";
/// A number with a fraction where an integer is needed.
pub const FRACTION: &str = "fraction";
/// An int and a double.
pub const MIXED: &str = "mixed";
/// A text that is no time, a time out of range, or times that are ordered as texts and have no such order.
pub const TIME: &str = "time";

/// A value that a computation met and could not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Met {
    /// A word of this module: what is put on record.
    pub word: &'static str,
    /// The place, as an expression writes it, if there is one.
    pub at: Option<String>,
    /// The sentence for the caller of this step. It is never put on record.
    pub message: String,
}

impl Met {
    pub(crate) fn new(word: &'static str, at: &Pointer, message: String) -> Met {
        Met { word, at: Some(at.dotted()), message }
    }

    /// Names the part that met it.
    pub(crate) fn within(self, part: &str) -> Met {
        Met { message: format!("{part}: {}", self.message), ..self }
    }

    /// Returns the members that are put on record.
    pub fn sealed(&self) -> Vec<(&'static str, Value)> {
        let at = self.at.as_deref().map(|at| ("at", Value::from(at)));
        [("met", Value::from(self.word))].into_iter().chain(at).collect()
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<String> for Met {
    fn from(message: String) -> Met {
        Met { word: VALUE, at: None, message }
    }
}

/// Makes what is put on record: a cause with its values.
pub fn fact(cause: &str, values: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::record([("cause", Value::from(cause))].into_iter().chain(values))
}

/// Adds the code under which `dendrer explain` knows it.
pub(crate) fn with_code(sealed: Value, code: Code) -> Value {
    let mut members = sealed.as_object().cloned().unwrap_or_default();
    members.set("code", Value::from(code));
    Value::Object(members)
}

/// Returns what is put on record of a delta that does not fit.
pub(crate) fn of_delta(error: &DeltaError) -> Value {
    let found = |kind: &'static str| vec![("found", Value::from(kind))];
    let (cause, mut values) = match &error.why {
        DeltaErrorKind::Shape => ("delta_shape", Vec::new()),
        DeltaErrorKind::Path => ("delta_path", Vec::new()),
        DeltaErrorKind::Missing => ("delta_missing", Vec::new()),
        DeltaErrorKind::TagName => ("delta_tag", Vec::new()),
        DeltaErrorKind::NotContainer(kind) => ("delta_no_members", found(kind)),
        DeltaErrorKind::NotArray(kind) => ("delta_no_list", found(kind)),
        DeltaErrorKind::NotNumber(kind) => ("delta_no_number", found(kind)),
        DeltaErrorKind::NotDecimal(kind) => ("delta_no_decimal", found(kind)),
        DeltaErrorKind::Overflow => ("delta_overflow", Vec::new()),
        _ => ("delta_deep", Vec::new()),
    };
    values.extend(error.index.map(|index| ("operation", Value::from(index as u64))));
    values.extend(error.path.as_ref().map(|path| ("path", Value::from(path.as_str()))));
    fact(cause, values)
}

/// Returns the sentence for what is on record: a refusal's `reason`, an anomaly, or what is wrong with a field. Without a cause
/// that is known here, the `text` that a caller gave, or nothing.
pub fn words(sealed: &Value) -> Option<String> {
    let text = |name: &str| sealed.get(name).and_then(Value::as_str);
    let known = text("cause").and_then(|cause| sentence(cause, sealed));
    known.or_else(|| text("text").map(str::to_owned)).or_else(|| {
        let kind = text("kind")?;
        NOTES.iter().find(|(known, _)| *known == kind).map(|(_, note)| (*note).to_owned())
    })
}

/// Returns the sentence for a fact of this module: the `Display` of an error whose fact has all that its sentence needs.
pub(crate) fn told(sealed: &Value) -> String {
    words(sealed).unwrap_or_default()
}

/// Makes the sentence on a refusal from its content. The fault of a line that is no intent shows in the line itself.
pub fn refused(content: &Value) -> Option<String> {
    let reason = content.get("reason")?;
    let is_line = reason.get("cause").and_then(Value::as_str) == Some("schema_mismatch");
    let error = content
        .get("line")
        .filter(|line| is_line && line.get("step").is_none())
        .and_then(|line| Intent::from_value(line, None).err());
    error.map(|error| error.message).or_else(|| words(reason))
}

/// Sentences by cause. `{name}` is a value on record, `{name:form}` a value in a form of [`Shown::form`].
const SENTENCES: &[(&str, &str)] = &[
    ("runtime_only", "{type} is written by the runtime, not by {author:by}"),
    ("author_not_given", "this line speaks for {author:by}, and only {may:by} may write here"),
    ("effect", "the pack says of {tool} that it is {declared}, and the line says {said}"),
    ("forged_type", "{type} cannot be proposed: only the {writer} writes it"),
    ("member_not_yours", "{member} is written by the kernel and the runtime, not by {author:by}"),
    ("user_not_given", "user names the user who writes a line, and this one is by {author:by}"),
    ("no_result_here", "result belongs to an action.result"),
    ("metric", "{metric} among the metrics is a number of 0 or more"),
    ("no_decision", "a policy.decision has a decision: allow, deny or escalate"),
    (
        "reserved_name",
        "{name} is the name under which the {name} writes; another agent cannot be called that",
    ),
    (
        "forged_author",
        "{type} is not yours to propose as the {author}: only agents and their runtime propose",
    ),
    ("lacks", "{contract} requires for {type} what the state does not have: {lacks}"),
    ("field", "{name} ({why:words})"),
    ("field_unknown", "it is not known"),
    ("field_missing", "it is not there"),
    ("field_null", "it is null"),
    ("field_kind", "it is {found:article}, and must be {wanted}"),
    ("field_unknown_in_source", "it is not known in the source"),
    ("field_differs", "must match"),
    ("field_redacted", "must match, and is redacted without a tag to compare"),
    ("rule_false", "the rule does not hold"),
    ("rule_unjudged", "the rule cannot be judged: {:met}"),
    ("rule_too_long", "the rule takes too many steps"),
    ("not_writer", "{path} is written by {writers:or}, and this is {type} by {author:by}"),
    ("violates", "it would violate {violations:ids}"),
    ("unjudged", "it cannot be judged: {rules:unjudged}"),
    ("commitment_list", "{path} is not what its name says"),
    ("commitment_name", "{path} uses a name that is not declared"),
    ("commitment_id_used", "{item} is the id of something else by {author} since tick {tick}"),
    ("commitment_address", "{item} ends like an address of another author and is no id"),
    ("commitment_rank", "{commitments} cannot be closed by this author: its owner has a higher rank"),
    ("commitment_violated", "it violates {commitments}"),
    ("commitment_scope", "it is outside of the scope of {commitments}"),
    ("scope_tool", "it is outside of the scope of {commitments}: {tool} is not among its tools"),
    ("scope_file", "it is outside of the scope of {commitments}: {file:file} ({at}) is not among its files"),
    (
        "scope_no_file",
        "it is outside of the scope of {commitments}: no file found to judge in the call of {tool}",
    ),
    ("contract_ended", "the contract {commitments} was {how} at {run}@{tick}"),
    ("contract_over", "the contract {commitments} is over: its time has passed"),
    ("contract_unreadable", "the contract {commitments} is {how} in {run}, so it permits no call"),
    ("contract_budget", "the budget of the contract {commitments} is used up: {budget:budget}"),
    ("commitment_support", "it relies on what no longer stands: {commitments}"),
    ("delegate_rejected", "the result of {child} is not accepted: {commitments}"),
    ("commitment_unjudged", "it cannot be judged against {rules:unjudged}"),
    ("ungoverned", "the pack says nothing about {type}, and at stage 3 nothing else is committed"),
    ("undeclared_tool", "the pack declares no tool {tool}, so nothing says what it does to the world"),
    ("unnamed_tool", "a call does not name its tool, so nothing says what it does to the world"),
    ("denied", "the same call was denied or escalated at tick {tick}, and no decision has allowed it since"),
    ("finer_than_declared", "it adds a number to {paths} that is finer than the decimals of the field"),
    ("tool_beside_calls", "an action has one tool or a list of calls, and this one has both"),
    ("look_alike", "names look like others, or mix scripts: {names:alike}"),
    ("kernel_path", "{path} is written by the kernel; a delta cannot change it"),
    (
        "counters_path",
        "{path} cannot be written: state.counters stands beside the state; choose another name",
    ),
    ("kernel_note", "an anomaly of kind {anomaly} is noted by the kernel alone"),
    (
        "proposed_delta",
        "{reducer} changes the state by the rules of the pack; an intent cannot bring a delta of its own",
    ),
    ("reserved_path", "{path} cannot be written by a reducer: it is the kernel's"),
    ("module_failed", "module {module:digest}: {text}"),
    ("host_failed", "{text}"),
    (
        "not_deterministic",
        "the reducer gave two different changes for the same state and transition: {first} and {second}",
    ),
    ("no_contract", "the {side} has no contract for {type}, so nothing says what an import of it needs"),
    ("contracts_differ", "contracts differ: source {source:contract}, target {target:contract}"),
    ("no_context", "the source holds no context hash: contracts are enforced from stage 2 on"),
    ("not_enforced", "the target enforces no contract: contracts are enforced from stage 2 on"),
    ("would_violate", "it would violate {predicates} in the target"),
    (
        "context_hidden",
        "the context hash of the source does not hold: a value that it binds was erased or withheld",
    ),
    ("context_differs", "the context hash of the source does not hold: it is not that of the source state"),
    ("context_violation", "{type} was justified by {fields}; the target has not the same"),
    ("no_recorded_answer", "no recorded answer for call {call} of tick {tick} to {tool}"),
    ("extension_refused", "the extension does not check: {codes}"),
    ("delta_path", "the path is a JSON pointer below the state, like \"/risk_score\""),
    ("delta_missing", "there is nothing at this path"),
    ("delta_tag", "a name with one `$` in front belongs to tagged values; a user's own is stored with two"),
    ("delta_no_members", "a {found} has no members"),
    ("delta_no_list", "append needs an array, and there is a {found}"),
    ("delta_no_number", "add needs two numbers within 2^53-1, and there is a {found}"),
    ("delta_no_decimal", "{path} is a field with decimals: it takes a number or null, and not a {found}"),
    ("delta_overflow", "the sum is not a number"),
    ("delta_deep", "the state would be nested too deep"),
];

/// Values of what is on record, as a sentence shows them.
struct Shown<'v>(&'v Value);

impl Shown<'_> {
    fn text(&self, name: &str) -> String {
        match self.0.get(name) {
            Some(Value::String(text)) if name == "path" => {
                text.parse::<Pointer>().map_or_else(|_| text.to_string(), |path| path.dotted())
            }
            Some(Value::String(text)) => text.to_string(),
            Some(Value::Array(list)) => {
                let items = list.iter().map(|item| match item.as_str() {
                    Some(text) => text.to_owned(),
                    None => words(item).unwrap_or_else(|| item.to_string()),
                });
                items.collect::<Vec<_>>().join(", ")
            }
            Some(value) => value.to_string(),
            None => "?".to_owned(),
        }
    }

    fn digest(&self, name: &str) -> String {
        let text = self.text(name);
        text.parse::<Digest>().map_or(text, |digest| digest.short())
    }

    fn items(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.0.get(name).and_then(Value::as_array).into_iter().flat_map(|list| list.iter())
    }

    /// Lists the ids of what is on record, each with a remark.
    fn ids(&self, name: &str, remark: impl Fn(&Value) -> String) -> String {
        let shown =
            self.items(name).filter_map(|one| Some(one.get("id")?.as_str()?.to_owned() + &remark(one)));
        shown.collect::<Vec<_>>().join(", ")
    }

    /// Lists what is used of each limit.
    fn budget(&self, name: &str) -> String {
        let limits = self.0.get(name).and_then(Value::as_object).into_iter().flat_map(|limits| limits.iter());
        let each = limits.map(|(name, pair)| match pair.as_array() {
            Some(pair) => {
                let (used, limit) = (pair.get(0).cloned(), pair.get(1).cloned().unwrap_or(Value::Null));
                match used.filter(|used| *used != Value::Null) {
                    Some(used) => format!("{name} {used} of {limit}"),
                    None => format!("{name} not stated of {limit}"),
                }
            }
            None => name.to_string(),
        });
        each.collect::<Vec<_>>().join(", ")
    }

    /// Returns a value in the form that a sentence asks for.
    fn form(&self, name: &str, form: &str) -> String {
        let texts = || self.items(name).filter_map(Value::as_str);
        match form {
            "by" if self.0.get(name).is_some_and(|value| value.as_array().is_some()) => {
                texts().map(writer).collect::<Vec<_>>().join(" or ")
            }
            "by" => writer(&self.text(name)),
            "or" => texts().collect::<Vec<_>>().join(" or "),
            "file" => match &*self.text(name) {
                "" => "a value that is no text".to_owned(),
                file => file.to_owned(),
            },
            "budget" => self.budget(name),
            "ids" => self.ids(name, |_| String::new()),
            "alike" => self.ids(name, |one| match one.get("like").and_then(Value::as_str) {
                Some(like) => format!(" (like {like})"),
                None => String::new(),
            }),
            "unjudged" => self.ids(name, |rule| format!(" ({})", met(rule))),
            "met" => met(self.0),
            "words" => self.0.get(name).and_then(words).unwrap_or_default(),
            "article" => article(&self.text(name)),
            "digest" => self.digest(name),
            "contract" => self.0.get(name).map(contract).unwrap_or_default(),
            _ => self.text(name),
        }
    }

    fn filled(&self, mut sentence: &str) -> String {
        let mut out = String::new();
        while let Some((before, (place, after))) =
            sentence.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            let (name, form) = place.split_once(':').unwrap_or((place, ""));
            out.extend([before, &self.form(name, form)]);
            sentence = after;
        }
        out + sentence
    }
}

fn sentence(cause: &str, sealed: &Value) -> Option<String> {
    let shown = Shown(sealed);
    let has = |name: &str| sealed.get(name).is_some();
    let listed = || Some(SENTENCES.iter().find(|(known, _)| *known == cause)?.1);
    let sentence = match cause {
        "unknown_type" if has("near") => "there is no transition type {type}; did you mean {near}?",
        "unknown_type" => "there is no transition type {type}",
        "schema_mismatch" => match &*shown.text("path") {
            "" => "the line is no intent",
            path if path.starts_with("step") => {
                "the line is no step: {path} is missing, or its value is none that it can have"
            }
            path if path.starts_with("links[") && path.ends_with(".hash") => {
                "{path}: a line merges transitions of its own run alone, and this record is none of them"
            }
            path if path == "intent.merge"
                || path.starts_with("intent.merge.")
                || path.starts_with("intent.merge[") =>
            {
                "the line is no intent: {path} is no way to merge agents; it is `strategy`, or `keys` with units like memory.x, each manual, lww, confidence or policy"
            }
            _ => "the line is no intent: {path} is not what its name says",
        },
        "rule_failed" if has("rule") && has("step") => "rule {rule}, step {step}: {:met}",
        "rule_failed" if has("rule") => "rule {rule}: {:met}",
        "rule_failed" => "the rules: {:met}",
        // Its braces are of the example.
        "delta_shape" => return Some(of_delta_operation(&shown, DELTA_SHAPE.to_owned())),
        _ => listed()?,
    };
    let said = shown.filled(sentence);
    Some(if cause.starts_with("delta_") { of_delta_operation(&shown, said) } else { said })
}

const DELTA_SHAPE: &str = "a delta is a list of operations like {\"set\":\"/path\",\"value\":1}";

/// Names the operation of a delta that does not fit.
fn of_delta_operation(shown: &Shown<'_>, why: String) -> String {
    match (shown.0.get("operation"), shown.0.get("path")) {
        (Some(at), Some(_)) => format!("delta operation {at} at {}: {why}", shown.text("path")),
        (Some(at), None) => format!("delta operation {at}: {why}"),
        _ => why,
    }
}

/// Names an author in a sentence, from the word on record.
fn writer(word: &str) -> String {
    word.parse().map_or_else(|_| word.to_owned(), |author| by(&author))
}

/// Says what a computation met, from what is on record.
fn met(sealed: &Value) -> String {
    let at = sealed.get("at").and_then(Value::as_str);
    let it = at.unwrap_or("a value");
    match sealed.get("met").and_then(Value::as_str).unwrap_or(VALUE) {
        MISSING => format!("{it} is missing"),
        NULL => format!("{it} is null"),
        KIND => format!("{it} is of a kind that is not taken here"),
        UNKNOWN => format!("{it} is unknown"),
        WITHHELD => format!("{it} is not there to be read"),
        DEEP => format!("{it} is nested too deep"),
        LARGE => format!("{it} is too large"),
        STEPS => "the rules take more steps than a transition may".to_owned(),
        BIG_INTEGER => "an integer beyond 2^53-1 can be compared but not calculated with".to_owned(),
        OVERFLOW => "the result is beyond 64 bits".to_owned(),
        NOT_FINITE => "the result is not a finite number".to_owned(),
        DIVISION_BY_ZERO => "division by zero".to_owned(),
        FRACTION => "a number with a fraction where an integer is needed".to_owned(),
        MIXED => "an int and a double do not mix".to_owned(),
        _ => format!("{it} is not taken here"),
    }
}

/// A kind of value with its article.
fn article(kind: &str) -> String {
    match kind {
        "null" => kind.to_owned(),
        _ if kind.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

/// A contract as an import compares it.
fn contract(side: &Value) -> String {
    let shown = Shown(side);
    let name = if side.get("contract").is_some() { shown.text("contract") } else { "none".to_owned() };
    match side.get("pack") {
        None => name,
        Some(Value::Null) => format!("{name} of pack none"),
        Some(_) => format!("{name} of pack {}", shown.digest("pack")),
    }
}

/// Sentences of notes of the kernel or of an import that have a kind alone.
pub(crate) const NOTES: [(&str, &str); 25] = [
    ("clock_went_back", "the clock went back; the time of the record before it is kept"),
    ("message_unreadable", "this item is not a message that can be read"),
    ("message_without_role", "this message does not say who speaks"),
    ("value_too_large", "a value has more than 64 MiB, and was left out"),
    ("value_too_deep", "a value is nested beyond 128 levels, and was left out"),
    ("source_cut", "the source ends inside this item"),
    ("call_unreadable", "a call cannot be read"),
    ("call_without_result", "a call has no result"),
    ("result_without_call", "a result answers no open call"),
    ("result_ambiguous", "a result may answer several open calls"),
    ("call_contested", "a result may answer this call or another one of its id"),
    ("status_unknown", "the status of a result cannot be read"),
    ("message_outside", "messages outside the list are left out"),
    ("result_name_differs", "a result names another tool than its call"),
    ("call_id_not_text", "the id of a call is not text"),
    ("arguments_not_json", "the arguments are not JSON; they stay text"),
    ("call_id_repeated", "a call has the id of one that is still open"),
    ("parts_not_read", "content in parts is kept and not read"),
    ("not_read", "a part of the source is in no table of its format"),
    ("parent_missing", "the parent of this item is not in the source"),
    ("parent_cycle", "the parents of this item make a circle"),
    ("branches_left_out", "the oldest branches of the source are left out"),
    ("repeated", "an item of this id is on record already"),
    ("ordered_by_time", "the order of the items is that of their times"),
    ("no_order", "an item has no time; it comes after the one before it in the file"),
];
