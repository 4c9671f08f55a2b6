//! Servers of MCP that a program has, and the calls to them that are remembered.
//!
//! Records nothing: `tape/mcp` does.
//!
//! Rule: what is remembered is bounded; test `hostile_lines_stop_nothing_and_are_counted`.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use dendrer::Trace;
use dendrer::vault::VaultRef;
use dendrer_object::record::Record;
use dendrer_object::{Digest, Intent, Value};

use crate::api;
use crate::exchange::{AskedCall, CallNumber};
use crate::mcp::{self, McpCopied, McpCopy, Told};
use crate::proxy::PassedCopy;
use crate::read;

/// How many calls are remembered, of each kind: open ones of models, answered ones.
const CALLS_MAX: usize = 50_000;

/// How many requests of one server may be open.
pub(super) const OPEN_MAX: usize = 10_000;

/// How long requests wait for the answer of a server that one of them repeats. They came by another way than it.
const HOLD: Duration = Duration::from_secs(2);

/// How many copies may wait so.
const HOLD_MAX: usize = 1_000;

/// Servers, and the calls that were made over MCP.
#[derive(Debug, Default)]
pub(super) struct McpTape {
    pub(super) servers: BTreeMap<u64, Server>,
    /// Calls that are not on record whole.
    pub(super) calls: BTreeMap<CallNumber, Call>,
    /// Calls that models asked for, and nothing answered yet.
    pub(super) asked: VecDeque<AskedTool>,
    /// Calls that servers answered.
    pub(super) done: VecDeque<DoneTool>,
    /// Copies that wait, and since when.
    pub(super) held: VecDeque<PassedCopy>,
    pub(super) held_since: Option<Instant>,
    /// The question that the first of them waits for.
    pub(super) asked_sync: Option<u64>,
    /// The newest question, and the newest one that was answered.
    pub(super) syncs: u64,
    pub(super) synced: u64,
    pub(super) syncer: Syncer,
}

/// Asks shims for all that they copied so far; `None` without shims.
#[derive(Default)]
pub(super) struct Syncer(pub(super) Option<Box<dyn Fn(u64) -> bool + Send>>);

impl std::fmt::Debug for Syncer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Syncer").field(&self.0.is_some()).finish()
    }
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) agent: String,
    /// Its command as it is recorded.
    pub(super) words: Value,
    /// A keyed digest of its command.
    pub(super) known: Option<Digest>,
    pub(super) command: Vec<String>,
    /// Requests of the client that are open, by their id.
    pub(super) open: HashMap<String, VecDeque<CallNumber>>,
    pub(super) open_count: usize,
    /// Methods of requests of the server that are open, by their id.
    pub(super) asks: HashMap<String, String>,
    /// How often a part was missing, for each reason.
    pub(super) gaps: BTreeMap<&'static str, u64>,
}

/// A request of a client.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) server: u64,
    pub(super) method: String,
    pub(super) params: Value,
    /// The tool that is called, and its arguments.
    pub(super) tool: Option<(String, Value)>,
    pub(super) place: Place,
    pub(super) is_cancelled: bool,
    pub(super) exact: Option<VaultRef>,
    /// A keyed digest, by which the same request is known again.
    pub(super) known: Option<Digest>,
    pub(super) answer: Option<(Result<Value, Value>, Option<VaultRef>)>,
}

/// The request of a call on record.
#[derive(Debug)]
pub(super) enum Place {
    /// A model may have asked for it, in an answer that has not ended.
    Undecided,
    /// A model asked for it.
    Asked(AskedTool),
    /// It is a transition of its server.
    Own(Digest),
    /// It is recorded with its answer.
    Later,
}

/// A call that a model asked for.
#[derive(Debug, Clone)]
pub(super) struct AskedTool {
    pub(super) record: Digest,
    pub(super) agent: String,
    pub(super) branch: u64,
    pub(super) call_id: Option<Value>,
    pub(super) tool: String,
    pub(super) params: Value,
}

/// A call that a server answered.
#[derive(Debug)]
pub(super) struct DoneTool {
    pub(super) call: CallNumber,
    pub(super) agent: String,
    pub(super) call_id: Option<Value>,
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) params: Value,
    pub(super) record: Digest,
    /// The request of it, if that is known.
    pub(super) request: Option<Digest>,
    pub(super) told: Told,
    pub(super) is_told: bool,
}

/// A result in a request, as far as it is known.
pub(super) enum Claim {
    /// Nothing else saw it.
    New,
    /// It came over MCP: the call, and the record of its result.
    Again(CallNumber, Digest),
    /// The server said something else.
    Differs(CallNumber, Digest),
}

impl McpTape {
    /// Notes the calls that a model asked for.
    pub(super) fn asked(&mut self, record: Digest, branch: u64, intent: &Intent) {
        if intent.type_name.as_str() != "action.request" {
            return;
        }
        let Some(action) = intent.member("action") else { return };
        let listed = action.get("calls").and_then(Value::as_array);
        let calls: Vec<&Value> = listed.map_or_else(|| vec![action], |calls| calls.iter().collect());
        for call in calls {
            let Some(tool) = call.get("tool").and_then(Value::as_str) else { continue };
            self.asked.push_back(AskedTool {
                record,
                agent: intent.agent.to_string(),
                branch,
                call_id: call.get("call_id").cloned(),
                tool: tool.to_owned(),
                params: mcp::arguments(call.get("params")),
            });
        }
        while self.asked.len() > CALLS_MAX {
            self.asked.pop_front();
        }
    }

    /// Takes the open call with equal tool and params.
    pub(super) fn take_asked(&mut self, server: &str, tool: &str, params: &Value) -> Option<AskedTool> {
        let fits =
            |one: &AskedTool| if one.params == *params { mcp::rank(&one.tool, server, tool) } else { 0 };
        let ranked = self.asked.iter().enumerate().map(|(at, one)| (fits(one), std::cmp::Reverse(at)));
        let (_, at) = ranked.filter(|(rank, _)| *rank > 0).max()?;
        self.asked.remove(at.0)
    }

    /// Finds out where a result in a request came from.
    pub(super) fn claim(&mut self, intent: &Intent) -> Claim {
        let action = |name: &str| intent.member("action").and_then(|action| action.get(name));
        let (id, tool) = (action("call_id"), action("tool").and_then(Value::as_str));
        let params = action("params").map(|params| mcp::arguments(Some(params)));
        let told = intent.member("result").and_then(|result| result.get("output").or(result.get("error")));
        let told = told.cloned().unwrap_or(Value::Null);
        let same_params = |one: &DoneTool| params.as_ref().is_none_or(|params| *params == one.params);
        let by_id =
            |one: &DoneTool| id.is_some() && one.call_id.as_ref() == id && *one.agent == *intent.agent;
        let by_tool = |one: &DoneTool| {
            params.is_some() && tool.is_some_and(|tool| mcp::rank(tool, &one.server, &one.tool) > 0)
        };
        let newest_first = (0..self.done.len()).rev();
        let fits = |is: &dyn Fn(&DoneTool) -> bool| -> Vec<usize> {
            newest_first.clone().filter(|at| same_params(&self.done[*at]) && is(&self.done[*at])).collect()
        };
        let (named, alike) = (fits(&by_id), fits(&by_tool));
        let untold = alike.iter().rev().filter(|at| !self.done[**at].is_told);
        let alike: Vec<usize> =
            untold.copied().chain(alike.iter().copied().filter(|at| self.done[*at].is_told)).collect();
        let same = named.iter().chain(&alike).find(|at| self.done[**at].told.is(&told)).copied();
        let other = named.first().or(alike.iter().find(|at| !self.done[**at].is_told)).copied();
        let found = same.or(other).map(|at| &mut self.done[at]);
        let claim = found.map(|one| {
            one.is_told = true;
            (one.call, one.record)
        });
        match claim {
            Some((call, record)) if same.is_some() => Claim::Again(call, record),
            Some((call, record)) => Claim::Differs(call, record),
            None => {
                // It was done inside the program.
                let at = self.asked.iter().position(|one| {
                    id.is_some() && one.call_id.as_ref() == id && *one.agent == *intent.agent
                });
                at.map(|at| self.asked.remove(at));
                Claim::New
            }
        }
    }

    /// Remembers a call that a server answered.
    pub(super) fn add_done(&mut self, done: DoneTool) {
        self.done.push_back(done);
        while self.done.len() > CALLS_MAX {
            self.done.pop_front();
        }
    }

    /// Reads again what servers answered up to a tick of another run.
    pub(super) fn resume(&mut self, parent: &Trace, tick: u64) -> Result<(), dendrer::Error> {
        for at in 1..=tick {
            let record = parent.record(at)?;
            self.done.extend(done_again(&record));
        }
        Ok(())
    }

    /// Closes the calls that servers answered.
    pub(super) fn resumed(&mut self) {
        let done = &self.done;
        let is_done = |one: &AskedTool| {
            done.iter().any(|known| known.request == Some(one.record) && known.call_id == one.call_id)
        };
        self.asked.retain(|one| !is_done(one));
    }

    /// The ids of calls that servers answered.
    pub(super) fn told_ids(&self) -> Vec<String> {
        let ids = self.done.iter().filter_map(|one| one.call_id.as_ref()?.as_str());
        ids.map(str::to_owned).collect()
    }

    /// Whether a copy has to wait for copies of shims, which come by another way.
    pub(super) fn must_wait(&mut self, first: &PassedCopy) -> bool {
        let PassedCopy::Asked(asked) = first else { return false };
        match (&self.syncer.0, self.asked_sync) {
            // A shim that is stopped holds nothing up for long.
            (Some(_), Some(number)) => self.synced < number && self.may_wait(),
            (Some(sync), None) => {
                self.syncs += 1;
                let waits = tells_results(asked) && sync(self.syncs);
                self.asked_sync = waits.then_some(self.syncs);
                waits
            }
            (None, _) => {
                let may_wait = self.may_wait();
                self.is_ahead(asked) && may_wait
            }
        }
    }

    /// How many of the copies that wait come before one of a shim: answers that the program had before it, and what that shim
    /// copied before.
    pub(super) fn waits_after(&self, copy: &McpCopy) -> usize {
        let at = copy.time().unwrap_or(0);
        let is_before = |held: &PassedCopy| match held {
            PassedCopy::Answered(answered) => answered.at > 0 && answered.at < at,
            PassedCopy::Mcp(held) => held.server == copy.server || held.time().is_some_and(|time| time < at),
            _ => false,
        };
        match copy.what {
            // The answer to a question of the tape, which waits for it.
            McpCopied::Synced(_) => 0,
            _ => self.held.iter().rposition(is_before).map_or(0, |last| last + 1),
        }
    }

    /// Whether the first copy may wait any longer.
    pub(super) fn may_wait(&mut self) -> bool {
        let since = *self.held_since.get_or_insert_with(Instant::now);
        since.elapsed() < HOLD && self.held.len() < HOLD_MAX
    }

    /// Whether a request has the result of a call whose server has not answered.
    fn is_ahead(&self, asked: &AskedCall) -> bool {
        let open = |call: &Call| match &call.place {
            Place::Asked(one) if call.answer.is_none() && !call.is_cancelled => one.call_id.clone(),
            _ => None,
        };
        let open: Vec<Value> = self.calls.values().filter_map(open).collect();
        let api = api::of_path(&asked.method, &asked.path).filter(|_| !open.is_empty());
        let body = api.and_then(|api| Some((api, read::request(asked).ok()?)));
        let Some((api, body)) = body else { return false };
        let items = (api.request)(&body).items;
        items.iter().filter(|kept| kept.is_result()).any(|kept| {
            let names = |value: &Value| {
                let ids = ["tool_call_id", "call_id", "tool_use_id"].map(|name| value.get(name));
                ids.into_iter().flatten().any(|id| open.contains(id))
            };
            let parts = kept.value.get("content").and_then(Value::as_array);
            names(&kept.value) || parts.is_some_and(|parts| parts.iter().any(names))
        })
    }
}

/// Whether a request has results of tools.
fn tells_results(asked: &AskedCall) -> bool {
    let api = api::of_path(&asked.method, &asked.path);
    let body = api.and_then(|api| Some((api, read::request(asked).ok()?)));
    body.is_some_and(|(api, body)| (api.request)(&body).items.iter().any(|kept| kept.is_result()))
}

/// The word for a result that a request repeats.
pub(super) fn again(call: CallNumber, record: Digest) -> Value {
    Value::record([("call", Value::from(call)), ("result", Value::from(record))])
}

/// A result that came over MCP, as it is on record.
fn done_again(record: &Record) -> Option<DoneTool> {
    let content = record.content();
    let capture = content.get("intent")?.get("capture").filter(|capture| mcp::is_mcp(capture))?;
    let (action, result) = (content.get("action")?, content.get("result")?);
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let extra = content.get("intent")?.get("extra").cloned().unwrap_or_else(Value::object);
    let is_failed = result.get("status") == Some(&Value::from("error"));
    let answer = match (result.get("error"), result.get("output")) {
        (Some(error), None) => Err(error.clone()),
        (_, output) => {
            let mut members = extra.as_object().cloned().unwrap_or_default();
            members.set("content", output.cloned().unwrap_or(Value::Null));
            members.set("isError", Value::from(is_failed));
            Ok(Value::Object(members))
        }
    };
    Some(DoneTool {
        call: capture.get("call")?.as_u64()?,
        agent: text(content.get("agent_id"))?,
        call_id: action.get("call_id").cloned(),
        server: String::new(),
        tool: text(action.get("tool"))?,
        params: mcp::arguments(action.get("params")),
        record: record.id(),
        request: record.header().links.first().map(|link| link.hash),
        told: Told::of_answer(&answer),
        is_told: false,
    })
}
