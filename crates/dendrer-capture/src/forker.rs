//! Serves a program up to a tick of its record. After it, answers come from a user or from the APIs.
//!
//! Rule: up to the tick, nothing near a recorded request is served. A request of an agent whose recorded calls are not all made
//! never reaches an API.

use std::collections::BTreeMap;

use dendrer::Trace;
use dendrer::problem::Problem;
use dendrer::vault::Vault;
use dendrer_object::{Code, Digest, Record, UNATTESTED, Value, json};

use crate::api::{self, Api};
use crate::exact::ServedAnswer;
use crate::exchange::{AskedCall, CallNumber};
use crate::player::{Placed, PlayedCalls, Player, ProgramDivergence, RecordedCall, recorded_calls};
use crate::spoken::{Kept, with_result};

/// The counts of a program that a fork ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForkedCalls {
    /// Calls that were served from the record.
    pub served: u64,
    /// Calls that reached an API.
    pub live: u64,
    /// The ticks that were named, each with whether the program got what was given for it.
    pub answers: Vec<(u64, bool)>,
    /// Divergences before the tick, in their order.
    pub divergences: Vec<ProgramDivergence>,
}

/// The service for a request.
pub(crate) enum Route {
    /// It is answered from the record.
    Served(ServedAnswer),
    /// It is answered with what was given.
    Given(ServedAnswer),
    /// It is answered with a reason.
    Refused(ServedAnswer),
    /// It goes to the API.
    Live(LiveCall),
}

/// A request that goes to the API.
pub(crate) struct LiveCall {
    /// The agent whose conversation it continues.
    pub(crate) agent: String,
    /// Its body, if the result of a tool in it was replaced.
    pub(crate) changed: Option<ChangedBody>,
}

/// A body with other results of tools.
pub(crate) struct ChangedBody {
    pub(crate) bytes: Vec<u8>,
    /// The ids of the calls whose results are others.
    pub(crate) calls: Vec<String>,
}

/// An answer that a user gives in place of a recorded one.
struct GivenAnswer {
    tick: u64,
    /// The recorded call; served once the answer is used.
    call: RecordedCall,
    /// How many calls of its agent are answered between the tick of the fork and it.
    before: usize,
    value: Value,
}

/// A result that a user gives in place of that of a tool inside the program.
struct GivenResult {
    tick: u64,
    /// The id that the model gave its call.
    id: String,
    value: Value,
    is_used: bool,
}

/// The messages of an agent that are on record up to the tick of a fork, and were asked by a call that is answered after it.
struct SharedItems {
    agent: String,
    call: CallNumber,
    keys: Vec<Digest>,
}

/// Serves a program that a fork runs again.
pub struct Forker {
    player: Player,
    first: CallNumber,
    /// Messages that the first request of an agent after the tick has to repeat.
    shared: Vec<SharedItems>,
    given: Vec<GivenAnswer>,
    results: Vec<GivenResult>,
    /// How many calls were answered after the tick, by their agent.
    answered: BTreeMap<String, usize>,
    offline: bool,
    live: u64,
}

impl std::fmt::Debug for Forker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forker").field("player", &self.player).finish_non_exhaustive()
    }
}

impl Forker {
    /// Reads the calls of a run up to a tick, and the answers that are given for later ticks. `offline`: no API is asked.
    ///
    /// # Errors
    ///
    /// The run has no exact calls, a tick has no answer that can be replaced, or a value is no answer of its API (E0117); the key of
    /// the vault is not here (E0465).
    pub fn open(
        parent: &Trace,
        tick: u64,
        vault: Vault,
        answers: &BTreeMap<u64, Value>,
        offline: bool,
    ) -> Result<Forker, Problem> {
        let all = recorded_calls(parent)?;
        let first = all.iter().map(|call| call.call).max().unwrap_or(0);
        // The key is asked for the first call, even if none is served.
        Player::of(parent, vault.clone(), all.clone())?;
        let (served, later): (Vec<_>, Vec<_>) = all.into_iter().partition(|call| call.tick <= tick);
        let mut player = Player::serving(vault, served);
        player.leave_out(parent, Vec::new())?;
        player.compare_with(later.clone());
        let (given, results, answered) = (Vec::new(), Vec::new(), BTreeMap::new());
        let ticks = request_ticks(parent);
        let items = |call: &RecordedCall| shared_items(tick, call, ticks.get(&call.call)?, &player);
        let shared = later.iter().filter_map(items).collect();
        let mut forker = Forker { player, first, shared, given, results, answered, offline, live: 0 };
        for (at, value) in answers {
            forker.give(parent, tick, *at, value, &later)?;
        }
        Ok(forker)
    }

    /// Takes what is given for a tick.
    fn give(
        &mut self,
        parent: &Trace,
        from: u64,
        tick: u64,
        value: &Value,
        later: &[RecordedCall],
    ) -> Result<(), Problem> {
        let refused = |what: String| Problem::new(Code::E0117, what).at("tick", tick.to_string());
        if tick <= from || tick > parent.tip() {
            let what = match tick <= from {
                true => format!("tick {tick} is shared: the fork goes on behind tick {from}"),
                false => format!("{} ends at tick {}", parent.name(), parent.tip()),
            };
            return Err(refused(what).note("an answer is given for a tick behind that of the fork"));
        }
        let record = parent.record(tick).map_err(dendrer::Error::from)?;
        if let Some(id) = result_of_program(&record) {
            self.results.push(GivenResult { tick, id, value: value.clone(), is_used: false });
            return Ok(());
        }
        let call = call_of(&record, "answer").and_then(|call| later.iter().find(|known| known.call == call));
        let Some(call) = call else {
            let what = format!("tick {tick} of {} is no answer that a program was given", parent.name());
            return Err(refused(what).help(&["dendrer", "log", parent.name().as_str()]));
        };
        let api = api::APIS.into_iter().find(|api| api.name == call.api);
        if api.is_some_and(|api| (api.answer)(value.clone()).is_none()) {
            let what = format!("what is given for tick {tick} is no answer of {}", call.api);
            return Err(refused(what).note("it is the JSON that the API answers, whole and not as a stream"));
        }
        let is_before =
            |known: &&RecordedCall| known.agent == call.agent && known.tick < call.tick && !known.is_failed;
        let before = later.iter().filter(is_before).count();
        self.given.push(GivenAnswer { tick, call: call.clone(), before, value: value.clone() });
        Ok(())
    }

    /// The number of the newest call on record.
    pub(crate) fn first(&self) -> CallNumber {
        self.first
    }

    /// Finds what answers a request.
    pub(crate) fn route(&mut self, asked: &AskedCall) -> Route {
        let refused = |why: String| Route::Refused(ServedAnswer::refusal(&format!("dendrer: {why}")));
        let placed = match self.player.placed(asked) {
            Ok(placed) => placed,
            Err(why) => return refused(why),
        };
        match self.player.take(asked, &placed) {
            Ok(Some(answer)) => return Route::Served(answer),
            Ok(None) => {}
            Err(why) => return refused(why),
        }
        let agent = self.player.agent(&placed);
        if self.player.expects(&agent) {
            return refused(self.player.depart(&placed));
        }
        if let Some(at) = self.shared.iter().position(|shared| shared.agent == agent) {
            let SharedItems { call, keys, .. } = &self.shared[at];
            let repeats = placed.keys(&asked.path).get(..keys.len()) == Some(&keys[..]);
            if !repeats {
                let call = *call;
                return refused(self.player.depart_from(&placed, call));
            }
            self.shared.remove(at);
        }
        match self.given(asked, &placed, &agent) {
            Ok(Some(answer)) => return Route::Given(answer),
            Ok(None) => {}
            Err(why) => return refused(why),
        }
        if self.offline {
            return refused("the fork is offline, and no answer is given for this request".to_owned());
        }
        self.live += 1;
        let changed = self.changed(&placed);
        Route::Live(LiveCall { agent, changed })
    }

    /// The answer that is given for a request: for the recorded one, or for that in its place.
    fn given(
        &mut self,
        asked: &AskedCall,
        placed: &Placed,
        agent: &str,
    ) -> Result<Option<ServedAnswer>, String> {
        let calls: Vec<RecordedCall> = self.given.iter().map(|given| given.call.clone()).collect();
        let name = placed.api.map_or("http", |api| api.name);
        let answered = self.answered.get(agent).copied().unwrap_or(0);
        let in_place = |given: &GivenAnswer| {
            let GivenAnswer { call, before, .. } = given;
            !call.is_served && call.api == name && call.agent == agent && *before == answered
        };
        let found = match self.player.position(asked, &calls)? {
            Some(found) => Some(found),
            None => self.given.iter().position(in_place),
        };
        let Some(found) = found else { return Ok(None) };
        let given = &mut self.given[found];
        given.call.is_served = true;
        let answer = as_answer(placed, &asked.path, &given.value);
        self.passed(agent);
        self.player.remember(placed, &answer);
        Ok(Some(answer))
    }

    /// Counts an answer of an agent.
    pub(crate) fn passed(&mut self, agent: &str) {
        *self.answered.entry(agent.to_owned()).or_default() += 1;
    }

    /// A request with the results that are given for tools inside the program.
    fn changed(&mut self, placed: &Placed) -> Option<ChangedBody> {
        let mut body = Value::Object(placed.body.clone()?);
        let mut calls = Vec::new();
        for given in &mut self.results {
            if let Some(changed) = with_result(&body, &given.id, &given.value) {
                (body, given.is_used) = (changed, true);
                calls.push(given.id.clone());
            }
        }
        (!calls.is_empty()).then(|| ChangedBody { bytes: json::to_vec(&body), calls })
    }

    /// The counts.
    pub(crate) fn end(&mut self) -> ForkedCalls {
        let PlayedCalls { served, divergences, .. } = self.player.end();
        let given = self.given.iter().map(|given| (given.tick, given.call.is_served));
        let results = self.results.iter().map(|given| (given.tick, given.is_used));
        let mut answers: Vec<(u64, bool)> = given.chain(results).collect();
        answers.sort_unstable();
        ForkedCalls { served, live: self.live, answers, divergences }
    }
}

/// The ticks of the records that each call has of its request.
fn request_ticks(parent: &Trace) -> BTreeMap<CallNumber, Vec<u64>> {
    let mut ticks: BTreeMap<CallNumber, Vec<u64>> = BTreeMap::new();
    for tick in 1..=parent.tip() {
        let call = parent.record(tick).ok().and_then(|record| call_of(&record, "request"));
        call.into_iter().for_each(|call| ticks.entry(call).or_default().push(tick));
    }
    ticks
}

/// The messages of a call that is answered after the tick of a fork, as far as they are on record up to it. `ticks` are those of
/// its request.
fn shared_items(tick: u64, call: &RecordedCall, ticks: &[u64], player: &Player) -> Option<SharedItems> {
    let before = ticks.iter().filter(|at| **at <= tick).count();
    let after = ticks.iter().filter(|at| **at > tick && **at <= call.tick).count();
    if before == 0 {
        return None;
    }
    let (path, body) = player.recorded_request(call)?;
    let api = api::APIS.into_iter().find(|api| api.name == call.api)?;
    let items = api.read_request(&path, &body).items;
    let keys: Vec<Digest> = items.iter().take(items.len().saturating_sub(after)).map(Kept::key).collect();
    Some(SharedItems { agent: call.agent.clone(), call: call.call, keys })
}

/// The given answer to a request; a stream, if one was asked for.
fn as_answer(placed: &Placed, path: &str, value: &Value) -> ServedAnswer {
    let is_named = placed.body.as_ref().and_then(|body| body.get("stream")) == Some(&Value::from(true));
    let wants_stream = is_named || Api::streams(path);
    match (placed.api, &placed.body, value) {
        (Some(api), Some(body), Value::Object(answer)) if wants_stream => {
            let events = (api.stream)(body, answer);
            ServedAnswer::whole("text/event-stream", events.iter().map(|event| event.bytes()).collect())
        }
        _ => ServedAnswer::whole("application/json", vec![json::to_vec(value)]),
    }
}

/// The call of which a record has a part: its `request`, or its `answer`.
fn call_of(record: &Record, part: &str) -> Option<CallNumber> {
    let content = record.content();
    let capture = content.get("intent")?.get("capture")?;
    capture.get("call")?.as_u64().filter(|_| capture.get("seen").and_then(Value::as_str) == Some(part))
}

/// The id of the call of a tool inside the program, whose result a record has.
fn result_of_program(record: &Record) -> Option<String> {
    let content = record.content();
    (content.get(UNATTESTED) == Some(&Value::from(true))).then_some(())?;
    content.get("action")?.get("call_id")?.as_str().map(str::to_owned)
}
