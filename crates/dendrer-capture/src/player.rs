//! Serves a program from its record: the exact answers, to exactly the recorded requests.
//!
//! Rule: nothing near a recorded request is answered. The first request of a conversation that is not on record ends that
//! conversation: it and all later ones get status 400.

use std::collections::{BTreeMap, BTreeSet};

use dendrer::Trace;
use dendrer::problem::Problem;
use dendrer::vault::{Vault, VaultError};
use dendrer_object::value::{Object, first_difference};
use dendrer_object::{Code, Digest, RunName, UNATTESTED, Value};

use crate::api::{self, Api};
use crate::conversation::{Conversations, Place};
use crate::exact::{self, ServedAnswer};
use crate::exchange::{AskedCall, CallNumber, Ended};
use crate::mcp::MCP;
use crate::read::{self, ReadAnswer};

dendrer_object::words! {
    /// How a program departs from its record.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum DepartureKind {
        /// A request differs from the recorded one.
        ChangedRequest = "changed_request",
        /// A recorded request was not made.
        Missing = "missing",
        /// A request was made, and no recorded one is left.
        Surplus = "surplus",
    }
}

/// The first place at which a conversation departs from the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramDivergence {
    /// The recorded call that was due; `None` if none was left.
    pub call: Option<CallNumber>,
    /// The name of the API.
    pub api: String,
    /// The agent whose conversation it is.
    pub agent: String,
    /// How it departs.
    pub kind: DepartureKind,
    /// The place in the request.
    pub path: Option<String>,
    /// The recorded value at the place.
    pub expected: Option<Value>,
    /// The value now.
    pub got: Option<Value>,
}

/// The counts of a replay by the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlayedCalls {
    /// Calls on record.
    pub recorded: u64,
    /// Calls that were served.
    pub served: u64,
    /// Divergences, in their order.
    pub divergences: Vec<ProgramDivergence>,
}

/// A call on record.
#[derive(Debug)]
struct RecordedCall {
    call: CallNumber,
    api: String,
    agent: String,
    known: Digest,
    is_served: bool,
}

/// Serves calls from a run.
#[derive(Debug)]
pub struct Player {
    run: RunName,
    vault: Vault,
    calls: Vec<RecordedCall>,
    conversations: Conversations,
    /// Conversations that departed.
    departed: BTreeSet<usize>,
    played: PlayedCalls,
}

impl Player {
    /// Reads the calls of a run that was recorded from the outside.
    ///
    /// # Errors
    ///
    /// The run has no exact calls (E0117), or the key of its vault is not here (E0465).
    pub fn open(trace: &Trace, vault: Vault) -> Result<Player, Problem> {
        let mut calls: BTreeMap<CallNumber, RecordedCall> = BTreeMap::new();
        let mut has_others = false;
        for tick in 1..=trace.tip() {
            let record = trace.record(tick).map_err(dendrer::Error::from)?;
            let content = record.content();
            let Some(call) = recorded_call(&content) else { continue };
            if call.api == MCP {
                has_others = true;
                continue;
            }
            calls.entry(call.call).or_insert(call);
        }
        let calls: Vec<RecordedCall> = calls.into_values().collect();
        let run = trace.name().clone();
        if let Some(first) = calls.first() {
            vault.get(&run, &exact::locator(first.call, "answer")).map_err(of_vault)?;
        } else if !has_others {
            let why = format!(
                "{run} has no exact answers: it was not recorded by dendrer record, or with --no-exact"
            );
            return Err(Problem::new(Code::E0117, why));
        }
        let played = PlayedCalls { recorded: calls.len() as u64, ..PlayedCalls::default() };
        let (conversations, departed) = (Conversations::default(), BTreeSet::new());
        Ok(Player { run, vault, calls, conversations, departed, played })
    }

    /// Answers a request.
    pub(crate) fn serve(&mut self, asked: &AskedCall) -> ServedAnswer {
        match self.find(asked) {
            Ok(answer) => answer,
            Err(why) => ServedAnswer::refusal(&format!("dendrer: {why}")),
        }
    }

    fn find(&mut self, asked: &AskedCall) -> Result<ServedAnswer, String> {
        let (api, body) = (api::of_path(&asked.method, &asked.path), read::request(asked).ok());
        let place = api.zip(body.as_ref()).and_then(|(api, body)| self.place(api, body));
        if place.is_some_and(|place| self.departed.contains(&place.conversation)) {
            return Err("this conversation departed from the record before".to_owned());
        }
        let known = read::known(asked);
        let known = self.vault.known_by(&self.run, &known).map_err(|error| error.to_string())?;
        let found = self.calls.iter().position(|call| !call.is_served && call.known == known);
        let Some(found) = found else {
            let why = self.depart(api, body.map(Value::Object), place);
            return Err(why);
        };
        let call = &mut self.calls[found];
        let bytes = self.vault.get(&self.run, &exact::locator(call.call, "answer"));
        let bytes = bytes.map_err(|error| error.to_string())?;
        let answer = ServedAnswer::read(&bytes).ok_or("the answer in the vault cannot be read")?;
        call.is_served = true;
        self.played.served += 1;
        if let (Some(api), Some(place)) = (api, place) {
            self.remember(api, place, &answer);
        }
        Ok(answer)
    }

    /// The conversation of a request, with its new messages added to it.
    fn place(&mut self, api: &'static Api, body: &Object) -> Option<Place> {
        let request = (api.request)(body);
        let (place, new) = self.conversations.find(&request).ok()?;
        for kept in new {
            let none = &mut |_| Ok(Digest([0; 32]));
            self.conversations.at(place).add(kept, std::slice::from_ref(kept), none).ok()?;
        }
        Some(Place { shared: self.conversations.at(place).len(), ..place })
    }

    /// Adds an answer to its conversation, so that the request after it is known to go on with it.
    fn remember(&mut self, api: &Api, place: Place, answer: &ServedAnswer) {
        let text = |name: &str| {
            let found = answer.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str())
        };
        if answer.status.is_none_or(|status| status >= crate::exchange::FAILED)
            || answer.ended != Ended::Whole
        {
            return;
        }
        let read = read::answer(api, &answer.pieces.concat(), text("content-encoding"), text("content-type"));
        let (ReadAnswer::Said(said), Ok(place)) = (read, self.conversations.branch_at(place)) else { return };
        let none = &mut |_| Ok(Digest([0; 32]));
        // Ignored: what cannot be read was recorded as a failure, and is repeated by no request.
        let _ = self.conversations.at(place).add(&said.answer, &said.items, none);
        if let Some(id) = said.id {
            self.conversations.answered(place, id);
        }
    }

    /// Notes that a conversation departs, and returns the reason.
    fn depart(&mut self, api: Option<&Api>, got: Option<Value>, place: Option<Place>) -> String {
        self.departed.extend(place.map(|place| place.conversation));
        let name = api.map_or("http", |api| api.name);
        let agent = place.map_or("main", |place| self.conversations.agent(place)).to_owned();
        let open = || self.calls.iter().filter(|call| !call.is_served && call.api == name);
        let due = open().find(|call| call.agent == agent).or_else(|| open().next());
        let Some(due) = due else {
            let kind = DepartureKind::Surplus;
            let (expected, path) = (None, None);
            let api = name.to_owned();
            self.played.divergences.push(ProgramDivergence {
                call: None,
                api,
                agent,
                kind,
                path,
                expected,
                got: None,
            });
            return "no recorded call is left for this request".to_owned();
        };
        let call = due.call;
        let recorded = self.vault.get(&self.run, &exact::locator(call, "request")).ok();
        let recorded = recorded.as_deref().and_then(recorded_body);
        let difference = recorded.zip(got).and_then(|(recorded, got)| first_difference(&recorded, &got));
        let (path, expected, got) = match difference {
            Some(found) => (Some(found.path.to_string()), found.left, found.right),
            None => (None, None, None),
        };
        let (kind, api) = (DepartureKind::ChangedRequest, name.to_owned());
        let place = path.clone().unwrap_or_default();
        self.played.divergences.push(ProgramDivergence {
            call: Some(call),
            api,
            agent,
            kind,
            path,
            expected,
            got,
        });
        format!("this request is not on record; call {call} differs at {place:?}")
    }

    /// The counts; a call that was not made is a divergence, if there is no other.
    pub(crate) fn end(&mut self) -> PlayedCalls {
        let mut played = self.played.clone();
        if let (true, Some(left)) =
            (played.divergences.is_empty(), self.calls.iter().find(|call| !call.is_served))
        {
            played.divergences.push(ProgramDivergence {
                call: Some(left.call),
                api: left.api.clone(),
                agent: left.agent.clone(),
                kind: DepartureKind::Missing,
                path: None,
                expected: None,
                got: None,
            });
        }
        played
    }
}

/// The call whose exact answer a record has.
fn recorded_call(content: &Value) -> Option<RecordedCall> {
    let capture = content.get("intent")?.get("capture")?;
    capture.get("exact")?.get("answer")?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(RecordedCall {
        call: capture.get("call")?.as_u64()?,
        api: capture.get("api").and_then(text)?,
        agent: content.get("agent_id").and_then(text)?,
        known: capture.get("asked")?.as_str()?.parse().ok()?,
        is_served: false,
    })
}

/// The body of an exact request.
fn recorded_body(bytes: &[u8]) -> Option<Value> {
    let (head, body) = exact::split(bytes)?;
    let encoding = head.get("encoding").and_then(Value::as_str);
    read::object(body, encoding).ok().map(Value::Object)
}

pub(crate) fn of_vault(error: VaultError) -> Problem {
    Problem::new(error.code(), error.to_string())
}

/// The tools whose results the program alone brings: they run again with it.
///
/// # Errors
///
/// A record cannot be read.
pub fn tools_inside(trace: &Trace) -> Result<BTreeSet<String>, dendrer::Error> {
    let mut tools = BTreeSet::new();
    for tick in 1..=trace.tip() {
        let content = trace.record(tick)?.content();
        if content.get(UNATTESTED) == Some(&Value::from(true)) {
            let tool = content.get("action").and_then(|action| action.get("tool")?.as_str());
            tools.insert(tool.unwrap_or("a tool without a name").to_owned());
        }
    }
    Ok(tools)
}
