//! Intents: what an agent, or the program that runs it, asks to commit (dendrer paper 3.2, appendix B).
//!
//! An intent is data. Nothing here judges it; that is the kernel's part.
//!
//! Rule: no member is dropped. An unknown one is refused by name.

pub mod line;

use std::fmt;
use std::sync::Arc;

pub use line::{Effect, ForkType};

use crate::Code;
use crate::Timestamp;
use crate::delta::{Delta, DeltaError};
use crate::digest::Digest;
use crate::name::TypeName;
use crate::number::{Number, round_half_even};
use crate::pointer::Pointer;
use crate::record::{Author, LINKS_MAX, Link, Rel};
use crate::value::{Object, Value};
use line::{LineMember, LineRel, MEMBERS, PolicyWord, Take};

/// How many decimals of a confidence count (dendrer paper 3.3: `confidence_epsilon = 0.001`).
pub const CONFIDENCE_DECIMALS: u8 = 3;

/// The longest name of an agent or a goal, in bytes.
const ID_SIZE_MAX: usize = 256;

/// A proposal for the next transition of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// The type of the transition that is asked for.
    pub type_name: TypeName,
    /// The author: a model through its agent, or the program that runs the agents.
    pub author: Author,
    /// The agent it is for.
    pub agent: Arc<str>,
    /// The goal it serves.
    pub goal: Option<Arc<str>>,
    /// Everything else that is committed as it is: `intent`, `action`, `result`, `policy`, `metrics`,
    /// `anomalies`, `effect`, `fork_type`. Sorted; every value has the type that its name asks for.
    pub members: Vec<(Arc<str>, Value)>,
    /// The proposed change of state.
    pub delta: Option<Delta>,
    /// Edges to earlier records.
    pub links: Vec<Link>,
    /// Anomalies that the program which records noted beside it, such as a gap of an import. They are not the author's: a line that
    /// an agent writes has no way to bring one.
    pub noted: Vec<Value>,
    /// The tick that it was decided on; it is not sealed.
    pub base: Option<u64>,
    /// Places that were read for it; they are not sealed.
    pub reads: Vec<Pointer>,
}

/// Why a value is not an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentError {
    /// The code under which `dendrer explain` knows this error.
    pub code: Code,
    /// The member that is wrong, as a JSON pointer.
    pub path: String,
    /// The fault, as a sentence.
    pub message: String,
}

impl fmt::Display for IntentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for IntentError {}

fn error<T>(path: &str, message: impl Into<String>) -> Result<T, IntentError> {
    Err(IntentError { code: Code::E0209, path: path.to_owned(), message: message.into() })
}

/// The member of a transition that was proposed again, with the id of the record that was first (design, section 4).
pub const ORIGIN: &str = "origin";

/// The member with the time at which a repetition was first committed.
pub const AT: &str = "at";

/// The member of the request and the result of an edge of a graph: `path`, `index` and `asked`. `graph run` alone brings it.
pub const EDGE: &str = "edge";

/// The member of a record that says by which rules secrets were taken out of it, and how many of each kind: `rules` and `taken`.
/// The recorder alone brings it.
pub const REDACTION: &str = "redaction";

/// The member of the transition of a step with the step's type (witness-log paper 2.1). The recorder alone brings it.
pub const ACTION_TYPE: &str = "action_type";

/// The member of a result of a tool without an attestation: it came over a pipe, and has evidence or commitments. The recorder alone
/// brings it.
pub const UNATTESTED: &str = "unattested";

/// The member of a put or a write of a thread with the messages that it adds to the thread: who speaks, calls, results and usage. A
/// recorder of the runtime alone brings it.
pub const MESSAGES: &str = "messages";

/// The member of an imported transition with the time that its source states: RFC 3339 in UTC, without a zone where the source
/// names none. The importer alone brings it.
pub const OBSERVED_AT: &str = "observed_at";

/// The member of a line with the scope of its calls: commitments of other scopes are not asked about them. The recorder alone
/// brings it.
pub const SCOPE: &str = "scope";

/// The lists of a line with commitments: atoms of evidence, commitments, edges, and what is closed (CCAS paper).
pub const COMMITMENT_LISTS: [&str; 4] = ["evidence", "commitments", "edges", "closes"];

/// The member of a line with the tick that it was decided on. It is not sealed.
pub const BASE: &str = "base";

/// The member of a line with the places that were read for it, where agents record concurrently. It is not sealed.
pub const READS: &str = "reads";

/// The member of a line with its own name, once in a run. It is sealed.
pub const KEY: &str = "key";

/// Bytes of a key, at most.
const KEY_SIZE_MAX: usize = 200;

/// The members of the paper's event that the kernel sets.
const SET_BY_KERNEL: &[&str] = &[
    ORIGIN,
    UNATTESTED,
    SCOPE,
    REDACTION,
    ACTION_TYPE,
    MESSAGES,
    OBSERVED_AT,
    "tick",
    "ts",
    "run_id",
    "run",
    "state_before",
    "state_after",
    "state_root",
    "seq",
    "intent_context_hash",
    "contract",
    "chain_hash",
    "prev",
    "pack",
];

impl Intent {
    /// Makes an intent of a type, with nothing in it yet.
    pub fn new(type_name: TypeName, agent: &str) -> Intent {
        Intent {
            type_name,
            author: Author::Agent,
            agent: agent.into(),
            goal: None,
            members: Vec::new(),
            delta: None,
            links: Vec::new(),
            noted: Vec::new(),
            base: None,
            reads: Vec::new(),
        }
    }

    /// Says that the runtime writes this on the agent's behalf.
    pub fn by_runtime(mut self) -> Intent {
        self.author = Author::Runtime;
        self
    }

    /// Makes a person the author.
    pub fn by_user(mut self) -> Intent {
        self.author = Author::User;
        self
    }

    /// Adds a member that is committed as it is. Panics on a name that is not one of [`Intent::members`].
    pub fn with(mut self, name: &str, value: Value) -> Intent {
        assert!(line::kept().any(|known| known == name), "{name} is not a member of an intent");
        self.members.retain(|(known, _)| **known != *name);
        self.members.push((name.into(), value));
        self.members.sort_by(|a, b| a.0.cmp(&b.0));
        self
    }

    /// Says of which record it is a repetition, unless it says so already: the record that was first. It has no key of its own.
    pub fn of_origin(mut self, first: Digest) -> Intent {
        self.members.retain(|(name, _)| &**name != KEY);
        if self.member(ORIGIN).is_none() {
            self.members.push((ORIGIN.into(), Value::from(first)));
            self.members.sort_by(|a, b| a.0.cmp(&b.0));
        }
        self
    }

    /// Keeps the time at which it was first committed, for rules that ask for it (design, 14.1): a repetition is judged by that time.
    pub fn of_time(mut self, ts: Timestamp) -> Intent {
        if self.member(AT).is_none() {
            self.members.push((AT.into(), Value::from(ts.to_string().as_str())));
            self.members.sort_by(|a, b| a.0.cmp(&b.0));
        }
        self
    }

    /// Adds a member that a recorder brings and no line can: [`EDGE`], [`REDACTION`], [`ACTION_TYPE`], [`MESSAGES`], [`SCOPE`],
    /// [`OBSERVED_AT`] or [`UNATTESTED`]. Panics on another name.
    pub fn carrying(mut self, name: &str, value: Value) -> Intent {
        assert!(
            [EDGE, REDACTION, ACTION_TYPE, MESSAGES, OBSERVED_AT, SCOPE, UNATTESTED].contains(&name),
            "{name} is not brought by a recorder"
        );
        self.members.retain(|(known, _)| **known != *name);
        self.members.push((name.into(), value));
        self.members.sort_by(|a, b| a.0.cmp(&b.0));
        self
    }

    /// Sets the proposed change of state.
    pub fn with_delta(mut self, delta: Delta) -> Intent {
        self.delta = Some(delta);
        self
    }

    /// Returns a member that is committed as it is.
    pub fn member(&self, name: &str) -> Option<&Value> {
        self.members.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Reads an intent. `agent` is whose it is where the value does not say.
    pub fn from_value(value: &Value, agent: Option<&str>) -> Result<Intent, IntentError> {
        let Some(object) = value.as_object() else {
            return error("", format!("an intent is an object, and this is {}", value.described()));
        };
        for (name, _) in object.iter() {
            check_name(name)?;
        }
        let type_name = match one_of(object, "type", "transition_type")? {
            Some(value) => text(value, "/type", 128)?.parse::<TypeName>(),
            None => return error("/type", "an intent names its transition type, like \"observation.add\""),
        };
        let type_name = type_name.map_err(|error| IntentError {
            code: error.code(),
            path: "/type".into(),
            message: error.to_string(),
        })?;
        let agent = match (one_of(object, "agent", "agent_id")?, agent) {
            (Some(value), _) => text(value, "/agent", ID_SIZE_MAX)?,
            (None, Some(agent)) => agent.into(),
            (None, None) => "agent".into(),
        };
        let goal =
            one_of(object, "goal", "goal_id")?.map(|value| text(value, "/goal", ID_SIZE_MAX)).transpose()?;
        // The kernel judges a claim to be the kernel, and keeps the claim on record.
        let author = match object.get("author") {
            None => Author::Agent,
            Some(value) => match value.as_str().and_then(|text| text.parse().ok()) {
                Some(author) => author,
                None => {
                    return error(
                        "/author",
                        format!("an intent is written by \"agent\", \"runtime\" or \"user\", not {value}"),
                    );
                }
            },
        };
        let delta = object.get("delta").map(read_delta).transpose()?;
        let links = object.get("links").map(read_links).transpose()?.unwrap_or_default();
        let mut members = read_members(object)?;
        if let Some(value) = object.get(KEY) {
            members.push((KEY.into(), Value::String(text(value, "/key", KEY_SIZE_MAX)?)));
            members.sort_by(|a, b| a.0.cmp(&b.0));
        }
        let base = match object.get(BASE).map(Value::as_u64) {
            None => None,
            Some(Some(tick)) => Some(tick),
            Some(None) => return error("/base", "this is the tick that the line was decided on, like 12"),
        };
        let reads = object.get(READS).map(read_places).transpose()?.unwrap_or_default();
        Ok(Intent { type_name, author, agent, goal, members, delta, links, noted: Vec::new(), base, reads })
    }
}

fn check_name(name: &str) -> Result<(), IntentError> {
    let known = MEMBERS.iter().map(|member| member.name);
    if known.clone().any(|known| known == name) {
        return Ok(());
    }
    let path = format!("/{}", crate::json::escape(name));
    if SET_BY_KERNEL.contains(&name) {
        return error(&path, "this is set by the kernel and cannot be proposed");
    }
    match crate::text::nearest(name, known) {
        Some(near) => error(&path, format!("an intent has no such member; did you mean {near:?}?")),
        None => {
            error(&path, "an intent has no such member; your own data belongs in intent, action or result")
        }
    }
}

fn one_of<'a>(object: &'a Object, short: &str, long: &str) -> Result<Option<&'a Value>, IntentError> {
    match (object.get(short), object.get(long)) {
        (Some(a), Some(b)) if a != b => {
            error(&format!("/{short}"), format!("{short} and {long} differ: {a} and {b}"))
        }
        (a, b) => Ok(a.or(b)),
    }
}

fn text(value: &Value, path: &str, size_max: usize) -> Result<Arc<str>, IntentError> {
    match value {
        Value::String(text) if !text.is_empty() && text.len() <= size_max => Ok(Arc::clone(text)),
        _ => error(path, format!("this is text of 1 to {size_max} bytes")),
    }
}

fn read_delta(value: &Value) -> Result<Delta, IntentError> {
    Delta::from_value(value).map_err(|delta: DeltaError| IntentError {
        code: delta.code(),
        path: delta.index.map_or("/delta".into(), |index| format!("/delta/{index}")),
        message: delta.why.to_string(),
    })
}

fn read_places(value: &Value) -> Result<Vec<Pointer>, IntentError> {
    let Some(items) = value.as_array() else { return error("/reads", "reads is a list of places") };
    let read = |(index, item): (usize, &Value)| {
        // A name with a slash or a star is quoted: without quotes it is meant for a path or a pattern, and guards nothing.
        let is_plain =
            |text: &&str| text.starts_with('/') || text.contains('"') || !text.contains(['/', '*']);
        let place = item.as_str().filter(is_plain).and_then(Pointer::from_place).and_then(Result::ok);
        place.map_or_else(
            || error(&format!("/reads/{index}"), "a place is a text like \"a.b\" or \"/a/b\", no pattern"),
            Ok,
        )
    };
    items.iter().enumerate().map(read).collect()
}

fn read_links(value: &Value) -> Result<Vec<Link>, IntentError> {
    let Some(items) = value.as_array() else { return error("/links", "links is a list") };
    // The kernel may add one of its own.
    if items.len() >= LINKS_MAX {
        return error("/links", format!("an intent has at most {} links", LINKS_MAX - 1));
    }
    let read = |(index, item): (usize, &Value)| {
        let rel = item.get("rel").and_then(Value::as_str).and_then(LineRel::from_word);
        let rel = rel.and_then(|rel| Rel::from_word(rel.as_str()));
        let hash = item.get("hash").and_then(Value::as_str).and_then(|hash| hash.parse().ok());
        match (rel, hash) {
            (Some(rel), Some(hash)) => Ok(Link { rel, hash }),
            _ => error(
                &format!("/links/{index}"),
                "a link is {\"rel\":\"caused_by\", \"evidence\" or \"merges\", \"hash\":\"sha256:...\"}",
            ),
        }
    };
    items.iter().enumerate().map(read).collect()
}

fn read_members(object: &Object) -> Result<Vec<(Arc<str>, Value)>, IntentError> {
    let mut members: Vec<(Arc<str>, Value)> = Vec::new();
    if let Some(intent) = read_intent(object)? {
        members.push(("intent".into(), intent));
    }
    for LineMember { name, take, .. } in MEMBERS {
        let Some(value) = object.get(name) else { continue };
        match (take, value) {
            (Take::Part | Take::Meaning | Take::Inside, _) => continue,
            (Take::List | Take::Texts | Take::Commitments, Value::Array(items)) if items.is_empty() => {
                continue;
            }
            (Take::Texts, Value::Array(items)) => {
                if let Some(at) = items.iter().position(|item| item.as_str().is_none_or(str::is_empty)) {
                    return error(&format!("/{name}/{at}"), "this is a text");
                }
            }
            (Take::Text, value) => {
                text(value, &format!("/{name}"), ID_SIZE_MAX)?;
            }
            (Take::Object, Value::Object(_)) | (Take::List | Take::Commitments, Value::Array(_)) => {}
            (Take::Words(words), value) if value.as_str().is_some_and(|text| words.contains(&text)) => {}
            (Take::Object, value) => {
                return error(&format!("/{name}"), format!("this is an object, not {}", value.described()));
            }
            (Take::Words(words), value) => {
                let words = words.join(", ");
                return error(&format!("/{name}"), format!("{name} is one of {words}, not {value}"));
            }
            (Take::List | Take::Texts | Take::Commitments, _) => {
                return error(&format!("/{name}"), format!("{name} is a list"));
            }
        }
        members.push(((*name).into(), value.clone()));
    }
    check_words_inside(&members)?;
    members.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(members)
}

/// Joins the paper's two spellings: confidence and notes beside the intent (3.1) or inside it (appendix B).
fn read_intent(object: &Object) -> Result<Option<Value>, IntentError> {
    let given = match object.get("intent") {
        None => None,
        Some(Value::Object(intent)) => Some(intent),
        Some(other) => return error("/intent", format!("this is an object, not {}", other.described())),
    };
    let mut others: Vec<(Arc<str>, Value)> = Vec::new();
    for LineMember { name, .. } in MEMBERS.iter().filter(|member| member.take == Take::Inside) {
        let Some(outside) = object.get(name) else { continue };
        match given.and_then(|given| given.get(name)) {
            Some(inside) if inside != outside => {
                return error(&format!("/{name}"), format!("this differs from /intent/{name}"));
            }
            Some(_) => {}
            None => others.push(((*name).into(), outside.clone())),
        }
    }
    let named = |(name, _): &&(Arc<str>, Value)| &**name == "confidence";
    let confidence = others.iter().find(named).map(|(_, value)| value);
    match confidence.or_else(|| given?.get("confidence")) {
        None | Some(Value::Null) => {}
        Some(Value::Number(number)) => {
            let in_range = number.as_f64().filter(|value| (0.0..=1.0).contains(value));
            let Some(value) = in_range else {
                return error(
                    "/intent/confidence",
                    format!("a confidence lies between 0 and 1, not at {number}"),
                );
            };
            // Quantized while it is written, so that later comparisons are comparisons of bytes.
            let rounded = Number::from_f64(round_half_even(value, CONFIDENCE_DECIMALS));
            let rounded = Value::Number(rounded.expect("a rounded number is finite"));
            others.retain(|(name, _)| &**name != "confidence");
            others.push(("confidence".into(), rounded));
        }
        Some(other) => return error("/intent/confidence", format!("a confidence is a number, not {other}")),
    }
    if others.is_empty() {
        return Ok(given.cloned().map(Value::Object));
    }
    // Made at once: a member that is set later makes a tree of the object.
    let given =
        given.into_iter().flat_map(Object::iter).map(|(name, value)| (Arc::clone(name), value.clone()));
    Ok(Some(Value::Object(given.chain(others).collect())))
}

fn check_words_inside(members: &[(Arc<str>, Value)]) -> Result<(), IntentError> {
    for (name, value) in members {
        match &**name {
            "action" => match (value.get("tool"), value.get("calls")) {
                (Some(Value::String(_)) | None, Some(Value::Array(_)) | None) => {}
                (Some(_), Some(Value::Array(_)) | None) => {
                    return error("/action/tool", "a tool is named by text");
                }
                (_, Some(_)) => return error("/action/calls", "calls is a list"),
            },
            "result" => match value.get("status") {
                None | Some(Value::String(_)) => {}
                Some(_) => return error("/result/status", "a status is text, like \"ok\" or \"error\""),
            },
            "policy" => match value.get("decision") {
                Some(word) if word.as_str().and_then(PolicyWord::from_word).is_none() => {
                    return error("/policy/decision", "a decision is allow, deny or escalate");
                }
                _ => {}
            },
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_door;

    fn read(text: &str) -> Result<Intent, String> {
        Intent::from_value(&parse_door(text.as_bytes()).unwrap(), Some("someone"))
            .map_err(|error| format!("{} {error}", error.code))
    }

    #[test]
    fn both_spellings_of_the_paper_give_the_same_intent() {
        let short = read(
            r#"{"type":"plan.update","agent":"p","goal":"g","confidence":0.64049,"uncertainty_notes":"n","intent":{"description":"d"}}"#,
        );
        let long = read(
            r#"{"transition_type":"plan.update","agent_id":"p","goal_id":"g","intent":{"description":"d","confidence":0.6404,"uncertainty_notes":"n"}}"#,
        );
        assert_eq!(short, long);
        let intent = short.unwrap();
        assert_eq!(
            intent.member("intent").unwrap().to_string(),
            r#"{"confidence":0.64,"description":"d","uncertainty_notes":"n"}"#
        );
        assert_eq!(&*read(r#"{"type":"plan.update"}"#).unwrap().agent, "someone");
    }

    #[test]
    fn what_is_not_an_intent_is_refused_by_name() {
        for (text, expected) in [
            ("[]", "E0209 an intent is an object, and this is an array"),
            ("{}", "E0209 /type: an intent names its transition type, like \"observation.add\""),
            (r#"{"type":"Plan"}"#, "E0210 /type: \"Plan\" is not a transition type"),
            (
                r#"{"type":"a","intnet":{}}"#,
                "E0209 /intnet: an intent has no such member; did you mean \"intent\"?",
            ),
            (r#"{"type":"a","tick":3}"#, "E0209 /tick: this is set by the kernel and cannot be proposed"),
            (r#"{"type":"a","confidence":2}"#, "E0209 /intent/confidence: a confidence lies between 0 and 1"),
            (r#"{"type":"a","confidence":NaN}"#, "E0209 /intent/confidence: a confidence is a number"),
            (r#"{"type":"a","confidence":1,"intent":{"confidence":0}}"#, "E0209 /confidence: this differs"),
            (r#"{"type":"a","delta":[{"set":"x","value":1}]}"#, "E0209 /delta/0: the path is a JSON pointer"),
            (r#"{"type":"a","author":"nobody"}"#, "E0209 /author: an intent is written by"),
            (
                r#"{"type":"a","effect":"maybe"}"#,
                "E0209 /effect: effect is one of host, read, idempotent_write",
            ),
            (r#"{"type":"a","policy":{"decision":"perhaps"}}"#, "E0209 /policy/decision: a decision is"),
            (r#"{"type":"a","action":{"tool":1}}"#, "E0209 /action/tool: a tool is named by text"),
            (r#"{"type":"a","links":[{"rel":"fork_of","hash":"x"}]}"#, "E0209 /links/0: a link is"),
            (r#"{"type":"a","agent":""}"#, "E0209 /agent: this is text of 1 to 256 bytes"),
            (r#"{"type":"a","agent":"x","agent_id":"y"}"#, "E0209 /agent: agent and agent_id differ"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.starts_with(expected), "{text}: {found}");
        }
    }
}
