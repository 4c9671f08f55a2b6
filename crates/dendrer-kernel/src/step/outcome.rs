//! The outcome of an intent, and the reasons for refusing it or for not beginning a run.

use std::sync::Arc;

use dendrer_object::record::{Author, Header, Kind, Record, SealError};
use dendrer_object::{Code, Intent, Pointer, TypeName, Value};

use super::line::{LINE, LineFault};
use super::version::KERNEL_VERSION;
use super::{Inputs, MemberFault, Prepared, RunState, Stage, draft, make_anomaly, seal};
use crate::commitment::CommitmentRefused;
use crate::contract::Lack;
use crate::ontology::{AuthorshipError, check_name, is_claimed};
use crate::predicate::Predicate;
use crate::reduce::ReduceError;
use crate::sealed::{Met, fact, told, with_code};
use crate::stopped::Stopped;

/// Bytes of the name of an agent, at most.
const AGENT_SIZE_MAX: usize = 256;

/// The outcome of an intent.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It is a transition now.
    Committed(Record),
    /// It is a transition now, and violates a `never` of the contract.
    Violated {
        /// The transition.
        record: Record,
        /// The `predicate.violation` behind it, and those behind that.
        violations: Vec<Record>,
    },
    /// It was turned down; the refusal is kept beside the run.
    Refused(Refused),
}

impl Outcome {
    /// The transition that the intent became, if it did.
    pub fn committed(&self) -> Option<&Record> {
        match self {
            Outcome::Committed(record) | Outcome::Violated { record, .. } => Some(record),
            Outcome::Refused(_) => None,
        }
    }

    /// Returns the names of the violations that it caused.
    pub fn violated(&self) -> Vec<Arc<str>> {
        let Outcome::Violated { violations, .. } = self else { return Vec::new() };
        let listed = violations.iter().filter_map(|record| record.body().value("/violations"));
        let ids = listed.flat_map(|listed| {
            let entries = listed.as_array().into_iter().flat_map(|listed| listed.iter());
            entries.filter_map(|entry| entry.get("id")?.as_str().map(Arc::from)).collect::<Vec<_>>()
        });
        ids.collect()
    }

    /// Every record that came of it, in the order in which they are committed.
    pub fn records(&self) -> Vec<&Record> {
        match self {
            Outcome::Committed(record) => vec![record],
            Outcome::Violated { record, violations } => [record].into_iter().chain(violations).collect(),
            Outcome::Refused(refused) => [&refused.refusal].into_iter().chain(&refused.anomaly).collect(),
        }
    }
}

/// An intent that was turned down.
#[derive(Debug, Clone)]
pub struct Refused {
    /// Why.
    pub reason: Reason,
    /// The record of it.
    pub refusal: Record,
    /// For a forged type, the `kernel.anomaly` that names it: the next transition of the run.
    pub anomaly: Option<Record>,
}

/// Why an intent gave no transition and no refusal. The head is the one before the intent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StepError {
    /// It does not fit a record.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The module that reduces was ended by a limit of its engine, and nothing on record may rest on that.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Why an intent was turned down.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{}", told(&self.sealed()))]
pub enum Reason {
    /// Its author may not write such a transition.
    #[error("{0}")]
    Authorship(#[from] AuthorshipError),
    /// A member is not its author's to write, or not what its name says.
    #[error("{0}")]
    Member(#[from] MemberFault),
    /// A line is no intent, or speaks for another author.
    #[error("{0}")]
    Line(#[from] LineFault),
    /// The state does not have what a contract of the pack requires for it.
    Contract {
        /// Name and version of the contracts.
        contract: String,
        /// The type.
        type_name: TypeName,
        /// The missing fields.
        lacks: Vec<Lack>,
    },
    /// The run is recorded at a stage where the pack gates all transitions, and it says nothing about this type.
    Ungoverned(TypeName),
    /// The run is recorded at that stage, and the pack does not declare the tool.
    UndeclaredTool(String),
    /// The run is recorded at that stage, and a call does not say which tool it is of.
    UnnamedTool,
    /// Its delta writes where only the kernel writes.
    KernelPath(Pointer),
    /// Its delta writes where expressions read the derived counters.
    Counters(Pointer),
    /// It carries an anomaly of a kind that only the kernel notes.
    KernelNote(String),
    /// It writes a place that the pack gives to other writers.
    NotWriter {
        /// The place.
        path: Pointer,
        /// The type of the intent.
        type_name: TypeName,
        /// Its author.
        author: Author,
        /// The types and authors that may write it.
        writers: Vec<Arc<str>>,
    },
    /// It would newly violate what the door enforces.
    WouldViolate(Vec<Broken>),
    /// A place that it changes is read by rules that can then not be judged, at a stage where that matters.
    #[error("it cannot be judged: {}", unjudged(.0))]
    CannotBeJudged(Vec<(Arc<str>, Met)>),
    /// A call was denied, and no decision has allowed it since.
    Denied {
        /// The tick of the decision.
        tick: u64,
    },
    /// It adds a number that is finer than the decimals of the field.
    Finer(Vec<Pointer>),
    /// An action names a tool together with a list of calls.
    ToolBesideCalls,
    /// It has names that look like others.
    LookAlike(Vec<LookAlike>),
    /// The commitments of the run forbid it.
    #[error("{0}")]
    Commitments(CommitmentRefused),
    /// Its change of state could not be computed, at a stage where that matters.
    #[error("{0}")]
    Reduce(ReduceError),
}

impl Reason {
    /// Returns what is put on record of it ([`crate::sealed`]).
    pub fn sealed(&self) -> Value {
        let path = |path: &Pointer| [("path", Value::from(path.as_str()))];
        let sealed = match self {
            Reason::Authorship(error) => error.sealed(),
            Reason::Member(fault) => fault.sealed(),
            Reason::Line(fault) => fault.sealed(),
            Reason::Contract { contract, type_name, lacks } => {
                let lacks = Value::array(lacks.iter().map(Lack::sealed));
                let type_name = ("type", Value::from(type_name.as_str()));
                fact("lacks", [("contract", Value::from(&**contract)), ("lacks", lacks), type_name])
            }
            Reason::Ungoverned(name) => fact("ungoverned", [("type", Value::from(name.as_str()))]),
            Reason::UndeclaredTool(tool) => fact("undeclared_tool", [("tool", Value::from(&**tool))]),
            Reason::UnnamedTool => fact("unnamed_tool", []),
            Reason::KernelPath(at) => fact("kernel_path", path(at)),
            Reason::Counters(at) => fact("counters_path", path(at)),
            Reason::KernelNote(kind) => fact("kernel_note", [("anomaly", Value::from(&**kind))]),
            Reason::NotWriter { path, type_name, author, writers } => {
                let writers = Value::array(writers.iter().map(|word| Value::String(Arc::clone(word))));
                fact(
                    "not_writer",
                    [
                        ("author", Value::from(author.as_str())),
                        ("path", Value::from(path.as_str())),
                        ("type", Value::from(type_name.as_str())),
                        ("writers", writers),
                    ],
                )
            }
            Reason::WouldViolate(broken) => {
                let broken = broken.iter().map(Broken::to_value);
                fact("violates", [("violations", Value::array(broken))])
            }
            Reason::CannotBeJudged(rules) => {
                let rules = rules.iter().map(|(id, met)| {
                    let id = ("id", Value::String(Arc::clone(id)));
                    Value::record([id].into_iter().chain(met.sealed()))
                });
                fact("unjudged", [("rules", Value::array(rules))])
            }
            Reason::Denied { tick } => fact("denied", [("tick", Value::from(*tick))]),
            Reason::Finer(places) => {
                let places = places.iter().map(|place| Value::from(place.as_str()));
                fact("finer_than_declared", [("paths", Value::array(places))])
            }
            Reason::ToolBesideCalls => fact("tool_beside_calls", []),
            Reason::LookAlike(names) => {
                let names = names.iter().map(|alike| {
                    let like = alike.like.clone().map(|like| ("like", Value::String(like)));
                    let members = [("id", Value::String(Arc::clone(&alike.name))), ("of", alike.what.into())];
                    Value::record(members.into_iter().chain(like))
                });
                fact("look_alike", [("names", Value::array(names))])
            }
            Reason::Commitments(refused) => refused.sealed(),
            Reason::Reduce(error) => error.sealed(),
        };
        with_code(sealed, self.code())
    }

    /// The ids of the rules or commitments that decided, if any did.
    pub fn ids(&self) -> Vec<Arc<str>> {
        match self {
            Reason::WouldViolate(broken) => broken.iter().map(|one| Arc::clone(&one.predicate)).collect(),
            Reason::CannotBeJudged(rules) => rules.iter().map(|(id, _)| Arc::clone(id)).collect(),
            Reason::Commitments(refused) => refused.ids(),
            _ => Vec::new(),
        }
    }

    /// The code under which `dendrer explain` knows this refusal.
    pub fn code(&self) -> Code {
        match self {
            Reason::Authorship(error) => error.code(),
            Reason::Member(MemberFault::NotByUser(_)) => Code::E0408,
            Reason::Member(_) => Code::E0427,
            Reason::Line(fault) => fault.code(),
            Reason::KernelPath(_) | Reason::Counters(_) | Reason::KernelNote(_) => Code::E0405,
            Reason::NotWriter { .. } => Code::E0430,
            Reason::WouldViolate(_) => Code::E0429,
            Reason::CannotBeJudged(_) => Code::E0428,
            Reason::Denied { .. } => Code::E0435,
            Reason::Finer(_) => Code::E0436,
            Reason::ToolBesideCalls => Code::E0437,
            Reason::LookAlike(_) => Code::E0438,
            Reason::Commitments(refused) => refused.code(),
            Reason::Reduce(_) => Code::E0404,
            Reason::Contract { .. } => Code::E0411,
            Reason::Ungoverned(_) => Code::E0425,
            Reason::UndeclaredTool(_) | Reason::UnnamedTool => Code::E0426,
        }
    }
}

/// A name that looks like another one, or mixes scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookAlike {
    /// The kind of thing that is named: `agent`, `tool` or `commitment`.
    pub what: &'static str,
    /// The name.
    pub name: Arc<str>,
    /// The declared name that it looks like; `None` if it mixes scripts alone.
    pub like: Option<Arc<str>>,
}

/// A predicate that a proposal would violate, with the values that decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The predicate or policy rule.
    pub predicate: Arc<str>,
    /// Places that it reads, each with the value that would be there; without it if the value is large or absent.
    pub values: Vec<(Pointer, Option<Value>)>,
}

/// Places that a refusal names for one predicate, at most.
const VALUES_MAX: usize = 8;

/// Bytes of a value that a refusal repeats, at most.
const VALUE_SIZE_MAX: usize = 256;

impl Broken {
    /// Returns it as a record and an answer have it: the id, and each place with its value.
    pub fn to_value(&self) -> Value {
        let values = self.values.iter().map(|(path, value)| {
            let path = ("path", Value::from(path.as_str()));
            Value::record([path].into_iter().chain(value.clone().map(|value| ("value", value))))
        });
        Value::record([("id", Value::String(Arc::clone(&self.predicate))), ("values", Value::array(values))])
    }

    /// Reads the values that decide from the state that would follow.
    pub(super) fn of(predicate: &Predicate, state: &Value) -> Broken {
        let value = |place: &Pointer| {
            let value = place.get(state).filter(|value| value.to_string().len() <= VALUE_SIZE_MAX);
            (place.clone(), value.cloned())
        };
        let values = predicate.read_set().iter().take(VALUES_MAX).map(value).collect();
        Broken { predicate: predicate.name().into(), values }
    }
}

fn unjudged(rules: &[(Arc<str>, Met)]) -> String {
    rules.iter().map(|(id, met)| format!("{id} ({met})")).collect::<Vec<_>>().join(", ")
}

/// Why a run cannot begin.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The state is not an object.
    #[error("a state is an object, not {0}")]
    StateKind(&'static str),
    /// The state already holds what only the kernel writes.
    #[error("{0} in the initial state is written by the kernel alone")]
    KernelPath(&'static str),
    /// The state has a member where expressions read the derived counters.
    #[error(
        "counters in the initial state cannot be read: state.counters stands beside the state; choose another name"
    )]
    Counters,
    /// A policy rule is not `{"id": ..., "holds": ...}` with an expression that checks.
    #[error("policy rule {index}: {why}")]
    Policy {
        /// Which rule, from 0.
        index: usize,
        /// The fault.
        why: String,
    },
    /// The stage asks for more than the run begins with.
    #[error("stage 3 needs {0}")]
    Stage(String),
    /// The pack that it carries does not check.
    #[error("the pack that it carries does not check: {0}")]
    Pack(String),
    /// A fork is to begin with a change that is not allowed, or that does not fit the state.
    #[error("{0}")]
    Change(Reason),
    /// The record with which a fork begins does not say what it must.
    #[error("the record with which the fork begins does not say {0}")]
    Fork(&'static str),
    /// It was recorded by the rules of another kernel.
    #[error(
        "it was recorded by version {0} of the kernel's rules, and this kernel knows version {KERNEL_VERSION}"
    )]
    Kernel(String),
    /// A value does not fit a record.
    #[error("{0}")]
    Seal(#[from] SealError),
}

impl StartError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            StartError::StateKind(_) => Code::E0209,
            StartError::KernelPath(_) | StartError::Counters => Code::E0405,
            StartError::Policy { .. } => Code::E0501,
            StartError::Change(reason) => reason.code(),
            StartError::Fork(_) | StartError::Pack(_) => Code::E0703,
            StartError::Stage(_) => Code::E0604,
            StartError::Kernel(_) => Code::E0602,
            StartError::Seal(error) => error.code(),
        }
    }
}

pub(super) fn draft_refusal(
    head: &RunState,
    intent: &Intent,
    reason: Reason,
    inputs: Inputs,
) -> Result<Prepared, SealError> {
    // The real author is unknown; the claim to be the kernel is certain.
    let claimed = is_claimed(intent.author);
    let mut why = reason.sealed().as_object().cloned().unwrap_or_default();
    if claimed {
        why.set("claimed_author", Value::from(intent.author.as_str()));
    }
    let (mut header, content) = refusal_of(head, intent, Value::Object(why), inputs);
    header.author = if claimed { Author::Agent } else { intent.author };
    let draft = draft(header, &content.into_iter().collect(), inputs.seeds.nth(0))?;
    Ok(Prepared { draft, agent: Arc::clone(&intent.agent), seq: 0, reason: Some(reason) })
}

/// Builds a refusal: the intent as proposed, with the reason. It has no head yet.
pub(super) fn refusal_of(
    head: &RunState,
    intent: &Intent,
    why: Value,
    inputs: Inputs,
) -> (Header, Vec<(Arc<str>, Value)>) {
    let mut content = intent.members.clone();
    content.push(("agent_id".into(), Value::String(Arc::clone(&intent.agent))));
    content.extend(intent.delta.as_ref().map(|delta| ("delta".into(), delta.to_value())));
    content.extend(intent.goal.clone().map(|goal| ("goal_id".into(), Value::String(goal))));
    content.push(("reason".into(), why));
    let mut links = intent.links.clone();
    links.sort_unstable();
    links.dedup();
    let header = Header {
        type_name: Some(intent.type_name.clone()),
        author: intent.author,
        links,
        ..refusal_header(head, inputs)
    };
    (header, content)
}

/// Puts the refusal of a line on record. From stage 1 on a `kernel.anomaly` names it, and at every stage if the line spoke
/// for another author.
pub fn refuse_line(
    head: &mut RunState,
    line: &Value,
    fault: LineFault,
    inputs: Inputs,
) -> Result<Outcome, SealError> {
    let named = ["agent", "agent_id"].iter().find_map(|name| line.get(name)?.as_str());
    let agent = named.filter(|name| !name.is_empty() && name.len() <= AGENT_SIZE_MAX);
    let agent: Arc<str> = agent.filter(|name| check_name(name).is_ok()).unwrap_or("agent").into();
    let reason = Reason::Line(fault);
    let refusal = line_refusal(head, &agent, line.clone(), reason.sealed(), inputs)?;
    let Reason::Line(fault) = &reason else { unreachable!("made above") };
    let is_named = head.stage() >= Stage::Replay || matches!(fault, LineFault::Author(..));
    let anomaly = is_named.then(|| {
        let mut entry = reason.sealed().as_object().cloned().unwrap_or_default();
        entry.set("agent_id", Value::String(Arc::clone(&agent)));
        entry.set("kind", Value::from(fault.kind()));
        entry.set("refusal", Value::from(refusal.id()));
        make_anomaly(head, Value::Object(entry), inputs.behind(1))
    });
    let anomaly = anomaly.transpose()?;
    Ok(Outcome::Refused(Refused { reason, refusal, anomaly }))
}

/// Makes the refusal of a line.
pub(super) fn line_refusal(
    head: &RunState,
    agent: &str,
    line: Value,
    why: Value,
    inputs: Inputs,
) -> Result<Record, SealError> {
    let header = Header { head: Some(head.id), ..refusal_header(head, inputs) };
    seal(header, vec![("agent_id", Value::from(agent)), (LINE, line), ("reason", why)], inputs.seeds.nth(0))
}

/// The header of a refusal, of an agent's line without a type. It has no head yet.
pub(super) fn refusal_header(head: &RunState, inputs: Inputs) -> Header {
    Header {
        store: head.store,
        kind: Kind::Refusal,
        run: Some(head.run.clone()),
        tick: None,
        prev: None,
        head: None,
        type_name: None,
        author: Author::Agent,
        ts: inputs.clock.max(head.ts),
        links: Vec::new(),
        pack: head.terms.digest,
    }
}
