//! Serves a program from its record: the exact answers, to exactly the recorded requests.
//!
//! Rule: nothing near a recorded request is answered. The first request of a conversation that is not on record ends that
//! conversation: it and all later ones get status 400.

use std::collections::{BTreeMap, BTreeSet};

use dendrer::Trace;
use dendrer::problem::Problem;
use dendrer::vault::{Vault, VaultError};
use dendrer_object::value::{Object, differences, first_difference};
use dendrer_object::{Code, Digest, Pointer, Record, RunName, UNATTESTED, Value, json};

use crate::api::{self, Api};
use crate::conversation::{Conversations, Place};
use crate::exact::{self, ServedAnswer};
use crate::exchange::{AskedCall, CallNumber, Ended};
use crate::mcp::is_mcp;
use crate::read::{self, ReadAnswer};
use crate::spoken::{Kept, result_in, with_result};
use crate::volatile::{self, VolatilePlace};

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
    /// Places at which requests differed that were served all the same, each with the number of requests.
    pub volatile: BTreeMap<VolatilePlace, u64>,
    /// Divergences, in their order.
    pub divergences: Vec<ProgramDivergence>,
}

/// A call on record.
#[derive(Debug, Clone)]
pub(crate) struct RecordedCall {
    pub(crate) call: CallNumber,
    pub(crate) api: String,
    pub(crate) agent: String,
    /// The run under whose name its exact bytes are: a fork has calls of its parents.
    run: RunName,
    /// The tick of its answer.
    pub(crate) tick: u64,
    /// Whether it failed, or was not answered to its end.
    pub(crate) is_failed: bool,
    known: Digest,
    pub(crate) is_served: bool,
}

/// All calls of a run that have an exact answer, in the order of their requests.
///
/// # Errors
///
/// A record cannot be read.
pub(crate) fn recorded_calls(trace: &Trace) -> Result<Vec<RecordedCall>, Problem> {
    let mut calls: BTreeMap<CallNumber, RecordedCall> = BTreeMap::new();
    for tick in 1..=trace.tip() {
        let record = trace.record(tick).map_err(dendrer::Error::from)?;
        if let Some(call) = recorded_call(&record, tick) {
            calls.entry(call.call).or_insert(call);
        }
    }
    Ok(calls.into_values().collect())
}

/// A request that was read, and its conversation.
pub(crate) struct Placed {
    pub(crate) api: Option<&'static Api>,
    pub(crate) body: Option<Object>,
    pub(crate) place: Option<Place>,
}

/// Serves calls from a run.
#[derive(Debug)]
pub struct Player {
    vault: Vault,
    calls: Vec<RecordedCall>,
    /// Calls after the tick of a fork, which are compared and not served.
    unserved: Vec<RecordedCall>,
    conversations: Conversations,
    /// Results of tools inside the program that were replaced in its requests, by the id of their call.
    replaced: BTreeMap<String, Value>,
    /// Places that are left out when a request is known again.
    volatile: Vec<VolatilePlace>,
    /// Whether the answer that is due is served to any request.
    calibrates: bool,
    /// Conversations that departed.
    departed: BTreeSet<usize>,
    played: PlayedCalls,
}

impl Placed {
    /// The keys of the messages of the request.
    pub(crate) fn keys(&self, path: &str) -> Vec<Digest> {
        let (Some(api), Some(body)) = (self.api, &self.body) else { return Vec::new() };
        api.read_request(path, body).items.iter().map(Kept::key).collect()
    }
}

impl Player {
    /// Reads the calls of a run that was recorded from the outside. `volatile` are places that are left out, in addition to
    /// those of the run.
    ///
    /// # Errors
    ///
    /// The run has no exact calls (E0117), or the key of its vault is not here (E0465).
    pub fn open(trace: &Trace, vault: Vault, volatile: Vec<VolatilePlace>) -> Result<Player, Problem> {
        let calls = recorded_calls(trace)?;
        let mut player = match calls.is_empty() && has_mcp(trace)? {
            true => Player::serving(vault, calls),
            false => Player::of(trace, vault, calls)?,
        };
        player.leave_out(trace, volatile)?;
        player.replaced = player.replaced_in(trace)?;
        Ok(player)
    }

    /// Serves some of the calls of a run.
    pub(crate) fn of(trace: &Trace, vault: Vault, calls: Vec<RecordedCall>) -> Result<Player, Problem> {
        let Some(first) = calls.first() else {
            let run = trace.name();
            let why = format!(
                "{run} has no exact answers: it was not recorded by dendrer record, or with --no-exact"
            );
            return Err(Problem::new(Code::E0117, why));
        };
        vault.get(&first.run, &exact::locator(first.call, "answer")).map_err(of_vault)?;
        Ok(Player::serving(vault, calls))
    }

    /// Serves some calls, which may be none.
    pub(crate) fn serving(vault: Vault, calls: Vec<RecordedCall>) -> Player {
        let played = PlayedCalls { recorded: calls.len() as u64, ..PlayedCalls::default() };
        let (conversations, departed) = (Conversations::default(), BTreeSet::new());
        let replaced = BTreeMap::new();
        let (volatile, calibrates) = (Vec::new(), false);
        Player {
            vault,
            calls,
            unserved: Vec::new(),
            conversations,
            replaced,
            volatile,
            calibrates,
            departed,
            played,
        }
    }

    /// Serves the answer that is due whatever a request has, and counts the places that differ.
    pub fn calibrating(self) -> Player {
        Player { calibrates: true, ..self }
    }

    /// Compares requests with calls that are not served.
    pub(crate) fn compare_with(&mut self, calls: Vec<RecordedCall>) {
        self.unserved = calls;
    }

    /// Leaves places out when a request is known again.
    pub(crate) fn leave_out(&mut self, trace: &Trace, more: Vec<VolatilePlace>) -> Result<(), Problem> {
        self.volatile = VolatilePlace::of_run(trace);
        if more.iter().all(|place| self.volatile.contains(place)) {
            return Ok(());
        }
        self.volatile.extend(more);
        // The recorded digests leave out only the places of the run.
        for call in &mut self.calls {
            let request =
                self.vault.get(&call.run, &exact::locator(call.call, "request")).map_err(of_vault)?;
            let Some(request) = exact::read_request(call.call, &request) else { continue };
            let known = read::known(&request, &self.volatile);
            call.known = self.vault.known_by(&call.run, &known).map_err(of_vault)?;
        }
        Ok(())
    }

    /// The results that a fork put in the place of those of its program.
    fn replaced_in(&self, trace: &Trace) -> Result<BTreeMap<String, Value>, Problem> {
        let mut replaced = BTreeMap::new();
        for tick in 1..=trace.tip() {
            let record = trace.record(tick).map_err(dendrer::Error::from)?;
            let Some((call, id)) = replaced_result(&record) else { continue };
            let run = self.calls.iter().find(|known| known.call == call).map(|known| &known.run);
            let request = run.and_then(|run| self.vault.get(run, &exact::locator(call, "request")).ok());
            let result = request.as_deref().and_then(recorded_body).and_then(|body| result_in(&body, &id));
            replaced.extend(result.map(|result| (id, result)));
        }
        Ok(replaced)
    }

    /// A request with the results that were replaced when it was recorded.
    fn as_recorded(&self, asked: &AskedCall) -> AskedCall {
        let mut asked = asked.clone();
        for (id, result) in &self.replaced {
            let body = read::request(&asked).ok().map(Value::Object);
            if let Some(body) = body.and_then(|body| with_result(&body, id, result)) {
                (asked.body.bytes, asked.encoding) = (json::to_vec(&body), None);
            }
        }
        asked
    }

    /// Answers a request.
    pub(crate) fn serve(&mut self, asked: &AskedCall) -> ServedAnswer {
        match self.find(asked) {
            Ok(answer) => answer,
            Err(why) => ServedAnswer::refusal(&format!("dendrer: {why}")),
        }
    }

    fn find(&mut self, asked: &AskedCall) -> Result<ServedAnswer, String> {
        let asked = &self.as_recorded(asked);
        let placed = self.placed(asked)?;
        match self.take(asked, &placed)? {
            Some(answer) => Ok(answer),
            None => match self.take_due(&placed)? {
                Some(answer) => Ok(answer),
                None => Err(self.depart(&placed)),
            },
        }
    }

    /// Reads a request.
    ///
    /// # Errors
    ///
    /// Its conversation departed from the record before.
    pub(crate) fn placed(&mut self, asked: &AskedCall) -> Result<Placed, String> {
        let (api, body) = (api::of_path(&asked.method, &asked.path), read::request(asked).ok());
        let place = api.zip(body.as_ref()).and_then(|(api, body)| self.place(api, &asked.path, body));
        match place.is_some_and(|place| self.departed.contains(&place.conversation)) {
            true => Err("this conversation departed from the record before".to_owned()),
            false => Ok(Placed { api, body, place }),
        }
    }

    /// The agent whose conversation a request continues.
    pub(crate) fn agent(&self, placed: &Placed) -> String {
        placed.place.map_or("main", |place| self.conversations.agent(place)).to_owned()
    }

    /// Whether calls of an agent are left.
    pub(crate) fn expects(&self, agent: &str) -> bool {
        self.calls.iter().any(|call| !call.is_served && call.agent == agent)
    }

    /// Which of some calls a request is, byte for byte; of several the first that was not served.
    pub(crate) fn position(
        &mut self,
        asked: &AskedCall,
        calls: &[RecordedCall],
    ) -> Result<Option<usize>, String> {
        let known = read::known(asked, &self.volatile);
        let mut digests: BTreeMap<RunName, Digest> = BTreeMap::new();
        for (index, call) in calls.iter().enumerate().filter(|(_, call)| !call.is_served) {
            if !digests.contains_key(&call.run) {
                let digest = self.vault.known_by(&call.run, &known).map_err(|error| error.to_string())?;
                digests.insert(call.run.clone(), digest);
            }
            if digests.get(&call.run) == Some(&call.known) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// The recorded answer to a request; `None` if it is not on record.
    pub(crate) fn take(
        &mut self,
        asked: &AskedCall,
        placed: &Placed,
    ) -> Result<Option<ServedAnswer>, String> {
        let calls = std::mem::take(&mut self.calls);
        let found = self.position(asked, &calls);
        self.calls = calls;
        let Some(found) = found? else { return Ok(None) };
        self.note_left_out(found, placed);
        self.serve_call(found, placed).map(Some)
    }

    /// The answer that is due to a request that differs, while places are looked for.
    fn take_due(&mut self, placed: &Placed) -> Result<Option<ServedAnswer>, String> {
        let name = placed.api.map_or("http", |api| api.name);
        let Some(found) = self.due(name, &self.agent(placed)).filter(|_| self.calibrates) else {
            return Ok(None);
        };
        let call = &self.calls[found];
        let recorded = self.vault.get(&call.run, &exact::locator(call.call, "request")).ok();
        let recorded = recorded.as_deref().and_then(recorded_body);
        let got = placed.body.clone().map(Value::Object);
        let Some((recorded, got)) = recorded.zip(got) else { return Ok(None) };
        let found_places = differences(&recorded, &got);
        // Another answer or result is another conversation, and no place that differs each time.
        if found_places.iter().any(|one| is_of_model_or_tool(&recorded, &one.path)) {
            return Ok(None);
        }
        for one in found_places {
            let place = VolatilePlace { api: Some(name.to_owned()), path: one.path };
            *self.played.volatile.entry(place).or_default() += 1;
        }
        self.serve_call(found, placed).map(Some)
    }

    /// Which recorded call is due of an agent; of another agent, if it has none left.
    fn due(&self, api: &str, agent: &str) -> Option<usize> {
        let is_open = |call: &RecordedCall| !call.is_served && call.api == api;
        let of_agent = self.calls.iter().position(|call| is_open(call) && call.agent == agent);
        of_agent.or_else(|| self.calls.iter().position(is_open))
    }

    /// Counts the places that are left out, and differ in a request.
    fn note_left_out(&mut self, found: usize, placed: &Placed) {
        let Some(name) = placed.api.map(|api| api.name).filter(|_| !self.volatile.is_empty()) else { return };
        let recorded = self.recorded_request(&self.calls[found]).map(|(_, body)| Value::Object(body));
        let got = placed.body.clone().map(Value::Object);
        for one in recorded.zip(got).iter().flat_map(|(recorded, got)| differences(recorded, got)) {
            let place = VolatilePlace { api: Some(name.to_owned()), path: one.path };
            *self.played.volatile.entry(place).or_default() += 1;
        }
    }

    fn serve_call(&mut self, found: usize, placed: &Placed) -> Result<ServedAnswer, String> {
        let call = &mut self.calls[found];
        let bytes = self.vault.get(&call.run, &exact::locator(call.call, "answer"));
        let bytes = bytes.map_err(|error| error.to_string())?;
        let answer = ServedAnswer::read(&bytes).ok_or("the answer in the vault cannot be read")?;
        call.is_served = true;
        self.played.served += 1;
        self.remember(placed, &answer);
        Ok(answer)
    }

    /// The conversation of a request, with its new messages added to it.
    fn place(&mut self, api: &'static Api, path: &str, body: &Object) -> Option<Place> {
        let request = api.read_request(path, body);
        let (place, new) = self.conversations.find(&request).ok()?;
        for kept in new {
            let none = &mut |_| Ok(Digest([0; 32]));
            self.conversations.at(place).add(kept, std::slice::from_ref(kept), none).ok()?;
        }
        Some(Place { shared: self.conversations.at(place).len(), ..place })
    }

    /// Adds an answer to its conversation, so that the request after it is known to go on with it.
    pub(crate) fn remember(&mut self, placed: &Placed, answer: &ServedAnswer) {
        let (Some(api), Some(place)) = (placed.api, placed.place) else { return };
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

    /// The path and the body of a recorded request.
    pub(crate) fn recorded_request(&self, call: &RecordedCall) -> Option<(String, Object)> {
        let bytes = self.vault.get(&call.run, &exact::locator(call.call, "request")).ok()?;
        let request = exact::read_request(call.call, &bytes)?;
        let body = read::request(&request).ok()?;
        Some((request.path, body))
    }

    /// Notes that a conversation departs from a call that is not served, and returns the reason.
    pub(crate) fn depart_from(&mut self, placed: &Placed, call: CallNumber) -> String {
        let before = self.calls.len();
        self.calls.extend(self.unserved.iter().find(|known| known.call == call).cloned());
        let why = self.depart(placed);
        self.calls.truncate(before);
        why
    }

    /// Notes that a conversation departs, and returns the reason.
    pub(crate) fn depart(&mut self, placed: &Placed) -> String {
        self.departed.extend(placed.place.map(|place| place.conversation));
        let name = placed.api.map_or("http", |api| api.name);
        let (agent, got) = (self.agent(placed), placed.body.clone().map(Value::Object));
        let Some(due) = self.due(name, &agent).map(|due| &self.calls[due]) else {
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
        let recorded = self.vault.get(&due.run, &exact::locator(call, "request")).ok();
        let recorded = recorded.as_deref().and_then(recorded_body);
        let clear = |body: Value| match body {
            Value::Object(body) => Value::Object(volatile::without(body, name, &self.volatile)),
            other => other,
        };
        let difference = recorded.zip(got).and_then(|(a, b)| first_difference(&clear(a), &clear(b)));
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
fn recorded_call(record: &Record, tick: u64) -> Option<RecordedCall> {
    let content = record.content();
    let capture = content.get("intent")?.get("capture").filter(|capture| !is_mcp(capture))?;
    capture.get("exact")?.get("answer")?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(RecordedCall {
        call: capture.get("call")?.as_u64()?,
        api: capture.get("api").and_then(text)?,
        agent: content.get("agent_id").and_then(text)?,
        run: record.header().run.clone()?,
        tick,
        known: capture.get("asked")?.as_str()?.parse().ok()?,
        is_failed: record.header().type_name.as_ref().is_some_and(|name| name.as_str() == "observation.add"),
        is_served: false,
    })
}

/// Whether a run has calls over MCP.
fn has_mcp(trace: &Trace) -> Result<bool, Problem> {
    for tick in 1..=trace.tip() {
        let content = trace.record(tick)?.content();
        let capture = content.get("intent").and_then(|words| words.get("capture"));
        if capture.is_some_and(|capture| is_mcp(capture) && capture.get("exact").is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a place of a request is in a message of a model, or in the result of a tool.
fn is_of_model_or_tool(body: &Value, path: &Pointer) -> bool {
    let tokens: Vec<_> = path.tokens().collect();
    let [list, index, ..] = &tokens[..] else { return false };
    let item = Pointer::of([&**list, &**index]).get(body).cloned();
    item.is_some_and(|item| {
        let role = item.get("role").and_then(Value::as_str).unwrap_or_default();
        matches!(role, "assistant" | "model") || Kept::message(item.clone()).is_result()
    })
}

/// The call in whose request the result of a tool was replaced, and the id of the call of the tool.
fn replaced_result(record: &Record) -> Option<(CallNumber, String)> {
    let content = record.content();
    let capture = content.get("intent")?.get("capture")?;
    (capture.get("changed_in_request") == Some(&Value::from(true))).then_some(())?;
    let id = content.get("action")?.get("call_id")?.as_str()?;
    Some((capture.get("call")?.as_u64()?, id.to_owned()))
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

/// The tools whose results the program alone brings up to a tick: they run again with it.
///
/// # Errors
///
/// A record cannot be read.
pub fn tools_inside(trace: &Trace, to: u64) -> Result<BTreeSet<String>, dendrer::Error> {
    let mut tools = BTreeSet::new();
    for tick in 1..=to {
        let content = trace.record(tick)?.content();
        if content.get(UNATTESTED) == Some(&Value::from(true)) {
            let tool = content.get("action").and_then(|action| action.get("tool")?.as_str());
            tools.insert(tool.unwrap_or("a tool without a name").to_owned());
        }
    }
    Ok(tools)
}
