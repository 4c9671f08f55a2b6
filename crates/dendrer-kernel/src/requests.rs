//! Requests of a run, and the decisions about them (design, 14.1: a decision on record binds).
//!
//! A projection of the transitions, kept with the counters. The newest requests are kept, and every denial that no `allow` has
//! lifted.
//!
//! Rule: a denied call is refused, or noted, until an `allow` of the same rank or a higher one names it; test
//! `a_denied_call_is_refused_until_it_is_allowed`.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::record::{Author, Link, Record, Rel};
use dendrer_object::{Digest, Intent, Value, json};

use crate::calls::{self, ACTION};
use crate::ontology::{DECISION, REQUEST, RESULT};

/// Requests that are kept, the newest.
const REQUESTS_MAX: usize = 256;

/// The member of a `run` record with the requests that are forbidden in the runs that it continues.
pub const DENIED: &str = "denied";

/// Words of the authors of decisions, by rank.
const RANKS: [&str; 4] = ["agent", "runtime", "user", "institution"];

/// A request that is forbidden: denied, and not allowed since, or escalated and still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForbiddenRequest {
    /// Its tick; 0 for one that the run began with.
    pub tick: u64,
    /// The decision.
    pub decision: &'static str,
    /// The rank of the author of the decision, as a word.
    pub rank: &'static str,
}

impl ForbiddenRequest {
    /// Returns it as a `run` record has it, given the record of the request.
    pub fn sealed(&self, record: &Record) -> Value {
        let content = record.content();
        let member = |name: &'static str| Some((name, content.get(name)?.clone()));
        let members = [
            member(ACTION),
            member("agent_id"),
            Some(("decision", Value::from(self.decision))),
            Some(("rank", Value::from(self.rank))),
            Some(("record", Value::from(record.id()))),
        ];
        Value::record(members.into_iter().flatten())
    }
}

/// A call that a result answers, as far as the result is judged by it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnsweredCall {
    /// The tick of the newest decision about its request, if that denies it, or escalated it and is still open.
    pub(crate) forbidden_at: Option<u64>,
    /// Whether the result states parameters, and others than the call.
    pub(crate) is_another: bool,
}

/// The newest requests of a run, and its denials.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Requests {
    /// In order.
    newest: Arc<Vec<Request>>,
    /// By the key of the denied call.
    denied: Arc<BTreeMap<Digest, Denial>>,
}

/// A request, and what became of it.
#[derive(Debug, Clone, PartialEq)]
struct Request {
    tick: u64,
    /// The id of its record; `None` until it is sealed.
    id: Option<Digest>,
    agent: Arc<str>,
    calls: Vec<Call>,
    decision: Option<Decision>,
}

/// One call of a request.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    tool: Option<Arc<str>>,
    call_id: Option<Value>,
    key: CallKey,
    is_answered: bool,
}

/// The tool and the parameters of a call, which make two calls the same.
#[derive(Debug, Clone)]
enum CallKey {
    /// As they were written: most calls are never compared.
    Written(Value),
    Digest(Digest),
}

impl CallKey {
    fn digest(&self) -> Digest {
        match self {
            CallKey::Written(call) => key_of(call),
            CallKey::Digest(digest) => *digest,
        }
    }

    /// Whether another call has the same tool and parameters.
    fn is_of(&self, call: &Value) -> bool {
        match self {
            CallKey::Written(written) if written.get("tool") == call.get("tool") => {
                // Most results repeat their call, and need no digest.
                written.get("params") == call.get("params") || key_of(written) == key_of(call)
            }
            key => key.digest() == key_of(call),
        }
    }
}

impl PartialEq for CallKey {
    fn eq(&self, other: &CallKey) -> bool {
        self.digest() == other.digest()
    }
}

/// The key of a call. No parameters, null and an empty object are the same.
fn key_of(call: &Value) -> Digest {
    let tool = call.get("tool").cloned().unwrap_or(Value::Null);
    let params = call.get("params").filter(|params| **params != Value::Null).cloned();
    let params = params.unwrap_or_else(Value::object);
    Digest::of(&json::to_vec(&Value::record([("params", params), ("tool", tool)])))
}

/// The newest decision about a request.
#[derive(Debug, Clone, PartialEq)]
struct Decision {
    tick: u64,
    word: Arc<str>,
    rank: u8,
}

/// A denial that no `allow` has lifted.
#[derive(Debug, Clone, PartialEq)]
struct Denial {
    tick: u64,
    rank: u8,
    /// The tick of the request.
    request: u64,
    /// Whether it is an escalation that is open, and no denial.
    is_open: bool,
}

/// The rank of the author of a decision (design, 14.2).
fn rank(author: Author) -> u8 {
    match author {
        Author::Agent => 0,
        Author::Runtime => 1,
        Author::User => 2,
        Author::Institution | Author::Kernel => 3,
    }
}

/// Whether a decision forbids its request: a denial, or an escalation that is still open.
fn forbids(word: &str) -> bool {
    matches!(word, "deny" | "escalate")
}

impl Requests {
    /// Takes a transition in, with its id if it is known.
    pub(crate) fn take(
        &mut self,
        (tick, author, id): (u64, Author, Option<Digest>),
        type_name: &str,
        content: &Value,
        links: &[Link],
    ) {
        let agent = || content.get("agent_id").and_then(Value::as_str).unwrap_or_default();
        match type_name {
            REQUEST => {
                let calls = content.get(ACTION).map(calls::written).unwrap_or_default();
                let request = Request {
                    tick,
                    id,
                    agent: agent().into(),
                    calls: calls.into_iter().map(Call::of).collect(),
                    decision: None,
                };
                let newest = Arc::make_mut(&mut self.newest);
                if newest.len() == REQUESTS_MAX {
                    newest.remove(0);
                }
                newest.push(request);
            }
            RESULT => {
                let action = content.get(ACTION);
                if let Some((at, Some(call))) = self.answered(agent(), action, links) {
                    Arc::make_mut(&mut self.newest)[at].calls[call].is_answered = true;
                }
            }
            DECISION => {
                let word = content.get("policy").and_then(|policy| policy.get("decision")?.as_str());
                if let (Some(word), Some(at)) = (word, self.subject(agent(), links)) {
                    let is_named = self.named(links) == Some(at);
                    self.decide(at, tick, rank(author), word, is_named);
                }
            }
            _ => {}
        }
    }

    /// Gives the request at a tick its id, when its record is sealed.
    pub(crate) fn seal(&mut self, tick: u64, id: Digest) {
        let is_it = |request: &Request| request.tick == tick && request.id.is_none();
        if let Some(at) = self.newest.iter().rposition(is_it) {
            Arc::make_mut(&mut self.newest)[at].id = Some(id);
        }
    }

    /// The requests with which a run begins, as its record has them.
    pub(crate) fn at_start(sealed: Option<&Value>) -> Requests {
        let mut made = Requests::default();
        for entry in sealed.and_then(Value::as_array).into_iter().flat_map(|list| list.iter()) {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let calls = entry.get(ACTION).map(calls::written).unwrap_or_default();
            let request = Request {
                tick: 0,
                id: text("record").parse().ok(),
                agent: text("agent_id").into(),
                calls: calls.into_iter().map(Call::of).collect(),
                decision: None,
            };
            Arc::make_mut(&mut made.newest).push(request);
            let rank = RANKS.iter().position(|word| *word == text("rank")).unwrap_or(RANKS.len() - 1);
            made.decide(made.newest.len() - 1, 0, rank as u8, text("decision"), true);
        }
        made
    }

    /// The requests that are forbidden, in the order of their ticks.
    pub(crate) fn forbidden(&self) -> Vec<ForbiddenRequest> {
        let rank = |rank: u8| RANKS[usize::from(rank).min(RANKS.len() - 1)];
        let denied = self.denied.values().map(|denial| ForbiddenRequest {
            tick: denial.request,
            decision: if denial.is_open { "escalate" } else { "deny" },
            rank: rank(denial.rank),
        });
        let mut all: Vec<ForbiddenRequest> = denied.collect();
        all.sort();
        all.dedup_by_key(|one| (one.tick, one.decision));
        all
    }

    /// Takes a decision. An `allow` lifts what forbids a request only if it names the request and has its rank or a higher one.
    fn decide(&mut self, at: usize, tick: u64, rank: u8, word: &str, is_named: bool) {
        let request = &mut Arc::make_mut(&mut self.newest)[at];
        let (asked, standing) = (request.tick, request.decision.as_ref());
        let is_lower = word == "allow"
            && standing.is_some_and(|one| forbids(&one.word) && (one.rank > rank || !is_named));
        if is_lower {
            return;
        }
        // A decision that forbids keeps the highest rank that forbade.
        let standing = standing.filter(|one| forbids(&one.word) && forbids(word)).map_or(0, |one| one.rank);
        request.decision = Some(Decision { tick, word: word.into(), rank: rank.max(standing) });
        let keys: Vec<Digest> = request.calls.iter().map(|call| call.key.digest()).collect();
        let denied = Arc::make_mut(&mut self.denied);
        for key in keys {
            if forbids(word) {
                let is_open = word == "escalate";
                let denial = denied.entry(key).or_insert(Denial { tick, rank, request: asked, is_open });
                denial.rank = denial.rank.max(rank);
                denial.is_open &= is_open;
            } else if word == "allow" && denied.get(&key).is_some_and(|denial| denial.rank <= rank) {
                denied.remove(&key);
            }
        }
    }

    /// The number of the request that a `caused_by` link names.
    fn named(&self, links: &[Link]) -> Option<usize> {
        let is_named = |id: &Digest| links.iter().any(|link| link.rel == Rel::CausedBy && link.hash == *id);
        self.newest.iter().rposition(|request| request.id.as_ref().is_some_and(is_named))
    }

    /// The number of the request that a decision is about: the one that `caused_by` names, else the one open request of the agent.
    fn subject(&self, agent: &str, links: &[Link]) -> Option<usize> {
        if let Some(named) = self.named(links) {
            return Some(named);
        }
        let is_open = |request: &&Request| &*request.agent == agent && !request.is_answered();
        let mut open = self.newest.iter().enumerate().filter(|(_, request)| is_open(request));
        let (at, _) = open.next()?;
        open.next().is_none().then_some(at)
    }

    /// Whether a decision forbids something, and its request is ambiguous: it names none, and its agent has several open
    /// ones. One that comes before any request is about what follows.
    pub(crate) fn misses_subject(&self, decision: &Intent) -> bool {
        let word = decision.member("policy").and_then(|policy| policy.get("decision")?.as_str());
        if !word.is_some_and(forbids) || self.subject(&decision.agent, &decision.links).is_some() {
            return false;
        }
        let is_open = |request: &&Request| *request.agent == *decision.agent && !request.is_answered();
        self.newest.iter().filter(is_open).count() > 1
    }

    /// The numbers of the request and of its call that a result answers: by a `caused_by` link, else by the id of the call, else
    /// the oldest open call of the tool: one with the stated parameters first, then one that is not forbidden.
    fn answered(
        &self,
        agent: &str,
        action: Option<&Value>,
        links: &[Link],
    ) -> Option<(usize, Option<usize>)> {
        let tool = action.and_then(|action| action.get("tool")?.as_str());
        let call_id = action.and_then(|action| action.get("call_id"));
        let fits = |call: &Call| {
            let is_tool = tool.is_none() || call.tool.as_deref() == tool;
            is_tool && (call_id.is_none() || call.call_id.is_none() || call.call_id.as_ref() == call_id)
        };
        let linked = self.named(links);
        if let Some(at) = linked {
            let calls = &self.newest[at].calls;
            let open = calls.iter().position(|call| fits(call) && !call.is_answered);
            let first = || (!calls.is_empty()).then_some(0);
            return Some((at, open.or_else(|| calls.iter().position(fits)).or_else(first)));
        }
        let all = self.newest.iter().enumerate().flat_map(|(at, request)| {
            request.calls.iter().enumerate().map(move |(number, call)| (at, number, request, call))
        });
        let open = all.filter(|(.., request, call)| !call.is_answered && *request.agent == *agent);
        if call_id.is_some() {
            let with_id = open.clone().filter(|(.., call)| call.call_id.as_ref() == call_id);
            if let Some((at, number, ..)) = with_id.last() {
                return Some((at, Some(number)));
            }
        }
        let fitting = open.filter(|(.., call)| tool.is_some() && fits(call));
        let is_allowed = |(.., request, _): &(usize, usize, &Request, &Call)| !request.is_forbidden();
        // Parameters that a result states name its call.
        let stated = action.filter(|action| action.get("params").is_some());
        let same = fitting.clone().filter(|(.., call)| stated.is_some_and(|action| call.key.is_of(action)));
        let first = same.clone().find(is_allowed).or_else(|| same.clone().next());
        let first = first.or_else(|| fitting.clone().find(is_allowed)).or_else(|| fitting.clone().next());
        first.map(|(at, number, ..)| (at, Some(number)))
    }

    /// The call that a result answers; `None` if no request asked for it.
    pub(crate) fn answered_by(&self, result: &Intent) -> Option<AnsweredCall> {
        let action = result.member(ACTION);
        let (at, call) = self.answered(&result.agent, action, &result.links)?;
        let request = &self.newest[at];
        let stated = action.filter(|action| action.get("params").is_some());
        Some(AnsweredCall {
            forbidden_at: request.decision.as_ref().filter(|one| forbids(&one.word)).map(|one| one.tick),
            is_another: stated.zip(call).is_some_and(|(action, call)| !request.calls[call].key.is_of(action)),
        })
    }

    /// The tick of the denial that a call of a request repeats; `None` if no call was denied.
    pub(crate) fn denied_at(&self, action: &Value) -> Option<u64> {
        if self.denied.is_empty() {
            return None;
        }
        let mut ticks =
            calls::written(action).into_iter().filter_map(|call| Some(self.denied.get(&key_of(call))?.tick));
        ticks.next()
    }

    /// Returns it in the form in which a snapshot keeps it.
    pub(crate) fn to_kept(&self) -> Value {
        let denied = self.denied.iter().map(|(key, denial)| {
            let rank = u64::from(denial.rank);
            let places = [Value::from(*key), denial.tick.into(), rank.into(), denial.request.into()];
            Value::array(places.into_iter().chain([Value::Bool(denial.is_open)]))
        });
        Value::record([
            ("denied", Value::array(denied)),
            ("newest", Value::array(self.newest.iter().map(Request::to_kept))),
        ])
    }

    /// Reads the kept form; `None` for anything else.
    pub(crate) fn from_kept(value: &Value) -> Option<Requests> {
        let denied = value.get("denied")?.as_array()?.iter().map(|entry| {
            let entry = entry.as_array()?;
            let denial = Denial {
                tick: entry.get(1)?.as_u64()?,
                rank: u8::try_from(entry.get(2)?.as_u64()?).ok()?,
                request: entry.get(3)?.as_u64()?,
                is_open: entry.get(4)?.as_bool()?,
            };
            Some((entry.get(0)?.as_str()?.parse().ok()?, denial))
        });
        let newest = value.get("newest")?.as_array()?.iter().map(Request::from_kept);
        Some(Requests {
            denied: Arc::new(denied.collect::<Option<_>>()?),
            newest: Arc::new(newest.collect::<Option<_>>()?),
        })
    }
}

impl Call {
    fn of(call: &Value) -> Call {
        Call {
            tool: call.get("tool").and_then(Value::as_str).map(Arc::from),
            call_id: call.get("call_id").cloned(),
            key: CallKey::Written(calls::bare(call)),
            is_answered: false,
        }
    }
}

impl Request {
    fn is_answered(&self) -> bool {
        self.calls.iter().all(|call| call.is_answered)
    }

    fn is_forbidden(&self) -> bool {
        self.decision.as_ref().is_some_and(|decision| forbids(&decision.word))
    }

    fn to_kept(&self) -> Value {
        let calls = self.calls.iter().map(|call| {
            let tool = call.tool.clone().map_or(Value::Null, Value::String);
            let call_id = call.call_id.clone().map(|id| Value::array([id]));
            Value::array([
                tool,
                call_id.unwrap_or(Value::Null),
                Value::from(call.key.digest()),
                Value::Bool(call.is_answered),
            ])
        });
        let decision = self.decision.as_ref().map(|decision| {
            let word = Value::String(Arc::clone(&decision.word));
            Value::array([Value::from(decision.tick), word, u64::from(decision.rank).into()])
        });
        Value::array([
            Value::from(self.tick),
            self.id.map_or(Value::Null, Value::from),
            Value::String(Arc::clone(&self.agent)),
            Value::array(calls),
            decision.unwrap_or(Value::Null),
        ])
    }

    fn from_kept(value: &Value) -> Option<Request> {
        let parts = value.as_array()?;
        let calls = parts.get(3)?.as_array()?.iter().map(|call| {
            let call = call.as_array()?;
            Some(Call {
                tool: call.get(0)?.as_str().map(Arc::from),
                call_id: call.get(1)?.as_array().and_then(|id| id.get(0).cloned()),
                key: CallKey::Digest(call.get(2)?.as_str()?.parse().ok()?),
                is_answered: call.get(3)?.as_bool()?,
            })
        });
        let decision = match parts.get(4)? {
            Value::Null => None,
            decision => {
                let decision = decision.as_array()?;
                let rank = u8::try_from(decision.get(2)?.as_u64()?).ok()?;
                let word = decision.get(1)?.as_str()?.into();
                Some(Decision { tick: decision.get(0)?.as_u64()?, word, rank })
            }
        };
        let id = match parts.get(1)? {
            Value::Null => None,
            id => Some(id.as_str()?.parse().ok()?),
        };
        Some(Request {
            tick: parts.get(0)?.as_u64()?,
            id,
            agent: parts.get(2)?.as_str()?.into(),
            calls: calls.collect::<Option<_>>()?,
            decision,
        })
    }
}
