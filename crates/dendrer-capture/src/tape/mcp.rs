//! Calls over MCP as transitions.
//!
//! A call of a tool may be seen three times: a model asks for it, a client makes it over MCP, and a later request repeats its result. It is
//! one call: the first of the three makes its `action.request`, the answer of the server its `action.result`.
//!
//! Rule: what came over MCP is not recorded a second time because a request repeats it; test
//! `a_call_that_is_seen_three_times_is_one_call`.

use std::collections::{BTreeMap, HashMap, VecDeque};

use dendrer::vault::VaultRef;
use dendrer_object::record::{Link, Rel};
use dendrer_object::{Digest, Intent, TypeName, Value, json};

use super::servers::{Call, DoneTool, OPEN_MAX, Place, Server, Syncer};
use super::{Open, Tape, TapeError, capture, observation, propose, with_members, with_word};
use crate::api;
use crate::exact;
use crate::exchange::CallNumber;
use crate::mcp::{self, MCP, McpCopied, McpCopy, McpEnd, McpLine, McpSaid, McpSide, Told};
use crate::proxy::PassedCopy;
use crate::read;
use crate::spoken::Kept;

impl Tape {
    /// Takes a copy in its turn: a request that has a result waits for the result itself, which comes by another way.
    pub(super) fn in_turn(&mut self, seen: PassedCopy) -> Result<(), TapeError> {
        if let PassedCopy::Mcp(copy) = &seen {
            match self.mcp.waits_after(copy) {
                0 => self.one(seen)?,
                after => self.mcp.held.insert(after, seen),
            }
            return self.release(false);
        }
        // The program waits for what is due, so nothing else is waited for.
        let is_due = matches!(seen, PassedCopy::Due(_));
        self.mcp.held.push_back(seen);
        self.release(is_due)
    }

    /// Takes copies that waited; all of them at the end.
    fn release(&mut self, is_end: bool) -> Result<(), TapeError> {
        while let Some(first) = self.mcp.held.pop_front() {
            if let Some(failed) = self.failed_before(&first).or_else(|| self.answer_before(&first)) {
                let is_its =
                    |copy: &PassedCopy| matches!(copy, PassedCopy::Answered(one) if one.call == failed);
                if let Some(at) = self.mcp.held.iter().position(is_its) {
                    let failure = self.mcp.held.remove(at);
                    self.mcp.held.push_front(first);
                    failure.into_iter().try_for_each(|failure| self.one(failure))?;
                    continue;
                }
                if !is_end && self.mcp.may_wait() {
                    self.mcp.held.push_front(first);
                    return Ok(());
                }
            }
            if !is_end && self.mcp.must_wait(&first) {
                self.mcp.held.push_front(first);
                return Ok(());
            }
            (self.mcp.held_since, self.mcp.asked_sync) = (None, None);
            self.one(first)?;
        }
        Ok(())
    }

    /// The open call that a request continues: a program asks again once it has what it needs, before the end of the body.
    fn answer_before(&self, copy: &PassedCopy) -> Option<CallNumber> {
        let PassedCopy::Asked(asked) = copy else { return None };
        if self.open.is_empty() {
            return None;
        }
        let api = api::of_path(&asked.method, &asked.path)?;
        let request = api.read_request(&asked.path, &read::request(asked).ok()?);
        let keys: Vec<Digest> = request.items.iter().map(Kept::key).collect();
        let goes_on = |open: &&Open| match (open.place, &request.after) {
            (None, _) => false,
            (Some(_), Some(id)) => open.is_of(api) && !self.conversations.has_answered(id),
            (Some(place), None) => open.is_of(api) && self.conversations.is_begun_by(place, &keys),
        };
        self.open.values().find(goes_on).map(|open| open.asked.call)
    }

    /// The failed call that an answer follows, as long as that has not ended: a program asks again at its status.
    fn failed_before(&self, copy: &PassedCopy) -> Option<CallNumber> {
        let PassedCopy::Answered(answered) = copy else { return None };
        let failed = self.open.get(&answered.call)?.retry_of?;
        self.open.contains_key(&failed).then_some(failed)
    }

    /// Lets requests with results wait for what shims copied before: `syncer` asks shims, and returns whether there is one.
    pub fn with_shims(&mut self, syncer: Box<dyn Fn(u64) -> bool + Send>) {
        self.mcp.syncer = Syncer(Some(syncer));
    }

    /// Takes all that waits, and ends all servers.
    pub(super) fn end_mcp(&mut self) -> Result<(), TapeError> {
        self.release(true)?;
        let servers: Vec<u64> = self.mcp.servers.keys().copied().collect();
        servers.into_iter().try_for_each(|server| self.ended(server, None))
    }

    /// Takes what passed between a client and a server.
    pub(super) fn take_mcp(&mut self, copy: McpCopy) -> Result<(), TapeError> {
        let server = copy.server;
        match copy.what {
            McpCopied::Begun { name, command } => {
                let known = mcp::command_key(&command);
                let run = &self.run;
                let known = self.vault.as_mut().and_then(|vault| vault.known_by(run, &known).ok());
                let name = mcp::server_name(name.as_deref(), &command);
                let one = Server {
                    agent: format!("{MCP}:{name}"),
                    name,
                    words: mcp::without_keys(&command),
                    known,
                    command,
                    open: HashMap::new(),
                    open_count: 0,
                    asks: HashMap::new(),
                    gaps: BTreeMap::new(),
                };
                self.mcp.servers.insert(server, one);
                Ok(())
            }
            McpCopied::Line(line) => self.line(server, line),
            McpCopied::Synced(number) => {
                self.mcp.synced = number;
                Ok(())
            }
            McpCopied::Ended(end) => self.ended(server, end),
        }
    }

    fn line(&mut self, server: u64, line: McpLine) -> Result<(), TapeError> {
        if !self.mcp.servers.contains_key(&server) {
            return Ok(());
        }
        let McpLine { from, bytes, said, .. } = line;
        let said = match said {
            Ok(said) => said,
            Err(why) => return self.mcp_gap(server, why),
        };
        let is_alone = said.len() == 1;
        for one in said {
            // The exact bytes of a message in a batch are those of the message.
            let exact = if is_alone { bytes.clone() } else { json::to_vec(one.whole()) };
            match (one, from) {
                (McpSaid::Request { call, id, method, whole }, McpSide::Client) => {
                    self.mcp_asked((server, call), json::to_string(&id), method, &whole, &exact)?;
                }
                (McpSaid::Request { id, method, whole, .. }, McpSide::Server) => {
                    let asks = &mut self.server(server).asks;
                    if asks.len() < OPEN_MAX {
                        asks.insert(json::to_string(&id), method.clone());
                    }
                    self.mcp_message(server, McpSide::Server, &method, ("params", mcp::params(&whole)))?;
                }
                (McpSaid::Notification { method, whole }, from) => {
                    self.cancel(server, &method, &whole);
                    self.mcp_message(server, from, &method, ("params", mcp::params(&whole)))?;
                }
                (McpSaid::Answer { id, answer, .. }, McpSide::Server) => {
                    self.mcp_answered(server, &json::to_string(&id), answer, &exact)?;
                }
                (McpSaid::Answer { id, answer, .. }, McpSide::Client) => {
                    match (self.server(server).asks.remove(&json::to_string(&id)), answer) {
                        (None, _) => self.mcp_gap(server, "answer_without_request")?,
                        (Some(method), Ok(result)) => {
                            self.mcp_message(server, McpSide::Client, &method, ("result", result))?;
                        }
                        (Some(method), Err(error)) => {
                            self.mcp_message(server, McpSide::Client, &method, ("error", error))?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn server(&mut self, server: u64) -> &mut Server {
        self.mcp.servers.get_mut(&server).expect("lines of unknown servers are not read")
    }

    /// A request of a client.
    fn mcp_asked(
        &mut self,
        (server, call): (u64, CallNumber),
        id: String,
        method: String,
        whole: &Value,
        exact: &[u8],
    ) -> Result<(), TapeError> {
        self.tally.calls += 1;
        if self.server(server).open_count >= OPEN_MAX {
            return self.mcp_gap(server, "too_many_open");
        }
        let exact = self.keep(call, "request", &exact::of_mcp(exact));
        let known = mcp::request_key(&self.server(server).command, &method, &mcp::params(whole));
        let run = &self.run;
        let known = self.vault.as_mut().and_then(|vault| vault.known_by(run, &known).ok());
        let one = self.server(server);
        one.open.entry(id).or_default().push_back(call);
        one.open_count += 1;
        let tool = mcp::tool(&method, whole);
        let place = if tool.is_some() { Place::Undecided } else { Place::Later };
        let params = mcp::params(whole);
        let (is_cancelled, answer) = (false, None);
        let new = Call { server, method, params, tool, place, is_cancelled, exact, known, answer };
        self.mcp.calls.insert(call, new);
        self.decide(call)
    }

    /// Finds the request of a call on record, or records one.
    fn decide(&mut self, call: CallNumber) -> Result<(), TapeError> {
        let Some(one) = self.mcp.calls.get(&call).filter(|one| matches!(one.place, Place::Undecided)) else {
            return Ok(());
        };
        let Some((tool, arguments)) = one.tool.clone() else { return Ok(()) };
        let (server, name) =
            (one.server, self.mcp.servers.get(&one.server).map(|server| server.name.clone()));
        let place = match self.mcp.take_asked(&name.unwrap_or_default(), &tool, &arguments) {
            Some(asked) => Place::Asked(asked),
            // An answer that is under way may ask for it: clients act before a stream has ended.
            None if self.open.values().any(|open| open.api.is_some()) => return Ok(()),
            None => {
                let agent = self.server(server).agent.clone();
                let action = Value::record([("params", arguments), ("tool", Value::from(tool))]);
                let intent = of_type("action.request", &agent).with("action", action);
                let capture = self.mcp_capture((server, call), 0, Vec::new());
                Place::Own(self.propose(with_word(intent, "capture", Some(capture)))?)
            }
        };
        if let Some(one) = self.mcp.calls.get_mut(&call) {
            one.place = place;
        }
        self.finish_mcp(call)
    }

    /// Decides calls that an answer of a model may ask for, now that one came.
    pub(super) fn settle(&mut self) -> Result<(), TapeError> {
        let undecided =
            |(call, one): (&CallNumber, &Call)| matches!(one.place, Place::Undecided).then_some(*call);
        let undecided: Vec<CallNumber> = self.mcp.calls.iter().filter_map(undecided).collect();
        undecided.into_iter().try_for_each(|call| self.decide(call))
    }

    fn mcp_answered(
        &mut self,
        server: u64,
        id: &str,
        answer: Result<Value, Value>,
        exact: &[u8],
    ) -> Result<(), TapeError> {
        let one = self.server(server);
        let open = one.open.get_mut(id);
        let Some(call) = open.and_then(VecDeque::pop_front) else {
            return self.mcp_gap(server, "answer_without_request");
        };
        one.open_count -= 1;
        one.open.retain(|_, calls| !calls.is_empty());
        let exact = self.keep(call, "answer", &exact::of_mcp(exact));
        if let Some(one) = self.mcp.calls.get_mut(&call) {
            one.answer = Some((answer, exact));
        }
        self.finish_mcp(call)
    }

    /// Records a call that was answered, once its request is decided.
    fn finish_mcp(&mut self, call: CallNumber) -> Result<(), TapeError> {
        let is_whole = |one: &Call| one.answer.is_some() && !matches!(one.place, Place::Undecided);
        if !self.mcp.calls.get(&call).is_some_and(is_whole) {
            return Ok(());
        }
        let Some(Call { answer: Some((answer, exact)), exact: asked, .. }) = self.mcp.calls.get(&call) else {
            return Ok(());
        };
        let is_failed = match answer {
            Ok(result) => result.get("isError") == Some(&Value::from(true)),
            Err(_) => true,
        };
        let exact = [("answer", *exact), ("request", *asked)];
        self.tally.failed += u64::from(is_failed);
        let Some(one) = self.mcp.calls.remove(&call) else { return Ok(()) };
        let parts = exact_words(exact, one.known);
        let Some((answer, _)) = one.answer else { return Ok(()) };
        let (request, agent, branch, call_id, named) = match one.place {
            Place::Asked(asked) => (asked.record, asked.agent, asked.branch, asked.call_id, Some(asked.tool)),
            Place::Own(request) => (request, self.server(one.server).agent.clone(), 0, None, None),
            Place::Later | Place::Undecided => {
                return self.mcp_other((one.server, call), (one.method, one.params), answer, parts);
            }
        };
        let Some((tool, params)) = one.tool else { return Ok(()) };
        let told = Told::of_answer(&answer);
        let capture = self.mcp_capture((one.server, call), branch, parts);
        let shown = named.unwrap_or_else(|| tool.clone());
        let action = [
            ("call_id", call_id.clone()),
            ("params", Some(params.clone())),
            ("tool", Some(Value::from(shown.as_str()))),
        ];
        let action = action.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let mut intent = of_type("action.result", &agent).by_runtime();
        let (result, extra) = result_words(answer, is_failed);
        intent = intent.with("action", Value::record(action)).with("result", result);
        intent.links.push(Link { rel: Rel::CausedBy, hash: request });
        let record = self.propose(with_word(with_word(intent, "extra", extra), "capture", Some(capture)))?;
        let server = self.server(one.server).name.clone();
        let (is_told, request) = (false, Some(request));
        let done = DoneTool { call, agent, call_id, server, tool, params, record, request, told, is_told };
        self.mcp.add_done(done);
        Ok(())
    }

    /// Records a call of another method than that of tools.
    fn mcp_other(
        &mut self,
        (server, call): (u64, CallNumber),
        (method, params): (String, Value),
        answer: Result<Value, Value>,
        parts: Vec<(&str, Value)>,
    ) -> Result<(), TapeError> {
        let (name, value) = match answer {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        let one = self.server(server);
        let mut said = vec![("method", Value::from(method.as_str())), (name, value)];
        if params != Value::Null {
            said.push(("params", params));
        }
        if method == "initialize" {
            said.push(("command", one.words.clone()));
        }
        let agent = one.agent.clone();
        let capture = self.mcp_capture((server, call), 0, parts);
        self.propose(mcp_words(&agent, &method, Value::record(said), capture))?;
        Ok(())
    }

    /// Records a message that is neither a request of the client nor its answer.
    fn mcp_message(
        &mut self,
        server: u64,
        from: McpSide,
        method: &str,
        (name, value): (&str, Value),
    ) -> Result<(), TapeError> {
        let mut said = vec![("from", Value::from(from.as_str())), ("method", Value::from(method))];
        if value != Value::Null {
            said.push((name, value));
        }
        let agent = self.server(server).agent.clone();
        let capture = Value::record([
            ("api", Value::from(MCP)),
            ("seen", Value::from(MCP)),
            ("server", Value::from(server)),
        ]);
        self.propose(mcp_words(&agent, method, Value::record(said), capture))?;
        Ok(())
    }

    /// Notes that a request was cancelled: it may have no answer.
    fn cancel(&mut self, server: u64, method: &str, whole: &Value) {
        let id = whole.get("params").and_then(|params| params.get("requestId"));
        let Some(id) = id.filter(|_| method == "notifications/cancelled") else { return };
        let calls = self.server(server).open.get(&json::to_string(id)).cloned().unwrap_or_default();
        for call in calls {
            if let Some(one) = self.mcp.calls.get_mut(&call) {
                one.is_cancelled = true;
            }
        }
    }

    /// Records that a part is missing: the first for each reason; how many there were comes at the end of the server.
    fn mcp_gap(&mut self, server: u64, why: &'static str) -> Result<(), TapeError> {
        self.tally.gaps += 1;
        let one = self.server(server);
        let count = one.gaps.entry(why).or_default();
        *count += 1;
        if *count > 1 {
            return Ok(());
        }
        self.mcp_note(server, gap_words(why, 1))
    }

    fn mcp_note(&mut self, server: u64, anomaly: Value) -> Result<(), TapeError> {
        let capture =
            [("api", Value::from(MCP)), ("seen", Value::from(MCP)), ("server", Value::from(server))];
        let words = Value::record([("capture", Value::record(capture))]);
        let mut intent = observation(&self.server(server).agent).with("intent", words);
        intent.noted.push(anomaly);
        self.propose(intent)?;
        Ok(())
    }

    /// Records the end of a server: calls without an answer, how much is missing, and an end that is no success.
    fn ended(&mut self, server: u64, end: Option<McpEnd>) -> Result<(), TapeError> {
        if !self.mcp.servers.contains_key(&server) {
            return Ok(());
        }
        let of_server = |(call, one): (&CallNumber, &Call)| (one.server == server).then_some(*call);
        for call in self.mcp.calls.iter().filter_map(of_server).collect::<Vec<_>>() {
            // No answer of a model that is under way was awaited long enough to matter now.
            self.decide_own(call)?;
            let Some(one) = self.mcp.calls.remove(&call) else { continue };
            self.tally.failed += 1;
            let ended = if one.is_cancelled { "cancelled" } else { McpSide::Server.as_str() };
            let anomaly = Value::record([
                ("ended", Value::from(ended)),
                ("kind", Value::from("mcp_call_failed")),
                ("method", Value::from(one.method.as_str())),
            ]);
            let parts = exact_words([("answer", None), ("request", one.exact)], one.known);
            let (agent, branch, request) = match one.place {
                Place::Asked(asked) => (asked.agent, asked.branch, Some(asked.record)),
                Place::Own(request) => (self.server(server).agent.clone(), 0, Some(request)),
                Place::Later | Place::Undecided => (self.server(server).agent.clone(), 0, None),
            };
            let capture = self.mcp_capture((server, call), branch, parts);
            let mut intent = observation(&agent).with("intent", Value::record([("capture", capture)]));
            intent.links.extend(request.map(|hash| Link { rel: Rel::CausedBy, hash }));
            intent.noted.push(anomaly);
            self.propose(intent)?;
        }
        let counts: Vec<(&str, u64)> =
            self.server(server).gaps.iter().map(|(why, count)| (*why, *count)).collect();
        for (why, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
            self.mcp_note(server, gap_words(why, count))?;
        }
        let is_success = end.is_some_and(|end| end == McpEnd { exit: Some(0), signal: None });
        if !is_success {
            let number = |value: Option<u8>| value.map_or(Value::Null, |value| Value::from(u64::from(value)));
            let how = end.unwrap_or_default();
            let how = Value::record([("exit", number(how.exit)), ("signal", number(how.signal))]);
            let one = self.server(server);
            let (agent, known) = (one.agent.clone(), one.known);
            let mut capture =
                vec![("api", Value::from(MCP)), ("seen", Value::from(MCP)), ("server", Value::from(server))];
            capture.extend(known.map(|known| ("command", Value::from(known))));
            let said = Value::record([("ended", how)]);
            self.propose(mcp_words(&agent, "the server ended", said, Value::record(capture)))?;
        }
        self.mcp.servers.remove(&server);
        Ok(())
    }

    /// Records the request of a call as one of its server, if no model asked for it so far.
    fn decide_own(&mut self, call: CallNumber) -> Result<(), TapeError> {
        let open = std::mem::take(&mut self.open);
        let decided = self.decide(call);
        self.open = open;
        decided
    }

    fn mcp_capture(
        &mut self,
        (server, call): (u64, CallNumber),
        branch: u64,
        parts: Vec<(&str, Value)>,
    ) -> Value {
        let known = self.server(server).known.map(|known| ("command", Value::from(known)));
        let own = [("server", Value::from(server))];
        with_members(capture(call, MCP, branch, MCP), own.into_iter().chain(known).chain(parts).collect())
    }

    /// Records a result in a request that is another one than that over MCP.
    pub(super) fn differs(
        recorder: &mut dendrer::recorder::Recorder,
        claim: Intent,
        (call, record): (CallNumber, Digest),
    ) -> Result<Digest, dendrer::Error> {
        let told = claim.member("result").and_then(|result| result.get("output").or(result.get("error")));
        let told = told.cloned().unwrap_or(Value::Null);
        let words = claim.member("intent").cloned().unwrap_or_else(Value::object);
        let mut intent =
            observation(&claim.agent).with("intent", with_members(words, vec![("content", told)]));
        intent.links.push(Link { rel: Rel::CausedBy, hash: record });
        intent.noted.push(Value::record([
            ("call", Value::from(call)),
            ("kind", Value::from("result_differs")),
            ("result", Value::from(record)),
        ]));
        propose(recorder, intent)
    }
}

fn of_type(name: &str, agent: &str) -> Intent {
    let type_name: TypeName = name.parse().expect("a type of the ontology");
    Intent::new(type_name, agent)
}

fn mcp_words(agent: &str, description: &str, said: Value, capture: Value) -> Intent {
    let words = [("capture", capture), ("description", Value::from(description)), (MCP, said)];
    observation(agent).with("intent", Value::record(words))
}

fn gap_words(why: &str, count: u64) -> Value {
    Value::record([
        ("gap", Value::from(true)),
        ("kind", Value::from("capture_gap")),
        ("lines", Value::from(count)),
        ("why", Value::from(why)),
    ])
}

fn exact_words(
    exact: [(&'static str, Option<VaultRef>); 2],
    known: Option<Digest>,
) -> Vec<(&'static str, Value)> {
    let kept = exact.into_iter().filter_map(|(part, found)| Some((part, found?.to_value())));
    let kept: Vec<(&str, Value)> = kept.collect();
    let exact = (!kept.is_empty()).then(|| ("exact", Value::record(kept)));
    known.map(|known| ("asked", Value::from(known))).into_iter().chain(exact).collect()
}

/// The result of a tool: its content, its status, and the other members of the answer.
fn result_words(answer: Result<Value, Value>, is_failed: bool) -> (Value, Option<Value>) {
    let status = Value::from(if is_failed { "error" } else { "ok" });
    let stated = [("status", status), ("status_from", Value::from("flag"))];
    match answer {
        Ok(Value::Object(mut members)) => {
            let output = members.remove("content").unwrap_or(Value::Null);
            members.remove("isError");
            let extra = (!members.is_empty()).then_some(Value::Object(members));
            (Value::record([("output", output)].into_iter().chain(stated)), extra)
        }
        Ok(other) => (Value::record([("output", other)].into_iter().chain(stated)), None),
        Err(error) => (Value::record([("error", error)].into_iter().chain(stated)), None),
    }
}
